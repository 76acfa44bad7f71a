//! Page headers and footers, written field by field.
#![allow(dead_code)] // each test target uses its part

/// A structure of Thrift's compact protocol.
#[derive(Clone, Debug, Default)]
pub struct Struct(Vec<u8>);

fn uleb(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Struct {
    fn head(mut self, id: i16, kind: u8) -> Struct {
        self.0.push(kind);
        uleb((i64::from(id) << 1) as u64, &mut self.0);
        self
    }

    pub fn i32(self, id: i16, value: i32) -> Struct {
        let mut this = self.head(id, 5);
        let value = i64::from(value);
        uleb((value << 1 ^ value >> 63) as u64, &mut this.0);
        this
    }

    pub fn i64(self, id: i16, value: i64) -> Struct {
        let mut this = self.head(id, 6);
        uleb((value << 1 ^ value >> 63) as u64, &mut this.0);
        this
    }

    pub fn bool(self, id: i16, value: bool) -> Struct {
        self.head(id, if value { 1 } else { 2 })
    }

    pub fn binary(self, id: i16, value: &[u8]) -> Struct {
        let mut this = self.head(id, 8);
        uleb(value.len() as u64, &mut this.0);
        this.0.extend_from_slice(value);
        this
    }

    pub fn inside(self, id: i16, value: Struct) -> Struct {
        let mut this = self.head(id, 12);
        this.0.extend(value.finish());
        this
    }

    pub fn list(self, id: i16, values: Vec<Struct>) -> Struct {
        let mut this = self.head(id, 9);
        this.0.push(0xfc);
        uleb(values.len() as u64, &mut this.0);
        values.into_iter().for_each(|value| this.0.extend(value.finish()));
        this
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.0.push(0);
        self.0
    }
}

/// A data page of version 1, its levels RLE.
pub fn data_page(num_values: i32, encoding: i32, uncompressed: i32, body: &[u8]) -> Vec<u8> {
    let header = Struct::default().i32(1, num_values).i32(2, encoding).i32(3, 3).i32(4, 3);
    page(0, uncompressed, body, 5, header)
}

/// A data page of version 2.
pub fn data_page_v2(
    [num_values, num_nulls, encoding]: [i32; 3],
    [repetition, definition]: [i32; 2],
    uncompressed: i32,
    body: &[u8],
) -> Vec<u8> {
    let header = Struct::default().i32(1, num_values).i32(2, num_nulls).i32(3, num_values).i32(4, encoding);
    page(3, uncompressed, body, 8, header.i32(5, definition).i32(6, repetition))
}

/// A dictionary page.
pub fn dictionary_page(num_values: i32, uncompressed: i32, body: &[u8]) -> Vec<u8> {
    page(2, uncompressed, body, 7, Struct::default().i32(1, num_values).i32(2, 0))
}

fn page(kind: i32, uncompressed: i32, body: &[u8], id: i16, header: Struct) -> Vec<u8> {
    let size = i32::try_from(body.len()).expect("a small page");
    let mut page = Struct::default().i32(1, kind).i32(2, uncompressed).i32(3, size).inside(id, header).finish();
    page.extend_from_slice(body);
    page
}

/// A file of such a footer and nothing else.
pub fn file(footer: Struct) -> Vec<u8> {
    let footer = footer.finish();
    let len = u32::try_from(footer.len()).expect("a small footer");
    [&b"PAR1"[..], &footer, &len.to_le_bytes(), b"PAR1"].concat()
}
