//! When readings are due: once in every period, at a place that wanders through it. Arrivals may be spaced evenly, and
//! readings spaced evenly too would meet them always at the same moment of their lives, and show a level that hardly ever is.

use std::time::Duration;

/// The plan of one group's readings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    every_ns: u64,
}

impl Ticks {
    /// One at the start, and one in every period after it.
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
        // Multiples of the golden ratio, without their whole part, fill the period evenly however many there are.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let place = (u128::from(self.every_ns) * u128::from(tick.wrapping_mul(GOLDEN))) >> 64;
        self.every_ns.saturating_mul(tick).saturating_add(place as u64)
    }

    /// The first tick that is due after an instant.
    pub(super) fn after(self, instant: Duration) -> u64 {
        let period = nanos(instant) / self.every_ns;
        if self.due_ns(period) > nanos(instant) { period } else { period + 1 }
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
    fn every_period_has_one_tick_at_a_place_that_wanders() {
        let ticks = Ticks::every(Duration::from_millis(250));
        // 250 ms · (k + frac(0.618… k)).
        let due: Vec<u64> = ticks.until(0, Duration::from_millis(1_250)).map(|at| at / 1_000_000).collect();
        assert_eq!(due, [0, 404, 559, 963, 1_118]);
        assert_eq!(ticks.due(3), Duration::from_nanos(ticks.due_ns(3)));
        for tick in 0..1_000 {
            let at = ticks.due(tick);
            assert!(at >= Duration::from_millis(250 * tick) && at < Duration::from_millis(250 * (tick + 1)), "{tick}");
            // A reading that is back at the very instant of a tick is too late for it.
            assert_eq!(ticks.after(at), tick + 1);
            assert_eq!(ticks.after(at + Duration::from_nanos(1)), tick + 1);
            assert_eq!(
                ticks.after(at.saturating_sub(Duration::from_nanos(1))),
                tick.max(u64::from(tick == 0)),
                "{tick}"
            );
        }
        // In a hundred ticks every tenth of the period has its tenth, give or take one.
        let mut tenths = [0; 10];
        (0..100).for_each(|tick| tenths[(ticks.due_ns(tick) % 250_000_000 / 25_000_000) as usize] += 1);
        assert!(tenths.iter().all(|count| (8..=12).contains(count)), "{tenths:?}");
        assert_eq!(ticks.until(4, Duration::from_millis(750)).count(), 0);
    }
}
