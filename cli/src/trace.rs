//! `tilekern trace`: what each byte of a tile means.

use serde::Serialize;
use tilekern::deltacel::trace;
use tilekern::{Limits, Step};

use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::source::{Found, Input};
use crate::table::{Align, Table};

/// Bytes of a step that are shown in full.
const SHOWN: usize = 8;

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
    steps: Vec<StepRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

#[derive(Serialize)]
struct StepRecord<'a> {
    label: &'a str,
    depth: u8,
    start: u64,
    end: u64,
    /// The first bytes, in hexadecimal.
    bytes: String,
    detail: &'a str,
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
    let start = |step: &Step| {
        let shown = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let span = &bytes[shown(step.span.start)..shown(step.span.end)];
        let hex: Vec<String> = span.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
        (hex, span.len())
    };
    if console.json {
        let steps = trace.steps.iter().map(|step| StepRecord {
            label: &step.label,
            depth: step.depth,
            start: step.span.start,
            end: step.span.end,
            bytes: start(step).0.concat(),
            detail: &step.detail,
        });
        let path = &*path.to_string_lossy();
        let (steps, error) = (steps.collect(), fault.as_ref());
        console.record(&Record { path, kind: found.kind(), bytes: bytes.len() as u64, steps, error })?;
        return Ok(verdict);
    }
    let mut table = Table::new([
        ("bytes", Align::Right),
        ("step", Align::Left),
        ("content", Align::Left),
        ("meaning", Align::Left),
    ]);
    for step in &trace.steps {
        let (hex, len) = start(step);
        let more = if len > SHOWN { format!(" … {len} bytes") } else { String::new() };
        table.row([
            format!("{}..{}", step.span.start, step.span.end),
            format!("{:width$}{}", "", step.label, width = 2 * usize::from(step.depth)),
            hex.join(" ") + &more,
            step.detail.clone(),
        ]);
    }
    for line in table.lines() {
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
