//! MBTiles, by SQLite.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};
use tilekern::Limits;

use super::{Facts, Place, Tiles, Visit, Zoom};

/// Memory that SQLite may use, and bytes of a tile: far more than any has.
const HEAP: i64 = 512 << 20;
const TILE: i32 = 128 << 20;
/// How long all queries may take together, or each tile where all are gone through, and after how many instructions of its
/// machine it looks at the clock. `tiles` may be a view, and that of a hostile file need not end.
const TIME: Duration = Duration::from_secs(10);
const INSTRUCTIONS: i32 = 100_000;

pub fn open(path: &Path, limits: &Limits) -> Result<Box<dyn Tiles>, String> {
    let start = Arc::new(Mutex::new(Instant::now()));
    let database = connect(path, limits, start.clone()).map_err(told)?;
    Ok(Box::new(Mbtiles { database, start }))
}

/// A database, and since when its queries take time.
struct Mbtiles {
    database: Connection,
    start: Arc<Mutex<Instant>>,
}

fn connect(path: &Path, limits: &Limits, start: Arc<Mutex<Instant>>) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(address(path), flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    let most = i32::try_from(limits.max_input_bytes).unwrap_or(i32::MAX);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, most.min(TILE))?;
    connection.pragma_update(None, "hard_heap_limit", HEAP)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    let over = move || start.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > TIME;
    connection.progress_handler(INSTRUCTIONS, Some(over))?;
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

/// What SQLite says, and what its word for an end by the clock means.
fn told(error: rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::OperationInterrupted) => format!("its queries take longer than {} s", TIME.as_secs()),
        _ => error.to_string(),
    }
}

/// A value that a database says of itself. Tiles are there without it, too.
fn said(database: &Connection, name: &str) -> Result<Option<String>, String> {
    let query = "SELECT 1 FROM sqlite_master WHERE name = 'metadata'";
    let there = database.query_row(query, [], |_| Ok(())).optional().map_err(told)?;
    if there.is_none() {
        return Ok(None);
    }
    // All are text, but some writers store numbers as numbers.
    let query = "SELECT CAST(value AS TEXT) FROM metadata WHERE name = ?1 LIMIT 1";
    let found = database.query_row(query, [name], |row| row.get::<_, Option<String>>(0)).optional();
    found.map(Option::flatten).map_err(told)
}

/// The bytes of a tile, in a column.
fn blob(row: &Row<'_>, column: usize) -> rusqlite::Result<Result<Vec<u8>, String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Blob(bytes) => Ok(bytes.to_vec()),
        other => Err(format!("the tile is of type {}, and must be a blob", other.data_type())),
    })
}

/// The place of a tile whose row is counted from the south; else what the columns say.
fn place(columns: [ValueRef<'_>; 3]) -> Result<Place, String> {
    let [z, x, row] = columns.map(|column| column.as_i64().unwrap_or(-1));
    let y = u32::try_from(z).ok().and_then(|z| 1i64.checked_shl(z)).map_or(-1, |rows| rows.wrapping_sub(1 + row));
    format!("{z}/{x}/{y}").parse().map_err(|_| format!("zoom_level {z}, tile_column {x}, tile_row {row}"))
}

impl Mbtiles {
    /// How many tiles each zoom has, if that is quickly counted.
    fn zooms(&self) -> Option<Vec<Zoom>> {
        // Some more than there can be.
        let query = "SELECT zoom_level, count(*) FROM tiles GROUP BY zoom_level ORDER BY zoom_level LIMIT 40";
        let mut zooms = self.database.prepare(query).ok()?;
        let rows = zooms.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?))).ok()?;
        let zoom = |row: rusqlite::Result<(u8, i64)>| {
            let (zoom, n_tiles) = row.ok()?;
            Some(Zoom { zoom, n_tiles: u64::try_from(n_tiles).ok()? })
        };
        rows.map(zoom).collect()
    }

    /// The place of some tile.
    fn example(&self) -> Option<Place> {
        let query = "SELECT zoom_level, tile_column, tile_row FROM tiles LIMIT 1";
        let found = self
            .database
            .query_row(query, [], |row| Ok(place([row.get_ref(0)?, row.get_ref(1)?, row.get_ref(2)?]).ok()));
        found.ok().flatten()
    }
}

impl Tiles for Mbtiles {
    fn format(&self) -> Result<Option<String>, String> {
        Ok(said(&self.database, "format")?.map(|format| match format.as_str() {
            "pbf" => "mvt".to_owned(),
            "application/vnd.maplibre-vector-tile" | "application/vnd.maplibre-tile" => "mlt".to_owned(),
            _ => format.to_ascii_lowercase(),
        }))
    }

    fn facts(&self) -> Result<Facts, String> {
        // Without such a table it is no archive of tiles, whatever else it holds.
        self.database.prepare("SELECT zoom_level, tile_column, tile_row, tile_data FROM tiles").map_err(told)?;
        let zoom = |name: &str, from_tiles: &str| -> Result<Option<u8>, String> {
            match said(&self.database, name)?.and_then(|zoom| zoom.trim().parse().ok()) {
                Some(zoom) => Ok(Some(zoom)),
                None => Ok(self.database.query_row(from_tiles, [], |row| row.get(0)).unwrap_or(None)),
            }
        };
        let bounds = said(&self.database, "bounds")?.and_then(|bounds| {
            let numbers: Result<Vec<f64>, _> = bounds.split(',').map(|number| number.trim().parse()).collect();
            numbers.ok().filter(|numbers| numbers.iter().all(|number| number.is_finite()))?.try_into().ok()
        });
        Ok(Facts {
            name: said(&self.database, "name")?,
            tile_format: self.format()?,
            compression: said(&self.database, "compression")?,
            min_zoom: zoom("minzoom", "SELECT min(zoom_level) FROM tiles")?,
            max_zoom: zoom("maxzoom", "SELECT max(zoom_level) FROM tiles")?,
            bounds,
            n_tiles: self.n_stored().ok(),
            zooms: self.zooms(),
            example: self.example(),
        })
    }

    fn tile(&self, Place { z, x, y }: Place) -> Result<Option<Vec<u8>>, String> {
        // Its rows are counted from the south.
        let row = (1u64 << z) - 1 - u64::from(y);
        let row = i64::try_from(row).map_err(|error| error.to_string())?;
        let query = "SELECT tile_data FROM tiles WHERE zoom_level = ?1 AND tile_column = ?2 AND tile_row = ?3 LIMIT 1";
        let found = self.database.query_row(query, (z, x, row), |row| blob(row, 0));
        match found.optional().map_err(told)? {
            None => Ok(None),
            Some(bytes) => bytes.map(Some),
        }
    }

    fn n_stored(&self) -> Result<u64, String> {
        let count = self.database.query_row("SELECT count(*) FROM tiles", [], |row| row.get::<_, i64>(0));
        let count = count.map_err(told)?;
        u64::try_from(count).map_err(|error| error.to_string())
    }

    fn each(&self, visit: &mut Visit<'_>) -> Result<(), String> {
        // No more than there were when they were counted: a view may think of new ones.
        let n = i64::try_from(self.n_stored()?).map_err(|error| error.to_string())?;
        let query = "SELECT zoom_level, tile_column, tile_row, tile_data FROM tiles LIMIT ?1";
        let mut tiles = self.database.prepare(query).map_err(told)?;
        let mut rows = tiles.query([n]).map_err(told)?;
        loop {
            *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            let Some(row) = rows.next().map_err(told)? else { return Ok(()) };
            let column = |n: usize| row.get_ref(n).map_err(told);
            let (name, bytes) = match place([column(0)?, column(1)?, column(2)?]) {
                Ok(place) => (place.to_string(), blob(row, 3).map_err(told)?),
                Err(what) => (what, Err("is no place of a tile".to_owned())),
            };
            if visit(&name, bytes).is_break() {
                return Ok(());
            }
        }
    }
}
