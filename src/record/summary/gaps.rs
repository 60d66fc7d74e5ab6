//! Gaps between output chunks, for display: too many to keep one by one, and no verdict reads them.

use crate::record::Quantiles;
use crate::units::Share;

/// Binary digits that are kept: a quantile is shown too high by at most 1/1024 of its value.
const DIGITS: u32 = 10;

/// A histogram with logarithmic buckets that grows with the largest gap seen.
#[derive(Debug, Clone, Default)]
pub(super) struct GapHistogram {
    buckets: Vec<u64>,
    count: u64,
    max_ns: u64,
}

impl GapHistogram {
    /// Counts one gap.
    pub(super) fn add(&mut self, gap_ns: u64) {
        let index = bucket_of(gap_ns);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, 0);
        }
        self.buckets[index] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(gap_ns);
    }

    /// Adds another histogram's counts, which loses nothing.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The quantiles; `None` without gaps.
    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        (self.count > 0).then(|| Quantiles {
            count: self.count,
            p50_ns: self.quantile(500_000),
            p90_ns: self.quantile(900_000),
            p95_ns: self.quantile(950_000),
            p99_ns: self.quantile(990_000),
            max_ns: Some(self.max_ns),
        })
    }

    fn quantile(&self, ppm: u32) -> Option<u64> {
        let rank = Share::from_ppm(ppm)?.nearest_rank(self.count);
        let mut below = 0;
        let index = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        Some(largest_in(index).min(self.max_ns))
    }
}

/// Values up to 2047 have a bucket each; above, eleven leading binary digits choose it.
fn bucket_of(value: u64) -> usize {
    let shift = value.max(1).ilog2().saturating_sub(DIGITS);
    ((u64::from(shift) << DIGITS) + (value >> shift)) as usize
}

/// The largest value of a bucket.
fn largest_in(index: usize) -> u64 {
    let shift = (index >> DIGITS).saturating_sub(1);
    let leading = (index - (shift << DIGITS)) as u64;
    (leading << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_narrow() {
        for value in [0, 1, 1_023, 1_024, 2_047, 2_048, 5_000, 1_000_000, 123_456_789, 60_000_000_000] {
            let top = largest_in(bucket_of(value));
            assert!(top >= value && top - value <= value / 1_024, "{value} in a bucket up to {top}");
            assert_eq!(bucket_of(top + 1), bucket_of(top) + 1, "{value}");
        }
    }

    #[test]
    fn quantiles_are_of_the_union_when_merged() {
        let (mut fast, mut slow) = (GapHistogram::default(), GapHistogram::default());
        (0..900).for_each(|_| fast.add(100));
        (0..100).for_each(|_| slow.add(10_000_000));
        fast.merge(&slow);
        let quantiles = fast.quantiles().unwrap();
        assert_eq!((quantiles.count, quantiles.p50_ns, quantiles.p90_ns), (1_000, Some(100), Some(100)));
        assert_eq!((quantiles.p95_ns, quantiles.max_ns), (Some(10_000_000), Some(10_000_000)));
        assert_eq!(GapHistogram::default().quantiles(), None);
    }
}
