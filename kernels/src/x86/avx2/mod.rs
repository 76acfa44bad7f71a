//! Kernels of [`Level::Avx2`](crate::Level::Avx2).

pub(crate) mod alp;
pub(crate) mod bits;
pub(crate) mod delta;
pub(crate) mod gather;
pub(crate) mod morton;
pub(crate) mod patch;
pub(crate) mod planes;
pub(crate) mod runs;
pub(crate) mod scan;
pub(crate) mod spread;
pub(crate) mod strings;
pub(crate) mod swap;
pub(crate) mod varint;
pub(crate) mod zigzag;
