//! Streams with their headers, as either version writes them.

use super::super::encoding::Word;
use super::super::encoding::{Float, alp, boolean, delta, float_dictionary, integers};
use super::super::{Logical, Physical};
use super::coding::{Floats, Integers, Truths, Version, Words};
use super::refused;
use crate::error::Error;
use crate::output::{push_uleb, push_zigzag};

/// What version 1 says a stream holds: category and subtype.
pub(super) mod role {
    pub const PRESENT: u8 = 0x00;
    pub const DATA: u8 = 0x10;
    pub const SINGLE: u8 = 0x11;
    pub const SHARED: u8 = 0x12;
    pub const VERTEX: u8 = 0x13;
    pub const MORTON: u8 = 0x14;
    pub const FSST: u8 = 0x15;
    pub const VERTEX_OFFSET: u8 = 0x20;
    pub const INDEX: u8 = 0x21;
    pub const STRING_OFFSET: u8 = 0x22;
    pub const VAR_BINARY: u8 = 0x30;
    pub const GEOMETRIES: u8 = 0x31;
    pub const PARTS: u8 = 0x32;
    pub const RINGS: u8 = 0x33;
    pub const TRIANGLES: u8 = 0x34;
    pub const SYMBOL: u8 = 0x35;
    pub const DICTIONARY: u8 = 0x36;
}

/// What a header says.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    pub role: u8,
    /// The logical encoding of version 1, in its place.
    pub logical1: u8,
    /// The logical encoding of version 2, by number.
    pub logical2: u8,
    /// Nothing where the logical encoding makes bytes of its own.
    pub words: Option<Words>,
    /// The lowest bits of version 2.
    pub extension: u8,
    /// Words of the physical sequence, for version 1.
    pub n_words: usize,
    /// Elements, for version 2.
    pub n: usize,
    /// What a reader of version 2 takes for the number of elements where none is stated.
    pub implied: Option<usize>,
    /// What follows the number of bytes.
    pub parameters: Vec<u8>,
}

/// Bytes of a layer in the making.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    pub version: Version,
    pub out: Vec<u8>,
}

impl Streams {
    pub fn new(version: Version) -> Streams {
        Streams { version, out: Vec::new() }
    }

    pub fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub fn number(&mut self, number: usize) {
        push_uleb(number as u64, &mut self.out);
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len());
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Only a layer of version 2 can hold it.
    pub fn of_version_2(&self, what: &'static str) -> Result<(), Error> {
        if self.version == Version::V2 { Ok(()) } else { Err(refused(what)) }
    }

    /// A header and its payload.
    pub fn put(&mut self, header: &Header, payload: &[u8]) {
        if self.version == Version::V1 {
            let physical = match header.words {
                None | Some(Words::Plain) => 0,
                Some(Words::FastPfor) => 1,
                Some(Words::VarInt) => 2,
            };
            self.out.extend([header.role, header.logical1 | physical]);
            self.number(header.n_words);
            self.number(payload.len());
        } else {
            // Words as they are need no number of bytes.
            let bare = header.words == Some(Words::Plain) && header.logical2 == 0;
            let physical = match header.words {
                None => 0,
                Some(Words::Plain) => u8::from(!bare),
                Some(Words::VarInt) => 2,
                Some(Words::FastPfor) => 3,
            };
            let explicit = header.implied != Some(header.n);
            self.byte(u8::from(explicit) << 7 | header.logical2 << 4 | physical << 2 | header.extension);
            if explicit {
                self.number(header.n);
            }
            if !bare {
                self.number(payload.len());
            }
        }
        self.out.extend_from_slice(&header.parameters);
        self.out.extend_from_slice(payload);
    }

    /// A stream of integers.
    pub fn integers<W: Word>(
        &mut self,
        role: u8,
        values: &[W],
        signed: bool,
        coding: Integers,
        implied: Option<usize>,
        extension: u8,
    ) -> Result<(), Error> {
        let mut header = Header { role, extension, n: values.len(), implied, ..Header::default() };
        let second = self.version == Version::V2;
        let (logical, words) = match coding {
            Integers::Values(words) => (Logical::None, Some(words)),
            Integers::Delta(words) => {
                (header.logical1, header.logical2) = (0x20, 1);
                (Logical::Delta, Some(words))
            }
            Integers::Delta2(words) => {
                self.of_version_2("second differences")?;
                header.logical2 = 5;
                (Logical::Delta2, Some(words))
            }
            Integers::Rle(words) => {
                (header.logical1, header.logical2) = (0x60, 2);
                if second { (Logical::RlePairs, None) } else { (Logical::Rle { runs: 0 }, Some(words)) }
            }
            Integers::DeltaRle(words) => {
                (header.logical1, header.logical2) = (0x2c, 3);
                if second { (Logical::DeltaRlePairs, None) } else { (Logical::DeltaRle { runs: 0 }, Some(words)) }
            }
            Integers::BitPacked => {
                self.of_version_2("bit packing")?;
                let wide = |&&value: &&W| (if signed { delta::zigzag(value) } else { value }).widen() > u32::MAX.into();
                if values.iter().find(wide).is_some() {
                    return Err(refused("bit packing of words of more than 32 bits"));
                }
                header.logical2 = 4;
                (Logical::BitPacked, None)
            }
        };
        header.words = words;
        let physical = self.physical::<W>(words.unwrap_or_default())?;
        let mut payload = Vec::new();
        let (logical, n_words) = integers::encode(physical, logical, signed, values, &mut payload);
        header.n_words = n_words as usize;
        if let Logical::Rle { runs } | Logical::DeltaRle { runs } = logical {
            push_uleb(runs.into(), &mut header.parameters);
            push_uleb(values.len() as u64, &mut header.parameters);
        }
        self.put(&header, &payload);
        Ok(())
    }

    /// How words are made bytes in this version.
    pub fn physical<W: Word>(&self, words: Words) -> Result<Physical, Error> {
        match (words, self.version) {
            (Words::Plain, _) => Ok(Physical::None),
            (Words::VarInt, _) => Ok(Physical::VarInt),
            (Words::FastPfor, Version::V2) => Ok(Physical::FastPfor128),
            (Words::FastPfor, Version::V1) if W::BITS == 32 => Ok(Physical::FastPfor256),
            (Words::FastPfor, Version::V1) => Err(refused("FastPFOR of 64-bit words")),
        }
    }

    /// A stream of truth values.
    pub fn truths(&mut self, role: u8, values: &[bool], coding: Truths, implied: Option<usize>) -> Result<(), Error> {
        let (code, payload) = self.truths_payload(values, coding)?;
        if self.version == Version::V1 {
            let header = Header { role, logical1: code, n_words: values.len(), ..Header::default() };
            self.put(&header, &payload);
            return Ok(());
        }
        // Such a stream never states its bytes.
        let explicit = implied != Some(values.len());
        self.byte(u8::from(explicit) << 7 | code);
        if explicit {
            self.number(values.len());
        }
        self.out.extend_from_slice(&payload);
        Ok(())
    }

    /// The encoding's code in its place, and the bytes.
    pub fn truths_payload(&self, values: &[bool], coding: Truths) -> Result<(u8, Vec<u8>), Error> {
        let (code, logical) = match (coding, self.version) {
            (Truths::Bitmap, _) => (0, Logical::Bitmap),
            (Truths::ByteRuns, Version::V1) => (0x60, Logical::BooleanRle),
            (Truths::Runs, Version::V2) => (0x10, Logical::BooleanRuns),
            (Truths::Sparse, Version::V2) => (0x20, Logical::Sparse),
            _ => return Err(refused("truth values of another version")),
        };
        let bit = |(i, &value): (usize, &bool)| u8::from(value) << i;
        let bitmap: Vec<u8> = values.chunks(8).map(|eight| eight.iter().enumerate().map(bit).sum()).collect();
        let mut payload = Vec::new();
        boolean::encode(logical, &bitmap, values.len(), &mut payload);
        Ok((code, payload))
    }

    /// A stream of floating-point numbers; behind one of codes, the dictionary.
    pub fn floats<F: Float>(&mut self, values: &[F], coding: Floats, implied: Option<usize>) -> Result<(), Error> {
        let mut header = Header { role: role::DATA, n: values.len(), implied, ..Header::default() };
        let mut payload = Vec::new();
        match coding {
            Floats::Plain => {
                header.words = Some(Words::Plain);
                header.n_words = values.len();
                payload.extend_from_slice(bytemuck::cast_slice(values));
            }
            Floats::Alp(words) => {
                self.of_version_2("ALP")?;
                let scaled = alp::encode(values).ok_or_else(|| refused("ALP of values that are no short decimals"))?;
                (header.logical2, header.words) = (2, Some(words));
                header.parameters.push(scaled.scale);
                push_zigzag(scaled.base, &mut header.parameters);
                integers::encode_words(self.physical::<u64>(words)?, &scaled.integers, &mut payload);
            }
            Floats::Dictionary(words) => {
                self.of_version_2("a dictionary of floating-point numbers")?;
                let (entries, codes) = float_dictionary::encode(values);
                (header.logical2, header.words) = (3, Some(words));
                integers::encode_words(self.physical::<u32>(words)?, &codes, &mut payload);
                self.put(&header, &payload);
                header = Header { n: entries.len(), words: Some(Words::Plain), ..Header::default() };
                payload = bytemuck::cast_slice(&entries).to_vec();
            }
        }
        self.put(&header, &payload);
        Ok(())
    }

    /// Bytes as they are; `front_coded` is what version 2 must know of them.
    pub fn bytes(&mut self, role: u8, bytes: &[u8], front_coded: bool) {
        if self.version == Version::V1 {
            self.put(&Header { role, n_words: bytes.len(), ..Header::default() }, bytes);
            return;
        }
        self.byte(if front_coded { 0x14 } else { 0x04 });
        self.number(bytes.len());
        self.out.extend_from_slice(bytes);
    }
}
