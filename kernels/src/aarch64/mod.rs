//! Kernels for AArch64.
