//! Starting an endpoint behind its supervisor, and stopping it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::exit::{Exit, Report};
use super::job::OF_THE_JOB;
use super::log;

/// How long the supervisor may take to say that the command runs.
const START_WITHIN: Duration = Duration::from_secs(60);

/// How long the supervisor may take beyond `stop_within`: the time it gives killed processes, and some for itself.
const STOP_GRACE: Duration = Duration::from_secs(20);

/// An endpoint to start.
#[derive(Debug, Clone)]
pub struct LaunchSpec {
    /// This binary, which is its own supervisor.
    pub program: PathBuf,
    /// Program and arguments of the endpoint. One without a slash is looked for on PATH.
    pub command: Vec<String>,
    /// Its working directory.
    pub folder: PathBuf,
    /// The file that its output is appended to.
    pub log: PathBuf,
    /// How long its process group may take to end after SIGTERM before it is killed.
    pub stop_within: Duration,
    /// Variables set besides the environment of this process.
    pub environment: Vec<(String, String)>,
}

/// Why an endpoint was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is no command.
    #[error("the launch command is empty; write the program and its arguments as a list")]
    Empty,
    /// The working directory is none.
    #[error("cannot launch `{command}` in `{}`: it is not a folder", folder.display())]
    Folder {
        /// The command.
        command: String,
        /// The working directory.
        folder: PathBuf,
    },
    /// The log cannot be written.
    #[error("cannot write the endpoint's log `{}`; is the run folder writable?", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program does not exist.
    #[error(
        "cannot launch `{command}` in `{}`: `{program}` was not found; {hint}",
        folder.display(),
        hint = missing_hint(program)
    )]
    Missing {
        /// The command.
        command: String,
        /// Its program.
        program: String,
        /// The working directory.
        folder: PathBuf,
    },
    /// The program exists but cannot be started.
    #[error("cannot launch `{command}` in `{}`: {problem}", folder.display())]
    Refused {
        /// The command.
        command: String,
        /// The working directory.
        folder: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// The supervisor cannot be started.
    #[error("cannot start the supervisor `{}`", program.display())]
    Supervisor {
        /// The supervisor's program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The supervisor started but did not say what became of the command.
    #[error("the supervisor `{}` did not report the start of `{command}`; its own words are in `{}`", program.display(), log.display())]
    Silent {
        /// The supervisor's program.
        program: PathBuf,
        /// The command.
        command: String,
        /// Where the supervisor's errors go.
        log: PathBuf,
    },
}

fn missing_hint(program: &str) -> &'static str {
    if program.contains('/') {
        "check the path, which starts at the working directory, and the interpreter that its first line names"
    } else {
        "install it, or put its folder on PATH"
    }
}

/// Starts the command in a process group of its own, with the supervisor before it.
///
/// Dropping the result, or this future, stops the group in the background, as any end of this process does.
///
/// # Errors
/// When the folder, the log or the program is missing, or the system refuses.
pub async fn launch(spec: LaunchSpec) -> Result<Running, LaunchError> {
    let command = spec.command.join(" ");
    let Some(program) = spec.command.first().cloned() else { return Err(LaunchError::Empty) };
    if !spec.folder.is_dir() {
        return Err(LaunchError::Folder { command, folder: spec.folder });
    }
    let (log, log_file) = open_log(&spec.log)?;
    let mut supervisor = start_supervisor(&spec, &log, log_file)
        .map_err(|source| LaunchError::Supervisor { program: spec.program.clone(), source })?;
    let silent = || LaunchError::Silent { program: spec.program.clone(), command: command.clone(), log: log.clone() };
    let (Some(stdin), Some(stdout)) = (supervisor.stdin.take(), supervisor.stdout.take()) else {
        return Err(silent());
    };
    let mut reports = BufReader::new(stdout).lines();
    let first = tokio::time::timeout(START_WITHIN, next_report(&mut reports)).await.ok().flatten();
    let folder = spec.folder.clone();
    let pid = match first {
        Some(Report::Started { pid }) => pid,
        Some(Report::Failed { missing: true, .. }) => return Err(LaunchError::Missing { command, program, folder }),
        Some(Report::Failed { error, .. }) => return Err(LaunchError::Refused { command, folder, problem: error }),
        Some(Report::Exited(_)) | None => return Err(silent()),
    };
    let (sender, exit) = watch::channel(None);
    let monitor = tokio::spawn(watch_over(supervisor, reports, pid, sender));
    Ok(Running { pid, log, stop_within: spec.stop_within, pipe: stdin, exit, monitor })
}

fn open_log(path: &Path) -> Result<(PathBuf, File), LaunchError> {
    let refuse = |source| LaunchError::Log { path: path.to_owned(), source };
    // The supervisor works in another folder.
    let path = std::path::absolute(path).map_err(refuse)?;
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(refuse)?;
    Ok((path, file))
}

fn start_supervisor(spec: &LaunchSpec, log: &Path, log_file: File) -> io::Result<Child> {
    let mut command = Command::new(std::path::absolute(&spec.program)?);
    for name in OF_THE_JOB {
        command.env_remove(name);
    }
    command
        .arg("supervise")
        .arg("--stop-within-ms")
        .arg(spec.stop_within.as_millis().to_string())
        .arg("--log")
        .arg(log)
        .arg("--")
        .args(&spec.command)
        .current_dir(&spec.folder)
        .envs(spec.environment.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log_file)
        // Ctrl-C in a terminal reaches its foreground group; the endpoint's end is ordered, not a race.
        .process_group(0)
        .spawn()
}

/// The next line that is a report; `None` when the supervisor has ended.
async fn next_report(reports: &mut Lines<BufReader<ChildStdout>>) -> Option<Report> {
    while let Ok(Some(line)) = reports.next_line().await {
        if let Ok(report) = serde_json::from_str(&line) {
            return Some(report);
        }
    }
    None
}

/// Follows the reports until the supervisor, and with it the whole group, has ended.
async fn watch_over(
    mut supervisor: Child,
    mut reports: Lines<BufReader<ChildStdout>>,
    pid: u32,
    sender: watch::Sender<Option<Exit>>,
) {
    while let Some(report) = next_report(&mut reports).await {
        if let Report::Exited(exit) = report {
            sender.send_replace(Some(exit));
        }
    }
    if sender.borrow().is_none() {
        // Somebody killed the supervisor: nobody but us can end the group now.
        kill_group(pid);
        sender.send_replace(Some(Exit::Lost));
    }
    // Only frees its entry in the process table; the closed pipe already said that it ended.
    let _ = supervisor.wait().await;
}

fn kill_group(pid: u32) {
    if let Ok(pid) = i32::try_from(pid) {
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// A launched endpoint. Dropping it stops the process group in the background; [`Running::stop`] also waits for it.
#[derive(Debug)]
pub struct Running {
    /// The endpoint's first process, and the number of its group.
    pid: u32,
    /// Where its output goes.
    log: PathBuf,
    /// How long the group may take to end.
    stop_within: Duration,
    /// The supervisor's standard input. Its end, by whatever cause, is the order to stop.
    pipe: ChildStdin,
    /// How the endpoint ended, once it has.
    exit: watch::Receiver<Option<Exit>>,
    /// Ends when the supervisor has.
    monitor: JoinHandle<()>,
}

impl Running {
    /// The endpoint's first process; its group has the same number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file with the endpoint's output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How the endpoint's first process ended, if it has.
    pub fn exited(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Waits until the endpoint's first process has ended. Can be dropped and asked again, by many at once.
    pub async fn wait_exited(&self) -> Exit {
        // The sender goes away unsaid only when the runtime that watched is gone.
        self.exit.clone().wait_for(Option::is_some).await.ok().and_then(|exit| *exit).unwrap_or(Exit::Lost)
    }

    /// Stops the process group and waits until none of it is left. Returns how the first process ended, which may have
    /// been before.
    pub async fn stop(mut self) -> Exit {
        drop(self.pipe);
        if tokio::time::timeout(self.stop_within.saturating_add(STOP_GRACE), &mut self.monitor).await.is_err() {
            kill_group(self.pid);
        }
        let exit = *self.exit.borrow();
        exit.unwrap_or(Exit::Lost)
    }

    /// The last lines of the endpoint's output, from its last 64 KiB at most. Empty when the log cannot be read.
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        log::tail(&self.log, lines).unwrap_or_default()
    }
}
