//! Any bytes as a tile: no panic, little memory.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::tile_decode(data));
