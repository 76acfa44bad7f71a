//! rANS: differences of vertices as entropy-coded symbols, and the bits that are as good as random as they are.
//!
//! Source: the encodings page, "rANS". The payload has the depth, a table for each of 14 contexts, the lengths of four
//! lanes, the lanes, and the raw bits. The context depends on whether the vertex is the first of a run, and that of a y
//! on how large the difference of x is. Runs are the rings, parts or geometries of the layer.

use super::{Scratch, exactly, fault};
use crate::error::{Error, Part};
use crate::input::Input;
use crate::kernels::{RansSeen, RansTable};
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
    pub(crate) fn read(input: Input<'a>, slots: &mut Vec<u32>) -> Result<Payload<'a>, Error> {
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
    fn judge(&self, slots: &[u32], starts: &[u8], seen: &RansSeen) -> Error {
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
            let length = (slot & 511).div_ceil(2) >> self.depth;
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
fn slot(slots: &[u32], table: RansTable, state: u32) -> (u32, u32) {
    let number = state & ((1 << table.precision) - 1);
    let slot = slots[(table.start + number) as usize];
    let left = (slot >> 20).wrapping_mul(state >> table.precision).wrapping_add(slot >> 9 & 2047);
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
    fn table(&mut self, depth: u8, slots: &mut Vec<u32>) -> Result<RansTable, Error> {
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
            let kind = if frequency > 0 && !stands_for_difference(symbol, depth) {
                MltFault::RansSymbol { found: u16::try_from(symbol).unwrap_or(u16::MAX) }
            } else if frequency == 0 && symbol == last {
                MltFault::RansLast
            } else if sum > size || sum < size && symbol == last {
                MltFault::RansSum { found: sum.into(), expected: size.into() }
            } else {
                slots.extend((0..frequency).map(|nth| RansTable::slot(symbol, nth, frequency)));
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
    let Scratch { words: slots, vertices: symbols, bytes: starts, .. } = scratch;
    mark_starts(runs, vertices, starts).map_err(|e| e.at(payload.offset()))?;
    if vertices == 0 && payload.bytes().is_empty() {
        return Ok(());
    }
    let payload = Payload::read(payload, slots)?;
    exactly(symbols, vertices)?;
    let symbols: &mut [[u16; 2]] = bytemuck::cast_slice_mut(symbols);
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
fn mark_starts(runs: Option<&[u32]>, vertices: usize, starts: &mut Vec<u8>) -> Result<(), Error> {
    exactly(starts, vertices.div_ceil(8))?;
    let Some(bounds) = runs else {
        starts.fill(u8::MAX);
        return Ok(());
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
    if sound { Ok(()) } else { Err(fault(MltFault::RansRuns { found, expected: vertices as u64 }, RUNS)) }
}
