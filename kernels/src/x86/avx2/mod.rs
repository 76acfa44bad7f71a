//! Kernels of [`Level::Avx2`](crate::Level::Avx2).

pub(crate) mod patch;
pub(crate) mod planes;
pub(crate) mod scan;

use crate::level::x86::Avx2;

/// A plain loop compiled for this level; where it is called without the level, as it is.
#[inline(always)]
fn plain<F: pulp::NullaryFnOnce>(body: F) -> F::Output {
    match Avx2::try_new() {
        Some(token) => token.vectorize(body),
        None => body.call(),
    }
}
