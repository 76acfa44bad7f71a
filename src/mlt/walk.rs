//! The walk over the headers of a tile, which makes its outline.
//!
//! Decoders, `info` and traces share it: what a trace shows comes to its [`Observer`] as it is read.
//!
//! Source: the MapLibre Tile specification, version 1, "Tile"; the layers are in `v1` and `v2`.

use std::cmp::Ordering;
use std::fmt::Display;

use super::encoding::fault;
use super::fault::MltFault;
use super::options::Options;
use super::outline::{DataType, Frame, LayerOutline, LayerPlace, Outline, Span};
use super::stream::Stream;
use super::{v1, v2};
use crate::error::{EncodingFault, Error, ErrorKind, Limit, Part};
use crate::input::Input;
use crate::limits::Limits;

/// Sees what a walk reads, in the order of reading. `()` looks away and costs nothing.
pub(super) trait Observer<'a> {
    /// What follows is of this layer and column.
    fn place(&mut self, _place: LayerPlace) {}
    /// The layer is of this version.
    fn version(&mut self, _version: u8) {}
    /// What follows, of no column, is the geometry, or is not.
    fn geometry(&mut self, _geometry: bool) {}
    /// The values of the column, or node, are of this type.
    fn values(&mut self, _data_type: DataType) {}
    /// A part begins, whose fields follow.
    fn enter(&mut self, _label: impl Display, _start: u64) {}
    /// The part that began last ends.
    fn leave(&mut self, _end: u64, _detail: impl Display) {}
    /// A field.
    fn field(&mut self, _label: &str, _span: Span, _detail: impl Display) {}
    /// A stream whose header was seen as a part that began, and which ends here.
    fn stream(&mut self, _stream: &Stream, _payload: Input<'a>) -> Result<(), Error> {
        Ok(())
    }
}

impl Observer<'_> for () {}

/// Bytes that may be read ahead in vain in any tile.
const AHEAD: u64 = 64 << 20;

/// Walks a tile, and makes its outline in the memory of an older one.
pub(super) fn tile<'a, O: Observer<'a>>(
    bytes: &'a [u8],
    outline: &mut Outline,
    options: &Options,
    observer: &mut O,
) -> Result<(), Error> {
    frames(bytes, outline, options, observer, Err)
}

/// The same, but of a layer that is at fault `tell` decides: whether the walk ends, or goes on behind the layer's frame, whose
/// outline is then that of a layer without anything.
pub(super) fn frames<'a, O: Observer<'a>>(
    bytes: &'a [u8],
    outline: &mut Outline,
    options: &Options,
    observer: &mut O,
    mut tell: impl FnMut(Error) -> Result<(), Error>,
) -> Result<(), Error> {
    let Outline { frames, layers, columns, nodes, streams, names, prefixes } = outline;
    frames.clear();
    layers.clear();
    columns.clear();
    nodes.clear();
    streams.clear();
    names.clear();
    *prefixes = 0;
    let place = LayerPlace { layer: 0, column: None };
    let ahead = AHEAD + 16 * bytes.len() as u64;
    let mut walk = Walk { input: Input::new(bytes), tile: bytes, outline, observer, options, place, ahead };
    while !walk.input.bytes().is_empty() {
        walk.frame(&mut tell)?;
    }
    Ok(())
}

/// A walk on its way.
pub(super) struct Walk<'a, 'w, O> {
    /// What is left of the frame, or of the tile between frames.
    pub input: Input<'a>,
    pub outline: &'w mut Outline,
    pub observer: &'w mut O,
    /// The layer and column that the walk is in.
    pub place: LayerPlace,
    /// Bytes that may still be read ahead in vain, so that time grows with a tile's length, and not with its square.
    pub ahead: u64,
    tile: &'a [u8],
    options: &'w Options,
}

impl<'a, O: Observer<'a>> Walk<'a, '_, O> {
    fn frame(&mut self, tell: impl FnOnce(Error) -> Result<(), Error>) -> Result<(), Error> {
        self.room()?;
        self.place = LayerPlace { layer: index(self.outline.layers.len()), column: None };
        self.observer.place(self.place);
        let start = self.input.offset();
        self.observer.enter(format_args!("frame {}", self.outline.frames.len()), start);
        let size = self.varint("frame size")?;
        if size == 0 {
            return Err(fault(MltFault::FrameSize, Part::Values("", "frame size")).at(start));
        }
        let body = self.input.offset();
        let frame = Input::at(self.input.take(size.into(), Part::Values("", "frame"))?, body);
        let rest = std::mem::replace(&mut self.input, frame);
        let span = start..rest.offset();
        let tag = self.byte("tag")?;
        let layer = match tag {
            1 | 2 => {
                self.observer.version(tag);
                let layer = if tag == 1 { v1::layer(self, span.clone()) } else { v2::layer(self, span.clone()) };
                match layer.map_err(|error| error.in_layer(self.place)) {
                    Ok(layer) => {
                        self.outline.layers.push(layer);
                        Some(self.place.layer)
                    }
                    Err(error) => {
                        tell(error)?;
                        self.outline.names.clear();
                        // Those behind it have their numbers.
                        self.outline.layers.push(LayerOutline::default());
                        None
                    }
                }
            }
            _ => {
                let rest = self.input.offset()..span.end;
                self.observer.field("body", rest, "skipped");
                None
            }
        };
        match layer {
            Some(layer) => self.observer.leave(span.end, format_args!("layer {layer}, version {tag}")),
            None => self.observer.leave(span.end, format_args!("tag {tag} is not known: skipped")),
        }
        self.input = rest;
        self.outline.frames.push(Frame { tag, span, layer });
        Ok(())
    }

    /// The same walk from here on, which another observer sees; its outline goes on in this one's.
    pub fn seen_by<'o, P>(&'o mut self, observer: &'o mut P) -> Walk<'a, 'o, P> {
        let Walk { input, place, tile, options, ahead, .. } = *self;
        Walk { input, outline: self.outline, observer, place, tile, options, ahead }
    }

    /// Reads the parameters of Morton codes.
    pub fn morton(&mut self) -> Result<(u32, u32), Error> {
        let start = self.input.offset();
        let bits = self.varint("Morton bits")?;
        if bits > 16 {
            return Err(bad(MltFault::MortonBits { found: bits }, "Morton bits", start));
        }
        Ok((bits, self.varint("Morton shift")?))
    }

    /// Reads a byte.
    #[inline]
    pub fn byte(&mut self, label: &'static str) -> Result<u8, Error> {
        let start = self.input.offset();
        let byte = self.input.byte(Part::Values("", label))?;
        self.observer.field(label, start..start + 1, format_args!("{byte:#04x}"));
        Ok(byte)
    }

    /// Reads a number of a header: 32 bits, in at most five bytes.
    #[inline]
    pub fn varint(&mut self, label: &'static str) -> Result<u32, Error> {
        let start = self.input.offset();
        let value = self.input.uleb(32, Part::Values("", label))?;
        let end = self.input.offset();
        // It fits, or `uleb` would have said so.
        let value = u32::try_from(value).ok().filter(|_| end - start <= 5).ok_or_else(|| {
            let kind = ErrorKind::Encoding(EncodingFault::VarintOverflow { bits: 32 });
            Error::new(kind, Part::Values("", label)).at(start)
        })?;
        self.observer.field(label, start..end, value);
        Ok(value)
    }

    /// Reads a name: its length, and as many bytes of UTF-8.
    #[inline]
    pub fn name(&mut self, label: &'static str) -> Result<Span, Error> {
        let from = self.input.offset();
        let part = Part::Values("", label);
        let len = self.input.uleb(32, part)?;
        let start = self.input.offset();
        if start - from > 5 {
            let kind = ErrorKind::Encoding(EncodingFault::VarintOverflow { bits: 32 });
            return Err(Error::new(kind, part).at(from));
        }
        let bytes = self.input.take(len, part)?;
        let Ok(name) = std::str::from_utf8(bytes) else { return Err(fault(MltFault::Utf8, part).at(start)) };
        self.observer.field(label, from..self.input.offset(), format_args!("{name:?}"));
        Ok(start..self.input.offset())
    }

    /// The name of a layer, which is not empty.
    pub fn layer_name(&mut self) -> Result<Span, Error> {
        let start = self.input.offset();
        let name = self.name("layer name")?;
        if name.is_empty() {
            return Err(fault(MltFault::Empty, Part::Values("", "layer name")).at(start));
        }
        Ok(name)
    }

    /// A layer ends with its last column.
    pub fn layer_end(&self) -> Result<(), Error> {
        let bytes = self.input.bytes().len() as u64;
        if bytes > 0 {
            let trailing = MltFault::LayerTrailing { bytes };
            return Err(fault(trailing, Part::Values("", "layer end")).at(self.input.offset()));
        }
        Ok(())
    }

    /// What is read next is of the column whose outline comes next, or is of no column.
    pub fn in_column(&mut self, column: Option<u32>) {
        self.place.column = column;
        self.observer.place(self.place);
    }

    /// Passes while the outline is not larger than the limits allow. Its indices fit 32 bits then.
    pub fn room(&self) -> Result<(), Error> {
        const INDEXED: u64 = 24 * u32::MAX as u64;
        let bytes = self.outline.bytes();
        let limit = self.options.limits.max_scratch_bytes.min(INDEXED);
        Limits::check(bytes, limit, Limit::ScratchBytes, Part::Values("", "outline"))
            .map_err(|error| error.at(self.input.offset()))
    }

    /// Adds a stream that ends where the walk is, and shows it to the observer.
    pub fn add_stream(&mut self, stream: Stream) -> Result<u32, Error> {
        self.room()?;
        let span = stream.payload_span();
        let payload = Input::new(self.tile).slice(span.start, span.end - span.start);
        self.observer.stream(&stream, payload.unwrap_or(self.input))?;
        let at = index(self.outline.streams.len());
        self.outline.streams.push(stream);
        Ok(at)
    }

    /// Names from the `from`th on are all different; forgets them. A name is a prefix and the rest of it.
    pub fn unique_names(&mut self, from: usize) -> Result<(), Error> {
        let tile = self.tile;
        let bytes = |span: &Span| {
            let range = usize::try_from(span.start).unwrap_or(0)..usize::try_from(span.end).unwrap_or(0);
            tile.get(range).unwrap_or_default()
        };
        let order = |(prefix, name): &(Span, Span), (other_prefix, other_name): &(Span, Span)| {
            if prefix == other_prefix {
                return bytes(name).cmp(bytes(other_name));
            }
            joined([bytes(prefix), bytes(name)], [bytes(other_prefix), bytes(other_name)])
        };
        let names = &mut self.outline.names[from..];
        names.sort_unstable_by(|a, b| order(a, b).then(a.1.start.cmp(&b.1.start)));
        let same = |pair: &&[(Span, Span)]| order(&pair[0], &pair[1]).is_eq();
        // The first in the tile that repeats one before it.
        match names.windows(2).filter(same).map(|pair| pair[1].1.start).min() {
            Some(start) => Err(fault(MltFault::RepeatedName, Part::Values("", "name")).at(start)),
            None => {
                self.outline.names.truncate(from);
                Ok(())
            }
        }
    }
}

/// The order of two names, each in two parts, as they are when put together.
fn joined([prefix, name]: [&[u8]; 2], [other_prefix, other_name]: [&[u8]; 2]) -> Ordering {
    let Some((start, rest)) = other_prefix.split_at_checked(prefix.len()) else {
        return joined([other_prefix, other_name], [prefix, name]).reverse();
    };
    let (within, behind) = name.split_at(name.len().min(rest.len()));
    prefix.cmp(start).then_with(|| {
        // Unless the name ends inside the other's prefix.
        if within.len() < rest.len() { within.cmp(rest) } else { within.cmp(rest).then_with(|| behind.cmp(other_name)) }
    })
}

/// An index into a vector of the outline; [`Walk::room`] has seen that there are not more.
pub(super) fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// An error of the containers in a field.
#[cold]
pub(super) fn bad(what: MltFault, field: &'static str, offset: u64) -> Error {
    fault(what, Part::Values("", field)).at(offset)
}

#[cfg(test)]
mod tests;
