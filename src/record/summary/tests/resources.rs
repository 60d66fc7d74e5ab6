//! What windows and steps tell of resources, against values in closed form.

use std::time::Duration;

use super::*;
use crate::contract::{Across, CommandSource, Probe, Resource, ResourceKind, ResourceUnit, Source};
use crate::record::{ResourceRecord, ResourceSample};

const SECOND: u64 = 1_000_000_000;

fn resource(kind: ResourceKind) -> Resource {
    let source = Source::Command(CommandSource { command: vec!["true".to_owned()] });
    Resource {
        name: "r".to_owned(),
        kind,
        unit: ResourceUnit::Count,
        probe: Probe { source, timeout: Duration::from_secs(1) },
        across: Across::Sum,
        scale: 1.0,
        every: Duration::from_secs(2),
    }
}

/// A sample at a second: a number, or why there is none.
fn sample(second: u64, value: Result<f64, &str>) -> ResourceSample {
    ResourceSample {
        trial: 0,
        at_ns: second * SECOND,
        name: "r".to_owned(),
        value: value.ok(),
        began_anew: false,
        failure: value.err().map(str::to_owned),
    }
}

/// Samples a second apart, from second 0 on.
fn samples(values: &[Result<f64, &str>]) -> Vec<ResourceSample> {
    values.iter().zip(0..).map(|(value, second)| sample(second, *value)).collect()
}

fn of_window(kind: ResourceKind, samples: &[ResourceSample], window: std::ops::Range<u64>) -> ResourceRecord {
    let window = window.start * SECOND..window.end * SECOND;
    let mut records = resource_records(&[resource(kind)], samples, window);
    assert_eq!(records.len(), 1);
    records.remove(0)
}

/// Figures of a record: due, samples, min, median, max, last, rate.
type Figures = (u64, u64, [Option<f64>; 4], Option<f64>);

fn figures(record: &ResourceRecord) -> Figures {
    (record.due, record.samples, [record.min, record.median, record.max, record.last], record.rate_per_s)
}

#[test]
fn a_window_tells_the_spread_of_its_samples_alone() {
    // The level n² at second n: of 2² to 7² the lower of the two in the middle is 4².
    let levels: Vec<_> = (0..20).map(|second| Ok(f64::from(second * second))).collect();
    let record = of_window(ResourceKind::Gauge, &samples(&levels), 2..8);
    assert_eq!(figures(&record), (6, 6, [Some(4.0), Some(16.0), Some(49.0), Some(49.0)], None));
    // Of 2² to 6² it is the one in the middle; a level that falls is no fault.
    let falling: Vec<_> = levels.into_iter().rev().collect();
    let record = of_window(ResourceKind::Gauge, &samples(&falling), 13..18);
    assert_eq!(figures(&record), (5, 5, [Some(4.0), Some(16.0), Some(36.0), Some(4.0)], None));
    assert_eq!((record.failure, record.rate_over_ns), (None, None));
}

#[test]
fn a_counter_tells_its_rise_over_the_time_between_its_samples() {
    let (record, over) = {
        // 3 more each second, but for the warm-up's leap; a sample that failed at the edge shortens the time, not the rate.
        let values = [Ok(0.0), Ok(100.0), Ok(103.0), Err("gone"), Ok(109.0), Ok(112.0), Err("late"), Ok(900.0)];
        let record = of_window(ResourceKind::Counter, &samples(&values), 1..7);
        let over = record.rate_over_ns;
        (record, over)
    };
    assert_eq!(figures(&record), (6, 4, [Some(100.0), Some(103.0), Some(112.0), Some(112.0)], Some(3.0)));
    assert_eq!((over, record.failure.as_deref()), (Some(4 * SECOND), Some("gone")));
    // A counter that stands still has the rate 0, which is known.
    let record = of_window(ResourceKind::Counter, &samples(&[Ok(5.0), Ok(5.0), Ok(5.0)]), 0..3);
    assert_eq!((record.rate_per_s, record.failure), (Some(0.0), None));
}

#[test]
fn a_counter_that_fell_or_began_anew_has_no_rate() {
    let fell = of_window(ResourceKind::Counter, &samples(&[Ok(5.0), Ok(2.0), Ok(9.0)]), 0..3);
    assert_eq!(figures(&fell), (3, 3, [Some(2.0), Some(5.0), Some(9.0), Some(9.0)], None));
    assert_eq!(fell.failure.as_deref(), Some("it went down from 5 to 2: it has no rate"));
    assert_eq!(fell.rate_over_ns, None);
    // A sum over several counts may rise although one of them began anew.
    let began_anew_at = |second: usize, values: &[Result<f64, &str>]| {
        let mut samples = samples(values);
        samples[second].began_anew = true;
        of_window(ResourceKind::Counter, &samples, 1..5)
    };
    let rising = [Ok(1.0), Ok(2.0), Ok(3.0), Ok(4.0), Ok(5.0)];
    let anew = began_anew_at(3, &rising);
    assert_eq!((anew.rate_per_s, anew.failure.as_deref()), (None, Some("what it counts began anew: it has no rate")));
    assert_eq!(anew.last, Some(5.0));
    // What happened before the window's first sample is none of its business.
    assert_eq!(began_anew_at(1, &rising).rate_per_s, Some(1.0));
}

#[test]
fn what_was_not_sampled_stays_missing() {
    let none = [None; 4];
    let one = of_window(ResourceKind::Counter, &samples(&[Ok(1.0), Ok(7.0), Ok(9.0)]), 1..2);
    assert_eq!(figures(&one), (1, 1, [Some(7.0); 4], None));
    assert_eq!(one.failure.as_deref(), Some("a rate needs two samples in the window"));
    for kind in [ResourceKind::Gauge, ResourceKind::Counter] {
        let failed = of_window(kind, &samples(&[Err("refused"), Err("late")]), 0..2);
        assert_eq!(figures(&failed), (2, 0, none, None));
        assert_eq!(failed.failure.as_deref(), Some("refused"));
        let unseen = of_window(kind, &samples(&[Ok(1.0)]), 1..2);
        assert_eq!(figures(&unseen), (0, 0, none, None));
        let why = "no sample was due while the window lasted; sample it more often than every 2s";
        assert_eq!(unseen.failure.as_deref(), Some(why));
    }
    assert_eq!(resource_records(&[], &samples(&[Ok(1.0)]), 0..SECOND), []);
}

/// The step of trials whose windows held these samples.
fn step(kind: ResourceKind, trials: &[&[Result<f64, &str>]], void: &[usize]) -> Vec<ResourceRecord> {
    let trial = |(index, values): (usize, &&[Result<f64, &str>])| {
        let mut facts = open_facts(1);
        facts.resources = vec![of_window(kind, &samples(values), 0..values.len() as u64)];
        if void.contains(&index) {
            facts.health.clock_step_ns = Some(i64::MAX);
        }
        let slo = ttft_slo();
        let accumulator = accumulate(&slo.request, steady(1));
        (summarise_trial(&slo, &facts, &accumulator), accumulator)
    };
    let trials: Vec<_> = trials.iter().enumerate().map(trial).collect();
    summarise_step(open_facts(1).load, &trials, None).resources
}

#[test]
fn a_step_pools_the_trials_that_speak_for_it() {
    let trials: [&[_]; 4] = [
        &[Ok(1.0), Ok(2.0), Ok(9.0)],
        &[Ok(500.0), Ok(-500.0)],
        &[Ok(4.0), Ok(5.0), Ok(6.0), Ok(7.0)],
        &[Ok(3.0), Err("late"), Ok(8.0)],
    ];
    // The second is void. Medians 2, 5 and 3.
    let found = step(ResourceKind::Gauge, &trials, &[1]);
    assert_eq!(figures(&found[0]), (10, 9, [Some(1.0), Some(3.0), Some(9.0), Some(8.0)], None));
    assert_eq!(found[0].failure.as_deref(), Some("late"));
    // Rises 8 in 2 s, 3 in 3 s and 5 in 2 s: 16 in 7 s.
    let found = step(ResourceKind::Counter, &trials, &[1]);
    let rate = found[0].rate_per_s.unwrap();
    assert!((rate - 16.0 / 7.0).abs() < 1e-12, "{rate}");
    assert_eq!(found[0].rate_over_ns, Some(7 * SECOND));
    // One trial without a rate leaves the step without.
    let found = step(ResourceKind::Counter, &trials, &[]);
    assert_eq!((found[0].rate_per_s, found[0].rate_over_ns), (None, None));
    assert_eq!(found[0].min, Some(-500.0));
    // The last trial decides what was last, even where it has nothing.
    let found = step(ResourceKind::Gauge, &[&[Ok(1.0)], &[Err("gone")]], &[]);
    assert_eq!(figures(&found[0]), (2, 1, [Some(1.0), Some(1.0), Some(1.0), None], None));
    assert_eq!(step(ResourceKind::Gauge, &[], &[]), []);
}
