//! Standard output for results, standard error for everything else.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;
use serde_json::ser::Formatter;

use crate::fault::Stop;
use crate::text::{cut, plain};

/// How a verb talks.
pub struct Console {
    /// Results are JSON.
    pub json: bool,
    quiet: bool,
    /// Columns of standard output, where it is a terminal.
    width: Option<usize>,
    /// Whether text may be in colours.
    colours: bool,
    out: BufWriter<StdoutLock<'static>>,
}

impl Console {
    pub fn new(json: bool, quiet: bool) -> Console {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
        let on = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let forced = on("CLICOLOR_FORCE") && std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let colours = !on("NO_COLOR") && (forced || io::stdout().is_terminal() && !dumb);
        Console { json, quiet, width, colours, out: BufWriter::with_capacity(1 << 16, io::stdout().lock()) }
    }

    /// Writes a line of a result as text.
    pub fn line(&mut self, line: impl Display) -> Result<(), Stop> {
        writeln!(self.out, "{line}").map_err(stdout_failed)
    }

    /// Columns of standard output, where it is a terminal; elsewhere lines are as long as they are.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Whether standard output takes colours: it is a terminal, unless NO_COLOR or CLICOLOR_FORCE say otherwise.
    pub fn colours(&self) -> bool {
        self.colours
    }

    /// Writes lines of a table, cut to the width of a terminal.
    pub fn rows(&mut self, lines: impl IntoIterator<Item = String>) -> Result<(), Stop> {
        let width = self.width.unwrap_or(usize::MAX);
        lines.into_iter().try_for_each(|line| self.line(cut(&line, width)))
    }

    /// Writes a result as JSON, one line.
    pub fn record(&mut self, record: &impl Serialize) -> Result<(), Stop> {
        self.record_through(record, |out| out)
    }

    /// The same through a writer, whose errors are told as those of standard output.
    pub fn record_through<'o, W: Write>(
        &'o mut self,
        record: &impl Serialize,
        through: impl FnOnce(&'o mut BufWriter<StdoutLock<'static>>) -> W,
    ) -> Result<(), Stop> {
        let mut out = through(&mut self.out);
        record
            .serialize(&mut serde_json::Serializer::with_formatter(&mut out, Plain))
            .map_err(|e| stdout_failed(e.into()))?;
        writeln!(out).map_err(stdout_failed)
    }

    /// Hands on what is buffered.
    pub fn flush(&mut self) -> Result<(), Stop> {
        self.out.flush().map_err(stdout_failed)
    }

    /// Standard output itself, for results that are files. Its errors go through [`stdout_failed`].
    pub fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Says something on standard error, unless asked to be quiet.
    pub fn note(&self, message: impl Display) {
        if !self.quiet {
            say(message);
        }
    }

    /// A bar on standard error that is seen where that is a terminal, unless asked to be quiet.
    pub fn progress(&self, steps: u64, what: &'static str) -> ProgressBar {
        let target = if self.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let drawn = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = out.write_str(&drawn(what, state.pos(), state.len().unwrap_or(0), state.eta()));
        };
        let style = ProgressStyle::with_template("{drawn}").unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(steps), target).with_style(style.with_key("drawn", drawn));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}

/// JSON whose strings only show on a terminal.
struct Plain;

impl Formatter for Plain {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        out.write_all(plain(fragment).as_bytes())
    }
}

/// A bar with whole numbers, which fits 80 columns; nothing before it is known how much there is to do.
fn drawn(what: &str, done: u64, all: u64, left: Duration) -> String {
    const LEN: u64 = 20;
    if all == 0 {
        return String::new();
    }
    let full = u128::from(done.min(all)) * u128::from(LEN) / u128::from(all);
    let bar = "=".repeat(usize::try_from(full).unwrap_or(0));
    // Nothing is known of the time before something is done.
    let left = if done == 0 { String::new() } else { format!(", {:#} left", HumanDuration(left)) };
    format!("{what} [{bar:<20}] {}/{}{left}", HumanCount(done), HumanCount(all))
}

/// Writes a line to standard error. Nobody may be reading: that is no failure.
pub fn say(message: impl Display) {
    let _ = writeln!(io::stderr(), "{}", plain(&message.to_string()));
}

/// A failed write to standard output.
pub fn stdout_failed(error: io::Error) -> Stop {
    Stop::write(error, Path::new("standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit_a_line() {
        assert_eq!(drawn("decoding", 0, 0, Duration::ZERO), "");
        assert_eq!(drawn("decoding", 0, 7, Duration::ZERO), "decoding [                    ] 0/7");
        let half = drawn("decoding", 1500, 3000, Duration::from_secs(2));
        assert_eq!(half, "decoding [==========          ] 1,500/3,000, 2s left");
        for (done, all) in [(0, 1), (1, 1), (7, 3), (u64::MAX, 1)] {
            assert!(drawn("x", done, all, Duration::ZERO).starts_with(if done == 0 { "x [  " } else { "x [====" }));
        }
        let long = drawn("simulating cells", 999_999_999, 1_000_000_000, Duration::from_secs(59 * 60));
        assert!(long.len() <= 80, "{long}");
    }
}
