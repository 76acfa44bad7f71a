//! Any bytes as a Parquet file, on every kernel level, whole and in batches.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::parquet_file(data));
