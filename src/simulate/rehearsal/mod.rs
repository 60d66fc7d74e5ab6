//! Whole runs in virtual time: the schedule, records, summary, plan and judge of a real run around the model of an endpoint.
//!
//! What is rehearsed is everything but sockets, clock and machine: the load generator is never late, requests take no time on
//! the wire, and nobody loses patience. Thousands of runs take seconds, and equal arguments give equal results.

mod flight;

use flight::Flights;

use super::profile::Profile;
use crate::contract::{Contract, Plan, Slo};
use crate::judge::conclude;
use crate::record::{
    BaselineUse, BudgetRecord, Completeness, EndpointKind, EndpointRecord, HealthRecord, Hopeless, Origin,
    RESULT_SCHEMA, Readiness, RunResult, TrialAccumulator, TrialFacts, TrialRecord, quantiles, summarise_trial,
};
use crate::schedule::{PlannedTrial, Schedule, TrialShape};
use crate::search::{Campaign, Measured, Next, Part};
use crate::units::Digest;

/// The instant at which every rehearsed run begins and ends.
const NO_TIME: &str = "1970-01-01T00:00:00Z";

/// What one trial meets.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The endpoint, which is empty when the trial begins. Its seed decides what is left to chance in this trial.
    pub profile: Profile,
    /// The arrivals, where they are others than the planned ones.
    pub schedule: Option<Schedule>,
}

impl Stage {
    /// The planned arrivals at an endpoint.
    pub fn new(profile: Profile) -> Self {
        Self { profile, schedule: None }
    }
}

/// Carries out one trial of an open loop, which a search ends early once it is certain not to hold. `None` for a closed loop,
/// whose clients have no schedule.
///
/// Requests ask for as many tokens as the profile has by default, after a prompt of one word. Of the faults those are played that
/// a reply shows by itself: refusals, replies that end early, missing token counts and stalls.
pub fn rehearse_trial(
    slo: &Slo,
    planned: &PlannedTrial,
    part: Part,
    stage: Stage,
) -> Option<(TrialRecord, TrialAccumulator)> {
    let TrialShape::Open { counts, .. } = planned.shape else { return None };
    let schedule = stage.schedule.or_else(|| planned.schedule())?;
    let hopeless = (part == Part::Search).then(|| Hopeless::new(slo, counts.window));
    let flown = Flights::new(planned.trial, &stage.profile, &schedule, slo.request, hopeless).fly(counts.window);
    let facts = TrialFacts {
        trial: planned.trial,
        seed: planned.seed,
        load: planned.load,
        schedule_digest: schedule.digest().clone(),
        planned: Some(counts),
        window_ns: schedule.window_ns(),
        scheduled_in_window: Some(counts.window),
        complete: !flown.given_up,
        given_up: flown.given_up,
        took_ns: flown.took_ns,
        resources: Vec::new(),
        unstable: Vec::new(),
        health: ideal_health(&schedule, counts.window),
    };
    let record = summarise_trial(slo, &facts, &flown.accumulator);
    Some((record, flown.accumulator))
}

/// A load generator that is never late.
fn ideal_health(schedule: &Schedule, window: u64) -> HealthRecord {
    let never_late = quantiles(vec![0; window as usize], 0);
    HealthRecord {
        dispatch_lag: never_late,
        runtime_lag: never_late,
        planned_span_ns: schedule.window_span_ns(),
        actual_span_ns: schedule.window_span_ns(),
        clock_step_ns: Some(0),
        ..HealthRecord::default()
    }
}

/// Carries out a whole run and judges it; `stage` says what each trial meets. `None` for a closed loop.
pub fn rehearse(contract: &Contract, plan: Plan, stage: impl FnMut(&PlannedTrial) -> Stage) -> Option<RunResult> {
    carry_out(contract, plan, None, stage)
}

/// The same against a baseline: the run makes the trials that the comparison needs.
pub fn rehearse_against(
    contract: &Contract,
    plan: Plan,
    used: BaselineUse,
    stage: impl FnMut(&PlannedTrial) -> Stage,
) -> Option<RunResult> {
    carry_out(contract, plan, Some(used), stage)
}

fn carry_out(
    contract: &Contract,
    plan: Plan,
    used: Option<BaselineUse>,
    mut stage: impl FnMut(&PlannedTrial) -> Stage,
) -> Option<RunResult> {
    let mut result = not_begun(contract, plan, used);
    let campaign = Campaign::of(contract, &result);
    let mut measured = Measured::default();
    while let Next::Trial(planned, part) = campaign.next(&measured.tried()) {
        let (record, requests) = rehearse_trial(&contract.slo, &planned, part, stage(&planned))?;
        measured.add(part, planned.load, record, requests);
    }
    result.steps = measured.steps(&campaign.loads());
    result.searches = measured.searches();
    result.curve = measured.curve();
    result.against = measured.against();
    result.confirm = measured.confirm();
    conclude(contract, &mut result);
    Some(result)
}

/// The result of a run before its first trial.
fn not_begun(contract: &Contract, plan: Plan, baseline: Option<BaselineUse>) -> RunResult {
    RunResult {
        schema: RESULT_SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: contract.name.clone(),
        started_at: NO_TIME.to_owned(),
        finished_at: NO_TIME.to_owned(),
        contract: serde_json::Value::Null,
        contract_digest: Digest::of(&[]),
        plan,
        budget: BudgetRecord::default(),
        plan_digest: Digest::of(&[]),
        workload_digest: Digest::of(&[]),
        fingerprint: None,
        origin: Origin::default(),
        endpoint: simulated(contract),
        audit: None,
        stopped: None,
        steps: Vec::new(),
        searches: Vec::new(),
        curve: Vec::new(),
        baseline,
        against: Vec::new(),
        confirm: Vec::new(),
        calibration: None,
        comparison: None,
        capacity: None,
        probes: Vec::new(),
        completeness: Completeness::default(),
        verdict: None,
    }
}

fn simulated(contract: &Contract) -> EndpointRecord {
    EndpointRecord {
        url: contract.endpoint.url.to_string(),
        protocol: contract.endpoint.protocol.name().to_owned(),
        kind: EndpointKind::Simulated,
        ready: Readiness::Ready,
        ready_after_ns: None,
        exited: None,
        log_tail: Vec::new(),
        notices: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
