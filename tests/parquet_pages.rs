//! Pages and footers of Parquet files that a test has made: what other writers did long ago, and what none should do.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/thrift.rs"]
mod thrift;

use std::io::Write;

use counting::counted;
use thrift::{Struct, data_page, data_page_v2, deep, dictionary_page, hostile_footers, schema};
use tilekern::parquet::encoding::{delta_binary_packed, delta_byte_array, dictionary, hybrid, plain};
use tilekern::parquet::file::{Buffers, Codec, ColumnData, ColumnReader, ColumnType, File};
use tilekern::parquet::{ByteArrays, Input, Leniency, Options, PhysicalType, Values};
use tilekern::{Error, Limits};

const OPTIONAL: ColumnType =
    ColumnType { physical_type: PhysicalType::Int32, max_definition: 1, max_repetition: 0, codec: Codec::Uncompressed };
const REQUIRED: ColumnType = ColumnType { max_definition: 0, ..OPTIONAL };
const STRINGS: ColumnType = ColumnType { physical_type: PhysicalType::ByteArray, ..REQUIRED };

fn options() -> Options {
    Options::new().unwrap()
}

fn size(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).unwrap()
}

fn read(chunk: &[u8], column: ColumnType, options: &Options) -> Result<ColumnData, Error> {
    let (mut buffers, mut data) = (Buffers::new(), ColumnData::new(column.physical_type));
    ColumnReader::new(Input::new(chunk), column, &mut buffers, options).read(&mut data)?;
    Ok(data)
}

fn int32(values: &[i32]) -> Vec<u8> {
    let mut body = Vec::new();
    plain::encode(values, &mut body);
    body
}

/// What each codec makes of some bytes; of gzip two members, of LZ4 both old forms.
fn packed(bytes: &[u8]) -> Vec<(Codec, Vec<u8>)> {
    let gzip = |bytes: &[u8]| {
        let mut writer =
            flate2::GzBuilder::new().filename("a").extra(b"xy").write(Vec::new(), flate2::Compression::new(6));
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| {
        let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
        zstd_safe::compress(&mut out, bytes, 3).unwrap();
        out
    };
    let (one, two) = bytes.split_at(bytes.len() / 3);
    let mut brotli = Vec::new();
    brotli::BrotliCompress(&mut &bytes[..], &mut brotli, &brotli::enc::BrotliEncoderParams::default()).unwrap();
    let raw = lz4_flex::block::compress(bytes);
    let number = |len: usize| u32::try_from(len).unwrap().to_be_bytes();
    let frame = |bytes: &[u8]| {
        let packed = lz4_flex::block::compress(bytes);
        [&number(bytes.len())[..], &number(packed.len()), &packed].concat()
    };
    vec![
        (Codec::Snappy, snap::raw::Encoder::new().compress_vec(bytes).unwrap()),
        (Codec::Gzip, gzip(bytes)),
        (Codec::Gzip, [gzip(one), gzip(two)].concat()),
        (Codec::Zstd, zstd(bytes)),
        (Codec::Zstd, [zstd(one), zstd(two)].concat()),
        (Codec::Brotli, brotli),
        (Codec::Lz4Raw, raw.clone()),
        (Codec::Lz4, raw),
        (Codec::Lz4, [frame(one), frame(two)].concat()),
    ]
}

#[test]
fn codecs() {
    for values in [vec![7; 300_000], (0..5000).map(|i| i * i).collect(), vec![1]] {
        let body = int32(&values);
        for (codec, packed) in packed(&body) {
            let column = ColumnType { codec, ..REQUIRED };
            let n = i32::try_from(values.len()).unwrap();
            let pages = [data_page(n, 0, size(&body), &packed), data_page_v2([n, 0, 0], [0, 0], size(&body), &packed)];
            for page in pages {
                let data = read(&page, column, &options()).unwrap();
                assert_eq!(data.values, Values::Int32(values.clone()), "{codec:?}");
                // Cut, of another size, or damaged: an error that names the page's body, or the very values.
                let header = page.len() - packed.len();
                for cut in (header..page.len()).step_by(packed.len() / 50 + 1) {
                    read(&page[..cut], column, &options()).unwrap_err();
                }
            }
            for wrong in [size(&body) - 1, size(&body) + 1, 0, i32::MAX] {
                let page = data_page(n, 0, wrong, &packed);
                let (_, largest) = counted(|| {
                    let error = read(&page, column, &options()).unwrap_err();
                    assert!(["compression", "limit_exceeded"].contains(&error.kind().name()), "{codec:?}: {error:?}");
                });
                // Zstd may hold what its blocks can.
                let bound = 4 * body.len() + 600 * packed.len() + (1 << 20);
                assert!(largest <= bound, "{codec:?}, {wrong} bytes stated: {largest} at once for {}", packed.len());
            }
            for cut in (0..packed.len()).step_by(packed.len() / 50 + 1) {
                let page = data_page(n, 0, size(&body), &packed[..cut]);
                read(&page, column, &options()).unwrap_err();
                let mut flipped = packed.clone();
                flipped[cut] ^= 0x41;
                _ = read(&data_page(n, 0, size(&body), &flipped), column, &options());
            }
        }
    }
    let page = data_page(1, 0, 4, &[0; 4]);
    let error = read(&page, ColumnType { codec: Codec::Lzo, ..REQUIRED }, &options()).unwrap_err();
    assert_eq!(error.kind().name(), "unsupported");
    // Nothing is no stream of any codec, and is not unpacked.
    let mut levels = Vec::new();
    hybrid::encode(&[0; 9], 1, &mut levels);
    for codec in [Codec::Snappy, Codec::Gzip, Codec::Zstd, Codec::Brotli, Codec::Lz4Raw] {
        let page = data_page_v2([9, 9, 0], [0, size(&levels)], size(&levels), &levels);
        let data = read(&page, ColumnType { codec, ..OPTIONAL }, &options()).unwrap();
        assert_eq!((data.len, data.values.len()), (9, 0));
        let empty = [dictionary_page(0, 0, &[]), data_page(0, 0, 0, &[])].concat();
        assert_eq!(read(&empty, ColumnType { codec, ..REQUIRED }, &options()).unwrap().len, 0);
    }
}

/// Levels of old files, packed from the highest bit on.
#[test]
fn bit_packed_levels() {
    let body = [&[0b1010_0000][..], &int32(&[5, 6])].concat();
    let header = Struct::default().i32(1, 3).i32(2, 0).i32(3, 4).i32(4, 4);
    let n = size(&body);
    let page = Struct::default().i32(1, 0).i32(2, n).i32(3, n).inside(5, header);
    let data = read(&[page.finish(), body].concat(), OPTIONAL, &options()).unwrap();
    assert_eq!((data.definitions, data.values), (vec![1, 0, 1], Values::Int32(vec![5, 6])));
}

/// PARQUET-246: the first value of a page shares bytes with the last one of the page before.
#[test]
fn prefixes_carried_over_pages() {
    let section = |prefixes: &[i32], suffixes: &[&str]| {
        let lengths: Vec<i32> = suffixes.iter().map(|suffix| i32::try_from(suffix.len()).unwrap()).collect();
        let mut section = Vec::new();
        delta_binary_packed::encode(prefixes, (128, 4), &mut section);
        delta_binary_packed::encode(&lengths, (128, 4), &mut section);
        section.extend(suffixes.concat().bytes());
        data_page(i32::try_from(prefixes.len()).unwrap(), 7, size(&section), &section)
    };
    let chunk = [section(&[0, 3], &["abcd", "x"]), section(&[4], &["y"]), section(&[2, 0], &["z", "w"])].concat();
    let error = read(&chunk, STRINGS, &options()).unwrap_err();
    assert_eq!(error.kind().name(), "prefix_too_long");
    let mut leniency = Leniency::STRICT;
    leniency.carried_prefixes = true;
    let options = options().leniency(leniency);
    let expected = ByteArrays::from_values(["abcd", "abcx", "abcxy", "abz", "w"]);
    assert_eq!(read(&chunk, STRINGS, &options).unwrap().values, Values::ByteArrays(expected));
    // Pages that are passed over count, and so do values.
    let mut buffers = Buffers::new();
    let mut reader = ColumnReader::new(Input::new(&chunk), STRINGS, &mut buffers, &options);
    assert_eq!(reader.skip_pages(4).unwrap(), 1);
    let mut page = reader.next_page().unwrap().unwrap();
    page.skip(1).unwrap();
    let mut out = ByteArrays::new();
    page.decode_byte_arrays(1, &mut out).unwrap();
    assert_eq!(out.get(0), b"w");
}

#[test]
fn stated_numbers_are_not_believed() {
    let options = options();
    let many = i32::MAX;
    let empty = [0u8; 4];
    let mut levels = Vec::new();
    hybrid::encode_with_length(&[1; 8], 1, &mut levels);
    // Two runs of 2^30 levels each.
    let runs = [10u8, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x08, 1, 0x80, 0x80, 0x80, 0x80, 0x08].to_vec();
    let hostile = [
        data_page(many, 0, 4, &empty),
        data_page(many, 5, 4, &empty),
        data_page(many, 8, 1, &[0]),
        data_page(many, 0, size(&levels), &levels),
        data_page(many, 0, size(&runs), &runs),
        data_page(-1, 0, 4, &empty),
        data_page(1, 0, -4, &empty),
        data_page(1, 11, 4, &empty),
        data_page_v2([many, many, 0], [0, 0], 4, &empty),
        data_page_v2([1, 0, 0], [0, many], 4, &empty),
        data_page_v2([1, 0, 0], [-1, 0], 4, &empty),
        dictionary_page(many, 4, &empty),
        dictionary_page(-1, 4, &empty),
        [dictionary_page(1, 4, &empty), dictionary_page(1, 4, &empty)].concat(),
        vec![0],
        vec![0x15; 40],
        vec![0x1c; 4000],
        vec![0x19, 0xf9, 0xff, 0xff, 0xff, 0xff, 0x0f],
        vec![0x18, 0xff, 0xff, 0xff, 0xff, 0x0f],
        vec![0x1b, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x55],
    ];
    for (i, chunk) in hostile.iter().enumerate() {
        for column in [REQUIRED, OPTIONAL, STRINGS, ColumnType { codec: Codec::Zstd, ..OPTIONAL }] {
            for leniency in [Leniency::STRICT, Leniency::LENIENT] {
                let (_, largest) = counted(|| {
                    let error = read(chunk, column, &options.leniency(leniency)).unwrap_err();
                    assert!(error.offset().is_some() || error.kind().name() == "limit_exceeded", "{i}: {error:?}");
                });
                assert!(largest <= 1 << 20, "chunk {i}, {column:?}: {largest} bytes at once");
            }
        }
    }
}

/// A field of a header that is there under its number, in another type, is what no writer makes.
#[test]
fn fields_have_their_types() {
    let options = options();
    let body = int32(&[7]);
    let entry = dictionary_page(1, 4, &body);
    for chunk in [data_page(1, 0, 4, &body), data_page_v2([1, 0, 0], [0, 0], 4, &body), entry] {
        let mut buffers = Buffers::new();
        let mut reader = ColumnReader::new(Input::new(&chunk), REQUIRED, &mut buffers, &options);
        let header = reader.next_trace().unwrap().unwrap().header;
        let mut fields = 0;
        for step in header {
            let at = step.span.start as usize;
            let other: &[u8] = match chunk[at] {
                5 => &[4, 6],
                12 => &[5],
                _ => continue,
            };
            for &kind in other {
                let mut chunk = chunk.clone();
                chunk[at] = kind;
                let error = read(&chunk, REQUIRED, &options).unwrap_err();
                let found = (error.kind().name(), error.offset());
                assert_eq!(found, ("wrong_type", Some(at as u64)), "{}: {error}", step.label);
            }
            fields += 1;
        }
        assert!(fields >= 6, "{fields} fields");
    }
}

/// Levels and values of a page must go together, however lenient the reader: nothing says which are missing.
#[test]
fn fewer_values_than_levels() {
    let mut section = Vec::new();
    delta_binary_packed::encode(&[1i32, 2, 3], (128, 4), &mut section);
    let chunk = data_page(5, 5, size(&section), &section);
    for leniency in [Leniency::STRICT, Leniency::LENIENT] {
        let error = read(&chunk, REQUIRED, &options().leniency(leniency)).unwrap_err();
        assert_eq!(error.kind().name(), "count_mismatch", "{error}");
    }
}

#[test]
fn values_that_grow_meet_the_limit() {
    // Each value is the one before and a byte more: n values take n * n / 2 bytes.
    let n = 20_000;
    let mut section = Vec::new();
    delta_binary_packed::encode(&(0..n).collect::<Vec<i32>>(), (128, 4), &mut section);
    delta_binary_packed::encode(&vec![1i32; n as usize], (128, 4), &mut section);
    section.resize(section.len() + n as usize, b'x');
    let page = data_page(n, 7, size(&section), &section);
    let options = options().limits(Limits::default().with_output_bytes(1 << 20));
    let (_, largest) = counted(|| {
        assert_eq!(read(&page, STRINGS, &options).unwrap_err().kind().name(), "limit_exceeded");
    });
    assert!(largest <= 2 << 20, "{largest} bytes at once");
}

#[test]
fn footers_that_state_more_than_they_hold() {
    let options = options();
    assert_eq!(
        File::open(&schema([("a", Some(1)), ("b", None)]), &options).unwrap().metadata().schema.columns.len(),
        1
    );
    assert!(File::open(&deep(60), &options).is_ok());
    let mut hostile = hostile_footers();
    hostile.extend([
        (b"PAR1PAR1".to_vec(), "truncated"),
        (b"PAR1\xff\xff\xff\x7fPAR1".to_vec(), "out_of_range"),
        (b"PAR1\0\0\0\0PARE".to_vec(), "unsupported"),
        (b"PAR1\0\0\0\0PAR2".to_vec(), "bad_magic"),
        (Vec::new(), "truncated"),
    ]);
    for (i, (bytes, kind)) in hostile.iter().enumerate() {
        let (_, largest) = counted(|| {
            let error = File::open(bytes, &options).unwrap_err();
            assert_eq!(error.kind().name(), *kind, "{i}: {error:?}");
            assert!(error.offset().is_some(), "{i}: {error:?}");
        });
        assert!(largest <= 100 * bytes.len() + (1 << 16), "footer {i} of {} bytes: {largest} at once", bytes.len());
    }
}

#[test]
fn steady_loops_allocate_nothing() {
    let values: Vec<i32> = (0..4000).map(|i| i * 7 % 100).collect();
    let plain = int32(&values);
    let mut levels = Vec::new();
    hybrid::encode_with_length(&(0..4000).map(|i| u32::from(i % 3 > 0)).collect::<Vec<u32>>(), 1, &mut levels);
    let non_null = (0..4000).filter(|i| i % 3 > 0).count();
    let strings = ByteArrays::from_values((0..non_null).map(|i| format!("value {}", i / 3)));
    let mut delta = levels.clone();
    delta_byte_array::encode(&strings, &mut delta);
    let mut page = Vec::new();
    plain::encode_byte_arrays(&ByteArrays::from_values((0..100).map(|i| format!("entry {i}"))), &mut page);
    let mut indices = levels.clone();
    let numbers: Vec<u32> = (0..).map(|i| i % 100).take(non_null).collect();
    dictionary::encode_indices(&numbers, 7, &mut indices);
    let texts = ColumnType { physical_type: PhysicalType::ByteArray, ..OPTIONAL };
    let mut chunks = vec![];
    for (codec, body) in packed(&plain) {
        // The library of Brotli keeps no memory.
        if codec != Codec::Brotli {
            chunks.push((ColumnType { codec, ..REQUIRED }, data_page(4000, 0, size(&plain), &body).repeat(3)));
        }
    }
    let texts_pages = [
        dictionary_page(100, size(&page), &page),
        data_page(4000, 8, size(&indices), &indices),
        data_page(4000, 7, size(&delta), &delta),
    ];
    chunks.push((texts, texts_pages.concat()));
    let (mut buffers, mut arrays, options) = (Buffers::new(), ByteArrays::new(), options());
    let (mut out, mut data) = ([0i32; 700], ColumnData::new(PhysicalType::Int32));
    let mut pass = || {
        for (column, chunk) in &chunks {
            let mut reader = ColumnReader::new(Input::new(chunk), *column, &mut buffers, &options);
            while let Some(mut page) = reader.next_page().unwrap() {
                page.skip(3).unwrap();
                while page.remaining() > 0 {
                    let batch = page.take(page.remaining().min(out.len()));
                    if column.physical_type == PhysicalType::ByteArray {
                        arrays.clear();
                        page.decode_byte_arrays(batch.values, &mut arrays).unwrap();
                    } else {
                        page.decode(&mut out[..batch.values]).unwrap();
                    }
                }
                page.finish().unwrap();
            }
            if column.physical_type == PhysicalType::Int32 {
                data.clear();
                ColumnReader::new(Input::new(chunk), *column, &mut buffers, &options).read(&mut data).unwrap();
            }
        }
    };
    assert!(counted(&mut pass).0 > 0, "the first time takes memory");
    assert_eq!(counted(&mut pass).0, 0, "allocations after the first time");
}
