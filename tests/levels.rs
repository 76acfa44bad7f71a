//! Forced kernel levels, and decodes that must not depend on levels or threads.
#![cfg(target_endian = "little")]

#[allow(dead_code)] // other tests use the rest
#[path = "../fuzz/src/build.rs"]
mod build;
mod support;

use std::process::Command;

use build::{Draft, Piece, exceptions, planes, raw_frame};
use support::decoders;
use tilekern::deltacel::{Csr, Decoder, Tile, verify};
use tilekern::kernels::{Kernels, Level};

/// The kernels that a decoder takes of itself are those that `EXPECT_KERNEL` names, where that is set: a run that was
/// meant for one level fails if it is not on that level.
#[test]
fn the_level_is_the_one_expected() {
    let found = match Decoder::new() {
        Ok(decoder) => {
            assert_eq!(Ok(decoder.kernels()), Kernels::from_env());
            decoder.kernels().name()
        }
        Err(error) => error.kind().name(),
    };
    if let Ok(expected) = std::env::var("EXPECT_KERNEL") {
        assert_eq!(found, expected);
    }
}

#[test]
fn the_environment_forces_a_level() {
    let run = |forced: &str, expected: &str| {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["the_level_is_the_one_expected", "--exact"]);
        test.env("TILEKERN_KERNEL", forced).env("EXPECT_KERNEL", expected);
        test.output().unwrap().status.success()
    };
    for level in Level::ALL {
        let there = Kernels::at(level).is_some();
        assert_eq!(run(level.name(), level.name()), there, "{level}");
        assert_eq!(run(level.name(), "kernel_unavailable"), !there, "{level}");
    }
    assert!(run("", Kernels::auto().name()));
    for nonsense in ["nonsense", "AVX2", "scalar ", "avx2,avx512"] {
        assert!(run(nonsense, "kernel_unavailable"), "{nonsense}");
        assert!(!run(nonsense, Kernels::auto().name()), "{nonsense}");
    }
    // The builder's kernels beat the variable.
    assert_eq!(
        Decoder::builder().kernels(Kernels::at(Level::Scalar).unwrap()).build().unwrap().kernels().name(),
        "scalar"
    );
}

/// Eight chunks of 40 cells of 70 nonzeros each, gap 1 and count 2 throughout but for what `change` does.
fn tile(change: impl Fn(usize, &mut Vec<u16>, &mut Vec<u16>, &mut [Vec<(u32, u32)>; 2])) -> Vec<u8> {
    let (cells, per_cell) = (40, 70);
    let mut draft =
        Draft { n_genes: 100_000, bounds: (0..=8 * cells).map(|i| i * per_cell).collect(), ..Draft::default() };
    for n in 0..8 {
        let len = usize::try_from(cells * per_cell).unwrap();
        let (mut gaps, mut counts, mut lists) = (vec![1; len], vec![2; len], [vec![], vec![]]);
        change(usize::try_from(n).unwrap(), &mut gaps, &mut counts, &mut lists);
        let list = |list: &[(u32, u32)]| if list.is_empty() { vec![] } else { raw_frame(&exceptions(list)) };
        let frames = [raw_frame(&planes(&gaps)), raw_frame(&planes(&counts)), list(&lists[0]), list(&lists[1])];
        let nonzeros = n * cells * per_cell..(n + 1) * cells * per_cell;
        draft.chunks.push(Piece { cells: n * cells..(n + 1) * cells, nonzeros, frames });
    }
    draft.write()
}

/// The error that every decoder gives, many times over, since threads race anew each time.
fn error(tile: &[u8]) -> String {
    let mut told = None;
    for decoder in decoders() {
        for _ in 0..8 {
            let error = Tile::open(tile).and_then(|tile| decoder.decode(&tile, &mut Csr::<i32>::new())).unwrap_err();
            let line = error.to_string();
            assert_eq!(told.get_or_insert(line.clone()), &line, "{:?}", decoder.kernels());
        }
    }
    told.unwrap()
}

#[test]
fn the_lowest_fault_wins() {
    let sound = tile(|_, _, _, _| ());
    assert!(verify(&sound, &Decoder::new().unwrap()).is_empty());

    let repeated = |chunk, value| {
        tile(move |n, gaps, counts, _| {
            if n >= chunk {
                gaps[value] = 0; // and, later in the same chunk and cell, a gene beyond the last
                gaps[value + 1..][..2].fill(60_000);
                counts[3] = 0;
            }
        })
    };
    for (chunk, value) in [(0, 1), (3, 64), (3, 69 + 70 * 7 - 4), (6, 2797 - 50), (7, 2700 + 17)] {
        let line = error(&repeated(chunk, value));
        assert!(line.starts_with(&format!("chunk {chunk}, gaps")), "{line}");
        assert!(line.contains(&format!("value {value} at byte ")), "{line}");
        assert!(line.contains("repeats the gene"), "{line}");
    }

    // A fault of a high chunk's counts does not come before one of a low chunk's exceptions.
    let line = error(&tile(|n, _, counts, lists| match n {
        2 => {
            counts[100] = u16::MAX;
            lists[0] = vec![(100, 65_535)];
        }
        5 => counts[0] = 0,
        _ => {}
    }));
    assert!(line.starts_with("chunk 2, vexc"), "{line}");

    // The gaps of a chunk come before its counts, and a lower chunk's counts before a higher chunk's gaps.
    let line = error(&tile(|n, gaps, counts, _| {
        counts[9] = u16::from(n < 4) * 2;
        gaps[70 * 39 + 69] = if n == 5 { 0 } else { 1 };
    }));
    assert!(line.starts_with("chunk 4, vals"), "{line}");

    // Every fault is found by a verification.
    let faults = verify(&repeated(5, 1), &Decoder::new().unwrap());
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
}
