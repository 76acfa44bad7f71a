//! The encodings of Parquet: columns page by page on every level, beside a copy of their values.

use std::hint::black_box;
use std::time::Duration;

use serde::Serialize;
use tilekern::kernels::Kernels;
use tilekern::parquet::{Dictionary, Input, Options};
use tilekern::simulate::columns::{BATCH, Batch, CASES, Column, DISTINCT, Reader};
use tilekern::{Buffer, Error};

use super::measure::{Case, Clock, take_turns};
use super::report::cpu_name;
use crate::console::Console;
use crate::table::{Align, Table};
use crate::text::counted;

#[derive(Serialize)]
pub struct Report {
    pub cpu: String,
    pub kernels: Vec<&'static str>,
    /// Of each case; those above [`DISTINCT`] are the same pages again.
    pub values: usize,
    pub batch: usize,
    pub results: Vec<Row>,
    pub trace: Vec<TraceRow>,
}

#[derive(Serialize)]
pub struct Row {
    pub case: &'static str,
    pub kernel: &'static str,
    pub m_values_per_s: f64,
    pub gb_per_s: f64,
    /// Speed as a multiple of a copy of the values.
    pub x_memcpy: f64,
}

/// The best kernels on a case, before a page of it is traced and after; and that trace.
#[derive(Serialize)]
pub struct TraceRow {
    pub case: &'static str,
    pub decode_ns_per_value: f64,
    pub after_trace_ns_per_value: f64,
    /// The second against the first.
    pub x_decode: f64,
    pub trace_ns_per_value: f64,
}

/// All cases. `values` of each, or a little more.
pub fn measure(values: usize, rounds: usize, console: &mut Console) -> Result<Report, Error> {
    let (distinct, repeat) = (values.min(DISTINCT), values.div_ceil(DISTINCT));
    let kernels = Kernels::available().map(Kernels::name).collect();
    let (mut results, mut trace) = (Vec::new(), Vec::new());
    for case in CASES {
        console.note(format_args!("timing {case}"));
        let Some(column) = Column::new(case, distinct, 0) else { continue };
        results.extend(levels(&column, repeat, rounds)?);
        trace.push(beside_trace(&column, rounds)?);
    }
    Ok(Report { cpu: cpu_name(), kernels, values: distinct * repeat, batch: BATCH, results, trace })
}

/// A column on every level.
fn levels(column: &Column, repeat: usize, rounds: usize) -> Result<Vec<Row>, Error> {
    let values = repeat * column.pages.iter().map(|page| page.values).sum::<usize>();
    let mut sizes = Vec::new();
    Reader::new(Options::new()?, BATCH).read(column, |batch| {
        sizes.push(match batch {
            Batch::Fixed(values) => values.len(),
            Batch::ByteArrays(values) => values.bytes().len() + 4 * values.len(),
        });
    })?;
    let most = sizes.iter().copied().max().unwrap_or(0);
    let (mut from, mut to) = (Buffer::<u8>::new(), Buffer::<u8>::new());
    from.resize(most);
    from.fill(1);
    to.resize(most);
    let mut cases = vec![Case::new(Clock::Cpu, || {
        for &size in std::iter::repeat_n(&sizes, repeat).flatten() {
            black_box(&mut to)[..size].copy_from_slice(black_box(&from[..size]));
        }
    })];
    for kernels in Kernels::available() {
        let mut reader = Reader::new(Options::with_kernels(kernels), BATCH);
        cases.push(Case::new(Clock::Cpu, move || {
            for _ in 0..repeat {
                reader.read(column, |batch| _ = black_box(batch)).expect("a sound column");
            }
        }));
    }
    take_turns(&mut cases, rounds, Duration::from_millis(5));
    let bytes = repeat * sizes.iter().sum::<usize>();
    let rows = Kernels::available().zip(&cases[1..]).map(|(kernels, time)| Row {
        case: column.case,
        kernel: kernels.name(),
        m_values_per_s: values as f64 / 1e6 / time.median(),
        gb_per_s: bytes as f64 / 1e9 / time.median(),
        x_memcpy: cases[0].ratio_to(time),
    });
    Ok(rows.collect())
}

/// A column with the best kernels, before its first page is traced and after. A trace is a walk of its own: decoders
/// hold nothing of it that could cost them time.
fn beside_trace(column: &Column, rounds: usize) -> Result<TraceRow, Error> {
    let options = Options::new()?;
    let mut dictionary = Dictionary::new();
    if let Some(page) = &column.dictionary {
        page.read_dictionary(column.physical_type, &mut dictionary, &options)?;
    }
    let (values, page) = (column.pages.iter().map(|page| page.values).sum(), &column.pages[0]);
    let payload = column.payload(page, &dictionary);
    let decode = || {
        let mut reader = Reader::new(options, BATCH);
        Case::new(Clock::Cpu, move || reader.read(column, |batch| _ = black_box(batch)).expect("a sound column"))
    };
    let trace = Case::new(Clock::Cpu, || payload.trace(Input::new(&page.bytes), &options));
    let mut cases = [decode(), trace, decode()];
    take_turns(&mut cases, rounds, Duration::from_millis(5));
    let per_value = |case: &Case<'_>, values: usize| case.median() * 1e9 / values as f64;
    let [before, trace, after] = &cases;
    Ok(TraceRow {
        case: column.case,
        decode_ns_per_value: per_value(before, values),
        after_trace_ns_per_value: per_value(after, values),
        x_decode: after.ratio_to(before),
        trace_ns_per_value: per_value(trace, page.values),
    })
}

impl Report {
    /// The report for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("CPU   {}, tilekern {}", self.cpu, env!("CARGO_PKG_VERSION")),
            format!("each  {}, {} at a time", counted(self.values, "value"), self.batch),
            String::new(),
        ];
        let mut table = Table::new([
            ("decode of pages, one thread", Align::Left),
            ("level", Align::Left),
            ("M values/s", Align::Right),
            ("GB/s", Align::Right),
            ("x memcpy", Align::Right),
        ]);
        for row in &self.results {
            let [values, bytes] = [format!("{:.0}", row.m_values_per_s), format!("{:.2}", row.gb_per_s)];
            table.row([row.case.into(), row.kernel.into(), values, bytes, format!("{:.2}", row.x_memcpy)]);
        }
        lines.extend(table.lines());
        lines.push("Medians of CPU time; memcpy copies the values, and an offset for each string.".to_owned());
        lines.push(String::new());
        let mut table = Table::new([
            ("decode beside a trace", Align::Left),
            ("ns/value", Align::Right),
            ("after a trace", Align::Right),
            ("x", Align::Right),
            ("the trace", Align::Right),
        ]);
        for row in &self.trace {
            table.row([
                row.case.into(),
                format!("{:.3}", row.decode_ns_per_value),
                format!("{:.3}", row.after_trace_ns_per_value),
                format!("{:.2}", row.x_decode),
                format!("{:.0}", row.trace_ns_per_value),
            ]);
        }
        lines.extend(table.lines());
        lines
    }
}
