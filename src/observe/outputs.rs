//! When output came: the part of a trace that the latencies are computed from.

use super::limits;
use super::stream::Stamp;
use super::trace::OutputKind;

/// The outputs of a reply so far.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// The first message with output, and its kind.
    pub(super) first: Option<(Stamp, OutputKind)>,
    /// The first message with output other than reasoning.
    pub(super) first_answer: Option<Stamp>,
    /// The last message with output.
    pub(super) last: Option<Stamp>,
    /// Messages with output.
    pub(super) chunks: u32,
    /// Different writes in which they completed.
    pub(super) writes: u32,
    /// Gaps between them in nanoseconds, the first [`limits::GAPS`].
    pub(super) gaps_ns: Vec<u64>,
    /// What the message that is being read holds: the kind that decides, and whether any is no reasoning.
    message: Option<(OutputKind, bool)>,
}

impl Outputs {
    /// The message that is being read holds output of `kind`.
    pub(super) fn note(&mut self, kind: OutputKind) {
        let (first, answer) = self.message.unwrap_or((kind, false));
        self.message = Some((first.min(kind), answer || kind != OutputKind::Reasoning));
    }

    /// The message that was being read is over; it had arrived at `stamp`.
    pub(super) fn end_message(&mut self, stamp: Stamp) {
        let Some((kind, answer)) = self.message.take() else { return };
        self.first.get_or_insert((stamp, kind));
        if answer {
            self.first_answer.get_or_insert(stamp);
        }
        if let Some(last) = self.last
            && self.gaps_ns.len() < limits::GAPS
        {
            self.gaps_ns.push(stamp.at_ns.saturating_sub(last.at_ns));
        }
        if self.last.is_none_or(|last| last.write != stamp.write) {
            self.writes = self.writes.saturating_add(1);
        }
        self.chunks = self.chunks.saturating_add(1);
        self.last = Some(stamp);
    }

    /// All of several outputs completed in one write, or in writes that were read at one instant.
    pub(super) fn coalesced(&self) -> bool {
        let span = self.first.zip(self.last).map(|((first, _), last)| last.at_ns.saturating_sub(first.at_ns));
        self.chunks > 1 && (self.writes == 1 || span == Some(0))
    }
}
