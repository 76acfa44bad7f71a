//! Cells in a random order that a seed alone decides, without all of them in memory.
//!
//! Each cell has a random key; the order is that of the keys. Cells are scattered over files by the upper bits of their
//! keys, and each file is put in order in memory: the result does not depend on how much memory there is.

use std::path::PathBuf;

use crate::Result;
use crate::rows::Rows;
use crate::spool::{Blocks, Spool};

/// Files over which cells are scattered.
pub const BUCKETS: usize = 256;

/// Bytes before the genes of a record: key, cell (u64), nonzeros (u32).
const HEAD: usize = 20;

/// The key of a cell: a bijection of well-mixed bits (Vigna's splitmix64, twice), so that no two cells share one.
pub fn key(seed: u64, cell: u64) -> u64 {
    fn mix(mut bits: u64) -> u64 {
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    mix(mix(cell.wrapping_mul(STEP) ^ mix(seed.wrapping_add(STEP))).wrapping_add(STEP))
}

/// The file of a key.
pub fn bucket(key: u64) -> usize {
    usize::from(key.to_be_bytes()[0])
}

/// Adds a cell to the file of its key.
pub fn scatter(spool: &mut Spool, key: u64, cell: u64, genes: &[i32], counts: &[i32]) -> Result<()> {
    let n = u32::try_from(genes.len()).unwrap_or(u32::MAX); // there are fewer genes
    let bytes = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let head = [&key.to_le_bytes()[..], &cell.to_le_bytes(), &n.to_le_bytes()].concat();
    spool.append(bucket(key), &[&head, &bytes(genes), &bytes(counts)])
}

/// What a file holds, of all spools.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    pub cells: u64,
    pub nonzeros: u64,
}

/// Hands over the cells of one file of each spool, in order, a part at a time that needs about `memory` bytes.
pub fn gather(
    folders: &[PathBuf],
    bucket: usize,
    size: Size,
    memory: usize,
    visit: &mut dyn FnMut(&Rows) -> Result<()>,
) -> Result<()> {
    let bytes = size.nonzeros.saturating_mul(16).saturating_add(size.cells.saturating_mul(64));
    // The keys of a file are evenly spread: so many even parts of them fit each into the memory, or nearly.
    let parts = bytes.div_ceil((memory as u64).max(1)).clamp(1, 1 << 20);
    for part in 0..parts {
        let mut found = Rows::default();
        let mut order: Vec<(u64, usize)> = Vec::new();
        for folder in folders {
            let mut blocks = Blocks::open(folder, bucket)?;
            while let Some(mut block) = blocks.next()? {
                while let Some((head, rest)) = block.split_first_chunk::<HEAD>() {
                    let key = u64::from_le_bytes(std::array::from_fn(|i| head[i]));
                    let n = u32::from_le_bytes(std::array::from_fn(|i| head[16 + i])) as usize;
                    let Some((values, rest)) = rest.split_at_checked(8 * n) else { break };
                    block = rest;
                    // The upper bits are those of the file.
                    if (u128::from(key << 8) * u128::from(parts)) >> 64 != u128::from(part) {
                        continue;
                    }
                    let (genes, counts) = values.split_at(4 * n);
                    let numbers =
                        |bytes: &[u8]| bytes.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect::<Vec<_>>();
                    order.push((key, found.n_cells()));
                    found.indices.extend(numbers(genes));
                    found.values.extend(numbers(counts));
                    found.end_row();
                }
            }
        }
        order.sort_unstable();
        let mut rows = Rows::default();
        for (_, row) in order {
            let (genes, counts) = found.row(row);
            rows.indices.extend_from_slice(genes);
            rows.values.extend_from_slice(counts);
            rows.end_row();
        }
        drop(found);
        visit(&rows)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spread() {
        // Chi-squared over the files, 255 degrees of freedom: 99.99 % are below 347.
        for seed in [0, 1, u64::MAX] {
            let mut counts = [0_f64; BUCKETS];
            let n = 100_000;
            (0..n).for_each(|cell| counts[bucket(key(seed, cell))] += 1.0);
            let mean = n as f64 / BUCKETS as f64;
            let chi: f64 = counts.iter().map(|count| (count - mean).powi(2) / mean).sum();
            assert!(chi < 347.0, "{seed}: {chi}");
        }
        // Neighbours do not stay neighbours, and seeds do not look alike.
        let order = |seed| {
            let mut order: Vec<u64> = (0..10_000).collect();
            order.sort_by_key(|&cell| key(seed, cell));
            order
        };
        let (a, b) = (order(1), order(2));
        assert!(a.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count() < 12);
        assert!(a.iter().zip(&b).filter(|(a, b)| a == b).count() < 12);
    }

    #[test]
    fn the_order_does_not_depend_on_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().join("0"), folder.path().join("1")];
        let mut sizes = [Size::default(); BUCKETS];
        for (part, at) in folders.iter().enumerate() {
            let mut spool = Spool::create(at.clone(), BUCKETS, 1 << 20).unwrap();
            for cell in (part as u64 * 5_000)..(part as u64 + 1) * 5_000 {
                let genes: Vec<i32> = (0..i32::try_from(cell % 5).unwrap()).collect();
                let counts = vec![i32::try_from(cell).unwrap() + 1; genes.len()];
                let key = key(3, cell);
                scatter(&mut spool, key, cell, &genes, &counts).unwrap();
                sizes[bucket(key)].cells += 1;
                sizes[bucket(key)].nonzeros += genes.len() as u64;
            }
            spool.finish().unwrap();
        }
        let mut all = [1 << 20, 1_000].map(|memory| {
            let mut all = Rows::default();
            for (bucket, &size) in sizes.iter().enumerate() {
                gather(&folders, bucket, size, memory, &mut |rows| {
                    (0..rows.n_cells()).for_each(|row| {
                        all.indices.extend(rows.row(row).0);
                        all.values.extend(rows.row(row).1);
                        all.end_row();
                    });
                    Ok(())
                })
                .unwrap();
            }
            all
        });
        assert_eq!(all[0], all[1]);
        let mut order: Vec<u64> = (0..10_000).collect();
        order.sort_by_key(|&cell| key(3, cell));
        let expected: Vec<i32> = order
            .iter()
            .flat_map(|&cell| vec![i32::try_from(cell).unwrap() + 1; usize::try_from(cell % 5).unwrap()])
            .collect();
        assert_eq!(all[0].values, expected);
        all[0].clear();
        assert_eq!(all[0], Rows::default());
    }
}
