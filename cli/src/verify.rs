//! `tilekern verify`: every fault of everything named.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use indicatif::{HumanCount, ProgressBar};
use serde::Serialize;
use serde_json::Value;
use tilekern::deltacel::dataset::obs::Cache;
use tilekern::deltacel::dataset::{self, Dataset, Event};
use tilekern::deltacel::{Decoder, verify};
use tilekern::parquet::Options;
use tilekern::{Directory, Error};

use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::options::{CacheFolder, Engine, MapTiles};
use crate::source::{As, Found, STDIO};
use crate::text::counted;
use crate::{Verdict, mlt, parquet};

/// Check every byte of tiles, datasets, Parquet files and map tiles, and tell all faults
///
/// CRCs, tables, frames, genes, counts, the manifest and its side files, the tables of cells and genes, and what a cache
/// keeps of these. Of a Parquet file the footer, and of every page header, checksum, levels and values. Where pages have no
/// checksums, as most writers leave them out, changed values cannot be seen, and it tells how many pages these are. Counts of
/// rows and nulls that readers do without are checked, too: `decode` takes a file in which only these are wrong. Of a map tile
/// each column of each layer is decoded; of a layer whose headers are at fault the first fault is told, since what lies behind
/// is not known. It has no checksums either. Several columns of one name, as version 1 allows, are a warning. Of an archive
/// these are all its tiles, one that is stored for a run of places once; they end at 1,000 faults. One line for each fault:
/// path, part, byte offset, what is wrong and what to do, kind.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern verify counts                     a dataset
  tilekern verify counts/tiles/*.dct         some tiles
  tilekern verify orders.parquet             a Parquet file
  tilekern verify tiles/*.mlt                map tiles
  tilekern verify planet.pmtiles             all map tiles of an archive
  tilekern verify planet.pmtiles#3/4/2       one of them
  curl -s URL | tilekern verify -            a tile on standard input
  tilekern verify counts --json | jq '.paths[].faults[]'")]
pub struct Args {
    /// Tiles (.dct), directories of datasets, Parquet files and map tiles (.mlt, .mlt.gz, .mlt.zst, or ARCHIVE#z/x/y of a
    /// .pmtiles or .mbtiles file); - is a file on standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    format: As,

    #[command(flatten)]
    engine: Engine,

    #[command(flatten)]
    cache: CacheFolder,

    #[command(flatten)]
    map_tiles: MapTiles,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record {
    sound: bool,
    n_faults: usize,
    paths: Vec<PathRecord>,
    /// The first fault, where every verb has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
}

#[derive(Serialize)]
struct PathRecord {
    path: String,
    /// None where it could not be told.
    kind: Option<&'static str>,
    bytes: Option<u64>,
    sound: bool,
    faults: Vec<Fault>,
    /// What is odd but keeps nobody from reading it.
    warnings: Vec<Fault>,
    /// Of a Parquet file, the pages whose headers can be read, and those of them that store no checksum.
    n_pages: Option<u64>,
    n_pages_without_checksum: Option<u64>,
    /// Of an archive of map tiles, those that were looked at.
    n_tiles: Option<u64>,
    /// It was converted, so that its files can be made again.
    #[serde(skip)]
    repairable: bool,
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    if args.paths.iter().filter(|path| path.as_os_str() == STDIO).count() > 1 {
        return Err(Stop::Usage("standard input (-) can be read once".to_owned()));
    }
    let decoder = args.engine.decoder()?;
    let progress = console.progress(args.paths.len() as u64, "verifying");
    let mut paths = Vec::new();
    for path in &args.paths {
        let record = check(path, args, &decoder, &progress);
        progress.inc(1);
        progress
            .suspend(|| record.warnings.iter().for_each(|warning| console.note(format_args!("warning: {warning}"))));
        if !console.json {
            let mut tell =
                || record.faults.iter().try_for_each(|fault| console.line(fault)).and_then(|()| console.flush());
            match progress.suspend(&mut tell) {
                // Nobody reads on, but a fault was found.
                Err(Stop::ClosedPipe) => return Ok(Verdict::Unsound),
                told => told?,
            }
        }
        paths.push(record);
    }
    progress.finish_and_clear();
    let n_faults = paths.iter().map(|record| record.faults.len()).sum();
    let verdict = if n_faults == 0 { Verdict::Sound } else { Verdict::Unsound };
    let told = if console.json {
        let error = paths.iter().flat_map(|record| &record.faults).next().cloned();
        console.record(&Record { sound: n_faults == 0, n_faults, paths, error })
    } else {
        console.line(summary(&paths, n_faults))
    };
    match told {
        // The verdict is the same whether or not somebody reads it.
        Err(Stop::ClosedPipe) => Ok(verdict),
        told => told.map(|()| verdict),
    }
}

fn summary(paths: &[PathRecord], n_faults: usize) -> String {
    let bytes = counted(paths.iter().filter_map(|record| record.bytes).sum::<u64>(), "byte");
    let unsound = paths.iter().filter(|record| !record.sound).count();
    match (paths, n_faults) {
        ([one], 0) => {
            let tiles = one.n_tiles.map(|n| format!("{}, ", counted(n, "tile"))).unwrap_or_default();
            format!("{}: sound, {tiles}{bytes}{}", one.path, unseen(paths))
        }
        (all, 0) => format!("all {} sound, {bytes}{}", all.len(), unseen(paths)),
        (all, n) => {
            let told = format!("{unsound} of {} unsound, {}", all.len(), counted(n, "fault"));
            match all.iter().find(|record| !record.sound && record.repairable) {
                Some(record) => format!("{told}; to mend it: tilekern repair {} --from INPUT...", record.path),
                None => told,
            }
        }
    }
}

/// What no check can see.
fn unseen(paths: &[PathRecord]) -> String {
    let sum = |of: fn(&PathRecord) -> Option<u64>| paths.iter().filter_map(of).sum::<u64>();
    let (pages, without) = (sum(|record| record.n_pages), sum(|record| record.n_pages_without_checksum));
    match without {
        0 => String::new(),
        n => {
            let which = match n == pages {
                true => "no page has a checksum".to_owned(),
                false => format!("{} of {} have no checksum", HumanCount(n), counted(pages, "page")),
            };
            format!("; {which}: values changed there cannot be seen")
        }
    }
}

fn check(path: &Path, args: &Args, decoder: &Decoder, progress: &ProgressBar) -> PathRecord {
    let told = |errors: Vec<Error>| errors.into_iter().map(|error| Fault::of(error, path)).collect::<Vec<_>>();
    let converted = |dataset: Dataset| {
        let metadata = dataset.manifest().metadata().and_then(|text| serde_json::from_str::<Value>(text).ok());
        metadata.is_some_and(|metadata| metadata.get("converted").is_some())
    };
    let repairable = path.is_dir() && Dataset::open(path).is_ok_and(converted);
    let of_map_tiles = || {
        let options = tilekern::mlt::Options::with_kernels(decoder.kernels()).limits(*decoder.limits());
        args.map_tiles.options(options)
    };
    let (mut seen, mut n_tiles) = (None, None);
    let found = Found::at(path, args.format, decoder.limits());
    let kind = found.as_ref().ok().map(Found::kind);
    let (bytes, faults, warnings) = match found {
        Err(fault) => (None, vec![fault], Vec::new()),
        Ok(Found::Tile(tile)) => (Some(tile.len() as u64), told(verify(&tile, decoder)), Vec::new()),
        Ok(Found::Dataset) => {
            let (bytes, faults, warnings) = check_dataset(path, args.cache.cache(), decoder, progress);
            (Some(bytes), told(faults), told(warnings))
        }
        Ok(Found::Parquet(file)) => {
            let options = Options::with_kernels(decoder.kernels()).limits(*decoder.limits());
            let (faults, warnings, pages) = parquet::verify::check(&file, &options, progress);
            seen = Some(pages);
            (Some(file.len() as u64), told(faults), told(warnings))
        }
        Ok(Found::Mlt(tile, _)) => {
            let (faults, warnings) = mlt::verify::check(&tile, &of_map_tiles(), path);
            (Some(tile.len() as u64), faults, warnings)
        }
        Ok(Found::Archive(archive)) => {
            let (faults, warnings, seen) = mlt::verify::archive(&archive, &of_map_tiles(), progress);
            n_tiles = Some(seen);
            (Some(archive.bytes), faults, warnings)
        }
    };
    let (path, sound) = (path.to_string_lossy().into_owned(), faults.is_empty());
    let n_pages = seen.map(|seen| seen.pages);
    let n_pages_without_checksum = seen.map(|seen| seen.without_checksum);
    PathRecord { path, kind, bytes, sound, faults, warnings, n_pages, n_pages_without_checksum, n_tiles, repairable }
}

/// The bytes of the tiles as far as the manifest tells them, all faults, and all warnings.
fn check_dataset(
    path: &Path,
    cache: Option<Cache>,
    decoder: &Decoder,
    progress: &ProgressBar,
) -> (u64, Vec<Error>, Vec<Error>) {
    let bytes = |dataset: Dataset| dataset.manifest().tile_bytes().iter().fold(0, |sum: u64, &n| sum.saturating_add(n));
    let bytes = Dataset::open(path).map_or(0, bytes);
    let source = match Directory::new(path) {
        Ok(source) => source,
        Err(error) => return (bytes, vec![error], Vec::new()),
    };
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    let mut before = 0;
    let ControlFlow::Continue(()) = dataset::verify(&source, decoder, |event| {
        match event {
            Event::Fault(fault) => faults.push(fault),
            Event::Warning(warning) => warnings.push(warning),
            Event::Progress { done, tiles } => {
                if done == 0 {
                    progress.inc_length(tiles.into());
                }
                progress.inc(u64::from(done - before));
                before = done;
            }
            _ => {}
        }
        ControlFlow::<std::convert::Infallible>::Continue(())
    });
    // What is kept of a table can only be judged by a sound one.
    if let (Some(cache), true, Ok(dataset)) = (cache, faults.is_empty(), Dataset::open(path))
        && let Ok(Some(table)) = dataset.obs()
    {
        faults.extend(table.cached(cache).cache_faults());
    }
    (bytes, faults, warnings)
}
