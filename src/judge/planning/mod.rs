//! What a plan costs and what it can decide, said before any load (method, section 12).
//!
//! Times are those under load, drains included. A trial ends earlier when its last requests are decided before the drain is
//! over, and later when they are still open behind it.

mod budget;
mod change;
mod comparison;
mod floor;
mod objectives;
mod search;
#[cfg(test)]
mod tests;

use std::iter::Sum;
use std::ops::Add;
use std::time::Duration;

use serde::Serialize;

pub use budget::{BudgetForecast, Fit};
pub use change::{Change, PlanBudget};
pub use comparison::ComparisonForecast;
pub use floor::FloorForecast;
pub use objectives::ObjectiveForecast;
pub use search::{SearchForecast, SearchedAt};

use super::Claim;
use crate::contract::{Contract, Plan, Traffic};
use crate::schedule::TrialCounts;
use crate::search::Campaign;
use crate::units::Load;

/// The fewest and the most of something that is not known before: trials, requests or nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Span {
    /// The fewest.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Span {
    /// The same, so many times.
    fn times(self, factor: u64) -> Self {
        Self { least: self.least.saturating_mul(factor), most: self.most.saturating_mul(factor) }
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// What a plan costs and what it can decide.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// The plan.
    pub plan: Plan,
    /// What is claimed at the load that must hold.
    pub claim: Claim,
    /// The steps, ascending by load.
    pub steps: Vec<StepForecast>,
    /// The search, where the plan makes one.
    pub search: Option<SearchForecast>,
    /// What comparing with a baseline costs, where the contract asks for it.
    pub comparison: Option<ComparisonForecast>,
    /// All of it.
    pub total: Cost,
    /// What the plan may take.
    pub budget: BudgetForecast,
    /// What must hold, in the contract's order.
    pub objectives: Vec<ObjectiveForecast>,
    /// The floor of the capacity, where one is asked for.
    pub capacity: Option<FloorForecast>,
    /// What the other plans cost.
    pub others: Vec<PlanCost>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepForecast {
    /// What is asked of the endpoint.
    pub load: Load,
    /// Whether this is the load that must hold.
    pub must_hold: bool,
    /// Requests of each segment of a trial; `null` in a closed loop, where the endpoint's speed decides.
    pub requests: Option<TrialCounts>,
    /// Trials, by how soon they decide.
    pub trials: Span,
    /// Time under load of all of them, in nanoseconds.
    pub load_time_ns: Span,
}

/// What a plan costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Trials.
    pub trials: Span,
    /// Requests of all of them, warm-ups and drains included; `null` in a closed loop.
    pub requests: Option<Span>,
    /// Time under load, in nanoseconds.
    pub load_time_ns: Span,
}

/// What another plan costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanCost {
    /// The plan.
    pub plan: Plan,
    /// What it costs.
    pub cost: Cost,
    /// How that compares with what it may take.
    pub fit: Fit,
}

/// What the plan costs and what it can decide.
pub fn forecast(contract: &Contract, plan: Plan) -> Forecast {
    let campaign = Campaign::new(contract, plan);
    let objectives = objectives::forecast(contract, plan);
    let total = cost(contract, plan);
    let steps = steps(contract, &campaign);
    Forecast {
        plan,
        claim: contract.evidence.claim,
        comparison: comparison::forecast(contract, &campaign, &steps),
        steps,
        search: search::forecast(contract, &campaign),
        total,
        budget: budget::forecast(contract, plan, total.load_time_ns),
        capacity: floor::forecast(contract, plan, &objectives),
        objectives,
        others: Plan::ALL
            .into_iter()
            .filter(|other| *other != plan)
            .map(|other| {
                let cost = cost(contract, other);
                PlanCost { plan: other, cost, fit: budget::fit(contract, other, cost.load_time_ns) }
            })
            .collect(),
    }
}

fn steps(contract: &Contract, campaign: &Campaign<'_>) -> Vec<StepForecast> {
    let requests = match &contract.traffic {
        Traffic::Open { counts, .. } => Some(*counts),
        Traffic::Closed { .. } => None,
    };
    let step = |load: Load| {
        let looks = campaign.looks(load);
        let trials =
            Span { least: looks.first().copied().unwrap_or(0).into(), most: looks.last().copied().unwrap_or(0).into() };
        let load_time_ns = trials.times(nanos(contract.traffic.trial_time(load)));
        StepForecast { load, must_hold: load == contract.slo.at, requests, trials, load_time_ns }
    };
    campaign.loads().into_iter().map(step).collect()
}

fn cost(contract: &Contract, plan: Plan) -> Cost {
    let campaign = Campaign::new(contract, plan);
    let steps = steps(contract, &campaign);
    let search = search::forecast(contract, &campaign);
    let comparison = comparison::forecast(contract, &campaign, &steps);
    let trials = steps.iter().map(|step| step.trials).chain(search.iter().map(|search| search.trials));
    let trials: Span = trials.chain(comparison.iter().map(ComparisonForecast::trials)).sum();
    let times = steps.iter().map(|step| step.load_time_ns).chain(search.iter().map(|search| search.load_time_ns));
    let times = times.chain(comparison.iter().map(|comparison| comparison.load_time_ns));
    let per_trial = steps.first().and_then(|step| step.requests).map(TrialCounts::total);
    Cost { trials, requests: per_trial.map(|requests| trials.times(requests)), load_time_ns: times.sum() }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Time under load until a look at the load that must hold is reached, at the latest: the first has its time reserved, a later
/// one comes with its whole round.
fn time_until_look(contract: &Contract, plan: Plan, look: usize) -> Duration {
    let campaign = Campaign::new(contract, plan);
    let time = |load: Load| {
        let looks = campaign.looks(load);
        let trials = looks.get(look).or(looks.last()).copied().unwrap_or(0);
        contract.traffic.trial_time(load).saturating_mul(trials)
    };
    if look == 0 { time(contract.slo.at) } else { campaign.loads().into_iter().map(time).sum() }
}
