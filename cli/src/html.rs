//! A trace as one page of HTML that needs nothing else: values, bytes and steps light each other.

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;

use crate::console::{Console, stdout_failed};
use crate::fault::Stop;
use crate::parquet::values::hex;
use crate::source::STDIO;
use crate::steps::Placed;
use crate::target::Target;
use crate::text::counted;

/// The page around the data, which takes the place of `DATA`.
const TEMPLATE: &str = include_str!("trace.html");
const DATA: &str = "{{data}}";

/// What is shown of one page at most: bytes, steps, values; and characters of a text.
pub const BYTES: usize = 1 << 16;
pub const STEPS: usize = 4000;
pub const VALUES: usize = 10_000;
pub const TEXT: usize = 2000;
/// What is shown of all pages together, in bytes of the data below.
pub const ALL: usize = 8 << 20;

/// What the file shows.
#[derive(Serialize)]
pub struct Data<'a> {
    pub title: String,
    pub subtitle: String,
    pub pages: &'a [Page],
    /// Pages that are not shown for want of room, and how to see them.
    pub left_out: usize,
    pub how: &'static str,
}

/// A part of what is traced, which opens and closes.
#[derive(Serialize)]
pub struct Page {
    /// Pages that share values have this in common.
    pub group: usize,
    /// Pages behind each other that have this in common stand below one heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    pub title: String,
    /// Its bytes: those of the file, then those that were unpacked.
    pub bytes: Vec<Region>,
    pub steps: Vec<Step>,
    pub values: Vec<Value>,
    pub notes: Vec<String>,
    pub fault: Option<String>,
}

#[derive(Serialize)]
pub struct Region {
    title: String,
    offset: u64,
    len: u64,
    hex: String,
}

#[derive(Serialize)]
pub struct Step {
    /// Steps below each other that have this in common stand below one heading.
    pub section: &'static str,
    pub label: String,
    pub detail: String,
    /// The number of its region, and its bytes.
    pub at: (usize, u64, u64),
}

#[derive(Serialize)]
pub struct Value {
    pub text: String,
    /// The number of the page in the list and of its region, and bytes: of the value, then others that it needs.
    pub at: Vec<(usize, usize, u64, u64)>,
}

impl Page {
    /// About what it takes in the file.
    pub fn size(&self) -> usize {
        let steps = self.steps.iter().map(|step| step.label.len() + step.detail.len() + 60);
        let values = self.values.iter().map(|value| value.text.len() + 30 * value.at.len());
        self.bytes.iter().map(|region| region.hex.len()).chain(steps).chain(values).sum()
    }
}

/// That there are only the first of some things.
pub fn first(shown: usize, all: u64, thing: &str) -> String {
    format!("the first {} of {}", HumanCount(shown as u64), counted(all, thing))
}

/// The bytes of a span, the first of them.
pub fn region(title: &str, span: Range<u64>, bytes: Placed<'_>, notes: &mut Vec<String>) -> Region {
    let len = span.end.saturating_sub(span.start);
    let shown = bytes.part(&span);
    if shown.len() > BYTES {
        notes.push(first(BYTES, len, "byte"));
    }
    let hex = hex(&shown[..shown.len().min(BYTES)]);
    Region { title: title.to_owned(), offset: span.start, len, hex }
}

/// Writes the file, or standard output. Returns its name and size.
pub fn write(data: &Data<'_>, output: &Path, console: &mut Console) -> Result<(String, u64), Stop> {
    let failed = |error| Stop::write(error, output);
    // In a script element `<` could end it.
    let json = serde_json::to_string(data).map_err(|error| failed(error.into()))?.replace('<', "\\u003c");
    let (before, after) = TEMPLATE.split_once(DATA).unwrap_or((TEMPLATE, ""));
    let parts = [before, &json, after];
    if output == Path::new(STDIO) {
        let out = console.out();
        parts.iter().try_for_each(|part| out.write_all(part.as_bytes())).map_err(stdout_failed)?;
        console.flush()?;
        return Ok(("standard output".to_owned(), parts.iter().map(|part| part.len() as u64).sum()));
    }
    let (target, file) = Target::file(output)?;
    let mut out = BufWriter::new(&file);
    parts.iter().try_for_each(|part| out.write_all(part.as_bytes())).map_err(failed)?;
    out.flush().map_err(failed)?;
    drop(out);
    Ok((output.to_string_lossy().into_owned(), target.commit_file(&file)?))
}
