//! SIGINT, SIGTERM and SIGKILL at any moment.

use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::scene::{Contract, RunResult, SIMULATED, Scene, read, runs, until};

/// Long enough that no test waits for its end.
const LONG: &str = "requests: 2000, warm_up: 30s";

const SIGNALS: [(Signal, i32); 2] = [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)];

/// What an interrupted run leaves: a valid result that claims nothing it has not seen.
#[track_caller]
fn assert_stopped(result: &RunResult, signal: Signal) {
    assert_eq!(result.value["stopped"], serde_json::json!({"cause": "signal", "number": signal as i32}));
    assert_eq!(result.overall(), "UNKNOWN");
    assert_eq!(result.row("completeness"), ("UNKNOWN", "cancelled"));
    assert!(result.folder.join("summary.md").is_file());
}

#[test]
fn a_signal_during_readiness_stops_what_was_launched() {
    let endpoint = "url: http://127.0.0.1:9/v1/chat/completions
  launch:
    command: [sh, -c, \"sleep 1000 & echo $! > new; mv new child; wait\"]
    stop_within: 5s";
    for (signal, code) in SIGNALS {
        let scene = Scene::with(&Contract::of(endpoint), "");
        let gate = scene.start_gate();
        let child = scene.pid("child");
        gate.signal(signal);
        let ran = gate.end().exits(code).shows(&["UNKNOWN tiny", "cancelled"]);
        assert_stopped(&ran.result(), signal);
        assert!(!runs(child));
    }
}

#[test]
fn a_signal_under_load_keeps_what_was_measured() {
    // In the warm-up and in the window.
    for (trial, (signal, code)) in [LONG, "requests: 2000, warm_up: 200ms"].into_iter().zip(SIGNALS) {
        let mut contract = Contract::of(SIMULATED);
        contract.trial = trial;
        let scene = Scene::with(&contract, "");
        let mut gate = scene.start_gate();
        gate.until_requests(20);
        let started = gate.descendants();
        assert!(started.len() >= 2, "the supervisor and the endpoint: {started:?}");
        gate.signal(signal);
        let ran = gate.end().exits(code);
        let result = ran.result();
        assert_stopped(&result, signal);
        assert!(result.requests().len() >= 20);
        assert_eq!(result.row("success_rate").0, "UNKNOWN");
        assert!(started.into_iter().all(|pid| !runs(pid)));
        // The files alone give the same.
        let again = scene.run(scene.goodput(&["judge", &result.folder.display().to_string()]));
        again.exits(3).shows(&["UNKNOWN tiny", "cancelled"]);
    }
}

#[test]
fn a_signal_in_the_drain_ends_it() {
    // A request of the window that hangs keeps the drain going until its timeout.
    let mut contract = Contract::of(format!("{SIMULATED}\n  timeout: 60s"));
    contract.trial = "requests: 20, warm_up: 200ms, drain: 60s";
    let scene = Scene::with(&contract, "faults: [{ when: { at_request: 15 }, what: { kind: hang } }]\n");
    let mut gate = scene.start_gate();
    gate.until_requests(60);
    gate.signal(Signal::SIGINT);
    let ran = gate.end().exits(130);
    let result = ran.result();
    assert_stopped(&result, Signal::SIGINT);
    let hung: Vec<_> = result.requests().into_iter().filter(|line| line["outcome"] == "cancelled").collect();
    assert!(hung.iter().any(|line| line["segment"] == "window"), "{hung:?}");
}

#[test]
fn a_signal_while_a_probe_is_asked_does_not_wait_for_its_timeout() {
    let mut contract = Contract::of(SIMULATED);
    contract.more =
        "stability: [{ name: slow, counter: { command: [sh, -c, \"echo $$ > new; mv new probe; sleep 1000\"], timeout: 10m } }]"
            .to_owned();
    let scene = Scene::with(&contract, "");
    let gate = scene.start_gate();
    let probe = scene.pid("probe");
    gate.signal(Signal::SIGTERM);
    let ran = gate.end().exits(143);
    let result = ran.result();
    assert_stopped(&result, Signal::SIGTERM);
    assert_eq!(result.row("slow").0, "UNKNOWN");
    until(|| !runs(probe));
    // The same after the load, where the answer would be evidence: nobody waits ten minutes for it.
    contract.more = "stability: [{ name: slow, counter: { command: [sh, -c, \"test -e second && { echo $$ > new; mv new probe; sleep 1000; }; touch second; echo 1\"], timeout: 10m } }]".to_owned();
    contract.trial = "requests: 10, warm_up: 100ms";
    let scene = Scene::with(&contract, "");
    let gate = scene.start_gate();
    scene.pid("probe");
    gate.signal(Signal::SIGTERM);
    let ran = gate.end().exits(143);
    assert_stopped_late(&ran.result());
}

/// Everything but the last answer was measured.
#[track_caller]
fn assert_stopped_late(result: &RunResult) {
    assert_eq!(result.value["stopped"]["cause"], "signal");
    assert_eq!(result.row("slow").0, "UNKNOWN");
    assert_eq!(result.value["steps"][0]["trials"][0]["window"]["decided"], 10);
}

#[test]
fn a_signal_at_any_moment_ends_in_order() {
    // Two short steps take well over a second: these fall before readiness, in both steps, between them and behind.
    let mut contract = Contract::of(SIMULATED);
    contract.trial = "requests: 20, warm_up: 100ms";
    for (round, delay_ms) in [0, 60, 150, 300, 600, 900, 1200, 1600].into_iter().enumerate() {
        let (signal, code) = SIGNALS[round % 2];
        let scene = Scene::with(&contract, "");
        let mut gate = scene.start_gate();
        gate.until_stderr("goodput: tiny against");
        sleep(Duration::from_millis(delay_ms));
        let started = gate.descendants();
        gate.signal(signal);
        let ran = gate.end();
        let result = ran.result();
        if ran.code() == Some(code) {
            assert!(["UNKNOWN", "PASS"].contains(&result.overall()), "{}", result.value["verdict"]);
        } else {
            // The run was over before.
            assert!(matches!(ran.code(), Some(0 | 3)), "{delay_ms} ms: {:?} {:?}", ran.code(), ran.signal());
        }
        assert!(started.into_iter().all(|pid| !runs(pid)), "{delay_ms} ms");
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    // The endpoint takes its time to stop, and the first signal waits for it.
    let mut contract = Contract::of(
        "url: http://127.0.0.1:9/v1/chat/completions
  launch:
    command: [sh, -c, \"trap '' TERM; echo $$ > new; mv new server; while :; do sleep 0.1; done\"]
    stop_within: 10m",
    );
    contract.trial = LONG;
    let scene = Scene::with(&contract, "");
    let mut gate = scene.start_gate();
    let server = scene.pid("server");
    gate.signal(Signal::SIGINT);
    sleep(Duration::from_millis(300));
    assert!(!gate.has_ended());
    gate.signal(Signal::SIGINT);
    gate.end().exits(130);
    // The supervisor still holds it, with all the time that the contract gives; the test does not.
    nix::sys::signal::kill(server, Signal::SIGKILL).unwrap();
    until(|| !runs(server));
}

#[test]
fn sigkill_leaves_readable_requests_and_no_endpoint() {
    let mut contract = Contract::of(SIMULATED);
    contract.trial = LONG;
    let scene = Scene::with(&contract, "");
    let mut gate = scene.start_gate();
    gate.until_requests(20);
    let started = gate.descendants();
    gate.signal(Signal::SIGKILL);
    assert_eq!(gate.end().signal(), Some(Signal::SIGKILL as i32));
    until(|| started.iter().all(|pid| !runs(*pid)));
    let folder = scene.run_folder().unwrap();
    let text = read(&folder.join("requests.jsonl"));
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    assert!(whole.lines().count() >= 20);
    for line in whole.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a whole line");
        assert_eq!(line["outcome"], "ok");
    }
    assert!(!folder.join("result.json").exists());
    let ran = scene.run(scene.goodput(&["judge", &folder.display().to_string()])).exits(2);
    ran.says(&["result.json", "did not come to its end", "run the gate again"]);
}

#[test]
fn a_smoke_that_is_stopped_says_so() {
    let endpoint = "url: http://127.0.0.1:9/v1/chat/completions
  launch: { command: [sh, -c, \"sleep 1000 & echo $! > new; mv new child; wait\"], stop_within: 5s }";
    let scene = Scene::with(&Contract::of(endpoint), "");
    let gate = scene.start(&mut scene.goodput(&["smoke", "contract.yaml"]));
    let child = scene.pid("child");
    gate.signal(Signal::SIGINT);
    gate.end().exits(130);
    assert!(!runs(child));
}
