//! Mini-batches: every cell once, exact resume, the same on any number of threads, ranks and lanes.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small numbers of the tests' own
#![cfg(target_endian = "little")]

#[path = "support/cells.rs"]
mod cells;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cells::{Cells, cells_of, write};
use tempfile::TempDir;
use tilekern::deltacel::dataset::{
    BatchState, Batches, BatchesBuilder, Collection, Dataset, GeneMatch, Genes, Remainder, Writer,
};
use tilekern::deltacel::{CsrView, Decoder, Encoder, Profile};
use tilekern::{Directory, Error, ErrorKind, Limits, Object, Part, Source};

/// Cells of a few genes, each cell different.
fn sample(n: usize) -> Cells {
    (0..n as i32).map(|cell| (0..cell % 4).map(|gene| (3 * gene + cell % 3, 1 + cell)).collect()).collect()
}

fn dataset(n: usize, tile_size: u64) -> (TempDir, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 12, &sample(n), 50, |w| w.tile_size(tile_size));
    let dataset = Dataset::open(folder.path()).unwrap();
    (folder, dataset)
}

fn one_thread() -> tilekern::deltacel::DecoderBuilder {
    Decoder::builder().threads(1)
}

/// The cells of each batch and the state after it; the counts are compared with the sample.
fn epoch(options: &BatchesBuilder) -> Vec<(Vec<u64>, BatchState)> {
    let batches = options.build::<i32>().unwrap();
    let n = batches.n_batches();
    let all: Vec<_> = batches
        .map(|batch| {
            let batch = batch.unwrap();
            let expected: Cells = {
                let all = sample(1 + batch.cells().iter().max().map_or(0, |&cell| cell as usize));
                batch.cells().iter().map(|&cell| all[cell as usize].clone()).collect()
            };
            assert_eq!(cells_of(batch.csr()), expected);
            (batch.cells().to_vec(), batch.state())
        })
        .collect();
    assert_eq!(all.len() as u64, n);
    all
}

/// The batches of all ranks in the order in which they are dealt out.
fn all_ranks(options: &BatchesBuilder, ranks: u64) -> Vec<Vec<u64>> {
    let of: Vec<_> = (0..ranks).map(|rank| epoch(&options.clone().rank(rank, ranks))).collect();
    for step in 0..of[0].len() {
        assert!(of.iter().all(|rank| rank.len() == of[0].len() && rank[step].1 == of[0][step].1), "states differ");
    }
    (0..of[0].len()).flat_map(|step| of.iter().map(move |rank| rank[step].0.clone())).collect()
}

#[test]
fn every_cell_once_an_epoch() {
    for n in [0, 1, 30, 101] {
        let (_folder, dataset) = dataset(n, 16);
        let options = Batches::builder(dataset).batch_size(8).block(5).window(24).seed(3).decoder(one_thread());
        for (ranks, lanes) in [(1, 1), (2, 2), (3, 1), (4, 3), (5, 4), (40, 2)] {
            let options = options.clone().lanes(lanes).epoch(ranks);
            let share = all_ranks(&options, ranks);
            let mut seen: Vec<u64> = share.concat();
            seen.sort_unstable();
            assert_eq!(seen, (0..n as u64).collect::<Vec<_>>());

            let drop = all_ranks(&options.clone().remainder(Remainder::Drop), ranks);
            assert!(drop.iter().all(|batch| batch.len() == 8));
            let mut seen: Vec<u64> = drop.concat();
            assert!(n as u64 - (seen.len() as u64) < 8 * ranks);
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 8 * drop.len());
            // What both have is the same, in the same order.
            assert_eq!(share.concat()[..8 * drop.len()], drop.concat());

            let repeat = all_ranks(&options.clone().remainder(Remainder::Repeat), ranks);
            assert!(repeat.iter().all(|batch| batch.len() == 8));
            let repeat = repeat.concat();
            let times = |cell: u64| repeat.iter().filter(|&&other| other == cell).count();
            let (least, most) = (0..n as u64).map(times).fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
            assert!(n == 0 || least >= 1 && most <= least + 1, "{least} to {most} times");
        }
    }
}

#[test]
fn resume_everywhere() {
    let (_folder, dataset) = dataset(75, 16);
    let options = Batches::builder(dataset).batch_size(4).block(3).window(12).lanes(2).seed(9).decoder(one_thread());
    for remainder in [Remainder::Share, Remainder::Drop, Remainder::Repeat] {
        let options = options.clone().remainder(remainder).epoch(2);
        for ranks in [1, 2, 3] {
            let whole = epoch(&options.clone().rank(0, ranks));
            for taken in 0..=whole.len() {
                let state = match taken.checked_sub(1) {
                    Some(last) => whole[last].1,
                    None => BatchState { seed: 9, epoch: 2, position: 0 },
                };
                // The same ranks, other threads: as if nothing had happened.
                let again =
                    options.clone().resume(state).rank(0, ranks).decoder(Decoder::builder().threads(3)).prefetch(1);
                assert_eq!(epoch(&again), whole[taken..]);
            }
            // Another number of ranks: what is left is dealt out anew, cell by cell in the same order.
            let steps = whole.len();
            for taken in 0..steps {
                let state = if taken == 0 { BatchState { seed: 9, epoch: 2, position: 0 } } else { whole[taken - 1].1 };
                let position = state.position as usize;
                for other in [1, 2, 5] {
                    let rest = all_ranks(&options.clone().resume(state), other).concat();
                    let order = all_ranks(&options.clone().remainder(Remainder::Share), 1).concat();
                    let expected = order[position..].iter().chain(order.iter().cycle()).take(rest.len());
                    assert_eq!(rest, expected.copied().collect::<Vec<_>>(), "{remainder:?} {ranks} {taken} {other}");
                    match remainder {
                        Remainder::Share => assert_eq!(rest.len(), 75 - position),
                        Remainder::Drop => assert!(75 - position - rest.len() < 4 * other as usize),
                        Remainder::Repeat => assert!(rest.len() >= 75 - position),
                    }
                }
            }
        }
    }
    let over = BatchState { seed: 9, epoch: 0, position: 75 };
    assert_eq!(epoch(&options.clone().resume(over)), []);
    assert_eq!(epoch(&options.clone().resume(over.next_epoch())), epoch(&options.clone().epoch(1)));
}

#[test]
fn only_what_the_order_is_made_of_matters() {
    let (folder, dataset) = dataset(200, 32);
    let dataset = Arc::new(dataset);
    let options = Batches::builder(dataset.clone()).batch_size(16).block(8).window(64).seed(1);
    let cells = |options: &BatchesBuilder| epoch(options).into_iter().flat_map(|batch| batch.0).collect::<Vec<u64>>();
    let expected = cells(&options);
    for threads in [1, 2, 4] {
        for prefetch in [0, 1, 3, 100] {
            let options = options.clone().decoder(Decoder::builder().threads(threads)).prefetch(prefetch);
            assert_eq!(cells(&options), expected);
        }
    }
    assert_eq!(cells(&options.clone().dense(true)), expected);
    // Another way to have the same cells.
    let two = Dataset::builder().check_crc(false).open(folder.path()).unwrap();
    assert_eq!(cells(&options.clone().resume(BatchState { seed: 1, ..BatchState::default() })), expected);
    assert_eq!(cells(&Batches::builder(two).batch_size(16).block(8).window(64).seed(1)), expected);
    for other in
        [options.clone().seed(2), options.clone().epoch(1), options.clone().block(9), options.clone().window(80)]
    {
        let other = cells(&other);
        assert_ne!(other, expected);
        // A cell at the same place by chance only: one is expected, and more than nine are not.
        assert!(other.iter().zip(&expected).filter(|(a, b)| a == b).count() < 10);
    }
    assert_eq!(cells(&options.clone().shuffle(false)), (0..200).collect::<Vec<_>>());
}

#[test]
fn cells_and_genes_may_be_chosen() {
    let (_folder, dataset) = dataset(60, 16);
    let chosen: Vec<u64> = (0..60).filter(|cell| cell % 7 < 3).collect();
    let options = Batches::builder(dataset).cells(&chosen[..]).batch_size(5).block(4).window(10);
    let mut seen: Vec<u64> = epoch(&options).into_iter().flat_map(|batch| batch.0).collect();
    seen.sort_unstable();
    assert_eq!(seen, chosen);
    let genes = options.clone().genes(Genes::indices([7, 0])).dense(true);
    for batch in genes.build::<u16>().unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.csr().n_genes(), 2);
        let dense = batch.dense().unwrap();
        assert_eq!(dense.len(), 2 * batch.cells().len());
        let all = sample(60);
        for (row, &cell) in dense.chunks(2).zip(batch.cells()) {
            let count =
                |gene| all[cell as usize].iter().find(|nonzero| nonzero.0 == gene).map_or(0, |nonzero| nonzero.1);
            assert_eq!([i32::from(row[0]), i32::from(row[1])], [count(7), count(0)]);
        }
        assert_eq!(batch.into_csr().n_genes(), 2);
    }
    // No gene at all leaves cells and no columns.
    let none = options.genes(Genes::indices([])).dense(true);
    let batch = none.build::<f32>().unwrap().next().unwrap().unwrap();
    assert_eq!((batch.csr().nnz(), batch.dense(), batch.cells().len()), (0, Some(&[][..]), 5));
}

#[test]
fn over_a_collection() {
    let (folder, first) = dataset(40, 16);
    let second = Dataset::open(folder.path()).unwrap();
    let both = Collection::matching([first, second], &GeneMatch::Number).unwrap();
    let mut seen = Vec::new();
    for batch in Batches::builder(&both).batch_size(7).block(3).window(21).build::<i32>().unwrap() {
        let batch = batch.unwrap();
        let all = sample(40);
        let expected: Cells = batch.cells().iter().map(|&cell| all[cell as usize % 40].clone()).collect();
        assert_eq!(cells_of(batch.csr()), expected);
        seen.extend_from_slice(batch.cells());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..80).collect::<Vec<_>>());
}

#[test]
fn options_that_do_not_hold() {
    let (_folder, dataset) = dataset(20, 8);
    let options = Batches::builder(dataset).batch_size(4);
    let refused = |options: BatchesBuilder| {
        let error = options.build::<f32>().map(|_| ()).unwrap_err();
        (error.kind().name(), error.part())
    };
    let range = |name| ("out_of_range", Part::Option(name));
    assert_eq!(refused(options.clone().batch_size(0)), range("batch_size"));
    assert_eq!(refused(options.clone().batch_size(u64::MAX)), range("batch_size"));
    assert_eq!(refused(options.clone().block(0)), range("block"));
    assert_eq!(refused(options.clone().lanes(0)), range("lanes"));
    assert_eq!(refused(options.clone().lanes(u64::MAX)), range("lanes"));
    assert_eq!(refused(options.clone().rank(0, 0)), range("ranks"));
    assert_eq!(refused(options.clone().rank(3, 3)), range("rank"));
    assert_eq!(refused(options.clone().rank(0, u64::MAX)), range("ranks"));
    assert_eq!(refused(options.clone().cells([3, 20])), ("out_of_range", Part::Cells));
    assert_eq!(refused(options.clone().cells([3, 3])), ("out_of_range", Part::Cells));
    assert_eq!(refused(options.clone().genes(Genes::indices([12]))), ("out_of_range", Part::Genes));
    let at = |position| options.clone().resume(BatchState { position, ..BatchState::default() });
    assert_eq!(refused(at(24)), range("position"));
    assert_eq!(refused(at(6)), ("misaligned", Part::Option("position")));
    assert!(at(20).build::<f32>().unwrap().next().is_none());
    let mut limits = Limits::default();
    limits.max_output_bytes = 100;
    let small = options.clone().decoder(Decoder::builder().limits(limits)).dense(true);
    assert_eq!(refused(small), ("limit_exceeded", Part::Option("dense")));
    // Huge numbers that are allowed take no memory for themselves.
    assert_eq!(epoch(&options.clone().window(u64::MAX).block(1 << 60).lanes(1 << 16)).len(), 5);
    assert_eq!(epoch(&options.clone().window_bytes(0)).len(), 5);
    assert_eq!(epoch(&options.window_bytes(u64::MAX)).len(), 5);
}

/// A directory that counts the tiles that are opened, and takes its time for each.
struct Slow(Directory, Arc<AtomicU64>, Duration);

impl Source for Slow {
    fn open(&self, name: &str) -> Result<Box<dyn Object>, Error> {
        if name.starts_with("tiles/") {
            std::thread::sleep(self.2);
            self.1.fetch_add(1, Ordering::SeqCst);
        }
        self.0.open(name)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }
}

fn slow(folder: &TempDir, pause: Duration) -> (Dataset, Arc<AtomicU64>) {
    let opened = Arc::new(AtomicU64::new(0));
    let source = Slow(Directory::new(folder.path()).unwrap(), opened.clone(), pause);
    (Dataset::builder().open_source(Box::new(source)).unwrap(), opened)
}

/// However long nobody takes a batch, no more than two windows are in memory.
#[test]
fn memory_is_bounded() {
    let (folder, _) = dataset(400, 10);
    // A block is a tile and a window, so that each load opens one.
    let (dataset, opened) = slow(&folder, Duration::ZERO);
    let options = Batches::builder(dataset).batch_size(10).block(10).window(10).prefetch(1).decoder(one_thread());
    let mut batches = options.build::<i32>().unwrap();
    for taken in 0..5 {
        let settled = |before: u64| {
            std::thread::sleep(Duration::from_millis(100));
            opened.load(Ordering::SeqCst) == before
        };
        while opened.load(Ordering::SeqCst) <= taken || !settled(opened.load(Ordering::SeqCst)) {}
        // In the hands of the taker, in the queue, in the hands of who waits to put it there, and loaded behind these.
        let ahead = opened.load(Ordering::SeqCst) - taken;
        assert!((1..=3).contains(&ahead), "{ahead} loads ahead");
        batches.next().unwrap().unwrap();
    }
}

#[test]
fn dropping_ends_the_threads() {
    let (folder, _) = dataset(2000, 10);
    let (dataset, opened) = slow(&folder, Duration::from_millis(20));
    // One load is the whole epoch: 200 tiles, four seconds.
    let options = Batches::builder(dataset).batch_size(10).window(2000).decoder(one_thread());
    let mut batches = options.build::<i32>().unwrap();
    while opened.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let start = Instant::now();
    drop(batches);
    let tiles = opened.load(Ordering::SeqCst);
    assert!(start.elapsed() < Duration::from_secs(2) && tiles < 100, "{tiles} tiles in {:?}", start.elapsed());
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(opened.load(Ordering::SeqCst), tiles, "a thread goes on");

    // While the queue is full, and after the end.
    let options = options.window(10).prefetch(1);
    batches = options.build::<i32>().unwrap();
    batches.next().unwrap().unwrap();
    let kept = batches.next().unwrap().unwrap();
    drop(batches);
    assert_eq!(kept.cells().len(), 10, "a batch may outlive the others");
    drop(kept);
}

#[test]
fn errors_come_in_their_turn() {
    let (folder, _) = dataset(100, 10);
    let path = folder.path().join("tiles/tile_000006.dct");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let options = |dataset: Dataset| Batches::builder(dataset).batch_size(5).block(10).window(10).seed(4);
    let order: Vec<u64> = epoch(&options(dataset(100, 10).1)).into_iter().flat_map(|batch| batch.0).collect();
    let first = order.iter().position(|cell| (60..70).contains(cell)).unwrap() / 5;
    for (threads, prefetch) in [(1, 1), (3, 1), (3, 50)] {
        let decoder = Decoder::builder().threads(threads);
        let dataset = Dataset::open(folder.path()).unwrap();
        let mut batches = options(dataset).decoder(decoder).prefetch(prefetch).build::<i32>().unwrap();
        for n in 0..first {
            assert_eq!(batches.next().unwrap().unwrap().cells(), &order[5 * n..5 * n + 5]);
        }
        assert_eq!(batches.state().position, 5 * first as u64);
        let error = batches.next().unwrap().unwrap_err();
        assert_eq!((error.kind().name(), error.path()), ("checksum", Some(&*path)));
        assert!(batches.next().is_none() && batches.next().is_none());
    }
    // A count that the type does not hold is one, too.
    let folder = tempfile::tempdir().unwrap();
    let cells: Cells = (0..20).map(|cell| vec![(0, if cell == 13 { 70_000 } else { 1 })]).collect();
    write(folder.path(), 1, &cells, 50, |w| w.tile_size(5));
    let options =
        Batches::builder(Dataset::open(folder.path()).unwrap()).batch_size(5).window(5).block(5).shuffle(false);
    let results: Vec<_> = options.build::<u16>().unwrap().map(|batch| batch.map(|batch| batch.cells()[0])).collect();
    assert!(matches!(&results[..], [Ok(0), Ok(5), Err(error)] if error.kind().name() == "out_of_range"), "{results:?}");
}

/// Batches of cells that are sorted by label, compared with a full shuffle.
#[test]
fn labels_are_mixed() {
    // 12,000 cells without counts, 1,000 of each of 12 labels: only numbers matter.
    let folder = tempfile::tempdir().unwrap();
    let mut writer =
        Writer::builder(1).encoder(Encoder::builder().profile(Profile::Plain(1))).create(folder.path()).unwrap();
    writer.push(&CsrView { n_genes: 1, indptr: &[0; 12_001], indices: &[], values: &[] }).unwrap();
    writer.finish().unwrap();
    let dataset = Arc::new(Dataset::open(folder.path()).unwrap());
    let batch = 100;
    // The variance of the number of cells of a label in a batch, over batches, labels and epochs, as a ratio to that of
    // cells drawn without order.
    let inflation = |block, window| {
        let (mut sum, mut n) = (0.0, 0.0);
        for epoch in 0..6 {
            let options =
                Batches::builder(dataset.clone()).batch_size(batch).block(block).window(window).seed(11).epoch(epoch);
            for batch in options.decoder(one_thread()).build::<u16>().unwrap() {
                let mut counts = [0.0; 12];
                batch.unwrap().cells().iter().for_each(|&cell| counts[cell as usize / 1000] += 1.0);
                sum += counts.iter().map(|count: &f64| (count - batch_mean()).powi(2)).sum::<f64>();
                n += 12.0;
            }
        }
        sum / n / (batch as f64 / 12.0 * 11.0 / 12.0)
    };
    fn batch_mean() -> f64 {
        100.0 / 12.0
    }
    // 720 batches of 12 labels: the ratio has a sigma of about sqrt(2 / 720 / 11) = 0.016 where batches are independent.
    for (block, window) in [(1, 100), (1, 1200), (1, 12_000)] {
        let found = inflation(block, window);
        assert!((found - 1.0).abs() < 0.1, "{found} with blocks of {block} in windows of {window}");
    }
    // Blocks: 1 + batch / (window / block), as the documentation says, less what a finite set of blocks takes away. The
    // windows, 60 and fewer of 11 free labels, are what is drawn: sigma is a tenth.
    for (block, window) in [(10, 1200), (20, 1200), (50, 1200)] {
        let blocks = window as f64 / block as f64;
        let predicted = 1.0 + (batch as f64 - 1.0) / blocks * (1.0 - window as f64 / 12_000.0);
        let found = inflation(block, window);
        println!("blocks of {block}, windows of {window}: {found:.2} times the variance, {predicted:.2} predicted");
        assert!((found / predicted - 1.0).abs() < 0.3, "{found} where {predicted} was predicted");
    }
    // No shuffle: a batch is of one label.
    assert!(inflation(1000, 100) > 50.0);
}

#[cfg(feature = "obs")]
mod with_obs {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int8Type, Int64Type};
    use arrow_array::{Array, ArrayRef, Int8Array, Int64Array, RecordBatch};
    use tilekern::deltacel::dataset::GeneKey;
    use tilekern::deltacel::dataset::obs::{Category, ObsColumn, ObsSchema, ObsType};

    use super::*;

    /// 30 cells of types that only this dataset may have, and a number: that of the cell and `first`.
    fn with_types(types: [&str; 2], first: i64, score: bool) -> (TempDir, Dataset) {
        let folder = tempfile::tempdir().unwrap();
        let mut columns = vec![
            ObsColumn::category("cell_type", types.map(Category::from)),
            ObsColumn::plain("number", ObsType::Int64),
        ];
        if score {
            columns.push(ObsColumn::plain("score", ObsType::Int64));
        }
        let schema = ObsSchema { columns };
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..30).map(|cell| first + cell)));
        let codes: ArrayRef = Arc::new(Int8Array::from_iter_values((0..30).map(|cell| cell % 3 - 1)));
        let arrays = [codes, numbers.clone(), numbers];
        let table = RecordBatch::try_new(Arc::new(schema.arrow()), arrays[..schema.columns.len()].to_vec()).unwrap();
        let names: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["A", "B"]));
        let ids: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["E1", if score { "E3" } else { "E2" }]));
        let var = RecordBatch::try_from_iter([("index", names), ("gene_ids", ids)]).unwrap();
        let mut writer = Writer::builder(2).tile_size(8).var(var).obs(schema, 2).create(folder.path()).unwrap();
        let indptr: Vec<i64> = (0..=30).collect();
        let values: Vec<i32> = (1..=30).collect();
        let view = CsrView { n_genes: 2, indptr: &indptr, indices: &[1; 30], values: &values };
        writer.push_with_obs(&view, &table).unwrap();
        writer.finish().unwrap();
        let dataset = Dataset::open(folder.path()).unwrap();
        (folder, dataset)
    }

    fn types(rows: &RecordBatch) -> Vec<Option<String>> {
        let column = rows.column_by_name("cell_type").unwrap().as_dictionary::<Int8Type>();
        let values = column.values().as_string::<i32>();
        column.keys().iter().map(|key| key.map(|key| values.value(key as usize).to_owned())).collect()
    }

    #[test]
    fn tables_of_several_datasets() {
        let (_a, a) = with_types(["T", "B"], 0, false);
        let (_b, b) = with_types(["NK", "T"], 100, true);
        let (_c, c) = dataset(5, 3);
        let [a, b, c] = [a, b, c].map(Arc::new);
        let both = Collection::new([a.clone(), b.clone()]).unwrap();
        let obs = both.obs().unwrap().unwrap();
        let categories: Vec<String> = obs.schema().columns[0].categories.iter().map(Category::to_string).collect();
        assert_eq!(categories, ["T", "B", "NK"]);
        let rows = obs.values(&["number", "cell_type", "score"], &[31, 2, 30, 1, 59, 31]).unwrap();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(types(&rows), [some("NK"), some("B"), None, some("T"), some("T"), some("NK")]);
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().values()[..], [101, 2, 100, 1, 129, 101]);
        let score = rows.column(2).as_primitive::<Int64Type>();
        assert!(score.is_null(1) && score.value(4) == 129);
        let codes = obs.codes(&["cell_type"], &[31, 2, 30]).unwrap();
        assert_eq!(codes.column(0).as_primitive::<Int8Type>().values()[..], [2, 1, -1]);
        assert_eq!(obs.codes(&["cell_type"], &[]).unwrap().num_rows(), 0);
        assert_eq!(obs.values(&[], &[0, 59]).unwrap().num_rows(), 2);
        let passing = obs.filter("cell_type == \"T\" && number >= 25").unwrap();
        let expected: Vec<u64> =
            (0..60).filter(|&c| if c < 30 { c % 3 == 1 && c >= 25 } else { (c - 30) % 3 == 2 }).collect();
        assert_eq!(passing, expected);
        assert_eq!(obs.filter("score is null").unwrap(), (0..30).collect::<Vec<_>>());
        assert_eq!(obs.filter("nothing == 1").unwrap_err().part(), Part::Filter);
        let error = obs.codes(&["nothing"], &[0]).unwrap_err();
        assert_eq!((error.kind(), error.part()), (ErrorKind::Missing, Part::Option("column")));
        assert_eq!(obs.codes(&[], &[60]).unwrap_err().part(), Part::Cells);

        // Genes of the two: the same names, of which one has another id.
        let ids = GeneKey::Id("gene_ids".into());
        let union = Collection::matching([a.clone(), b.clone()], &GeneMatch::Union(ids.clone())).unwrap();
        assert_eq!(union.n_genes(), 3);
        assert_eq!(union.columns(&Genes::ids("gene_ids", ["E3", "E1"])).unwrap().genes(), [2, 0]);
        assert_eq!(a.columns(&Genes::names(["B"])).unwrap().genes(), [1], "names of the index");
        let error = a.columns(&Genes::ids("gene_id", ["E1"])).unwrap_err();
        assert!(error.to_string().contains("no column \"gene_id\"; it has \"index\", \"gene_ids\""), "{error}");
        let none = Collection::from(c.clone());
        assert!(none.obs().unwrap().is_none());
        // A dataset without a table has missing values.
        let mixed = Collection::matching([c, a], &GeneMatch::Number);
        assert_eq!(mixed.unwrap_err().kind(), ErrorKind::OtherGenes);
    }

    #[test]
    fn columns_come_with_batches() {
        let (_a, a) = with_types(["T", "B"], 0, false);
        let (_b, b) = with_types(["NK", "T"], 30, false);
        let both = Collection::new([a, b]).unwrap();
        let options = Batches::builder(&both).batch_size(7).block(4).window(28).obs(["number", "cell_type"]);
        let mut rows = 0;
        for batch in options.build::<f32>().unwrap() {
            let batch = batch.unwrap();
            let obs = batch.obs().unwrap();
            let numbers = obs.column(0).as_primitive::<Int64Type>();
            assert!(numbers.values().iter().zip(batch.cells()).all(|(&number, &cell)| number as u64 == cell));
            let wanted = both.obs().unwrap().unwrap().values(&["cell_type"], batch.cells()).unwrap();
            assert_eq!(types(obs), types(&wanted));
            rows += obs.num_rows();
        }
        assert_eq!(rows, 60);
        #[cfg(feature = "arrow")]
        for batch in options.build::<u16>().unwrap() {
            let batch = batch.unwrap();
            let cells = batch.cells().to_vec();
            let arrow = batch.into_arrow().unwrap();
            let names: Vec<_> = arrow.schema().fields().iter().map(|field| field.name().clone()).collect();
            assert_eq!(names, ["gene", "count", "number", "cell_type"]);
            let counts = arrow.column(1).as_list::<i64>();
            let first = counts.value(0).as_primitive::<arrow_array::types::UInt16Type>().value(0);
            assert_eq!(u64::from(first), cells[0] % 30 + 1);
        }
        let error = options.obs(["nothing"]).build::<f32>().map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Missing);
        let (_c, c) = dataset(5, 3);
        let error = Batches::builder(c).obs(["number"]).build::<f32>().map(|_| ()).unwrap_err();
        assert_eq!((error.kind(), error.part()), (ErrorKind::Missing, Part::Option("obs")));
    }
}
