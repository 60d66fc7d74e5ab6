//! Baseline records that stores keep, and refusals of stores.

use std::collections::BTreeMap;

use goodput::baseline::{Found, StoreFailure};
use goodput::contract::Plan;
use goodput::judge::Status;
use goodput::record::{BASELINE_SCHEMA, BaselineRecord, Fingerprint, Origin};
use goodput::units::Digest;

/// A record of a contract at a commit; `mark` makes it differ from others of the same two.
pub(crate) fn record(contract: &str, commit: &str, mark: &str) -> BaselineRecord {
    let digest = || Digest::of(mark.as_bytes());
    let record = BaselineRecord {
        schema: BASELINE_SCHEMA.to_owned(),
        digest: digest(),
        tool_version: "0.1.0".to_owned(),
        name: contract.to_owned(),
        started_at: "2026-11-29T02:00:00Z".to_owned(),
        finished_at: "2026-11-29T03:00:00Z".to_owned(),
        plan: Plan::Baseline,
        contract: serde_json::json!({"name": contract}),
        contract_digest: digest(),
        plan_digest: digest(),
        workload_digest: digest(),
        fingerprint: Fingerprint {
            must_match: BTreeMap::from([("cpu".to_owned(), mark.to_owned())]),
            ..Default::default()
        },
        origin: Origin { commit: Some(commit.to_owned()), ..Default::default() },
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
    };
    record.sealed()
}

/// A commit whose name is this digit alone.
pub(crate) fn commit(digit: char) -> String {
    std::iter::repeat_n(digit, 40).collect()
}

/// The records that were found.
pub(crate) fn records(found: Vec<Found>) -> Vec<BaselineRecord> {
    found.into_iter().map(|found| found.record).collect()
}

/// What a user reads when a store cannot be asked: one bounded line.
#[track_caller]
pub(crate) fn unavailable<T: std::fmt::Debug>(answer: Result<T, StoreFailure>) -> String {
    match answer {
        Err(StoreFailure::Unavailable(text)) => bounded(text),
        other => panic!("{other:?}"),
    }
}

/// What a user reads when a record cannot be read.
#[track_caller]
pub(crate) fn corrupt<T: std::fmt::Debug>(answer: Result<T, StoreFailure>) -> String {
    match answer {
        Err(failure @ StoreFailure::Corrupt { .. }) => bounded(failure.to_string()),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn bounded(text: String) -> String {
    assert!(text.chars().count() < 700 && !text.contains('\n'), "{text}");
    text
}
