//! `tilekern obs`: the table of cells, as a whole or some columns of some cells.

use std::fmt::Write;

use indicatif::HumanCount;
use serde::Serialize;
use tilekern::deltacel::dataset::Dataset;
use tilekern::deltacel::dataset::obs::{ObsColumn, ObsKind, ObsTable, Value, getter};
use tilekern::{Error, ErrorKind, Limits, Part, Unsupported};

use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::options::CacheFolder;
use crate::selection::{Cells, Piece, chosen_cells, pieces};
use crate::source::{Input, Source};
use crate::table::{Align, Table};
use crate::text::{json, shown};

/// Print the table of cells: its columns, or values of some of them
///
/// Without COLUMN, --cells and --where it tells what columns there are. Else it prints a line for each cell, separated
/// by tabs: the cell's number, then the value in each COLUMN. A missing value is nothing; text that is empty, or has
/// quotes, tabs or line breaks, stands in quotes as in JSON. Only the columns that are needed are read.
#[derive(clap::Args, Debug)]
#[command(after_long_help = FILTERS)]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// Columns whose values to print
    #[arg(value_name = "COLUMN")]
    columns: Vec<String>,

    #[command(flatten)]
    cells: Cells,

    #[command(flatten)]
    cache: CacheFolder,
}

const FILTERS: &str = "\
Filters:
  cell_type == \"B cell\"         also != < <= > >=; text stands in \" or '
  n_counts > 500 && !doublet    and, not; || is or; parentheses
  donor in [\"d1\", \"d2\"]         also: not in
  score is null                 missing; also: is not null
  `percent mito` > 5            backquotes for a column whose name is not one word
A missing value passes no test but `is null`, and no negation of a test either.

Where the first column is text, its values are the names of the cells, mostly barcodes;
`tilekern obs DATASET` tells what it is called:
  barcode in [\"AAACCCAAGCGTATGG-1\", \"AAACCCAGTCCTACAA-1\"]
--cells-file takes a file of such names, one on each line.

Examples:
  tilekern obs counts                                 its columns
  tilekern obs counts cell_type n_counts              their values in all cells
  tilekern obs counts cell_type --cells 0..10,17      in the first ten cells and another
  tilekern obs counts --where 'n_counts > 500'        which cells pass
  tilekern obs counts cell_type --where 'n_counts > 500' --json
  tilekern obs counts cell_type --cache /scratch/cells   keep the column there for the next time";

/// What `--json` prints about the columns.
#[derive(Serialize)]
struct SchemaRecord<'a> {
    path: &'a str,
    n_cells: u64,
    columns: Vec<ColumnRecord<'a>>,
}

/// A column as its schema describes it.
#[derive(Serialize)]
pub struct ColumnRecord<'a> {
    name: &'a str,
    kind: &'static str,
    arrow_type: &'static str,
    /// None but for a column of categories.
    n_categories: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n_missing: Option<u64>,
}

/// What `--json` prints about values.
#[derive(Serialize)]
struct ValuesRecord<'a> {
    path: &'a str,
    n_cells: u64,
    cells: Vec<u64>,
    columns: Vec<ColumnValues<'a>>,
}

#[derive(Serialize)]
struct ColumnValues<'a> {
    name: &'a str,
    kind: &'static str,
    arrow_type: &'static str,
    values: Vec<serde_json::Value>,
}

impl<'a> ColumnRecord<'a> {
    pub fn of(column: &'a ObsColumn) -> ColumnRecord<'a> {
        let categories = (column.kind == ObsKind::Category).then_some(column.categories.len() as u64);
        let (kind, arrow_type) = (column.kind.name(), column.arrow_type.name());
        ColumnRecord { name: &column.name, kind, arrow_type, n_categories: categories, n_missing: None }
    }

    /// Its kind, with the size of its vocabulary where it has one.
    pub fn kind(&self) -> String {
        match self.n_categories {
            Some(1) => "1 category".to_owned(),
            Some(n) => format!("{} categories", HumanCount(n)),
            None => self.kind.to_owned(),
        }
    }

    pub fn name(&self) -> String {
        shown(Value::String(self.name))
    }

    pub fn arrow_type(&self) -> &'static str {
        self.arrow_type
    }
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let source = Source::open(&args.input, &Limits::default())?;
    let refuse = |why: &'static str| {
        let error = Error::new(ErrorKind::Unsupported(Unsupported::Request), Part::Object).caused_by(why);
        Stop::from(Fault::of(error, source.path()))
    };
    let Source::Dataset(_, dataset) = &source else { return Err(refuse("a tile has no table of cells")) };
    let Some(table) = dataset.obs()? else { return Err(refuse("this dataset has no table of cells")) };
    let table = match args.cache.cache() {
        Some(cache) => table.cached(cache),
        None => table,
    };
    let path = source.path().to_string_lossy();
    if args.columns.is_empty() && args.cells.all() {
        columns(&path, dataset, &table, console)?;
    } else {
        let runs = chosen_cells(&source, &args.cells, dataset.n_cells(), &Limits::default(), Some(&table), console)?;
        let pieces = pieces(&runs, dataset.manifest().tile_size());
        values(&path, &table, &args.columns, &pieces, console)?;
    }
    Ok(Verdict::Sound)
}

/// What columns there are, and how many cells lack a value.
fn columns(path: &str, dataset: &Dataset, table: &ObsTable<'_>, console: &mut Console) -> Result<(), Stop> {
    let mut records: Vec<ColumnRecord<'_>> = table.schema().columns.iter().map(ColumnRecord::of).collect();
    let progress = console.progress(records.len() as u64, "reading columns");
    let all = pieces(std::slice::from_ref(&(0..dataset.n_cells())), dataset.manifest().tile_size());
    for record in &mut records {
        let mut missing = 0;
        for cells in lists(&all) {
            missing += table.values(&[record.name], &cells)?.column(0).logical_null_count() as u64;
        }
        record.n_missing = Some(missing);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let n_cells = dataset.n_cells();
    if console.json {
        return console.record(&SchemaRecord { path, n_cells, columns: records });
    }
    let headings =
        [("column", Align::Left), ("kind", Align::Left), ("stored as", Align::Left), ("missing", Align::Right)];
    let mut shown = Table::new(headings);
    for record in &records {
        let missing = HumanCount(record.n_missing.unwrap_or(0)).to_string();
        shown.row([record.name(), record.kind(), record.arrow_type.to_owned(), missing]);
    }
    console.rows(shown.lines())
}

/// The numbers of the cells of pieces, not too many at a time, whatever a manifest says of the size of tiles.
fn lists(pieces: &[Piece]) -> impl Iterator<Item = Vec<u64>> {
    pieces.iter().flat_map(|piece| {
        let mut cells = piece.cells();
        std::iter::from_fn(move || {
            Some(cells.by_ref().take(1 << 20).collect::<Vec<u64>>()).filter(|list| !list.is_empty())
        })
    })
}

fn values(
    path: &str,
    table: &ObsTable<'_>,
    names: &[String],
    pieces: &[Piece],
    console: &mut Console,
) -> Result<(), Stop> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    table.codes(&names, &[])?; // tells what there is
    let of = |name: &&'_ str| table.schema().column(name).map(|column| (column.kind.name(), column.arrow_type.name()));
    let mut columns: Vec<ColumnValues<'_>> = Vec::new();
    for name in &names {
        let (kind, arrow_type) = of(name).unwrap_or_default();
        columns.push(ColumnValues { name, kind, arrow_type, values: Vec::new() });
    }
    if !console.json {
        let mut heading = "cell".to_owned();
        names.iter().for_each(|name| heading.extend(["\t", &shown(Value::String(name))]));
        console.line(heading)?;
    }
    let mut all = Vec::new();
    for cells in lists(pieces) {
        let rows = table.values(&names, &cells)?;
        let getters: Vec<_> = rows.columns().iter().filter_map(|array| getter(&**array)).collect();
        if console.json {
            for (column, get) in columns.iter_mut().zip(&getters) {
                column.values.extend((0..cells.len()).map(|row| json(get(row))));
            }
            all.extend(cells);
            continue;
        }
        let mut line = String::new();
        for (row, cell) in cells.iter().enumerate() {
            line.clear();
            let _ = write!(line, "{cell}"); // strings grow
            getters.iter().for_each(|get| line.extend(["\t", &shown(get(row))]));
            console.line(&line)?;
        }
    }
    match console.json {
        true => console.record(&ValuesRecord { path, n_cells: all.len() as u64, cells: all, columns }),
        false => Ok(()),
    }
}
