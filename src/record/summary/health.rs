//! Whether the load generator kept its plan: a trial that it did not keep is no evidence (method, section 4, "void").

use super::TrialFacts;
use super::accumulator::TrialAccumulator;
use super::quantiles::quantiles;
use crate::contract::{Objective, RequestMetric, Slo};
use crate::observe::Outcome;
use crate::record::{HealthRecord, Quantiles};
use crate::units::{Load, format_nanos};

/// Lateness that is always allowed.
const LAG_FLOOR_NS: u64 = 5_000_000;
/// The wall clock may leave the steady clock by so much over a trial.
const MAX_CLOCK_STEP_NS: u64 = 100_000_000;

/// The largest generator lag p99 at which a trial is evidence: 5 ms, or 1 % of the tightest latency limit if that is more.
pub(super) fn lag_limit(slo: &Slo) -> u64 {
    let objectives = slo.objectives.iter().filter_map(Objective::limit);
    // Of a silence no share can be too late, and a ratio is no time.
    let is_latency = |metric| !matches!(metric, RequestMetric::Underrun | RequestMetric::Rtf);
    let latencies = slo.request.set().chain(objectives).filter(|(metric, _)| is_latency(*metric));
    let tightest = latencies.map(|(_, limit)| limit).min();
    tightest.map_or(0, |limit| limit / 100).max(LAG_FLOOR_NS)
}

/// Completes what the driver measured of itself, and names what makes the trial void.
pub(super) fn health(slo: &Slo, facts: &TrialFacts, accumulator: &TrialAccumulator) -> HealthRecord {
    let open_loop = matches!(facts.load, Load::RateMilli(_));
    let limit = lag_limit(slo);
    let (due, sent) = due_and_sent(facts, accumulator);
    let lags = accumulator.window.iter().filter_map(|row| row.send_lag()).collect();
    let mut health = HealthRecord {
        send_lag: quantiles(lags, 0),
        dispatch_lag_limit_ns: open_loop.then_some(limit),
        due,
        sent,
        faults: Vec::new(),
        ..facts.health.clone()
    };
    let mut faults = Vec::new();
    if open_loop {
        faults.extend(lag_fault("dispatch lag", health.dispatch_lag, limit, sent > 0));
        faults.extend(sent_fault(due, sent));
        faults.extend(span_fault(&health, facts.complete && due > 1));
    } else {
        faults.extend(lag_fault("runtime lag", health.runtime_lag, limit, sent > 0));
    }
    faults.extend(clock_fault(health.clock_step_ns));
    health.faults = faults;
    health
}

/// Requests of the window that were due, and those that were handed to the network. What a stop kept from being sent was
/// not due.
fn due_and_sent(facts: &TrialFacts, accumulator: &TrialAccumulator) -> (u64, u64) {
    let recorded = accumulator.window.len() as u64;
    let count = |outcome| {
        accumulator.window.iter().filter(|row| row.outcome == outcome && row.send_lag().is_none()).count() as u64
    };
    let (stopped, unsent) = (count(Outcome::Cancelled), count(Outcome::Unsent));
    let planned = facts.scheduled_in_window.unwrap_or(recorded).max(recorded);
    let due = if facts.complete { planned } else { recorded - stopped };
    (due, recorded - stopped - unsent)
}

fn lag_fault(name: &str, lag: Option<Quantiles>, limit: u64, needed: bool) -> Option<String> {
    match lag.and_then(|lag| lag.p99_ns) {
        Some(p99) if p99 > limit => Some(format!("{name} p99 {} is above {}", format_nanos(p99), format_nanos(limit))),
        Some(_) => None,
        None => needed.then(|| format!("{name} was not measured")),
    }
}

fn sent_fault(due: u64, sent: u64) -> Option<String> {
    let enough = u128::from(sent) * 1_000 >= u128::from(due) * 999;
    (!enough).then(|| format!("only {sent} of {due} due requests were sent, below 99.9%"))
}

/// An interrupted window has no full span to compare.
fn span_fault(health: &HealthRecord, needed: bool) -> Option<String> {
    if !needed {
        return None;
    }
    let (Some(planned), Some(actual)) = (health.planned_span_ns, health.actual_span_ns) else {
        return Some("the span from first to last send was not measured".to_owned());
    };
    let off = u128::from(actual.abs_diff(planned)) * 1_000 > u128::from(planned) * 5;
    off.then(|| {
        format!(
            "the window was sent in {} instead of {}, off by more than 0.5%",
            format_nanos(actual),
            format_nanos(planned)
        )
    })
}

fn clock_fault(step: Option<i64>) -> Option<String> {
    let step = step?.unsigned_abs();
    (step > MAX_CLOCK_STEP_NS).then(|| format!("the wall clock stepped by {}", format_nanos(step)))
}
