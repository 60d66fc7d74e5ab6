//! One figure of every trial on both sides, as the logarithm of something of which more is better (method, section 10.3).

use super::capacity::would_decide;
use super::change::{decided, limit, unknown};
use crate::contract::Contract;
use crate::judge::Reason;
use crate::record::Change;
use crate::stats::{Estimate, PAIRED_LOOKS, RatioRule, prediction, rank_interval};

/// The level of each bound of a single look.
const ALPHA: f64 = 0.05;
/// Pairs below which nothing is told.
const LEAST_PAIRS: u32 = 3;

/// The figure by seed.
pub(super) type Series = [(u64, f64)];

/// The looks at pairs: the contract's own from three trials on, else the usual ones.
pub fn looks(contract: &Contract) -> Vec<u32> {
    let own: Vec<u32> = contract.evidence.looks.iter().copied().filter(|look| *look >= LEAST_PAIRS).collect();
    if own.is_empty() { PAIRED_LOOKS.to_vec() } else { own }
}

/// The row as the trials of both sides decide it: in pairs where both were measured side by side, else by ranks, else as one trial
/// against many.
pub(super) fn compared(change: Change, base: &Series, head: &Series, pair_looks: Option<&[u32]>) -> Change {
    let change = Change { base_trials: base.len() as u32, head_trials: head.len() as u32, ..change };
    if base.iter().any(|(_, value)| !value.is_finite()) {
        return unknown(change, Reason::NotMeasured, "the percentile falls among failed requests of the baseline");
    }
    // What has no end has no mean either; it has a rank.
    let is_endless = head.iter().any(|(_, value)| !value.is_finite());
    match pair_looks.filter(|_| !is_endless) {
        Some(looks) => in_pairs(change, base, head, looks),
        None => apart(change, &values(base), &values(head)),
    }
}

fn values(series: &Series) -> Vec<f64> {
    series.iter().map(|(_, value)| *value).collect()
}

fn in_pairs(change: Change, base: &Series, head: &Series, looks: &[u32]) -> Change {
    let of_seed = |seed: u64| head.iter().find(|(other, _)| *other == seed).map(|(_, value)| *value);
    let ratios: Vec<f64> = base.iter().filter_map(|(seed, base)| Some(of_seed(*seed)? - base)).collect();
    let pairs = ratios.len() as u32;
    let change = Change { base_trials: pairs, head_trials: pairs, ..change };
    match RatioRule::new(looks, change.margin.fraction()).look(&ratios) {
        Some(look) => {
            let change = Change { base_trials: look.trials, head_trials: look.trials, ..change };
            let found = Estimate { method: "paired trials", ..look.estimate };
            let decided = decided(change, &found);
            let note =
                (decided.reason == Reason::IntervalStraddlesLimit).then(|| would_decide(&look, limit(decided.margin)));
            Change { note, ..decided }
        }
        None => {
            let first = looks.first().copied().unwrap_or(LEAST_PAIRS);
            unknown(change, Reason::TooFewSamples, format!("{pairs} of {first} pairs of trials were made"))
        }
    }
}

fn apart(change: Change, base: &[f64], head: &[f64]) -> Change {
    let found = match head {
        [one] if one.is_finite() => prediction(base, *one, ALPHA),
        _ => rank_interval(base, head, ALPHA),
    };
    match (found, base.len(), head.len()) {
        (Some(found), _, _) => decided(change, &found),
        (None, base, head) if base.min(head) == 1 => {
            let note =
                format!("{head} here and {base} of the baseline: one trial tells nothing of how far runs differ");
            unknown(change, Reason::RunNoiseUnknown, note)
        }
        (None, base, head) => unknown(
            change,
            Reason::TooFewSamples,
            format!("{head} trials here and {base} of the baseline: 3 and 3 are the least"),
        ),
    }
}
