//! Whether a plan can decide the floor of the capacity.

use serde::Serialize;

use super::{Fit, ObjectiveForecast, budget, cost};
use crate::contract::{Contract, Plan};
use crate::search::Campaign;
use crate::units::{Rate, Share};

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
    let (can_pass, note) = outlook(contract, plan, at_least, objectives);
    Some(FloorForecast { at_least, can_pass, note })
}

fn outlook(contract: &Contract, plan: Plan, floor: Rate, objectives: &[ObjectiveForecast]) -> (Option<bool>, String) {
    let campaign = Campaign::new(contract, plan);
    let at = contract.slo.at.rate();
    if let Some(at) = at.filter(|at| *at >= floor) {
        let all = objectives.iter().map(|objective| objective.can_pass);
        let can_pass = all.reduce(|all, one| match (all, one) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (None, _) | (_, None) => None,
            (Some(true), Some(true)) => Some(true),
        });
        return (can_pass.flatten(), format!("by what is decided at {at}, which is not below it"));
    }
    let fit = budget::fit(contract, plan, cost(contract, plan).load_time_ns);
    let in_time = match fit {
        Fit::Whole => Some(true),
        Fit::Fewest => None,
        Fit::FirstLook | Fit::TooSmall => Some(false),
    };
    let late = match fit {
        Fit::Whole => "",
        Fit::Fewest => ", if the budget suffices",
        Fit::FirstLook | Fit::TooSmall => ", but the budget is too small",
    };
    if let Some(search) = contract.evidence.search.filter(|_| campaign.searches()) {
        if search.seeds < SEEDS {
            let confidence = 1_000_000 - (1_000_000 >> search.seeds);
            let confidence = Share::from_ppm(confidence).map_or_else(String::new, |share| share.to_string());
            let note = format!("{} searches show where the capacity begins with a confidence of {confidence}, and 95% are asked for; write `seeds: {SEEDS}`", search.seeds);
            return (Some(false), note);
        }
        return (in_time, format!("by the search{late}"));
    }
    let judged = contract.traffic.loads().into_iter().filter(|load| load.rate().is_some_and(|load| load >= floor));
    let judged: Vec<String> = judged.filter(|load| *campaign.looks(*load) != [1]).map(|load| load.to_string()).collect();
    if let Some(load) = judged.first() {
        return (in_time, format!("by what is decided at {load}{late}"));
    }
    let other = if contract.evidence.search.is_some() { "which searches" } else { "which judges every load" };
    (Some(false), format!("the plan `{}` judges no load that reaches it; write `at_load: {floor}`, or use `--plan baseline`, {other}", plan.name()))
}
