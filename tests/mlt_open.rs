//! The tiles of the corpus are opened, and have the layers and columns that they should.

mod support;

use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use support::{entries, json};
use tilekern::kernels::Kernels;
use tilekern::mlt::{Column, Layer, Options, Outline, Tile};

fn main() {
    support::run("fixtures/mlt", |corpus| {
        let mut trials = Vec::new();
        let folders = std::fs::read_dir(corpus).expect("a folder").map(|entry| entry.expect("an entry").path());
        for folder in folders.filter(|path| path.is_dir() && !path.ends_with("invalid")) {
            let tiles = tiles(&folder);
            let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
            if !tiles.is_empty() {
                trials.push(Trial::test(format!("opens {name}"), move || opens(&tiles)));
            }
        }
        let invalid = corpus.join("invalid");
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

/// Sound controls open; of the others, opening gives an error with its place, or leaves the fault to the decoder.
fn controls(folder: &Path) -> Result<(), Failed> {
    for entry in entries(&folder.join("index.json")) {
        let file = entry["file"].as_str().expect("a file");
        let bytes = std::fs::read(folder.join(file))?;
        match Tile::open(&bytes, &options()) {
            Ok(_) => {}
            Err(error) if entry["expect"] == "accept" => return Err(format!("{file}: {error}").into()),
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
