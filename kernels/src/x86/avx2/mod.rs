//! Kernels of [`Level::Avx2`](crate::Level::Avx2).

pub(crate) mod patch;
pub(crate) mod planes;
pub(crate) mod scan;
