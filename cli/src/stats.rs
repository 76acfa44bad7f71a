//! `tilekern stats`: how counts are spread over cells and genes.

mod gather;
mod plot;
mod spread;
mod tabular;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use indicatif::HumanCount;
use serde::Serialize;

use crate::Verdict;
use crate::console::Console;
use crate::fault::Stop;
use crate::options::Engine;
use crate::output::names;
use crate::selection::{Choice, Selection};
use crate::source::{Input, Source};
use crate::table::{Align, Table};
use crate::text::{counted, cut, shown};
use gather::Gathered;
use spread::{QUANTILES, Spread};
use tilekern::deltacel::dataset::obs::Value;

/// Count nonzeros and totals of each cell and of each gene
///
/// Everything is counted exactly, in whole numbers. One tile for each thread is in memory, and for each gene two numbers.
/// Quantiles are values that occur: the smallest one that so many of all do not exceed.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern stats counts                              quantiles and histograms
  tilekern stats counts --json                       all of it
  tilekern stats counts -o counts.svg                the same as plots
  tilekern stats counts --per gene -o genes.tsv      a line for each gene: number, name, nonzeros, total
  tilekern stats counts --per cell -o cells.csv      a line for each cell
  tilekern stats counts --where 'donor == \"d1\"'      of some cells")]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// File to write: plots (.svg), or with --per a table (.tsv, .csv)
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// What a line of the table is about
    #[arg(long, value_name = "WHAT", requires = "output")]
    per: Option<Per>,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    engine: Engine,
}

/// What a line of a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Per {
    Cell,
    Gene,
}

/// What is written to a file.
#[derive(Clone, Copy)]
enum Target<'a> {
    Plots(&'a Path),
    Table(&'a Path, Per, tabular::Separator),
}

impl Args {
    fn target(&self) -> Result<Option<Target<'_>>, Stop> {
        let Some(path) = &self.output else { return Ok(None) };
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        let target = match (extension.as_deref(), self.per) {
            (Some("svg"), None) => Target::Plots(path),
            (Some("tsv"), Some(per)) => Target::Table(path, per, tabular::Separator::Tab),
            (Some("csv"), Some(per)) => Target::Table(path, per, tabular::Separator::Comma),
            _ => {
                let message = "name a file .svg for plots, or .tsv or .csv with --per cell or --per gene for a table";
                return Err(Stop::Usage(message.to_owned()));
            }
        };
        Ok(Some(target))
    }
}

/// What `--json` prints.
#[derive(Serialize)]
pub struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    n_cells: u64,
    n_genes: u32,
    nnz: u64,
    sum: u64,
    /// Nonzeros of all places; None without any.
    density: Option<f64>,
    per_cell: Both,
    per_gene: Both,
    top_genes: Vec<TopGene>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

#[derive(Serialize)]
pub struct Both {
    nonzeros: Spread,
    totals: Spread,
}

/// A gene with one of the largest totals.
#[derive(Serialize)]
struct TopGene {
    gene: u32,
    name: Option<String>,
    nonzeros: u64,
    total: u64,
}

/// How many genes with the largest totals are told.
const TOP: usize = 10;

/// Columns that a narrow terminal does not get: 1, 99, 5 and 95 %.
const DISPENSABLE: [usize; 4] = [3, 9, 4, 8];

/// Cells of the longest bar.
const BAR: usize = 40;

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let target = args.target()?;
    let decoder = args.engine.decoder()?;
    let source = Source::open(&args.input, decoder.limits())?;
    let selection = Selection::new(&source, &args.choice, decoder, console)?;
    let names = names(&selection)?;
    let (gathered, mut bytes) = match target {
        Some(Target::Table(path, Per::Cell, separator)) => {
            let (gathered, bytes) = tabular::cells(path, separator, &selection)?;
            (gathered, Some(bytes))
        }
        _ => (gather::all(&selection, |_, _| Ok(()))?, None),
    };
    selection.progress.finish_and_clear();
    let path = source.path().to_string_lossy();
    let record = record(&path, &selection, &gathered, names.as_deref());
    match target {
        Some(Target::Table(path, Per::Gene, separator)) => {
            bytes = Some(tabular::genes(path, separator, &gathered, &selection, names.as_deref())?);
        }
        Some(Target::Plots(path)) => bytes = Some(plot::write(path, &record, &gathered)?),
        _ => {}
    }
    let output = args.output.as_ref().map(|path| path.to_string_lossy());
    let record = Record { output: output.as_deref(), bytes, ..record };
    if console.json {
        console.record(&record)?;
    } else if let (Some(output), Some(bytes)) = (&record.output, bytes) {
        let shape = format!("{} x {}", counted(record.n_cells, "cell"), counted(record.n_genes, "gene"));
        console.note(format_args!("{output}: {shape}, {}", counted(bytes, "byte")));
    } else {
        print(&record, console)?;
    }
    Ok(Verdict::Sound)
}

fn record<'a>(path: &'a str, selection: &Selection<'_>, gathered: &Gathered, names: Option<&[String]>) -> Record<'a> {
    let (n_cells, n_genes) = (selection.n_cells(), selection.n_genes());
    let (per_gene_nnz, per_gene_sum) = gathered.tally_genes();
    let nnz: u64 = gathered.genes.iter().map(|gene| gene.nonzeros).sum();
    let places = n_cells as f64 * f64::from(n_genes);
    let mut order: Vec<u32> = (0..n_genes).collect();
    let total = |gene: &u32| gathered.genes[*gene as usize];
    order.sort_by_key(|gene| std::cmp::Reverse(total(gene).total));
    let top = order.into_iter().take(TOP).filter(|column| total(column).nonzeros > 0).map(|column| TopGene {
        gene: selection.stored(column),
        name: names.and_then(|names| names.get(column as usize).cloned()),
        nonzeros: total(&column).nonzeros,
        total: total(&column).total,
    });
    Record {
        path,
        kind: selection.source.kind(),
        n_cells,
        n_genes,
        nnz,
        sum: gathered.genes.iter().fold(0, |sum, gene| sum.saturating_add(gene.total)),
        density: (places > 0.0).then(|| nnz as f64 / places),
        per_cell: Both { nonzeros: gathered.nonzeros.spread(), totals: gathered.totals.spread() },
        per_gene: Both { nonzeros: per_gene_nnz.spread(), totals: per_gene_sum.spread() },
        top_genes: top.collect(),
        output: None,
        bytes: None,
    }
}

fn print(record: &Record<'_>, console: &mut Console) -> Result<(), Stop> {
    let count = |n: u64| HumanCount(n).to_string();
    let density = record.density.map_or_else(String::new, |density| format!(" ({:.2} % of all)", 100.0 * density));
    let shape = format!(
        "{} x {}, {}{density}",
        counted(record.n_cells, "cell"),
        counted(record.n_genes, "gene"),
        counted(record.nnz, "nonzero")
    );
    let sum = format!("sum of counts {}", count(record.sum));
    // In two lines where one is too long for a terminal.
    let narrow = console.width().is_some_and(|width| shape.len() + ", ".len() + sum.len() > width);
    console.line(format_args!("{shape},{}{sum}\n", if narrow { '\n' } else { ' ' }))?;
    let spreads = [
        ("nonzeros of a cell", &record.per_cell.nonzeros),
        ("total of a cell", &record.per_cell.totals),
        ("nonzeros of a gene", &record.per_gene.nonzeros),
        ("total of a gene", &record.per_gene.totals),
    ];
    let quantile = |percent: u32| match percent {
        0 => "min".to_owned(),
        50 => "median".to_owned(),
        100 => "max".to_owned(),
        percent => format!("{percent} %"),
    };
    let headings = ["".to_owned(), "mean".to_owned()].into_iter().chain(QUANTILES.map(quantile));
    let align = |(n, heading)| (heading, if n == 0 { Align::Left } else { Align::Right });
    let mut table = Table::new(headings.enumerate().map(align));
    for (name, spread) in spreads {
        let mean = spread.mean.map_or_else(String::new, |mean| format!("{mean:.1}"));
        let values = spread.quantiles.iter().map(|quantile| count(quantile.value));
        let missing = QUANTILES.len() - spread.quantiles.len();
        table.row([name.to_owned(), mean].into_iter().chain(values).chain(vec![String::new(); missing]));
    }
    console.rows(table.fitting(console.width(), &DISPENSABLE))?;
    for (name, spread) in spreads {
        console.line(format_args!("\n{name}"))?;
        let longest = spread.histogram.iter().map(|bin| bin.count).max().unwrap_or(0);
        let mut bars = Table::new([("", Align::Right), ("", Align::Right), ("", Align::Left)]);
        for bin in &spread.histogram {
            bars.row([bin.label(), count(bin.count), bar(bin.count, longest)]);
        }
        console.rows(bars.lines().skip(1))?;
    }
    if !record.top_genes.is_empty() {
        console.line("")?;
        let columns = [("largest totals", Align::Left), ("total", Align::Right), ("nonzeros", Align::Right)];
        let mut table = Table::new(columns);
        for gene in &record.top_genes {
            let name = gene.name.as_ref().map_or_else(|| format!("#{}", gene.gene), |name| shown(Value::String(name)));
            table.row([cut(&name, BAR).into_owned(), count(gene.total), count(gene.nonzeros)]);
        }
        console.rows(table.lines())?;
    }
    Ok(())
}

/// A bar of text in eighths of a character.
fn bar(n: u64, longest: u64) -> String {
    let eighths = u128::from(n) * 8 * BAR as u128 / u128::from(longest.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(0).max(usize::from(n > 0));
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}
