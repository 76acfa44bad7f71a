//! DELTACEL: tiles of single-cell count matrices, and datasets of them.

mod chunk;
mod csr;
mod decode;
mod exceptions;
mod header;
mod tile;
mod trace;
mod verify;

pub use chunk::Chunk;
pub use csr::{Count, Csr, CsrView};
pub use decode::{CsrMut, Decoded, Decoder, DecoderBuilder, StoreChoice};
pub use header::Header;
pub use tile::Tile;
pub use trace::trace;
pub use verify::verify;
