//! Codes to symbols: 64 codes are looked at at once; of each eight the symbols' bytes are put behind each other by one
//! compression. No branch depends on where escapes are.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use crate::scalar::bits::ones;
use crate::{ExpandedSeen, scalar};

/// Codes that are looked at at once.
const CODES: usize = 64;

/// Codes that are expanded at once, and the bytes of their symbols at most.
const EIGHT: usize = 8;
const BYTES: usize = 64;

/// What is known of 64 codes: bits of bytes.
#[derive(Clone, Copy)]
struct Looked {
    /// No symbols.
    wrong: u64,
    escapes: u64,
    /// Behind escapes.
    as_is: u64,
    /// For each code the bits of the bytes of a word that are its symbol's.
    masks: __m512i,
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn fsst(
    symbols: &[u64; 256],
    lengths: &[u8; 256],
    count: usize,
    codes: &[u8],
    out: &mut [u8],
) -> ExpandedSeen {
    let tables = tables(lengths);
    let first_wrong = _mm512_set1_epi8(u8::try_from(count).unwrap_or(u8::MAX).cast_signed());
    let mut seen = ExpandedSeen::default();
    // The next codes are looked at before these are expanded: what depends on that takes its time.
    let ahead =
        |read| codes.get(read..).and_then(<[u8]>::first_chunk).map(|block| (block, look(&tables, first_wrong, block)));
    let mut next = ahead(0);
    'far: while let Some((block, mut looked)) = next.filter(|(_, looked)| looked.wrong == 0) {
        // An escape at the end comes first next time.
        let read = seen.read + CODES - behind(looked.escapes, CODES);
        next = ahead(read);
        let mut written = seen.written;
        for i in 0..CODES / EIGHT {
            let Some(room) = out.get_mut(written..).and_then(<[u8]>::first_chunk_mut) else { break 'far };
            let (bytes, length) = eight(symbols, block, &mut looked, i);
            *room = bytes;
            written += length;
        }
        seen = ExpandedSeen { read, written };
    }
    // Near an end, or a code that is no symbol.
    let mut copy = [0; CODES];
    while seen.read < codes.len() {
        let rest = &codes[seen.read..];
        let rest = &rest[..rest.len().min(CODES)];
        copy[..rest.len()].copy_from_slice(rest);
        let mut looked = look(&tables, first_wrong, &copy);
        let escapes = looked.escapes;
        let n = rest.len().min(looked.wrong.trailing_zeros() as usize);
        let n = n - behind(escapes, n);
        if n == 0 {
            break;
        }
        looked.masks = _mm512_maskz_mov_epi8(ones(u32::try_from(n).unwrap_or(64)), looked.masks);
        let mut written = seen.written;
        for i in 0..n.div_ceil(EIGHT) {
            let (bytes, length) = eight(symbols, &copy, &mut looked, i);
            let room = &mut out[written..];
            if let Some(room) = room.first_chunk_mut() {
                *room = bytes;
            } else if let Some(room) = room.get_mut(..length) {
                room.copy_from_slice(&bytes[..length]);
            } else {
                // What an escape before these codes is followed by stands among them.
                let done = EIGHT * i - behind(escapes, EIGHT * i);
                let last = scalar::fsst::fsst(symbols, lengths, count, &rest[done..], room);
                return ExpandedSeen { read: seen.read + done + last.read, written: written + last.written };
            }
            written += length;
        }
        seen = ExpandedSeen { read: seen.read + n, written };
    }
    seen
}

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn look(tables: &[__m512i; 4], first_wrong: __m512i, block: &[u8; CODES]) -> Looked {
    let bytes = must_cast(*block);
    let looks = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(-1));
    // In a run of bytes that look like escapes every other one is.
    let either = ((looks << 1 | ODD).wrapping_sub(looks)) ^ ODD;
    let (escapes, as_is) = (either & looks, either ^ looks);
    let wrong = _mm512_cmpge_epu8_mask(bytes, first_wrong) & !escapes & !as_is;
    let low = _mm512_permutex2var_epi8(tables[0], bytes, tables[1]);
    let high = _mm512_permutex2var_epi8(tables[2], bytes, tables[3]);
    let masks = _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(bytes), high);
    let masks = _mm512_mask_mov_epi8(masks, as_is, _mm512_set1_epi8(1));
    Looked { wrong, escapes, as_is, masks: _mm512_maskz_mov_epi8(!escapes, masks) }
}

/// Every other bit.
const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// Whether the last of the first `n` codes is an escape, as a number.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn behind(escapes: u64, n: usize) -> usize {
    usize::from(n > 0 && escapes >> ((n - 1) % CODES) & 1 == 1)
}

/// The bytes that the next eight codes, the `i`th, stand for, and how many they are.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn eight(symbols: &[u64; 256], block: &[u8; CODES], looked: &mut Looked, i: usize) -> ([u8; BYTES], usize) {
    let symbol = |k: usize| symbols[usize::from(block[EIGHT * i + k])].cast_signed();
    let words =
        _mm512_set_epi64(symbol(7), symbol(6), symbol(5), symbol(4), symbol(3), symbol(2), symbol(1), symbol(0));
    let codes = _mm_cvtsi64_si128(i64::from_le_bytes(block.as_chunks().0[i]));
    let [as_is, ..] = looked.as_is.to_le_bytes();
    let words = _mm512_mask_cvtepu8_epi64(words, as_is, codes);
    let mask = _mm_cvtsi128_si64(_mm512_castsi512_si128(looked.masks)).cast_unsigned();
    looked.as_is >>= EIGHT;
    looked.masks = _mm512_alignr_epi64::<1>(looked.masks, looked.masks);
    (must_cast(_mm512_maskz_compress_epi8(mask, words)), mask.count_ones() as usize)
}

/// For each length the bits of as many bytes, by codes.
#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
#[inline]
fn tables(lengths: &[u8; 256]) -> [__m512i; 4] {
    let bits = _mm512_broadcast_i32x4(_mm_set_epi64x(0xff, 0x7f3f_1f0f_0703_0100));
    lengths.as_chunks().0.first_chunk().map_or([bits; 4], |lengths: &[[u8; 64]; 4]| {
        lengths.map(|lengths| _mm512_shuffle_epi8(bits, _mm512_min_epu8(must_cast(lengths), _mm512_set1_epi8(8))))
    })
}
