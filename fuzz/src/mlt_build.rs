//! Map tiles drawn from a few bytes, with what their decoders must give. The bytes choose types, encodings and patterns of
//! values; the values themselves come from small generators, so that few bytes can mean blocks of packed ones.

use arbitrary::{Result, Unstructured};
use tilekern::mlt::StringLayout;
use tilekern::mlt::encode::{
    Child, Floats, Geometry, GeometryCoding, Integers, LayerWriter, Member, Nested, Position, Presence, Shape, Strings,
    Triangle, Truths, Values, Version, Vertices, Words,
};
use tilekern::{Error, ErrorKind};

/// A value as it is meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// Of a signed type.
    Int(i64),
    /// Of an unsigned type.
    UInt(u64),
    /// Bits of a float.
    Float(u32),
    /// Bits of a double.
    Double(u64),
    /// A string.
    Text(String),
    /// Elements.
    List(Vec<Cell>),
    /// Entries, or fields.
    Entries(Vec<(String, Cell)>),
}

/// A column as it is meant: a cell for each feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Meant {
    /// Its full name.
    pub name: String,
    /// Of each feature.
    pub cells: Vec<Cell>,
}

/// A layer as it is meant.
#[derive(Clone, Debug, PartialEq)]
pub struct MeantLayer {
    /// 1 or 2.
    pub version: u8,
    /// Its name.
    pub name: String,
    /// Units along an edge.
    pub extent: u32,
    /// Ids, if there are any.
    pub ids: Option<Vec<Cell>>,
    /// What each feature is; none where there are triangles alone.
    pub shapes: Option<Vec<Shape>>,
    /// Step and values of an elevation for each vertex.
    pub z: Option<(u8, Vec<i32>)>,
    /// Corners of all triangles of the layer.
    pub triangles: Option<Vec<Triangle>>,
    /// Properties, children of shared dictionaries among them.
    pub columns: Vec<Meant>,
    /// Values of each feature's vertices.
    pub m_values: Vec<Meant>,
    /// Properties that are nested.
    pub nested: Vec<Meant>,
}

/// A tile, and what it means.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Its bytes.
    pub tile: Vec<u8>,
    /// Its layers.
    pub layers: Vec<MeantLayer>,
}

/// What layers may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All that version 1 has.
    First,
    /// What all readers of version 1 agree on: features, no empty lines and rings, truth values in runs of bytes.
    Common,
    /// All that version 2 has.
    Second,
}

impl Form {
    fn version(self) -> Version {
        if self == Form::Second { Version::V2 } else { Version::V1 }
    }

    /// The smallest number of anything that lines, rings and layers are made of.
    fn least(self) -> usize {
        usize::from(self == Form::Common)
    }
}

/// Layers of any version, or of one form.
pub fn draw(data: &[u8], only: Option<Form>) -> Drawn {
    let (mut data, mut drawn) = (Unstructured::new(data), Drawn { tile: Vec::new(), layers: Vec::new() });
    for i in 0..3 {
        let Ok(more) = data.ratio(3u8, 4u8) else { break };
        if i > 0 && (!more || data.is_empty()) {
            break;
        }
        if layer(&mut data, only, &mut drawn).is_err() {
            break;
        }
    }
    drawn
}

/// Numbers from a seed.
pub struct Dice(u64);

impl Dice {
    /// Of a seed.
    pub fn of(seed: u32) -> Dice {
        Dice(u64::from(seed) << 20 | 0x9_E377)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below this one, or 0.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from((self.next() >> 33) % n.max(1) as u64).unwrap_or(0)
    }

    /// One of them, if there are any.
    pub fn pick<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        all.get(self.below(all.len()))
    }
}

fn dice(data: &mut Unstructured<'_>) -> Result<Dice> {
    Ok(Dice::of(data.arbitrary()?))
}

/// A pattern of numbers.
fn numbers(data: &mut Unstructured<'_>, n: usize) -> Result<Vec<u64>> {
    let (pattern, width, mut dice) = (data.int_in_range(0..=5u8)?, data.int_in_range(1..=64u32)?, dice(data)?);
    let start = dice.next() >> (64 - width);
    let step = dice.next() % 1000;
    let mut run = start;
    Ok((0..n as u64)
        .map(|i| match pattern {
            0 => start,
            1 => start.wrapping_add(i.wrapping_mul(step)),
            2 => dice.next() >> (64 - width),
            // Few need many bits.
            3 => dice.next() >> if dice.below(20) == 0 { 64 - width } else { 60 },
            4 => {
                if dice.below(9) == 0 {
                    run = dice.next() >> (64 - width);
                }
                run
            }
            _ => start ^ (dice.next() % 6),
        })
        .collect())
}

fn truths(data: &mut Unstructured<'_>, n: usize) -> Result<Vec<bool>> {
    let (one_in, mut dice) = (data.int_in_range(1..=40usize)?, dice(data)?);
    let flip = one_in % 2 == 0;
    Ok((0..n).map(|_| (dice.below(one_in) == 0) ^ flip).collect())
}

/// Pieces of it are strings that are alike, and some that are not; all are borrowed, so that columns are cheap.
const TEXT: &str = "Rue de la République, Rue de la Paix, Rue de Rivoli; Main Street North; Hauptstraße; Łódź; 東京都千代田区; \
                    Москва́; a\u{0}b; naïve café; 🗺️ MapLibre; minor_road minor_path major_road major_rail primary \
                    secondary_link tertiary_link residential service track footway";

fn text(number: u64) -> &'static str {
    let bytes = TEXT.len() as u64 + 1;
    let boundary = |at: usize| (0..=at.min(TEXT.len())).rev().find(|&at| TEXT.is_char_boundary(at)).unwrap_or(0);
    let start = boundary(usize::try_from(number % bytes).unwrap_or(0));
    let len = usize::try_from(number / bytes % 24).unwrap_or(0);
    &TEXT[start..boundary(start + len)]
}

fn words(data: &mut Unstructured<'_>) -> Result<Words> {
    Ok(*data.choose(&[Words::Plain, Words::VarInt, Words::FastPfor])?)
}

fn integers(data: &mut Unstructured<'_>) -> Result<Integers> {
    let words = words(data)?;
    Ok(*data.choose(&[
        Integers::Values(words),
        Integers::Delta(words),
        Integers::Rle(words),
        Integers::DeltaRle(words),
        Integers::Delta2(words),
        Integers::BitPacked,
    ])?)
}

/// One that the version has, for what must not fail.
fn safe_integers(data: &mut Unstructured<'_>, form: Form) -> Result<Integers> {
    let integers = integers(data)?;
    let second = matches!(integers, Integers::Delta2(_) | Integers::BitPacked);
    Ok(if second && form != Form::Second { Integers::default() } else { integers })
}

fn bits_coding(data: &mut Unstructured<'_>, form: Form) -> Result<Truths> {
    let of_version = match form {
        Form::First => [Truths::Bitmap, Truths::ByteRuns, Truths::ByteRuns],
        Form::Common => [Truths::ByteRuns; 3],
        Form::Second => [Truths::Bitmap, Truths::Runs, Truths::Sparse],
    };
    Ok(*data.choose(&of_version)?)
}

fn strings(data: &mut Unstructured<'_>) -> Result<Strings> {
    let layouts = [StringLayout::Plain, StringLayout::Dictionary, StringLayout::Fsst, StringLayout::FsstDictionary];
    Ok(Strings {
        layout: *data.choose(&layouts)?,
        codes: integers(data)?,
        lengths: integers(data)?,
        symbols: integers(data)?,
        front_coded: data.ratio(1u8, 4u8)?,
    })
}

/// Values of some type, owned.
#[derive(Clone, Debug)]
enum Owned {
    Bool(Vec<bool>, Truths),
    Int8(Vec<i8>, Integers),
    UInt8(Vec<u8>, Integers),
    Int32(Vec<i32>, Integers),
    UInt32(Vec<u32>, Integers),
    Int64(Vec<i64>, Integers),
    UInt64(Vec<u64>, Integers),
    Float(Vec<f32>, Floats),
    Double(Vec<f64>, Floats),
    Strings(Vec<&'static str>, Strings),
}

#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "any values will do")]
impl Owned {
    fn draw(data: &mut Unstructured<'_>, form: Form, n: usize) -> Result<Owned> {
        let kind = data.int_in_range(0..=9u8)?;
        let numbers = numbers(data, n)?;
        let floats = |data: &mut Unstructured<'_>| -> Result<(bool, Floats)> {
            let words = words(data)?;
            Ok((data.ratio(3u8, 4u8)?, *data.choose(&[Floats::Plain, Floats::Alp(words), Floats::Dictionary(words)])?))
        };
        Ok(match kind {
            0 => Owned::Bool(truths(data, n)?, bits_coding(data, form)?),
            1 => Owned::Int8(numbers.iter().map(|&n| n as i8).collect(), integers(data)?),
            2 => Owned::UInt8(numbers.iter().map(|&n| n as u8).collect(), integers(data)?),
            3 => Owned::Int32(numbers.iter().map(|&n| n as i32).collect(), integers(data)?),
            4 => Owned::UInt32(numbers.iter().map(|&n| n as u32).collect(), integers(data)?),
            5 => Owned::Int64(numbers.iter().map(|&n| n as i64).collect(), integers(data)?),
            6 => Owned::UInt64(numbers, integers(data)?),
            7 => {
                let (decimal, coding) = floats(data)?;
                let float = |&n: &u64| if decimal { n as i16 as f32 / 100.0 } else { f32::from_bits(n as u32) };
                Owned::Float(numbers.iter().map(float).collect(), coding)
            }
            8 => {
                let (decimal, coding) = floats(data)?;
                let double = |&n: &u64| if decimal { f64::from(n as i32) / 1000.0 } else { f64::from_bits(n) };
                Owned::Double(numbers.iter().map(double).collect(), coding)
            }
            _ => Owned::Strings(numbers.iter().map(|&n| text(n)).collect(), strings(data)?),
        })
    }

    fn values(&self) -> Values<'_> {
        match self {
            Owned::Bool(values, coding) => Values::Bool(values, *coding),
            Owned::Int8(values, coding) => Values::Int8(values, *coding),
            Owned::UInt8(values, coding) => Values::UInt8(values, *coding),
            Owned::Int32(values, coding) => Values::Int32(values, *coding),
            Owned::UInt32(values, coding) => Values::UInt32(values, *coding),
            Owned::Int64(values, coding) => Values::Int64(values, *coding),
            Owned::UInt64(values, coding) => Values::UInt64(values, *coding),
            Owned::Float(values, coding) => Values::Float(values, *coding),
            Owned::Double(values, coding) => Values::Double(values, *coding),
            Owned::Strings(values, coding) => Values::Strings(values, *coding),
        }
    }

    fn cells(&self) -> Vec<Cell> {
        match self {
            Owned::Bool(values, _) => values.iter().map(|&value| Cell::Bool(value)).collect(),
            Owned::Int8(values, _) => values.iter().map(|&value| Cell::Int(value.into())).collect(),
            Owned::UInt8(values, _) => values.iter().map(|&value| Cell::UInt(value.into())).collect(),
            Owned::Int32(values, _) => values.iter().map(|&value| Cell::Int(value.into())).collect(),
            Owned::UInt32(values, _) => values.iter().map(|&value| Cell::UInt(value.into())).collect(),
            Owned::Int64(values, _) => values.iter().map(|&value| Cell::Int(value)).collect(),
            Owned::UInt64(values, _) => values.iter().map(|&value| Cell::UInt(value)).collect(),
            Owned::Float(values, _) => values.iter().map(|value| Cell::Float(value.to_bits())).collect(),
            Owned::Double(values, _) => values.iter().map(|value| Cell::Double(value.to_bits())).collect(),
            Owned::Strings(values, _) => values.iter().map(|&value| Cell::Text(value.to_owned())).collect(),
        }
    }
}

/// Puts nulls between the cells of what is present.
fn spread(cells: Vec<Cell>, present: Option<&[bool]>) -> Vec<Cell> {
    let Some(present) = present else { return cells };
    let mut cells = cells.into_iter();
    present.iter().map(|&present| if present { cells.next().expect("a cell") } else { Cell::Null }).collect()
}

fn set(bits: &[bool]) -> usize {
    bits.iter().filter(|&&bit| bit).count()
}

/// Which features have a value, owned.
#[derive(Clone, Debug)]
enum Which {
    All,
    Own(Vec<bool>, Truths),
    Shared(usize, Vec<bool>),
}

impl Which {
    fn draw(data: &mut Unstructured<'_>, form: Form, n: usize, shared: &[Vec<bool>]) -> Result<Which> {
        let choice = data.int_in_range(0..=4u8)?;
        if choice == 4 && !shared.is_empty() {
            let field = data.choose_index(shared.len())?;
            return Ok(Which::Shared(field, shared[field].clone()));
        }
        Ok(if choice < 2 { Which::All } else { Which::Own(truths(data, n)?, bits_coding(data, form)?) })
    }

    fn bits(&self) -> Option<&[bool]> {
        match self {
            Which::All => None,
            Which::Own(bits, _) | Which::Shared(_, bits) => Some(bits),
        }
    }

    fn presence(&self) -> Presence<'_> {
        match self {
            Which::All => Presence::All,
            Which::Own(bits, coding) => Presence::Own(bits, *coding),
            Which::Shared(field, _) => Presence::Shared(*field),
        }
    }
}

/// What was written, unless the writer says that the version or the encoding cannot hold it.
fn written<T>(result: std::result::Result<T, Error>) -> Option<T> {
    match result {
        Ok(written) => Some(written),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
            None
        }
    }
}

/// A layer that is drawn.
struct Drawing<'d, 'u> {
    data: &'d mut Unstructured<'u>,
    form: Form,
    /// Features.
    n: usize,
    /// Presence that columns can share.
    shared: Vec<Vec<bool>>,
    writer: LayerWriter,
    meant: MeantLayer,
}

fn layer(data: &mut Unstructured<'_>, only: Option<Form>, drawn: &mut Drawn) -> Result<()> {
    let form = if data.arbitrary()? { Form::First } else { Form::Second };
    let form = only.unwrap_or(form);
    let n =
        usize::from(if data.ratio(1u8, 4u8)? { data.arbitrary::<u16>()? % 700 } else { data.arbitrary::<u16>()? % 24 });
    let n = n.max(form.least());
    let name = format!("layer {}", drawn.layers.len());
    let extent = 1 << data.int_in_range(6..=21u32)?;
    let writer = LayerWriter::new(form.version(), &name, extent, n).expect("a sound layer");
    let meant = MeantLayer {
        version: if form == Form::Second { 2 } else { 1 },
        name,
        extent,
        ids: None,
        shapes: None,
        z: None,
        triangles: None,
        columns: Vec::new(),
        m_values: Vec::new(),
        nested: Vec::new(),
    };
    let mut layer = Drawing { data, form, n, shared: Vec::new(), writer, meant };
    if form == Form::Second {
        for _ in 0..layer.data.int_in_range(0..=3u8)? {
            let bits = truths(layer.data, n)?;
            layer.writer.shared_presence(&bits, bits_coding(layer.data, form)?).expect("a sound field");
            layer.shared.push(bits);
        }
    }
    layer.geometry()?;
    for i in 0..layer.data.int_in_range(0..=5u8)? {
        let name = format!("{}{i}", text(layer.data.arbitrary::<u16>()?.into()));
        // What fails for want of bytes leaves the layer as it is.
        let added = match layer.data.int_in_range(0..=9u8)? {
            0 => layer.ids(),
            1 | 2 => layer.dictionary(name),
            3 => layer.m_values(name),
            4 | 5 if form == Form::Second => layer.nested(name),
            _ => layer.column(name),
        };
        if added.is_err() {
            break;
        }
    }
    layer.writer.finish(&mut drawn.tile).expect("a sound layer");
    drawn.layers.push(layer.meant);
    Ok(())
}

impl Drawing<'_, '_> {
    fn column(&mut self, name: String) -> Result<()> {
        let &mut Drawing { ref mut data, form, n, ref shared, ref mut writer, ref mut meant } = self;
        let which = Which::draw(data, form, n, shared)?;
        let values = Owned::draw(data, form, which.bits().map_or(n, set))?;
        if written(writer.column(&name, which.presence(), values.values())).is_some() {
            meant.columns.push(Meant { name, cells: spread(values.cells(), which.bits()) });
        }
        Ok(())
    }

    fn ids(&mut self) -> Result<()> {
        let &mut Drawing { ref mut data, form, n, ref shared, ref mut writer, ref mut meant } = self;
        if meant.ids.is_some() {
            return Ok(());
        }
        let which = Which::draw(data, form, n, shared)?;
        let numbers = numbers(data, which.bits().map_or(n, set))?;
        let coding = integers(data)?;
        let values = if data.arbitrary()? {
            Owned::UInt64(numbers, coding)
        } else {
            Owned::UInt32(numbers.iter().map(|&n| u32::try_from(n >> 32).unwrap_or(0)).collect(), coding)
        };
        if written(writer.ids(which.presence(), values.values())).is_some() {
            meant.ids = Some(spread(values.cells(), which.bits()));
        }
        Ok(())
    }

    fn dictionary(&mut self, name: String) -> Result<()> {
        let &mut Drawing { ref mut data, form, n, ref shared, ref mut writer, ref mut meant } = self;
        let mut of_children = Vec::new();
        for i in 0..data.int_in_range(0..=3u8)? {
            let which = Which::draw(data, form, n, shared)?;
            let values: Vec<&str> = numbers(data, which.bits().map_or(n, set))?.iter().map(|&n| text(n)).collect();
            of_children.push((format!(":{i}"), which, values, integers(data)?));
        }
        let children: Vec<Child<'_>> = of_children
            .iter()
            .map(|(name, which, values, codes)| Child { name, presence: which.presence(), values, codes: *codes })
            .collect();
        let coding = strings(data)?;
        if written(writer.shared_dictionary(&name, &children, &coding)).is_some() {
            for (child, which, values, _) in &of_children {
                let cells = values.iter().map(|&value| Cell::Text(value.to_owned())).collect();
                meant.columns.push(Meant { name: format!("{name}{child}"), cells: spread(cells, which.bits()) });
            }
        }
        Ok(())
    }

    fn m_values(&mut self, name: String) -> Result<()> {
        let &mut Drawing { ref mut data, form, ref shared, ref mut writer, ref mut meant, .. } = self;
        let Some(shapes) = &meant.shapes else { return Ok(()) };
        let which = Which::draw(data, form, shapes.len(), shared)?;
        let has = |i: usize| which.bits().is_none_or(|bits| bits[i]);
        let counts: Vec<usize> = shapes.iter().map(|shape| positions(shape).len()).collect();
        let n = counts.iter().enumerate().map(|(i, n)| if has(i) { *n } else { 0 }).sum();
        let values = Owned::draw(data, form, n)?;
        if written(writer.m_values(&name, which.presence(), values.values())).is_some() {
            let mut cells = values.cells().into_iter();
            let mut take = |n: usize| Cell::List(cells.by_ref().take(n).collect());
            let cells = counts.iter().enumerate().map(|(i, &n)| if has(i) { take(n) } else { Cell::Null }).collect();
            meant.m_values.push(Meant { name, cells });
        }
        Ok(())
    }

    fn geometry(&mut self) -> Result<()> {
        let &mut Drawing { ref mut data, form, n, ref mut writer, ref mut meant, .. } = self;
        let kinds: &[u8] = data.choose(&[
            &[0u8][..],
            &[1],
            &[2],
            &[3],
            &[4],
            &[5],
            &[0, 1],
            &[0, 3],
            &[1, 4],
            &[2, 5],
            &[0, 1, 4],
            &[0, 1, 2],
            &[0, 1, 2, 3, 4, 5],
        ])?;
        let (reach, mut dice) = (1u64 << data.int_in_range(1..=33u32)?, dice(data)?);
        let mut position: Position = [0, 0];
        let mut line = |dice: &mut Dice, n: usize| -> Vec<Position> {
            let mut step = |c: i32| {
                let to = dice.next() % reach;
                i32::try_from(
                    (i64::from(c) + to.cast_signed() - (reach / 2).cast_signed()).clamp(-(1 << 31), (1 << 31) - 1),
                )
                .unwrap_or(0)
            };
            let mut stride = || {
                position = [step(position[0]), step(position[1])];
                position
            };
            (0..n).map(|_| stride()).collect()
        };
        let coding = GeometryCoding {
            types: safe_integers(data, form)?,
            types_stream: data.arbitrary()?,
            lengths: safe_integers(data, form)?,
            triangles: safe_integers(data, form)?,
            vertices: {
                let words = words(data)?;
                *data.choose(&[
                    Vertices::Values(words),
                    Vertices::Delta(words),
                    Vertices::ComponentwiseDelta(words),
                    Vertices::ComponentwiseDelta2(words),
                    Vertices::Morton(words),
                    Vertices::Rans,
                ])?
            },
            dictionary: if data.ratio(1u8, 3u8)? { Some(safe_integers(data, form)?) } else { None },
        };
        let extra = data.int_in_range(0..=9u8)?;
        if extra == 0 && form == Form::Second {
            let vertices = line(&mut dice, 1 + n.min(60));
            let corner = |dice: &mut Dice| u32::try_from(dice.below(vertices.len())).unwrap_or(0);
            let of_feature = |dice: &mut Dice| triangles(dice, 4, corner);
            let triangles: Vec<Vec<Triangle>> = (0..n).map(|_| of_feature(&mut dice)).collect();
            let geometry =
                Geometry::of_triangles(&vertices, triangles.clone(), data.arbitrary()?).expect("few vertices");
            if written(writer.geometry(&geometry, &coding)).is_some() {
                meant.triangles = Some(triangles.concat());
                return Ok(());
            }
        }
        let shapes: Vec<Shape> = (0..n)
            .map(|_| {
                let kind = kinds[dice.below(kinds.len())];
                let items = form.least() + dice.below(4);
                let mut lines = |dice: &mut Dice, n: usize| -> Vec<Vec<Position>> {
                    (0..n)
                        .map(|_| {
                            let n = form.least() + dice.below(7);
                            line(dice, n)
                        })
                        .collect()
                };
                match kind {
                    0 => Shape::Point(line(&mut dice, 1)[0]),
                    1 => Shape::LineString(lines(&mut dice, 1).concat()),
                    2 => Shape::Polygon(lines(&mut dice, items)),
                    3 => Shape::MultiPoint(lines(&mut dice, 1).concat()),
                    4 => Shape::MultiLineString(lines(&mut dice, items)),
                    _ => Shape::MultiPolygon((0..items).map(|n| lines(&mut dice, form.least() + n)).collect()),
                }
            })
            .collect();
        let mut geometry = Geometry::new(&shapes).expect("few vertices");
        let (mut z, mut of_layer) = (None, None);
        if extra == 1 && form == Form::Second {
            let n = shapes.iter().map(|shape| positions(shape).len()).sum();
            let step = data.int_in_range(0..=7)?;
            let values: Vec<i32> = line(&mut dice, n).iter().map(|position| position[0]).collect();
            geometry = geometry.with_z(step, values.clone());
            z = Some((step, values));
        }
        if extra == 2 {
            let mut first = 0;
            let of_feature = |shape: &Shape, dice: &mut Dice, first: usize, n: usize| match shape {
                Shape::Polygon(_) | Shape::MultiPolygon(_) if n > 0 => {
                    triangles(dice, 5, |dice| u32::try_from(first + dice.below(n)).unwrap_or(0))
                }
                _ => Vec::new(),
            };
            let triangles: Vec<Vec<Triangle>> = shapes
                .iter()
                .map(|shape| {
                    let n = positions(shape).len();
                    first += n;
                    of_feature(shape, &mut dice, first - n, n)
                })
                .collect();
            if shapes.iter().any(|shape| matches!(shape, Shape::Polygon(_) | Shape::MultiPolygon(_))) {
                of_layer = Some(triangles.concat());
                geometry = geometry.with_triangles(triangles);
            }
        }
        let plain = GeometryCoding::default();
        for coding in [&coding, &plain] {
            if written(writer.geometry(&geometry, coding)).is_some() {
                (meant.shapes, meant.z, meant.triangles) = (Some(shapes), z, of_layer);
                return Ok(());
            }
        }
        unreachable!("the plain way holds all geometries");
    }

    fn nested(&mut self, name: String) -> Result<()> {
        let &mut Drawing { ref mut data, n, ref shared, ref mut writer, ref mut meant, .. } = self;
        let which = Which::draw(data, Form::Second, n, shared)?;
        let n = which.bits().map_or(n, set);
        let tree = Tree::draw(data, n, 1)?;
        if matches!(tree, Tree::Values(_)) {
            return Ok(());
        }
        if written(writer.nested(&name, which.presence(), &tree.nested())).is_some() {
            meant.nested.push(Meant { name, cells: spread(tree.cells(n), which.bits()) });
        }
        Ok(())
    }
}

/// All positions of a shape, as they are stored.
fn positions(shape: &Shape) -> Vec<Position> {
    match shape {
        Shape::Point(position) => vec![*position],
        Shape::LineString(line) | Shape::MultiPoint(line) => line.clone(),
        Shape::Polygon(lines) | Shape::MultiLineString(lines) => lines.concat(),
        Shape::MultiPolygon(polygons) => polygons.concat().concat(),
    }
}

/// Triangles, many of which share an edge with the one before.
fn triangles(dice: &mut Dice, most: usize, mut corner: impl FnMut(&mut Dice) -> u32) -> Vec<Triangle> {
    let mut all: Vec<Triangle> = Vec::new();
    for _ in 0..dice.below(most + 1) {
        let apex = corner(dice);
        all.push(match (all.last(), dice.below(3)) {
            (Some(&[_, to, before]), 0) => [before, to, apex],
            (Some(&[from, _, before]), 1) => [from, before, apex],
            _ => [corner(dice), corner(dice), apex],
        });
    }
    all
}

/// A nested value, owned.
#[derive(Clone, Debug)]
enum Tree {
    Values(Owned),
    Struct(Vec<(String, Branch)>),
    List(Vec<u32>, Integers, Box<Branch>),
    Map(Vec<u32>, Integers, Vec<&'static str>, Strings, Box<Branch>),
}

#[derive(Clone, Debug)]
struct Branch {
    present: Option<(Vec<bool>, Truths)>,
    tree: Tree,
}

impl Tree {
    fn draw(data: &mut Unstructured<'_>, n: usize, depth: u8) -> Result<Tree> {
        let kind = if depth > 4 || (depth > 1 && data.ratio(1u8, 2u8)?) { 0 } else { data.int_in_range(1..=3u8)? };
        let lengths = |data: &mut Unstructured<'_>| -> Result<(Vec<u32>, usize)> {
            let mut dice = dice(data)?;
            let lengths: Vec<u32> = (0..n).map(|_| u32::try_from(dice.below(4)).unwrap_or(0)).collect();
            let total = lengths.iter().sum::<u32>() as usize;
            Ok((lengths, total))
        };
        Ok(match kind {
            0 => Tree::Values(Owned::draw(data, Form::Second, n)?),
            1 => {
                let mut fields = Vec::new();
                for i in 0..data.int_in_range(1..=3u8)? {
                    fields.push((format!("field {i}"), Branch::draw(data, n, depth + 1)?));
                }
                Tree::Struct(fields)
            }
            2 => {
                let (lengths, total) = lengths(data)?;
                Tree::List(lengths, integers(data)?, Box::new(Branch::draw(data, total, depth + 1)?))
            }
            _ => {
                let (lengths, total) = lengths(data)?;
                let keys = numbers(data, total)?.iter().map(|&n| text(n)).collect();
                let coding = integers(data)?;
                Tree::Map(lengths, coding, keys, strings(data)?, Box::new(Branch::draw(data, total, depth + 1)?))
            }
        })
    }

    fn nested(&self) -> Nested<'_> {
        match self {
            Tree::Values(values) => Nested::Values(values.values()),
            Tree::Struct(fields) => {
                Nested::Struct(fields.iter().map(|(name, branch)| (&name[..], branch.member())).collect())
            }
            Tree::List(lengths, coding, element) => {
                Nested::List { lengths, coding: *coding, element: Box::new(element.member()) }
            }
            Tree::Map(lengths, coding, keys, key_coding, value) => {
                Nested::Map { lengths, coding: *coding, keys, key_coding: *key_coding, value: Box::new(value.member()) }
            }
        }
    }

    fn cells(&self, n: usize) -> Vec<Cell> {
        let cut = |lengths: &[u32], cells: Vec<Cell>| -> Vec<Vec<Cell>> {
            let mut cells = cells.into_iter();
            lengths.iter().map(|&length| cells.by_ref().take(length as usize).collect()).collect()
        };
        match self {
            Tree::Values(values) => values.cells(),
            Tree::Struct(fields) => {
                let columns: Vec<_> = fields.iter().map(|(name, branch)| (name, branch.cells(n))).collect();
                let row = |i: usize| columns.iter().map(|(name, cells)| ((*name).clone(), cells[i].clone())).collect();
                (0..n).map(|i| Cell::Entries(row(i))).collect()
            }
            Tree::List(lengths, _, element) => {
                let total = lengths.iter().sum::<u32>() as usize;
                cut(lengths, element.cells(total)).into_iter().map(Cell::List).collect()
            }
            Tree::Map(lengths, _, keys, _, value) => {
                let mut keys = keys.iter().map(|&key| key.to_owned());
                let of_rows = cut(lengths, value.cells(keys.len()));
                of_rows.into_iter().map(|cells| Cell::Entries(keys.by_ref().zip_in(cells))).collect()
            }
        }
    }
}

/// As many keys as there are cells.
trait ZipIn: Iterator<Item = String> + Sized {
    fn zip_in(self, cells: Vec<Cell>) -> Vec<(String, Cell)> {
        // The cells first: they end, and no key is lost.
        cells.into_iter().zip(self).map(|(cell, key)| (key, cell)).collect()
    }
}

impl<I: Iterator<Item = String>> ZipIn for I {}

impl Branch {
    fn draw(data: &mut Unstructured<'_>, handed: usize, depth: u8) -> Result<Branch> {
        let present =
            if data.ratio(1u8, 3u8)? { Some((truths(data, handed)?, bits_coding(data, Form::Second)?)) } else { None };
        let n = present.as_ref().map_or(handed, |(bits, _)| set(bits));
        Ok(Branch { present, tree: Tree::draw(data, n, depth)? })
    }

    fn member(&self) -> Member<'_> {
        let present = self.present.as_ref().map(|(bits, coding)| (&bits[..], *coding));
        Member { present, node: self.tree.nested() }
    }

    fn cells(&self, handed: usize) -> Vec<Cell> {
        let bits = self.present.as_ref().map(|(bits, _)| &bits[..]);
        spread(self.tree.cells(bits.map_or(handed, set)), bits)
    }
}
