//! Values through each Parquet encoding and back, in batches and with gaps, on every kernel level; and random bytes.

use proptest::prelude::*;
use proptest::sample::Index;
use tilekern::kernels::Kernels;
use tilekern::parquet::encoding::delta_binary_packed::Delta;
use tilekern::parquet::encoding::{
    alp, bit_packed, byte_stream_split, delta_binary_packed, delta_byte_array, delta_length_byte_array, dictionary,
    hybrid, plain,
};
use tilekern::parquet::{
    ByteArrays, Decoder, Dictionary, Encoding, Input, Leniency, Options, Payload, PhysicalType, Scratch, Values,
};
use tilekern::{ErrorKind, Limits};

fn options() -> impl Iterator<Item = Options> {
    Kernels::available().map(Options::with_kernels)
}

fn payload(encoding: Encoding, physical_type: PhysicalType, count: usize) -> Payload<'static> {
    Payload { encoding, physical_type, count, bit_width: 0, dictionary: None }
}

/// Which values a test takes, and which it passes over: batches by turns.
type Plan = Vec<usize>;

fn plan() -> impl Strategy<Value = Plan> {
    prop::collection::vec(prop_oneof![0usize..10, 0usize..300, 1000usize..1100], 0..8)
}

/// Decodes by the plan, and whole, on all levels. `expected` holds the bytes of each value.
fn check(payload: &Payload<'_>, section: &[u8], expected: &[&[u8]], plan: &Plan) {
    let any_length = payload.physical_type == PhysicalType::ByteArray && payload.encoding != Encoding::Hybrid;
    let mut scratch = Scratch::new();
    for options in options() {
        let mut decoder = Decoder::new(payload, Input::at(section, 77), &options, &mut scratch).expect("a decoder");
        let (mut at, mut arrays) = (0, ByteArrays::new());
        for (i, &n) in plan.iter().chain([&usize::MAX]).enumerate() {
            let n = n.min(decoder.remaining());
            let values = &expected[at..at + n];
            at += n;
            if i % 2 == 1 && n != expected.len() {
                decoder.skip(n).expect("values to pass over");
                continue;
            }
            let size = decoder.size(n).expect("a size") as usize;
            assert_eq!(size, values.concat().len());
            if any_length {
                arrays.clear();
                decoder.decode_byte_arrays(n, &mut arrays).expect("values");
                assert!(arrays.iter().eq(values.iter().copied()), "{:?}: values from {}", options.kernels, at - n);
            } else {
                let mut words = vec![0u64; size.div_ceil(8)];
                let bytes = &mut bytemuck::cast_slice_mut::<_, u8>(&mut words)[..size];
                decoder.decode(bytes).expect("values");
                assert!(bytes == values.concat(), "{:?}: values from {}", options.kernels, at - n);
            }
        }
        assert_eq!(decoder.finish().expect("the end"), 77 + section.len() as u64);
        let decoded = payload.decode(Input::at(section, 77), &options).expect("values");
        let (trace, traced) = payload.trace(Input::at(section, 77), &options);
        assert!(trace.fault.is_none() && traced == Some(decoded), "the trace's values");
        // Every byte belongs to a step, which lie in order.
        let mut end = 77;
        for step in &trace.steps {
            assert_eq!(step.span.start, end, "{}", step.label);
            end = step.span.end;
        }
        assert_eq!(end, 77 + section.len() as u64);
    }
}

fn parts<T: bytemuck::Pod>(values: &[T]) -> Vec<&[u8]> {
    values.iter().map(bytemuck::bytes_of).collect()
}

/// Integers whose differences need few bits, many, and all by turns.
fn integers() -> impl Strategy<Value = Vec<i64>> {
    let run = (any::<i64>(), 0u32..64, 1usize..400, any::<u64>());
    prop::collection::vec(run, 0..5).prop_map(|runs| {
        let mut values = Vec::new();
        for (start, bits, n, seed) in runs {
            let mut state = seed | 1;
            let mut value = start;
            for _ in 0..n {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                value = value.wrapping_add((state >> (63 - bits)) as i64);
                values.push(value);
            }
        }
        values
    })
}

fn strings() -> impl Strategy<Value = ByteArrays> {
    let run = (prop::collection::vec(any::<u8>(), 0..90), 0usize..90, 1usize..200, any::<u32>());
    prop::collection::vec(run, 0..5).prop_map(|runs| {
        let mut values: Vec<Vec<u8>> = Vec::new();
        for (stem, keep, n, seed) in runs {
            for i in 0..n as u32 {
                let mut value = stem[..keep.min(stem.len())].to_vec();
                value.extend(i.wrapping_mul(seed).to_string().bytes().take(i as usize % 11));
                values.push(value);
            }
        }
        ByteArrays::from_values(values)
    })
}

fn deltas<T: Delta>(values: &[T], kind: PhysicalType, block: (usize, usize), plan: &Plan) {
    let mut section = Vec::new();
    delta_binary_packed::encode(values, block, &mut section);
    check(&payload(Encoding::DeltaBinaryPacked, kind, values.len()), &section, &parts(values), plan);
}

const BLOCKS: [(usize, usize); 8] =
    [(128, 1), (128, 2), (128, 4), (256, 4), (256, 8), (1024, 32), (2048, 8), (4096, 2)];

/// Where a lenient reader takes streams of different lengths, a trace looks at no more values than a decode: the length
/// that has no prefix is negative.
#[test]
fn lengths_without_prefixes() {
    // Block sizes and miniblocks as they should not be, no prefixes; one length, of -4; and what follows.
    let section = [1, 0, 0, 0, 7, 0, 1, 7, 0, 0, 0];
    for options in options() {
        for kind in [PhysicalType::ByteArray, PhysicalType::FixedLenByteArray(5)] {
            let payload = payload(Encoding::DeltaByteArray, kind, 1075);
            let options = options.leniency(Leniency::LENIENT);
            let decoded = payload.decode(Input::new(&section), &options).expect("no values");
            let (trace, traced) = payload.trace(Input::new(&section), &options);
            assert!(trace.fault.is_none(), "{:?}", trace.fault);
            assert_eq!(traced, Some(decoded));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn delta_binary_packed_values(values in integers(), block in any::<Index>(), plan in plan()) {
        let block = BLOCKS[block.index(BLOCKS.len())];
        deltas(&values, PhysicalType::Int64, block, &plan);
        let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
        deltas(&values, PhysicalType::Int32, block, &plan);
    }

    #[test]
    fn runs(
        width in 0u32..=32,
        runs in prop::collection::vec((any::<u32>(), prop_oneof![1usize..4, 1usize..300]), 0..60),
        plan in plan(),
    ) {
        let mask = u32::try_from((1u64 << width) - 1).unwrap();
        let values: Vec<u32> =
            runs.into_iter().flat_map(|(value, n)| std::iter::repeat_n(value & mask, n)).collect();
        let mut section = Vec::new();
        hybrid::encode(&values, width, &mut section);
        let payload = Payload { bit_width: width, ..payload(Encoding::Hybrid, PhysicalType::Int32, values.len()) };
        check(&payload, &section, &parts(&values), &plan);
        for options in options() {
            let mut levels = vec![0u16; values.len()];
            let decoder = hybrid::Hybrid::new(Input::new(&section), values.len(), width, &options);
            if width <= 16 {
                decoder.unwrap().decode(&mut levels).unwrap();
                prop_assert!(levels.iter().map(|&level| u32::from(level)).eq(values.iter().copied()));
            }
        }

        let truths: Vec<u8> = values.iter().map(|value| (value & 1) as u8).collect();
        let (mut bits, mut runs) = (Vec::new(), Vec::new());
        plain::encode_booleans(&truths, &mut bits);
        let numbers: Vec<u32> = truths.iter().map(|&truth| truth.into()).collect();
        hybrid::encode_with_length(&numbers, 1, &mut runs);
        let kind = PhysicalType::Boolean;
        for (encoding, section) in [(Encoding::Plain, bits), (Encoding::Rle, runs)] {
            check(&Payload { physical_type: kind, encoding, bit_width: 0, ..payload }, &section, &parts(&truths), &plan);
        }
    }

    #[test]
    fn old_levels(width in 0u32..=16, values in prop::collection::vec(any::<u16>(), 0..3000), plan in plan()) {
        let mask = u16::try_from((1u32 << width) - 1).unwrap();
        let values: Vec<u16> = values.iter().map(|value| value & mask).collect();
        let mut section = Vec::new();
        bit_packed::encode(&values, width, &mut section);
        let payload = Payload { bit_width: width, ..payload(Encoding::BitPacked, PhysicalType::Int32, values.len()) };
        check(&payload, &section, &parts(&values), &plan);
    }

    #[test]
    fn fixed_width(width in 1usize..=33, n in 0usize..2500, seed in any::<u64>(), plan in plan()) {
        let mut state = seed;
        let bytes: Vec<u8> = (0..n * width)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 60) as u8
            })
            .collect();
        let expected: Vec<&[u8]> = bytes.chunks_exact(width).collect();
        let kinds = match width {
            4 => vec![PhysicalType::Int32, PhysicalType::Float],
            8 => vec![PhysicalType::Int64, PhysicalType::Double],
            _ => vec![],
        };
        for kind in kinds.into_iter().chain([PhysicalType::FixedLenByteArray(width)]) {
            let (mut plain, mut split, mut delta) = (Vec::new(), Vec::new(), Vec::new());
            plain::encode(&bytes, &mut plain);
            byte_stream_split::encode(&bytes, width, &mut split);
            check(&payload(Encoding::Plain, kind, n), &plain, &expected, &plan);
            check(&payload(Encoding::ByteStreamSplit, kind, n), &split, &expected, &plan);
            if matches!(kind, PhysicalType::FixedLenByteArray(_)) {
                delta_byte_array::encode(&ByteArrays::from_values(&expected), &mut delta);
                check(&payload(Encoding::DeltaByteArray, kind, n), &delta, &expected, &plan);
            }
        }
    }

    #[test]
    fn any_length(values in strings(), plan in plan()) {
        let expected: Vec<&[u8]> = values.iter().collect();
        type Encode = fn(&ByteArrays, &mut Vec<u8>);
        let encoders: [(Encoding, Encode); 3] = [
            (Encoding::Plain, plain::encode_byte_arrays),
            (Encoding::DeltaLengthByteArray, delta_length_byte_array::encode),
            (Encoding::DeltaByteArray, delta_byte_array::encode),
        ];
        for (encoding, encode) in encoders {
            let mut section = Vec::new();
            encode(&values, &mut section);
            check(&payload(encoding, PhysicalType::ByteArray, values.len()), &section, &expected, &plan);
        }
    }

    #[test]
    fn dictionaries(
        entries in prop_oneof![1usize..5, 1usize..300, 1000usize..5000],
        runs in prop::collection::vec((any::<Index>(), prop_oneof![Just(1usize), 1usize..200]), 0..2000),
        spare in 0u32..4,
        width in 1usize..20,
        plan in plan(),
    ) {
        let indices: Vec<u32> = runs
            .into_iter()
            .flat_map(|(index, n)| std::iter::repeat_n(u32::try_from(index.index(entries)).unwrap(), n))
            .take(5000)
            .collect();
        let mut section = Vec::new();
        dictionary::encode_indices(&indices, dictionary::index_width(entries) + spare, &mut section);
        let options = Options::new().unwrap();
        let bytes: Vec<u8> = (0..entries * width).map(|i| (i * 7 + i / 251) as u8).collect();
        let kinds = match width {
            1 => PhysicalType::FixedLenByteArray(1),
            4 => PhysicalType::Float,
            8 => PhysicalType::Int64,
            12 => PhysicalType::Int96,
            width => PhysicalType::FixedLenByteArray(width),
        };
        let mut fixed = Dictionary::new();
        fixed.read_fixed(Input::new(&bytes), entries, width, &options).unwrap();
        let expected: Vec<&[u8]> = indices.iter().map(|&i| &bytes[i as usize * width..][..width]).collect();
        let base = payload(Encoding::RleDictionary, kinds, indices.len());
        check(&Payload { dictionary: Some(&fixed), ..base }, &section, &expected, &plan);

        let words = ByteArrays::from_values((0..entries).map(|i| &bytes[i * width..][..i % (width + 1)]));
        let mut page = Vec::new();
        plain::encode_byte_arrays(&words, &mut page);
        let mut strings = Dictionary::new();
        strings.read_byte_arrays(Input::new(&page), entries, &options).unwrap();
        let expected: Vec<&[u8]> = indices.iter().map(|&i| words.get(i as usize)).collect();
        let base = payload(Encoding::PlainDictionary, PhysicalType::ByteArray, indices.len());
        check(&Payload { dictionary: Some(&strings), ..base }, &section, &expected, &plan);
    }

    #[test]
    fn decimals(
        values in prop::collection::vec((-1_000_000i64..1_000_000, 0i32..6, 0u32..12), 0..3000),
        log in 3u8..=12,
        plan in plan(),
    ) {
        // Some are no decimal numbers of few digits.
        let doubles: Vec<f64> = values
            .iter()
            .map(|&(integer, digits, odd)| match odd {
                0 => f64::from_bits(integer.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                _ => integer as f64 / 10f64.powi(digits),
            })
            .collect();
        let mut section = Vec::new();
        alp::encode(&doubles, log, &mut section);
        check(&payload(Encoding::Alp, PhysicalType::Double, doubles.len()), &section, &parts(&doubles), &plan);
        let floats: Vec<f32> = doubles.iter().map(|&value| value as f32).collect();
        let mut section = Vec::new();
        alp::encode(&floats, log, &mut section);
        check(&payload(Encoding::Alp, PhysicalType::Float, floats.len()), &section, &parts(&floats), &plan);
    }

    /// Random bytes, and sound sections with a bit flipped, give the same on every level: values or an error; so do traces.
    #[test]
    fn damage(
        random in prop::collection::vec(prop_oneof![Just(0u8), 1u8..12, any::<u8>()], 0..200),
        integers in integers(),
        strings in strings(),
        flips in prop::collection::vec(any::<Index>(), 1..6),
        declared in prop_oneof![0usize..50, 0usize..3000, Just(1usize << 31)],
        lenient in any::<bool>(),
    ) {
        let leniency = if lenient { Leniency::LENIENT } else { Leniency::STRICT };
        let mut limits = Limits::default();
        (limits.max_output_bytes, limits.max_values) = (1 << 20, 1 << 20);
        let words: Vec<u32> = integers.iter().map(|value| (value & 63) as u32).collect();
        let doubles: Vec<f64> = integers.iter().map(|&value| (value % 1000) as f64 / 10.0).collect();
        let narrow: Vec<i32> = integers.iter().map(|&value| value as i32).collect();
        let mut sections = vec![(random, declared); 6];
        for section in &mut sections[1..] {
            *section = (Vec::new(), integers.len());
        }
        delta_binary_packed::encode(&narrow, (256, 8), &mut sections[1].0);
        dictionary::encode_indices(&words, 6, &mut sections[2].0);
        alp::encode(&doubles, 5, &mut sections[3].0);
        delta_byte_array::encode(&strings, &mut sections[4].0);
        delta_length_byte_array::encode(&strings, &mut sections[5].0);
        (sections[4].1, sections[5].1) = (strings.len(), strings.len());
        for (section, _) in &mut sections[1..] {
            for flip in &flips {
                if !section.is_empty() {
                    let bit = flip.index(8 * section.len().min(64));
                    section[bit / 8] ^= 1 << (bit % 8);
                }
            }
        }
        let strict = Options::new().unwrap();
        let (mut numbers, mut names) = (Dictionary::new(), Dictionary::new());
        numbers.read_fixed(Input::new(&[7; 160]), 40, 4, &strict).unwrap();
        names.read_byte_arrays(Input::new(&[0; 160]), 40, &strict).unwrap();
        for (section, count) in &sections {
            for (encoding, physical_type, dictionary) in [
                (Encoding::Plain, PhysicalType::Boolean, None),
                (Encoding::Plain, PhysicalType::ByteArray, None),
                (Encoding::Plain, PhysicalType::Int96, None),
                (Encoding::Rle, PhysicalType::Boolean, None),
                (Encoding::Hybrid, PhysicalType::Int32, None),
                (Encoding::BitPacked, PhysicalType::Int32, None),
                (Encoding::RleDictionary, PhysicalType::Int32, Some(&numbers)),
                (Encoding::PlainDictionary, PhysicalType::ByteArray, Some(&names)),
                (Encoding::DeltaBinaryPacked, PhysicalType::Int32, None),
                (Encoding::DeltaBinaryPacked, PhysicalType::Int64, None),
                (Encoding::DeltaLengthByteArray, PhysicalType::ByteArray, None),
                (Encoding::DeltaByteArray, PhysicalType::ByteArray, None),
                (Encoding::DeltaByteArray, PhysicalType::FixedLenByteArray(5), None),
                (Encoding::ByteStreamSplit, PhysicalType::Double, None),
                (Encoding::Alp, PhysicalType::Float, None),
                (Encoding::Alp, PhysicalType::Double, None),
            ] {
                let payload = Payload { encoding, physical_type, count: *count, bit_width: 5, dictionary };
                let mut told: Option<Result<Values, String>> = None;
                for options in options() {
                    let options = options.limits(limits).leniency(leniency);
                    let input = Input::at(section, 13);
                    let result = payload.decode(input, &options);
                    let (trace, traced) = payload.trace(input, &options);
                    let tight = |fault: &tilekern::Error| matches!(fault.kind(), ErrorKind::LimitExceeded { .. });
                    match &result {
                        Ok(decoded) => {
                            prop_assert_eq!(traced.as_ref(), Some(decoded));
                            prop_assert!(trace.fault.as_ref().is_none_or(tight), "{:?}", trace.fault);
                        }
                        Err(error) => {
                            prop_assert_eq!(trace.fault.map(|fault| format!("{fault:?}")), Some(format!("{error:?}")));
                        }
                    }
                    let result = result.map(|decoded| decoded.values).map_err(|error| format!("{error:?}"));
                    if let Some(told) = &told {
                        prop_assert_eq!(told, &result, "{:?}", options.kernels);
                    }
                    told = Some(result);
                }
            }
        }
    }
}
