//! Memory for results and scratch that is meant to be reused: aligned to 64 bytes, large ones on huge pages.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::error::{Error, ErrorKind, Part};

/// From this size on a buffer is a mapping of its own.
const MAP_FROM: usize = 1 << 20;
const HUGE_PAGE: usize = 2 << 20;

/// A cache line, and the widest vector.
const ALIGN: usize = 64;

/// Which pages a large [`Buffer`] asks the system for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages where the system gives them on request (Linux, `transparent_hugepage` at `madvise` or `always`).
    /// The first touch of a buffer then costs about an eighth.
    #[default]
    Huge,
    /// Whatever the system gives by itself.
    Default,
}

/// A growable, always initialised array of plain values, aligned to 64 bytes.
///
/// It keeps its memory when it shrinks, so that a loop which reuses it stops allocating.
pub struct Buffer<T> {
    storage: Storage,
    /// Values in use.
    len: usize,
    pages: Pages,
    values: PhantomData<T>,
}

/// Memory, and the aligned part of it that the buffer uses.
struct Storage {
    memory: Memory,
    used: Range<usize>,
}

enum Memory {
    Heap(Vec<u8>),
    Map(MmapMut),
}

impl Storage {
    const EMPTY: Storage = Storage { memory: Memory::Heap(Vec::new()), used: 0..0 };

    /// Zeros; none where the system has no memory for them.
    fn new(bytes: usize, pages: Pages) -> Option<Storage> {
        // Each takes one unit more than needed, so that the buffer can start on a multiple of the unit.
        let with_slack = |unit: usize| bytes.checked_next_multiple_of(unit)?.checked_add(unit);
        if bytes >= MAP_FROM {
            let map = MmapMut::map_anon(with_slack(HUGE_PAGE)?).ok()?;
            if pages == Pages::Huge {
                // Only a hint: without it the buffer is as right, and slower on its first use.
                #[cfg(target_os = "linux")]
                let _ = map.advise(memmap2::Advice::HugePage);
            }
            return Some(Storage { used: aligned(&map, HUGE_PAGE), memory: Memory::Map(map) });
        }
        let heap = vec![0; with_slack(ALIGN)?];
        Some(Storage { used: aligned(&heap, ALIGN), memory: Memory::Heap(heap) })
    }

    fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Heap(heap) => &heap[self.used.clone()],
            Memory::Map(map) => &map[self.used.clone()],
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Heap(heap) => &mut heap[self.used.clone()],
            Memory::Map(map) => &mut map[self.used.clone()],
        }
    }
}

/// The part of `memory` that starts on a multiple of `unit` and is one unit shorter.
fn aligned(memory: &[u8], unit: usize) -> Range<usize> {
    let at = memory.as_ptr().addr();
    let start = at.next_multiple_of(unit) - at;
    start..start + memory.len() - unit
}

impl<T: Pod> Buffer<T> {
    /// An empty buffer that will ask for huge pages.
    pub fn new() -> Buffer<T> {
        Buffer::with_pages(Pages::Huge)
    }

    /// An empty buffer that will ask for such pages.
    pub fn with_pages(pages: Pages) -> Buffer<T> {
        Buffer { storage: Storage::EMPTY, len: 0, pages, values: PhantomData }
    }

    /// Makes the buffer `len` values long. Their content is unspecified: zeros or values of an earlier use.
    ///
    /// Values already there are lost if the buffer has to grow.
    ///
    /// # Panics
    /// If there is no memory for them. [`Buffer::try_resize`] says so instead.
    pub fn resize(&mut self, len: usize) {
        self.try_resize(len).expect("memory for a buffer");
    }

    /// As [`Buffer::resize`], for lengths that come from outside.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] (out of memory) if there is no memory for so many values. The buffer is then empty.
    pub fn try_resize(&mut self, len: usize) -> Result<(), Error> {
        let needed = len.checked_mul(size_of::<T>());
        if needed.is_none_or(|bytes| bytes > self.storage.bytes().len()) {
            // The old memory goes first, so that both are never held.
            (self.storage, self.len) = (Storage::EMPTY, 0);
            let storage = needed.and_then(|bytes| Storage::new(bytes, self.pages));
            let kind = ErrorKind::Io(std::io::ErrorKind::OutOfMemory);
            self.storage = storage.ok_or_else(|| Error::new(kind, Part::Buffer("memory")))?;
        }
        self.len = len;
        Ok(())
    }

    /// Values that fit without growing.
    pub fn capacity(&self) -> usize {
        self.storage.bytes().len() / size_of::<T>().max(1)
    }
}

impl<T: Pod> Default for Buffer<T> {
    fn default() -> Buffer<T> {
        Buffer::new()
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if self.len == 0 {
            return &[]; // a buffer that never grew has no aligned memory
        }
        bytemuck::cast_slice(&self.storage.bytes()[..self.len * size_of::<T>()])
    }
}

impl<T: Pod> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.len == 0 {
            return &mut [];
        }
        let bytes = self.len * size_of::<T>();
        bytemuck::cast_slice_mut(&mut self.storage.bytes_mut()[..bytes])
    }
}

impl<T: Pod> From<&[T]> for Buffer<T> {
    fn from(values: &[T]) -> Buffer<T> {
        let mut buffer = Buffer::new();
        buffer.resize(values.len());
        buffer.copy_from_slice(values);
        buffer
    }
}

impl<T: Pod> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        let mut buffer = Buffer::with_pages(self.pages);
        buffer.resize(self.len);
        buffer.copy_from_slice(self);
        buffer
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Pod + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Buffer<T>) -> bool {
        **self == **other
    }
}

/// Arrow takes the memory over without a copy.
impl<T: Pod + Send + Sync> AsRef<[u8]> for Buffer<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

/// Bytes that are zeroed beyond those asked for, where there is room.
#[cfg(any(feature = "mlt", feature = "parquet"))]
const AHEAD: usize = 1 << 15;

/// Makes `values` `len` long at least.
#[cfg(any(feature = "mlt", feature = "parquet"))]
pub(crate) fn grow<T: bytemuck::Zeroable + Copy>(values: &mut Vec<T>, len: usize) -> Result<(), Error> {
    if values.len() < len {
        let kind = ErrorKind::Io(std::io::ErrorKind::OutOfMemory);
        let more = len - values.len();
        values.try_reserve(more).map_err(|e| Error::new(kind, Part::Buffer("memory")).caused_by(e))?;
        // Some more, and not all: what is zeroed long before it is written has left the cache by then.
        let len = (len + AHEAD / size_of::<T>()).min(values.capacity());
        values.resize(len, T::zeroed());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_alignment_and_reuse() {
        for pages in [Pages::Huge, Pages::Default] {
            let mut buffer = Buffer::<i32>::with_pages(pages);
            assert!(buffer.is_empty());
            for len in [0, 1, 15, 16, 17, 1000, MAP_FROM / 4 - 1, MAP_FROM / 4, HUGE_PAGE, 3 * HUGE_PAGE / 4 + 5] {
                buffer.resize(len);
                assert_eq!(buffer.len(), len);
                assert!(len == 0 || buffer.as_ptr().addr().is_multiple_of(64));
                buffer.fill(7);
                assert!(buffer.iter().all(|&v| v == 7));
            }
            let (at, capacity) = (buffer.as_ptr(), buffer.capacity());
            buffer.resize(3);
            buffer.resize(capacity);
            assert_eq!(buffer.as_ptr(), at, "a buffer that was large enough moved");
        }
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        let mut buffer = Buffer::<u64>::new();
        buffer.resize(5);
        for len in [usize::MAX, usize::MAX / 8, usize::MAX / 8 - (1 << 20), 1 << 58] {
            let error = buffer.try_resize(len).unwrap_err();
            assert_eq!((error.kind(), buffer.len()), (ErrorKind::Io(std::io::ErrorKind::OutOfMemory), 0));
        }
        buffer.resize(7);
        assert_eq!(buffer[..], [0; 7]);
    }

    #[test]
    fn fresh_memory_is_zero() {
        let mut buffer = Buffer::<u64>::new();
        buffer.resize(1 << 18);
        assert!(buffer.iter().all(|&v| v == 0));
        assert_eq!(buffer.clone(), buffer);
    }
}
