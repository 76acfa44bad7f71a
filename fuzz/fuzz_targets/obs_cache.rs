//! Any bytes as the file of a cached column.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::obs_cache(data));
