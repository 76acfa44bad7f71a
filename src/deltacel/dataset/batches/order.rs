//! The order of the cells of an epoch, and the share of it that each rank has.
//!
//! Everything here is arithmetic on positions: the same numbers on every platform, whatever reads them.

use std::ops::Range;

use super::Remainder;

/// Random 64-bit numbers from a key: SplitMix64, a counter under a mixing function, that any platform computes alike.
struct Random(u64);

impl Random {
    /// Streams of different numbers under one key have nothing to do with each other.
    fn new(seed: u64, epoch: u64, stream: u64) -> Random {
        Random(mix(mix(mix(seed).wrapping_add(epoch)).wrapping_add(stream)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Uniform below `n`, which is not 0: the high half of a product, drawn again where it would favour some numbers.
    fn below(&mut self, n: u32) -> u32 {
        let n = u64::from(n);
        loop {
            let product = (self.next() >> 32) * n;
            let low = product & u64::from(u32::MAX);
            if low >= n || low >= (1 << 32) % n {
                return u32::try_from(product >> 32).unwrap_or(0); // it is below n
            }
        }
    }

    /// `0 .. n` in a random order (Fisher and Yates).
    fn permutation(&mut self, n: u32, out: &mut Vec<u32>) {
        out.clear();
        out.extend(0..n);
        for i in (1..n).rev() {
            let j = self.below(i + 1);
            out.swap(i as usize, j as usize);
        }
    }
}

/// A bijection of 64-bit numbers in which every bit depends on every other (Stafford's thirteenth variant).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// What the order of an epoch depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Cells that take part.
    pub cells: u64,
    /// Cells of a batch.
    pub batch: u64,
    /// Cells that follow each other and stay in one window.
    pub block: u64,
    /// Cells of a window: a multiple of the batch.
    pub window: u64,
    /// Windows of a round.
    pub lanes: u64,
}

impl Shape {
    pub fn round(&self) -> u64 {
        self.lanes * self.window
    }

    pub fn blocks(&self) -> u64 {
        self.cells.div_ceil(self.block)
    }
}

/// The order of the cells of an epoch: which of them stands at each position.
///
/// The blocks are put in a random order, and all cells with them. Rounds of `lanes` windows cut this list; within a round
/// batches alternate between the lanes; and the cells of a window are in random order.
pub(super) struct Order {
    shape: Shape,
    seed: u64,
    epoch: u64,
    /// The block that stands at each place, and the place of the last one, which may be shorter; none if nothing is
    /// shuffled.
    blocks: Option<(Vec<u32>, u64)>,
    /// Windows at hand, by round and lane, with the order of their cells; the one used longest ago goes first.
    windows: Vec<((u64, u64), Vec<u32>)>,
}

impl Order {
    /// The shape must be sound: nothing 0 but the cells, no more than 2^32 - 1 blocks and cells of a window.
    pub fn new(shape: Shape, shuffle: bool, seed: u64, epoch: u64) -> Order {
        let blocks = shuffle.then(|| {
            let mut blocks = Vec::new();
            let n = u32::try_from(shape.blocks()).unwrap_or(u32::MAX);
            Random::new(seed, epoch, 0).permutation(n, &mut blocks);
            let last = blocks.iter().position(|&block| block + 1 == n).unwrap_or(0) as u64;
            (blocks, last)
        });
        Order { shape, seed, epoch, blocks, windows: Vec::new() }
    }

    /// Appends which cells stand at some positions; those past the end start again from 0.
    pub fn cells(&mut self, positions: Range<u64>, out: &mut Vec<u64>) {
        for position in positions {
            let cell = self.cell(position % self.shape.cells);
            out.push(cell);
        }
    }

    fn cell(&mut self, position: u64) -> u64 {
        let Shape { cells, batch, block, lanes, .. } = self.shape;
        if self.blocks.is_none() {
            return position;
        }
        let round = position / self.shape.round();
        let (start, within) = (round * self.shape.round(), position % self.shape.round());
        let len = self.shape.round().min(cells - start);
        let (batch_no, at) = (within / batch, within % batch);
        let (lane, at) = (batch_no % lanes, batch_no / lanes * batch + at);
        let before = self.lane_start(len, lane);
        let at = self.window(round, lane, self.lane_start(len, lane + 1) - before)[index(at)];
        let place = start + before + u64::from(at);

        let Some((blocks, last)) = &self.blocks else { return position };
        let short = cells - (self.shape.blocks() - 1) * block; // cells of the last block
        let (nth, at) = match place {
            _ if place < last * block => (place / block, place % block),
            _ if place < last * block + short => (*last, place - last * block),
            _ => ((place + block - short) / block, (place + block - short) % block),
        };
        u64::from(blocks[index(nth)]) * block + at
    }

    /// Cells of the lanes before one, in a round of so many: those of every batch that is their turn, of which the very
    /// last may be shorter.
    fn lane_start(&self, round: u64, lane: u64) -> u64 {
        let Shape { batch, lanes, .. } = self.shape;
        let batches = round.div_ceil(batch);
        let before = lane * (batches / lanes) + lane.min(batches % lanes);
        let missing = batches * batch - round;
        before * batch - if (batches - 1) % lanes < lane { missing } else { 0 }
    }

    /// The order of the cells of a window.
    fn window(&mut self, round: u64, lane: u64, len: u64) -> &[u32] {
        // The one that was used last is found at once.
        if let Some(at) = self.windows.iter().rposition(|window| window.0 == (round, lane)) {
            let end = self.windows.len() - 1;
            self.windows[at..].rotate_left(1);
            return &self.windows[end].1;
        }
        // A rank's batches of a round need no more than all its lanes.
        let full = self.windows.len() as u64 >= self.shape.lanes;
        let mut order = if full { self.windows.remove(0).1 } else { Vec::new() };
        let stream = 1 + round * self.shape.lanes + lane;
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        Random::new(self.seed, self.epoch, stream).permutation(len, &mut order);
        let end = self.windows.len();
        self.windows.push(((round, lane), order));
        &self.windows[end].1
    }
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX) // of something that is in memory
}

/// The steps of one rank. In each step every rank takes a batch: together the positions from `start` on, one behind the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    pub cells: u64,
    pub batch: u64,
    pub start: u64,
    pub rank: u64,
    pub ranks: u64,
    pub remainder: Remainder,
}

impl Steps {
    /// Cells of a step of all ranks.
    fn stride(&self) -> u64 {
        self.ranks * self.batch
    }

    fn rest(&self) -> u64 {
        self.cells.saturating_sub(self.start)
    }

    /// Steps, the same for every rank.
    pub fn len(&self) -> u64 {
        match self.remainder {
            Remainder::Drop => self.rest() / self.stride(),
            Remainder::Share | Remainder::Repeat => self.rest().div_ceil(self.stride()),
        }
    }

    /// The positions of this rank's batch in a step; past the end they start again from 0.
    pub fn positions(&self, step: u64) -> Range<u64> {
        let start = self.start + step * self.stride();
        let rest = self.cells.saturating_sub(start);
        if self.remainder == Remainder::Share && rest < self.stride() {
            let share = |rank: u64| start + index_of_share(rest, rank, self.ranks);
            return share(self.rank)..share(self.rank + 1);
        }
        let start = start + self.rank * self.batch;
        start..start + self.batch
    }

    /// Cells that all ranks together have had after a step.
    pub fn after(&self, step: u64) -> u64 {
        (self.start + (step + 1) * self.stride()).min(self.cells)
    }
}

/// Where the share of a rank begins, of `n` things that are dealt out in turn as evenly as can be.
fn index_of_share(n: u64, rank: u64, ranks: u64) -> u64 {
    rank * (n / ranks) + rank.min(n % ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(cells: u64, batch: u64, block: u64, window: u64, lanes: u64) -> Shape {
        Shape { cells, batch, block, window, lanes }
    }

    fn all(shape: Shape, seed: u64, epoch: u64) -> Vec<u64> {
        let mut out = Vec::new();
        Order::new(shape, true, seed, epoch).cells(0..shape.cells, &mut out);
        out
    }

    #[test]
    fn every_cell_once() {
        for cells in [1, 2, 7, 31, 32, 33, 100, 257] {
            for (batch, block, window, lanes) in [
                (1, 1, 1, 1),
                (4, 3, 8, 1),
                (4, 8, 4, 3),
                (5, 7, 20, 2),
                (8, 16, 64, 4),
                (300, 2, 300, 5),
                (3, 500, 9, 7),
            ] {
                let mut order = all(shape(cells, batch, block, window, lanes), 5, 2);
                order.sort_unstable();
                assert_eq!(order, (0..cells).collect::<Vec<_>>(), "{cells} {batch} {block} {window} {lanes}");
            }
        }
    }

    /// These numbers are the promise that no version and no platform has another order. They come from a second program
    /// that deals lists of blocks and batches out as the comment of [`Order`] says, without arithmetic on positions.
    #[test]
    fn the_same_forever() {
        let order = all(shape(20, 2, 4, 6, 2), 1, 0);
        assert_eq!(order, GOLDEN);
        let mut random = Random::new(1, 2, 3);
        assert_eq!([random.next(), random.next()], GOLDEN_RANDOM);
    }

    const GOLDEN: [u64; 20] = [19, 13, 11, 14, 18, 17, 9, 15, 12, 16, 10, 8, 7, 6, 3, 2, 5, 4, 0, 1];
    const GOLDEN_RANDOM: [u64; 2] = [6_555_911_209_906_109_020, 17_132_267_404_512_841_579];

    #[test]
    fn a_position_by_itself() {
        let shape = shape(211, 4, 5, 12, 3);
        let expected = all(shape, 9, 1);
        for start in 0..shape.cells {
            let mut out = Vec::new();
            Order::new(shape, true, 9, 1).cells(start..start + 7, &mut out);
            let wrapped = expected.iter().cycle().skip(start as usize).take(7).copied().collect::<Vec<_>>();
            assert_eq!(out, wrapped);
        }
    }

    /// A rank whose number of lanes divides evenly meets the blocks of its own lanes alone.
    #[test]
    fn ranks_keep_to_their_lanes() {
        let shape = shape(960, 4, 8, 80, 4);
        for ranks in [1, 2, 4] {
            let mut seen = vec![None; 960 / 8];
            for rank in 0..ranks {
                let steps = Steps { cells: 960, batch: 4, start: 0, rank, ranks, remainder: Remainder::Share };
                let mut order = Order::new(shape, true, 3, 0);
                for step in 0..steps.len() {
                    let mut cells = Vec::new();
                    order.cells(steps.positions(step), &mut cells);
                    for cell in cells {
                        let owner = seen[cell as usize / 8].get_or_insert(rank);
                        assert_eq!(*owner, rank, "block {} is read by two ranks", cell / 8);
                    }
                }
            }
        }
    }

    #[test]
    fn steps_are_even() {
        for cells in 0..60 {
            for (batch, ranks) in [(1, 1), (4, 1), (4, 3), (7, 2), (100, 3)] {
                for remainder in [Remainder::Drop, Remainder::Share, Remainder::Repeat] {
                    let steps = |rank| Steps { cells, batch, start: 0, rank, ranks, remainder };
                    let mut seen = vec![0; 60];
                    for rank in 0..ranks {
                        assert_eq!(steps(rank).len(), steps(0).len());
                        for step in 0..steps(rank).len() {
                            let positions = steps(rank).positions(step);
                            let len = positions.end - positions.start;
                            match remainder {
                                Remainder::Share => assert!(len <= batch),
                                _ => assert_eq!(len, batch),
                            }
                            positions.for_each(|position| seen[(position % cells) as usize] += 1);
                        }
                    }
                    let (n, taken) = (cells as usize, seen.iter().sum::<u64>());
                    match remainder {
                        Remainder::Share => assert!(seen[..n].iter().all(|&times| times == 1)),
                        Remainder::Drop => {
                            assert!(seen.iter().all(|&times| times <= 1) && cells - taken < ranks * batch);
                        }
                        Remainder::Repeat => {
                            assert!(seen[..n].iter().all(|&times| times >= 1) && taken - cells < ranks * batch);
                        }
                    }
                }
            }
        }
    }

    /// By the square root of twice itself, how far a chi-square is above its mean.
    fn excess(observed: &[u32], expected: f64, freedom: f64) -> f64 {
        let chi: f64 = observed.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    // With fixed seeds these never change. They are held to four standard deviations of a sound shuffle, either way:
    // numbers that are too even are no shuffle, either.

    #[test]
    fn blocks_go_everywhere() {
        // Over many epochs, each block is in each window, and a cell at each place of a window, equally often.
        let shape = shape(2000, 10, 20, 200, 1);
        let (mut windows, mut places) = (vec![0; 100 * 10], vec![0; 200]);
        let epochs = 400;
        for epoch in 0..epochs {
            for (position, cell) in all(shape, 7, epoch).into_iter().enumerate() {
                if cell % 20 == 3 {
                    windows[cell as usize / 20 * 10 + position / 200] += 1;
                    places[position % 200] += 1;
                }
            }
        }
        // Of 100 blocks x 10 windows: a block is in one of ten, so each entry has nine tenths of a Poisson's variance.
        let found = excess(&windows, epochs as f64 / 10.0, 900.0);
        assert!(found.abs() < 4.0, "{found}");
        // Of 200 places, ten are taken in each window.
        let found = excess(&places, epochs as f64 * 100.0 / 200.0, 190.0);
        assert!(found.abs() < 4.0, "{found}");
    }

    #[test]
    fn neighbours_have_nothing_in_common() {
        // The correlation of a cell's number with that of the next one; sigma is 1 / sqrt(n).
        let correlation = |order: &[u64]| {
            let mean = (order.len() - 1) as f64 / 2.0;
            let product = |a: u64, b: u64| (a as f64 - mean) * (b as f64 - mean);
            let variance: f64 = order.iter().map(|&a| product(a, a)).sum();
            order.windows(2).map(|pair| product(pair[0], pair[1])).sum::<f64>() / variance
        };
        let n = 10_000;
        for seed in 0..5 {
            // Every cell a block of its own: a full shuffle, in many windows or in one.
            for window in [100, 10_000] {
                let found = correlation(&all(shape(n, 10, 1, window, 1), seed, 0));
                assert!(found.abs() < 4.0 / (n as f64).sqrt(), "{found}");
            }
        }
        // Windows of 20 blocks of 5: the next cell is of the same block in 4 of 99 cases, and unrelated else. For one seed
        // sigma is 0.012: 1 / sqrt(n) for the order in windows, and 1 / 20 * sqrt(2 / 100) for the choice of 100 windows.
        let found = (0..20).map(|seed| correlation(&all(shape(n, 10, 5, 100, 1), seed, 0))).sum::<f64>() / 20.0;
        assert!((found - 4.0 / 99.0).abs() < 4.0 * 0.012 / 20f64.sqrt(), "{found}");
        assert!(correlation(&(0..n).collect::<Vec<_>>()) > 0.99);
    }

    #[test]
    fn below_is_even() {
        let mut random = Random::new(0, 0, 0);
        let mut counts = [0u32; 6];
        (0..60_000).for_each(|_| counts[random.below(6) as usize] += 1);
        // Chi-square with five degrees of freedom: 20.5 is passed by one in a thousand. The seed is fixed.
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 20.5, "{counts:?}");
        // A bound for which many draws must be repeated, and every number of which is met.
        let n = 3 << 30;
        let high = (0..3000).filter(|_| random.below(n) >= 2 << 30).count();
        assert!((900..1100).contains(&high), "{high}");
    }
}
