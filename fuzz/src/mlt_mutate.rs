//! Changes to the structure of map tiles, for the fuzzer. Parts are found by the trace of a layer, up to its first fault;
//! sizes and counts around what is changed stay right, so that the change is seen, and not only that something is cut off.

use std::collections::BTreeMap;
use std::ops::Range;

use tilekern::kernels::Kernels;
use tilekern::mlt::encoding::integers;
use tilekern::mlt::{Logical, Options, Physical, Traced, trace};

use super::mlt::limits;
use super::mlt_build::Dice;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A part is left out.
    Drop,
    /// A part of the donor comes before one of its kind.
    Insert,
    /// A part of the donor is in place of one of its kind.
    Replace,
    /// Two parts of a kind change places.
    Swap,
    /// A part moves before another of its kind.
    Move,
    /// Another type, layout or encoding, and nothing else.
    Code,
    /// Another count, everywhere or in one place, and nothing else.
    Count,
    /// Another count of values and as many values, in one stream or in all that have as many.
    Resize,
    /// A stream has the payload of another one of the donor.
    Payload,
    /// A stream has the same words in another encoding.
    Transcode,
    /// A frame is left out, comes from the donor, or changes places with another.
    Frames,
}

impl Change {
    /// All of them.
    pub const ALL: [Change; 11] = [
        Change::Drop,
        Change::Insert,
        Change::Replace,
        Change::Swap,
        Change::Move,
        Change::Code,
        Change::Count,
        Change::Resize,
        Change::Payload,
        Change::Transcode,
        Change::Frames,
    ];

    /// Makes it somewhere in a tile, if there is a place for it. A tile can be its own donor.
    pub fn make(self, tile: &[u8], donor: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
        let (own, others) = (frames(tile), frames(donor));
        let other = &donor[dice.pick(&others)?.clone()];
        let (frame, second) = (dice.pick(&own)?.clone(), dice.pick(&own)?.clone());
        let [first, last] = if frame.start < second.start { [&frame, &second] } else { [&second, &frame] };
        let changed = if self != Change::Frames {
            let layer = Layer::of(&tile[frame.clone()])?.changed(self, &Layer::of(other)?, dice)?;
            [&tile[..frame.start], &layer, &tile[frame.end..]].concat()
        } else {
            match dice.below(4) {
                0 => [&tile[..frame.start], &tile[frame.end..]].concat(),
                1 => [&tile[..frame.start], other, &tile[frame.start..]].concat(),
                2 => [&tile[..frame.start], other, &tile[frame.end..]].concat(),
                _ if first == last => return None,
                _ => [
                    &tile[..first.start],
                    &tile[last.clone()],
                    &tile[first.end..last.start],
                    &tile[first.clone()],
                    &tile[last.end..],
                ]
                .concat(),
            }
        };
        Some(changed).filter(|changed| changed != tile)
    }
}

/// Makes some change in a tile, the same for the same seed, if one of a few that are tried has a place.
pub fn mutate(tile: &[u8], donor: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut dice = Dice::of(seed);
    (0..8).find_map(|_| dice.pick(&Change::ALL)?.make(tile, donor, &mut dice))
}

/// libFuzzer's mutation of an input with a tile behind so many bytes, for half of all seeds.
pub fn mutate_input(data: &mut [u8], size: usize, max_size: usize, seed: u32, before: usize) -> Option<usize> {
    let tile = data.get(before..size).filter(|_| seed.is_multiple_of(2))?;
    let changed = mutate(tile, tile, seed / 2)?;
    let end = before + changed.len();
    data.get_mut(before..end).filter(|_| end <= max_size)?.copy_from_slice(&changed);
    Some(end)
}

/// libFuzzer's crossing of two such inputs, for few seeds; 0 where there is none.
pub fn cross_inputs(one: &[u8], other: &[u8], out: &mut [u8], seed: u32, before: usize) -> usize {
    let mut crossed = || {
        let tile = one.get(before..).filter(|_| seed.is_multiple_of(4))?;
        let changed = mutate(tile, other.get(before..)?, seed / 4)?;
        let end = before + changed.len();
        let out = out.get_mut(..end)?;
        out[..before].copy_from_slice(&one[..before]);
        out[before..].copy_from_slice(&changed);
        Some(end)
    };
    crossed().unwrap_or(0)
}

/// Where the frames of a tile are, up to one that is cut off.
fn frames(tile: &[u8]) -> Vec<Range<usize>> {
    let (mut frames, mut start) = (Vec::new(), 0);
    while let Some((size, rest)) = varint(&tile[start..]) {
        let body = tile.len() - rest.len();
        let end = usize::try_from(size).ok().filter(|size| (1..=rest.len()).contains(size)).map(|size| body + size);
        let Some(end) = end else { break };
        frames.push(start..end);
        start = end;
    }
    frames
}

/// A number, and what is behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let value = (0u32..).zip(&bytes[..len]).fold(0, |value, (i, byte)| value | u64::from(byte & 0x7f) << (7 * i));
    Some((value, &bytes[len..]))
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Fields that say of which type or encoding something is.
const CODES: [&str; 11] = [
    "tag",
    "layer header",
    "layer layout",
    "column type",
    "child type",
    "node type",
    "row shapes",
    "stream type",
    "encoding",
    "ALP scale",
    "z step",
];

/// Fields with numbers that nothing is cut by.
const NUMBERS: [&str; 8] =
    ["extent", "feature count", "value count", "runs", "values in runs", "Morton bits", "Morton shift", "ALP base"];

/// Fields with the number of parts, of which a part has at most one.
const COUNTS: [&str; 5] = ["column count", "column counts", "child count", "stream count", "field count"];

/// Parameters in a stream's header, which come last.
const PARAMETERS: [&str; 7] =
    ["runs", "values in runs", "Morton bits", "Morton shift", "ALP scale", "ALP base", "z step"];

/// A step of a layer's trace.
struct Step {
    label: String,
    span: Range<usize>,
    depth: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Column,
    Child,
    Node,
    Stream,
}

/// Something that can be left out, or be in another place.
struct Part {
    kind: Kind,
    step: usize,
    /// One; of a column of version 1 metadata and data.
    spans: Vec<Range<usize>>,
    /// The field that counts parts such as this one, and whether it is one of those that the odd bits count.
    count: Option<(usize, bool)>,
    /// Fields that count the streams of it, among others.
    stream_counts: Vec<usize>,
    streams: usize,
}

/// A frame, and what its trace finds.
struct Layer<'a> {
    bytes: &'a [u8],
    /// Where its size ends.
    start: usize,
    version: u8,
    steps: Vec<Step>,
    parts: Vec<Part>,
}

/// Bytes for each span of a part, and how many streams are in them.
type Content = (Vec<Vec<u8>>, usize);

impl<'a> Layer<'a> {
    fn of(bytes: &'a [u8]) -> Option<Layer<'a>> {
        let start = bytes.len() - varint(bytes)?.1.len();
        let options = Options::with_kernels(Kernels::auto()).limits(limits());
        let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let steps = trace(bytes, Traced::Tile, &options).steps.into_iter();
        let steps = steps
            .map(|it| Step { span: at(it.span.start)..at(it.span.end), label: it.label, depth: it.depth })
            .collect();
        let mut layer = Layer { bytes, start, version: *bytes.get(start)?, steps, parts: Vec::new() };
        layer.find_parts();
        Some(layer)
    }

    fn find_parts(&mut self) {
        let steps = &self.steps;
        // What is open: steps, and the field of each that counts parts.
        let mut open: Vec<(usize, Option<usize>)> = Vec::new();
        let (mut parts, mut columns, mut of_children): (Vec<Part>, _, _) = (Vec::new(), 0, None);
        for (i, step) in steps.iter().enumerate() {
            open.truncate(step.depth.into());
            if COUNTS.contains(&&step.label[..])
                && let Some(holder) = open.last_mut()
            {
                holder.1 = Some(i);
            }
            let counts = open.iter().filter_map(|it| it.1);
            let stream_counts: Vec<usize> = counts.filter(|&count| steps[count].label == "stream count").collect();
            let counted = open.last().and_then(|holder| holder.1);
            open.push((i, None));
            let field = |n: usize| steps.get(i + n).filter(|it| it.depth == step.depth + 1).map(|it| &it.label[..]);
            let (kind, count) = match (field(1), field(2)) {
                (Some("encoding"), _) | (Some("stream type"), Some("encoding")) => (Kind::Stream, None),
                (Some("column type"), _) => {
                    let odd = |count: usize| {
                        steps[count].label == "column counts" && columns >= every_second(self.number(count))
                    };
                    let count = counted.map(|count| (count, odd(count)));
                    columns += 1;
                    of_children = None;
                    (Kind::Column, count)
                }
                (Some("child type"), _) => {
                    // A dictionary goes with its children.
                    if let Some(owner) = parts.iter_mut().rfind(|it| it.kind == Kind::Column) {
                        owner.spans[0].end = step.span.end;
                    }
                    (Kind::Child, of_children.map(|count| (count, false)))
                }
                (Some("node type"), _) => {
                    let fields = counted.filter(|&count| steps[count].label == "field count");
                    (Kind::Node, fields.map(|count| (count, false)))
                }
                _ if step.label == "child count" => {
                    of_children = Some(i);
                    continue;
                }
                _ => {
                    // Columns of version 1 have their data elsewhere.
                    let name = step.label.strip_suffix("data");
                    let of = |it: &&mut Part| name.is_some() && steps[it.step].label.strip_suffix("metadata") == name;
                    if let Some(column) = parts.iter_mut().find(of) {
                        column.spans.push(step.span.clone());
                        column.stream_counts = stream_counts;
                    }
                    continue;
                }
            };
            let spans = vec![step.span.clone()];
            parts.push(Part { kind, step: i, spans, count, stream_counts, streams: 0 });
        }
        // The trace may not come to the data.
        parts.retain(|it| it.spans.len() == 2 || !steps[it.step].label.ends_with("metadata"));
        let streams = parts.iter().filter(|it| it.kind == Kind::Stream);
        let streams: Vec<usize> = streams.map(|it| it.spans[0].start).collect();
        for part in &mut parts {
            let within = |at: &&usize| part.spans.iter().any(|span| span.contains(at));
            part.streams = streams.iter().filter(within).count();
        }
        self.parts = parts;
    }

    fn number(&self, step: usize) -> u64 {
        varint(&self.bytes[self.steps[step].span.clone()]).map_or(0, |(value, _)| value)
    }

    /// Fields of such labels.
    fn fields(&self, labels: &[&str]) -> Vec<usize> {
        (0..self.steps.len()).filter(|&i| labels.contains(&self.steps[i].label.as_str())).collect()
    }

    fn content(&self, part: &Part) -> Content {
        (part.spans.iter().map(|span| self.bytes[span.clone()].to_vec()).collect(), part.streams)
    }

    /// A part, and one of its kind.
    fn pair<'l>(&'l self, other: &'l Layer<'_>, dice: &mut Dice) -> Option<(&'l Part, &'l Part)> {
        let part = dice.pick(&self.parts)?;
        let alike = |it: &&Part| it.kind == part.kind && it.spans.len() == part.spans.len();
        let all: Vec<&Part> = other.parts.iter().filter(alike).collect();
        Some((part, dice.pick(&all)?))
    }

    /// The frame with a change.
    fn changed(&self, change: Change, donor: &Layer<'_>, dice: &mut Dice) -> Option<Vec<u8>> {
        let mut edits = Edits { layer: self, splices: Vec::new(), counts: BTreeMap::new() };
        match change {
            Change::Drop => edits.put(dice.pick(&self.parts)?, None, true),
            Change::Insert | Change::Replace => {
                let (part, other) = self.pair(donor, dice)?;
                edits.put(part, Some(donor.content(other)), change == Change::Replace);
            }
            Change::Swap => {
                let (part, other) = self.pair(self, dice)?;
                edits.put(part, Some(self.content(other)), true);
                edits.put(other, Some(self.content(part)), true);
            }
            Change::Move => {
                let (part, other) = self.pair(self, dice)?;
                edits.put(part, None, true);
                edits.put(other, Some(self.content(part)), false);
            }
            Change::Code => {
                let field = &self.steps[*dice.pick(&self.fields(&CODES))?];
                let code = *self.bytes.get(field.span.start)?;
                let others = donor.fields(&[&field.label]);
                let bits = dice.below(256).to_le_bytes()[0];
                let code = match dice.below(4) {
                    0 => code ^ 1 << (bits % 8),
                    1 => code & 0xf0 | bits & 0x0f,
                    2 => code & 0x0f | bits & 0xf0,
                    _ => *donor.bytes.get(donor.steps[*dice.pick(&others)?].span.start)?,
                };
                edits.splices.push((field.span.clone(), vec![code]));
            }
            Change::Count => {
                let fields = self.fields(&NUMBERS);
                let count = self.number(*dice.pick(&fields)?);
                let other = other_count(count, donor.number(*dice.pick(&donor.fields(&NUMBERS))?), dice);
                let everywhere = dice.below(2) == 0;
                let mut fields: Vec<usize> = fields.into_iter().filter(|&field| self.number(field) == count).collect();
                if !everywhere {
                    fields = vec![*dice.pick(&fields)?];
                }
                fields.into_iter().for_each(|field| edits.set(field, other));
            }
            Change::Resize => {
                let all = self.streams();
                let (part, stream) = dice.pick(&all)?;
                let count = stream.count(self.version);
                let (_, other) = dice.pick(&all)?;
                let to = other_count(count, other.count(self.version), dice).min(1 << 10);
                let everywhere = dice.below(2) == 0;
                for (it, stream) in &all {
                    if it.step == part.step || everywhere && stream.count(self.version) == count {
                        let stream = stream.resized(to, self.version);
                        edits.splices.push((it.spans[0].clone(), stream.written(self.version)));
                    }
                }
                for field in self.fields(&["feature count"]).into_iter().filter(|_| everywhere) {
                    if self.number(field) == count {
                        edits.set(field, to);
                    }
                }
            }
            Change::Payload => {
                let (all, others) = (self.streams(), donor.streams());
                let (part, mut stream) = dice.pick(&all)?.clone();
                stream.payload.clone_from(&dice.pick(&others)?.1.payload);
                edits.splices.push((part.spans[0].clone(), stream.written(self.version)));
            }
            Change::Transcode => {
                let all = self.streams();
                let (part, stream) = dice.pick(&all)?;
                let stream = stream.transcoded(self.version, dice)?;
                edits.splices.push((part.spans[0].clone(), stream.written(self.version)));
            }
            Change::Frames => return None,
        }
        edits.applied()
    }

    fn streams(&self) -> Vec<(&Part, Stream)> {
        let parts = self.parts.iter().filter(|part| part.kind == Kind::Stream);
        parts.map(|part| (part, self.stream(part))).collect()
    }

    fn stream(&self, part: &Part) -> Stream {
        let mut stream = Stream::default();
        let mut end = part.spans[0].start;
        for (i, step) in self.steps.iter().enumerate().skip(part.step + 1) {
            let bytes = &self.bytes[step.span.clone()];
            match &step.label[..] {
                "stream type" => stream.kind = bytes.to_vec(),
                "encoding" => stream.encoding = bytes.first().copied().unwrap_or(0),
                "value count" => stream.count = Some(self.number(i)),
                "byte length" => stream.length = true,
                label if PARAMETERS.contains(&label) => stream.parameters.extend_from_slice(bytes),
                _ => break,
            }
            end = step.span.end;
        }
        stream.payload = self.bytes[end..part.spans[0].end.max(end)].to_vec();
        stream
    }
}

/// A count in place of another.
fn other_count(count: u64, other: u64, dice: &mut Dice) -> u64 {
    let few = [0, 1, count.saturating_sub(1), count.saturating_add(1), count.saturating_mul(2), other];
    dice.pick(&few).copied().unwrap_or(0)
}

/// The number that every second bit from the lowest one makes.
fn every_second(bits: u64) -> u64 {
    (0..32).fold(0, |number, bit| number | (bits >> (2 * bit) & 1) << bit)
}

/// The bits of a number, apart.
fn apart(number: u64) -> u64 {
    (0..32).fold(0, |bits, bit| bits | (number >> bit & 1) << (2 * bit))
}

/// What becomes of a frame's bytes.
struct Edits<'l, 'a> {
    layer: &'l Layer<'a>,
    splices: Vec<(Range<usize>, Vec<u8>)>,
    /// By how much the parts change that fields count, and those that odd bits count.
    counts: BTreeMap<usize, [i64; 2]>,
}

impl Edits<'_, '_> {
    /// Has bytes, or none, before a part or in place of it.
    fn put(&mut self, at: &Part, content: Option<Content>, over: bool) {
        let signed = |n: usize| i64::try_from(n).unwrap_or(0);
        let before = if over { [1, signed(at.streams)] } else { [0, 0] };
        let after = content.as_ref().map_or([0, 0], |content| [1, signed(content.1)]);
        if let Some((count, odd)) = at.count {
            self.counts.entry(count).or_default()[usize::from(odd)] += after[0] - before[0];
        }
        for &count in &at.stream_counts {
            self.counts.entry(count).or_default()[0] += after[1] - before[1];
        }
        let content = content.map_or_else(|| vec![Vec::new(); at.spans.len()], |content| content.0);
        let span = |span: &Range<usize>| span.start..if over { span.end } else { span.start };
        self.splices.extend(at.spans.iter().map(span).zip(content));
    }

    fn set(&mut self, field: usize, value: u64) {
        let mut bytes = Vec::new();
        put_varint(value, &mut bytes);
        self.splices.push((self.layer.steps[field].span.clone(), bytes));
    }

    /// The frame with all that, unless some of it is within other.
    fn applied(mut self) -> Option<Vec<u8>> {
        for (field, by) in std::mem::take(&mut self.counts) {
            let count = self.layer.number(field);
            let count = if self.layer.steps[field].label == "column counts" {
                let [columns, of_vertices] = [count, count >> 1].map(every_second);
                apart(columns.saturating_add_signed(by[0])) | apart(of_vertices.saturating_add_signed(by[1])) << 1
            } else {
                count.saturating_add_signed(by[0])
            };
            self.set(field, count);
        }
        self.splices.sort_by_key(|(span, _)| (span.start, span.end));
        let (mut body, mut at) = (Vec::new(), self.layer.start);
        for (span, bytes) in &self.splices {
            body.extend_from_slice(self.layer.bytes.get(at..span.start)?);
            body.extend_from_slice(bytes);
            at = span.end;
        }
        body.extend_from_slice(&self.layer.bytes[at..]);
        let mut frame = Vec::new();
        put_varint(body.len() as u64, &mut frame);
        frame.extend(body);
        Some(frame)
    }
}

/// A stream, in pieces.
#[derive(Clone, Default)]
struct Stream {
    /// A byte in version 1.
    kind: Vec<u8>,
    encoding: u8,
    count: Option<u64>,
    /// Whether its header has the payload's length.
    length: bool,
    parameters: Vec<u8>,
    payload: Vec<u8>,
}

impl Stream {
    fn written(&self, version: u8) -> Vec<u8> {
        let mut out = [&self.kind[..], &[self.encoding]].concat();
        // The bit says in version 2 whether there is a count.
        if let Some(count) = self.count.filter(|_| version == 1 || self.encoding & 0x80 != 0) {
            put_varint(count, &mut out);
        }
        if self.length {
            put_varint(self.payload.len() as u64, &mut out);
        }
        [&out[..], &self.parameters, &self.payload].concat()
    }

    /// The physical encoding, and the code of the logical one.
    fn encodings(&self, version: u8) -> (u8, u8) {
        if version == 1 {
            (self.encoding & 3, self.encoding >> 2)
        } else {
            (self.encoding >> 2 & 3, self.encoding >> 4 & 7)
        }
    }

    /// Whether its header has the number of runs.
    fn has_runs(&self, version: u8) -> bool {
        version == 1 && !self.parameters.is_empty() && matches!(self.encoding & 0xfc, 0x60 | 0x2c)
    }

    /// The words, where they are stored by themselves.
    fn words(&self, version: u8) -> Option<Vec<u64>> {
        match (version, self.encodings(version)) {
            (_, (2, _)) => {
                let (mut words, mut rest) = (Vec::new(), &self.payload[..]);
                while !rest.is_empty() {
                    let (word, behind) = varint(rest)?;
                    words.push(word);
                    rest = behind;
                }
                Some(words)
            }
            (1, (0, _)) | (2, (1, _) | (0, 0)) => {
                let (words, rest) = self.payload.as_chunks::<4>();
                rest.is_empty().then(|| words.iter().map(|&word| u32::from_le_bytes(word).into()).collect())
            }
            _ => None,
        }
    }

    /// As its header has it, or else as many as there are words.
    fn count(&self, version: u8) -> u64 {
        self.count.unwrap_or_else(|| self.words(version).map_or(0, |words| words.len() as u64))
    }

    /// With so many values, of which further ones are like the last; without words, none or the same.
    fn resized(&self, to: u64, version: u8) -> Stream {
        let mut resized = Stream { count: Some(to), ..self.clone() };
        if version != 1 {
            resized.encoding |= 0x80;
        }
        if to == 0 {
            resized.payload.clear();
            if self.has_runs(version) {
                resized.parameters = vec![0; 2];
            }
        } else if let Some(mut words) = self.words(version).filter(|_| !self.has_runs(version)) {
            let of_value = (words.len() as u64).checked_div(self.count(version)).unwrap_or(1);
            let len = usize::try_from(to * of_value.min(3)).unwrap_or(0);
            words.resize(len, words.last().copied().unwrap_or(0));
            resized.payload.clear();
            let physical = if self.encodings(version).0 == 2 { Physical::VarInt } else { Physical::None };
            resized.store(physical, Logical::None, &words);
        }
        resized
    }

    /// Appends words to the payload. Returns how many words those are, and how many runs.
    fn store(&mut self, physical: Physical, logical: Logical, words: &[u64]) -> (u32, u32) {
        let narrow: Option<Vec<u32>> = words.iter().map(|&word| u32::try_from(word).ok()).collect();
        let (logical, count) = match narrow {
            Some(words) => integers::encode(physical, logical, false, &words, &mut self.payload),
            None => integers::encode(physical, logical, false, words, &mut self.payload),
        };
        (count, if let Logical::Rle { runs } = logical { runs } else { 0 })
    }

    /// The same words, which mean the same, in another encoding.
    fn transcoded(&self, version: u8, dice: &mut Dice) -> Option<Stream> {
        let words = self.words(version)?;
        let wide = words.iter().any(|&word| word > u32::MAX.into());
        let mut out = Stream { length: true, payload: Vec::new(), ..self.clone() };
        let (_, logical) = self.encodings(version);
        let way = dice.below(5);
        let physical = match way {
            0 => Physical::None,
            1 if version == 1 && wide => return None,
            1 if version == 1 => Physical::FastPfor256,
            1 => Physical::FastPfor128,
            _ => Physical::VarInt,
        };
        match (version, way, logical) {
            (1, 3 | 4, 0x00 | 0x08) => {
                let (count, runs) = out.store(physical, Logical::Rle { runs: 0 }, &words);
                out.count = Some(count.into());
                out.encoding = if logical == 0 { 0x62 } else { 0x2e };
                out.parameters.clear();
                put_varint(runs.into(), &mut out.parameters);
                put_varint(words.len() as u64, &mut out.parameters);
            }
            (1, 0..=2, _) => {
                out.store(physical, Logical::None, &words);
                out.encoding = self.encoding & 0xfc | [0, 1, 2][way];
            }
            (2, 3, 0 | 1) => {
                out.store(physical, Logical::RlePairs, &words);
                out.encoding = self.encoding & 0x83 | (logical + 2) << 4;
            }
            (2, 4, 0) if !wide => {
                out.store(physical, Logical::BitPacked, &words);
                out.encoding = self.encoding & 0x83 | 0x40;
            }
            (2, 0..=2, _) => {
                out.store(physical, Logical::None, &words);
                out.encoding = self.encoding & 0xf3 | [0x04, 0x0c, 0x08][way];
            }
            _ => return None,
        }
        Some(out)
    }
}
