//! How numbers are spread: quantiles and a histogram, from how often each occurs.

use std::collections::HashMap;

use serde::Serialize;

/// The quantiles that are told, in per cent.
pub const QUANTILES: [u32; 9] = [0, 1, 5, 25, 50, 75, 95, 99, 100];

/// Bins of a histogram at most, about.
const BINS: u64 = 20;

/// How often each number occurs.
#[derive(Debug, Default)]
pub struct Tally(HashMap<u64, u64>);

/// Numbers in a few numbers. Without any there are no quantiles, no bins and no mean.
#[derive(Debug, Serialize)]
pub struct Spread {
    pub mean: Option<f64>,
    /// How many are zero.
    pub zeros: u64,
    pub quantiles: Vec<Quantile>,
    pub histogram: Vec<Bin>,
}

/// The smallest number that so many per cent of all do not exceed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Quantile {
    pub percent: u32,
    pub value: u64,
}

/// The numbers from `from` to `to`, both among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bin {
    pub from: u64,
    pub to: u64,
    pub count: u64,
}

impl Bin {
    pub fn label(&self) -> String {
        if self.from == self.to { self.from.to_string() } else { format!("{}–{}", self.from, self.to) }
    }
}

impl Tally {
    pub fn add(&mut self, number: u64) {
        *self.0.entry(number).or_default() += 1;
    }

    pub fn merge(&mut self, other: Tally) {
        for (number, count) in other.0 {
            *self.0.entry(number).or_default() += count;
        }
    }

    pub fn spread(&self) -> Spread {
        let mut sorted: Vec<(u64, u64)> = self.0.iter().map(|(&number, &count)| (number, count)).collect();
        sorted.sort_unstable();
        let n: u64 = sorted.iter().map(|pair| pair.1).sum();
        let sum: u128 = sorted.iter().map(|&(number, count)| u128::from(number) * u128::from(count)).sum();
        Spread {
            mean: (n > 0).then(|| sum as f64 / n as f64),
            zeros: self.0.get(&0).copied().unwrap_or(0),
            quantiles: QUANTILES.iter().filter_map(|&percent| quantile(&sorted, n, percent)).collect(),
            histogram: histogram(&sorted, n),
        }
    }
}

fn quantile(sorted: &[(u64, u64)], n: u64, percent: u32) -> Option<Quantile> {
    // The rank, from 1, of the number in question.
    let rank = (u128::from(n) * u128::from(percent)).div_ceil(100).max(1);
    let mut seen = 0;
    let reached = |&&(_, count): &&(u64, u64)| {
        seen += u128::from(count);
        seen >= rank
    };
    sorted.iter().find(reached).map(|&(value, _)| Quantile { percent, value })
}

/// Bins of equal width where the numbers are of about one size, else bins at 1, 2, 5, 10, 20, 50, …
fn histogram(sorted: &[(u64, u64)], n: u64) -> Vec<Bin> {
    let (Some(&(least, _)), Some(&(most, _))) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let at = |percent| quantile(sorted, n, percent).map_or(0, |quantile| quantile.value);
    let mut bins: Vec<Bin> = Vec::new();
    if most / 30 <= at(25) {
        // A few very large numbers do not decide how fine the others are shown.
        let width = nice((at(99) - least) / BINS + 1).max(nice((most - least) / (3 * BINS) + 1));
        let mut from = least / width * width;
        loop {
            let to = from.saturating_add(width - 1);
            bins.push(Bin { from, to, count: 0 });
            if to >= most {
                break;
            }
            from = to + 1;
        }
    } else {
        let mut from = 0u64;
        loop {
            let next = if from == 0 { 1 } else { nice(from.saturating_add(1)) };
            // Behind the last step there is the rest.
            let to = if next > from { next - 1 } else { u64::MAX };
            bins.push(Bin { from, to, count: 0 });
            if to >= most {
                break;
            }
            from = next;
        }
        let first = bins.iter().position(|bin| bin.to >= least).unwrap_or(0);
        bins.drain(..first);
    }
    for &(number, count) in sorted {
        let bin = bins.partition_point(|bin| bin.to < number);
        bins[bin].count += count;
    }
    bins
}

/// The next of 1, 2, 5, 10, 20, 50, … that is not less; `u64::MAX` where there is none.
pub fn nice(n: u64) -> u64 {
    let mut power = 1u64;
    loop {
        for step in [1, 2, 5] {
            match power.checked_mul(step) {
                Some(nice) if nice >= n => return nice,
                Some(_) => {}
                None => return u64::MAX,
            }
        }
        let Some(next) = power.checked_mul(10) else { return u64::MAX };
        power = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: impl IntoIterator<Item = u64>) -> Spread {
        let mut tally = Tally::default();
        numbers.into_iter().for_each(|number| tally.add(number));
        let spread = tally.spread();
        let total: u64 = spread.histogram.iter().map(|bin| bin.count).sum();
        assert_eq!(total, tally.0.values().sum::<u64>());
        assert!(spread.histogram.windows(2).all(|bins| bins[0].to + 1 == bins[1].from));
        assert!(spread.histogram.len() <= 65, "{}", spread.histogram.len());
        spread
    }

    fn values(spread: &Spread) -> Vec<u64> {
        spread.quantiles.iter().map(|quantile| quantile.value).collect()
    }

    #[test]
    fn quantiles_are_numbers_that_occur() {
        assert_eq!(values(&of(1..=100)), [1, 1, 5, 25, 50, 75, 95, 99, 100]);
        assert_eq!(values(&of([7])), [7; 9]);
        assert_eq!(values(&of([3, 1, 2])), [1, 1, 1, 1, 2, 3, 3, 3, 3]);
        assert_eq!(values(&of([])), [0; 0]);
        assert_eq!(of([]).mean, None);
        assert_eq!((of([0, 0, 3]).mean, of([0, 0, 3]).zeros), (Some(1.0), 2));
    }

    #[test]
    fn bins_are_nice() {
        let bins = |numbers: &[u64]| of(numbers.iter().copied()).histogram;
        let bin = |from, to, count| Bin { from, to, count };
        assert_eq!(bins(&[1, 2, 2]), [bin(1, 1, 1), bin(2, 2, 2)]);
        assert_eq!(
            bins(&[0, 1, 3, 99]),
            [bin(0, 0, 1), bin(1, 1, 1), bin(2, 4, 1), bin(5, 9, 0), bin(10, 19, 0), bin(20, 49, 0), bin(50, 99, 1)]
        );
        assert_eq!(bins(&[])[..], []);
        assert_eq!(bins(&[0]), [bin(0, 0, 1)]);
        assert_eq!(of(1000..2000).histogram.len(), 20);
        assert_eq!(of(1000..2000).histogram[3], bin(1150, 1199, 50));
        of([0, 0, 0, u64::MAX]);
        of([u64::MAX - 1, u64::MAX]);
        of([0, 5_000_000_000_000_000_000]);
    }
}
