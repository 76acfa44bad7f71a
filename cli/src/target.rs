//! Results in files and directories: whole, or not there at all.
//!
//! They are made under a temporary name beside the final one and renamed when they are complete. An interrupt (Ctrl-C,
//! SIGTERM, SIGHUP) removes what is not complete, and ends the process with code 130. Behind the last step it changes
//! nothing any more.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tilekern::Error;

use crate::console::say;
use crate::fault::{Fault, Stop};

/// The exit code after an interrupt, as shells have it for SIGINT.
const INTERRUPTED: i32 = 130;

/// What is being made at the moment: a process makes one thing at a time.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);
/// Whether the result is complete; changes while [`UNFINISHED`] is locked.
static COMPLETE: AtomicBool = AtomicBool::new(false);
/// What an interrupt leaves.
static LEFT: Mutex<&str> = Mutex::new("nothing was left half-written");

/// Cleans up and ends the process when it is interrupted from now on.
pub fn handle_interrupts() {
    let mut told = false;
    let handler = move || {
        let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        // All was done, which is what the exit code says. A second one ends a process that waits for its reader.
        if COMPLETE.load(Ordering::SeqCst) && !std::mem::replace(&mut told, true) {
            return;
        }
        // Never unlocked again: what is complete by now stays, and nothing else gets its final name.
        if let Some(path) = &*unfinished {
            remove(path);
        }
        say(format_args!("interrupted; {}", LEFT.lock().unwrap_or_else(PoisonError::into_inner)));
        std::process::exit(INTERRUPTED);
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        say(format_args!("Ctrl-C will not clean up: {error}"));
    }
}

/// What to say after an interrupt from now on.
pub fn if_interrupted(left: &'static str) {
    *LEFT.lock().unwrap_or_else(PoisonError::into_inner) = left;
}

/// Takes a step that completes the result: an interrupt comes before it, or is too late.
pub fn complete<E>(step: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    let _held = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = step();
    COMPLETE.store(taken.is_ok(), Ordering::SeqCst);
    taken
}

/// Only the result is to be told yet, or a fault. If an interrupt is ending the process, this waits for its end, so that
/// nothing is told that only comes from its clean-up.
pub fn settle() {
    let Ok(()) = complete(|| Ok::<(), std::convert::Infallible>(()));
}

/// A result that is being made. Dropped before [`Target::commit`], it leaves nothing.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    /// None where `path` is written as it is: a pipe, a device.
    temporary: Option<PathBuf>,
}

impl Target {
    /// A file. One that exists is replaced when the new one is complete.
    pub fn file(path: &Path) -> Result<(Target, File), Fault> {
        let fault = |e| made(e, path);
        // The file that a link points to is meant, not the link.
        let named = || fs::read_link(path).map_or_else(|_| path.to_owned(), |link| parent(path).join(link));
        let path = fs::canonicalize(path).unwrap_or_else(|_| named());
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Err(fault(ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(&path).map_err(fault)?;
                Ok((Target { path, temporary: None }, file))
            }
            found => {
                let create = |temporary: &Path| OpenOptions::new().write(true).create_new(true).open(temporary);
                let (temporary, file) = unused(&path, create).map_err(fault)?;
                if let Ok(found) = found {
                    // Who could read the old file can read the new one, and nobody else.
                    let _ = file.set_permissions(found.permissions());
                }
                Ok((Target { path, temporary: Some(temporary) }, file))
            }
        }
    }

    /// A directory, which must not exist yet. It is there from now on, empty, at [`Target::working_path`].
    pub fn directory(path: &Path) -> Result<Target, Fault> {
        if path.symlink_metadata().is_ok() {
            return Err(Fault::new("unsupported", path, "exists already; choose another name or remove it"));
        }
        let (temporary, ()) = unused(path, |temporary| fs::create_dir(temporary)).map_err(|e| made(e, path))?;
        Ok(Target { path: path.to_owned(), temporary: Some(temporary) })
    }

    /// Where the result is for now.
    pub fn working_path(&self) -> &Path {
        self.temporary.as_deref().unwrap_or(&self.path)
    }

    /// Gives a complete file its name. Returns its size in bytes.
    pub fn commit_file(self, file: &File) -> Result<u64, Fault> {
        // The bytes reach the disk before the name does; a pipe or device has no disk.
        let synced = if self.temporary.is_some() { file.sync_all() } else { Ok(()) };
        let len = synced.and_then(|()| file.metadata()).map_err(|e| Fault::from(Error::io(e, &self.path)))?.len();
        self.commit()?;
        Ok(len)
    }

    /// Gives a complete result its name. What it holds must have reached the disk.
    pub fn commit(mut self) -> Result<(), Fault> {
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        let renamed = fs::rename(&temporary, &self.path);
        if renamed.is_err() {
            remove(&temporary);
        } else if let Ok(directory) = File::open(parent(&self.path)) {
            // So that the new name survives a power cut. Not every file system can; the result itself is safe.
            let _ = directory.sync_all();
        }
        *unfinished = None;
        COMPLETE.store(renamed.is_ok(), Ordering::SeqCst);
        renamed.map_err(|e| Error::io(e, &self.path).into())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
            remove(temporary);
            *unfinished = None;
        }
    }
}

/// What to say of a result that cannot be made at `path`.
fn made(error: io::Error, path: &Path) -> Fault {
    match error.kind() {
        ErrorKind::NotFound => {
            Fault::new("io", path, "the folder in which to write it does not exist; create it first")
        }
        _ => Error::io(error, path).into(),
    }
}

/// The folder in which it lies.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses to write what is read.
pub fn refuse_input(input: &Path, output: &Path) -> Result<(), Stop> {
    // One that does not exist yet lies where its folder does.
    let absolute = |path: &Path| fs::canonicalize(path).ok();
    let output = absolute(output).or_else(|| absolute(parent(output)));
    if let (Some(input), Some(output)) = (absolute(input), output)
        && output.starts_with(&input)
    {
        let what = if input.is_dir() { "lies within the dataset" } else { "is the input" };
        return Err(Stop::Usage(format!("the output {what}: name another file")));
    }
    Ok(())
}

/// Creates something under a hidden name beside `path` that is not in use, and notes it as unfinished.
fn unused<T>(path: &Path, create: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    let Some(name) = path.file_name() else { return Err(ErrorKind::InvalidInput.into()) };
    let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    for n in 0.. {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{n}.tmp", std::process::id()));
        let temporary = parent(path).join(hidden);
        match create(&temporary) {
            Ok(made) => {
                *unfinished = Some(temporary.clone());
                COMPLETE.store(false, Ordering::SeqCst);
                return Ok((temporary, made));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists && n < 100 => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("the loop ends by itself")
}

/// Removes a file, or a directory to which another thread may still be adding.
fn remove(path: &Path) {
    for _ in 0..100 {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match removed {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => thread::sleep(Duration::from_millis(10)),
            _ => return,
        }
    }
}
