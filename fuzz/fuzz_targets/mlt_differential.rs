//! Map tiles, sound and damaged, on every kernel level: the same values, or the same error.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::mlt_differential(data));
