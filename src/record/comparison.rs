//! What a comparison of two runs found.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge::{Reason, Status};
use crate::units::{Load, Share};

/// What changed between a baseline and a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// What had to match and does not: then nothing is compared.
    pub mismatches: Vec<Difference>,
    /// What is under test: what the change changed.
    pub under_test: Vec<Difference>,
    /// Every figure that was compared: the capacity first, then goodput and latency by load.
    pub changes: Vec<Change>,
    /// Where the contract asks for less than the one at the base.
    pub weakened: Vec<Weakening>,
    /// The slow decline since the anchored release; `null` where there is none to hold it against.
    pub since_release: Option<Change>,
}

/// A circumstance that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Its name in the fingerprint.
    pub field: String,
    /// On the baseline's side; `null` when it is not known there.
    pub base: Option<String>,
    /// On the run's side.
    pub head: Option<String>,
}

/// One figure on both sides. Ratios are head over base of something of which more is better: of a latency, base over head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// `capacity`, `goodput`, or the name of a percentile such as `ttft_p99`.
    pub metric: String,
    /// The load at which it was compared; `null` for the capacity.
    pub load: Option<Load>,
    /// The figure on the baseline's side, as shown.
    pub base: Option<String>,
    /// On the run's side, as shown.
    pub head: Option<String>,
    /// The ratio's estimate; `null` when nothing was computed.
    pub ratio: Option<f64>,
    /// Its lower and upper bound.
    pub interval: Option<[f64; 2]>,
    /// One-sided confidence of each bound.
    pub confidence: Option<Share>,
    /// How it was computed.
    pub method: Option<String>,
    /// The largest loss that still passes.
    pub margin: Share,
    /// Trials on the baseline's side.
    pub base_trials: u32,
    /// Trials on the run's side.
    pub head_trials: u32,
    /// PASS when the lower bound is above `1 − margin`, FAIL when the upper one is below.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// The interval excludes 1: it is a change and no noise.
    pub significant: bool,
    /// The whole interval lies beyond the margin, on either side: it is a change that matters.
    pub material: bool,
    /// Whether it is a row of the verdict.
    pub gates: bool,
    /// What a reader needs besides.
    pub note: Option<String>,
}

/// One place where a contract asks for less than the one at the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Weakening {
    /// Where in the contract, as a JSON pointer.
    pub pointer: String,
    /// What it was and what it is, in a few words: `ttft_p95 from 3s to 4s`.
    pub what: String,
}

/// How often the gate would be wrong on one machine, from an endpoint that was run against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// What must match between it and a run for which it speaks: that part of the fingerprint of the calibrated endpoint.
    pub must_match: BTreeMap<String, String>,
    /// The largest loss that passes.
    pub margin: Share,
    /// Numbers of pairs at which the gate looks.
    pub looks: Vec<u32>,
    /// The capacity, where it could be read from a curve, and the goodput by load.
    pub rows: Vec<CalibrationRow>,
}

/// The same of one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationRow {
    /// `capacity` or `goodput`.
    pub metric: String,
    /// The load; `null` for the capacity.
    pub load: Option<Load>,
    /// Pairs of trials behind it.
    pub pairs: u32,
    /// Standard deviation of the logarithm of the ratio of two equal trials; `null` with fewer than two pairs.
    pub deviation: Option<f64>,
    /// How often the gate would FAIL though nothing differs.
    pub false_red: Option<Share>,
    /// How often it would say UNKNOWN then.
    pub undecided: Option<Share>,
    /// The smallest loss that the gate would FAIL in 80 % of comparisons; `null` where half is not enough.
    pub smallest_drop: Option<Share>,
    /// How far this can be trusted.
    pub note: Option<String>,
}
