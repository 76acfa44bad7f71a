//! Map tiles cut at every byte, with the bits of their headers flipped, and with streams of other types: an error, or a tile
//! whose parts fit together; and never much memory.

#[allow(dead_code, unused_imports)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;
#[path = "support/counting.rs"]
mod counting;
mod support;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use counting::counted;
use libtest_mimic::{Failed, Trial};
use tilekern::mlt::{
    Decoder, Geometry, Kind, Layer, LayerData, MValueData, NestedData, Options, PropertyData, Tile, TileData,
};
use tilekern::{Error, Limits};

/// Folders of the corpus. What is invalid already is damaged further, too.
const FOLDERS: [&str; 9] = [
    "v1-synthetic",
    "v1-encodings",
    "v1-real",
    "v2-encodings",
    "v2-fastpfor-page",
    "v2-real",
    "fastpfor-pages",
    "hand",
    "invalid",
];

/// Tiles up to so many bytes are cut at each, and have every bit of their headers flipped; of larger ones the headers' bytes
/// and a sample of the others, and a sample of the bits.
const SMALL: usize = 1 << 10;

/// Cuts and flips of a larger tile, of each sort.
const SAMPLE: usize = 400;

fn main() {
    let generated = bodies::mlt::tiles().into_iter().enumerate();
    let generated = generated.map(|(i, tile)| Trial::test(format!("drawn {i}"), move || damage(&tile))).collect();
    support::run_with(generated, "fixtures/mlt", |corpus| {
        let mut trials = Vec::new();
        for folder in FOLDERS {
            let mut paths: Vec<_> = std::fs::read_dir(corpus.join(folder))
                .unwrap_or_else(|e| panic!("{folder}: {e}"))
                .map(|entry| entry.expect("a folder that can be listed").path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "mlt"))
                .collect();
            paths.sort();
            // Few trials: a thread each for hundreds of small tiles costs more than they do.
            for (i, paths) in paths.chunks(40).map(<[_]>::to_vec).enumerate() {
                trials.push(Trial::test(format!("{folder} {i}"), move || paths.iter().try_for_each(|path| file(path))));
            }
        }
        trials
    })
}

fn file(path: &Path) -> Result<(), Failed> {
    damage(&std::fs::read(path)?).map_err(|e| format!("{}: {}", path.display(), e.message().unwrap_or_default()).into())
}

/// What decodes a damaged tile, and how much memory that took at once.
struct Bench {
    options: Options,
    decoder: Decoder,
    data: TileData,
    layer: LayerData,
    property: PropertyData,
    m_value: MValueData,
    nested: NestedData,
    geometry: Geometry,
}

impl Bench {
    fn new() -> Result<Bench, Error> {
        let mut limits = Limits::default().with_output_bytes(OUTPUT);
        (limits.max_values, limits.max_scratch_bytes) = (OUTPUT, OUTPUT);
        let options = Options::new()?.limits(limits);
        let (data, layer) = (TileData::new(), LayerData::new());
        let (property, m_value, nested) = (PropertyData::new(), MValueData::new(), NestedData::new());
        let geometry = Geometry::new();
        Ok(Bench { options, decoder: Decoder::with_options(options), data, layer, property, m_value, nested, geometry })
    }

    /// Opens and decodes a tile, of the layers those that `only` names. Returns the frames of one that is accepted.
    fn accepts(&mut self, tile: &[u8], only: Option<&Range<u64>>) -> Result<Option<Vec<Range<u64>>>, Failed> {
        let mut result = Ok(None);
        let (_, largest) = counted(|| result = self.uncounted(tile, only));
        // Vectors grow by more than what is needed.
        let most = 2 * (OUTPUT as usize + 64 * tile.len()) + (1 << 20);
        if largest > most {
            return Err(format!("{largest} bytes at once").into());
        }
        result
    }

    fn uncounted(&mut self, tile: &[u8], only: Option<&Range<u64>>) -> Result<Option<Vec<Range<u64>>>, Failed> {
        let opened = match Tile::open(tile, &self.options) {
            Ok(opened) => opened,
            Err(error) => return placed(&error, tile).and_then(|()| self.sound_layers(tile, &error)).map(|()| None),
        };
        let frames: Vec<Range<u64>> = opened.frames().map(|frame| frame.span()).collect();
        let mut end = 0;
        for frame in &frames {
            if frame.start != end || frame.end <= end {
                return Err(format!("frames {frames:?}").into());
            }
            end = frame.end;
        }
        if end != tile.len() as u64 {
            return Err(format!("frames to {end}").into());
        }
        match only {
            None => {
                if let Err(error) = self.decoder.tile(&opened, &mut self.data) {
                    self.data.layers().iter().try_for_each(fits)?;
                    let faulty = opened.layer(self.data.layers().len());
                    self.failed(faulty.ok_or("no layer is at fault")?, &error)?;
                    return placed(&error, tile).map(|()| None);
                }
                self.data.layers().iter().try_for_each(fits)?;
            }
            Some(only) => {
                for layer in
                    opened.layers().filter(|layer| layer.span().start <= only.start && only.start < layer.span().end)
                {
                    if let Err(error) = self.decoder.layer(layer, &mut self.layer) {
                        let left = &self.layer;
                        if left.features() > 0 || left.properties().len() + left.geometry().shapes().len() > 0 {
                            return Err("something is left of a layer at fault".into());
                        }
                        self.failed(layer, &error)?;
                        return placed(&error, tile).map(|()| None);
                    }
                    fits(&self.layer)?;
                }
            }
        }
        Ok(Some(frames))
    }

    /// What of a tile is sound is there without the others, and the first fault is that of the whole.
    fn sound_layers(&mut self, tile: &[u8], first: &Error) -> Result<(), Failed> {
        let mut faults = Vec::new();
        let opened = Tile::open_sound(tile, &self.options, |error| faults.push(error));
        if faults.first().map(Error::to_string) != Some(first.to_string()) {
            return Err(format!("{faults:?}, the first of which is not {first}").into());
        }
        for layer in opened.frames().filter_map(|frame| frame.layer()) {
            let alone = &tile[layer.span().start as usize..layer.span().end as usize];
            if Tile::open(alone, &self.options).is_err() || layer.version() == 0 {
                return Err(format!("layer {} is not sound by itself", layer.number()).into());
            }
        }
        Ok(())
    }

    /// Decodes the parts of a layer at fault one by one: what fails leaves nothing to be read, not even of the part before.
    /// Their faults are told, too.
    fn failed(&mut self, layer: Layer<'_>, error: &Error) -> Result<(), Failed> {
        let Bench { decoder, property, m_value, nested, geometry, .. } = self;
        let mut faults = 0;
        decoder.faults(layer, |_| faults += 1);
        if faults == 0 && error.kind().name() != "limit_exceeded" {
            return Err(format!("no part has a fault, but {error}").into());
        }
        let mut left = Vec::new();
        if decoder.ids(layer, property).is_err() {
            left.push(property.get().iter().len() + property.get().name.len());
        }
        if decoder.geometry(layer, geometry).is_err() {
            left.push(geometry.shapes().len() + geometry.vertices().len() + geometry.types().len());
        }
        for column in layer.columns() {
            match column.kind() {
                Kind::Property | Kind::Child if decoder.property(column, property).is_err() => {
                    left.push(property.get().iter().len() + property.get().name.len() + property.get().nulls);
                }
                Kind::MValue if decoder.m_value(column, m_value).is_err() => {
                    left.push(m_value.get().len + m_value.get().name.len() + m_value.get().offsets.len() - 1);
                }
                Kind::Nested if decoder.nested(column, nested).is_err() => {
                    left.push(nested.get().root.len() + nested.get().name.len() + nested.get().root.nulls());
                }
                _ => {}
            }
        }
        if left.iter().sum::<usize>() == 0 { Ok(()) } else { Err(format!("left of parts at fault: {left:?}").into()) }
    }
}

/// Layers of up to so many features and vertices are read to the last value.
const READ: usize = 1 << 10;

/// Bytes of results, and of scratch, that a damaged tile may take.
const OUTPUT: u64 = 16 << 20;

/// An error says where, unless it is about a limit.
fn placed(error: &Error, tile: &[u8]) -> Result<(), Failed> {
    let within = error.offset().is_some_and(|at| at <= tile.len() as u64);
    if within || error.kind().name() == "limit_exceeded" { Ok(()) } else { Err(format!("nowhere: {error}").into()) }
}

/// Whether the parts of a layer fit together: all that a reader relies on.
fn fits(layer: &LayerData) -> Result<(), Failed> {
    let n = layer.features();
    let geometry = layer.geometry();
    let mut sound = geometry.len() == n && !layer.name().is_empty();
    let vertices = geometry.vertices().len();
    for offsets in [geometry.geometry_offsets(), geometry.part_offsets(), geometry.ring_offsets()].into_iter().flatten()
    {
        sound &= offsets.is_sorted() && offsets.first() == Some(&0);
    }
    if let Some((offsets, corners)) = geometry.triangles() {
        sound &= offsets.is_sorted() && offsets.last().is_none_or(|&last| 3 * last as usize == corners.len());
        sound &= corners.iter().all(|&corner| (corner as usize) < vertices);
    }
    sound &= geometry.z().is_none_or(|(_, z)| z.len() == vertices);
    sound &= geometry.shapes().len() == n;
    for property in layer.properties().chain(layer.ids()) {
        sound &= property.len == n && property.iter().len() == n;
        sound &= property.validity.is_none_or(|validity| validity.len() == n.div_ceil(8));
        sound &= (0..n).filter(|&i| !property.is_valid(i)).count() == property.nulls;
    }
    for column in layer.m_values() {
        sound &= column.len == n && column.offsets.is_sorted();
    }
    for column in layer.nested() {
        sound &= column.root.len() == n;
    }
    if sound && n + vertices <= READ {
        bodies::mlt::read(layer);
    }
    if sound { Ok(()) } else { Err(format!("parts of layer {} do not fit together", layer.number()).into()) }
}

/// The bytes of headers: all that belongs to no payload.
fn headers(tile: &[u8], options: &Options) -> Vec<usize> {
    let Ok(opened) = Tile::open(tile, options) else { return (0..tile.len()).collect() };
    let mut is_header = vec![true; tile.len()];
    for layer in opened.layers() {
        let of_columns = layer.columns().flat_map(|column| column.streams().iter());
        for stream in of_columns.chain(layer.geometry_streams()).chain(layer.shared_presence()) {
            let span = stream.payload_span();
            is_header[span.start as usize..span.end as usize].fill(false);
        }
    }
    (0..tile.len()).filter(|&i| is_header[i]).collect()
}

/// As many of them as there is time for, spread evenly.
fn sampled(all: &[usize], most: usize) -> impl Iterator<Item = usize> + '_ {
    // Odd, so that all bits of a byte have their turn.
    all.iter().copied().step_by(all.len().div_ceil(most).max(1) | 1)
}

fn damage(sound: &[u8]) -> Result<(), Failed> {
    let mut bench = Bench::new()?;
    let headers = headers(sound, &bench.options);
    let whole = bench.accepts(sound, None)?;
    // Every cut and bit of large tiles takes minutes: only where that is asked for.
    let small = sound.len() <= SMALL || std::env::var_os("TILEKERN_DAMAGE").is_some_and(|which| which == "all");

    // Cuts: only whole frames are left.
    let all: Vec<usize> = (0..sound.len()).collect();
    let mut cuts: BTreeSet<usize> = sampled(&all, if small { usize::MAX } else { 5 * SAMPLE }).collect();
    cuts.extend(sampled(&headers, if small { usize::MAX } else { 5 * SAMPLE }));
    for cut in cuts {
        let found = bench.accepts(&sound[..cut], None).map_err(|e| said(&e, "cut to", cut))?;
        if let (Some(found), Some(whole)) = (&found, &whole)
            && !whole.starts_with(found)
        {
            return Err(format!("cut to {cut} bytes: other frames {found:?}").into());
        }
    }
    // Cuts with the size of the last frame made right, so that what is in it is looked at.
    let Some(frames) = whole else { return Ok(()) };
    if let Some(last) = frames.last() {
        let start = last.start as usize;
        let body = start + sound[start..].iter().position(|byte| byte & 0x80 == 0).expect("a size") + 1;
        let all: Vec<usize> = (body + 1..sound.len()).collect();
        for cut in sampled(&all, if small { usize::MAX } else { SAMPLE }) {
            let mut tile = sound[..start].to_vec();
            let mut size = cut - body;
            while size >= 0x80 {
                tile.push((size & 0x7f | 0x80) as u8);
                size >>= 7;
            }
            tile.push(size as u8);
            tile.extend_from_slice(&sound[body..cut]);
            let frame = start as u64..tile.len() as u64;
            let found = bench.accepts(&tile, Some(&frame)).map_err(|e| said(&e, "cut in its frame to", cut))?;
            // Version 1 and 2 must use up a layer's bytes, and shorter ones cannot hold its columns.
            let known = Tile::open(sound, &bench.options)?.frames().last().is_some_and(|frame| frame.layer().is_some());
            if found.is_some() && known {
                return Err(format!("cut in its frame to {cut} bytes: accepted").into());
            }
        }
    }
    // Flips.
    let bits: Vec<usize> = headers.iter().flat_map(|&byte| 8 * byte..8 * byte + 8).collect();
    let mut tile = sound.to_vec();
    for bit in sampled(&bits, if small { usize::MAX } else { 4 * SAMPLE }) {
        tile[bit / 8] ^= 1 << (bit % 8);
        let only = frames.iter().find(|frame| frame.contains(&(bit as u64 / 8)));
        bench.accepts(&tile, only).map_err(|e| said(&e, "flipped bit", bit))?;
        tile[bit / 8] ^= 1 << (bit % 8);
    }
    // Streams of version 1 that are of another type: one that is needed is not there, another is, or is there twice.
    let opened = Tile::open(sound, &bench.options)?;
    let first = opened.layers().filter(|layer| layer.version() == 1);
    let streams =
        first.flat_map(|layer| layer.columns().flat_map(|column| column.streams()).chain(layer.geometry_streams()));
    let types: Vec<usize> = streams.map(|stream| stream.header_span().start as usize).collect();
    for at in sampled(&types, if small { usize::MAX } else { SAMPLE / 10 }) {
        for other in TYPES {
            tile[at] = other;
            let only = frames.iter().find(|frame| frame.contains(&(at as u64)));
            bench.accepts(&tile, only).map_err(|e| said(&e, "stream of another type at", at))?;
        }
        tile[at] = sound[at];
    }
    Ok(())
}

/// The types of streams of version 1.
const TYPES: [u8; 19] =
    [0x00, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36];

fn said(failed: &Failed, what: &str, at: usize) -> Failed {
    format!("{what} {at}: {}", failed.message().unwrap_or_default()).into()
}
