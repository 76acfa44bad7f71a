//! `tilekern convert`: files of counts to a dataset.

use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use indicatif::{HumanCount, HumanFloatCount, ProgressBar, ProgressState, ProgressStyle};
use serde::Serialize;
use tilekern::deltacel::{Chunks, Profile};
use tilekern_convert::{GeneOrder, MatchGenes, Options, Phase, Progress, Shard, Step, Summary, convert};

use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::options::{CellRange, bytes, profile, threads};
use crate::target;

/// Convert files of counts to a dataset
///
/// An INPUT is an h5ad file, an h5 file of 10x (Cell Ranger 2 and later), a Matrix Market folder or file (.mtx, .mtx.gz),
/// a loom file, an AnnData store in zarr, or the directory of a dataset. What it is, its content says. Several inputs
/// become one dataset.
///
/// Matrix Market text is genes x cells, as Cell Ranger writes it. A file whose rows are cells has a comment that begins with
/// "% cells x genes" before its sizes, as those that `tilekern decode` writes.
///
/// Two passes: the first one checks every value and sums up genes, the second one writes tiles. Values that are no
/// counts, genes that do not exist and files that were cut are refused; cells whose genes are unsorted are sorted,
/// duplicates are added up, stored zeros are dropped, and all of that is told.
///
/// Categories keep their list and its order. What a dataset has no place for is told: that categories of cells are ordered,
/// and which categories of genes are no text (their values are kept). The metadata of a dataset that is the only input is
/// kept, too. A zarr store without the file of a chunk is refused where its values cannot all be the fill value, and told
/// about where they can.
///
/// It works in OUT.partial, which is renamed when it is whole. After an interruption --resume goes on there.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern convert filtered_feature_bc_matrix.h5 counts    a 10x file; a 10x folder likewise
  tilekern convert atlas.h5ad counts --matrix raw/X        where X does not hold counts, or not alone
  tilekern convert a/ b/ c/ counts --shuffle 7             three inputs, their cells shuffled
  tilekern convert a/ b/ counts --match-genes id           inputs with different genes
  tilekern convert counts fast --profile fast              a dataset with other tiles
  tilekern convert counts part --cells 0..5000             some of its cells
  tilekern convert counts t --where 'n_counts > 500'         those that pass a filter
  tilekern convert raw/*.h5ad counts --resume              go on after an interruption

Side by side, on one machine or many (docs/cluster.md has a job script):
  tilekern convert raw/*.h5ad counts --shard 3/16 --count  for 0 to 15, then
  tilekern convert raw/*.h5ad counts --shard 3/16          for 0 to 15, then
  tilekern convert raw/*.h5ad counts --merge 16")]
pub struct Args {
    /// Files and folders to convert, in the order of their cells
    #[arg(value_name = "INPUT", required = true, num_args = 1..)]
    inputs: Vec<PathBuf>,

    /// Directory to make; it must not exist yet
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// Cells of each tile but the last
    #[arg(long, value_name = "T", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    tile_size: u32,

    /// What to spend: small (fewest bytes), balanced, fast (to decode), quick (to write), or plain:LEVEL (zstd as it is)
    #[arg(long, value_name = "P", default_value_t = Profile::Balanced, value_parser = profile)]
    profile: Profile,

    /// Chunks of each tile [default: as many as make chunks of a quarter to one million nonzeros]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    chunks: Option<u32>,

    /// Order of genes: total (by decreasing counts, the smallest), source, or a file that lists names or ids
    #[arg(long, value_name = "ORDER", default_value = "total")]
    gene_order: String,

    /// Convert the tables of cells, too; this is what happens without it
    #[arg(long, conflicts_with = "no_obs")]
    obs: bool,

    /// Leave the tables of cells out
    #[arg(long)]
    no_obs: bool,

    /// Which matrix of an input: X, raw/X, layers/NAME, a genome [default: the only one that holds counts]
    #[arg(long, value_name = "SLOT")]
    matrix: Option<String>,

    /// Only the features of this type, such as "Gene Expression" [default: all]
    #[arg(long, value_name = "NAME")]
    feature_type: Option<String>,

    /// Only the cells from A up to, but without, B of the only input; several times for several ranges, in their order
    #[arg(long, value_name = "A..B")]
    cells: Vec<CellRange>,

    /// Only the cells that pass a filter on the table of cells (see `tilekern obs --help`)
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,

    /// Put the cells of all inputs in a random order, which the seed decides
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,

    /// Round values to the nearest whole number, and tell how many were none
    #[arg(long)]
    round: bool,

    /// Match the genes of inputs; without it they must be the same in the same order
    #[arg(long, value_name = "BY")]
    match_genes: Option<By>,

    /// Threads that write tiles; 0 is one per CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads())]
    threads: u16,

    /// Memory for counts, however many there are. On top come the tables of cells and genes of all inputs, as large as they
    /// are in memory; eight bytes for each cell with --shuffle; and the program itself
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes)]
    memory: u64,

    /// Go on with a conversion that was interrupted, or start one
    #[arg(long)]
    resume: bool,

    /// Do part I of N only, from 0 to N-1: its tiles, or with --count its first pass
    #[arg(long, value_name = "I/N", value_parser = shard, conflicts_with = "resume")]
    shard: Option<Shard>,

    /// Check and count the cells of a part; all parts must be counted before tiles are made
    #[arg(long, requires = "shard")]
    count: bool,

    /// Put the dataset together once all N parts are done
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["shard", "resume"])]
    merge: Option<u32>,
}

/// How genes are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Name,
    Id,
}

fn shard(text: &str) -> Result<Shard, String> {
    let how = || "write I/N, from 0/N to N-1/N: 3/16".to_owned();
    let (index, count) = text.split_once('/').ok_or_else(how)?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| how());
    let shard = Shard { index: number(index)?, count: number(count)? };
    if shard.index < shard.count { Ok(shard) } else { Err(how()) }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    output: &'a str,
    complete: bool,
    inputs: Vec<InputRecord<'a>>,
    n_cells: u64,
    n_genes: u64,
    nnz: u64,
    n_tiles: u64,
    bytes: u64,
    bytes_per_cell: Option<f64>,
    seconds: f64,
    changes: ChangesRecord,
    notes: &'a [String],
}

#[derive(Serialize)]
struct InputRecord<'a> {
    path: String,
    matrix: &'a str,
    n_cells: u64,
}

#[derive(Serialize)]
struct ChangesRecord {
    zeros: u64,
    duplicates: u64,
    unsorted_cells: u64,
    rounded: u64,
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let step = match (args.merge, args.shard) {
        (Some(parts), _) => Step::Merge(parts),
        (None, Some(shard)) if args.count => Step::Count(shard),
        (None, Some(shard)) => Step::Tiles(shard),
        (None, None) => Step::Whole,
    };
    target::if_interrupted("what is done stays; --resume, or the same command again for a part, goes on");
    let bar = Bar::new(console);
    let start = Instant::now();
    let summary = convert(&args.inputs, &args.output, &options(args)?, step, &bar).map_err(Stop::from);
    bar.0.finish_and_clear();
    report(args, &summary?, start.elapsed().as_secs_f64(), console)?;
    Ok(Verdict::Sound)
}

fn options(args: &Args) -> Result<Options, Stop> {
    let both = || Stop::Usage("write both ends of --cells: 0..100".into());
    let cells = args.cells.iter().map(|range| range.bounds().ok_or_else(both)).collect::<Result<Vec<_>, _>>()?;
    Ok(Options {
        tile_size: args.tile_size.into(),
        profile: args.profile,
        chunks: args.chunks.map_or(Chunks::Auto, Chunks::Count),
        gene_order: match args.gene_order.as_str() {
            "total" => GeneOrder::Total,
            "source" => GeneOrder::Source,
            path => GeneOrder::File(path.into()),
        },
        obs: !args.no_obs,
        matrix: args.matrix.clone(),
        feature_type: args.feature_type.clone(),
        cells: (!cells.is_empty()).then_some(cells),
        filter: args.filter.clone(),
        shuffle: args.shuffle,
        round: args.round,
        match_genes: args.match_genes.map(|by| match by {
            By::Name => MatchGenes::Name,
            By::Id => MatchGenes::Id,
        }),
        threads: args.threads.into(),
        memory: args.memory,
        resume: args.resume,
        ..Options::default()
    })
}

fn report(args: &Args, summary: &Summary, seconds: f64, console: &mut Console) -> Result<(), Stop> {
    let Summary { n_cells, n_genes, nnz, n_tiles, tile_bytes, complete, changes, .. } = *summary;
    let output = &*args.output.to_string_lossy();
    let bytes_per_cell = (n_cells > 0 && n_tiles > 0).then(|| tile_bytes as f64 / n_cells as f64);
    if console.json {
        let inputs = summary.inputs.iter().map(|(path, matrix, n_cells)| InputRecord {
            path: path.to_string_lossy().into_owned(),
            matrix,
            n_cells: *n_cells,
        });
        return console.record(&Record {
            output,
            complete,
            inputs: inputs.collect(),
            n_cells,
            n_genes,
            nnz,
            n_tiles,
            bytes: tile_bytes,
            bytes_per_cell,
            seconds,
            changes: ChangesRecord {
                zeros: changes.zeros,
                duplicates: changes.duplicates,
                unsorted_cells: changes.unsorted_cells,
                rounded: changes.rounded,
            },
            notes: &summary.notes,
        });
    }
    for note in &summary.notes {
        console.note(format_args!("note: {note}"));
    }
    for (n, one, many) in [
        (changes.zeros, "stored zero was dropped", "stored zeros were dropped"),
        (
            changes.duplicates,
            "entry named the gene of another one of its cell and was added to it",
            "entries named the gene of another one of their cell and were added to it",
        ),
        (
            changes.unsorted_cells,
            "cell had unsorted genes, which were sorted",
            "cells had unsorted genes, which were sorted",
        ),
        (changes.rounded, "value was rounded to a whole number", "values were rounded to whole numbers"),
    ] {
        if n > 0 {
            console.note(format_args!("note: {}", counted(n, one, many)));
        }
    }
    let tiles = counted(n_tiles, "tile", "tiles");
    let done = match (complete, n_tiles) {
        (true, _) => "",
        (false, 0) => "counted ",
        (false, _) => "a part of ",
    };
    let size = bytes_per_cell.map_or(String::new(), |bytes| {
        format!(" in {tiles}, {} bytes, {bytes:.1} bytes per cell", HumanCount(tile_bytes))
    });
    let (cells, genes) = (counted(n_cells, "cell", "cells"), counted(n_genes, "gene", "genes"));
    let nonzeros = counted(nnz, "nonzero", "nonzeros");
    let rate = HumanFloatCount((n_cells as f64 / seconds.max(1e-9)).round());
    console.note(format_args!("{done}{output}: {cells} x {genes}, {nonzeros}{size}; {seconds:.1} s, {rate} cells/s"));
    Ok(())
}

/// So many of something.
fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", HumanCount(n), if n == 1 { one } else { many })
}

/// A bar for each pass.
pub struct Bar(pub ProgressBar);

impl Bar {
    pub fn new(console: &Console) -> Bar {
        Bar(console.progress(0, ""))
    }
}

impl Progress for Bar {
    fn start(&self, phase: Phase, done: u64, cells: u64) {
        let style =
            ProgressStyle::with_template("{msg} [{bar:30}] {human_pos}/{human_len} cells, {rate}/s, {eta} left");
        // Cells are whole.
        let rate = |state: &ProgressState, to: &mut dyn std::fmt::Write| {
            let _ = write!(to, "{}", HumanFloatCount(state.per_sec().round())); // a line to draw takes all text
        };
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("rate", rate);
        self.0.set_style(style.progress_chars("=> "));
        self.0.set_message(match phase {
            Phase::Verifying => "verifying",
            Phase::Counting => "counting",
            Phase::Writing => "writing",
        });
        self.0.set_length(cells);
        self.0.set_position(done);
        self.0.reset_eta();
    }

    fn advance(&self, cells: u64) {
        self.0.inc(cells);
    }

    fn complete(&self, step: &mut dyn FnMut() -> tilekern_convert::Result<()>) -> tilekern_convert::Result<()> {
        target::complete(step)
    }
}

impl From<tilekern_convert::Error> for Stop {
    fn from(error: tilekern_convert::Error) -> Stop {
        match error.part() {
            // Options that do not go together, or that are out of their range.
            Some("options") => Stop::Usage(error.message().to_owned()),
            _ => Stop::Fault(error.into()),
        }
    }
}

impl From<tilekern_convert::Error> for Fault {
    fn from(error: tilekern_convert::Error) -> Fault {
        Fault {
            kind: error.kind().name(),
            offset: error.offset(),
            part: error.part().map(str::to_owned),
            path: error.path().map(|path| path.to_string_lossy().into_owned()),
            message: error.message().to_owned(),
        }
    }
}
