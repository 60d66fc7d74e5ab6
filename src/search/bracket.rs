//! The bracketing search on one schedule (method, section 9).

use crate::contract::Search;
use crate::units::{Rate, Share};

/// Trials after which a search is given up.
const MOST_TRIALS: usize = 15;
/// The smallest factor of a step outwards; it is squared from step to step, up to the eighth power (method, section 9).
pub const STEP: f64 = 1.1;

/// What the trials of one schedule have shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bracket {
    range: Search,
    /// What trials at listed loads have shown of the same schedule.
    known: Vec<(Rate, bool)>,
    /// The search's own trials, in the order in which they were made.
    tried: Vec<(Rate, bool)>,
}

/// What a search does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try {
    /// It tries a load.
    Load(Rate),
    /// The bracket is narrow enough.
    Bracketed,
    /// Every load held, up to the highest of the range.
    HoldsThroughout,
    /// No load held, down to the lowest of the range.
    BreaksThroughout,
    /// The most trials were made.
    GivenUp,
}

impl Bracket {
    /// The bracket after trials at listed loads, which narrow it, and the search's own.
    pub fn new(range: Search, known: Vec<(Rate, bool)>, tried: Vec<(Rate, bool)>) -> Self {
        Self { range, known, tried }
    }

    fn all(&self) -> impl Iterator<Item = &(Rate, bool)> + Clone {
        self.known.iter().chain(&self.tried)
    }

    /// The lowest load that did not hold. It is believed, and a load above it that held is not.
    pub fn breaks_at(&self) -> Option<Rate> {
        breaks_at(self.all())
    }

    /// The highest load that held below the lowest that did not.
    pub fn holds_at(&self) -> Option<Rate> {
        let breaks = self.breaks_at();
        self.all()
            .filter(|(load, held)| *held && breaks.is_none_or(|breaks| *load < breaks))
            .map(|(load, _)| *load)
            .max()
    }

    /// Whether a load held above one that did not.
    pub fn is_non_monotone(&self) -> bool {
        let breaks = self.breaks_at();
        self.all().any(|(load, held)| *held && breaks.is_some_and(|breaks| *load > breaks))
    }

    /// What comes next. The first own trial is at `start`, unless that is known already; from there it goes outwards in growing
    /// steps until it has both ends, and then halves what lies between them.
    pub fn next(&self, start: Rate) -> Try {
        let Search { from, to, precision, .. } = self.range;
        let (holds, breaks) = (self.holds_at(), self.breaks_at());
        match (holds, breaks) {
            (Some(holds), _) if holds >= to => return Try::HoldsThroughout,
            (_, Some(breaks)) if breaks <= from => return Try::BreaksThroughout,
            (Some(holds), Some(breaks)) if is_narrow(holds, breaks, precision) => return Try::Bracketed,
            _ if self.tried.len() >= MOST_TRIALS => return Try::GivenUp,
            _ => {}
        }
        let outwards = STEP.powi(1 << self.tried.len().saturating_sub(1).min(3));
        let own_breaks = breaks_at(self.tried.iter());
        let wanted = match (self.tried.iter().any(|(_, held)| *held), own_breaks) {
            (false, None) => start.clamp(from, to),
            (true, None) => holds.map_or(start, |holds| scaled(holds, outwards)).min(to),
            (_, Some(breaks)) => scaled(breaks, 1.0 / outwards).max(from),
        };
        let is_open = breaks.is_none_or(|breaks| wanted < breaks) && holds.is_none_or(|holds| wanted > holds);
        let next = match (holds, breaks) {
            (Some(holds), Some(breaks)) if !is_open || self.has_both_ends() => middle(holds, breaks),
            (Some(holds), None) if !is_open => scaled(holds, outwards),
            (None, Some(breaks)) if !is_open => scaled(breaks, 1.0 / outwards),
            _ => wanted,
        };
        // What a listed load outside the range has shown does not lead out of it.
        Try::Load(next.clamp(from, to))
    }

    /// Whether the search's own trials held and broke.
    fn has_both_ends(&self) -> bool {
        let breaks = breaks_at(self.tried.iter());
        breaks.is_some_and(|breaks| self.tried.iter().any(|(load, held)| *held && *load < breaks))
    }
}

fn breaks_at<'a>(tried: impl Iterator<Item = &'a (Rate, bool)>) -> Option<Rate> {
    tried.filter(|(_, held)| !held).map(|(load, _)| *load).min()
}

/// Whether a bracket is as narrow as was asked for. Two neighbouring thousandths have nothing between them.
fn is_narrow(holds: Rate, breaks: Rate, precision: Share) -> bool {
    let between = middle(holds, breaks);
    breaks.per_second() <= holds.per_second() * (1.0 + precision.fraction()) || between <= holds || between >= breaks
}

/// The geometric middle of two loads.
pub(super) fn middle(low: Rate, high: Rate) -> Rate {
    scaled(low, (high.per_second() / low.per_second()).sqrt())
}

/// A load times a factor, within what can be asked for.
pub(super) fn scaled(load: Rate, factor: f64) -> Rate {
    let milli = (load.milli() as f64 * factor).round().clamp(1.0, Rate::MAX_MILLI as f64);
    Rate::from_milli(milli as u64).unwrap_or(load)
}
