//! How much memory a decode may take, whatever its input claims.

use crate::error::{Error, ErrorKind, Limit, Part};

/// Bounds on what one call may allocate. Slices that the caller hands in are not limited.
///
/// A frame of 300 bytes can honestly mean gigabytes, so the input's size alone decides nothing. Below these bounds
/// nothing is reserved from a declared count that the bytes present cannot reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes that one call may allocate for its results. Default 4 GiB. A verification decodes a chunk on each of its
    /// threads, and each may take so much.
    pub max_output_bytes: u64,
    /// Values that one call may give. Default 2^31.
    pub max_values: u64,
    /// Bytes of scratch that one thread of a decode may hold: the planes of its chunk, and exceptions. A decoder keeps the
    /// scratch of as many threads as have used it at once. Default 1 GiB.
    pub max_scratch_bytes: u64,
    /// Bytes of an object (tile, manifest, side file) that one call may read into memory. Default 4 GiB.
    pub max_input_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_output_bytes: 4 << 30, max_values: 1 << 31, max_scratch_bytes: 1 << 30, max_input_bytes: 4 << 30 }
    }
}

impl Limits {
    /// No bounds: for input that is trusted.
    pub const NONE: Limits = Limits {
        max_output_bytes: u64::MAX,
        max_values: u64::MAX,
        max_scratch_bytes: u64::MAX,
        max_input_bytes: u64::MAX,
    };

    /// The same bounds with another `max_output_bytes`.
    #[must_use]
    pub fn with_output_bytes(self, bytes: u64) -> Limits {
        Limits { max_output_bytes: bytes, ..self }
    }

    pub(crate) fn check(needed: u64, limit: u64, what: Limit, part: Part) -> Result<(), Error> {
        if needed > limit {
            return Err(Error::new(ErrorKind::LimitExceeded { needed, limit, what }, part));
        }
        Ok(())
    }
}
