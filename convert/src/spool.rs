//! Records scattered over temporary files, so that what does not fit in memory can be read again in another order.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use zstd::bulk::Compressor;

use crate::{Error, Result};

/// Fast rather than small.
const LEVEL: i32 = 1;

/// Numbered temporary files in one directory, written side by side. Each is a chain of blocks, a length and a zstd frame.
pub struct Spool {
    folder: PathBuf,
    compressor: Compressor<'static>,
    frame: Vec<u8>,
    buffers: Vec<Vec<u8>>,
    /// Bytes of a buffer that is written out.
    block: usize,
}

impl Spool {
    /// Makes the directory, or empties it, for so many files whose buffers take about `memory` bytes in all.
    pub fn create(folder: PathBuf, files: usize, memory: usize) -> Result<Spool> {
        let made = match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => fs::create_dir_all(&folder),
        };
        made.map_err(|error| Error::io(error, &folder))?;
        let compressor = Compressor::new(LEVEL).map_err(|error| Error::io(error, &folder))?;
        let block = (memory / files.max(1)).clamp(4 << 10, 1 << 20);
        Ok(Spool { folder, compressor, frame: Vec::new(), buffers: vec![Vec::new(); files], block })
    }

    /// Adds a record to a file. It is never cut: it lies in one block.
    pub fn append(&mut self, file: usize, record: &[&[u8]]) -> Result<()> {
        let buffer = &mut self.buffers[file];
        record.iter().for_each(|part| buffer.extend_from_slice(part));
        if buffer.len() >= self.block { self.write(file) } else { Ok(()) }
    }

    /// Writes out what is buffered.
    pub fn finish(mut self) -> Result<()> {
        (0..self.buffers.len()).try_for_each(|file| self.write(file))
    }

    fn write(&mut self, file: usize) -> Result<()> {
        let buffer = &mut self.buffers[file];
        if buffer.is_empty() {
            return Ok(());
        }
        let path = name(&self.folder, file);
        let mut put = || -> io::Result<()> {
            self.frame.clear();
            self.frame.resize(8 + zstd::zstd_safe::compress_bound(buffer.len()), 0);
            let len = self.compressor.compress_to_buffer(buffer, &mut self.frame[8..])?;
            self.frame.truncate(8 + len);
            let small = |n: usize| u32::try_from(n).map_err(|_| io::ErrorKind::FileTooLarge);
            self.frame[..4].copy_from_slice(&small(len)?.to_le_bytes());
            self.frame[4..8].copy_from_slice(&small(buffer.len())?.to_le_bytes());
            OpenOptions::new().append(true).create(true).open(&path)?.write_all(&self.frame)
        };
        put().map_err(|error| Error::io(error, &path))?;
        buffer.clear();
        Ok(())
    }
}

fn name(folder: &Path, file: usize) -> PathBuf {
    folder.join(format!("{file:03}.spool"))
}

/// Reads the blocks of one file, in the order in which they were written.
pub struct Blocks {
    path: PathBuf,
    file: Option<BufReader<File>>,
    frame: Vec<u8>,
    block: Vec<u8>,
}

impl Blocks {
    /// Opens a file of a spool; one that got no record has no block.
    pub fn open(folder: &Path, file: usize) -> Result<Blocks> {
        let path = name(folder, file);
        let file = match File::open(&path) {
            Ok(file) => Some(BufReader::with_capacity(1 << 16, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(error, &path)),
        };
        Ok(Blocks { path, file, frame: Vec::new(), block: Vec::new() })
    }

    /// The next block: whole records.
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        let (frame, block) = (&mut self.frame, &mut self.block);
        let mut read = || -> io::Result<bool> {
            let mut head = [0; 8];
            match file.read(&mut head[..1])? {
                0 => return Ok(false),
                _ => file.read_exact(&mut head[1..])?,
            }
            let [len, content] = [&head[..4], &head[4..]]
                .map(|bytes| bytes.iter().rev().fold(0, |n: usize, &byte| n << 8 | usize::from(byte)));
            frame.resize(len, 0);
            file.read_exact(frame)?;
            block.resize(content, 0);
            let found = zstd::bulk::decompress_to_buffer(frame, block)?;
            if found == content { Ok(true) } else { Err(io::ErrorKind::InvalidData.into()) }
        };
        match read() {
            Ok(true) => Ok(Some(&self.block)),
            Ok(false) => Ok(None),
            Err(error) => Err(Error::io(error, &self.path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("a");
        let mut spool = Spool::create(at.clone(), 3, 1).unwrap();
        for i in 0..10_000_u32 {
            spool.append(usize::from(i % 3 == 0) * 2, &[&i.to_le_bytes(), &[7]]).unwrap();
        }
        spool.finish().unwrap();
        let read = |file| {
            let (mut blocks, mut all) = (Blocks::open(&at, file).unwrap(), Vec::new());
            while let Some(block) = blocks.next().unwrap() {
                assert_eq!(block.len() % 5, 0);
                all.extend(block.as_chunks::<5>().0.iter().map(|r| u32::from_le_bytes([r[0], r[1], r[2], r[3]])));
            }
            all
        };
        assert_eq!(read(2), (0..10_000).filter(|i| i % 3 == 0).collect::<Vec<_>>());
        assert!(read(1).is_empty());
        assert_eq!(read(0).len(), 6666);
        let path = name(&at, 0);
        let len = fs::metadata(&path).unwrap().len();
        File::options().write(true).open(&path).unwrap().set_len(len - 1).unwrap();
        let mut blocks = Blocks::open(&at, 0).unwrap();
        let error = loop {
            match blocks.next() {
                Ok(Some(_)) => {}
                other => break other.unwrap_err(),
            }
        };
        assert_eq!(error.path(), Some(&*path));
    }
}
