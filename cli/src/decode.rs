//! `tilekern decode`: counts, or the columns of Parquet, as a file that other programs read, or their summary.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use indicatif::HumanCount;
use serde::Serialize;
use tilekern::parquet;

use crate::archive::Place;
use crate::console::Console;
use crate::fault::Stop;
use crate::options::{Engine, MapTiles};
use crate::output::{self, Dtype, Format, Options, Written};
use crate::parquet::decode::Request;
use crate::selection::{Choice, Selection};
use crate::source::{AnyInput, Found, STDIO, Source};
use crate::text::counted;
use crate::{Verdict, mlt, target};

/// Decode counts, or the columns of a Parquet file or a map tile, to a file, or to a summary of them
///
/// Memory is bounded by about a tile, or a page of each column, however large the dataset. A file is complete or not there at all; one that is there
/// already is replaced. What a format cannot hold is told. Columns are in the stored order, unless genes are chosen or
/// --columns says otherwise; gene_order.npy and var_names.txt of a dataset tell which is which. Of a Parquet file --json prints the
/// values as they are stored: FLOAT and DOUBLE as their bits, bytes in hexadecimal, INT64 as text. The summary's first values are
/// those stored first, by their physical type, without nulls and the bounds of lists. Of a map tile --json prints all layers
/// with ids, columns and geometry, of which floating-point numbers are their bits. Of GeoJSON nothing is written unless all
/// layers can be decoded; of several columns of one name, as version 1 allows, it has the last one that has a value for the
/// feature. Text of a map tile that would have more bytes than --max-output allows ends without its closing brackets, with an
/// error; in a file there is none of it. Digests of more than that are null, with an error.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern decode counts                          what is in it: cells, genes, nonzeros, sum, …
  tilekern decode counts --json                   the same with the SHA-256 of the three arrays
  tilekern decode counts -o counts.npz            for scipy.sparse.load_npz
  tilekern decode counts -o counts.h5ad           for anndata.read_h5ad, with all tables
  tilekern decode counts -o counts.mtx.gz         Matrix Market, cells x genes
  tilekern decode counts -o counts.parquet        genes and counts as lists, obs; .arrow likewise
  tilekern decode tile.dct --cells 0..10 -o -     the first ten cells as text to standard output
  tilekern decode counts --columns source --json  digests in the order of the source's genes
  tilekern decode counts --genes CD3E --cost      what that would read and decode
  tilekern decode counts --where 'n_umi > 500' --genes CD3E,MS4A1 --dtype u16 -o some.npy
  tilekern decode orders.parquet                  each column with its first values
  tilekern decode orders.parquet --column country --json
  tilekern decode orders.parquet -o orders.jsonl  an object for each row; .arrow likewise
  tilekern decode tile.mlt                        each layer's columns with their first values
  tilekern decode tile.mlt --json                 all values; --digest for digests of them
  tilekern decode tile.mlt --layer roads --column name --json
  tilekern decode tile.mlt --layer roads -o roads.arrow
  tilekern decode planet.pmtiles#14/8529/5975 -o tile.geojson
  tilekern decode tile.mlt --tile 14/8529/5975 -o tile.geojson")]
pub struct Args {
    #[command(flatten)]
    input: AnyInput,

    /// File to write; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// What to write [default: by the extension of OUT; without OUT the summary]
    #[arg(long, value_name = "FORMAT", visible_alias = "format")]
    to: Option<Format>,

    /// Deflate the arrays of an npz: about half the size, several times the time
    #[arg(long)]
    compress: bool,

    /// Numbers of an npy; a count that the type does not hold exactly is refused [default: f32]
    #[arg(long, value_name = "TYPE")]
    dtype: Option<Dtype>,

    /// Tell what there is to be read and decoded for it, and do no more
    #[arg(long, conflicts_with = "output")]
    cost: bool,

    /// Of a Parquet file or map tile only this column, or these: give it again for more; of a map tile `id` and `geometry`
    /// are columns, too, beside properties of these names
    #[arg(long, value_name = "C")]
    column: Vec<String>,

    /// Of a map tile only the layers of this name, or these, or the one of this number from 0
    #[arg(long, value_name = "L")]
    layer: Vec<String>,

    /// Of a map tile, which one it is: positions of GeoJSON are degrees then; of a tile of an archive they always are
    #[arg(long, value_name = "Z/X/Y")]
    tile: Option<Place>,

    /// Of a map tile, with JSON: digests in place of ids, geometry and values
    #[arg(long)]
    digest: bool,

    #[command(flatten)]
    map_tiles: MapTiles,

    /// Of a Parquet file only the row group of this number, from 0
    #[arg(long, value_name = "N")]
    row_group: Option<usize>,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    engine: Engine,
}

impl Args {
    /// What to write, one of these.
    fn format(&self, formats: &[Format]) -> Result<Format, Stop> {
        let Some(output) = &self.output else { return Ok(self.to.unwrap_or(Format::Summary)) };
        self.to.or_else(|| Format::of(output)).ok_or_else(|| {
            let formats: Vec<String> = formats.iter().map(|format| format.name()).collect();
            let (name, formats) = (output.display(), formats.join(", "));
            Stop::Usage(format!("cannot tell the format from the name {name}; add --to with one of {formats}"))
        })
    }

    /// The first option of counts that is given, but for those that choose cells and genes.
    fn of_counts(&self) -> Option<&'static str> {
        let given = [
            ("--compress", self.compress),
            ("--dtype", self.dtype.is_some()),
            ("--cost", self.cost),
            ("--threads", self.engine.threads != 0),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// The first option of map tiles that is given.
    fn of_map_tiles(&self) -> Option<&'static str> {
        let given = [("--layer", !self.layer.is_empty()), ("--tile", self.tile.is_some()), ("--digest", self.digest)];
        let given = given.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
        given.or_else(|| self.map_tiles.given())
    }

    /// Decodes a map tile; `place` is where it is in its archive. Options of counts and of Parquet are refused.
    fn decode_map_tile(&self, bytes: &[u8], place: Option<Place>, console: &mut Console) -> Result<Verdict, Stop> {
        let given = self.of_counts().or_else(|| self.choice.given()).or(self.row_group.map(|_| "--row-group"));
        if let Some(option) = given {
            return Err(Stop::Usage(format!("{option} is not for map tiles: choose --layer and --column")));
        }
        let output = self.output.as_deref().filter(|path| *path != Path::new(STDIO));
        let format = match (self.output.as_deref(), self.to) {
            (_, Some(format)) => format,
            (None, None) if console.json || self.digest => Format::Json,
            (Some(_), None) if output.is_none() => Format::Json,
            _ => self.format(&[Format::Json, Format::Geojson, Format::Arrow])?,
        };
        if self.tile.is_some() && format != Format::Geojson {
            return Err(Stop::Usage("--tile is for GeoJSON: add --format geojson".into()));
        }
        if let (Some(said), Some(place)) = (self.tile, place)
            && said != place
        {
            return Err(Stop::Usage(format!("--tile {said} is not the tile that PATH names, {place}: leave it out")));
        }
        if self.digest && format != Format::Json {
            return Err(Stop::Usage("--digest is for JSON: add --json".into()));
        }
        if let Some(output) = output {
            target::refuse_input(&self.input.path, output)?;
        }
        let options = tilekern::mlt::Options::with_kernels(self.engine.kernels()?).limits(self.engine.limits());
        let request = mlt::decode::Request {
            path: &self.input.path,
            layers: &self.layer,
            columns: &self.column,
            place: self.tile.or(place),
            digest: self.digest,
            output,
            format,
            options: self.map_tiles.options(options),
        };
        mlt::decode::run(bytes, &request, console)
    }

    /// Decodes a Parquet file. Options of counts are refused.
    fn decode_parquet(&self, bytes: &[u8], console: &mut Console) -> Result<Verdict, Stop> {
        if let Some(option) = self.of_counts() {
            return Err(Stop::Usage(format!("{option} is for counts: leave it out for a Parquet file")));
        }
        if let Some(option) = self.of_map_tiles() {
            return Err(Stop::Usage(format!("{option} is for map tiles: leave it out for a Parquet file")));
        }
        if let Some(option) = self.choice.given() {
            return Err(Stop::Usage(format!(
                "{option} is for counts: of a Parquet file choose --column and --row-group"
            )));
        }
        let to_stdout = |path: &&Path| *path == Path::new(STDIO);
        let format = match self.output.as_deref() {
            Some(path) if to_stdout(&path) => self.to.unwrap_or(Format::Jsonl),
            _ => self.format(&[Format::Jsonl, Format::Arrow, Format::Summary])?,
        };
        let options = parquet::Options::with_kernels(self.engine.kernels()?).limits(self.engine.limits());
        let output = self.output.as_deref().filter(|path| !to_stdout(path));
        if console.json && output.is_none() && format == Format::Jsonl {
            return Err(Stop::Usage("--json goes to standard output: name a file with -o".into()));
        }
        if let Some(output) = output {
            target::refuse_input(&self.input.path, output)?;
        }
        let request = Request {
            path: &self.input.path,
            columns: &self.column,
            row_group: self.row_group,
            output,
            format,
            options,
        };
        crate::parquet::decode::run(bytes, &request, console)
    }

    /// How to write, which only the formats say that know of it: no option is passed over in silence.
    fn options(&self, format: Format) -> Result<Options, Stop> {
        let only = |option: &str, of: &str| {
            Err(Stop::Usage(format!("{option} is for files of format {of}, and this one is {}", format.name())))
        };
        match (self.compress, self.dtype) {
            (true, _) if format != Format::Npz => only("--compress", "npz"),
            (_, Some(_)) if format != Format::Npy => only("--dtype", "npy"),
            (compress, dtype) => Ok(Options { compress, dtype: dtype.unwrap_or_default() }),
        }
    }
}

/// What `--json` prints about a file that was written.
#[derive(Serialize)]
struct Record<'a> {
    output: &'a str,
    format: Format,
    n_cells: u64,
    n_genes: u32,
    nnz: u64,
    bytes: u64,
    notes: Vec<String>,
}

/// What `--json` prints with `--cost`.
#[derive(Serialize)]
struct CostRecord {
    n_cells: u64,
    n_genes: u32,
    tiles: u64,
    chunks: u64,
    bytes_read: u64,
    nonzeros_decoded: u64,
    nonzeros_at_most: u64,
    result_bytes_at_most: u64,
}

fn tell_cost(selection: &Selection<'_>, console: &mut Console) -> Result<(), Stop> {
    let cost = selection.cost()?;
    selection.progress.finish_and_clear();
    let record = CostRecord {
        n_cells: selection.n_cells(),
        n_genes: selection.n_genes(),
        tiles: cost.tiles,
        chunks: cost.chunks,
        bytes_read: cost.bytes_read,
        nonzeros_decoded: cost.nonzeros_decoded,
        nonzeros_at_most: cost.nonzeros,
        result_bytes_at_most: cost.result_bytes,
    };
    if console.json {
        return console.record(&record);
    }
    let rows = [
        ("cells", record.n_cells),
        ("genes", record.n_genes.into()),
        ("tiles to open", record.tiles),
        ("chunks to decode", record.chunks),
        ("bytes to read", record.bytes_read),
        ("nonzeros to decode", record.nonzeros_decoded),
        ("nonzeros kept, at most", record.nonzeros_at_most),
        ("bytes of results, at most", record.result_bytes_at_most),
    ];
    rows.iter().try_for_each(|(name, n)| console.line(format_args!("{name:<26}{:>16}", HumanCount(*n).to_string())))
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let found = match args.input.found(&args.engine.limits())? {
        Found::Parquet(bytes) => return args.decode_parquet(&bytes, console),
        Found::Mlt(bytes, place) => return args.decode_map_tile(&bytes, place, console),
        Found::Archive(archive) => return Err(archive.unnamed().into()),
        found => found,
    };
    if let Some(option) = args.of_map_tiles() {
        return Err(Stop::Usage(format!("{option} is for map tiles: leave it out for counts")));
    }
    if !args.column.is_empty() || args.row_group.is_some() {
        return Err(Stop::Usage("--column and --row-group are for Parquet files: choose --cells and --genes".into()));
    }
    let format = args.format(Format::value_variants())?;
    let options = args.options(format)?;
    let decoder = args.engine.decoder()?;
    let source = Source::of(found, &args.input.path, decoder.limits())?;
    let selection = Selection::new(&source, &args.choice, decoder, console)?;
    if args.cost {
        return tell_cost(&selection, console).map(|()| Verdict::Sound);
    }
    let Some(path) = args.output.as_deref().filter(|path| *path != Path::new(STDIO)) else {
        return output::to_stdout(format, &selection, console).map(|()| Verdict::Sound);
    };
    target::refuse_input(&args.input.path, path)?;
    let Written { nnz, bytes, notes } = output::to_file(path, format, &selection, options, console)?;
    let (output, n_cells, n_genes) = (&*path.to_string_lossy(), selection.n_cells(), selection.n_genes());
    if console.json {
        console.record(&Record { output, format, n_cells, n_genes, nnz, bytes, notes })?;
    } else {
        notes.iter().for_each(|note| console.note(format_args!("note: {note}")));
        let shape = format!("{} x {}", counted(n_cells, "cell"), counted(n_genes, "gene"));
        console.note(format_args!("{output}: {shape}, {}, {}", counted(nnz, "nonzero"), counted(bytes, "byte")));
    }
    Ok(Verdict::Sound)
}
