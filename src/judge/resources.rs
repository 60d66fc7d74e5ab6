//! The rows of the limits on resources, judged at the load that must hold: on every trial that speaks for it.

use super::objective::Scene;
use super::{Check, Reason, Status, plain_check};
use crate::contract::{Contract, ResourceLimit, Statistic};
use crate::record::{ResourceRecord, RunResult, TrialRecord};

/// One row per limit, in the contract's order.
pub(super) fn checks(contract: &Contract, result: &RunResult) -> Vec<Check> {
    let scene = Scene::new(contract, result);
    contract.slo.resources.iter().map(|limit| check(limit, &scene)).collect()
}

/// FAIL where one trial is above the limit, PASS where every trial is within it by enough samples, else UNKNOWN.
fn check(limit: &ResourceLimit, scene: &Scene<'_>) -> Check {
    let blank = Check {
        limit: Some(format!("≤ {}", limit.show(limit.at_most))),
        ..plain_check(&limit.id(), Status::Unknown, Reason::NotMeasured)
    };
    let trials: Vec<&TrialRecord> = scene.told();
    if trials.is_empty() {
        let finding = scene.unmeasured();
        return Check { reason: finding.reason, note: finding.note, ..blank };
    }
    let records: Vec<Option<&ResourceRecord>> =
        trials.iter().map(|trial| trial.resources.iter().find(|found| found.name == limit.resource)).collect();
    let figures = trials.iter().filter_map(|trial| limit.figure(trial));
    // The trial that came off worst is the one that is judged.
    let worst = figures.reduce(f64::max);
    let samples = records.iter().flatten().map(|record| record.samples).sum();
    let seen = Check {
        observed: worst.map(|worst| observed(&apart(limit, worst), trials.len())),
        samples: Some(samples),
        trials: u32::try_from(trials.len()).ok(),
        ..blank
    };
    if let Some(trial) = trials.iter().find(|trial| limit.is_broken_by(trial) && !trial.is_void()) {
        let note = format!("in trial {}", trial.trial);
        return Check { status: Status::Fail, reason: Reason::Broken, note: Some(note), ..seen };
    }
    if let Some(void) = trials.iter().find(|trial| trial.is_void()) {
        return Check { reason: Reason::GeneratorSaturated, note: Some(void.health.faults.join("; ")), ..seen };
    }
    if let Some(index) = trials.iter().position(|trial| trial.complete && !limit.is_held_by(trial)) {
        let (reason, note) = missing(limit, records.get(index).copied().flatten());
        return Check { reason, note: Some(note), ..seen };
    }
    if trials.iter().any(|trial| !trial.complete) {
        let finding = scene.cut_short();
        return Check { reason: finding.reason, note: finding.note, ..seen };
    }
    Check { status: Status::Pass, reason: Reason::Held, ..seen }
}

/// A figure; one that three digits would not tell from the limit below it, with all of its digits.
fn apart(limit: &ResourceLimit, figure: f64) -> String {
    let is_close = figure > limit.at_most && figure < limit.at_most * 1.01;
    if is_close { format!("{figure} (limit {})", limit.at_most) } else { limit.show(figure) }
}

/// A figure, and of how many trials it is the worst.
fn observed(figure: &str, trials: usize) -> String {
    if trials > 1 { format!("{figure}, worst of {trials} trials") } else { figure.to_owned() }
}

/// Why a trial does not show that it is within a limit.
fn missing(limit: &ResourceLimit, record: Option<&ResourceRecord>) -> (Reason, String) {
    let Some(record) = record else {
        return (Reason::NotMeasured, format!("`{}` was not sampled", limit.resource));
    };
    let why = record.failure.as_ref();
    if !record.is_dense() {
        let few = format!("{} of {} samples have a number", record.samples, record.due);
        return match why {
            Some(why) => (Reason::ProbeFailed, format!("{few}: {why}")),
            None => (Reason::NotMeasured, format!("{few}; lengthen the window or sample more often")),
        };
    }
    let note = why.cloned().unwrap_or_else(|| "it has no figure".to_owned());
    match limit.statistic {
        Statistic::Rate if record.samples > 1 => (Reason::CounterReset, note),
        _ => (Reason::NotMeasured, note),
    }
}
