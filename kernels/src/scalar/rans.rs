//! Differences of vertices: symbols out of four rANS lanes, and their raw bits.

use crate::{RansSeen, RansSlot, RansTable};

/// A state below this takes in a word.
const LEAST: u32 = 1 << 16;

/// One lane.
#[derive(Clone, Copy)]
struct Lane<'a> {
    state: u32,
    next: usize,
    words: &'a [[u8; 2]],
}

/// The tables of all contexts, each part on its own: it can then be had by a context's number alone. The last two are
/// none.
struct Contexts {
    starts: [usize; 16],
    masks: [u32; 16],
    precisions: [u32; 16],
    /// By the symbol of x, that of y.
    of_y: &'static [u8; 64],
}

/// By depth and symbol of x, the context of y outside of a start; symbols above the last have the last one's.
#[expect(clippy::cast_possible_truncation, reason = "contexts are 14")]
static CONTEXTS: [[u8; 64]; 3] = {
    let mut all = [[0; 64]; 3];
    let mut depth = 0;
    while depth < 3 {
        let mut symbol = 0;
        while symbol < 64 {
            let length = (symbol + 1) >> (depth + 1);
            all[depth][symbol] = 2 + 2 * if length < 5 { length as u8 } else { 5 };
            symbol += 1;
        }
        depth += 1;
    }
    all
};

impl Contexts {
    #[inline(always)]
    fn new(tables: &[RansTable; 14], depth: u32) -> Contexts {
        let (mut starts, mut masks, mut precisions) = ([u32::MAX as usize; 16], [0; 16], [0; 16]);
        for (i, table) in tables.iter().enumerate() {
            starts[i] = table.start as usize;
            masks[i] = 1u32.wrapping_shl(table.precision).wrapping_sub(1);
            precisions[i] = table.precision;
        }
        Contexts { starts, masks, precisions, of_y: &CONTEXTS[depth.min(2) as usize] }
    }
}

impl Lane<'_> {
    /// The next symbol; `None` where there is no slot or no word, and with `SPARE` also where no word is left for
    /// another.
    #[inline(always)]
    fn symbol<const SPARE: bool>(&mut self, slots: &[RansSlot], contexts: &Contexts, context: usize) -> Option<u16> {
        let x = self.state;
        let number = x & contexts.masks[context & 15];
        // Both lie below 2^32, so that their sum does not wrap.
        let slot = slots.get(contexts.starts[context & 15] + number as usize)?;
        let x = x.wrapping_shr(contexts.precisions[context & 15]);
        let x = slot.count.wrapping_mul(x).wrapping_add(slot.nth.into());
        let refill = x < LEAST;
        self.state = match self.words.get(self.next) {
            Some(&word) => {
                let refilled = x << 16 | u32::from(u16::from_le_bytes(word));
                if refill { refilled } else { x }
            }
            None if SPARE || refill => return None,
            None => x,
        };
        self.next += usize::from(refill);
        Some(slot.symbol)
    }
}

/// Vertices whose lanes are put back together where one fails: as many as a byte of `starts` has bits.
const BLOCK: usize = 8;

/// Pairs of symbols. Two vertices at a time, whose lanes wait for nothing of each other's.
#[inline(always)]
pub fn rans_symbols(
    slots: &[RansSlot],
    tables: &[RansTable; 14],
    depth: u32,
    lanes: &[&[u8]; 4],
    states: &[u32; 4],
    starts: &[u8],
    out: &mut [[u16; 2]],
) -> RansSeen {
    let lane = |i: usize| Lane { state: states[i], next: 0, words: lanes[i].as_chunks().0 };
    let mut lanes = [lane(0), lane(1), lane(2), lane(3)];
    let job = (slots, &Contexts::new(tables, depth));
    // Blocks as a whole: what each vertex would have to keep, for the case that it fails, would cost these loops their
    // registers. While each lane has words left, one test is enough for both a word that is taken and one that is not.
    let mut vertices = blocks::<true>(job, &mut lanes, starts, out);
    vertices += blocks::<false>(job, &mut lanes, &starts[vertices / 8..], &mut out[vertices..]);
    let [mut x0, mut y0, mut x1, mut y1] = lanes;
    for (out, i) in out[vertices..].iter_mut().zip(vertices..) {
        let (x, y) = if i % 2 == 0 { (&mut x0, &mut y0) } else { (&mut x1, &mut y1) };
        let before = *x;
        if vertex::<false>(job, x, y, usize::from(starts[i / 8]) >> (i % 8), out).is_none() {
            *x = before;
            break;
        }
        vertices += 1;
    }
    let lanes = [x0, y0, x1, y1];
    RansSeen { vertices, words: lanes.map(|lane| lane.next), states: lanes.map(|lane| lane.state) }
}

/// The vertices of all blocks before the first that fails.
#[inline(always)]
fn blocks<const SPARE: bool>(
    job: (&[RansSlot], &Contexts),
    lanes: &mut [Lane<'_>; 4],
    starts: &[u8],
    out: &mut [[u16; 2]],
) -> usize {
    let mut vertices = 0;
    let [mut x0, mut y0, mut x1, mut y1] = *lanes;
    for (block, &starts) in out.as_chunks_mut::<BLOCK>().0.iter_mut().zip(starts) {
        let mut starts = usize::from(starts);
        for [first, second] in block.as_chunks_mut::<2>().0 {
            if vertex::<SPARE>(job, &mut x0, &mut y0, starts, first).is_none() {
                return vertices;
            }
            if vertex::<SPARE>(job, &mut x1, &mut y1, starts >> 1, second).is_none() {
                return vertices;
            }
            starts >>= 2;
        }
        *lanes = [x0, y0, x1, y1];
        vertices += BLOCK;
    }
    vertices
}

/// The symbols of a vertex, whose lanes are `x` and `y`. It is a start where the lowest bit of `start` is set.
#[inline(always)]
fn vertex<const SPARE: bool>(
    (slots, contexts): (&[RansSlot], &Contexts),
    x: &mut Lane<'_>,
    y: &mut Lane<'_>,
    start: usize,
    out: &mut [u16; 2],
) -> Option<()> {
    let dx = x.symbol::<SPARE>(slots, contexts, start & 1)?;
    let context = contexts.of_y[usize::from(dx).min(63)];
    let dy = y.symbol::<SPARE>(slots, contexts, usize::from(context) | start & 1)?;
    *out = [dx, dy];
    Some(())
}

/// What a symbol says of a difference: the least magnitude, how many raw bits are added to it, as many ones, and all ones
/// where the difference is negative.
#[derive(Clone, Copy)]
struct Magnitude {
    least: u32,
    raw: u32,
    ones: u32,
    sign: u32,
}

impl Magnitude {
    /// The difference, with the raw bits and what follows them.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "raw bits are 31 at most")]
    fn delta(&self, raw: u64) -> u32 {
        ((self.least | raw as u32 & self.ones) ^ self.sign).wrapping_sub(self.sign)
    }
}

/// By depth and symbol; what names no difference is 0.
#[expect(clippy::cast_possible_truncation, reason = "depths are 2 at most, symbols 256, raw bits 31")]
static MAGNITUDES: [[Magnitude; 512]; 3] = {
    let mut all = [[Magnitude { least: 0, raw: 0, ones: 0, sign: 0 }; 512]; 3];
    let mut depth = 0;
    while depth < 3 {
        let mut symbol = 1;
        while symbol <= 64 << depth {
            let code = (symbol as u32).div_ceil(2);
            let length = code >> depth;
            if length > 0 {
                let kept = if length - 1 < depth as u32 { length - 1 } else { depth as u32 };
                let raw = length - 1 - kept;
                let mantissa = (code & ((1 << depth) - 1)) >> (depth as u32 - kept);
                let least = (1 << kept | mantissa) << raw;
                let sign = if symbol % 2 == 0 { u32::MAX } else { 0 };
                all[depth][symbol] = Magnitude { least, raw, ones: (1 << raw) - 1, sign };
            }
            symbol += 1;
        }
        depth += 1;
    }
    all
};

/// Vertices.
#[inline(always)]
pub fn rans_vertices(symbols: &[[u16; 2]], depth: u32, raw: &[u8], out: &mut [i32]) -> u64 {
    let magnitudes = &MAGNITUDES[depth.min(2) as usize];
    let magnitude = |symbol: u16| &magnitudes[usize::from(symbol & 511)];
    let (vertices, _) = out.as_chunks_mut::<2>();
    let (mut done, mut at, mut x, mut y) = (0, 0usize, 0u32, 0u32);
    loop {
        // Vertices whose raw bits lie in one window: the general case below would cost this loop its registers.
        for (vertex, &[dx, dy]) in vertices[done..].iter_mut().zip(symbols.get(done..).unwrap_or(&[])) {
            let (dx, dy) = (magnitude(dx), magnitude(dy));
            let bits = raw.get(at / 8..at / 8 + 8).and_then(<[u8]>::first_chunk);
            let (Some(&bits), true) = (bits, dx.raw + dy.raw <= 57) else { break };
            let bits = u64::from_le_bytes(bits) >> (at % 8);
            x = x.wrapping_add(dx.delta(bits));
            y = y.wrapping_add(dy.delta(bits >> dx.raw));
            *vertex = [x.cast_signed(), y.cast_signed()];
            at += (dx.raw + dy.raw) as usize;
            done += 1;
        }
        let (Some(vertex), Some(&[dx, dy])) = (vertices.get_mut(done), symbols.get(done)) else { break };
        let (dx, dy) = (magnitude(dx), magnitude(dy));
        x = x.wrapping_add(dx.delta(window(raw, at)));
        y = y.wrapping_add(dy.delta(window(raw, at + dx.raw as usize)));
        *vertex = [x.cast_signed(), y.cast_signed()];
        at += (dx.raw + dy.raw) as usize;
        done += 1;
    }
    at as u64
}

/// 57 bits or more from bit `at` on; 0 behind the last.
#[inline(always)]
fn window(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at / 8..).unwrap_or(&[]);
    let window = match bytes.first_chunk() {
        Some(window) => *window,
        None => {
            let mut window = [0; 8];
            window[..bytes.len()].copy_from_slice(bytes);
            window
        }
    };
    u64::from_le_bytes(window) >> (at % 8)
}
