//! The trace of a column of a Parquet file.

use std::path::Path;

use serde::Serialize;
use tilekern::parquet::Options;
use tilekern::parquet::file::{Buffers, File, Origin, PageTrace};
use tilekern::{Error, Step};

use super::{column, html, listed, names, open, row_groups};
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
        let (mut first, mut seen) = (None, 0);
        let mut buffers = Buffers::new();
        for group in row_groups(&self.file, request.row_group, self.path)? {
            let mut reader = match self.file.column(group, self.column, &mut buffers) {
                Ok(reader) => reader,
                Err(error) => return Ok(first.or(Some(fault(error)))),
            };
            loop {
                let mut page = match reader.next_trace() {
                    Ok(None) => break,
                    Ok(Some(page)) => page,
                    Err(error) => return Ok(first.or(Some(fault(error)))),
                };
                if request.page.is_some_and(|number| number != page.info.number) {
                    continue;
                }
                seen += 1;
                if let Some(error) = page.fault.take() {
                    page.fault = Some(error.in_path(self.path));
                    first = first.or(page.fault.as_ref().map(Fault::from));
                }
                visit(group, page)?;
            }
        }
        match request.page.filter(|_| seen == 0 && first.is_none()) {
            Some(number) => {
                let message = format!("there is no page {number}: `tilekern pages` tells which there are");
                Err(Fault { part: Some("pages".to_owned()), ..Fault::new("out_of_range", self.path, message) }.into())
            }
            None => Ok(first),
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    bytes: u64,
    column: &'a str,
    physical_type: &'static str,
    pages: Vec<PageRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

#[derive(Serialize)]
struct PageRecord {
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
    header_steps: serde_json::Value,
    level_steps: serde_json::Value,
    steps: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
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
    if let Some(html) = request.html {
        return html::run(&traced, request, html, console);
    }
    let fault = if console.json { json(&traced, request, console)? } else { text(&traced, request, console)? };
    match fault {
        // What was understood came first.
        Some(fault) if !console.json => {
            console.flush()?;
            Err(fault.into())
        }
        Some(_) => Ok(Verdict::Unsound),
        None => Ok(Verdict::Sound),
    }
}

fn json(traced: &Traced<'_>, request: &Request<'_>, console: &mut Console) -> Result<Option<Fault>, Stop> {
    let metadata = traced.file.metadata();
    let mut pages = Vec::new();
    let fault = traced.each(request, |rg, page| {
        let records = |steps, origin| -> Result<serde_json::Value, Stop> {
            let records: Vec<StepRecord<'_>> = steps::records(steps, placed(traced.bytes, &page, origin));
            serde_json::to_value(records).map_err(|error| Stop::write(error.into(), traced.path))
        };
        pages.push(PageRecord {
            rg,
            page: page.info.number,
            kind: page.info.header.kind.name(),
            encoding: page.info.encoding.map(|encoding| encoding.name()),
            codec: metadata.row_groups[rg].columns[traced.column].codec.name(),
            header_start: page.info.header_span.start,
            body_start: page.info.body_span.start,
            body_end: page.info.body_span.end,
            num_values: page.info.num_values,
            levels_unpacked: page.levels_origin == Origin::Body,
            unpacked: page.origin == Origin::Body,
            header_steps: records(&page.header, Origin::File)?,
            level_steps: records(&page.levels, page.levels_origin)?,
            steps: records(&page.steps, page.origin)?,
            error: page.fault.as_ref().map(Fault::from),
        });
        Ok(())
    })?;
    console.record(&Record {
        path: &traced.path.to_string_lossy(),
        kind: PARQUET,
        bytes: traced.bytes.len() as u64,
        column: &traced.name,
        physical_type: metadata.schema.columns[traced.column].physical_type.name(),
        pages,
        error: fault.as_ref(),
    })?;
    Ok(fault)
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
