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
    let mut wide = false;
    for (to, length) in lengths_of.iter_mut().zip(lengths) {
        *to = u32::cut(length.widen());
        wide |= length.widen() > u64::from(u32::MAX);
    }
    if wide {
        // One alone is more than any stream has.
        let found = lengths.iter().fold(0u64, |sum, length| sum.saturating_add(length.widen()));
        return Err(fault(MltFault::RunSum { found, expected: out.len() as u64 }, part).at(payload.offset()));
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

    /// The sum that the error of runs of version 1 tells, what is expected, and the offset in their payload.
    fn run_sum<W: Word>(lengths: &[u64], n: usize) -> (u64, u64, u64) {
        let mut payload = Vec::new();
        for &(mut word) in lengths.iter().chain(vec![&7; lengths.len()]) {
            while word >= 0x80 {
                payload.push(word.to_le_bytes()[0] | 0x80);
                word >>= 7;
            }
            payload.push(word.to_le_bytes()[0]);
        }
        let runs = u32::try_from(lengths.len()).unwrap();
        let told = [Logical::Rle { runs }, Logical::DeltaRle { runs }].map(|logical| {
            let coding = Coding { physical: Physical::VarInt, logical, words: 2 * runs, signed: false, strict: false };
            everywhere(|options| {
                let mut out = vec![W::zeroed(); n];
                let error = decode(&coding, at(&payload), &mut out, options, &mut Scratch::new()).unwrap_err();
                match error.kind() {
                    ErrorKind::Mlt(MltFault::RunSum { found, expected }) => {
                        (found, expected, told(Err::<(), _>(error)).1)
                    }
                    other => panic!("{other:?}"),
                }
            })
        });
        assert_eq!(told[0], told[1]);
        told[0]
    }

    /// Sums past 32 bits are told as they are, and no length is cut to one that would fit.
    #[test]
    fn long_runs_are_told() {
        let wide = 1 << 32;
        assert_eq!(run_sum::<u32>(&[3, 5], 7), (8, 7, 0));
        assert_eq!(run_sum::<u32>(&[wide - 1, wide - 1], 7), (2 * wide - 2, 7, 0));
        assert_eq!(run_sum::<u64>(&[wide - 1, 1], 7), (wide, 7, 0));
        for (length, n) in [(wide, 0), (wide + 1, 1), (wide + 7, 7), (wide << 20, 7), (u64::MAX - 5, 7)] {
            assert_eq!(run_sum::<u64>(&[length], n), (length, n as u64, 0));
            assert_eq!(run_sum::<u64>(&[0, length, 5], n), (length + 5, n as u64, 0));
        }
        // More than 64 bits.
        assert_eq!(run_sum::<u64>(&[u64::MAX, 9], 7), (u64::MAX, 7, 0));
    }
}
