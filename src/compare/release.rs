//! The slow decline since an anchored release: ten losses that each pass are one that matters.

use super::capacity::{are_of_equal_runs, by_searches, shown, with_searches};
use super::change::{decided, open, unknown};
use super::mismatch::mismatches;
use crate::judge::Reason;
use crate::record::{BaselineRecord, CapacityRecord, Change};
use crate::stats::Estimate;
use crate::units::{Load, Share};

/// The least confidence of both bounds by the ends of the searches alone.
const LEAST_CONFIDENCE: f64 = 0.9;

/// The capacity of the run against that of the release; where the run has none, of what it was compared with. It never gates.
pub(super) fn since_release(
    head: &BaselineRecord,
    base: Option<&BaselineRecord>,
    margin: Share,
    release: &BaselineRecord,
) -> Change {
    let has_capacity = |record: &&BaselineRecord| record.capacity.is_some();
    let now = [Some(head), base].into_iter().flatten().find(has_capacity);
    let change = open("capacity", None, margin, false);
    let Some((now, (old, new))) = now.and_then(|now| Some((now, (release.capacity.as_ref()?, now.capacity.as_ref()?))))
    else {
        return unknown(
            change,
            Reason::NotMeasured,
            "the release has no capacity, or neither this run nor its baseline has",
        );
    };
    let change = Change { base: shown(old), head: shown(new), ..with_searches(change, release, now) };
    if let Some(first) = mismatches(release, now).first() {
        return unknown(change, Reason::FingerprintMismatch, format!("{} is not that of the release", first.field));
    }
    let found = by_searches(release, now).or_else(|| by_ends(old, new));
    let Some(found) = found else {
        return unknown(change, Reason::TooFewSamples, "too few schedules were searched on one side");
    };
    let decided = decided(change, &found);
    let is_own = std::ptr::eq(now, head);
    let note =
        (!is_own).then(|| "this run has no capacity: that of its baseline is held against the release".to_owned());
    Change { note: note.or(decided.note), ..decided }
}

/// Bounds from the ends of both intervals of capacity: each covers with its own confidence, and both together with what is left
/// (method, section 9).
fn by_ends(old: &CapacityRecord, new: &CapacityRecord) -> Option<Estimate> {
    let end = |load: Option<Load>| Some(load?.rate()?.per_second().ln());
    let ends = |of: &CapacityRecord| Some((end(of.holds_at)?, end(of.breaks_at)?));
    let missed = |of: &CapacityRecord| of.confidence_of_end.map(|share: Share| share.rest().fraction());
    let confidence = 1.0 - missed(old)? - missed(new)?;
    let ((old_low, old_high), (new_low, new_high)) = (ends(old)?, ends(new)?);
    let point = (new.point? / old.point?).ln();
    let is_sure = confidence >= LEAST_CONFIDENCE && are_of_equal_runs(old, new) && !old.changed && !new.changed;
    let (lower, upper) = (new_low - old_high, new_high - old_low);
    let method = "ends of the searches";
    is_sure.then_some(Estimate { point, lower, upper, confidence, n: f64::from(new.seeds), method })
}
