//! A checked little-endian view of an object that knows absolute offsets.

#[cfg(any(feature = "obs", feature = "parquet", feature = "mlt"))]
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
    #[cfg(any(feature = "obs", feature = "parquet", feature = "mlt"))]
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

/// What the encodings of Parquet and MLT, and footers, are made of.
#[cfg(any(feature = "obs", feature = "parquet", feature = "mlt"))]
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
        // Up to eight bytes at once: lengths that vary are not guessed well.
        if let Some(word) = self.bytes.first_chunk() {
            let word = u64::from_le_bytes(*word);
            let ends = !word & 0x8080_8080_8080_8080;
            // The bytes up to the first without its top bit, of each the seven others, moved together.
            let sevens = word & (ends ^ ends.wrapping_sub(1)) & 0x7f7f_7f7f_7f7f_7f7f;
            let pairs = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
            let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
            let value = fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4;
            if ends != 0 && value <= u64::MAX >> (64 - bits) {
                let len = ends.trailing_zeros() / 8 + 1;
                self.bytes = &self.bytes[len as usize..];
                self.offset += u64::from(len);
                return Ok(value);
            }
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

#[cfg(all(test, any(feature = "obs", feature = "parquet", feature = "mlt")))]
mod tests {
    use super::*;

    /// Both ways to read a varint give the same: the one for eight bytes, and the one for their end.
    #[test]
    fn varints() {
        let mut state = 1u64;
        for i in 0..20_000u32 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (len, bits) = (i as usize % 12, if i % 2 == 0 { 32 } else { 64 });
            let mut bytes = [0x80u8; 24];
            for (byte, from) in bytes.iter_mut().zip(state.to_le_bytes().into_iter().cycle()) {
                *byte |= if i % 3 == 0 { 0 } else { from };
            }
            if len > 0 {
                bytes[len - 1] &= if i % 5 == 0 { 0 } else { 0x7f };
            }
            let (mut quick, mut long) = (Input::at(&bytes, 7), Input::at(&bytes, 7));
            let results = (quick.uleb(bits, Part::Object).ok(), long.long_uleb(bits, Part::Object).ok());
            assert_eq!(results.0, results.1, "{bytes:x?}, {bits} bits");
            assert_eq!(quick.offset(), long.offset());
            assert_eq!(results.0.is_some(), quick.offset() > 7);
        }
        assert_eq!(Input::new(&[0x80, 0x80]).uleb(64, Part::Object).unwrap_err().kind().name(), "truncated");
        assert_eq!(Input::new(&[0x80; 10]).uleb(64, Part::Object).unwrap_err().kind().name(), "varint_overflow");
    }
}
