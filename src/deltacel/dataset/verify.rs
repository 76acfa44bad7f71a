//! Every fault of a dataset, not only the first.

use std::ops::ControlFlow;

use super::manifest::Manifest;
#[cfg(feature = "obs")]
use super::obs::verify::faults as obs_table;
#[cfg(feature = "obs")]
use super::var;
use super::{
    GENE_ORDER, MANIFEST, TileBuffer, VAR_NAMES, VAR_TABLE, VarNames, check_size, disagreements, names, npy, read_file,
    read_manifest, tile_name,
};
#[cfg(not(feature = "obs"))]
use super::{OBS_SCHEMA, OBS_SHARD, Obs, shard_name};
use crate::deltacel::decode::Decoder;
use crate::deltacel::tile::Tile;
#[cfg(feature = "obs")]
use crate::error::ErrorKind;
use crate::error::{Error, Part};
use crate::limits::Limits;
use crate::source::Source;

/// What a verification reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A fault; its path says in which file.
    Fault(Error),
    /// Nothing that keeps anyone from reading the dataset, but odd; its path says in which file.
    Warning(Error),
    /// So many tiles are done.
    Progress {
        /// Tiles done.
        done: u32,
        /// Tiles of the dataset.
        tiles: u32,
    },
}

/// Checks everything of a dataset: the manifest, the files that go with it, and each tile down to its last count.
///
/// Faults come one by one, in the order of the files and within a file in that of its bytes, on any number of threads;
/// progress comes before the first tile and from time to time. A manifest that is unsound hides all that lies behind it.
/// The tables of cells and genes are read to their last value with the feature `obs`, and `gene_order.npy`, `var_names.txt`
/// and `var.parquet` have the digests that the manifest states, where it does ([`Manifest::file_sha256`]); without the
/// feature files of tables are there and have the size that the manifest states.
///
/// Returns early when `report` breaks, and gives what it broke with.
///
/// ```no_run
/// use std::ops::ControlFlow;
/// use tilekern::deltacel::{Decoder, dataset};
///
/// let source = tilekern::Directory::new("counts")?;
/// let mut sound = true;
/// let _ = dataset::verify(&source, &Decoder::new()?, |event| {
///     if let dataset::Event::Fault(fault) = event {
///         eprintln!("{fault}");
///         sound = false;
///     }
///     ControlFlow::<()>::Continue(())
/// });
/// # Ok::<(), tilekern::Error>(())
/// ```
pub fn verify<B>(
    source: &dyn Source,
    decoder: &Decoder,
    mut report: impl FnMut(Event) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let text = match read_manifest(source) {
        Ok(text) => text,
        Err(error) => return report(Event::Fault(error)),
    };
    let manifest = match Manifest::check(&text) {
        Ok(manifest) => manifest,
        Err(faults) => {
            return faults.into_iter().try_for_each(|fault| report(Event::Fault(fault.in_path(source.path(MANIFEST)))));
        }
    };
    let (faults, warnings) = side_files(source, &manifest, decoder.limits());
    faults.into_iter().try_for_each(|fault| report(Event::Fault(fault)))?;
    warnings.into_iter().try_for_each(|warning| report(Event::Warning(warning)))?;
    let tiles = manifest.n_tiles();
    report(Event::Progress { done: 0, tiles })?;
    let mut done = 0;
    while done < tiles {
        // Enough to keep the threads busy; few enough to hold in memory, and for progress to move.
        let batch: Vec<u32> = (done..tiles).take(2 * decoder.threads()).collect();
        done += u32::try_from(batch.len()).unwrap_or(tiles);
        for fault in decoder.map(batch, |n| tile_faults(source, &manifest, n, decoder)).into_iter().flatten() {
            report(Event::Fault(fault))?;
        }
        report(Event::Progress { done, tiles })?;
    }
    ControlFlow::Continue(())
}

/// Faults of the files beside the manifest and the tiles, and warnings.
fn side_files(source: &dyn Source, manifest: &Manifest, limits: &Limits) -> (Vec<Error>, Vec<Error>) {
    let (n_genes, max) = (manifest.n_genes(), limits.max_input_bytes);
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    if manifest.has_gene_order() {
        let order = read_file(source, GENE_ORDER, max).and_then(|bytes| npy::read(&bytes, n_genes));
        let order = order.and_then(|_| check_digest(source, manifest, GENE_ORDER));
        keep(&mut faults, source, GENE_ORDER, order);
    }
    let mut names = None;
    if manifest.has_var_names() {
        let read = read_file(source, VAR_NAMES, max).and_then(|bytes| names::read(bytes, n_genes));
        let read = read.and_then(|names| check_digest(source, manifest, VAR_NAMES).map(|()| names));
        names = keep(&mut faults, source, VAR_NAMES, read);
    }
    if manifest.has_var_table() {
        let warning = var_table(source, n_genes, names.as_ref(), limits);
        let warning = warning.and_then(|warning| check_digest(source, manifest, VAR_TABLE).map(|()| warning));
        warnings.extend(keep(&mut faults, source, VAR_TABLE, warning).flatten());
    }
    if let Some(obs) = manifest.obs() {
        let (found, warning) = obs_table(source, manifest, obs, limits);
        faults.extend(found);
        warnings.extend(warning);
    }
    (faults, warnings)
}

/// What was read of a file, or its fault.
fn keep<T>(faults: &mut Vec<Error>, source: &dyn Source, name: &'static str, read: Result<T, Error>) -> Option<T> {
    read.map_err(|error| faults.push(error.in_part(Part::File(name)).in_path(source.path(name)))).ok()
}

/// Passes a file whose content passes if it has the digest that the manifest states, where it states one.
#[cfg(feature = "obs")]
fn check_digest(source: &dyn Source, manifest: &Manifest, name: &'static str) -> Result<(), Error> {
    let Some(stated) = manifest.file_sha256(name) else { return Ok(()) };
    let found = super::obs::digest(&mut *source.open(name)?)?;
    if found == *stated { Ok(()) } else { Err(Error::new(ErrorKind::Digest, Part::File(name))) }
}

/// The library that hashes comes with the feature `obs`.
#[cfg(not(feature = "obs"))]
fn check_digest(_: &dyn Source, _: &Manifest, _: &'static str) -> Result<(), Error> {
    Ok(())
}

/// Reads the table of genes; gives what is odd about it.
#[cfg(feature = "obs")]
fn var_table(
    source: &dyn Source,
    n_genes: u32,
    names: Option<&VarNames>,
    limits: &Limits,
) -> Result<Option<Error>, Error> {
    let table = var::read(&mut *source.open(VAR_TABLE)?, n_genes, limits)?;
    var::check_columns(&table, Part::File(VAR_TABLE))?;
    let (Some(names), Some(index)) = (names, var::var_index(&table)) else { return Ok(None) };
    Ok(var::disagreement(&table, index, |gene| names.get(gene)).map(|warning| warning.in_path(source.path(VAR_TABLE))))
}

/// The file is there: without the feature `obs` its content is not read.
#[cfg(not(feature = "obs"))]
fn var_table(source: &dyn Source, _: u32, _: Option<&VarNames>, _: &Limits) -> Result<Option<Error>, Error> {
    source.open(VAR_TABLE).map(|_| None)
}

/// The files are there and have their sizes: without the feature `obs` their content is not read.
#[cfg(not(feature = "obs"))]
fn obs_table(source: &dyn Source, _: &Manifest, obs: &Obs, _: &Limits) -> (Vec<Error>, Option<Error>) {
    let mut faults = Vec::new();
    keep(&mut faults, source, OBS_SCHEMA, source.open(OBS_SCHEMA).map(drop));
    for (shard, &bytes) in obs.shard_bytes().iter().enumerate() {
        let (name, part) = (shard_name(shard), Part::File(OBS_SHARD));
        let checked = source.open(&name).and_then(|object| check_size(object.size(), bytes, part));
        faults.extend(checked.err().map(|error| error.in_part(part).in_path(source.path(&name))));
    }
    (faults, None)
}

fn tile_faults(source: &dyn Source, manifest: &Manifest, n: u32, decoder: &Decoder) -> Vec<Error> {
    let name = tile_name(n);
    let mut faults = Vec::new();
    let mut buffer = TileBuffer::new();
    let read = source.open(&name).and_then(|object| {
        let size = object.size();
        faults.extend(check_size(size, manifest.tile_bytes()[n as usize], Part::Tile(n)).err());
        buffer.set(object, decoder.limits().max_input_bytes)?;
        buffer.fill(0, size)
    });
    match read {
        Ok(()) => {
            if let Ok(tile) = Tile::read_header(buffer.bytes()) {
                faults.extend(disagreements(manifest, n, &tile));
            }
            faults.extend(crate::deltacel::verify(buffer.bytes(), decoder));
        }
        Err(error) => faults.push(error.in_part(Part::Tile(n))),
    }
    faults.into_iter().map(|fault| fault.in_path(source.path(&name))).collect()
}
