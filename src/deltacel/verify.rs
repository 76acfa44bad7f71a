//! Every fault of a tile, not only the first.

use super::decode::Decoder;
use super::tile::{Frames, STREAMS, Tile};
use crate::error::Error;

/// Checks all of a tile and returns every fault that can be told from the others, in the order of the object: of the
/// header, the CRC, the indptr and the chunk table the first each; then of each chunk the outline of each stream, and
/// the first fault among its genes and among its counts. An empty list means that the tile is sound.
///
/// A fault in the header, the indptr or the table hides what lies behind it, since nothing says where that would be.
pub fn verify(bytes: &[u8], decoder: &Decoder) -> Vec<Error> {
    let mut faults = Vec::new();
    let tile = match Tile::read_header(bytes) {
        Ok(tile) => tile,
        Err(error) => return vec![error],
    };
    faults.extend(tile.check_crc().err());
    if let Err(error) = tile.check_sizes() {
        faults.push(error);
        return faults;
    }
    let before = faults.len();
    faults.extend(tile.check_indptr().err());
    if faults.len() == before {
        faults.extend(tile.check_chunks().err());
    }
    if faults.len() > before {
        return faults;
    }
    let mut frames = Frames::default();
    for n in 0..tile.n_chunks() {
        let chunk = tile.chunk(n);
        let before = faults.len();
        let outline = |stream| tile.check_stream(n, &chunk, stream, &mut frames).err();
        faults.extend(STREAMS.into_iter().filter_map(outline));
        if faults.len() == before {
            faults.extend(decoder.faults(&tile, n));
        }
    }
    faults
}
