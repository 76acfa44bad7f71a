//! The command on map tiles, and on archives of them.

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;

use pmtiles::{Compression, TileType};
use serde_json::{Value, json};
use support::mlt::{layer, mbtiles, odd, pmtiles, tile};
use support::{Run, names, tilekern, tilekern_with};
use tempfile::{TempDir, tempdir};
use tilekern::mlt::encode::{
    Floats, Geometry, GeometryCoding, Integers, LayerWriter, Member, Nested, Presence, Shape, Strings, Values, Version,
};

fn run(verb: &str, path: &Path, options: &str) -> Run {
    let path = path.to_str().expect("text");
    tilekern([verb, path].into_iter().chain(options.split_whitespace()))
}

/// What a verb prints as JSON, if it ends with 0.
fn sound(verb: &str, path: &Path, options: &str) -> Value {
    let run = run(verb, path, &format!("--json {options}"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{verb} {options}: {run:?}");
    run.json()
}

/// The kind of the fault with which it ends.
fn fault(verb: &str, path: &Path, options: &str) -> String {
    let run = run(verb, path, &format!("--json {options}"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{verb} {options}: {run:?}");
    let found = run.json();
    assert!(found["error"]["message"].as_str().is_some_and(|message| message.len() > 9), "{found}");
    found["error"]["kind"].as_str().expect("a kind").to_owned()
}

/// A folder with the tile as `tile.mlt`.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("tile.mlt"), tile()).unwrap();
    folder
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    zstd_safe::compress(&mut out, bytes, 19).unwrap();
    out
}

fn values() -> Value {
    json!({"layers": [
        {
            "name": "places", "version": 1, "extent": 4096, "feature_count": 2, "ids": [7, 9],
            "columns": [
                {"name": "name", "type": "str", "values": ["a", "bc"]},
                {"name": "rank", "type": "i32", "values": [null, -3]},
            ],
            "geometry": [["Point", [10, 20]], ["Point", [2048, 2048]]],
        },
        {
            "name": "areas", "version": 1, "extent": 4096, "feature_count": 1, "ids": null, "columns": [],
            "geometry": [["Polygon", [
                [[0, 0], [4096, 0], [4096, 4096], [0, 4096], [0, 0]],
                [[1024, 1024], [1024, 2048], [2048, 2048], [2048, 1024], [1024, 1024]],
            ]]],
        },
    ]})
}

#[test]
fn all_values_are_decoded() {
    let folder = folder();
    let path = folder.path().join("tile.mlt");
    assert_eq!(sound("decode", &path, ""), values());
    for level in ["scalar", "--kernel scalar"] {
        let options = level.trim_start_matches("scalar");
        assert_eq!(sound("decode", &path, options), values());
    }
    assert_eq!(run("decode", &path, "--to json").json(), values());
    assert_eq!(run("decode", &path, "-o -").json(), values());
    let places = &values()["layers"][0];
    assert_eq!(sound("decode", &path, "--layer places")["layers"], json!([places]));
    assert_eq!(sound("decode", &path, "--layer 0")["layers"], json!([places]));
    let some = sound("decode", &path, "--column rank --column id --column rank");
    let ranks = json!({
        "name": "places", "version": 1, "extent": 4096, "feature_count": 2, "ids": [7, 9],
        "columns": [places["columns"][1]],
    });
    assert_eq!(some["layers"], json!([ranks]));
    let some = sound("decode", &path, "--layer areas --column geometry");
    assert_eq!(some["layers"][0]["geometry"], values()["layers"][1]["geometry"]);
    assert!(some["layers"][0].get("ids").is_none());
    let text = run("decode", &path, "");
    for words in ["layer places: version 1, extent 4,096, 2 features", "a, bc", "-3", "2 Point", "7, 9", "1 Polygon"] {
        assert!(text.stdout.contains(words), "{words}: {text:?}");
    }
    // FNV-1a of the compact lists.
    let digest = sound("decode", &path, "--digest");
    let fnv = |text: &str| {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
    };
    assert_eq!(digest["layers"][0]["ids"], fnv("[7,9]"));
    assert_eq!(digest["layers"][0]["geometry"], fnv(r#"[["Point",[10,20]],["Point",[2048,2048]]]"#));
    let rank = json!({"name": "rank", "type": "i32", "nulls": 1, "values": fnv("[null,-3]")});
    assert_eq!(digest["layers"][0]["columns"][1], rank);
    assert_eq!(digest["layers"][1]["ids"], Value::Null);
}

#[test]
fn what_is_rare_is_decoded() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("odd.mlt");
    fs::write(&path, odd()).unwrap();
    let expected = json!({"layers": [
        {"unknown_tag": true},
        {
            "name": "triangles", "version": 1, "extent": 4096, "feature_count": 1, "ids": null, "columns": [],
            "geometry": [["Polygon", [[[0, 0], [1, 0], [1, 1], [0, 0]]]]],
            "triangles": {"offsets": [0, 1], "indices": [0, 1, 2]},
        },
        {
            "name": "paths", "version": 2, "extent": 4096, "feature_count": 2, "ids": null,
            "columns": [{"name": "ref", "type": "u32", "values": [null, 5]}],
            "geometry": [["LineString", [[1, 2], [2, 3]]], ["LineString", [[3, 4], [4, 5]]]],
            "z": {"step_exponent": 0, "values": [[3, 4], [5, 6]]},
            "m_values": [{"name": "dist", "type": "i32", "values": [[0, 1], [0, 1]]}],
            "nested": [{
                "name": "meta", "shape": {"map": {"n": "i32", "tags": {"list": "u8"}}},
                "values": [{"n": 1, "tags": []}, {"n": 2, "tags": [7]}],
            }],
        },
    ]});
    assert_eq!(sound("decode", &path, ""), expected);
    let some = sound("decode", &path, "--column meta --column dist");
    let path_layer = &some["layers"][0];
    assert_eq!(path_layer["nested"], expected["layers"][2]["nested"]);
    assert_eq!(path_layer["m_values"], expected["layers"][2]["m_values"]);
    assert!(path_layer.get("geometry").is_none());
    let features = run("decode", &path, "--layer paths --format geojson").json();
    assert_eq!(
        features["features"][1],
        json!({
            "type": "Feature",
            "properties": {"_layer": "paths", "_extent": 4096, "ref": 5, "meta": {"n": 2, "tags": [7]}, "dist": [0, 1]},
            "geometry": {"type": "LineString", "coordinates": [[3, 4, -9995.0], [4, 5, -9994.0]]},
        })
    );
    let text = run("decode", &path, "").stdout;
    assert!(text.contains("[0,1], [0,1]") && text.contains(r#"{"n":1,"tags":[]}"#), "{text}");
    assert_eq!(sound("verify", &path, "")["sound"], true);
    assert!(sound("trace", &path, "paths.meta").get("error").is_none());
}

#[test]
fn what_is_not_there_is_told() {
    let folder = folder();
    let path = folder.path().join("tile.mlt");
    assert_eq!(fault("decode", &path, "--layer none"), "missing");
    assert_eq!(fault("decode", &path, "--column none"), "missing");
    assert_eq!(fault("trace", &path, "none"), "missing");
    assert_eq!(fault("trace", &path, "places.none"), "missing");
    assert!(run("decode", &path, "--column none").stderr.contains("name one of geometry, id, name, rank"));
    assert!(run("decode", &path, "--layer none").stderr.contains("name one of places, areas"));
    for (verb, options) in [
        ("decode", "--cells 0"),
        ("decode", "--row-group 0"),
        ("decode", "--compress"),
        ("decode", "--tile 0/0/0 --json"),
        ("decode", "--tile 0/1/0 --format geojson"),
        ("decode", "--format geojson --digest"),
        ("decode", "--format npz -o x.npz"),
        ("decode", "--format arrow"),
        ("decode", "--format arrow -o x.arrow"),
        ("decode", "-o x.unknown"),
        ("trace", "--chunk 0"),
        ("trace", "places --values --json"),
    ] {
        let run = run(verb, &path, options);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{verb} {options}: {run:?}");
    }
    assert_eq!(fault("stats", &path, ""), "unsupported");
    assert_eq!(fault("pages", &path, ""), "unsupported");
    assert_eq!(fault("info", folder.path(), "--as mlt"), "unsupported");
    let tile = folder.path().join("tile.dct");
    support::tile(&tile, 3, 2);
    assert_eq!(run("decode", &tile, "--layer x").code, Some(2));
}

#[test]
fn geojson_is_written() {
    let folder = folder();
    let path = folder.path().join("tile.mlt");
    let found = run("decode", &path, "--format geojson").json();
    let expected = json!({"type": "FeatureCollection", "features": [
        {
            "type": "Feature", "id": 7, "properties": {"_layer": "places", "_extent": 4096, "name": "a"},
            "geometry": {"type": "Point", "coordinates": [10, 20]},
        },
        {
            "type": "Feature", "id": 9, "properties": {"_layer": "places", "_extent": 4096, "name": "bc", "rank": -3},
            "geometry": {"type": "Point", "coordinates": [2048, 2048]},
        },
        {
            "type": "Feature", "properties": {"_layer": "areas", "_extent": 4096},
            "geometry": {"type": "Polygon", "coordinates": values()["layers"][1]["geometry"][0][1]},
        },
    ]});
    assert_eq!(found, expected);
    let output = folder.path().join("world.geojson");
    let written = sound("decode", &path, &format!("--tile 0/0/0 --column rank -o {}", output.display()));
    assert_eq!((&written["n_features"], &written["format"]), (&json!(2), &json!("geojson")));
    let found: Value = serde_json::from_slice(&fs::read(&output).unwrap()).unwrap();
    assert_eq!(found["features"][1]["geometry"]["coordinates"], json!([0.0, 0.0]));
    assert!(found["features"][1]["properties"].get("name").is_none());
    let found = run("decode", &path, "--tile 0/0/0 --layer areas --format geojson").json();
    let rings: Vec<Vec<[f64; 2]>> =
        serde_json::from_value(found["features"][0]["geometry"]["coordinates"].clone()).unwrap();
    let area =
        |ring: &[[f64; 2]]| ring.windows(2).map(|two| two[0][0] * two[1][1] - two[1][0] * two[0][1]).sum::<f64>();
    assert!(rings.iter().all(|ring| ring.len() == 5 && ring[0] == ring[4]));
    assert!(area(&rings[0]) > 0.0 && area(&rings[1]) < 0.0, "{rings:?}");
    assert!(rings[0].iter().all(|[x, y]| x.abs() == 180.0 && (y.abs() - 85.0511).abs() < 1e-4), "{rings:?}");
}

#[test]
fn info_tells_streams_and_sizes() {
    let folder = folder();
    let path = folder.path().join("tile.mlt");
    let info = sound("info", &path, "");
    let bytes = fs::metadata(&path).unwrap().len();
    assert_eq!((&info["kind"], &info["bytes"], &info["n_features"]), (&json!("mlt"), &json!(bytes), &json!(3)));
    let places = &info["layers"][0];
    assert_eq!(places["geometry_types"], json!([{"type": "Point", "n_features": 2}]));
    let columns = places["columns"].as_array().unwrap();
    let facts: Vec<_> = columns.iter().map(|column| (&column["name"], &column["type"], &column["nullable"])).collect();
    let rank = (&json!("rank"), &json!("Int32"), &json!(true));
    assert_eq!(facts[2], rank);
    assert_eq!(columns[1]["strings"], "plain");
    let roles = |column: &Value| {
        let streams = column["streams"].as_array().unwrap().iter();
        streams.map(|stream| stream["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(roles(&columns[2]), ["Present", "Data"]);
    assert_eq!(columns[2]["streams"][1]["physical"], "VarInt");
    assert_eq!(
        roles(&places["geometry"]),
        ["GeometryLengths", "Vertices"].map(|role| match role {
            "GeometryLengths" => "Types".to_owned(),
            role => role.to_owned(),
        })
    );
    // Every byte of a layer is that of a column, of the geometry or of the layer's own head.
    let of = |value: &Value| value.as_u64().unwrap();
    let spent = of(&places["geometry"]["bytes"]) + columns.iter().map(|column| of(&column["bytes"])).sum::<u64>();
    assert!(spent < of(&places["bytes"]) && of(&places["bytes"]) < spent + 20, "{info}");
    let layers: u64 = info["layers"].as_array().unwrap().iter().map(|layer| of(&layer["bytes"])).sum();
    assert_eq!(layers, bytes);
    let text = run("info", &path, "");
    for words in ["MLT, 2 layers, 3 features", "layer areas", "rank", "Int32", "Data VarInt 1", "2 Point"] {
        assert!(text.stdout.contains(words), "{words}: {text:?}");
    }
}

#[test]
fn packed_tiles_are_unpacked() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("tile.mlt.gz"), gzip(&tile())).unwrap();
    fs::write(path("tile.mlt.zst"), zstd(&tile())).unwrap();
    fs::write(path("zstd.mlt"), zstd(&tile())).unwrap();
    fs::write(path("tile"), gzip(&tile())).unwrap();
    for name in ["tile.mlt.gz", "tile.mlt.zst", "zstd.mlt"] {
        assert_eq!(sound("decode", &path(name), ""), values(), "{name}");
    }
    assert_eq!(sound("decode", &path("tile"), "--as mlt"), values());
    assert_eq!(fault("decode", &path("tile"), ""), "unsupported");
    for bytes in [tile(), gzip(&tile()), zstd(&tile())] {
        let run = tilekern_with(["decode", "-", "--as", "mlt", "--json"], &bytes);
        assert_eq!((run.code, run.json()), (Some(0), values()));
    }
    // Small ones that would be large.
    for (name, bytes) in [("bomb.mlt.gz", gzip(&vec![0; 4 << 20])), ("bomb.mlt.zst", zstd(&vec![0; 4 << 20]))] {
        fs::write(path(name), &bytes).unwrap();
        assert_eq!(fault("decode", &path(name), "--max-output 1M"), "limit_exceeded", "{name}");
        fs::write(path(name), &bytes[..bytes.len() - 9]).unwrap();
        assert_eq!(fault("info", &path(name), ""), "compression", "{name}");
    }
}

#[test]
fn no_bytes_are_no_layers() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("empty.mlt");
    fs::write(&path, b"").unwrap();
    assert_eq!(sound("decode", &path, ""), json!({"layers": []}));
    assert_eq!(sound("info", &path, "")["layers"], json!([]));
    assert_eq!(sound("verify", &path, "")["sound"], true);
    assert!(sound("trace", &path, "").get("error").is_none());
    // A frame of a tag that nobody knows.
    fs::write(&path, b"\x02\x07\x00").unwrap();
    assert_eq!(sound("decode", &path, ""), json!({"layers": [{"unknown_tag": true}]}));
    assert_eq!(sound("info", &path, "")["unknown"], json!([{"tag": 7, "start": 0, "bytes": 3}]));
}

#[test]
fn every_fault_is_told() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    let mut bytes = tile();
    // The last text's last byte, and the number's varint.
    let at = bytes.windows(3).position(|bytes| bytes == b"abc").unwrap();
    bytes[at + 2] = 0xff;
    let rank = bytes.windows(5).position(|bytes| bytes == [0x10, 0x02, 1, 1, 5]).unwrap();
    bytes[rank + 4] = 0x80;
    fs::write(&path, &bytes).unwrap();
    let verified = run("verify", &path, "--json");
    assert_eq!(verified.code, Some(1));
    let verified = verified.json();
    let faults = verified["paths"][0]["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 2, "{verified}");
    assert_eq!(faults[0]["kind"], "utf8");
    assert!(faults[0]["part"].as_str().unwrap().starts_with("layer 0, column 2"), "{verified}");
    // The first layer is not decoded, and the second not reached.
    assert_eq!(fault("decode", &path, ""), "utf8");
    assert_eq!(sound("decode", &path, "--layer areas")["layers"][0], values()["layers"][1]);
    for name in ["out.json", "out.geojson", "out.arrow"] {
        let output = folder.path().join(name);
        assert_eq!(fault("decode", &path, &format!("--layer places -o {}", output.display())), "utf8");
        assert_eq!(names(folder.path()), ["tile.mlt"]);
    }
    // Cut off anywhere, and with any byte changed: an end with 0 or 1.
    for n in (0..tile().len()).step_by(3) {
        let mut changed = tile();
        changed[n] ^= 0x55;
        for bytes in [&tile()[..n], &changed] {
            let run = tilekern_with(["verify", "-", "--as", "mlt"], bytes);
            assert!(matches!(run.code, Some(0 | 1)), "{n}: {run:?}");
        }
    }
}

/// GeoJSON has no place for an error: there is none of it where a layer is faulty, be it the last.
#[test]
fn geojson_is_whole_or_not_there() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    let mut faulty = tile();
    let at = faulty.windows(3).position(|bytes| bytes == b"abc").unwrap();
    faulty[at + 2] = 0xff;
    for bytes in [[tile(), faulty.clone()].concat(), [faulty, tile()].concat()] {
        fs::write(&path, &bytes).unwrap();
        let text = run("decode", &path, "--format geojson");
        assert_eq!((text.code, text.stdout.as_str()), (Some(1), ""));
        assert!(text.stderr.contains("[utf8]"), "{text:?}");
        assert_eq!(fault("decode", &path, "--format geojson"), "utf8");
        // What is not asked for may be as it likes.
        let some = run("decode", &path, "--format geojson --layer areas");
        assert_eq!((some.code, some.json()["features"].as_array().map(Vec::len)), (Some(0), Some(2)));
        let some = run("decode", &path, "--format geojson --column rank --column id");
        assert_eq!((some.code, some.json()["features"].as_array().map(Vec::len)), (Some(0), Some(4)));
        // An old file stays as it is.
        let output = folder.path().join("out.geojson");
        fs::write(&output, "old").unwrap();
        assert_eq!(fault("decode", &path, &format!("-o {}", output.display())), "utf8");
        assert_eq!(names(folder.path()), ["out.geojson", "tile.mlt"]);
        assert_eq!(fs::read(&output).unwrap(), b"old");
    }
}

#[test]
fn the_other_packing_is_pointed_to() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    let mut bytes = odd();
    // A number that is packed with FastPFOR, whose count of values in blocks is no multiple of a block's.
    let [size, stream] =
        [&b"\x02\x05paths"[..], b"\x03ref\x08\x01\x05"].map(|it| bytes.windows(it.len()).position(|found| found == it));
    let stream = stream.unwrap() + 4;
    bytes.splice(stream..stream + 3, [0x0c, 4, 1, 0, 0, 1]);
    bytes[size.unwrap() - 1] += 3;
    // Whatever is wrong with the numbers: read in the other way they are others.
    let mut others = bytes.clone();
    others[stream + 2..stream + 6].copy_from_slice(&[0; 4]);
    for (verb, options, bytes) in [
        ("decode", "", &bytes),
        ("verify", "", &bytes),
        ("trace", "paths.ref", &bytes),
        ("decode", "", &others),
        ("verify", "", &others),
    ] {
        fs::write(&path, bytes).unwrap();
        let kind = fault(verb, &path, options);
        assert_eq!(kind == "fastpfor_block_values", bytes != &others, "{verb}: {kind}");
        let advised = |options: &str| {
            let run = run(verb, &path, options);
            (run.stdout + &run.stderr).contains("; or try --mlt-fastpfor sequential")
        };
        assert!(advised(options), "{verb}");
        assert!(!advised(&format!("{options} --mlt-fastpfor sequential")), "{verb}");
    }
}

#[test]
fn what_is_no_map_tile_is_told() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    for (bytes, what) in [
        (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "a PNG image"),
        (b"<!DOCTYPE html><title>404</title>", "a page of HTML"),
        (&gzip(&gzip(&tile())), "gzip that was packed twice"),
    ] {
        fs::write(&path, bytes).unwrap();
        for verb in ["info", "decode", "verify", "trace"] {
            let run = run(verb, &path, "");
            let told = run.stdout + &run.stderr;
            assert!(run.code == Some(1) && told.contains(&format!("; it begins like {what} [")), "{verb}: {told}");
        }
    }
}

#[test]
fn steps_are_told() {
    let folder = folder();
    let path = folder.path().join("tile.mlt");
    let all = sound("trace", &path, "");
    let steps = all["steps"].as_array().unwrap();
    assert!(steps.len() > 20 && all["kind"] == "mlt", "{all}");
    let end = fs::metadata(&path).unwrap().len();
    assert!(steps.iter().all(|step| step["end"].as_u64().unwrap() <= end));
    let column = sound("trace", &path, "places.rank");
    let some = column["steps"].as_array().unwrap();
    assert!(!some.is_empty() && some.len() < steps.len(), "{column}");
    let text = run("trace", &path, "places.rank");
    assert!(text.code == Some(0) && text.stdout.lines().count() > some.len(), "{text:?}");
    let page = folder.path().join("page.html");
    let told = sound("trace", &path, &format!("--html {}", page.display()));
    assert_eq!((&told["kind"], &told["n_left_out"]), (&json!("mlt"), &json!(0)));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("</html>") && !html.contains("{{data}}"));
    let (_, data) = html.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let parts = data["pages"].as_array().unwrap();
    assert!(parts.len() > 4 && told["n_pages"] == parts.len(), "{data}");
    let mut shown = 0;
    for part in parts {
        let region = &part["bytes"][0];
        let (start, len) = (region["offset"].as_u64().unwrap(), region["len"].as_u64().unwrap());
        assert_eq!(region["hex"].as_str().unwrap().len() as u64, 2 * len);
        let steps = part["steps"].as_array().unwrap();
        let at = |step: &Value, n: usize| step["at"][n].as_u64().unwrap();
        assert!(steps.iter().all(|step| at(step, 1) >= start && at(step, 2) <= start + len), "{part}");
        shown += steps.len();
    }
    let titles: Vec<_> = parts.iter().map(|part| (part["heading"].as_str(), part["title"].as_str().unwrap())).collect();
    for title in [
        (Some("layer 0: places"), "places: frame 0: layer 0, version 1"),
        (Some("layer 0: places"), "places.id: data"),
        (Some("layer 0: places"), "places.rank: metadata: Int32"),
        (Some("layer 1: areas"), "areas.geometry: data"),
    ] {
        assert!(titles.contains(&title), "{title:?}: {titles:?}");
    }
    // Titles of parts are steps, too.
    assert_eq!(shown + parts.iter().filter(|part| part["title"] != "tile").count(), steps.len());
    // After a fault come the steps up to it.
    let bytes = tile();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let cut = run("trace", &path, "--json");
    assert_eq!(cut.code, Some(1));
    assert!(!cut.json()["steps"].as_array().unwrap().is_empty() && cut.json()["error"].is_object(), "{cut:?}");
}

#[test]
fn arrow_files_hold_a_layer() {
    let folder = folder();
    let path = folder.path().join("tile.mlt");
    let output = folder.path().join("places.arrow");
    let written = sound("decode", &path, &format!("--layer places -o {}", output.display()));
    assert_eq!((&written["n_features"], &written["n_layers"]), (&json!(2), &json!(1)));
    let reader = arrow_ipc::reader::FileReader::try_new(fs::File::open(&output).unwrap(), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(arrow_array::RecordBatch::num_rows).sum::<usize>(), 2);
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert!(names.contains(&"name") && names.contains(&"rank") && names.contains(&"geometry"), "{names:?}");
    let geometry = schema.field_with_name("geometry").unwrap();
    assert_eq!(geometry.metadata().get("ARROW:extension:name").map(String::as_str), Some("geoarrow.point"));
}

/// A dictionary that no column shares is looked at all the same.
#[test]
fn unshared_dictionaries_are_verified() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    let mut bytes =
        b"\x22\x01\x01l\x80\x20\x02\x04\x1e\x01a\x00\x02\x10\x02\x01\x01\x00\x13\x42\x02\x02\x00\x00".to_vec();
    bytes.extend(b"\x02\x36\x02\x01\x01\x01\x12\x00\x01\x01a");
    fs::write(&path, &bytes).unwrap();
    assert_eq!(sound("verify", &path, "")["sound"], true);
    // Three bytes of one; one that is no text.
    for (at, to, kind) in [(29, 3, "lengths_past_bytes"), (34, 0xff, "utf8")] {
        let mut bytes = bytes.clone();
        bytes[at] = to;
        fs::write(&path, &bytes).unwrap();
        let verified = run("verify", &path, "--json");
        assert_eq!(verified.code, Some(1));
        let fault = &verified.json()["paths"][0]["faults"][0];
        assert_eq!(fault["kind"], kind);
        assert!(fault["part"].as_str().unwrap().starts_with("layer 0, column 1"), "{fault}");
        assert_eq!([self::fault("decode", &path, ""), self::fault("trace", &path, "")], [kind, kind]);
    }
}

/// A key of GeoJSON is there once, whatever columns are called.
#[test]
fn columns_with_the_names_of_ours() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    fs::write(&path, b"\x19\x02\x01a\x16\x02\x00\x08\x04\x02\x04\x06\x02\x01\x06\x06_layer\x08\x02\x07\x09").unwrap();
    let text = run("decode", &path, "--format geojson").stdout;
    assert_eq!(text.matches("_layer").count(), 2, "{text}");
    assert!(text.contains(r#""properties":{"_extent":4096,"_layer":7}"#), "{text}");
}

/// A layer of so many lines, or points, with what else `add` gives it, in a file.
fn written(path: &Path, shapes: &[Shape], add: impl FnOnce(&mut LayerWriter)) {
    let mut layer = LayerWriter::new(Version::V2, "layer", 4096, shapes.len()).unwrap();
    layer.geometry(&Geometry::new(shapes).unwrap(), &GeometryCoding::default()).unwrap();
    add(&mut layer);
    let mut tile = Vec::new();
    layer.finish(&mut tile).unwrap();
    fs::write(path, tile).unwrap();
}

/// A few maps in each other, each of a few keys, are no more than they hold.
#[test]
fn maps_in_maps() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    let keys: Vec<String> = (0..30).map(|key| format!("k{key:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    // Only the first of each has entries.
    let lengths: Vec<u32> = (0..30).map(|at| if at == 0 { 30 } else { 0 }).collect();
    let map = |lengths, node| Nested::Map {
        lengths,
        coding: Integers::default(),
        keys: &keys,
        key_coding: Strings::default(),
        value: Box::new(Member { present: None, node }),
    };
    for depth in [1usize, 2, 7] {
        let mut node = Nested::Values(Values::Int32(&[5; 30], Integers::default()));
        for level in (0..depth).rev() {
            node = map(if level == 0 { &[30] } else { &lengths }, node);
        }
        written(&path, &[Shape::Point([1, 2])], |layer| layer.nested("maps", Presence::All, &node).unwrap());
        let found = sound("decode", &path, "");
        let maps = &found["layers"][0]["nested"][0];
        let (mut value, mut shape) = (&maps["values"][0], &maps["shape"]);
        for level in 0..depth {
            assert_eq!(value.as_object().unwrap().len(), 30, "{depth}");
            value = &value["k00"];
            if depth == 7 {
                assert!(shape.is_null());
                continue;
            }
            let key = if level == 0 { "k29" } else { "k00" };
            assert_eq!(shape["map"].as_object().unwrap().len(), 30, "{depth}");
            shape = &shape["map"][key];
        }
        assert_eq!((value, depth == 7 || shape == "i32"), (&json!(5), true), "{depth}");
        assert_eq!(sound("verify", &path, "")["sound"], true);
    }
}

/// The first values of a summary are short, however long what they are the start of is.
#[test]
fn starts_of_long_values() {
    let uleb = |value: usize| {
        let mut bytes = vec![(value & 127) as u8 | 128, (value >> 7 & 127) as u8 | 128];
        bytes.extend([(value >> 14 & 127) as u8 | 128, (value >> 21) as u8]);
        bytes
    };
    // A line of one vertex very often, with a text of 100,000 bytes at each; and a list of as many.
    let (n, text) = (uleb(1 << 20), "\u{e9}".repeat(50_000));
    let run = [&n[..], &[5], &n, &[0]].concat();
    let texts = [&[0xa1][..], &run, &[0x88, 1, 4], &uleb(text.len()), &[0x04], &uleb(text.len()), text.as_bytes()];
    let texts = texts.concat();
    let list = [&b"\x0d\x04list\x88\x01\x04"[..], &n, &[0x0b], &texts].concat();
    let along = [&b"\x0b\x05along"[..], &texts].concat();
    let lines = [&b"\x02\x01l\xa6\x01\x05\x08\x04"[..], &n, &[0x88, 1, 2, 6, 6, 0xa0], &run].concat();
    let body = [&lines[..], &[3], &list, &along].concat();
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    fs::write(&path, [uleb(body.len()), body].concat()).unwrap();
    let text = self::run("decode", &path, "");
    let start = format!("[\"{}…", "\u{e9}".repeat(37));
    assert_eq!((text.code, text.stdout.matches(&start).count()), (Some(0), 2), "{text:?}");
}

/// `id` and `geometry` are those of the layer and the properties that are called so, too.
#[test]
fn columns_called_as_what_has_no_name() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    written(&path, &[Shape::Point([1, 2])], |layer| {
        let values = |value| Values::UInt32(value, Integers::default());
        layer.ids(Presence::All, values(&[7])).unwrap();
        layer.column("id", Presence::All, values(&[8])).unwrap();
        layer.column("geometry", Presence::All, values(&[9])).unwrap();
    });
    let found = |options: &str| sound("decode", &path, options)["layers"][0].clone();
    let (id, geometry) = (found("--column id"), found("--column geometry"));
    assert_eq!((&id["ids"], &id["columns"][0]["values"], id.get("geometry")), (&json!([7]), &json!([8]), None));
    assert_eq!((geometry.get("ids"), &geometry["columns"][0]["values"]), (None, &json!([9])));
    assert_eq!(geometry["geometry"], json!([["Point", [1, 2]]]));
}

/// A layer whose headers are at fault hides nothing of the others.
#[test]
fn every_layer_has_its_faults() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    let sound = b"\x08\x02\x01a\x16\x00\x00\x00\x00";
    let (mut extent, mut payload, mut cut) = (sound.to_vec(), tile(), sound.to_vec());
    extent[4] = 0x07;
    let at = payload.windows(3).position(|bytes| bytes == b"abc").unwrap();
    payload[at + 2] = 0xff;
    cut[0] = 0x20;
    fs::write(&path, [&extent[..], sound, &extent, &payload, &cut].concat()).unwrap();
    let found = run("verify", &path, "--json").json();
    let faults = found["paths"][0]["faults"].as_array().unwrap();
    let told: Vec<_> = faults.iter().map(|fault| (fault["kind"].as_str().unwrap(), fault["offset"].as_u64())).collect();
    let (third, last) = (2 * sound.len() as u64, (3 * sound.len() + payload.len()) as u64);
    let at = Some(third + sound.len() as u64 + at as u64 + 2);
    assert_eq!(told.len(), 4, "{found}");
    assert_eq!((told[0].0, told[1].0), (told[1].0, told[0].0));
    assert_eq!((told[0].1.map(|at| at + third), told[2].0), (told[1].1, "utf8"));
    assert!(told[2].1 <= at && told[3].0 == "truncated" && told[3].1 >= Some(last), "{found}");
    let parts: Vec<_> = faults.iter().map(|fault| fault["part"].as_str().unwrap()).collect();
    assert!(parts[0].starts_with("layer 0") && parts[1].starts_with("layer 2") && parts[2].starts_with("layer 3"));
}

/// Numbers of any size are short in a table.
#[test]
fn numbers_stay_short() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    written(&path, &vec![Shape::Point([1, 2]); 5], |layer| {
        let doubles = [5e-324, -1.797_693_134_862_315_7e308, 0.1, f64::NEG_INFINITY, 123_456_789.25];
        layer.column("doubles", Presence::All, Values::Double(&doubles, Floats::Plain)).unwrap();
        let floats = [1e-45, -3.402_823_5e38, 0.1, f32::NAN, 16_777_216.0];
        layer.column("floats", Presence::All, Values::Float(&floats, Floats::Plain)).unwrap();
    });
    let text = run("decode", &path, "").stdout;
    for line in ["5e-324, -1.7976931348623157e308, 0.1, -inf", "1e-45, -3.4028235e38, 0.1, NaN"] {
        assert!(text.contains(line), "{text}");
    }
}

/// Layers of one name are all meant by it.
#[test]
fn many_layers_of_one_name() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    fs::write(&path, b"\x08\x02\x01a\x16\x00\x00\x00\x00".repeat(20_000)).unwrap();
    let found = sound("decode", &path, "--layer a --column geometry");
    let layers = found["layers"].as_array().unwrap();
    assert_eq!((layers.len(), &layers[19_999]["geometry"]), (20_000, &json!([])));
    assert_eq!(fault("decode", &path, "--layer b"), "missing");
}

/// Elevations are those of the vertices, of triangles that share them, too.
#[test]
fn elevations_of_triangles() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    let vertices = [[0, 0], [4096, 0], [4096, 4096], [0, 4096]];
    let geometry = Geometry::of_triangles(&vertices, vec![vec![[0, 1, 2], [0, 2, 3]]], true).unwrap();
    let mut layer = LayerWriter::new(Version::V2, "layer", 4096, 1).unwrap();
    layer.geometry(&geometry.with_z(3, vec![10_000, 10_001, 10_002, 10_003]), &GeometryCoding::default()).unwrap();
    let mut tile = Vec::new();
    layer.finish(&mut tile).unwrap();
    fs::write(&path, tile).unwrap();
    let found = run("decode", &path, "--format geojson").json();
    let expected = json!({"type": "MultiPolygon", "coordinates": [
        [[[0, 0, 0.0], [4096, 0, 1.0], [4096, 4096, 2.0], [0, 0, 0.0]]],
        [[[0, 0, 0.0], [4096, 4096, 2.0], [0, 4096, 3.0], [0, 0, 0.0]]],
    ]});
    assert_eq!(found["features"][0]["geometry"], expected);
    // In degrees the rings run the other way round, from their last vertex on.
    let found = run("decode", &path, "--format geojson --tile 0/0/0").json();
    let coordinates = &found["features"][0]["geometry"]["coordinates"];
    let heights = |ring: &Value| ring.as_array().unwrap().iter().map(|at| at[2].as_f64().unwrap()).collect::<Vec<_>>();
    assert_eq!(heights(&coordinates[0][0]), [2.0, 1.0, 0.0, 2.0]);
    assert_eq!(heights(&coordinates[1][0]), [3.0, 2.0, 0.0, 3.0]);
    assert_eq!(coordinates[0][0][0][0], json!(180.0));
}

/// Version 1 allows columns of one name. All are decoded; GeoJSON has of each name the last that has a value.
#[test]
fn columns_with_one_name() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    let int = |value: u8, other: u8| vec![0x10, 0x02, 2, 2, 2 * value, 2 * other];
    let some = |bits: u8, value: u8| vec![0x00, 0x00, 2, 1, bits, 0x10, 0x02, 1, 1, 2 * value];
    let bytes = layer(
        "l",
        // Two points; n, m and n; m as the child of a dictionary, with a prefix of no bytes; n again.
        &[&[4], b"\x10\x01n", b"\x11\x01m", b"\x11\x01n", b"\x1e\x00\x01\x1c\x01m", b"\x11\x01n", b"\x10\x01a"],
        &[
            &[2, 0x30, 0x02, 2, 2, 0, 0],
            &[0x13, 0x42, 4, 4, 0, 0, 0, 0],
            &int(1, 2),
            &some(0b01, 3),
            &some(0b01, 4),
            &[3, 0x36, 0x02, 1, 1, 1, 0x11, 0x00, 1, 1, b'x', 1, 0x22, 0x02, 2, 2, 0, 0],
            &some(0b10, 5),
            &int(8, 9),
        ],
    );
    fs::write(&path, bytes).unwrap();
    let text = run("decode", &path, "--format geojson");
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""), "{text:?}");
    for properties in
        [r#"{"_layer":"l","_extent":4096,"n":4,"m":"x","a":8}"#, r#"{"_layer":"l","_extent":4096,"m":"x","n":5,"a":9}"#]
    {
        assert!(text.stdout.contains(&format!(r#""properties":{properties}"#)), "{}", text.stdout);
    }
    let text = run("decode", &path, "--format geojson --column n");
    assert!(text.stdout.contains(r#""_extent":4096,"n":4}"#) && text.stdout.contains(r#""_extent":4096,"n":5}"#));
    // The list of columns has them all.
    let decoded = sound("decode", &path, "");
    let column =
        |i: usize| (&decoded["layers"][0]["columns"][i]["name"], &decoded["layers"][0]["columns"][i]["values"]);
    assert_eq!(column(0), (&json!("n"), &json!([1, 2])));
    assert_eq!(column(2), (&json!("n"), &json!([4, null])));
    assert_eq!(column(3), (&json!("m"), &json!(["x", "x"])));
    assert_eq!(column(4), (&json!("n"), &json!([null, 5])));
    // A warning for each name, and no fault.
    let info = sound("info", &path, "");
    let verified = sound("verify", &path, "--quiet");
    assert_eq!(verified["sound"], true);
    let warnings = info["warnings"].as_array().unwrap();
    assert_eq!((warnings, warnings.len()), (verified["paths"][0]["warnings"].as_array().unwrap(), 2));
    for (warning, (part, says)) in warnings.iter().zip([
        ("layer 0, column 3", r#"3 columns are called "n": GeoJSON has the last one that has a value"#),
        ("layer 0, column 5", r#"2 columns are called "m": GeoJSON has the last one that has a value"#),
    ]) {
        assert_eq!((&warning["kind"], &warning["part"]), (&json!("repeated_name"), &json!(part)));
        assert_eq!(warning["message"], says);
    }
    for verb in ["info", "verify"] {
        let told = run(verb, &path, "");
        assert_eq!((told.code, told.stderr.matches("warning: ").count()), (Some(0), 2), "{told:?}");
        assert_eq!(run(verb, &path, "--quiet").stderr, "");
    }
    // Of an archive's tiles as well.
    let database = mbtiles(&folder.path().join("a.mbtiles"), "mlt", &fs::read(&path).unwrap());
    drop(database);
    let warned = sound("verify", &folder.path().join("a.mbtiles"), "--quiet");
    let warnings = warned["paths"][0]["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2, "{warned}");
    assert!(warnings[0]["path"].as_str().unwrap().ends_with("a.mbtiles#3/4/2"), "{warned}");
    // Others have none.
    fs::write(&path, tile()).unwrap();
    assert_eq!((&sound("info", &path, "")["warnings"], run("info", &path, "").stderr), (&json!([]), String::new()));
}

#[test]
fn nothing_steers_a_terminal() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tile.mlt");
    let mut bytes = tile();
    for (name, odd) in [(&b"places"[..], &b"p\x1b[31m"[..]), (b"name", b"\x1b]0;"), (b"abc", b"\x07\xc2\x9b")] {
        let at = bytes.windows(name.len()).position(|found| found == name).unwrap();
        bytes[at..at + name.len()].copy_from_slice(odd);
    }
    fs::write(&path, bytes).unwrap();
    for (verb, options) in [
        ("info", ""),
        ("info", "--json"),
        ("decode", ""),
        ("decode", "--json"),
        ("decode", "--format geojson"),
        ("decode", "--column none"),
        ("trace", ""),
        ("trace", "--json"),
        ("trace", "0.none"),
        ("verify", ""),
    ] {
        let run = run(verb, &path, options);
        let odd = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
        assert!(!odd(&run.stdout) && !odd(&run.stderr), "{verb} {options}: {run:?}");
    }
}

#[test]
fn archives_hold_tiles() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    pmtiles(&path("none.pmtiles"), TileType::Mlt, Compression::None);
    pmtiles(&path("gzip.pmtiles"), TileType::Mlt, Compression::Gzip);
    pmtiles(&path("a#b.pmtiles"), TileType::Mlt, Compression::None);
    mbtiles(&path("none.mbtiles"), "mlt", &tile());
    mbtiles(&path("gzip.mbtiles"), "application/vnd.maplibre-vector-tile", &gzip(&tile()));
    mbtiles(&path("zstd.mbtiles"), "mlt", &zstd(&tile()));
    let archives = ["none.pmtiles", "gzip.pmtiles", "a#b.pmtiles", "none.mbtiles", "gzip.mbtiles", "zstd.mbtiles"];
    for name in archives {
        let info = sound("info", &path(name), "");
        let kind = name.rsplit_once('.').unwrap().1;
        assert_eq!((&info["kind"], &info["tile_format"], &info["n_tiles"]), (&json!(kind), &json!("mlt"), &json!(2)));
        assert_eq!(info["bounds"], json!([-10.0, -20.0, 30.0, 40.0]));
        assert_eq!(info["name"], "some tiles", "{name}");
        assert_eq!((&info["min_zoom"], &info["max_zoom"]), (&json!(3), &json!(3)), "{name}");
        assert_eq!(
            (&info["zooms"], &info["example"]),
            (&json!([{"zoom": 3, "n_tiles": 2}]), &json!("3/0/0")),
            "{name}"
        );
        let text = run("info", &path(name), "").stdout;
        assert!(text.contains("2 tiles") && text.contains("2 of zoom 3"), "{text}");
        assert!(text.ends_with(&format!("a tile of it is {}#3/0/0\n", path(name).display())), "{text}");
        let tile = path(&format!("{name}#3/4/2"));
        assert_eq!(sound("decode", &tile, ""), values(), "{name}");
        assert_eq!(sound("verify", &tile, "")["paths"][0]["kind"], "mlt");
        // Its name tells where it is.
        let here = run("decode", &tile, "--format geojson").json();
        assert_eq!(here, run("decode", &tile, "--format geojson --tile 3/4/2").json());
        let first = &here["features"][0]["geometry"]["coordinates"];
        assert!(first[0].as_f64().is_some_and(|longitude| (0.0..0.2).contains(&longitude)), "{first}");
        let other = run("decode", &tile, "--format geojson --tile 3/4/3");
        assert_eq!((other.code, other.stdout.as_str()), (Some(2), ""), "{other:?}");
        assert_eq!(fault("decode", &path(name), ""), "unsupported");
        let verified = &sound("verify", &path(name), "")["paths"][0];
        assert_eq!((&verified["kind"], &verified["n_tiles"]), (&json!(kind), &json!(2)), "{name}");
        assert_eq!(fault("trace", &path(name), ""), "unsupported");
        assert_eq!(fault("decode", &path(&format!("{name}#3/4/5")), ""), "missing");
        for (place, why) in [
            ("3/9/5", "columns and rows of zoom 3 are 0 to 7"),
            ("3/4", "write zoom, column and row, as 3/4/2"),
            ("99/0/0", "zooms are 0 to 31"),
        ] {
            let tile = path(&format!("{name}#{place}"));
            assert_eq!(fault("decode", &tile, ""), "missing");
            let told = run("decode", &tile, "").stderr;
            assert!(told.contains(&format!("{name}: tiles: has no tile \"{place}\": {why}")), "{told}");
        }
    }
    for place in ["3/4/2", "3/4"] {
        let absent = run("decode", &path(&format!("absent.pmtiles#{place}")), "");
        assert!(absent.stderr.contains("absent.pmtiles: ") && absent.stderr.contains("[io]"), "{absent:?}");
    }
    // A database without tiles is no archive of them; one whose tiles never end, or are huge, takes little time and memory.
    rusqlite::Connection::open(path("other.mbtiles")).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
    fs::write(path("empty.mbtiles"), "").unwrap();
    for name in ["other.mbtiles", "empty.mbtiles"] {
        for verb in ["info", "verify"] {
            let told = run(verb, &path(name), "");
            let text = told.stdout + &told.stderr;
            assert!(told.code == Some(1) && text.contains("no such table: tiles"), "{verb} {name}: {text}");
        }
    }
    let database = mbtiles(&path("huge.mbtiles"), "mlt", &tile());
    database.execute_batch("DROP TABLE tiles; CREATE VIEW tiles AS SELECT 0 AS zoom_level, 0 AS tile_column, 0 AS tile_row, zeroblob(200000000) AS tile_data").unwrap();
    drop(database);
    let told = run("verify", &path("huge.mbtiles"), "");
    assert!(told.code == Some(1) && told.stdout.contains("too big"), "{told:?}");
    // A file of that very name comes first.
    fs::create_dir_all(path("none.pmtiles#3/4")).unwrap();
    fs::write(path("none.pmtiles#3/4/2"), tile()).unwrap();
    assert_eq!(fault("decode", &path("none.pmtiles#3/4/2"), ""), "unsupported");
    assert_eq!(sound("decode", &path("none.pmtiles#3/4/2"), "--as mlt"), values());
    // What lies in them may be something else.
    pmtiles(&path("mvt.pmtiles"), TileType::Mvt, Compression::None);
    mbtiles(&path("mvt.mbtiles"), "pbf", &tile());
    for name in ["mvt.pmtiles", "mvt.mbtiles"] {
        let tile = path(&format!("{name}#3/4/2"));
        assert_eq!(fault("decode", &tile, ""), "unsupported", "{name}");
        assert_eq!(sound("decode", &tile, "--as mlt"), values(), "{name}");
        assert_eq!(fault("decode", &tile, "--as parquet"), "unsupported", "{name}");
        // An archive is one whatever its tiles are said to be.
        assert_eq!(sound("info", &path(name), "--as mlt"), sound("info", &path(name), ""), "{name}");
    }
    fs::write(path("tile.mlt"), tile()).unwrap();
    assert_eq!(fault("decode", &path("tile.mlt#3/4/2"), ""), "unsupported");
    // One that is cut off is told as that, and one that says nothing of itself has tiles.
    let whole = fs::read(path("none.pmtiles")).unwrap();
    fs::write(path("cut.pmtiles"), &whole[..whole.len() - 9]).unwrap();
    for (verb, suffix) in [("info", ""), ("decode", "#3/4/2"), ("verify", "")] {
        let run = run(verb, &path(&format!("cut.pmtiles{suffix}")), "");
        assert!(run.code == Some(1) && (run.stdout + &run.stderr).contains("it is cut off"), "{verb}");
    }
    // Other versions are not read as if they were this one.
    let starts: [(&[u8], u8); 6] = [
        (b"PMTiles\x01", 1),
        (b"PMTiles\x02", 2),
        (b"PMTiles\x04", 4),
        (b"PMTiles\xff", 255),
        (b"PM\x01\0", 1),
        (b"PM\x02\0", 2),
    ];
    for (start, version) in starts {
        for name in ["old.pmtiles", "old"] {
            fs::write(path(name), [start, &whole[start.len()..]].concat()).unwrap();
            for (verb, suffix) in [("info", ""), ("decode", "#3/4/2"), ("verify", "")] {
                let place = path(&format!("{name}{suffix}"));
                let run = run(verb, &place, "");
                let words = format!("it is of version {version}, and version 3 alone is understood");
                let text = run.stdout + &run.stderr;
                assert!(run.code == Some(1) && text.contains(&words) && text.contains("[archive]"), "{verb}: {text}");
            }
        }
    }
    mbtiles(&path("bare.mbtiles"), "mlt", &tile()).execute("DROP TABLE metadata", []).unwrap();
    assert_eq!(sound("decode", &path("bare.mbtiles#3/4/2"), ""), values());
    assert_eq!(sound("info", &path("bare.mbtiles"), "")["tile_format"], Value::Null);
    // Nothing is left beside them.
    assert!(names(folder.path()).iter().all(|name| !name.ends_with("-wal") && !name.ends_with("-shm")));
}

#[test]
fn all_tiles_of_an_archive_are_verified() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let faults = |name: &str, options: &str| {
        let run = run("verify", &path(name), &format!("--json {options}"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{run:?}");
        let paths = run.json()["paths"].clone();
        let told = |fault: &Value| {
            let of = fault["path"].as_str().unwrap().rsplit_once(name).unwrap().1.to_owned();
            (of, fault["kind"].as_str().unwrap().to_owned())
        };
        let faults: Vec<_> = paths[0]["faults"].as_array().unwrap().iter().map(told).collect();
        (faults, paths[0]["n_tiles"].as_u64().unwrap())
    };
    let fault = |place: &str, kind: &str| (place.to_owned(), kind.to_owned());
    let mut torn = tile();
    let at = torn.windows(3).position(|bytes| bytes == b"abc").unwrap();
    torn[at + 2] = 0xff;
    // Two tiles with faults, and rows that are no tiles.
    let database = mbtiles(&path("a.mbtiles"), "mlt", &gzip(&torn));
    let insert = "INSERT INTO tiles VALUES (?1, ?2, ?3, ?4)";
    database.execute(insert, (2, 1, 0, &torn[..5])).unwrap();
    database.execute(insert, (2, 4, 0, &tile())).unwrap();
    database.execute(insert, (99, -1, 0, &tile())).unwrap();
    database.execute(insert, (1, 0, 0, "text")).unwrap();
    database.execute(insert, (1, 1, 1, &tile())).unwrap();
    drop(database);
    let (found, n_tiles) = faults("a.mbtiles", "");
    assert_eq!(n_tiles, 7);
    assert_eq!(found.len(), 5, "{found:?}");
    assert_eq!(found[0], fault("#3/4/2", "utf8"));
    assert!(found[1].0 == "#2/1/3" && found[1].1 == "truncated", "{found:?}");
    assert_eq!(found[2], fault("#zoom_level 2, tile_column 4, tile_row 0", "archive"));
    assert_eq!(found[3], fault("#zoom_level 99, tile_column -1, tile_row 0", "archive"));
    assert_eq!(found[4], fault("#1/0/1", "archive"));
    // Tiles of another format are one fault, unless they are to be read as MLT.
    pmtiles(&path("mvt.pmtiles"), TileType::Mvt, Compression::Gzip);
    assert_eq!(faults("mvt.pmtiles", ""), (vec![fault("", "unsupported")], 0));
    assert_eq!(sound("verify", &path("mvt.pmtiles"), "--as mlt")["paths"][0]["n_tiles"], 2);
    // An end to what nobody reads.
    let database = mbtiles(&path("many.mbtiles"), "mlt", &tile());
    let all = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
               INSERT INTO tiles SELECT 12, i, 0, x'05' FROM n";
    database.execute(all, []).unwrap();
    drop(database);
    let (found, n_tiles) = faults("many.mbtiles", "");
    assert_eq!((found.len(), n_tiles), (1001, 1002));
    assert_eq!(found[1000], fault("#12/999/4095", "archive"));
    let text = run("verify", &path("a.mbtiles"), "");
    assert!(text.stdout.contains("a.mbtiles#3/4/2: layer 0") && text.stdout.ends_with("1 of 1 unsound, 5 faults\n"));
    pmtiles(&path("a.pmtiles"), TileType::Mlt, Compression::None);
    assert!(run("verify", &path("a.pmtiles"), "").stdout.contains("a.pmtiles: sound, 2 tiles, "));
}

#[test]
fn hostile_archives_end_in_errors() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let kinds = ["archive", "missing", "unsupported", "compression", "limit_exceeded"];
    let ends = |name: &str, what: &str| {
        for (verb, suffix) in [("info", ""), ("decode", "#3/4/2"), ("verify", "")] {
            let run = run(verb, &path(&format!("{name}{suffix}")), "--json");
            match run.code {
                Some(0) => {}
                Some(1) => {
                    let found = run.json();
                    let kind = found["error"]["kind"].as_str().unwrap_or_default();
                    assert!(verb != "info" || kinds.contains(&kind), "{what} {verb}: {found}");
                }
                _ => panic!("{what} {verb}: {run:?}"),
            }
        }
    };
    pmtiles(&path("a.pmtiles"), TileType::Mlt, Compression::Gzip);
    let sound = fs::read(path("a.pmtiles")).unwrap();
    // Most of it is padding.
    for n in (0..sound.len()).filter(|&n| sound[n] != 0 || n % 1000 == 0).step_by(3) {
        let mut changed = sound.clone();
        changed[n] ^= 0xff;
        fs::write(path("b.pmtiles"), &changed).unwrap();
        ends("b.pmtiles", &format!("byte {n}"));
        fs::write(path("b.pmtiles"), &sound[..n]).unwrap();
        ends("b.pmtiles", &format!("{n} bytes"));
    }
    drop(mbtiles(&path("a.mbtiles"), "mlt", &tile()));
    let sound = fs::read(path("a.mbtiles")).unwrap();
    for n in (16..sound.len()).step_by(sound.len() / 25) {
        let mut changed = sound.clone();
        changed[n] ^= 0xff;
        fs::write(path("b.mbtiles"), &changed).unwrap();
        ends("b.mbtiles", &format!("byte {n}"));
        fs::write(path("b.mbtiles"), &sound[..n]).unwrap();
        ends("b.mbtiles", &format!("{n} bytes"));
    }
    // Tiles that never come, that are no bytes, that are nobody's, that are much more than they seem.
    for (name, tiles) in [
        (
            "endless",
            "CREATE VIEW tiles AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
             SELECT i AS zoom_level, 4 AS tile_column, 5 AS tile_row, i AS tile_data FROM n WHERE abs(i) < 0",
        ),
        ("number", "CREATE VIEW tiles AS SELECT 3 AS zoom_level, 4 AS tile_column, 5 AS tile_row, 7 AS tile_data"),
        ("null", "CREATE VIEW tiles AS SELECT 3 AS zoom_level, 4 AS tile_column, 5 AS tile_row, NULL AS tile_data"),
        ("columns", "CREATE TABLE tiles (a, b)"),
        ("none", "SELECT 1"),
        (
            "huge",
            "CREATE VIEW tiles AS
             SELECT 3 AS zoom_level, 4 AS tile_column, 5 AS tile_row, zeroblob(2000000000) AS tile_data",
        ),
    ] {
        let file = path(&format!("{name}.mbtiles"));
        let database = rusqlite::Connection::open(&file).unwrap();
        database.execute_batch(&format!("CREATE TABLE metadata (name, value); {tiles}")).unwrap_or_default();
        drop(database);
        assert_eq!(fault("decode", &path(&format!("{name}.mbtiles#3/4/2")), ""), "archive", "{name}");
        assert_eq!(fault("verify", &path(&format!("{name}.mbtiles")), ""), "archive", "{name}");
    }
    // A directory that takes little room, and unpacks to much.
    let leaf = gzip(&vec![0; 80 << 20]);
    let varint = |n: usize| [n & 127 | 128, n >> 7 & 127 | 128, n >> 14].map(|part| u8::try_from(part).unwrap());
    // One entry: from id 0, no run, so a directory; its length; offset 0.
    let root = [&[1, 0, 0][..], &varint(leaf.len()), &[1]].concat();
    let end = 127 + root.len();
    let sections = [127, root.len(), end, 0, end, leaf.len(), end + leaf.len(), 0, 1, 1, 1];
    let mut bytes = b"PMTiles\x03".to_vec();
    sections.iter().for_each(|&n| bytes.extend((n as u64).to_le_bytes()));
    // Not clustered; directories as they are, then a whole one of zeros.
    bytes.extend([0, 1, 1, 6, 3, 3]);
    bytes.resize(127, 0);
    for (name, internal) in [("leaf.pmtiles", 2), ("plain.pmtiles", 1)] {
        bytes[97] = internal;
        let root = if internal == 2 { gzip(&root) } else { root.clone() };
        let mut bytes = bytes.clone();
        let end = 127 + root.len();
        for (at, n) in [(16, root.len()), (24, end), (40, end), (56, end + leaf.len())] {
            bytes[at..at + 8].copy_from_slice(&(n as u64).to_le_bytes());
        }
        fs::write(path(name), [&bytes[..], &root, &leaf].concat()).unwrap();
        assert_eq!(fault("decode", &path(&format!("{name}#3/4/2")), ""), "archive", "{name}");
        assert_eq!(fault("verify", &path(name), ""), "archive", "{name}");
    }
    assert!(run("decode", &path("leaf.pmtiles#3/4/2"), "").stderr.contains("unpacks to more than"));
    mbtiles(&path("bomb.mbtiles"), "mlt", &gzip(&vec![0; 4 << 20]));
    assert_eq!(fault("decode", &path("bomb.mbtiles#3/4/2"), "--max-output 1M"), "limit_exceeded");
}
