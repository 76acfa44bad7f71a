//! The walk over a zstd frame against libzstd.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::frame(data));
