//! What a plan may take, against what it would.

use serde::Serialize;

use super::{Change, PlanBudget, Span, nanos, time_until_look};
use crate::contract::{Contract, LONGEST, Plan};
use crate::judge::Claim;
use crate::units::rounded_up;

/// What a plan may take, against what it would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetForecast {
    /// What it may take under load, in nanoseconds.
    pub budget_ns: u64,
    /// What the first look at the load that must hold takes, in nanoseconds.
    pub first_look_ns: u64,
    /// How much of the plan fits.
    pub fit: Fit,
    /// Changes, any of which lets the first look fit where it does not; else the one that lets the whole plan fit.
    pub changes: Vec<Change>,
}

/// How much of a plan fits into its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// All of it, whatever is found.
    Whole,
    /// Its fewest trials; if it takes more to decide, the rest is UNKNOWN.
    Fewest,
    /// The first look at the load that must hold, and not all of the rest.
    FirstLook,
    /// Not even that, so the plan cannot decide anything about a typical run.
    TooSmall,
}

/// How much of a plan fits that takes `load_time_ns`.
pub(super) fn fit(contract: &Contract, plan: Plan, load_time_ns: Span) -> Fit {
    let budget = contract.evidence.budget.of(plan);
    match nanos(budget) {
        budget_ns if load_time_ns.most <= budget_ns => Fit::Whole,
        budget_ns if load_time_ns.least <= budget_ns => Fit::Fewest,
        _ if time_until_look(contract, plan, 0) <= budget => Fit::FirstLook,
        _ => Fit::TooSmall,
    }
}

pub(super) fn forecast(contract: &Contract, plan: Plan, load_time_ns: Span) -> BudgetForecast {
    let fit = fit(contract, plan, load_time_ns);
    let changes = match fit {
        Fit::Whole => Vec::new(),
        Fit::Fewest | Fit::FirstLook => whole(plan, load_time_ns).into_iter().collect(),
        Fit::TooSmall => [fewer_repeats(contract, plan), Change::default().afforded(contract, plan, 0)]
            .into_iter()
            .flatten()
            .collect(),
    };
    BudgetForecast {
        budget_ns: nanos(contract.evidence.budget.of(plan)),
        first_look_ns: nanos(time_until_look(contract, plan, 0)),
        fit,
        changes,
    }
}

/// The budget for the plan at its dearest; `None` where that is longer than a contract may ask for.
fn whole(plan: Plan, load_time_ns: Span) -> Option<Change> {
    let budget_ns = nanos(rounded_up(std::time::Duration::from_nanos(load_time_ns.most)));
    let change = Change { budgets: vec![PlanBudget { plan, budget_ns }], ..Change::default() };
    (budget_ns <= nanos(LONGEST)).then_some(change)
}

/// One look after as many trials as the budget has room for, where that is fewer than the first look has now.
pub(super) fn fewer_repeats(contract: &Contract, plan: Plan) -> Option<Change> {
    let least = if contract.evidence.claim == Claim::TypicalRun { 3 } else { 1 };
    let trial = contract.traffic.trial_time(contract.slo.at).as_nanos().max(1);
    let room = u32::try_from(contract.evidence.budget.of(plan).as_nanos() / trial).ok()?;
    let first = contract.evidence.looks.first().copied()?;
    (room >= least && room < first).then(|| Change::repeats(vec![room]))
}
