//! Samples resources while a trial runs, from a thread of its own.
//!
//! The thread has its own runtime and yields to the driver's threads, so that a source that is slow, floods or hangs costs the
//! trial nothing but its own samples. Readings are planned from the trial's start and never re-anchored: what is late is
//! late, and a reading that would begin before the last one is back is left out and counted.

mod group;
mod reader;
mod ticks;

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::group::{Group, groups};
use self::ticks::Ticks;
use super::Context;
use crate::contract::Resource;
use crate::record::{ResourceSample, SamplingRecord, quantiles};

/// How long a reading under way is still waited for once its trial has ended.
const GRACE: Duration = Duration::from_millis(250);

/// How long the thread may take to answer beyond that. A reading that blocks the thread itself is the only one that needs it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the thread may take to end.
const ENDING: Duration = Duration::from_secs(1);

/// Threads for readings that block, such as those of files: one that hangs for ever keeps one of them.
const BLOCKING_THREADS: usize = 16;

/// The sampler of one run. Dropping it ends its thread and every reading.
#[derive(Debug)]
pub struct Sampler {
    /// Towards the thread; `None` once it was told to end.
    trials: Option<UnboundedSender<Trial>>,
    under_way: Option<UnderWay>,
    /// What is sampled, for a thread that does not answer.
    resources: Vec<Resource>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

/// What was sampled in one trial.
#[derive(Debug, Default)]
pub struct Sampled {
    /// The samples, in the order of their time.
    pub samples: Vec<ResourceSample>,
    /// What they cost.
    pub record: SamplingRecord,
}

/// A trial, for the thread.
#[derive(Debug)]
struct Trial {
    number: u32,
    start: Instant,
    end: Arc<End>,
    answer: oneshot::Sender<Sampled>,
}

/// The trial that is sampled.
#[derive(Debug)]
struct UnderWay {
    number: u32,
    start: Instant,
    end: Arc<End>,
    answer: oneshot::Receiver<Sampled>,
}

/// When a trial ended.
#[derive(Debug, Default)]
struct End {
    at: OnceLock<Instant>,
    told: CancellationToken,
}

impl End {
    fn tell(&self) {
        self.at.get_or_init(Instant::now);
        self.told.cancel();
    }

    /// Resolves when a reading under way is no longer waited for.
    async fn given_up(&self) {
        self.told.cancelled().await;
        tokio::time::sleep(GRACE).await;
    }
}

impl Sampler {
    /// Starts the thread; `None` where there is nothing to sample.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(resources: &[Resource], context: &Context) -> io::Result<Option<Self>> {
        if resources.is_empty() {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("sampler-file")
            .build()?;
        let (trials, receiver) = unbounded_channel();
        let (alive, ended) = channel();
        let (resources, context) = (resources.to_vec(), context.clone());
        std::thread::Builder::new().name("sampler".to_owned()).spawn({
            let resources = resources.clone();
            move || run(runtime, &resources, &context, receiver, alive)
        })?;
        Ok(Some(Self { trials: Some(trials), under_way: None, resources, ended }))
    }

    /// Begins to sample: the trial with this number starts at `start`, from which all readings are planned.
    pub fn begin(&mut self, number: u32, start: Instant) {
        self.stop_trial();
        let end = Arc::new(End::default());
        let (sender, answer) = oneshot::channel();
        let trial = Trial { number, start, end: Arc::clone(&end), answer: sender };
        if let Some(trials) = &self.trials {
            // A thread that is gone answers nothing, which the trial's end tells.
            drop(trials.send(trial));
        }
        self.under_way = Some(UnderWay { number, start, end, answer });
    }

    /// Ends the sampling of the trial and yields what was read. A reading that is still under way is given up a moment later.
    pub async fn end(&mut self) -> Sampled {
        let Some(trial) = self.under_way.take() else { return Sampled::default() };
        trial.end.tell();
        match timeout(GRACE + PATIENCE, trial.answer).await {
            Ok(Ok(sampled)) => sampled,
            Ok(Err(_)) => unanswered(&self.resources, trial.number, trial.start, "the sampling thread ended"),
            Err(_) => {
                unanswered(&self.resources, trial.number, trial.start, "a reading held the sampling thread up for ever")
            }
        }
    }

    fn stop_trial(&mut self) {
        if let Some(trial) = self.under_way.take() {
            trial.end.tell();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop_trial();
        self.trials = None;
        // Waited for, so that no command of a reading outlives the run.
        let _ = self.ended.recv_timeout(ENDING);
    }
}

/// What is told of a trial of which the thread told nothing: every sample was due and none was made.
fn unanswered(resources: &[Resource], trial: u32, start: Instant, why: &str) -> Sampled {
    let over = start.elapsed();
    let missed = |resource: &Resource| {
        let (ticks, name) = (Ticks::every(resource.every), resource.name.clone());
        let missed = move |at_ns| missed_sample(trial, at_ns, &name, why);
        ticks.until(0, over).map(missed).collect::<Vec<_>>()
    };
    let mut samples: Vec<ResourceSample> = resources.iter().flat_map(missed).collect();
    samples.sort_by_key(|sample| sample.at_ns);
    let due = samples.len() as u64;
    Sampled { samples, record: SamplingRecord { due, missed: due, ..SamplingRecord::default() } }
}

/// A sample that was due and not made.
fn missed_sample(trial: u32, at_ns: u64, name: &str, why: &str) -> ResourceSample {
    let failure = Some(why.to_owned());
    ResourceSample { trial, at_ns, name: name.to_owned(), value: None, began_anew: false, failure }
}

/// The thread: samples one trial after the other until nobody is left to tell of another.
fn run(
    runtime: Runtime,
    resources: &[Resource],
    context: &Context,
    mut trials: UnboundedReceiver<Trial>,
    alive: Sender<()>,
) {
    yield_to_others();
    runtime.block_on(async {
        let mut groups = groups(resources, context);
        while let Some(trial) = trials.recv().await {
            let sampled = sample(&mut groups, &trial).await;
            // Nobody waits for a trial whose end was told by dropping the sampler.
            drop(trial.answer.send(sampled));
        }
    });
    // A file that hangs would be waited for otherwise.
    runtime.shutdown_background();
    drop(alive);
}

/// Samples one trial until its end.
async fn sample(groups: &mut [Group], trial: &Trial) -> Sampled {
    let before = thread_cpu_time();
    let logs = join_all(groups.iter_mut().map(|group| group.sample(trial))).await;
    let cpu = thread_cpu_time().zip(before).map(|(now, then)| now.saturating_sub(then));
    let mut sampled = Sampled::default();
    let (mut lags, mut took) = (Vec::new(), Vec::new());
    for log in logs {
        sampled.samples.extend(log.samples);
        sampled.record.due += log.lags_ns.len() as u64 + log.missed;
        sampled.record.missed += log.missed;
        lags.extend(log.lags_ns);
        took.extend(log.took_ns);
    }
    sampled.samples.sort_by_key(|sample| sample.at_ns);
    sampled.record.lag = quantiles(lags, 0);
    sampled.record.took = quantiles(took, 0);
    sampled.record.cpu_seconds = cpu.map(|cpu| cpu.as_secs_f64());
    sampled
}

/// Lets other threads go before this one. It inherits a raised priority from the one that started it, and what it starts
/// inherits its own; to go behind is always allowed, even where the driver may not go before others.
fn yield_to_others() {
    const BEHIND_OTHERS: i32 = 5;
    // Elsewhere the call is about the whole process, the driver included.
    if cfg!(target_os = "linux") {
        let _ = rustix::process::setpriority_process(None, BEHIND_OTHERS);
    }
}

/// CPU time of this thread so far.
fn thread_cpu_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

#[cfg(test)]
mod tests;
