//! Words of integer streams, of 32 and 64 bits, and the kernels for each.

use std::fmt::Debug;

use bytemuck::Pod;

use super::Scratch;
use crate::kernels::{Kernels, VarintsSeen};

/// A word of an integer stream: `u32` or `u64`. Signed values are words in two's complement.
pub trait Word: Pod + Debug + Eq + Ord + private::Sealed {
    /// Bits of a word.
    const BITS: u32;
    #[doc(hidden)]
    const ONES: &'static [Self; 256];
    #[doc(hidden)]
    fn varints(kernels: Kernels, src: &[u8], out: &mut [Self]) -> VarintsSeen;
    #[doc(hidden)]
    fn vbytes(kernels: Kernels, src: &[u8], out: &mut [Self]) -> VarintsSeen;
    #[doc(hidden)]
    fn unpack(kernels: Kernels, packed: &[u8], width: u32, out: &mut [Self]);
    #[doc(hidden)]
    fn unpack_lanes(kernels: Kernels, packed: &[u8], width: u32, out: &mut [Self]);
    #[doc(hidden)]
    fn patch(kernels: Kernels, positions: &[u8], values: &[Self], width: u32, out: &mut [Self]);
    #[doc(hidden)]
    fn repeat(kernels: Kernels, values: &[Self], runs: &[u32], out: &mut [Self]) -> u64;
    #[doc(hidden)]
    fn zigzag(kernels: Kernels, words: &mut [Self]);
    #[doc(hidden)]
    fn deltas(kernels: Kernels, words: &mut [Self]);
    #[doc(hidden)]
    fn deltas2(kernels: Kernels, words: &mut [Self]);
    #[doc(hidden)]
    fn words(scratch: &mut Scratch) -> &mut Vec<Self>;
    #[doc(hidden)]
    fn exceptions(scratch: &mut Scratch) -> &mut Vec<Self>;
    #[doc(hidden)]
    fn widen(self) -> u64;
    /// The low bits of a number.
    #[doc(hidden)]
    fn cut(value: u64) -> Self;
}

mod private {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

macro_rules! word {
    ($word:ty, $words:ident, $exceptions:ident, $varints:ident, $vbytes:ident, $unpack:ident, $lanes:ident, $patch:ident,
     $repeat:ident, $zigzag:ident, $deltas:ident, $deltas2:ident $(, $stride:literal)?) => {
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;
            const ONES: &'static [$word; 256] = &[1; 256];
            fn varints(kernels: Kernels, src: &[u8], out: &mut [$word]) -> VarintsSeen {
                kernels.$varints(src, out)
            }
            fn vbytes(kernels: Kernels, src: &[u8], out: &mut [$word]) -> VarintsSeen {
                kernels.$vbytes(src, out)
            }
            fn unpack(kernels: Kernels, packed: &[u8], width: u32, out: &mut [$word]) {
                kernels.$unpack(packed, width, out);
            }
            fn unpack_lanes(kernels: Kernels, packed: &[u8], width: u32, out: &mut [$word]) {
                kernels.$lanes(packed, width, out);
            }
            fn patch(kernels: Kernels, positions: &[u8], values: &[$word], width: u32, out: &mut [$word]) {
                kernels.$patch(positions, values, width, out);
            }
            fn repeat(kernels: Kernels, values: &[$word], runs: &[u32], out: &mut [$word]) -> u64 {
                kernels.$repeat(values, runs, out)
            }
            fn zigzag(kernels: Kernels, words: &mut [$word]) {
                kernels.$zigzag(words);
            }
            fn deltas(kernels: Kernels, words: &mut [$word]) {
                kernels.$deltas(words $(, $stride)?);
            }
            fn deltas2(kernels: Kernels, words: &mut [$word]) {
                kernels.$deltas2(words $(, $stride)?);
            }
            fn words(scratch: &mut Scratch) -> &mut Vec<$word> {
                &mut scratch.$words
            }
            fn exceptions(scratch: &mut Scratch) -> &mut Vec<$word> {
                &mut scratch.$exceptions
            }
            fn widen(self) -> u64 {
                self.into()
            }
            #[allow(clippy::cast_possible_truncation)] // what it is for
            fn cut(value: u64) -> $word {
                value as $word
            }
        }
    };
}
word!(
    u32,
    words,
    exceptions,
    varints_u32,
    vbytes_u32,
    unpack_u32,
    unpack_lanes_u32,
    patch_u32,
    repeat_u32,
    zigzag_u32,
    zigzag_deltas_u32,
    zigzag_deltas2_u32,
    1
);
word!(
    u64,
    long_words,
    long_exceptions,
    varints_u64,
    vbytes_u64,
    unpack_u64,
    unpack_lanes_u64,
    patch_u64,
    repeat_u64,
    zigzag_u64,
    zigzag_deltas_u64,
    zigzag_deltas2_u64
);
