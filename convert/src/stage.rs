//! The directory in which a conversion works: what is done stays there, so that it can go on after an interruption.
//!
//! ```text
//! OUT.partial/journal.json     what is converted and how
//!             lock-0           held while a process works on part 0
//!             counts-0.json    what the first pass over part 0 found
//!             cells/0/         part 0 scattered over files (--shuffle)
//!             scratch/0/       temporary files of inputs; of no use to another process
//!             tiles/           tiles that are done
//!             dataset/         the dataset when it is put together, renamed to OUT when it is whole
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tilekern::deltacel::Tile;

use crate::{Error, ErrorKind, Progress, Result};

const JOURNAL: &str = "journal.json";

pub struct Stage {
    root: PathBuf,
    /// Which part this process works on.
    part: u32,
    /// Held until the process ends, whatever ends it.
    _lock: File,
}

impl Stage {
    /// Where a conversion to `output` works.
    pub fn path_for(output: &Path) -> PathBuf {
        let mut name = output.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        output.with_file_name(name)
    }

    /// Starts, or goes on.
    ///
    /// `journal` is what is converted and how: a directory with another one belongs to another conversion.
    pub fn open(root: PathBuf, part: u32, go_on: bool, journal: &str) -> Result<Stage> {
        let fault = |error| Error::io(error, &root);
        let refuse = |kind, message: &str| Err(Error::new(kind, message).in_path(&root));
        match fs::create_dir(&root) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !root.is_dir() => {
                return refuse(
                    ErrorKind::Unsupported,
                    "is a file, where a directory of that name is needed; move it away",
                );
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && go_on => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let message = "a conversion that was interrupted, or one that is running; --resume goes on with it, \
                               else remove this directory";
                return refuse(ErrorKind::Unsupported, message);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return refuse(ErrorKind::Io, "the folder in which to write it does not exist; create it first");
            }
            Err(error) => return Err(fault(error)),
        }
        let lock = root.join(format!("lock-{part}"));
        let held = File::options().create(true).append(true).open(&lock).map_err(|error| Error::io(error, &lock))?;
        match held.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return refuse(ErrorKind::Unsupported, "another process works on it"),
            // Not every file system of a cluster has locks; the names of parts keep their processes apart.
            Err(fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(fs::TryLockError::Error(error)) => return Err(Error::io(error, &lock)),
        }
        let stage = Stage { root, part, _lock: held };
        let path = stage.root.join(JOURNAL);
        match fs::read_to_string(&path) {
            Ok(found) if found == journal => {}
            Ok(found) => {
                return Err(Error::new(ErrorKind::Inconsistent, difference(&found, journal)).in_path(path));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                stage.check_new()?;
                stage.put(JOURNAL, journal.as_bytes())?;
            }
            Err(error) => return Err(Error::io(error, path)),
        }
        for folder in ["tiles", "scratch", "cells"] {
            let path = stage.root.join(folder);
            fs::create_dir_all(&path).map_err(|error| Error::io(error, path))?;
        }
        stage.clear_scratch()?;
        Ok(stage)
    }

    /// What a process that was killed left, if there is anything; whatever it was about. What something else left is not
    /// touched.
    pub fn left(root: PathBuf, part: u32) -> Result<Option<Stage>> {
        let path = root.join(JOURNAL);
        match fs::read_to_string(&path) {
            Ok(journal) if !is_ours(&root, &journal) => Ok(None),
            Ok(journal) => Stage::open(root, part, true, &journal).map(Some),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(Error::io(error, path)),
        }
    }

    /// Passes a directory that nobody else uses: at the end it is removed with all that is in it.
    fn check_new(&self) -> Result<()> {
        let fault = |error| Error::io(error, &self.root);
        for entry in fs::read_dir(&self.root).map_err(fault)? {
            let name = entry.map_err(fault)?.file_name();
            let name = name.to_string_lossy();
            if !name.starts_with("lock-") && !name.starts_with(JOURNAL) {
                let _ = fs::remove_file(self.root.join(format!("lock-{}", self.part))); // ours, and in the way there
                let message = format!("is not a conversion's directory, for it holds {name}; move it away");
                return Err(Error::new(ErrorKind::Unsupported, message).in_path(&self.root));
            }
        }
        Ok(())
    }

    /// The directory for temporary files of this process.
    pub fn scratch(&self) -> PathBuf {
        self.root.join("scratch").join(self.part.to_string())
    }

    pub fn clear_scratch(&self) -> Result<()> {
        remove(&self.scratch())
    }

    /// Where a part of the cells is scattered over files.
    pub fn cells(&self, part: u32) -> PathBuf {
        self.root.join("cells").join(part.to_string())
    }

    /// Where a tile is when it is done.
    pub fn tile(&self, tile: u64) -> PathBuf {
        self.root.join(tile_name(tile))
    }

    /// Whether a tile is done and whole.
    pub fn has_sound_tile(&self, tile: u64) -> bool {
        fs::read(self.tile(tile)).is_ok_and(|bytes| Tile::open(&bytes).is_ok())
    }

    /// Writes a tile: all of it, or nothing under its name.
    pub fn put_tile(&self, tile: u64, bytes: &[u8]) -> Result<()> {
        self.put(&tile_name(tile), bytes)
    }

    pub fn put_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(value).map_err(|error| Error::io(error.into(), self.root.join(name)))?;
        self.put(name, &text)
    }

    /// What was written by [`Stage::put_json`], or none.
    pub fn json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let path = self.root.join(name);
        match fs::read(&path) {
            Ok(text) => {
                let parsed = serde_json::from_slice(&text).map_err(|error| {
                    Error::new(ErrorKind::Syntax, error.to_string()).hint("remove the directory and begin again")
                });
                parsed.map(Some).map_err(|error| error.in_path(path))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(error, path)),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.root.join(name);
        let temporary = self.root.join(format!("{name}.{}.tmp", self.part));
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary); // the first error is the one to tell
            Error::io(error, &path)
        })
    }

    /// Where the dataset is put together.
    pub fn dataset_path(&self) -> PathBuf {
        self.root.join("dataset")
    }

    /// Where the dataset is put together, with nothing in it. Tiles of an attempt that was interrupted are taken back from there.
    pub fn dataset(&self) -> Result<PathBuf> {
        let dataset = self.dataset_path();
        let back = || -> io::Result<()> {
            let tiles = dataset.join("tiles");
            if tiles.is_dir() {
                for entry in fs::read_dir(&tiles)? {
                    let name = entry?.file_name();
                    if Path::new(&name).extension().is_some_and(|end| end == "dct") {
                        fs::rename(tiles.join(&name), self.root.join("tiles").join(&name))?;
                    }
                }
            }
            Ok(())
        };
        back().map_err(|error| Error::io(error, &dataset))?;
        remove(&dataset)?;
        Ok(dataset)
    }

    /// Gives the dataset its name, and removes everything else.
    pub fn commit(self, output: &Path, progress: &dyn Progress) -> Result<()> {
        let mut rename = || fs::rename(self.dataset_path(), output).map_err(|error| Error::io(error, output));
        progress.complete(&mut rename)?;
        sync_parent(output);
        self.discard()
    }

    /// Removes the directory; the journal last, since without it nothing can go on.
    pub fn discard(self) -> Result<()> {
        let fault = |error| Error::io(error, &self.root);
        for entry in fs::read_dir(&self.root).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if entry.file_type().map_err(fault)?.is_dir() {
                remove(&entry.path())?;
            } else if name != JOURNAL && !name.starts_with("lock-") {
                fs::remove_file(entry.path()).map_err(fault)?;
            }
        }
        remove(&self.root)
    }

    /// Whether nothing is in the directory but what this process put there when it opened it.
    pub fn is_untouched(&self) -> bool {
        let lock = format!("lock-{}", self.part);
        let is_empty = |path: &Path| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        let is_ours = |entry: io::Result<fs::DirEntry>| {
            entry.is_ok_and(|entry| match &*entry.file_name().to_string_lossy() {
                "tiles" | "cells" => is_empty(&entry.path()),
                // Other processes have their own folders in it.
                "scratch" => fs::read_dir(entry.path()).is_ok_and(|mut entries| {
                    entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == *self.part.to_string()))
                }),
                name => name == JOURNAL || name == lock,
            })
        };
        fs::read_dir(&self.root).is_ok_and(|mut entries| entries.all(is_ours))
    }

    /// Whether tiles are there.
    pub fn has_tiles(&self) -> bool {
        let folder = fs::read_dir(self.root.join("tiles"));
        folder.is_ok_and(|mut entries| entries.next().is_some()) || self.root.join("dataset").is_dir()
    }
}

/// Whether a directory is one of a [`Stage`], by its journal and the names in it.
fn is_ours(root: &Path, journal: &str) -> bool {
    let journal = serde_json::from_str::<serde_json::Value>(journal);
    let known = |name: &str| {
        ["tiles", "scratch", "cells", "dataset"].contains(&name)
            || ["lock-", "counts-", JOURNAL].iter().any(|start| name.starts_with(start))
    };
    journal.is_ok_and(|journal| journal.get("tilekern").is_some())
        && fs::read_dir(root).is_ok_and(|mut entries| {
            entries.all(|entry| entry.is_ok_and(|entry| known(&entry.file_name().to_string_lossy())))
        })
}

/// Makes a name survive a power cut. Not every file system can; what has the name is safe.
fn sync_parent(path: &Path) {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(parent) = File::open(parent) {
        let _ = parent.sync_all();
    }
}

/// Moves a file over another one or an empty directory, or to where there is nothing: at once, on one file system or across two.
pub fn place(from: &Path, to: &Path) -> Result<()> {
    let fault = |error| Error::io(error, to);
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(fault)?;
    }
    if to.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::remove_dir(to).map_err(fault)?;
    }
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let mut temporary = to.as_os_str().to_owned();
            temporary.push(".tmp");
            let temporary = PathBuf::from(temporary);
            let copied = fs::copy(from, &temporary).and_then(|_| File::open(&temporary)?.sync_all());
            copied.and_then(|()| fs::rename(&temporary, to)).map_err(|error| {
                let _ = fs::remove_file(&temporary); // the first error is the one to tell
                fault(error)
            })?;
        }
        renamed => renamed.map_err(fault)?,
    }
    sync_parent(to);
    Ok(())
}

/// The name of a tile's file in a dataset, or among those that are done.
pub fn tile_name(tile: u64) -> String {
    format!("tiles/tile_{tile:06}.dct")
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(error, path)),
        _ => Ok(()),
    }
}

/// Why a conversion cannot go on where another journal is, and what to do.
fn difference(found: &str, wanted: &str) -> String {
    let [there, now] = [found, wanted].map(|text| serde_json::from_str::<Value>(text).unwrap_or_default());
    let version = |journal: &Value| [&journal["tilekern"], &journal["journal"]].map(Value::to_string);
    if !there.is_object() || there.get("tilekern").is_none() {
        return "is damaged; remove the directory and begin again".to_owned();
    }
    if version(&there) != version(&now) {
        return "is of a conversion that another version of tilekern began; go on with that one, or remove the directory \
                and begin again"
            .to_owned();
    }
    let inputs = |journal: &Value| journal["inputs"].as_array().cloned().unwrap_or_default();
    let changed = inputs(&there).into_iter().zip(inputs(&now)).find(|(there, now)| there != now);
    if let Some((there, now)) = changed
        && there["path"] == now["path"]
    {
        let path = now["path"].as_str().unwrap_or_default();
        return format!(
            "the input {path} has changed since this conversion began; remove the directory and begin again, or bring \
             back the input as it was, with its time"
        );
    }
    let mut lines = found.lines().zip(wanted.lines()).filter(|(found, wanted)| found != wanted);
    let tidy = |line: &str| line.trim().trim_end_matches(',').to_owned();
    let what = lines.next().map_or_else(
        || "another number of inputs or options".to_owned(),
        |(found, wanted)| format!("{} there, {} now", tidy(found), tidy(wanted)),
    );
    format!("belongs to another conversion: {what}; use the same inputs and options, or remove the directory")
}
