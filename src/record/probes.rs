//! What was read of the system under test: the readings of a stability row in their order, and a resource against its limit.

use super::model::{ProbeRecord, Reading, ResourceRecord, TrialRecord};
use crate::contract::{ResourceLimit, Statistic};

/// When a reading was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAt {
    /// Before the first trial.
    Before,
    /// After this trial, with others to follow.
    After(u32),
    /// After the last drain.
    End,
}

impl ProbeRecord {
    /// Every reading in its order.
    pub fn readings(&self) -> impl DoubleEndedIterator<Item = (ReadAt, &Reading)> {
        let before = self.before.iter().map(|reading| (ReadAt::Before, reading));
        let between = self.between.iter().map(|between| (ReadAt::After(between.trial), &between.reading));
        let after = self.after.iter().map(|reading| (ReadAt::End, reading));
        before.chain(between).chain(after)
    }
}

impl ResourceRecord {
    /// One figure of its samples; `None` where there is none.
    pub fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Min => self.min,
            Statistic::Median => self.median,
            Statistic::Max => self.max,
            Statistic::Last => self.last,
            Statistic::Rate => self.rate_per_s,
        }
    }

    /// Whether most of the samples that were due are there, so that what they do not show is unlikely: four of five.
    pub fn is_dense(&self) -> bool {
        self.samples > 0 && u128::from(self.samples) * 5 >= u128::from(self.due) * 4
    }
}

impl ResourceLimit {
    /// What a trial shows of it; `None` where it has no figure.
    pub fn figure(&self, trial: &TrialRecord) -> Option<f64> {
        trial.resources.iter().find(|found| found.name == self.resource)?.statistic(self.statistic)
    }

    /// Whether a trial is shown to be above it. One sample shows that of the largest; any other figure takes a whole window and
    /// enough samples.
    pub fn is_broken_by(&self, trial: &TrialRecord) -> bool {
        let is_shown = self.statistic == Statistic::Max || trial.complete && self.is_densely_sampled(trial);
        is_shown && self.figure(trial).is_some_and(|figure| figure > self.at_most)
    }

    /// Whether a trial is shown to be within it: by enough samples.
    pub fn is_held_by(&self, trial: &TrialRecord) -> bool {
        self.is_densely_sampled(trial) && self.figure(trial).is_some_and(|figure| figure <= self.at_most)
    }

    fn is_densely_sampled(&self, trial: &TrialRecord) -> bool {
        trial.resources.iter().any(|found| found.name == self.resource && found.is_dense())
    }
}
