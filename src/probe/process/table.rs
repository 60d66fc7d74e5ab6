//! The processes of this machine at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What `/proc` lists at one moment; processes that start or end meanwhile may or may not be in it.
#[derive(Debug)]
pub(in crate::probe) struct Table(BTreeMap<u32, Entry>);

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: u32,
    /// Its name as it has it now, escaped.
    pub(super) name: String,
    /// It has ended and only waits for its parent to ask how.
    pub(super) has_ended: bool,
    pub(super) parent: u32,
    pub(super) group: u32,
    /// When it was started, in ticks since the boot.
    pub(super) started: u64,
    /// CPU time of it, in ticks.
    pub(super) busy: u64,
    /// CPU time of its children that ended and that it waited for, and of theirs, in ticks.
    pub(super) busy_ended: u64,
}

impl Entry {
    pub(super) fn busy_with_ended(&self) -> u64 {
        self.busy.saturating_add(self.busy_ended)
    }
}

impl Table {
    /// Reads a `/proc`.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn read(proc: &Path) -> Result<Self, String> {
        let entries = std::fs::read_dir(proc)
            .map_err(|error| format!("cannot list the processes in `{}`, as Linux does: {error}", proc.display()))?;
        let mut processes = BTreeMap::new();
        for entry in entries.flatten() {
            if !entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            // A process that ends while it is read is none.
            let stat = std::fs::read(entry.path().join("stat")).ok();
            if let Some(process) = stat.and_then(|stat| parse(&String::from_utf8_lossy(&stat))) {
                processes.insert(process.pid, process);
            }
        }
        if processes.is_empty() {
            return Err(format!("`{}` lists no processes; it is there on Linux, once it is mounted", proc.display()));
        }
        Ok(Self(processes))
    }

    pub(super) fn get(&self, pid: u32) -> Option<&Entry> {
        self.0.get(&pid)
    }

    /// All processes, by their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.values()
    }

    /// Processes with all that they started and whose parents still run.
    pub(super) fn with_descendants(&self, processes: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for process in self.iter() {
            children.entry(process.parent).or_default().push(process.pid);
        }
        let mut found = BTreeSet::new();
        let mut open: Vec<u32> = processes.into_iter().filter(|pid| self.0.contains_key(pid)).collect();
        while let Some(pid) = open.pop() {
            if found.insert(pid) {
                open.extend(children.get(&pid).into_iter().flatten());
            }
        }
        found
    }
}

/// Reads `/proc/PID/stat`. The name is in parentheses and may hold any character, parentheses and blanks too; nothing behind
/// it holds one.
fn parse(stat: &str) -> Option<Entry> {
    let (pid, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The manual counts from 1, and the number and the name come before.
    let field = |number: usize| fields.get(number - 3).copied();
    let count = |number: usize| field(number)?.parse::<i64>().ok().map(|count| u64::try_from(count).unwrap_or(0));
    Some(Entry {
        pid: pid.parse().ok()?,
        name: name.escape_debug().to_string(),
        has_ended: matches!(field(3)?, "Z" | "X" | "x"),
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        started: field(22)?.parse().ok()?,
        busy: count(14)?.saturating_add(count(15)?),
        busy_ended: count(16)?.saturating_add(count(17)?),
    })
}

/// Resident memory of a process, in bytes; 0 when it has none any more. `stat` tells a number too, which lags behind.
pub(super) fn resident_bytes(proc: &Path, pid: u32) -> u64 {
    let status = std::fs::read(proc.join(pid.to_string()).join("status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    line.and_then(|kibibytes| kibibytes.parse::<u64>().ok()).map_or(0, |kibibytes| kibibytes.saturating_mul(1024))
}

/// When the machine was booted, in seconds since 1970; from `/proc/stat`.
pub(super) fn boot_time(proc: &Path) -> Option<i64> {
    let stat = std::fs::read_to_string(proc.join("stat")).ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line in the order of proc_pid_stat(5), with the name given.
    fn line(name: &str) -> String {
        format!(
            "4242 ({name}) S 17 4200 4200 0 -1 4194560 900 80 7 6 1500 250 -1 40 20 0 12 0 3642679 9000000 412 \
             18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
        )
    }

    #[test]
    fn fields_are_those_of_the_manual_whatever_the_name_holds() {
        for name in ["python3", "a b", "a) R 1 1 1 (b", "(sd-pam)", "", "über"] {
            let entry = parse(&line(name)).expect(name);
            let expected = Entry {
                pid: 4242,
                name: name.to_owned(),
                has_ended: false,
                parent: 17,
                group: 4200,
                started: 3_642_679,
                busy: 1750,
                // The kernel writes these two as signed numbers.
                busy_ended: 40,
            };
            assert_eq!(entry, expected, "{name}");
        }
        assert_eq!(parse(&line("a\nb")).expect("a name").name, "a\\nb");
        assert!(parse(&line("sh").replace(") S", ") Z")).expect("a zombie").has_ended);
    }

    #[test]
    fn a_torn_line_is_no_process() {
        let whole = line("sh");
        for text in ["", "4242", "4242 (sh", "4242 (sh) S 17 4200", "x (sh) S", &whole[..60]] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
