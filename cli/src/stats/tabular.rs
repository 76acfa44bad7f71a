//! Tables of all cells or all genes, as text.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::gather::{self, Count, Gathered};
use crate::fault::Stop;
use crate::selection::Selection;
use crate::target::Target;

/// What stands between the values of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    Tab,
    Comma,
}

impl Separator {
    fn text(self) -> &'static str {
        match self {
            Separator::Tab => "\t",
            Separator::Comma => ",",
        }
    }

    /// A text as it stands in a line. In a csv quotes are doubled, and texts that need it stand in quotes; in a tsv, which
    /// has no quotes, a backslash stands before what would end the value.
    fn quoted(self, text: &str) -> String {
        match self {
            Separator::Comma if text.contains(['"', ',', '\n', '\r']) => format!("\"{}\"", text.replace('"', "\"\"")),
            Separator::Comma => text.to_owned(),
            Separator::Tab => text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"),
        }
    }
}

/// Writes the table of cells while it counts all. Returns the counts, and the file's bytes.
pub fn cells(path: &Path, separator: Separator, selection: &Selection<'_>) -> Result<(Gathered, u64), Stop> {
    whole(path, |out| {
        let between = separator.text();
        writeln!(out, "cell{between}nonzeros{between}total").map_err(|e| Stop::write(e, path))?;
        gather::all(selection, |piece, counts| {
            for (cell, Count { nonzeros, total }) in piece.cells().zip(counts) {
                writeln!(out, "{cell}{between}{nonzeros}{between}{total}").map_err(|e| Stop::write(e, path))?;
            }
            Ok(())
        })
    })
}

/// Writes the table of genes. Returns its bytes.
pub fn genes(
    path: &Path,
    separator: Separator,
    gathered: &Gathered,
    selection: &Selection<'_>,
    names: Option<&[String]>,
) -> Result<u64, Stop> {
    let write = |out: &mut BufWriter<&File>| {
        let between = separator.text();
        writeln!(out, "gene{between}name{between}nonzeros{between}total")?;
        for (column, Count { nonzeros, total }) in (0..).zip(&gathered.genes) {
            let name = names.and_then(|names| names.get(column as usize)).map(|name| separator.quoted(name));
            let (gene, name) = (selection.stored(column), name.unwrap_or_default());
            writeln!(out, "{gene}{between}{name}{between}{nonzeros}{between}{total}")?;
        }
        Ok(())
    };
    whole(path, |out| write(out).map_err(|e| Stop::write(e, path))).map(|((), bytes)| bytes)
}

/// Writes a file whole or not at all. Returns what `write` returns, and the file's bytes.
pub fn whole<R>(path: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> Result<R, Stop>) -> Result<(R, u64), Stop> {
    let (target, file) = Target::file(path)?;
    let mut out = BufWriter::with_capacity(1 << 20, &file);
    let result = write(&mut out)?;
    out.flush().map_err(|e| Stop::write(e, path))?;
    drop(out);
    Ok((result, target.commit_file(&file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_in_their_place() {
        assert_eq!(Separator::Comma.quoted("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(Separator::Comma.quoted("a\tb"), "a\tb");
        assert_eq!(Separator::Tab.quoted("a\tb\\\n"), "a\\tb\\\\\\n");
    }
}
