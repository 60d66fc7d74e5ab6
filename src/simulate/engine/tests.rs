//! The engine in virtual time, against the reference runs and closed forms.

use serde_json::{Value, json};

use super::*;
use crate::schedule::{ArrivalProcess, TrialCounts, open_loop};
use crate::simulate::profile::parse_profile;
use crate::units::{Rate, Share};

const REFERENCE: &str = include_str!("../../../tests/fixtures/reference/queueing_scenarios.json");
const OMISSION: &str = include_str!("../../../tests/fixtures/reference/coordinated_omission.json");

/// First and last token of each request, by id; `None` for refused ones.
fn run(profile: &Value, jobs: &[(u64, u32, u32)], stalls: &[(u64, u64)]) -> Vec<Option<(u64, u64)>> {
    let mut engine = Engine::new(&parse_profile(&profile.to_string()).expect("a profile"));
    let mut stalls = stalls.iter().copied().peekable();
    let mut times = vec![None; jobs.len()];
    let mut out = Vec::new();
    let mut collect = |out: &mut Vec<Emission>| {
        for emission in out.drain(..) {
            let (first, last) = times[emission.id as usize].get_or_insert((emission.at_ns, emission.at_ns));
            *first = (*first).min(emission.at_ns);
            *last = (*last).max(emission.at_ns);
        }
    };
    for (id, (at_ns, prompt_tokens, output_tokens)) in jobs.iter().copied().enumerate() {
        while let Some((from, length)) = stalls.next_if(|(from, _)| *from < at_ns) {
            engine.advance(from, &mut out);
            engine.stall(from, length);
        }
        engine.advance_before(at_ns, &mut out);
        let _ = engine.arrive(at_ns, Job { id: id as u64, prompt_tokens, output_tokens });
        collect(&mut out);
    }
    engine.advance(u64::MAX - 1, &mut out);
    collect(&mut out);
    times
}

fn runs(engine: &str) -> Vec<Value> {
    let reference: Value = serde_json::from_str(REFERENCE).expect("JSON");
    let runs = reference["exact_runs"].as_array().expect("runs");
    runs.iter().filter(|run| run["engine"] == engine).cloned().collect()
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn quantile(values: &[u64], percent: &str) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[Share::parse(percent).expect("a share").nearest_rank(sorted.len() as u64) as usize - 1]
}

fn counts(run: &Value) -> TrialCounts {
    TrialCounts {
        warm_up: number(run, "/arrivals/warmup"),
        window: number(run, "/arrivals/measured"),
        drain: number(run, "/arrivals/cooldown"),
    }
}

fn offsets(run: &Value, rate_milli: u64) -> Vec<u64> {
    let process =
        if run["arrivals"]["kind"] == "constant" { ArrivalProcess::Constant } else { ArrivalProcess::Poisson };
    let rate = Rate::from_milli(rate_milli).expect("a rate");
    let schedule = open_loop(process, rate, counts(run), number(run, "/arrivals/seed"));
    schedule.arrivals().iter().map(|arrival| arrival.offset_ns).collect()
}

/// Waits of the measured arrivals under `c` servers with constant service; two tokens, so that the first marks the start.
fn waits(run_of: &Value, rate_milli: u64) -> Vec<u64> {
    let service = format!("{}ns", number(run_of, "/params/service_ns"));
    let profile =
        json!({ "model": { "kind": "slots", "slots": run_of["params"]["c"], "service": { "fixed": service } } });
    let offsets = offsets(run_of, rate_milli);
    let jobs: Vec<_> = offsets.iter().map(|at_ns| (*at_ns, 1, 2)).collect();
    let times = run(&profile, &jobs, &[]);
    let range = counts(run_of).warm_up as usize..(counts(run_of).warm_up + counts(run_of).window) as usize;
    range.map(|i| times[i].expect("served").0 - offsets[i]).collect()
}

#[test]
fn servers_with_constant_service_equal_the_reference() {
    let runs: Vec<Value> = runs("D/D/c").into_iter().chain(runs("M/D/c")).collect();
    assert_eq!(runs.len(), 4);
    for run in &runs {
        let threshold = number(run, "/objective/threshold_ns");
        let violations = |waits: &[u64]| waits.iter().filter(|wait| **wait > threshold).count() as u64;
        for row in run["table"].as_array().expect("a table") {
            let waits = waits(run, number(row, "/rate_milli"));
            let mut found = json!({ "rate_milli": row["rate_milli"], "violations": violations(&waits),
                "max_wait_ns": waits.iter().max(), "wait_p50_ns": quantile(&waits, "50%"),
                "wait_p99_ns": quantile(&waits, "99%") });
            if row.get("wait_p95_ns").is_some() {
                found["wait_p95_ns"] = json!(quantile(&waits, "95%"));
            }
            assert_eq!(&found, row, "{}", run["id"]);
        }
        if let Some(capacity) = run["workload_capacity_milli"].as_u64() {
            assert_eq!(violations(&waits(run, capacity)), number(run, "/violations_at_capacity"), "{}", run["id"]);
            assert_eq!(violations(&waits(run, capacity + 1)), number(run, "/violations_one_above"), "{}", run["id"]);
        }
    }
}

/// The lengths of one kind: one word per request from the stated stream.
fn lengths(run: &Value, kind: &str, requests: usize) -> Vec<u32> {
    let lengths = &run["lengths"][kind];
    let mut words = Words::new(number(run, "/arrivals/seed"), number(lengths, "/stream"));
    let (low, high) = (number(lengths, "/lo"), number(lengths, "/hi"));
    (0..requests).map(|_| (low + words.next_below(high - low + 1)) as u32).collect()
}

fn step_row(run_of: &Value, rate_milli: u64) -> Value {
    let nanos = |key: &str| format!("{}ns", number(&run_of["params"], key));
    let profile = json!({ "model": { "kind": "batch", "slots": run_of["params"]["batch"],
        "step_base": nanos("/alpha_ns"), "step_per_request": nanos("/beta_ns"),
        "prefill_per_token": nanos("/gamma_ns_per_prompt_token") } });
    let offsets = offsets(run_of, rate_milli);
    let prompts = lengths(run_of, "prompt_tokens", offsets.len());
    let outputs = lengths(run_of, "output_tokens", offsets.len());
    let jobs: Vec<_> = (0..offsets.len()).map(|i| (offsets[i], prompts[i], outputs[i])).collect();
    let times = run(&profile, &jobs, &[]);
    let (mut ttft, mut e2e, mut tpot) = (Vec::new(), Vec::new(), Vec::new());
    let start = counts(run_of).warm_up as usize;
    for i in start..start + counts(run_of).window as usize {
        let (first, last) = times[i].expect("served");
        ttft.push(first - offsets[i]);
        e2e.push(last - offsets[i]);
        tpot.push((last - first) / u64::from(outputs[i] - 1));
    }
    let over = |values: &[u64], index: usize| -> Vec<bool> {
        let threshold = number(run_of, &format!("/objectives/{index}/threshold_ns"));
        values.iter().map(|value| *value > threshold).collect()
    };
    let (late, long, slow) = (over(&ttft, 0), over(&e2e, 1), over(&tpot, 2));
    let count = |flags: &[bool]| flags.iter().filter(|flag| **flag).count();
    let good = (0..late.len()).filter(|i| !(late[*i] || long[*i] || slow[*i])).count();
    json!({ "rate_milli": rate_milli, "ttft_violations": count(&late), "e2e_violations": count(&long),
        "tpot_violations": count(&slow), "good": good, "ttft_p50_ns": quantile(&ttft, "50%"),
        "ttft_p99_ns": quantile(&ttft, "99%"), "e2e_p95_ns": quantile(&e2e, "95%"),
        "tpot_p99_ns": quantile(&tpot, "99%") })
}

#[test]
fn the_step_engine_with_prefill_equals_the_reference_in_every_field() {
    let runs = runs("step");
    assert_eq!(runs.len(), 3);
    for run in &runs {
        for row in run["table"].as_array().expect("a table") {
            assert_eq!(&step_row(run, number(row, "/rate_milli")), row, "{}", run["id"]);
        }
    }
}

#[test]
fn a_stall_suspends_work_as_the_reference_says() {
    let reference: Value = serde_json::from_str(OMISSION).expect("JSON");
    for item in reference["items"].as_array().expect("items") {
        let (rate, seconds) = (number(item, "/rate_per_s"), number(item, "/duration_s"));
        let service = format!("{}us", number(item, "/service_us"));
        let stalls: Vec<(u64, u64)> = item["stalls_us"]
            .as_array()
            .expect("stalls")
            .iter()
            .map(|stall| (number(stall, "/0") * 1_000, number(stall, "/1") * 1_000))
            .collect();
        let jobs: Vec<_> = (0..rate * seconds).map(|i| (i * 1_000_000 / rate * 1_000, 1, 1)).collect();
        for (slots, key) in [(1, "open_loop_serial_from_schedule"), (1_000_000, "open_loop_parallel_from_schedule")] {
            let expected = &item[key];
            let profile = json!({ "model": { "kind": "slots", "slots": slots, "service": { "fixed": service } } });
            let times = run(&profile, &jobs, &stalls);
            let latencies: Vec<u64> =
                times.iter().zip(&jobs).map(|(time, job)| (time.expect("served").1 - job.0) / 1_000).collect();
            let threshold = number(item, "/threshold_us");
            let over = latencies.iter().filter(|latency| **latency > threshold).count();
            let found = [
                quantile(&latencies, "50%"),
                quantile(&latencies, "99%"),
                quantile(&latencies, "99.9%"),
                quantile(&latencies, "100%"),
                over as u64,
            ];
            let wanted = ["/p50_us", "/p99_us", "/p99.9_us", "/max_us", "/over_threshold"].map(|p| number(expected, p));
            assert_eq!(found, wanted, "{} {key}", item["id"]);
        }
    }
}

#[test]
fn exponential_servers_come_close_to_the_closed_forms() {
    // M/M/1 with μ = 10, λ = 5: P(sojourn > t) = exp(−5t). M/M/1/20 at λ = 10: a refusal has probability 1/21.
    let poisson = |rate: u64| {
        let counts = TrialCounts { warm_up: 1_000, window: 60_000, drain: 0 };
        open_loop(ArrivalProcess::Poisson, Rate::from_milli(rate).expect("a rate"), counts, 4)
    };
    let jobs = |rate: u64| -> Vec<_> { poisson(rate).arrivals().iter().map(|a| (a.offset_ns, 1, 1)).collect() };
    let model = json!({ "kind": "slots", "slots": 1, "service": { "exponential": "100ms" } });
    let arrivals = jobs(5_000);
    let times = run(&json!({ "seed": 9, "model": model }), &arrivals, &[]);
    let late = times
        .iter()
        .zip(&arrivals)
        .skip(1_000)
        .filter(|(time, job)| time.expect("served").1 - job.0 > 400_000_000)
        .count();
    let share = late as f64 / 60_000.0;
    assert!((share - (-2.0f64).exp()).abs() < 0.012, "P(sojourn > 0.4 s) = {share}");
    let arrivals = jobs(10_000);
    let times = run(&json!({ "seed": 9, "model": model, "queue": { "limit": 19 } }), &arrivals, &[]);
    let refused = times.iter().skip(1_000).filter(|time| time.is_none()).count() as f64 / 60_000.0;
    assert!((refused - 1.0 / 21.0).abs() < 0.01, "refused {refused}");
}

fn small(extra: Value) -> Engine {
    let mut model = json!({ "kind": "batch", "slots": 2, "step_base": "10ns" });
    model.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
    Engine::new(&parse_profile(&json!({ "model": model, "queue": { "limit": 1 } }).to_string()).expect("a profile"))
}

fn job(id: u64, output_tokens: u32) -> Job {
    Job { id, prompt_tokens: 4, output_tokens }
}

#[test]
fn cancelled_requests_free_their_slot_at_the_next_step() {
    let mut engine = small(json!({}));
    let mut out = Vec::new();
    for id in 0..3 {
        engine.arrive(0, job(id, 100)).expect("room");
        engine.advance(0, &mut out);
    }
    // The first alone begins the first step; the second joins with the next one, the third waits.
    engine.advance(15, &mut out);
    assert_eq!(engine.occupancy(), Occupancy { running: 2, waiting: 1, kv_used: 208, kv_tokens: None });
    assert_eq!(engine.arrive(15, job(3, 1)), Err(Refusal::QueueFull));
    engine.cancel(0);
    engine.advance(29, &mut out);
    assert_eq!(out.iter().map(|e| (e.at_ns, e.id)).collect::<Vec<_>>(), [(10, 0), (20, 1)]);
    assert_eq!((engine.occupancy().running, engine.occupancy().waiting), (2, 0));
}

#[test]
fn the_cache_bounds_the_batch_and_refuses_what_never_fits() {
    let mut engine = small(json!({ "kv_tokens": 20 }));
    let mut out = Vec::new();
    assert_eq!(engine.arrive(0, job(9, 17)), Err(Refusal::TooLarge));
    engine.arrive(0, job(0, 8)).expect("room");
    engine.arrive(0, job(1, 6)).expect("room");
    engine.advance(75, &mut out);
    assert_eq!(engine.occupancy(), Occupancy { running: 1, waiting: 1, kv_used: 12, kv_tokens: Some(20) });
    engine.advance(95, &mut out);
    assert_eq!(out.last().map(|e| (e.id, e.at_ns)), Some((1, 90)));
}

#[test]
fn jitter_is_seeded_and_stays_within_its_share() {
    let steps = |seed: u64| -> Vec<u64> {
        let profile =
            json!({ "seed": seed, "model": { "kind": "batch", "slots": 1, "step_base": "1ms", "jitter": "10%" } });
        let mut engine = Engine::new(&parse_profile(&profile.to_string()).expect("a profile"));
        let mut out = Vec::new();
        engine.arrive(0, job(0, 200)).expect("room");
        engine.advance(u64::MAX - 1, &mut out);
        out.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect()
    };
    let gaps = steps(1);
    assert_eq!(gaps, steps(1));
    assert_ne!(gaps, steps(2));
    assert!(gaps.iter().all(|gap| (900_000..=1_100_000).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().max() > gaps.iter().min());
}
