//! Delta and Delta2: differences of values, and differences of those.
//!
//! Source: MapLibre Tile specification, Encodings, "Delta" and "Delta2". What precedes the first is 0, differences are
//! ZigZag-encoded whatever the type, and arithmetic wraps at the word's width. The kernels decode in place.

#[cfg(feature = "encode")]
use super::word::Word;

/// The ZigZag code of a signed number.
#[cfg(feature = "encode")]
pub fn zigzag<W: Word>(value: W) -> W {
    // The sign over all bits of 64, which the cut leaves as it is.
    let shift = 64 - W::BITS;
    let signed = (value.widen() << shift).cast_signed() >> shift;
    W::cut((signed << 1 ^ signed >> 63).cast_unsigned())
}

/// The ZigZag codes of values' differences.
#[cfg(feature = "encode")]
pub fn encode<W: Word>(values: &[W]) -> Vec<W> {
    differences(values).map(zigzag).collect()
}

/// The ZigZag codes of the differences of values' differences.
#[cfg(feature = "encode")]
pub fn encode2<W: Word>(values: &[W]) -> Vec<W> {
    let deltas: Vec<W> = differences(values).collect();
    encode(&deltas)
}

#[cfg(feature = "encode")]
fn differences<W: Word>(values: &[W]) -> impl Iterator<Item = W> {
    let mut before = 0;
    values.iter().map(move |value| W::cut(value.widen().wrapping_sub(std::mem::replace(&mut before, value.widen()))))
}
