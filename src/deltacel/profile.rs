//! Profiles: what the writer spends on a frame, and what it saves a reader.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Part, Unsupported};
use crate::input::Input;
use crate::zstd::{Compressor, Decompressor, Parameters, Refused, Sequence};

/// How the frames of a tile are made. All are plain zstd, for any reader.
///
/// zstd's own parse at a high level holds many short matches that save almost no bytes and that a decoder pays dearly
/// for (about 8 ns each). All profiles but `plain` leave them out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The fewest bytes, whatever they cost to write.
    Small,
    /// As few bytes as zstd's level 19, decoded in four fifths of its time.
    #[default]
    Balanced,
    /// The fastest to decode, at a few per cent more bytes.
    Fast,
    /// A tenth of the time to write, a few per cent more bytes.
    Quick,
    /// zstd as it is, at a level of 1 to 22.
    Plain(i32),
}

impl Profile {
    /// The level of zstd behind the profile: what a manifest states for information.
    pub fn zstd_level(self) -> i32 {
        match self {
            Profile::Small => 22,
            Profile::Balanced | Profile::Fast => 19,
            Profile::Quick => 9,
            Profile::Plain(level) => level,
        }
    }

    /// Passes a profile whose level is one of zstd's.
    pub(crate) fn check(self) -> Result<Profile, Error> {
        match self {
            Profile::Plain(level) if !(1..=22).contains(&level) => {
                let kind = ErrorKind::OutOfRange { found: level.into(), min: 1, max: 22 };
                Err(Error::new(kind, Part::Option("profile, level")))
            }
            profile => Ok(profile),
        }
    }

    /// Matches shorter than this are left out; tried in turn, the fewest bytes win.
    fn thresholds(self) -> &'static [u32] {
        match self {
            Profile::Small => &[0, 6, 8, 10],
            Profile::Balanced => &[12],
            Profile::Fast => &[24],
            Profile::Quick => &[16],
            Profile::Plain(_) => &[],
        }
    }
}

/// `small`, `balanced`, `fast`, `quick`, `plain:19`.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Profile::Small => f.write_str("small"),
            Profile::Balanced => f.write_str("balanced"),
            Profile::Fast => f.write_str("fast"),
            Profile::Quick => f.write_str("quick"),
            Profile::Plain(level) => write!(f, "plain:{level}"),
        }
    }
}

impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Profile, Error> {
        let level = text.strip_prefix("plain:").map(str::parse);
        match (text, level) {
            ("small", _) => Ok(Profile::Small),
            ("balanced", _) => Ok(Profile::Balanced),
            ("fast", _) => Ok(Profile::Fast),
            ("quick", _) => Ok(Profile::Quick),
            (_, Some(Ok(level))) => Profile::Plain(level).check(),
            _ => Err(Error::new(ErrorKind::Unsupported(Unsupported::Request), Part::Option("profile"))
                .caused_by(format!("{text:?} is none of small, balanced, fast, quick, plain:1 to plain:22"))),
        }
    }
}

/// Makes frames; reused for many.
pub(crate) struct Framer {
    compressor: Compressor,
    check: Decompressor,
    parse: Vec<Sequence>,
    steps: Vec<Sequence>,
    candidate: Vec<u8>,
    decoded: Vec<u8>,
}

impl Framer {
    /// A new one; none where memory is short.
    pub(crate) fn new() -> Option<Framer> {
        Some(Framer {
            compressor: Compressor::new()?,
            check: Decompressor::new(),
            parse: Vec::new(),
            steps: Vec::new(),
            candidate: Vec::new(),
            decoded: Vec::new(),
        })
    }

    /// Makes one frame of `content` and replaces the content of `out` by it.
    pub(crate) fn frame(&mut self, content: &[u8], profile: Profile, out: &mut Vec<u8>) -> Result<(), Refused> {
        let parameters = Parameters { level: profile.zstd_level() };
        out.clear();
        if !profile.thresholds().is_empty() && self.compressor.parse(content, parameters, &mut self.parse).is_ok() {
            for &shortest in profile.thresholds() {
                without_short(&self.parse, shortest, &mut self.steps);
                let made = self.compressor.assemble(content, &self.steps, parameters, &mut self.candidate);
                if made.is_ok()
                    && (out.is_empty() || self.candidate.len() < out.len())
                    && decodes_to(&mut self.check, &self.candidate, content, &mut self.decoded)
                {
                    std::mem::swap(out, &mut self.candidate);
                }
            }
        }
        if out.is_empty() || profile == Profile::Small {
            self.compressor.plain(content, parameters, &mut self.candidate)?;
            if out.is_empty() || self.candidate.len() < out.len() {
                std::mem::swap(out, &mut self.candidate);
            }
        }
        Ok(())
    }
}

/// The parse without its matches below a length: their bytes become literals of the next step.
fn without_short(parse: &[Sequence], shortest: u32, out: &mut Vec<Sequence>) {
    out.clear();
    let mut literals = 0;
    for step in parse {
        if step.offset != 0 && step.matchLength < shortest {
            literals += step.litLength + step.matchLength;
        } else {
            out.push(Sequence { litLength: step.litLength + std::mem::take(&mut literals), ..*step });
        }
    }
}

/// libzstd writes what it is told to: only a decode shows that a frame holds the content.
fn decodes_to(check: &mut Decompressor, frame: &[u8], content: &[u8], scratch: &mut Vec<u8>) -> bool {
    scratch.resize(content.len(), 0);
    check.decode(Input::new(frame), scratch, Part::Object).is_ok() && scratch == content
}
