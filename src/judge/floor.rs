//! The row about the least capacity that the contract asks for.

use super::absence::absence;
use super::capacity::{Stand, stand_at_load};
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
pub(super) fn check(contract: &Contract, result: &RunResult, infeasible: bool) -> Option<Check> {
    let floor = contract.slo.capacity.filter(|floor| is_asked(contract, result.plan, *floor))?;
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
    if capacity.is_some_and(|capacity| capacity.changed) {
        let note = "a schedule that held before no longer held at a lower load: the endpoint changed during the run";
        return Some(Check { reason: Reason::NotStationary, note: Some(note.to_owned()), ..blank });
    }
    let at = contract.slo.at;
    let stand = stand_at_load(contract, result);
    let trusted = capacity.filter(|capacity| is_sure(capacity));
    let holds = (at >= floor && stand == Stand::Held)
        || trusted.and_then(|capacity| capacity.holds_at).is_some_and(|holds| holds >= floor);
    let breaks = (at <= floor && stand == Stand::Broke)
        || trusted.and_then(|capacity| capacity.breaks_at).is_some_and(|breaks| breaks <= floor);
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
