//! All calls of libzstd: one frame to exactly so many bytes, and (feature `encode`) the writer's frames.

pub(crate) mod frame;

use crate::error::{Error, ErrorKind, FrameFault, Part};
use crate::input::Input;

/// A reused decompression context.
pub(crate) struct Decompressor {
    context: zstd_safe::DCtx<'static>,
}

impl Decompressor {
    pub(crate) fn new() -> Decompressor {
        Decompressor { context: zstd_safe::DCtx::create() }
    }

    /// Decodes `stream`, one whole frame that [`frame::check`] has passed, into exactly `out`.
    ///
    /// The frame decodes in one shot into the caller's memory, so its window costs nothing, however large.
    pub(crate) fn decode(&mut self, stream: Input<'_>, out: &mut [u8], part: Part) -> Result<(), Error> {
        let result = match frame::narrowed(stream.bytes()) {
            Some(frame) => self.context.decompress(out, &frame),
            None => self.context.decompress(out, stream.bytes()),
        };
        match result {
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
