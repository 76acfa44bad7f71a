//! Strings: their streams in the order of either version.

use super::super::StringLayout;
use super::super::encoding::{front_coding, fsst, strings};
use super::coding::{Strings, Version};
use super::stream::{Streams, role};
use super::{length, refused};
use crate::error::Error;

/// Lengths, and what they cut.
fn joined(values: &[&str]) -> Result<(Vec<u32>, Vec<u8>), Error> {
    let lengths = values.iter().map(|value| length(value.len())).collect::<Result<_, _>>()?;
    Ok((lengths, values.concat().into_bytes()))
}

impl Strings {
    fn has_codes(&self) -> bool {
        matches!(self.layout, StringLayout::Dictionary | StringLayout::FsstDictionary)
    }

    pub(super) fn is_fsst(&self) -> bool {
        matches!(self.layout, StringLayout::Fsst | StringLayout::FsstDictionary)
    }

    /// Streams without presence.
    pub(super) fn n_streams(&self) -> usize {
        2 + usize::from(self.has_codes()) + 2 * usize::from(self.is_fsst())
    }
}

impl Streams {
    /// All streams of strings.
    pub fn strings(&mut self, values: &[&str], coding: &Strings, implied: Option<usize>) -> Result<(), Error> {
        let extension = match coding.layout {
            StringLayout::Plain => 0,
            StringLayout::Dictionary => 1,
            StringLayout::Fsst => 2,
            StringLayout::FsstDictionary => 3,
        };
        if !coding.has_codes() {
            if coding.front_coded {
                return Err(refused("front coding without a dictionary"));
            }
            let (lengths, bytes) = joined(values)?;
            let implied_lengths = |streams: &mut Streams, role, implied, extension| {
                streams.integers(role, &lengths, false, coding.lengths, implied, extension)
            };
            if !coding.is_fsst() {
                implied_lengths(self, role::VAR_BINARY, implied, extension)?;
                self.bytes(role::DATA, &bytes, false);
                return Ok(());
            }
            if self.version == Version::V2 {
                implied_lengths(self, role::DICTIONARY, implied, extension)?;
            }
            let corpus = self.symbols(&bytes, coding, Some(values.len()))?;
            if self.version == Version::V1 {
                implied_lengths(self, role::DICTIONARY, None, 0)?;
            }
            self.bytes(role::SINGLE, &corpus, false);
            return Ok(());
        }
        let (entries, codes) = strings::encode(values.iter().copied(), coding.front_coded);
        let put_codes = |streams: &mut Streams| {
            streams.integers(role::STRING_OFFSET, &codes, false, coding.codes, implied, extension)
        };
        match (self.version, coding.is_fsst()) {
            (Version::V2, _) => {
                put_codes(self)?;
                self.dictionary(&entries, coding, role::SINGLE, Some(codes.len()))
            }
            (Version::V1, true) => {
                self.dictionary(&entries, coding, role::SINGLE, None)?;
                put_codes(self)
            }
            // Here the codes stand between lengths and bytes.
            (Version::V1, false) => {
                let (lengths, bytes) = self.entries(&entries, coding)?;
                self.integers(role::DICTIONARY, &lengths, false, coding.lengths, None, 0)?;
                put_codes(self)?;
                self.bytes(role::SINGLE, &bytes, false);
                Ok(())
            }
        }
    }

    /// The streams of a dictionary's entries alone.
    pub fn dictionary(
        &mut self,
        entries: &[&str],
        coding: &Strings,
        role: u8,
        implied: Option<usize>,
    ) -> Result<(), Error> {
        let (lengths, mut bytes) = self.entries(entries, coding)?;
        let put_lengths =
            |streams: &mut Streams| streams.integers(role::DICTIONARY, &lengths, false, coding.lengths, implied, 0);
        if self.version == Version::V2 {
            put_lengths(self)?;
        }
        if coding.is_fsst() {
            bytes = self.symbols(&bytes, coding, implied)?;
        }
        if self.version == Version::V1 {
            put_lengths(self)?;
        }
        self.bytes(role, &bytes, coding.front_coded);
        Ok(())
    }

    /// Lengths and bytes of a dictionary's entries.
    fn entries(&self, entries: &[&str], coding: &Strings) -> Result<(Vec<u32>, Vec<u8>), Error> {
        if !coding.front_coded {
            return joined(entries);
        }
        self.of_version_2("front coding")?;
        Ok(front_coding::encode(entries.iter().map(|entry| entry.as_bytes())))
    }

    /// The symbol table that suits the bytes; returns the codes.
    fn symbols(&mut self, bytes: &[u8], coding: &Strings, implied: Option<usize>) -> Result<Vec<u8>, Error> {
        let compressed = fsst::encode(bytes);
        self.integers(role::SYMBOL, &compressed.lengths, false, coding.symbols, implied, 0)?;
        self.bytes(role::FSST, &compressed.symbols, false);
        Ok(compressed.corpus)
    }
}
