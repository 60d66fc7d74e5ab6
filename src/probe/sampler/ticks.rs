//! When readings are due: at the trial's start and every period after it.

use std::time::Duration;

/// The plan of one group's readings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    every_ns: u64,
}

impl Ticks {
    /// One at the start, and one every so often.
    pub(super) fn every(period: Duration) -> Self {
        // A period of nothing would be due without end.
        Self { every_ns: nanos(period).max(1) }
    }

    /// When the tick with this number, from 0, is due.
    pub(super) fn due(self, tick: u64) -> Duration {
        Duration::from_nanos(self.due_ns(tick))
    }

    /// The same in nanoseconds since the start.
    pub(super) fn due_ns(self, tick: u64) -> u64 {
        self.every_ns.saturating_mul(tick)
    }

    /// The first tick that is due after an instant.
    pub(super) fn after(self, instant: Duration) -> u64 {
        nanos(instant) / self.every_ns + 1
    }

    /// When the ticks from this one on are due, up to an instant and with it.
    pub(super) fn until(self, first: u64, instant: Duration) -> impl Iterator<Item = u64> {
        (first..self.after(instant)).map(move |tick| self.due_ns(tick))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_counted_from_the_start() {
        let ticks = Ticks::every(Duration::from_millis(250));
        assert_eq!([0, 1, 4].map(|tick| ticks.due(tick)), [0, 250, 1000].map(Duration::from_millis));
        // A reading that is back at the very instant of a tick is too late for it.
        for (at, next) in [(0, 1), (249, 1), (250, 2), (251, 2), (1000, 5)] {
            assert_eq!(ticks.after(Duration::from_millis(at)), next, "{at}");
        }
        let due: Vec<u64> = ticks.until(1, Duration::from_millis(750)).collect();
        assert_eq!(due, [250_000_000, 500_000_000, 750_000_000]);
        assert_eq!(ticks.until(4, Duration::from_millis(750)).count(), 0);
    }
}
