//! Resources sampled while a real trial runs: what is told of a load whose truth is known, and that no source disturbs it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use goodput::contract::{
    Across, CommandSource, Contract, MetricsPage, Probe, PrometheusSource, Resource, ResourceKind, ResourceUnit,
    Source, parse,
};
use goodput::drive::{Clock, Lane, Pool, Progress, Target, run_trial};
use goodput::probe::{Context, Sampled, Sampler};
use goodput::record::{
    RecordSink, RequestRecord, ResourceRecord, ResourceSample, StepRecord, TrialRecord, resource_records,
    summarise_step, summarise_trial,
};
use goodput::schedule::{ArrivalProcess, PlannedTrial, TrialCounts, TrialShape};
use goodput::simulate::{Server, parse_profile};
use goodput::units::{Load, Rate};
use goodput::workload::{Case, Shape, Workload};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use crate::client::HANG;
use crate::scene::{Contract as Written, SIMULATED, Scene, assert_valid, read};

/// A simulated endpoint in this process.
struct Simulated {
    base: String,
    _stop: DropGuard,
}

impl Simulated {
    async fn start(profile: &Value) -> Self {
        let profile = parse_profile(&profile.to_string()).unwrap();
        let server = Server::bind(profile, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None).await.unwrap();
        let (base, stop) = (format!("http://{}", server.local_addr()), CancellationToken::new());
        tokio::spawn(server.run(stop.clone()));
        Self { base, _stop: stop.drop_guard() }
    }

    /// A metric of its page, read every 50 ms.
    fn metric(&self, name: &str, kind: ResourceKind) -> Resource {
        let page = MetricsPage {
            url: Url::parse(&format!("{}/metrics", self.base)).unwrap(),
            headers: Vec::new(),
            ca_file: None,
        };
        let metrics = vec![format!("goodput_simulated_{name}")];
        let source = Source::Prometheus(PrometheusSource { page, metrics, labels: BTreeMap::new() });
        resource(name, kind, source, HANG)
    }
}

fn resource(name: &str, kind: ResourceKind, source: Source, timeout: Duration) -> Resource {
    Resource {
        name: name.to_owned(),
        kind,
        unit: ResourceUnit::Count,
        probe: Probe { source, timeout },
        across: Across::Sum,
        scale: 1.0,
        every: Duration::from_millis(50),
    }
}

fn command(name: &str, script: &str, timeout: Duration) -> Resource {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    resource(name, ResourceKind::Gauge, Source::Command(CommandSource { command }), timeout)
}

/// Forgets every request.
struct Discard;

impl RecordSink for Discard {
    fn record(&mut self, _record: &RequestRecord) -> std::io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Requests of four tokens; lateness is judged against a limit of ten seconds, because these tests share their machine.
fn contract(base: &str) -> Contract {
    let text = json!({
        "version": 1,
        "name": "sampled",
        "endpoint": { "url": format!("{base}/v1/chat/completions"), "protocol": "openai-chat", "model": "simulated" },
        "workload": { "cases": [{ "prompt": "one two", "max_tokens": 4 }] },
        "traffic": { "model": "constant", "trial": { "requests": 100 } },
        "slo": { "at_load": "1/s", "objectives": [{ "metric": "e2e", "percentile": 95, "at_most": "10s" }] },
    });
    parse(&text.to_string(), Path::new(".")).unwrap().contract
}

fn workload(contract: &Contract) -> Workload {
    let fields = json!({ "prompt": "one two", "max_tokens": 4 });
    let case = Case { id: "case".to_owned(), fields: fields.as_object().unwrap().clone() };
    let protocol = contract.endpoint.protocol;
    let template = protocol.default_payload("/v1/chat/completions", [None; 2], |field| field == "max_tokens");
    Workload::build(&[case], &template, "simulated", 1, Shape::Json, &BTreeMap::new()).unwrap()
}

/// What a sampled trial left.
struct Trial {
    record: TrialRecord,
    step: StepRecord,
    samples: Vec<ResourceSample>,
}

impl Trial {
    fn resource(&self, name: &str) -> &ResourceRecord {
        let found = self.step.resources.iter().find(|record| record.name == name).unwrap();
        let of_trial = self.record.resources.iter().find(|record| record.name == name).unwrap();
        // One trial is the whole step.
        assert_eq!(found, of_trial);
        found
    }

    fn samples(&self, name: &str) -> Vec<&ResourceSample> {
        self.samples.iter().filter(|sample| sample.name == name).collect()
    }
}

/// A trial of constant arrivals: half a second of warm-up, and `seconds` of window. As the gate makes it.
async fn sampled_trial(base: &str, per_second: u64, seconds: u64, resources: &[Resource]) -> Trial {
    let contract = contract(base);
    let clock = Clock::start();
    let lane = Arc::new(Lane {
        clock,
        target: Target::new(&contract.endpoint).unwrap(),
        pool: Pool::new(clock),
        workload: workload(&contract),
        limits: contract.slo.request,
        run_id: "sampled".to_owned(),
        keep: Vec::new(),
    });
    let rate = Rate::from_milli(per_second * 1_000).unwrap();
    let counts = TrialCounts { warm_up: per_second / 2, window: per_second * seconds, drain: per_second / 2 };
    let shape = TrialShape::Open { process: ArrivalProcess::Constant, rate, counts };
    let planned = PlannedTrial { trial: 0, seed: 1, load: Load::RateMilli(rate), shape };
    let folder = tempfile::tempdir().unwrap();
    let context = Context { folder: folder.path().to_owned(), endpoint: None, port: 0 };
    let mut sampler = Sampler::start(resources, &context).unwrap().unwrap();

    let (progress, cancel) = (Arc::new(Progress::default()), CancellationToken::new());
    let trial = run_trial(&lane, &planned, &progress, Discard, &cancel, None);
    let begin = async { sampler.begin(0, clock.instant(progress.start_ns().await)) };
    let ((mut run, Discard), ()) = tokio::join!(trial, begin);
    let Sampled { samples, record } = tokio::time::timeout(HANG, sampler.end()).await.expect("no hang");
    let window = 500_000_000..500_000_000 + run.facts.window_ns;
    run.facts.resources = resource_records(resources, &samples, window);
    run.facts.health.sampling = Some(record);
    let record = summarise_trial(&contract.slo, &run.facts, &run.accumulator);
    let step = summarise_step(planned.load, &[(record.clone(), run.accumulator)], None);
    Trial { record, step, samples }
}

/// A batch whose steps take 20 ms: a reply of four tokens is in it for 80 ms, and reserves 12 + 4 of 1,024 tokens.
fn batch(slots: u32) -> Value {
    json!({
        "model": { "kind": "batch", "slots": slots, "step_base": "20ms", "kv_tokens": 1024 },
        "prompt_tokens": { "fixed": 12 },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_is_served_at_once_shows_littles_law() {
    let server = Simulated::start(&batch(64)).await;
    let resources = [
        server.metric("requests_running", ResourceKind::Gauge),
        server.metric("requests_waiting", ResourceKind::Gauge),
        server.metric("kv_cache_usage_ratio", ResourceKind::Gauge),
        server.metric("generation_tokens_total", ResourceKind::Counter),
    ];
    let trial = sampled_trial(&server.base, 100, 2, &resources).await;
    assert!(!trial.record.is_void(), "{:?}", trial.record.health.faults);

    // 100/s · 80 ms = 8 in service; nobody waits for longer than the step that is under way.
    let running = trial.resource("requests_running");
    assert_eq!((running.failure.as_deref(), running.rate_per_s), (None, None));
    let median = running.median.unwrap();
    assert!((6.0..=10.0).contains(&median), "{running:?}");
    assert!(trial.resource("requests_waiting").median.unwrap() <= 3.0, "{:?}", trial.resource("requests_waiting"));
    // One fetch answered all, so each sample shows one instant: 16 of 1,024 tokens for each request.
    let (running, usage) = (trial.samples("requests_running"), trial.samples("kv_cache_usage_ratio"));
    assert!(running.len() > 10 && running.len() == usage.len());
    for (running, usage) in running.iter().zip(usage) {
        assert_eq!(running.at_ns, usage.at_ns);
        let expected = running.value.map(|running| running * 16.0 / 1024.0);
        assert_eq!(usage.value, expected, "{running:?}");
    }
    // 100/s of four tokens each.
    let rate = trial.resource("generation_tokens_total").rate_per_s.unwrap();
    assert!((340.0..=460.0).contains(&rate), "{rate}");

    // Due every 50 ms of the window of 2 s, and one fetch for all four.
    let due = trial.resource("requests_running").due;
    assert!((38..=41).contains(&due), "{due}");
    let sampling = trial.record.health.sampling.as_ref().unwrap();
    assert_eq!(sampling.due * 4, trial.samples.len() as u64);
    assert!(sampling.took.is_some() && sampling.lag.is_some() && sampling.cpu_seconds > Some(0.0), "{sampling:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_beyond_the_capacity_shows_the_queue_that_grows() {
    // 8 in 80 ms are 100/s: of 200/s, 100 more wait each second.
    let server = Simulated::start(&batch(8)).await;
    let resources = [
        server.metric("requests_running", ResourceKind::Gauge),
        server.metric("requests_waiting", ResourceKind::Gauge),
    ];
    let trial = sampled_trial(&server.base, 200, 2, &resources).await;
    let running = trial.resource("requests_running");
    assert_eq!((running.median, running.max), (Some(8.0), Some(8.0)));
    let waiting = trial.resource("requests_waiting");
    // From 50 after the warm-up to 250 at the window's end.
    assert!((30.0..=80.0).contains(&waiting.min.unwrap()), "{waiting:?}");
    assert!((110.0..=190.0).contains(&waiting.median.unwrap()), "{waiting:?}");
    assert!((200.0..=300.0).contains(&waiting.last.unwrap()), "{waiting:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_a_restart_resets_has_no_rate() {
    let mut profile = batch(64);
    profile["faults"] = json!([{ "when": { "at_request": 150 }, "what": { "kind": "restart", "for": "200ms" } }]);
    let server = Simulated::start(&profile).await;
    let resources = [server.metric("generation_tokens_total", ResourceKind::Counter)];
    let trial = sampled_trial(&server.base, 100, 2, &resources).await;
    let tokens = trial.resource("generation_tokens_total");
    assert_eq!((tokens.rate_per_s, tokens.rate_over_ns), (None, None), "{tokens:?}");
    assert!(tokens.failure.is_some() && tokens.max > tokens.last, "{tokens:?}");
    assert_eq!(trial.samples.iter().filter(|sample| sample.began_anew).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_source_delays_an_arrival_or_the_end_of_the_trial() {
    let server = Simulated::start(&json!({})).await;
    let folder = tempfile::tempdir().unwrap();
    let counted = folder.path().join("counted");
    // Each shell holds the folder's name, by which what is left of it would be found.
    let mark = folder.path().display();
    let script = |text: &str| format!("{text}; : {mark}");
    let resources = [
        command("hangs", &script("sleep 1000"), HANG * 10),
        command("hangs briefly", &script("sleep 1000"), Duration::from_millis(120)),
        command("floods", &script("yes"), HANG),
        command("burns", &script("while :; do :; done"), Duration::from_millis(200)),
        command("stubborn", &script("trap '' TERM INT; while :; do sleep 1000; done"), Duration::from_millis(120)),
        command("fails", &script(&format!("echo x >> {}; exit 3", counted.display())), HANG),
    ];
    let trial = sampled_trial(&server.base, 100, 2, &resources).await;
    let health = &trial.record.health;
    assert!(!trial.record.is_void(), "{:?}", health.faults);
    assert_eq!((health.sent, health.due), (200, 200));
    assert!(health.dispatch_lag.unwrap().p99_ns < health.dispatch_lag_limit_ns, "{health:?}");
    // The last reply is there at once, and so is the end, whatever hangs.
    assert!(trial.record.took_ns < HANG.as_nanos() as u64);

    // All that was due is told of, and nothing of it is a number.
    let sampling = health.sampling.as_ref().unwrap();
    assert_eq!(sampling.due, trial.samples.len() as u64);
    assert!(sampling.missed > 0);
    for (name, failure) in [
        ("hangs", "left out: the reading before was not back yet"),
        ("hangs briefly", "took longer than 120ms and was killed"),
        ("burns", "took longer than 200ms and was killed"),
        ("stubborn", "took longer than 120ms and was killed"),
        ("fails", "exited with code 3"),
    ] {
        let record = trial.resource(name);
        assert_eq!((record.samples, record.max), (0, None), "{record:?}");
        assert!(record.due > 20, "{record:?}");
        let failures: Vec<_> = trial.samples(name).iter().filter_map(|sample| sample.failure.clone()).collect();
        assert!(failures.iter().any(|told| told == failure), "{name}: {failures:?}");
    }
    assert!(std::fs::read_to_string(counted).unwrap().lines().count() > 1);
    // Killed processes take a moment to go.
    let mark = mark.to_string();
    let gone = async {
        while !commands_with(&mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(HANG, gone).await.is_ok(), "left running: {:?}", commands_with(&mark));
}

/// The command lines of processes that hold a text and still run; one that was killed has none any more.
fn commands_with(mark: &str) -> Vec<String> {
    let line = |entry: std::io::Result<std::fs::DirEntry>| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " ")).filter(|line| line.contains(mark))
    };
    std::fs::read_dir("/proc").unwrap().filter_map(line).collect()
}

#[test]
fn the_gate_samples_what_the_contract_names() {
    let mut contract = Written::of(SIMULATED);
    contract.loads = "40/s";
    contract.trial = "requests: 60, warm_up: 500ms";
    contract.more = "resources:
  - { name: running, gauge: { prometheus: { metric: goodput_simulated_requests_running } }, every: 100ms }
  - { name: tokens, counter: { prometheus: { metric: goodput_simulated_generation_tokens_total } }, every: 100ms }
  - { name: absent, gauge: { prometheus: { metric: no_such_metric } }, every: 100ms }
"
    .to_owned();
    let scene = Scene::with(&contract, "");
    let result = scene.gate().result();
    assert_valid(&result.value);
    let trial = &result.value["steps"][0]["trials"][0];
    let named = |name: &str| {
        let records = trial["resources"].as_array().unwrap();
        records.iter().find(|record| record["name"] == name).unwrap_or_else(|| panic!("no {name} in {records:#?}"))
    };
    // 60 arrivals at 40/s: a window of 1.5 s.
    for name in ["running", "tokens", "absent"] {
        assert!((14..=16).contains(&named(name)["due"].as_u64().unwrap()), "{}", named(name));
    }
    // Four tokens each.
    let rate = named("tokens")["rate_per_s"].as_f64().unwrap();
    assert!((120.0..=200.0).contains(&rate), "{rate}");
    assert_eq!((&named("absent")["max"], &named("absent")["samples"]), (&Value::Null, &json!(0)));
    assert!(named("absent")["failure"].as_str().unwrap().contains("no_such_metric"), "{}", named("absent"));
    // The same in the step, and every sample in a file.
    assert_eq!(result.value["steps"][0]["resources"], trial["resources"]);
    let lines = read(&result.folder.join("resources.jsonl"));
    let samples: Vec<ResourceSample> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(samples.iter().any(|sample| sample.name == "running" && sample.at_ns < 500_000_000), "the warm-up too");
    let sampling = &trial["health"]["sampling"];
    assert!(sampling["due"].as_u64().unwrap() >= 15, "{sampling}");
    let row = result.check("load_generator").unwrap();
    assert!(row["note"].as_str().unwrap().contains("sampling: "), "{row}");
}
