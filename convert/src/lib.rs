//! Turns files of single-cell counts into datasets of tiles.
//!
//! An [`Input`] is one matrix of one file or folder, and hands over its rows as it has them. What is common to all of them
//! happens once, behind it: values are checked, rows sorted, duplicates summed, zeros dropped.

// Numbers from outside are converted with a check, never cut.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod deltacel;
mod engine;
mod error;
mod genes;
mod hdf5;
mod input;
mod mtx;
mod open;
mod rows;
mod shuffle;
mod spool;
mod stage;
mod table;
mod zarr;

pub use engine::{Options, Phase, Progress, Repair, RepairOptions, Repaired, Shard, Step, Summary, convert, repair};
pub use error::{Error, ErrorKind, Result};
pub use genes::{GeneOrder, MatchGenes};
pub use hdf5::Hdf5;
pub use input::{Input, InputOptions, RowBlock, Source, Values};
pub use open::open;
pub use rows::Changes;
pub use tilekern::deltacel::dataset::INDEX_NAME;
