//! Numbers about the system under test, read from real processes, control groups and the kernel's log.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use goodput::contract::{
    Across, CgroupField, CgroupOf, CgroupSource, KernelLogSource, NvidiaField, NvidiaSource, Probe, ProcessField,
    ProcessOf, ProcessSource, Source, StabilityProbe,
};
use goodput::endpoint::{LaunchSpec, launch};
use goodput::judge::broke;
use goodput::probe::{Context, Prober};
use goodput::record::Reading;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::scene::{Contract, Scene};

const GOODPUT: &str = env!("CARGO_BIN_EXE_goodput");

/// Longer than any of these can take; only a hang meets it.
const HANG: Duration = Duration::from_secs(60);

/// Set for a test that this file runs again as another user.
const AS_ANOTHER: &str = "GOODPUT_TEST_AS_ANOTHER_USER";

fn context(endpoint: Option<u32>, port: u16) -> Context {
    Context { folder: PathBuf::from("/"), endpoint, port }
}

fn prober(source: Source, within: Duration, context: &Context) -> Prober {
    Prober::new(&Probe { source, timeout: within }, Across::Sum, context)
}

fn process(of: ProcessOf, field: ProcessField) -> Source {
    Source::Process(ProcessSource { of, field })
}

fn group(of: CgroupOf, field: CgroupField) -> Source {
    Source::Cgroup(CgroupSource { of, field })
}

async fn read(prober: &mut Prober) -> Reading {
    timeout(HANG, prober.read()).await.expect("no hang")
}

async fn value(prober: &mut Prober) -> f64 {
    let reading = read(prober).await;
    reading.value.unwrap_or_else(|| panic!("{reading:?}"))
}

async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(HANG, waiting).await.expect("no hang");
}

fn left_out(why: &str) {
    let _ = writeln!(std::io::stderr(), "left out: {why}");
}

/// A control group with its own limit of memory, which goes with the test.
struct Group(PathBuf);

impl Group {
    /// `None` where this user cannot make one: without root, or in a container.
    fn new(limit: &str) -> Option<Self> {
        // The limit tells apart those that one program makes.
        let name = format!("goodput-test-{}-{limit}", std::process::id());
        let one = Path::new("/sys/fs/cgroup/memory").join(&name);
        let two = Path::new("/sys/fs/cgroup").join(&name);
        if one.parent().is_some_and(|parent| parent.join("memory.oom_control").exists()) && fs::create_dir(&one).is_ok()
        {
            let group = Self(one);
            fs::write(group.0.join("memory.limit_in_bytes"), limit).ok()?;
            // Only a kernel that counts swap has this one.
            let _ = fs::write(group.0.join("memory.memsw.limit_in_bytes"), limit);
            return Some(group);
        }
        if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() && fs::create_dir(&two).is_ok() {
            let group = Self(two);
            fs::write(group.0.join("memory.max"), limit).ok()?;
            let _ = fs::write(group.0.join("memory.swap.max"), "0");
            return Some(group);
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to take the last process out of it.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A process in a group of its own, killed with the test.
struct Shell(Child);

impl Shell {
    fn start(script: &str, folder: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder).stdin(Stdio::null()).process_group(0);
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().try_into().unwrap())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_process_that_is_killed_for_want_of_memory_is_counted_once() {
    const LIMIT: f64 = 67_108_864.0;
    let Some(group_folder) = Group::new("67108864") else {
        return left_out("no control group of the memory controller can be made here");
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // It reads zeros into one endless line until it may have no more memory.
    let script = format!(
        "echo $$ > {}/cgroup.procs && echo $$ > new && mv new server.pid && until [ -e go ]; do sleep 0.05; done; exec tail /dev/zero",
        group_folder.0.display()
    );
    let mut shell = Shell::start(&script, path);
    let pid_file = path.join("server.pid");
    until(|| pid_file.exists()).await;
    let context = context(None, 8000);
    let by_path = CgroupOf::Path(group_folder.0.clone());
    let by_process = CgroupOf::Process(ProcessOf::PidFile(pid_file));
    let mut probers = [&by_path, &by_process].map(|of| prober(group(of.clone(), CgroupField::OomKill), HANG, &context));
    let mut peak = prober(group(by_path.clone(), CgroupField::MemoryPeak), HANG, &context);
    let contains = format!("Killed process {} (tail)", shell.pid());
    let mut log = prober(Source::KernelLog(KernelLogSource { contains, command: None }), HANG, &context);
    let mut before = Vec::new();
    for prober in &mut probers {
        before.push(read(prober).await);
    }
    let log_before = read(&mut log).await;
    assert!(value(&mut peak).await < LIMIT / 2.0);

    fs::write(path.join("go"), "").unwrap();
    let status = tokio::task::spawn_blocking(move || shell.0.wait()).await.unwrap().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");

    let row = |of: &CgroupOf| StabilityProbe::Counter {
        probe: Probe { source: group(of.clone(), CgroupField::OomKill), timeout: HANG },
        across: Across::Sum,
        max_increase: 0.0,
    };
    for ((prober, before), of) in probers.iter_mut().zip(&before).zip([&by_path, &by_process]) {
        let after = read(prober).await;
        let (from, to) = (before.value.unwrap(), after.value.unwrap());
        assert!((to - from - 1.0).abs() < f64::EPSILON, "{before:?} {after:?}");
        assert_eq!(after.series[0].of, group_folder.0.display().to_string());
        assert_eq!(after.series[0].since, before.series[0].since);
        assert_eq!(broke(&row(of), &[before, &after]), [true]);
    }
    let peak = value(&mut peak).await;
    assert!((LIMIT * 0.9..=LIMIT).contains(&peak), "{peak}");
    match log_before.value {
        Some(before) => assert!((value(&mut log).await - before - 1.0).abs() < f64::EPSILON, "one line tells of it"),
        None => left_out(&log_before.failure.unwrap()),
    }
}

#[tokio::test]
async fn a_server_that_its_supervisor_restarts_is_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    // The supervisor in the launch command; what it restarts is in a session of its own.
    let script = format!(
        "while :; do setsid '{GOODPUT}' simulate --listen 127.0.0.1:{port} & echo $! > new; mv new server; wait; done"
    );
    let spec = LaunchSpec {
        program: PathBuf::from(GOODPUT),
        command: vec!["sh".to_owned(), "-c".to_owned(), script],
        folder: folder.path().to_owned(),
        log: folder.path().join("endpoint.log"),
        stop_within: Duration::from_secs(5),
        environment: Vec::new(),
    };
    let running = launch(spec).await.unwrap();
    let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    until(listens).await;
    let context = context(Some(running.pid()), port);
    let mut ours = prober(process(ProcessOf::Endpoint, ProcessField::StartTime), HANG, &context);
    let mut any = prober(process(ProcessOf::Port(port), ProcessField::StartTime), HANG, &context);
    let mut cpu = prober(process(ProcessOf::Endpoint, ProcessField::CpuTime), HANG, &context);
    let first = || fs::read_to_string(folder.path().join("server")).unwrap().trim().to_owned();
    let before = read(&mut ours).await;
    let server = first();
    assert_eq!(before.series.len(), 1, "{before:?}");
    assert_eq!(before.series[0].of, format!("pid {server} (goodput)"));
    assert_eq!(read(&mut any).await.series, before.series);
    assert_eq!(read(&mut ours).await.series, before.series, "nothing happened in between");
    let busy = value(&mut cpu).await;

    kill(Pid::from_raw(server.parse().unwrap()), Signal::SIGKILL).unwrap();
    until(|| first() != server && listens()).await;
    let after = read(&mut ours).await;
    assert_eq!(after.series[0].of, format!("pid {} (goodput)", first()));
    assert!(after.series[0].since > before.series[0].since, "{before:?} {after:?}");
    let probe = Probe { source: process(ProcessOf::Endpoint, ProcessField::StartTime), timeout: HANG };
    assert_eq!(broke(&StabilityProbe::Unchanged { probe }, &[&before, &after]), [true]);
    assert_eq!(read(&mut any).await.series, after.series);
    assert!(value(&mut cpu).await >= busy, "the time of the one that ended stays");

    timeout(HANG, running.stop()).await.expect("no hang");
    let ended = read(&mut ours).await;
    assert_eq!(ended.failure.as_deref(), Some("the launched endpoint has ended"));
    let nobody = read(&mut any).await.failure.unwrap();
    assert!(nobody.starts_with(&format!("nothing listens on port {port} of this machine")), "{nobody}");
}

/// A port that nothing listens on. It is not held, so it may be taken by another before it is used; that is rare.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn what_a_user_may_not_see_is_not_answered() {
    if !rustix::process::geteuid().is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        return left_out("to become another user takes root and setpriv");
    }
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("memory.oom_control"), "oom_kill 0\n").unwrap();
    fs::set_permissions(folder.path().join("memory.oom_control"), fs::Permissions::from_mode(0o600)).unwrap();
    // The other user may not reach the folder that this program was built into.
    let program = folder.path().join("suite");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["--exact", "stability::as_another_user", "--nocapture"])
        .env(AS_ANOTHER, format!("{port} {}", folder.path().display()))
        .current_dir("/")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told} {}", String::from_utf8_lossy(&output.stderr));
    let failures: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("told: ")).collect();
    assert_eq!(failures.len(), 4, "{told}");
    let own = "this user may not see which process of user 0 listens on port";
    assert!(failures[0].starts_with(own) && failures[0].ends_with("run as that user or as root"), "{told}");
    assert!(failures[1].starts_with(own), "{told}");
    assert!(failures[2].starts_with("may not read") && failures[2].contains("memory.oom_control"), "{told}");
    let restricted = fs::read_to_string("/proc/sys/kernel/dmesg_restrict").is_ok_and(|text| text.trim() == "1");
    if restricted {
        assert!(failures[3].contains("run as root, or name a command that may: `command: [sudo, dmesg]`"), "{told}");
    } else {
        left_out("here every user may read the kernel's log");
    }
}

/// Run by the test above as another user; by itself it does nothing.
#[tokio::test]
async fn as_another_user() {
    let Ok(told) = std::env::var(AS_ANOTHER) else { return };
    let (port, folder) = told.split_once(' ').unwrap();
    let port: u16 = port.parse().unwrap();
    for source in [
        process(ProcessOf::Port(port), ProcessField::StartTime),
        group(CgroupOf::Process(ProcessOf::Port(port)), CgroupField::OomKill),
        group(CgroupOf::Path(PathBuf::from(folder)), CgroupField::OomKill),
        Source::KernelLog(KernelLogSource { contains: "Xid".to_owned(), command: None }),
    ] {
        let reading = read(&mut prober(source, HANG, &context(None, port))).await;
        writeln!(std::io::stdout(), "told: {}", reading.failure.unwrap_or_default()).unwrap();
    }
}

#[tokio::test]
async fn a_program_that_hangs_and_forks_is_given_up_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; sleep 1000 & echo $! > new; mv new child; wait; wait";
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let sources = [
        Source::Nvidia(NvidiaSource { field: NvidiaField::Power, gpus: Vec::new(), command: command.clone() }),
        Source::KernelLog(KernelLogSource { contains: "Xid".to_owned(), command: Some(command) }),
    ];
    for source in sources {
        let context = Context { folder: folder.path().to_owned(), endpoint: None, port: 8000 };
        let name = source.name();
        let reading = read(&mut prober(source, Duration::from_secs(2), &context)).await;
        assert_eq!(reading.failure.as_deref(), Some("took longer than 2s and was given up"), "{name}");
        let child = pid_in(&folder, "child");
        let state = format!("/proc/{child}/stat");
        until(|| !fs::read_to_string(&state).is_ok_and(|stat| !stat.contains(") Z "))).await;
        fs::remove_file(folder.path().join("child")).unwrap();
    }
}

fn pid_in(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_command_that_prints_the_log_is_bounded() {
    for (script, expected) in [
        ("echo '[1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.'", None),
        (
            "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1",
            Some("exited with code 1; stderr ends `dmesg: read"),
        ),
        ("yes | head -c 20000000", Some("printed more than 16777216 bytes")),
    ] {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let source = Source::KernelLog(KernelLogSource { contains: "NVRM: Xid".to_owned(), command: Some(command) });
        let reading = read(&mut prober(source, HANG, &context(None, 8000))).await;
        match expected {
            None => assert_eq!(reading.value, Some(1.0)),
            Some(begin) => {
                assert!(reading.failure.as_ref().is_some_and(|failure| failure.starts_with(begin)), "{reading:?}")
            }
        }
    }
}

/// A contract whose endpoint is a launched script, which `simulate` serves at the port.
fn launched(port: u16, script: &str) -> Contract {
    let command = serde_json::to_string(&["sh", "-c", script]).unwrap();
    let endpoint = format!(
        "url: http://127.0.0.1:{port}/v1/chat/completions
  launch:
    command: {command}
    ready: {{ path: /health, within: 20s }}
    stop_within: 2s"
    );
    Contract { trial: "requests: 120, warm_up: 200ms", ..Contract::of(endpoint) }
}

#[test]
fn a_restart_in_mid_run_fails_the_gate_and_is_dated() {
    let port = free_port();
    let serve = format!("'{GOODPUT}' simulate simulated.yaml --listen 127.0.0.1:{port}");
    let script = format!("while :; do {serve} & echo $! > new; mv new server; wait; done");
    let scene = Scene::with(&launched(port, &script), "");
    let mut gate = scene.start_gate();
    gate.until_requests(40);
    let server = scene.pid("server");
    kill(server, Signal::SIGKILL).unwrap();
    let ran = gate.end().exits(1).shows(&[
        "FAIL tiny",
        "endpoint_process",
        &format!("pid {server} (goodput) is gone in trial 0"),
    ]);
    let result = ran.result();
    assert_eq!(result.row("endpoint_process"), ("FAIL", "restarted"));
    assert_eq!(result.row("endpoint_oom_kills"), ("PASS", "held"));
}

#[test]
fn a_kill_for_want_of_memory_in_mid_run_fails_the_gate() {
    let Some(group) = Group::new("134217728") else {
        return left_out("no control group of the memory controller can be made here");
    };
    let port = free_port();
    // What grows is started with the server, which itself lives on: nothing but the count tells of it.
    let script = format!(
        "echo $$ > {}/cgroup.procs; (until [ -e go ]; do sleep 0.05; done; exec tail /dev/zero) & \
         exec '{GOODPUT}' simulate simulated.yaml --listen 127.0.0.1:{port}",
        group.0.display()
    );
    let scene = Scene::with(&launched(port, &script), "");
    let mut gate = scene.start_gate();
    gate.until_requests(40);
    scene.write("go", "");
    let ran = gate.end().exits(1).shows(&[
        "FAIL tiny",
        "endpoint_oom_kills rise ≤ 0 0 → 1 (+1)",
        "rose by 1 in trial 0, at 40/s",
    ]);
    let result = ran.result();
    assert_eq!(result.row("endpoint_oom_kills"), ("FAIL", "counter_rose"));
    assert_eq!(result.row("endpoint_process"), ("PASS", "held"));
}
