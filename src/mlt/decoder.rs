//! The decoder: columns of a layer one by one, whole layers, whole tiles.

use super::data::{
    Budget, Coded, Kept, LayerData, MValueData, PropertyData, Store, StringStore, TileData, Validity, ones,
};
use super::encoding::integers::{self, Coding};
use super::encoding::{Scratch, Word, alp, boolean, fault, float_dictionary, fsst, strings};
use super::geometry::Geometry;
use super::nested::NestedData;
use super::outline::{ColumnKind, ColumnOutline, DataType, Presence, StringLayout};
use super::stream::{Logical, Role, Stream};
use super::tile::{Column, Kind, Layer, Tile};
use super::{MltFault, Options};
use crate::error::{Error, ErrorKind, Part, Unsupported};
use crate::kernels::Kernels;

const VALUES: Part = Part::Values("", "values");

/// Decodes columns, layers and tiles. Keep it, one on each thread, and the outputs with it: they grow once, and then
/// nothing is allocated any more. An output whose decode failed is empty and without memory, so that nothing half-decoded
/// is taken for values; of a tile the layers in front of the one at fault are there.
///
/// What one call gives is bounded by the limits of its options, whatever the tile claims.
#[derive(Clone, Debug)]
pub struct Decoder {
    core: Core,
    /// The topology of a layer whose columns of vertices are decoded without its geometry.
    geometry: Geometry,
}

/// What decoding a stream takes.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) budget: Budget,
    pub(crate) scratch: Scratch,
    pub(crate) memory: Memory,
}

/// Values on the way from streams to their places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) words: Kept<u32>,
    pub(crate) more_words: Kept<u32>,
    pub(crate) symbols: Kept<u32>,
    pub(crate) long_words: Kept<u64>,
    pub(crate) integers: Kept<u64>,
    pub(crate) bits: Kept<u8>,
}

impl Decoder {
    /// With the default options.
    ///
    /// # Errors
    /// As [`Options::new`].
    pub fn new() -> Result<Decoder, Error> {
        Ok(Decoder::with_options(Options::new()?))
    }

    /// With these options.
    pub fn with_options(options: Options) -> Decoder {
        let budget = Budget::new(options.limits);
        let core = Core { options, budget, scratch: Scratch::new(), memory: Memory::default() };
        Decoder { core, geometry: Geometry::default() }
    }

    /// Its options.
    pub fn options(&self) -> &Options {
        &self.core.options
    }

    /// Ids. Gives whether the layer has any; where it has none, `out` is left as it was.
    ///
    /// # Errors
    /// What is wrong with the column, its layer and offset; or more than the limits allow.
    pub fn ids(&mut self, layer: Layer<'_>, out: &mut PropertyData) -> Result<bool, Error> {
        self.start();
        or_empty(out, |out| self.core.ids(layer, out))
    }

    /// Geometries.
    ///
    /// # Errors
    /// As [`Decoder::ids`].
    pub fn geometry(&mut self, layer: Layer<'_>, out: &mut Geometry) -> Result<(), Error> {
        self.start();
        or_empty(out, |out| self.core.geometry(layer, false, out))
    }

    /// A column of [`Layer::properties`]: nothing else of the layer is decoded, but for the dictionary that it shares.
    ///
    /// # Errors
    /// As [`Decoder::ids`]; [`ErrorKind::Unsupported`] for a column of another kind.
    pub fn property(&mut self, column: Column<'_>, out: &mut PropertyData) -> Result<(), Error> {
        self.start();
        or_empty(out, |out| {
            expect(column, &[Kind::Property, Kind::Child])?;
            self.core.property(column, None, out)
        })
    }

    /// A column of [`Layer::m_values`]. How many values features have is told by the topology, which is decoded, too.
    ///
    /// # Errors
    /// As [`Decoder::property`].
    pub fn m_value(&mut self, column: Column<'_>, out: &mut MValueData) -> Result<(), Error> {
        self.start();
        or_empty(out, |out| {
            expect(column, &[Kind::MValue])?;
            self.core.geometry(column.layer(), true, &mut self.geometry)?;
            self.core.m_value(column, &self.geometry, out)
        })
    }

    /// A column of [`Layer::nested`].
    ///
    /// # Errors
    /// As [`Decoder::property`].
    pub fn nested(&mut self, column: Column<'_>, out: &mut NestedData) -> Result<(), Error> {
        self.start();
        or_empty(out, |out| {
            expect(column, &[Kind::Nested])?;
            self.core.nested(column, out)
        })
    }

    /// A whole layer.
    ///
    /// # Errors
    /// As [`Decoder::ids`].
    pub fn layer(&mut self, layer: Layer<'_>, out: &mut LayerData) -> Result<(), Error> {
        self.start();
        or_empty(out, |out| self.core.layer(layer, true, |_| true, out))
    }

    /// Of a layer the ids and columns that are `wanted`, and the geometry if it is asked for: to `out` it is as if the layer
    /// had nothing else, and a geometry that is not asked for has no features. A dictionary is decoded once for all columns
    /// that share it.
    ///
    /// # Errors
    /// As [`Decoder::ids`].
    pub fn some(
        &mut self,
        layer: Layer<'_>,
        geometry: bool,
        wanted: impl Fn(Column<'_>) -> bool,
        out: &mut LayerData,
    ) -> Result<(), Error> {
        self.start();
        or_empty(out, |out| self.core.layer(layer, geometry, wanted, out))
    }

    /// A whole tile.
    ///
    /// # Errors
    /// As [`Decoder::ids`].
    pub fn tile(&mut self, tile: &Tile<'_>, out: &mut TileData) -> Result<(), Error> {
        self.start();
        out.layers.clear();
        tile.layers().try_for_each(|layer| {
            let decoded = self.core.layer(layer, true, |_| true, out.layers.next());
            decoded.inspect_err(|_| out.layers.drop_last())
        })
    }

    /// What is wrong with each part of a layer, tried by itself: ids, geometry, column by column, within the limits of one
    /// call each. What columns share is decoded once for all of them: a dictionary, whose faults are told once, and the
    /// topology. Codes into a dictionary that cannot be read are tried, but for where they lead.
    ///
    /// Columns that share a presence field have its faults in common: the same error comes for each.
    pub fn faults(&mut self, layer: Layer<'_>, mut tell: impl FnMut(Error)) {
        let (mut values, mut m_values, mut nested) = (PropertyData::new(), MValueData::new(), NestedData::new());
        let (mut dictionary, mut entries) = (StringStore::default(), 0);
        self.start();
        // What the last dictionary, and the topology, take of the limits counts for every column that needs them.
        let (mut with_dictionary, mut with_topology) = (self.core.budget, None);
        self.core.ids(layer, &mut values).map_or_else(&mut tell, drop);
        self.start();
        self.core.geometry(layer, false, &mut self.geometry).unwrap_or_else(&mut tell);
        for column in layer.columns() {
            self.start();
            let tried = match column.kind() {
                Kind::Id | Kind::Geometry => Ok(()),
                Kind::Property => self.core.property(column, None, &mut values),
                Kind::SharedDictionary => {
                    let read = self.core.dictionary(column, &mut dictionary);
                    (entries, with_dictionary) = match &read {
                        Ok(()) => (dictionary.len(), self.core.budget),
                        Err(_) => (usize::MAX, Budget::new(self.core.options.limits)),
                    };
                    read
                }
                Kind::Child => {
                    self.core.budget = with_dictionary;
                    self.core.property(column, Some((0, entries)), &mut values)
                }
                Kind::MValue => {
                    let budget = *with_topology.get_or_insert_with(|| {
                        // Its faults are those of the geometry, and told.
                        let read = self.core.geometry(layer, true, &mut self.geometry);
                        read.is_ok().then_some(self.core.budget)
                    });
                    budget.map_or(Ok(()), |budget| {
                        self.core.budget = budget;
                        self.core.m_value(column, &self.geometry, &mut m_values)
                    })
                }
                Kind::Nested => self.core.nested(column, &mut nested),
            };
            tried.unwrap_or_else(&mut tell);
        }
    }

    fn start(&mut self) {
        self.core.budget = Budget::new(self.core.options.limits);
    }
}

/// What `decode` fills; nothing at all if that fails.
fn or_empty<T: Default, R>(out: &mut T, decode: impl FnOnce(&mut T) -> Result<R, Error>) -> Result<R, Error> {
    let decoded = decode(out);
    if decoded.is_err() {
        *out = T::default();
    }
    decoded
}

/// That a column is of a kind that the call is for.
fn expect(column: Column<'_>, kinds: &[Kind]) -> Result<(), Error> {
    if kinds.contains(&column.kind()) {
        return Ok(());
    }
    let kind = ErrorKind::Unsupported(Unsupported::Request);
    Err(Error::new(kind, Part::Values("", "kind of column")).in_layer(column.place()))
}

#[cold]
pub(crate) fn missing() -> Error {
    Error::new(ErrorKind::Missing, VALUES)
}

/// A stream that must have so many values.
pub(crate) fn counted(stream: &Stream, expected: usize) -> Result<(), Error> {
    if stream.count as usize == expected {
        return Ok(());
    }
    let kind = MltFault::Count { found: stream.count.into(), expected: expected as u64 };
    Err(fault(kind, VALUES).at(stream.header.0).in_stream(stream.role.name()))
}

impl Error {
    /// Adds the place of a column, where none is known: what the limits stop has no byte of its own.
    pub(crate) fn of_column(self, column: Column<'_>) -> Error {
        self.near(column.data_span().start).in_layer(column.place())
    }
}

/// What values of a column are stored in.
pub(crate) struct Spec<'a> {
    pub(crate) data_type: DataType,
    pub(crate) strings: StringLayout,
    pub(crate) streams: &'a [Stream],
}

impl Core {
    /// What is wanted of a layer.
    fn layer(
        &mut self,
        layer: Layer<'_>,
        geometry: bool,
        wanted: impl Fn(Column<'_>) -> bool,
        out: &mut LayerData,
    ) -> Result<(), Error> {
        let room = self.budget.bytes(1, size_of::<LayerData>());
        room.map_err(|e| e.near(layer.span().start).in_layer(layer.place(None)))?;
        (out.number, out.version, out.extent) = (layer.number(), layer.version(), layer.extent());
        out.features = layer.features();
        out.name.clear();
        out.name.push_str(layer.name());
        out.properties.clear();
        out.dictionaries.clear();
        out.m_values.clear();
        out.nested.clear();
        out.has_ids = layer.ids().is_some_and(&wanted) && self.ids(layer, &mut out.id_data)?;
        let topology = geometry || layer.m_values().any(&wanted);
        if topology {
            self.geometry(layer, !geometry, &mut out.geometry)?;
        }
        for column in layer.columns() {
            // A dictionary is there for its children.
            if !wanted(column) && !column.children().any(&wanted) {
                continue;
            }
            match column.kind() {
                Kind::Id | Kind::Geometry => {}
                Kind::Property => self.property(column, None, out.properties.next())?,
                Kind::SharedDictionary => self.dictionary(column, out.dictionaries.next())?,
                Kind::Child => {
                    // That of the last dictionary: its children follow it.
                    let shared = out.dictionaries.get().len().checked_sub(1);
                    let shared = shared.map(|at| (at, out.dictionaries.get()[at].len()));
                    self.property(column, shared, out.properties.next())?;
                }
                Kind::MValue => self.m_value(column, &out.geometry, out.m_values.next())?,
                Kind::Nested => self.nested(column, out.nested.next())?,
            }
        }
        if !geometry {
            out.geometry.clear();
        }
        Ok(())
    }

    /// The entries of a shared dictionary.
    fn dictionary(&mut self, column: Column<'_>, out: &mut StringStore) -> Result<(), Error> {
        let streams = column.layer().streams(&column.outline().streams);
        self.entries(column.layer(), streams, None, out).map_err(|e| e.of_column(column))
    }

    fn ids(&mut self, layer: Layer<'_>, out: &mut PropertyData) -> Result<bool, Error> {
        match layer.ids() {
            Some(column) => self.property(column, None, out).map(|()| true),
            None => Ok(false),
        }
    }

    /// A column of features. `shared` is the place of the dictionary, and its number of entries, where a child's has been
    /// decoded.
    fn property(
        &mut self,
        column: Column<'_>,
        shared: Option<(usize, usize)>,
        out: &mut PropertyData,
    ) -> Result<(), Error> {
        self.try_property(column, shared, out).map_err(|e| e.of_column(column))
    }

    fn try_property(
        &mut self,
        column: Column<'_>,
        shared: Option<(usize, usize)>,
        out: &mut PropertyData,
    ) -> Result<(), Error> {
        let (layer, outline) = (column.layer(), column.outline());
        self.named(layer, outline, &mut out.name)?;
        self.presence(layer, outline.presence, layer.features(), None, layer.features(), &mut out.validity)?;
        let of =
            Spec { data_type: outline.data_type, strings: outline.strings, streams: layer.streams(&outline.streams) };
        match (outline.kind, shared) {
            (ColumnKind::Child { .. }, Some((at, entries))) => {
                self.codes(layer, &of, &out.validity, layer.features(), entries, &mut out.store)?;
                out.store.coded = Coded::Shared(at);
            }
            (ColumnKind::Child { dictionary }, None) => {
                // What is wrong with it is no fault of the child.
                self.dictionary(layer.column_of(dictionary).ok_or_else(missing)?, &mut out.store.strings)?;
                let entries = out.store.strings.len();
                self.codes(layer, &of, &out.validity, layer.features(), entries, &mut out.store)?;
                out.store.coded = Coded::Own;
            }
            _ => self.values(layer, &of, &out.validity, layer.features(), &mut out.store)?,
        }
        Ok(())
    }

    fn m_value(&mut self, column: Column<'_>, geometry: &Geometry, out: &mut MValueData) -> Result<(), Error> {
        self.try_m_value(column, geometry, out).map_err(|e| e.of_column(column))
    }

    fn try_m_value(&mut self, column: Column<'_>, geometry: &Geometry, out: &mut MValueData) -> Result<(), Error> {
        let (layer, outline, features) = (column.layer(), column.outline(), column.layer().features());
        self.named(layer, outline, &mut out.name)?;
        self.presence(layer, outline.presence, features, None, features, &mut out.validity)?;
        out.len = features;
        let offsets = out.offsets.make(features + 1, &mut self.budget)?;
        let (mut total, validity) = (0, out.validity.get());
        offsets[0] = 0;
        for (i, offset) in offsets[1..].iter_mut().enumerate() {
            if validity.is_none_or(|validity| super::data::bit(validity, i)) {
                total += geometry.vertex_range(i).unwrap_or_default().len();
            }
            // As many as the vertices at most, whose number has 32 bits.
            *offset = u32::try_from(total).unwrap_or(u32::MAX);
        }
        let of =
            Spec { data_type: outline.data_type, strings: outline.strings, streams: layer.streams(&outline.streams) };
        self.values(layer, &of, &Validity::default(), total, &mut out.store)
    }

    /// The column's name, with its prefix. Few bytes of a tile can give that to many columns, and mean as many.
    pub(crate) fn named(&mut self, layer: Layer<'_>, outline: &ColumnOutline, name: &mut String) -> Result<(), Error> {
        let prefix = layer.text(&outline.prefix);
        self.budget.bytes(prefix.len() + size_of::<PropertyData>(), 1)?;
        name.clear();
        name.push_str(prefix);
        name.push_str(layer.text(&outline.name));
        Ok(())
    }

    /// The words of an integer stream, as many as `out` has room for.
    pub(crate) fn words<W: Word>(
        &mut self,
        layer: Layer<'_>,
        stream: &Stream,
        signed: bool,
        out: &mut [W],
    ) -> Result<(), Error> {
        let coding = Coding::of(stream, signed, layer.version() == 2);
        integers::decode(&coding, layer.payload(stream), out, &self.options, &mut self.scratch)
            .map_err(|e| e.in_stream(stream.role.name()))
    }

    /// All words of an integer stream, into memory that is kept, as scratch.
    pub(crate) fn all_words<'m>(
        &mut self,
        layer: Layer<'_>,
        stream: &Stream,
        memory: &'m mut Kept<u32>,
    ) -> Result<&'m [u32], Error> {
        self.enough(layer, stream)?;
        let words = memory.scratch(stream.count as usize, &self.budget)?;
        self.words(layer, stream, false, words)?;
        Ok(words)
    }

    /// That the payload can hold so many values, before there is memory for them.
    pub(crate) fn enough(&mut self, layer: Layer<'_>, stream: &Stream) -> Result<(), Error> {
        self.enough_for(layer, stream, stream.count.into())
    }

    /// The same for values of so many words together.
    pub(crate) fn enough_for(&mut self, layer: Layer<'_>, stream: &Stream, words: u64) -> Result<(), Error> {
        // rANS symbols that are the only ones of their contexts cost nothing.
        if stream.logical != Logical::Rans {
            Coding::of(stream, false, false)
                .check(words, layer.payload(stream))
                .map_err(|e| e.in_stream(stream.role.name()))?;
        }
        self.budget.values(stream.count as usize)
    }

    /// A stream of truth values.
    pub(crate) fn bits(&mut self, layer: Layer<'_>, stream: &Stream, out: &mut [u8]) -> Result<(), Error> {
        boolean::decode_payload(stream.logical, layer.payload(stream), stream.count as usize, out)
            .map_err(|e| e.in_stream(stream.role.name()))
    }

    /// Which of `slots` have a value: of the `handed` ones that `above` says, all where it is None, those that `presence`
    /// says.
    pub(crate) fn presence(
        &mut self,
        layer: Layer<'_>,
        presence: Presence,
        handed: usize,
        above: Option<&[u8]>,
        slots: usize,
        out: &mut Validity,
    ) -> Result<(), Error> {
        out.nulls = slots - handed;
        let stream = match presence {
            Presence::Own(stream) | Presence::Shared(stream) => layer.stream(stream),
            Presence::All => {
                if let Some(above) = above {
                    out.bits.make(above.len(), &mut self.budget)?.copy_from_slice(above);
                }
                return Ok(());
            }
        };
        counted(stream, handed)?;
        let bits = out.bits.make(slots.div_ceil(8), &mut self.budget)?;
        match above {
            None => self.bits(layer, stream, bits)?,
            Some(above) => {
                let mut memory = std::mem::take(&mut self.memory.bits);
                let own = memory.scratch(handed.div_ceil(8), &self.budget)?;
                self.bits(layer, stream, own)?;
                self.options.kernels.spread_bits(own, above, slots, bits);
                self.memory.bits = memory;
            }
        }
        out.nulls = slots - ones(bits);
        Ok(())
    }

    /// Values of any type, into slots of which some are null.
    pub(crate) fn values(
        &mut self,
        layer: Layer<'_>,
        of: &Spec<'_>,
        validity: &Validity,
        slots: usize,
        out: &mut Store,
    ) -> Result<(), Error> {
        let present = slots - validity.nulls;
        (out.data_type, out.len, out.coded) = (of.data_type, slots, Coded::No);
        let data_type = of.data_type;
        let signed = matches!(data_type, DataType::Int8 | DataType::Int32 | DataType::Int64);
        if data_type == DataType::String {
            return self.strings(layer, of, validity, slots, out);
        }
        let stream = of.streams.first().ok_or_else(missing)?;
        counted(stream, present)?;
        if data_type != DataType::Bool {
            self.enough(layer, stream)?;
        }
        let mut memory = std::mem::take(&mut self.memory);
        let (integers, codes) = (&mut memory.integers, &mut memory.more_words);
        let result = match data_type {
            DataType::Bool => self.truth(layer, stream, validity, slots, &mut memory, &mut out.bytes),
            DataType::Int8 | DataType::UInt8 => {
                self.bytes(layer, stream, signed, validity, slots, &mut memory, &mut out.bytes)
            }
            DataType::Float => self.place(
                validity,
                slots,
                &mut memory.words,
                &mut out.words,
                Kernels::spread_u32,
                |core, out: &mut [u32]| {
                    core.floats::<f32>(layer, of.streams, integers, codes, bytemuck::cast_slice_mut(out))
                },
            ),
            DataType::Double => self.place(
                validity,
                slots,
                &mut memory.long_words,
                &mut out.long_words,
                Kernels::spread_u64,
                |core, out: &mut [u64]| {
                    core.floats::<f64>(layer, of.streams, integers, codes, bytemuck::cast_slice_mut(out))
                },
            ),
            DataType::Int64 | DataType::UInt64 | DataType::LongId => self.place(
                validity,
                slots,
                &mut memory.long_words,
                &mut out.long_words,
                Kernels::spread_u64,
                |core, out| core.words(layer, stream, signed, out),
            ),
            _ => self.place(validity, slots, &mut memory.words, &mut out.words, Kernels::spread_u32, |core, out| {
                core.words(layer, stream, signed, out)
            }),
        };
        self.memory = memory;
        result
    }

    /// Puts values into their slots: straight there if all have one.
    fn place<T: bytemuck::Pod>(
        &mut self,
        validity: &Validity,
        slots: usize,
        dense: &mut Kept<T>,
        out: &mut Kept<T>,
        spread: impl Fn(Kernels, &[T], &[u8], &mut [T]) -> usize,
        fill: impl FnOnce(&mut Core, &mut [T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(bits) = validity.get() else {
            let out = out.make(slots, &mut self.budget)?;
            return fill(self, out);
        };
        let dense = dense.scratch(slots - validity.nulls, &self.budget)?;
        fill(self, dense)?;
        spread(self.options.kernels, dense, bits, out.make(slots, &mut self.budget)?);
        Ok(())
    }

    fn truth(
        &mut self,
        layer: Layer<'_>,
        stream: &Stream,
        validity: &Validity,
        slots: usize,
        memory: &mut Memory,
        out: &mut Kept<u8>,
    ) -> Result<(), Error> {
        let out = out.make(slots.div_ceil(8), &mut self.budget)?;
        let Some(bits) = validity.get() else {
            return self.bits(layer, stream, out);
        };
        let dense = memory.bits.scratch((stream.count as usize).div_ceil(8), &self.budget)?;
        self.bits(layer, stream, dense)?;
        self.options.kernels.spread_bits(dense, bits, slots, out);
        Ok(())
    }

    /// Values of 8 bits, which are stored as words of 32.
    #[expect(clippy::too_many_arguments, reason = "what a column consists of")]
    fn bytes(
        &mut self,
        layer: Layer<'_>,
        stream: &Stream,
        signed: bool,
        validity: &Validity,
        slots: usize,
        memory: &mut Memory,
        out: &mut Kept<u8>,
    ) -> Result<(), Error> {
        let words = &mut memory.more_words;
        self.place(validity, slots, &mut memory.words, words, Kernels::spread_u32, |core, out: &mut [u32]| {
            core.words(layer, stream, signed, out)?;
            let wide = |word: u32| if signed { word.wrapping_add(128) > 255 } else { word > 255 };
            if !out.iter().fold(false, |any, &word| any | wide(word)) {
                return Ok(());
            }
            let i = out.iter().position(|&word| wide(word)).unwrap_or_default();
            let found = if signed { out[i].cast_signed().into() } else { out[i].into() };
            let error = fault(MltFault::Range { found }, VALUES).at(stream.header.1).index(i as u64);
            Err(error.in_stream(stream.role.name()))
        })?;
        let out = out.make(slots, &mut self.budget)?;
        out.iter_mut().zip(words.get()).for_each(|(out, word)| *out = word.to_le_bytes()[0]);
        Ok(())
    }

    fn floats<T: super::encoding::Float>(
        &mut self,
        layer: Layer<'_>,
        streams: &[Stream],
        integers: &mut Kept<u64>,
        codes: &mut Kept<u32>,
        out: &mut [T],
    ) -> Result<(), Error> {
        let stream = &streams[0];
        let (payload, strict) = (layer.payload(stream), layer.version() == 2);
        let (options, scratch) = (&self.options, &mut self.scratch);
        match stream.logical {
            Logical::Alp { scale, base } => {
                let integers = integers.scratch(out.len(), &self.budget)?;
                integers::alp_offsets(stream.physical, payload, strict, integers, options, scratch)
                    .and_then(|()| alp::decode(options.kernels, scale, base, integers, out))
            }
            Logical::FloatDictionary => {
                let codes = codes.scratch(out.len(), &self.budget)?;
                let (entries, table) = (streams[1].count as usize, layer.payload(&streams[1]));
                integers::words(stream.physical, payload, strict, codes, options, scratch).and_then(|()| {
                    float_dictionary::decode(codes, payload.offset(), table, entries, out, options, scratch)
                })
            }
            _ => float_dictionary::plain(payload, out),
        }
        .map_err(|e| e.in_stream(stream.role.name()))
    }

    fn strings(
        &mut self,
        layer: Layer<'_>,
        of: &Spec<'_>,
        validity: &Validity,
        slots: usize,
        out: &mut Store,
    ) -> Result<(), Error> {
        match of.strings {
            StringLayout::Plain | StringLayout::Fsst => {
                out.words.clear();
                self.entries(layer, of.streams, Some((validity, slots)), &mut out.strings)
            }
            StringLayout::Dictionary | StringLayout::FsstDictionary => {
                self.entries(layer, of.streams, None, &mut out.strings)?;
                let entries = out.strings.len();
                self.codes(layer, of, validity, slots, entries, out)?;
                out.coded = Coded::Own;
                Ok(())
            }
        }
    }

    /// Codes into so many entries.
    fn codes(
        &mut self,
        layer: Layer<'_>,
        of: &Spec<'_>,
        validity: &Validity,
        slots: usize,
        entries: usize,
        out: &mut Store,
    ) -> Result<(), Error> {
        (out.data_type, out.len) = (DataType::String, slots);
        let stream = of.streams.iter().find(|stream| stream.role == Role::Codes).ok_or_else(missing)?;
        counted(stream, slots - validity.nulls)?;
        self.enough(layer, stream)?;
        let mut dense = std::mem::take(&mut self.memory.words);
        let fill = |core: &mut Core, out: &mut [u32]| {
            core.words(layer, stream, false, out)?;
            strings::check_codes(out, stream.header.1, entries).map_err(|e| e.in_stream(stream.role.name()))
        };
        let result = self.place(validity, slots, &mut dense, &mut out.words, Kernels::spread_u32, fill);
        self.memory.words = dense;
        result
    }

    /// Strings that lengths cut: the entries of a dictionary, or values with their validity and slots.
    pub(crate) fn entries(
        &mut self,
        layer: Layer<'_>,
        streams: &[Stream],
        slots: Option<(&Validity, usize)>,
        out: &mut StringStore,
    ) -> Result<(), Error> {
        let of = |roles: &[Role]| streams.iter().find(|stream| roles.contains(&stream.role)).ok_or_else(missing);
        let lengths = of(&[Role::Lengths, Role::DictLengths])?;
        let blob = of(&[Role::Values, Role::DictValues, Role::Corpus])?;
        if let Some((validity, slots)) = slots {
            counted(lengths, slots - validity.nulls)?;
        }
        let mut memory = std::mem::take(&mut self.memory);
        let result = self.try_entries(layer, lengths, blob, of, slots, &mut memory, out);
        self.memory = memory;
        result?;
        self.budget.bytes(out.offsets.len(), 4)?;
        self.budget.bytes(out.text.len(), 1)
    }

    #[expect(clippy::too_many_arguments, reason = "what strings consist of")]
    fn try_entries<'s>(
        &mut self,
        layer: Layer<'_>,
        lengths: &Stream,
        blob: &Stream,
        of: impl Fn(&[Role]) -> Result<&'s Stream, Error>,
        slots: Option<(&Validity, usize)>,
        memory: &mut Memory,
        out: &mut StringStore,
    ) -> Result<(), Error> {
        self.all_words(layer, lengths, &mut memory.words)?;
        let mut cuts = memory.words.get();
        if let Some((validity, slots)) = slots
            && let Some(bits) = validity.get()
        {
            let spread = memory.more_words.scratch(slots, &self.budget)?;
            self.options.kernels.spread_u32(cuts, bits, spread);
            cuts = spread;
        }
        // The limit on bytes is that on all results of a call.
        self.budget.check_bytes(cuts.len() + 1, 4)?;
        let left = self.options.limits(self.options.limits.with_output_bytes(self.budget.bytes_left()));
        let (input, front_coded) = (layer.payload(blob), blob.logical == Logical::FrontCoded);
        let table;
        let blob_of = if blob.role == Role::Corpus {
            let (lengths, symbols) = (of(&[Role::SymbolLengths])?, of(&[Role::SymbolTable])?);
            self.all_words(layer, lengths, &mut memory.symbols)?;
            table = fsst::Table::read(memory.symbols.get(), layer.payload(symbols))
                .map_err(|e| e.in_stream(symbols.role.name()))?;
            strings::Blob::Fsst(&table, input)
        } else {
            strings::Blob::Plain(input)
        };
        strings::decode(cuts, blob_of, front_coded, &mut out.offsets, &mut out.text, &left, &mut self.scratch)
            .map_err(|e| e.in_stream(blob.role.name()))
    }
}
