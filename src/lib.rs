//! tilekern decodes compact integer formats with kernels chosen at run time.
