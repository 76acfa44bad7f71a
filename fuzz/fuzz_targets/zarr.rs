//! Any bytes as the files of a zarr store.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::inputs::zarr(data));
