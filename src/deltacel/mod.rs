//! DELTACEL: tiles of single-cell count matrices, and datasets of them.

#[cfg(feature = "arrow")]
mod arrow;
mod chunk;
mod csr;
#[cfg(feature = "dataset")]
pub mod dataset;
mod decode;
#[cfg(feature = "encode")]
mod encode;
mod exceptions;
mod header;
#[cfg(feature = "encode")]
mod profile;
mod tile;
mod trace;
mod verify;

#[cfg(feature = "arrow")]
pub use arrow::ArrowCount;
pub use chunk::Chunk;
pub use csr::{Count, Csr, CsrView};
pub use decode::{CsrMut, Decoded, Decoder, DecoderBuilder, StoreChoice};
#[cfg(feature = "encode")]
pub use encode::{Chunks, EncodeReport, Encoder, EncoderBuilder, ExceptionPolicy};
pub use header::{Header, MAGIC};
#[cfg(feature = "encode")]
pub use profile::Profile;
pub use tile::{ChunkOutline, Outline, Tile};
pub use trace::trace;
pub use verify::verify;
