//! What a conversion can fail by: a fault of an input, of a request, or of the dataset that is written.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// A fault, and what to do about it.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    path: Option<PathBuf>,
    part: Option<String>,
    offset: Option<u64>,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// Whether rounding would make a count of the value that is none.
    rounds: bool,
}

/// What is wrong. The names (see [`ErrorKind::name`]) are stable and those of the library where it has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Reading or writing failed.
    Io,
    /// The object ends too early.
    Truncated,
    /// Text or metadata that does not have the shape that its kind of file has.
    Syntax,
    /// Two places disagree: lengths, shapes, genes of two inputs.
    Inconsistent,
    /// An index or a count outside the range that is possible.
    OutOfRange,
    /// A part that is needed is absent.
    Missing,
    /// A part has another type than it must have.
    WrongType,
    /// Legal, but not possible here.
    Unsupported,
    /// A value that is not a count: negative, not whole, not finite, above 2^31 - 1.
    NotCounts,
    /// Several matrices could be meant: one must be chosen.
    Ambiguous,
    /// More memory would be needed than is allowed.
    LimitExceeded,
    /// The conversion was asked to stop.
    Interrupted,
    /// A fault that the library found.
    Dataset(tilekern::ErrorKind),
}

impl ErrorKind {
    /// The kind's stable, lower-case name.
    pub fn name(&self) -> &'static str {
        match self {
            ErrorKind::Io => "io",
            ErrorKind::Truncated => "truncated",
            ErrorKind::Syntax => "syntax",
            ErrorKind::Inconsistent => "inconsistent",
            ErrorKind::OutOfRange => "out_of_range",
            ErrorKind::Missing => "missing",
            ErrorKind::WrongType => "wrong_type",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::NotCounts => "not_counts",
            ErrorKind::Ambiguous => "ambiguous",
            ErrorKind::LimitExceeded => "limit_exceeded",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Dataset(kind) => kind.name(),
        }
    }
}

impl Error {
    /// A fault with a message that says what is wrong and what to do.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            path: None,
            part: None,
            offset: None,
            message: message.into(),
            source: None,
            rounds: false,
        }))
    }

    /// A failed read or write of `path`.
    #[cold]
    pub fn io(error: std::io::Error, path: impl AsRef<Path>) -> Error {
        let kind = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
            _ => ErrorKind::Io,
        };
        let advice = if error.kind() == std::io::ErrorKind::NotFound { "; check the path" } else { "" };
        Error::new(kind, format!("{error}{advice}")).in_path(path).caused_by(error)
    }

    /// A value that is not a count.
    #[cold]
    pub fn not_a_count(cell: u64, gene: u64, value: impl fmt::Display, rounds: bool) -> Error {
        let message = format!("{value} is not a count (a whole number from 0 to 2147483647)");
        let mut error = Error::new(ErrorKind::NotCounts, message).in_part(format!("cell {cell}, gene {gene}"));
        error.0.rounds = rounds;
        error
    }

    /// Whether rounding would make a count of the value that is none.
    pub(crate) fn rounds(&self) -> bool {
        self.0.rounds
    }

    /// Adds the file or directory, unless one is named already.
    #[must_use]
    pub fn in_path(mut self, path: impl AsRef<Path>) -> Error {
        if self.0.path.is_none() {
            self.0.path = Some(path.as_ref().to_owned());
        }
        self
    }

    /// Adds the part of the file (a slot, a line, a cell and gene); one that is named already lies within it.
    #[must_use]
    pub fn in_part(mut self, part: impl Into<String>) -> Error {
        let outer = part.into();
        self.0.part = Some(match self.0.part.take() {
            Some(inner) => format!("{outer}, {inner}"),
            None => outer,
        });
        self
    }

    /// Adds the absolute byte offset in the file.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Error {
        self.0.offset = Some(offset);
        self
    }

    /// Adds what else there is to say.
    #[must_use]
    pub fn hint(mut self, more: impl AsRef<str>) -> Error {
        self.0.message.push_str("; ");
        self.0.message.push_str(more.as_ref());
        self
    }

    /// Adds the error behind this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file or directory.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The part of it.
    pub fn part(&self) -> Option<&str> {
        self.0.part.as_deref()
    }

    /// The absolute byte offset in it.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// What is wrong and what to do, without path and part.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl From<tilekern::Error> for Error {
    fn from(error: tilekern::Error) -> Error {
        let mut made = Error::new(ErrorKind::Dataset(error.kind()), error.message());
        made.0.path = error.path().map(Path::to_owned);
        let part = (error.part() != tilekern::Part::Object).then(|| error.part().to_string());
        let value = error.value_index().map(|index| format!("value {index}"));
        made.0.part = match (part, value) {
            (Some(part), Some(value)) => Some(format!("{part}, {value}")),
            (part, value) => part.or(value),
        };
        made.0.offset = error.offset();
        made.caused_by(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.0.path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(part) = &self.0.part {
            write!(f, "{part}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
