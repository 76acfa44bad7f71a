//! Codes of one byte to symbols of up to eight.

use crate::ExpandedSeen;

/// The code that says: the next byte as it is.
const ESCAPE: u8 = 255;

/// Codes that are expanded at once, and the bytes of their symbols.
const AT_ONCE: usize = 8;
const BYTES: usize = 8 * AT_ONCE;

/// What stands in place of the length of a code that is no symbol: more than all symbols at once have, and nothing to
/// the places of those behind it, which are taken modulo [`BYTES`].
const NONE: u8 = 128;

/// Expands codes.
#[inline(always)]
pub fn fsst(symbols: &[u64; 256], lengths: &[u8; 256], count: usize, codes: &[u8], out: &mut [u8]) -> ExpandedSeen {
    let mut lengths = lengths.map(|length| length.min(8));
    lengths[count..].fill(NONE);
    let length = |code: u8| usize::from(lengths[usize::from(code)]);
    let (mut read, mut written) = (0, 0);
    loop {
        while let (Some(codes), Some(out)) =
            (codes[read..].first_chunk::<AT_ONCE>(), out[written..].first_chunk_mut::<{ BYTES + 8 }>())
        {
            let mut at = 0;
            for &code in codes {
                out[at % BYTES..][..8].copy_from_slice(&symbols[usize::from(code)].to_le_bytes());
                at += length(code);
            }
            if at <= BYTES {
                (read, written) = (read + AT_ONCE, written + at);
                continue;
            }
            // What was stored up to the first that is no symbol is right.
            let good = codes.iter().take_while(|&&code| length(code) < usize::from(NONE));
            let (good, at) = good.fold((0, 0), |(good, at), &code| (good + 1, at + length(code)));
            (read, written) = (read + good, written + at);
            let [ESCAPE, byte] = codes[good..][..2.min(AT_ONCE - good)] else { break };
            out[at] = byte;
            (read, written) = (read + 2, written + 1);
        }
        // One by one: near an end, or an escape between two words.
        match codes[read..] {
            [ESCAPE, byte, ..] if written < out.len() => {
                out[written] = byte;
                (read, written) = (read + 2, written + 1);
            }
            [code, ..] if usize::from(code) < count => {
                let length = length(code);
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
