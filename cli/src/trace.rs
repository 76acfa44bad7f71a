//! `tilekern trace`: what each byte of a tile means.

use serde::Serialize;
use tilekern::Limits;
use tilekern::deltacel::trace;

use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::source::{Found, Input};
use crate::steps;

/// Show each step of reading a tile: where, what, its bytes, and what they say
///
/// The steps end at the first fault, which is told last.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern trace counts/tiles/tile_000000.dct | less
  tilekern trace tile.dct --chunk 3          one chunk alone
  tilekern trace tile.dct --json             the same steps for programs")]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// Only the chunk of this number, from 0
    #[arg(long, value_name = "K")]
    chunk: Option<u32>,
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

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let limits = Limits::default();
    let path = &args.input.path;
    let found = Found::at(path, args.input.format, &limits)?;
    let Found::Tile(bytes) = &found else {
        let message = "a trace is of one tile: name a file of this dataset, such as tiles/tile_000000.dct";
        return Err(Fault::new("unsupported", path, message).into());
    };
    let trace = trace(bytes, args.chunk, &limits);
    let fault = trace.fault.map(|error| Fault::of(error, path));
    let verdict = if fault.is_some() { Verdict::Unsound } else { Verdict::Sound };
    if console.json {
        let steps = steps::records(&trace.steps, bytes);
        let path = &*path.to_string_lossy();
        let error = fault.as_ref();
        console.record(&Record { path, kind: found.kind(), bytes: bytes.len() as u64, steps, error })?;
        return Ok(verdict);
    }
    for line in steps::table(&trace.steps, bytes).lines() {
        console.line(line)?;
    }
    match fault {
        Some(fault) => {
            // What was understood comes first.
            console.flush()?;
            Err(fault.into())
        }
        None => Ok(verdict),
    }
}
