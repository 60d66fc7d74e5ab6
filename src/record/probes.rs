//! What was read of the system under test: the readings of a stability row in their order, and a resource against its limit.

use super::model::{ProbeRecord, Reading, ResourceRecord, TrialRecord};
use crate::contract::{ResourceLimit, Statistic};

/// When a reading was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAt {
    /// Before the first trial.
    Before,
    /// Anew before this trial: something else had the machine since the reading before it.
    Anew(u32),
    /// After this trial, with others to follow.
    After(u32),
    /// After the last drain.
    End,
}

impl ProbeRecord {
    /// Every reading in its order.
    pub fn readings(&self) -> impl DoubleEndedIterator<Item = (ReadAt, &Reading)> {
        let before = self.before.iter().map(|reading| (ReadAt::Before, reading));
        let anew = self.anew.iter().map(|anew| (ReadAt::Anew(anew.trial), &anew.reading));
        let between = self.between.iter().map(|between| (ReadAt::After(between.trial), &between.reading));
        let after = self.after.iter().map(|reading| (ReadAt::End, reading));
        let mut around: Vec<(ReadAt, &Reading)> = anew.chain(between).collect();
        around.sort_by_key(|(at, _)| match at {
            ReadAt::Anew(trial) => (*trial, 0),
            ReadAt::After(trial) => (*trial, 1),
            ReadAt::Before | ReadAt::End => (u32::MAX, 2),
        });
        before.chain(around).chain(after)
    }

    /// The readings in stretches that nothing else interrupted: only within one does a change tell of this run.
    pub fn stretches(&self) -> Vec<Vec<(ReadAt, &Reading)>> {
        let mut stretches: Vec<Vec<(ReadAt, &Reading)>> = Vec::new();
        for read in self.readings() {
            match stretches.last_mut() {
                Some(stretch) if !matches!(read.0, ReadAt::Anew(_)) => stretch.push(read),
                _ => stretches.push(vec![read]),
            }
        }
        stretches
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ProbeKind, TrialReading};

    fn reading(value: f64) -> Reading {
        Reading { value: Some(value), failure: None, took_ns: 0, series: Vec::new() }
    }

    #[test]
    fn a_reading_made_anew_begins_a_stretch() {
        let at = |trial, value| TrialReading { trial, reading: reading(value) };
        let record = ProbeRecord {
            name: "row".to_owned(),
            kind: ProbeKind::Counter,
            source: "command".to_owned(),
            automatic: false,
            max_increase: Some(0.0),
            before: Some(reading(1.0)),
            between: vec![at(0, 1.0), at(1, 7.0)],
            anew: vec![at(1, 7.0), at(2, 0.0)],
            after: Some(reading(0.0)),
        };
        let stretches: Vec<Vec<ReadAt>> =
            record.stretches().iter().map(|stretch| stretch.iter().map(|(at, _)| *at).collect()).collect();
        let expected = [
            vec![ReadAt::Before, ReadAt::After(0)],
            vec![ReadAt::Anew(1), ReadAt::After(1)],
            vec![ReadAt::Anew(2), ReadAt::End],
        ];
        assert_eq!(stretches, expected);
    }
}
