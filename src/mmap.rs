//! Mapping a file.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::Deref;
use std::path::Path;
#[cfg(feature = "dataset")]
use std::path::PathBuf;

use memmap2::Mmap;

use crate::error::Error;
#[cfg(feature = "dataset")]
use crate::error::{ErrorKind, Part};
#[cfg(feature = "dataset")]
use crate::source::{Directory, Object, Source};

/// The bytes of one file, mapped into memory: only what is looked at is read, and nothing is copied.
#[derive(Debug)]
pub struct MappedFile(Option<Mmap>);

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Safety
    /// While this exists, nobody may change or shorten the file, in this process or another: its bytes are borrowed as
    /// plain memory. (Another process that shortens it would also end this one by a signal.) Replacing it by another file
    /// through a rename is harmless.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), also of what is no file.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<MappedFile, Error> {
        let path = path.as_ref();
        let io = |error| Error::io(error, path);
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            return Ok(MappedFile(None)); // systems refuse to map nothing
        }
        // SAFETY: whoever called this promised that the file stays as it is.
        Ok(MappedFile(Some(unsafe { Mmap::map(&file) }.map_err(io)?)))
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// A directory whose files are mapped into memory: only the pages that a decode touches are read, and none is copied.
///
/// Worth it for random access with the check of CRCs off; a check of a CRC touches every page in any case.
#[cfg(feature = "dataset")]
#[derive(Clone, Debug)]
pub struct MappedDirectory {
    directory: Directory,
}

#[cfg(feature = "dataset")]
impl MappedDirectory {
    /// The directory at `root`.
    ///
    /// # Safety
    /// While anything reads from this source, nobody may change or shorten the files below `root`, in this process or
    /// another: their bytes are borrowed as plain memory. (Another process that shortens a file would also end this
    /// one by a signal.) Replacing a file by another through a rename is harmless.
    ///
    /// # Errors
    /// As [`Directory::new`].
    pub unsafe fn new(root: impl Into<PathBuf>) -> Result<MappedDirectory, Error> {
        Ok(MappedDirectory { directory: Directory::new(root)? })
    }
}

#[cfg(feature = "dataset")]
impl Source for MappedDirectory {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        let (file, size, path) = self.directory.file(name)?;
        if size == 0 {
            return Ok(Box::new(MappedFile(None))); // systems refuse to map nothing
        }
        // SAFETY: whoever made this source promised, in the contract of `new`, that the file stays as it is.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(e, path))?;
        Ok(Box::new(MappedFile(Some(map))))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path(name)
    }
}

#[cfg(feature = "dataset")]
impl Object for MappedFile {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = self.get(start..).and_then(|rest| rest.get(..out.len()));
        let end = || Error::new(ErrorKind::Io(std::io::ErrorKind::UnexpectedEof), Part::Object).at(offset);
        out.copy_from_slice(found.ok_or_else(end)?);
        Ok(())
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}
