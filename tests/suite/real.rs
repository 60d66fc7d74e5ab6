//! Real servers through the real binary. `tests/run.sh` starts them and names each in two variables, which end in `_URL` and
//! `_MODEL`. What our records say is held against what the servers say by themselves.

mod actions;
mod github;
mod metrics;
mod s3;
mod text;
mod voice;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A real server, and a folder for one test. No other test talks to the server while this lives, unless they share it: its
/// counters are compared with what one run sent.
struct Real {
    url: String,
    model: String,
    folder: TempDir,
    _alone: File,
}

impl Real {
    /// The server that the variables of this beginning name, when one was started.
    fn server(variables: &str) -> Option<Self> {
        Self::locked(variables, File::lock)
    }

    /// The same, for tests that keep out of each other's way on the server.
    fn shared(variables: &str) -> Option<Self> {
        Self::locked(variables, File::lock_shared)
    }

    #[expect(clippy::print_stderr, reason = "a test that did nothing must say so")]
    fn locked(variables: &str, lock: impl Fn(&File) -> std::io::Result<()>) -> Option<Self> {
        let (url, model) = (format!("{variables}_URL"), format!("{variables}_MODEL"));
        let (Ok(url), Ok(model)) = (std::env::var(&url), std::env::var(&model)) else {
            eprintln!("skipped: no real server is named in {url} and {model}; tests/run.sh starts one");
            return None;
        };
        let path = std::env::temp_dir().join(format!("goodput-real-{}.lock", url.replace(['/', ':'], "-")));
        let alone = File::create(path).expect("a lock file");
        lock(&alone).expect("the lock");
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["cases.json", "spoken.json", "speech.wav"] {
            fs::copy(source(name), folder.path().join(name)).expect("what the contracts name");
        }
        Some(Self { url, model, folder, _alone: alone })
    }

    fn host(&self) -> &str {
        self.url.strip_prefix("http://").expect("an http URL")
    }

    /// Writes the contract of that name so that it points at the server.
    fn contract(&self, name: &str) -> PathBuf {
        let text = fs::read_to_string(source(name)).expect("the contract");
        assert!(text.contains("127.0.0.1:18080") && text.contains(&format!("model: {}\n", self.model)), "{text}");
        let path = self.folder.path().join(name);
        fs::write(&path, text.replace("127.0.0.1:18080", self.host())).expect("a writable folder");
        path
    }

    fn goodput(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
        command.current_dir(self.folder.path()).args(arguments).output().expect("the binary runs")
    }

    /// Head and body of a page of the server.
    fn page(&self, path: &str) -> (String, String) {
        let (head, body) = self.exchange(&format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.host()));
        (head, String::from_utf8(body).expect("a text"))
    }

    /// What the server replies to a JSON text.
    fn post(&self, path: &str, body: &Value) -> Vec<u8> {
        let (host, body) = (self.host(), body.to_string());
        let fields = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
        let (head, reply) = self.exchange(&format!("POST {path} HTTP/1.0\r\nHost: {host}\r\n{fields}\r\n\r\n{body}"));
        assert!(head.contains(" 200 "), "{head}");
        reply
    }

    /// Head and body of the reply to a request as it stands.
    fn exchange(&self, request: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.host()).expect("the server accepts");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("the request");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("the reply");
        let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head and a body");
        let body = reply.split_off(end + 4);
        (String::from_utf8(reply).expect("a head is text"), body)
    }

    /// Runs the gate, which must pass or say that this machine was too busy, and reads what it left.
    fn gate(&self, contract: &str) -> Run {
        let contract = self.contract(contract);
        let output = self.goodput(&["gate", "--runs", "runs", &contract.display().to_string()]);
        let code = output.status.code().expect("an exit code");
        let mut folders: Vec<PathBuf> = fs::read_dir(self.folder.path().join("runs"))
            .expect("runs")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        let folder = folders.pop().expect("a run's folder");
        assert!(folders.is_empty(), "one run leaves one folder: {folders:?}");
        let lines = fs::read_to_string(folder.join("requests.jsonl")).expect("requests.jsonl");
        let result = fs::read_to_string(folder.join("result.json")).expect("result.json");
        let run = Run {
            requests: lines.lines().map(|line| serde_json::from_str(line).expect("a request")).collect(),
            result: serde_json::from_str(&result).expect("a result"),
            folder,
            code,
        };
        if !run.only_the_generator_was_busy() {
            assert_exit(&output, 0);
        }
        run
    }
}

/// What a gate left behind.
struct Run {
    folder: PathBuf,
    requests: Vec<Value>,
    result: Value,
    code: i32,
}

impl Run {
    /// UNKNOWN for no other reason than a load generator that shared its two cores with the server under test.
    fn only_the_generator_was_busy(&self) -> bool {
        let checks = self.result["verdict"]["checks"].as_array().expect("checks");
        let open = checks.iter().filter(|check| check["status"] != "PASS");
        self.code == 3 && open.into_iter().all(|check| check["reason"] == "generator_saturated")
    }

    /// The number of the trial that speaks for a step: the last.
    fn trial_of(&self, index: usize) -> u64 {
        let trials = self.step(index)["trials"].as_array().expect("trials");
        trials.last().expect("a trial")["trial"].as_u64().expect("a number")
    }

    /// The requests of one trial.
    fn trial(&self, trial: u64) -> impl Iterator<Item = &Value> {
        self.requests.iter().filter(move |request| request["trial"] == trial)
    }

    fn step(&self, index: usize) -> &Value {
        &self.result["steps"][index]
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real").join(name)
}

#[track_caller]
fn assert_exit(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "\nstandard output:\n{}\nstandard error:\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The files alone give the same verdict.
fn assert_judged_again(real: &Real, run: &Run) {
    let output = real.goodput(&["judge", &run.folder.display().to_string(), "--output-format", "json"]);
    assert_exit(&output, run.code);
    let again: Value = serde_json::from_slice(&output.stdout).expect("a result");
    assert_eq!(again["verdict"], run.result["verdict"]);
}

fn is_void(trial: &Value) -> bool {
    trial["health"]["faults"] != serde_json::json!([])
}
