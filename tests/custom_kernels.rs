//! Rows of kernels that a user supplies: they are used, and where they lie nothing worse than wrong values comes of it.
#![cfg(all(feature = "encode", target_endian = "little"))]

#[allow(dead_code, unused_imports)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;

use std::sync::atomic::{AtomicUsize, Ordering};

use tilekern::deltacel::{Csr, Decoder, Tile, verify};
use tilekern::kernels::{CountsSeen, GapsSeen, Kernels, Level, Store, scalar};

fn scalar_row() -> Kernels {
    Kernels::at(Level::Scalar).unwrap()
}

#[test]
fn a_row_of_ones_own_is_used() {
    static GAPS: AtomicUsize = AtomicUsize::new(0);
    static COUNTS: AtomicUsize = AtomicUsize::new(0);
    static ADDED: AtomicUsize = AtomicUsize::new(0);
    fn gaps(lo: &[u8], hi: &[u8], bounds: &[i64], out: &mut [i32], store: Store) -> GapsSeen {
        GAPS.fetch_add(out.len(), Ordering::Relaxed);
        scalar::scan::gaps(lo, hi, bounds, out, store)
    }
    fn counts(lo: &[u8], hi: &[u8], out: &mut [u16], store: Store) -> CountsSeen {
        COUNTS.fetch_add(out.len(), Ordering::Relaxed);
        scalar::planes::counts_u16(lo, hi, out, store)
    }
    fn add(out: &mut [i32], delta: i32) {
        ADDED.fetch_add(out.len(), Ordering::Relaxed);
        scalar::patch::add(out, delta);
    }
    let kernels = Kernels::custom("mine", scalar_row()).gaps(gaps).counts_u16(counts).add(add).build();
    let own = Decoder::builder().kernels(kernels).threads(3).build().unwrap();
    let plain = Decoder::builder().kernels(scalar_row()).threads(1).build().unwrap();
    assert_eq!(own.kernels().name(), "mine");
    let (mut nnz, mut decoded) = (0, 0);
    for bytes in bodies::seeds::tiles() {
        let tile = Tile::open(&bytes).unwrap();
        let (mut found, mut expected) = (Csr::<i32>::new(), Csr::<i32>::new());
        own.decode(&tile, &mut found).unwrap();
        plain.decode(&tile, &mut expected).unwrap();
        assert_eq!(found, expected);
        nnz += found.nnz();
        // Where counts do not fit, the chunks before are decoded still.
        let short = own.decode(&tile, &mut Csr::<u16>::new()).is_ok();
        assert_eq!(short, expected.values().iter().all(|&count| count <= 65_535));
        decoded += if short { found.nnz() } else { 0 };
    }
    assert!(GAPS.load(Ordering::Relaxed) >= nnz && nnz > 0);
    assert!(COUNTS.load(Ordering::Relaxed) >= decoded && decoded > 0);
    assert!(ADDED.load(Ordering::Relaxed) > 0, "no tile with an exception among the gaps");
}

/// Any value that an operation can write, so as to lead what follows astray.
const ASTRAY: [i32; 6] = [-1, i32::MIN, i32::MAX, 0, 1, 0x7FFF_0000];

fn wrong_gaps<const LAST: u64, const REPEATED: bool>(
    _: &[u8],
    _: &[u8],
    _: &[i64],
    out: &mut [i32],
    _: Store,
) -> GapsSeen {
    for (i, out) in out.iter_mut().enumerate() {
        *out = ASTRAY[i % ASTRAY.len()];
    }
    GapsSeen { last: LAST, repeated: REPEATED }
}

fn wrong_counts<const ZERO: bool>(_: &[u8], _: &[u8], out: &mut [i32], _: Store) -> CountsSeen {
    out.fill(-7);
    CountsSeen { zero: ZERO }
}

fn wrong_add(out: &mut [i32], _: i32) {
    out.reverse();
    if let Some(first) = out.first_mut() {
        *first = i32::MIN;
    }
}

#[test]
fn a_lying_row_does_no_harm() {
    let rows = [
        Kernels::custom("unmoved", scalar_row()).gaps(|_, _, _, _, _| GapsSeen::default()),
        Kernels::custom("small", scalar_row()).gaps(wrong_gaps::<0, false>),
        Kernels::custom("large", scalar_row()).gaps(wrong_gaps::<{ u64::MAX }, false>),
        Kernels::custom("repeated", scalar_row()).gaps(wrong_gaps::<0, true>),
        Kernels::custom("counts", scalar_row()).counts_i32(wrong_counts::<false>),
        Kernels::custom("zeros", scalar_row()).counts_i32(wrong_counts::<true>),
        Kernels::custom("add", scalar_row()).add(wrong_add),
        Kernels::custom("all", scalar_row())
            .gaps(wrong_gaps::<0, false>)
            .counts_i32(wrong_counts::<false>)
            .add(wrong_add),
    ];
    for row in rows.map(|row| row.build()) {
        let (mut refused, mut differs) = (false, false);
        for threads in [1, 3] {
            let decoder = Decoder::builder().kernels(row).threads(threads).build().unwrap();
            for bytes in bodies::seeds::tiles() {
                let tile = Tile::open(&bytes).unwrap();
                let (mut found, mut expected) = (Csr::<i32>::new(), Csr::<i32>::new());
                Decoder::builder().kernels(scalar_row()).build().unwrap().decode(&tile, &mut expected).unwrap();
                match decoder.decode(&tile, &mut found) {
                    Ok(_) => {
                        assert_eq!(found.indptr(), expected.indptr());
                        assert_eq!((found.nnz(), found.values().len()), (expected.nnz(), expected.nnz()));
                        differs |= found != expected;
                    }
                    Err(_) => refused = true,
                }
                let n = tile.n_cells();
                _ = decoder.decode_cells(&tile, n / 3..n - n / 4, &mut found);
                _ = decoder.decode_indices(&tile, 0..n, &mut found);
                _ = verify(&bytes, &decoder);
            }
        }
        assert!(refused || differs, "{row:?} is no lie");
    }
}
