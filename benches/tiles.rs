//! Whole tiles on every kernel level, beside libzstd alone on the same frames and memcpy of the output.
//!
//! `tilekern bench` is the comparison to quote: its cases take turns. This one is for watching a change.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilekern::Stream;
use tilekern::deltacel::{Csr, CsrView, Decoder, Encoder, Profile, Tile};
use tilekern::kernels::Kernels;
use tilekern::simulate::{Params, Simulator};

fn tile_bytes(cells: usize, profile: Profile) -> Vec<u8> {
    let params = Params { cells, ..Params::default() };
    let counts = Simulator::new(&params).cells(0..cells);
    let view =
        CsrView { n_genes: params.genes, indptr: &counts.indptr, indices: &counts.indices, values: &counts.data };
    let mut bytes = Vec::new();
    Encoder::builder().profile(profile).build().unwrap().encode(&view, &mut bytes).unwrap();
    bytes
}

fn decode(criterion: &mut Criterion) {
    // As a test, a tile that is quick to make.
    let cells = if criterion_is_test() { 20 } else { 1000 };
    for profile in [Profile::Plain(19), Profile::Balanced, Profile::Fast] {
        let bytes = tile_bytes(cells, profile);
        let tile = Tile::open(&bytes).unwrap();
        let nnz = usize::try_from(tile.nnz()).unwrap();
        let mut group = criterion.benchmark_group(format!("op=decode/profile={profile}"));
        group.throughput(Throughput::ElementsAndBytes { elements: tile.nnz(), bytes: 8 * tile.nnz() });
        for kernels in Kernels::available() {
            let decoder = Decoder::builder().kernels(kernels).threads(1).build().unwrap();
            let mut csr = Csr::<i32>::new();
            group.bench_function(BenchmarkId::new(format!("level={}", kernels.name()), nnz), |bencher| {
                bencher.iter(|| decoder.decode(&tile, &mut csr).unwrap());
            });
        }
        let mut zstd = zstd_safe::DCtx::create();
        let mut planes = Vec::new();
        group.bench_function(BenchmarkId::new("bound=libzstd", nnz), |bencher| {
            bencher.iter(|| {
                for n in 0..tile.n_chunks() {
                    let chunk = tile.chunk(n);
                    planes.resize(2 * usize::try_from(chunk.nnz()).unwrap(), 0);
                    for stream in [Stream::Gaps, Stream::Vals] {
                        let (offset, len) = chunk.span(stream);
                        let at = usize::try_from(offset).unwrap();
                        zstd.decompress(&mut planes[..], &bytes[at..at + usize::try_from(len).unwrap()]).unwrap();
                    }
                }
            });
        });
        let source = vec![1u64; nnz];
        let mut target = vec![0u64; nnz];
        group.bench_function(BenchmarkId::new("bound=memcpy", nnz), |bencher| {
            bencher.iter(|| target.copy_from_slice(black_box(&source)));
        });
        group.finish();
    }
}

fn open(criterion: &mut Criterion) {
    let bytes = tile_bytes(if criterion_is_test() { 20 } else { 1000 }, Profile::Quick);
    let mut group = criterion.benchmark_group("op=open");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("crc", |bencher| bencher.iter(|| Tile::open(black_box(&bytes)).unwrap()));
    group.bench_function("no-crc", |bencher| bencher.iter(|| Tile::open_without_crc(black_box(&bytes)).unwrap()));
    group.finish();
}

fn criterion_is_test() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

criterion_group!(benches, decode, open);
criterion_main!(benches);
