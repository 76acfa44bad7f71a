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

#[cfg(all(test, feature = "encode"))]
mod tests {
    use super::super::testing::everywhere;
    use super::*;

    #[test]
    fn zigzag_table() {
        for (value, code) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (2, 4), (i32::MAX, u32::MAX - 1), (i32::MIN, u32::MAX)]
        {
            assert_eq!(zigzag(value.cast_unsigned()), code);
            assert_eq!(zigzag(i64::from(value).cast_unsigned()), u64::from(code));
        }
        assert_eq!(zigzag(i64::MIN.cast_unsigned()), u64::MAX);
    }

    /// The examples of the format, and differences that wrap.
    #[test]
    fn worked_examples() {
        assert_eq!(encode(&[100u32, 105, 102]), [200, 10, 5]);
        assert_eq!(encode2(&[10u32, 13, 16, 20]), [20, 13, 0, 2]);
        let values = [u32::MAX, 0, 1 << 31, 0, 7];
        let words = (encode(&values), encode2(&values));
        let decoded = everywhere(|options| {
            let (mut once, mut twice) = words.clone();
            u32::deltas(options.kernels, &mut once);
            u32::deltas2(options.kernels, &mut twice);
            (once, twice)
        });
        assert_eq!(decoded, (values.to_vec(), values.to_vec()));
    }
}
