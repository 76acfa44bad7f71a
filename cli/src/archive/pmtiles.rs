//! PMTiles, by the crate of that name.

use std::fs::File;
use std::future::{self, Future};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use pmtiles::{
    AsyncBackend, AsyncPmTilesReader, BackendResponse, Compression, DirEntry, PmtError, PmtResult, TileCoord, TileId,
    TileType,
};
use serde::Deserialize;
use tilekern::{Limits, guarded};

use super::{Facts, Place, Tiles, Visit, Zoom};
use crate::packed;

/// Bytes that a directory, or a tile, may unpack to; and all directories together where all tiles are gone through, for which
/// the library has them all in memory. It unpacks directories whatever their size; real ones have some hundred kilobytes.
const UNPACKED: u64 = 64 << 20;

/// Places that are counted by their zoom; where there are more, that takes too long.
const COUNTED: u64 = 1 << 22;

/// The one version that is understood.
const VERSION: u8 = 3;

/// A file that answers at once.
struct Source {
    file: Mutex<File>,
    limit: u64,
    /// Bytes that all that is read may still unpack to.
    left: Mutex<u64>,
}

impl Source {
    fn bytes(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let length = length as u64;
        if length > self.limit {
            return Err(io::Error::other(format!("{length} bytes are asked for where {} are allowed", self.limit)));
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        // Grows with what is there, not with what is claimed.
        let mut bytes = Vec::new();
        file.by_ref().take(length).read_to_end(&mut bytes)?;
        let size = packed::gzip_size(&bytes, UNPACKED);
        if bytes.len() as u64 != size && size > UNPACKED {
            return Err(io::Error::other(format!("a part of it unpacks to more than {UNPACKED} bytes")));
        }
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.checked_sub(size).ok_or_else(|| {
            let message = "it has too many tiles to go through all, whose directories have more than";
            io::Error::other(format!("{message} {UNPACKED} bytes: name some"))
        })?;
        Ok(bytes.into())
    }
}

impl AsyncBackend for Source {
    fn read(&self, offset: u64, length: usize) -> impl Future<Output = PmtResult<BackendResponse>> + Send {
        future::ready(self.bytes(offset, length).map(BackendResponse::new).map_err(PmtError::from))
    }
}

/// What comes of work that never has to wait, since its source does not. A panic is one more way of not reading a file.
fn polled<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Result<T, String> {
    match guarded(|| poll(&mut Context::from_waker(Waker::noop()))) {
        Some(Poll::Ready(result)) => Ok(result),
        Some(Poll::Pending) | None => Err("its reader gave up".to_owned()),
    }
}

/// What the library says, but where that is that the file ends.
fn told(error: PmtError) -> String {
    match error {
        PmtError::UnexpectedNumberOfBytesReturned(expected, found) => {
            format!("it is cut off: there are {found} bytes where {expected} are expected; fetch it again")
        }
        error => error.to_string(),
    }
}

fn at_once<T>(work: impl Future<Output = PmtResult<T>>) -> Result<T, String> {
    polled(|context| pin!(work).poll(context))?.map_err(told)
}

/// What is read of an archive's metadata.
#[derive(Deserialize)]
struct Metadata {
    name: Option<String>,
}

/// Places with a tile by their zoom, and the first of them.
struct Places {
    zooms: Vec<Zoom>,
    first: Option<Place>,
}

/// An archive, and the file that it is.
struct Pmtiles {
    reader: AsyncPmTilesReader<Source>,
    file: File,
    limit: u64,
}

fn reader(file: &File, limit: u64, left: u64) -> Result<AsyncPmTilesReader<Source>, String> {
    // One position in the file is enough for all: it is set before each read, and nothing is read meanwhile.
    let file = Mutex::new(file.try_clone().map_err(|error| error.to_string())?);
    at_once(AsyncPmTilesReader::try_from_source(Source { file, limit, left: Mutex::new(left) }))
}

/// Refuses a version that is not understood: the library reads any as if it were.
fn check_version(start: &[u8]) -> Result<(), String> {
    let version = match *start {
        [b'P', b'M', b'T', b'i', b'l', b'e', b's', version, ..] => version,
        [b'P', b'M', version @ (1 | 2), 0, ..] => version,
        // No such archive, or cut off: the library says so.
        _ => return Ok(()),
    };
    if version == VERSION {
        return Ok(());
    }
    Err(format!("it is of version {version}, and version {VERSION} alone is understood: write it anew as that"))
}

pub fn open(path: &Path, limits: &Limits) -> Result<Box<dyn Tiles>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut start = Vec::new();
    (&file).take(8).read_to_end(&mut start).map_err(|error| error.to_string())?;
    check_version(&start)?;
    let limit = limits.max_input_bytes;
    Ok(Box::new(Pmtiles { reader: reader(&file, limit, u64::MAX)?, file, limit }))
}

impl From<TileId> for Place {
    fn from(id: TileId) -> Place {
        let place = TileCoord::from(id);
        Place { z: place.z(), x: place.x(), y: place.y() }
    }
}

impl Pmtiles {
    /// Goes through what the directories hold, in their order, until `visit` has enough.
    fn entries(&self, mut visit: impl FnMut(&DirEntry) -> ControlFlow<()>) -> Result<(), String> {
        let mut entries = Arc::new(reader(&self.file, self.limit, UNPACKED)?).entries();
        while let Some(entry) = polled(|context| entries.as_mut().poll_next(context))? {
            if visit(&entry.map_err(told)?).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The name that its metadata has, if it has any.
    fn name(&self) -> Option<String> {
        let metadata = at_once(self.reader.get_metadata()).ok()?;
        serde_json::from_str::<Metadata>(&metadata).ok()?.name
    }

    /// Places by their zoom, and the first of them; none where there are too many. The last tile must be there.
    fn places(&self) -> Result<Option<Places>, String> {
        let mut zooms = [0u64; 1 + Place::MAX_ZOOM as usize];
        let (mut first, mut last, mut counted) = (None, None, 0);
        let walk = |entry: &DirEntry| {
            for id in entry.iter_coords() {
                let place = Place::from(id);
                first = first.or(Some(place));
                last = Some(id);
                zooms[usize::from(place.z)] += 1;
                counted += 1;
                if counted > COUNTED {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        };
        self.entries(walk)?;
        last.map_or(Ok(None), |id| at_once(self.reader.get_tile(id)))?;
        let zooms = (0..).zip(zooms).filter(|(_, n)| *n > 0).map(|(zoom, n_tiles)| Zoom { zoom, n_tiles });
        Ok((counted <= COUNTED).then(|| Places { zooms: zooms.collect(), first }))
    }

    fn bytes(&self, tile: TileId) -> Result<Option<Vec<u8>>, String> {
        let found = at_once(self.reader.get_tile(tile))?;
        if found.is_some() && self.reader.get_header().tile_compression == Compression::Brotli {
            return Err("its tiles are packed with brotli, which is not read here".to_owned());
        }
        Ok(found.map(Vec::from))
    }
}

impl Tiles for Pmtiles {
    fn format(&self) -> Result<Option<String>, String> {
        let format = match self.reader.get_header().tile_type {
            TileType::Unknown => None,
            TileType::Mvt => Some("mvt"),
            TileType::Png => Some("png"),
            TileType::Jpeg => Some("jpg"),
            TileType::Webp => Some("webp"),
            TileType::Avif => Some("avif"),
            TileType::Mlt => Some("mlt"),
        };
        Ok(format.map(str::to_owned))
    }

    fn facts(&self) -> Result<Facts, String> {
        let header = self.reader.get_header();
        let compression = match header.tile_compression {
            Compression::Unknown => None,
            Compression::None => Some("none"),
            Compression::Gzip => Some("gzip"),
            Compression::Brotli => Some("brotli"),
            Compression::Zstd => Some("zstd"),
        };
        let few = header.n_addressed_tiles().is_some_and(|n| n.get() <= COUNTED);
        let places = if few { self.places()? } else { None };
        let (zooms, example) = places.map(|Places { zooms, first }| (zooms, first)).unzip();
        Ok(Facts {
            name: self.name(),
            tile_format: self.format()?,
            compression: compression.map(str::to_owned),
            min_zoom: Some(header.min_zoom),
            max_zoom: Some(header.max_zoom),
            bounds: Some([header.min_longitude, header.min_latitude, header.max_longitude, header.max_latitude]),
            n_tiles: header.n_addressed_tiles().map(Into::into),
            zooms,
            example: example.flatten(),
        })
    }

    fn tile(&self, Place { z, x, y }: Place) -> Result<Option<Vec<u8>>, String> {
        let place = TileCoord::new(z, x, y).map_err(|error| error.to_string())?;
        self.bytes(place.into())
    }

    fn n_stored(&self) -> Result<u64, String> {
        Ok(self.reader.get_header().n_tile_entries().map_or(0, Into::into))
    }

    fn each(&self, visit: &mut Visit<'_>) -> Result<(), String> {
        self.entries(|entry| {
            // The places of an entry have one tile.
            let Some(id) = entry.iter_coords().next() else { return ControlFlow::Continue(()) };
            let bytes = self.bytes(id).and_then(|bytes| bytes.ok_or_else(|| "its directories are out of order".into()));
            visit(&Place::from(id).to_string(), bytes)
        })
    }
}
