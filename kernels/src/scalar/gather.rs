//! Entries of a table by their indices.

/// Where the first index outside a table of `entries` is.
#[inline(always)]
pub(crate) fn first_outside(entries: usize, indices: &[u32]) -> Option<usize> {
    indices.iter().position(|&index| index as usize >= entries)
}

/// Entries of 4 bytes.
#[inline(always)]
pub fn gather_u32(table: &[u32], indices: &[u32], out: &mut [u32]) -> Option<usize> {
    entries(table, indices, out, 0)
}

/// Entries of 8 bytes.
#[inline(always)]
pub fn gather_u64(table: &[u64], indices: &[u32], out: &mut [u64]) -> Option<usize> {
    entries(table, indices, out, 0)
}

/// Entries of `k` bytes.
#[inline(always)]
pub fn gather_bytes(table: &[u8], k: usize, indices: &[u32], out: &mut [u8]) -> Option<usize> {
    match k {
        1 => entries(table, indices, out, 0),
        2 => arrays::<2>(table, indices, out),
        3 => arrays::<3>(table, indices, out),
        4 => arrays::<4>(table, indices, out),
        8 => arrays::<8>(table, indices, out),
        12 => arrays::<12>(table, indices, out),
        16 => arrays::<16>(table, indices, out),
        _ => {
            let entries = table.len() / k;
            for (out, &index) in out.chunks_exact_mut(k).zip(indices) {
                let index = index as usize;
                if index < entries {
                    out.copy_from_slice(&table[index * k..][..k]);
                } else {
                    out.fill(0);
                }
            }
            first_outside(entries, indices)
        }
    }
}

#[inline(always)]
fn arrays<const K: usize>(table: &[u8], indices: &[u32], out: &mut [u8]) -> Option<usize> {
    entries(table.as_chunks::<K>().0, indices, out.as_chunks_mut::<K>().0, [0; K])
}

/// `nothing` stands where an index is outside.
#[inline(always)]
fn entries<T: Copy>(table: &[T], indices: &[u32], out: &mut [T], nothing: T) -> Option<usize> {
    let mut outside = false;
    for (out, &index) in out.iter_mut().zip(indices) {
        let entry = table.get(index as usize);
        outside |= entry.is_none();
        *out = *entry.unwrap_or(&nothing);
    }
    if outside { first_outside(table.len(), indices) } else { None }
}
