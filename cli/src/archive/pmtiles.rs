//! PMTiles, by the crate of that name.

use std::fs::File;
use std::future::{self, Future};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use pmtiles::{
    AsyncBackend, AsyncPmTilesReader, BackendResponse, Compression, PmtError, PmtResult, TileCoord, TileType,
};
use tilekern::{Limits, guarded};

use super::{Facts, Place, Tiles};
use crate::packed;

/// Bytes that a directory, or a tile, may unpack to. The library unpacks directories whatever their size; real ones have
/// some hundred kilobytes.
const UNPACKED: u64 = 64 << 20;

/// A file that answers at once.
struct Source {
    file: Mutex<File>,
    limit: u64,
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
        if !packed::gzip_fits(&bytes, UNPACKED) {
            return Err(io::Error::other(format!("a part of it unpacks to more than {UNPACKED} bytes")));
        }
        Ok(bytes.into())
    }
}

impl AsyncBackend for Source {
    fn read(&self, offset: u64, length: usize) -> impl Future<Output = PmtResult<BackendResponse>> + Send {
        future::ready(self.bytes(offset, length).map(BackendResponse::new).map_err(PmtError::from))
    }
}

/// The result of work that never has to wait, since its source does not. A panic is one more way of not reading a file.
fn at_once<T>(work: impl Future<Output = PmtResult<T>>) -> Result<T, String> {
    let polled = guarded(|| pin!(work).poll(&mut Context::from_waker(Waker::noop())));
    match polled {
        Some(Poll::Ready(result)) => result.map_err(|error| error.to_string()),
        Some(Poll::Pending) | None => Err("its reader gave up".to_owned()),
    }
}

pub fn open(path: &Path, limits: &Limits) -> Result<Box<dyn Tiles>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let source = Source { file: Mutex::new(file), limit: limits.max_input_bytes };
    Ok(Box::new(at_once(AsyncPmTilesReader::try_from_source(source))?))
}

impl Tiles for AsyncPmTilesReader<Source> {
    fn format(&self) -> Result<Option<String>, String> {
        let format = match self.get_header().tile_type {
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
        let header = self.get_header();
        let compression = match header.tile_compression {
            Compression::Unknown => None,
            Compression::None => Some("none"),
            Compression::Gzip => Some("gzip"),
            Compression::Brotli => Some("brotli"),
            Compression::Zstd => Some("zstd"),
        };
        Ok(Facts {
            name: None,
            tile_format: self.format()?,
            compression: compression.map(str::to_owned),
            min_zoom: Some(header.min_zoom),
            max_zoom: Some(header.max_zoom),
            bounds: Some([header.min_longitude, header.min_latitude, header.max_longitude, header.max_latitude]),
            n_tiles: header.n_addressed_tiles().map(Into::into),
        })
    }

    fn tile(&self, Place { z, x, y }: Place) -> Result<Option<Vec<u8>>, String> {
        let place = TileCoord::new(z, x, y).map_err(|error| error.to_string())?;
        let found = at_once(self.get_tile(place))?;
        if found.is_some() && self.get_header().tile_compression == Compression::Brotli {
            return Err("its tiles are packed with brotli, which is not read here".to_owned());
        }
        Ok(found.map(Vec::from))
    }
}
