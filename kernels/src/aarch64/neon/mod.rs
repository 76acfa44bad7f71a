//! Kernels of [`Level::Neon`](crate::Level::Neon). Plain loops need none here: every AArch64 target has the features,
//! so that the scalar ones are compiled with them.

pub(crate) mod scan;
