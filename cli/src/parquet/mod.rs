//! What verbs do with Parquet: a file for each thing that is shown.

pub mod values;
