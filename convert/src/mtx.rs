//! Matrix Market text: folders as Cell Ranger and STARsolo write them, and single files. Genes x cells, from 1; a comment
//! before the sizes that begins with `% cells x genes` says that it is the other way round.
//!
//! The text is read once, when the first row is wanted: every entry is checked and goes to a temporary file by the range
//! of cells that it belongs to. Order does not matter, and rows can be had again without parsing text.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::num::IntErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use flate2::read::MultiGzDecoder;

use crate::spool::{Blocks, Spool};
use crate::{Error, ErrorKind, Input, InputOptions, Result, RowBlock, Source, Values, table};

/// The only matrix of such a folder.
const SLOT: &str = "matrix";

/// What the three files may be called, behind a prefix that they share.
const MATRIX: &[&str] = &["matrix.mtx"];
const GENES: &[&str] = &["features.tsv", "genes.tsv", "features.txt", "genes.txt"];
const CELLS: &[&str] = &["barcodes.tsv", "barcodes.txt"];

/// How a comment begins that says that rows are cells.
const CELLS_FIRST: &[u8] = b"cells x genes";

/// Columns of a table that are of use, at most.
const COLUMNS: usize = 3;

/// Longest line of any file.
const MAX_LINE: u64 = 1 << 20;

/// Bytes of a spooled entry: cell within its bucket and gene (u32), value (f64).
const RECORD: usize = 16;

/// A folder or file that was found to be Matrix Market.
pub struct Mtx {
    /// As it was given.
    path: PathBuf,
    matrix: PathBuf,
    genes: Option<PathBuf>,
    cells: Option<PathBuf>,
}

impl Mtx {
    /// Whether a file starts as a Matrix Market file does.
    pub fn is_file(path: &Path) -> Result<bool> {
        let mut start = Vec::new();
        let read = text(path)?.take(14).read_to_end(&mut start);
        // What cannot be unpacked is of another kind.
        Ok(read.is_ok() && start.eq_ignore_ascii_case(b"%%MatrixMarket"))
    }

    /// The matrix and its tables in a folder, or none where it has no matrix.
    ///
    /// # Errors
    /// Several matrices; whatever keeps the folder from being read.
    pub fn in_folder(path: &Path) -> Result<Option<Mtx>> {
        let names = names(path)?;
        let mut found: Vec<&String> = names.iter().filter(|name| prefix(name, MATRIX).is_some()).collect();
        if found.is_empty() {
            let is_mtx = |name: &&String| name.strip_suffix(".gz").unwrap_or(name).ends_with(".mtx");
            found = names.iter().filter(is_mtx).collect();
        }
        match found[..] {
            [] => Ok(None),
            [name] => Mtx::at(path, path.join(name)).map(Some),
            [..] => {
                let list = found.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
                let message = format!("holds several matrices: {list}; name the file that is meant");
                Err(Error::new(ErrorKind::Ambiguous, message).in_path(path))
            }
        }
    }

    /// The matrix in a file, with the tables beside it that have its prefix.
    ///
    /// # Errors
    /// Several tables of a kind; whatever keeps the folder from being read.
    pub fn in_file(path: &Path) -> Result<Mtx> {
        Mtx::at(path, path.to_owned())
    }

    /// The files that are read.
    pub fn files(&self) -> Vec<PathBuf> {
        [Some(&self.matrix), self.genes.as_ref(), self.cells.as_ref()].into_iter().flatten().cloned().collect()
    }

    fn at(given: &Path, matrix: PathBuf) -> Result<Mtx> {
        let folder = matrix.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let names = names(folder)?;
        let name = matrix.file_name().unwrap_or_default().to_string_lossy();
        let find = |kinds: &[&str]| {
            let Some(mine) = prefix(&name, MATRIX) else { return Ok(None) };
            let found: Vec<_> = names.iter().filter(|name| prefix(name, kinds) == Some(mine)).collect();
            match found[..] {
                [] => Ok(None),
                [name] => Ok(Some(folder.join(name))),
                [first, second, ..] => {
                    let message = format!("holds both {first} and {second}; remove the one that is not meant");
                    Err(Error::new(ErrorKind::Ambiguous, message).in_path(folder))
                }
            }
        };
        let (genes, cells) = (find(GENES)?, find(CELLS)?);
        Ok(Mtx { path: given.to_owned(), matrix, genes, cells })
    }
}

impl Source for Mtx {
    fn slots(&self) -> Vec<String> {
        vec![SLOT.to_owned()]
    }

    fn open(&self, slot: &str, options: &InputOptions) -> Result<Box<dyn Input>> {
        if slot != SLOT {
            let message = format!("has no {slot}; its only matrix is called {SLOT}");
            return Err(Error::new(ErrorKind::Missing, message).in_path(&self.path));
        }
        Ok(Box::new(MtxInput::open(self, options)?))
    }
}

/// What stands before the usual name of a file, or nothing where it has another.
fn prefix<'a>(name: &'a str, kinds: &[&str]) -> Option<&'a str> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    kinds.iter().find_map(|kind| name.strip_suffix(kind))
}

/// The names in a folder, sorted. Hidden files are left out: some systems put some beside each file.
fn names(folder: &Path) -> Result<Vec<String>> {
    let fault = |error| Error::io(error, folder);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fault)? {
        let name = entry.map_err(fault)?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The text of a file, unpacked where its first bytes say that it is compressed.
fn text(path: &Path) -> Result<Box<dyn BufRead>> {
    let fault = |error| Error::io(error, path);
    let mut file = BufReader::with_capacity(1 << 18, File::open(path).map_err(fault)?);
    let is_gz = file.fill_buf().map_err(fault)?.starts_with(&[0x1f, 0x8b]);
    Ok(if is_gz { Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(file))) } else { Box::new(file) })
}

/// Lines of a text, numbered from 1 and without their ends.
struct Lines<'a> {
    path: &'a Path,
    text: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Lines<'a>> {
        Ok(Lines { path, text: text(path)?, line: Vec::new(), number: 0 })
    }

    fn next(&mut self) -> Result<Option<&[u8]>> {
        self.line.clear();
        self.number += 1;
        // One more than the longest tells one that is too long from one that just fits.
        let mut limited = (&mut self.text).take(MAX_LINE + 1);
        let read = limited.read_until(b'\n', &mut self.line).map_err(|error| Error::io(error, self.path))?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 > MAX_LINE {
            return Err(self.fault(ErrorKind::Syntax, "longer than a line of such a file can be"));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    fn fault(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        self.place(Error::new(kind, message))
    }

    fn place(&self, error: Error) -> Error {
        error.in_part(format!("line {}", self.number)).in_path(self.path)
    }
}

/// The rows of a table without headings: columns between tabs.
fn read_table(path: &Path, expected: u64, what: &str, memory: usize) -> Result<Vec<Vec<String>>> {
    // A file that is compressed can hold far more than it is long.
    let length = std::fs::metadata(path).map_err(|error| Error::io(error, path))?.len();
    let mut left = (memory.max(16 << 20) as u64).saturating_add(length.saturating_mul(64));
    let mut lines = Lines::open(path)?;
    let mut rows = Vec::new();
    let mut blank = 0;
    while let Some(line) = lines.next()? {
        // Only the end of a file may be blank; a table of one column may have an empty name within it.
        if line.is_empty() {
            blank += 1;
            continue;
        }
        rows.extend((0..std::mem::take(&mut blank)).map(|_| vec![String::new()]));
        if rows.len() as u64 > expected {
            break;
        }
        let line = match std::str::from_utf8(line) {
            Ok(line) => line.strip_prefix('\u{feff}').filter(|_| rows.is_empty()).unwrap_or(line),
            Err(_) => return Err(lines.fault(ErrorKind::Syntax, "not UTF-8; save the file as UTF-8")),
        };
        // One column more than are of use, so that it can be told.
        let row: Vec<String> = line.split('\t').take(COLUMNS + 1).map(str::to_owned).collect();
        let bytes = row.iter().map(|text| text.len() as u64 + 32).sum::<u64>() + 32;
        left = left.checked_sub(bytes).ok_or_else(|| {
            let message = format!("the {what} need more memory than a file of {length} bytes may take");
            lines.fault(ErrorKind::LimitExceeded, message).hint("allow more with --memory")
        })?;
        rows.push(row);
    }
    // Names may be empty up to the last line.
    while blank > 0 && (rows.len() as u64) < expected {
        rows.push(vec![String::new()]);
        blank -= 1;
    }
    if rows.len() as u64 == expected {
        return Ok(rows);
    }
    let found = if rows.len() as u64 > expected { "more".to_owned() } else { rows.len().to_string() };
    let message = format!(
        "has {found} lines, but the matrix has {expected} {what}; they are not of one data set, or the matrix is \
         cells x genes: if it is, add the line \"% cells x genes\" behind its first one"
    );
    Err(Error::new(ErrorKind::Inconsistent, message).in_path(path))
}

struct MtxInput {
    path: PathBuf,
    matrix: PathBuf,
    n_cells: u64,
    n_genes: u64,
    /// The gene that each line of the features is, if some are left out.
    keep: Option<Vec<u32>>,
    /// Bytes for reading the text.
    memory: usize,
    folder: PathBuf,
    entries: Option<Entries>,
    obs: RecordBatch,
    var: RecordBatch,
    notes: Vec<String>,
}

/// All entries, in files by ranges of cells.
struct Entries {
    folder: PathBuf,
    /// Nonzeros of each cell.
    counts: Vec<u32>,
    /// Whether each bucket's entries came in the order of cells.
    sorted: Vec<bool>,
    cells_per_bucket: u64,
    /// Of features that are left out.
    left_out: u64,
}

/// The first line, and the line of sizes.
struct Head {
    real: bool,
    /// Whether rows are cells, as a comment says; else they are genes.
    cells_first: bool,
    n_genes: u64,
    n_cells: u64,
    entries: u64,
}

fn head(lines: &mut Lines<'_>) -> Result<Head> {
    let Some(line) = lines.next()? else { return Err(lines.fault(ErrorKind::Truncated, "the file is empty")) };
    let line = String::from_utf8_lossy(line).to_ascii_lowercase();
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let refuse = |kind, what: &str| Err((kind, what.to_owned()));
    let real = match words[..] {
        ["%%matrixmarket", "matrix", "coordinate", "integer", "general"] => Ok(false),
        ["%%matrixmarket", "matrix", "coordinate", "real" | "double", "general"] => Ok(true),
        ["%%matrixmarket", "matrix", "array", ..] => {
            refuse(ErrorKind::Unsupported, "a dense matrix as text; write it in the coordinate format")
        }
        ["%%matrixmarket", "matrix", "coordinate", "pattern", ..] => {
            refuse(ErrorKind::Unsupported, "a pattern says where counts are, but not which")
        }
        ["%%matrixmarket", "matrix", "coordinate", "integer" | "real" | "double", shape] => {
            refuse(ErrorKind::Unsupported, &format!("a {shape} matrix is none of genes by cells; write it as general"))
        }
        ["%%matrixmarket", "matrix", "coordinate", numbers, _] => {
            refuse(ErrorKind::Unsupported, &format!("numbers that are {numbers} are no counts; write integer"))
        }
        _ => refuse(ErrorKind::Syntax, "not the first line of a Matrix Market matrix"),
    };
    let real = real.map_err(|(kind, message)| lines.fault(kind, message))?;
    let mut cells_first = false;
    loop {
        let sizes = match lines.next()? {
            None => return Err(lines.fault(ErrorKind::Truncated, "the file ends before the line of sizes")),
            Some([b'%', comment @ ..]) => {
                let start = comment.trim_ascii_start().get(..CELLS_FIRST.len());
                cells_first |= start.is_some_and(|start| start.eq_ignore_ascii_case(CELLS_FIRST));
                continue;
            }
            Some(line) if line.trim_ascii().is_empty() => continue,
            Some(line) => numbers(line),
        };
        let what = if cells_first { "cells, genes" } else { "genes, cells" };
        return match sizes {
            Some([n_cells, n_genes, entries]) if cells_first => {
                Ok(Head { real, cells_first, n_genes, n_cells, entries })
            }
            Some([n_genes, n_cells, entries]) => Ok(Head { real, cells_first, n_genes, n_cells, entries }),
            None => Err(lines.fault(ErrorKind::Syntax, format!("must be three whole numbers: {what}, entries"))),
        };
    }
}

/// The whole numbers of a line, exactly so many.
fn numbers<const N: usize>(line: &[u8]) -> Option<[u64; N]> {
    let mut words = words(line);
    let mut found = [0; N];
    for number in &mut found {
        *number = whole(words.next()?)?;
    }
    words.next().is_none().then_some(found)
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn whole(word: &[u8]) -> Option<u64> {
    let digit = |n: u64, &c: &u8| n.checked_mul(10)?.checked_add(u64::from(c.wrapping_sub(b'0')));
    (!word.is_empty() && word.iter().all(u8::is_ascii_digit)).then(|| word.iter().try_fold(0, digit)).flatten()
}

impl MtxInput {
    fn open(files: &Mtx, options: &InputOptions) -> Result<MtxInput> {
        let mut lines = Lines::open(&files.matrix)?;
        let head = head(&mut lines)?;
        let (n_features, n_cells) = (head.n_genes, head.n_cells);
        let limit = |what: &str, n: u64, each: u64| {
            // The tables have a line for each; without them a header of a few bytes must not reserve gigabytes.
            let needed = n.saturating_mul(each);
            if needed <= options.memory as u64 {
                return Ok(());
            }
            let message = format!("{n} {what} need more memory than allowed; raise --memory to {needed} bytes or more");
            Err(Error::new(ErrorKind::LimitExceeded, message).in_path(&files.matrix))
        };
        // Names that are made up take more than those that a file has lines for.
        limit("cells", n_cells, if files.cells.is_some() { 16 } else { 64 })?;
        limit("genes", n_features, if files.genes.is_some() { 32 } else { 64 })?;
        let mut notes = Vec::new();
        if head.cells_first {
            notes.push("rows are cells, for a comment in the file says \"cells x genes\"".to_owned());
        }
        let (var, keep) = genes(files, n_features, options, &mut notes)?;
        let obs = cells(files, n_cells, options.memory, &mut notes)?;
        let n_genes = var.num_rows() as u64;

        Ok(MtxInput {
            path: files.path.clone(),
            matrix: files.matrix.clone(),
            n_cells,
            n_genes,
            keep,
            memory: options.memory,
            folder: options.scratch.join("entries"),
            entries: None,
            obs,
            var,
            notes,
        })
    }
}

impl Entries {
    /// Reads the text.
    fn of(matrix: &Path, keep: Option<&[u32]>, memory: usize, folder: &Path) -> Result<Entries> {
        let mut lines = Lines::open(matrix)?;
        let head = head(&mut lines)?;
        let n_cells = head.n_cells;
        // As many buckets as make each fit into a quarter of the memory, if cells are alike.
        let quarter = memory / 4;
        let bytes = head.entries.saturating_mul(RECORD as u64);
        let buckets = bytes.div_ceil(quarter.max(1) as u64).clamp(1, 512);
        let cells_per_bucket = n_cells.div_ceil(buckets).clamp(1, u32::MAX.into());
        let n_buckets = usize::try_from(n_cells.div_ceil(cells_per_bucket)).unwrap_or(usize::MAX);
        let mut entries = Entries {
            folder: folder.to_owned(),
            counts: vec![0; usize::try_from(n_cells).unwrap_or(usize::MAX)],
            sorted: vec![true; n_buckets],
            cells_per_bucket,
            left_out: 0,
        };
        let mut spool = Spool::create(folder.to_owned(), n_buckets, quarter)?;
        entries.read(&mut lines, &head, keep, &mut spool)?;
        spool.finish()?;
        Ok(entries)
    }

    /// Reads all entries.
    fn read(&mut self, lines: &mut Lines<'_>, head: &Head, keep: Option<&[u32]>, spool: &mut Spool) -> Result<()> {
        let mut last = vec![0; self.sorted.len()];
        let mut seen = 0;
        while let Some(line) = lines.next()? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let entry = entry(line, head);
            seen += 1;
            if seen > head.entries {
                let message = format!("more entries than the {} that the file states", head.entries);
                return Err(lines.fault(ErrorKind::Inconsistent, message));
            }
            let (gene, cell, value) = entry.map_err(|error| lines.place(error))?;
            // Genes were counted against the memory: they fit.
            let mut gene = u32::try_from(gene).unwrap_or(u32::MAX);
            if let Some(keep) = keep {
                match keep[gene as usize] {
                    u32::MAX => {
                        self.left_out += 1;
                        continue;
                    }
                    kept => gene = kept,
                }
            }
            let bucket = usize::try_from(cell / self.cells_per_bucket).unwrap_or(usize::MAX);
            let within = u32::try_from(cell % self.cells_per_bucket).unwrap_or(u32::MAX);
            self.sorted[bucket] &= last[bucket] <= within;
            last[bucket] = within;
            let count = &mut self.counts[usize::try_from(cell).unwrap_or(usize::MAX)];
            *count = count.checked_add(1).ok_or_else(|| lines.fault(ErrorKind::OutOfRange, "too many for one cell"))?;
            spool.append(bucket, &[&within.to_le_bytes(), &gene.to_le_bytes(), &value.to_le_bytes()])?;
        }
        if seen < head.entries {
            let message = format!("{seen} entries where the file states {}; fetch it again", head.entries);
            return Err(Error::new(ErrorKind::Truncated, message).in_path(lines.path));
        }
        Ok(())
    }

    /// Hands over the cells of a bucket, as many at a time as need about `memory` bytes.
    fn bucket(
        &self,
        bucket: usize,
        cells: Range<u64>,
        memory: usize,
        visit: &mut dyn FnMut(RowBlock) -> Result<()>,
    ) -> Result<()> {
        let at = |cell: u64| usize::try_from(cell).unwrap_or(usize::MAX);
        let first = bucket as u64 * self.cells_per_bucket;
        let room = (memory / 24).max(1);
        let mut entries = Records::open(&self.folder, bucket)?;
        let mut next = cells.start;
        while next < cells.end {
            // Cells until they fill the memory, but at least one.
            let (start, mut indptr) = (next, vec![0_i64]);
            let mut total = 0;
            while next < cells.end && (next == start || total + self.counts[at(next)] as usize <= room) {
                total += self.counts[at(next)] as usize;
                indptr.push(total as i64);
                next += 1;
            }
            if !self.sorted[bucket] {
                // They may be anywhere: a pass over the bucket for each piece that fits.
                entries = Records::open(&self.folder, bucket)?;
            }
            let mut places: Vec<usize> = indptr.iter().map(|&start| usize::try_from(start).unwrap_or(0)).collect();
            let (mut indices, mut values) = (vec![0; total], vec![0.0; total]);
            let mut left = total;
            while left > 0 {
                let Some((cell, gene, value)) = entries.next()? else {
                    let message = "the temporary files lack entries; convert again";
                    return Err(Error::new(ErrorKind::Truncated, message).in_path(&self.folder));
                };
                let cell = first + u64::from(cell);
                if cell < start || cell >= next {
                    continue;
                }
                let place = &mut places[at(cell - start)];
                (indices[*place], values[*place]) = (gene, value);
                *place += 1;
                left -= 1;
            }
            visit(RowBlock { first_cell: start, indptr, indices, values: Values::F64(values) })?;
        }
        Ok(())
    }
}

/// Gene and cell, from 0, and value of a line.
fn entry(line: &[u8], head: &Head) -> Result<(u64, u64, f64)> {
    let syntax = |message: &str| Error::new(ErrorKind::Syntax, message);
    let mut words = words(line);
    let (Some(row), Some(column), Some(value), None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Err(syntax("must be row, column and count"));
    };
    let (gene, cell) = if head.cells_first { (column, row) } else { (row, column) };
    let number = |word, what: &str, max: u64| {
        let n = whole(word).ok_or_else(|| syntax("gene and cell must be whole numbers"))?;
        let outside = || Error::new(ErrorKind::OutOfRange, format!("{what} {n} is not within 1 to {max}"));
        if n <= max { n.checked_sub(1).ok_or_else(outside) } else { Err(outside()) }
    };
    let (gene, cell) = (number(gene, "gene", head.n_genes)?, number(cell, "cell", head.n_cells)?);
    let text = String::from_utf8_lossy(value);
    if head.real {
        let value = text.parse().map_err(|_| syntax("the count is not a number"))?;
        return Ok((gene, cell, value));
    }
    let no_count = || Error::not_a_count(cell, gene, &text, false);
    match text.parse::<i64>() {
        Ok(value) => Ok((gene, cell, u32::try_from(value).map_err(|_| no_count())?.into())),
        Err(error) => Err(match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => no_count(),
            _ => syntax("the count is not a whole number"),
        }),
    }
}

/// The spooled entries of a bucket.
struct Records {
    blocks: Blocks,
    block: Vec<u8>,
    at: usize,
}

impl Records {
    fn open(folder: &Path, bucket: usize) -> Result<Records> {
        Ok(Records { blocks: Blocks::open(folder, bucket)?, block: Vec::new(), at: 0 })
    }

    fn next(&mut self) -> Result<Option<(u32, u32, f64)>> {
        if self.at == self.block.len() {
            let Some(block) = self.blocks.next()? else { return Ok(None) };
            self.block.clear();
            self.block.extend_from_slice(block);
            self.at = 0;
        }
        let Some(record) = self.block[self.at..].first_chunk::<RECORD>() else { return Ok(None) };
        self.at += RECORD;
        let [cell, gene] = [0, 4].map(|at| u32::from_le_bytes([0, 1, 2, 3].map(|i| record[at + i])));
        Ok(Some((cell, gene, f64::from_le_bytes(std::array::from_fn(|i| record[8 + i])))))
    }
}

/// The table of genes, and for each line of the matrix the gene that it is, if some are left out.
fn genes(
    files: &Mtx,
    n_features: u64,
    options: &InputOptions,
    notes: &mut Vec<String>,
) -> Result<(RecordBatch, Option<Vec<u32>>)> {
    let no_type = |path: &Path, types: &[String]| {
        let wanted = options.feature_type.as_deref().unwrap_or_default();
        let mut known: Vec<&str> = types.iter().map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        let what = if known.is_empty() { "the features have no types".into() } else { format!("there are {known:?}") };
        let message = format!("no feature has the type {wanted:?}; {what}");
        Err(Error::new(ErrorKind::Missing, message).in_path(path))
    };
    if n_features == 0 {
        let message = "the matrix has no genes; a dataset needs one at least";
        return Err(Error::new(ErrorKind::OutOfRange, message).in_path(&files.matrix));
    }
    let Some(path) = &files.genes else {
        if options.feature_type.is_some() {
            return no_type(&files.path, &[]);
        }
        notes.push("there is no features.tsv or genes.tsv: genes are named by their numbers, from 0".to_owned());
        let names = (0..n_features).map(|gene| gene.to_string()).collect();
        return Ok((table::of_text(None, vec![("gene", names)])?, None));
    };
    let mut rows = read_table(path, n_features, "genes", options.memory)?;
    let widest = rows.iter().map(Vec::len).max().unwrap_or(1);
    let narrowest = rows.iter().map(Vec::len).min().unwrap_or(1);
    if widest.min(3) != narrowest.min(3) {
        let line = rows.iter().position(|row| row.len().min(3) < widest.min(3)).unwrap_or(0) + 1;
        let message = format!("has fewer columns than others, {widest}");
        return Err(Error::new(ErrorKind::Syntax, message).in_part(format!("line {line}")).in_path(path));
    }
    if widest > 3 {
        notes.push(format!("{}: columns after the third are not converted", path.display()));
    }
    let column = |rows: &[Vec<String>], n: usize| rows.iter().map(|row| row[n].clone()).collect::<Vec<_>>();
    let mut keep = None;
    if let Some(wanted) = &options.feature_type {
        let types = if widest >= 3 { column(&rows, 2) } else { Vec::new() };
        let mut next = 0;
        let kept: Vec<u32> = types
            .iter()
            .map(|found| {
                let kept = if found == wanted { next } else { return u32::MAX };
                next += 1;
                kept
            })
            .collect();
        if next == 0 {
            return no_type(path, &types);
        }
        let left_out = n_features - u64::from(next);
        if left_out > 0 {
            notes.push(format!("{left_out} features are not of the type {wanted:?} and were left out"));
        }
        rows = rows.into_iter().zip(&types).filter(|(_, found)| *found == wanted).map(|(row, _)| row).collect();
        keep = (left_out > 0).then_some(kept);
    } else if widest >= 3 {
        let mut types: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
        types.sort_unstable();
        types.dedup();
        if types.len() > 1 {
            notes.push(format!("features of all types were taken: {}", types.join(", ")));
        }
    }
    let columns = match widest {
        1 => vec![("gene", column(&rows, 0))],
        2 => vec![("gene", column(&rows, 1)), ("gene_ids", column(&rows, 0))],
        _ => {
            vec![("gene", column(&rows, 1)), ("gene_ids", column(&rows, 0)), ("feature_types", column(&rows, 2))]
        }
    };
    Ok((table::of_text(None, columns)?, keep))
}

/// The table of cells.
fn cells(files: &Mtx, n_cells: u64, memory: usize, notes: &mut Vec<String>) -> Result<RecordBatch> {
    let names = match &files.cells {
        Some(path) => {
            let rows = read_table(path, n_cells, "cells", memory)?;
            if rows.iter().any(|row| row.len() > 1) {
                notes.push(format!("{}: columns after the first are not converted", path.display()));
            }
            rows.into_iter().map(|mut row| row.swap_remove(0)).collect()
        }
        None => {
            notes.push("there is no barcodes.tsv: cells are named by their numbers, from 0".to_owned());
            (0..n_cells).map(|cell| cell.to_string()).collect()
        }
    };
    table::of_text(None, vec![("barcode", names)])
}

impl Input for MtxInput {
    fn path(&self) -> &Path {
        &self.path
    }

    fn slot(&self) -> &str {
        SLOT
    }

    fn n_cells(&self) -> u64 {
        self.n_cells
    }

    fn n_genes(&self) -> u64 {
        self.n_genes
    }

    fn obs(&mut self) -> Result<RecordBatch> {
        Ok(self.obs.clone())
    }

    fn var(&mut self) -> Result<RecordBatch> {
        Ok(self.var.clone())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn rows(&mut self, cells: Range<u64>, memory: usize, visit: &mut dyn FnMut(RowBlock) -> Result<()>) -> Result<()> {
        if self.entries.is_none() {
            let found = Entries::of(&self.matrix, self.keep.as_deref(), self.memory, &self.folder)?;
            if found.left_out > 0 {
                let n = found.left_out;
                self.notes.push(format!("{n} entries belong to features of other types and were left out"));
            }
            self.entries = Some(found);
        }
        let Some(entries) = &self.entries else { return Ok(()) };
        let mut next = cells.start;
        while next < cells.end {
            let bucket = next / entries.cells_per_bucket;
            let end = cells.end.min((bucket + 1) * entries.cells_per_bucket);
            entries.bucket(usize::try_from(bucket).unwrap_or(usize::MAX), next..end, memory, visit)?;
            next = end;
        }
        Ok(())
    }
}
