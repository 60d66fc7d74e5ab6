//! One row of a comparison: from an interval on the logarithm of a ratio to a status with its reason.

use crate::judge::{Reason, Status};
use crate::record::Change;
use crate::stats::{Decision, Estimate, LEAST_RATIO_DEVIATION, RatioLook, decide_ratio, t_interval};
use crate::units::{Load, Share, format_measured_ratio};

/// A gain that is not believed until the outputs were looked at.
const IMPLAUSIBLE: f64 = 1.5;
/// What is said of it.
const TOO_GOOD: &str = "a gain of more than a half is not believed until the outputs were looked at";

/// A row about which nothing is known yet.
pub(super) fn open(metric: &str, load: Option<Load>, margin: Share, gates: bool) -> Change {
    Change {
        metric: metric.to_owned(),
        load,
        base: None,
        head: None,
        ratio: None,
        interval: None,
        confidence: None,
        method: None,
        margin,
        base_trials: 0,
        head_trials: 0,
        status: Status::Unknown,
        reason: Reason::NotMeasured,
        significant: false,
        material: false,
        gates,
        note: None,
    }
}

/// The row that cannot be decided.
pub(super) fn unknown(change: Change, reason: Reason, note: impl Into<String>) -> Change {
    Change { status: Status::Unknown, reason, note: Some(note.into()), ..change }
}

/// The logarithm of the smallest ratio that passes.
pub(super) fn limit(margin: Share) -> f64 {
    (-margin.fraction()).ln_1p()
}

/// The row as an interval on the logarithm of its ratio decides it.
pub(super) fn decided(change: Change, found: &Estimate) -> Change {
    let (lower, upper) = (found.lower.exp(), found.upper.exp());
    if !(found.point.exp().is_finite() && lower.is_finite() && upper.is_finite()) {
        return unknown(change, Reason::NotMeasured, "the ratio has no upper end: a figure of the baseline is endless");
    }
    let margin = change.margin.fraction();
    let (status, reason) = match decide_ratio(found, limit(change.margin)) {
        _ if lower > IMPLAUSIBLE => (Status::Unknown, Reason::ImplausibleGain),
        Decision::Pass => (Status::Pass, Reason::Held),
        Decision::Fail => (Status::Fail, Reason::Broken),
        Decision::Undecided => (Status::Unknown, Reason::IntervalStraddlesLimit),
    };
    Change {
        ratio: Some(found.point.exp()),
        interval: Some([lower, upper]),
        confidence: Share::from_ppm((found.confidence * 1e6).round() as u32),
        method: Some(found.method.to_owned()),
        status,
        reason,
        significant: lower > 1.0 || upper < 1.0,
        material: upper < 1.0 - margin || lower > 1.0 + margin,
        note: if reason == Reason::ImplausibleGain { Some(TOO_GOOD.to_owned()) } else { change.note },
        ..change
    }
}

/// The row by a look at shifts, which are held to three margins: whether the gain is to be believed is asked of what they were before.
pub(super) fn believed(change: Change, look: &RatioLook, ratios: &[f64]) -> Change {
    let seen = ratios.get(..look.trials as usize).unwrap_or(ratios);
    let found = t_interval(seen, 1.0 - look.estimate.confidence, LEAST_RATIO_DEVIATION);
    match found {
        Some(found) if found.lower.exp() > IMPLAUSIBLE => unknown(change, Reason::ImplausibleGain, TOO_GOOD),
        _ => change,
    }
}

/// A number per second for a person: three significant digits.
pub(super) fn per_second(value: f64) -> String {
    format!("{}/s", format_measured_ratio((value * 1e6).round() as u64))
}

/// A standard deviation of logarithms for a person, as a percentage.
pub(super) fn percent(logarithm: f64) -> String {
    format!("{:.1} %", 100.0 * logarithm.exp_m1())
}

/// The value in the middle, the lower of two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}
