//! Bytes of many short values, put behind each other.

use crate::{EntriesSeen, LengthsSeen};

/// Bytes that are copied at once. More than a value has are copied where there is room: the next value writes over them.
const BLOCK: usize = 32;

/// Ends of values.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "offsets wrap")]
pub fn offsets_u32(lengths: &[u32], start: u32, out: &mut [u32]) -> LengthsSeen {
    let mut total = 0;
    for (out, &length) in out.iter_mut().zip(lengths) {
        total += u64::from(length);
        *out = start.wrapping_add(total as u32);
    }
    // A loop of its own, which compilers make wide.
    LengthsSeen { largest: longest(lengths), total }
}

/// Entries of any length.
#[inline(always)]
pub fn entries(
    data: &[u8],
    offsets: &[u32],
    indices: &[u32],
    start: u32,
    ends: &mut [u32],
    out: &mut [u8],
) -> EntriesSeen {
    // What most entries have is copied at once.
    let bytes = offsets.last().copied().unwrap_or(0) as usize;
    if bytes <= (BLOCK - BLOCK / 4) * offsets.len() {
        entries_by::<BLOCK>(data, offsets, indices, start, ends, out)
    } else {
        entries_by::<{ 2 * BLOCK }>(data, offsets, indices, start, ends, out)
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "offsets wrap")]
fn entries_by<const BLOCK: usize>(
    data: &[u8],
    offsets: &[u32],
    indices: &[u32],
    start: u32,
    ends: &mut [u32],
    out: &mut [u8],
) -> EntriesSeen {
    let n = offsets.len().saturating_sub(1);
    let (starts, stops) = (&offsets[..n], &offsets[offsets.len() - n..]);
    let (room, mut out, mut at, mut done) = (out.len(), out, start, 0);
    loop {
        // Short entries far from the ends of both slices: the general case below would cost this loop its registers.
        for (&index, end) in indices[done..].iter().zip(&mut ends[done..]) {
            let (Some(&from), Some(&stop)) = (starts.get(index as usize), stops.get(index as usize)) else { break };
            let (from, length) = (from as usize, stop.wrapping_sub(from));
            let block = data.get(from..from + BLOCK).and_then(<[u8]>::first_chunk::<BLOCK>);
            let (Some(block), Some(to)) = (block, out.first_chunk_mut::<BLOCK>()) else { break };
            if length > BLOCK as u32 {
                break;
            }
            *to = *block;
            out = &mut out[length as usize..];
            at = at.wrapping_add(length);
            *end = at;
            done += 1;
        }
        let Some(&index) = indices.get(done) else { break };
        let (Some(&from), Some(&stop)) = (starts.get(index as usize), stops.get(index as usize)) else { break };
        let length = stop.wrapping_sub(from) as usize;
        let from = data.get(from as usize..).filter(|from| from.len() >= length && out.len() >= length);
        let Some(from) = from else { break };
        copy(from, out, length);
        out = &mut out[length..];
        at = at.wrapping_add(length as u32);
        ends[done] = at;
        done += 1;
    }
    EntriesSeen { done, bytes: room - out.len() }
}

/// Spans of `data`, one behind the other.
#[inline(always)]
pub fn spans(data: &[u8], starts: &[u32], lengths: &[u32], out: &mut [u8]) -> usize {
    // Few values are longer than two blocks. Where none is longer than one, the second is not copied in vain.
    if longest(lengths) as usize <= BLOCK {
        spans_by::<BLOCK>(data, starts, lengths, out)
    } else {
        spans_by::<{ 2 * BLOCK }>(data, starts, lengths, out)
    }
}

#[inline(always)]
fn longest(lengths: &[u32]) -> u32 {
    lengths.iter().fold(0, |longest, &length| longest.max(length))
}

#[inline(always)]
fn spans_by<const BLOCK: usize>(data: &[u8], starts: &[u32], lengths: &[u32], out: &mut [u8]) -> usize {
    let (mut done, mut out) = (0, out);
    for (&start, &length) in starts.iter().zip(lengths) {
        let (start, length) = (start as usize, length as usize);
        match (data.get(start..start + BLOCK), out.first_chunk_mut::<BLOCK>()) {
            (Some(from), Some(to)) if length <= BLOCK => to.copy_from_slice(from),
            _ => {
                let Some(from) = data.get(start..).filter(|from| from.len() >= length && out.len() >= length) else {
                    break;
                };
                copy(from, out, length);
            }
        }
        out = &mut out[length..];
        done += 1;
    }
    out.fill(0);
    done
}

/// `length` bytes of `from`, which has as many, to `to`, which has room for them.
#[inline(always)]
pub(crate) fn copy(from: &[u8], to: &mut [u8], length: usize) {
    let blocks = length.div_ceil(BLOCK);
    if blocks * BLOCK > from.len().min(to.len()) {
        return to[..length].copy_from_slice(&from[..length]);
    }
    for (from, to) in from.as_chunks::<BLOCK>().0.iter().zip(to.as_chunks_mut::<BLOCK>().0).take(blocks) {
        *to = *from;
    }
}

/// Values that share their first bytes with the one before.
#[inline(always)]
pub fn prefixed(before: &[u8], prefixes: &[u32], lengths: &[u32], suffixes: &[u8], out: &mut [u8]) -> usize {
    let (mut done, mut at, mut rest) = (0, 0, suffixes);
    // Where the value before starts in `out`; the first one's lies elsewhere.
    let mut last = None;
    for (&prefix, &length) in prefixes.iter().zip(lengths) {
        let (prefix, length) = (prefix as usize, length as usize);
        let longest = last.map_or(before.len(), |last| at - last);
        if prefix > longest || length > rest.len() || !fits(out.len() - at, prefix, length) {
            break;
        }
        match last {
            None => out[at..][..prefix].copy_from_slice(&before[..prefix]),
            Some(last) => out.copy_within(last..last + prefix, at),
        }
        let (suffix, behind) = rest.split_at(length);
        out[at + prefix..][..length].copy_from_slice(suffix);
        last = Some(at);
        at += prefix + length;
        rest = behind;
        done += 1;
    }
    out[at..].fill(0);
    done
}

/// Whether both parts of a value go into so many bytes.
#[inline(always)]
pub(crate) fn fits(room: usize, prefix: usize, length: usize) -> bool {
    prefix <= room && length <= room - prefix
}
