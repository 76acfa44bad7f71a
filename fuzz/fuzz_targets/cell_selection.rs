//! Any selection of cells of a dataset, sound or damaged.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::cell_selection(data));
