//! Whole campaigns against systems whose answer is a function of seed and load.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::contract::{Contract, Plan, Search, parse};
use crate::observe::Outcome;
use crate::record::{
    AloneCounts, DriftRecord, HealthRecord, ObjectiveEvidence, SearchEnd, TrialRecord, WindowCounts, settle,
};
use crate::schedule::PlannedTrial;
use crate::units::{Digest, Load, Rate, Share};

const N: u64 = 1_000;

/// A contract over P99 TTFT of 1 s with the given traffic keys, judged at 4/s.
fn contract(traffic: &str, objectives: &str) -> Contract {
    let text = format!(
        "version: 1\nname: t\nendpoint: {{ url: 'http://127.0.0.1:1/v1', protocol: openai-chat, model: m }}\n\
         workload: {{ cases: [{{ prompt: a }}], seed: 100 }}\n\
         traffic: {{ model: poisson, trial: {{ requests: {N}, warm_up: 10s }}, {traffic} }}\n\
         slo: {{ objectives: [{objectives}], at_load: 4/s }}\n"
    );
    parse(&text, Path::new(".")).unwrap_or_else(|faults| panic!("{faults:?}")).contract
}

const LOAD: &str = "loads: [4/s], budget: { check: 10h }";
const TTFT: &str = "{ metric: ttft, percentile: 99, at_most: 1s }";

fn load(per_second: f64) -> Load {
    Load::RateMilli(Rate::from_milli((per_second * 1e3).round() as u64).unwrap())
}

/// A trial whose P99 is `quantile_ns` and whose success rate has no failure.
fn trial(contract: &Contract, planned: &PlannedTrial, quantile_ns: u64) -> TrialRecord {
    let over = quantile_ns > 1_000_000_000;
    let evidence = |id: String, violations, headroom| ObjectiveEvidence {
        id,
        n: N,
        violations,
        undecided: 0,
        unmeasured: 0,
        unit: None,
        quantile: None,
        lower: None,
        upper: None,
        headroom,
        inflation: Some(1.0),
        alone: AloneCounts::default(),
    };
    let headroom = (1e9 / quantile_ns as f64).ln().clamp(-std::f64::consts::LN_10, std::f64::consts::LN_10);
    let objectives = contract.slo.objectives.iter().map(|objective| match objective.limit() {
        Some(_) => evidence(objective.id(), if over { 20 } else { 5 }, Some(headroom)),
        None => evidence(objective.id(), 0, None),
    });
    let mut record = TrialRecord {
        trial: planned.trial,
        seed: planned.seed,
        schedule_digest: Digest::of(b"s"),
        planned: None,
        window_ns: 1,
        complete: true,
        given_up: false,
        took_ns: planned.load_time().as_nanos() as u64,
        window: WindowCounts {
            scheduled: N,
            decided: N,
            outcomes: BTreeMap::from([(Outcome::Ok, N)]),
            ..WindowCounts::default()
        },
        objectives: objectives.collect(),
        headroom: None,
        held: None,
        drift: Some(DriftRecord { slope_per_s: 0.0, t: 0.0, growth: 0.0, drifting: false }),
        resources: Vec::new(),
        metrics: std::collections::BTreeMap::new(),
        ratios: std::collections::BTreeMap::new(),
        unstable: Vec::new(),
        health: HealthRecord::default(),
    };
    settle(&contract.slo, &mut record);
    record
}

type Made = Vec<(Part, Load, TrialRecord)>;

/// Runs a whole campaign; `answer` makes the record of each planned trial.
fn run(contract: &Contract, plan: Plan, mut answer: impl FnMut(&PlannedTrial, usize) -> TrialRecord) -> (Made, Next) {
    let campaign = Campaign::new(contract, plan);
    let mut made: Made = Vec::new();
    loop {
        match campaign.next(&tried(&made)) {
            Next::Trial(planned, part) => {
                assert!(made.len() < 500, "a campaign without end");
                assert_eq!(planned.trial as usize, made.len(), "trials are numbered in their order");
                let record = answer(&planned, made.len());
                made.push((part, planned.load, record));
            }
            end => return (made, end),
        }
    }
}

fn tried(made: &Made) -> Vec<Tried<'_>> {
    made.iter().map(|(part, load, record)| Tried { part: *part, load: *load, record }).collect()
}

/// The loads of the trials, as `4:100` for 4/s on seed 100.
fn order(made: &Made) -> Vec<String> {
    made.iter()
        .map(|(_, load, record)| format!("{}:{}", load.to_string().trim_end_matches("/s"), record.seed))
        .collect()
}

#[test]
fn looks_end_at_the_first_that_decides() {
    let contract = contract(LOAD, TTFT);
    let trials = |values: &[u64]| {
        let (made, end) = run(&contract, Plan::Check, |planned, index| {
            trial(&contract, planned, values[index % values.len()] * 1_000_000)
        });
        assert_eq!(end, Next::Done);
        let records: Vec<&TrialRecord> = made.iter().map(|(.., record)| record).collect();
        let look = look_together(&counted(records), &contract.evidence.looks).unwrap();
        (made.len(), look.decision)
    };
    use crate::stats::Decision::{Fail, Pass, Undecided};
    assert_eq!(trials(&[400]), (3, Pass));
    assert_eq!(trials(&[2_000]), (3, Fail));
    // ln(1/0.85) = 0.163 with a deviation around 0.06: five trials are needed.
    assert_eq!(trials(&[800, 900, 850, 830, 880]), (5, Pass));
    assert_eq!(trials(&[900, 1_100]), (8, Undecided));
}

#[test]
fn every_listed_load_is_tried_once_and_the_first_trial_is_what_must_hold() {
    let contract = contract("loads: [2/s, 4/s, 6/s, 8/s], budget: { check: 10h }", TTFT);
    let (made, _) = run(&contract, Plan::Check, |planned, _| trial(&contract, planned, 400_000_000));
    let order = order(&made);
    assert_eq!(order[0].split(':').next(), Some("4"));
    let mut sorted = order.clone();
    sorted.sort();
    assert_eq!(sorted, ["2:100", "4:100", "4:101", "4:102", "6:100", "8:100"]);
    assert_ne!(order, sorted, "loads are interleaved");
    // The order is a function of the seed, and so is the digest.
    let again = run(&contract, Plan::Check, |planned, _| trial(&contract, planned, 400_000_000)).0;
    assert_eq!(super::tests::order(&again), order);
    let listed = Campaign::new(&contract, Plan::Check).listed();
    assert_eq!(listed.len(), 8 + 3, "up to the last look");
    let check = Campaign::new(&contract, Plan::Check).digest();
    assert_eq!(check, Campaign::new(&contract, Plan::Check).digest());
    assert_ne!(check, Campaign::new(&contract, Plan::Release).digest(), "without a search every load is looked at");
}

#[test]
fn a_void_trial_is_repeated_once_with_its_own_seed() {
    let contract = contract(LOAD, TTFT);
    let void = |planned: &PlannedTrial, is_void: bool| {
        let mut record = trial(&contract, planned, 400_000_000);
        if is_void {
            record.health.faults.push("late".to_owned());
            settle(&contract.slo, &mut record);
        }
        record
    };
    let (made, _) = run(&contract, Plan::Check, |planned, index| void(planned, index == 1));
    assert_eq!(order(&made), ["4:100", "4:101", "4:101", "4:102"]);
    // Void twice, the step stays undecided and nothing more is spent on it.
    let (made, _) = run(&contract, Plan::Check, |planned, index| void(planned, index == 1 || index == 2));
    assert_eq!(order(&made), ["4:100", "4:101", "4:101"]);
}

#[test]
fn what_does_not_fit_into_the_budget_is_left_out_and_what_must_hold_comes_first() {
    // A trial at 4/s takes 255 s of load, one at 2/s twice as long.
    let trials = |budget: &str| {
        let contract = contract(&format!("loads: [2/s, 4/s], budget: {{ check: {budget} }}"), TTFT);
        let (made, end) = run(&contract, Plan::Check, |planned, _| trial(&contract, planned, 400_000_000));
        let at = made.iter().filter(|(_, at, _)| *at == load(4.0)).count();
        (at, made.len() - at, end)
    };
    assert_eq!(trials("22m"), (3, 1, Next::Done));
    assert_eq!(trials("21m"), (3, 0, Next::OutOfTime));
    assert_eq!(trials("10m"), (2, 0, Next::OutOfTime));
}

/// A system that holds below `capacity`, its P99 falling with the distance.
fn quantile(at: Load, capacity: f64) -> u64 {
    let rate = at.rate().unwrap().per_second();
    (1e9 * (rate / capacity).powi(6)).clamp(1e6, 2e10) as u64
}

const SEARCH: &str = "loads: [4/s], search: { from: 1/s, to: 64/s, precision: 5% }, budget: { release: 100h }";

#[test]
fn a_search_brackets_the_capacity_of_every_schedule() {
    let contract = contract(SEARCH, TTFT);
    let capacity = |seed: u64| 10.0 * 1.05f64.powi(seed as i32 % 5);
    let (made, end) = run(&contract, Plan::Release, |planned, _| {
        trial(&contract, planned, quantile(planned.load, capacity(planned.seed)))
    });
    assert_eq!(end, Next::Done);
    let tried = tried(&made);
    let searches = seed_searches(&contract, &tried);
    assert_eq!(searches.len(), 5);
    for search in &searches {
        let (holds, breaks) = (search.bracket.holds_at().unwrap(), search.bracket.breaks_at().unwrap());
        let truth = capacity(search.seed);
        assert!(holds.per_second() <= truth && truth <= breaks.per_second(), "{truth}: {holds} to {breaks}");
        assert!(breaks.per_second() / holds.per_second() <= 1.05, "{holds} to {breaks}");
        assert_eq!((search.end, search.changed), (SearchEnd::Bracketed, false));
        let trials = made.iter().filter(|(part, _, record)| *part == Part::Search && record.seed == search.seed);
        let count = trials.count();
        assert!(count <= if search.seed == 100 { 10 } else { 6 }, "{count} trials on seed {}", search.seed);
    }
    // The last trial tries the first schedule again, a tenth below where the lowest held.
    let (part, at, record) = made.last().unwrap();
    let lowest = searches.iter().map(|search| search.bracket.holds_at().unwrap()).min().unwrap().per_second();
    assert_eq!((*part, record.seed, *at), (Part::Search, 100, load(lowest / 1.1)));
}

#[test]
fn an_endpoint_that_changes_during_the_run_is_noticed_and_one_bad_trial_is_not_taken_for_it() {
    let contract = contract(SEARCH, TTFT);
    let all =
        run(&contract, Plan::Release, |planned, _| trial(&contract, planned, quantile(planned.load, 12.0))).0.len();
    // It slows down when all but the first schedule's last trial are made.
    let with_last = |capacities: [f64; 2]| {
        let (made, end) = run(&contract, Plan::Release, |planned, index| {
            let capacity = index.checked_sub(all - 1).map_or(12.0, |late| capacities[late.min(1)]);
            trial(&contract, planned, quantile(planned.load, capacity))
        });
        assert_eq!(end, Next::Done);
        let searches = seed_searches(&contract, &tried(&made));
        assert!(searches.iter().all(|search| search.end == SearchEnd::Bracketed));
        assert!(!check_again_is_missing(&contract, &tried(&made)));
        (made.len() - all, searches[0].changed)
    };
    assert_eq!(with_last([12.0, 12.0]), (0, false));
    assert_eq!(with_last([7.0, 12.0]), (1, false), "it broke once and then held");
    assert_eq!(with_last([7.0, 7.0]), (1, true));
}

#[test]
fn ends_of_the_range_are_told_and_not_invented() {
    for (capacity, end, holds, breaks) in
        [(500.0, SearchEnd::HoldsThroughout, Some(64.0), None), (0.5, SearchEnd::BreaksThroughout, None, Some(1.0))]
    {
        let contract = contract(SEARCH, TTFT);
        let (made, _) =
            run(&contract, Plan::Release, |planned, _| trial(&contract, planned, quantile(planned.load, capacity)));
        for search in seed_searches(&contract, &tried(&made)) {
            let at = |load: Option<Rate>| load.map(Rate::per_second);
            assert_eq!(search.end, end);
            assert_eq!((at(search.bracket.holds_at()), at(search.bracket.breaks_at())), (holds, breaks));
        }
    }
}

#[test]
fn a_band_that_fails_hides_what_holds_above_it() {
    let range = Search {
        from: Rate::from_milli(1_000).unwrap(),
        to: Rate::from_milli(64_000).unwrap(),
        precision: Share::from_ppm(50_000).unwrap(),
        seeds: 1,
    };
    let rate = |per_second: u64| Rate::from_milli(per_second * 1_000).unwrap();
    let bracket = Bracket::new(range, vec![(rate(20), true)], vec![(rate(8), true), (rate(10), false)]);
    assert_eq!((bracket.holds_at(), bracket.breaks_at()), (Some(rate(8)), Some(rate(10))));
    assert!(bracket.is_non_monotone());
    // √(8 · 10) = 8.944.
    assert_eq!(bracket.next(rate(8)), Try::Load(Rate::from_milli(8_944).unwrap()));
}

#[test]
fn steps_go_outwards_as_the_method_says() {
    let range = Search {
        from: Rate::from_milli(1_000).unwrap(),
        to: Rate::from_milli(64_000).unwrap(),
        precision: Share::from_ppm(50_000).unwrap(),
        seeds: 1,
    };
    // From 10/s by 1.1, 1.1², 1.1⁴, 1.1⁸, then 1.1⁸ again until the end of the range.
    for (held, want) in [
        (true, vec![10_000, 11_000, 13_310, 19_487, 41_772, 64_000]),
        (false, vec![10_000, 9_091, 7_513, 5_131, 2_394, 1_117]),
    ] {
        let mut tried = Vec::new();
        for want in want {
            let Try::Load(load) =
                Bracket::new(range, Vec::new(), tried.clone()).next(Rate::from_milli(10_000).unwrap())
            else {
                panic!("ended after {tried:?}")
            };
            assert_eq!(load.milli(), want, "{tried:?}");
            tried.push((load, held));
        }
    }
}

#[test]
fn failures_of_all_trials_are_counted_together() {
    let objectives = format!("{TTFT}, {{ metric: success_rate, at_least: 99% }}");
    let contract = contract(LOAD, &objectives);
    let with_failures = |failures: [u64; 3]| {
        let (made, _) = run(&contract, Plan::Check, |planned, index| {
            let mut record = trial(&contract, planned, 400_000_000);
            record.objectives[1].violations = failures[index % 3];
            record
        });
        let records: Vec<&TrialRecord> = made.iter().map(|(.., record)| record).collect();
        let found = pooled(1, &contract.slo.objectives[1], &counted(records), &[3, 5, 8]).unwrap();
        (found.n, found.violations, found.decision)
    };
    use crate::stats::Decision::{Fail, Pass, Undecided};
    // P(Bin(3000, 0.01) ≤ 17) = 0.006 and ≥ 43 = 0.014, both within 0.05/3; 30 of 3,000 lie on the limit.
    assert_eq!(with_failures([6, 6, 5]), (3_000, 17, Pass));
    assert_eq!(with_failures([14, 14, 15]), (3_000, 43, Fail));
    assert_eq!(with_failures([10, 10, 10]), (8_000, 80, Undecided));
}

#[test]
fn where_nothing_is_tolerated_one_failure_decides_at_once() {
    let objectives = format!("{TTFT}, {{ metric: success_rate, at_least: 100% }}");
    let contract = contract(LOAD, &objectives);
    let campaign = Campaign::new(&contract, Plan::Check);
    let planned = campaign.listed();
    let mut records: Vec<TrialRecord> = planned.iter().take(3).map(|p| trial(&contract, p, 400_000_000)).collect();
    let decision = |records: &[TrialRecord]| {
        let trials: Vec<&TrialRecord> = records.iter().collect();
        pooled(1, &contract.slo.objectives[1], &trials, &[3, 5, 8]).map(|found| found.decision)
    };
    use crate::stats::Decision::{Fail, Pass};
    assert_eq!(decision(&records), Some(Pass));
    assert_eq!(decision(&records[..2]), None);
    records[1].objectives[1].violations = 1;
    assert_eq!(decision(&records[..2]), Some(Fail));
}
