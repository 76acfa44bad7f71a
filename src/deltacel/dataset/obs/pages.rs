//! How much memory the pages of a Parquet column take, before a library unpacks them: it believes what they state.
//!
//! Source: Apache Parquet, "Data Pages"; Apache Thrift, "Compact protocol".

/// Structures inside structures of a page's header; the format has no more than three.
const MAX_DEPTH: usize = 16;

/// The most bytes that a page of a column chunk states to unpack to; `None` where they do not fill the chunk.
pub(super) fn largest(chunk: &[u8]) -> Option<u64> {
    let mut rest = Thrift(chunk);
    let mut largest = 0;
    while !rest.0.is_empty() {
        let (mut unpacked, mut packed) = (None, None);
        rest.fields(0, &mut |field, value| match field {
            2 => unpacked = Some(value),
            3 => packed = Some(value),
            _ => {}
        })?;
        largest = largest.max(u64::try_from(unpacked?).ok()?);
        rest.take(u64::try_from(packed?).ok()?)?;
    }
    Some(largest)
}

/// Values of the compact protocol.
struct Thrift<'a>(&'a [u8]);

impl<'a> Thrift<'a> {
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        self.0.split_off(..usize::try_from(len).ok()?)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Passes the fields of a structure; `visit` gets the integers that it holds itself.
    fn fields(&mut self, depth: usize, visit: &mut dyn FnMut(i64, i64)) -> Option<()> {
        let mut field = 0i64;
        loop {
            let head = self.byte()?;
            let kind = head & 0x0F;
            if kind == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.integer()?,
                step => field.checked_add(step.into())?,
            };
            match kind {
                1 | 2 => {} // a boolean, which is its own value
                4..=6 => visit(field, self.integer()?),
                kind => self.skip(kind, depth)?,
            }
        }
    }

    /// Passes a value that stands in a list or is no integer.
    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        match kind {
            1..=3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => drop(self.take(8)?),
            8 => {
                let len = self.varint()?;
                self.take(len)?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let len = if head >> 4 == 15 { self.varint()? } else { (head >> 4).into() };
                // Each element takes a byte at least, so that a long list ends with the bytes.
                for _ in 0..len {
                    self.skip(head & 0x0F, depth + 1)?;
                }
            }
            11 => {
                let len = self.varint()?;
                let kinds = if len == 0 { 0 } else { self.byte()? };
                for _ in 0..len {
                    self.skip(kinds >> 4, depth + 1)?;
                    self.skip(kinds & 0x0F, depth + 1)?;
                }
            }
            12 => self.fields(depth + 1, &mut |_, _| {})?,
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type 0, unpacks to 300 from 2 bytes, with a data page header of some fields, a list, a map and text.
    const HEADER: &[u8] = &[
        0x15, 0x00, 0x15, 0xD8, 0x04, 0x15, 0x04, 0x2C, 0x15, 0x06, 0x12, 0x08, 0x08, 0x01, b'x', 0x19, 0x25, 0x02,
        0x04, 0x1B, 0x01, 0x88, 0x01, b'k', 0x01, b'v', 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x00,
    ];

    #[test]
    fn pages_are_passed() {
        let page = [HEADER, b"ab"].concat();
        assert_eq!(largest(&[]), Some(0));
        assert_eq!(largest(&page), Some(300));
        assert_eq!(largest(&[&page[..], &page].concat()), Some(300));
        for end in 1..page.len() {
            assert_eq!(largest(&page[..end]), None, "{end}");
        }
        // A list of structures in structures, and one that says to be endless.
        assert_eq!(largest(&[0x1C; 1000]), None);
        assert_eq!(largest(&[0x19, 0xF5, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 1]), None);
        let negative = [&[0x15, 0x00, 0x15, 0x01, 0x15, 0x00, 0x00][..]].concat();
        assert_eq!(largest(&negative), None);
    }
}
