//! The trace of a column as a page of HTML.

use std::path::Path;

use serde::Serialize;
use tilekern::parquet::file::{Origin, PageTrace};

use super::trace::{Request, Traced, placed, title};
use super::values::line;
use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::html::{self, ALL, Data, Page, STEPS, Step, TEXT, VALUES, Value, first, region};
use crate::source::PARQUET;
use crate::steps::Placed;
use crate::text::{counted, cut};

/// How to see pages that are left out.
const HOW: &str = "choose with --row-group and --page";

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
        how: HOW,
    };
    let (output, bytes) = html::write(&data, output, console)?;
    tell(traced, &output, &pages, left_out, bytes, fault.as_ref(), console)?;
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
    output: &str,
    pages: &[Page],
    n_left_out: usize,
    bytes: u64,
    error: Option<&Fault>,
    console: &mut Console,
) -> Result<(), Stop> {
    if console.json {
        let path = &*traced.path.to_string_lossy();
        let (column, n_pages) = (&*traced.name, pages.len());
        return console.record(&Written { path, kind: PARQUET, column, output, n_pages, n_left_out, bytes, error });
    }
    let more = if n_left_out > 0 {
        format!("; {} left out: {HOW}", counted(n_left_out as u64, "page"))
    } else {
        String::new()
    };
    console.note(format_args!("{output}: {}, {}{more}", counted(pages.len() as u64, "page"), counted(bytes, "byte")));
    Ok(())
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
        group,
        heading: None,
        title: title(traced, group, trace),
        bytes: regions,
        steps,
        values,
        notes,
        fault: trace.fault.as_ref().map(|fault| Fault::from(fault).to_string()),
    }
}
