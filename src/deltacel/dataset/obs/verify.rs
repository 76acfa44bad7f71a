//! Every fault of the table of cells.

use super::schema::{MAX_BYTES, ObsSchema, fingerprint};
use super::shards::shard_faults;
use crate::deltacel::dataset::manifest::{Manifest, Obs};
use crate::deltacel::dataset::{MANIFEST, OBS_SCHEMA, read_file};
use crate::error::{Error, ErrorKind, Part};
use crate::limits::Limits;
use crate::source::Source;

/// The faults of the schema and of each shard, and what is odd but no fault.
pub(in crate::deltacel::dataset) fn faults(
    source: &dyn Source,
    manifest: &Manifest,
    obs: &Obs,
    limits: &Limits,
) -> (Vec<Error>, Option<Error>) {
    let in_schema = |error: Error| error.in_part(Part::Schema(None)).in_path(source.path(OBS_SCHEMA));
    let mut faults = Vec::new();
    let mut warning = None;
    let text = read_file(source, OBS_SCHEMA, MAX_BYTES.min(limits.max_input_bytes));
    let schema = match text.map_err(|error| vec![error]).and_then(|text| Ok((ObsSchema::parse(&text)?, text))) {
        Ok((schema, text)) => {
            let cells = (0..manifest.n_tiles()).map(|tile| manifest.tile_cells(tile));
            // It was read as UTF-8.
            let expected = fingerprint(&String::from_utf8_lossy(&text), &obs.shard_sha256, cells);
            if expected != obs.fingerprint {
                let why = format!("{:?}, but the table's content gives {expected:?}", obs.fingerprint);
                let error = Error::new(ErrorKind::Digest, Part::Manifest(Some("obs_fingerprint"))).caused_by(why);
                warning = Some(error.in_path(source.path(MANIFEST)));
            }
            Some(schema)
        }
        Err(errors) => {
            faults.extend(errors.into_iter().map(in_schema));
            None
        }
    };
    for n in 0..obs.shard_bytes.len() {
        faults.extend(shard_faults(source, manifest, obs, schema.as_ref(), n, limits));
    }
    (faults, warning)
}
