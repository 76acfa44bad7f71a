//! tilekern decodes compact integer formats with kernels chosen at run time.

#[cfg(feature = "simulate")]
pub mod simulate;
