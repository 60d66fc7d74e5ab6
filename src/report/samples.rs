//! Results written by hand, for tests of the renderers.

use std::collections::BTreeMap;

use serde_json::json;

use crate::contract::{MetricUnit, Plan};
use crate::judge::{Check, Claim, Reason, Status, Verdict};
use crate::observe::{Outcome, Warning};
use crate::record::*;
use crate::schedule::TrialCounts;
use crate::units::{Digest, Load, Rate, Share};

/// Milliseconds in nanoseconds.
pub(super) const MS: u64 = 1_000_000;

/// An offered load of whole requests per second.
pub(super) fn rate(per_second: u64) -> Load {
    Rate::from_milli(per_second * 1_000).map_or(Load::Clients(0), Load::RateMilli)
}

/// Quantiles in milliseconds: p50, p90, p95, p99 and the maximum; 0 stands for a quantile among failures.
fn quantiles(values: [u64; 5]) -> Quantiles {
    let [p50_ns, p90_ns, p95_ns, p99_ns, max_ns] = values.map(|ms| (ms > 0).then_some(ms * MS));
    Quantiles { count: 300, p50_ns, p90_ns, p95_ns, p99_ns, max_ns }
}

fn share(ppm: u32) -> Option<Share> {
    Share::from_ppm(ppm)
}

/// A measured step of 300 requests, of which `good` are good and the rest slow.
pub(super) fn step(per_second: u64, trial: u32, good: u64, ttft: [u64; 5], e2e: [u64; 5]) -> StepRecord {
    let offered = per_second as f64;
    StepRecord {
        load: rate(per_second),
        offered: Some(offered),
        achieved: Some(offered),
        completed: Some(offered),
        goodput: Some(offered * good as f64 / 300.0),
        attainment: Share::of(good, 300),
        success_rate: Some(Share::ONE),
        input_tokens_per_second: Some(offered * 32.0),
        output_tokens_per_second: Some(offered * 64.0),
        reasoning_share: None,
        ratios: BTreeMap::new(),
        resources: Vec::new(),
        metrics: BTreeMap::from([
            ("ttft".to_owned(), quantiles(ttft)),
            ("tpot".to_owned(), quantiles([12, 13, 14, 19, 25])),
            ("e2e".to_owned(), quantiles(e2e)),
        ]),
        trials: vec![trial_record(trial, good, ttft[2] * MS)],
        not_measured: None,
    }
}

fn trial_record(trial: u32, good: u64, ttft_p95: u64) -> TrialRecord {
    TrialRecord {
        trial,
        seed: 42,
        schedule_digest: Digest::of(&[trial as u8]),
        planned: Some(TrialCounts { warm_up: 150, window: 300, drain: 60 }),
        window_ns: 15_000 * MS,
        complete: true,
        given_up: false,
        took_ns: 20_500 * MS,
        headroom: Some(0.5),
        held: Some(good == 300),
        window: WindowCounts {
            scheduled: 300,
            decided: 300,
            good: Some(good),
            outcomes: BTreeMap::from([(Outcome::Ok, 300)]),
            input_tokens: Some(9_600),
            output_tokens: Some(19_200),
            ..WindowCounts::default()
        },
        objectives: vec![ObjectiveEvidence {
            id: "ttft_p95".to_owned(),
            n: 300,
            violations: 300 - good,
            undecided: 0,
            unmeasured: 0,
            unit: Some(MetricUnit::Nanoseconds),
            quantile: Some(ttft_p95),
            lower: Some(ttft_p95 * 24 / 25),
            upper: Some(ttft_p95 * 25 / 24),
            headroom: Some(0.5),
            inflation: Some(1.0),
            alone: AloneCounts::default(),
        }],
        drift: Some(DriftRecord { slope_per_s: 0.01, t: 0.2, growth: 0.0, drifting: false }),
        resources: Vec::new(),
        metrics: std::collections::BTreeMap::new(),
        ratios: std::collections::BTreeMap::new(),
        unstable: Vec::new(),
        health: HealthRecord {
            send_lag: Some(Quantiles {
                count: 300,
                p50_ns: Some(90_000),
                p90_ns: Some(150_000),
                p95_ns: Some(190_000),
                p99_ns: Some(310_000 + u64::from(trial) * 40_000),
                max_ns: Some(MS),
            }),
            due: 300,
            sent: 300,
            ..HealthRecord::default()
        },
    }
}

/// A row that compares a share of 300 requests with its limit.
pub(super) fn check(id: &str, status: Status, reason: Reason, limit: &str, observed: &str) -> Check {
    Check {
        id: id.to_owned(),
        status,
        reason,
        claim: Some(Claim::ThisRun),
        method: Some("exact binomial".to_owned()),
        limit: Some(limit.to_owned()),
        observed: Some(observed.to_owned()),
        interval: None,
        confidence: share(950_000),
        samples: Some(300),
        trials: Some(1),
        note: None,
    }
}

fn between(check: Check, lower: &str, upper: &str) -> Check {
    Check { interval: Some([lower.to_owned(), upper.to_owned()]), ..check }
}

/// A row without statistics.
fn stability(id: &str, status: Status, reason: Reason, observed: Option<&str>, note: Option<&str>) -> Check {
    Check {
        claim: None,
        method: None,
        confidence: None,
        samples: None,
        trials: None,
        limit: Some("rise ≤ 0".to_owned()),
        observed: observed.map(str::to_owned),
        note: note.map(str::to_owned),
        ..check(id, status, reason, "", "")
    }
}

fn result(name: &str, steps: Vec<StepRecord>, checks: Vec<Check>, overall: Status) -> RunResult {
    RunResult {
        schema: RESULT_SCHEMA.to_owned(),
        tool_version: "0.1.0".to_owned(),
        name: name.to_owned(),
        started_at: "2026-11-29T10:00:00Z".to_owned(),
        finished_at: "2026-11-29T10:01:34Z".to_owned(),
        contract: json!({ "version": 1, "name": name, "slo": { "at_load": "20/s" } }),
        contract_digest: Digest::of(b"contract"),
        plan_digest: Digest::of(b"plan"),
        workload_digest: Digest::of(b"workload"),
        fingerprint: None,
        origin: Origin::default(),
        endpoint: EndpointRecord {
            url: "http://127.0.0.1:8000/v1/chat/completions".to_owned(),
            protocol: "openai-chat".to_owned(),
            kind: EndpointKind::Launched,
            ready: Readiness::Ready,
            ready_after_ns: Some(2_300 * MS),
            exited: None,
            log_tail: Vec::new(),
            notices: Vec::new(),
        },
        audit: None,
        stopped: None,
        plan: Plan::Check,
        budget: BudgetRecord::default(),
        searches: Vec::new(),
        completeness: Completeness { planned: 4, measured: 4, cells: Vec::new() },
        curve: Vec::new(),
        baseline: None,
        against: Vec::new(),
        confirm: Vec::new(),
        calibration: None,
        comparison: None,
        capacity: None,
        probes: vec![ProbeRecord {
            anew: Vec::new(),
            name: "restart_count".to_owned(),
            kind: ProbeKind::Counter,
            source: "command".to_owned(),
            automatic: false,
            max_increase: Some(0.0),
            between: Vec::new(),
            before: Some(Reading { value: Some(0.0), series: Vec::new(), failure: None, took_ns: 12 * MS }),
            after: Some(Reading { value: Some(0.0), series: Vec::new(), failure: None, took_ns: 11 * MS }),
        }],
        steps,
        verdict: Some(Verdict { overall, unknown_blocks: true, checks }),
    }
}

/// Three loads of the simulated endpoint, all of which hold.
pub(super) fn pass() -> RunResult {
    let steps = vec![
        step(10, 0, 300, [118, 131, 140, 162, 171], [890, 960, 988, 1_040, 1_100]),
        step(20, 1, 299, [121, 150, 204, 262, 301], [912, 1_010, 1_060, 1_190, 1_260]),
        step(30, 2, 298, [133, 201, 255, 330, 512], [960, 1_120, 1_230, 1_410, 1_530]),
    ];
    let held = |id, limit, observed| check(id, Status::Pass, Reason::Held, limit, observed);
    let checks = vec![
        between(held("ttft_p95", "≤ 500ms", "204 ms"), "196 ms", "231 ms"),
        between(held("e2e_p95", "≤ 5s", "1.06 s"), "1.03 s", "1.12 s"),
        Check { note: Some("at most 1% at 95%".to_owned()), ..held("success_rate", "≥ 100%", "300 of 300") },
        between(held("attainment", "≥ 95%", "99.66%"), "98.42%", "99.98%"),
        stability("restart_count", Status::Pass, Reason::Held, Some("0 → 0"), None),
    ];
    let mut result = result("quickstart", steps, checks, Status::Pass);
    result.endpoint.kind = EndpointKind::Simulated;
    result.capacity = Some(listed(Some(rate(30)), None, 29.8, binding(30, false, 2)));
    result
}

/// The capacity of listed loads, each tried once.
fn listed(holds_at: Option<Load>, breaks_at: Option<Load>, goodput: f64, binding: Binding) -> CapacityRecord {
    CapacityRecord {
        holds_at,
        breaks_at,
        point: None,
        claim: Claim::ThisRun,
        method: "listed loads".to_owned(),
        confidence: None,
        confidence_of_end: None,
        seeds: 1,
        trials: 3,
        requests_per_trial: Some(300),
        goodput: Some(goodput),
        non_monotone: false,
        changed: false,
        binding: Some(binding),
    }
}

fn binding(per_second: u64, broke: bool, violations: u64) -> Binding {
    Binding { objective: "ttft_p95".to_owned(), load: rate(per_second), broke, violations, n: 300 }
}

/// A change that does not carry its load: slow, failing, with a counter that rose.
pub(super) fn fail() -> RunResult {
    let mut slow = step(20, 1, 259, [310, 690, 812, 0, 1_900], [1_400, 2_200, 2_900, 0, 4_100]);
    slow.success_rate = share(990_000);
    slow.completed = Some(19.8);
    if let Some(trial) = slow.trials.first_mut() {
        trial.window.outcomes = BTreeMap::from([(Outcome::Ok, 297), (Outcome::Timeout, 2), (Outcome::HttpError, 1)]);
        trial.window.truncated = 12;
        trial.window.warnings = BTreeMap::from([(Warning::NoDone, 4)]);
        trial.drift = Some(DriftRecord { slope_per_s: 1.31, t: 4.2, growth: 0.065, drifting: true });
    }
    let mut skipped = step(30, 2, 0, [0; 5], [0; 5]);
    skipped = StepRecord {
        offered: None,
        achieved: None,
        completed: None,
        goodput: None,
        attainment: None,
        success_rate: None,
        input_tokens_per_second: None,
        output_tokens_per_second: None,
        metrics: BTreeMap::new(),
        trials: Vec::new(),
        not_measured: Some("a lower load already broke".to_owned()),
        ..skipped
    };
    let steps = vec![step(10, 0, 300, [118, 131, 140, 162, 171], [890, 960, 988, 1_040, 1_100]), slow, skipped];
    let broken = |id, limit, observed| check(id, Status::Fail, Reason::Broken, limit, observed);
    let checks = vec![
        Check {
            note: Some("41 of 300 requests are above the limit; 8 or fewer would pass, 22 or more fail".to_owned()),
            ..between(broken("ttft_p95", "≤ 500ms", "812 ms"), "774 ms", "845 ms")
        },
        between(check("e2e_p95", Status::Pass, Reason::Held, "≤ 5s", "2.90 s"), "2.71 s", "3.20 s"),
        Check {
            note: Some("2,995 requests without a failure would decide it".to_owned()),
            ..between(
                check("success_rate", Status::Unknown, Reason::IntervalStraddlesLimit, "≥ 99%", "99%"),
                "97.44%",
                "99.72%",
            )
        },
        between(broken("attainment", "≥ 95%", "86.33%"), "82.63%", "89.48%"),
        stability("restart_count", Status::Fail, Reason::CounterRose, Some("0 → 1"), None),
        stability("oom_count", Status::Unknown, Reason::ProbeFailed, None, Some("after the load: exit status 2")),
    ];
    let mut result = result("gamma-26b-chat", steps, checks, Status::Fail);
    result.completeness = Completeness { planned: 5, measured: 3, cells: Vec::new() };
    result.capacity = Some(listed(Some(rate(10)), Some(rate(20)), 10.0, binding(20, true, 41)));
    result
}

/// Token counts are missing, and the load generator did not keep its plan.
pub(super) fn unknown() -> RunResult {
    let mut only = step(20, 0, 0, [121, 150, 204, 262, 301], [912, 1_010, 1_060, 1_190, 1_260]);
    only.metrics.remove("tpot");
    (only.goodput, only.attainment, only.output_tokens_per_second) = (None, None, None);
    if let Some(trial) = only.trials.first_mut() {
        trial.window.good = None;
        trial.health.faults = vec!["dispatch lag p99 is 9.10 ms, above 5ms".to_owned()];
    }
    let unknown = |id, reason| Check { observed: None, ..check(id, Status::Unknown, reason, "≤ 75ms", "") };
    let checks = vec![unknown("tpot_p99", Reason::NoUsage), unknown("ttft_p95", Reason::GeneratorSaturated)];
    result("no-usage", vec![only], checks, Status::Unknown)
}

/// Stopped by SIGINT in the middle of its only step.
pub(super) fn cancelled() -> RunResult {
    let mut only = step(20, 0, 120, [121, 150, 204, 262, 301], [912, 1_010, 1_060, 1_190, 1_260]);
    if let Some(trial) = only.trials.first_mut() {
        trial.complete = false;
        trial.window.decided = 131;
    }
    let checks = vec![check("ttft_p95", Status::Unknown, Reason::Cancelled, "≤ 500ms", "204 ms")];
    let mut result = result("stopped", vec![only], checks, Status::Unknown);
    result.stopped = Some(Stop::Signal { number: 2 });
    result.completeness = Completeness { planned: 3, measured: 0, cells: Vec::new() };
    result
}

/// Clients instead of arrivals.
pub(super) fn closed_loop() -> RunResult {
    let mut steps = vec![
        step(31, 0, 300, [20, 21, 22, 23, 24], [240, 260, 270, 300, 310]),
        step(118, 1, 300, [60, 80, 91, 120, 140], [640, 720, 760, 880, 900]),
    ];
    for (step, clients) in steps.iter_mut().zip([1, 8]) {
        step.load = Load::Clients(clients);
        step.offered = None;
        for trial in &mut step.trials {
            (trial.planned, trial.drift) = (None, None);
        }
    }
    let checks = vec![check("ttft_p95", Status::Pass, Reason::Held, "≤ 500ms", "91.0 ms")];
    let mut result = result("throughput", steps, checks, Status::Pass);
    result.contract = json!({ "slo": { "at_concurrency": 8 } });
    result
}

/// Spoken replies whose text was thought out first: no token counts but a factor, and a promise about silence.
pub(super) fn spoken() -> RunResult {
    let mut only = step(20, 0, 300, [121, 150, 204, 262, 301], [912, 1_010, 1_060, 1_190, 1_260]);
    only.metrics.remove("tpot");
    only.output_tokens_per_second = None;
    only.reasoning_share = share(437_000);
    only.metrics.insert("first_answer".to_owned(), quantiles([221, 250, 304, 0, 401]));
    only.metrics.insert("first_audio".to_owned(), quantiles([231, 260, 314, 372, 411]));
    let silence = Quantiles { p50_ns: Some(0), p90_ns: Some(0), ..quantiles([1, 1, 40, 80, 90]) };
    only.metrics.insert("underrun".to_owned(), silence);
    let [p50_ppm, p90_ppm, p95_ppm, p99_ppm, max_ppm] = [352_941, 401_000, 420_000, 1_250_000, 1_300_000].map(Some);
    only.ratios.insert("rtf".to_owned(), RatioQuantiles { count: 300, p50_ppm, p90_ppm, p95_ppm, p99_ppm, max_ppm });
    if let Some(trial) = only.trials.first_mut() {
        trial.objectives = vec![ObjectiveEvidence {
            id: "rtf_p95".to_owned(),
            n: 300,
            violations: 4,
            undecided: 0,
            unmeasured: 0,
            unit: Some(MetricUnit::PartsPerMillion),
            quantile: Some(420_000),
            lower: Some(411_000),
            upper: Some(520_000),
            headroom: Some(0.1),
            inflation: Some(1.0),
            alone: AloneCounts::default(),
        }];
    }
    let checks = vec![
        between(check("rtf_p95", Status::Pass, Reason::Held, "≤ 0.6", "0.420"), "0.411", "0.520"),
        Check { observed: None, ..check("underrun_p99", Status::Unknown, Reason::NoAudioDuration, "≤ 0s", "") },
    ];
    result("voice", vec![only], checks, Status::Unknown)
}

/// A launched endpoint that ended before it was ready.
pub(super) fn not_ready() -> RunResult {
    let row = |id, reason| Check { observed: None, samples: None, ..check(id, Status::Fail, reason, "≤ 500ms", "") };
    let checks = vec![
        Check { limit: None, claim: None, ..row("endpoint", Reason::EndpointNotReady) },
        Check { status: Status::Unknown, ..row("ttft_p95", Reason::NotMeasured) },
    ];
    let mut result = result("crash", Vec::new(), checks, Status::Fail);
    result.endpoint.ready =
        Readiness::NotReady { detail: "the process ended with exit status: 1 after 2.3s.".to_owned() };
    result.endpoint.ready_after_ns = None;
    result.endpoint.exited = Some("exit status: 1".to_owned());
    result.endpoint.log_tail = vec![
        "INFO loading ./model".to_owned(),
        "\x1b[31mERROR\x1b[0m CUDA out of memory <GPU 0> @ops | see #12".to_owned(),
    ];
    result.completeness = Completeness { planned: 2, measured: 0, cells: Vec::new() };
    result.probes.clear();
    result
}

/// The commit that samples were measured at, and that of their baseline.
const COMMIT: &str = "89abcdef0123456789abcdef0123456789abcdef";
const BASE_COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A change by which the endpoint loses capacity and nothing else.
pub(super) fn loss() -> RunResult {
    let mut result = pass();
    "gamma-26b-chat".clone_into(&mut result.name);
    result.endpoint.kind = EndpointKind::Launched;
    result.origin = Origin {
        commit: Some(COMMIT.to_owned()),
        run_url: Some("https://github.example/o/r/actions/runs/7".to_owned()),
        ..Origin::default()
    };
    result.baseline = Some(BaselineUse { chosen: Some(chosen()), record: Some(baseline()), ..BaselineUse::default() });
    let changes = vec![
        change("capacity", None, ["30.0/s", "≈ 26.3/s"], [0.877, 0.851, 0.904], Status::Fail),
        change("goodput", Some(rate(20)), ["19.9/s", "19.8/s"], [0.994, 0.985, 1.003], Status::Pass),
        Change {
            gates: false,
            ..change("ttft_p95", Some(rate(20)), ["181 ms", "204 ms"], [0.887, 0.84, 0.93], Status::Fail)
        },
        Change {
            gates: false,
            ..change("ttft_p95", Some(rate(10)), ["139 ms", "140 ms"], [0.993, 0.96, 1.02], Status::Pass)
        },
        Change {
            gates: false,
            ..change("e2e_p95", Some(rate(20)), ["1.09 s", "1.06 s"], [1.03, 1.01, 1.05], Status::Pass)
        },
    ];
    let under_test = vec![Difference {
        field: "server_version".to_owned(),
        base: Some("0.11.0".to_owned()),
        head: Some("0.11.1".to_owned()),
    }];
    result.comparison = Some(Comparison { changes, under_test, ..Comparison::default() });
    let row = |id, status, reason, observed, lower, upper| Check {
        trials: Some(8),
        samples: None,
        claim: Some(Claim::TypicalRun),
        method: Some("paired load shift".to_owned()),
        ..between(check(id, status, reason, "≥ -5%", observed), lower, upper)
    };
    if let Some(verdict) = &mut result.verdict {
        verdict.overall = Status::Fail;
        let rows = [
            row("capacity_change", Status::Fail, Reason::Broken, "-12.3%", "-14.9%", "-9.6%"),
            row("goodput_change", Status::Pass, Reason::Held, "-0.6%", "-1.5%", "+0.3%"),
        ];
        verdict.checks.splice(4..4, rows);
    }
    result
}

/// The same loss, reviewed.
pub(super) fn accepted() -> RunResult {
    let mut result = loss();
    if let Some(verdict) = &mut result.verdict {
        verdict.overall = Status::Pass;
        for check in verdict.checks.iter_mut().filter(|check| check.status == Status::Fail) {
            (check.status, check.reason) = (Status::Accepted, Reason::Accepted);
            check.note = Some(
                "accepted by Ada until 2027-01-31: the larger context is worth it; without that it would be FAIL (broken)"
                    .to_owned(),
            );
        }
    }
    result
}

fn chosen() -> Chosen {
    Chosen { store: "branch".to_owned(), place: "goodput-baselines".to_owned(), why: Why::MergeBase, age_s: 7_300 }
}

/// A baseline with three trials at 20/s, of 299, 298 and 300 good requests in 15 s each.
fn baseline() -> BaselineRecord {
    let mut base = pass();
    base.origin.commit = Some(BASE_COMMIT.to_owned());
    for step in base.steps.iter_mut().filter(|step| step.load == rate(20)) {
        let trial = |(seed, good)| TrialRecord { seed, ..trial_record(1, good, 181 * MS) };
        step.trials = [(42, 299), (43, 298), (44, 300)].map(trial).to_vec();
    }
    BaselineRecord::of(&base)
}

fn change(metric: &str, load: Option<Load>, sides: [&str; 2], found: [f64; 3], status: Status) -> Change {
    let [base, head] = sides.map(|side| Some(side.to_owned()));
    let [ratio, lower, upper] = found;
    Change {
        metric: metric.to_owned(),
        load,
        base,
        head,
        ratio: Some(ratio),
        interval: Some([lower, upper]),
        confidence: share(950_000),
        method: Some("paired load shift".to_owned()),
        margin: Share::from_ppm(50_000).unwrap_or(Share::ONE),
        base_trials: 8,
        head_trials: 8,
        status,
        reason: if status == Status::Pass { Reason::Held } else { Reason::Broken },
        significant: !(lower..=upper).contains(&1.0),
        material: upper < 0.95,
        gates: true,
        note: None,
    }
}

/// Every sample, by name.
pub(super) fn all() -> [(&'static str, RunResult); 9] {
    [
        ("pass", pass()),
        ("fail", fail()),
        ("unknown", unknown()),
        ("cancelled", cancelled()),
        ("closed loop", closed_loop()),
        ("spoken", spoken()),
        ("not ready", not_ready()),
        ("loss", loss()),
        ("accepted", accepted()),
    ]
}
