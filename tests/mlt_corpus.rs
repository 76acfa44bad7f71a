//! The tiles of the MLT corpus: values of every column, and what is refused.

mod support;

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;
use support::{entries, json, mlt, same};
use tilekern::Error;
use tilekern::kernels::Kernels;
use tilekern::mlt::{
    Decoder, Geometry, LayerData, MValueData, NestedData, Options, Packing, PropertyData, Tile, TileData,
};

const SOUND: [&str; 9] = [
    "v1-synthetic",
    "v1-encodings",
    "v1-real",
    "v2-encodings",
    "v2-fastpfor-page",
    "v2-fastpfor-mltcore0221",
    "fastpfor-pages",
    "v2-real",
    "hand",
];

/// The rule that a tile breaks which has FastPFOR in the form that is not asked for.
const OTHER_FORM: &str = "other form";

/// Tiles that are in neither form of FastPFOR: packed as the format says, but with the offsets of ALP as 32-bit words, as
/// mlt-core up to 0.22.1 writes them in its own packing.
const NEITHER: [&str; 2] = ["v2_float_alp_none_300", "v2_float_alp_varint_300"];

fn main() {
    support::run("fixtures/mlt", |corpus| {
        let mut trials = Vec::new();
        for folder in SOUND {
            let mut files: Vec<_> = std::fs::read_dir(corpus.join(folder))
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "mlt"))
                .collect();
            files.sort();
            for path in files {
                let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
                let packing = if folder.ends_with("mltcore0221") { Packing::Sequential } else { Packing::Interleaved };
                let neither = packing == Packing::Interleaved && NEITHER.contains(&name.as_str());
                trials.push(Trial::test(format!("{folder} {name}"), move || {
                    if neither { refused(&path, OTHER_FORM) } else { sound(&path, packing) }
                }));
            }
        }
        // Read by the wrong form, offsets of ALP do not add up.
        let other = corpus.join("v2-fastpfor-mltcore0221/v2_float_alp_fpf_300.mlt");
        trials.push(Trial::test("the other form of FastPFOR", move || refused(&other, OTHER_FORM)));
        let folder = corpus.join("invalid");
        for entry in entries(&folder.join("index.json")) {
            let text = |key: &str| entry[key].as_str().expect("a text").to_owned();
            let (file, rule, accept) = (text("file"), text("rule"), entry["expect"] == "accept");
            let path = folder.join(&file);
            trials.push(Trial::test(format!("invalid {rule} {file}"), move || {
                if accept { sound_or_whole(&path) } else { refused(&path, &rule) }
            }));
        }
        trials
    })
}

/// Every column of a tile is what the corpus says, with all kernels, and the same alone as among others.
fn sound(path: &Path, packing: Packing) -> Result<(), Failed> {
    let bytes = std::fs::read(path)?;
    let whole = path.with_extension("json");
    let digest = !whole.exists();
    let expected = json(&if digest { path.with_extension("digest.json") } else { whole });
    for kernels in Kernels::available() {
        let options = Options::with_kernels(kernels).packing(packing);
        let tile = Tile::open(&bytes, &options)?;
        let mut decoder = Decoder::with_options(options);
        let mut data = TileData::new();
        // Into memory that holds another tile, too.
        for _ in 0..2 {
            decoder.tile(&tile, &mut data)?;
            let found = mlt::tile(&tile, &data, digest);
            if found != expected {
                return Err(format!("{kernels:?}: {}", difference("", &found, &expected)).into());
            }
        }
        alone(&tile, &data, &mut decoder)?;
    }
    Ok(())
}

/// A tile without expected values.
fn sound_or_whole(path: &Path) -> Result<(), Failed> {
    if path.with_extension("json").exists() {
        return sound(path, Packing::Interleaved);
    }
    let bytes = std::fs::read(path)?;
    for kernels in Kernels::available() {
        let options = Options::with_kernels(kernels);
        let tile = Tile::open(&bytes, &options)?;
        let (mut decoder, mut data) = (Decoder::with_options(options), TileData::new());
        decoder.tile(&tile, &mut data)?;
        alone(&tile, &data, &mut decoder)?;
    }
    Ok(())
}

/// Columns that are decoded one by one.
fn alone(tile: &Tile<'_>, data: &TileData, decoder: &mut Decoder) -> Result<(), Failed> {
    let (mut property, mut geometry) = (PropertyData::new(), Geometry::new());
    let (mut m_values, mut nested) = (MValueData::new(), NestedData::new());
    for (layer, whole) in tile.layers().zip(data.layers()) {
        let found = decoder.ids(layer, &mut property)?;
        same("ids", found.then(|| mlt::values(&property.get())), whole.ids().map(|ids| mlt::values(&ids)))?;
        decoder.geometry(layer, &mut geometry)?;
        same("types", geometry.types(), whole.geometry().types())?;
        same("vertices", geometry.vertices(), whole.geometry().vertices())?;
        same("triangles", geometry.triangles(), whole.geometry().triangles())?;
        for (column, expected) in layer.properties().zip(whole.properties()) {
            decoder.property(column, &mut property)?;
            let found = property.get();
            same("name", found.name, expected.name)?;
            same("validity", found.validity, expected.validity)?;
            same("a property", mlt::values(&found), mlt::values(&expected))?;
        }
        for (column, expected) in layer.m_values().zip(whole.m_values()) {
            decoder.m_value(column, &mut m_values)?;
            same("values of vertices", format!("{:?}", m_values.get()), format!("{expected:?}"))?;
        }
        for (column, expected) in layer.nested().zip(whole.nested()) {
            decoder.nested(column, &mut nested)?;
            same("a nested column", mlt::nested_values(&nested.get()), mlt::nested_values(&expected))?;
        }
        let mut again = LayerData::new();
        decoder.layer(layer, &mut again)?;
        same("a layer", mlt::layer(&again, true), mlt::layer(whole, true))?;
    }
    Ok(())
}

/// A tile that breaks a rule, which the error names, on all kernels alike.
fn refused(path: &Path, rule: &str) -> Result<(), Failed> {
    let bytes = std::fs::read(path)?;
    let mut first: Option<String> = None;
    for kernels in Kernels::available() {
        let options = Options::with_kernels(kernels);
        let error = decode(&bytes, options).err().ok_or("accepted")?;
        if std::env::var_os("TILEKERN_SHOW_ERRORS").is_some() {
            eprintln!("{rule} {}: {} {error:?}", path.display(), error.kind().name());
        }
        same("an offset", error.offset().is_some(), true)?;
        let allowed = kinds(rule);
        if !allowed.contains(&error.kind().name()) {
            return Err(format!("{rule}: {} is none of {allowed:?}: {error:?}", error.kind().name()).into());
        }
        let told = format!("{error:?}");
        same("the error of another level", first.get_or_insert_with(|| told.clone()).as_str(), told.as_str())?;
    }
    Ok(())
}

fn decode(bytes: &[u8], options: Options) -> Result<(), Error> {
    let tile = Tile::open(bytes, &options)?;
    Decoder::with_options(options).tile(&tile, &mut TileData::new())
}

/// The names of the kinds that the breach of a rule of the corpus can have.
fn kinds(rule: &str) -> &'static [&'static str] {
    match rule {
        "R1" => &["bit_width"],
        "R2" => &["bit_packed_length"],
        "R3" => &["fastpfor_length"],
        "R4" => &["fastpfor_width"],
        "R5" => &["fastpfor_max_width"],
        "R6" => &["fastpfor_position"],
        "R7" => &["fastpfor_exception"],
        "R8" => &["fastpfor_array"],
        "R9" => &["fastpfor_page", "fastpfor_block_values"],
        "R10" => &["fastpfor_count", "varint_overflow"],
        "R11" => &["run_sum", "run_count"],
        "R12" => &["run_odd"],
        "R13" => &["boolean_run_sum"],
        "R14" => &["sparse_summary"],
        "R15" => &["sparse_zero"],
        "R16" => &["boolean_rle_length"],
        "R17" => &["alp_scale"],
        "R18" => &["code_out_of_dictionary"],
        "R19" => &["utf8", "lengths_past_bytes"],
        "R20" => &["prefix_too_long"],
        "R21" => &["front_coding_odd"],
        "R22" => &["front_coding_suffixes"],
        "R23" => &["fsst_code", "lengths_past_bytes"],
        "R24" => &["fsst_escape"],
        "R25" => &["code_out_of_dictionary"],
        "R26" => &["vertex_offset"],
        "R27" => &["morton_bits"],
        "R28" => &["rans_on_dictionary"],
        "R29" => &["rans_runs"],
        "R30" => &["rans_gamma"],
        "R31" => &["rans_frequency_sum"],
        "R32" => &["rans_last_symbol"],
        "R33" => &["rans_symbol"],
        "R34" => &["rans_lane_length"],
        "R35" => &["rans_context"],
        "R36" => &["rans_lane_end"],
        "R37" => &["rans_raw_bits"],
        "R38" => &["rans_parameter"],
        "R39" => &["fastpfor_64_bit"],
        "R40" => &["fsst_symbols"],
        "C1" => &["layer_trailing_bytes"],
        "C2" => &["empty"],
        "C3" => &["frame_size"],
        "C4" => &["unknown_code"],
        "C5" => &["unknown_code"],
        "C6" => &["reserved"],
        "C7" => &["shared_presence"],
        "C8" => &["repeated_name"],
        "C9" => &["repeated_column"],
        "C10" => &["unknown_code", "encoding_not_allowed"],
        "C11" => &["encoding_not_allowed"],
        "C12" => &["encoding_not_allowed"],
        "C13" => &["geometry_type"],
        "C14" => &["unknown_code"],
        "C15" => &["varint_overflow", "stream_length"],
        "C16" => &["value_out_of_range"],
        "C17" => &["topology_past_vertices"],
        "C18" => &["stream_length"],
        "C19" => &["unknown_code"],
        "C20" => &["no_geometry"],
        "C21" => &["unknown_code"],
        "C22" => &["count_mismatch"],
        "C23" => &["stream_count"],
        "C24" => &["front_coding_without_dictionary"],
        OTHER_FORM => &["fastpfor_array", "fastpfor_count", "fastpfor_exception", "fastpfor_page"],
        other => panic!("a rule without kinds: {other}"),
    }
}

/// The first place in which two documents differ.
fn difference(place: &str, found: &Json, expected: &Json) -> String {
    match (found, expected) {
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            let differ = a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b);
            differ.map_or_else(String::new, |(i, (a, b))| difference(&format!("{place}[{i}]"), a, b))
        }
        (Json::Object(a), Json::Object(b)) if a.keys().eq(b.keys()) => {
            let differ = a.iter().find(|(key, value)| b[key.as_str()] != **value);
            differ.map_or_else(String::new, |(key, a)| difference(&format!("{place}.{key}"), a, &b[key.as_str()]))
        }
        _ => {
            let cut = |json: &Json| json.to_string().chars().take(300).collect::<String>();
            format!("{place}: {}, expected {}", cut(found), cut(expected))
        }
    }
}
