//! The process whose number a file holds.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::super::excerpt::quote;
use super::table::{Table, boot_time};

/// The most of the file that is looked at, in bytes.
const LIMIT: u64 = 4096;

/// By how much the time of the boot may be off: it is told in seconds and moves with the clock.
const CLOCK_ERROR: Duration = Duration::from_secs(10);

/// The number in the first line of the file, once the process runs and began before the file was written: else the number
/// was given to another one since.
///
/// # Errors
/// When there is no such file, no number in it, or no such process.
pub(super) fn process(file: &Path, proc: &Path, table: &Table) -> Result<u32, String> {
    let shown = file.display();
    let pid = read(file)?;
    let running = table.get(pid).filter(|process| !process.has_ended).ok_or_else(|| {
        format!(
            "the process {pid}, which the pid file `{shown}` names, does not run; remove the file where it is stale"
        )
    })?;
    let ticks = running.started / rustix::param::clock_ticks_per_second().max(1);
    let started = boot_time(proc)
        .and_then(|booted| booted.checked_add_unsigned(ticks))
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let written = std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    match written.zip(started) {
        Some((written, started)) if written + CLOCK_ERROR < started => Err(format!(
            "the pid file `{shown}` is older than the process {pid} ({}), which it can not have meant; remove the file where \
             it is stale",
            running.name
        )),
        _ => Ok(pid),
    }
}

fn read(file: &Path) -> Result<u32, String> {
    let shown = file.display();
    let refuse = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => format!("there is no pid file `{shown}`; does the server write one there?"),
        _ => format!("cannot read the pid file `{shown}`: {error}"),
    };
    // To open a pipe would wait for a writer.
    if !std::fs::metadata(file).map_err(refuse)?.is_file() {
        return Err(format!("the pid file `{shown}` is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(file).map_err(refuse)?.take(LIMIT).read_to_end(&mut bytes).map_err(refuse)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or_default().trim();
    line.parse::<u32>().ok().filter(|pid| *pid > 0).ok_or_else(|| {
        format!("the pid file `{shown}` holds {} where the number of a process was expected", quote(line))
    })
}
