//! What a contract means: every number finite, bounded and with its unit. Nothing else leaves the module `contract`.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::{Host, Url};

use super::baseline::BaselinePlan;
use super::metric::{Objective, RequestLimits};
use super::source::{Resource, ResourceLimit, StabilityRow};
use crate::audio::PcmFormat;
use crate::judge::Claim;
use crate::observe::{Protocol, REALTIME_AUDIO};
use crate::schedule::{ArrivalProcess, ConcurrencyPlan, PlannedTrial, TrialCounts, TrialShape};
use crate::units::{Load, Rate, Share};
use crate::workload::{Case, Shape};

/// A contract that was read, checked and understood.
#[derive(Debug, Clone)]
pub struct Contract {
    /// The name shown in reports and used for the run folder.
    pub name: String,
    /// Where requests go, and how an ephemeral endpoint is started.
    pub endpoint: Endpoint,
    /// What is sent.
    pub workload: WorkloadSource,
    /// How it is sent.
    pub traffic: Traffic,
    /// How much is measured before a verdict.
    pub evidence: EvidencePlan,
    /// What must hold.
    pub slo: Slo,
    /// Counters and health checks read before and after the load.
    pub stability: Vec<StabilityRow>,
    /// What is sampled while trials run.
    pub resources: Vec<Resource>,
    /// With what a run is compared; `None` where it is not.
    pub baseline: Option<BaselinePlan>,
    /// How many full replies to keep.
    pub samples: Samples,
    /// What follows from a verdict that is not clear.
    pub policy: Policy,
}

/// Where requests go.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The full URL of every request. Its port may be 0 only with `launch.simulate`: then a free one is taken.
    pub url: Url,
    /// The dialect of requests and replies.
    pub protocol: Protocol,
    /// The model's name, for `$model`.
    pub model: String,
    /// Extra request headers.
    pub headers: Vec<Header>,
    /// Longest life of a request, from its scheduled arrival.
    pub timeout: Duration,
    /// Longest silence between two messages of a reply.
    pub idle_timeout: Duration,
    /// The HTTP version to speak.
    pub http: HttpVersion,
    /// PEM file of certificates that are trusted besides the system's, resolved against the contract's folder.
    pub ca_file: Option<PathBuf>,
    /// The proxy to go through; none unless named.
    pub proxy: Option<Url>,
    /// The format of sound that is sent; `None` where none is sent without a container.
    pub input_audio: Option<PcmFormat>,
    /// The format of sound that comes back without a container; `None` where it is not known.
    pub output_audio: Option<PcmFormat>,
    /// The endpoint that the gate starts and stops itself.
    pub launch: Option<Launch>,
}

impl Endpoint {
    /// The payload template of the protocol; `has` tells which fields the cases have.
    pub fn default_payload(&self, has: impl Fn(&str) -> bool) -> Value {
        self.protocol.default_payload(self.url.path(), [self.input_audio, self.output_audio], has)
    }

    /// Whether its address is this very machine's.
    pub fn is_on_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// What a payload becomes on its way to this endpoint.
    pub fn shape(&self) -> Shape {
        shape(self.protocol, self.input_audio)
    }
}

/// What a payload becomes in a protocol; sound that is sent without a container has this format.
pub(super) fn shape(protocol: Protocol, input_audio: Option<PcmFormat>) -> Shape {
    match protocol {
        Protocol::OpenaiTranscription => Shape::Form,
        Protocol::OpenaiRealtime => Shape::Turn(input_audio.unwrap_or(REALTIME_AUDIO)),
        _ => Shape::Json,
    }
}

/// The HTTP version to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/2 where TLS negotiates it, else HTTP/1.1.
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only; without TLS by prior knowledge.
    Http2,
}

/// One request header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The header's name, lower case.
    pub name: String,
    /// Where its value comes from.
    pub value: HeaderSource,
}

/// Where a header's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderSource {
    /// Written in the contract; never a secret.
    Literal(String),
    /// An environment variable, behind a prefix; always treated as a secret.
    Environment {
        /// The variable's name.
        variable: String,
        /// Text put before the value, such as `Bearer `.
        prefix: String,
    },
}

/// An endpoint that the gate starts and stops itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// What to start.
    pub what: LaunchWhat,
    /// Path that answers 2xx once the server is up, on the endpoint's host; none: the port must accept.
    pub ready_path: Option<String>,
    /// Longest time until then.
    pub ready_within: Duration,
    /// Longest time from there until a request yields its first output.
    pub first_token_within: Duration,
    /// How long the process group may take to end after SIGTERM before it is killed.
    pub stop_within: Duration,
}

/// What a launch starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchWhat {
    /// A command line; the contract's folder is its working directory.
    Command(Vec<String>),
    /// The embedded simulated endpoint with this profile, resolved against the contract's folder.
    Simulate(PathBuf),
}

/// What is sent.
#[derive(Debug, Clone)]
pub struct WorkloadSource {
    /// The cases.
    pub cases: CaseSource,
    /// The payload template, where one was written; see [`WorkloadSource::template`].
    pub payload: Option<Value>,
    /// The seed of the run; trial `r` of a step uses seed + `r`.
    pub seed: u64,
}

impl WorkloadSource {
    /// The payload template: the written one, else the protocol's own with every field that a case carries. A case that
    /// lacks a field which others have then is a fault, not a request of another shape.
    /// `default` makes the protocol's own, given which fields the cases have.
    pub fn template(&self, cases: &[Case], default: impl FnOnce(&dyn Fn(&str) -> bool) -> Value) -> Value {
        let has = |field: &str| cases.iter().any(|case| case.fields.contains_key(field));
        self.payload.clone().unwrap_or_else(|| default(&has))
    }
}

/// Where cases come from.
#[derive(Debug, Clone)]
pub enum CaseSource {
    /// Written in the contract.
    Inline(Vec<Case>),
    /// A JSON or JSON-lines file, resolved against the contract's folder.
    File(PathBuf),
}

/// How requests are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traffic {
    /// Arrivals by a schedule that never waits for replies.
    Open {
        /// The arrival process.
        process: ArrivalProcess,
        /// The loads of the sweep, ascending, each once, `at_load` among them.
        loads: Vec<Rate>,
        /// Arrivals of every trial, equal at every load.
        counts: TrialCounts,
    },
    /// A fixed number of clients; yields a maximum throughput, not a capacity in requests per second.
    Closed {
        /// The numbers of clients, ascending, each once, `at_concurrency` among them.
        clients: Vec<u32>,
        /// Length of the warm-up.
        warm_up: Duration,
        /// Length of the measured window.
        window: Duration,
        /// Length of the drain.
        drain: Duration,
    },
}

impl Traffic {
    /// The loads of all steps, ascending.
    pub fn loads(&self) -> Vec<Load> {
        match self {
            Self::Open { loads, .. } => loads.iter().copied().map(Load::RateMilli).collect(),
            Self::Closed { clients, .. } => clients.iter().copied().map(Load::Clients).collect(),
        }
    }

    /// How long a trial at a load offers load; replies may take longer.
    ///
    /// # Panics
    /// When the load is of the other kind of loop.
    pub fn trial_time(&self, load: Load) -> Duration {
        PlannedTrial { trial: 0, seed: 0, load, shape: self.shape(load) }.load_time()
    }

    /// How a trial at a load asks.
    ///
    /// # Panics
    /// When the load is of the other kind of loop.
    pub fn shape(&self, load: Load) -> TrialShape {
        match (self, load) {
            (Self::Open { process, counts, .. }, Load::RateMilli(rate)) => {
                TrialShape::Open { process: *process, rate, counts: *counts }
            }
            (Self::Closed { warm_up, window, drain, .. }, Load::Clients(clients)) => {
                TrialShape::Closed(ConcurrencyPlan {
                    clients,
                    warm_up_ns: warm_up.as_nanos() as u64,
                    window_ns: window.as_nanos() as u64,
                    drain_ns: drain.as_nanos() as u64,
                })
            }
            (Self::Open { .. }, Load::Clients(_)) | (Self::Closed { .. }, Load::RateMilli(_)) => {
                unreachable!("the loads of a traffic model are of its own kind")
            }
        }
    }
}

/// How much is measured before a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidencePlan {
    /// What is claimed at the load that must hold.
    pub claim: Claim,
    /// Numbers of trials, ascending, at which the evidence is looked at; the first look that decides is the last.
    pub looks: Vec<u32>,
    /// The search for the capacity, made by the plans `baseline` and `release`.
    pub search: Option<Search>,
    /// How long each plan may load the endpoint.
    pub budget: Budget,
}

/// The range and the effort of a search for the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// The lowest load that is tried.
    pub from: Rate,
    /// The highest load that is tried.
    pub to: Rate,
    /// A bracket is narrow enough when its ends differ by this share.
    pub precision: Share,
    /// Searches, each on a schedule of its own.
    pub seeds: u32,
}

/// How long each plan may load the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// For a pull request.
    pub check: Duration,
    /// For a nightly run.
    pub baseline: Duration,
    /// For a release.
    pub release: Duration,
}

impl Budget {
    /// The time of one plan.
    pub fn of(&self, plan: Plan) -> Duration {
        match plan {
            Plan::Check => self.check,
            Plan::Baseline => self.baseline,
            Plan::Release => self.release,
        }
    }
}

/// What a run is for, which decides how much of the contract it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// A pull request: the load that must hold, and one trial of every other listed load.
    #[default]
    Check,
    /// A nightly run: the same, and the search.
    Baseline,
    /// A release: the load that must hold, and the search.
    Release,
}

impl Plan {
    /// Every plan, the shortest first.
    pub const ALL: [Self; 3] = [Self::Check, Self::Baseline, Self::Release];

    /// Its name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Baseline => "baseline",
            Self::Release => "release",
        }
    }
}

/// What must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo {
    /// What one request must meet to be good.
    pub request: RequestLimits,
    /// What the window of a trial must meet.
    pub objectives: Vec<Objective>,
    /// Limits on resources at the load that must hold.
    pub resources: Vec<ResourceLimit>,
    /// The load that must hold: `at_load` or `at_concurrency`.
    pub at: Load,
    /// The least capacity, where one is asked for.
    pub capacity: Option<Rate>,
}

/// Replies kept as evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Samples {
    /// Full text of the first so many `ok` requests of each case.
    pub keep: u32,
}

/// What follows from an unclear verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether UNKNOWN blocks.
    pub unknown: UnknownPolicy,
    /// Whether it blocks that there is no baseline yet.
    pub missing_baseline: UnknownPolicy,
}

/// Whether UNKNOWN blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownPolicy {
    /// Exit code 3.
    Block,
    /// Exit code 0; still called UNKNOWN everywhere.
    Warn,
}
