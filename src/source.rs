//! Where the objects of a dataset come from: a directory, or any other store.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Part, Unsupported};

/// A store of named objects, such as a directory or the part of a bucket under a prefix.
///
/// Names are those that the format fixes (`manifest.json`, `tiles/tile_000000.dct`, …), with `/` between folders. No name
/// ever comes from the content of a dataset.
pub trait Source: Send + Sync {
    /// Opens an object.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with [`NotFound`](std::io::ErrorKind::NotFound) where there is none (see [`Error::io`]); any
    /// other error where it cannot be read.
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error>;

    /// What error messages call an object; the empty name stands for the whole store.
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(name)
    }
}

/// A store that several datasets, or others, share.
impl<S: Source + ?Sized> Source for Arc<S> {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        (**self).open(name)
    }

    fn path(&self, name: &str) -> PathBuf {
        (**self).path(name)
    }
}

/// An open object of a [`Source`].
pub trait Object: Send + Sync {
    /// Its bytes.
    fn size(&self) -> u64;

    /// Fills `out` from `offset` on.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; an object that ends before `out` is full is one, too.
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Error>;

    /// The whole of it, where it lies in memory already.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

/// A directory whose files are read.
///
/// Symbolic links are followed, as any program does. What is no regular file in the end (a directory, a device, a
/// pipe) is refused before it is opened, so that nothing waits for a writer.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The directory at `root`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be looked up, [`Unsupported::FileKind`] if it is no directory.
    pub fn new(root: impl Into<PathBuf>) -> Result<Directory, Error> {
        let root = root.into();
        match fs::metadata(&root) {
            Ok(found) if found.is_dir() => Ok(Directory { root }),
            Ok(_) => Err(file_kind(&root)),
            Err(error) => Err(Error::io(error, &root)),
        }
    }

    /// Opens a regular file; its size comes with it.
    pub(crate) fn file(&self, name: &str) -> Result<(File, u64, PathBuf), Error> {
        let path = self.path(name);
        let found = fs::metadata(&path).map_err(|e| Error::io(e, &path))?;
        if !found.is_file() {
            return Err(file_kind(&path));
        }
        let file = File::open(&path).map_err(|e| Error::io(e, &path))?;
        // Of the file that is open now: another may have taken its place.
        let found = file.metadata().map_err(|e| Error::io(e, &path))?;
        if !found.is_file() {
            return Err(file_kind(&path));
        }
        Ok((file, found.len(), path))
    }
}

fn file_kind(path: &Path) -> Error {
    Error::new(ErrorKind::Unsupported(Unsupported::FileKind), Part::Object).in_path(path)
}

impl Source for Directory {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        let (file, size, path) = self.file(name)?;
        Ok(Box::new(OpenFile { file, size, path }))
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }
}

struct OpenFile {
    file: File,
    size: u64,
    path: PathBuf,
}

impl Object for OpenFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let read = self.file.seek(SeekFrom::Start(offset)).and_then(|_| self.file.read_exact(out));
        read.map_err(|e| Error::io(e, &self.path).at(offset))
    }
}
