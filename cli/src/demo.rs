//! `tilekern demo`: the main job on an embedded default, checked.

use tilekern::deltacel::{Chunks, Csr, CsrView, Decoder, Encoder, Profile, Tile, verify};
use tilekern::kernels::Kernels;
use tilekern::simulate::{Counts, Params, Simulator};

use crate::Verdict;
use crate::bench;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::text::counted;

/// Simulate cells, write them as a tile, decode it with every kernel, check the result, and compare throughput
///
/// All in memory: nothing is left behind. It takes less than a minute.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern demo
  tilekern demo --json")]
pub struct Args {}

/// What is simulated: enough for figures that mean something, and quick to encode.
const PARAMS: Params = Params { cells: 1500, genes: 33_000, seed: 1 };

const ROUNDS: usize = 5;

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Record {
    cells: usize,
    genes: u32,
    nnz: usize,
    bytes: usize,
    profile: String,
    /// Kernels that gave back exactly the counts that went in.
    verified: Vec<&'static str>,
}

pub fn run(_: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    console.note("simulating counts");
    let counts = Simulator::new(&PARAMS).cells(0..PARAMS.cells);
    let view =
        CsrView { n_genes: PARAMS.genes, indptr: &counts.indptr, indices: &counts.indices, values: &counts.data };
    let profile = Profile::default();
    console.note(format_args!("encoding them in profile {profile}"));
    let mut bytes = Vec::new();
    Encoder::builder().profile(profile).chunks(Chunks::Auto).build()?.encode(&view, &mut bytes)?;
    let verified =
        Kernels::available().map(|kernels| check(&bytes, &counts, kernels)).collect::<Result<Vec<_>, _>>()?;
    let nnz = counts.indices.len();
    if console.json {
        let (cells, genes, bytes, profile) = (PARAMS.cells, PARAMS.genes, bytes.len(), profile.to_string());
        console.record(&Record { cells, genes, nnz, bytes, profile, verified })?;
        return Ok(Verdict::Sound);
    }
    console.line(format_args!(
        "{} x {}, {}: {}, {:.3} per nonzero (CSR arrays: 8)",
        counted(PARAMS.cells, "cell"),
        counted(PARAMS.genes, "gene"),
        counted(nnz, "nonzero"),
        counted(bytes.len(), "byte"),
        bytes.len() as f64 / nnz as f64
    ))?;
    console.line(format_args!("decoded to exactly the counts that went in by: {}", verified.join(", ")))?;
    console.line("")?;
    console.flush()?;
    let report = bench::measure(&bytes, &profile.to_string(), ROUNDS, false, console)?;
    report.decode_lines().iter().try_for_each(|line| console.line(line))?;
    console.line("")?;
    report.op_lines().iter().try_for_each(|line| console.line(line))?;
    Ok(Verdict::Sound)
}

/// Decodes with these kernels, on one and on all threads, and compares with what went in.
fn check(bytes: &[u8], counts: &Counts, kernels: Kernels) -> Result<&'static str, Stop> {
    for threads in [1, 0] {
        let decoder = Decoder::builder().kernels(kernels).threads(threads).build()?;
        if let Some(fault) = verify(bytes, &decoder).into_iter().next() {
            return Err(fault.into());
        }
        let mut csr = Csr::<i32>::new();
        decoder.decode(&Tile::open(bytes)?, &mut csr)?;
        if csr.indptr() != counts.indptr || csr.indices() != counts.indices || csr.values() != counts.data {
            let message = format!("kernels {} do not give back the counts that went in", kernels.name());
            return Err(Fault::new("inconsistent", "demo".as_ref(), message).into());
        }
    }
    Ok(kernels.name())
}
