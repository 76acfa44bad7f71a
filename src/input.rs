//! A checked little-endian view of an object that knows absolute offsets.

use crate::error::{Error, ErrorKind, Part};

/// An object's bytes, or a part of them, with the offset at which they stand in the object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Input<'a> {
    /// The whole of an object.
    pub(crate) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, offset: 0 }
    }

    /// The bytes left.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The absolute offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The absolute offset behind the last byte.
    pub(crate) fn end(&self) -> u64 {
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
