//! A contract as it is written; the schema is generated from these types.
//!
//! Every field is optional here, also the required ones: what the schema refused is taken out before the rest is read, so that
//! mistakes of form and of meaning are told in one go. A `None` in a required place is therefore never told again.

mod accepted;
mod baseline;
mod sources;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(in crate::contract) use accepted::*;
pub(in crate::contract) use baseline::*;
pub(in crate::contract) use sources::*;

use super::metric::RequestMetric;
use super::schema::{AtMost, DurationText, EnvironmentName, ProtocolName, RateText, ShareText, Whole};

/// What a serving endpoint must hold, and how it is measured: `goodput gate` answers PASS, FAIL or UNKNOWN.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "goodput contract")]
pub(in crate::contract) struct Contract {
    /// The version of the contract format: 1.
    #[expect(dead_code, reason = "the schema holds it to the one version that there is")]
    #[schemars(required, extend("const" = super::schema::VERSION))]
    pub(in crate::contract) version: Option<Whole>,
    /// The name shown in reports and used for the run folder.
    #[schemars(required, length(min = 1, max = 100))]
    pub(in crate::contract) name: Option<String>,
    /// Where requests go, and how an ephemeral endpoint is started.
    #[schemars(required)]
    pub(in crate::contract) endpoint: Option<Endpoint>,
    /// What is sent.
    #[schemars(required)]
    pub(in crate::contract) workload: Option<Workload>,
    /// How it is sent.
    #[schemars(required)]
    pub(in crate::contract) traffic: Option<Traffic>,
    /// What must hold.
    #[schemars(required)]
    pub(in crate::contract) slo: Option<Slo>,
    /// Counters and health checks, read before the first trial and after every trial.
    pub(in crate::contract) stability: Option<Vec<Option<StabilityRow>>>,
    /// What is sampled while trials run.
    pub(in crate::contract) resources: Option<Resources>,
    /// With what a run is compared, and which loss still passes.
    pub(in crate::contract) baseline: Option<Baseline>,
    /// How many full replies to keep as evidence.
    pub(in crate::contract) samples: Option<Samples>,
    /// What follows from a verdict that is not clear.
    pub(in crate::contract) policy: Option<Policy>,
}

/// Where requests go, and how an ephemeral endpoint is started.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Endpoint {
    /// The full URL of every request, without credentials; `ws` or `wss` for a WebSocket. Port 0 takes a free one, with `launch.simulate` only.
    #[schemars(required, extend("examples" = ["http://127.0.0.1:8000/v1/chat/completions"]))]
    pub(in crate::contract) url: Option<String>,
    /// The dialect of requests and replies.
    #[schemars(required)]
    pub(in crate::contract) protocol: Option<ProtocolName>,
    /// The model's name; `$model` in the payload.
    #[schemars(required, length(min = 1))]
    pub(in crate::contract) model: Option<String>,
    /// Extra request headers; secrets come from environment variables.
    pub(in crate::contract) headers: Option<BTreeMap<String, Option<HeaderValue>>>,
    /// Longest life of a request, from its scheduled arrival.
    #[schemars(extend("default" = "120s"))]
    pub(in crate::contract) timeout: Option<DurationText>,
    /// Longest silence between two messages of a reply; the `timeout` when that is shorter.
    #[schemars(extend("default" = "30s"))]
    pub(in crate::contract) idle_timeout: Option<DurationText>,
    /// The HTTP version to speak.
    #[schemars(extend("default" = "auto"))]
    pub(in crate::contract) http: Option<HttpVersion>,
    /// PEM file of certificates that are trusted besides the system's.
    #[schemars(length(min = 1))]
    pub(in crate::contract) ca_file: Option<String>,
    /// The proxy to go through; none unless named.
    #[schemars(extend("examples" = ["http://proxy.example:3128"]))]
    pub(in crate::contract) proxy: Option<String>,
    /// The formats of sound that comes without a container.
    pub(in crate::contract) audio: Option<Audio>,
    /// The endpoint that the gate starts and stops itself.
    pub(in crate::contract) launch: Option<Launch>,
}

/// The formats of sound that comes without a container. A container, such as WAV, tells its own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Audio {
    /// What is sent: `openai-realtime` only, where 24 kHz `pcm16` of one channel is the default.
    pub(in crate::contract) input: Option<AudioFormat>,
    /// What comes back: `openai-realtime`, with the same default, and `openai-speech`, with none.
    pub(in crate::contract) output: Option<AudioFormat>,
}

/// The format of sound that comes without a container.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct AudioFormat {
    /// How one sample is written.
    #[schemars(extend("default" = "pcm16"))]
    pub(in crate::contract) encoding: Option<AudioEncoding>,
    /// Samples per second of each channel.
    #[schemars(required, range(min = 1_000, max = 768_000), extend("examples" = [24000]))]
    pub(in crate::contract) sample_rate: Option<Whole>,
    /// Channels, interleaved.
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    pub(in crate::contract) channels: Option<Whole>,
}

/// How one sample of sound is written.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(in crate::contract) enum AudioEncoding {
    /// 16-bit signed integers, least significant byte first.
    Pcm16,
    /// 8-bit samples after ITU-T G.711, μ-law.
    G711Ulaw,
    /// 8-bit samples after ITU-T G.711, A-law.
    G711Alaw,
}

/// A text, or an environment variable for a secret, as in `{ env: SERVING_TOKEN, prefix: "Bearer " }`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::contract) enum HeaderValue {
    Literal(String),
    Environment(HeaderEnvironment),
}

/// A header's value from an environment variable; masked wherever it would be shown.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct HeaderEnvironment {
    /// The variable's name.
    #[schemars(required)]
    pub(in crate::contract) env: Option<EnvironmentName>,
    /// Text put before the value, such as `Bearer `.
    pub(in crate::contract) prefix: Option<String>,
}

/// The HTTP version to speak.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(in crate::contract) enum HttpVersion {
    /// HTTP/2 where TLS negotiates it, else HTTP/1.1.
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only; without TLS by prior knowledge.
    Http2,
}

/// An endpoint that the gate starts and stops itself: exactly one of `command` and `simulate`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Launch {
    /// Program and arguments; the contract's folder is the working directory.
    #[schemars(length(min = 1))]
    pub(in crate::contract) command: Option<Vec<Option<String>>>,
    /// Profile of the embedded simulated endpoint.
    #[schemars(length(min = 1))]
    pub(in crate::contract) simulate: Option<String>,
    /// When the endpoint counts as ready.
    pub(in crate::contract) ready: Option<Ready>,
    /// How long the process group may take to end after SIGTERM before it is killed.
    #[schemars(extend("default" = "30s"))]
    pub(in crate::contract) stop_within: Option<DurationText>,
}

/// When a launched endpoint counts as ready.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Ready {
    /// Path that answers 2xx once the server is up; without it the port must accept.
    #[schemars(extend("examples" = ["/health"]))]
    pub(in crate::contract) path: Option<String>,
    /// Longest time until then.
    #[schemars(extend("default" = "10m"))]
    pub(in crate::contract) within: Option<DurationText>,
    /// Longest time from there until a request yields its first output.
    #[schemars(extend("default" = "2m"))]
    pub(in crate::contract) first_token_within: Option<DurationText>,
}

/// What is sent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Workload {
    /// A JSON or JSON-lines file of cases, or the list of cases itself.
    #[schemars(required)]
    pub(in crate::contract) cases: Option<Cases>,
    /// The request body; a text `$name` stands for a whole field of the case, `$model` for the endpoint's model. The
    /// fields of a form for `openai-transcription` and `events: [ … ]` for `openai-realtime`, where `$audio` stands for the
    /// sound in the file that the case names. The protocol's own where none is written.
    pub(in crate::contract) payload: Option<Map<String, Value>>,
    /// The seed of the run: equal seeds give equal schedules.
    #[schemars(extend("default" = 1))]
    pub(in crate::contract) seed: Option<Whole>,
}

/// A file of cases, or the cases themselves; a case is a mapping with the fields that the payload asks for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::contract) enum Cases {
    File(String),
    Inline(#[schemars(length(min = 1))] Vec<Option<Map<String, Value>>>),
}

/// How requests are sent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Traffic {
    /// The traffic model.
    #[schemars(required)]
    pub(in crate::contract) model: Option<TrafficModel>,
    /// Open loop: the loads of the sweep; `at_load` is always among them.
    #[schemars(length(min = 1))]
    pub(in crate::contract) loads: Option<Vec<Option<RateText>>>,
    /// Closed loop: the numbers of clients; `at_concurrency` is always among them.
    #[schemars(length(min = 1), inner(range(min = 1, max = super::schema::MOST_CLIENTS)))]
    pub(in crate::contract) concurrency: Option<Vec<Option<Whole>>>,
    /// Open loop: the search for the capacity, made by the plans `baseline` and `release`.
    pub(in crate::contract) search: Option<Search>,
    /// The shape of one trial.
    #[schemars(required)]
    pub(in crate::contract) trial: Option<Trial>,
    /// Numbers of trials at which the evidence is looked at; the first look that decides is the last. One trial by default
    /// for `long_run`; not written for `this_run`, which makes one.
    #[schemars(extend("default" = [3, 5, 8]))]
    pub(in crate::contract) repeats: Option<Repeats>,
    /// What is claimed at the load that must hold.
    #[schemars(extend("default" = "typical_run"))]
    pub(in crate::contract) claim: Option<Claim>,
    /// How long each plan may load the endpoint.
    pub(in crate::contract) budget: Option<Budget>,
}

/// The search for the capacity: the highest load that holds and the lowest that does not, on several schedules.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Search {
    /// The lowest load that is tried.
    #[schemars(required)]
    pub(in crate::contract) from: Option<RateText>,
    /// The highest load that is tried.
    #[schemars(required)]
    pub(in crate::contract) to: Option<RateText>,
    /// How near the two ends must come, from 0.1% to 50%.
    #[schemars(extend("default" = "5%"))]
    pub(in crate::contract) precision: Option<ShareText>,
    /// Searches, each on a schedule of its own; with 5 the capacity's lower end has a confidence above 95%.
    #[schemars(range(min = 1, max = 15), extend("default" = 5))]
    pub(in crate::contract) seeds: Option<Whole>,
}

/// A number of trials, or an ascending list of them, as in `[3, 5, 8]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::contract) enum Repeats {
    One(#[schemars(range(min = 1, max = 100))] Whole),
    Several(#[schemars(length(min = 1), inner(range(min = 1, max = 100)))] Vec<Option<Whole>>),
}

/// What a decision speaks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[expect(clippy::enum_variant_names, reason = "they are written so in a contract")]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(in crate::contract) enum Claim {
    /// This schedule alone: one trial.
    ThisRun,
    /// A run of this length, in the median over schedules: at least three trials.
    TypicalRun,
    /// The steady state: long trials.
    LongRun,
}

/// How long each plan may load the endpoint.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Budget {
    /// For a pull request.
    #[schemars(extend("default" = "30m"))]
    pub(in crate::contract) check: Option<DurationText>,
    /// For a nightly run.
    #[schemars(extend("default" = "3h"))]
    pub(in crate::contract) baseline: Option<DurationText>,
    /// For a release.
    #[schemars(extend("default" = "3h"))]
    pub(in crate::contract) release: Option<DurationText>,
}

/// The traffic model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(in crate::contract) enum TrafficModel {
    /// Open loop with equal gaps: compares two versions.
    Constant,
    /// Open loop with random gaps: states a capacity.
    Poisson,
    /// A fixed number of clients: yields a maximum throughput.
    Closed,
}

/// The shape of one trial: exactly one of `window` and `requests`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Trial {
    /// Length of the measured part at `at_load`; in an open loop it becomes a count, equal at every load.
    pub(in crate::contract) window: Option<DurationText>,
    /// Requests of the measured part, open loop only.
    #[schemars(range(min = 1, max = super::schema::MOST_REQUESTS))]
    pub(in crate::contract) requests: Option<Whole>,
    /// Length of the warm-up at `at_load`; a fifth of the window by default.
    pub(in crate::contract) warm_up: Option<DurationText>,
    /// How long load goes on behind the window; at least the largest latency limit, which is the default.
    pub(in crate::contract) drain: Option<DurationText>,
}

/// What must hold.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Slo {
    /// What one request must meet to be good.
    pub(in crate::contract) request: Option<RequestLimits>,
    /// What the window of a trial must meet.
    #[schemars(required, length(min = 1))]
    pub(in crate::contract) objectives: Option<Vec<Option<Objective>>>,
    /// Limits on resources, at the load that must hold.
    pub(in crate::contract) resources: Option<Vec<Option<ResourceLimit>>>,
    /// Open loop: the load that must hold.
    pub(in crate::contract) at_load: Option<RateText>,
    /// Closed loop: the number of clients at which it must hold.
    #[schemars(range(min = 1, max = super::schema::MOST_CLIENTS))]
    pub(in crate::contract) at_concurrency: Option<Whole>,
    /// Open loop: the floor of the capacity.
    pub(in crate::contract) capacity: Option<Capacity>,
}

/// The floor of the capacity.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Capacity {
    /// The offered load that must be shown to hold.
    #[schemars(required)]
    pub(in crate::contract) at_least: Option<RateText>,
}

/// What one request must meet to be good; strictly above is a miss. Times start at the scheduled arrival; where a request
/// speaks, at the scheduled end of its speech.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct RequestLimits {
    /// Time to the first output of any kind.
    pub(in crate::contract) ttft: Option<DurationText>,
    /// Time to the first output other than reasoning; a reply without one breaks the limit.
    pub(in crate::contract) first_answer: Option<DurationText>,
    /// Time to the first sound; a reply without one breaks the limit.
    pub(in crate::contract) first_audio: Option<DurationText>,
    /// Time per output token after the first, tokens from `usage`.
    pub(in crate::contract) tpot: Option<DurationText>,
    /// The longest pause between two chunks of output.
    pub(in crate::contract) itl: Option<DurationText>,
    /// Time to the last output.
    pub(in crate::contract) e2e: Option<DurationText>,
    /// Real-time factor: time to the last output / duration of the sound; a plain number.
    #[schemars(extend("exclusiveMinimum" = 0, "examples" = [0.5]))]
    pub(in crate::contract) rtf: Option<f64>,
    /// How long a listener who starts at the first sound runs dry in all; `0s` is none at all.
    pub(in crate::contract) underrun: Option<DurationText>,
}

impl RequestLimits {
    /// The limits that are durations, by metric.
    pub(in crate::contract) fn durations(&self) -> [(RequestMetric, Option<&DurationText>); 7] {
        [
            (RequestMetric::Ttft, self.ttft.as_ref()),
            (RequestMetric::FirstAnswer, self.first_answer.as_ref()),
            (RequestMetric::FirstAudio, self.first_audio.as_ref()),
            (RequestMetric::Tpot, self.tpot.as_ref()),
            (RequestMetric::Itl, self.itl.as_ref()),
            (RequestMetric::E2e, self.e2e.as_ref()),
            (RequestMetric::Underrun, self.underrun.as_ref()),
        ]
    }
}

/// One objective: a metric of requests with `percentile` and `at_most`, or a share with `at_least`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Objective {
    /// What is measured.
    #[schemars(required)]
    pub(in crate::contract) metric: Option<Metric>,
    /// For a metric of requests: the percentile that must be within the limit, from 50 to below 100.
    #[schemars(extend("minimum" = 50, "exclusiveMaximum" = 100, "examples" = [95, 99, 99.9]))]
    pub(in crate::contract) percentile: Option<f64>,
    /// For a metric of requests: the limit, a duration; for `rtf` a plain number.
    pub(in crate::contract) at_most: Option<AtMost>,
    /// For a share: the floor, over everything scheduled.
    pub(in crate::contract) at_least: Option<ShareText>,
}

/// What an objective measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(in crate::contract) enum Metric {
    /// Time to the first output of any kind.
    Ttft,
    /// Time to the first output other than reasoning.
    FirstAnswer,
    /// Time to the first sound.
    FirstAudio,
    /// Time per output token after the first, tokens from `usage`.
    Tpot,
    /// The longest pause between two chunks of a request's output.
    Itl,
    /// Time to the last output.
    E2e,
    /// Real-time factor: time to the last output / duration of the sound.
    Rtf,
    /// How long a listener who starts at the first sound runs dry in all.
    Underrun,
    /// Share of everything scheduled that ended properly.
    SuccessRate,
    /// Share of everything scheduled that ended properly within every limit of `request`.
    Attainment,
}

impl Metric {
    /// The metric of requests; `None` of a share.
    pub(in crate::contract) fn of_requests(self) -> Option<RequestMetric> {
        match self {
            Self::Ttft => Some(RequestMetric::Ttft),
            Self::FirstAnswer => Some(RequestMetric::FirstAnswer),
            Self::FirstAudio => Some(RequestMetric::FirstAudio),
            Self::Tpot => Some(RequestMetric::Tpot),
            Self::Itl => Some(RequestMetric::Itl),
            Self::E2e => Some(RequestMetric::E2e),
            Self::Rtf => Some(RequestMetric::Rtf),
            Self::Underrun => Some(RequestMetric::Underrun),
            Self::SuccessRate | Self::Attainment => None,
        }
    }
}

/// How many full replies to keep as evidence.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Samples {
    /// Full text of the first so many `ok` requests of each case.
    #[schemars(range(min = 0, max = 1000), extend("default" = 5))]
    pub(in crate::contract) keep: Option<Whole>,
}

/// What follows from a verdict that is not clear.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Policy {
    /// Whether UNKNOWN blocks.
    #[schemars(extend("default" = "block"))]
    pub(in crate::contract) unknown: Option<UnknownPolicy>,
    /// Whether it blocks that there is no baseline yet.
    #[schemars(extend("default" = "warn"))]
    pub(in crate::contract) missing_baseline: Option<UnknownPolicy>,
}

/// Whether UNKNOWN blocks.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(in crate::contract) enum UnknownPolicy {
    /// Exit code 3.
    Block,
    /// Exit code 0; still called UNKNOWN everywhere.
    Warn,
}
