//! Bodies of the fuzz targets: functions on bytes that panic where a property does not hold.
//!
//! The root crate's tests include this file too, and replay seeds and past crashes without a fuzzer.

pub mod build;
#[cfg(feature = "dataset")]
mod dataset;
mod decode;
mod encode;
mod frame;
// Not for the root crate's tests: those of `tilekern-convert` include it.
#[cfg(feature = "convert")]
pub mod inputs;
#[cfg(feature = "mlt")]
pub mod mlt;
#[cfg(feature = "mlt")]
pub mod mlt_build;
#[cfg(feature = "mlt")]
pub mod mlt_mutate;
#[cfg(feature = "obs")]
mod obs;
pub mod oracle;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet-files")]
mod parquet_file;
pub mod seeds;

#[cfg(feature = "dataset")]
pub use dataset::{cell_selection, manifest, side_files};
pub use decode::{tile_decode, tile_differential};
pub use encode::encode_round_trip;
pub use frame::frame;
#[cfg(feature = "mlt")]
pub use mlt::{mlt_differential, mlt_encoding, mlt_round_trip, mlt_tile};
#[cfg(feature = "obs")]
pub use obs::{obs_cache, obs_filter, obs_schema};
#[cfg(feature = "parquet")]
pub use parquet::{parquet_payload, parquet_round_trip};
#[cfg(feature = "parquet-files")]
pub use parquet_file::{parquet_chunk, parquet_file};
pub use seeds::seeds;

/// A body of a fuzz target.
pub type Body = fn(&[u8]);

/// Every target and its body.
pub const TARGETS: &[(&str, Body)] = &[
    ("tile_decode", tile_decode),
    ("tile_differential", tile_differential),
    ("encode_round_trip", encode_round_trip),
    ("frame", frame),
    #[cfg(feature = "dataset")]
    ("manifest", manifest),
    #[cfg(feature = "dataset")]
    ("side_files", side_files),
    #[cfg(feature = "dataset")]
    ("cell_selection", cell_selection),
    #[cfg(feature = "obs")]
    ("obs_schema", obs_schema),
    #[cfg(feature = "obs")]
    ("obs_filter", obs_filter),
    #[cfg(feature = "obs")]
    ("obs_cache", obs_cache),
    #[cfg(feature = "mlt")]
    ("mlt_tile", mlt_tile),
    #[cfg(feature = "mlt")]
    ("mlt_encoding", mlt_encoding),
    #[cfg(feature = "mlt")]
    ("mlt_differential", mlt_differential),
    #[cfg(feature = "mlt")]
    ("mlt_round_trip", mlt_round_trip),
    #[cfg(feature = "parquet")]
    ("parquet_payload", parquet_payload),
    #[cfg(feature = "parquet")]
    ("parquet_round_trip", parquet_round_trip),
    #[cfg(feature = "parquet-files")]
    ("parquet_chunk", parquet_chunk),
    #[cfg(feature = "parquet-files")]
    ("parquet_file", parquet_file),
];
