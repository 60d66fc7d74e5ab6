//! Ranks of order statistics that estimate and bound a quantile without any assumption on its distribution.

use super::binomial::{Counts, first_true, p_fail, pass_max};
use crate::units::Share;

/// Ranks, from 1, in the ascending sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantileRanks {
    /// The nearest rank `⌈q·n⌉`.
    pub point: u64,
    /// The largest rank whose value is a lower bound; `None` where there is none.
    pub lower: Option<u64>,
    /// The smallest rank whose value is an upper bound; `None` where there is none.
    pub upper: Option<u64>,
}

/// The ranks for a quantile of `n` values, each bound at confidence `1 − alpha`; `None` without values.
///
/// The upper rank is the smallest `r` with `P(Bin(n, q) ≤ r−1) ≥ 1−α` (method, section 6), which in violations reads:
/// the `n − r` values above it are the most that PASS. The lower rank mirrors it.
pub fn quantile_ranks(n: u64, quantile: Share, alpha: f64) -> Option<QuantileRanks> {
    if n == 0 {
        return None;
    }
    let budget = quantile.rest().fraction();
    let too_many = |x: u64| p_fail(Counts::exact(n, x), budget) <= alpha;
    let lower = too_many(n).then(|| n + 1 - first_true(1, n, too_many));
    let upper = pass_max(n, budget, alpha).map(|most| n - most);
    Some(QuantileRanks { point: quantile.nearest_rank(n), lower, upper })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn ranks_match_the_reference() {
        let file: Value =
            serde_json::from_str(include_str!("../../tests/fixtures/reference/percentile_evidence.json")).unwrap();
        for case in file["order_statistics"].as_array().unwrap() {
            let ppm = (case["quantile"].as_f64().unwrap() * 1e6).round() as u32;
            let quantile = Share::from_ppm(ppm).unwrap();
            let ranks = quantile_ranks(case["n"].as_u64().unwrap(), quantile, case["alpha"].as_f64().unwrap()).unwrap();
            assert_eq!(Some(ranks.point), case["point_rank"].as_u64(), "{case}");
            assert_eq!(ranks.lower, case["lower_rank"].as_u64(), "{case}");
            assert_eq!(ranks.upper, case["upper_rank"].as_u64(), "{case}");
        }
    }

    #[test]
    fn too_small_samples_have_no_bounds() {
        let median = Share::from_ppm(500_000).unwrap();
        assert_eq!(quantile_ranks(0, median, 0.05), None);
        assert_eq!(quantile_ranks(1, median, 0.05), Some(QuantileRanks { point: 1, lower: None, upper: None }));
        // No value can be shown to lie above the largest of all.
        let ranks = quantile_ranks(1_000, Share::ONE, 0.05).unwrap();
        assert_eq!((ranks.point, ranks.upper), (1_000, None));
    }
}
