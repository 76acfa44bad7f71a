//! The value encodings of Parquet, decoded with the kernels.
//!
//! A page reader has taken levels and compression off a page. What is left is a section of values: their bytes, how many
//! there are, their type, and how they are encoded. [`encoding`] has a decoder for each encoding, which gives the values in
//! batches; [`Decoder`] is any of them, chosen at run time; [`Payload`] is a section as a whole, with its [`trace`](Payload::trace).
//!
//! ```
//! use tilekern::parquet::encoding::delta_binary_packed::DeltaBinaryPacked;
//! use tilekern::parquet::{Input, Options};
//!
//! // Blocks of 128 values in 4 miniblocks, 5 values, the first 7; differences of 2 and more, in no bits.
//! let section = [0x80, 0x01, 0x04, 0x05, 0x0e, 0x04, 0x00, 0x00, 0x00, 0x00];
//! let mut decoder = DeltaBinaryPacked::<i64>::new(Input::new(&section), 5, &Options::new()?)?;
//! decoder.skip(1)?;
//! let mut values = [0; 4];
//! decoder.decode(&mut values)?;
//! assert_eq!(values, [9, 11, 13, 15]);
//! decoder.finish()?; // nothing follows
//! # Ok::<(), tilekern::Error>(())
//! ```

#[cfg(target_endian = "big")]
compile_error!(
    "values of Parquet are little-endian and are used as they are: the feature `parquet` is not for big-endian hosts"
);

mod byte_arrays;
mod decoder;
pub mod encoding;
#[cfg(feature = "parquet-files")]
pub mod file;
mod options;
mod payload;
mod trace;

pub use crate::input::Input;
pub use byte_arrays::ByteArrays;
pub use decoder::Decoder;
pub use encoding::Scratch;
pub use encoding::dictionary::Dictionary;
pub use options::{Leniency, Options};
pub use payload::{Decoded, Encoding, Payload, PhysicalType, Values, count, type_length};
