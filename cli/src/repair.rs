//! `tilekern repair`: damaged files of a dataset, made again of its inputs.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use tilekern_convert::{RepairOptions, repair};

use crate::Verdict;
use crate::console::Console;
use crate::convert::Bar;
use crate::fault::Stop;
use crate::options::{bytes, threads};
use crate::target;

/// Make damaged and missing files of a dataset again, of the inputs of which it was converted
///
/// The dataset is verified. Tiles, tables of cells and genes, names and orders of genes that do not pass are made again
/// with the options of the conversion, which its manifest has, and replaced one by one. All other files stay as they are.
/// Nothing is replaced unless everything comes out as the manifest says: other inputs, or inputs that have changed, are
/// refused. It works in OUT.repair; after an interruption the same command goes on there.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "tilekern repair [OPTIONS] <OUT> --from <INPUT>...",
    after_long_help = "\
Examples:
  tilekern repair counts --from filtered_feature_bc_matrix.h5    make what is damaged again
  tilekern repair counts --from a/ b/ c/                         several inputs, in the order of the conversion
  tilekern repair counts --from atlas.h5ad --dry-run             only tell what would be made again

A dataset without manifest.json, or with a damaged one, cannot be repaired: convert the inputs anew."
)]
pub struct Args {
    /// Directory of the dataset
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The files and folders of which it was converted, in the same order; they may lie elsewhere now
    #[arg(long, value_name = "INPUT", required = true, num_args = 1..)]
    from: Vec<PathBuf>,

    /// The list by which genes were ordered; needed only where there was one and gene_order.npy is damaged
    #[arg(long, value_name = "FILE")]
    gene_order: Option<PathBuf>,

    /// Threads to use; 0 is one per CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads())]
    threads: u16,

    /// Memory for counts, as for a conversion
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes)]
    memory: u64,

    /// Verify, look at the inputs' cells and genes, and tell what would be made again; exit code 1 if anything would
    #[arg(long)]
    dry_run: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    output: &'a str,
    sound: bool,
    dry_run: bool,
    files: Vec<FileRecord<'a>>,
    seconds: f64,
    notes: &'a [String],
}

#[derive(Serialize)]
struct FileRecord<'a> {
    name: &'a str,
    fault: &'a str,
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let dry_run = args.dry_run;
    target::if_interrupted("each file is the old one or the new one; the same command again goes on");
    let options = RepairOptions {
        gene_order: args.gene_order.clone(),
        threads: args.threads.into(),
        memory: args.memory,
        dry_run,
    };
    let start = Instant::now();
    let bar = Bar::new(console);
    let repaired = repair(&args.from, &args.output, &options, &bar)?;
    bar.0.finish_and_clear();
    let output = &*args.output.to_string_lossy();
    let sound = repaired.files.is_empty() || !dry_run;
    if console.json {
        let files = repaired.files.iter().map(|file| FileRecord { name: &file.name, fault: &file.fault }).collect();
        let seconds = start.elapsed().as_secs_f64();
        console.record(&Record { output, sound, dry_run, files, seconds, notes: &repaired.notes })?;
    } else {
        for file in &repaired.files {
            console.line(format_args!("{}: {}", file.name, file.fault))?;
        }
        for note in &repaired.notes {
            console.note(format_args!("note: {note}"));
        }
        let n = repaired.files.len();
        let (what, are) = if n == 1 { ("file", "is") } else { ("files", "are") };
        match n {
            0 => console.line(format_args!("{output}: sound, nothing to repair"))?,
            _ if dry_run => console.line(format_args!("{output}: {n} {what} {are} to be made again"))?,
            _ => console.line(format_args!("{output}: {n} {what} made again, now sound"))?,
        }
    }
    Ok(if sound { Verdict::Sound } else { Verdict::Unsound })
}
