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

    /// A list that states so many structures, and holds none.
    pub fn empty_list(self, id: i16, len: u32) -> Struct {
        let mut this = self.head(id, 9);
        this.0.push(0xfc);
        uleb(len.into(), &mut this.0);
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

/// A file of a schema of such elements (name, number of children) and no row groups.
pub fn schema(elements: impl IntoIterator<Item = (&'static str, Option<i32>)>) -> Vec<u8> {
    let element = |(name, children): (&str, Option<i32>)| {
        let element = Struct::default().i32(3, 0).binary(4, name.as_bytes());
        match children {
            Some(children) => element.i32(5, children),
            None => element.i32(1, 1),
        }
    };
    let elements = elements.into_iter().map(element).collect();
    file(Struct::default().i32(1, 1).list(2, elements).i64(3, 0).list(4, Vec::new()))
}

/// A file of a schema of so many groups, each in the one before it.
pub fn deep(n: usize) -> Vec<u8> {
    schema((0..n).map(|_| ("g", Some(1))).chain([("leaf", None)]))
}

/// Files of footers that state more than they hold or nest without end, and the kinds of their errors.
pub fn hostile_footers() -> Vec<(Vec<u8>, &'static str)> {
    let row_groups = |group: Struct| {
        let leaf = Struct::default().i32(1, 1).binary(4, b"b");
        let elements = vec![Struct::default().binary(4, b"a").i32(5, 1), leaf];
        file(Struct::default().i32(1, 1).list(2, elements).i64(3, 0).list(4, vec![group]))
    };
    vec![
        (deep(70), "unsupported"),
        (deep(100_000), "unsupported"),
        (schema([("a", Some(i32::MAX)), ("b", None)]), "syntax"),
        (schema([("a", Some(1)), ("b", Some(i32::MAX))]), "syntax"),
        (schema([("a", Some(-1)), ("b", None)]), "syntax"),
        (schema([("a", Some(1)), ("b", None), ("c", None)]), "syntax"),
        (schema([]), "syntax"),
        (schema((0..200_000).map(|_| ("", None))), "syntax"),
        (file(Struct::default().list(5, vec![Struct::default(); 1_000_000])), "syntax"),
        (file(Struct::default().empty_list(2, u32::MAX)), "truncated"),
        (file(Struct::default().empty_list(4, u32::MAX)), "truncated"),
        (file(Struct::default().empty_list(5, u32::MAX)), "truncated"),
        (row_groups(Struct::default().empty_list(1, u32::MAX)), "truncated"),
        // Structures in structures and lists in lists, where there should be a number.
        (file(Struct(vec![0x1c; 1_000_000])), "wrong_type"),
        (file(Struct(vec![0x19; 1_000_000])), "wrong_type"),
    ]
}
