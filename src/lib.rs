//! tilekern decodes compact integer formats with kernels chosen at run time.

mod buffer;
pub mod deltacel;
mod error;
mod input;
mod limits;
#[cfg(feature = "dataset")]
mod mmap;
#[cfg(feature = "dataset")]
mod source;
mod trace;
mod zstd;

pub use buffer::{Buffer, Pages};
pub use error::{Error, ErrorKind, FrameFault, Limit, Part, Stream, SyntaxFault, Unsupported};
pub use limits::Limits;
#[cfg(feature = "dataset")]
pub use mmap::MappedDirectory;
#[cfg(feature = "dataset")]
pub use source::{Directory, Object, Source};
pub use tilekern_kernels as kernels;
pub use trace::{Step, Trace};
