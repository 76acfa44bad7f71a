//! The trace of a tile: what each byte of it means.
//!
//! Headers come from the walk that opens a tile, which this observes; what payloads consist of comes from the walks of
//! their decoders, and the values that are shown from the decoders.

use std::fmt::{Debug, Display};

use super::data::{LayerData, MValueData, PropertyData};
use super::decoder::Decoder;
use super::encoding::fastpfor::{self, Form, Page};
use super::encoding::fsst::Table;
use super::encoding::integers::{self, Coding};
use super::encoding::rans;
use super::encoding::strings::{self, Blob};
use super::encoding::{Scratch, Word, alp, boolean, float_dictionary, rle, varint, vertices};
use super::geometry::{Geometry, GeometryType};
use super::nested::NestedData;
use super::options::Options;
use super::outline::{ColumnKind, DataType, LayerPlace, Outline, Span};
use super::stream::{Logical, Physical, Role, Stream};
use super::tile::{Kind, Tile};
use super::walk::{self, Observer};
use crate::error::{Error, ErrorKind, Limit, Part};
use crate::input::Input;
use crate::kernels::RansTable;
use crate::limits::Limits;
use crate::trace::{Step, Trace};

/// Which part of a tile a trace shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Traced {
    /// All of it.
    #[default]
    Tile,
    /// The layer of this number; frames of unknown tags do not count.
    Layer(u32),
    /// The geometry of a layer.
    Geometry(u32),
    /// A column of a layer, by its number in [`Layer::columns`](super::Layer::columns); with a child its dictionary.
    Column(u32, u32),
}

/// Shows each step of reading a tile, or a part of it: frames, headers with all their fields, and what payloads consist of;
/// and decodes it.
///
/// Steps go as far as the headers of the whole tile, and the payloads of what is shown, are sound; the fault that ended
/// them is kept, or else what the [`Decoder`] finds between streams. Of anything repeated the first are shown, so that
/// steps take about as much memory as headers, and never more than 1 GiB or `options.limits.max_output_bytes`. Those limits
/// are of each layer.
pub fn trace(bytes: &[u8], traced: Traced, options: &Options) -> Trace {
    let mut outline = Outline::default();
    let mut observer = Tracer::new(parts(bytes, traced, options), options);
    let walked = walk::tile(bytes, &mut outline, options, &mut observer);
    let Tracer { mut trace, over, open, at, .. } = observer;
    // Parts that the fault is in end where it is.
    for step in open.into_iter().flatten() {
        trace.steps[step].span.end = at.max(trace.steps[step].span.start);
    }
    trace.fault = over.or(walked.err()).or_else(|| decode(bytes, outline, traced, options).err());
    trace
}

/// Decodes what is traced.
fn decode(bytes: &[u8], outline: Outline, traced: Traced, options: &Options) -> Result<(), Error> {
    let tile = Tile::open_with(bytes, outline, options)?;
    let mut decoder = Decoder::with_options(*options);
    let layer = |number: u32| tile.layer(number as usize);
    match traced {
        Traced::Tile => {
            let mut data = LayerData::default();
            tile.layers().try_for_each(|it| decoder.layer(it, &mut data))
        }
        Traced::Layer(number) => layer(number).map_or(Ok(()), |it| decoder.layer(it, &mut LayerData::default())),
        Traced::Geometry(number) => layer(number).map_or(Ok(()), |it| decoder.geometry(it, &mut Geometry::default())),
        Traced::Column(number, index) => {
            let Some(column) = layer(number).and_then(|layer| layer.column(index as usize)) else { return Ok(()) };
            match column.kind() {
                Kind::Id => decoder.ids(column.layer(), &mut PropertyData::default()).map(|_| ()),
                Kind::Geometry => decoder.geometry(column.layer(), &mut Geometry::default()),
                Kind::Property | Kind::Child => decoder.property(column, &mut PropertyData::default()),
                Kind::MValue => decoder.m_value(column, &mut MValueData::default()),
                Kind::Nested => decoder.nested(column, &mut NestedData::default()),
                // It has no values without its children.
                Kind::SharedDictionary => Ok(()),
            }
        }
    }
}

/// What to show: parts of layers. The geometry of version 1 is a column.
fn parts(bytes: &[u8], traced: Traced, options: &Options) -> Vec<Traced> {
    let mut outline = Outline::default();
    // What there is of a tile with a fault is in the outline, too, but for its layers.
    let sound = walk::tile(bytes, &mut outline, options, &mut ()).is_ok();
    let mut all = vec![traced];
    let columns = |layer: u32| {
        let layer = outline.layers.get(layer as usize).filter(|_| sound)?;
        Some(&outline.columns[layer.columns.start as usize..layer.columns.end as usize])
    };
    match traced {
        Traced::Geometry(layer) => {
            let column = columns(layer).and_then(|all| all.iter().position(|it| it.kind == ColumnKind::Geometry));
            all.extend(column.map(|column| Traced::Column(layer, walk::index(column))));
        }
        Traced::Column(layer, column) => {
            let first = outline.layers.get(layer as usize).map_or(0, |layer| layer.columns.start);
            let of = columns(layer).and_then(|all| all.get(column as usize));
            if let Some(ColumnKind::Child { dictionary }) = of.map(|column| column.kind) {
                all.push(Traced::Column(layer, dictionary - first));
            }
        }
        Traced::Tile | Traced::Layer(_) => {}
    }
    all
}

/// How many of anything repeated are shown.
const SHOWN: usize = 64;

/// Values of a list that are shown in one step.
const FEW: usize = 8;

/// Streams of more values are not expanded, and not more in all: a few bytes can mean very many.
const VALUES: u64 = 1 << 20;
const ALL_VALUES: u64 = 1 << 25;

/// Bytes of all steps at most, whatever the limits allow: nobody reads more.
const ALL_STEPS: u64 = 1 << 30;

/// What a step takes beside its text: itself, with room to grow, and what allocators add.
const STEP_BYTES: u64 = 2 * size_of::<Step>() as u64 + 32;

/// Fields of a part among which are those that say of which type and encoding it is.
const FIRST_FIELDS: usize = 2;

struct Tracer<'o> {
    trace: Trace,
    /// Parts that have begun: their steps, if these are shown.
    open: Vec<Option<usize>>,
    traced: Vec<Traced>,
    place: LayerPlace,
    /// Of the layer; 0 outside of one.
    version: u8,
    geometry: bool,
    data_type: DataType,
    /// The lengths that cut the next blob, and those of symbols.
    lengths: Option<Vec<u32>>,
    symbols: Option<Vec<u32>>,
    table: Option<Table>,
    options: Options,
    limits: &'o Limits,
    scratch: Scratch,
    spent: u64,
    /// Values that may still be expanded.
    left: u64,
    /// Where the walk has come to.
    at: u64,
    over: Option<Error>,
}

impl<'o> Tracer<'o> {
    fn new(traced: Vec<Traced>, options: &'o Options) -> Tracer<'o> {
        let limits = &options.limits;
        // What is shown of values is little, so little may be made of a few bytes for it.
        let few = Limits { max_output_bytes: limits.max_output_bytes.min(64 << 20), ..*limits };
        Tracer {
            trace: Trace::default(),
            open: Vec::new(),
            traced,
            place: LayerPlace { layer: 0, column: None },
            version: 0,
            geometry: false,
            data_type: DataType::Bool,
            lengths: None,
            symbols: None,
            table: None,
            options: options.limits(few),
            limits,
            scratch: Scratch::new(),
            spent: 0,
            left: ALL_VALUES,
            at: 0,
            over: None,
        }
    }

    /// Whether what is read here is shown.
    fn shown(&self) -> bool {
        let LayerPlace { layer, column } = self.place;
        self.traced.iter().any(|traced| match *traced {
            Traced::Tile => true,
            Traced::Layer(it) => it == layer,
            Traced::Geometry(it) => it == layer && column.is_none() && self.geometry,
            Traced::Column(it, number) => it == layer && column == Some(number),
        })
    }

    fn step(&mut self, label: impl Display, span: Span, detail: impl Display) -> Option<usize> {
        let depth = u8::try_from(self.open.iter().flatten().count()).unwrap_or(u8::MAX);
        let step = Step { label: label.to_string(), span, detail: detail.to_string(), depth };
        self.spent += STEP_BYTES + (step.label.len() + step.detail.len()) as u64;
        if self.over.is_none() {
            let part = Part::Values("", "trace");
            let limit = self.limits.max_output_bytes.min(ALL_STEPS);
            let room = Limits::check(self.spent, limit, Limit::OutputBytes, part);
            self.over = room.err().map(|error| error.at(self.at));
        }
        if self.over.is_some() {
            return None;
        }
        self.trace.steps.push(step);
        Some(self.trace.steps.len() - 1)
    }

    /// Adds to the byte of one of these labels, among the first fields of a part, what it means, which is known behind it.
    fn mean(&mut self, part: usize, labels: &[&str], meaning: &str) {
        let depth = self.trace.steps[part].depth + 1;
        let fields = self.trace.steps[part + 1..].iter_mut().take(FIRST_FIELDS);
        let field = fields.take_while(|step| step.depth == depth).find(|step| labels.contains(&step.label.as_str()));
        if let Some(field) = field {
            field.detail = format!("{}: {meaning}", field.detail);
            self.spent += meaning.len() as u64;
        }
    }

    /// A step for each of the first of a list, then one for the others, of which `each` gives span and detail.
    fn list<T>(
        &mut self,
        what: &str,
        mut next: impl FnMut() -> Result<Option<T>, Error>,
        each: impl Fn(&T) -> (Span, String),
    ) -> Result<(), Error> {
        let (mut number, mut others) = (0usize, None::<Span>);
        while let Some(item) = next()? {
            let (span, detail) = each(&item);
            if number < SHOWN {
                self.step(format_args!("{what} {number}"), span, detail);
            } else {
                others = Some(others.map_or(span.start, |others| others.start)..span.end);
            }
            number += 1;
        }
        if let Some(span) = others {
            self.step(format_args!("{what}s {SHOWN} to {}", number - 1), span, format_args!("{} more", number - SHOWN));
        }
        Ok(())
    }
}

impl<'a> Observer<'a> for Tracer<'_> {
    fn place(&mut self, place: LayerPlace) {
        self.place = place;
    }

    fn version(&mut self, version: u8) {
        self.version = version;
    }

    fn geometry(&mut self, geometry: bool) {
        self.geometry = geometry;
    }

    fn values(&mut self, data_type: DataType) {
        self.data_type = data_type;
    }

    fn enter(&mut self, label: impl Display, start: u64) {
        self.at = start;
        if self.open.is_empty() {
            self.version = 0;
        }
        let step = if self.shown() { self.step(label, start..start, "") } else { None };
        self.open.push(step);
    }

    fn leave(&mut self, end: u64, detail: impl Display) {
        self.at = end;
        if let Some(step) = self.open.pop().flatten() {
            // Only here it is seen that a frame is no layer.
            if self.open.is_empty() && self.version == 0 && self.traced[0] != Traced::Tile {
                self.trace.steps.truncate(step);
                return;
            }
            let detail = detail.to_string();
            self.mean(step, &["column type", "child type", "node type"], &detail);
            let step = &mut self.trace.steps[step];
            (step.span.end, step.detail) = (end, detail);
            self.spent += step.detail.len() as u64;
        }
    }

    fn field(&mut self, label: &str, span: Span, detail: impl Display) {
        self.at = span.end;
        if self.shown() {
            self.step(label, span, detail);
        }
    }

    fn stream(&mut self, stream: &Stream, payload: Input<'a>) -> Result<(), Error> {
        if self.shown() {
            if let Some(step) = self.open.last().copied().flatten() {
                self.trace.steps[step].label = stream.role.name().to_owned();
                self.mean(step, &["stream type"], stream.role.name());
                self.mean(step, &["encoding"], &coding(stream, " / "));
            }
            let result = self.payload(stream, payload).map_err(|error| error.in_stream(stream.role.name()));
            // What is not made for a trace is no fault of the tile.
            result.or_else(|error| match error.kind() {
                ErrorKind::LimitExceeded { .. } => {
                    self.step("values", payload.offset()..payload.end(), "too many to show");
                    Ok(())
                }
                _ => Err(error),
            })?;
        }
        self.leave(stream.end, detail(stream));
        if self.over.is_some() { Err(Error::new(ErrorKind::Missing, Part::Object)) } else { Ok(()) }
    }
}

/// What the header of a stream says.
fn detail(stream: &Stream) -> String {
    let bytes = stream.end - stream.header.1;
    format!("{}; {} elements in {bytes} bytes", coding(stream, ", "), stream.count)
}

/// How a stream is encoded: values, then words.
fn coding(stream: &Stream, between: &str) -> String {
    let logical = match stream.logical {
        Logical::None => "plain",
        Logical::Delta => "Delta",
        Logical::Delta2 => "Delta2",
        Logical::Rle { .. } | Logical::RlePairs => "RLE",
        Logical::DeltaRle { .. } | Logical::DeltaRlePairs => "Delta-RLE",
        Logical::BitPacked => "bit-packed",
        Logical::ComponentwiseDelta => "componentwise Delta",
        Logical::ComponentwiseDelta2 => "componentwise Delta2",
        Logical::Morton { .. } => "Morton",
        Logical::Rans => "rANS",
        Logical::Alp { .. } => "ALP",
        Logical::FloatDictionary => "codes",
        Logical::Bitmap => "bitmap",
        Logical::BooleanRuns => "runs",
        Logical::Sparse => "sparse",
        Logical::BooleanRle => "Boolean RLE",
        Logical::FrontCoded => "front-coded",
    };
    let physical = match stream.physical {
        Physical::None => return logical.to_owned(),
        Physical::VarInt => "VarInt",
        Physical::FastPfor256 => "FastPFOR of 256",
        Physical::FastPfor128 => "FastPFOR of 128",
    };
    format!("{logical}{between}{physical}")
}

/// The first of some values, and how many there are.
fn few<T: Debug>(values: &[T]) -> String {
    match values.get(..FEW) {
        Some(first) if values.len() > FEW => format!("{first:?} and {} more", values.len() - FEW),
        _ => format!("{values:?}"),
    }
}

/// The same of types of geometries, by their names.
fn few_types(codes: &[u32]) -> String {
    let name =
        |&code: &u32| GeometryType::ALL.get(code as usize).map_or_else(|| code.to_string(), |it| it.name().into());
    let first: Vec<String> = codes.iter().take(FEW).map(name).collect();
    let more = if codes.len() > FEW { format!(" and {} more", codes.len() - FEW) } else { String::new() };
    format!("[{}]{more}", first.join(", "))
}

impl Tracer<'_> {
    /// Shows what a payload consists of, and its first values.
    fn payload(&mut self, stream: &Stream, payload: Input<'_>) -> Result<(), Error> {
        let (count, span) = (stream.count as usize, payload.offset()..payload.end());
        let floats = stream.role == Role::Data && matches!(self.data_type, DataType::Float | DataType::Double);
        match (stream.role, stream.logical) {
            (Role::Lengths | Role::DictLengths, _) => self.lengths = None,
            (Role::SymbolLengths, _) => self.symbols = None,
            (Role::Values | Role::DictValues | Role::Corpus | Role::SymbolTable, _) => {
                return self.blob(stream, payload);
            }
            (Role::FloatDictionary, _) => return self.floats(payload, count),
            (_, Logical::None) if floats => return self.floats(payload, count),
            (_, Logical::Bitmap | Logical::BooleanRuns | Logical::Sparse | Logical::BooleanRle) => {
                return self.truth(stream.logical, payload, count);
            }
            (_, Logical::Rans) => return self.rans(payload, stream.count),
            _ => {}
        }
        let walked = self.words(stream, payload);
        if self.too_many(stream.count.into(), span) {
            return walked;
        }
        // What the decoder finds is the fault, if both find one.
        self.values_of(stream, payload).and(walked)
    }

    /// Shows what the payload of integers or vertices consists of.
    fn words(&mut self, stream: &Stream, payload: Input<'_>) -> Result<(), Error> {
        let (count, span) = (stream.count, payload.offset()..payload.end());
        match stream.logical {
            Logical::RlePairs | Logical::DeltaRlePairs => {
                let (bits, mut rest) = (if self.wide(stream) { 64 } else { 32 }, payload);
                let next = || {
                    let run = rle::next_run(&mut rest, bits)?;
                    Ok(run.map(|run| (run, rest.offset())))
                };
                self.list("run", next, |(run, end)| {
                    (run.start..*end, format!("{} times the word {}", run.length, run.value))
                })?;
            }
            Logical::BitPacked if !payload.bytes().is_empty() => {
                let width = format_args!("{} bits each", payload.bytes()[0]);
                self.step("width", span.start..span.start + 1, width);
                self.step("packed words", span.start + 1..span.end, format_args!("{count} words"));
            }
            Logical::Rle { runs } | Logical::DeltaRle { runs }
                if stream.physical == Physical::VarInt && payload.bytes().len() / 2 >= runs as usize =>
            {
                let mut rest = payload;
                for _ in 0..runs {
                    varint::next(&mut rest, if self.wide(stream) { 64 } else { 32 })?;
                }
                self.step("run lengths", span.start..rest.offset(), format_args!("{runs} varints"));
                self.step("run words", rest.offset()..span.end, format_args!("{runs} varints"));
            }
            _ => {
                let words = stream.words;
                match stream.physical {
                    Physical::FastPfor256 => self.fastpfor(Form::of_256(payload), payload, words)?,
                    Physical::FastPfor128 => {
                        let sequential = self.options.packing == super::Packing::Sequential;
                        let narrow = matches!(stream.logical, Logical::Alp { .. }) && sequential;
                        let bits = if self.wide(stream) && !narrow { 64 } else { 32 };
                        self.fastpfor(Form::of_128(payload, bits, self.options.packing), payload, words)?;
                    }
                    Physical::VarInt => {
                        self.step("varints", span, format_args!("{words} words"));
                    }
                    Physical::None => {
                        self.step("words", span, format_args!("{words} little-endian words"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether so many values are not expanded for a few to be shown; shows that.
    fn too_many(&mut self, count: u64, span: Span) -> bool {
        let too_many = count > VALUES.min(self.left);
        if too_many {
            self.step("values", span, format_args!("{count}, too many to show"));
        } else {
            self.left -= count;
        }
        too_many
    }

    /// Whether words have 64 bits.
    fn wide(&self, stream: &Stream) -> bool {
        use DataType::{Int64, LongId, UInt64};
        let data = stream.role == Role::Data && matches!(self.data_type, LongId | Int64 | UInt64);
        data || matches!(stream.logical, Logical::Alp { .. })
    }

    /// Shows the first values of words, and keeps lengths.
    fn values_of(&mut self, stream: &Stream, payload: Input<'_>) -> Result<(), Error> {
        use DataType::{Float, Int8, Int32, Int64};
        let signed = stream.role == Role::Data && matches!(self.data_type, Int8 | Int32 | Int64);
        let strict = self.version == 2;
        let coding = Coding::of(stream, signed, strict);
        let (count, span) = (stream.count as usize, payload.offset()..payload.end());
        let wide = self.wide(stream);
        let (options, scratch) = (self.options, &mut self.scratch);
        // Before memory is taken for values.
        coding.check(stream.words.into(), payload)?;
        let shown = match stream.logical {
            Logical::Alp { scale, base } => {
                let mut offsets = vec![0; count];
                integers::alp_offsets(stream.physical, payload, strict, &mut offsets, &options, scratch)?;
                if self.data_type == Float {
                    let mut values = vec![0f32; count];
                    alp::decode(options.kernels, scale, base, &offsets, &mut values)?;
                    few(&values)
                } else {
                    let mut values = vec![0f64; count];
                    alp::decode(options.kernels, scale, base, &offsets, &mut values)?;
                    few(&values)
                }
            }
            _ if matches!(stream.role, Role::Vertices | Role::VertexDict) => {
                let components = match stream.logical {
                    Logical::Morton { .. } => 2,
                    _ => stream.words.checked_div(stream.count).unwrap_or(2),
                };
                let stride = u8::try_from(components).unwrap_or(2);
                let mut values = vec![0; count * usize::from(stride)];
                vertices::decode(&coding, payload, stride, None, &mut values, &options, scratch)?;
                few(&values.chunks(stride.into()).collect::<Vec<_>>())
            }
            _ if wide => {
                let values = decoded::<u64>(&coding, payload, count, &options, scratch)?;
                if signed { few(bytemuck::cast_slice::<u64, i64>(&values)) } else { few(&values) }
            }
            logical => {
                // Codes of floats are words like others.
                let logical = if logical == Logical::FloatDictionary { Logical::None } else { logical };
                let values = decoded::<u32>(&Coding { logical, ..coding }, payload, count, &options, scratch)?;
                let shown = match stream.role {
                    Role::Types => few_types(&values),
                    _ if signed => few(bytemuck::cast_slice::<u32, i32>(&values)),
                    _ => few(&values),
                };
                match stream.role {
                    Role::Lengths | Role::DictLengths => self.lengths = Some(values),
                    Role::SymbolLengths => self.symbols = Some(values),
                    _ => {}
                }
                shown
            }
        };
        self.step("values", span, shown);
        Ok(())
    }

    fn floats(&mut self, payload: Input<'_>, count: usize) -> Result<(), Error> {
        let size = if self.data_type == DataType::Float { 4 } else { 8 };
        let first = count.min(FEW + 1).min(payload.bytes().len() / size);
        let shown = Input::at(&payload.bytes()[..first * size], payload.offset());
        let shown = if size == 4 {
            let mut values = vec![0f32; first];
            float_dictionary::plain(shown, &mut values)?;
            format!("{:?}", &values[..first.min(FEW)])
        } else {
            let mut values = vec![0f64; first];
            float_dictionary::plain(shown, &mut values)?;
            format!("{:?}", &values[..first.min(FEW)])
        };
        let more = if count > FEW { format!(" and {} more", count - FEW) } else { String::new() };
        self.step("values", payload.offset()..payload.end(), format_args!("{shown}{more}"));
        Ok(())
    }

    fn truth(&mut self, logical: Logical, payload: Input<'_>, count: usize) -> Result<(), Error> {
        let (start, end, mut rest) = (payload.offset(), payload.end(), payload);
        match logical {
            Logical::Bitmap => {
                let set = boolean::skip(logical, &mut rest, count)?;
                self.step("bitmap", start..end, format_args!("{set} of {count} set"));
            }
            Logical::Sparse => {
                let sparse = boolean::Sparse::read(&mut rest, count)?;
                let summary = start + sparse.summary.len() as u64;
                self.step("summary", start..summary, format_args!("{} bytes are not 0", sparse.stored.len()));
                self.step("stored bytes", summary..end, few(sparse.stored));
            }
            Logical::BooleanRuns => {
                let (mut shown, mut more) = (Vec::new(), 0usize);
                let walked =
                    boolean::runs(
                        &mut rest,
                        count,
                        |run| {
                            if shown.len() <= SHOWN { shown.push(run) } else { more += 1 }
                        },
                    );
                let ends: Vec<u64> = shown.iter().skip(1).map(|run| run.start).collect();
                let last = if shown.len() <= SHOWN { rest.offset() } else { end };
                let mut runs = shown.into_iter().zip(ends.into_iter().chain([last]));
                self.list(
                    "run",
                    || Ok(runs.next()),
                    |(run, end)| (run.start..*end, format!("{} times {}", run.values.len(), run.value)),
                )?;
                if more > 0 {
                    self.step("more runs", last..end, format_args!("{more}"));
                }
                walked?;
            }
            _ => {
                let next = || Ok(boolean::next_byte_run(&mut rest));
                self.list("byte run", next, |run| {
                    let span = run.start..run.start + 1 + run.bytes.len() as u64;
                    let kind = if run.repeated { "times the byte" } else { "bytes as they are:" };
                    (span, format!("{} {kind} {}", run.length, few(run.bytes)))
                })?;
                if !self.too_many(count as u64, start..end) {
                    let mut bitmap = vec![0; count.div_ceil(8)];
                    boolean::decode_payload(logical, payload, count, &mut bitmap)?;
                    let set = boolean::skip(Logical::Bitmap, &mut Input::new(&bitmap), count)?;
                    self.step("values", start..end, format_args!("{set} of {count} set"));
                }
            }
        }
        Ok(())
    }

    fn fastpfor(&mut self, form: Form, payload: Input<'_>, count: u32) -> Result<(), Error> {
        let mut swapped = Vec::new();
        let mut words = fastpfor::words_of(payload, form, &self.options, &mut swapped)?;
        let start = words.offset();
        let values = fastpfor::block_values(&mut words, form, count as usize)?;
        self.step("block values", start..words.offset(), format_args!("{values} of {count}"));
        let (mut left, pages) = (values, values.div_ceil(fastpfor::PAGE));
        let mut others = words.offset();
        for number in 0..pages {
            let here = left.min(fastpfor::PAGE);
            left -= here;
            let from = words.offset();
            let mut page = Page::read(&mut words, form, here)?;
            let shown = number < SHOWN;
            if shown {
                let packed = format_args!("{here} values; packed words end before byte {}", page.packed.end());
                self.step(format_args!("page {number}"), from..from + 4, packed);
                let (mut blocks, mut at) = (page.blocks(), page.packed.offset());
                let next = || {
                    let Some(block) = blocks.next()? else { return Ok(None) };
                    let from = at;
                    at += form.block as u64 / 8 * u64::from(block.width);
                    // Blocks may claim more than there is of them.
                    if at > page.packed.end() { Err(page.other_size()) } else { Ok(Some((block, from..at))) }
                };
                self.list("block", next, |(block, span)| {
                    let exceptions = match block.positions {
                        [] => String::new(),
                        at => format!("; exceptions of up to {} bits at {}", block.max_width, few(at)),
                    };
                    (span.clone(), format!("{} bits a value{exceptions}", block.width))
                })?;
                // Their size, and the entries in whole words.
                let bitmap = words.offset() - u64::from(form.bits / 8)..words.offset();
                let entries = format_args!("{} bytes", page.entries.bytes().len());
                self.step("block entries", page.packed.end()..bitmap.start, entries);
                let widths: Vec<u32> = (1..=64).filter(|width| page.arrays >> (width - 1) & 1 == 1).collect();
                self.step("exception arrays", bitmap, format_args!("of widths {widths:?}"));
            }
            while let Some(array) = page.next_array(&mut words)? {
                if shown {
                    let detail = format_args!("{} values of {} bits", array.count, array.width);
                    self.step("exception array", array.start..words.offset(), detail);
                }
            }
            others = if shown { words.offset() } else { others };
        }
        if pages > SHOWN {
            let more = format_args!("{} more", pages - SHOWN);
            self.step(format_args!("pages {SHOWN} to {}", pages - 1), others..words.offset(), more);
        }
        let tail = count as usize - values;
        self.step("tail", words.offset()..words.end(), format_args!("{tail} values"));
        Ok(())
    }

    fn rans(&mut self, payload: Input<'_>, count: u32) -> Result<(), Error> {
        if count == 0 && payload.bytes().is_empty() {
            return Ok(());
        }
        let start = payload.offset();
        let rans = rans::Payload::read(payload, &mut self.scratch.slots)?;
        self.step("depth", start..start + 1, rans.depth);
        let tables = rans.tables.iter().enumerate().filter(|(_, table)| **table != RansTable::NONE);
        let tables: Vec<String> = tables.map(|(context, table)| format!("{context}: 2^{}", table.precision)).collect();
        self.step("tables", start + 1..rans.tables_end, format_args!("slots by context: {}", tables.join(", ")));
        // A lane's state stands before its words.
        let lane = |lane: &Input<'_>| lane.offset() - 4..lane.end();
        self.step("lane lengths", rans.tables_end..lane(&rans.lanes[0]).start, "");
        for (number, (words, state)) in rans.lanes.iter().zip(&rans.states).enumerate() {
            let detail = format_args!("state {state:#x}, {} words", words.bytes().len() / 2);
            self.step(format_args!("lane {number}"), lane(words), detail);
        }
        let raw = rans.raw.offset()..rans.raw.end();
        self.step("raw bits", raw, format_args!("{} bytes", rans.raw.bytes().len()));
        Ok(())
    }

    /// Shows symbols, or strings by the lengths before them.
    fn blob(&mut self, stream: &Stream, payload: Input<'_>) -> Result<(), Error> {
        let span = payload.offset()..payload.end();
        if stream.role == Role::SymbolTable {
            self.table = None;
            let Some(lengths) = self.symbols.take() else { return self.rest(span) };
            let table = Table::read(&lengths, payload)?;
            let mut at = span.start;
            let mut symbols = table.symbols().map(|(symbol, length)| {
                let from = at;
                at += u64::from(length);
                (symbol[..length.into()].escape_ascii().to_string(), from..at)
            });
            self.list("symbol", || Ok(symbols.next()), |(symbol, span)| (span.clone(), format!("\"{symbol}\"")))?;
            drop(symbols);
            self.table = Some(table);
            return self.rest(at..span.end);
        }
        let table = if stream.role == Role::Corpus { self.table.take() } else { None };
        let Some(lengths) = self.lengths.take() else { return self.rest(span) };
        let blob = match &table {
            Some(table) => Blob::Fsst(table, payload),
            None if stream.role == Role::Corpus => return self.rest(span),
            None => Blob::Plain(payload),
        };
        let front_coded = stream.logical == Logical::FrontCoded;
        self.options.limits.max_output_bytes = self.options.limits.max_output_bytes.min(self.left);
        let (mut offsets, mut text) = (Vec::new(), String::new());
        strings::decode(&lengths, blob, front_coded, &mut offsets, &mut text, &self.options, &mut self.scratch)?;
        self.left = self.left.saturating_sub(text.len() as u64);
        // Of entries that are stored as they are, or as suffixes, these; else all the codes.
        let mut at = span.start;
        let mut entries = offsets.windows(2).enumerate();
        let next = || {
            Ok(entries.next().map(|(i, bounds)| {
                let entry = &text[bounds[0] as usize..bounds[1] as usize];
                let stored = if front_coded { lengths[lengths.len() / 2 + i] } else { lengths[i] };
                let from = at;
                at += u64::from(stored);
                if table.is_some() {
                    at = span.end;
                    return (entry, span.clone());
                }
                (entry, from..at)
            }))
        };
        self.list("value", next, |(entry, span)| {
            let cut = entry.chars().take(SHOWN).collect::<String>();
            let more = if cut.len() < entry.len() {
                format!(" and {} bytes more", entry.len() - cut.len())
            } else {
                String::new()
            };
            (span.clone(), format!("{cut:?}{more}"))
        })?;
        self.rest(at..span.end)
    }

    /// Shows bytes that are no symbol or value that is shown.
    fn rest(&mut self, span: Span) -> Result<(), Error> {
        if !span.is_empty() {
            let bytes = span.end - span.start;
            self.step("other bytes", span, bytes);
        }
        Ok(())
    }
}

fn decoded<W: Word>(
    coding: &Coding,
    payload: Input<'_>,
    count: usize,
    options: &Options,
    scratch: &mut Scratch,
) -> Result<Vec<W>, Error> {
    let mut values = vec![W::zeroed(); count];
    integers::decode(coding, payload, &mut values, options, scratch)?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Kernels;

    fn lines(trace: &Trace) -> Vec<String> {
        let line = |step: &Step| {
            let Step { label, span, detail, depth } = step;
            format!("{}{}..{} {label}: {detail}", "  ".repeat(usize::from(*depth)), span.start, span.end)
        };
        trace.steps.iter().map(line).collect()
    }

    fn options() -> Options {
        Options::with_kernels(Kernels::auto())
    }

    /// A line of three vertices: the example of rANS in the specification, in a layer of version 2.
    const LINE: [u8; 49] = [
        0x30, 2, 1, b'l', 0x26, 1, 4, 8, 1, 3, 0xd0, 3, 0x23, 1, 0x63, 0xc1, 0xff, 0x52, 0xe8, 0, 0x61, 0x81, 0xf0, 0,
        0x42, 8, 4, 4, 4, 4, 0, 0, 2, 0, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0, 1, 0, 4, 0x69, 0,
    ];

    #[test]
    fn every_field() {
        let trace = trace(&LINE, Traced::Tile, &options());
        assert!(trace.fault.is_none());
        let expected = [
            "0..49 frame 0: layer 0, version 2",
            "  0..1 frame size: 48",
            "  1..2 tag: 0x02",
            "  2..4 layer name: \"l\"",
            "  4..5 layer header: 0x26",
            "  5..6 feature count: 1",
            "  6..7 layer layout: 0x04",
            "  7..48 geometry, layout 4: ",
            "    7..10 PartLengths: plain, VarInt; 1 elements in 1 bytes",
            "      7..8 encoding: 0x08: plain / VarInt",
            "      8..9 byte length: 1",
            "      9..10 varints: 1 words",
            "      9..10 values: [3]",
            "    10..48 Vertices: rANS; 3 elements in 35 bytes",
            "      10..11 encoding: 0xd0: rANS",
            "      11..12 value count: 3",
            "      12..13 byte length: 35",
            "      13..14 depth: 1",
            "      14..26 tables: slots by context: 0: 2^1, 1: 2^0, 6: 2^0, 8: 2^0, 13: 2^0",
            "      26..30 lane lengths: ",
            "      30..34 lane 0: state 0x20000, 0 words",
            "      34..38 lane 1: state 0x10000, 0 words",
            "      38..42 lane 2: state 0x20001, 0 words",
            "      42..46 lane 3: state 0x10000, 0 words",
            "      46..48 raw bits: 2 bytes",
            "  48..49 column count: 0",
        ];
        assert_eq!(lines(&trace), expected);
        let geometry = super::trace(&LINE, Traced::Geometry(0), &options());
        assert_eq!(geometry.steps.len(), 18);
        assert_eq!(super::trace(&LINE, Traced::Layer(1), &options()).steps, []);
    }

    /// Bytes of types and encodings say what they mean, in both versions.
    #[test]
    fn meanings() {
        // Three features: types, of which one is none, then positions; and a number, which one of them lacks.
        let data = [
            &[2, 0x30, 0x02, 3, 3, 0, 2, 9][..],
            &[0x13, 0x42, 6, 6, 2, 2, 2, 2, 2, 2],
            &[0x00, 0x00, 3, 1, 0b110, 0x10, 0x02, 2, 2, 5, 6],
        ];
        let head = [&[1, 1, b'l', 0x80, 0x20, 2, 4, 0x11, 1, b'n'][..], &data.concat()].concat();
        let tile = [&[u8::try_from(head.len()).unwrap()][..], &head].concat();
        let told = lines(&trace(&tile, Traced::Tile, &options())).join("\n");
        for line in [
            "column type: 0x04: geometry",
            "column type: 0x11: Int32",
            "stream type: 0x30: Types",
            "encoding: 0x02: plain / VarInt",
            "values: [Point, Polygon, 9]",
            "stream type: 0x13: Vertices",
            "encoding: 0x42: componentwise Delta / VarInt",
            "stream type: 0x00: Present",
            "stream type: 0x10: Data",
        ] {
            assert!(told.contains(line), "{line} in\n{told}");
        }
        let column = [2, 1, b'l', 0x16, 1, 0, 0x88, 0, 0, 1, 6, 1, b'n', 0x08, 1, 7];
        let tile = [&[u8::try_from(column.len()).unwrap()][..], &column].concat();
        let told = lines(&trace(&tile, Traced::Tile, &options())).join("\n");
        assert!(told.contains("column type: 0x06: UInt32"), "{told}");
    }

    /// What a payload is made of does not depend on the column before it, and is told to the last byte.
    #[test]
    fn payloads() {
        // A float, then an integer as it is, and text of whose bytes the last two are no value's.
        let columns: [&[u8]; 3] = [
            &[9, 1, b'f', 0x00, 0, 0, 0x80, 0x3f],
            &[6, 1, b'n', 0x00, 7, 0, 0, 0],
            &[11, 1, b't', 0x00, 1, 0, 0, 0, 0x04, 3, b'a', b'b', b'c'],
        ];
        let body = [&[2, 1, b'l', 0x16, 1, 0, 0x00, 0, 0, 0, 0, 2, 0, 0, 0, 3][..], &columns.concat()].concat();
        let tile = [&[u8::try_from(body.len()).unwrap()][..], &body].concat();
        let trace = trace(&tile, Traced::Tile, &options());
        assert!(trace.fault.is_none(), "{trace:?}");
        let told = lines(&trace).join("\n");
        for line in [
            "8..16 words: 2 little-endian words",
            "21..25 values: [1.0]",
            "29..33 words: 1 little-endian words",
            "37..41 words: 1 little-endian words",
            "43..44 value 0: \"a\"",
            "44..46 other bytes: 2",
        ] {
            assert!(told.contains(line), "{line} in\n{told}");
        }
        assert_eq!(told.matches("little-endian").count(), 3, "{told}");
    }

    /// Pages of FastPFOR that are not shown each are told together.
    #[test]
    fn many_pages() {
        let pages = SHOWN + 2;
        let n = pages * fastpfor::PAGE;
        let mut payload = u32::try_from(n).unwrap().to_le_bytes().to_vec();
        for _ in 0..pages {
            // Blocks of no bits, and no exceptions.
            payload.extend([1u32, 1024].iter().flat_map(|word| word.to_le_bytes()));
            payload.extend([0; 1024 + 4]);
        }
        let uleb = |mut value: usize| {
            let mut bytes = Vec::new();
            while value > 127 {
                bytes.push(value.to_le_bytes()[0] | 0x80);
                value >>= 7;
            }
            bytes.push(value.to_le_bytes()[0]);
            bytes
        };
        // Types of as many features as the layer has: all points, at vertices that are no more.
        let types = [&[0x0c][..], &uleb(payload.len()), &payload].concat();
        let head = [&[2, 1, b'l', 0x06][..], &uleb(n), &[1]].concat();
        let run = [&uleb(n)[..], &[0]].concat();
        let offsets = [&[0x20][..], &uleb(run.len()), &run].concat();
        let body = [&head[..], &types, &[0x88, 1, 2, 0, 0], &offsets, &[0]].concat();
        let tile = [&uleb(body.len())[..], &body].concat();
        let trace = trace(&tile, Traced::Tile, &options());
        assert!(trace.fault.is_none(), "{:?}", trace.fault);
        let told = lines(&trace);
        let others = told.iter().find(|line| line.contains("pages ")).expect("other pages");
        assert!(others.ends_with(&format!("pages {SHOWN} to {}: 2 more", pages - 1)), "{others}");
        let start = (tile.len() - payload.len() - 5 - offsets.len() - 1) as u64;
        let page = 1036;
        let (from, to) = (start + 4 + SHOWN as u64 * page, start + 4 + pages as u64 * page);
        assert!(others.contains(&format!(" {from}..{to} ")), "{others}, from {start}");
    }

    /// The fault of a payload is that of its decoder.
    #[test]
    fn faults_of_decoders() {
        // Types in runs of version 1: of two values, in words of too few bytes, of wrong sums, cut, too many.
        let payloads: [&[u8]; 6] =
            [&[2], &[2, 0, 9], &[3, 0], &[1, 0], &[0x82, 0x80], &[0x80, 0x80, 0x80, 0x80, 0x80, 1]];
        let pairs: [&[u8]; 6] =
            [&[3, 0, 1], &[1, 0, 9, 9, 9], &[2], &[1, 0x80], &[0x82], &[0x80, 0x80, 0x80, 0x80, 0x80, 1]];
        let tiles = payloads.map(|payload| {
            let len = u8::try_from(payload.len()).unwrap();
            [&[1, 1, b'l', 1, 1, 4, 2, 0x30, 0x62, 2, len, 1, 2][..], payload, &[0x13, 0x02, 4, 4, 0, 0, 0, 0]].concat()
        });
        let second = pairs.map(|payload| {
            let len = u8::try_from(payload.len()).unwrap();
            [&[2, 1, b'l', 0x06, 2, 0, 0x20, len][..], payload, &[0x08, 4, 0, 0, 0, 0, 0]].concat()
        });
        for body in tiles.into_iter().chain(second) {
            let tile = [&[u8::try_from(body.len()).unwrap()][..], &body].concat();
            let opened = Tile::open(&tile, &options()).unwrap();
            let decoded = Decoder::with_options(options()).tile(&opened, &mut crate::mlt::TileData::new());
            let traced = trace(&tile, Traced::Tile, &options()).fault;
            let told = |fault: Option<Error>| fault.map(|fault| fault.to_string());
            assert_eq!(told(traced), told(decoded.err()), "{tile:x?}");
        }
    }

    /// Steps end at a fault: of a header, of a payload, between streams.
    #[test]
    fn faults() {
        let mut cases = Vec::new();
        for (at, byte) in [(13, 3), (10, 0x60), (9, 2), (48, 1)] {
            let mut bytes = LINE;
            bytes[at] = byte;
            let trace = trace(&bytes, Traced::Tile, &options());
            let fault = trace.fault.expect("a fault");
            cases.push((fault.kind().name(), fault.offset(), trace.steps.len(), trace.steps[0].span.clone()));
        }
        let expected = [
            ("rans_parameter", Some(13), 17, 0..13),
            ("unknown_code", Some(10), 15, 0..11),
            ("rans_runs", Some(13), 26, 0..49),
            ("truncated", Some(49), 27, 0..49),
        ];
        assert_eq!(cases, expected);
    }

    /// Few bytes that mean very many values give few steps, and take no time; neither do many of them.
    #[test]
    fn bounded() {
        // Columns of 2^20 equal values: a run each, in six bytes.
        let column = [5, 4, b'a', b'a', b'a', b'a', 0x20, 4, 0x80, 0x80, 0x40, 7];
        let mut body = vec![2, 1, b'l', 0x16, 0x80, 0x80, 0x40, 0, 0x88, 0, 0, 0xe8, 7];
        for number in 0..1000u32 {
            let mut column = column;
            column[2..6].copy_from_slice(&format!("{number:04}").into_bytes());
            body.extend(column);
        }
        let size = u32::try_from(body.len()).unwrap();
        let mut tile = vec![u8::try_from(size & 0x7f).unwrap() | 0x80, u8::try_from(size >> 7).unwrap()];
        tile.extend(body);
        let trace = trace(&tile, Traced::Column(0, 999), &options());
        assert_eq!(trace.steps.len(), 8, "{trace:?}");
        let limits = Limits { max_output_bytes: 1 << 18, ..Limits::default() };
        let trace = super::trace(&tile, Traced::Tile, &options().limits(limits));
        assert_eq!(trace.fault.expect("too much").kind().name(), "limit_exceeded");
        assert!(trace.steps.len() < 3_000);
    }
}
