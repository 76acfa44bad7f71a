//! What verbs do with map tiles: a file for each verb. The library reads the format.

pub mod archive;
pub mod decode;
pub mod geojson;
pub mod info;
pub mod json;
pub mod trace;
pub mod verify;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use tilekern::Error;
use tilekern::mlt::{
    Column, Decoder, Geometry, Kind, Layer, LayerData, MValues, Nested, Options, Packing, Physical, Property, Stream,
    Tile,
};

use crate::fault::Fault;

/// Names that a message lists.
const LISTED: usize = 20;

/// What ids and geometry are called, which have no names.
pub const IDS: &str = "id";
pub const GEOMETRY: &str = "geometry";

/// Opens a tile whose bytes are there.
pub fn open<'a>(bytes: &'a [u8], options: &Options, path: &Path) -> Result<Tile<'a>, Fault> {
    Tile::open(bytes, options).map_err(|error| unopened(error, bytes, path))
}

/// The fault of a tile that cannot be opened, with what it may be instead.
pub fn unopened(error: Error, bytes: &[u8], path: &Path) -> Fault {
    let fault = Fault::of(error, path);
    match other(bytes) {
        Some(what) => Fault { message: format!("{}; it begins like {what}", fault.message), ..fault },
        None => fault,
    }
}

/// What is often named as a map tile and is none, by its first bytes.
fn other(bytes: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 6] = [
        (b"\x89PNG\r\n", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"RIFF", "a WebP image"),
        (b"\x1f\x8b\x08", "gzip that was packed twice"),
        (b"<!doctype", "a page of HTML"),
        (b"<html", "a page of HTML"),
    ];
    let starts = |magic: &[u8]| bytes.get(..magic.len()).is_some_and(|start| start.eq_ignore_ascii_case(magic));
    known.into_iter().find(|(magic, _)| starts(magic)).map(|(_, what)| what)
}

/// A fault of a tile that is open. Faults where there is FastPFOR of version 2 may be those of the way in which it is read.
pub fn told(error: Error, tile: &Tile<'_>, options: &Options, path: &Path) -> Fault {
    let layer = error.layer().and_then(|place| tile.layer(usize::try_from(place.layer).ok()?));
    let column = error.layer().and_then(|place| usize::try_from(place.column?).ok());
    let fault = Fault::of(error, path);
    let of = |layer: Layer<'_>| match column {
        Some(column) => layer.column(column).is_some_and(|column| packed(column.streams())),
        None => packed(layer.geometry_streams()),
    };
    if options.packing != Packing::Interleaved || !layer.is_some_and(of) {
        return fault;
    }
    let message = format!("{}; or try --mlt-fastpfor sequential, as mlt-core packed it up to 0.22.1", fault.message);
    Fault { message, ..fault }
}

fn packed(streams: &[Stream]) -> bool {
    streams.iter().any(|stream| stream.physical == Physical::FastPfor128)
}

/// The layers that a word names: all of a name, else one by its number from 0.
pub fn layers<'t>(tile: &'t Tile<'_>, word: &str, path: &Path) -> Result<Vec<Layer<'t>>, Fault> {
    let named: Vec<Layer<'t>> = tile.layers().filter(|layer| layer.name() == word).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    if let Some(layer) = word.parse().ok().and_then(|number| tile.layer(number)) {
        return Ok(vec![layer]);
    }
    let message = format!("has no layer {word:?}{}", choose(tile.layers().map(|layer| layer.name().to_owned())));
    Err(Fault { part: Some("layers".to_owned()), ..Fault::new("missing", path, message) })
}

/// A part of a layer that has a name of its own, or takes one.
#[derive(Clone, Copy, Debug)]
pub enum Item<'t> {
    Ids,
    Geometry,
    Column(Column<'t>),
}

/// For each word, of which none is given twice, what of a layer has this name: ids or geometry, if it is theirs, and columns.
pub fn items<'t>(layer: Layer<'t>, words: &[&str]) -> Vec<Vec<Item<'t>>> {
    let places: HashMap<&str, usize> = words.iter().enumerate().map(|(at, word)| (*word, at)).collect();
    let mut found = vec![Vec::new(); words.len()];
    for column in layer.columns().filter(|column| !matches!(column.kind(), Kind::Id | Kind::Geometry)) {
        if let Some(&at) = places.get(&*column.name()) {
            found[at].push(Item::Column(column));
        }
    }
    if let Some(&at) = places.get(GEOMETRY) {
        found[at].insert(0, Item::Geometry);
    }
    if let (Some(&at), Some(_)) = (places.get(IDS), layer.ids()) {
        found[at].insert(0, Item::Ids);
    }
    found
}

/// The names by which the columns of a layer are called.
pub fn names(layer: Layer<'_>) -> impl Iterator<Item = String> {
    let ids = layer.ids().map(|_| IDS.to_owned());
    let columns = layer.columns().filter(|column| !matches!(column.kind(), Kind::Id | Kind::Geometry));
    ids.into_iter().chain([GEOMETRY.to_owned()]).chain(columns.map(|column| column.name().into_owned()))
}

/// What there is to choose from, the first of it.
pub fn choose(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    if names.is_empty() {
        return ": there is none".to_owned();
    }
    if names.len() > LISTED {
        let more = format!("… {} more", names.len() - LISTED);
        names.truncate(LISTED);
        names.push(more);
    }
    format!(": name one of {}", names.join(", "))
}

/// A warning for each name that several columns of a tile's layer have, as version 1 allows, at the second of them.
pub fn repeated(tile: &Tile<'_>, path: &Path) -> Vec<Fault> {
    let mut warnings = Vec::new();
    for layer in tile.layers().filter(|layer| layer.version() == 1) {
        let mut found: HashMap<Cow<'_, str>, (usize, Option<Column<'_>>)> = HashMap::new();
        for column in layer.columns().filter(|column| matches!(column.kind(), Kind::Property | Kind::Child)) {
            let (n, second) = found.entry(column.name()).or_default();
            *n += 1;
            if *n == 2 {
                *second = Some(column);
            }
        }
        let from = warnings.len();
        warnings.extend(found.into_iter().filter_map(|(name, (n, second))| {
            let second = second?;
            let message = format!("{n} columns are called {name:?}: GeoJSON has the last one that has a value");
            let part = format!("layer {}, column {}", layer.number(), second.index());
            let (offset, part) = (Some(second.meta_span().start), Some(part));
            Some(Fault { offset, part, ..Fault::new("repeated_name", path, message) })
        }));
        warnings[from..].sort_by_key(|warning| warning.offset);
    }
    warnings
}

/// Decoded parts of a layer; ids and geometry are none where they were not asked for.
pub struct Parts<'a> {
    pub layer: Layer<'a>,
    /// None in it: the layer has no ids.
    pub ids: Option<Option<Property<'a>>>,
    pub geometry: Option<&'a Geometry>,
    pub columns: Vec<Property<'a>>,
    pub m_values: Vec<MValues<'a>>,
    pub nested: Vec<Nested<'a>>,
}

/// Decodes layers one after the other, into the same memory.
pub struct Reader {
    decoder: Decoder,
    data: LayerData,
}

impl Reader {
    pub fn new(options: Options) -> Reader {
        Reader { decoder: Decoder::with_options(options), data: LayerData::new() }
    }

    /// A layer with all that it has.
    pub fn layer<'a>(&'a mut self, layer: Layer<'a>) -> Result<Parts<'a>, Error> {
        self.decoder.layer(layer, &mut self.data)?;
        Ok(self.parts(layer, true, true))
    }

    /// Some parts of a layer, in its order, without a look at the others.
    pub fn some<'a>(&'a mut self, layer: Layer<'a>, items: &[Item<'_>]) -> Result<Parts<'a>, Error> {
        let (mut ids, mut geometry, mut columns) = (false, false, HashSet::new());
        for item in items {
            match item {
                Item::Ids => {
                    ids = true;
                    columns.extend(layer.ids().map(|column| column.index()));
                }
                Item::Geometry => geometry = true,
                Item::Column(column) => columns.extend([column.index()]),
            }
        }
        self.decoder.some(layer, geometry, |column| columns.contains(&column.index()), &mut self.data)?;
        Ok(self.parts(layer, ids, geometry))
    }

    fn parts<'a>(&'a self, layer: Layer<'a>, ids: bool, geometry: bool) -> Parts<'a> {
        Parts {
            layer,
            ids: ids.then(|| self.data.ids()),
            geometry: geometry.then(|| self.data.geometry()),
            columns: self.data.properties().collect(),
            m_values: self.data.m_values().collect(),
            nested: self.data.nested().collect(),
        }
    }
}
