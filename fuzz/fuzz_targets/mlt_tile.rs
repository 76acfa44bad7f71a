//! Any bytes as a map tile: whole, by layers, by columns.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::mlt_tile(data));
