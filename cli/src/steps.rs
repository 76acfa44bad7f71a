//! The steps of a trace, as people and programs get them.

use std::ops::Range;

use serde::Serialize;
use tilekern::Step;

use crate::console::Console;
use crate::fault::Stop;
use crate::table::{Align, Table};
use crate::text::cut;

/// Bytes of a step that are shown in full.
const SHOWN: usize = 8;

/// Colours of the columns of a table of steps, as a terminal takes them: cyan, bold, yellow.
const COLOURS: [&str; 3] = ["36", "1", "33"];

/// Between columns.
const GAP: &str = "  ";
/// Characters that a column of details needs, and where they stand if there are fewer.
const NARROW: usize = 40;
const INDENT: usize = 6;
/// Lines of a detail.
const LINES: usize = 4;

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

/// Prints steps in objects of such bytes below a title: on a terminal in colours, and in lines that fit it; elsewhere each
/// in a line.
pub fn print<'s>(steps: impl IntoIterator<Item = (&'s Step, Placed<'s>)>, console: &mut Console) -> Result<(), Stop> {
    let mut table = Table::new([("bytes", Align::Right), ("step", Align::Left), ("content", Align::Left)]);
    let mut details = vec!["meaning"];
    for (step, bytes) in steps {
        let (bytes, len) = (bytes.part(&step.span), step.span.end.saturating_sub(step.span.start));
        let more = if len > SHOWN as u64 { format!(" … {len} bytes") } else { String::new() };
        table.row([
            format!("{}..{}", step.span.start, step.span.end),
            format!("{:width$}{}", "", step.label, width = 2 * usize::from(step.depth)),
            start_of(bytes).join(" ") + &more,
        ]);
        details.push(&step.detail);
    }
    let heads = if console.colours() { table.painted(&COLOURS) } else { table.padded() };
    let (start, width) = (table.width() + GAP.len(), console.width());
    for (head, detail) in heads.into_iter().zip(details) {
        let mut lines = lay(detail, start, width);
        let first = lines.next().unwrap_or_default();
        let line = format!("{head}{GAP}{first}");
        console.line(if first.is_empty() { line.trim_end() } else { &line })?;
        lines.try_for_each(|line| console.line(line))?;
    }
    Ok(())
}

/// The lines of a detail: the first goes on at `start`, the others stand below it, or, where little room is left of a
/// terminal's width, below the whole step. Long lists are cut.
fn lay(detail: &str, start: usize, width: Option<usize>) -> impl Iterator<Item = String> + use<> {
    let room = |start: usize| width.map_or(usize::MAX, |width| width.saturating_sub(start));
    let fits = detail.chars().nth(room(start)).is_none();
    let indent = if room(start) < NARROW { INDENT } else { start };
    let mut lines = if fits { vec![detail.to_owned()] } else { wrapped(detail, room(indent).max(1)) };
    if !fits {
        lines.iter_mut().for_each(|line| line.insert_str(0, &" ".repeat(indent)));
        if indent == start {
            lines[0].drain(..indent);
        } else {
            lines.insert(0, String::new());
        }
    }
    lines.into_iter()
}

/// A text in lines of so many characters, broken at blanks where there are some.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while let Some((end, _)) = rest.char_indices().nth(room) {
        if lines.len() + 1 == LINES {
            lines.push(cut(rest, room).into_owned());
            return lines;
        }
        let at = rest[..end].rfind(' ').filter(|&at| at > 0).unwrap_or(end);
        lines.push(rest[..at].to_owned());
        rest = rest[at..].trim_start();
    }
    lines.push(rest.to_owned());
    lines
}

/// The first bytes in hexadecimal.
fn start_of(bytes: &[u8]) -> Vec<String> {
    bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_fit_a_terminal() {
        let lines = |detail: &str, start, width| lay(detail, start, width).collect::<Vec<_>>();
        let long = "deltas [100, 200, 300, 400, 500, 600, 700, 800, 900]";
        assert_eq!(lines(long, 30, None), [long]);
        assert_eq!(lines(long, 30, Some(82)), [long]);
        let below = format!("{}700, 800, 900]", " ".repeat(30));
        assert_eq!(lines(long, 30, Some(71)), ["deltas [100, 200, 300, 400, 500, 600,", &below]);
        assert_eq!(
            lines(long, 30, Some(40)),
            ["", "      deltas [100, 200, 300, 400, 500,", "      600, 700, 800, 900]"]
        );
        assert_eq!(lines("short", 30, Some(40)), ["short"]);
        let text = "x".repeat(100);
        assert_eq!(wrapped(&text, 20), [&text[..20], &text[..20], &text[..20], &(text[..19].to_owned() + "…")]);
        assert_eq!(lines(long, 30, Some(0)).len(), 5);
    }
}
