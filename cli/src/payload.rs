//! `tilekern payload`: one section of encoded Parquet values, without a file around it.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use tilekern::parquet::{Dictionary, Encoding, Input, Options, Payload, PhysicalType, count, type_length};
use tilekern::{EncodingFault, Error, ErrorKind, Limit, Unsupported};

use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::options::Decoding;
use crate::parquet::values::{Exact, lines};
use crate::source;
use crate::steps::{self, Placed};

/// Decode the value section of a Parquet page alone: levels and compression are off, no header is there
///
/// Such a section states neither its type nor how many values it has; the options do. Every byte of it must be used.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
To cut a section out of a file: `tilekern pages FILE COLUMN` shows offset, header, stored and levels of each page. Of a page
that is not compressed the values are the bytes from offset + header + levels to offset + header + stored, and --count is
values less nulls. A dictionary's page has no levels.

Examples:
  tail -c +101 some.parquet | head -c 250 > ids.bin    bytes 100 to 350
  tilekern payload ids.bin --encoding DELTA_BINARY_PACKED --type INT64 --count 40
  tilekern payload ids.bin --encoding DELTA_BINARY_PACKED --type INT64 --count 40 --trace
  tilekern payload levels.bin --encoding HYBRID --bit-width 3 --count 100 --json
  tilekern payload names.bin --encoding RLE_DICTIONARY --type BYTE_ARRAY --dictionary page.bin --count 12")]
pub struct Args {
    /// The section's bytes; - is standard input
    #[arg(value_name = "FILE")]
    path: PathBuf,

    /// How the values are encoded; HYBRID is a bare sequence of runs, without a type and without its length in front
    #[arg(long, value_name = "E", ignore_case = true, value_parser = PossibleValuesParser::new(Encoding::ALL.map(Encoding::name)))]
    encoding: String,

    /// Values that the page has in the section: nulls are not among them
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    count: i64,

    /// What the values are
    #[arg(long = "type", value_name = "T", ignore_case = true)]
    kind: Option<Kind>,

    /// Bytes of a value of FIXED_LEN_BYTE_ARRAY
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    type_length: Option<i64>,

    /// Bits of a number, for HYBRID and BIT_PACKED
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    bit_width: Option<i64>,

    /// The dictionary: a file with the bytes of its page, which are PLAIN values
    #[arg(long, value_name = "FILE")]
    dictionary: Option<PathBuf>,

    /// Show each step with its bytes, too
    #[arg(long)]
    trace: bool,

    #[command(flatten)]
    decoding: Decoding,
}

/// The physical types, by the names that the format gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    #[value(name = "BOOLEAN")]
    Boolean,
    #[value(name = "INT32")]
    Int32,
    #[value(name = "INT64")]
    Int64,
    #[value(name = "INT96")]
    Int96,
    #[value(name = "FLOAT")]
    Float,
    #[value(name = "DOUBLE")]
    Double,
    #[value(name = "BYTE_ARRAY")]
    ByteArray,
    #[value(name = "FIXED_LEN_BYTE_ARRAY")]
    FixedLenByteArray,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Exact<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<steps::StepRecord<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

impl Args {
    fn encoding(&self) -> Result<Encoding, Stop> {
        Encoding::from_name(&self.encoding.to_ascii_uppercase())
            .ok_or_else(|| Stop::Usage(format!("no encoding is {}", self.encoding)))
    }

    /// The type, which bare numbers have none of.
    fn physical_type(&self, encoding: Encoding) -> Result<PhysicalType, Stop> {
        let usage = |message: &str| Err(Stop::Usage(message.to_owned()));
        let bare = matches!(encoding, Encoding::Hybrid | Encoding::BitPacked);
        match self.kind {
            _ if bare && self.bit_width.is_none() => usage("bare numbers need --bit-width"),
            _ if !bare && self.bit_width.is_some() => usage("--bit-width is for HYBRID and BIT_PACKED alone"),
            _ if bare => Ok(PhysicalType::Int32),
            None => usage("the section does not state its type: add --type"),
            Some(kind) if kind != Kind::FixedLenByteArray && self.type_length.is_some() => {
                usage("--type-length is for FIXED_LEN_BYTE_ARRAY alone")
            }
            Some(Kind::Boolean) => Ok(PhysicalType::Boolean),
            Some(Kind::Int32) => Ok(PhysicalType::Int32),
            Some(Kind::Int64) => Ok(PhysicalType::Int64),
            Some(Kind::Int96) => Ok(PhysicalType::Int96),
            Some(Kind::Float) => Ok(PhysicalType::Float),
            Some(Kind::Double) => Ok(PhysicalType::Double),
            Some(Kind::ByteArray) => Ok(PhysicalType::ByteArray),
            Some(Kind::FixedLenByteArray) => match self.type_length {
                None => usage("values of FIXED_LEN_BYTE_ARRAY need --type-length"),
                Some(stated) => {
                    let length = type_length(stated).map_err(|error| Fault::of(error, &self.path))?;
                    Ok(PhysicalType::FixedLenByteArray(length))
                }
            },
        }
    }

    fn dictionary(
        &self,
        encoding: Encoding,
        kind: PhysicalType,
        options: &Options,
    ) -> Result<Option<Dictionary>, Stop> {
        let needed = matches!(encoding, Encoding::PlainDictionary | Encoding::RleDictionary);
        let path = match &self.dictionary {
            None if needed => return Err(Stop::Usage("indices mean nothing alone: add --dictionary".to_owned())),
            Some(_) if !needed => return Err(Stop::Usage(format!("{} has no dictionary", encoding.name()))),
            None => return Ok(None),
            Some(path) => path,
        };
        let page = source::read(path, &options.limits)?;
        let mut dictionary = Dictionary::new();
        dictionary.read_whole(Input::new(&page), kind, options).map_err(|error| Fault::of(error, path))?;
        Ok(Some(dictionary))
    }
}

/// The encodings that values of a type can have in a section.
fn encodings(kind: PhysicalType, options: &Options) -> Vec<&'static str> {
    let has = |encoding: &Encoding| match encoding {
        // These are of numbers without a type.
        Encoding::Hybrid | Encoding::BitPacked => false,
        Encoding::PlainDictionary | Encoding::RleDictionary => true,
        &encoding => {
            let payload = Payload { encoding, physical_type: kind, count: 0, bit_width: 0, dictionary: None };
            let tried = payload.decode(Input::new(&[]), options);
            !tried.is_err_and(|error| error.kind() == ErrorKind::Unsupported(Unsupported::Encoding))
        }
    };
    Encoding::ALL.iter().filter(|encoding| has(encoding)).map(|encoding| encoding.name()).collect()
}

impl Args {
    /// A fault of the section with what to do: the options may be wrong as well as the bytes.
    fn fault(&self, error: Error, kind: PhysicalType, options: &Options) -> Fault {
        let (found, mut fault) = (error.kind(), Fault::of(error, &self.path));
        let advice = match found {
            ErrorKind::Encoding(EncodingFault::Count { found, .. }) => format!("give --count {found}"),
            ErrorKind::Encoding(EncodingFault::CountNegative { .. }) => "give --count 0 or more".to_owned(),
            ErrorKind::Encoding(EncodingFault::Trailing { .. }) => {
                "check --count and --type, and that the section ends with its values".to_owned()
            }
            ErrorKind::Truncated { .. } => "check --count and --type, and that the section is whole".to_owned(),
            ErrorKind::Encoding(_) => {
                "check --encoding and --type, and that neither levels nor compression are in the section".to_owned()
            }
            ErrorKind::Unsupported(Unsupported::Encoding) => {
                format!("{} has {}", kind.name(), encodings(kind, options).join(", "))
            }
            ErrorKind::LimitExceeded { what: Limit::Values, .. } => "check --count".to_owned(),
            _ => return fault,
        };
        // Fetching it again does not mend wrong options.
        let what = fault.message.split_once("; fetch").map_or(&*fault.message, |(what, _)| what);
        fault.message = format!("{what}; {advice}");
        fault
    }
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let options = Options::with_kernels(args.decoding.kernels()?).limits(args.decoding.limits());
    let encoding = args.encoding()?;
    let physical_type = args.physical_type(encoding)?;
    let fault = |error: Error| args.fault(error, physical_type, &options);
    let dictionary = args.dictionary(encoding, physical_type, &options)?;
    let count = count(args.count, &options.limits).map_err(fault)?;
    let bytes = source::read(&args.path, &options.limits)?;
    let input = Input::new(&bytes);
    let stated = args.bit_width.unwrap_or(0);
    let bit_width = u32::try_from(stated).map_err(|_| {
        let message = format!("is {stated}, must be 0 to 32: give the --bit-width of the numbers");
        Fault { part: Some("bit width".into()), ..Fault::new("out_of_range", &args.path, message) }
    })?;
    let payload = Payload { encoding, physical_type, count, bit_width, dictionary: dictionary.as_ref() };
    let (trace, result) = if args.trace {
        let (trace, decoded) = payload.trace(input, &options);
        // Without values there is a fault.
        (Some(trace.steps), trace.fault.map_or(Ok(decoded), Err))
    } else {
        (None, payload.decode(input, &options).map(Some))
    };
    let (decoded, fault) = match result {
        Ok(decoded) => (decoded, None),
        Err(error) if trace.is_none() => return Err(fault(error).into()),
        Err(error) => (None, Some(fault(error))),
    };
    if console.json {
        console.record(&Record {
            values: decoded.as_ref().map(|decoded| Exact(&decoded.values)),
            consumed: decoded.as_ref().map(|decoded| decoded.end),
            steps: trace.as_ref().map(|trace| steps::records(trace, Placed::whole(&bytes))),
            error: fault.as_ref(),
        })?;
        return Ok(if fault.is_some() { Verdict::Unsound } else { Verdict::Sound });
    }
    if let Some(trace) = &trace {
        steps::print(trace.iter().map(|step| (step, Placed::whole(&bytes))), console)?;
    }
    if let Some(fault) = fault {
        // What was understood comes first.
        console.flush()?;
        return Err(fault.into());
    }
    let values = decoded.as_ref().map(|decoded| lines(&decoded.values)).into_iter().flatten();
    if trace.is_some() {
        console.line("")?;
    }
    for value in values {
        console.line(value)?;
    }
    Ok(Verdict::Sound)
}
