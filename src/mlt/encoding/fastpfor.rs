//! FastPFOR: blocks of words at the width that most need; the high bits of the others, exceptions, in arrays by width.
//!
//! Source: MapLibre Tile specification, Encodings, "FastPFOR". A payload is 32-bit words: the number of values in whole
//! blocks, pages of up to 65536 of them, and a tail of the values behind the last block, in bytes of which the last of a
//! value has bit 7 set. A page is a word that says where the packed blocks end, the blocks, the size of their entries, the
//! entries (width, number of exceptions and, if there are any, the width of the widest value and positions) in whole
//! words, a bitmap of the arrays there are, and these: count and packed values, by ascending width.
//!
//! Version 1 has blocks of 256, and big-endian words; entries and tail are in words, too, so their bytes are reversed
//! in each. Version 2 has blocks of 128, little-endian words, and values of 64 bits as well; the first has its values one
//! after the other, the second in groups of 128 over the lanes of a vector.

use super::word::Word;
use super::{Scratch, fault};
use crate::error::{EncodingFault, Error, ErrorKind, Limit, Part};
use crate::input::Input;
use crate::kernels::packed_len;
use crate::limits::Limits;
use crate::mlt::{MltFault, Options, Packing};

/// Values of a page.
pub(crate) const PAGE: usize = 65536;

const HEADER: Part = Part::Values("", "FastPFOR block values");
const PAGES: Part = Part::Values("", "FastPFOR page");
const BLOCKS: Part = Part::Values("", "FastPFOR block");
const ARRAYS: Part = Part::Values("", "FastPFOR exception array");
const TAIL: Part = Part::Values("", "FastPFOR tail");

/// Bytes that so many values need at least: an entry for each block, a byte for each value of the tail.
pub(crate) fn least_bytes(block: u64, values: u64) -> u64 {
    values / block * 2 + values % block
}

/// Which variant of the format, in a payload that starts at `start`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Values of a block.
    pub block: usize,
    /// Groups of 128 values over the lanes of a vector.
    pub interleaved: bool,
    /// Words are big-endian. Absolute offsets below are those in the swapped payload.
    pub swapped: bool,
    /// Bits of a value.
    pub bits: u32,
    start: u64,
}

impl Form {
    /// Version 1.
    pub(crate) fn of_256(payload: Input<'_>) -> Form {
        Form { block: 256, interleaved: false, swapped: true, bits: 32, start: payload.offset() }
    }

    /// Version 2.
    pub(crate) fn of_128(payload: Input<'_>, bits: u32, packing: Packing) -> Form {
        let interleaved = packing == Packing::Interleaved;
        Form { block: 128, interleaved, swapped: false, bits, start: payload.offset() }
    }

    /// Where a byte lies in the payload as it is stored.
    pub(crate) fn stored(&self, offset: u64) -> u64 {
        if self.swapped { self.start + ((offset - self.start) ^ 3) } else { offset }
    }

    /// Unpacks values of one width. What they take in whole words is the same in both packings: [`words_len`].
    pub(crate) fn unpack<W: Word>(&self, packed: &[u8], width: u32, out: &mut [W], options: &Options) {
        let groups = if self.interleaved { out.len() / 128 } else { 0 };
        let (lanes, rest) = packed.split_at(groups * 16 * width as usize);
        let (grouped, others) = out.split_at_mut(groups * 128);
        if !grouped.is_empty() {
            W::unpack_lanes(options.kernels, lanes, width, grouped);
        }
        if !others.is_empty() {
            W::unpack(options.kernels, rest, width, others);
        }
    }
}

/// Bytes of `n` packed values, in whole words.
fn words_len(n: usize, width: u32) -> usize {
    packed_len(n, width as usize).next_multiple_of(4)
}

/// Decodes a payload of version 1.
///
/// # Errors
/// Each rule of the format that the payload breaks; [`MltFault::FastPfor64`] for words of 64 bits.
pub fn decode_256<W: Word>(
    payload: Input<'_>,
    out: &mut [W],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    if W::BITS != 32 {
        return Err(fault(MltFault::FastPfor64, HEADER).at(payload.offset()));
    }
    // Taken out, since exceptions are in the same scratch memory.
    let mut bytes = std::mem::take(&mut scratch.bytes);
    let form = Form::of_256(payload);
    let result =
        words_of(payload, form, options, &mut bytes).and_then(|words| decode(words, form, out, options, scratch));
    scratch.bytes = bytes;
    result
}

/// Decodes a payload of version 2, packed as [`Options::packing`] says.
///
/// # Errors
/// Each rule of the format that the payload breaks.
pub fn decode_128<W: Word>(
    payload: Input<'_>,
    out: &mut [W],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let form = Form::of_128(payload, W::BITS, options.packing);
    decode(words_of(payload, form, options, &mut Vec::new())?, form, out, options, scratch)
}

/// The payload with little-endian words: as it is, or swapped into `bytes`.
pub(crate) fn words_of<'a>(
    payload: Input<'a>,
    form: Form,
    options: &Options,
    bytes: &'a mut Vec<u8>,
) -> Result<Input<'a>, Error> {
    let found = payload.bytes().len();
    if !found.is_multiple_of(4) {
        return Err(fault(MltFault::FastPforLength { found: found as u64 }, PAGES).at(payload.offset()));
    }
    if !form.swapped {
        return Ok(payload);
    }
    Limits::check(found as u64, options.limits.max_scratch_bytes, Limit::ScratchBytes, PAGES)?;
    let swapped = super::room(bytes, found);
    options.kernels.swap_words(payload.bytes(), swapped);
    Ok(Input::at(swapped, payload.offset()))
}

/// Takes the number of values that are in blocks, of `count` in all.
pub(crate) fn block_values(words: &mut Input<'_>, form: Form, count: usize) -> Result<usize, Error> {
    if count == 0 && words.bytes().is_empty() {
        return Ok(0);
    }
    let start = *words;
    let (found, expected) = (word(words, start)?, count as u64);
    let values = usize::try_from(found).unwrap_or(usize::MAX);
    let fault_is = if !values.is_multiple_of(form.block) {
        MltFault::FastPforBlockValues { found, block: if form.block == 256 { 256 } else { 128 } }
    } else if values > count {
        MltFault::FastPforCount { found: found.into(), expected }
    } else {
        return Ok(values);
    };
    Err(fault(fault_is, HEADER).at(start.offset()))
}

/// Takes bytes of the page that starts at `page`.
#[inline]
fn take<'a>(words: &mut Input<'a>, bytes: u64, page: Input<'a>) -> Result<&'a [u8], Error> {
    let at = words.offset();
    words.take(bytes, PAGES).map_err(|_| {
        let needed = (at - page.offset() + bytes).div_ceil(4);
        let kind = MltFault::FastPforPage { needed, available: page.bytes().len() as u64 / 4 };
        fault(kind, PAGES).at(at)
    })
}

#[inline]
fn word<'a>(words: &mut Input<'a>, page: Input<'a>) -> Result<u32, Error> {
    let four = take(words, 4, page)?;
    Ok(four.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte)))
}

/// A page, behind which its exception arrays follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    form: Form,
    /// All from the page's start on.
    whole: Input<'a>,
    values: usize,
    /// The packed blocks.
    pub packed: Input<'a>,
    /// The entries of blocks.
    pub entries: Input<'a>,
    /// Bit `k - 1` for each width `k` that has an array, but for those that were read.
    pub arrays: u64,
}

impl<'a> Page<'a> {
    /// Takes all but the exception arrays of a page of so many values.
    #[inline]
    pub(crate) fn read(words: &mut Input<'a>, form: Form, values: usize) -> Result<Page<'a>, Error> {
        let whole = *words;
        let end = word(words, whole)?;
        if end == 0 {
            return Err(fault(MltFault::FastPforOffset { found: 0, expected: 1 }, PAGES).at(whole.offset()));
        }
        let start = words.offset();
        let packed = Input::at(take(words, 4 * (u64::from(end) - 1), whole)?, start);
        let size = u64::from(word(words, whole)?);
        let start = words.offset();
        let entries = take(words, size.next_multiple_of(4), whole)?;
        let entries = Input::at(&entries[..usize::try_from(size).unwrap_or(entries.len())], start);
        let start = words.offset();
        let mut arrays = u64::from(word(words, whole)?);
        if form.bits == 64 {
            arrays |= u64::from(word(words, whole)?) << 32;
        }
        if arrays & 1 != 0 {
            return Err(fault(MltFault::FastPforBitmap, ARRAYS).at(start));
        }
        Ok(Page { form, whole, values, packed, entries, arrays })
    }

    /// Takes the next exception array, if there is one left.
    #[inline]
    pub(crate) fn next_array(&mut self, words: &mut Input<'a>) -> Result<Option<Array<'a>>, Error> {
        if self.arrays == 0 {
            return Ok(None);
        }
        let width = self.arrays.trailing_zeros() + 1;
        self.arrays &= self.arrays - 1;
        let start = words.offset();
        let found = word(words, self.whole)?;
        if found as usize > PAGE {
            return Err(fault(MltFault::FastPforArray { found }, ARRAYS).at(start));
        }
        let packed = take(words, words_len(found as usize, width) as u64, self.whole)?;
        Ok(Some(Array { start, width, count: found, packed }))
    }

    /// What the blocks are.
    pub(crate) fn blocks(&self) -> Blocks<'a> {
        let Page { form, values, entries, .. } = *self;
        Blocks { form, left: values / form.block, entries: entries.bytes(), end: entries.end() }
    }

    /// The blocks do not take just the words that the page has for them, or their entries are at fault.
    #[cold]
    pub(crate) fn other_size(&self) -> Error {
        let (mut blocks, mut expected) = (self.blocks(), 1);
        loop {
            match blocks.next() {
                Ok(Some(block)) => expected += words_len(self.form.block, block.width) as u64 / 4,
                Ok(None) => break,
                Err(error) => return error,
            }
        }
        let found = 1 + self.packed.bytes().len() as u64 / 4;
        fault(MltFault::FastPforOffset { found, expected }, PAGES).at(self.whole.offset())
    }
}

/// An exception array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array<'a> {
    /// Absolute offset of its count.
    pub start: u64,
    pub width: u32,
    pub count: u32,
    pub packed: &'a [u8],
}

/// The blocks of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks<'a> {
    form: Form,
    left: usize,
    entries: &'a [u8],
    /// Absolute offset behind the entries.
    end: u64,
}

/// What a block is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    /// Absolute offset of its entry.
    pub start: u64,
    pub width: u32,
    /// That of its widest value; `width` if there are no exceptions.
    pub max_width: u32,
    /// Where its exceptions are in the block.
    pub positions: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// The next block's entry.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Block<'a>>, Error> {
        let start = self.end - self.entries.len() as u64;
        if self.left == 0 {
            return if self.entries.is_empty() { Ok(None) } else { Err(self.other_entries(0)) };
        }
        let Form { block, bits, .. } = self.form;
        let &[width, exceptions, ref rest @ ..] = self.entries else {
            return Err(self.other_entries(2));
        };
        let wide = |found: u8, at| {
            let kind = MltFault::FastPforWidth { found, max: if bits == 64 { 64 } else { 32 } };
            Err(fault(kind, BLOCKS).at(self.form.stored(start + at)))
        };
        if u32::from(width) > bits {
            return wide(width, 0);
        }
        if exceptions == 0 {
            (self.entries, self.left) = (rest, self.left - 1);
            return Ok(Some(Block { start, width: width.into(), max_width: width.into(), positions: &[] }));
        }
        let split = rest.split_first().and_then(|(&max, rest)| Some((max, rest.split_at_checked(exceptions.into())?)));
        let Some((max_width, (positions, rest))) = split else {
            return Err(self.other_entries(3 + u64::from(exceptions)));
        };
        if u32::from(max_width) > bits {
            return wide(max_width, 2);
        }
        if max_width <= width {
            let kind = MltFault::FastPforMaxWidth { found: max_width, width };
            return Err(fault(kind, BLOCKS).at(self.form.stored(start + 2)));
        }
        if let Some(at) = positions.iter().position(|&position| usize::from(position) >= block) {
            let kind = MltFault::FastPforPosition { found: positions[at], values: 128 };
            return Err(fault(kind, BLOCKS).at(self.form.stored(start + 3 + at as u64)));
        }
        (self.entries, self.left) = (rest, self.left - 1);
        Ok(Some(Block { start, width: width.into(), max_width: max_width.into(), positions }))
    }

    /// Whether another block of this width follows.
    fn continues(&self, width: u32) -> bool {
        self.left > 0 && self.entries.first().is_some_and(|&next| u32::from(next) == width)
    }

    /// The entries are longer than the blocks need, or shorter than a block's `needed` bytes.
    #[cold]
    fn other_entries(&self, needed: u64) -> Error {
        let kind = MltFault::FastPforEntries { found: self.entries.len() as u64, expected: needed };
        fault(kind, BLOCKS).at(self.end - self.entries.len() as u64)
    }
}

fn decode<W: Word>(
    mut words: Input<'_>,
    form: Form,
    out: &mut [W],
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let (blocks, tail) = out.split_at_mut(block_values(&mut words, form, out.len())?);
    let exceptions = W::exceptions(scratch);
    for out in blocks.chunks_mut(PAGE) {
        let mut page = Page::read(&mut words, form, out.len())?;
        // Of each width, those of its array that are left.
        let mut left = [[0u32; 2]; 65];
        let mut held = 0;
        while let Some(array) = page.next_array(&mut words)? {
            let end = held + array.count;
            let size = u64::from(end) * u64::from(W::BITS / 8);
            Limits::check(size, options.limits.max_scratch_bytes, Limit::ScratchBytes, ARRAYS)?;
            let values = &mut super::room(exceptions, end as usize)[held as usize..];
            form.unpack(array.packed, array.width, values, options);
            left[array.width as usize] = [held, end];
            held = end;
        }
        page_values(&page, exceptions, &mut left, out, options)?;
    }
    decode_tail(words, blocks.len(), tail, options)
}

fn page_values<W: Word>(
    page: &Page<'_>,
    exceptions: &[W],
    left: &mut [[u32; 2]; 65],
    out: &mut [W],
    options: &Options,
) -> Result<(), Error> {
    let form = page.form;
    let (mut blocks, mut packed, mut out) = (page.blocks(), page.packed.bytes(), out);
    loop {
        let mut run = blocks;
        let Some(Block { width, positions, .. }) = blocks.next()? else {
            break;
        };
        // Blocks of one width are unpacked together.
        let (mut n, mut patched) = (form.block, !positions.is_empty());
        while blocks.continues(width)
            && let Some(block) = blocks.next()?
        {
            n += form.block;
            patched |= !block.positions.is_empty();
        }
        let Some((these, rest)) = packed.split_at_checked(words_len(n, width)) else {
            return Err(page.other_size());
        };
        let (values, others) = out.split_at_mut(n);
        form.unpack(these, width, values, options);
        if patched {
            for values in values.chunks_mut(form.block) {
                if let Some(block) = run.next()? {
                    patch(block, form, exceptions, left, values, options)?;
                }
            }
        }
        (packed, out) = (rest, others);
    }
    if packed.is_empty() { Ok(()) } else { Err(page.other_size()) }
}

fn patch<W: Word>(
    block: Block<'_>,
    form: Form,
    exceptions: &[W],
    left: &mut [[u32; 2]; 65],
    values: &mut [W],
    options: &Options,
) -> Result<(), Error> {
    let Block { start, width, max_width, positions } = block;
    if positions.is_empty() {
        return Ok(());
    }
    let more = max_width - width;
    let these = if more == 1 {
        // They have no array: all are 1.
        &W::ONES[..positions.len()]
    } else {
        let [at, end] = &mut left[more as usize];
        let Some(these) = exceptions[*at as usize..*end as usize].get(..positions.len()) else {
            let width = more.to_le_bytes()[0];
            return Err(fault(MltFault::FastPforException { width }, BLOCKS).at(form.stored(start)));
        };
        *at += u32::try_from(positions.len()).unwrap_or(0);
        these
    };
    W::patch(options.kernels, positions, these, width, values);
    Ok(())
}

/// The values behind the last of `before` in blocks: all that the rest of a payload holds, but for an unfinished one.
fn decode_tail<W: Word>(rest: Input<'_>, before: usize, out: &mut [W], options: &Options) -> Result<(), Error> {
    let seen = W::vbytes(options.kernels, rest.bytes(), out);
    let behind = &rest.bytes()[seen.bytes..];
    let more = behind.iter().filter(|&&byte| byte >= 0x80).count();
    if seen.values == out.len() && more == 0 {
        return Ok(());
    }
    let at = rest.offset() + seen.bytes as u64;
    if seen.values < out.len() && more > 0 {
        // One that ends, but has too many bits or bytes.
        let kind = ErrorKind::Encoding(EncodingFault::VarintOverflow { bits: W::BITS });
        return Err(Error::new(kind, TAIL).at(at).index((before + seen.values) as u64));
    }
    let found = (before + seen.values + more) as u64;
    Err(fault(MltFault::FastPforCount { found, expected: (before + out.len()) as u64 }, TAIL).at(at))
}

/// Appends a payload of version 1; nothing if there are no words.
///
/// # Panics
/// If the words have 64 bits, or are 2^32.
#[cfg(feature = "encode")]
pub fn encode_256<W: Word>(words: &[W], out: &mut Vec<u8>) {
    assert!(W::BITS == 32, "FastPFOR of version 1 has words of 32 bits");
    encode(words, Form::of_256(Input::new(&[])), out);
}

/// Appends a payload of version 2; nothing if there are no words.
///
/// # Panics
/// If there are 2^32 words.
#[cfg(feature = "encode")]
pub fn encode_128<W: Word>(words: &[W], packing: Packing, out: &mut Vec<u8>) {
    encode(words, Form::of_128(Input::new(&[]), W::BITS, packing), out);
}

#[cfg(feature = "encode")]
fn encode<W: Word>(words: &[W], form: Form, out: &mut Vec<u8>) {
    if words.is_empty() {
        return;
    }
    let start = out.len();
    let (blocks, tail) = words.split_at(words.len() / form.block * form.block);
    push_word(blocks.len(), out);
    blocks.chunks(PAGE).for_each(|page| encode_page(page, form, out));
    for word in tail {
        let from = out.len();
        crate::output::push_uleb(word.widen(), out);
        // Of each value the last byte is marked, not all the others.
        out[from..].iter_mut().for_each(|byte| *byte ^= 0x80);
    }
    pad(start, out);
    if form.swapped {
        out[start..].as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    }
}

#[cfg(feature = "encode")]
fn encode_page<W: Word>(values: &[W], form: Form, out: &mut Vec<u8>) {
    let (mut packed, mut entries) = (Vec::new(), Vec::new());
    let mut arrays: Vec<Vec<W>> = vec![Vec::new(); 65];
    let byte = |n: usize| n.to_le_bytes()[0];
    for block in values.chunks(form.block) {
        let (width, max_width) = widths(block);
        let high = |value: W| value.widen().checked_shr(width).unwrap_or(0);
        let low: Vec<W> = block.iter().map(|&value| W::cut(value.widen() ^ high(value) << (width % 64))).collect();
        pack(&low, width, form, &mut packed);
        let wide = || block.iter().enumerate().filter(|(_, value)| high(**value) > 0);
        entries.extend([byte(width as usize), byte(wide().count())]);
        if max_width > width {
            entries.push(byte(max_width as usize));
            entries.extend(wide().map(|(position, _)| byte(position)));
            arrays[(max_width - width) as usize].extend(wide().map(|(_, value)| W::cut(high(*value))));
        }
    }
    push_word(1 + packed.len() / 4, out);
    out.append(&mut packed);
    push_word(entries.len(), out);
    let start = out.len();
    out.append(&mut entries);
    pad(start, out);
    // Exceptions that are one bit wider need no array.
    let arrays = || arrays.iter().enumerate().skip(2).filter(|(_, array)| !array.is_empty());
    let bitmap = arrays().fold(0u64, |bitmap, (width, _)| bitmap | 1 << (width - 1));
    out.extend_from_slice(&bitmap.to_le_bytes()[..form.bits as usize / 8]);
    for (width, array) in arrays() {
        push_word(array.len(), out);
        pack(array, u32::try_from(width).unwrap_or(0), form, out);
    }
}

/// The width of a block and that of its widest value, at the cost that the format names.
#[cfg(feature = "encode")]
fn widths<W: Word>(block: &[W]) -> (u32, u32) {
    let mut counts = [0; 65];
    for value in block {
        counts[64 - value.widen().leading_zeros() as usize] += 1;
    }
    let max_width = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let (mut best, mut least, mut exceptions) = (max_width, block.len() * max_width, 0);
    for width in (0..max_width).rev() {
        exceptions += counts[width + 1];
        let cost = block.len() * width + exceptions * (8 + max_width - width) + 8;
        if exceptions < block.len() && cost < least {
            (best, least) = (width, cost);
        }
    }
    let bits = |width: usize| u32::from(width.to_le_bytes()[0]);
    (bits(best), bits(max_width))
}

/// Appends values of one width in whole words.
#[cfg(feature = "encode")]
fn pack<W: Word>(values: &[W], width: u32, form: Form, out: &mut Vec<u8>) {
    let packed = |values: &mut dyn Iterator<Item = &W>| {
        let mut bytes = Vec::new();
        crate::output::pack(values.map(|value| value.widen()), width, &mut bytes);
        bytes
    };
    let (groups, rest) = if form.interleaved { values.as_chunks::<128>() } else { (&[][..], values) };
    let size = form.bits as usize / 8;
    for group in groups {
        // Each lane on its own, then a word of each in turn.
        let lanes: Vec<Vec<u8>> =
            (0..16 / size).map(|lane| packed(&mut group.iter().skip(lane).step_by(16 / size))).collect();
        for word in 0..width as usize {
            lanes.iter().for_each(|lane| out.extend_from_slice(&lane[word * size..][..size]));
        }
    }
    let start = out.len();
    out.append(&mut packed(&mut rest.iter()));
    pad(start, out);
}

#[cfg(feature = "encode")]
fn push_word(value: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(value).expect("fewer than 2^32").to_le_bytes());
}

/// Fills up to whole words from `start` on.
#[cfg(feature = "encode")]
fn pad(start: usize, out: &mut Vec<u8>) {
    out.resize(start + (out.len() - start).next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, everywhere, told};
    use super::*;

    type Refusal = (&'static str, u64);

    fn decoded<W: Word>(form: usize, bytes: &[u8], n: usize) -> Result<Vec<W>, Refusal> {
        decoded_as(form, Packing::Interleaved, bytes, n)
    }

    fn decoded_as<W: Word>(form: usize, packing: Packing, bytes: &[u8], n: usize) -> Result<Vec<W>, Refusal> {
        let mut scratch = Scratch::new();
        everywhere(|options| {
            let (options, mut out) = (options.packing(packing), vec![W::cut(0x55); n]);
            let result = match form {
                256 => decode_256(at(bytes), &mut out, &options, &mut scratch),
                _ => decode_128(at(bytes), &mut out, &options, &mut scratch),
            };
            if result.is_ok() { Ok(out) } else { Err(told(result)) }
        })
    }

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    }

    /// The values of the format's example.
    fn example<W: Word>() -> Vec<W> {
        let value = |i| match i {
            5 => 300,
            77 => 20,
            128 => 5,
            129 => 200,
            i => i % 8,
        };
        (0..130).map(|i| W::cut(value(i))).collect()
    }

    const EXAMPLE_32: &str = "800000000d00000020088220619aa669b22ccbb2fbbeeffb088220089aa669982ccbb22cbeeffbbe8220088\
                              2a6699aa6cbb22ccbeffbbeef05000000030209054d0000002000000002000000a500000085488100";
    const EXAMPLE_64: &str = "800000000d000000100dd1100dd1100d199ff5599ff5599fd1100dd1100dd110f5599ff5599ff1590dd1100\
                              dd1100dd19ff5599ff5599ff505000000030209054d000000200000000000000002000000a500000085488100";

    /// Where the parts of the example are.
    const OFFSET: usize = 4;
    const ENTRIES: usize = 60;
    const BITMAP: usize = 68;
    const ARRAY: usize = 72;
    const TAIL_AT: usize = 80;

    #[test]
    fn worked_example() {
        let (narrow, wide) = (unhex(EXAMPLE_32), unhex(EXAMPLE_64));
        assert_eq!((narrow.len(), wide.len()), (21 * 4, 22 * 4));
        assert_eq!(decoded::<u32>(128, &narrow, 130), Ok(example()));
        assert_eq!(decoded::<u64>(128, &wide, 130), Ok(example()));
    }

    /// Tail alone: bytes are reversed in each word.
    #[test]
    fn version_1() {
        let payload = unhex("00000000860ce1ea8353866300821cdf");
        assert_eq!(decoded::<u32>(256, &payload, 7), Ok(vec![106, 97, 780, 867, 467, 95, 284]));
        assert_eq!(decoded::<u32>(256, &[], 0), Ok(vec![]));
        assert_eq!(decoded::<u32>(256, &[0; 4], 0), Ok(vec![]));
        // R39.
        assert_eq!(decoded::<u64>(256, &payload, 7), Err(("fastpfor_64_bit", 0)));
    }

    /// The example with some bytes replaced.
    fn changed(changes: &[(usize, &[u8])]) -> Vec<u8> {
        let mut payload = unhex(EXAMPLE_32);
        for &(at, bytes) in changes {
            payload[at..at + bytes.len()].copy_from_slice(bytes);
        }
        payload
    }

    fn refused(changes: &[(usize, &[u8])]) -> Refusal {
        decoded::<u32>(128, &changed(changes), 130).unwrap_err()
    }

    /// R3, R9 and R10, but for pages.
    #[test]
    fn refused_counts() {
        let payload = unhex(EXAMPLE_32);
        for cut in [1, 2, 3, 81, 83] {
            assert_eq!(decoded::<u32>(128, &payload[..cut], 130), Err(("fastpfor_length", 0)));
        }
        assert_eq!(decoded::<u32>(128, &[], 130), Err(("fastpfor_page", 0)));
        assert_eq!(refused(&[(0, &[100])]), ("fastpfor_block_values", 0));
        assert_eq!(refused(&[(0, &[0, 1])]), ("fastpfor_count", 0));
        assert_eq!(refused(&[(0, &[0x80, 0xff, 0xff, 0xff])]), ("fastpfor_count", 0));
        assert_eq!(decoded::<u32>(128, &payload, 129), Err(("fastpfor_count", TAIL_AT as u64 + 1)));
        assert_eq!(decoded::<u32>(128, &payload, 131), Err(("fastpfor_count", TAIL_AT as u64 + 3)));
        // A tail of any bytes that end no value is discarded.
        assert_eq!(decoded::<u32>(128, &changed(&[(TAIL_AT + 3, &[0x7f])]), 130), Ok(example()));
        // Values of too many bytes, and of too many bits.
        assert_eq!(decoded::<u32>(128, &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 0, 0], 1), Err(("varint_overflow", 4)));
        assert_eq!(decoded::<u32>(128, &[0, 0, 0, 0, 1, 0, 0, 0, 0x90, 0, 0, 0], 1), Err(("varint_overflow", 4)));
        assert_eq!(decoded::<u64>(128, &[0, 0, 0, 0, 1, 0, 0, 0, 0x90, 0, 0, 0], 1), Ok(vec![0x1_0000_0001]));
        // Version 1 has its bytes reversed in words.
        assert_eq!(decoded::<u32>(256, &[0, 0, 0, 0, 0, 0, 0, 0x81], 2), Err(("fastpfor_count", 5)));
    }

    /// R4 to R9.
    #[test]
    fn refused_pages() {
        let entries = ENTRIES as u64;
        assert_eq!(refused(&[(ENTRIES, &[33])]), ("fastpfor_width", entries));
        assert_eq!(refused(&[(ENTRIES + 2, &[33])]), ("fastpfor_width", entries + 2));
        assert_eq!(refused(&[(ENTRIES + 2, &[3])]), ("fastpfor_max_width", entries + 2));
        assert_eq!(refused(&[(ENTRIES + 4, &[128])]), ("fastpfor_position", entries + 4));
        // Two exceptions of 5 bits, which have no array, and one too few of 6 bits.
        assert_eq!(refused(&[(ENTRIES + 2, &[8])]), ("fastpfor_exception", entries));
        assert_eq!(refused(&[(ARRAY, &[1])]), ("fastpfor_exception", entries));
        assert_eq!(refused(&[(ARRAY, &[1, 0, 1])]), ("fastpfor_array", ARRAY as u64));
        // Where blocks end.
        assert_eq!(refused(&[(OFFSET, &[0])]), ("fastpfor_offset", 4));
        assert_eq!(refused(&[(OFFSET, &[18])]), ("fastpfor_page", ARRAY as u64 + 8));
        assert_eq!(refused(&[(ENTRIES, &[4])]), ("fastpfor_offset", 4));
        assert_eq!(refused(&[(ENTRIES, &[2, 2, 8])]), ("fastpfor_offset", 4));
        // The entries' size.
        assert_eq!(refused(&[(ENTRIES - 4, &[0xff, 0xff, 0xff, 0xff])]), ("fastpfor_page", entries));
        assert_eq!(refused(&[(ENTRIES - 4, &[6])]), ("fastpfor_entries", entries + 5));
        assert_eq!(refused(&[(ENTRIES + 1, &[3])]), ("fastpfor_entries", entries));
        assert_eq!(refused(&[(BITMAP, &[0x21])]), ("fastpfor_bitmap", BITMAP as u64));
        assert_eq!(refused(&[(BITMAP, &[0x20, 0, 0, 0x80])]), ("fastpfor_array", TAIL_AT as u64));
        // Cut at every word: the tail's is not a page's.
        let payload = unhex(EXAMPLE_32);
        for words in 0..TAIL_AT / 4 {
            let (name, offset) = decoded::<u32>(128, &payload[..4 * words], 130).unwrap_err();
            assert_eq!(name, "fastpfor_page");
            assert!(offset <= 4 * words as u64, "{words} words: {offset}");
        }
        assert_eq!(decoded::<u32>(128, &payload[..TAIL_AT], 130), Err(("fastpfor_count", TAIL_AT as u64)));
    }

    /// Values with exceptions of one bit have no array; padding of entries, and behind the last value of an array, is
    /// ignored.
    #[test]
    fn accepted() {
        let ignored = changed(&[(ENTRIES + 5, &[1, 2, 3]), (ARRAY + 5, &[0xf0, 0xff, 0xff])]);
        assert_eq!(decoded::<u32>(128, &ignored, 130), Ok(example()));
        let mut one = changed(&[(ENTRIES + 2, &[4]), (BITMAP, &[0])]);
        one.drain(ARRAY..TAIL_AT);
        let mut expected = example::<u32>();
        (expected[5], expected[77]) = (300 & 7 | 8, 20 & 7 | 8);
        assert_eq!(decoded(128, &one, 130), Ok(expected));
    }

    #[cfg(feature = "encode")]
    mod encoding {
        use proptest::prelude::*;

        use super::*;

        const SEQUENTIAL: Packing = Packing::Sequential;
        const INTERLEAVED: Packing = Packing::Interleaved;

        fn encoded<W: Word>(form: usize, packing: Packing, values: &[W]) -> Vec<u8> {
            // What is there stays, and its length does not matter.
            let mut out = vec![7];
            match form {
                256 => encode_256(values, &mut out),
                _ => encode_128(values, packing, &mut out),
            }
            assert_eq!(out.remove(0), 7);
            assert!(out.len() as u64 >= least_bytes(form as u64, values.len() as u64));
            out
        }

        /// As many values as wanted, of `width` bits but for one in `wide`, which has up to `max`.
        fn values<W: Word>(n: usize, width: u32, wide: usize, max: u32) -> Vec<W> {
            let mut state = n as u64 + u64::from(width);
            let mut next = |bits: u32| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state ^ state >> 29).checked_shr(64 - bits).unwrap_or(0)
            };
            (0..n).map(|i| W::cut(next(if i % wide == wide - 1 { max } else { width }))).collect()
        }

        fn round_trip<W: Word>(values: &[W]) {
            let forms: &[(usize, Packing)] = &[(256, SEQUENTIAL), (128, INTERLEAVED), (128, SEQUENTIAL)];
            let mut sizes = Vec::new();
            for &(form, packing) in &forms[usize::from(W::BITS == 64)..] {
                let payload = encoded(form, packing, values);
                let back = decoded_as::<W>(form, packing, &payload, values.len()).unwrap();
                assert!(back == values, "{} values in blocks of {form}, {packing:?}", values.len());
                sizes.push(payload.len());
            }
            // Both packings have the same size.
            assert_eq!(sizes[sizes.len() - 2], sizes[sizes.len() - 1]);
        }

        #[test]
        fn worked_example() {
            assert_eq!(encoded(128, INTERLEAVED, &example::<u32>()), unhex(EXAMPLE_32));
            assert_eq!(encoded(128, INTERLEAVED, &example::<u64>()), unhex(EXAMPLE_64));
            let ids = [106, 97, 780, 867, 467, 95, 284];
            assert_eq!(encoded::<u32>(256, SEQUENTIAL, &ids), unhex("00000000860ce1ea8353866300821cdf"));
            assert!(
                encoded::<u32>(256, SEQUENTIAL, &[]).is_empty() && encoded::<u64>(128, INTERLEAVED, &[]).is_empty()
            );
        }

        #[test]
        fn every_width() {
            for width in 0..=64 {
                for wide in [3, 9, 128, usize::MAX] {
                    for max in [width + 1, width + 2, width + 7, 64] {
                        if max <= 32 {
                            round_trip(&values::<u32>(700, width, wide, max));
                        }
                        if width < max && max <= 64 {
                            round_trip(&values::<u64>(400, width, wide, max));
                        }
                    }
                }
            }
        }

        #[test]
        fn every_length() {
            for n in (0..=3).chain(125..131).chain(254..259).chain([383, 511, 513]) {
                round_trip(&values::<u32>(n, 5, 20, 17));
                round_trip(&values::<u64>(n, 40, 20, 60));
            }
            for n in [PAGE - 1, PAGE, PAGE + 1, PAGE + 128, 2 * PAGE + 300] {
                round_trip(&values::<u32>(n, 3, 50, 11));
                round_trip(&values::<u64>(n, 33, 50, 41));
            }
        }

        /// The cost that the format names, by its words.
        #[test]
        fn cheapest_width() {
            let mut block = [1u32; 128];
            assert_eq!(widths(&block), (1, 1));
            block[..12].fill(1 << 20);
            // 128 * 1 + 12 * 8 + 12 * 20 + 8 = 472 bits beside 128 * 21.
            assert_eq!(widths(&block), (1, 21));
            // 8 + 8 bits for one exception; the block's 128 bits less a width are more.
            assert_eq!(widths(&[[0u64; 127].as_slice(), &[1]].concat()), (0, 1));
            assert_eq!(widths(&[0u32; 128]), (0, 0));
            // 16 exceptions of one bit: 128 + 16 + 8 bits beside 128.
            assert_eq!(widths(&[[0u64; 112].as_slice(), &[1; 16]].concat()), (1, 1));
            assert_eq!(widths(&[[0u64; 115].as_slice(), &[1; 13]].concat()), (0, 1));
            // Never all.
            assert_eq!(widths(&[u64::MAX; 128]), (64, 64));
        }

        /// Any damage gives the same values or the same error on every level, which [`decoded`] checks.
        #[test]
        fn damaged() {
            let values = values::<u32>(600, 4, 11, 13);
            for (form, packing) in [(256, SEQUENTIAL), (128, INTERLEAVED), (128, SEQUENTIAL)] {
                let payload = encoded(form, packing, &values);
                for cut in 0..payload.len() {
                    assert!(decoded_as::<u32>(form, packing, &payload[..cut], 600).is_err(), "cut at {cut}");
                }
                for at in 0..payload.len() {
                    for change in [1, 0x80, 0xff] {
                        let mut payload = payload.clone();
                        payload[at] ^= change;
                        if let Err((_, offset)) = decoded_as::<u32>(form, packing, &payload, 600) {
                            assert!(offset <= payload.len() as u64);
                        }
                    }
                }
            }
        }

        proptest! {
            #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
            #[test]
            fn mixed_blocks(
                blocks in proptest::collection::vec((0..600usize, 0..=64u32, 1..200usize, 0..=64u32), 0..8)
            ) {
                let all: Vec<u64> = blocks.iter().flat_map(|&(n, width, wide, max)| values(n, width, wide, max)).collect();
                let narrow: Vec<u32> = all.iter().map(|&value| u32::cut(value)).collect();
                round_trip(&all);
                round_trip(&narrow);
            }

            #[test]
            fn any_words(mut words in proptest::collection::vec(0..300u32, 1..60), n in 0..700usize) {
                words[0] = n as u32 / 256 * 256;
                let little: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let big: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
                _ = decoded::<u32>(256, &big, n);
                _ = decoded::<u32>(128, &little, n);
                _ = decoded::<u64>(128, &little, n);
            }
        }
    }
}
