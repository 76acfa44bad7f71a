//! The bodies of the fuzz targets on their seeds and on all that ever crashed them.
#![cfg(all(feature = "encode", feature = "dataset", target_endian = "little"))]

#[allow(dead_code)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;

use std::path::{Path, PathBuf};

/// Targets about files that are converted: `convert/tests/fuzz.rs` replays those.
const OF_CONVERSION: &[&str] = &["h5ad", "mtx", "zarr"];

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    entries.map(|entry| entry.expect("a folder that can be listed").path()).collect()
}

#[test]
fn every_target_has_a_body_and_seeds() {
    let mut targets: Vec<String> = files("fuzz/fuzz_targets")
        .iter()
        .map(|path| path.file_stem().expect("a name").to_str().expect("UTF-8").to_owned())
        .collect();
    targets.retain(|name| !OF_CONVERSION.contains(&name.as_str()));
    targets.retain(|target| cfg!(feature = "obs") || !target.starts_with("obs_"));
    targets.retain(|target| cfg!(feature = "mlt") || !target.starts_with("mlt_"));
    targets.retain(|target| cfg!(feature = "parquet") || !target.starts_with("parquet_"));
    let of_files = ["parquet_chunk", "parquet_file"];
    targets.retain(|target| cfg!(feature = "parquet-files") || !of_files.contains(&target.as_str()));
    targets.sort();
    let mut bodies: Vec<&str> = bodies::TARGETS.iter().map(|target| target.0).collect();
    bodies.sort();
    assert_eq!(targets, bodies);
    for name in bodies {
        assert!(!bodies::seeds(name).is_empty(), "{name}");
    }
}

#[test]
fn seeds_and_past_crashes() {
    for &(name, body) in bodies::TARGETS {
        body(&[]);
        for seed in bodies::seeds(name) {
            body(&seed);
        }
        for path in files(&format!("fuzz/corpus/{name}/regressions")) {
            println!("{}", path.display());
            body(&std::fs::read(&path).expect("a readable file"));
        }
    }
}
