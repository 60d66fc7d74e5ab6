//! Endpoints that are not there, do not come up, do not answer, or go away.

use std::net::TcpListener;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::scene::{Contract, RunResult, SIMULATED, Scene, runs, until};
use crate::scripted::{Answer, Scripted, streamed};

/// A port that nobody listens on.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A launched command whose `ready.path` is asked at a port that the test knows.
fn launched(port: u16, command: &str) -> String {
    let command = serde_json::to_string(&["sh", "-c", command]).unwrap();
    format!(
        "url: http://127.0.0.1:{port}/v1/chat/completions
  launch:
    command: {command}
    ready: {{ path: /health, within: 600ms }}
    stop_within: 2s"
    )
}

#[track_caller]
fn assert_nothing_measured(result: &RunResult) {
    for step in result.value["steps"].as_array().unwrap() {
        assert_eq!(step["trials"], serde_json::json!([]), "{step}");
        assert!(step["goodput"].is_null() && step["not_measured"].is_string(), "{step}");
    }
    assert_eq!(result.value["completeness"]["measured"], 0);
}

#[test]
fn an_external_endpoint_behind_a_closed_port_is_unknown() {
    let scene = Scene::with(&Contract::of(format!("url: http://127.0.0.1:{}/v1", closed_port())), "");
    let ran = scene.gate().exits(3).shows(&["UNKNOWN tiny", "endpoint_down", "Connection refused"]);
    let result = ran.result();
    assert_eq!(result.overall(), "UNKNOWN");
    for row in ["endpoint", "success_rate", "e2e_p95", "completeness"] {
        assert_eq!(result.row(row), ("UNKNOWN", "endpoint_down"), "{row}");
    }
    assert_nothing_measured(&result);
    scene.run(scene.goodput(&["smoke", "contract.yaml"])).exits(3).shows(&["UNKNOWN", "Connection refused"]);
}

#[test]
fn a_launched_command_that_exits_at_once_fails_with_its_last_words() {
    let script = "echo loading; echo 'out of memory: 80 GiB' >&2; exit 3";
    let scene = Scene::with(&Contract::of(launched(closed_port(), script)), "");
    let ran = scene.gate().exits(1).shows(&["FAIL tiny", "endpoint_not_ready", "exited with code 3"]);
    let ran = ran.shows(&["out of memory: 80 GiB"]);
    let result = ran.result();
    assert_eq!(result.row("endpoint"), ("FAIL", "endpoint_not_ready"));
    assert_eq!(result.value["endpoint"]["exited"], "exited with code 3");
    assert_eq!(result.value["endpoint"]["log_tail"], serde_json::json!(["loading", "out of memory: 80 GiB"]));
    assert_nothing_measured(&result);
    let log = std::fs::read_to_string(result.folder.join("endpoint.log")).unwrap();
    assert_eq!(log, "loading\nout of memory: 80 GiB\n");
    let summary = std::fs::read_to_string(result.folder.join("summary.md")).unwrap();
    assert!(summary.contains("out of memory"), "{summary}");
    scene.run(scene.goodput(&["smoke", "contract.yaml"])).exits(1).shows(&["FAIL", "out of memory: 80 GiB"]);
}

#[test]
fn a_launched_command_that_never_becomes_ready_fails_and_is_stopped() {
    let script = "echo still loading; sleep 1000 & echo $! > new; mv new child; wait";
    let scene = Scene::with(&Contract::of(launched(closed_port(), script)), "");
    let ran = scene.gate().exits(1).shows(&["endpoint_not_ready", "was not ready within 600ms", "still loading"]);
    let result = ran.result();
    assert_eq!(result.row("endpoint"), ("FAIL", "endpoint_not_ready"));
    assert_nothing_measured(&result);
    assert!(!runs(scene.pid("child")));
}

#[test]
fn a_program_that_is_missing_fails_with_what_to_do() {
    let endpoint = launched(closed_port(), "").replace("\"sh\"", "\"no-such-server\"");
    let scene = Scene::with(&Contract::of(endpoint), "");
    let ran = scene.gate().exits(1).shows(&["`no-such-server` was not found", "put its folder on PATH"]);
    assert_eq!(ran.result().row("endpoint"), ("FAIL", "endpoint_not_ready"));
}

#[test]
fn what_answers_already_is_not_taken_for_what_is_launched() {
    let other = Scripted::start(|_, _| Answer::Bytes(streamed("hi", "stop")));
    let scene = Scene::with(&Contract::of(launched(other.address.port(), "sleep 1000")), "");
    scene.gate().exits(2).says(&["something answers at", "stop it"]);
    assert_eq!(other.seen(), 0);
}

#[test]
fn certificates_that_cannot_be_read_are_told_before_anything_is_started() {
    let endpoint = format!("{}\n  ca_file: missing.pem", launched(closed_port(), "touch started; sleep 1000"));
    let scene = Scene::with(&Contract::of(endpoint), "");
    scene.gate().exits(2).says(&["ca_file", "missing.pem"]);
    assert!(!scene.path("started").exists(), "the endpoint was started");
}

#[test]
fn a_server_that_accepts_and_never_answers_ends_in_unknown() {
    let server = Scripted::start(|_, _| Answer::Silence);
    let scene = Scene::with(&Contract::of(format!("url: {}\n  timeout: 400ms", server.url())), "");
    // Its longest limit may not outlive the timeout.
    let text = Contract::of(format!("url: {}\n  timeout: 400ms", server.url())).text();
    scene.write("contract.yaml", text.replace("at_most: 8s", "at_most: 300ms"));
    let ran = scene.gate().exits(3).shows(&["endpoint_down", "timeout"]);
    assert_eq!(ran.result().row("endpoint"), ("UNKNOWN", "endpoint_down"));
    assert_nothing_measured(&ran.result());
    assert!(server.seen() > 0);
}

#[test]
fn a_server_that_falls_silent_under_load_ends_in_timeouts() {
    let server = Scripted::start(|number, _| match number {
        0 => Answer::Bytes(streamed("hi", "stop")),
        _ => Answer::Silence,
    });
    let contract = Contract::of(format!("url: {}\n  timeout: 400ms", server.url()));
    let scene = Scene::new();
    scene.write("contract.yaml", contract.text().replace("at_most: 8s", "at_most: 300ms"));
    let ran = scene.gate();
    let result = ran.result();
    let requests = result.requests();
    let window: Vec<_> = requests.iter().filter(|line| line["segment"] == "window").collect();
    // On a busy machine a trial can be void and is repeated.
    let trials = requests.iter().map(|line| line["trial"].as_u64().unwrap()).max().unwrap() as usize + 1;
    assert!(trials >= 2);
    assert_eq!(window.len(), 60 * trials, "every scheduled request of every trial is there");
    for line in &window {
        assert_eq!(
            (&line["outcome"], &line["first_output_ns"]),
            (&"timeout".into(), &serde_json::Value::Null),
            "{line}"
        );
    }
    // Everything scheduled is in the denominator: none of 60 succeeded.
    assert_eq!(result.value["steps"][0]["success_rate"], 0);
    let row = result.row("success_rate");
    assert!([("FAIL", "broken"), ("UNKNOWN", "generator_saturated")].contains(&row), "{row:?}");
    let expected = if result.overall() == "FAIL" { 1 } else { 3 };
    ran.exits(expected);
}

/// What must be true of a run whose endpoint went away after load had begun.
#[track_caller]
fn assert_kept(result: &RunResult, at_least: usize) {
    let requests = result.requests();
    assert!(requests.len() >= at_least, "{} requests are kept", requests.len());
    assert!(requests.iter().any(|line| line["outcome"] == "ok"), "what succeeded is kept");
    let counted: u64 = result.value["steps"].as_array().unwrap().iter().flat_map(trials).map(decided).sum();
    let window = requests.iter().filter(|line| line["segment"] == "window").count() as u64;
    assert_eq!(counted, window, "result and requests agree");
    assert_eq!(result.row("completeness"), ("UNKNOWN", "endpoint_down"));
    // The step that was to come is not measured, and says so.
    let last = &result.value["steps"][1];
    assert_eq!(last["trials"], serde_json::json!([]), "{last}");
    assert!(last["goodput"].is_null() && last["not_measured"].is_string(), "{last}");
}

fn trials(step: &serde_json::Value) -> &[serde_json::Value] {
    step["trials"].as_array().unwrap()
}

fn decided(trial: &serde_json::Value) -> u64 {
    trial["window"]["decided"].as_u64().unwrap()
}

#[test]
fn a_launched_endpoint_that_exits_under_load_ends_the_run_as_fail() {
    let mut contract = Contract::of(SIMULATED);
    contract.trial = "requests: 2000, warm_up: 200ms";
    let scene = Scene::with(&contract, "faults: [{ when: { at_request: 40 }, what: { kind: exit, code: 9 } }]\n");
    let ran = scene.gate().exits(1).shows(&["exited with code 9"]);
    let result = ran.result();
    assert_eq!(result.row("endpoint"), ("FAIL", "endpoint_not_ready"));
    assert_eq!(result.value["endpoint"]["exited"], "exited with code 9");
    assert!(!result.value["endpoint"]["log_tail"].as_array().unwrap().is_empty());
    assert_eq!(result.value["stopped"]["cause"], "endpoint_down");
    assert_kept(&result, 30);
    scene.run(scene.goodput(&["judge", &result.folder.display().to_string()])).exits(1);
}

#[test]
fn a_launched_endpoint_that_is_killed_ends_the_run_as_fail() {
    // A launched command of one's own: a shell that runs the simulated endpoint, at a port that was free a moment ago.
    let goodput = env!("CARGO_BIN_EXE_goodput");
    let port = closed_port();
    let script =
        format!("echo $$ > new; mv new server; exec '{goodput}' simulate simulated.yaml --listen 127.0.0.1:{port}");
    let mut contract = Contract::of(launched(port, &script).replace("within: 600ms", "within: 60s"));
    contract.trial = "requests: 2000, warm_up: 200ms";
    let scene = Scene::with(&contract, "");
    let mut gate = scene.start_gate();
    gate.until_requests(20);
    kill(scene.pid("server"), Signal::SIGKILL).unwrap();
    let ran = gate.end().exits(1).shows(&["was killed by signal 9 (SIGKILL)"]);
    let result = ran.result();
    assert_eq!(result.row("endpoint"), ("FAIL", "endpoint_not_ready"));
    assert_kept(&result, 20);
}

#[test]
fn an_external_endpoint_that_dies_under_load_ends_the_run_early() {
    let server = Scene::with(&Contract::of(SIMULATED), "");
    let mut simulated = server.start(&mut server.goodput(&["simulate", "simulated.yaml", "--listen", "127.0.0.1:0"]));
    until(|| crate::scene::read(&server.path("stdout")).contains("listening on "));
    let url = crate::scene::read(&server.path("stdout")).trim().replace("listening on ", "");
    let url = if url.contains("/v1") { url } else { format!("{}/v1/chat/completions", url.trim_end_matches('/')) };

    let mut contract = Contract::of(format!("url: {url}"));
    contract.trial = "requests: 2000, warm_up: 200ms";
    contract.more = "stability: [{ name: health, exit_code: { command: [sh, -c, \"test ! -e dead\"] } }]".to_owned();
    let scene = Scene::with(&contract, "");
    let mut gate = scene.start_gate();
    gate.until_requests(20);
    scene.write("dead", "");
    simulated.signal(Signal::SIGKILL);
    until(|| simulated_ended(&mut simulated));
    let ran = gate.end().exits(1).shows(&["endpoint_down", "requests in a row had no answer", "Connection refused"]);
    let result = ran.result();
    assert_eq!(result.row("endpoint"), ("UNKNOWN", "endpoint_down"));
    // Nobody knows whether the change did it; the stability row decides.
    assert_eq!(result.row("health"), ("FAIL", "unhealthy"));
    assert_kept(&result, 20);
    // The plan was 50 s and more of load: most of it was never sent.
    assert!(result.requests().len() < 1000, "{}", result.requests().len());
}

fn simulated_ended(started: &mut crate::scene::Started<'_>) -> bool {
    sleep(Duration::from_millis(5));
    started.has_ended()
}
