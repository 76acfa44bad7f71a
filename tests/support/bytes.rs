//! Map tiles byte by byte.

/// A number of a header.
pub fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

/// A frame of a body.
pub fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    [&varint(1 + body.len())[..], &[tag], body].concat()
}
