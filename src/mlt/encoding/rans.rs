//! rANS: differences of vertices as entropy-coded symbols, and the bits that are as good as random as they are.
//!
//! Source: the encodings page, "rANS". The payload has the depth, a table for each of 14 contexts, the lengths of four
//! lanes, the lanes, and the raw bits. The context depends on whether the vertex is the first of a run, and that of a y
//! on how large the difference of x is. Runs are the rings, parts or geometries of the layer.

#[cfg(feature = "encode")]
use std::cmp::Ordering;

use super::{Scratch, fault, room};
use crate::error::{Error, Part};
use crate::input::Input;
use crate::kernels::{RansSeen, RansSlot, RansTable};
use crate::mlt::{MltFault, Options};

const RUNS: Part = Part::Values("", "runs");
const DEPTH: Part = Part::Values("", "depth");
const TABLE: Part = Part::Values("", "table");
const LANE_LENGTH: Part = Part::Values("", "lane length");
const LANE: Part = Part::Values("", "lane");
const VERTEX: Part = Part::Values("", "vertex");
const RAW: Part = Part::Values("", "raw bits");

const MAX_DEPTH: u8 = 2;
const MAX_PRECISION: u32 = 11;
/// The symbol of `i32::MIN` at the largest depth.
const MAX_SYMBOL: u32 = 256;
/// Leading zeros of a frequency.
const MAX_ZEROS: u32 = 12;
/// What a state must be at the end, and at least be before.
const LEAST: u32 = 1 << 16;
/// Tables.
const CONTEXTS: usize = 14;

/// What a payload consists of.
#[derive(Clone, Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) depth: u8,
    /// [`RansTable::NONE`] where a context has none.
    pub(crate) tables: [RansTable; CONTEXTS],
    /// The absolute offset behind the tables.
    pub(crate) tables_end: u64,
    /// The state that each lane starts with, and its words.
    pub(crate) states: [u32; 4],
    pub(crate) lanes: [Input<'a>; 4],
    pub(crate) raw: Input<'a>,
}

impl<'a> Payload<'a> {
    /// Takes a payload apart, and checks all but its symbols. The slots of all tables are put into `slots`.
    pub(crate) fn read(input: Input<'a>, slots: &mut Vec<RansSlot>) -> Result<Payload<'a>, Error> {
        let mut rest = input;
        let depth = rest.byte(DEPTH)?;
        if depth > MAX_DEPTH {
            let kind = MltFault::RansParameter { found: depth.into(), max: MAX_DEPTH.into() };
            return Err(fault(kind, DEPTH).at(input.offset()));
        }
        slots.clear();
        let (mut tables, mut bits) = ([RansTable::NONE; CONTEXTS], Bits { input: rest, at: 0 });
        for (context, table) in tables.iter_mut().enumerate() {
            *table = bits.table(depth, slots).map_err(|e| e.index(context as u64))?;
        }
        rest.take(bits.at.div_ceil(8), TABLE)?;
        let tables_end = rest.offset();
        let mut lengths = [0; 4];
        for (i, length) in lengths.iter_mut().enumerate() {
            let at = rest.offset();
            *length = rest.uleb(32, LANE_LENGTH)?;
            if *length < 4 || *length % 2 == 1 {
                let kind = MltFault::RansLaneLength { found: *length };
                return Err(fault(kind, LANE_LENGTH).at(at).index(i as u64));
            }
        }
        let (mut states, mut lanes) = ([0; 4], [rest; 4]);
        for i in 0..4 {
            let at = rest.offset();
            let mut lane = Input::at(rest.take(lengths[i], LANE).map_err(|e| e.index(i as u64))?, at);
            states[i] = lane.u32(LANE)?;
            lanes[i] = lane;
            if states[i] < LEAST {
                return Err(lane_fault(i).at(at));
            }
        }
        Ok(Payload { depth, tables, tables_end, states, lanes, raw: rest })
    }

    /// Why the symbols of a vertex are not there.
    #[cold]
    fn judge(&self, slots: &[RansSlot], starts: &[u8], seen: &RansSeen) -> Error {
        let vertex = seen.vertices;
        let start = starts[vertex / 8] >> (vertex % 8) & 1;
        let lane = 2 * (vertex % 2);
        let mut context = start;
        if let Some(table) = self.table(context) {
            // Where the word that follows this symbol is missing, the lane is at fault.
            let (slot, state) = slot(slots, table, seen.states[lane]);
            let words = self.lanes[lane].bytes().len() / 2;
            if state < LEAST && seen.words[lane] >= words {
                return lane_fault(lane).at(self.lanes[lane].end());
            }
            let length = slot.symbol.div_ceil(2) >> self.depth;
            context = 2 + 2 * u8::try_from(length.min(5)).unwrap_or(5) + start;
            if self.table(context).is_some() {
                return lane_fault(lane + 1).at(self.lanes[lane + 1].end());
            }
        }
        fault(MltFault::RansContext { found: context }, VERTEX).at(self.lanes[lane].offset()).index(vertex as u64)
    }

    fn table(&self, context: u8) -> Option<RansTable> {
        Some(self.tables[usize::from(context)]).filter(|&table| table != RansTable::NONE)
    }
}

/// The slot that a state names, and what is left of the state.
fn slot(slots: &[RansSlot], table: RansTable, state: u32) -> (RansSlot, u32) {
    let number = state & ((1 << table.precision) - 1);
    let slot = slots[(table.start + number) as usize];
    let left = slot.count.wrapping_mul(state >> table.precision).wrapping_add(slot.nth.into());
    (slot, left)
}

#[cold]
fn lane_fault(lane: usize) -> Error {
    fault(MltFault::RansLane { lane: u8::try_from(lane).unwrap_or(u8::MAX) }, LANE).index(lane as u64)
}

/// Numbers of any bits, the lowest first.
#[derive(Clone, Copy, Debug)]
struct Bits<'a> {
    input: Input<'a>,
    /// Bits taken.
    at: u64,
}

impl Bits<'_> {
    /// 57 bits or more; those behind the end are 0.
    fn window(&self) -> u64 {
        let bytes = usize::try_from(self.at / 8).ok().and_then(|at| self.input.bytes().get(at..)).unwrap_or(&[]);
        let mut window = [0; 8];
        let len = bytes.len().min(8);
        window[..len].copy_from_slice(&bytes[..len]);
        u64::from_le_bytes(window) >> (self.at % 8)
    }

    /// Takes up to 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "of up to 32 bits")]
    fn take(&mut self, bits: u32) -> Result<u32, Error> {
        let value = self.window() & ((1 << bits) - 1);
        let end = self.at + u64::from(bits);
        if end > 8 * self.input.bytes().len() as u64 {
            return Err(self.input.truncated(end.div_ceil(8), TABLE));
        }
        self.at = end;
        Ok(value as u32)
    }

    /// Takes a number that must not be above `max`.
    fn parameter(&mut self, bits: u32, max: u32) -> Result<u32, Error> {
        let before = *self;
        let found = self.take(bits)?;
        if found > max {
            return Err(before.fault(MltFault::RansParameter { found, max }));
        }
        Ok(found)
    }

    /// Takes a frequency: one more in Elias gamma code.
    fn frequency(&mut self) -> Result<u32, Error> {
        let (before, zeros) = (*self, self.window().trailing_zeros());
        // Zeros behind the end are no zeros.
        self.take(zeros.min(MAX_ZEROS) + 1)?;
        if zeros > MAX_ZEROS {
            return Err(before.fault(MltFault::RansGamma { found: zeros }));
        }
        Ok((self.take(zeros)? | 1 << zeros) - 1)
    }

    /// Takes the table of a context.
    fn table(&mut self, depth: u8, slots: &mut Vec<RansSlot>) -> Result<RansTable, Error> {
        if self.take(1)? == 0 {
            return Ok(RansTable::NONE);
        }
        let precision = self.parameter(4, MAX_PRECISION)?;
        let last = self.parameter(9, MAX_SYMBOL)?;
        let table = RansTable { start: u32::try_from(slots.len()).unwrap_or(u32::MAX), precision };
        // One slot needs no frequencies.
        let first = if precision == 0 { last } else { 0 };
        let (size, mut sum) = (1u32 << precision, 0);
        for symbol in first..=last {
            let before = *self;
            let frequency = if precision == 0 { 1 } else { self.frequency()? };
            sum += frequency;
            let name = u16::try_from(symbol).unwrap_or(u16::MAX);
            let kind = if frequency > 0 && !stands_for_difference(symbol, depth) {
                MltFault::RansSymbol { found: name }
            } else if frequency == 0 && symbol == last {
                MltFault::RansLast
            } else if sum > size || sum < size && symbol == last {
                MltFault::RansSum { found: sum.into(), expected: size.into() }
            } else {
                let slot = |nth| RansSlot { symbol: name, nth, count: frequency };
                slots.extend((0..).take(frequency as usize).map(slot));
                continue;
            };
            return Err(before.fault(kind));
        }
        Ok(table)
    }

    #[cold]
    fn fault(&self, kind: MltFault) -> Error {
        fault(kind, TABLE).at(self.input.offset() + self.at / 8)
    }
}

/// Whether some difference has the symbol.
fn stands_for_difference(symbol: u32, depth: u8) -> bool {
    let (code, depth) = (symbol.div_ceil(2), u32::from(depth));
    let (length, mantissa) = (code >> depth, code & ((1 << depth) - 1));
    match length {
        0 => symbol == 0,
        // Bits that a magnitude of so few does not have are 0.
        1..32 => mantissa & ((1 << (depth - depth.min(length - 1))) - 1) == 0,
        // i32::MIN alone.
        _ => length == 32 && mantissa == 0 && symbol.is_multiple_of(2),
    }
}

/// Vertices, x and y in turn, as many as `out` has room for.
///
/// `runs` are the bounds of the runs: the first vertex of each, then the number of vertices; a run may be empty. None:
/// each vertex is a run.
///
/// # Errors
/// Any of the faults `Rans…` of [`MltFault`], or truncated.
///
/// # Panics
/// If `out` holds no whole number of vertices.
pub fn decode(
    payload: Input<'_>,
    runs: Option<&[u32]>,
    out: &mut [i32],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    assert!(out.len().is_multiple_of(2), "vertices of two coordinates");
    let vertices = out.len() / 2;
    let Scratch { slots, vertices: symbols, bytes, .. } = scratch;
    let starts = mark_starts(runs, vertices, bytes).map_err(|e| e.at(payload.offset()))?;
    if vertices == 0 && payload.bytes().is_empty() {
        return Ok(());
    }
    let payload = Payload::read(payload, slots)?;
    let symbols: &mut [[u16; 2]] = bytemuck::cast_slice_mut(room(symbols, vertices));
    let (kernels, depth) = (options.kernels, payload.depth.into());
    let lanes = payload.lanes.map(|lane| lane.bytes());
    let seen = kernels.rans_symbols(slots, &payload.tables, depth, &lanes, &payload.states, starts, symbols);
    if seen.vertices < vertices {
        return Err(payload.judge(slots, starts, &seen));
    }
    for (i, lane) in payload.lanes.iter().enumerate() {
        if seen.states[i] != LEAST || 2 * seen.words[i] != lane.bytes().len() {
            return Err(lane_fault(i).at(lane.end()));
        }
    }
    let found = payload.raw.bytes().len() as u64;
    let expected = kernels.rans_vertices(symbols, depth, payload.raw.bytes(), out).div_ceil(8);
    if found != expected {
        return Err(fault(MltFault::RansRaw { found, expected }, RAW).at(payload.raw.offset()));
    }
    Ok(())
}

/// Sets the bits of the vertices that are the first of a run.
fn mark_starts<'s>(runs: Option<&[u32]>, vertices: usize, memory: &'s mut Vec<u8>) -> Result<&'s [u8], Error> {
    let starts = room(memory, vertices.div_ceil(8));
    let Some(bounds) = runs else {
        starts.fill(u8::MAX);
        return Ok(starts);
    };
    starts.fill(0);
    let found = bounds.last().map_or(0, |&last| u64::from(last));
    let mut sound = bounds.first() == Some(&0) && found == vertices as u64;
    for run in bounds.windows(2) {
        sound &= run[0] <= run[1];
        if run[0] < run[1]
            && let Some(byte) = starts.get_mut(run[0] as usize / 8)
        {
            *byte |= 1 << (run[0] % 8);
        }
    }
    if sound { Ok(starts) } else { Err(fault(MltFault::RansRuns { found, expected: vertices as u64 }, RUNS)) }
}

/// Appends vertices, x and y in turn, with the depth and the precisions that take the fewest bits. `runs` are as for
/// [`decode`].
///
/// # Panics
/// If `vertices` holds no whole number of them, or `runs` do not cover them.
#[cfg(feature = "encode")]
pub fn encode(vertices: &[i32], runs: Option<&[u32]>, out: &mut Vec<u8>) {
    let (vertices, rest) = vertices.as_chunks::<2>();
    assert!(rest.is_empty(), "vertices of two coordinates");
    let mut memory = Vec::new();
    let starts = mark_starts(runs, vertices.len(), &mut memory).expect("runs cover the vertices");
    let payloads = (0..=MAX_DEPTH).map(|depth| {
        let mut payload = Vec::new();
        Coding::of(vertices, starts, depth).write(&mut payload);
        payload
    });
    out.append(&mut payloads.min_by_key(Vec::len).expect("there are depths"));
}

/// How vertices are coded at a depth.
#[cfg(feature = "encode")]
struct Coding {
    depth: u8,
    /// Differences of x and of y in turn.
    differences: Vec<Difference>,
    tables: [Option<Table>; CONTEXTS],
}

#[cfg(feature = "encode")]
#[derive(Clone, Copy)]
struct Difference {
    context: usize,
    symbol: usize,
    raw: u32,
    raw_bits: u32,
}

#[cfg(feature = "encode")]
impl Difference {
    /// All but the context; and the bit length of the magnitude.
    fn of(difference: i32, depth: u8) -> (Difference, u32) {
        let (magnitude, depth) = (difference.unsigned_abs(), u32::from(depth));
        if magnitude == 0 {
            return (Difference { context: 0, symbol: 0, raw: 0, raw_bits: 0 }, 0);
        }
        let length = u32::BITS - magnitude.leading_zeros();
        let kept = depth.min(length - 1);
        let raw_bits = length - 1 - kept;
        let mantissa = (magnitude >> raw_bits) & ((1 << kept) - 1);
        let code = length << depth | mantissa << (depth - kept);
        let symbol = (2 * code - u32::from(difference > 0)) as usize;
        (Difference { context: 0, symbol, raw: magnitude & ((1 << raw_bits) - 1), raw_bits }, length)
    }
}

#[cfg(feature = "encode")]
impl Coding {
    fn of(vertices: &[[i32; 2]], starts: &[u8], depth: u8) -> Coding {
        let (mut differences, mut before) = (Vec::with_capacity(2 * vertices.len()), [0; 2]);
        let mut counts = [[0u32; MAX_SYMBOL as usize + 1]; CONTEXTS];
        for (i, &vertex) in vertices.iter().enumerate() {
            let start = usize::from(starts[i / 8] >> (i % 8) & 1);
            let mut context = start;
            for (now, before) in vertex.into_iter().zip(before) {
                let (difference, length) = Difference::of(now.wrapping_sub(before), depth);
                counts[context][difference.symbol] += 1;
                differences.push(Difference { context, ..difference });
                context = 2 + 2 * length.min(5) as usize + start;
            }
            before = vertex;
        }
        let tables = counts.map(|counts| Table::of(&counts));
        Coding { depth, differences, tables }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.depth);
        let mut bits = BitWriter::new(out);
        for table in &self.tables {
            bits.push(u32::from(table.is_some()), 1);
            if let Some(table) = table {
                table.write(&mut bits);
            }
        }
        bits.finish();
        let lanes = [0, 1, 2, 3].map(|lane| self.lane(lane));
        for lane in &lanes {
            crate::output::push_uleb(lane.len() as u64, out);
        }
        lanes.iter().for_each(|lane| out.extend_from_slice(lane));
        let mut bits = BitWriter::new(out);
        for difference in &self.differences {
            bits.push(difference.raw, difference.raw_bits);
        }
        bits.finish();
    }

    /// The bytes of a lane: what is coded last is read first.
    #[expect(clippy::cast_possible_truncation, reason = "words are the low bits of the state")]
    fn lane(&self, lane: usize) -> Vec<u8> {
        let (mut state, mut words) = (LEAST, Vec::new());
        for &Difference { context, symbol, .. } in self.differences.iter().skip(lane).step_by(4).rev() {
            let table = self.tables[context].as_ref().expect("a table for each context in use");
            let (frequency, below) = (table.frequencies[symbol], table.below(symbol));
            while u64::from(state) >= u64::from(frequency) << (32 - table.precision) {
                words.push(state as u16);
                state >>= 16;
            }
            state = ((state / frequency) << table.precision) + state % frequency + below;
        }
        let words = words.into_iter().rev().flat_map(u16::to_le_bytes);
        state.to_le_bytes().into_iter().chain(words).collect()
    }
}

/// How the symbols of a context share its slots.
#[cfg(feature = "encode")]
struct Table {
    precision: u32,
    frequencies: [u32; MAX_SYMBOL as usize + 1],
    /// Bits of the table and of the symbols that it codes, about.
    bits: f64,
}

#[cfg(feature = "encode")]
impl Table {
    /// The table that takes the fewest bits; none for a context without symbols.
    fn of(counts: &[u32; MAX_SYMBOL as usize + 1]) -> Option<Table> {
        let tables = (0..=MAX_PRECISION).filter_map(|precision| {
            let frequencies = shares(counts, 1 << precision)?;
            let coded = counts.iter().zip(&frequencies).filter(|(count, _)| **count > 0);
            let coded =
                coded.map(|(&count, &share)| f64::from(count) * (f64::from(precision) - f64::from(share).log2()));
            let mut table = Table { precision, frequencies, bits: 0.0 };
            let stored: u32 = table.stored().map(|frequency| 2 * (frequency + 1).ilog2() + 1).sum();
            table.bits = coded.sum::<f64>() + f64::from(13 + stored);
            Some(table)
        });
        tables.min_by(|a, b| a.bits.total_cmp(&b.bits))
    }

    fn last(&self) -> usize {
        self.frequencies.iter().rposition(|&frequency| frequency > 0).unwrap_or(0)
    }

    /// The frequencies that are written.
    fn stored(&self) -> impl Iterator<Item = u32> {
        let stored = if self.precision == 0 { 0 } else { self.last() + 1 };
        self.frequencies.iter().copied().take(stored)
    }

    /// Slots below those of a symbol.
    fn below(&self, symbol: usize) -> u32 {
        self.frequencies[..symbol].iter().sum()
    }

    fn write(&self, bits: &mut BitWriter<'_>) {
        bits.push(self.precision, 4);
        bits.push(u32::try_from(self.last()).expect("256 at most"), 9);
        for frequency in self.stored() {
            let zeros = (frequency + 1).ilog2();
            bits.push(1 << zeros, zeros + 1);
            bits.push((frequency + 1) & ((1 << zeros) - 1), zeros);
        }
    }
}

/// Shares of `size` slots that are near the shares of counts; none if there are too few slots, or no counts.
#[cfg(feature = "encode")]
fn shares<const N: usize>(counts: &[u32; N], size: u32) -> Option<[u32; N]> {
    let used = counts.iter().filter(|count| **count > 0).count();
    if used == 0 || used > size as usize {
        return None;
    }
    let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let mut shares = counts.map(|count| match u64::from(count) * u64::from(size) / all {
        0 => u32::from(count > 0),
        share => u32::try_from(share).expect("no more than all slots"),
    });
    loop {
        let sum: u32 = shares.iter().sum();
        // Of two counts, that with fewer slots for each has more use for one.
        let wanting = |a: u32, b: u32, i: usize, j: usize| {
            (u64::from(counts[i]) * u64::from(b)).cmp(&(u64::from(counts[j]) * u64::from(a)))
        };
        let i = match sum.cmp(&size) {
            Ordering::Equal => return Some(shares),
            Ordering::Less => (0..N).filter(|&i| counts[i] > 0).max_by(|&i, &j| wanting(shares[i], shares[j], i, j)),
            Ordering::Greater => {
                (0..N).filter(|&i| shares[i] > 1).min_by(|&i, &j| wanting(shares[i] - 1, shares[j] - 1, i, j))
            }
        };
        let share = &mut shares[i.expect("a symbol to give or take")];
        *share = if sum < size { *share + 1 } else { *share - 1 };
    }
}

/// Appends numbers of any bits, the lowest first.
#[cfg(feature = "encode")]
struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    held: u64,
    bits: u32,
}

#[cfg(feature = "encode")]
impl<'a> BitWriter<'a> {
    fn new(out: &'a mut Vec<u8>) -> BitWriter<'a> {
        BitWriter { out, held: 0, bits: 0 }
    }

    fn push(&mut self, value: u32, bits: u32) {
        self.held |= u64::from(value) << self.bits;
        self.bits += bits;
        while self.bits >= 8 {
            let [byte, ..] = self.held.to_le_bytes();
            self.out.push(byte);
            self.held >>= 8;
            self.bits -= 8;
        }
    }

    /// Fills up to a whole byte.
    fn finish(mut self) {
        let fill = self.bits.wrapping_neg() % 8;
        self.push(0, fill);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::alike;
    use super::*;

    /// The vertices of a payload, on every level.
    fn decoded(payload: &[u8], runs: Option<&[u32]>, vertices: usize) -> Result<Vec<i32>, Error> {
        alike(|options| {
            let (mut scratch, mut out) = (Scratch::new(), vec![0; 2 * vertices]);
            decode(Input::at(payload, 40), runs, &mut out, options, &mut scratch).map(|()| out)
        })
    }

    const VERTICES: [i32; 6] = [100, 200, 105, 210, 102, 215];
    const EXAMPLE: [u8; 35] = [
        1, 0x63, 0xc1, 0xff, 0x52, 0xe8, 0, 0x61, 0x81, 0xf0, 0, 0x42, 0x08, 4, 4, 4, 4, 0, 0, 2, 0, 0, 0, 1, 0, 1, 0,
        2, 0, 0, 0, 1, 0, 0x04, 0x69,
    ];

    /// A payload by its tables, whose bits are given in order, its lanes and raw bits.
    fn payload(depth: u8, tables: &[&str], lanes: [&[u8]; 4], raw: &[u8]) -> Vec<u8> {
        let bits: Vec<u8> = tables.iter().flat_map(|table| table.bytes()).filter(|bit| *bit != b' ').collect();
        let bytes = bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | (bit - b'0')));
        let lengths = lanes.map(|lane| u8::try_from(lane.len()).unwrap());
        [&[depth], &bytes.collect::<Vec<_>>()[..], &lengths, &lanes.concat(), raw].concat()
    }

    /// The bits of a number, the lowest first.
    fn number(value: u32, bits: u32) -> String {
        (0..bits).map(|bit| if value >> bit & 1 == 1 { '1' } else { '0' }).collect()
    }

    fn gamma(value: u32) -> String {
        let zeros = value.ilog2();
        "0".repeat(zeros as usize) + "1" + &number(value & ((1 << zeros) - 1), zeros)
    }

    fn table(precision: u32, last: u32, frequencies: &[u32]) -> String {
        let gammas: String = frequencies.iter().map(|frequency| gamma(frequency + 1)).collect();
        "1".to_owned() + &number(precision, 4) + &number(last, 9) + &gammas
    }

    const NONE: &str = "0";
    const IDLE: [u8; 4] = [0, 0, 1, 0];

    /// One vertex that starts a run: both tables of one symbol.
    fn vertex(tables: [&str; 2], depth: u8, lanes: [&[u8]; 4], raw: &[u8]) -> Result<Vec<i32>, Error> {
        let mut all = [NONE; CONTEXTS];
        (all[1], all[3]) = (tables[0], tables[1]);
        decoded(&payload(depth, &all, lanes, raw), None, 1)
    }

    fn name<T>(result: Result<T, Error>) -> &'static str {
        result.map_or_else(|error| error.kind().name(), |_| "no error")
    }

    #[test]
    fn worked_example() {
        assert_eq!(decoded(&EXAMPLE, Some(&[0, 3]), 3).unwrap(), VERTICES);
        // Empty runs do not matter.
        assert_eq!(decoded(&EXAMPLE, Some(&[0, 0, 3, 3]), 3).unwrap(), VERTICES);
        #[cfg(feature = "encode")]
        {
            let (mut out, mut memory) = (Vec::new(), Vec::new());
            let starts = mark_starts(Some(&[0, 3]), 3, &mut memory).unwrap();
            Coding::of(VERTICES.as_chunks().0, starts, 1).write(&mut out);
            assert_eq!(out, EXAMPLE);
            out.clear();
            encode(&VERTICES, Some(&[0, 3]), &mut out);
            assert!(out.len() <= EXAMPLE.len());
            assert_eq!(decoded(&out, Some(&[0, 3]), 3).unwrap(), VERTICES);
        }
    }

    #[test]
    fn few_vertices() {
        assert!(decoded(&[], None, 0).unwrap().is_empty());
        let zero = table(0, 0, &[]);
        assert_eq!(vertex([&zero, &zero], 0, [&IDLE; 4], &[]).unwrap(), [0, 0]);
        assert_eq!(name(decoded(&[], None, 1)), "truncated");
    }

    /// The rules that the runs, the depth and the tables must keep.
    #[test]
    fn faults_of_tables() {
        for (runs, vertices) in
            [(&[0, 2][..], 3), (&[1, 3], 3), (&[0, 4], 3), (&[], 3), (&[0, 2, 1, 3], 3), (&[0, 3], 4)]
        {
            let error = decoded(&EXAMPLE, Some(runs), vertices).unwrap_err();
            assert_eq!((error.kind().name(), error.offset()), ("rans_runs", Some(40)), "{runs:?}");
        }
        let zero = table(0, 0, &[]);
        let fault = |depth, table: &str| name(vertex([table, &zero], depth, [&IDLE; 4], &[]));
        assert_eq!(fault(3, &zero), "rans_parameter");
        assert_eq!(fault(255, &zero), "rans_parameter");
        assert_eq!(fault(0, &table(12, 0, &[4096])), "rans_parameter");
        assert_eq!(fault(2, &table(0, 257, &[])), "rans_parameter");
        assert_eq!(fault(0, &("1".to_owned() + &number(1, 4) + &number(0, 9) + &"0".repeat(13))), "rans_gamma");
        assert_eq!(fault(0, &("1".to_owned() + &number(1, 4) + &number(0, 9) + &"0".repeat(200))), "rans_gamma");
        assert_eq!(fault(0, &table(1, 1, &[2, 1])), "rans_frequency_sum");
        assert_eq!(fault(0, &table(2, 1, &[2, 1])), "rans_frequency_sum");
        assert_eq!(fault(0, &table(1, 0, &[8190])), "rans_frequency_sum");
        assert_eq!(fault(0, &table(1, 1, &[2, 0])), "rans_last_symbol");
        let error = vertex([&table(1, 1, &[2, 1]), &zero], 0, [&IDLE; 4], &[]).unwrap_err();
        assert_eq!((error.value_index(), error.offset()), (Some(1), Some(43)));
    }

    /// Of each depth, exactly the symbols of some difference are allowed.
    #[test]
    fn symbols() {
        for depth in 0..=MAX_DEPTH {
            let mut named = [false; MAX_SYMBOL as usize + 1];
            let mut note = |difference: i32| {
                let magnitude = difference.unsigned_abs();
                let symbol = if magnitude == 0 {
                    0
                } else {
                    let length = 32 - magnitude.leading_zeros();
                    let kept = (length - 1).min(depth.into());
                    let mantissa = magnitude >> (length - 1 - kept) & ((1 << kept) - 1);
                    let code = length << depth | mantissa << (u32::from(depth) - kept);
                    2 * code - u32::from(difference > 0)
                };
                named[symbol as usize] = true;
            };
            note(0);
            note(i32::MIN);
            for (bit, low) in (0..31).flat_map(|bit| (0..4).map(move |low| (bit, low))) {
                let magnitude = (1i64 << bit | low << bit >> 2) as i32;
                note(magnitude);
                note(-magnitude);
            }
            let largest = named.iter().rposition(|&named| named).unwrap();
            assert_eq!(largest, 64 << depth);
            for (symbol, named) in (0..=MAX_SYMBOL).zip(named) {
                assert_eq!(stands_for_difference(symbol, depth), named, "{symbol} at depth {depth}");
                if !named {
                    let zero = table(0, 0, &[]);
                    assert_eq!(name(vertex([&table(0, symbol, &[]), &zero], depth, [&IDLE; 4], &[])), "rans_symbol");
                }
            }
        }
    }

    #[test]
    fn faults_of_lanes() {
        let (zero, half) = (table(0, 0, &[]), table(1, 1, &[1, 1]));
        let fault = |lanes: [&[u8]; 4]| {
            let error = vertex([&zero, &zero], 0, lanes, &[]).unwrap_err();
            (error.kind().name(), error.value_index())
        };
        assert_eq!(fault([&IDLE, &[0, 0, 1], &IDLE, &IDLE]), ("rans_lane_length", Some(1)));
        assert_eq!(fault([&[], &IDLE, &IDLE, &IDLE]), ("rans_lane_length", Some(0)));
        assert_eq!(fault([&IDLE, &IDLE, &IDLE, &[0, 0]]), ("rans_lane_length", Some(3)));
        assert_eq!(fault([&IDLE, &IDLE, &IDLE, &[0, 0, 1, 0, 0]]), ("rans_lane_length", Some(3)));
        // Begins too low, ends too high, has a word left.
        assert_eq!(fault([&IDLE, &[255, 255, 0, 0], &IDLE, &IDLE]), ("rans_lane_end", Some(1)));
        assert_eq!(fault([&[1, 0, 1, 0], &IDLE, &IDLE, &IDLE]), ("rans_lane_end", Some(0)));
        assert_eq!(fault([&IDLE, &IDLE, &[0, 0, 1, 0, 0, 0], &IDLE]), ("rans_lane_end", Some(2)));
        // A word is missing: of x, of y.
        let lanes = [&IDLE[..]; 4];
        for (tables, lane) in [([&half, &zero], 0), ([&zero, &half], 1)] {
            let error = vertex([tables[0], tables[1]], 0, lanes, &[]).unwrap_err();
            assert_eq!((error.kind().name(), error.value_index()), ("rans_lane_end", Some(lane)));
        }
        // With it, it is right.
        let refilled: &[u8] = &[0, 0, 1, 0, 0, 0];
        let error = vertex([&half, &zero], 0, [refilled, &IDLE, &IDLE, &IDLE], &[]).unwrap_err();
        assert_eq!(error.kind().name(), "rans_lane_end");
        let twice: &[u8] = &[0, 0, 2, 0];
        assert_eq!(vertex([&half, &zero], 0, [twice, &IDLE, &IDLE, &IDLE], &[]).unwrap(), [0, 0]);
        // A lane past the end.
        let mut cut = payload(0, &[NONE; CONTEXTS], [&IDLE; 4], &[]);
        cut.pop();
        assert_eq!(name(decoded(&cut, None, 1)), "truncated");
    }

    #[test]
    fn contexts_without_tables() {
        let zero = table(0, 0, &[]);
        let fault = |tables: [&str; 2]| {
            let error = vertex(tables, 0, [&IDLE; 4], &[]).unwrap_err();
            (error.kind(), error.value_index())
        };
        let context = |found| crate::ErrorKind::Mlt(MltFault::RansContext { found });
        assert_eq!(fault([NONE, &zero]), (context(1), Some(0)));
        assert_eq!(fault([&zero, NONE]), (context(3), Some(0)));
        // A large x has another context of y.
        assert_eq!(fault([&table(0, 63 + 1, &[]), &zero]), (context(13), Some(0)));
    }

    #[test]
    fn raw_bits() {
        let (zero, nine) = (table(0, 0, &[]), table(0, 7, &[]));
        // Symbol 7 at depth 0 is a magnitude of 4 bits: three are raw.
        let mut all = [NONE; CONTEXTS];
        (all[1], all[11]) = (&nine, &zero);
        let decode = |raw: &[u8]| decoded(&payload(0, &all, [&IDLE; 4], raw), None, 1);
        assert_eq!(decode(&[0b101]).unwrap(), [13, 0]);
        // What fills up the byte does not matter.
        assert_eq!(decode(&[0b1111_1101]).unwrap(), [13, 0]);
        for raw in [&[][..], &[5, 0]] {
            assert_eq!(name(decode(raw)), "rans_raw_bits");
        }
    }

    #[test]
    fn damage() {
        for len in 0..EXAMPLE.len() {
            assert!(decoded(&EXAMPLE[..len], Some(&[0, 3]), 3).is_err());
        }
        for bit in 0..8 * EXAMPLE.len() {
            let mut damaged = EXAMPLE;
            damaged[bit / 8] ^= 1 << (bit % 8);
            // The same on every level: looked at there.
            let _ = decoded(&damaged, Some(&[0, 3]), 3);
        }
    }

    #[cfg(feature = "encode")]
    #[test]
    fn round_trips() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 32) as u32
        };
        for (n, spread) in
            [(0usize, 0), (1, 0), (2, 31), (3, 28), (5, 20), (100, 30), (1001, 24), (5000, 0), (5000, 22)]
        {
            let mut vertices: Vec<i32> = Vec::new();
            for i in 0..2 * n {
                let before = if i < 2 { 0 } else { vertices[i - 2] };
                // Many short steps, some of any length.
                let step = random().cast_signed() >> spread >> (random() % 8).min(31 - spread);
                vertices.push(before.wrapping_add(step));
            }
            let mut bounds = vec![0];
            while let Some(&last) = bounds.last()
                && last < n as u32
            {
                bounds.push((last + random() % 50).min(n as u32));
            }
            for runs in [None, Some(&bounds[..])] {
                let mut out = Vec::new();
                encode(&vertices, runs, &mut out);
                assert_eq!(decoded(&out, runs, n).unwrap(), vertices, "{n}, {spread}");
                for depth in 0..=MAX_DEPTH {
                    let (mut memory, mut out) = (Vec::new(), Vec::new());
                    let starts = mark_starts(runs, n, &mut memory).unwrap();
                    Coding::of(vertices.as_chunks().0, starts, depth).write(&mut out);
                    assert_eq!(decoded(&out, runs, n).unwrap(), vertices, "{n}, {spread}, depth {depth}");
                }
            }
        }
        let extremes = [i32::MIN, i32::MAX, 0, i32::MIN, i32::MAX, -1, -1, i32::MAX, i32::MIN, 0];
        let mut out = Vec::new();
        encode(&extremes, None, &mut out);
        assert_eq!(decoded(&out, None, 5).unwrap(), extremes);
    }
}
