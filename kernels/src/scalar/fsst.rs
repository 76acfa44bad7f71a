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

/// Where escapes are in more blocks than this many, and one for so many codes, they get a loop of their own, whose tables
/// take as long as a hundred codes.
const MANY: usize = 16;
const RARE: usize = 24;

/// Symbols, their lengths or [`NONE`], and codes.
type Job<'a> = (&'a [u64; 256], &'a [u8; 256], &'a [u8]);

/// Expands codes.
#[inline(always)]
pub fn fsst(symbols: &[u64; 256], lengths: &[u8; 256], count: usize, codes: &[u8], out: &mut [u8]) -> ExpandedSeen {
    let mut lengths = lengths.map(|length| length.min(8));
    lengths[count..].fill(NONE);
    let job = (symbols, &lengths, codes);
    let (mut seen, mut escaped) = (ExpandedSeen::default(), 0);
    loop {
        while let (Some(codes), Some(out)) =
            (codes[seen.read..].first_chunk::<AT_ONCE>(), out[seen.written..].first_chunk_mut::<{ BYTES + 8 }>())
        {
            let mut at = 0;
            for code in codes.map(usize::from) {
                out[at % BYTES..][..8].copy_from_slice(&symbols[code].to_le_bytes());
                at += usize::from(lengths[code]);
            }
            if at <= BYTES {
                seen.read += AT_ONCE;
                seen.written += at;
                continue;
            }
            // What was stored before the first escape is right.
            let (good, at) = up_to_escape(codes, &lengths);
            // Another code that is no symbol.
            if at > BYTES || good == AT_ONCE {
                break;
            }
            // An escape at the end comes first next time.
            let whole = usize::from(good < AT_ONCE - 1);
            out[at] = codes[(good + 1) % AT_ONCE];
            seen.read += good + 2 * whole;
            seen.written += at + whole;
            escaped += 1;
            if escaped > MANY + seen.read / RARE {
                break;
            }
        }
        if escaped > MANY + seen.read / RARE {
            return mixed(job, out, seen);
        }
        // Near an end.
        if !single(job, out, &mut seen) {
            return seen;
        }
    }
}

/// How many codes stand before the first escape, and the bytes of their symbols. No branch depends on where it is: few
/// would be foreseen. Not inlined, as [`mixed`].
#[inline(never)]
fn up_to_escape(codes: &[u8; AT_ONCE], lengths: &[u8; 256]) -> (usize, usize) {
    let escapes = escapes(u64::from_le_bytes(*codes));
    let first = escapes & escapes.wrapping_neg();
    let before = (first >> 7).wrapping_sub(1).to_le_bytes();
    let lengths = codes.iter().zip(before).map(|(&code, before)| usize::from(lengths[usize::from(code)] & before));
    (first.trailing_zeros() as usize / 8, lengths.sum())
}

/// Goes on, where many codes are escapes. Behind the codes stand bytes as they are: an escape is a symbol of no bytes, and
/// what follows it is one of its own. Not inlined: its tables would cost the other loop its registers.
#[inline(never)]
#[expect(clippy::cast_possible_truncation, reason = "entries are cut out of a word")]
fn mixed(job: Job<'_>, out: &mut [u8], seen: ExpandedSeen) -> ExpandedSeen {
    let (symbols, lengths, codes) = job;
    let (mut all_symbols, mut all_lengths) = ([0; 512], [1; 512]);
    all_symbols[..256].copy_from_slice(symbols);
    all_symbols[256..].copy_from_slice(&AS_THEY_ARE);
    all_lengths[..256].copy_from_slice(lengths);
    all_lengths[usize::from(ESCAPE)] = 0;
    let mut seen = seen;
    loop {
        while let (Some(codes), Some(out)) =
            (codes[seen.read..].first_chunk::<AT_ONCE>(), out[seen.written..].first_chunk_mut::<{ BYTES + 8 }>())
        {
            let word = u64::from_le_bytes(*codes);
            let escapes = escapes(word);
            let as_is = escapes << 8;
            // The entries of every other code, and of those between: nine bits in sixteen.
            let even = word & LOW_BYTES | (as_is & LOW_TOPS) << 1;
            let odd = (word >> 8) & LOW_BYTES | (as_is >> 8 & LOW_TOPS) << 1;
            let mut at = 0;
            for shift in [0, 16, 32, 48] {
                for entries in [even, odd] {
                    let entry = usize::from((entries >> shift) as u16 & 511);
                    out[at % BYTES..][..8].copy_from_slice(&all_symbols[entry].to_le_bytes());
                    at += usize::from(all_lengths[entry]);
                }
            }
            // An escaped 255, or a code that is no symbol.
            if at > BYTES || escapes & as_is != 0 {
                break;
            }
            // What an escape at the end is followed by is not here: it comes first next time.
            seen.read += AT_ONCE - usize::from(codes[AT_ONCE - 1] == ESCAPE);
            seen.written += at;
        }
        // Near an end, or an escaped escape.
        if !single(job, out, &mut seen) {
            return seen;
        }
    }
}

/// The next code alone; whether it could be expanded.
#[inline(always)]
fn single((symbols, lengths, codes): Job<'_>, out: &mut [u8], seen: &mut ExpandedSeen) -> bool {
    let (symbol, length, read) = match codes[seen.read..] {
        [ESCAPE, byte, ..] => (byte.into(), 1, 2),
        [code, ..] if lengths[usize::from(code)] < NONE => {
            (symbols[usize::from(code)], usize::from(lengths[usize::from(code)]), 1)
        }
        _ => return false,
    };
    let Some(room) = out.get_mut(seen.written..seen.written + length) else { return false };
    room.copy_from_slice(&symbol.to_le_bytes()[..length]);
    seen.read += read;
    seen.written += length;
    true
}

/// The highest bit of each byte that is an escape, or follows one and looks like it.
#[inline(always)]
fn escapes(codes: u64) -> u64 {
    let others = !codes;
    !(((others & !TOPS) + !TOPS) | others) & TOPS
}

const TOPS: u64 = 0x8080_8080_8080_8080;
const LOW_BYTES: u64 = 0x00ff_00ff_00ff_00ff;
const LOW_TOPS: u64 = 0x0080_0080_0080_0080;

/// Bytes as symbols.
static AS_THEY_ARE: [u64; 256] = {
    let mut symbols = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        symbols[byte] = byte as u64;
        byte += 1;
    }
    symbols
};
