//! The rows about a change since the baseline, and the reviewed exceptions to them.

use super::{Check, Claim, Reason, Status, plain_check};
use crate::contract::Contract;
use crate::record::{Acceptance, BaselineUse, Change, Comparison, Difference, RunResult};
use crate::units::Share;

/// The row that says why nothing is compared.
const BASELINE: &str = "baseline";
/// The row that says where the contract asks for less than the one at the base.
const CONTRACT: &str = "contract_change";
/// How many differences are told in a note: the comparison has them all.
const TOLD: usize = 8;

/// Present where the contract asks for a comparison, or the one at the base does: `baseline`, only when nothing can be compared; one row for each change that
/// gates; `contract_change`, only where the contract was weakened.
pub(super) fn checks(contract: &Contract, result: &RunResult) -> Vec<Check> {
    let Some(used) = &result.baseline else { return Vec::new() };
    let mut rows: Vec<Check> = hindrance(used, result).filter(|_| contract.baseline.is_some()).into_iter().collect();
    if let Some(comparison) = &result.comparison {
        rows.extend(comparison.changes.iter().filter(|change| change.gates).map(row));
        rows.extend(weakened(comparison));
    }
    for row in &mut rows {
        except(row, used, result);
    }
    rows
}

/// Why nothing can be compared.
fn hindrance(used: &BaselineUse, result: &RunResult) -> Option<Check> {
    if let Some(missing) = &used.missing {
        return Some(Check {
            note: Some(missing.note.clone()),
            ..plain_check(BASELINE, Status::Unknown, missing.reason)
        });
    }
    let mismatches = result.comparison.as_ref().map_or(&[][..], |comparison| &comparison.mismatches);
    if mismatches.is_empty() {
        return None;
    }
    let told: Vec<String> = mismatches.iter().take(TOLD).map(difference).collect();
    let more = mismatches.len().saturating_sub(TOLD);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let note = format!("what must match does not: {}{more}", told.join("; "));
    Some(Check { note: Some(note), ..plain_check(BASELINE, Status::Unknown, Reason::FingerprintMismatch) })
}

fn difference(difference: &Difference) -> String {
    let side = |value: &Option<String>| value.as_ref().map_or_else(|| "not known".to_owned(), |v| format!("`{v}`"));
    format!("{} was {}, is {}", difference.field, side(&difference.base), side(&difference.head))
}

/// The row's stable name: `capacity_change`, `goodput_change`, `ttft_p99_change`.
fn id(change: &Change) -> String {
    format!("{}_change", change.metric)
}

fn row(change: &Change) -> Check {
    Check {
        claim: change.interval.map(|_| Claim::TypicalRun),
        method: change.method.clone(),
        limit: Some(format!("≥ -{}", change.margin)),
        observed: change.ratio.map(percent),
        interval: change.interval.map(|[lower, upper]| [percent(lower), percent(upper)]),
        confidence: change.confidence,
        trials: (change.head_trials > 0).then_some(change.head_trials),
        note: change.note.clone(),
        ..plain_check(&id(change), change.status, change.reason)
    }
}

/// A ratio as a change in per cent: `-3.2%`. An end without bound stays so.
pub fn percent(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "∞".to_owned();
    }
    let change = 100.0 * (ratio - 1.0);
    // A loss that rounds to nothing is shown as none, not as minus none.
    let shown = (change * 10.0).round() / 10.0;
    if shown == 0.0 { "0.0%".to_owned() } else { format!("{shown:+.1}%") }
}

fn weakened(comparison: &Comparison) -> Option<Check> {
    let places = &comparison.weakened;
    if places.is_empty() {
        return None;
    }
    let told: Vec<&str> = places.iter().take(TOLD).map(|place| place.what.as_str()).collect();
    let more = places.len().saturating_sub(TOLD);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Some(Check {
        limit: Some("asks for no less".to_owned()),
        observed: Some(format!("{} weakened", places.len())),
        note: Some(format!("{}{more}", told.join("; "))),
        ..plain_check(CONTRACT, Status::Unknown, Reason::ContractWeakened)
    })
}

/// Lets a reviewed exception stand for a row that does not pass, where it covers what was found; where it does not, the row says
/// why.
fn except(row: &mut Check, used: &BaselineUse, result: &RunResult) {
    let is_loss =
        row.status == Status::Fail || matches!(row.reason, Reason::IntervalStraddlesLimit | Reason::ContractWeakened);
    if !is_loss {
        return;
    }
    let named = || used.accepted.iter().filter(|exception| exception.row == row.id);
    let refusals: Vec<Option<String>> = named().map(|one| refusal(one, row, used, result)).collect();
    let found = named().zip(&refusals).find(|(_, refusal)| refusal.is_none()).map(|(one, _)| one);
    let note = |text: String| match &row.note {
        Some(known) => format!("{known}; {text}"),
        None => text,
    };
    if let Some(exception) = found {
        let by = exception.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        let text = format!(
            "accepted{by} until {}: {}; without that it would be {} ({})",
            exception.expires,
            exception.reason,
            row.status.word(),
            row.reason.code()
        );
        row.note = Some(note(text));
        row.status = Status::Accepted;
        row.reason = Reason::Accepted;
    } else if let Some(refusal) = refusals.into_iter().flatten().next() {
        row.note = Some(note(refusal));
    }
}

/// Why an exception does not cover a row; `None` when it does.
fn refusal(exception: &Acceptance, row: &Check, used: &BaselineUse, result: &RunResult) -> Option<String> {
    // Days compare as texts when they are written in the one form that the file may have.
    let today = result.started_at.get(..10).unwrap_or_default();
    if exception.expires.as_str() <= today {
        return Some(format!("the exception for it expired on {}", exception.expires));
    }
    let commit = used.record.as_ref().and_then(|record| record.origin.commit.as_deref());
    if let Some(wanted) = exception.baseline.as_deref()
        && !commit.is_some_and(|commit| commit.starts_with(wanted))
    {
        return Some(format!("the exception for it is about the baseline {wanted}"));
    }
    let change = result.comparison.iter().flat_map(|found| &found.changes).find(|change| id(change) == row.id)?;
    let Some(at_most) = exception.at_most_ppm.and_then(Share::from_ppm) else {
        return Some("the exception for it names no `at_most`".to_owned());
    };
    // What is accepted must be shown, as what passes must.
    let is_covered = change.interval.is_some_and(|[lower, _]| lower > 1.0 - at_most.fraction());
    (!is_covered).then(|| format!("the exception for it covers a loss of at most {at_most}, and it may be more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_shown_as_a_change() {
        for (ratio, shown) in [(1.0, "0.0%"), (0.99996, "0.0%"), (0.968, "-3.2%"), (1.125, "+12.5%"), (0.0, "-100.0%")]
        {
            assert_eq!(percent(ratio), shown);
        }
        assert_eq!(percent(f64::INFINITY), "∞");
    }
}
