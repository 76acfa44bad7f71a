//! The bodies of the fuzz targets about files that are converted, on their seeds and on all that ever crashed them.

#[path = "../../fuzz/src/inputs.rs"]
mod bodies;

use std::path::Path;

#[test]
fn seeds_and_past_crashes() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    for &(name, body) in bodies::TARGETS {
        assert!(fuzz.join(format!("fuzz_targets/{name}.rs")).exists(), "{name}");
        body(&[]);
        let seeds = bodies::seeds(name);
        assert!(!seeds.is_empty(), "{name}");
        for seed in seeds {
            body(&seed);
        }
        let Ok(entries) = fuzz.join(format!("corpus/{name}/regressions")).read_dir() else { continue };
        for entry in entries {
            let path = entry.expect("a folder that can be listed").path();
            println!("{}", path.display());
            body(&std::fs::read(&path).expect("a readable file"));
        }
    }
}

/// The fuzzers start from files that are read to their end, most of them.
#[test]
fn seeds_are_read() {
    for (name, sound) in [("h5ad", 9), ("mtx", 5), ("zarr", 4)] {
        let read: Vec<usize> = bodies::seeds(name).iter().map(|seed| bodies::read(name, seed)).collect();
        assert_eq!(read.iter().filter(|&&read| read >= 4).count(), sound, "{name}: {read:?}");
    }
}
