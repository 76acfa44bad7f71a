//! The cache of columns between processes: each column is fetched once, and a process that is killed harms nobody.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Int32Array, RecordBatch, StringArray};
use libtest_mimic::{Arguments, Failed, Trial};
use tilekern::deltacel::CsrView;
use tilekern::deltacel::dataset::obs::{Cache, ObsColumn, ObsSchema, ObsType, Value, getter};
use tilekern::deltacel::dataset::{Dataset, Writer};
use tilekern::{Directory, Error, Object, Source};

/// What tells a copy of this program that it is a reader: the folder that all of them share.
const FOLDER: &str = "TILEKERN_TEST_CACHE_FOLDER";
/// After how many reads of shards it stops for good; absent for never.
const STOP_AFTER: &str = "TILEKERN_TEST_CACHE_STOP";

const TILES: u64 = 6;
const ROWS: u64 = 40;

fn main() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let stop = std::env::var(STOP_AFTER).ok().and_then(|n| n.parse().ok());
        return read(Path::new(&folder), stop).expect("a column that is read");
    }
    let trials = vec![
        Trial::test("a column is fetched once", fetched_once),
        Trial::test("a process is killed half-way", killed),
        Trial::test("processes are killed at random", killed_at_random),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}

fn dataset(folder: &Path) -> Result<(), Error> {
    let columns = vec![ObsColumn::plain("number", ObsType::Int32), ObsColumn::plain("text", ObsType::String)];
    let schema = ObsSchema { columns };
    let arrow = Arc::new(schema.arrow());
    let mut writer = Writer::builder(3).tile_size(ROWS).obs(schema, 2).create(folder.join("dataset"))?;
    let n = i32::try_from(TILES * ROWS).expect("small");
    let numbers = Int32Array::from((0..n).collect::<Vec<_>>());
    let texts = StringArray::from((0..n).map(|i| format!("cell {i}")).collect::<Vec<_>>());
    let rows = RecordBatch::try_new(arrow, vec![Arc::new(numbers), Arc::new(texts)]).expect("the schema's columns");
    let indptr = vec![0; usize::try_from(n).expect("small") + 1];
    writer.push_with_obs(&CsrView { n_genes: 3, indptr: &indptr, indices: &[], values: &[] }, &rows)?;
    writer.finish().map(drop)
}

/// A source that writes down each read of a shard's columns, and stops for good after so many.
struct Logged {
    inner: Directory,
    log: PathBuf,
    stop_after: Option<usize>,
}

struct LoggedObject {
    inner: Box<dyn Object>,
    log: Option<PathBuf>,
    stop_after: Option<usize>,
}

impl Source for Logged {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        let log = name.ends_with(".parquet").then(|| self.log.clone());
        Ok(Box::new(LoggedObject { inner: self.inner.open(name)?, log, stop_after: self.stop_after }))
    }
}

impl Object for LoggedObject {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        if let Some(log) = &self.log {
            let mut file = fs::OpenOptions::new().append(true).create(true).open(log).expect("a log");
            file.write_all(b"x").expect("a log");
            let reads = file.metadata().expect("a log").len();
            if self.stop_after.is_some_and(|n| reads >= n as u64) {
                loop {
                    std::thread::sleep(Duration::from_secs(3600));
                }
            }
        }
        self.inner.read_at(offset, out)
    }
}

/// What a reader does: both columns through the cache, every value checked.
fn read(folder: &Path, stop_after: Option<usize>) -> Result<(), Error> {
    let log = folder.join(format!("log-{}", std::process::id()));
    let source = Logged { inner: Directory::new(folder.join("dataset"))?, log, stop_after };
    let dataset = Dataset::builder().open_source(Box::new(source))?;
    let table = dataset.obs()?.expect("a table").cached(Cache::at(folder.join("cache")));
    let cells: Vec<u64> = (0..TILES * ROWS).collect();
    let rows = table.codes(&["number", "text"], &cells)?;
    let (number, text) = (getter(rows.column(0)).expect("numbers"), getter(rows.column(1)).expect("texts"));
    for row in 0..rows.num_rows() {
        assert_eq!(number(row), Value::Int(row as i128));
        assert_eq!(text(row), Value::String(&format!("cell {row}")));
    }
    Ok(())
}

/// A process that reads, and is killed when nobody waits for it any more.
struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn reader(folder: &Path, stop_after: Option<usize>) -> Result<Reader, Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(FOLDER, folder);
    stop_after.map(|n| command.env(STOP_AFTER, n.to_string()));
    Ok(Reader(command.spawn()?))
}

fn succeeds(mut reader: Reader) -> Result<(), Failed> {
    let status = reader.0.wait()?;
    if status.success() { Ok(()) } else { Err(format!("a reader ended with {status}").into()) }
}

/// Reads of shards by all processes so far.
fn reads(folder: &Path) -> Result<u64, Failed> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("log-") {
            sum += entry.metadata()?.len();
        }
    }
    Ok(sum)
}

/// The files of the cache but for the locks.
fn cached(folder: &Path) -> Result<Vec<String>, Failed> {
    let Some(fingerprint) = fs::read_dir(folder.join("cache"))?.next() else { return Ok(Vec::new()) };
    let files = fs::read_dir(fingerprint?.path().join("obs"))?;
    let mut names =
        files.map(|file| Ok(file?.file_name().to_string_lossy().into_owned())).collect::<Result<Vec<_>, Failed>>()?;
    names.retain(|name| !name.ends_with(".lock"));
    names.sort();
    Ok(names)
}

const WHOLE: [&str; 2] = ["number.arrow", "text.arrow"];

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, expected {expected:?}").into()) }
}

fn fetched_once() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    dataset(folder.path())?;
    let readers = (0..6).map(|_| reader(folder.path(), None)).collect::<Result<Vec<_>, Failed>>()?;
    readers.into_iter().try_for_each(succeeds)?;
    expect("files", cached(folder.path())?, WHOLE.map(str::to_owned).to_vec())?;
    // Each column of each tile once. Several processes may have shared the work, and each has read the footers of the
    // three shards at most.
    let found = reads(folder.path())?;
    let (least, most) = (2 * TILES + 3, 2 * TILES + 2 * 3);
    if !(least..=most).contains(&found) {
        return Err(format!("{found} reads, expected {least} to {most}").into());
    }
    succeeds(reader(folder.path(), None)?)?;
    expect("reads of a process that comes later", reads(folder.path())?, found)
}

fn killed() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    dataset(folder.path())?;
    // It has some tiles of the first column, and the lock.
    let first = reader(folder.path(), Some(5))?;
    let patience = Instant::now();
    while reads(folder.path())? < 5 {
        if patience.elapsed() > Duration::from_secs(60) {
            return Err("the first reader does not read".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    expect("files while it works", cached(folder.path())?, vec!["number.arrow.tmp".to_owned()])?;
    let mut second = reader(folder.path(), None)?;
    std::thread::sleep(Duration::from_millis(300));
    expect("the second one waits", second.0.try_wait()?.is_none(), true)?;
    expect("reads while it waits", reads(folder.path())?, 5)?;
    drop(first);
    succeeds(second)?;
    expect("files", cached(folder.path())?, WHOLE.map(str::to_owned).to_vec())
}

fn killed_at_random() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    dataset(folder.path())?;
    for round in 0..12u64 {
        let _ = fs::remove_dir_all(folder.path().join("cache"));
        let mut readers = (0..2).map(|_| reader(folder.path(), None)).collect::<Result<Vec<_>, Failed>>()?;
        std::thread::sleep(Duration::from_millis(round * 2));
        drop(readers.swap_remove(0));
        readers.into_iter().try_for_each(succeeds)?;
        succeeds(reader(folder.path(), None)?)?;
        expect("files", cached(folder.path())?, WHOLE.map(str::to_owned).to_vec())?;
    }
    Ok(())
}
