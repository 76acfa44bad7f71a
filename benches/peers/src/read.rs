//! Cells of a dataset in the ways in which training and analysis read them, each beside memcpy of its results.
//!
//! Cells per second are those of the clock. The CPU time, that of all threads, says what it costs where other work
//! disturbs the clock. The files are in the page cache.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use rustix::time::ClockId;
use serde_json::{Value, json};
use tilekern::deltacel::dataset::{Batches, Collection, Dataset, GeneOrder, Genes, Writer};
use tilekern::deltacel::{Csr, CsrView, Decoder, Encoder, Profile};
use tilekern::simulate::{Params, Simulator};

const CELLS: usize = 100_000;
const BATCH: usize = 512;
const ROUNDS: usize = 3;
/// A case runs for at least so long in each round.
const SECONDS: f64 = 0.7;

pub const HELP: &str = "\
  read       cells of a dataset: random rows, mini-batches with several blocks, some genes, other orders of genes
             --dataset PATH    of this dataset; simulated where there is none [default: a temporary folder]
             --cells N         so many simulated cells [default: 100000]
             --case TEXT       only cases whose name has this text
             --also COMMAND    another reader in the same rounds: run by sh, prints lines of JSON such as
                               {\"case\": \"random rows\", \"reader\": \"anndata 0.12\", \"cells\": 5120, \"seconds\": 1.5}
";

/// What one way to read gave.
pub struct Row {
    case: String,
    reader: String,
    cells_per_s: f64,
    m_nonzeros_per_s: Option<f64>,
    cpu_us_per_cell: Option<f64>,
    /// Its CPU time, and that of copying its results in memory.
    x_memcpy: Option<f64>,
}

impl Row {
    pub fn to_json(&self) -> Value {
        json!({
            "case": self.case,
            "reader": self.reader,
            "cells_per_s": self.cells_per_s,
            "m_nonzeros_per_s": self.m_nonzeros_per_s,
            "cpu_us_per_cell": self.cpu_us_per_cell,
            "x_memcpy": self.x_memcpy,
        })
    }
}

pub fn print(rows: &[Row]) {
    let line = |case: &str, reader: &str, numbers: [&str; 4]| {
        let [cells, nonzeros, cpu, copies] = numbers;
        println!("{case:<44} {reader:<20} {cells:>10} {nonzeros:>13} {cpu:>12} {copies:>13}");
    };
    line("case", "reader", ["cells/s", "M nonzeros/s", "CPU us/cell", "CPU / memcpy"]);
    for row in rows {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        let rest = [row.m_nonzeros_per_s, row.cpu_us_per_cell, row.x_memcpy].map(number);
        line(&row.case, &row.reader, [&format!("{:.0}", row.cells_per_s), &rest[0], &rest[1], &rest[2]]);
    }
}

/// What is read in a call: cells and nonzeros.
type Amount = (usize, usize);

struct Case<'a> {
    name: String,
    reader: String,
    run: Box<dyn FnMut() -> Amount + 'a>,
}

pub fn run(arguments: &[String]) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let option = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1));
    let folder = tempfile::tempdir()?;
    let path = option("--dataset").map_or_else(|| folder.path().join("simulated"), PathBuf::from);
    if !path.exists() {
        simulate(&path, option("--cells").map_or(Ok(CELLS), |cells| cells.parse())?)?;
    }
    let open = |crc: bool| Dataset::builder().check_crc(crc).open(&path);
    let (checked, dataset) = (open(true)?, open(false)?);
    let decoders = [1, 2].map(|threads| Decoder::builder().threads(threads).build().expect("a decoder"));
    let n_genes = dataset.n_genes();
    let some: Vec<u32> = (0..n_genes.min(8000)).step_by(4).collect();
    let some_columns = dataset.columns(&Genes::indices(&some[..]))?;
    let few = dataset.columns(&Genes::indices([n_genes / 2, n_genes / 2 + 9]))?;
    let source = dataset.columns(&Genes::all().order(GeneOrder::Source))?;
    let n = dataset.n_cells();
    let range = 20_000.min(n);

    let mut cases: Vec<Case<'_>> = Vec::new();
    for decoder in &decoders {
        let reader = format!("tilekern, {} threads", decoder.threads());
        let case = |name: &str, run| Case { name: name.to_owned(), reader: reader.clone(), run };
        for (name, dataset) in [("random rows, 512", &dataset), ("random rows, 512, CRC of whole tiles", &checked)] {
            let (reader, mut csr, mut state) = (dataset.reader::<f32>(decoder), Csr::new(), 1u64);
            cases.push(case(
                name,
                Box::new(move || {
                    let cells: Vec<u64> = (0..BATCH).map(|_| random(&mut state) % n).collect();
                    let decoded = reader.rows(&cells, &mut csr).expect("a sound dataset");
                    (decoded.cells, decoded.nnz)
                }),
            ));
        }
        let ranges = [
            ("range", None),
            ("range, 2000 genes", Some(&some_columns)),
            ("range, 2 rare genes", Some(&few)),
            ("range, columns in source order", Some(&source)),
        ];
        for (name, genes) in ranges {
            let reader = dataset.reader::<f32>(decoder);
            let reader = match genes {
                Some(genes) => reader.genes(genes)?,
                None => reader,
            };
            let mut csr = Csr::new();
            cases.push(case(
                name,
                Box::new(move || {
                    let decoded = reader.range(0..range, &mut csr).expect("a sound dataset");
                    (decoded.cells, decoded.nnz)
                }),
            ));
        }
    }
    let collection = Collection::from(Arc::new(open(false)?));
    let crc = Collection::from(Arc::new(open(true)?));
    for threads in [1, 2] {
        let options =
            Batches::builder(&collection).batch_size(BATCH as u64).decoder(Decoder::builder().threads(threads));
        let shapes = [(64, 16_384), (256, 16_384), (1024, 16_384), (256, 65_536), (4096, 65_536)];
        let mut variants: Vec<_> = shapes
            .into_iter()
            .map(|(block, window)| {
                (format!("batches, block {block}, window {window}"), options.clone().block(block).window(window))
            })
            .collect();
        let crc = Batches::builder(&crc).decoder(Decoder::builder().threads(threads));
        variants.push(("batches, block 256, window 16384, CRC".to_owned(), crc));
        let genes = options.clone().genes(Genes::indices(&some[..]));
        variants.push(("batches, block 256, window 16384, 2000 genes".to_owned(), genes.clone()));
        variants.push(("the same, dense".to_owned(), genes.dense(true)));
        for (name, options) in variants {
            // A whole epoch with the start of its threads, so that nothing is made ahead outside the measure.
            let run = move || {
                let batches = options.build::<f32>().expect("options");
                batches.fold((0, 0), |(cells, nonzeros), batch| {
                    let batch = batch.expect("a sound dataset");
                    black_box(batch.dense());
                    (cells + batch.cells().len(), nonzeros + batch.csr().nnz())
                })
            };
            cases.push(Case { name, reader: format!("tilekern, {threads} threads"), run: Box::new(run) });
        }
    }
    let wanted = option("--case").map_or("", |text| text);
    cases.retain(|case| case.name.contains(wanted));
    let also = option("--also").map(|command| also(command)).transpose()?.unwrap_or_default();
    Ok(measure(cases).into_iter().chain(also).collect())
}

/// Runs the cases in turns.
fn measure(mut cases: Vec<Case<'_>>) -> Vec<Row> {
    let mut rows: Vec<Vec<[f64; 4]>> = vec![Vec::new(); cases.len()];
    for round in 0..=ROUNDS {
        for (case, found) in cases.iter_mut().zip(&mut rows) {
            let (start, cpu) = (Instant::now(), cpu_time(ClockId::ProcessCPUTime));
            let (mut cells, mut nonzeros) = (0, 0);
            while start.elapsed().as_secs_f64() < SECONDS {
                let (more_cells, more_nonzeros) = (case.run)();
                (cells, nonzeros) = (cells + more_cells, nonzeros + more_nonzeros);
            }
            let seconds = start.elapsed().as_secs_f64();
            let cpu = cpu_time(ClockId::ProcessCPUTime) - cpu;
            // The first round warms up.
            if round > 0 {
                let (n, copy) = (cells as f64, copy_seconds(8 * nonzeros + 8 * cells));
                found.push([n / seconds, nonzeros as f64 / 1e6 / seconds, 1e6 * cpu / n, cpu / copy]);
            }
        }
    }
    let row = |(case, found): (Case<'_>, Vec<[f64; 4]>)| {
        let median = |which: usize| {
            let mut values: Vec<f64> = found.iter().map(|found| found[which]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Row {
            case: case.name,
            reader: case.reader,
            cells_per_s: median(0),
            m_nonzeros_per_s: Some(median(1)),
            cpu_us_per_cell: Some(median(2)),
            x_memcpy: Some(median(3)),
        }
    };
    cases.into_iter().zip(rows).map(row).collect()
}

/// CPU time in seconds.
fn cpu_time(of: ClockId) -> f64 {
    let now = rustix::time::clock_gettime(of);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// How long it takes to copy so many bytes, in pieces of 8 MiB as results of batches are.
fn copy_seconds(bytes: usize) -> f64 {
    let source = vec![1u8; 8 << 20];
    let mut target = vec![0u8; 8 << 20];
    let start = cpu_time(ClockId::ThreadCPUTime);
    let times = 20;
    for _ in 0..times {
        target.copy_from_slice(black_box(&source));
        black_box(&mut target);
    }
    (cpu_time(ClockId::ThreadCPUTime) - start) / (times * source.len()) as f64 * bytes as f64
}

/// What another program measured.
fn also(command: &str) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let output = Command::new("sh").args(["-c", command]).stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command}: {}", output.status).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let row = |line: &str| {
        let value: Value = serde_json::from_str(line)?;
        let number = |key: &str| value[key].as_f64().ok_or_else(|| format!("{command}: a line without {key}: {line}"));
        let text = |key: &str| value[key].as_str().unwrap_or("another").to_owned();
        Ok(Row {
            case: text("case"),
            reader: text("reader"),
            cells_per_s: number("cells")? / number("seconds")?,
            m_nonzeros_per_s: None,
            cpu_us_per_cell: None,
            x_memcpy: None,
        })
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(row).collect()
}

/// A random number from a counter.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 31)
}

fn simulate(path: &Path, cells: usize) -> Result<(), Box<dyn std::error::Error>> {
    eprintln!("simulating {cells} cells");
    let params = Params { cells, ..Params::default() };
    let simulator = Simulator::new(&params);
    let mut writer = Writer::builder(params.genes)
        .encoder(Encoder::builder().profile(Profile::Quick))
        .gene_order(simulator.gene_order())
        .create(path)?;
    let piece = 2_500;
    for start in (0..cells).step_by(2 * piece) {
        let part = |from: usize| simulator.cells(from.min(cells)..(from + piece).min(cells));
        let parts = std::thread::scope(|scope| {
            let other = scope.spawn(move || part(start + piece));
            [part(start), other.join().expect("no panic in a simulation")]
        });
        for counts in parts {
            let view = CsrView {
                n_genes: params.genes,
                indptr: &counts.indptr,
                indices: &counts.indices,
                values: &counts.data,
            };
            writer.push(&view)?;
        }
    }
    writer.finish()?;
    Ok(())
}
