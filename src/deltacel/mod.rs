//! DELTACEL: tiles of single-cell count matrices, and datasets of them.

mod csr;
#[cfg(feature = "encode")]
mod encode;
#[cfg(feature = "encode")]
mod profile;

pub use csr::{Count, Csr, CsrView};
#[cfg(feature = "encode")]
pub use encode::{Chunks, EncodeReport, Encoder, EncoderBuilder, ExceptionPolicy};
#[cfg(feature = "encode")]
pub use profile::Profile;
