//! What is kept of each request while a trial runs: some 120 bytes, so that a million fit easily.

use std::collections::BTreeMap;

use super::gaps::GapHistogram;
use crate::contract::{LatencyMetric, Objective, RequestLimits};
use crate::observe::{Outcome, Warning};
use crate::record::RequestRecord;
use crate::record::grade::{Latency, is_coalesced, latency, nanos};
use crate::schedule::Segment;

/// Everything that a trial's summary is computed from. Requests may come in any order, each once, already graded.
#[derive(Debug, Clone, Default)]
pub struct TrialAccumulator {
    /// Scheduled and finished instants of the requests of all segments, for the number in flight.
    pub(super) flights: Vec<(u64, u64)>,
    /// The replies that ended `ok`, of all segments, for the completed throughput.
    pub(super) completions: Vec<Completion>,
    /// The requests of the window.
    pub(super) window: Vec<WindowRow>,
    /// Counts over the window.
    pub(super) tally: Tally,
    /// Gaps between the chunks of the window's `ok` replies.
    pub(super) gaps: GapHistogram,
}

/// A reply that ended `ok`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completion {
    pub(super) at_ns: u64,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

/// Plain counts over the window's requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) outcomes: BTreeMap<Outcome, u64>,
    pub(super) warnings: BTreeMap<Warning, u64>,
    pub(super) truncated: u64,
    pub(super) answerless: u64,
    pub(super) input_tokens: TokenSum,
    pub(super) output_tokens: TokenSum,
}

/// Tokens of the `ok` replies, as far as every one of them has a count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokenSum {
    tokens: u64,
    counted: u64,
    uncounted: u64,
}

impl TokenSum {
    fn add(&mut self, tokens: Option<u64>) {
        match tokens {
            Some(tokens) => {
                self.tokens = self.tokens.saturating_add(tokens);
                self.counted += 1;
            }
            None => self.uncounted += 1,
        }
    }

    /// The sum; `None` when a reply has no count, or when there is no reply at all.
    pub(super) fn total(self) -> Option<u64> {
        (self.counted > 0 && self.uncounted == 0).then_some(self.tokens)
    }
}

/// One request of the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowRow {
    pub(super) scheduled_ns: u64,
    send_lag: PackedLatency,
    ttft: PackedLatency,
    tpot: PackedLatency,
    e2e: PackedLatency,
    pub(super) outcome: Outcome,
    good: Option<bool>,
}

/// What one request means for one objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Within the limit.
    Within,
    /// It breaks the limit.
    Violation,
    /// It was stopped before that was known.
    Undecided,
    /// It ended `ok`, but the value is missing.
    Unmeasured,
    /// The objective does not apply to it.
    NotApplicable,
}

impl TrialAccumulator {
    /// Takes in one finished request.
    pub fn push(&mut self, record: &RequestRecord) {
        let finished = record.finished_ns.unwrap_or(u64::MAX);
        self.flights.push((record.scheduled_ns, finished));
        let ok = record.outcome == Outcome::Ok;
        if let (true, Some(at_ns)) = (ok, record.finished_ns) {
            let (input_tokens, output_tokens) = (record.input_tokens, record.output_tokens);
            self.completions.push(Completion { at_ns, input_tokens, output_tokens });
        }
        if record.segment != Segment::Window {
            return;
        }
        self.window.push(WindowRow::new(record));
        *self.tally.outcomes.entry(record.outcome).or_default() += 1;
        for warning in &record.warnings {
            *self.tally.warnings.entry(*warning).or_default() += 1;
        }
        if ok {
            self.push_reply(record);
        }
    }

    fn push_reply(&mut self, record: &RequestRecord) {
        self.tally.truncated += u64::from(record.truncated == Some(true));
        self.tally.answerless += u64::from(record.answerless == Some(true));
        self.tally.input_tokens.add(record.input_tokens);
        self.tally.output_tokens.add(record.output_tokens);
        if !is_coalesced(record) {
            record.chunk_gaps_ns.iter().flatten().for_each(|gap| self.gaps.add(*gap));
        }
    }

    /// The number in flight just before each window arrival, beside the arrivals, both in order of time.
    pub(super) fn in_flight(&self) -> (Vec<u64>, Vec<u64>) {
        let sorted = |mut instants: Vec<u64>| {
            instants.sort_unstable();
            instants
        };
        let begins = sorted(self.flights.iter().map(|flight| flight.0).collect());
        let ends = sorted(self.flights.iter().map(|flight| flight.1).collect());
        let arrivals = sorted(self.window.iter().map(|row| row.scheduled_ns).collect());
        let before = |at: &u64| {
            let begun = begins.partition_point(|begin| begin < at);
            let ended = ends.partition_point(|end| end <= at);
            begun.saturating_sub(ended) as u64
        };
        let levels = arrivals.iter().map(before).collect();
        (arrivals, levels)
    }
}

impl WindowRow {
    fn new(record: &RequestRecord) -> Self {
        let since_scheduled = |at: Option<u64>| at.map(|at| at.saturating_sub(record.scheduled_ns));
        let pack = |metric| match since_scheduled(record.finished_ns) {
            // A stopped request keeps the time that it has certainly taken: a limit below that is broken.
            Some(age) if record.outcome == Outcome::Cancelled => PackedLatency::pack(match metric {
                LatencyMetric::Ttft => Latency::Measured(since_scheduled(record.first_output_ns).unwrap_or(age)),
                LatencyMetric::E2e => Latency::Measured(age),
                LatencyMetric::Tpot => Latency::Failed,
            }),
            _ => PackedLatency::pack(latency(record, metric)),
        };
        Self {
            scheduled_ns: record.scheduled_ns,
            send_lag: PackedLatency::pack(
                since_scheduled(record.sent_ns).map_or(Latency::Unmeasured, Latency::Measured),
            ),
            ttft: pack(LatencyMetric::Ttft),
            tpot: pack(LatencyMetric::Tpot),
            e2e: pack(LatencyMetric::E2e),
            outcome: record.outcome,
            good: record.good,
        }
    }

    /// From its scheduled arrival to its last byte on the wire.
    pub(super) fn send_lag(&self) -> Option<u64> {
        match self.send_lag.unpack() {
            Latency::Measured(lag) => Some(lag),
            _ => None,
        }
    }

    /// One latency; a stopped request counts as failed.
    pub(super) fn latency(&self, metric: LatencyMetric) -> Latency {
        if self.outcome == Outcome::Cancelled { Latency::Failed } else { self.packed(metric).unpack() }
    }

    /// Whether it is known to be good; `None` for a stopped request.
    pub(super) fn good(&self) -> Option<bool> {
        self.good.filter(|_| self.outcome != Outcome::Cancelled)
    }

    /// What it means for an objective.
    pub(super) fn standing(&self, objective: &Objective, limits: &RequestLimits) -> Standing {
        if self.outcome == Outcome::Cancelled {
            return if self.outlived(objective, limits) { Standing::Violation } else { Standing::Undecided };
        }
        let violation_if = |broken| if broken { Standing::Violation } else { Standing::Within };
        match objective {
            Objective::Latency { metric, at_most, .. } => match self.latency(*metric) {
                Latency::Measured(value) => violation_if(value > nanos(*at_most)),
                Latency::Failed => Standing::Violation,
                Latency::Unmeasured => Standing::Unmeasured,
                Latency::NotApplicable => Standing::NotApplicable,
            },
            Objective::SuccessRate { .. } => violation_if(self.outcome != Outcome::Ok),
            Objective::Attainment { .. } => self.good.map_or(Standing::Unmeasured, |good| violation_if(!good)),
        }
    }

    /// Whether a stopped request had already taken longer than the objective allows (method, section 4, "decided").
    fn outlived(&self, objective: &Objective, limits: &RequestLimits) -> bool {
        let beyond = |metric: LatencyMetric, limit| match self.packed(metric).unpack() {
            Latency::Measured(taken) => metric != LatencyMetric::Tpot && taken > nanos(limit),
            _ => false,
        };
        match objective {
            Objective::Latency { metric, at_most, .. } => beyond(*metric, *at_most),
            Objective::SuccessRate { .. } => false,
            Objective::Attainment { .. } => limits.set().any(|(metric, limit)| beyond(metric, limit)),
        }
    }

    fn packed(&self, metric: LatencyMetric) -> PackedLatency {
        match metric {
            LatencyMetric::Ttft => self.ttft,
            LatencyMetric::Tpot => self.tpot,
            LatencyMetric::E2e => self.e2e,
        }
    }
}

/// A [`Latency`] in eight bytes: the largest numbers stand for what is not a number.
#[derive(Debug, Clone, Copy)]
struct PackedLatency(u64);

impl PackedLatency {
    const FAILED: u64 = u64::MAX;
    const UNMEASURED: u64 = u64::MAX - 1;
    const NOT_APPLICABLE: u64 = u64::MAX - 2;

    fn pack(latency: Latency) -> Self {
        Self(match latency {
            Latency::Measured(value) => value.min(Self::NOT_APPLICABLE - 1),
            Latency::Failed => Self::FAILED,
            Latency::Unmeasured => Self::UNMEASURED,
            Latency::NotApplicable => Self::NOT_APPLICABLE,
        })
    }

    fn unpack(self) -> Latency {
        match self.0 {
            Self::FAILED => Latency::Failed,
            Self::UNMEASURED => Latency::Unmeasured,
            Self::NOT_APPLICABLE => Latency::NotApplicable,
            value => Latency::Measured(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_at_most_128_bytes() {
        assert!(size_of::<WindowRow>() + size_of::<(u64, u64)>() + size_of::<Completion>() <= 128);
    }
}
