//! The decoder of a section whose encoding and type are known at run time: one choice for each batch, none for a value.

use bytemuck::Pod;

use super::byte_arrays::ByteArrays;
use super::encoding::alp::Alp;
use super::encoding::bit_packed::BitPacked;
use super::encoding::byte_stream_split::ByteStreamSplit;
use super::encoding::delta_binary_packed::DeltaBinaryPacked;
use super::encoding::delta_byte_array::DeltaByteArray;
use super::encoding::delta_length_byte_array::DeltaLengthByteArray;
use super::encoding::dictionary::DictionaryIndices;
use super::encoding::hybrid::Hybrid;
use super::encoding::plain::{Plain, PlainBooleans, PlainByteArrays};
use super::encoding::{Scratch, finish};
use super::options::Options;
use super::payload::{Encoding, Payload, PhysicalType};
use crate::error::{Error, ErrorKind, Part, Unsupported};
use crate::input::Input;

/// A decoder of any encoding. As those in [`encoding`](super::encoding), it gives values in batches of any size.
#[derive(Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "there is one for each page")]
pub enum Decoder<'a, 's> {
    /// PLAIN, a fixed width.
    Plain(Plain<'a>),
    /// PLAIN truth values.
    PlainBooleans(PlainBooleans<'a>),
    /// PLAIN, any length.
    PlainByteArrays(PlainByteArrays<'a>),
    /// RLE truth values, and what follows them.
    RleBooleans(Hybrid<'a>, Input<'a>),
    /// Bare numbers.
    Hybrid(Hybrid<'a>),
    /// Bare numbers of old files.
    BitPacked(BitPacked<'a>),
    /// RLE_DICTIONARY and PLAIN_DICTIONARY.
    Dictionary(DictionaryIndices<'a>),
    /// DELTA_BINARY_PACKED of INT32.
    Deltas32(DeltaBinaryPacked<'a, i32>),
    /// DELTA_BINARY_PACKED of INT64.
    Deltas64(DeltaBinaryPacked<'a, i64>),
    /// DELTA_LENGTH_BYTE_ARRAY.
    DeltaLength(DeltaLengthByteArray<'a>),
    /// DELTA_BYTE_ARRAY, and bytes of a value if it has a fixed width.
    DeltaBytes(DeltaByteArray<'a, 's>, Option<usize>),
    /// BYTE_STREAM_SPLIT.
    Split(ByteStreamSplit<'a>),
    /// ALP of FLOAT.
    Alp32(Alp<'a, 's>),
    /// ALP of DOUBLE.
    Alp64(Alp<'a, 's>),
}

/// Does the same with every decoder.
macro_rules! each {
    ($decoder:expr, $this:ident => $do:expr) => {
        match $decoder {
            Decoder::Plain($this) => $do,
            Decoder::PlainBooleans($this) => $do,
            Decoder::PlainByteArrays($this) => $do,
            Decoder::RleBooleans($this, _) => $do,
            Decoder::Hybrid($this) => $do,
            Decoder::BitPacked($this) => $do,
            Decoder::Dictionary($this) => $do,
            Decoder::Deltas32($this) => $do,
            Decoder::Deltas64($this) => $do,
            Decoder::DeltaLength($this) => $do,
            Decoder::DeltaBytes($this, _) => $do,
            Decoder::Split($this) => $do,
            Decoder::Alp32($this) => $do,
            Decoder::Alp64($this) => $do,
        }
    };
}

impl<'a, 's> Decoder<'a, 's> {
    /// The decoder of such a section.
    ///
    /// # Errors
    /// Those of the encoding's decoder; [`ErrorKind::Unsupported`] for an encoding that the type does not have;
    /// [`ErrorKind::Missing`] without the dictionary that is needed.
    pub fn new(
        payload: &Payload<'a>,
        input: Input<'a>,
        options: &Options,
        scratch: &'s mut Scratch,
    ) -> Result<Decoder<'a, 's>, Error> {
        let (count, kind) = (payload.count, payload.physical_type);
        match (payload.encoding, kind) {
            (Encoding::Hybrid, _) => Hybrid::new(input, count, payload.bit_width, options).map(Decoder::Hybrid),
            (Encoding::BitPacked, _) => {
                BitPacked::new(&mut { input }, count, payload.bit_width, options).map(Decoder::BitPacked)
            }
            (Encoding::Rle, PhysicalType::Boolean) => {
                let mut rest = input;
                let hybrid = Hybrid::with_length(&mut rest, count, 1, options)?;
                Ok(Decoder::RleBooleans(hybrid, rest))
            }
            (Encoding::Plain, _) => match kind.width() {
                Some(width) => Plain::new(input, count, width, options).map(Decoder::Plain),
                None if kind == PhysicalType::Boolean => {
                    PlainBooleans::new(input, count, options).map(Decoder::PlainBooleans)
                }
                None => PlainByteArrays::new(input, count, options).map(Decoder::PlainByteArrays),
            },
            (Encoding::PlainDictionary | Encoding::RleDictionary, _) => {
                let missing = || Error::new(ErrorKind::Missing, Part::Values("", "dictionary")).at(input.offset());
                let dictionary = payload.dictionary.ok_or_else(missing)?;
                let width = if kind == PhysicalType::Boolean { Some(1) } else { kind.width() };
                if dictionary.width() != width {
                    return Err(unsupported().at(input.offset()));
                }
                DictionaryIndices::new(input, count, dictionary, options).map(Decoder::Dictionary)
            }
            (Encoding::DeltaBinaryPacked, PhysicalType::Int32) => {
                DeltaBinaryPacked::new(input, count, options).map(Decoder::Deltas32)
            }
            (Encoding::DeltaBinaryPacked, PhysicalType::Int64) => {
                DeltaBinaryPacked::new(input, count, options).map(Decoder::Deltas64)
            }
            (Encoding::DeltaLengthByteArray, PhysicalType::ByteArray) => {
                DeltaLengthByteArray::new(input, count, options).map(Decoder::DeltaLength)
            }
            (Encoding::DeltaByteArray, PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_)) => {
                Ok(Decoder::DeltaBytes(DeltaByteArray::new(input, count, options, scratch)?, kind.width()))
            }
            (
                Encoding::ByteStreamSplit,
                PhysicalType::Int32
                | PhysicalType::Int64
                | PhysicalType::Float
                | PhysicalType::Double
                | PhysicalType::FixedLenByteArray(_),
            ) => {
                let width = kind.width().unwrap_or(1);
                ByteStreamSplit::new(input, count, width, options).map(Decoder::Split)
            }
            (Encoding::Alp, PhysicalType::Float) => Alp::new::<f32>(input, count, options, scratch).map(Decoder::Alp32),
            (Encoding::Alp, PhysicalType::Double) => {
                Alp::new::<f64>(input, count, options, scratch).map(Decoder::Alp64)
            }
            _ => Err(unsupported().at(input.offset())),
        }
    }

    /// Values left.
    pub fn remaining(&self) -> usize {
        each!(self, decoder => decoder.remaining())
    }

    /// The next values of a fixed width: as their bytes in a slice of any type that is aligned as values are.
    ///
    /// Truth values take a byte each, bare numbers of [`Decoder::Hybrid`] 32 bits, those of [`Decoder::BitPacked`] 16.
    ///
    /// # Errors
    /// Those of the encoding's decoder.
    ///
    /// # Panics
    /// If there are fewer than `out` has room for, it is not so aligned, holds no whole number of them, or values have
    /// any length.
    pub fn decode<T: Pod>(&mut self, out: &mut [T]) -> Result<(), Error> {
        match self {
            Decoder::Plain(decoder) => decoder.decode(out),
            Decoder::PlainBooleans(decoder) => decoder.decode(bytemuck::cast_slice_mut(out)),
            Decoder::RleBooleans(decoder, _) => decoder.decode::<u8>(bytemuck::cast_slice_mut(out)),
            Decoder::Hybrid(decoder) => decoder.decode::<u32>(bytemuck::cast_slice_mut(out)),
            Decoder::BitPacked(decoder) => decoder.decode(bytemuck::cast_slice_mut(out)),
            Decoder::Dictionary(decoder) => decoder.decode(out),
            Decoder::Deltas32(decoder) => decoder.decode(bytemuck::cast_slice_mut(out)),
            Decoder::Deltas64(decoder) => decoder.decode(bytemuck::cast_slice_mut(out)),
            Decoder::DeltaBytes(decoder, Some(width)) => decoder.decode_fixed(*width, out),
            Decoder::Split(decoder) => decoder.decode(out),
            Decoder::Alp32(decoder) => decoder.decode::<f32>(bytemuck::cast_slice_mut(out)),
            Decoder::Alp64(decoder) => decoder.decode::<f64>(bytemuck::cast_slice_mut(out)),
            Decoder::PlainByteArrays(_) | Decoder::DeltaLength(_) | Decoder::DeltaBytes(_, None) => {
                panic!("values of any length go to byte arrays")
            }
        }
    }

    /// Appends the next `n` values of any length to `out`.
    ///
    /// # Errors
    /// Those of the encoding's decoder.
    ///
    /// # Panics
    /// If there are fewer, or values have a fixed width.
    pub fn decode_byte_arrays(&mut self, n: usize, out: &mut ByteArrays) -> Result<(), Error> {
        match self {
            Decoder::PlainByteArrays(decoder) => decoder.decode(n, out),
            Decoder::Dictionary(decoder) => decoder.decode_byte_arrays(n, out),
            Decoder::DeltaLength(decoder) => decoder.decode(n, out),
            Decoder::DeltaBytes(decoder, None) => decoder.decode(n, out),
            _ => panic!("values of a fixed width go to slices"),
        }
    }

    /// Bytes of the next `n` values, found without decoding them; of values of any length, without their lengths.
    ///
    /// # Errors
    /// Those of the encoding's decoder.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn size(&self, n: usize) -> Result<u64, Error> {
        assert!(n <= self.remaining(), "{n} of {} values", self.remaining());
        let width = match self {
            Decoder::PlainByteArrays(decoder) => return decoder.size(n),
            Decoder::DeltaLength(decoder) => return decoder.size(n),
            Decoder::DeltaBytes(decoder, None) => return decoder.size(n),
            Decoder::Dictionary(decoder) => return decoder.size(n),
            Decoder::PlainBooleans(_) | Decoder::RleBooleans(..) => 1,
            Decoder::BitPacked(_) => 2,
            Decoder::Hybrid(_) | Decoder::Deltas32(_) | Decoder::Alp32(_) => 4,
            Decoder::Deltas64(_) | Decoder::Alp64(_) => 8,
            Decoder::Plain(decoder) => decoder.width(),
            Decoder::Split(decoder) => decoder.width(),
            Decoder::DeltaBytes(_, Some(width)) => *width,
        };
        Ok((n as u64).saturating_mul(width as u64))
    }

    /// Passes over the next `n` values.
    ///
    /// # Errors
    /// Those of the encoding's decoder.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, n: usize) -> Result<(), Error> {
        each!(self, decoder => decoder.skip(n))
    }

    /// Passes over what is left. Returns the absolute offset where it ends.
    ///
    /// # Errors
    /// Those of the encoding's decoder, or bytes follow.
    pub fn finish(self) -> Result<u64, Error> {
        if let Decoder::RleBooleans(decoder, rest) = self {
            let leniency = decoder.leniency();
            decoder.finish()?;
            return finish(rest, &leniency);
        }
        each!(self, decoder => decoder.finish())
    }
}

fn unsupported() -> Error {
    Error::new(ErrorKind::Unsupported(Unsupported::Encoding), Part::Values("", "encoding"))
}
