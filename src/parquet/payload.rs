//! A section of values as a whole, its type and encoding known at run time.

use bytemuck::Pod;

use super::byte_arrays::ByteArrays;
use super::decoder::Decoder;
use super::encoding::dictionary::Dictionary;
use super::encoding::{Scratch, fault};
use super::options::Options;
use crate::buffer::grow;
use crate::error::{EncodingFault, Error, ErrorKind, Limit, Part};
use crate::input::Input;
use crate::limits::Limits;

/// Values that are decoded before more memory is taken.
const BATCH: usize = 1 << 16;

/// The types that Parquet stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PhysicalType {
    /// BOOLEAN
    Boolean,
    /// INT32
    Int32,
    /// INT64
    Int64,
    /// INT96: 12 bytes
    Int96,
    /// FLOAT
    Float,
    /// DOUBLE
    Double,
    /// BYTE_ARRAY: any length
    ByteArray,
    /// FIXED_LEN_BYTE_ARRAY: bytes of each value, see [`type_length`]
    FixedLenByteArray(usize),
}

impl PhysicalType {
    /// The format's name.
    pub const fn name(self) -> &'static str {
        match self {
            PhysicalType::Boolean => "BOOLEAN",
            PhysicalType::Int32 => "INT32",
            PhysicalType::Int64 => "INT64",
            PhysicalType::Int96 => "INT96",
            PhysicalType::Float => "FLOAT",
            PhysicalType::Double => "DOUBLE",
            PhysicalType::ByteArray => "BYTE_ARRAY",
            PhysicalType::FixedLenByteArray(_) => "FIXED_LEN_BYTE_ARRAY",
        }
    }

    /// Bytes of a value, where all have as many: a truth value has none.
    pub const fn width(self) -> Option<usize> {
        match self {
            PhysicalType::Boolean | PhysicalType::ByteArray => None,
            PhysicalType::Int32 | PhysicalType::Float => Some(4),
            PhysicalType::Int64 | PhysicalType::Double => Some(8),
            PhysicalType::Int96 => Some(12),
            PhysicalType::FixedLenByteArray(width) => Some(width),
        }
    }
}

/// The encodings, by the names that the format gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// PLAIN
    Plain,
    /// PLAIN_DICTIONARY: the old name of RLE_DICTIONARY
    PlainDictionary,
    /// RLE: truth values, behind their length
    Rle,
    /// BIT_PACKED: levels of old files
    BitPacked,
    /// DELTA_BINARY_PACKED
    DeltaBinaryPacked,
    /// DELTA_LENGTH_BYTE_ARRAY
    DeltaLengthByteArray,
    /// DELTA_BYTE_ARRAY
    DeltaByteArray,
    /// RLE_DICTIONARY
    RleDictionary,
    /// BYTE_STREAM_SPLIT
    ByteStreamSplit,
    /// ALP
    Alp,
    /// HYBRID: not one of the format's names. A bare sequence of runs, as levels and indices are.
    Hybrid,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Encoding; 11] = [
        Encoding::Plain,
        Encoding::PlainDictionary,
        Encoding::Rle,
        Encoding::BitPacked,
        Encoding::DeltaBinaryPacked,
        Encoding::DeltaLengthByteArray,
        Encoding::DeltaByteArray,
        Encoding::RleDictionary,
        Encoding::ByteStreamSplit,
        Encoding::Alp,
        Encoding::Hybrid,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Plain => "PLAIN",
            Encoding::PlainDictionary => "PLAIN_DICTIONARY",
            Encoding::Rle => "RLE",
            Encoding::BitPacked => "BIT_PACKED",
            Encoding::DeltaBinaryPacked => "DELTA_BINARY_PACKED",
            Encoding::DeltaLengthByteArray => "DELTA_LENGTH_BYTE_ARRAY",
            Encoding::DeltaByteArray => "DELTA_BYTE_ARRAY",
            Encoding::RleDictionary => "RLE_DICTIONARY",
            Encoding::ByteStreamSplit => "BYTE_STREAM_SPLIT",
            Encoding::Alp => "ALP",
            Encoding::Hybrid => "HYBRID",
        }
    }

    /// The encoding of that name.
    pub fn from_name(name: &str) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|encoding| encoding.name() == name)
    }

    /// The number that page headers give it; none where they have none.
    pub const fn id(self) -> Option<i32> {
        match self {
            Encoding::Plain => Some(0),
            Encoding::PlainDictionary => Some(2),
            Encoding::Rle => Some(3),
            Encoding::BitPacked => Some(4),
            Encoding::DeltaBinaryPacked => Some(5),
            Encoding::DeltaLengthByteArray => Some(6),
            Encoding::DeltaByteArray => Some(7),
            Encoding::RleDictionary => Some(8),
            Encoding::ByteStreamSplit => Some(9),
            Encoding::Alp => Some(10),
            Encoding::Hybrid => None,
        }
    }

    /// The encoding of that number.
    pub fn from_id(id: i32) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|encoding| encoding.id() == Some(id))
    }
}

/// A stated number of values, checked.
///
/// # Errors
/// Negative, or above `max_values`.
pub fn count(stated: i64, limits: &Limits) -> Result<usize, Error> {
    let part = Part::Values("", "count");
    let needed = u64::try_from(stated).map_err(|_| fault(EncodingFault::CountNegative { found: stated }, part))?;
    Limits::check(needed, limits.max_values, Limit::Values, part)?;
    usize::try_from(needed).map_err(|_| {
        let kind = ErrorKind::LimitExceeded { needed, limit: usize::MAX as u64, what: Limit::Values };
        Error::new(kind, part)
    })
}

/// A stated length of FIXED_LEN_BYTE_ARRAY values, checked.
///
/// # Errors
/// 0 or negative.
pub fn type_length(stated: i64) -> Result<usize, Error> {
    match usize::try_from(stated) {
        Ok(length) if length > 0 => Ok(length),
        _ => Err(fault(EncodingFault::TypeLength { found: stated }, Part::Values("", "type length"))),
    }
}

/// A section of values, without its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// How the values are encoded.
    pub encoding: Encoding,
    /// What they are; of no account for HYBRID and BIT_PACKED.
    pub physical_type: PhysicalType,
    /// How many there are.
    pub count: usize,
    /// Bits of a number, for HYBRID and BIT_PACKED alone.
    pub bit_width: u32,
    /// The chunk's dictionary, for the encodings that need one.
    pub dictionary: Option<&'a Dictionary>,
}

/// Decoded values. They are equal if all their bits are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Values {
    /// BOOLEAN: 0 or 1 each
    Booleans(Vec<u8>),
    /// INT32
    Int32(Vec<i32>),
    /// INT64
    Int64(Vec<i64>),
    /// FLOAT
    Float(Vec<f32>),
    /// DOUBLE
    Double(Vec<f64>),
    /// INT96 and FIXED_LEN_BYTE_ARRAY: values of `width` bytes behind each other
    Fixed {
        /// Bytes of a value.
        width: usize,
        /// The values.
        bytes: Vec<u8>,
    },
    /// BYTE_ARRAY
    ByteArrays(ByteArrays),
    /// HYBRID and BIT_PACKED: bare numbers
    Numbers(Vec<u32>),
}

impl PartialEq for Values {
    fn eq(&self, other: &Values) -> bool {
        fn bits<W: Pod + PartialEq, T: Pod>(one: &[T], other: &[T]) -> bool {
            bytemuck::cast_slice::<T, W>(one) == bytemuck::cast_slice::<T, W>(other)
        }
        match (self, other) {
            (Values::Booleans(one), Values::Booleans(other)) => one == other,
            (Values::Int32(one), Values::Int32(other)) => one == other,
            (Values::Int64(one), Values::Int64(other)) => one == other,
            (Values::Float(one), Values::Float(other)) => bits::<u32, _>(one, other),
            (Values::Double(one), Values::Double(other)) => bits::<u64, _>(one, other),
            (Values::Fixed { width, bytes }, Values::Fixed { width: other, bytes: others }) => {
                width == other && bytes == others
            }
            (Values::ByteArrays(one), Values::ByteArrays(other)) => one == other,
            (Values::Numbers(one), Values::Numbers(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Values {}

impl Values {
    /// No values of such a type.
    pub fn new(physical_type: PhysicalType) -> Values {
        match physical_type {
            PhysicalType::Boolean => Values::Booleans(Vec::new()),
            PhysicalType::Int32 => Values::Int32(Vec::new()),
            PhysicalType::Int64 => Values::Int64(Vec::new()),
            PhysicalType::Float => Values::Float(Vec::new()),
            PhysicalType::Double => Values::Double(Vec::new()),
            PhysicalType::Int96 => Values::Fixed { width: 12, bytes: Vec::new() },
            PhysicalType::FixedLenByteArray(width) => Values::Fixed { width, bytes: Vec::new() },
            PhysicalType::ByteArray => Values::ByteArrays(ByteArrays::new()),
        }
    }

    /// Forgets the values, and keeps their memory.
    pub fn clear(&mut self) {
        match self {
            Values::Booleans(values) | Values::Fixed { bytes: values, .. } => values.clear(),
            Values::Int32(values) => values.clear(),
            Values::Int64(values) => values.clear(),
            Values::Float(values) => values.clear(),
            Values::Double(values) => values.clear(),
            Values::ByteArrays(values) => values.clear(),
            Values::Numbers(values) => values.clear(),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Booleans(values) => values.len(),
            Values::Int32(values) => values.len(),
            Values::Int64(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Double(values) => values.len(),
            Values::Fixed { width, bytes } => bytes.len() / width,
            Values::ByteArrays(values) => values.len(),
            Values::Numbers(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a section gave.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decoded {
    /// Its values.
    pub values: Values,
    /// Absolute offset behind the last byte that they took.
    pub end: u64,
}

impl Payload<'_> {
    /// Decodes the section into fresh memory.
    ///
    /// Memory is taken as values appear, so that a section which states more than it holds ends in its error first.
    ///
    /// # Errors
    /// Those of [`Decoder::new`] and of the encoding's decoder; [`ErrorKind::LimitExceeded`].
    pub fn decode(&self, input: Input<'_>, options: &Options) -> Result<Decoded, Error> {
        let limits = &options.limits;
        Limits::check(self.count as u64, limits.max_values, Limit::Values, Part::Values("", "count"))?;
        let mut scratch = Scratch::new();
        let mut decoder = Decoder::new(self, input, options, &mut scratch)?;
        let values = match (self.encoding, self.physical_type) {
            (Encoding::Hybrid, _) => Values::Numbers(collect(1, &mut decoder, limits)?),
            (Encoding::BitPacked, _) => {
                Values::Numbers(collect::<u16>(1, &mut decoder, limits)?.into_iter().map(u32::from).collect())
            }
            (_, PhysicalType::Boolean) => Values::Booleans(collect(1, &mut decoder, limits)?),
            (_, PhysicalType::Int32) => Values::Int32(collect(1, &mut decoder, limits)?),
            (_, PhysicalType::Int64) => Values::Int64(collect(1, &mut decoder, limits)?),
            (_, PhysicalType::Float) => Values::Float(collect(1, &mut decoder, limits)?),
            (_, PhysicalType::Double) => Values::Double(collect(1, &mut decoder, limits)?),
            (_, PhysicalType::ByteArray) => {
                let mut values = ByteArrays::new();
                decoder.decode_byte_arrays(decoder.remaining(), &mut values)?;
                Values::ByteArrays(values)
            }
            (_, kind) => {
                let width = kind.width().unwrap_or(1);
                Values::Fixed { width, bytes: collect(width, &mut decoder, limits)? }
            }
        };
        Ok(Decoded { values, end: decoder.finish()? })
    }
}

/// All values, of `each` items, in memory that grows with what is there.
fn collect<T: Pod>(each: usize, decoder: &mut Decoder<'_, '_>, limits: &Limits) -> Result<Vec<T>, Error> {
    let count = decoder.remaining();
    let needed = (count as u64).saturating_mul((each * size_of::<T>()) as u64);
    Limits::check(needed, limits.max_output_bytes, Limit::OutputBytes, Part::Values("", "values"))?;
    let mut values = Vec::new();
    for start in (0..count).step_by(BATCH) {
        let end = count.min(start + BATCH);
        grow(&mut values, end * each)?;
        decoder.decode(&mut values[start * each..end * each])?;
    }
    values.truncate(count * each);
    Ok(values)
}
