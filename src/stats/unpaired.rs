//! Ratios between trials that no pair joins (method, section 10.3). Values are natural logarithms of something of which more is
//! better.

use super::Estimate;
use super::ratio::LEAST_RATIO_DEVIATION;
use super::student::{deviation, t_quantile};

/// Trials of the baseline below which one trial cannot be held against them.
const LEAST_FOR_PREDICTION: usize = 5;

/// How far from either end of the sorted differences a bound lies: the largest `k` with `P(U ≤ k − 1) ≤ alpha`, where `U` is the
/// Mann–Whitney statistic of `base` against `head` trials of one system; 0 where there is none.
pub fn rank_depth(base: usize, head: usize, alpha: f64) -> usize {
    let counts = orderings(base, head);
    let all: f64 = counts.iter().sum();
    let mut below = 0.0;
    // A little slack, because 1/20 is 5 %.
    let within = |count: &&f64| {
        below += **count;
        below <= all * alpha * (1.0 + 1e-12)
    };
    counts.iter().take_while(within).count()
}

/// How many orderings of `m` and `n` values have each value of the Mann–Whitney statistic: the coefficients of the Gaussian
/// binomial `∏ (1 − x^(n+i)) / (1 − x^i)`, `i = 1…m`.
fn orderings(m: usize, n: usize) -> Vec<f64> {
    let mut counts = vec![0.0; m * n + 1];
    counts[0] = 1.0;
    for i in 1..=m {
        for u in (n + i..counts.len()).rev() {
            counts[u] -= counts[u - n - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    counts
}

/// The ratio of `head` to `base` by ranks: the median of all differences, between the `k`-th smallest and the `k`-th largest. Exact
/// for any noise of equal shape. `None` with too few trials, and where a difference is not a number.
pub fn rank_interval(base: &[f64], head: &[f64], alpha: f64) -> Option<Estimate> {
    let depth = rank_depth(base.len(), head.len(), alpha);
    let mut all: Vec<f64> = head.iter().flat_map(|head| base.iter().map(move |base| head - base)).collect();
    all.sort_unstable_by(f64::total_cmp);
    if depth == 0 || all.iter().any(|difference| difference.is_nan()) {
        return None;
    }
    let (lower, upper) = (all[depth - 1], all[all.len() - depth]);
    let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
    // Between an endless latency and another one there is no middle.
    let point = if low.is_finite() && high.is_finite() { 0.5 * (low + high) } else { low };
    Some(Estimate { point, lower, upper, confidence: 1.0 - alpha, n: head.len() as f64, method: "rank interval" })
}

/// One trial against at least five of the baseline: `head − mean(base) ∓ t(1−α; m−1) · max(sd, 0.002) · √(1 + 1/m)`; `None`
/// with fewer.
pub fn prediction(base: &[f64], head: f64, alpha: f64) -> Option<Estimate> {
    if base.len() < LEAST_FOR_PREDICTION {
        return None;
    }
    let m = base.len() as f64;
    let point = head - base.iter().sum::<f64>() / m;
    let spread = deviation(base).max(LEAST_RATIO_DEVIATION) * (1.0 + 1.0 / m).sqrt();
    let width = t_quantile(1.0 - alpha, base.len() as u32 - 1) * spread;
    let (lower, upper) = (point - width, point + width);
    Some(Estimate { point, lower, upper, confidence: 1.0 - alpha, n: 1.0, method: "prediction interval" })
}

#[cfg(test)]
mod tests {
    use super::super::ratio::tests::{assert_equals, cases, numbers, reference};
    use super::*;

    fn logs(values: &[f64]) -> Vec<f64> {
        values.iter().map(|value| value.ln()).collect()
    }

    #[test]
    fn depths_equal_the_reference_and_the_published_table() {
        let file = reference();
        for (size, want) in file["rank_interval_k_alpha_0.05"].as_object().unwrap() {
            let (base, head) = size.split_once('x').unwrap();
            let (base, head) = (base.parse().unwrap(), head.parse().unwrap());
            assert_eq!(Some(rank_depth(base, head, 0.05) as u64), want.as_u64(), "{size}");
            assert_eq!(Some(rank_depth(head, base, 0.05) as u64), want.as_u64(), "{size} turned");
        }
        // One-sided critical values at 5 % and 2.5 % of Mann and Whitney's table, one below each depth.
        assert_eq!((rank_depth(20, 20, 0.05), rank_depth(20, 20, 0.025)), (139, 128));
        assert_eq!((rank_depth(1, 18, 0.05), rank_depth(1, 19, 0.05), rank_depth(0, 8, 0.05)), (0, 1, 0));
    }

    #[test]
    fn rank_intervals_equal_the_reference() {
        let cases = cases("rank_interval");
        for case in &cases {
            let input = &case["input"];
            let (base, head) = (logs(&numbers(&input["baseline"])), logs(&numbers(&input["candidate"])));
            match rank_interval(&base, &head, input["alpha"].as_f64().unwrap()) {
                Some(found) => {
                    assert_equals(&found, input["margin"].as_f64().unwrap(), &case["expect"]);
                    let want = case["expect"]["ratio_median"].as_f64().unwrap();
                    assert!((found.point.exp() - want).abs() < 1e-7, "{case}");
                }
                None => assert_eq!(case["expect"]["verdict"], "UNKNOWN", "{case}"),
            }
        }
        assert_eq!(cases.len(), 6);
    }

    #[test]
    fn an_endless_latency_bounds_a_ratio_below_alone() {
        let (base, head) = ([0.0, 0.1, 0.2], [f64::NEG_INFINITY, -0.1, -0.2]);
        let found = rank_interval(&base, &head, 0.05).unwrap();
        assert!(found.lower.exp() == 0.0 && (found.upper + 0.1).abs() < 1e-12, "{found:?}");
        // Nobody can tell what lies between two endless ones.
        assert_eq!(rank_interval(&[f64::NEG_INFINITY; 3], &head, 0.05), None);
    }

    #[test]
    fn predictions_equal_the_reference() {
        let cases = cases("prediction");
        for case in &cases {
            let input = &case["input"];
            let (base, head) = (logs(&numbers(&input["baseline"])), input["candidate"].as_f64().unwrap().ln());
            match prediction(&base, head, input["alpha"].as_f64().unwrap()) {
                Some(found) => assert_equals(&found, input["margin"].as_f64().unwrap(), &case["expect"]),
                None => assert_eq!(case["expect"]["verdict"], "UNKNOWN", "{case}"),
            }
        }
        assert_eq!(cases.len(), 4);
    }
}
