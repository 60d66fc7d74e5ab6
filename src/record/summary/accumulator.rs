//! What is kept of each request while a trial runs: some 140 bytes, so that a million fit easily.

use std::collections::BTreeMap;

use super::gaps::GapHistogram;
use crate::contract::{Objective, RequestLimits, RequestMetric};
use crate::observe::{Outcome, Warning};
use crate::record::RequestRecord;
use crate::record::grade::{Measure, is_coalesced, measure, since_begin};
use crate::schedule::Segment;

/// Everything that a trial's summary is computed from. Requests may come in any order, each once, already graded.
#[derive(Debug, Clone, Default)]
pub struct TrialAccumulator {
    /// When the time of each request of any segment begins and ends, for the number in flight.
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
    input_tokens: Packed,
    output_tokens: Packed,
    reasoning_tokens: Packed,
}

impl Completion {
    /// Prompt tokens by the server's count.
    pub(super) fn input_tokens(&self) -> Option<u64> {
        self.input_tokens.number()
    }

    /// Completion tokens by the server's count, reasoning included.
    pub(super) fn output_tokens(&self) -> Option<u64> {
        self.output_tokens.number()
    }

    /// Reasoning tokens by the server's count.
    pub(super) fn reasoning_tokens(&self) -> Option<u64> {
        self.reasoning_tokens.number()
    }
}

/// Plain counts over the window's requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) outcomes: BTreeMap<Outcome, u64>,
    pub(super) statuses: BTreeMap<u16, u64>,
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
    /// From when its time counts.
    pub(super) begins_ns: u64,
    send_lag: Packed,
    /// By metric, in the order of [`RequestMetric::ALL`].
    measures: [Packed; RequestMetric::ALL.len()],
    pub(super) outcome: Outcome,
    good: Option<bool>,
}

/// The requests that had the endpoint to themselves, by when their time begins, ascending.
pub(super) struct Alone {
    begins: Vec<u64>,
}

impl Alone {
    pub(super) fn contains(&self, row: &WindowRow) -> bool {
        self.begins.binary_search(&row.begins_ns).is_ok()
    }
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
        self.flights.push((record.begins_ns(), finished));
        let ok = record.outcome == Outcome::Ok;
        if let (true, Some(at_ns)) = (ok, record.finished_ns) {
            let tokens = |count: Option<u64>| Packed::pack(count.into());
            self.completions.push(Completion {
                at_ns,
                input_tokens: tokens(record.input_tokens),
                output_tokens: tokens(record.output_tokens),
                reasoning_tokens: tokens(record.reasoning_tokens),
            });
        }
        if record.segment != Segment::Window {
            return;
        }
        self.window.push(WindowRow::new(record));
        *self.tally.outcomes.entry(record.outcome).or_default() += 1;
        if let (Outcome::HttpError, Some(status)) = (record.outcome, record.status) {
            *self.tally.statuses.entry(status).or_default() += 1;
        }
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

    /// The requests during whose whole life no other was open.
    pub(super) fn alone(&self) -> Alone {
        let mut flights = self.flights.clone();
        flights.sort_unstable();
        let mut begins = Vec::new();
        let mut open_until = 0;
        for (index, &(begin, end)) in flights.iter().enumerate() {
            let next = flights.get(index + 1).map_or(u64::MAX, |flight| flight.0);
            if begin >= open_until && next >= end && next > begin {
                begins.push(begin);
            }
            open_until = open_until.max(end);
        }
        Alone { begins }
    }

    /// The number in flight just before each of the given instants, which ascend.
    pub(super) fn in_flight(&self, arrivals: &[u64]) -> Vec<u64> {
        let sorted = |mut instants: Vec<u64>| {
            instants.sort_unstable();
            instants
        };
        let begins = sorted(self.flights.iter().map(|flight| flight.0).collect());
        let ends = sorted(self.flights.iter().map(|flight| flight.1).collect());
        let before = |at: &u64| {
            let begun = begins.partition_point(|begin| begin < at);
            let ended = ends.partition_point(|end| end <= at);
            begun.saturating_sub(ended) as u64
        };
        arrivals.iter().map(before).collect()
    }
}

impl WindowRow {
    /// Whether the endpoint was there for it. One that found nobody says nothing of what an idle endpoint can do.
    pub(super) fn reached_the_endpoint(&self) -> bool {
        use Outcome::{Cancelled, ConnectError, NoResponse, TlsError, Unsent};
        !matches!(self.outcome, Cancelled | ConnectError | NoResponse | TlsError | Unsent)
    }

    pub(super) fn new(record: &RequestRecord) -> Self {
        let since_begin = |at| since_begin(record, at);
        let known = |metric| match since_begin(record.finished_ns) {
            // A stopped request keeps the time that it has certainly taken: a limit below that is broken.
            Some(age) if record.outcome == Outcome::Cancelled => match metric {
                RequestMetric::Ttft => Measure::Measured(since_begin(record.first_output_ns).unwrap_or(age)),
                RequestMetric::FirstAnswer => Measure::Measured(since_begin(record.first_answer_ns).unwrap_or(age)),
                RequestMetric::FirstAudio => Measure::Measured(since_begin(record.first_audio_ns).unwrap_or(age)),
                RequestMetric::E2e => Measure::Measured(age),
                RequestMetric::Tpot | RequestMetric::Itl | RequestMetric::Rtf | RequestMetric::Underrun => {
                    Measure::Failed
                }
            },
            _ => measure(record, metric),
        };
        Self {
            begins_ns: record.begins_ns(),
            send_lag: Packed::pack(since_begin(record.sent_ns).into()),
            measures: RequestMetric::ALL.map(|metric| Packed::pack(known(metric))),
            outcome: record.outcome,
            good: record.good,
        }
    }

    /// From where its time begins to its last byte on the wire.
    pub(super) fn send_lag(&self) -> Option<u64> {
        self.send_lag.number()
    }

    /// One metric; a stopped request counts as failed.
    pub(super) fn measure(&self, metric: RequestMetric) -> Measure {
        if self.outcome == Outcome::Cancelled { Measure::Failed } else { self.packed(metric).unpack() }
    }

    /// The largest of its values over their limits; infinite when it did not end `ok` (method, section 1).
    pub(super) fn badness(&self, limits: &RequestLimits) -> f64 {
        if self.outcome != Outcome::Ok {
            return f64::INFINITY;
        }
        let part = |(metric, limit): (RequestMetric, u64)| match (self.measure(metric), limit) {
            (Measure::Measured(0), _) | (Measure::NotApplicable, _) => 0.0,
            (Measure::Measured(value), limit) => value as f64 / limit as f64,
            (Measure::Failed | Measure::Unmeasured, _) => f64::INFINITY,
        };
        limits.set().map(part).fold(0.0, f64::max)
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
            Objective::Percentile { metric, at_most, .. } => match self.measure(*metric) {
                Measure::Measured(value) => violation_if(value > *at_most),
                Measure::Failed => Standing::Violation,
                Measure::Unmeasured => Standing::Unmeasured,
                Measure::NotApplicable => Standing::NotApplicable,
            },
            Objective::SuccessRate { .. } => violation_if(self.outcome != Outcome::Ok),
            Objective::Attainment { .. } => self.good.map_or(Standing::Unmeasured, |good| violation_if(!good)),
        }
    }

    /// Whether a stopped request had already taken longer than the objective allows (method, section 4, "decided").
    fn outlived(&self, objective: &Objective, limits: &RequestLimits) -> bool {
        let beyond = |(metric, limit): (RequestMetric, u64)| match self.packed(metric).unpack() {
            Measure::Measured(taken) => metric.is_wait() && taken > limit,
            _ => false,
        };
        match objective {
            Objective::Percentile { metric, at_most, .. } => beyond((*metric, *at_most)),
            Objective::SuccessRate { .. } => false,
            Objective::Attainment { .. } => limits.set().any(beyond),
        }
    }

    fn packed(&self, metric: RequestMetric) -> Packed {
        self.measures[metric as usize]
    }
}

/// A [`Measure`], or a count that may be missing, in eight bytes: the largest numbers stand for what is not a number.
#[derive(Debug, Clone, Copy)]
struct Packed(u64);

impl Packed {
    const FAILED: u64 = u64::MAX;
    const UNMEASURED: u64 = u64::MAX - 1;
    const NOT_APPLICABLE: u64 = u64::MAX - 2;

    fn pack(measure: Measure) -> Self {
        Self(match measure {
            Measure::Measured(value) => value.min(Self::NOT_APPLICABLE - 1),
            Measure::Failed => Self::FAILED,
            Measure::Unmeasured => Self::UNMEASURED,
            Measure::NotApplicable => Self::NOT_APPLICABLE,
        })
    }

    fn unpack(self) -> Measure {
        match self.0 {
            Self::FAILED => Measure::Failed,
            Self::UNMEASURED => Measure::Unmeasured,
            Self::NOT_APPLICABLE => Measure::NotApplicable,
            value => Measure::Measured(value),
        }
    }

    /// The number, where it is one.
    fn number(self) -> Option<u64> {
        match self.unpack() {
            Measure::Measured(value) => Some(value),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight metrics of eight bytes are more than half of it. A million requests take 136 MB, and twice that while a full list
    /// moves to a larger place, which is well below the 512 MiB that they may.
    #[test]
    fn a_request_takes_at_most_136_bytes() {
        assert!(size_of::<WindowRow>() + size_of::<(u64, u64)>() + size_of::<Completion>() <= 136);
    }
}
