//! ZigZag codes, and differences in that form, in place.

/// `0, 1, 2, 3` for `0, -1, 1, -2`, back to those.
pub(crate) trait ZigZag: Copy {
    fn back(self) -> Self;
    fn plus(self, other: Self) -> Self;
}

impl ZigZag for u32 {
    #[inline(always)]
    fn back(self) -> u32 {
        (self >> 1) ^ (self & 1).wrapping_neg()
    }
    #[inline(always)]
    fn plus(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }
}

impl ZigZag for u64 {
    #[inline(always)]
    fn back(self) -> u64 {
        (self >> 1) ^ (self & 1).wrapping_neg()
    }
    #[inline(always)]
    fn plus(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }
}

/// 32-bit words.
#[inline(always)]
pub fn zigzag_u32(words: &mut [u32]) {
    words.iter_mut().for_each(|word| *word = word.back());
}

/// 64-bit words.
#[inline(always)]
pub fn zigzag_u64(words: &mut [u64]) {
    words.iter_mut().for_each(|word| *word = word.back());
}

/// Differences of 32-bit words.
#[inline(always)]
pub fn zigzag_deltas_u32(words: &mut [u32], stride: usize) {
    match stride {
        1 => sums(words, &mut [[0; 1]; 1]),
        2 => sums(words, &mut [[0; 2]; 1]),
        _ => sums(words, &mut [[0; 3]; 1]),
    }
}

/// Differences of 64-bit words.
#[inline(always)]
pub fn zigzag_deltas_u64(words: &mut [u64]) {
    sums(words, &mut [[0; 1]; 1]);
}

/// Differences of differences of 32-bit words.
#[inline(always)]
pub fn zigzag_deltas2_u32(words: &mut [u32], stride: usize) {
    match stride {
        1 => sums(words, &mut [[0; 1]; 2]),
        2 => sums(words, &mut [[0; 2]; 2]),
        _ => sums(words, &mut [[0; 3]; 2]),
    }
}

/// Differences of differences of 64-bit words.
#[inline(always)]
pub fn zigzag_deltas2_u64(words: &mut [u64]) {
    sums(words, &mut [[0; 1]; 2]);
}

/// `ORDER` running sums, each over the one before, of each of `STRIDE` components; goes on from what `last` holds.
#[inline(always)]
pub(crate) fn sums<const STRIDE: usize, const ORDER: usize, T: ZigZag>(
    words: &mut [T],
    last: &mut [[T; STRIDE]; ORDER],
) {
    let mut sums = *last;
    let mut add = |word: &mut T, component: usize| {
        *word = word.back();
        for sums in &mut sums {
            *word = sums[component].plus(*word);
            sums[component] = *word;
        }
    };
    let (groups, rest) = words.as_chunks_mut::<STRIDE>();
    for group in groups {
        group.iter_mut().zip(0..).for_each(|(word, component)| add(word, component));
    }
    rest.iter_mut().zip(0..).for_each(|(word, component)| add(word, component));
    *last = sums;
}
