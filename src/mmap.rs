//! Mapping a file.
#![allow(unsafe_code)]

use std::path::PathBuf;

use memmap2::Mmap;

use crate::error::{Error, ErrorKind, Part};
use crate::source::{Directory, Object, Source};

/// A directory whose files are mapped into memory: only the pages that a decode touches are read, and none is copied.
///
/// Worth it for random access with the check of CRCs off; a check of a CRC touches every page in any case.
#[derive(Clone, Debug)]
pub struct MappedDirectory {
    directory: Directory,
}

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

impl Source for MappedDirectory {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        let (file, size, path) = self.directory.file(name)?;
        if size == 0 {
            return Ok(Box::new(Mapped(None))); // systems refuse to map nothing
        }
        // SAFETY: whoever made this source promised, in the contract of `new`, that the file stays as it is.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(e, path))?;
        Ok(Box::new(Mapped(Some(map))))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path(name)
    }
}

struct Mapped(Option<Mmap>);

impl Mapped {
    fn slice(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl Object for Mapped {
    fn size(&self) -> u64 {
        self.slice().len() as u64
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = self.slice().get(start..).and_then(|rest| rest.get(..out.len()));
        let end = || Error::new(ErrorKind::Io(std::io::ErrorKind::UnexpectedEof), Part::Object).at(offset);
        out.copy_from_slice(found.ok_or_else(end)?);
        Ok(())
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self.slice())
    }
}
