//! All trials of a run, in the order they are made.

use std::time::Duration;

use super::{ArrivalProcess, ConcurrencyPlan, Schedule, TrialCounts, open_loop};
use crate::units::{Digest, Load, Rate};

/// One planned trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedTrial {
    /// The trial's number in the run, from 0.
    pub trial: u32,
    /// The seed of its schedule and of its case order.
    pub seed: u64,
    /// What is asked of the endpoint.
    pub load: Load,
    /// How it is asked.
    pub shape: TrialShape,
}

/// How a trial asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialShape {
    /// By a schedule.
    Open {
        /// The arrival process.
        process: ArrivalProcess,
        /// The rate of arrivals.
        rate: Rate,
        /// Arrivals by segment.
        counts: TrialCounts,
    },
    /// By a number of clients.
    Closed(ConcurrencyPlan),
}

impl PlannedTrial {
    /// The schedule of an open-loop trial.
    pub fn schedule(&self) -> Option<Schedule> {
        match self.shape {
            TrialShape::Open { process, rate, counts } => Some(open_loop(process, rate, counts, self.seed)),
            TrialShape::Closed(_) => None,
        }
    }

    /// The digest of the schedule or of the concurrency plan.
    pub fn schedule_digest(&self) -> Digest {
        match self.shape {
            TrialShape::Open { .. } => self.schedule().map_or_else(|| Digest::of(&[]), |s| s.digest().clone()),
            TrialShape::Closed(plan) => plan.digest(),
        }
    }

    /// How long the trial offers load; replies may take longer.
    pub fn load_time(&self) -> Duration {
        match self.shape {
            TrialShape::Open { rate, counts, .. } => Duration::from_nanos(super::segment_nanos(counts.total(), rate)),
            TrialShape::Closed(plan) => Duration::from_nanos(plan.end_ns()),
        }
    }
}
