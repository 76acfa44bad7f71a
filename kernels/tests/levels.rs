//! The kernels of a level enable exactly the features that its token proves.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

fn crate_sources(folder: &str) -> Vec<(PathBuf, String)> {
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder))
}

/// The feature strings in a level's folder.
fn features(folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, text) in crate_sources(folder) {
        for attribute in text.split("#[target_feature(").skip(1) {
            let list = attribute.split('"').nth(1).unwrap();
            found.insert(list.to_owned());
        }
    }
    found
}

/// Helpers whose string differs from their caller's are not inlined, without a warning.
#[test]
fn a_level_enables_one_list_of_features() {
    for (folder, list) in [
        ("x86/avx2", "avx2,bmi1,bmi2,fma,lzcnt,popcnt"),
        (
            "x86/avx512",
            "avx2,bmi1,bmi2,fma,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2",
        ),
        ("aarch64/neon", "neon"),
    ] {
        assert_eq!(features(folder), BTreeSet::from([list.to_owned()]), "{folder}");
    }
}

/// A file of a level that holds functions without its features would run at the baseline's speed.
#[test]
fn every_function_of_a_level_has_its_features() {
    for folder in ["x86/avx2", "x86/avx512", "aarch64/neon"] {
        for (path, text) in crate_sources(folder) {
            let functions = text.lines().filter(|line| {
                line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").starts_with("fn ")
            });
            assert_eq!(functions.count(), text.matches("#[target_feature(").count(), "{}", path.display());
        }
    }
}

/// CPUs are asked in one place only.
#[test]
fn detection_is_in_one_file() {
    let files: Vec<_> = crate_sources("").into_iter().filter(|(_, text)| text.contains("_feature_detected!")).collect();
    assert_eq!(files.len(), 1);
    assert!(files[0].0.ends_with("level.rs"));
}

/// Asks the CPU for each feature of the lists above: the rows are there if, and only if, it has all of them.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_row_is_available_where_all_its_features_are() {
    use std::arch::is_x86_feature_detected as has;
    use tilekern_kernels::{Kernels, Level};

    let avx2 = has!("avx2") && has!("bmi1") && has!("bmi2") && has!("fma") && has!("lzcnt") && has!("popcnt");
    let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
    let newer = has!("avx512vbmi") && has!("avx512vbmi2");
    assert_eq!(Kernels::at(Level::Avx2).is_some(), avx2);
    assert_eq!(Kernels::at(Level::Avx512).is_some(), avx2 && avx512 && newer);
}
