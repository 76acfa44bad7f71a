//! Profiles: what the writer spends on a frame, and what it saves a reader.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Part, Unsupported};
use crate::input::Input;
use crate::zstd::matches::Depth;
use crate::zstd::parse::{Parse, Parser};
use crate::zstd::prices::Nanosecond;
use crate::zstd::{Compressor, Decompressor, Refused};

/// How the frames of a tile are made. All are plain zstd, for any reader.
///
/// All but `plain` use a parse of their own: it knows what a sequence and a literal cost a decoder, where zstd's counts
/// bits alone. Bytes and times below are against zstd's level 19 on the same counts, simulated and real.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The fewest bytes, whatever they cost to write: no frame is larger than zstd's at levels 19 and 22.
    Small,
    /// About one per cent fewer bytes than level 19, unpacked in about three quarters of its time.
    #[default]
    Balanced,
    /// The fastest to decode: up to about two per cent more bytes, two thirds of the time.
    Fast,
    /// The fastest to write, in about a twelfth of the time of level 19; nearly as fast to decode as `fast`, and about
    /// two per cent more bytes.
    Quick,
    /// zstd as it is, at a level of 1 to 22.
    Plain(i32),
}

impl Profile {
    /// The level of zstd that is closest in effort: what a manifest states for information. Where the profile's own
    /// parse gives no frame, this level does.
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

    /// The parses that are tried; the fewest bytes win.
    ///
    /// The worth of a nanosecond (the last number) was chosen on real and simulated counts: at 384 both bytes and time
    /// are clearly below those of level 19, and above 1536 the time hardly falls any more.
    fn parses(self) -> &'static [Parse] {
        const fn cheapest(shortest: usize, strings: u32, passes: u32, nanosecond: i32) -> Parse {
            Parse::Cheapest { depth: Depth { shortest, strings }, passes, nanosecond: Nanosecond(nanosecond) }
        }
        match self {
            Profile::Small => const { &[cheapest(4, 256, 3, 64), cheapest(6, 256, 3, 128), cheapest(6, 256, 3, 256)] },
            Profile::Balanced => const { &[cheapest(6, 64, 1, 384)] },
            Profile::Fast => const { &[cheapest(8, 64, 1, 1536)] },
            Profile::Quick => &[Parse::Greedy],
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
        let digits = |level: &&str| level.bytes().all(|byte| byte.is_ascii_digit());
        let level = text.strip_prefix("plain:").filter(digits).map(str::parse);
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

/// Content below this is left to zstd: there is little to save, and blocks of its own cost bytes.
const TINY: usize = 1024;

/// Makes frames; reused for many.
pub(crate) struct Framer {
    compressor: Compressor,
    decompressor: Decompressor,
    parser: Parser,
    candidate: Vec<u8>,
    decoded: Vec<u8>,
}

impl Framer {
    /// A new one; none where memory is short.
    pub(crate) fn new() -> Option<Framer> {
        Some(Framer {
            compressor: Compressor::new()?,
            decompressor: Decompressor::new(),
            parser: Parser::default(),
            candidate: Vec::new(),
            decoded: Vec::new(),
        })
    }

    /// Makes one frame of two planes of the same length, and replaces the content of `out` by it.
    pub(crate) fn planes(&mut self, planes: &[u8], profile: Profile, out: &mut Vec<u8>) -> Result<(), Refused> {
        out.clear();
        if planes.len() >= TINY {
            for &parse in profile.parses() {
                if self.parsed(planes, parse) && (out.is_empty() || self.candidate.len() < out.len()) {
                    std::mem::swap(out, &mut self.candidate);
                }
            }
        }
        let also: &[i32] = if profile == Profile::Small { &[19, 22] } else { &[] };
        let instead = if out.is_empty() { Some(profile.zstd_level()) } else { None };
        for &level in also.iter().chain(&instead) {
            self.compressor.plain(planes, level, &mut self.candidate)?;
            if out.is_empty() || self.candidate.len() < out.len() {
                std::mem::swap(out, &mut self.candidate);
            }
        }
        Ok(())
    }

    /// Makes a frame of any content as zstd does, and replaces the content of `out` by it.
    pub(crate) fn plain(&mut self, content: &[u8], profile: Profile, out: &mut Vec<u8>) -> Result<(), Refused> {
        self.compressor.plain(content, profile.zstd_level(), out)
    }

    /// Makes a candidate by such a parse. It counts only if it decodes to the planes, since libzstd writes what it is
    /// told to.
    fn parsed(&mut self, planes: &[u8], parse: Parse) -> bool {
        let Some(steps) = self.parser.parse(planes, planes.len() / 2, parse) else { return false };
        if self.compressor.assemble(planes, steps, &mut self.candidate).is_err() {
            return false;
        }
        self.decoded.resize(planes.len(), 0);
        let frame = Input::new(&self.candidate);
        self.decompressor.decode(frame, &mut self.decoded, Part::Object).is_ok() && self.decoded == planes
    }
}
