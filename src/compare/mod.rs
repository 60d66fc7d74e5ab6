//! A run against a baseline: changes with intervals, and whether comparing is fair at all (method, section 10).
//!
//! Everything here reads stored records alone: the same two records give the same changes, anywhere.

mod calibrate;
mod capacity;
mod change;
mod confirm;
mod figures;
mod mismatch;
mod reference;
mod release;
mod series;
#[cfg(test)]
mod tests;
mod trend;
mod weakened;

pub use calibrate::{Differences, calibrate, differences};
pub use confirm::confirm;
pub use reference::Reference;
pub use series::looks as pair_looks;
pub use trend::{LevelShift, Trend, TrendPoint, trend};
pub use weakened::weakened;

use std::path::Path;

use crate::contract::{BaselinePlan, Contract, from_value};
use crate::record::{BaselineRecord, BaselineUse, Change, Comparison, RecordStep, RecordTrial, RunResult, Weakening};

/// Two records and the rules by which they are compared.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// The baseline.
    pub base: &'a BaselineRecord,
    /// The run.
    pub head: &'a BaselineRecord,
    /// The run's contract.
    pub contract: &'a Contract,
    /// Margins, and which latencies gate.
    pub rules: &'a BaselinePlan,
    /// Both were measured side by side, trial by trial: their schedules and the machine's state pair them.
    pub is_paired: bool,
}

/// Compares two records: the capacity first, then goodput and latency by load. Where something that must match does not, nothing is
/// computed.
pub fn compare(sides: Sides<'_>) -> Comparison {
    let mismatches = mismatch::mismatches(sides.base, sides.head);
    let under_test = mismatch::differences(&sides.base.fingerprint.under_test, &sides.head.fingerprint.under_test);
    let mut changes = Vec::new();
    if mismatches.is_empty() {
        changes.extend(capacity::capacity(sides));
        changes.extend(figures::goodputs(sides));
        changes.extend(figures::latencies(sides));
    }
    Comparison { mismatches, under_test, changes, ..Comparison::default() }
}

/// What changed between a run and what it is compared with; `None` where it was to be compared with nothing. What needs no
/// record is told without one too.
pub fn compare_run(contract: &Contract, result: &RunResult) -> Option<Comparison> {
    let used = result.baseline.as_ref()?;
    let mut comparison = Comparison::default();
    if let Some(rules) = &contract.baseline {
        let (head, base) = (BaselineRecord::of(result), used.record.as_ref());
        if let Some(base) = base {
            let sides = Sides { base, head: &head, contract, rules, is_paired: used.is_paired() };
            comparison = compare_with(sides, used, result);
        }
        comparison.since_release =
            used.release.as_ref().map(|release| release::since_release(&head, base, rules.margin, release));
    }
    comparison.weakened = weakened_since(result, used);
    Some(comparison)
}

/// The comparison with a record. Where a suspected loss was confirmed side by side, that stands in place of the comparison with the
/// stored capacity.
fn compare_with(sides: Sides<'_>, used: &BaselineUse, result: &RunResult) -> Comparison {
    let mut comparison = compare(sides);
    if let Some(stored) = comparison.changes.iter_mut().find(|change| change.metric == "capacity")
        && let Some(confirmed) = confirmed(sides, used, result)
    {
        *stored = confirm::in_place_of(stored, confirmed);
    }
    comparison
}

/// Where the contract asks for less than the one at the base; where none is there, than the one of the record.
fn weakened_since(result: &RunResult, used: &BaselineUse) -> Vec<Weakening> {
    let of_record = || used.record.as_ref().map(|record| &record.contract);
    let Some(base) = used.base_contract.as_ref().or_else(of_record) else { return Vec::new() };
    // What this version cannot read, it cannot hold against the present one; who chose the baseline says so.
    // Both are read relative to the same folder, whichever that is, so that their paths are the same where they are written so.
    let [base, head] = [base, &result.contract].map(|contract| from_value(contract, Path::new(".")));
    base.and_then(|base| Ok(weakened(&base, &head?))).unwrap_or_default()
}

/// What the trials side by side say of the capacity; `None` where none were made.
fn confirmed(sides: Sides<'_>, used: &BaselineUse, result: &RunResult) -> Option<Change> {
    let reference = Reference::between(sides.contract, sides.base, &sides.head.fingerprint)?;
    let at = |step: &&RecordStep| step.load == reference.load();
    let base = used.confirmation.iter().find(at)?;
    let head = result.confirm.iter().find(|step| step.load == reference.load())?;
    let head: Vec<RecordTrial> =
        head.trials.iter().filter(|trial| trial.complete && !trial.is_void()).map(RecordTrial::of).collect();
    Some(confirm(&reference, &base.trials, &head, sides.rules.margin))
}
