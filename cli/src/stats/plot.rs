//! Histograms of cells and the rank curve of genes, as an SVG image.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use indicatif::HumanCount;

use super::Record;
use super::gather::Gathered;
use super::spread::{Bin, Spread};
use super::tabular::whole;
use crate::fault::Stop;
use crate::text::counted;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
/// Around a plot, for labels.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// Points of a curve for each factor of ten.
const POINTS: usize = 60;

/// Writes the image. Returns its bytes.
pub fn write(path: &Path, record: &Record<'_>, gathered: &Gathered) -> Result<u64, Stop> {
    let image = svg(record, gathered);
    let write = |out: &mut std::io::BufWriter<&std::fs::File>| out.write_all(image.as_bytes());
    whole(path, |out| write(out).map_err(|e| Stop::write(e, path))).map(|((), bytes)| bytes)
}

fn svg(record: &Record<'_>, gathered: &Gathered) -> String {
    let (width, height) = (3.0 * WIDTH, HEIGHT + 40.0);
    let title = format!(
        "{} × {}, {}",
        counted(record.n_cells, "cell"),
        counted(record.n_genes, "gene"),
        counted(record.nnz, "nonzero")
    );
    let mut out = String::new();
    put(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
             {height}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"26\" font-size=\"16\">{title}</text>\n"
        ),
    );
    histogram(&mut out, 0.0, "Nonzeros of a cell", "nonzeros", &record.per_cell.nonzeros);
    histogram(&mut out, WIDTH, "Total of a cell", "sum of its counts", &record.per_cell.totals);
    ranks(&mut out, 2.0 * WIDTH, gathered);
    out.push_str("</svg>\n");
    out
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("strings grow");
}

/// The frame of a plot: title, names of axes, and grid lines with their labels at parts of the height.
fn frame(out: &mut String, x: f64, title: &str, below: &str, beside: &str, lines: &[(f64, String)]) {
    let (plot_width, plot_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    put(out, format_args!("<g transform=\"translate({} {})\">\n", x + LEFT, 40.0 + TOP));
    put(out, format_args!("<text x=\"0\" y=\"-10\" font-weight=\"bold\">{title}</text>\n"));
    for (part, label) in lines {
        let y = plot_height * (1.0 - part);
        put(
            out,
            format_args!(
                "<line x1=\"0\" x2=\"{plot_width}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{label}</text>\n",
                y + 4.0
            ),
        );
    }
    put(
        out,
        format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{below}</text>\n\
             <text transform=\"translate(-50 {:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#555\">{beside}</text>\n",
            plot_width / 2.0,
            plot_height + 36.0,
            plot_height / 2.0,
        ),
    );
}

/// A label below the axis.
fn tick(out: &mut String, x: f64, label: &str) {
    let y = HEIGHT - TOP - BOTTOM;
    put(
        out,
        format_args!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y}\" y2=\"{}\" stroke=\"#555\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{label}</text>\n",
            y + 4.0,
            y + 18.0
        ),
    );
}

/// A number as an axis has room for it.
fn short(n: u64) -> String {
    let units = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")];
    match units.into_iter().find(|(unit, _)| n >= *unit) {
        None => n.to_string(),
        Some((unit, name)) if n.is_multiple_of(unit) => format!("{}{name}", n / unit),
        Some((unit, name)) => format!("{:.1}{name}", n as f64 / unit as f64),
    }
}

fn histogram(out: &mut String, x: f64, title: &str, below: &str, spread: &Spread) {
    let (plot_width, plot_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let bins: &[Bin] = &spread.histogram;
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    // A number of steps that ends at or above the highest bar.
    let step = steps(most);
    let end = most.div_ceil(step).max(1) * step;
    let lines: Vec<_> = (0..=end / step).map(|n| ((n * step) as f64 / end as f64, short(n * step))).collect();
    frame(out, x, title, below, "cells", &lines);
    let bar = plot_width / bins.len().max(1) as f64;
    for (n, bin) in bins.iter().enumerate() {
        let height = plot_height * bin.count as f64 / end as f64;
        put(
            out,
            format_args!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"#47a\">\
                 <title>{}: {}</title></rect>\n",
                n as f64 * bar + 0.5,
                plot_height - height,
                (bar - 1.0).max(0.5),
                bin.label(),
                HumanCount(bin.count)
            ),
        );
    }
    let every = bins.len().div_ceil(6).max(1);
    for (n, bin) in bins.iter().enumerate().step_by(every) {
        tick(out, n as f64 * bar, &short(bin.from));
    }
    if let Some(median) = spread.quantiles.iter().find(|quantile| quantile.percent == 50) {
        let at = bins.partition_point(|bin| bin.to < median.value);
        if let Some(bin) = bins.get(at) {
            let within = ((median.value - bin.from) as f64 + 0.5) / ((bin.to - bin.from) as f64 + 1.0);
            let x = (at as f64 + within) * bar;
            put(
                out,
                format_args!(
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{plot_height}\" stroke=\"#c33\" \
                     stroke-dasharray=\"4 3\"/><text x=\"{plot_width}\" y=\"-10\" text-anchor=\"end\" \
                     fill=\"#c33\">median {}</text>\n",
                    HumanCount(median.value)
                ),
            );
        }
    }
    close(out);
}

/// The totals of genes from the largest to the smallest, both axes by factors of ten.
fn ranks(out: &mut String, x: f64, gathered: &Gathered) {
    let (plot_width, plot_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let mut totals: Vec<u64> = gathered.genes.iter().map(|gene| gene.total).filter(|&total| total > 0).collect();
    totals.sort_unstable_by(|a, b| b.cmp(a));
    let decades = |n: u64| (n.max(1) as f64).log10().ceil().max(1.0);
    let (wide, high) = (decades(totals.len() as u64), decades(totals.first().copied().unwrap_or(1)));
    let power = |n: u32| 10u64.checked_pow(n).map_or_else(String::new, short);
    let lines: Vec<_> =
        (0..=20u32).filter(|&n| f64::from(n) <= high).map(|n| (f64::from(n) / high, power(n))).collect();
    frame(out, x, "Totals of genes by rank", "rank of the gene", "sum of its counts", &lines);
    for n in (0..=20u32).filter(|&n| f64::from(n) <= wide) {
        tick(out, plot_width * f64::from(n) / wide, &power(n));
    }
    let mut points = String::new();
    let mut next = 0.0;
    for (rank, total) in (1..).zip(&totals) {
        let across = (rank as f64).log10();
        // As many points as the eye can tell apart, and the last one.
        if across >= next || rank == totals.len() {
            let (x, y) = (plot_width * across / wide, plot_height * (1.0 - (*total as f64).log10() / high));
            put(&mut points, format_args!("{x:.1},{y:.1} "));
            next = across + 1.0 / POINTS as f64;
        }
    }
    put(
        out,
        format_args!("<polyline points=\"{}\" fill=\"none\" stroke=\"#47a\" stroke-width=\"2\"/>\n", points.trim_end()),
    );
    let without = gathered.genes.len() - totals.len();
    put(
        out,
        format_args!(
            "<text x=\"{plot_width}\" y=\"-10\" text-anchor=\"end\" fill=\"#555\">{} without counts</text>\n",
            HumanCount(without as u64)
        ),
    );
    close(out);
}

/// The axes, over what was drawn, and the end of the plot.
fn close(out: &mut String) {
    let (plot_width, plot_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    put(out, format_args!("<path d=\"M0 0V{plot_height}H{plot_width}\" fill=\"none\" stroke=\"#555\"/>\n</g>\n"));
}

/// The distance of lines of which at most about six reach up to `most`.
fn steps(most: u64) -> u64 {
    super::spread::nice(most.div_ceil(5).max(1))
}
