//! zarr stores of versions 2 and 3 in directories: groups, arrays, and rectangles of their elements.
//!
//! Source: the zarr specifications 2 and 3.1; codecs as the zarr and numcodecs packages of Python write them.

mod absent;
mod blosc;
mod codec;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hdf5_reader::{ByteOrder, Datatype, EnumMember, StringEncoding, StringPadding, StringSize};
use serde_json::{Map, Value};

use crate::{Error, ErrorKind, Result};
pub use absent::Known;
use absent::{Absent, Place};
use codec::{Codec, Trouble};

/// Bytes of a file of metadata, at most.
const MAX_METADATA: u64 = 64 << 20;

/// Bytes that are read at once, at most, unless chunks may have more: what a matrix is read in, or a table's texts of 1 KiB.
const MAX_READ: usize = 64 << 20;

/// What to do about damage.
const DAMAGED: &str = "the store is damaged or incomplete; copy or download it again";

/// Whether a directory is a zarr store.
pub fn is_store(path: &Path) -> bool {
    [".zgroup", ".zattrs", "zarr.json"].iter().any(|name| path.join(name).is_file())
}

/// Bytes of all files of a store, as far as they can be told.
pub fn length(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        // Not of what a link leads to.
        Ok(found) if found.is_dir() => length(&entry.path()),
        Ok(found) if found.is_file() => found.len(),
        _ => 0,
    };
    entries.flatten().map(of).fold(0, u64::saturating_add)
}

/// A group.
#[derive(Clone)]
pub struct Group {
    path: PathBuf,
    pub attributes: Map<String, Value>,
    shared: Shared,
}

/// What the parts of a store have in common.
#[derive(Clone)]
struct Shared {
    /// Bytes of a chunk, at most.
    max_chunk: usize,
    known: Known,
}

/// What a group has under a name.
pub enum Node {
    Group(Group),
    Array(Array),
}

impl Group {
    /// The root of a store whose chunks have at most so many bytes, and of which that much is known.
    pub fn root(path: &Path, max_chunk: usize, known: Known) -> Result<Group> {
        match node(path, &Shared { max_chunk, known })? {
            Some(Node::Group(group)) => Ok(group),
            _ => Err(Error::new(ErrorKind::Unsupported, "a zarr array alone; name the AnnData store that it lies in")),
        }
    }

    /// The member of that name.
    pub fn get(&self, name: &str) -> Result<Option<Node>> {
        // Names come from attributes: they must not lead out of the store.
        let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0']);
        if !name.split('/').all(plain) || name.contains(':') && cfg!(windows) {
            return Ok(None);
        }
        node(&self.path.join(name), &self.shared)
    }

    /// The names of the groups and of the arrays in it.
    pub fn names(&self) -> Result<(Vec<String>, Vec<String>)> {
        let fault = |error| Error::io(error, &self.path);
        let (mut groups, mut arrays) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.path).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let (Ok(name), true) = (entry.file_name().into_string(), entry.path().is_dir()) else { continue };
            match self.get(&name)? {
                Some(Node::Group(_)) => groups.push(name),
                Some(Node::Array(_)) => arrays.push(name),
                None => {}
            }
        }
        Ok((groups, arrays))
    }
}

/// A file of the store, if it is there. What is no regular file is refused before it is opened: nothing waits for a writer,
/// or reads a device.
fn open(path: &Path) -> Result<Option<File>> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Error::io(error, path)),
    };
    if !found.is_file() {
        return Err(Error::new(ErrorKind::Unsupported, "is no regular file as it must be in a store").in_path(path));
    }
    File::open(path).map(Some).map_err(|error| Error::io(error, path))
}

/// The bytes of a file that has at most `limit`.
fn whole(file: File, limit: usize, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|error| Error::io(error, path))?;
    if bytes.len() > limit { Err(bad(format!("a chunk has more than {limit} bytes")).in_path(path)) } else { Ok(bytes) }
}

/// A file of metadata, if it is there.
fn metadata(path: &Path) -> Result<Option<Map<String, Value>>> {
    let fault = |error| Error::io(error, path);
    let Some(file) = open(path)? else { return Ok(None) };
    let mut text = Vec::new();
    file.take(MAX_METADATA).read_to_end(&mut text).map_err(fault)?;
    // Old stores have bare NaN and Infinity as fill values, which are no JSON.
    let parsed = serde_json::from_slice(&text).or_else(|error| {
        let text = String::from_utf8_lossy(&text);
        let quoted = ["-Infinity", "Infinity", "NaN"].iter().fold(text.into_owned(), |text, word| {
            text.replace(&format!("\"fill_value\": {word}"), &format!("\"fill_value\": \"{word}\""))
        });
        serde_json::from_str(&quoted).map_err(|_| error)
    });
    match parsed {
        Ok(Value::Object(keys)) => Ok(Some(keys)),
        Ok(_) => Err(Error::new(ErrorKind::Syntax, "no JSON object").hint(DAMAGED).in_path(path)),
        Err(error) => Err(Error::new(ErrorKind::Syntax, error.to_string()).hint(DAMAGED).in_path(path)),
    }
}

/// The group or array in a directory.
fn node(path: &Path, shared: &Shared) -> Result<Option<Node>> {
    if let Some(mut found) = metadata(&path.join("zarr.json"))? {
        let attributes = match found.remove("attributes") {
            Some(Value::Object(attributes)) => attributes,
            _ => Map::new(),
        };
        if found.get("node_type").and_then(Value::as_str) == Some("group") {
            return Ok(Some(Node::Group(Group { path: path.to_owned(), attributes, shared: shared.clone() })));
        }
        let array = Array::version_3(path, &found, attributes, shared);
        return array.map(|array| Some(Node::Array(array))).map_err(|error| error.in_path(path));
    }
    let attributes = || Ok::<_, Error>(metadata(&path.join(".zattrs"))?.unwrap_or_default());
    if let Some(found) = metadata(&path.join(".zarray"))? {
        let array = Array::version_2(path, &found, attributes()?, shared);
        return array.map(|array| Some(Node::Array(array))).map_err(|error| error.in_path(path));
    }
    if metadata(&path.join(".zgroup"))?.is_some() {
        return Ok(Some(Node::Group(Group {
            path: path.to_owned(),
            attributes: attributes()?,
            shared: shared.clone(),
        })));
    }
    Ok(None)
}

/// An array.
#[derive(Clone)]
pub struct Array {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    shape: Vec<u64>,
    /// Elements of a chunk, along each dimension; of those within a shard where there are shards.
    chunk: Vec<u64>,
    shard: Option<Shard>,
    dtype: Datatype,
    /// Bytes of an element; of a text none.
    size: usize,
    /// The last dimension changes slowest.
    fortran: bool,
    /// What stands before the numbers in the names of chunks, and between them.
    prefix: &'static str,
    separator: String,
    /// In the order in which they are undone.
    codecs: Vec<Codec>,
    fill: Vec<u8>,
    attributes: Map<String, Value>,
    shared: Shared,
    /// The chunk that was needed last.
    last: Mutex<Option<(Vec<u64>, Arc<Chunk>)>>,
}

/// Chunks of a shard, in one file with an index.
struct Shard {
    /// How many, along each dimension.
    chunks: Vec<u64>,
    at_end: bool,
    index: Vec<Codec>,
}

/// What a chunk holds, all of it as if it were whole.
struct Chunk {
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Option<Vec<usize>>,
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Syntax, message).hint(DAMAGED)
}

fn unsupported(what: &str, advice: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} is not supported")).hint(advice)
}

/// What to do where an array is stored in a way that is not supported.
const REWRITE: &str = "write the store again with AnnData.write_zarr";

fn lengths(list: &Value) -> Option<Vec<u64>> {
    list.as_array()?.iter().map(Value::as_u64).collect()
}

impl Array {
    fn version_2(
        path: &Path,
        found: &Map<String, Value>,
        attributes: Map<String, Value>,
        shared: &Shared,
    ) -> Result<Array> {
        let key = |name: &str| found.get(name).unwrap_or(&Value::Null);
        let shape = lengths(key("shape")).ok_or_else(|| bad("no shape"))?;
        let chunk = lengths(key("chunks")).ok_or_else(|| bad("no sizes of chunks"))?;
        let filters: &[Value] = key("filters").as_array().map_or(&[], Vec::as_slice);
        let is_text = filters.iter().any(|filter| codec::name(filter) == "vlen-utf8");
        if let Some(other) = filters.iter().find(|filter| codec::name(filter) != "vlen-utf8") {
            return Err(unsupported(&format!("the filter {:?}", codec::name(other)), REWRITE));
        }
        let dtype = if is_text { text() } else { dtype_2(key("dtype")) };
        let mut codecs = Vec::new();
        if !key("compressor").is_null() {
            let name = codec::name(key("compressor"));
            codecs.push(Codec::of(name).ok_or_else(|| unsupported(&format!("the compression {name:?}"), REWRITE))?);
        }
        Array::new(Inner {
            path: path.to_owned(),
            size: size(&dtype),
            fill: fill(&dtype, key("fill_value"))?,
            dtype,
            shape,
            chunk,
            shard: None,
            fortran: key("order").as_str() == Some("F"),
            prefix: "",
            separator: key("dimension_separator").as_str().unwrap_or(".").to_owned(),
            codecs,
            attributes,
            shared: shared.clone(),
            last: Mutex::new(None),
        })
    }

    fn version_3(
        path: &Path,
        found: &Map<String, Value>,
        attributes: Map<String, Value>,
        shared: &Shared,
    ) -> Result<Array> {
        let key = |name: &str| found.get(name).unwrap_or(&Value::Null);
        let shape = lengths(key("shape")).ok_or_else(|| bad("no shape"))?;
        let grid = key("chunk_grid");
        if grid["name"] != "regular" {
            return Err(unsupported(&format!("the chunk grid {}", grid["name"]), REWRITE));
        }
        let whole = lengths(&grid["configuration"]["chunk_shape"]).ok_or_else(|| bad("no sizes of chunks"))?;
        let encoding = key("chunk_key_encoding");
        let (prefix, usual) = match encoding["name"].as_str() {
            Some("default") | None => ("c", "/"),
            Some("v2") => ("", "."),
            Some(other) => return Err(unsupported(&format!("the names of chunks {other:?}"), REWRITE)),
        };
        let separator = encoding["configuration"]["separator"].as_str().unwrap_or(usual).to_owned();
        let mut chain = Chain::of(key("codecs"), shape.len())?;
        let (mut chunk, mut shard) = (whole, None);
        if let Some(inside) = chain.sharding.take() {
            let (small, index) = (lengths(&inside["chunk_shape"]), Chain::of(&inside["index_codecs"], 1)?);
            let small = small.filter(|small| small.len() == chunk.len()).ok_or_else(|| bad("no sizes in shards"))?;
            let fits = chunk.iter().zip(&small).all(|(whole, small)| *small > 0 && whole.is_multiple_of(*small));
            if !fits || !chain.codecs.is_empty() {
                return Err(unsupported("this way of sharding", REWRITE));
            }
            let chunks = chunk.iter().zip(&small).map(|(whole, small)| whole / small).collect();
            let at_end = inside["index_location"].as_str() != Some("start");
            shard = Some(Shard { chunks, at_end, index: index.codecs });
            chain = Chain::of(&inside["codecs"], shape.len())?;
            if chain.sharding.is_some() || chain.fortran {
                return Err(unsupported("this way of sharding", REWRITE));
            }
            chunk = small;
        }
        let dtype = dtype_3(key("data_type"), chain.big_endian, chain.text);
        Array::new(Inner {
            path: path.to_owned(),
            size: size(&dtype),
            fill: fill(&dtype, key("fill_value"))?,
            dtype,
            shape,
            chunk,
            shard,
            fortran: chain.fortran,
            prefix,
            separator,
            codecs: chain.codecs,
            attributes,
            shared: shared.clone(),
            last: Mutex::new(None),
        })
    }

    fn new(inner: Inner) -> Result<Array> {
        if ![".", "/"].contains(&inner.separator.as_str()) {
            // It becomes a part of paths.
            return Err(bad(format!("names of chunks cannot have {:?} between their numbers", inner.separator)));
        }
        if inner.chunk.len() != inner.shape.len() || inner.chunk.contains(&0) && !inner.shape.contains(&0) {
            return Err(bad("the shape and the sizes of chunks do not fit each other"));
        }
        Ok(Array { inner: Arc::new(inner) })
    }

    pub fn shape(&self) -> &[u64] {
        &self.inner.shape
    }

    pub fn dtype(&self) -> &Datatype {
        &self.inner.dtype
    }

    pub fn attributes(&self) -> &Map<String, Value> {
        &self.inner.attributes
    }

    /// How many files of chunks are not there: all of their elements are the one to fill with, or they were lost.
    pub fn absent(&self) -> u64 {
        self.files().files
    }

    /// The elements of a list whose files are not there.
    pub fn absent_elements(&self) -> Vec<Range<u64>> {
        let (each, all) = (self.per_file().first().copied().unwrap_or(1), self.shape().first().copied().unwrap_or(1));
        let bound = |file: u64| file.saturating_mul(each).min(all);
        self.files().gaps.iter().map(|gap| bound(gap.start)..bound(gap.end)).collect()
    }

    fn files(&self) -> Arc<Absent> {
        let inner = &*self.inner;
        let files = inner.shape.iter().zip(self.per_file()).map(|(&n, each)| n.div_ceil(each)).collect();
        let (folder, prefix, separator) = (&*inner.path, inner.prefix, &*inner.separator);
        inner.shared.known.absent(&Place { folder, files, prefix, separator })
    }

    /// Elements of a file, along each dimension.
    fn per_file(&self) -> Vec<u64> {
        let inner = &*self.inner;
        let chunks = |d: usize| inner.shard.as_ref().map_or(1, |shard| shard.chunks[d]);
        (0..inner.chunk.len()).map(|d| inner.chunk[d].saturating_mul(chunks(d)).max(1)).collect()
    }

    /// Elements of a chunk, along each dimension.
    pub fn chunks(&self) -> Vec<u32> {
        self.inner.chunk.iter().map(|&n| u32::try_from(n).unwrap_or(u32::MAX)).collect()
    }

    /// Bytes of an element; of texts, which have any length, those of a number.
    pub fn element_size(&self) -> usize {
        if self.inner.size == 0 { 8 } else { self.inner.size }
    }

    /// The bytes of the elements of a rectangle, the last dimension fastest. Texts are given by their numbers, counted over
    /// the list: see [`Array::text`].
    pub fn read(&self, spans: &[Range<u64>]) -> Result<Vec<u8>> {
        let inner = &*self.inner;
        let within = spans.len() == inner.shape.len()
            && spans.iter().zip(&inner.shape).all(|(span, &n)| span.start <= span.end && span.end <= n);
        if !within {
            return Err(Error::new(ErrorKind::OutOfRange, format!("{spans:?} of an array of {:?}", inner.shape)));
        }
        if inner.size == 0 {
            let span = spans.first().cloned().unwrap_or(0..1);
            return Ok(span.flat_map(u64::to_le_bytes).collect());
        }
        let length = |span: &Range<u64>| usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
        let count = spans.iter().map(length).try_fold(inner.size, usize::checked_mul);
        let count = count.filter(|&bytes| bytes <= inner.shared.max_chunk.max(MAX_READ)).ok_or_else(|| {
            let message = format!("elements of {} bytes are too long to be read together", inner.size);
            Error::new(ErrorKind::LimitExceeded, message).hint("allow more with --memory")
        })?;
        let mut bytes = vec![0; count];
        if bytes.is_empty() {
            return Ok(bytes);
        }
        // The chunks that the rectangle touches.
        let grid: Vec<Range<u64>> =
            spans.iter().zip(&inner.chunk).map(|(span, &size)| span.start / size..span.end.div_ceil(size)).collect();
        let mut at: Vec<u64> = grid.iter().map(|range| range.start).collect();
        loop {
            let chunk = self.chunk(&at)?;
            inner.copy(&chunk, &at, spans, &mut bytes);
            let Some(next) = (0..at.len()).rev().find(|&d| at[d] + 1 < grid[d].end) else { return Ok(bytes) };
            at[next] += 1;
            (next + 1..at.len()).for_each(|d| at[d] = grid[d].start);
        }
    }

    /// A text of a list.
    pub fn text(&self, number: u64) -> Result<Vec<u8>> {
        let inner = &*self.inner;
        let size = inner.chunk.first().copied().unwrap_or(1).max(1);
        let at: Vec<u64> = inner.chunk.first().map(|_| number / size).into_iter().collect();
        let chunk = self.chunk(&at)?;
        let place = usize::try_from(number % size).unwrap_or(usize::MAX);
        let ends = chunk.ends.as_deref().unwrap_or_default();
        let Some(&end) = ends.get(place) else { return Ok(inner.fill.clone()) };
        let start = place.checked_sub(1).map_or(0, |before| ends[before]);
        Ok(chunk.bytes[start..end].to_vec())
    }

    /// A chunk by its numbers along each dimension.
    fn chunk(&self, at: &[u64]) -> Result<Arc<Chunk>> {
        let mut last = self.inner.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((found, chunk)) if found == at => Ok(chunk.clone()),
            _ => {
                // Only one is in memory at a time.
                *last = None;
                let chunk = Arc::new(self.inner.load(at)?);
                *last = Some((at.to_vec(), chunk.clone()));
                Ok(chunk)
            }
        }
    }
}

impl Inner {
    fn file(&self, at: &[u64]) -> PathBuf {
        let numbers: Vec<String> = at.iter().map(u64::to_string).collect();
        let name = match (self.prefix, &numbers[..]) {
            ("", []) => "0".to_owned(),
            ("", _) => numbers.join(&self.separator),
            (prefix, []) => prefix.to_owned(),
            (prefix, _) => format!("{prefix}{}{}", self.separator, numbers.join(&self.separator)),
        };
        self.path.join(name)
    }

    fn load(&self, at: &[u64]) -> Result<Chunk> {
        let elements = self.chunk.iter().try_fold(1_u64, |n, &size| n.checked_mul(size));
        let bytes = elements.and_then(|n| usize::try_from(n).ok()?.checked_mul(self.size.max(1)));
        let bytes = bytes.filter(|&bytes| bytes <= self.shared.max_chunk).ok_or_else(|| {
            let message = format!("chunks of {:?} elements need more than {} bytes", self.chunk, self.shared.max_chunk);
            Error::new(ErrorKind::LimitExceeded, message)
                .hint("allow more with --memory, or write the store in smaller chunks")
                .in_path(&self.path)
        })?;
        let path = match &self.shard {
            None => self.file(at),
            Some(shard) => {
                let whole: Vec<u64> = at.iter().zip(&shard.chunks).map(|(n, per)| n / per).collect();
                self.file(&whole)
            }
        };
        let fault = |message: String| bad(message).in_path(&path);
        let trouble = |trouble: Trouble| trouble.error().in_path(&path);
        // Of texts it is not known how long they are.
        let limit = if self.size == 0 { self.shared.max_chunk } else { bytes };
        let packed = match &self.shard {
            None => match open(&path)? {
                // A chunk that is packed takes hardly more than one that is not.
                Some(file) => Some(whole(file, limit.saturating_mul(2).max(1 << 20), &path)?),
                None => None,
            },
            Some(shard) => shard.read(&path, at)?,
        };
        let Some(mut unpacked) = packed else {
            if self.size == 0 {
                // Each text that is not there is the one to fill with.
                return Ok(Chunk { bytes: Vec::new(), ends: Some(Vec::new()) });
            }
            return Ok(Chunk { bytes: self.fill.repeat(bytes / self.size), ends: None });
        };
        for codec in &self.codecs {
            unpacked = codec.undo(&unpacked, limit.saturating_add(4)).map_err(trouble)?;
        }
        if self.size == 0 {
            return texts(&unpacked).ok_or_else(|| fault("a chunk of texts makes no sense".to_owned()));
        }
        if unpacked.len() != bytes {
            return Err(fault(format!("a chunk has {} bytes, not {bytes}", unpacked.len())));
        }
        Ok(Chunk { bytes: unpacked, ends: None })
    }

    /// Copies what a chunk has of a rectangle.
    fn copy(&self, chunk: &Chunk, at: &[u64], spans: &[Range<u64>], to: &mut [u8]) {
        let small = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let n = self.chunk.len();
        // Along each dimension: the first element of the chunk and of the target, and how many they share.
        let share: Vec<(usize, usize, usize)> = (0..n)
            .map(|d| {
                let origin = at[d] * self.chunk[d];
                let start = spans[d].start.max(origin);
                let end = spans[d].end.min(origin + self.chunk[d]);
                (small(start - origin), small(start - spans[d].start), small(end.saturating_sub(start)))
            })
            .collect();
        let strides = |lengths: &[usize], fortran: bool| {
            let mut strides = vec![self.size; n];
            let mut step = self.size;
            let order: Vec<usize> = if fortran { (0..n).collect() } else { (0..n).rev().collect() };
            for d in order {
                strides[d] = step;
                step *= lengths[d];
            }
            strides
        };
        let from_strides = strides(&self.chunk.iter().map(|&n| small(n)).collect::<Vec<_>>(), self.fortran);
        let to_strides = strides(&spans.iter().map(|s| small(s.end - s.start)).collect::<Vec<_>>(), false);
        let mut index = vec![0; n];
        if share.iter().any(|&(_, _, count)| count == 0) {
            return;
        }
        // Whole runs of the last dimension where both have them in one piece.
        let run = match n.checked_sub(1) {
            Some(last) if !self.fortran || n == 1 => share[last].2,
            _ => 1,
        };
        loop {
            let offset = |strides: &[usize], pick: fn(&(usize, usize, usize)) -> usize| {
                (0..n).map(|d| (pick(&share[d]) + index[d]) * strides[d]).sum::<usize>()
            };
            let (from, into) = (offset(&from_strides, |s| s.0), offset(&to_strides, |s| s.1));
            to[into..into + run * self.size].copy_from_slice(&chunk.bytes[from..from + run * self.size]);
            let step = |d: usize| if d + 1 == n { run } else { 1 };
            let Some(next) = (0..n).rev().find(|&d| index[d] + step(d) < share[d].2) else { return };
            index[next] += step(next);
            (next + 1..n).for_each(|d| index[d] = 0);
        }
    }
}

impl Shard {
    /// The packed bytes of a chunk, if it is there.
    fn read(&self, path: &Path, at: &[u64]) -> Result<Option<Vec<u8>>> {
        let fault = |error| Error::io(error, path);
        let damaged = || bad("the index of a shard makes no sense").in_path(path);
        let Some(mut file) = open(path)? else { return Ok(None) };
        let size = file.metadata().map_err(fault)?.len();
        let count = self.chunks.iter().try_fold(1_u64, |n, &chunks| n.checked_mul(chunks));
        let checks = self.index.iter().filter(|codec| **codec == Codec::Crc32c).count() as u64;
        if checks != self.index.len() as u64 {
            return Err(unsupported("a compressed index of shards", REWRITE).in_path(path));
        }
        let length = count.and_then(|n| n.checked_mul(16)?.checked_add(4 * checks)).filter(|&length| length <= size);
        let length = length.ok_or_else(damaged)?;
        let start = if self.at_end { size - length } else { 0 };
        file.seek(SeekFrom::Start(start)).map_err(fault)?;
        let mut index = vec![0; usize::try_from(length).map_err(|_| damaged())?];
        file.read_exact(&mut index).map_err(fault)?;
        for codec in self.index.iter().rev() {
            index = codec.undo(&index, index.len()).map_err(|trouble| trouble.error().in_path(path))?;
        }
        let place = at.iter().zip(&self.chunks).fold(0, |place, (n, per)| place * per + n % per);
        let entry = usize::try_from(place).ok().and_then(|place| index.get(place * 16..place * 16 + 16));
        let entry = entry.ok_or_else(damaged)?;
        let [offset, length] =
            [&entry[..8], &entry[8..]].map(|bytes| bytes.iter().rev().fold(0_u64, |n, &byte| n << 8 | u64::from(byte)));
        if offset == u64::MAX && length == u64::MAX {
            return Ok(None);
        }
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(damaged());
        }
        file.seek(SeekFrom::Start(offset)).map_err(fault)?;
        let mut packed = vec![0; usize::try_from(length).map_err(|_| damaged())?];
        file.read_exact(&mut packed).map_err(fault)?;
        Ok(Some(packed))
    }
}

/// The codecs of version 3.
#[derive(Default)]
struct Chain {
    fortran: bool,
    big_endian: bool,
    text: bool,
    sharding: Option<Value>,
    /// In the order in which they are undone.
    codecs: Vec<Codec>,
}

impl Chain {
    fn of(list: &Value, dimensions: usize) -> Result<Chain> {
        let mut chain = Chain::default();
        for codec in list.as_array().ok_or_else(|| bad("no codecs"))? {
            let options = &codec["configuration"];
            match codec::name(codec) {
                "bytes" => chain.big_endian = options["endian"].as_str() == Some("big"),
                "vlen-utf8" => chain.text = true,
                "sharding_indexed" => chain.sharding = Some(options.clone()),
                "transpose" => {
                    let order = lengths(&options["order"]).unwrap_or_default();
                    let turned: Vec<u64> = (0..dimensions as u64).rev().collect();
                    if order == turned {
                        chain.fortran = dimensions > 1;
                    } else if !order.is_sorted() || order.len() != dimensions {
                        return Err(unsupported("this order of dimensions", REWRITE));
                    }
                }
                name => {
                    let codec = Codec::of(name);
                    chain.codecs.push(codec.ok_or_else(|| unsupported(&format!("the codec {name:?}"), REWRITE))?);
                }
            }
        }
        chain.codecs.reverse();
        Ok(chain)
    }
}

/// Texts: how many, then each with its length before it.
fn texts(packed: &[u8]) -> Option<Chunk> {
    let number = |bytes: &[u8]| Some(u32::from_le_bytes(*bytes.first_chunk()?) as usize);
    let count = number(packed)?;
    let mut rest = &packed[4..];
    let (mut bytes, mut ends) = (Vec::with_capacity(rest.len()), Vec::new());
    for _ in 0..count {
        let length = number(rest)?;
        let (text, after) = rest[4..].split_at_checked(length)?;
        bytes.extend_from_slice(text);
        ends.push(bytes.len());
        rest = after;
    }
    Some(Chunk { bytes, ends: Some(ends) })
}

fn text() -> Datatype {
    let (encoding, padding) = (StringEncoding::Utf8, StringPadding::NullPad);
    Datatype::String { size: StringSize::Variable, encoding, padding }
}

fn truth() -> Datatype {
    let base = Box::new(Datatype::FixedPoint { size: 1, signed: false, byte_order: ByteOrder::LittleEndian });
    let member = |name: &str, value| EnumMember { name: name.to_owned(), value: vec![value] };
    Datatype::Enum { base, members: vec![member("FALSE", 0), member("TRUE", 1)] }
}

/// A type that tables and matrices do not have.
fn other(size: u32, name: &Value) -> Datatype {
    Datatype::Opaque { size, tag: name.to_string() }
}

/// A type as numpy writes it: `<f4`.
fn dtype_2(name: &Value) -> Datatype {
    let text = name.as_str().unwrap_or_default();
    let byte_order = if text.starts_with('>') { ByteOrder::BigEndian } else { ByteOrder::LittleEndian };
    let (kind, size) = text.get(1..).and_then(|rest| rest.split_at_checked(1)).unwrap_or_default();
    match (kind, size.parse::<u32>()) {
        ("b", Ok(1)) => truth(),
        ("i" | "u", Ok(size @ (1 | 2 | 4 | 8))) => {
            Datatype::FixedPoint { size: u8::try_from(size).unwrap_or(0), signed: kind == "i", byte_order }
        }
        ("f", Ok(size @ (2 | 4 | 8))) => Datatype::FloatingPoint { size: u8::try_from(size).unwrap_or(0), byte_order },
        ("S", Ok(size)) if size > 0 => {
            let (encoding, padding) = (StringEncoding::Utf8, StringPadding::NullPad);
            Datatype::String { size: StringSize::Fixed(size), encoding, padding }
        }
        ("U", Ok(size)) if size > 0 => other(size.saturating_mul(4), name),
        (_, Ok(size)) if size > 0 => other(size, name),
        _ => other(1, name),
    }
}

/// A type as version 3 writes it: `float32`.
fn dtype_3(name: &Value, big_endian: bool, is_text: bool) -> Datatype {
    let byte_order = if big_endian { ByteOrder::BigEndian } else { ByteOrder::LittleEndian };
    let whole = |size, signed| Datatype::FixedPoint { size, signed, byte_order };
    match name.as_str() {
        _ if is_text => text(),
        Some("bool") => truth(),
        Some("int8") => whole(1, true),
        Some("int16") => whole(2, true),
        Some("int32") => whole(4, true),
        Some("int64") => whole(8, true),
        Some("uint8") => whole(1, false),
        Some("uint16") => whole(2, false),
        Some("uint32") => whole(4, false),
        Some("uint64") => whole(8, false),
        Some("float16") => Datatype::FloatingPoint { size: 2, byte_order },
        Some("float32") => Datatype::FloatingPoint { size: 4, byte_order },
        Some("float64") => Datatype::FloatingPoint { size: 8, byte_order },
        _ => {
            let bytes = name["configuration"]["length_bytes"].as_u64().and_then(|n| u32::try_from(n).ok());
            other(bytes.unwrap_or(8).max(1), name)
        }
    }
}

/// Bytes of an element; 0 of texts of any length.
fn size(dtype: &Datatype) -> usize {
    match dtype {
        Datatype::FixedPoint { size, .. } | Datatype::FloatingPoint { size, .. } => usize::from(*size),
        Datatype::Enum { .. } => 1,
        Datatype::String { size: StringSize::Fixed(size), .. } | Datatype::Opaque { size, .. } => {
            usize::try_from(*size).unwrap_or(usize::MAX)
        }
        _ => 0,
    }
}

/// The bytes of an element that is not stored.
fn fill(dtype: &Datatype, value: &Value) -> Result<Vec<u8>> {
    let wrong = || unsupported(&format!("the fill value {value}"), REWRITE);
    let ordered = |bytes: &[u8], order: &ByteOrder| match order {
        ByteOrder::LittleEndian => bytes.to_vec(),
        ByteOrder::BigEndian => bytes.iter().rev().copied().collect(),
    };
    let zeros = || vec![0; size(dtype)];
    Ok(match dtype {
        _ if value.is_null() => zeros(),
        Datatype::FixedPoint { size, byte_order, .. } => {
            let whole = value.as_i64().map(i64::cast_unsigned).or(value.as_u64());
            let float = || value.as_f64().filter(|n| *n == 0.0).map(|_| 0);
            let whole = whole.or_else(float).ok_or_else(wrong)?;
            ordered(&whole.to_le_bytes()[..usize::from(*size).min(8)], byte_order)
        }
        Datatype::FloatingPoint { size, byte_order } => {
            let number = match value.as_str() {
                Some("NaN") => f64::NAN,
                Some("Infinity") => f64::INFINITY,
                Some("-Infinity") => f64::NEG_INFINITY,
                _ => value.as_f64().ok_or_else(wrong)?,
            };
            match size {
                2 => ordered(&half::f16::from_f64(number).to_le_bytes(), byte_order),
                #[expect(clippy::cast_possible_truncation, reason = "it is a value of that type")]
                4 => ordered(&(number as f32).to_le_bytes(), byte_order),
                _ => ordered(&number.to_le_bytes(), byte_order),
            }
        }
        Datatype::Enum { .. } => vec![u8::from(value.as_bool().or(value.as_u64().map(|n| n != 0)).ok_or_else(wrong)?)],
        Datatype::String { size: StringSize::Variable, .. } => {
            // Writers have 0 here, too, which is no text.
            value.as_str().unwrap_or_default().as_bytes().to_vec()
        }
        _ => zeros(),
    })
}
