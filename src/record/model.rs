//! The published formats: a line of `requests.jsonl`, and `result.json`.
//!
//! Absent data is `null`, never 0. Times are integer nanoseconds, shares are parts per million.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audit::AuditRecord;
use super::baseline::BaselineUse;
use super::capacity::{CapacityRecord, SearchRecord};
use super::comparison::{Calibration, Comparison};
use super::fingerprint::{Fingerprint, Origin};
use crate::contract::{MetricUnit, Plan, ResourceKind, ResourceUnit};
use crate::judge::{Reason, Verdict};
use crate::observe::{Outcome, OutputKind, ReplyTexts, Warning};
use crate::schedule::{Segment, TrialCounts};
use crate::units::{Digest, Load, Share};

/// The version of `result.json` that this build writes and reads.
pub const RESULT_SCHEMA: &str = "goodput-result/1";

/// One line of `requests.jsonl`: one scheduled request. All times are since the trial's start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestRecord {
    /// The trial's number in the run, from 0.
    pub trial: u32,
    /// Index of the arrival in the trial's schedule.
    pub arrival: u64,
    /// The segment it was scheduled in.
    pub segment: Segment,
    /// The case that was sent.
    pub case: String,
    /// When it was due; in a closed loop, when its client became free.
    pub scheduled_ns: u64,
    /// When the speech that it sends ends by its schedule, from where its time counts; `null` where none is sent in real
    /// time.
    pub speech_end_ns: Option<u64>,
    /// When its last byte was written to the wire.
    pub sent_ns: Option<u64>,
    /// First output of any kind.
    pub first_output_ns: Option<u64>,
    /// First output other than reasoning.
    pub first_answer_ns: Option<u64>,
    /// First sound.
    pub first_audio_ns: Option<u64>,
    /// Last output.
    pub last_output_ns: Option<u64>,
    /// When it had its outcome.
    pub finished_ns: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status, once one was seen.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<String>,
    /// The kind of the first output.
    pub first_output_kind: Option<OutputKind>,
    /// Messages with output; `null` when no reply began.
    pub output_chunks: Option<u32>,
    /// Gaps between them.
    pub chunk_gaps_ns: Option<Vec<u64>>,
    /// How long the sound of the reply lasts, or the file that was transcribed; `null` where it is not known.
    pub audio_ns: Option<u64>,
    /// How long a listener who starts at the first sound runs dry in all.
    pub underrun_ns: Option<u64>,
    /// Prompt tokens by the server's count.
    pub input_tokens: Option<u64>,
    /// Completion tokens by the server's count.
    pub output_tokens: Option<u64>,
    /// Reasoning tokens by the server's count.
    pub reasoning_tokens: Option<u64>,
    /// Why the reply ended, normalised.
    pub finish_reason: Option<String>,
    /// Oddities that did not change the outcome.
    pub warnings: Vec<Warning>,
    /// Cut by a limit or a filter.
    pub truncated: Option<bool>,
    /// Completed, but every output was reasoning.
    pub answerless: Option<bool>,
    /// Ended `ok` within every request limit; `null` when a limit could not be measured.
    pub good: Option<bool>,
    /// Names of the limits it missed; `null` when it did not end `ok`.
    pub missed: Option<Vec<String>>,
}

impl RequestRecord {
    /// The instant from which its time counts: the scheduled end of speech where it speaks, else its scheduled arrival.
    pub fn begins_ns(&self) -> u64 {
        self.speech_end_ns.unwrap_or(self.scheduled_ns)
    }
}

/// One line of `samples.jsonl`: a reply kept in full, as evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptReply {
    /// The case.
    pub case: String,
    /// The trial's number.
    pub trial: u32,
    /// Index of the arrival.
    pub arrival: u64,
    /// What was said.
    #[serde(flatten)]
    pub texts: ReplyTexts,
}

/// One line of `resources.jsonl`: one sample of a resource that was due while a trial ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceSample {
    /// The trial's number in the run, from 0.
    pub trial: u32,
    /// When its reading began, since the trial's start; when it was due, of one that was left out.
    pub at_ns: u64,
    /// The resource's name.
    pub name: String,
    /// The number, in the resource's unit; `null` when there is none.
    pub value: Option<f64>,
    /// Of a counter: something that it counts began anew or is gone since the sample before, whether the number shows it or
    /// not.
    pub began_anew: bool,
    /// Why there is no number.
    pub failure: Option<String>,
}

/// `result.json`: everything a verdict needs, and the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// The version of this format.
    pub schema: String,
    /// The version of the tool that wrote it.
    pub tool_version: String,
    /// The contract's name.
    pub name: String,
    /// When the run began (RFC 3339).
    pub started_at: String,
    /// When it ended.
    pub finished_at: String,
    /// The contract as written, as JSON; it holds no secret.
    pub contract: serde_json::Value,
    /// SHA-256 of the contract's text.
    pub contract_digest: Digest,
    /// What the run is for.
    #[serde(default)]
    pub plan: Plan,
    /// How much of its budget the plan took.
    #[serde(default)]
    pub budget: BudgetRecord,
    /// SHA-256 over all planned trials: load, seed and schedule of each.
    pub plan_digest: Digest,
    /// SHA-256 over seed, cases and payloads.
    pub workload_digest: Digest,
    /// Under which circumstances it was measured; `null` where nobody asked.
    pub fingerprint: Option<Fingerprint>,
    /// Which commit was served, and which run measured it.
    #[serde(default)]
    pub origin: Origin,
    /// The endpoint: how it came to be and how it ended.
    pub endpoint: EndpointRecord,
    /// How far the load generator can be trusted on the machine that it ran on; `null` where it was not audited.
    #[serde(default)]
    pub audit: Option<AuditRecord>,
    /// Why the run stopped before its plan was done.
    pub stopped: Option<Stop>,
    /// The steps, ascending by load, measured or not.
    pub steps: Vec<StepRecord>,
    /// The searches for the capacity, one for each seed, in the order in which they were made.
    #[serde(default)]
    pub searches: Vec<SearchRecord>,
    /// The capacity seen; `null` when nothing tells of it.
    pub capacity: Option<CapacityRecord>,
    /// The headrooms around the capacity that later runs are compared by, by load ascending.
    #[serde(default)]
    pub curve: Vec<StepRecord>,
    /// With what the run was compared; `null` where the contract asks for no comparison.
    #[serde(default)]
    pub baseline: Option<BaselineUse>,
    /// The trials that were made to compare with the baseline's capacity.
    #[serde(default)]
    pub against: Vec<StepRecord>,
    /// The trials that were made, in turn with the endpoint without the change, to confirm a suspected loss.
    #[serde(default)]
    pub confirm: Vec<StepRecord>,
    /// What changed since the baseline; `null` where nothing was compared.
    #[serde(default)]
    pub comparison: Option<Comparison>,
    /// How often the gate would be wrong on the machine that it ran on; `null` where it was not calibrated.
    #[serde(default)]
    pub calibration: Option<Calibration>,
    /// Stability readings.
    pub probes: Vec<ProbeRecord>,
    /// Planned and measured cells.
    pub completeness: Completeness,
    /// The verdict on all of this; `null` only in a result that was not judged yet.
    pub verdict: Option<Verdict>,
}

impl RunResult {
    /// Every step with trials of the run, whatever they were made for.
    pub fn all_steps(&self) -> impl Iterator<Item = &StepRecord> {
        let searched = self.searches.iter().flat_map(|search| &search.steps);
        self.steps.iter().chain(searched).chain(&self.against).chain(&self.curve).chain(&self.confirm)
    }

    /// The same, to be changed.
    pub fn all_steps_mut(&mut self) -> impl Iterator<Item = &mut StepRecord> {
        let searched = self.searches.iter_mut().flat_map(|search| &mut search.steps);
        let compared = self.against.iter_mut().chain(&mut self.curve).chain(&mut self.confirm);
        self.steps.iter_mut().chain(searched).chain(compared)
    }
}

/// How the endpoint came to be and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointRecord {
    /// The URL of the requests, without credentials.
    pub url: String,
    /// The dialect.
    pub protocol: String,
    /// Who started it.
    pub kind: EndpointKind,
    /// Whether it became ready.
    pub ready: Readiness,
    /// From launch to the first output of a request, for an endpoint that was launched.
    pub ready_after_ns: Option<u64>,
    /// How a launched endpoint's process ended, when it ended before we stopped it.
    pub exited: Option<String>,
    /// The last lines of a launched endpoint's log, kept when it failed.
    pub log_tail: Vec<String>,
    /// What was done otherwise than the contract lets expect, because the endpoint would not have it.
    #[serde(default)]
    pub notices: Vec<String>,
}

/// Who started the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndpointKind {
    /// Somebody else.
    External,
    /// This run, by `launch.command`.
    Launched,
    /// This run, by `launch.simulate`: the figures are those of a simulation.
    Simulated,
}

/// Whether the endpoint became ready, and what stopped it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state", deny_unknown_fields)]
pub enum Readiness {
    /// A request yielded output.
    Ready,
    /// A launched endpoint ended or did not become ready in time.
    NotReady {
        /// What was seen.
        detail: String,
    },
    /// An external endpoint could not be reached.
    Unreachable {
        /// What was seen.
        detail: String,
    },
    /// The run was stopped before this was known.
    NotAsked,
}

/// Why a run stopped before its plan was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "cause", deny_unknown_fields)]
pub enum Stop {
    /// SIGINT or SIGTERM.
    Signal {
        /// The signal's number.
        number: i32,
    },
    /// The endpoint went away.
    EndpointDown {
        /// What was seen.
        detail: String,
    },
    /// The results could not be written.
    Storage {
        /// What was seen.
        detail: String,
    },
}

/// How much of its budget a plan took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetRecord {
    /// How long the plan may load the endpoint.
    pub limit_ns: u64,
    /// How long its trials took.
    pub spent_ns: u64,
    /// Whether a trial was left out for want of time.
    pub exhausted: bool,
}

/// All trials at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepRecord {
    /// What was asked of the endpoint.
    pub load: Load,
    /// Arrivals per second that the schedule asked for in the window; `null` in a closed loop.
    pub offered: Option<f64>,
    /// Arrivals per second really sent.
    pub achieved: Option<f64>,
    /// Requests per second that ended `ok`.
    pub completed: Option<f64>,
    /// Good requests per second; `null` when `good` is not known for all.
    pub goodput: Option<f64>,
    /// Good requests / all scheduled requests of the window.
    pub attainment: Option<Share>,
    /// Requests that ended `ok` / all scheduled requests of the window.
    pub success_rate: Option<Share>,
    /// Prompt tokens per second, of the replies that ended in the window's time; `null` when one of them has no count.
    pub input_tokens_per_second: Option<f64>,
    /// Completion tokens per second, of the same replies.
    pub output_tokens_per_second: Option<f64>,
    /// Share of the completion tokens that were reasoning, over those of the same replies whose server counts both; `null`
    /// when one of them has no count, or none counts reasoning.
    pub reasoning_share: Option<Share>,
    /// Quantiles of times by metric: `ttft`, `first_answer`, `first_audio`, `tpot`, `itl`, `e2e`, `underrun` over requests;
    /// `inter_chunk` over all gaps between chunks; `send_lag`. A metric that applies to nothing is left out.
    pub metrics: BTreeMap<String, Quantiles>,
    /// Quantiles of ratios by metric: `rtf`.
    pub ratios: BTreeMap<String, RatioQuantiles>,
    /// What was sampled in the windows of the trials that speak for the step.
    #[serde(default)]
    pub resources: Vec<ResourceRecord>,
    /// The trials.
    pub trials: Vec<TrialRecord>,
    /// Why the step has no measured trial.
    pub not_measured: Option<String>,
}

/// Quantiles of one metric over the window's requests, failures counted as infinite: a quantile that falls among them is
/// `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quantiles {
    /// Requests to which the metric applies; gaps for `inter_chunk`.
    pub count: u64,
    /// The median.
    pub p50_ns: Option<u64>,
    /// The 90th percentile.
    pub p90_ns: Option<u64>,
    /// The 95th percentile.
    pub p95_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The largest finite value.
    pub max_ns: Option<u64>,
}

/// The same of a ratio, in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatioQuantiles {
    /// Requests to which the metric applies.
    pub count: u64,
    /// The median.
    pub p50_ppm: Option<u64>,
    /// The 90th percentile.
    pub p90_ppm: Option<u64>,
    /// The 95th percentile.
    pub p95_ppm: Option<u64>,
    /// The 99th percentile.
    pub p99_ppm: Option<u64>,
    /// The largest finite value.
    pub max_ppm: Option<u64>,
}

/// One measured run at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialRecord {
    /// The trial's number in the run, from 0.
    pub trial: u32,
    /// The seed of its schedule and case order.
    pub seed: u64,
    /// SHA-256 over its schedule's offsets, or over its concurrency plan.
    pub schedule_digest: Digest,
    /// Planned arrivals; `null` in a closed loop.
    pub planned: Option<TrialCounts>,
    /// Length of the window: `D(N)` in an open loop.
    pub window_ns: u64,
    /// Whether the whole window was measured.
    pub complete: bool,
    /// Ended early because it could not hold any more; only in a search.
    #[serde(default)]
    pub given_up: bool,
    /// From its start to the end of its last request.
    #[serde(default)]
    pub took_ns: u64,
    /// What became of the window's requests.
    pub window: WindowCounts,
    /// Evidence for each objective, in the contract's order.
    pub objectives: Vec<ObjectiveEvidence>,
    /// The smallest headroom over its objectives on latency and attainment (method, section 1); `null` when one of them has
    /// none, or there is none. A quantile among failures, and one of zero, have the least and the most that are kept, ∓ ln 10.
    pub headroom: Option<f64>,
    /// Whether the trial held: every objective within its budget, and nothing piled up. `null` when that is not known.
    pub held: Option<bool>,
    /// Quantiles of times by metric, over the window's requests.
    #[serde(default)]
    pub metrics: BTreeMap<String, Quantiles>,
    /// Quantiles of ratios by metric.
    #[serde(default)]
    pub ratios: BTreeMap<String, RatioQuantiles>,
    /// Whether requests piled up; `null` in a closed loop and when there were too few arrivals.
    pub drift: Option<DriftRecord>,
    /// What was sampled while its window lasted.
    #[serde(default)]
    pub resources: Vec<ResourceRecord>,
    /// Stability rows that broke while it ran: then it did not hold.
    #[serde(default)]
    pub unstable: Vec<String>,
    /// How well the load generator kept its plan.
    pub health: HealthRecord,
}

/// What became of the window's requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowCounts {
    /// Requests scheduled in the window; in a closed loop, requests whose client became free in it.
    pub scheduled: u64,
    /// Requests with an outcome.
    pub decided: u64,
    /// Requests that ended `ok` within every limit; `null` when that is not known for all.
    pub good: Option<u64>,
    /// Requests by outcome; outcomes that did not occur are left out.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Of the requests that ended with `http_error`, how many had each status.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// Ended `ok`, but cut by a limit or a filter.
    pub truncated: u64,
    /// Ended `ok` without an answer.
    pub answerless: u64,
    /// Requests with each warning.
    pub warnings: BTreeMap<Warning, u64>,
    /// Prompt tokens; `null` when a request that ended `ok` has none.
    pub input_tokens: Option<u64>,
    /// Completion tokens; `null` when a request that ended `ok` has none.
    pub output_tokens: Option<u64>,
}

/// The evidence of one trial for one objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveEvidence {
    /// The objective's name.
    pub id: String,
    /// Requests to which it applies, undecided ones included.
    pub n: u64,
    /// Known violations.
    pub violations: u64,
    /// Requests without an outcome: violations for PASS, none for FAIL.
    pub undecided: u64,
    /// Requests that ended `ok` but whose value could not be measured; any makes the objective UNKNOWN.
    pub unmeasured: u64,
    /// The unit of `quantile`, `lower` and `upper`: nanoseconds or parts per million; `null` for shares.
    pub unit: Option<MetricUnit>,
    /// The nearest-rank quantile; `null` when it falls among failures, and for shares.
    pub quantile: Option<u64>,
    /// Order statistics that bound the quantile at 95 % on each side; `null` where there is none or it is infinite.
    pub lower: Option<u64>,
    /// See `lower`.
    pub upper: Option<u64>,
    /// `ln(limit / quantile)`; for attainment of the badness, held to ∓ ln 10. `null` where it is not known and for the success
    /// rate.
    pub headroom: Option<f64>,
    /// How much less its requests tell of the long run than independent ones would (method, section 7); `null` with fewer than
    /// 20 of them, and where some have no outcome.
    #[serde(default)]
    pub inflation: Option<f64>,
    /// Those of its requests that had the endpoint to themselves.
    #[serde(default)]
    pub alone: AloneCounts,
}

/// Requests during whose whole life no other was open: what they miss, no lower load would have met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AloneCounts {
    /// Requests.
    pub n: u64,
    /// Those of them that break the limit.
    pub violations: u64,
}

/// The slope of the number in flight over the window (method, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriftRecord {
    /// Requests in flight gained per second.
    pub slope_per_s: f64,
    /// Slope over its standard error.
    pub t: f64,
    /// Share of the arrivals that piles up.
    pub growth: f64,
    /// Significant and more than 5 % of the arrivals.
    pub drifting: bool,
}

/// How well the load generator kept its plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthRecord {
    /// Scheduled arrival to request on the wire, over all requests of the window that were sent.
    pub send_lag: Option<Quantiles>,
    /// The generator's own part of it: send lag without the time that the network took to connect and to take the request.
    pub dispatch_lag: Option<Quantiles>,
    /// The largest dispatch lag p99 at which the trial is evidence; `null` in a closed loop.
    pub dispatch_lag_limit_ns: Option<u64>,
    /// Requests of the window that were due.
    pub due: u64,
    /// Of those, requests that the generator handed to the network.
    pub sent: u64,
    /// First to last due instant of the window.
    pub planned_span_ns: Option<u64>,
    /// First to last instant at which the generator released them.
    pub actual_span_ns: Option<u64>,
    /// How late a 10 ms heartbeat on the same runtime was.
    pub runtime_lag: Option<Quantiles>,
    /// CPU time of this process over the trial, in seconds.
    pub cpu_seconds: Option<f64>,
    /// That time per second and core.
    pub cpu_share: Option<f64>,
    /// The most connections that were open at once.
    pub connections: Option<u64>,
    /// Difference between the wall clock and the steady clock over the trial.
    pub clock_step_ns: Option<i64>,
    /// The load is above the rate to which the generator was audited; `false` too where it was not.
    #[serde(default)]
    pub beyond_audit: bool,
    /// What the sampling of resources cost; `null` where nothing was sampled.
    #[serde(default)]
    pub sampling: Option<SamplingRecord>,
    /// What makes the trial void; empty when it is evidence.
    pub faults: Vec<String>,
}

/// One stability row's readings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeRecord {
    /// The row's name.
    pub name: String,
    /// What kind of row it is.
    pub kind: ProbeKind,
    /// What was asked: `command`, `prometheus`, `docker` and so on.
    #[serde(default)]
    pub source: String,
    /// The row comes by itself with an endpoint of this machine.
    #[serde(default)]
    pub automatic: bool,
    /// The largest rise that passes; `null` for anything but a counter.
    pub max_increase: Option<f64>,
    /// Read before the first trial.
    pub before: Option<Reading>,
    /// Read between trials, in their order.
    #[serde(default)]
    pub between: Vec<TrialReading>,
    /// Read again before the trial with this number, because something else had the machine since the reading before: what
    /// changed between these two is not this run's load.
    #[serde(default)]
    pub anew: Vec<TrialReading>,
    /// Read after the last drain.
    pub after: Option<Reading>,
}

/// What kind of stability row it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// A number that may rise by at most a limit.
    Counter,
    /// A code of the last fault that may not appear or change.
    LastCode,
    /// What runs must stay the same.
    Unchanged,
    /// An exit code that must be 0.
    ExitCode,
}

/// A reading between two trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialReading {
    /// The trial that had ended.
    pub trial: u32,
    /// What was read.
    pub reading: Reading,
}

/// One answer of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The number or the exit code, over all series; `null` when the probe failed.
    pub value: Option<f64>,
    /// What the number is made of; empty where the source knows one number without a name.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Why there is none.
    pub failure: Option<String>,
    /// How long the probe took.
    pub took_ns: u64,
}

/// One of the numbers that a probe read: of a time series, a container, a pod, a process, a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Whose number it is; empty where that has no name.
    pub of: String,
    /// Since when it counts, as its source writes that; another value means that it began anew.
    pub since: Option<String>,
    /// The number.
    pub value: f64,
}

/// What was sampled of one resource in the window of a trial, or in those of a step's trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceRecord {
    /// The resource's name.
    pub name: String,
    /// Whether it is a level or counts upwards.
    pub kind: ResourceKind,
    /// The unit of its numbers.
    pub unit: ResourceUnit,
    /// Samples that were due in the window.
    pub due: u64,
    /// Samples that have a number.
    pub samples: u64,
    /// The smallest; `null` without a sample, as the others.
    pub min: Option<f64>,
    /// The median by nearest rank: of an even count the lower of the two in the middle. Of a step, the median of its trials'
    /// medians.
    pub median: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// The last.
    pub last: Option<f64>,
    /// Of a counter, its rise per second from the first sample to the last; `null` when it went down or began anew, and with
    /// fewer than two samples. Of a step, the rise of all its trials over their time; `null` when one of them has none.
    pub rate_per_s: Option<f64>,
    /// The time of that rise, of a step summed over its trials; `null` where there is no rate.
    #[serde(default)]
    pub rate_over_ns: Option<u64>,
    /// Why a sample has no number, the first time that one had none; where all have one, why a counter has no rate.
    pub failure: Option<String>,
}

/// What the sampling of resources cost in one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SamplingRecord {
    /// Readings that were due.
    pub due: u64,
    /// Readings that were left out because the one before was not back yet.
    pub missed: u64,
    /// How late readings began.
    pub lag: Option<Quantiles>,
    /// How long they took.
    pub took: Option<Quantiles>,
    /// CPU time of the thread that reads, in seconds; what it starts is not counted.
    pub cpu_seconds: Option<f64>,
}

/// Planned and measured cells: one cell per step, one per search and one per stability row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Completeness {
    /// Cells that the plan declares.
    pub planned: u64,
    /// Cells that were measured.
    pub measured: u64,
    /// Every cell, in the order of the plan.
    #[serde(default)]
    pub cells: Vec<Cell>,
}

/// One thing that the plan declares to be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Its name: a load, a search, a stability row.
    pub name: String,
    /// Why it is not measured; `null` when it is.
    pub missing: Option<Reason>,
}
