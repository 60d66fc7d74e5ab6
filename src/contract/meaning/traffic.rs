//! How requests are sent: loads, and the shape of a trial as counts (open loop) or times (closed loop).

use std::collections::BTreeSet;
use std::time::Duration;

use super::{LONGEST, Meaning};
use crate::contract::model::Traffic;
use crate::contract::raw::{self, TrafficModel};
use crate::contract::schema::MOST_REQUESTS;
use crate::schedule::{ArrivalProcess, TrialCounts, segment_nanos};
use crate::units::{Load, Rate, format_duration};

const LOADS: &str = "/traffic/loads";
const CONCURRENCY: &str = "/traffic/concurrency";
pub(super) const WINDOW: &str = "/traffic/trial/window";
pub(super) const REQUESTS: &str = "/traffic/trial/requests";
const WARM_UP: &str = "/traffic/trial/warm_up";
const DRAIN: &str = "/traffic/trial/drain";

/// The written lengths of a trial; those that are absent take their default.
#[derive(Debug, Clone, Copy)]
struct Lengths {
    warm_up: Option<Duration>,
    window: Option<Duration>,
    drain: Duration,
}

impl Meaning<'_> {
    /// `drain` is the length of the drain when none is written; `limit` the largest latency limit, which it must reach.
    pub(super) fn traffic(
        &mut self,
        written: &raw::Traffic,
        at: Option<Load>,
        drain: Option<Duration>,
        limit: Option<Duration>,
    ) -> Option<Traffic> {
        let model = written.model;
        let loads = self.loads(written, model);
        let clients = self.clients(written, model);
        let trial = written.trial.as_ref()?;
        self.one_window(trial, model);
        let lengths = self.lengths(trial, drain, limit);
        match (model?, at?) {
            (TrafficModel::Closed, Load::Clients(at)) => {
                let (lengths, window) = (lengths?, lengths?.window?);
                let clients: BTreeSet<u32> = clients?.into_iter().chain([at]).collect();
                Some(Traffic::Closed {
                    clients: clients.into_iter().collect(),
                    warm_up: lengths.warm_up.unwrap_or(window / 5),
                    window,
                    drain: lengths.drain,
                })
            }
            (model, Load::RateMilli(at)) => {
                let process = match model {
                    TrafficModel::Constant => ArrivalProcess::Constant,
                    TrafficModel::Poisson => ArrivalProcess::Poisson,
                    TrafficModel::Closed => return None,
                };
                let loads: BTreeSet<Rate> = loads?.into_iter().chain([at]).collect();
                let loads: Vec<Rate> = loads.into_iter().collect();
                let counts = self.counts(trial, at, lengths?)?;
                self.bounded(trial, counts, &loads)?;
                Some(Traffic::Open { process, loads, counts })
            }
            // The wrong kind of load is told where it is written.
            (_, Load::Clients(_)) => None,
        }
    }

    /// The written rates of an open loop, none when none is written; `None` when one is wrong.
    fn loads(&mut self, written: &raw::Traffic, model: Option<TrafficModel>) -> Option<Vec<Rate>> {
        if model == Some(TrafficModel::Closed) && self.is_written(written.loads.as_ref(), LOADS) {
            self.fault_at_key(LOADS, "a closed loop has numbers of clients, not rates; write `concurrency: [1, 2, 4]`");
            return None;
        }
        if self.refused.contains(LOADS) {
            return None;
        }
        let texts = written.loads.as_deref().unwrap_or_default();
        let rates: Vec<Option<Rate>> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| self.rate(text.as_ref(), &format!("{LOADS}/{index}")))
            .collect();
        self.each_once(&rates, LOADS).then_some(())?;
        rates.into_iter().collect()
    }

    /// The written numbers of clients of a closed loop.
    fn clients(&mut self, written: &raw::Traffic, model: Option<TrafficModel>) -> Option<Vec<u32>> {
        let open = matches!(model, Some(TrafficModel::Constant | TrafficModel::Poisson));
        if open && self.is_written(written.concurrency.as_ref(), CONCURRENCY) {
            self.fault_at_key(
                CONCURRENCY,
                "an open loop has rates, not numbers of clients; write `loads: [2/s, 4/s]`, or `model: closed`",
            );
            return None;
        }
        if self.refused.contains(CONCURRENCY) {
            return None;
        }
        let numbers = written.concurrency.as_deref().unwrap_or_default();
        let clients: Vec<Option<u32>> =
            numbers.iter().map(|number| number.and_then(|number| u32::try_from(number.0).ok())).collect();
        self.each_once(&clients, CONCURRENCY).then_some(())?;
        clients.into_iter().collect()
    }

    fn each_once<T: Ord + Copy>(&mut self, values: &[Option<T>], pointer: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut once = true;
        for (index, value) in values.iter().enumerate() {
            if value.is_some_and(|value| !seen.insert(value)) {
                self.fault(&format!("{pointer}/{index}"), "listed twice; every load is measured once");
                once = false;
            }
        }
        once
    }

    /// Exactly one of `window` and `requests`; a closed loop cannot promise a count.
    fn one_window(&mut self, trial: &raw::Trial, model: Option<TrafficModel>) {
        let window = self.is_written(trial.window.as_ref(), WINDOW);
        let requests = self.is_written(trial.requests.as_ref(), REQUESTS);
        if model == Some(TrafficModel::Closed) && requests {
            let message = "a closed loop sends as fast as replies end, so its window is a time and not a count; write `window: 60s`";
            self.fault_at_key(REQUESTS, message);
        } else if window && requests {
            self.fault_at_key(
                REQUESTS,
                "write only one of `window` and `requests`: each gives the number of measured requests",
            );
        } else if !window && !requests {
            self.fault(
                "/traffic/trial",
                "write one of `window` (a time, as in `window: 60s`) and `requests` (a count)",
            );
        }
    }

    fn lengths(&mut self, trial: &raw::Trial, drain: Option<Duration>, limit: Option<Duration>) -> Option<Lengths> {
        let window = self.limit(trial.window.as_ref(), WINDOW);
        let warm_up = self.duration(trial.warm_up.as_ref(), WARM_UP);
        let written = self.duration(trial.drain.as_ref(), DRAIN);
        if let (Some(written), Some(limit)) = (written, limit.filter(|limit| written.is_some_and(|w| w < *limit))) {
            let message = format!(
                "{} is shorter than the largest latency limit of {}: late requests of the window would end on an idle endpoint; write at least the limit",
                format_duration(written),
                format_duration(limit)
            );
            self.fault(DRAIN, message);
        }
        let complete = self.is_written(trial.window.as_ref(), WINDOW) == window.is_some()
            && self.is_written(trial.warm_up.as_ref(), WARM_UP) == warm_up.is_some()
            && self.is_written(trial.drain.as_ref(), DRAIN) == written.is_some();
        let drain = written.or(drain)?;
        complete.then_some(Lengths { warm_up, window, drain })
    }

    /// The counts of every trial, from the lengths at the load that must hold (method, section 1).
    fn counts(&mut self, trial: &raw::Trial, at: Rate, lengths: Lengths) -> Option<TrialCounts> {
        let window = lengths.window.unwrap_or_default();
        let mut counts = TrialCounts::at(at, lengths.warm_up.unwrap_or(window / 5), window, lengths.drain);
        if let Some(requests) = trial.requests {
            counts.window = requests.0;
            if lengths.warm_up.is_none() {
                counts.warm_up = requests.0.div_ceil(5);
            }
        } else if self.refused.contains(REQUESTS) || lengths.window.is_none() {
            return None;
        }
        if counts.window == 0 {
            let message = format!("no request falls into a window of {} at {at}; lengthen it", format_duration(window));
            self.fault(WINDOW, message);
            return None;
        }
        Some(counts)
    }

    /// Refuses plans that nobody can wait for or keep.
    fn bounded(&mut self, trial: &raw::Trial, counts: TrialCounts, loads: &[Rate]) -> Option<()> {
        let pointer = if trial.requests.is_some() { REQUESTS } else { WINDOW };
        let total = counts.warm_up.saturating_add(counts.window).saturating_add(counts.drain);
        if total > MOST_REQUESTS {
            let message = format!(
                "one trial would send {total} requests ({} to warm up, {} measured, {} to drain); {MOST_REQUESTS} are the most, so shorten it",
                counts.warm_up, counts.window, counts.drain
            );
            self.fault(pointer, message);
            return None;
        }
        let slowest = loads.first().copied()?;
        let time = Duration::from_nanos(segment_nanos(total, slowest));
        if time > LONGEST {
            let message = format!(
                "{total} requests at {slowest} take {}, longer than a week; every load sends as many as `at_load`, so remove slow loads or shorten the trial",
                format_duration(Duration::from_secs(time.as_secs()))
            );
            self.fault(pointer, message);
            return None;
        }
        Some(())
    }
}
