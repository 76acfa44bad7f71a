//! The frames of hand kernels: what is the same on every level, with the instructions of one put in.

use crate::scalar::bits::ones;
use crate::scalar::strings::{copy, fits};
use crate::scalar::varint::one;
use crate::{VarintsSeen, scalar};

/// Gaps to indices in blocks of `W` values; `S` holds a kernel's registers.
///
/// For each cell it calls `begin`, then `block` for every `W` values with the number of them that are the cell's: all,
/// but in its last block, where the bytes behind them may be anything. Then `end`. `block` gives running sums modulo
/// 2^16 from the cell's start on, `end` the exact sum of the cell's gaps.
///
/// A last block is stored whole: the cells after it write those places again. So no cell ends in single steps, and
/// even cells of one value are as quick as a plain loop, whose branches they mislead.
///
/// Returns the largest sum of a cell.
#[inline(always)]
pub(crate) fn by_blocks<const W: usize, S: Copy>(
    (lo, hi, bounds, out): (&[u8], &[u8], &[i64], &mut [i32]),
    state: &mut S,
    begin: impl Fn(&mut S),
    block: impl Fn(&mut S, &[u8; W], &[u8; W], u8) -> [i32; W],
    end: impl Fn(&S) -> u64,
) -> u64 {
    let [first, .., last] = *bounds else { return 0 };
    // The cells up to here have all bytes of their last blocks. The others get a loop of their own: its calls to copy
    // the ends of the planes would cost this one its registers.
    let inner = bounds.partition_point(|&bound| last - bound >= W as i64).max(1);
    let at = usize::try_from(bounds[inner - 1] - first).unwrap_or(0);
    let inner_last = cells::<W, S, true>((lo, hi, &bounds[..inner], out), state, &begin, &block, &end, || ());
    let outer = (&lo[at..], &hi[at..], &bounds[inner - 1..], &mut out[at..]);
    let outer_last = cells::<W, S, false>(outer, state, &begin, &block, &end, || ());
    inner_last.max(outer_last)
}

/// The loop of [`by_blocks`]. Where `INNER`, at least `W` values follow the last cell in all three slices. `after_block`
/// may do something else between the blocks.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "no block has more than 64 values")]
pub(crate) fn cells<const W: usize, S: Copy, const INNER: bool>(
    (lo, hi, bounds, out): (&[u8], &[u8], &[i64], &mut [i32]),
    shared: &mut S,
    begin: impl Fn(&mut S),
    block: impl Fn(&mut S, &[u8; W], &[u8; W], u8) -> [i32; W],
    end: impl Fn(&S) -> u64,
    mut after_block: impl FnMut(),
) -> u64 {
    // One length, so that one check of a place serves all three.
    let n = out.len();
    let (lo, hi) = (&lo[..n], &hi[..n]);
    let mut state = *shared;
    let mut largest = 0;
    let mut start = 0;
    for cell in bounds.windows(2) {
        let len = usize::try_from(cell[1] - cell[0]).unwrap_or(0);
        if len == 0 {
            continue;
        }
        let (lo, hi, out) = (&lo[start..], &hi[start..], &mut out[start..]);
        start += len;
        begin(&mut state);
        let (lo_blocks, lo_rest) = lo[..len].as_chunks::<W>();
        let (hi_blocks, hi_rest) = hi[..len].as_chunks::<W>();
        let (out_blocks, out_rest) = out[..len].as_chunks_mut::<W>();
        for ((lo, hi), out) in lo_blocks.iter().zip(hi_blocks).zip(out_blocks) {
            *out = block(&mut state, lo, hi, W as u8);
            after_block();
        }
        let rest = lo_rest.len();
        if rest > 0 && INNER {
            let at = len - rest;
            let (lo, hi) = (&lo[at..].as_chunks().0[0], &hi[at..].as_chunks().0[0]);
            out[at..].as_chunks_mut().0[0] = block(&mut state, lo, hi, rest as u8);
            after_block();
        } else if rest > 0 {
            let indices = block(&mut state, &padded(lo_rest), &padded(hi_rest), rest as u8);
            out_rest.copy_from_slice(&indices[..rest]);
        }
        let sum = end(&state);
        if sum > u64::from(u16::MAX) {
            carry_wraps(&mut out[..len]);
        }
        largest = largest.max(sum);
    }
    *shared = state;
    largest
}

/// A last block, filled up with zeros.
fn padded<const W: usize>(rest: &[u8]) -> [u8; W] {
    let mut block = [0; W];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Running sums modulo 2^16 of one cell to sums modulo 2^32. A gap is below 2^16, so that a sum which is below the one
/// before it has wrapped exactly once. Few blocks hold a wrap, but in garbage.
#[inline(always)]
fn carry_wraps(cell: &mut [i32]) {
    let (mut low, mut high) = (0, 0);
    let (blocks, rest) = cell.as_chunks_mut::<16>();
    for block in blocks {
        let mut wraps = block[0] < low;
        for i in 1..block.len() {
            wraps |= block[i] < block[i - 1];
        }
        if wraps {
            (low, high) = carry_each(block, low, high);
        } else {
            low = block[block.len() - 1];
            for sum in block {
                *sum |= high;
            }
        }
    }
    carry_each(rest, low, high);
}

#[inline(always)]
fn carry_each(sums: &mut [i32], mut low: i32, mut high: i32) -> (i32, i32) {
    for sum in sums {
        if *sum < low {
            high = high.wrapping_add(1 << 16);
        }
        low = *sum;
        *sum |= high;
    }
    (low, high)
}

/// Packed bits to words, `N` at a time. `block` is given the `WINDOW` bytes from the first of these words on; the next
/// ones start `step` bytes later. Windows that would end behind the slice are taken from a copy with zeros behind it.
#[inline(always)]
pub(crate) fn by_windows<const WINDOW: usize, const N: usize, T: Copy>(
    packed: &[u8],
    step: usize,
    out: &mut [T],
    mut block: impl FnMut(&[u8; WINDOW]) -> [T; N],
) {
    let (mut packed, mut done, step) = (packed, 0, step.min(WINDOW));
    // Two at a time, since a turn of the loop takes as long as a block.
    for out in out.chunks_exact_mut(2 * N) {
        let (Some(windows), (first, second)) = (packed.get(..step + WINDOW), out.split_at_mut(N)) else { break };
        for (out, window) in [(first, windows), (second, &windows[step..])] {
            out.copy_from_slice(&block(window.first_chunk().unwrap_or(&[0; WINDOW])));
        }
        packed = &packed[2 * step..];
        done += 2 * N;
    }
    for out in out[done..].as_chunks_mut().0 {
        let Some(window) = packed.first_chunk() else { break };
        *out = block(window);
        packed = &packed[step..];
        done += N;
    }
    let out = &mut out[done..];
    if out.is_empty() {
        return;
    }
    // Fewer than `WINDOW` bytes are left, or fewer than `N` words, whose bits lie in as many.
    let mut end = [0; 128];
    let left = packed.len().min(WINDOW);
    end[..left].copy_from_slice(&packed[..left]);
    let mut end: &[u8] = &end;
    for out in out.chunks_mut(N) {
        let words = block(end.first_chunk().unwrap_or(&[0; WINDOW]));
        out.copy_from_slice(&words[..out.len()]);
        end = end.get(step..).unwrap_or(&[]);
    }
}

/// Values that share their first bytes with the one before. The first `HEAD` bytes of that are kept in registers, `H`:
/// what was just stored in parts is slow to load again. `merge` gives the first so many bytes of one, the others of
/// another.
#[inline(always)]
pub(crate) fn by_heads<const HEAD: usize, H: Copy>(
    (before, prefixes, lengths, suffixes): (&[u8], &[u32], &[u32], &[u8]),
    out: &mut [u8],
    load: impl Fn(&[u8; HEAD]) -> H,
    merge: impl Fn(H, H, usize) -> H,
    store: impl Fn(H) -> [u8; HEAD],
) -> usize {
    let n = prefixes.len().min(lengths.len());
    let (prefixes, lengths) = (&prefixes[..n], &lengths[..n]);
    let mut head = [0; HEAD];
    let kept = before.len().min(HEAD);
    head[..kept].copy_from_slice(&before[..kept]);
    let mut head = load(&head);
    let (mut done, mut at, mut from, mut longest) = (0, 0, 0usize, before.len());
    while done < n {
        // Values that are wholly kept, far from the ends of both slices: all that goes on from one to the next stays
        // in registers, which the general case below has too few of.
        while let (Some(&prefix), Some(&length)) = (prefixes.get(done), lengths.get(done)) {
            let (prefix, whole) = (prefix as usize, (prefix as usize).saturating_add(length as usize));
            let window = suffixes.get(from.wrapping_sub(prefix)..).and_then(<[u8]>::first_chunk);
            let (Some(window), Some(to)) = (window, out.get_mut(at..).and_then(<[u8]>::first_chunk_mut)) else { break };
            if prefix > longest || whole > HEAD {
                break;
            }
            head = merge(head, load(window), prefix);
            *to = store(head);
            (at, from, longest) = (at + whole, from + whole - prefix, whole);
            done += 1;
        }
        let (Some(&prefix), Some(&length)) = (prefixes.get(done), lengths.get(done)) else { break };
        let (prefix, length) = (prefix as usize, length as usize);
        if prefix > longest || length > suffixes.len() - from || !fits(out.len() - at, prefix, length) {
            break;
        }
        let (kept, suffix) = (prefix.min(HEAD), &suffixes[from..]);
        let window = from.checked_sub(kept).and_then(|start| suffixes[start..].first_chunk());
        let new = match window {
            Some(window) => load(window),
            None => {
                let mut window = [0; HEAD];
                let len = suffix.len().min(HEAD - kept);
                window[kept..][..len].copy_from_slice(&suffix[..len]);
                load(&window)
            }
        };
        head = merge(head, new, kept);
        let (values, room) = out.split_at_mut(at);
        match room.first_chunk_mut() {
            Some(to) => *to = store(head),
            None => room.copy_from_slice(&store(head)[..room.len()]),
        }
        if prefix + length > HEAD {
            let value_before = if done == 0 { before } else { &values[at - longest..] };
            copy(&value_before[kept..], &mut room[kept..], prefix - kept);
            copy(&suffix[HEAD - kept..], &mut room[prefix + HEAD - kept..], length - (HEAD - kept));
        }
        longest = prefix + length;
        (at, from) = (at + longest, from + length);
        done += 1;
    }
    out[at..].fill(0);
    done
}

/// Whether no more than an eighth of such values is longer than 64 bytes: then [`by_heads`] is quicker with that many.
#[inline(always)]
pub(crate) fn few_above_64(prefixes: &[u32], lengths: &[u32]) -> bool {
    let long = prefixes.iter().zip(lengths).filter(|&(&prefix, &length)| prefix.saturating_add(length) > 64).count();
    long <= prefixes.len() / 8
}

/// `K` byte planes to words of `k` bytes, `N` of them at a time: `block` is given as many bytes of every plane. There
/// have to be `N` words at least: a last block goes over those before it again.
///
/// Where `k` is larger than `K`, the planes are `K` of the words', the first of which is that of the first byte of
/// `out`. Where it is smaller, the bytes of the last planes are not in the words.
#[inline(always)]
pub(crate) fn by_planes<const K: usize, const N: usize>(
    mut planes: [&[u8]; K],
    k: usize,
    out: &mut [u8],
    block: impl Fn([&[u8; N]; K]) -> [[u8; K]; N],
) {
    let n = planes[0].len();
    for plane in &mut planes {
        *plane = &plane[..n];
    }
    let mut start = 0;
    while start < n {
        start = start.min(n - N);
        let mut bytes = [&[0; N]; K];
        for (bytes, plane) in bytes.iter_mut().zip(&planes) {
            *bytes = &plane[start..].as_chunks().0[0];
        }
        let words = block(bytes);
        let out = &mut out[start * k..];
        if k == K {
            out[..N * K].copy_from_slice(words.as_flattened());
        } else {
            for (word, i) in words.iter().zip(0..) {
                let out = &mut out[i * k..];
                // What is stored too much of a smaller word, the next one's store covers.
                match out.first_chunk_mut() {
                    Some(out) => *out = *word,
                    None => out.copy_from_slice(&word[..out.len()]),
                }
            }
        }
        start += N;
    }
}

/// Eight of `k` planes of `n` bytes, from one on; the last one again where there are fewer.
#[inline(always)]
pub(crate) fn eight_planes(planes: &[u8], (stride, k, n): (usize, usize, usize), first: usize) -> [&[u8]; 8] {
    let mut eight = [&planes[..n]; 8];
    for (plane, p) in eight.iter_mut().zip(first..) {
        *plane = &planes[p.min(k - 1) * stride..][..n];
    }
    eight
}

/// Bytes whose ends of variable-length values are looked up at once.
const ENDS: usize = 64;

/// As many bytes, and those that a word has behind the last of them; as many values, and those that a row stores too
/// many.
pub(crate) const VARINTS: usize = ENDS + 8;

/// Variable-length values, 64 bytes at a time. `ends` gives a bit for each byte that is the last of a value. `block` is
/// given those bits, decodes the values from the first on as far as it can, and gives their number and their bytes. What
/// it cannot is looked at byte by byte. Where bytes or room run short, `short` decodes what is left; where it gives
/// `None`, both work on a copy.
///
/// Fewer bytes than `few` are looked at one value after the other.
#[inline(always)]
pub(crate) fn by_ends<const FLIP: u8, const BITS: u32, T: Copy + Default>(
    src: &[u8],
    out: &mut [T],
    ends: impl Fn(&[u8; VARINTS]) -> u64,
    block: impl Fn(&[u8; VARINTS], u64, &mut [T; VARINTS]) -> (usize, usize),
    (few, short): (usize, impl Fn(&[u8], &mut [T]) -> Option<(usize, usize)>),
    cut: impl Fn(u64) -> T,
) -> VarintsSeen {
    if src.len() < few {
        return scalar::varint::values::<FLIP, BITS, T>(src, out, cut);
    }
    let mut seen = VarintsSeen::default();
    let (mut copy, mut values) = ([0; VARINTS], [T::default(); VARINTS]);
    while seen.values < out.len() && seen.bytes < src.len() {
        let (rest, room) = (&src[seen.bytes..], &mut out[seen.values..]);
        let here = rest.len().min(ENDS);
        let left = room.len();
        let near = rest.len().min(left) < VARINTS;
        let (done, bytes) = if let Some(seen) = if near { short(rest, room) } else { None } {
            seen
        } else {
            let (bytes, to) = match (rest.first_chunk(), room.first_chunk_mut()) {
                (Some(bytes), Some(to)) => (bytes, to),
                _ => {
                    copy[..here].copy_from_slice(&rest[..here]);
                    (&copy, &mut values)
                }
            };
            let ends = first_bits(ends(bytes) & ones(u32::try_from(here).unwrap_or(64)), left);
            let seen = block(bytes, ends, to);
            if near {
                room[..seen.0].copy_from_slice(&values[..seen.0]);
            }
            seen
        };
        (seen.values, seen.bytes) = (seen.values + done, seen.bytes + bytes);
        if done == 0 {
            let (Some(room), Some((value, length))) = (out.get_mut(seen.values), one::<FLIP, BITS>(rest)) else {
                break;
            };
            *room = cut(value);
            (seen.values, seen.bytes) = (seen.values + 1, seen.bytes + length);
        }
    }
    seen
}

/// Of [`by_ends`], where it works on copies, which take as long to make as these few values do one after the other. Of as
/// many bytes as there should be values, which are one byte each, those go eight at once.
#[inline(always)]
pub(crate) fn few(bytes: usize, values: usize) -> usize {
    if bytes == values { ENDS } else { 12 }
}

/// The lowest `n` bits that are set.
#[inline(always)]
pub(crate) fn first_bits(bits: u64, n: usize) -> u64 {
    if bits.count_ones() as usize <= n {
        return bits;
    }
    bits & !(0..n).fold(bits, |bits, _| bits & bits.wrapping_sub(1))
}

/// Variable-length values of [`by_ends`] one after the other, each out of a word; `compact` puts the groups of one together.
#[inline(always)]
pub(crate) fn by_words<const BITS: u32, T: Copy>(
    block: &[u8; VARINTS],
    ends: u64,
    out: &mut [T; VARINTS],
    compact: impl Fn(u64) -> u64,
    cut: impl Fn(u64) -> T,
) -> (usize, usize) {
    let (mut left, mut at, mut values) = (ends, 0, 0);
    for out in out.iter_mut().take(ends.count_ones() as usize) {
        let end = left.trailing_zeros() + 1;
        left &= left.wrapping_sub(1);
        if end - at > if BITS == 32 { 5 } else { 8 } {
            break;
        }
        let word = block[at as usize..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let behind = 64 - 8 * (end - at);
        let value = compact(word << behind >> behind);
        if BITS == 32 && value >> 32 != 0 {
            break;
        }
        *out = cut(value);
        (at, values) = (end, values + 1);
    }
    (values, at as usize)
}

/// As [`by_words`], where all bytes are values.
#[inline(always)]
pub(crate) fn by_bytes<T>(block: &[u8; VARINTS], out: &mut [T; VARINTS], cut: impl Fn(u64) -> T) -> (usize, usize) {
    for (out, &byte) in out.iter_mut().zip(&block[..ENDS]) {
        *out = cut(u64::from(byte & 0x7f));
    }
    (ENDS, ENDS)
}

/// Whether of the values of [`by_ends`] none has more than four bytes.
#[inline(always)]
pub(crate) fn four_at_most(ends: u64) -> bool {
    let more = !ends & u64::MAX.checked_shr(ends.leading_zeros()).unwrap_or(0);
    let pairs = more & more >> 1;
    pairs & pairs >> 2 == 0
}

/// Where the bytes of each value are that ends in eight bytes, four at most, by the bits of [`by_ends`]; 128 for none.
pub(crate) static PLACES: [[u8; 32]; 256] = {
    let mut places = [[0x80; 32]; 256];
    let mut ends = 0;
    while ends < 256 {
        let (mut value, mut first, mut place) = (0, 0, 0);
        while place < 8 {
            if ends >> place & 1 == 1 {
                let mut byte = 0;
                while byte < 4 && first + byte <= place {
                    places[ends][4 * value + byte] = [0, 1, 2, 3, 4, 5, 6, 7][first + byte];
                    byte += 1;
                }
                (value, first) = (value + 1, place + 1);
            }
            place += 1;
        }
        ends += 1;
    }
    places
};

/// For each bit of a byte the number of those set before it; -1 where it is not set itself.
pub(crate) static SET_BEFORE: [[i8; 8]; 256] = {
    let mut places = [[-1; 8]; 256];
    let mut bits = 0;
    while bits < 256 {
        let (mut bit, mut next) = (0, 0);
        while bit < 8 {
            if bits >> bit & 1 == 1 {
                places[bits][bit] = next;
                next += 1;
            }
            bit += 1;
        }
        bits += 1;
    }
    places
};
