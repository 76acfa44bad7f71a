//! Codes of one byte to symbols of up to eight.

use crate::ExpandedSeen;

/// The code that says: the next byte as it is.
const ESCAPE: u8 = 255;

/// Codes that are expanded at once, and the bytes of their symbols.
const AT_ONCE: usize = 8;
const ROOM: usize = 8 * AT_ONCE;

/// Expands codes.
#[inline(always)]
pub fn fsst(symbols: &[u64; 256], lengths: &[u8; 256], count: usize, codes: &[u8], out: &mut [u8]) -> ExpandedSeen {
    let lengths = lengths.map(|length| length.min(8));
    let (mut read, mut written) = (0, 0);
    loop {
        while let (Some(codes), Some(out)) = (codes[read..].first_chunk(), out[written..].first_chunk_mut::<ROOM>()) {
            // All of them; behind the first that is no symbol what has been stored does not count.
            let (mut at, mut ends) = (0, [0; AT_ONCE]);
            for (&code, end) in codes.iter().zip(&mut ends) {
                let code = usize::from(code);
                out[at..][..8].copy_from_slice(&symbols[code].to_le_bytes());
                *end = at;
                at += usize::from(lengths[code]);
            }
            let good = symbols_before(codes, count);
            if good == AT_ONCE {
                (read, written) = (read + AT_ONCE, written + at);
                continue;
            }
            (read, written) = (read + good, written + ends[good]);
            let [ESCAPE, byte] = codes[good..][..2.min(AT_ONCE - good)] else { break };
            out[ends[good]] = byte;
            (read, written) = (read + 2, written + 1);
        }
        // One by one: near an end, or an escape between two words.
        match codes[read..] {
            [ESCAPE, byte, ..] if written < out.len() => {
                out[written] = byte;
                (read, written) = (read + 2, written + 1);
            }
            [code, ..] if usize::from(code) < count => {
                let length = usize::from(lengths[usize::from(code)]);
                if out.len() - written < length {
                    break;
                }
                out[written..][..length].copy_from_slice(&symbols[usize::from(code)].to_le_bytes()[..length]);
                (read, written) = (read + 1, written + length);
            }
            _ => break,
        }
    }
    ExpandedSeen { read, written }
}

/// How many codes stand before the first that is not below `count`.
#[inline(always)]
fn symbols_before(codes: &[u8; AT_ONCE], count: usize) -> usize {
    const TOPS: u64 = 0x8080_8080_8080_8080;
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(*codes);
    // Bit 7 of the low bits of each byte plus what `count` lacks to 128, or to 256.
    let (low, count) = (word & !TOPS, count as u64);
    let bad = if count <= 128 { (low + ONES * (128 - count)) | word } else { (low + ONES * (256 - count)) & word };
    (bad & TOPS).trailing_zeros() as usize / 8
}
