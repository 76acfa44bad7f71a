//! The values of a map tile: as JSON, as GeoJSON, as an Arrow file of one layer, or as a summary.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_ipc::writer::FileWriter;
use indicatif::HumanCount;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use tilekern::mlt::{Layer, LayerData, Options, Property, Tile, Value};
use tilekern::{Error, ErrorKind, Limit, Part};

use super::json::{Allowance, Exact, LayerJson, OfVertices, Slot, type_name};
use super::{GEOMETRY, IDS, Item, Parts, Reader, choose, geojson, items, layers, names, open};
use crate::Verdict;
use crate::archive::Place;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::output::{Format, arrow_failed};
use crate::table::{Align, Table};
use crate::target::Target;
use crate::text::{counted, cut, quoted};

/// First values that a summary shows, and the longest text of each, in characters.
const FIRST: usize = 5;
const TEXT: usize = 40;

/// What is asked for.
pub struct Request<'a> {
    pub path: &'a Path,
    /// None: all.
    pub layers: &'a [String],
    /// None: all.
    pub columns: &'a [String],
    /// Which tile it is, where coordinates are to be degrees.
    pub place: Option<Place>,
    /// Digests in place of long lists.
    pub digest: bool,
    /// None: to standard output.
    pub output: Option<&'a Path>,
    pub format: Format,
    pub options: Options,
}

/// What of a tile is to be decoded, in its order.
enum Entry<'t> {
    /// A frame of a tag that is not known.
    Unknown,
    /// A layer, and what of it; none: all.
    Layer(Layer<'t>, Option<Vec<Item<'t>>>),
}

struct Chosen<'a, 't> {
    request: &'a Request<'a>,
    tile: &'t Tile<'t>,
    entries: Vec<Entry<'t>>,
    /// Of text, and of what is digested in its place.
    text: Allowance,
    digested: Allowance,
    /// What ended the work early.
    fault: RefCell<Option<Fault>>,
}

impl<'t> Chosen<'_, 't> {
    fn layers(&self) -> impl Iterator<Item = (Layer<'t>, Option<&[Item<'t>]>)> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Unknown => None,
            Entry::Layer(layer, items) => Some((*layer, items.as_deref())),
        })
    }

    /// Hands over a layer that was decoded. A fault is kept, and is the end.
    fn read<T>(
        &self,
        reader: &mut Reader,
        layer: Layer<'t>,
        items: Option<&[Item<'t>]>,
        visit: impl FnOnce(&Parts<'_>) -> T,
    ) -> Option<T> {
        let parts = match items {
            None => reader.layer(layer),
            Some(items) => reader.some(layer, items),
        };
        match parts {
            Ok(parts) => Some(visit(&parts)),
            Err(error) => {
                *self.fault.borrow_mut() = Some(self.told(error));
                None
            }
        }
    }

    /// That all layers can be decoded: before the first byte of a form that cannot say that one could not.
    fn check(&self) -> Result<(), Fault> {
        let mut reader = Reader::new(self.request.options);
        for (layer, items) in self.layers() {
            if self.read(&mut reader, layer, items, |_| ()).is_none() {
                break;
            }
        }
        self.fault.take().map_or(Ok(()), Err)
    }

    /// What came of writing text: of more than is allowed, the fault that says so.
    fn written<T>(&self, written: Result<T, Stop>) -> Result<T, Stop> {
        self.text.exceeded().map_or(written, |error| Err(self.told(error).into()))
    }

    fn told(&self, error: Error) -> Fault {
        super::told(error, self.tile, &self.request.options, self.request.path)
    }

    fn verdict(&self) -> Verdict {
        if self.fault.borrow().is_some() { Verdict::Unsound } else { Verdict::Sound }
    }
}

pub fn run(bytes: &[u8], request: &Request<'_>, console: &mut Console) -> Result<Verdict, Stop> {
    let tile = open(bytes, &request.options, request.path)?;
    let entries = entries(&tile, request)?;
    let limit = request.options.limits.max_output_bytes;
    let (text, digested) = (Allowance::new(limit), Allowance::new(limit));
    let chosen = Chosen { request, tile: &tile, entries, text, digested, fault: RefCell::new(None) };
    if request.format == Format::Geojson {
        chosen.check()?;
    }
    if let Some(output) = request.output {
        return to_file(&chosen, output, console);
    }
    match request.format {
        Format::Json => to_stdout(&chosen, &Document(&chosen), console)?,
        Format::Geojson => to_stdout(&chosen, &Collection(&chosen), console)?,
        Format::Summary => summary(&chosen, console)?,
        other => return Err(no_text(other)),
    }
    if console.json {
        return Ok(chosen.verdict());
    }
    end(chosen, console)
}

/// Text that ends early, because it would be too long, has no end that could pass for one.
fn to_stdout(chosen: &Chosen<'_, '_>, form: &impl Serialize, console: &mut Console) -> Result<(), Stop> {
    let written = chosen.written(console.record_through(form, |out| chosen.text.to(out)));
    if written.is_err() && chosen.text.exceeded().is_some() {
        console.line("").and_then(|()| console.flush())?;
    }
    written
}

/// What was decoded came first.
fn end(chosen: Chosen<'_, '_>, console: &mut Console) -> Result<Verdict, Stop> {
    match chosen.fault.into_inner() {
        Some(fault) => console.flush().and(Err(fault.into())),
        None => Ok(Verdict::Sound),
    }
}

fn no_text(format: Format) -> Stop {
    match format {
        Format::Arrow => Stop::Usage("arrow is no text: name a file with -o".to_owned()),
        other => Stop::Usage(format!(
            "map tiles are not decoded to {}: name a file that ends in .json, .geojson or .arrow",
            other.name()
        )),
    }
}

fn entries<'t>(tile: &'t Tile<'_>, request: &Request<'_>) -> Result<Vec<Entry<'t>>, Fault> {
    let path = request.path;
    let named: Result<Vec<Vec<Layer<'t>>>, Fault> =
        request.layers.iter().map(|word| layers(tile, word, path)).collect();
    let named: HashSet<usize> = named?.into_iter().flatten().map(|layer| layer.number()).collect();
    let wanted = |layer: &Layer<'_>| request.layers.is_empty() || named.contains(&layer.number());
    // A word that is given twice is meant once.
    let mut seen = HashSet::new();
    let words: Vec<&str> = request.columns.iter().map(String::as_str).filter(|word| seen.insert(*word)).collect();
    let mut found = vec![false; words.len()];
    let mut entries = Vec::new();
    for frame in tile.frames() {
        match frame.layer() {
            Some(layer) if wanted(&layer) => {
                if request.columns.is_empty() {
                    entries.push(Entry::Layer(layer, None));
                    continue;
                }
                let mut some = Vec::new();
                for (items, found) in items(layer, &words).into_iter().zip(&mut found) {
                    *found |= !items.is_empty();
                    some.extend(items);
                }
                if some.is_empty() {
                    continue;
                }
                if request.format == Format::Geojson {
                    some.retain(|item| matches!(item, Item::Column(_)));
                    some.extend([Item::Ids, Item::Geometry]);
                }
                entries.push(Entry::Layer(layer, Some(some)));
            }
            Some(_) => {}
            None if request.layers.is_empty() && request.columns.is_empty() => entries.push(Entry::Unknown),
            None => {}
        }
    }
    if let Some((word, _)) = words.iter().zip(found).find(|(_, found)| !found) {
        let mut all: Vec<String> = tile.layers().filter(|layer| wanted(layer)).flat_map(names).collect();
        all.sort();
        all.dedup();
        let message = format!("has no column {word:?}{}", choose(all.into_iter()));
        return Err(Fault { part: Some("columns".to_owned()), ..Fault::new("missing", path, message) });
    }
    Ok(entries)
}

/// The tile as JSON. Layers are decoded as they are written.
struct Document<'a, 't>(&'a Chosen<'a, 't>);

impl Serialize for Document<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("layers", &DocumentLayers(self.0))?;
        if let Some(fault) = &*self.0.fault.borrow() {
            map.serialize_entry("error", fault)?;
        }
        map.end()
    }
}

struct DocumentLayers<'a, 't>(&'a Chosen<'a, 't>);

#[derive(Serialize)]
struct UnknownTag {
    unknown_tag: bool,
}

impl Serialize for DocumentLayers<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let chosen = self.0;
        let digest = chosen.request.digest.then_some(&chosen.digested);
        let mut reader = Reader::new(chosen.request.options);
        let mut list = to.serialize_seq(None)?;
        for entry in &chosen.entries {
            match entry {
                Entry::Unknown => list.serialize_element(&UnknownTag { unknown_tag: true })?,
                Entry::Layer(layer, items) => {
                    let write = |parts: &Parts<'_>| list.serialize_element(&LayerJson { parts, digest });
                    match chosen.read(&mut reader, *layer, items.as_deref(), write) {
                        Some(written) => written?,
                        None => break,
                    }
                    if let Some(error) = chosen.digested.exceeded() {
                        *chosen.fault.borrow_mut() = Some(chosen.told(error));
                        break;
                    }
                }
            }
        }
        list.end()
    }
}

/// All features of all layers as GeoJSON.
struct Collection<'a, 't>(&'a Chosen<'a, 't>);

impl Serialize for Collection<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("type", "FeatureCollection")?;
        map.serialize_entry("features", &CollectionFeatures(self.0))?;
        map.end()
    }
}

struct CollectionFeatures<'a, 't>(&'a Chosen<'a, 't>);

impl Serialize for CollectionFeatures<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut reader = Reader::new(self.0.request.options);
        let mut list = to.serialize_seq(None)?;
        for (layer, items) in self.0.layers() {
            let write = |parts: &Parts<'_>| geojson::features(parts, self.0.request.place, &mut list);
            match self.0.read(&mut reader, layer, items, write) {
                Some(written) => written?,
                None => break,
            }
        }
        list.end()
    }
}

/// A table of each layer's columns with their first values.
fn summary(chosen: &Chosen<'_, '_>, console: &mut Console) -> Result<(), Stop> {
    let mut reader = Reader::new(chosen.request.options);
    for (n, (layer, items)) in chosen.layers().enumerate() {
        let lines = chosen.read(&mut reader, layer, items, |parts| columns(parts).fitting(console.width(), &[2]));
        let Some(lines) = lines else { break };
        if n > 0 {
            console.line("")?;
        }
        let what = [
            format!("version {}", layer.version()),
            format!("extent {}", HumanCount(layer.extent().into())),
            counted(layer.features() as u64, "feature"),
        ];
        console.line(format_args!("layer {}: {}", quoted(layer.name()), what.join(", ")))?;
        console.rows(lines)?;
    }
    Ok(())
}

fn columns(parts: &Parts<'_>) -> Table {
    let (left, right) = (Align::Left, Align::Right);
    let mut table =
        Table::new([("column", left), ("type", left), ("values", right), ("nulls", right), ("first values", left)]);
    let count = |n: usize| HumanCount(n as u64).to_string();
    let features = parts.layer.features();
    let first = |texts: &mut dyn Iterator<Item = String>| {
        let first: Vec<String> = texts.take(FIRST + 1).collect();
        match first.len() {
            n if n > FIRST => first[..FIRST].join(", ") + ", …",
            _ => first.join(", "),
        }
    };
    let valid = |column: &Property<'_>| {
        let there: Vec<String> =
            column.iter().filter(|value| *value != Value::Null).take(FIRST + 1).map(shown).collect();
        first(&mut there.into_iter())
    };
    if let Some(Some(ids)) = &parts.ids {
        let kind = type_name(&ids.values).to_owned();
        table.row([IDS.to_owned(), kind, count(ids.len - ids.nulls), count(ids.nulls), valid(ids)]);
    }
    if let Some(geometry) = parts.geometry {
        let types = super::info::types(geometry).into_iter().map(|(name, n)| format!("{} {name}", HumanCount(n)));
        let types = types.collect::<Vec<_>>().join(", ");
        table.row([GEOMETRY.to_owned(), String::new(), count(features), count(0), types]);
    }
    for column in &parts.columns {
        let kind = type_name(&column.values).to_owned();
        let [there, nulls] = [count(column.len - column.nulls), count(column.nulls)];
        table.row([quoted(column.name), kind, there, nulls, valid(column)]);
    }
    for column in &parts.m_values {
        let there = (0..column.len).filter(|&i| column.get(i).is_some());
        let mut texts = there.map(|feature| short(&OfVertices { column, feature, value: Exact }));
        let [there, nulls] = [count(column.len - column.nulls), count(column.nulls)];
        table.row([quoted(column.name), type_name(&column.values).to_owned(), there, nulls, first(&mut texts)]);
    }
    for column in &parts.nested {
        let root = column.root;
        let slots = (0..root.len()).filter(|&slot| root.is_valid(slot));
        let mut texts = slots.map(|slot| short(&Slot { node: root, slot, value: Exact }));
        let [there, nulls] = [count(root.len() - root.nulls()), count(root.nulls())];
        table.row([quoted(column.name), "nested".to_owned(), there, nulls, first(&mut texts)]);
    }
    table
}

/// The start of a value that is no single one, as JSON. No more is made of it: it may be very long.
fn short(value: &impl Serialize) -> String {
    let (mut start, room) = (Vec::new(), Allowance::new(64 * TEXT as u64));
    // What a longer one ends with shows that it is cut.
    let _ = serde_json::to_writer(room.to(&mut start), value);
    cut(&String::from_utf8_lossy(&start), TEXT).into_owned()
}

/// A value in a table.
fn shown(value: Value<'_>) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => short_number(value.to_string(), value),
        Value::Double(value) => short_number(value.to_string(), value),
        Value::String(value) => quoted(&cut(value, TEXT)),
        _ => String::new(),
    }
}

/// A number in a table, which an exponent keeps short.
fn short_number(plain: String, value: impl std::fmt::LowerExp) -> String {
    if plain.len() > 20 { format!("{value:e}") } else { plain }
}

/// What `--json` prints about a file that was written.
#[derive(Serialize)]
struct Written<'a> {
    output: &'a str,
    format: Format,
    n_layers: usize,
    n_features: u64,
    bytes: u64,
}

fn to_file(chosen: &Chosen<'_, '_>, output: &Path, console: &mut Console) -> Result<Verdict, Stop> {
    let format = chosen.request.format;
    let (target, file) = Target::file(output)?;
    let mut out = BufWriter::with_capacity(1 << 20, &file);
    let written = |error: serde_json::Error| Stop::write(error.into(), output);
    match format {
        Format::Json => {
            let done = serde_json::to_writer(chosen.text.to(&mut out), &Document(chosen));
            chosen.written(done.map_err(written))?;
        }
        Format::Geojson => {
            let done = serde_json::to_writer(chosen.text.to(&mut out), &Collection(chosen));
            chosen.written(done.map_err(written))?;
        }
        Format::Arrow => arrow(chosen, &mut out, output)?,
        Format::Summary => return Err(Stop::Usage("a summary goes to standard output: leave out -o".to_owned())),
        other => return Err(no_text(other)),
    }
    if let Some(fault) = chosen.fault.take() {
        return Err(fault.into());
    }
    if format != Format::Arrow {
        out.write_all(b"\n").map_err(|error| Stop::write(error, output))?;
    }
    out.flush().map_err(|error| Stop::write(error, output))?;
    drop(out);
    let bytes = target.commit_file(&file)?;
    let name = &*output.to_string_lossy();
    let n_layers = chosen.layers().count();
    let n_features = chosen.layers().map(|(layer, _)| layer.features() as u64).sum();
    if console.json {
        console.record(&Written { output: name, format, n_layers, n_features, bytes })?;
    } else {
        let what = format!("{} of {}", counted(n_features, "feature"), counted(n_layers as u64, "layer"));
        console.note(format_args!("{name}: {what}, {}", counted(bytes, "byte")));
    }
    Ok(Verdict::Sound)
}

/// An Arrow IPC file of the one layer that is chosen.
fn arrow(chosen: &Chosen<'_, '_>, out: impl Write, path: &Path) -> Result<(), Stop> {
    let mut layers = chosen.layers();
    let (Some((layer, None)), None) = (layers.next(), layers.next()) else {
        let message = "an Arrow file holds the columns of one layer: choose it with --layer, without --column";
        return Err(Stop::Usage(message.to_owned()));
    };
    let mut data = LayerData::new();
    let read = tilekern::mlt::Decoder::with_options(chosen.request.options).layer(layer, &mut data);
    let batch = read.and_then(|()| data.to_record_batch()).map_err(|error| chosen.told(error))?;
    // Columns that share a dictionary do not in the file, nor where the library puts it together.
    let needed = batch.get_array_memory_size() as u64;
    let limit = chosen.request.options.limits.max_output_bytes;
    if needed > limit {
        let kind = ErrorKind::LimitExceeded { needed, limit, what: Limit::OutputBytes };
        return Err(chosen.told(Error::new(kind, Part::Object)).into());
    }
    let mut writer = FileWriter::try_new(out, &batch.schema()).map_err(|error| arrow_failed(error, path))?;
    writer.write(&batch).and_then(|()| writer.finish()).map_err(|error| arrow_failed(error, path))
}
