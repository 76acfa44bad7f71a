//! `tilekern bench`: throughput of every kernel level beside its bounds, all from one run.

mod chart;
mod measure;
mod mlt;
mod naive;
mod parquet;
mod report;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tilekern::deltacel::{Chunks, Csr, CsrView, Decoder, Encoder, ExceptionPolicy, Profile, Tile};
use tilekern::kernels::{Kernels, Store};
use tilekern::mlt::encode::Version;
use tilekern::simulate::{Params, Simulator, map_tile};
use tilekern::{Buffer, Error, Limits, Pages, Stream};

use self::measure::{Case, Clock, cpu_time, speedup, take_turns};
pub use self::report::Report;
use self::report::{Bounds, DecodeRow, OpRow, ProfileRow, TileFacts};
use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::source::{As, Found, Input, Source};
use crate::target::Target;

/// Compare the throughput of every kernel level on this CPU, beside its bounds
///
/// On simulated counts in a tile at plain zstd level 19, or on yours: whole decodes with reused, huge-page and fresh
/// buffers, on one and on all threads, beside libzstd alone on the same frames, memcpy of the output and a plain decode
/// as the format's text reads; single kernels on cells in cache; and the same counts in every writer profile. All take
/// turns, so that a machine whose speed drifts slows all alike; still, only ratios of one run can be compared.
///
/// With `--family parquet`, the value encodings of Parquet instead: columns in pages as writers cut them, beside memcpy
/// of their values, and what a decode takes after a page was traced. With `--family mlt`, whole map tiles to columns, one
/// that is made for it or yours, and the kernels that they are decoded with, beside memcpy of what they decode to.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern bench                             10,000 cells; some minutes, most of them to encode
  tilekern bench --cells 1000 --no-profiles  a quick look
  tilekern bench tile.dct                    a tile as it is
  tilekern bench --family parquet            the value encodings of Parquet; half a minute
  tilekern bench --family mlt                map tiles; half a minute
  tilekern bench --family mlt tile.mlt       one that is there
  tilekern bench --json > record.json
  tilekern bench -o chart.svg")]
pub struct Args {
    /// What to decode
    #[arg(long, value_enum, value_name = "FAMILY", default_value_t = Family::Deltacel)]
    family: Family,

    /// Values of each column of the Parquet family
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    values: u32,

    /// A tile (.dct) as it is, or a dataset, whose cells are put into one tile, or, of its family, a map tile; made data
    /// without it
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,

    #[command(flatten)]
    format: As,

    /// Cells to simulate, or to take of a dataset at most
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    cells: u32,

    /// Genes to simulate
    #[arg(long, value_name = "G", default_value_t = 33_000, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    genes: u32,

    /// Other seeds give other counts
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Readings of each figure
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// Leave out the writer profiles, which take most of the time
    #[arg(long)]
    no_profiles: bool,

    /// Draw the decodes as a bar chart (SVG)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Tiles and datasets of counts
    Deltacel,
    /// Value encodings of Parquet
    Parquet,
    /// Map tiles
    Mlt,
}

/// Values of a cache-hot kernel measurement.
const HOT_VALUES: i64 = 32 << 10;

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let rounds = usize::from(args.rounds);
    if args.family == Family::Parquet {
        if args.path.is_some() || args.output.is_some() {
            return Err(Stop::Usage("--family parquet takes neither a PATH nor --output".to_owned()));
        }
        let report = parquet::measure(usize::try_from(args.values).unwrap_or(usize::MAX), rounds, console)?;
        return show(&report, || report.lines(), console);
    }
    if args.family == Family::Mlt {
        if args.output.is_some() {
            return Err(Stop::Usage("--family mlt takes no --output".to_owned()));
        }
        let report = map_tiles(args, rounds, console)?;
        return show(&report, || report.lines(), console);
    }
    let input = args.path.clone().map(|path| Input { path, format: args.format });
    let (bytes, profile) = match &input {
        Some(input) => match Source::open(input, &Limits::default())? {
            Source::Tile(_, bytes) => (bytes, "as it is"),
            Source::Dataset(_, dataset) => {
                console.note("encoding the dataset's cells at plain zstd level 19");
                let mut counts = Csr::<i32>::new();
                let cells = dataset.n_cells().min(args.cells.into());
                dataset.range(0..cells, &Decoder::new()?, &mut counts)?;
                (encode(&counts.view(), Profile::Plain(19), 0)?.bytes, "plain:19")
            }
        },
        None => {
            console.note("simulating counts, encoding them at plain zstd level 19");
            let Args { genes, seed, .. } = *args;
            let cells = usize::try_from(args.cells).unwrap_or(usize::MAX);
            let counts = Simulator::new(&Params { cells, genes, seed }).cells(0..cells);
            let view =
                CsrView { n_genes: genes, indptr: &counts.indptr, indices: &counts.indices, values: &counts.data };
            (encode(&view, Profile::Plain(19), 0)?.bytes, "plain:19")
        }
    };
    let path = args.path.as_deref().unwrap_or(Path::new("simulated counts"));
    measurable(&bytes).map_err(|why| Fault::new("unsupported", path, why))?;
    let report = measure(&bytes, profile, rounds, !args.no_profiles, console).map_err(|error| match &args.path {
        Some(path) => Fault::of(error, path),
        None => error.into(),
    })?;
    if let Some(path) = &args.output {
        let (target, mut file) = Target::file(path)?;
        file.write_all(chart::svg(&report).as_bytes()).map_err(|e| Stop::write(e, path))?;
        target.commit_file(&file)?;
    }
    show(&report, || report.lines(), console)
}

/// The figures of map tiles.
fn map_tiles(args: &Args, rounds: usize, console: &mut Console) -> Result<mlt::Report, Stop> {
    let Some(path) = &args.path else {
        let made = |name: &str, version| map_tile(args.seed, version).map(|bytes| (name.to_owned(), bytes));
        let tiles = [made("simulated, version 1", Version::V1)?, made("simulated, version 2", Version::V2)?];
        return Ok(mlt::measure(&tiles, rounds, console)?);
    };
    match Found::at(path, args.format, &Limits::default())? {
        Found::Mlt(bytes, _) => {
            let tile = (path.display().to_string(), bytes);
            Ok(mlt::measure(&[tile], rounds, console).map_err(|error| Fault::of(error, path))?)
        }
        Found::Archive(archive) => Err(archive.unnamed().into()),
        _ => Err(Fault::new("unsupported", path, "is no map tile: name one, or add --as mlt").into()),
    }
}

fn show(
    report: &impl serde::Serialize,
    lines: impl Fn() -> Vec<String>,
    console: &mut Console,
) -> Result<Verdict, Stop> {
    if console.json {
        console.record(report)?;
    } else {
        lines().iter().try_for_each(|line| console.line(line))?;
    }
    Ok(Verdict::Sound)
}

/// Passes a sound tile that gives figures.
fn measurable(bytes: &[u8]) -> Result<(), &'static str> {
    // What is wrong with an unsound tile is told when it is decoded.
    let Ok(tile) = Tile::open(bytes) else { return Ok(()) };
    let mut planes = Vec::new();
    let mut zstd = zstd_safe::DCtx::create();
    let plain = (0..tile.n_chunks()).all(|n| {
        planes.resize(2 * usize::try_from(tile.chunk(n).nnz()).unwrap_or(0), 0);
        [Stream::Gaps, Stream::Vals]
            .iter()
            .all(|&stream| naive::decompress(&mut zstd, bytes, &tile, n, stream, &mut planes))
    });
    match (tile.nnz(), plain) {
        (0, _) => Err("it has no nonzeros: there is nothing to time"),
        (_, false) => {
            Err("libzstd alone does not decode its frames (a window above 2 GiB, or damage): nothing to compare with")
        }
        (_, true) => Ok(()),
    }
}

/// All figures of a tile.
pub fn measure(
    bytes: &[u8],
    profile: &str,
    rounds: usize,
    with_profiles: bool,
    console: &mut Console,
) -> Result<Report, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tile = Tile::open(bytes)?;
    let mut counts = Csr::<i32>::new();
    Decoder::new()?.decode(&tile, &mut counts)?;
    console.note("timing whole decodes");
    let (bounds, results) = decodes(bytes, &tile, threads, rounds)?;
    console.note("timing kernels");
    let kernel_ops = kernel_ops(&counts, rounds);
    let profiles = if with_profiles { profiles(&counts, rounds, console)? } else { Vec::new() };
    let tile = TileFacts {
        cells: tile.n_cells(),
        genes: tile.n_genes(),
        nnz: tile.nnz(),
        bytes: tile.size(),
        profile: profile.to_owned(),
        chunks: tile.n_chunks(),
    };
    let kernels = Kernels::available().map(Kernels::name).collect();
    Ok(Report { cpu: report::cpu_name(), threads, kernels, tile, bounds, results, kernel_ops, profiles })
}

struct Encoded {
    bytes: Vec<u8>,
    /// CPU time of this thread.
    seconds: f64,
}

fn encode(counts: &CsrView<'_>, profile: Profile, threads: usize) -> Result<Encoded, Error> {
    let mut encoder = Encoder::builder()
        .profile(profile)
        .chunks(Chunks::Auto)
        .exceptions(ExceptionPolicy::Any)
        .threads(threads)
        .build()?;
    let mut bytes = Vec::new();
    let start = cpu_time();
    encoder.encode(counts, &mut bytes)?;
    Ok(Encoded { bytes, seconds: (cpu_time() - start).as_secs_f64() })
}

/// libzstd alone on the frames of a tile, into memory that is reused and on huge pages.
struct ZstdAlone<'a> {
    bytes: &'a [u8],
    tile: &'a Tile<'a>,
    context: zstd_safe::DCtx<'static>,
    planes: Buffer<u8>,
}

impl<'a> ZstdAlone<'a> {
    fn new(bytes: &'a [u8], tile: &'a Tile<'a>) -> ZstdAlone<'a> {
        ZstdAlone { bytes, tile, context: zstd_safe::DCtx::create(), planes: Buffer::new() }
    }

    fn run(&mut self) {
        for n in 0..self.tile.n_chunks() {
            let nnz = usize::try_from(self.tile.chunk(n).nnz()).unwrap_or(0);
            self.planes.resize(2 * nnz);
            for stream in [Stream::Gaps, Stream::Vals] {
                let (bytes, tile) = (self.bytes, self.tile);
                assert!(naive::decompress(&mut self.context, bytes, tile, n, stream, &mut self.planes), "a sound tile");
            }
        }
    }
}

/// Whole decodes of a tile, and what bounds them.
fn decodes(bytes: &[u8], tile: &Tile<'_>, threads: usize, rounds: usize) -> Result<(Bounds, Vec<DecodeRow>), Error> {
    let nnz = usize::try_from(tile.nnz()).unwrap_or(0);
    let per_value = |seconds: f64| seconds * 1e9 / nnz.max(1) as f64;

    let mut zstd = ZstdAlone::new(bytes, tile);
    let mut source = Buffer::<u64>::new();
    source.resize(nnz);
    source.fill(1);
    let mut target = Buffer::<u64>::new();
    target.resize(nnz);
    let mut reference = naive::Naive::new();
    let mut reference_out = (Buffer::<i32>::new(), Buffer::<i32>::new());
    reference_out.0.resize(nnz);
    reference_out.1.resize(nnz);

    // Bounds first, each on one thread; then a case for each kernel, number of threads and kind of buffer.
    let mut cases = vec![
        Case::new(Clock::Cpu, || zstd.run()),
        Case::new(Clock::Cpu, || target.copy_from_slice(&source)),
        Case::new(Clock::Cpu, || reference.decode(bytes, tile, &mut reference_out.0, &mut reference_out.1)),
    ];
    let mut names = Vec::new();
    for kernels in Kernels::available() {
        for n in if threads > 1 { vec![1, threads] } else { vec![1] } {
            let clock = if n == 1 { Clock::Cpu } else { Clock::Wall };
            for buffers in ["reused", "reused-huge", "fresh"] {
                let pages = if buffers == "reused" { Pages::Default } else { Pages::Huge };
                let decoder = Decoder::builder().kernels(kernels).threads(n).pages(pages).build()?;
                let mut csr = Csr::<i32>::with_pages(pages);
                names.push((kernels.name(), n, buffers));
                cases.push(Case::new(clock, move || {
                    if buffers == "fresh" {
                        csr = Csr::new();
                    }
                    decoder.decode(tile, &mut csr).expect("a sound tile");
                }));
            }
        }
    }
    take_turns(&mut cases, rounds, Duration::from_millis(30));

    let bounds = Bounds {
        zstd_ns_per_nnz: per_value(cases[0].median()),
        memcpy_ns_per_nnz: per_value(cases[1].median()),
        naive_ns_per_nnz: per_value(cases[2].median()),
        naive_x_zstd: cases[2].ratio_to(&cases[0]),
    };
    let cases_of = names.iter().zip(&cases[3..]);
    let on_one = |row: &(&str, usize, &str)| {
        let same = |other: &(&str, usize, &str)| (other.0, other.1, other.2) == (row.0, 1, row.2);
        cases_of.clone().find(|(other, _)| same(other)).map(|(_, case)| case)
    };
    let rows = cases_of.clone().map(|(row, case)| DecodeRow {
        kernel: row.0,
        threads: row.1,
        buffers: row.2,
        speedup: on_one(row).map_or(1.0, |one| speedup(one, case)),
        ns_per_nnz: per_value(case.median()),
        ns_per_nnz_min: per_value(case.minimum()),
        x_zstd: case.ratio_to(&cases[0]),
        cells_per_s: tile.n_cells() as f64 / case.median(),
    });
    Ok((bounds, rows.collect()))
}

/// Single operations on real cells whose data stays in the cache.
fn kernel_ops(counts: &Csr<i32>, rounds: usize) -> Vec<OpRow> {
    // The first cells that fill the cache, as planes.
    let cells = counts.indptr().iter().take_while(|&&bound| bound <= HOT_VALUES).count().max(2) - 1;
    let bounds = &counts.indptr()[..counts.indptr().len().min(cells + 1)];
    let n = bounds.last().map_or(0, |&n| usize::try_from(n).unwrap_or(0));
    let starts: Vec<usize> = bounds.iter().map(|&bound| usize::try_from(bound).unwrap_or(0)).collect();
    let mut gaps = Vec::with_capacity(n);
    for cell in starts.windows(2) {
        let mut before = 0;
        for &gene in &counts.indices()[cell[0]..cell[1]] {
            gaps.push(gene - before);
            before = gene;
        }
    }
    let planes = |values: &[i32]| {
        let words = values.iter().map(|&value| u16::try_from(value).unwrap_or(u16::MAX).to_le_bytes());
        let (lo, hi): (Vec<u8>, Vec<u8>) = words.map(|[lo, hi]| (lo, hi)).unzip();
        (lo, hi)
    };
    let (gap_lo, gap_hi) = planes(&gaps);
    let (lo, hi) = planes(&counts.values()[..n]);
    let both = [lo.clone(), hi.clone()].concat();
    let outputs = || {
        let mut out = Buffer::<i32>::new();
        out.resize(n);
        out
    };

    let mut names = Vec::new();
    let mut cases = Vec::new();
    let mut case = |op: &'static str, kernel: &'static str, run: Box<dyn FnMut()>| {
        names.push((op, kernel));
        cases.push(Case::new(Clock::Cpu, run));
    };
    {
        let (lo, hi, starts, n_genes, mut out) =
            (gap_lo.clone(), gap_hi.clone(), starts.clone(), counts.n_genes(), outputs());
        case("gaps", "naive", Box::new(move || _ = naive::gaps(&lo, &hi, &starts, n_genes, &mut out)));
    }
    {
        let (lo, hi, mut out) = (lo.clone(), hi.clone(), outputs());
        case("counts_i32", "naive", Box::new(move || _ = naive::counts(&lo, &hi, &mut out)));
    }
    for kernels in Kernels::available() {
        let name = kernels.name();
        {
            let (lo, hi, bounds, mut out) = (gap_lo.clone(), gap_hi.clone(), bounds.to_vec(), outputs());
            case("gaps", name, Box::new(move || _ = kernels.gaps(&lo, &hi, &bounds, &mut out, Store::Cached)));
        }
        {
            let (lo, hi, mut out) = (lo.clone(), hi.clone(), outputs());
            case("counts_i32", name, Box::new(move || _ = kernels.counts_i32(&lo, &hi, &mut out, Store::Cached)));
        }
        {
            let (lo, hi, mut out) = (lo.clone(), hi.clone(), Buffer::<f32>::new());
            out.resize(n);
            case("counts_f32", name, Box::new(move || _ = kernels.counts_f32(&lo, &hi, &mut out, Store::Cached)));
        }
        {
            let (lo, hi, mut out) = (lo.clone(), hi.clone(), Buffer::<u16>::new());
            out.resize(n);
            case("counts_u16", name, Box::new(move || _ = kernels.counts_u16(&lo, &hi, &mut out, Store::Cached)));
        }
        {
            let (both, mut out) = (both.clone(), vec![0; both.len()]);
            case("words_2", name, Box::new(move || kernels.words(&both, 2, &mut out)));
        }
    }
    take_turns(&mut cases, 3 * rounds, Duration::from_millis(2));
    let rows = names.iter().zip(&cases).map(|(&(op, kernel), case)| OpRow {
        op,
        kernel,
        ns_per_value: case.minimum() * 1e9 / n.max(1) as f64,
        // Widening counts is the same loop whatever the type, and merging planes too.
        x_naive: 1.0 / case.ratio_to(&cases[usize::from(op != "gaps")]),
    });
    rows.collect()
}

/// The same counts in each profile: bytes, time to decode, time to encode.
fn profiles(counts: &Csr<i32>, rounds: usize, console: &mut Console) -> Result<Vec<ProfileRow>, Error> {
    let all = [Profile::Plain(19), Profile::Small, Profile::Balanced, Profile::Fast, Profile::Quick];
    let mut encoded = Vec::new();
    for profile in all {
        console.note(format_args!("encoding in profile {profile}"));
        encoded.push(encode(&counts.view(), profile, 1)?);
    }
    let tiles: Vec<Tile<'_>> = encoded.iter().map(|e| Tile::open(&e.bytes)).collect::<Result<_, _>>()?;
    console.note("timing the decode of each profile");
    let decoder = Decoder::builder().threads(1).build()?;
    let mut csr = vec![Csr::<i32>::new(); all.len()];
    let mut cases = Vec::new();
    for ((tile, encoded), csr) in tiles.iter().zip(&encoded).zip(&mut csr) {
        let mut zstd = ZstdAlone::new(&encoded.bytes, tile);
        cases.push(Case::new(Clock::Cpu, move || zstd.run()));
        let decoder = &decoder;
        cases.push(Case::new(Clock::Cpu, move || decoder.decode(tile, csr).expect("a sound tile")));
    }
    take_turns(&mut cases, rounds, Duration::from_millis(30));
    let per_value = |seconds: f64| seconds * 1e9 / counts.nnz().max(1) as f64;
    let rows = all.into_iter().zip(&encoded).enumerate().map(|(i, (profile, this))| ProfileRow {
        profile: profile.to_string(),
        bytes: this.bytes.len() as u64,
        x_bytes: this.bytes.len() as f64 / encoded[0].bytes.len() as f64,
        zstd_ns_per_nnz: per_value(cases[2 * i].median()),
        x_zstd_time: cases[2 * i].ratio_to(&cases[0]),
        decode_ns_per_nnz: per_value(cases[2 * i + 1].median()),
        x_decode: cases[2 * i + 1].ratio_to(&cases[0]),
        encode_s: this.seconds,
        x_encode: this.seconds / encoded[0].seconds,
    });
    Ok(rows.collect())
}
