//! Any matrix is refused or comes back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilekern_fuzz::encode_round_trip(data));
