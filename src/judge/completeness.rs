//! Whether every cell that the plan declares was measured: one cell per load, one per search and one
//! for its last trial, one per stability row, and one for each kind of trial that a comparison needs.

use super::absence::absence;
use super::stability::is_answered;
use super::{Check, Reason, Status, plain_check};
use crate::contract::{Contract, StabilityRow};
use crate::record::{Cell, Completeness, ProbeRecord, Reading, RunResult, SearchEnd, StepRecord, TrialRecord};
use crate::search::{Campaign, check_again_is_missing, counted, history, seed_searches};

/// Schedules without which the headrooms around the capacity are of no use to a later run.
const LEAST_CURVE: u32 = 3;

/// Every declared cell, measured or with the reason why not. A step is measured by as many whole trials as the first look at it
/// needs, a search by its end, a stability row by a reading before and one after.
pub fn completeness(contract: &Contract, result: &RunResult) -> Completeness {
    let campaign = Campaign::of(contract, result);
    let mut cells = Vec::new();
    for load in campaign.loads() {
        let step = result.steps.iter().find(|step| step.load == load);
        let needed = campaign.looks(load).first().copied().unwrap_or(1);
        cells.push(Cell { name: load.to_string(), missing: step_missing(step, needed, result) });
    }
    if let Some(search) = contract.evidence.search.filter(|_| campaign.searches()) {
        cells.extend((0..search.seeds).map(|index| Cell {
            name: format!("search {} of {}", index + 1, search.seeds),
            missing: search_missing(result, contract.workload.seed.wrapping_add(u64::from(index))),
        }));
    }
    if contract.evidence.search.is_some_and(|search| campaign.searches() && search.seeds > 1) {
        let missing = again_missing(contract, result);
        cells.push(Cell { name: "search again on the first schedule".to_owned(), missing });
    }
    cells.extend(comparison_cells(contract, &campaign, result));
    let answered = |row: &&StabilityRow| !row.automatic || is_answered(result, &row.name);
    for row in contract.stability.iter().filter(answered) {
        cells.push(Cell { name: row.name.clone(), missing: probe_missing(&result.probes, &row.name) });
    }
    // What stopped the run is why a cell is missing, before anything that the cell itself tells.
    if let Some(absent) = absence(result) {
        cells.iter_mut().for_each(|cell| cell.missing = cell.missing.map(|_| absent.reason));
    }
    let measured = cells.iter().filter(|cell| cell.missing.is_none()).count() as u64;
    Completeness { planned: cells.len() as u64, measured, cells }
}

/// The row: PASS only when every cell was measured.
pub(super) fn check(contract: &Contract, result: &RunResult) -> Check {
    let ledger = completeness(contract, result);
    let missing: Vec<(&str, Reason)> =
        ledger.cells.iter().filter_map(|cell| Some((cell.name.as_str(), cell.missing?))).collect();
    let (status, reason, note) = match missing.first() {
        None => (Status::Pass, Reason::Held, None),
        Some((_, reason)) => {
            let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
            let because = absence(result).map_or_else(String::new, |absent| format!(" ({})", absent.note));
            (Status::Unknown, *reason, Some(format!("not measured: {}{because}", names.join(", "))))
        }
    };
    Check {
        limit: Some(format!("all {} cells", ledger.planned)),
        observed: Some(format!("measured {} of {}", ledger.measured, ledger.planned)),
        note,
        ..plain_check("completeness", status, reason)
    }
}

/// What was left out for want of time, else what else it was.
fn otherwise(result: &RunResult) -> Reason {
    if result.budget.exhausted { Reason::BudgetExhausted } else { Reason::NotMeasured }
}

fn step_missing(step: Option<&StepRecord>, needed: u32, result: &RunResult) -> Option<Reason> {
    let trials = step.map(|step| step.trials.as_slice()).unwrap_or_default();
    if counted(trials).len() as u32 >= needed {
        return None;
    }
    let void = trials.iter().any(TrialRecord::is_void);
    Some(if void { Reason::GeneratorSaturated } else { otherwise(result) })
}

fn search_missing(result: &RunResult, seed: u64) -> Option<Reason> {
    let search = result.searches.iter().find(|search| search.seed == seed);
    if search.is_some_and(|search| search.end != SearchEnd::Unfinished) {
        return None;
    }
    let last = search.and_then(|search| search.steps.last()).and_then(|step| step.trials.last());
    let void = last.is_some_and(TrialRecord::is_void);
    Some(if void { Reason::GeneratorSaturated } else { otherwise(result) })
}

/// Why it is not known whether the endpoint is still the same after the search.
fn again_missing(contract: &Contract, result: &RunResult) -> Option<Reason> {
    let tried = history(result);
    let ended = seed_searches(contract, &tried).iter().all(|search| search.end != SearchEnd::Unfinished);
    if ended && !check_again_is_missing(contract, &tried) {
        return None;
    }
    let void = tried.last().is_some_and(|last| last.record.is_void());
    Some(if void { Reason::GeneratorSaturated } else { otherwise(result) })
}

/// What is measured for comparisons: against the baseline's capacity as many trials as the first look needs, around the own
/// capacity as many whole schedules as a later run's first look needs. Without a capacity nothing is declared around it.
fn comparison_cells(contract: &Contract, campaign: &Campaign<'_>, result: &RunResult) -> Vec<Cell> {
    let mut cells = Vec::new();
    if let Some(reference) = campaign.reference() {
        let needed = reference.looks(contract).first().copied().unwrap_or(1);
        let step = result.against.first();
        cells.push(Cell {
            name: "comparison with the baseline".to_owned(),
            missing: step_missing(step, needed, result),
        });
    }
    let loads = campaign.curve_loads(&history(result));
    if !loads.is_empty() {
        let of_load = |load| result.curve.iter().find(|step| step.load == load);
        let missing = loads.into_iter().find_map(|load| step_missing(of_load(load), LEAST_CURVE, result));
        cells.push(Cell { name: "headrooms around the capacity".to_owned(), missing });
    }
    cells
}

fn probe_missing(probes: &[ProbeRecord], name: &str) -> Option<Reason> {
    let has_value = |reading: &Option<Reading>| reading.as_ref().is_some_and(|reading| reading.value.is_some());
    let probe = probes.iter().find(|probe| probe.name == name);
    match probe {
        Some(probe) if has_value(&probe.before) && has_value(&probe.after) => None,
        Some(probe) if probe.before.is_some() || probe.after.is_some() => Some(Reason::ProbeFailed),
        _ => Some(Reason::NotMeasured),
    }
}
