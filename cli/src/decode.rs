//! `tilekern decode`: counts as a file that other programs read, or their summary.

mod mtx;
mod npz;
mod summary;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use indicatif::ProgressBar;
use serde::Serialize;
use tilekern::deltacel::{Decoder, Tile};

use crate::Verdict;
use crate::console::{Console, stdout_failed};
use crate::fault::Stop;
use crate::options::{CellRange, Engine};
use crate::source::{Input, STDIO, Source};
use crate::target::Target;

/// Decode counts to a file, or to a summary of them
///
/// Memory is bounded by one tile, however large the dataset. A file is complete or not there at all; one that is there
/// already is replaced. Columns are in the stored order, which gene_order.npy and var_names.txt of a dataset tell.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern decode counts                          what is in it: cells, genes, nonzeros, sum, …
  tilekern decode counts --json                   the same with the SHA-256 of the three arrays
  tilekern decode counts -o counts.npz            for scipy.sparse.load_npz
  tilekern decode counts -o counts.mtx.gz         Matrix Market, cells x genes
  tilekern decode tile.dct --cells 0..10 -o -     the first ten cells as text to standard output")]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// File to write; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// What to write [default: by the extension of OUT; without OUT the summary]
    #[arg(long)]
    format: Option<Format>,

    /// Deflate the arrays of an npz: about half the size, several times the time
    #[arg(long)]
    compress: bool,

    /// Only the cells from A up to, but without, B
    #[arg(long, value_name = "A..B")]
    cells: Option<CellRange>,

    #[command(flatten)]
    engine: Engine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// The arrays of a CSR matrix, for scipy.sparse.load_npz
    Npz,
    /// Matrix Market text, cells x genes, from 1; compressed if OUT ends in .gz
    Mtx,
    /// Counts of cells, genes and nonzeros, sum, largest count and gene
    Summary,
}

impl Args {
    fn format(&self) -> Result<Format, Stop> {
        let Some(output) = &self.output else { return Ok(self.format.unwrap_or(Format::Summary)) };
        let name = output.to_string_lossy().to_ascii_lowercase();
        let by_name = match name.as_str() {
            STDIO => Some(Format::Mtx),
            name if name.ends_with(".npz") => Some(Format::Npz),
            name if name.ends_with(".mtx") || name.ends_with(".mtx.gz") => Some(Format::Mtx),
            _ => None,
        };
        self.format.or(by_name).ok_or_else(|| {
            Stop::Usage(format!("cannot tell the format from the name {name:?}; add --format npz, mtx or summary"))
        })
    }
}

/// What `--json` prints about a file that was written.
#[derive(Serialize)]
struct Written<'a> {
    output: &'a str,
    format: Format,
    n_cells: u64,
    n_genes: u32,
    nnz: u64,
    bytes: u64,
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let format = args.format()?;
    let decoder = args.engine.decoder()?;
    let source = Source::open(&args.input, decoder.limits())?;
    let selection = Selection::new(&source, args.cells.as_ref(), decoder, console)?;
    let output = args.output.as_deref().filter(|path| *path != Path::new(STDIO));
    if let (Some(output), Ok(input)) = (output, fs::canonicalize(&args.input.path))
        && fs::canonicalize(output).is_ok_and(|output| output == input)
    {
        return Err(Stop::Usage("the output is the input: name another file with -o".into()));
    }
    if let (Format::Npz, Some(found)) = (format, output.and_then(|path| fs::metadata(path).ok()))
        && !found.is_file()
        && !found.is_dir()
    {
        return Err(Stop::Usage("npz is not written front to back: name a file with -o, or write mtx".into()));
    }

    let (path, (nnz, bytes)) = match (format, output) {
        (Format::Summary, _) => {
            let summary = summary::of(&selection, console.json)?;
            selection.progress.finish_and_clear();
            let text = if console.json { summary.json() } else { summary.text() };
            let Some(path) = output else { return console.line(text).map(|()| Verdict::Sound) };
            let write = |file: &mut Buffered| writeln!(file, "{text}").map_err(failed(path)).map(|()| summary.nnz);
            (path, to_file(path, write)?)
        }
        (Format::Mtx, Some(path)) => (path, to_file(path, |file| mtx::write_file(file, path, &selection))?),
        (Format::Npz, Some(path)) => {
            (path, to_file(path, |file| npz::write(file, &selection, args.compress, failed(path)))?)
        }
        (Format::Mtx, None) if !console.json => {
            mtx::write(console.out(), &selection, stdout_failed)?;
            return Ok(Verdict::Sound);
        }
        (Format::Mtx, None) => return Err(Stop::Usage("--json goes to standard output: name a file with -o".into())),
        (Format::Npz, None) => return Err(Stop::Usage("npz is no text: name a file with -o".into())),
    };
    selection.progress.finish_and_clear();
    let (output, n_cells, n_genes) = (&*path.to_string_lossy(), selection.n_cells(), selection.n_genes());
    if console.json {
        console.record(&Written { output, format, n_cells, n_genes, nnz, bytes })?;
    } else {
        console.note(format_args!("{output}: {n_cells} cells x {n_genes} genes, {nnz} nonzeros, {bytes} bytes"));
    }
    Ok(Verdict::Sound)
}

type Buffered<'a> = BufWriter<&'a File>;

/// Writes a file whole or not at all. Returns what `write` returns, and the file's bytes.
fn to_file(path: &Path, write: impl FnOnce(&mut Buffered) -> Result<u64, Stop>) -> Result<(u64, u64), Stop> {
    let (target, file) = Target::file(path)?;
    let mut buffered = BufWriter::with_capacity(1 << 20, &file);
    let nnz = write(&mut buffered)?;
    buffered.flush().map_err(failed(path))?;
    drop(buffered);
    let bytes = target.commit_file(&file)?;
    Ok((nnz, bytes))
}

/// What to make of a failed write to `path`.
fn failed(path: &Path) -> impl Fn(io::Error) -> Stop {
    |error| Stop::write(error, path)
}

/// Cells of a source that are to be decoded, a tile at a time.
struct Selection<'a> {
    source: &'a Source,
    cells: Range<u64>,
    n_genes: u32,
    decoder: Decoder,
    progress: ProgressBar,
}

impl<'a> Selection<'a> {
    fn new(
        source: &'a Source,
        range: Option<&CellRange>,
        decoder: Decoder,
        console: &Console,
    ) -> Result<Selection<'a>, Stop> {
        let (n_cells, n_genes) = source.shape()?;
        let cells = match range {
            None => 0..n_cells,
            Some(range) => range.within_or_fault(n_cells, source.path())?,
        };
        Ok(Selection { source, cells, n_genes, decoder, progress: console.progress(0, "decoding") })
    }

    fn n_cells(&self) -> u64 {
        self.cells.end - self.cells.start
    }

    fn n_genes(&self) -> u32 {
        self.n_genes
    }

    /// Hands over the tiles that hold the cells, one after the other, each with its cells that are asked for.
    fn each(&self, mut visit: impl FnMut(&Tile<'_>, Range<usize>) -> Result<(), Stop>) -> Result<(), Stop> {
        self.progress.inc_length(self.source.tiles_of(&self.cells).len() as u64);
        self.source.each_tile(&self.cells, |tile, cells| {
            visit(tile, cells)?;
            self.progress.inc(1);
            Ok(())
        })
    }

    /// The nonzeros of all of them.
    fn nnz(&self) -> Result<u64, Stop> {
        let mut nnz = 0;
        self.each(|tile, cells| {
            nnz += (tile.indptr(cells.end) - tile.indptr(cells.start)).unsigned_abs();
            Ok(())
        })?;
        Ok(nnz)
    }
}
