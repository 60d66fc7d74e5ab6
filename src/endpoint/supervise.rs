//! The supervisor: holds one endpoint's process group and ends it when told to, or when nobody is left to tell.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::exit::{Exit, Report};

/// How often the group is looked at while it ends.
const POLL: Duration = Duration::from_millis(20);

/// How long killed processes may take to disappear. Only one stuck in the kernel needs it, and waiting cannot help there.
const KILL_WITHIN: Duration = Duration::from_secs(10);

/// The exit code of a supervisor that could not do its work.
const INTERNAL_FAILURE: i32 = 70;

/// What the hidden subcommand `supervise` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuperviseArguments {
    /// How long the group may take to end after SIGTERM before it is killed.
    pub stop_within: Duration,
    /// The file that the endpoint's output is appended to.
    pub log: PathBuf,
    /// Program and arguments; the working directory and the environment are the supervisor's own.
    pub command: Vec<String>,
}

/// Starts the command as the leader of a new process group and stays until no process of it is left. Returns the exit
/// code for this process; what happened is reported as JSON lines on standard output (`started`, `exited`, `failed`).
///
/// The group is stopped (SIGTERM, then SIGKILL after `stop_within`) when standard input ends or says `stop`, and when the
/// command ended by itself but left processes behind. Signals that end a terminal's jobs do not end the supervisor: it
/// outlives the run that started it, as briefly as the group allows.
pub fn supervise(arguments: &SuperviseArguments) -> i32 {
    // The run that started us may go before others; the endpoint under test must not.
    let _ = rustix::process::setpriority_process(None, 0);
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(hold_endpoint(arguments)));
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            report(&Report::Failed { error: failure.to_string(), missing: failure.kind() == io::ErrorKind::NotFound });
            INTERNAL_FAILURE
        }
    }
}

async fn hold_endpoint(arguments: &SuperviseArguments) -> io::Result<()> {
    // A handler stays installed for the life of the process, so making it is all that is needed to survive these. They are
    // made before the endpoint exists: from then on, dying early would leave it alone.
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()] {
        let _ = signal(kind)?;
    }
    let mut child_changed = signal(SignalKind::child())?;
    adopt_orphans();
    let mut group = Group { leader: start(arguments)?, exit: None };
    report(&Report::Started { pid: group.leader.as_raw().unsigned_abs() });
    let mut stop = stop_requested();
    loop {
        tokio::select! {
            _ = &mut stop => break,
            _ = child_changed.recv() => {
                group.reap();
                if group.exit.is_some() {
                    break;
                }
            }
        }
    }
    group.end(arguments.stop_within).await;
    Ok(())
}

/// Makes processes whose parents end children of this one, so that even those which left the group are found and reaped.
fn adopt_orphans() {
    // Where the kernel refuses, the group alone is stopped, which is all that other systems offer.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

fn start(arguments: &SuperviseArguments) -> io::Result<Pid> {
    let (program, rest) = arguments.command.split_first().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the command is empty; name a program after `--`")
    })?;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&arguments.log)
        .map_err(|error| io::Error::other(format!("cannot open the log `{}`: {error}", arguments.log.display())))?;
    let child = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()?;
    // From here on it is waited for by its number, together with the orphans.
    i32::try_from(child.id()).map(Pid::from_raw).map_err(io::Error::other)
}

/// Resolves when standard input ends, or holds a line `stop`. A thread of its own reads it: a blocked read cannot be
/// taken back, and this one may end with the process.
fn stop_requested() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if line.trim() == "stop" {
                break;
            }
        }
        let _ = sender.send(());
    });
    receiver
}

/// Writes one line. Nobody may be left to read it, which changes nothing for the endpoint.
fn report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        let mut output = io::stdout().lock();
        let _ = writeln!(output, "{line}").and_then(|()| output.flush());
    }
}

/// The endpoint's processes.
struct Group {
    /// The process that was started; its number is the group's.
    leader: Pid,
    /// How it ended, once it has.
    exit: Option<Exit>,
}

impl Group {
    /// Takes note of every child that ended and reports the leader's end. Returns whether children are left.
    fn reap(&mut self) -> bool {
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return true,
                Ok(WaitStatus::Exited(pid, code)) if pid == self.leader => self.note(Exit::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.leader => {
                    self.note(Exit::Signal(signal as i32))
                }
                Err(Errno::ECHILD) => {
                    // A status that could not be read (a real-time signal) is the only way to get here without one.
                    if self.exit.is_none() {
                        self.note(Exit::Lost);
                    }
                    return false;
                }
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn note(&mut self, exit: Exit) {
        self.exit = Some(exit);
        report(&Report::Exited(exit));
    }

    /// Stops what is left: SIGTERM to the group, and SIGKILL to everything that is not gone in time.
    async fn end(&mut self, stop_within: Duration) {
        let _ = killpg(self.leader, Signal::SIGTERM);
        let asked = Instant::now();
        while self.exists() && asked.elapsed() < stop_within {
            sleep(POLL).await;
        }
        let killed = Instant::now();
        while (self.reap() || self.exists()) && killed.elapsed() < KILL_WITHIN {
            let _ = killpg(self.leader, Signal::SIGKILL);
            for orphan in adopted_orphans() {
                let _ = kill(orphan, Signal::SIGKILL);
            }
            sleep(POLL).await;
        }
    }

    /// Whether a process of the group is left. Ended ones count until they are reaped, so that comes first.
    fn exists(&mut self) -> bool {
        self.reap();
        killpg(self.leader, None).is_ok()
    }
}

/// The present children of this process, by the kernel's own list. Empty where there is none.
fn adopted_orphans() -> Vec<Pid> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|children| children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .map(Pid::from_raw)
        .collect()
}
