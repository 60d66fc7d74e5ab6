//! The wire corpus over real sockets: `replay.py` serves every case with its timing and its ending, and the driver must
//! conclude from it what the case says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use goodput::contract::Endpoint;
use goodput::drive::Exchange;
use goodput::observe::{Protocol, RequestTrace, Warning};
use goodput::workload::{Content, Workload};
use serde_json::Value;

use self::corpus::Case;
use crate::client::{Client, endpoint};

#[path = "../support/wire.rs"]
#[expect(dead_code, reason = "the bytes of the cases are fed by the tests in process; here the server sends them")]
mod corpus;

const MS: u64 = 1_000_000;

/// The cases assume that a silence of so long ends a reply.
const IDLE: Duration = Duration::from_secs(1);

/// The replay of the corpus, on a port of its own.
struct Replay {
    process: Child,
    url: String,
}

impl Replay {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wire/replay.py");
        let mut process = Command::new("python3")
            .arg(script)
            .args(["--port", "0", "--quiet"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        Self { process, url: url.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned() }
    }

    fn url(&self, case: &Case) -> String {
        format!("{}/case/{}/v1/chat/completions", self.url, case.id)
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn protocol(case: &Case) -> Protocol {
    Protocol::from_name(&case.adapter).expect("a dialect that is read")
}

/// What does not depend on how the bytes were cut on their way.
const UNCUT: [&str; 23] = [
    "outcome",
    "first_output_kind",
    "text",
    "text_any_of",
    "reasoning",
    "refusal",
    "tool_calls",
    "texts_by_choice",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cached_tokens",
    "finish_reason",
    "finish_reason_raw",
    "truncated",
    "done_seen",
    "output_chunks",
    "http_status",
    "retry_after_s",
    "error_contains",
    "also_accept",
    "close_code",
    "audio_bytes",
];

async fn ask(replay: &Replay, case: &Case) -> (u64, Exchange) {
    let protocol = protocol(case);
    let mut endpoint = endpoint(&replay.url(case));
    endpoint.protocol = protocol;
    endpoint.idle_timeout = IDLE;
    endpoint.timeout = Duration::from_secs(15);
    let client = Client::of(&endpoint);
    let content = content(&endpoint);
    let due_ns = client.clock.now_ns();
    (due_ns, client.send_content(content, None).await)
}

/// What the protocol itself sends for a prompt.
fn content(endpoint: &Endpoint) -> Content {
    let fields = [("prompt".to_owned(), Value::from("x")), ("max_tokens".to_owned(), Value::from(9))];
    let case = goodput::workload::Case { id: "one".to_owned(), fields: fields.into_iter().collect() };
    let template = endpoint.default_payload(|field| case.fields.contains_key(field));
    let workload = Workload::build(&[case], &template, "m", 1, endpoint.shape(), &BTreeMap::new());
    workload.expect("the payload can be filled").cases()[0].content.clone()
}

/// The instants of a reply that must not come before those of the case, nor in another order.
fn misplaced(case: &Case, due_ns: u64, exchange: &Exchange) -> Vec<String> {
    let trace = &exchange.trace;
    let instants = [
        ("due", Some(due_ns)),
        ("sent", exchange.sent_ns),
        ("first output", trace.first_output_ns),
        ("first answer", trace.first_answer_ns),
        ("last output", trace.last_output_ns),
        ("finished", Some(trace.finished_ns)),
    ];
    let known: Vec<_> = instants.iter().filter_map(|(name, at)| at.map(|at| (*name, at))).collect();
    let mut faults: Vec<String> = known
        .windows(2)
        .filter(|two| two[0].1 > two[1].1)
        .map(|two| format!("{}: {} at {} ns comes after {} at {} ns", case.id, two[0].0, two[0].1, two[1].0, two[1].1))
        .collect();
    let outputs = case.expect["output_at_ms"].as_array().cloned().unwrap_or_default();
    let earliest = |at: Option<&Value>| at.and_then(Value::as_u64).map(|ms| due_ns + ms * MS);
    for (name, seen, earliest) in [
        ("first output", trace.first_output_ns, earliest(outputs.first())),
        ("last output", trace.last_output_ns, earliest(outputs.last())),
    ] {
        if let (Some(seen), Some(earliest)) = (seen, earliest)
            && seen < earliest
        {
            faults.push(format!("{}: {name} {} ns before it was written", case.id, earliest - seen));
        }
    }
    // The server goes silent for 15 s where it hangs; whoever is finished in half of that did not wait for it.
    let decided_by = case.expect.get("decided_by_ms").and_then(Value::as_u64).unwrap_or(2_500);
    if trace.finished_ns > due_ns + (decided_by + 5_000) * MS {
        faults.push(format!("{}: finished only after {} ms", case.id, (trace.finished_ns - due_ns) / MS));
    }
    faults
}

/// Warnings apart from the one that depends on how bytes were cut, which a busy machine may cut otherwise.
fn steady_warnings(trace: &RequestTrace) -> Vec<Value> {
    let steady = trace.warnings.iter().filter(|warning| **warning != Warning::Coalesced);
    steady.map(|warning| serde_json::to_value(warning).unwrap()).collect()
}

fn expected_warnings(case: &Case) -> Option<Vec<Value>> {
    let unasserted = case.expect.get("unasserted").and_then(Value::as_array);
    if unasserted.is_some_and(|fields| fields.iter().any(|field| field == "warnings")) {
        return None;
    }
    let expected = case.expect["warnings"].as_array()?;
    Some(expected.iter().filter(|warning| *warning != "coalesced").cloned().collect())
}

fn faults(case: &Case, due_ns: u64, exchange: &Exchange) -> Vec<String> {
    // The messages of plain sound are the reads that bring it.
    let cut = |field: &str| case.adapter == "openai_audio" && field == "output_chunks";
    let fields: Vec<&str> = UNCUT.into_iter().filter(|field| !cut(field)).collect();
    let mut faults = case.differences(&exchange.trace, &fields);
    faults.extend(misplaced(case, due_ns, exchange));
    let mut found = steady_warnings(&exchange.trace);
    if let Some(mut expected) = expected_warnings(case) {
        let order = |value: &Value| value.to_string();
        found.sort_by_key(order);
        expected.sort_by_key(order);
        if found != expected {
            faults.push(format!("{}: warnings are {found:?}, expected {expected:?}", case.id));
        }
    }
    faults
}

#[tokio::test]
async fn every_case_over_tcp_is_concluded_as_the_corpus_says() {
    let replay = Replay::start();
    let cases = Case::all();
    assert_eq!(cases.len(), 96, "the corpus has 96 cases");
    let replies = join_all(cases.iter().map(|case| ask(&replay, case))).await;
    let faults: Vec<String> =
        cases.iter().zip(&replies).flat_map(|(case, (due_ns, exchange))| faults(case, *due_ns, exchange)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Cases whose conclusions lie far apart, for the whole way through the binary.
const THROUGH_THE_BINARY: [&str; 14] = [
    "audio-baseline",
    "audio-empty-200",
    "cmpl-baseline",
    "http-429-retry-after",
    "http-empty-reply",
    "json-baseline",
    "sse-baseline",
    "sse-eof-before-finish",
    "sse-error-first",
    "sse-finish-length",
    "sse-html-200",
    "sse-reasoning-content",
    "ws-baseline",
    "ws-close-1011",
];

/// The request that `goodput smoke` writes with `--output`, and its exit code.
fn smoke(replay: &Replay, case: &Case, folder: &Path) -> (i32, Value) {
    let output = folder.join(format!("{}.json", case.id));
    let done = Command::new(env!("CARGO_BIN_EXE_goodput"))
        .args(["smoke", "--url", &replay.url(case), "--protocol", &case.adapter, "--prompt", "x"])
        .args(["--idle-timeout", "1s", "--timeout", "15s", "--output"])
        .arg(&output)
        .output()
        .unwrap();
    let code = done.status.code().unwrap_or(-1);
    let text = std::fs::read_to_string(output)
        .unwrap_or_else(|_| panic!("{}: no output: {}", case.id, String::from_utf8_lossy(&done.stderr)));
    let mut file: Value = serde_json::from_str(&text).unwrap();
    (code, file["requests"][0].take())
}

#[test]
fn smoke_says_of_a_case_what_the_corpus_says() {
    let replay = Replay::start();
    let folder = tempfile::tempdir().unwrap();
    let cases: BTreeMap<String, Case> = Case::all().into_iter().map(|case| (case.id.clone(), case)).collect();
    for id in THROUGH_THE_BINARY {
        let case = &cases[id];
        let (code, request) = smoke(&replay, case, folder.path());
        let fields = [
            ("outcome", "outcome"),
            ("text", "text"),
            ("reasoning", "reasoning"),
            ("input_tokens", "input_tokens"),
            ("output_tokens", "output_tokens"),
            ("reasoning_tokens", "reasoning_tokens"),
            ("finish_reason", "finish_reason"),
            ("first_output_kind", "first_output_kind"),
        ];
        for (ours, theirs) in fields {
            assert_eq!(request[ours], case.expect[theirs], "{id}: {ours}");
        }
        // What is known only when a reply began is null before, never 0 or false.
        if case.status.is_some() {
            assert_eq!(request["truncated"], case.expect["truncated"], "{id}");
            assert_eq!(request["output_chunks"], case.expect["output_chunks"], "{id}");
        } else {
            assert_eq!((&request["output_chunks"], &request["first_output_ns"]), (&Value::Null, &Value::Null), "{id}");
        }
        // Proven not to work is 1; nobody there to prove anything is UNKNOWN.
        let expected = match case.expect["outcome"].as_str().unwrap() {
            "ok" => 0,
            "no_response" => 3,
            _ => 1,
        };
        assert_eq!(code, expected, "{id}");
    }
}
