//! Packed bits to words.

#![expect(clippy::cast_possible_truncation, reason = "widths are at most 64")]

use core::arch::x86_64::*;

use bytemuck::must_cast;

use crate::blocks::by_windows;
use crate::scalar::bits::ones;

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn unpack_u8(packed: &[u8], width: u32, out: &mut [u8]) {
    // Of each value the 16 bits from the byte on where it starts, moved up so that all start at bit 7.
    let bit = _mm256_mullo_epi16(places16(), _mm256_set1_epi16(width as i16));
    let byte = _mm256_srli_epi16::<3>(bit);
    let from = _mm256_add_epi8(_mm256_or_si256(byte, _mm256_slli_epi16::<8>(byte)), _mm256_set1_epi16(0x100));
    let up = _mm256_shuffle_epi8(
        _mm256_set1_epi64x(0x0102_0408_1020_4080),
        _mm256_or_si256(_mm256_and_si256(bit, _mm256_set1_epi16(7)), _mm256_set1_epi16(-0x8000)),
    );
    let ones = _mm256_set1_epi16(ones(width) as i16);
    by_windows::<16, 16, _>(packed, 2 * width as usize, out, |bits| {
        let pairs = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(must_cast(*bits)), from);
        let words = _mm256_and_si256(_mm256_srli_epi16::<7>(_mm256_mullo_epi16(pairs, up)), ones);
        must_cast(_mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words)))
    });
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn unpack_u16(packed: &[u8], width: u32, out: &mut [u16]) {
    let cut = narrow(width);
    by_windows::<16, 8, _>(packed, width as usize, out, |bits| {
        let words = narrow_words(cut, must_cast(*bits));
        must_cast(_mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words)))
    });
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn unpack_u32(packed: &[u8], width: u32, out: &mut [u32]) {
    if width <= 16 {
        let cut = narrow(width);
        by_windows::<16, 8, _>(packed, width as usize, out, |bits| must_cast(narrow_words(cut, must_cast(*bits))));
    } else {
        let cut = cut32(width);
        by_windows::<32, 8, _>(packed, width as usize, out, |bits| must_cast(words32(cut, must_cast(*bits))));
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn unpack_u64(packed: &[u8], width: u32, out: &mut [u64]) {
    if width <= 32 {
        let cut = cut32(width);
        by_windows::<32, 8, _>(packed, width as usize, out, |bits| must_cast(widened(words32(cut, must_cast(*bits)))));
    } else {
        let cuts = cuts64(width);
        by_windows::<64, 8, _>(packed, width as usize, out, |bits| must_cast(words64(cuts, bits)));
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn unpack_lanes_u32(packed: &[u8], width: u32, out: &mut [u32]) {
    // With a width that is known, shifts and places are constants.
    macro_rules! of_widths {
        ($($width:literal)*) => {
            match width {
                $($width => lanes32::<$width>(packed, out),)*
                _ => out.fill(0),
            }
        };
    }
    of_widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

/// Groups of 128 values over four lanes.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
fn lanes32<const WIDTH: usize>(packed: &[u8], out: &mut [u32]) {
    let groups = packed.as_chunks::<16>().0.as_chunks::<WIDTH>().0;
    for (vectors, out) in groups.iter().zip(out.as_chunks_mut::<128>().0) {
        let mut pairs = out.as_chunks_mut::<8>().0.iter_mut();
        // A loop over them would not be unrolled.
        macro_rules! pairs {
            ($($at:literal)*) => {
                $(if let Some(out) = pairs.next() {
                    *out = must_cast(rows32::<WIDTH, $at>(vectors));
                })*
            };
        }
        pairs!(0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30);
    }
}

/// Rows `ROW` and the next of four lanes.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn rows32<const WIDTH: usize, const ROW: usize>(vectors: &[[u8; 16]; WIDTH]) -> __m256i {
    let bits = const { [ROW * WIDTH, (ROW + 1) * WIDTH] };
    let words = |after: usize| {
        let [a, b] = bits.map(|bit| must_cast(vectors[(bit / 32 + after).min(WIDTH - 1)]));
        _mm256_set_m128i(b, a)
    };
    let down = const { [[(ROW * WIDTH % 32) as u32; 4], [((ROW + 1) * WIDTH % 32) as u32; 4]] };
    let mut values = _mm256_srlv_epi32(words(0), must_cast(down));
    if bits.iter().any(|bit| bit % 32 + WIDTH > 32) {
        let up = _mm256_sub_epi32(_mm256_set1_epi32(32), must_cast(down));
        values = _mm256_or_si256(values, _mm256_sllv_epi32(words(1), up));
    }
    _mm256_and_si256(values, _mm256_set1_epi32((ones(WIDTH as u32) as u32).cast_signed()))
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn unpack_lanes_u64(packed: &[u8], width: u32, out: &mut [u64]) {
    let ones = _mm256_set1_epi64x(ones(width).cast_signed());
    let second = _mm256_inserti128_si256::<1>(_mm256_setzero_si256(), _mm_set1_epi64x(width.into()));
    lanes64(packed, width, out, |bit, low, high| {
        let down = _mm256_add_epi64(second, _mm256_set1_epi64x(bit.into()));
        let down = _mm256_and_si256(down, _mm256_set1_epi64x(63));
        let high = _mm256_sllv_epi64(high, _mm256_sub_epi64(_mm256_set1_epi64x(64), down));
        _mm256_and_si256(_mm256_or_si256(_mm256_srlv_epi64(low, down), high), ones)
    });
}

/// Groups of 128 values over two lanes, two rows of them at a time. `words` is given the bit where the first row
/// starts, for each row the words of the lanes where it starts, and those after.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn lanes64(packed: &[u8], width: u32, out: &mut [u64], words: impl Fn(u32, __m256i, __m256i) -> __m256i) {
    let mut vectors = packed.as_chunks::<16>().0;
    for group in out.as_chunks_mut::<128>().0 {
        let two = |place: u32| -> [__m128i; 2] {
            match vectors[place as usize..].first_chunk::<2>() {
                Some(&two) => must_cast(two),
                None => must_cast([vectors.last().copied().unwrap_or([0; 16]), [0; 16]]),
            }
        };
        let mut bit = 0;
        for out in group.as_chunks_mut::<4>().0 {
            let ([a, after_a], [b, after_b]) = (two(bit / 64), two((bit + width) / 64));
            let words = words(bit, _mm256_set_m128i(b, a), _mm256_set_m128i(after_b, after_a));
            bytemuck::cast_slice_mut(out).copy_from_slice(bytemuck::bytes_of(&words));
            bit += 2 * width;
        }
        vectors = vectors.get(width as usize..).unwrap_or(&[]);
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn widened(words: __m256i) -> [__m256i; 2] {
    [_mm256_cvtepu32_epi64(_mm256_castsi256_si128(words)), _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(words))]
}

/// How 8 words of up to 16 bits are taken out of 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    /// For each value the four bytes from that one on where it starts.
    from: __m256i,
    /// The bit of the first byte where it starts.
    shift: __m256i,
    ones: __m256i,
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn narrow(width: u32) -> Narrow {
    let bit = _mm256_mullo_epi32(places32(), _mm256_set1_epi32(width.cast_signed()));
    let byte = _mm256_shuffle_epi8(_mm256_srli_epi32::<3>(bit), each_first());
    Narrow {
        from: _mm256_add_epi8(byte, _mm256_set1_epi32(0x0302_0100)),
        shift: _mm256_and_si256(bit, _mm256_set1_epi32(7)),
        ones: _mm256_set1_epi32((ones(width) as u32).cast_signed()),
    }
}

/// The first byte of each 32 bits, four times.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn each_first() -> __m256i {
    _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0x0404_0404, 0x0808_0808, 0x0c0c_0c0c))
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn narrow_words(cut: Narrow, bits: __m128i) -> __m256i {
    let bytes = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bits), cut.from);
    _mm256_and_si256(_mm256_srlv_epi32(bytes, cut.shift), cut.ones)
}

/// How 8 words of up to 32 bits are taken out of 32 bytes.
#[derive(Clone, Copy)]
pub(super) struct Cut32 {
    /// For each value the place of the 32 bits where it starts.
    low: __m256i,
    /// Those behind them.
    high: __m256i,
    /// The bit where it starts.
    down: __m256i,
    /// 32 less that.
    up: __m256i,
    ones: __m256i,
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn cut32(width: u32) -> Cut32 {
    let bit = _mm256_mullo_epi32(places32(), _mm256_set1_epi32(width.cast_signed()));
    let low = _mm256_srli_epi32::<5>(bit);
    let down = _mm256_and_si256(bit, _mm256_set1_epi32(31));
    Cut32 {
        low,
        high: _mm256_add_epi32(low, _mm256_set1_epi32(1)),
        down,
        up: _mm256_sub_epi32(_mm256_set1_epi32(32), down),
        ones: _mm256_set1_epi32((ones(width) as u32).cast_signed()),
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn words32(cut: Cut32, bits: __m256i) -> __m256i {
    let low = _mm256_srlv_epi32(_mm256_permutevar8x32_epi32(bits, cut.low), cut.down);
    let high = _mm256_sllv_epi32(_mm256_permutevar8x32_epi32(bits, cut.high), cut.up);
    _mm256_and_si256(_mm256_or_si256(low, high), cut.ones)
}

/// How 8 words of 33 to 64 bits are taken out of 64 bytes: four from the first 32, four from 32 others.
#[derive(Clone, Copy)]
pub(super) struct Cuts64 {
    /// Where the second 32 bytes are.
    second: usize,
    /// For each half and value the places of the two times 32 bits where it starts.
    low: [__m256i; 2],
    /// Those behind them.
    high: [__m256i; 2],
    /// The bit where it starts.
    down: [__m256i; 2],
    /// 64 less that.
    up: [__m256i; 2],
    ones: __m256i,
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn cuts64(width: u32) -> Cuts64 {
    let places = _mm256_setr_epi64x(0, 1, 2, 3);
    let bit = _mm256_mul_epu32(places, _mm256_set1_epi64x(width.into()));
    // An odd width's fifth value starts in the middle of a byte.
    let bits = [bit, _mm256_add_epi64(bit, _mm256_set1_epi64x((4 * (width % 2)).into()))];
    let low = bits.map(|bit| {
        let word = _mm256_shuffle_epi32::<0b10_10_00_00>(_mm256_srli_epi64::<5>(bit));
        _mm256_add_epi32(word, _mm256_set1_epi64x(1 << 32))
    });
    let down = bits.map(|bit| _mm256_and_si256(bit, _mm256_set1_epi64x(31)));
    Cuts64 {
        second: width as usize / 2,
        low,
        high: low.map(|low| _mm256_add_epi32(low, _mm256_set1_epi32(2))),
        down,
        up: down.map(|down| _mm256_sub_epi64(_mm256_set1_epi64x(64), down)),
        ones: _mm256_set1_epi64x(ones(width).cast_signed()),
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
pub(super) fn words64(cuts: Cuts64, bits: &[u8; 64]) -> [__m256i; 2] {
    let halves: [&[u8]; 2] = [&bits[..32], &bits[cuts.second.min(32)..][..32]];
    core::array::from_fn(|half| {
        let bits = must_cast(halves[half].as_chunks::<32>().0[0]);
        let low = _mm256_srlv_epi64(_mm256_permutevar8x32_epi32(bits, cuts.low[half]), cuts.down[half]);
        let high = _mm256_sllv_epi64(_mm256_permutevar8x32_epi32(bits, cuts.high[half]), cuts.up[half]);
        _mm256_and_si256(_mm256_or_si256(low, high), cuts.ones)
    })
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn places32() -> __m256i {
    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
}

#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
#[inline]
fn places16() -> __m256i {
    must_cast([0u16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
}
