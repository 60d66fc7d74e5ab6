//! The rows about a change since the baseline, and the exceptions to them.

use super::*;
use crate::contract::{BaselinePlan, FingerprintKeys, Within};
use crate::record::{Acceptance, BaselineUse, Change, Comparison, Difference, Missing, Weakening};

fn asked() -> Contract {
    let plan = BaselinePlan {
        margin: share(50_000),
        from: Vec::new(),
        within: Within { commits: 50, days: 30 },
        latency: Vec::new(),
        fingerprint: FingerprintKeys::default(),
        release: None,
        accepted: None,
        pair: None,
    };
    Contract { baseline: Some(plan), ..contract() }
}

fn change(metric: &str, [lower, upper]: [f64; 2], status: Status, reason: Reason) -> Change {
    Change {
        metric: metric.to_owned(),
        load: None,
        base: Some("10.0/s".to_owned()),
        head: Some("9.0/s".to_owned()),
        ratio: Some(f64::midpoint(lower, upper)),
        interval: Some([lower, upper]),
        confidence: Share::from_ppm(950_000),
        method: Some("paired load shift".to_owned()),
        margin: share(50_000),
        base_trials: 8,
        head_trials: 3,
        status,
        reason,
        significant: true,
        material: status == Status::Fail,
        gates: true,
        note: None,
    }
}

/// A run whose own limits hold, with what it was compared with.
fn compared(changes: Vec<Change>) -> RunResult {
    RunResult {
        started_at: "2026-11-30T10:00:00Z".to_owned(),
        baseline: Some(BaselineUse::default()),
        comparison: Some(Comparison { changes, ..Comparison::default() }),
        ..result()
    }
}

fn lost() -> RunResult {
    compared(vec![change("capacity", [0.88, 0.92], Status::Fail, Reason::Broken)])
}

fn except(run: &mut RunResult, exception: Acceptance) {
    run.baseline.as_mut().unwrap().accepted = vec![exception];
}

fn exception() -> Acceptance {
    Acceptance {
        row: "capacity_change".to_owned(),
        reason: "safer sampling costs capacity".to_owned(),
        expires: "2026-12-31".to_owned(),
        at_most_ppm: Some(130_000),
        baseline: None,
        by: Some("release team".to_owned()),
    }
}

#[test]
fn a_loss_fails_and_what_only_informs_does_not() {
    let found = judge(&asked(), &lost());
    let row = found.checks.iter().find(|check| check.id == "capacity_change").unwrap();
    assert_eq!((row.status, row.reason), (Status::Fail, Reason::Broken));
    assert_eq!(row.limit.as_deref(), Some("≥ -5%"));
    assert_eq!(row.observed.as_deref(), Some("-10.0%"));
    assert_eq!(row.interval, Some(["-12.0%".to_owned(), "-8.0%".to_owned()]));
    assert_eq!(found.overall, Status::Fail);
    let mut informs = lost();
    informs.comparison.as_mut().unwrap().changes[0].gates = false;
    let found = judge(&asked(), &informs);
    assert_eq!(found.overall, Status::Pass, "{found:?}");
}

#[test]
fn a_contract_without_a_baseline_has_no_such_rows() {
    let run = RunResult { baseline: None, comparison: None, ..lost() };
    assert_eq!(judge(&contract(), &run).checks, judge(&contract(), &result()).checks);
}

#[test]
fn an_exception_covers_the_loss_that_it_names_and_no_other() {
    let row_with = |exception: Acceptance| {
        let mut run = lost();
        except(&mut run, exception);
        let found = judge(&asked(), &run);
        let row = found.checks.iter().find(|check| check.id == "capacity_change").unwrap().clone();
        (found.overall, row.status, row.note.unwrap_or_default())
    };
    let (overall, status, note) = row_with(exception());
    assert_eq!((overall, status), (Status::Pass, Status::Accepted));
    for part in ["release team", "2026-12-31", "safer sampling", "FAIL"] {
        assert!(note.contains(part), "{note}");
    }
    for (wrong, why) in [
        // The loss may be 12 %: more than is accepted.
        (Acceptance { at_most_ppm: Some(110_000), ..exception() }, "may be more"),
        (Acceptance { at_most_ppm: None, ..exception() }, "at_most"),
        // It no longer holds on the day that it names.
        (Acceptance { expires: "2026-11-30".to_owned(), ..exception() }, "expired"),
        (Acceptance { baseline: Some("abc".to_owned()), ..exception() }, "baseline abc"),
        (Acceptance { row: "goodput_change".to_owned(), ..exception() }, ""),
    ] {
        let (overall, status, note) = row_with(wrong);
        assert_eq!((overall, status), (Status::Fail, Status::Fail), "{note}");
        assert!(note.contains(why), "{note}");
    }
}

#[test]
fn an_exception_does_not_cover_a_limit_of_the_contract_itself() {
    let mut run = compared(Vec::new());
    at_load(&mut run).objectives[0] = evidence("ttft_p99", N, N / 2, Some(9_000_000_000));
    except(&mut run, Acceptance { row: "ttft_p99".to_owned(), ..exception() });
    assert_eq!(judge(&asked(), &run).overall, Status::Fail);
}

#[test]
fn a_missing_baseline_is_unknown_and_blocks_only_where_it_is_to() {
    let mut run = compared(Vec::new());
    let missing = |reason| Some(Missing { reason, note: "no store has one".to_owned() });
    run.baseline.as_mut().unwrap().missing = missing(Reason::NoBaseline);
    let policies = [UnknownPolicy::Warn, UnknownPolicy::Block];
    for (unknown, missing_baseline, blocks) in
        policies.iter().flat_map(|unknown| policies.map(|missing| (*unknown, missing, missing == UnknownPolicy::Block)))
    {
        let contract = Contract { policy: Policy { unknown, missing_baseline }, ..asked() };
        let found = judge(&contract, &run);
        assert_eq!(
            (found.overall, found.unknown_blocks),
            (Status::Unknown, blocks),
            "{unknown:?} {missing_baseline:?}"
        );
    }
    // What is not known besides blocks by its own policy, and so does a record that cannot be read.
    run.probes[0].after = None;
    assert!(judge(&asked(), &run).unknown_blocks);
    let mut run = compared(Vec::new());
    run.baseline.as_mut().unwrap().missing = missing(Reason::BaselineCorrupt);
    let found = judge(&asked(), &run);
    assert_eq!((found.overall, found.unknown_blocks), (Status::Unknown, true));
    // A release is not let through because nobody can tell.
    run.baseline.as_mut().unwrap().missing = missing(Reason::NoBaseline);
    assert!(judge(&asked(), &RunResult { plan: Plan::Release, ..run }).unknown_blocks);
}

#[test]
fn a_mismatch_names_what_differs() {
    let mut run = compared(Vec::new());
    let differs = |field: &str, base: Option<&str>, head: Option<&str>| Difference {
        field: field.to_owned(),
        base: base.map(str::to_owned),
        head: head.map(str::to_owned),
    };
    run.comparison.as_mut().unwrap().mismatches =
        vec![differs("gpu_model", Some("H100"), Some("A100")), differs("driver", Some("570"), None)];
    let found = judge(&asked(), &run);
    let row = found.checks.iter().find(|check| check.id == "baseline").unwrap();
    assert_eq!((row.status, row.reason), (Status::Unknown, Reason::FingerprintMismatch));
    let note = row.note.as_deref().unwrap();
    for part in ["gpu_model was `H100`, is `A100`", "driver was `570`, is not known"] {
        assert!(note.contains(part), "{note}");
    }
}

#[test]
fn a_weakened_contract_has_a_row_that_an_exception_can_cover() {
    let mut run = compared(Vec::new());
    run.comparison.as_mut().unwrap().weakened =
        vec![Weakening { pointer: "/slo/objectives/0/at_most".to_owned(), what: "ttft_p99 from 3s to 4s".to_owned() }];
    let found = judge(&asked(), &run);
    let row = found.checks.iter().find(|check| check.id == "contract_change").unwrap();
    assert_eq!((row.status, row.reason), (Status::Unknown, Reason::ContractWeakened));
    assert_eq!(row.note.as_deref(), Some("ttft_p99 from 3s to 4s"));
    except(&mut run, Acceptance { row: "contract_change".to_owned(), at_most_ppm: None, ..exception() });
    let found = judge(&asked(), &run);
    let row = found.checks.iter().find(|check| check.id == "contract_change").unwrap();
    assert_eq!((row.status, found.overall), (Status::Accepted, Status::Pass), "{row:?}");
}
