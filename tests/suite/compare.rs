//! Comparisons with a baseline in virtual time: the right answer where the true slowdown is known (method, section 10.1).
//!
//! Every number here is seeded, so that a test fails always or never; what is random is held to the bounds of the method.

use goodput::compare::{Reference, confirm};
use goodput::judge::{Reason, Status};
use goodput::record::{BaselineUse, Fingerprint, RecordTrial};
use goodput::schedule::{PlannedTrial, TrialCounts};
use goodput::search::Part;
use goodput::simulate::rehearse_trial;

use crate::queues::{Nightly, Queue, changes, five_percent, rate};

const COUNTS: TrialCounts = TrialCounts { warm_up: 300, window: 300, drain: 200 };

/// Eight servers and continuous batching, ten nights each, with 1 % of noise from trial to trial.
fn nights() -> Vec<Nightly> {
    let of =
        |id: &'static str| (0..10).map(move |night| Nightly::new(Queue::new(id), COUNTS, 1_000 * (night + 1), 0.01));
    ["q-05", "q-10"].into_iter().flat_map(of).collect()
}

/// Of all nights how many comparisons of the capacity passed, and how many failed, in percent.
fn shares(nights: &[Nightly], slowdown: f64) -> (usize, usize) {
    let status = |night: &Nightly| {
        let result = night.change(slowdown);
        let row = changes(&result, "capacity")[0].clone();
        assert_eq!((row.method.as_deref(), row.gates, row.base_trials), (Some("load shift"), true, 8), "{row:?}");
        assert!([3, 5, 8].contains(&row.head_trials), "{row:?}");
        row.status
    };
    let found: Vec<Status> = nights.iter().map(status).collect();
    let percent = |wanted| 100 * found.iter().filter(|status| **status == wanted).count() / found.len();
    (percent(Status::Pass), percent(Status::Fail))
}

#[test]
fn the_capacity_of_an_equal_change_passes_and_that_of_a_slower_one_fails() {
    let nights = nights();
    // By the table of section 10.1, at 1 % of noise: what is equal passes, 2 % slower passes, 11 % slower fails in 92 % and more,
    // and on the margin at most 16 % pass and 9 % fail. A percentage of 20 nights has a standard error of up to 11 points.
    let (pass, fail) = shares(&nights, 1.0);
    assert!(pass >= 95 && fail == 0, "equal: {pass} {fail}");
    let (pass, fail) = shares(&nights, 1.02);
    assert!(pass >= 85 && fail <= 5, "2 % slower: {pass} {fail}");
    let (pass, fail) = shares(&nights, 1.0 / 0.95);
    assert!(pass <= 30 && fail <= 25, "on the margin: {pass} {fail}");
    let (pass, fail) = shares(&nights, 1.10);
    assert!(pass == 0 && fail >= 75, "10 % slower: {pass} {fail}");
    let (pass, fail) = shares(&nights, 1.20);
    assert!(pass == 0 && fail >= 95, "20 % slower: {pass} {fail}");
}

#[test]
fn a_machine_that_is_slower_tonight_is_no_loss_when_both_are_run_side_by_side() {
    let night = Nightly::new(Queue::new("q-05"), COUNTS, 7_000, 0.0);
    let used = BaselineUse { record: Some(night.record.clone()), ..BaselineUse::default() };
    let reference = Reference::of(&night.contract, &used, None).expect("a curve");
    let trials = |slowdown: f64| -> Vec<RecordTrial> {
        let load = reference.load();
        let shape = night.contract.traffic.shape(load);
        let planned = |place| PlannedTrial { trial: place, seed: reference.seed(&night.contract, place), load, shape };
        let trial = |place| {
            let planned = planned(place);
            rehearse_trial(&night.contract.slo, &planned, Part::Confirm, night.stage(&planned, slowdown)).unwrap().0
        };
        (0..8).map(trial).map(|trial| RecordTrial::of(&trial)).collect()
    };
    let margin = five_percent().margin;
    // The machine takes 8 % more time for everything.
    assert_eq!(changes(&night.change(1.08), "capacity")[0].status, Status::Fail);
    let equal = confirm(&reference, &trials(1.08), &trials(1.08), margin);
    assert_eq!((equal.status, equal.reason), (Status::Pass, Reason::Held), "{equal:?}");
    let slower = confirm(&reference, &trials(1.08), &trials(1.08 * 1.10), margin);
    assert_eq!((slower.status, slower.significant), (Status::Fail, true), "{slower:?}");
    let few = confirm(&reference, &trials(1.0)[..2], &trials(1.0), margin);
    assert_eq!((few.status, few.reason), (Status::Unknown, Reason::TooFewSamples), "{few:?}");
}

#[test]
fn pairs_of_trials_tell_a_loss_of_goodput() {
    let night = Nightly::new(Queue::new("q-05"), COUNTS, 9_000, 0.0);
    // A quarter above the capacity a slower server loses a good part of its goodput.
    let at = rate(1.25 * night.queue.capacity);
    let row = |slowdown: f64| {
        let result = night.change_in_pairs(at, slowdown);
        let row = changes(&result, "goodput")[0].clone();
        assert_eq!((row.method.as_deref(), row.head_trials), (Some("paired trials"), 5), "{row:?}");
        row
    };
    let equal = row(1.0);
    assert_eq!((equal.status, equal.significant, equal.material), (Status::Pass, false, false), "{equal:?}");
    let slower = row(1.10);
    assert_eq!((slower.status, slower.significant, slower.material), (Status::Fail, true, true), "{slower:?}");
}

#[test]
fn other_circumstances_are_not_compared_and_other_trials_have_no_reference() {
    let night = Nightly::new(Queue::new("q-05"), COUNTS, 11_000, 0.0);
    let used = BaselineUse { record: Some(night.record.clone()), ..BaselineUse::default() };
    assert!(matches!(Reference::of(&night.contract, &used, None), Some(Reference::Shift { .. })));
    let mut other = Fingerprint::default();
    other.must_match.insert("gpu_model".to_owned(), "another".to_owned());
    assert_eq!(Reference::of(&night.contract, &used, Some(&other)), None);
    let longer = TrialCounts { window: 400, ..COUNTS };
    let mut contract = night.queue.contract(rate(0.6 * night.queue.capacity), longer, 11_000);
    contract.baseline = Some(five_percent());
    assert_eq!(Reference::of(&contract, &used, None), None);
}
