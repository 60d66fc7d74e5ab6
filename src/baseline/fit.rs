//! Whether a record may be compared with at all.

use jiff::{SignedDuration, Timestamp};

use super::git::short;
use crate::contract::Within;
use crate::judge::Status;
use crate::record::{BaselineRecord, Fingerprint, Why};

/// How far the clocks of two machines may differ before a record counts as one from the future.
const SKEW: SignedDuration = SignedDuration::from_mins(5);
/// Events whose runs measure a change that may never be merged.
const OF_A_CHANGE: [&str; 3] = ["pull_request", "pull_request_target", "merge_group"];

/// Why a record may not be a baseline wherever it was measured, completing "it …"; `None` when it may.
pub fn unfit(record: &BaselineRecord) -> Option<String> {
    if let Some(first) = record.invalid.first() {
        return Some(format!("is of a run that is no evidence ({first})"));
    }
    if let Some(row) = record.not_passed.iter().find(|row| row.status == Status::Fail) {
        return Some(format!("is of a run that failed (`{}`), and nobody accepted that", row.id));
    }
    if record.verdict == Status::Fail && !record.not_passed.iter().any(|row| row.status == Status::Accepted) {
        return Some("is of a run that failed, and nobody accepted that".to_owned());
    }
    if record.origin.changed_files == Some(true) {
        return Some("was measured with files changed since its commit".to_owned());
    }
    None
}

/// Why a record may not be the baseline of this run, completing "it …"; `None` when it may.
pub(super) fn unfit_here(
    record: &BaselineRecord,
    contract: &str,
    why: Why,
    age: SignedDuration,
    within: Within,
) -> Option<String> {
    if record.name != contract {
        return Some(format!("is of the contract `{}`", record.name));
    }
    unfit(record).or_else(|| of_a_change(record, why)).or_else(|| wrong_age(age, within))
}

fn of_a_change(record: &BaselineRecord, why: Why) -> Option<String> {
    if matches!(why, Why::ExactBase | Why::Named) {
        return None;
    }
    if let Some(event) = record.origin.event.as_deref().filter(|event| OF_A_CHANGE.contains(event)) {
        return Some(format!("was measured for a change (`{event}`), and is not of the very base"));
    }
    if record.origin.is_default_branch == Some(false) {
        let branch = record.origin.branch.as_deref().unwrap_or("another branch");
        return Some(format!(
            "was measured on `{branch}`, which is not the default branch, and is not of the very base"
        ));
    }
    None
}

fn wrong_age(age: SignedDuration, within: Within) -> Option<String> {
    if age < -SKEW {
        let ahead = age.unsigned_abs().as_secs() / 60;
        return Some(format!("ends {ahead} min after this run began: the machines' clocks differ; set both by NTP"));
    }
    let days = age.as_hours() / 24;
    if days >= i64::from(within.days) {
        return Some(format!("expired: it is {days} days old, and `baseline.within.days` is {}", within.days));
    }
    None
}

/// How old a record is at an instant; negative when it is from the future.
///
/// # Errors
/// When it does not say when its run ended, completing "the baseline …".
pub fn age(record: &BaselineRecord, now: Timestamp) -> Result<SignedDuration, String> {
    Ok(now.duration_since(ended(record)?))
}

/// When the record's run ended.
pub(super) fn ended(record: &BaselineRecord) -> Result<Timestamp, String> {
    let text = &record.finished_at;
    text.parse().map_err(|_| format!("says that its run ended at `{text}`, which is no instant (RFC 3339)"))
}

/// Whether everything that must match and is known on both sides does.
pub(super) fn matches(record: &BaselineRecord, wanted: &Fingerprint) -> bool {
    let known = |key: &String| record.fingerprint.must_match.get(key);
    wanted.must_match.iter().all(|(key, value)| known(key).is_none_or(|found| found == value))
}

/// What a record is of, for people: the commit that was served.
pub(super) fn of(record: &BaselineRecord) -> String {
    match record.origin.commit.as_deref() {
        Some(commit) => format!("the record of {}", short(commit)),
        None => format!("the record {}, which names no commit,", record.digest.short()),
    }
}
