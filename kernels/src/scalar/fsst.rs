//! Codes of one byte to symbols of up to eight.

use crate::ExpandedSeen;

/// The code that says: the next byte as it is.
const ESCAPE: u8 = 255;

/// Codes that are expanded at once, and the bytes of their symbols.
const AT_ONCE: usize = 8;
const BYTES: usize = 8 * AT_ONCE;

/// Bytes of a symbol, as a type of few values: the compiler knows how far eight of them reach, and leaves out what would
/// check that.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Length {
    L0,
    L1,
    L2,
    L3,
    L4,
    L5,
    L6,
    L7,
    L8,
    /// Of a code that is no symbol: more than all symbols at once have, and nothing to the places of those behind it where
    /// these are taken modulo [`BYTES`].
    None = 128,
}

/// All lengths of symbols.
const LENGTHS: [Length; 9] = {
    use Length::*;
    [L0, L1, L2, L3, L4, L5, L6, L7, L8]
};

/// Room that no lengths of codes at once exceed.
const FAR: usize = (AT_ONCE - 1) * Length::None as usize + 8;

/// Where escapes are in more blocks than this many, and one for so many codes, they get a loop of their own, whose tables
/// take as long as a hundred codes.
const MANY: usize = 16;
const RARE: usize = 24;

/// Symbols, their lengths, and codes.
type Job<'a> = (&'a [u64; 256], &'a [Length; 256], &'a [u8]);

/// Expands codes.
#[inline(always)]
pub fn fsst(symbols: &[u64; 256], lengths: &[u8; 256], count: usize, codes: &[u8], out: &mut [u8]) -> ExpandedSeen {
    let mut lengths = lengths.map(|length| LENGTHS[usize::from(length.min(8))]);
    lengths[count..].fill(Length::None);
    let job = (symbols, &lengths, codes);
    let (mut seen, mut escaped) = (ExpandedSeen::default(), 0);
    loop {
        // Most blocks. What is read and written is counted behind the loop: within it, there are too few registers.
        let (blocks, _) = codes[seen.read..].as_chunks();
        let mut rest = &mut out[seen.written..];
        let (all, mut done, mut stopped) = (rest.len(), 0, None);
        for codes in blocks {
            let Some(room) = rest.first_chunk_mut::<FAR>() else { break };
            let at = stored(job, codes, room, |at| at);
            if at > BYTES {
                stopped = Some(codes);
                break;
            }
            done += 1;
            rest = &mut rest[at..];
        }
        seen.read += done * AT_ONCE;
        seen.written += all - rest.len();
        // Near the end of the room.
        while let (None, Some(codes), Some(room)) =
            (stopped, codes[seen.read..].first_chunk(), out[seen.written..].first_chunk_mut::<{ BYTES + 8 }>())
        {
            let at = stored(job, codes, room, |at| at % BYTES);
            if at > BYTES {
                stopped = Some(codes);
                break;
            }
            seen.read += AT_ONCE;
            seen.written += at;
        }
        if let Some(codes) = stopped {
            // What was stored before the first escape is right.
            let (good, at) = up_to_escape(codes, &lengths);
            // Else another code that is no symbol.
            if at <= BYTES && good < AT_ONCE {
                // An escape at the end comes first next time.
                let whole = usize::from(good < AT_ONCE - 1);
                out[seen.written + at] = codes[(good + 1) % AT_ONCE];
                seen.read += good + 2 * whole;
                seen.written += at + whole;
                escaped += 1;
                if escaped > MANY + seen.read / RARE {
                    return mixed(job, out, seen);
                }
                continue;
            }
        }
        // Near an end.
        if !single(job, out, &mut seen) {
            return seen;
        }
    }
}

/// Stores the words of codes, each where the symbol before it ends, which `within` leaves in the room. The bytes of all
/// symbols; more than [`BYTES`] where a code is none.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "codes are cut out of a word")]
fn stored<const ROOM: usize>(
    (symbols, lengths, _): Job<'_>,
    codes: &[u8; AT_ONCE],
    room: &mut [u8; ROOM],
    within: impl Fn(usize) -> usize,
) -> usize {
    let mut at = 0;
    // From a word, one after the other: from an array they were all taken first, for which there are too few registers.
    let mut word = u64::from_le_bytes(*codes);
    for _ in 0..AT_ONCE {
        let code = usize::from(word as u8);
        room[within(at)..][..8].copy_from_slice(&symbols[code].to_le_bytes());
        at += lengths[code] as usize;
        word >>= 8;
    }
    at
}

/// How many codes stand before the first escape, and the bytes of their symbols. No branch depends on where it is: few
/// would be foreseen. Not inlined, as [`mixed`].
#[inline(never)]
fn up_to_escape(codes: &[u8; AT_ONCE], lengths: &[Length; 256]) -> (usize, usize) {
    let escapes = escapes(u64::from_le_bytes(*codes));
    let first = escapes & escapes.wrapping_neg();
    let before = (first >> 7).wrapping_sub(1).to_le_bytes();
    let lengths =
        codes.iter().zip(before).map(|(&code, before)| usize::from(lengths[usize::from(code)] as u8 & before));
    (first.trailing_zeros() as usize / 8, lengths.sum())
}

/// Goes on, where many codes are escapes. Behind the codes stand bytes as they are: an escape is a symbol of no bytes, and
/// what follows it is one of its own. Not inlined: its tables would cost the other loop its registers.
#[inline(never)]
#[expect(clippy::cast_possible_truncation, reason = "entries are cut out of a word")]
fn mixed(job: Job<'_>, out: &mut [u8], seen: ExpandedSeen) -> ExpandedSeen {
    let (symbols, lengths, codes) = job;
    let (mut all_symbols, mut all_lengths) = ([0; 512], [Length::L1; 512]);
    all_symbols[..256].copy_from_slice(symbols);
    all_symbols[256..].copy_from_slice(&AS_THEY_ARE);
    all_lengths[..256].copy_from_slice(lengths);
    all_lengths[usize::from(ESCAPE)] = Length::L0;
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
                    at += all_lengths[entry] as usize;
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
        [code, ..] if lengths[usize::from(code)] != Length::None => {
            (symbols[usize::from(code)], lengths[usize::from(code)] as usize, 1)
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
