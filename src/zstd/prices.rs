//! What literals and matches cost: bits, and the time of the decoder in bits.
//!
//! All arithmetic is on integers, so that a stream is parsed alike on every machine. Prices are in 256ths of a bit.

use super::Sequence;
use super::matches::number;

const BIT: i32 = 256;

/// What a nanosecond of the decoder is worth, in 256ths of a bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nanosecond(pub(crate) i32);

impl Nanosecond {
    /// libzstd takes about 8 ns for a sequence.
    fn sequence(self) -> i32 {
        8 * self.0
    }

    /// And about a third of one for a literal.
    fn literal(self) -> i32 {
        self.0 / 3
    }
}

/// The last three offsets, which are cheap to use again.
pub(super) type Recent = [u32; 3];

/// As a frame starts.
pub(super) const FIRST_RECENT: Recent = [1, 4, 8];

/// How often a block uses each code.
pub(super) struct Statistics {
    literals: [u32; 256],
    literal_lengths: [u32; 36],
    match_lengths: [u32; 53],
    offsets: [u32; 32],
}

/// Where nothing is known: literals dear enough for matches to be tried.
///
/// Few matches leave literals that are cheap, and many leave dear ones, so a parse tends to confirm the statistics that
/// it is given. The start with many of them reaches the better end.
impl Default for Statistics {
    fn default() -> Statistics {
        Statistics { literals: [1; 256], literal_lengths: [1; 36], match_lengths: [1; 53], offsets: [1; 32] }
    }
}

impl Statistics {
    /// Those of a block; `recent` as it starts.
    pub(super) fn of(steps: &[Sequence], block: &[u8], mut recent: Recent) -> Statistics {
        let mut seen =
            Statistics { literals: [0; 256], literal_lengths: [0; 36], match_lengths: [0; 53], offsets: [0; 32] };
        let mut at = 0;
        for step in steps {
            let literals = &block[at..at + step.litLength as usize];
            literals.iter().for_each(|&byte| seen.literals[usize::from(byte)] += 1);
            at += literals.len() + step.matchLength as usize;
            if step.offset != 0 {
                let code;
                (code, recent) = offset_code(step.offset, recent, step.litLength == 0);
                seen.offsets[code] += 1;
                seen.literal_lengths[LITERAL_LENGTHS.code(step.litLength)] += 1;
                seen.match_lengths[MATCH_LENGTHS.code(step.matchLength)] += 1;
            }
        }
        seen
    }
}

/// Lengths below this have their price in a table.
const SHORT: usize = 1024;

/// Prices of steps, time included.
pub(super) struct Prices {
    literals: [i32; 256],
    /// What the length of a run of so many literals costs more if it grows by one; less than nothing at times.
    longer_run: [i32; SHORT],
    match_lengths: [i32; SHORT],
    long_matches: [i32; 53],
    offsets: [i32; 32],
}

impl Prices {
    pub(super) fn of(seen: &Statistics, nanosecond: Nanosecond) -> Prices {
        let run_lengths = LITERAL_LENGTHS.prices(&seen.literal_lengths);
        let long_matches = MATCH_LENGTHS.prices(&seen.match_lengths);
        let mut offsets = bits(&seen.offsets);
        for (price, code) in offsets.iter_mut().zip(0..) {
            // A code has as many extra bits as its number says. The run of literals that follows starts with none.
            *price += code * BIT + nanosecond.sequence() + run_lengths[0];
        }
        Prices {
            // zstd's Huffman codes have at most 11 bits.
            literals: code_lengths(&seen.literals).map(|bits| bits.min(11) * BIT + nanosecond.literal()),
            longer_run: std::array::from_fn(|n| {
                let [now, longer] = [n, n + 1].map(|n| run_lengths[LITERAL_LENGTHS.code(number(n))]);
                longer - now
            }),
            match_lengths: std::array::from_fn(|n| long_matches[MATCH_LENGTHS.code(number(n.max(3)))]),
            long_matches,
            offsets,
        }
    }

    /// A literal after a run of so many.
    pub(super) fn literal(&self, byte: u8, run: u32) -> i32 {
        self.literals[usize::from(byte)] + self.longer_run.get(run as usize).copied().unwrap_or(0)
    }

    /// A sequence with an offset of such a code, but for its match length.
    pub(super) fn offset(&self, code: usize) -> i32 {
        self.offsets[code]
    }

    pub(super) fn match_length(&self, length: usize) -> i32 {
        self.match_lengths.get(length).copied().unwrap_or_else(|| self.long_matches[MATCH_LENGTHS.code(number(length))])
    }
}

/// The code of an offset (RFC 8878, section 3.1.1.5) and the last three offsets after it.
pub(super) fn offset_code(offset: u32, recent: Recent, no_literals: bool) -> (usize, Recent) {
    let [first, second, third] = recent;
    match no_literals {
        false if offset == first => (0, recent),
        true if offset == second => (0, [second, first, third]),
        false if offset == second => (1, [second, first, third]),
        _ if offset == third => (1, [third, first, second]),
        true if offset + 1 == first => (1, [offset, first, second]),
        _ => ((offset + 3).ilog2() as usize, [offset, first, second]),
    }
}

/// The codes of a kind of length (RFC 8878, section 3.1.1.3.2.1.1): the smallest length of each, and its extra bits.
struct Lengths<const N: usize> {
    smallest: [u32; N],
    extra: [u8; N],
}

static LITERAL_LENGTHS: Lengths<36> = Lengths::new(0, 16, &[1, 1, 1, 1, 2, 2, 3, 3, 4, 6]);
static MATCH_LENGTHS: Lengths<53> = Lengths::new(3, 32, &[1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7]);

impl<const N: usize> Lengths<N> {
    /// From the smallest length: so many codes of one length each, then codes with the listed numbers of extra bits,
    /// then codes with one more each.
    const fn new(smallest: u32, single: usize, listed: &[u8]) -> Lengths<N> {
        let mut lengths = Lengths { smallest: [0; N], extra: [0; N] };
        let mut next = smallest;
        let mut code = 0;
        while code < N {
            if code >= single + listed.len() {
                lengths.extra[code] = lengths.extra[code - 1] + 1;
            } else if code >= single {
                lengths.extra[code] = listed[code - single];
            }
            lengths.smallest[code] = next;
            next += 1 << lengths.extra[code];
            code += 1;
        }
        lengths
    }

    fn code(&self, length: u32) -> usize {
        self.smallest.partition_point(|&smallest| smallest <= length) - 1
    }

    fn prices(&self, seen: &[u32; N]) -> [i32; N] {
        let mut prices = bits(seen);
        prices.iter_mut().zip(self.extra).for_each(|(price, extra)| *price += i32::from(extra) * BIT);
        prices
    }
}

/// What an entropy coder takes for each code, had each come once more than it did.
fn bits<const N: usize>(seen: &[u32; N]) -> [i32; N] {
    let all = log2(seen.iter().sum::<u32>() + number(N));
    seen.map(|count| all - log2(count + 1))
}

/// The logarithm of a number from 1 to 2^24; a straight line between powers of two.
fn log2(n: u32) -> i32 {
    let whole = n.ilog2();
    let part = (u64::from(n) << 8 >> whole) & 0xFF;
    whole.cast_signed() * BIT + i32::try_from(part).unwrap_or(0)
}

/// How long the Huffman code of each byte is, in bits.
fn code_lengths(seen: &[u32; 256]) -> [i32; 256] {
    let mut by_weight: Vec<u8> = (0..=255).collect();
    by_weight.sort_by_key(|&byte| seen[usize::from(byte)]);
    // The leaves from light to heavy, then the nodes above, which come out in that order as well.
    let mut weights = [0u64; 511];
    let mut above = [0; 511];
    for (weight, &byte) in weights.iter_mut().zip(&by_weight) {
        // A byte that did not come has a long code.
        *weight = u64::from(seen[usize::from(byte)]) * 256 + 1;
    }
    let (mut leaf, mut node) = (0, 256);
    for made in 256..511 {
        for _ in 0..2 {
            let lightest =
                if leaf < 256 && (node == made || weights[leaf] <= weights[node]) { &mut leaf } else { &mut node };
            weights[made] += weights[*lightest];
            above[*lightest] = made;
            *lightest += 1;
        }
    }
    let mut depths = [0; 511];
    for node in (0..510).rev() {
        depths[node] = depths[above[node]] + 1;
    }
    let mut lengths = [0; 256];
    by_weight.iter().zip(depths).for_each(|(&byte, depth)| lengths[usize::from(byte)] = depth);
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_lengths_as_the_rfc_lists_them() {
        let of = |length| (LITERAL_LENGTHS.code(length), MATCH_LENGTHS.code(length + 3));
        assert_eq!([0, 15, 16, 17, 18, 63, 64, 127, 128].map(|n| of(n).0), [0, 15, 16, 16, 17, 24, 25, 25, 26]);
        assert_eq!([0, 31, 32, 33, 34, 95, 96, 127, 128].map(|n| of(n).1), [0, 31, 32, 32, 33, 41, 42, 42, 43]);
        assert_eq!((LITERAL_LENGTHS.smallest[35], LITERAL_LENGTHS.extra[35]), (65_536, 16));
        assert_eq!((MATCH_LENGTHS.smallest[52], MATCH_LENGTHS.extra[52]), (65_539, 16));
    }

    #[test]
    fn codes_of_offsets() {
        let recent = [10, 20, 30];
        assert_eq!(offset_code(10, recent, false), (0, recent));
        assert_eq!(offset_code(10, recent, true), (3, [10, 10, 20]));
        assert_eq!(offset_code(20, recent, false), (1, [20, 10, 30]));
        assert_eq!(offset_code(20, recent, true), (0, [20, 10, 30]));
        assert_eq!(offset_code(30, recent, false), (1, [30, 10, 20]));
        assert_eq!(offset_code(9, recent, true), (1, [9, 10, 20]));
        assert_eq!(offset_code(9, recent, false), (3, [9, 10, 20]));
        assert_eq!(offset_code(1, recent, false), (2, [1, 10, 20]));
    }

    #[test]
    fn code_lengths_are_huffmans() {
        assert_eq!(code_lengths(&[1; 256]), [8; 256]);
        let mut seen = [0; 256];
        (seen[7], seen[8], seen[9]) = (1000, 400, 300);
        let lengths = code_lengths(&seen);
        assert_eq!((lengths[7], lengths[8]), (1, 2));
        assert!(lengths[9] == 3 && lengths[0] > 8);
        let kraft: f64 = lengths.iter().map(|&length| (-f64::from(length)).exp2()).sum();
        assert_eq!(kraft, 1.0);
    }

    #[test]
    fn logarithms() {
        assert_eq!([1, 2, 3, 4, 1 << 20].map(log2), [0, 256, 384, 512, 20 * 256]);
        assert_eq!(bits(&[3, 1, 0, 0]), [256, 512, 768, 768]);
    }
}
