//! All calls of libzstd: one frame to exactly so many bytes, and (feature `encode`) the writer's frames.

#![cfg_attr(feature = "encode", allow(unsafe_code))]

pub(crate) mod frame;

use crate::error::{Error, ErrorKind, FrameFault, Part};
use crate::input::Input;

/// A reused decompression context.
pub(crate) struct Decompressor {
    context: zstd_safe::DCtx<'static>,
    /// For frames that have to be edited.
    copy: Vec<u8>,
}

impl Decompressor {
    pub(crate) fn new() -> Decompressor {
        Decompressor { context: zstd_safe::DCtx::create(), copy: Vec::new() }
    }

    /// Decodes `stream`, one whole frame that [`frame::check`] has passed, into exactly `out`.
    ///
    /// The frame decodes in one shot into the caller's memory, so its window costs nothing, however large.
    pub(crate) fn decode(&mut self, stream: Input<'_>, out: &mut [u8], part: Part) -> Result<(), Error> {
        let frame = frame::narrowed(stream.bytes(), &mut self.copy).unwrap_or(stream.bytes());
        match self.context.decompress(out, frame) {
            Ok(n) if n == out.len() => Ok(()),
            Ok(n) => {
                let fault = FrameFault::ContentSize { found: n as u64, expected: out.len() as u64 };
                Err(Error::new(ErrorKind::Frame(fault), part).at(stream.offset()))
            }
            Err(code) => Err(Error::new(ErrorKind::Frame(FrameFault::Corrupt), part)
                .at(stream.offset())
                .caused_by(zstd_safe::get_error_name(code))),
        }
    }
}

#[cfg(feature = "encode")]
pub(crate) mod matches;
#[cfg(feature = "encode")]
pub(crate) mod parse;
#[cfg(feature = "encode")]
pub(crate) mod prices;

#[cfg(feature = "encode")]
pub(crate) use compress::{Compressor, Refused, Sequence};

#[cfg(feature = "encode")]
mod compress {
    use std::ffi::c_int;
    use std::ptr::NonNull;

    use zstd_sys::ZSTD_cParameter::{
        self, ZSTD_c_chainLog, ZSTD_c_compressionLevel, ZSTD_c_experimentalParam11 as ZSTD_c_blockDelimiters,
        ZSTD_c_experimentalParam12 as ZSTD_c_validateSequences, ZSTD_c_experimentalParam19 as ZSTD_c_repcodeResolution,
        ZSTD_c_hashLog, ZSTD_c_minMatch, ZSTD_c_searchLog, ZSTD_c_strategy, ZSTD_c_windowLog,
    };
    use zstd_sys::{ZSTD_ErrorCode, ZSTD_ParamSwitch_e, ZSTD_ResetDirective, ZSTD_SequenceFormat_e, ZSTD_strategy};

    /// A step of a frame: so many literals, then a match of that length so far back.
    ///
    /// A block ends with a step of match length and offset 0 that holds its last literals.
    pub(crate) type Sequence = zstd_sys::ZSTD_Sequence;

    /// No block holds more content than this.
    const BLOCK_MAX: u64 = 128 << 10;

    /// The error code of a call that libzstd refused.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Refused(usize);

    impl Refused {
        const SEQUENCES: Refused =
            Refused(0usize.wrapping_sub(ZSTD_ErrorCode::ZSTD_error_externalSequences_invalid as usize));

        pub(crate) fn name(self) -> &'static str {
            zstd_safe::get_error_name(self.0)
        }
    }

    /// A reused compression context.
    pub(crate) struct Compressor {
        context: NonNull<zstd_sys::ZSTD_CCtx>,
    }

    // SAFETY: a context belongs to no thread; it is reached through `&mut Compressor` alone.
    unsafe impl Send for Compressor {}

    impl Drop for Compressor {
        fn drop(&mut self) {
            // SAFETY: the context came from ZSTD_createCCtx and nothing else frees it.
            unsafe { zstd_sys::ZSTD_freeCCtx(self.context.as_ptr()) };
        }
    }

    impl Compressor {
        /// A new context; none where memory is short.
        pub(crate) fn new() -> Option<Compressor> {
            // SAFETY: no conditions; null says that memory is short.
            NonNull::new(unsafe { zstd_sys::ZSTD_createCCtx() }).map(|context| Compressor { context })
        }

        /// Compresses `src` into one frame that states its size, and replaces the content of `out` by it.
        pub(crate) fn plain(&mut self, src: &[u8], level: i32, out: &mut Vec<u8>) -> Result<(), Refused> {
            self.reset()?;
            self.set(ZSTD_c_compressionLevel, level)?;
            let context = self.context.as_ptr();
            // SAFETY: libzstd reads `src` and writes `out`, both given with their lengths.
            frame(src, out, |out| unsafe {
                zstd_sys::ZSTD_compress2(context, out.as_mut_ptr().cast(), out.len(), src.as_ptr().cast(), src.len())
            })
        }

        /// Encodes `src` by such steps into one frame that states its size, and replaces the content of `out` by it.
        ///
        /// Offsets go back 4 MiB at most. Steps that are no parse of `src` are refused or give a frame of other bytes;
        /// only a decode tells.
        pub(crate) fn assemble(&mut self, src: &[u8], steps: &[Sequence], out: &mut Vec<u8>) -> Result<(), Refused> {
            out.clear();
            if !covers(steps, src.len()) {
                return Err(Refused::SEQUENCES);
            }
            self.reset()?;
            // The strongest entropy coding, without the tables of a search that does not take place.
            self.set(ZSTD_c_strategy, ZSTD_strategy::ZSTD_btultra2 as c_int)?;
            self.set(ZSTD_c_windowLog, 22)?;
            self.set(ZSTD_c_hashLog, 6)?;
            self.set(ZSTD_c_chainLog, 6)?;
            self.set(ZSTD_c_searchLog, 1)?;
            self.set(ZSTD_c_minMatch, 3)?;
            self.set(ZSTD_c_blockDelimiters, ZSTD_SequenceFormat_e::ZSTD_sf_explicitBlockDelimiters as c_int)?;
            self.set(ZSTD_c_validateSequences, 1)?;
            self.set(ZSTD_c_repcodeResolution, ZSTD_ParamSwitch_e::ZSTD_ps_enable as c_int)?;
            let context = self.context.as_ptr();
            // SAFETY: libzstd reads `src` and `steps` and writes `out`, all given with their lengths. The steps add up to
            // `src` block by block (`covers`), so no literal lies outside it; libzstd validates the matches.
            frame(src, out, |out| unsafe {
                zstd_sys::ZSTD_compressSequences(
                    context,
                    out.as_mut_ptr().cast(),
                    out.len(),
                    steps.as_ptr(),
                    steps.len(),
                    src.as_ptr().cast(),
                    src.len(),
                )
            })
        }

        fn reset(&mut self) -> Result<(), Refused> {
            let what = ZSTD_ResetDirective::ZSTD_reset_session_and_parameters;
            // SAFETY: the context is alive.
            accept(unsafe { zstd_sys::ZSTD_CCtx_reset(self.context.as_ptr(), what) }).map(drop)
        }

        fn set(&mut self, parameter: ZSTD_cParameter, value: c_int) -> Result<(), Refused> {
            // SAFETY: the context is alive; a value out of bounds is refused.
            accept(unsafe { zstd_sys::ZSTD_CCtx_setParameter(self.context.as_ptr(), parameter, value) }).map(drop)
        }
    }

    /// Gives `write` room for whatever frame `src` may become, and cuts `out` to what it wrote.
    fn frame(src: &[u8], out: &mut Vec<u8>, write: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        out.resize(zstd_safe::compress_bound(src.len()), 0);
        let written = accept(write(out));
        out.truncate(*written.as_ref().unwrap_or(&0));
        written.map(drop)
    }

    fn accept(code: usize) -> Result<usize, Refused> {
        // SAFETY: no conditions.
        if unsafe { zstd_sys::ZSTD_isError(code) } == 0 { Ok(code) } else { Err(Refused(code)) }
    }

    /// Whether blocks of such steps, none too large and the last one ended, make up `len` bytes, with no match from
    /// before the first.
    fn covers(steps: &[Sequence], len: usize) -> bool {
        let (mut start, mut at, mut open) = (0u64, 0u64, false);
        for step in steps {
            at += u64::from(step.litLength);
            if u64::from(step.offset) > at || (step.offset == 0) != (step.matchLength == 0) {
                return false;
            }
            at += u64::from(step.matchLength);
            if at - start > BLOCK_MAX {
                return false;
            }
            open = step.offset != 0;
            if !open {
                start = at;
            }
        }
        !open && at == len as u64
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::error::Part;
        use crate::input::Input;
        use crate::zstd::Decompressor;

        fn step(literals: u32, length: u32, offset: u32) -> Sequence {
            Sequence { offset, litLength: literals, matchLength: length, rep: 0 }
        }

        #[test]
        fn steps_that_are_no_parse_are_refused_or_come_out_otherwise() {
            let src = b"abcabcabcabc0123";
            let mut compressor = Compressor::new().unwrap();
            let mut out = Vec::new();
            compressor.assemble(src, &[step(3, 9, 3), step(4, 0, 0)], &mut out).unwrap();
            let mut decoded = [0; 16];
            let decode =
                |out: &[u8], decoded: &mut [u8]| Decompressor::new().decode(Input::new(out), decoded, Part::Object);
            decode(&out, &mut decoded).unwrap();
            assert_eq!(&decoded, src);

            let none: &[Sequence] = &[];
            let bad = [
                none,
                &[step(3, 9, 3)],                       // no end
                &[step(3, 9, 3), step(3, 0, 0)],        // too short
                &[step(3, 9, 3), step(5, 0, 0)],        // too long
                &[step(3, 9, 0), step(4, 0, 0)],        // a match from nowhere
                &[step(3, 0, 3), step(13, 0, 0)],       // an empty match
                &[step(3, 9, 4), step(4, 0, 0)],        // from before the start
                &[step(u32::MAX, 9, 3), step(8, 0, 0)], // sums that wrap
            ];
            for steps in bad {
                assert!(compressor.assemble(src, steps, &mut out).is_err(), "{steps:?}");
                assert!(out.is_empty());
            }
            // Wrong bytes: libzstd writes them, a decode shows it.
            compressor.assemble(src, &[step(3, 10, 3), step(3, 0, 0)], &mut out).unwrap();
            assert!(decode(&out, &mut decoded).is_err() || decoded != *src);

            let large = vec![0; 200 << 10];
            assert!(compressor.assemble(&large, &[step(200 << 10, 0, 0)], &mut out).is_err(), "a block too large");
            compressor.assemble(&[], none, &mut out).unwrap();
            decode(&out, &mut []).unwrap();
        }
    }
}
