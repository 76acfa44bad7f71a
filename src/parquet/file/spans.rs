//! The bytes that each value of a section comes from.

use std::ops::Range;

use crate::error::{Error, Limit, Part};
use crate::input::Input;
use crate::limits::Limits;
use crate::parquet::byte_arrays::ByteArrays;
use crate::parquet::encoding::Scratch;
use crate::parquet::encoding::alp::{Alp, Decimal};
use crate::parquet::encoding::delta_binary_packed::{Delta, DeltaBinaryPacked};
use crate::parquet::encoding::delta_byte_array::Streams;
use crate::parquet::encoding::delta_length_byte_array::DeltaLengthByteArray;
use crate::parquet::encoding::dictionary::{Dictionary, DictionaryIndices};
use crate::parquet::encoding::hybrid::Hybrid;
use crate::parquet::options::Options;
use crate::parquet::payload::{Encoding, Payload, PhysicalType, Values};

/// Where the bytes of some values are: of each a main span, and others that it needs.
///
/// | encoding | main span | others |
/// |---|---|---|
/// | PLAIN | the value, with its length if it has one; of a truth value its byte | |
/// | RLE, HYBRID | the body of its run | |
/// | PLAIN_DICTIONARY, RLE_DICTIONARY | the entry in the dictionary page | the body of the index's run |
/// | DELTA_BINARY_PACKED | the body of its miniblock; of the first value the header | |
/// | DELTA_LENGTH_BYTE_ARRAY | its bytes | where its length is, as above |
/// | DELTA_BYTE_ARRAY | the bytes of its suffix | where the lengths of its prefix and of its suffix are |
/// | BYTE_STREAM_SPLIT | its byte in the first stream | its bytes in the others |
/// | ALP | its vector | |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueSpans {
    spans: Vec<Range<u64>>,
    /// Behind the spans of each value.
    ends: Vec<usize>,
}

impl ValueSpans {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The main span of value `i`, and its others.
    ///
    /// # Panics
    /// If there is no such value.
    pub fn get(&self, i: usize) -> (Range<u64>, &[Range<u64>]) {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        let spans = &self.spans[start..self.ends[i]];
        (spans[0].clone(), &spans[1..])
    }

    fn push(&mut self, spans: impl IntoIterator<Item = Range<u64>>) {
        self.spans.extend(spans);
        self.ends.push(self.spans.len());
    }

    /// Those of the `values` that `input` holds, which have been decoded. `entries` are those of the dictionary.
    pub(super) fn of(
        payload: &Payload<'_>,
        input: Input<'_>,
        values: &Values,
        entries: &[Range<u64>],
        options: &Options,
    ) -> Result<ValueSpans, Error> {
        let mut all = ValueSpans::default();
        let n = values.len();
        let width = payload.physical_type.width().unwrap_or(1) as u64;
        let each = if payload.encoding == Encoding::ByteStreamSplit { width } else { 3 };
        room(n, each, &options.limits)?;
        let start = input.offset();
        match (payload.encoding, payload.physical_type) {
            (Encoding::Plain, _) => all = plain(values, start),
            (Encoding::Rle, _) => {
                let mut rest = input;
                let hybrid = Hybrid::with_length(&mut rest, payload.count, 1, options)?;
                runs(hybrid, |n, body| (0..n).for_each(|_| all.push([body.clone()])))?;
            }
            (Encoding::PlainDictionary | Encoding::RleDictionary, _) => {
                let Some(dictionary) = payload.dictionary else { return Ok(all) };
                let mut decoder = DictionaryIndices::new(input, payload.count, dictionary, options)?;
                let hybrid = decoder.indices.clone();
                let mut indices = vec![0; n];
                decoder.decode_indices(&mut indices)?;
                let mut indices = indices.into_iter();
                runs(hybrid, |n, body| {
                    for index in indices.by_ref().take(n) {
                        all.push([entries[index as usize].clone(), body.clone()]);
                    }
                })?;
            }
            (Encoding::DeltaBinaryPacked, PhysicalType::Int32) => {
                let deltas = DeltaBinaryPacked::<i32>::new(input, payload.count, options)?;
                places(deltas, start, n)?.into_iter().for_each(|place| all.push([place]));
            }
            (Encoding::DeltaBinaryPacked, _) => {
                let deltas = DeltaBinaryPacked::<i64>::new(input, payload.count, options)?;
                places(deltas, start, n)?.into_iter().for_each(|place| all.push([place]));
            }
            (Encoding::DeltaLengthByteArray, _) => {
                let decoder = DeltaLengthByteArray::new(input, payload.count, options)?;
                let places = places(decoder.lengths.clone(), start, n)?;
                let (Values::ByteArrays(values), mut at) = (values, decoder.bytes.offset()) else { return Ok(all) };
                for (value, place) in values.iter().zip(places) {
                    let span = at..at + value.len() as u64;
                    at = span.end;
                    all.push([span, place]);
                }
            }
            (Encoding::DeltaByteArray, _) => {
                let streams = Streams::new(input, payload.count, options)?;
                let middle = streams.prefixes.clone().rest()?.offset();
                let prefixes = places(streams.prefixes.clone(), start, n)?;
                let suffixes = places(streams.lengths.clone(), middle, n)?;
                let mut lengths = vec![0i32; n];
                streams.lengths.clone().decode(&mut lengths)?;
                let mut at = streams.suffixes.offset();
                for ((length, prefix), suffix) in lengths.into_iter().zip(prefixes).zip(suffixes) {
                    // Decoded, so not negative.
                    let span = at..at + u64::try_from(length).unwrap_or(0);
                    at = span.end;
                    all.push([span, prefix, suffix]);
                }
            }
            (Encoding::ByteStreamSplit, _) => {
                let stride = n as u64;
                for i in 0..stride {
                    all.push((0..width).map(|stream| {
                        let at = start + stream * stride + i;
                        at..at + 1
                    }));
                }
            }
            (Encoding::Alp, PhysicalType::Float) => vectors::<f32>(input, payload.count, options, &mut all)?,
            (Encoding::Alp, _) => vectors::<f64>(input, payload.count, options, &mut all)?,
            (Encoding::BitPacked | Encoding::Hybrid, _) => {}
        }
        Ok(all)
    }

    /// The entries of a dictionary whose page's body starts at `start`.
    pub(super) fn entries(
        dictionary: &Dictionary,
        kind: PhysicalType,
        start: u64,
        limits: &Limits,
    ) -> Result<ValueSpans, Error> {
        room(dictionary.len(), 1, limits)?;
        Ok(match dictionary.byte_arrays() {
            Some(values) => byte_arrays(values, start),
            None => fixed(dictionary.len(), kind.width(), start),
        })
    }

    /// The main spans.
    pub(super) fn main(&self) -> Vec<Range<u64>> {
        (0..self.len()).map(|i| self.get(i).0).collect()
    }
}

/// Passes so many values with so many spans each if the limits do.
fn room(values: usize, each: u64, limits: &Limits) -> Result<(), Error> {
    let needed = (values as u64).saturating_mul(8 + each.saturating_mul(16));
    Limits::check(needed, limits.max_output_bytes, Limit::OutputBytes, Part::Values("", "trace"))
}

fn plain(values: &Values, start: u64) -> ValueSpans {
    match values {
        Values::ByteArrays(values) => byte_arrays(values, start),
        Values::Booleans(values) => fixed(values.len(), None, start),
        Values::Int32(_) | Values::Float(_) => fixed(values.len(), Some(4), start),
        Values::Int64(_) | Values::Double(_) => fixed(values.len(), Some(8), start),
        Values::Fixed { width, .. } => fixed(values.len(), Some(*width), start),
        Values::Numbers(_) => ValueSpans::default(),
    }
}

fn byte_arrays(values: &ByteArrays, start: u64) -> ValueSpans {
    let (mut all, mut at) = (ValueSpans::default(), start);
    for value in values.iter() {
        let span = at..at + 4 + value.len() as u64;
        at = span.end;
        all.push([span]);
    }
    all
}

/// Values of so many bytes each, or of a bit.
fn fixed(n: usize, width: Option<usize>, start: u64) -> ValueSpans {
    let mut all = ValueSpans::default();
    for i in 0..n as u64 {
        let (at, width) = match width {
            Some(width) => (i * width as u64, width as u64),
            None => (i / 8, 1),
        };
        let span = start + at..start + at + width;
        all.push([span]);
    }
    all
}

/// The values of each run, and where its body lies.
fn runs(mut hybrid: Hybrid<'_>, mut see: impl FnMut(usize, Range<u64>)) -> Result<(), Error> {
    while hybrid.next_run()?.is_some() {
        let n = hybrid.left_of_run()?;
        see(n, hybrid.clone().body_of(0)..hybrid.offset());
        hybrid.skip(n)?;
    }
    Ok(())
}

/// Where each of the first `n` values of a stream of differences is stored.
fn places<T: Delta>(mut deltas: DeltaBinaryPacked<'_, T>, start: u64, n: usize) -> Result<Vec<Range<u64>>, Error> {
    let mut places = Vec::new();
    if n > 0 {
        places.push(start..deltas.offset());
    }
    while places.len() < n
        && let Some(block) = deltas.next_block()?
    {
        let (mut from, per) = (block.body_start, deltas.per());
        for m in 0..block.values.div_ceil(per) {
            let bytes = (per as u64 / 8).saturating_mul(block.widths[m].into());
            let to = from.saturating_add(bytes).min(deltas.offset());
            let values = per.min(block.values - m * per).min(n - places.len());
            places.extend(std::iter::repeat_n(from..to, values));
            from = to;
        }
    }
    Ok(places)
}

fn vectors<T: Decimal>(input: Input<'_>, count: usize, options: &Options, all: &mut ValueSpans) -> Result<(), Error> {
    let mut scratch = Scratch::new();
    let mut vectors = Alp::new::<T>(input, count, options, &mut scratch)?.vectors;
    while let Some(vector) = vectors.next_vector()? {
        let span = vector.start..vectors.offset();
        (0..vector.values).for_each(|_| all.push([span.clone()]));
    }
    Ok(())
}
