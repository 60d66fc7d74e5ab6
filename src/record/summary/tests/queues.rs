//! Queues whose answer is known, driven through the same schedule, record and summary code as a real endpoint.

use std::collections::VecDeque;

use serde_json::Value;

use super::*;
use crate::schedule::{ArrivalProcess, Schedule, Words, open_loop};

fn exact_runs(engine: &[&str]) -> Vec<Value> {
    let file: Value =
        serde_json::from_str(include_str!("../../../../tests/fixtures/reference/queueing_scenarios.json")).unwrap();
    let runs = file["exact_runs"].as_array().unwrap().iter();
    runs.filter(|run| engine.contains(&run["engine"].as_str().unwrap())).cloned().collect()
}

/// Servers with constant service, first come first served: TTFT is the wait.
fn constant_service(schedule: &Schedule, servers: usize, service_ns: u64) -> Vec<RequestRecord> {
    let mut free = vec![0u64; servers];
    let arrivals = schedule.arrivals().iter();
    arrivals
        .map(|arrival| {
            let server = free.iter_mut().min().unwrap();
            let begin = (*server).max(arrival.offset_ns);
            *server = begin + service_ns;
            reply(arrival.offset_ns, arrival.segment, begin, begin + service_ns, 2)
        })
        .collect()
}

/// The reference's step-wise batching engine.
fn batching(schedule: &Schedule, params: &Value, lengths: &Value, seed: u64) -> Vec<RequestRecord> {
    let parameter = |key: &str| params[key].as_u64().unwrap();
    let lengths_of = |key: &str| -> Vec<u64> {
        let (lo, hi) = (lengths[key]["lo"].as_u64().unwrap(), lengths[key]["hi"].as_u64().unwrap());
        let mut words = Words::new(seed, lengths[key]["stream"].as_u64().unwrap());
        let draw = |_| lo + words.next_below(hi - lo + 1);
        (0..schedule.arrivals().len()).map(draw).collect()
    };
    let (output, prompt) = (lengths_of("output_tokens"), lengths_of("prompt_tokens"));
    let offsets: Vec<u64> = schedule.arrivals().iter().map(|arrival| arrival.offset_ns).collect();
    let mut waiting: VecDeque<usize> = (0..offsets.len()).collect();
    let (mut batch, mut now): (Vec<(usize, u64)>, u64) = (Vec::new(), 0);
    let mut times = vec![(0u64, 0u64); offsets.len()];
    while !(batch.is_empty() && waiting.is_empty()) {
        if batch.is_empty() {
            now = now.max(offsets[waiting[0]]);
        }
        let mut admitted_prompt = 0;
        while let Some(&next) = waiting.front()
            && offsets[next] <= now
            && (batch.len() as u64) < parameter("batch")
        {
            waiting.pop_front();
            admitted_prompt += prompt[next];
            batch.push((next, 0));
        }
        now += parameter("alpha_ns")
            + parameter("beta_ns") * batch.len() as u64
            + parameter("gamma_ns_per_prompt_token") * admitted_prompt;
        for (request, tokens) in &mut batch {
            *tokens += 1;
            if *tokens == 1 {
                times[*request].0 = now;
            }
            times[*request].1 = now;
        }
        batch.retain(|(request, tokens)| *tokens < output[*request]);
    }
    let requests = schedule.arrivals().iter().zip(times).zip(output);
    requests.map(|((a, (first, last)), tokens)| reply(a.offset_ns, a.segment, first, last, tokens)).collect()
}

fn counts(arrivals: &Value) -> TrialCounts {
    let count = |key: &str| arrivals[key].as_u64().unwrap_or(0);
    TrialCounts { warm_up: count("warmup"), window: count("measured"), drain: count("cooldown") }
}

#[test]
fn known_queues_give_the_counts_and_quantiles_of_the_reference() {
    for run in exact_runs(&["D/D/c", "M/D/c"]) {
        let process = if run["engine"] == "D/D/c" { ArrivalProcess::Constant } else { ArrivalProcess::Poisson };
        let (planned, seed) = (counts(&run["arrivals"]), run["arrivals"]["seed"].as_u64().unwrap_or(0));
        let limit = run["objective"]["threshold_ns"].as_u64().unwrap();
        let slo = slo(vec![percentile(RequestMetric::Ttft, 990_000, limit)], RequestLimits::default());
        for row in run["table"].as_array().unwrap() {
            let at = rate(row["rate_milli"].as_u64().unwrap());
            let schedule = open_loop(process, at, planned, seed);
            let servers = run["params"]["c"].as_u64().unwrap() as usize;
            let records = constant_service(&schedule, servers, run["params"]["service_ns"].as_u64().unwrap());
            let accumulator = accumulate(&slo.request, records);
            let load = Load::RateMilli(at);
            let trial = summarise_trial(&slo, &facts(load, Some(planned), schedule.window_ns()), &accumulator);
            let evidence = trial.objectives[0].clone();
            assert_eq!((Some(evidence.violations), evidence.n), (row["violations"].as_u64(), 1_000), "{row}");
            assert_eq!(evidence.quantile, row["wait_p99_ns"].as_u64(), "{row}");
            let step = summarise_step(load, &[(trial, accumulator)], None);
            let waits = step.metrics["ttft"];
            assert_eq!(waits.p50_ns, row["wait_p50_ns"].as_u64(), "{row}");
            assert_eq!(waits.max_ns, row["max_wait_ns"].as_u64(), "{row}");
            assert!(row["wait_p95_ns"].is_null() || waits.p95_ns == row["wait_p95_ns"].as_u64(), "{row}");
            assert_eq!(step.attainment, Some(Share::ONE), "there are no request limits");
        }
    }
}

#[test]
fn the_batching_engine_gives_every_field_of_the_reference() {
    for run in exact_runs(&["step"]) {
        let (planned, seed) = (counts(&run["arrivals"]), run["arrivals"]["seed"].as_u64().unwrap());
        let limit = |i: usize| run["objectives"][i]["threshold_ns"].as_u64().unwrap();
        let limits = RequestLimits::from_iter([
            (RequestMetric::Ttft, limit(0)),
            (RequestMetric::E2e, limit(1)),
            (RequestMetric::Tpot, limit(2)),
        ]);
        let objectives = vec![
            percentile(RequestMetric::Ttft, 990_000, limit(0)),
            percentile(RequestMetric::E2e, 950_000, limit(1)),
            percentile(RequestMetric::Tpot, 990_000, limit(2)),
            Objective::Attainment { at_least: share(990_000) },
        ];
        let slo = slo(objectives, limits);
        for row in run["table"].as_array().unwrap() {
            let at = rate(row["rate_milli"].as_u64().unwrap());
            let schedule = open_loop(ArrivalProcess::Poisson, at, planned, seed);
            let accumulator = accumulate(&limits, batching(&schedule, &run["params"], &run["lengths"], seed));
            let load = Load::RateMilli(at);
            let trial = summarise_trial(&slo, &facts(load, Some(planned), schedule.window_ns()), &accumulator);
            for (index, key) in ["ttft_violations", "e2e_violations", "tpot_violations"].iter().enumerate() {
                assert_eq!(Some(trial.objectives[index].violations), row[key].as_u64(), "{key} {row}");
            }
            let good = row["good"].as_u64();
            assert_eq!(trial.window.good, good, "{row}");
            assert_eq!(Some(1_000 - trial.objectives[3].violations), good, "{row}");
            let step = summarise_step(load, &[(trial, accumulator)], None);
            for (metric, key, got) in [
                ("ttft", "ttft_p50_ns", step.metrics["ttft"].p50_ns),
                ("ttft", "ttft_p99_ns", step.metrics["ttft"].p99_ns),
                ("e2e", "e2e_p95_ns", step.metrics["e2e"].p95_ns),
                ("tpot", "tpot_p99_ns", step.metrics["tpot"].p99_ns),
            ] {
                assert_eq!(got, row[key].as_u64(), "{metric} {row}");
            }
            let goodput = good.unwrap() as f64 / 1_000.0 * at.per_second();
            assert!((step.goodput.unwrap() - goodput).abs() < 1e-6, "attainment times offered load");
            assert!((step.offered.unwrap() - at.per_second()).abs() < 1e-6);
        }
    }
}
