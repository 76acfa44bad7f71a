//! The command `tilekern`. One file per verb; what they share is in `console`, `fault`, `options`, `selection`, `source`,
//! `steps`, `table`, `target` and `text`. `output` has a file for each format that is written, `parquet` and `mlt` one for
//! each verb that reads Parquet and map tiles, `archive` one for each kind of archive of these. No format is read here: that
//! is the library's work.

// Numbers from outside are converted with a check, never cut.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod archive;
mod bench;
mod completions;
mod console;
mod convert;
mod decode;
mod demo;
mod fault;
mod head;
mod html;
mod info;
mod man;
mod mlt;
mod obs;
mod options;
mod output;
mod packed;
mod pages;
mod parquet;
mod payload;
mod repair;
mod sample;
mod selection;
mod source;
mod stats;
mod steps;
mod table;
mod target;
mod text;
mod trace;
mod verify;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde::Serialize;

use console::{Console, say};
use fault::{Fault, Stop};

/// Converts single-cell counts to tiles, looks into, verifies and decodes them, and makes realistic ones. Looks into, verifies
/// and decodes Parquet files and MapLibre Tiles.
///
/// A PATH is a tile (.dct), the directory of a dataset, a Parquet file, a map tile (.mlt, .mlt.gz, .mlt.zst, or ARCHIVE#z/x/y
/// of a .pmtiles or .mbtiles file), or - for a file on standard input. Results go to standard output, everything else to
/// standard error. Files must not change while they are read.
#[derive(Parser, Debug)]
#[command(name = "tilekern", version, max_term_width = 100, after_long_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,

    /// Print results, and errors, as JSON (docs/json.md has the schemas)
    #[arg(long, global = true, display_order = 100)]
    json: bool,

    /// No progress bar and no notes on standard error
    #[arg(long, short, global = true, display_order = 101)]
    quiet: bool,
}

const AFTER_HELP: &str = "\
Exit code:
  0    sound, done
  1    unsound, or failed: unreadable and unknown content, a full disk
  2    wrong usage
  130  interrupted (Ctrl-C, SIGTERM, SIGHUP); nothing is left half-written

Environment:
  TILEKERN_KERNEL  the kernels to use instead of this CPU's best: scalar, neon, avx2, avx512

Examples:
  tilekern convert matrix/ counts           make a dataset of a 10x folder
  tilekern sample counts --cells 1000       make a dataset of simulated counts
  tilekern info counts                      what it is, how large, how it is cut
  tilekern head counts                      its first cells
  tilekern stats counts                     how counts are spread over cells and genes
  tilekern verify counts                    check every byte of it
  tilekern decode counts -o counts.npz      to scipy's CSR
  tilekern obs counts                       what is known of each cell, where it has that
  tilekern info orders.parquet              the columns of a Parquet file and their encodings
  tilekern trace orders.parquet country     each step of reading a column, with its bytes
  tilekern info tile.mlt                    the layers of a map tile, their columns and encodings
  tilekern decode planet.pmtiles#3/4/2 -o tile.geojson";

#[derive(Subcommand, Debug)]
enum Verb {
    Info(info::Args),
    Head(head::Args),
    Stats(stats::Args),
    Verify(verify::Args),
    Decode(decode::Args),
    Convert(convert::Args),
    Repair(repair::Args),
    Obs(obs::Args),
    Sample(sample::Args),
    Pages(pages::Args),
    Trace(trace::Args),
    Payload(payload::Args),
    Demo(demo::Args),
    Bench(bench::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Verb {
    fn run(self, console: &mut Console) -> Result<Verdict, Stop> {
        match self {
            Verb::Info(args) => info::run(&args, console),
            Verb::Head(args) => head::run(&args, console),
            Verb::Stats(args) => stats::run(&args, console),
            Verb::Verify(args) => verify::run(&args, console),
            Verb::Decode(args) => decode::run(&args, console),
            Verb::Convert(args) => convert::run(&args, console),
            Verb::Repair(args) => repair::run(&args, console),
            Verb::Obs(args) => obs::run(&args, console),
            Verb::Sample(args) => sample::run(&args, console),
            Verb::Pages(args) => pages::run(&args, console),
            Verb::Trace(args) => trace::run(&args, console),
            Verb::Payload(args) => payload::run(&args, console),
            Verb::Demo(args) => demo::run(&args, console),
            Verb::Bench(args) => bench::run(&args, console),
            Verb::Completions(args) => completions::run(&args, console),
            Verb::Man(args) => man::run(&args, console),
        }
    }
}

/// What a verb found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Sound,
    /// The verb did its work, and has told the faults that it found.
    Unsound,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> ExitCode {
        ExitCode::from(match verdict {
            Verdict::Sound => 0,
            Verdict::Unsound => 1,
        })
    }
}

/// What every verb prints with `--json` where it fails.
#[derive(Serialize)]
struct Failure<'a> {
    error: &'a Fault,
}

/// Ends as the parser does, with the usage of the verb.
fn usage_error(verb: Option<&str>, message: String) -> ! {
    let mut command = Cli::command();
    command.build();
    let verb = verb.and_then(|name| command.find_subcommand_mut(name)).cloned();
    verb.unwrap_or(command).error(ErrorKind::ValueValidation, message).exit()
}

fn main() -> ExitCode {
    tilekern::hush_guarded_panics();
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    target::handle_interrupts();
    let mut console = Console::new(cli.json, cli.quiet);
    let result = cli.verb.run(&mut console);
    target::settle();
    let result = result.and_then(|verdict| match console.flush() {
        // A verdict is the same whether or not somebody reads it.
        Err(Stop::ClosedPipe) => Ok(verdict),
        flushed => flushed.map(|()| verdict),
    });
    match result {
        Ok(verdict) => verdict.into(),
        Err(Stop::ClosedPipe) => Verdict::Sound.into(),
        Err(Stop::Usage(message)) => usage_error(matches.subcommand_name(), message),
        Err(Stop::Fault(fault)) => {
            if !console.json || console.record(&Failure { error: &fault }).and_then(|()| console.flush()).is_err() {
                say(format_args!("error: {fault}"));
            }
            Verdict::Unsound.into()
        }
    }
}
