//! Two endpoints measured in turn on one machine.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::scene::{Ran, RunResult, Scene, assert_valid, read};

/// Eight slots with replies of 16 tokens: 8 / (16 · step) requests a second at most, 50 with steps of 10 ms.
fn profile(step: &str) -> String {
    format!("version: 1\nmodel: {{ kind: batch, slots: 8, step_base: {step} }}\noutput_tokens: 16\n")
}

/// What differs between the contracts of these tests.
struct Plan {
    port: u16,
    profile: &'static str,
    load: &'static str,
    trial: &'static str,
    more: String,
}

impl Plan {
    fn of(profile: &'static str) -> Self {
        let more = "baseline: { margin: 5% }".to_owned();
        Self { port: free_port(), profile, load: "20/s", trial: "requests: 30, warm_up: 200ms, drain: 1s", more }
    }

    fn text(&self) -> String {
        let Self { port, profile, load, trial, more } = self;
        format!(
            "version: 1
name: pair
endpoint:
  url: http://127.0.0.1:{port}/v1/chat/completions
  launch: {{ simulate: {profile} }}
  protocol: openai-chat
  model: tiny
  timeout: 10s
workload:
  cases: [{{ id: one, prompt: Hi there, max_tokens: 16 }}]
traffic: {{ model: constant, claim: typical_run, loads: [{load}], trial: {{ {trial} }} }}
slo:
  request: {{ e2e: 400ms }}
  objectives: [{{ metric: success_rate, at_least: 100% }}, {{ metric: e2e, percentile: 90, at_most: 1s }}]
  at_load: {load}
{more}
"
        )
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("base.yaml.profile", profile("10ms"));
    scene.write("same.profile", profile("10ms"));
    scene.write("slow.profile", profile("13ms"));
    scene
}

fn gate_pair(scene: &Scene) -> Ran<'_> {
    scene.run(scene.goodput(&["gate", "--runs", "runs", "contract.yaml", "--pair", "base.yaml"]))
}

fn json_lines(path: &Path) -> Vec<Value> {
    read(path).lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
}

/// The result of the endpoint without the change, in its own folder.
#[track_caller]
fn base_result(result: &RunResult) -> Value {
    let value: Value =
        serde_json::from_str(&fs::read_to_string(result.folder.join("base/result.json")).unwrap()).unwrap();
    assert_valid(&value);
    value
}

/// Both folders give the same verdict again.
#[track_caller]
fn judged_again(scene: &Scene, result: &RunResult) {
    for folder in [result.folder.clone(), result.folder.join("base")] {
        let stored: Value = serde_json::from_str(&read(&folder.join("result.json"))).unwrap();
        let ran = scene.run(scene.goodput(&["judge", "--output-format", "json", &folder.display().to_string()]));
        let again: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
        assert_eq!(again["verdict"], stored["verdict"]);
        assert_eq!(again, stored);
    }
}

/// What one line of `pairs.jsonl` says: pair, endpoint, trial, whether it was started anew.
fn turns(result: &RunResult) -> Vec<(u64, String, u64, bool)> {
    let lines = json_lines(&result.folder.join("pairs.jsonl"));
    let times: Vec<String> = lines.iter().map(|line| line["at"].as_str().unwrap().to_owned()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let turn = |line: &Value| {
        let number = |key: &str| line[key].as_u64().unwrap();
        (number("pair"), line["endpoint"].as_str().unwrap().to_owned(), number("trial"), line["fresh"] == true)
    };
    lines.iter().map(turn).collect()
}

#[test]
fn equal_endpoints_on_one_port_take_turns_and_pass() {
    let scene = scene();
    let plan = Plan::of("same.profile");
    scene.write("base.yaml", Plan { profile: "base.yaml.profile", port: plan.port, ..Plan::of("") }.text());
    scene.write("contract.yaml", plan.text());
    let ran = gate_pair(&scene);
    let result = ran.result();
    let base = base_result(&result);
    assert_eq!(result.value["baseline"]["chosen"]["store"], "pair", "{}", result.value["baseline"]);
    assert_eq!(result.value["baseline"]["chosen"]["why"]["relation"], "paired");
    assert_eq!(result.value["baseline"]["record"]["steps"][0]["load"], serde_json::json!({"rate_milli": 20_000}));
    for row in ["success_rate", "e2e_p90", "endpoint_process", "completeness"] {
        assert_eq!(result.row(row).0, "PASS", "{row}: {}", result.value["verdict"]);
    }
    // Both sides have the same schedules in the same number of trials.
    let of = |result: &Value| -> Vec<Value> {
        let trials = result["steps"][0]["trials"].as_array().unwrap();
        trials.iter().map(|trial| trial["schedule_digest"].clone()).collect()
    };
    assert_eq!(of(&base), of(&result.value));
    assert!(of(&base).len() >= 3);
    // One is first, then the other is twice in a row, and only who was away is started anew.
    let turns = turns(&result);
    let first = turns[0].1.clone();
    for (index, (pair, endpoint, _, fresh)) in turns.iter().enumerate() {
        assert_eq!(*pair as usize, index / 2);
        let is_first = [0, 3].contains(&(index % 4));
        assert_eq!(*endpoint == first, is_first, "{turns:?}");
        assert_eq!(*fresh, index == 0 || turns[index - 1].1 != *endpoint, "{turns:?}");
    }
    for file in ["contract.yaml", "plan.json", "requests.jsonl", "endpoint.log", "summary.md"] {
        assert!(result.folder.join("base").join(file).is_file(), "{file}");
    }
    judged_again(&scene, &result);
}

#[test]
fn a_head_that_is_slower_where_it_matters_fails() {
    let scene = scene();
    let mut plan = Plan::of("slow.profile");
    // 45/s is below the 50/s of the base and above the 38/s of the head, whose queue grows by 7 requests a second.
    (plan.load, plan.trial) = ("45/s", "requests: 90, warm_up: 500ms, drain: 1s");
    let base = Plan { profile: "base.yaml.profile", port: plan.port, ..Plan::of("") };
    scene.write("base.yaml", Plan { load: plan.load, trial: plan.trial, ..base }.text());
    scene.write("contract.yaml", plan.text());
    let ran = gate_pair(&scene).exits(1);
    let result = ran.result();
    assert_eq!(result.row("goodput_change").0, "FAIL", "{}", result.value["comparison"]);
    judged_again(&scene, &result);
}

#[test]
fn a_base_that_cannot_start_leaves_the_head_to_be_judged_alone() {
    let scene = scene();
    let mut plan = Plan::of("same.profile");
    plan.more = "baseline: { margin: 5%, pair: { launch: { command: [sh, -c, \"echo no; exit 3\"] } } }".to_owned();
    scene.write("contract.yaml", plan.text());
    let ran = scene.gate().exits(3);
    let result = ran.result();
    assert_eq!(result.row("e2e_p90").0, "PASS");
    assert_eq!(result.row("completeness").0, "PASS");
    assert_eq!(result.row("baseline"), ("UNKNOWN", "endpoint_not_ready"));
    let missing = result.value["baseline"]["missing"]["note"].as_str().unwrap();
    assert!(missing.contains("exited with code 3"), "{missing}");
    assert!(result.value["baseline"]["record"].is_null());
    assert_eq!(base_result(&result)["endpoint"]["ready"]["state"], "not_ready");
    assert!(read(&result.folder.join("base/endpoint.log")).contains("no"));
    judged_again(&scene, &result);
}

#[test]
fn a_base_that_plans_other_trials_is_not_run() {
    let scene = scene();
    let plan = Plan::of("same.profile");
    let base = Plan { trial: "requests: 31, warm_up: 200ms", port: plan.port, ..Plan::of("base.yaml.profile") };
    scene.write("base.yaml", base.text());
    scene.write("contract.yaml", plan.text());
    let ran = gate_pair(&scene).exits(3);
    let result = ran.result();
    assert_eq!(result.row("baseline"), ("UNKNOWN", "fingerprint_mismatch"));
    assert_eq!(result.row("e2e_p90").0, "PASS");
    assert!(!result.folder.join("base").exists());
}

#[test]
fn a_pair_without_a_margin_is_refused_before_anything_starts() {
    let scene = scene();
    let plan = Plan { more: String::new(), ..Plan::of("same.profile") };
    scene.write("base.yaml", plan.text());
    scene.write("contract.yaml", plan.text());
    gate_pair(&scene).exits(2).says(&["which loss still passes", "baseline: { margin: 5% }"]).began_nothing();
}

#[test]
fn a_signal_leaves_both_folders_readable() {
    let scene = scene();
    let mut plan = Plan::of("same.profile");
    plan.trial = "requests: 60, warm_up: 200ms";
    plan.more = "baseline: { margin: 5%, pair: { launch: { simulate: base.yaml.profile } } }".to_owned();
    scene.write("contract.yaml", plan.text());
    let mut gate = scene.start_gate();
    // Both have measured something.
    gate.until_requests(20);
    let base = scene.run_folder().unwrap().join("base/requests.jsonl");
    crate::scene::until(|| read(&base).lines().count() > 20);
    gate.signal(Signal::SIGINT);
    let ran = gate.end().exits(130);
    let result = ran.result();
    assert_eq!(result.row("completeness"), ("UNKNOWN", "cancelled"));
    assert_eq!(result.row("baseline"), ("UNKNOWN", "cancelled"));
    assert_eq!(base_result(&result)["stopped"]["cause"], "signal");
    assert!(result.folder.join("base/summary.md").is_file());
    judged_again(&scene, &result);
}

#[test]
fn a_base_that_dies_on_the_way_is_told_and_the_head_goes_on() {
    let scene = scene();
    let mut plan = Plan::of("same.profile");
    // It serves its first trial, and ends in its second.
    let program = env!("CARGO_BIN_EXE_goodput");
    let (port, script) = (plan.port, scene.path("base.sh"));
    let run = format!("'{program}' simulate base.yaml.profile --listen 127.0.0.1:{port}");
    scene.write(
        "base.sh",
        format!("test -e second && {{ {run} & sleep 1; kill $!; exit 4; }}\ntouch second\nexec {run}\n"),
    );
    plan.more = format!("baseline: {{ margin: 5%, pair: {{ launch: {{ command: [sh, '{}'] }} }} }}", script.display());
    scene.write("contract.yaml", plan.text());
    let ran = scene.gate().exits(3);
    let result = ran.result();
    assert_eq!(result.row("baseline").0, "UNKNOWN");
    assert_eq!(result.row("e2e_p90").0, "PASS");
    assert_eq!(result.row("completeness").0, "PASS");
    assert_eq!(result.value["steps"][0]["trials"].as_array().unwrap().len(), 3);
    judged_again(&scene, &result);
}

#[test]
fn an_endpoint_against_itself_tells_what_the_gate_can_see() {
    let scene = scene();
    let plan = Plan::of("same.profile");
    scene.write("contract.yaml", plan.text());
    let arguments =
        ["baseline", "calibrate", "--pairs", "3", "--runs", "runs", "--output", "found.json", "contract.yaml"];
    scene.run(scene.goodput(&arguments)).exits(0).shows(&["goodput 20/s 3", "false red"]);
    let found: Value = serde_json::from_str(&read(&scene.path("found.json"))).unwrap();
    assert_eq!((&found["margin"], &found["looks"]), (&Value::from(50_000), &serde_json::json!([3, 5, 8])));
    let row = &found["rows"][0];
    assert_eq!(
        (&row["metric"], &row["load"], &row["pairs"]),
        (&"goodput".into(), &serde_json::json!({"rate_milli": 20_000}), &3.into())
    );
    // The gate hands on what it is told of this machine.
    let arguments =
        ["gate", "--runs", "gates", "--calibration", "found.json", "--output-format", "json", "contract.yaml"];
    let ran = scene.run(scene.goodput(&arguments));
    let result: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    assert_eq!(result["calibration"], found);
}
