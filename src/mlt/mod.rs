//! MapLibre Tiles, versions 1 and 2: outlines, columns decoded one by one or all at once, traces.

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
