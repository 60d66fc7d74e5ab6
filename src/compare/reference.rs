//! What a run measures to be compared with the capacity of a baseline.

use super::mismatch::is_planned_alike;
use crate::contract::{Contract, Objective, ResourceLimit};
use crate::judge::Claim;
use crate::record::{BaselineRecord, BaselineUse, Fingerprint, RecordStep, RecordTrial, TrialRecord};
use crate::search::pooled_counts;
use crate::stats::{
    Decision, HeadroomCurve, LEAST_SLOPE, PAIRED_LOOKS, RatioLook, RatioRule, TrialHeadroom, clipped, look_at_headroom,
    mean_slope,
};
use crate::units::{Load, Rate, Share};

/// Whole schedules below which a curve is of no use.
const LEAST_SEEDS: usize = 3;
/// Loads of a whole curve.
const CURVE_LOADS: usize = 5;
/// Schedules of a search below which its capacity is that of single runs, which differ by a tenth and more.
const LEAST_SEARCHES: u32 = 3;

/// What a run measures to be compared with the capacity of a baseline.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// One trial at the baseline's capacity on each schedule of its headroom curve (method, section 10.1).
    Shift {
        /// The baseline's capacity.
        load: Rate,
        /// The schedules' seeds, in the order in which they are tried.
        seeds: Vec<u64>,
        /// Headrooms by seed, each by load ascending, at the loads `loads`.
        headrooms: Vec<Vec<f64>>,
        /// The curve's loads, ascending, in requests per second.
        loads: Vec<f64>,
    },
    /// Whether the load that the margin allows still holds (method, section 10.2).
    Holds {
        /// `(1 − margin)` times the baseline's capacity.
        load: Rate,
    },
}

impl Reference {
    /// The reference of a run; `None` without a baseline, without its capacity, or where the circumstances are others.
    pub fn of(contract: &Contract, used: &BaselineUse, fingerprint: Option<&Fingerprint>) -> Option<Self> {
        let none = Fingerprint::default();
        Self::between(contract, used.record.as_ref()?, fingerprint.unwrap_or(&none))
    }

    /// The same of a record and the circumstances of the run.
    pub(super) fn between(contract: &Contract, base: &BaselineRecord, head: &Fingerprint) -> Option<Self> {
        let margin = contract.baseline.as_ref()?.margin;
        let is_alike = is_planned_alike(contract, base, head);
        is_alike.then(|| Self::shift(base).or_else(|| Self::holds(base, margin)))?
    }

    /// The headroom curve, where it falls steeply enough on at least three whole schedules.
    fn shift(base: &BaselineRecord) -> Option<Self> {
        let [_, _, middle, _, _] = base.curve.as_slice() else { return None };
        let loads: Vec<f64> = base.curve.iter().filter_map(|step| Some(step.load.rate()?.per_second())).collect();
        let headroom = |step: &RecordStep, seed: u64| step.trials.iter().find(|t| t.seed == seed)?.headroom;
        let whole = middle.trials.iter().filter_map(|trial| {
            let of_seed: Option<Vec<f64>> = base.curve.iter().map(|step| headroom(step, trial.seed)).collect();
            Some((trial.seed, of_seed?))
        });
        let (seeds, headrooms): (Vec<u64>, Vec<Vec<f64>>) = whole.unzip();
        let is_usable = loads.len() == CURVE_LOADS && seeds.len() >= LEAST_SEEDS;
        let is_steep = mean_slope(&loads, &headrooms).is_some_and(|slope| slope <= -LEAST_SLOPE);
        let load = middle.load.rate().filter(|_| is_usable && is_steep)?;
        Some(Self::Shift { load, seeds, headrooms, loads })
    }

    /// The load that the margin leaves of a capacity that speaks of typical runs. Where single loads were listed it is the highest that
    /// held: what lies above is not known to have held.
    fn holds(base: &BaselineRecord, margin: Share) -> Option<Self> {
        let capacity = base.capacity.as_ref()?;
        let (holds, _) = capacity.holds_at.and_then(Load::rate).zip(capacity.breaks_at)?;
        let is_typical = capacity.claim == Claim::TypicalRun && !capacity.changed;
        let is_known = is_typical && (capacity.point.is_none() || capacity.seeds >= LEAST_SEARCHES);
        let point = capacity.point.unwrap_or_else(|| holds.per_second());
        let milli = (point * margin.rest().fraction() * 1e3).round();
        Some(Self::Holds { load: Rate::from_milli(milli as u64).filter(|_| is_known)? })
    }

    /// The load of its trials.
    pub fn load(&self) -> Load {
        match self {
            Self::Shift { load, .. } | Self::Holds { load } => Load::RateMilli(*load),
        }
    }

    /// Numbers of trials at which the evidence is looked at.
    pub fn looks(&self, contract: &Contract) -> Vec<u32> {
        match self {
            Self::Shift { seeds, .. } => shift_looks(seeds),
            Self::Holds { .. } => contract.evidence.looks.clone(),
        }
    }

    /// The seed of a trial, by its place.
    pub fn seed(&self, contract: &Contract, place: u32) -> u64 {
        let own = contract.workload.seed.wrapping_add(u64::from(place));
        match self {
            Self::Shift { seeds, .. } => seeds.get(place as usize).copied().unwrap_or(own),
            Self::Holds { .. } => own,
        }
    }

    /// What the trials decide, given whole and not void, one for each seed.
    pub fn decision(&self, contract: &Contract, trials: &[&TrialRecord]) -> Decision {
        let records: Vec<RecordTrial> = trials.iter().map(|trial| RecordTrial::of(trial)).collect();
        match self {
            Self::Shift { .. } => {
                let Some(rules) = &contract.baseline else { return Decision::Undecided };
                self.look(&records, rules.margin).map_or(Decision::Undecided, |look| look.decision)
            }
            Self::Holds { .. } => held_together(contract, &records, |trial| broke_otherwise(contract, trials, trial)),
        }
    }

    /// The look at the ratios of the trials to the baseline that decides, or the last; `None` before the first look, and where only a
    /// load is held.
    pub(super) fn look(&self, trials: &[RecordTrial], margin: Share) -> Option<RatioLook> {
        let Self::Shift { seeds, .. } = self else { return None };
        look_at_shifts(&self.log_ratios(trials), seeds, margin)
    }

    /// The logarithms of the ratios in the schedules' order, up to the first without a trial or its headroom.
    pub(super) fn log_ratios(&self, trials: &[RecordTrial]) -> Vec<f64> {
        let Self::Shift { seeds, .. } = self else { return Vec::new() };
        seeds.iter().map_while(|seed| self.log_ratio(trials, *seed)).collect()
    }

    /// The logarithm of the capacity of the trial of a seed over the baseline's; `None` without such a trial, or its headroom.
    pub(super) fn log_ratio(&self, trials: &[RecordTrial], seed: u64) -> Option<f64> {
        let Self::Shift { load, seeds, headrooms, loads } = self else { return None };
        let headroom = trials.iter().find(|trial| trial.seed == seed)?.headroom?;
        let of_seed = headrooms.get(seeds.iter().position(|own| *own == seed)?)?;
        Some(HeadroomCurve::new(loads, load.per_second(), of_seed)?.log_ratio(headroom))
    }
}

/// The look at shifts that decides, or the last; each is held to three margins, so that one that went wrong does not decide alone.
pub(super) fn look_at_shifts(ratios: &[f64], seeds: &[u64], margin: Share) -> Option<RatioLook> {
    let held: Vec<f64> = ratios.iter().map(|ratio| clipped(*ratio, margin.fraction())).collect();
    RatioRule::new(&shift_looks(seeds), margin.fraction()).look(&held)
}

/// The looks that so many schedules allow.
fn shift_looks(seeds: &[u64]) -> Vec<u32> {
    PAIRED_LOOKS.into_iter().filter(|look| *look as usize <= seeds.len()).collect()
}

/// Whether a trial broke a limit on a resource or became unstable, which ends a capacity in whichever trial it is seen; `None` where
/// that is not known.
fn broke_otherwise(contract: &Contract, trials: &[&TrialRecord], record: &RecordTrial) -> Option<bool> {
    let trial = trials.iter().find(|trial| trial.seed == record.seed)?;
    let limits: &[ResourceLimit] = &contract.slo.resources;
    if !trial.unstable.is_empty() || limits.iter().any(|limit| limit.is_broken_by(trial)) {
        return Some(true);
    }
    limits.iter().all(|limit| limit.is_held_by(trial)).then_some(false)
}

/// What the trials say together of a load (method, section 8), from the figures that a record keeps.
pub(super) fn held_together(
    contract: &Contract,
    trials: &[RecordTrial],
    broke: impl Fn(&RecordTrial) -> Option<bool>,
) -> Decision {
    let looks = &contract.evidence.looks;
    let otherwise: Vec<Option<bool>> = trials.iter().map(broke).collect();
    let mut decisions = Vec::new();
    for objective in &contract.slo.objectives {
        if matches!(objective, Objective::SuccessRate { .. }) {
            let counts: Vec<(u64, u64)> =
                trials.iter().map(|trial| (trial.scheduled, trial.scheduled.saturating_sub(trial.ok))).collect();
            decisions.push(pooled_counts(objective, &counts, looks).map(|found| found.decision));
        }
    }
    if decisions.len() < contract.slo.objectives.len() {
        let headrooms: Option<Vec<TrialHeadroom>> =
            trials.iter().map(|trial| trial.headroom.map(|headroom| headroom_of(contract, trial, headroom))).collect();
        decisions.push(headrooms.and_then(|of| look_at_headroom(&of, looks)).map(|look| look.decision));
    }
    if otherwise.contains(&Some(true)) || decisions.contains(&Some(Decision::Fail)) {
        Decision::Fail
    } else if otherwise.iter().all(Option::is_some) && decisions.iter().all(|found| *found == Some(Decision::Pass)) {
        Decision::Pass
    } else {
        Decision::Undecided
    }
}

/// A record keeps that a trial did not hold, and not why: what met its limits and did not hold is taken for drift.
fn headroom_of(contract: &Contract, trial: &RecordTrial, headroom: f64) -> TrialHeadroom {
    TrialHeadroom { headroom, drifting: met_limits(contract, trial) && trial.held != Some(true) }
}

/// Whether the latencies and the success rate of a trial are within their limits.
fn met_limits(contract: &Contract, trial: &RecordTrial) -> bool {
    let failed = trial.scheduled.saturating_sub(trial.ok);
    let succeeds = |objective: &Objective| {
        !matches!(objective, Objective::SuccessRate { .. }) || failed <= objective.budget().floor_of(trial.scheduled)
    };
    trial.headroom.is_none_or(|headroom| headroom >= 0.0) && contract.slo.objectives.iter().all(succeeds)
}

/// The same of a record, which does not keep it: where something else can end a capacity, a trial that met its limits and did not
/// hold is not understood.
pub(super) fn recorded_otherwise(contract: &Contract, trial: &RecordTrial) -> Option<bool> {
    let is_possible = !contract.slo.resources.is_empty() || !contract.stability.is_empty();
    let is_odd = is_possible && met_limits(contract, trial) && trial.held != Some(true);
    (!is_odd).then_some(false)
}
