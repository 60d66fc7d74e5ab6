//! One trial: warm-up, window and drain against the endpoint, by a schedule or by a number of clients.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::SetOnce;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::collect::{Collected, Finished, collect};
use super::exchange::{Order, exchange};
use super::health::{Baseline, heartbeat};
use super::pace::pace;
use super::{Clock, Pool, Target};
use crate::contract::RequestLimits;
use crate::endpoint::Secrets;
use crate::observe::{Outcome, ReplyTexts};
use crate::record::{
    HealthRecord, Hopeless, KeptReply, RecordSink, RequestRecord, TrialAccumulator, TrialFacts, grade, quantiles,
};
use crate::schedule::{ConcurrencyPlan, PlannedTrial, Schedule, Segment, TrialShape};
use crate::workload::{CaseOrder, Workload};

/// Time between setting a trial up and its first arrival, so that setting up delays none.
const LEAD: Duration = Duration::from_millis(20);

/// Requests in a row without any answer before the endpoint is asked whether it is still there.
const LOST_IN_A_ROW: u64 = 20;

/// Everything that the trials of a run share.
#[derive(Debug)]
pub struct Lane {
    /// The run's clock.
    pub clock: Clock,
    /// Where requests go.
    pub target: Target,
    /// Open connections.
    pub pool: Pool,
    /// What is sent.
    pub workload: Workload,
    /// What one request must meet to be good.
    pub limits: RequestLimits,
    /// Leads every `x-request-id`.
    pub run_id: String,
    /// How many more full replies each case may keep, by the case's index.
    pub keep: Vec<AtomicU32>,
}

/// A snapshot of a trial under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgressCounts {
    /// Requests released.
    pub released: u64,
    /// Requests with an outcome.
    pub finished: u64,
    /// Of those, `ok`.
    pub ok: u64,
}

/// The live counts of one trial.
#[derive(Debug, Default)]
pub struct Progress {
    released: AtomicU64,
    finished: AtomicU64,
    ok: AtomicU64,
    window_decided: AtomicU64,
    lost_in_a_row: AtomicU64,
    hopeless: AtomicBool,
    /// When it starts, on the run's clock.
    start_ns: SetOnce<u64>,
}

impl Progress {
    /// Resolves once the trial is about to start: with the reading of the run's clock from which all its times count.
    pub async fn start_ns(&self) -> u64 {
        *self.start_ns.wait().await
    }

    /// The counts at this moment.
    pub fn counts(&self) -> ProgressCounts {
        ProgressCounts {
            released: self.released.load(Ordering::Relaxed),
            finished: self.finished.load(Ordering::Relaxed),
            ok: self.ok.load(Ordering::Relaxed),
        }
    }

    /// The trial is certain not to hold.
    pub(super) fn give_up(&self) {
        self.hopeless.store(true, Ordering::Relaxed);
    }

    pub(super) fn finished(&self, record: &RequestRecord) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        self.ok.fetch_add(u64::from(record.outcome == Outcome::Ok), Ordering::Relaxed);
        self.window_decided.fetch_add(u64::from(record.segment == Segment::Window), Ordering::Relaxed);
        match record.outcome {
            Outcome::ConnectError | Outcome::NoResponse => {
                self.lost_in_a_row.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Cancelled => {}
            _ => self.lost_in_a_row.store(0, Ordering::Relaxed),
        }
    }
}

/// What a trial yielded.
#[derive(Debug)]
pub struct TrialRun {
    /// The trial as it was planned and carried out.
    pub facts: TrialFacts,
    /// Its requests, in compact form.
    pub accumulator: TrialAccumulator,
    /// Replies kept in full.
    pub kept: Vec<KeptReply>,
    /// Why records could not be kept.
    pub storage_failure: Option<std::io::Error>,
    /// The endpoint stopped answering, and refused a connection when asked.
    pub endpoint_lost: Option<String>,
}

/// What the parts of one trial share.
struct Scene {
    lane: Arc<Lane>,
    trial: u32,
    start_ns: u64,
    progress: Arc<Progress>,
    cancel: CancellationToken,
}

/// Carries out one trial. Cancelling `cancel` ends it early: open requests end as `cancelled`, and what was measured stays.
/// With `hopeless`, an open-loop trial that is certain not to hold sends no more; what it has sent comes to its end.
pub async fn run_trial<S: RecordSink>(
    lane: &Arc<Lane>,
    planned: &PlannedTrial,
    progress: &Arc<Progress>,
    sink: S,
    cancel: &CancellationToken,
    hopeless: Option<Hopeless>,
) -> (TrialRun, S) {
    let cancel = cancel.child_token();
    let baseline = Baseline::take(lane.clock);
    let scene = Arc::new(Scene {
        lane: Arc::clone(lane),
        trial: planned.trial,
        start_ns: lane.clock.now_ns() + LEAD.as_nanos() as u64,
        progress: Arc::clone(progress),
        cancel: cancel.clone(),
    });
    // One trial has one progress, so nothing was set before.
    drop(progress.start_ns.set(scene.start_ns));
    let (sender, receiver) = unbounded_channel();
    let collector = tokio::task::spawn_blocking({
        let (lane, progress, cancel, mut sink) = (Arc::clone(lane), Arc::clone(progress), cancel.clone(), sink);
        move || (collect(receiver, &mut sink, &lane.keep, &progress, &cancel, hopeless), sink)
    });
    let beat_end = CancellationToken::new();
    let beats = tokio::spawn({
        let (lane, end) = (Arc::clone(lane), beat_end.clone());
        async move { heartbeat(&lane.pool, end).await }
    });
    let watcher = tokio::spawn(watch_endpoint(Arc::clone(&scene)));

    let span = match planned.shape {
        TrialShape::Open { .. } => match planned.schedule() {
            Some(schedule) => open_loop(&scene, planned, Arc::new(schedule), sender).await,
            None => Span::default(),
        },
        TrialShape::Closed(plan) => closed_loop(&scene, planned.seed, plan, sender).await,
    };

    let (collected, sink) = match collector.await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    // Every trial begins without connections, as the first did; and whatever comes next needs files of its own.
    lane.pool.clear();
    beat_end.cancel();
    let interrupted = cancel.is_cancelled();
    cancel.cancel();
    let endpoint_lost = watcher.await.unwrap_or_default();
    let mut health =
        HealthRecord { actual_span_ns: span.actual_ns, planned_span_ns: span.planned_ns, ..HealthRecord::default() };
    baseline.compare(lane.clock, &mut health);
    if let Ok(beats) = beats.await {
        beats.fill(&mut health);
    }
    let Collected { accumulator, dispatch_lags_ns, kept, failure } = collected;
    health.dispatch_lag = quantiles(dispatch_lags_ns, 0);
    let mut facts = facts(planned, health);
    let decided = progress.window_decided.load(Ordering::Relaxed);
    facts.given_up =
        progress.hopeless.load(Ordering::Relaxed) && facts.scheduled_in_window.is_some_and(|n| decided < n);
    facts.complete = !interrupted && !facts.given_up;
    facts.took_ns = lane.clock.now_ns().saturating_sub(scene.start_ns);
    (TrialRun { facts, accumulator, kept, storage_failure: failure, endpoint_lost }, sink)
}

fn facts(planned: &PlannedTrial, health: HealthRecord) -> TrialFacts {
    let (counts, window_ns) = match planned.shape {
        TrialShape::Open { rate, counts, .. } => (Some(counts), crate::schedule::segment_nanos(counts.window, rate)),
        TrialShape::Closed(plan) => (None, plan.window_ns),
    };
    TrialFacts {
        trial: planned.trial,
        seed: planned.seed,
        load: planned.load,
        schedule_digest: planned.schedule_digest(),
        planned: counts,
        window_ns,
        scheduled_in_window: counts.map(|counts| counts.window),
        complete: false,
        given_up: false,
        took_ns: 0,
        resources: Vec::new(),
        unstable: Vec::new(),
        health,
    }
}

/// First to last due instant of the window, as planned and as released.
#[derive(Debug, Default)]
struct Span {
    planned_ns: Option<u64>,
    actual_ns: Option<u64>,
}

/// Releases every arrival of the schedule at its instant, from a thread of its own, whatever becomes of the others.
async fn open_loop(
    scene: &Arc<Scene>,
    planned: &PlannedTrial,
    schedule: Arc<Schedule>,
    sender: UnboundedSender<Finished>,
) -> Span {
    let stop = Arc::new(AtomicBool::new(false));
    let tracker = TaskTracker::new();
    let pacer = {
        let (scene, tracker, stop) = (Arc::clone(scene), tracker.clone(), Arc::clone(&stop));
        let schedule = Arc::clone(&schedule);
        let cases: Vec<usize> =
            CaseOrder::new(scene.lane.workload.cases().len(), planned.seed).take(schedule.arrivals().len()).collect();
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let clock = scene.lane.clock;
            let mut window = (None, None);
            pace(clock, scene.start_ns, &schedule, &stop, |index| {
                let arrival = schedule.arrivals()[index];
                if arrival.segment == Segment::Window {
                    let now = clock.now_ns();
                    window = (window.0.or(Some(now)), Some(now));
                }
                scene.progress.released.fetch_add(1, Ordering::Relaxed);
                let due = Due {
                    index: index as u64,
                    segment: arrival.segment,
                    case: cases[index],
                    offset_ns: arrival.offset_ns,
                };
                let (scene, sender) = (Arc::clone(&scene), sender.clone());
                tracker.spawn_on(async move { drop(sender.send(scene.request(due).await)) }, &runtime);
            });
            window
        })
    };
    let in_window = schedule.arrivals().iter().filter(|a| a.segment == Segment::Window).count() as u64;
    let ender = tokio::spawn(stop_when_decided(Arc::clone(scene), in_window, Arc::clone(&stop)));
    let (first, last) = pacer.await.unwrap_or_default();
    tracker.close();
    tracker.wait().await;
    ender.abort();
    Span { planned_ns: schedule.window_span_ns(), actual_ns: first.zip(last).map(|(first, last)| last - first) }
}

/// The drain's arrivals keep the load on until every request of the window is decided; no longer than that. A trial that is
/// certain not to hold ends at once.
async fn stop_when_decided(scene: Arc<Scene>, in_window: u64, stop: Arc<AtomicBool>) {
    const LOOK: Duration = Duration::from_millis(5);
    let open = || {
        let progress = &scene.progress;
        progress.window_decided.load(Ordering::Relaxed) < in_window && !progress.hopeless.load(Ordering::Relaxed)
    };
    while !scene.cancel.is_cancelled() && open() {
        tokio::select! {
            () = scene.cancel.cancelled() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    stop.store(true, Ordering::Relaxed);
}

/// Runs the clients, each sending its next request as soon as the last one has its outcome.
async fn closed_loop(scene: &Arc<Scene>, seed: u64, plan: ConcurrencyPlan, sender: UnboundedSender<Finished>) -> Span {
    let order = Arc::new(Mutex::new((0u64, CaseOrder::new(scene.lane.workload.cases().len(), seed))));
    let tracker = TaskTracker::new();
    for _ in 0..plan.clients {
        let (scene, order, sender) = (Arc::clone(scene), Arc::clone(&order), sender.clone());
        tracker.spawn(async move {
            tokio::time::sleep_until(tokio::time::Instant::from_std(scene.lane.clock.instant(scene.start_ns))).await;
            while let Some(due) = next_of_client(&scene, &order, &plan) {
                scene.progress.released.fetch_add(1, Ordering::Relaxed);
                let finished = scene.request(due).await;
                let refused = finished.record.outcome == Outcome::ConnectError;
                drop(sender.send(finished));
                if refused {
                    // A refused client tries again, but not as fast as a refusal takes.
                    tokio::time::sleep(AFTER_REFUSAL).await;
                }
            }
        });
    }
    drop(sender);
    tracker.close();
    tracker.wait().await;
    Span::default()
}

/// How long a closed-loop client waits after a refused connection.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

fn next_of_client(scene: &Scene, order: &Mutex<(u64, CaseOrder)>, plan: &ConcurrencyPlan) -> Option<Due> {
    let offset_ns = scene.lane.clock.now_ns().saturating_sub(scene.start_ns);
    if scene.cancel.is_cancelled() || offset_ns >= plan.end_ns() {
        return None;
    }
    let mut order = order.lock().unwrap_or_else(PoisonError::into_inner);
    let case = order.1.next()?;
    let index = order.0;
    order.0 += 1;
    Some(Due { index, segment: plan.segment_at(offset_ns), case, offset_ns })
}

/// One request that is due.
#[derive(Debug, Clone, Copy)]
struct Due {
    index: u64,
    segment: Segment,
    case: usize,
    /// Since the trial's start.
    offset_ns: u64,
}

impl Scene {
    async fn request(&self, due: Due) -> Finished {
        let lane = &self.lane;
        let case = &lane.workload.cases()[due.case];
        let order = Order::of(
            case,
            format!("{}-{}-{}", lane.run_id, self.trial, due.index),
            self.start_ns + due.offset_ns,
            lane.keep.get(due.case).is_some_and(|wanted| wanted.load(Ordering::Relaxed) > 0),
        );
        let mut exchange = exchange(&lane.pool, &lane.target, lane.clock, order, &self.cancel).await;
        let texts = exchange.trace.texts.take().map(|texts| masked(lane.target.secrets(), texts));
        let dispatch_lag_ns = exchange.dispatch_lag_ns;
        let mut record =
            exchange.into_record(self.start_ns, self.trial, due.index, due.segment, &case.id, due.offset_ns);
        grade(&lane.limits, &mut record);
        Finished { record, case: due.case, dispatch_lag_ns, texts }
    }
}

/// Kept texts come from a server that may echo what it was sent.
fn masked(secrets: &Secrets, mut texts: ReplyTexts) -> ReplyTexts {
    let mask = |text: &mut String| *text = secrets.mask(text).into_owned();
    mask(&mut texts.text);
    mask(&mut texts.reasoning);
    mask(&mut texts.refusal);
    texts.by_choice.iter_mut().for_each(mask);
    texts.tool_calls.iter_mut().for_each(|call| {
        mask(&mut call.name);
        mask(&mut call.arguments);
    });
    texts
}

/// Watches for an endpoint that went away: many requests in a row without an answer, and then a refused connection.
/// Ends the trial and says what was seen; returns `None` when the trial ends otherwise.
async fn watch_endpoint(scene: Arc<Scene>) -> Option<String> {
    const LOOK: Duration = Duration::from_millis(200);
    loop {
        tokio::select! {
            () = scene.cancel.cancelled() => return None,
            () = tokio::time::sleep(LOOK) => {}
        }
        let lost = scene.progress.lost_in_a_row.load(Ordering::Relaxed);
        if lost < LOST_IN_A_ROW {
            continue;
        }
        if let Err(refusal) = scene.lane.target.try_connect().await {
            scene.cancel.cancel();
            return Some(format!("{lost} requests in a row had no answer, then: {refusal}"));
        }
        scene.progress.lost_in_a_row.store(0, Ordering::Relaxed);
    }
}
