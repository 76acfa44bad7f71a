//! Tiles in.

use std::ops::Range;

use arbitrary::Unstructured;
use tilekern::deltacel::{Count, Csr, Decoded, Decoder, StoreChoice, Tile, trace, verify};
use tilekern::kernels::{Kernels, Store};
use tilekern::{Error, ErrorKind, FrameFault, Limits};

use super::build::{HEADER, any_tile, repair};
use super::oracle;

/// Small enough that a body which keeps to them stays far below the memory that a fuzzer is given.
fn small_limits() -> Limits {
    let mut limits = Limits::default().with_output_bytes(8 << 20);
    limits.max_values = 1 << 20;
    limits.max_scratch_bytes = 8 << 20;
    limits
}

/// Any bytes as a tile, through every entry point: no panic, and no more memory than the limits allow.
///
/// Bytes with a tile's magic are tried again with size and CRC made right.
pub fn tile_decode(data: &[u8]) {
    thread_local!(static DECODER: Decoder = Decoder::builder()
        .limits(small_limits())
        .threads(1)
        .build()
        .expect("the kernels that the environment names"));
    DECODER.with(|decoder| {
        every_entry(data, decoder);
        if data.starts_with(b"DELTACEL") {
            let mut tile = data.to_vec();
            repair(&mut tile);
            every_entry(&tile, decoder);
        }
    });
}

fn every_entry(bytes: &[u8], decoder: &Decoder) {
    let faults = verify(bytes, decoder);
    let opened = Tile::open(bytes);
    if let Ok(tile) = opened.as_ref().map_or_else(|_| Tile::open_without_crc(bytes), |tile| Ok(*tile)) {
        let whole = decoder.decode(&tile, &mut Csr::<i32>::new());
        let limited = |error: &Error| matches!(error.kind(), ErrorKind::LimitExceeded { .. });
        let refused = whole.as_ref().is_err_and(|error| !limited(error)) || opened.is_err();
        assert!(refused <= !faults.is_empty(), "verified, though {opened:?} and {whole:?}");
        _ = decoder.decode(&tile, &mut Csr::<f32>::new());
        _ = decoder.decode(&tile, &mut Csr::<u16>::new());
        for cells in ranges(tile.n_cells()) {
            _ = decoder.decode_cells(&tile, cells.clone(), &mut Csr::<i32>::new());
            _ = decoder.decode_indices(&tile, cells, &mut Csr::<i32>::new());
        }
    } else {
        assert!(!faults.is_empty(), "verified, though {opened:?}");
    }
    _ = trace(bytes, None, decoder.limits());
    let chunk = bytes.last().map(|&byte| u32::from(byte) % 5);
    _ = trace(bytes, chunk, decoder.limits());
}

/// Ranges of the cells of a tile, and some that it does not have.
fn ranges(n: usize) -> [Range<usize>; 5] {
    #[allow(clippy::reversed_empty_ranges)] // what a caller may get wrong
    let reversed = 1..0;
    [0..n.min(1), n / 3..n - n / 3, n..n, n..n + 1, reversed]
}

/// What one decode gives: the arrays' bytes, or the error's text.
#[derive(Debug, PartialEq)]
enum Outcome {
    Arrays { decoded: Decoded, indptr: Vec<i64>, indices: Vec<i32>, values: Vec<u8> },
    Refused(String),
}

impl Outcome {
    fn of<T: Count>(result: Result<Decoded, Error>, csr: &Csr<T>, tile: &[u8]) -> Outcome {
        match result {
            Ok(decoded) => Outcome::Arrays {
                decoded,
                indptr: csr.indptr().to_vec(),
                indices: csr.indices().to_vec(),
                values: bytemuck::cast_slice(csr.values()).to_vec(),
            },
            Err(error) => {
                locates(&error, tile);
                Outcome::Refused(format!("{error} [{}]", error.kind().name()))
            }
        }
    }
}

/// A fault of the data names a place in the object.
fn locates(error: &Error, tile: &[u8]) {
    if !matches!(error.kind(), ErrorKind::LimitExceeded { .. }) {
        assert!(error.offset().is_some_and(|at| at <= tile.len() as u64), "no place in the object: {error}");
    }
}

struct Lane {
    name: String,
    decoder: Decoder,
}

/// Every row of kernels, on one thread and on three, with cached and with streaming stores. The first is the plainest.
fn lanes() -> Vec<Lane> {
    let mut lanes = Vec::new();
    for kernels in Kernels::available() {
        for threads in [1, 3] {
            for store in [Store::Cached, Store::Streaming] {
                let builder = Decoder::builder().kernels(kernels).threads(threads).store(StoreChoice::Always(store));
                let decoder = builder.build().expect("threads");
                lanes.push(Lane { name: format!("{kernels:?}, {threads} threads, {store:?}"), decoder });
            }
        }
    }
    lanes
}

/// A tile gives the same arrays or the same error on every row, number of threads and way to store, and the arrays are
/// those of a reader that follows the document word for word.
///
/// Bytes that start as a tile are taken as one whose size and CRC are made right; others choose a tile.
pub fn tile_differential(data: &[u8]) {
    let tile = if data.starts_with(b"DELTACEL") {
        let mut tile = data.to_vec();
        repair(&mut tile);
        tile
    } else {
        match any_tile(&mut Unstructured::new(data)) {
            Ok(tile) => tile,
            Err(_) => return,
        }
    };
    let declared = tile.get(24..32).map_or(0, |nnz| u64::from_le_bytes(nnz.try_into().unwrap_or_default()));
    if tile.len() >= HEADER && declared <= oracle::MAX_NONZEROS {
        thread_local!(static LANES: Vec<Lane> = lanes());
        LANES.with(|lanes| agree(&tile, lanes));
    }
}

fn agree(bytes: &[u8], lanes: &[Lane]) {
    let oracle = oracle::read(bytes);
    let tile = match Tile::open(bytes) {
        Ok(tile) => tile,
        Err(error) => {
            locates(&error, bytes);
            if matches!(error.kind(), ErrorKind::Frame(FrameFault::Overlap { .. })) {
                return; // a bound on work, which the document does not know
            }
            assert!(oracle.is_none(), "refused: {error}, where the document has no objection");
            let faults: Vec<_> = verify(bytes, &lanes[0].decoder).iter().map(Error::to_string).collect();
            assert!(faults.contains(&error.to_string()), "{error} is not among {faults:?}");
            let traced = trace(bytes, None, &Limits::default()).fault;
            assert!(traced.is_some(), "traced to the end, though {error}");
            return;
        }
    };
    let whole = same(lanes, |decoder| decode::<i32>(decoder, &tile, bytes));
    match (&whole, &oracle) {
        (Outcome::Arrays { indptr, indices, values, .. }, Some(matrix)) => {
            assert_eq!((indptr, indices), (&matrix.indptr, &matrix.indices));
            assert_eq!(values, bytemuck::cast_slice::<_, u8>(&matrix.counts));
        }
        (Outcome::Refused(_), None) => {}
        (whole, oracle) => panic!("{whole:?}, where the document gives {oracle:?}"),
    }
    same(lanes, |decoder| decode::<f32>(decoder, &tile, bytes));
    same(lanes, |decoder| decode::<u16>(decoder, &tile, bytes));
    let n = tile.n_cells();
    for cells in [0..n / 2, n / 2..n, n / 3..n - n / 3] {
        let part = same(lanes, |decoder| {
            let mut csr = Csr::<i32>::new();
            Outcome::of(decoder.decode_cells(&tile, cells.clone(), &mut csr), &csr, bytes)
        });
        let genes = same(lanes, |decoder| {
            let mut csr = Csr::<u16>::new();
            Outcome::of(decoder.decode_indices(&tile, cells.clone(), &mut csr), &csr, bytes)
        });
        if let Some(matrix) = &oracle {
            is_part(&part, matrix, cells.clone(), true);
            is_part(&genes, matrix, cells, false);
        }
    }
    same(lanes, |decoder| {
        let faults = verify(bytes, decoder);
        let lines: Vec<_> = faults.iter().map(Error::to_string).collect();
        match &whole {
            Outcome::Refused(error) => {
                let found = lines.iter().any(|line| error.starts_with(line.as_str()));
                assert!(found, "{error} is not among {lines:?}");
            }
            Outcome::Arrays { .. } => assert_eq!(lines, [""; 0], "decoded"),
        }
        lines
    });
    if let (Some(fault), Outcome::Arrays { .. }) = (trace(bytes, None, &Limits::default()).fault, &whole) {
        panic!("traced to {fault}, though it decodes");
    }
}

fn decode<T: Count>(decoder: &Decoder, tile: &Tile<'_>, bytes: &[u8]) -> Outcome {
    let mut csr = Csr::<T>::new();
    Outcome::of(decoder.decode(tile, &mut csr), &csr, bytes)
}

/// What all lanes give.
fn same<R: PartialEq + std::fmt::Debug>(lanes: &[Lane], run: impl Fn(&Decoder) -> R) -> R {
    let first = run(&lanes[0].decoder);
    for lane in &lanes[1..] {
        let other = run(&lane.decoder);
        assert!(other == first, "{}: {other:?}; {}: {first:?}", lane.name, lanes[0].name);
    }
    first
}

/// A range of a sound tile is the rows of the whole.
fn is_part(part: &Outcome, whole: &oracle::Matrix, cells: Range<usize>, counts: bool) {
    let Outcome::Arrays { indptr, indices, values, .. } = part else { panic!("{cells:?} of a sound tile: {part:?}") };
    let (from, to) = (whole.indptr[cells.start], whole.indptr[cells.end]);
    let bounds: Vec<i64> = whole.indptr[cells.start..=cells.end].iter().map(|bound| bound - from).collect();
    let wanted = usize::try_from(from).unwrap_or(0)..usize::try_from(to).unwrap_or(0);
    assert_eq!((indptr, &indices[..]), (&bounds, &whole.indices[wanted.clone()]));
    let expected = if counts { &whole.counts[wanted] } else { &[] };
    assert_eq!(values, bytemuck::cast_slice::<_, u8>(expected));
}
