//! Whole rows of what several schedules show.

use super::generator::audit;
use super::*;
use crate::contract::Search;
use crate::record::{SearchEnd, SearchRecord, settle};

/// One second in nanoseconds.
const S: u64 = 1_000_000_000;

/// Judged over 3, 5 and 8 schedules.
fn typical() -> Contract {
    let mut contract = contract();
    contract.evidence.claim = Claim::TypicalRun;
    contract.evidence.looks = vec![3, 5, 8];
    contract
}

/// Trials at the load that must hold, with these P99 of TTFT in milliseconds; 0 is one among failures.
fn run_with(contract: &Contract, quantiles: &[u64]) -> RunResult {
    let mut run = result();
    run.steps[0].trials = quantiles.iter().zip(0..).map(|(ms, number)| typical_trial(contract, *ms, number)).collect();
    run.steps[1].trials[0].trial = 100;
    run
}

fn typical_trial(contract: &Contract, ms: u64, number: u32) -> TrialRecord {
    let mut trial = TrialRecord { trial: number, seed: 1 + u64::from(number), ..trial() };
    let quantile = (ms > 0).then_some(ms * 1_000_000);
    let ln_10 = std::f64::consts::LN_10;
    let headroom = quantile.map_or(-ln_10, |quantile| (3e9 / quantile as f64).ln().clamp(-ln_10, ln_10));
    let violations = if headroom < 0.0 { 20 } else { 5 };
    trial.objectives[0] =
        ObjectiveEvidence { headroom: Some(headroom), ..evidence("ttft_p99", N, violations, quantile) };
    settle(&contract.slo, &mut trial);
    trial
}

/// A row in one line.
fn row(contract: &Contract, run: &RunResult, id: &str) -> String {
    let verdict = judge(contract, run);
    let Some(check) = verdict.checks.iter().find(|check| check.id == id) else { return "absent".to_owned() };
    let shown = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
    let interval = check.interval.as_ref().map_or_else(|| "-".to_owned(), |[low, high]| format!("{low} … {high}"));
    format!(
        "{} {} | {} | {interval} | {} of {} | {}",
        check.status.word(),
        check.reason.code(),
        shown(&check.observed),
        check.samples.map_or_else(|| "-".to_owned(), |n| n.to_string()),
        check.trials.map_or_else(|| "-".to_owned(), |n| n.to_string()),
        shown(&check.note)
    )
}

#[test]
fn a_typical_run_is_decided_by_the_looks() {
    let contract = typical();
    // The cases r-39, r-40, r-43 and r-45 of the reference, whose decisions and bounds are tested where they are computed:
    // 3 s · e^(−0.144584) = 2.596 s, and its bounds 3 s · e^(−0.239831) = 2.360 s and 3 s · e^(−0.049337) = 2.856 s.
    for (quantiles, want) in [
        (vec![2_600, 2_800, 2_400, 2_700, 2_500], "PASS held | 2.60 s | 2.36 s … 2.86 s | 5000 of 5 | -"),
        (
            vec![2_900, 3_300, 2_200, 3_600, 2_700, 3_100, 2_500, 3_400],
            "UNKNOWN interval_straddles_limit | 2.93 s | 2.52 s … 3.40 s | 8000 of 8 | \
             trials differ by 16.7% (standard deviation); too close to the limit to be decided; change the limit or the load",
        ),
        (vec![0, 0, 0], "FAIL broken | ∞ (0 of 1000 failed) | 26.8 s … ∞ | 3000 of 3 | -"),
        (
            vec![300, 310, 0, 290, 300, 320, 300, 310],
            "PASS held | ∞ in 1 of 8 trials (0 of 1000 failed) | 0 ms … ∞ | 8000 of 8 | -",
        ),
        (vec![2_600, 2_800], "UNKNOWN not_measured | 2.80 s | - | 1000 of 1 | 2 of 3 trials were measured"),
    ] {
        assert_eq!(row(&contract, &run_with(&contract, &quantiles), "ttft_p99"), want, "{quantiles:?}");
    }
}

#[test]
fn what_is_shown_is_not_held_to_the_headroom_that_decides() {
    // 30 ms of 3 s is a hundredth; the headroom counts a tenth.
    let contract = typical();
    let row = row(&contract, &run_with(&contract, &[30, 30, 30]), "ttft_p99");
    assert!(row.starts_with("PASS held | 30.0 ms | "), "{row}");
}

#[test]
fn what_is_missing_or_piles_up_never_passes() {
    let contract = typical();
    type Change = fn(&mut RunResult);
    let drifting = Some(DriftRecord { slope_per_s: 0.3, t: 4.0, growth: 0.075, drifting: true });
    let cases: [(&str, Change, &str); 7] = [
        ("a value is missing in one trial", |r| r.steps[0].trials[1].objectives[0].unmeasured = 3, "not_measured"),
        (
            "a trial was void twice",
            |r| r.steps[0].trials[2].health.faults.push("late".to_owned()),
            "generator_saturated",
        ),
        ("the budget ended", |r| r.budget.exhausted = true, "held"),
        (
            "the budget ended before the first look",
            |r| {
                r.steps[0].trials.pop();
                r.budget.exhausted = true;
            },
            "budget_exhausted",
        ),
        (
            "stopped before the first look",
            |r| {
                r.steps[0].trials.pop();
                r.stopped = Some(Stop::Signal { number: 2 });
            },
            "cancelled",
        ),
        ("nobody can tell whether they pile up", |r| r.steps[0].trials[0].drift = None, "too_few_samples"),
        (
            "a window without room for one violation",
            |r| r.steps[0].trials.iter_mut().for_each(|trial| trial.window.scheduled = 99),
            "too_few_samples",
        ),
    ];
    for (name, change, reason) in cases {
        let mut run = run_with(&contract, &[400, 400, 400]);
        change(&mut run);
        let row = row(&contract, &run, "ttft_p99");
        assert_eq!(row.split(' ').nth(1), Some(reason), "{name}: {row}");
        assert_eq!(row.starts_with("PASS"), reason == "held", "{name}: {row}");
    }
    let mut run = run_with(&contract, &[400, 400, 400]);
    run.steps[0].trials[..2].iter_mut().for_each(|trial| trial.drift = drifting);
    let stationary = row(&contract, &run, "ttft_p99");
    assert!(stationary.starts_with("UNKNOWN not_stationary"), "{stationary}");
    assert!(
        stationary.ends_with("in 2 of 3 trials requests pile up: 7.5% of the arrivals stay in flight"),
        "{stationary}"
    );
}

#[test]
fn limits_that_hold_apart_may_fail_together() {
    let mut contract = typical();
    let e2e = Objective::Percentile { metric: RequestMetric::E2e, quantile: share(990_000), at_most: 30 * S };
    contract.slo.objectives.insert(1, e2e);
    let together = |pairs: &[(f64, f64)]| {
        let mut run = run_with(&contract, &vec![400; pairs.len()]);
        for (trial, (ttft, e2e)) in run.steps[0].trials.iter_mut().zip(pairs) {
            let found = |id: &str, limit: u64, headroom: f64| ObjectiveEvidence {
                headroom: Some(headroom),
                ..evidence(id, N, 5, Some((limit as f64 * (-headroom).exp()) as u64))
            };
            trial.objectives[0] = found("ttft_p99", 3 * S, *ttft);
            trial.objectives.insert(1, found("e2e_p99", 30 * S, *e2e));
            settle(&contract.slo, trial);
        }
        let status = |id: &str| row(&contract, &run, id).split(' ').next().unwrap_or_default().to_owned();
        [status("ttft_p99"), status("e2e_p99"), status("all_limits"), judge(&contract, &run).overall.word().to_owned()]
    };
    assert_eq!(together(&[(0.5, 0.6), (0.5, 0.6), (0.5, 0.6)]), ["PASS", "PASS", "PASS", "PASS"]);
    assert_eq!(together(&[(-0.5, 0.6), (-0.5, 0.6), (-0.5, 0.6)]), ["FAIL", "PASS", "FAIL", "FAIL"]);
    // Each misses its limit in one trial of three or less; a typical run misses one of both.
    let torn = [(-0.2, 0.2), (0.2, -0.2), (0.2, 0.2), (-0.2, 0.2), (0.2, -0.2), (0.2, 0.2), (-0.2, 0.2), (0.2, -0.2)];
    assert_eq!(together(&torn)[2..], ["UNKNOWN", "UNKNOWN"]);
}

#[test]
fn what_the_idle_endpoint_breaks_no_load_can_meet() {
    let contract = typical();
    let mut run = run_with(&contract, &[4_000, 4_000, 4_000]);
    for trial in &mut run.steps[0].trials {
        trial.objectives[0].alone = AloneCounts { n: 50, violations: 2 };
    }
    // 6 of 150 where 1.5 may: p = 0.0042, below 0.05 / 2.
    assert!(row(&contract, &run, "ttft_p99").starts_with("FAIL infeasible_objective"));
    run.steps[0].trials[0].objectives[0].alone.violations = 0;
    run.steps[0].trials[1].objectives[0].alone.violations = 1;
    assert!(row(&contract, &run, "ttft_p99").starts_with("FAIL broken"), "3 of 150: p = 0.19");
}

#[test]
fn the_long_run_counts_what_requests_are_worth() {
    let mut contract = contract();
    contract.evidence.claim = Claim::LongRun;
    let mut run = result();
    let mut long = |inflation: Option<f64>, violations: u64, n: u64| {
        at_load(&mut run).objectives[0] =
            ObjectiveEvidence { inflation, ..evidence("ttft_p99", n, violations, Some(S)) };
        let row = row(&contract, &run, "ttft_p99");
        row.split(" |").next().unwrap_or_default().to_owned()
    };
    // As independent requests 38 of 5,000 PASS and 63 FAIL (method, section 6), one more or less does neither; FAIL shares its
    // level between two objectives, so that it needs a few more.
    assert_eq!(long(Some(1.0), 38, 5_000), "PASS held");
    assert_eq!(long(Some(1.0), 39, 5_000), "UNKNOWN too_few_samples");
    assert_eq!(long(Some(1.0), 75, 5_000), "FAIL broken");
    assert_eq!(
        long(Some(10.0), 38, 5_000),
        "UNKNOWN too_few_samples",
        "500 effective requests PASS with one violation"
    );
    assert_eq!(long(Some(10.0), 75, 5_000), "UNKNOWN interval_straddles_limit");
    assert_eq!(long(None, 0, 5_000), "UNKNOWN too_few_samples");
    assert_eq!(long(Some(1.0), 0, 199), "UNKNOWN too_few_samples");
}

#[test]
fn a_steady_state_needs_a_warm_up_and_no_drift() {
    let mut contract = contract();
    contract.evidence.claim = Claim::LongRun;
    let mut run = result();
    let e2e = Quantiles { p50_ns: Some(2 * S), ..lag().unwrap() };
    run.steps[0].metrics.insert("e2e".to_owned(), e2e);
    // Three times 2 s at 4/s are 24 arrivals.
    let counts = |warm_up| Some(TrialCounts { warm_up, window: N, drain: 0 });
    at_load(&mut run).planned = counts(24);
    assert!(row(&contract, &run, "ttft_p99").starts_with("PASS held"));
    at_load(&mut run).planned = counts(23);
    assert!(row(&contract, &run, "ttft_p99").starts_with("UNKNOWN not_stationary"));
    at_load(&mut run).planned = counts(24);
    at_load(&mut run).drift = Some(DriftRecord { slope_per_s: 0.3, t: 4.0, growth: 0.075, drifting: true });
    assert!(row(&contract, &run, "ttft_p99").starts_with("UNKNOWN not_stationary"));
}

#[test]
fn what_the_generator_itself_may_have_broken_is_not_called_broken() {
    // ln(3.6 / 3) = 0.182 less 9.925 · 0.02 / √3 = 0.115 leaves 0.068: an error of 3 s · (e^0.068 − 1) = 0.21 s could be why.
    let several = typical();
    let mut run = run_with(&several, &[3_600, 3_600, 3_600]);
    let mut reason = |error_ms: u64| {
        run.audit = audit(&[(10, error_ms * 1_000)], &[]);
        row(&several, &run, "ttft_p99").split(" |").next().unwrap_or_default().to_owned()
    };
    assert_eq!([200, 220].map(&mut reason), ["FAIL broken", "UNKNOWN generator_saturated"]);
    // On one schedule, the lower bound of the quantile is 3.6 s.
    let one = contract();
    let mut run = result();
    at_load(&mut run).objectives[0] = evidence("ttft_p99", N, 16, Some(4 * S));
    let mut reason = |error_ms: u64| {
        run.audit = audit(&[(10, error_ms * 1_000)], &[]);
        row(&one, &run, "ttft_p99").split(" |").next().unwrap_or_default().to_owned()
    };
    assert_eq!([599, 600].map(&mut reason), ["FAIL broken", "UNKNOWN generator_saturated"]);
}

/// A release whose searches ended at these loads, in whole requests per second; 0 stands for none.
fn searched(contract: &mut Contract, ends: &[(u64, u64)]) -> RunResult {
    let rate = |per_second: u64| Rate::from_milli(per_second * 1_000);
    let (from, to) = (rate(1).unwrap(), rate(64).unwrap());
    contract.evidence.search = Some(Search { from, to, precision: share(500_000), seeds: ends.len() as u32 });
    let mut run = run_with(contract, &[2_900, 3_300, 2_200, 3_600, 2_700, 3_100, 2_500, 3_400]);
    run.plan = Plan::Release;
    let mut number = 200;
    for (index, (holds, breaks)) in ends.iter().enumerate() {
        // Seeds of their own, so that the listed load tells nothing of them.
        contract.workload.seed = 1;
        let seed = 1 + index as u64;
        let mut steps = Vec::new();
        for (at, ms) in [(holds, 400), (breaks, 9_000)] {
            if *at > 0 {
                let mut step = step(load(*at));
                step.trials = vec![TrialRecord { seed, ..typical_trial(contract, ms, number) }];
                step.trials.iter_mut().for_each(|trial| trial.seed = seed);
                number += 1;
                steps.push(step);
            }
        }
        let record = SearchRecord { seed, end: SearchEnd::Unfinished, holds_at: None, breaks_at: None, steps };
        run.searches.push(record);
    }
    // At last the first schedule is tried again, below where all held.
    if let Some((holds, _)) = ends.first().filter(|(holds, _)| *holds > 0) {
        let again = Load::RateMilli(Rate::from_milli((*holds as f64 * 1e3 / 1.1).round() as u64).unwrap());
        let mut step = step(again);
        step.trials = vec![TrialRecord { seed: 1, ..typical_trial(contract, 400, number) }];
        run.searches[0].steps.push(step);
    }
    // The listed loads speak of other schedules.
    run.steps.iter_mut().flat_map(|step| &mut step.trials).for_each(|trial| trial.seed += 1_000);
    conclude(contract, &mut run);
    run
}

#[test]
fn the_floor_of_the_capacity_is_decided_by_the_ends_of_its_interval() {
    let five = [(20, 24), (20, 26), (18, 22), (22, 28), (20, 25)];
    let with_floor = |floor: u64, ends: &[(u64, u64)]| {
        let mut contract = typical();
        contract.slo.capacity = Rate::from_milli(floor * 1_000);
        let run = searched(&mut contract, ends);
        let row = row(&contract, &run, "capacity");
        let [status, interval] = [0, 2].map(|part| row.split(" | ").nth(part).unwrap_or_default().to_owned());
        format!("{status}: {interval}")
    };
    assert_eq!(with_floor(18, &five), "PASS held: 18/s … 28/s");
    assert_eq!(with_floor(19, &five), "UNKNOWN interval_straddles_limit: 18/s … 28/s");
    assert_eq!(with_floor(28, &five), "FAIL broken: 18/s … 28/s");
    assert_eq!(with_floor(18, &five[..4]), "UNKNOWN too_few_samples: 18/s … 28/s", "four schedules give 93.75%");
    let mut open = five;
    open[0] = (64, 0);
    assert_eq!(with_floor(28, &open), "UNKNOWN interval_straddles_limit: 18/s … ∞");
    open[0] = (0, 1);
    assert_eq!(with_floor(18, &open), "UNKNOWN interval_straddles_limit: 0 … 28/s");
}

#[test]
fn the_capacity_covers_the_ends_of_all_schedules() {
    let mut contract = typical();
    let run = searched(&mut contract, &[(20, 24), (20, 26), (18, 22), (22, 28), (20, 25)]);
    let capacity = run.capacity.clone().unwrap();
    assert_eq!((capacity.holds_at, capacity.breaks_at), (Some(load(18)), Some(load(28))));
    assert_eq!((capacity.confidence, capacity.confidence_of_end), (Some(share(937_500)), Some(share(968_750))));
    // exp(mean of ½ ln(L·U)), as the reference's cases r-51 and r-52 compute it.
    let point = [(20.0, 24.0), (20.0, 26.0), (18.0, 22.0), (22.0, 28.0), (20.0, 25.0)]
        .map(|(low, high): (f64, f64)| 0.5 * (low * high).ln())
        .iter()
        .sum::<f64>()
        / 5.0;
    assert!((capacity.point.unwrap() - point.exp()).abs() < 1e-9);
    assert_eq!((capacity.claim, capacity.seeds), (Claim::TypicalRun, 5));
    let binding = capacity.binding.unwrap();
    assert_eq!((binding.objective.as_str(), binding.load, binding.broke), ("ttft_p99", load(24), true));
    assert!(run.searches.iter().all(|search| search.end == SearchEnd::Bracketed));
    assert_eq!(run.completeness.cells.len(), 1 + 5 + 1 + 2);
}

#[test]
fn a_search_that_cannot_be_believed_is_no_pass() {
    let five = [(20, 24), (20, 26), (18, 22), (22, 28), (20, 25)];
    let mut contract = typical();
    let mut run = searched(&mut contract, &five);
    let of = |run: &mut RunResult, id: &str| {
        conclude(&contract, run);
        row(&contract, run, id).split(" |").next().unwrap_or_default().to_owned()
    };
    assert_eq!(of(&mut run, "capacity"), "absent", "without a floor there is nothing to decide");
    // The first schedule held at 20/s and, tried again at last, twice no longer a tenth below where all held.
    let mut changed = run.clone();
    let again = changed.searches[0].steps.last_mut().unwrap();
    again.trials[0].held = Some(false);
    let mut twice = again.clone();
    twice.trials[0].trial += 1;
    changed.searches[0].steps.push(twice);
    assert_eq!(of(&mut changed, "capacity"), "UNKNOWN not_stationary");
    // It was not tried again.
    run.searches[0].steps.pop();
    assert_eq!(of(&mut run, "completeness"), "UNKNOWN not_measured");
    run.stopped = Some(Stop::Signal { number: 2 });
    assert_eq!(of(&mut run, "completeness"), "UNKNOWN cancelled");
}

#[test]
fn the_floor_claims_nothing_that_the_rows_do_not() {
    let mut contract = typical();
    contract.slo.capacity = Rate::from_milli(4_000);
    let first = |change: fn(&mut TrialRecord)| {
        let mut run = run_with(&contract, &[400, 400, 400]);
        run.steps[0].trials.iter_mut().for_each(change);
        row(&contract, &run, "capacity").split(" | ").take(3).collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(first(|_| {}), "PASS held | ≥ 4/s | 4/s … ∞");
    assert!(first(|trial| trial.drift = None).starts_with("UNKNOWN"), "nobody can tell whether they pile up");
    let refused = |trial: &mut TrialRecord| {
        trial.window.statuses = BTreeMap::from([(401, N)]);
        trial.objectives[0].headroom = Some(-2.0);
    };
    assert!(first(refused).starts_with("UNKNOWN"), "a wrong key says nothing of the capacity");
}

#[test]
fn a_release_is_not_let_through_because_nobody_can_tell() {
    let mut contract = typical();
    contract.policy.unknown = UnknownPolicy::Warn;
    let mut run = run_with(&contract, &[400]);
    assert!(!judge(&contract, &run).unknown_blocks);
    run.plan = Plan::Release;
    assert!(judge(&contract, &run).unknown_blocks);
}

#[test]
fn requests_that_are_refused_for_what_they_are_tell_nothing_of_the_load() {
    let contract = typical();
    let mut run = run_with(&contract, &[0, 0, 0]);
    let mut with = |statuses: &[(u16, u64)]| {
        for trial in &mut run.steps[0].trials {
            let failed = statuses.iter().map(|(_, count)| count).sum();
            trial.window.outcomes = BTreeMap::from([(Outcome::Ok, N - failed), (Outcome::HttpError, failed)]);
            trial.window.statuses = statuses.iter().copied().collect();
            trial.objectives[1].violations = failed;
        }
        let first = |id: &str| row(&contract, &run, id).split(" |").next().unwrap_or_default().to_owned();
        [first("ttft_p99"), first("success_rate")]
    };
    assert_eq!(with(&[(401, 501)]), ["UNKNOWN implausible_result", "UNKNOWN implausible_result"]);
    assert_eq!(with(&[(401, 300), (404, 201)]), ["UNKNOWN implausible_result", "UNKNOWN implausible_result"]);
    assert_eq!(with(&[(401, 500)]), ["FAIL broken", "FAIL broken"], "half of them may be the load");
    assert_eq!(with(&[(429, 900)]), ["FAIL broken", "FAIL broken"], "too many requests is what a load is about");
    assert_eq!(with(&[(503, 1_000)]), ["FAIL broken", "FAIL broken"]);
    let note = row(&contract, &run, "ttft_p99");
    assert!(note.ends_with("did not end ok and count as infinitely slow: 3000 http_error (503: 3000)"), "{note}");
}

#[test]
fn figures_beyond_belief_are_not_believed() {
    let contract = typical();
    let mut run = run_with(&contract, &[400, 400, 400]);
    assert_eq!(judge(&contract, &run).overall, Status::Pass);
    let instant = Quantiles { p50_ns: Some(0), ..lag().unwrap() };
    run.steps[0].metrics.insert("ttft".to_owned(), instant);
    let verdict = judge(&contract, &run);
    assert_eq!(verdict.overall, Status::Unknown);
    assert!(verdict.checks.iter().any(|check| check.reason == Reason::ImplausibleResult));
}
