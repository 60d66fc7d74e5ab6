//! Whether comparing is fair at all: what must match and does not.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::{Contract, Traffic};
use crate::record::{BaselineRecord, Difference, Fingerprint, RecordStep};
use crate::schedule::PlannedTrial;
use crate::units::Load;

/// What has a name in either map and not the same value in both; what one side does not know differs.
pub(super) fn differences(base: &BTreeMap<String, String>, head: &BTreeMap<String, String>) -> Vec<Difference> {
    let names: BTreeSet<&String> = base.keys().chain(head.keys()).collect();
    let differs = |name: &&String| base.get(*name) != head.get(*name);
    let of = |name: &String| Difference {
        field: name.clone(),
        base: base.get(name).cloned(),
        head: head.get(name).cloned(),
    };
    names.into_iter().filter(differs).map(of).collect()
}

/// What two records must have in common and have not: circumstances, workload, and at equal loads and seeds the schedules.
pub(super) fn mismatches(base: &BaselineRecord, head: &BaselineRecord) -> Vec<Difference> {
    let mut found = differences(&base.fingerprint.must_match, &head.fingerprint.must_match);
    // The circumstances name the workload whatever the model is called, which a change may change.
    let is_named = [base, head].iter().all(|record| record.fingerprint.must_match.contains_key("workload"));
    if base.workload_digest != head.workload_digest && !is_named {
        let digest = |record: &BaselineRecord| Some(record.workload_digest.to_string());
        found.push(Difference { field: "workload".to_owned(), base: digest(base), head: digest(head) });
    }
    found.extend(other_schedule(base, head));
    found
}

/// The first trial of equal load and seed that had another schedule.
fn other_schedule(base: &BaselineRecord, head: &BaselineRecord) -> Option<Difference> {
    let trials = |record: &'_ BaselineRecord| -> BTreeMap<(Load, u64), String> {
        let of = |step: &RecordStep| {
            let load = step.load;
            let trials = step.trials.iter().map(move |trial| ((load, trial.seed), trial.schedule_digest.to_string()));
            trials.collect::<Vec<_>>()
        };
        all_steps(record).flat_map(of).collect()
    };
    let of_head = trials(head);
    trials(base).into_iter().find_map(|((load, seed), digest)| {
        let other = of_head.get(&(load, seed)).filter(|other| **other != digest)?;
        let field = format!("schedule at {load} of seed {seed}");
        Some(Difference { field, base: Some(digest), head: Some(other.clone()) })
    })
}

/// Whether a run of the contract would send what the baseline was sent: the same numbers of arrivals, by the same process. It is
/// asked before there is a run, of one trial at each load.
pub(super) fn is_planned_alike(contract: &Contract, base: &BaselineRecord, head: &Fingerprint) -> bool {
    let alike = |step: &RecordStep| {
        let Some(trial) = step.trials.first() else { return true };
        let planned =
            || PlannedTrial { trial: 0, seed: trial.seed, load: step.load, shape: contract.traffic.shape(step.load) };
        step.load.rate().is_some() && planned().schedule_digest() == trial.schedule_digest
    };
    matches!(contract.traffic, Traffic::Open { .. })
        && differences(&base.fingerprint.must_match, &head.must_match).is_empty()
        && all_steps(base).all(alike)
}

fn all_steps(record: &BaselineRecord) -> impl Iterator<Item = &RecordStep> {
    record.steps.iter().chain(&record.curve)
}
