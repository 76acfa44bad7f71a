//! Parquet sections take memory by what they hold, not by what they state; a steady loop over pages takes none.

#[path = "support/counting.rs"]
mod counting;

use counting::counted;
use tilekern::Limits;
use tilekern::parquet::encoding::{
    alp, byte_stream_split, delta_binary_packed, delta_byte_array, delta_length_byte_array, dictionary, plain,
};
use tilekern::parquet::{
    ByteArrays, Decoder, Dictionary, Encoding, Input, Leniency, Options, Payload, PhysicalType, Scratch,
};

const ANY: [(Encoding, PhysicalType); 13] = [
    (Encoding::Plain, PhysicalType::Boolean),
    (Encoding::Plain, PhysicalType::Int64),
    (Encoding::Plain, PhysicalType::ByteArray),
    (Encoding::Rle, PhysicalType::Boolean),
    (Encoding::Hybrid, PhysicalType::Int32),
    (Encoding::BitPacked, PhysicalType::Int32),
    (Encoding::DeltaBinaryPacked, PhysicalType::Int32),
    (Encoding::DeltaBinaryPacked, PhysicalType::Int64),
    (Encoding::DeltaLengthByteArray, PhysicalType::ByteArray),
    (Encoding::DeltaByteArray, PhysicalType::ByteArray),
    (Encoding::ByteStreamSplit, PhysicalType::Double),
    (Encoding::Alp, PhysicalType::Float),
    (Encoding::Alp, PhysicalType::Double),
];

#[test]
fn stated_counts_are_not_believed() {
    // Headers that state 2^31 - 1 values or bytes, and then end.
    let many = [0xff, 0xff, 0xff, 0xff, 0x07];
    let sections = [
        vec![],
        [&[0x80, 0x01, 0x04][..], &many, &[0x02]].concat(),
        [&[0x80, 0x01, 0x04][..], &many, &[0x02, 0x02, 1, 1, 1, 1]].concat(),
        vec![0xfe, 0xff, 0xff, 0xff, 0x0f, 0x01],
        vec![0xff, 0xff, 0xff, 0x7f],
        vec![0, 0, 3, 0xff, 0xff, 0xff, 0x7f, 4, 0, 0, 0],
    ];
    let options = Options::new().unwrap();
    for section in &sections {
        for (encoding, physical_type) in ANY {
            for leniency in [Leniency::STRICT, Leniency::LENIENT] {
                let payload =
                    Payload { encoding, physical_type, count: i32::MAX as usize, bit_width: 9, dictionary: None };
                let (_, largest) = counted(|| {
                    let result = payload.decode(Input::new(section), &options.leniency(leniency));
                    assert!(result.is_err(), "{encoding:?} of {section:x?}");
                });
                assert!(largest <= 1 << 20, "{encoding:?} of {section:x?}: {largest} bytes at once");
            }
        }
    }
}

/// Values of a stated length, however large, take what is there; and a trace says what a decode says.
#[test]
fn stated_lengths_are_not_believed() {
    let options = Options::new().unwrap();
    for encoding in [Encoding::Plain, Encoding::ByteStreamSplit, Encoding::DeltaByteArray] {
        for (length, count, bytes) in [(1 << 30, 0, 0), (1 << 30, 1, 2), (1 << 30, 1, 0), (1 << 30, 1 << 20, 99)] {
            let section = vec![0; bytes];
            let physical_type = PhysicalType::FixedLenByteArray(length);
            let payload = Payload { encoding, physical_type, count, bit_width: 0, dictionary: None };
            let (_, largest) = counted(|| {
                let decoded = payload.decode(Input::new(&section), &options);
                let (trace, traced) = payload.trace(Input::new(&section), &options);
                assert_eq!(decoded.as_ref().ok(), traced.as_ref(), "{payload:?}");
                let faults = [decoded.err(), trace.fault].map(|fault| fault.map(|fault| fault.to_string()));
                assert_eq!(faults[0], faults[1], "{payload:?}");
                assert!(trace.steps.len() < 100, "{payload:?}");
            });
            assert!(largest <= 1 << 20, "{payload:?}: {largest} bytes at once");
        }
    }
}

#[test]
fn values_that_grow_meet_the_limit() {
    // Each value is the one before and a byte more: n values take n * n / 2 bytes.
    let n = 20_000usize;
    let (mut section, lengths) = (Vec::new(), vec![1i32; n]);
    delta_binary_packed::encode(&(0..).take(n).collect::<Vec<i32>>(), (128, 4), &mut section);
    delta_binary_packed::encode(&lengths, (128, 4), &mut section);
    section.resize(section.len() + n, b'x');
    let (encoding, physical_type) = (Encoding::DeltaByteArray, PhysicalType::ByteArray);
    let payload = Payload { encoding, physical_type, count: n, bit_width: 0, dictionary: None };
    let options = Options::new().unwrap().limits(Limits::default().with_output_bytes(1 << 20));
    let (_, largest) = counted(|| {
        let error = payload.decode(Input::new(&section), &options).unwrap_err();
        assert_eq!(error.kind().name(), "limit_exceeded");
    });
    assert!(largest <= 2 << 20, "{largest} bytes at once");
    // A dictionary's long value, often.
    let mut dictionary = Dictionary::new();
    let mut page = Vec::new();
    plain::encode_byte_arrays(&ByteArrays::from_values([vec![7u8; 60_000]]), &mut page);
    dictionary.read_byte_arrays(Input::new(&page), 1, &options).unwrap();
    let payload = Payload { encoding: Encoding::RleDictionary, dictionary: Some(&dictionary), ..payload };
    let error = payload.decode(Input::new(&[0, 0xc0, 0xb8, 0x02]), &options).unwrap_err();
    assert_eq!(error.kind().name(), "limit_exceeded");
}

#[test]
fn steady_loops_allocate_nothing() {
    let n = 5000;
    let options = Options::new().unwrap();
    let integers: Vec<i64> = (0..n as i64).map(|i| i * i % 1013).collect();
    let doubles: Vec<f64> = integers.iter().map(|&i| i as f64 / 8.0).collect();
    let strings = ByteArrays::from_values(integers.iter().map(|i| format!("value {i}")));
    let indices: Vec<u32> = integers.iter().map(|&i| u32::try_from(i % 100).unwrap()).collect();
    let mut sections = vec![Vec::new(); 7];
    plain::encode_byte_arrays(&strings, &mut sections[0]);
    delta_length_byte_array::encode(&strings, &mut sections[1]);
    delta_byte_array::encode(&strings, &mut sections[2]);
    dictionary::encode_indices(&indices, 7, &mut sections[3]);
    delta_binary_packed::encode(&integers, (256, 4), &mut sections[4]);
    byte_stream_split::encode(&doubles, 8, &mut sections[5]);
    alp::encode(&doubles, 10, &mut sections[6]);
    let encodings = [
        (Encoding::Plain, PhysicalType::ByteArray),
        (Encoding::DeltaLengthByteArray, PhysicalType::ByteArray),
        (Encoding::DeltaByteArray, PhysicalType::ByteArray),
        (Encoding::RleDictionary, PhysicalType::ByteArray),
        (Encoding::DeltaBinaryPacked, PhysicalType::Int64),
        (Encoding::ByteStreamSplit, PhysicalType::Double),
        (Encoding::Alp, PhysicalType::Double),
    ];
    let (mut page, mut dictionary, mut scratch) = (Vec::new(), Dictionary::new(), Scratch::new());
    plain::encode_byte_arrays(&ByteArrays::from_values(strings.iter().take(100)), &mut page);
    let (mut arrays, mut words) = (ByteArrays::new(), vec![0u64; 700]);
    let mut pages = || {
        dictionary.read_byte_arrays(Input::new(&page), 100, &options).unwrap();
        for (section, (encoding, physical_type)) in sections.iter().zip(encodings) {
            let payload = Payload { encoding, physical_type, count: n, bit_width: 0, dictionary: Some(&dictionary) };
            let mut decoder = Decoder::new(&payload, Input::new(section), &options, &mut scratch).unwrap();
            decoder.skip(33).unwrap();
            while decoder.remaining() > 0 {
                let batch = decoder.remaining().min(700);
                if physical_type == PhysicalType::ByteArray {
                    arrays.clear();
                    decoder.decode_byte_arrays(batch, &mut arrays).unwrap();
                } else {
                    decoder.decode(&mut words[..batch]).unwrap();
                }
            }
            decoder.finish().unwrap();
        }
    };
    assert!(counted(&mut pages).0 > 0, "the first time takes memory");
    assert_eq!(counted(&mut pages).0, 0, "allocations after the first time");
}
