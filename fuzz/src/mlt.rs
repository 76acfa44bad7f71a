//! Map tiles and their encodings: any bytes in, and drawn tiles through the writer and back.

use tilekern::kernels::Kernels;
use tilekern::mlt::encode::Shape as Wanted;
use tilekern::mlt::encoding::integers::{self, Coding};
use tilekern::mlt::encoding::strings::{self, Blob};
use tilekern::mlt::encoding::{alp, bit_packing, boolean, fastpfor, float_dictionary, fsst, morton, rans, vertices};
use tilekern::mlt::{
    Decoder, Input, LayerData, Logical, MValueData, NestedData, NestedKind, NestedNode, Options, Outline, Packing,
    Path, Paths, Physical, PropertyData, Scratch, Shape, Tile, TileData, Traced, Value, trace,
};
use tilekern::{Error, ErrorKind, Limits};

use super::mlt_build::{Cell, Drawn, Meant, MeantLayer, draw};
use super::seeds::noise;

/// Payloads start here, so that offsets are seen to be absolute.
const START: u64 = 1 << 40;

/// Small enough for a fuzzer's memory, and for its patience with runs of many values.
pub(super) fn limits() -> Limits {
    let mut limits = Limits::default().with_output_bytes(4 << 20);
    limits.max_values = 1 << 17;
    limits.max_scratch_bytes = 8 << 20;
    limits
}

fn options() -> impl Iterator<Item = Options> {
    Kernels::available().map(|kernels| Options::with_kernels(kernels).limits(limits()))
}

/// A fault of the data names a place in it.
fn locates(error: &Error, bytes: std::ops::Range<u64>) {
    let of_request = matches!(error.kind(), ErrorKind::LimitExceeded { .. });
    let within = error.offset().is_some_and(|at| bytes.start <= at && at <= bytes.end);
    assert!(of_request || within, "no place in the data: {error}");
}

/// Any bytes as a tile: no panic, bounded memory; each column by itself as with all others, with memory that is used again;
/// and its trace.
pub fn mlt_tile(data: &[u8]) {
    let options = options().last().expect("a level");
    let tile = match Tile::open(data, &options) {
        Ok(tile) => tile,
        Err(error) => {
            locates(&error, 0..data.len() as u64);
            let (mut faults, mut decoder, mut layer) = (0, Decoder::with_options(options), LayerData::new());
            let sound = Tile::open_sound(data, &options, |_| faults += 1);
            assert!(faults > 0, "no fault in place of {error}");
            for of in sound.frames().filter_map(|frame| frame.layer()) {
                let _ = decoder.layer(of, &mut layer);
            }
            return traced(data, false, &options);
        }
    };
    for column in tile.layers().flat_map(|layer| layer.columns()) {
        for span in [column.meta_span(), column.data_span()] {
            assert!(span.start <= span.end && span.end <= data.len() as u64, "{span:?}");
        }
    }
    let (mut decoder, mut whole) = (Decoder::with_options(options), TileData::new());
    let decoded = decoder.tile(&tile, &mut whole);
    if let Err(error) = &decoded {
        locates(error, 0..data.len() as u64);
    }
    traced(data, decoded.is_ok(), &options);
    let (mut property, mut m_value, mut nested) = (PropertyData::new(), MValueData::new(), NestedData::new());
    let mut one = LayerData::new();
    for layer in tile.layers() {
        let mut faults = 0;
        decoder.faults(layer, |_| faults += 1);
        let all = decoder.layer(layer, &mut one);
        match &all {
            Ok(()) => assert_eq!(faults, 0),
            // Each part by itself may be within the limits.
            Err(error) => assert!(faults > 0 || error.kind().name() == "limit_exceeded", "no fault, but {error}"),
        }
        if let (Ok(()), Ok(())) = (&decoded, &all) {
            assert_eq!(read(&one), read(&whole.layers()[layer.number()]));
        }
        for (i, column) in layer.properties().enumerate() {
            match (decoder.property(column, &mut property), &all) {
                (Ok(()), Ok(())) => {
                    let alone: Vec<Cell> = property.get().iter().map(cell).collect();
                    let among = one.properties().nth(i).expect("a property");
                    assert_eq!((property.get().name, alone), (among.name, among.iter().map(cell).collect()));
                }
                (Ok(()), Err(_)) => {}
                (Err(error), all) => alone_fails(&error, all, data.len()),
            }
        }
        for column in layer.m_values() {
            if let Err(error) = decoder.m_value(column, &mut m_value) {
                alone_fails(&error, &all, data.len());
            }
        }
        for column in layer.nested() {
            if let Err(error) = decoder.nested(column, &mut nested) {
                alone_fails(&error, &all, data.len());
            }
        }
    }
}

/// A trace stays in the tile, and finds a fault where there is one.
fn traced(data: &[u8], sound: bool, options: &Options) {
    let trace = trace(data, Traced::Tile, options);
    for step in &trace.steps {
        let span = &step.span;
        assert!(span.start <= span.end && span.end <= data.len() as u64, "{step:?}");
    }
    match trace.fault {
        None => assert!(sound, "no fault"),
        Some(fault) => {
            locates(&fault, 0..data.len() as u64);
            // The text of a trace has its own bound.
            assert!(!sound || matches!(fault.kind(), ErrorKind::LimitExceeded { .. }), "{fault}");
        }
    }
}

/// Where a column fails, its layer does.
fn alone_fails(error: &Error, layer: &Result<(), Error>, len: usize) {
    locates(error, 0..len as u64);
    assert!(layer.is_err(), "a column alone: {error}");
}

/// What a tile means, or the error's text.
fn outcome(data: &[u8], options: &Options) -> Result<Vec<MeantLayer>, String> {
    let read_all = || -> Result<Vec<MeantLayer>, Error> {
        let tile = Tile::open(data, options)?;
        let mut out = TileData::new();
        Decoder::with_options(*options).tile(&tile, &mut out)?;
        Ok(out.layers().iter().map(read).collect())
    };
    read_all().map_err(|error| {
        locates(&error, 0..data.len() as u64);
        error.to_string()
    })
}

/// All levels give the same values, or the same error. The first bit chooses the packing of FastPFOR, the others of the
/// byte whether the rest is a tile or what a tile is drawn from, some of whose bytes are then changed.
pub fn mlt_differential(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let packing = if choice & 1 == 0 { Packing::Interleaved } else { Packing::Sequential };
    let drawn;
    let tile = match choice >> 1 {
        0..64 => rest,
        flips => {
            let Drawn { mut tile, .. } = draw(rest, None);
            let len = tile.len().max(1);
            for (i, &byte) in rest.iter().take(usize::from(flips % 4)).enumerate() {
                let at = (usize::from(byte) * 131 + i * 977 + rest.len()) % len;
                if let Some(changed) = tile.get_mut(at) {
                    *changed ^= 1 << (byte % 8);
                }
            }
            drawn = tile;
            &drawn
        }
    };
    let mut first = None;
    for options in options() {
        let found = outcome(tile, &options.packing(packing));
        let first = first.get_or_insert_with(|| found.clone());
        assert!(*first == found, "{:?}: {found:?}, plainly {first:?}", options.kernels);
    }
}

/// Any bytes as the payload of an encoding: all levels agree, and none panics.
pub fn mlt_encoding(data: &[u8]) {
    let [selector, low, high, extra, payload @ ..] = data else { return };
    let count = usize::from(u16::from_le_bytes([*low, *high]));
    let mut first: Option<Result<Vec<u8>, String>> = None;
    for options in options() {
        let packing = if extra & 1 == 0 { Packing::Interleaved } else { Packing::Sequential };
        let found = encoding(*selector, *extra, count, payload, &options.packing(packing));
        let found = found.map_err(|error| {
            locates(&error, START..START + payload.len() as u64);
            error.to_string()
        });
        let first = first.get_or_insert_with(|| found.clone());
        assert!(*first == found, "{:?}: {found:?}, plainly {first:?}", options.kernels);
    }
}

/// How many selectors there are.
const SELECTORS: u8 = 16;

/// The values of a payload as bytes.
fn encoding(selector: u8, extra: u8, count: usize, payload: &[u8], options: &Options) -> Result<Vec<u8>, Error> {
    let (input, mut scratch) = (Input::at(payload, START), Scratch::new());
    let (mut words, mut long) = (vec![0u32; count], vec![0u64; count]);
    let physical = [Physical::None, Physical::VarInt, Physical::FastPfor256, Physical::FastPfor128];
    let physical = physical[usize::from(extra >> 1 & 3)];
    let runs = (count / 2) as u32;
    let logical = match extra >> 3 & 7 {
        0 => Logical::None,
        1 => Logical::Delta,
        2 => Logical::Delta2,
        3 => Logical::Rle { runs },
        4 => Logical::RlePairs,
        5 => Logical::DeltaRle { runs },
        6 => Logical::DeltaRlePairs,
        _ => Logical::BitPacked,
    };
    let coding = Coding { physical, logical, words: 2 * runs, signed: extra & 64 != 0, strict: extra & 128 != 0 };
    let bytes = |words: &[u32]| bytemuck::cast_slice(words).to_vec();
    match selector % SELECTORS {
        0 => integers::decode(&coding, input, &mut words, options, &mut scratch).map(|()| bytes(&words)),
        1 => integers::decode(&coding, input, &mut long, options, &mut scratch)
            .map(|()| bytemuck::cast_slice(&long).to_vec()),
        2 => bit_packing::decode(input, &mut words, options).map(|()| bytes(&words)),
        3 => fastpfor::decode_256(input, &mut words, options, &mut scratch).map(|()| bytes(&words)),
        4 => fastpfor::decode_128(input, &mut words, options, &mut scratch).map(|()| bytes(&words)),
        5 => {
            fastpfor::decode_128(input, &mut long, options, &mut scratch).map(|()| bytemuck::cast_slice(&long).to_vec())
        }
        6 => {
            let logical =
                [Logical::Bitmap, Logical::BooleanRuns, Logical::Sparse, Logical::BooleanRle][usize::from(extra % 4)];
            let (mut rest, mut out) = (input, vec![0; count.div_ceil(8)]);
            let decoded = boolean::decode(logical, &mut rest, count, &mut out);
            if logical != Logical::BooleanRle {
                let mut passed = input;
                let skipped = boolean::skip(logical, &mut passed, count);
                match (&decoded, skipped) {
                    (Ok(()), Ok(ones)) => {
                        assert_eq!(ones, out.iter().map(|byte| byte.count_ones() as usize).sum::<usize>());
                        assert_eq!(passed.offset(), rest.offset());
                    }
                    (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
                    (decoded, skipped) => panic!("{decoded:?}, passed over {skipped:?}"),
                }
            }
            decoded.map(|()| out)
        }
        7 => {
            let mut out = vec![0f64; count];
            integers::alp_offsets(physical, input, coding.strict, &mut long, options, &mut scratch)?;
            let base = i64::from(extra) << 53;
            alp::decode(options.kernels, extra % 190, base, &long, &mut out)?;
            let mut floats = vec![0f32; count];
            alp::decode(options.kernels, extra % 190, base, &long, &mut floats)?;
            Ok([bytemuck::cast_slice::<_, u8>(&out), bytemuck::cast_slice(&floats)].concat())
        }
        8 => {
            let (dictionary, codes) = payload.split_at(payload.len().min(8 * usize::from(extra)) / 8 * 8);
            let codes: Vec<u32> = codes.iter().copied().map(u32::from).collect();
            let (mut out, entries) = (vec![0f64; codes.len()], dictionary.len() / 8);
            let input = Input::at(dictionary, START);
            float_dictionary::decode(&codes, START, input, entries, &mut out, options, &mut scratch)?;
            Ok(bytemuck::cast_slice(&out).to_vec())
        }
        9 | 10 => {
            // Lengths, then bytes.
            let n = payload.len().min(count);
            let (lengths, blob) = payload.split_at(n);
            let lengths: Vec<u32> = lengths.iter().copied().map(u32::from).collect();
            let blob = Blob::Plain(Input::at(blob, START + n as u64));
            texts(&lengths, blob, selector % SELECTORS == 10, options, &mut scratch)
        }
        11 => {
            // Symbols, their lengths, lengths of values, codes.
            let (symbols, rest) = payload.split_at(payload.len().min(usize::from(extra)));
            let (lengths, rest) = rest.split_at(rest.len().min(usize::from(extra) / 4));
            let (of_values, corpus) = rest.split_at(rest.len().min(count % 256));
            let lengths: Vec<u32> = lengths.iter().map(|&byte| u32::from(byte % 10)).collect();
            let table = fsst::Table::read(&lengths, Input::at(symbols, START))?;
            let corpus = Input::at(corpus, START + (payload.len() - corpus.len()) as u64);
            let of_values: Vec<u32> = of_values.iter().copied().map(u32::from).collect();
            texts(&of_values, Blob::Fsst(&table, corpus), count & 256 != 0, options, &mut scratch)
        }
        12 => {
            let mut out = vec![0i32; 2 * count];
            let step = u32::from(extra % 16).max(1);
            let mut bounds: Vec<u32> = (0..=count as u32).step_by(step as usize).collect();
            bounds.push(count as u32);
            let runs = (extra >= 16).then_some(&bounds[..]);
            rans::decode(input, runs, &mut out, options, &mut scratch)?;
            Ok(bytemuck::cast_slice(&out).to_vec())
        }
        13 => {
            let logical = match extra >> 3 & 7 {
                0 | 1 => Logical::None,
                2 | 3 => Logical::Delta,
                4 | 5 => Logical::ComponentwiseDelta,
                6 => Logical::ComponentwiseDelta2,
                _ => Logical::Morton { bits: u32::from(extra >> 6) * 5, shift: u32::from(extra) },
            };
            let stride = if extra & 64 != 0 && extra >> 3 & 7 < 6 { 3 } else { 2 };
            let mut out = vec![0i32; usize::from(stride) * count];
            let coding = Coding { logical, signed: true, ..coding };
            vertices::decode(&coding, input, stride, None, &mut out, options, &mut scratch)?;
            Ok(bytemuck::cast_slice(&out).to_vec())
        }
        14 => {
            let (table, offsets) = payload.split_at(payload.len().min(8 * usize::from(extra)) / 8 * 8);
            let table: Vec<i32> =
                table.chunks_exact(4).map(|four| i32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect();
            let offsets: Vec<u32> = offsets.iter().copied().map(u32::from).collect();
            let mut out = vec![0i32; 2 * offsets.len()];
            vertices::gather(&table, 2, &offsets, START, &mut out, options)?;
            Ok(bytemuck::cast_slice(&out).to_vec())
        }
        _ => {
            integers::decode(&Coding { logical: Logical::None, ..coding }, input, &mut words, options, &mut scratch)?;
            let mut out = vec![0i32; 2 * count];
            morton::decode(options.kernels, &words, u32::from(extra % 17), u32::from(extra), &mut out)?;
            Ok(bytemuck::cast_slice(&out).to_vec())
        }
    }
}

fn texts(
    lengths: &[u32],
    blob: Blob<'_>,
    front_coded: bool,
    options: &Options,
    scratch: &mut Scratch,
) -> Result<Vec<u8>, Error> {
    let (mut offsets, mut text) = (Vec::new(), String::new());
    strings::decode(lengths, blob, front_coded, &mut offsets, &mut text, options, scratch)?;
    assert!(offsets.is_sorted() && offsets.iter().all(|&offset| text.is_char_boundary(offset as usize)));
    Ok([text.as_bytes(), bytemuck::cast_slice(&offsets)].concat())
}

/// Drawn tiles: what is read is what was meant, whatever the encodings.
pub fn mlt_round_trip(data: &[u8]) {
    let Drawn { tile, layers } = draw(data, None);
    let mut outline = Outline::default();
    let mut out = TileData::new();
    for kernels in Kernels::available() {
        let options = Options::with_kernels(kernels);
        let opened = Tile::open_with(&tile, std::mem::take(&mut outline), &options).expect("a tile that was written");
        Decoder::with_options(options).tile(&opened, &mut out).expect("a tile that was written");
        assert_eq!(out.layers().len(), layers.len());
        for (read, meant) in out.layers().iter().map(read).zip(&layers) {
            assert_eq!(read, *meant, "{kernels:?}");
        }
        outline = opened.into_outline();
    }
}

/// A value as it was read.
pub fn cell(value: Value<'_>) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Bool(value),
        Value::Int(value) => Cell::Int(value),
        Value::UInt(value) => Cell::UInt(value),
        Value::Float(value) => Cell::Float(value.to_bits()),
        Value::Double(value) => Cell::Double(value.to_bits()),
        Value::String(value) => Cell::Text(value.to_owned()),
        other => panic!("{other:?}"),
    }
}

/// A layer as it was read.
pub fn read(layer: &LayerData) -> MeantLayer {
    let geometry = layer.geometry();
    let shapes = geometry.shapes().map(|shape| wanted(&shape)).collect();
    let triangles = geometry.triangles().map(|(offsets, corners)| {
        assert!(offsets.is_sorted() && offsets.last().is_none_or(|&last| 3 * last as usize == corners.len()));
        corners.as_chunks::<3>().0.to_vec()
    });
    MeantLayer {
        version: layer.version(),
        name: layer.name().to_owned(),
        extent: layer.extent(),
        ids: layer.ids().map(|ids| ids.iter().map(cell).collect()),
        shapes: (!geometry.tessellated_only()).then_some(shapes),
        z: geometry.z().map(|(step, values)| (step, values.to_vec())),
        triangles,
        columns: layer
            .properties()
            .map(|property| Meant { name: property.name.to_owned(), cells: property.iter().map(cell).collect() })
            .collect(),
        m_values: layer
            .m_values()
            .map(|column| {
                let of_feature = |i| column.get(i).map_or(Cell::Null, |values| Cell::List(values.map(cell).collect()));
                Meant { name: column.name.to_owned(), cells: (0..column.len).map(of_feature).collect() }
            })
            .collect(),
        nested: layer
            .nested()
            .map(|column| Meant {
                name: column.name.to_owned(),
                cells: (0..column.root.len()).map(|i| nested(column.root, i)).collect(),
            })
            .collect(),
    }
}

/// The value of a node in a slot.
fn nested(node: NestedNode<'_>, i: usize) -> Cell {
    if !node.is_valid(i) {
        return Cell::Null;
    }
    let slots = |offsets: &[u32]| offsets[i] as usize..offsets[i + 1] as usize;
    match node.kind() {
        NestedKind::Values(values) => cell(values.get(i)),
        NestedKind::Struct(fields) => {
            Cell::Entries(fields.map(|field| (field.name().to_owned(), nested(field, i))).collect())
        }
        NestedKind::List { offsets, element } => Cell::List(slots(offsets).map(|slot| nested(element, slot)).collect()),
        NestedKind::Map { offsets, keys, value } => {
            let entry = |slot| (keys.get(slot).to_owned(), nested(value, slot));
            Cell::Entries(slots(offsets).map(entry).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn wanted(shape: &Shape<'_>) -> Wanted {
    let line = |path: Path<'_>| path.iter().collect();
    let lines = |paths: &Paths<'_>| paths.clone().map(line).collect();
    match shape {
        Shape::Point(vertex) => Wanted::Point(*vertex),
        Shape::LineString(path) => Wanted::LineString(line(*path)),
        Shape::Polygon(paths) => Wanted::Polygon(lines(paths)),
        Shape::MultiPoint(path) => Wanted::MultiPoint(line(*path)),
        Shape::MultiLineString(paths) => Wanted::MultiLineString(lines(paths)),
        Shape::MultiPolygon(polygons) => Wanted::MultiPolygon(polygons.clone().map(|paths| lines(&paths)).collect()),
    }
}

/// Tiles of the writer that have something of everything.
pub fn tiles() -> Vec<Vec<u8>> {
    let drawn = (0..120).map(|seed| draw(&noise(seed, 60 + 12 * usize::try_from(seed).unwrap_or(0)), None));
    drawn.map(|drawn| drawn.tile).filter(|tile| (1..16 << 10).contains(&tile.len())).collect()
}

pub(super) fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "mlt_tile" => tiles(),
        "mlt_differential" => {
            let tiles = tiles().into_iter().map(|tile| [vec![0], tile].concat());
            tiles.chain((0..80).map(|seed| [vec![128 | noise(seed, 1)[0]], noise(seed, 500)].concat())).collect()
        }
        "mlt_round_trip" => (0..200).map(|i| noise(i, 4 * usize::try_from(i).unwrap_or(0))).collect(),
        _ => {
            let mut seeds = Vec::new();
            for selector in 0..SELECTORS {
                for extra in [0u8, 2, 4, 6, 10, 16, 32, 38, 56, 64, 138, 193] {
                    let mut payload = noise(u64::from(selector) << 8 | u64::from(extra), 40);
                    payload.extend(sound(selector, extra));
                    seeds.push([vec![selector, 9, 0, extra], payload].concat());
                    seeds.push([vec![selector, 44, 1, extra], sound(selector, extra)].concat());
                }
            }
            seeds
        }
    }
}

/// The payload of 300 numbers in an encoding that a selector and its byte name; of other kinds, a few bytes.
fn sound(selector: u8, extra: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let words: Vec<u32> = (0..300u32).map(|i| i * i % 97 + if i % 50 == 0 { 1 << 20 } else { 0 }).collect();
    let long: Vec<u64> = words.iter().map(|&word| u64::from(word) << 13).collect();
    match selector {
        2 => bit_packing::encode(&words, &mut out),
        3 => fastpfor::encode_256(&words, &mut out),
        4 => fastpfor::encode_128(&words, Packing::Interleaved, &mut out),
        1 | 5 => fastpfor::encode_128(&long, Packing::Interleaved, &mut out),
        6 => {
            let logical =
                [Logical::Bitmap, Logical::BooleanRuns, Logical::Sparse, Logical::BooleanRle][usize::from(extra % 4)];
            boolean::encode(logical, bytemuck::cast_slice(&words), 300, &mut out);
        }
        12 => {
            let vertices: Vec<i32> = words.iter().flat_map(|&word| [word.cast_signed(), 7]).collect();
            rans::encode(&vertices, None, &mut out);
        }
        _ => _ = integers::encode(Physical::VarInt, Logical::Delta, false, &words, &mut out),
    }
    out
}
