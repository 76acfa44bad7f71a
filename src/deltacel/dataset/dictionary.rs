//! A column of categories in Parquet whose dictionary is kept as it is.
//!
//! For readers of Arrow and pandas the dictionary page of a column is the list of its categories, in their order, those
//! that no row has among them. The writer of the `parquet` crate makes a dictionary of its own, of the values of rows in
//! the order in which they come; so these columns are encoded here. Only text: of numbers and booleans no reader of Arrow
//! looks at the dictionary, and their categories come back as values.
//!
//! Source: Parquet format, "Data Pages", "Dictionary Encoding", "Run Length Encoding / Bit-Packing Hybrid".

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{AnyDictionaryArray, Array, ArrayRef};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::obs::values::{Value, getter};
use super::obs::write::ZSTD_LEVEL;
use crate::zstd::Compressor;

/// Rows of a page: a multiple of the eight that are packed together.
const ROWS: usize = 1 << 16;

/// A column of categories that are text.
pub(super) fn of_text(array: &ArrayRef) -> Option<&dyn AnyDictionaryArray> {
    let DataType::Dictionary(_, values) = array.data_type() else { return None };
    let is_text = matches!(**values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    array.as_any_dictionary_opt().filter(|_| is_text)
}

/// The pages of such a column, and what the footer says of them.
pub(super) fn chunk(
    column: &dyn AnyDictionaryArray,
    description: &ColumnDescPtr,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let fault = |what: &str| ParquetError::General(format!("column {:?}: {what}", description.name()));
    let unknown = || fault("its type is not supported");
    let mut categories = Vec::new();
    let mut places: HashMap<&str, u32> = HashMap::new();
    let values = getter(column.values()).ok_or_else(unknown)?;
    // A value that the dictionary has twice is one category.
    let mut place = |text| {
        let next = u32::try_from(places.len()).ok();
        *places.entry(text).or_insert_with(|| {
            categories.push(text);
            next.unwrap_or(u32::MAX)
        })
    };
    let places_of_values: Vec<Option<u32>> = (0..column.values().len())
        .map(|at| match values(at) {
            Value::String(text) => Some(place(text)),
            _ => None,
        })
        .collect();
    let keys = getter(column.keys()).ok_or_else(unknown)?;
    let codes: Vec<Option<u32>> = (0..column.len())
        .map(|row| match keys(row) {
            Value::Int(key) => usize::try_from(key).ok().and_then(|key| *places_of_values.get(key)?),
            _ => None,
        })
        .collect();
    let nullable = description.max_def_level() > 0;
    if !nullable && codes.contains(&None) {
        return Err(fault("a value is missing where none may be"));
    }

    let mut pages = Pages { sink: TrackedWrite::new(Vec::new()), packed: 0, unpacked: 0 };
    let mut content = Vec::new();
    for text in &categories {
        let length = u32::try_from(text.len()).map_err(|_| fault("a category is longer than 4 GiB"))?;
        content.extend_from_slice(&length.to_le_bytes());
        content.extend_from_slice(text.as_bytes());
    }
    let num_values = u32::try_from(categories.len()).map_err(|_| fault("it has too many categories"))?;
    pages.write(&content, |buf| Page::DictionaryPage {
        buf,
        num_values,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    })?;
    let first_data_page = pages.packed;
    // Some readers know no width of 0.
    let width = num_values.saturating_sub(1).checked_ilog2().map_or(1, |log| log + 1);
    for rows in codes.chunks(ROWS) {
        content.clear();
        if nullable {
            let levels = packed(rows.iter().map(|code| u32::from(code.is_some())), 1);
            content.extend_from_slice(&u32::try_from(levels.len()).unwrap_or(u32::MAX).to_le_bytes());
            content.extend_from_slice(&levels);
        }
        content.extend(u8::try_from(width));
        content.extend_from_slice(&packed(rows.iter().filter_map(|code| *code), width));
        pages.write(&content, |buf| Page::DataPage {
            buf,
            num_values: u32::try_from(rows.len()).unwrap_or(u32::MAX), // at most `ROWS`
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        })?;
    }
    let Pages { sink, packed, unpacked } = pages;
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX); // of bytes or rows in memory
    let metadata = ColumnChunkMetaData::builder(description.clone())
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_total_compressed_size(number(packed))
        .set_total_uncompressed_size(number(unpacked))
        .set_num_values(number(codes.len()))
        .set_dictionary_page_offset(Some(0))
        .set_data_page_offset(number(first_data_page))
        .build()?;
    let (bytes_written, rows_written) = (packed as u64, codes.len() as u64);
    let (bloom_filter, column_index, offset_index) = (None, None, None);
    let close = ColumnCloseResult { bytes_written, rows_written, metadata, bloom_filter, column_index, offset_index };
    Ok((sink.into_inner()?.into(), close))
}

/// Pages one behind the other, and their bytes with headers, as they are and unpacked.
struct Pages {
    sink: TrackedWrite<Vec<u8>>,
    packed: usize,
    unpacked: usize,
}

impl Pages {
    fn write(&mut self, content: &[u8], page: impl FnOnce(Bytes) -> Page) -> Result<(), ParquetError> {
        let no_memory = || ParquetError::External(std::io::Error::from(std::io::ErrorKind::OutOfMemory).into());
        let mut compressor = Compressor::new().ok_or_else(no_memory)?;
        let mut frame = Vec::new();
        compressor
            .plain(content, ZSTD_LEVEL, &mut frame)
            .map_err(|refused| ParquetError::General(refused.name().to_owned()))?;
        let page = CompressedPage::new(page(frame.into()), content.len());
        let spec = SerializedPageWriter::new(&mut self.sink).write_page(page)?;
        (self.packed, self.unpacked) = (self.packed + spec.compressed_size, self.unpacked + spec.uncompressed_size);
        Ok(())
    }
}

/// One run of numbers of `width` bits, in groups of eight; the last group is filled up with zeros. No run of no numbers.
fn packed(numbers: impl Iterator<Item = u32>, width: u32) -> Vec<u8> {
    let (mut bits, mut used, mut count) = (0_u64, 0, 0_usize);
    let mut body = Vec::new();
    for number in numbers {
        bits |= u64::from(number) << used;
        used += width;
        count += 1;
        while used >= 8 {
            body.push(bits.to_le_bytes()[0]);
            (bits, used) = (bits >> 8, used - 8);
        }
    }
    let groups = count.div_ceil(8);
    body.push(bits.to_le_bytes()[0]);
    body.resize(groups * width as usize, 0);
    let mut run = Vec::new();
    if groups > 0 {
        let mut header = groups << 1 | 1;
        while header >= 0x80 {
            run.push(header.to_le_bytes()[0] | 0x80);
            header >>= 7;
        }
        run.push(header.to_le_bytes()[0]);
    }
    run.append(&mut body);
    run
}
