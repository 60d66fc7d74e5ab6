//! Whether a load holds in a typical run, from the headroom of several trials (method, section 8).

use super::student::{deviation, t_interval};
use super::{Decision, Estimate};

/// A headroom is held to this on both sides, which is what an infinite and a zero quantile have.
pub const HEADROOM_LIMIT: f64 = std::f64::consts::LN_10;
/// The least standard deviation that is believed, so that three trials that are equal by luck decide nothing.
const LEAST_DEVIATION: f64 = 0.02;
/// The looks that were measured on queues with a known answer, and the level of each.
const ADAPTIVE: ([u32; 3], [f64; 3]) = ([3, 5, 8], [0.005, 0.012_5, 0.02]);
/// The level of a plan with one look, and what other plans share among theirs.
const ALPHA: f64 = 0.05;

/// The headroom of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialHeadroom {
    /// `ln(limit / quantile)`, held to ∓ [`HEADROOM_LIMIT`].
    pub headroom: f64,
    /// Whether requests piled up.
    pub drifting: bool,
}

/// What a look at the trials shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadroomLook {
    /// Trials that were looked at.
    pub trials: u32,
    /// The chance of a wrong PASS at this look, and of a wrong FAIL, when the truth lies exactly on the limit.
    pub alpha: f64,
    /// Mean headroom with the bounds of its t interval.
    pub estimate: Estimate,
    /// Standard deviation between the trials.
    pub deviation: f64,
    /// What it decides.
    pub decision: Decision,
    /// The headroom alone would pass, but half of the trials or more drift.
    pub drift_forbids: bool,
}

/// The level of each look.
pub fn look_alpha(looks: &[u32], index: usize) -> f64 {
    match looks {
        looks if looks == ADAPTIVE.0 => ADAPTIVE.1.get(index).copied().unwrap_or(0.0),
        looks => ALPHA / looks.len().max(1) as f64,
    }
}

/// The first look that decides, else the last that the trials allow; `None` with fewer trials than the first look needs.
///
/// After `R` trials `m = mean(h)`, `d = max(sd(h), 0.02)` and `w = t(1 − α; R − 1) · d / √R`: PASS if `m − w > 0` and fewer
/// than half of the trials drift, FAIL if `m + w < 0`. Trials behind the look that decides are not read.
pub fn look_at_headroom(trials: &[TrialHeadroom], looks: &[u32]) -> Option<HeadroomLook> {
    let mut last = None;
    for (index, &count) in looks.iter().enumerate() {
        let Some(seen) = trials.get(..count as usize) else { break };
        let look = look(seen, look_alpha(looks, index))?;
        last = Some(look);
        if look.decision != Decision::Undecided {
            break;
        }
    }
    last
}

fn look(trials: &[TrialHeadroom], alpha: f64) -> Option<HeadroomLook> {
    let values: Vec<f64> = trials.iter().map(|trial| trial.headroom).collect();
    let estimate = mean_interval(&values, alpha)?;
    let drifting = trials.iter().filter(|trial| trial.drifting).count();
    let holds = estimate.lower > 0.0;
    let drift_forbids = holds && 2 * drifting >= trials.len();
    let decision = match (holds, estimate.upper < 0.0) {
        (true, _) if !drift_forbids => Decision::Pass,
        (_, true) => Decision::Fail,
        _ => Decision::Undecided,
    };
    let trials = u32::try_from(trials.len()).ok()?;
    Some(HeadroomLook { trials, alpha, estimate, deviation: deviation(&values), decision, drift_forbids })
}

/// The mean of one logarithm for each trial with its t interval, each bound at `1 − alpha`; `None` with fewer than two.
pub fn mean_interval(values: &[f64], alpha: f64) -> Option<Estimate> {
    t_interval(values, alpha, LEAST_DEVIATION)
}

/// Trials that would probably decide, were their mean and deviation the true ones: `⌈((t(1−α) + 0.84)·sd / |m|)²⌉` with the
/// normal quantile at 5 % (method, section 11); `None` where the mean lies on the limit.
pub fn trials_to_decide(look: &HeadroomLook) -> Option<u64> {
    const NORMAL_95: f64 = 1.644_853_627;
    const POWER_80: f64 = 0.84;
    let mean = look.estimate.point.abs();
    let needed = ((NORMAL_95 + POWER_80) * look.deviation.max(LEAST_DEVIATION) / mean).powi(2).ceil();
    (needed.is_finite() && needed < 1e6).then(|| (needed as u64).max(u64::from(look.trials) + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const REFERENCE: &str = include_str!("../../tests/fixtures/reference/ratio_verdicts.json");

    #[test]
    fn looks_equal_the_reference() {
        let file: Value = serde_json::from_str(REFERENCE).unwrap();
        let cases = file["cases"].as_array().unwrap().iter().filter(|case| case["method"] == "headroom");
        let mut seen = 0;
        for case in cases {
            let threshold = case["input"]["threshold"].as_f64().unwrap();
            let headroom = |quantile: &Value| {
                let headroom = quantile.as_f64().map_or(-HEADROOM_LIMIT, |quantile| (threshold / quantile).ln());
                TrialHeadroom { headroom: headroom.clamp(-HEADROOM_LIMIT, HEADROOM_LIMIT), drifting: false }
            };
            let trials: Vec<_> = case["input"]["run_quantiles"].as_array().unwrap().iter().map(headroom).collect();
            let steps = case["expect"]["steps"].as_array().unwrap();
            let expected: Vec<&Value> = steps.iter().filter(|step| step.get("t").is_some()).collect();
            for want in &expected {
                let number = |key: &str| want[key].as_f64().unwrap();
                let runs = want["runs"].as_u64().unwrap() as usize;
                let got = look_at_headroom(&trials[..runs], &[3, 5, 8]).unwrap();
                for (got, want) in [
                    (got.alpha, number("alpha")),
                    (got.estimate.point, number("mean_log_headroom")),
                    (got.deviation, number("sd")),
                    (got.estimate.lower, number("lower")),
                    (got.estimate.upper, number("upper")),
                ] {
                    assert!((got - want).abs() < 1e-7, "{got} {want} {case}");
                }
                let verdict = match got.decision {
                    Decision::Pass => "PASS",
                    Decision::Fail => "FAIL",
                    Decision::Undecided => "UNKNOWN",
                };
                assert_eq!(verdict, want["verdict"], "{case}");
            }
            // All trials at once end at the same look.
            let last = expected.last().unwrap()["runs"].as_u64();
            assert_eq!(look_at_headroom(&trials, &[3, 5, 8]).map(|look| u64::from(look.trials)), last, "{case}");
            seen += 1;
        }
        assert_eq!(seen, 8);
    }

    #[test]
    fn drift_forbids_a_pass_and_never_a_fail() {
        let trial = |headroom, drifting| TrialHeadroom { headroom, drifting };
        let held = [trial(0.5, true), trial(0.51, true), trial(0.49, false)];
        let look = look_at_headroom(&held, &[3]).unwrap();
        assert_eq!((look.decision, look.drift_forbids), (Decision::Undecided, true));
        let broke = held.map(|trial| TrialHeadroom { headroom: -trial.headroom, ..trial });
        assert_eq!(look_at_headroom(&broke, &[3]).unwrap().decision, Decision::Fail);
        assert_eq!(look_at_headroom(&held[..2], &[3]), None);
    }
}
