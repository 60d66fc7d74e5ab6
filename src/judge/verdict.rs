//! The verdict's published form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Share;

/// All checks and the overall answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// FAIL if any check fails, else UNKNOWN if any is unknown, else PASS.
    pub overall: Status,
    /// Whether the policy lets an overall UNKNOWN through.
    pub unknown_blocks: bool,
    /// The checks, in the contract's order, objectives first.
    pub checks: Vec<Check>,
}

/// PASS, FAIL or UNKNOWN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// The evidence shows that it holds.
    Pass,
    /// The evidence shows that it does not.
    Fail,
    /// The evidence does not decide it.
    Unknown,
    /// A loss, or what nobody can tell, that a reviewed exception covers; of a row alone, never the overall answer.
    Accepted,
}

impl Status {
    /// The word shown everywhere.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Unknown => "UNKNOWN",
            Self::Accepted => "ACCEPTED",
        }
    }
}

/// One row of the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The row's stable name.
    pub id: String,
    /// What the evidence decides.
    pub status: Status,
    /// Why, from a closed list.
    pub reason: Reason,
    /// What is claimed by a PASS or FAIL; `null` for rows without statistics.
    pub claim: Option<Claim>,
    /// How it was decided, in a few words; `null` when nothing was computed.
    pub method: Option<String>,
    /// The limit, as shown: `≤ 3s`.
    pub limit: Option<String>,
    /// What was observed, as shown.
    pub observed: Option<String>,
    /// The interval around it, as shown: lower and upper end.
    pub interval: Option<[String; 2]>,
    /// Confidence of each end of the interval and of the decision.
    pub confidence: Option<Share>,
    /// Requests behind it.
    pub samples: Option<u64>,
    /// Trials behind it.
    pub trials: Option<u32>,
    /// What a reader needs besides: what would decide it, or what was seen.
    pub note: Option<String>,
}

/// What a decision speaks about (method, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// On this schedule.
    ThisRun,
    /// A run of this length at this load, in the median over schedules.
    TypicalRun,
    /// In steady state.
    LongRun,
}

/// Why a row has its status: a closed list, documented in `docs/verdict.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The limit holds.
    Held,
    /// The limit is broken.
    Broken,
    /// Too few requests to decide, though nothing speaks against it.
    TooFewSamples,
    /// The evidence lies on both sides of the limit.
    IntervalStraddlesLimit,
    /// Requests pile up: what was measured is not a steady state.
    NotStationary,
    /// The server gave no token counts that a limit needs.
    NoUsage,
    /// It is not known how long the sound lasts, which a limit needs.
    NoAudioDuration,
    /// No probe answers for this row.
    NoProbe,
    /// A probe failed.
    ProbeFailed,
    /// A counter went down.
    CounterReset,
    /// A counter rose beyond its limit.
    CounterRose,
    /// What serves was replaced by another process during the run.
    Restarted,
    /// A health check failed.
    Unhealthy,
    /// The load generator did not keep its plan.
    GeneratorSaturated,
    /// Nothing was measured.
    NotMeasured,
    /// The budget ran out before.
    BudgetExhausted,
    /// The unloaded endpoint already breaks the limit.
    InfeasibleObjective,
    /// There is no baseline.
    NoBaseline,
    /// The baseline cannot be read.
    BaselineCorrupt,
    /// The baseline is from another machine or workload.
    FingerprintMismatch,
    /// Run-to-run noise is not known.
    RunNoiseUnknown,
    /// A gain beyond belief.
    ImplausibleGain,
    /// A result beyond belief.
    ImplausibleResult,
    /// A launched endpoint did not become ready.
    EndpointNotReady,
    /// The endpoint went away or cannot be reached.
    EndpointDown,
    /// The change weakens the contract.
    ContractWeakened,
    /// A reviewed exception covers it.
    Accepted,
    /// The run was stopped.
    Cancelled,
    /// The tool itself failed.
    Internal,
}

impl Reason {
    /// The code in records and reports.
    pub fn code(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Broken => "broken",
            Self::TooFewSamples => "too_few_samples",
            Self::IntervalStraddlesLimit => "interval_straddles_limit",
            Self::NotStationary => "not_stationary",
            Self::NoUsage => "no_usage",
            Self::NoAudioDuration => "no_audio_duration",
            Self::NoProbe => "no_probe",
            Self::ProbeFailed => "probe_failed",
            Self::CounterReset => "counter_reset",
            Self::CounterRose => "counter_rose",
            Self::Restarted => "restarted",
            Self::Unhealthy => "unhealthy",
            Self::GeneratorSaturated => "generator_saturated",
            Self::NotMeasured => "not_measured",
            Self::BudgetExhausted => "budget_exhausted",
            Self::InfeasibleObjective => "infeasible_objective",
            Self::NoBaseline => "no_baseline",
            Self::BaselineCorrupt => "baseline_corrupt",
            Self::FingerprintMismatch => "fingerprint_mismatch",
            Self::RunNoiseUnknown => "run_noise_unknown",
            Self::ImplausibleGain => "implausible_gain",
            Self::ImplausibleResult => "implausible_result",
            Self::EndpointNotReady => "endpoint_not_ready",
            Self::EndpointDown => "endpoint_down",
            Self::ContractWeakened => "contract_weakened",
            Self::Accepted => "accepted",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }
}
