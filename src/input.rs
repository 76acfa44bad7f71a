//! A checked little-endian view of an object that knows absolute offsets.

#[cfg(feature = "parquet")]
use crate::error::EncodingFault;
use crate::error::{Error, ErrorKind, Part};

/// An object's bytes, or a part of them, with the offset at which they stand in the object.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Input<'a> {
    /// The whole of an object.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, offset: 0 }
    }

    /// Bytes that stand at such an absolute offset of their object.
    pub fn at(bytes: &'a [u8], offset: u64) -> Input<'a> {
        Input { bytes, offset }
    }

    /// The bytes left.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The absolute offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The absolute offset behind the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// The part `[start, start + len)` of the object, in absolute offsets, if it lies in this view.
    pub(crate) fn slice(&self, start: u64, len: u64) -> Option<Input<'a>> {
        let from = usize::try_from(start.checked_sub(self.offset)?).ok()?;
        let to = from.checked_add(usize::try_from(len).ok()?)?;
        Some(Input { bytes: self.bytes.get(from..to)?, offset: start })
    }

    /// Takes the next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self, part: Part) -> Result<[u8; N], Error> {
        match self.bytes.split_first_chunk() {
            Some((array, rest)) => {
                self.bytes = rest;
                self.offset += N as u64;
                Ok(*array)
            }
            None => {
                let kind = ErrorKind::Truncated { needed: self.offset + N as u64, available: self.end() };
                Err(Error::new(kind, part).at(self.offset))
            }
        }
    }

    /// Takes a little-endian `u32`.
    pub(crate) fn u32(&mut self, part: Part) -> Result<u32, Error> {
        self.array(part).map(u32::from_le_bytes)
    }

    /// Takes a little-endian `u64`.
    pub(crate) fn u64(&mut self, part: Part) -> Result<u64, Error> {
        self.array(part).map(u64::from_le_bytes)
    }
}

/// What the encodings of Parquet are made of.
#[cfg(feature = "parquet")]
impl<'a> Input<'a> {
    /// The error of a part that needs `needed` bytes from here on, which are not there.
    #[cold]
    pub(crate) fn truncated(&self, needed: u64, part: Part) -> Error {
        let kind = ErrorKind::Truncated { needed: self.offset.saturating_add(needed), available: self.end() };
        Error::new(kind, part).at(self.offset)
    }

    /// Takes the next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: u64, part: Part) -> Result<&'a [u8], Error> {
        match usize::try_from(len).ok().and_then(|len| self.bytes.split_at_checked(len)) {
            Some((taken, rest)) => {
                self.bytes = rest;
                self.offset += len;
                Ok(taken)
            }
            None => Err(self.truncated(len, part)),
        }
    }

    /// Takes one byte.
    #[inline]
    pub(crate) fn byte(&mut self, part: Part) -> Result<u8, Error> {
        self.array::<1>(part).map(|[byte]| byte)
    }

    /// Takes an unsigned LEB128 number of at most `bits` bits (32 or 64), in at most ten bytes.
    #[inline]
    pub(crate) fn uleb(&mut self, bits: u32, part: Part) -> Result<u64, Error> {
        // Nearly all have one byte.
        if let Some((&first, rest)) = self.bytes.split_first()
            && first < 0x80
        {
            self.bytes = rest;
            self.offset += 1;
            return Ok(first.into());
        }
        self.long_uleb(bits, part)
    }

    fn long_uleb(&mut self, bits: u32, part: Part) -> Result<u64, Error> {
        let mut value = 0u64;
        for (i, &byte) in self.bytes.iter().enumerate().take(10) {
            let (low, shift) = (u64::from(byte & 0x7f), 7 * i);
            if low << shift >> shift != low {
                break;
            }
            value |= low << shift;
            if byte < 0x80 {
                if value > u64::MAX >> (64 - bits) {
                    break;
                }
                self.bytes = &self.bytes[i + 1..];
                self.offset += i as u64 + 1;
                return Ok(value);
            }
            if i + 1 == self.bytes.len() && i < 9 {
                return Err(self.truncated(i as u64 + 2, part));
            }
        }
        if self.bytes.is_empty() {
            return Err(self.truncated(1, part));
        }
        Err(Error::new(ErrorKind::Encoding(EncodingFault::VarintOverflow { bits }), part).at(self.offset))
    }

    /// Takes a zigzag number of 64 bits.
    #[inline]
    pub(crate) fn zigzag(&mut self, part: Part) -> Result<i64, Error> {
        let value = self.uleb(64, part)?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}
