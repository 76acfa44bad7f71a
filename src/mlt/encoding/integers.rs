//! Integer streams: a physical encoding and a logical one.
//!
//! Source: MapLibre Tile specification, Encodings, "Integer Words". The physical encoding turns bytes into words, the
//! logical one words into values. Differences are ZigZag-encoded always, other values where the stream's type is signed.

use super::word::Word;
use super::{Scratch, bit_packing, fastpfor, fault, plain, rle, varint};
use crate::error::{Error, ErrorKind, Limit, Part, Unsupported};
use crate::input::Input;
use crate::limits::Limits;
use crate::mlt::{Logical, MltFault, Options, Packing, Physical, Stream};

/// How the payload of an integer stream is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding {
    /// How words are made bytes.
    pub physical: Physical,
    /// How values are made words.
    pub logical: Logical,
    /// Words that the header states; used for the runs of version 1 alone.
    pub words: u32,
    /// Whether values are of a signed type.
    pub signed: bool,
    /// Whether bytes behind the last varint are refused, as in version 2; in version 1 they are ignored.
    pub strict: bool,
}

impl Coding {
    /// That of a stream whose values are of a signed type or not, of version 2 (`strict`) or 1.
    pub fn of(stream: &Stream, signed: bool, strict: bool) -> Coding {
        let Stream { physical, logical, words, .. } = *stream;
        Coding { physical, logical, words, signed, strict }
    }

    /// An error if so many values cannot be in so short a payload: before memory is reserved for them. Runs can hold any
    /// number.
    ///
    /// # Errors
    /// [`MltFault::Length`], with the bytes that they need at least; of bit packing those of [`bit_packing::decode`].
    pub fn check(&self, values: u64, payload: Input<'_>) -> Result<(), Error> {
        let expected = match self.logical {
            Logical::Rle { .. } | Logical::RlePairs | Logical::DeltaRle { .. } | Logical::DeltaRlePairs => 0,
            Logical::BitPacked => return bit_packing::packed(payload, values).map(|_| ()),
            _ => least_bytes(self.physical, values),
        };
        check_length(expected, payload)
    }
}

/// Bytes that so many words need at least.
fn least_bytes(physical: Physical, words: u64) -> u64 {
    match physical {
        Physical::None => words.saturating_mul(4),
        Physical::VarInt => words,
        Physical::FastPfor256 => fastpfor::least_bytes(256, words),
        Physical::FastPfor128 => fastpfor::least_bytes(128, words),
    }
}

fn check_length(expected: u64, payload: Input<'_>) -> Result<(), Error> {
    let found = payload.bytes().len() as u64;
    if found >= expected {
        return Ok(());
    }
    Err(fault(MltFault::Length { found, expected }, Part::Values("", "values")).at(payload.offset()))
}

/// Decodes a payload. Signed values are given in two's complement.
///
/// # Errors
/// What the encodings find; a length that does not fit the values; 64-bit words in the FastPFOR of version 1; a logical
/// encoding that is none of integers.
pub fn decode<W: Word>(
    coding: &Coding,
    payload: Input<'_>,
    out: &mut [W],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let Coding { physical, logical, strict, signed, .. } = *coding;
    match logical {
        Logical::None | Logical::Delta | Logical::Delta2 => words(physical, payload, strict, out, options, scratch)?,
        Logical::BitPacked => bit_packing::decode(payload, out, options)?,
        Logical::RlePairs | Logical::DeltaRlePairs => rle::decode_pairs(payload, out, options)?,
        Logical::Rle { runs } | Logical::DeltaRle { runs } => {
            // Taken out, since words are decoded with the rest of the scratch memory.
            let mut taken = std::mem::take(W::words(scratch));
            let result = separate(coding, runs, payload, &mut taken, out, options, scratch);
            *W::words(scratch) = taken;
            result?;
        }
        _ => {
            let kind = ErrorKind::Unsupported(Unsupported::Encoding);
            return Err(Error::new(kind, Part::Values("", "values")).at(payload.offset()));
        }
    }
    match logical {
        Logical::Delta | Logical::DeltaRle { .. } | Logical::DeltaRlePairs => W::deltas(options.kernels, out),
        Logical::Delta2 => W::deltas2(options.kernels, out),
        _ if signed => W::zigzag(options.kernels, out),
        _ => {}
    }
    Ok(())
}

/// Runs of version 1.
fn separate<W: Word>(
    coding: &Coding,
    runs: u32,
    payload: Input<'_>,
    taken: &mut Vec<W>,
    out: &mut [W],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let part = Part::Values("", "runs");
    let (n, all) = (u64::from(runs), 2 * u64::from(runs));
    if all != u64::from(coding.words) {
        let kind = MltFault::RunCount { runs: n, words: coding.words.into() };
        return Err(fault(kind, part).at(payload.offset()));
    }
    check_length(least_bytes(coding.physical, all), payload)?;
    let size = all * u64::from(W::BITS / 8) + n * 4;
    Limits::check(size, options.limits.max_scratch_bytes, Limit::ScratchBytes, part)?;
    let (n, all) = (usize::try_from(n).unwrap_or(usize::MAX), usize::try_from(all).unwrap_or(usize::MAX));
    let found = super::room(taken, all);
    words(coding.physical, payload, coding.strict, found, options, scratch)?;
    let (lengths, values) = found.split_at(n);
    let lengths_of = super::room(&mut scratch.runs, n);
    for (to, length) in lengths_of.iter_mut().zip(lengths) {
        // More than any stream has, so that the sum is found to be wrong.
        *to = u32::try_from(length.widen()).unwrap_or(u32::MAX);
    }
    rle::expand(lengths_of, values, payload.offset(), out, options)
}

/// The physical step alone: the words of a payload.
///
/// # Errors
/// As [`decode`].
pub fn words<W: Word>(
    physical: Physical,
    payload: Input<'_>,
    strict: bool,
    out: &mut [W],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    match physical {
        Physical::None => plain::decode(payload, out),
        Physical::VarInt => {
            let mut rest = payload;
            varint::decode(&mut rest, out, options)?;
            if strict && !rest.bytes().is_empty() {
                let (found, expected) = (payload.bytes().len() as u64, rest.offset() - payload.offset());
                let kind = MltFault::Length { found, expected };
                return Err(fault(kind, Part::Values("", "varint")).at(rest.offset()));
            }
            Ok(())
        }
        Physical::FastPfor256 => fastpfor::decode_256(payload, out, options, scratch),
        Physical::FastPfor128 => fastpfor::decode_128(payload, out, options, scratch),
    }
}

/// The offsets of an ALP stream: words of 64 bits, but in the FastPFOR of [`Packing::Sequential`] of 32.
///
/// # Errors
/// As [`decode`].
pub fn alp_offsets(
    physical: Physical,
    payload: Input<'_>,
    strict: bool,
    out: &mut [u64],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    if physical != Physical::FastPfor128 || options.packing != Packing::Sequential {
        return words(physical, payload, strict, out, options, scratch);
    }
    let mut taken = std::mem::take(&mut scratch.words);
    let found = super::room(&mut taken, out.len());
    let result = words(physical, payload, strict, found, options, scratch);
    out.iter_mut().zip(found).for_each(|(out, word)| *out = u64::from(*word));
    scratch.words = taken;
    result
}

/// Appends the payload of values. Returns the logical encoding as it is to be stated, with the number of runs, and the
/// number of words.
///
/// # Panics
/// If the logical encoding is none of integers, values are too wide for bit packing, 64-bit words are to be in the
/// FastPFOR of version 1, or there are 2^32 words.
#[cfg(feature = "encode")]
pub fn encode<W: Word>(
    physical: Physical,
    logical: Logical,
    signed: bool,
    values: &[W],
    out: &mut Vec<u8>,
) -> (Logical, u32) {
    use super::delta;
    let plain = || -> Vec<W> {
        if signed { values.iter().map(|&value| delta::zigzag(value)).collect() } else { values.to_vec() }
    };
    let words = match logical {
        Logical::None | Logical::Rle { .. } | Logical::RlePairs | Logical::BitPacked => plain(),
        Logical::Delta | Logical::DeltaRle { .. } | Logical::DeltaRlePairs => delta::encode(values),
        Logical::Delta2 => delta::encode2(values),
        other => panic!("{other:?} of integers"),
    };
    let count = |n: usize| u32::try_from(n).expect("fewer than 2^32 words");
    match logical {
        Logical::BitPacked => bit_packing::encode(&words, out),
        Logical::RlePairs | Logical::DeltaRlePairs => rle::encode_pairs(&words, out),
        Logical::Rle { .. } | Logical::DeltaRle { .. } => {
            let (mut all, values) = rle::runs_of(&words);
            let runs = count(values.len());
            all.extend(values);
            encode_words(physical, &all, out);
            let rle = matches!(logical, Logical::Rle { .. });
            return (if rle { Logical::Rle { runs } } else { Logical::DeltaRle { runs } }, count(all.len()));
        }
        _ => encode_words(physical, &words, out),
    }
    (logical, count(words.len()))
}

/// Appends words in a physical encoding.
///
/// # Panics
/// If 64-bit words are to be in the FastPFOR of version 1.
#[cfg(feature = "encode")]
pub fn encode_words<W: Word>(physical: Physical, words: &[W], out: &mut Vec<u8>) {
    match physical {
        Physical::None => plain::encode(words, out),
        Physical::VarInt => varint::encode(words, out),
        Physical::FastPfor256 => fastpfor::encode_256(words, out),
        Physical::FastPfor128 => fastpfor::encode_128(words, Packing::Interleaved, out),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, everywhere, told};
    use super::*;

    const NONE: Coding =
        Coding { physical: Physical::VarInt, logical: Logical::None, words: 0, signed: false, strict: true };

    fn decoded<W: Word>(coding: Coding, payload: &[u8], n: usize) -> Result<Vec<W>, (&'static str, u64)> {
        let mut scratch = Scratch::new();
        everywhere(|options| {
            let mut out = vec![W::zeroed(); n];
            let result = decode(&coding, at(payload), &mut out, options, &mut scratch);
            if result.is_ok() { Ok(out) } else { Err(told(result)) }
        })
    }

    fn signed(coding: Coding, payload: &[u8], n: usize) -> Vec<i32> {
        let words = decoded::<u32>(Coding { signed: true, ..coding }, payload, n).unwrap();
        words.into_iter().map(u32::cast_signed).collect()
    }

    /// The examples of the format, whose words take a byte each.
    #[test]
    fn worked_examples() {
        let with = |logical| Coding { logical, ..NONE };
        assert_eq!(signed(NONE, &[0, 1, 2, 3, 4], 5), [0, -1, 1, -2, 2]);
        assert_eq!(signed(with(Logical::Delta), &[0xc8, 0x01, 10, 5], 3), [100, 105, 102]);
        assert_eq!(signed(with(Logical::Delta2), &[20, 13, 0, 2], 4), [10, 13, 16, 20]);
        let delta_rle = [10, 11, 12, 13, 20, 20, 20];
        assert_eq!(signed(with(Logical::DeltaRlePairs), &[1, 20, 3, 2, 1, 14, 2, 0], 7), delta_rle);
        let separate = Coding { logical: Logical::DeltaRle { runs: 4 }, words: 8, ..NONE };
        assert_eq!(signed(separate, &[1, 3, 1, 2, 20, 2, 14, 0], 7), delta_rle);
        let rle = [5u32, 5, 5, 3, 3, 3, 3];
        assert_eq!(decoded(with(Logical::RlePairs), &[3, 5, 4, 3], 7), Ok(rle.to_vec()));
        let separate = Coding { logical: Logical::Rle { runs: 2 }, words: 4, ..NONE };
        assert_eq!(decoded(separate, &[3, 4, 5, 3], 7), Ok(rle.to_vec()));
        // Values of runs are ZigZag codes where they are signed, their lengths never.
        assert_eq!(signed(separate, &[3, 4, 5, 3], 7), [-3, -3, -3, -2, -2, -2, -2]);
        assert_eq!(signed(with(Logical::BitPacked), &[3, 0xcd, 1], 4), [-3, -1, -4, 0]);
        assert_eq!(decoded(with(Logical::BitPacked), &[3, 0xcd, 1], 4), Ok(vec![5u32, 1, 7, 0]));
    }

    /// R11, C15 and C18, and what no stream of integers has.
    #[test]
    fn refused() {
        assert_eq!(decoded::<u32>(NONE, &[1, 2, 3], 2), Err(("stream_length", 2)));
        assert_eq!(decoded::<u32>(Coding { strict: false, ..NONE }, &[1, 2, 3], 2), Ok(vec![1, 2]));
        let plain = Coding { physical: Physical::None, ..NONE };
        assert_eq!(decoded::<u32>(plain, &[1, 2, 3], 1), Err(("stream_length", 0)));
        let rle = |runs, words| Coding { logical: Logical::Rle { runs }, words, ..NONE };
        assert_eq!(decoded::<u32>(rle(2, 5), &[3, 4, 5, 3], 7), Err(("run_count", 0)));
        assert_eq!(decoded::<u32>(rle(2, 4), &[3, 3, 5, 3], 7), Err(("run_sum", 0)));
        assert_eq!(decoded::<u32>(rle(2, 4), &[3, 5, 5, 3], 7), Err(("run_sum", 0)));
        assert_eq!(decoded::<u64>(rle(1, 2), &[0x87, 0x80, 0x80, 0x80, 0x10, 3], 7), Err(("run_sum", 0)));
        // No memory is taken for words that are not there.
        assert_eq!(decoded::<u32>(rle(1 << 30, 1 << 31), &[3, 4, 5, 3], 7), Err(("stream_length", 0)));
        let fastpfor = Coding { physical: Physical::FastPfor256, ..rle(1 << 30, 1 << 31) };
        assert_eq!(decoded::<u32>(fastpfor, &[0; 400], 7), Err(("stream_length", 0)));
        assert_eq!(
            decoded::<u64>(Coding { physical: Physical::FastPfor256, ..NONE }, &[], 0),
            Err(("fastpfor_64_bit", 0))
        );
        assert_eq!(decoded::<u32>(Coding { logical: Logical::Rans, ..NONE }, &[], 0), Err(("unsupported", 0)));
    }

    #[test]
    fn checked_before_memory() {
        let least = |coding: Coding, values| match coding.check(values, at(&[])) {
            Ok(()) => 0,
            Err(error) => match error.kind() {
                ErrorKind::Mlt(MltFault::Length { found: 0, expected }) => expected,
                other => panic!("{other:?}"),
            },
        };
        let physical = |physical| Coding { physical, ..NONE };
        assert_eq!(least(physical(Physical::None), 1000), 4000);
        assert_eq!(least(physical(Physical::VarInt), 1000), 1000);
        assert_eq!(least(physical(Physical::FastPfor256), 1000), 3 * 2 + 232);
        assert_eq!(least(physical(Physical::FastPfor128), 1000), 7 * 2 + 104);
        assert_eq!(least(Coding { logical: Logical::BitPacked, ..NONE }, 1000), 126);
        assert_eq!(least(Coding { logical: Logical::RlePairs, ..NONE }, u64::MAX), 0);
    }

    #[cfg(feature = "encode")]
    mod encoding {
        use proptest::prelude::*;

        use super::*;

        const RUNS: u32 = u32::MAX;

        fn round_trip<W: Word>(values: &[W], signed: bool) {
            let physical = [Physical::None, Physical::VarInt, Physical::FastPfor128, Physical::FastPfor256];
            let logical = [
                Logical::None,
                Logical::Delta,
                Logical::Delta2,
                Logical::Rle { runs: RUNS },
                Logical::DeltaRle { runs: RUNS },
                Logical::RlePairs,
                Logical::DeltaRlePairs,
                Logical::BitPacked,
            ];
            let packs = |value: &W| !signed && value.widen() <= u32::MAX.into();
            for physical in &physical[..if W::BITS == 64 { 3 } else { 4 }] {
                for logical in logical {
                    if logical == Logical::BitPacked && W::BITS == 64 && !values.iter().all(packs) {
                        continue;
                    }
                    let mut payload = Vec::new();
                    let (logical, words) = encode(*physical, logical, signed, values, &mut payload);
                    let coding = Coding { physical: *physical, logical, words, signed, strict: true };
                    coding.check(values.len() as u64, at(&payload)).unwrap();
                    let back = decoded::<W>(coding, &payload, values.len());
                    assert_eq!(back.as_deref(), Ok(values), "{coding:?}");
                    for cut in [0, payload.len() / 2, payload.len().saturating_sub(1)] {
                        if cut < payload.len() && !(values.is_empty() && logical == Logical::RlePairs) {
                            assert!(decoded::<W>(coding, &payload[..cut], values.len()).is_err(), "{coding:?}, {cut}");
                        }
                    }
                }
            }
        }

        /// Offsets of ALP are of 32 bits in one packing alone.
        #[test]
        fn offsets_of_alp() {
            let values: Vec<u32> = (0..300).map(|i| i * i).collect();
            let wide: Vec<u64> = values.iter().map(|&value| value.into()).collect();
            for (physical, packing, narrow) in [
                (Physical::FastPfor128, Packing::Sequential, true),
                (Physical::FastPfor128, Packing::Interleaved, false),
                (Physical::VarInt, Packing::Sequential, false),
            ] {
                let mut payload = Vec::new();
                match (narrow, physical) {
                    (true, _) => fastpfor::encode_128(&values, packing, &mut payload),
                    _ => encode_words(physical, &wide, &mut payload),
                }
                let mut scratch = Scratch::new();
                let decoded = everywhere(|options| {
                    let (options, mut out) = (options.packing(packing), vec![0; 300]);
                    alp_offsets(physical, at(&payload), true, &mut out, &options, &mut scratch).unwrap();
                    out
                });
                assert_eq!(decoded, wide);
            }
        }

        proptest! {
            #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
            #[test]
            fn any_values(
                runs in proptest::collection::vec((any::<u64>(), 0..64u32, 0..90usize, 0..3u64), 0..12),
                signed in any::<bool>(),
            ) {
                let run = |&(value, shift, n, step): &(u64, u32, usize, u64)| {
                    (0..n as u64).map(move |i| (value >> shift).wrapping_add(i * step))
                };
                let values: Vec<u64> = runs.iter().flat_map(run).collect();
                let narrow: Vec<u32> = values.iter().map(|&value| u32::cut(value)).collect();
                round_trip(&values, signed);
                round_trip(&narrow, signed);
            }

            #[test]
            fn any_bytes(payload in proptest::collection::vec(any::<u8>(), 0..90), n in 0..300usize, signed in any::<bool>()) {
                for logical in [Logical::None, Logical::RlePairs, Logical::BitPacked, Logical::Rle { runs: 9 }] {
                    for physical in [Physical::None, Physical::VarInt, Physical::FastPfor128, Physical::FastPfor256] {
                        let coding = Coding { physical, logical, words: 18, signed, strict: false };
                        _ = decoded::<u32>(coding, &payload, n);
                        _ = decoded::<u64>(coding, &payload, n);
                    }
                }
            }
        }
    }
}
