//! Any bytes as the side files of a dataset.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::side_files(data));
