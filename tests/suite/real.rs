//! A real inference server, llama.cpp with a tiny model, through the real binary.
//!
//! `tests/run.sh` starts the server and names it in `GOODPUT_REAL_URL` and `GOODPUT_REAL_MODEL`. Two things make exact
//! expectations possible: the model never ends a reply before `max_tokens`, and the server counts tokens by itself on its
//! metrics page, so that every token in our records can be accounted for by another tool.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Every case asks for so many output tokens, and gets them.
const MAX_TOKENS: u64 = 32;

/// The real server, and a folder for one test. No other test talks to the server while this lives: its counters are
/// compared with what one run sent.
struct Real {
    url: String,
    model: String,
    folder: TempDir,
    _alone: File,
}

impl Real {
    /// The server, when one was started.
    #[expect(clippy::print_stderr, reason = "a test that did nothing must say so")]
    fn server() -> Option<Self> {
        let (Ok(url), Ok(model)) = (std::env::var("GOODPUT_REAL_URL"), std::env::var("GOODPUT_REAL_MODEL")) else {
            eprintln!(
                "skipped: no real server is named in GOODPUT_REAL_URL and GOODPUT_REAL_MODEL; tests/run.sh starts one"
            );
            return None;
        };
        let lock = std::env::temp_dir().join(format!("goodput-real-{}.lock", url.replace(['/', ':'], "-")));
        let alone = File::create(lock).expect("a lock file");
        alone.lock().expect("the lock");
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::copy(source("cases.json"), folder.path().join("cases.json")).expect("the cases");
        Some(Self { url, model, folder, _alone: alone })
    }

    /// Writes the contract of that name so that it points at the server.
    fn contract(&self, name: &str) -> PathBuf {
        let text = fs::read_to_string(source(name)).expect("the contract");
        assert!(text.contains("http://127.0.0.1:18080") && text.contains("tiny-words"), "{text}");
        let text = text.replace("http://127.0.0.1:18080", &self.url).replace("tiny-words", &self.model);
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a writable folder");
        path
    }

    fn goodput(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
        command.current_dir(self.folder.path()).args(arguments).output().expect("the binary runs")
    }

    /// Head and body of a page of the server.
    fn page(&self, path: &str) -> (String, String) {
        let host = self.url.strip_prefix("http://").expect("an http URL");
        let mut stream = TcpStream::connect(host).expect("the server accepts");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").expect("the request");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("the reply");
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }

    /// Prompt tokens read and output tokens written since the server started, by its own count.
    fn counted_tokens(&self) -> Tokens {
        let (_, page) = self.page("/metrics");
        let counter = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(&format!("llamacpp:{name} ")));
            line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no counter {name} in\n{page}"))
        };
        Tokens { input: counter("prompt_tokens_total"), output: counter("tokens_predicted_total") }
    }

    /// Waits until the server has counted `expected` tokens more than `before`, which it does when it has closed the
    /// request, and then tells what it counted.
    fn tokens_since(&self, before: Tokens, expected: Tokens) -> Tokens {
        for _ in 0..100 {
            if self.counted_tokens().minus(before).output >= expected.output {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        self.counted_tokens().minus(before)
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

    /// Every token that the server counted since `before` is in the run's records, and the other way round. The gate may
    /// have sent one request before the first trial, to prove that the endpoint answers; a request that the end of the
    /// drain cancelled has no count of its own and at most `MAX_TOKENS`.
    fn accounts_for(&self, before: Tokens, run: &Run) {
        let recorded = run.tokens();
        let uncounted = run.requests.iter().filter(|request| request["output_tokens"].is_null()).count() as u64;
        let counted = self.tokens_since(before, recorded);
        let other = counted.output.checked_sub(recorded.output);
        assert!(recorded.output > 0);
        let fits = other.is_some_and(|other| match uncounted {
            0 => other == 0 || other == MAX_TOKENS,
            _ => other <= (1 + uncounted) * MAX_TOKENS,
        });
        assert!(fits, "recorded {recorded:?}, the server counted {counted:?}; {uncounted} requests without a count");
        let largest_prompt =
            run.requests.iter().filter_map(|request| request["input_tokens"].as_u64()).max().unwrap_or(0);
        let other = counted.input.checked_sub(recorded.input);
        assert!(
            other.is_some_and(|other| other <= (1 + uncounted) * largest_prompt),
            "recorded {recorded:?}, the server counted {counted:?}; {uncounted} requests without a count"
        );
    }
}

/// Tokens by somebody's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tokens {
    input: u64,
    output: u64,
}

impl Tokens {
    fn minus(self, before: Self) -> Self {
        Self { input: self.input - before.input, output: self.output - before.output }
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
    /// The tokens that our records add up to.
    fn tokens(&self) -> Tokens {
        let sum = |field: &str| self.requests.iter().filter_map(|request| request[field].as_u64()).sum();
        Tokens { input: sum("input_tokens"), output: sum("output_tokens") }
    }

    /// The requests of one trial.
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

/// What holds for every reply of this model that was read to its end.
fn assert_complete(request: &Value) {
    assert_whole(request);
    assert_eq!(request["finish_reason"], "length", "{request}");
    assert_eq!(request["truncated"], true, "{request}");
}

/// The same without how the server says that it ended.
fn assert_whole(request: &Value) {
    for (field, expected) in [("outcome", Value::from("ok")), ("status", 200.into()), ("error", Value::Null)] {
        assert_eq!(request[field], expected, "{field} in {request}");
    }
    assert_eq!(request["output_tokens"], MAX_TOKENS, "{request}");
    assert_eq!(request["output_chunks"], MAX_TOKENS, "this model sends one word a chunk: {request}");
    assert_eq!(request["first_output_kind"], "content", "{request}");
    assert_eq!(request["answerless"], false, "{request}");
    let instants = ["scheduled_ns", "sent_ns", "first_output_ns", "last_output_ns", "finished_ns"];
    let times: Vec<u64> = instants.iter().filter_map(|field| request[*field].as_u64()).collect();
    assert!(times.len() == instants.len() && times.is_sorted(), "{request}");
}

/// Warm-up and window are read to their end; the drain may have been cut when everything was decided.
fn assert_measured(run: &Run) {
    for request in run.requests.iter().filter(|request| request["segment"] != "drain" || request["outcome"] == "ok") {
        assert_complete(request);
    }
    let outcomes: BTreeSet<_> = run.requests.iter().filter_map(|request| request["outcome"].as_str()).collect();
    assert!(outcomes.is_subset(&BTreeSet::from(["ok", "cancelled"])), "{outcomes:?}");
    let mut prompts: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for request in &run.requests {
        let counts = prompts.entry(request["case"].as_str().expect("a case")).or_default();
        counts.extend(request["input_tokens"].as_u64());
    }
    let cases: Vec<&str> = prompts.keys().copied().collect();
    assert_eq!(cases, ["escapes", "hello", "ship", "unicode"]);
    assert!(prompts.values().all(|counts| counts.len() == 1), "a prompt has one length: {prompts:?}");
}

/// The files alone give the same verdict.
fn assert_judged_again(real: &Real, run: &Run) {
    let output = real.goodput(&["judge", &run.folder.display().to_string(), "--output-format", "json"]);
    assert_exit(&output, run.code);
    let again: Value = serde_json::from_slice(&output.stdout).expect("a result");
    assert_eq!(again["verdict"], run.result["verdict"]);
}

#[test]
fn smoke_shows_replies_whose_tokens_the_server_counted_too() {
    let Some(real) = Real::server() else { return };
    let (head, _) = real.page("/health");
    assert!(head.to_ascii_lowercase().contains("server: llama.cpp"), "this is no llama.cpp: {head}");

    for (protocol, path) in [
        ("openai-chat", "/v1/chat/completions"),
        ("openai-completions", "/v1/completions"),
        ("anthropic-messages", "/v1/messages"),
    ] {
        smoke_over(&real, protocol, path).iter().for_each(assert_complete);
    }
    // Over this dialect the server calls every reply completed, also one that was cut.
    for request in smoke_over(&real, "openai-responses", "/v1/responses") {
        assert_whole(&request);
        assert_eq!((&request["finish_reason"], &request["truncated"]), (&"stop".into(), &false.into()), "{request}");
    }
}

/// Asks each case twice in a dialect of the server; every token is one that the server counted by itself.
fn smoke_over(real: &Real, protocol: &str, path: &str) -> Vec<Value> {
    let before = real.counted_tokens();
    let url = format!("{}{path}", real.url);
    let flags = ["smoke", "--url", &url, "--protocol", protocol, "--model", &real.model, "--cases", "cases.json"];
    let output =
        real.goodput(&[flags.as_slice(), &["--clients", "2", "--rounds", "4", "--output", "smoke.json"]].concat());
    assert_exit(&output, 0);
    let text = fs::read_to_string(real.folder.path().join("smoke.json")).expect("the output file");
    let written: Value = serde_json::from_str(&text).expect("JSON");
    let requests = written["requests"].as_array().expect("a list of requests");
    assert_eq!(requests.len(), 2 * 4, "{protocol}");
    for request in requests {
        let text = request["text"].as_str().expect("the reply's text");
        assert_eq!(text.split_whitespace().count() as u64, MAX_TOKENS, "this model's tokens are words: {text}");
    }
    let run = Run { folder: PathBuf::new(), requests: requests.clone(), result: Value::Null, code: 0 };
    assert_eq!(real.tokens_since(before, run.tokens()), run.tokens(), "{protocol}");
    run.requests
}

#[test]
fn smoke_with_a_contract_finds_everything_in_order() {
    let Some(real) = Real::server() else { return };
    let contract = real.contract("contract-constant.yaml");
    let output = real.goodput(&["smoke", &contract.display().to_string()]);
    assert_exit(&output, 0);
}

#[test]
fn a_constant_sweep_measures_what_the_server_did() {
    let Some(real) = Real::server() else { return };
    let before = real.counted_tokens();
    let run = real.gate("contract-constant.yaml");
    real.accounts_for(before, &run);
    assert_measured(&run);
    assert_judged_again(&real, &run);
    for (index, per_second) in [(0, 4.0), (1, 8.0)] {
        let step = run.step(index);
        assert_eq!(step["load"]["rate_milli"], 1_000 * per_second as u64);
        assert_eq!(step["offered"], per_second);
        let trials = step["trials"].as_array().expect("trials");
        let window = &trials.last().expect("a trial")["window"];
        assert_eq!(window["scheduled"], 60);
        assert_eq!(window["outcomes"], serde_json::json!({ "ok": 60 }));
        assert_eq!(window["output_tokens"], 60 * MAX_TOKENS);
        // 60 replies of 32 tokens in the window's 15 or 7.5 seconds; one that is late at either end may be in or out.
        let tokens = step["output_tokens_per_second"].as_f64().expect("a rate");
        assert!((tokens / (MAX_TOKENS as f64 * per_second) - 1.0).abs() <= 2.0 / 60.0, "{tokens}");
        assert_eq!(step["success_rate"], 1_000_000);
        assert_eq!(step["metrics"]["tpot"]["count"], 60 * if trials.len() > 1 && is_void(&trials[1]) { 2 } else { 1 });
        let of_window = run.trial(run.trial_of(index)).filter(|request| request["segment"] == "window");
        assert_eq!(of_window.count(), 60);
    }
    assert_eq!(run.result["endpoint"]["kind"], "external");
    assert_eq!(run.result["probes"][0]["after"]["value"].as_f64(), Some(0.0));
}

#[test]
fn a_closed_loop_keeps_its_number_of_clients() {
    let Some(real) = Real::server() else { return };
    let before = real.counted_tokens();
    let run = real.gate("contract-closed.yaml");
    real.accounts_for(before, &run);
    assert_measured(&run);
    assert_judged_again(&real, &run);
    assert_eq!(run.result["capacity"], Value::Null, "a closed loop has no capacity in requests per second");
    for (index, clients) in [(0, 1), (1, 4)] {
        assert_eq!(run.step(index)["load"]["clients"], clients);
        assert_eq!(run.step(index)["offered"], Value::Null);
        assert_eq!(most_open_at_once(run.trial(run.trial_of(index))), clients, "clients");
    }
}

fn is_void(trial: &Value) -> bool {
    trial["health"]["faults"] != serde_json::json!([])
}

/// The largest number of requests between their sending and their end.
fn most_open_at_once<'a>(requests: impl Iterator<Item = &'a Value>) -> i64 {
    let mut changes = Vec::new();
    for request in requests {
        if let (Some(sent), Some(finished)) = (request["sent_ns"].as_u64(), request["finished_ns"].as_u64()) {
            changes.extend([(sent, 1), (finished, -1)]);
        }
    }
    // At one instant, ends come before beginnings.
    changes.sort_unstable();
    let open = changes.iter().scan(0, |open, (_, change)| {
        *open += change;
        Some(*open)
    });
    open.max().unwrap_or(0)
}
