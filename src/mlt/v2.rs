//! The walk over a layer of version 2: presence fields, the geometry section, then column by column.
//!
//! Source: the MapLibre Tile specification, version 2 (experimental).

use super::encoding::boolean;
use super::fault::MltFault;
use super::outline::{
    ColumnKind, ColumnOutline, DataType, GeometryOutline, Indices, LayerOutline, Node, NodeKind, Presence, Span,
    StringLayout,
};
use super::stream::{Logical, Physical, Role, Stream};
use super::walk::{Observer, Walk, bad, index};
use crate::error::{Error, ErrorKind, Limit, Part};

/// How deep columns can be nested; the root is at 1.
const DEPTH: u8 = 8;

/// The bit of a type byte that says that a struct or map has row shapes, an experiment.
const SHAPED: u8 = 0x40;

/// The names of encodings are counted for each family.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Int,
    LongInt,
    /// The leading stream of strings, which says how they are stored.
    Strings,
    /// That of a shared dictionary's child.
    Codes,
    Bool,
    Float,
    Double,
    Vertex,
    VertexDict,
    Bytes,
    /// Bytes of a dictionary, which can be front-coded.
    DictBytes,
}

/// A stream that is expected.
#[derive(Clone, Copy)]
struct Wanted {
    role: Role,
    family: Family,
    /// The count that a header can leave out.
    implied: Option<u32>,
    /// The count that it must have, where headers tell.
    must: Option<u32>,
}

/// What is read of a stream.
struct Read {
    stream: u32,
    count: u32,
    extension: u8,
    z_step: u8,
    /// Values set, of truth values.
    set: u32,
}

/// What a column or node is to be read with: how many values it has, if that is known, and whether its leading streams can
/// leave out their counts.
#[derive(Clone, Copy)]
struct Values {
    known: Option<u32>,
    implied: bool,
}

impl Values {
    fn want(self, role: Role, family: Family) -> Wanted {
        Wanted { role, family, implied: self.known.filter(|_| self.implied), must: self.known }
    }
}

pub(super) fn layer<'a, O: Observer<'a>>(walk: &mut Walk<'a, '_, O>, span: Span) -> Result<LayerOutline, Error> {
    let name = walk.layer_name()?;
    let at = walk.input.offset();
    let header = walk.byte("layer header")?;
    let (m_values, uniform, extent) = (header & 0x80 != 0, header >> 4 & 7, 64 << (header & 15));
    if uniform == 7 {
        return Err(bad(MltFault::UnknownCode { found: header.into() }, "layer header", at));
    }
    let features = walk.varint("feature count")?;
    let at = walk.input.offset();
    let layout = walk.byte("layer layout")?;
    let (coded, fields, geometry) = (layout & 0x80 != 0, layout >> 4 & 7, layout & 15);
    if geometry > 13 {
        return Err(bad(MltFault::UnknownCode { found: layout.into() }, "layer layout", at));
    }
    if coded && fields == 0 {
        let kind = ErrorKind::Reserved { found: 0x80 };
        return Err(Error::new(kind, Part::Values("", "layer layout")).at(at));
    }
    if m_values && matches!(geometry, 0 | 1 | 12) {
        return Err(bad(MltFault::MValues, "layer layout", at));
    }
    let first = index(walk.outline.streams.len());
    let mut shared = [None; 7];
    for (field, set) in shared.iter_mut().enumerate().take(fields.into()) {
        let start = walk.input.offset();
        walk.observer.enter(format_args!("shared presence field {field}"), start);
        let coding = if coded { walk.byte("encoding")? } else { 0 };
        let logical = match coding {
            0x00 => Logical::Bitmap,
            0x10 => Logical::BooleanRuns,
            0x20 => Logical::Sparse,
            _ => return Err(bad(MltFault::UnknownCode { found: coding.into() }, "encoding", start)),
        };
        *set = Some(walk.presence(logical, features, start)?.set);
    }
    let shared_presence = first..index(walk.outline.streams.len());
    let geometry = walk.geometry(geometry, uniform.checked_sub(1), features)?;
    let (count, m_count) = walk.column_counts(m_values)?;
    let first = index(walk.outline.columns.len());
    let mut columns = Columns { first, features, shared, shared_presence: shared_presence.clone(), ids: None };
    debug_assert!(walk.outline.names.is_empty());
    for _ in 0..count {
        walk.column(&mut columns)?;
    }
    for _ in 0..m_count {
        walk.m_value(&columns)?;
    }
    let repeated = walk.unique_names(0);
    repeated.map_err(|error| walk.in_column_of_name(error, first))?;
    walk.in_column(None);
    walk.layer_end()?;
    let columns_end = index(walk.outline.columns.len());
    let (ids, columns) = (columns.ids, first..columns_end);
    Ok(LayerOutline { version: 2, span, name, extent, features, shared_presence, geometry, ids, columns })
}

/// What the columns of a layer are read with.
struct Columns {
    /// The layer's first.
    first: u32,
    features: u32,
    /// Values set in each shared presence field.
    shared: [Option<u32>; 7],
    shared_presence: Indices,
    /// The column of ids, once there is one.
    ids: Option<u32>,
}

impl<'a, O: Observer<'a>> Walk<'a, '_, O> {
    /// Reads a field of presence, which has no header; `start` is that of its coding byte.
    fn presence(&mut self, logical: Logical, count: u32, start: u64) -> Result<Read, Error> {
        let payload = self.input.offset();
        let set = self.truth(logical, count).map_err(|error| error.in_stream(Role::Present.name()))?;
        let (header, end) = ((start, payload), self.input.offset());
        let (role, physical) = (Role::Present, Physical::None);
        let stream = self.add_stream(Stream { role, logical, physical, count, words: 0, header, end })?;
        Ok(Read { stream, count, extension: 0, z_step: 0, set })
    }

    /// Passes truth values, which end where they are as many as `count`; gives how many are set.
    fn truth(&mut self, logical: Logical, count: u32) -> Result<u32, Error> {
        boolean::skip(logical, &mut self.input, count as usize).map(index)
    }

    fn geometry(&mut self, layout: u8, uniform: Option<u8>, features: u32) -> Result<GeometryOutline, Error> {
        let (start, first) = (self.input.offset(), index(self.outline.streams.len()));
        self.observer.geometry(true);
        self.observer.enter(format_args!("geometry, layout {layout:X}"), start);
        let mut geometry = GeometryOutline { uniform, tessellated_only: layout == 12, ..Default::default() };
        // Which lengths each layout has: of geometries, of parts, of rings; triangles.
        let lengths = [0b000, 0b100, 0b010, 0b110, 0b011, 0b111, 0b000, 0b111][usize::from(match layout {
            13 => 7,
            layout => layout / 2,
        })];
        let next = |walk: &mut Self, there: bool, role: Role, must: Option<u32>| -> Result<Option<u32>, Error> {
            let wanted = Wanted { role, family: Family::Int, implied: Some(features), must };
            if there { walk.stream(wanted).map(|read| Some(read.stream)) } else { Ok(None) }
        };
        let triangles = layout >= 12;
        geometry.types = next(self, uniform.is_none(), Role::Types, Some(features))?;
        geometry.geometries = next(self, lengths & 4 != 0, Role::Geometries, None)?;
        geometry.parts = next(self, lengths & 2 != 0, Role::Parts, None)?;
        geometry.rings = next(self, lengths & 1 != 0, Role::Rings, None)?;
        geometry.triangles = next(self, triangles, Role::Triangles, None)?;
        geometry.tree_symbols = next(self, triangles, Role::TreeSymbols, None)?;
        geometry.tree_cycles = next(self, triangles, Role::TreeCycles, None)?;
        let dictionary = layout < 12 && layout % 2 == 1;
        let (role, family) =
            if dictionary { (Role::VertexDict, Family::VertexDict) } else { (Role::Vertices, Family::Vertex) };
        let vertices = self.stream(Wanted { role, family, implied: Some(features), must: None })?;
        geometry.vertices = Some(vertices.stream);
        geometry.components = 2 + (vertices.extension & 1);
        geometry.z_step = vertices.z_step;
        geometry.offsets = next(self, dictionary, Role::VertexOffsets, None)?;
        geometry.streams = first..index(self.outline.streams.len());
        geometry.span = start..self.input.offset();
        self.observer.leave(self.input.offset(), "");
        self.observer.geometry(false);
        Ok(geometry)
    }

    /// How many columns follow, and how many of values of vertices.
    fn column_counts(&mut self, m_values: bool) -> Result<(u32, u32), Error> {
        if !m_values {
            return Ok((self.varint("column count")?, 0));
        }
        let (start, part) = (self.input.offset(), Part::Values("", "column counts"));
        let both = self.input.uleb(64, part)?;
        let every_second =
            |bits: u64| (0..32).fold(0, |count, bit| count | u32::from(bits >> (2 * bit) & 1 == 1) << bit);
        let (count, m_count) = (every_second(both), every_second(both >> 1));
        let counts = format_args!("{count} columns, {m_count} of values of vertices");
        self.observer.field("column counts", start..self.input.offset(), counts);
        if m_count == 0 { Err(bad(MltFault::Empty, "column counts", start)) } else { Ok((count, m_count)) }
    }

    fn column(&mut self, columns: &mut Columns) -> Result<(), Error> {
        let (start, this) = self.start_column(columns.first);
        let code = self.byte("column type")?;
        if code & 15 == 15 {
            return self.shared_dictionary(columns, code, start);
        }
        let data_type = data_type(code & 15).ok_or_else(|| unknown(code, "column type", start))?;
        let kind = match data_type {
            DataType::Id | DataType::LongId => {
                if columns.ids.replace(this).is_some() {
                    return Err(bad(MltFault::RepeatedColumn, "column type", start));
                }
                ColumnKind::Id
            }
            DataType::Struct | DataType::List | DataType::Map => {
                ColumnKind::Nested { node: index(self.outline.nodes.len()) }
            }
            _ => ColumnKind::Property,
        };
        self.typed_column(columns, kind, code, data_type, start)
    }

    fn m_value(&mut self, columns: &Columns) -> Result<(), Error> {
        let (start, _) = self.start_column(columns.first);
        let code = self.byte("column type")?;
        let data_type =
            data_type(code & 15).filter(|it| is_leaf(*it)).ok_or_else(|| unknown(code, "column type", start))?;
        self.typed_column(columns, ColumnKind::MValue, code, data_type, start)
    }

    /// Reads what follows the type byte of a column that stands by itself.
    fn typed_column(
        &mut self,
        columns: &Columns,
        kind: ColumnKind,
        code: u8,
        data_type: DataType,
        start: u64,
    ) -> Result<(), Error> {
        let name = if kind == ColumnKind::Id { 0..0 } else { self.column_name(0..0)? };
        let meta = start..self.input.offset();
        let first = index(self.outline.streams.len());
        let (presence, present) = self.column_presence(columns, code, start)?;
        let values = match kind {
            // How many vertices the features have, the topology tells.
            ColumnKind::MValue => Values { known: None, implied: false },
            _ => Values { known: Some(present), implied: true },
        };
        let (strings, streams) = if let ColumnKind::Nested { .. } = kind {
            let first = index(self.outline.streams.len());
            self.root(data_type, values, start)?;
            (StringLayout::Plain, first..index(self.outline.streams.len()))
        } else {
            self.data(data_type, values)?
        };
        self.end_column(ColumnOutline {
            kind,
            code,
            data_type,
            name,
            prefix: 0..0,
            presence,
            strings,
            all_streams: first..streams.end,
            streams,
            data: meta.end..self.input.offset(),
            meta,
        })
    }

    fn shared_dictionary(&mut self, columns: &Columns, code: u8, start: u64) -> Result<(), Error> {
        if code > 0x1f {
            return Err(unknown(code, "column type", start));
        }
        let prefix = self.name("prefix")?;
        let children = self.varint("child count")?;
        let meta = start..self.input.offset();
        let fsst = code >> 4 == 1;
        let first = index(self.outline.streams.len());
        let counted = Values { known: None, implied: false };
        self.stream(counted.want(Role::DictLengths, Family::Int))?;
        if fsst {
            self.stream(counted.want(Role::SymbolLengths, Family::Int))?;
            self.stream(counted.want(Role::SymbolTable, Family::Bytes))?;
        }
        self.stream(counted.want(if fsst { Role::Corpus } else { Role::DictValues }, Family::DictBytes))?;
        let streams = first..index(self.outline.streams.len());
        let strings = if fsst { StringLayout::FsstDictionary } else { StringLayout::Dictionary };
        let dictionary = index(self.outline.columns.len());
        let data = meta.end..self.input.offset();
        self.end_column(ColumnOutline {
            kind: ColumnKind::SharedDictionary { children },
            code,
            data_type: DataType::String,
            name: 0..0,
            prefix: prefix.clone(),
            presence: Presence::All,
            strings,
            all_streams: streams.clone(),
            streams,
            meta,
            data,
        })?;
        for _ in 0..children {
            let (start, _) = self.start_column(columns.first);
            let code = self.byte("child type")?;
            let data_type = data_type(code & 15).filter(|it| *it == DataType::String);
            let data_type = data_type.ok_or_else(|| unknown(code, "child type", start))?;
            let name = self.column_name(prefix.clone())?;
            let meta = start..self.input.offset();
            let first = index(self.outline.streams.len());
            let (presence, present) = self.column_presence(columns, code, start)?;
            let codes = self.stream(Values { known: Some(present), implied: true }.want(Role::Codes, Family::Codes))?;
            self.end_column(ColumnOutline {
                kind: ColumnKind::Child { dictionary },
                code,
                data_type,
                name,
                prefix: prefix.clone(),
                presence,
                strings,
                streams: codes.stream..codes.stream + 1,
                all_streams: first..codes.stream + 1,
                data: meta.end..self.input.offset(),
                meta,
            })?;
        }
        Ok(())
    }

    /// Starts a column: where it is, and its index.
    fn start_column(&mut self, first: u32) -> (u64, u32) {
        let (start, this) = (self.input.offset(), index(self.outline.columns.len()));
        self.in_column(Some(this - first));
        self.observer.enter(format_args!("column {}", this - first), start);
        (start, this)
    }

    fn end_column(&mut self, column: ColumnOutline) -> Result<(), Error> {
        self.outline.add_prefix(column.kind, &column.prefix);
        self.room()?;
        self.observer.leave(
            self.input.offset(),
            match column.kind {
                ColumnKind::SharedDictionary { .. } => "shared dictionary",
                _ => column.data_type.name(),
            },
        );
        self.outline.columns.push(column);
        Ok(())
    }

    /// Reads a name of which a layer, or a struct, has one only.
    fn column_name(&mut self, prefix: Span) -> Result<Span, Error> {
        let name = self.name("name")?;
        self.outline.names.push((prefix, name.clone()));
        Ok(name)
    }

    /// Adds to an error the column that has the name where the error is.
    fn in_column_of_name(&self, error: Error, first: u32) -> Error {
        let columns = &self.outline.columns[first as usize..];
        let column = columns.iter().position(|column| Some(column.name.start) == error.offset());
        let column = column.map(index);
        error.in_layer(super::outline::LayerPlace { column, ..self.place })
    }

    /// Reads the presence field of a column, where it has its own; gives how many features have a value.
    fn column_presence(&mut self, columns: &Columns, code: u8, at: u64) -> Result<(Presence, u32), Error> {
        let features = columns.features;
        let logical = match code >> 4 {
            0 => return Ok((Presence::All, features)),
            1 => Logical::Bitmap,
            2 => Logical::BooleanRuns,
            3 => Logical::Sparse,
            shared @ 4..=10 => {
                let field = shared - 4;
                let Some(set) = columns.shared[usize::from(field)] else {
                    let fields = columns.shared.iter().flatten().count();
                    let what = MltFault::SharedPresence { found: field, fields: u8::try_from(fields).unwrap_or(7) };
                    return Err(bad(what, "column type", at));
                };
                return Ok((Presence::Shared(columns.shared_presence.start + u32::from(field)), set));
            }
            _ => return Err(unknown(code, "column type", at)),
        };
        let start = self.input.offset();
        self.observer.enter("presence field", start);
        let Read { stream, set, .. } = self.presence(logical, features, start)?;
        Ok((Presence::Own(stream), set))
    }

    /// Reads the data streams of a type that is not nested.
    fn data(&mut self, data_type: DataType, values: Values) -> Result<(StringLayout, Indices), Error> {
        use DataType::{Bool, Double, Float, Int64, LongId, String, UInt64};
        let first = index(self.outline.streams.len());
        self.observer.values(data_type);
        let family = match data_type {
            String => return self.strings(values),
            Bool => Family::Bool,
            LongId | Int64 | UInt64 => Family::LongInt,
            Float => Family::Float,
            Double => Family::Double,
            _ => Family::Int,
        };
        let codes = self.stream(values.want(Role::Data, family))?;
        if self.outline.streams[codes.stream as usize].logical == Logical::FloatDictionary {
            let (role, implied) = (Role::FloatDictionary, Some(codes.count));
            self.stream(Wanted { role, family, implied, must: None })?;
        }
        Ok((StringLayout::Plain, first..index(self.outline.streams.len())))
    }

    /// Reads the streams of strings: of a column, a leaf, or the keys of a map.
    fn strings(&mut self, values: Values) -> Result<(StringLayout, Indices), Error> {
        let first = index(self.outline.streams.len());
        let leading = Wanted { must: None, ..values.want(Role::Lengths, Family::Strings) };
        let leading = self.stream(leading)?;
        let mut next = |role, family| self.stream(Wanted { role, family, implied: Some(leading.count), must: None });
        let layout = match leading.extension {
            0 => StringLayout::Plain,
            1 => StringLayout::Dictionary,
            2 => StringLayout::Fsst,
            _ => StringLayout::FsstDictionary,
        };
        let dictionary = matches!(layout, StringLayout::Dictionary | StringLayout::FsstDictionary);
        let fsst = matches!(layout, StringLayout::Fsst | StringLayout::FsstDictionary);
        if dictionary {
            next(Role::DictLengths, Family::Int)?;
        }
        if fsst {
            next(Role::SymbolLengths, Family::Int)?;
            next(Role::SymbolTable, Family::Bytes)?;
        }
        let role = match (fsst, dictionary) {
            (true, _) => Role::Corpus,
            (_, true) => Role::DictValues,
            _ => Role::Values,
        };
        next(role, if dictionary { Family::DictBytes } else { Family::Bytes })?;
        // Last, because front coding where it cannot be has twice the lengths.
        if let Some(expected) = values.known.filter(|known| *known != leading.count) {
            let Stream { role, header, .. } = self.outline.streams[first as usize];
            let what = MltFault::Count { found: leading.count.into(), expected: expected.into() };
            return Err(bad(what, "value count", header.0 + 1).in_stream(role.name()));
        }
        Ok((layout, first..index(self.outline.streams.len())))
    }

    fn stream(&mut self, wanted: Wanted) -> Result<Read, Error> {
        self.observer.enter("stream", self.input.offset());
        let mut role = wanted.role;
        self.stream_of(wanted, &mut role).map_err(|error| error.in_stream(role.name()))
    }

    /// Reads a stream; sets the role of the leading stream of strings.
    fn stream_of(&mut self, wanted: Wanted, role: &mut Role) -> Result<Read, Error> {
        use Family::{Bool, Bytes, Codes, DictBytes, Double, Float, Int, LongInt, Strings, Vertex, VertexDict};
        let family = wanted.family;
        let start = self.input.offset();
        let encoding = self.byte("encoding")?;
        let not_allowed = || bad(MltFault::EncodingNotAllowed { found: encoding }, "encoding", start);
        let (explicit, code, physical, extension) =
            (encoding & 0x80 != 0, encoding >> 4 & 7, encoding >> 2 & 3, encoding & 3);
        let logical = match (family, code) {
            (Int | LongInt | Strings | Codes | Float | Double | Vertex | VertexDict | Bytes | DictBytes, 0) => {
                Logical::None
            }
            (Int | LongInt | Strings | Codes | Vertex | VertexDict, 1) => Logical::Delta,
            (Int | LongInt | Strings | Codes, 2) => Logical::RlePairs,
            (Int | LongInt | Strings | Codes, 3) => Logical::DeltaRlePairs,
            (Int | LongInt | Strings | Codes, 4) => Logical::BitPacked,
            (Int | LongInt | Strings | Codes, 5) => Logical::Delta2,
            (Bool, 0) => Logical::Bitmap,
            (Bool, 1) => Logical::BooleanRuns,
            (Bool, 2) => Logical::Sparse,
            // Kept for runs.
            (Float | Double, 1) => return Err(not_allowed()),
            (Float | Double, 2 | 3) if wanted.role == Role::FloatDictionary => return Err(not_allowed()),
            (Float | Double, 2) => Logical::Alp { scale: 0, base: 0 },
            (Float | Double, 3) => Logical::FloatDictionary,
            (Vertex | VertexDict, 2) => Logical::ComponentwiseDelta,
            (Vertex | VertexDict, 3) => Logical::Morton { bits: 0, shift: 0 },
            (Vertex | VertexDict, 4) => Logical::ComponentwiseDelta2,
            (Vertex, 5) => Logical::Rans,
            (VertexDict, 5) => return Err(bad(MltFault::RansDictionary, "encoding", start)),
            (DictBytes, 1) => Logical::FrontCoded,
            (Bytes, 1) => return Err(bad(MltFault::FrontCoded, "encoding", start)),
            _ => return Err(unknown(encoding, "encoding", start)),
        };
        let blob = matches!(family, Bytes | DictBytes);
        let vertices = matches!(family, Vertex | VertexDict);
        // Which physical codes there are: all but 0 for words, and 0 for such that are the values; 0 where the words are
        // the encoding's own.
        let physical_fits = match (family, logical) {
            (Bytes | DictBytes, _) => physical == 1,
            (Float | Double, Logical::None) => physical <= 1,
            (_, Logical::None) => true,
            (Bool, _) | (_, Logical::RlePairs | Logical::DeltaRlePairs | Logical::BitPacked | Logical::Rans) => {
                physical == 0
            }
            _ => physical != 0,
        };
        let plain = matches!(logical, Logical::None | Logical::Delta | Logical::ComponentwiseDelta);
        let extension_fits = match family {
            Strings => true,
            Codes => extension == 1,
            Vertex | VertexDict => extension == 0 || extension == 1 && plain,
            _ => extension == 0,
        };
        if !physical_fits || !extension_fits || (blob && explicit) {
            return Err(not_allowed());
        }
        if family == Strings && extension & 1 == 1 {
            *role = Role::Codes;
        }
        let counted = self.input.offset();
        let count = match (explicit, wanted.implied) {
            _ if blob => 0,
            (true, _) => self.varint("value count")?,
            (false, Some(implied)) => implied,
            (false, None) => return Err(bad(MltFault::NoCount, "encoding", start)),
        };
        if let Some(expected) = wanted.must.filter(|must| *must != count && !blob) {
            let what = MltFault::Count { found: count.into(), expected: expected.into() };
            return Err(bad(what, "value count", counted));
        }
        let has_length = family != Bool && (physical != 0 || !matches!(logical, Logical::None));
        let measured = self.input.offset();
        let length = if has_length { Some(self.varint("byte length")?) } else { None };
        let (logical, z_step) = self.parameters(logical, vertices && extension == 1)?;
        let components = if vertices { 2 + u64::from(extension) } else { 1 };
        let words = match logical {
            Logical::RlePairs | Logical::DeltaRlePairs | Logical::Rans => 0,
            Logical::Morton { .. } => u64::from(count),
            _ if family == Bool || blob => 0,
            _ => components * u64::from(count),
        };
        let words = u32::try_from(words).map_err(|_| {
            let kind = ErrorKind::LimitExceeded { needed: words, limit: u32::MAX.into(), what: Limit::Values };
            Error::new(kind, Part::Values("", "value count")).at(counted)
        })?;
        let width = match (family, logical) {
            (LongInt, _) | (Float | Double, Logical::Alp { .. }) | (Double, Logical::None) => 8,
            _ => 4,
        };
        let payload = self.input.offset();
        let mut set = 0;
        if family == Bool {
            set = self.truth(logical, count)?;
        } else {
            let whole = width * u64::from(words);
            // Other encodings with no physical one have their own lengths.
            let exact = !blob && (physical == 1 || logical == Logical::None && physical == 0);
            if let Some(found) = length.map(u64::from).filter(|found| exact && *found != whole) {
                return Err(bad(MltFault::Length { found, expected: whole }, "byte length", measured));
            }
            self.input.take(length.map_or(whole, u64::from), Part::Values("", "payload"))?;
        }
        let physical = match physical {
            2 => Physical::VarInt,
            3 => Physical::FastPfor128,
            _ => Physical::None,
        };
        let count = if blob { length.unwrap_or(0) } else { count };
        let (header, end) = ((start, payload), self.input.offset());
        let stream = self.add_stream(Stream { role: *role, logical, physical, count, words, header, end })?;
        Ok(Read { stream, count, extension, z_step, set })
    }

    /// Reads what an encoding has in its header.
    fn parameters(&mut self, logical: Logical, z: bool) -> Result<(Logical, u8), Error> {
        let start = self.input.offset();
        match logical {
            Logical::Alp { .. } => {
                let scale = self.byte("ALP scale")?;
                if scale > 189 {
                    return Err(bad(MltFault::AlpScale { found: scale }, "ALP scale", start));
                }
                let start = self.input.offset();
                let base = self.input.zigzag(Part::Values("", "ALP base"))?;
                self.observer.field("ALP base", start..self.input.offset(), base);
                Ok((Logical::Alp { scale, base }, 0))
            }
            Logical::Morton { .. } => {
                let (bits, shift) = self.morton()?;
                Ok((Logical::Morton { bits, shift }, 0))
            }
            logical if z => {
                let step = self.byte("z step")?;
                if step > 7 {
                    let kind = ErrorKind::OutOfRange { found: step.into(), min: 0, max: 7 };
                    return Err(Error::new(kind, Part::Values("", "z step")).at(start));
                }
                Ok((logical, step))
            }
            logical => Ok((logical, 0)),
        }
    }

    /// Reads the nodes of a nested column.
    fn root(&mut self, data_type: DataType, values: Values, start: u64) -> Result<(), Error> {
        let node = |shaped| NodeStart {
            data_type,
            shaped,
            values: Values { implied: !matches!(data_type, DataType::List | DataType::Map), ..values },
            depth: 1,
            name: 0..0,
            presence: Presence::All,
            start,
        };
        // Row shapes are said by a byte here, which can as well be the 64 fields of a struct.
        let shaped = self.input.bytes().first() == Some(&SHAPED)
            && match data_type {
                DataType::Struct => self.ahead > 0 && !self.reads(node(false)) && self.reads(node(true)),
                data_type => data_type == DataType::Map,
            };
        if shaped {
            self.byte("row shapes")?;
        }
        self.node(node(shaped))
    }

    /// Whether the bytes can be read so. What was read in vain is counted.
    fn reads(&mut self, node: NodeStart) -> bool {
        let marks = (self.outline.nodes.len(), self.outline.streams.len(), self.outline.names.len());
        let (mut unseen, start) = ((), self.input.offset());
        let mut walk = self.seen_by(&mut unseen);
        let read = (|| {
            if node.shaped {
                walk.byte("row shapes")?;
            }
            walk.node(node)
        })();
        let seen = walk.input.offset() - start;
        self.ahead = self.ahead.saturating_sub(if read.is_ok() { 0 } else { seen });
        self.outline.nodes.truncate(marks.0);
        self.outline.streams.truncate(marks.1);
        self.outline.names.truncate(marks.2);
        read.is_ok()
    }

    /// Reads the body of a node, and all below it.
    fn node(&mut self, node: NodeStart) -> Result<(), Error> {
        let NodeStart { data_type, shaped, values, depth, name, presence, start } = node;
        self.room()?;
        let this = self.outline.nodes.len();
        let kind = NodeKind::List { lengths: 0 };
        self.outline.nodes.push(Node { kind, name, presence, end: 0, span: start..start });
        let counted = Values { known: None, implied: false };
        let kind = match data_type {
            DataType::Struct => {
                let at = self.input.offset();
                let fields = self.varint("field count")?;
                if fields == 0 {
                    return Err(bad(MltFault::Empty, "field count", at));
                }
                let shapes = if shaped { Some(self.shapes(fields, values)?) } else { None };
                // Only the ids of shapes tell how many values a field has.
                let values = Values { known: values.known.filter(|_| !shaped), ..values };
                let names = self.outline.names.len();
                for _ in 0..fields {
                    self.child(true, values, shaped, depth)?;
                }
                self.unique_names(names)?;
                NodeKind::Struct { fields, shapes }
            }
            DataType::List => {
                let lengths = self.stream(values.want(Role::ListLengths, Family::Int))?.stream;
                self.child(false, counted, false, depth)?;
                NodeKind::List { lengths }
            }
            DataType::Map => {
                let lengths = match shaped {
                    true => None,
                    false => Some(self.stream(values.want(Role::ListLengths, Family::Int))?.stream),
                };
                let (key_layout, keys) = self.strings(counted)?;
                let distinct = self.outline.streams[keys.start as usize].count;
                let shapes = if shaped { Some(self.shapes(distinct, values)?) } else { None };
                self.child(false, counted, false, depth)?;
                NodeKind::Map { lengths, key_layout, keys, shapes }
            }
            data_type => {
                let (strings, streams) = self.data(data_type, values)?;
                NodeKind::Leaf { data_type, strings, streams }
            }
        };
        let end = index(self.outline.nodes.len());
        let node = &mut self.outline.nodes[this];
        (node.kind, node.end, node.span.end) = (kind, end, self.input.offset());
        Ok(())
    }

    /// Reads the table of row shapes, and the shape of each row.
    fn shapes(&mut self, fields: u32, rows: Values) -> Result<(u32, u32), Error> {
        let at = self.input.offset();
        let wanted = Values { known: None, implied: false }.want(Role::ShapeTable, Family::Bool);
        let table = self.stream(wanted)?;
        let over = table.count.checked_rem(fields).unwrap_or(table.count);
        if over > 0 {
            let what = MltFault::Count { found: table.count.into(), expected: (table.count - over).into() };
            return Err(bad(what, "value count", at).in_stream(Role::ShapeTable.name()));
        }
        let ids = self.stream(rows.want(Role::ShapeIds, Family::Int))?;
        Ok((table.stream, ids.stream))
    }

    /// Reads a field of a struct, or what a list or map is of.
    fn child(&mut self, named: bool, handed: Values, shaped_parent: bool, depth: u8) -> Result<(), Error> {
        let start = self.input.offset();
        self.observer.enter("node", start);
        let code = self.byte("node type")?;
        let data_type = data_type(code & 15).filter(|it| !matches!(it, DataType::Id | DataType::LongId));
        let data_type = data_type.ok_or_else(|| unknown(code, "node type", start))?;
        let shaped = code & SHAPED != 0;
        let stored = match code >> 4 & !(SHAPED >> 4) {
            0 => false,
            // Shapes tell which fields there are.
            1 if !shaped_parent => true,
            _ => return Err(unknown(code, "node type", start)),
        };
        if shaped && !matches!(data_type, DataType::Struct | DataType::Map) {
            return Err(unknown(code, "node type", start));
        }
        if depth == DEPTH {
            return Err(bad(MltFault::Depth { max: DEPTH }, "node type", start));
        }
        let name = if named { self.column_name(0..0)? } else { 0..0 };
        let implied = handed.implied && !matches!(data_type, DataType::List | DataType::Map);
        let mut values = Values { implied, ..handed };
        let mut presence = Presence::All;
        if stored {
            let Read { stream, set, .. } = self.stream(values.want(Role::Present, Family::Bool))?;
            (presence, values.known) = (Presence::Own(stream), Some(set));
        }
        self.node(NodeStart { data_type, shaped, values, depth: depth + 1, name, presence, start })?;
        self.observer.leave(self.input.offset(), data_type.name());
        Ok(())
    }
}

/// A node whose body follows.
#[derive(Clone)]
struct NodeStart {
    data_type: DataType,
    shaped: bool,
    /// How many values it has.
    values: Values,
    depth: u8,
    name: Span,
    presence: Presence,
    start: u64,
}

fn data_type(code: u8) -> Option<DataType> {
    use DataType::*;
    let types = [Id, LongId, Bool, Int8, UInt8, Int32, UInt32, Int64, UInt64, Float, Double, String, Struct, List, Map];
    types.get(usize::from(code)).copied()
}

/// Whether values of the type are not nested, and no ids.
fn is_leaf(data_type: DataType) -> bool {
    use DataType::{Id, List, LongId, Map, Struct};
    !matches!(data_type, Id | LongId | Struct | List | Map)
}

#[cold]
fn unknown(code: u8, field: &'static str, offset: u64) -> Error {
    bad(MltFault::UnknownCode { found: code.into() }, field, offset)
}
