//! Whole comparisons of small records.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::*;
use crate::contract::{FingerprintKeys, LatencyMargin, Plan, RequestMetric, Within, parse};
use crate::judge::{Claim, Reason, Status};
use crate::record::{BASELINE_SCHEMA, CapacityRecord, Fingerprint, Origin, Quantiles, SeedCapacity};
use crate::schedule::PlannedTrial;
use crate::stats::Decision;
use crate::units::{Digest, Load, Rate, Share};

const SEED: u64 = 100;

fn share(ppm: u32) -> Share {
    Share::from_ppm(ppm).unwrap()
}

fn rate(milli: u64) -> Rate {
    Rate::from_milli(milli).unwrap()
}

fn load(milli: u64) -> Load {
    Load::RateMilli(rate(milli))
}

/// P99 of the TTFT within three seconds at 4/s, 100 requests in each trial, a margin of 5 %.
fn contract() -> Contract {
    let text = json!({
        "version": 1, "name": "small",
        "endpoint": { "url": "http://endpoint.invalid/v1/chat/completions", "protocol": "openai-chat", "model": "m" },
        "workload": { "seed": SEED, "cases": [{ "id": "one", "prompt": "one", "max_tokens": 2 }] },
        "traffic": { "model": "poisson", "loads": ["4/s"], "trial": { "requests": 100 } },
        "slo": { "objectives": [{ "metric": "ttft", "percentile": 99, "at_most": "3s" }], "at_load": "4/s" },
    });
    let mut contract = parse(&text.to_string(), Path::new(".")).unwrap().contract;
    contract.baseline = Some(BaselinePlan {
        margin: share(50_000),
        from: Vec::new(),
        within: Within { commits: 1, days: 1 },
        latency: Vec::new(),
        fingerprint: FingerprintKeys::default(),
        release: None,
        accepted: None,
        pair: None,
    });
    contract
}

fn record() -> BaselineRecord {
    BaselineRecord {
        schema: BASELINE_SCHEMA.to_owned(),
        digest: Digest::of(&[]),
        tool_version: "0".to_owned(),
        name: "small".to_owned(),
        started_at: String::new(),
        finished_at: String::new(),
        plan: Plan::Baseline,
        contract: serde_json::Value::Null,
        contract_digest: Digest::of(&[]),
        plan_digest: Digest::of(&[]),
        workload_digest: Digest::of(&[]),
        fingerprint: Fingerprint::default(),
        origin: Origin::default(),
        invalid: Vec::new(),
        verdict: Status::Pass,
        not_passed: Vec::new(),
        steps: Vec::new(),
        against: Vec::new(),
        curve: Vec::new(),
        capacity: None,
        capacities: Vec::new(),
        parent: None,
        release: None,
    }
}

fn trial(contract: &Contract, load: Load, place: u64) -> RecordTrial {
    let seed = SEED + place;
    let planned = PlannedTrial { trial: 0, seed, load, shape: contract.traffic.shape(load) };
    RecordTrial {
        seed,
        schedule_digest: planned.schedule_digest(),
        window_ns: 100_000_000_000,
        scheduled: 100,
        ok: 100,
        good: Some(100),
        headroom: Some(0.5),
        held: Some(true),
        metrics: BTreeMap::new(),
        ratios: BTreeMap::new(),
    }
}

/// A step with one trial for each number of good requests.
fn goods(contract: &Contract, milli: u64, goods: &[u64]) -> RecordStep {
    let load = load(milli);
    let of = |(good, place): (&u64, u64)| RecordTrial { good: Some(*good), ..trial(contract, load, place) };
    RecordStep { load, trials: goods.iter().zip(0..).map(of).collect() }
}

/// The same with the P99 of the TTFT in milliseconds; without one it falls among failures.
fn ttfts(contract: &Contract, values: &[Option<u64>]) -> RecordStep {
    let of = |(value, place): (&Option<u64>, u64)| {
        let p99_ns = value.map(|value| value * 1_000_000);
        let times = Quantiles { count: 100, p50_ns: None, p90_ns: None, p95_ns: None, p99_ns, max_ns: None };
        let metrics = BTreeMap::from([("ttft".to_owned(), times)]);
        RecordTrial { metrics, ..trial(contract, load(4_000), place) }
    };
    RecordStep { load: load(4_000), trials: values.iter().zip(0..).map(of).collect() }
}

fn headrooms(contract: &Contract, milli: u64, values: &[f64]) -> RecordStep {
    let load = load(milli);
    let of = |(value, place): (&f64, u64)| RecordTrial {
        headroom: Some(*value),
        held: Some(*value >= 0.0),
        ..trial(contract, load, place)
    };
    RecordStep { load, trials: values.iter().zip(0..).map(of).collect() }
}

fn compared(contract: &Contract, base: &BaselineRecord, head: &BaselineRecord, is_paired: bool) -> Comparison {
    compare(Sides { base, head, contract, rules: contract.baseline.as_ref().unwrap(), is_paired })
}

fn row<'a>(comparison: &'a Comparison, metric: &str) -> &'a Change {
    comparison.changes.iter().find(|change| change.metric == metric).unwrap()
}

fn capacity(milli: [u64; 2], point: f64, seeds: u32) -> CapacityRecord {
    CapacityRecord {
        holds_at: Some(load(milli[0])),
        breaks_at: Some(load(milli[1])),
        point: Some(point),
        claim: if seeds > 1 { Claim::TypicalRun } else { Claim::ThisRun },
        method: "bracketing search".to_owned(),
        confidence: None,
        confidence_of_end: Some(share(1_000_000 - (1_000_000 >> seeds))),
        seeds,
        trials: 20,
        requests_per_trial: Some(100),
        goodput: None,
        non_monotone: false,
        changed: false,
        binding: None,
    }
}

/// A record with a curve of five loads around 5/s that falls by `slope` for each unit of `ln load`, on `seeds` schedules.
fn with_curve(contract: &Contract, slope: f64, seeds: usize) -> BaselineRecord {
    let step = |milli: u64| {
        let headroom = -slope * (milli as f64 / 5_000.0).ln();
        headrooms(contract, milli, &vec![headroom; seeds])
    };
    let curve = [4_500, 4_750, 5_000, 5_300, 5_600].map(step).to_vec();
    BaselineRecord { curve, capacity: Some(capacity([4_800, 5_200], 5.0, 5)), ..record() }
}

#[test]
fn what_must_match_and_does_not_is_told_and_nothing_is_computed() {
    let contract = contract();
    let mut base = BaselineRecord { steps: vec![goods(&contract, 4_000, &[99, 98, 97])], ..record() };
    let mut head = base.clone();
    base.fingerprint.must_match =
        BTreeMap::from([("gpu".to_owned(), "A".to_owned()), ("cpu".to_owned(), "x".to_owned())]);
    head.fingerprint.must_match = BTreeMap::from([("gpu".to_owned(), "B".to_owned())]);
    head.fingerprint.under_test = BTreeMap::from([("image".to_owned(), "new".to_owned())]);
    head.steps[0].trials[1].schedule_digest = Digest::of(b"another");
    let found = compared(&contract, &base, &head, false);
    let named: Vec<(&str, bool)> = found.mismatches.iter().map(|of| (of.field.as_str(), of.head.is_some())).collect();
    assert_eq!(named, [("cpu", false), ("gpu", true), ("schedule at 4/s of seed 101", true)]);
    assert_eq!((found.changes.len(), found.under_test.len()), (0, 1));
}

/// Good requests of the trials on both sides, whether they are pairs, and what is found by which method.
type Case<'a> = (&'a [u64], &'a [u64], bool, Status, Reason, &'a str);

#[test]
fn goodput_is_compared_by_ranks_by_prediction_in_pairs_or_not_at_all() {
    let contract = contract();
    let side = |values: &[u64]| BaselineRecord { steps: vec![goods(&contract, 4_000, values)], ..record() };
    let cases: [Case<'_>; 9] = [
        (&[100, 101, 99], &[99, 100, 101], false, Status::Pass, Reason::Held, "rank interval"),
        (&[100, 101, 99], &[80, 81, 82], false, Status::Fail, Reason::Broken, "rank interval"),
        (&[100, 110, 90], &[95, 100, 92], false, Status::Unknown, Reason::IntervalStraddlesLimit, "rank interval"),
        (&[100, 101, 99], &[200, 201, 202], false, Status::Unknown, Reason::ImplausibleGain, "rank interval"),
        (&[100, 101, 99, 100, 100], &[100], false, Status::Pass, Reason::Held, "prediction interval"),
        (&[100, 101, 99, 100], &[100], false, Status::Unknown, Reason::RunNoiseUnknown, ""),
        (&[100, 101], &[100, 99], false, Status::Unknown, Reason::TooFewSamples, ""),
        (&[100, 50, 75], &[100, 50, 75], true, Status::Pass, Reason::Held, "paired trials"),
        (&[100, 50, 0], &[80, 40, 0], true, Status::Unknown, Reason::IntervalStraddlesLimit, "paired trials"),
    ];
    for (base, head, is_paired, status, reason, method) in cases {
        let found = compared(&contract, &side(base), &side(head), is_paired);
        let row = row(&found, "goodput");
        let got = (row.status, row.reason, row.method.as_deref().unwrap_or(""), row.gates);
        assert_eq!(got, (status, reason, method, true), "{base:?} {head:?}: {row:?}");
    }
    let mut unknown = side(&[100, 101, 99]);
    unknown.steps[0].trials[0].good = None;
    let found = compared(&contract, &side(&[100, 101, 99]), &unknown, false);
    assert_eq!((row(&found, "goodput").status, row(&found, "goodput").reason), (Status::Unknown, Reason::NotMeasured));
    // A load that only one side measured is no row, and one beside that which must hold does not gate.
    let both = |values: &[u64]| BaselineRecord { steps: vec![goods(&contract, 2_000, values)], ..record() };
    let found = compared(&contract, &both(&[100, 101, 99]), &both(&[80, 81, 82]), false);
    let rows: Vec<_> = found.changes.iter().filter(|change| change.metric == "goodput").collect();
    assert_eq!((rows.len(), rows[0].status, rows[0].gates, rows[0].material), (1, Status::Fail, false, true));
    assert!(compared(&contract, &side(&[1]), &both(&[1]), false).changes.iter().all(|of| of.metric != "goodput"));
}

#[test]
fn a_latency_is_a_speed_and_one_without_end_is_the_slowest() {
    let mut contract = contract();
    let rule = LatencyMargin { metric: RequestMetric::Ttft, percentile: 99, margin: share(100_000), gates: true };
    contract.baseline.as_mut().unwrap().latency = vec![rule];
    let side = |values: &[Option<u64>]| BaselineRecord { steps: vec![ttfts(&contract, values)], ..record() };
    let base = side(&[Some(100), Some(101), Some(99)]);
    let of = |head: &[Option<u64>]| row(&compared(&contract, &base, &side(head), false), "ttft_p99").clone();
    let slower = of(&[Some(200), Some(201), Some(202)]);
    assert_eq!((slower.status, slower.gates, slower.base.as_deref()), (Status::Fail, true, Some("100 ms")));
    // 99/202 to 101/200.
    let [lower, upper] = slower.interval.unwrap();
    assert!((lower - 99.0 / 202.0).abs() < 1e-9 && (upper - 101.0 / 200.0).abs() < 1e-9, "{slower:?}");
    assert_eq!(of(&[Some(100), Some(99), Some(98)]).status, Status::Pass);
    let endless = of(&[None, None, None]);
    assert_eq!((endless.status, endless.interval, endless.head.as_deref()), (Status::Fail, Some([0.0; 2]), Some("∞")));
    let found = compared(&contract, &side(&[None, Some(1), Some(1)]), &base, false);
    assert_eq!(
        (row(&found, "ttft_p99").status, row(&found, "ttft_p99").reason),
        (Status::Unknown, Reason::NotMeasured)
    );
    // In the rules it stands once; the median, which nobody measured here, is not shown as a row of its own.
    assert_eq!(found.changes.iter().filter(|change| change.metric.starts_with("ttft")).count(), 2);
}

#[test]
fn a_curve_gives_a_shift_where_it_is_steep_and_whole_and_else_a_load_that_must_hold() {
    let contract = contract();
    let reference = |base: &BaselineRecord| Reference::between(&contract, base, &Fingerprint::default());
    let Some(Reference::Shift { load: at, seeds, .. }) = reference(&with_curve(&contract, 4.0, 8)) else {
        panic!("steep")
    };
    assert_eq!((at, seeds), (rate(5_000), (100..108).collect()));
    for flat in [with_curve(&contract, 1.9, 8), with_curve(&contract, 4.0, 2)] {
        assert_eq!(reference(&flat), Some(Reference::Holds { load: rate(4_750) }));
    }
    let looks = |seeds| reference(&with_curve(&contract, 4.0, seeds)).unwrap().looks(&contract);
    assert_eq!((looks(8), looks(6), looks(3)), (vec![3, 5, 8], vec![3, 5], vec![3]));
    // The capacity of one schedule is not that of typical runs.
    let single = BaselineRecord { capacity: Some(capacity([4_800, 5_200], 5.0, 1)), ..record() };
    assert_eq!((reference(&single), reference(&record())), (None, None));
}

#[test]
fn a_shift_along_the_curve_is_the_ratio_of_the_capacities() {
    let contract = contract();
    let base = with_curve(&contract, 4.0, 8);
    // A head that is σ slower has the headroom −4σ − σ at the capacity.
    let head = |sigma: f64, trials: usize| BaselineRecord {
        against: vec![headrooms(&contract, 5_000, &vec![-5.0 * sigma; trials])],
        ..record()
    };
    let of = |sigma, trials| row(&compared(&contract, &base, &head(sigma, trials), false), "capacity").clone();
    let equal = of(0.0, 8);
    assert_eq!((equal.status, equal.head_trials, equal.gates), (Status::Pass, 3, true), "{equal:?}");
    assert!((equal.ratio.unwrap() - 1.0).abs() < 1e-4);
    let slower = of(0.1, 3);
    assert_eq!((slower.status, slower.head.as_deref()), (Status::Fail, Some("≈ 4.52/s")), "{slower:?}");
    assert!((slower.ratio.unwrap() - (-0.1_f64).exp()).abs() < 1e-4);
    assert_eq!((of(0.0, 2).status, of(0.0, 2).reason), (Status::Unknown, Reason::TooFewSamples));
    // Nothing is believed to be 1.6 times as fast.
    assert_eq!((of(-0.49, 3).status, of(-0.49, 3).reason), (Status::Unknown, Reason::ImplausibleGain));
    let none = row(&compared(&contract, &base, &record(), false), "capacity").clone();
    assert_eq!((none.status, none.reason, none.gates), (Status::Unknown, Reason::NotMeasured, true));
}

#[test]
fn where_only_a_load_is_held_the_ratio_is_only_bounded() {
    let contract = contract();
    let base = BaselineRecord { capacity: Some(capacity([4_800, 5_200], 5.0, 5)), ..record() };
    let of = |values: &[f64]| {
        let head = BaselineRecord { against: vec![headrooms(&contract, 4_750, values)], ..record() };
        row(&compared(&contract, &base, &head, false), "capacity").clone()
    };
    let holds = of(&[0.5, 0.51, 0.49]);
    assert_eq!((holds.status, holds.ratio, holds.head.as_deref()), (Status::Pass, None, Some("≥ 4.75/s")), "{holds:?}");
    let broke = of(&[-0.5, -0.51, -0.49]);
    assert_eq!((broke.status, broke.reason, broke.material), (Status::Fail, Reason::Broken, true));
    assert_eq!(of(&[0.5, -0.5, 0.1]).reason, Reason::IntervalStraddlesLimit);
    assert_eq!(of(&[0.5, 0.5]).reason, Reason::TooFewSamples);
    // A baseline that is far from its limits where its search said that it breaks has a greater capacity than that.
    let mut doubtful = base.clone();
    doubtful.curve = [4_500, 4_750, 5_000, 5_300, 5_600].map(|milli| headrooms(&contract, milli, &[0.9; 8])).to_vec();
    for (values, want) in [([0.5, 0.51, 0.49], Status::Unknown), ([-0.5, -0.51, -0.49], Status::Fail)] {
        let head = BaselineRecord { against: vec![headrooms(&contract, 4_750, &values)], ..record() };
        assert_eq!(row(&compared(&contract, &doubtful, &head, false), "capacity").status, want);
    }
    // What met its limits and did not hold piled up, or broke in another way: it is no PASS.
    let mut head = BaselineRecord { against: vec![headrooms(&contract, 4_750, &[0.5, 0.51, 0.49])], ..record() };
    head.against[0].trials.iter_mut().for_each(|trial| trial.held = Some(false));
    assert_eq!(row(&compared(&contract, &base, &head, false), "capacity").status, Status::Unknown);
}

/// Searches that ended within 2 % around capacities.
fn searched(middles: &[f64]) -> Vec<SeedCapacity> {
    let end = |middle: f64, factor: f64| rate((middle * factor * 1e3).round() as u64);
    let of = |(middle, seed): (&f64, u64)| SeedCapacity {
        seed,
        holds_at: end(*middle, 0.99),
        breaks_at: end(*middle, 1.01),
    };
    middles.iter().zip(SEED..).map(of).collect()
}

#[test]
fn searches_on_the_same_schedules_are_compared_and_a_release_is_held_against() {
    let contract = contract();
    let side = |middles: &[f64]| BaselineRecord {
        capacities: searched(middles),
        capacity: Some(capacity([4_000, 6_000], 5.0, 5)),
        ..record()
    };
    let base = side(&[50.0, 51.0, 60.0, 49.0, 55.0]);
    let equal = row(&compared(&contract, &base, &base, false), "capacity").clone();
    // No difference: ± 2.132 · 0.002 / √5 and the half widths of both brackets.
    let width = 2.131_846_786 * 0.002 / 5.0_f64.sqrt() + (1.01_f64 / 0.99).ln();
    let [lower, upper] = equal.interval.unwrap();
    assert!((lower - (-width).exp()).abs() < 1e-3 && (upper - width.exp()).abs() < 1e-3, "{equal:?} {width}");
    assert_eq!((equal.status, equal.method.as_deref()), (Status::Pass, Some("paired searches")));
    let slower = side(&[45.0, 46.0, 54.0, 44.0, 49.5]);
    assert_eq!(row(&compared(&contract, &base, &slower, false), "capacity").status, Status::Fail);
    let margin = contract.baseline.as_ref().unwrap().margin;
    let release = release::since_release(&record(), Some(&slower), margin, &base);
    assert_eq!((release.status, release.gates), (Status::Fail, false));
    assert!(release.note.is_some_and(|note| note.contains("baseline")));
    let few = BaselineRecord { capacities: searched(&[50.0, 50.0]), ..base.clone() };
    let by_ends = release::since_release(&few, Some(&few), margin, &base);
    // [4/6, 6/4] at 1 − 2/32.
    let [lower, upper] = by_ends.interval.unwrap();
    assert!((lower - 2.0 / 3.0).abs() < 1e-9 && (upper - 1.5).abs() < 1e-9, "{by_ends:?}");
    assert_eq!((by_ends.status, by_ends.confidence), (Status::Unknown, Some(share(937_500))));
}

fn point(index: usize, point: f64) -> TrendPoint {
    TrendPoint { time: format!("day {index}"), commit: None, point }
}

#[test]
fn ten_small_losses_are_seen_as_one_and_a_step_where_it_is() {
    let margin = share(50_000);
    let wiggle = |index: usize| 1.0 + 0.002 * (index % 3) as f64;
    let slow: Vec<TrendPoint> =
        (0..20).map(|index| point(index, 10.0 * 0.98_f64.powi(index as i32 / 2) * wiggle(index))).collect();
    let found = trend(&slow, margin);
    assert_eq!((found.decision, found.points.len()), (Decision::Fail, 20));
    let step: Vec<TrendPoint> =
        (0..40).map(|index| point(index, if index < 25 { 10.0 } else { 9.0 } * wiggle(index))).collect();
    let found = trend(&step, margin);
    // Of the last 30 the first is that of day 10.
    let shift = found.shift.unwrap();
    assert_eq!((shift.since.time.as_str(), shift.at, found.points.len()), ("day 25", 15, 30));
    assert!((shift.ratio - 0.9).abs() < 0.001);
    let level: Vec<TrendPoint> = (0..12).map(|index| point(index, 10.0 * wiggle(index))).collect();
    let found = trend(&level, margin);
    assert_eq!((found.decision, found.shift), (Decision::Pass, None));
    assert_eq!(trend(&level[..9], margin).decision, Decision::Undecided);
    assert_eq!(trend(&[], margin).points, []);
}

#[test]
fn a_gate_that_is_calibrated_knows_its_own_error() {
    let of = |values: Vec<f64>| Differences { metric: "goodput".to_owned(), load: Some(load(4_000)), values };
    let quiet = calibrate(&[of(vec![0.0; 8])], share(50_000), &[3, 5, 8], 1, BTreeMap::new());
    let row = &quiet.rows[0];
    assert_eq!((row.false_red, row.undecided, row.pairs), (Some(share(0)), Some(share(0)), 8));
    // Without spread the first look fails below 0.95 less t(0.992; 2) · 0.002 / √3: that is a drop of 5.9 %, and clipping at 14.3 %
    // does not reach it. t(p; 2) = 2(p − ½)·√(2/(4p(1 − p))).
    let (p, limit) = (0.992_f64, 0.95_f64.ln());
    let first = 2.0 * (p - 0.5) * (2.0 / (4.0 * p * (1.0 - p))).sqrt() * 0.002 / 3.0_f64.sqrt();
    let last = 2.0 * 0.002 / 8.0_f64.sqrt();
    let drop = row.smallest_drop.unwrap().fraction();
    assert!(drop > 1.0 - (limit - 0.5 * last).exp() && drop < 1.0 - (limit - first).exp() + 1e-3, "{drop}");
    assert!(row.note.as_ref().is_some_and(|note| note.contains("0.2 %")));
    let noisy: Vec<f64> = (0..12).map(|index| 0.03 * [1.0, -1.0, 0.3, -0.5][index % 4]).collect();
    let noisy = calibrate(&[of(noisy), of(vec![0.1])], share(50_000), &[3, 5, 8], 1, BTreeMap::new());
    let (row, single) = (&noisy.rows[0], &noisy.rows[1]);
    // Stated are 5 %, when the truth lies on the margin; at 1 it is far below.
    assert!(row.false_red.unwrap().ppm() < 20_000 && row.smallest_drop.unwrap().fraction() > drop, "{row:?}");
    assert_eq!((single.false_red, single.smallest_drop, single.note.is_some()), (None, None, true));
}

#[test]
fn differences_come_from_pairs_on_the_same_schedule() {
    let contract = contract();
    let base = [goods(&contract, 4_000, &[100, 50, 80])];
    let mut head = [goods(&contract, 4_000, &[90, 50])];
    head[0].trials.reverse();
    let found = differences(None, &base, &head);
    assert_eq!((found.len(), found[0].load), (1, Some(load(4_000))));
    assert!((found[0].values[0] - 0.9_f64.ln()).abs() < 1e-12 && found[0].values[1].abs() < 1e-12);
}
