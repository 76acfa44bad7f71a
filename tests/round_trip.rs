//! Random matrices through the encoder and every decoder: each level and number of threads, each type, ranges of cells.
#![cfg(all(feature = "encode", target_endian = "little"))]

mod support;

use std::sync::LazyLock;

use proptest::prelude::*;
use support::decoders;
use tilekern::deltacel::{
    Chunks, Count, Csr, CsrMut, CsrView, Decoded, Decoder, Encoder, ExceptionPolicy, Profile, Tile,
};

static DECODERS: LazyLock<Vec<Decoder>> = LazyLock::new(|| decoders().collect());

#[derive(Clone, Debug)]
struct Matrix {
    n_genes: u32,
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<i32>,
}

fn matrix() -> impl Strategy<Value = Matrix> {
    let n_genes = prop_oneof![Just(1), 1u32..300, 60_000u32..1 << 20, Just(1 << 31)];
    n_genes.prop_flat_map(|n_genes| {
        let last = i32::try_from(n_genes - 1).unwrap();
        let gene = prop_oneof![6 => 0..=last.min(2000), 1 => 0..=last];
        let count = prop_oneof![6 => 1..4, 2 => 1..300, 1 => 65_530..65_540, 1 => (1 << 24) - 2..(1 << 24) + 3, 1 => 1..=i32::MAX];
        let long = prop::collection::btree_map(gene.clone(), count.clone(), 0..300usize);
        let cell = prop_oneof![1 => long, 4 => prop::collection::btree_map(gene, count, 0..9usize)];
        prop::collection::vec(cell, 0..24).prop_map(move |cells| {
            let mut matrix = Matrix { n_genes, indptr: vec![0], indices: Vec::new(), values: Vec::new() };
            for cell in cells {
                let (genes, counts): (Vec<_>, Vec<_>) = cell.into_iter().unzip();
                matrix.indices.extend(genes);
                matrix.values.extend(counts);
                matrix.indptr.push(i64::try_from(matrix.indices.len()).unwrap());
            }
            matrix
        })
    })
}

/// Checks what a decoder gives of some cells as counts of type `T`, where `exact` gives a count or says that `T` cannot
/// hold it.
fn cells_as<T: Count>(
    decoder: &Decoder,
    tile: &Tile<'_>,
    matrix: &Matrix,
    cells: std::ops::Range<usize>,
    exact: impl Fn(i32) -> Option<T>,
) {
    let bounds = &matrix.indptr[cells.start..=cells.end];
    let nonzeros = usize::try_from(bounds[0]).unwrap()..usize::try_from(bounds[bounds.len() - 1]).unwrap();
    let indptr: Vec<i64> = bounds.iter().map(|bound| bound - bounds[0]).collect();
    let indices = &matrix.indices[nonzeros.clone()];
    let counts = &matrix.values[nonzeros.clone()];
    let expected: Option<Vec<T>> = counts.iter().map(|&count| exact(count)).collect();

    // Whatever the matrix held before must not show.
    let mut csr = Csr::<T>::new();
    decoder.decode_indices(tile, 0..tile.n_cells(), &mut csr).unwrap();
    assert_eq!((csr.indices(), csr.values().len()), (&matrix.indices[..], 0));
    let inexact = counts.iter().filter(|&&count| count.unsigned_abs() > T::EXACT_TO).count();
    match (decoder.decode_cells(tile, cells.clone(), &mut csr), &expected) {
        (Ok(decoded), Some(expected)) => {
            let Decoded { cells: n_cells, nnz, inexact: found, .. } = decoded;
            assert_eq!((n_cells, nnz, found), (cells.len(), counts.len(), inexact));
            assert_eq!((csr.indptr(), csr.indices(), csr.values()), (&indptr[..], indices, &expected[..]));
            assert_eq!(csr.n_genes(), matrix.n_genes);
        }
        (Err(error), None) => assert_eq!(error.kind().name(), "out_of_range"),
        (result, expected) => panic!("{result:?}, expected {expected:?}"),
    }

    let mut own = (vec![-1; indptr.len()], vec![-1; indices.len()]);
    let out = CsrMut::<T> { indptr: &mut own.0, indices: &mut own.1, values: None };
    decoder.decode_into(tile, cells, out).unwrap();
    assert_eq!((&own.0, &own.1[..]), (&indptr, indices));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_decoder_gives_the_matrix_back(
        matrix in matrix(),
        profile in prop::sample::select(vec![Profile::Plain(1), Profile::Quick, Profile::Balanced]),
        chunks in 1u32..9,
        ends in any::<[prop::sample::Index; 2]>(),
    ) {
        let builder = Encoder::builder().profile(profile).chunks(Chunks::Count(chunks)).threads(1);
        let mut encoder = builder.exceptions(ExceptionPolicy::Any).build().unwrap();
        let Matrix { n_genes, indptr, indices, values } = &matrix;
        let mut bytes = Vec::new();
        encoder.encode(&CsrView { n_genes: *n_genes, indptr, indices, values }, &mut bytes).unwrap();
        let tile = Tile::open(&bytes).unwrap();
        let n = indptr.len() - 1;
        let ends = ends.map(|end| end.index(n + 1));
        let range = ends[0].min(ends[1])..ends[0].max(ends[1]);
        for decoder in DECODERS.iter() {
            for cells in [0..n, range.clone()] {
                cells_as::<i32>(decoder, &tile, &matrix, cells.clone(), Some);
                cells_as::<f32>(decoder, &tile, &matrix, cells.clone(), |count| Some(count as f32));
                cells_as::<u16>(decoder, &tile, &matrix, cells, |count| u16::try_from(count).ok());
            }
        }
    }
}
