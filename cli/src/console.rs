//! Standard output for results, standard error for everything else.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::fault::Stop;
use crate::text::plain;

/// How a verb talks.
pub struct Console {
    /// Results are JSON.
    pub json: bool,
    quiet: bool,
    out: BufWriter<StdoutLock<'static>>,
}

impl Console {
    pub fn new(json: bool, quiet: bool) -> Console {
        Console { json, quiet, out: BufWriter::with_capacity(1 << 16, io::stdout().lock()) }
    }

    /// Writes a line of a result as text.
    pub fn line(&mut self, line: impl Display) -> Result<(), Stop> {
        writeln!(self.out, "{line}").map_err(stdout_failed)
    }

    /// Writes a result as JSON, one line.
    pub fn record(&mut self, record: &impl Serialize) -> Result<(), Stop> {
        let text = serde_json::to_string(record).map_err(|e| stdout_failed(e.into()))?;
        self.line(plain(&text))
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
        let style = ProgressStyle::with_template("{msg} [{bar:30}] {human_pos}/{human_len}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(Some(steps), target).with_style(style).with_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}

/// Writes a line to standard error. Nobody may be reading: that is no failure.
pub fn say(message: impl Display) {
    let _ = writeln!(io::stderr(), "{}", plain(&message.to_string()));
}

/// A failed write to standard output.
pub fn stdout_failed(error: io::Error) -> Stop {
    Stop::write(error, Path::new("standard output"))
}
