//! Differences of vertices: symbols out of four rANS lanes, and their raw bits.

use crate::{RansSeen, RansTable};

/// Entry of a slot: the symbol in bits 0 to 8, the slot's number among those of its symbol in bits 9 to 19, their count
/// in bits 20 to 31.
#[inline(always)]
fn entry(slot: u32) -> (u32, u32, u32) {
    (slot & 511, slot >> 9 & 2047, slot >> 20)
}

/// A state below this takes in a word.
const LEAST: u32 = 1 << 16;

/// One lane.
#[derive(Clone, Copy)]
struct Lane<'a> {
    state: u32,
    next: usize,
    words: &'a [[u8; 2]],
}

impl Lane<'_> {
    /// The next symbol; `None`, and the lane as before, where there is no table or no word.
    #[inline(always)]
    fn symbol(&mut self, slots: &[u32], table: RansTable) -> Option<u32> {
        let x = self.state;
        let slot = x & 1u32.wrapping_shl(table.precision).wrapping_sub(1);
        let &slot = slots.get(table.start as usize + slot as usize)?;
        let (symbol, bias, count) = entry(slot);
        let x = count.wrapping_mul(x.wrapping_shr(table.precision)).wrapping_add(bias);
        let refill = x < LEAST;
        self.state = match self.words.get(self.next) {
            Some(&word) => {
                self.next += usize::from(refill);
                if refill { x << 16 | u32::from(u16::from_le_bytes(word)) } else { x }
            }
            None if refill => return None,
            None => x,
        };
        Some(symbol)
    }
}

/// Pairs of symbols. Two vertices at a time, whose lanes wait for nothing of each other's.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "symbols have 9 bits")]
pub fn rans_symbols(
    slots: &[u32],
    tables: &[RansTable; 14],
    depth: u32,
    lanes: &[&[u8]; 4],
    states: &[u32; 4],
    starts: &[u8],
    out: &mut [[u16; 2]],
) -> RansSeen {
    let lane = |i: usize| Lane { state: states[i], next: 0, words: lanes[i].as_chunks().0 };
    let [mut x0, mut y0, mut x1, mut y1] = [lane(0), lane(1), lane(2), lane(3)];
    let vertex = |x: &mut Lane<'_>, y: &mut Lane<'_>, start: usize| {
        let before = *x;
        let dx = x.symbol(slots, tables[start])?;
        let length = dx.div_ceil(2) >> depth;
        let dy = y.symbol(slots, tables[2 + 2 * length.min(5) as usize + start]);
        if dy.is_none() {
            *x = before;
        }
        dy.map(|dy| [dx as u16, dy as u16])
    };
    let start = |i: usize| usize::from(starts[i / 8] >> (i % 8) & 1);
    let mut vertices = 0;
    for pair in out.chunks_mut(2) {
        let Some(symbols) = vertex(&mut x0, &mut y0, start(vertices)) else { break };
        pair[0] = symbols;
        vertices += 1;
        if let [_, pair] = pair {
            let Some(symbols) = vertex(&mut x1, &mut y1, start(vertices)) else { break };
            *pair = symbols;
            vertices += 1;
        }
    }
    let lanes = [x0, y0, x1, y1];
    RansSeen { vertices, words: lanes.map(|lane| lane.next), states: lanes.map(|lane| lane.state) }
}

/// What a symbol says of a difference: the least magnitude, how many raw bits are added to it, and all ones where the
/// difference is negative.
#[derive(Clone, Copy)]
struct Magnitude {
    least: u32,
    raw: u8,
    negative: bool,
}

/// By depth and symbol; what names no difference is 0.
#[expect(clippy::cast_possible_truncation, reason = "depths are 2 at most, symbols 256, raw bits 31")]
static MAGNITUDES: [[Magnitude; 512]; 3] = {
    let mut all = [[Magnitude { least: 0, raw: 0, negative: false }; 512]; 3];
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
                all[depth][symbol] = Magnitude { least, raw: raw as u8, negative: symbol % 2 == 0 };
            }
            symbol += 1;
        }
        depth += 1;
    }
    all
};

/// Vertices.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "32 bits of the window are asked for")]
pub fn rans_vertices(symbols: &[[u16; 2]], depth: u32, raw: &[u8], out: &mut [i32]) -> u64 {
    let magnitudes = &MAGNITUDES[depth.min(2) as usize];
    let (mut at, mut last) = (0usize, [0u32; 2]);
    for (out, symbols) in out.as_chunks_mut::<2>().0.iter_mut().zip(symbols) {
        for ((out, last), &symbol) in out.iter_mut().zip(&mut last).zip(symbols) {
            let Magnitude { least, raw: bits, negative } = magnitudes[usize::from(symbol) & 511];
            let magnitude = least | window(raw, at) as u32 & ((1 << bits) - 1);
            let sign = u32::from(negative).wrapping_neg();
            *last = last.wrapping_add((magnitude ^ sign).wrapping_sub(sign));
            *out = last.cast_signed();
            at += usize::from(bits);
        }
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
