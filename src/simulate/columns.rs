//! Columns by which decoders of Parquet's encodings are compared, in pages as writers cut them: of 20,000 values, the
//! bound that parquet-java, Arrow C++ and arrow-rs share, which are less than the 1 MiB that they allow as well.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::{below, normal, stream};
use crate::buffer::Buffer;
use crate::error::Error;
use crate::parquet::encoding::delta_binary_packed::{Delta, usual_block};
use crate::parquet::encoding::{
    byte_stream_split, delta_binary_packed, delta_byte_array, delta_length_byte_array, dictionary, plain,
};
use crate::parquet::{ByteArrays, Decoder, Dictionary, Encoding, Input, Options, Payload, PhysicalType, Scratch};

/// The columns there are.
///
/// - `delta_i32_sorted`, `delta_i64_sorted`: row numbers with gaps below 50, times with gaps below 1,000.
/// - `delta_i32_random`, `delta_i64_random`: differences of another number of bits, from none to all but two, in every
///   miniblock.
/// - `bss_f32`, `bss_f64`: normal variates in BYTE_STREAM_SPLIT.
/// - `dict_i32`, `dict_str`: 1,000 entries, each as likely; strings of 10 to 24 bytes.
/// - `delta_length`: strings of 8 to 32 bytes.
/// - `delta_bytes_url`: sorted addresses of 48 bytes on average, which share 33 with the one before.
/// - `plain_i64`: any bits.
pub const CASES: [&str; 11] = [
    "delta_i32_sorted",
    "delta_i64_sorted",
    "delta_i32_random",
    "delta_i64_random",
    "bss_f32",
    "bss_f64",
    "dict_i32",
    "dict_str",
    "delta_length",
    "delta_bytes_url",
    "plain_i64",
];

/// Values of a page at most.
const PAGE: usize = 20_000;

/// Entries of a dictionary.
const ENTRIES: usize = 1_000;

/// Values to be decoded at a time: what most engines on Arrow data take. With the values they stay in the second-level
/// cache.
pub const BATCH: usize = 8_192;

/// Values of a column at most that benches make: as many more as are asked for are the same pages, decoded again. These do
/// not fit the first two levels of caches, nor do branches learn them, but they come from the third, as pages do that were
/// just read and decompressed. From main memory, copying them would take longer than decoding them.
pub const DISTINCT: usize = 500_000;

/// The value section of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The section.
    pub bytes: Vec<u8>,
    /// Its values.
    pub values: usize,
}

/// A column without nulls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name among [`CASES`].
    pub case: &'static str,
    /// Encoding of the pages.
    pub encoding: Encoding,
    /// Type of the values.
    pub physical_type: PhysicalType,
    /// The dictionary page, in PLAIN.
    pub dictionary: Option<Page>,
    /// The data pages.
    pub pages: Vec<Page>,
}

impl Page {
    /// Reads it as a dictionary page.
    ///
    /// # Errors
    /// None for a page that was made here.
    pub fn read_dictionary(
        &self,
        physical_type: PhysicalType,
        dictionary: &mut Dictionary,
        options: &Options,
    ) -> Result<(), Error> {
        let input = Input::new(&self.bytes);
        match physical_type.width() {
            Some(width) => dictionary.read_fixed(input, self.values, width, options),
            None => dictionary.read_byte_arrays(input, self.values, options),
        }
    }
}

impl Column {
    /// So many values of a case; none if there is no such case. Other seeds give other values.
    pub fn new(case: &str, values: usize, seed: u64) -> Option<Column> {
        let (place, case) = CASES.into_iter().enumerate().find(|(_, name)| *name == case)?;
        let mut rng = stream(seed, place as u64);
        let rng = &mut rng;
        let mut entries = None;
        let (encoding, physical_type, pages) = match case {
            "delta_i32_sorted" => {
                let mut row = 0;
                deltas(values, PhysicalType::Int32, |_| {
                    row += i32::try_from(below(rng, 50)).unwrap_or(0);
                    row
                })
            }
            "delta_i64_sorted" => {
                let mut time = 1_700_000_000_000_000;
                deltas(values, PhysicalType::Int64, |_| {
                    time += i64::try_from(below(rng, 1_000)).unwrap_or(0);
                    time
                })
            }
            "delta_i32_random" => {
                let mut value = 0i32;
                let mut differences = Differences::of::<i32>(rng);
                deltas(values, PhysicalType::Int32, |i| {
                    value = value.wrapping_add(i32::cut(differences.next(i)));
                    value
                })
            }
            "delta_i64_random" => {
                let mut value = 0i64;
                let mut differences = Differences::of::<i64>(rng);
                deltas(values, PhysicalType::Int64, |i| {
                    value = value.wrapping_add(differences.next(i));
                    value
                })
            }
            "bss_f32" => {
                let split = |values: &[f32], out: &mut _| byte_stream_split::encode(values, 4, out);
                #[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
                let pages = pages(values, |_| normal(rng) as f32, split);
                (Encoding::ByteStreamSplit, PhysicalType::Float, pages)
            }
            "bss_f64" => {
                let split = |values: &[f64], out: &mut _| byte_stream_split::encode(values, 8, out);
                (Encoding::ByteStreamSplit, PhysicalType::Double, pages(values, |_| normal(rng), split))
            }
            "dict_i32" => {
                let mut bytes = Vec::new();
                plain::encode(&(0..ENTRIES).map(|_| rng.next_u32()).collect::<Vec<_>>(), &mut bytes);
                entries = Some(Page { bytes, values: ENTRIES });
                (Encoding::RleDictionary, PhysicalType::Int32, indices(values, rng))
            }
            "dict_str" => {
                let words: Vec<_> = (0..ENTRIES).map(|_| text(rng, 10..=24)).collect();
                let mut bytes = Vec::new();
                plain::encode_byte_arrays(&ByteArrays::from_values(words), &mut bytes);
                entries = Some(Page { bytes, values: ENTRIES });
                (Encoding::RleDictionary, PhysicalType::ByteArray, indices(values, rng))
            }
            "delta_length" => {
                let encode = |values: &[_], out: &mut _| {
                    delta_length_byte_array::encode(&ByteArrays::from_values(values), out);
                };
                let pages = pages(values, |_| text(rng, 8..=32), encode);
                (Encoding::DeltaLengthByteArray, PhysicalType::ByteArray, pages)
            }
            "delta_bytes_url" => {
                let mut item = 0;
                let encode = |values: &[_], out: &mut _| {
                    delta_byte_array::encode(&ByteArrays::from_values(values), out);
                };
                let pages = pages(values, |_| address(rng, &mut item), encode);
                (Encoding::DeltaByteArray, PhysicalType::ByteArray, pages)
            }
            _ => (Encoding::Plain, PhysicalType::Int64, pages(values, |_| rng.next_u64(), plain::encode)),
        };
        Some(Column { case, encoding, physical_type, dictionary: entries, pages })
    }

    /// What a decoder has to know of a page.
    pub fn payload<'a>(&self, page: &Page, dictionary: &'a Dictionary) -> Payload<'a> {
        Payload {
            encoding: self.encoding,
            physical_type: self.physical_type,
            count: page.values,
            bit_width: 0,
            dictionary: Some(dictionary),
        }
    }
}

/// Pages of values, each made from its place in its page.
fn pages<T>(values: usize, mut next: impl FnMut(usize) -> T, encode: impl Fn(&[T], &mut Vec<u8>)) -> Vec<Page> {
    let page = |start| {
        let values: Vec<T> = (0..PAGE.min(values - start)).map(&mut next).collect();
        let mut bytes = Vec::new();
        encode(&values, &mut bytes);
        Page { bytes, values: values.len() }
    };
    (0..values).step_by(PAGE).map(page).collect()
}

fn deltas<T: Delta>(
    values: usize,
    physical_type: PhysicalType,
    next: impl FnMut(usize) -> T,
) -> (Encoding, PhysicalType, Vec<Page>) {
    let encode = |values: &[T], out: &mut Vec<u8>| delta_binary_packed::encode(values, usual_block::<T>(), out);
    (Encoding::DeltaBinaryPacked, physical_type, pages(values, next, encode))
}

fn indices(values: usize, rng: &mut ChaCha8Rng) -> Vec<Page> {
    let encode = |indices: &[u32], out: &mut _| {
        dictionary::encode_indices(indices, dictionary::index_width(ENTRIES), out);
    };
    pages(values, |_| u32::try_from(below(rng, ENTRIES)).unwrap_or(0), encode)
}

/// Differences that are not negative, so that a small one keeps its miniblock narrow whatever the others' are.
struct Differences<'a> {
    rng: &'a mut ChaCha8Rng,
    bits: u32,
    miniblock: usize,
    mask: u64,
}

impl Differences<'_> {
    fn of<T: Delta>(rng: &mut ChaCha8Rng) -> Differences<'_> {
        let (block, miniblocks) = usual_block::<T>();
        Differences { rng, bits: T::BITS, miniblock: block / miniblocks, mask: 0 }
    }

    /// The difference that leads to value `i` of a page. The first value has none.
    fn next(&mut self, i: usize) -> i64 {
        if i % self.miniblock == 1 {
            self.mask = (1 << below(self.rng, self.bits as usize - 1)) - 1;
        }
        (self.rng.next_u64() & self.mask).cast_signed()
    }
}

/// Letters and digits.
fn text(rng: &mut ChaCha8Rng, lengths: std::ops::RangeInclusive<usize>) -> Vec<u8> {
    let length = lengths.start() + below(rng, lengths.end() - lengths.start() + 1);
    (0..length).map(|_| b"abcdefghijklmnopqrstuvwxyz012345"[below(rng, 32)]).collect()
}

/// The next address.
fn address(rng: &mut ChaCha8Rng, item: &mut u64) -> Vec<u8> {
    *item += 1 + below(rng, 200) as u64;
    let (shop, shelf, item) = (*item / 1_000_000, *item / 10_000 % 100, *item % 10_000);
    let mut address = format!("https://shop{shop:04}.example.com/{shelf:02}/{item:04}-").into_bytes();
    address.extend(text(rng, 2..=20));
    address
}

/// Decodes columns as a reader does: page by page, in batches, into memory that it keeps.
#[derive(Debug)]
pub struct Reader {
    options: Options,
    batch: usize,
    scratch: Scratch,
    dictionary: Dictionary,
    words: Buffer<u64>,
    arrays: ByteArrays,
}

/// Values of a batch.
#[derive(Debug, Clone, Copy)]
pub enum Batch<'a> {
    /// Of a fixed width.
    Fixed(&'a [u8]),
    /// Of any length.
    ByteArrays(&'a ByteArrays),
}

impl Reader {
    /// A reader that decodes so many values at a time.
    pub fn new(options: Options, batch: usize) -> Reader {
        let (scratch, dictionary) = (Scratch::new(), Dictionary::new());
        Reader { options, batch, scratch, dictionary, words: Buffer::new(), arrays: ByteArrays::new() }
    }

    /// Decodes a column and shows each batch.
    ///
    /// # Errors
    /// None for a column that was made here.
    pub fn read(&mut self, column: &Column, mut visit: impl FnMut(Batch<'_>)) -> Result<(), Error> {
        let width = column.physical_type.width();
        if let Some(page) = &column.dictionary {
            page.read_dictionary(column.physical_type, &mut self.dictionary, &self.options)?;
        }
        for page in &column.pages {
            let payload = column.payload(page, &self.dictionary);
            let mut decoder = Decoder::new(&payload, Input::new(&page.bytes), &self.options, &mut self.scratch)?;
            while decoder.remaining() > 0 {
                let n = decoder.remaining().min(self.batch);
                if let Some(width) = width {
                    self.words.try_resize((n * width).div_ceil(8))?;
                    let out = &mut bytemuck::cast_slice_mut(&mut self.words)[..n * width];
                    decoder.decode::<u8>(out)?;
                    visit(Batch::Fixed(out));
                } else {
                    self.arrays.clear();
                    decoder.decode_byte_arrays(n, &mut self.arrays)?;
                    visit(Batch::ByteArrays(&self.arrays));
                }
            }
            decoder.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Kernels;

    /// Bytes of a column's values behind each other, and their ends if they have any length.
    fn all(column: &Column, kernels: Kernels, batch: usize) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let mut reader = Reader::new(Options::with_kernels(kernels), batch);
        let read = reader.read(column, |batch| match batch {
            Batch::Fixed(values) => bytes.extend_from_slice(values),
            Batch::ByteArrays(values) => {
                for value in values.iter() {
                    bytes.extend_from_slice(value);
                    ends.push(bytes.len());
                }
            }
        });
        read.expect("a column that was made here");
        (bytes, ends)
    }

    #[test]
    fn columns_are_the_same_on_every_level_and_in_any_batches() {
        for case in CASES {
            let column = Column::new(case, 45_001, 3).expect("a case");
            assert_eq!(column.pages.iter().map(|page| page.values).collect::<Vec<_>>(), [20_000, 20_000, 5_001]);
            let expected = all(&column, Kernels::available().next().expect("scalar"), usize::MAX);
            let values = if expected.1.is_empty() {
                expected.0.len() / column.physical_type.width().expect("a width")
            } else {
                expected.1.len()
            };
            assert_eq!(values, 45_001, "{case}");
            for kernels in Kernels::available() {
                assert!(all(&column, kernels, 1_000) == expected, "{case} on {kernels:?}");
            }
            assert_ne!(Column::new(case, 45_001, 4).expect("a case"), column);
        }
        assert_eq!(Column::new("nothing", 1, 0), None);
    }

    #[test]
    fn columns_are_what_is_said_of_them() {
        let read = |case| {
            let column = Column::new(case, 40_000, 0).expect("a case");
            let (bytes, ends) = all(&column, Kernels::auto(), 8_192);
            (column, bytes, ends)
        };
        let (column, bytes, _) = read("delta_i32_sorted");
        let rows: Vec<i32> = bytes.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect();
        assert!(rows.is_sorted() && rows.windows(2).all(|two| two[1] - two[0] < 50));
        assert!(column.pages[0].bytes.len() < 20_000);

        let (_, bytes, ends) = read("delta_bytes_url");
        let starts = [0].into_iter().chain(ends.iter().copied());
        let values: Vec<&[u8]> = starts.zip(&ends).map(|(start, &end)| &bytes[start..end]).collect();
        assert!(values.is_sorted());
        assert_eq!(bytes.len() / values.len(), 48);
        let shared = |two: &[&[u8]]| two[0].iter().zip(two[1]).take_while(|(a, b)| a == b).count();
        let shared: usize = values.windows(2).map(shared).sum();
        assert_eq!(shared / values.len(), 33);
    }
}
