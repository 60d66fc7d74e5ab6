//! One request against the request-level limits, and the latencies that everything later is computed from.

use std::time::Duration;

use super::model::RequestRecord;
use crate::contract::{LatencyMetric, RequestLimits};
use crate::observe::{Outcome, Warning};

/// What is known of one latency of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// Nanoseconds.
    Measured(u64),
    /// The request did not end `ok`: it violates every limit.
    Failed,
    /// It ended `ok`, but the number is missing; never taken for small.
    Unmeasured,
    /// The metric does not exist for this request.
    NotApplicable,
}

/// One latency of a request, counted from its scheduled arrival (design, section 2).
pub fn latency(record: &RequestRecord, metric: LatencyMetric) -> Latency {
    if record.outcome != Outcome::Ok {
        return Latency::Failed;
    }
    let since_scheduled = |at: Option<u64>| {
        at.map_or(Latency::Unmeasured, |at| Latency::Measured(at.saturating_sub(record.scheduled_ns)))
    };
    match metric {
        LatencyMetric::Ttft => since_scheduled(record.first_output_ns),
        LatencyMetric::E2e => since_scheduled(record.last_output_ns),
        LatencyMetric::Tpot => time_per_output_token(record),
    }
}

/// `(last output − first output) / (output tokens − 1)`, in whole nanoseconds.
///
/// Where several tokens came in one write, the time between first and last output says nothing about the server's pace:
/// the value is missing, not zero.
fn time_per_output_token(record: &RequestRecord) -> Latency {
    match (record.output_tokens, record.first_output_ns, record.last_output_ns) {
        (Some(1), _, _) => Latency::NotApplicable,
        (Some(tokens @ 2..), Some(first), Some(last)) if last > first && !is_coalesced(record) => {
            Latency::Measured((last - first) / (tokens - 1))
        }
        _ => Latency::Unmeasured,
    }
}

/// Whether all outputs came in one write, so that their gaps mean nothing.
pub fn is_coalesced(record: &RequestRecord) -> bool {
    record.warnings.contains(&Warning::Coalesced)
}

/// Sets `good` and `missed` from the limits; strictly above a limit is a miss.
///
/// A request that did not end `ok` is not good and has no list of misses. One that misses a limit is not good whatever
/// else is missing; otherwise a limit that could not be measured leaves `good` unknown.
pub fn grade(limits: &RequestLimits, record: &mut RequestRecord) {
    if record.outcome != Outcome::Ok {
        record.good = Some(false);
        record.missed = None;
        return;
    }
    let mut missed = Vec::new();
    let mut unknown = false;
    for (metric, limit) in limits.set() {
        match latency(record, metric) {
            Latency::Measured(value) if value > nanos(limit) => missed.push(metric.name().to_owned()),
            Latency::Unmeasured => unknown = true,
            Latency::Measured(_) | Latency::Failed | Latency::NotApplicable => {}
        }
    }
    record.good = match (missed.is_empty(), unknown) {
        (false, _) => Some(false),
        (true, true) => None,
        (true, false) => Some(true),
    };
    record.missed = Some(missed);
}

/// Whole nanoseconds of a limit; beyond five centuries it stays at the largest number.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::observe::OutputKind;
    use crate::schedule::Segment;

    /// A request that was due at 1 s, gave its first output 200 ms and its last 1.2 s later, with 11 tokens.
    pub(in crate::record) fn ok_record() -> RequestRecord {
        RequestRecord {
            trial: 0,
            arrival: 0,
            segment: Segment::Window,
            case: "a".to_owned(),
            scheduled_ns: 1_000_000_000,
            speech_end_ns: None,
            sent_ns: Some(1_000_100_000),
            first_output_ns: Some(1_200_000_000),
            first_answer_ns: Some(1_200_000_000),
            first_audio_ns: None,
            last_output_ns: Some(2_200_000_000),
            finished_ns: Some(2_201_000_000),
            outcome: Outcome::Ok,
            status: Some(200),
            error: None,
            first_output_kind: Some(OutputKind::Content),
            output_chunks: Some(3),
            chunk_gaps_ns: Some(vec![400_000_000, 600_000_000]),
            audio_ns: None,
            underrun_ns: None,
            input_tokens: Some(7),
            output_tokens: Some(11),
            reasoning_tokens: None,
            finish_reason: Some("stop".to_owned()),
            warnings: Vec::new(),
            truncated: Some(false),
            answerless: Some(false),
            good: None,
            missed: None,
        }
    }

    fn limits(ttft_ms: u64, tpot_ms: Option<u64>, e2e_ms: u64) -> RequestLimits {
        RequestLimits {
            ttft: Some(Duration::from_millis(ttft_ms)),
            tpot: tpot_ms.map(Duration::from_millis),
            e2e: Some(Duration::from_millis(e2e_ms)),
        }
    }

    type Change = fn(&mut RequestRecord);

    #[test]
    fn requests_are_graded_against_every_limit() {
        let unchanged: Change = |_| {};
        let without_usage: Change = |r| r.output_tokens = None;
        let one_token: Change = |r| r.output_tokens = Some(1);
        let coalesced: Change = |r| r.warnings.push(Warning::Coalesced);
        let at_once: Change = |r| r.last_output_ns = r.first_output_ns;
        let failed: Change = |r| r.outcome = Outcome::Timeout;
        let good = (Some(true), Some(""));
        for (name, change, limits, want) in [
            ("all limits exactly met", unchanged, limits(200, Some(100), 1_200), good),
            ("ttft above", unchanged, limits(199, Some(100), 1_200), (Some(false), Some("ttft"))),
            ("tpot above", unchanged, limits(200, Some(99), 1_200), (Some(false), Some("tpot"))),
            ("several above", unchanged, limits(1, Some(1), 1), (Some(false), Some("ttft tpot e2e"))),
            ("no limits at all", unchanged, RequestLimits::default(), good),
            ("no usage, no token limit", without_usage, limits(200, None, 1_200), good),
            ("no usage, token limit", without_usage, limits(200, Some(100), 1_200), (None, Some(""))),
            ("no usage, another missed", without_usage, limits(200, Some(100), 1_000), (Some(false), Some("e2e"))),
            ("one token has no pace", one_token, limits(200, Some(1), 1_200), good),
            ("coalesced has none that is known", coalesced, limits(200, Some(100), 1_200), (None, Some(""))),
            ("neither has one write", at_once, limits(200, Some(100), 1_200), (None, Some(""))),
            ("failed", failed, RequestLimits::default(), (Some(false), None)),
        ] {
            let mut record = ok_record();
            change(&mut record);
            grade(&limits, &mut record);
            let missed = record.missed.map(|names| names.join(" "));
            assert_eq!((record.good, missed.as_deref()), want, "{name}");
        }
    }

    #[test]
    fn latencies_start_at_the_scheduled_arrival() {
        let mut late = ok_record();
        late.sent_ns = Some(1_150_000_000);
        assert_eq!(latency(&late, LatencyMetric::Ttft), Latency::Measured(200_000_000));
        assert_eq!(latency(&late, LatencyMetric::E2e), Latency::Measured(1_200_000_000));
        assert_eq!(latency(&late, LatencyMetric::Tpot), Latency::Measured(100_000_000));
        late.output_tokens = Some(0);
        assert_eq!(latency(&late, LatencyMetric::Tpot), Latency::Unmeasured);
    }
}
