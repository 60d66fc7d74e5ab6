//! Whole runs of the gate against a server that notes what it saw.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::sleep_until;

use crate::client::HANG;
use crate::server::{Server, read_request, reply};

/// Every request is served at once by a server of its own; while a stall lasts no work progresses anywhere, and work in
/// service is suspended and resumes (method, section 13: the parallel server). All in microseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parallel {
    pub(crate) service: u64,
    /// Start and length of each.
    pub(crate) stalls: Vec<(u64, u64)>,
}

impl Parallel {
    /// When a request that arrives at `arrival` is completed.
    pub(crate) fn completion(&self, arrival: u64) -> u64 {
        let (mut now, mut left) = (arrival, self.service);
        for (start, length) in self.stalls.iter().filter(|(start, length)| arrival < start + length) {
            if now + left <= *start {
                break;
            }
            left -= start.saturating_sub(now);
            now = start + length;
        }
        now + left
    }
}

/// What the server saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The `x-request-id` of every request, in the order they came.
    pub(crate) ids: Vec<String>,
    /// When the first request of the first trial was there.
    pub(crate) origin: Option<Instant>,
    pub(crate) open: usize,
    pub(crate) most_open: usize,
    /// The most that a reply left later than it was to.
    pub(crate) latest: Duration,
}

impl Seen {
    /// Numbers of the arrivals that came, of one trial.
    pub(crate) fn arrivals(&self, trial: u32) -> Vec<u64> {
        self.ids.iter().filter_map(|id| place(id)).filter(|(of, _)| *of == trial).map(|(_, arrival)| arrival).collect()
    }
}

/// Trial and arrival that an `x-request-id` ends in; `None` where it asks whether the endpoint is ready.
fn place(id: &str) -> Option<(u32, u64)> {
    let mut parts = id.rsplit('-');
    let arrival = parts.next()?.parse().ok()?;
    Some((parts.next()?.parse().ok()?, arrival))
}

/// A server that behaves like [`Parallel`], counted from the first request of the first trial.
pub(crate) struct Endpoint {
    pub(crate) server: Server,
    pub(crate) seen: Arc<Mutex<Seen>>,
    _runtime: Runtime,
}

impl Endpoint {
    pub(crate) fn start(parallel: Parallel) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let server = runtime.block_on(Server::start({
            let seen = Arc::clone(&seen);
            move |_, stream| serve(parallel.clone(), stream, Arc::clone(&seen))
        }));
        Self { server, seen, _runtime: runtime }
    }

    pub(crate) fn seen<T>(&self, look: impl Fn(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap())
    }

    /// Waits until an arrival of a trial has come; `false` when it never does because the run is over.
    pub(crate) fn wait_for(&self, trial: u32, arrival: u64, run: &mut Child) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < HANG {
            if self.seen(|seen| seen.ids.last().and_then(|id| place(id)).is_some_and(|at| at >= (trial, arrival))) {
                return true;
            }
            if run.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("no hang");
    }
}

async fn serve(parallel: Parallel, mut stream: TcpStream, seen: Arc<Mutex<Seen>>) {
    while let Some(request) = read_request(&mut stream).await {
        let now = Instant::now();
        let id = request.header("x-request-id").unwrap().to_owned();
        let origin = {
            let mut seen = seen.lock().unwrap();
            if place(&id) == Some((0, 0)) {
                seen.origin = Some(now);
            }
            seen.ids.push(id);
            seen.open += 1;
            seen.most_open = seen.most_open.max(seen.open);
            seen.origin
        };
        let due = origin.map_or(now, |origin| {
            let arrival = now.saturating_duration_since(origin).as_micros() as u64;
            origin + Duration::from_micros(parallel.completion(arrival))
        });
        sleep_until(due.into()).await;
        let late = due.elapsed();
        {
            let mut seen = seen.lock().unwrap();
            seen.open -= 1;
            seen.latest = seen.latest.max(late);
        }
        if stream.write_all(reply("").as_bytes()).await.is_err() {
            return;
        }
    }
}

/// What a run left.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    pub(crate) result: Value,
    pub(crate) requests: Vec<Value>,
}

impl Run {
    pub(crate) fn trial(&self, number: usize) -> &Value {
        &self.result["steps"][0]["trials"][number]
    }

    /// The requests of one trial.
    pub(crate) fn of_trial(&self, number: u64) -> Vec<&Value> {
        self.requests.iter().filter(|request| request["trial"] == number).collect()
    }

    pub(crate) fn check(&self, id: &str) -> &Value {
        let checks = self.result["verdict"]["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no row {id} in {checks:#?}"))
    }
}

/// A run of the gate under way.
pub(crate) struct Gate {
    pub(crate) child: Child,
    pub(crate) folder: TempDir,
}

impl Gate {
    /// Starts the gate with a contract of these parts.
    pub(crate) fn start(endpoint: &Endpoint, traffic: &str, slo: &str) -> Self {
        Self::spawn(endpoint, traffic, slo, Command::new(env!("CARGO_BIN_EXE_goodput")))
    }

    pub(crate) fn spawn(endpoint: &Endpoint, traffic: &str, slo: &str, mut command: Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // One trial tells all that these tests ask.
        let traffic = traffic.replacen("{ ", "{ claim: this_run, ", 1);
        let contract = format!(
            "version: 1\nname: truth\nendpoint:\n  url: {}\n  protocol: openai-chat\n  model: m\n  timeout: 20s\n\
             workload:\n  cases: [{{ id: a, prompt: one }}, {{ id: b, prompt: two }}]\n  seed: 7\n\
             traffic: {traffic}\nslo: {slo}\n",
            endpoint.server.url()
        );
        std::fs::write(folder.path().join("contract.yaml"), contract).unwrap();
        command.args(["gate", "--runs", "runs", "contract.yaml"]);
        let child = command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child, folder }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    pub(crate) fn finish(self) -> Run {
        let done = self.child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        let folder: PathBuf = std::fs::read_dir(self.folder.path().join("runs"))
            .unwrap_or_else(|_| panic!("no run: {stderr}"))
            .map(|entry| entry.unwrap().path())
            .next()
            .unwrap();
        let read = |name: &str| {
            std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}: {stderr}"))
        };
        let lines = read("requests.jsonl");
        Run {
            code: done.status.code(),
            result: serde_json::from_str(&read("result.json")).unwrap(),
            requests: lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            stderr,
        }
    }
}

pub(crate) fn at(request: &Value, field: &str) -> u64 {
    request[field].as_u64().unwrap_or_else(|| panic!("no {field} in {request}"))
}
