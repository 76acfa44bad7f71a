//! Map tiles drawn from bytes, written and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::mlt_round_trip(data));
