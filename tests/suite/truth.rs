//! Whole runs through the real binary: the records must say what really happened.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::run::{Endpoint, Gate, Parallel, at};

/// Nearest rank: the ⌈q·n⌉-th smallest.
fn quantile(sorted: &[u64], parts_per_10_000: usize) -> u64 {
    sorted[(sorted.len() * parts_per_10_000).div_ceil(10_000) - 1]
}

fn latencies(server: &Parallel, arrivals: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut latencies: Vec<u64> = arrivals.map(|at| server.completion(at) - at).collect();
    latencies.sort_unstable();
    latencies
}

#[test]
fn the_parallel_server_is_the_one_of_the_reference() {
    let file: Value = serde_json::from_str(include_str!("../fixtures/reference/coordinated_omission.json")).unwrap();
    for item in file["items"].as_array().unwrap() {
        let number = |key: &str| item[key].as_u64().unwrap();
        let stall = |pair: &Value| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
        let server = Parallel {
            service: number("service_us"),
            stalls: item["stalls_us"].as_array().unwrap().iter().map(stall).collect(),
        };
        let rate = number("rate_per_s");
        let found = latencies(&server, (0..rate * number("duration_s")).map(|i| i * 1_000_000 / rate));
        let expected = &item["open_loop_parallel_from_schedule"];
        let above = found.iter().filter(|latency| **latency > number("threshold_us")).count();
        for (name, value) in [
            ("count", found.len() as u64),
            ("min_us", found[0]),
            ("max_us", *found.last().unwrap()),
            ("p50_us", quantile(&found, 5_000)),
            ("p90_us", quantile(&found, 9_000)),
            ("p95_us", quantile(&found, 9_500)),
            ("p99_us", quantile(&found, 9_900)),
            ("p99.9_us", quantile(&found, 9_990)),
            ("over_threshold", above as u64),
        ] {
            assert_eq!(expected[name], value, "{}: {name}", item["id"]);
        }
    }
}

/// The digest of a schedule: SHA-256 over its little-endian offsets (method, section 3.2).
fn digest(offsets: impl Iterator<Item = u64>) -> String {
    let mut digest = Sha256::new();
    offsets.for_each(|offset| digest.update(offset.to_le_bytes()));
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Equal gaps at 50/s: arrival `i` is due at `⌊i·10¹²/λ_milli⌋`.
fn due_at_50(arrival: u64) -> u64 {
    arrival * 1_000_000_000_000 / 50_000
}

/// Every planned arrival of the segments is recorded once, at its planned instant.
fn assert_planned(requests: &[&Value], warm_up: u64, window: u64) {
    let mut arrivals: Vec<u64> = requests.iter().map(|request| at(request, "arrival")).collect();
    arrivals.sort_unstable();
    let planned: Vec<u64> = (0..arrivals.len() as u64).collect();
    assert_eq!(arrivals, planned, "each once, none left out");
    assert!(arrivals.len() as u64 >= warm_up + window);
    for request in requests {
        let arrival = at(request, "arrival");
        assert_eq!(at(request, "scheduled_ns"), due_at_50(arrival));
        let segment = match arrival {
            arrival if arrival < warm_up => "warm_up",
            arrival if arrival < warm_up + window => "window",
            _ => "drain",
        };
        assert_eq!(request["segment"], segment, "arrival {arrival}");
    }
}

const MS: u64 = 1_000_000;

#[test]
fn a_stall_is_seen_as_long_as_it_was() {
    // Between two arrivals, so that it does not depend on a millisecond who was in service when it began.
    let parallel = Parallel { service: 5_000, stalls: vec![(5_010_000, 2_000_000)] };
    let endpoint = Endpoint::start(parallel.clone());
    let traffic = "{ model: constant, loads: [50/s], trial: { requests: 500, warm_up: 1s, drain: 3s } }";
    let slo = "{ request: { e2e: 3s }, objectives: [{ metric: e2e, percentile: 90, at_most: 3s }], at_load: 50/s }";
    let run = Gate::start(&endpoint, traffic, slo).finish();
    assert_planned(&run.of_trial(0), 50, 500);
    // 100 arrivals are due in the stall, and all of them are there before it ends.
    let most = endpoint.seen(|seen| seen.most_open);
    assert!(most >= 95, "only {most} in flight");

    let expected = latencies(&parallel, (50..550).map(|arrival| due_at_50(arrival) / 1_000));
    // The closed form: the share of requests above y is (d + s − y) / D.
    for y in [505_000, 1_005_000, 1_505_000] {
        let above = expected.iter().filter(|latency| **latency > y).count() as u64;
        assert_eq!(above, (2_005_000 - y) * 500 / 10_000_000);
    }
    let health = &run.trial(0)["health"];
    let slack = 2 * MS
        + at(&health["send_lag"], "max_ns")
        + at(&health["runtime_lag"], "max_ns")
        + endpoint.seen(|seen| seen.latest.as_nanos() as u64);
    for metric in ["ttft", "e2e"] {
        let quantiles = &run.result["steps"][0]["metrics"][metric];
        assert_eq!(at(quantiles, "count"), 500);
        for (name, part) in
            [("p50_ns", 5_000), ("p90_ns", 9_000), ("p95_ns", 9_500), ("p99_ns", 9_900), ("max_ns", 10_000)]
        {
            let (found, expected) = (at(quantiles, name), quantile(&expected, part) * 1_000);
            assert!(
                found.abs_diff(expected) <= slack,
                "{metric} {name} is {found}, expected {expected} within {slack}; {health}"
            );
        }
    }
}

#[test]
fn the_load_goes_on_until_the_window_is_decided() {
    let endpoint = Endpoint::start(Parallel { service: 500_000, stalls: Vec::new() });
    let traffic = "{ model: constant, loads: [50/s], trial: { requests: 100, warm_up: 1s, drain: 3s } }";
    let slo = "{ objectives: [{ metric: e2e, percentile: 50, at_most: 3s }], at_load: 50/s }";
    let run = Gate::start(&endpoint, traffic, slo).finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let requests = run.of_trial(0);
    assert_planned(&requests, 50, 100);
    // The last request of the window takes half a second, in which 25 more are due; 150 were planned.
    let drain = requests.len() - 150;
    assert!((20..=75).contains(&drain), "{drain} arrivals in the drain");
    let ids = endpoint.seen(|seen| seen.ids.clone());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "every request has an id of its own");
    let mut arrivals = endpoint.seen(|seen| seen.arrivals(0));
    arrivals.sort_unstable();
    assert_eq!(arrivals, (0..requests.len() as u64).collect::<Vec<_>>(), "what was recorded was sent");
    // A request belongs to where it was scheduled, however long it takes.
    let late = requests.iter().filter(|r| r["segment"] == "window" && at(r, "finished_ns") > due_at_50(150)).count();
    assert!(late >= 20, "{late} requests of the window finished after it");
    assert_eq!(run.trial(0)["window"]["scheduled"], 100);
    assert_eq!(run.trial(0)["window"]["decided"], 100);
    // The digest is over the whole plan, drain included.
    assert_eq!(run.trial(0)["schedule_digest"], digest((0..300).map(due_at_50)));
}

#[test]
fn a_generator_that_stood_still_decides_nothing() {
    let endpoint = Endpoint::start(Parallel::default());
    let traffic = "{ model: constant, loads: [50/s], trial: { requests: 150, warm_up: 1s, drain: 1s } }";
    let slo = "{ request: { ttft: 1s }, objectives: [{ metric: ttft, percentile: 90, at_most: 1s }, \
               { metric: success_rate, at_least: 90% }], at_load: 50/s }";
    let mut gate = Gate::start(&endpoint, traffic, slo);
    // A void trial is repeated once, so the generator stands still in the repetition too.
    for trial in 0..2 {
        assert!(endpoint.wait_for(trial, 100, &mut gate.child), "no repetition came");
        gate.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(300));
        gate.signal(Signal::SIGCONT);
    }
    let run = gate.finish();
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert_eq!(run.result["verdict"]["overall"], "UNKNOWN");
    let checks = run.result["verdict"]["checks"].as_array().unwrap();
    assert_eq!(run.check("load_generator")["reason"], "generator_saturated");
    // Which process served is known all the same.
    for check in checks.iter().filter(|check| check["id"] != "endpoint_process") {
        assert_eq!(check["status"], "UNKNOWN", "{check:#}");
    }
    for trial in 0..2 {
        let requests = run.of_trial(trial);
        assert_planned(&requests, 50, 150);
        // Fifteen arrivals were due meanwhile. They were sent late, and their wait is inside their TTFT.
        let wait = |request: &Value, until: &str| at(request, until) - at(request, "scheduled_ns");
        let late: Vec<_> = requests.iter().filter(|request| wait(request, "sent_ns") > 50 * MS).collect();
        assert!(late.len() >= 10, "{} late requests in trial {trial}", late.len());
        assert!(late.iter().all(|request| wait(request, "first_output_ns") >= wait(request, "sent_ns")));
        assert!(late.iter().any(|request| wait(request, "first_output_ns") > 250 * MS));
    }
}

#[test]
fn clients_of_a_closed_loop_ask_one_after_the_other() {
    let endpoint = Endpoint::start(Parallel { service: 50_000, stalls: Vec::new() });
    let traffic = "{ model: closed, concurrency: [4], trial: { warm_up: 500ms, window: 2s, drain: 500ms } }";
    let slo = "{ objectives: [{ metric: success_rate, at_least: 50% }], at_concurrency: 4 }";
    let run = Gate::start(&endpoint, traffic, slo).finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(endpoint.seen(|seen| seen.most_open), 4, "as many as there are clients, and never more");
    // One to see it ready, one for each client, and once more each until the server has kept one open for a while.
    assert!(endpoint.server.accepted() <= 13, "{} connections", endpoint.server.accepted());
    let requests = run.of_trial(0);
    let sorted = |field: &str| {
        let mut times: Vec<u64> = requests.iter().map(|request| at(request, field)).collect();
        times.sort_unstable();
        times
    };
    let (free, finished) = (sorted("scheduled_ns"), sorted("finished_ns"));
    // A client is free when its request is finished: all but the first four follow upon an end, and at once.
    let mut gaps: Vec<u64> =
        free[4..].iter().zip(&finished).map(|(free, finished)| free.checked_sub(*finished).unwrap()).collect();
    gaps.sort_unstable();
    assert!(quantile(&gaps, 5_000) < 10 * MS, "{gaps:?}");
    for request in &requests {
        let segment = match at(request, "scheduled_ns") {
            at if at < 500 * MS => "warm_up",
            at if at < 2_500 * MS => "window",
            _ => "drain",
        };
        assert_eq!(request["segment"], segment, "{request}");
    }
}

#[test]
fn more_open_requests_than_files_are_unsent_and_decide_nothing() {
    let endpoint = Endpoint::start(Parallel { service: 2_000_000, stalls: Vec::new() });
    let traffic = "{ model: constant, loads: [50/s], trial: { requests: 100, warm_up: 1s, drain: 3s } }";
    let slo = "{ request: { e2e: 3s }, objectives: [{ metric: e2e, percentile: 50, at_most: 3s }], at_load: 50/s }";
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 40; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_goodput")]);
    let run = Gate::spawn(&endpoint, traffic, slo, command).finish();
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert_planned(&run.of_trial(0), 50, 100);
    assert_eq!(run.check("load_generator")["reason"], "generator_saturated");
    let unsent: Vec<_> = run.requests.iter().filter(|request| request["outcome"] == "unsent").collect();
    assert!(unsent.len() >= 50, "{} unsent", unsent.len());
    for request in unsent {
        assert_eq!((&request["sent_ns"], &request["first_output_ns"]), (&Value::Null, &Value::Null));
        assert!(request["error"].as_str().unwrap().contains("open files"), "{request}");
    }
    assert!(run.requests.iter().all(|request| request["outcome"] == "ok" || request["outcome"] == "unsent"));
}
