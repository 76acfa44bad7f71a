//! The figures of a run as a bar chart.

use std::fmt::Write;

use super::Report;

const BAR: f64 = 22.0;
const LEFT: f64 = 240.0;
const WIDTH: f64 = 460.0;

/// One bar per decode, and one per bound: ns per nonzero.
pub fn svg(report: &Report) -> String {
    let mut bars: Vec<(String, f64, &str)> = vec![
        ("libzstd alone".to_owned(), report.bounds.zstd_ns_per_nnz, "#999"),
        ("memcpy of the output".to_owned(), report.bounds.memcpy_ns_per_nnz, "#999"),
        ("naive loops".to_owned(), report.bounds.naive_ns_per_nnz, "#c66"),
    ];
    for row in &report.results {
        let threads = if row.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", row.threads) };
        bars.push((format!("{}, {threads}, {}", row.kernel, row.buffers), row.ns_per_nnz, "#47a"));
    }
    let longest = bars.iter().map(|bar| bar.1).fold(f64::MIN_POSITIVE, f64::max);
    let height = 70.0 + BAR * bars.len() as f64;
    let mut svg = String::new();
    _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{height}\" viewBox=\"0 0 {w} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"12\" y=\"22\" font-size=\"15\">DELTACEL decode, ns per nonzero (less is better)</text>\n\
         <text x=\"12\" y=\"42\" fill=\"#555\">{}, {} nonzeros, profile {}</text>\n",
        escape(&report.cpu),
        report.tile.nnz,
        escape(&report.tile.profile),
        w = LEFT + WIDTH + 80.0,
    );
    for (i, (name, ns, colour)) in bars.iter().enumerate() {
        let y = 56.0 + BAR * i as f64;
        let length = (WIDTH * ns / longest).max(1.0);
        _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{ns:.3}</text>",
            LEFT - 8.0,
            y + 13.0,
            escape(name),
            BAR - 5.0,
            LEFT + length + 6.0,
            y + 13.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
