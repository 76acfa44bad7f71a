//! Streams may share bytes, but not so that reading a tile takes time out of proportion to its size.
#![cfg(target_endian = "little")]

#[allow(dead_code)] // other tests use the rest
#[path = "../fuzz/src/build.rs"]
mod build;

use build::{Draft, Piece, block_header, frame_header, planes, raw_frame};
use tilekern::deltacel::{Csr, Decoder, Tile, trace, verify};
use tilekern::{Error, ErrorKind, FrameFault, Limits, Part, Stream};

/// Chunks of one cell each that share their frames; so many more without cells share a frame of their own.
fn tile(full: u64, empty: u64, empty_frame: &[u8]) -> Vec<u8> {
    let mut draft = Draft { n_genes: 9, bounds: vec![0], shared: true, ..Draft::default() };
    for n in 0..full {
        let frames = [raw_frame(&planes(&[0, 3, 1])), raw_frame(&planes(&[7, 8, 9])), Vec::new(), Vec::new()];
        draft.chunks.push(Piece { cells: n..n + 1, nonzeros: 3 * n..3 * n + 3, frames });
        draft.bounds.push(3 * n + 3);
    }
    for _ in 0..empty {
        let frames = [empty_frame.to_vec(), raw_frame(&[]), Vec::new(), Vec::new()];
        draft.chunks.push(Piece { cells: full..full, nonzeros: 3 * full..3 * full, frames });
    }
    draft.write()
}

/// A frame without content of so many blocks.
fn blocks(n: u64) -> Vec<u8> {
    let mut frame = frame_header(0);
    frame.extend((1..=n).flat_map(|i| block_header(0, 0, i == n)));
    frame
}

#[test]
fn many_chunks_may_share_a_frame() {
    let bytes = tile(500, 500, &raw_frame(&[]));
    let decoder = Decoder::new().unwrap();
    let mut csr = Csr::<i32>::new();
    decoder.decode(&Tile::open(&bytes).unwrap(), &mut csr).unwrap();
    assert_eq!((csr.n_cells(), csr.indices()), (500, &[0, 3, 4].repeat(500)[..]));
    assert!(verify(&bytes, &decoder).is_empty());
    assert!(trace(&bytes, None, &Limits::default()).fault.is_none());
}

/// Walked for each chunk anew, the blocks would be two hundred times those that the tile has.
#[test]
fn walks_over_shared_blocks_are_bounded() {
    let bytes = tile(1, 200, &blocks(20_000));
    let max = 8 * bytes.len() as u64 / 3;
    let error = Tile::open(&bytes).unwrap_err();
    let kind = ErrorKind::Frame(FrameFault::Overlap { max });
    assert_eq!((error.kind(), error.part()), (kind, Part::Chunk(11, Stream::Gaps)), "{error}");
    let faults = verify(&bytes, &Decoder::new().unwrap());
    assert_eq!(faults.first().map(Error::to_string), Some(error.to_string()));
    assert_eq!(trace(&bytes, None, &Limits::default()).fault.map(|fault| fault.to_string()), Some(error.to_string()));
}

/// Blocks that have content are no burden beyond the results, however many chunks share them.
#[test]
fn frames_of_many_blocks_may_be_shared() {
    let content = planes(&[0, 3, 1, 4].repeat(500));
    let mut frame = frame_header(content.len() as u64);
    for (i, byte) in content.iter().enumerate() {
        frame.extend(block_header(0, 1, i + 1 == content.len()));
        frame.push(*byte);
    }
    let mut draft = Draft { n_genes: 9, bounds: vec![0], shared: true, ..Draft::default() };
    let counts = raw_frame(&planes(&[1; 2000]));
    for n in 0..100 {
        let frames = [frame.clone(), counts.clone(), Vec::new(), Vec::new()];
        draft.chunks.push(Piece { cells: 500 * n..500 * (n + 1), nonzeros: 2000 * n..2000 * (n + 1), frames });
        draft.bounds.extend((1..=500).map(|cell| 2000 * n + 4 * cell));
    }
    let bytes = draft.write();
    let decoder = Decoder::new().unwrap();
    let mut csr = Csr::<i32>::new();
    decoder.decode(&Tile::open(&bytes).unwrap(), &mut csr).unwrap();
    assert_eq!(csr.indices(), [0, 3, 4, 8].repeat(50_000));
}

/// The last chunk's frames decode for nobody who asks for cells, but the tile as a whole is unsound.
#[test]
fn frames_of_chunks_without_cells_are_decoded_with_the_whole() {
    let mut wrong = blocks(1);
    wrong[4] |= 4; // a checksum, which is not that of no bytes
    wrong.extend([1, 2, 3, 4]);
    let bytes = tile(3, 1, &wrong);
    let decoder = Decoder::new().unwrap();
    let tile = Tile::open(&bytes).unwrap();
    let mut csr = Csr::<i32>::new();
    let error = decoder.decode(&tile, &mut csr).unwrap_err();
    assert_eq!((error.kind(), error.part()), (ErrorKind::Frame(FrameFault::Corrupt), Part::Chunk(3, Stream::Gaps)));
    decoder.decode_cells(&tile, 0..3, &mut csr).unwrap();
    assert_eq!(csr.nnz(), 9);
    assert_eq!(verify(&bytes, &decoder).len(), 1);
}

#[test]
fn steps_of_a_trace_are_limited() {
    let bytes = tile(1, 1, &blocks(10_000));
    assert!(trace(&bytes, None, &Limits::default()).fault.is_none());
    let trace = trace(&bytes, None, &Limits::default().with_output_bytes(1 << 20));
    let fault = trace.fault.unwrap();
    assert!(matches!(fault.kind(), ErrorKind::LimitExceeded { .. }), "{fault}");
    assert!(trace.steps.len() < 10_000);
}
