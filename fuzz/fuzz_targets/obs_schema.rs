//! Any bytes as the schema of a table of cells.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::obs_schema(data));
