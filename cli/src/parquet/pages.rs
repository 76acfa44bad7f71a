//! The pages of a Parquet file.

use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;
use tilekern::parquet::Options;
use tilekern::parquet::file::{Buffers, File, PageInfo};

use super::{columns, names, open, row_groups};
use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::source::PARQUET;
use crate::table::{Align, Table};
use crate::text::quoted;

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    pages: Vec<PageRecord<'a>>,
    /// What ended the walk early.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

#[derive(Serialize)]
pub struct PageRecord<'a> {
    rg: usize,
    col: usize,
    column: &'a str,
    /// From 0 in the column chunk; dictionary pages count.
    page: u32,
    #[serde(rename = "type")]
    kind: &'static str,
    encoding: Option<&'static str>,
    codec: &'static str,
    header_start: u64,
    body_start: u64,
    body_end: u64,
    uncompressed_bytes: u64,
    num_values: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_null: Option<u64>,
    /// As a header of version 2 states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    num_nulls: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    levels_len: Option<u64>,
    /// The checksum stored, which was right.
    crc: Option<u32>,
}

impl<'a> PageRecord<'a> {
    pub fn of(file: &File<'_>, rg: usize, col: usize, column: &'a str, page: &PageInfo) -> PageRecord<'a> {
        PageRecord {
            rg,
            col,
            column,
            page: page.number,
            kind: page.header.kind.name(),
            encoding: page.encoding.map(|encoding| encoding.name()),
            codec: file.metadata().row_groups[rg].columns[col].codec.name(),
            header_start: page.header_span.start,
            body_start: page.body_span.start,
            body_end: page.body_span.end,
            uncompressed_bytes: page.header.uncompressed_size,
            num_values: page.num_values,
            non_null: page.non_null,
            num_nulls: page.num_nulls(),
            num_rows: page.rows,
            levels_len: page.levels_len,
            crc: page.header.crc,
        }
    }
}

pub fn run(
    bytes: &[u8],
    path: &Path,
    column: Option<&str>,
    row_group: Option<usize>,
    console: &mut Console,
) -> Result<Verdict, Stop> {
    let file = open(bytes, &Options::new()?).map_err(|error| Fault::of(error, path))?;
    let chosen = match column {
        Some(word) => columns(&file, word, path)?,
        None => 0..file.metadata().schema.columns.len(),
    };
    let names = names(&file.metadata().schema);
    let (mut pages, mut fault) = (Vec::new(), None);
    let mut buffers = Buffers::new();
    'walk: for group in row_groups(&file, row_group, path)? {
        for column in chosen.clone() {
            let mut reader = match file.column(group, column, &mut buffers) {
                Ok(reader) => reader,
                Err(error) => {
                    fault = Some(Fault::of(error, path));
                    break 'walk;
                }
            };
            loop {
                match reader.next_info() {
                    Ok(None) => break,
                    Ok(Some(page)) => pages.push(PageRecord::of(&file, group, column, &names[column], &page)),
                    Err(error) => {
                        fault = Some(Fault::of(error, path));
                        break 'walk;
                    }
                }
            }
        }
    }
    if console.json {
        let record = Record { path: &path.to_string_lossy(), kind: PARQUET, pages, error: fault.as_ref() };
        console.record(&record)?;
        return Ok(if fault.is_some() { Verdict::Unsound } else { Verdict::Sound });
    }
    print(&pages, console)?;
    match fault {
        Some(fault) => {
            // What was understood comes first.
            console.flush()?;
            Err(fault.into())
        }
        None => Ok(Verdict::Sound),
    }
}

fn print(pages: &[PageRecord<'_>], console: &mut Console) -> Result<(), Stop> {
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([
        ("group", right),
        ("column", left),
        ("page", right),
        ("offset", right),
        ("type", left),
        ("encoding", left),
        ("codec", left),
        ("header", right),
        ("stored", right),
        ("unpacked", right),
        ("levels", right),
        ("values", right),
        ("nulls", right),
        ("rows", right),
    ]);
    let count = |n: u64| HumanCount(n).to_string();
    let some = |n: Option<u64>| n.map_or_else(String::new, count);
    for page in pages {
        table.row([
            page.rg.to_string(),
            quoted(page.column),
            page.page.to_string(),
            page.header_start.to_string(),
            page.kind.to_owned(),
            page.encoding.unwrap_or_default().to_owned(),
            page.codec.to_owned(),
            count(page.body_start - page.header_start),
            count(page.body_end - page.body_start),
            count(page.uncompressed_bytes),
            some(page.levels_len),
            count(page.num_values),
            some(page.non_null.map(|there| page.num_values.saturating_sub(there))),
            some(page.num_rows),
        ]);
    }
    // On a narrow terminal the least telling columns go first.
    console.rows(table.fitting(console.width(), &[7, 13, 6, 9, 10]))
}
