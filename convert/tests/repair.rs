//! Datasets whose files are damaged in every way, and made again of their inputs to the last byte.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use support::{Matrix, files, run};
use tempfile::{TempDir, tempdir};
use tilekern::Directory;
use tilekern::deltacel::Decoder;
use tilekern::deltacel::dataset::{Event, verify};
use tilekern_convert::{ErrorKind, GeneOrder, MatchGenes, Options, RepairOptions, Repaired, Result, repair};

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Two inputs and the dataset of them.
struct Case {
    folder: TempDir,
    inputs: Vec<PathBuf>,
    out: PathBuf,
    sound: Files,
}

impl Case {
    fn new(change: impl FnOnce(&Path, &mut Options)) -> Case {
        let folder = tempdir().unwrap();
        let inputs: Vec<PathBuf> = ["a", "b"].map(|name| folder.path().join(name)).into();
        for (seed, input) in (1..).zip(&inputs) {
            Matrix::random(50, 40, 6, seed).write_plain(input);
        }
        let out = folder.path().join("out");
        let mut options = Options { tile_size: 16, obs_tiles_per_file: 3, ..Options::default() };
        change(folder.path(), &mut options);
        let paths: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
        run(&paths, &out, &options).unwrap();
        let sound = files(&out);
        Case { folder, inputs, out, sound }
    }

    fn repair(&self) -> Result<Repaired> {
        repair(&self.inputs, &self.out, &RepairOptions::default(), &())
    }

    fn restore(&self) {
        fs::remove_dir_all(&self.out).unwrap();
        for (name, bytes) in &self.sound {
            let path = self.out.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    fn passes(&self) -> bool {
        let source = Directory::new(&self.out).unwrap();
        let told = verify(&source, &Decoder::new().unwrap(), |event| match event {
            Event::Fault(_) | Event::Warning(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        told.is_continue()
    }

    /// Repairs what is damaged, and compares all files with those before.
    fn check(&self, what: &str, damaged: &[&str]) {
        let found = self.repair().unwrap_or_else(|error| panic!("{what}: {error}"));
        let names: Vec<&str> = found.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, damaged, "{what}: {found:?}");
        // That it is to be fetched again is no advice where it is made again.
        assert!(found.files.iter().all(|file| !file.fault.is_empty() && !file.fault.contains("fetch")), "{found:?}");
        assert!(files(&self.out) == self.sound, "{what}: files differ");
        assert!(!self.folder.path().join("out.repair").exists(), "{what}");
        assert!(self.passes(), "{what}");
    }
}

fn names(files: &Files) -> Vec<String> {
    files.keys().map(|name| name.to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_file_damaged_in_turn() {
    let case = Case::new(|_, _| {});
    assert_eq!(case.sound.len(), 7 + 3 + 1 + 3 + 1, "{:?}", names(&case.sound));
    assert_eq!(case.repair().unwrap(), Repaired::default());
    // What a repair left that was killed behind its last step is removed by the next one.
    let left = case.folder.path().join("out.repair");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("journal.json"), r#"{"tilekern": "0.1.0"}"#).unwrap();
    assert_eq!(case.repair().unwrap(), Repaired::default());
    assert!(!left.exists());
    // What is not of a repair stays, whatever it is called.
    for (name, text, other) in [
        ("journal.json", "{}", None),
        ("journal.json", "not JSON", None),
        ("journal.json", r#"{"tilekern": "0.1.0"}"#, Some("thesis.tex")),
    ] {
        fs::create_dir(&left).unwrap();
        fs::write(left.join(name), text).unwrap();
        other.iter().for_each(|other| fs::write(left.join(other), "text").unwrap());
        let before = files(&left);
        assert_eq!(case.repair().unwrap(), Repaired::default());
        assert!(files(&left) == before, "{text}, {other:?}");
        fs::remove_dir_all(&left).unwrap();
    }
    for name in names(&case.sound).iter().filter(|name| *name != "manifest.json") {
        let (path, bytes) = (case.out.join(name), &case.sound[Path::new(name)]);
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        case.check(&format!("{name} cut"), &[name]);
        fs::remove_file(&path).unwrap();
        case.check(&format!("{name} removed"), &[name]);
        fs::write(&path, [&bytes[..], b"\n\n"].concat()).unwrap();
        case.check(&format!("{name} longer"), &[name]);
        fs::write(&path, vec![0; bytes.len()]).unwrap();
        case.check(&format!("{name} zeros"), &[name]);
        for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            fs::write(&path, flipped).unwrap();
            // Not every change can be told from sound content: blanks.
            if case.passes() {
                assert_eq!(name, "obs/schema.json", "{at}");
                case.restore();
                continue;
            }
            case.check(&format!("{name}, byte {at}"), &[name]);
        }
    }
}

/// Removes the digests of files, as of a writer that did not state them.
fn without_digests(manifest: &str) -> String {
    let (start, rest) = manifest.split_once(",\n \"tilekern_sha256\"").unwrap();
    start.to_owned() + &rest[rest.find('}').unwrap() + 1..]
}

/// The format has no digest of these files, and hardly a change of them contradicts anything else: the manifest's does.
#[test]
fn each_bit_of_the_files_beside_the_tiles_counts() {
    let case = Case::new(|_, _| {});
    for name in ["gene_order.npy", "var_names.txt", "var.parquet"] {
        let (path, bytes) = (case.out.join(name), &case.sound[Path::new(name)]);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).unwrap();
            assert!(!case.passes(), "{name}, byte {at}");
            if at % (bytes.len() / 6) == 0 {
                case.check(&format!("{name}, byte {at}"), &[name]);
            }
        }
        fs::write(&path, bytes).unwrap();
    }
    assert!(case.passes());
}

#[test]
fn digests_of_files_in_the_manifest() {
    let case = Case::new(|_, _| {});
    let manifest = case.out.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    // It is the manifest that is wrong where the file comes out as it is.
    for name in ["gene_order.npy", "var_names.txt", "var.parquet"] {
        let at = text.find(&format!("\"{name}\": \"")).unwrap() + name.len() + 5;
        let mut other = text.clone();
        let digit = if &other[at..=at] == "0" { "1" } else { "0" };
        other.replace_range(at..=at, digit);
        fs::write(&manifest, other).unwrap();
        assert!(!case.passes(), "{name}");
        case.check(&format!("digest of {name}"), &["manifest.json"]);
    }
    // Inputs with other names of genes cannot get in by a damaged table, nor by other digests.
    let table = case.out.join("var.parquet");
    fs::write(&table, "").unwrap();
    let renamed = case.inputs.iter().map(|input| {
        let path = input.with_extension("renamed");
        fs::create_dir(&path).unwrap();
        for name in ["features.tsv", "barcodes.tsv", "matrix.mtx"] {
            let text = fs::read_to_string(input.join(name)).unwrap();
            fs::write(path.join(name), text.replace("Gene Expression", "Gene expression")).unwrap();
        }
        path
    });
    let renamed: Vec<PathBuf> = renamed.collect();
    let damaged = files(&case.out);
    let error = repair(&renamed, &case.out, &RepairOptions::default(), &()).unwrap_err();
    assert!(error.to_string().contains("another var.parquet, of SHA-256 other than"), "{error}");
    assert!(files(&case.out) == damaged);
    case.check("the right ones", &["var.parquet"]);
}

/// Inputs that cannot be those of the dataset leave nothing behind that is in the way of the right ones.
#[test]
fn wrong_inputs_are_not_in_the_way() {
    let case = Case::new(|_, _| {});
    let wrong = case.folder.path().join("wrong");
    for (what, old, new) in [
        ("not counts", "integer", "real"),
        ("a line too many", "%%Matrix", "%%Vector"),
        ("another size", "\n1 ", "\n99999 "),
    ] {
        _ = fs::remove_dir_all(&wrong);
        fs::create_dir(&wrong).unwrap();
        for (name, bytes) in files(&case.inputs[1]) {
            let text = String::from_utf8(bytes).unwrap();
            let text = if name.ends_with("matrix.mtx") { text.replacen(old, new, 1) } else { text };
            // A count that is none.
            let text =
                if new == "real" && name.ends_with("matrix.mtx") { text.trim_end().to_owned() + ".5\n" } else { text };
            fs::write(wrong.join(name), text).unwrap();
        }
        fs::remove_file(case.out.join("tiles/tile_000005.dct")).unwrap();
        let inputs = [case.inputs[0].clone(), wrong.clone()];
        let error = repair(&inputs, &case.out, &RepairOptions::default(), &()).unwrap_err();
        assert_ne!(error.kind(), ErrorKind::Io, "{what}: {error}");
        assert!(!case.folder.path().join("out.repair").exists(), "{what}: {error}");
        case.check(what, &["tiles/tile_000005.dct"]);
    }
}

/// A dataset of a version that stated no digests of files and knew inputs by another text.
#[test]
fn datasets_of_older_writers() {
    let case = Case::new(|_, _| {});
    let manifest = case.out.join("manifest.json");
    let mut old = without_digests(&fs::read_to_string(&manifest).unwrap());
    while let Some(start) = old.find(", all of them ") {
        let end = start + old[start..].find('"').unwrap();
        old.replace_range(start..end, "");
    }
    fs::write(&manifest, &old).unwrap();
    let sound = files(&case.out);
    assert!(sound != case.sound && case.passes());
    assert_eq!(case.repair().unwrap(), Repaired::default());
    for name in names(&sound).iter().filter(|name| *name != "manifest.json") {
        fs::write(case.out.join(name), "").unwrap();
        let found = case.repair().unwrap();
        assert_eq!(found.files.iter().map(|file| &file.name).collect::<Vec<_>>(), [name]);
        assert!(files(&case.out) == sound, "{name}");
    }
}

#[test]
fn several_files_at_once() {
    let case = Case::new(|_, _| {});
    let tile = |n: u32| case.out.join(format!("tiles/tile_{n:06}.dct"));
    // Swapped.
    let [first, second] = [tile(1), tile(4)].map(|path| fs::read(path).unwrap());
    fs::write(tile(1), second).unwrap();
    fs::write(tile(4), first).unwrap();
    case.check("swapped", &["tiles/tile_000001.dct", "tiles/tile_000004.dct"]);
    let shard = |n: u32| case.out.join(format!("obs/obs_{n:04}.parquet"));
    let [first, second] = [shard(0), shard(1)].map(|path| fs::read(path).unwrap());
    fs::write(shard(0), second).unwrap();
    fs::write(shard(1), first).unwrap();
    case.check("swapped shards", &["obs/obs_0000.parquet", "obs/obs_0001.parquet"]);
    // Whole folders.
    for folder in ["tiles", "obs"] {
        fs::remove_dir_all(case.out.join(folder)).unwrap();
        let below: Vec<String> = names(&case.sound).into_iter().filter(|name| name.starts_with(folder)).collect();
        case.check(folder, &below.iter().map(String::as_str).collect::<Vec<_>>());
    }
    // All but the manifest.
    let all: Vec<String> = names(&case.sound).into_iter().filter(|name| name != "manifest.json").collect();
    all.iter().for_each(|name| fs::remove_file(case.out.join(name)).unwrap());
    case.check("everything", &all.iter().map(String::as_str).collect::<Vec<_>>());
    // A link in place of a tile becomes a tile; what it points to stays.
    let elsewhere = case.folder.path().join("elsewhere");
    fs::write(&elsewhere, "text").unwrap();
    fs::remove_file(tile(0)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, tile(0)).unwrap();
    case.check("link", &["tiles/tile_000000.dct"]);
    assert!(tile(0).symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), "text");
    // A sound tile behind a link stays one.
    let moved = case.folder.path().join("moved.dct");
    fs::rename(tile(2), &moved).unwrap();
    std::os::unix::fs::symlink("../../moved.dct", tile(2)).unwrap();
    fs::remove_file(tile(3)).unwrap();
    case.check("beside a link", &["tiles/tile_000003.dct"]);
    assert!(tile(2).symlink_metadata().unwrap().is_symlink());
}

/// An empty directory in the place of a file is nothing; one with something in it is not removed unasked.
#[test]
fn directories_in_the_place_of_files() {
    let case = Case::new(|_, _| {});
    for name in ["tiles/tile_000001.dct", "gene_order.npy", "obs/schema.json", "var.parquet", "var_names.txt"] {
        let path = case.out.join(name);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let kept = path.join("mine");
        fs::write(&kept, "text").unwrap();
        let error = case.repair().unwrap_err();
        assert_eq!(error.path().and_then(Path::file_name), path.file_name(), "{error}");
        assert!(error.to_string().contains("move it away"), "{error}");
        assert!(kept.exists() && !case.folder.path().join("out.repair").exists(), "{name}");
        fs::remove_file(&kept).unwrap();
        case.check(name, &[name]);
    }
}

#[test]
fn conversions_of_every_kind() {
    type Change = fn(&Path, &mut Options);
    let kinds: [(&str, Change); 5] = [
        ("shuffled", |_, options| options.shuffle = Some(3)),
        ("source", |_, options| {
            options.gene_order = GeneOrder::Source;
            options.obs = false;
            options.profile = tilekern::deltacel::Profile::Quick;
        }),
        ("list", |folder, options| {
            let list = folder.join("list");
            fs::write(&list, (0..40).rev().map(|n| format!("name{n}\n")).collect::<String>()).unwrap();
            options.gene_order = GeneOrder::File(list);
        }),
        ("matched", |_, options| {
            options.match_genes = Some(MatchGenes::Id);
            options.chunks = tilekern::deltacel::Chunks::Count(3);
        }),
        ("filtered", |_, options| {
            options.feature_type = Some("Gene Expression".to_owned());
            options.filter = Some("barcode not in ['cell0', 'cell30']".to_owned());
        }),
    ];
    for (kind, change) in kinds {
        let case = Case::new(change);
        let name = "tiles/tile_000002.dct";
        fs::write(case.out.join(name), "").unwrap();
        fs::remove_file(case.out.join("var.parquet")).unwrap();
        case.check(kind, &[name, "var.parquet"]);
        // The list is needed where the dataset has lost the order.
        fs::remove_file(case.out.join("gene_order.npy")).unwrap();
        if kind == "list" {
            let error = case.repair().unwrap_err();
            assert!(error.to_string().contains("--gene-order"), "{error}");
            let list = RepairOptions { gene_order: Some(case.folder.path().join("list")), ..RepairOptions::default() };
            assert_eq!(repair(&case.inputs, &case.out, &list, &()).unwrap().files.len(), 1);
            assert!(files(&case.out) == case.sound);
        } else {
            case.check(kind, &["gene_order.npy"]);
        }
        // Inputs may have moved.
        let moved: Vec<PathBuf> = case.inputs.iter().map(|path| path.with_extension("moved")).collect();
        case.inputs.iter().zip(&moved).for_each(|(from, to)| fs::rename(from, to).unwrap());
        fs::remove_dir_all(case.out.join("tiles")).unwrap();
        repair(&moved, &case.out, &RepairOptions::default(), &()).unwrap();
        assert!(files(&case.out) == case.sound, "{kind}");
    }
}

#[test]
fn other_inputs_are_refused() {
    let case = Case::new(|_, _| {});
    let tile = case.out.join("tiles/tile_000001.dct");
    fs::write(&tile, "").unwrap();
    let damaged = files(&case.out);
    let refused = |inputs: &[PathBuf], why: &str| {
        let error = repair(inputs, &case.out, &RepairOptions::default(), &()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Inconsistent, "{error}");
        assert!(error.to_string().contains(why), "{why}: {error}");
        assert!(files(&case.out) == damaged, "{why}");
        assert!(!case.folder.path().join("out.repair").exists(), "{why}");
    };
    let (a, b) = (case.inputs[0].clone(), case.inputs[1].clone());
    refused(std::slice::from_ref(&a), "2 inputs: ");
    refused(&[b.clone(), a.clone()], "");
    let other = |name: &str, cells, genes, seed| {
        let path = case.folder.path().join(name);
        Matrix::random(cells, genes, 6, seed).write_plain(&path);
        path
    };
    refused(&[a.clone(), other("cells", 51, 40, 2)], "51 cells in");
    refused(&[other("c", 50, 41, 1), other("d", 50, 41, 2)], "41 genes");
    refused(&[a.clone(), other("counts", 50, 40, 3)], "nonzeros, the dataset");
    // As many nonzeros, but other counts in the damaged tile.
    let copy = |name: &str, of: &Path| {
        let path = case.folder.path().join(name);
        fs::create_dir(&path).unwrap();
        for name in ["features.tsv", "barcodes.tsv", "matrix.mtx"] {
            fs::copy(of.join(name), path.join(name)).unwrap();
        }
        path
    };
    let changed = copy("changed", &a);
    let text = fs::read_to_string(a.join("matrix.mtx")).unwrap();
    let change = |(number, line): (usize, &str)| match line.split(' ').nth(1) {
        Some("20") if number > 2 => format!("{} 100000\n", line.rsplit_once(' ').unwrap().0),
        _ => format!("{line}\n"),
    };
    fs::write(changed.join("matrix.mtx"), text.lines().enumerate().map(change).collect::<String>()).unwrap();
    refused(&[changed, b.clone()], "");
    // Other names of cells.
    let renamed = copy("renamed", &b);
    let cells = fs::read_to_string(b.join("barcodes.tsv")).unwrap().replace("cell7\n", "cell7x\n");
    fs::write(renamed.join("barcodes.tsv"), cells).unwrap();
    refused(&[a, renamed], "another manifest");
    assert!(!case.passes());
    case.check("the right ones", &["tiles/tile_000001.dct"]);
}

#[test]
fn what_cannot_be_repaired_says_what_to_do() {
    let case = Case::new(|_, _| {});
    let manifest = case.out.join("manifest.json");
    let error = |text: Option<&str>| {
        match text {
            Some(text) => fs::write(&manifest, text).unwrap(),
            None => fs::remove_file(&manifest).unwrap(),
        }
        case.repair().unwrap_err().to_string()
    };
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(error(None).contains("convert --resume"));
    let cut = error(Some(&text[..text.len() / 2]));
    assert!(cut.contains("convert the inputs anew"), "{cut}");
    fs::write(&manifest, text.replace("\"converted\"", "\"made\"")).unwrap();
    assert_eq!(case.repair().unwrap(), Repaired::default(), "a sound one needs no record");
    fs::remove_file(case.out.join("var_names.txt")).unwrap();
    let foreign = case.repair().unwrap_err().to_string();
    assert!(foreign.contains("does not say how it was converted"), "{foreign}");
    fs::write(&manifest, &text).unwrap();
    case.check("the manifest is back", &["var_names.txt"]);
    // What passes, but is not what the inputs give, is not replaced unasked.
    fs::write(&manifest, without_digests(&text)).unwrap();
    let order = case.out.join("gene_order.npy");
    let mut bytes = fs::read(&order).unwrap();
    let n = bytes.len();
    let (one, two) = (n - 8..n - 4, n - 4..n);
    let last = bytes[two.clone()].to_vec();
    bytes.copy_within(one.clone(), two.start);
    bytes[one].copy_from_slice(&last);
    fs::write(&order, bytes).unwrap();
    assert!(case.passes());
    fs::remove_file(case.out.join("var_names.txt")).unwrap();
    let asked = case.repair().unwrap_err().to_string();
    assert!(asked.contains("gene_order.npy") && asked.contains("remove it and repair again"), "{asked}");
    fs::remove_file(order).unwrap();
    fs::write(&manifest, &text).unwrap();
    case.check("removed", &["gene_order.npy", "var_names.txt"]);
    // The fingerprint vouches for the schema.
    let schema = case.out.join("obs/schema.json");
    fs::write(&schema, fs::read_to_string(&schema).unwrap() + "\n").unwrap();
    assert!(files(&case.out) != case.sound);
    case.check("schema", &["obs/schema.json"]);
    let options = RepairOptions { dry_run: true, ..RepairOptions::default() };
    fs::remove_file(&schema).unwrap();
    let found = repair(&case.inputs, &case.out, &options, &()).unwrap();
    assert_eq!(found.files.len(), 1);
    assert!(!schema.exists() && !case.folder.path().join("out.repair").exists());
    let absent = repair(&case.inputs, &case.folder.path().join("absent"), &options, &()).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::Io);
}
