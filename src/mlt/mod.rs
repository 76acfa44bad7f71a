//! MapLibre Tiles, versions 1 and 2: outlines, columns decoded one by one or all at once, traces.
//!
//! [`Tile::open`] checks the headers and tells what there is; [`Decoder`] gives whole tiles, layers, or single columns, as typed
//! values with validity; [`Geometry`] has vertices under levels of offsets, and each feature as a [`Shape`]. [`encoding`] has
//! the encodings themselves, a file for each, [`trace()`] shows every step with its bytes.
//!
//! ```
//! use tilekern::mlt::{Decoder, Options, Shape, Tile, TileData, Value};
//!
//! // A layer of version 2: two points, and a column of two numbers.
//! let bytes = [20, 2, 1, b'a', 0x16, 2, 0, 8, 4, 2, 4, 6, 2, 1, 6, 1, b'n', 8, 2, 7, 9];
//! let options = Options::new()?;
//! let (mut decoder, mut data) = (Decoder::with_options(options), TileData::new()); // keep both: they grow once
//! decoder.tile(&Tile::open(&bytes, &options)?, &mut data)?;
//!
//! let layer = &data.layers()[0];
//! let shapes: Vec<_> = layer.geometry().shapes().collect();
//! assert!(matches!(shapes[1], Shape::Point([3, 1])));
//! let numbers = layer.property("n").expect("a column");
//! assert_eq!(numbers.iter().collect::<Vec<_>>(), [Value::UInt(7), Value::UInt(9)]);
//! # Ok::<(), tilekern::Error>(())
//! ```

#[cfg(target_endian = "big")]
compile_error!(
    "columns of tiles are little-endian and are used as they are: the feature `mlt` is not for big-endian hosts"
);

#[cfg(feature = "arrow")]
mod arrow;
mod data;
mod decoder;
#[cfg(feature = "encode")]
pub mod encode;
pub mod encoding;
mod fault;
mod geometry;
mod nested;
mod options;
mod outline;
mod stream;
mod tile;
mod trace;
mod triangles;
mod v1;
mod v2;
mod walk;

pub use crate::input::Input;
pub use data::{LayerData, MValueData, MValues, Property, PropertyData, Strings, TileData, Value, Values};
pub use decoder::Decoder;
pub use encoding::Scratch;
pub use fault::MltFault;
pub use geometry::{Geometry, GeometryType, Path, Paths, Polygons, Shape};
pub use nested::{Fields, Nested, NestedData, NestedKind, NestedNode};
pub use options::{Options, Packing};
pub use outline::{DataType, LayerPlace, Outline, StringLayout};
pub use stream::{Logical, Physical, Role, Stream};
pub use tile::{Column, FrameView, Kind, Layer, Tile};
pub use trace::{Traced, trace};
