//! The shards of the table of cells: Parquet files with one row group for each tile.
//!
//! Source: DELTACEL file format, "Obs".

use arrow_array::{Array, ArrayRef};
use sha2::{Digest, Sha256};

use super::parquet_file::ParquetFile;
use super::schema::{ObsColumn, ObsKind, ObsSchema};
use super::values::{Value, getter};
use crate::deltacel::dataset::manifest::{Manifest, Obs};
use crate::deltacel::dataset::{OBS_SHARD, check_size, shard_name};
use crate::error::{Error, ErrorKind, Part};
use crate::limits::Limits;
use crate::source::{Object, Source};

/// A shard whose footer agrees with schema and manifest.
pub(super) struct Shard {
    file: ParquetFile,
    first_tile: u32,
    n: usize,
}

impl Shard {
    /// Reads the footer of shard `n`, and nothing else.
    pub fn open(
        source: &dyn Source,
        manifest: &Manifest,
        obs: &Obs,
        schema: &ObsSchema,
        n: usize,
        limits: &Limits,
    ) -> Result<(Shard, Box<dyn Object>), Error> {
        let in_file = |error: Error| error.in_part(Part::File(OBS_SHARD)).in_path(source.path(&shard_name(n)));
        let mut object = Shard::object(source, obs, n)?;
        let shard = Shard::of(&mut *object, manifest, obs, n, limits).map_err(in_file)?;
        let fault = shard.faults(manifest, obs, schema).into_iter().next();
        fault.map_or(Ok((shard, object)), |fault| Err(in_file(fault)))
    }

    /// Opens the file, which has the size that the manifest states.
    pub fn object(source: &dyn Source, obs: &Obs, n: usize) -> Result<Box<dyn Object>, Error> {
        let part = Part::File(OBS_SHARD);
        let object = source.open(&shard_name(n));
        let sized = object.and_then(|object| check_size(object.size(), obs.shard_bytes[n], part).map(|()| object));
        sized.map_err(|error| error.in_part(part).in_path(source.path(&shard_name(n))))
    }

    fn of(object: &mut dyn Object, manifest: &Manifest, obs: &Obs, n: usize, limits: &Limits) -> Result<Shard, Error> {
        let first_tile = (n as u64).saturating_mul(obs.tiles_per_file);
        let first_tile = u32::try_from(first_tile).unwrap_or(manifest.n_tiles()); // there is a shard for each
        Ok(Shard { file: ParquetFile::open(object, limits)?, first_tile, n })
    }

    /// Where the footer says anything else than schema and manifest.
    fn faults(&self, manifest: &Manifest, obs: &Obs, schema: &ObsSchema) -> Vec<Error> {
        let part = Part::File(OBS_SHARD);
        let inconsistent = |found: u64, expected: u64, why: String| {
            let kind = ErrorKind::Inconsistent { found: found.into(), expected: expected.into() };
            Error::new(kind, part).caused_by(why)
        };
        let fields = self.file.schema().fields();
        let mut faults = Vec::new();
        if fields.len() != schema.columns.len() {
            let why = "its number of columns, and that in obs/schema.json";
            faults.push(inconsistent(fields.len() as u64, schema.columns.len() as u64, why.into()));
        }
        for ((n, field), column) in (0..).zip(fields).zip(&schema.columns) {
            if *field.name() != column.name {
                let why = format!("column {:?} where obs/schema.json has {:?}", field.name(), column.name);
                faults.push(Error::new(ErrorKind::WrongType, Part::Column(n, "name")).caused_by(why));
                break; // those behind it are most likely shifted
            }
            if *field.data_type() != column.arrow_type.arrow() {
                let (name, expected) = (&column.name, column.arrow_type.name());
                let why = format!("column {name:?} is {} where obs/schema.json has {expected}", field.data_type());
                faults.push(Error::new(ErrorKind::WrongType, Part::Column(n, "arrow_type")).caused_by(why));
            }
        }
        let end = u64::from(self.first_tile).saturating_add(obs.tiles_per_file).min(manifest.n_tiles().into());
        let (groups, tiles) = (self.file.row_groups().len() as u64, end - u64::from(self.first_tile));
        if groups != tiles {
            faults.push(inconsistent(groups, tiles, "its number of row groups, and that of its tiles".into()));
            return faults;
        }
        for (group, tile) in (0..self.file.row_groups().len()).zip(self.first_tile..) {
            let (found, expected) = (self.file.rows(group), manifest.tile_cells(tile));
            if found != expected {
                let why = format!("the rows of row group {group}, and the cells of tile {tile}");
                faults.push(inconsistent(found, expected, why));
            }
        }
        faults
    }

    /// Reads a column of a tile that the shard holds, and nothing else; the values are checked against the schema.
    pub fn column(
        &self,
        source: &dyn Source,
        object: &mut dyn Object,
        schema: &ObsSchema,
        tile: u32,
        column: usize,
        limits: &Limits,
    ) -> Result<ArrayRef, Error> {
        let group = tile - self.first_tile;
        let part = Part::RowGroup(group, u32::try_from(column).unwrap_or(u32::MAX));
        let about = &schema.columns[column];
        let read = self.file.column(object, group as usize, column, limits);
        let checked = read.and_then(|array| check_values(about, &array).map(|()| array));
        checked.map_err(|error| {
            let error = error.in_part(part).about(&format!("column {:?}, tile {tile}", about.name));
            error.in_path(source.path(&shard_name(self.n)))
        })
    }
}

/// The stored values of a column are what the schema allows.
///
/// # Errors
/// With the index of the value: [`ErrorKind::Missing`] for a null code, [`ErrorKind::OutOfRange`] for a code that has no
/// category; [`ErrorKind::WrongType`].
pub(super) fn check_values(column: &ObsColumn, array: &dyn Array) -> Result<(), Error> {
    if *array.data_type() != column.arrow_type.arrow() {
        return Err(Error::new(ErrorKind::WrongType, Part::Object));
    }
    if column.kind != ObsKind::Category {
        return Ok(());
    }
    let get = getter(array).ok_or_else(|| Error::new(ErrorKind::WrongType, Part::Object))?;
    let max = column.categories.len() as i128 - 1;
    for row in 0..array.len() {
        let kind = match get(row) {
            Value::Int(code) if (-1..=max).contains(&code) => continue,
            Value::Int(found) => ErrorKind::OutOfRange { found, min: -1, max },
            _ => ErrorKind::Missing,
        };
        let what = format!("a code of column {:?}; -1 is a missing value", column.name);
        return Err(Error::new(kind, Part::Object).index(row as u64).caused_by(what));
    }
    Ok(())
}

/// Every fault of shard `n`; without a sound schema only its size and digest are looked at.
pub(super) fn shard_faults(
    source: &dyn Source,
    manifest: &Manifest,
    obs: &Obs,
    schema: Option<&ObsSchema>,
    n: usize,
    limits: &Limits,
) -> Vec<Error> {
    let part = Part::File(OBS_SHARD);
    let mut faults = Vec::new();
    let object = source.open(&shard_name(n));
    let checked = object.and_then(|mut object| {
        faults.extend(check_size(object.size(), obs.shard_bytes[n], part).err());
        if digest(&mut *object)? != obs.shard_sha256[n] {
            faults.push(Error::new(ErrorKind::Digest, part).caused_by("its SHA-256 in manifest.json"));
        }
        let Some(schema) = schema else { return Ok(()) };
        let shard = Shard::of(&mut *object, manifest, obs, n, limits)?;
        let disagreements = shard.faults(manifest, obs, schema);
        let agrees = disagreements.is_empty();
        faults.extend(disagreements);
        if agrees {
            for (_, tile) in shard.file.row_groups().iter().zip(shard.first_tile..) {
                for column in 0..schema.columns.len() {
                    faults.extend(shard.column(source, &mut *object, schema, tile, column, limits).err());
                }
            }
        }
        Ok(())
    });
    faults.extend(checked.err());
    faults.into_iter().map(|fault| fault.in_part(part).in_path(source.path(&shard_name(n)))).collect()
}

/// The SHA-256 of an object, which is read piece by piece.
pub fn digest(object: &mut dyn Object) -> Result<[u8; 32], Error> {
    let mut sha256 = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    let (mut at, size) = (0, object.size());
    while at < size {
        let len = usize::try_from(size - at).unwrap_or(usize::MAX).min(piece.len());
        object.read_at(at, &mut piece[..len])?;
        sha256.update(&piece[..len]);
        at += len as u64;
    }
    Ok(sha256.finalize().into())
}
