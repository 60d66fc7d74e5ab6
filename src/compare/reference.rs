//! What a run measures to be compared with the capacity of a baseline.

use crate::contract::Contract;
use crate::record::{BaselineUse, Fingerprint, TrialRecord};
use crate::stats::Decision;
use crate::units::{Load, Rate};

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
    pub fn of(_contract: &Contract, _used: &BaselineUse, _fingerprint: Option<&Fingerprint>) -> Option<Self> {
        None
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
            Self::Shift { seeds, .. } => [3, 5, 8].into_iter().filter(|look| *look as usize <= seeds.len()).collect(),
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
    pub fn decision(&self, _contract: &Contract, _trials: &[&TrialRecord]) -> Decision {
        Decision::Undecided
    }
}
