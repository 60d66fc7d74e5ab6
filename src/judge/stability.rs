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

/// Whether a row that comes by itself was answered at first: this machine can tell.
pub(super) fn is_answered(result: &RunResult, name: &str) -> bool {
    let record = result.probes.iter().find(|probe| probe.name == name);
    record.and_then(|record| record.before.as_ref()).is_some_and(|before| before.value.is_some())
}

/// Whether a row broke between two readings: then the trial between them did not hold.
pub fn has_broken(row: &StabilityProbe, earlier: &Reading, later: &Reading) -> bool {
    match row {
        StabilityProbe::ExitCode { .. } => later.value.is_some_and(is_above_zero),
        StabilityProbe::Counter { across, max_increase, .. } => {
            let changes = Changes::between(earlier, later);
            changes.rise(*across) > *max_increase
        }
        StabilityProbe::LastCode { .. } => Changes::between(earlier, later).new_code.is_some(),
        StabilityProbe::Unchanged { .. } => Changes::between(earlier, later).is_replaced,
    }
}

fn check(row: &StabilityRow, result: &RunResult, absent: &Option<Absence>) -> Check {
    let readings = Readings::of(&row.name, result);
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
    result: &'a RunResult,
}

impl<'a> Readings<'a> {
    fn of(name: &str, result: &'a RunResult) -> Self {
        let record = result.probes.iter().find(|probe| probe.name == name);
        let read = record.into_iter().flat_map(ProbeRecord::readings).filter(|(_, reading)| has_number(reading));
        Self { record, read: read.collect(), result }
    }

    fn pairs(&self) -> impl Iterator<Item = (ReadAt, Changes)> {
        self.read.windows(2).map(|two| (two[1].0, Changes::between(two[0].1, two[1].1)))
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
            Across::Each => rises.values().copied().fold(0.0, f64::max),
            Across::Sum | Across::Max => total,
        };
        let rose = first_rise.map(|(rise, when)| match total > rise {
            true => format!("rose by {total}, first by {rise} {when}"),
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
        for (at, changes) in self.pairs() {
            if let Some(code) = &changes.new_code {
                let note = format!("{code} {}; it is the last code and no count, so any change is one", self.when(at));
                return Finding::fail(Reason::CounterRose, note);
            }
            if let Some(what) = &changes.reset {
                return Finding::unknown(Reason::CounterReset, format!("{what} {}", self.when(at)));
            }
        }
        match self.read.first().and_then(|(_, before)| before.value).filter(|code| is_above_zero(*code)) {
            Some(code) => Finding::unknown(
                Reason::NotMeasured,
                format!(
                    "the last code was {code} before the load, so that a repeat would not be seen; clear it, or count the lines of \
                     the kernel's log with `kernel_log`"
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
            ReadAt::Before => None,
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
    /// By how much the largest of them rose.
    rise_of_largest: f64,
    /// What began anew or is gone, the first such thing.
    reset: Option<String>,
    /// A code that was not there before.
    new_code: Option<String>,
    /// Nothing of what there was is left.
    is_replaced: bool,
}

impl Changes {
    fn between(earlier: &Reading, later: &Reading) -> Self {
        let (before, after) = (series(earlier), series(later));
        let mut changes = Self {
            rises: BTreeMap::new(),
            rise_of_largest: largest(&after) - largest(&before),
            reset: None,
            new_code: None,
            is_replaced: !before.is_empty(),
        };
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
        for new in &after {
            // A series that was not there before began at 0.
            let old = before.iter().find(|old| old.of == new.of).map_or(0.0, |old| old.value);
            changes.rises.insert(new.of.clone(), (new.value - old).max(0.0));
            let is_new_code = is_above_zero(new.value) && (new.value - old).abs() > 0.0;
            changes.new_code =
                changes.new_code.or_else(|| is_new_code.then(|| format!("{} shows code {}", owner(new), new.value)));
        }
        changes
    }

    fn rise(&self, across: Across) -> f64 {
        match across {
            Across::Sum => self.rises.values().sum(),
            Across::Max => self.rise_of_largest.max(0.0),
            Across::Each => self.rises.values().copied().fold(0.0, f64::max),
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

fn largest(series: &[Series]) -> f64 {
    series.iter().map(|series| series.value).reduce(f64::max).unwrap_or_default()
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
        ReadAt::After(trial) => format!("after trial {trial}"),
        ReadAt::End => "after the load".to_owned(),
    }
}
