//! Packed bits to words. Value `i` of `width` bits starts at bit `i * width`; bit 0 is the lowest of the first byte.

/// Bytes that `n` values of `width` bits take.
#[inline(always)]
pub const fn packed_len(n: usize, width: usize) -> usize {
    // In eights, so that no count of values that fits memory overflows.
    n / 8 * width + (n % 8 * width).div_ceil(8)
}

/// `width` ones.
#[inline(always)]
pub(crate) const fn ones(width: u32) -> u64 {
    if width < 64 { (1 << width) - 1 } else { u64::MAX }
}

/// Values of up to 8 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 8 bits are set")]
pub fn unpack_u8(packed: &[u8], width: u32, out: &mut [u8]) {
    unpack::<8, _>(packed, width, out, |value| value as u8);
}

/// Values of up to 16 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 16 bits are set")]
pub fn unpack_u16(packed: &[u8], width: u32, out: &mut [u16]) {
    unpack::<8, _>(packed, width, out, |value| value as u16);
}

/// Values of up to 32 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 32 bits are set")]
pub fn unpack_u32(packed: &[u8], width: u32, out: &mut [u32]) {
    unpack::<8, _>(packed, width, out, |value| value as u32);
}

/// Values of up to 64 bits.
#[inline(always)]
pub fn unpack_u64(packed: &[u8], width: u32, out: &mut [u64]) {
    // Eight bytes from the one on where a value starts hold 57 of its bits at least.
    if width <= 57 {
        unpack::<8, _>(packed, width, out, |value| value)
    } else {
        unpack::<16, _>(packed, width, out, |value| value)
    }
}

/// Reads `WINDOW` bytes (8 or 16) for each value.
#[inline(always)]
fn unpack<const WINDOW: usize, T>(packed: &[u8], width: u32, out: &mut [T], cut: impl Fn(u64) -> T) {
    let (width, ones) = (width as usize, ones(width));
    // Eights of values start at whole bytes: where each of them does, and in which bit of that byte.
    let places: [(usize, usize); 8] = core::array::from_fn(|i| (i * width / 8, i * width % 8));
    let mut packed = packed;
    for out in out.chunks_mut(8) {
        let mut end = [0; 64 + 16];
        let from = match packed.get(..width + WINDOW) {
            Some(from) => from,
            None => {
                let bytes = packed.len().min(width);
                end[..bytes].copy_from_slice(&packed[..bytes]);
                &end[..width + WINDOW]
            }
        };
        for (out, (byte, shift)) in out.iter_mut().zip(places) {
            *out = cut(window::<WINDOW>(&from[byte..], shift) & ones);
        }
        packed = packed.get(width..).unwrap_or(&[]);
    }
}

/// The 64 bits from bit `shift` on.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the window is cut to 64 bits on purpose")]
fn window<const WINDOW: usize>(bytes: &[u8], shift: usize) -> u64 {
    if WINDOW == 8 {
        u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 8])) >> shift
    } else {
        (u128::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 16])) >> shift) as u64
    }
}

/// Groups of 128 values over four lanes of 32-bit words.
#[inline(always)]
pub fn unpack_lanes_u32(packed: &[u8], width: u32, out: &mut [u32]) {
    // With a width that is known, shifts and places are constants and four lanes one vector: with one code for all widths
    // this took six times as long.
    macro_rules! of_widths {
        ($($width:literal)*) => {
            match width {
                $($width => lanes32::<$width>(packed, out),)*
                _ => out.fill(0),
            }
        };
    }
    of_widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

/// Groups of 128 values over four lanes, each of `WIDTH` vectors of one word of every lane.
#[inline(always)]
fn lanes32<const WIDTH: usize>(packed: &[u8], out: &mut [u32]) {
    let groups = packed.as_chunks::<16>().0.as_chunks::<WIDTH>().0;
    for (vectors, out) in groups.iter().zip(out.as_chunks_mut::<128>().0) {
        let mut rows = out.as_chunks_mut::<4>().0.iter_mut();
        // A loop over them would not be unrolled.
        macro_rules! rows {
            ($($row:literal)*) => {
                $(if let Some(out) = rows.next() {
                    *out = row32::<WIDTH, $row>(vectors);
                })*
            };
        }
        rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    }
}

/// Row `ROW` of four lanes.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 32 bits are set")]
fn row32<const WIDTH: usize, const ROW: usize>(vectors: &[[u8; 16]; WIDTH]) -> [u32; 4] {
    let (place, shift, ones) = const { (ROW * WIDTH / 32, ROW * WIDTH % 32, ones(WIDTH as u32) as u32) };
    let words = |place: usize| vectors[place].as_chunks().0;
    core::array::from_fn(|lane| {
        let low = u32::from_le_bytes(words(place)[lane]) >> shift;
        if shift + WIDTH > 32 {
            // Cut before they are put together: else the compiler sees a rotation, for which there is no vector instruction.
            low | (u32::from_le_bytes(words(place + 1)[lane]) << (32 - shift)) & ones
        } else {
            low & ones
        }
    })
}

/// Groups of 128 values over two lanes of 64-bit words. One code for all widths: 64 of them would be as large as all other
/// kernels.
#[inline(always)]
pub fn unpack_lanes_u64(packed: &[u8], width: u32, out: &mut [u64]) {
    let (groups, _) = out.as_chunks_mut::<128>();
    let (last, ones) = (width.saturating_sub(1), ones(width));
    if width == 0 {
        return groups.as_flattened_mut().fill(ones);
    }
    // `width` vectors of 16 bytes for each group, each one word of every lane.
    for (vectors, out) in packed.as_chunks::<16>().0.chunks_exact(width as usize).zip(groups) {
        for (row, out) in (0u32..).zip(out.as_chunks_mut::<2>().0) {
            let bit = row * width;
            let (word, shift) = (bit / 64, bit % 64);
            let low = vectors[word as usize].as_chunks().0;
            // Where the value ends in the word before, what this one adds is cut off below.
            let high = vectors[last.min(word + 1) as usize].as_chunks().0;
            for (out, (&low, &high)) in out.iter_mut().zip(low.iter().zip(high)) {
                let (low, high) = (u64::from_le_bytes(low), u64::from_le_bytes(high));
                *out = (low >> shift | (high << 1) << (63 - shift)) & ones;
            }
        }
    }
}
