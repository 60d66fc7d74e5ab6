//! A folder with a contract, and the real binary in it.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// Longer than any of these can take; only a hang meets it.
pub(crate) const HANG: Duration = Duration::from_secs(100);

/// A simulated endpoint that is quick and never full.
pub(crate) const SIMULATED: &str =
    "url: http://127.0.0.1:0/v1/chat/completions\n  launch: { simulate: simulated.yaml }";

/// Its profile; faults can follow.
const PROFILE: &str = "version: 1\nmodel: { kind: batch, slots: 32, step_base: 2ms }\noutput_tokens: 4\n";

/// A contract in parts, so that a test writes the part it is about.
pub(crate) struct Contract {
    /// `url` and whatever else belongs under `endpoint`, indented by two.
    pub(crate) endpoint: String,
    /// `cases`, and `payload` when it is not the usual one, indented by two.
    pub(crate) workload: String,
    pub(crate) loads: &'static str,
    pub(crate) trial: &'static str,
    /// Whole sections at the end.
    pub(crate) more: String,
}

impl Contract {
    /// A sweep of two short steps.
    pub(crate) fn of(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            workload: "cases: [{ id: one, prompt: Hi there, max_tokens: 4 }]".to_owned(),
            loads: "40/s, 60/s",
            trial: "requests: 60, warm_up: 200ms",
            more: String::new(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let Self { endpoint, workload, loads, trial, more } = self;
        let timeout = if endpoint.contains(" timeout: ") { "" } else { "\n  timeout: 10s" };
        format!(
            "version: 1
name: tiny
endpoint:
  {endpoint}
  protocol: openai-chat
  model: tiny{timeout}
workload:
  {workload}
traffic:
  model: constant
  claim: this_run
  loads: [{loads}]
  trial: {{ {trial} }}
slo:
  objectives:
    - {{ metric: success_rate, at_least: 100% }}
    - {{ metric: e2e, percentile: 95, at_most: 8s }}
  at_load: 40/s
{more}"
        )
    }
}

/// A folder for one test.
pub(crate) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with this contract and the profile of the simulated endpoint, `faults` included.
    pub(crate) fn with(contract: &Contract, faults: &str) -> Self {
        let scene = Self::new();
        scene.write("contract.yaml", contract.text());
        scene.write("simulated.yaml", format!("{PROFILE}{faults}"));
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// A command in the folder, with a scrubbed environment. Its output goes to files, so that nobody has to read along.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.stdout(File::create(self.path("stdout")).unwrap());
        command.stderr(File::create(self.path("stderr")).unwrap());
        command
    }

    pub(crate) fn goodput(&self, arguments: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_goodput"), arguments)
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, mut command: Command) -> Ran<'_> {
        self.start(&mut command).end()
    }

    /// `goodput gate contract.yaml`, to its end.
    pub(crate) fn gate(&self) -> Ran<'_> {
        self.run(self.goodput(&["gate", "--runs", "runs", "contract.yaml"]))
    }

    pub(crate) fn start(&self, command: &mut Command) -> Started<'_> {
        Started { scene: self, child: command.spawn().unwrap() }
    }

    pub(crate) fn start_gate(&self) -> Started<'_> {
        self.start(&mut self.goodput(&["gate", "--runs", "runs", "contract.yaml"]))
    }

    /// The folder of the one run; `None` when there is none.
    pub(crate) fn run_folder(&self) -> Option<PathBuf> {
        let mut folders = fs::read_dir(self.path("runs")).into_iter().flatten().map(|entry| entry.unwrap().path());
        let folder = folders.next();
        assert_eq!(folders.next(), None, "one run leaves one folder");
        folder
    }

    /// The process number in a file that a script made, by `mv` so that it is never seen half written.
    pub(crate) fn pid(&self, name: &str) -> Pid {
        until(|| self.path(name).exists());
        Pid::from_raw(fs::read_to_string(self.path(name)).unwrap().trim().parse().unwrap())
    }

    /// Every file of the runs, with its content.
    pub(crate) fn files(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut waiting = vec![self.path("runs")];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    waiting.push(path);
                } else {
                    found.push((path.clone(), read(&path)));
                }
            }
        }
        found
    }
}

/// A file as text; empty when it is not there.
pub(crate) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < HANG, "this never came to hold");
        sleep(Duration::from_millis(10));
    }
}

/// Whether a process runs; one that only waits to be reaped does not.
pub(crate) fn runs(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// A process under way.
pub(crate) struct Started<'a> {
    scene: &'a Scene,
    child: Child,
}

impl<'a> Started<'a> {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// The numbers of its children and theirs, by the kernel's own list.
    pub(crate) fn descendants(&self) -> Vec<Pid> {
        let mut found = Vec::new();
        let mut waiting = vec![self.pid()];
        while let Some(pid) = waiting.pop() {
            for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
                let children = children.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()));
                waiting.extend(children.clone());
                found.extend(children);
            }
        }
        found
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until standard error holds a text.
    #[track_caller]
    pub(crate) fn until_stderr(&mut self, text: &str) {
        let begun = Instant::now();
        let stderr = self.scene.path("stderr");
        while !read(&stderr).contains(text) {
            assert!(!self.has_ended() && begun.elapsed() < HANG, "`{text}` never came:\n{}", read(&stderr));
            sleep(Duration::from_millis(10));
        }
    }

    /// Waits until so many requests are on disk.
    #[track_caller]
    pub(crate) fn until_requests(&mut self, count: usize) {
        let begun = Instant::now();
        let lines = || self.scene.run_folder().map(|folder| read(&folder.join("requests.jsonl")).lines().count());
        while lines().unwrap_or(0) < count {
            assert!(begun.elapsed() < HANG, "{count} requests never came:\n{}", read(&self.scene.path("stderr")));
            sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ran<'a> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let (stdout, stderr) = (read(&self.scene.path("stdout")), read(&self.scene.path("stderr")));
                return Ran { scene: self.scene, status, stdout, stderr };
            }
            assert!(begun.elapsed() < HANG, "it hangs:\n{}", read(&self.scene.path("stderr")));
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        // A test that failed leaves nothing running; what goodput launched ends with it.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A process that has ended.
pub(crate) struct Ran<'a> {
    scene: &'a Scene,
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran<'_> {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{:?}\n{}\n{}", self.status, self.stdout, self.stderr);
        self
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(crate) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Asserts that standard error holds these texts.
    #[track_caller]
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "`{text}` is not said in:\n{}", self.stderr);
        }
        self
    }

    /// Asserts that standard output holds these texts, however its lines are broken.
    #[track_caller]
    pub(crate) fn shows(self, texts: &[&str]) -> Self {
        let flowing = self.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in texts {
            assert!(flowing.contains(text), "`{text}` is not shown in:\n{}", self.stdout);
        }
        self
    }

    /// Asserts that nothing was begun: no run folder.
    #[track_caller]
    pub(crate) fn began_nothing(self) -> Self {
        assert_eq!(self.scene.run_folder(), None);
        self
    }

    /// The stored result, which must follow its published schema.
    #[track_caller]
    pub(crate) fn result(&self) -> RunResult {
        let folder = self.scene.run_folder().expect("a run folder");
        let text = fs::read_to_string(folder.join("result.json")).expect("result.json");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_valid(&value);
        RunResult { value, folder }
    }
}

/// Asserts that a result follows the published schema.
#[track_caller]
pub(crate) fn assert_valid(result: &Value) {
    assert_follows("result", result);
}

/// Asserts that a value follows a published schema.
#[track_caller]
pub(crate) fn assert_follows(name: &str, value: &Value) {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{name}.schema.json"));
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// A stored result.
pub(crate) struct RunResult {
    pub(crate) value: Value,
    pub(crate) folder: PathBuf,
}

impl RunResult {
    pub(crate) fn overall(&self) -> &str {
        self.value["verdict"]["overall"].as_str().unwrap()
    }

    /// Status and reason of a row.
    #[track_caller]
    pub(crate) fn row(&self, id: &str) -> (&str, &str) {
        let row = self.check(id).unwrap_or_else(|| panic!("no row `{id}` in {}", self.value["verdict"]));
        (row["status"].as_str().unwrap(), row["reason"].as_str().unwrap())
    }

    pub(crate) fn check(&self, id: &str) -> Option<&Value> {
        self.value["verdict"]["checks"].as_array().unwrap().iter().find(|check| check["id"] == id)
    }

    /// The lines of `requests.jsonl`, every one whole.
    #[track_caller]
    pub(crate) fn requests(&self) -> Vec<Value> {
        let mut text = String::new();
        File::open(self.folder.join("requests.jsonl")).unwrap().read_to_string(&mut text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
    }
}
