//! `manifest.json`: what a dataset says of itself.
//!
//! Source: DELTACEL file format, "manifest.json".
//!
//! The text is passed once as JSON, in constant memory; only then are the values that matter read from their slices of
//! it. So every fault has an offset, and lists take no more memory than a few times their text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde_core::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{GENE_ORDER, VAR_NAMES, VAR_TABLE};
use crate::error::{Error, ErrorKind, Limit, Part, SyntaxFault};
use crate::limits::Limits;

const FORMAT: &str = "deltacells-dataset";
const VERSION: u64 = 2;

/// What a manifest may have at most: enough for more than a million tiles.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Levels of arrays and objects, as for most readers of JSON.
const MAX_DEPTH: usize = 128;

/// Positions in an indptr are `i64`.
const MAX_COUNT: u64 = i64::MAX.unsigned_abs();

const MAX_GENES: u64 = 1 << 31;

/// The keys that are read; all others are ignored.
const KEYS: [&str; 19] = [
    "format",
    "version",
    "n_cells",
    "n_genes",
    "tile_size",
    "tile_cells",
    "tile_nnz",
    "tile_bytes",
    "n_chunks",
    "zstd_level",
    "has_gene_order",
    "has_var_names",
    "has_var_table",
    "has_obs",
    "obs_tiles_per_file",
    "obs_shard_bytes",
    "obs_shard_sha256",
    "obs_fingerprint",
    FILE_SHA256,
];
const METADATA: &str = "metadata";

/// A key of this library's own, which readers of the format ignore: the SHA-256 of each of [`FILES`] that there is. It is
/// not in `metadata`, because that goes along with the cells when a dataset is made of another one.
const FILE_SHA256: &str = "tilekern_sha256";

/// The files for which the format has no digest.
pub(super) const FILES: [&str; 3] = [GENE_ORDER, VAR_NAMES, VAR_TABLE];

/// The SHA-256 of each of [`FILES`], as far as it is stated.
pub(super) type FileDigests = [Option<[u8; 32]>; FILES.len()];

/// A manifest that was checked: its counts agree with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub(super) n_cells: u64,
    pub(super) n_genes: u32,
    pub(super) tile_size: u64,
    pub(super) tile_nnz: Vec<u64>,
    pub(super) tile_bytes: Vec<u64>,
    pub(super) n_chunks: Option<i64>,
    pub(super) zstd_level: Option<i64>,
    pub(super) has_gene_order: bool,
    pub(super) has_var_names: bool,
    pub(super) has_var_table: bool,
    pub(super) obs: Option<Obs>,
    pub(super) metadata: Option<String>,
    pub(super) file_sha256: FileDigests,
}

/// What a manifest says of the obs table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obs {
    pub(super) tiles_per_file: u64,
    pub(super) shard_bytes: Vec<u64>,
    pub(super) shard_sha256: Vec<[u8; 32]>,
    pub(super) fingerprint: String,
}

impl Obs {
    /// Tiles, and so row groups, of each shard but the last.
    pub fn tiles_per_file(&self) -> u64 {
        self.tiles_per_file
    }

    /// Bytes of each shard.
    pub fn shard_bytes(&self) -> &[u64] {
        &self.shard_bytes
    }

    /// SHA-256 of each shard.
    pub fn shard_sha256(&self) -> &[[u8; 32]] {
        &self.shard_sha256
    }

    /// 24 lower-case hexadecimal digits that change with the table: a key for caches, and safe as a file name.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl Manifest {
    /// Reads and checks the text of a manifest.
    ///
    /// # Errors
    /// The first of [`Manifest::faults`].
    pub fn from_json(text: &[u8]) -> Result<Manifest, Error> {
        Manifest::check(text).map_err(|mut faults| faults.swap_remove(0))
    }

    /// Every fault of the text of a manifest: of each key the first. The part names the key, and the offset is that of
    /// its value, of the element at fault in a list, or of the place where the text stops being JSON.
    ///
    /// - [`ErrorKind::Syntax`]: not UTF-8, no JSON (`NaN` and `Infinity` are none), nested too deeply, a key twice
    /// - [`ErrorKind::Missing`], [`ErrorKind::WrongType`]: 2.0, true and "2" are no integers
    /// - [`ErrorKind::BadMagic`] and [`ErrorKind::Version`] of format and version
    /// - [`ErrorKind::OutOfRange`]: a number, or a tile's number of cells, that the format does not allow
    /// - [`ErrorKind::Inconsistent`]: lengths of lists, and sums
    /// - [`ErrorKind::LimitExceeded`]: more than 64 MiB
    pub fn faults(text: &[u8]) -> Vec<Error> {
        Manifest::check(text).err().unwrap_or_default()
    }

    /// The manifest, or at least one fault.
    pub(super) fn check(text: &[u8]) -> Result<Manifest, Vec<Error>> {
        let (text, fields) = fields(text).map_err(|error| vec![error])?;
        let mut reader = Reader { text, fields, faults: Vec::new() };
        match reader.manifest() {
            Some(manifest) if reader.faults.is_empty() => Ok(manifest),
            _ => Err(reader.faults),
        }
    }

    /// Cells of all tiles.
    pub fn n_cells(&self) -> u64 {
        self.n_cells
    }

    /// Genes, 1 to 2^31.
    pub fn n_genes(&self) -> u32 {
        self.n_genes
    }

    /// Nonzeros of all tiles.
    pub fn nnz(&self) -> u64 {
        self.tile_nnz.iter().sum() // checked to be at most 2^63
    }

    /// Cells of every tile but the last, which has 1 to this many.
    pub fn tile_size(&self) -> u64 {
        self.tile_size
    }

    /// Tiles.
    pub fn n_tiles(&self) -> u32 {
        u32::try_from(self.tile_nnz.len()).unwrap_or(u32::MAX) // a text of 64 MiB cannot list more
    }

    /// The global number of the cell behind the last one of each tile: the cumulative sum of the tiles' cells.
    pub fn tile_limits(&self) -> impl ExactSizeIterator<Item = u64> {
        (0..self.n_tiles()).map(|tile| self.tile_limit(tile))
    }

    pub(super) fn tile_limit(&self, tile: u32) -> u64 {
        (u64::from(tile) + 1).saturating_mul(self.tile_size).min(self.n_cells)
    }

    /// Cells of a tile.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn tile_cells(&self, tile: u32) -> u64 {
        assert!(tile < self.n_tiles(), "no tile {tile}");
        self.tile_limit(tile) - u64::from(tile) * self.tile_size
    }

    /// Stored nonzeros of each tile.
    pub fn tile_nnz(&self) -> &[u64] {
        &self.tile_nnz
    }

    /// Bytes of each tile.
    pub fn tile_bytes(&self) -> &[u64] {
        &self.tile_bytes
    }

    /// Chunks of a tile, as far as the writer states it. For information only.
    pub fn n_chunks(&self) -> Option<i64> {
        self.n_chunks
    }

    /// The level of zstd, as far as the writer states it. For information only.
    pub fn zstd_level(&self) -> Option<i64> {
        self.zstd_level
    }

    /// Whether `gene_order.npy` belongs to the dataset.
    pub fn has_gene_order(&self) -> bool {
        self.has_gene_order
    }

    /// Whether `var_names.txt` belongs to the dataset.
    pub fn has_var_names(&self) -> bool {
        self.has_var_names
    }

    /// Whether `var.parquet` belongs to the dataset.
    pub fn has_var_table(&self) -> bool {
        self.has_var_table
    }

    /// The obs table, where there is one.
    pub fn obs(&self) -> Option<&Obs> {
        self.obs.as_ref()
    }

    /// The writer's own data: the text of a JSON object.
    pub fn metadata(&self) -> Option<&str> {
        self.metadata.as_deref()
    }

    /// SHA-256 of `gene_order.npy`, `var_names.txt` or `var.parquet`, where the writer states it under `tilekern_sha256`:
    /// the format has no digest for them.
    pub fn file_sha256(&self, name: &str) -> Option<&[u8; 32]> {
        FILES.iter().zip(&self.file_sha256).find(|(known, _)| **known == name).and_then(|(_, digest)| digest.as_ref())
    }

    /// The tile of a cell, and the cell's row in it; `None` if there is no such cell.
    pub fn locate(&self, cell: u64) -> Option<(u32, u64)> {
        if cell >= self.n_cells {
            return None;
        }
        let tile = u32::try_from(cell / self.tile_size).ok()?;
        Some((tile, cell % self.tile_size))
    }

    /// The text of the manifest, with every key that the format names.
    pub fn to_json(&self) -> String {
        let cells: Vec<u64> = (0..self.n_tiles()).map(|tile| self.tile_cells(tile)).collect();
        let mut text = format!("{{\n \"format\": \"{FORMAT}\",\n \"version\": {VERSION}");
        let mut put = |key: &str, value: &dyn std::fmt::Display| {
            write!(text, ",\n \"{key}\": {value}").expect("strings grow");
        };
        put("n_cells", &self.n_cells);
        put("n_genes", &self.n_genes);
        put("tile_size", &self.tile_size);
        put("tile_cells", &format_args!("{cells:?}"));
        put("tile_nnz", &format_args!("{:?}", self.tile_nnz));
        put("tile_bytes", &format_args!("{:?}", self.tile_bytes));
        put("n_chunks", &self.n_chunks.unwrap_or(0));
        put("zstd_level", &self.zstd_level.unwrap_or(0));
        put("has_gene_order", &self.has_gene_order);
        put("has_var_names", &self.has_var_names);
        put("has_var_table", &self.has_var_table);
        put("has_obs", &self.obs.is_some());
        if let Some(obs) = &self.obs {
            let digests: Vec<String> = obs.shard_sha256.iter().map(|digest| hex(digest)).collect();
            put("obs_tiles_per_file", &obs.tiles_per_file);
            put("obs_shard_bytes", &format_args!("{:?}", obs.shard_bytes));
            put("obs_shard_sha256", &format_args!("{digests:?}"));
            put("obs_fingerprint", &format_args!("{:?}", obs.fingerprint));
        }
        let stated = FILES.iter().filter_map(|name| Some(format!("{name:?}: \"{}\"", hex(self.file_sha256(name)?))));
        let stated: Vec<String> = stated.collect();
        if !stated.is_empty() {
            put(FILE_SHA256, &format_args!("{{{}}}", stated.join(", ")));
        }
        put(METADATA, &self.metadata.as_deref().unwrap_or("{}"));
        text.push_str("\n}\n");
        text
    }
}

/// Passes the text of a JSON object, as `metadata` must be.
#[cfg(feature = "encode")]
pub(super) fn check_metadata(text: &str) -> Result<(), Error> {
    let part = Part::Option(METADATA);
    check_depth(text).map_err(|error| error.in_part(part))?;
    let value: &RawValue = serde_json::from_str(text).map_err(|error| syntax(text, error).in_part(part))?;
    if value.get().starts_with('{') { Ok(()) } else { Err(Error::new(ErrorKind::WrongType, part)) }
}

/// The text of each known key's value; the last is that of `metadata`.
type Fields<'a> = [Option<&'a str>; KEYS.len() + 1];

/// Passes the text as JSON, and finds the values of the known keys.
fn fields(text: &[u8]) -> Result<(&str, Fields<'_>), Error> {
    let part = Part::Manifest(None);
    Limits::check(text.len() as u64, MAX_BYTES, Limit::InputBytes, part)?;
    let text = std::str::from_utf8(text).map_err(|error| {
        Error::new(ErrorKind::Syntax(SyntaxFault::Utf8), part).at(error.valid_up_to() as u64).caused_by(error)
    })?;
    check_depth(text).map_err(|error| error.in_part(part))?;
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = (&mut json).deserialize_map(TakeFields).and_then(|fields| json.end().map(|()| fields));
    let fields = parsed.map_err(|error| syntax(text, error).in_part(part))?;
    fields.map(|fields| (text, fields)).map_err(|(key, value)| {
        Error::new(ErrorKind::Syntax(SyntaxFault::RepeatedKey), Part::Manifest(Some(key))).at(offset_in(text, value))
    })
}

struct TakeFields;

impl<'de> Visitor<'de> for TakeFields {
    /// The fields, or the key that is given twice and its second value.
    type Value = Result<Fields<'de>, (&'static str, &'de str)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields::default();
        let mut repeated = None;
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            let Some(known) = KEYS.iter().chain([&METADATA]).position(|&known| known == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value::<&RawValue>()?.get();
            if fields[known].replace(value).is_some() {
                repeated.get_or_insert((KEYS.get(known).copied().unwrap_or(METADATA), value));
            }
        }
        Ok(repeated.map_or(Ok(fields), Err))
    }
}

/// Passes text whose arrays and objects are not nested deeper than readers of JSON can bear.
pub(super) fn check_depth(text: &str) -> Result<(), Error> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::Syntax(SyntaxFault::Depth), Part::Object).at(at as u64));
        }
    }
    Ok(())
}

/// What the JSON parser did not like, and where.
pub(super) fn syntax(text: &str, error: serde_json::Error) -> Error {
    let line = error.line().saturating_sub(1);
    let line_start = text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
    let offset = (line_start + error.column().saturating_sub(1)).min(text.len());
    let kind = if error.is_data() { ErrorKind::WrongType } else { ErrorKind::Syntax(SyntaxFault::Json) };
    Error::new(kind, Part::Object).at(offset as u64).caused_by(error)
}

/// Where a slice of a text begins.
pub(super) fn offset_in(text: &str, slice: &str) -> u64 {
    slice.as_ptr().addr().wrapping_sub(text.as_ptr().addr()) as u64
}

/// A key and the text of its value, or of an element of it.
#[derive(Clone, Copy)]
struct Value<'a> {
    key: &'static str,
    text: &'a str,
    /// The offset of the text in the manifest.
    at: u64,
    /// Which element of a list this is.
    index: Option<u64>,
}

impl<'a> Value<'a> {
    fn fault(&self, kind: ErrorKind) -> Error {
        let error = Error::new(kind, Part::Manifest(Some(self.key))).at(self.at);
        match self.index {
            Some(index) => error.index(index),
            None => error,
        }
    }

    /// An integer in a range.
    fn integer(&self, min: i128, max: i128) -> Result<i128, Error> {
        let digits = self.text.strip_prefix('-').unwrap_or(self.text);
        // As JSON it is sound, so digits alone decide.
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.fault(ErrorKind::WrongType));
        }
        let beyond = if self.text.starts_with('-') { i128::MIN } else { i128::MAX };
        let found = self.text.parse().unwrap_or(beyond);
        if found < min || found > max {
            return Err(self.fault(ErrorKind::OutOfRange { found, min, max }));
        }
        Ok(found)
    }

    fn count(&self, min: u64, max: u64) -> Result<u64, Error> {
        let found = self.integer(min.into(), max.into())?;
        u64::try_from(found).map_err(|_| self.fault(ErrorKind::WrongType)) // it is between two of them
    }

    fn boolean(&self) -> Result<bool, Error> {
        match self.text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.fault(ErrorKind::WrongType)),
        }
    }

    fn string(&self) -> Result<String, Error> {
        if !self.text.starts_with('"') {
            return Err(self.fault(ErrorKind::WrongType));
        }
        serde_json::from_str(self.text)
            .map_err(|error| syntax(self.text, error).at(self.at).in_part(Part::Manifest(Some(self.key))))
    }

    /// Bytes as hexadecimal digits.
    fn digest<const N: usize>(&self) -> Result<[u8; N], Error> {
        let string = self.string()?;
        let mut bytes = [0; N];
        let (pairs, rest) = string.as_bytes().as_chunks::<2>();
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => *byte = 16 * high + low,
                _ => return Err(self.fault(ErrorKind::Syntax(SyntaxFault::Hex))),
            }
        }
        if pairs.len() != N || !rest.is_empty() {
            return Err(self.fault(ErrorKind::Syntax(SyntaxFault::Hex)));
        }
        Ok(bytes)
    }

    /// Those of the files that are known, by their names in an object; others are ignored.
    fn digests(&self) -> Result<FileDigests, Error> {
        let object: BTreeMap<Cow<'a, str>, &'a RawValue> =
            serde_json::from_str(self.text).map_err(|error| self.fault(ErrorKind::WrongType).caused_by(error))?;
        let mut digests = FileDigests::default();
        for (name, digest) in FILES.iter().zip(&mut digests) {
            if let Some(text) = object.get(*name).map(|value| value.get()) {
                let at = self.at + offset_in(self.text, text);
                *digest = Some(Value { key: self.key, text, at, index: None }.digest()?);
            }
        }
        Ok(digests)
    }

    /// The elements of a list of numbers or of strings without commas. In any other list the first element that is
    /// neither may come out cut; it is of the wrong type in any case.
    fn elements(&self) -> Result<impl Iterator<Item = Value<'a>> + use<'a>, Error> {
        let inner = self.text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inner = inner.ok_or_else(|| self.fault(ErrorKind::WrongType))?;
        let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
        let Value { key, at, .. } = *self;
        let pieces = inner.split(',').filter(move |_| !inner.trim_matches(blank).is_empty());
        Ok(pieces.zip(0u64..).map(move |(piece, index)| {
            let text = piece.trim_matches(blank);
            Value { key, text, at: at + 1 + offset_in(inner, text), index: Some(index) }
        }))
    }

    fn counts(&self, max: u64) -> Result<Vec<u64>, Error> {
        self.elements()?.map(|element| element.count(0, max)).collect()
    }
}

/// Reads values and collects faults.
struct Reader<'a> {
    text: &'a str,
    fields: Fields<'a>,
    faults: Vec<Error>,
}

impl<'a> Reader<'a> {
    fn optional(&self, key: &'static str) -> Option<Value<'a>> {
        let known = KEYS.iter().position(|&known| known == key).unwrap_or(KEYS.len());
        self.fields[known].map(|text| Value { key, text, at: offset_in(self.text, text), index: None })
    }

    fn required(&mut self, key: &'static str) -> Option<Value<'a>> {
        let value = self.optional(key);
        if value.is_none() {
            self.fault(Error::new(ErrorKind::Missing, Part::Manifest(Some(key))));
        }
        value
    }

    fn fault(&mut self, error: Error) {
        self.faults.push(error);
    }

    fn keep<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.fault(error)).ok()
    }

    /// A required value, read by `read`.
    fn read<T>(&mut self, key: &'static str, read: impl FnOnce(&Value<'a>) -> Result<T, Error>) -> Option<T> {
        let value = self.required(key)?;
        self.keep(read(&value))
    }

    /// A value for information: it may be absent.
    fn information(&mut self, key: &'static str) -> Option<i64> {
        let value = self.optional(key)?.integer(i64::MIN.into(), i64::MAX.into());
        self.keep(value).and_then(|value| i64::try_from(value).ok())
    }

    fn manifest(&mut self) -> Option<Manifest> {
        self.read("format", |value| match value.string()? == FORMAT {
            true => Ok(()),
            false => Err(value.fault(ErrorKind::BadMagic)),
        });
        self.read("version", |value| match value.count(0, u64::MAX)? {
            VERSION => Ok(()),
            found => Err(value.fault(ErrorKind::Version { found, expected: VERSION })),
        });
        let n_cells = self.read("n_cells", |value| value.count(0, MAX_COUNT));
        let n_genes = self.read("n_genes", |value| value.count(1, MAX_GENES));
        let tile_size = self.read("tile_size", |value| value.count(1, MAX_COUNT));
        let tile_cells = self.read("tile_cells", |value| value.counts(MAX_COUNT));
        let n_tiles = tile_cells.as_ref().map(|cells| cells.len() as u64);
        if let (Some(cells), Some(tile_size)) = (tile_cells, tile_size) {
            self.tile_cells(&cells, tile_size, n_cells);
        }
        let tile_nnz = self.tile_list("tile_nnz", n_tiles);
        if let (Some(nnz), Some(value)) = (&tile_nnz, self.optional("tile_nnz")) {
            let sum = nnz.iter().map(|&nnz| i128::from(nnz)).sum();
            let max = MAX_COUNT.into();
            if sum > max {
                self.fault(value.fault(ErrorKind::OutOfRange { found: sum, min: 0, max }));
            }
        }
        let tile_bytes = self.tile_list("tile_bytes", n_tiles);
        let (n_chunks, zstd_level) = (self.information("n_chunks"), self.information("zstd_level"));
        let has_gene_order = self.read("has_gene_order", Value::boolean);
        let has_var_names = self.read("has_var_names", Value::boolean);
        let has_var_table = self.read("has_var_table", Value::boolean);
        let has_obs = self.read("has_obs", Value::boolean);
        let obs = if has_obs == Some(true) { self.obs(n_tiles) } else { None };
        let file_sha256 = self.optional(FILE_SHA256).map_or(Ok(Default::default()), |value| value.digests());
        let file_sha256 = self.keep(file_sha256).unwrap_or_default();
        let metadata = self.optional(METADATA);
        if let Some(value) = metadata.filter(|value| !value.text.starts_with('{')) {
            self.fault(value.fault(ErrorKind::WrongType));
        }
        Some(Manifest {
            n_cells: n_cells?,
            n_genes: u32::try_from(n_genes?).ok()?,
            tile_size: tile_size?,
            tile_nnz: tile_nnz?,
            tile_bytes: tile_bytes?,
            n_chunks,
            zstd_level,
            has_gene_order: has_gene_order?,
            has_var_names: has_var_names?,
            has_var_table: has_var_table?,
            obs,
            metadata: metadata.map(|value| value.text.to_owned()),
            file_sha256,
        })
    }

    /// Every tile but the last is full, the last is not empty, and all together have the dataset's cells.
    fn tile_cells(&mut self, cells: &[u64], tile_size: u64, n_cells: Option<u64>) {
        let last = cells.len().saturating_sub(1);
        let wrong = |(i, &n): (usize, &u64)| n > tile_size || n < if i == last { 1 } else { tile_size };
        if let Some(i) = cells.iter().enumerate().position(wrong) {
            let min = if i == last { 1 } else { tile_size };
            let kind = ErrorKind::OutOfRange { found: cells[i].into(), min: min.into(), max: tile_size.into() };
            let element = self.optional("tile_cells").and_then(|value| value.elements().ok()?.nth(i));
            self.faults.extend(element.map(|element| element.fault(kind)));
            return; // their sum says nothing new
        }
        let sum = cells.iter().map(|&n| i128::from(n)).sum();
        if let (Some(n_cells), Some(value)) = (n_cells.map(i128::from), self.optional("n_cells"))
            && n_cells != sum
        {
            self.fault(value.fault(ErrorKind::Inconsistent { found: n_cells, expected: sum }));
        }
    }

    /// A list with an entry for each tile.
    fn tile_list(&mut self, key: &'static str, n_tiles: Option<u64>) -> Option<Vec<u64>> {
        let list = self.read(key, |value| value.counts(MAX_COUNT))?;
        self.check_len(key, list.len(), n_tiles).then_some(list)
    }

    fn check_len(&mut self, key: &'static str, found: usize, expected: Option<u64>) -> bool {
        match (expected, self.optional(key)) {
            (Some(expected), Some(value)) if expected != found as u64 => {
                let kind = ErrorKind::Inconsistent { found: found as i128, expected: expected.into() };
                self.fault(value.fault(kind).caused_by("its number of entries"));
                false
            }
            _ => true,
        }
    }

    fn obs(&mut self, n_tiles: Option<u64>) -> Option<Obs> {
        let tiles_per_file = self.read("obs_tiles_per_file", |value| value.count(1, MAX_COUNT));
        let n_shards = n_tiles.zip(tiles_per_file).map(|(tiles, each)| tiles.div_ceil(each));
        let shard_bytes = self.tile_list("obs_shard_bytes", n_shards);
        let shard_sha256: Option<Vec<_>> =
            self.read("obs_shard_sha256", |value| value.elements()?.map(|element| element.digest()).collect());
        if let Some(digests) = &shard_sha256 {
            self.check_len("obs_shard_sha256", digests.len(), n_shards);
        }
        let fingerprint = self.read("obs_fingerprint", |value| {
            let bytes = value.digest::<12>()?;
            // One spelling only, since it names files.
            match value.string()? == hex(&bytes) {
                true => Ok(hex(&bytes)),
                false => Err(value.fault(ErrorKind::Syntax(SyntaxFault::Hex))),
            }
        });
        Some(Obs {
            tiles_per_file: tiles_per_file?,
            shard_bytes: shard_bytes?,
            shard_sha256: shard_sha256?,
            fingerprint: fingerprint?,
        })
    }
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("strings grow");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"{"format": "deltacells-dataset", "version": 2, "n_cells": 5, "n_genes": 7, "tile_size": 2,
        "tile_cells": [2, 2 ,1], "tile_nnz": [3,4,0], "tile_bytes": [200, 201, 202], "n_chunks": 8, "zstd_level": -1,
        "has_gene_order": false, "has_var_names": true, "has_var_table": false, "has_obs": true, "other": [[{}]],
        "metadata": {"a": [1, "]\"["]}, "obs_tiles_per_file": 2, "obs_shard_bytes": [9, 8],
        "obs_shard_sha256": ["SHA", "SHA"], "obs_fingerprint": "0123456789abcdef01234567",
        "tilekern_sha256": {"var_names.txt": "SHA", "later.bin": 7}}"#;

    fn sound() -> String {
        SOUND.replace("SHA", &"0f".repeat(32))
    }

    /// The faults of the sound text with one change.
    fn faults(from: &str, to: &str) -> Vec<Error> {
        let text = sound();
        assert!(text.contains(from), "{from}");
        let changed = text.replacen(from, to, 1);
        let faults = Manifest::faults(changed.as_bytes());
        for fault in &faults {
            assert!(fault.offset().is_none_or(|at| at <= changed.len() as u64), "{fault}");
        }
        faults
    }

    /// The only fault of the sound text with one change, and the text at its offset.
    fn fault(from: &str, to: &str) -> (ErrorKind, Part, String) {
        let faults = faults(from, to);
        assert_eq!(faults.len(), 1, "{from} -> {to}: {faults:?}");
        let at = usize::try_from(faults[0].offset().unwrap_or(0)).unwrap();
        let text = sound().replacen(from, to, 1);
        (faults[0].kind(), faults[0].part(), text[at..].chars().take(3).collect())
    }

    #[test]
    fn sound_manifest() {
        let manifest = Manifest::from_json(sound().as_bytes()).unwrap();
        assert_eq!((manifest.n_cells(), manifest.n_genes(), manifest.tile_size()), (5, 7, 2));
        assert_eq!((manifest.n_tiles(), manifest.nnz()), (3, 7));
        assert_eq!(manifest.tile_limits().collect::<Vec<_>>(), [2, 4, 5]);
        assert_eq!([0, 1, 2].map(|tile| manifest.tile_cells(tile)), [2, 2, 1]);
        assert_eq!(manifest.tile_bytes(), [200, 201, 202]);
        assert_eq!((manifest.n_chunks(), manifest.zstd_level()), (Some(8), Some(-1)));
        assert_eq!(manifest.metadata(), Some(r#"{"a": [1, "]\"["]}"#));
        assert!(manifest.has_var_names() && !manifest.has_gene_order() && !manifest.has_var_table());
        let obs = manifest.obs().unwrap();
        assert_eq!((obs.tiles_per_file(), obs.shard_bytes()), (2, &[9, 8][..]));
        assert_eq!(obs.shard_sha256(), [[15; 32]; 2]);
        assert_eq!(obs.fingerprint(), "0123456789abcdef01234567");
        let stated =
            ["gene_order.npy", "var_names.txt", "var.parquet", "later.bin"].map(|name| manifest.file_sha256(name));
        assert_eq!(stated, [None, Some(&[15; 32]), None, None]);
        let located: Vec<_> = (0..7).map(|cell| manifest.locate(cell)).collect();
        assert_eq!(located, [Some((0, 0)), Some((0, 1)), Some((1, 0)), Some((1, 1)), Some((2, 0)), None, None]);
        assert_eq!(Manifest::from_json(manifest.to_json().as_bytes()).unwrap(), manifest);
    }

    #[test]
    fn faults_name_key_and_offset() {
        let part = |key| Part::Manifest(Some(key));
        let range = |found, min, max| ErrorKind::OutOfRange { found, min, max };
        let cases = [
            ("deltacells-dataset", "deltacel", ErrorKind::BadMagic, "format", "\"de"),
            ("\"version\": 2", "\"version\": 3", ErrorKind::Version { found: 3, expected: 2 }, "version", "3, "),
            ("\"version\": 2", "\"version\": 2.0", ErrorKind::WrongType, "version", "2.0"),
            ("\"version\": 2", "\"version\": true", ErrorKind::WrongType, "version", "tru"),
            ("\"version\": 2", "\"version\": \"2\"", ErrorKind::WrongType, "version", "\"2\""),
            ("\"n_cells\": 5", "\"n_cells\": 5e0", ErrorKind::WrongType, "n_cells", "5e0"),
            ("\"n_cells\": 5", "\"n_cells\": -1", range(-1, 0, MAX_COUNT.into()), "n_cells", "-1,"),
            ("\"n_cells\": 5", "\"n_cells\": 6", ErrorKind::Inconsistent { found: 6, expected: 5 }, "n_cells", "6, "),
            ("\"n_genes\": 7", "\"n_genes\": 2147483649", range(1 + (1 << 31), 1, 1 << 31), "n_genes", "214"),
            ("\"tile_size\": 2", "\"tile_size\": 0", range(0, 1, MAX_COUNT.into()), "tile_size", "0,\n"),
            ("[2, 2 ,1]", "[2, 1 ,2]", range(1, 2, 2), "tile_cells", "1 ,"),
            ("[2, 2 ,1]", "[2, 2 ,0]", range(0, 1, 2), "tile_cells", "0],"),
            ("[2, 2 ,1]", "[2, \"2,\" ,1]", ErrorKind::WrongType, "tile_cells", "\"2,"),
            ("[2, 2 ,1]", "[2, [2, 3] ,1]", ErrorKind::WrongType, "tile_cells", "[2,"),
            ("[2, 2 ,1]", "{}", ErrorKind::WrongType, "tile_cells", "{},"),
            ("[3,4,0]", "[3,4]", ErrorKind::Inconsistent { found: 2, expected: 3 }, "tile_nnz", "[3,"),
            ("[3,4,0]", "[ ]", ErrorKind::Inconsistent { found: 0, expected: 3 }, "tile_nnz", "[ ]"),
            ("8, \"zstd_level\"", "null, \"zstd_level\"", ErrorKind::WrongType, "n_chunks", "nul"),
            ("\"has_var_names\": true", "\"has_var_names\": 1", ErrorKind::WrongType, "has_var_names", "1, "),
            ("{\"a\"", "[], \"x\": {\"a\"", ErrorKind::WrongType, "metadata", "[],"),
            ("[9, 8]", "[9]", ErrorKind::Inconsistent { found: 1, expected: 2 }, "obs_shard_bytes", "[9]"),
            ("[\"0f", "[\"0", ErrorKind::Syntax(SyntaxFault::Hex), "obs_shard_sha256", "\"00"),
            ("[\"0f", "[\"../", ErrorKind::Syntax(SyntaxFault::Hex), "obs_shard_sha256", "\"../"),
            ("txt\": \"0f", "txt\": \"", ErrorKind::Syntax(SyntaxFault::Hex), "tilekern_sha256", "\"0f"),
            ("txt\": \"", "txt\": 7, \"\": \"", ErrorKind::WrongType, "tilekern_sha256", "7, "),
            ("{\"var_", "[], \"x\": {\"var_", ErrorKind::WrongType, "tilekern_sha256", "[],"),
            ("89abcdef", "89ABCDEF", ErrorKind::Syntax(SyntaxFault::Hex), "obs_fingerprint", "\"01"),
            ("\"other\"", "\"n_\\u0063ells\"", ErrorKind::Syntax(SyntaxFault::RepeatedKey), "n_cells", "[[{"),
        ];
        for (from, to, kind, key, at) in cases {
            let (found, found_part, text) = fault(from, to);
            assert_eq!((found, found_part), (kind, part(key)), "{from} -> {to}");
            assert_eq!(text, at.chars().take(3).collect::<String>(), "{from} -> {to}");
        }
        let huge = "9".repeat(400);
        assert_eq!(fault("\"n_cells\": 5", &format!("\"n_cells\": {huge}")).0, range(i128::MAX, 0, MAX_COUNT.into()));
        for key in KEYS {
            let faults = faults(&format!("\"{key}\""), "\"absent\"");
            let missing = !matches!(key, "n_chunks" | "zstd_level" | FILE_SHA256);
            assert_eq!(faults.iter().any(|fault| fault.part() == part(key)), missing, "{key}: {faults:?}");
            assert!(faults.iter().all(|fault| fault.kind() == ErrorKind::Missing), "{key}: {faults:?}");
        }
        // Several at once, each told.
        let text = sound().replace("\"version\": 2", "\"version\": 1").replace("\"n_genes\": 7", "\"n_genes\": 0");
        assert_eq!(Manifest::faults(text.as_bytes()).len(), 2);
        let text = sound().replace("\"has_obs\": true", "\"has_obs\": false").replace("[9, 8]", "false");
        assert_eq!(Manifest::from_json(text.as_bytes()).unwrap().obs(), None, "obs keys count only with has_obs");
    }

    #[test]
    fn not_json() {
        let kind = |fault| ErrorKind::Syntax(fault);
        let error = |text: &[u8]| Manifest::from_json(text).unwrap_err();
        assert_eq!(error(b"").kind(), kind(SyntaxFault::Json));
        assert_eq!(error(b"[1]").kind(), ErrorKind::WrongType);
        assert_eq!(error(b"7").kind(), ErrorKind::WrongType);
        let utf8 = error(b"{\"a\": \"\xff\"}");
        assert_eq!((utf8.kind(), utf8.offset()), (kind(SyntaxFault::Utf8), Some(7)));
        let trailing = error(format!("{} x", sound()).as_bytes());
        assert_eq!((trailing.kind(), trailing.offset()), (kind(SyntaxFault::Json), Some(sound().len() as u64 + 1)));
        for bare in ["NaN", "Infinity", "-Infinity"] {
            let text = sound().replace("[[{}]]", bare);
            let error = Manifest::from_json(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), kind(SyntaxFault::Json));
            let (at, value) = (usize::try_from(error.offset().unwrap()).unwrap(), text.find(bare).unwrap());
            assert!((value..value + bare.len()).contains(&at), "{bare}: {at}, not {value}");
        }
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for (n, deep) in [(126, false), (127, false), (128, true), (1_000_000, true)] {
                let text = sound().replace("[[{}]]", &format!("{}1{}", open.repeat(n), close.repeat(n)));
                let faults = Manifest::faults(text.as_bytes());
                assert_eq!(faults.iter().any(|f| f.kind() == kind(SyntaxFault::Depth)), deep, "{n}: {faults:?}");
            }
        }
        let text = sound();
        for end in 0..text.len() {
            let error = error(&text.as_bytes()[..end]);
            assert_eq!(error.kind(), kind(SyntaxFault::Json), "{end}");
            assert!(error.offset().is_some_and(|at| at <= end as u64), "{end}: {error}");
        }
    }
}
