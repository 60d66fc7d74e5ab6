//! The `process` probe: processes of this machine, as Linux lists them under `/proc` (proc(5)).

mod find;
mod pid_file;
mod sockets;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

pub(super) use find::Finder;
use table::{Entry, boot_time, resident_bytes};

use super::{Answer, Context, nameless};
use crate::contract::{ProcessField, ProcessSource};
use crate::record::Series;

/// How long a process that was just forked may hold its parent's sockets before it runs its own program.
const FORKING: Duration = Duration::from_millis(50);

/// How often the CPU times are read again where their sum fell.
const ATTEMPTS: u32 = 3;

/// Processes of this machine.
#[derive(Debug)]
pub(super) struct Process {
    field: ProcessField,
    finder: Finder,
    /// When the machine was booted, read once: the kernel's own answer moves with the clock, and nothing began anew then.
    booted: Option<i64>,
    /// Name and start of every process that was told, by its number and the tick of its start. A process may rename itself.
    known: BTreeMap<(u32, u64), (String, String)>,
    /// The CPU time that was told last, in ticks.
    busy: u64,
}

impl Process {
    pub(super) fn new(source: &ProcessSource, context: &Context) -> Self {
        Self {
            field: source.field,
            finder: Finder::new(&source.of, context),
            booted: None,
            known: BTreeMap::new(),
            busy: 0,
        }
    }

    pub(super) async fn read(&mut self) -> Answer {
        match self.field {
            ProcessField::StartTime => self.start_times().await,
            ProcessField::CpuTime => self.cpu_time().map(nameless),
            ProcessField::Memory => self.memory().map(nameless),
        }
    }

    /// One series per process: its number and name, since when it runs, and 1.
    async fn start_times(&mut self) -> Answer {
        let table = self.finder.table()?;
        let mut asked = self.finder.asked(&table)?;
        if asked.len() > 1 {
            // A child between its fork and its own program holds the sockets of its parent; it is no server and would be
            // missed next time.
            tokio::time::sleep(FORKING).await;
            let later = self.finder.asked(&self.finder.table()?)?;
            let both: BTreeSet<u32> = asked.intersection(&later).copied().collect();
            asked = if both.is_empty() { later } else { both };
        }
        let table = self.finder.table()?;
        Ok(asked.iter().filter_map(|pid| table.get(*pid)).map(|process| self.series(process)).collect())
    }

    fn series(&mut self, process: &Entry) -> Series {
        if self.booted.is_none() {
            self.booted = boot_time(self.finder.proc());
        }
        let booted = self.booted;
        let told = self.known.entry((process.pid, process.started)).or_insert_with(|| {
            let since = instant(booted, process.started);
            (format!("pid {} ({})", process.pid, process.name), since)
        });
        Series { of: told.0.clone(), since: Some(told.1.clone()), value: 1.0 }
    }

    /// CPU time of the processes, of all that they started, and of what of that has ended, in seconds.
    fn cpu_time(&mut self) -> Result<f64, String> {
        let mut busy = 0;
        for _ in 0..ATTEMPTS {
            let table = self.finder.table()?;
            let family = self.finder.family(&table)?;
            busy = family.iter().filter_map(|pid| table.get(*pid)).map(Entry::busy_with_ended).sum::<u64>();
            // What lost its parent is waited for by the supervisor of the launch.
            busy += self.finder.supervisor(&table).map_or(0, |supervisor| supervisor.busy_ended);
            // A child that is waited for between the readings of it and of its parent is in neither: look again.
            if busy >= self.busy {
                break;
            }
        }
        self.busy = busy;
        Ok(busy as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Resident memory of the processes and all that they started, in bytes. What several of them share counts for each.
    fn memory(&mut self) -> Result<f64, String> {
        let table = self.finder.table()?;
        let family = self.finder.family(&table)?;
        let bytes: u64 = family.iter().map(|pid| resident_bytes(self.finder.proc(), *pid)).sum();
        Ok(bytes as f64)
    }
}

/// An instant so many ticks after the boot, to a hundredth of a second; in ticks where it is not known when that was.
fn instant(booted: Option<i64>, ticks: u64) -> String {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let nanoseconds = (ticks % per_second) * (1_000_000_000 / per_second);
    let seconds = booted.and_then(|booted| booted.checked_add_unsigned(ticks / per_second));
    let time = seconds.and_then(|seconds| Timestamp::new(seconds, i32::try_from(nanoseconds).ok()?).ok());
    time.map_or_else(|| format!("tick {ticks} since the boot"), |time| format!("{time:.2}"))
}
