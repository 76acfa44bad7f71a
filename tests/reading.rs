//! Choices of genes, costs told up front, and several datasets as one, against plain models of them.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small numbers of the tests' own
#![cfg(target_endian = "little")]

#[path = "support/cells.rs"]
mod cells;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cells::{Cells, cells_of, write};
use proptest::prelude::*;
use tempfile::TempDir;
use tilekern::deltacel::dataset::{Collection, Dataset, GeneKey, GeneMatch, GeneOrder, Genes};
use tilekern::deltacel::{Chunks, Count, Csr, Decoded, Decoder, Encoder, Profile, Tile};
use tilekern::{Directory, Error, ErrorKind, Limits, Object, Part, Source};

fn encoder(chunks: u32) -> tilekern::deltacel::EncoderBuilder {
    Encoder::builder().profile(Profile::Plain(1)).chunks(Chunks::Count(chunks))
}

/// A number that depends on two others, without a pattern.
fn hash(a: u64, b: u64) -> u64 {
    let mut x = a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 32)
}

/// `n` cells of about a third of the genes.
fn sample(n: usize, n_genes: u32) -> Cells {
    let count = |cell: usize, gene: u32| match hash(cell as u64, gene.into()) {
        x if x % 3 > 0 => None,
        x => Some((gene as i32, 1 + ((x >> 8) % 300) as i32)),
    };
    (0..n).map(|cell| (0..n_genes).filter_map(|gene| count(cell, gene)).collect()).collect()
}

fn name(gene: u32) -> String {
    format!("gene {gene}")
}

/// A random order of `n` genes.
fn shuffled(n: u32, seed: u64) -> Vec<i32> {
    let mut order: Vec<i32> = (0..n as i32).collect();
    order.sort_by_key(|&gene| hash(seed, gene as u64));
    order
}

/// What is left of cells if such genes are chosen.
fn choose(cells: &Cells, genes: &[u32]) -> Cells {
    let column = |gene: i32| genes.iter().position(|&chosen| chosen as i32 == gene);
    let choose = |cell: &Vec<(i32, i32)>| {
        let mut kept: Vec<(i32, i32)> =
            cell.iter().filter_map(|&(gene, count)| Some((column(gene)? as i32, count))).collect();
        kept.sort_unstable();
        kept
    };
    cells.iter().map(choose).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chosen_genes_as_in_a_model(
        n_genes in 1u32..90,
        n_cells in 0usize..50,
        tile_size in 1u64..20,
        chunks in 1u32..5,
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        wanted in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        by in 0..4,
        order in prop_oneof![Just(GeneOrder::Given), Just(GeneOrder::Output), Just(GeneOrder::Source)],
    ) {
        let cells = sample(n_cells, n_genes);
        let folder = tempfile::tempdir().unwrap();
        let source = shuffled(n_genes, 5);
        write(folder.path(), n_genes, &cells, 13, |w| {
            w.tile_size(tile_size).encoder(encoder(chunks)).gene_order(&source[..]).var_names((0..n_genes).map(name))
        });
        let mut genes: Vec<u32> = Vec::new();
        for index in chosen {
            let gene = index.index(n_genes as usize) as u32;
            if !genes.contains(&gene) {
                genes.push(gene);
            }
        }
        let query = match by {
            0 => Genes::indices(&genes[..]),
            1 => Genes::names(genes.iter().copied().map(name)),
            2 => {
                genes.sort_unstable();
                Genes::mask((0..n_genes).map(|gene| genes.contains(&gene)).collect::<Vec<_>>())
            }
            _ => {
                genes = (0..n_genes).collect();
                Genes::all()
            }
        };
        match order {
            GeneOrder::Given => {}
            GeneOrder::Output => genes.sort_unstable(),
            GeneOrder::Source => genes.sort_by_key(|&gene| source[gene as usize]),
        }
        let wanted: Vec<u64> = match n_cells {
            0 => Vec::new(),
            n => wanted.iter().map(|index| index.index(n) as u64).collect(),
        };
        for crc in [true, false] {
            let dataset = Dataset::builder().check_crc(crc).open(folder.path()).unwrap();
            let columns = dataset.columns(&query.clone().order(order)).unwrap();
            prop_assert_eq!((columns.genes(), columns.len()), (&genes[..], genes.len()));
            for threads in [1, 3] {
                let decoder = Decoder::builder().threads(threads).build().unwrap();
                let reader = dataset.reader(&decoder).genes(&columns).unwrap();
                prop_assert_eq!(reader.n_genes() as usize, genes.len());
                let mut csr = Csr::<i32>::new();
                for _ in 0..2 {
                    let expected: Cells = wanted.iter().map(|&cell| cells[cell as usize].clone()).collect();
                    let decoded = reader.rows(&wanted, &mut csr).unwrap();
                    prop_assert_eq!(cells_of(&csr), choose(&expected, &genes));
                    prop_assert_eq!(csr.n_genes() as usize, genes.len());
                    let whole = Decoded { cells: wanted.len(), nnz: csr.nnz(), ..Decoded::default() };
                    prop_assert_eq!(decoded, whole);
                    let part = n_cells / 3..n_cells - n_cells / 4;
                    reader.range(part.start as u64..part.end as u64, &mut csr).unwrap();
                    prop_assert_eq!(cells_of(&csr), choose(&cells[part].to_vec(), &genes));
                }
                let cost = reader.cost(&wanted).unwrap();
                reader.rows(&wanted, &mut csr).unwrap();
                prop_assert!(cost.nonzeros >= csr.nnz() as u64);
                let bytes = 8 * csr.indptr().len() + 8 * csr.nnz();
                prop_assert!(cost.result_bytes >= bytes as u64);
            }
        }
    }
}

/// Counts that a type does not hold matter in the genes alone that are kept.
#[test]
fn large_counts() {
    let folder = tempfile::tempdir().unwrap();
    let cells: Cells = (0..20).map(|cell| vec![(0, 70_000), (1, cell + 1), (2, (1 << 24) + 1), (3, 5)]).collect();
    write(folder.path(), 4, &cells, 20, |w| w.tile_size(7).encoder(encoder(2)));
    let dataset = Dataset::open(folder.path()).unwrap();
    let decoder = Decoder::builder().threads(1).build().unwrap();
    fn read<T: Count>(dataset: &Dataset, decoder: &Decoder, genes: &[u32]) -> Result<(Decoded, Csr<T>), Error> {
        let columns = dataset.columns(&Genes::indices(genes))?;
        let mut csr = Csr::new();
        let decoded = dataset.reader(decoder).genes(&columns)?.rows(&[3, 19, 3], &mut csr)?;
        Ok((decoded, csr))
    }
    let (_, csr) = read::<u16>(&dataset, &decoder, &[3, 1]).unwrap();
    assert_eq!((csr.indices(), csr.values()), (&[0, 1, 0, 1, 0, 1][..], &[5, 4, 5, 20, 5, 4][..]));
    let error = read::<u16>(&dataset, &decoder, &[0, 1]).unwrap_err();
    assert_eq!((error.kind().name(), error.path()), ("out_of_range", Some(&*dataset.tile_path(0))));
    let (decoded, csr) = read::<f32>(&dataset, &decoder, &[0, 1]).unwrap();
    assert_eq!((decoded.inexact, csr.values()[0]), (0, 70_000.0));
    let (decoded, _) = read::<f32>(&dataset, &decoder, &[2, 1]).unwrap();
    assert_eq!(decoded.inexact, 3);
}

/// Where no wanted cell has a kept gene the counts of the chunk are not looked at.
#[test]
fn counts_that_are_not_needed() {
    let folder = tempfile::tempdir().unwrap();
    // Gene 9 is in the first chunk alone.
    let cells: Cells =
        (0..40).map(|cell| if cell < 20 { vec![(0, 3), (9, 1)] } else { vec![(0, 3), (1, 1)] }).collect();
    write(folder.path(), 10, &cells, 40, |w| w.tile_size(40).encoder(encoder(2)));
    let path = folder.path().join("tiles/tile_000000.dct");
    let mut bytes = std::fs::read(&path).unwrap();
    let tile = Tile::open(&bytes).unwrap();
    assert_eq!(tile.chunk(1).cells, 20..40);
    // Each of a frame's bytes in turn; most of them make it one that does not decode or has other values.
    let (offset, len) = tile.chunk(1).span(tilekern::Stream::Vals);
    let at = (offset + len / 2) as usize;
    bytes[at..(offset + len) as usize].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();

    let dataset = Dataset::builder().check_crc(false).open(folder.path()).unwrap();
    let decoder = Decoder::new().unwrap();
    let mut csr = Csr::<i32>::new();
    let mut read = |genes: &[u32]| {
        let columns = dataset.columns(&Genes::indices(genes))?;
        dataset.reader(&decoder).genes(&columns)?.range(0..40, &mut csr).map(|_| cells_of(&csr))
    };
    assert_eq!(read(&[9]).unwrap(), choose(&cells, &[9]));
    assert_eq!(read(&[]).unwrap(), choose(&cells, &[]));
    let error = read(&[9, 1]).unwrap_err();
    assert_eq!((error.part(), error.path()), (Part::Chunk(1, tilekern::Stream::Vals), Some(&*path)));
}

#[test]
fn genes_that_cannot_be_found() {
    let folder = tempfile::tempdir().unwrap();
    let cells = sample(3, 5);
    write(folder.path(), 5, &cells, 3, |w| w.var_names(["A", "B", "A", "", "Mt-Nd1"]));
    let dataset = Dataset::open(folder.path()).unwrap();
    let refused = |genes: Genes| {
        let error = dataset.columns(&genes).unwrap_err();
        assert_eq!(error.part(), Part::Genes, "{error}");
        (error.kind().name(), error.value_index(), error.to_string())
    };
    let (kind, index, text) = refused(Genes::names(["B", "A"]));
    assert_eq!((kind, index), ("ambiguous", Some(1)));
    assert!(text.ends_with("is the name of 2 (\"A\" stands for the genes 0, 2; choose by index or by id)"), "{text}");
    let (kind, index, text) = refused(Genes::names(["B", "MT-ND1", "x"]));
    assert_eq!((kind, index), ("missing", Some(1)));
    assert!(text.contains("no gene \"MT-ND1\", \"x\"; there is \"Mt-Nd1\""), "{text}");
    let (_, _, text) = refused(Genes::names((0..30).map(|n| format!("x{n}"))));
    assert!(text.contains("\"x9\" and 20 more"), "{text}");
    let (kind, index, _) = refused(Genes::names(["B", "", "B"]));
    assert_eq!((kind, index), ("repeated", Some(2)));
    let (kind, index, _) = refused(Genes::indices([1, 5]));
    assert_eq!((kind, index), ("out_of_range", Some(1)));
    assert_eq!(refused(Genes::indices([1, 0, 1])).1, Some(2));
    assert_eq!(refused(Genes::mask([true; 4])).0, "inconsistent");
    let (kind, _, text) = refused(Genes::all().order(GeneOrder::Source));
    assert!(kind == "missing" && text.contains(folder.path().to_str().unwrap()), "{text}");
    assert_eq!(dataset.columns(&Genes::names(["Mt-Nd1", "", "B"])).unwrap().genes(), [4, 3, 1]);

    let nameless = tempfile::tempdir().unwrap();
    write(nameless.path(), 6, &sample(3, 6), 3, |w| w);
    let other = Dataset::open(nameless.path()).unwrap();
    let error = other.columns(&Genes::names(["B"])).unwrap_err();
    assert_eq!((error.kind(), error.part()), (ErrorKind::Missing, Part::Genes));
    let decoder = Decoder::new().unwrap();
    let error = other.reader::<i32>(&decoder).genes(&dataset.columns(&Genes::all()).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Inconsistent { found: 5, expected: 6 });
    let mut limits = Limits::default();
    limits.max_scratch_bytes = 40;
    let small = Dataset::builder().limits(limits);
    let error = small.open(nameless.path()).unwrap().columns(&Genes::indices([0])).unwrap_err();
    assert_eq!(error.kind().name(), "limit_exceeded");
}

/// A choice of a choice.
#[test]
fn genes_twice() {
    let folder = tempfile::tempdir().unwrap();
    let cells = sample(9, 12);
    write(folder.path(), 12, &cells, 3, |w| w.tile_size(4));
    let dataset = Dataset::open(folder.path()).unwrap();
    let few = tempfile::tempdir().unwrap();
    write(few.path(), 4, &sample(1, 4), 3, |w| w);
    let first = dataset.columns(&Genes::indices([7, 3, 11, 0])).unwrap();
    let second = Dataset::open(few.path()).unwrap().columns(&Genes::indices([2, 1])).unwrap();
    let decoder = Decoder::new().unwrap();
    let reader = dataset.reader(&decoder).genes(&first).unwrap().genes(&second).unwrap();
    let mut csr = Csr::<i32>::new();
    reader.range(0..9, &mut csr).unwrap();
    assert_eq!(cells_of(&csr), choose(&cells, &[11, 3]));
}

#[test]
fn masks() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 3, &sample(5, 3), 3, |w| w);
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.cells_of_mask(&[true, false, false, true, true]).unwrap(), [0, 3, 4]);
    let error = dataset.cells_of_mask(&[true; 6]).unwrap_err();
    assert_eq!((error.kind(), error.part()), (ErrorKind::Inconsistent { found: 6, expected: 5 }, Part::Cells));
}

/// A directory that counts the bytes that are read.
struct Counting(Directory, Arc<AtomicU64>);

struct CountingObject(Box<dyn Object>, Arc<AtomicU64>);

impl Source for Counting {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        Ok(Box::new(CountingObject(self.0.open(name)?, self.1.clone())))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }
}

impl Object for CountingObject {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.1.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.0.read_at(offset, out)
    }
}

#[test]
fn costs_are_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let cells = sample(500, 900);
    write(folder.path(), 900, &cells, 500, |w| w.tile_size(200).encoder(encoder(70))); // more than a head is taken to have
    for crc in [true, false] {
        let read = Arc::new(AtomicU64::new(0));
        let source = Counting(Directory::new(folder.path()).unwrap(), read.clone());
        let dataset = Dataset::builder().check_crc(crc).open_source(Box::new(source)).unwrap();
        let decoder = Decoder::builder().threads(1).build().unwrap();
        let reader = dataset.reader::<u16>(&decoder);
        for wanted in
            [vec![], vec![0], vec![499, 3, 4, 3], (0..500).collect::<Vec<u64>>(), (0..500).step_by(37).collect()]
        {
            let cost = reader.cost(&wanted).unwrap();
            let before = read.load(Ordering::Relaxed);
            let mut csr = Csr::new();
            reader.rows(&wanted, &mut csr).unwrap();
            assert_eq!(cost.bytes_read, read.load(Ordering::Relaxed) - before, "{wanted:?} {crc}");
            assert_eq!((cost.cells, cost.nonzeros), (wanted.len() as u64, csr.nnz() as u64));
            assert_eq!(cost.result_bytes, (8 * csr.indptr().len() + 6 * csr.nnz()) as u64);
            let mut tiles: Vec<u64> = wanted.iter().map(|cell| cell / 200).collect();
            tiles.sort_unstable();
            tiles.dedup();
            assert_eq!(cost.tiles, tiles.len() as u64);
        }
        let all = reader.cost(&(0..500).collect::<Vec<_>>()).unwrap();
        assert_eq!((all.chunks, all.nonzeros_decoded), (210, dataset.manifest().nnz()));
        let before = read.load(Ordering::Relaxed);
        let some = reader.cost(&[250]).unwrap();
        assert!(
            read.load(Ordering::Relaxed) - before < dataset.manifest().tile_bytes()[1] / 3,
            "only the head is read"
        );
        assert!(some.chunks == 1 && some.nonzeros_decoded < all.nonzeros_decoded / 100);
        // Whoever reads several datasets is told which one lacks the cell.
        let errors = [
            reader.cost(&[500]).unwrap_err(),
            reader.rows(&[3, 500], &mut Csr::new()).unwrap_err(),
            reader.range(0..501, &mut Csr::new()).unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.part(), error.path()), (Part::Cells, Some(folder.path())), "{error}");
        }
        let columns = dataset.columns(&Genes::indices([5, 6, 7])).unwrap();
        assert!(
            dataset
                .reader::<u16>(&decoder)
                .genes(&columns)
                .unwrap()
                .cost(&(0..500).collect::<Vec<_>>())
                .unwrap()
                .nonzeros
                <= 1500
        );
    }
}

fn dataset(cells: &Cells, n_genes: u32, names: &[&str], tile_size: u64) -> (TempDir, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), n_genes, cells, 7, |w| {
        let w = w.tile_size(tile_size).encoder(encoder(2));
        if names.is_empty() { w } else { w.var_names(names.iter().copied()) }
    });
    let dataset = Dataset::open(folder.path()).unwrap();
    (folder, dataset)
}

fn read(collection: &Collection, cells: &[u64]) -> Cells {
    let mut all = Vec::new();
    for threads in [1, 3] {
        let decoder = Decoder::builder().threads(threads).build().unwrap();
        let mut csr = Csr::<i32>::new();
        let reader = collection.reader(&decoder);
        reader.rows(cells, &mut csr).unwrap();
        assert_eq!(csr.n_genes(), collection.n_genes());
        all.push(cells_of(&csr));
        if let [first, .., last] = cells
            && cells.windows(2).all(|pair| pair[1] == pair[0] + 1)
        {
            reader.range(*first..last + 1, &mut csr).unwrap();
            all.push(cells_of(&csr));
        }
    }
    assert!(all.iter().all(|cells| *cells == all[0]));
    all.swap_remove(0)
}

#[test]
fn datasets_one_behind_the_other() {
    let names = ["A", "B", "C", "D"];
    let parts = [sample(10, 4), Vec::new(), sample(17, 4), Vec::new(), sample(1, 4), Vec::new()];
    let all: Cells = parts.concat();
    let opened: Vec<_> = parts.iter().map(|cells| dataset(cells, 4, &names, 4)).collect();
    let (_folders, datasets): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let collection = Collection::new(datasets).unwrap();
    assert_eq!((collection.n_cells(), collection.n_genes(), collection.datasets().len()), (28, 4, 6));
    assert_eq!(
        [0, 9, 10, 26, 27].map(|cell| collection.locate(cell).unwrap()),
        [(0, 0), (0, 9), (2, 0), (2, 16), (4, 0)]
    );
    assert_eq!((collection.locate(28), collection.first_cell(4), collection.first_cell(5)), (None, 27, 28));
    assert_eq!(read(&collection, &(0..28).collect::<Vec<_>>()), all);
    assert_eq!(read(&collection, &[]), Cells::new());
    let wanted = [27, 0, 10, 9, 27, 26, 11];
    assert_eq!(read(&collection, &wanted), wanted.map(|cell| all[cell as usize].clone()));
    let decoder = Decoder::new().unwrap();
    let mut csr = Csr::<i32>::new();
    let reader = collection.reader(&decoder);
    for start in 0..=28 {
        for end in start..=28 {
            reader.range(start..end, &mut csr).unwrap();
            assert_eq!(cells_of(&csr), all[start as usize..end as usize]);
        }
    }
    assert_eq!(reader.range(3..29, &mut csr).unwrap_err().part(), Part::Cells);
    assert_eq!(reader.rows(&[0, 28], &mut csr).unwrap_err().value_index(), Some(1));
    let columns = collection.columns(&Genes::names(["D", "A"])).unwrap();
    reader.genes(&columns).unwrap().range(0..28, &mut csr).unwrap();
    assert_eq!(cells_of(&csr), choose(&all, &[3, 0]));
    assert_eq!(collection.cells_of_mask(&[false; 3]).unwrap_err().part(), Part::Cells);
}

#[test]
fn genes_by_name() {
    let cells = sample(12, 4);
    let (_a, a) = dataset(&cells, 4, &["A", "B", "C", "D"], 5);
    let (_b, b) = dataset(&cells, 4, &["C", "E", "A", "F"], 5);
    let (_c, c) = dataset(&cells, 4, &["A", "B", "C", "D"], 5);
    let [a, b, c] = [a, b, c].map(Arc::new);
    let map = |cells: &Cells, columns: [Option<i32>; 4]| -> Cells {
        let map = |cell: &Vec<(i32, i32)>| {
            let mut cell: Vec<(i32, i32)> =
                cell.iter().filter_map(|&(gene, count)| Some((columns[gene as usize]?, count))).collect();
            cell.sort_unstable();
            cell
        };
        cells.iter().map(map).collect()
    };
    let every: Vec<u64> = (0..36).collect();

    let first = GeneMatch::First(GeneKey::Name);
    let collection = Collection::matching([a.clone(), b.clone(), c.clone()], &first).unwrap();
    let expected = [cells.clone(), map(&cells, [Some(2), None, Some(0), None]), cells.clone()].concat();
    assert_eq!(collection.n_genes(), 4);
    assert_eq!(read(&collection, &every), expected);

    let union = GeneMatch::Union(GeneKey::Name);
    let collection = Collection::matching([a.clone(), b.clone(), c.clone()], &union).unwrap();
    let expected = [cells.clone(), map(&cells, [Some(2), Some(4), Some(0), Some(5)]), cells.clone()].concat();
    assert_eq!(collection.gene_names().unwrap().unwrap().iter().collect::<Vec<_>>(), ["A", "B", "C", "D", "E", "F"]);
    assert_eq!(read(&collection, &every), expected);
    let columns = collection.columns(&Genes::names(["F", "A", "D"])).unwrap();
    let decoder = Decoder::new().unwrap();
    let mut csr = Csr::<i32>::new();
    collection.reader(&decoder).genes(&columns).unwrap().range(0..36, &mut csr).unwrap();
    assert_eq!(cells_of(&csr), choose(&expected, &[5, 0, 3]));
    let error = collection.columns(&Genes::all().order(GeneOrder::Source)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing);

    // Equal lists need no map, whatever stands in them.
    let (_d, d) = dataset(&cells, 4, &["A", "A", "C", "D"], 5);
    let d = Arc::new(d);
    for how in [&first, &union] {
        assert_eq!(
            read(&Collection::matching([d.clone(), d.clone()], how).unwrap(), &every[..24]),
            [&cells[..], &cells].concat()
        );
    }
}

#[test]
fn datasets_that_do_not_match() {
    let cells = sample(3, 4);
    let (_a, a) = dataset(&cells, 4, &["A", "B", "C", "D"], 5);
    let (b_at, b) = dataset(&cells, 4, &["A", "C", "B", "D"], 5);
    let (c_at, c) = dataset(&sample(3, 3), 3, &["A", "B", "C"], 5);
    let (n_at, n) = dataset(&cells, 4, &[], 5);
    let (t_at, twice) = dataset(&cells, 4, &["X", "B", "B", "D"], 5);
    let [a, b, c, n, twice] = [a, b, c, n, twice].map(Arc::new);
    let refused = |datasets: [&Arc<Dataset>; 2], how: GeneMatch, at: &Path| {
        let error = Collection::matching(datasets.map(Clone::clone), &how).unwrap_err();
        assert_eq!((error.path(), error.part()), (Some(at), Part::Genes), "{error}");
        (error.kind().name(), error.value_index(), error.to_string())
    };
    let (kind, index, text) = refused([&a, &b], GeneMatch::Same, b_at.path());
    assert_eq!((kind, index), ("other_genes", Some(1)));
    assert!(text.contains("\"C\" in place of \"B\"; match them by name"), "{text}");
    assert_eq!(refused([&a, &c], GeneMatch::Same, c_at.path()).0, "other_genes");
    assert_eq!(refused([&a, &c], GeneMatch::Number, c_at.path()).0, "other_genes");
    assert_eq!(refused([&a, &n], GeneMatch::Same, n_at.path()).0, "missing");
    assert_eq!(refused([&n, &a], GeneMatch::First(GeneKey::Name), n_at.path()).0, "missing");
    let (kind, index, text) = refused([&a, &twice], GeneMatch::First(GeneKey::Name), t_at.path());
    assert_eq!((kind, index), ("ambiguous", Some(2)));
    assert!(text.contains("\"B\" stands for the genes 1 and 2"), "{text}");
    assert_eq!(refused([&twice, &a], GeneMatch::First(GeneKey::Name), t_at.path()).0, "ambiguous");
    assert_eq!(refused([&a, &twice], GeneMatch::Union(GeneKey::Name), t_at.path()).0, "ambiguous");
    let none = Collection::new(Vec::<Dataset>::new()).unwrap_err();
    assert_eq!((none.kind(), none.part()), (ErrorKind::Missing, Part::Option("datasets")));

    // A name that is not looked for may stand for several.
    let (_o, other) = dataset(&sample(3, 3), 3, &["A", "C", "Y"], 5);
    let matched = Collection::matching([Arc::new(other), twice], &GeneMatch::First(GeneKey::Name)).unwrap();
    assert_eq!(matched.n_genes(), 3);
    assert_eq!(Collection::matching([a, n.clone()], &GeneMatch::Number).unwrap().n_cells(), 6);
    assert_eq!(Collection::new([n]).unwrap().n_cells(), 3, "one alone needs no names");
}

/// The fault of a tile names the dataset that it is in.
#[test]
fn faults_name_the_dataset() {
    let cells = sample(10, 4);
    let (_a, a) = dataset(&cells, 4, &[], 5);
    let (at, b) = dataset(&cells, 4, &[], 5);
    let path = at.path().join("tiles/tile_000001.dct");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let collection = Collection::matching([a, b], &GeneMatch::Number).unwrap();
    for threads in [1, 3] {
        let decoder = Decoder::builder().threads(threads).build().unwrap();
        let reader = collection.reader(&decoder);
        let mut csr = Csr::<i32>::new();
        for error in [reader.range(0..20, &mut csr).unwrap_err(), reader.rows(&[19, 1], &mut csr).unwrap_err()] {
            assert_eq!((error.kind().name(), error.path()), ("checksum", Some(&*path)));
        }
        reader.range(0..15, &mut csr).unwrap();
    }
}

/// More than 2^31 nonzeros in all: one tile of 2^20 under 2,100 names.
#[test]
fn more_nonzeros_than_32_bits_count() {
    const SIDE: i32 = 1 << 10;
    const TILES: u64 = 2_100;
    let folder = tempfile::tempdir().unwrap();
    let cells: Cells = (0..SIDE).map(|cell| (0..SIDE).map(|gene| (gene, 1 + (cell + gene) % 3)).collect()).collect();
    write(folder.path(), SIDE as u32, &cells, SIDE as usize, |writer| writer.tile_size(SIDE as u64));
    let tile = |n: u64| folder.path().join(format!("tiles/tile_{n:06}.dct"));
    (1..TILES).for_each(|n| std::fs::hard_link(tile(0), tile(n)).unwrap());
    let path = folder.path().join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for key in ["tile_cells", "tile_nnz", "tile_bytes"] {
        manifest[key] = vec![manifest[key][0].clone(); TILES as usize].into();
    }
    manifest["n_cells"] = (TILES * SIDE as u64).into();
    std::fs::write(&path, manifest.to_string()).unwrap();

    let dataset = Dataset::open(folder.path()).unwrap();
    let nnz = TILES << 20;
    assert!(dataset.manifest().nnz() == nnz && nnz > 1 << 31);
    let (decoder, mut csr) = (Decoder::new().unwrap(), Csr::<i32>::new());
    let (n, last) = (dataset.n_cells(), cells.len() - 1);
    dataset.rows(&[n - 1, 0, n - 2], &decoder, &mut csr).unwrap();
    assert!(cells_of(&csr) == [cells[last].clone(), cells[0].clone(), cells[last - 1].clone()]);
    dataset.range(n - 1025..n - 1023, &decoder, &mut csr).unwrap();
    assert!(cells_of(&csr) == [cells[last].clone(), cells[0].clone()]);
    let cost = dataset.reader::<i32>(&decoder).cost(&(0..n).step_by(SIDE as usize).collect::<Vec<_>>()).unwrap();
    assert_eq!((cost.tiles, cost.nonzeros), (TILES, TILES << 10));
    // All of it at once is refused before it is read.
    let error = dataset.range(0..n, &decoder, &mut csr).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::LimitExceeded { needed, .. } if needed >= nnz), "{error}");
}
