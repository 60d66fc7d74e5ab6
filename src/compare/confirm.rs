//! A suspected loss, confirmed side by side: what the machine does to both endpoints cancels.

use super::change::{believed, decided, open, per_second, unknown};
use super::reference::{Reference, look_at_shifts};
use crate::judge::Reason;
use crate::record::{Change, RecordTrial};
use crate::stats::Estimate;
use crate::units::Share;

/// The capacity of trials of the changed endpoint against trials of the one without the change, made in turn at the capacity of the
/// stored baseline on the same schedules: of each pair the difference of both shifts along the stored curve.
///
/// UNKNOWN where no curve is stored, and with fewer pairs than the first look needs.
pub fn confirm(reference: &Reference, base: &[RecordTrial], head: &[RecordTrial], margin: Share) -> Change {
    let change = open("capacity", None, margin, true);
    let Reference::Shift { load, seeds, .. } = reference else {
        return unknown(
            change,
            Reason::NotMeasured,
            "a loss can be confirmed only where the baseline has a headroom curve",
        );
    };
    let ratios = log_ratios(reference, base, head);
    let pairs = ratios.len() as u32;
    let change = Change { base_trials: pairs, head_trials: pairs, ..change };
    let Some(look) = look_at_shifts(&ratios, seeds, margin) else {
        return unknown(change, Reason::TooFewSamples, format!("{pairs} of 3 pairs of trials at {load} tell of it"));
    };
    let change = Change { base_trials: look.trials, head_trials: look.trials, ..change };
    let change = decided(change, &Estimate { method: "paired load shift", ..look.estimate });
    let head = change.ratio.map(|ratio| format!("≈ {}", per_second(ratio * load.per_second())));
    believed(Change { base: Some(per_second(load.per_second())), head, ..change }, &look, &ratios)
}

/// Of each schedule, in the reference's order, the logarithm of the head's capacity over the base's, up to the first without a pair.
pub(super) fn log_ratios(reference: &Reference, base: &[RecordTrial], head: &[RecordTrial]) -> Vec<f64> {
    let Reference::Shift { seeds, .. } = reference else { return Vec::new() };
    let of_seed = |seed: &u64| Some(reference.log_ratio(head, *seed)? - reference.log_ratio(base, *seed)?);
    seeds.iter().map_while(of_seed).collect()
}

/// The row that was confirmed, with what the comparison with the stored baseline had said.
pub(super) fn in_place_of(stored: &Change, confirmed: Change) -> Change {
    let ratio = stored.ratio.map_or_else(String::new, |ratio| format!(" ({ratio:.3})"));
    let said = format!("against the stored baseline it was {}{ratio}", stored.status.word());
    let note = confirmed.note.map_or_else(|| said.clone(), |note| format!("{note}; {said}"));
    Change { gates: stored.gates, note: Some(note), ..confirmed }
}
