//! The table of cells: what is known of each cell beside its counts.
//!
//! Source: DELTACEL file format, "Obs".

mod cache;
mod collection;
mod encode;
mod filter;
mod pages;
pub(super) mod parquet_file;
mod schema;
mod shards;
mod table;
pub(super) mod values;
pub(super) mod verify;
#[cfg(feature = "encode")]
pub(super) mod write;

pub use cache::{Cache, from_ipc, to_ipc};
pub use collection::ObsCollection;
pub use encode::{ObsEncoder, ObsUnion};
pub use filter::Filter;
pub use schema::{Category, ObsColumn, ObsKind, ObsSchema, ObsType};
pub(super) use shards::digest;
pub use table::ObsTable;
pub use values::{Getter, Value, getter};

/// What to say where there is no column of this name.
fn no_such_column(schema: &ObsSchema, name: &str) -> String {
    const SHOWN: usize = 20;
    let names: Vec<String> = schema.columns.iter().take(SHOWN).map(|column| format!("{:?}", column.name)).collect();
    let more = if schema.columns.len() > SHOWN { ", …" } else { "" };
    format!("no column {name:?}; there are {}{more}", names.join(", "))
}
