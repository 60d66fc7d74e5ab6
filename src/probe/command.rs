//! The `command` probe: a number on standard output, or an exit code.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use super::LARGEST_EXACT;
use super::excerpt::{quote, quote_end};
use super::run_command::{Capture, RunError, run};
use crate::units::format_duration;

/// The most output that is looked at, in bytes.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// The most of an output's end that is looked at for a message, in bytes.
const ERROR_LIMIT: usize = 4 * 1024;

/// One number, or why there is none.
type Answer = Result<f64, String>;

/// The one finite number that a command prints, when it exits with code 0.
pub(super) async fn number(command: &[String], folder: &Path, timeout: Duration) -> Answer {
    let mut stdout = Capture::first(OUTPUT_LIMIT);
    let status = status(command, folder, timeout, &mut stdout).await?;
    if let Some(failure) = status.failure() {
        return Err(failure);
    }
    if stdout.is_cut() {
        return Err(format!("printed more than {OUTPUT_LIMIT} bytes where one number was expected"));
    }
    let text = stdout.text().ok_or("printed bytes that are not UTF-8 where one number was expected")?;
    parse_number(text)
}

/// The first `most` bytes that a command prints, when it exits with code 0. It is killed after `within`.
///
/// # Errors
/// Why there is nothing, completing "the command …".
pub async fn output(command: &[String], folder: &Path, within: Duration, most: usize) -> Result<String, String> {
    let mut stdout = Capture::first(most);
    match status(command, folder, within, &mut stdout).await?.failure() {
        None => Ok(stdout.lossy()),
        Some(failure) => Err(failure),
    }
}

/// A command's exit code, whatever that is. Being killed by a signal is no code.
pub(super) async fn exit_code(command: &[String], folder: &Path, timeout: Duration) -> Answer {
    let status = status(command, folder, timeout, &mut Capture::first(0)).await?;
    status.code().map(f64::from).ok_or_else(|| status.failure().unwrap_or_default())
}

/// How a command ended, and the end of what it complained.
pub(super) struct Ended {
    status: ExitStatus,
    complaint: String,
}

impl Ended {
    fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The end of what it wrote to its standard error.
    pub(super) fn complaint(&self) -> &str {
        &self.complaint
    }

    /// What is wrong with this end; `None` for exit code 0.
    pub(super) fn failure(&self) -> Option<String> {
        let how = match (self.status.code(), self.status.signal()) {
            (Some(0), _) => return None,
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "did not end".to_owned(),
        };
        let complaint = self.complaint.trim();
        Some(if complaint.is_empty() { how } else { format!("{how}; stderr ends {}", quote_end(complaint)) })
    }
}

/// Runs a command to its end, whatever its exit code, and keeps of its output what `stdout` keeps.
pub(super) async fn status(
    command: &[String],
    folder: &Path,
    within: Duration,
    stdout: &mut Capture,
) -> Result<Ended, String> {
    let mut stderr = Capture::last(ERROR_LIMIT);
    match run(command, folder, within, stdout, &mut stderr).await {
        Ok(status) => Ok(Ended { status, complaint: stderr.lossy() }),
        Err(RunError::TimedOut) => Err(format!("took longer than {} and was killed", format_duration(within))),
        Err(RunError::Wait(error)) => Err(format!("could not be waited for: {error}")),
        Err(RunError::Start(error)) => Err(start_failure(command, folder, &error)),
    }
}

fn start_failure(command: &[String], folder: &Path, error: &io::Error) -> String {
    let program = command.first().map_or("", String::as_str);
    let folder_is_there = folder.is_dir();
    let hint = match error.kind() {
        _ if !folder_is_there => "; the working directory is not a folder",
        io::ErrorKind::NotFound if program.contains('/') => {
            "; check the path, which starts at the contract's folder, and the interpreter that its first line names"
        }
        io::ErrorKind::NotFound => "; install it, or put its folder on PATH",
        io::ErrorKind::PermissionDenied => "; is it executable?",
        _ => "",
    };
    format!("could not start `{program}` in `{}`: {error}{hint}", folder.display())
}

/// Reads the one number that a probe printed: an integer, a decimal, or either with an exponent.
fn parse_number(printed: &str) -> Answer {
    let text = printed.trim();
    if text.is_empty() {
        return Err("printed nothing where one number was expected".to_owned());
    }
    // Rust also reads `inf` and `nan`, which are no measurements.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let value = text.parse::<f64>().ok().filter(|_| is_plain);
    match value {
        None => Err(format!("printed {} where one number was expected", quote(text))),
        Some(value) if value.abs() > LARGEST_EXACT => {
            Err(format!("printed {}, which is too large to be compared exactly (limit 2^53)", quote(text)))
        }
        Some(value) => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Longer than any of these can take; only a hang meets it.
    const HANG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    async fn number_of(script: &str) -> Answer {
        number(&shell(script), Path::new("/"), HANG).await
    }

    async fn code_of(script: &str) -> Answer {
        exit_code(&shell(script), Path::new("/"), HANG).await
    }

    #[test]
    fn one_finite_number_is_read_whatever_its_form() {
        for (text, value) in [
            ("0\n", 0.0),
            (" 42 ", 42.0),
            ("-3", -3.0),
            ("+1", 1.0),
            ("2.5", 2.5),
            ("1e3\r\n", 1000.0),
            ("1.5E-1", 0.15),
        ] {
            assert_eq!(parse_number(text), Ok(value), "{text}");
        }
        assert_eq!(parse_number("9007199254740992"), Ok(LARGEST_EXACT));
    }

    #[test]
    fn anything_else_is_no_number_and_says_what_came() {
        for text in
            ["NaN", "nan", "inf", "-infinity", "1 2", "1\n2", "12 restarts", "0x10", "1,5", "1_000", "e", "-", "１"]
        {
            let failure = parse_number(text).expect_err(text);
            assert_eq!(failure, format!("printed `{}` where one number was expected", text.escape_debug()));
        }
        assert_eq!(parse_number(" \n"), Err("printed nothing where one number was expected".to_owned()));
        for text in ["1e999", "9007199254740994", "-1e300"] {
            assert!(parse_number(text).is_err_and(|failure| failure.contains("too large")), "{text}");
        }
    }

    #[tokio::test]
    async fn a_command_answers_with_its_number() {
        assert_eq!(number_of("echo 7; echo noise >&2").await, Ok(7.0));
    }

    #[tokio::test]
    async fn a_number_of_a_command_that_failed_does_not_count() {
        let failure = number_of("echo 0; echo 'no such container: vllm' >&2; exit 3").await.expect_err("exit code 3");
        assert_eq!(failure, "exited with code 3; stderr ends `no such container: vllm`");
    }

    #[tokio::test]
    async fn exit_codes_are_values_and_signals_are_not() {
        assert_eq!(code_of("exit 0").await, Ok(0.0));
        assert_eq!(code_of("echo 5; exit 7").await, Ok(7.0));
        assert_eq!(code_of("kill -9 $$").await, Err("was killed by signal 9".to_owned()));
    }

    #[tokio::test]
    async fn a_command_runs_in_its_folder_and_may_be_named_from_there() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("count"), "12\n").expect("a file");
        assert_eq!(number(&["cat", "count"].map(str::to_owned), folder.path(), HANG).await, Ok(12.0));
        std::os::unix::fs::symlink("/bin/cat", folder.path().join("read")).expect("a link");
        assert_eq!(number(&["./read", "count"].map(str::to_owned), folder.path(), HANG).await, Ok(12.0));
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_says_so() {
        let failure = number(&["no-such-program-here".to_owned()], Path::new("/"), HANG).await.expect_err("no program");
        assert!(failure.starts_with("could not start `no-such-program-here` in `/`"), "{failure}");
        assert!(failure.ends_with("install it, or put its folder on PATH"), "{failure}");
        let failure = number(&shell("echo 1"), Path::new("/no/such/folder"), HANG).await.expect_err("no folder");
        assert!(failure.ends_with("the working directory is not a folder"), "{failure}");
    }

    #[tokio::test]
    async fn a_slow_command_is_killed_with_its_children_even_when_it_ignores_sigterm() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = "trap '' TERM; sleep 1000 & echo $! > child; echo 1; wait";
        let slow = shell(script);
        let limit = Duration::from_secs(2);
        let answer = tokio::time::timeout(HANG, number(&slow, folder.path(), limit)).await.expect("no hang");
        assert_eq!(answer, Err("took longer than 2s and was killed".to_owned()));
        assert_gone(&folder.path().join("child")).await;
    }

    #[tokio::test]
    async fn a_child_in_the_background_neither_delays_the_answer_nor_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let forking = shell("sleep 1000 & echo $! > child; echo 5");
        let answer = tokio::time::timeout(HANG, number(&forking, folder.path(), HANG * 10)).await.expect("no hang");
        assert_eq!(answer, Ok(5.0));
        assert_gone(&folder.path().join("child")).await;
    }

    #[tokio::test]
    async fn giving_up_on_a_probe_kills_its_group() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let child = folder.path().join("child");
        let endless = shell("sleep 1000 & echo $! > pid; mv pid child; wait");
        tokio::select! {
            answer = number(&endless, folder.path(), HANG * 10) => panic!("{answer:?}"),
            () = async { while !child.exists() { tokio::time::sleep(Duration::from_millis(20)).await } } => {}
        }
        assert_gone(&child).await;
    }

    #[tokio::test]
    async fn a_flood_is_bounded_and_refused() {
        let failure = number_of("head -c 10000000 /dev/zero | tr '\\0' 1; head -c 10000000 /dev/zero >&2").await;
        assert_eq!(failure, Err("printed more than 65536 bytes where one number was expected".to_owned()));
        assert_eq!(code_of("head -c 10000000 /dev/zero; exit 4").await, Ok(4.0));
    }

    /// Waits until the process whose number the file holds is gone, or only waits to be reaped.
    async fn assert_gone(file: &Path) {
        let pid = std::fs::read_to_string(file).expect("the child's number");
        let state = format!("/proc/{}/stat", pid.trim());
        let gone = async {
            while std::fs::read_to_string(&state).is_ok_and(|stat| !stat.contains(") Z ")) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(HANG, gone).await.expect("the child is gone");
    }
}
