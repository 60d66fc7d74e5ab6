//! The stability rows: counters that may not rise, what must stay the same, and health checks that must answer. No probe, no
//! PASS: a row passes only where every reading of the run is there and none speaks against it.

use std::collections::BTreeMap;

use super::absence::{Absence, absence};
use super::{Check, Reason, Status, plain_check};
use crate::contract::{Across, Probe, ProcessOf, ProcessSource, Source, StabilityProbe, StabilityRow};
use crate::record::{ProbeRecord, ReadAt, Reading, RunResult, Series};
use crate::search::history;

/// One row per stability row of the contract, in its order. One that came by itself and that this machine cannot answer is no
/// row.
pub(super) fn checks(rows: &[StabilityRow], result: &RunResult) -> Vec<Check> {
    let absent = absence(result);
    let answered = |row: &&StabilityRow| !row.automatic || is_answered(result, &row.name);
    rows.iter().filter(answered).map(|row| check(row, result, &absent)).collect()
}

/// Whether a row that comes by itself was ever answered: this machine can tell. Of one without a record, nothing says that it
/// cannot.
pub(super) fn is_answered(result: &RunResult, name: &str) -> bool {
    let record = result.probes.iter().find(|probe| probe.name == name);
    record.is_none_or(|record| record.readings().any(|(_, reading)| has_number(reading)))
}

/// For each reading but the first, whether a row broke since the last one before it that has a number: then the trial between
/// them did not hold. A reading without a number shows nothing.
pub fn broke(row: &StabilityProbe, readings: &[&Reading]) -> Vec<bool> {
    let mut earlier: Option<&Reading> = None;
    let mut broke = Vec::new();
    for reading in readings {
        let is_read = has_number(reading);
        broke.push(is_read && earlier.is_some_and(|earlier| has_broken(row, earlier, reading)));
        if is_read {
            earlier = Some(reading);
        }
    }
    broke.into_iter().skip(1).collect()
}

fn has_broken(row: &StabilityProbe, earlier: &Reading, later: &Reading) -> bool {
    let changes = || Changes::between(earlier, later, outlives(row));
    match row {
        StabilityProbe::ExitCode { .. } => later.value.is_some_and(is_above_zero),
        StabilityProbe::Counter { across, max_increase, .. } => changes().rise(*across) > *max_increase,
        StabilityProbe::LastCode { .. } => changes().new_code.is_some(),
        StabilityProbe::Unchanged { .. } => changes().is_replaced,
    }
}

/// The rows that broke in each trial, by its number, as the readings around it tell.
pub fn unstable(rows: &[StabilityRow], result: &RunResult) -> BTreeMap<u32, Vec<String>> {
    let last = history(result).last().map(|tried| tried.record.trial);
    let mut unstable: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for row in rows {
        let Some(record) = result.probes.iter().find(|probe| probe.name == row.name) else { continue };
        for stretch in record.stretches() {
            let (at, readings): (Vec<ReadAt>, Vec<&Reading>) = stretch.into_iter().unzip();
            for (at, broke) in at.iter().skip(1).zip(broke(&row.probe, &readings)) {
                let trial = match at {
                    ReadAt::Before | ReadAt::Anew(_) => None,
                    ReadAt::After(trial) => Some(*trial),
                    ReadAt::End => last,
                };
                if let Some(trial) = trial.filter(|_| broke) {
                    unstable.entry(trial).or_default().push(row.name.clone());
                }
            }
        }
    }
    unstable
}

/// Whether a source counts on when what it counts begins anew: an engine counts the restarts of a container, and not the
/// container. Of any other count that began anew, what it shows is no rise.
fn outlives(row: &StabilityProbe) -> bool {
    let source = match row {
        StabilityProbe::Counter { probe, .. } | StabilityProbe::LastCode { probe } => &probe.source,
        StabilityProbe::Unchanged { .. } | StabilityProbe::ExitCode { .. } => return false,
    };
    matches!(source, Source::Docker(_) | Source::Podman(_) | Source::Kubernetes(_))
}

fn check(row: &StabilityRow, result: &RunResult, absent: &Option<Absence>) -> Check {
    let readings = Readings::of(row, result);
    let finding = match &row.probe {
        StabilityProbe::ExitCode { .. } => readings.exit_codes(),
        StabilityProbe::Counter { across, max_increase, .. } => readings.counter(*across, *max_increase),
        StabilityProbe::LastCode { .. } => readings.last_code(),
        StabilityProbe::Unchanged { probe } => readings.unchanged(is_launched(probe)),
    };
    let (status, reason, note) = match finding {
        Finding { status: Status::Pass, .. } if let Some((reason, note)) = readings.missing(absent) => {
            (Status::Unknown, reason, Some(note))
        }
        Finding { status, reason, note } => (status, reason, note),
    };
    let limit = match &row.probe {
        StabilityProbe::ExitCode { .. } => "exit code 0".to_owned(),
        StabilityProbe::Counter { max_increase, .. } => format!("rise ≤ {max_increase}"),
        StabilityProbe::LastCode { .. } => "no new code".to_owned(),
        StabilityProbe::Unchanged { .. } => "the same throughout".to_owned(),
    };
    let observed = readings.observed(&row.probe);
    Check { limit: Some(limit), observed, note, ..plain_check(&row.name, status, reason) }
}

/// Whether a row is about what this run launched. What listens on a port otherwise may be a tunnel to the server.
fn is_launched(probe: &Probe) -> bool {
    matches!(&probe.source, Source::Process(ProcessSource { of: ProcessOf::Endpoint, .. }))
}

/// What the readings that there are say; PASS where they say nothing against the row.
struct Finding {
    status: Status,
    reason: Reason,
    note: Option<String>,
}

impl Finding {
    fn held() -> Self {
        Self { status: Status::Pass, reason: Reason::Held, note: None }
    }

    fn fail(reason: Reason, note: String) -> Self {
        Self { status: Status::Fail, reason, note: Some(note) }
    }

    fn unknown(reason: Reason, note: String) -> Self {
        Self { status: Status::Unknown, reason, note: Some(note) }
    }
}

/// The readings of one row.
struct Readings<'a> {
    record: Option<&'a ProbeRecord>,
    /// Those with a number, in their order.
    read: Vec<(ReadAt, &'a Reading)>,
    /// Whether the source counts on when what it counts begins anew.
    outlives: bool,
    result: &'a RunResult,
}

impl<'a> Readings<'a> {
    fn of(row: &StabilityRow, result: &'a RunResult) -> Self {
        let record = result.probes.iter().find(|probe| probe.name == row.name);
        let read = record.into_iter().flat_map(ProbeRecord::readings).filter(|(_, reading)| has_number(reading));
        Self { record, read: read.collect(), outlives: outlives(&row.probe), result }
    }

    /// What each reading tells since the one before it, where nothing else had the machine between them.
    fn pairs(&self) -> impl Iterator<Item = (ReadAt, Changes)> {
        let stretches = self.record.into_iter().flat_map(ProbeRecord::stretches);
        stretches.flat_map(|mut stretch| {
            stretch.retain(|(_, reading)| has_number(reading));
            let two = stretch.windows(2);
            two.map(|two| (two[1].0, Changes::between(two[0].1, two[1].1, self.outlives))).collect::<Vec<_>>()
        })
    }

    fn counter(&self, across: Across, max_increase: f64) -> Finding {
        let mut rises: BTreeMap<String, f64> = BTreeMap::new();
        let (mut total, mut first_rise, mut reset) = (0.0, None, None);
        for (at, changes) in self.pairs() {
            let rise = changes.rise(across);
            if rise > 0.0 && first_rise.is_none() {
                first_rise = Some((rise, self.when(at)));
            }
            total += rise;
            changes.rises.iter().for_each(|(name, rise)| *rises.entry(name.clone()).or_default() += rise);
            reset = reset.or_else(|| changes.reset.as_ref().map(|what| format!("{what} {}", self.when(at))));
        }
        let worst = match across {
            Across::Max | Across::Each => rises.values().copied().fold(0.0, f64::max),
            Across::Sum => total,
        };
        let rose = first_rise.map(|(rise, when)| match worst > rise {
            true => format!("rose by {worst}, first by {rise} {when}"),
            false => format!("rose by {rise} {when}"),
        });
        match (worst > max_increase, reset) {
            (true, _) => Finding::fail(Reason::CounterRose, rose.unwrap_or_default()),
            (false, Some(reset)) => Finding::unknown(Reason::CounterReset, reset),
            (false, None) => Finding { note: rose.or_else(|| self.blind_spot()), ..Finding::held() },
        }
    }

    /// What a counter that did not rise may have hidden; `None` where a start anew would have been seen.
    fn blind_spot(&self) -> Option<String> {
        let record = self.record.filter(|record| record.source == "prometheus")?;
        let dated = |series: &Series| series.since.is_some();
        let is_dated = record.before.as_ref().is_some_and(|before| before.series.iter().any(dated));
        (!is_dated).then(|| {
            "its page does not say since when it counts: a restart that begins at the same number again is not seen here".to_owned()
        })
    }

    fn last_code(&self) -> Finding {
        let new = self.pairs().find_map(|(at, changes)| Some((at, changes.new_code?)));
        if let Some((at, code)) = new {
            let note = format!("{code} {}; it is the last code and no count, so any change is one", self.when(at));
            return Finding::fail(Reason::CounterRose, note);
        }
        let reset = self.pairs().find_map(|(at, changes)| Some((at, changes.reset?)));
        if let Some((at, what)) = reset {
            return Finding::unknown(Reason::CounterReset, format!("{what} {}", self.when(at)));
        }
        match self.read.first().and_then(|(_, before)| before.value).filter(|code| is_above_zero(*code)) {
            Some(code) => Finding::unknown(
                Reason::NotMeasured,
                format!(
                    "it showed {code} before the load, so that a repeat would not be seen; clear it, or watch what counts instead, \
                     as `kernel_log` does"
                ),
            ),
            None => Finding::held(),
        }
    }

    fn unchanged(&self, is_ours: bool) -> Finding {
        let mut partly = None;
        for (at, changes) in self.pairs() {
            let Some(what) = &changes.reset else { continue };
            let told = format!("{what} {}", self.when(at));
            if changes.is_replaced && is_ours {
                return Finding::fail(Reason::Restarted, told);
            }
            partly = partly.or(Some(told));
        }
        partly.map_or_else(Finding::held, |told| Finding::unknown(Reason::CounterReset, told))
    }

    fn exit_codes(&self) -> Finding {
        let broken = self.read.iter().find(|(_, reading)| reading.value.is_some_and(is_above_zero));
        match broken {
            Some((at, reading)) => {
                let code = reading.value.unwrap_or_default();
                Finding::fail(Reason::Unhealthy, format!("exit code {code} {}", after(*at)))
            }
            None => Finding::held(),
        }
    }

    /// During which trial something happened that a reading shows and the one before it did not.
    fn when(&self, at: ReadAt) -> String {
        let tried = history(self.result);
        let between = self.record.map_or(0, |record| record.between.len());
        let trial = match at {
            ReadAt::Before | ReadAt::Anew(_) => None,
            ReadAt::After(number) => tried.iter().find(|tried| tried.record.trial == number),
            ReadAt::End => tried.last().filter(|_| tried.len() == between + 1),
        };
        trial.map_or("while the load ran".to_owned(), |tried| {
            format!("in trial {}, at {}", tried.record.trial, tried.load)
        })
    }

    /// Why the readings do not let the row pass, however little they say against it.
    fn missing(&self, absent: &Option<Absence>) -> Option<(Reason, String)> {
        let absent = absent.as_ref().map(|absent| (absent.reason, absent.note.clone()));
        let Some(record) = self.record else {
            return absent.or_else(|| Some((Reason::NoProbe, "no probe answers for this row".to_owned())));
        };
        let failed = record.readings().find_map(|(at, reading)| {
            (!has_number(reading)).then(|| {
                let why = reading.failure.as_deref().unwrap_or("it gave no number");
                format!("failed {}: {why}", after(at))
            })
        });
        if let Some(note) = failed {
            return Some((Reason::ProbeFailed, note));
        }
        let unread = match (&record.before, &record.after) {
            (Some(_), Some(_)) => return None,
            (None, _) => "was not read before the load",
            (_, None) => "was not read after the load",
        };
        Some(absent.unwrap_or_else(|| (Reason::NotMeasured, unread.to_owned())))
    }

    /// The readings before and after, and the difference.
    fn observed(&self, probe: &StabilityProbe) -> Option<String> {
        let record = self.record?;
        let show = |reading: &Option<Reading>| match (reading, probe) {
            (Some(reading), StabilityProbe::Unchanged { .. }) if has_number(reading) => owners(reading),
            (Some(reading), _) if has_number(reading) => reading.value.unwrap_or_default().to_string(),
            _ => "–".to_owned(),
        };
        let (before, after) = (show(&record.before), show(&record.after));
        let values = |reading: &Option<Reading>| reading.as_ref().and_then(|reading| reading.value);
        Some(match probe {
            StabilityProbe::ExitCode { .. } => {
                let between = record.between.iter().map(|between| &between.reading);
                let broken = between.filter(|reading| reading.value.is_some_and(is_above_zero)).find_map(|r| r.value);
                match broken {
                    Some(code) => format!("exit code {before} → {code} → {after}"),
                    None => format!("exit code {before} → {after}"),
                }
            }
            StabilityProbe::Unchanged { .. } if before == after => before,
            StabilityProbe::Unchanged { .. } | StabilityProbe::LastCode { .. } => format!("{before} → {after}"),
            StabilityProbe::Counter { .. } => match values(&record.before).zip(values(&record.after)) {
                // A counter that went down began anew: by how much it rose in between is not known.
                Some((from, to)) if to >= from => format!("{before} → {after} ({:+})", to - from),
                _ => format!("{before} → {after}"),
            },
        })
    }
}

/// What two readings of one probe, one after the other, tell.
struct Changes {
    /// By how much each series rose.
    rises: BTreeMap<String, f64>,
    /// What began anew or is gone, the first such thing.
    reset: Option<String>,
    /// A code that was not there before.
    new_code: Option<String>,
    /// Nothing of what there was is left.
    is_replaced: bool,
}

impl Changes {
    fn between(earlier: &Reading, later: &Reading, outlives: bool) -> Self {
        let (before, after) = (series(earlier), series(later));
        let mut changes = Self { rises: BTreeMap::new(), reset: None, new_code: None, is_replaced: !before.is_empty() };
        for old in &before {
            let new = after.iter().find(|new| new.of == old.of);
            let what = match new {
                None => Some(format!("{} is gone", owner(old))),
                Some(new) if new.since != old.since => Some(began_anew(new)),
                Some(new) if new.value < old.value => {
                    Some(format!("{} went down from {} to {}", owner(old), old.value, new.value))
                }
                Some(_) => None,
            };
            changes.is_replaced &= new.is_none_or(|new| new.since != old.since);
            changes.reset = changes.reset.or(what);
        }
        let is_one_gone = before.iter().any(|old| !after.iter().any(|new| new.of == old.of));
        for new in &after {
            let old = before.iter().find(|old| old.of == new.of);
            let begins_anew = old.is_some_and(|old| old.since != new.since) && !outlives;
            // A series that was not there before began at 0, unless it stands for one that is gone under another name.
            let is_known = !begins_anew && (old.is_some() || !is_one_gone);
            let was = old.map_or(0.0, |old| old.value);
            changes.rises.insert(new.of.clone(), if is_known { (new.value - was).max(0.0) } else { 0.0 });
            let is_new_code = is_known && is_above_zero(new.value) && (new.value - was).abs() > 0.0;
            changes.new_code =
                changes.new_code.or_else(|| is_new_code.then(|| format!("{} shows code {}", owner(new), new.value)));
        }
        changes
    }

    fn rise(&self, across: Across) -> f64 {
        match across {
            Across::Sum => self.rises.values().sum(),
            Across::Max | Across::Each => self.rises.values().copied().fold(0.0, f64::max),
        }
    }
}

/// The series of a reading with a number; of a source that knows one number without a name, that.
fn series(reading: &Reading) -> Vec<Series> {
    match reading.value {
        Some(value) if reading.series.is_empty() => vec![Series { of: String::new(), since: None, value }],
        _ => reading.series.clone(),
    }
}

fn has_number(reading: &Reading) -> bool {
    reading.value.is_some_and(f64::is_finite)
}

fn is_above_zero(value: f64) -> bool {
    value.abs() > 0.0
}

fn owner(series: &Series) -> String {
    if series.of.is_empty() { "it".to_owned() } else { series.of.clone() }
}

fn began_anew(new: &Series) -> String {
    match &new.since {
        Some(since) => format!("{} began anew ({since})", owner(new)),
        None => format!("{} began anew", owner(new)),
    }
}

/// Whose the numbers of a reading are, shortly.
fn owners(reading: &Reading) -> String {
    const SHOWN: usize = 3;
    let names: Vec<String> = series(reading).iter().take(SHOWN).map(owner).collect();
    let more = reading.series.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// When a reading was made, for a text.
fn after(at: ReadAt) -> String {
    match at {
        ReadAt::Before => "before the load".to_owned(),
        ReadAt::Anew(trial) => format!("anew before trial {trial}"),
        ReadAt::After(trial) => format!("after trial {trial}"),
        ReadAt::End => "after the load".to_owned(),
    }
}
