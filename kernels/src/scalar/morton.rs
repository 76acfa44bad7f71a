//! Differences of Morton codes to coordinates.

/// Codes that are summed up at once, so that the loop which takes them apart is one of its own.
const BLOCK: usize = 64;

/// Pairs of coordinates.
#[inline(always)]
pub fn morton(words: &[u32], bits: u32, shift: u32, out: &mut [i32]) {
    from(0, words, bits, shift, out);
}

/// Goes on from a code.
#[inline(always)]
pub(crate) fn from(code: u32, words: &[u32], bits: u32, shift: u32, out: &mut [i32]) {
    let mut code = code;
    for (words, out) in words.chunks(BLOCK).zip(out.chunks_mut(2 * BLOCK)) {
        let mut codes = [0; BLOCK];
        for (to, &word) in codes.iter_mut().zip(words) {
            code = code.wrapping_add(word);
            *to = code;
        }
        let axis = |code| (even(code) & ((1 << bits) - 1)).wrapping_sub(shift).cast_signed();
        for (out, &code) in out.as_chunks_mut().0.iter_mut().zip(&codes) {
            *out = [axis(code), axis(code >> 1)];
        }
    }
}

/// The even bits of a code, put together.
#[inline(always)]
fn even(code: u32) -> u32 {
    let bits = code & 0x5555_5555;
    let bits = (bits | bits >> 1) & 0x3333_3333;
    let bits = (bits | bits >> 2) & 0x0f0f_0f0f;
    let bits = (bits | bits >> 4) & 0x00ff_00ff;
    (bits | bits >> 8) & 0xffff
}
