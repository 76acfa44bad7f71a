//! What goes wrong around a dataset with all its tables: stores that fail, readers beside a writer, files that changed
//! places, odd names.
#![cfg(target_endian = "little")]

#[path = "support/counting.rs"]
mod counting;
#[path = "support/thrift.rs"]
mod thrift;

use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::{ArrayRef, Float64Array, Int8Array, RecordBatch, StringArray};
use tilekern::deltacel::dataset::obs::{Cache, ObsColumn, ObsSchema, ObsType};
use tilekern::deltacel::dataset::{Dataset, Event, Writer, verify};
use tilekern::deltacel::{Csr, CsrView, Decoder, Encoder, Profile};
use tilekern::{Directory, Error, ErrorKind, Object, Part, Source, Unsupported};

const N_CELLS: u64 = 40;
const N_GENES: u32 = 30;

fn schema() -> ObsSchema {
    let columns = vec![
        ObsColumn::category("type", ["T".into(), "B".into()]),
        ObsColumn::plain("score", ObsType::Double),
        ObsColumn::plain("../up", ObsType::String),
    ];
    ObsSchema { columns }
}

fn rows() -> RecordBatch {
    let cells = 0..i8::try_from(N_CELLS).expect("small");
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int8Array::from_iter_values(cells.clone().map(|cell| cell % 3 - 1))),
        Arc::new(Float64Array::from_iter_values(cells.clone().map(|cell| f64::from(cell) / 4.0))),
        Arc::new(StringArray::from_iter_values(cells.map(|cell| format!("cell {cell}")))),
    ];
    RecordBatch::try_new(Arc::new(schema().arrow()), arrays).expect("columns of the schema")
}

/// Cell n has n nonzeros, as far as there are genes.
fn matrix() -> (Vec<i64>, Vec<i32>, Vec<i32>) {
    let lens = (0..N_CELLS).map(|cell| i32::try_from(cell % u64::from(N_GENES)).expect("small"));
    let mut indptr = vec![0];
    let mut indices = Vec::new();
    for len in lens {
        indices.extend(0..len);
        indptr.push(indices.len() as i64);
    }
    let values = (1..).take(indices.len()).collect();
    (indptr, indices, values)
}

fn write(path: &Path, pause: impl Fn()) -> Result<(), Error> {
    let names: Vec<String> = (0..N_GENES).map(|gene| format!("g{gene}")).collect();
    let index: ArrayRef = Arc::new(StringArray::from(names.clone()));
    let builder = Writer::builder(N_GENES)
        .tile_size(7)
        .encoder(Encoder::builder().profile(Profile::Quick))
        .gene_order((0..N_GENES).map(|gene| i32::try_from(gene).expect("small")).collect::<Vec<_>>())
        .var_names(names)
        .var(RecordBatch::try_from_iter([("gene", index)]).expect("a column"));
    let mut writer = builder.obs(schema(), 2).create(path)?;
    let (indptr, indices, values) = matrix();
    for cell in 0..indptr.len() - 1 {
        pause();
        let at = |bound: i64| usize::try_from(bound).expect("small");
        let span = at(indptr[cell])..at(indptr[cell + 1]);
        let view = CsrView {
            n_genes: N_GENES,
            indptr: &[0, indptr[cell + 1] - indptr[cell]],
            indices: &indices[span.clone()],
            values: &values[span],
        };
        writer.push_with_obs(&view, &rows().slice(cell, 1))?;
    }
    pause();
    writer.finish().map(drop)
}

/// Reads all that there is; what comes is right, or it is an error.
fn read(dataset: &Dataset, decoder: &Decoder) -> Result<(), Error> {
    let cells: Vec<u64> = (0..N_CELLS).collect();
    let (indptr, indices, values) = matrix();
    let mut csr = Csr::<i32>::new();
    dataset.range(0..N_CELLS, decoder, &mut csr)?;
    assert_eq!((csr.indptr(), csr.indices(), csr.values()), (&indptr[..], &indices[..], &values[..]));
    dataset.rows(&[39, 3, 20], decoder, &mut csr)?;
    assert_eq!(csr.indptr(), [0, 9, 12, 32]);
    assert_eq!(dataset.gene_order()?.map(<[i32]>::len), Some(30));
    assert_eq!(dataset.var_names()?.and_then(|names| names.get(29).map(str::to_owned)).as_deref(), Some("g29"));
    assert_eq!(dataset.var()?.map(|table| table.num_rows()), Some(30));
    let table = dataset.obs()?.expect("a table of cells");
    assert_eq!(table.codes(&["type", "score", "../up"], &cells)?.columns(), rows().columns());
    assert_eq!(table.filter("type == 'T' && score > 9")?, [37]);
    Ok(())
}

/// Faults and warnings of a verification.
fn told(source: &dyn Source) -> Vec<Error> {
    let mut told = Vec::new();
    let _ = verify(source, &Decoder::builder().threads(1).build().expect("a decoder"), |event| {
        match event {
            Event::Fault(error) | Event::Warning(error) => told.push(error),
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    told
}

/// A directory one of whose operations fails.
#[derive(Clone)]
struct Failing {
    directory: Directory,
    left: Arc<AtomicU64>,
}

impl Failing {
    fn step(&self) -> Result<(), Error> {
        let turn = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) == Ok(1);
        if turn { Err(Error::new(ErrorKind::Io(std::io::ErrorKind::TimedOut), Part::Object)) } else { Ok(()) }
    }
}

impl Source for Failing {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        self.step()?;
        Ok(Box::new(FailingObject { object: self.directory.open(name)?, store: self.clone() }))
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new("store:").join(name)
    }
}

struct FailingObject {
    object: Box<dyn Object>,
    store: Failing,
}

impl Object for FailingObject {
    fn size(&self) -> u64 {
        self.object.size()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.store.step()?;
        self.object.read_at(offset, out)
    }
}

/// Each operation of a store fails once: the error comes through with its file, and the next attempt succeeds.
#[test]
fn every_read_fails_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dataset");
    write(&path, || {}).expect("written");
    let decoder = Decoder::builder().threads(1).build().expect("a decoder");
    let timed_out = ErrorKind::Io(std::io::ErrorKind::TimedOut);
    let mut turns = 0;
    for turn in 1.. {
        let directory = Directory::new(&path).expect("a directory");
        let store = Failing { directory, left: Arc::new(AtomicU64::new(turn)) };
        let unused = |store: &Failing| store.left.load(Ordering::Relaxed) > 0;
        match Dataset::builder().open_source(Box::new(store.clone())) {
            Ok(dataset) => {
                match read(&dataset, &decoder) {
                    Ok(()) => assert!(unused(&store), "failure {turn} went unnoticed"),
                    Err(error) => {
                        assert_eq!(error.kind(), timed_out, "{error}");
                        assert!(error.path().is_some_and(|path| path.starts_with("store:")), "{error}");
                        // Nothing of it is kept.
                        read(&dataset, &decoder).expect("the store works again");
                    }
                }
            }
            Err(error) => assert_eq!(error.kind(), timed_out, "{error}"),
        }
        let verified = Failing { left: Arc::new(AtomicU64::new(turn)), ..store.clone() };
        let told = told(&verified);
        assert_eq!(told.len(), usize::from(!unused(&verified)), "{turn}: {told:?}");
        assert!(told.iter().all(|error| error.kind() == timed_out && error.path().is_some()), "{told:?}");
        if unused(&store) && unused(&verified) {
            turns = turn;
            break;
        }
    }
    assert!(turns > 30, "{turns}");
}

/// A cache whose fetching fails is no cache of wrong values.
#[test]
fn a_cache_survives_reads_that_fail() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dataset");
    write(&path, || {}).expect("written");
    let cells: Vec<u64> = (0..N_CELLS).collect();
    for turn in 1.. {
        let cache = Cache::at(folder.path().join(format!("cache {turn}")));
        let directory = Directory::new(&path).expect("a directory");
        let store = Failing { directory, left: Arc::new(AtomicU64::new(turn + 2)) };
        let Ok(dataset) = Dataset::builder().open_source(Box::new(store.clone())) else { continue };
        let Ok(Some(table)) = dataset.obs() else { continue };
        let table = table.cached(cache.clone());
        let failed = table.codes(&["type", "../up"], &cells).is_err();
        assert_eq!(table.codes(&["type", "../up"], &cells).expect("works again").column(0), rows().column(0));
        store.left.store(0, Ordering::Relaxed);
        assert!(table.cache_faults().is_empty());
        // Names of columns stay inside the folder.
        let fingerprint = dataset.manifest().obs().expect("a table").fingerprint();
        let kept = fs::read_dir(cache.folder().join(fingerprint).join("obs")).expect("a folder");
        let names: Vec<_> = kept.map(|entry| entry.expect("an entry").file_name()).collect();
        assert!(names.contains(&OsString::from("..%2Fup.arrow")), "{names:?}");
        for entry in fs::read_dir(folder.path()).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            assert!(name == "dataset" || name.to_string_lossy().starts_with("cache "), "{name:?}");
        }
        // Values that are not those of the dataset are found by a check, damage by every reading.
        let file = cache.path(fingerprint, "type");
        let sound = fs::read(&file).expect("kept");
        let flipped: Vec<u8> = sound.iter().map(|&byte| if byte == 1 { 0 } else { byte }).collect();
        let len = sound.len();
        for damaged in [&sound[..len / 2], &[&sound[..64], &flipped[64..len - 400], &sound[len - 400..]].concat()] {
            fs::write(&file, damaged).expect("written");
            let faults = dataset.obs().expect("a table").expect("a table").cached(cache.clone()).cache_faults();
            assert!(faults.len() == 1 && faults[0].path() == Some(&file), "{faults:?}");
        }
        if !failed {
            return;
        }
    }
}

/// Readers beside a writer see an incomplete dataset, then the whole, and nothing in between.
#[test]
fn readers_beside_a_writer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dataset");
    let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut before, mut after) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let written = write(&path, || {
                begun.store(true, Ordering::SeqCst);
                std::thread::sleep(std::time::Duration::from_millis(3));
            });
            done.store(true, Ordering::SeqCst);
            written.expect("written");
        });
        let decoder = Decoder::new().expect("a decoder");
        loop {
            let is_done = done.load(Ordering::SeqCst);
            match Dataset::open(&path) {
                Ok(dataset) => {
                    read(&dataset, &decoder).expect("whole");
                    assert!(told(&Directory::new(&path).expect("a directory")).is_empty());
                    after += 1;
                }
                Err(error) => {
                    let incomplete = ErrorKind::Unsupported(Unsupported::Incomplete);
                    let none = ErrorKind::Io(std::io::ErrorKind::NotFound);
                    assert!([incomplete, none].contains(&error.kind()), "{error}");
                    assert_eq!(after, 0, "{error}");
                    // Before the first one has begun a second one would win.
                    if begun.load(Ordering::SeqCst) {
                        let second = write(&path, || {}).err().map(|error| error.kind());
                        let refused =
                            [Unsupported::Exists, Unsupported::Busy].map(|why| Some(ErrorKind::Unsupported(why)));
                        assert!(refused.contains(&second), "{second:?}");
                        before += 1;
                    }
                }
            }
            if is_done {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    assert!(before > 0 && after > 0, "{before} {after}");
}

/// Files that changed places, or are those of another dataset.
#[test]
fn files_that_changed_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dataset");
    write(&path, || {}).expect("written");
    let decoder = Decoder::new().expect("a decoder");
    let (tile, shard) =
        (|n| path.join(format!("tiles/tile_{n:06}.dct")), |n| path.join(format!("obs/obs_{n:04}.parquet")));
    let swap = |a: &Path, b: &Path| {
        let (first, second) = (fs::read(a).expect("a file"), fs::read(b).expect("a file"));
        fs::write(a, second).expect("written");
        fs::write(b, first).expect("written");
    };
    let pairs =
        [(tile(0), tile(1)), (tile(2), tile(5)), (shard(0), shard(1)), (shard(0), shard(2)), (tile(0), shard(0))];
    for (a, b) in pairs {
        swap(&a, &b);
        let faults = told(&Directory::new(&path).expect("a directory"));
        for file in [&a, &b] {
            assert!(faults.iter().any(|fault| fault.path() == Some(file)), "{}: {faults:?}", file.display());
        }
        let error = read(&Dataset::open(&path).expect("a manifest"), &decoder).expect_err("wrong files");
        assert!(error.path() == Some(&a) || error.path() == Some(&b), "{error}");
        swap(&a, &b);
    }
    for file in [tile(3), shard(1), path.join("var.parquet"), path.join("gene_order.npy"), path.join("var_names.txt")] {
        let sound = fs::read(&file).expect("a file");
        for end in [0, 1, sound.len() / 2, sound.len() - 4] {
            fs::write(&file, &sound[..end]).expect("written");
            let faults = told(&Directory::new(&path).expect("a directory"));
            assert!(faults.iter().any(|fault| fault.path() == Some(&file)), "{}, {end}: {faults:?}", file.display());
            let error = read(&Dataset::open(&path).expect("a manifest"), &decoder).expect_err("cut");
            assert_eq!(error.path(), Some(&*file), "{error}");
        }
        fs::write(&file, sound).expect("written");
    }
    read(&Dataset::open(&path).expect("a manifest"), &decoder).expect("whole again");
}

/// Tables whose footers state more than they hold end in an error that says where, and take memory by their size alone.
#[test]
fn hostile_footers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dataset");
    write(&path, || {}).expect("written");
    let manifest = path.join("manifest.json");
    let mut stated: serde_json::Value =
        serde_json::from_slice(&fs::read(&manifest).expect("a file")).expect("a manifest");
    let (shard, var) = (path.join("obs/obs_0001.parquet"), path.join("var.parquet"));
    for (i, (bytes, kind)) in thrift::hostile_footers().into_iter().enumerate() {
        stated["obs_shard_bytes"][1] = bytes.len().into();
        fs::write(&manifest, stated.to_string()).expect("written");
        fs::write(&shard, &bytes).expect("written");
        fs::write(&var, &bytes).expect("written");
        let dataset = Dataset::open(&path).expect("a manifest");
        let table = dataset.obs().expect("a schema").expect("a table of cells");
        let cell = N_CELLS / 2; // of the second shard
        let reads: [(&Path, &dyn Fn() -> Option<Error>); 2] =
            [(&shard, &|| table.codes(&["score"], &[cell]).err()), (&var, &|| dataset.var().err())];
        for (file, read) in reads {
            let (_, largest) = counting::counted(|| {
                let error = read().expect("a fault");
                assert_eq!((error.kind().name(), error.path()), (kind, Some(file)), "{i}: {error:?}");
                assert!(matches!(error.part(), Part::Footer(_)), "{i}: {error:?}");
                let footer = 4..bytes.len() as u64 - 8;
                assert!(error.offset().is_some_and(|at| footer.contains(&at)), "{i}: {error:?}");
            });
            // This thread has read the file.
            assert!(largest >= bytes.len().min(1 << 16), "footer {i}: {largest}");
            assert!(largest <= 100 * bytes.len() + (1 << 16), "footer {i} of {} bytes: {largest} at once", bytes.len());
        }
        let faults = told(&Directory::new(&path).expect("a directory"));
        for file in [&shard, &var] {
            let of_footer =
                |fault: &Error| fault.kind().name() == kind && fault.path() == Some(file) && fault.offset().is_some();
            assert!(faults.iter().any(of_footer), "{i}: {faults:?}");
        }
    }
}

/// Any name that the system takes is a name of a dataset.
#[test]
fn odd_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut names: Vec<OsString> =
        ["a b", "new\nline", "-rf", "--", "*?[x]", "\u{e9}\u{1F9EC}", "a'\"\\$(x)`", "%2e%2e", ".hidden", "x.dct"]
            .map(OsString::from)
            .into();
    names.push("n".repeat(255).into());
    #[cfg(target_os = "linux")]
    names.push(std::os::unix::ffi::OsStringExt::from_vec(vec![b'a', 0xff, 0xfe, b'/', b'b', 0x80]));
    let decoder = Decoder::new().expect("a decoder");
    for name in names {
        let path = folder.path().join(&name);
        write(&path, || {}).expect("written");
        let dataset = Dataset::open(&path).expect("a dataset");
        read(&dataset, &decoder).expect("whole");
        let cache = Cache::at(path.with_extension("cache"));
        let table = dataset.obs().expect("a table").expect("a table").cached(cache);
        let kept = table.codes(&["score"], &[3]);
        // A cache beside a name of 255 bytes has too long a name: that is an error, with the path.
        assert!(kept.is_ok() || name.len() == 255 && kept.is_err_and(|error| error.path().is_some()));
        fs::write(path.join("tiles/tile_000002.dct"), "").expect("written");
        let error = read(&dataset, &decoder).expect_err("cut");
        assert_eq!(error.path(), Some(&*path.join("tiles/tile_000002.dct")));
        assert!(!error.to_string().is_empty());
    }
    let long = folder.path().join("n".repeat(256));
    let error = write(&long, || {}).expect_err("too long");
    assert!(matches!(error.kind(), ErrorKind::Io(_)) && error.path().is_some(), "{error}");
}
