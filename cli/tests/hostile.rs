//! Small inputs that claim to be huge, or lead elsewhere: refused, in little memory and time.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{command, dataset_with_obs};
use tempfile::tempdir;

/// Runs the command, which must refuse with words of `why`, and take no more memory than a small program.
fn refused(arguments: &[&str], why: &str) {
    let mut child = command().args(arguments).stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let (start, mut peak) = (Instant::now(), 0);
    let ended = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) >> 10);
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{arguments:?}: no end, {peak} MiB");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut told = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut told).unwrap();
    assert_eq!(ended.code(), Some(1), "{arguments:?}: {told}");
    assert!(told.contains(why), "{why:?} not in {told}");
    assert!(peak < 400, "{peak} MiB for {arguments:?}: {told}");
}

/// A store in zarr 2: files of metadata, and chunks.
fn store(root: &Path, arrays: &[(&str, Value)], n_cells: u64, n_genes: u64) {
    let put = |name: &str, content: &[u8]| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    let frame = json!({"_index": "_index", "column-order": [], "encoding-type": "dataframe"});
    let sparse = json!({"encoding-type": "csr_matrix", "shape": [n_cells, n_genes]});
    for (group, attributes) in [
        ("", json!({"encoding-type": "anndata"})),
        ("obs/", frame.clone()),
        ("var/", frame),
        ("X/", sparse.clone()),
        ("layers/", json!({})),
        ("layers/a/", sparse),
    ] {
        put(&format!("{group}.zgroup"), b"{\"zarr_format\": 2}");
        put(&format!("{group}.zattrs"), attributes.to_string().as_bytes());
    }
    let array = |shape: u64, chunk: u64, dtype: &str| {
        json!({"shape": [shape], "chunks": [chunk], "dtype": dtype, "compressor": null, "filters": null,
               "fill_value": 0, "order": "C"})
    };
    let bounds: Vec<u8> = (0..=n_cells).flat_map(|bound| bound.to_le_bytes()).collect();
    let ones: Vec<u8> = (0..n_cells).flat_map(|_| 1_f32.to_le_bytes()).collect();
    for matrix in ["X", "layers/a"] {
        put(&format!("{matrix}/indptr/.zarray"), array(n_cells + 1, n_cells + 1, "<i8").to_string().as_bytes());
        put(&format!("{matrix}/indptr/0"), &bounds);
        put(&format!("{matrix}/indices/.zarray"), array(n_cells, n_cells, "<i4").to_string().as_bytes());
        put(&format!("{matrix}/data/.zarray"), array(n_cells, n_cells, "<f4").to_string().as_bytes());
        put(&format!("{matrix}/data/0"), &ones);
    }
    put("obs/_index/.zarray", array(n_cells, 1 << 16, "|i1").to_string().as_bytes());
    put("var/_index/.zarray", array(n_genes, 1 << 16, "|i1").to_string().as_bytes());
    if n_genes < 1 << 16 {
        put("var/_index/0", &[1; 1 << 16]);
    }
    for (name, metadata) in arrays {
        put(&format!("{name}/.zarray"), metadata.to_string().as_bytes());
    }
}

#[test]
fn stores() {
    let temp = tempdir().unwrap();
    let (root, out) = (temp.path().join("store"), temp.path().join("out"));
    let (path, out) = (root.to_str().unwrap(), out.to_str().unwrap());
    let text = |shape: u64, chunk: u64, fill: &str| {
        json!({"shape": [shape], "chunks": [chunk], "dtype": "|O", "compressor": null, "fill_value": fill,
               "filters": [{"id": "vlen-utf8"}], "order": "C"})
    };
    let fixed = |dtype: &str, separator: &str| {
        json!({"shape": [3], "chunks": [3], "dtype": dtype, "compressor": null, "filters": null, "fill_value": null,
               "order": "C", "dimension_separator": separator})
    };
    // Names of all the genes that there may be, none of which is stored; two matrices, so that one must be chosen.
    store(&root, &[], 3, (1 << 31) - 1);
    refused(&["convert", path, out], "several matrices hold counts");
    refused(&["convert", path, out, "--matrix", "X"], "--memory");
    // Many long names, or one for very many.
    store(&root, &[("var/_index", text(1 << 22, 1 << 22, &"x".repeat(1 << 20)))], 3, 1 << 22);
    refused(&["convert", path, out, "--matrix", "X"], "--memory");
    store(&root, &[("obs/_index", json!(fixed("|S500000000", ".")))], 3, 5);
    refused(&["convert", path, out, "--matrix", "X"], "--memory");
    // Names of chunks that lead out of the store.
    store(&root, &[("obs/_index", fixed("|S2", "/../../../"))], 3, 5);
    refused(&["convert", path, out, "--matrix", "X"], "names of chunks");
    // Devices and pipes.
    store(&root, &[("obs/_index", fixed("|S2", "."))], 3, 5);
    fs::write(root.join("obs/_index/0"), "aabbcc").unwrap();
    for chunk in ["obs/_index/0", "X/data/0", "X/.zattrs"] {
        let at = root.join(chunk);
        let before = fs::read(&at).ok();
        let _ = fs::remove_file(&at);
        symlink("/dev/zero", &at).unwrap();
        refused(&["convert", path, out, "--matrix", "X"], "no regular file");
        fs::remove_file(&at).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&at).status().unwrap().success());
        refused(&["convert", path, out, "--matrix", "X"], "no regular file");
        fs::remove_file(&at).unwrap();
        before.iter().for_each(|bytes| fs::write(&at, bytes).unwrap());
    }
    assert!(!Path::new(out).exists());
}

#[test]
fn texts() {
    let temp = tempdir().unwrap();
    let (root, out) = (temp.path().join("folder"), temp.path().join("out"));
    fs::create_dir(&root).unwrap();
    let (path, out) = (root.to_str().unwrap(), out.to_str().unwrap());
    let matrix = |sizes: &str| {
        let text = format!("%%MatrixMarket matrix coordinate integer general\n{sizes}\n");
        fs::write(root.join("matrix.mtx"), text).unwrap();
    };
    for sizes in ["5 1000000000 0", "2000000000 5 0", "5 18446744073709551615 0"] {
        matrix(sizes);
        refused(&["convert", path, out], "--memory");
    }
    // Half a gigabyte of names in half a megabyte.
    matrix("500000 5 0");
    let file = fs::File::create(root.join("features.tsv.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let line = [&[b'x'; 999][..], b"\n"].concat();
    (0..500_000).for_each(|_| packed.write_all(&line).unwrap());
    packed.finish().unwrap();
    refused(&["convert", path, out, "--memory", "128M"], "more memory than a file of");
    assert!(!Path::new(out).exists());
}

#[test]
fn datasets() {
    let temp = tempdir().unwrap();
    let (root, out) = (temp.path().join("dataset"), temp.path().join("out"));
    dataset_with_obs(&root);
    let (path, out) = (root.to_str().unwrap(), out.to_str().unwrap());
    let text = fs::read_to_string(root.join("manifest.json")).unwrap();
    let mut manifest: Value = serde_json::from_str(&text).unwrap();
    let huge = 1_u64 << 60;
    manifest["n_cells"] = huge.into();
    manifest["tile_size"] = huge.into();
    for (key, value) in [
        ("tile_cells", json!([huge])),
        ("tile_nnz", json!([4])),
        ("tile_bytes", json!([manifest["tile_bytes"][0]])),
        ("obs_shard_bytes", json!([manifest["obs_shard_bytes"][0]])),
        ("obs_shard_sha256", json!([manifest["obs_shard_sha256"][0]])),
    ] {
        manifest[key] = value;
    }
    fs::write(root.join("manifest.json"), manifest.to_string()).unwrap();
    for case in [
        &["obs", path][..],
        &["obs", path, "n"],
        &["obs", path, "--where", "n > 2"],
        &["decode", path],
        &["convert", path, out],
        &["convert", path, out, "--where", "n > 2"],
        &["convert", path, out, "--shuffle", "1"],
    ] {
        refused(case, "");
    }
    refused(&["convert", path, out, "--where", "n > 2"], "its manifest states");
    assert!(!Path::new(out).exists());
}
