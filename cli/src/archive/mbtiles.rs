//! MBTiles, by SQLite.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use tilekern::Limits;

use super::{Facts, Place, Tiles};

/// Memory that SQLite may use.
const HEAP: i64 = 1 << 30;
/// How long all queries may take together, and after how many instructions of its machine it looks at the clock. `tiles` may
/// be a view, and that of a hostile file need not end.
const TIME: Duration = Duration::from_secs(10);
const INSTRUCTIONS: i32 = 100_000;

pub fn open(path: &Path, limits: &Limits) -> Result<Box<dyn Tiles>, String> {
    let connection = connect(path, limits).map_err(|error| error.to_string())?;
    Ok(Box::new(connection))
}

fn connect(path: &Path, limits: &Limits) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(address(path), flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    let most = i32::try_from(limits.max_input_bytes).unwrap_or(i32::MAX);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, most)?;
    connection.pragma_update(None, "hard_heap_limit", HEAP)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    let start = Instant::now();
    connection.progress_handler(INSTRUCTIONS, Some(move || start.elapsed() > TIME))?;
    Ok(connection)
}

/// The file as an address that keeps SQLite from making files beside it, which it does for a database with a log of writes.
/// Where there is such a log, it is a part of the database, and must be read.
fn address(path: &Path) -> String {
    let mut text = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => text.push(char::from(*byte)),
            byte => write!(text, "%{byte:02x}").expect("strings grow"),
        }
    }
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    text + if Path::new(&log).exists() { "?mode=ro" } else { "?mode=ro&immutable=1" }
}

/// A value that a database says of itself.
fn said(database: &Connection, name: &str) -> Result<Option<String>, String> {
    // All are text, but some writers store numbers as numbers.
    let query = "SELECT CAST(value AS TEXT) FROM metadata WHERE name = ?1 LIMIT 1";
    let found = database.query_row(query, [name], |row| row.get::<_, Option<String>>(0)).optional();
    found.map(Option::flatten).map_err(|error| error.to_string())
}

impl Tiles for Connection {
    fn format(&self) -> Result<Option<String>, String> {
        Ok(said(self, "format")?.map(|format| match format.as_str() {
            "pbf" => "mvt".to_owned(),
            "application/vnd.maplibre-vector-tile" | "application/vnd.maplibre-tile" => "mlt".to_owned(),
            _ => format.to_ascii_lowercase(),
        }))
    }

    fn facts(&self) -> Result<Facts, String> {
        let zoom = |name: &str, from_tiles: &str| -> Result<Option<u8>, String> {
            match said(self, name)?.and_then(|zoom| zoom.trim().parse().ok()) {
                Some(zoom) => Ok(Some(zoom)),
                None => Ok(self.query_row(from_tiles, [], |row| row.get(0)).unwrap_or(None)),
            }
        };
        let bounds = said(self, "bounds")?.and_then(|bounds| {
            let numbers: Result<Vec<f64>, _> = bounds.split(',').map(|number| number.trim().parse()).collect();
            numbers.ok()?.try_into().ok()
        });
        let count: Option<i64> = self.query_row("SELECT count(*) FROM tiles", [], |row| row.get(0)).ok();
        Ok(Facts {
            name: said(self, "name")?,
            tile_format: self.format()?,
            compression: said(self, "compression")?,
            min_zoom: zoom("minzoom", "SELECT min(zoom_level) FROM tiles")?,
            max_zoom: zoom("maxzoom", "SELECT max(zoom_level) FROM tiles")?,
            bounds,
            n_tiles: count.and_then(|count| u64::try_from(count).ok()),
        })
    }

    fn tile(&self, Place { z, x, y }: Place) -> Result<Option<Vec<u8>>, String> {
        // Its rows are counted from the south.
        let row = (1u64 << z) - 1 - u64::from(y);
        let row = i64::try_from(row).map_err(|error| error.to_string())?;
        let query = "SELECT tile_data FROM tiles WHERE zoom_level = ?1 AND tile_column = ?2 AND tile_row = ?3 LIMIT 1";
        let found = self.query_row(query, (z, x, row), |row| {
            Ok(match row.get_ref(0)? {
                ValueRef::Blob(bytes) => Ok(bytes.to_vec()),
                other => Err(format!("the tile is of type {}, and must be a blob", other.data_type())),
            })
        });
        match found.optional().map_err(|error| error.to_string())? {
            None => Ok(None),
            Some(bytes) => bytes.map(Some),
        }
    }
}
