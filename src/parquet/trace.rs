//! The trace of a section: what each byte of it means.
//!
//! The steps come from the same walks as the values: over blocks, runs and vectors.

use std::fmt::Display;

use super::encoding::Scratch;
use super::encoding::alp::{Alp, Decimal, Vectors};
use super::encoding::byte_stream_split::ByteStreamSplit;
use super::encoding::delta_binary_packed::{Delta, DeltaBinaryPacked};
use super::encoding::delta_byte_array::{PREFIXES, SUFFIXES, Streams};
use super::encoding::delta_length_byte_array::{DeltaLengthByteArray, LENGTHS};
use super::encoding::dictionary::DictionaryIndices;
use super::encoding::hybrid::{Hybrid, Run};
use super::encoding::unpack_from;
use super::options::Options;
use super::payload::{Decoded, Encoding, Payload, PhysicalType};
use crate::error::{Error, Limit, Part};
use crate::input::Input;
use crate::limits::Limits;
use crate::trace::Trace;

/// What a value takes in the text of a step, and a step beside its values.
const VALUE_BYTES: u64 = 22;
const STEP_BYTES: u64 = 256;

impl Payload<'_> {
    /// Shows each step of reading the section, and decodes it. Steps go as far as its structure is sound; the fault is the
    /// decoder's.
    pub fn trace(&self, input: Input<'_>, options: &Options) -> (Trace, Option<Decoded>) {
        let mut trace = Trace::default();
        let mut steps = Steps::new(&mut trace, "", &options.limits);
        let walked = self.walk(input, options, &mut steps);
        match self.decode(input, options) {
            Ok(decoded) => {
                // A walk of what decodes can only end for want of room.
                trace.fault = walked.err();
                (trace, Some(decoded))
            }
            Err(error) => {
                trace.fault = Some(error);
                (trace, None)
            }
        }
    }

    /// The steps of reading the section, without decoding it.
    pub(super) fn walk(&self, input: Input<'_>, options: &Options, steps: &mut Steps<'_>) -> Result<(), Error> {
        let count = self.count;
        let (start, len) = (input.offset(), input.bytes().len() as u64);
        match (self.encoding, self.physical_type) {
            (Encoding::Hybrid, _) => {
                runs(Hybrid::new(input, count, self.bit_width, options)?, "indices", options, steps)
            }
            (Encoding::Rle, _) => {
                let mut rest = input;
                let hybrid = Hybrid::with_length(&mut rest, count, 1, options)?;
                let length = (rest.offset() - start).saturating_sub(4);
                steps.step("length", start..start + 4.min(len), format_args!("{length} bytes of runs"), 0)?;
                runs(hybrid, "values", options, steps)
            }
            (Encoding::PlainDictionary | Encoding::RleDictionary, _) => {
                let Some(dictionary) = self.dictionary else { return Ok(()) };
                let decoder = DictionaryIndices::new(input, count, dictionary, options)?;
                let (width, entries) = (decoder.width(), dictionary.len());
                let detail = format_args!("{width} bits per index: enough for {entries} dictionary entries");
                steps.step("bit width", start..start + 1.min(len), detail, 0)?;
                runs(decoder.indices, "indices", options, steps)
            }
            (Encoding::DeltaBinaryPacked, PhysicalType::Int32) => {
                blocks(DeltaBinaryPacked::<i32>::new(input, count, options)?, start, steps)
            }
            (Encoding::DeltaBinaryPacked, _) => {
                blocks(DeltaBinaryPacked::<i64>::new(input, count, options)?, start, steps)
            }
            (Encoding::DeltaLengthByteArray, _) => {
                // Of a stream that is cut, the steps before the cut are shown.
                let decoder = DeltaLengthByteArray::new(input, count, options);
                let lengths = match &decoder {
                    Ok(decoder) => decoder.lengths.clone(),
                    Err(_) => DeltaBinaryPacked::<i32>::new(input, count, options)?,
                };
                steps.prefix = LENGTHS;
                blocks(lengths, start, steps)?;
                steps.prefix = "";
                let mut decoder = decoder?;
                let (n, from) = (decoder.remaining(), decoder.bytes.offset());
                decoder.skip(n)?;
                let to = decoder.bytes.offset();
                steps.step("bytes", from..to, format_args!("{n} values, {} bytes", to - from), 0)
            }
            (Encoding::DeltaByteArray, _) => {
                let streams = Streams::new(input, count, options);
                let prefixes = match &streams {
                    Ok(streams) => streams.prefixes.clone(),
                    Err(_) => DeltaBinaryPacked::<i32>::new(input, count, options)?,
                };
                steps.prefix = PREFIXES;
                let rest = prefixes.clone().rest();
                blocks(prefixes, start, steps)?;
                let rest = rest?;
                let lengths = DeltaBinaryPacked::<i32>::new(rest, count, options)?;
                steps.prefix = SUFFIXES;
                blocks(lengths, rest.offset(), steps)?;
                steps.prefix = "";
                let streams = streams?;
                let mut values = DeltaLengthByteArray::new(rest, count, options)?;
                // Of streams of different lengths, which a lenient reader takes, the shorter counts.
                let n = streams.prefixes.remaining().min(values.remaining());
                values.skip(n)?;
                let (from, to) = (streams.suffixes.offset(), values.bytes.offset());
                steps.step("suffix bytes", from..to, format_args!("{n} values, {} bytes", to - from), 0)
            }
            (Encoding::ByteStreamSplit, kind) => {
                let width = kind.width().unwrap_or(1);
                // It checks that the streams are there, of which a type can have very many.
                ByteStreamSplit::new(input, count, width, options)?;
                let width = width as u64;
                let stride = len / width;
                // Without values there are as many for nothing: those of the widest numbers are shown.
                for stream in 0..if count == 0 { width.min(16) } else { width } {
                    let from = start + stream * stride;
                    let detail = format_args!("byte {stream} of {count} values");
                    steps.step(format_args!("stream {stream}"), from..from + stride, detail, 0)?;
                }
                Ok(())
            }
            (Encoding::Alp, PhysicalType::Float) => vectors::<f32>(input, count, options, steps),
            (Encoding::Alp, _) => vectors::<f64>(input, count, options, steps),
            (Encoding::Plain, kind) => {
                let what = if kind == PhysicalType::Boolean { "booleans" } else { "values" };
                steps.step("values", start..input.end(), format_args!("{count} {what}"), 0)
            }
            (Encoding::BitPacked, _) => steps.step("values", start..input.end(), format_args!("{count} values"), 0),
        }
    }
}

/// Steps, whose text is bounded: a few bytes can mean many values.
pub(super) struct Steps<'t> {
    trace: &'t mut Trace,
    spent: u64,
    limits: &'t Limits,
    prefix: &'static str,
}

impl<'t> Steps<'t> {
    /// Steps that go to `trace`, each label behind `prefix`.
    pub(super) fn new(trace: &'t mut Trace, prefix: &'static str, limits: &'t Limits) -> Steps<'t> {
        Steps { trace, spent: 0, limits, prefix }
    }

    pub(super) fn step(
        &mut self,
        label: impl Display,
        span: std::ops::Range<u64>,
        detail: impl Display,
        values: usize,
    ) -> Result<(), Error> {
        self.room(values)?;
        let label = if self.prefix.is_empty() { label.to_string() } else { format!("{}: {label}", self.prefix) };
        self.trace.step(label, span, detail);
        Ok(())
    }

    /// Passes a step with so many values if the limits do.
    fn room(&mut self, values: usize) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(VALUE_BYTES.saturating_mul(values as u64) + STEP_BYTES);
        Limits::check(self.spent, self.limits.max_output_bytes, Limit::OutputBytes, Part::Values("", "trace"))
    }
}

fn blocks<T: Delta>(mut deltas: DeltaBinaryPacked<'_, T>, start: u64, steps: &mut Steps<'_>) -> Result<(), Error> {
    let header = deltas.header();
    if deltas.offset() > start {
        let detail = format_args!(
            "blocks of {} values in {} miniblocks; {} values; the first is {}",
            header.block, header.miniblocks, header.total, header.first
        );
        steps.step("header", start..deltas.offset(), detail, 0)?;
    }
    let mut number = 0u64;
    while let Some(block) = deltas.next_block()? {
        let widths = format_args!("smallest delta {}; bit widths {:?}", block.least, block.widths);
        steps.step(format_args!("block {number}"), block.start..block.body_start, widths, block.widths.len())?;
        let (mut from, per) = (block.body_start, deltas.per());
        for m in 0..block.values.div_ceil(per) {
            let width = block.widths[m];
            let to = (from + (per as u64 / 8).saturating_mul(width.into())).min(deltas.offset());
            let values = per.min(block.values - m * per);
            steps.room(values)?;
            let values = deltas.deltas_of(&block, m);
            let detail = format_args!("{width} bits per delta; deltas {values:?}");
            steps.step(format_args!("block {number}, miniblock {m}"), from..to, detail, 0)?;
            from = to;
        }
        number += 1;
    }
    Ok(())
}

pub(super) fn runs(mut hybrid: Hybrid<'_>, what: &str, options: &Options, steps: &mut Steps<'_>) -> Result<(), Error> {
    let mut number = 0u64;
    while let Some(placed) = hybrid.next_run()? {
        let n = hybrid.left_of_run()?;
        steps.room(n)?;
        let (kind, values) = match placed.run {
            Run::Repeated { value, .. } => ("RLE", vec![value; n]),
            Run::Packed { body, .. } => {
                let mut values = vec![0; n];
                unpack_from(options.kernels, body, hybrid.width(), 0, &mut values);
                ("bit-packed", values)
            }
        };
        let span = placed.start..hybrid.offset();
        steps.step(format_args!("run {number}"), span, format_args!("{kind}: {what} {values:?}"), 0)?;
        hybrid.skip(n)?;
        number += 1;
    }
    Ok(())
}

fn vectors<T: Decimal>(input: Input<'_>, count: usize, options: &Options, steps: &mut Steps<'_>) -> Result<(), Error> {
    let mut scratch = Scratch::new();
    let mut vectors: Vectors<'_> = Alp::new::<T>(input, count, options, &mut scratch)?.vectors;
    let (start, end) = (input.offset(), vectors.header_end());
    if end > start {
        steps.step("header", start..end, format_args!("{count} values in vectors of {}", vectors.size), 0)?;
    }
    steps.room(vectors.offsets.len())?;
    let offsets: Vec<u32> = vectors.offsets.iter().map(|&offset| u32::from_le_bytes(offset)).collect();
    steps.step("offsets", end..vectors.offset(), format_args!("{offsets:?}"), 0)?;
    let mut number = 0u64;
    while let Some(vector) = vectors.next_vector()? {
        let detail = format_args!(
            "exponent {}, factor {}, {} exceptions, base {}, {} bits",
            vector.exponent,
            vector.factor,
            vector.positions.len(),
            vector.base,
            vector.width
        );
        steps.step(format_args!("vector {number}"), vector.start..vectors.offset(), detail, 0)?;
        number += 1;
    }
    Ok(())
}
