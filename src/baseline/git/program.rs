//! Runs the program `git`: bounded in time and in what it may answer, and never waiting for somebody to type.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::GitFailure;

/// How long a question about the repository at hand may take.
pub(super) const HERE: Duration = Duration::from_secs(30);
/// How long a question to a remote may take.
pub(super) const FAR: Duration = Duration::from_secs(120);
/// The longest answer that is kept of a question that asks for no file.
const LONGEST_ANSWER: u64 = 32 << 20;
/// The longest text of a failure that is looked at.
const LONGEST_COMPLAINT: u64 = 64 << 10;
/// The longest part of it that is told.
const LONGEST_TOLD: usize = 240;

/// What would point git to another repository than the one of the folder: a hook that runs this program sets them.
const ELSEWHERE: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"];

/// One call of the program.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Everything behind `git -C FOLDER`.
    pub(super) arguments: &'a [&'a str],
    /// What it reads.
    pub(super) input: Option<&'a [u8]>,
    /// Variables besides those of this process.
    pub(super) environment: &'a [(&'a str, &'a str)],
    /// How long it may take.
    pub(super) within: Duration,
}

impl<'a> Call<'a> {
    /// A question about the repository at hand.
    pub(super) fn here(arguments: &'a [&'a str]) -> Self {
        Self { arguments, input: None, environment: &[], within: HERE }
    }

    /// A question to a remote.
    pub(super) fn far(arguments: &'a [&'a str]) -> Self {
        Self { within: FAR, ..Self::here(arguments) }
    }
}

/// What the program answered.
#[derive(Debug)]
pub(super) struct Answer {
    /// Its exit code; `None` when a signal ended it.
    pub(super) code: Option<i32>,
    /// Its output.
    pub(super) output: Vec<u8>,
    /// What it complained of.
    pub(super) complaint: String,
}

impl Answer {
    /// Whether it did what was asked.
    pub(super) fn is_fine(&self) -> bool {
        self.code == Some(0)
    }

    /// The output as text without the blanks around it.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).trim().to_owned()
    }

    /// What it complained of in one line: the first line that names a failure, without what looks like a password.
    pub(super) fn told(&self) -> String {
        let lines = || self.complaint.lines().map(str::trim).filter(|line| !line.is_empty());
        let names_failure =
            |line: &&str| ["fatal:", "error:", "remote: error", "! ["].iter().any(|start| line.starts_with(start));
        let line = lines().find(names_failure).or_else(|| lines().next_back()).unwrap_or("it gave no reason");
        without_passwords(line).chars().take(LONGEST_TOLD).collect()
    }
}

/// Kills the call's whole process group when this goes out of scope: a fetch has helpers that outlive their parent.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // Usually nobody is left.
            let _ = killpg(pid, Signal::SIGKILL);
        }
    }
}

/// Runs `git` in a folder to its end.
///
/// # Errors
/// When it cannot be started, takes too long, or answers with more than is kept.
pub(super) async fn call(folder: &Path, call: &Call<'_>) -> Result<Answer, GitFailure> {
    let name = call.arguments.iter().find(|word| !word.starts_with('-') && !word.contains('=')).unwrap_or(&"");
    let failed = |problem: String| GitFailure(format!("`git {name}` in {}: {problem}", folder.display()));
    let mut child = command(folder, call)
        .spawn()
        .map_err(|error| failed(format!("git cannot be started: {error}; install git where the gate runs")))?;
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
    let ended = timeout(call.within, finish(&mut child, call.input)).await;
    drop(group);
    let Ok(ended) = ended else {
        return Err(failed(format!("no answer within {} s", call.within.as_secs())));
    };
    let (answer, is_cut) = ended.map_err(|error| failed(error.to_string()))?;
    if is_cut {
        return Err(failed(format!("it answers with more than {} MiB", LONGEST_ANSWER >> 20)));
    }
    Ok(answer)
}

fn command(folder: &Path, call: &Call<'_>) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["--no-pager", "-c", "core.quotePath=false"]).args(call.arguments);
    for name in ELSEWHERE {
        command.env_remove(name);
    }
    command
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_LITERAL_PATHSPECS", "1")
        .envs(call.environment.iter().copied())
        .stdin(if call.input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Feeds and reads the program until it ends. Whether its answer was cut comes second.
async fn finish(child: &mut Child, input: Option<&[u8]>) -> std::io::Result<(Answer, bool)> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let (Some(mut pipe), Some(input)) = (stdin, input) {
            // Who does not read its input to the end says why on standard error.
            drop(pipe.write_all(input).await);
        }
    };
    let ((), output, complaint) = tokio::join!(feed, read(stdout, LONGEST_ANSWER), read(stderr, LONGEST_COMPLAINT));
    let status = child.wait().await?;
    let is_cut = output.len() as u64 > LONGEST_ANSWER;
    let complaint = String::from_utf8_lossy(&complaint).into_owned();
    Ok((Answer { code: status.code(), output, complaint }, is_cut))
}

/// At most one byte more than `most`; the pipe is closed then, which ends who writes into it.
async fn read(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What was read before a failure is the answer, and the exit code tells the rest.
        drop(pipe.take(most + 1).read_to_end(&mut bytes).await);
    }
    bytes
}

/// The line with `***` in place of the user and password of an address.
fn without_passwords(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, behind) = rest.split_at(at + 3);
        shown.push_str(before);
        let host = behind.find(|c: char| c == '/' || c.is_whitespace() || c == '\'').unwrap_or(behind.len());
        rest = match behind[..host].rfind('@') {
            Some(at) => {
                shown.push_str("***");
                &behind[at..]
            }
            None => behind,
        };
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_in_one_line_without_a_password() {
        for (complaint, told) in [
            ("", "it gave no reason"),
            ("hint: a\nfatal: not a git repository\nhint: b\n", "fatal: not a git repository"),
            (
                "fatal: unable to access 'https://x-access-token:ghs_s3@cret@host.example/o/r/': 403\n",
                "fatal: unable to access 'https://***@host.example/o/r/': 403",
            ),
            ("From https://host.example/o/r", "From https://host.example/o/r"),
        ] {
            let answer = Answer { code: Some(1), output: Vec::new(), complaint: complaint.to_owned() };
            assert_eq!(answer.told(), told);
        }
    }
}
