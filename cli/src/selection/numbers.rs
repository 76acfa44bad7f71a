//! Files that list cells or genes: text, or npy files of integers or booleans.

use std::path::Path;
use std::{fs, io};

use tilekern::{Error, Limits};

use crate::fault::Fault;

const MAGIC: &[u8] = b"\x93NUMPY";

/// What such a file holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Numbers {
    List(Vec<u64>),
    Flags(Vec<bool>),
    Text(String),
}

impl Numbers {
    pub fn read(path: &Path, limits: &Limits) -> Result<Numbers, Fault> {
        let io = |error: io::Error| Fault::from(Error::io(error, path));
        let size = fs::metadata(path).map_err(io)?.len();
        if size > limits.max_input_bytes {
            let message = format!("has {size} bytes, and {} are allowed", limits.max_input_bytes);
            return Err(Fault::new("limit_exceeded", path, message));
        }
        let bytes = fs::read(path).map_err(io)?;
        if bytes.starts_with(MAGIC) {
            return npy(&bytes).map_err(|why| Fault::new("unsupported", path, why));
        }
        let no_text = |_| Fault::new("syntax", path, "is neither text in UTF-8 nor an npy file");
        String::from_utf8(bytes).map(Numbers::Text).map_err(no_text)
    }
}

/// Which of `n` things are flagged.
pub fn flags<'a>(
    flags: &'a [bool],
    n: u64,
    what: &str,
    path: &Path,
) -> Result<impl Iterator<Item = u64> + use<'a>, Fault> {
    if flags.len() as u64 != n {
        let message = format!("has {} booleans for {n} {what}", flags.len());
        return Err(Fault::new("inconsistent", path, message));
    }
    Ok((0..).zip(flags).filter(|(_, flag)| **flag).map(|(number, _)| number))
}

/// Numbers of a text, between white space or commas.
pub fn numbers(text: &str, path: &Path) -> Result<Vec<u64>, Fault> {
    let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let number = |word: &str| {
        word.parse().map_err(|_| Fault::new("syntax", path, format!("{word:?} is no number of a cell, from 0")))
    };
    words.map(number).collect()
}

/// A one-dimensional array.
fn npy(bytes: &[u8]) -> Result<Numbers, String> {
    let damaged = || "is a damaged npy file".to_owned();
    let version = bytes.get(MAGIC.len()).ok_or_else(damaged)?;
    let wide = if *version == 1 { 2 } else { 4 };
    let len = bytes.get(8..8 + wide).ok_or_else(damaged)?;
    let len = len.iter().rev().fold(0usize, |len, &byte| len << 8 | usize::from(byte));
    let data = len.saturating_add(8 + wide);
    let header = bytes.get(8 + wide..data).and_then(|header| std::str::from_utf8(header).ok()).ok_or_else(damaged)?;
    let value = |key: &str| Some(header.split_once(&format!("'{key}':"))?.1.trim_start());
    let quoted = value("descr").and_then(|text| text.strip_prefix('\'')?.split('\'').next());
    let shape = value("shape").and_then(|text| text.strip_prefix('(')?.split(')').next()).ok_or_else(damaged)?;
    let dims: Vec<&str> = shape.split(',').map(str::trim).filter(|dim| !dim.is_empty()).collect();
    let how = "save it with numpy.save as one-dimensional array of booleans or of 64-bit integers";
    let [n] = dims[..] else { return Err(format!("is an array of shape ({shape}); {how}")) };
    let descr = quoted.unwrap_or("of records");
    let (signed, size) = match descr {
        "|b1" => (None, 1),
        "|u1" => (Some(false), 1),
        "|i1" => (Some(true), 1),
        "<u2" => (Some(false), 2),
        "<i2" => (Some(true), 2),
        "<u4" => (Some(false), 4),
        "<i4" => (Some(true), 4),
        "<u8" => (Some(false), 8),
        "<i8" => (Some(true), 8),
        _ => return Err(format!("is an array of type {descr:?}; {how}")),
    };
    let values = bytes.get(data..).unwrap_or(&[]);
    let needed = n.parse::<usize>().ok().and_then(|n| n.checked_mul(size));
    if needed != Some(values.len()) {
        return Err(format!("has {} bytes of values where its header says {n} of {descr:?}", values.len()));
    }
    let Some(signed) = signed else { return Ok(Numbers::Flags(values.iter().map(|&byte| byte != 0).collect())) };
    let value = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        let value = u64::from_le_bytes(wide);
        let negative = signed && value >> (8 * size - 1) & 1 == 1;
        if negative { Err("has a negative number".to_owned()) } else { Ok(value) }
    };
    values.chunks_exact(size).map(value).collect::<Result<_, _>>().map(Numbers::List)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
        let len = u16::try_from(header.len()).unwrap().to_le_bytes();
        [MAGIC, &[1, 0], &len, header.as_bytes(), values].concat()
    }

    #[test]
    fn npy_files() {
        assert_eq!(npy(&file("'|b1'", "(3,)", &[1, 0, 1])), Ok(Numbers::Flags(vec![true, false, true])));
        assert_eq!(npy(&file("'<i2'", "(2,)", &[1, 0, 0, 1])), Ok(Numbers::List(vec![1, 256])));
        assert_eq!(npy(&file("'<i8'", "(0,)", &[])), Ok(Numbers::List(vec![])));
        assert_eq!(npy(&file("'<u8'", "(1,)", &[255; 8])), Ok(Numbers::List(vec![u64::MAX])));
        for (descr, shape, values) in [
            ("'<i2'", "(1,)", &[255, 255][..]),
            ("'<f8'", "(1,)", &[0; 8]),
            ("'>i4'", "(1,)", &[0; 4]),
            ("[('a', '<i4')]", "(1,)", &[0; 4]),
            ("'<i4'", "(2,)", &[0; 4]),
            ("'<i4'", "(1, 1)", &[0; 4]),
            ("'<i4'", "()", &[0; 4]),
            ("'<i8'", "(4611686018427387904,)", &[]),
        ] {
            assert!(npy(&file(descr, shape, values)).is_err(), "{descr} {shape}");
        }
        let sound = file("'<i4'", "(1,)", &[0; 4]);
        for len in MAGIC.len()..sound.len() {
            assert!(npy(&sound[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn lists() {
        assert_eq!(numbers(" 3\r\n4,5\t\n", Path::new("x")).unwrap(), [3, 4, 5]);
        for text in ["-1", "x", "1.0", "18446744073709551616"] {
            assert!(numbers(text, Path::new("x")).is_err(), "{text}");
        }
    }
}
