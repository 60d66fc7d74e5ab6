//! What the planned sample sizes can decide, said before any load (method, section 12).

use std::time::Duration;

use super::objective::ALPHA;
use crate::contract::{Contract, Objective, Traffic};
use crate::stats::{MIN_DRIFT_ARRIVALS, n_pass, pass_max};
use crate::units::{Share, format_duration};

/// An overload of this share should show within a trial.
const PRECISION: f64 = 0.05;
/// With fewer violations allowed than this, a short trial misses the rare cluster and flatters the capacity.
const COMFORTABLE_BUDGET: f64 = 3.0;

/// What the plan can decide about one objective, on one schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectivePlan {
    /// The objective's name.
    pub id: String,
    /// Requests planned in the window; `None` in a closed loop, where the server's speed decides it.
    pub requests: Option<u64>,
    /// Violations that the budget allows among them, `b·N`.
    pub budget_requests: Option<f64>,
    /// The fewest requests that can PASS it, without any violation.
    pub smallest_pass: u64,
    /// Whether the plan reaches that; `None` in a closed loop.
    pub can_pass: Option<bool>,
    /// The most violations among the planned requests that still PASS.
    pub most_violations: Option<u64>,
    /// What the person who plans should know.
    pub notes: Vec<String>,
}

/// What the plan can decide about each objective, in the contract's order.
pub fn decidability(contract: &Contract) -> Vec<ObjectivePlan> {
    contract.slo.objectives.iter().map(|objective| plan(contract, objective)).collect()
}

fn plan(contract: &Contract, objective: &Objective) -> ObjectivePlan {
    let requests = match &contract.traffic {
        Traffic::Open { counts, .. } => Some(counts.window),
        Traffic::Closed { .. } => None,
    };
    let budget = objective.budget();
    let share = budget.fraction();
    // Without a budget none of any number of requests is a PASS.
    let smallest_pass = n_pass(0, share, ALPHA).unwrap_or(1).max(smallest_window(contract, objective));
    let most_violations = match (requests, budget.ppm()) {
        (Some(n), 0) => (n > 0).then_some(0),
        (Some(n), _) => pass_max(n, share, ALPHA),
        (None, _) => None,
    };
    let can_pass = requests.map(|n| n >= smallest_pass);
    let mut notes = Vec::new();
    notes.extend(sample_note(requests, budget, smallest_pass));
    notes.extend(window_note(contract, objective, requests));
    ObjectivePlan {
        id: objective.id(),
        requests,
        budget_requests: requests.map(|n| n as f64 * share),
        smallest_pass,
        can_pass,
        most_violations,
        notes,
    }
}

/// The fewest requests that show whether they pile up, without which nothing but the success rate is a PASS.
fn smallest_window(contract: &Contract, objective: &Objective) -> u64 {
    let open = matches!(contract.traffic, Traffic::Open { .. });
    if open && !matches!(objective, Objective::SuccessRate { .. }) { MIN_DRIFT_ARRIVALS as u64 } else { 0 }
}

/// What the number of requests is worth.
fn sample_note(requests: Option<u64>, budget: Share, smallest_pass: u64) -> Option<String> {
    let Some(n) = requests else {
        return Some(format!(
            "in a closed loop the server's speed sets the number of requests; {smallest_pass} are needed"
        ));
    };
    let allowed = n as f64 * budget.fraction();
    if budget.ppm() == 0 {
        let bound = Share::of(3.min(n), n)?;
        Some(format!("one violation is FAIL; none of {n} is PASS, and shows at most {bound} at 95%"))
    } else if n < smallest_pass {
        Some(format!("{n} requests cannot PASS it; {smallest_pass} without violation can"))
    } else if allowed < COMFORTABLE_BUDGET {
        Some(format!("the budget allows {allowed:.1} violations in {n} requests; short trials flatter capacity"))
    } else {
        None
    }
}

/// Above saturation a queue grows so slowly that a short window ends before a wait reaches its limit: the window must last
/// `limit / 5 %`, or drift is the only witness.
fn window_note(contract: &Contract, objective: &Objective, requests: Option<u64>) -> Option<String> {
    let (_, limit_ns) = objective.limit().filter(|(metric, _)| metric.is_wait())?;
    let window = requests? as f64 / contract.slo.at.rate()?.per_second();
    let needed = Duration::from_nanos(limit_ns).as_secs_f64() / PRECISION;
    (window < needed).then(|| {
        let needed = format_duration(Duration::from_secs(needed.ceil() as u64));
        format!("the window of {window:.0} s is too short for a 5% overload to reach the limit ({needed}); only drift shows it")
    })
}
