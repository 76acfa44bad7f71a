//! The walk over zstd frames.

use tilekern::deltacel::{Csr, Decoder, Tile};
use tilekern::{ErrorKind, FrameFault, Part, Stream};

use super::build::{Draft, Piece, rle_frame};
use super::oracle;

/// Frames of more content are left to the tests.
const MAX_CONTENT: u64 = 1 << 20;

/// Any bytes as the gaps stream of a tile that expects just the size which they state.
///
/// libzstd decodes them in one shot to that size, as one frame without dictionary, if and only if the tile opens and its
/// frame decodes. So the walk neither refuses what libzstd takes nor lets pass what libzstd cannot fill.
pub fn frame(data: &[u8]) {
    thread_local!(static DECODER: Decoder = Decoder::builder()
        .threads(1)
        .build()
        .expect("the kernels that the environment names"));
    // Where no size is stated, that alone must be refused.
    let stated = oracle::stated(data).filter(|size| *size <= MAX_CONTENT);
    let nonzeros = stated.unwrap_or(0) / 2;
    let expected = oracle::frame(data, |size| size == 2 * nonzeros);
    let tile = tile_with(data, nonzeros);
    let result = Tile::open(&tile).and_then(|tile| {
        let cells = 0..tile.n_cells();
        DECODER.with(|decoder| decoder.decode_indices(&tile, cells, &mut Csr::<i32>::new()))
    });
    let fault = match &result {
        // The frame is sound, whatever the gaps in it are.
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::RepeatedGene => None,
            ErrorKind::OutOfRange { .. } if error.part() == Part::Chunk(0, Stream::Gaps) => None,
            ErrorKind::Frame(fault) => Some(fault),
            _ if data.is_empty() => Some(FrameFault::Truncated), // a stream of no bytes is a fault of the table
            _ => panic!("neither frame nor gaps: {error}"),
        },
    };
    if matches!(fault, Some(FrameFault::BlockSize { .. })) {
        return; // the format bounds every block, but libzstd does not look where one byte is repeated
    }
    let what = expected.as_ref().map(Vec::len);
    assert_eq!(expected.is_some(), fault.is_none(), "libzstd gives {what:?} bytes, the tile {result:?}");
}

/// A tile of one cell with such a stream of gaps.
fn tile_with(gaps: &[u8], nonzeros: u64) -> Vec<u8> {
    // Counts of 257 each, in blocks as large as they may be.
    let blocks = (2 * nonzeros).div_ceil(128 << 10).max(1);
    let runs: Vec<_> = (0..blocks).map(|i| (1, (2 * nonzeros - i * (128 << 10)).min(128 << 10))).collect();
    let frames = [gaps.to_vec(), rle_frame(2 * nonzeros, &runs), Vec::new(), Vec::new()];
    let piece = Piece { cells: 0..1, nonzeros: 0..nonzeros, frames };
    Draft { n_genes: 1 << 31, bounds: vec![0, nonzeros], chunks: vec![piece], shared: false }.write()
}
