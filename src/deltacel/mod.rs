//! DELTACEL: tiles of single-cell count matrices, and datasets of them.

mod chunk;
mod csr;
mod header;
mod tile;

pub use chunk::Chunk;
pub use csr::{Count, Csr, CsrView};
pub use header::Header;
pub use tile::Tile;
