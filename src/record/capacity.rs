//! What a result says of the capacity: the searches, where they ended, and what that yields.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::StepRecord;
use crate::judge::Claim;
use crate::units::{Load, Rate, Share};

/// The search for the capacity on the schedules of one seed (method, section 9).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchRecord {
    /// The seed of all its trials.
    pub seed: u64,
    /// Its end.
    pub end: SearchEnd,
    /// The highest load that held below the lowest that did not.
    pub holds_at: Option<Rate>,
    /// The lowest load that did not hold.
    pub breaks_at: Option<Rate>,
    /// Its own trials, in the order in which they were made; trials of the steps with the same seed count besides.
    pub steps: Vec<StepRecord>,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The bracket is as narrow as was asked for.
    Bracketed,
    /// Every load held, up to the highest of the range.
    HoldsThroughout,
    /// No load held, down to the lowest of the range.
    BreaksThroughout,
    /// Not finished: no time was left, a trial was no evidence twice, or the most trials were made.
    Unfinished,
}

/// The capacity: the highest load that holds below the lowest that does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapacityRecord {
    /// The highest load that held below the lowest that did not; `null` when none was seen to hold.
    pub holds_at: Option<Load>,
    /// The lowest load that did not hold; `null` when none was seen to break.
    pub breaks_at: Option<Load>,
    /// The capacity's point estimate, in requests per second; `null` without a search that found both ends.
    pub point: Option<f64>,
    /// What it claims.
    pub claim: Claim,
    /// How it was found.
    pub method: String,
    /// Confidence that the capacity lies between the two ends; `null` where none is attached.
    pub confidence: Option<Share>,
    /// Confidence of each end alone.
    pub confidence_of_end: Option<Share>,
    /// Schedules behind it.
    pub seeds: u32,
    /// Trials behind it.
    pub trials: u32,
    /// Measured requests of each trial: a capacity is that of a run of so many; `null` in a closed loop.
    pub requests_per_trial: Option<u64>,
    /// Goodput at `holds_at`.
    pub goodput: Option<f64>,
    /// A load above one that did not hold did hold; it is not believed.
    pub non_monotone: bool,
    /// Tried again at last, the first schedule broke twice below where all held: the endpoint changed during the run.
    pub changed: bool,
    /// The limit that broke first.
    pub binding: Option<Binding>,
}

/// The limit that broke first, or comes closest to breaking where none did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The objective's name.
    pub objective: String,
    /// The load at which it was seen.
    pub load: Load,
    /// Whether it broke there.
    pub broke: bool,
    /// Violations there.
    pub violations: u64,
    /// Requests there.
    pub n: u64,
}
