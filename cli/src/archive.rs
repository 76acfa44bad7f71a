//! Archives of map tiles, and what a tile in one is called: `FILE#z/x/y`. Libraries read them.

#[cfg(feature = "archives")]
mod mbtiles;
#[cfg(feature = "archives")]
mod pmtiles;

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Serialize, Serializer};
use tilekern::Limits;

use crate::fault::Fault;

/// Where a tile is: zoom, column from the west, row from the north.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub z: u8,
    pub x: u32,
    pub y: u32,
}

impl Place {
    /// The highest zoom; columns and rows have as many bits.
    const MAX_ZOOM: u8 = 31;

    /// Takes the place, as it is written, off a name `FILE#z/x/y`. A file may have `#` in its name: the last one counts.
    pub fn of(path: &Path) -> Option<(PathBuf, &str)> {
        let (file, place) = path.to_str()?.rsplit_once('#')?;
        Some((PathBuf::from(file), place))
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let how = || "write zoom, column and row, as 3/4/2".to_owned();
        let mut parts = text.split('/').map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u32>().ok().filter(|_| digits).ok_or_else(how)
        });
        let mut next = || parts.next().unwrap_or_else(|| Err(how()));
        let (z, x, y) = (next()?, next()?, next()?);
        let z = u8::try_from(z).ok().filter(|&z| z <= Place::MAX_ZOOM).ok_or("zooms are 0 to 31")?;
        if parts.next().is_some() {
            return Err(how());
        }
        if x >> z != 0 || y >> z != 0 {
            return Err(format!("columns and rows of zoom {z} are 0 to {}", (1u64 << z) - 1));
        }
        Ok(Place { z, x, y })
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.z, self.x, self.y)
    }
}

/// The archives that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Pmtiles,
    Mbtiles,
}

impl Kind {
    /// By the first bytes of a file.
    pub fn by_magic(start: &[u8]) -> Option<Kind> {
        // Before version 3, PMTiles had the initials of their name and the version.
        let known: [(&[u8], Kind); 4] = [
            (b"PMTiles", Kind::Pmtiles),
            (b"PM\x01\0", Kind::Pmtiles),
            (b"PM\x02\0", Kind::Pmtiles),
            (b"SQLite f", Kind::Mbtiles),
        ];
        known.into_iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, kind)| kind)
    }

    /// By the first bytes of a file, else by the extension of its name.
    pub fn of(path: &Path, start: &[u8]) -> Option<Kind> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let named =
            || [Kind::Pmtiles, Kind::Mbtiles].into_iter().find(|kind| extension.eq_ignore_ascii_case(kind.name()));
        Kind::by_magic(start).or_else(named)
    }

    /// What `--json` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pmtiles => "pmtiles",
            Kind::Mbtiles => "mbtiles",
        }
    }
}

/// What an archive says of itself.
#[derive(Debug, Default, Serialize)]
pub struct Facts {
    pub name: Option<String>,
    /// A word for the format of its tiles: `mlt`, `mvt`, …
    pub tile_format: Option<String>,
    pub compression: Option<String>,
    pub min_zoom: Option<u8>,
    pub max_zoom: Option<u8>,
    /// West, south, east, north, in degrees.
    pub bounds: Option<[f64; 4]>,
    /// None where it does not say and counting takes too long.
    pub n_tiles: Option<u64>,
    /// Those zooms that have tiles, if they are quickly found.
    pub zooms: Option<Vec<Zoom>>,
    /// A place that has a tile, where one is quickly found.
    pub example: Option<Place>,
}

/// How many places of a zoom have a tile.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Zoom {
    pub zoom: u8,
    pub n_tiles: u64,
}

/// An archive that is open.
pub trait Tiles {
    /// As [`Facts::tile_format`].
    fn format(&self) -> Result<Option<String>, String>;

    fn facts(&self) -> Result<Facts, String>;

    /// The bytes of a tile as they are stored, if it is there.
    fn tile(&self, place: Place) -> Result<Option<Vec<u8>>, String>;

    /// How many tiles [`Tiles::each`] goes through.
    fn n_stored(&self) -> Result<u64, String>;

    /// Goes through the tiles until `visit` has enough. One that is stored once for neighbouring places comes once.
    fn each(&self, visit: &mut Visit<'_>) -> Result<(), String>;
}

/// Takes the place of a tile, written, and its bytes as they are stored.
pub type Visit<'v> = dyn FnMut(&str, Result<Vec<u8>, String>) -> ControlFlow<()> + 'v;

/// An archive, of its kind.
pub struct Archive {
    pub kind: Kind,
    pub bytes: u64,
    path: PathBuf,
    /// Its tiles are MLT, whatever it says of them.
    any: bool,
    tiles: Box<dyn Tiles>,
}

impl Archive {
    pub fn open(path: &Path, kind: Kind, any: bool, limits: &Limits) -> Result<Archive, Fault> {
        let bytes = std::fs::metadata(path).map_err(|error| Fault::from(tilekern::Error::io(error, path)))?.len();
        let tiles = open(path, kind, limits).map_err(|why| told(path, kind, &why))?;
        Ok(Archive { kind, bytes, path: path.to_owned(), any, tiles })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn facts(&self) -> Result<Facts, Fault> {
        self.tiles.facts().map_err(|why| told(&self.path, self.kind, &why))
    }

    /// Refuses tiles that are known not to be MLT.
    fn check_format(&self) -> Result<(), Fault> {
        let format = self.tiles.format().map_err(|why| told(&self.path, self.kind, &why))?;
        match format.filter(|format| !self.any && format != "mlt") {
            None => Ok(()),
            Some(format) => {
                let message = format!("its tiles are {format}, not MLT; if that is wrong, add --as mlt");
                Err(Fault::new("unsupported", &self.path, message))
            }
        }
    }

    /// How many tiles [`Archive::each`] goes through.
    pub fn n_stored(&self) -> Result<u64, Fault> {
        self.tiles.n_stored().map_err(|why| told(&self.path, self.kind, &why))
    }

    /// Goes through the tiles until `visit` has enough: what each is called, and its bytes as they are stored.
    pub fn each(&self, mut visit: impl FnMut(&Path, Result<Vec<u8>, Fault>) -> ControlFlow<()>) -> Result<(), Fault> {
        self.check_format()?;
        let mut visit = |place: &str, bytes: Result<Vec<u8>, String>| {
            let name = PathBuf::from(format!("{}#{place}", self.path.display()));
            let bytes = bytes.map_err(|why| Fault::new("archive", &name, why));
            visit(&name, bytes)
        };
        self.tiles.each(&mut visit).map_err(|why| told(&self.path, self.kind, &why))
    }

    /// The bytes of a tile as they are stored.
    pub fn tile(&self, place: Place) -> Result<Vec<u8>, Fault> {
        self.check_format()?;
        let found = self.tiles.tile(place).map_err(|why| told(&self.path, self.kind, &why))?;
        found.ok_or_else(|| {
            let message = format!("has no tile {place}: `tilekern info {}` tells its zooms", self.path.display());
            Fault { part: Some("tiles".to_owned()), ..Fault::new("missing", &self.path, message) }
        })
    }

    /// That one of its tiles must be named.
    pub fn unnamed(&self) -> Fault {
        let name = self.path.display();
        let message = format!("is an archive of tiles: name one of them, as {name}#3/4/2 (zoom, column, row)");
        Fault::new("unsupported", &self.path, message)
    }
}

/// What a library says of an archive that it cannot read.
fn told(path: &Path, kind: Kind, why: &str) -> Fault {
    Fault::new("archive", path, format!("cannot be read as {}: {why}", kind.name()))
}

#[cfg(feature = "archives")]
fn open(path: &Path, kind: Kind, limits: &Limits) -> Result<Box<dyn Tiles>, String> {
    match kind {
        Kind::Pmtiles => pmtiles::open(path, limits),
        Kind::Mbtiles => mbtiles::open(path, limits),
    }
}

#[cfg(not(feature = "archives"))]
fn open(_: &Path, _: Kind, _: &Limits) -> Result<Box<dyn Tiles>, String> {
    Err("this tilekern was built without the feature `archives`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_off_names() {
        let of = |name: &str| {
            let (file, place) = Place::of(Path::new(name))?;
            Some((file.to_str().unwrap().to_owned(), place.parse().ok()?))
        };
        let place = |z, x, y| Place { z, x, y };
        assert_eq!(of("a.pmtiles#0/0/0"), Some(("a.pmtiles".to_owned(), place(0, 0, 0))));
        assert_eq!(of("d#1/a#b.mbtiles#3/7/2"), Some(("d#1/a#b.mbtiles".to_owned(), place(3, 7, 2))));
        let last = u32::MAX >> 1;
        assert_eq!(of(&format!("a#31/{last}/{last}")), Some(("a".to_owned(), place(31, last, last))));
        for name in ["a", "a#", "a#1", "a#1/2", "a#1/0/0/0", "a#1/2/0", "a#1/0/2", "a#32/0/0", "a#-1/0/0", "a#+1/0/0"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
