//! Values through every Parquet encoding and back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::parquet_round_trip(data));
