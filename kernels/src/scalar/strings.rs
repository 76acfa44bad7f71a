//! Bytes of many short values, put behind each other.

use crate::LengthsSeen;

/// Bytes that are copied at once. More than a value has are copied where there is room: the next value writes over them.
const BLOCK: usize = 32;

/// Bytes of the value before that are kept in registers: what was just stored in parts is slow to load again.
const HEAD: usize = 64;

/// Ends of values, 32 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "offsets wrap")]
pub fn offsets_u32(lengths: &[u32], start: u32, out: &mut [u32]) -> LengthsSeen {
    offsets(lengths, out, |total| start.wrapping_add(total as u32))
}

/// Ends of values, 64 bits.
#[inline(always)]
pub fn offsets_u64(lengths: &[u32], start: u64, out: &mut [u64]) -> LengthsSeen {
    offsets(lengths, out, |total| start.wrapping_add(total))
}

#[inline(always)]
fn offsets<T>(lengths: &[u32], out: &mut [T], end: impl Fn(u64) -> T) -> LengthsSeen {
    let mut total = 0;
    for (out, &length) in out.iter_mut().zip(lengths) {
        total += u64::from(length);
        *out = end(total);
    }
    // A loop of its own, which compilers make wide.
    LengthsSeen { largest: longest(lengths), total }
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
fn copy(from: &[u8], to: &mut [u8], length: usize) {
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
#[expect(clippy::cast_possible_truncation, reason = "at most 64 bytes are kept")]
pub fn prefixed(before: &[u8], prefixes: &[u32], lengths: &[u32], suffixes: &[u8], out: &mut [u8]) -> usize {
    let mut head = [0; HEAD];
    let (mut done, mut at, mut from) = (0, 0, 0);
    // The value before: where it is in `out` (the first one's lies elsewhere), and its length.
    let (mut last, mut longest) = (None, before.len());
    let kept = before.len().min(HEAD);
    head[..kept].copy_from_slice(&before[..kept]);
    for (&prefix, &length) in prefixes.iter().zip(lengths) {
        let (prefix, length) = (prefix as usize, length as usize);
        if prefix > longest
            || length > suffixes.len() - from
            || out.len() - at < prefix
            || out.len() - at - prefix < length
        {
            break;
        }
        let (suffix, to) = (&suffixes[from..], &mut out[at..]);
        let kept = prefix.min(HEAD);
        // The suffix where it belongs behind the prefix, in a window of what is around it.
        let window = from.checked_sub(kept).and_then(|start| suffixes.get(start..start + HEAD));
        match (window, to.first_chunk_mut::<HEAD>()) {
            (Some(window), Some(to)) => {
                for (i, (head, &byte)) in (0u8..).zip(head.iter_mut().zip(window)) {
                    *head = if i < kept as u8 { *head } else { byte };
                }
                *to = head;
            }
            _ => {
                let new = length.min(HEAD - kept);
                head[kept..kept + new].copy_from_slice(&suffix[..new]);
                to[..kept + new].copy_from_slice(&head[..kept + new]);
            }
        }
        if prefix + length > HEAD {
            match last {
                None => to[kept..prefix].copy_from_slice(&before[kept..prefix]),
                Some(last) => copy_down(out, last + kept, at + kept, prefix - kept),
            }
            let new = HEAD - kept;
            copy(&suffix[new..], &mut out[at + prefix + new..], length - new);
        }
        last = Some(at);
        longest = prefix + length;
        at += longest;
        from += length;
        done += 1;
    }
    out[at..].fill(0);
    done
}

/// `length` bytes of `out` from place `from` to place `to`, at least as many behind it.
#[inline(always)]
fn copy_down(out: &mut [u8], from: usize, to: usize, length: usize) {
    let (values, room) = out.split_at_mut(to);
    copy(&values[from..], room, length);
}
