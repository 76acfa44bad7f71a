//! `var_names.txt`: the name of each gene.
//!
//! Source: DELTACEL file format, "Dataset layout".

use crate::error::{Error, ErrorKind, Part, SyntaxFault};

const PART: Part = Part::File(super::VAR_NAMES);

/// The names of a dataset's genes, in the order of its columns. They may be empty, and need not be distinct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarNames {
    text: String,
    /// Where each name ends in the text; the next begins one byte later.
    ends: Vec<usize>,
}

impl VarNames {
    /// Of a list of names.
    pub(super) fn of<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> VarNames {
        let mut list = VarNames { text: String::new(), ends: Vec::new() };
        for name in names {
            if !list.ends.is_empty() {
                list.text.push('\n');
            }
            list.text.push_str(name.as_ref());
            list.ends.push(list.text.len());
        }
        list
    }

    /// Names, one for each gene.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never: a dataset has at least one gene.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name of a gene, or `None` if there is no such gene.
    pub fn get(&self, gene: usize) -> Option<&str> {
        let start = gene.checked_sub(1).map_or(0, |before| self.ends[before.min(self.ends.len() - 1)] + 1);
        Some(&self.text[start..*self.ends.get(gene)?])
    }

    /// All names in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|gene| self.get(gene))
    }
}

/// Reads exactly `n_genes` lines of UTF-8; the line break behind the last one may be missing.
///
/// # Errors
/// In [`Part::File`]: [`ErrorKind::Syntax`] if the text is not UTF-8, [`ErrorKind::Inconsistent`] for another number of
/// lines.
pub(super) fn read(bytes: Vec<u8>, n_genes: u32) -> Result<VarNames, Error> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        Error::new(ErrorKind::Syntax(SyntaxFault::Utf8), PART).at(at).caused_by(error.utf8_error())
    })?;
    if text.ends_with('\n') {
        text.pop();
    }
    let lines = text.bytes().filter(|&byte| byte == b'\n').count() as u64 + 1;
    if lines != u64::from(n_genes) {
        let kind = ErrorKind::Inconsistent { found: lines.into(), expected: n_genes.into() };
        return Err(Error::new(kind, PART).caused_by("its number of lines, and n_genes in manifest.json"));
    }
    let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at);
    let ends = breaks.chain([text.len()]).collect();
    Ok(VarNames { text, ends })
}

/// The file's bytes.
///
/// # Errors
/// [`ErrorKind::Syntax`] for a name with a line break: `\n`, or `\r`, which many readers take for one.
#[cfg(feature = "encode")]
pub(super) fn to_bytes(names: &[String]) -> Result<Vec<u8>, Error> {
    if let Some(index) = names.iter().position(|name| name.contains(['\n', '\r'])) {
        let kind = ErrorKind::Syntax(SyntaxFault::LineBreak);
        return Err(Error::new(kind, Part::Option("var_names")).index(index as u64));
    }
    Ok(names.iter().flat_map(|name| [name.as_bytes(), b"\n"]).flatten().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, n_genes: u32) -> Option<Vec<String>> {
        let names = read(text.into(), n_genes).ok()?;
        assert_eq!(names.get(names.len()), None);
        assert_eq!(names.get(usize::MAX), None);
        assert!(!names.is_empty());
        Some(names.iter().map(str::to_owned).collect())
    }

    #[test]
    fn lines() {
        let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(names("a\nb\n", 2), list(&["a", "b"]));
        assert_eq!(names("a\nb", 2), list(&["a", "b"]));
        assert_eq!(names("a\n\n", 2), list(&["a", ""]));
        assert_eq!(names("\n\n", 2), list(&["", ""]));
        assert_eq!(names("\n", 1), list(&[""]));
        assert_eq!(names("", 1), list(&[""]));
        assert_eq!(names("a\r\nna\u{ef}ve\u{2028}x", 2), list(&["a\r", "na\u{ef}ve\u{2028}x"]));
        assert_eq!(names("a\n", 2), None, "a missing line is no empty name");
        assert_eq!(names("a\nb\n\n", 2), None);
        let error = read(b"ab\n\xff".to_vec(), 2).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Syntax(SyntaxFault::Utf8), Some(3)));
    }

    #[cfg(feature = "encode")]
    #[test]
    fn round_trip() {
        let list: Vec<String> = ["A", "", "A", "x y\tz", ""].map(str::to_owned).into();
        let read = read(to_bytes(&list).unwrap(), 5).unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), list);
        for bad in ["a\nb", "a\r"] {
            assert_eq!(to_bytes(&["a".into(), bad.into()]).unwrap_err().value_index(), Some(1));
        }
    }
}
