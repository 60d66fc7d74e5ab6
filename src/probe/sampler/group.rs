//! Resources that are read together: one reading answers all of them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::reader::{Reader, are_read_together};
use super::ticks::Ticks;
use super::{Trial, missed_sample};
use crate::contract::{Resource, ResourceKind};
use crate::probe::Context;
use crate::record::{Reading, ResourceSample, Series};

/// Why a sample was left out.
const MISSED: &str = "left out: the reading before was not back yet";

/// Why a sample was given up.
const GIVEN_UP: &str = "was not back when the trial ended";

/// Resources that one reading answers.
#[derive(Debug)]
pub(super) struct Group {
    ticks: Ticks,
    reader: Reader,
    members: Vec<Member>,
}

/// One resource of a group.
#[derive(Debug)]
struct Member {
    resource: Resource,
    /// What was read last, whole.
    last: Option<Reading>,
}

/// What one group did in a trial.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) samples: Vec<ResourceSample>,
    /// How late each reading began.
    pub(super) lags_ns: Vec<u64>,
    /// How long each took that came back.
    pub(super) took_ns: Vec<u64>,
    /// Readings that were left out.
    pub(super) missed: u64,
}

/// Groups the resources, in their order.
pub(super) fn groups(resources: &[Resource], context: &Context) -> Vec<Group> {
    let mut grouped: Vec<(&Resource, Vec<&Resource>)> = Vec::new();
    for resource in resources {
        match grouped.iter_mut().find(|(first, _)| are_read_together(first, resource)) {
            Some((_, others)) => others.push(resource),
            None => grouped.push((resource, Vec::new())),
        }
    }
    let member = |resource: &Resource| Member { resource: resource.clone(), last: None };
    let group = |(first, others): (&Resource, Vec<&Resource>)| Group {
        ticks: Ticks::every(first.every),
        reader: Reader::new(first, &others, context),
        members: std::iter::once(first).chain(others).map(member).collect(),
    };
    grouped.into_iter().map(group).collect()
}

impl Group {
    /// Reads at every tick of the trial, one reading at a time, until the trial has ended.
    pub(super) async fn sample(&mut self, trial: &Trial) -> Log {
        let mut log = Log::default();
        let mut tick = 0;
        while is_due(trial, trial.start + self.ticks.due(tick)).await {
            let begun = trial.start.elapsed();
            log.lags_ns.push(nanos(begun.saturating_sub(self.ticks.due(tick))));
            let readings = tokio::select! {
                biased;
                readings = self.reader.read() => Some(readings),
                () = trial.end.given_up() => None,
            };
            let back = trial.start.elapsed();
            match readings {
                Some(readings) => {
                    log.took_ns.push(nanos(back.saturating_sub(begun)));
                    log.samples.extend(self.take(trial.number, nanos(begun), readings));
                }
                None => log.samples.extend(self.without(trial.number, nanos(begun), GIVEN_UP)),
            }
            // What was due after the trial's end was not due at all.
            let ended = trial.end.at.get().map(|at| at.saturating_duration_since(trial.start));
            for due_ns in self.ticks.until(tick + 1, ended.map_or(back, |ended| ended.min(back))) {
                log.missed += 1;
                log.samples.extend(self.without(trial.number, due_ns, MISSED));
            }
            tick = self.ticks.after(back);
        }
        log
    }

    /// The samples that a reading yields.
    fn take(&mut self, trial: u32, at_ns: u64, readings: Vec<Reading>) -> Vec<ResourceSample> {
        self.members.iter_mut().zip(readings).map(|(member, reading)| member.take(trial, at_ns, reading)).collect()
    }

    /// The samples of a reading that yields none.
    fn without(&self, trial: u32, at_ns: u64, why: &str) -> Vec<ResourceSample> {
        self.members.iter().map(|member| missed_sample(trial, at_ns, &member.resource.name, why)).collect()
    }
}

impl Member {
    /// Whose number there was in the last reading and is not in this one; only of a level, for a count begins anew.
    fn gone(&self, now: &Reading) -> Option<String> {
        let last = self.last.as_ref().filter(|_| self.resource.kind == ResourceKind::Gauge && now.value.is_some())?;
        let is_there = |old: &&Series| now.series.iter().any(|new| new.of == old.of);
        last.series.iter().find(|old| !is_there(old)).map(|old| old.of.clone())
    }

    fn take(&mut self, trial: u32, at_ns: u64, reading: Reading) -> ResourceSample {
        let name = self.resource.name.clone();
        let scaled = reading.value.map(|value| value * self.resource.scale);
        let value = scaled.filter(|value| value.is_finite());
        let failure = match (value, scaled) {
            (Some(_), _) => None,
            (None, Some(_)) => Some(format!("its number is too large for the scale {}", self.resource.scale)),
            (None, None) => Some(reading.failure.clone().unwrap_or_else(|| "it gave no number".to_owned())),
        };
        let mut sample = ResourceSample { trial, at_ns, name, value, began_anew: false, failure };
        if let Some(gone) = self.gone(&reading) {
            // What is left of a level would look like less of it.
            (sample.value, sample.failure) = (None, Some(format!("{gone} is gone")));
            return sample;
        }
        if value.is_some() {
            sample.began_anew = self.resource.kind == ResourceKind::Counter
                && self.last.as_ref().is_some_and(|last| began_anew(last, &reading));
            self.last = Some(reading);
        }
        sample
    }
}

/// Waits until a reading is due; `false` when the trial ends before.
async fn is_due(trial: &Trial, due: Instant) -> bool {
    tokio::select! {
        biased;
        () = trial.end.told.cancelled() => false,
        () = tokio::time::sleep_until(due.into()) => true,
    }
}

/// Whether one of the counts behind a number is gone, began anew or went down. In a sum over several of them, that one of
/// them did may not show.
fn began_anew(before: &Reading, now: &Reading) -> bool {
    let after: HashMap<&str, &Series> = now.series.iter().map(|series| (series.of.as_str(), series)).collect();
    let goes_on =
        |old: &Series| after.get(old.of.as_str()).is_some_and(|new| new.since == old.since && new.value >= old.value);
    let is_less = now.value.zip(before.value).is_some_and(|(now, before)| now < before);
    is_less || !before.series.iter().all(goes_on)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
