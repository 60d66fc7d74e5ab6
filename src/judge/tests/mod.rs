mod capacity;
mod change;
mod generator;
mod resources;
mod several;
mod stability;
mod stops;
mod verdicts;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use url::Url;

use super::*;
use crate::contract::{
    Across, Budget, CaseSource, CommandSource, Endpoint, EvidencePlan, HttpVersion, MetricUnit, Objective, Policy,
    Probe, RequestLimits, RequestMetric, Samples, Slo, Source, StabilityProbe, StabilityRow, Traffic, WorkloadSource,
};
use crate::observe::{Outcome, Protocol};
use crate::record::{
    AloneCounts, BudgetRecord, Completeness, DriftRecord, EndpointKind, EndpointRecord, HealthRecord,
    ObjectiveEvidence, Origin, ProbeKind, ProbeRecord, Quantiles, Readiness, Reading, Stop, WindowCounts,
};
use crate::schedule::{ArrivalProcess, TrialCounts};
use crate::units::{Digest, Load, Rate, Share};

const N: u64 = 1_000;

fn share(ppm: u32) -> Share {
    Share::from_ppm(ppm).unwrap()
}

fn load(per_second: u64) -> Load {
    Load::RateMilli(Rate::from_milli(per_second * 1_000).unwrap())
}

fn ttft_p99() -> Objective {
    Objective::Percentile { metric: RequestMetric::Ttft, quantile: share(990_000), at_most: 3_000_000_000 }
}

/// Two loads, two objectives, a counter and a health check.
fn contract() -> Contract {
    let rate = |per_second: u64| Rate::from_milli(per_second * 1_000).unwrap();
    let command = CommandSource { command: vec!["probe".to_owned()] };
    let timeout = Duration::from_secs(10);
    let probe = Probe { source: Source::Command(command.clone()), timeout };
    let counter = StabilityProbe::Counter { probe, across: Across::Sum, max_increase: 0.0 };
    let row = |name: &str, probe| StabilityRow { name: name.to_owned(), probe, automatic: false };
    Contract {
        name: "test".to_owned(),
        endpoint: Endpoint {
            url: Url::parse("http://127.0.0.1:8000/v1/chat/completions").unwrap(),
            protocol: Protocol::OpenaiChat,
            model: "m".to_owned(),
            headers: Vec::new(),
            timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(30),
            http: HttpVersion::Auto,
            ca_file: None,
            proxy: None,
            input_audio: None,
            output_audio: None,
            launch: None,
        },
        workload: WorkloadSource { cases: CaseSource::Inline(Vec::new()), payload: Some(json!({})), seed: 1 },
        traffic: Traffic::Open {
            process: ArrivalProcess::Constant,
            loads: vec![rate(4), rate(6)],
            counts: TrialCounts { warm_up: 0, window: N, drain: 0 },
        },
        slo: Slo {
            request: RequestLimits::from_iter([(RequestMetric::Ttft, 3_000_000_000)]),
            objectives: vec![ttft_p99(), Objective::SuccessRate { at_least: Share::ONE }],
            resources: Vec::new(),
            at: load(4),
            capacity: None,
        },
        evidence: one_schedule(),
        stability: vec![row("restarts", counter), row("health", StabilityProbe::ExitCode { command, timeout })],
        resources: Vec::new(),
        baseline: None,
        samples: Samples { keep: 0 },
        policy: Policy { unknown: UnknownPolicy::Block, missing_baseline: UnknownPolicy::Warn },
    }
}

/// One trial of each load, judged by itself.
fn one_schedule() -> EvidencePlan {
    let long = Duration::from_secs(3_600_000);
    let budget = Budget { check: long, baseline: long, release: long };
    EvidencePlan { claim: Claim::ThisRun, looks: vec![1], search: None, budget }
}

fn evidence(id: &str, n: u64, violations: u64, quantile: Option<u64>) -> ObjectiveEvidence {
    ObjectiveEvidence {
        id: id.to_owned(),
        n,
        violations,
        undecided: 0,
        unmeasured: 0,
        unit: quantile.map(|_| MetricUnit::Nanoseconds),
        quantile,
        lower: quantile.map(|value| value - value / 10),
        upper: quantile.map(|value| value + value / 10),
        headroom: None,
        inflation: Some(1.0),
        alone: AloneCounts::default(),
    }
}

fn lag() -> Option<Quantiles> {
    let at = Some(120_000);
    Some(Quantiles { count: N, p50_ns: at, p90_ns: at, p95_ns: at, p99_ns: at, max_ns: at })
}

fn trial() -> TrialRecord {
    TrialRecord {
        trial: 0,
        seed: 1,
        schedule_digest: Digest::of(b"schedule"),
        planned: Some(TrialCounts { warm_up: 0, window: N, drain: 0 }),
        window_ns: 250_000_000_000,
        complete: true,
        given_up: false,
        took_ns: 300_000_000_000,
        headroom: None,
        held: Some(true),
        window: WindowCounts {
            scheduled: N,
            decided: N,
            good: Some(N),
            outcomes: BTreeMap::from([(Outcome::Ok, N)]),
            input_tokens: Some(7 * N),
            output_tokens: Some(9 * N),
            ..WindowCounts::default()
        },
        objectives: vec![evidence("ttft_p99", N, 0, Some(312_000_000)), evidence("success_rate", N, 0, None)],
        drift: Some(DriftRecord { slope_per_s: 0.0, t: 0.0, growth: 0.0, drifting: false }),
        resources: Vec::new(),
        metrics: std::collections::BTreeMap::new(),
        ratios: std::collections::BTreeMap::new(),
        unstable: Vec::new(),
        health: HealthRecord {
            dispatch_lag: lag(),
            dispatch_lag_limit_ns: Some(30_000_000),
            runtime_lag: lag(),
            due: N,
            sent: N,
            ..HealthRecord::default()
        },
    }
}

fn step(at: Load) -> StepRecord {
    StepRecord {
        load: at,
        offered: Some(4.0),
        achieved: Some(4.0),
        completed: Some(4.0),
        goodput: Some(4.0),
        attainment: Some(Share::ONE),
        success_rate: Some(Share::ONE),
        input_tokens_per_second: None,
        output_tokens_per_second: None,
        reasoning_share: None,
        metrics: BTreeMap::new(),
        ratios: BTreeMap::new(),
        resources: Vec::new(),
        trials: vec![trial()],
        not_measured: None,
    }
}

fn reading(value: f64) -> Option<Reading> {
    Some(Reading { value: Some(value), series: Vec::new(), failure: None, took_ns: 1_000 })
}

fn probe_failure(why: &str) -> Option<Reading> {
    Some(Reading { value: None, series: Vec::new(), failure: Some(why.to_owned()), took_ns: 1_000 })
}

/// A run in which everything held.
fn result() -> RunResult {
    let probe = |name: &str, kind, max_increase| ProbeRecord {
        anew: Vec::new(),
        name: name.to_owned(),
        kind,
        source: "command".to_owned(),
        automatic: false,
        max_increase,
        between: Vec::new(),
        before: reading(0.0),
        after: reading(0.0),
    };
    RunResult {
        schema: crate::record::RESULT_SCHEMA.to_owned(),
        tool_version: "0".to_owned(),
        name: "test".to_owned(),
        started_at: String::new(),
        finished_at: String::new(),
        contract: json!({}),
        contract_digest: Digest::of(b"contract"),
        plan_digest: Digest::of(b"plan"),
        workload_digest: Digest::of(b"workload"),
        fingerprint: None,
        origin: Origin::default(),
        endpoint: EndpointRecord {
            url: "http://127.0.0.1:8000".to_owned(),
            protocol: "openai-chat".to_owned(),
            kind: EndpointKind::Launched,
            ready: Readiness::Ready,
            ready_after_ns: None,
            exited: None,
            log_tail: Vec::new(),
            notices: Vec::new(),
        },
        audit: None,
        stopped: None,
        plan: Plan::Check,
        budget: BudgetRecord::default(),
        searches: Vec::new(),
        steps: vec![step(load(4)), step(load(6))],
        curve: Vec::new(),
        baseline: None,
        against: Vec::new(),
        confirm: Vec::new(),
        calibration: None,
        comparison: None,
        capacity: None,
        probes: vec![probe("restarts", ProbeKind::Counter, Some(0.0)), probe("health", ProbeKind::ExitCode, None)],
        completeness: Completeness::default(),
        verdict: None,
    }
}

fn at_load(result: &mut RunResult) -> &mut TrialRecord {
    &mut result.steps[0].trials[0]
}

#[test]
fn a_row_carries_its_claim_limit_and_interval() {
    let verdict = judge(&contract(), &result());
    let ttft = &verdict.checks[0];
    assert_eq!(ttft.limit.as_deref(), Some("≤ 3s"));
    assert_eq!(ttft.interval, Some(["281 ms".to_owned(), "343 ms".to_owned()]));
    assert_eq!((ttft.claim, ttft.method.as_deref()), (Some(Claim::ThisRun), Some("exact binomial")));
    assert_eq!((ttft.samples, ttft.trials, ttft.confidence), (Some(N), Some(1), Some(share(950_000))));
    let success = &verdict.checks[1];
    // 1 − 0.05^(1/1000) is the upper bound on failures when none was seen.
    assert_eq!(success.interval, Some(["99.7008%".to_owned(), "100%".to_owned()]));
    assert_eq!((success.limit.as_deref(), success.method.as_deref()), (Some("≥ 100%"), Some("zero tolerance")));
    assert!(verdict.unknown_blocks);
}

#[test]
fn several_objectives_share_the_chance_of_a_wrong_fail() {
    let mut contract = contract();
    contract.slo.objectives.push(Objective::Attainment { at_least: share(990_000) });
    let mut run = result();
    let trial = at_load(&mut run);
    // 16 of 1,000 is p = 0.048: enough for one objective, not for one of two.
    trial.objectives[0].violations = 16;
    trial.objectives.push(evidence("attainment", N, 16, None));
    let verdict = judge(&contract, &run);
    let reasons: Vec<_> = verdict.checks.iter().take(3).map(|check| check.reason.code()).collect();
    assert_eq!(reasons, ["interval_straddles_limit", "held", "interval_straddles_limit"]);
    at_load(&mut run).objectives[0].violations = 18;
    assert_eq!(judge(&contract, &run).checks[0].reason, Reason::Broken);
}

#[test]
fn a_closed_loop_needs_no_schedule_but_a_whole_window() {
    let mut contract = contract();
    contract.slo.at = Load::Clients(8);
    contract.traffic = Traffic::Closed {
        clients: vec![8],
        warm_up: Duration::ZERO,
        window: Duration::from_secs(250),
        drain: Duration::ZERO,
    };
    let mut run = result();
    run.steps = vec![step(Load::Clients(8))];
    at_load(&mut run).drift = None;
    assert_eq!(judge(&contract, &run).overall, Status::Pass);
    // Its capacity is a number of clients.
    let found = capacity(&contract, &run).unwrap();
    assert_eq!((found.holds_at, found.breaks_at), (Some(Load::Clients(8)), None));
    at_load(&mut run).complete = false;
    assert_eq!(judge(&contract, &run).checks[0].status, Status::Unknown);
}

proptest! {
    /// Whatever else was seen, a missing piece of evidence never ends in PASS of its row, nor of the whole.
    #[test]
    fn missing_evidence_never_passes(
        what in 0usize..10,
        violations in 0u64..40,
        undecided in 1u64..200,
        drifting in any::<bool>(),
    ) {
        let mut run = result();
        at_load(&mut run).objectives[0].violations = violations;
        if drifting {
            at_load(&mut run).drift = Some(DriftRecord { slope_per_s: 1.0, t: 3.0, growth: 0.1, drifting });
        }
        match what {
            0 => run.steps[0].trials.clear(),
            1 => run.steps.clear(),
            2 => at_load(&mut run).objectives.clear(),
            3 => at_load(&mut run).objectives[0].unmeasured = undecided,
            4 => at_load(&mut run).drift = None,
            5 => at_load(&mut run).health.faults.push("late".to_owned()),
            6 => at_load(&mut run).objectives[0].n = undecided,
            7 => run.probes[0].after = None,
            8 => run.probes[1].before = probe_failure("x"),
            _ => {
                at_load(&mut run).complete = false;
                at_load(&mut run).objectives[0].undecided = undecided.max(5);
            }
        }
        let verdict = judge(&contract(), &run);
        prop_assert_ne!(verdict.overall, Status::Pass);
        let row = match what { 7 => 2, 8 => 3, _ => 0 };
        prop_assert_ne!(verdict.checks[row].status, Status::Pass);
        if matches!(what, 0..=3 | 5) {
            prop_assert_eq!(verdict.checks[0].status, Status::Unknown);
        }
    }

    /// More violations never improve a row, and whoever passes or fails could not do the other.
    #[test]
    fn the_order_of_statuses_follows_the_violations(n in 1u64..3_000, violations in 0u64..100, more in 0u64..50) {
        let rank = |x: u64| {
            let mut run = result();
            at_load(&mut run).objectives[0] = evidence("ttft_p99", n, x.min(n), Some(1));
            match judge(&contract(), &run).checks[0].status {
                Status::Pass => 0,
                Status::Unknown | Status::Accepted => 1,
                Status::Fail => 2,
            }
        };
        prop_assert!(rank(violations) <= rank(violations + more));
    }
}
