//! Rows that a user supplies.

use crate::table::{Kernels, Ops};
use crate::{CountsSeen, GapsSeen, Store};

/// A row under construction: the caller's own safe functions for some operations, the rest inherited from a level.
///
/// Each function must keep the [contract](crate#contract-of-every-operation); the decoders built on it stay memory safe
/// even where it does not.
///
/// ```
/// use tilekern_kernels::{CountsSeen, Kernels, Store};
///
/// fn counts(lo: &[u8], hi: &[u8], out: &mut [i32], _: Store) -> CountsSeen {
///     let mut seen = CountsSeen::default();
///     for (i, out) in out.iter_mut().enumerate() {
///         *out = i32::from(lo[i]) + 256 * i32::from(hi[i]);
///         seen.zero |= *out == 0;
///     }
///     seen
/// }
///
/// let kernels = Kernels::custom("mine", Kernels::auto()).counts_i32(counts).build();
/// let mut out = [0];
/// kernels.counts_i32(&[1], &[1], &mut out, Store::Cached);
/// assert_eq!((kernels.name(), out), ("mine", [257]));
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct Custom(CustomUnchecked);

#[expect(clippy::type_complexity, clippy::should_implement_trait, reason = "setters, named and typed as what they set")]
impl Custom {
    pub(crate) fn new(ops: Ops) -> Custom {
        Custom(CustomUnchecked::new(ops))
    }

    /// Replaces [`Kernels::words`].
    pub fn words(self, op: fn(&[u8], usize, &mut [u8])) -> Custom {
        Custom(self.0.words(op))
    }

    /// Replaces [`Kernels::gaps`].
    pub fn gaps(self, op: fn(&[u8], &[u8], &[i64], &mut [i32], Store) -> GapsSeen) -> Custom {
        Custom(self.0.gaps(op))
    }

    /// Replaces [`Kernels::counts_i32`].
    pub fn counts_i32(self, op: fn(&[u8], &[u8], &mut [i32], Store) -> CountsSeen) -> Custom {
        Custom(self.0.counts_i32(op))
    }

    /// Replaces [`Kernels::counts_f32`].
    pub fn counts_f32(self, op: fn(&[u8], &[u8], &mut [f32], Store) -> CountsSeen) -> Custom {
        Custom(self.0.counts_f32(op))
    }

    /// Replaces [`Kernels::counts_u16`].
    pub fn counts_u16(self, op: fn(&[u8], &[u8], &mut [u16], Store) -> CountsSeen) -> Custom {
        Custom(self.0.counts_u16(op))
    }

    /// Replaces [`Kernels::add`].
    pub fn add(self, op: fn(&mut [i32], i32)) -> Custom {
        Custom(self.0.add(op))
    }

    /// The finished row. It lives as long as the process, so that its handle can be copied freely: build it once.
    pub fn build(self) -> Kernels {
        self.0.build()
    }
}

/// A [`Custom`] row of `unsafe` functions, such as those which need CPU features that no level names. Only
/// [`Kernels::custom_unchecked`] makes one: whoever called it vouches for all that is put in here.
#[derive(Clone, Copy)]
#[must_use]
pub struct CustomUnchecked {
    ops: Ops,
}

#[expect(clippy::type_complexity, clippy::should_implement_trait, reason = "setters, named and typed as what they set")]
impl CustomUnchecked {
    pub(crate) fn new(ops: Ops) -> CustomUnchecked {
        CustomUnchecked { ops }
    }

    /// Replaces [`Kernels::words`].
    pub fn words(mut self, op: unsafe fn(&[u8], usize, &mut [u8])) -> CustomUnchecked {
        self.ops.words = op;
        self
    }

    /// Replaces [`Kernels::gaps`].
    pub fn gaps(mut self, op: unsafe fn(&[u8], &[u8], &[i64], &mut [i32], Store) -> GapsSeen) -> CustomUnchecked {
        self.ops.gaps = op;
        self
    }

    /// Replaces [`Kernels::counts_i32`].
    pub fn counts_i32(mut self, op: unsafe fn(&[u8], &[u8], &mut [i32], Store) -> CountsSeen) -> CustomUnchecked {
        self.ops.counts_i32 = op;
        self
    }

    /// Replaces [`Kernels::counts_f32`].
    pub fn counts_f32(mut self, op: unsafe fn(&[u8], &[u8], &mut [f32], Store) -> CountsSeen) -> CustomUnchecked {
        self.ops.counts_f32 = op;
        self
    }

    /// Replaces [`Kernels::counts_u16`].
    pub fn counts_u16(mut self, op: unsafe fn(&[u8], &[u8], &mut [u16], Store) -> CountsSeen) -> CustomUnchecked {
        self.ops.counts_u16 = op;
        self
    }

    /// Replaces [`Kernels::add`].
    pub fn add(mut self, op: unsafe fn(&mut [i32], i32)) -> CustomUnchecked {
        self.ops.add = op;
        self
    }

    /// The finished row, as [`Custom::build`] gives it.
    pub fn build(self) -> Kernels {
        Kernels::from_row(Box::leak(Box::new(self.ops)))
    }
}
