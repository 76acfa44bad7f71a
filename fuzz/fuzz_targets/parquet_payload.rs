//! Any bytes as a section of encoded Parquet values, on every kernel level, whole, in batches, and traced.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::parquet_payload(data));
