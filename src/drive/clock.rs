//! The one steady clock of a run.

use std::time::{Duration, Instant};

/// Nanoseconds since the run began, on the steady clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads 0 now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// The present reading.
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// The instant of a reading, for sleeping.
    pub fn instant(&self, at_ns: u64) -> Instant {
        self.origin + Duration::from_nanos(at_ns)
    }
}
