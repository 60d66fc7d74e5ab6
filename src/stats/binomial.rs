//! Exact binomial evidence from counts (method, section 6). A budget is the share of requests that may violate a limit.

use super::{Estimate, beta::beta_tails};

/// Violations that a FAIL needs at least: fewer could be one accident.
const MIN_VIOLATIONS_TO_FAIL: u64 = 3;
/// No question about sample sizes is answered beyond this many requests.
const MAX_REQUESTS: u64 = 1 << 50;

/// Requests and violations, real-valued where they were divided by a variance inflation factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Effective requests.
    pub n: f64,
    /// Effective violations.
    pub x: f64,
    /// Violations as counted.
    pub counted: u64,
}

impl Counts {
    /// Independent requests.
    pub fn exact(n: u64, x: u64) -> Self {
        Self { n: n as f64, x: x as f64, counted: x }
    }

    /// Requests whose information is that of `n / max(1, factor)` independent ones (method, section 7).
    pub fn deflated(n: u64, x: u64, factor: f64) -> Self {
        let factor = factor.max(1.0);
        Self { n: n as f64 / factor, x: x as f64 / factor, counted: x }
    }
}

/// What counts decide at a stated level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The share of violations is below the budget.
    Pass,
    /// It is above.
    Fail,
    /// Neither is shown.
    Undecided,
}

/// A decision with its two p-values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Chance of so few violations were the true share exactly the budget.
    pub p_pass: f64,
    /// Chance of so many.
    pub p_fail: f64,
    /// What they decide.
    pub decision: Decision,
}

/// `P(Bin(n, b) ≤ x) = 1 − I_b(x+1, n−x)`.
pub fn p_pass(counts: Counts, budget: f64) -> f64 {
    if counts.x >= counts.n || budget <= 0.0 {
        return 1.0;
    }
    beta_tails(counts.x + 1.0, counts.n - counts.x, budget).upper
}

/// `P(Bin(n, b) ≥ x) = I_b(x, n−x+1)`; 1 where there is no violation.
pub fn p_fail(counts: Counts, budget: f64) -> f64 {
    if counts.x <= 0.0 {
        return 1.0;
    }
    beta_tails(counts.x, counts.n - counts.x + 1.0, budget).lower
}

/// Whether the counts show that the share of violations is below the budget.
pub fn passes(counts: Counts, budget: f64, alpha: f64) -> bool {
    p_pass(counts, budget) <= alpha
}

/// Whether the counts show that the share of violations is above the budget; needs three counted violations.
pub fn fails(counts: Counts, budget: f64, alpha: f64) -> bool {
    counts.counted >= MIN_VIOLATIONS_TO_FAIL && p_fail(counts, budget) <= alpha
}

/// Both p-values and the decision at level `alpha` on each side.
pub fn decide(counts: Counts, budget: f64, alpha: f64) -> Evidence {
    let decision = if passes(counts, budget, alpha) {
        Decision::Pass
    } else if fails(counts, budget, alpha) {
        Decision::Fail
    } else {
        Decision::Undecided
    };
    Evidence { p_pass: p_pass(counts, budget), p_fail: p_fail(counts, budget), decision }
}

/// One-sided Clopper–Pearson upper bound on the share of violations, `BetaInv(1−α; x+1, n−x)`.
pub fn upper_bound(counts: Counts, alpha: f64) -> f64 {
    if counts.x >= counts.n {
        return 1.0;
    }
    bisect(|share| p_pass(counts, share) <= alpha)
}

/// One-sided Clopper–Pearson lower bound on the share of violations, `BetaInv(α; x, n−x+1)`.
pub fn lower_bound(counts: Counts, alpha: f64) -> f64 {
    if counts.x <= 0.0 {
        return 0.0;
    }
    bisect(|share| p_fail(counts, share) > alpha)
}

/// The share of violations with its Clopper–Pearson bounds, each at `1 − alpha`; `None` without requests.
pub fn share_estimate(counts: Counts, alpha: f64) -> Option<Estimate> {
    (counts.n > 0.0).then(|| Estimate {
        point: counts.x / counts.n,
        lower: lower_bound(counts, alpha),
        upper: upper_bound(counts, alpha),
        confidence: 1.0 - alpha,
        n: counts.n,
        method: "Clopper-Pearson",
    })
}

/// The smallest share in (0, 1] for which `holds`, which must be false below and true above it.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut below, mut above) = (0.0f64, 1.0f64);
    for _ in 0..100 {
        let middle = 0.5 * (below + above);
        if middle <= below || middle >= above {
            break;
        }
        if holds(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    above
}

/// Requests with which `violations` still PASS; `None` where no number of requests does.
pub fn n_pass(violations: u64, budget: f64, alpha: f64) -> Option<u64> {
    if !(budget > 0.0 && alpha > 0.0) {
        return None;
    }
    let enough = |n: u64| passes(Counts::exact(n, violations), budget, alpha);
    let mut above = violations.saturating_add(1);
    while !enough(above) {
        above = above.checked_mul(2).filter(|n| *n <= MAX_REQUESTS)?;
    }
    Some(first_true(violations, above, enough))
}

/// The most violations among `n` requests that PASS; `None` where not even none does.
pub fn pass_max(n: u64, budget: f64, alpha: f64) -> Option<u64> {
    first_true(0, n, |x| !passes(Counts::exact(n, x), budget, alpha)).checked_sub(1)
}

/// The fewest violations among `n` requests that FAIL; `None` where not even `n` do.
pub fn fail_min(n: u64, budget: f64, alpha: f64) -> Option<u64> {
    let fails_with = |x: u64| fails(Counts::exact(n, x), budget, alpha);
    fails_with(n).then(|| first_true(0, n, fails_with))
}

/// The smallest number in `[from, to]` for which `holds`, which must be false below and true above it; `to` where it
/// holds for none.
pub(super) fn first_true(from: u64, to: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut from, mut to) = (from, to);
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::stats::beta::binomial_probability;

    const REFERENCE: &str = include_str!("../../tests/fixtures/reference/percentile_evidence.json");

    fn reference(section: &str) -> Vec<Value> {
        let file: Value = serde_json::from_str(REFERENCE).unwrap();
        file[section].as_array().unwrap().clone()
    }

    fn number(value: &Value, key: &str) -> f64 {
        value[key].as_f64().unwrap()
    }

    /// Equal to nine significant digits or to the absolute tolerance, whichever is wider.
    fn close(got: f64, want: f64, tolerance: f64) -> bool {
        (got - want).abs() <= tolerance.max(1e-8 * want.abs())
    }

    #[test]
    fn counts_give_the_verdicts_and_p_values_of_the_reference() {
        for case in reference("verdict_cases") {
            let (n, x) = (case["n"].as_u64().unwrap(), case["violations"].as_u64().unwrap());
            let (budget, alpha) = (number(&case, "budget"), number(&case, "alpha"));
            let counts = Counts::deflated(n, x, number(&case, "vif"));
            let evidence = decide(counts, budget, alpha);
            let verdict = match evidence.decision {
                Decision::Pass => "PASS",
                Decision::Fail => "FAIL",
                Decision::Undecided => "UNKNOWN",
            };
            assert_eq!(verdict, case["verdict"], "{case}");
            assert!(close(evidence.p_pass, number(&case, "p_pass"), 1e-8), "{evidence:?} {case}");
            assert!(close(evidence.p_fail, number(&case, "p_fail"), 1e-8), "{evidence:?} {case}");
            assert!(close(upper_bound(counts, alpha), number(&case, "upper"), 1e-8), "{case}");
            assert!(close(lower_bound(counts, alpha), number(&case, "lower"), 1e-8), "{case}");
            if case["vif"] == 1.0 {
                let needed = n_pass(x, budget, alpha).unwrap().max(n);
                assert_eq!(Some(needed), case["n_needed_if_no_more_violations"].as_u64(), "{case}");
            }
        }
    }

    #[test]
    fn sample_sizes_match_the_tables() {
        for row in reference("n_pass_table") {
            for (k, want) in row["n_for_k_violations"].as_array().unwrap().iter().enumerate() {
                assert_eq!(n_pass(k as u64, number(&row, "budget"), number(&row, "alpha")), want.as_u64(), "{row}");
            }
        }
        let file: Value = serde_json::from_str(REFERENCE).unwrap();
        for (quantile, sizes) in file["mlperf_early_stopping"]["quantiles"].as_object().unwrap() {
            for (k, want) in sizes.as_array().unwrap().iter().enumerate() {
                let budget = 1.0 - quantile.parse::<f64>().unwrap();
                assert_eq!(n_pass(k as u64, budget, 0.01), want.as_u64(), "MLPerf {quantile}, {k}");
            }
        }
        assert_eq!(n_pass(0, 0.0, 0.05), None);
    }

    #[test]
    fn operating_characteristics_match_the_reference() {
        for plan in reference("operating_characteristics") {
            let n = plan["n"].as_u64().unwrap();
            let (budget, alpha) = (number(&plan, "budget"), number(&plan, "alpha"));
            let (pass, fail) = (pass_max(n, budget, alpha), fail_min(n, budget, alpha));
            assert_eq!((pass, fail), (plan["pass_max"].as_u64(), plan["fail_min"].as_u64()), "{plan}");
            for row in plan["rows"].as_array().unwrap() {
                let truth = budget * number(row, "true_over_budget");
                let passing = p_pass(Counts::exact(n, pass.unwrap()), truth);
                let failing = p_fail(Counts::exact(n, fail.unwrap()), truth);
                assert!(close(passing, number(row, "p_pass"), 1e-8), "{passing} {row}");
                assert!(close(failing, number(row, "p_fail"), 1e-8), "{failing} {row}");
            }
        }
    }

    #[test]
    fn limits_at_the_ends_are_not_guessed() {
        assert_eq!(pass_max(298, 0.01, 0.05), None);
        assert_eq!(pass_max(0, 0.01, 0.05), None);
        assert_eq!(fail_min(2, 0.01, 0.05), None);
        assert_eq!(fail_min(3, 0.01, 0.05), Some(3));
        assert!(share_estimate(Counts::exact(0, 0), 0.05).is_none());
        assert!(!passes(Counts::exact(0, 0), 0.5, 0.05));
    }

    #[test]
    fn a_million_requests_are_decided_exactly() {
        let (n, budget) = (1_000_000u64, 0.01);
        let limit = pass_max(n, budget, 0.05).unwrap();
        let tail = |x: u64| (0..=x).map(|k| binomial_probability(n, k, budget)).sum::<f64>();
        assert!(tail(limit) <= 0.05 && tail(limit + 1) > 0.05, "{limit}");
    }
}
