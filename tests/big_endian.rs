//! Tiles are little-endian: a big-endian host refuses them, whatever they hold.

#[allow(dead_code)] // other tests use the rest
#[path = "../fuzz/src/build.rs"]
mod build;

use build::{Draft, Piece, planes, raw_frame};
use tilekern::deltacel::{Csr, Decoder, Tile, trace, verify};
use tilekern::{Error, ErrorKind, Limits, Unsupported};

/// Cell 0 is genes 0, 2 and 4 with counts 1, 2 and 300; cell 1 is empty.
fn tile() -> Vec<u8> {
    let frames = [raw_frame(&planes(&[0, 2, 2])), raw_frame(&planes(&[1, 2, 300])), Vec::new(), Vec::new()];
    let piece = Piece { cells: 0..2, nonzeros: 0..3, frames };
    Draft { n_genes: 5, bounds: vec![0, 3, 3], chunks: vec![piece], ..Draft::default() }.write()
}

#[cfg(target_endian = "big")]
#[test]
fn refused() {
    let decoder = Decoder::new().unwrap();
    for bytes in [tile(), Vec::new(), b"no tile".to_vec()] {
        let refused = |error: &Error| {
            assert_eq!(error.kind(), ErrorKind::Unsupported(Unsupported::BigEndianHost));
            assert_eq!(error.to_string(), "tiles are little-endian; a big-endian host must not load them");
        };
        refused(&Tile::open(&bytes).unwrap_err());
        refused(&Tile::open_without_crc(&bytes).unwrap_err());
        let faults = verify(&bytes, &decoder);
        assert_eq!(faults.len(), 1);
        refused(&faults[0]);
        let trace = trace(&bytes, None, &Limits::default());
        assert!(trace.steps.is_empty());
        refused(trace.fault.as_ref().unwrap());
    }
}

/// The very tile that a big-endian host refuses is sound.
#[cfg(target_endian = "little")]
#[test]
fn accepted() {
    let bytes = tile();
    let decoder = Decoder::new().unwrap();
    let mut csr = Csr::<i32>::new();
    decoder.decode(&Tile::open(&bytes).unwrap(), &mut csr).unwrap();
    assert_eq!((csr.indptr(), csr.indices(), csr.values()), (&[0, 3, 3][..], &[0, 2, 4][..], &[1, 2, 300][..]));
    assert!(verify(&bytes, &decoder).is_empty());
    assert!(trace(&bytes, None, &Limits::default()).fault.is_none());
    let error: Error = Tile::open(b"no tile").unwrap_err();
    assert_ne!(error.kind(), ErrorKind::Unsupported(Unsupported::BigEndianHost));
}
