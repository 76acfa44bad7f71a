//! The order of bytes in words.

/// 32-bit words.
#[inline(always)]
pub fn swap_words(src: &[u8], out: &mut [u8]) {
    for (out, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(src.as_chunks::<4>().0) {
        *out = u32::from_le_bytes(*word).swap_bytes().to_le_bytes();
    }
}
