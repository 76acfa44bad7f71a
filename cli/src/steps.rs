//! The steps of a trace, as people and programs get them.

use std::ops::Range;

use serde::Serialize;
use tilekern::Step;

use crate::table::{Align, Table};

/// Bytes of a step that are shown in full.
const SHOWN: usize = 8;

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
pub fn records<'a>(steps: &'a [Step], bytes: &[u8]) -> Vec<StepRecord<'a>> {
    let record = |step: &'a Step| StepRecord {
        label: &step.label,
        depth: step.depth,
        start: step.span.start,
        end: step.span.end,
        bytes: start_of(&step.span, bytes).0.concat(),
        detail: &step.detail,
    };
    steps.iter().map(record).collect()
}

/// The steps in an object of these bytes, a line each below a title.
pub fn table(steps: &[Step], bytes: &[u8]) -> Table {
    let left = ["step", "content", "meaning"].map(|title| (title, Align::Left));
    let mut table = Table::new([("bytes", Align::Right), left[0], left[1], left[2]]);
    for step in steps {
        let (hex, len) = start_of(&step.span, bytes);
        let more = if len > SHOWN { format!(" … {len} bytes") } else { String::new() };
        table.row([
            format!("{}..{}", step.span.start, step.span.end),
            format!("{:width$}{}", "", step.label, width = 2 * usize::from(step.depth)),
            hex.join(" ") + &more,
            step.detail.clone(),
        ]);
    }
    table
}

/// The first bytes of a span in hexadecimal, and how many there are in all.
fn start_of(span: &Range<u64>, bytes: &[u8]) -> (Vec<String>, usize) {
    let shown = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let span = &bytes[shown(span.start)..shown(span.end)];
    (span.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect(), span.len())
}
