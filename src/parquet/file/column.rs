//! A column chunk: its pages unpacked, levels and values.
//!
//! Source: Parquet format, README.md, "Data Pages", and parquet.thrift, "PageHeader". Each page says how its values are
//! encoded; a chunk may begin with indices into a dictionary and go on without.

use std::ops::Range;

use bytemuck::Pod;

use super::codec::{Codec, Unpacker};
use super::levels::{self, Levels, Section};
use super::page_header::{DataHeader, DataV2Header, DictionaryHeader, PageHeader, PageKind};
use super::pages::{Pages, RawPage};
use super::trace::Entries;
use crate::error::{Error, ErrorKind, Limit, PagePlace, Part, Unsupported};
use crate::input::Input;
use crate::limits::Limits;
use crate::parquet::byte_arrays::ByteArrays;
use crate::parquet::decoder::Decoder;
use crate::parquet::encoding::Scratch;
use crate::parquet::encoding::dictionary::Dictionary;
use crate::parquet::options::Options;
use crate::parquet::payload::{Encoding, Payload, PhysicalType, Values, count};

/// Values that are appended at once: little enough that what was zeroed for them is in the cache still.
const STEP: usize = 1 << 12;

/// Bytes of results for which room is made ahead to each byte that is stored.
const REACH: usize = 64;

const DEFINITIONS: &str = "definition levels";
const REPETITIONS: &str = "repetition levels";

/// What must be known of a column to read a chunk of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// How its values are stored.
    pub physical_type: PhysicalType,
    /// The definition level of values that are there: 0 if all are.
    pub max_definition: u8,
    /// The largest repetition level: 0 without lists.
    pub max_repetition: u8,
    /// How pages are compressed.
    pub codec: Codec,
}

/// Memory that reading a chunk takes. It is kept in use: hand the same to all chunks of a thread.
#[derive(Default)]
pub struct Buffers {
    pub(super) unpacker: Unpacker,
    pub(super) body: Vec<u8>,
    pub(super) dictionary_body: Vec<u8>,
    pub(super) dictionary: Dictionary,
    pub(super) scratch: Scratch,
    pub(super) definitions: Vec<u8>,
    pub(super) repetitions: Vec<u8>,
    /// The last value of the page before, for files whose pages go on from it.
    pub(super) last: Vec<u8>,
}

impl Buffers {
    /// None so far.
    pub fn new() -> Buffers {
        Buffers::default()
    }
}

impl std::fmt::Debug for Buffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffers").field("body", &self.body.len()).finish_non_exhaustive()
    }
}

/// What the footer says that a chunk must hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    pub(super) place: Option<(u32, u32)>,
    pub(super) num_values: Option<i64>,
    pub(super) num_rows: Option<i64>,
}

/// The pages of a column chunk, one after the other. After an error there are no more.
#[derive(Debug)]
pub struct ColumnReader<'a, 'b> {
    pages: Pages<'a>,
    pub(super) column: ColumnType,
    pub(super) buffers: &'b mut Buffers,
    pub(super) options: Options,
    expected: Expected,
    pub(super) has_dictionary: bool,
    /// For traces: where the dictionary's entries are.
    pub(super) entries: Entries,
    any_data: bool,
    values: u64,
    /// Rows seen; not known any more once pages of lists were passed over.
    rows: Option<u64>,
}

/// The sections of a page's body, unpacked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'p> {
    /// What levels are read from.
    pub(super) levels: Input<'p>,
    /// What the values are read from; in a page of version 1 behind the levels.
    pub(super) values: Option<Input<'p>>,
    pub(super) repetition: Section,
    pub(super) definition: Section,
    pub(super) count: usize,
    pub(super) encoding: Encoding,
    /// Offsets are those in the unpacked body.
    pub(super) unpacked: bool,
}

impl<'p> Body<'p> {
    /// Unpacks a data page; `None` if it is no data page.
    pub(super) fn unpack(
        page: &RawPage<'p>,
        codec: Codec,
        unpacker: &mut Unpacker,
        buffer: &'p mut Vec<u8>,
        options: &Options,
    ) -> Result<Option<Body<'p>>, Error> {
        let sizes = (page.header.uncompressed_size, page.header.compressed_size);
        match page.header.kind {
            PageKind::Data(DataHeader { num_values, encoding, definition_encoding, repetition_encoding }) => {
                let count = count(num_values, &options.limits).map_err(|error| error.at(page.header_start))?;
                let compressed = codec != Codec::Uncompressed;
                let body = if compressed {
                    Input::new(unpacker.unpack(codec, page.body, sizes.0, buffer, &options.limits)?)
                } else {
                    same_size(page, sizes)?;
                    page.body
                };
                Ok(Some(Body {
                    levels: body,
                    values: None,
                    repetition: Section::V1(repetition_encoding),
                    definition: Section::V1(definition_encoding),
                    count,
                    encoding,
                    unpacked: compressed,
                }))
            }
            PageKind::DataV2(DataV2Header {
                num_values,
                encoding,
                definition_len,
                repetition_len,
                is_compressed,
                ..
            }) => {
                let count = count(num_values, &options.limits).map_err(|error| error.at(page.header_start))?;
                let length = |found: i64, field, max: u64| {
                    let kind = ErrorKind::OutOfRange { found: found.into(), min: 0, max: max.into() };
                    let length = u64::try_from(found).ok().filter(|&length| length <= max);
                    length.ok_or_else(|| Error::new(kind, Part::PageHeader(field)).at(page.header_start))
                };
                let max = sizes.0.min(sizes.1);
                let repetition = length(repetition_len, "repetition_levels_byte_length", max)?;
                let definition = length(definition_len, "definition_levels_byte_length", max - repetition)?;
                let levels_len = repetition + definition;
                let mut values = page.body;
                let levels = Input::at(values.take(levels_len, Part::Page("levels"))?, page.body.offset());
                let compressed = codec != Codec::Uncompressed && is_compressed;
                // Nothing is no stream of any codec.
                let unpacked = compressed && !values.bytes().is_empty();
                if unpacked {
                    let size = sizes.0 - levels_len;
                    let bytes = unpacker.unpack(codec, values, size, buffer, &options.limits)?;
                    values = Input::at(bytes, levels_len);
                } else {
                    same_size(page, sizes)?;
                }
                Ok(Some(Body {
                    levels,
                    values: Some(values),
                    repetition: Section::V2(repetition),
                    definition: Section::V2(definition),
                    count,
                    encoding,
                    unpacked,
                }))
            }
            PageKind::Dictionary(_) | PageKind::Other(_) => Ok(None),
        }
    }
}

fn same_size(page: &RawPage<'_>, (uncompressed, compressed): (u64, u64)) -> Result<(), Error> {
    if uncompressed == compressed {
        return Ok(());
    }
    let kind = ErrorKind::Inconsistent { found: uncompressed.into(), expected: compressed.into() };
    Err(Error::new(kind, Part::PageHeader("uncompressed_page_size")).at(page.header_start))
}

/// A data page: levels, and the values that are not null. It gives them in batches of any size.
#[derive(Debug)]
pub struct Page<'p> {
    info: PageInfo,
    definitions: Levels<'p>,
    repetitions: Levels<'p>,
    max_definition: u8,
    decoder: Decoder<'p, 'p>,
    /// Levels that are done.
    at: usize,
    context: Context,
    limits: Limits,
    ahead: Ahead,
}

/// What the chunk may still hold from a page on, for room that is made at once.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// Levels, as the footer states.
    values: usize,
    /// Bytes that those stored may decode to.
    bytes: usize,
}

impl Ahead {
    /// Makes room behind `out`, for `each` of a value, unless there is room for the next `n`. The more is only likely: that
    /// there is no memory for it is no error.
    fn reserve<T>(self, n: usize, each: usize, out: &mut Vec<T>) {
        if out.capacity() - out.len() < n * each {
            let more = self.values.saturating_mul(each).min(self.bytes / size_of::<T>());
            let _ = out.try_reserve(more);
        }
    }
}

/// A data page whose levels are decoded.
struct Opened<'p> {
    info: PageInfo,
    definitions: Levels<'p>,
    repetitions: Levels<'p>,
    max_definition: u8,
    payload: Payload<'p>,
    values: Input<'p>,
    scratch: &'p mut Scratch,
    last: &'p mut Vec<u8>,
    context: Context,
    ahead: Ahead,
}

/// Where errors of a page's values are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) page: Option<PagePlace>,
    /// Where the compressed body stands, if the values were unpacked from one.
    pub(super) body: Option<u64>,
}

impl Context {
    pub(super) fn add(self, error: Error) -> Error {
        let error = match self.body {
            // An offset outside the section belongs to something else; there is none.
            Some(body) if error.offset().is_some() => error.unpacked_from(body),
            _ => error,
        };
        match self.page {
            Some(page) => error.in_page(page),
            None => error,
        }
    }
}

/// What is known of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageInfo {
    /// Its number in the chunk, from 0; dictionary pages count.
    pub number: u32,
    /// What its header says.
    pub header: PageHeader,
    /// How its values are encoded; none of other pages than those of data and dictionaries.
    pub encoding: Option<Encoding>,
    /// Values, with nulls; entries of a dictionary.
    pub num_values: u64,
    /// Where its header lies.
    pub header_span: Range<u64>,
    /// Where its body lies, as it is stored.
    pub body_span: Range<u64>,
    /// Of data pages: bytes of the levels, unpacked.
    pub levels_len: Option<u64>,
    /// Of data pages: values that are there.
    pub non_null: Option<u64>,
    /// Of data pages: rows that start in the page.
    pub rows: Option<u64>,
}

impl PageInfo {
    pub(super) fn new(page: &RawPage<'_>) -> PageInfo {
        let (encoding, num_values) = match page.header.kind {
            PageKind::Data(DataHeader { encoding, num_values, .. })
            | PageKind::DataV2(DataV2Header { encoding, num_values, .. })
            | PageKind::Dictionary(DictionaryHeader { encoding, num_values }) => (Some(encoding), num_values),
            PageKind::Other(_) => (None, 0),
        };
        PageInfo {
            number: page.number,
            header: page.header,
            encoding,
            num_values: u64::try_from(num_values).unwrap_or(0),
            header_span: page.header_span(),
            body_span: page.body_span(),
            levels_len: None,
            non_null: None,
            rows: None,
        }
    }

    /// Nulls, as a header of version 2 states them.
    pub fn num_nulls(&self) -> Option<i64> {
        match self.header.kind {
            PageKind::DataV2(header) => Some(header.num_nulls),
            _ => None,
        }
    }
}

/// Some values of a page: their levels, and how many are not null.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Batch<'p> {
    /// Definition levels: the largest where there is a value.
    pub definitions: Levels<'p>,
    /// Repetition levels: 0 where a row starts.
    pub repetitions: Levels<'p>,
    /// Values that are to be decoded.
    pub values: usize,
}

impl<'a, 'b> ColumnReader<'a, 'b> {
    /// The chunk that `pages` holds and nothing else.
    pub fn new(
        pages: Input<'a>,
        column: ColumnType,
        buffers: &'b mut Buffers,
        options: &Options,
    ) -> ColumnReader<'a, 'b> {
        ColumnReader::expecting(pages, column, buffers, options, Expected::default())
    }

    pub(super) fn expecting(
        pages: Input<'a>,
        column: ColumnType,
        buffers: &'b mut Buffers,
        options: &Options,
        expected: Expected,
    ) -> ColumnReader<'a, 'b> {
        buffers.last.clear();
        // Each level stands for a value or for none: a page of fewer values than its levels state has no right answer.
        let mut options = *options;
        options.leniency.declared_counts = false;
        ColumnReader {
            pages: Pages::new(pages),
            column,
            buffers,
            options,
            expected,
            has_dictionary: false,
            entries: Entries::default(),
            any_data: false,
            values: 0,
            rows: Some(0),
        }
    }

    /// What the values are.
    pub fn column(&self) -> ColumnType {
        self.column
    }

    /// The chunk's dictionary, once a page after it was read.
    pub fn dictionary(&self) -> Option<&Dictionary> {
        self.has_dictionary.then_some(&self.buffers.dictionary)
    }

    /// The next data page, if there is one.
    ///
    /// # Errors
    /// Of headers, checksums, codecs, dictionaries, levels and values; [`ErrorKind::Inconsistent`] where there are other
    /// numbers of values or rows than the footer states; [`ErrorKind::Missing`] for indices without a dictionary.
    pub fn next_page(&mut self) -> Result<Option<Page<'_>>, Error> {
        loop {
            let Some(page) = self.next_raw()? else {
                self.check_end()?;
                return Ok(None);
            };
            if self.read_other(&page)?.is_none() {
                return self.data(page).map(Some);
            }
        }
    }

    /// What is known of the next page of any kind, if there is one. Levels are decoded; values are not looked at.
    ///
    /// # Errors
    /// As [`ColumnReader::next_page`], but for those of values.
    pub fn next_info(&mut self) -> Result<Option<PageInfo>, Error> {
        let Some(page) = self.next_raw()? else {
            self.check_end()?;
            return Ok(None);
        };
        if let Some(info) = self.read_other(&page)? {
            return Ok(Some(info));
        }
        Ok(Some(self.open(page)?.info))
    }

    /// Passes over the next `n` levels as far as they fill whole pages, which are not unpacked. Returns how many of them
    /// are left for the next page.
    ///
    /// # Errors
    /// Of headers and dictionaries.
    pub fn skip_pages(&mut self, n: u64) -> Result<u64, Error> {
        let mut left = n;
        loop {
            let before = self.pages.clone();
            let Some(page) = self.next_raw()? else { return Ok(left) };
            let carried = self.options.leniency.carried_prefixes;
            match page.header.kind {
                PageKind::Data(DataHeader { num_values, .. }) | PageKind::DataV2(DataV2Header { num_values, .. }) => {
                    let values = u64::try_from(num_values).unwrap_or(0);
                    if values > left {
                        self.pages = before;
                        return Ok(left);
                    }
                    left -= values;
                    if carried {
                        // The next page may go on from this one.
                        self.data(page)?;
                        continue;
                    }
                    self.any_data = true;
                    self.values += values;
                    let flat = self.column.max_repetition == 0;
                    self.rows = self.rows.filter(|_| flat).map(|rows| rows + values);
                }
                _ => {
                    self.read_other(&page)?;
                }
            }
        }
    }

    /// Appends all that is left of the chunk.
    ///
    /// # Errors
    /// As [`ColumnReader::next_page`], or more bytes than the limits allow.
    pub fn read(&mut self, out: &mut ColumnData) -> Result<(), Error> {
        self.read_to(out, false)
    }

    /// The same; where `sparse`, without the definition levels of a column without lists as long as nothing is null.
    pub(super) fn read_to(&mut self, out: &mut ColumnData, sparse: bool) -> Result<(), Error> {
        let column = self.column;
        while let Some(mut page) = self.next_page()? {
            let batch = page.take(page.remaining());
            page.append_levels(&batch, column, out, sparse);
            page.append(batch.values, &mut out.values)?;
            page.finish()?;
        }
        Ok(())
    }

    fn place(&self, page: Option<u32>) -> Option<PagePlace> {
        self.expected.place.map(|(row_group, column)| PagePlace { row_group, column, page })
    }

    fn named(&self, page: Option<u32>) -> impl Fn(Error) -> Error + use<> {
        let place = self.place(page);
        move |error| match place {
            Some(place) => error.in_page(place),
            None => error,
        }
    }

    pub(super) fn next_raw(&mut self) -> Result<Option<RawPage<'a>>, Error> {
        let name = self.named(Some(self.pages.number()));
        self.pages.next_page().map_err(name)
    }

    /// The end of the chunk holds what the footer states.
    pub(super) fn check_end(&mut self) -> Result<(), Error> {
        let differ =
            |found: u64, expected: Option<i64>| expected.is_some_and(|expected| u64::try_from(expected) != Ok(found));
        let (part, found, expected) = match self.rows {
            _ if differ(self.values, self.expected.num_values) => ("num_values", self.values, self.expected.num_values),
            Some(rows) if differ(rows, self.expected.num_rows) => ("num_rows", rows, self.expected.num_rows),
            _ => return Ok(()),
        };
        let kind = ErrorKind::Inconsistent { found: expected.unwrap_or(0).into(), expected: found.into() };
        Err(self.named(None)(Error::new(kind, Part::Footer(part))))
    }

    /// Reads a dictionary page, or passes over one that is no data page; `None` if it is one.
    pub(super) fn read_other(&mut self, page: &RawPage<'a>) -> Result<Option<PageInfo>, Error> {
        let name = self.named(Some(page.number));
        match page.header.kind {
            PageKind::Data(_) | PageKind::DataV2(_) => return Ok(None),
            PageKind::Other(_) => {}
            PageKind::Dictionary(header) => {
                if self.has_dictionary || self.any_data {
                    let kind = ErrorKind::Repeated { first: 0 };
                    return Err(name(Error::new(kind, Part::Page("dictionary")).at(page.header_start)));
                }
                self.read_dictionary(page, header).map_err(name)?;
                self.has_dictionary = true;
            }
        }
        Ok(Some(PageInfo::new(page)))
    }

    fn read_dictionary(&mut self, page: &RawPage<'a>, header: DictionaryHeader) -> Result<(), Error> {
        let options = &self.options;
        page.check_crc(&options.leniency)?;
        if !matches!(header.encoding, Encoding::Plain | Encoding::PlainDictionary) {
            let kind = ErrorKind::Unsupported(Unsupported::Encoding);
            return Err(Error::new(kind, Part::Page("dictionary")).at(page.header_start));
        }
        let Buffers { unpacker, dictionary_body, dictionary, .. } = &mut *self.buffers;
        let (body, unpacked) = dictionary_bytes(page, self.column.codec, unpacker, dictionary_body, options)?;
        let count = count(header.num_values, &options.limits).map_err(|error| error.at(page.header_start))?;
        let read = match (self.column.physical_type, self.column.physical_type.width()) {
            (_, Some(width)) => dictionary.read_fixed(body, count, width, options),
            (PhysicalType::Boolean, None) => dictionary.read_booleans(body, count, options),
            (_, None) => dictionary.read_byte_arrays(body, count, options),
        };
        let context = Context { page: None, body: unpacked.then_some(page.body.offset()) };
        read.map_err(|error| context.add(error.in_stream("dictionary")))
    }

    pub(super) fn data(&mut self, page: RawPage<'a>) -> Result<Page<'_>, Error> {
        let options = self.options;
        let Opened { info, definitions, repetitions, max_definition, payload, values, scratch, last, context, ahead } =
            self.open(page)?;
        let decoder = decoder(&payload, values, &options, scratch, last).map_err(|error| {
            let placed = error.offset().is_some();
            context.add(if placed { error } else { error.at(values.offset()) })
        })?;
        Ok(Page {
            info,
            definitions,
            repetitions,
            max_definition,
            decoder,
            at: 0,
            context,
            limits: options.limits,
            ahead,
        })
    }

    /// Unpacks a data page and decodes its levels.
    fn open(&mut self, page: RawPage<'a>) -> Result<Opened<'_>, Error> {
        let mut context = Context { page: self.place(Some(page.number)), body: None };
        let column = self.column;
        let options = self.options;
        let Buffers { unpacker, body, dictionary, scratch, definitions, repetitions, last, .. } = &mut *self.buffers;
        let opened = page
            .check_crc(&options.leniency)
            .and_then(|()| Body::unpack(&page, column.codec, unpacker, body, &options));
        let body = opened.map_err(|error| context.add(error))?;
        let Some(body) = body else {
            return Err(context.add(Error::new(ErrorKind::Missing, Part::PageHeader("type")).at(page.header_start)));
        };
        let compressed = page.body.offset();
        let levels_unpacked = body.unpacked && body.values.is_none();
        let at_levels = Context { body: levels_unpacked.then_some(compressed), ..context };
        let mut input = body.levels;
        let start = input.offset();
        let read = levels::read(
            &mut input,
            body.repetition,
            body.count,
            column.max_repetition,
            repetitions,
            &options,
            REPETITIONS,
        );
        let repetitions = read.map_err(|error| at_levels.add(error))?;
        if self.values == 0
            && body.count > 0
            && let found @ 1.. = repetitions.get(0)
        {
            // A row starts with the chunk.
            let kind = ErrorKind::OutOfRange { found: found.into(), min: 0, max: 0 };
            return Err(at_levels.add(Error::new(kind, Part::Page(REPETITIONS)).at(start).index(0)));
        }
        let read = levels::read(
            &mut input,
            body.definition,
            body.count,
            column.max_definition,
            definitions,
            &options,
            DEFINITIONS,
        );
        let definitions = read.map_err(|error| at_levels.add(error))?;
        let mut info = PageInfo::new(&page);
        info.levels_len = Some(input.offset() - start);
        let non_null = definitions.count(column.max_definition);
        let rows = repetitions.count(0);
        (info.non_null, info.rows) = (Some(non_null as u64), Some(rows as u64));
        self.any_data = true;
        let stated = self.expected.num_values.and_then(|stated| u64::try_from(stated).ok()).unwrap_or(0);
        let ahead = Ahead {
            values: usize::try_from(stated.saturating_sub(self.values)).unwrap_or(0),
            bytes: page.whole.bytes().len().saturating_mul(REACH),
        };
        self.values += body.count as u64;
        self.rows = self.rows.map(|all| all + rows as u64);
        context.body = body.unpacked.then_some(compressed);
        let payload = Payload {
            encoding: body.encoding,
            physical_type: column.physical_type,
            count: non_null,
            bit_width: 0,
            dictionary: self.has_dictionary.then_some(&*dictionary),
        };
        let values = body.values.unwrap_or(input);
        let max_definition = column.max_definition;
        Ok(Opened { info, definitions, repetitions, max_definition, payload, values, scratch, last, context, ahead })
    }
}

/// The decoder of a page's values. The encodings that only levels have are refused.
fn decoder<'p>(
    payload: &Payload<'p>,
    values: Input<'p>,
    options: &Options,
    scratch: &'p mut Scratch,
    last: &mut Vec<u8>,
) -> Result<Decoder<'p, 'p>, Error> {
    if matches!(payload.encoding, Encoding::BitPacked | Encoding::Hybrid) {
        let kind = ErrorKind::Unsupported(Unsupported::Encoding);
        return Err(Error::new(kind, Part::Values("", "encoding")).at(values.offset()));
    }
    if !(options.leniency.carried_prefixes && payload.encoding == Encoding::DeltaByteArray) {
        return Decoder::new(payload, values, options, scratch);
    }
    // What the next page may go on from: the last value of this one, put together before any is asked for.
    let mut walk = after(Decoder::new(payload, values, options, scratch)?, last);
    walk.skip(walk.remaining())?;
    let next = scratch.bytes.clone();
    let decoder = after(Decoder::new(payload, values, options, scratch)?, last);
    *last = next;
    Ok(decoder)
}

fn after<'a, 's>(decoder: Decoder<'a, 's>, last: &[u8]) -> Decoder<'a, 's> {
    match decoder {
        Decoder::DeltaBytes(decoder, width) => Decoder::DeltaBytes(decoder.after(last), width),
        other => other,
    }
}

/// The body of a dictionary page, and whether it was compressed.
pub(super) fn dictionary_bytes<'p>(
    page: &RawPage<'p>,
    codec: Codec,
    unpacker: &mut Unpacker,
    buffer: &'p mut Vec<u8>,
    options: &Options,
) -> Result<(Input<'p>, bool), Error> {
    let sizes = (page.header.uncompressed_size, page.header.compressed_size);
    if codec == Codec::Uncompressed {
        same_size(page, sizes)?;
        return Ok((page.body, false));
    }
    let bytes = unpacker.unpack(codec, page.body, sizes.0, buffer, &options.limits)?;
    Ok((Input::new(bytes), true))
}

impl<'p> Page<'p> {
    /// What is known of the page.
    pub fn info(&self) -> &PageInfo {
        &self.info
    }

    /// All its definition levels.
    pub fn definitions(&self) -> Levels<'p> {
        self.definitions
    }

    /// All its repetition levels.
    pub fn repetitions(&self) -> Levels<'p> {
        self.repetitions
    }

    /// Levels that are left.
    pub fn remaining(&self) -> usize {
        self.definitions.len() - self.at
    }

    /// Takes the next `n` levels. The values among them are then to be decoded or passed over.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn take(&mut self, n: usize) -> Batch<'p> {
        let (definitions, repetitions) = (self.definitions.part(self.at, n), self.repetitions.part(self.at, n));
        self.at += n;
        Batch { definitions, repetitions, values: definitions.count(self.max_definition) }
    }

    /// Passes over the next `n` levels and their values.
    ///
    /// # Errors
    /// Those of the encoding's decoder.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        let batch = self.take(n);
        self.skip_values(batch.values)
    }

    /// Values that are not decoded yet.
    pub fn values_left(&self) -> usize {
        self.decoder.remaining()
    }

    /// The next values of a fixed width: see [`Decoder::decode`].
    ///
    /// # Errors
    /// Those of the encoding's decoder.
    ///
    /// # Panics
    /// As [`Decoder::decode`].
    pub fn decode<T: Pod>(&mut self, out: &mut [T]) -> Result<(), Error> {
        self.decoder.decode(out).map_err(|error| self.context.add(error))
    }

    /// Appends the next `n` values of any length.
    ///
    /// # Errors
    /// Those of the encoding's decoder, or more bytes than the limits allow.
    ///
    /// # Panics
    /// If there are fewer, or values have a fixed width.
    pub fn decode_byte_arrays(&mut self, n: usize, out: &mut ByteArrays) -> Result<(), Error> {
        self.decoder.decode_byte_arrays(n, out).map_err(|error| self.context.add(error))
    }

    /// The next indices into the chunk's dictionary, if the page holds such.
    ///
    /// # Errors
    /// Those of the encoding's decoder.
    ///
    /// # Panics
    /// If there are fewer, or the page holds none: see [`PageInfo::encoding`].
    pub fn decode_indices(&mut self, out: &mut [u32]) -> Result<(), Error> {
        match &mut self.decoder {
            Decoder::Dictionary(decoder) => decoder.decode_indices(out).map_err(|error| self.context.add(error)),
            _ => panic!("a page without indices"),
        }
    }

    /// Passes over the next `n` values.
    ///
    /// # Errors
    /// Those of the encoding's decoder.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip_values(&mut self, n: usize) -> Result<(), Error> {
        self.decoder.skip(n).map_err(|error| self.context.add(error))
    }

    /// Appends the levels of a batch. Where `sparse`, definition levels may be left out as long as nothing is null.
    pub(super) fn append_levels(&self, batch: &Batch<'p>, column: ColumnType, out: &mut ColumnData, sparse: bool) {
        let n = batch.definitions.len();
        let plain = out.definitions.is_empty() && batch.values == n && column.max_repetition == 0;
        if column.max_definition > 0 && !(sparse && plain) {
            self.ahead.reserve(out.len + n - out.definitions.len(), 1, &mut out.definitions);
            out.definitions.resize(out.len, column.max_definition);
            batch.definitions.append_to(&mut out.definitions);
        }
        if column.max_repetition > 0 {
            self.ahead.reserve(n, 1, &mut out.repetitions);
            batch.repetitions.append_to(&mut out.repetitions);
        }
        out.len += n;
    }

    /// Appends the next `n` values to those in `out`.
    ///
    /// # Errors
    /// Those of the encoding's decoder, or more bytes than the limits allow.
    ///
    /// # Panics
    /// If there are fewer, or `out` is of another type.
    pub fn append(&mut self, n: usize, out: &mut Values) -> Result<(), Error> {
        match out {
            Values::Booleans(out) => self.append_to(n, 1, out),
            Values::Int32(out) => self.append_to(n, 1, out),
            Values::Int64(out) => self.append_to(n, 1, out),
            Values::Float(out) => self.append_to(n, 1, out),
            Values::Double(out) => self.append_to(n, 1, out),
            Values::Fixed { width, bytes } => self.append_to(n, *width, bytes),
            Values::ByteArrays(out) => {
                let allowed = usize::try_from(self.limits.max_output_bytes).unwrap_or(usize::MAX);
                out.expect(self.ahead.values, self.ahead.bytes.min(allowed));
                self.decode_byte_arrays(n, out)
            }
            Values::Numbers(_) => panic!("pages hold no bare numbers"),
        }
    }

    fn append_to<T: Pod>(&mut self, n: usize, each: usize, out: &mut Vec<T>) -> Result<(), Error> {
        let limits = &self.limits;
        let needed = (out.len() as u64).saturating_add((n * each) as u64).saturating_mul(size_of::<T>() as u64);
        let part = Part::Values("", "values");
        Limits::check(needed, limits.max_output_bytes, Limit::OutputBytes, part).map_err(|e| self.context.add(e))?;
        let ahead = Ahead {
            bytes: self.ahead.bytes.min(usize::try_from(limits.max_output_bytes - needed).unwrap_or(usize::MAX)),
            ..self.ahead
        };
        ahead.reserve(n, each, out);
        let mut left = n;
        while left > 0 {
            let these = left.min(STEP);
            let start = out.len();
            out.resize(start + these * each, T::zeroed());
            self.decode(&mut out[start..])?;
            left -= these;
        }
        Ok(())
    }

    /// Passes over what is left.
    ///
    /// # Errors
    /// Those of the encoding's decoder, or bytes follow the last value.
    pub fn finish(self) -> Result<(), Error> {
        let context = self.context;
        self.decoder.finish().map(drop).map_err(|error| context.add(error))
    }
}

/// The levels and values of a chunk, or of more. Keeps its memory; hand it to every read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnData {
    /// Levels of each kind, that is values with nulls.
    pub len: usize,
    /// Definition levels; none where all are 0.
    pub definitions: Vec<u8>,
    /// Repetition levels; none where all are 0.
    pub repetitions: Vec<u8>,
    /// The values that are not null.
    pub values: Values,
}

impl ColumnData {
    /// No values of such a type so far.
    pub fn new(physical_type: PhysicalType) -> ColumnData {
        ColumnData { len: 0, definitions: Vec::new(), repetitions: Vec::new(), values: Values::new(physical_type) }
    }

    /// Forgets the values, and keeps their memory.
    pub fn clear(&mut self) {
        self.len = 0;
        self.definitions.clear();
        self.repetitions.clear();
        self.values.clear();
    }
}
