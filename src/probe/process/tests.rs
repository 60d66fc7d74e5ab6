use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;

use super::*;
use crate::contract::ProcessOf;

/// Longer than any of these can take; only a hang meets it.
const HANG: Duration = Duration::from_secs(60);

const PORT: u16 = 8000;

fn context(endpoint: Option<u32>) -> Context {
    Context { folder: PathBuf::from("/"), endpoint, port: PORT }
}

fn probe(of: ProcessOf, field: ProcessField, endpoint: Option<u32>) -> Process {
    Process::new(&ProcessSource { of, field }, &context(endpoint))
}

/// A `/proc` with processes that are written down.
struct Proc(TempDir);

impl Proc {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("net")).expect("a folder");
        let proc = Self(folder);
        // 2023-11-14T22:13:20Z.
        proc.write("stat", "cpu  1 2 3 4\nbtime 1700000000\nprocesses 9\n");
        proc.listens(&[]);
        proc
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).expect("a file");
    }

    /// A process with its parent and group, that used 2 ticks itself and 1 in children that ended, and has 3 KiB.
    fn process(&self, pid: u32, name: &str, parent: u32, group: u32) {
        fs::create_dir_all(self.path().join(format!("{pid}/fd"))).expect("a folder");
        self.write(
            &format!("{pid}/stat"),
            &format!("{pid} ({name}) S {parent} {group} 1 0 -1 0 0 0 0 0 1 1 1 0 20 0 1 0 12345 9000 3 99 0 0\n"),
        );
        self.write(&format!("{pid}/status"), &format!("Name:\t{name}\nVmHWM:\t       9 kB\nVmRSS:\t       3 kB\n"));
    }

    fn holds(&self, pid: u32, inode: u64) {
        std::os::unix::fs::symlink(format!("socket:[{inode}]"), self.path().join(format!("{pid}/fd/7")))
            .expect("a link");
    }

    /// Sockets that listen on the port.
    fn listens(&self, inodes: &[u64]) {
        let lines = inodes.iter().map(|inode| {
            format!("   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0 0\n")
        });
        self.write("net/tcp", &format!("  sl  local_address …\n{}", lines.collect::<String>()));
    }

    fn probe(&self, of: ProcessOf, field: ProcessField, endpoint: Option<u32>) -> Process {
        let mut probe = probe(of, field, endpoint);
        probe.finder = probe.finder.within(self.path());
        probe
    }
}

/// An endpoint in the group 100, with a child that left the group, and one process more that is none of it.
fn launched() -> Proc {
    let proc = Proc::new();
    proc.process(1, "init", 0, 1);
    proc.process(100, "sh", 1, 100);
    proc.process(101, "python3", 100, 100);
    proc.process(300, "worker", 101, 300);
    proc.process(500, "other", 1, 500);
    proc
}

#[tokio::test]
async fn the_listeners_of_the_launched_group_are_told_with_their_start() {
    let proc = launched();
    proc.listens(&[71]);
    proc.holds(300, 71);
    let mut probe = proc.probe(ProcessOf::Endpoint, ProcessField::StartTime, Some(100));
    let expected = Series {
        of: "pid 300 (worker)".to_owned(),
        // 12,345 ticks of a hundredth of a second after the boot.
        since: Some("2023-11-14T22:15:23.45Z".to_owned()),
        value: 1.0,
    };
    assert_eq!(probe.read().await, Ok(vec![expected.clone()]));
    // Neither a clock that is set nor a new name is a new process.
    proc.write("stat", "btime 1700000009\n");
    proc.process(300, "renamed", 101, 300);
    assert_eq!(probe.read().await, Ok(vec![expected]));
}

#[tokio::test]
async fn a_listener_that_this_run_did_not_start_is_not_the_endpoint() {
    let proc = launched();
    proc.listens(&[71]);
    proc.holds(500, 71);
    let failure =
        proc.probe(ProcessOf::Endpoint, ProcessField::StartTime, Some(100)).read().await.expect_err("not ours");
    assert!(failure.starts_with("nothing that this run started listens on port 8000 here"), "{failure}");
    let failure = proc.probe(ProcessOf::Endpoint, ProcessField::StartTime, Some(777)).read().await;
    assert_eq!(failure, Err("the launched endpoint has ended".to_owned()));
    let failure =
        proc.probe(ProcessOf::Endpoint, ProcessField::StartTime, None).read().await.expect_err("none launched");
    assert!(failure.starts_with("this run launched no endpoint"), "{failure}");
}

#[tokio::test]
async fn every_process_that_holds_the_port_is_told_and_none_may_be_hidden() {
    let proc = launched();
    proc.listens(&[71, 72]);
    proc.holds(101, 71);
    proc.holds(300, 72);
    let series = proc.probe(ProcessOf::Port(PORT), ProcessField::StartTime, None).read().await.expect("both are seen");
    let names: Vec<&str> = series.iter().map(|series| series.of.as_str()).collect();
    assert_eq!(names, ["pid 101 (python3)", "pid 300 (worker)"]);
    proc.listens(&[71, 72, 73]);
    let failure =
        proc.probe(ProcessOf::Port(PORT), ProcessField::StartTime, None).read().await.expect_err("one is not");
    assert!(failure.starts_with("no process that is seen here holds the socket of user 1000"), "{failure}");
}

#[tokio::test]
async fn cpu_time_and_memory_are_of_the_whole_family() {
    let proc = launched();
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    // Of the endpoint three processes, each with 2 + 1 ticks and 3 KiB.
    let cpu = proc.probe(ProcessOf::Endpoint, ProcessField::CpuTime, Some(100)).read().await;
    assert_eq!(cpu, Ok(nameless(9.0 / ticks)));
    let memory = proc.probe(ProcessOf::Endpoint, ProcessField::Memory, Some(100)).read().await;
    assert_eq!(memory, Ok(nameless(9216.0)));
    proc.listens(&[71]);
    proc.holds(101, 71);
    let memory = proc.probe(ProcessOf::Port(PORT), ProcessField::Memory, None).read().await;
    assert_eq!(memory, Ok(nameless(6144.0)));
}

#[tokio::test]
async fn what_lost_its_parent_is_found_by_the_supervisor_of_the_launch() {
    let proc = Proc::new();
    // The supervisor is a child of this process; its other child left group and session, and its parent is gone.
    proc.process(90, "goodput", std::process::id(), 90);
    proc.process(100, "sh", 90, 100);
    proc.process(400, "daemon", 90, 400);
    proc.listens(&[71]);
    proc.holds(400, 71);
    let series = proc.probe(ProcessOf::Endpoint, ProcessField::StartTime, Some(100)).read().await.expect("found");
    assert_eq!(series.len(), 1);
    assert_eq!(series[0].of, "pid 400 (daemon)");
    // Its two children, 3 ticks each, and what it waited for, 1 tick.
    let cpu = proc.probe(ProcessOf::Endpoint, ProcessField::CpuTime, Some(100)).read().await;
    assert_eq!(cpu, Ok(nameless(7.0 / rustix::param::clock_ticks_per_second() as f64)));
}

#[tokio::test]
async fn a_pid_file_must_name_a_process_that_began_before_it_was_written() {
    let proc = launched();
    let file = proc.path().join("server.pid");
    let read = async || {
        let mut probe = proc.probe(ProcessOf::PidFile(file.clone()), ProcessField::StartTime, None);
        probe.read().await.map(|series| series.into_iter().map(|series| series.of).collect::<Vec<_>>())
    };
    let fails = async |begins: &str| {
        let failure = read().await.expect_err(begins);
        assert!(failure.contains(begins) && failure.contains("server.pid"), "{failure}");
    };
    fails("there is no pid file").await;
    for garbage in ["", "\n", "abc\n", "-5", "0", "12 13", "99999999999", "\u{1b}[31m"] {
        fs::write(&file, garbage).expect("a file");
        fails("where the number of a process was expected").await;
    }
    fs::write(&file, vec![b'1'; 10_000_000]).expect("a file");
    fails("where the number of a process was expected").await;
    fs::write(&file, "4711\n").expect("a file");
    fails("does not run").await;
    fs::write(&file, "101\nmore\n").expect("a file");
    assert_eq!(read().await, Ok(vec!["pid 101 (python3)".to_owned()]));
    // Written a minute before the process began: the number is another one's by now.
    let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_123);
    let written = fs::File::options().write(true).open(&file).expect("the file");
    written.set_modified(began - Duration::from_secs(60)).expect("a time");
    fails("older than the process").await;
    fs::remove_file(&file).expect("the file");
    assert!(Command::new("mkfifo").arg(&file).status().expect("mkfifo").success());
    fails("no regular file").await;
}

#[tokio::test]
async fn without_processes_there_is_a_reason() {
    let failure = probe(ProcessOf::Port(1), ProcessField::CpuTime, None);
    let none = failure.finder.within(Path::new("/no/such/proc"));
    assert!(none.table().expect_err("no folder").starts_with("cannot list the processes in `/no/such/proc`"));
    let empty = tempfile::tempdir().expect("a temporary folder");
    let none = none.within(empty.path());
    assert!(none.table().expect_err("an empty folder").ends_with("it is there on Linux, once it is mounted"));
}

/// A child in a group of its own, which ends with the test.
struct Group(Child);

impl Group {
    fn start(script: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().expect("a shell"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let group = nix::unistd::Pid::from_raw(self.0.id().try_into().expect("a process number"));
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

fn is_linux() -> bool {
    let is_linux = Path::new("/proc/self/stat").exists();
    if !is_linux {
        let _ = writeln!(std::io::stderr(), "left out: there is no `/proc` here");
    }
    is_linux
}

#[tokio::test]
async fn this_process_is_found_by_the_port_that_it_listens_on() {
    if !is_linux() {
        return;
    }
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("an address").port();
    let mut probe = probe(ProcessOf::Port(port), ProcessField::StartTime, None);
    let series = probe.read().await.expect("it is found");
    assert_eq!(series.len(), 1, "{series:?}");
    assert!(series[0].of.starts_with(&format!("pid {} (", std::process::id())), "{series:?}");
    let since: Timestamp = series[0].since.clone().expect("a start").parse().expect("an instant");
    let age = Timestamp::now().duration_since(since).as_secs();
    assert!((-2..3600).contains(&age), "started {since}");
    assert_eq!(probe.read().await, Ok(series));
    drop(socket);
    let failure = probe.read().await.expect_err("nothing listens");
    assert!(failure.starts_with(&format!("nothing listens on port {port} of this machine")), "{failure}");
}

#[tokio::test]
async fn cpu_time_of_children_that_ended_stays_and_memory_is_what_ps_tells() {
    if !is_linux() {
        return;
    }
    // The inner shell works, ends, and is waited for; the outer one tells what that took, and lives on.
    let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let mut group = Group::start(&format!("sh -c '{work}'; times; read line"));
    let pid = group.0.id();
    let told = read_times(&mut group.0);
    let cpu = probe(ProcessOf::Endpoint, ProcessField::CpuTime, Some(pid)).read().await.expect("a number")[0].value;
    assert!(told > 0.05, "the work took {told} s");
    assert!((cpu - told).abs() < 0.1, "{cpu} s where the shell tells {told} s");
    let ps = Command::new("ps").args(["-o", "rss=", "-p", &pid.to_string()]).output().expect("ps");
    let kibibytes: f64 = String::from_utf8_lossy(&ps.stdout).trim().parse().expect("a number");
    let memory = probe(ProcessOf::Endpoint, ProcessField::Memory, Some(pid)).read().await.expect("a number")[0].value;
    assert!((memory - kibibytes * 1024.0).abs() < 1.0, "{memory} bytes where ps tells {kibibytes} KiB");
}

/// Seconds in all that the shell's `times` prints: `0m0.01s 0m0.02s` for itself, and then for its children.
fn read_times(child: &mut Child) -> f64 {
    use std::io::{BufRead, BufReader};
    let started = Instant::now();
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let words: Vec<String> = lines
        .by_ref()
        .take(2)
        .flat_map(|line| line.expect("a line").split(' ').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(started.elapsed() < HANG);
    let seconds = |word: &String| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').expect("a time");
        minutes.parse::<f64>().expect("minutes") * 60.0 + seconds.parse::<f64>().expect("seconds")
    };
    words.iter().map(seconds).sum()
}
