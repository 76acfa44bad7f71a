//! Kernels of [`Level::Neon`](crate::Level::Neon). Plain loops need none here: every AArch64 target has the features,
//! so that the scalar ones are compiled with them.

pub(crate) mod bits;
pub(crate) mod delta;
pub(crate) mod planes;
pub(crate) mod scan;
pub(crate) mod spread;
pub(crate) mod strings;
pub(crate) mod varint;
pub(crate) mod zigzag;
