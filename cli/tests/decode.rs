//! `tilekern decode`, `head` and `stats`: which cells and genes, which outputs, and what is said of them.

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use serde_json::{Value, json};
use support::{command, dataset_with_obs, names, odd_names, tile, tilekern};
use tempfile::tempdir;
use tilekern::deltacel::CsrView;
use tilekern::deltacel::dataset::Writer;
use tilekern::deltacel::dataset::obs::{ObsColumn, ObsSchema, ObsType};

/// The names of files of every kind.
const OUTPUTS: [&str; 7] = ["a.npz", "a.mtx", "a.mtx.gz", "a.npy", "a.arrow", "a.parquet", "a.h5ad"];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What `decode -o -` prints: the lines of a Matrix Market file without its head.
fn entries(arguments: &[&str]) -> (String, Vec<String>) {
    let run = tilekern(["decode"].iter().chain(arguments).chain(&["-o", "-"]));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{arguments:?}: {run:?}");
    let mut lines = run.stdout.lines().skip(2).map(str::to_owned);
    (lines.next().unwrap(), lines.collect())
}

/// A dataset of 6 cells x 5 genes in tiles of two: cell `c` has the count `10 c + g` of gene `g`, for all genes but `c`.
/// Column `g` was column `4 - g` of the source.
fn dataset(path: &Path) {
    let mut writer = Writer::builder(5)
        .tile_size(2)
        .gene_order([4, 3, 2, 1, 0])
        .var_names(["A", "B", "C", "C", "7"])
        .create(path)
        .unwrap();
    for cell in 0..6 {
        let genes: Vec<i32> = (0..5).filter(|&gene| gene != cell).collect();
        let counts: Vec<i32> = genes.iter().map(|gene| 10 * cell + gene + 1).collect();
        let indptr = [0, i64::try_from(genes.len()).unwrap()];
        writer.push(&CsrView { n_genes: 5, indptr: &indptr, indices: &genes, values: &counts }).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn cells_are_chosen() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("counts");
    dataset(&path);
    let path = text(&path);
    let list = folder.path().join("list.txt");
    let of = |arguments: &[&str]| {
        let (head, lines) = entries(&[&[path, "--genes", "4"], arguments].concat());
        let counts: Vec<i32> = lines.iter().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        (head, counts)
    };
    assert_eq!(of(&[]), ("6 1 5".into(), vec![5, 15, 25, 35, 55]));
    assert_eq!(of(&["--cells", "5,0..2,3"]), ("4 1 4".into(), vec![55, 5, 15, 35]));
    assert_eq!(of(&["--cells", "5, 0..2, 3 "]), ("4 1 4".into(), vec![55, 5, 15, 35]));
    assert_eq!(of(&["--cells", "5..,5", "--cells", "0,0"]), ("4 1 4".into(), vec![55, 55, 5, 5]));
    assert_eq!(of(&["--cells", "2..2"]), ("0 1 0".into(), vec![]));
    fs::write(&list, "3\n 1,1\n").unwrap();
    assert_eq!(of(&["--cells-file", text(&list)]), ("3 1 3".into(), vec![35, 15, 15]));
    let npy = |descr: &str, n: usize, values: &[u8]| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({n},), }}\n");
        let len = u16::try_from(header.len()).unwrap().to_le_bytes();
        fs::write(&list, [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), values].concat()).unwrap();
    };
    npy("|b1", 6, &[1, 0, 0, 0, 0, 1]);
    assert_eq!(of(&["--cells-file", text(&list)]), ("2 1 2".into(), vec![5, 55]));
    npy("<i2", 2, &[5, 0, 0, 0]);
    assert_eq!(of(&["--cells-file", text(&list)]), ("2 1 2".into(), vec![55, 5]));
    let refused = |kind: &str| {
        let run = tilekern(["decode", path, "--cells-file", text(&list), "--json"]);
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &kind.into()), "{run:?}");
        assert_eq!(run.json()["error"]["path"], text(&list), "{run:?}");
    };
    npy("<i2", 2, &[6, 0, 0, 0]);
    refused("out_of_range");
    npy("|b1", 5, &[1; 5]);
    refused("inconsistent");
    npy("<f8", 1, &[0; 8]);
    refused("unsupported");
    fs::write(&list, "1 two").unwrap();
    refused("syntax");
    fs::write(&list, [0xff]).unwrap();
    refused("syntax");
    fs::remove_file(&list).unwrap();
    refused("io");
}

/// What the first column calls cells is taken for their numbers, where it is text.
#[test]
fn barcodes_choose_cells() {
    let folder = tempdir().unwrap();
    let (path, list) = (folder.path().join("counts"), folder.path().join("list.txt"));
    let column = |name: &str| ObsColumn::plain(name, ObsType::String);
    let schema = ObsSchema { columns: vec![column("barcode"), column("other")] };
    let names: ArrayRef = Arc::new(StringArray::from(vec!["AC-1", "AG-1", "AT-1", "AT-1", "7"]));
    let rows = RecordBatch::try_from_iter([("barcode", names.clone()), ("other", names)]).unwrap();
    let mut writer = Writer::builder(3).tile_size(2).obs(schema, 1).create(&path).unwrap();
    let counts = CsrView { n_genes: 3, indptr: &[0; 6], indices: &[], values: &[] };
    writer.push_with_obs(&counts, &rows).unwrap();
    writer.finish().unwrap();
    let cells = |lines: &str| {
        fs::write(&list, lines).unwrap();
        let run = tilekern(["obs", text(&path), "--cells-file", text(&list), "--json"]);
        let head = tilekern(["head", text(&path), "--cells-file", text(&list), "--json"]);
        assert_eq!(run.code, head.code, "{run:?} {head:?}");
        (run.code, run.json())
    };
    assert_eq!(cells("AG-1\r\n\n7\nAC-1\nAG-1\n").1["cells"], json!([1, 4, 0, 1]));
    // Numbers alone are numbers.
    assert_eq!(cells("3\n1\n").1["cells"], json!([3, 1]));
    for (lines, kind, part) in [
        ("AC-1\nxx\n", "missing", "\"xx\" is no number of a cell, from 0, and no value of the column \"barcode\""),
        ("AT-1\n", "ambiguous", "names 2 cells, the first being 2"),
    ] {
        let (code, record) = cells(lines);
        assert_eq!((code, &record["error"]["kind"]), (Some(1), &kind.into()), "{record}");
        assert!(record["error"]["message"].as_str().unwrap().contains(part), "{record}");
    }
}

#[test]
fn filters_choose_cells() {
    let folder = tempdir().unwrap();
    let (table, bare, tile_path) = (folder.path().join("t"), folder.path().join("b"), folder.path().join("a.dct"));
    dataset_with_obs(&table);
    dataset(&bare);
    tile(&tile_path, 3, 3);
    let cells = |arguments: &[&str]| {
        let run = tilekern(["head", text(&table), "--json"].iter().chain(arguments));
        let numbers =
            run.json()["cells"].as_array().unwrap().iter().map(|cell| cell["cell"].as_u64().unwrap()).collect();
        (run.json()["n_cells"].as_u64().unwrap(), numbers)
    };
    assert_eq!(cells(&["--where", "n >= 3"]), (3, vec![2, 3, 4]));
    assert_eq!(cells(&["--where", "n >= 3", "--cells", "4,1..4,4"]), (4, vec![4, 2, 3, 4]));
    assert_eq!(cells(&["--where", "n > 3 && n < 3"]), (0, vec![]));
    assert_eq!(cells(&["--where", "n >= 3", "-n", "2"]), (3, vec![2, 3]));
    for (path, filter, kind) in [
        (&bare, "n > 3", "unsupported"),
        (&tile_path, "n > 3", "unsupported"),
        (&table, "m > 3", "missing"),
        (&table, "n >", "syntax"),
    ] {
        let run = tilekern(["decode", text(path), "--where", filter, "--json"]);
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &kind.into()), "{run:?}");
    }
}

#[test]
fn genes_are_chosen() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("counts");
    dataset(&path);
    let (path, list) = (text(&path), folder.path().join("list"));
    let of = |arguments: &[&str]| entries(&[&[path, "--cells", "1"], arguments].concat());
    let row = |head: &str, lines: &[&str]| (head.to_owned(), lines.iter().map(|&line| line.to_owned()).collect());
    assert_eq!(of(&["--genes", "7,A"]), row("1 2 2", &["1 1 15", "1 2 11"]));
    assert_eq!(of(&["--genes", " 7, A"]), row("1 2 2", &["1 1 15", "1 2 11"]));
    let run = tilekern(["decode", path, "--genes", "A,FOO"]);
    let told = format!("error: {path}: selection of genes: no gene \"FOO\"; names are compared exactly [missing]");
    assert!(run.code == Some(1) && run.stderr.trim_end().ends_with(&told), "{run:?}");
    assert_eq!(of(&["--genes", "7,A", "--columns", "output"]), row("1 2 2", &["1 1 11", "1 2 15"]));
    assert_eq!(of(&["--genes", "A,7", "--columns", "source"]), row("1 2 2", &["1 1 15", "1 2 11"]));
    assert_eq!(of(&["--genes", "2"]), row("1 1 1", &["1 1 13"]));
    assert_eq!(of(&["--genes", "B"]), row("1 1 0", &[]));
    assert_eq!(of(&["--columns", "source"]), row("1 5 4", &["1 1 15", "1 2 14", "1 3 13", "1 5 11"]));
    fs::write(&list, "7\r\n\nA\n").unwrap();
    assert_eq!(of(&["--genes-file", text(&list)]), row("1 2 2", &["1 1 15", "1 2 11"]));
    let none = folder.path().join("none.txt");
    fs::write(&none, "\n").unwrap();
    let run = tilekern(["decode", path, "--genes-file", text(&none)]);
    assert!(run.code == Some(1) && run.stderr.contains("names no gene"), "{run:?}");
    for (genes, kind) in [("C", "ambiguous"), ("no such", "missing"), ("A,A", "repeated"), ("9", "out_of_range")] {
        let run = tilekern(["decode", path, "--genes", genes, "--json"]);
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &kind.into()), "{run:?}");
    }
    let tile_path = folder.path().join("a.dct");
    tile(&tile_path, 3, 3);
    for arguments in [["--genes", "1"], ["--columns", "source"]] {
        let run = tilekern(["decode", text(&tile_path), "--json"].into_iter().chain(arguments));
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"unsupported".into()), "{run:?}");
    }
    // What it costs is told before anything is decoded.
    let run = tilekern(["decode", path, "--cells", "1,5", "--genes", "A", "--cost", "--json"]);
    let cost = run.json();
    assert_eq!(
        (&cost["n_cells"], &cost["n_genes"], &cost["tiles"], &cost["nonzeros_at_most"]),
        (&2.into(), &1.into(), &2.into(), &2.into())
    );
    let run = tilekern(["decode", path, "--genes", "A", "--cost"]);
    assert!(run.code == Some(0) && run.stdout.contains("tiles to open                            3\n"), "{run:?}");
}

/// A tile alone has no names, but its cells can be chosen.
#[test]
fn cells_of_a_tile() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 20, 3);
    let (_, all) = entries(&[text(&path)]);
    let (head, some) = entries(&[text(&path), "--cells", "17,3,3"]);
    assert_eq!(head, "3 1000 9");
    let rest =
        |lines: &[String]| lines.iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect::<Vec<_>>();
    let expected = [&all[51..54], &all[9..12], &all[9..12]].concat();
    assert_eq!(rest(&some), rest(&expected));
}

#[test]
fn a_count_that_does_not_fit_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("big");
    let mut writer = Writer::builder(3).create(&path).unwrap();
    writer.push(&CsrView { n_genes: 3, indptr: &[0, 1, 2], indices: &[0, 2], values: &[1 << 24, 65_535] }).unwrap();
    writer.push(&CsrView { n_genes: 3, indptr: &[0, 1], indices: &[1], values: &[(1 << 24) + 1] }).unwrap();
    writer.finish().unwrap();
    let output = folder.path().join("a.npy");
    for (dtype, cells, refused) in [
        ("f32", "..", Some("cell 2 has the count 16777217")),
        ("f32", "0..2", None),
        ("u16", "..", Some("cell 0 has the count 16777216")),
        ("u16", "1", None),
        ("i32", "..", None),
    ] {
        let run = tilekern(["decode", text(&path), "--cells", cells, "--dtype", dtype, "-o", text(&output)]);
        assert_eq!(run.code, Some(i32::from(refused.is_some())), "{dtype}: {run:?}");
        assert!(run.stderr.contains(refused.unwrap_or("a.npy")), "{dtype}: {run:?}");
        assert_eq!(output.exists(), refused.is_none(), "{dtype}");
        let _ = fs::remove_file(&output);
    }
}

#[test]
fn what_a_format_cannot_hold_is_said() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("counts");
    dataset_with_obs(&path);
    for (name, lost) in [
        ("a.npz", "npz cannot hold the table of cells: left out"),
        ("a.mtx", "mtx cannot hold the table of cells: left out"),
        ("a.npy", "npy cannot hold the table of cells: left out"),
        ("a.parquet", "of a column's categories only those that occur are kept"),
        (
            "a.h5ad",
            "cells are named by their numbers, for their first column, \"cell type\", is not text\n\
             missing values of \"score\" are NaN in h5ad",
        ),
        ("a.arrow", ""),
    ] {
        let output = folder.path().join(name);
        let run = tilekern(["decode", text(&path), "-o", text(&output), "--json"]);
        let expected = json!(lost.lines().collect::<Vec<_>>());
        assert_eq!((run.code, &run.json()["notes"]), (Some(0), &expected), "{run:?}");
        assert_eq!(run.json()["bytes"], fs::metadata(&output).unwrap().len());
        let run = tilekern(["decode", text(&path), "-o", text(&output)]);
        assert_eq!(run.stderr.contains("note: "), !lost.is_empty(), "{run:?}");
    }
}

/// Of damage in any tile nothing is left, whatever the format.
#[test]
fn damage_leaves_no_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("counts");
    dataset_with_obs(&path);
    let damage = |name: &str| {
        let path = path.join(name);
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() - 1;
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    damage("tiles/tile_000001.dct");
    let run = |arguments: &[&str], kind: &str| {
        let run = tilekern(arguments.iter().copied().chain(["--json"]));
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &kind.into()), "{arguments:?}: {run:?}");
        assert!(run.json()["error"]["path"].as_str().unwrap().starts_with(text(&path)), "{run:?}");
        assert_eq!(names(folder.path()), ["counts"], "{arguments:?}");
    };
    for name in OUTPUTS {
        run(&["decode", text(&path), "-o", text(&folder.path().join(name))], "checksum");
    }
    for (name, per) in [("a.svg", None), ("a.tsv", Some("gene")), ("a.csv", Some("cell"))] {
        let output = folder.path().join(name);
        let per = per.into_iter().flat_map(|per| ["--per", per]);
        run(&["stats", text(&path), "-o", text(&output)].into_iter().chain(per).collect::<Vec<_>>(), "checksum");
    }
    run(&["head", text(&path)], "checksum");
    // Cells of other tiles are not in question.
    assert_eq!(tilekern(["head", text(&path), "-n", "2"]).code, Some(0));
    damage("obs/obs_0000.parquet");
    for name in ["a.arrow", "a.parquet", "a.h5ad"] {
        let output = folder.path().join(name);
        let run = tilekern(["decode", text(&path), "--cells", "0..2", "-o", text(&output), "--json"]);
        assert_eq!((run.code, names(folder.path()).len()), (Some(1), 1), "{name}: {run:?}");
    }
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.dct");
    tile(&path, 5, 3);
    for name in OUTPUTS {
        let at = folder.path().join("absent").join(name);
        let run = tilekern(["decode", text(&path), "-o", text(&at), "--json"]);
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"io".into()), "{run:?}");
        let at = folder.path().join(name);
        fs::create_dir(&at).unwrap();
        let run = tilekern(["decode", text(&path), "-o", text(&at), "--json"]);
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"io".into()), "{run:?}");
        fs::remove_dir(&at).unwrap();
    }
    for (name, per) in [("a.svg", None), ("a.tsv", Some("cell")), ("a.csv", Some("gene"))] {
        let at = folder.path().join("absent").join(name);
        let per = per.into_iter().flat_map(|per| ["--per", per]);
        let run = tilekern(["stats", text(&path), "--json", "-o", text(&at)].into_iter().chain(per));
        assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"io".into()), "{run:?}");
    }
    #[cfg(unix)]
    for format in ["npz", "h5ad"] {
        let run = tilekern(["decode", text(&path), "--to", format, "-o", "/dev/null"]);
        assert!(run.code == Some(2) && run.stderr.contains("not written front to back"), "{run:?}");
    }
    assert_eq!(names(folder.path()), ["a.dct"]);
}

/// Datasets of nothing, and of little.
#[test]
fn empty_ones() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("none");
    Writer::builder(3).create(&path).unwrap().finish().unwrap();
    for name in OUTPUTS {
        let output = folder.path().join(name);
        let run = tilekern(["decode", text(&path), "-o", text(&output), "--json"]);
        assert_eq!((run.code, &run.json()["nnz"]), (Some(0), &0.into()), "{name}: {run:?}");
    }
    let run = tilekern(["head", text(&path)]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "cell  nonzeros  sum  counts\n"));
    let stats = tilekern(["stats", text(&path), "--json"]).json();
    assert_eq!(stats["per_cell"]["nonzeros"], json!({"mean": null, "zeros": 0, "quantiles": [], "histogram": []}));
    assert_eq!(stats["per_gene"]["totals"]["histogram"], json!([{"from": 0, "to": 0, "count": 3}]));
    assert_eq!(stats["density"], Value::Null);
    assert_eq!(tilekern(["stats", text(&path)]).code, Some(0));
    let plot = folder.path().join("a.svg");
    assert_eq!(tilekern(["stats", text(&path), "-o", text(&plot)]).code, Some(0));
    assert!(fs::read_to_string(&plot).unwrap().ends_with("</svg>\n"));
}

#[test]
fn heads() {
    let folder = tempdir().unwrap();
    let (path, table) = (folder.path().join("counts"), folder.path().join("table"));
    dataset(&path);
    dataset_with_obs(&table);
    let run = tilekern(["head", text(&path), "-n", "2", "--top", "2"]);
    assert_eq!(
        run.stdout,
        "cell  nonzeros  sum  counts\n\
         \x20  0         4   14  7 5, C 4\n\
         \x20  1         4   53  7 15, C 14\n\
         4 more cells, of 5 genes\n"
    );
    let run = tilekern(["head", text(&path), "--cells", "5", "--top", "2", "--first"]);
    assert_eq!(run.stdout, "cell  nonzeros  sum  counts\n   5         5  265  A 51, B 52\n");
    let run = tilekern(["head", text(&table), "-n", "2"]);
    assert_eq!(
        run.stdout,
        "cell  nonzeros  sum  counts  cell type    n  score  ok     barcode\n\
         \x20  0         1    1  #0 1    T cell       1  0.5    true   AAA-1\n\
         \x20  1         0    0          \"B \\\"x\\\"\\t\"     NaN    false  \"\"\n\
         3 more cells, of 9 genes\n"
    );
    let cells = tilekern(["head", text(&path), "--cells", "5", "--genes", "7,A", "--json"]).json();
    assert_eq!(
        cells["cells"],
        json!([{
            "cell": 5, "nnz": 2, "sum": 106, "obs": [],
            "genes": [{"gene": 4, "name": "7", "count": 55}, {"gene": 0, "name": "A", "count": 51}],
        }])
    );
}

#[test]
fn stats_are_exact() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("counts");
    dataset(&path);
    let stats = tilekern(["stats", text(&path), "--json"]).json();
    for threads in ["1", "3"] {
        assert_eq!(tilekern(["stats", text(&path), "--json", "--threads", threads]).json(), stats);
    }
    assert_eq!((&stats["nnz"], &stats["sum"]), (&25.into(), &725.into()));
    assert_eq!(
        stats["per_cell"]["nonzeros"]["histogram"],
        json!([{"from": 4, "to": 4, "count": 5}, {"from": 5, "to": 5, "count": 1}])
    );
    assert_eq!(stats["per_cell"]["totals"]["quantiles"][0], json!({"percent": 0, "value": 14}));
    assert_eq!(stats["top_genes"][0], json!({"gene": 0, "name": "A", "nonzeros": 5, "total": 155}));
    let table = |per: &str, name: &str, more: &[&str]| {
        let output = folder.path().join(name);
        let run = tilekern(["stats", text(&path), "--per", per, "-o", text(&output)].iter().chain(more));
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
        fs::read_to_string(&output).unwrap()
    };
    assert_eq!(table("cell", "a.tsv", &["--cells", "5,0"]), "cell\tnonzeros\ttotal\n5\t5\t265\n0\t4\t14\n");
    assert_eq!(table("gene", "a.csv", &["--genes", "7,A"]), "gene,name,nonzeros,total\n4,7,5,135\n0,A,5,155\n");
    let plot = folder.path().join("a.svg");
    let run = tilekern(["stats", text(&path), "-o", text(&plot), "--json"]);
    assert_eq!(run.json()["bytes"], fs::metadata(&plot).unwrap().len());
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("6 cells × 5 genes, 25 nonzeros"), "{svg}");
    assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
}

/// Nothing from a dataset reaches a terminal as anything but text; files and JSON have it as it is.
#[test]
fn names_steer_no_terminal() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("odd");
    let hostile = odd_names(&path);
    let path = text(&path);
    let commands: &[&[&str]] = &[
        &["head", path],
        &["head", path, "--json"],
        &["stats", path],
        &["stats", path, "--json"],
        &["info", path],
        &["info", path, "--json"],
        &["obs", path],
        &["obs", path, &hostile],
        &["obs", path, &hostile, "--json"],
        &["obs", path, "\u{1b}[2J"],
        &["decode", path, "--genes", "\u{9b}2J"],
        &["decode", path, "--where", "`\u{1b}[2J` > 3"],
        &["head", "\u{1b}[2J\u{9b}"],
        &["verify", path],
    ];
    for arguments in commands {
        let run = tilekern(*arguments);
        for text in [&run.stdout, &run.stderr] {
            let odd = text.chars().find(|&c| c.is_control() && !matches!(c, '\n' | '\t') || c == '\u{202e}');
            assert_eq!(odd, None, "{arguments:?}: {run:?}");
        }
    }
    let cells = tilekern(["head", path, "--json"]).json();
    assert_eq!(cells["cells"][0]["genes"][0]["name"], hostile.as_str());
    assert_eq!(cells["cells"][0]["obs"][0], json!({"column": hostile, "value": hostile}));
    // A name of a megabyte takes no more room than others.
    let told = tilekern(["head", path]).stdout;
    assert!(told.contains('…') && told.lines().all(|line| line.chars().count() < 400), "{told}");
    let told = tilekern(["stats", path]).stdout;
    assert!(told.lines().all(|line| line.chars().count() < 400), "{told}");
    for name in OUTPUTS {
        let output = folder.path().join(name);
        assert_eq!(tilekern(["decode", path, "-o", text(&output)]).code, Some(0), "{name}");
    }
    let table = folder.path().join("a.tsv");
    assert_eq!(tilekern(["stats", path, "--per", "gene", "-o", text(&table)]).code, Some(0));
    assert!(fs::read_to_string(&table).unwrap().lines().all(|line| line.split('\t').count() == 4));
}

/// The reader of AnnData files, which is another library than the writer, finds the same matrix.
#[cfg(feature = "h5ad")]
#[test]
fn an_h5ad_converts_back() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let size = ["--cells", "300", "--genes", "500", "--tile-size", "64", "--profile", "quick"];
    let [sample, h5ad, back] = ["sample", "a.h5ad", "back"].map(path);
    assert_eq!(tilekern(["sample", &sample].iter().chain(&size)).code, Some(0));
    assert_eq!(tilekern(["decode", &sample, "-o", &h5ad]).code, Some(0));
    assert_eq!(tilekern(["convert", &h5ad, &back, "--tile-size", "100"]).code, Some(0));
    let [expected, found] = [vec!["decode", &sample, "--json"], vec!["decode", &back, "--columns", "source", "--json"]]
        .map(|arguments| tilekern(arguments).json());
    assert_eq!(found, expected);
    let name = |path: &str| tilekern(["stats", path, "--json"]).json()["top_genes"][0]["name"].clone();
    assert_eq!(name(&back), name(&sample));
    assert!(tilekern(["obs", &back, "_index", "--cells", "299"]).stdout.ends_with("299\t299\n"));
}

/// A text that HDF5 would end early is refused, and other formats have it whole.
#[test]
fn zero_characters() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("zero");
    let mut writer = Writer::builder(1).var_names(["a\0b"]).create(&path).unwrap();
    writer.push(&CsrView { n_genes: 1, indptr: &[0, 1], indices: &[0], values: &[1] }).unwrap();
    writer.finish().unwrap();
    for (name, code) in [("a.h5ad", 1), ("a.arrow", 0)] {
        let output = folder.path().join(name);
        let run = tilekern(["decode", text(&path), "-o", text(&output)]);
        assert_eq!((run.code, output.exists()), (Some(code), code == 0), "{run:?}");
        assert_eq!(run.stderr.contains("\\0b\" has a zero character"), code == 1, "{run:?}");
    }
}

/// Memory is that of a tile, not of the dataset.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded() {
    let folder = tempdir().unwrap();
    let peak = |path: &Path, name: &str| {
        let output = folder.path().join(name);
        support::peak(command().args(["decode", text(path), "-q", "--threads", "1", "-o", text(&output)])).unwrap()
    };
    let sample = |name: &str, cells: &str| {
        let path = folder.path().join(name);
        let size = ["--cells", cells, "--genes", "3000", "--tile-size", "100", "--profile", "quick", "-q"];
        assert_eq!(tilekern(["sample", text(&path)].iter().chain(&size)).code, Some(0));
        path
    };
    let (small, large) = (sample("small", "2000"), sample("large", "16000"));
    for name in ["a.npz", "a.npy", "a.arrow", "a.parquet", "a.h5ad"] {
        // A short run may end before its memory is looked at where it is highest.
        let (one, many) = ((0..3).map(|_| peak(&small, name)).max().unwrap(), peak(&large, name));
        println!("{name}: peak {one} bytes of 2,000 cells, {many} of 16,000");
        assert!(many < one + (8 << 20), "{name}: {one} and {many}");
    }
}
