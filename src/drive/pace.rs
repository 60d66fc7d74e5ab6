//! Releases arrivals at their planned instants.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Clock;
use crate::schedule::Schedule;

/// The operating system's sleep is trusted up to here before the instant; the rest is waited out awake.
const AWAKE: Duration = Duration::from_micros(60);

/// The longest sleep without a look at the stop flag.
const NAP: Duration = Duration::from_millis(20);

/// Walks through the schedule on the calling thread and calls `release(index)` at each planned instant. An instant that
/// has passed already is released at once: late, never dropped and never re-anchored. Returns when all are released or
/// `stop` is set.
pub(super) fn pace(
    clock: Clock,
    start_ns: u64,
    schedule: &Schedule,
    stop: &Arc<AtomicBool>,
    mut release: impl FnMut(usize),
) {
    for (index, arrival) in schedule.arrivals().iter().enumerate() {
        let due = clock.instant(start_ns + arrival.offset_ns);
        if !wait_until(due, stop) {
            return;
        }
        release(index);
    }
}

/// Waits for an instant; `false` when stopped before.
fn wait_until(due: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        if left > AWAKE {
            std::thread::sleep((left - AWAKE).min(NAP));
        } else {
            std::hint::spin_loop();
        }
    }
}
