//! The bracketing search on one schedule (method, section 9).

use crate::contract::Search;
use crate::units::Rate;

/// Trials after which a search is given up.
const MOST_TRIALS: usize = 15;
/// The smallest factor of a step outwards; it is squared from step to step, up to the eighth power.
const STEP: f64 = 1.1;

/// What the trials of one schedule have shown, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bracket {
    range: Search,
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
    /// The bracket after the given trials; loads outside the range count like any other.
    pub fn new(range: Search, tried: Vec<(Rate, bool)>) -> Self {
        Self { range, tried }
    }

    /// The lowest load that did not hold. It is believed, and a load above it that held is not.
    pub fn breaks_at(&self) -> Option<Rate> {
        self.tried.iter().filter(|(_, held)| !held).map(|(load, _)| *load).min()
    }

    /// The highest load that held below the lowest that did not.
    pub fn holds_at(&self) -> Option<Rate> {
        let breaks = self.breaks_at();
        let held = self.tried.iter().filter(|(load, held)| *held && breaks.is_none_or(|breaks| *load < breaks));
        held.map(|(load, _)| *load).max()
    }

    /// Whether a load held above one that did not.
    pub fn is_non_monotone(&self) -> bool {
        let breaks = self.breaks_at();
        self.tried.iter().any(|(load, held)| *held && breaks.is_some_and(|breaks| *load > breaks))
    }

    /// Whether `load` lies where nothing is known yet.
    pub fn is_open_at(&self, load: Rate) -> bool {
        self.breaks_at().is_none_or(|breaks| load < breaks) && self.holds_at().is_none_or(|holds| load > holds)
    }

    /// What comes next. Without any trial it is `start`.
    pub fn next(&self, start: Rate) -> Try {
        let Search { from, to, precision, .. } = self.range;
        if self.tried.is_empty() {
            return Try::Load(start.clamp(from, to));
        }
        let outwards = STEP.powi(1 << (self.tried.len() - 1).min(3));
        let next = match (self.holds_at(), self.breaks_at()) {
            (Some(holds), None) if holds >= to => return Try::HoldsThroughout,
            (None, Some(breaks)) if breaks <= from => return Try::BreaksThroughout,
            (Some(holds), None) => scaled(holds, outwards).min(to),
            (None, Some(breaks)) => scaled(breaks, 1.0 / outwards).max(from),
            (Some(holds), Some(breaks)) => {
                let narrow = breaks.per_second() <= holds.per_second() * (1.0 + precision.fraction());
                let middle = middle(holds, breaks);
                // Two neighbouring thousandths have nothing between them.
                if narrow || middle <= holds || middle >= breaks {
                    return Try::Bracketed;
                }
                middle
            }
            (None, None) => start.clamp(from, to),
        };
        if self.tried.len() >= MOST_TRIALS { Try::GivenUp } else { Try::Load(next) }
    }
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
