//! Every fault of a map tile, or of all tiles of an archive.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

use indicatif::{HumanCount, ProgressBar};
use tilekern::ErrorKind;
use tilekern::mlt::{Kind, Options, Tile};

use super::{Item, Reader, told, unopened};
use crate::archive::Archive;
use crate::fault::Fault;
use crate::packed;

/// Faults of an archive that are told: of one that is wholly damaged all would be no help, and take much memory.
const FAULTS: usize = 1000;

/// The faults of all tiles of an archive, and how many tiles were looked at. One is in memory at a time.
pub fn archive(archive: &Archive, options: &Options, progress: &ProgressBar) -> (Vec<Fault>, u64) {
    progress.inc_length(archive.n_stored().unwrap_or(0));
    let (mut faults, mut seen) = (Vec::new(), 0);
    let went = archive.each(|name, bytes| {
        let bytes = bytes.and_then(|bytes| packed::unpacked(bytes, options.limits.max_output_bytes, name));
        match bytes {
            Ok(bytes) => faults.extend(check(&bytes, options, name)),
            Err(fault) => faults.push(fault),
        }
        seen += 1;
        progress.inc(1);
        if faults.len() < FAULTS {
            return ControlFlow::Continue(());
        }
        faults.truncate(FAULTS);
        let message =
            format!("that are {} faults: tiles behind this one were not looked at", HumanCount(FAULTS as u64));
        faults.push(Fault::new("archive", name, message));
        ControlFlow::Break(())
    });
    faults.extend(went.err());
    (faults, seen)
}

/// All faults: of the headers, else of each layer's ids, geometry and columns, of which each is tried by itself.
pub fn check(bytes: &[u8], options: &Options, path: &Path) -> Vec<Fault> {
    let tile = match Tile::open(bytes, options) {
        Ok(tile) => tile,
        Err(error) => return vec![unopened(error, bytes, path)],
    };
    let mut reader = Reader::new(*options);
    let mut faults: Vec<Fault> = Vec::new();
    for layer in tile.layers() {
        let columns = layer.columns().filter(|column| !matches!(column.kind(), Kind::Id | Kind::Geometry));
        let items = [Item::Ids, Item::Geometry].into_iter().chain(columns.map(Item::Column));
        // Most are sound, and take one look.
        let Err(whole) = reader.layer(layer).map(drop) else { continue };
        let (before, mut seen) = (faults.len(), HashSet::new());
        for item in items {
            if let Err(error) = reader.some(layer, &[item]) {
                // The children of a shared dictionary, and what shares a presence field, have their faults in common.
                let fault = told(error, &tile, options, path);
                if seen.insert((fault.kind, fault.offset)) {
                    faults.push(fault);
                }
            }
        }
        // A dictionary that no column shares is looked at with the whole layer alone. More than the limits allow at once is
        // no fault where all columns are within them.
        let shared =
            layer.columns().any(|column| column.kind() == Kind::SharedDictionary && column.children().len() == 0);
        if faults.len() == before && (shared || !matches!(whole.kind(), ErrorKind::LimitExceeded { .. })) {
            faults.push(told(whole, &tile, options, path));
        }
    }
    faults
}
