//! What ends a verb early, and the record of a fault as people and programs get it.

use std::path::Path;
use std::{fmt, io};

use serde::Serialize;
use tilekern::{Error, ErrorKind, Limit, PagePlace, Part};

use crate::text::plain;

/// Bytes of values of any length that offsets of 32 bits can tell apart.
const OFFSETS: u64 = i32::MAX.unsigned_abs() as u64;

/// One fault. Its `Display` is one line; as JSON it is the `error` object of every verb.
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    /// A stable lower-case word.
    pub kind: &'static str,
    /// Absolute byte offset in the object.
    pub offset: Option<u64>,
    pub part: Option<String>,
    pub path: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl Fault {
    /// A fault that the library does not know of.
    pub fn new(kind: &'static str, path: &Path, message: impl Into<String>) -> Fault {
        Fault { kind, offset: None, part: None, path: Some(text(path)), message: message.into() }
    }

    /// The fault, in `path` unless it names one itself.
    pub fn of(error: Error, path: &Path) -> Fault {
        error.in_path(path).into()
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::from(&error)
    }
}

impl From<&Error> for Fault {
    fn from(error: &Error) -> Fault {
        let mut message = error.message();
        if let ErrorKind::LimitExceeded { what, limit, .. } = error.kind() {
            // What the library's callers raise is no option here, with one exception.
            let needed = message.split_once("; raise").map_or(&*message, |(needed, _)| needed);
            message = match what {
                // Offsets of 32 bits reach no further, whatever is allowed.
                Limit::OutputBytes if limit != OFFSETS => {
                    format!("{needed}; if you trust the source, raise --max-output where the verb has it")
                }
                _ => needed.to_owned(),
            };
        }
        // A gene that there is not is called by its name alone.
        let named = error.part() == Part::Genes && error.kind() == ErrorKind::Missing;
        if let Some(index) = error.value_index().filter(|_| !named) {
            message = format!("value {index}: {message}");
        }
        if let Some(offset) = error.unpacked_offset() {
            message = format!("byte {offset} of the unpacked body: {message}");
        }
        if let Some(advice) = advice(error) {
            message = format!("{message}; {advice}");
        }
        Fault {
            kind: error.kind().name(),
            offset: error.offset(),
            part: part(error),
            path: error.path().map(text),
            message,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", plain(path))?;
        }
        match (&self.part, self.offset) {
            (Some(part), Some(offset)) => write!(f, "{} at byte {offset}: ", plain(part))?,
            (Some(part), None) => write!(f, "{}: ", plain(part))?,
            (None, Some(offset)) => write!(f, "byte {offset}: ")?,
            (None, None) => {}
        }
        write!(f, "{} [{}]", plain(&self.message), self.kind)
    }
}

/// The part with the page, or the layer and column, that it belongs to.
fn part(error: &Error) -> Option<String> {
    let part = Some(error.part()).filter(|part| *part != Part::Object).map(|part| part.to_string());
    if let Some(place) = error.layer() {
        return Some([Some(place.to_string()), part].into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
    let Some(PagePlace { row_group, column, page }) = error.page() else { return part };
    let page = page.map(|page| format!("page {page}"));
    let place = [Some(format!("row group {row_group}, column {column}")), page, part];
    Some(place.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// A path as text; what is not UTF-8 in it is replaced.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What to do about damage, where the library's message only says what is wrong.
fn advice(error: &Error) -> Option<&'static str> {
    let asked_for = matches!(
        error.part(),
        Part::Cells | Part::Genes | Part::Kernels | Part::Option(_) | Part::Buffer(_) | Part::Filter
    );
    match error.kind() {
        _ if asked_for => None,
        ErrorKind::Io(io::ErrorKind::NotFound) if error.path().is_some_and(in_dataset) => Some("fetch the file again"),
        ErrorKind::Io(io::ErrorKind::NotFound) => Some("check the path"),
        ErrorKind::BadMagic if error.part() == Part::Footer("magic") => Some("fetch it again, or write it anew"),
        ErrorKind::BadMagic => Some("check the path, or name the kind with --as"),
        // Of a section alone the options may be wrong as well.
        ErrorKind::Encoding(_) | ErrorKind::Compression(_) if error.page().is_none() && error.layer().is_none() => None,
        ErrorKind::Reserved { .. }
        | ErrorKind::Inconsistent { .. }
        | ErrorKind::OutOfRange { .. }
        | ErrorKind::Misaligned { .. }
        | ErrorKind::Frame(_)
        | ErrorKind::RepeatedGene
        | ErrorKind::ZeroCount
        | ErrorKind::NotExcepted { .. }
        | ErrorKind::Syntax(_)
        | ErrorKind::Encoding(_)
        | ErrorKind::Mlt(_)
        | ErrorKind::Compression(_)
        | ErrorKind::Missing
        | ErrorKind::WrongType => Some("damaged or made by a faulty writer: fetch it again, or write it anew"),
        _ => None,
    }
}

/// Whether a path is that of a file of a dataset, which lie one folder deep at most.
fn in_dataset(path: &Path) -> bool {
    path.ancestors().skip(1).take(2).any(|folder| folder.join("manifest.json").is_file())
}

/// Why a verb ended early.
#[derive(Debug)]
pub enum Stop {
    Fault(Fault),
    /// A wrong use of the command that its parser cannot see.
    Usage(String),
    /// Nobody reads what is written any more.
    ClosedPipe,
}

impl Stop {
    /// A failed write to `path`.
    pub fn write(error: io::Error, path: &Path) -> Stop {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::ClosedPipe,
            _ => Error::io(error, path).into(),
        }
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Fault(error.into())
    }
}
