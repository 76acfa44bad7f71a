//! Writing a dataset so that it is whole or recognised as incomplete, whatever happens.
//!
//! Source: DELTACEL file format, "Dataset layout".

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "obs")]
use arrow_array::RecordBatch;
#[cfg(feature = "obs")]
use sha2::{Digest, Sha256};

use super::manifest::{self, FileDigests, Manifest};
#[cfg(feature = "obs")]
use super::obs::{ObsSchema, write::ObsWriter};
use super::{GENE_ORDER, MANIFEST, VAR_NAMES, names, npy, tile_name};
#[cfg(feature = "obs")]
use super::{OBS_SCHEMA, VAR_TABLE, var};
use crate::deltacel::csr::CsrView;
use crate::deltacel::encode::{self, Encoder, EncoderBuilder};
use crate::deltacel::header::{Header, MAX_GENES};
use crate::deltacel::tile::Tile;
use crate::error::{Error, ErrorKind, Part, Unsupported};

const OBS_FOLDER: &str = "obs";

/// Cells of a tile unless another number is asked for.
const TILE_SIZE: u64 = 10_000;

/// Options of a [`Writer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct WriterBuilder {
    n_genes: u32,
    tile_size: u64,
    encoder: EncoderBuilder,
    gene_order: Option<Vec<i32>>,
    var_names: Option<Vec<String>>,
    metadata: Option<String>,
    #[cfg(feature = "obs")]
    obs: Option<(ObsSchema, u64)>,
    #[cfg(feature = "obs")]
    var: Option<RecordBatch>,
}

impl WriterBuilder {
    /// Cells of each tile but the last; 10,000 unless it is set. The writer holds one tile in memory.
    pub fn tile_size(mut self, cells: u64) -> WriterBuilder {
        self.tile_size = cells;
        self
    }

    /// How tiles are made.
    pub fn encoder(mut self, encoder: EncoderBuilder) -> WriterBuilder {
        self.encoder = encoder;
        self
    }

    /// The column of the source that each gene was: as many as genes, distinct, not negative.
    pub fn gene_order(mut self, order: impl Into<Vec<i32>>) -> WriterBuilder {
        self.gene_order = Some(order.into());
        self
    }

    /// The name of each gene: as many as genes, without line breaks.
    pub fn var_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> WriterBuilder {
        self.var_names = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Data of your own: the text of a JSON object.
    pub fn metadata(mut self, json: impl Into<String>) -> WriterBuilder {
        self.metadata = Some(json.into());
        self
    }

    /// A table of cells with these columns, in shards of so many tiles each (the format's default is 1,000). Its rows
    /// come with the cells: [`Writer::push_with_obs`].
    #[cfg(feature = "obs")]
    pub fn obs(mut self, schema: ObsSchema, tiles_per_file: u64) -> WriterBuilder {
        self.obs = Some((schema, tiles_per_file));
        self
    }

    /// The table of genes, a row for each, in output order. Its first column is the index; the metadata of its schema
    /// may have the name of the index under [`INDEX_NAME`](super::INDEX_NAME), or pandas' own under `pandas`, which is
    /// then kept as it is. An index of text must be the same as the names of the genes, if those are given, too.
    ///
    /// Dictionaries of text keep their values, in their order, those that no gene has among them, and whether they are
    /// ordered; a value that is there twice becomes one. Dictionaries of other values are written as the values.
    #[cfg(feature = "obs")]
    pub fn var(mut self, table: RecordBatch) -> WriterBuilder {
        self.var = Some(table);
        self
    }

    /// Starts a dataset in a new or empty directory at `path`.
    ///
    /// # Errors
    /// [`Unsupported::Exists`] for anything else that is there, [`Unsupported::Busy`] if another writer was faster;
    /// options that do not hold, in [`Part::Option`]; [`ErrorKind::Io`].
    pub fn create(self, path: impl Into<PathBuf>) -> Result<Writer, Error> {
        self.create_on(path.into(), Arc::new(System))
    }

    fn create_on(self, root: PathBuf, disk: Arc<dyn Disk>) -> Result<Writer, Error> {
        let range = |option, found: u64, max: u64| {
            let kind = ErrorKind::OutOfRange { found: found.into(), min: 1, max: max.into() };
            if found < 1 || found > max { Err(Error::new(kind, Part::Option(option))) } else { Ok(()) }
        };
        range("n_genes", self.n_genes.into(), MAX_GENES.into())?;
        range("tile_size", self.tile_size, i64::MAX.unsigned_abs())?;
        let one_each = |option, found: usize| {
            let kind = ErrorKind::Inconsistent { found: found as i128, expected: self.n_genes.into() };
            let error = || Error::new(kind, Part::Option(option)).caused_by("one entry for each gene");
            if found as u64 == u64::from(self.n_genes) { Ok(()) } else { Err(error()) }
        };
        let mut side_files = Vec::new();
        if let Some(order) = &self.gene_order {
            one_each("gene_order", order.len())?;
            if let Some((kind, index)) = npy::fault_in(order) {
                return Err(Error::new(kind, Part::Option("gene_order")).index(index as u64));
            }
            side_files.push((GENE_ORDER, npy::to_bytes(order)));
        }
        if let Some(list) = &self.var_names {
            one_each("var_names", list.len())?;
            side_files.push((VAR_NAMES, names::to_bytes(list)?));
        }
        #[cfg(feature = "obs")]
        if let Some(table) = &self.var {
            side_files.push((VAR_TABLE, var::to_bytes(table, self.n_genes)?));
            self.var_names.as_deref().map_or(Ok(()), |names| var::check_names(table, names))?;
        }
        #[cfg(feature = "obs")]
        let obs = self.obs.map(|(schema, tiles)| ObsWriter::new(schema, tiles)).transpose()?;
        self.metadata.as_deref().map_or(Ok(()), manifest::check_metadata)?;
        let encoder = self.encoder.build()?;
        let manifest = Manifest {
            n_cells: 0,
            n_genes: self.n_genes,
            tile_size: self.tile_size,
            tile_nnz: Vec::new(),
            tile_bytes: Vec::new(),
            n_chunks: Some(0),
            zstd_level: Some(encoder.profile().zstd_level().into()),
            has_gene_order: self.gene_order.is_some(),
            has_var_names: self.var_names.is_some(),
            has_var_table: side_files.iter().any(|(name, _)| *name == super::VAR_TABLE),
            obs: None,
            metadata: self.metadata,
            file_sha256: digests(&side_files),
        };
        claim(&*disk, &root)?;
        #[cfg(feature = "obs")]
        if obs.is_some() {
            let folder = root.join(OBS_FOLDER);
            disk.create_dir(&folder).map_err(|e| Error::io(e, folder))?;
        }
        Ok(Writer {
            root,
            disk,
            encoder,
            manifest,
            side_files,
            pending: Pending::default(),
            tile: Vec::new(),
            starts: Vec::new(),
            #[cfg(feature = "obs")]
            obs,
            failed: false,
        })
    }
}

/// What the manifest states of the files beside the tiles.
#[cfg(feature = "obs")]
fn digests(files: &[(&'static str, Vec<u8>)]) -> FileDigests {
    manifest::FILES.map(|name| {
        let (_, bytes) = files.iter().find(|(file, _)| *file == name)?;
        Some(Sha256::digest(bytes).into())
    })
}

/// Nothing: the library that hashes comes with the feature `obs`.
#[cfg(not(feature = "obs"))]
fn digests(_: &[(&'static str, Vec<u8>)]) -> FileDigests {
    FileDigests::default()
}

/// Makes the directories. That of the tiles can be made once only, which keeps a second writer out.
fn claim(disk: &dyn Disk, root: &Path) -> Result<(), Error> {
    let refuse = |why| Err(Error::new(ErrorKind::Unsupported(why), Part::Object).in_path(root));
    match disk.is_empty(root) {
        Ok(true) => {}
        Ok(false) => return refuse(Unsupported::Exists),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return refuse(Unsupported::Exists),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            disk.create_dirs(root).map_err(|e| Error::io(e, root))?;
            if let Some(parent) = root.parent() {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                disk.sync_dir(parent).map_err(|e| Error::io(e, parent))?;
            }
        }
        Err(error) => return Err(Error::io(error, root)),
    }
    let tiles = root.join("tiles");
    match disk.create_dir(&tiles) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse(Unsupported::Busy),
        result => result.map_err(|e| Error::io(e, tiles)),
    }
}

/// Writes a dataset: cells are pushed, tiles are written as they fill, and the manifest comes last.
///
/// Every file is written under a temporary name, synced, and renamed. Until [`Writer::finish`] returns there is no
/// manifest, so that a directory whose writer was dropped, failed or was killed is recognised as incomplete.
pub struct Writer {
    root: PathBuf,
    disk: Arc<dyn Disk>,
    encoder: Encoder,
    /// Of the tiles written so far.
    manifest: Manifest,
    side_files: Vec<(&'static str, Vec<u8>)>,
    pending: Pending,
    tile: Vec<u8>,
    /// Where the cells of the piece at hand start in its arrays.
    starts: Vec<usize>,
    #[cfg(feature = "obs")]
    obs: Option<ObsWriter>,
    failed: bool,
}

/// Cells that do not fill a tile yet.
struct Pending {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<i32>,
}

impl Default for Pending {
    fn default() -> Pending {
        Pending { indptr: vec![0], indices: Vec::new(), values: Vec::new() }
    }
}

impl Pending {
    fn n_cells(&self) -> u64 {
        self.indptr.len() as u64 - 1
    }

    fn extend(&mut self, piece: &CsrView<'_>) {
        // The piece is checked: no difference is above its number of nonzeros.
        let before = self.indices.len() as i64;
        self.indptr.extend(piece.indptr[1..].iter().map(|bound| before + (bound - piece.indptr[0])));
        self.indices.extend_from_slice(piece.indices);
        self.values.extend_from_slice(piece.values);
    }

    fn clear(&mut self) {
        self.indptr.truncate(1);
        self.indices.clear();
        self.values.clear();
    }
}

impl Writer {
    /// Options of a dataset with so many genes, 1 to 2^31.
    pub fn builder(n_genes: u32) -> WriterBuilder {
        WriterBuilder {
            n_genes,
            tile_size: TILE_SIZE,
            encoder: Encoder::builder(),
            gene_order: None,
            var_names: None,
            metadata: None,
            #[cfg(feature = "obs")]
            obs: None,
            #[cfg(feature = "obs")]
            var: None,
        }
    }

    /// Cells pushed so far.
    pub fn n_cells(&self) -> u64 {
        self.manifest.n_cells + self.pending.n_cells()
    }

    /// Adds the cells of a matrix, however many, and writes the tiles that are full.
    ///
    /// # Errors
    /// What is wrong with the matrix (see [`Encoder::encode`]; cells are numbered within it): then none of its cells
    /// is taken, and the writer can go on. After [`ErrorKind::Io`] or [`ErrorKind::TooManyExceptions`], with the path
    /// of the file, it cannot: each further call is refused as [`Unsupported::Incomplete`].
    pub fn push(&mut self, cells: &CsrView<'_>) -> Result<(), Error> {
        self.check_alive()?;
        #[cfg(feature = "obs")]
        self.needs_no_rows()?;
        self.check(cells)?;
        self.take(cells)
    }

    #[cfg(feature = "obs")]
    fn needs_no_rows(&self) -> Result<(), Error> {
        let why = "a writer with a table of cells is given its rows with the cells";
        let error = || Error::new(ErrorKind::Missing, Part::Option("obs")).caused_by(why);
        if self.obs.is_some() { Err(error()) } else { Ok(()) }
    }

    /// As [`Writer::push`], with a row of the table of cells for each cell: exactly the columns of the schema in their
    /// order, codes for categories (an [`ObsEncoder`](super::obs::ObsEncoder) makes them).
    ///
    /// # Errors
    /// As [`Writer::push`]; what is wrong with the rows, in [`Part::Column`] or [`Part::Option`], also takes none of
    /// the cells. [`Unsupported::Request`] without [`WriterBuilder::obs`].
    #[cfg(feature = "obs")]
    pub fn push_with_obs(&mut self, cells: &CsrView<'_>, rows: &RecordBatch) -> Result<(), Error> {
        self.check_alive()?;
        self.check(cells)?;
        let Some(obs) = &mut self.obs else {
            return Err(Error::new(ErrorKind::Unsupported(Unsupported::Request), Part::Option("obs")));
        };
        obs.check(rows, cells.indptr.len() - 1)?;
        obs.keep(rows);
        self.take(cells)
    }

    /// Passes a matrix, and finds where its cells start.
    fn check(&mut self, cells: &CsrView<'_>) -> Result<(), Error> {
        let (found, expected) = (cells.n_genes.into(), self.manifest.n_genes.into());
        if found != expected {
            return Err(Error::new(ErrorKind::Inconsistent { found, expected }, Part::Matrix("number of genes")));
        }
        encode::check(cells, &mut self.starts).map(drop)
    }

    fn take(&mut self, cells: &CsrView<'_>) -> Result<(), Error> {
        let mut pending = std::mem::take(&mut self.pending);
        let result = self.push_checked(cells, &mut pending);
        self.pending = pending;
        self.failed = result.is_err();
        result
    }

    fn push_checked(&mut self, cells: &CsrView<'_>, pending: &mut Pending) -> Result<(), Error> {
        let n_cells = cells.indptr.len() - 1;
        let mut next = 0;
        while next < n_cells {
            let room = self.manifest.tile_size - pending.n_cells();
            let end = next + usize::try_from(room).unwrap_or(usize::MAX).min(n_cells - next);
            let nonzeros = self.starts[next]..self.starts[end];
            let piece = CsrView {
                n_genes: cells.n_genes,
                indptr: &cells.indptr[next..=end],
                indices: &cells.indices[nonzeros.clone()],
                values: &cells.values[nonzeros],
            };
            if (end - next) as u64 == self.manifest.tile_size {
                self.write_tile(&piece)?; // needs no copy
            } else {
                pending.extend(&piece);
                if pending.n_cells() == self.manifest.tile_size {
                    self.write_pending(pending)?;
                }
            }
            next = end;
        }
        Ok(())
    }

    fn write_pending(&mut self, pending: &mut Pending) -> Result<(), Error> {
        let Pending { indptr, indices, values } = &*pending;
        self.write_tile(&CsrView { n_genes: self.manifest.n_genes, indptr, indices, values })?;
        pending.clear();
        Ok(())
    }

    fn write_tile(&mut self, cells: &CsrView<'_>) -> Result<(), Error> {
        let name = tile_name(self.manifest.n_tiles());
        let report =
            self.encoder.encode(cells, &mut self.tile).map_err(|error| error.in_path(self.root.join(&name)))?;
        self.put(&name, &self.tile)?;
        self.record(report.n_cells, report.nnz, report.total_bytes, report.n_chunks)
    }

    /// Notes a tile whose file is there, and writes its rows of the table of cells.
    fn record(&mut self, n_cells: u64, nnz: u64, bytes: u64, n_chunks: u32) -> Result<(), Error> {
        let manifest = &mut self.manifest;
        manifest.n_cells += n_cells;
        manifest.tile_nnz.push(nnz);
        manifest.tile_bytes.push(bytes);
        manifest.n_chunks = manifest.n_chunks.max(Some(n_chunks.into()));
        #[cfg(feature = "obs")]
        if let Some(obs) = &mut self.obs {
            obs.write_tile(&self.disk, &self.root, n_cells)?;
        }
        Ok(())
    }

    /// Takes a tile that was written elsewhere on the same file system: its file is checked wholly, and moved.
    ///
    /// So a dataset can be made of tiles that several processes wrote, or one that was interrupted.
    ///
    /// # Errors
    /// With the path of the file: whatever is wrong with the tile; another number of genes, or more cells than a tile
    /// has. [`Unsupported::Request`] after cells that do not fill a tile. None of these takes anything;
    /// after [`ErrorKind::Io`] the writer cannot go on.
    pub fn adopt(&mut self, tile: impl AsRef<Path>) -> Result<(), Error> {
        self.check_alive()?;
        #[cfg(feature = "obs")]
        self.needs_no_rows()?;
        let header = self.adoptable(tile.as_ref())?;
        self.adopt_checked(tile.as_ref(), &header)
    }

    /// As [`Writer::adopt`], with the tile's rows of the table of cells.
    ///
    /// # Errors
    /// As [`Writer::adopt`] and [`Writer::push_with_obs`].
    #[cfg(feature = "obs")]
    pub fn adopt_with_obs(&mut self, tile: impl AsRef<Path>, rows: &RecordBatch) -> Result<(), Error> {
        self.check_alive()?;
        let header = self.adoptable(tile.as_ref())?;
        let Some(obs) = &mut self.obs else {
            return Err(Error::new(ErrorKind::Unsupported(Unsupported::Request), Part::Option("obs")));
        };
        obs.check(rows, usize::try_from(header.n_cells).unwrap_or(usize::MAX))?;
        obs.keep(rows);
        self.adopt_checked(tile.as_ref(), &header)
    }

    /// Passes a tile that can be the next one.
    fn adoptable(&self, path: &Path) -> Result<Header, Error> {
        let bytes = fs::read(path).map_err(|error| Error::io(error, path))?;
        let header = *Tile::open(&bytes).map_err(|error| error.in_path(path))?.header();
        let Manifest { n_genes, tile_size, .. } = self.manifest;
        if self.pending.n_cells() > 0 || !self.manifest.n_cells.is_multiple_of(tile_size) {
            let kind = ErrorKind::Unsupported(Unsupported::Request);
            return Err(Error::new(kind, Part::Object).caused_by("the tile before it is not full").in_path(path));
        }
        if header.n_genes != n_genes {
            let kind = ErrorKind::Inconsistent { found: header.n_genes.into(), expected: n_genes.into() };
            return Err(Error::new(kind, Part::Header("n_genes")).in_path(path));
        }
        if header.n_cells < 1 || header.n_cells > tile_size {
            let kind = ErrorKind::OutOfRange { found: header.n_cells.into(), min: 1, max: tile_size.into() };
            return Err(Error::new(kind, Part::Header("n_cells")).in_path(path));
        }
        Ok(header)
    }

    fn adopt_checked(&mut self, path: &Path, header: &Header) -> Result<(), Error> {
        let target = self.root.join(tile_name(self.manifest.n_tiles()));
        let moved = File::open(path).and_then(|file| file.sync_all()).and_then(|()| self.disk.rename(path, &target));
        let result = moved
            .map_err(|error| Error::io(error, &target))
            .and_then(|()| self.record(header.n_cells, header.nnz, header.total_size, header.n_chunks));
        self.failed = result.is_err();
        result
    }

    /// Writes what is left, the other files, and the manifest.
    ///
    /// # Errors
    /// As [`Writer::push`]. The directory is then incomplete; nothing can be added to it.
    pub fn finish(mut self) -> Result<Manifest, Error> {
        self.check_alive()?;
        let mut pending = std::mem::take(&mut self.pending);
        if pending.n_cells() > 0 {
            self.write_pending(&mut pending)?;
        }
        #[cfg(feature = "obs")]
        if let Some(obs) = &mut self.obs {
            let cells = (0..self.manifest.n_tiles()).map(|tile| self.manifest.tile_cells(tile));
            let stated = obs.finish(cells)?;
            self.side_files.push((OBS_SCHEMA, obs.text().into()));
            self.manifest.obs = Some(stated);
        }
        for (name, bytes) in &self.side_files {
            self.put(name, bytes)?;
        }
        // All that the manifest speaks of is on the disk before the manifest is.
        self.sync(&self.root.join("tiles"))?;
        if self.manifest.obs.is_some() {
            self.sync(&self.root.join(OBS_FOLDER))?;
        }
        self.sync(&self.root)?;
        self.put(MANIFEST, self.manifest.to_json().as_bytes())?;
        if let Err(error) = self.sync(&self.root) {
            // It may not last, so it must not be taken for finished.
            let _ = self.disk.remove(&self.root.join(MANIFEST));
            return Err(error);
        }
        Ok(self.manifest)
    }

    fn check_alive(&self) -> Result<(), Error> {
        if self.failed {
            return Err(Error::new(ErrorKind::Unsupported(Unsupported::Incomplete), Part::Object).in_path(&self.root));
        }
        Ok(())
    }

    /// Writes a file: all of it, or nothing under its name.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.root.join(name);
        let temporary = self.root.join(format!("{name}.tmp"));
        let written = self.disk.create(&temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync()
        });
        written.and_then(|()| self.disk.rename(&temporary, &path)).map_err(|error| {
            let _ = self.disk.remove(&temporary); // the first error is the one to tell
            Error::io(error, path)
        })
    }

    fn sync(&self, path: &Path) -> Result<(), Error> {
        self.disk.sync_dir(path).map_err(|e| Error::io(e, path))
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("path", &self.root).field("n_cells", &self.n_cells()).finish_non_exhaustive()
    }
}

/// The file operations that a writer needs; tests put failing ones in their place.
pub(super) trait Disk: Send + Sync {
    /// Whether a directory has no entry.
    fn is_empty(&self, path: &Path) -> io::Result<bool>;
    fn create_dirs(&self, path: &Path) -> io::Result<()>;
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates a file that must not be there yet.
    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
}

pub(super) trait NewFile: Write + Send {
    fn sync(&mut self) -> io::Result<()>;
}

struct System;

impl Disk for System {
    fn is_empty(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::read_dir(path)?.next().transpose()?.is_none())
    }

    fn create_dirs(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        Ok(Box::new(File::create_new(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Makes the names in a directory last, where the system has such an operation.
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        if !cfg!(unix) {
            return Ok(());
        }
        match File::open(path)?.sync_all() {
            // Some network file systems do not know it for directories.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            result => result,
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

impl NewFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::deltacel::dataset::{Dataset, Event, verify};
    use crate::deltacel::{Csr, Decoder};
    use crate::source::Directory;

    /// What goes wrong when the operation comes whose turn it is.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fault {
        /// It fails: the disk is full.
        Full,
        /// A write takes one byte and the next one fails.
        Half,
        /// A signal interrupts it, once.
        Interrupted,
        /// A write takes one byte only, as it may.
        Short,
    }

    /// The system's disk, but one operation goes wrong.
    #[derive(Clone)]
    struct Faulty {
        left: Arc<AtomicUsize>,
        fault: Fault,
    }

    impl Faulty {
        /// Whether it is this operation's turn.
        fn turn(&self) -> bool {
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) == Ok(1)
        }

        fn step(&self) -> io::Result<()> {
            if self.turn() && matches!(self.fault, Fault::Full | Fault::Half) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(())
        }
    }

    impl Disk for Faulty {
        fn is_empty(&self, path: &Path) -> io::Result<bool> {
            self.step()?;
            System.is_empty(path)
        }

        fn create_dirs(&self, path: &Path) -> io::Result<()> {
            self.step()?;
            System.create_dirs(path)
        }

        fn create_dir(&self, path: &Path) -> io::Result<()> {
            self.step()?;
            System.create_dir(path)
        }

        fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
            self.step()?;
            Ok(Box::new(FaultyFile { file: System.create(path)?, disk: self.clone(), broken: false }))
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.step()?;
            System.rename(from, to)
        }

        fn sync_dir(&self, path: &Path) -> io::Result<()> {
            self.step()?;
            System.sync_dir(path)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            System.remove(path)
        }
    }

    struct FaultyFile {
        file: Box<dyn NewFile>,
        disk: Faulty,
        broken: bool,
    }

    impl Write for FaultyFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.broken {
                return Err(io::ErrorKind::StorageFull.into());
            }
            if !self.disk.turn() {
                return self.file.write(bytes);
            }
            match self.disk.fault {
                Fault::Full => Err(io::ErrorKind::StorageFull.into()),
                Fault::Interrupted => Err(io::ErrorKind::Interrupted.into()),
                Fault::Short | Fault::Half => {
                    self.broken = self.disk.fault == Fault::Half;
                    self.file.write(&bytes[..1])
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            self.file.flush()
        }
    }

    impl NewFile for FaultyFile {
        fn sync(&mut self) -> io::Result<()> {
            self.disk.step()?;
            self.file.sync()
        }
    }

    const MATRIX: CsrView<'_> = CsrView {
        n_genes: 9,
        indptr: &[0, 2, 2, 5, 6, 7],
        indices: &[0, 8, 1, 2, 3, 5, 0],
        values: &[1, 70_000, 3, 4, 5, 6, 7],
    };

    const NAMES: [&str; 9] = ["a", "", "c", "d", "e", "f", "g", "h", "i"];

    fn write(root: &Path, disk: Faulty) -> Result<Manifest, Error> {
        let builder = Writer::builder(9)
            .tile_size(2)
            .gene_order([4, 0, 1, 2, 3, 8, 7, 6, 5])
            .var_names(NAMES)
            .metadata(r#"{"a": 1}"#);
        #[cfg(feature = "obs")]
        let builder = builder.obs(tables::schema(), 2).var(tables::var());
        let mut writer = builder.create_on(root.to_owned(), Arc::new(disk))?;
        #[cfg(feature = "obs")]
        writer.push_with_obs(&MATRIX, &tables::rows())?;
        #[cfg(not(feature = "obs"))]
        writer.push(&MATRIX)?;
        writer.finish()
    }

    #[cfg(feature = "obs")]
    mod tables {
        use arrow_array::{Int8Array, StringArray};

        use super::*;
        use crate::deltacel::dataset::obs::ObsColumn;

        pub fn schema() -> ObsSchema {
            ObsSchema { columns: vec![ObsColumn::category("type", ["T".into(), "B".into()])] }
        }

        pub fn rows() -> RecordBatch {
            let codes = Arc::new(Int8Array::from(vec![0, -1, 1, 0, 1]));
            RecordBatch::try_new(Arc::new(schema().arrow()), vec![codes]).unwrap()
        }

        pub fn var() -> RecordBatch {
            let index = Arc::new(StringArray::from(NAMES.to_vec())) as arrow_array::ArrayRef;
            RecordBatch::try_from_iter([("symbol", index)]).unwrap()
        }

        pub fn check(dataset: &Dataset) {
            let cells: Vec<u64> = (0..5).collect();
            let found = dataset.obs().unwrap().unwrap().codes(&["type"], &cells).unwrap();
            assert_eq!(found.columns(), rows().columns());
            assert_eq!(dataset.var().unwrap().unwrap().columns(), var().columns());
        }
    }

    fn files_below(root: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
    }

    fn check_sound(root: &Path) {
        let decoder = Decoder::new().unwrap();
        let dataset = Dataset::open(root).unwrap();
        let mut csr = Csr::<i32>::new();
        dataset.range(0..5, &decoder, &mut csr).unwrap();
        assert_eq!((csr.indptr(), csr.indices(), csr.values()), (MATRIX.indptr, MATRIX.indices, MATRIX.values));
        assert_eq!(dataset.gene_order().unwrap().unwrap(), [4, 0, 1, 2, 3, 8, 7, 6, 5]);
        assert_eq!(dataset.var_names().unwrap().unwrap().get(1), Some(""));
        assert_eq!(dataset.manifest().metadata(), Some(r#"{"a": 1}"#));
        let result = verify(&Directory::new(root).unwrap(), &decoder, |event| match event {
            Event::Fault(fault) | Event::Warning(fault) => ControlFlow::Break(fault),
            _ => ControlFlow::Continue(()),
        });
        assert!(result.is_continue(), "{result:?}");
        #[cfg(feature = "obs")]
        tables::check(&dataset);
        // Tiles, order, names, manifest; schema, shards, and the table of genes.
        let files = if cfg!(feature = "obs") { 6 + 4 } else { 6 };
        assert_eq!(files_below(root).len(), files);
    }

    #[cfg(target_endian = "little")] // what is written is read back
    #[test]
    fn every_operation_fails_once() {
        for fault in [Fault::Full, Fault::Half, Fault::Interrupted, Fault::Short] {
            for turn in 1.. {
                let folder = tempfile::tempdir().unwrap();
                let root = folder.path().join("dataset");
                let left = Arc::new(AtomicUsize::new(turn));
                let result = write(&root, Faulty { left: left.clone(), fault });
                let unused = left.load(Ordering::Relaxed) > 0;
                let harmless = matches!(fault, Fault::Interrupted | Fault::Short);
                match result {
                    Ok(_) => {
                        assert!(unused || harmless, "{fault:?} {turn} went unnoticed");
                        check_sound(&root);
                    }
                    Err(error) => {
                        assert!(!harmless, "{fault:?} {turn}: {error}");
                        assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::StorageFull), "{error}");
                        assert!(error.path().is_some());
                        let open = Dataset::open(&root).unwrap_err().kind();
                        let expected = match root.exists() {
                            true => ErrorKind::Unsupported(Unsupported::Incomplete),
                            false => ErrorKind::Io(io::ErrorKind::NotFound),
                        };
                        assert_eq!(open, expected, "{fault:?} {turn}");
                        let left_over = files_below(&root);
                        assert!(!left_over.iter().any(|path| path.extension().is_some_and(|e| e == "tmp")));
                    }
                }
                if unused {
                    assert!(turn > 25, "operations: {turn}");
                    break;
                }
            }
        }
    }

    #[test]
    fn a_failed_writer_stays_failed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("dataset");
        let disk = Faulty { left: Arc::new(AtomicUsize::new(usize::MAX)), fault: Fault::Full };
        let mut writer = Writer::builder(9).tile_size(2).create_on(root.clone(), Arc::new(disk.clone())).unwrap();
        // A bad matrix is refused as a whole.
        let bad = CsrView { indices: &[0, 8, 1, 2, 3, 5, 9], ..MATRIX };
        assert_eq!(writer.push(&bad).unwrap_err().part(), Part::GeneOf { cell: 4, gene: 9 });
        assert_eq!(writer.n_cells(), 0);
        disk.left.store(1, Ordering::Relaxed);
        assert!(matches!(writer.push(&MATRIX).unwrap_err().kind(), ErrorKind::Io(_)));
        let incomplete = ErrorKind::Unsupported(Unsupported::Incomplete);
        assert_eq!(writer.push(&MATRIX).unwrap_err().kind(), incomplete);
        assert_eq!(writer.finish().unwrap_err().kind(), incomplete);
        assert_eq!(Dataset::open(root).unwrap_err().kind(), incomplete);
    }
}
