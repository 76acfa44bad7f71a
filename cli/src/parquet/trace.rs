//! The trace of a column of a Parquet file.

use std::cell::RefCell;
use std::path::Path;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use tilekern::parquet::Options;
use tilekern::parquet::file::{Buffers, File, Origin, PageTrace, Pages};
use tilekern::{Error, Step};

use super::values::One;
use super::{choose, column, html, listed, names, open, row_groups};
use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::source::PARQUET;
use crate::steps::{self, Placed, StepRecord};
use crate::text::{counted, quoted};

/// What is asked for.
pub struct Request<'a> {
    pub path: &'a Path,
    pub column: Option<&'a str>,
    pub row_group: Option<usize>,
    pub page: Option<u32>,
    pub html: Option<&'a Path>,
    /// Values, too, and where the bytes of each are.
    pub values: bool,
}

/// A column of a file.
pub struct Traced<'a> {
    pub file: File<'a>,
    pub bytes: &'a [u8],
    pub path: &'a Path,
    pub name: String,
    pub column: usize,
}

/// The bytes that the spans of a page's sections count in.
pub fn placed<'a>(bytes: &'a [u8], page: &'a PageTrace, origin: Origin) -> Placed<'a> {
    match (&page.unpacked, origin) {
        (Some((offset, bytes)), Origin::Body) => Placed { offset: *offset, bytes },
        _ => Placed::whole(bytes),
    }
}

impl<'a> Traced<'a> {
    /// Hands over the pages asked for, and whether anything is wrong.
    pub fn each(
        &self,
        request: &Request<'_>,
        mut visit: impl FnMut(usize, PageTrace) -> Result<(), Stop>,
    ) -> Result<Option<Fault>, Stop> {
        let fault = |error: Error| Fault::of(error, self.path);
        let mut first = None;
        let mut buffers = Buffers::new();
        for group in row_groups(&self.file, request.row_group, self.path)? {
            let mut reader = match self.file.column(group, self.column, &mut buffers) {
                Ok(reader) => reader,
                Err(error) => return Ok(first.or(Some(fault(error)))),
            };
            for number in 0.. {
                // The entries of a dictionary, which comes first, are what values of other pages point to.
                if number > 0 && request.page.is_some_and(|page| page > number) {
                    match reader.next_info() {
                        // What is wrong with a page that is not asked for is not told.
                        Err(error) if error.page().is_some_and(|place| place.page.is_some()) => continue,
                        Err(error) => return Ok(first.or(Some(fault(error)))),
                        Ok(Some(_)) => continue,
                        Ok(None) => break,
                    }
                }
                let mut page = match reader.next_trace() {
                    Ok(None) => break,
                    Ok(Some(page)) => page,
                    Err(error) => return Ok(first.or(Some(fault(error)))),
                };
                if request.page.is_some_and(|page| page != number) {
                    continue;
                }
                if let Some(error) = page.fault.take() {
                    page.fault = Some(error.in_path(self.path));
                    first = first.or(page.fault.as_ref().map(Fault::from));
                }
                visit(group, page)?;
                if request.page.is_some() {
                    break;
                }
            }
        }
        Ok(first)
    }

    /// Passes a page number that there is, as far as headers can be read.
    fn check(&self, request: &Request<'_>) -> Result<(), Stop> {
        let groups = row_groups(&self.file, request.row_group, self.path)?;
        let Some(number) = request.page else { return Ok(()) };
        let mut most = 0;
        for group in groups {
            let Ok((chunk, _)) = self.file.chunk(group, self.column) else { return Ok(()) };
            for (n, page) in Pages::new(chunk).enumerate() {
                if page.is_err() || u32::try_from(n) == Ok(number) {
                    return Ok(());
                }
                most = most.max(n + 1);
            }
        }
        let message = format!("there is no page {number}: {}", choose(most));
        Err(Fault { part: Some("pages".to_owned()), ..Fault::new("out_of_range", self.path, message) }.into())
    }
}

/// What `--json` prints. Pages are traced as they are written.
struct Record<'a> {
    traced: &'a Traced<'a>,
    request: &'a Request<'a>,
    outcome: RefCell<Result<Option<Fault>, Stop>>,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Record { traced, outcome, .. } = self;
        let leaf = &traced.file.metadata().schema.columns[traced.column];
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("path", &traced.path.to_string_lossy())?;
        map.serialize_entry("kind", PARQUET)?;
        map.serialize_entry("bytes", &traced.bytes.len())?;
        map.serialize_entry("column", &traced.name)?;
        map.serialize_entry("physical_type", leaf.physical_type.name())?;
        map.serialize_entry("pages", &PageRecords(self))?;
        if let Ok(Some(fault)) = &*outcome.borrow() {
            map.serialize_entry("error", fault)?;
        }
        map.end()
    }
}

struct PageRecords<'a>(&'a Record<'a>);

impl Serialize for PageRecords<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Record { traced, request, outcome } = self.0;
        let mut list = to.serialize_seq(None)?;
        let mut failed = None;
        let traced = traced.each(request, |rg, page| {
            list.serialize_element(&PageRecord::of(traced, request, rg, &page)).map_err(|error| {
                let stop = Stop::Fault(Fault::new("io", traced.path, error.to_string()));
                failed = Some(error);
                stop
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        *outcome.borrow_mut() = traced;
        list.end()
    }
}

#[derive(Serialize)]
struct PageRecord<'p> {
    rg: usize,
    page: u32,
    #[serde(rename = "type")]
    kind: &'static str,
    encoding: Option<&'static str>,
    codec: &'static str,
    header_start: u64,
    body_start: u64,
    body_end: u64,
    num_values: u64,
    /// Spans of levels count from the start of the unpacked body, not of the file.
    levels_unpacked: bool,
    /// The same of values.
    unpacked: bool,
    header_steps: Vec<StepRecord<'p>>,
    level_steps: Vec<StepRecord<'p>>,
    steps: Vec<StepRecord<'p>>,
    /// The first spans of values are in the dictionary's page, and count from the start of its unpacked body.
    dictionary_unpacked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<ValueRecord<'p>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
}

#[derive(Serialize)]
struct ValueRecord<'p> {
    value: One<'p>,
    /// Its bytes, then others that it needs.
    spans: Vec<[u64; 2]>,
}

/// The values of a page, if all could be decoded.
fn values(page: &PageTrace) -> Vec<ValueRecord<'_>> {
    let Some(values) = page.values.as_ref().filter(|values| values.len() == page.spans.len()) else {
        return Vec::new();
    };
    let record = |i| {
        let (main, others) = page.spans.get(i);
        let spans = std::iter::once(&main).chain(others).map(|span| [span.start, span.end]).collect();
        ValueRecord { value: One(values, i), spans }
    };
    (0..values.len()).map(record).collect()
}

impl<'p> PageRecord<'p> {
    fn of(traced: &Traced<'_>, request: &Request<'_>, rg: usize, page: &'p PageTrace) -> PageRecord<'p> {
        let records = |steps: &'p [Step], origin| steps::records(steps, placed(traced.bytes, page, origin));
        PageRecord {
            rg,
            page: page.info.number,
            kind: page.info.header.kind.name(),
            encoding: page.info.encoding.map(|encoding| encoding.name()),
            codec: traced.file.metadata().row_groups[rg].columns[traced.column].codec.name(),
            header_start: page.info.header_span.start,
            body_start: page.info.body_span.start,
            body_end: page.info.body_span.end,
            num_values: page.info.num_values,
            levels_unpacked: page.levels_origin == Origin::Body,
            unpacked: page.origin == Origin::Body,
            header_steps: records(&page.header, Origin::File),
            level_steps: records(&page.levels, page.levels_origin),
            steps: records(&page.steps, page.origin),
            dictionary_unpacked: page.dictionary_origin.map(|origin| origin == Origin::Body),
            values: request.values.then(|| values(page)),
            error: page.fault.as_ref().map(Fault::from),
        }
    }
}

pub fn run(bytes: &[u8], request: &Request<'_>, console: &mut Console) -> Result<Verdict, Stop> {
    let path = request.path;
    let file = open(bytes, &Options::new()?).map_err(|error| Fault::of(error, path))?;
    let Some(word) = request.column else {
        return Err(Stop::Usage(format!("name a column to trace: {}", listed(&file.metadata().schema))));
    };
    let column = column(&file, word, path)?;
    let name = names(&file.metadata().schema).swap_remove(column);
    let traced = Traced { file, bytes, path, name, column };
    traced.check(request)?;
    if let Some(html) = request.html {
        return html::run(&traced, request, html, console);
    }
    if console.json {
        let record = Record { traced: &traced, request, outcome: RefCell::new(Ok(None)) };
        console.record(&record)?;
        return Ok(if record.outcome.into_inner()?.is_some() { Verdict::Unsound } else { Verdict::Sound });
    }
    match text(&traced, request, console)? {
        // What was understood came first.
        Some(fault) => {
            console.flush()?;
            Err(fault.into())
        }
        None => Ok(Verdict::Sound),
    }
}

/// What a page is, in a line.
pub fn title(traced: &Traced<'_>, group: usize, page: &PageTrace) -> String {
    let info = &page.info;
    let encoding = info.encoding.map_or_else(String::new, |encoding| format!(", {}", encoding.name()));
    let codec = traced.file.metadata().row_groups[group].columns[traced.column].codec.name();
    let codec = if page.unpacked.is_some() { format!(", {codec}") } else { String::new() };
    let values = counted(info.num_values, "value");
    let nulls = info.non_null.map(|there| info.num_values.saturating_sub(there)).filter(|&nulls| nulls > 0);
    let nulls = nulls.map_or_else(String::new, |nulls| format!(", {}", counted(nulls, "null")));
    let kind = info.header.kind.name();
    format!("row group {group}, page {}: {kind}{encoding}{codec}, {values}{nulls}", info.number)
}

fn text(traced: &Traced<'_>, request: &Request<'_>, console: &mut Console) -> Result<Option<Fault>, Stop> {
    let kind = traced.file.metadata().schema.columns[traced.column].physical_type.name();
    console.line(format_args!("{}, column {} ({kind})", traced.path.display(), quoted(&traced.name)))?;
    traced.each(request, |group, page| {
        console.line("")?;
        console.line(title(traced, group, &page))?;
        if let Some((offset, bytes)) = &page.unpacked {
            let body = &page.info.body_span;
            let what = if page.levels_origin == Origin::Body && !page.levels.is_empty() {
                "levels and values"
            } else {
                "values"
            };
            let end = offset + bytes.len() as u64;
            console.line(format_args!(
                "spans of {what} are in the unpacked body, of {end} bytes; its {} stored bytes are {}..{} of the file",
                body.end - body.start,
                body.start,
                body.end
            ))?;
        }
        let sections = [(&page.header, Origin::File), (&page.levels, page.levels_origin), (&page.steps, page.origin)];
        let steps =
            sections.into_iter().flat_map(|(steps, origin)| steps.iter().map(move |step: &Step| (step, origin)));
        steps::print(steps.map(|(step, origin)| (step, placed(traced.bytes, &page, origin))), console)?;
        match &page.fault {
            Some(fault) => console.line(format_args!("fault: {}", Fault::from(fault))),
            None => Ok(()),
        }
    })
}
