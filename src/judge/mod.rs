//! From contract and record to a [`Verdict`]: first whether a trial is valid, then whether it passes.
//!
//! Everything here reads stored evidence alone: the same files give the same verdict, byte for byte, anywhere.

mod absence;
mod capacity;
mod completeness;
mod endpoint;
mod generator;
mod objective;
pub mod planning;
mod stability;
#[cfg(test)]
mod tests;
mod verdict;

pub use capacity::capacity;
pub use completeness::completeness;
pub use verdict::{Check, Claim, Reason, Status, Verdict};

use crate::contract::{Contract, UnknownPolicy};
use crate::record::{RunResult, StepRecord, TrialRecord};
use crate::search::{history, seed_searches};

/// Draws every conclusion that a result carries: why steps were not measured, capacity, completeness and verdict.
pub fn conclude(contract: &Contract, result: &mut RunResult) {
    let absent = absence::absence(result).map(|absent| absent.note);
    for step in result.steps.iter_mut().filter(|step| step.trials.is_empty()) {
        step.not_measured = Some(absent.clone().unwrap_or_else(|| "the load was not tried".to_owned()));
    }
    end_searches(contract, result);
    result.capacity = capacity(contract, result);
    result.completeness = completeness(contract, result);
    result.verdict = Some(judge(contract, result));
}

/// Says of each search how it ended and between which loads.
fn end_searches(contract: &Contract, result: &mut RunResult) {
    let ends = seed_searches(contract, &history(result));
    for record in &mut result.searches {
        if let Some(found) = ends.iter().find(|search| search.seed == record.seed) {
            record.end = found.end;
            record.holds_at = found.bracket.holds_at();
            record.breaks_at = found.bracket.breaks_at();
        }
    }
}

/// Judges a run by its contract. A verdict that `result` already carries is not read.
///
/// Rows come in this order: one per objective, at the load that must hold; one per stability row; `endpoint`, only when it
/// was not ready or went away; `load_generator`, once something was measured; `completeness`.
pub fn judge(contract: &Contract, result: &RunResult) -> Verdict {
    let mut checks = objective::checks(&contract.slo, result);
    checks.extend(stability::checks(&contract.stability, result));
    checks.extend(endpoint::check(result));
    checks.extend(generator::check(&contract.slo, result));
    checks.push(completeness::check(contract, result));
    Verdict { overall: overall(&checks), unknown_blocks: contract.policy.unknown == UnknownPolicy::Block, checks }
}

/// FAIL if any check fails, else UNKNOWN if any is unknown or there is none, else PASS.
fn overall(checks: &[Check]) -> Status {
    let any = |status| checks.iter().any(|check| check.status == status);
    match (any(Status::Fail), any(Status::Unknown) || checks.is_empty()) {
        (true, _) => Status::Fail,
        (false, true) => Status::Unknown,
        (false, false) => Status::Pass,
    }
}

/// The trial that is judged of a step.
fn judged_trial(step: &StepRecord) -> Option<&TrialRecord> {
    step.told().pop()
}

/// A row without statistics.
fn plain_check(id: &str, status: Status, reason: Reason) -> Check {
    Check {
        id: id.to_owned(),
        status,
        reason,
        claim: None,
        method: None,
        limit: None,
        observed: None,
        interval: None,
        confidence: None,
        samples: None,
        trials: None,
        note: None,
    }
}
