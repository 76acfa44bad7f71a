//! `tilekern head`: the first cells, as a person looks at them.

use indicatif::HumanCount;
use serde::Serialize;
use tilekern::deltacel::dataset::obs::getter;

use crate::Verdict;
use crate::console::Console;
use crate::fault::Stop;
use crate::options::Engine;
use crate::output::{Obs, names};
use crate::selection::{Choice, Selection};
use crate::source::{Input, Source};
use crate::table::{Align, Table};
use crate::text::{counted, cut, json, shown};

/// Show the first cells: their largest counts with the genes' names, and what is known of each
///
/// A line for each cell: its number, its nonzeros, the sum of its counts, its largest counts (of equal ones the first), and
/// the columns of the table of cells. Long texts are cut; --json has them whole.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern head counts                            the first five cells
  tilekern head counts -n 20 --top 3              more cells, fewer genes of each
  tilekern head counts --where 'n_umi > 500'      the first that pass
  tilekern head counts --cells 7,1000..1003       some cells
  tilekern head counts --genes CD3E,MS4A1 --first these genes, in the order of the columns")]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// Cells
    #[arg(short = 'n', value_name = "N", default_value_t = 5)]
    n: u64,

    /// Counts of each cell
    #[arg(long, value_name = "K", default_value_t = 5)]
    top: usize,

    /// The first counts of each cell in place of the largest
    #[arg(long)]
    first: bool,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    engine: Engine,
}

/// The longest text that is shown whole in a line.
const WIDTH: usize = 24;

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    n_cells: u64,
    n_genes: u32,
    cells: Vec<Cell>,
}

#[derive(Serialize)]
struct Cell {
    cell: u64,
    nnz: u64,
    sum: u64,
    genes: Vec<Gene>,
    obs: Vec<Known>,
}

#[derive(Serialize)]
struct Gene {
    gene: u32,
    name: Option<String>,
    count: i32,
}

/// A value of the table of cells.
#[derive(Serialize)]
struct Known {
    column: String,
    value: serde_json::Value,
    #[serde(skip)]
    text: String,
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let decoder = args.engine.decoder()?;
    let source = Source::open(&args.input, decoder.limits())?;
    let mut selection = Selection::new(&source, &args.choice, decoder, console)?;
    let (n_cells, n_genes) = (selection.n_cells(), selection.n_genes());
    selection.truncate(args.n);
    let names = names(&selection)?;
    let mut obs = Obs::of(&selection)?;
    let columns: Vec<String> = match &obs {
        Some(obs) => obs.table().schema().columns.iter().map(|column| column.name.clone()).collect(),
        None => Vec::new(),
    };
    let mut cells = Vec::new();
    selection.each(|piece, rows| {
        let known = match &mut obs {
            Some(obs) => Some(obs.values(&columns.iter().map(String::as_str).collect::<Vec<_>>(), piece)?),
            None => None,
        };
        let getters: Vec<_> =
            known.iter().flat_map(|known| known.columns()).filter_map(|array| getter(&**array)).collect();
        for (row, (cell, (genes, counts))) in piece.cells().zip(rows.each()).enumerate() {
            let mut pairs: Vec<(i32, i32)> = genes.iter().copied().zip(counts.iter().copied()).collect();
            if !args.first {
                pairs.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
            }
            pairs.truncate(args.top);
            let gene = |(column, count): (i32, i32)| {
                let column = column.unsigned_abs();
                let name = names.as_ref().and_then(|names| names.get(column as usize).cloned());
                Gene { gene: selection.stored(column), name, count }
            };
            let value = |(column, get): (&String, &tilekern::deltacel::dataset::obs::Getter<'_>)| Known {
                column: column.clone(),
                value: json(get(row)),
                text: shown(get(row)),
            };
            cells.push(Cell {
                cell,
                nnz: genes.len() as u64,
                sum: counts.iter().map(|count| u64::from(count.unsigned_abs())).sum(),
                genes: pairs.into_iter().map(gene).collect(),
                obs: columns.iter().zip(&getters).map(value).collect(),
            });
        }
        Ok(())
    })?;
    selection.progress.finish_and_clear();
    let path = &*source.path().to_string_lossy();
    let record = Record { path, kind: source.kind(), n_cells, n_genes, cells };
    if console.json {
        console.record(&record)?;
    } else {
        print(&record, &columns, console)?;
    }
    Ok(Verdict::Sound)
}

/// Counts that are shown of each cell at least, however narrow a terminal is.
const FEW: usize = 2;

/// A line for each cell, with so many of its counts.
fn lines(record: &Record<'_>, columns: &[String], counts: usize) -> Vec<String> {
    let fixed = [("cell", Align::Right), ("nonzeros", Align::Right), ("sum", Align::Right), ("counts", Align::Left)];
    let name = |column: &String| (short(column), Align::Left);
    let fixed = fixed.into_iter().map(|(heading, align)| (heading.to_owned(), align));
    let mut table = Table::new(fixed.chain(columns.iter().map(name)));
    for cell in &record.cells {
        let gene = |gene: &Gene| match &gene.name {
            Some(name) => format!("{} {}", short(name), gene.count),
            None => format!("#{} {}", gene.gene, gene.count),
        };
        let counts: Vec<String> = cell.genes.iter().take(counts).map(gene).collect();
        let fixed = [
            cell.cell.to_string(),
            HumanCount(cell.nnz).to_string(),
            HumanCount(cell.sum).to_string(),
            counts.join(", "),
        ];
        table.row(fixed.into_iter().chain(cell.obs.iter().map(|known| cut(&known.text, WIDTH).into_owned())));
    }
    table.lines().collect()
}

/// The lines with as many counts as there is room for.
fn fitting(record: &Record<'_>, columns: &[String], width: Option<usize>) -> Vec<String> {
    let most = record.cells.iter().map(|cell| cell.genes.len()).max().unwrap_or(0);
    let Some(width) = width else { return lines(record, columns, most) };
    // Each count takes four characters at the least.
    let few = most.min(FEW);
    let fits = |lines: &Vec<String>| lines.iter().all(|line| line.chars().count() <= width);
    let some = (few..=most.min(width / 4).max(few)).rev().map(|counts| lines(record, columns, counts)).find(fits);
    some.unwrap_or_else(|| lines(record, columns, few))
}

fn print(record: &Record<'_>, columns: &[String], console: &mut Console) -> Result<(), Stop> {
    let lines = fitting(record, columns, console.width());
    console.rows(lines)?;
    let more = record.n_cells - record.cells.len() as u64;
    if more > 0 {
        console.line(format_args!(
            "{} more {}, of {}",
            HumanCount(more),
            if more == 1 { "cell" } else { "cells" },
            counted(record.n_genes, "gene")
        ))?;
    }
    Ok(())
}

/// A name as a line has room for it.
fn short(name: &str) -> String {
    let name = shown(tilekern::deltacel::dataset::obs::Value::String(name));
    cut(&name, WIDTH).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_fewer_counts() {
        let gene = |gene| Gene { gene, name: Some(format!("GENE{gene}")), count: 17 };
        let known = Known { column: "cell_type".into(), value: "T".into(), text: "T".into() };
        let cell = Cell { cell: 0, nnz: 5, sum: 85, genes: (0..5).map(gene).collect(), obs: vec![known] };
        let record = Record { path: "x", kind: "x", n_cells: 1, n_genes: 5, cells: vec![cell] };
        let of = |width| fitting(&record, &["cell_type".to_owned()], width)[1].clone();
        let whole = "   0         5   85  GENE0 17, GENE1 17, GENE2 17, GENE3 17, GENE4 17  T";
        assert_eq!((of(None).as_str(), of(Some(200)).as_str()), (whole, whole));
        assert_eq!(of(Some(80)), whole); // with the headings
        assert_eq!(of(Some(79)), whole.replace(", GENE4 17", ""));
        assert_eq!(of(Some(60)), "   0         5   85  GENE0 17, GENE1 17, GENE2 17  T");
        // Two remain; what is still too long is cut.
        assert_eq!(of(Some(20)), "   0         5   85  GENE0 17, GENE1 17  T");
        assert_eq!(of(Some(3)), of(Some(20)));
    }
}
