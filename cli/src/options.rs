//! Options that several verbs share, and how their values are written.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser};
use tilekern::deltacel::dataset::obs::Cache;
use tilekern::deltacel::{Decoder, DecoderBuilder, Profile};
use tilekern::kernels::{Kernels, Level};
use tilekern::{Error, Limits, mlt};

use crate::fault::Fault;

/// How to decode.
#[derive(Args, Debug, Clone)]
pub struct Engine {
    /// Threads to use; 0 is one per CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads())]
    pub threads: u16,

    #[command(flatten)]
    pub decoding: Decoding,
}

/// How to decode on one thread.
#[derive(Args, Debug, Clone)]
pub struct Decoding {
    /// Kernels to use instead of this CPU's best, as TILEKERN_KERNEL does
    #[arg(long, value_name = "K", value_parser = PossibleValuesParser::new(Level::ALL.map(Level::name)))]
    pub kernel: Option<String>,

    /// Memory that the results of one tile or page may take, and the text of a map tile, for example 512M or 8G (default 4G)
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_output: Option<u64>,
}

/// How map tiles are decoded.
#[derive(Args, Debug, Clone, Copy)]
pub struct MapTiles {
    /// How the FastPFOR blocks of map tiles of version 2 are packed: as the format says, or as mlt-core wrote them up to
    /// 0.22.1, which nothing in a tile tells
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t = Fastpfor::Interleaved)]
    mlt_fastpfor: Fastpfor,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Fastpfor {
    Interleaved,
    Sequential,
}

impl MapTiles {
    /// The option that is given, if it is not the default.
    pub fn given(&self) -> Option<&'static str> {
        (self.mlt_fastpfor != Fastpfor::Interleaved).then_some("--mlt-fastpfor")
    }

    /// What decoders of map tiles are given, from what is the same for all.
    pub fn options(&self, options: mlt::Options) -> mlt::Options {
        let packing = match self.mlt_fastpfor {
            Fastpfor::Interleaved => mlt::Packing::Interleaved,
            Fastpfor::Sequential => mlt::Packing::Sequential,
        };
        options.packing(packing)
    }
}

/// Where columns of tables of cells are kept.
#[derive(Args, Debug, Clone)]
pub struct CacheFolder {
    /// Folder that keeps columns of tables of cells for all processes [default: $DELTACELLS_CACHE, else none]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl CacheFolder {
    /// The folder asked for, else that of the environment.
    pub fn cache(&self) -> Option<Cache> {
        let variable = || std::env::var_os(Cache::VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        self.cache.clone().or_else(variable).map(Cache::at)
    }
}

/// A number of threads that a machine can have.
pub fn threads() -> RangedI64ValueParser<u16> {
    RangedI64ValueParser::new().range(0..=1024)
}

/// A profile of the writer of tiles.
pub fn profile(text: &str) -> Result<Profile, String> {
    let why =
        |error: Error| std::error::Error::source(&error).map_or_else(|| error.message(), |source| source.to_string());
    text.parse().map_err(why)
}

impl Decoding {
    /// The bounds on memory.
    pub fn limits(&self) -> Limits {
        let limits = Limits::default();
        self.max_output.map_or(limits, |bytes| limits.with_output_bytes(bytes))
    }

    /// The kernels asked for, else those that TILEKERN_KERNEL names, else this CPU's best.
    pub fn kernels(&self) -> Result<Kernels, Error> {
        Ok(match &self.kernel {
            Some(name) => Kernels::by_name(name)?,
            None => Kernels::from_env()?,
        })
    }
}

impl Engine {
    /// The bounds on memory.
    pub fn limits(&self) -> Limits {
        self.decoding.limits()
    }

    /// The kernels asked for, else those that TILEKERN_KERNEL names, else this CPU's best.
    pub fn kernels(&self) -> Result<Kernels, Error> {
        self.decoding.kernels()
    }

    /// A decoder with these options.
    pub fn decoder(&self) -> Result<Decoder, Error> {
        let builder: DecoderBuilder = Decoder::builder();
        builder.kernels(self.kernels()?).threads(self.threads.into()).limits(self.limits()).build()
    }
}

/// A number of bytes: digits, then K, M, G or T for powers of 1024 (KiB and KB mean the same), or nothing.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err("write a whole number of bytes, with K, M, G or T if you like: 512M".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "write a whole number of bytes: 512M".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "more bytes than there are".to_owned())
}

/// A half-open range of cells: `A..B`, where A may be left out for the first and B for the end; `A` is one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellRange {
    start: u64,
    end: Option<u64>,
}

impl CellRange {
    /// Both ends, where both are written.
    pub fn bounds(&self) -> Option<Range<u64>> {
        self.end.map(|end| self.start..end)
    }

    /// The range in what `path` names, which has `n_cells`.
    pub fn within_or_fault(&self, n_cells: u64, path: &Path) -> Result<Range<u64>, Fault> {
        self.within(n_cells).ok_or_else(|| {
            let message = format!("{self} is not within 0..{n_cells}: choose cells that are there");
            Fault { part: Some("cells".into()), ..Fault::new("out_of_range", path, message) }
        })
    }

    /// The range in a matrix of `n_cells`, or none where it does not lie in there.
    fn within(&self, n_cells: u64) -> Option<Range<u64>> {
        let end = self.end.unwrap_or(n_cells);
        (self.start <= end && end <= n_cells).then_some(self.start..end)
    }
}

impl std::str::FromStr for CellRange {
    type Err = String;

    fn from_str(text: &str) -> Result<CellRange, String> {
        let how = "write numbers of cells and ranges A..B, from A up to, but without, B, between commas: 7,100..200";
        let text = text.trim();
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| how.to_owned());
        let Some((start, end)) = text.split_once("..") else {
            let cell = number(text)?;
            return Ok(CellRange { start: cell, end: cell.checked_add(1) });
        };
        let start = if start.is_empty() { 0 } else { number(start)? };
        let end = if end.is_empty() { None } else { Some(number(end)?) };
        if end.is_some_and(|end| end < start) {
            return Err("the range ends before it starts".to_owned());
        }
        Ok(CellRange { start, end })
    }
}

impl std::fmt::Display for CellRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..", self.start)?;
        self.end.map_or(Ok(()), |end| write!(f, "{end}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_suffixes() {
        for (text, expected) in [("0", 0), ("7", 7), ("7B", 7), ("1k", 1024), ("512M", 512 << 20), ("4GiB", 4 << 30)] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "M", "-1", "1.5G", "1X", "16777216T", "99999999999999999999"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cell_ranges_are_half_open() {
        let within = |text: &str, n| text.parse::<CellRange>().map(|range| range.within(n));
        assert_eq!(within("2..5", 5), Ok(Some(2..5)));
        assert_eq!(within("5..5", 5), Ok(Some(5..5)));
        assert_eq!(within("2..", 5), Ok(Some(2..5)));
        assert_eq!(within("..", 0), Ok(Some(0..0)));
        assert_eq!(within("4", 5), Ok(Some(4..5)));
        assert_eq!(within("5", 5), Ok(None));
        assert_eq!(within("2..6", 5), Ok(None));
        assert_eq!(within("6..", 5), Ok(None));
        for text in ["", "x", "5..2", "a..b", "1..=2", "-1..2"] {
            assert!(text.parse::<CellRange>().is_err(), "{text}");
        }
    }
}
