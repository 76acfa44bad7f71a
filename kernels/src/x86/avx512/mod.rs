//! Kernels of [`Level::Avx512`](crate::Level::Avx512).

pub(crate) mod planes;
pub(crate) mod scan;
