//! Every fault of a dataset, not only the first.

use std::ops::ControlFlow;

use super::manifest::Manifest;
use super::{
    GENE_ORDER, MANIFEST, OBS_SCHEMA, OBS_SHARD, TileBuffer, VAR_NAMES, VAR_TABLE, check_size, disagreements, names,
    npy, read_file, read_manifest, shard_name, tile_name,
};
use crate::deltacel::decode::Decoder;
use crate::deltacel::tile::Tile;
use crate::error::{Error, Part};
use crate::source::Source;

/// What a verification reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A fault; its path says in which file.
    Fault(Error),
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
/// Of the obs and var tables it is checked that their files are there and have the size that the manifest states.
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
    for fault in side_files(source, &manifest, decoder.limits().max_input_bytes) {
        report(Event::Fault(fault))?;
    }
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

fn side_files(source: &dyn Source, manifest: &Manifest, max: u64) -> Vec<Error> {
    let mut faults = Vec::new();
    let mut check = |wanted: bool, name: &str, part: Part, check: &dyn Fn(&str) -> Result<(), Error>| {
        if wanted && let Err(error) = check(name) {
            faults.push(error.in_part(part).in_path(source.path(name)));
        }
    };
    let n_genes = manifest.n_genes();
    check(manifest.has_gene_order(), GENE_ORDER, Part::File(GENE_ORDER), &|name| {
        read_file(source, name, max).and_then(|bytes| npy::read(&bytes, n_genes)).map(drop)
    });
    check(manifest.has_var_names(), VAR_NAMES, Part::File(VAR_NAMES), &|name| {
        read_file(source, name, max).and_then(|bytes| names::read(bytes, n_genes)).map(drop)
    });
    let present = |name: &str| source.open(name).map(drop);
    check(manifest.has_var_table(), VAR_TABLE, Part::File(VAR_TABLE), &present);
    if let Some(obs) = manifest.obs() {
        check(true, OBS_SCHEMA, Part::File(OBS_SCHEMA), &present);
        for (shard, &bytes) in obs.shard_bytes().iter().enumerate() {
            let part = Part::File(OBS_SHARD);
            check(true, &shard_name(shard), part, &|name| check_size(source.open(name)?.size(), bytes, part));
        }
    }
    faults
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
