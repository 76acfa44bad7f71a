//! The steps of a trace, as people and programs get them.

use std::ops::Range;

use serde::Serialize;
use tilekern::Step;

use crate::console::Console;
use crate::fault::Stop;
use crate::table::{Align, Table};

/// Bytes of a step that are shown in full.
const SHOWN: usize = 8;

/// Colours of the columns of a table of steps, as a terminal takes them: cyan, bold, yellow, none.
const COLOURS: [&str; 4] = ["36", "1", "33", ""];

/// Bytes, and the offset of their first.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    pub offset: u64,
    pub bytes: &'a [u8],
}

impl<'a> Placed<'a> {
    /// Those of an object as a whole.
    pub fn whole(bytes: &'a [u8]) -> Placed<'a> {
        Placed { offset: 0, bytes }
    }

    /// The bytes of a span, as far as they are there.
    pub fn part(&self, span: &Range<u64>) -> &'a [u8] {
        let at = |offset: u64| {
            let at = usize::try_from(offset.saturating_sub(self.offset)).unwrap_or(usize::MAX);
            at.min(self.bytes.len())
        };
        self.bytes.get(at(span.start)..at(span.end)).unwrap_or_default()
    }
}

/// A step as `--json` prints it.
#[derive(Serialize)]
pub struct StepRecord<'a> {
    label: &'a str,
    depth: u8,
    start: u64,
    end: u64,
    /// The first bytes, in hexadecimal.
    bytes: String,
    detail: &'a str,
}

/// The steps in an object of these bytes.
pub fn records<'a>(steps: &'a [Step], bytes: Placed<'_>) -> Vec<StepRecord<'a>> {
    let record = |step: &'a Step| StepRecord {
        label: &step.label,
        depth: step.depth,
        start: step.span.start,
        end: step.span.end,
        bytes: start_of(bytes.part(&step.span)).concat(),
        detail: &step.detail,
    };
    steps.iter().map(record).collect()
}

/// Prints steps in objects of such bytes, a line each below a title: in colours, and cut to its width, on a terminal.
pub fn print<'s>(steps: impl IntoIterator<Item = (&'s Step, Placed<'s>)>, console: &mut Console) -> Result<(), Stop> {
    let left = ["step", "content", "meaning"].map(|title| (title, Align::Left));
    let mut table = Table::new([("bytes", Align::Right), left[0], left[1], left[2]]);
    for (step, bytes) in steps {
        let (bytes, len) = (bytes.part(&step.span), step.span.end.saturating_sub(step.span.start));
        let more = if len > SHOWN as u64 { format!(" … {len} bytes") } else { String::new() };
        table.row([
            format!("{}..{}", step.span.start, step.span.end),
            format!("{:width$}{}", "", step.label, width = 2 * usize::from(step.depth)),
            start_of(bytes).join(" ") + &more,
            step.detail.clone(),
        ]);
    }
    if !console.colours() {
        return console.rows(table.lines());
    }
    let lines = table.painted(&COLOURS, console.width());
    lines.into_iter().try_for_each(|line| console.line(line))
}

/// The first bytes in hexadecimal.
fn start_of(bytes: &[u8]) -> Vec<String> {
    bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect()
}
