//! Any text as a filter, and filters with a known meaning.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::obs_filter(data));
