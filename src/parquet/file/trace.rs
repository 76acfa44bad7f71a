//! The trace of a page: its header's fields, its levels, and its values, each with its bytes.
//!
//! The steps come from the walks that decode, over the fields of a header, the runs of levels, and the blocks, runs and
//! vectors of values. Nothing here is on the way of a plain read.

use std::ops::Range;

use super::column::{Body, Buffers, ColumnReader, PageInfo, dictionary_bytes};
use super::levels::{Section, width};
use super::page_header::{PageHeader, PageKind};
use super::pages::RawPage;
use super::spans::ValueSpans;
use crate::error::{Error, Part};
use crate::input::Input;
use crate::parquet::encoding::bit_packed::BitPacked;
use crate::parquet::encoding::hybrid::Hybrid;
use crate::parquet::options::Options;
use crate::parquet::payload::{Encoding, Payload, Values};
use crate::parquet::trace::{Steps, runs};
use crate::thrift::Value;
use crate::trace::{Step, Trace};

/// What the offsets of spans count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The start of the file: the bytes stand there as they are.
    File,
    /// The start of the page's body, unpacked.
    Body,
}

/// A page as it is read.
#[derive(Debug)]
#[non_exhaustive]
pub struct PageTrace {
    /// What is known of the page. Of levels and values nothing, if their fault is met before.
    pub info: PageInfo,
    /// The fields of its header, in offsets of the file.
    pub header: Vec<Step>,
    /// Its levels: labels begin with `repetition levels: ` and `definition levels: `.
    pub levels: Vec<Step>,
    /// What the spans of levels count from.
    pub levels_origin: Origin,
    /// Its values, or the entries of a dictionary.
    pub steps: Vec<Step>,
    /// What the spans of values count from.
    pub origin: Origin,
    /// Where the bytes of each value are, if all could be decoded. Main spans of values from a dictionary lie in that.
    pub spans: ValueSpans,
    /// What the main spans of values from a dictionary count from.
    pub dictionary_origin: Option<Origin>,
    /// Where spans count from the start of the unpacked body, that body, or what of it is compressed: its offset in the
    /// body, and its bytes.
    pub unpacked: Option<(u64, Vec<u8>)>,
    /// Definition levels; none where all are 0.
    pub definitions: Vec<u8>,
    /// Repetition levels; none where all are 0.
    pub repetitions: Vec<u8>,
    /// The values that are not null, or the entries of a dictionary, if all could be decoded.
    pub values: Option<Values>,
    /// What is wrong with the page. Steps go as far as it is sound.
    pub fault: Option<Error>,
}

/// The entries of a chunk's dictionary.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    spans: Vec<Range<u64>>,
    origin: Option<Origin>,
}

impl PageTrace {
    fn new(page: &RawPage<'_>) -> PageTrace {
        PageTrace {
            info: PageInfo::new(page),
            header: Vec::new(),
            levels: Vec::new(),
            levels_origin: Origin::File,
            steps: Vec::new(),
            origin: Origin::File,
            spans: ValueSpans::default(),
            dictionary_origin: None,
            unpacked: None,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            values: None,
            fault: None,
        }
    }
}

impl<'a> ColumnReader<'a, '_> {
    /// The trace of the next page of any kind, if there is one. A page whose header is sound is traced whatever its body
    /// holds, and so are those behind it.
    ///
    /// # Errors
    /// Of headers, and where there are other numbers of values or rows than the footer states.
    pub fn next_trace(&mut self) -> Result<Option<PageTrace>, Error> {
        let Some(page) = self.next_raw()? else {
            self.check_end()?;
            return Ok(None);
        };
        let mut trace = PageTrace::new(&page);
        trace.header = header(&page)?;
        let traced = match page.header.kind {
            PageKind::Dictionary(_) => self.trace_dictionary(&page, &mut trace),
            PageKind::Data(_) | PageKind::DataV2(_) => self.trace_data(page, &mut trace),
            PageKind::Other(_) => Ok(()),
        };
        trace.fault = traced.err();
        Ok(Some(trace))
    }

    fn trace_dictionary(&mut self, page: &RawPage<'a>, trace: &mut PageTrace) -> Result<(), Error> {
        let (column, options) = (self.column, self.options);
        let Buffers { unpacker, dictionary_body, .. } = &mut *self.buffers;
        let body = dictionary_bytes(page, column.codec, unpacker, dictionary_body, &options);
        trace.unpacked = body.as_ref().ok().filter(|(_, unpacked)| *unpacked).map(|(body, _)| kept(body));
        let body = body.map(|(body, unpacked)| (body.offset()..body.end(), unpacked));
        if let Ok((span, unpacked)) = &body {
            trace.origin = if *unpacked { Origin::Body } else { Origin::File };
            let mut steps = Trace::default();
            steps.step("entries", span.clone(), format_args!("{} values", trace.info.num_values));
            trace.steps = steps.steps;
        }
        // Tells the fault, if there is one, in the words of a plain read.
        self.read_other(page)?;
        let start = body?.0.start;
        let dictionary = &self.buffers.dictionary;
        trace.spans = ValueSpans::entries(dictionary, column.physical_type, start, &options.limits)?;
        self.entries = Entries { spans: trace.spans.main(), origin: Some(trace.origin) };
        let mut values = Values::new(column.physical_type);
        match (&mut values, dictionary.byte_arrays(), dictionary.bytes()) {
            (Values::ByteArrays(out), Some(entries), _) => out.clone_from(entries),
            (values, _, Some(bytes)) => from_bytes(values, bytes),
            _ => {}
        }
        trace.values = Some(values);
        Ok(())
    }

    fn trace_data(&mut self, page: RawPage<'a>, trace: &mut PageTrace) -> Result<(), Error> {
        let (column, options) = (self.column, self.options);
        // What the walks meet first is told by the read below, in the same words.
        let walked = self.walk_data(&page, trace);
        let entries = std::mem::take(&mut self.entries);
        let has_dictionary = self.has_dictionary;
        let mut values = Values::new(column.physical_type);
        let read = self.data(page).and_then(|mut page| {
            trace.info = page.info().clone();
            let batch = page.take(page.remaining());
            if column.max_definition > 0 {
                batch.definitions.append_to(&mut trace.definitions);
            }
            if column.max_repetition > 0 {
                batch.repetitions.append_to(&mut trace.repetitions);
            }
            page.append(batch.values, &mut values)?;
            page.finish()
        });
        self.entries = entries;
        read?;
        let start = walked?;
        // The body is still where it was unpacked to.
        let Buffers { body, dictionary, .. } = &*self.buffers;
        let (encoding, non_null) = (trace.info.encoding.unwrap_or(Encoding::Plain), values.len());
        let input = match trace.origin {
            Origin::Body => Input::at(body.get(start.buffer..start.buffer + start.len).unwrap_or(&[]), start.offset),
            Origin::File => page.body.slice(start.offset, start.len as u64).unwrap_or(page.body),
        };
        let payload = Payload {
            encoding,
            physical_type: column.physical_type,
            count: non_null,
            bit_width: 0,
            dictionary: has_dictionary.then_some(dictionary),
        };
        if matches!(encoding, Encoding::PlainDictionary | Encoding::RleDictionary) {
            trace.dictionary_origin = self.entries.origin;
        }
        trace.spans = ValueSpans::of(&payload, input, &values, &self.entries.spans, &options)?;
        trace.values = Some(values);
        Ok(())
    }

    /// The steps of a data page's levels and values. Returns where its values start.
    fn walk_data(&mut self, page: &RawPage<'_>, trace: &mut PageTrace) -> Result<Start, Error> {
        let (column, options) = (self.column, self.options);
        let has_dictionary = self.has_dictionary;
        let Buffers { unpacker, body: buffer, dictionary, .. } = &mut *self.buffers;
        let body = Body::unpack(page, column.codec, unpacker, buffer, &options)?;
        let Some(body) = body else { return Ok(Start { offset: 0, buffer: 0, len: 0 }) };
        trace.origin = if body.unpacked { Origin::Body } else { Origin::File };
        trace.levels_origin = if body.unpacked && body.values.is_none() { Origin::Body } else { Origin::File };
        trace.unpacked = body.unpacked.then(|| kept(&body.values.unwrap_or(body.levels)));
        let mut steps = Trace::default();
        let mut input = body.levels;
        let sections = [
            ("repetition levels", body.repetition, column.max_repetition),
            ("definition levels", body.definition, column.max_definition),
        ];
        let mut non_null = body.count;
        for (stream, section, max) in sections {
            let levels = level_steps(&mut input, section, stream, body.count, max, &options, &mut steps);
            trace.levels = steps.steps.clone();
            non_null = levels?;
        }
        let values = body.values.unwrap_or(input);
        let payload = Payload {
            encoding: body.encoding,
            physical_type: column.physical_type,
            count: non_null,
            bit_width: 0,
            dictionary: has_dictionary.then_some(&*dictionary),
        };
        let mut steps = Trace::default();
        let walked = payload.walk(values, &options, &mut Steps::new(&mut steps, "", &options.limits));
        trace.steps = steps.steps;
        walked?;
        // Of an unpacked body of version 2, the buffer holds the values alone.
        let in_buffer = if body.values.is_some() { 0 } else { values.offset() };
        let buffer = usize::try_from(in_buffer).unwrap_or(0);
        Ok(Start { offset: values.offset(), buffer, len: values.bytes().len() })
    }
}

/// A copy of bytes, with their offset.
fn kept(body: &Input<'_>) -> (u64, Vec<u8>) {
    (body.offset(), body.bytes().to_vec())
}

/// Where the values of a page start, and how many bytes they have.
#[derive(Clone, Copy, Debug)]
struct Start {
    offset: u64,
    /// In the buffer, if the body was unpacked to one.
    buffer: usize,
    len: usize,
}

/// The fields of a page's header.
fn header(page: &RawPage<'_>) -> Result<Vec<Step>, Error> {
    let mut trace = Trace::default();
    PageHeader::walk(&mut { page.whole }, &mut |(name, span, value)| {
        let detail = match value {
            Value::Bool(value) => value.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Struct => "fields".to_owned(),
            Value::Binary(len) => format!("{len} bytes"),
            Value::List { len, .. } => format!("{len} elements"),
            Value::Double => "a number".to_owned(),
            Value::Other => "passed over".to_owned(),
        };
        trace.step(name, span, detail);
    })?;
    Ok(trace.steps)
}

/// The steps of a section of levels, which is taken from `input`. Returns how many of them are `max`.
fn level_steps(
    input: &mut Input<'_>,
    section: Section,
    stream: &'static str,
    count: usize,
    max: u8,
    options: &Options,
    trace: &mut Trace,
) -> Result<usize, Error> {
    let start = *input;
    let mut own = match section {
        Section::V2(len) => Input::at(input.take(len, Part::Page(stream))?, start.offset()),
        Section::V1(_) => *input,
    };
    if max == 0 {
        return Ok(count);
    }
    let mut steps = Steps::new(trace, stream, &options.limits);
    let hybrid = match section {
        Section::V2(_) => Hybrid::new(own, count, width(max), options)?,
        Section::V1(Encoding::BitPacked) => {
            let mut packed = BitPacked::new(&mut own, count, width(max), options)?;
            *input = own;
            steps.step("levels", start.offset()..own.offset(), format_args!("{count} values"), 0)?;
            let (mut levels, mut found) = ([0; 256], 0);
            while packed.remaining() > 0 {
                let levels = &mut levels[..packed.remaining().min(256)];
                packed.decode(levels)?;
                found += levels.iter().filter(|&&level| level == u16::from(max)).count();
            }
            return Ok(found);
        }
        Section::V1(_) => {
            let hybrid = Hybrid::with_length(input, count, width(max), options)?;
            let bytes = (input.offset() - start.offset()).saturating_sub(4);
            let to = input.offset().min(start.offset() + 4);
            steps.step("length", start.offset()..to, format_args!("{bytes} bytes of runs"), 0)?;
            hybrid
        }
    };
    let mut walk = hybrid.clone();
    runs(hybrid, "levels", options, &mut steps)?;
    let (mut levels, mut found) = ([0u8; 256], 0);
    while walk.remaining() > 0 {
        let levels = &mut levels[..walk.remaining().min(256)];
        walk.decode(levels)?;
        found += levels.iter().filter(|&&level| level == max).count();
    }
    Ok(found)
}

/// The values whose bytes these are.
fn from_bytes(values: &mut Values, bytes: &[u8]) {
    match values {
        Values::Booleans(values) | Values::Fixed { bytes: values, .. } => values.extend_from_slice(bytes),
        Values::Int32(values) => values.extend(bytes.as_chunks().0.iter().map(|&value| i32::from_le_bytes(value))),
        Values::Int64(values) => values.extend(bytes.as_chunks().0.iter().map(|&value| i64::from_le_bytes(value))),
        Values::Float(values) => values.extend(bytes.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value))),
        Values::Double(values) => values.extend(bytes.as_chunks().0.iter().map(|&value| f64::from_le_bytes(value))),
        Values::ByteArrays(_) | Values::Numbers(_) => {}
    }
}
