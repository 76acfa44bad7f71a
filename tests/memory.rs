//! No unsound tile makes a process take more than 64 MiB above its size.
//!
//! Each tile is read by a child process, this program again, which tells its peak.

#[allow(dead_code, unused_imports)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;
mod support;

use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use bodies::build::{Draft, Piece, block_header, exceptions, frame_header, planes, put, raw_frame, repair, rle_frame};
use libtest_mimic::{Failed, Trial};
use support::entries;
use tilekern::Limits;
use tilekern::deltacel::{Csr, Decoder, Tile, trace, verify};

const ALLOWED: u64 = 64 << 20;
/// Names what a child does: `read PATH`, or `touch` or `reserve` for memory that must be noticed.
const CHILD: &str = "TILEKERN_TEST_CHILD";

fn main() {
    if let Ok(task) = std::env::var(CHILD) {
        return child(&task);
    }
    if !cfg!(target_os = "linux") {
        support::run_with(Vec::new(), "fixtures/deltacel", |_| Vec::new()); // the peak is read from /proc
    }
    let mut trials = vec![Trial::test("memory is noticed", noticed)];
    for (name, tile) in bombs() {
        trials.push(Trial::test(format!("bomb {name}"), move || {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("bomb.dct");
            std::fs::write(&path, tile)?;
            bounded(&path)
        }));
    }
    support::run_with(trials, "fixtures/deltacel", |corpus| {
        let mut trials = Vec::new();
        for entry in entries(&corpus.join("invalid/index.json")) {
            let path = corpus.join("invalid").join(entry["tile"].as_str().expect("a tile"));
            let name = format!("corpus {}", entry["name"].as_str().unwrap_or_default());
            trials.push(Trial::test(name, move || bounded(&path)));
        }
        trials
    })
}

/// A figure of /proc/self/status, in bytes.
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).expect("a known key");
    1024 * line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number")
}

/// Does the task and prints how far the peaks of memory and of address space lie above what was in use before.
fn child(task: &str) {
    let before = (status("VmRSS"), status("VmSize"));
    match task.split_once(' ') {
        Some(("read", path)) => read(Path::new(path)),
        _ if task == "touch" => drop(black_box(vec![1u8; 100 << 20])),
        _ if task == "reserve" => drop(black_box(Vec::<u8>::with_capacity(100 << 20))),
        _ => panic!("no such task: {task}"),
    }
    println!("{} {}", status("VmHWM").saturating_sub(before.0), status("VmPeak").saturating_sub(before.1));
}

/// Reads an unsound tile in every way.
fn read(path: &Path) {
    let bytes = std::fs::read(path).expect("a file");
    let decoder = Decoder::builder().threads(1).build().expect("the kernels that the environment names");
    let opened = Tile::open(&bytes);
    if let Ok(tile) = opened.as_ref().map_or_else(|_| Tile::open_without_crc(&bytes), |tile| Ok(*tile)) {
        let sound = decoder.decode(&tile, &mut Csr::<i32>::new()).is_ok();
        assert!(!sound || opened.is_err(), "a sound tile");
        _ = decoder.decode(&tile, &mut Csr::<f32>::new());
        _ = decoder.decode_indices(&tile, 0..tile.n_cells(), &mut Csr::<i32>::new());
    }
    assert!(!verify(&bytes, &decoder).is_empty());
    // A trace shows sound frames that stand before a fault, however large, if the limits allow it.
    let mut limits = Limits::default().with_output_bytes(16 << 20);
    limits.max_scratch_bytes = 16 << 20;
    _ = trace(&bytes, None, &limits);
}

/// The peaks that a child tells.
fn peaks(task: &str) -> Result<(u64, u64), Failed> {
    let output = Command::new(std::env::current_exe()?).env(CHILD, task).output()?;
    let text = String::from_utf8(output.stdout)?;
    match (output.status.success(), text.trim().split_once(' ')) {
        (true, Some((memory, space))) => Ok((memory.parse()?, space.parse()?)),
        _ => Err(format!("{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn bounded(path: &Path) -> Result<(), Failed> {
    let allowed = ALLOWED + path.metadata()?.len();
    let (memory, space) = peaks(&format!("read {}", path.display()))?;
    match memory <= allowed && space <= allowed {
        true => Ok(()),
        false => Err(format!("{memory} bytes of memory, {space} of address space; {allowed} are allowed").into()),
    }
}

fn noticed() -> Result<(), Failed> {
    let (memory, space) = peaks("touch")?;
    let (little, reserved) = peaks("reserve")?;
    match memory > 95 << 20 && space > 95 << 20 && little < 16 << 20 && reserved > 95 << 20 {
        true => Ok(()),
        false => Err(format!("touched {memory} {space}, reserved {little} {reserved}").into()),
    }
}

/// Small tiles that claim much. All have a right CRC.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let one = |n: u64, gaps: Vec<u8>, vals: Vec<u8>, n_genes| {
        let piece = Piece { cells: 0..1, nonzeros: 0..n, frames: [gaps, vals, Vec::new(), Vec::new()] };
        Draft { n_genes, bounds: vec![0, n], chunks: vec![piece], ..Draft::default() }
    };
    let small = || one(4, raw_frame(&planes(&[1; 4])), raw_frame(&planes(&[1; 4])), 100);
    let with = |at: usize, len: usize, value: u64| {
        let mut tile = small().write();
        put(&mut tile, at, len, value);
        repair(&mut tile);
        tile
    };
    let run = |n: u64, byte: u8| {
        let full = n / (128 << 10);
        let runs: Vec<_> = (0..full).map(|_| (byte, 128 << 10)).chain([(byte, n % (128 << 10))]).collect();
        rle_frame(n, &runs)
    };
    let mut bombs = vec![
        ("2^50 cells", with(16, 8, 1 << 50)),
        ("2^64 - 1 cells", with(16, 8, u64::MAX)),
        ("2^50 nonzeros in the header", with(24, 8, 1 << 50)),
        ("2^32 - 1 chunks", with(36, 4, u32::MAX.into())),
        ("an indptr at 2^63", with(40, 8, 1 << 63)),
    ];
    // A frame that states far more than its blocks can hold, as the table and the indptr do.
    for n in [1u64 << 25, 1 << 31, (1 << 32) - 1, 1 << 40] {
        let mut frame = frame_header(2 * n);
        frame.extend(block_header(1, 100, true));
        frame.push(1);
        bombs.push(("stated sizes", one(n, frame.clone(), frame, 1 << 31).write()));
    }
    // Runs that hold what they state, but more values than a cell has genes.
    bombs.push(("runs for few genes", one(1 << 28, run(1 << 29, 1), run(1 << 29, 1), 30_000).write()));
    // The gaps can be reached, the counts cannot.
    let mut short = frame_header(1 << 29);
    short.extend(block_header(1, 100, true));
    short.push(1);
    bombs.push(("runs beside a short frame", one(1 << 28, run(1 << 29, 1), short.clone(), 1 << 31).write()));
    // Exceptions: of more nonzeros than there are; of a size that cannot be reached.
    for list in
        [run(8 << 24, 0), { frame_header(8 << 24).into_iter().chain(block_header(1, 9, true)).chain([0]).collect() }]
    {
        let mut draft = small();
        draft.chunks[0].frames[3] = list;
        bombs.push(("exceptions", draft.write()));
    }
    let mut draft = small();
    draft.chunks[0].frames[2] = raw_frame(&exceptions(&[(u32::MAX, u32::MAX)]));
    bombs.push(("a far exception", draft.write()));

    // Hundreds of chunks that share one frame of very many blocks without content.
    let mut many = frame_header(0);
    many.extend((0..20_000).flat_map(|i| block_header(0, 0, i == 19_999)));
    let chunk = |n: u64| Piece {
        cells: n.min(1)..1,
        nonzeros: 0..0,
        frames: [many.clone(), many.clone(), Vec::new(), Vec::new()],
    };
    let draft = Draft { n_genes: 5, bounds: vec![0, 0], chunks: (0..400).map(chunk).collect(), shared: true };
    bombs.push(("a shared frame of many blocks", draft.write()));
    bombs
}
