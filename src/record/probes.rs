//! The readings of a stability row in their order.

use super::model::{ProbeRecord, Reading};

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
