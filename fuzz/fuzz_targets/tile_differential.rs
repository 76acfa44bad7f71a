//! A tile gives the same on every kernel level and thread count, and what the oracle says.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::tile_differential(data));
