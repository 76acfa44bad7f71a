//! tilekern decodes compact integer formats with kernels chosen at run time.

mod buffer;
pub mod deltacel;
mod error;
mod input;
mod limits;
mod trace;
mod zstd;

pub use buffer::{Buffer, Pages};
pub use error::{Error, ErrorKind, FrameFault, Limit, Part, Stream, SyntaxFault, Unsupported};
pub use limits::Limits;
pub use tilekern_kernels as kernels;
pub use trace::{Step, Trace};
#[cfg(feature = "simulate")]
pub mod simulate;
