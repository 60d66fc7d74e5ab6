//! How well the load generator itself is doing.

use std::time::{Duration, SystemTime};

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{Clock, Pool};
use crate::record::{HealthRecord, quantiles};

/// The heartbeat's period.
const BEAT: Duration = Duration::from_millis(10);

/// Raises the limit on open files to the highest that is allowed, so that open connections are the endpoint's limit and
/// not ours. Returns the limit in force.
pub fn open_file_limit() -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        return Some(hard);
    }
    Some(soft)
}

/// Lets this thread go before others where that is allowed, so that a busy machine delays requests and their time stamps as
/// little as it can. Where it is not allowed, nothing is lost but that; how late the generator is, it measures anyway.
pub fn raise_priority() {
    const BEFORE_OTHERS: i32 = -10;
    let _ = rustix::process::setpriority_process(None, BEFORE_OTHERS);
}

/// CPU time of this process so far.
fn cpu_time() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let parts = [usage.user_time(), usage.system_time()];
    let micros: i64 = parts.iter().map(|t| t.tv_sec() * 1_000_000 + i64::from(t.tv_usec() as i32)).sum();
    u64::try_from(micros).ok().map(Duration::from_micros)
}

/// Readings taken at a trial's start, for comparison at its end.
pub(super) struct Baseline {
    cpu: Option<Duration>,
    clock_ns: u64,
    wall: SystemTime,
}

impl Baseline {
    pub(super) fn take(clock: Clock) -> Self {
        Self { cpu: cpu_time(), clock_ns: clock.now_ns(), wall: SystemTime::now() }
    }

    /// Fills in what the trial cost and whether the wall clock was stepped in it.
    pub(super) fn compare(&self, clock: Clock, health: &mut HealthRecord) {
        let elapsed_ns = clock.now_ns() - self.clock_ns;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        health.cpu_seconds = cpu_time().zip(self.cpu).map(|(now, then)| (now.saturating_sub(then)).as_secs_f64());
        health.cpu_share = health
            .cpu_seconds
            .filter(|_| elapsed_ns > 0)
            .map(|seconds| seconds / (elapsed_ns as f64 / 1e9) / cores as f64);
        let wall_ns = match SystemTime::now().duration_since(self.wall) {
            Ok(forward) => i64::try_from(forward.as_nanos()).ok(),
            Err(back) => i64::try_from(back.duration().as_nanos()).ok().map(|ns| -ns),
        };
        health.clock_step_ns = wall_ns.zip(i64::try_from(elapsed_ns).ok()).map(|(wall, steady)| wall - steady);
    }
}

/// What the heartbeat saw.
#[derive(Debug, Default)]
pub(super) struct Beats {
    lags_ns: Vec<u64>,
    connections: u64,
}

impl Beats {
    pub(super) fn fill(self, health: &mut HealthRecord) {
        health.runtime_lag = quantiles(self.lags_ns, 0);
        health.connections = Some(self.connections);
    }
}

/// Beats every 10 ms on the runtime that carries the load until `end`, and notes how late each beat was: what is late here
/// is late for the requests too.
pub(super) async fn heartbeat(pool: &Pool, end: CancellationToken) -> Beats {
    let mut beats = Beats::default();
    let mut timer = interval(BEAT);
    timer.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let due = tokio::select! {
            () = end.cancelled() => return beats,
            due = timer.tick() => due,
        };
        beats.lags_ns.push(Instant::now().saturating_duration_since(due).as_nanos() as u64);
        beats.connections = beats.connections.max(pool.open_connections());
    }
}
