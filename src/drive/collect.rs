//! Takes finished requests: writes each to the run's file, counts it, keeps what the summary needs.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::trial::Progress;
use crate::observe::{Outcome, ReplyTexts};
use crate::record::{Hopeless, KeptReply, RecordSink, RequestRecord, TrialAccumulator};
use crate::schedule::Segment;

/// A request that has its outcome.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) record: RequestRecord,
    /// Index of its case.
    pub(super) case: usize,
    pub(super) dispatch_lag_ns: Option<u64>,
    pub(super) texts: Option<ReplyTexts>,
}

/// What a trial left behind.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) accumulator: TrialAccumulator,
    pub(super) dispatch_lags_ns: Vec<u64>,
    pub(super) kept: Vec<KeptReply>,
    pub(super) failure: Option<io::Error>,
}

/// How many more full replies each case may keep, by the case's index. Shared with the senders, so that texts are read only
/// where they are wanted.
pub(super) type Wanted = [AtomicU32];

/// Runs on a thread of its own until all senders are gone. A failing sink ends the trial, but everything is still counted.
pub(super) fn collect<S: RecordSink>(
    mut finished: UnboundedReceiver<Finished>,
    sink: &mut S,
    wanted: &Wanted,
    progress: &Progress,
    cancel: &CancellationToken,
    mut hopeless: Option<Hopeless>,
) -> Collected {
    let mut collected = Collected::default();
    let mut keeper = Keeper::new(wanted);
    while let Some(request) = finished.blocking_recv() {
        let Finished { record, case, dispatch_lag_ns, texts } = request;
        if collected.failure.is_none() {
            let written = sink.record(&record).and_then(|()| if finished.is_empty() { sink.flush() } else { Ok(()) });
            if let Err(error) = written {
                collected.failure = Some(error);
                cancel.cancel();
            }
        }
        if record.segment == Segment::Window {
            collected.dispatch_lags_ns.extend(dispatch_lag_ns);
        }
        if let (Some(texts), Outcome::Ok) = (texts, record.outcome) {
            keeper.keep(case, &record, texts);
        }
        collected.accumulator.push(&record);
        if hopeless.as_mut().is_some_and(|hopeless| hopeless.push(&record)) {
            progress.give_up();
        }
        progress.finished(&record);
    }
    if collected.failure.is_none() {
        collected.failure = sink.flush().err();
    }
    collected.kept = keeper.kept.into_values().flat_map(BTreeMap::into_values).collect();
    collected
}

/// Keeps the first replies of each case in the order of the schedule, though they finish in another.
struct Keeper<'a> {
    wanted: &'a Wanted,
    at_start: Vec<u32>,
    kept: BTreeMap<usize, BTreeMap<u64, KeptReply>>,
}

impl<'a> Keeper<'a> {
    fn new(wanted: &'a Wanted) -> Self {
        let at_start = wanted.iter().map(|w| w.load(Ordering::Relaxed)).collect();
        Self { wanted, at_start, kept: BTreeMap::new() }
    }

    fn keep(&mut self, case: usize, record: &RequestRecord, texts: ReplyTexts) {
        let limit = self.at_start.get(case).copied().unwrap_or(0);
        let replies = self.kept.entry(case).or_default();
        let reply = KeptReply { case: record.case.clone(), trial: record.trial, arrival: record.arrival, texts };
        replies.insert(record.arrival, reply);
        while replies.len() > limit as usize {
            replies.pop_last();
        }
        if let Some(wanted) = self.wanted.get(case) {
            wanted.store(limit - replies.len() as u32, Ordering::Relaxed);
        }
    }
}
