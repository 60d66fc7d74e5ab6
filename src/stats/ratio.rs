//! Ratios of something of which more is better, compared pair by pair (method, sections 10 and 10.3). All values are natural
//! logarithms of head over base.

use super::student::{deviation, t_quantile};
use super::{Decision, Estimate};

/// The least standard deviation of a logarithm of a ratio that is believed.
pub const LEAST_RATIO_DEVIATION: f64 = 0.002;
/// The looks at paired ratios that were measured on queues with a known answer.
pub const PAIRED_LOOKS: [u32; 3] = [3, 5, 8];
/// The level of each of them; together they spend 5 %.
const PAIRED_ALPHAS: [f64; 3] = [0.008, 0.02, 0.032];
/// The level of a single look, and what other plans share among theirs.
const ALPHA: f64 = 0.05;

/// What a look at paired ratios shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioLook {
    /// Pairs that were looked at.
    pub trials: u32,
    /// The mean of the logarithms with the bounds of its t interval.
    pub estimate: Estimate,
    /// Standard deviation between the pairs, as measured.
    pub deviation: f64,
    /// What it decides.
    pub decision: Decision,
}

/// When pairs are looked at, and how each look decides.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioRule {
    /// Of each look the number of pairs, its level, and how many standard errors its bounds lie from the mean.
    looks: Vec<(u32, f64, f64)>,
    /// The logarithm of the smallest ratio that passes.
    limit: f64,
}

/// The three-way rule: PASS if the lower bound lies above `limit`, FAIL if the upper one lies below.
pub fn decide_ratio(estimate: &Estimate, limit: f64) -> Decision {
    if estimate.lower > limit {
        Decision::Pass
    } else if estimate.upper < limit {
        Decision::Fail
    } else {
        Decision::Undecided
    }
}

impl RatioRule {
    /// The rule for looks at so many pairs, where a ratio of `1 − margin` is the smallest that passes. A plan that begins as 3, 5, 8
    /// has the levels 0.008, 0.02 and 0.032; a single look has 0.05, and other plans share that among theirs. A look at fewer than
    /// two pairs is none.
    pub fn new(looks: &[u32], margin: f64) -> Self {
        let alpha = |index: usize| match PAIRED_LOOKS.starts_with(looks) && looks.len() > 1 {
            true => PAIRED_ALPHAS[index],
            false => ALPHA / looks.len().max(1) as f64,
        };
        let of = |(index, count): (usize, &u32)| {
            (*count >= 2).then(|| (*count, alpha(index), t_quantile(1.0 - alpha(index), count - 1)))
        };
        Self { looks: looks.iter().enumerate().filter_map(of).collect(), limit: (-margin).ln_1p() }
    }

    /// The first look that decides, else the last that the pairs allow; `None` with fewer pairs than the first look needs. Pairs
    /// behind the look that decides are not read.
    pub fn look(&self, ratios: &[f64]) -> Option<RatioLook> {
        let mut last = None;
        for &(count, alpha, t) in &self.looks {
            let Some(seen) = ratios.get(..count as usize) else { break };
            let (n, deviation) = (f64::from(count), deviation(seen));
            let point = seen.iter().sum::<f64>() / n;
            let width = t * deviation.max(LEAST_RATIO_DEVIATION) / n.sqrt();
            let (lower, upper) = (point - width, point + width);
            let estimate = Estimate { point, lower, upper, confidence: 1.0 - alpha, n, method: "t interval" };
            let decision = decide_ratio(&estimate, self.limit);
            last = Some(RatioLook { trials: count, estimate, deviation, decision });
            if decision != Decision::Undecided {
                break;
            }
        }
        last
    }

    /// The most pairs that are looked at.
    pub fn most(&self) -> u32 {
        self.looks.last().map_or(0, |(count, _, _)| *count)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::Value;

    use super::*;

    pub(in crate::stats) fn reference() -> Value {
        serde_json::from_str(include_str!("../../tests/fixtures/reference/ratio_verdicts.json")).unwrap()
    }

    pub(in crate::stats) fn cases(method: &str) -> Vec<Value> {
        let file = reference();
        file["cases"].as_array().unwrap().iter().filter(|case| case["method"] == method).cloned().collect()
    }

    pub(in crate::stats) fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    }

    /// Bounds to 1e-7, as ratios, and the verdict.
    pub(in crate::stats) fn assert_equals(found: &Estimate, margin: f64, want: &Value) {
        for (found, key) in [(found.lower, "ratio_lower"), (found.upper, "ratio_upper")] {
            let want = want[key].as_f64().unwrap();
            assert!((found.exp() - want).abs() < 1e-7, "{key}: {} is not {want}", found.exp());
        }
        let verdict = match decide_ratio(found, (1.0 - margin).ln()) {
            Decision::Pass => "PASS",
            Decision::Fail => "FAIL",
            Decision::Undecided => "UNKNOWN",
        };
        assert_eq!(verdict, want["verdict"], "{want}");
    }

    fn ratios(case: &Value) -> Vec<f64> {
        let (base, head) = (numbers(&case["input"]["baseline"]), numbers(&case["input"]["candidate"]));
        head.iter().zip(base).map(|(head, base)| (head / base).ln()).collect()
    }

    #[test]
    fn single_looks_equal_the_reference() {
        let cases = cases("paired_log_t");
        for case in &cases {
            let (ratios, margin) = (ratios(case), case["input"]["margin"].as_f64().unwrap());
            assert_eq!(case["input"]["alpha"], 0.05);
            let Some(look) = RatioRule::new(&[ratios.len() as u32], margin).look(&ratios) else {
                assert_eq!(case["expect"]["verdict"], "UNKNOWN", "{case}");
                continue;
            };
            assert_equals(&look.estimate, margin, &case["expect"]);
            assert!((look.deviation - case["expect"]["sd_log"].as_f64().unwrap()).abs() < 1e-8, "{case}");
        }
        assert_eq!(cases.len(), 6);
    }

    #[test]
    fn looks_one_after_the_other_equal_the_reference() {
        let cases = cases("paired_log_t_sequential");
        for case in &cases {
            let (ratios, margin) = (ratios(case), case["input"]["margin"].as_f64().unwrap());
            let rule = RatioRule::new(&PAIRED_LOOKS, margin);
            let steps = case["expect"]["steps"].as_array().unwrap();
            for want in steps {
                let look = rule.look(&ratios[..want["runs"].as_u64().unwrap() as usize]).unwrap();
                assert_equals(&look.estimate, margin, want);
            }
            let last = steps.last().unwrap()["runs"].as_u64();
            assert_eq!(rule.look(&ratios).map(|look| u64::from(look.trials)), last, "{case}");
        }
        assert_eq!(cases.len(), 2);
    }

    #[test]
    fn plans_with_other_looks_share_the_level() {
        let level = |looks: &[u32], trials: usize| {
            let look = RatioRule::new(looks, 0.05).look(&vec![-0.05; trials]).unwrap();
            (look.trials, (1.0 - look.estimate.confidence) * 1e3)
        };
        for (looks, trials, want) in [(&[3, 5][..], 3, 8.0), (&[3, 5], 5, 20.0), (&[3], 3, 50.0), (&[4, 9], 4, 25.0)] {
            let (count, alpha) = level(looks, trials);
            assert!(count as usize == trials && (alpha - want).abs() < 1e-9, "{looks:?}: {alpha}");
        }
        assert_eq!(RatioRule::new(&PAIRED_LOOKS, 0.05).look(&[0.0; 2]), None);
        assert_eq!(RatioRule::new(&[1], 0.05).look(&[0.0; 2]), None);
    }
}
