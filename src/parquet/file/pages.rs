//! The pages of a column chunk, one behind the other.

use std::ops::Range;

use super::page_header::PageHeader;
use crate::error::{Error, ErrorKind, Part};
use crate::input::Input;
use crate::parquet::options::Leniency;

/// A page as it is stored.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RawPage<'a> {
    /// Its number in the chunk, from 0; dictionary pages count.
    pub number: u32,
    /// What its header says.
    pub header: PageHeader,
    /// Absolute offset of the header.
    pub header_start: u64,
    /// The body, as it is stored.
    pub body: Input<'a>,
    /// The chunk from the header on.
    pub(super) whole: Input<'a>,
}

impl RawPage<'_> {
    /// Where its header lies.
    pub fn header_span(&self) -> Range<u64> {
        self.header_start..self.body.offset()
    }

    /// Where its body lies.
    pub fn body_span(&self) -> Range<u64> {
        self.body.offset()..self.body.end()
    }

    pub(super) fn check_crc(&self, leniency: &Leniency) -> Result<(), Error> {
        let Some(found) = self.header.crc.filter(|_| !leniency.wrong_checksums) else { return Ok(()) };
        let expected = crc32fast::hash(self.body.bytes());
        if found != expected {
            let kind = ErrorKind::Checksum { found: found.into(), expected: expected.into() };
            return Err(Error::new(kind, Part::Page("body")).at(self.body.offset()));
        }
        Ok(())
    }
}

/// The pages of a column chunk. After an error there are no more.
#[derive(Clone, Debug)]
pub struct Pages<'a> {
    input: Input<'a>,
    number: u32,
}

impl<'a> Pages<'a> {
    /// The pages in `chunk`, which holds them and nothing else.
    pub fn new(chunk: Input<'a>) -> Pages<'a> {
        Pages { input: chunk, number: 0 }
    }

    /// Number of the next page.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Takes the next page, if there is one.
    ///
    /// # Errors
    /// Those of [`PageHeader::read`]; truncated, where the body ends behind the chunk.
    pub fn next_page(&mut self) -> Result<Option<RawPage<'a>>, Error> {
        let mut input = self.input;
        // Whatever goes wrong, this was the last.
        self.input = Input::at(&[], input.end());
        if input.bytes().is_empty() {
            return Ok(None);
        }
        let (whole, header_start) = (input, input.offset());
        let header = PageHeader::read(&mut input)?;
        let start = input.offset();
        let body = Input::at(input.take(header.compressed_size, Part::Page("body"))?, start);
        let page = RawPage { number: self.number, header, header_start, body, whole };
        self.input = input;
        self.number = self.number.saturating_add(1);
        Ok(Some(page))
    }
}

impl<'a> Iterator for Pages<'a> {
    type Item = Result<RawPage<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_page().transpose()
    }
}
