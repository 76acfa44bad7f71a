//! What a PATH names, and reading it.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tilekern::deltacel::dataset::Dataset;
use tilekern::deltacel::{MAGIC, Tile};
use tilekern::{Error, ErrorKind, Limit, Limits, MappedFile, Part, Unsupported};

use crate::archive::{Archive, Kind, Place};
use crate::fault::Fault;
use crate::packed;

/// The PATH that means standard input or output.
pub const STDIO: &str = "-";

/// What `--json` calls the kinds of things that can be read.
const TILE: &str = "deltacel_tile";
const DATASET: &str = "deltacel_dataset";
pub const PARQUET: &str = "parquet";
pub const MLT: &str = "mlt";

/// A PATH and what it is to be read as.
#[derive(clap::Args, Debug, Clone)]
pub struct Input {
    /// A tile (.dct), the directory of a dataset, or - for a tile on standard input
    #[arg(value_name = "PATH")]
    pub path: PathBuf,

    #[command(flatten)]
    pub format: As,
}

/// A PATH that may also be a Parquet file or a map tile.
#[derive(clap::Args, Debug, Clone)]
pub struct AnyInput {
    /// A tile (.dct), the directory of a dataset, a Parquet file, a map tile (.mlt, .mlt.gz, .mlt.zst, or ARCHIVE#z/x/y of
    /// a .pmtiles or .mbtiles file), or - for a file on standard input
    #[arg(value_name = "PATH")]
    pub path: PathBuf,

    #[command(flatten)]
    pub format: As,
}

impl AnyInput {
    /// Looks at it, and reads it unless it is a directory.
    pub fn found(&self, limits: &Limits) -> Result<Found, Fault> {
        Found::at(&self.path, self.format, limits)
    }
}

/// The format that the user states.
#[derive(clap::Args, Debug, Clone, Copy)]
pub struct As {
    /// Read it as this format, whatever its first bytes and its name say
    #[arg(id = "as", long = "as", value_name = "FORMAT")]
    pub format: Option<Format>,
}

/// The formats that the command tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Deltacel,
    Parquet,
    Mlt,
}

impl Format {
    /// The format whose magic bytes an object starts with, else the one that has its file name extension.
    fn of(path: &Path, start: &[u8]) -> Option<Format> {
        let magic = [(&MAGIC[..], Format::Deltacel), (b"PAR1", Format::Parquet)];
        let extension = [
            (".dct", Format::Deltacel),
            (".parquet", Format::Parquet),
            (".mlt", Format::Mlt),
            (".mlt.gz", Format::Mlt),
            (".mlt.zst", Format::Mlt),
        ];
        let known = magic.into_iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, format)| format);
        known.or_else(|| {
            let found = path.file_name()?.to_string_lossy().to_ascii_lowercase();
            extension.into_iter().find(|(end, _)| found.ends_with(end)).map(|(_, format)| format)
        })
    }
}

/// The bytes of a file, read or mapped.
pub enum Bytes {
    Read(Vec<u8>),
    Mapped(MappedFile),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(bytes) => bytes,
        }
    }
}

/// Maps a file, so that only those parts of it are read that are looked at.
#[allow(unsafe_code)] // whether a file may be mapped is for the program to decide, not for the library
fn map(path: &Path) -> Result<Bytes, Error> {
    // SAFETY: the process does not write what it reads: `decode` and `trace` refuse the input as their output, and replace
    // files by a rename. The pages of one column of 16 in a file of 512 MB take 0.01 to 0.03 s this way, 0.4 s where the
    // file is read first, and its size in memory (AMD Zen 5 VM, 2026-11). That no other process changes the file meanwhile is what the help of the command asks for; every number is
    // checked where it is used, so that a change ends in a fault or in a signal.
    unsafe { MappedFile::open(path) }.map(Bytes::Mapped)
}

/// What a PATH turned out to be.
pub enum Found {
    /// The bytes of a tile, unchecked.
    Tile(Vec<u8>),
    /// Those of a Parquet file.
    Parquet(Bytes),
    /// Those of a map tile, which were unpacked if they were packed, and which one it is, of a tile of an archive.
    Mlt(Vec<u8>, Option<Place>),
    /// An archive of map tiles, of which none is named.
    Archive(Archive),
    /// A directory, which is that of a dataset if it is anything.
    Dataset,
}

impl Found {
    /// Looks at `path`, and reads it unless it is a directory.
    pub fn at(path: &Path, stated: As, limits: &Limits) -> Result<Found, Fault> {
        if path != Path::new(STDIO) && path.is_dir() {
            return match stated.format {
                None if is_input(path) => Err(to_convert(path)),
                None | Some(Format::Deltacel) => Ok(Found::Dataset),
                Some(_) => Err(Fault::new("unsupported", path, "is a folder; name a file in it")),
            };
        }
        let fault = |error| Fault::of(error, path);
        if let Some((file, place)) = Place::of(path).filter(|_| !path.exists()) {
            // Of what is not there, what looks like a tile of an archive is missing for want of that.
            if file.exists() || Kind::of(&file, &[]).is_some() {
                return tile_of(&file, place, path, stated, limits);
            }
        }
        let mut reader = Reader::open(path, limits).map_err(fault)?;
        // No more than this of what is of no known kind, however long it is.
        reader.read_up_to(MAGIC.len() as u64).map_err(fault)?;
        let format = stated.format.or_else(|| Format::of(path, &reader.bytes));
        let archive = match format {
            None => Kind::of(path, &reader.bytes),
            Some(Format::Mlt) => Kind::by_magic(&reader.bytes),
            Some(_) => None,
        };
        if let Some(kind) = archive.filter(|_| reader.is_file) {
            return Archive::open(path, kind, stated.format.is_some(), limits).map(Found::Archive);
        }
        match format {
            // What is no tile by its first bytes is told as such without the rest of it.
            Some(Format::Deltacel) if reader.bytes != MAGIC => Ok(Found::Tile(reader.bytes)),
            Some(Format::Deltacel) => reader.read_all().map(Found::Tile).map_err(fault),
            Some(Format::Parquet) if reader.is_file => map(path).map(Found::Parquet).map_err(fault),
            Some(Format::Parquet) => reader.read_all().map(|all| Found::Parquet(Bytes::Read(all))).map_err(fault),
            Some(Format::Mlt) => {
                let bytes = reader.read_all().map_err(fault)?;
                packed::unpacked(bytes, limits.max_output_bytes, path).map(|bytes| Found::Mlt(bytes, None))
            }
            None if path != Path::new(STDIO)
                && !reader.bytes.is_empty()
                && (is_input(path) || reader.bytes.starts_with(HDF5)) =>
            {
                Err(to_convert(path))
            }
            None => {
                let error = Error::new(ErrorKind::Unsupported(Unsupported::Content), Part::Object);
                Err(fault(if reader.bytes.is_empty() { error.caused_by("it is empty") } else { error }))
            }
        }
    }

    /// Its kind, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Found::Tile(_) => TILE,
            Found::Dataset => DATASET,
            Found::Parquet(_) => PARQUET,
            Found::Mlt(..) => MLT,
            Found::Archive(archive) => archive.kind.name(),
        }
    }
}

/// A tile of an archive; `path` is what it was asked for by.
fn tile_of(file: &Path, place: &str, path: &Path, stated: As, limits: &Limits) -> Result<Found, Fault> {
    let mut reader = Reader::open(file, limits).map_err(|error| Fault::of(error, file))?;
    reader.read_up_to(MAGIC.len() as u64).map_err(|error| Fault::of(error, file))?;
    let kind = Kind::of(file, &reader.bytes).filter(|_| reader.is_file);
    let kind = kind.ok_or_else(|| {
        let message = format!("is no archive of tiles: leave out #{place}");
        Fault::new("unsupported", file, message)
    })?;
    let place: Place = place.parse().map_err(|why| {
        let message = format!("has no tile {place:?}: {why}");
        Fault { part: Some("tiles".to_owned()), ..Fault::new("missing", file, message) }
    })?;
    let bytes = match stated.format {
        None | Some(Format::Mlt) => Archive::open(file, kind, stated.format.is_some(), limits)?.tile(place)?,
        Some(_) => return Err(Fault::new("unsupported", file, "is an archive of map tiles: leave out --as")),
    };
    packed::unpacked(bytes, limits.max_output_bytes, path).map(|bytes| Found::Mlt(bytes, Some(place)))
}

/// The bytes of a file of any kind, or of standard input.
pub fn read(path: &Path, limits: &Limits) -> Result<Vec<u8>, Fault> {
    Reader::open(path, limits).and_then(Reader::read_all).map_err(|error| Fault::of(error, path))
}

/// Cells that can be read.
pub enum Source {
    /// The bytes of one tile.
    Tile(PathBuf, Vec<u8>),
    Dataset(PathBuf, Box<Dataset>),
}

impl Source {
    /// Finds out what a PATH is, and reads a tile or opens a dataset.
    pub fn open(input: &Input, limits: &Limits) -> Result<Source, Fault> {
        Source::of(Found::at(&input.path, input.format, limits)?, &input.path, limits)
    }

    /// What was found at a PATH, if it holds cells.
    pub fn of(found: Found, path: &Path, limits: &Limits) -> Result<Source, Fault> {
        let path = path.to_owned();
        match found {
            Found::Tile(bytes) => Ok(Source::Tile(path, bytes)),
            Found::Parquet(_) => {
                let why =
                    "is a Parquet file, which has no cells and genes: info, pages, trace, decode and verify read it";
                Err(Fault::new("unsupported", &path, why))
            }
            Found::Mlt(..) | Found::Archive(_) => {
                let why = "is of map tiles, which have no cells and genes: info, trace, decode and verify read them";
                Err(Fault::new("unsupported", &path, why))
            }
            Found::Dataset => match Dataset::builder().limits(*limits).open(&path) {
                Ok(dataset) => Ok(Source::Dataset(path, Box::new(dataset))),
                Err(error) => Err(Fault::of(error, &path)),
            },
        }
    }

    /// The path by which it was asked for.
    pub fn path(&self) -> &Path {
        match self {
            Source::Tile(path, _) | Source::Dataset(path, _) => path,
        }
    }

    /// Its kind, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Source::Tile(..) => TILE,
            Source::Dataset(..) => DATASET,
        }
    }

    /// Cells and genes.
    pub fn shape(&self) -> Result<(u64, u32), Fault> {
        match self {
            Source::Tile(path, bytes) => {
                let tile = Tile::open(bytes).map_err(|error| Fault::of(error, path))?;
                Ok((tile.n_cells() as u64, tile.n_genes()))
            }
            Source::Dataset(_, dataset) => Ok((dataset.n_cells(), dataset.n_genes())),
        }
    }

    /// The dataset, if it is one.
    pub fn dataset(&self) -> Option<&Dataset> {
        match self {
            Source::Tile(..) => None,
            Source::Dataset(_, dataset) => Some(dataset),
        }
    }
}

/// What files of HDF5 start with.
const HDF5: &[u8] = b"\x89HDF";

/// Whether it is counts of another kind by its name, or by what lies in it.
fn is_input(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    if path.is_dir() {
        let has = |name: &str| path.join(name).exists();
        let known = ["matrix.mtx", "matrix.mtx.gz", ".zgroup", "zarr.json"];
        return !has("manifest.json") && known.into_iter().any(has);
    }
    [".h5ad", ".h5", ".hdf5", ".loom", ".mtx", ".mtx.gz"].iter().any(|end| name.ends_with(end))
}

fn to_convert(path: &Path) -> Fault {
    let message =
        format!("holds counts of another kind: `tilekern convert {} OUT` first, then name OUT", path.display());
    Fault::new("unsupported", path, message)
}

/// A file of any kind, or standard input, as far as it was read.
struct Reader<'a> {
    path: &'a Path,
    input: Box<dyn Read>,
    is_file: bool,
    /// 0 where it is not known.
    len: u64,
    limit: u64,
    bytes: Vec<u8>,
}

impl Reader<'_> {
    fn open<'a>(path: &'a Path, limits: &Limits) -> Result<Reader<'a>, Error> {
        let (input, is_file, len): (Box<dyn Read>, bool, u64) = if path == Path::new(STDIO) {
            (Box::new(io::stdin().lock()), false, 0)
        } else {
            let io = |error| Error::io(error, path);
            let file = File::open(path).map_err(io)?;
            let metadata = file.metadata().map_err(io)?;
            (Box::new(file), metadata.is_file(), metadata.len())
        };
        Ok(Reader { path, input, is_file, len, limit: limits.max_input_bytes, bytes: Vec::new() })
    }

    /// Reads until there are `n` bytes, or no more.
    fn read_up_to(&mut self, n: u64) -> Result<(), Error> {
        let missing = n.saturating_sub(self.bytes.len() as u64);
        let read = self.input.by_ref().take(missing).read_to_end(&mut self.bytes);
        read.map(drop).map_err(|error| Error::io(error, self.path))
    }

    /// Reads the rest, and returns all.
    fn read_all(mut self) -> Result<Vec<u8>, Error> {
        self.check(self.len)?;
        let reserved = usize::try_from(self.len).ok().map(|len| self.bytes.try_reserve_exact(len));
        if !matches!(reserved, Some(Ok(()))) {
            return Err(Error::io(io::ErrorKind::OutOfMemory.into(), self.path));
        }
        // One byte more than allowed tells a stream that is too long from one that just fits.
        self.read_up_to(self.limit.saturating_add(1))?;
        self.check(self.bytes.len() as u64)?;
        Ok(self.bytes)
    }

    fn check(&self, needed: u64) -> Result<(), Error> {
        let kind = ErrorKind::LimitExceeded { needed, limit: self.limit, what: Limit::InputBytes };
        if needed > self.limit { Err(Error::new(kind, Part::Object)) } else { Ok(()) }
    }
}
