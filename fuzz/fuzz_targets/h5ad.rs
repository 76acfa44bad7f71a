//! Any bytes as an HDF5 file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::inputs::h5ad(data));
