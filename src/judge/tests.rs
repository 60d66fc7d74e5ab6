use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use url::Url;

use super::*;
use crate::contract::{
    CaseSource, CommandProbe, CounterSource, Endpoint, HttpVersion, LatencyMetric, Objective, Policy, RequestLimits,
    Samples, Slo, StabilityProbe, StabilityRow, Traffic, WorkloadSource,
};
use crate::observe::{Outcome, Protocol};
use crate::record::{
    Completeness, DriftRecord, EndpointKind, EndpointRecord, HealthRecord, ObjectiveEvidence, ProbeKind, ProbeRecord,
    Quantiles, Readiness, Reading, Stop, WindowCounts,
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
    Objective::Latency { metric: LatencyMetric::Ttft, quantile: share(990_000), at_most: Duration::from_secs(3) }
}

/// Two loads, two objectives, a counter and a health check.
fn contract() -> Contract {
    let rate = |per_second: u64| Rate::from_milli(per_second * 1_000).unwrap();
    let command = CommandProbe { command: vec!["probe".to_owned()], timeout: Duration::from_secs(10) };
    let counter = StabilityProbe::Counter { source: CounterSource::Command(command.clone()), max_increase: 0.0 };
    let row = |name: &str, probe| StabilityRow { name: name.to_owned(), probe };
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
            launch: None,
        },
        workload: WorkloadSource { cases: CaseSource::Inline(Vec::new()), payload: json!({}), seed: 1 },
        traffic: Traffic::Open {
            process: ArrivalProcess::Constant,
            loads: vec![rate(4), rate(6)],
            counts: TrialCounts { warm_up: 0, window: N, drain: 0 },
        },
        slo: Slo {
            request: RequestLimits { ttft: Some(Duration::from_secs(3)), ..RequestLimits::default() },
            objectives: vec![ttft_p99(), Objective::SuccessRate { at_least: Share::ONE }],
            at: load(4),
        },
        stability: vec![row("restarts", counter), row("health", StabilityProbe::ExitCode { command })],
        samples: Samples { keep: 0 },
        policy: Policy { unknown: UnknownPolicy::Block },
    }
}

fn evidence(id: &str, n: u64, violations: u64, quantile_ns: Option<u64>) -> ObjectiveEvidence {
    ObjectiveEvidence {
        id: id.to_owned(),
        n,
        violations,
        undecided: 0,
        unmeasured: 0,
        quantile_ns,
        lower_ns: quantile_ns.map(|value| value - value / 10),
        upper_ns: quantile_ns.map(|value| value + value / 10),
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
        metrics: BTreeMap::new(),
        trials: vec![trial()],
        not_measured: None,
    }
}

fn reading(value: f64) -> Option<Reading> {
    Some(Reading { value: Some(value), failure: None, took_ns: 1_000 })
}

fn probe_failure(why: &str) -> Option<Reading> {
    Some(Reading { value: None, failure: Some(why.to_owned()), took_ns: 1_000 })
}

/// A run in which everything held.
fn result() -> RunResult {
    let probe = |name: &str, kind, max_increase| ProbeRecord {
        name: name.to_owned(),
        kind,
        max_increase,
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
        endpoint: EndpointRecord {
            url: "http://127.0.0.1:8000".to_owned(),
            protocol: "openai-chat".to_owned(),
            kind: EndpointKind::Launched,
            ready: Readiness::Ready,
            ready_after_ns: None,
            exited: None,
            log_tail: Vec::new(),
        },
        stopped: None,
        steps: vec![step(load(4)), step(load(6))],
        capacity: None,
        probes: vec![probe("restarts", ProbeKind::Counter, Some(0.0)), probe("health", ProbeKind::ExitCode, None)],
        completeness: Completeness::default(),
        verdict: None,
    }
}

fn at_load(result: &mut RunResult) -> &mut TrialRecord {
    &mut result.steps[0].trials[0]
}

/// The verdict in one line per row: id, status, reason, observed, note.
fn rows(verdict: &Verdict) -> String {
    let mut text = verdict.overall.word().to_owned();
    for check in &verdict.checks {
        let shown = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
        let (status, reason) = (check.status.word(), check.reason.code());
        let _ = write!(text, "\n{} {status} {reason} | {} | {}", check.id, shown(&check.observed), shown(&check.note));
    }
    text
}

const TTFT: &str = "ttft_p99 PASS held | 312 ms | -";
const SUCCESS: &str = "success_rate PASS held | 100% | none of 1000: at most 0.3% at 95%";
const RESTARTS: &str = "restarts PASS held | 0 → 0 (+0) | -";
const HEALTH: &str = "health PASS held | exit code 0 → 0 | -";
const GENERATOR: &str = "load_generator PASS held | dispatch lag p99 120 µs, sent 1000 of 1000 | -";
const COMPLETE: &str = "completeness PASS held | measured 4 of 4 | -";

/// The whole expected verdict: the rows of a clean run, with some replaced. A replacement stands for the row of its first
/// word; one that has no such row is `endpoint`, which comes before the load generator.
fn expected(overall: &str, replaced: &[&str]) -> String {
    let name = |row: &str| row.split(' ').next().unwrap_or_default().to_owned();
    let mut rows = vec![TTFT, SUCCESS, RESTARTS, HEALTH, GENERATOR, COMPLETE];
    for row in replaced {
        match rows.iter().position(|known| name(known) == name(row)) {
            Some(index) => rows[index] = row,
            None => rows.insert(4, row),
        }
    }
    rows.insert(0, overall);
    rows.retain(|row| !row.ends_with(" absent"));
    rows.join("\n")
}

type Change = fn(&mut RunResult);

fn check(name: &str, change: Change, overall: &str, replaced: &[&str]) {
    let mut run = result();
    change(&mut run);
    let verdict = judge(&contract(), &run);
    assert_eq!(rows(&verdict), expected(overall, replaced), "{name}");
    assert_eq!(judge(&contract(), &run), verdict, "{name}: the same evidence, the same verdict");
}

#[test]
fn whole_verdicts_of_objectives() {
    check("everything held", |_| {}, "PASS", &[]);
    check("as many violations as 1,000 requests may show", |r| at_load(r).objectives[0].violations = 4, "PASS", &[]);
    check(
        "one more",
        |r| at_load(r).objectives[0].violations = 5,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN too_few_samples | 312 ms | \
           1049 requests with no more than these 5 violations would decide it"],
    );
    check(
        "more than the budget, but not beyond doubt",
        |r| at_load(r).objectives[0].violations = 15,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN interval_straddles_limit | 312 ms | 15 of 1000 requests break the limit, 10 may"],
    );
    check(
        "beyond doubt",
        |r| at_load(r).objectives[0].violations = 16,
        "FAIL",
        &["ttft_p99 FAIL broken | 312 ms | 16 of 1000 requests break the limit, 10 may"],
    );
    check(
        "the quantile falls among failures",
        |r| {
            let trial = at_load(r);
            trial.objectives[0] = evidence("ttft_p99", N, 20, None);
            trial.objectives[1].violations = 20;
            trial.window.outcomes = BTreeMap::from([(Outcome::Ok, N - 20), (Outcome::Timeout, 20)]);
        },
        "FAIL",
        &[
            "ttft_p99 FAIL broken | ∞ (20 of 1000 failed) | \
             20 of 1000 requests break the limit (20 did not end ok), 10 may",
            "success_rate FAIL broken | 98% | 20 of 1000 requests break the limit, none may",
        ],
    );
    check(
        "too few requests",
        |r| at_load(r).objectives[0].n = 298,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN too_few_samples | 312 ms | 299 requests without violation would decide it"],
    );
    check(
        "the limit applies to nothing",
        |r| at_load(r).objectives[0].n = 0,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN not_measured | - | it applies to no request of the window"],
    );
}

#[test]
fn whole_verdicts_of_trials_that_are_no_evidence() {
    check(
        "a saturated generator neither passes nor fails",
        |r| {
            at_load(r).objectives[0].violations = 900;
            at_load(r).health.faults = vec!["late".to_owned(), "slow".to_owned()];
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN generator_saturated | 312 ms | late; slow",
            "success_rate UNKNOWN generator_saturated | 100% | late; slow",
            "load_generator UNKNOWN generator_saturated | dispatch lag p99 120 µs, sent 1000 of 1000 | late; slow",
            "completeness UNKNOWN generator_saturated | measured 3 of 4 | not measured: 4/s",
        ],
    );
    check(
        "a void trial that was repeated",
        |r| {
            let mut void = trial();
            void.health.faults = vec!["late".to_owned()];
            r.steps[0].trials.insert(0, void);
        },
        "PASS",
        &["load_generator PASS held | dispatch lag p99 120 µs, sent 1000 of 1000 | \
           judged on a repeated trial, because before late"],
    );
    check(
        "no token counts",
        |r| {
            at_load(r).objectives[0].unmeasured = 1_000;
            at_load(r).window.output_tokens = None;
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN no_usage | - | 1000 of 1000 requests that ended ok lack the token counts that a limit needs",
        ],
    );
    check(
        "drift forbids PASS",
        |r| at_load(r).drift = Some(DriftRecord { slope_per_s: 0.5, t: 9.0, growth: 0.125, drifting: true }),
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN not_stationary | 312 ms | requests pile up: 12.5% of the arrivals stay in flight",
            "success_rate UNKNOWN not_stationary | 100% | requests pile up: 12.5% of the arrivals stay in flight",
        ],
    );
    check(
        "drift does not save a broken limit",
        |r| {
            at_load(r).objectives[0].violations = 16;
            at_load(r).drift = Some(DriftRecord { slope_per_s: 0.5, t: 9.0, growth: 0.125, drifting: true });
        },
        "FAIL",
        &[
            "ttft_p99 FAIL broken | 312 ms | 16 of 1000 requests break the limit, 10 may",
            "success_rate UNKNOWN not_stationary | 100% | requests pile up: 12.5% of the arrivals stay in flight",
        ],
    );
    check(
        "drift that could not be looked for",
        |r| at_load(r).drift = None,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN too_few_samples | 312 ms | the window is too short to see whether requests pile up"],
    );
    check(
        "another load that was not reached",
        |r| (r.steps[1].trials, r.steps[1].not_measured) = (Vec::new(), Some("skipped".to_owned())),
        "UNKNOWN",
        &["completeness UNKNOWN not_measured | measured 3 of 4 | not measured: 6/s"],
    );
    check("another load that broke", |r| r.steps[1].trials[0].objectives[0].violations = 900, "PASS", &[]);
}

#[test]
fn whole_verdicts_of_runs_that_were_stopped() {
    let interrupt: Change = |r| {
        r.stopped = Some(Stop::Signal { number: 2 });
        r.steps[1].trials.clear();
        let trial = at_load(r);
        trial.complete = false;
        trial.window.decided = 900;
        trial.objectives.iter_mut().for_each(|found| found.undecided = 100);
    };
    check(
        "interrupted and open",
        interrupt,
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN cancelled | 312 ms (100 undecided) | stopped by signal 2; 100 of 1000 requests are undecided",
            "success_rate UNKNOWN cancelled | 90% (100 undecided) | \
             stopped by signal 2; 100 of 1000 requests are undecided",
            "completeness UNKNOWN cancelled | measured 2 of 4 | not measured: 4/s, 6/s (stopped by signal 2)",
        ],
    );
    check(
        "interrupted and already broken",
        |r| {
            r.stopped = Some(Stop::Signal { number: 15 });
            at_load(r).complete = false;
            at_load(r).objectives[0] =
                ObjectiveEvidence { undecided: 500, ..evidence("ttft_p99", N, 16, Some(4_000_000_000)) };
        },
        "FAIL",
        &[
            "ttft_p99 FAIL broken | 4.00 s (500 undecided) | 16 of 1000 requests break the limit, 10 may",
            "completeness UNKNOWN cancelled | measured 3 of 4 | not measured: 4/s (stopped by signal 15)",
        ],
    );
    check(
        "stopped before the first trial",
        |r| {
            r.stopped = Some(Stop::Signal { number: 2 });
            r.endpoint.ready = Readiness::NotAsked;
            r.steps.clear();
            r.probes.clear();
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN cancelled | - | stopped by signal 2",
            "success_rate UNKNOWN cancelled | - | stopped by signal 2",
            "restarts UNKNOWN cancelled | - | stopped by signal 2",
            "health UNKNOWN cancelled | exit code – → – | stopped by signal 2",
            "load_generator absent",
            "completeness UNKNOWN cancelled | measured 0 of 4 | \
             not measured: 4/s, 6/s, restarts, health (stopped by signal 2)",
        ],
    );
    check(
        "the disk is full",
        |r| {
            r.stopped = Some(Stop::Storage { detail: "no space".to_owned() });
            r.steps[0].trials.clear();
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN internal | - | results could not be written: no space",
            "success_rate UNKNOWN internal | - | results could not be written: no space",
            "load_generator UNKNOWN internal | - | results could not be written: no space",
            "completeness UNKNOWN internal | measured 3 of 4 | not measured: 4/s (results could not be written: no space)",
        ],
    );
}

#[test]
fn whole_verdicts_of_endpoints() {
    check(
        "a launched endpoint that never became ready",
        |r| {
            r.endpoint.ready = Readiness::NotReady { detail: "exit code 1".to_owned() };
            r.steps.clear();
            r.probes.clear();
        },
        "FAIL",
        &[
            "ttft_p99 UNKNOWN endpoint_not_ready | - | exit code 1",
            "success_rate UNKNOWN endpoint_not_ready | - | exit code 1",
            "restarts UNKNOWN endpoint_not_ready | - | exit code 1",
            "health UNKNOWN endpoint_not_ready | exit code – → – | exit code 1",
            "load_generator absent",
            "endpoint FAIL endpoint_not_ready | - | exit code 1",
            "completeness UNKNOWN endpoint_not_ready | measured 0 of 4 | \
             not measured: 4/s, 6/s, restarts, health (exit code 1)",
        ],
    );
    check(
        "an external one that cannot be reached",
        |r| {
            r.endpoint.kind = EndpointKind::External;
            r.endpoint.ready = Readiness::Unreachable { detail: "refused".to_owned() };
            r.steps.clear();
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN endpoint_down | - | refused",
            "success_rate UNKNOWN endpoint_down | - | refused",
            "load_generator absent",
            "endpoint UNKNOWN endpoint_down | - | refused",
            "completeness UNKNOWN endpoint_down | measured 2 of 4 | not measured: 4/s, 6/s (refused)",
        ],
    );
    let dies: Change = |r| {
        r.stopped = Some(Stop::EndpointDown { detail: "refused 20 times".to_owned() });
        r.endpoint.exited = Some("signal 9".to_owned());
        r.steps[1].trials.clear();
    };
    let incomplete = "completeness UNKNOWN endpoint_down | measured 3 of 4 | not measured: 6/s (refused 20 times)";
    check(
        "a launched one that died in the run",
        dies,
        "FAIL",
        &["endpoint FAIL endpoint_not_ready | - | exited during the run: signal 9", incomplete],
    );
    check(
        "one that went away",
        |r| {
            r.stopped = Some(Stop::EndpointDown { detail: "refused 20 times".to_owned() });
            r.steps[1].trials.clear();
        },
        "UNKNOWN",
        &["endpoint UNKNOWN endpoint_down | - | refused 20 times", incomplete],
    );
    check(
        "a signal that may have reached the endpoint too",
        |r| {
            r.stopped = Some(Stop::Signal { number: 2 });
            r.endpoint.exited = Some("signal 2".to_owned());
        },
        "UNKNOWN",
        &["endpoint UNKNOWN endpoint_down | - | exited in a stopped run: signal 2"],
    );
}

#[test]
fn whole_verdicts_of_stability_rows() {
    check(
        "the counter rose",
        |r| r.probes[0].after = reading(2.0),
        "FAIL",
        &["restarts FAIL counter_rose | 0 → 2 (+2) | -"],
    );
    check(
        "the counter went down",
        |r| (r.probes[0].before, r.probes[0].after) = (reading(5.0), reading(1.0)),
        "UNKNOWN",
        &["restarts UNKNOWN counter_reset | 5 → 1 (-4) | -"],
    );
    check(
        "a probe that failed",
        |r| r.probes[0].after = probe_failure("timed out after 10s"),
        "UNKNOWN",
        &[
            "restarts UNKNOWN probe_failed | - | failed after the load: timed out after 10s",
            "completeness UNKNOWN probe_failed | measured 3 of 4 | not measured: restarts",
        ],
    );
    check(
        "a probe that was never read",
        |r| r.probes.clear(),
        "UNKNOWN",
        &[
            "restarts UNKNOWN probe_failed | - | was not read before the load",
            "health UNKNOWN not_measured | exit code – → – | was not read before the load",
            "completeness UNKNOWN not_measured | measured 2 of 4 | not measured: restarts, health",
        ],
    );
    check(
        "unhealthy after the load",
        |r| r.probes[1].after = reading(7.0),
        "FAIL",
        &["health FAIL unhealthy | exit code 0 → 7 | -"],
    );
    check(
        "unhealthy before, unreadable after",
        |r| (r.probes[1].before, r.probes[1].after) = (reading(1.0), probe_failure("no such file")),
        "FAIL",
        &[
            "health FAIL unhealthy | exit code 1 → – | -",
            "completeness UNKNOWN probe_failed | measured 3 of 4 | not measured: health",
        ],
    );
    check(
        "a health check that could not run",
        |r| r.probes[1].after = probe_failure("no such file"),
        "UNKNOWN",
        &[
            "health UNKNOWN probe_failed | exit code 0 → – | failed after the load: no such file",
            "completeness UNKNOWN probe_failed | measured 3 of 4 | not measured: health",
        ],
    );
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
    assert_eq!(capacity(&contract.slo, &run.steps), None);
    at_load(&mut run).complete = false;
    assert_eq!(judge(&contract, &run).checks[0].status, Status::Unknown);
}

#[test]
fn the_capacity_is_the_interval_below_the_lowest_load_that_broke() {
    let slo = contract().slo;
    let held: fn(&mut TrialRecord) = |_| {};
    let broke: fn(&mut TrialRecord) = |t| t.objectives[0].violations = 11;
    let drifts: fn(&mut TrialRecord) = |t| {
        t.drift = Some(DriftRecord { slope_per_s: 1.0, t: 9.0, growth: 0.2, drifting: true });
    };
    let void: fn(&mut TrialRecord) = |t| t.health.faults.push("late".to_owned());
    let open: fn(&mut TrialRecord) = |t| (t.complete, t.objectives[0].undecided) = (false, 900);
    for (name, trials, want) in [
        ("all held", vec![held, held, held], "6 - false"),
        ("the last broke", vec![held, held, broke], "4 6 false"),
        ("piling up is breaking", vec![held, drifts, broke], "2 4 false"),
        ("nothing held", vec![broke, broke, broke], "- 2 false"),
        ("a load above one that broke is not believed", vec![held, broke, held], "2 4 true"),
        ("a void step says nothing", vec![held, void, broke], "2 6 false"),
        ("neither does an interrupted one", vec![held, open, open], "2 - false"),
        ("nothing is known", vec![void, open, void], "none"),
    ] {
        let steps: Vec<StepRecord> = [2, 4, 6]
            .into_iter()
            .zip(trials)
            .map(|(at, change)| {
                let mut step = step(load(at));
                change(&mut step.trials[0]);
                step
            })
            .collect();
        let found = capacity(&slo, &steps).map_or_else(
            || "none".to_owned(),
            |found| {
                let show =
                    |load: Option<Load>| load.map_or_else(|| "-".to_owned(), |load| load.to_string().replace("/s", ""));
                format!("{} {} {}", show(found.holds_at), show(found.breaks_at), found.non_monotone)
            },
        );
        assert_eq!(found, want, "{name}");
    }
}

#[test]
fn the_binding_objective_is_named() {
    let mut slo = contract().slo;
    slo.objectives.insert(0, Objective::SuccessRate { at_least: share(900_000) });
    slo.objectives.pop();
    let binding = |ttft: ObjectiveEvidence, success: ObjectiveEvidence| {
        let mut high = step(load(6));
        high.trials[0].objectives = vec![success.clone(), ttft];
        let mut low = step(load(4));
        low.trials[0].objectives = vec![success, evidence("ttft_p99", N, 0, Some(2_700_000_000))];
        let found = capacity(&slo, &[low, high]).unwrap().binding.unwrap();
        format!("{} {} {} {}/{}", found.objective, found.load, found.broke, found.violations, found.n)
    };
    // 20 of 10 allowed exceed more than 90 of 100 allowed.
    let ttft = evidence("ttft_p99", N, 20, Some(4_000_000_000));
    assert_eq!(binding(ttft, evidence("success_rate", N, 90, None)), "ttft_p99 6/s true 20/1000");
    // Nothing broke: 2.7 s of 3 s is closer than 50 failures of 100.
    let fine = evidence("ttft_p99", N, 0, Some(1_000_000));
    assert_eq!(binding(fine, evidence("success_rate", N, 50, None)), "ttft_p99 4/s false 0/1000");
}

#[test]
fn the_plan_says_what_its_sample_sizes_can_decide() {
    let mut contract = contract();
    contract.slo.objectives = vec![
        ttft_p99(),
        Objective::SuccessRate { at_least: share(999_000) },
        Objective::SuccessRate { at_least: Share::ONE },
    ];
    let plan = |contract: &Contract| -> Vec<String> {
        let show = |plan: planning::ObjectivePlan| {
            format!(
                "{} {:?} {} {:?} {:?}: {}",
                plan.id,
                plan.budget_requests,
                plan.smallest_pass,
                plan.can_pass,
                plan.most_violations,
                plan.notes.join("; ")
            )
        };
        planning::decidability(contract).into_iter().map(show).collect()
    };
    assert_eq!(
        plan(&contract),
        [
            "ttft_p99 Some(10.0) 299 Some(true) Some(4): ",
            "success_rate Some(1.0) 2995 Some(false) None: 1000 requests cannot PASS it; 2995 without violation can",
            "success_rate Some(0.0) 1 Some(true) Some(0): \
             one violation is FAIL; none of 1000 is PASS, and shows at most 0.3% at 95%",
        ]
    );
    contract.slo.objectives.truncate(1);
    if let Traffic::Open { counts, .. } = &mut contract.traffic {
        counts.window = 240;
    }
    assert_eq!(
        plan(&contract),
        ["ttft_p99 Some(2.4) 299 Some(false) None: 240 requests cannot PASS it; 299 without violation can"],
        "60 s are just long enough for 3 s and 5%"
    );
    if let Traffic::Open { counts, .. } = &mut contract.traffic {
        counts.window = 200;
    }
    assert!(
        plan(&contract)[0].ends_with(
            "the window of 50 s is too short for a 5% overload to reach the limit (1m); only drift shows it"
        )
    );
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
                Status::Unknown => 1,
                Status::Fail => 2,
            }
        };
        prop_assert!(rank(violations) <= rank(violations + more));
    }
}
