//! The values of a Parquet file: as JSON, as rows in files, or as a summary.

use std::cell::{Cell, RefCell};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_ipc::writer::FileWriter;
use indicatif::{HumanCount, ProgressBar};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use tilekern::Error;
use tilekern::parquet::Options;
use tilekern::parquet::file::{Buffers, Column, File, Strings};

use super::nested::{Cursor, Row};
use super::rows::Rows;
use super::values::line;
use super::{columns, leaves, names, open, row_groups, type_length};
use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::output::{Format, arrow_failed as failed};
use crate::table::{Align, Table};
use crate::target::Target;
use crate::text::{counted, cut, quoted};

/// First values that a summary shows, and the longest text of each, in characters.
const FIRST: usize = 5;
const TEXT: usize = 40;

/// Rows of a batch of an Arrow file.
const BATCH: usize = 1 << 16;

/// What is asked for.
pub struct Request<'a> {
    pub path: &'a Path,
    /// None: all.
    pub columns: &'a [String],
    pub row_group: Option<usize>,
    /// None: to standard output.
    pub output: Option<&'a Path>,
    pub format: Format,
    pub options: Options,
}

/// The columns and row groups of a file that are to be decoded.
struct Chosen<'a> {
    file: File<'a>,
    path: &'a Path,
    names: Vec<String>,
    columns: Vec<usize>,
    groups: Range<usize>,
    progress: ProgressBar,
}

impl Chosen<'_> {
    /// Rows of the row groups, as stated.
    fn num_rows(&self) -> i64 {
        let groups = &self.file.metadata().row_groups[self.groups.clone()];
        groups.iter().map(|group| group.num_rows).fold(0, i64::saturating_add)
    }

    fn column(&self, column: usize) -> &Column {
        &self.file.metadata().schema.columns[column]
    }

    fn fault(&self, error: Error) -> Fault {
        Fault::of(error, self.path)
    }
}

pub fn run(bytes: &[u8], request: &Request<'_>, console: &mut Console) -> Result<Verdict, Stop> {
    let path = request.path;
    let file = open(bytes, &request.options).map_err(|error| Fault::of(error, path))?;
    let mut chosen: Vec<usize> = Vec::new();
    for word in request.columns {
        let found = columns(&file, word, path).map_err(|mut fault| {
            if fault.kind == "missing" && word.contains(',') {
                fault.message += "; give --column again for each";
            }
            fault
        });
        for column in found? {
            if !chosen.contains(&column) {
                chosen.push(column);
            }
        }
    }
    if request.columns.is_empty() {
        chosen = (0..file.metadata().schema.columns.len()).collect();
    }
    let groups = row_groups(&file, request.row_group, path)?;
    let names = names(&file.metadata().schema);
    if request.format == Format::Jsonl {
        refuse_repeated(&chosen, &names, path)?;
    }
    let progress = console.progress((groups.len() * chosen.len()) as u64, "decoding");
    let chosen = Chosen { file, path, names, columns: chosen, groups, progress };
    match (request.output, request.format) {
        (Some(output), format) => to_file(&chosen, output, format, console),
        (None, Format::Jsonl) => {
            let written = rows(&chosen, |row| console.record(&row));
            chosen.progress.finish_and_clear();
            written.map(|_| Verdict::Sound)
        }
        (None, Format::Summary) if console.json => json(&chosen, console),
        (None, Format::Summary) => summary(&chosen, console),
        (None, format) => Err(Stop::Usage(format!("{} is no text: name a file with -o", format.name()))),
    }
}

/// Passes columns with a name each: readers of JSON keep one of those that share one.
fn refuse_repeated(chosen: &[usize], names: &[String], path: &Path) -> Result<(), Fault> {
    for (n, &column) in chosen.iter().enumerate() {
        if let Some(first) = chosen[..n].iter().find(|&&first| names[first] == names[column]) {
            let name = &names[column];
            let message = format!(
                "columns {first} and {column} are both called {name:?}, and a row of JSON holds one of them: \
                 choose with --column and the number, or write .arrow"
            );
            return Err(Fault { part: Some("columns".to_owned()), ..Fault::new("ambiguous", path, message) });
        }
    }
    Ok(())
}

/// What `--json` prints: the columns with their values, and what ended them early.
struct Record<'a> {
    chosen: &'a Chosen<'a>,
    fault: RefCell<Option<Fault>>,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("path", &self.chosen.path.to_string_lossy())?;
        map.serialize_entry("kind", crate::source::PARQUET)?;
        map.serialize_entry("num_rows", &self.chosen.num_rows())?;
        map.serialize_entry("columns", &Columns(self))?;
        if let Some(fault) = &*self.fault.borrow() {
            map.serialize_entry("error", fault)?;
        }
        map.end()
    }
}

struct Columns<'a>(&'a Record<'a>);

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let record = self.0;
        let mut list = to.serialize_seq(None)?;
        for &column in &record.chosen.columns {
            if record.fault.borrow().is_some() {
                break;
            }
            let leaf = record.chosen.column(column);
            list.serialize_element(&ColumnRecord {
                name: &record.chosen.names[column],
                column: leaf.name(),
                physical_type: leaf.physical_type.name(),
                type_length: type_length(leaf.physical_type),
                max_def: leaf.max_definition,
                max_rep: leaf.max_repetition,
                values: ColumnValues { record, column },
            })?;
        }
        list.end()
    }
}

#[derive(Serialize)]
struct ColumnRecord<'a> {
    name: &'a str,
    column: String,
    physical_type: &'static str,
    type_length: Option<usize>,
    max_def: u8,
    max_rep: u8,
    values: ColumnValues<'a>,
}

/// The values of a column, decoded as they are written.
struct ColumnValues<'a> {
    record: &'a Record<'a>,
    column: usize,
}

impl Serialize for ColumnValues<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Record { chosen, fault } = self.record;
        let mut list = to.serialize_seq(None)?;
        let failed = Cell::new(None);
        let path = &chosen.column(self.column).path;
        let read = each(chosen, self.column, |rows, n| {
            let (data, start) = rows.at_hand();
            let cursor = Cursor::new(path, data, start);
            for _ in 0..n {
                if let Err(error) = list.serialize_element(&Row(&cursor)) {
                    failed.set(Some(error));
                    return false;
                }
            }
            let end = cursor.position();
            rows.advance(n, end);
            true
        });
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        if let Err(error) = read {
            *fault.borrow_mut() = Some(chosen.fault(error));
        }
        list.end()
    }
}

/// Hands over the rows of a column, as many as are at hand; they must be passed over. Ends early where that says false.
fn each(
    chosen: &Chosen<'_>,
    column: usize,
    mut visit: impl FnMut(&mut Rows<'_, '_>, usize) -> bool,
) -> Result<(), Error> {
    let mut buffers = Buffers::new();
    for group in chosen.groups.clone() {
        let mut rows = Rows::new(chosen.file.column(group, column, &mut buffers)?);
        loop {
            let n = rows.fill()?;
            if n == 0 {
                break;
            }
            if !visit(&mut rows, n) {
                return Ok(());
            }
        }
        chosen.progress.inc(1);
    }
    Ok(())
}

fn json(chosen: &Chosen<'_>, console: &mut Console) -> Result<Verdict, Stop> {
    let record = Record { chosen, fault: RefCell::new(None) };
    console.record(&record)?;
    chosen.progress.finish_and_clear();
    Ok(if record.fault.into_inner().is_some() { Verdict::Unsound } else { Verdict::Sound })
}

/// A table of the columns with their first values.
fn summary(chosen: &Chosen<'_>, console: &mut Console) -> Result<Verdict, Stop> {
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([
        ("column", left),
        ("type", left),
        ("rows", right),
        ("values", right),
        ("nulls", right),
        ("first values", left),
    ]);
    for &column in &chosen.columns {
        let (mut all, mut values, mut first) = (0, 0, Vec::new());
        let mut n_rows = 0;
        let read = each(chosen, column, |rows, n| {
            let (data, start) = rows.at_hand();
            let to = rows.end(n);
            let shown = (start.1..to.1).take(FIRST - first.len());
            first.extend(shown.map(|i| cut(&line(&data.values, i), TEXT).into_owned()));
            n_rows += n as u64;
            all += (to.0 - start.0) as u64;
            values += (to.1 - start.1) as u64;
            rows.advance(n, to);
            true
        });
        read.map_err(|error| chosen.fault(error))?;
        let count = |n: u64| HumanCount(n).to_string();
        let leaf = chosen.column(column);
        let kind = match type_length(leaf.physical_type) {
            Some(length) => format!("{}({length})", leaf.physical_type.name()),
            None => leaf.physical_type.name().to_owned(),
        };
        let more = if values > first.len() as u64 { ", …" } else { "" };
        table.row([
            quoted(&chosen.names[column]),
            kind,
            count(n_rows),
            count(values),
            count(all - values),
            first.join(", ") + more,
        ]);
    }
    chosen.progress.finish_and_clear();
    console.rows(table.fitting(console.width(), &[3]))?;
    Ok(Verdict::Sound)
}

/// A row: the columns by their names.
struct JsonRow<'r> {
    names: &'r [String],
    columns: &'r [usize],
    cursors: &'r [Cursor<'r>],
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.columns.len()))?;
        for (&column, cursor) in self.columns.iter().zip(self.cursors) {
            map.serialize_entry(&self.names[column], &Row(cursor))?;
        }
        map.end()
    }
}

/// Hands over the rows, one after the other. Returns how many there are.
fn rows(chosen: &Chosen<'_>, mut write: impl FnMut(JsonRow<'_>) -> Result<(), Stop>) -> Result<u64, Stop> {
    let Chosen { file, names, columns, .. } = chosen;
    let mut buffers: Vec<Buffers> = columns.iter().map(|_| Buffers::new()).collect();
    let mut all = 0;
    for group in chosen.groups.clone() {
        let readers = columns.iter().zip(&mut buffers).map(|(&column, buffers)| file.column(group, column, buffers));
        let readers: Result<Vec<Rows<'_, '_>>, Error> = readers.map(|reader| reader.map(Rows::new)).collect();
        let mut readers = readers.map_err(|error| chosen.fault(error))?;
        loop {
            let filled: Result<Vec<usize>, Error> = readers.iter_mut().map(Rows::fill).collect();
            let filled = filled.map_err(|error| chosen.fault(error))?;
            let n = filled.into_iter().min().unwrap_or(0);
            if n == 0 {
                break;
            }
            let cursors: Vec<Cursor<'_>> = columns
                .iter()
                .zip(&readers)
                .map(|(&column, rows)| {
                    let (data, start) = rows.at_hand();
                    Cursor::new(&chosen.column(column).path, data, start)
                })
                .collect();
            for _ in 0..n {
                write(JsonRow { names, columns, cursors: &cursors })?;
            }
            let ends: Vec<_> = cursors.iter().map(Cursor::position).collect();
            readers.iter_mut().zip(ends).for_each(|(rows, end)| rows.advance(n, end));
            all += n as u64;
        }
        chosen.progress.inc(columns.len() as u64);
    }
    Ok(all)
}

/// Writes an Arrow IPC file. Returns the number of rows. A row group's columns are in memory, no more.
fn arrow(chosen: &Chosen<'_>, out: impl Write, path: &Path) -> Result<u64, Stop> {
    let metadata = chosen.file.metadata();
    let (mut fields, mut left) = (Vec::new(), chosen.columns.len());
    let mut wanted = vec![false; metadata.schema.columns.len()];
    chosen.columns.iter().for_each(|&column| wanted[column] = true);
    // Those of the schema that hold columns are the library's fields.
    let all = metadata.schema.fields.iter().map(leaves).filter(|leaves| !leaves.is_empty());
    for (field, leaves) in all.enumerate() {
        let n = leaves.clone().filter(|&column| wanted[column]).count();
        left -= n;
        match n {
            0 => {}
            n if n == leaves.len() => fields.push(field),
            _ => {
                let name = &chosen.column(leaves.start).path[0].0;
                return Err(Stop::Usage(format!("an Arrow file holds whole fields: choose --column {name}")));
            }
        }
    }
    debug_assert_eq!(left, 0, "each column lies in a field");
    let strings = Strings::default();
    let schema = chosen.file.arrow_schema(strings);
    let schema = Arc::new(schema.project(&fields).map_err(|error| failed(error, path))?);
    let mut writer = FileWriter::try_new(out, &schema).map_err(|error| failed(error, path))?;
    let (mut buffers, mut all) = (Buffers::new(), 0);
    for group in chosen.groups.clone() {
        let batch = chosen.file.read_fields(group, &fields, strings, &mut buffers);
        let batch = batch.map_err(|error| chosen.fault(error))?;
        let rows = batch.num_rows();
        for start in (0..rows).step_by(BATCH) {
            let part = batch.slice(start, BATCH.min(rows - start));
            writer.write(&part).map_err(|error| failed(error, path))?;
        }
        all += rows as u64;
        chosen.progress.inc(chosen.columns.len() as u64);
    }
    writer.finish().map_err(|error| failed(error, path))?;
    Ok(all)
}

/// What `--json` prints about a file that was written.
#[derive(Serialize)]
struct Written<'a> {
    output: &'a str,
    format: Format,
    num_rows: u64,
    n_columns: usize,
    bytes: u64,
}

fn to_file(chosen: &Chosen<'_>, output: &Path, format: Format, console: &mut Console) -> Result<Verdict, Stop> {
    let (target, file) = Target::file(output)?;
    let mut out = BufWriter::with_capacity(1 << 20, &file);
    let written = |error: io::Error| Stop::write(error, output);
    let num_rows = match format {
        Format::Jsonl => rows(chosen, |row| {
            serde_json::to_writer(&mut out, &row).map_err(|error| written(error.into()))?;
            out.write_all(b"\n").map_err(written)
        })?,
        Format::Arrow => arrow(chosen, &mut out, output)?,
        Format::Summary => return Err(Stop::Usage("a summary goes to standard output: leave out -o".to_owned())),
        other => {
            let message =
                format!("Parquet is not decoded to {}: name a file that ends in .jsonl or .arrow", other.name());
            return Err(Stop::Usage(message));
        }
    };
    out.flush().map_err(written)?;
    drop(out);
    let bytes = target.commit_file(&file)?;
    chosen.progress.finish_and_clear();
    let (name, n_columns) = (&*output.to_string_lossy(), chosen.columns.len());
    if console.json {
        console.record(&Written { output: name, format, num_rows, n_columns, bytes })?;
    } else {
        let shape = format!("{} of {}", counted(num_rows, "row"), counted(n_columns as u64, "column"));
        console.note(format_args!("{name}: {shape}, {}", counted(bytes, "byte")));
    }
    Ok(Verdict::Sound)
}
