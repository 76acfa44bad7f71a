//! Map tiles, sound and damaged, on every kernel level: the same values, or the same error.
#![no_main]

use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target, fuzzer_mutate};
use tilekern_fuzz::mlt_mutate::{cross_inputs, mutate_input};

fuzz_target!(|data: &[u8]| tilekern_fuzz::mlt_differential(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_input(data, size, max_size, seed, 1).unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});

fuzz_crossover!(|one: &[u8], other: &[u8], out: &mut [u8], seed: u32| { cross_inputs(one, other, out, seed, 1) });
