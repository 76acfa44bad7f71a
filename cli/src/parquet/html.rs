//! The trace of a column as one page of HTML that needs nothing else: values, bytes and steps light each other.

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;
use tilekern::parquet::file::{Origin, PageTrace};

use super::trace::{Request, Traced, placed, title};
use super::values::{hex, line};
use crate::Verdict;
use crate::console::{Console, stdout_failed};
use crate::fault::{Fault, Stop};
use crate::source::{PARQUET, STDIO};
use crate::steps::Placed;
use crate::target::Target;
use crate::text::{counted, cut};

/// The page around the data, which takes the place of `DATA`.
const TEMPLATE: &str = include_str!("trace.html");
const DATA: &str = "{{data}}";

/// What is shown of one page at most: bytes, steps, values; and characters of a text.
const BYTES: usize = 1 << 16;
const STEPS: usize = 4000;
const VALUES: usize = 10_000;
const TEXT: usize = 2000;
/// What is shown of all pages together, in bytes of the data below.
const ALL: usize = 8 << 20;

/// What the page shows.
#[derive(Serialize)]
struct Data<'a> {
    title: String,
    subtitle: String,
    pages: &'a [Page],
    /// Pages that are not shown for want of room.
    left_out: usize,
}

#[derive(Serialize)]
struct Page {
    /// Its row group and number.
    rg: usize,
    page: u32,
    title: String,
    /// Its bytes: those of the file, then those that were unpacked.
    bytes: Vec<Region>,
    steps: Vec<Step>,
    values: Vec<Value>,
    notes: Vec<String>,
    fault: Option<String>,
}

#[derive(Serialize)]
struct Region {
    title: String,
    offset: u64,
    len: u64,
    hex: String,
}

#[derive(Serialize)]
struct Step {
    /// `header`, `levels` or `values`.
    section: &'static str,
    label: String,
    detail: String,
    /// The number of its region, and its bytes.
    at: (usize, u64, u64),
}

#[derive(Serialize)]
struct Value {
    text: String,
    /// The number of the page in this list and of its region, and bytes: of the value, then others that it needs.
    at: Vec<(usize, usize, u64, u64)>,
}

pub fn run(traced: &Traced<'_>, request: &Request<'_>, output: &Path, console: &mut Console) -> Result<Verdict, Stop> {
    let mut pages: Vec<Page> = Vec::new();
    let (mut spent, mut left_out) = (0, 0);
    // The dictionary page of the row group that is being read.
    let mut dictionary = None;
    let fault = traced.each(request, |group, trace| {
        if spent >= ALL {
            left_out += 1;
            return Ok(());
        }
        if dictionary.is_some_and(|(of, _)| of != group) {
            dictionary = None;
        }
        if trace.info.non_null.is_none() && dictionary.is_none() {
            dictionary = Some((group, pages.len()));
        }
        let page = page(traced, group, &trace, pages.len(), dictionary.map(|(_, page)| page));
        spent += page.size();
        pages.push(page);
        Ok(())
    })?;
    let metadata = traced.file.metadata();
    let column = &metadata.schema.columns[traced.column];
    let data = Data {
        title: format!("{}, column {}", traced.path.display(), traced.name),
        subtitle: format!("{}, {}", column.physical_type.name(), counted(traced.bytes.len() as u64, "byte")),
        pages: &pages,
        left_out,
    };
    let failed = |error| Stop::write(error, output);
    // In a script element `<` could end it.
    let json = serde_json::to_string(&data).map_err(|error| failed(error.into()))?.replace('<', "\\u003c");
    let (before, after) = TEMPLATE.split_once(DATA).unwrap_or((TEMPLATE, ""));
    let parts = [before, &json, after];
    if output == Path::new(STDIO) {
        let out = console.out();
        parts.iter().try_for_each(|part| out.write_all(part.as_bytes())).map_err(stdout_failed)?;
        console.flush()?;
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        tell(traced, Path::new("standard output"), &pages, left_out, bytes, fault.as_ref(), console)?;
    } else {
        let (target, file) = Target::file(output)?;
        let mut out = BufWriter::new(&file);
        parts.iter().try_for_each(|part| out.write_all(part.as_bytes())).map_err(failed)?;
        out.flush().map_err(failed)?;
        drop(out);
        let bytes = target.commit_file(&file)?;
        tell(traced, output, &pages, left_out, bytes, fault.as_ref(), console)?;
    }
    match fault {
        Some(fault) if !console.json => Err(fault.into()),
        Some(_) => Ok(Verdict::Unsound),
        None => Ok(Verdict::Sound),
    }
}

/// What `--json` prints about a page that was written.
#[derive(Serialize)]
struct Written<'a> {
    path: &'a str,
    kind: &'static str,
    column: &'a str,
    output: &'a str,
    n_pages: usize,
    n_left_out: usize,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

fn tell(
    traced: &Traced<'_>,
    output: &Path,
    pages: &[Page],
    n_left_out: usize,
    bytes: u64,
    error: Option<&Fault>,
    console: &mut Console,
) -> Result<(), Stop> {
    let (path, output) = (&*traced.path.to_string_lossy(), &*output.to_string_lossy());
    if console.json {
        let (column, n_pages) = (&*traced.name, pages.len());
        return console.record(&Written { path, kind: PARQUET, column, output, n_pages, n_left_out, bytes, error });
    }
    let more = if n_left_out > 0 {
        format!("; {} left out: choose with --row-group and --page", counted(n_left_out as u64, "page"))
    } else {
        String::new()
    };
    console.note(format_args!("{output}: {}, {}{more}", counted(pages.len() as u64, "page"), counted(bytes, "byte")));
    Ok(())
}

impl Page {
    /// About what it takes in the file.
    fn size(&self) -> usize {
        let steps = self.steps.iter().map(|step| step.label.len() + step.detail.len() + 60);
        let values = self.values.iter().map(|value| value.text.len() + 30 * value.at.len());
        self.bytes.iter().map(|region| region.hex.len()).chain(steps).chain(values).sum()
    }
}

/// A page, which is to be number `own` of the list.
fn page(traced: &Traced<'_>, group: usize, trace: &PageTrace, own: usize, dictionary: Option<usize>) -> Page {
    let info = &trace.info;
    let header_start = info.header_span.start;
    let mut notes = Vec::new();
    let in_file = match (&trace.unpacked, trace.levels_origin) {
        // Of what is packed nothing can be seen.
        (Some((offset, _)), Origin::File) => info.body_span.start + offset,
        (Some(_), Origin::Body) => info.body_span.start,
        (None, _) => info.body_span.end,
    };
    let in_file = in_file.min(info.body_span.end);
    let mut regions = vec![region("bytes of the file", header_start..in_file, Placed::whole(traced.bytes), &mut notes)];
    if let Some((offset, bytes)) = &trace.unpacked {
        let span = *offset..offset + bytes.len() as u64;
        regions.push(region("bytes of the unpacked body", span, placed(traced.bytes, trace, Origin::Body), &mut notes));
    }
    let number = |origin| usize::from(trace.unpacked.is_some() && origin == Origin::Body);
    let sections = [
        ("header", &trace.header, Origin::File),
        ("levels", &trace.levels, trace.levels_origin),
        ("values", &trace.steps, trace.origin),
    ];
    let all = sections.iter().map(|(_, steps, _)| steps.len()).sum::<usize>();
    if all > STEPS {
        notes.push(first(STEPS, all as u64, "step"));
    }
    let steps = sections.into_iter().flat_map(|(section, steps, origin)| {
        steps.iter().map(move |step| Step {
            section,
            label: step.label.clone(),
            detail: cut(&step.detail, TEXT).into_owned(),
            at: (number(origin), step.span.start, step.span.end),
        })
    });
    let steps = steps.take(STEPS).collect();
    let mut values = Vec::new();
    if let Some(found) = trace.values.as_ref().filter(|found| found.len() == trace.spans.len()) {
        if found.len() > VALUES {
            notes.push(first(VALUES, found.len() as u64, "value"));
        }
        for i in 0..found.len().min(VALUES) {
            let (main, others) = trace.spans.get(i);
            let home = match trace.dictionary_origin {
                // Where its page is not shown, nothing can be.
                Some(origin) => dictionary.map(|page| (page, usize::from(origin == Origin::Body))),
                None => Some((own, number(trace.origin))),
            };
            let main = home.map(|(page, region)| (page, region, main.start, main.end));
            let others = others.iter().map(|span| (own, number(trace.origin), span.start, span.end));
            values.push(Value {
                text: cut(&line(found, i), TEXT).into_owned(),
                at: main.into_iter().chain(others).collect(),
            });
        }
    }
    Page {
        rg: group,
        page: info.number,
        title: title(traced, group, trace),
        bytes: regions,
        steps,
        values,
        notes,
        fault: trace.fault.as_ref().map(|fault| Fault::from(fault).to_string()),
    }
}

/// That there are only the first of some things.
fn first(shown: usize, all: u64, thing: &str) -> String {
    format!("the first {} of {}", HumanCount(shown as u64), counted(all, thing))
}

fn region(title: &str, span: Range<u64>, bytes: Placed<'_>, notes: &mut Vec<String>) -> Region {
    let len = span.end.saturating_sub(span.start);
    let shown = bytes.part(&span);
    if shown.len() > BYTES {
        notes.push(first(BYTES, len, "byte"));
    }
    let hex = hex(&shown[..shown.len().min(BYTES)]);
    Region { title: title.to_owned(), offset: span.start, len, hex }
}
