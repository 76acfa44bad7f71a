//! Rows and mini-batches of a simulated dataset: block sizes, some genes, beside a plain range of all cells.
//!
//! `tilekern-peers read` is the comparison to quote: it is larger, and its cases take turns. This one is for watching a
//! change.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;
use tilekern::deltacel::dataset::{Batches, Dataset, GeneOrder, Genes, Writer};
use tilekern::deltacel::{Csr, CsrView, Decoder, Encoder, Profile};
use tilekern::simulate::{Params, Simulator};

fn simulated(cells: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let params = Params { cells, ..Params::default() };
    let simulator = Simulator::new(&params);
    let counts = simulator.cells(0..cells);
    let view =
        CsrView { n_genes: params.genes, indptr: &counts.indptr, indices: &counts.indices, values: &counts.data };
    let mut writer = Writer::builder(params.genes)
        .tile_size(1000)
        .encoder(Encoder::builder().profile(Profile::Quick))
        .gene_order(simulator.gene_order())
        .create(folder.path())
        .unwrap();
    writer.push(&view).unwrap();
    writer.finish().unwrap();
    folder
}

fn reading(criterion: &mut Criterion) {
    let test = std::env::args().any(|argument| argument == "--test");
    // As a test, cells that are quick to make.
    let cells = if test { 20 } else { 4000 };
    let folder = simulated(cells);
    let open = || Dataset::builder().check_crc(false).open(folder.path()).unwrap();
    let dataset = open();
    let decoder = Decoder::builder().threads(1).build().unwrap();
    let some = Genes::indices((0..8000).step_by(4).collect::<Vec<u32>>());

    let mut group = criterion.benchmark_group("op=range");
    group.sample_size(10).throughput(Throughput::Elements(cells as u64));
    let choices =
        [("all", None), ("2000", Some(some.clone())), ("source-order", Some(Genes::all().order(GeneOrder::Source)))];
    for (name, genes) in choices {
        let reader = dataset.reader::<f32>(&decoder);
        let reader = match genes {
            Some(genes) => reader.genes(&dataset.columns(&genes).unwrap()).unwrap(),
            None => reader,
        };
        let mut csr = Csr::new();
        group.bench_function(BenchmarkId::new("genes", name), |bencher| {
            bencher.iter(|| reader.range(0..cells as u64, &mut csr).unwrap());
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("op=epoch");
    group.sample_size(10).throughput(Throughput::Elements(cells as u64));
    let source = std::sync::Arc::new(open());
    for block in [16, 64, 256, 1000] {
        let options = Batches::builder(source.clone()).batch_size(128).block(block).window(1024);
        let options = options.decoder(Decoder::builder().threads(1));
        for (name, options) in [("all", options.clone()), ("2000", options.genes(some.clone()))] {
            group.bench_function(BenchmarkId::new(format!("genes={name}/block"), block), |bencher| {
                bencher.iter(|| options.build::<f32>().unwrap().map(|batch| batch.unwrap().csr().nnz()).sum::<usize>());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
