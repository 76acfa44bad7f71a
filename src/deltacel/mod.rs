//! DELTACEL: tiles of single-cell count matrices, and datasets of them.

mod csr;

pub use csr::{Count, Csr, CsrView};
