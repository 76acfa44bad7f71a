//! Any bytes as the files of a Matrix Market folder.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::inputs::mtx(data));
