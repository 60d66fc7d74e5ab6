//! Whether one trial held, and by how much (method, sections 1 and 4).

use crate::contract::{Objective, Slo};
use crate::record::{ObjectiveEvidence, TrialRecord};
use crate::stats::HEADROOM_LIMIT;

/// `ln(limit / quantile)`, held to ∓ ln 10: an infinite quantile has the least headroom and a quantile of zero the most. The
/// sign tells whether the quantile is within the limit, zero included.
pub(super) fn log_headroom(limit: u64, quantile: Option<u64>) -> f64 {
    match quantile {
        None => -HEADROOM_LIMIT,
        Some(0) => HEADROOM_LIMIT,
        Some(value) => (limit as f64 / value as f64).ln().clamp(-HEADROOM_LIMIT, HEADROOM_LIMIT),
    }
}

/// The smallest headroom over the objectives on latency and attainment; `None` when one of them has none.
pub(super) fn headroom(slo: &Slo, trial: &TrialRecord) -> Option<f64> {
    let mut smallest = None;
    for (objective, found) in paired(slo, trial) {
        if !matches!(objective, Objective::SuccessRate { .. }) {
            let headroom = found.headroom?;
            smallest = Some(smallest.map_or(headroom, |least: f64| least.min(headroom)));
        }
    }
    smallest
}

/// A trial held if its violations are within every budget, nothing piled up, no stability row broke while it ran, every
/// limited resource is within its limit, and nothing is missing; it did not if one of these is known to be otherwise. One that shows neither, that is void, or
/// whose requests were refused for what they are, is not known.
pub(super) fn held(slo: &Slo, trial: &TrialRecord) -> Option<bool> {
    if trial.is_void() || trial.refused().is_some() {
        return None;
    }
    let evidence = || paired(slo, trial);
    let over = |violations: u64, objective: &Objective, n| violations > objective.budget().floor_of(n);
    let broke = evidence().any(|(objective, found)| over(found.violations, objective, found.n));
    let unstable = !trial.unstable.is_empty() || slo.resources.iter().any(|limit| limit.is_broken_by(trial));
    if broke || unstable || trial.drift.is_some_and(|drift| drift.drifting) {
        return Some(false);
    }
    let within = |(objective, found): (&Objective, &ObjectiveEvidence)| {
        found.unmeasured == 0
            && found.n > 0
            && !over(found.violations.saturating_add(found.undecided), objective, found.n)
    };
    let within_resources = slo.resources.iter().all(|limit| limit.is_held_by(trial));
    (trial.complete && evidence().all(within) && within_resources).then_some(true)
}

/// The objectives with their evidence, which a summary keeps in the same order.
fn paired<'a>(slo: &'a Slo, trial: &'a TrialRecord) -> impl Iterator<Item = (&'a Objective, &'a ObjectiveEvidence)> {
    slo.objectives.iter().zip(&trial.objectives)
}
