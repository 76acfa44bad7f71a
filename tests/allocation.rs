//! A steady loop allocates nothing: neither from Rust's allocator nor, on Linux, from the system.
#![cfg(all(feature = "encode", target_endian = "little"))]
#![allow(unsafe_code)] // an allocator has no other form

#[allow(dead_code, unused_imports)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use tilekern::deltacel::{Chunks, Csr, CsrView, Decoder, Encoder, Profile, StoreChoice, Tile};
use tilekern::kernels::{Kernels, Store};

/// Counts what is asked for, by any thread.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's, unchanged.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and their bytes while `work` runs. This file has one test alone, so no other thread is at work.
fn counted(work: impl FnOnce()) -> (u64, u64) {
    let before = (CALLS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
    work();
    (CALLS.load(Ordering::Relaxed) - before.0, BYTES.load(Ordering::Relaxed) - before.1)
}

/// Address space in use, in KiB: what libzstd or a mapping takes shows here alone.
fn address_space() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}

/// A larger tile: several chunks, scratch and results of megabytes each, which lie in mappings of their own.
fn large() -> Vec<u8> {
    let (cells, per_cell) = (1500, 700);
    let indptr: Vec<i64> = (0..=cells).map(|cell| cell * per_cell).collect();
    let indices: Vec<i32> =
        (0..cells).flat_map(|cell| (0..700).map(move |i| 7 * i + i32::from(cell % 5 == 0))).collect();
    let values: Vec<i32> = indices.iter().map(|gene| 1 + gene % 11).collect();
    let mut tile = Vec::new();
    let mut encoder = Encoder::builder().profile(Profile::Plain(1)).chunks(Chunks::Count(3)).build().unwrap();
    encoder.encode(&CsrView { n_genes: 5000, indptr: &indptr, indices: &indices, values: &values }, &mut tile).unwrap();
    tile
}

/// A tile whose frames ask for windows that libzstd refuses, so that they are edited before the decode.
fn wide_window() -> Vec<u8> {
    use bodies::build::{Draft, Piece, block_header, planes};
    let frame = |values: &[u16]| {
        let content = planes(values);
        let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x80, 31 << 3];
        frame.extend(u32::try_from(content.len()).unwrap().to_le_bytes());
        frame.extend(block_header(0, content.len() as u64, true));
        frame.extend(content);
        frame
    };
    let frames = [frame(&[5; 30]), frame(&[1; 30]), Vec::new(), Vec::new()];
    let piece = Piece { cells: 0..1, nonzeros: 0..30, frames };
    Draft { n_genes: 1000, bounds: vec![0, 30], chunks: vec![piece], ..Draft::default() }.write()
}

/// What a loop over tiles keeps.
#[derive(Default)]
struct Kept {
    i32: Csr<i32>,
    f32: Csr<f32>,
    u16: Csr<u16>,
    genes: Csr<u16>,
    part: Csr<i32>,
}

impl Kept {
    /// Opens a tile and decodes it every way; counts that do not fit are an error, and errors allocate.
    fn decode(&mut self, decoder: &Decoder, bytes: &[u8], fits: bool) {
        let tile = Tile::open(black_box(bytes)).unwrap();
        let n = tile.n_cells();
        decoder.decode(&tile, &mut self.i32).unwrap();
        decoder.decode(&tile, &mut self.f32).unwrap();
        if fits {
            decoder.decode(&tile, &mut self.u16).unwrap();
        }
        decoder.decode_indices(&tile, 0..n, &mut self.genes).unwrap();
        for cells in [0..n / 2, n / 3..n, n..n] {
            decoder.decode_cells(&tile, cells, &mut self.part).unwrap();
        }
    }
}

#[test]
fn steady_loops() {
    // What is measured is measured at all.
    let (calls, bytes) = counted(|| drop(black_box(vec![0u8; 1000])));
    assert!(calls >= 1 && bytes >= 1000);

    let mut tiles = bodies::seeds::tiles();
    tiles.extend([large(), wide_window()]);
    let one = Decoder::builder().threads(1).build().unwrap();
    let fits: Vec<bool> =
        tiles.iter().map(|bytes| one.decode(&Tile::open(bytes).unwrap(), &mut Csr::<u16>::new()).is_ok()).collect();
    assert!(fits.contains(&false) && fits.contains(&true), "tiles with exceptions and without");

    for kernels in Kernels::available() {
        for store in [Store::Cached, Store::Streaming] {
            let store = StoreChoice::Always(store);
            let decoder = Decoder::builder().kernels(kernels).threads(1).store(store).build().unwrap();
            let mut kept = Kept::default();
            let mut pass = || tiles.iter().zip(&fits).for_each(|(tile, &fits)| kept.decode(&decoder, tile, fits));
            let (first, _) = counted(&mut pass);
            assert!(first > 0);
            let before = address_space();
            assert_eq!(counted(|| (0..3).for_each(|_| pass())), (0, 0), "{kernels:?}");
            assert_eq!(address_space(), before, "{kernels:?}");
        }
    }

    // On several threads nothing of ours allocates, once every thread has had its largest chunk, which chance decides:
    // until then its scratch may grow. And rayon hands work to its threads through a queue made of blocks, one for every
    // 63 calls from outside.
    let decoder = Decoder::builder().threads(3).build().unwrap();
    let mut kept = Kept::default();
    let mut pass = || tiles.iter().zip(&fits).for_each(|(tile, &fits)| kept.decode(&decoder, tile, fits));
    (0..20).for_each(|_| pass());
    let passes = 50;
    let (calls, bytes) = counted(|| (0..passes).for_each(|_| pass()));
    let handed_over = passes * 7 * tiles.len() as u64;
    println!("{calls} allocations of {bytes} bytes in {handed_over} decodes on three threads");
    let growth = 3 * (2 << 20);
    assert!(calls <= handed_over / 63 + 24, "{calls} allocations in {handed_over} decodes");
    assert!(bytes <= 2048 * (handed_over / 63) + growth, "{bytes} bytes in {handed_over} decodes");

    #[cfg(feature = "dataset")]
    datasets();
}

/// Rows, some genes of them, and batches: what is allocated is a few small things for each tile that is opened, and
/// nothing that grows with cells or nonzeros.
#[cfg(feature = "dataset")]
fn datasets() {
    use tilekern::deltacel::dataset::{Batches, Dataset, GeneOrder, Genes, Writer};
    const TILES: u64 = 8;
    let folder = tempfile::tempdir().unwrap();
    let (cells, per_cell) = (4000, 300);
    let indptr: Vec<i64> = (0..=cells).map(|cell| cell * per_cell).collect();
    let indices: Vec<i32> = (0..cells).flat_map(|_| (0..300).map(|i| 6 * i)).collect();
    let values: Vec<i32> = indices.iter().map(|gene| 1 + gene % 11).collect();
    let encoder = Encoder::builder().profile(Profile::Plain(1)).chunks(Chunks::Count(4));
    let mut writer = Writer::builder(2000)
        .tile_size(500)
        .encoder(encoder)
        .gene_order((0..2000).rev().collect::<Vec<i32>>())
        .create(folder.path())
        .unwrap();
    writer.push(&CsrView { n_genes: 2000, indptr: &indptr, indices: &indices, values: &values }).unwrap();
    writer.finish().unwrap();
    let open = || Dataset::builder().check_crc(false).open(folder.path()).unwrap();

    let dataset = open();
    let decoder = Decoder::builder().threads(1).build().unwrap();
    let some = Genes::indices((0..2000).step_by(3).collect::<Vec<u32>>());
    let choices = [Genes::all(), some.clone(), some.order(GeneOrder::Source)];
    let wanted: Vec<u64> = (0..1333).map(|i| 3999 - 3 * i).collect();
    for genes in choices {
        let reader = dataset.reader::<f32>(&decoder).genes(&dataset.columns(&genes).unwrap()).unwrap();
        let mut csr = Csr::new();
        let mut pass = || _ = black_box(reader.rows(black_box(&wanted), &mut csr).unwrap());
        (0..2).for_each(|_| pass());
        let (calls, bytes) = counted(|| (0..5).for_each(|_| pass()));
        println!("{calls} allocations of {bytes} bytes in 5 calls over {TILES} tiles");
        assert!(calls <= 5 * (20 * TILES + 10), "{calls} allocations");
        assert!(bytes <= 5 * 4096 * TILES, "{bytes} bytes");
    }

    // Batches of an epoch of eight loads, once their memory has grown: those of the last three loads.
    let options = Batches::builder(open()).batch_size(50).block(100).window(500).seed(1).prefetch(2);
    let options = options.decoder(Decoder::builder().threads(1)).dense(true);
    let mut batches = options.build::<f32>().unwrap();
    let mut take = |n: usize| {
        for _ in 0..n {
            black_box(batches.next().unwrap().unwrap().dense());
        }
    };
    take(50);
    let (calls, bytes) = counted(|| take(30));
    println!("{calls} allocations of {bytes} bytes in 30 batches of three windows, each of up to {TILES} tiles");
    assert!(calls <= 3 * 20 * TILES + 100, "{calls} allocations");
    // The window's rows and batches take 1.2 MB and 0.5 MB: some of it may still grow by a little, but is not made anew.
    assert!(bytes <= 3 * 4096 * TILES + (1 << 20), "{bytes} bytes");
}
