//! What encoders append: packed bits, varints.

/// Appends numbers of `width` bits, the lowest bit first, and fills up to a whole byte.
pub(crate) fn pack(values: impl IntoIterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let (mut held, mut bits) = (0u128, 0);
    for value in values {
        held |= u128::from(value) << bits;
        bits += width;
        while bits >= 8 {
            out.push(low_byte(held));
            held >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(low_byte(held));
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lowest byte is meant")]
fn low_byte(held: u128) -> u8 {
    held as u8
}

/// Appends an unsigned LEB128 number.
pub(crate) fn push_uleb(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(low_byte(u128::from(value)) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(u128::from(value)));
}

/// Appends a zigzag number.
pub(crate) fn push_zigzag(value: i64, out: &mut Vec<u8>) {
    push_uleb((value << 1 ^ value >> 63).cast_unsigned(), out);
}
