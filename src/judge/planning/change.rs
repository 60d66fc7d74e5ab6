//! What to write instead, so that a plan decides what it cannot decide now.

use std::time::Duration;

use serde::Serialize;

use super::{nanos, time_until_look};
use crate::contract::{Contract, LONGEST, MOST_REQUESTS, Plan, Traffic};
use crate::schedule::TrialCounts;
use crate::units::{Load, format_duration, rounded_up};

/// The most trials that a contract may ask for.
const MOST_REPEATS: u32 = 100;

/// A change of the contract. What is empty stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Change {
    /// Measured requests of a trial.
    pub requests: Option<u64>,
    /// The same as a window at the load that must hold, in nanoseconds.
    pub window_ns: Option<u64>,
    /// Numbers of trials at which the evidence is looked at.
    pub repeats: Option<Vec<u32>>,
    /// Budgets that have to grow.
    pub budgets: Vec<PlanBudget>,
}

/// What a plan may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlanBudget {
    /// The plan.
    pub plan: Plan,
    /// Its budget, in nanoseconds.
    pub budget_ns: u64,
}

impl Change {
    /// More requests in every trial; `None` in a closed loop, which promises none.
    pub(super) fn requests(contract: &Contract, requests: u64) -> Option<Self> {
        let at = contract.slo.at.rate()?;
        let seconds = (u128::from(requests) * 1_000).div_ceil(u128::from(at.milli()));
        let window_ns = u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?;
        Some(Self { requests: Some(requests), window_ns: Some(window_ns), ..Self::default() })
    }

    /// Other numbers of trials.
    pub(super) fn repeats(repeats: Vec<u32>) -> Self {
        Self { repeats: Some(repeats), ..Self::default() }
    }

    /// The contract with this change.
    pub(super) fn apply(&self, contract: &Contract) -> Contract {
        let mut changed = contract.clone();
        if let (Some(requests), Traffic::Open { counts, .. }) = (self.requests, &mut changed.traffic) {
            // A window in whole seconds may hold a little more, and the warm-up may be a fifth of it.
            let rate = contract.slo.at.rate();
            let by_time = rate.zip(self.window_ns).map_or(0, |(rate, window)| {
                TrialCounts::at(rate, Duration::ZERO, Duration::from_nanos(window), Duration::ZERO).window
            });
            counts.window = requests.max(by_time);
            counts.warm_up = counts.warm_up.max(counts.window.div_ceil(5) + 1);
        }
        if let Some(repeats) = &self.repeats {
            changed.evidence.looks.clone_from(repeats);
        }
        for PlanBudget { plan, budget_ns } in &self.budgets {
            let budget = &mut changed.evidence.budget;
            *match plan {
                Plan::Check => &mut budget.check,
                Plan::Baseline => &mut budget.baseline,
                Plan::Release => &mut budget.release,
            } = Duration::from_nanos(*budget_ns);
        }
        changed
    }

    /// The change with the budgets that it needs besides, for `plan` to reach its look number `look`; `None` where no contract may
    /// ask for so much.
    pub(super) fn afforded(mut self, contract: &Contract, plan: Plan, look: usize) -> Option<Self> {
        let changed = self.apply(contract);
        let longest_trial = changed.traffic.loads().into_iter().map(|load| changed.traffic.trial_time(load)).max()?;
        let too_many = matches!(&changed.traffic, Traffic::Open { counts, .. } if counts.total() > MOST_REQUESTS);
        let too_often = changed.evidence.looks.iter().any(|look| *look > MOST_REPEATS);
        if too_many || too_often || longest_trial > LONGEST {
            return None;
        }
        for of in Plan::ALL {
            let mut needed = changed.traffic.trial_time(changed.slo.at);
            if of == plan {
                needed = needed.max(time_until_look(&changed, plan, look));
            }
            if let Some(search) = changed.evidence.search.filter(|_| of == Plan::Release) {
                needed = needed.max(changed.traffic.trial_time(Load::RateMilli(search.from)));
            }
            if needed > LONGEST {
                return None;
            }
            if needed > changed.evidence.budget.of(of) {
                self.budgets.push(PlanBudget { plan: of, budget_ns: nanos(rounded_up(needed)) });
            }
        }
        Some(self)
    }

    /// What to write: `` `requests: 300` (or `window: 75s`) and `budget: { check: 40m }` ``.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(requests) = self.requests {
            let window = self
                .window_ns
                .map(|window| format!(" (or `window: {}`)", format_duration(Duration::from_nanos(window))));
            parts.push(format!("`requests: {requests}`{}", window.unwrap_or_default()));
        }
        if let Some(repeats) = &self.repeats {
            let numbers: Vec<String> = repeats.iter().map(u32::to_string).collect();
            parts.push(format!("`repeats: [{}]`", numbers.join(", ")));
        }
        if !self.budgets.is_empty() {
            let budget = |of: &PlanBudget| {
                format!("{}: {}", of.plan.name(), format_duration(Duration::from_nanos(of.budget_ns)))
            };
            let budgets: Vec<String> = self.budgets.iter().map(budget).collect();
            parts.push(format!("`budget: {{ {} }}`", budgets.join(", ")));
        }
        parts.join(" and ")
    }
}
