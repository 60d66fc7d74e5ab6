//! The stored record of a run that later runs are compared with, and which one a run was compared with.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity::{CapacityRecord, SearchEnd};
use super::fingerprint::{Fingerprint, Origin};
use super::model::{Quantiles, RatioQuantiles, RunResult, StepRecord, TrialRecord};
use crate::contract::{AcceptedLoss, LONGEST, MOST_REQUESTS, Plan};
use crate::judge::{Reason, Status};
use crate::observe::Outcome;
use crate::stats::HEADROOM_LIMIT;
use crate::units::{Digest, Load, Rate, Share};

/// The version of a baseline record that this build writes, and the newest that it reads.
pub const BASELINE_SCHEMA: &str = "goodput-baseline/1";

/// What a later comparison needs of one run: one JSON file, named by the digest of its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineRecord {
    /// The version of this format.
    pub schema: String,
    /// SHA-256 of the record without this field, as compact JSON.
    pub digest: Digest,
    /// The version of the tool that wrote it.
    pub tool_version: String,
    /// The contract's name.
    pub name: String,
    /// When the run began (RFC 3339).
    pub started_at: String,
    /// When it ended.
    pub finished_at: String,
    /// What the run was for.
    pub plan: Plan,
    /// The contract as written, as JSON; it holds no secret.
    pub contract: serde_json::Value,
    /// SHA-256 of the contract's text.
    pub contract_digest: Digest,
    /// SHA-256 over all planned trials.
    pub plan_digest: Digest,
    /// SHA-256 over seed, cases and payloads.
    pub workload_digest: Digest,
    /// Under which circumstances it was measured.
    pub fingerprint: Fingerprint,
    /// Which commit was served, and which run measured it.
    pub origin: Origin,
    /// Why a comparison must not read it: what made the run void or incomplete. Empty when it is valid.
    pub invalid: Vec<String>,
    /// The overall answer of the run.
    pub verdict: Status,
    /// The rows of its verdict that did not pass.
    pub not_passed: Vec<NotPassed>,
    /// The steps, ascending by load.
    pub steps: Vec<RecordStep>,
    /// Trials that were made at the capacity of the baseline that this run was itself compared with.
    pub against: Vec<RecordStep>,
    /// The headrooms around the capacity, by load ascending; empty without a search that found both ends.
    pub curve: Vec<RecordStep>,
    /// The capacity seen.
    pub capacity: Option<CapacityRecord>,
    /// The capacity on each schedule, in the order of the searches.
    pub capacities: Vec<SeedCapacity>,
    /// The record that this run was compared with.
    pub parent: Option<Digest>,
    /// The release that it was promoted to.
    pub release: Option<String>,
}

/// A row of a verdict that did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotPassed {
    /// The row's name.
    pub id: String,
    /// Its status.
    pub status: Status,
    /// Its reason.
    pub reason: Reason,
}

/// All trials at one load that are evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordStep {
    /// What was asked of the endpoint.
    pub load: Load,
    /// The trials by seed, one for each.
    pub trials: Vec<RecordTrial>,
}

/// One trial: its counts and the quantiles of its window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordTrial {
    /// The seed of its schedule.
    pub seed: u64,
    /// SHA-256 over its schedule's offsets.
    pub schedule_digest: Digest,
    /// Length of the window.
    pub window_ns: u64,
    /// Requests scheduled in the window.
    pub scheduled: u64,
    /// Requests that ended `ok`.
    pub ok: u64,
    /// Good requests; `null` when that is not known for all.
    pub good: Option<u64>,
    /// The smallest headroom over its objectives on latency and attainment; `null` when one has none.
    pub headroom: Option<f64>,
    /// Whether the trial held; `null` when that is not known.
    pub held: Option<bool>,
    /// Quantiles of times by metric, over the window's requests.
    pub metrics: BTreeMap<String, Quantiles>,
    /// Quantiles of ratios by metric.
    pub ratios: BTreeMap<String, RatioQuantiles>,
}

impl RecordTrial {
    /// Good requests per second of the window; `None` when `good` is not known.
    pub fn goodput(&self) -> Option<f64> {
        Some(self.good? as f64 / (self.window_ns as f64 / 1e9)).filter(|rate| rate.is_finite())
    }
}

/// Between which loads the capacity lies on one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedCapacity {
    /// The schedule's seed.
    pub seed: u64,
    /// The highest load that held below the lowest that did not.
    pub holds_at: Rate,
    /// The lowest load that did not hold.
    pub breaks_at: Rate,
}

/// With what a run was compared, or why with nothing: everything that the comparison read besides the run itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineUse {
    /// The stored record; `null` when none was found or none can be used.
    pub record: Option<BaselineRecord>,
    /// Where it was taken from, and why.
    pub chosen: Option<Chosen>,
    /// Why there is none.
    pub missing: Option<Missing>,
    /// The stores that were asked, in their order, with what each answered.
    pub asked: Vec<Asked>,
    /// The commit that the change is compared with; `null` where that is not known.
    pub base_commit: Option<String>,
    /// The contract at that commit, as JSON; `null` where there was none.
    pub base_contract: Option<serde_json::Value>,
    /// Trials of the endpoint without the change that were made beside those of the run to confirm a suspected loss. They never
    /// enter a baseline.
    pub confirmation: Vec<RecordStep>,
    /// The record of the release that slow decline is held against.
    pub release: Option<BaselineRecord>,
    /// The reviewed exceptions that were read.
    pub accepted: Vec<Acceptance>,
}

/// Where a record was taken from, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// The store: `file`, `branch`, `artifact`, `s3`, `pair`.
    pub store: String,
    /// Where in it, for people: a path at a commit, a run's address, a key.
    pub place: String,
    /// Why this record and no other.
    pub why: Why,
    /// How old it was when the run began, in seconds; negative when it is from the future.
    pub age_s: i64,
}

/// Why a record was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "relation", deny_unknown_fields)]
pub enum Why {
    /// It was measured at the very commit that the change is based on.
    ExactBase,
    /// It was measured where the change left the base branch.
    MergeBase,
    /// It was measured at the nearest first-parent ancestor that has one.
    Ancestor {
        /// Commits between it and the base, or the merge base.
        distance: u32,
    },
    /// It is the release that the contract names.
    Release,
    /// It was measured beside the change, by the same run.
    Paired,
    /// It was named: on the command line, or by the contract where there is no repository to choose in.
    Named,
}

/// Why there is no baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// `no_baseline` or `baseline_corrupt`; of an endpoint that was run beside this one, what kept it from being measured.
    pub reason: Reason,
    /// What was seen, and the next step.
    pub note: String,
}

/// What one store answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The store.
    pub store: String,
    /// Its answer, for people: what was taken, or why nothing.
    pub answer: String,
}

/// A reviewed exception: one named loss that may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The row that it is about, as `capacity_change`.
    pub row: String,
    /// Why the loss is accepted.
    pub reason: String,
    /// The first day on which it no longer holds, as `2026-12-31`.
    pub expires: String,
    /// The largest loss that it covers, in parts per million; of a row without a ratio `null`.
    pub at_most_ppm: Option<u32>,
    /// The baseline that it is about: the commit that it was measured at, or its beginning. Against another it does not hold.
    pub baseline: Option<String>,
    /// Who accepted it.
    pub by: Option<String>,
}

impl BaselineUse {
    /// Whether the record was measured beside the run, trial by trial.
    pub fn is_paired(&self) -> bool {
        self.record.is_some() && self.chosen.as_ref().is_some_and(|chosen| chosen.why == Why::Paired)
    }
}

impl From<AcceptedLoss> for Acceptance {
    fn from(loss: AcceptedLoss) -> Self {
        Self {
            row: loss.row,
            reason: loss.reason,
            expires: loss.expires.to_string(),
            at_most_ppm: loss.at_most.map(Share::ppm),
            baseline: loss.baseline,
            by: loss.by,
        }
    }
}

/// Rows of a verdict that say whether a run is evidence at all.
pub const VALIDITY: [&str; 4] = ["endpoint", "plausibility", "load_generator", "completeness"];

impl BaselineRecord {
    /// What a later comparison needs of a run that was judged.
    pub fn of(result: &RunResult) -> Self {
        let checks = result.verdict.iter().flat_map(|verdict| &verdict.checks);
        let not_passed: Vec<NotPassed> = checks
            .filter(|check| check.status != Status::Pass)
            .map(|check| NotPassed { id: check.id.clone(), status: check.status, reason: check.reason })
            .collect();
        let mut invalid: Vec<String> = not_passed
            .iter()
            .filter(|row| VALIDITY.contains(&row.id.as_str()))
            .map(|row| format!("{}: {}", row.id, row.reason.code()))
            .collect();
        if result.verdict.is_none() {
            invalid.push("the run was not judged".to_owned());
        }
        let record = Self {
            schema: BASELINE_SCHEMA.to_owned(),
            digest: Digest::of(&[]),
            tool_version: result.tool_version.clone(),
            name: result.name.clone(),
            started_at: result.started_at.clone(),
            finished_at: result.finished_at.clone(),
            plan: result.plan,
            contract: result.contract.clone(),
            contract_digest: result.contract_digest.clone(),
            plan_digest: result.plan_digest.clone(),
            workload_digest: result.workload_digest.clone(),
            fingerprint: result.fingerprint.clone().unwrap_or_default(),
            origin: result.origin.clone(),
            invalid,
            verdict: result.verdict.as_ref().map_or(Status::Unknown, |verdict| verdict.overall),
            not_passed,
            steps: record_steps(&result.steps),
            against: record_steps(&result.against),
            curve: record_steps(&result.curve),
            capacity: result.capacity.clone(),
            capacities: capacities(result),
            parent: result.baseline.as_ref().and_then(|used| Some(used.record.as_ref()?.digest.clone())),
            release: None,
        };
        record.sealed()
    }

    /// The record with the digest of what it holds.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        // Every part of a record can be held by JSON; a digest of nothing would be refused by whoever reads it.
        let value = serde_json::to_value(&self).unwrap_or_default();
        self.digest = digest_of(value);
        self
    }

    /// Reads a record and holds it against its digest.
    ///
    /// # Errors
    /// What is wrong with it, completing "the baseline …".
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let value: serde_json::Value = serde_json::from_slice(text).map_err(|error| format!("is not JSON: {error}"))?;
        let schema = value.get("schema").and_then(serde_json::Value::as_str).map(str::to_owned);
        match schema.as_deref() {
            Some(BASELINE_SCHEMA) => {}
            Some(other) => {
                return Err(format!("has the format `{other}`; this version reads `{BASELINE_SCHEMA}`"));
            }
            None => return Err("has no `schema`: it is no baseline record".to_owned()),
        }
        let record: Self = serde_json::from_value(value.clone()).map_err(|error| format!("is no record: {error}"))?;
        let found = digest_of(value);
        if found != record.digest {
            return Err(format!(
                "was changed: its content has the digest {}, and it says {}",
                found.short(),
                record.digest.short()
            ));
        }
        if let Some(problem) = record.impossible() {
            return Err(format!("cannot be of any run: {problem}"));
        }
        Ok(record)
    }
}

/// Steps of a record, and trials of a step, beyond which none has ever been.
const MOST_STEPS: usize = 1_000;
const MOST_TRIALS: usize = 1_000;

impl BaselineRecord {
    /// What in it no run can have measured: a digest vouches for who wrote it, and not for what.
    pub fn impossible(&self) -> Option<String> {
        let steps = [("steps", &self.steps), ("against", &self.against), ("curve", &self.curve)];
        for (part, steps) in steps {
            let ascends = steps.windows(2).all(|two| two[0].load < two[1].load);
            if steps.len() > MOST_STEPS || !ascends {
                return Some(format!("the loads of `{part}` are too many, or not ascending"));
            }
            if let Some(step) = steps.iter().find(|step| !step.is_possible()) {
                return Some(format!("the trials at {} of `{part}`", step.load));
            }
        }
        let point = self.capacity.as_ref().and_then(|capacity| capacity.point);
        if point.is_some_and(|point| !(point > 0.0 && point <= Rate::MAX_MILLI as f64 / 1e3)) {
            return Some("its capacity".to_owned());
        }
        let seeds: BTreeSet<u64> = self.capacities.iter().map(|capacity| capacity.seed).collect();
        let are_intervals = self.capacities.iter().all(|capacity| capacity.holds_at < capacity.breaks_at);
        if !are_intervals || seeds.len() < self.capacities.len() || seeds.len() > MOST_TRIALS {
            return Some("its searches".to_owned());
        }
        let named = self.contract.get("name").and_then(serde_json::Value::as_str);
        (named != Some(self.name.as_str())).then(|| "its contract has another name".to_owned())
    }
}

impl RecordStep {
    fn is_possible(&self) -> bool {
        let seeds: BTreeSet<u64> = self.trials.iter().map(|trial| trial.seed).collect();
        seeds.len() == self.trials.len()
            && seeds.len() <= MOST_TRIALS
            && self.trials.iter().all(RecordTrial::is_possible)
    }
}

impl RecordTrial {
    fn is_possible(&self) -> bool {
        let counts = self.ok <= self.scheduled && self.good.is_none_or(|good| good <= self.ok);
        let window = (MIN_WINDOW_NS..=MAX_WINDOW_NS).contains(&self.window_ns);
        let headroom = self.headroom.is_none_or(|headroom| headroom.abs() <= HEADROOM_LIMIT + 1e-9);
        counts && window && headroom && self.scheduled <= MOST_REQUESTS
    }
}

/// The shortest and the longest window that a contract can ask for, with room.
const MIN_WINDOW_NS: u64 = 1_000;
const MAX_WINDOW_NS: u64 = 2 * LONGEST.as_nanos() as u64;

/// SHA-256 of a record without its digest, as compact JSON, so that white space does not matter.
fn digest_of(mut value: serde_json::Value) -> Digest {
    if let Some(map) = value.as_object_mut() {
        map.shift_remove("digest");
    }
    Digest::of(value.to_string().as_bytes())
}

/// Of each step the trials that are evidence and whole, one for each seed.
fn record_steps(steps: &[StepRecord]) -> Vec<RecordStep> {
    steps.iter().map(RecordStep::of).collect()
}

impl RecordStep {
    /// Of a step the trials that are evidence and whole, one for each seed.
    pub fn of(step: &StepRecord) -> Self {
        Self { load: step.load, trials: record_trials(step) }
    }
}

fn record_trials(step: &StepRecord) -> Vec<RecordTrial> {
    let evidence = |trial: &&TrialRecord| trial.complete && !trial.is_void();
    let mut trials: Vec<&TrialRecord> = step.trials.iter().filter(evidence).collect();
    trials.sort_by_key(|trial| (trial.seed, trial.trial));
    trials.dedup_by_key(|trial| trial.seed);
    trials.into_iter().map(RecordTrial::of).collect()
}

impl RecordTrial {
    /// What a comparison needs of a trial.
    pub fn of(trial: &TrialRecord) -> Self {
        Self {
            seed: trial.seed,
            schedule_digest: trial.schedule_digest.clone(),
            window_ns: trial.window_ns,
            scheduled: trial.window.scheduled,
            ok: trial.window.outcomes.get(&Outcome::Ok).copied().unwrap_or(0),
            good: trial.window.good,
            headroom: trial.headroom,
            held: trial.held,
            metrics: trial.metrics.clone(),
            ratios: trial.ratios.clone(),
        }
    }
}

/// The searches that found both ends.
fn capacities(result: &RunResult) -> Vec<SeedCapacity> {
    let ended = result.searches.iter().filter(|search| search.end == SearchEnd::Bracketed);
    ended
        .filter_map(|search| {
            Some(SeedCapacity { seed: search.seed, holds_at: search.holds_at?, breaks_at: search.breaks_at? })
        })
        .collect()
}
