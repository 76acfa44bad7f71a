//! Every fault of a map tile, or of all tiles of an archive.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

use indicatif::{HumanCount, ProgressBar};
use tilekern::mlt::{Decoder, Options, Tile};

use super::{repeated, told, unopened};
use crate::archive::Archive;
use crate::fault::Fault;
use crate::packed;

/// Faults of an archive that are told, and warnings: of one that is wholly damaged all would be no help, and take much
/// memory.
const FAULTS: usize = 1000;

/// The faults of all tiles of an archive, warnings, and how many tiles were looked at. One is in memory at a time.
pub fn archive(archive: &Archive, options: &Options, progress: &ProgressBar) -> (Vec<Fault>, Vec<Fault>, u64) {
    progress.inc_length(archive.n_stored().unwrap_or(0));
    let (mut faults, mut warnings, mut more, mut seen) = (Vec::new(), Vec::new(), 0, 0);
    let went = archive.each(|name, bytes| {
        let bytes = bytes.and_then(|bytes| packed::unpacked(bytes, options.limits.max_output_bytes, name));
        match bytes {
            Ok(bytes) => {
                let (found, odd) = check(&bytes, options, name);
                faults.extend(found);
                warnings.extend(odd);
                more += warnings.len().saturating_sub(FAULTS) as u64;
                warnings.truncate(FAULTS);
            }
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
    if more > 0 {
        let message = format!("there are {} warnings more", HumanCount(more));
        warnings.push(Fault::new("archive", archive.path(), message));
    }
    (faults, warnings, seen)
}

/// All faults: of each layer that of its headers, or else those of ids, geometry and columns, of which each is tried by
/// itself. With warnings of what is odd, but no fault.
pub fn check(bytes: &[u8], options: &Options, path: &Path) -> (Vec<Fault>, Vec<Fault>) {
    let mut faults = Vec::new();
    let tile = Tile::open_sound(bytes, options, |error| faults.push(unopened(error, bytes, path)));
    let mut decoder = Decoder::with_options(*options);
    for layer in tile.frames().filter_map(|frame| frame.layer()) {
        // What several columns have in common is told once.
        let mut seen = HashSet::new();
        decoder.faults(layer, |error| {
            let fault = told(error, &tile, options, path);
            if seen.insert((fault.kind, fault.offset)) {
                faults.push(fault);
            }
        });
    }
    faults.sort_by_key(|fault| fault.offset);
    (faults, repeated(&tile, path))
}
