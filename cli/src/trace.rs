//! `tilekern trace`: what each byte of a tile, or of a column of a Parquet file, means.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tilekern::Limits;
use tilekern::deltacel::trace;

use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::options::MapTiles;
use crate::parquet::trace::Request;
use crate::source::{AnyInput, Found, STDIO};
use crate::steps::{self, Placed};
use crate::{Verdict, mlt, parquet, target};

/// Show each step of reading a tile, a column of a Parquet file, or a map tile: where, what, its bytes, and what they say
///
/// The steps of a tile end at the first fault, which is told last. Of a map tile these are the fields of its layers, columns
/// and streams, and what their payloads are made of. Of a Parquet file each page has the fields of its header,
/// its levels and its values; spans are offsets in the file, or, of a page that is compressed, in its unpacked body.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Environment:
  NO_COLOR         no colours on a terminal
  CLICOLOR_FORCE   colours everywhere

Examples:
  tilekern trace counts/tiles/tile_000000.dct | less
  tilekern trace tile.dct --chunk 3                      one chunk alone
  tilekern trace tile.dct --json                         the same steps for programs
  tilekern trace orders.parquet country                  every page of a column
  tilekern trace orders.parquet country --page 1         that of each row group; --row-group takes one
  tilekern trace orders.parquet country --html page.html a page to look at: hover over values, bytes and steps
  tilekern trace tile.mlt                                a map tile; `tile.mlt roads` a layer of it
  tilekern trace tile.mlt roads.name                     a column; `roads.geometry`, `roads.id` as well
  tilekern trace tile.mlt roads.name --html page.html    a page to look at: hover over steps and bytes")]
pub struct Args {
    #[command(flatten)]
    input: AnyInput,

    /// Of a Parquet file, the column: its name, its path with dots, or its number from 0; of a map tile LAYER or
    /// LAYER.COLUMN
    column: Option<String>,

    /// Only the chunk of this number, from 0
    #[arg(long, value_name = "K")]
    chunk: Option<u32>,

    /// Of a Parquet file only the row group of this number, from 0
    #[arg(long, value_name = "N")]
    row_group: Option<usize>,

    /// Of a Parquet file only the page of this number in its column chunk, from 0; the dictionary's page counts
    #[arg(long, value_name = "N")]
    page: Option<u32>,

    /// Of a Parquet file or map tile, write one page of HTML that needs nothing else; - is standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// With --json, of a Parquet file: each value, too, with the bytes that it comes from
    #[arg(long)]
    values: bool,

    #[command(flatten)]
    map_tiles: MapTiles,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    bytes: u64,
    steps: Vec<steps::StepRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

impl Args {
    /// Where to write HTML, if it is asked for.
    fn page_of_html(&self, json: bool) -> Result<Option<&Path>, Stop> {
        let html = self.html.as_deref();
        let to_stdout = html == Some(Path::new(STDIO));
        if to_stdout && json {
            return Err(Stop::Usage("--json goes to standard output: name a file for --html".into()));
        }
        html.filter(|_| !to_stdout).map_or(Ok(()), |html| target::refuse_input(&self.input.path, html))?;
        Ok(html)
    }

    /// What of a map tile is asked for.
    fn of_map_tile(&self, json: bool) -> Result<mlt::trace::Request<'_>, Stop> {
        if self.chunk.is_some() || self.row_group.is_some() || self.page.is_some() || self.values {
            let message = "--chunk, --row-group, --page and --values are not for map tiles: choose LAYER.COLUMN";
            return Err(Stop::Usage(message.into()));
        }
        let (path, part, html) = (&*self.input.path, self.column.as_deref(), self.page_of_html(json)?);
        let options = self.map_tiles.options(tilekern::mlt::Options::new()?);
        Ok(mlt::trace::Request { path, part, html, options })
    }

    /// What of a Parquet file is asked for.
    fn request(&self, json: bool) -> Result<Request<'_>, Stop> {
        if self.values && (!json || self.html.is_some()) {
            return Err(Stop::Usage("--values goes with --json; a page of HTML has the values in any case".into()));
        }
        if self.chunk.is_some() {
            return Err(Stop::Usage("--chunk is for tiles: of a Parquet file choose --row-group and --page".into()));
        }
        if let Some(option) = self.map_tiles.given() {
            return Err(Stop::Usage(format!("{option} is for map tiles: leave it out")));
        }
        let (path, html) = (&*self.input.path, self.page_of_html(json)?);
        Ok(Request {
            path,
            column: self.column.as_deref(),
            row_group: self.row_group,
            page: self.page,
            html,
            values: self.values,
        })
    }
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let limits = Limits::default();
    let path = &args.input.path;
    let found = args.input.found(&limits)?;
    let bytes = match &found {
        Found::Parquet(bytes) => return parquet::trace::run(bytes, &args.request(console.json)?, console),
        Found::Mlt(bytes, _) => return mlt::trace::run(bytes, &args.of_map_tile(console.json)?, console),
        Found::Archive(archive) => return Err(archive.unnamed().into()),
        Found::Tile(bytes) => bytes,
        Found::Dataset => {
            let message = "a trace is of one tile: name a file of this dataset, such as tiles/tile_000000.dct";
            return Err(Fault::new("unsupported", path, message).into());
        }
    };
    if args.column.is_some() || args.row_group.is_some() || args.page.is_some() || args.html.is_some() || args.values {
        let message =
            "a column, --row-group, --page, --html and --values are for Parquet files: of a tile choose --chunk";
        return Err(Stop::Usage(message.into()));
    }
    let trace = trace(bytes, args.chunk, &limits);
    let fault = trace.fault.map(|error| Fault::of(error, path));
    let verdict = if fault.is_some() { Verdict::Unsound } else { Verdict::Sound };
    if console.json {
        let steps = steps::records(&trace.steps, Placed::whole(bytes));
        let path = &*path.to_string_lossy();
        let error = fault.as_ref();
        console.record(&Record { path, kind: found.kind(), bytes: bytes.len() as u64, steps, error })?;
        return Ok(verdict);
    }
    steps::print(trace.steps.iter().map(|step| (step, Placed::whole(bytes))), console)?;
    match fault {
        Some(fault) => {
            // What was understood comes first.
            console.flush()?;
            Err(fault.into())
        }
        None => Ok(verdict),
    }
}
