//! What the driver costs and how true its times are, against the simulated endpoint in a process of its own.
//!
//! `cargo bench --bench drive` runs everything, `cargo bench --bench drive -- pacing` one part of: `pacing`, `sampling`,
//! `throughput`, `accuracy`, `memory`. Figures are of this machine and this hour: state them as ratios where a part prints one.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and one that cannot run has failed")]

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use goodput::contract::{
    Across, CommandSource, Contract, MetricsPage, Probe, PrometheusSource, Resource, ResourceKind, ResourceUnit,
    Source, parse,
};
use goodput::drive::{Clock, Lane, Pool, Progress, Target, open_file_limit, raise_priority, run_trial};
use goodput::probe::{Context, Sampler};
use goodput::record::{RecordSink, RequestRecord, TrialRecord, summarise_trial};
use goodput::schedule::{ArrivalProcess, ConcurrencyPlan, PlannedTrial, Segment, TrialCounts, TrialShape};
use goodput::units::{Load, Rate};
use goodput::workload::{Case, Content, Shape, Workload};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|name| name == part);
    open_file_limit();
    // As the command itself does.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().on_thread_start(raise_priority).build();
    runtime.unwrap().block_on(async {
        if is_wanted("pacing") {
            pacing().await;
        }
        if is_wanted("sampling") {
            sampling().await;
        }
        if is_wanted("throughput") {
            throughput().await;
        }
        if is_wanted("accuracy") {
            accuracy().await;
        }
        if is_wanted("memory") {
            memory().await;
        }
    });
}

/// Send lag and CPU time at three rates; replies of 8 events that come at once.
async fn pacing() {
    println!("pacing: constant arrivals, 8 output events each");
    println!("{:>8}  {:>9}  {:>9}  {:>9}  {:>22}", "rate", "lag p50", "lag p99", "lag max", "CPU s / 1,000 requests");
    for per_second in [200, 1_000, 2_000] {
        let server = Simulated::start("{}", None);
        let (record, _) = open_loop(&server, per_second, 10, 8, Discard, None).await;
        let lag = record.health.send_lag.unwrap();
        let requests = record.planned.unwrap().total() as f64;
        println!(
            "{per_second:>6}/s  {:>9}  {:>9}  {:>9}  {:>22.3}",
            micros(lag.p50_ns.unwrap()),
            micros(lag.p99_ns.unwrap()),
            micros(lag.max_ns.unwrap()),
            record.health.cpu_seconds.unwrap() / requests * 1e3,
        );
    }
}

/// What the sampling of resources does to the load: eight metrics of a page, a command, and one that hangs, each ten times a
/// second and so ten times as often as usual; trials with and without it in turn, on the same server.
async fn sampling() {
    const ROUNDS: usize = 5;
    println!("sampling: a page of 8 metrics, a command and one that hangs, each every 100 ms, against none");
    let server = Simulated::start("{}", None);
    let resources = resources(&server);
    let (mut lags, mut rates) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let mut figures = [(0.0, 0.0); 2];
        // Which of the two comes first is turned about, so that a drift of the machine favours neither.
        for with in [round % 2 == 0, round % 2 == 1] {
            let mut sampler = with.then(|| sampler(&resources));
            let (record, _) = open_loop(&server, 1_000, 5, 8, Discard, sampler.as_mut()).await;
            let lag = record.health.send_lag.unwrap().p99_ns.unwrap() as f64;
            let rate = closed_loop(&server, 64, Duration::from_secs(3), sampler.as_mut()).await;
            figures[usize::from(with)] = (lag, rate);
        }
        let [(lag, rate), (lag_with, rate_with)] = figures;
        println!(
            "  round {round}: lag p99 {} / {}, ratio {:.2}; throughput {rate_with:.0}/s / {rate:.0}/s, ratio {:.2}",
            micros(lag_with as u64),
            micros(lag as u64),
            lag_with / lag,
            rate_with / rate,
        );
        lags.push(lag_with / lag);
        rates.push(rate_with / rate);
    }
    for (name, mut ratios) in [("lag p99 at 1,000/s", lags), ("throughput of 64 clients", rates)] {
        ratios.sort_by(f64::total_cmp);
        println!("  median ratio of {name}, sampled to not sampled: {:.2}", ratios[ROUNDS / 2]);
    }
}

/// The sources of that comparison.
fn resources(server: &Simulated) -> Vec<Resource> {
    let resource = |name: &str, source: Source| Resource {
        name: name.to_owned(),
        kind: ResourceKind::Gauge,
        unit: ResourceUnit::Count,
        probe: Probe { source, timeout: Duration::from_secs(60) },
        across: Across::Sum,
        scale: 1.0,
        every: Duration::from_millis(100),
    };
    let metric = |name: &str| {
        let url = server.url.replace("/v1/chat/completions", "/metrics").parse().unwrap();
        let page = MetricsPage { url, headers: Vec::new(), ca_file: None };
        let metrics = vec![format!("goodput_simulated_{name}")];
        resource(name, Source::Prometheus(PrometheusSource { page, metrics, labels: BTreeMap::new() }))
    };
    let command = |command: &[&str]| {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        resource(&command.join(" "), Source::Command(CommandSource { command }))
    };
    let names = ["requests_running", "requests_waiting", "requests_total", "prompt_tokens_total"];
    let metrics =
        names.into_iter().chain(["generation_tokens_total", "restarts_total", "requests_running", "requests_total"]);
    metrics.map(metric).chain([command(&["echo", "1"]), command(&["sleep", "1000"])]).collect()
}

fn sampler(resources: &[Resource]) -> Sampler {
    let context = Context { folder: std::env::temp_dir(), endpoint: None, port: 0 };
    Sampler::start(resources, &context).unwrap().unwrap()
}

/// Requests per second of 64 clients with 32-event replies, next to a `reqwest` loop that reads the bytes and parses
/// nothing; both in turn, on the same server.
async fn throughput() {
    const CLIENTS: u32 = 64;
    const WINDOW: Duration = Duration::from_secs(5);
    println!("throughput: closed loop, {CLIENTS} clients, 32 output events each");
    let server = Simulated::start("{}", None);
    let mut ratios = Vec::new();
    for round in 1..=3 {
        let ours = closed_loop(&server, CLIENTS, WINDOW, None).await;
        let bare = bare_loop(&server, CLIENTS, WINDOW).await;
        println!("  round {round}: goodput {ours:.0}/s, bare reqwest {bare:.0}/s, ratio {:.2}", ours / bare);
        ratios.push(ours / bare);
    }
    ratios.sort_by(f64::total_cmp);
    println!("  median ratio {:.2}", ratios[1]);
}

/// Time to first token as measured, minus the same as the server's own log has it, at half the highest rate.
async fn accuracy() {
    println!("accuracy: 1,000 arrivals/s, first token after 20 ms, 8 output events 5 ms apart");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    let profile = "model: { kind: slots, slots: 4096, first_token_after: 20ms, per_token: 5ms }";
    let mut server = Simulated::start(profile, Some(&log));
    let (_, kept) = open_loop(&server, 1_000, 10, 8, Keep::default(), None).await;
    server.stop();
    let truth: HashMap<String, u64> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let taken = line["first_write_ns"].as_u64()?.checked_sub(line["received_ns"].as_u64()?)?;
            Some((line["request_id"].as_str()?.to_owned(), taken))
        })
        .collect();
    let mut errors: Vec<u64> = kept
        .ttft_from_send
        .iter()
        .filter_map(|(arrival, ttft)| Some(ttft.abs_diff(*truth.get(&format!("bench-0-{arrival}"))?)))
        .collect();
    errors.sort_unstable();
    let at = |percent: usize| micros(errors[(errors.len() * percent / 100).min(errors.len() - 1)]);
    println!("  {} requests: error p50 {}, p99 {}, max {}", errors.len(), at(50), at(99), at(100));
}

/// Peak memory of this process after 100,000 requests.
async fn memory() {
    println!("memory: 100,000 requests at 2,000/s, 8 output events each");
    let server = Simulated::start("{}", None);
    let before = peak_kib();
    let (record, _) = open_loop(&server, 2_000, 50, 8, Discard, None).await;
    println!(
        "  {} requests: peak {} MiB (before {} MiB)",
        record.planned.unwrap().total(),
        peak_kib() / 1024,
        before / 1024
    );
}

async fn open_loop<S: RecordSink>(
    server: &Simulated,
    per_second: u64,
    seconds: u64,
    events: u32,
    sink: S,
    sampler: Option<&mut Sampler>,
) -> (TrialRecord, S) {
    let rate = Rate::from_milli(per_second * 1_000).unwrap();
    let counts = TrialCounts { warm_up: per_second, window: per_second * seconds, drain: per_second };
    let shape = TrialShape::Open { process: ArrivalProcess::Constant, rate, counts };
    trial(server, Load::RateMilli(rate), shape, events, sink, sampler).await
}

async fn closed_loop(server: &Simulated, clients: u32, window: Duration, sampler: Option<&mut Sampler>) -> f64 {
    let plan = ConcurrencyPlan { clients, warm_up_ns: 1_000_000_000, window_ns: window.as_nanos() as u64, drain_ns: 0 };
    let (record, _) = trial(server, Load::Clients(clients), TrialShape::Closed(plan), 32, Discard, sampler).await;
    assert_eq!(record.window.outcomes.len(), 1, "every request ends ok: {:?}", record.window.outcomes);
    record.window.scheduled as f64 / window.as_secs_f64()
}

async fn trial<S: RecordSink>(
    server: &Simulated,
    load: Load,
    shape: TrialShape,
    events: u32,
    sink: S,
    sampler: Option<&mut Sampler>,
) -> (TrialRecord, S) {
    let contract = contract(&server.url);
    let clock = Clock::start();
    let lane = Arc::new(Lane {
        clock,
        target: Target::new(&contract.endpoint).unwrap(),
        pool: Pool::new(clock),
        workload: workload(&contract, events),
        limits: contract.slo.request,
        run_id: "bench".to_owned(),
        keep: Vec::new(),
    });
    let planned = PlannedTrial { trial: 0, seed: 1, load, shape };
    let progress = Arc::new(Progress::default());
    let cancel = CancellationToken::new();
    let trial = run_trial(&lane, &planned, &progress, sink, &cancel, None);
    let ((run, sink), ()) = tokio::join!(trial, async {
        if let Some(sampler) = sampler {
            // The next trial, or the sampler's end, ends this one's sampling.
            sampler.begin(0, clock.instant(progress.start_ns().await));
        }
    });
    (summarise_trial(&contract.slo, &run.facts, &run.accumulator), sink)
}

/// The same requests by `reqwest`, whose replies are read to their end and not looked at.
async fn bare_loop(server: &Simulated, clients: u32, window: Duration) -> f64 {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let Content::Json(body) = workload(&contract(&server.url), 32).cases()[0].content.clone() else { unreachable!() };
    let done = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + window;
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let (client, url, body, done) = (client.clone(), server.url.clone(), body.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                while Instant::now() < end {
                    let request = client.post(&url).header("content-type", "application/json").body(body.clone());
                    let mut reply = request.send().await.unwrap();
                    while reply.chunk().await.unwrap().is_some() {}
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    done.load(Ordering::Relaxed) as f64 / window.as_secs_f64()
}

fn contract(url: &str) -> Contract {
    let text = json!({
        "version": 1,
        "name": "bench",
        "endpoint": { "url": url, "protocol": "openai-chat", "model": "simulated" },
        "workload": { "cases": [{ "prompt": "one two three four" }] },
        "traffic": { "model": "constant", "trial": { "requests": 100 } },
        "slo": { "at_load": "1/s", "objectives": [{ "metric": "ttft", "percentile": 99, "at_most": "1s" }] },
    });
    parse(&text.to_string(), Path::new(".")).unwrap().contract
}

fn workload(contract: &Contract, events: u32) -> Workload {
    let fields = json!({ "prompt": "one two three four", "max_tokens": events });
    let case = Case { id: "case".to_owned(), fields: fields.as_object().unwrap().clone() };
    let protocol = contract.endpoint.protocol;
    let mut template = protocol.default_payload("/v1/chat/completions", [None; 2], |field| field == "max_tokens");
    protocol.ask_for_usage(&mut template);
    Workload::build(&[case], &template, "simulated", 1, Shape::Json, &BTreeMap::new()).unwrap()
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

/// Keeps the time from send to first output of each request of the window.
#[derive(Default)]
struct Keep {
    ttft_from_send: Vec<(u64, u64)>,
}

impl RecordSink for Keep {
    fn record(&mut self, record: &RequestRecord) -> std::io::Result<()> {
        if let (Segment::Window, Some(sent), Some(first)) = (record.segment, record.sent_ns, record.first_output_ns) {
            self.ttft_from_send.push((record.arrival, first.saturating_sub(sent)));
        }
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A simulated endpoint in a process of its own.
struct Simulated {
    process: Child,
    url: String,
}

impl Simulated {
    fn start(profile: &str, log: Option<&Path>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("profile.yaml");
        std::fs::write(&file, profile).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
        command.arg("simulate").arg(&file).args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        if let Some(log) = log {
            command.arg("--log").arg(log);
        }
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let base = line.trim().strip_prefix("listening on ").unwrap();
        Self { process, url: format!("{base}/v1/chat/completions") }
    }

    /// Ends it in order, so that its log is whole.
    fn stop(&mut self) {
        let stop = Command::new("kill").arg(self.process.id().to_string()).status();
        assert!(stop.unwrap().success());
        self.process.wait().unwrap();
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn micros(nanos: u64) -> String {
    format!("{:.0} µs", nanos as f64 / 1e3)
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
