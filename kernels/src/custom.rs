//! Rows that a user supplies.

use crate::table::{Kernels, Ops};
use crate::{
    CountsSeen, EntriesSeen, ExpandedSeen, GapsSeen, LengthsSeen, RansSeen, RansSlot, RansTable, Store, VarintsSeen,
};

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

impl Custom {
    pub(crate) fn new(ops: Ops) -> Custom {
        Custom(CustomUnchecked::new(ops))
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

impl CustomUnchecked {
    pub(crate) fn new(ops: Ops) -> CustomUnchecked {
        CustomUnchecked { ops }
    }

    /// The finished row, as [`Custom::build`] gives it.
    pub fn build(self) -> Kernels {
        Kernels::from_row(Box::leak(Box::new(self.ops)))
    }
}

/// A setter of each operation for both builders.
macro_rules! setters {
    ($($operation:ident: ($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[expect(clippy::should_implement_trait, reason = "setters, named as what they set")]
        impl Custom {
            $(
                #[doc = concat!("Replaces [`Kernels::", stringify!($operation), "`].")]
                pub fn $operation(self, operation: fn($($argument),*) $(-> $result)?) -> Custom {
                    Custom(self.0.$operation(operation))
                }
            )*
        }

        #[expect(clippy::should_implement_trait, reason = "setters, named as what they set")]
        impl CustomUnchecked {
            $(
                #[doc = concat!("Replaces [`Kernels::", stringify!($operation), "`].")]
                pub fn $operation(mut self, operation: unsafe fn($($argument),*) $(-> $result)?) -> CustomUnchecked {
                    self.ops.$operation = operation;
                    self
                }
            )*
        }
    };
}

setters! {
    words: (&[u8], usize, usize, &mut [u8]);
    gaps: (&[u8], &[u8], &[i64], &mut [i32], Store) -> GapsSeen;
    counts_i32: (&[u8], &[u8], &mut [i32], Store) -> CountsSeen;
    counts_f32: (&[u8], &[u8], &mut [f32], Store) -> CountsSeen;
    counts_u16: (&[u8], &[u8], &mut [u16], Store) -> CountsSeen;
    add: (&mut [i32], i32);
    unpack_u8: (&[u8], u32, &mut [u8]);
    unpack_u16: (&[u8], u32, &mut [u16]);
    unpack_u32: (&[u8], u32, &mut [u32]);
    unpack_u64: (&[u8], u32, &mut [u64]);
    unpack_lanes_u32: (&[u8], u32, &mut [u32]);
    unpack_lanes_u64: (&[u8], u32, &mut [u64]);
    deltas_u32: (&[u8], &[u8], usize, u32, u32, &mut [u32]) -> u32;
    deltas_u64: (&[u8], &[u8], usize, u64, u64, &mut [u64]) -> u64;
    gather_u32: (&[u32], &[u32], &mut [u32]) -> Option<usize>;
    gather_u64: (&[u64], &[u32], &mut [u64]) -> Option<usize>;
    gather_bytes: (&[u8], usize, &[u32], &mut [u8]) -> Option<usize>;
    repeat_u32: (&[u32], &[u32], &mut [u32]) -> u64;
    repeat_u64: (&[u64], &[u32], &mut [u64]) -> u64;
    offsets_u32: (&[u32], u32, &mut [u32]) -> LengthsSeen;
    entries: (&[u8], &[u32], &[u32], u32, &mut [u32], &mut [u8]) -> EntriesSeen;
    spans: (&[u8], &[u32], &[u32], &mut [u8]) -> usize;
    prefixed: (&[u8], &[u32], &[u32], &[u8], &mut [u8]) -> usize;
    varints_u32: (&[u8], &mut [u32]) -> VarintsSeen;
    varints_u64: (&[u8], &mut [u64]) -> VarintsSeen;
    vbytes_u32: (&[u8], &mut [u32]) -> VarintsSeen;
    vbytes_u64: (&[u8], &mut [u64]) -> VarintsSeen;
    zigzag_u32: (&mut [u32]);
    zigzag_u64: (&mut [u64]);
    zigzag_deltas_u32: (&mut [u32], usize);
    zigzag_deltas_u64: (&mut [u64]);
    zigzag_deltas2_u32: (&mut [u32], usize);
    zigzag_deltas2_u64: (&mut [u64]);
    morton: (&[u32], u32, u32, &mut [i32]);
    fsst: (&[u64; 256], &[u8; 256], usize, &[u8], &mut [u8]) -> ExpandedSeen;
    alp_f64: (&[u64], i64, f64, f64, &mut [f64]);
    alp_f32: (&[u64], i64, f64, f64, &mut [f32]);
    patch_u32: (&[u8], &[u32], u32, &mut [u32]);
    patch_u64: (&[u8], &[u64], u32, &mut [u64]);
    swap_words: (&[u8], &mut [u8]);
    spread_u32: (&[u32], &[u8], &mut [u32]) -> usize;
    spread_u64: (&[u64], &[u8], &mut [u64]) -> usize;
    spread_bits: (&[u8], &[u8], usize, &mut [u8]) -> usize;
    rans_symbols: (&[RansSlot], &[RansTable; 14], u32, &[&[u8]; 4], &[u32; 4], &[u8], &mut [[u16; 2]]) -> RansSeen;
    rans_vertices: (&[[u16; 2]], u32, &[u8], &mut [i32]) -> u64;
}
