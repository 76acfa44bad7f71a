//! The end of docs/tutorial.md: batches of a dataset, as a training loop takes them.

use std::time::Instant;

use tilekern::arrow_array::cast::AsArray;
use tilekern::deltacel::dataset::{Batches, Dataset, Genes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: batches DATASET")?;
    let dataset = Dataset::open(path)?;
    let genes = Genes::indices((0..200).collect::<Vec<u32>>()); // columns are in the order of their counts, most first
    let cells = dataset.obs()?.ok_or("no table of cells")?.filter("n_umi >= 100")?;
    let options = Batches::builder(dataset)
        .cells(cells) // those that pass the filter
        .genes(genes)
        .obs(["cell_type"])
        .batch_size(64)
        .dense(true)
        .seed(1);

    let mut state = None;
    for epoch in 0..2 {
        let (start, mut n) = (Instant::now(), 0);
        for batch in options.clone().epoch(epoch).build::<f32>()? {
            let batch = batch?;
            let matrix = batch.dense().expect("asked for"); // cells x 200 genes, row by row
            let labels = batch.obs().expect("asked for").column(0).as_any_dictionary().keys();
            assert_eq!(matrix.len(), labels.len() * 200);
            n += labels.len(); // here the model takes its step
            state = Some(batch.state());
        }
        println!("epoch {epoch}: {n} cells, {:.0} a second", n as f64 / start.elapsed().as_secs_f64());
    }

    // What was kept with the model is enough to go on: here there is nothing left of the epoch.
    let rest = options.resume(state.ok_or("no batches")?).build::<f32>()?;
    println!("after {:?}: {} batches", state, rest.count());
    Ok(())
}
