//! Runs one short command to its end: bounded in time, in output, and in what it leaves behind.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::endpoint::OF_THE_JOB;

/// How long output may still come once the command and its group are gone. Only a process that left the group can hold
/// the pipe open that long; what the command itself wrote is read without any waiting.
const DRAIN: Duration = Duration::from_millis(500);

/// Where in an output the kept part lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    First,
    Last,
}

/// The kept part of what a command writes; the rest is read and forgotten, so that the command does not block.
#[derive(Debug)]
pub(super) struct Capture {
    keep: Keep,
    limit: usize,
    /// The kept part, at most `limit` bytes once the reading is done.
    bytes: Vec<u8>,
    /// Whether something was forgotten.
    cut: bool,
}

impl Capture {
    /// Keeps the first `limit` bytes.
    pub(super) fn first(limit: usize) -> Self {
        Self { keep: Keep::First, limit, bytes: Vec::new(), cut: false }
    }

    /// Keeps the last `limit` bytes.
    pub(super) fn last(limit: usize) -> Self {
        Self { keep: Keep::Last, limit, bytes: Vec::new(), cut: false }
    }

    /// The kept part as text; `None` when it is no UTF-8.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    /// The kept part as text, with replacement characters.
    pub(super) fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Whether there was more than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Reads to the end. Can be dropped at any time: what was read by then is kept.
    async fn fill(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut block = vec![0; 8 * 1024];
        while let Ok(read @ 1..) = pipe.read(&mut block).await {
            self.add(&block[..read]);
        }
    }

    fn add(&mut self, new: &[u8]) {
        match self.keep {
            Keep::First => {
                let room = self.limit - self.bytes.len();
                self.cut |= new.len() > room;
                self.bytes.extend_from_slice(&new[..new.len().min(room)]);
            }
            Keep::Last => {
                self.bytes.extend_from_slice(new);
                let excess = self.bytes.len().saturating_sub(self.limit);
                self.cut |= excess > 0;
                self.bytes.drain(..excess);
            }
        }
    }
}

/// Why a command has no exit status.
#[derive(Debug)]
pub(super) enum RunError {
    /// It could not be started.
    Start(io::Error),
    /// It took too long and was killed.
    TimedOut,
    /// The system lost it.
    Wait(io::Error),
}

/// The process group of a command, killed when this goes out of scope: after its end, at its timeout, and when the caller
/// gives up. Probes are to leave nothing running that disturbs the measurement.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = killpg(pid, Signal::SIGKILL);
        }
    }
}

/// Runs `command` in `folder`, in a process group of its own and without input, and reads both its outputs.
///
/// # Errors
/// When it cannot be started, or has not ended within `within`: then its whole group is killed.
pub(super) async fn run(
    command: &[String],
    folder: &Path,
    within: Duration,
    stdout: &mut Capture,
    stderr: &mut Capture,
) -> Result<ExitStatus, RunError> {
    run_with(command, &[], folder, within, stdout, stderr).await
}

/// The same, with variables added to the environment.
///
/// # Errors
/// Likewise.
pub(super) async fn run_with(
    command: &[String],
    environment: &[(String, String)],
    folder: &Path,
    within: Duration,
    stdout: &mut Capture,
    stderr: &mut Capture,
) -> Result<ExitStatus, RunError> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| RunError::Start(io::ErrorKind::InvalidInput.into()))?;
    let mut command = Command::new(program);
    for name in OF_THE_JOB {
        command.env_remove(name);
    }
    let mut child = command
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(RunError::Start)?;
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
    let result = timeout(within, finish(&mut child, group, stdout, stderr)).await;
    if result.is_err() {
        // The group is killed already; this takes its leader out of the process table.
        let _ = timeout(DRAIN, child.wait()).await;
    }
    result.map_err(|_| RunError::TimedOut)?.map_err(RunError::Wait)
}

async fn finish(child: &mut Child, group: Group, stdout: &mut Capture, stderr: &mut Capture) -> io::Result<ExitStatus> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let mut reading = std::pin::pin!(async { tokio::join!(stdout.fill(out), stderr.fill(err)) });
    let mut read = false;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            _ = &mut reading, if !read => read = true,
        }
    };
    // A child left in the background would hold the pipes open.
    drop(group);
    if !read {
        let _ = timeout(DRAIN, reading).await;
    }
    status
}
