//! Conversions of made-up matrices with every option, against what they must come to.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch, UInt64Array};
use proptest::prelude::*;
use support::{Matrix, files, run};
use tempfile::tempdir;
use tilekern::deltacel::CsrView;
use tilekern::deltacel::dataset::obs::{ObsColumn, ObsSchema, ObsType};
use tilekern::deltacel::dataset::{Dataset, Writer};
use tilekern_convert::{Changes, ErrorKind, GeneOrder, MatchGenes, Options, Phase, Progress, Shard, Step, convert};

fn small() -> Options {
    Options { tile_size: 16, ..Options::default() }
}

/// Deterministic disorder.
fn shuffled<T>(mut list: Vec<T>, seed: u64) -> Vec<T> {
    let mut state = seed | 1;
    for i in (1..list.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list.swap(i, usize::try_from(state >> 33).unwrap() % (i + 1));
    }
    list
}

fn names(dataset: &Path) -> Vec<String> {
    let dataset = Dataset::open(dataset).unwrap();
    dataset.var_names().unwrap().unwrap().iter().map(str::to_owned).collect()
}

#[test]
fn genes_are_ordered_by_total_and_then_by_column() {
    let folder = tempdir().unwrap();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    let rows = vec![vec![(1, 5), (3, 1), (4, 1)], vec![(0, 5), (4, 1)]];
    Matrix { n_genes: 5, rows }.write_plain(&input);
    let summary = run(&[&input], &out, &small()).unwrap();
    assert_eq!((summary.n_cells, summary.n_genes, summary.nnz, summary.n_tiles), (2, 5, 5, 1));
    assert!(summary.complete && summary.notes.is_empty(), "{summary:?}");
    let order = Dataset::open(&out).unwrap().gene_order().unwrap().unwrap().to_vec();
    assert_eq!(order, [0, 1, 4, 3, 2]);
    assert_eq!(names(&out), ["name0", "name1", "name4", "name3", "name2"]);
    assert!(!folder.path().join("out.partial").exists());

    // The names of that dataset put another conversion in its order; ids do, too.
    let ids = folder.path().join("ids");
    fs::write(&ids, "id2\nid1\nid0\nid4\nid3\n").unwrap();
    for (list, expected) in [(out.join("var_names.txt"), vec![0, 1, 4, 3, 2]), (ids, vec![2, 1, 0, 4, 3])] {
        let again = folder.path().join("again");
        run(&[&input], &again, &Options { gene_order: GeneOrder::File(list), ..small() }).unwrap();
        assert_eq!(Dataset::open(&again).unwrap().gene_order().unwrap().unwrap(), expected);
        assert_eq!(Matrix::of(&again), Matrix::of(&out));
        fs::remove_dir_all(again).unwrap();
    }
    for (text, why) in [("name0\nname1\n", "names 2 genes of 5"), ("name0\nname0\n", "line 2"), ("", "names 0 genes")] {
        let list = folder.path().join("list");
        fs::write(&list, text).unwrap();
        let again = folder.path().join("again");
        let error = run(&[&input], &again, &Options { gene_order: GeneOrder::File(list), ..small() }).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert!(!again.exists() && !folder.path().join("again.partial").exists());
    }
}

#[test]
fn a_comment_says_that_rows_are_cells() {
    let folder = tempdir().unwrap();
    let (input, out) = (folder.path().join("in.mtx"), folder.path().join("out"));
    let text = |comment: &str| {
        format!("%%MatrixMarket matrix coordinate integer general\n%\n{comment}2 3 3\n1 3 4\n2 1 5\n2 3 6\n")
    };
    let cells_first = vec![vec![(2, 4)], vec![(0, 5), (2, 6)]];
    let genes_first = vec![vec![(1, 5)], vec![], vec![(0, 4), (1, 6)]];
    for (comment, expected) in [
        ("% cells x genes, numbered from 1\n", &cells_first),
        ("%Cells x Genes\n", &cells_first),
        ("", &genes_first),
        ("% genes x cells\n", &genes_first),
        ("% not cells x genes\n", &genes_first),
    ] {
        fs::write(&input, text(comment)).unwrap();
        let summary = run(&[&input], &out, &small()).unwrap();
        assert_eq!(&Matrix::of(&out).rows, expected, "{comment}");
        assert_eq!(summary.notes.iter().any(|note| note.contains("rows are cells")), *expected == cells_first);
        fs::remove_dir_all(&out).unwrap();
    }
    fs::write(&input, text("% cells x genes\n").replace("2 3 6", "3 2 6")).unwrap();
    let error = run(&[&input], &out, &small()).unwrap_err();
    assert!(error.to_string().contains("cell 3 is not within 1 to 2"), "{error}");
}

#[test]
fn a_name_of_a_gene_with_a_line_break_is_told_at_once() {
    let folder = tempdir().unwrap();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    let matrix = Matrix { n_genes: 2, rows: vec![vec![(0, 1), (1, 2)]] };
    let genes = ["a\tx".to_owned(), "b\ty\rz".to_owned()];
    matrix.write(&input, &matrix.lines(), &genes, &["cell".to_owned()]);
    // The first pass is not begun.
    let stop = StopAfter(AtomicU64::new(0));
    let error = convert(std::slice::from_ref(&input), &out, &small(), Step::Whole, &stop).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(r#"gene 1 is called "y\rz""#) && text.contains("rename it in the input"), "{text}");
    assert_eq!((error.path(), error.part()), (Some(&*input), Some("genes")));
    assert!(!out.exists() && !folder.path().join("out.partial").exists());
}

#[test]
fn names_that_are_there_twice_are_kept() {
    let folder = tempdir().unwrap();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    let matrix = Matrix { n_genes: 3, rows: vec![vec![(0, 1), (2, 2)]] };
    let genes = ["a\tx\tGene Expression", "b\tx\tGene Expression", "c\ty\tAntibody Capture"].map(str::to_owned);
    matrix.write(&input, &matrix.lines(), &genes, &["cell".to_owned()]);
    let options = Options { gene_order: GeneOrder::Source, ..small() };
    let summary = run(&[&input], &out, &options).unwrap();
    assert_eq!(names(&out), ["x", "x", "y"]);
    assert_eq!(summary.notes, ["features of all types were taken: Antibody Capture, Gene Expression"]);
    // The list of names with one twice is taken as an order all the same.
    let list = folder.path().join("list");
    fs::write(&list, "y\nx\nx\n").unwrap();
    fs::remove_dir_all(&out).unwrap();
    run(&[&input], &out, &Options { gene_order: GeneOrder::File(list), ..small() }).unwrap();
    assert_eq!(Dataset::open(&out).unwrap().gene_order().unwrap().unwrap(), [2, 0, 1]);
    fs::remove_dir_all(&out).unwrap();

    let one = Options { feature_type: Some("Gene Expression".to_owned()), ..small() };
    let summary = run(&[&input], &out, &one).unwrap();
    assert_eq!((summary.n_genes, summary.nnz), (2, 1));
    assert_eq!(summary.notes.len(), 2, "{summary:?}");
    fs::remove_dir_all(&out).unwrap();
    let none = Options { feature_type: Some("CRISPR".to_owned()), ..small() };
    let error = run(&[&input], &out, &none).unwrap_err();
    assert!(error.to_string().contains(r#"["Antibody Capture", "Gene Expression"]"#), "{error}");
}

/// A dataset within its own input would be read as a part of it when the conversion goes on.
#[test]
fn an_output_within_an_input_is_refused() {
    let folder = tempdir().unwrap();
    let (input, other) = (folder.path().join("in"), folder.path().join("in-too"));
    let dataset = folder.path().join("dataset");
    Matrix::random(50, 30, 5, 9).write_plain(&input);
    run(&[&input], &dataset, &small()).unwrap();
    let before = files(&dataset);
    for out in [dataset.join("sub"), dataset.join("tiles/../tiles/sub"), input.join("sub")] {
        let error = run(&[&dataset, &input], &out, &small()).unwrap_err();
        assert!(error.to_string().contains("lies within the input"), "{error}");
        assert!(files(&dataset) == before && !out.exists());
    }
    // The same beginning of the name is no folder.
    run(&[&input], &other, &small()).unwrap();
}

#[test]
fn several_inputs_are_one_dataset() {
    let folder = tempdir().unwrap();
    let parts = [37, 0, 5, 64].map(|cells| Matrix::random(cells, 40, 6, cells as u64 + 1));
    let paths: Vec<PathBuf> = (0..parts.len()).map(|n| folder.path().join(n.to_string())).collect();
    parts.iter().zip(&paths).for_each(|(part, path)| part.write_plain(path));
    let inputs: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let out = folder.path().join("out");
    let summary = run(&inputs, &out, &small()).unwrap();
    let rows = parts.iter().flat_map(|part| part.rows.clone()).collect();
    let joined = Matrix { n_genes: 40, rows };
    assert_eq!(Matrix::of(&out), joined);
    assert_eq!(summary.inputs.iter().map(|input| input.2).collect::<Vec<_>>(), [37, 0, 5, 64]);
    let schema = fs::read_to_string(out.join("obs/schema.json")).unwrap();
    assert!(schema.contains("source_file") && paths.iter().all(|p| schema.contains(p.to_str().unwrap())), "{schema}");

    // Converted again: other tiles, a part of it, itself twice.
    let options = Options { tile_size: 50, shuffle: Some(1), ..Options::default() };
    let again = folder.path().join("again");
    let summary = run(&[&out], &again, &options).unwrap();
    // That the order of genes is undone is no fault of the dataset.
    assert_eq!(summary.changes, Changes::default());
    assert_eq!(Matrix::of(&again).sums(), joined.sums());
    let part = folder.path().join("part");
    run(&[&out], &part, &Options { cells: Some(vec![30..60, 60..90]), ..small() }).unwrap();
    assert_eq!(Matrix::of(&part).rows, joined.rows[30..90]);
    let twice = folder.path().join("twice");
    run(&[&part, &out], &twice, &Options { obs: false, ..small() }).unwrap();
    assert_eq!(Matrix::of(&twice).rows, [&joined.rows[30..90], &joined.rows].concat());
    assert_eq!(names(&twice).len(), 40);
    let error = run(&[&out], &part, &small()).unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    let error =
        run(&[&out], &folder.path().join("x"), &Options { cells: Some(vec![0..1, 30..107]), ..small() }).unwrap_err();
    assert!(error.to_string().contains("30..107 is not within 0..106"), "{error}");
}

#[test]
fn some_cells_of_an_input() {
    let folder = tempdir().unwrap();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    let matrix = Matrix::random(100, 30, 5, 9);
    matrix.write_plain(&input);
    let kept = |ranges: Option<&[std::ops::Range<u64>]>, filter: Option<&str>| {
        let (cells, filter) = (ranges.map(<[_]>::to_vec), filter.map(str::to_owned));
        let summary = run(&[&input], &out, &Options { cells, filter, ..small() })?;
        let found = Matrix::of(&out).rows;
        assert_eq!(summary.n_cells, found.len() as u64);
        let again = folder.path().join("again");
        // A dataset as the input, from which the same cells are left.
        run(&[&out], &again, &Options { filter: Some("barcode != 'none'".to_owned()), ..small() })?;
        assert_eq!(Matrix::of(&again).rows, found);
        fs::remove_dir_all(again).unwrap();
        fs::remove_dir_all(&out).unwrap();
        Ok::<_, tilekern_convert::Error>(found)
    };
    let rows = |cells: &[std::ops::Range<usize>]| {
        cells.iter().flat_map(|r| matrix.rows[r.clone()].to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(kept(Some(&[3..7, 7..9, 9..9, 40..41, 90..100]), None).unwrap(), rows(&[3..9, 40..41, 90..100]));
    assert_eq!(kept(None, Some("barcode in ['cell99', 'cell5', 'cell6']")).unwrap(), rows(&[5..7, 99..100]));
    assert_eq!(kept(Some(&[0..2, 2..6]), Some("barcode not in ['cell2', 'cell7']")).unwrap(), rows(&[0..2, 3..6]));
    let none = folder.path().join("none");
    let filter = Some("barcode == 'none'".to_owned());
    let summary = run(&[&input], &none, &Options { filter, ..small() }).unwrap();
    assert_eq!(summary.n_cells, 0);
    assert!(summary.notes.iter().any(|note| note.contains("passes the filter barcode == 'none'")), "{summary:?}");
    // Nor are categories lost where no cell has one of them.
    let (several, part) = (folder.path().join("several"), folder.path().join("part"));
    run(&[&input, &input], &several, &small()).unwrap();
    let schema = |filter: &str| {
        run(&[&several], &part, &Options { filter: Some(filter.to_owned()), ..small() }).unwrap();
        let schema = fs::read_to_string(part.join("obs/schema.json")).unwrap();
        fs::remove_dir_all(&part).unwrap();
        schema
    };
    assert_eq!(schema("barcode == 'none'"), schema("barcode == 'cell5'"));
    for (ranges, why) in
        [(vec![5..9, 8..10], "8..10 starts before the end"), (vec![0..1, 99..101], "99..101 is not within")]
    {
        let error = kept(Some(&ranges), None).unwrap_err();
        assert!(error.to_string().contains(why) && error.path() == Some(&input), "{error}");
    }
    for filter in ["nothing == 1", "barcode >", "barcode > 7"] {
        let error = kept(None, Some(filter)).unwrap_err();
        assert!(error.part().is_some_and(|part| part.contains("filter")), "{error}");
    }
}

#[test]
fn a_conversion_that_was_complete_is_told_to_be() {
    let folder = tempdir().unwrap();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    Matrix::random(50, 30, 5, 9).write_plain(&input);
    let options = Options { resume: true, ..small() };
    let first = run(&[&input], &out, &options).unwrap();
    let sound = files(&out);
    // Killed right behind its last step.
    fs::create_dir(folder.path().join("out.partial")).unwrap();
    let again = run(&[&input], &out, &options).unwrap();
    assert_eq!((again.n_cells, again.nnz, again.complete), (first.n_cells, first.nnz, true));
    assert!(files(&out) == sound && !folder.path().join("out.partial").exists());
    // What is not of a conversion is not removed with one.
    let (mine, other) = (folder.path().join("other.partial/mine"), folder.path().join("other"));
    fs::create_dir_all(mine.parent().unwrap()).unwrap();
    fs::write(&mine, "text").unwrap();
    let error = run(&[&input], &other, &options).unwrap_err();
    assert!(error.to_string().contains("is not a conversion's directory, for it holds mine"), "{error}");
    assert!(mine.exists() && !other.exists());
    for other in [small(), Options { tile_size: 17, ..options.clone() }, Options { shuffle: Some(1), ..options }] {
        let error = run(&[&input], &out, &other).unwrap_err();
        assert!(error.to_string().contains("exists already"), "{error}");
    }
}

/// A finished dataset is that of the inputs as they are now, or `resume` refuses it.
#[test]
fn a_complete_conversion_of_what_has_changed_is_refused() {
    let folder = tempdir().unwrap();
    let [input, list, out] = ["in", "list", "out"].map(|name| folder.path().join(name));
    let order = |reversed: bool| {
        let genes: Vec<usize> = if reversed { (0..30).rev().collect() } else { (0..30).collect() };
        fs::write(&list, genes.iter().map(|n| format!("name{n}\n")).collect::<String>()).unwrap();
    };
    order(false);
    Matrix::random(50, 30, 5, 9).write_plain(&input);
    let gene_order = GeneOrder::File(list.clone());
    let options = Options { resume: true, gene_order, matrix: Some("matrix".to_owned()), ..small() };
    let refused = |what: &str, options: &Options| {
        let before = files(&out);
        let error = run(&[&input], &out, options).err().unwrap_or_else(|| panic!("{what} was taken"));
        assert!(error.to_string().contains("exists already, but not of these inputs and options"), "{what}: {error}");
        assert!(files(&out) == before, "{what}");
    };
    let again = || {
        fs::remove_dir_all(&out).unwrap_or_default();
        run(&[&input], &out, &options).unwrap();
        assert!(run(&[&input], &out, &options).unwrap().notes.iter().any(|note| note.contains("complete already")));
    };
    again();
    refused("another choice of a matrix", &Options { matrix: None, ..options.clone() });
    Matrix::random(50, 30, 5, 10).write_plain(&input);
    refused("another input", &options);
    again();
    order(true);
    refused("another list", &options);
    again();
    // Written anew with the same bytes: nothing tells that it is the same.
    order(true);
    refused("a newer list", &options);
}

#[test]
fn genes_of_several_inputs_must_be_the_same_or_are_matched() {
    let folder = tempdir().unwrap();
    let (a, b, out) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("out"));
    let write = |path: &Path, genes: &[&str], rows: Vec<Vec<(u32, i32)>>| {
        let genes: Vec<String> = genes.iter().map(|gene| format!("id-{gene}\t{gene}")).collect();
        let cells: Vec<String> = (0..rows.len()).map(|cell| format!("{}", cell)).collect();
        let matrix = Matrix { n_genes: genes.len(), rows };
        matrix.write(path, &matrix.lines(), &genes, &cells);
    };
    write(&a, &["x", "y", "z"], vec![vec![(0, 1), (1, 2), (2, 3)]]);
    write(&b, &["z", "w", "x"], vec![vec![(0, 30), (1, 40), (2, 10)]]);
    let error = run(&[&a, &b], &out, &small()).unwrap_err();
    assert!(error.to_string().contains(r#"gene 0 is "z", but "x" in"#) && error.to_string().contains("--match-genes"));
    for by in [MatchGenes::Name, MatchGenes::Id] {
        let options = Options { match_genes: Some(by), gene_order: GeneOrder::Source, ..small() };
        let summary = run(&[&a, &b], &out, &options).unwrap();
        assert_eq!(names(&out), ["x", "y", "z", "w"]);
        let rows = vec![vec![(0, 1), (1, 2), (2, 3)], vec![(0, 10), (2, 30), (3, 40)]];
        assert_eq!(Matrix::of(&out).rows, rows);
        assert_eq!(summary.notes.len(), 2, "{summary:?}");
        fs::remove_dir_all(&out).unwrap();
    }
    // As names and as ids, which have nothing in common.
    write(&b, &["u", "v"], vec![vec![(0, 30)]]);
    for (by, advice) in [(MatchGenes::Name, "match them by id"), (MatchGenes::Id, "match them by name")] {
        let options = Options { match_genes: Some(by), ..small() };
        let error = run(&[&a, &b], &out, &options).unwrap_err();
        let text = error.to_string();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Inconsistent, Some(&*b)));
        assert!(text.contains("no gene in common") && text.contains(advice), "{text}");
        assert!(!out.exists());
    }
    let many = |first: usize| (first..first + 40).map(|n| format!("g{n}")).collect::<Vec<_>>();
    let notes = |first: usize| {
        for (path, first) in [(&a, 0), (&b, first)] {
            let genes = many(first);
            write(path, &genes.iter().map(String::as_str).collect::<Vec<_>>(), vec![vec![(0, 30)]]);
        }
        let options = Options { match_genes: Some(MatchGenes::Name), ..small() };
        let summary = run(&[&a, &b], &out, &options).unwrap();
        fs::remove_dir_all(&out).unwrap();
        summary.notes.iter().filter(|note| note.contains("genes in common")).cloned().collect::<Vec<_>>()
    };
    assert!(notes(36).is_empty());
    assert_eq!(notes(37), [format!("{} has only 3 of its 40 genes in common with the inputs before it", b.display())]);
    write(&a, &["x", "y", "z"], vec![vec![(0, 1), (1, 2), (2, 3)]]);
    write(&b, &["z", "z"], vec![vec![(0, 30)]]);
    let options = Options { match_genes: Some(MatchGenes::Name), ..small() };
    let error = run(&[&a, &b], &out, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
    let error = run(&[&a, &b], &out, &small()).unwrap_err();
    assert!(error.to_string().contains("2 genes, but 3 in"), "{error}");
}

#[test]
fn parts_and_their_merger_equal_the_whole() {
    let folder = tempdir().unwrap();
    let paths = [folder.path().join("a"), folder.path().join("b")];
    Matrix::random(75, 30, 5, 3).write_plain(&paths[0]);
    Matrix::random(30, 30, 5, 4).write_plain(&paths[1]);
    for shuffle in [None, Some(9)] {
        let options = Options { shuffle, ..small() };
        let whole = folder.path().join("whole");
        convert(&paths, &whole, &options, Step::Whole, &()).unwrap();
        for count in [1, 3, 20] {
            let out = folder.path().join("out");
            let shards = || (0..count).map(|index| Shard { index, count });
            let step = |step| convert(&paths, &out, &options, step, &());
            for first in [Step::Tiles(Shard { index: 0, count }), Step::Merge(count)] {
                let error = step(first).unwrap_err();
                assert!(error.to_string().contains("not counted yet: 0/"), "{error}");
                assert!(!folder.path().join("out.partial").exists(), "{first:?}");
            }
            // In any order.
            let counted: u64 = shards().rev().map(|shard| step(Step::Count(shard)).unwrap().n_cells).sum();
            assert_eq!(counted, 105);
            let error = step(Step::Merge(count)).unwrap_err();
            assert!(error.to_string().contains("7 tiles are missing, the first is 0"), "{error}");
            let tiles: u64 = shards().rev().map(|shard| step(Step::Tiles(shard)).unwrap().n_tiles).sum();
            assert_eq!(tiles, 7);
            assert!(!out.exists());
            let tile = folder.path().join("out.partial/tiles/tile_000003.dct");
            let bytes = fs::read(&tile).unwrap();
            fs::remove_file(&tile).unwrap();
            let error = step(Step::Merge(count)).unwrap_err();
            assert!(error.to_string().contains("1 tile is missing, the first is 3"), "{error}");
            // One that is damaged is told by the merger, and made again by its part.
            for damage in [&b""[..], &bytes[..bytes.len() / 2], &[&bytes[..bytes.len() - 9], &[1; 9][..]].concat()] {
                fs::write(&tile, damage).unwrap();
                let error = step(Step::Merge(count)).unwrap_err().to_string();
                assert!(error.contains("tile_000003.dct") && error.contains("its part again"), "{error}");
                let made: u64 = shards().map(|shard| step(Step::Tiles(shard)).unwrap().n_tiles).sum();
                assert!(made == 7 && fs::read(&tile).unwrap() == bytes);
            }
            let partial = folder.path().join("out.partial");
            let journal = fs::read(partial.join("journal.json")).unwrap();
            let summary = step(Step::Merge(count)).unwrap();
            assert_eq!((summary.n_cells, summary.complete), (105, true));
            assert!(files(&out) == files(&whole), "{shuffle:?} {count}");
            // Again, also where it was killed behind its last step: it is done, and nothing is left over.
            for killed in [false, true] {
                if killed {
                    fs::create_dir_all(partial.join("scratch/0")).unwrap();
                    fs::write(partial.join("journal.json"), &journal).unwrap();
                }
                let again = step(Step::Merge(count)).unwrap();
                assert_eq!(again.notes, ["it was complete already; nothing was left to do"]);
                assert!(again.complete && !partial.exists() && files(&out) == files(&whole));
            }
            // So it is for the parts, which a job array may begin again.
            for begun in shards().flat_map(|shard| [Step::Count(shard), Step::Tiles(shard)]) {
                let again = step(begun).unwrap();
                assert_eq!(again.notes, ["it was complete already; nothing was left to do"]);
                assert!(again.complete && !partial.exists());
            }
            let others = [paths[1].clone(), paths[0].clone()];
            let error = convert(&others, &out, &options, Step::Merge(count), &()).unwrap_err();
            assert!(error.to_string().contains("exists already, but not of these inputs"), "{error}");
            fs::remove_dir_all(&out).unwrap();
        }
        fs::remove_dir_all(&whole).unwrap();
    }
    let shard = Step::Count(Shard { index: 3, count: 3 });
    assert!(convert(&paths, &folder.path().join("out"), &small(), shard, &()).is_err());
}

/// A folder of which a file was replaced by one of its size is another input, whatever the times; links that lead nowhere
/// are no part of it.
#[test]
fn a_folder_is_known_by_each_of_its_files() {
    let folder = tempdir().unwrap();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    Matrix::random(40, 30, 5, 3).write_plain(&input);
    #[cfg(unix)]
    for (to, name) in [("/nowhere/at all", "dangling"), ("loop", "loop")] {
        std::os::unix::fs::symlink(to, input.join(name)).unwrap();
    }
    let parts = [0, 1].map(|index| Shard { index, count: 2 });
    let step = |step| convert(std::slice::from_ref(&input), &out, &small(), step, &());
    for part in parts {
        step(Step::Count(part)).unwrap();
    }
    step(Step::Tiles(parts[0])).unwrap();
    let matrix = input.join("matrix.mtx");
    let text = fs::read_to_string(&matrix).unwrap();
    let modified = fs::metadata(&matrix).unwrap().modified().unwrap();
    let set = |text: &str, time: std::time::SystemTime| {
        fs::write(&matrix, text).unwrap();
        fs::File::options().write(true).open(&matrix).unwrap().set_modified(time).unwrap();
    };
    let other = text.replace(" 1\n", " 2\n");
    assert!(other != text && other.len() == text.len());
    set(&other, modified - std::time::Duration::from_secs(1_000_000));
    for refused in [Step::Tiles(parts[1]), Step::Merge(2)] {
        let error = step(refused).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Inconsistent, "{error}");
    }
    // Nor is it the same when two files have changed their names.
    set(&text, modified);
    let [a, b] = ["features.tsv", "barcodes.tsv"].map(|name| input.join(name));
    let swap = || {
        let [old_a, old_b] = [&a, &b].map(|path| fs::read(path).unwrap());
        fs::write(&a, old_b).unwrap();
        fs::write(&b, old_a).unwrap();
    };
    let times = [&a, &b].map(|path| fs::metadata(path).unwrap().modified().unwrap());
    swap();
    let keep = |path: &Path, time| fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    keep(&a, times[0]);
    keep(&b, times[1]);
    assert_eq!(step(Step::Tiles(parts[1])).unwrap_err().kind(), ErrorKind::Inconsistent);
    swap();
    keep(&a, times[0]);
    keep(&b, times[1]);
    step(Step::Tiles(parts[1])).unwrap();
    assert!(step(Step::Merge(2)).unwrap().complete);
}

/// A part whose inputs are refused does not stand in the way of the right command.
#[test]
fn a_refused_part_leaves_nothing() {
    let folder = tempdir().unwrap();
    let [a, b, raw, out] = ["a", "b", "raw", "out"].map(|name| folder.path().join(name));
    Matrix::random(40, 30, 5, 3).write_plain(&a);
    Matrix::random(40, 20, 5, 3).write_plain(&b);
    fs::create_dir(&raw).unwrap();
    ["x.h5ad", "y.h5ad", "z.h5"].iter().for_each(|name| fs::write(raw.join(name), "").unwrap());
    let count = |inputs: &[PathBuf], options: &Options, index| {
        convert(inputs, &out, options, Step::Count(Shard { index, count: 2 }), &())
    };
    let error = count(std::slice::from_ref(&raw), &small(), 0).unwrap_err();
    assert!(error.to_string().contains("2 h5ad files lie; name the files: "), "{error}");
    assert!(error.to_string().ends_with("raw/*.h5ad"), "{error}");
    let inputs = [a.clone(), b];
    let partial = folder.path().join("out.partial");
    let error = count(&inputs, &small(), 0).unwrap_err();
    assert!(error.to_string().contains("20 genes, but 30"), "{error}");
    assert!(!partial.exists());
    let matched = Options { match_genes: Some(MatchGenes::Name), ..small() };
    count(&inputs, &matched, 1).unwrap();
    // What was counted stays, whatever comes then.
    let error = count(&inputs, &small(), 0).unwrap_err();
    assert!(error.to_string().contains("belongs to another conversion"), "{error}");
    assert!(partial.join("counts-1.json").exists());
    count(&inputs, &matched, 0).unwrap();

    let error = run(&[&a], &folder.path().join("nodir/x"), &small()).unwrap_err();
    assert!(error.to_string().contains("does not exist; create it first"), "{error}");
    assert!(!error.to_string().contains("os error"), "{error}");
}

/// Stops the conversion, as a panic in the middle of it would, after so many calls.
struct StopAfter(AtomicU64);

impl Progress for StopAfter {
    fn start(&self, _: Phase, _: u64, _: u64) {
        self.advance(0);
    }

    fn advance(&self, _: u64) {
        assert_ne!(self.0.fetch_sub(1, Ordering::Relaxed), 0, "stopped by the test");
    }
}

#[test]
fn an_interrupted_conversion_goes_on() {
    let folder = tempdir().unwrap();
    let input = folder.path().join("in");
    Matrix::random(150, 30, 5, 3).write_plain(&input);
    let inputs = [input.clone()];
    for shuffle in [None, Some(9)] {
        let options = Options { shuffle, resume: true, ..small() };
        let whole = folder.path().join("whole");
        convert(&inputs, &whole, &Options { resume: false, ..options.clone() }, Step::Whole, &()).unwrap();
        let mut stopped = 0;
        for calls in 0.. {
            let out = folder.path().join("out");
            let stop = StopAfter(AtomicU64::new(calls));
            let run = || convert(&inputs, &out, &options, Step::Whole, &stop);
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(done) => {
                    done.unwrap();
                    assert!(stopped > 10, "{stopped}");
                    assert!(files(&out) == files(&whole), "{shuffle:?} {calls}");
                    fs::remove_dir_all(&out).unwrap();
                    break;
                }
                Err(_) => {
                    stopped += 1;
                    assert!(!out.exists());
                    let plain = Options { resume: false, ..options.clone() };
                    let error = convert(&inputs, &out, &plain, Step::Whole, &()).unwrap_err();
                    assert!(error.to_string().contains("--resume"), "{error}");
                    let other = Options { tile_size: 17, ..options.clone() };
                    let error = convert(&inputs, &out, &other, Step::Whole, &()).unwrap_err();
                    assert!(error.to_string().contains(r#""tile_size": 16 there, "tile_size": 17 now"#), "{error}");
                    convert(&inputs, &out, &options, Step::Whole, &()).unwrap();
                    assert!(files(&out) == files(&whole), "{shuffle:?} {calls}");
                    fs::remove_dir_all(&out).unwrap();
                }
            }
        }
        fs::remove_dir_all(&whole).unwrap();
    }
}

/// Why a conversion cannot go on is told by what is different.
#[test]
fn what_keeps_a_conversion_from_going_on_is_told() {
    let folder = tempdir().unwrap();
    let [input, out, partial] = ["in", "out", "out.partial"].map(|name| folder.path().join(name));
    Matrix::random(150, 30, 5, 3).write_plain(&input);
    let options = Options { resume: true, ..small() };
    let inputs = [input.clone()];
    let stop = StopAfter(AtomicU64::new(10));
    let stopped = || convert(&inputs, &out, &options, Step::Whole, &stop);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(stopped)).unwrap_err();
    let path = partial.join("journal.json");
    let journal = fs::read_to_string(&path).unwrap();
    let state = journal.find(", all of them ").unwrap();
    let end = state + journal[state..].find('"').unwrap();
    let older = journal.replace("  \"journal\": 2,\n", "").replace(&journal[state..end], "");
    for (text, told) in [
        (String::new(), "is damaged"),
        ("{}".to_owned(), "is damaged"),
        (journal[..journal.len() / 2].to_owned(), "is damaged"),
        (older, "another version of tilekern began"),
        (journal.replace("\"tilekern\": \"", "\"tilekern\": \"9"), "another version of tilekern began"),
        (journal.replace(&journal[state..end], ""), "in has changed since this conversion began"),
        (
            journal.replace("\"round\": false", "\"round\": true"),
            "belongs to another conversion: \"round\": true there",
        ),
    ] {
        assert_ne!(text, journal, "{told}");
        fs::write(&path, &text).unwrap();
        let error = run(&[&input], &out, &options).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains("journal.json") && error.contains("remove the dir"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "nothing is touched");
    }
    fs::write(&path, &journal).unwrap();
    assert!(run(&[&input], &out, &options).unwrap().complete);
    // A file in the place of the directory.
    fs::remove_dir_all(&out).unwrap();
    fs::write(&partial, "").unwrap();
    let error = run(&[&input], &out, &options).unwrap_err().to_string();
    assert!(error.contains("is a file, where a directory"), "{error}");
    let error = run(&[&folder.path().join("nothing")], &out, &options).unwrap_err().to_string();
    assert!(error.contains("check the path"), "{error}");
}

/// A tile that was damaged after it was done is made again, and no other.
#[test]
fn damaged_tiles_of_an_interrupted_conversion_are_made_again() {
    let folder = tempdir().unwrap();
    let [input, whole, out] = ["in", "whole", "out"].map(|name| folder.path().join(name));
    Matrix::random(150, 30, 5, 3).write_plain(&input);
    for shuffle in [None, Some(9)] {
        let options = Options { shuffle, resume: true, ..small() };
        run(&[&input], &whole, &options).unwrap();
        let stop = StopAfter(AtomicU64::new(10));
        let inputs = [input.clone()];
        let stopped = || convert(&inputs, &out, &options, Step::Whole, &stop);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(stopped)).unwrap_err();
        let tile = |n: u64| folder.path().join(format!("out.partial/tiles/tile_{n:06}.dct"));
        assert!(tile(2).is_file(), "{shuffle:?}");
        fs::write(tile(0), "").unwrap();
        let mut bytes = fs::read(tile(1)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(tile(1), bytes).unwrap();
        let time = fs::metadata(tile(2)).unwrap().modified().unwrap();
        run(&[&input], &out, &options).unwrap();
        assert!(files(&out) == files(&whole), "{shuffle:?}");
        let kept = fs::metadata(out.join("tiles/tile_000002.dct")).unwrap().modified().unwrap();
        assert_eq!(kept, time, "a sound one is kept");
        [&out, &whole].into_iter().for_each(|path| fs::remove_dir_all(path).unwrap());
    }
}

#[test]
fn a_tile_that_does_not_fit_is_refused_with_what_to_do() {
    let folder = tempdir().unwrap();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    let matrix = Matrix::random(1500, 2000, 60, 1);
    matrix.write_plain(&input);
    for shuffle in [None, Some(0)] {
        let options = Options { memory: 1 << 20, shuffle, ..Options::default() };
        let error = run(&[&input], &out, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        let text = error.to_string();
        let words: Vec<&str> = text.split([' ', ',']).collect();
        let at = words.iter().position(|word| *word == "--tile-size").expect("advice");
        let tile_size: u64 = words[at + 1].parse().expect("a number");
        // What it says helps, if cells are as large as those it saw.
        let options = Options { tile_size: tile_size / 2, ..options };
        fs::remove_dir_all(folder.path().join("out.partial")).unwrap_or_default();
        run(&[&input], &out, &options).unwrap();
        assert_eq!(Matrix::of(&out).sums(), matrix.sums());
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn names_of_files() {
    let folder = tempdir().unwrap();
    let matrix = Matrix::random(20, 9, 4, 2);
    let plain = folder.path().join("plain");
    matrix.write_plain(&plain);
    let text = |name: &str| fs::read(plain.join(name)).unwrap();
    let deflated = |bytes: &[u8]| {
        use std::io::Write;
        // Two members, as block-wise compressors write.
        let half = bytes.len() / 2;
        let member = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        [member(&bytes[..half]), member(&bytes[half..])].concat()
    };
    for (n, (names, gz)) in [
        (["matrix.mtx", "genes.tsv", "barcodes.tsv"], false),
        (["matrix.mtx.gz", "genes.tsv.gz", "barcodes.tsv.gz"], true),
        (["GSM1_matrix.mtx.gz", "GSM1_features.tsv.gz", "GSM1_barcodes.tsv.gz"], true),
        (["s.matrix.mtx", "s.genes.txt", "s.barcodes.txt"], false),
        // Said to be compressed, but is not: what is in it counts.
        (["matrix.mtx.gz", "features.tsv.gz", "barcodes.tsv.gz"], false),
    ]
    .into_iter()
    .enumerate()
    {
        let input = folder.path().join(n.to_string());
        fs::create_dir(&input).unwrap();
        for (name, from) in names.iter().zip(["matrix.mtx", "features.tsv", "barcodes.tsv"]) {
            let bytes = text(from);
            fs::write(input.join(name), if gz { deflated(&bytes) } else { bytes }).unwrap();
        }
        for path in [input.clone(), input.join(names[0])] {
            let out = folder.path().join("out");
            let summary = run(&[&path], &out, &small()).unwrap();
            assert!(summary.notes.is_empty(), "{summary:?}");
            assert_eq!(Matrix::of(&out), matrix);
            assert!(support::files(&out)[Path::new("var_names.txt")].starts_with(b"name"));
            fs::remove_dir_all(&out).unwrap();
        }
    }
    // A matrix alone has numbers for names, which is said.
    let alone = folder.path().join("alone.mtx");
    fs::write(&alone, text("matrix.mtx")).unwrap();
    let out = folder.path().join("out");
    assert_eq!(run(&[&alone], &out, &small()).unwrap().notes.len(), 2);
    assert_eq!(Matrix::of(&out), matrix);
    // Two matrices in one folder are a choice.
    let two = folder.path().join("2");
    fs::write(two.join("GSM2_matrix.mtx"), text("matrix.mtx")).unwrap();
    let error = run(&[&two], &folder.path().join("x"), &small()).unwrap_err();
    assert!(error.to_string().contains("GSM1_matrix.mtx.gz, GSM2_matrix.mtx"), "{error}");
    fs::write(plain.join("genes.tsv"), text("features.tsv")).unwrap();
    let error = run(&[&plain], &folder.path().join("x"), &small()).unwrap_err();
    assert!(error.to_string().contains("both features.tsv and genes.tsv"), "{error}");
    fs::remove_file(plain.join("genes.tsv")).unwrap();
    fs::write(plain.join("barcodes.tsv"), "a\nb\n").unwrap();
    let error = run(&[&plain], &folder.path().join("x"), &small()).unwrap_err();
    assert!(error.to_string().contains("has 2 lines, but the matrix has 20 cells"), "{error}");
    for (name, bytes) in [("empty", &b""[..]), ("text", b"a,b\n1,2\n"), ("tile", b"DELTACEL and more")] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = run(&[&path], &folder.path().join("x"), &small()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Any matrix, in any order of lines, with duplicates and zeros, in any tiles and with little memory.
    #[test]
    fn whatever_comes_goes_in(
        cells in 1_usize..120,
        n_genes in 1_usize..300,
        per_cell in 0_usize..40,
        seed in any::<u64>(),
        tile_size in 1_u64..50,
        shuffle in proptest::option::of(any::<u64>()),
        disorder in any::<bool>(),
        extra in 0_usize..5,
    ) {
        let matrix = Matrix::random(cells, n_genes, per_cell, seed);
        let mut expected = matrix.clone();
        let mut lines = matrix.lines();
        let mut zeros = 0;
        for n in 0..extra {
            let cell = n * 31 % cells;
            let gene = u32::try_from(n * 17 % n_genes).unwrap();
            if let Ok(at) = matrix.rows[cell].binary_search_by_key(&gene, |&(gene, _)| gene) {
                lines.push(format!("{} {} 3", gene + 1, cell + 1));
                expected.rows[cell][at].1 += 3;
            } else {
                lines.push(format!("{} {} 0", gene + 1, cell + 1));
                zeros += 1;
            }
        }
        let lines = if disorder { shuffled(lines, seed) } else { lines };
        let folder = tempdir().unwrap();
        let (input, out) = (folder.path().join("in"), folder.path().join("out"));
        let genes: Vec<_> = (0..n_genes).map(|gene| gene.to_string()).collect();
        let names: Vec<_> = (0..cells).map(|cell| cell.to_string()).collect();
        matrix.write(&input, &lines, &genes, &names);
        let options = Options { tile_size, shuffle, memory: 1 << 20, ..Options::default() };
        let summary = run(&[&input], &out, &options).unwrap();
        let mut found = Matrix::of(&out);
        if shuffle.is_some() {
            prop_assert_eq!(found.sums(), expected.sums());
            found.rows.sort();
            expected.rows.sort();
        }
        prop_assert_eq!(&found.rows, &expected.rows);
        prop_assert_eq!(summary.changes.zeros, zeros);
        prop_assert_eq!(summary.changes.duplicates, extra as u64 - zeros);
        prop_assert_eq!(summary.nnz, expected.rows.iter().map(|row| row.len() as u64).sum::<u64>());
    }
}

/// Metadata of a dataset goes along, letter by letter; that of several is told to be left out.
#[test]
fn metadata_of_a_dataset_is_kept() {
    let folder = tempdir().unwrap();
    let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
    let own = r#"{"donors": [1, 2e400, 18446744073709551617], "by": "caf\u00e9", "converted": {"x": 1}}"#;
    for (path, metadata) in paths.iter().zip([Some(own), Some(r#"{"z": 0.10}"#), None]) {
        let view = CsrView { n_genes: 3, indptr: &[0, 1, 2], indices: &[0, 2], values: &[1, 2] };
        let mut builder = Writer::builder(3).tile_size(2);
        if let Some(metadata) = metadata {
            builder = builder.metadata(metadata);
        }
        let mut writer = builder.create(path).unwrap();
        writer.push(&view).unwrap();
        writer.finish().unwrap();
    }
    let out = folder.path().join("out");
    let metadata = |inputs: &[&PathBuf], options: &Options| {
        let inputs: Vec<PathBuf> = inputs.iter().map(|&path| path.clone()).collect();
        let summary = convert(&inputs, &out, options, Step::Whole, &()).unwrap();
        let text = Dataset::open(&out).unwrap().manifest().metadata().unwrap().to_owned();
        let again = convert(&inputs, &out, &Options { resume: true, ..options.clone() }, Step::Whole, &()).unwrap();
        assert_eq!(again.notes, ["it was complete already; nothing was left to do"]);
        fs::remove_dir_all(&out).unwrap();
        (text, summary.notes.into_iter().filter(|note| note.contains("metadata")).collect::<Vec<_>>())
    };
    for options in [small(), Options { cells: Some(vec![0..1, 1..2]), ..small() }] {
        let (text, notes) = metadata(&[&paths[0]], &options);
        assert!(text.starts_with(r#"{"by":"caf\u00e9","converted":{"by":"tilekern "#), "{text}");
        assert!(text.ends_with(r#"},"donors":[1, 2e400, 18446744073709551617]}"#), "{text}");
        assert!(notes.is_empty(), "{notes:?}");
    }
    let (text, notes) = metadata(&[&paths[2]], &small());
    assert!(text.starts_with(r#"{"converted":{"by":"#) && text.ends_with("}}") && notes.is_empty(), "{text}");
    let (text, notes) = metadata(&[&paths[0], &paths[1], &paths[2]], &small());
    assert!(text.starts_with(r#"{"converted":{"by":"#) && text.ends_with("}}"), "{text}");
    let told = [(&paths[0], r#""by", "donors""#), (&paths[1], r#""z""#)];
    let told =
        told.map(|(path, names)| format!("of several inputs no metadata is kept: {} has {names}", path.display()));
    assert_eq!(notes, told);
}

/// Two inputs whose numbers no type holds together: the refusal names column, file, cell and value, and what to do.
#[test]
fn numbers_without_a_common_type_are_told() {
    let folder = tempdir().unwrap();
    let view = CsrView { n_genes: 3, indptr: &[0, 1, 2], indices: &[0, 2], values: &[1, 2] };
    let write = |name: &str, stored: ObsType, values: ArrayRef| {
        let schema = ObsSchema { columns: vec![ObsColumn::plain("n reads", stored)] };
        let path = folder.path().join(name);
        let rows = RecordBatch::try_new(Arc::new(schema.arrow()), vec![values]).unwrap();
        let mut writer = Writer::builder(3).tile_size(2).obs(schema, 1000).create(&path).unwrap();
        writer.push_with_obs(&view, &rows).unwrap();
        writer.finish().unwrap();
        path
    };
    let signed = write("signed", ObsType::Int64, Arc::new(Int64Array::from(vec![-1, 5])));
    let unsigned = write("unsigned", ObsType::UInt64, Arc::new(UInt64Array::from(vec![7, u64::MAX])));
    let single = write("single", ObsType::Float, Arc::new(Float32Array::from(vec![0.5, 2.0])));
    let large = write("large", ObsType::Int64, Arc::new(Int64Array::from(vec![1 << 53, (1 << 53) + 1])));
    let out = folder.path().join("out");
    for (inputs, at, value, stored) in [
        ([&signed, &unsigned], 1, "18446744073709551615", "int64"),
        ([&unsigned, &signed], 0, "18446744073709551615", "int64"),
        ([&single, &large], 1, "9007199254740993", "double"),
    ] {
        let error = convert(&inputs.map(Clone::clone), &out, &small(), Step::Whole, &()).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.path(), Some(&**inputs[at]), "{text}");
        for word in [
            &format!("value 1: is {value}, must be "),
            &format!("column \"n reads\" is of type {stored} over all inputs"),
            "make the column text in all inputs, or take it out of one",
        ] {
            assert!(text.contains(word), "{word:?} not in {text}");
        }
        assert!(!out.exists());
    }
    // What fits is taken.
    convert(&[unsigned.clone(), unsigned], &out, &small(), Step::Whole, &()).unwrap();
}

#[test]
fn a_dataset_keeps_its_tables_when_it_is_converted_again() {
    let folder = tempdir().unwrap();
    let paths = [folder.path().join("a"), folder.path().join("b")];
    Matrix::random(30, 12, 5, 3).write_plain(&paths[0]);
    Matrix::random(20, 12, 5, 4).write_plain(&paths[1]);
    let (first, again) = (folder.path().join("first"), folder.path().join("again"));
    convert(&paths, &first, &small(), Step::Whole, &()).unwrap();
    for shuffle in [None, Some(4)] {
        let options = Options { tile_size: 7, shuffle, ..Options::default() };
        run(&[&first], &again, &options).unwrap();
        let [before, after] = [&first, &again].map(|path| Dataset::open(path).unwrap());
        assert_eq!(before.gene_order().unwrap(), after.gene_order().unwrap());
        let (a, b) = (before.var().unwrap().unwrap(), after.var().unwrap().unwrap());
        assert_eq!(a, b);
        assert_eq!(a.schema().field(1).name(), "gene_ids");
        let (a, b) = (before.obs().unwrap().unwrap(), after.obs().unwrap().unwrap());
        assert_eq!(a.schema(), b.schema());
        // Rows of the table follow their cells.
        let cells: Vec<u64> = (0..50).collect();
        let names = ["barcode", "source_file"];
        let (a, b) = (a.values(&names, &cells).unwrap(), b.values(&names, &cells).unwrap());
        let (rows_a, rows_b) = (Matrix::of(&first).rows, Matrix::of(&again).rows);
        let keyed = |table: &arrow_array::RecordBatch, rows: &[Vec<(u32, i32)>]| {
            let get = |column: usize, row: usize| format!("{:?}", table.column(column).slice(row, 1));
            let mut keyed: Vec<_> = (0..50).map(|row| (get(0, row), get(1, row), rows[row].clone())).collect();
            assert!(keyed.windows(2).any(|pair| pair[0] != pair[1]));
            keyed.sort();
            keyed
        };
        assert_eq!(keyed(&a, &rows_a), keyed(&b, &rows_b));
        assert_eq!(rows_a == rows_b, shuffle.is_none());
        fs::remove_dir_all(&again).unwrap();
    }
}
