//! Kernels of [`Level::Avx512`](crate::Level::Avx512).

pub(crate) mod alp;
pub(crate) mod bits;
pub(crate) mod delta;
pub(crate) mod fsst;
pub(crate) mod gather;
pub(crate) mod morton;
pub(crate) mod planes;
pub(crate) mod scan;
pub(crate) mod strings;
pub(crate) mod swap;
pub(crate) mod varint;
pub(crate) mod zigzag;
