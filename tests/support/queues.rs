//! The queues of the reference whose capacity is known, as endpoints and contracts for runs in virtual time.
#![allow(dead_code, reason = "the tests and the benchmark need different parts of it")]

use std::path::Path;
use std::time::Duration;

use goodput::contract::{
    BaselinePlan, Budget, Contract, FingerprintKeys, Objective, Plan, RequestMetric, Search, Traffic, Within, parse,
};
use goodput::judge::Status;
use goodput::record::{BaselineRecord, BaselineUse, Change, Chosen, RunResult, Why};
use goodput::schedule::segment_nanos;
use goodput::schedule::{Arrival, ArrivalProcess, PlannedTrial, Schedule, Segment, TrialCounts, TrialShape, Words};
use goodput::simulate::{Profile, Stage, parse_profile, rehearse, rehearse_against};
use goodput::units::{Load, Rate, Share};
use serde_json::{Value, json};

/// Streams of chance that no schedule and no endpoint takes from.
const GAP_STREAM: u64 = 50;
const NOISE_STREAM: u64 = 51;

/// Longer than any plan can take.
const AGES: Duration = Duration::from_secs(1 << 32);

pub(crate) fn reference() -> Value {
    serde_json::from_str(include_str!("../fixtures/reference/queueing_scenarios.json")).unwrap()
}

pub(crate) fn rate(per_second: f64) -> Rate {
    Rate::from_milli((per_second * 1e3).round() as u64).unwrap()
}

pub(crate) fn share(fraction: f64) -> Share {
    Share::from_ppm((fraction * 1e6).round() as u32).unwrap()
}

/// One scenario of the reference.
#[derive(Clone)]
pub(crate) struct Queue {
    pub(crate) id: String,
    pub(crate) row: Value,
    pub(crate) profile: Profile,
    pub(crate) objectives: Vec<Objective>,
    pub(crate) process: ArrivalProcess,
    /// Of gamma gaps, in place of the process.
    pub(crate) shape: Option<f64>,
    /// The largest load at which the objectives hold in the long run, in requests per second.
    pub(crate) capacity: f64,
}

impl Queue {
    pub(crate) fn new(id: &str) -> Self {
        let row = reference()["analytic"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone();
        let gaps = &row["params"]["shape"];
        let constant = *gaps == "inf";
        Self {
            id: id.to_owned(),
            profile: profile(&row),
            objectives: objectives(&row),
            process: if constant { ArrivalProcess::Constant } else { ArrivalProcess::Poisson },
            shape: gaps.as_f64(),
            capacity: row["capacity"].as_f64().unwrap(),
            row,
        }
    }

    /// What must hold at a load, with the default looks and without a search.
    pub(crate) fn contract(&self, at: Rate, counts: TrialCounts, seed: u64) -> Contract {
        let mut contract = contract();
        contract.workload.seed = seed;
        contract.traffic = Traffic::Open { process: self.process, loads: vec![at], counts };
        contract.slo.at = Load::RateMilli(at);
        contract.slo.objectives.clone_from(&self.objectives);
        contract
    }

    /// What a trial meets: the endpoint with services of the trial's seed, and with `noise` as the standard deviation of
    /// the logarithm by which all its times differ from one trial to the next.
    pub(crate) fn stage(&self, planned: &PlannedTrial, noise: f64) -> Stage {
        let mut profile = Profile { seed: planned.seed, ..self.profile.clone() };
        if noise > 0.0 {
            let mut words = Words::new(planned.seed ^ (u64::from(planned.trial) << 40), NOISE_STREAM);
            profile = profile.slowed((noise * normal(&mut words)).exp());
        }
        Stage { profile, schedule: self.shape.and_then(|shape| gamma_gaps(shape, planned)) }
    }
}

/// Trials of a change are numbered from here, so that their noise is not that of the baseline's.
const CHANGE: u32 = 10_000;

/// A queue with the baseline that a nightly run of it left.
pub(crate) struct Nightly {
    pub(crate) queue: Queue,
    pub(crate) contract: Contract,
    pub(crate) record: BaselineRecord,
    noise: f64,
}

impl Nightly {
    /// Searches the capacity on five schedules at 3 %, and measures the headrooms around it. What must hold is well below.
    pub(crate) fn new(queue: Queue, counts: TrialCounts, seed: u64, noise: f64) -> Self {
        let mut contract = queue.contract(rate(0.6 * queue.capacity), counts, seed);
        search(&mut contract, 0.25 * queue.capacity, 8.0 * queue.capacity, 0.03, 5);
        contract.baseline = Some(five_percent());
        // A request is good when it meets what most of them must.
        contract.slo.request = queue.objectives.iter().filter_map(Objective::limit).collect();
        let result = rehearse(&contract, Plan::Baseline, |planned| queue.stage(planned, noise)).unwrap();
        Self { record: BaselineRecord::of(&result), queue, contract, noise }
    }

    /// A pull request whose endpoint takes `slowdown` times as long, on the machine as it is now.
    pub(crate) fn change(&self, slowdown: f64) -> RunResult {
        self.run(&self.contract, Plan::Check, slowdown, Why::ExactBase, self.record.clone())
    }

    /// The same against trials of the endpoint without the change, made side by side at a load.
    pub(crate) fn change_in_pairs(&self, at: Rate, slowdown: f64) -> RunResult {
        let Traffic::Open { counts, .. } = self.contract.traffic else { panic!("an open loop") };
        let mut contract = self.queue.contract(at, counts, self.contract.workload.seed);
        contract.baseline.clone_from(&self.contract.baseline);
        contract.slo.request = self.contract.slo.request;
        // One look at five pairs: both sides make as many trials whatever they show.
        contract.evidence.looks = vec![5];
        let base = rehearse(&contract, Plan::Check, |planned| self.queue.stage(planned, self.noise)).unwrap();
        self.run(&contract, Plan::Check, slowdown, Why::Paired, BaselineRecord::of(&base))
    }

    fn run(&self, contract: &Contract, plan: Plan, slowdown: f64, why: Why, record: BaselineRecord) -> RunResult {
        let chosen = Chosen { store: "file".to_owned(), place: "here".to_owned(), why, age_s: 0 };
        let used = BaselineUse { record: Some(record), chosen: Some(chosen), ..BaselineUse::default() };
        rehearse_against(contract, plan, used, |planned| self.stage(planned, slowdown)).unwrap()
    }

    /// What a trial of the change meets.
    pub(crate) fn stage(&self, planned: &PlannedTrial, slowdown: f64) -> Stage {
        let planned = PlannedTrial { trial: planned.trial + CHANGE, ..*planned };
        let stage = self.queue.stage(&planned, self.noise);
        Stage { profile: stage.profile.slowed(slowdown), ..stage }
    }
}

/// The rows of a comparison of one figure.
pub(crate) fn changes<'a>(result: &'a RunResult, metric: &str) -> Vec<&'a Change> {
    let all = result.comparison.iter().flat_map(|comparison| &comparison.changes);
    all.filter(|change| change.metric == metric).collect()
}

/// A margin of 5 %, and nothing else.
pub(crate) fn five_percent() -> BaselinePlan {
    BaselinePlan {
        margin: share(0.05),
        from: Vec::new(),
        within: Within { commits: 50, days: 30 },
        latency: Vec::new(),
        fingerprint: FingerprintKeys::default(),
        release: None,
        accepted: None,
        pair: None,
    }
}

/// A search for the capacity in a range.
pub(crate) fn search(contract: &mut Contract, from: f64, to: f64, precision: f64, seeds: u32) {
    let (from, to, precision) = (rate(from), rate(to), share(precision));
    contract.evidence.search = Some(Search { from, to, precision, seeds });
}

/// A contract of which every part that matters is set by the caller; no plan runs out of time.
pub(crate) fn contract() -> Contract {
    let text = json!({
        "version": 1,
        "name": "virtual",
        "endpoint": { "url": "http://endpoint.invalid/v1/chat/completions", "protocol": "openai-chat", "model": "m" },
        "workload": { "cases": [{ "id": "one", "prompt": "one", "max_tokens": 2 }] },
        "traffic": { "model": "poisson", "loads": ["1/s"], "trial": { "requests": 100 } },
        "slo": { "objectives": [{ "metric": "success_rate", "at_least": "100%" }], "at_load": "1/s" },
    });
    let mut contract = parse(&text.to_string(), Path::new(".")).unwrap().contract;
    contract.evidence.budget = Budget { check: AGES, baseline: AGES, release: AGES };
    contract
}

fn objectives(row: &Value) -> Vec<Objective> {
    let step = 1.5 * (number(row, "alpha_s") + number(row, "beta_s") * number(row, "batch"));
    let of = |objective: &Value| {
        let part = |key: &str| objective[key].as_f64().unwrap_or(0.0);
        // The first token of a batch comes at the end of a step that begins, on average, half a step later.
        let at_most = |constant: f64| ((part("threshold_s") + constant) * 1e9).round() as u64;
        let quantile = || share(part("quantile"));
        match objective["metric"].as_str().unwrap() {
            "wait" => {
                Objective::Percentile { metric: RequestMetric::Ttft, quantile: quantile(), at_most: at_most(step) }
            }
            "sojourn" => {
                Objective::Percentile { metric: RequestMetric::E2e, quantile: quantile(), at_most: at_most(step / 3.0) }
            }
            "success" => Objective::SuccessRate { at_least: share(part("at_least")) },
            other => panic!("{other} is no objective of a contract"),
        }
    };
    let objectives = row["objectives"].as_array().unwrap().iter();
    objectives.filter(|objective| objective["metric"] != "mean_tpot").map(of).collect()
}

fn number(row: &Value, key: &str) -> f64 {
    row["params"][key].as_f64().unwrap_or(0.0)
}

/// The endpoint. The first of two tokens marks the start of a service, the second its end.
fn profile(row: &Value) -> Profile {
    let of = |key: &str| number(row, key);
    let time = |seconds: f64| format!("{}ns", (seconds * 1e9).round());
    let slots = |slots: f64, service: Value| json!({ "kind": "slots", "slots": slots as u64, "service": service });
    let exponential = || json!({ "exponential": time(1.0 / of("mu")) });
    let batch = |slots: f64| {
        json!({ "kind": "batch", "slots": slots as u64, "step_base": time(of("alpha_s")),
            "step_per_request": time(of("beta_s")) })
    };
    let lengths = || json!({ "output": { "exponential": of("mean_tokens") as u64 } });
    let mut text = match row["model"].as_str().unwrap() {
        "M/M/c" => json!({ "model": slots(of("c"), exponential()) }),
        "M/D/c" => json!({ "model": slots(of("c"), json!({ "fixed": time(of("service_s")) })) }),
        "GI/M/1" => json!({ "model": slots(1.0, exponential()) }),
        "M/H2/1" => {
            let service = json!({ "short": time(of("mean1_s")), "long": time(of("mean2_s")),
                "long_share": format!("{:.4}%", 100.0 * (1.0 - of("p"))) });
            json!({ "model": slots(1.0, json!({ "hyperexponential": service })) })
        }
        "M/M/1/K" => json!({ "model": slots(1.0, exponential()), "queue": { "limit": of("K") as u64 - 1 } }),
        "M/M/1+failures" => {
            let when = json!({ "share": format!("{:.4}%", 100.0 * of("failure_probability")) });
            let what = json!({ "kind": "error_in_stream", "after_tokens": 2 });
            json!({ "model": slots(1.0, exponential()), "faults": [{ "when": when, "what": what }] })
        }
        "CB" => json!({ "model": batch(of("batch")), "lengths": lengths() }),
        "PS-batching" => json!({ "model": batch(1e6), "lengths": lengths() }),
        other => panic!("no endpoint for {other}"),
    };
    text["output_tokens"] = json!(2);
    parse_profile(&text.to_string()).unwrap()
}

/// Arrivals with gamma gaps of the given shape: `c + 1` gaps in each segment, scaled to fill it (method, section 3.2).
fn gamma_gaps(shape: f64, planned: &PlannedTrial) -> Option<Schedule> {
    let TrialShape::Open { rate, counts, .. } = planned.shape else { return None };
    let mut words = Words::new(planned.seed, GAP_STREAM);
    let (mut arrivals, mut start) = (Vec::new(), 0u64);
    for (segment, count) in
        [(Segment::WarmUp, counts.warm_up), (Segment::Window, counts.window), (Segment::Drain, counts.drain)]
    {
        let length = segment_nanos(count, rate);
        let gaps: Vec<f64> = (0..=count).map(|_| gamma(shape, &mut words)).collect();
        let scale = length as f64 / gaps.iter().sum::<f64>();
        let mut at = 0.0;
        arrivals.extend(gaps.iter().take(count as usize).map(|gap| {
            at += gap * scale;
            Arrival { offset_ns: start + (at as u64).min(length - 1), segment }
        }));
        start += length;
    }
    Some(Schedule::new(arrivals, segment_nanos(counts.window, rate)))
}

fn uniform(words: &mut Words) -> f64 {
    ((words.next_word() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// A standard normal number (Box and Muller).
pub(crate) fn normal(words: &mut Words) -> f64 {
    (-2.0 * uniform(words).ln()).sqrt() * (std::f64::consts::TAU * uniform(words)).cos()
}

/// A gamma number of a shape below 1 and scale 1 (Marsaglia and Tsang 2000, with their boost).
fn gamma(shape: f64, words: &mut Words) -> f64 {
    let d = shape + 1.0 - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let whole = loop {
        let x = normal(words);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && uniform(words).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            break d * v;
        }
    };
    whole * uniform(words).powf(1.0 / shape)
}

/// The verdict without the row that does not believe a reply which takes no time, as replies in virtual time do.
pub(crate) fn overall(result: &RunResult) -> Status {
    let checks = result.verdict.iter().flat_map(|verdict| &verdict.checks).filter(|check| check.id != "plausibility");
    let statuses: Vec<Status> = checks.map(|check| check.status).collect();
    match (statuses.contains(&Status::Fail), statuses.contains(&Status::Unknown) || statuses.is_empty()) {
        (true, _) => Status::Fail,
        (false, true) => Status::Unknown,
        (false, false) => Status::Pass,
    }
}
