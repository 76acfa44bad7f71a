//! tilekern decodes compact integer formats with kernels chosen at run time.
//!
//! The formats: [`deltacel`], tiles and datasets of single-cell count matrices; `parquet`, value encodings and files; `mlt`,
//! MapLibre Tiles. The last two come with the features of these names.
//!
//! ```
//! # fn main() -> Result<(), tilekern::Error> {
//! # #[cfg(feature = "encode")] {
//! use tilekern::deltacel::{Csr, CsrView, Decoder, Encoder, Tile};
//!
//! // Three cells of five genes, the second without counts.
//! let counts = CsrView { n_genes: 5, indptr: &[0, 3, 3, 4], indices: &[0, 2, 4, 1], values: &[1, 2, 3, 300] };
//! let mut bytes = Vec::new();
//! Encoder::builder().build()?.encode(&counts, &mut bytes)?;
//!
//! let tile = Tile::open(&bytes)?; // checks header, CRC, bounds, the outline of every frame
//! let decoder = Decoder::new()?; // the best kernels of this CPU; keep it
//! let mut csr = Csr::<i32>::new(); // keeps its memory; hand it to every decode
//! decoder.decode(&tile, &mut csr)?;
//! assert_eq!(csr.indices(), [0, 2, 4, 1]);
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! # Untrusted input
//!
//! Any bytes end in the right values or in an [`Error`] that names the part and its absolute offset. Memory is bounded
//! by the input's size and by [`Limits`]; nothing is reserved from a declared count alone.
//!
//! # Features
//!
//! | feature | default | brings |
//! |---|---|---|
//! | `parallel` | yes | threads over the chunks of a DELTACEL tile |
//! | `encode` | yes | the writer of tiles |
//! | `dataset` | yes | directories of tiles: rows, some genes, several as one, shuffled mini-batches |
//! | `simulate` | no | realistic counts from a seed |
//! | `arrow` | no | results as Arrow arrays: DELTACEL tiles, with columns of the table of cells; row groups of Parquet files; layers of map tiles |
//! | `parquet` | no | the value encodings of Parquet |
//! | `parquet-files` | no | Parquet files: footers, pages, column chunks |
//! | `mlt` | no | MapLibre Tiles, versions 1 and 2; with `encode`, a writer of them |
//! | `obs` | no | the tables of cells and genes of datasets |

// Numbers from outside are converted with a check, never cut.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod buffer;
pub mod deltacel;
mod error;
#[cfg(any(feature = "obs", feature = "parquet-files"))]
mod guard;
mod input;
mod limits;
#[cfg(feature = "mlt")]
pub mod mlt;
#[cfg(any(feature = "dataset", feature = "parquet-files"))]
mod mmap;
#[cfg(all(feature = "encode", any(feature = "parquet", feature = "mlt")))]
mod output;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(any(feature = "obs", feature = "parquet-files"))]
mod parquet_footer;
#[cfg(feature = "simulate")]
pub mod simulate;
#[cfg(feature = "dataset")]
mod source;
#[cfg(any(feature = "obs", feature = "parquet-files"))]
mod thrift;
mod trace;
mod zstd;

/// The arrays of tables of cells and of results in Arrow's format, in the version that they are made with.
#[cfg(any(feature = "arrow", feature = "obs"))]
pub use arrow_array;
pub use buffer::{Buffer, Pages};
pub use error::{
    CompressionFault, EncodingFault, Error, ErrorKind, FrameFault, Limit, PagePlace, Part, Stream, SyntaxFault,
    Unsupported,
};
#[cfg(any(feature = "obs", feature = "parquet-files"))]
pub use guard::{guarded, hush_guarded_panics};
pub use limits::Limits;
#[cfg(feature = "dataset")]
pub use mmap::MappedDirectory;
#[cfg(any(feature = "dataset", feature = "parquet-files"))]
pub use mmap::MappedFile;
#[cfg(feature = "dataset")]
pub use source::{Directory, Object, Source};
pub use tilekern_kernels as kernels;
pub use trace::{Step, Trace};
