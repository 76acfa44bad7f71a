//! What an archive of map tiles is.

use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;

use crate::Verdict;
use crate::archive::{Archive, Facts, Zoom};
use crate::console::Console;
use crate::fault::Stop;
use crate::text::{counted, quoted};

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    bytes: u64,
    #[serde(flatten)]
    facts: &'a Facts,
}

pub fn info(archive: &Archive, path: &Path, console: &mut Console) -> Result<Verdict, Stop> {
    let facts = archive.facts()?;
    if console.json {
        let path = &*path.to_string_lossy();
        console.record(&Record { path, kind: archive.kind.name(), bytes: archive.bytes, facts: &facts })?;
        return Ok(Verdict::Sound);
    }
    let tiles = facts.n_tiles.map_or_else(|| "tiles uncounted".to_owned(), |n| counted(n, "tile"));
    let unknown = || "unknown".to_owned();
    console.line(format_args!("{} archive, {tiles}, {}", archive.kind.name(), counted(archive.bytes, "byte")))?;
    let zoom = |zoom: Option<u8>| zoom.map_or_else(|| "?".to_owned(), |zoom| HumanCount(zoom.into()).to_string());
    let bounds = facts.bounds.map(|[west, south, east, north]| format!("{west}, {south} to {east}, {north}"));
    let rows = [
        ("name", facts.name.as_deref().map(quoted)),
        ("format", Some(facts.tile_format.as_deref().map_or_else(unknown, quoted))),
        ("compression", facts.compression.as_deref().map(quoted)),
        ("zooms", Some(format!("{} to {}", zoom(facts.min_zoom), zoom(facts.max_zoom)))),
        ("tiles", facts.zooms.as_deref().filter(|zooms| !zooms.is_empty()).map(zooms)),
        ("bounds", bounds),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            console.line(format_args!("{name:<12}{value}"))?;
        }
    }
    let place = facts.example.map_or_else(|| "z/x/y".to_owned(), |place| place.to_string());
    console.line(format_args!("a tile of it is {}#{place}", path.display()))?;
    Ok(Verdict::Sound)
}

/// How many tiles each zoom has.
fn zooms(zooms: &[Zoom]) -> String {
    let each = zooms.iter().map(|Zoom { zoom, n_tiles }| format!("{} of zoom {zoom}", HumanCount(*n_tiles)));
    each.collect::<Vec<_>>().join(", ")
}
