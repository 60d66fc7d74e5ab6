//! The row about the least capacity that the contract asks for.

use super::absence::absence;
use super::infeasible::is_infeasible;
use super::objective::out_of_time;
use super::{Check, Reason, Status, plain_check};
use crate::contract::{Contract, Plan};
use crate::judge::Claim;
use crate::record::{CapacityRecord, RunResult};
use crate::units::{Load, Rate, Share};

/// The confidence that an end of the capacity's interval must have to decide.
const CONFIDENCE_PPM: u32 = 950_000;

/// Present where the contract sets a floor. It holds when the load that must hold is not below it and holds, or when the lower
/// end of the capacity's interval is not; it is broken when either lies on the other side.
///
/// `rows` are those of the objectives, so that nothing is claimed here that they do not. Without a floor there is a row only where
/// the endpoint changed while it was searched.
pub(super) fn check(contract: &Contract, result: &RunResult, rows: &[Check]) -> Option<Check> {
    let Some(floor) = contract.slo.capacity.filter(|floor| is_asked(contract, result.plan, *floor)) else {
        let unstable = plain_check("capacity", Status::Unknown, Reason::NotStationary);
        return changed(result).map(|note| Check { note: Some(note), ..unstable });
    };
    let blank = plain_check("capacity", Status::Unknown, Reason::NotMeasured);
    let capacity = result.capacity.as_ref();
    let blank = Check {
        limit: Some(format!("≥ {floor}")),
        observed: capacity.map(observed),
        interval: capacity.and_then(interval),
        confidence: capacity.and_then(|capacity| capacity.confidence),
        claim: capacity.map(|capacity| capacity.claim),
        method: capacity.map(|capacity| capacity.method.clone()),
        trials: capacity.map(|capacity| capacity.trials),
        samples: capacity.and_then(|capacity| Some(capacity.requests_per_trial? * u64::from(capacity.trials))),
        ..blank
    };
    let floor = Load::RateMilli(floor);
    if let Some(note) = changed(result) {
        return Some(Check { reason: Reason::NotStationary, note: Some(note), ..blank });
    }
    let at = contract.slo.at;
    let typical = contract.evidence.claim == Claim::TypicalRun && !rows.is_empty();
    let all_pass = typical && rows.iter().all(|row| row.status == Status::Pass);
    let broken = rows.iter().find(|row| typical && row.status == Status::Fail);
    let trusted = capacity.filter(|capacity| is_sure(capacity));
    let (holds_there, breaks_there) = (at >= floor && all_pass, at <= floor && broken.is_some());
    let holds = holds_there || trusted.and_then(|capacity| capacity.holds_at).is_some_and(|holds| holds >= floor);
    let breaks = breaks_there || trusted.and_then(|capacity| capacity.breaks_at).is_some_and(|breaks| breaks <= floor);
    let infeasible =
        broken.is_some_and(|row| row.reason == Reason::InfeasibleObjective) || infeasible(contract, result);
    let blank = if (holds_there || breaks_there) && trusted.is_none() {
        by_the_load_that_must_hold(contract, rows, holds_there, blank)
    } else {
        blank
    };
    let (status, reason, note) = match (holds, breaks) {
        (true, false) => (Status::Pass, Reason::Held, None),
        (false, true) if infeasible => (Status::Fail, Reason::InfeasibleObjective, None),
        (false, true) => (Status::Fail, Reason::Broken, None),
        (true, true) => {
            (Status::Unknown, Reason::IntervalStraddlesLimit, Some("the trials contradict each other".to_owned()))
        }
        (false, false) => undecided(contract, result, capacity),
    };
    Some(Check { status, reason, note, ..blank })
}

/// That the endpoint changed while it was searched.
fn changed(result: &RunResult) -> Option<String> {
    let note =
        "tried again at last, the first schedule broke twice below where all held: the endpoint changed during the run";
    result.capacity.as_ref().is_some_and(|capacity| capacity.changed).then(|| note.to_owned())
}

/// Whether even the idle endpoint breaks an objective.
fn infeasible(contract: &Contract, result: &RunResult) -> bool {
    (0..contract.slo.objectives.len()).any(|index| is_infeasible(result, &contract.slo, index))
}

/// The row where only the load that must hold decides it: then its trials are the evidence.
fn by_the_load_that_must_hold(contract: &Contract, rows: &[Check], holds: bool, blank: Check) -> Check {
    let at = contract.slo.at;
    let (observed, interval) = if holds {
        (format!("≥ {at}"), [at.to_string(), "∞".to_owned()])
    } else {
        (format!("< {at}"), ["0".to_owned(), at.to_string()])
    };
    Check {
        observed: Some(observed),
        interval: Some(interval),
        claim: Some(contract.evidence.claim),
        method: Some("by the rows above".to_owned()),
        confidence: rows.iter().filter_map(|row| row.confidence).min(),
        trials: rows.iter().filter_map(|row| row.trials).max(),
        samples: rows.iter().filter_map(|row| row.samples).max(),
        ..blank
    }
}

/// Whether a plan asks about the floor at all: one for a pull request makes no search, and tells of it only where the load that
/// must hold is not below it.
pub fn is_asked(contract: &Contract, plan: Plan, floor: Rate) -> bool {
    let decides_at_load = contract.evidence.claim == Claim::TypicalRun;
    plan != Plan::Check || (decides_at_load && contract.slo.at.rate().is_some_and(|at| at >= floor))
}

/// Whether each end alone is sure enough: one of a search by its confidence, one of listed loads by its claim.
fn is_sure(capacity: &CapacityRecord) -> bool {
    match capacity.confidence_of_end {
        Some(confidence) => confidence >= Share::from_ppm(CONFIDENCE_PPM).unwrap_or(Share::ONE),
        None => capacity.claim == Claim::TypicalRun,
    }
}

fn undecided(
    contract: &Contract,
    result: &RunResult,
    capacity: Option<&CapacityRecord>,
) -> (Status, Reason, Option<String>) {
    let unknown = |reason, note: String| (Status::Unknown, reason, Some(note));
    if let Some(absent) = absence(result) {
        return unknown(absent.reason, absent.note);
    }
    if result.budget.exhausted {
        return unknown(Reason::BudgetExhausted, out_of_time(result));
    }
    match capacity {
        Some(capacity) if !is_sure(capacity) && !result.searches.is_empty() => {
            let note = format!("{} schedules came to an end; 5 give each end 95%", capacity.seeds);
            unknown(Reason::TooFewSamples, note)
        }
        Some(capacity) if is_sure(capacity) => {
            unknown(Reason::IntervalStraddlesLimit, "the floor lies inside the interval".to_owned())
        }
        _ if contract.evidence.search.is_some() && result.plan != Plan::Check => {
            unknown(Reason::NotMeasured, "no search came to an end".to_owned())
        }
        _ => unknown(Reason::NotMeasured, "`traffic.search` and `--plan release` would search for it".to_owned()),
    }
}

/// Where the capacity lies.
fn observed(capacity: &CapacityRecord) -> String {
    match (capacity.point, capacity.holds_at, capacity.breaks_at) {
        (Some(point), ..) => format!("{point:.3}/s"),
        (None, Some(holds), None) => format!("≥ {holds}"),
        (None, None, Some(breaks)) => format!("< {breaks}"),
        (None, Some(holds), Some(_)) => format!("{holds}"),
        (None, None, None) => "not known".to_owned(),
    }
}

fn interval(capacity: &CapacityRecord) -> Option<[String; 2]> {
    let end = |load: Option<Load>, open: &str| load.map_or_else(|| open.to_owned(), |load| load.to_string());
    (capacity.holds_at.is_some() || capacity.breaks_at.is_some())
        .then(|| [end(capacity.holds_at, "0"), end(capacity.breaks_at, "∞")])
}
