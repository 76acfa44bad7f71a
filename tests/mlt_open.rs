//! The tiles of the corpus are opened, and have the layers and columns that they should.

mod support;

use std::ops::Range;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use support::{entries, json};
use tilekern::Step;
use tilekern::kernels::Kernels;
use tilekern::mlt::{Column, Layer, Options, Outline, Packing, Tile, Traced, trace};

fn main() {
    support::run("fixtures/mlt", |corpus| {
        let mut trials = Vec::new();
        let folders = std::fs::read_dir(corpus).expect("a folder").map(|entry| entry.expect("an entry").path());
        for folder in folders.filter(|path| path.is_dir() && !path.ends_with("invalid")) {
            let tiles = tiles(&folder);
            let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
            if !tiles.is_empty() {
                let traced = tiles.clone();
                trials.push(Trial::test(format!("traces {name}"), move || traces(&traced)));
                trials.push(Trial::test(format!("opens {name}"), move || opens(&tiles)));
            }
        }
        let invalid = corpus.join("invalid");
        let small = ["hand", "v1-encodings", "v2-encodings"].map(|folder| corpus.join(folder));
        trials.push(Trial::test("traces damaged tiles", move || damaged(&small)));
        trials.push(Trial::test("opens or refuses invalid", move || controls(&invalid)));
        trials
    })
}

fn tiles(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut tiles: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|it| it == "mlt")).collect();
    tiles.sort();
    tiles
}

fn options() -> Options {
    Options::with_kernels(Kernels::auto())
}

fn opens(tiles: &[PathBuf]) -> Result<(), Failed> {
    let mut outline = Outline::default();
    for path in tiles {
        let bytes = std::fs::read(path)?;
        let tile =
            Tile::open_with(&bytes, outline, &options()).map_err(|error| format!("{}: {error}", path.display()))?;
        let expected = ["json", "digest.json"].map(|extension| path.with_extension(extension));
        let expected =
            expected.iter().find(|path| path.exists()).ok_or_else(|| format!("{}: no json", path.display()))?;
        let layers = tile.frames().map(|frame| frame.layer().map(|layer| outlined(&layer)));
        let layers: Vec<Option<Value>> = layers.collect();
        let wanted: Vec<Option<Value>> = entries_of(&json(expected)["layers"]).iter().map(wanted).collect();
        if layers != wanted {
            return Err(format!("{}: {layers:?} is not {wanted:?}", path.display()).into());
        }
        outline = tile.into_outline();
    }
    Ok(())
}

fn entries_of(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// What headers tell of a layer.
fn outlined(layer: &Layer<'_>) -> Value {
    fn names<'t>(columns: impl Iterator<Item = Column<'t>>) -> Vec<String> {
        columns.map(|column| column.name().into_owned()).collect()
    }
    let spans = layer.columns().flat_map(|column| column.streams().to_vec()).chain(layer.geometry_streams().to_vec());
    for stream in spans {
        let (header, payload) = (stream.header_span(), stream.payload_span());
        assert!(layer.span().start < header.start && header.end == payload.start && payload.end <= layer.span().end);
    }
    serde_json::json!({
        "name": layer.name(), "version": layer.version(), "extent": layer.extent(), "features": layer.features(),
        "ids": layer.ids().is_some(), "columns": names(layer.properties()), "m_values": names(layer.m_values()),
        "nested": names(layer.nested()),
    })
}

/// The same of the expected content.
fn wanted(layer: &Value) -> Option<Value> {
    let names = |key: &str| entries_of(&layer[key]).iter().map(|column| column["name"].clone()).collect::<Vec<_>>();
    layer.get("name").map(|name| {
        serde_json::json!({
            "name": name, "version": layer["version"], "extent": layer["extent"],
            "features": layer["feature_count"], "ids": !layer["ids"].is_null(), "columns": names("columns"),
            "m_values": names("m_values"), "nested": names("nested"),
        })
    })
}

/// A trace has no fault, and covers all bytes of the tile.
fn traces(tiles: &[PathBuf]) -> Result<(), Failed> {
    for path in tiles {
        let bytes = std::fs::read(path)?;
        let sequential = path.to_string_lossy().contains("mltcore");
        let options = if sequential { options().packing(Packing::Sequential) } else { options() };
        let whole = trace(&bytes, Traced::Tile, &options);
        if let Some(fault) = whole.fault {
            return Err(format!("{}: {fault}", path.display()).into());
        }
        // Steps are inside those that they are parts of, and those without parts leave no byte out.
        let (mut inside, mut seen) = (Vec::from_iter(std::iter::once(0..bytes.len() as u64)), 0);
        for (i, step) in whole.steps.iter().enumerate() {
            inside.truncate(usize::from(step.depth) + 1);
            let outer = inside.last().expect("the whole tile");
            let fits = outer.start <= step.span.start && step.span.start <= step.span.end && step.span.end <= outer.end;
            if !fits || inside.len() != usize::from(step.depth) + 1 {
                return Err(format!("{}: {step:?} is not in {outer:?}", path.display()).into());
            }
            inside.push(step.span.clone());
            if whole.steps.get(i + 1).is_none_or(|next| next.depth <= step.depth) {
                // Nor do those of a payload before its values, which are all of it once more.
                let whole = step.label != "values" || step.span.start == seen || step.span.end == seen;
                if step.span.start > seen || !whole {
                    return Err(format!("{}: nothing at byte {seen} before {step:?}", path.display()).into());
                }
                seen = seen.max(step.span.end);
            }
        }
        if seen != bytes.len() as u64 {
            return Err(format!("{}: nothing at byte {seen} to the end", path.display()).into());
        }
        parts(&bytes, &options, whole.steps.len()).map_err(|what| format!("{}: {what}", path.display()))?;
    }
    Ok(())
}

/// The trace of a part has steps of that part alone.
fn parts(bytes: &[u8], options: &Options, all: usize) -> Result<(), String> {
    let tile = Tile::open(bytes, options).map_err(|error| error.to_string())?;
    for (number, layer) in (0..).zip(tile.layers()) {
        let of = |traced| trace(bytes, traced, options).steps;
        let within = |steps: &[Step], span: Range<u64>| {
            steps.iter().all(|step| span.start <= step.span.start && step.span.end <= span.end)
        };
        if !within(&of(Traced::Layer(number)), layer.span()) {
            return Err(format!("layer {number} has steps outside"));
        }
        let geometry = of(Traced::Geometry(number));
        let vertices = geometry.iter().filter(|step| step.label.starts_with("Vert")).count();
        if vertices != layer.geometry_streams().iter().filter(|it| it.role.name().starts_with("Vert")).count() {
            return Err(format!("the geometry of layer {number} has other steps"));
        }
        for column in layer.columns().take(5) {
            let steps = of(Traced::Column(number, u32::try_from(column.index()).expect("a number")));
            let streams = column.streams().iter().all(|stream| {
                steps.iter().any(|step| step.span == (stream.header_span().start..stream.payload_span().end))
            });
            if !streams || steps.len() > all || steps.is_empty() {
                return Err(format!("column {} of layer {number} has other steps", column.index()));
            }
        }
    }
    Ok(())
}

/// Sound controls open; of the others, opening gives an error with its place, or leaves the fault to the decoder.
fn controls(folder: &Path) -> Result<(), Failed> {
    for entry in entries(&folder.join("index.json")) {
        let file = entry["file"].as_str().expect("a file");
        let bytes = std::fs::read(folder.join(file))?;
        let traced = trace(&bytes, Traced::Tile, &options());
        if (entry["expect"] == "accept") != traced.fault.is_none() {
            return Err(format!("{file}: traced with {:?}", traced.fault).into());
        }
        match Tile::open(&bytes, &options()) {
            Ok(_) => {}
            Err(error) if entry["expect"] == "accept" => return Err(format!("{file}: {error}").into()),
            Err(error) if traced.fault.as_ref().is_none_or(|fault| fault.to_string() != error.to_string()) => {
                return Err(format!("{file}: {error}, but traced with {:?}", traced.fault).into());
            }
            Err(error) => {
                let in_frame = error.kind().name() == "frame_size";
                if error.offset().is_none_or(|at| at > bytes.len() as u64) || (error.layer().is_none() && !in_frame) {
                    return Err(format!("{file}: {error} has no place").into());
                }
            }
        }
    }
    Ok(())
}

/// Tiles with one byte changed open and are traced, or give an error: what does not open has a trace with a fault.
fn damaged(folders: &[PathBuf]) -> Result<(), Failed> {
    for path in folders.iter().flat_map(|folder| tiles(folder)) {
        let mut bytes = std::fs::read(&path)?;
        for at in 0..bytes.len().min(160) {
            for change in [0x01, 0x80, 0xff] {
                bytes[at] ^= change;
                let opened = Tile::open(&bytes, &options()).map(|_| ());
                let traced = trace(&bytes, Traced::Tile, &options());
                if opened.is_err() && traced.fault.is_none() {
                    return Err(format!("{}, byte {at}: {opened:?}, but traced", path.display()).into());
                }
                // Lists are cut short, so steps are about as many as the headers have fields.
                assert!(traced.steps.len() < 20 * bytes.len(), "{} steps of {}", traced.steps.len(), path.display());
                bytes[at] ^= change;
            }
        }
    }
    Ok(())
}
