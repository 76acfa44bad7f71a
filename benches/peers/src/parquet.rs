//! Value sections of Parquet pages, one thread: tilekern's decoders beside those of the `parquet` crate, on the same bytes.
//!
//! A column is decoded as a reader does it: page by page, [`BATCH`] values at a time, into memory that is reused and, with
//! that many values, stays in the second-level cache on both sides. It is the batch of most engines on Arrow data. Batches
//! end with pages.
//!
//! The peer's decoders are those that its own readers stand on (`parquet::encodings::decoding`). Values of any length it
//! can give in three ways, all of which are timed; what counts is the quickest that writes the values' bytes or, where it
//! need not copy any, hands out slices of the page. Its readers of Arrow arrays cannot reuse their output.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType as ArrowType;
use bytes::Bytes;
use parquet::arrow::array_reader::{ArrayReader, make_byte_array_reader, make_byte_view_array_reader};
use parquet::basic::Encoding as PeerEncoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::encodings::decoding::{
    ByteStreamSplitDecoder, Decoder, DeltaBitPackDecoder, DeltaByteArrayDecoder, DeltaLengthByteArrayDecoder,
    DictDecoder, PlainDecoder,
};
use parquet::encodings::rle::RleDecoder;
use parquet::errors::Result;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};
use serde_json::{Value, json};
use tilekern::kernels::Kernels;
use tilekern::parquet::{Dictionary, Encoding, Options, PhysicalType};
use tilekern::simulate::columns::{BATCH, Batch, CASES, Column, DISTINCT, Reader};

use crate::turns::{median, ratio, take_turns};

pub const HELP: &str = "
  parquet    value sections of Parquet pages, beside the parquet crate's decoders
             --values N        values of each case [default: 10000000]
             --batch N         values decoded at a time [default: 8192]
             CASE...           these cases alone
";

const PEER: &str = "parquet 60.1.0";

const ROUNDS: usize = 15;

/// A kernel level on a case, beside the quickest of the peer's decoders.
pub struct Row {
    case: &'static str,
    kernel: &'static str,
    m_values_per_s: f64,
    gb_per_s: f64,
    peer: String,
    peer_m_values_per_s: f64,
    x_peer: f64,
    x_memcpy: f64,
}

impl Row {
    pub fn to_json(&self) -> Value {
        json!({
            "case": self.case,
            "kernel": self.kernel,
            "m_values_per_s": self.m_values_per_s,
            "gb_per_s": self.gb_per_s,
            "peer": self.peer,
            "peer_m_values_per_s": self.peer_m_values_per_s,
            "x_peer": self.x_peer,
            "x_memcpy": self.x_memcpy,
        })
    }
}

pub fn print(rows: &[Row]) {
    println!(
        "{:<18} {:<8} {:>10} {:>7} {:>9} {:>7}  {:>10} peer",
        "case", "kernel", "M values/s", "GB/s", "x memcpy", "x peer", "M values/s"
    );
    for row in rows {
        println!(
            "{:<18} {:<8} {:>10.0} {:>7.2} {:>9.2} {:>7.2}  {:>10.0} {}",
            row.case,
            row.kernel,
            row.m_values_per_s,
            row.gb_per_s,
            row.x_memcpy,
            row.x_peer,
            row.peer_m_values_per_s,
            row.peer
        );
    }
}

/// All cases, or those that are named.
pub fn run(arguments: &[String]) -> std::result::Result<Vec<Row>, String> {
    let (mut values, mut batch, mut cases) = (10_000_000, BATCH, Vec::new());
    let mut arguments = arguments.iter().skip(1).filter(|argument| *argument != "--json");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--values" | "--batch" => {
                let number = arguments.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
                let number = number.ok_or(format!("{argument} needs a number above 0"))?;
                *(if argument == "--values" { &mut values } else { &mut batch }) = number;
            }
            case => cases.push(CASES.into_iter().find(|name| *name == case).ok_or(format!("no case {case:?}"))?),
        }
    }
    if cases.is_empty() {
        cases = CASES.to_vec();
    }
    Ok(cases.into_iter().flat_map(|case| run_case(case, values, batch)).collect())
}

fn run_case(case: &'static str, values: usize, batch: usize) -> Vec<Row> {
    let (distinct, repeat) = (values.min(DISTINCT), values.div_ceil(DISTINCT));
    let values = distinct * repeat;
    let column = Column::new(case, distinct, 0).expect("a case");
    let kernels: Vec<Kernels> = Kernels::available().collect();
    let mut readers: Vec<_> =
        kernels.iter().map(|&kernels| Reader::new(Options::with_kernels(kernels), batch)).collect();
    let mut batches: Vec<_> = readers.iter_mut().map(|reader| batches(&column, reader)).collect();
    let (sizes, digests) = batches.pop().expect("a level");
    assert!(batches.iter().all(|(_, other)| *other == digests), "levels give other values");
    let mut peers = peers(&column, batch);
    for (name, peer) in &mut peers {
        assert_same(name, &mut **peer, &digests);
    }
    let most = sizes.iter().copied().max().unwrap_or(0);
    let (from, mut to) = (vec![1u8; most], vec![0u8; most]);
    let mut copy = || {
        for &size in std::iter::repeat_n(&sizes, repeat).flatten() {
            black_box(&mut to)[..size].copy_from_slice(black_box(&from[..size]));
        }
    };
    let column = &column;
    let mut levels: Vec<_> = readers
        .iter_mut()
        .map(|reader| {
            move || {
                for _ in 0..repeat {
                    let read = reader.read(column, |batch| _ = black_box(batch));
                    read.expect("a sound column");
                }
            }
        })
        .collect();
    let mut others: Vec<_> = peers
        .iter_mut()
        .map(|(_, peer)| {
            move || {
                for _ in 0..repeat {
                    peer.read(&mut |values| _ = black_box(values));
                }
            }
        })
        .collect();

    let mut runs: Vec<&mut dyn FnMut()> = vec![&mut copy];
    runs.extend(levels.iter_mut().map(|run| run as _));
    runs.extend(others.iter_mut().map(|run| run as _));
    let times = take_turns(ROUNDS, &mut runs);
    let (copy, times) = times.split_first().expect("the copy");
    let (levels, others) = times.split_at(kernels.len());
    let speed = |times: &[f64]| values as f64 / 1e6 / median(times.iter().copied());
    let names = peers.iter().map(|(name, _)| name);
    let (peer, best) = names.zip(others).max_by(|a, b| speed(a.1).total_cmp(&speed(b.1))).expect("a peer");
    let bytes = repeat * sizes.iter().sum::<usize>();
    let rows = kernels.iter().zip(levels).map(|(kernels, times)| Row {
        case,
        kernel: kernels.name(),
        m_values_per_s: speed(times),
        gb_per_s: speed(times) * bytes as f64 / values as f64 / 1e3,
        peer: format!("{PEER} {peer}"),
        peer_m_values_per_s: speed(best),
        x_peer: ratio(best, times),
        x_memcpy: ratio(copy, times),
    });
    rows.collect()
}

/// Bytes of every batch, which are values and an offset for each that may have any length, and its digest.
fn batches(column: &Column, reader: &mut Reader) -> (Vec<usize>, Vec<(usize, u64)>) {
    let (mut sizes, mut digests) = (Vec::new(), Vec::new());
    let read = reader.read(column, |batch| match batch {
        Batch::Fixed(values) => {
            sizes.push(values.len());
            digests.push(digest([values].into_iter()));
        }
        Batch::ByteArrays(values) => {
            sizes.push(values.bytes().len() + 4 * values.len());
            digests.push(digest(values.iter()));
        }
    });
    read.expect("a sound column");
    (sizes, digests)
}

/// A batch of a peer's.
#[derive(Clone, Copy)]
enum Given<'a> {
    Fixed(&'a [u8]),
    Slices(&'a [ByteArray]),
    Array(&'a ArrayRef),
    Offsets(&'a [i32], &'a [u8]),
}

/// A batch's values in few bytes, so that whole columns can be compared.
fn digest<'a>(values: impl Iterator<Item = &'a [u8]>) -> (usize, u64) {
    let (mut n, mut hasher) = (0, DefaultHasher::new());
    for value in values {
        n += 1;
        value.hash(&mut hasher);
    }
    (n, hasher.finish())
}

fn fixed<T: bytemuck::Pod>(values: &[T]) -> Given<'_> {
    Given::Fixed(bytemuck::cast_slice(values))
}

fn slices(values: &[ByteArray]) -> Given<'_> {
    Given::Slices(values)
}

impl Given<'_> {
    fn digest(self) -> (usize, u64) {
        match self {
            Given::Fixed(values) => digest([values].into_iter()),
            Given::Slices(values) => digest(values.iter().map(ByteArray::data)),
            Given::Array(array) if *array.data_type() == ArrowType::BinaryView => {
                digest(array.as_binary_view().iter().flatten())
            }
            Given::Array(array) => digest(array.as_binary::<i32>().iter().flatten()),
            Given::Offsets(offsets, bytes) => {
                let place = |offset: i32| usize::try_from(offset).expect("an offset");
                digest(offsets.windows(2).map(|two| &bytes[place(two[0])..place(two[1])]))
            }
        }
    }
}

/// Compares all values of the peer with those of our levels.
fn assert_same(name: &str, peer: &mut dyn Peer, ours: &[(usize, u64)]) {
    let mut theirs = Vec::with_capacity(ours.len());
    peer.read(&mut |values| theirs.push(values.digest()));
    assert!(theirs == ours, "{name} gives other values");
}

trait Peer {
    /// Decodes the column and shows each batch.
    fn read(&mut self, visit: &mut dyn FnMut(Given<'_>));
}

/// What the peer offers for a column.
fn peers(column: &Column, batch: usize) -> Vec<(&'static str, Box<dyn Peer>)> {
    let pages: Arc<[(Bytes, usize)]> =
        column.pages.iter().map(|page| (Bytes::from(page.bytes.clone()), page.values)).collect();
    let dictionary = column.dictionary.as_ref().map(|page| (Bytes::from(page.bytes.clone()), page.values));
    match (column.encoding, column.physical_type) {
        (Encoding::DeltaBinaryPacked, PhysicalType::Int32) => {
            vec![("DeltaBitPackDecoder", numbers::<Int32Type>(pages, DeltaBitPackDecoder::new(), batch))]
        }
        (Encoding::DeltaBinaryPacked, _) => {
            vec![("DeltaBitPackDecoder", numbers::<Int64Type>(pages, DeltaBitPackDecoder::new(), batch))]
        }
        (Encoding::ByteStreamSplit, PhysicalType::Float) => {
            vec![("ByteStreamSplitDecoder", numbers::<FloatType>(pages, ByteStreamSplitDecoder::new(), batch))]
        }
        (Encoding::ByteStreamSplit, _) => {
            vec![("ByteStreamSplitDecoder", numbers::<DoubleType>(pages, ByteStreamSplitDecoder::new(), batch))]
        }
        (Encoding::Plain, _) => vec![("PlainDecoder", numbers::<Int64Type>(pages, PlainDecoder::new(0), batch))],
        (Encoding::RleDictionary, PhysicalType::Int32) => {
            let (bytes, entries) = dictionary.expect("a dictionary");
            vec![("DictDecoder", numbers::<Int32Type>(pages, with_dictionary(bytes, entries), batch))]
        }
        // Its DictDecoder hands out counted references to the entries, and writes no bytes.
        (Encoding::RleDictionary, _) => {
            let entries = entries(column);
            let loops = Entries { pages: pages.clone(), entries, indices: vec![0; batch], out: (vec![], vec![]) };
            let mut peers = arrow(pages, dictionary, PeerEncoding::RLE_DICTIONARY, batch);
            peers.push(("RleDecoder and a plain loop", Box::new(loops)));
            peers
        }
        (Encoding::DeltaLengthByteArray, _) => {
            let mut peers = arrow(pages.clone(), None, PeerEncoding::DELTA_LENGTH_BYTE_ARRAY, batch);
            peers.push(("DeltaLengthByteArrayDecoder", strings(pages, DeltaLengthByteArrayDecoder::new(), batch)));
            peers
        }
        _ => {
            let mut peers = arrow(pages.clone(), None, PeerEncoding::DELTA_BYTE_ARRAY, batch);
            peers.push(("DeltaByteArrayDecoder", strings(pages, DeltaByteArrayDecoder::new(), batch)));
            peers
        }
    }
}

fn with_dictionary<T: DataType>(bytes: Bytes, entries: usize) -> DictDecoder<T> {
    let mut plain = PlainDecoder::<T>::new(0);
    plain.set_data(bytes, entries).expect("a sound dictionary");
    let mut decoder = DictDecoder::new();
    decoder.set_dict(Box::new(plain)).expect("a sound dictionary");
    decoder
}

/// A decoder of values, and what it fills.
struct Values<D, T: DataType> {
    pages: Arc<[(Bytes, usize)]>,
    decoder: D,
    out: Vec<T::T>,
    given: fn(&[T::T]) -> Given<'_>,
}

fn numbers<T: DataType>(pages: Arc<[(Bytes, usize)]>, decoder: impl Decoder<T> + 'static, batch: usize) -> Box<dyn Peer>
where
    T::T: bytemuck::Pod,
{
    Box::new(Values { pages, decoder, out: vec![T::T::default(); batch], given: fixed })
}

fn strings(
    pages: Arc<[(Bytes, usize)]>,
    decoder: impl Decoder<ByteArrayType> + 'static,
    batch: usize,
) -> Box<dyn Peer> {
    Box::new(Values::<_, ByteArrayType> { pages, decoder, out: vec![ByteArray::default(); batch], given: slices })
}

impl<D: Decoder<T>, T: DataType> Peer for Values<D, T> {
    fn read(&mut self, visit: &mut dyn FnMut(Given<'_>)) {
        for (bytes, values) in self.pages.iter() {
            self.decoder.set_data(bytes.clone(), *values).expect("a sound page");
            let mut left = *values;
            while left > 0 {
                let n = left.min(self.out.len());
                let n = self.decoder.get(&mut self.out[..n]).expect("values");
                visit((self.given)(&self.out[..n]));
                left -= n;
            }
        }
    }
}

/// The entries of a dictionary of strings.
fn entries(column: &Column) -> Vec<Vec<u8>> {
    let mut dictionary = Dictionary::new();
    let options = Options::with_kernels(Kernels::auto());
    let page = column.dictionary.as_ref().expect("a dictionary");
    page.read_dictionary(column.physical_type, &mut dictionary, &options).expect("a sound dictionary");
    dictionary.byte_arrays().expect("strings").iter().map(<[u8]>::to_vec).collect()
}

/// Its decoder of indices, and a loop that appends entries and offsets to memory that is reused.
struct Entries {
    pages: Arc<[(Bytes, usize)]>,
    entries: Vec<Vec<u8>>,
    indices: Vec<i32>,
    out: (Vec<i32>, Vec<u8>),
}

impl Peer for Entries {
    fn read(&mut self, visit: &mut dyn FnMut(Given<'_>)) {
        for (bytes, values) in self.pages.iter() {
            let mut decoder = RleDecoder::new(bytes[0]);
            decoder.set_data(bytes.slice(1..)).expect("a sound page");
            let mut left = *values;
            while left > 0 {
                let n = left.min(self.indices.len());
                let n = decoder.get_batch(&mut self.indices[..n]).expect("indices");
                let (offsets, bytes) = &mut self.out;
                offsets.clear();
                bytes.clear();
                offsets.push(0);
                for &index in &self.indices[..n] {
                    bytes.extend_from_slice(&self.entries[usize::try_from(index).expect("an index")]);
                    offsets.push(i32::try_from(bytes.len()).expect("less than 2 GiB"));
                }
                visit(Given::Offsets(offsets, bytes));
                left -= n;
            }
        }
    }
}

/// Its readers of Arrow arrays of bytes: offsets and bytes, or views.
fn arrow(
    pages: Arc<[(Bytes, usize)]>,
    dictionary: Option<(Bytes, usize)>,
    encoding: PeerEncoding,
    batch: usize,
) -> Vec<(&'static str, Box<dyn Peer>)> {
    let message = parse_message_type("message m { required binary c; }").expect("a schema");
    let schema = SchemaDescriptor::new(Arc::new(message));
    let chunk = Chunk { pages, dictionary, encoding, at: 0 };
    let reader = |views| Arrow { chunk: chunk.clone(), column: schema.column(0), views, batch };
    let mut readers: Vec<(_, Box<dyn Peer>)> = vec![("Binary array reader", Box::new(reader(false)))];
    if encoding != PeerEncoding::RLE_DICTIONARY {
        readers.push(("BinaryView array reader", Box::new(reader(true))));
    }
    readers
}

struct Arrow {
    chunk: Chunk,
    column: ColumnDescPtr,
    views: bool,
    batch: usize,
}

impl Peer for Arrow {
    fn read(&mut self, visit: &mut dyn FnMut(Given<'_>)) {
        let chunks = Box::new(Chunks(Some(self.chunk.clone())));
        let column = self.column.clone();
        let mut reader: Box<dyn ArrayReader> = if self.views {
            make_byte_view_array_reader(chunks, column, Some(ArrowType::BinaryView), self.batch, None)
                .expect("a reader")
        } else {
            make_byte_array_reader(chunks, column, Some(ArrowType::Binary), self.batch, None).expect("a reader")
        };
        // Batches end with pages, as those of the other decoders do.
        for (_, values) in self.chunk.pages.iter() {
            let mut left = *values;
            while left > 0 {
                let array = reader.next_batch(left.min(self.batch)).expect("values");
                left -= array.len();
                visit(Given::Array(&array));
            }
        }
    }
}

/// A column chunk in memory.
#[derive(Clone)]
struct Chunk {
    pages: Arc<[(Bytes, usize)]>,
    dictionary: Option<(Bytes, usize)>,
    encoding: PeerEncoding,
    at: usize,
}

impl Iterator for Chunk {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Chunk {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        if let Some((buf, entries)) = self.dictionary.take() {
            let num_values = u32::try_from(entries).expect("a small dictionary");
            return Ok(Some(Page::DictionaryPage { buf, num_values, encoding: PeerEncoding::PLAIN, is_sorted: false }));
        }
        let Some((buf, values)) = self.pages.get(self.at) else { return Ok(None) };
        self.at += 1;
        Ok(Some(Page::DataPage {
            buf: buf.clone(),
            num_values: u32::try_from(*values).expect("a small page"),
            encoding: self.encoding,
            def_level_encoding: PeerEncoding::RLE,
            rep_level_encoding: PeerEncoding::RLE,
            statistics: None,
        }))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        unreachable!("nothing is skipped")
    }

    fn skip_next_page(&mut self) -> Result<()> {
        unreachable!("nothing is skipped")
    }
}

struct Chunks(Option<Chunk>);

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(|chunk| Ok(Box::new(chunk) as _))
    }
}

impl PageIterator for Chunks {}
