//! The capacity seen over the steps of one run, and the limit that binds it.

use super::judged_trial;
use crate::contract::{Objective, Slo};
use crate::record::{Binding, CapacityRecord, ObjectiveEvidence, StepRecord, TrialRecord};

/// Where one step stands; a step that is neither says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Held,
    Broke,
    NotKnown,
}

/// The highest load that held below the lowest that did not (method, section 9). Each load was tried on one schedule: it says
/// what this schedule did, and no confidence is attached.
///
/// `None` in a closed loop, which offers no load, and when no step can be told.
pub fn capacity(slo: &Slo, steps: &[StepRecord]) -> Option<CapacityRecord> {
    slo.at.rate()?;
    let mut stands: Vec<(&StepRecord, Stand)> = steps.iter().map(|step| (step, stand(slo, step))).collect();
    stands.sort_by_key(|(step, _)| step.load);
    let loads_that = |wanted| stands.iter().filter(move |(_, stand)| *stand == wanted).map(|(step, _)| *step);
    let broke = loads_that(Stand::Broke).next();
    let held = loads_that(Stand::Held).rfind(|step| broke.is_none_or(|broke| step.load < broke.load));
    if broke.is_none() && held.is_none() {
        return None;
    }
    let non_monotone = broke.is_some_and(|broke| loads_that(Stand::Held).any(|step| step.load > broke.load));
    Some(CapacityRecord {
        holds_at: held.map(|step| step.load),
        breaks_at: broke.map(|step| step.load),
        confidence: None,
        goodput: held.and_then(|step| step.goodput),
        non_monotone,
        binding: binding(slo, steps, broke),
    })
}

/// A step held if its violations are within every budget, nothing piled up and nothing is missing; it broke if known
/// violations exceed a budget or requests piled up. An interrupted or void step that shows neither is not known.
fn stand(slo: &Slo, step: &StepRecord) -> Stand {
    let Some(trial) = judged_trial(step).filter(|trial| !trial.is_void()) else { return Stand::NotKnown };
    let evidence = || paired(slo, trial);
    let over = |violations: u64, objective: &Objective, n| violations > objective.budget().floor_of(n);
    let broke = evidence().any(|(objective, found)| over(found.violations, objective, found.n));
    if broke || trial.drift.is_some_and(|drift| drift.drifting) {
        return Stand::Broke;
    }
    let within = |(objective, found): (&Objective, &ObjectiveEvidence)| {
        found.unmeasured == 0
            && found.n > 0
            && !over(found.violations.saturating_add(found.undecided), objective, found.n)
    };
    let all_there = trial.complete && evidence().count() == slo.objectives.len();
    if all_there && evidence().all(within) { Stand::Held } else { Stand::NotKnown }
}

/// The objectives with their evidence.
fn paired<'a>(slo: &'a Slo, trial: &'a TrialRecord) -> impl Iterator<Item = (&'a Objective, &'a ObjectiveEvidence)> {
    slo.objectives.iter().filter_map(|objective| {
        let id = objective.id();
        trial.objectives.iter().find(|found| found.id == id).map(|found| (objective, found))
    })
}

/// At the load that broke, the objective that exceeds its budget most; where none broke, the one that comes closest to its
/// limit at the load that must hold. The first in the contract's order wins a tie.
fn binding(slo: &Slo, steps: &[StepRecord], broke: Option<&StepRecord>) -> Option<Binding> {
    let step = broke.or_else(|| steps.iter().find(|step| step.load == slo.at))?;
    let trial = judged_trial(step).filter(|trial| !trial.is_void())?;
    let strain = if broke.is_some() { excess } else { closeness };
    let (objective, found) = paired(slo, trial)
        .filter(|(_, found)| found.n > 0 && found.unmeasured == 0)
        .reduce(|most, next| if strain(next.0, next.1) > strain(most.0, most.1) { next } else { most })?;
    Some(Binding {
        objective: found.id.clone(),
        load: step.load,
        broke: found.violations > objective.budget().floor_of(found.n),
        violations: found.violations,
        n: found.n,
    })
}

/// Violations over the budget; one violation of an objective without budget exceeds everything.
fn excess(objective: &Objective, found: &ObjectiveEvidence) -> f64 {
    let allowed = objective.budget().fraction() * found.n as f64;
    match (found.violations, allowed > 0.0) {
        (0, _) => 0.0,
        (violations, true) => violations as f64 / allowed,
        (_, false) => f64::INFINITY,
    }
}

/// The quantile over its limit, and the share of the budget that is used.
fn closeness(objective: &Objective, found: &ObjectiveEvidence) -> f64 {
    match (objective.limit(), found.quantile) {
        (Some((_, limit)), Some(value)) => value as f64 / limit.max(1) as f64,
        (Some(_), None) => f64::INFINITY,
        (None, _) => excess(objective, found),
    }
}
