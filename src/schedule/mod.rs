//! From an arrival process and a seed to a finite, sorted plan of arrivals (open loop) or a concurrency plan (closed loop).
//!
//! All arithmetic is on integers, so a schedule and its digest are equal on every platform (method, section 3).

mod arrivals;
mod plan;
mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use arrivals::{Arrival, Schedule, open_loop, segment_nanos};
pub use plan::{PlannedTrial, TrialShape};
pub use words::{ARRIVAL_STREAM, CASE_STREAM, Words};

use crate::units::{Digest, DigestBuilder, Rate};

/// The part of a trial that an arrival belongs to. Only the window is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// Brings the endpoint to its steady state.
    WarmUp,
    /// The measured cohort: every request scheduled here counts, however long it takes.
    Window,
    /// Keeps the load on while the window's requests are decided.
    Drain,
}

/// How the instants of an open loop are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalProcess {
    /// Equal gaps; the seed orders the cases only. For comparing two versions.
    Constant,
    /// A Poisson process conditioned on the count of each segment. For stating a capacity.
    Poisson,
}

/// Arrivals in each segment of an open-loop trial: `W`, `N` and `K` of the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialCounts {
    /// Arrivals before the window.
    pub warm_up: u64,
    /// Measured arrivals.
    pub window: u64,
    /// Arrivals that may follow the window.
    pub drain: u64,
}

impl TrialCounts {
    /// `⌈λ·warm_up⌉`, `round(λ·window)` and `⌈λ·drain⌉` at the given rate (method, section 1).
    pub fn at(rate: Rate, warm_up: Duration, window: Duration, drain: Duration) -> Self {
        let expected = |d: Duration| d.as_nanos() * u128::from(rate.milli());
        let unit = 1_000_000_000_000u128;
        Self {
            warm_up: expected(warm_up).div_ceil(unit) as u64,
            window: ((expected(window) + unit / 2) / unit) as u64,
            drain: expected(drain).div_ceil(unit) as u64,
        }
    }

    /// All planned arrivals of the trial.
    pub fn total(self) -> u64 {
        self.warm_up + self.window + self.drain
    }
}

/// A closed-loop trial: a fixed number of clients for a fixed time. It offers no load of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrencyPlan {
    /// Clients that each have at most one request open.
    pub clients: u32,
    /// Length of the warm-up, in nanoseconds.
    pub warm_up_ns: u64,
    /// Length of the measured window, in nanoseconds.
    pub window_ns: u64,
    /// Length of the drain, in nanoseconds, during which the clients go on.
    pub drain_ns: u64,
}

impl ConcurrencyPlan {
    /// The segment that an instant since the trial's start belongs to.
    pub fn segment_at(&self, at_ns: u64) -> Segment {
        if at_ns < self.warm_up_ns {
            Segment::WarmUp
        } else if at_ns < self.warm_up_ns + self.window_ns {
            Segment::Window
        } else {
            Segment::Drain
        }
    }

    /// When the clients stop asking, since the trial's start.
    pub fn end_ns(&self) -> u64 {
        self.warm_up_ns + self.window_ns + self.drain_ns
    }

    /// The digest that names this plan: clients and the three lengths as little-endian words.
    pub fn digest(&self) -> Digest {
        let mut digest = DigestBuilder::default();
        for word in [u64::from(self.clients), self.warm_up_ns, self.window_ns, self.drain_ns] {
            digest.word(word);
        }
        digest.finish()
    }
}
