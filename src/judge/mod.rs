//! From contract and record to a [`Verdict`]: first whether a trial is valid, then whether it passes.
//!
//! Everything here reads stored evidence alone: the same files give the same verdict, byte for byte, anywhere.

mod absence;
mod capacity;
mod change;
mod completeness;
mod endpoint;
mod floor;
mod generator;
mod infeasible;
mod long_run;
mod objective;
pub mod planning;
mod plausible;
mod resources;
mod stability;
#[cfg(test)]
mod tests;
mod this_run;
mod typical_run;
mod verdict;

pub use capacity::capacity;
pub use change::percent;
pub use completeness::completeness;
pub use floor::is_asked as floor_is_asked;
pub use long_run::warm_up_too_short;
pub use stability::{broke, unstable};
pub use verdict::{Check, Claim, Reason, Status, Verdict};

use crate::compare::compare_run;
use crate::contract::{Contract, Plan, UnknownPolicy};
use crate::record::{BudgetRecord, RunResult, SearchEnd, SearchRecord, StepRecord, TrialRecord};
use crate::search::{Campaign, Next, history, seed_searches};

/// Draws every conclusion that a result carries: why steps were not measured, capacity, completeness and verdict.
pub fn conclude(contract: &Contract, result: &mut RunResult) {
    let absent = absence::absence(result).map(|absent| absent.note);
    for step in result.steps.iter_mut().filter(|step| step.trials.is_empty()) {
        step.not_measured = Some(absent.clone().unwrap_or_else(|| "the load was not tried".to_owned()));
    }
    result.budget = budget(contract, result);
    end_searches(contract, result);
    result.capacity = capacity(contract, result);
    result.comparison = compare_run(contract, result);
    result.completeness = completeness(contract, result);
    result.verdict = Some(judge(contract, result));
}

/// What the plan might take, what its trials took, and whether some were left out for it.
fn budget(contract: &Contract, result: &RunResult) -> BudgetRecord {
    let tried = history(result);
    BudgetRecord {
        limit_ns: contract.evidence.budget.of(result.plan).as_nanos() as u64,
        spent_ns: tried.iter().map(|tried| tried.record.took_ns).sum(),
        exhausted: Campaign::of(contract, result).next(&tried) == Next::OutOfTime,
    }
}

/// Says of each search how it ended and between which loads. One that trials at listed loads have answered has none of its own.
fn end_searches(contract: &Contract, result: &mut RunResult) {
    if !Campaign::new(contract, result.plan).searches() {
        return;
    }
    let ends = seed_searches(contract, &history(result));
    for found in ends.iter().filter(|found| found.end != SearchEnd::Unfinished) {
        if result.searches.iter().all(|record| record.seed != found.seed) {
            let record =
                SearchRecord { seed: found.seed, end: found.end, holds_at: None, breaks_at: None, steps: Vec::new() };
            result.searches.push(record);
        }
    }
    result.searches.sort_by_key(|record| ends.iter().position(|found| found.seed == record.seed));
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
/// Rows come in this order: one per objective, at the load that must hold; `together`, where a typical run must meet several
/// limits; `capacity`, where a floor is set; those of a comparison with the baseline, where one is asked for; one per stability row; `endpoint`, only when it was not ready or went away;
/// `plausibility`, only when the figures cannot be true; `load_generator`, once something was measured; `completeness`.
pub fn judge(contract: &Contract, result: &RunResult) -> Verdict {
    let mut checks = objective::checks(contract, result);
    checks.extend(floor::check(contract, result, &checks));
    checks.extend(change::checks(contract, result));
    checks.extend(resources::checks(contract, result));
    checks.extend(stability::checks(&contract.stability, result));
    checks.extend(endpoint::check(result));
    checks.extend(plausible::check(contract, result));
    checks.extend(generator::check(&contract.slo, result));
    checks.push(completeness::check(contract, result));
    let unknown_blocks = unknown_blocks(contract, result, &checks);
    Verdict { overall: overall(&checks), unknown_blocks, checks }
}

/// Whether an overall UNKNOWN blocks. That there is no baseline yet has a policy of its own, so that the first change of all can
/// pass; a release is not let through because nobody can tell.
fn unknown_blocks(contract: &Contract, result: &RunResult, checks: &[Check]) -> bool {
    let policy = |check: &Check| match check.reason {
        Reason::NoBaseline => contract.policy.missing_baseline,
        _ => contract.policy.unknown,
    };
    let mut unknown = checks.iter().filter(|check| check.status == Status::Unknown).peekable();
    let blocks = match unknown.peek() {
        Some(_) => unknown.any(|check| policy(check) == UnknownPolicy::Block),
        None => contract.policy.unknown == UnknownPolicy::Block,
    };
    blocks || result.plan == Plan::Release
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

/// The trial that is judged of a step on one schedule.
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
