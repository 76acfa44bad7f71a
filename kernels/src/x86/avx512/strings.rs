//! Bytes of many short values, put behind each other.

use core::arch::x86_64::*;

use super::bits::{load, store};
use super::delta::scan32;
use crate::LengthsSeen;

#[target_feature(
    enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2"
)]
pub(crate) fn offsets_u32(lengths: &[u32], start: u32, out: &mut [u32]) -> LengthsSeen {
    let mut sum = _mm512_set1_epi32(start.cast_signed());
    let (mut largest, mut total) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let mut block = |out: &mut [u32], lengths: &[u32]| {
        let lengths = load(lengths);
        largest = _mm512_max_epu32(largest, lengths);
        let odd = _mm512_srli_epi64::<32>(lengths);
        total = _mm512_add_epi64(total, _mm512_add_epi64(_mm512_maskz_mov_epi32(0x5555, lengths), odd));
        let sums = scan32(lengths);
        store(out, _mm512_add_epi32(sums, sum));
        sum = _mm512_add_epi32(sum, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums));
    };
    let ((blocks, rest), (out_blocks, out_rest)) = (lengths.as_chunks::<16>(), out.as_chunks_mut::<16>());
    for (out, lengths) in out_blocks.iter_mut().zip(blocks) {
        block(out, lengths);
    }
    block(out_rest, rest);
    let total = _mm512_reduce_add_epi64(total).cast_unsigned();
    LengthsSeen { largest: _mm512_reduce_max_epu32(largest), total }
}
