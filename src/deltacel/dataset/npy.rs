//! `gene_order.npy`: which column of the source each gene was.
//!
//! Source: the NEP on the npy format (versions 1.0 to 3.0); DELTACEL file format, "Dataset layout".

use crate::error::{Error, ErrorKind, Part, SyntaxFault};

const PART: Part = Part::File(super::GENE_ORDER);
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Reads a one-dimensional array of `n_genes` distinct `<i4`, none negative.
///
/// # Errors
/// In [`Part::File`], with the offset: [`ErrorKind::BadMagic`], [`ErrorKind::Version`], [`ErrorKind::Syntax`] for a
/// header of any other array, [`ErrorKind::Truncated`], [`ErrorKind::Inconsistent`] for another number of entries,
/// [`ErrorKind::OutOfRange`] for a negative entry, [`ErrorKind::Repeated`] for one that was there before.
pub(super) fn read(bytes: &[u8], n_genes: u32) -> Result<Vec<i32>, Error> {
    let (len, data_at) = header(bytes)?;
    let fault = |kind, at: u64| Err(Error::new(kind, PART).at(at));
    if len != u64::from(n_genes) {
        let kind = ErrorKind::Inconsistent { found: len.into(), expected: n_genes.into() };
        return Err(Error::new(kind, PART).caused_by("its number of entries, and n_genes in manifest.json"));
    }
    let data = &bytes[data_at..];
    let (found, needed) = (bytes.len() as u64, data_at as u64 + 4 * len);
    if found < needed {
        return fault(ErrorKind::Truncated { needed, available: found }, found);
    }
    if found > needed {
        return fault(ErrorKind::Inconsistent { found: found.into(), expected: needed.into() }, needed);
    }
    let order: Vec<i32> = data.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect();
    match fault_in(&order) {
        Some((kind, index)) => Err(Error::new(kind, PART).at((data_at + 4 * index) as u64).index(index as u64)),
        None => Ok(order),
    }
}

/// The first entry that is negative or was there before.
pub(super) fn fault_in(order: &[i32]) -> Option<(ErrorKind, usize)> {
    let mut sorted: Vec<(i32, usize)> = order.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let same = sorted.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1);
    let repeated = same.map(|same| (same[1].1, ErrorKind::Repeated { first: same[0].1 as u64 }));
    let negative = order.iter().zip(0..).filter(|&(&gene, _)| gene < 0);
    let negative = negative
        .map(|(&gene, index)| (index, ErrorKind::OutOfRange { found: gene.into(), min: 0, max: i32::MAX.into() }));
    let (index, kind) = negative.chain(repeated).min_by_key(|&(index, _)| index)?;
    Some((kind, index))
}

/// The file's bytes.
#[cfg(feature = "encode")]
pub(super) fn to_bytes(order: &[i32]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': ({},), }}", order.len()).into_bytes();
    // The data starts on a multiple of 64, behind a line break.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.resize(padded - 1, b' ');
    header.push(b'\n');
    let len = u16::try_from(header.len()).expect("a header of 118 bytes");
    let mut bytes = [MAGIC.as_slice(), &[1, 0], &len.to_le_bytes(), &header].concat();
    bytes.extend(order.iter().flat_map(|gene| gene.to_le_bytes()));
    bytes
}

/// The array's length, and where its data begins.
fn header(bytes: &[u8]) -> Result<(u64, usize), Error> {
    let cut = |needed: usize| {
        let kind = ErrorKind::Truncated { needed: needed as u64, available: bytes.len() as u64 };
        Error::new(kind, PART).at(bytes.len() as u64)
    };
    if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
        return Err(Error::new(ErrorKind::BadMagic, PART).at(0));
    }
    let major = *bytes.get(6).ok_or_else(|| cut(8))?;
    // Version 1 has a shorter length field; 3 allows UTF-8, which no header of ours needs.
    let start = match major {
        1 => 10,
        2 | 3 => 12,
        found => return Err(Error::new(ErrorKind::Version { found: found.into(), expected: 1 }, PART).at(6)),
    };
    let len = bytes.get(8..start).ok_or_else(|| cut(start))?;
    let len = len.iter().rev().fold(0, |len, &byte| len << 8 | usize::from(byte));
    let end = start.saturating_add(len);
    let text = bytes.get(start..end).ok_or_else(|| cut(end))?;
    let mut literal = Literal { text, at: 0 };
    match literal.array() {
        Some(len) => Ok((len, end)),
        None => Err(Error::new(ErrorKind::Syntax(SyntaxFault::Npy), PART).at((start + literal.at) as u64)),
    }
}

/// A header: a literal of a Python dictionary.
struct Literal<'a> {
    text: &'a [u8],
    /// How far it was read, or where it stopped making sense.
    at: usize,
}

impl<'a> Literal<'a> {
    /// The length of a one-dimensional array of `<i4`.
    fn array(&mut self) -> Option<u64> {
        let (mut descr, mut order, mut shape) = (None, None, None);
        self.sign(b'{')?;
        while self.sign(b'}').is_none() {
            let start = self.at;
            let key = self.string()?;
            self.sign(b':')?;
            let fresh = match key {
                b"descr" => descr.replace(self.string().filter(|&descr| descr == b"<i4")?).is_none(),
                // One dimension has but one order.
                b"fortran_order" => order.replace(self.word(b"True").or_else(|| self.word(b"False"))?).is_none(),
                b"shape" => shape.replace(self.shape()?).is_none(),
                _ => false,
            };
            if !fresh {
                self.at = start;
                return None;
            }
            if self.sign(b',').is_none() {
                self.sign(b'}')?;
                break;
            }
        }
        self.blank();
        if self.at < self.text.len() {
            return None;
        }
        descr.and(order).and(shape)
    }

    fn shape(&mut self) -> Option<u64> {
        self.sign(b'(')?;
        self.blank();
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let len = std::str::from_utf8(&self.text[self.at..self.at + digits]).ok()?.parse().ok()?;
        self.at += digits;
        self.sign(b',')?;
        self.sign(b')')?;
        Some(len)
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let quote = if self.sign(b'\'').is_some() { b'\'' } else { self.sign(b'"').map(|()| b'"')? };
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|&byte| byte == quote)?;
        self.at += len + 1;
        Some(&rest[..len])
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.blank();
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn sign(&mut self, sign: u8) -> Option<()> {
        self.word(&[sign])
    }

    fn blank(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str, data: &[i32]) -> Vec<u8> {
        let len = u32::try_from(header.len()).unwrap().to_le_bytes();
        let mut bytes = [MAGIC.as_slice(), &[version, 0], if version == 1 { &len[..2] } else { &len }].concat();
        bytes.extend(header.bytes());
        bytes.extend(data.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    const HEADER: &str = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }  \n";

    #[test]
    fn headers() {
        for version in 1..=3 {
            assert_eq!(read(&file(version, HEADER, &[7, 0, 2]), 3).unwrap(), [7, 0, 2]);
        }
        for header in [
            "{\"shape\":(3,),\"descr\":\"<i4\",\"fortran_order\":True}",
            "{ 'fortran_order' : False , 'shape' : ( 3 , ) , 'descr' : '<i4' }\n",
        ] {
            assert_eq!(read(&file(1, header, &[7, 0, 2]), 3).unwrap(), [7, 0, 2]);
        }
        for (from, to) in [
            ("<i4", ">i4"),
            ("<i4", "<i8"),
            ("'<i4'", "[('a', '<i4')]"),
            ("(3,)", "(3, 1)"),
            ("(3,)", "(3)"),
            ("(3,)", "()"),
            ("(3,)", "(-3,)"),
            ("(3,)", "(99999999999999999999,)"),
            ("False", "0"),
            ("'shape': (3,),", ""),
            ("'shape'", "'descr'"),
            ("'shape'", "'form'"),
            ("}", ""),
            ("}", "} x"),
            ("{", ""),
            ("{'descr", "{'descr': '<i4', 'descr"),
        ] {
            let error = read(&file(1, &HEADER.replacen(from, to, 1), &[7, 0, 2]), 3).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Syntax(SyntaxFault::Npy), "{from} -> {to}");
        }
        let error = read(&file(4, HEADER, &[7, 0, 2]), 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version { found: 4, expected: 1 });
    }

    #[test]
    fn content() {
        let kind = |data: &[i32], n| read(&file(1, HEADER, data), n).unwrap_err().kind().name();
        assert_eq!(kind(&[0, 1, 2], 4), "inconsistent");
        assert_eq!(kind(&[0, 1, 2, 3], 3), "inconsistent");
        assert_eq!(kind(&[0, 1], 3), "truncated");
        assert_eq!(kind(&[0, -1, 2], 3), "out_of_range");
        assert_eq!(kind(&[2, 1, 2], 3), "repeated");
        let error = read(&file(1, HEADER, &[5, 5, -5]), 3).unwrap_err();
        assert_eq!((error.kind(), error.value_index()), (ErrorKind::Repeated { first: 0 }, Some(1)));
        let whole = file(2, HEADER, &[0, 1, 2]);
        for end in 0..whole.len() {
            let error = read(&whole[..end], 3).unwrap_err();
            assert_eq!(error.kind().name(), "truncated", "{end}: {error}");
        }
        assert_eq!(read(b"\x93NUMBY", 3).unwrap_err().kind(), ErrorKind::BadMagic);
    }

    #[cfg(feature = "encode")]
    #[test]
    fn round_trip() {
        for n in [1, 2, 100, 70_000] {
            let order: Vec<i32> = (0..n).rev().collect();
            let bytes = to_bytes(&order);
            assert_eq!((bytes.len() - 4 * order.len()) % 64, 0);
            assert_eq!(read(&bytes, u32::try_from(n).unwrap()).unwrap(), order);
        }
    }
}
