//! Whether every cell that the contract declares was measured: one cell per load and one per stability row.

use super::absence::absence;
use super::{Check, Reason, Status, plain_check};
use crate::contract::Contract;
use crate::record::{Completeness, ProbeRecord, Reading, RunResult, StepRecord, TrialRecord};
use crate::units::Load;

/// Counts the planned and the measured cells. A step is measured by a whole trial that is evidence, a stability row by a
/// reading before and one after.
pub fn completeness(contract: &Contract, steps: &[StepRecord], probes: &[ProbeRecord]) -> Completeness {
    let loads = contract.traffic.loads();
    let measured_steps = loads.iter().filter(|load| step_is_measured(steps, **load)).count();
    let measured_probes = contract.stability.iter().filter(|row| probe_is_measured(probes, &row.name)).count();
    Completeness {
        planned: (loads.len() + contract.stability.len()) as u64,
        measured: (measured_steps + measured_probes) as u64,
    }
}

/// The row: PASS only when every cell was measured.
pub(super) fn check(contract: &Contract, result: &RunResult) -> Check {
    let cells = completeness(contract, &result.steps, &result.probes);
    let (status, reason, note) = if cells.measured == cells.planned {
        (Status::Pass, Reason::Held, None)
    } else {
        let (reason, note) = what_is_missing(contract, result);
        (Status::Unknown, reason, Some(note))
    };
    Check {
        limit: Some(format!("all {} cells", cells.planned)),
        observed: Some(format!("measured {} of {}", cells.measured, cells.planned)),
        note,
        ..plain_check("completeness", status, reason)
    }
}

/// The reason of the whole row, and every missing cell by name. What stopped the run comes before what one cell lacks.
fn what_is_missing(contract: &Contract, result: &RunResult) -> (Reason, String) {
    let steps = contract.traffic.loads().into_iter().filter(|load| !step_is_measured(&result.steps, *load));
    let step_cells = steps.map(|load| (load.to_string(), step_reason(&result.steps, load)));
    let probes = contract.stability.iter().filter(|row| !probe_is_measured(&result.probes, &row.name));
    let probe_cells = probes.map(|row| (row.name.clone(), probe_reason(&result.probes, &row.name)));
    let cells: Vec<(String, Reason)> = step_cells.chain(probe_cells).collect();

    let names: Vec<&str> = cells.iter().map(|(name, _)| name.as_str()).collect();
    let missing = format!("not measured: {}", names.join(", "));
    match absence(result) {
        Some(absent) => (absent.reason, format!("{missing} ({})", absent.note)),
        None => (cells.first().map_or(Reason::NotMeasured, |(_, reason)| *reason), missing),
    }
}

fn step_is_measured(steps: &[StepRecord], load: Load) -> bool {
    let step = steps.iter().find(|step| step.load == load);
    step.is_some_and(|step| step.trials.iter().any(|trial| trial.complete && !trial.is_void()))
}

fn step_reason(steps: &[StepRecord], load: Load) -> Reason {
    let void = steps.iter().filter(|step| step.load == load).flat_map(|step| &step.trials).any(TrialRecord::is_void);
    if void { Reason::GeneratorSaturated } else { Reason::NotMeasured }
}

fn probe_is_measured(probes: &[ProbeRecord], name: &str) -> bool {
    let has_value = |reading: &Option<Reading>| reading.as_ref().is_some_and(|reading| reading.value.is_some());
    probes.iter().any(|probe| probe.name == name && has_value(&probe.before) && has_value(&probe.after))
}

fn probe_reason(probes: &[ProbeRecord], name: &str) -> Reason {
    let read = probes.iter().any(|probe| probe.name == name && (probe.before.is_some() || probe.after.is_some()));
    if read { Reason::ProbeFailed } else { Reason::NotMeasured }
}
