//! The sections of the Parquet corpus, sound and malformed, on every kernel level that this machine has.

mod support;

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use support::parquet::{dictionary, rendered, unhex};
use support::{entries, json, same};
use tilekern::kernels::Kernels;
use tilekern::parquet::{
    ByteArrays, Decoded, Decoder, Dictionary, Encoding, Input, Leniency, Options, Payload, PhysicalType, Scratch,
    count, type_length,
};
use tilekern::{Error, Limits};

/// Sections start here in their object, so that offsets are seen to be absolute.
const START: u64 = 1_000_000;

fn main() {
    support::run("fixtures/parquet", |corpus| {
        let mut trials = Vec::new();
        for entry in entries(&corpus.join("raw/index.json")) {
            let id = entry["id"].as_str().expect("an id").to_owned();
            let folder = corpus.join("raw");
            trials.push(Trial::test(format!("raw {id}"), move || sound(&folder, &id)));
        }
        for entry in entries(&corpus.join("malformed/index.json")) {
            let id = entry["id"].as_str().expect("an id").to_owned();
            let path = corpus.join("malformed").join(entry["file"].as_str().expect("a file"));
            if let Some(case) = LENIENT.iter().find(|case| case.0 == id) {
                let (path, entry) = (path.clone(), entry.clone());
                trials.push(Trial::test(format!("lenient {id}"), move || lenient(&path, &entry, case)));
            }
            trials.push(Trial::test(format!("malformed {id}"), move || malformed(&path, &entry)));
        }
        for name in ["encodings", "dictionary"] {
            let path = corpus.join(name);
            trials.push(Trial::test(format!("pages of {name}"), move || pages(&path)));
        }
        trials
    })
}

type Allow = fn(&mut Leniency);

/// What malformed sections give to a reader that lets their fault pass: how many values, and the last of them.
const LENIENT: &[(&str, &[Allow], usize, &str)] = &[
    ("bss-one-value-more", &[|l| l.trailing_bytes = true], 10, "\"0x0000000000000000\""),
    ("dba-prefix-first", &[|l| l.clamped_prefixes = true], 2, "\"63\""),
    ("dba-prefix-huge", &[|l| l.clamped_prefixes = true], 2, "\"6162636478\""),
    ("dbp-block-100", &[|l| l.block_sizes = true], 10, "12"),
    ("dbp-count-less-than-page", &[|l| l.declared_counts = true], 50, "49"),
    ("dbp-i32-first-too-big", &[|l| l.wide_int32 = true], 1, "-2147483648"),
    ("dbp-i32-width64", &[|l| l.wide_int32 = true], 10, "6"),
    ("dbp-mini-16-values", &[|l| l.block_sizes = true], 10, "12"),
    ("dbp-miniblock-cut-1", &[|l| l.cut_miniblock = true], 200, "\"-5870464725729602655\""),
    ("dbp-minis-zero", &[|l| l.no_miniblocks = true, |l| l.trailing_bytes = true], 10, "12"),
    ("dbp-trailing-bytes", &[|l| l.trailing_bytes = true], 200, "597"),
    ("dict-rle-value-over-width", &[|l| l.wide_runs = true], 5, "40"),
    ("dict-rle-zero-run", &[|l| l.empty_runs = true], 5, "20"),
    ("dlba-trailing", &[|l| l.trailing_bytes = true], 5, "\"61\""),
];

/// A section of the corpus, as its JSON describes it.
struct Case {
    bytes: Vec<u8>,
    encoding: Encoding,
    physical_type: PhysicalType,
    count: i64,
    bit_width: u32,
    dictionary: Option<Dictionary>,
}

impl Case {
    fn new(bytes: Vec<u8>, entry: &Value) -> Result<Case, Error> {
        let kind = |name| {
            Ok::<_, Error>(match name {
                "BOOLEAN" => PhysicalType::Boolean,
                "INT32" => PhysicalType::Int32,
                "INT64" => PhysicalType::Int64,
                "INT96" => PhysicalType::Int96,
                "FLOAT" => PhysicalType::Float,
                "DOUBLE" => PhysicalType::Double,
                "BYTE_ARRAY" => PhysicalType::ByteArray,
                "FIXED_LEN_BYTE_ARRAY" => {
                    PhysicalType::FixedLenByteArray(type_length(entry["type_length"].as_i64().unwrap_or(0))?)
                }
                other => panic!("type {other}"),
            })
        };
        let name = entry["encoding"].as_str().expect("an encoding");
        let physical_type = match entry["physical_type"].as_str() {
            Some(name) => kind(name)?,
            None => PhysicalType::Int32,
        };
        Ok(Case {
            bytes,
            encoding: Encoding::from_name(name).unwrap_or_else(|| panic!("encoding {name}")),
            physical_type,
            count: entry["count"].as_i64().expect("a count"),
            bit_width: u32::try_from(entry["bit_width"].as_u64().unwrap_or(0)).expect("a width"),
            dictionary: entry["dictionary"].as_array().map(|values| dictionary(values, physical_type)),
        })
    }

    fn payload(&self, limits: &Limits) -> Result<Payload<'_>, Error> {
        Ok(Payload {
            encoding: self.encoding,
            physical_type: self.physical_type,
            count: count(self.count, limits)?,
            bit_width: self.bit_width,
            dictionary: self.dictionary.as_ref(),
        })
    }

    fn decode(&self, bytes: &[u8], options: &Options) -> Result<Decoded, Error> {
        self.payload(&options.limits)?.decode(Input::at(bytes, START), options)
    }
}

fn options() -> impl Iterator<Item = Options> {
    Kernels::available().map(Options::with_kernels)
}

fn sound(folder: &Path, id: &str) -> Result<(), Failed> {
    let entry = json(&folder.join(format!("{id}.json")));
    let case = Case::new(std::fs::read(folder.join(format!("{id}.bin")))?, &entry)?;
    let expected = entry["values"].as_array().expect("values");
    if let (Some(page), Some(dictionary)) = (entry["dictionary_page"].as_str(), &case.dictionary) {
        page_of(&unhex(page), dictionary, case.physical_type)?;
    }
    let mut whole: Option<Decoded> = None;
    for options in options() {
        let decoded = case.decode(&case.bytes, &options)?;
        same("end", Some(decoded.end - START), entry["consumed"].as_u64())?;
        same("number of values", rendered(&decoded.values).len(), expected.len())?;
        same(&format!("values, {:?}", options.kernels), rendered(&decoded.values) == *expected, true)?;
        let payload = case.payload(&options.limits)?;
        traced(&payload, &case.bytes, &options, &decoded, &entry["steps"])?;
        pieces(&case, &options, &decoded)?;
        whole = Some(decoded);
    }
    cuts(&case, &whole.ok_or("no kernels")?)
}

/// The corpus's dictionary page holds the corpus's dictionary.
fn page_of(page: &[u8], dictionary: &Dictionary, kind: PhysicalType) -> Result<(), Failed> {
    let options = Options::new()?;
    let mut read = Dictionary::new();
    match kind.width() {
        Some(width) => read.read_fixed(Input::new(page), dictionary.len(), width, &options)?,
        None => read.read_byte_arrays(Input::new(page), dictionary.len(), &options)?,
    }
    same("bytes of the dictionary", read.bytes() == dictionary.bytes(), true)?;
    same("values of the dictionary", read.byte_arrays() == dictionary.byte_arrays(), true)
}

/// A trace gives the same values; its steps are those of the corpus, where it has some.
fn traced(
    payload: &Payload<'_>,
    bytes: &[u8],
    options: &Options,
    decoded: &Decoded,
    expected: &Value,
) -> Result<(), Failed> {
    let (trace, values) = payload.trace(Input::at(bytes, START), options);
    same("fault of the trace", trace.fault.map(|fault| fault.to_string()), None)?;
    same("values of the trace", values.as_ref() == Some(decoded), true)?;
    if let Some(expected) = expected.as_array() {
        for (step, expected) in trace.steps.iter().zip(expected) {
            let label = expected["label"].as_str().unwrap_or_default();
            same("label", step.label.as_str(), label)?;
            same(&format!("start of {label}"), Some(step.span.start - START), expected["start"].as_u64())?;
            same(&format!("end of {label}"), Some(step.span.end - START), expected["end"].as_u64())?;
            same(&format!("detail of {label}"), Some(step.detail.as_str()), expected["detail"].as_str())?;
        }
        same("number of steps", trace.steps.len(), expected.len())?;
    }
    Ok(())
}

/// The bytes of each of the next values.
fn take(decoder: &mut Decoder<'_, '_>, n: usize, kind: PhysicalType) -> Result<Vec<Vec<u8>>, Error> {
    let size = usize::try_from(decoder.size(n)?).expect("a size");
    let numbers = matches!(decoder, Decoder::Hybrid(_) | Decoder::BitPacked(_));
    if kind == PhysicalType::ByteArray && !numbers {
        let mut out = ByteArrays::new();
        decoder.decode_byte_arrays(n, &mut out)?;
        assert_eq!(out.bytes().len(), size, "size of values");
        return Ok(out.iter().map(<[u8]>::to_vec).collect());
    }
    // Words, so that the slice is aligned.
    let mut words = vec![0u64; size.div_ceil(8)];
    let bytes = &mut bytemuck::cast_slice_mut::<_, u8>(&mut words)[..size];
    decoder.decode(bytes)?;
    Ok(bytes.chunks_exact((size / n.max(1)).max(1)).map(<[u8]>::to_vec).collect())
}

/// Any way to take and pass over values gives the same as all at once.
fn pieces(case: &Case, options: &Options, whole: &Decoded) -> Result<(), Failed> {
    let payload = case.payload(&options.limits)?;
    let mut scratch = Scratch::new();
    let input = Input::at(&case.bytes, START);
    let n = payload.count;
    let mut decoder = |skip: usize, take_: &[usize]| -> Result<Vec<Vec<u8>>, Failed> {
        let mut decoder = Decoder::new(&payload, input, options, &mut scratch)?;
        same("remaining", decoder.remaining(), n)?;
        decoder.skip(skip)?;
        let mut values = Vec::new();
        for &these in take_ {
            values.extend(take(&mut decoder, these, payload.physical_type)?);
        }
        same("remaining", decoder.remaining(), n - skip - take_.iter().sum::<usize>())?;
        same("end", decoder.finish()?, whole.end)?;
        Ok(values)
    };
    let all = decoder(0, &[n])?;
    same("number of values", all.len(), n)?;
    // Every position of short sections; of long ones the first, those around batches, and some more.
    let step = n.div_ceil(400).max(1);
    for skip in (0..=n).filter(|skip| skip % step == 0 || *skip < 70 || (1020..1030).contains(skip)) {
        let rest = n - skip;
        let head = rest.min(5);
        same(&format!("{skip} passed over"), decoder(skip, &[head])? == all[skip..skip + head], true)?;
        if skip % (step * 16) == 0 {
            same(&format!("{skip} passed over, all"), decoder(skip, &[rest])? == all[skip..], true)?;
        }
    }
    for batch in [1, 3, 8, 29, 31, 32, 33, 127, 128, 500, 1024, 1025] {
        let sizes: Vec<usize> = (0..n).step_by(batch).map(|from| batch.min(n - from)).collect();
        same(&format!("in batches of {batch}"), decoder(0, &sizes)? == all, true)?;
    }
    Ok(())
}

/// Cut anywhere, a section is refused, the same on every level, or gives the same values: where padding is cut that
/// readers do without.
fn cuts(case: &Case, whole: &Decoded) -> Result<(), Failed> {
    for cut in 0..case.bytes.len() {
        let bytes = &case.bytes[..cut];
        let mut told: Option<String> = None;
        for options in options() {
            let message = match case.decode(bytes, &options) {
                Ok(decoded) => {
                    let runs = [Encoding::Hybrid, Encoding::RleDictionary, Encoding::PlainDictionary];
                    if !(runs.contains(&case.encoding) || cut == 0 && case.count == 0) {
                        return Err(format!("cut to {cut} bytes: accepted").into());
                    }
                    same(&format!("values, cut to {cut} bytes"), decoded.values == whole.values, true)?;
                    "none".to_owned()
                }
                Err(error) => {
                    let end = START + cut as u64;
                    if error.offset().is_none_or(|offset| !(START..=end).contains(&offset)) {
                        return Err(format!("cut to {cut} bytes: no offset inside: {error:?}").into());
                    }
                    format!("{error:?}")
                }
            };
            if let Some(told) = &told {
                same(&format!("cut to {cut} bytes, {:?}", options.kernels), &message, told)?;
                continue;
            }
            let payload = case.payload(&options.limits)?;
            let fault = payload.trace(Input::at(bytes, START), &options).0.fault;
            same("fault of the trace", fault.map_or("none".to_owned(), |fault| format!("{fault:?}")), message.clone())?;
            told = Some(message);
        }
    }
    Ok(())
}

fn malformed(path: &Path, entry: &Value) -> Result<(), Failed> {
    let bytes = std::fs::read(path)?;
    let mut limits = Limits::default();
    if let Some(values) = entry["limits"]["max_values"].as_u64() {
        limits.max_values = values;
    }
    let mut told: Option<String> = None;
    for options in options() {
        let options = options.limits(limits);
        let result = Case::new(bytes.clone(), entry).and_then(|case| {
            let decoded = case.decode(&case.bytes, &options)?;
            Ok((case, decoded))
        });
        let error = match (result, entry["error"].as_str()) {
            (Ok((case, decoded)), None) => {
                let expected = entry["values"].as_array().expect("values");
                same("values", &rendered(&decoded.values), expected)?;
                let payload = case.payload(&limits)?;
                traced(&payload, &case.bytes, &options, &decoded, &Value::Null)?;
                pieces(&case, &options, &decoded)?;
                continue;
            }
            (Ok((_, decoded)), Some(kind)) => {
                let values = rendered(&decoded.values);
                return Err(format!("accepted, though {kind}: {:?}", &values[..values.len().min(8)]).into());
            }
            (Err(error), None) => return Err(format!("refused: {error:?}").into()),
            (Err(error), Some(kind)) => {
                same("kind", error.kind().name(), kind)?;
                error
            }
        };
        let outside = error.offset().is_some_and(|offset| !(START..=START + bytes.len() as u64).contains(&offset));
        if outside || error.offset().is_none() && error.kind().name() != "limit_exceeded" {
            return Err(format!("no offset inside the section: {error:?}").into());
        }
        let message = format!("{error:?}");
        if let Some(told) = &told {
            same("the same error everywhere", &message, told)?;
        }
        if let Ok(case) = Case::new(bytes.clone(), entry)
            && let Ok(payload) = case.payload(&limits)
        {
            let fault = payload.trace(Input::at(&bytes, START), &options).0.fault;
            same("fault of the trace", fault.map(|fault| format!("{fault:?}")), Some(message.clone()))?;
            // Leniency changes whether there is an error, never memory safety or bounds.
            _ = payload.decode(Input::at(&bytes, START), &options.leniency(Leniency::LENIENT));
        }
        told = Some(message);
    }
    if std::env::var_os("TILEKERN_SHOW_ERRORS").is_some() {
        println!("{}: {}", entry["id"].as_str().unwrap_or_default(), told.unwrap_or_default());
    }
    Ok(())
}

/// Exactly the named leniencies let a section pass, and no other does.
fn lenient(path: &Path, entry: &Value, (_, allow, n, last): &(&str, &[Allow], usize, &str)) -> Result<(), Failed> {
    let case = Case::new(std::fs::read(path)?, entry)?;
    for options in options() {
        let mut named = Leniency::STRICT;
        allow.iter().for_each(|allow| allow(&mut named));
        for leniency in [named, Leniency::LENIENT] {
            let decoded = case.decode(&case.bytes, &options.leniency(leniency))?;
            let values = rendered(&decoded.values);
            same("number of values", values.len(), *n)?;
            same("last value", values.last().map(Value::to_string).as_deref(), Some(*last))?;
            let payload = case.payload(&options.limits)?;
            traced(&payload, &case.bytes, &options.leniency(leniency), &decoded, &Value::Null)?;
        }
        for i in 0..allow.len() {
            let mut fewer = Leniency::STRICT;
            allow.iter().enumerate().filter(|&(j, _)| j != i).for_each(|(_, allow)| allow(&mut fewer));
            same("accepted with fewer", case.decode(&case.bytes, &options.leniency(fewer)).is_ok(), false)?;
        }
    }
    Ok(())
}

/// The pages of a file, whose bodies lie in it as they are: values, and steps with the file's offsets.
fn pages(path: &Path) -> Result<(), Failed> {
    let bytes = std::fs::read(path.with_extension("parquet"))?;
    let description = json(&path.with_extension("json"));
    let list = |key: &str| description[key].as_array().expect("a list");
    let number = |value: &Value| usize::try_from(value.as_u64().expect("a number")).expect("a size");
    let options = Options::new()?;
    let mut seen = 0;
    for (i, column) in list("columns").iter().enumerate() {
        let mut dictionary = Dictionary::new();
        for page in list("pages").iter().filter(|page| page["col"].as_u64() == Some(i as u64)) {
            let body = number(&page["body_start"])..number(&page["body_end"]);
            let input = Input::at(&bytes[body.clone()], body.start as u64);
            let n = number(&page["num_values"]);
            let mut entry = column.clone();
            (entry["encoding"], entry["count"]) = (page["encoding"].clone(), n.into());
            let case = Case::new(bytes[body].to_vec(), &entry)?;
            if page["type"] == "DICTIONARY_PAGE" {
                match case.physical_type.width() {
                    Some(width) => dictionary.read_fixed(input, n, width, &options)?,
                    None => dictionary.read_byte_arrays(input, n, &options)?,
                }
                continue;
            }
            let payload = Payload { dictionary: Some(&dictionary), ..case.payload(&options.limits)? };
            let (trace, decoded) = payload.trace(input, &options);
            same("fault", trace.fault.map(|fault| fault.to_string()), None)?;
            let values = rendered(&decoded.ok_or("no values")?.values);
            same("values", &values, column["values"].as_array().expect("values"))?;
            let traced = list("trace").iter().find(|traced| traced["column"] == column["name"]).ok_or("no trace")?;
            let steps = traced["steps"].as_array().expect("steps");
            same("number of steps", trace.steps.len(), steps.len())?;
            for (step, expected) in trace.steps.iter().zip(steps) {
                same("label", Some(step.label.as_str()), expected["label"].as_str())?;
                same("start", Some(step.span.start), expected["start"].as_u64())?;
                same("end", Some(step.span.end), expected["end"].as_u64())?;
                same("detail", Some(step.detail.as_str()), expected["detail"].as_str())?;
            }
            seen += 1;
        }
    }
    same("columns", seen, list("trace").len())
}
