//! Sections of encoded Parquet values in, and values through every encoding and back.

use arbitrary::Unstructured;
use tilekern::kernels::Kernels;
use tilekern::parquet::encoding::{
    alp, bit_packed, byte_stream_split, delta_binary_packed, delta_byte_array, delta_length_byte_array, dictionary,
    hybrid, plain,
};
use tilekern::parquet::{
    ByteArrays, Decoder, Dictionary, Encoding, Input, Leniency, Options, Payload, PhysicalType, Scratch, Values,
};
use tilekern::{Error, ErrorKind, Limits};

use super::seeds::noise;

/// Sections start here, so that offsets are seen to be absolute.
const START: u64 = 1 << 40;

/// Small enough for a fuzzer's memory, and for its patience with runs of many values.
fn limits() -> Limits {
    let mut limits = Limits::default().with_output_bytes(4 << 20);
    limits.max_values = 1 << 17;
    limits
}

/// A section, and what its page says of it.
#[derive(Debug)]
struct Section<'a> {
    encoding: u8,
    kind: u8,
    /// Bits of a number, or bytes of a value.
    width: u8,
    count: u16,
    leniency: u16,
    entries: u8,
    bytes: &'a [u8],
}

impl<'a> Section<'a> {
    fn new(mut data: Unstructured<'a>) -> arbitrary::Result<Section<'a>> {
        Ok(Section {
            encoding: data.arbitrary()?,
            kind: data.arbitrary()?,
            width: data.arbitrary()?,
            count: data.arbitrary()?,
            leniency: data.arbitrary()?,
            entries: data.arbitrary()?,
            bytes: data.take_rest(),
        })
    }
}

pub(super) fn kind(choice: u8, length: u8) -> PhysicalType {
    match choice % 8 {
        0 => PhysicalType::Boolean,
        1 => PhysicalType::Int32,
        2 => PhysicalType::Int64,
        3 => PhysicalType::Int96,
        4 => PhysicalType::Float,
        5 => PhysicalType::Double,
        6 => PhysicalType::ByteArray,
        _ => PhysicalType::FixedLenByteArray(usize::from(length) + 1),
    }
}

pub(super) fn leniency(bits: u16) -> Leniency {
    let mut some = Leniency::STRICT;
    let faults = [
        &mut some.trailing_bytes,
        &mut some.declared_counts,
        &mut some.block_sizes,
        &mut some.no_miniblocks,
        &mut some.cut_miniblock,
        &mut some.wide_int32,
        &mut some.wide_runs,
        &mut some.empty_runs,
        &mut some.clamped_prefixes,
        &mut some.carried_prefixes,
        &mut some.wrong_checksums,
    ];
    for (i, passed) in faults.into_iter().enumerate() {
        *passed = bits >> i & 1 == 1;
    }
    some
}

/// A dictionary of so many values, no two of which are alike where that can be.
fn entries(kind: PhysicalType, n: usize, options: &Options) -> Dictionary {
    let mut page = Vec::new();
    for i in 0..n {
        let mut value = i.to_le_bytes().repeat(kind.width().unwrap_or(i % 40).div_ceil(8));
        value.truncate(kind.width().unwrap_or(i % 40));
        if kind == PhysicalType::ByteArray {
            page.extend_from_slice(&u32::try_from(value.len()).unwrap_or(0).to_le_bytes());
        }
        page.extend_from_slice(&value);
    }
    if kind == PhysicalType::Boolean {
        page = noise(1, n.div_ceil(8));
    }
    let mut dictionary = Dictionary::new();
    dictionary.read_whole(Input::new(&page), kind, options).expect("a sound page");
    dictionary
}

/// What a decode gives: the values and where they end, or the error's text.
type Outcome = Result<(Values, u64), String>;

fn outcome(payload: &Payload<'_>, bytes: &[u8], options: &Options) -> Outcome {
    match payload.decode(Input::at(bytes, START), options) {
        Ok(decoded) => Ok((decoded.values, decoded.end)),
        Err(error) => {
            locates(&error, bytes);
            Err(error.to_string())
        }
    }
}

/// A fault of the data names a place in the section.
fn locates(error: &Error, bytes: &[u8]) {
    let of_request = matches!(error.kind(), ErrorKind::LimitExceeded { .. });
    let within = error.offset().is_some_and(|at| at >= START && at - START <= bytes.len() as u64);
    assert!(of_request || within, "no place in the section: {error}");
}

/// Any bytes as a section: no panic, bounded memory, the same on every kernel level, whole as in batches and over gaps,
/// and the trace's values are the decoder's.
pub fn parquet_payload(data: &[u8]) {
    let Ok(section) = Section::new(Unstructured::new(data)) else { return };
    let physical_type = kind(section.kind, section.width);
    let encoding = Encoding::ALL[usize::from(section.encoding) % Encoding::ALL.len()];
    // A run of a few bytes can mean very many values; a few of the counts are beyond the bytes in any case.
    let count = usize::from(section.count) << (section.leniency >> 14);
    let mut first: Option<Outcome> = None;
    for kernels in Kernels::available() {
        let options = Options::with_kernels(kernels).limits(limits()).leniency(leniency(section.leniency));
        let dictionary = entries(physical_type, usize::from(section.entries), &options);
        let payload = Payload {
            encoding,
            physical_type,
            count,
            bit_width: u32::from(section.width) % 40,
            dictionary: Some(&dictionary),
        };
        let found = outcome(&payload, section.bytes, &options);
        if let Some(first) = &first {
            assert!(*first == found, "{kernels:?}: {found:?}, plainly {first:?}");
        }
        let (trace, traced) = payload.trace(Input::at(section.bytes, START), &options);
        match (&found, &trace.fault, traced) {
            (Ok((values, end)), None, Some(traced)) => assert!((values, end) == (&traced.values, &traced.end)),
            // The text of a trace has its own bound.
            (Ok(_), Some(fault), _) => assert!(matches!(fault.kind(), ErrorKind::LimitExceeded { .. }), "{fault}"),
            (Err(error), Some(fault), None) => assert_eq!(*error, fault.to_string()),
            (found, fault, traced) => panic!("{found:?}, traced {fault:?} {traced:?}"),
        }
        let end = section.bytes.len() as u64;
        for step in &trace.steps {
            let span = &step.span;
            assert!(span.start >= START && span.start <= span.end && span.end - START <= end, "{step:?}");
        }
        if let Ok((values, _)) = &found {
            pieces(&payload, &section, values, &options);
        }
        first = Some(found);
    }
}

/// The values in batches, of which every third is passed over.
fn pieces(payload: &Payload<'_>, section: &Section<'_>, values: &Values, options: &Options) {
    let mut scratch = Scratch::new();
    let decoder = Decoder::new(payload, Input::at(section.bytes, START), options, &mut scratch);
    let mut decoder = decoder.expect("it decodes as a whole");
    let of = |range: std::ops::Range<usize>| -> Vec<u8> {
        match values {
            Values::Booleans(values) => values[range].to_vec(),
            Values::Int32(values) => bytemuck::cast_slice(&values[range]).to_vec(),
            Values::Int64(values) => bytemuck::cast_slice(&values[range]).to_vec(),
            Values::Float(values) => bytemuck::cast_slice(&values[range]).to_vec(),
            Values::Double(values) => bytemuck::cast_slice(&values[range]).to_vec(),
            Values::Fixed { width, bytes } => bytes[range.start * width..range.end * width].to_vec(),
            Values::ByteArrays(values) => range.flat_map(|i| values.get(i)).copied().collect(),
            // Levels of old files have 16 bits.
            Values::Numbers(values) if payload.encoding == Encoding::BitPacked => {
                values[range].iter().flat_map(|&value| u16::try_from(value).unwrap_or(u16::MAX).to_le_bytes()).collect()
            }
            Values::Numbers(values) => bytemuck::cast_slice(&values[range]).to_vec(),
            other => panic!("{other:?}"),
        }
    };
    let (mut at, mut turn, mut arrays) = (0, 0usize, ByteArrays::new());
    while decoder.remaining() > 0 {
        let n = decoder.remaining().min(1 + usize::from(section.entries) * turn);
        let expected = of(at..at + n);
        assert_eq!(decoder.size(n).expect("a size"), expected.len() as u64, "size of {n} from {at}");
        if turn % 3 == 2 {
            decoder.skip(n).expect("values to pass over");
        } else if matches!(values, Values::ByteArrays(_)) {
            arrays.clear();
            decoder.decode_byte_arrays(n, &mut arrays).expect("values");
            assert!(arrays.bytes() == expected, "{n} values from {at}");
        } else {
            // Words, so that the slice is aligned.
            let mut words = vec![0u64; expected.len().div_ceil(8)];
            let bytes = &mut bytemuck::cast_slice_mut::<_, u8>(&mut words)[..expected.len()];
            decoder.decode(bytes).expect("values");
            assert!(*bytes == expected, "{n} values from {at}");
        }
        (at, turn) = (at + n, turn + 1);
    }
    decoder.finish().expect("it decodes as a whole");
}

/// Values to encode.
#[derive(Debug)]
struct Given {
    encoding: u8,
    kind: u8,
    width: u8,
    block: u8,
    /// Values are drawn from these, each with how often it is there.
    runs: Vec<(u64, u8)>,
    strings: Vec<(Vec<u8>, u8)>,
}

impl Given {
    fn new(mut data: Unstructured<'_>) -> arbitrary::Result<Given> {
        let [encoding, kind, width, block] = data.arbitrary()?;
        Ok(Given { encoding, kind, width, block, runs: data.arbitrary()?, strings: data.arbitrary()? })
    }
}

/// Any values through any encoding that has their type: what comes back is what went in.
pub fn parquet_round_trip(data: &[u8]) {
    let Ok(given) = Given::new(Unstructured::new(data)) else { return };
    let encoding = Encoding::ALL[usize::from(given.encoding) % Encoding::ALL.len()];
    let physical_type = kind(given.kind, given.width % 40);
    let words: Vec<u64> = given.runs.iter().flat_map(|&(word, n)| std::iter::repeat_n(word, n.into())).collect();
    let strings = given.strings.iter().flat_map(|(text, n)| (0..*n % 4).map(|i| &text[..text.len() >> i]));
    let values = values(encoding, physical_type, given.width, &words, ByteArrays::from_values(strings));
    let shape = (bits(encoding, given.width), given.block);
    let Some((section, dictionary)) = encoded(encoding, physical_type, &values, shape) else { return };
    for kernels in Kernels::available() {
        let options = Options::with_kernels(kernels);
        let mut read = Dictionary::new();
        let page = dictionary.as_ref().map(|page| read.read_whole(Input::new(page), physical_type, &options));
        if let Some(page) = page {
            page.expect("the page that was encoded");
        }
        let payload = Payload {
            encoding,
            physical_type,
            count: values.len(),
            bit_width: bits(encoding, given.width),
            dictionary: dictionary.is_some().then_some(&read),
        };
        let decoded = payload.decode(Input::at(&section, START), &options);
        let decoded = decoded.unwrap_or_else(|error| panic!("{error}: {payload:?}"));
        assert!(decoded.values == values, "{kernels:?}, {encoding:?}: {:?}, not {values:?}", decoded.values);
        assert_eq!(decoded.end, START + section.len() as u64);
    }
}

/// Bits of bare numbers: those of BIT_PACKED are levels.
fn bits(encoding: Encoding, width: u8) -> u32 {
    u32::from(width) % if encoding == Encoding::BitPacked { 17 } else { 33 }
}

fn values(encoding: Encoding, kind: PhysicalType, width: u8, words: &[u64], strings: ByteArrays) -> Values {
    #[expect(clippy::cast_possible_truncation, reason = "any values will do")]
    let halves = || words.iter().map(|&word| word as u32);
    match kind {
        _ if matches!(encoding, Encoding::Hybrid | Encoding::BitPacked) => {
            let mask = u32::try_from((1u64 << bits(encoding, width)) - 1).unwrap_or(u32::MAX);
            Values::Numbers(halves().map(|word| word & mask).collect())
        }
        PhysicalType::Boolean => Values::Booleans(words.iter().map(|word| u8::from(word % 2 == 1)).collect()),
        PhysicalType::Int32 => Values::Int32(halves().map(u32::cast_signed).collect()),
        PhysicalType::Int64 => Values::Int64(words.iter().map(|word| word.cast_signed()).collect()),
        PhysicalType::Float => Values::Float(halves().map(f32::from_bits).collect()),
        PhysicalType::Double => Values::Double(words.iter().map(|&word| f64::from_bits(word)).collect()),
        PhysicalType::ByteArray => Values::ByteArrays(strings),
        kind => {
            let width = kind.width().unwrap_or(1);
            let bytes = words.iter().flat_map(|word| word.to_le_bytes().into_iter().cycle().take(width));
            Values::Fixed { width, bytes: bytes.collect() }
        }
    }
}

/// The section, and its dictionary's page; nothing for a type that the encoding does not have.
fn encoded(
    encoding: Encoding,
    kind: PhysicalType,
    values: &Values,
    (width, choice): (u32, u8),
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    const BLOCKS: [(usize, usize); 6] = [(128, 1), (128, 4), (256, 4), (256, 8), (1024, 32), (2048, 8)];
    let block = BLOCKS[usize::from(choice) % BLOCKS.len()];
    let mut out = Vec::new();
    match (encoding, values) {
        (Encoding::Hybrid, Values::Numbers(values)) => hybrid::encode(values, width, &mut out),
        (Encoding::BitPacked, Values::Numbers(values)) => {
            let levels: Vec<u16> = values.iter().map(|&value| u16::try_from(value).unwrap_or(0)).collect();
            bit_packed::encode(&levels, width, &mut out);
        }
        (Encoding::Rle, Values::Booleans(values)) => {
            let numbers: Vec<u32> = values.iter().map(|&value| value.into()).collect();
            hybrid::encode_with_length(&numbers, 1, &mut out);
        }
        (Encoding::Plain, values) if !matches!(values, Values::Numbers(_)) => return Some((plainly(values), None)),
        (Encoding::PlainDictionary | Encoding::RleDictionary, values) if !matches!(values, Values::Numbers(_)) => {
            let count = u32::try_from(values.len()).unwrap_or(0);
            // Every value is an entry, and they are used from the last on.
            let indices: Vec<u32> = (0..count).rev().collect();
            dictionary::encode_indices(&indices, 32 - count.saturating_sub(1).leading_zeros(), &mut out);
            return Some((out, Some(plainly(&backwards(values)))));
        }
        (Encoding::DeltaBinaryPacked, Values::Int32(values)) => delta_binary_packed::encode(values, block, &mut out),
        (Encoding::DeltaBinaryPacked, Values::Int64(values)) => delta_binary_packed::encode(values, block, &mut out),
        (Encoding::DeltaLengthByteArray, Values::ByteArrays(values)) => {
            delta_length_byte_array::encode(values, &mut out);
        }
        (Encoding::DeltaByteArray, Values::ByteArrays(values)) => delta_byte_array::encode(values, &mut out),
        (Encoding::DeltaByteArray, Values::Fixed { width, bytes }) if kind != PhysicalType::Int96 => {
            delta_byte_array::encode(&ByteArrays::from_values(bytes.chunks_exact(*width)), &mut out);
        }
        (Encoding::ByteStreamSplit, Values::Int32(values)) => byte_stream_split::encode(values, 4, &mut out),
        (Encoding::ByteStreamSplit, Values::Int64(values)) => byte_stream_split::encode(values, 8, &mut out),
        (Encoding::ByteStreamSplit, Values::Float(values)) => byte_stream_split::encode(values, 4, &mut out),
        (Encoding::ByteStreamSplit, Values::Double(values)) => byte_stream_split::encode(values, 8, &mut out),
        (Encoding::ByteStreamSplit, Values::Fixed { width, bytes }) if kind != PhysicalType::Int96 => {
            byte_stream_split::encode(bytes, *width, &mut out);
        }
        (Encoding::Alp, Values::Float(values)) => alp::encode(values, 3 + choice % 13, &mut out),
        (Encoding::Alp, Values::Double(values)) => alp::encode(values, 3 + choice % 13, &mut out),
        _ => return None,
    }
    Some((out, None))
}

/// A PLAIN section.
fn plainly(values: &Values) -> Vec<u8> {
    let mut out = Vec::new();
    match values {
        Values::Booleans(values) => plain::encode_booleans(values, &mut out),
        Values::Int32(values) => plain::encode(values, &mut out),
        Values::Int64(values) => plain::encode(values, &mut out),
        Values::Float(values) => plain::encode(values, &mut out),
        Values::Double(values) => plain::encode(values, &mut out),
        Values::Fixed { bytes, .. } => plain::encode(bytes, &mut out),
        Values::ByteArrays(values) => plain::encode_byte_arrays(values, &mut out),
        other => panic!("{other:?}"),
    }
    out
}

/// The values from the last to the first.
fn backwards(values: &Values) -> Values {
    fn turned<T: Copy>(values: &[T]) -> Vec<T> {
        values.iter().rev().copied().collect()
    }
    match values {
        Values::Booleans(values) => Values::Booleans(turned(values)),
        Values::Int32(values) => Values::Int32(turned(values)),
        Values::Int64(values) => Values::Int64(turned(values)),
        Values::Float(values) => Values::Float(turned(values)),
        Values::Double(values) => Values::Double(turned(values)),
        Values::Fixed { width, bytes } => {
            Values::Fixed { width: *width, bytes: bytes.rchunks_exact(*width).flatten().copied().collect() }
        }
        Values::ByteArrays(values) => {
            Values::ByteArrays(ByteArrays::from_values((0..values.len()).rev().map(|i| values.get(i))))
        }
        other => panic!("{other:?}"),
    }
}

/// Sections of every encoding and type, and values.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    if target == "parquet_round_trip" {
        return (0..200).map(|i| noise(i, 3 * usize::try_from(i).unwrap_or(0))).collect();
    }
    let mut seeds = Vec::new();
    for (choice, encoding) in (0u8..).zip(Encoding::ALL) {
        for (type_choice, n) in (0u8..8).flat_map(|kind| [0u8, 1, 40, 255].map(|n| (kind, n))) {
            let kind = kind(type_choice, 5);
            let words: Vec<u64> = (0..u64::from(n)).map(|i| 1000 + i * (1 + i % 3)).collect();
            let strings = ByteArrays::from_values(words.iter().map(|word| format!("item/{word}/")));
            let values = values(encoding, kind, 11, &words, strings);
            let Some((section, _)) = encoded(encoding, kind, &values, (bits(encoding, 11), n)) else { continue };
            // Encoding, type, width, count, leniency, entries of the dictionary.
            let mut seed = vec![choice, type_choice, if kind.width() == Some(6) { 5 } else { 11 }, n, 0, 0, 0, n];
            seed.extend(section);
            seeds.push(seed);
        }
    }
    seeds
}
