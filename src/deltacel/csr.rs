//! Count matrices in CSR form: cells are rows, genes are columns.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::buffer::{Buffer, Pages};
use crate::kernels::{CountsSeen, Kernels, Store};

/// A type that counts can be decoded to: `i32` (every count), `f32` (exact up to 2^24) or `u16` (up to 65535).
pub trait Count: Pod + Debug + PartialEq + Send + Sync + sealed::Sealed {
    /// Its name: `i32`, `f32` or `u16`.
    const NAME: &'static str;
    /// The largest count up to which every count is exact.
    const EXACT_TO: u32;
}

/// What the decoder needs of a [`Count`].
pub(crate) mod sealed {
    use super::{CountsSeen, Kernels, Store};

    pub trait Sealed: Sized {
        fn merge(kernels: Kernels, lo: &[u8], hi: &[u8], out: &mut [Self], store: Store) -> CountsSeen;
        /// A count above 65535, if the type holds it.
        fn from_exception(count: u32) -> Option<Self>;
    }
}

impl Count for i32 {
    const NAME: &'static str = "i32";
    const EXACT_TO: u32 = i32::MAX as u32;
}

impl sealed::Sealed for i32 {
    fn merge(kernels: Kernels, lo: &[u8], hi: &[u8], out: &mut [i32], store: Store) -> CountsSeen {
        kernels.counts_i32(lo, hi, out, store)
    }

    fn from_exception(count: u32) -> Option<i32> {
        i32::try_from(count).ok()
    }
}

impl Count for f32 {
    const NAME: &'static str = "f32";
    const EXACT_TO: u32 = 1 << 24;
}

impl sealed::Sealed for f32 {
    fn merge(kernels: Kernels, lo: &[u8], hi: &[u8], out: &mut [f32], store: Store) -> CountsSeen {
        kernels.counts_f32(lo, hi, out, store)
    }

    fn from_exception(count: u32) -> Option<f32> {
        Some(count as f32)
    }
}

impl Count for u16 {
    const NAME: &'static str = "u16";
    const EXACT_TO: u32 = u16::MAX as u32;
}

impl sealed::Sealed for u16 {
    fn merge(kernels: Kernels, lo: &[u8], hi: &[u8], out: &mut [u16], store: Store) -> CountsSeen {
        kernels.counts_u16(lo, hi, out, store)
    }

    fn from_exception(count: u32) -> Option<u16> {
        u16::try_from(count).ok()
    }
}

/// A count matrix that owns its arrays. Hand the same one to every decode: it keeps its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T: Count> {
    pub(crate) n_genes: u32,
    pub(crate) indptr: Buffer<i64>,
    pub(crate) indices: Buffer<i32>,
    pub(crate) values: Buffer<T>,
    /// Whether the counts were decoded.
    pub(crate) counted: bool,
}

impl<T: Count> Csr<T> {
    /// An empty matrix, to be filled by a decode.
    pub fn new() -> Csr<T> {
        Csr::with_pages(Pages::default())
    }

    /// An empty matrix whose arrays will lie on such pages.
    pub fn with_pages(pages: Pages) -> Csr<T> {
        Csr {
            n_genes: 0,
            indptr: Buffer::with_pages(pages),
            indices: Buffer::with_pages(pages),
            values: Buffer::with_pages(pages),
            counted: false,
        }
    }

    /// Rows.
    pub fn n_cells(&self) -> usize {
        self.indptr.len().saturating_sub(1)
    }

    /// Columns.
    pub fn n_genes(&self) -> u32 {
        self.n_genes
    }

    /// Nonzeros.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Cell `c` is the nonzeros `indptr[c] .. indptr[c + 1]`; `n_cells + 1` entries (none before the first decode).
    pub fn indptr(&self) -> &[i64] {
        &self.indptr
    }

    /// The gene of each nonzero; strictly increasing within a cell.
    pub fn indices(&self) -> &[i32] {
        &self.indices
    }

    /// The count of each nonzero; none after a decode of indices alone.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Takes the arrays: indptr, indices, values.
    pub fn into_parts(self) -> (Buffer<i64>, Buffer<i32>, Buffer<T>) {
        (self.indptr, self.indices, self.values)
    }
}

impl<T: Count> Default for Csr<T> {
    fn default() -> Csr<T> {
        Csr::new()
    }
}

impl Csr<i32> {
    /// A view for the encoder.
    pub fn view(&self) -> CsrView<'_> {
        CsrView { n_genes: self.n_genes, indptr: &self.indptr, indices: &self.indices, values: &self.values }
    }
}

/// A borrowed count matrix, as the encoder takes it.
#[derive(Clone, Copy, Debug)]
pub struct CsrView<'a> {
    /// Columns.
    pub n_genes: u32,
    /// Cell `c` is the nonzeros `indptr[c] - indptr[0] .. indptr[c + 1] - indptr[0]`; `n_cells + 1` entries.
    pub indptr: &'a [i64],
    /// The gene of each nonzero; strictly increasing within a cell.
    pub indices: &'a [i32],
    /// The count of each nonzero; at least 1.
    pub values: &'a [i32],
}
