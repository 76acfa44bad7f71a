//! Any bytes as the payload of an encoding of map tiles, on every kernel level.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::mlt_encoding(data));
