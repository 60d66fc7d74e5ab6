//! The search, the looks and the verdict in virtual time, against queues whose answer is known (method, section 15).
//!
//! Every number here is seeded, so that a test fails always or never; the seeds are the first that were tried. What is random
//! is held to the bounds of the method.

use goodput::contract::{Contract, Objective, Plan, RequestLimits, RequestMetric};
use goodput::judge::{Check, Status};
use goodput::record::{RunResult, TrialRecord, summarise_step};
use goodput::schedule::{ArrivalProcess, PlannedTrial, TrialCounts, TrialShape, open_loop};
use goodput::search::{Bracket, Part, Try};
use goodput::simulate::{Engine, Job, LengthSource, Profile, Stage, parse_profile, rehearse, rehearse_trial};
use goodput::units::{Load, Rate};
use serde_json::{Value, json};

use crate::queues::{Queue, contract, overall, rate, reference, search, share};

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn exact_runs(engine: &str) -> Vec<Value> {
    let file = reference();
    file["exact_runs"].as_array().unwrap().iter().filter(|run| run["engine"] == engine).cloned().collect()
}

fn at_most(metric: RequestMetric, quantile: f64, at_most: u64) -> Objective {
    Objective::Percentile { metric, quantile: share(quantile), at_most }
}

fn profile(text: &Value) -> Profile {
    parse_profile(&text.to_string()).unwrap()
}

/// Counts, process and seed of a reference run at one load.
fn planned(run: &Value, at: Rate) -> PlannedTrial {
    let counts = TrialCounts {
        warm_up: number(run, "/arrivals/warmup"),
        window: number(run, "/arrivals/measured"),
        drain: number(run, "/arrivals/cooldown"),
    };
    let constant = run["arrivals"]["kind"] == "constant";
    let process = if constant { ArrivalProcess::Constant } else { ArrivalProcess::Poisson };
    let shape = TrialShape::Open { process, rate: at, counts };
    PlannedTrial { trial: 0, seed: number(run, "/arrivals/seed"), load: Load::RateMilli(at), shape }
}

/// The endpoint of a reference run with constant service, and what must hold; two tokens tell wait from service.
fn constant_service(run: &Value) -> (Profile, Contract) {
    let service = json!({ "fixed": format!("{}ns", number(run, "/params/service_ns")) });
    let model = json!({ "kind": "slots", "slots": run["params"]["c"], "service": service });
    let mut contract = contract();
    contract.slo.objectives = vec![at_most(RequestMetric::Ttft, 0.99, number(run, "/objective/threshold_ns"))];
    (profile(&json!({ "model": model, "output_tokens": 2 })), contract)
}

#[test]
fn runs_with_constant_service_equal_the_reference_in_every_field() {
    for run in exact_runs("D/D/c").iter().chain(&exact_runs("M/D/c")) {
        let (profile, contract) = constant_service(run);
        let trial_at = |milli: u64| {
            let planned = planned(run, Rate::from_milli(milli).unwrap());
            rehearse_trial(&contract.slo, &planned, Part::Step, Stage::new(profile.clone())).unwrap()
        };
        for row in run["table"].as_array().unwrap() {
            let (trial, requests) = trial_at(number(row, "/rate_milli"));
            let evidence = trial.objectives[0].clone();
            assert_eq!((trial.window.decided, evidence.n), (1_000, 1_000), "{row}");
            assert_eq!(evidence.quantile, row["wait_p99_ns"].as_u64(), "{row}");
            let step = summarise_step(Load::RateMilli(rate(1.0)), &[(trial, requests)], None);
            let waits = step.metrics["ttft"];
            let mut found = json!({ "rate_milli": row["rate_milli"], "violations": evidence.violations,
                "max_wait_ns": waits.max_ns, "wait_p50_ns": waits.p50_ns, "wait_p99_ns": waits.p99_ns });
            if row.get("wait_p95_ns").is_some() {
                found["wait_p95_ns"] = json!(waits.p95_ns);
            }
            assert_eq!(&found, row, "{}", run["id"]);
        }
        if let Some(capacity) = run["workload_capacity_milli"].as_u64() {
            for (milli, key) in [(capacity, "violations_at_capacity"), (capacity + 1, "violations_one_above")] {
                assert_eq!(Some(trial_at(milli).0.objectives[0].violations), run[key].as_u64(), "{}", run["id"]);
            }
        }
    }
}

#[test]
fn the_step_engine_equals_the_reference_in_every_field() {
    for run in exact_runs("step") {
        let nanos = |key: &str| format!("{}ns", number(&run["params"], key));
        let uniform =
            |key: &str| json!({ "uniform": { "from": run["lengths"][key]["lo"], "to": run["lengths"][key]["hi"] } });
        let profile = profile(&json!({ "seed": run["arrivals"]["seed"],
            "model": { "kind": "batch", "slots": run["params"]["batch"], "step_base": nanos("/alpha_ns"),
                "step_per_request": nanos("/beta_ns"), "prefill_per_token": nanos("/gamma_ns_per_prompt_token") },
            "lengths": { "prompt": uniform("prompt_tokens"), "output": uniform("output_tokens") } }));
        let limit = |index: usize| number(&run, &format!("/objectives/{index}/threshold_ns"));
        let (ttft, e2e, tpot) = (RequestMetric::Ttft, RequestMetric::E2e, RequestMetric::Tpot);
        let mut contract = contract();
        contract.slo.request = RequestLimits::from_iter([(ttft, limit(0)), (e2e, limit(1)), (tpot, limit(2))]);
        contract.slo.objectives =
            vec![at_most(ttft, 0.99, limit(0)), at_most(e2e, 0.95, limit(1)), at_most(tpot, 0.99, limit(2))];
        for row in run["table"].as_array().unwrap() {
            let at = Rate::from_milli(number(row, "/rate_milli")).unwrap();
            let planned = planned(&run, at);
            let (trial, requests) =
                rehearse_trial(&contract.slo, &planned, Part::Step, Stage::new(profile.clone())).unwrap();
            let violations: Vec<u64> = trial.objectives.iter().map(|evidence| evidence.violations).collect();
            let step = summarise_step(Load::RateMilli(at), &[(trial.clone(), requests)], None);
            let quantiles = |metric: &str| step.metrics[metric];
            let found = json!({ "rate_milli": at.milli(), "ttft_violations": violations[0],
                "e2e_violations": violations[1], "tpot_violations": violations[2], "good": trial.window.good,
                "ttft_p50_ns": quantiles("ttft").p50_ns, "ttft_p99_ns": quantiles("ttft").p99_ns,
                "e2e_p95_ns": quantiles("e2e").p95_ns, "tpot_p99_ns": quantiles("tpot").p99_ns });
            assert_eq!(&found, row, "{}", run["id"]);
            let goodput = row["good"].as_f64().unwrap() / 1_000.0 * at.per_second();
            assert!((step.goodput.unwrap() - goodput).abs() < 1e-6);
        }
    }
}

/// Mean of the values and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// `count` trials at a load, all different.
fn trials(queue: &Queue, at: Rate, counts: TrialCounts, count: u64) -> Vec<TrialRecord> {
    let contract = queue.contract(at, counts, 0);
    let load = Load::RateMilli(at);
    let trial = |seed| {
        let planned = PlannedTrial { trial: 0, seed, load, shape: contract.traffic.shape(load) };
        rehearse_trial(&contract.slo, &planned, Part::Step, queue.stage(&planned, 0.0)).unwrap().0
    };
    (1..=count).map(trial).collect()
}

/// 12 trials of 15,000 requests each; the standard error is that between the trials, which needs no model of how requests of
/// one trial depend on each other. A table's probability may be off by four of them, and by as much as one request in each
/// trial where hardly any is seen.
#[test]
fn the_long_run_is_that_of_the_closed_forms() {
    let counts = TrialCounts { warm_up: 3_000, window: 15_000, drain: 1_000 };
    for id in ["q-01", "q-03", "q-04", "q-05", "q-07", "q-08", "q-09", "q-10", "q-12", "q-14", "q-15", "q-20", "q-22"] {
        let queue = Queue::new(id);
        for row in queue.row["table"].as_array().unwrap() {
            let at = row["rate"].as_f64().unwrap();
            if !(0.79..=1.01).contains(&(at / queue.capacity)) {
                continue;
            }
            let expected: Vec<f64> = match &row["violation_probability"] {
                Value::Array(list) => list.iter().filter_map(Value::as_f64).collect(),
                Value::Null => vec![row["failure_probability"].as_f64().unwrap()],
                one => vec![one.as_f64().unwrap()],
            };
            let trials = trials(&queue, rate(at), counts, 12);
            for (index, expected) in expected.iter().enumerate() {
                let shares: Vec<f64> =
                    trials.iter().map(|trial| trial.objectives[index].violations as f64 / 15_000.0).collect();
                let (found, error) = mean(&shares);
                let off = (found - expected).abs();
                assert!(off <= 4.0 * error + 1.0 / 15_000.0, "{id} at {at}: {found} ± {error}, not {expected}");
            }
        }
    }
}

/// Without a limit on the batch, the mean time per token is that of a processor that is shared (q-23).
#[test]
fn an_unlimited_batch_has_the_mean_pace_of_a_shared_processor() {
    let queue = Queue::new("q-23");
    for row in queue.row["table"].as_array().unwrap() {
        let at = row["rate"].as_f64().unwrap();
        let counts = TrialCounts { warm_up: 2_000, window: 8_000, drain: 0 };
        let paces: Vec<f64> = (1..=8).map(|seed| pace(&queue, at, counts, seed)).collect();
        let (found, error) = mean(&paces);
        let expected = row["mean_tpot_s"].as_f64().unwrap();
        // A request joins with the next step: half a step of 300 is no part of its pace.
        assert!(
            (found - expected).abs() <= 4.0 * error + expected / 600.0,
            "{at}/s: {found} ± {error}, not {expected}"
        );
    }
}

/// Time in the batch over tokens, of all requests behind the warm-up, in seconds.
fn pace(queue: &Queue, at: f64, counts: TrialCounts, seed: u64) -> f64 {
    let profile = Profile { seed, ..queue.profile.clone() };
    let schedule = open_loop(ArrivalProcess::Poisson, rate(at), counts, seed);
    let (mut engine, mut lengths) = (Engine::new(&profile), LengthSource::new(&profile));
    let (mut out, mut time, mut tokens) = (Vec::new(), 0u64, 0u64);
    let mut collect = |out: &mut Vec<goodput::simulate::Emission>| {
        let ends = out.drain(..).filter(|emission| emission.last && emission.id >= counts.warm_up);
        ends.for_each(|emission| {
            time += emission.at_ns - schedule.arrivals()[emission.id as usize].offset_ns;
            tokens += u64::from(emission.token) + 1;
        });
    };
    for (id, arrival) in (0..).zip(schedule.arrivals()) {
        engine.advance_before(arrival.offset_ns, &mut out);
        collect(&mut out);
        let output_tokens = lengths.next_lengths().output.unwrap();
        engine.arrive(arrival.offset_ns, Job { id, prompt_tokens: 1, output_tokens }).unwrap();
    }
    engine.advance(u64::MAX - 1, &mut out);
    collect(&mut out);
    time as f64 / 1e9 / tokens as f64
}

#[test]
fn a_search_brackets_the_capacity_of_each_schedule_in_twelve_trials() {
    for run in exact_runs("M/D/c") {
        let (profile, mut contract) = constant_service(&run);
        let capacity = number(&run, "/workload_capacity_milli");
        search(&mut contract, 1.0, 8.0, 0.05, 1);
        let range = contract.evidence.search.unwrap();
        for factor in [0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0] {
            let start = rate(factor * capacity as f64 / 1e3);
            let mut tried = Vec::new();
            while let Try::Load(load) = Bracket::new(range, Vec::new(), tried.clone()).next(start) {
                let stage = Stage::new(profile.clone());
                let (trial, _) = rehearse_trial(&contract.slo, &planned(&run, load), Part::Search, stage).unwrap();
                tried.push((load, trial.held.unwrap()));
            }
            let bracket = Bracket::new(range, Vec::new(), tried.clone());
            assert_eq!(bracket.next(start), Try::Bracketed, "{tried:?}");
            assert!(tried.len() <= 12, "{tried:?}");
            let (holds, breaks) = (bracket.holds_at().unwrap().milli(), bracket.breaks_at().unwrap().milli());
            assert!(holds <= capacity && capacity < breaks, "{holds} {capacity} {breaks}");
            assert!(breaks as f64 <= 1.05 * holds as f64, "{holds} {breaks}");
        }
    }
}

const N_1000: TrialCounts = TrialCounts { warm_up: 300, window: 1_000, drain: 200 };

/// The load at which the median run of 1,000 requests of q-05 just holds: 1.0311 times the long run's (the reference's
/// `finite_run_capacity`, from 1,200 schedules).
fn median_of_q05() -> f64 {
    let file = reference();
    let rows = file["finite_run_capacity"].as_array().unwrap();
    let row = rows.iter().find(|row| row["scenario"] == "q-05" && row["measured"] == 1_000).unwrap();
    row["median_over_long_run"].as_f64().unwrap() * Queue::new("q-05").capacity
}

/// Ends of the capacity that a run found.
fn ends(result: &RunResult) -> (Option<f64>, Option<f64>) {
    let end = |load: Option<Load>| load.and_then(Load::rate).map(Rate::per_second);
    let capacity = result.capacity.as_ref();
    (end(capacity.and_then(|found| found.holds_at)), end(capacity.and_then(|found| found.breaks_at)))
}

#[test]
fn five_searches_cover_the_capacity_of_the_median_run() {
    const REPETITIONS: u64 = 200;
    let (queue, truth) = (Queue::new("q-05"), median_of_q05());
    let (mut covered, mut below, mut trials) = (0, 0, 0);
    for repetition in 1..=REPETITIONS {
        let mut contract = queue.contract(rate(2.0), N_1000, 1_000 * repetition);
        search(&mut contract, 1.0, 8.0, 0.03, 5);
        let result = rehearse(&contract, Plan::Release, |planned| queue.stage(planned, 0.0)).unwrap();
        let (holds, breaks) = ends(&result);
        let (holds, breaks) = (holds.unwrap(), breaks.unwrap());
        covered += u64::from(holds <= truth && truth <= breaks);
        below += u64::from(holds <= truth);
        trials += result.searches.iter().map(|search| search.steps.len() as u64).sum::<u64>();
    }
    // 93.75 % and 96.9 % by the method, which asks for 90 %.
    assert!(covered * 100 >= 90 * REPETITIONS, "{covered} of {REPETITIONS} contain {truth}");
    assert!(below * 100 >= 93 * REPETITIONS, "{below} of {REPETITIONS} hold at no more than {truth}");
    assert!(trials <= 12 * 5 * REPETITIONS, "{trials} trials");
}

/// PASS and FAIL in percent over many runs at a load.
fn decisions(queue: &Queue, at: f64, repetitions: u64) -> (f64, f64) {
    let (mut pass, mut fail) = (0, 0);
    for repetition in 1..=repetitions {
        let contract = queue.contract(rate(at), N_1000, 1_000 * repetition);
        let result = rehearse(&contract, Plan::Check, |planned| queue.stage(planned, 0.0)).unwrap();
        match overall(&result) {
            Status::Pass => pass += 1,
            Status::Fail => fail += 1,
            Status::Unknown | Status::Accepted => {}
        }
    }
    let percent = |count: u64| 100.0 * count as f64 / repetitions as f64;
    (percent(pass), percent(fail))
}

#[test]
fn the_looks_err_as_seldom_as_stated() {
    let (queue, truth) = (Queue::new("q-05"), median_of_q05());
    let (pass, fail) = decisions(&queue, truth, 400);
    assert!(pass <= 9.0 && fail <= 9.0, "on the limit: PASS {pass} %, FAIL {fail} %");
    let (pass, fail) = decisions(&queue, 0.8 * truth, 400);
    assert!(pass >= 95.0 && fail <= 0.5, "well below: PASS {pass} %, FAIL {fail} %");
    let (pass, fail) = decisions(&queue, 1.2 * truth, 400);
    assert!(fail >= 97.0 && pass <= 0.5, "well above: PASS {pass} %, FAIL {fail} %");
}

/// The overload of 10 % reaches a wait of 23 s at the end of 1,000 requests, and the limit is a minute.
#[test]
fn an_overload_that_has_not_reached_its_limit_shows_as_drift_and_is_no_pass() {
    let mut queue = Queue::new("q-05");
    queue.objectives = vec![at_most(RequestMetric::Ttft, 0.99, 60_000_000_000)];
    let drifting = trials(&queue, rate(4.4), N_1000, 10);
    assert!(drifting.iter().all(|trial| trial.objectives[0].violations == 0));
    let seen = drifting.iter().filter(|trial| trial.drift.is_some_and(|drift| drift.drifting)).count();
    assert!(seen >= 6, "{seen} of 10");
    let mut passed = 0;
    for repetition in 1..=10 {
        let mut contract = queue.contract(rate(4.4), N_1000, 1_000 * repetition);
        contract.evidence.looks = vec![3];
        let result = rehearse(&contract, Plan::Check, |planned| queue.stage(planned, 0.0)).unwrap();
        passed += u32::from(overall(&result) == Status::Pass);
        if overall(&result) == Status::Unknown {
            assert_eq!(reason(&result, "ttft_p99"), "not_stationary");
        }
    }
    assert!(passed <= 1, "{passed} of 10 passed");
}

fn row<'a>(result: &'a RunResult, id: &str) -> &'a Check {
    let verdict = result.verdict.as_ref().unwrap();
    verdict.checks.iter().find(|check| check.id == id).unwrap_or_else(|| panic!("no row {id} in {verdict:#?}"))
}

fn reason(result: &RunResult, id: &str) -> &'static str {
    row(result, id).reason.code()
}

#[test]
fn what_the_idle_endpoint_breaks_is_infeasible() {
    let queue = Queue::new("q-17");
    let mut contract = queue.contract(rate(2.0), N_1000, 1);
    search(&mut contract, 0.2, 8.0, 0.05, 5);
    contract.slo.capacity = Some(rate(2.0));
    let result = rehearse(&contract, Plan::Release, |planned| queue.stage(planned, 0.0)).unwrap();
    assert_eq!(ends(&result), (None, Some(0.2)), "nothing held down to the lowest load");
    assert_eq!((overall(&result), reason(&result, "e2e_p99")), (Status::Fail, "infeasible_objective"));
    assert_eq!((row(&result, "capacity").status, reason(&result, "capacity")), (Status::Fail, "infeasible_objective"));
}

#[test]
fn a_range_that_holds_to_its_top_has_no_upper_end() {
    let mut queue = Queue::new("q-05");
    queue.objectives = vec![at_most(RequestMetric::Ttft, 0.99, 1_000_000_000)];
    let mut contract = queue.contract(rate(1.0), N_1000, 1);
    search(&mut contract, 0.5, 1.5, 0.05, 5);
    contract.slo.capacity = Some(rate(1.2));
    let result = rehearse(&contract, Plan::Release, |planned| queue.stage(planned, 0.0)).unwrap();
    assert_eq!(ends(&result), (Some(1.5), None));
    assert_eq!((row(&result, "capacity").status, overall(&result)), (Status::Pass, Status::Pass));
    // The floor above the range is not known to hold, and not known to break.
    contract.slo.capacity = Some(rate(2.0));
    let result = rehearse(&contract, Plan::Release, |planned| queue.stage(planned, 0.0)).unwrap();
    assert_eq!(row(&result, "capacity").status, Status::Unknown);
}

#[test]
fn a_range_that_breaks_at_its_bottom_has_no_lower_end() {
    let queue = Queue::new("q-05");
    let mut contract = queue.contract(rate(4.0), N_1000, 1);
    search(&mut contract, 3.8, 8.0, 0.05, 5);
    contract.slo.capacity = Some(rate(4.0));
    let result = rehearse(&contract, Plan::Release, |planned| queue.stage(planned, 0.0)).unwrap();
    assert_eq!(ends(&result), (None, Some(3.8)));
    assert_eq!((row(&result, "capacity").status, reason(&result, "capacity")), (Status::Fail, "broken"));
}

/// The interval of five searches with 10,000 requests, whose median run is within a few percent of the long run.
fn long_interval(queue: &Queue, to: f64) -> (f64, f64) {
    let counts = TrialCounts { warm_up: 300, window: 10_000, drain: 200 };
    let mut contract = queue.contract(rate(0.5 * queue.capacity), counts, 1);
    search(&mut contract, 0.2 * queue.capacity, to, 0.05, 5);
    let result = rehearse(&contract, Plan::Release, |planned| queue.stage(planned, 0.0)).unwrap();
    let (holds, breaks) = ends(&result);
    (holds.unwrap(), breaks.unwrap())
}

#[test]
fn refusals_and_failures_are_held_against_the_capacity() {
    for (id, to) in [("q-20", 20.0), ("q-22", 9.0)] {
        let queue = Queue::new(id);
        let (holds, breaks) = long_interval(&queue, to);
        assert!(holds <= 1.03 * queue.capacity && queue.capacity <= breaks, "{id}: {holds} {breaks}");
        assert!(breaks <= 1.35 * holds, "{id}: {holds} {breaks} are far apart");
    }
    // One request in 250 fails at any load.
    let mut queue = Queue::new("q-22");
    queue.objectives.push(Objective::SuccessRate { at_least: share(0.999) });
    let contract = queue.contract(rate(2.0), N_1000, 1);
    let result = rehearse(&contract, Plan::Check, |planned| queue.stage(planned, 0.0)).unwrap();
    assert_eq!((row(&result, "success_rate").status, overall(&result)), (Status::Fail, Status::Fail));
}

/// Refuses every request in a band of loads, and serves well below and above.
fn refuses_in_band(queue: &Queue, planned: &PlannedTrial) -> Stage {
    let mut stage = queue.stage(planned, 0.0);
    let at = planned.load.rate().unwrap().per_second();
    if (1.2..1.6).contains(&at) {
        let fault = json!({ "faults": [{ "when": { "every": 1 }, "what": { "kind": "refuse" } }] });
        stage.profile.faults = profile(&fault).faults;
    }
    stage
}

#[test]
fn a_load_that_holds_above_one_that_does_not_is_not_believed() {
    let queue = Queue::new("q-05");
    let mut contract = queue.contract(rate(0.9), N_1000, 1);
    if let goodput::contract::Traffic::Open { loads, .. } = &mut contract.traffic {
        *loads = vec![rate(0.9), rate(1.4), rate(1.9)];
    }
    for (plan, searched) in [(Plan::Check, false), (Plan::Baseline, true)] {
        if searched {
            search(&mut contract, 0.3, 8.0, 0.05, 5);
        }
        let result = rehearse(&contract, plan, |planned| refuses_in_band(&queue, planned)).unwrap();
        let (holds, breaks) = ends(&result);
        let capacity = result.capacity.as_ref().unwrap();
        assert!(capacity.non_monotone, "{plan:?}: {capacity:#?}");
        assert!((0.9..1.2).contains(&holds.unwrap()), "{plan:?}: {capacity:#?}");
        assert!(breaks.unwrap() >= 1.2, "{plan:?}: {capacity:#?}");
    }
}

/// From the tenth trial on the endpoint is as slow as one of half the capacity.
#[test]
fn an_endpoint_that_loses_capacity_during_the_run_does_not_pass_its_old_floor() {
    for slow_from in [4, 6, 10, 15, 20] {
        let queue = Queue::new("q-05");
        let mut contract = queue.contract(rate(1.0), N_1000, 1);
        search(&mut contract, 0.5, 8.0, 0.05, 5);
        contract.slo.capacity = Some(rate(2.0));
        let stage = |planned: &PlannedTrial| {
            let stage = queue.stage(planned, 0.0);
            let factor = if planned.trial >= slow_from { 2.0 } else { 1.0 };
            Stage { profile: stage.profile.slowed(factor), ..stage }
        };
        let result = rehearse(&contract, Plan::Release, stage).unwrap();
        assert_ne!(
            row(&result, "capacity").status,
            Status::Pass,
            "slow from trial {slow_from}: {:#?}",
            result.capacity
        );
        let capacity = result.capacity.as_ref().unwrap();
        assert!(capacity.changed || ends(&result).0.unwrap() < 2.0, "slow from trial {slow_from}: {capacity:#?}");
    }
}

/// Requests that wait out a stall are charged from when they were due: the figures of the open loop, not those of a client
/// that waits with it (method, section 13).
#[test]
fn stalls_are_charged_from_the_scheduled_arrival() {
    let file: Value = serde_json::from_str(include_str!("../fixtures/reference/coordinated_omission.json")).unwrap();
    for item in file["items"].as_array().unwrap() {
        let stall = |pair: &Value| {
            json!({ "when": { "from": format!("{}us", number(pair, "/0")) },
                "what": { "kind": "stall", "for": format!("{}us", number(pair, "/1")) } })
        };
        let faults: Vec<Value> = item["stalls_us"].as_array().unwrap().iter().map(stall).collect();
        for (slots, key) in [(1, "open_loop_serial_from_schedule"), (100_000, "open_loop_parallel_from_schedule")] {
            let service = json!({ "fixed": format!("{}us", number(item, "/service_us")) });
            let profile = profile(&json!({ "output_tokens": 1, "faults": faults,
                "model": { "kind": "slots", "slots": slots, "service": service } }));
            let found = open_loop_figures(item, profile);
            let wanted = &item[key];
            let wanted: Value =
                found.as_object().unwrap().keys().map(|key| (key.clone(), wanted[key].clone())).collect();
            assert_eq!(found, wanted, "{} {key}", item["id"]);
        }
    }
}

fn open_loop_figures(item: &Value, profile: Profile) -> Value {
    let at = rate(item["rate_per_s"].as_f64().unwrap());
    let counts =
        TrialCounts { warm_up: 0, window: number(item, "/rate_per_s") * number(item, "/duration_s"), drain: 0 };
    let load = Load::RateMilli(at);
    let shape = TrialShape::Open { process: ArrivalProcess::Constant, rate: at, counts };
    let planned = PlannedTrial { trial: 0, seed: 1, load, shape };
    let threshold = number(item, "/threshold_us") * 1_000;
    let mut contract = contract();
    contract.slo.objectives = [0.99, 0.999, 0.9999].map(|q| at_most(RequestMetric::E2e, q, threshold)).to_vec();
    let (trial, requests) = rehearse_trial(&contract.slo, &planned, Part::Step, Stage::new(profile)).unwrap();
    let micros = |nanos: Option<u64>| nanos.unwrap() / 1_000;
    let rare = |index: usize| micros(trial.objectives[index].quantile);
    let (over, rare_values) = (trial.objectives[0].violations, [rare(1), rare(2)]);
    let step = summarise_step(load, &[(trial, requests)], None);
    let e2e = step.metrics["e2e"];
    json!({ "count": e2e.count, "p50_us": micros(e2e.p50_ns), "p90_us": micros(e2e.p90_ns), "p95_us": micros(e2e.p95_ns),
        "p99_us": micros(e2e.p99_ns), "p99.9_us": rare_values[0], "p99.99_us": rare_values[1],
        "max_us": micros(e2e.max_ns), "over_threshold": over })
}
