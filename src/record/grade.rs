//! One request against the request-level limits, and the measures that everything later is computed from.

use super::model::RequestRecord;
use crate::contract::{RequestLimits, RequestMetric};
use crate::observe::{Outcome, Warning};

/// What is known of one metric of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// A number in the metric's unit.
    Measured(u64),
    /// Infinite: the request did not end `ok`, or what is waited for never came. It violates every limit.
    Failed,
    /// It ended `ok`, but the number is missing; never taken for small.
    Unmeasured,
    /// The metric does not exist for this request.
    NotApplicable,
}

impl From<Option<u64>> for Measure {
    /// What is not there is missing.
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::Unmeasured, Self::Measured)
    }
}

/// One metric of a request, counted from where its time begins: its scheduled arrival, or the scheduled end of its speech
/// (design, section 2).
pub fn measure(record: &RequestRecord, metric: RequestMetric) -> Measure {
    if record.outcome != Outcome::Ok {
        return Measure::Failed;
    }
    let since_begin = |at| since_begin(record, at);
    match metric {
        RequestMetric::Ttft => since_begin(record.first_output_ns).into(),
        // A reply that is all reasoning has kept its reader waiting for ever.
        RequestMetric::FirstAnswer if record.answerless == Some(true) => Measure::Failed,
        RequestMetric::FirstAnswer => since_begin(record.first_answer_ns).into(),
        // So has one without sound its listener.
        RequestMetric::FirstAudio if record.first_audio_ns.is_none() => Measure::Failed,
        RequestMetric::FirstAudio => since_begin(record.first_audio_ns).into(),
        RequestMetric::E2e => since_begin(record.last_output_ns).into(),
        RequestMetric::Tpot => time_per_output_token(record),
        RequestMetric::Itl => longest_gap(record),
        RequestMetric::Rtf => real_time_factor(record).into(),
        RequestMetric::Underrun => record.underrun_ns.into(),
    }
}

/// From where a request's time begins to an event. What a server says while the user is still speaking answers a part of
/// what is said, so that nothing is known of how long the answer took.
pub(super) fn since_begin(record: &RequestRecord, at: Option<u64>) -> Option<u64> {
    at?.checked_sub(record.begins_ns())
}

/// `(last output − first output) / (output tokens − 1)`, in whole nanoseconds.
///
/// Where several tokens came in one write, the time between first and last output says nothing about the server's pace:
/// the value is missing, not zero.
fn time_per_output_token(record: &RequestRecord) -> Measure {
    match (record.output_tokens, record.first_output_ns, record.last_output_ns) {
        // One token does not come in several pieces that are told apart.
        (Some(1), _, _) if record.output_chunks.is_none_or(|chunks| chunks <= 1) => Measure::NotApplicable,
        (Some(tokens @ 2..), Some(first), Some(last)) if last > first && !is_coalesced(record) => {
            // No server writes a token within a nanosecond: such a count cannot be true.
            Some((last - first) / (tokens - 1)).filter(|pace| *pace > 0).into()
        }
        _ => Measure::Unmeasured,
    }
}

/// The longest gap between two consecutive chunks. Of a very long reply not every gap is recorded, and the longest may be
/// among the others.
fn longest_gap(record: &RequestRecord) -> Measure {
    match (record.output_chunks, &record.chunk_gaps_ns) {
        // Several tokens in one chunk came with gaps that nobody saw.
        (Some(1), _) if record.output_tokens.is_none_or(|tokens| tokens <= 1) => Measure::NotApplicable,
        (Some(1), _) => Measure::Unmeasured,
        (Some(chunks), Some(gaps)) if gaps.len() as u64 + 1 >= u64::from(chunks) && !is_coalesced(record) => {
            gaps.iter().max().copied().into()
        }
        _ => Measure::Unmeasured,
    }
}

/// `E2E / duration of the sound` in parts per million, rounded up so that a factor is above a limit exactly when its kept
/// number is.
fn real_time_factor(record: &RequestRecord) -> Option<u64> {
    let audio = record.audio_ns.filter(|audio| *audio > 0)?;
    let e2e = since_begin(record, record.last_output_ns)?;
    let ppm = (u128::from(e2e) * 1_000_000).div_ceil(u128::from(audio));
    Some(u64::try_from(ppm).unwrap_or(u64::MAX))
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
        match measure(record, metric) {
            Measure::Measured(value) if value <= limit => {}
            Measure::Measured(_) | Measure::Failed => missed.push(metric.name().to_owned()),
            Measure::Unmeasured => unknown = true,
            Measure::NotApplicable => {}
        }
    }
    record.good = match (missed.is_empty(), unknown) {
        (false, _) => Some(false),
        (true, true) => None,
        (true, false) => Some(true),
    };
    record.missed = Some(missed);
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

    /// Milliseconds in nanoseconds.
    const MS: u64 = 1_000_000;

    fn limits(ttft_ms: u64, tpot_ms: Option<u64>, e2e_ms: u64) -> RequestLimits {
        let tpot = tpot_ms.map(|limit| (RequestMetric::Tpot, limit * MS));
        [(RequestMetric::Ttft, ttft_ms * MS), (RequestMetric::E2e, e2e_ms * MS)].into_iter().chain(tpot).collect()
    }

    type Change = fn(&mut RequestRecord);

    #[test]
    fn requests_are_graded_against_every_limit() {
        let unchanged: Change = |_| {};
        let without_usage: Change = |r| r.output_tokens = None;
        let one_token: Change = |r| (r.output_tokens, r.output_chunks) = (Some(1), Some(1));
        let one_of_many: Change = |r| r.output_tokens = Some(1);
        let beyond_belief: Change = |r| r.output_tokens = Some(1_000_000_000_000);
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
            ("one token in three chunks is none", one_of_many, limits(200, Some(1), 1_200), (None, Some(""))),
            ("a count beyond belief", beyond_belief, limits(200, Some(1), 1_200), (None, Some(""))),
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
    fn times_start_at_the_scheduled_arrival() {
        let mut late = ok_record();
        late.sent_ns = Some(1_150_000_000);
        assert_eq!(measure(&late, RequestMetric::Ttft), Measure::Measured(200 * MS));
        assert_eq!(measure(&late, RequestMetric::E2e), Measure::Measured(1_200 * MS));
        assert_eq!(measure(&late, RequestMetric::Tpot), Measure::Measured(100 * MS));
        late.output_tokens = Some(0);
        assert_eq!(measure(&late, RequestMetric::Tpot), Measure::Unmeasured);
    }

    /// The same request as a spoken turn: its speech ends at 1.1 s, its sound begins at 1.5 s and lasts 4 s.
    fn spoken() -> RequestRecord {
        RequestRecord {
            speech_end_ns: Some(1_100 * MS),
            first_audio_ns: Some(1_500 * MS),
            audio_ns: Some(4_000 * MS),
            underrun_ns: Some(30 * MS),
            ..ok_record()
        }
    }

    #[test]
    fn every_metric_has_its_closed_form() {
        use Measure::{Failed, Measured, NotApplicable, Unmeasured};
        use RequestMetric::{E2e, FirstAnswer, FirstAudio, Itl, Rtf, Ttft, Underrun};
        let unchanged: Change = |_| {};
        let thought_first: Change = |r| (r.first_answer_ns, r.answerless) = (Some(1_900 * MS), Some(false));
        let answerless: Change = |r| (r.first_answer_ns, r.answerless) = (None, Some(true));
        let soundless: Change = |r| r.first_audio_ns = None;
        let one_chunk: Change = |r| (r.output_chunks, r.chunk_gaps_ns) = (Some(1), Some(vec![]));
        let one_token: Change = |r| (r.output_chunks, r.output_tokens) = (Some(1), Some(1));
        let early: Change = |r| r.speech_end_ns = Some(9_000 * MS);
        let timeout: Change = |r| r.outcome = Outcome::Timeout;
        for (name, change, metric, want) in [
            ("since the end of speech", unchanged, Ttft, Measured(100 * MS)),
            ("since the end of speech", unchanged, E2e, Measured(1_100 * MS)),
            ("an answer to half of what is said", early, Ttft, Unmeasured),
            ("the first answer", unchanged, FirstAnswer, Measured(100 * MS)),
            ("an answer behind its reasoning", thought_first, FirstAnswer, Measured(800 * MS)),
            ("no answer ever", answerless, FirstAnswer, Failed),
            ("an answer at an unknown time", |r| r.first_answer_ns = None, FirstAnswer, Unmeasured),
            ("the first sound", unchanged, FirstAudio, Measured(400 * MS)),
            ("no sound ever", soundless, FirstAudio, Failed),
            ("the longer of 400 ms and 600 ms", unchanged, Itl, Measured(600 * MS)),
            ("one write", |r| r.warnings.push(Warning::Coalesced), Itl, Unmeasured),
            ("one chunk of many tokens", one_chunk, Itl, Unmeasured),
            ("one chunk of one token", one_token, Itl, NotApplicable),
            ("gaps that were not all kept", |r| r.output_chunks = Some(4), Itl, Unmeasured),
            ("no gaps at all", |r| r.chunk_gaps_ns = None, Itl, Unmeasured),
            // 1.1 s over 4 s.
            ("processing time over duration", unchanged, Rtf, Measured(275_000)),
            ("a hair above", |r| r.last_output_ns = Some(2_200 * MS + 1), Rtf, Measured(275_001)),
            ("a duration that is not known", |r| r.audio_ns = None, Rtf, Unmeasured),
            ("sound that lasts no time", |r| r.audio_ns = Some(0), Rtf, Unmeasured),
            ("silence in between", unchanged, Underrun, Measured(30 * MS)),
            ("silence that is not known", |r| r.underrun_ns = None, Underrun, Unmeasured),
            ("no outcome counts but ok", timeout, FirstAnswer, Failed),
            ("no outcome counts but ok", timeout, Itl, Failed),
            ("no outcome counts but ok", timeout, Rtf, Failed),
            ("no outcome counts but ok", timeout, Underrun, Failed),
        ] {
            let mut record = spoken();
            change(&mut record);
            assert_eq!(measure(&record, metric), want, "{metric:?}: {name}");
        }
    }

    #[test]
    fn what_never_comes_misses_every_limit_and_silence_may_be_forbidden() {
        use RequestMetric::{FirstAnswer, FirstAudio, Rtf, Underrun};
        let answerless: Change = |r| (r.first_answer_ns, r.answerless) = (None, Some(true));
        for (name, change, limit, want) in [
            ("an answer that never came", answerless, (FirstAnswer, u64::MAX), Some(false)),
            ("sound that never came", |r| r.first_audio_ns = None, (FirstAudio, u64::MAX), Some(false)),
            ("no silence", |r| r.underrun_ns = Some(0), (Underrun, 0), Some(true)),
            ("a nanosecond of it", |r| r.underrun_ns = Some(1), (Underrun, 0), Some(false)),
            ("exactly the factor", |_| {}, (Rtf, 275_000), Some(true)),
            ("a factor above", |_| {}, (Rtf, 274_999), Some(false)),
            ("a factor that is not known", |r| r.audio_ns = None, (Rtf, 275_000), None),
        ] as [(&str, Change, (RequestMetric, u64), Option<bool>); 7]
        {
            let mut record = spoken();
            change(&mut record);
            grade(&RequestLimits::from_iter([limit]), &mut record);
            assert_eq!(record.good, want, "{name}");
        }
    }
}
