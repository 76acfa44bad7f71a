//! `tilekern sample`: a dataset of simulated counts.

use std::path::PathBuf;
use std::thread;

use serde::Serialize;
use tilekern::deltacel::dataset::{Manifest, Writer};
use tilekern::deltacel::{Chunks, CsrView, Encoder, Profile};
use tilekern::simulate::{Counts, Params, Simulator};

use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::options::{profile, threads};
use crate::target::Target;
use crate::text::counted;

/// Make a dataset of realistic simulated counts
///
/// The same options give the same bytes, on every machine. Genes stand in the order of decreasing counts, as a
/// converter of real data would put them; gene_order.npy and var_names.txt say which was which.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern sample counts                                  10,000 cells x 33,000 genes, about 20 MB
  tilekern sample small --cells 500 --genes 2000 --seed 7
  tilekern sample fast --profile fast --tile-size 2000    five tiles that decode faster")]
pub struct Args {
    /// Directory to make; it must not exist yet
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// Cells
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    cells: u32,

    /// Genes, at most ten million
    #[arg(long, value_name = "G", default_value_t = 33_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    genes: u32,

    /// Other seeds give other counts
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Cells of each tile but the last; one tile is in memory at a time
    #[arg(long, value_name = "T", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    tile_size: u32,

    /// What to spend: small (fewest bytes), balanced, fast (to decode), quick (to write), or plain:LEVEL (zstd as it is)
    #[arg(long, value_name = "P", default_value_t = Profile::Balanced, value_parser = profile)]
    profile: Profile,

    /// Chunks of each tile [default: as many as make chunks of a quarter to one million nonzeros]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    chunks: Option<u32>,

    /// Threads to use; 0 is one per CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads())]
    threads: u16,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    output: &'a str,
    n_cells: u64,
    n_genes: u32,
    nnz: u64,
    n_tiles: u32,
    bytes: u64,
    bytes_per_nonzero: Option<f64>,
    seed: u64,
    profile: String,
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let target = Target::directory(&args.output)?;
    let manifest = write(args, &target, console).map_err(|error| Fault::of(error, &args.output))?;
    target.commit()?;
    let bytes: u64 = manifest.tile_bytes().iter().sum();
    let nnz = manifest.nnz();
    let record = Record {
        output: &args.output.to_string_lossy(),
        n_cells: manifest.n_cells(),
        n_genes: manifest.n_genes(),
        nnz,
        n_tiles: manifest.n_tiles(),
        bytes,
        bytes_per_nonzero: (nnz > 0).then(|| bytes as f64 / nnz as f64),
        seed: args.seed,
        profile: args.profile.to_string(),
    };
    if console.json {
        console.record(&record)?;
    } else {
        let Record { output, n_cells, n_genes, n_tiles, .. } = record;
        let shape = format!("{} x {}", counted(n_cells, "cell"), counted(n_genes, "gene"));
        let size = format!("{} in {}, {}", counted(nnz, "nonzero"), counted(n_tiles, "tile"), counted(bytes, "byte"));
        console.note(format_args!("{output}: {shape}, {size}"));
    }
    Ok(Verdict::Sound)
}

fn write(args: &Args, target: &Target, console: &Console) -> Result<Manifest, tilekern::Error> {
    let &Args { genes, seed, profile, .. } = args;
    let cells = args.cells as usize;
    let progress = console.progress(args.cells.into(), "simulating cells");
    let simulator = Simulator::new(&Params { cells, genes, seed });
    let encoder = Encoder::builder()
        .profile(profile)
        .chunks(args.chunks.map_or(Chunks::Auto, Chunks::Count))
        .threads(args.threads.into());
    let metadata = serde_json::json!({"simulated": {"cells": cells, "genes": genes, "seed": seed}});
    let mut writer = Writer::builder(genes)
        .tile_size(args.tile_size.into())
        .encoder(encoder)
        .gene_order(simulator.gene_order())
        .var_names((0..genes as usize).map(|column| simulator.gene_name(column)))
        .metadata(metadata.to_string())
        .create(target.working_path())?;
    let threads = match args.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        n => n.into(),
    };
    let mut next = 0;
    while next < cells {
        // Each thread a part of what is left of the tile: pieces never hold more than a tile does.
        let tile = args.tile_size as usize;
        let end = cells.min(next - next % tile + tile).min(next + threads * PIECE);
        let parts: Vec<Counts> = thread::scope(|scope| {
            let simulator = &simulator;
            let starts: Vec<usize> = (next..end).step_by((end - next).div_ceil(threads)).collect();
            let ends = starts.iter().skip(1).copied().chain([end]);
            let simulate = |(start, end)| scope.spawn(move || simulator.cells(start..end));
            let parts: Vec<_> = starts.iter().copied().zip(ends).map(simulate).collect();
            parts.into_iter().map(|part| part.join().expect("no panic in a simulation")).collect()
        });
        for Counts { indptr, indices, data } in &parts {
            writer.push(&CsrView { n_genes: genes, indptr, indices, values: data })?;
        }
        next = end;
        progress.set_position(next as u64);
    }
    let manifest = writer.finish()?;
    progress.finish_and_clear();
    Ok(manifest)
}

/// Cells that a thread simulates at a time.
const PIECE: usize = 256;
