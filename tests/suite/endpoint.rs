//! Launched endpoints end when they should, with everything they started, on every kind of exit.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use goodput::contract::HttpVersion;
use goodput::endpoint::{Exit, LaunchError, LaunchSpec, NotReady, Running, http_client, launch, wait_ready};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

const GOODPUT: &str = env!("CARGO_BIN_EXE_goodput");

/// Longer than any of these can take; only a hang meets it.
const HANG: Duration = Duration::from_secs(60);

/// Longer than a test lasts: a process that ends within it was killed.
const LONG: Duration = Duration::from_secs(600);

/// A folder with the log of an endpoint and whatever its script writes.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spec(&self, command: &[&str], stop_within: Duration) -> LaunchSpec {
        LaunchSpec {
            program: PathBuf::from(GOODPUT),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            folder: self.folder.path().to_owned(),
            log: self.path("endpoint.log"),
            stop_within,
            environment: vec![("MODEL".to_owned(), "tiny".to_owned())],
        }
    }

    async fn launch(&self, script: &str, stop_within: Duration) -> Running {
        let launching = launch(self.spec(&["sh", "-c", script], stop_within));
        timeout(HANG, launching).await.expect("no hang").unwrap()
    }

    /// Waits until the script has made a file, and reads the process number in it. Scripts make it by `mv`, so that it is
    /// never seen half written.
    async fn pid(&self, name: &str) -> Pid {
        let path = self.path(name);
        until(|| path.exists()).await;
        Pid::from_raw(std::fs::read_to_string(path).unwrap().trim().parse().unwrap())
    }
}

async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(HANG, waiting).await.expect("no hang");
}

/// Whether a process runs; one that only waits to be reaped does not.
fn runs(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn pid_of(running: &Running) -> Pid {
    Pid::from_raw(running.pid().try_into().unwrap())
}

async fn stop(running: Running) -> Exit {
    timeout(HANG, running.stop()).await.expect("no hang")
}

/// A script that starts a grandchild, writes its number into `child` and waits.
const WITH_CHILD: &str = "sleep 1000 & echo $! > new; mv new child; wait";

#[tokio::test]
async fn stop_ends_the_endpoint_and_its_children() {
    let scene = Scene::new();
    let running = scene.launch(WITH_CHILD, LONG).await;
    let (leader, child) = (pid_of(&running), scene.pid("child").await);
    assert_eq!(running.exited(), None);
    assert!(runs(leader) && runs(child));
    assert_eq!(stop(running).await, Exit::Signal(15));
    assert!(!runs(leader) && !runs(child));
}

#[tokio::test]
async fn an_endpoint_that_shuts_down_in_order_is_given_its_time() {
    let scene = Scene::new();
    let script =
        "trap 'sleep 0.3; echo saved >&2; exit 5' TERM; echo $$ > new; mv new up; while :; do sleep 0.05; done";
    let running = scene.launch(script, LONG).await;
    scene.pid("up").await;
    assert_eq!(stop(running).await, Exit::Code(5));
    // Some shells also log how their own child ended.
    let log = std::fs::read_to_string(scene.path("endpoint.log")).unwrap();
    assert!(log.lines().any(|line| line == "saved"), "{log}");
}

#[tokio::test]
async fn one_that_ignores_sigterm_is_killed_after_its_time() {
    let scene = Scene::new();
    let script = format!("trap '' TERM; {WITH_CHILD}");
    let running = scene.launch(&script, Duration::from_millis(300)).await;
    let (leader, child) = (pid_of(&running), scene.pid("child").await);
    assert_eq!(stop(running).await, Exit::Signal(9));
    assert!(!runs(leader) && !runs(child));
}

#[tokio::test]
async fn a_daemon_that_left_the_group_ends_too() {
    let scene = Scene::new();
    let script = "setsid sh -c 'echo $$ > new; mv new daemon; exec sleep 1000' & wait; sleep 1000";
    let running = scene.launch(script, Duration::from_millis(500)).await;
    let daemon = scene.pid("daemon").await;
    stop(running).await;
    assert!(!runs(daemon));
}

#[tokio::test]
async fn dropping_stops_in_the_background() {
    let scene = Scene::new();
    let running = scene.launch(WITH_CHILD, LONG).await;
    let (leader, child) = (pid_of(&running), scene.pid("child").await);
    drop(running);
    until(|| !runs(leader) && !runs(child)).await;
}

#[tokio::test]
async fn an_endpoint_that_exits_is_noticed_and_its_log_kept() {
    let scene = Scene::new();
    let script =
        "sleep 1000 & echo $! > new; mv new child; echo \"loading $MODEL in $PWD\"; echo out of memory >&2; exit 3";
    let running = scene.launch(script, LONG).await;
    let both = async { tokio::join!(running.wait_exited(), running.wait_exited()) };
    assert_eq!(timeout(HANG, both).await.expect("no hang"), (Exit::Code(3), Exit::Code(3)));
    assert_eq!(running.exited(), Some(Exit::Code(3)));
    let folder = scene.folder.path().canonicalize().unwrap();
    assert_eq!(running.log_tail(9), [format!("loading tiny in {}", folder.display()), "out of memory".to_owned()]);
    assert_eq!(running.log_tail(1), ["out of memory"]);
    // What it left behind goes away unasked.
    let child = scene.pid("child").await;
    until(|| !runs(child)).await;
    assert_eq!(stop(running).await, Exit::Code(3));
}

#[tokio::test]
async fn readiness_ends_at_once_when_the_process_does() {
    let scene = Scene::new();
    let running = scene.launch("sleep 0.2; exit 7", LONG).await;
    let url = Url::parse("http://127.0.0.1:9/v1").unwrap();
    let client = http_client(None, None, HttpVersion::Auto).unwrap();
    let cancel = CancellationToken::new();
    let waiting = wait_ready(&url, Some("/health"), LONG, Some(&running), &client, &cancel);
    let failure = timeout(HANG, waiting).await.expect("no hang").unwrap_err();
    assert_eq!(failure, NotReady::Exited { exit: Exit::Code(7), log: scene.path("endpoint.log") });
    assert!(
        failure.to_string().starts_with("the endpoint exited with code 7 before it was ready; its last words are in")
    );
    stop(running).await;
}

#[tokio::test]
async fn a_supervisor_that_is_killed_takes_the_endpoint_with_it() {
    let scene = Scene::new();
    let running = scene.launch(&format!("echo $PPID > new; mv new supervisor; {WITH_CHILD}"), LONG).await;
    let (leader, child) = (pid_of(&running), scene.pid("child").await);
    kill(scene.pid("supervisor").await, Signal::SIGKILL).unwrap();
    assert_eq!(timeout(HANG, running.wait_exited()).await.expect("no hang"), Exit::Lost);
    until(|| !runs(leader) && !runs(child)).await;
    assert_eq!(stop(running).await, Exit::Lost);
}

#[tokio::test]
async fn what_cannot_be_launched_says_what_to_do() {
    let scene = Scene::new();
    let here = scene.folder.path().display().to_string();
    let failure = |command: &[&str]| {
        let launching = launch(scene.spec(command, LONG));
        async { timeout(HANG, launching).await.expect("no hang").unwrap_err().to_string() }
    };
    assert_eq!(
        failure(&["no-such-server", "--port", "1"]).await,
        format!(
            "cannot launch `no-such-server --port 1` in `{here}`: `no-such-server` was not found; install it, or put its folder on PATH"
        )
    );
    assert!(failure(&["./no-such-server"]).await.contains("check the path, which starts at the working directory"));
    std::fs::write(scene.path("plain"), "").unwrap();
    let refused = failure(&["./plain"]).await;
    assert!(refused.starts_with(&format!("cannot launch `./plain` in `{here}`: Permission denied")), "{refused}");
    assert!(failure(&[]).await.contains("the launch command is empty"));
    let mut spec = scene.spec(&["true"], LONG);
    spec.folder = scene.path("plain");
    assert!(matches!(launch(spec).await, Err(LaunchError::Folder { .. })));
    let mut spec = scene.spec(&["true"], LONG);
    spec.log = scene.path("no/such/folder.log");
    assert!(matches!(launch(spec).await, Err(LaunchError::Log { .. })));
    let mut spec = scene.spec(&["true"], LONG);
    spec.program = PathBuf::from("/bin/true");
    assert!(matches!(launch(spec).await, Err(LaunchError::Silent { .. })));
}

/// Starts the supervisor alone, with `stdin` as its order book.
fn supervise(folder: &Path, stdin: Stdio, script: &str) -> std::process::Child {
    Command::new(GOODPUT)
        .args(["supervise", "--stop-within-ms", "30000", "--log", "endpoint.log", "--", "sh", "-c", script])
        .current_dir(folder)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_run_that_is_killed_takes_the_endpoint_with_it() {
    let scene = Scene::new();
    // Holds the writing end of the pipe, as a run does, and is as little asked when SIGKILL comes.
    let mut run = Command::new("sleep").arg("1000").stdout(Stdio::piped()).spawn().unwrap();
    let mut supervisor = supervise(scene.folder.path(), run.stdout.take().unwrap().into(), WITH_CHILD);
    let child = scene.pid("child").await;
    assert!(runs(child));
    run.kill().unwrap();
    run.wait().unwrap();
    until(|| !runs(child)).await;
    until(|| !runs(Pid::from_raw(supervisor.id().try_into().unwrap()))).await;
    supervisor.wait().unwrap();
    let reports = std::io::read_to_string(supervisor.stdout.take().unwrap()).unwrap();
    let reports: Vec<&str> = reports.lines().collect();
    assert!(reports[0].starts_with(r#"{"started":{"pid":"#), "{reports:?}");
    assert_eq!(reports[1..], [r#"{"exited":{"signal":15}}"#]);
}

#[tokio::test]
async fn the_signals_of_a_terminal_do_not_end_the_supervisor() {
    let scene = Scene::new();
    let mut supervisor = supervise(scene.folder.path(), Stdio::piped(), WITH_CHILD);
    let child = scene.pid("child").await;
    let pid = Pid::from_raw(supervisor.id().try_into().unwrap());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        kill(pid, signal).unwrap();
    }
    // Nothing is to happen, so there is nothing to wait for: a supervisor that minds has ended long before this.
    sleep(Duration::from_millis(300)).await;
    assert!(runs(pid) && runs(child));
    let mut orders = supervisor.stdin.take().unwrap();
    std::io::Write::write_all(&mut orders, b"stop\n").unwrap();
    until(|| !runs(pid) && !runs(child)).await;
    assert_eq!(supervisor.wait().unwrap().code(), Some(0));
}
