//! Parquet files and column chunks in.

use arbitrary::Unstructured;
use tilekern::kernels::Kernels;
use tilekern::parquet::encoding::{delta_binary_packed, dictionary, hybrid, plain};
use tilekern::parquet::file::{Buffers, Codec, ColumnData, ColumnReader, ColumnType, File};
use tilekern::parquet::{ByteArrays, Input, Options, PhysicalType, Values};
use tilekern::{Error, ErrorKind, Limits};

/// Small enough for a fuzzer's memory, and for its patience with runs of many values.
fn options(kernels: Kernels) -> Options {
    let mut limits = Limits::default().with_output_bytes(4 << 20);
    limits.max_values = 1 << 17;
    limits.max_scratch_bytes = 4 << 20;
    Options::with_kernels(kernels).limits(limits)
}

/// Row groups and columns of a file that are read: a footer can name the same bytes very often.
const MOST: usize = 8;

/// Chunks start here, so that offsets are seen to be absolute.
const START: u64 = 1 << 40;

/// What reading a chunk gives: what was read before the fault, and that.
#[derive(Debug, PartialEq)]
struct Outcome {
    data: ColumnData,
    fault: Option<String>,
}

/// Reads all of a chunk. A fault of the data names a place in it, or is about the footer.
fn whole(reader: &mut ColumnReader<'_, '_>, span: std::ops::Range<u64>) -> Outcome {
    let mut data = ColumnData::new(reader.column().physical_type);
    let fault = reader.read(&mut data).err();
    if let Some(error) = &fault {
        locates(error, span);
    }
    Outcome { data, fault: fault.map(|error| error.to_string()) }
}

fn locates(error: &Error, span: std::ops::Range<u64>) {
    let limited = matches!(error.kind(), ErrorKind::LimitExceeded { .. });
    // Where pages and footer differ, neither is the place.
    let differ = matches!(error.kind(), ErrorKind::Inconsistent { .. } | ErrorKind::Missing);
    let within = error.offset().is_some_and(|at| at <= span.end);
    assert!(limited || differ || within, "no place in {span:?}: {error}");
}

/// Reads a chunk in batches, of which every third is passed over, and compares it with the whole.
fn pieces(mut reader: ColumnReader<'_, '_>, expected: &ColumnData) -> Result<(), Error> {
    let (mut levels, mut values, mut turn) = (0, 0, 0usize);
    while let Some(mut page) = reader.next_page()? {
        while page.remaining() > 0 {
            let batch = page.take(page.remaining().min(1 + turn * 7 % 50));
            let len = batch.definitions.len();
            for i in 0..len {
                let stored = |all: &[u8]| all.get(levels + i).copied();
                assert!(stored(&expected.definitions).is_none_or(|level| level == batch.definitions.get(i)));
                assert!(stored(&expected.repetitions).is_none_or(|level| level == batch.repetitions.get(i)));
            }
            if turn % 3 == 2 {
                page.skip_values(batch.values)?;
            } else {
                let mut some = ColumnData::new(reader_type(expected));
                page.append(batch.values, &mut some.values)?;
                assert!(part(&expected.values, values, batch.values) == some.values, "{} values", batch.values);
            }
            levels += len;
            values += batch.values;
            turn += 1;
        }
        page.finish()?;
    }
    assert_eq!(levels, expected.len);
    Ok(())
}

/// The type that such values have; one of those that are stored alike.
fn reader_type(data: &ColumnData) -> PhysicalType {
    match &data.values {
        Values::Booleans(_) => PhysicalType::Boolean,
        Values::Int32(_) => PhysicalType::Int32,
        Values::Int64(_) => PhysicalType::Int64,
        Values::Float(_) => PhysicalType::Float,
        Values::Double(_) => PhysicalType::Double,
        Values::Fixed { width, .. } => PhysicalType::FixedLenByteArray(*width),
        _ => PhysicalType::ByteArray,
    }
}

/// Some of the values.
fn part(values: &Values, at: usize, n: usize) -> Values {
    match values {
        Values::Booleans(values) => Values::Booleans(values[at..at + n].to_vec()),
        Values::Int32(values) => Values::Int32(values[at..at + n].to_vec()),
        Values::Int64(values) => Values::Int64(values[at..at + n].to_vec()),
        Values::Float(values) => Values::Float(values[at..at + n].to_vec()),
        Values::Double(values) => Values::Double(values[at..at + n].to_vec()),
        Values::Fixed { width, bytes } => {
            Values::Fixed { width: *width, bytes: bytes[at * width..(at + n) * width].to_vec() }
        }
        Values::ByteArrays(values) => Values::ByteArrays(ByteArrays::from_values((at..at + n).map(|i| values.get(i)))),
        other => panic!("{other:?}"),
    }
}

/// Any bytes as a file: no panic, bounded memory, and the same values on every kernel level, whole and in batches.
pub fn parquet_file(data: &[u8]) {
    let mut first = None;
    for kernels in Kernels::available() {
        let found = file(data, &options(kernels));
        if let Some(first) = &first {
            assert!(*first == found, "{kernels:?}: {found:?}, plainly {first:?}");
        }
        first = Some(found);
    }
}

fn file(data: &[u8], options: &Options) -> Result<Vec<Outcome>, String> {
    let file = match File::open(data, options) {
        Ok(file) => file,
        Err(error) => {
            locates(&error, 0..data.len() as u64);
            return Err(error.to_string());
        }
    };
    let (mut buffers, mut found) = (Buffers::new(), Vec::new());
    for group in 0..file.metadata().row_groups.len().min(MOST) {
        for column in 0..file.metadata().schema.columns.len().min(MOST) {
            let pages = file.pages(group, column, &mut buffers);
            let outcome = match file.column(group, column, &mut buffers) {
                Ok(mut reader) => whole(&mut reader, 0..data.len() as u64),
                Err(error) => {
                    let data = ColumnData::new(PhysicalType::Int32);
                    Outcome { data, fault: Some(error.to_string()) }
                }
            };
            if outcome.fault.is_none() {
                let pages = pages.expect("its pages were read");
                let levels: u64 = pages.iter().filter(|page| page.non_null.is_some()).map(|page| page.num_values).sum();
                assert_eq!(usize::try_from(levels), Ok(outcome.data.len));
                let again = file.column(group, column, &mut buffers).expect("it was there");
                pieces(again, &outcome.data).expect("it was read as a whole");
            }
            found.push(outcome);
        }
    }
    Ok(found)
}

/// What a chunk's footer says of it, from four bytes.
fn column(choice: [u8; 4]) -> ColumnType {
    const CODECS: [Codec; 8] = [
        Codec::Uncompressed,
        Codec::Uncompressed,
        Codec::Snappy,
        Codec::Gzip,
        Codec::Brotli,
        Codec::Lz4,
        Codec::Zstd,
        Codec::Lz4Raw,
    ];
    ColumnType {
        physical_type: super::parquet::kind(choice[0], choice[0] / 8),
        max_definition: choice[1] % 5,
        max_repetition: choice[2] % 4,
        codec: CODECS[usize::from(choice[3]) % CODECS.len()],
    }
}

/// Any bytes as the pages of a column chunk: no panic, bounded memory, and the same values on every kernel level, whole
/// and in batches.
pub fn parquet_chunk(data: &[u8]) {
    fn reader<'a, 'b>(
        pages: &'a [u8],
        column: ColumnType,
        buffers: &'b mut Buffers,
        options: &Options,
    ) -> ColumnReader<'a, 'b> {
        ColumnReader::new(Input::at(pages, START), column, buffers, options)
    }
    let mut data = Unstructured::new(data);
    let (Ok(choice), Ok(leniency)) = (data.arbitrary(), data.arbitrary()) else { return };
    let (column, pages) = (column(choice), data.take_rest());
    let span = START..START + pages.len() as u64;
    let mut first: Option<Outcome> = None;
    let mut buffers = Buffers::new();
    for kernels in Kernels::available() {
        let options = options(kernels).leniency(super::parquet::leniency(leniency));
        let found = whole(&mut reader(pages, column, &mut buffers, &options), span.clone());
        if found.fault.is_none() {
            pieces(reader(pages, column, &mut buffers, &options), &found.data).expect("it was read as a whole");
            let left = reader(pages, column, &mut buffers, &options).skip_pages(found.data.len as u64);
            assert_eq!(left.expect("it was read as a whole"), 0);
        }
        if let Some(first) = &first {
            assert!(*first == found, "{kernels:?}: {found:?}, plainly {first:?}");
        }
        first = Some(found);
    }
}

/// Structures of Apache Thrift's compact protocol.
#[derive(Default)]
struct Struct {
    bytes: Vec<u8>,
    last: i16,
}

impl Struct {
    fn field(&mut self, id: i16, kind: u8) {
        let delta = u8::try_from(id - self.last).expect("fields in order");
        self.last = id;
        self.bytes.push(delta << 4 | kind);
    }

    fn uleb(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
            value >>= 7;
        }
        self.bytes.push(u8::try_from(value).expect("seven bits"));
    }

    /// Numbers that are not negative.
    fn number(mut self, id: i16, kind: u8, value: usize) -> Struct {
        self.field(id, kind);
        self.uleb(2 * value as u64);
        self
    }

    fn i32(self, id: i16, value: usize) -> Struct {
        self.number(id, 5, value)
    }

    fn i64(self, id: i16, value: usize) -> Struct {
        self.number(id, 6, value)
    }

    fn text(mut self, id: i16, text: &str) -> Struct {
        self.field(id, 8);
        self.uleb(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    fn inner(mut self, id: i16, inner: Struct) -> Struct {
        self.field(id, 12);
        self.bytes.extend(inner.end());
        self
    }

    /// A list of elements, each with its bytes.
    fn list(mut self, id: i16, kind: u8, elements: impl IntoIterator<Item = Vec<u8>>) -> Struct {
        let elements: Vec<_> = elements.into_iter().collect();
        self.field(id, 9);
        self.bytes.push(u8::try_from(elements.len()).expect("few") << 4 | kind);
        self.bytes.extend(elements.concat());
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

/// A page: its header and its body, which is not compressed.
fn page(kind: usize, inner: (i16, Struct), body: &[u8]) -> Vec<u8> {
    let header = Struct::default().i32(1, kind).i32(2, body.len()).i32(3, body.len()).inner(inner.0, inner.1);
    [header.end(), body.to_vec()].concat()
}

fn data_page(count: usize, encoding: usize, body: &[u8]) -> Vec<u8> {
    let inner = Struct::default().i32(1, count).i32(2, encoding).i32(3, 3).i32(4, 3);
    page(0, (5, inner), body)
}

fn data_page_v2(count: usize, nulls: usize, encoding: usize, levels: &[u8], body: &[u8]) -> Vec<u8> {
    let sizes = Struct::default().i32(1, count).i32(2, nulls).i32(3, count).i32(4, encoding);
    page(3, (8, sizes.i32(5, levels.len()).i32(6, 0)), &[levels, body].concat())
}

/// Chunks with their type, levels and codec, as [`column`] takes them.
fn chunks() -> Vec<([u8; 4], usize, Vec<u8>)> {
    let numbers: Vec<i64> = (0..300).map(|i| i * i).collect();
    let mut deltas = Vec::new();
    delta_binary_packed::encode(&numbers, (128, 4), &mut deltas);
    let mut plainly = Vec::new();
    plain::encode(&numbers, &mut plainly);
    let strings = ByteArrays::from_values(["", "one", "another"]);
    let mut entries = Vec::new();
    plain::encode_byte_arrays(&strings, &mut entries);
    let mut indices = Vec::new();
    dictionary::encode_indices(&[0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 1], 2, &mut indices);
    let levels: Vec<u32> = (0..20).map(|i| u32::from(i % 3 > 0)).collect();
    let present = levels.iter().filter(|&&level| level == 1).count();
    let (mut v1, mut v2, mut some) = (Vec::new(), Vec::new(), Vec::new());
    hybrid::encode_with_length(&levels, 1, &mut v1);
    hybrid::encode(&levels, 1, &mut v2);
    plain::encode(&numbers[..present], &mut some);
    let lists: Vec<u32> = (0..20).map(|i| u32::from(i % 4 > 0)).collect();
    let mut nested = Vec::new();
    hybrid::encode_with_length(&lists, 1, &mut nested);
    nested.extend([&v1[..], &some[..]].concat());
    let dictionary = page(2, (7, Struct::default().i32(1, 3).i32(2, 0)), &entries);
    vec![
        ([2, 0, 0, 0], 300, data_page(300, 5, &deltas)),
        ([2, 0, 0, 0], 600, [data_page(300, 5, &deltas), data_page(300, 0, &plainly)].concat()),
        ([6, 0, 0, 0], 11, [dictionary.clone(), data_page(11, 8, &indices)].concat()),
        ([6, 0, 0, 0], 14, [dictionary, data_page(11, 8, &indices), data_page(3, 0, &entries)].concat()),
        ([2, 1, 0, 0], 20, data_page(20, 0, &[&v1[..], &some[..]].concat())),
        ([2, 1, 0, 0], 20, data_page_v2(20, 20 - present, 0, &v2, &some)),
        ([2, 1, 1, 0], 20, data_page(20, 0, &nested)),
    ]
}

/// A file of one column with such a chunk, as its only row group.
fn of_one(choice: [u8; 4], count: usize, pages: &[u8]) -> Vec<u8> {
    let physical = match choice[0] {
        2 => 2,
        _ => 6,
    };
    let root = Struct::default().text(4, "schema").i32(5, 1).end();
    let repetition = if choice[2] > 0 { 2 } else { usize::from(choice[1]) };
    let leaf = Struct::default().i32(1, physical).i32(3, repetition).text(4, "v").end();
    let name = vec![1, b'v'];
    let facts = Struct::default().i32(1, physical).list(2, 5, [vec![0]]).list(3, 8, [name]).i32(4, 0);
    let facts = facts.i64(5, count).i64(6, pages.len()).i64(7, pages.len()).i64(9, 4);
    let chunk = Struct::default().i64(2, 4).inner(3, facts).end();
    let rows = if choice[2] > 0 { 5 } else { count };
    let group = Struct::default().list(1, 12, [chunk]).i64(2, pages.len()).i64(3, rows).end();
    let footer = Struct::default().i32(1, 1).list(2, 12, [root, leaf]).i64(3, rows).list(4, 12, [group]).end();
    let len = u32::try_from(footer.len()).expect("short").to_le_bytes();
    [b"PAR1", pages, &footer, &len, b"PAR1"].concat()
}

/// Chunks and files of every kind of page.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let seed = |(choice, count, pages): ([u8; 4], usize, Vec<u8>)| match target {
        "parquet_file" => of_one(choice, count, &pages),
        // Strict.
        _ => [&choice[..], &[0, 0], &pages].concat(),
    };
    chunks().into_iter().map(seed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made here is sound, so that a fuzzer starts with all that can be read.
    #[test]
    fn seeds_are_sound() {
        let options = Options::new().expect("kernels");
        for (choice, count, pages) in chunks() {
            let mut buffers = Buffers::new();
            let mut reader = ColumnReader::new(Input::at(&pages, START), column(choice), &mut buffers, &options);
            let found = whole(&mut reader, START..START);
            assert_eq!((found.fault, found.data.len), (None, count), "{choice:?}");
            let bytes = of_one(choice, count, &pages);
            let outcomes = file(&bytes, &options).expect("a footer");
            assert_eq!(outcomes.len(), 1);
            assert_eq!((&outcomes[0].fault, outcomes[0].data.len), (&None, count), "{choice:?}");
        }
    }
}
