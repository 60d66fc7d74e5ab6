mod queues;
mod resources;

use super::*;
use crate::contract::{Objective, RequestLimits, RequestMetric};
use crate::observe::Warning;
use crate::record::RequestRecord;
use crate::record::grade::grade;
use crate::record::grade::tests::ok_record;
use crate::schedule::Segment;
use crate::units::Rate;

fn share(ppm: u32) -> Share {
    Share::from_ppm(ppm).unwrap()
}

fn rate(milli: u64) -> Rate {
    Rate::from_milli(milli).unwrap()
}

fn percentile(metric: RequestMetric, ppm: u32, at_most: u64) -> Objective {
    Objective::Percentile { metric, quantile: share(ppm), at_most }
}

fn slo(objectives: Vec<Objective>, request: RequestLimits) -> Slo {
    Slo { request, objectives, resources: Vec::new(), at: Load::RateMilli(rate(4_000)), capacity: None }
}

fn facts(load: Load, planned: Option<TrialCounts>, window_ns: u64) -> TrialFacts {
    TrialFacts {
        trial: 0,
        seed: 1,
        load,
        schedule_digest: Digest::of(b"schedule"),
        planned,
        window_ns,
        scheduled_in_window: planned.map(|counts| counts.window),
        complete: true,
        given_up: false,
        took_ns: 0,
        resources: Vec::new(),
        unstable: Vec::new(),
        health: healthy(),
    }
}

fn healthy() -> HealthRecord {
    let lag = Quantiles {
        count: 10,
        p50_ns: Some(1_000),
        p90_ns: Some(2_000),
        p95_ns: Some(3_000),
        p99_ns: Some(4_000),
        max_ns: Some(5_000),
    };
    HealthRecord {
        dispatch_lag: Some(lag),
        runtime_lag: Some(lag),
        planned_span_ns: Some(1_000_000_000),
        actual_span_ns: Some(1_000_000_000),
        clock_step_ns: Some(0),
        ..HealthRecord::default()
    }
}

/// A reply that was sent at once: times are since the trial's start.
fn reply(scheduled_ns: u64, segment: Segment, first: u64, last: u64, tokens: u64) -> RequestRecord {
    RequestRecord {
        segment,
        scheduled_ns,
        speech_end_ns: None,
        sent_ns: Some(scheduled_ns),
        first_output_ns: Some(first),
        first_answer_ns: Some(first),
        first_audio_ns: None,
        last_output_ns: Some(last),
        finished_ns: Some(last),
        output_tokens: Some(tokens),
        ..ok_record()
    }
}

fn accumulate(limits: &RequestLimits, records: impl IntoIterator<Item = RequestRecord>) -> TrialAccumulator {
    let mut accumulator = TrialAccumulator::default();
    for mut record in records {
        grade(limits, &mut record);
        accumulator.push(&record);
    }
    accumulator
}

/// A window of `n` requests, one each 100 ms, that take 50 ms.
fn steady(n: u64) -> Vec<RequestRecord> {
    let request = |i: u64| {
        let at = i * 100_000_000;
        reply(at, Segment::Window, at + 20_000_000, at + 50_000_000, 4)
    };
    (0..n).map(request).collect()
}

fn open_facts(n: u64) -> TrialFacts {
    let planned = TrialCounts { warm_up: 0, window: n, drain: 0 };
    facts(Load::RateMilli(rate(10_000)), Some(planned), n * 100_000_000)
}

fn ttft_slo() -> Slo {
    let limits = RequestLimits::from_iter([(RequestMetric::Ttft, 30_000_000)]);
    let objectives = vec![
        percentile(RequestMetric::Ttft, 500_000, 30_000_000),
        Objective::SuccessRate { at_least: share(990_000) },
        Objective::Attainment { at_least: share(990_000) },
        percentile(RequestMetric::Tpot, 500_000, 30_000_000),
    ];
    slo(objectives, limits)
}

fn summarise(facts: &TrialFacts, records: Vec<RequestRecord>) -> (TrialRecord, StepRecord) {
    let slo = ttft_slo();
    let accumulator = accumulate(&slo.request, records);
    let trial = summarise_trial(&slo, facts, &accumulator);
    (trial.clone(), summarise_step(facts.load, &[(trial, accumulator)], None))
}

#[test]
fn failures_are_infinite_and_everything_scheduled_is_in_the_denominator() {
    let mut records = steady(10);
    for record in records.iter_mut().take(6) {
        record.outcome = Outcome::HttpError;
    }
    let (trial, step) = summarise(&open_facts(10), records);
    let violations: Vec<_> = trial.objectives.iter().map(|found| (found.n, found.violations)).collect();
    assert_eq!(violations, [(10, 6); 4]);
    assert_eq!(trial.objectives[0].quantile, None, "the median falls among failures");
    assert_eq!((step.metrics["ttft"].p50_ns, step.metrics["ttft"].max_ns), (None, Some(20_000_000)));
    assert_eq!((step.attainment, step.success_rate), (Some(share(400_000)), Some(share(400_000))));
    let figures = (step.offered, step.achieved, step.completed, step.goodput);
    assert_eq!(figures, (Some(10.0), Some(10.0), Some(4.0), Some(4.0)));
    assert_eq!((step.input_tokens_per_second, step.output_tokens_per_second), (Some(28.0), Some(16.0)));
}

#[test]
fn a_server_that_falls_behind_shows_its_own_throughput_and_not_the_offered_one() {
    let mut records = steady(10);
    for record in records.iter_mut().skip(5) {
        // Scheduled in the window, done after its end.
        record.finished_ns = Some(60_000_000_000);
        record.last_output_ns = record.finished_ns;
    }
    let (_, step) = summarise(&open_facts(10), records);
    assert_eq!((step.offered, step.completed), (Some(10.0), Some(5.0)));
    assert_eq!((step.input_tokens_per_second, step.output_tokens_per_second), (Some(35.0), Some(20.0)));
}

#[test]
fn missing_token_counts_stay_missing() {
    let mut records = steady(4);
    records[0].output_tokens = None;
    let (trial, step) = summarise(&open_facts(4), records);
    assert_eq!((trial.objectives[3].n, trial.objectives[3].unmeasured, trial.objectives[3].quantile), (4, 1, None));
    assert_eq!((trial.window.output_tokens, step.output_tokens_per_second), (None, None));
    assert!(!step.metrics.contains_key("tpot") && step.input_tokens_per_second.is_some());
    assert_eq!(trial.window.good, Some(4), "no token limit is set");

    let mut all_failed = steady(2);
    all_failed.iter_mut().for_each(|record| record.outcome = Outcome::ConnectError);
    let (_, step) = summarise(&open_facts(2), all_failed);
    assert_eq!(step.output_tokens_per_second, None, "no reply has said how many");
}

#[test]
fn coalesced_replies_have_no_gaps_and_single_tokens_no_pace() {
    let mut records = steady(3);
    records[0].warnings.push(Warning::Coalesced);
    (records[1].output_tokens, records[1].output_chunks) = (Some(1), Some(1));
    records[1].chunk_gaps_ns = Some(Vec::new());
    let (trial, step) = summarise(&open_facts(3), records);
    assert_eq!((trial.objectives[3].n, trial.objectives[3].unmeasured), (2, 1));
    assert_eq!(step.metrics["inter_chunk"].count, 2, "two gaps of one reply");
    assert_eq!(trial.window.warnings[&Warning::Coalesced], 1);
}

#[test]
fn what_a_stop_left_open_is_undecided_unless_it_outlived_the_limit() {
    let mut records = steady(7);
    records.iter_mut().skip(5).for_each(|record| record.outcome = Outcome::Cancelled);
    let stopped = |record: &mut RequestRecord, after_ns: u64, sent: bool| {
        record.first_output_ns = None;
        record.last_output_ns = None;
        record.finished_ns = Some(record.scheduled_ns + after_ns);
        record.sent_ns = sent.then_some(record.scheduled_ns);
    };
    stopped(&mut records[5], 31_000_000, true);
    stopped(&mut records[6], 5_000_000, false);
    let facts = TrialFacts { complete: false, ..open_facts(10) };
    let (trial, step) = summarise(&facts, records);
    let found: Vec<_> = trial.objectives.iter().map(|e| (e.n, e.violations, e.undecided)).collect();
    // Three were never recorded, one had waited beyond the TTFT limit, one was stopped before it was sent.
    assert_eq!(found, [(10, 1, 4), (10, 0, 5), (10, 1, 4), (10, 0, 5)]);
    assert_eq!((trial.window.scheduled, trial.window.decided, trial.window.good), (10, 5, None));
    assert_eq!((trial.health.due, trial.health.sent), (6, 6));
    assert_eq!(trial.health.faults, Vec::<String>::new());
    assert_eq!((step.achieved, step.goodput, step.attainment, step.success_rate), (None, None, None, None));
    assert_eq!(step.offered, Some(10.0));
}

#[test]
fn a_generator_that_did_not_keep_its_plan_is_named() {
    let lag = |p99: u64| healthy().dispatch_lag.map(|lag| Quantiles { p99_ns: Some(p99), ..lag });
    type Change = fn(&mut HealthRecord);
    let rows: [(&str, Change, &str); 6] = [
        ("in order", |_| {}, ""),
        (
            "span",
            |h| h.actual_span_ns = Some(1_006_000_000),
            "the window was sent in 1.01 s instead of 1.00 s, off by more than 0.5%",
        ),
        ("no span", |h| h.actual_span_ns = None, "the span from first to last send was not measured"),
        ("clock", |h| h.clock_step_ns = Some(-101_000_000), "the wall clock stepped by 101 ms"),
        ("no lag", |h| h.dispatch_lag = None, "dispatch lag was not measured"),
        ("runtime lag is the closed loop's", |h| h.runtime_lag = None, ""),
    ];
    for (name, change, fault) in rows {
        let mut facts = open_facts(30);
        change(&mut facts.health);
        let (trial, _) = summarise(&facts, steady(30));
        assert_eq!(trial.health.faults.join("; "), fault, "{name}");
    }
    // The tightest limit is 30 ms, so the floor of 5 ms holds.
    for (p99, fault) in [(5_000_000, ""), (5_000_001, "dispatch lag p99 5.00 ms is above 5.00 ms")] {
        let mut facts = open_facts(30);
        facts.health.dispatch_lag = lag(p99);
        assert_eq!(summarise(&facts, steady(30)).0.health.faults.join("; "), fault);
    }
}

#[test]
fn arrivals_that_were_not_sent_make_the_trial_void() {
    for (unsent, faults) in [(1, 0), (2, 1)] {
        let mut records = steady(1_000);
        for record in records.iter_mut().take(unsent) {
            (record.outcome, record.sent_ns) = (Outcome::Unsent, None);
        }
        let (trial, _) = summarise(&open_facts(1_000), records);
        assert_eq!((trial.health.due, trial.health.sent), (1_000, 1_000 - unsent as u64));
        assert_eq!(trial.health.faults.len(), faults, "{:?}", trial.health.faults);
    }
    let (trial, _) = summarise(&open_facts(20), steady(19));
    assert_eq!(trial.health.faults, ["only 19 of 20 due requests were sent, below 99.9%"], "one was never recorded");
}

#[test]
fn beyond_the_audit_only_what_held_is_evidence() {
    let mut slow = steady(30);
    slow.iter_mut().for_each(|record| record.first_output_ns = Some(record.scheduled_ns + 45_000_000));
    for (beyond_audit, records, held, faults) in [
        (false, steady(30), Some(true), 0),
        (true, steady(30), Some(true), 0),
        (false, slow.clone(), Some(false), 0),
        // Who was late is not known: nothing breaks for certain.
        (true, slow, None, 1),
    ] {
        let mut facts = open_facts(30);
        facts.health.beyond_audit = beyond_audit;
        let (mut trial, _) = summarise(&facts, records);
        assert_eq!((trial.held, trial.health.faults.len()), (held, faults), "{:?}", trial.health.faults);
        settle(&ttft_slo(), &mut trial);
        assert_eq!((trial.held, trial.health.faults.len()), (held, faults), "told once");
    }
}

#[test]
fn piling_up_is_seen_in_an_open_loop_alone() {
    // Each request takes 50 ms longer than the one before, so ever more are in flight.
    let growing: Vec<RequestRecord> = (0..100)
        .map(|i| reply(i * 100_000_000, Segment::Window, i * 150_000_000 + 1, i * 150_000_000 + 2, 4))
        .collect();
    let (trial, _) = summarise(&open_facts(100), growing.clone());
    assert!(trial.drift.is_some_and(|drift| drift.drifting), "{:?}", trial.drift);
    let (trial, _) = summarise(&open_facts(100), steady(100));
    assert!(trial.drift.is_some_and(|drift| !drift.drifting));
    let (trial, _) = summarise(&open_facts(19), steady(19));
    assert_eq!(trial.drift, None, "too few arrivals");

    let closed = facts(Load::Clients(8), None, 10_000_000_000);
    let (trial, step) = summarise(&closed, growing);
    assert_eq!((trial.drift, trial.planned, step.offered), (None, None, None));
    assert_eq!((trial.window.scheduled, trial.health.dispatch_lag_limit_ns), (100, None));
    assert_eq!(step.goodput, trial.window.good.map(|good| good as f64 / 10.0));
}

#[test]
fn only_trials_that_are_evidence_make_the_figures_of_a_step() {
    let slo = ttft_slo();
    let mut slow = steady(10);
    slow.iter_mut().for_each(|record| record.first_output_ns = Some(record.scheduled_ns + 45_000_000));
    let mut void = open_facts(10);
    void.health.clock_step_ns = Some(1_000_000_000);
    let trials: Vec<_> = [(void, slow), (open_facts(10), steady(10))]
        .into_iter()
        .map(|(facts, records)| {
            let accumulator = accumulate(&slo.request, records);
            (summarise_trial(&slo, &facts, &accumulator), accumulator)
        })
        .collect();
    let load = Load::RateMilli(rate(10_000));
    let step = summarise_step(load, &trials, None);
    assert_eq!((step.trials.len(), step.metrics["ttft"].max_ns), (2, Some(20_000_000)));
    let step = summarise_step(load, &trials[..1], None);
    assert_eq!(step.metrics["ttft"].max_ns, Some(45_000_000), "without evidence what there is is shown");
    let empty = summarise_step(load, &[], Some("not reached".to_owned()));
    assert_eq!((empty.offered, empty.attainment, empty.metrics.len()), (None, None, 0));
}

#[test]
fn the_number_in_flight_is_that_just_before_each_arrival() {
    let request = |at, segment, until| reply(at, segment, until, until, 4);
    let mut never_finished = request(10, Segment::WarmUp, 20);
    never_finished.finished_ns = None;
    let records = [
        request(30, Segment::Window, 60),
        request(0, Segment::WarmUp, 30),
        never_finished,
        request(30, Segment::Window, 35),
        request(70, Segment::Drain, 80),
        request(50, Segment::Window, 55),
    ];
    let accumulator = accumulate(&RequestLimits::default(), records);
    let window = InOrder::of(&accumulator, Load::RateMilli(rate(1_000)));
    assert_eq!((window.arrivals, window.in_flight), (vec![30, 30, 50], vec![1, 1, 2]));
}

/// Requests one each 100 ms that speak until 30 ms after they were due, whose sound begins 20 ms later, ends 60 ms later, and
/// lasts `audio_ms`.
fn spoken(audio_ms: impl IntoIterator<Item = u64>) -> Vec<RequestRecord> {
    let audio = audio_ms.into_iter().enumerate();
    audio
        .map(|(index, audio_ms)| {
            let at = index as u64 * 100_000_000;
            RequestRecord {
                speech_end_ns: Some(at + 30_000_000),
                sent_ns: Some(at + 31_000_000),
                first_audio_ns: Some(at + 50_000_000),
                audio_ns: Some(audio_ms * 1_000_000),
                underrun_ns: Some(0),
                ..reply(at, Segment::Window, at + 50_000_000, at + 90_000_000, 4)
            }
        })
        .collect()
}

#[test]
fn a_ratio_has_quantiles_of_its_own_and_voice_counts_from_the_end_of_speech() {
    // 60 ms of processing over 100 ms, 200 ms, … 1000 ms of sound: factors of 0.6, 0.3, 0.2, 0.15, 0.12, …, 0.06.
    let (_, step) = summarise(&open_facts(10), spoken((1..=10).map(|tenths| tenths * 100)));
    let rtf = step.ratios["rtf"];
    assert_eq!((rtf.count, rtf.p50_ppm, rtf.p90_ppm, rtf.max_ppm), (10, Some(100_000), Some(300_000), Some(600_000)));
    let largest = |metric: &str| step.metrics[metric].max_ns;
    assert_eq!(
        (largest("ttft"), largest("first_audio"), largest("e2e")),
        (Some(20_000_000), Some(20_000_000), Some(60_000_000))
    );
    assert_eq!((largest("underrun"), largest("send_lag")), (Some(0), Some(1_000_000)));
    assert!(!step.metrics.contains_key("rtf") && !step.metrics.contains_key("first_answer"));

    let objective = percentile(RequestMetric::Rtf, 900_000, 299_999);
    let slo = slo(vec![objective], RequestLimits::default());
    let accumulator = accumulate(&slo.request, spoken((1..=10).map(|tenths| tenths * 100)));
    let found = summarise_trial(&slo, &open_facts(10), &accumulator).objectives[0].clone();
    assert_eq!((found.violations, found.unit, found.quantile), (2, Some(MetricUnit::PartsPerMillion), Some(300_000)));

    let mut unknown = spoken([100, 100]);
    unknown[1].audio_ns = None;
    unknown[1].first_audio_ns = None;
    let (_, step) = summarise(&open_facts(2), unknown);
    assert!(step.ratios.is_empty(), "the rest is not the whole");
    assert_eq!((step.metrics["first_audio"].count, step.metrics["first_audio"].p99_ns), (2, None), "it never came");
}

#[test]
fn a_metric_that_applies_to_nothing_has_no_quantiles() {
    let (_, step) = summarise(&open_facts(4), steady(4));
    let names: Vec<&str> = step.metrics.keys().map(String::as_str).collect();
    assert_eq!(names, ["e2e", "inter_chunk", "itl", "send_lag", "tpot", "ttft"]);
    assert_eq!((step.metrics["itl"].count, step.metrics["itl"].max_ns), (4, Some(600_000_000)), "the longest of each");
    assert_eq!(step.metrics["inter_chunk"].count, 8, "every gap");

    let mut thinking = steady(4);
    // One answers 10 ms after its first output, one never does.
    thinking[0].first_answer_ns = Some(30_000_000);
    (thinking[1].first_answer_ns, thinking[1].answerless) = (None, Some(true));
    let (_, step) = summarise(&open_facts(4), thinking);
    let found = step.metrics["first_answer"];
    assert_eq!((found.count, found.p50_ns, found.max_ns, found.p99_ns), (4, Some(20_000_000), Some(30_000_000), None));

    let mut failed = steady(3);
    failed.iter_mut().for_each(|record| record.outcome = Outcome::HttpError);
    let (_, step) = summarise(&open_facts(3), failed);
    assert!(!step.metrics.contains_key("underrun") && step.ratios.is_empty() && !step.metrics.contains_key("itl"));
}

#[test]
fn the_share_of_reasoning_is_that_of_the_replies_that_count_it() {
    let shares = |counts: &[(Option<u64>, Option<u64>)]| {
        let mut records = steady(counts.len() as u64);
        for (record, (output, reasoning)) in records.iter_mut().zip(counts) {
            (record.output_tokens, record.reasoning_tokens) = (*output, *reasoning);
        }
        summarise(&open_facts(counts.len() as u64), records).1.reasoning_share
    };
    // 30 of 40 and 10 of 60 are 40 of 100.
    assert_eq!(shares(&[(Some(40), Some(30)), (Some(60), Some(10))]), Some(share(400_000)));
    assert_eq!(shares(&[(Some(40), Some(30)), (Some(60), None)]), Some(share(750_000)));
    assert_eq!(shares(&[(Some(40), Some(0))]), Some(share(0)));
    assert_eq!(shares(&[(Some(40), Some(30)), (None, Some(10))]), None, "one has no count");
    assert_eq!(shares(&[(Some(40), None)]), None, "none counts its reasoning");
    assert_eq!(shares(&[]), None);
}

#[test]
fn a_stopped_request_has_broken_what_it_has_outwaited_and_nothing_else() {
    let mut records = steady(1);
    records[0].outcome = Outcome::Cancelled;
    (records[0].first_answer_ns, records[0].last_output_ns) = (None, None);
    records[0].finished_ns = Some(40_000_000);
    // First output after 20 ms, stopped after 40 ms.
    for (metric, at_most, violations) in [
        (RequestMetric::Ttft, 19_999_999, 1),
        (RequestMetric::Ttft, 20_000_000, 0),
        (RequestMetric::FirstAnswer, 39_999_999, 1),
        (RequestMetric::FirstAudio, 39_999_999, 1),
        (RequestMetric::FirstAudio, 40_000_000, 0),
        (RequestMetric::E2e, 39_999_999, 1),
        (RequestMetric::Tpot, 1, 0),
        (RequestMetric::Itl, 1, 0),
        (RequestMetric::Rtf, 1, 0),
        (RequestMetric::Underrun, 0, 0),
    ] {
        let slo = slo(vec![percentile(metric, 500_000, at_most)], RequestLimits::default());
        let accumulator = accumulate(&slo.request, records.clone());
        let found = summarise_trial(&slo, &open_facts(1), &accumulator).objectives[0].clone();
        assert_eq!(
            (found.n, found.violations, found.undecided),
            (1, violations, 1 - violations),
            "{metric:?} {at_most}"
        );
    }
}

#[test]
fn a_step_is_told_by_whole_evidence_or_else_by_what_comes_closest() {
    let (trial, step) = summarise(&open_facts(4), steady(4));
    let make = |number: u32, complete: bool, void: bool| {
        let mut made = TrialRecord { trial: number, complete, ..trial.clone() };
        made.health.faults = if void { vec!["late".to_owned()] } else { Vec::new() };
        made
    };
    let (whole, cut, void) = ((true, false), (false, false), (true, true));
    for (trials, expected) in [
        (vec![whole, whole], vec![0, 1]),
        (vec![void, whole], vec![1]),
        (vec![whole, cut], vec![0]),
        (vec![cut, void], vec![0]),
        (vec![void, cut], vec![1]),
        (vec![void, void], vec![1]),
        (vec![], vec![]),
    ] {
        let trials = (0..).zip(trials).map(|(number, (complete, void))| make(number, complete, void)).collect();
        let step = StepRecord { trials, ..step.clone() };
        assert_eq!(step.told().iter().map(|told| told.trial).collect::<Vec<_>>(), expected);
    }
}
