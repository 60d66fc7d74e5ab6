//! Which trials of a step speak for it.

use super::model::{StepRecord, TrialRecord};

impl TrialRecord {
    /// Whether the load generator spoilt it: then its figures say nothing of the endpoint, good or bad.
    pub fn is_void(&self) -> bool {
        !self.health.faults.is_empty()
    }

    /// Requests of the window that were refused for what they are and not for the load: a wrong key, a wrong model, a wrong path.
    /// With the status that most of them had; `None` unless they are more than half.
    pub fn refused(&self) -> Option<(u64, u16)> {
        const BUSY: [u16; 3] = [408, 425, 429];
        let refusals =
            || self.window.statuses.iter().filter(|(status, _)| (400..500).contains(*status) && !BUSY.contains(status));
        let all: u64 = refusals().map(|(_, count)| count).sum();
        let (status, _) = refusals().max_by_key(|(_, count)| **count)?;
        (2 * u128::from(all) > u128::from(self.window.scheduled)).then_some((all, *status))
    }
}

impl StepRecord {
    /// The trials that its figures are made of; the last of them is the one that is judged.
    pub fn told(&self) -> Vec<&TrialRecord> {
        told(&self.trials, |trial| trial)
    }

    /// The void trials whose schedule no other trial made up for.
    pub fn spoilt(&self) -> Vec<&TrialRecord> {
        let made_up = |seed| self.trials.iter().any(|trial| trial.seed == seed && !trial.is_void());
        self.trials.iter().filter(|trial| trial.is_void() && !made_up(trial.seed)).collect()
    }

    /// The trials by which the load generator is judged: those that speak for the step, and those that it spoilt.
    pub fn generated(&self) -> Vec<&TrialRecord> {
        let mut trials = self.told();
        trials.retain(|trial| !trial.is_void());
        trials.extend(self.spoilt());
        trials
    }
}

/// Of a step's trials all that are evidence and whole, else the last that is evidence, else the last. A void trial is
/// repeated with its own seed, so a later one stands for the same schedule.
pub(super) fn told<T>(trials: &[T], record: impl Fn(&T) -> &TrialRecord) -> Vec<&T> {
    let whole: Vec<&T> = trials.iter().filter(|&trial| !record(trial).is_void() && record(trial).complete).collect();
    if !whole.is_empty() {
        return whole;
    }
    let evidence = trials.iter().rev().find(|&trial| !record(trial).is_void());
    evidence.or(trials.last()).into_iter().collect()
}
