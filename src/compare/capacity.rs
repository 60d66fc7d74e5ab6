//! The capacity of both sides: by load shift, by whether the load that the margin allows holds, or by the searches of both.

use super::Sides;
use super::change::{believed, decided, limit, open, per_second, percent, unknown};
use super::reference::{Reference, held_together, recorded_otherwise};
use crate::contract::Traffic;
use crate::judge::{Reason, Status};
use crate::record::{BaselineRecord, CapacityRecord, Change, RecordStep, RecordTrial, SeedCapacity};
use crate::stats::{Decision, Estimate, LEAST_RATIO_DEVIATION, RatioLook, mean_interval, t_interval};

/// Schedules that both sides must have searched.
const LEAST_SEARCHES: usize = 3;
/// The level of each bound of a single look.
const ALPHA: f64 = 0.05;
/// The power of 80 % for which the number of trials that would decide is told, as a quantile of the normal distribution.
const POWER_80: f64 = 0.84;
/// The quantile of the normal distribution at 95 %.
const NORMAL_95: f64 = 1.644_853_627;

/// The row of the capacity; `None` in a closed loop, which has none.
pub(super) fn capacity(sides: Sides<'_>) -> Option<Change> {
    if matches!(sides.contract.traffic, Traffic::Closed { .. }) {
        return None;
    }
    // What was measured side by side is compared load by load: nothing is tried at the capacity of the other side.
    let reference =
        Reference::between(sides.contract, sides.base, &sides.head.fingerprint).filter(|_| !sides.is_paired);
    // Who searches for a capacity wants it compared; that nothing is known of the old one is no reason to say nothing.
    let is_searched = sides.contract.evidence.search.is_some() && !sides.is_paired;
    let gates = reference.is_some() || !sides.head.against.is_empty() || is_searched;
    let base = sides.base.capacity.as_ref().and_then(shown);
    let change = Change { base, ..open("capacity", None, sides.rules.margin, gates) };
    let trials = |reference: &Reference| {
        let at = |step: &&RecordStep| step.load == reference.load();
        sides.head.against.iter().find(at).map(|step| step.trials.as_slice()).filter(|trials| !trials.is_empty())
    };
    if let Some((reference, trials)) = reference.as_ref().and_then(|of| Some((of, trials(of)?))) {
        return Some(match reference {
            Reference::Shift { .. } => by_shift(change, reference, trials),
            Reference::Holds { .. } => by_hold(change, sides, reference, trials),
        });
    }
    if let Some(found) = by_searches(sides.base, sides.head) {
        let head = sides.head.capacity.as_ref().and_then(shown);
        return Some(decided(Change { head, ..with_searches(change, sides.base, sides.head) }, &found));
    }
    let why = match (reference, &sides.base.capacity) {
        (Some(reference), _) => format!("no trial was made at {}, by which it is compared", reference.load()),
        (None, None) => "the baseline has no capacity; the plan `baseline` finds one".to_owned(),
        (None, Some(_)) => {
            "the baseline's capacity is not known from both sides on several schedules of the same trials; the plan \
            `baseline` finds such a one"
                .to_owned()
        }
    };
    Some(unknown(change, Reason::NotMeasured, why))
}

/// A capacity for a person.
pub(super) fn shown(capacity: &CapacityRecord) -> Option<String> {
    capacity.point.map(per_second).or_else(|| capacity.holds_at.map(|load| format!("≥ {load}")))
}

fn by_shift(change: Change, reference: &Reference, trials: &[RecordTrial]) -> Change {
    let Reference::Shift { load, seeds, .. } = reference else { return change };
    let change = Change { base_trials: seeds.len() as u32, head_trials: trials.len() as u32, ..change };
    let Some(look) = reference.look(trials, change.margin) else {
        return unknown(change, Reason::TooFewSamples, format!("{} of 3 trials at {load} tell of it", trials.len()));
    };
    let found = Estimate { method: "load shift", ..look.estimate };
    let change = decided(Change { head_trials: look.trials, ..change }, &found);
    let head = change.ratio.map(|ratio| format!("≈ {}", per_second(ratio * load.per_second())));
    let note = (change.reason == Reason::IntervalStraddlesLimit).then(|| would_decide(&look, limit(change.margin)));
    let change = Change { head, note: note.or(change.note.clone()), ..change };
    believed(change, &look, &reference.log_ratios(trials))
}

/// What would decide: `⌈((t(1−α) + 0.84)·sd / |m|)²⌉` trials (method, section 11), where they are as many as a person would make.
pub(super) fn would_decide(look: &RatioLook, limit: f64) -> String {
    let (deviation, distance) = (look.deviation.max(LEAST_RATIO_DEVIATION), look.estimate.point - limit);
    let needed = ((NORMAL_95 + POWER_80) * deviation / distance).powi(2).ceil().max(f64::from(look.trials) + 1.0);
    let spread = percent(look.deviation);
    if needed < 1e3 {
        format!("trials differ by {spread}; about {needed:.0} would decide, or a wider margin, or a quieter machine")
    } else {
        format!("trials differ by {spread}; the change lies too near the margin for any number of trials")
    }
}

fn by_hold(change: Change, sides: Sides<'_>, reference: &Reference, trials: &[RecordTrial]) -> Change {
    let (load, count) = (reference.load(), trials.len() as u32);
    let looks = reference.looks(sides.contract);
    let otherwise = |trial: &RecordTrial| recorded_otherwise(sides.contract, trial);
    let decision = held_together(sides.contract, trials, otherwise);
    let base_trials = sides.base.capacity.as_ref().map_or(0, |capacity| capacity.trials);
    let method = Some("a load that the margin allows".to_owned());
    let change = Change { base_trials, head_trials: count, method, ..change };
    let share = change.margin.rest();
    match decision {
        Decision::Pass if is_underestimated(sides.base) => unknown(
            change,
            Reason::TooFewSamples,
            format!(
                "{load} holds, but the baseline's capacity is more than its search found, as its headrooms there show: longer \
                 trials find it, in a new run of the plan `baseline`"
            ),
        ),
        Decision::Pass => Change {
            head: Some(format!("≥ {load}")),
            status: Status::Pass,
            reason: Reason::Held,
            note: Some(format!(
                "{load} holds, which is {share} of the baseline's capacity; how much more is not known"
            )),
            ..change
        },
        Decision::Fail => Change {
            head: Some(format!("< {load}")),
            status: Status::Fail,
            reason: Reason::Broken,
            significant: true,
            material: true,
            note: Some(format!("{load} does not hold, which is {share} of the baseline's capacity")),
            ..change
        },
        Decision::Undecided if looks.first().is_some_and(|first| count < *first) => {
            unknown(change, Reason::TooFewSamples, format!("{count} trials at {load} decide nothing"))
        }
        Decision::Undecided => {
            unknown(change, Reason::IntervalStraddlesLimit, format!("whether {load} holds is not decided"))
        }
    }
}

/// Whether the baseline's own headrooms at its capacity show that it holds there: the search found too little, as it does where short
/// trials seem to pile up. What is lost between the two would not be seen.
fn is_underestimated(base: &BaselineRecord) -> bool {
    let Some(middle) = base.curve.get(base.curve.len() / 2) else { return false };
    let headrooms: Vec<f64> = middle.trials.iter().filter_map(|trial| trial.headroom).collect();
    headrooms.len() >= LEAST_SEARCHES && mean_interval(&headrooms, ALPHA).is_some_and(|found| found.lower > 0.0)
}

/// The ratio of the capacities that both sides found on the same schedules: a t interval on the logarithms, widened by how wide the
/// brackets are on average. Equal searches end in equal brackets, so that what differs within them is not seen at all.
pub(super) fn by_searches(base: &BaselineRecord, head: &BaselineRecord) -> Option<Estimate> {
    let middle = |of: &SeedCapacity| 0.5 * (of.holds_at.per_second() * of.breaks_at.per_second()).ln();
    let half = |of: &SeedCapacity| 0.5 * (of.breaks_at.per_second() / of.holds_at.per_second()).ln();
    let pairs = pairs(base, head);
    let (old, new) = (base.capacity.as_ref()?, head.capacity.as_ref()?);
    if pairs.len() < LEAST_SEARCHES || old.changed || new.changed || !are_of_equal_runs(old, new) {
        return None;
    }
    let ratios: Vec<f64> = pairs.iter().map(|(base, head)| middle(head) - middle(base)).collect();
    let widths: f64 = pairs.iter().map(|(base, head)| half(head) + half(base)).sum();
    let width = widths / pairs.len() as f64;
    let found = t_interval(&ratios, ALPHA, LEAST_RATIO_DEVIATION)?;
    Some(Estimate { lower: found.lower - width, upper: found.upper + width, method: "paired searches", ..found })
}

/// The row with the numbers of schedules that were searched on both sides.
pub(super) fn with_searches(change: Change, base: &BaselineRecord, head: &BaselineRecord) -> Change {
    let count = pairs(base, head).len() as u32;
    Change { base_trials: count, head_trials: count, ..change }
}

fn pairs<'a>(base: &'a BaselineRecord, head: &'a BaselineRecord) -> Vec<(&'a SeedCapacity, &'a SeedCapacity)> {
    let pair =
        |own: &'a SeedCapacity| head.capacities.iter().find(|other| other.seed == own.seed).map(|other| (own, other));
    base.capacities.iter().filter_map(pair).collect()
}

/// Whether both capacities are those of runs of equal length: short ones flatter.
pub(super) fn are_of_equal_runs(base: &CapacityRecord, head: &CapacityRecord) -> bool {
    base.requests_per_trial == head.requests_per_trial
}
