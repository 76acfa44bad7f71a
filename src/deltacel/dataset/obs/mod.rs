//! The table of cells: what is known of each cell beside its counts.
//!
//! Source: DELTACEL file format, "Obs".

mod encode;
pub(super) mod parquet_file;
mod schema;
mod shards;
pub(super) mod values;
#[cfg(feature = "encode")]
pub(super) mod write;

pub use encode::{ObsEncoder, ObsUnion};
pub use schema::{Category, ObsColumn, ObsKind, ObsSchema, ObsType};
pub use values::{Getter, Value, getter};
