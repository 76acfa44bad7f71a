//! Any bytes as the pages of a Parquet column chunk, on every kernel level, whole and in batches.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::parquet_chunk(data));
