//! What is measured of one request and in which unit, limits on it, and objectives over many requests.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Share, format_duration, format_measured_ratio, format_nanos, format_ratio};

/// What is measured of one request. Whatever starts with the request starts at its scheduled arrival; where it speaks, at
/// the scheduled end of its speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestMetric {
    /// From its start to the first non-empty output of any kind.
    Ttft,
    /// From its start to the first output other than reasoning.
    FirstAnswer,
    /// From its start to the first sound.
    FirstAudio,
    /// (last output − first output) / (output tokens − 1), tokens from `usage`.
    Tpot,
    /// The longest gap between two consecutive chunks of output: its longest pause.
    Itl,
    /// From its start to the last output.
    E2e,
    /// E2E / duration of the sound that was spoken or transcribed.
    Rtf,
    /// How long a listener who starts at the first sound runs dry in all.
    Underrun,
}

/// The unit in which a metric is kept, as a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MetricUnit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Parts per million of a ratio.
    #[serde(rename = "ppm")]
    PartsPerMillion,
}

impl MetricUnit {
    /// Writes a measured value for a person: three significant digits.
    pub fn show(self, value: u64) -> String {
        match self {
            Self::Nanoseconds => format_nanos(value),
            Self::PartsPerMillion => format_measured_ratio(value),
        }
    }
}

impl RequestMetric {
    /// Every metric, in the order in which limits are told.
    pub const ALL: [Self; 8] =
        [Self::Ttft, Self::FirstAnswer, Self::FirstAudio, Self::Tpot, Self::Itl, Self::E2e, Self::Rtf, Self::Underrun];

    /// The metric's name in contracts, records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::FirstAnswer => "first_answer",
            Self::FirstAudio => "first_audio",
            Self::Tpot => "tpot",
            Self::Itl => "itl",
            Self::E2e => "e2e",
            Self::Rtf => "rtf",
            Self::Underrun => "underrun",
        }
    }

    /// The unit of its values and limits.
    pub fn unit(self) -> MetricUnit {
        if self == Self::Rtf { MetricUnit::PartsPerMillion } else { MetricUnit::Nanoseconds }
    }

    /// Whether it is the time from a request's start to an event. Such a time grows as long as the event does not come, ends
    /// at the timeout, and holds every queue that the request waited in.
    pub fn is_wait(self) -> bool {
        matches!(self, Self::Ttft | Self::FirstAnswer | Self::FirstAudio | Self::E2e)
    }

    /// Whether it needs the server's token counts.
    pub fn needs_usage(self) -> bool {
        self == Self::Tpot
    }

    /// Whether it needs to know how long the sound lasts.
    pub fn needs_audio_duration(self) -> bool {
        matches!(self, Self::Rtf | Self::Underrun)
    }

    /// Writes a measured value for a person, with its unit.
    pub fn show(self, value: u64) -> String {
        self.unit().show(value)
    }

    /// Writes a limit as it can stand in a contract, exactly.
    pub fn show_limit(self, limit: u64) -> String {
        match self.unit() {
            MetricUnit::Nanoseconds => format_duration(Duration::from_nanos(limit)),
            MetricUnit::PartsPerMillion => format_ratio(limit),
        }
    }
}

/// The limits that one request must meet to be good, each in its metric's unit; strictly above is a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestLimits {
    by_metric: [Option<u64>; RequestMetric::ALL.len()],
}

impl RequestLimits {
    /// The limits that are set, with their metric, in the order of [`RequestMetric::ALL`].
    pub fn set(&self) -> impl Iterator<Item = (RequestMetric, u64)> {
        let limits = self.by_metric;
        RequestMetric::ALL.into_iter().filter_map(move |metric| Some((metric, limits[metric as usize]?)))
    }
}

impl FromIterator<(RequestMetric, u64)> for RequestLimits {
    /// Of several limits on one metric the last counts.
    fn from_iter<I: IntoIterator<Item = (RequestMetric, u64)>>(limits: I) -> Self {
        let mut by_metric = [None; RequestMetric::ALL.len()];
        for (metric, limit) in limits {
            by_metric[metric as usize] = Some(limit);
        }
        Self { by_metric }
    }
}

/// One objective over the window of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// At most `quantile.rest()` of the requests may be above the limit.
    Percentile {
        /// What is measured of each request.
        metric: RequestMetric,
        /// The quantile, as a share: P99 is 99 %.
        quantile: Share,
        /// The limit, in the metric's unit; strictly above is a violation.
        at_most: u64,
    },
    /// At least this share of everything scheduled ends `ok`.
    SuccessRate {
        /// The floor.
        at_least: Share,
    },
    /// At least this share of everything scheduled is good.
    Attainment {
        /// The floor.
        at_least: Share,
    },
}

impl Objective {
    /// The stable name of the objective: `ttft_p99`, `success_rate`, `attainment`.
    pub fn id(&self) -> String {
        match self {
            Self::Percentile { metric, quantile, .. } => {
                let percent = quantile.to_string();
                format!("{}_p{}", metric.name(), percent.trim_end_matches('%'))
            }
            Self::SuccessRate { .. } => "success_rate".to_owned(),
            Self::Attainment { .. } => "attainment".to_owned(),
        }
    }

    /// The share of requests that may violate the objective.
    pub fn budget(&self) -> Share {
        match self {
            Self::Percentile { quantile, .. } => quantile.rest(),
            Self::SuccessRate { at_least } | Self::Attainment { at_least } => at_least.rest(),
        }
    }

    /// The metric and the limit of a percentile; `None` for a share.
    pub fn limit(&self) -> Option<(RequestMetric, u64)> {
        match self {
            Self::Percentile { metric, at_most, .. } => Some((*metric, *at_most)),
            Self::SuccessRate { .. } | Self::Attainment { .. } => None,
        }
    }

    /// What must hold, as shown: `≤ 3s`, `≤ 0.5`, `≥ 99%`.
    pub fn limit_text(&self) -> String {
        match self {
            Self::Percentile { metric, at_most, .. } => format!("≤ {}", metric.show_limit(*at_most)),
            Self::SuccessRate { at_least } | Self::Attainment { at_least } => format!("≥ {at_least}"),
        }
    }
}
