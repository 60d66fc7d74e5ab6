//! Whether a trial under way can still hold.

use super::accumulator::{Standing, WindowRow};
use crate::contract::{Objective, RequestLimits, Slo};
use crate::observe::Outcome;
use crate::record::RequestRecord;
use crate::schedule::Segment;

/// Counts violations while a trial runs. Once an objective has more of them than its budget allows in the whole window, the
/// trial is certain not to hold (method, section 9).
#[derive(Debug, Clone)]
pub struct Hopeless {
    limits: RequestLimits,
    /// Each objective with the violations that it may still have.
    left: Vec<(Objective, Option<u64>)>,
}

impl Hopeless {
    /// For a window of `planned` requests.
    pub fn new(slo: &Slo, planned: u64) -> Self {
        let left = slo.objectives.iter().map(|objective| (*objective, Some(objective.budget().floor_of(planned))));
        Self { limits: slo.request, left: left.collect() }
    }

    /// Takes in one finished request; whether the trial is certain not to hold.
    pub fn push(&mut self, record: &RequestRecord) -> bool {
        // An endpoint that went away is told as such, and not as a load that breaks.
        let lost = matches!(record.outcome, Outcome::ConnectError | Outcome::NoResponse | Outcome::Unsent);
        if record.segment == Segment::Window && !lost {
            let row = WindowRow::new(record);
            for (objective, left) in &mut self.left {
                if row.standing(objective, &self.limits) == Standing::Violation {
                    *left = left.and_then(|left| left.checked_sub(1));
                }
            }
        }
        self.left.iter().any(|(_, left)| left.is_none())
    }
}
