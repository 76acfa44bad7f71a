//! Matrices in.

use std::cell::RefCell;

use arbitrary::{Result, Unstructured};
use tilekern::deltacel::{Chunks, Csr, CsrView, Decoder, Encoder, ExceptionPolicy, Profile, Tile, verify};

use super::oracle;

const PROFILES: [Profile; 6] =
    [Profile::Plain(1), Profile::Quick, Profile::Fast, Profile::Balanced, Profile::Small, Profile::Plain(22)];
const CHUNKS: [Chunks; 4] = [Chunks::Auto, Chunks::Count(2), Chunks::Count(5), Chunks::Count(u32::MAX)];

/// A matrix as a caller may hand it over.
#[derive(Debug)]
struct Matrix {
    n_genes: u32,
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<i32>,
}

impl Matrix {
    fn any(u: &mut Unstructured<'_>) -> Result<Matrix> {
        let n_genes = match u.int_in_range(0..=5)? {
            0 => u.arbitrary()?,
            1 => u.int_in_range(1..=40)?,
            2 => 1 << 31,
            3 => 200_000,
            _ => 3_000,
        };
        let first = if u.ratio(1, 8)? { u.arbitrary()? } else { 0 };
        let mut matrix = Matrix { n_genes, indptr: vec![first], indices: Vec::new(), values: Vec::new() };
        while !u.is_empty() && matrix.indptr.len() < 40 {
            let mut gene = -1i32;
            for _ in 0..u.arbitrary::<u8>()? % 64 {
                let step = match u.int_in_range(0..=31)? {
                    0 => u.int_in_range(65_530..=65_540)?,
                    1 => u.arbitrary()?,
                    step => step - 1,
                };
                gene = gene.wrapping_add(step);
                matrix.indices.push(gene);
                matrix.values.push(match u.int_in_range(0..=31)? {
                    0 => u.int_in_range(65_530..=65_540)?,
                    1 => u.arbitrary()?,
                    count => count - 1,
                });
            }
            matrix.indptr.push(first.wrapping_add(matrix.indices.len() as i64));
        }
        match u.int_in_range(0..=15)? {
            0 => {
                let at = u.choose_index(matrix.indptr.len())?;
                matrix.indptr[at] = u.arbitrary()?;
            }
            1 => drop(matrix.values.pop()),
            2 => drop(matrix.indptr.pop()),
            _ => {}
        }
        Ok(matrix)
    }

    fn view(&self) -> CsrView<'_> {
        CsrView { n_genes: self.n_genes, indptr: &self.indptr, indices: &self.indices, values: &self.values }
    }

    /// The bounds from 0 on, if a tile can hold the matrix.
    fn sound(&self) -> Option<Vec<i64>> {
        let first = *self.indptr.first()?;
        let bounds: Vec<i64> = self.indptr.iter().map(|bound| bound.checked_sub(first)).collect::<Option<_>>()?;
        let nnz = i64::try_from(self.indices.len()).ok()?;
        let shape = (1..=1 << 31).contains(&self.n_genes)
            && self.values.len() == self.indices.len()
            && bounds.is_sorted()
            && bounds.last() == Some(&nnz);
        let rows = shape
            && bounds.windows(2).all(|row| {
                let genes = &self.indices[usize::try_from(row[0]).unwrap_or(0)..usize::try_from(row[1]).unwrap_or(0)];
                genes.is_sorted_by(|a, b| a < b)
            });
        let values = self.indices.iter().all(|&gene| gene >= 0 && i64::from(gene) < i64::from(self.n_genes))
            && self.values.iter().all(|&count| count > 0);
        (rows && values).then_some(bounds)
    }
}

/// What is kept from one matrix to the next, so that leftovers would show.
struct Kept {
    encoders: Vec<Encoder>,
    decoder: Decoder,
    tile: Vec<u8>,
    csr: Csr<i32>,
}

impl Kept {
    fn new() -> Kept {
        let encoder = |profile| {
            CHUNKS.map(|chunks| {
                let policy = ExceptionPolicy::Any;
                let builder = Encoder::builder().profile(profile).chunks(chunks).exceptions(policy).threads(1);
                builder.build().expect("sound settings")
            })
        };
        Kept {
            encoders: PROFILES.into_iter().flat_map(encoder).collect(),
            decoder: Decoder::builder().threads(1).build().expect("the kernels that the environment names"),
            tile: Vec::new(),
            csr: Csr::new(),
        }
    }
}

/// Any matrix, with any profile and cut: refused if a tile cannot hold it, else a sound tile that gives it back, to the
/// engine and to a reader that follows the document.
pub fn encode_round_trip(data: &[u8]) {
    thread_local!(static KEPT: RefCell<Kept> = RefCell::new(Kept::new()));
    let mut u = Unstructured::new(data);
    let Ok(settings) = u.choose_index(PROFILES.len() * CHUNKS.len()) else { return };
    let Ok(matrix) = Matrix::any(&mut u) else { return };
    KEPT.with_borrow_mut(|kept| {
        let Kept { encoders, decoder, tile, csr } = kept;
        match (encoders[settings].encode(&matrix.view(), tile), matrix.sound()) {
            (Err(_), None) => assert!(tile.is_empty(), "an error leaves a tile"),
            (Ok(report), Some(bounds)) => {
                assert_eq!(report.total_bytes, tile.len() as u64);
                let opened = Tile::open(tile).expect("a tile of ours");
                decoder.decode(&opened, csr).expect("a tile of ours");
                assert_eq!((csr.n_genes(), csr.indptr()), (matrix.n_genes, &bounds[..]));
                assert_eq!((csr.indices(), csr.values()), (&matrix.indices[..], &matrix.values[..]));
                assert!(verify(tile, decoder).is_empty());
                let read = oracle::read(tile).expect("a tile of ours");
                assert_eq!((read.indptr, read.indices, read.counts), (bounds, matrix.indices, matrix.values));
            }
            (result, sound) => panic!("{result:?}, but sound is {}: {matrix:?}", sound.is_some()),
        }
    });
}
