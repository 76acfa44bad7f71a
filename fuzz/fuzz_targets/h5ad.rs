//! Any bytes as an HDF5 file.
#![no_main]

// Panics of its reader are caught, and are errors; the fuzzer would take them for crashes.
libfuzzer_sys::fuzz_target!(
    init: tilekern::hush_guarded_panics(),
    |data: &[u8]| tilekern_fuzz::inputs::h5ad(data)
);
