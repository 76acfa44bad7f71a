//! Datasets: directories of tiles with a manifest.
//!
//! Source: DELTACEL file format, "Dataset layout".

mod batches;
mod collection;
mod cost;
#[cfg(all(feature = "encode", feature = "obs"))]
mod dictionary;
mod genes;
mod manifest;
mod names;
mod npy;
#[cfg(feature = "obs")]
pub mod obs;
mod rows;
#[cfg(feature = "obs")]
mod var;
mod verify;
#[cfg(feature = "encode")]
mod write;

use std::path::PathBuf;
use std::sync::OnceLock;

pub use self::batches::{Batch, BatchState, Batches, BatchesBuilder, Remainder};
pub use self::collection::{Collection, GeneKey, GeneMatch};
pub use self::cost::Cost;
pub use self::genes::{GeneColumns, GeneOrder, Genes};
pub use self::manifest::{Manifest, Obs};
pub use self::names::VarNames;
pub use self::rows::Reader;
#[cfg(feature = "obs")]
pub use self::var::{INDEX_NAME, var_index};
pub use self::verify::{Event, verify};
#[cfg(feature = "encode")]
pub use self::write::{Writer, WriterBuilder};

use super::csr::{Count, Csr};
use super::decode::{Decoded, Decoder};
use super::header::HEADER_LEN;
use super::tile::{Outline, STREAMS, Tile};
use crate::buffer::Buffer;
use crate::error::{Error, ErrorKind, Limit, Part, Stream, Unsupported};
use crate::limits::Limits;
use crate::source::{Directory, Object, Source};

const MANIFEST: &str = "manifest.json";
const GENE_ORDER: &str = "gene_order.npy";
const VAR_NAMES: &str = "var_names.txt";
const VAR_TABLE: &str = "var.parquet";
const OBS_SCHEMA: &str = "obs/schema.json";
const OBS_SHARD: &str = "obs shard";

fn tile_name(tile: u32) -> String {
    format!("tiles/tile_{tile:06}.dct")
}

fn shard_name(shard: usize) -> String {
    format!("obs/obs_{shard:04}.parquet")
}

/// A dataset that was opened: its manifest is checked, its other files are read when they are asked for.
///
/// It may be shared by threads.
///
/// ```
/// # #[cfg(feature = "encode")] {
/// use tilekern::deltacel::dataset::{Dataset, Writer};
/// use tilekern::deltacel::{Csr, CsrView, Decoder};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("counts");
/// let mut writer = Writer::builder(5).tile_size(2).create(&path)?;
/// writer.push(&CsrView { n_genes: 5, indptr: &[0, 3, 3, 4], indices: &[0, 2, 4, 1], values: &[1, 2, 3, 300] })?;
/// writer.finish()?;
///
/// let dataset = Dataset::open(&path)?;
/// let mut csr = Csr::<f32>::new();
/// dataset.rows(&[2, 0, 2], &Decoder::new()?, &mut csr)?;
/// assert_eq!(csr.indptr(), [0, 1, 4, 5]);
/// assert_eq!(csr.values(), [300.0, 1.0, 2.0, 3.0, 300.0]);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dataset {
    source: Box<dyn Source>,
    manifest: Manifest,
    limits: Limits,
    check_crc: bool,
    gene_order: OnceLock<Option<Vec<i32>>>,
    var_names: OnceLock<Option<VarNames>>,
    /// The names of genes that the table of genes has, where there is no `var_names.txt`.
    #[cfg(feature = "obs")]
    index_names: OnceLock<Option<VarNames>>,
}

/// Options of a [`Dataset`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct DatasetBuilder {
    limits: Limits,
    check_crc: bool,
}

impl DatasetBuilder {
    /// Bounds on what is read into memory; a decode is bound by the limits of its [`Decoder`].
    pub fn limits(mut self, limits: Limits) -> DatasetBuilder {
        self.limits = limits;
        self
    }

    /// Whether the CRC of a tile is checked whenever it is read; `true` unless it is set.
    ///
    /// Without it a tile is no longer read wholly: only its header, its bounds and the chunks that are needed are. That
    /// makes random access to few cells of large tiles cheap. Every other check stays, so it is as safe, but damage
    /// inside a frame may go unnoticed: use it for data that something else vouches for, or that was verified before.
    pub fn check_crc(mut self, check: bool) -> DatasetBuilder {
        self.check_crc = check;
        self
    }

    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn open(self, path: impl Into<PathBuf>) -> Result<Dataset, Error> {
        self.open_source(Box::new(Directory::new(path)?))
    }

    /// Opens a dataset in any store.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn open_source(self, source: Box<dyn Source>) -> Result<Dataset, Error> {
        let text = read_manifest(&*source)?;
        let manifest = Manifest::from_json(&text).map_err(|error| error.in_path(source.path(MANIFEST)))?;
        let DatasetBuilder { limits, check_crc } = self;
        Ok(Dataset {
            source,
            manifest,
            limits,
            check_crc,
            gene_order: OnceLock::new(),
            var_names: OnceLock::new(),
            #[cfg(feature = "obs")]
            index_names: OnceLock::new(),
        })
    }
}

impl Dataset {
    /// Opens the dataset in the directory at `path`. Its manifest is read and checked, and nothing else.
    ///
    /// # Errors
    /// [`Unsupported::Incomplete`] for a directory without a manifest; any fault of the manifest (see
    /// [`Manifest::faults`]); [`Unsupported::FileKind`]; [`ErrorKind::Io`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Dataset, Error> {
        Dataset::builder().open(path)
    }

    /// Options first.
    pub fn builder() -> DatasetBuilder {
        DatasetBuilder { limits: Limits::default(), check_crc: true }
    }

    /// What the dataset says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Cells (rows) of all tiles.
    pub fn n_cells(&self) -> u64 {
        self.manifest.n_cells()
    }

    /// Genes (columns).
    pub fn n_genes(&self) -> u32 {
        self.manifest.n_genes()
    }

    /// Tiles.
    pub fn n_tiles(&self) -> u32 {
        self.manifest.n_tiles()
    }

    /// The column of the source that each gene was, or `None` if the dataset does not say.
    ///
    /// The file is read on the first call.
    ///
    /// # Errors
    /// In [`Part::File`]: whatever keeps the file from being such an array; it need not be a permutation.
    pub fn gene_order(&self) -> Result<Option<&[i32]>, Error> {
        let file = self.manifest.has_gene_order.then_some(GENE_ORDER);
        once(&self.gene_order, || self.side_file(file, |bytes| npy::read(&bytes, self.n_genes()))).map(Option::as_deref)
    }

    /// The name of each gene, or `None` if the dataset does not say.
    ///
    /// The file is read on the first call.
    ///
    /// # Errors
    /// In [`Part::File`]: the text is not UTF-8 or has another number of lines than genes.
    pub fn var_names(&self) -> Result<Option<&VarNames>, Error> {
        let file = self.manifest.has_var_names.then_some(VAR_NAMES);
        once(&self.var_names, || self.side_file(file, |bytes| names::read(bytes, self.n_genes()))).map(Option::as_ref)
    }

    /// The table of cells, or `None` if the dataset has none. Its schema is read, and nothing else.
    ///
    /// # Errors
    /// With the path: the first fault of the schema (see [`ObsSchema::faults`](obs::ObsSchema::faults)).
    #[cfg(feature = "obs")]
    pub fn obs(&self) -> Result<Option<obs::ObsTable<'_>>, Error> {
        self.manifest.obs().map(|stated| obs::ObsTable::open(self, stated)).transpose()
    }

    /// The table of genes, a row for each in output order, or `None` if the dataset has none. [`var_index`] tells which
    /// column is its index. It is read on each call.
    ///
    /// # Errors
    /// In [`Part::File`] or [`Part::Footer`], with the path: whatever keeps the file from being a Parquet file with a row
    /// for each gene.
    #[cfg(feature = "obs")]
    pub fn var(&self) -> Result<Option<arrow_array::RecordBatch>, Error> {
        let read = || var::read(&mut *self.source.open(VAR_TABLE)?, self.n_genes(), &self.limits);
        let table = self.manifest.has_var_table.then(read).transpose();
        table.map_err(|error| error.in_part(Part::File(VAR_TABLE)).in_path(self.source.path(VAR_TABLE)))
    }

    fn side_file<T>(
        &self,
        name: Option<&'static str>,
        read: impl FnOnce(Vec<u8>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let Some(name) = name else { return Ok(None) };
        let found = read_file(&*self.source, name, self.limits.max_input_bytes).and_then(read);
        found.map(Some).map_err(|error| error.in_part(Part::File(name)).in_path(self.source.path(name)))
    }

    /// Reads and opens a tile, checked wholly whatever [`DatasetBuilder::check_crc`] says.
    ///
    /// `buffer` keeps its memory for the next one.
    ///
    /// # Errors
    /// With the path of the tile: every fault that [`Tile::open`] finds, and any disagreement with the manifest.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn tile<'b>(&self, tile: u32, buffer: &'b mut TileBuffer) -> Result<Tile<'b>, Error> {
        self.whole_tile(tile, buffer).map_err(|error| self.in_tile(tile, error))
    }

    fn whole_tile<'b>(&self, n: u32, buffer: &'b mut TileBuffer) -> Result<Tile<'b>, Error> {
        let size = self.open_object(n, buffer)?;
        buffer.fill(0, size)?;
        let tile = Tile::open(buffer.bytes())?;
        self.agrees(n, &tile)?;
        Ok(tile)
    }

    /// Opens a tile for a decode of the chunks that `needed` names once the tile's head is known.
    fn tile_for<'b>(
        &self,
        n: u32,
        needed: impl Fn(&Tile<'_>) -> Vec<u32>,
        buffer: &'b mut TileBuffer,
    ) -> Result<Tile<'b>, Error> {
        if self.check_crc {
            return self.tile(n, buffer);
        }
        self.part_of_tile(n, needed, &STREAMS, buffer).map_err(|error| self.in_tile(n, error))
    }

    /// Reads how a tile is cut: header, bounds, chunk table, and the frames of its exceptions, which are few.
    ///
    /// That is a small part of the tile; its CRC and its other frames are not looked at. `buffer` keeps its memory.
    ///
    /// # Errors
    /// As [`Dataset::tile`], as far as it is read.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn outline(&self, tile: u32, buffer: &mut TileBuffer) -> Result<Outline, Error> {
        let all = |tile: &Tile<'_>| (0..tile.n_chunks()).collect();
        let read = self.part_of_tile(tile, all, &[Stream::Gexc, Stream::Vexc], buffer);
        read.map(|tile| tile.outline()).map_err(|error| self.in_tile(tile, error))
    }

    /// Reads and checks no more of a tile than some streams of some of its chunks need.
    fn part_of_tile<'b>(
        &self,
        n: u32,
        needed: impl Fn(&Tile<'_>) -> Vec<u32>,
        streams: &[Stream],
        buffer: &'b mut TileBuffer,
    ) -> Result<Tile<'b>, Error> {
        let size = self.open_object(n, buffer)?;
        let head = self.head_guess(n).min(size);
        buffer.fill(0, head)?;
        let tile = Tile::read_header(buffer.bytes())?;
        self.agrees(n, &tile)?;
        tile.check_sizes()?;
        let head_len = tile.head_len();
        buffer.fill(head, head_len)?;
        let tile = Tile::read_header(buffer.bytes())?;
        tile.check_head()?;
        let chunks = needed(&tile);
        for (start, end) in spans(&tile, &chunks, streams) {
            buffer.fill(start, end)?;
        }
        let tile = Tile::read_header(buffer.bytes())?;
        tile.check_streams(chunks, streams)?;
        Ok(tile)
    }

    /// Bytes that are most likely all that stands before the streams; where there are more chunks the rest follows.
    fn head_guess(&self, n: u32) -> u64 {
        HEADER_LEN as u64 + 64 * 96 + 8 * (self.manifest.tile_cells(n) + 1)
    }

    /// Opens the object of a tile and compares its size with the manifest.
    fn open_object(&self, n: u32, buffer: &mut TileBuffer) -> Result<u64, Error> {
        let object = self.source.open(&tile_name(n))?;
        let (found, expected) = (object.size(), self.manifest.tile_bytes[n as usize]);
        check_size(found, expected, Part::Object)?;
        buffer.set(object, self.limits.max_input_bytes)?;
        Ok(found)
    }

    /// The tile is the one that the manifest describes.
    fn agrees(&self, n: u32, tile: &Tile<'_>) -> Result<(), Error> {
        disagreements(&self.manifest, n, tile).next().map_or(Ok(()), Err)
    }

    /// Where a tile is, as error messages name it.
    pub fn tile_path(&self, tile: u32) -> PathBuf {
        self.source.path(&tile_name(tile))
    }

    /// With the dataset's path, where its store has one.
    fn located(&self, error: Error) -> Error {
        let path = self.source.path("");
        if path.as_os_str().is_empty() { error } else { error.in_path(path) }
    }

    fn in_tile(&self, n: u32, error: Error) -> Error {
        error.in_part(Part::Tile(n)).in_path(self.tile_path(n))
    }

    /// Decodes cells by their global numbers, in any order, with repeats; `out` has a row for each in that order.
    ///
    /// Each tile is opened once, and only the chunks that hold those cells are decoded. A loop is faster with a
    /// [`Reader`], which keeps buffers.
    ///
    /// # Errors
    /// As [`Reader::rows`].
    pub fn rows<T: Count>(&self, cells: &[u64], decoder: &Decoder, out: &mut Csr<T>) -> Result<Decoded, Error> {
        self.reader(decoder).rows(cells, out)
    }

    /// Decodes the cells of a range of global numbers.
    ///
    /// # Errors
    /// As [`Reader::range`].
    pub fn range<T: Count>(
        &self,
        cells: std::ops::Range<u64>,
        decoder: &Decoder,
        out: &mut Csr<T>,
    ) -> Result<Decoded, Error> {
        self.reader(decoder).range(cells, out)
    }

    /// The numbers of the cells for which a mask with an entry for each cell has `true`.
    ///
    /// # Errors
    /// [`ErrorKind::Inconsistent`] in [`Part::Cells`] for a mask of another length.
    pub fn cells_of_mask(&self, mask: &[bool]) -> Result<Vec<u64>, Error> {
        cells_of_mask(mask, self.n_cells())
    }

    /// A reader for a loop: it keeps its buffers from one call to the next.
    pub fn reader<'a, T: Count>(&'a self, decoder: &'a Decoder) -> Reader<'a, T> {
        Reader::new(vec![rows::Piece { dataset: self, first: 0, map: None }], self.n_genes(), decoder)
    }
}

impl std::fmt::Debug for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dataset").field("path", &self.source.path("")).field("n_cells", &self.n_cells()).finish()
    }
}

/// The bytes of a tile: read into memory that is reused, or borrowed from a source that has them in memory.
#[derive(Default)]
pub struct TileBuffer {
    object: Option<Box<dyn Object>>,
    /// As long as the object, but filled only where it is needed; unused where the object lies in memory.
    bytes: Buffer<u8>,
}

impl TileBuffer {
    /// An empty one.
    pub fn new() -> TileBuffer {
        TileBuffer::default()
    }

    fn set(&mut self, object: Box<dyn Object>, max: u64) -> Result<(), Error> {
        let size = object.size();
        if object.bytes().is_none() {
            Limits::check(size, max, Limit::InputBytes, Part::Object)?;
            let kind = ErrorKind::LimitExceeded { needed: size, limit: usize::MAX as u64, what: Limit::InputBytes };
            self.bytes.try_resize(usize::try_from(size).map_err(|_| Error::new(kind, Part::Object))?)?;
        }
        self.object = Some(object);
        Ok(())
    }

    /// Makes sure that the bytes from `start` to `end` are there; both lie inside the object.
    fn fill(&mut self, start: u64, end: u64) -> Result<(), Error> {
        match &mut self.object {
            Some(object) if object.bytes().is_none() && start < end => {
                let span = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(self.bytes.len());
                let (from, to) = (span(start), span(end));
                object.read_at(start, &mut self.bytes[from..to])
            }
            _ => Ok(()),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.object.as_deref().and_then(Object::bytes).unwrap_or(&self.bytes)
    }
}

impl std::fmt::Debug for TileBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TileBuffer").field("bytes", &self.bytes().len()).finish()
    }
}

/// The text of the manifest; a store without one is an incomplete dataset.
fn read_manifest(source: &dyn Source) -> Result<Vec<u8>, Error> {
    read_file(source, MANIFEST, manifest::MAX_BYTES).map_err(|error| match error.kind() {
        ErrorKind::Io(std::io::ErrorKind::NotFound) => {
            Error::new(ErrorKind::Unsupported(Unsupported::Incomplete), Part::Object).in_path(source.path(""))
        }
        _ => error.in_part(Part::Manifest(None)).in_path(source.path(MANIFEST)),
    })
}

/// The whole of a small object.
fn read_file(source: &dyn Source, name: &str, max: u64) -> Result<Vec<u8>, Error> {
    let mut object = source.open(name)?;
    let size = object.size();
    Limits::check(size, max, Limit::InputBytes, Part::Object)?;
    if let Some(bytes) = object.bytes() {
        return Ok(bytes.to_vec());
    }
    let kind = ErrorKind::LimitExceeded { needed: size, limit: usize::MAX as u64, what: Limit::InputBytes };
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| Error::new(kind, Part::Object))?];
    object.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// An object has the size that the manifest states.
fn check_size(found: u64, expected: u64, part: Part) -> Result<(), Error> {
    let error = match found {
        _ if found == expected => return Ok(()),
        _ if found < expected => {
            Error::new(ErrorKind::Truncated { needed: expected, available: found }, part).at(found)
        }
        _ => Error::new(ErrorKind::Inconsistent { found: found.into(), expected: expected.into() }, part).at(expected),
    };
    Err(error.caused_by("its size in manifest.json"))
}

/// Where the header of a tile says anything else than the manifest.
fn disagreements(manifest: &Manifest, n: u32, tile: &Tile<'_>) -> impl Iterator<Item = Error> + use<> {
    let header = tile.header();
    let fields = [
        ("n_cells", 16, header.n_cells, manifest.tile_cells(n), "tile_cells in manifest.json"),
        ("nnz", 24, header.nnz, manifest.tile_nnz[n as usize], "tile_nnz in manifest.json"),
        ("n_genes", 32, header.n_genes.into(), manifest.n_genes.into(), "n_genes in manifest.json"),
    ];
    fields.into_iter().filter(|(_, _, found, expected, _)| found != expected).map(
        |(field, at, found, expected, why)| {
            let kind = ErrorKind::Inconsistent { found: found.into(), expected: expected.into() };
            Error::new(kind, Part::Header(field)).at(at).caused_by(why)
        },
    )
}

fn cells_of_mask(mask: &[bool], n_cells: u64) -> Result<Vec<u64>, Error> {
    if mask.len() as u64 != n_cells {
        let kind = ErrorKind::Inconsistent { found: mask.len() as i128, expected: n_cells.into() };
        return Err(Error::new(kind, Part::Cells).caused_by("a mask has one entry for each cell"));
    }
    Ok((0..).zip(mask).filter(|(_, wanted)| **wanted).map(|(cell, _)| cell).collect())
}

/// What is read of a tile for some streams of some chunks: start and end of each read.
fn spans(tile: &Tile<'_>, chunks: &[u32], streams: &[Stream]) -> Vec<(u64, u64)> {
    let inputs = |chunk: &u32| {
        let chunk = tile.chunk(*chunk);
        streams.iter().filter_map(move |&stream| tile.stream(&chunk, stream))
    };
    let mut spans: Vec<(u64, u64)> =
        chunks.iter().flat_map(inputs).map(|input| (input.offset(), input.end())).collect();
    // One read for what lies close together, as the streams of a chunk and neighbouring chunks do.
    spans.sort_unstable();
    spans.dedup_by(|next, before| {
        let near = next.0 <= before.1.saturating_add(4096);
        if near {
            before.1 = before.1.max(next.1);
        }
        near
    });
    spans
}

/// The value of a cell that is filled on its first use; a failure is not kept.
fn once<T>(cell: &OnceLock<T>, fill: impl FnOnce() -> Result<T, Error>) -> Result<&T, Error> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = fill()?;
    Ok(cell.get_or_init(|| value))
}
