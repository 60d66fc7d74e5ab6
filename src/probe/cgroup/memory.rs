//! The files of one group that tell of its memory.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::super::excerpt::quote;
use crate::contract::CgroupField;

/// The most of a file that is looked at, in bytes.
const LIMIT: u64 = 64 * 1024;

/// The version of the control groups that a folder belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// What a folder is.
///
/// # Errors
/// When it tells of no memory, with the reason.
pub(super) fn version(folder: &Path) -> Result<Version, String> {
    let shown = folder.display();
    let has = |name: &str| folder.join(name).exists();
    if has("memory.oom_control") {
        return Ok(Version::One);
    }
    if has("memory.events") {
        return Ok(Version::Two);
    }
    if let Err(error) = std::fs::metadata(folder) {
        return Err(match error.kind() {
            ErrorKind::NotFound => {
                format!("there is no control group `{shown}`; `cat /proc/PID/cgroup` tells a process's")
            }
            _ => format!("cannot look at the control group `{shown}`: {error}"),
        });
    }
    Err(match (has("cgroup.procs"), has("cgroup.controllers"), has("cgroup.events")) {
        (false, _, _) => format!("`{shown}` is no control group; they are below `/sys/fs/cgroup`"),
        (true, false, _) => format!(
            "the control group `{shown}` is not one of the memory controller; take the one below `/sys/fs/cgroup/memory`"
        ),
        // Only the root has no state of its own.
        (true, true, false) => format!(
            "`{shown}` is the root of the control groups, which counts no memory; run the server in a group of its own, for \
             instance by `systemd-run --scope`"
        ),
        (true, true, true) => format!(
            "the control group `{shown}` has no memory controller; write `+memory` to `cgroup.subtree_control` of the group above"
        ),
    })
}

/// What is asked of a group.
///
/// # Errors
/// When the folder is no group, or its kernel does not tell this.
pub(super) fn value(folder: &Path, field: CgroupField) -> Result<f64, String> {
    match (version(folder)?, field) {
        (Version::One, CgroupField::OomKill) => kills_with_those_below(folder),
        (Version::Two, CgroupField::OomKill) => kills(folder, "memory.events", "Linux 4.13"),
        (Version::One, CgroupField::MemoryPeak) => bytes(folder, "memory.max_usage_in_bytes", "Linux 2.6.25"),
        (Version::Two, CgroupField::MemoryPeak) => bytes(folder, "memory.peak", "Linux 5.19"),
        (Version::One, CgroupField::MemoryUsed) => bytes(folder, "memory.usage_in_bytes", "Linux 2.6.25"),
        (Version::Two, CgroupField::MemoryUsed) => bytes(folder, "memory.current", "Linux 4.5"),
    }
}

/// The most groups below one that are asked.
const MOST_GROUPS: usize = 10_000;

/// Whether a folder is the root of a hierarchy of version 1: only that has a `release_agent`.
pub(super) fn is_root(folder: &Path) -> bool {
    folder.join("release_agent").exists()
}

/// In version 1 a kill counts in the group of the one that was killed alone, so those below are added. Below the root lies the
/// whole machine, of which it says nothing.
fn kills_with_those_below(folder: &Path) -> Result<f64, String> {
    let mut total = kills(folder, "memory.oom_control", "Linux 4.13")?;
    let mut below = if is_root(folder) { Vec::new() } else { folders_in(folder) };
    let mut asked = 0;
    while let Some(group) = below.pop() {
        asked += 1;
        if asked > MOST_GROUPS {
            return Err(format!("more than {MOST_GROUPS} control groups lie below `{}`", folder.display()));
        }
        // One that is removed meanwhile takes its count with it.
        total += kills(&group, "memory.oom_control", "Linux 4.13").unwrap_or_default();
        below.extend(folders_in(&group));
    }
    Ok(total)
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

/// The count behind `oom_kill`. Of the lines around it, `under_oom` is a state and `oom` counts limits that were met.
fn kills(folder: &Path, name: &str, from: &str) -> Result<f64, String> {
    let text = read(folder, name, from)?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("oom_kill "));
    match (lines.next(), lines.next()) {
        (Some(count), None) => number(folder, name, count),
        (None, _) => {
            Err(format!("`{}` has no line `oom_kill`; that is there from {from} on", folder.join(name).display()))
        }
        (Some(_), Some(_)) => Err(format!("`{}` has two lines `oom_kill`", folder.join(name).display())),
    }
}

fn bytes(folder: &Path, name: &str, from: &str) -> Result<f64, String> {
    number(folder, name, &read(folder, name, from)?)
}

fn number(folder: &Path, name: &str, text: &str) -> Result<f64, String> {
    let count = text.trim().parse::<u64>();
    count.map(|count| count as f64).map_err(|_| {
        format!("`{}` holds {} where a number was expected", folder.join(name).display(), quote(text.trim()))
    })
}

fn read(folder: &Path, name: &str, from: &str) -> Result<String, String> {
    let path = folder.join(name);
    let shown = path.display();
    let refuse = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => format!("there is no `{shown}`; it is there from {from} on"),
        ErrorKind::PermissionDenied => format!("may not read `{shown}`; run as a user that may"),
        _ => format!("cannot read `{shown}`: {error}"),
    };
    // To open a pipe would wait for a writer.
    if !std::fs::metadata(&path).map_err(refuse)?.is_file() {
        return Err(format!("`{shown}` is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(&path).and_then(|file| file.take(LIMIT).read_to_end(&mut bytes)).map_err(refuse)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
