//! `tilekern trace`: what each byte of a tile, or of a column of a Parquet file, means.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tilekern::Limits;
use tilekern::deltacel::trace;

use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::parquet::trace::Request;
use crate::source::{AnyInput, Found, STDIO};
use crate::steps::{self, Placed};
use crate::{Verdict, parquet, target};

/// Show each step of reading a tile, or a column of a Parquet file: where, what, its bytes, and what they say
///
/// The steps of a tile end at the first fault, which is told last. Of a Parquet file each page has the fields of its header,
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
  tilekern trace orders.parquet country --html page.html a page to look at: hover over values, bytes and steps")]
pub struct Args {
    #[command(flatten)]
    input: AnyInput,

    /// Of a Parquet file, the column: its name, its path with dots, or its number from 0
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

    /// Of a Parquet file, write one page of HTML that needs nothing else; - is standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// With --json, of a Parquet file: each value, too, with the bytes that it comes from
    #[arg(long)]
    values: bool,
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
    /// What of a Parquet file is asked for.
    fn request(&self, json: bool) -> Result<Request<'_>, Stop> {
        if self.values && (!json || self.html.is_some()) {
            return Err(Stop::Usage("--values goes with --json; a page of HTML has the values in any case".into()));
        }
        if self.chunk.is_some() {
            return Err(Stop::Usage("--chunk is for tiles: of a Parquet file choose --row-group and --page".into()));
        }
        let (path, html) = (&*self.input.path, self.html.as_deref());
        let to_stdout = html == Some(Path::new(STDIO));
        if to_stdout && json {
            return Err(Stop::Usage("--json goes to standard output: name a file for --html".into()));
        }
        html.filter(|_| !to_stdout).map_or(Ok(()), |html| target::refuse_input(path, html))?;
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
