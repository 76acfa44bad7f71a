//! The walk over a layer of version 1: the metadata of all columns, then the streams of all columns.
//!
//! Source: the MapLibre Tile specification, version 1.

use super::fault::MltFault;
use super::outline::{
    ColumnKind, ColumnOutline, DataType, GeometryOutline, LayerOutline, Presence, Span, StringLayout,
};
use super::stream::{Logical, Physical, Role, Stream};
use super::walk::{Observer, Walk, bad, index};
use crate::error::{Error, ErrorKind, Part};

/// What encodings a stream can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Bool,
    Int,
    LongInt,
    Float,
    Double,
    Vertex,
    Bytes,
}

/// What is read of a stream's header after its type byte.
type Pick = Result<(Role, Family), MltFault>;

pub(super) fn layer<'a, O: Observer<'a>>(walk: &mut Walk<'a, '_, O>, span: Span) -> Result<LayerOutline, Error> {
    let name = walk.layer_name()?;
    let at = walk.input.offset();
    let extent = walk.varint("extent")?;
    if extent == 0 {
        let kind = ErrorKind::OutOfRange { found: 0, min: 1, max: u32::MAX.into() };
        return Err(Error::new(kind, Part::Values("", "extent")).at(at));
    }
    let counted = walk.input.offset();
    let count = walk.varint("column count")?;
    let first = walk.outline.columns.len();
    let (mut geometry, mut ids) = (None, None);
    for _ in 0..count {
        let (at, column) = (walk.input.offset(), index(walk.outline.columns.len()));
        let once = match walk.column_meta(first)? {
            ColumnKind::Geometry => &mut geometry,
            ColumnKind::Id => &mut ids,
            _ => continue,
        };
        if once.replace(column).is_some() {
            return Err(bad(MltFault::RepeatedColumn, "column type", at));
        }
    }
    let columns = index(first)..index(walk.outline.columns.len());
    if geometry.is_none() {
        walk.in_column(None);
        return Err(bad(MltFault::NoGeometry, "column count", counted));
    }
    let mut geometry = GeometryOutline::default();
    let mut at = columns.start;
    while at < columns.end {
        let number = at - columns.start;
        walk.in_column(Some(number));
        walk.observer.enter(format_args!("column {number}: data"), walk.input.offset());
        at = walk.column_data(at, columns.start, &mut geometry)?;
        walk.observer.leave(walk.input.offset(), "");
    }
    walk.in_column(None);
    walk.layer_end()?;
    let features = geometry.types.map_or(0, |types| walk.outline.streams[types as usize].count);
    walk.counts(features, columns.clone())?;
    let shared_presence = 0..0;
    Ok(LayerOutline { version: 1, span, name, extent, features, shared_presence, geometry, ids, columns })
}

impl<'a, O: Observer<'a>> Walk<'a, '_, O> {
    /// Reads a column's metadata, and that of its children.
    fn column_meta(&mut self, first: usize) -> Result<ColumnKind, Error> {
        use DataType::*;
        let number = index(self.outline.columns.len() - first);
        self.in_column(Some(number));
        let start = self.input.offset();
        self.observer.enter(format_args!("column {number}: metadata"), start);
        let code = self.byte("column type")?;
        let (kind, data_type) = match code & !1 {
            0 => (ColumnKind::Id, Id),
            2 => (ColumnKind::Id, LongId),
            4 if code == 4 => (ColumnKind::Geometry, Id),
            10 => (ColumnKind::Property, Bool),
            16 => (ColumnKind::Property, Int32),
            18 => (ColumnKind::Property, UInt32),
            20 => (ColumnKind::Property, Int64),
            22 => (ColumnKind::Property, UInt64),
            24 => (ColumnKind::Property, Float),
            26 => (ColumnKind::Property, Double),
            28 => (ColumnKind::Property, String),
            30 if code == 30 => (ColumnKind::SharedDictionary { children: 0 }, String),
            _ => return Err(bad(MltFault::UnknownCode { found: code.into() }, "column type", start)),
        };
        let named = !matches!(kind, ColumnKind::Id | ColumnKind::Geometry);
        let name = if named { self.name("column name")? } else { 0..0 };
        let children = if code == 30 { self.varint("child count")? } else { 0 };
        let kind = if code == 30 { ColumnKind::SharedDictionary { children } } else { kind };
        let end = self.input.offset();
        self.observer.leave(end, what(kind, data_type));
        let (name, prefix) = if code == 30 { (0..0, name) } else { (name, 0..0) };
        self.add_column(kind, code, data_type, name, prefix.clone(), start..end)?;
        let dictionary = index(self.outline.columns.len() - 1);
        for _ in 0..children {
            let number = index(self.outline.columns.len() - first);
            self.in_column(Some(number));
            let start = self.input.offset();
            self.observer.enter(format_args!("column {number}: metadata"), start);
            let code = self.byte("child type")?;
            if code & !1 != 28 {
                return Err(bad(MltFault::UnknownCode { found: code.into() }, "child type", start));
            }
            let name = self.name("child name")?;
            let end = self.input.offset();
            let kind = ColumnKind::Child { dictionary };
            self.observer.leave(end, what(kind, String));
            self.add_column(kind, code, String, name, prefix.clone(), start..end)?;
        }
        Ok(kind)
    }

    fn add_column(
        &mut self,
        kind: ColumnKind,
        code: u8,
        data_type: DataType,
        name: Span,
        prefix: Span,
        meta: Span,
    ) -> Result<(), Error> {
        self.outline.add_prefix(kind, &prefix);
        self.room()?;
        self.outline.columns.push(ColumnOutline {
            kind,
            code,
            data_type,
            name,
            prefix,
            // Its streams follow with the data.
            presence: Presence::All,
            strings: StringLayout::Plain,
            streams: 0..0,
            all_streams: 0..0,
            meta,
            data: 0..0,
        });
        Ok(())
    }

    /// Reads a column's streams, and those of its children; gives the column behind them.
    fn column_data(&mut self, column: u32, first: u32, geometry: &mut GeometryOutline) -> Result<u32, Error> {
        let ColumnOutline { kind, code, data_type, .. } = self.outline.columns[column as usize];
        let (start, streams) = (self.input.offset(), index(self.outline.streams.len()));
        let nullable = code & 1 == 1;
        match kind {
            ColumnKind::Geometry => *geometry = self.geometry_column()?,
            ColumnKind::SharedDictionary { children } => {
                return self.shared_column(column, children, first);
            }
            _ if data_type == DataType::String => self.string_column(column, nullable)?,
            _ => {
                self.present_stream(column, nullable, false)?;
                self.observer.values(data_type);
                let family = match data_type {
                    DataType::Bool => Family::Bool,
                    DataType::LongId | DataType::Int64 | DataType::UInt64 => Family::LongInt,
                    DataType::Float => Family::Float,
                    DataType::Double => Family::Double,
                    _ => Family::Int,
                };
                self.typed_stream(|_| Ok((Role::Data, family)))?;
            }
        }
        self.end_data(column, streams, start);
        Ok(column + 1)
    }

    /// Sets where a column's streams are, which end here.
    fn end_data(&mut self, column: u32, streams: u32, start: u64) {
        let all = streams..index(self.outline.streams.len());
        let column = &mut self.outline.columns[column as usize];
        let own = u32::from(column.presence != Presence::All);
        column.streams = all.start + own..all.end;
        column.all_streams = all;
        column.data = start..self.input.offset();
    }

    /// Reads the stream that says which features have a value, where there is one.
    fn present_stream(&mut self, column: u32, nullable: bool, checked: bool) -> Result<(), Error> {
        if nullable {
            let stream = self.typed_stream(|kind| match kind {
                0x10.. if checked => Err(MltFault::StreamRole { found: kind }),
                _ => Ok((Role::Present, Family::Bool)),
            })?;
            self.outline.columns[column as usize].presence = Presence::Own(stream);
        }
        Ok(())
    }

    fn string_column(&mut self, column: u32, nullable: bool) -> Result<(), Error> {
        use Family::{Bytes, Int};
        let at = self.input.offset();
        let stated = self.varint("stream count")?;
        let (layout, streams): (_, &[(&[u8], Role, Family)]) = match stated.checked_sub(nullable.into()) {
            Some(2) => (
                StringLayout::Plain,
                &[(&[0x30, 0x36], Role::Lengths, Int), (&[0x10, 0x11, 0x12], Role::Values, Bytes)],
            ),
            Some(3) => (
                StringLayout::Dictionary,
                &[(&[0x36], Role::DictLengths, Int), (&[0x22], Role::Codes, Int), (&[0x11], Role::DictValues, Bytes)],
            ),
            Some(4) => (
                StringLayout::Fsst,
                &[
                    (&[0x35], Role::SymbolLengths, Int),
                    (&[0x15], Role::SymbolTable, Bytes),
                    (&[0x36], Role::Lengths, Int),
                    (&[0x11], Role::Corpus, Bytes),
                ],
            ),
            Some(5) => (
                StringLayout::FsstDictionary,
                &[
                    (&[0x35], Role::SymbolLengths, Int),
                    (&[0x15], Role::SymbolTable, Bytes),
                    (&[0x36], Role::DictLengths, Int),
                    (&[0x11], Role::Corpus, Bytes),
                    (&[0x22], Role::Codes, Int),
                ],
            ),
            count => {
                let nearest = count.map_or(2, |count| count.clamp(2, 5)) + u32::from(nullable);
                let what = MltFault::StreamCount { found: stated.into(), expected: nearest.into() };
                return Err(bad(what, "stream count", at));
            }
        };
        self.present_stream(column, nullable, true)?;
        for &(kinds, role, family) in streams {
            self.stream_of_kind(kinds, role, family)?;
        }
        self.outline.columns[column as usize].strings = layout;
        Ok(())
    }

    fn shared_column(&mut self, column: u32, children: u32, first: u32) -> Result<u32, Error> {
        use Family::{Bytes, Int};
        let (start, streams) = (self.input.offset(), index(self.outline.streams.len()));
        let stated = self.varint("stream count")?;
        let mut fsst = false;
        self.typed_stream(|kind| match kind {
            0x36 => Ok((Role::DictLengths, Int)),
            0x35 => {
                fsst = true;
                Ok((Role::SymbolLengths, Int))
            }
            _ => Err(MltFault::StreamRole { found: kind }),
        })?;
        if fsst {
            self.stream_of_kind(&[0x15], Role::SymbolTable, Bytes)?;
            self.stream_of_kind(&[0x36], Role::DictLengths, Int)?;
        }
        self.stream_of_kind(&[0x11, 0x12], if fsst { Role::Corpus } else { Role::DictValues }, Bytes)?;
        let layout = if fsst { StringLayout::FsstDictionary } else { StringLayout::Dictionary };
        self.outline.columns[column as usize].strings = layout;
        self.end_data(column, streams, start);
        let behind = column + 1 + children;
        let mut expected = if fsst { 4 } else { 2 };
        for child in column + 1..behind {
            let nullable = self.outline.columns[child as usize].code & 1 == 1;
            expected += 1 + u64::from(nullable);
        }
        // Old writers count one more.
        if u64::from(stated) != expected && u64::from(stated) != expected + 1 {
            return Err(bad(MltFault::StreamCount { found: stated.into(), expected }, "stream count", start));
        }
        for child in column + 1..behind {
            let (start, streams) = (self.input.offset(), index(self.outline.streams.len()));
            self.in_column(Some(child - first));
            self.observer.enter(format_args!("column {}: data", child - first), start);
            let stated = self.varint("stream count")?;
            let nullable = self.outline.columns[child as usize].code & 1 == 1;
            let expected = 1 + u32::from(nullable);
            if stated != expected {
                let what = MltFault::StreamCount { found: stated.into(), expected: expected.into() };
                return Err(bad(what, "stream count", start));
            }
            self.present_stream(child, nullable, true)?;
            self.stream_of_kind(&[0x22], Role::Codes, Int)?;
            self.outline.columns[child as usize].strings = layout;
            self.end_data(child, streams, start);
            self.observer.leave(self.input.offset(), "");
        }
        Ok(behind)
    }

    fn geometry_column(&mut self) -> Result<GeometryOutline, Error> {
        use Family::{Int, Vertex};
        let (start, first) = (self.input.offset(), index(self.outline.streams.len()));
        let stated = self.varint("stream count")?;
        if stated == 0 {
            return Err(bad(MltFault::StreamCount { found: 0, expected: 1 }, "stream count", start));
        }
        let mut geometry = GeometryOutline { components: 2, ..GeometryOutline::default() };
        geometry.types = Some(self.typed_stream(|_| Ok((Role::Types, Int)))?);
        for _ in 1..stated {
            let next = index(self.outline.streams.len());
            let this = &mut geometry;
            self.typed_stream(|kind| {
                let (slot, role, family) = match kind {
                    0x31 => (&mut this.geometries, Role::Geometries, Int),
                    0x32 => (&mut this.parts, Role::Parts, Int),
                    0x33 => (&mut this.rings, Role::Rings, Int),
                    0x34 => (&mut this.triangles, Role::Triangles, Int),
                    0x21 => (&mut this.indices, Role::Indices, Int),
                    0x20 => (&mut this.offsets, Role::VertexOffsets, Int),
                    0x13 | 0x14 => (&mut this.vertices, Role::Vertices, Vertex),
                    _ => return Err(MltFault::StreamRole { found: kind }),
                };
                if slot.replace(next).is_some() {
                    return Err(MltFault::StreamRole { found: kind });
                }
                Ok((role, family))
            })?;
        }
        // Rings are those of parts, triangles those of outlines, and corners need their counts.
        let alone = [
            (geometry.rings, geometry.parts, 0x33),
            (geometry.triangles, geometry.parts, 0x34),
            (geometry.indices, geometry.triangles, 0x21),
        ];
        for (stream, needed, found) in alone {
            if let (Some(stream), None) = (stream, needed) {
                let at = self.outline.streams[stream as usize].header.0;
                return Err(bad(MltFault::StreamRole { found }, "stream type", at));
            }
        }
        match (geometry.vertices, geometry.offsets) {
            (Some(vertices), Some(_)) => self.outline.streams[vertices as usize].role = Role::VertexDict,
            // They lead nowhere.
            (None, Some(offsets)) if self.outline.streams[offsets as usize].count > 0 => {
                let at = self.outline.streams[offsets as usize].header.0;
                return Err(bad(MltFault::StreamRole { found: 0x20 }, "stream type", at));
            }
            _ => {}
        }
        geometry.streams = first..index(self.outline.streams.len());
        geometry.span = start..self.input.offset();
        Ok(geometry)
    }

    /// Reads a stream that must have one of these type bytes.
    fn stream_of_kind(&mut self, kinds: &[u8], role: Role, family: Family) -> Result<u32, Error> {
        self.typed_stream(|kind| match kinds.contains(&kind) {
            true => Ok((role, family)),
            false => Err(MltFault::StreamRole { found: kind }),
        })
    }

    /// Reads a stream; what it is, its type byte or its place tells.
    fn typed_stream(&mut self, pick: impl FnOnce(u8) -> Pick) -> Result<u32, Error> {
        let start = self.input.offset();
        self.observer.enter("stream", start);
        let kind = self.byte("stream type")?;
        let known = matches!(kind, 0..=0x15 | 0x20..=0x23 | 0x30..=0x36);
        let picked = if known { pick(kind) } else { Err(MltFault::UnknownCode { found: kind.into() }) };
        let (role, family) = picked.map_err(|what| bad(what, "stream type", start))?;
        self.stream_of_family(start, role, family).map_err(|error| error.in_stream(role.name()))
    }

    fn stream_of_family(&mut self, start: u64, role: Role, family: Family) -> Result<u32, Error> {
        use Family::{Bool, Bytes, Double, Float, Int, LongInt, Vertex};
        let at = self.input.offset();
        let encoding = self.byte("encoding")?;
        let not_allowed = || bad(MltFault::EncodingNotAllowed { found: encoding }, "encoding", at);
        let unknown = || bad(MltFault::UnknownCode { found: encoding.into() }, "encoding", at);
        let physical = match encoding & 3 {
            0 => Physical::None,
            1 => Physical::FastPfor256,
            2 => Physical::VarInt,
            _ => return Err(unknown()),
        };
        // Two codes of three bits each.
        let logical = match encoding & 0xfc {
            0x00 => Logical::None,
            0x20 => Logical::Delta,
            0x2c => Logical::DeltaRle { runs: 0 },
            0x40 => Logical::ComponentwiseDelta,
            0x60 => Logical::Rle { runs: 0 },
            0x84 => Logical::Morton { bits: 0, shift: 0 },
            _ => return Err(unknown()),
        };
        let allowed = match (family, logical) {
            (_, Logical::None) => physical == Physical::None || matches!(family, Int | LongInt | Vertex),
            (Int | LongInt | Vertex, Logical::Delta) => true,
            (Int | LongInt, Logical::Rle { .. } | Logical::DeltaRle { .. }) => true,
            (Vertex, Logical::ComponentwiseDelta | Logical::Morton { .. }) => true,
            (Bool, Logical::Rle { .. }) => physical == Physical::None,
            _ => false,
        };
        if !allowed {
            return Err(not_allowed());
        }
        if family == LongInt && physical == Physical::FastPfor256 {
            return Err(bad(MltFault::FastPfor64, "encoding", at));
        }
        let counted = self.input.offset();
        let words = self.varint("value count")?;
        let measured = self.input.offset();
        let length = self.varint("byte length")?;
        let mut count = words;
        let logical = match (logical, family) {
            (Logical::None, Bool) => Logical::Bitmap,
            (Logical::Rle { .. }, Bool) => Logical::BooleanRle,
            (Logical::Rle { .. } | Logical::DeltaRle { .. }, _) => {
                let at = self.input.offset();
                let runs = self.varint("runs")?;
                count = self.varint("values in runs")?;
                if u64::from(words) != 2 * u64::from(runs) {
                    let what = MltFault::RunCount { runs: runs.into(), words: words.into() };
                    return Err(bad(what, "runs", at));
                }
                if matches!(logical, Logical::Rle { .. }) { Logical::Rle { runs } } else { Logical::DeltaRle { runs } }
            }
            (Logical::Morton { .. }, _) => {
                let (bits, shift) = self.morton()?;
                Logical::Morton { bits, shift }
            }
            (logical, Vertex) => {
                count = words / 2;
                if words % 2 == 1 {
                    let what = MltFault::Count { found: words.into(), expected: 2 * u64::from(count) };
                    return Err(bad(what, "value count", counted));
                }
                logical
            }
            (logical, Bytes) => {
                // Writers state what they like: values or bytes.
                count = length;
                logical
            }
            (logical, _) => logical,
        };
        let exact = match (family, physical, logical) {
            (_, _, Logical::BooleanRle) | (Bytes, ..) => None,
            (Bool, ..) => Some(u64::from(words).div_ceil(8)),
            (LongInt | Double, Physical::None, _) => Some(8 * u64::from(words)),
            (Int | Float | Vertex, Physical::None, _) => Some(4 * u64::from(words)),
            _ => None,
        };
        if let Some(expected) = exact
            && u64::from(length) != expected
        {
            let what = MltFault::Length { found: length.into(), expected };
            return Err(bad(what, "byte length", measured));
        }
        let payload = self.input.offset();
        self.input.take(length.into(), Part::Values("", "payload"))?;
        let (header, end) = ((start, payload), self.input.offset());
        self.add_stream(Stream { role, logical, physical, count, words, header, end })
    }

    /// Every column has a value, or a bit of presence, for each feature.
    fn counts(&mut self, features: u32, columns: std::ops::Range<u32>) -> Result<(), Error> {
        for number in 0..columns.end - columns.start {
            let column = &self.outline.columns[(columns.start + number) as usize];
            let stream = match (column.presence, column.kind, column.strings) {
                (_, ColumnKind::Geometry | ColumnKind::SharedDictionary { .. }, _) => continue,
                (Presence::Own(stream) | Presence::Shared(stream), ..) => stream,
                (_, ColumnKind::Child { .. }, _) | (.., StringLayout::Plain) => column.streams.start,
                (.., StringLayout::Dictionary) => column.streams.start + 1,
                (.., StringLayout::Fsst) => column.streams.start + 2,
                (.., StringLayout::FsstDictionary) => column.streams.start + 4,
            };
            let Stream { count, role, header, .. } = self.outline.streams[stream as usize];
            if count != features {
                self.in_column(Some(number));
                let what = MltFault::Count { found: count.into(), expected: features.into() };
                return Err(bad(what, "value count", header.0).in_stream(role.name()));
            }
        }
        Ok(())
    }
}

/// What a trace says of a column's type.
fn what(kind: ColumnKind, data_type: DataType) -> &'static str {
    match kind {
        ColumnKind::Geometry => "geometry",
        ColumnKind::SharedDictionary { .. } => "shared dictionary",
        _ => data_type.name(),
    }
}
