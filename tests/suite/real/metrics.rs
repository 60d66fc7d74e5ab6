//! The metrics page of a real server, read by the ready-made set for it, held against what was asked of the server.

use std::path::PathBuf;
use std::thread::{self, sleep};
use std::time::Duration;

use goodput::contract::{Across, MetricsPage, Preset, Probe, PrometheusSource, Source};
use goodput::probe::{Context, Prober};
use goodput::record::Reading;
use serde_json::json;

use super::Real;

/// llama.cpp's own server.
const SERVER: &str = "GOODPUT_REAL";

/// Longer than a reading can take; only a hang meets it.
const HANG: Duration = Duration::from_secs(30);

/// Reads one number off the server's page, as often as asked.
struct Page {
    runtime: tokio::runtime::Runtime,
    prober: Prober,
}

impl Page {
    fn of(probe: &Probe, across: Across) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let context = Context { folder: PathBuf::from("/"), endpoint: None, port: 1 };
        let prober = Prober::new(probe, across, &context);
        Self { runtime, prober }
    }

    fn read(&mut self) -> Reading {
        self.runtime.block_on(self.prober.read())
    }

    fn number(&mut self) -> f64 {
        let reading = self.read();
        reading.value.unwrap_or_else(|| panic!("{reading:?}"))
    }

    /// Reads until this number is there.
    fn becomes(&mut self, expected: f64) -> bool {
        (0..200).any(|_| {
            let is_there = (self.number() - expected).abs() < 0.5;
            if !is_there {
                sleep(Duration::from_millis(20));
            }
            is_there
        })
    }
}

fn metrics_page(real: &Real) -> MetricsPage {
    MetricsPage { url: format!("{}/metrics", real.url).parse().unwrap(), headers: Vec::new(), ca_file: None }
}

fn counter(real: &Real, name: &str) -> Page {
    let source = PrometheusSource {
        page: metrics_page(real),
        metrics: vec![name.to_owned()],
        labels: std::collections::BTreeMap::new(),
    };
    Page::of(&Probe { source: Source::Prometheus(source), timeout: HANG }, Across::Sum)
}

/// A reading of the ready-made set.
fn of_set(real: &Real, name: &str) -> Page {
    let resources = Preset::LlamaCpp.resources(Some(&metrics_page(real)), Duration::from_secs(1), HANG);
    let resource = resources.iter().find(|resource| resource.name == name).expect("a resource of that name");
    Page::of(&resource.probe, resource.across)
}

fn complete(real: &Real, tokens: u64) {
    let asked = json!({ "model": real.model, "prompt": "one two three", "max_tokens": tokens, "temperature": 0 });
    real.post("/v1/completions", &asked);
}

#[test]
fn counters_rise_by_what_was_asked_and_say_since_when_they_count() {
    let Some(real) = Real::server(SERVER) else { return };
    let mut predicted = counter(&real, "llamacpp:tokens_predicted_total");
    let mut prompts = counter(&real, "llamacpp:prompt_tokens");
    let (before, before_prompts) = (predicted.number(), prompts.number());
    let (requests, tokens) = (3, 7);
    for _ in 0..requests {
        complete(&real, tokens);
    }
    // The server counts a request when it has closed it. Neither model ends before `max_tokens`.
    assert!(predicted.becomes(before + (requests * tokens) as f64), "{} + 21, not {}", before, predicted.number());
    // As many for each: the prompt is the same.
    let rise = prompts.number() - before_prompts;
    assert!(rise >= requests as f64 && rise.rem_euclid(requests as f64) < 0.5, "{rise}");
    let since = |reading: Reading| reading.series[0].since.clone();
    let (first, second) = (since(predicted.read()), since(predicted.read()));
    assert!(first.is_some() && first == second, "the server says when it started: {first:?}, {second:?}");
}

#[test]
fn the_ready_made_set_shows_a_request_while_it_runs_and_nothing_for_what_is_not_told() {
    let Some(real) = Real::server(SERVER) else { return };
    let mut running = of_set(&real, "requests_running");
    assert!(running.becomes(0.0), "nobody else asks this server");
    assert_eq!(of_set(&real, "requests_waiting").number().to_bits(), 0.0_f64.to_bits());
    thread::scope(|scope| {
        let asked = scope.spawn(|| complete(&real, 1_500));
        assert!(running.becomes(1.0), "it shows the request that runs");
        asked.join().unwrap();
    });
    assert!(running.becomes(0.0), "it shows that the request has ended");

    let unknown = of_set(&real, "kv_cache_usage").read();
    assert_eq!((unknown.value, unknown.series.len()), (None, 0));
    let why = unknown.failure.unwrap();
    assert!(why.contains("/metrics holds no metric `llamacpp:kv_cache_usage_ratio`"), "{why}");
}
