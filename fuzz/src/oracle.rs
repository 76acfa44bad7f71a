//! A reader of tiles written from the format document alone, for clarity only: what it says, the engine must say.

/// A tile's matrix.
#[derive(Debug, PartialEq)]
pub struct Matrix {
    /// Cells + 1 bounds.
    pub indptr: Vec<i64>,
    /// The gene of each nonzero.
    pub indices: Vec<i32>,
    /// Its count.
    pub counts: Vec<i32>,
}

/// Nonzeros above which a fuzzer has no time.
pub const MAX_NONZEROS: u64 = 1 << 17;

/// The matrix of a tile whose CRC is not looked at; `None` where the tile must be refused.
pub fn read(tile: &[u8]) -> Option<Matrix> {
    let size = tile.len() as u64;
    let zeros = u32_at(tile, 12)? | u32_at(tile, 60)?;
    if !tile.starts_with(b"DELTACEL") || u32_at(tile, 8)? != 2 || zeros != 0 || u64_at(tile, 48)? != size {
        return None;
    }
    let (n_cells, nnz, n_genes) = (u64_at(tile, 16)?, u64_at(tile, 24)?, u64::from(u32_at(tile, 32)?));
    let (n_chunks, indptr_off) = (u64::from(u32_at(tile, 36)?), u64_at(tile, 40)?);
    let indptr_end = n_cells.checked_add(1)?.checked_mul(8)?.checked_add(indptr_off)?;
    let sound = (1..=1 << 31).contains(&n_genes)
        && (n_cells == 0) == (n_chunks == 0)
        && indptr_off % 8 == 0
        && indptr_off >= 64 + 96 * n_chunks
        && indptr_end <= size;
    if !sound {
        return None;
    }
    let bound = |cell: u64| u64_at(tile, indptr_off + 8 * cell);
    let rows_sound = (0..n_cells).all(|cell| match (bound(cell), bound(cell + 1)) {
        (Some(start), Some(end)) => start <= end && end - start <= n_genes,
        _ => false,
    });
    if !rows_sound || bound(0)? != 0 || bound(n_cells)? != nnz {
        return None;
    }
    let mut matrix = Matrix { indptr: Vec::new(), indices: Vec::new(), counts: Vec::new() };
    for cell in 0..=n_cells {
        matrix.indptr.push(i64::try_from(bound(cell)?).ok()?);
    }
    let (mut cell, mut nonzero) = (0, 0);
    for chunk in 0..n_chunks {
        let field = |i: u64| u64_at(tile, 64 + 96 * chunk + 8 * i);
        let (cells, nonzeros) = (field(0)?..field(1)?, field(2)?..field(3)?);
        if cells.start != cell || cells.end < cell || cells.end > n_cells {
            return None;
        }
        if nonzeros.start != nonzero || nonzeros.end < nonzero || nonzeros.end != bound(cells.end)? {
            return None;
        }
        (cell, nonzero) = (cells.end, nonzeros.end);
        let n = nonzeros.end - nonzeros.start;
        let content = |i: u64, expected: Option<u64>| {
            let (start, len) = (field(i)?, field(i + 1)?);
            match (len, expected) {
                (0, None) => Some(Vec::new()),
                (0, Some(_)) => None,
                _ if start % 8 != 0 || start < indptr_end => None,
                _ => {
                    let range = usize::try_from(start).ok()?..usize::try_from(start.checked_add(len)?).ok()?;
                    frame(tile.get(range)?, |size| match expected {
                        Some(expected) => size == expected,
                        None => size % 8 == 0 && size / 8 <= n,
                    })
                }
            }
        };
        let (gaps, counts) = (content(4, Some(2 * n))?, content(6, Some(2 * n))?);
        let (vexc, gexc) = (content(8, None)?, content(10, None)?);
        let gaps = values(&gaps, &gexc, |payload| (1..n_genes).contains(&payload).then_some(65_535 + payload))?;
        let counts = values(&counts, &vexc, |payload| (65_536..1 << 31).contains(&payload).then_some(payload))?;
        for cell in cells {
            let row = bound(cell)? - nonzeros.start..bound(cell + 1)? - nonzeros.start;
            let mut gene = 0;
            for i in row.clone() {
                let i_in_chunk = usize::try_from(i).ok()?;
                gene += gaps[i_in_chunk];
                if gene >= n_genes || (gaps[i_in_chunk] == 0 && i > row.start) || counts[i_in_chunk] == 0 {
                    return None;
                }
                matrix.indices.push(i32::try_from(gene).ok()?);
                matrix.counts.push(i32::try_from(counts[i_in_chunk]).ok()?);
            }
        }
    }
    (cell == n_cells && nonzero == nnz).then_some(matrix)
}

/// The values of two planes with their exceptions put in.
fn values(planes: &[u8], exceptions: &[u8], payload: impl Fn(u64) -> Option<u64>) -> Option<Vec<u64>> {
    let (low, high) = planes.split_at(planes.len() / 2);
    let mut values: Vec<u64> =
        low.iter().zip(high).map(|(&low, &high)| u64::from(low) + 256 * u64::from(high)).collect();
    let k = exceptions.len() as u64 / 8;
    let mut next = 0;
    for i in 0..k {
        let position = u64::from(u32_at(exceptions, 4 * i)?);
        let value = values.get_mut(usize::try_from(position).ok()?)?;
        if position < next || *value != 65_535 {
            return None;
        }
        *value = payload(u64::from(u32_at(exceptions, 4 * (k + i))?))?;
        next = position + 1;
    }
    Some(values)
}

/// The content of one whole frame whose stated size is right, by libzstd's own account.
pub fn frame(frame: &[u8], size_is_right: impl Fn(u64) -> bool) -> Option<Vec<u8>> {
    let frame = &narrowed(frame)[..];
    let size = stated(frame)?;
    let dictionary = zstd_safe::get_dict_id_from_frame(frame).is_some();
    if dictionary || !size_is_right(size) || zstd_safe::find_frame_compressed_size(frame) != Ok(frame.len()) {
        return None;
    }
    let size = usize::try_from(size).ok()?;
    let mut content = Vec::with_capacity(size);
    (zstd_safe::decompress(&mut content, frame) == Ok(size)).then_some(content)
}

/// The size that a frame states.
pub fn stated(frame: &[u8]) -> Option<u64> {
    zstd_safe::get_frame_content_size(&narrowed(frame)).ok()?
}

/// Frames that ask for a larger window than libzstd's largest are legal, and in one shot it needs none: so they get that.
fn narrowed(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame.len() > 5 && frame[4] & 0x20 == 0 && frame[5] >> 3 > 21 {
        frame[5] = 21 << 3;
    }
    frame
}

fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?))
}
