//! Whether a plan can decide the floor of the capacity.

use serde::Serialize;

use super::{Fit, ObjectiveForecast, budget, cost};
use crate::contract::{Contract, Plan};
use crate::judge::{Claim, floor_is_asked};
use crate::search::Campaign;
use crate::units::Rate;

/// Searches with which the lower end of the capacity has a confidence of 95 %: `1 − 2^−5` is 96.9 % (method, section 9).
const SEEDS: u32 = 5;

/// Whether a plan can decide the floor of the capacity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FloorForecast {
    /// The floor.
    pub at_least: Rate,
    /// Whether it can PASS within the budget; `null` when that is not known before.
    pub can_pass: Option<bool>,
    /// By what, or why not and what to change.
    pub note: String,
}

/// `None` where no floor is asked for. `objectives` are the plan's own forecasts.
pub(super) fn forecast(contract: &Contract, plan: Plan, objectives: &[ObjectiveForecast]) -> Option<FloorForecast> {
    let at_least = contract.slo.capacity?;
    if !floor_is_asked(contract, plan, at_least) {
        let note = format!("not a row of the plan `{}`; {}", plan.name(), instead(contract, plan, at_least));
        return Some(FloorForecast { at_least, can_pass: None, note });
    }
    let (can_pass, note) = outlook(contract, plan, at_least, objectives);
    Some(FloorForecast { at_least, can_pass, note })
}

/// What decides it, the surest first: what must hold, when that is not below the floor, the search, or another listed load.
fn outlook(contract: &Contract, plan: Plan, floor: Rate, objectives: &[ObjectiveForecast]) -> (Option<bool>, String) {
    // Of single loads only a typical run tells where the capacity lies.
    let typical = contract.evidence.claim == Claim::TypicalRun;
    let campaign = Campaign::new(contract, plan);
    let search = contract.evidence.search.filter(|_| campaign.searches());
    if let Some(at) = contract.slo.at.rate().filter(|at| typical && *at >= floor) {
        let can_pass = all(objectives.iter().map(|objective| objective.can_pass));
        if can_pass == Some(true) || search.is_none() {
            return (can_pass, format!("by what is decided at {at}, which is not below it"));
        }
    }
    let (in_time, late) = match budget::fit(contract, plan, cost(contract, plan).load_time_ns) {
        Fit::Whole => (Some(true), ""),
        Fit::Fewest => (None, ", if the budget suffices"),
        Fit::FirstLook | Fit::TooSmall => (Some(false), ", but the budget is too small"),
    };
    if let Some(search) = search {
        if search.seeds < SEEDS {
            let note =
                format!("{} searches give an end of the capacity less than 95%; write `seeds: {SEEDS}`", search.seeds);
            return (Some(false), note);
        }
        return (in_time, format!("by the search{late}"));
    }
    let mut judged = campaign.loads().into_iter().filter(|load| typical && *campaign.looks(*load) != [1]);
    if let Some(load) = judged.find(|load| load.rate().is_some_and(|load| load >= floor)) {
        return (in_time, format!("by what is decided at {load}{late}"));
    }
    (
        Some(false),
        format!("the plan `{}` decides at no load that reaches it; {}", plan.name(), instead(contract, plan, floor)),
    )
}

/// What would decide the floor where a plan does not.
fn instead(contract: &Contract, plan: Plan, floor: Rate) -> String {
    let typical = contract.evidence.claim == Claim::TypicalRun;
    let other = match (plan, contract.evidence.search) {
        (Plan::Check, Some(_)) => "use `--plan baseline`, which searches",
        (Plan::Check, None) if typical => "use `--plan baseline`, which judges every listed load",
        _ => "write a `search` in `traffic` and use `--plan baseline`",
    };
    if typical { format!("write `at_load: {floor}`, or {other}") } else { other.to_owned() }
}

/// Whether all are true, as far as that is known.
fn all(known: impl Iterator<Item = Option<bool>> + Clone) -> Option<bool> {
    if known.clone().any(|one| one == Some(false)) {
        Some(false)
    } else {
        known.collect::<Option<Vec<bool>>>().map(|_| true)
    }
}
