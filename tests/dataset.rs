//! Datasets that these tests write themselves: rows against a dense model, damage, odd files, failing stores.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small numbers of the tests' own
#![cfg(target_endian = "little")]

#[path = "support/cells.rs"]
mod cells;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cells::{Cells, arrays, cells_of, write};
use proptest::prelude::*;
use tempfile::TempDir;
use tilekern::deltacel::dataset::{Dataset, Event, TileBuffer, Writer, WriterBuilder, verify};
use tilekern::deltacel::{Chunks, Csr, CsrView, Decoded, Decoder, Encoder, Profile};
use tilekern::{Directory, Error, ErrorKind, Limits, MappedDirectory, Object, Part, Source, Unsupported};

/// `n` cells of 0 to 5 nonzeros, so many cells a tile and two chunks each.
fn sample(n: usize, tile_size: u64) -> (TempDir, Cells) {
    let cells = (0..n as i32).map(|c| (0..c % 6).map(|i| (7 * i + c % 7, 1 + c * 10 + i)).collect()).collect();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 50, &cells, 11, |w| {
        w.tile_size(tile_size).encoder(Encoder::builder().profile(Profile::Plain(1)).chunks(Chunks::Count(2)))
    });
    (folder, cells)
}

fn faults(source: &dyn Source) -> Vec<Error> {
    let mut faults = Vec::new();
    let _ = verify(source, &Decoder::new().unwrap(), |event| {
        if let Event::Fault(fault) = event {
            faults.push(fault);
        }
        ControlFlow::<()>::Continue(())
    });
    faults
}

/// Every way to read a dataset.
fn open_all(root: &Path) -> Vec<Dataset> {
    // SAFETY: a test's own files, which nothing changes while it reads them.
    #[allow(unsafe_code)]
    let mapped = unsafe { MappedDirectory::new(root) }.unwrap();
    let parts = Dataset::builder().check_crc(false);
    vec![
        Dataset::open(root).unwrap(),
        parts.open(root).unwrap(),
        Dataset::builder().open_source(Box::new(mapped.clone())).unwrap(),
        parts.open_source(Box::new(mapped)).unwrap(),
    ]
}

fn cell(n_genes: i32) -> impl Strategy<Value = Vec<(i32, i32)>> {
    let count = prop_oneof![8 => 1..300, 1 => 65_530..65_540, 1 => Just(i32::MAX)];
    prop::collection::btree_map(0..n_genes, count, 0..12).prop_map(|cell| cell.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_as_in_a_dense_model(
        cells in prop::collection::vec(cell(90_000), 0..60),
        tile_size in 1u64..20,
        pieces in 1usize..40,
        chunks in 1u32..5,
        wanted in prop::collection::vec(any::<prop::sample::Index>(), 0..80),
        range in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let encoder = Encoder::builder().profile(Profile::Plain(1)).chunks(Chunks::Count(chunks));
        write(folder.path(), 90_000, &cells, pieces, |w| w.tile_size(tile_size).encoder(encoder.clone()));
        let wanted: Vec<u64> = match cells.len() {
            0 => Vec::new(),
            n => wanted.iter().map(|index| index.index(n) as u64).collect(),
        };
        let (a, b) = (range.0.index(cells.len() + 1), range.1.index(cells.len() + 1));
        let range = a.min(b)..a.max(b);
        for dataset in open_all(folder.path()) {
            for threads in [1, 3] {
                let decoder = Decoder::builder().threads(threads).build().unwrap();
                let reader = dataset.reader(&decoder);
                let mut csr = Csr::<i32>::new();
                for _ in 0..2 {
                    let decoded = reader.rows(&wanted, &mut csr).unwrap();
                    let expected: Cells = wanted.iter().map(|&cell| cells[cell as usize].clone()).collect();
                    prop_assert_eq!(cells_of(&csr), expected);
                    prop_assert_eq!(csr.n_genes(), 90_000);
                    let whole = Decoded { cells: wanted.len(), nnz: csr.nnz(), ..Decoded::default() };
                    prop_assert_eq!(decoded, whole);
                    reader.range(range.start as u64..range.end as u64, &mut csr).unwrap();
                    prop_assert_eq!(cells_of(&csr), &cells[range.clone()]);
                }
                let mut floats = Csr::<f32>::new();
                let inexact = |counts: &[f32]| counts.iter().filter(|&&count| count > 16_777_216.0).count();
                let decoded = dataset.rows(&wanted, &decoder, &mut floats).unwrap();
                prop_assert_eq!(decoded.inexact, inexact(floats.values()));
                let decoded = dataset.range(0..cells.len() as u64, &decoder, &mut floats).unwrap();
                prop_assert_eq!(decoded.inexact, inexact(floats.values()));
                // A count that does not fit matters only where it is asked for.
                let fits = wanted.iter().all(|&c| cells[c as usize].iter().all(|&(_, n)| n <= 65_535));
                let short = dataset.rows(&wanted, &decoder, &mut Csr::<u16>::new());
                prop_assert_eq!(short.is_ok(), fits);
            }
        }
        prop_assert_eq!(faults(&Directory::new(folder.path()).unwrap()).len(), 0);
    }
}

/// Damage anywhere gives an error or the very same cells, and never a panic: each bit of each byte, and each digit in place
/// of each other one.
#[test]
fn a_changed_byte() {
    let (folder, cells) = sample(20, 8);
    let wanted: Vec<u64> = (0..20).rev().collect();
    let expected: Cells = cells.iter().rev().cloned().collect();
    let decoders = [true, false].map(|crc| (crc, Decoder::builder().threads(1 + usize::from(crc)).build().unwrap()));
    let mut csr = Csr::<i32>::new();
    for name in ["manifest.json", "tiles/tile_000001.dct"] {
        let path = folder.path().join(name);
        let sound = std::fs::read(&path).unwrap();
        for (at, &byte) in sound.iter().enumerate() {
            let digits = b'0'..if byte.is_ascii_digit() { b':' } else { b'0' };
            for other in (0..8).map(|bit| byte ^ 1 << bit).chain(digits).filter(|&other| other != byte) {
                let mut bytes = sound.clone();
                bytes[at] = other;
                std::fs::write(&path, bytes).unwrap();
                let place = format!("{name}, byte {at}: {byte} -> {other}");
                let mut verified = false;
                for (crc, decoder) in &decoders {
                    let read = Dataset::builder().check_crc(*crc).open(folder.path());
                    match read.and_then(|dataset| dataset.rows(&wanted, decoder, &mut csr)) {
                        Ok(_) if *crc => assert_eq!(cells_of(&csr), expected, "{place}"),
                        Ok(_) => assert_eq!(csr.n_cells(), 20, "{place}"),
                        Err(error) => {
                            // Where a manifest and a tile say different things, nothing tells which of them is damaged:
                            // both are named.
                            let told = error.path().is_some_and(|told| told == path)
                                || name == "manifest.json" && error.to_string().contains("in manifest.json");
                            assert!(told, "{place}: {error}");
                            verified = verified || !faults(&Directory::new(folder.path()).unwrap()).is_empty();
                            assert!(verified, "{place}: {error}");
                        }
                    }
                }
            }
        }
        std::fs::write(&path, sound).unwrap();
    }
}

#[test]
fn the_writer_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let new = |name: &str| folder.path().join(name);
    let refused = |builder: WriterBuilder| {
        let error = builder.create(new("refused")).unwrap_err();
        assert!(!new("refused").exists(), "{error}");
        (error.kind().name(), error.part())
    };
    let option = |name| Part::Option(name);
    assert_eq!(refused(Writer::builder(0)), ("out_of_range", option("n_genes")));
    assert_eq!(refused(Writer::builder((1 << 31) + 1)), ("out_of_range", option("n_genes")));
    assert_eq!(refused(Writer::builder(2).tile_size(0)), ("out_of_range", option("tile_size")));
    assert_eq!(refused(Writer::builder(2).gene_order([0])), ("inconsistent", option("gene_order")));
    assert_eq!(refused(Writer::builder(2).gene_order([3, 3])), ("repeated", option("gene_order")));
    assert_eq!(refused(Writer::builder(2).gene_order([0, -1])), ("out_of_range", option("gene_order")));
    assert_eq!(refused(Writer::builder(2).var_names(["a"])), ("inconsistent", option("var_names")));
    assert_eq!(refused(Writer::builder(2).var_names(["a", "b\n"])), ("syntax", option("var_names")));
    assert_eq!(refused(Writer::builder(2).metadata("[1]")), ("wrong_type", option("metadata")));
    assert_eq!(refused(Writer::builder(2).metadata("{\"a\": NaN}")), ("syntax", option("metadata")));
    assert_eq!(refused(Writer::builder(2).metadata("{} {}")), ("syntax", option("metadata")));
    let encoder = Encoder::builder().chunks(Chunks::Count(0));
    assert_eq!(refused(Writer::builder(2).encoder(encoder)), ("out_of_range", option("chunks")));

    let exists = ErrorKind::Unsupported(Unsupported::Exists);
    std::fs::write(new("file"), "").unwrap();
    assert_eq!(Writer::builder(2).create(new("file")).unwrap_err().kind(), exists);
    std::fs::create_dir(new("full")).unwrap();
    std::fs::write(new("full/x"), "").unwrap();
    assert_eq!(Writer::builder(2).create(new("full")).unwrap_err().kind(), exists);
    let below = Writer::builder(2).create(new("file/below")).unwrap_err();
    assert!(matches!(below.kind(), ErrorKind::Io(_) | ErrorKind::Unsupported(Unsupported::Exists)), "{below}");

    // Two at once: the second finds what the first has begun.
    std::fs::create_dir(new("two")).unwrap();
    let first = Writer::builder(2).create(new("two")).unwrap();
    let second = Writer::builder(2).create(new("two")).unwrap_err();
    assert!(matches!(second.kind(), ErrorKind::Unsupported(Unsupported::Exists | Unsupported::Busy)), "{second}");
    first.finish().unwrap();
    assert_eq!(Dataset::open(new("two")).unwrap().n_tiles(), 0);

    let mut writer = Writer::builder(2).create(new("genes/nested")).unwrap();
    let other = CsrView { n_genes: 3, indptr: &[0], indices: &[], values: &[] };
    assert_eq!(writer.push(&other).unwrap_err().part(), Part::Matrix("number of genes"));
    drop(writer);
    let incomplete = ErrorKind::Unsupported(Unsupported::Incomplete);
    assert_eq!(Dataset::open(new("genes/nested")).unwrap_err().kind(), incomplete);
}

/// Writers that start at the same moment: one wins, and its dataset is sound.
#[test]
fn a_race_of_writers() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("dataset");
        let barrier = std::sync::Barrier::new(4);
        let results: Vec<_> = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                Writer::builder(3).create(&root)
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut writers: Vec<Writer> = results.into_iter().filter_map(Result::ok).collect();
        assert_eq!(writers.len(), 1);
        writers.pop().unwrap().finish().unwrap();
        assert_eq!(faults(&Directory::new(&root).unwrap()).len(), 0);
    }
}

#[test]
fn extreme_numbers_of_cells() {
    let (folder, cells) = sample(20, 8);
    let dataset = Dataset::open(folder.path()).unwrap();
    let decoder = Decoder::new().unwrap();
    let mut csr = Csr::<i32>::new();
    for (cells, index) in [(vec![0, 20, 21], 1), (vec![u64::MAX], 0)] {
        let error = dataset.rows(&cells, &decoder, &mut csr).unwrap_err();
        assert_eq!(
            (error.kind().name(), error.part(), error.value_index()),
            ("out_of_range", Part::Cells, Some(index))
        );
    }
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..21, 5..4, 21..21, u64::MAX..u64::MAX] {
        let error = dataset.range(range, &decoder, &mut csr).unwrap_err();
        assert_eq!((error.kind().name(), error.part()), ("out_of_range", Part::Cells));
    }
    for range in [0..0, 8..8, 20..20] {
        dataset.range(range, &decoder, &mut csr).unwrap();
        assert_eq!((csr.indptr(), csr.nnz(), csr.n_genes()), (&[0][..], 0, 50));
    }
    assert_eq!(cells.len(), 20);
    let mut buffer = TileBuffer::new();
    for tile in [0, 2, 1] {
        let opened = dataset.tile(tile, &mut buffer).unwrap();
        assert_eq!(opened.n_cells() as u64, dataset.manifest().tile_cells(tile));
    }
}

/// Results above the limit are refused alike, whichever thread comes first, and before anything is decoded.
#[test]
fn limits() {
    let (folder, cells) = sample(60, 8);
    let nnz = |wanted: &[u64]| wanted.iter().map(|&cell| cells[cell as usize].len() as u64).sum::<u64>();
    let wanted: Vec<u64> = (0..120).map(|i| i % 60).collect();
    let bytes = |wanted: &[u64]| 8 * (wanted.len() as u64 + 1) + 8 * nnz(wanted);
    for dataset in open_all(folder.path()) {
        for threads in [1, 4] {
            let decoder = |limits| Decoder::builder().threads(threads).limits(limits).build().unwrap();
            let enough = decoder(Limits::default().with_output_bytes(bytes(&wanted)));
            let short = decoder(Limits::default().with_output_bytes(bytes(&wanted) - 1));
            let mut csr = Csr::<i32>::new();
            dataset.rows(&wanted, &enough, &mut csr).unwrap();
            let error = dataset.rows(&wanted, &short, &mut csr).unwrap_err();
            let (needed, limit) = (bytes(&wanted), bytes(&wanted) - 1);
            let what = tilekern::Limit::OutputBytes;
            assert_eq!(error.kind(), ErrorKind::LimitExceeded { needed, limit, what });
            let range: Vec<u64> = (3..60).collect();
            let short = decoder(Limits::default().with_output_bytes(bytes(&range) - 1));
            let error = dataset.range(3..60, &short, &mut csr).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::LimitExceeded { needed: limit_of(&error), limit: bytes(&range) - 1, what }
            );
            assert_eq!(limit_of(&error), bytes(&range));
        }
    }
    let small = Dataset::builder().limits(input_limit(100)).open(folder.path()).unwrap();
    let error = small.range(0..1, &Decoder::new().unwrap(), &mut Csr::<i32>::new()).unwrap_err();
    assert_eq!((error.kind().name(), error.part()), ("limit_exceeded", Part::Tile(0)));
}

fn limit_of(error: &Error) -> u64 {
    match error.kind() {
        ErrorKind::LimitExceeded { needed, .. } => needed,
        kind => panic!("{kind:?}"),
    }
}

fn input_limit(bytes: u64) -> Limits {
    let mut limits = Limits::default();
    limits.max_input_bytes = bytes;
    limits
}

/// The lowest tile's error, on any number of threads.
#[test]
fn the_same_error_on_any_number_of_threads() {
    let (folder, _) = sample(60, 8);
    for tile in [2, 4, 5] {
        let path = folder.path().join(format!("tiles/tile_{tile:06}.dct"));
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let dataset = Dataset::open(folder.path()).unwrap();
    let wanted: Vec<u64> = (0..60).rev().collect();
    for threads in [1, 2, 7] {
        let decoder = Decoder::builder().threads(threads).build().unwrap();
        for _ in 0..10 {
            let error = dataset.rows(&wanted, &decoder, &mut Csr::<i32>::new()).unwrap_err();
            assert!(error.path().unwrap().ends_with("tiles/tile_000002.dct"), "{error}");
            let error = dataset.range(0..60, &decoder, &mut Csr::<i32>::new()).unwrap_err();
            assert!(error.path().unwrap().ends_with("tiles/tile_000002.dct"), "{error}");
        }
        let mut told: Vec<PathBuf> = Vec::new();
        let stopped = verify(&Directory::new(folder.path()).unwrap(), &decoder, |event| match event {
            Event::Fault(fault) if fault.path().unwrap().ends_with("tiles/tile_000005.dct") => {
                ControlFlow::Break(fault.to_string())
            }
            Event::Fault(fault) => {
                told.push(fault.path().unwrap().to_owned());
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        });
        told.dedup();
        assert_eq!(told, ["tiles/tile_000002.dct", "tiles/tile_000004.dct"].map(|name| folder.path().join(name)));
        assert!(stopped.is_break());
    }
}

/// A store that counts, and of which one operation fails.
struct Counted {
    directory: Directory,
    opened: Mutex<HashMap<String, u32>>,
    read: Arc<AtomicU64>,
    fail_at: u64,
    operations: Arc<AtomicU64>,
}

struct CountedObject {
    object: Box<dyn Object>,
    read: Arc<AtomicU64>,
    fail_at: u64,
    operations: Arc<AtomicU64>,
}

impl Counted {
    fn new(root: &Path, fail_at: u64) -> Counted {
        Counted {
            directory: Directory::new(root).unwrap(),
            opened: Mutex::default(),
            read: Arc::default(),
            fail_at,
            operations: Arc::default(),
        }
    }
}

fn step(operations: &AtomicU64, fail_at: u64) -> Result<(), Error> {
    if operations.fetch_add(1, Ordering::Relaxed) == fail_at {
        return Err(Error::new(ErrorKind::Io(std::io::ErrorKind::ConnectionReset), Part::Object));
    }
    Ok(())
}

impl Source for Counted {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        step(&self.operations, self.fail_at)?;
        *self.opened.lock().unwrap().entry(name.to_owned()).or_default() += 1;
        let object = self.directory.open(name)?;
        let (read, operations) = (self.read.clone(), self.operations.clone());
        Ok(Box::new(CountedObject { object, read, fail_at: self.fail_at, operations }))
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new("store:").join(name)
    }
}

impl Object for CountedObject {
    fn size(&self) -> u64 {
        self.object.size()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        step(&self.operations, self.fail_at)?;
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.object.read_at(offset, out)
    }
}

/// Each tile is opened once a call; without the check of the CRC little of it is read.
#[test]
fn what_is_read() {
    let mut state = 1u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as i32 % below as i32
    };
    let cells: Cells = (0..400).map(|_| (0..400).map(|i| (10 * i + random(10), 1 + random(9))).collect()).collect();
    let folder = tempfile::tempdir().unwrap();
    let encoder = Encoder::builder().profile(Profile::Plain(1)).chunks(Chunks::Count(50));
    write(folder.path(), 4000, &cells, 400, |w| w.tile_size(200).encoder(encoder.clone()));
    let decoder = Decoder::new().unwrap();
    let wanted = [3, 399, 5, 201, 3, 4];
    let expected: Cells = wanted.iter().map(|&cell: &u64| cells[cell as usize].clone()).collect();
    for crc in [true, false] {
        let store = Arc::new(Counted::new(folder.path(), u64::MAX));
        let dataset = Dataset::builder().check_crc(crc).open_source(Box::new(store.clone())).unwrap();
        let tile_bytes: u64 = dataset.manifest().tile_bytes().iter().sum();
        let before = store.read.load(Ordering::Relaxed);
        let mut csr = Csr::<i32>::new();
        dataset.rows(&wanted, &decoder, &mut csr).unwrap();
        assert_eq!(cells_of(&csr), expected);
        let read = store.read.load(Ordering::Relaxed) - before;
        assert!(if crc { read == tile_bytes } else { read < tile_bytes / 3 }, "{read} of {tile_bytes}, CRC {crc}");
        dataset.range(100..300, &decoder, &mut csr).unwrap();
        assert_eq!(cells_of(&csr), &cells[100..300]);
        let opened = store.opened.lock().unwrap();
        let expected = [("manifest.json", 1), ("tiles/tile_000000.dct", 2), ("tiles/tile_000001.dct", 2)];
        assert_eq!(*opened, expected.map(|(name, n)| (name.to_owned(), n)).into());
    }
}

/// Each operation of a store fails once: the error comes through, with the object's name; nothing wrong is returned.
#[test]
fn every_read_fails_once() {
    let (folder, cells) = sample(20, 8);
    let wanted: Vec<u64> = (0..20).rev().collect();
    let decoder = Decoder::builder().threads(1).build().unwrap();
    for crc in [true, false] {
        let mut fail_at = 0;
        loop {
            let store = Arc::new(Counted::new(folder.path(), fail_at));
            let mut csr = Csr::<i32>::new();
            let read = Dataset::builder().check_crc(crc).open_source(Box::new(store.clone())).and_then(|dataset| {
                dataset.rows(&wanted, &decoder, &mut csr)?;
                assert_eq!(cells_of(&csr), cells.iter().rev().cloned().collect::<Cells>());
                dataset.range(0..20, &decoder, &mut csr)
            });
            match read {
                Ok(_) => {
                    assert_eq!(cells_of(&csr), cells);
                    assert!(store.operations.load(Ordering::Relaxed) <= fail_at, "a failure went unnoticed");
                    break;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io(std::io::ErrorKind::ConnectionReset));
                    assert!(error.path().unwrap().starts_with("store:"), "{error}");
                }
            }
            let store = Arc::new(Counted::new(folder.path(), fail_at));
            let told = faults(&store);
            let happened = store.operations.load(Ordering::Relaxed) > fail_at;
            assert_eq!(told.len(), usize::from(happened), "{told:?}");
            fail_at += 1;
        }
        assert!(fail_at >= 2 + 6 + 6, "{fail_at}");
    }
}

#[cfg(unix)]
mod odd_files {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const TILE: &str = "tiles/tile_000001.dct";

    fn read(root: &Path) -> Result<Decoded, Error> {
        Dataset::open(root)?.range(0..20, &Decoder::new()?, &mut Csr::<i32>::new())
    }

    /// The error of a read; `verify` tells the same kind.
    fn refused(root: &Path, file: &str) -> ErrorKind {
        let error = read(root).unwrap_err();
        assert_eq!(error.path(), Some(root.join(file).as_path()), "{error}");
        let told = faults(&Directory::new(root).unwrap());
        assert_eq!(told.iter().map(Error::kind).collect::<Vec<_>>(), [error.kind()], "{told:?}");
        error.kind()
    }

    fn fifo(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.expect("the program mkfifo").success());
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let odd = ErrorKind::Unsupported(Unsupported::FileKind);
        for file in [TILE, "manifest.json"] {
            let (folder, _) = sample(20, 8);
            let path = folder.path().join(file);
            std::fs::remove_file(&path).unwrap();
            fifo(&path);
            assert_eq!(refused(folder.path(), file), odd);
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir(&path).unwrap();
            assert_eq!(refused(folder.path(), file), odd);
            std::fs::remove_dir(&path).unwrap();
            symlink("/dev/zero", &path).unwrap();
            assert_eq!(refused(folder.path(), file), odd);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(Dataset::open(file.path()).unwrap_err().kind(), odd);
        let none = file.path().with_extension("absent");
        assert_eq!(Dataset::open(none).unwrap_err().kind(), ErrorKind::Io(std::io::ErrorKind::NotFound));
    }

    #[test]
    fn links_are_followed() {
        let (folder, _) = sample(20, 8);
        let (tile, moved) = (folder.path().join(TILE), folder.path().join("elsewhere"));
        std::fs::rename(&tile, &moved).unwrap();
        symlink(&moved, &tile).unwrap();
        let other = tempfile::tempdir().unwrap();
        let link = other.path().join("link");
        symlink(folder.path(), &link).unwrap();
        read(&link).unwrap();
        assert_eq!(faults(&Directory::new(&link).unwrap()).len(), 0);
        std::fs::remove_file(&moved).unwrap();
        assert_eq!(refused(folder.path(), TILE), ErrorKind::Io(std::io::ErrorKind::NotFound));
        symlink(&tile, &moved).unwrap(); // a circle
        assert!(matches!(refused(folder.path(), TILE), ErrorKind::Io(_)));
    }

    #[test]
    fn more_files_do_not_matter() {
        let (folder, _) = sample(20, 8);
        for name in ["tiles/tile_000003.dct", "tiles/tile_000000.dct.tmp", ".hidden", "gene_order.npy", "var.parquet"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        read(folder.path()).unwrap();
        assert_eq!(faults(&Directory::new(folder.path()).unwrap()).len(), 0);
        assert!(Dataset::open(folder.path()).unwrap().gene_order().unwrap().is_none());
    }

    #[test]
    fn no_permission() {
        let (folder, _) = sample(20, 8);
        let path = folder.path().join(TILE);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
        match std::fs::File::open(&path) {
            // The superuser may read it all the same.
            Ok(_) => assert!(read(folder.path()).is_ok()),
            Err(error) => assert_eq!(refused(folder.path(), TILE), ErrorKind::Io(error.kind())),
        }
    }

    /// A file that is shorter than it was when the manifest was written.
    #[test]
    fn a_tile_that_shrank() {
        let (folder, _) = sample(20, 8);
        let path = folder.path().join(TILE);
        let len = std::fs::metadata(&path).unwrap().len();
        for shorter in [len - 1, 63, 0] {
            std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(shorter).unwrap();
            for dataset in open_all(folder.path()) {
                let decoder = Decoder::new().unwrap();
                let error = dataset.rows(&[9], &decoder, &mut Csr::<i32>::new()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Truncated { needed: len, available: shorter });
                assert_eq!(error.part(), Part::Tile(1));
            }
        }
    }
}

#[test]
fn an_outline_says_what_the_whole_tile_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    let cells = vec![vec![(0, 1), (2, 70_000), (4, 3)], vec![], vec![(1, 300), (99_999, 1)]];
    write(&path, 100_000, &cells, 2, |options| options.tile_size(2));
    let dataset = Dataset::open(&path).unwrap();
    let mut buffer = TileBuffer::new();
    let mut outlines: Vec<_> = (0..2).map(|n| dataset.tile(n, &mut buffer).unwrap().outline()).collect();
    assert_eq!(outlines, [0, 1].map(|n| dataset.outline(n, &mut buffer).unwrap()));
    let [first, second] = [0, 1].map(|n| outlines.remove(1 - n).chunks.remove(0));
    assert_eq!([first.gap_exceptions, first.count_exceptions], [1, 0]);
    assert_eq!([second.gap_exceptions, second.count_exceptions], [0, 1]);

    // What is read is checked: damage in a frame of counts is not seen, in one of exceptions it is.
    let tile = dataset.tile_path(0);
    let sound = std::fs::read(&tile).unwrap();
    for (stream, seen) in [(tilekern::Stream::Vals, false), (tilekern::Stream::Vexc, true)] {
        let mut damaged = sound.clone();
        damaged[usize::try_from(second.chunk.span(stream).0).unwrap()] ^= 1;
        std::fs::write(&tile, damaged).unwrap();
        let error = dataset.outline(0, &mut buffer).err();
        assert_eq!(error.is_some(), seen, "{stream:?}: {error:?}");
        assert!(error.is_none_or(|error| error.path() == Some(&tile) && error.offset().is_some()), "{stream:?}");
    }
}

#[test]
fn tiles_are_adopted_whole_or_refused() {
    let (from, cells) = sample(25, 10);
    let tile = |n: u32| from.path().join(format!("tiles/tile_{n:06}.dct"));
    let builder = || Writer::builder(50).tile_size(10).encoder(Encoder::builder().profile(Profile::Plain(1)));
    let folder = tempfile::tempdir().unwrap();
    let mut writer = builder().create(folder.path().join("a")).unwrap();

    // None of these takes anything, and the file stays where it was.
    let damaged = folder.path().join("damaged.dct");
    let mut bytes = std::fs::read(tile(0)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    assert!(matches!(writer.adopt(&damaged).unwrap_err().kind(), ErrorKind::Checksum { .. }));
    let mut other = Writer::builder(51).tile_size(10).create(folder.path().join("b")).unwrap();
    let error = other.adopt(tile(0)).unwrap_err();
    assert_eq!((error.part(), error.path()), (Part::Header("n_genes"), Some(&*tile(0))));
    let mut other = Writer::builder(50).tile_size(9).create(folder.path().join("c")).unwrap();
    assert_eq!(other.adopt(tile(0)).unwrap_err().part(), Part::Header("n_cells"));
    other.push(&CsrView { n_genes: 50, indptr: &[0, 0], indices: &[], values: &[] }).unwrap();
    assert_eq!(other.adopt(tile(2)).unwrap_err().kind(), ErrorKind::Unsupported(Unsupported::Request));
    assert!(matches!(writer.adopt(folder.path().join("absent")).unwrap_err().kind(), ErrorKind::Io(_)));
    assert_eq!(writer.n_cells(), 0);

    writer.adopt(tile(0)).unwrap();
    // What is written goes well with what is adopted.
    let (indptr, indices, values) = arrays(&cells[10..20].to_vec());
    writer.push(&CsrView { n_genes: 50, indptr: &indptr, indices: &indices, values: &values }).unwrap();
    writer.adopt(tile(2)).unwrap();
    assert_eq!(writer.adopt(tile(1)).unwrap_err().kind(), ErrorKind::Unsupported(Unsupported::Request));
    let manifest = writer.finish().unwrap();
    assert_eq!(manifest.n_cells(), 25);
    assert!(!tile(0).exists() && tile(1).exists());
    let mut csr = Csr::<i32>::new();
    Dataset::open(folder.path().join("a")).unwrap().range(0..25, &Decoder::new().unwrap(), &mut csr).unwrap();
    assert_eq!(cells_of(&csr), cells);
    assert!(faults(&Directory::new(folder.path().join("a")).unwrap()).is_empty());
}
