//! Bytes of many short values, put behind each other.

use crate::LengthsSeen;

/// Bytes that are copied at once. More than a value has are copied where there is room: the next value writes over them.
const BLOCK: usize = 32;

/// Ends of values, 32 bits.
#[inline(always)]
pub fn offsets_u32(lengths: &[u32], start: u32, out: &mut [u32]) -> LengthsSeen {
    let mut end = start;
    offsets(lengths, out, |length| {
        end = end.wrapping_add(length);
        end
    })
}

/// Ends of values, 64 bits.
#[inline(always)]
pub fn offsets_u64(lengths: &[u32], start: u64, out: &mut [u64]) -> LengthsSeen {
    let mut end = start;
    offsets(lengths, out, |length| {
        end = end.wrapping_add(length.into());
        end
    })
}

#[inline(always)]
fn offsets<T>(lengths: &[u32], out: &mut [T], mut add: impl FnMut(u32) -> T) -> LengthsSeen {
    let mut seen = LengthsSeen::default();
    for (out, &length) in out.iter_mut().zip(lengths) {
        seen.largest = seen.largest.max(length);
        seen.total += u64::from(length);
        *out = add(length);
    }
    seen
}

/// Spans of `data`, one behind the other.
#[inline(always)]
pub fn spans(data: &[u8], starts: &[u32], lengths: &[u32], out: &mut [u8]) -> usize {
    let (mut done, mut at) = (0, 0);
    for (&start, &length) in starts.iter().zip(lengths) {
        let (start, length) = (start as usize, length as usize);
        let Some(from) = data.get(start..) else { break };
        let to = &mut out[at..];
        if from.len() < length || to.len() < length {
            break;
        }
        copy(from, to, length);
        at += length;
        done += 1;
    }
    out[at..].fill(0);
    done
}

/// `length` bytes of `from`, which has as many, to `to`, which has room for them.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8], length: usize) {
    match (from.first_chunk::<BLOCK>(), to.first_chunk_mut::<BLOCK>()) {
        (Some(from), Some(to)) if length <= BLOCK => *to = *from,
        _ => to[..length].copy_from_slice(&from[..length]),
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
        if prefix > longest || length > rest.len() || out.len() - at < prefix || out.len() - at - prefix < length {
            break;
        }
        match last {
            None => out[at..][..prefix].copy_from_slice(&before[..prefix]),
            Some(last) => copy_down(out, last, at, prefix),
        }
        last = Some(at);
        at += prefix;
        copy(rest, &mut out[at..], length);
        at += length;
        rest = &rest[length..];
        done += 1;
    }
    out[at..].fill(0);
    done
}

/// `length` bytes of `out` from place `from` to place `to`, at least as many behind it.
#[inline(always)]
fn copy_down(out: &mut [u8], from: usize, to: usize, length: usize) {
    let mut copied = 0;
    // Two blocks hold nearly all that values share; a call would take longer.
    while copied < length {
        let block = out[from + copied..].first_chunk::<BLOCK>().copied();
        match (block, out[to + copied..].first_chunk_mut::<BLOCK>()) {
            (Some(block), Some(room)) => *room = block,
            _ => return out.copy_within(from + copied..from + length, to + copied),
        }
        copied += BLOCK;
    }
}
