//! What `tilekern decode` writes: one file here for each format.

mod arrow;
#[cfg(feature = "h5ad")]
mod h5ad;
mod mtx;
mod npy;
mod npz;
mod parquet;
mod summary;
mod tables;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;

use crate::console::{Console, stdout_failed};
use crate::fault::Stop;
use crate::selection::Selection;
use crate::source::STDIO;
use crate::target::Target;
pub use npy::Dtype;
pub use tables::{Obs, failed as arrow_failed, names};

/// A kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The arrays of a CSR matrix, for scipy.sparse.load_npz
    Npz,
    /// Matrix Market text, cells x genes, from 1; compressed if OUT ends in .gz
    Mtx,
    /// A dense array of cells x genes, for numpy.load
    Npy,
    /// An Arrow IPC file: a row for each cell with the lists of its genes and counts, and the table of cells; the rows of a
    /// Parquet file; the features of one layer of a map tile
    Arrow,
    /// A row for each cell, as in Arrow, as a Parquet file
    Parquet,
    /// An AnnData file with the tables of cells and genes, for anndata.read_h5ad; cells are named by a first column of text
    #[cfg(feature = "h5ad")]
    H5ad,
    /// Of a Parquet file: an object for each row on a line of its own
    Jsonl,
    /// Of a map tile: its layers with all values, exactly
    Json,
    /// Of a map tile: its features, in tile coordinates, or in degrees with --tile and of a tile of an archive; `_layer` and
    /// `_extent` are the layer's
    Geojson,
    /// Counts of cells, genes and nonzeros, sum, largest count and gene; of other files a line for each column
    Summary,
}

/// How to write.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Deflate the arrays of an npz.
    pub compress: bool,
    /// The numbers of an npy.
    pub dtype: Dtype,
}

/// What was written.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    pub nnz: u64,
    pub bytes: u64,
    /// What the file lacks of what there was, and what stands in it in another way; one sentence each.
    pub notes: Vec<String>,
}

impl Format {
    /// The format that a file name asks for.
    pub fn of(path: &Path) -> Option<Format> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        if name == STDIO {
            return Some(Format::Mtx);
        }
        let known = [
            (".npz", Format::Npz),
            (".mtx", Format::Mtx),
            (".mtx.gz", Format::Mtx),
            (".npy", Format::Npy),
            (".arrow", Format::Arrow),
            (".parquet", Format::Parquet),
            (".jsonl", Format::Jsonl),
            (".json", Format::Json),
            (".geojson", Format::Geojson),
            #[cfg(feature = "h5ad")]
            (".h5ad", Format::H5ad),
        ];
        known.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| format)
    }

    /// Whether a file of it is written front to back, and may be a pipe.
    fn streams(self) -> bool {
        match self {
            Format::Mtx | Format::Npy | Format::Arrow | Format::Parquet | Format::Jsonl => true,
            Format::Json | Format::Geojson | Format::Summary => true,
            Format::Npz => false,
            #[cfg(feature = "h5ad")]
            Format::H5ad => false,
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What a matrix alone leaves out of a dataset.
    fn notes(self, selection: &Selection<'_>) -> Vec<String> {
        let Some(manifest) = selection.source.dataset().map(|dataset| dataset.manifest()) else { return Vec::new() };
        let mut left = Vec::new();
        if manifest.obs().is_some() {
            left.push("the table of cells");
        }
        match (manifest.has_var_table(), manifest.has_var_names()) {
            (true, _) => left.push("the table of genes"),
            (false, true) => left.push("the names of genes"),
            (false, false) => {}
        }
        if left.is_empty() {
            return Vec::new();
        }
        vec![format!("{} cannot hold {}: left out", self.name(), left.join(" and "))]
    }
}

/// Writes a file whole or not at all.
pub fn to_file(
    path: &Path,
    format: Format,
    selection: &Selection<'_>,
    options: Options,
    console: &Console,
) -> Result<Written, Stop> {
    if let Ok(found) = fs::metadata(path)
        && !format.streams()
        && !found.is_file()
        && !found.is_dir()
    {
        let message = format!("{} is not written front to back: name a file with -o, or write mtx", format.name());
        return Err(Stop::Usage(message));
    }
    let (target, file) = Target::file(path)?;
    let mut notes = Vec::new();
    let mut buffered = BufWriter::with_capacity(1 << 20, &file);
    let nnz = match format {
        Format::Npz => npz::write(&mut buffered, selection, options.compress, failed(path)),
        Format::Mtx => mtx::write_file(&mut buffered, path, selection),
        Format::Npy => npy::write(&mut buffered, selection, options.dtype, failed(path)),
        Format::Arrow => arrow::write(&mut buffered, selection, path, &mut notes),
        Format::Parquet => parquet::write(&mut buffered, selection, path, &mut notes),
        #[cfg(feature = "h5ad")]
        Format::H5ad => h5ad::write(target.working_path(), selection, path, &mut notes),
        Format::Jsonl | Format::Json | Format::Geojson => Err(no_text(format)),
        Format::Summary => {
            let summary = summary::of(selection, console.json)?;
            let text = if console.json { summary.json() } else { summary.text() };
            writeln!(buffered, "{text}").map_err(failed(path)).map(|()| summary.nnz)
        }
    }?;
    if matches!(format, Format::Npz | Format::Mtx | Format::Npy) {
        notes = format.notes(selection);
    }
    buffered.flush().map_err(failed(path))?;
    drop(buffered);
    let bytes = target.commit_file(&file)?;
    selection.progress.finish_and_clear();
    Ok(Written { nnz, bytes, notes })
}

/// Writes text to standard output.
pub fn to_stdout(format: Format, selection: &Selection<'_>, console: &mut Console) -> Result<(), Stop> {
    match format {
        Format::Summary => {
            let summary = summary::of(selection, console.json)?;
            selection.progress.finish_and_clear();
            let text = if console.json { summary.json() } else { summary.text() };
            console.line(text)
        }
        Format::Mtx if !console.json => mtx::write(console.out(), selection, stdout_failed).map(drop),
        Format::Mtx => Err(Stop::Usage("--json goes to standard output: name a file with -o".into())),
        Format::Jsonl | Format::Json | Format::Geojson => Err(no_text(format)),
        other => Err(Stop::Usage(format!("{} is no text: name a file with -o", other.name()))),
    }
}

fn no_text(format: Format) -> Stop {
    let of = if format == Format::Jsonl { "Parquet files" } else { "map tiles" };
    Stop::Usage(format!("{} is for {of}; of counts mtx is text", format.name()))
}

/// What to make of a failed write to `path`.
fn failed(path: &Path) -> impl Fn(io::Error) -> Stop {
    |error| Stop::write(error, path)
}
