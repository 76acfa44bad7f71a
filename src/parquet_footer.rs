//! The footer of a Parquet file, looked into before a library reads it.
//!
//! Source: Parquet format, parquet.thrift, "FileMetaData". The library reserves memory and recurses by what the schema
//! states, so that must be a tree, and no deep one. It also goes by the numbers of fields alone and fails where a writer
//! has used one for something of its own: it is given a copy with the fields that are needed here, in their types.

use std::collections::HashSet;

use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use crate::error::{Error, ErrorKind, Part, SyntaxFault, Unsupported};
use crate::guard::guarded;
use crate::input::Input;
use crate::thrift::{Value, next_field, skip, skip_field};

/// Groups inside each other that a schema may have.
const MAX_GROUPS: usize = 64;

const FOOTER: Part = Part::Footer("");
const SCHEMA: Part = Part::Footer("schema");

/// The protocol's numbers of types.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure of the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Structure {
    File,
    SchemaElement,
    RowGroup,
    ColumnChunk,
    ColumnMetaData,
    KeyValue,
}

/// What is kept of a field.
enum Keep {
    /// All of it.
    Whole,
    /// A structure, field by field.
    Fields(Structure),
    /// A list of structures.
    List(Structure),
    /// A list of numbers or bytes.
    Plain(u8),
}

impl Structure {
    /// What is kept of a field of such a number, and the type that it must have.
    fn field(self, id: i16) -> Option<(u8, Keep)> {
        Some(match (self, id) {
            (Structure::File, 1) => (I32, Keep::Whole),
            (Structure::File, 2) => (LIST, Keep::List(Structure::SchemaElement)),
            (Structure::File, 3) => (I64, Keep::Whole),
            (Structure::File, 4) => (LIST, Keep::List(Structure::RowGroup)),
            (Structure::File, 5) => (LIST, Keep::List(Structure::KeyValue)),
            (Structure::File, 6) | (Structure::SchemaElement, 4) | (Structure::ColumnChunk, 1) => (BINARY, Keep::Whole),
            (Structure::SchemaElement, 1..=9) | (Structure::ColumnMetaData, 1 | 4) => (I32, Keep::Whole),
            (Structure::SchemaElement, 10) => (STRUCT, Keep::Whole),
            (Structure::RowGroup, 1) => (LIST, Keep::List(Structure::ColumnChunk)),
            (Structure::RowGroup, 2 | 3) | (Structure::ColumnChunk, 2) => (I64, Keep::Whole),
            (Structure::ColumnChunk, 3) => (STRUCT, Keep::Fields(Structure::ColumnMetaData)),
            (Structure::ColumnMetaData, 2) => (LIST, Keep::Plain(I32)),
            (Structure::ColumnMetaData, 3) => (LIST, Keep::Plain(BINARY)),
            (Structure::ColumnMetaData, 5..=7 | 9..=11) => (I64, Keep::Whole),
            (Structure::KeyValue, 1 | 2) => (BINARY, Keep::Whole),
            _ => return None,
        })
    }
}

/// A footer that the library has read.
pub(crate) struct Footer {
    pub(crate) metadata: ParquetMetaData,
    /// Columns of row groups that are encrypted.
    #[cfg_attr(not(feature = "parquet-files"), expect(dead_code))] // a table's column that is, is not read
    pub(crate) encrypted: HashSet<(usize, usize)>,
}

impl Footer {
    /// Checks a footer and has the library read it.
    ///
    /// # Errors
    /// In [`Part::Footer`], with the offset: [`SyntaxFault::Parquet`], [`Unsupported::SchemaDepth`],
    /// [`Unsupported::Encrypted`], and whatever keeps it from being a structure of the protocol.
    pub(crate) fn read(footer: Input<'_>) -> Result<Footer, Error> {
        let Checked { bytes, encrypted, .. } = check(footer)?;
        let error = match guarded(|| ParquetMetaDataReader::decode_metadata(&bytes)) {
            Some(Ok(metadata)) => return Ok(Footer { metadata, encrypted }),
            // Columns that are encrypted have no description that can be read.
            Some(Err(_)) if !encrypted.is_empty() => Error::new(ErrorKind::Unsupported(Unsupported::Encrypted), FOOTER),
            Some(Err(error)) => unsound(error.to_string()),
            None => unsound("the reader gave up"),
        };
        Err(error.at(footer.offset()))
    }
}

/// The library's refusal of a footer.
pub(crate) fn unsound(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Syntax(SyntaxFault::Parquet), FOOTER).caused_by(why.into())
}

/// A footer that the library may read.
struct Checked {
    /// Its bytes, without what is not needed.
    bytes: Vec<u8>,
    /// Columns of row groups that are encrypted.
    encrypted: HashSet<(usize, usize)>,
    /// Children that are still to come, of each group of the schema that is open.
    open: Vec<u64>,
    group: usize,
    column: usize,
}

/// Checks a footer.
fn check(footer: Input<'_>) -> Result<Checked, Error> {
    let bytes = Vec::with_capacity(footer.bytes().len());
    let mut checked = Checked { bytes, encrypted: HashSet::new(), open: vec![1], group: 0, column: 0 };
    checked.fields(&mut { footer }, Structure::File)?;
    Ok(checked)
}

impl Checked {
    /// Copies a structure.
    fn fields(&mut self, input: &mut Input<'_>, structure: Structure) -> Result<(), Error> {
        let start = input.offset();
        let (mut last, mut children) = (0, 0);
        loop {
            let whole = *input;
            let Some(field) = next_field(input, &mut last, FOOTER)? else { break };
            match (structure, field.id, field.value) {
                (Structure::SchemaElement, 5, Value::Integer(stated)) => children = stated,
                // By a key of its own, or the footer's.
                (Structure::ColumnChunk, 8, _) => drop(self.encrypted.insert((self.group, self.column))),
                _ => {}
            }
            let keep = structure.field(field.id).filter(|&(kind, _)| kind == field.kind).map(|(_, keep)| keep);
            match (keep, field.value) {
                (Some(Keep::Fields(inner)), _) => {
                    self.head(field.id, STRUCT);
                    self.fields(input, inner)?;
                }
                (Some(Keep::List(inner)), Value::List { element: STRUCT, len }) => {
                    self.head(field.id, LIST);
                    self.list_head(STRUCT, len);
                    self.list(input, inner, len)?;
                }
                (Some(Keep::Plain(of)), Value::List { element, len }) if element == of => {
                    self.head(field.id, LIST);
                    self.list_head(element, len);
                    self.rest(input, |input| skip_field(input, &field, FOOTER))?;
                }
                (Some(Keep::Whole), _) => {
                    self.head(field.id, field.kind);
                    // The value follows a head of a byte, or of more where the field's number stands in it.
                    *input = whole;
                    if input.byte(FOOTER)? >> 4 == 0 {
                        input.zigzag(FOOTER)?;
                    }
                    self.rest(input, |input| skip(input, field.kind, 0, FOOTER))?;
                }
                _ => skip_field(input, &field, FOOTER)?,
            }
        }
        self.bytes.push(0);
        if structure == Structure::SchemaElement { self.element(children, start) } else { Ok(()) }
    }

    /// Copies the structures of a list.
    fn list(&mut self, input: &mut Input<'_>, inner: Structure, len: u64) -> Result<(), Error> {
        // Each takes a byte at least.
        let len = usize::try_from(len).ok().filter(|&len| len <= input.bytes().len());
        let len = len.ok_or_else(|| input.truncated(input.bytes().len() as u64 + 1, FOOTER))?;
        for i in 0..len {
            match inner {
                Structure::RowGroup => self.group = i,
                Structure::ColumnChunk => self.column = i,
                // The schema comes as a walk over its tree does.
                Structure::SchemaElement if self.open.is_empty() => return Err(self.not_a_tree(input.offset())),
                _ => {}
            }
            self.fields(input, inner)?;
        }
        if inner == Structure::SchemaElement && !self.open.is_empty() {
            return Err(self.not_a_tree(input.offset()));
        }
        Ok(())
    }

    /// Takes an element of the schema into the tree.
    fn element(&mut self, children: i64, start: u64) -> Result<(), Error> {
        let children = u64::try_from(children).map_err(|_| self.not_a_tree(start))?;
        if let Some(open) = self.open.last_mut() {
            *open -= 1;
        }
        if children > 0 {
            self.open.push(children);
        }
        if self.open.len() > MAX_GROUPS {
            return Err(Error::new(ErrorKind::Unsupported(Unsupported::SchemaDepth), SCHEMA).at(start));
        }
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
        Ok(())
    }

    #[cold]
    fn not_a_tree(&self, at: u64) -> Error {
        let kind = ErrorKind::Syntax(SyntaxFault::Parquet);
        Error::new(kind, SCHEMA).at(at).caused_by("its elements and their numbers of children make no tree")
    }

    fn head(&mut self, id: i16, kind: u8) {
        self.bytes.push(kind);
        self.uleb((id << 1 ^ id >> 15).cast_unsigned().into());
    }

    fn list_head(&mut self, element: u8, len: u64) {
        self.bytes.push(0xf0 | element);
        self.uleb(len);
    }

    fn uleb(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.bytes.push(value.to_le_bytes()[0]);
    }

    /// Copies what a walk passes over.
    fn rest(
        &mut self,
        input: &mut Input<'_>,
        walk: impl FnOnce(&mut Input<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let before = input.bytes();
        walk(input)?;
        self.bytes.extend_from_slice(&before[..before.len() - input.bytes().len()]);
        Ok(())
    }
}
