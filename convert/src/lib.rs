//! Turns files of single-cell counts into datasets of tiles.
//!
//! An [`Input`] is one matrix of one file or folder, and hands over its rows as it has them. What is common to all of them
//! happens once, behind it: values are checked, rows sorted, duplicates summed, zeros dropped.

// Numbers from outside are converted with a check, never cut.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod error;
mod input;

pub use error::{Error, ErrorKind, Result};
pub use input::{INDEX_NAME, Input, InputOptions, RowBlock, Source, Values};
