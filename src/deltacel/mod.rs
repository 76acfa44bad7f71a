//! DELTACEL: tiles of single-cell count matrices, and datasets of them.

mod chunk;
mod csr;
#[cfg(feature = "encode")]
mod encode;
mod header;
#[cfg(feature = "encode")]
mod profile;
mod tile;

pub use chunk::Chunk;
pub use csr::{Count, Csr, CsrView};
#[cfg(feature = "encode")]
pub use encode::{Chunks, EncodeReport, Encoder, EncoderBuilder, ExceptionPolicy};
pub use header::Header;
#[cfg(feature = "encode")]
pub use profile::Profile;
pub use tile::Tile;
