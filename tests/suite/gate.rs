//! What the gate concludes and how it says it.

use std::process::Stdio;

use serde_json::Value;

use crate::scene::{Contract, Ran, RunResult, SIMULATED, Scene, assert_valid, read};
use crate::scripted::{Answer, Scripted, reply, streamed};

/// A short run with these stability rows.
fn with_stability(rows: &str) -> (Scene, Contract) {
    let mut contract = Contract::of(SIMULATED);
    contract.loads = "40/s";
    contract.trial = "requests: 10, warm_up: 100ms";
    contract.more = format!("stability: [{rows}]");
    let scene = Scene::with(&contract, "");
    scene.write("count.sh", "read n < count; echo $n; echo $((n + $1)) > count\n");
    scene.write("count", "5\n");
    (scene, contract)
}

#[track_caller]
fn stability(rows: &str, code: i32) -> RunResult {
    let (scene, _) = with_stability(rows);
    let ran = scene.gate().exits(code);
    // The result lives in memory; the folder goes with the scene.
    ran.result()
}

fn counter(script: &str, more: &str) -> String {
    format!("{{ name: counted, counter: {{ command: [sh, -c, {script:?}]{more} }} }}")
}

#[test]
fn a_counter_that_rises_fails_and_one_that_falls_is_unknown() {
    let result = stability(&counter("sh count.sh 2", ""), 1);
    assert_eq!((result.row("counted"), result.overall()), (("FAIL", "counter_rose"), "FAIL"));
    assert_eq!(result.check("counted").unwrap()["observed"], "5 → 7 (+2)");
    let result = stability("{ name: counted, counter: { command: [sh, count.sh, \"2\"] }, max_increase: 2 }", 3);
    assert_eq!(result.row("counted"), ("PASS", "held"));
    let result = stability(&counter("sh count.sh -5", ""), 3);
    assert_eq!(result.row("counted"), ("UNKNOWN", "counter_reset"));
}

#[test]
fn a_probe_without_a_number_is_unknown_with_the_reason() {
    for (script, more, note) in [
        ("exit 3", "", "exited with code 3"),
        ("echo four", "", "printed `four` where one number was expected"),
        ("true", "", "printed nothing"),
        ("sleep 1000", ", timeout: 300ms", "took longer than 300ms and was killed"),
        ("kill -9 $$", "", "signal 9"),
    ] {
        let result = stability(&counter(script, more), 3);
        assert_eq!(result.row("counted"), ("UNKNOWN", "probe_failed"), "{script}");
        let said = result.check("counted").unwrap()["note"].as_str().unwrap();
        assert!(said.contains(note), "{script}: {said}");
        assert!(result.value["probes"][0]["before"]["value"].is_null());
    }
    let result = stability("{ name: counted, counter: { command: [no-such-probe] } }", 3);
    assert_eq!(result.row("counted"), ("UNKNOWN", "probe_failed"));
}

#[test]
fn exit_codes_are_health() {
    let row = |script: &str| format!("{{ name: health, exit_code: {{ command: [sh, -c, {script:?}] }} }}");
    assert_eq!(stability(&row("exit 0"), 3).row("health"), ("PASS", "held"));
    assert_eq!(stability(&row("exit 4"), 1).row("health"), ("FAIL", "unhealthy"));
    assert_eq!(stability(&row("test -e second && exit 1; touch second"), 1).row("health"), ("FAIL", "unhealthy"));
    assert_eq!(stability(&row("kill -9 $$"), 3).row("health"), ("UNKNOWN", "probe_failed"));
}

#[test]
fn the_policy_lets_unknown_through_and_still_calls_it_unknown() {
    let (scene, mut contract) = with_stability(&counter("echo none", ""));
    contract.more.push_str("\npolicy: { unknown: warn }");
    scene.write("contract.yaml", contract.text());
    let ran = scene.gate().exits(0).shows(&["UNKNOWN tiny", "The policy does not let UNKNOWN block."]);
    let result = ran.result();
    assert_eq!(result.overall(), "UNKNOWN");
    assert_eq!(result.row("counted"), ("UNKNOWN", "probe_failed"));
    let summary = read(&result.folder.join("summary.md"));
    assert!(summary.contains("UNKNOWN") && !summary.contains("## PASS"), "{summary}");
    scene.run(scene.goodput(&["judge", &result.folder.display().to_string()])).exits(0).shows(&["UNKNOWN tiny"]);
    // A FAIL is no UNKNOWN.
    contract.more = format!("stability: [{}]\npolicy: {{ unknown: warn }}", counter("sh count.sh 1", ""));
    let scene = Scene::with(&contract, "");
    scene.write("count.sh", "read n < count; echo $n; echo $((n + $1)) > count\n");
    scene.write("count", "5\n");
    scene.gate().exits(1).shows(&["FAIL tiny"]);
}

/// Everything that a terminal, Markdown or a CI runner would act upon.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}| a | b |\n::set-output name=x::y\n::error::z\r\n@everyone <img src=x> [l](http://evil.example) \u{202e}";

#[track_caller]
fn assert_harmless(text: &str) {
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    assert!(!text.lines().any(|line| line.trim_start().starts_with("::")), "{text}");
}

#[track_caller]
fn assert_harmless_everywhere(ran: &Ran<'_>, result: &RunResult) {
    assert_harmless(&ran.stdout);
    assert_harmless(&ran.stderr);
    let summary = read(&result.folder.join("summary.md"));
    assert_harmless(&summary);
    for markup in ["@everyone", "<img", "](http", "| a | b |"] {
        assert!(!summary.contains(markup), "`{markup}` is left in:\n{summary}");
    }
}

#[test]
fn hostile_errors_do_not_survive() {
    let server = Scripted::start(|_, _| Answer::Bytes(reply("403 Forbidden", "text/plain", HOSTILE)));
    let scene = Scene::with(&Contract::of(format!("url: {}", server.url())), "");
    let ran = scene.gate().exits(3).shows(&["http_error 403"]);
    assert_harmless_everywhere(&ran, &ran.result());
    let ran = scene.run(scene.goodput(&["smoke", "contract.yaml"])).exits(1);
    assert_harmless(&ran.stdout);
    let json = scene.run(scene.goodput(&["smoke", "--output-format", "json", "contract.yaml"])).exits(1);
    serde_json::from_str::<Value>(&json.stdout).expect("one JSON document");
    assert!(!json.stdout.contains(['\u{1b}', '\u{7}']), "{}", json.stdout);
}

#[test]
fn hostile_logs_names_and_probes_do_not_survive() {
    let hostile = serde_json::to_string(HOSTILE).unwrap();
    let mut contract = Contract::of("url: http://127.0.0.1:9/v1\n  launch: { command: [sh, -c, \"cat log; exit 3\"] }");
    contract.more = "stability: [{ name: talks, counter: { command: [cat, log] } }]".to_owned();
    let scene = Scene::with(&contract, "");
    scene.write("log", HOSTILE);
    let ran = scene.gate().exits(1).shows(&["exited with code 3"]);
    assert_harmless_everywhere(&ran, &ran.result());
    let ran = scene.run(scene.goodput(&["smoke", "contract.yaml"])).exits(1);
    assert_harmless(&ran.stdout);
    assert_harmless(&ran.stderr);

    let server = Scripted::start(|_, _| Answer::Bytes(streamed(HOSTILE, HOSTILE)));
    contract.endpoint = format!("url: {}", server.url());
    let scene = Scene::with(&contract, "");
    scene.write("log", HOSTILE);
    let ran = scene.gate();
    assert_harmless_everywhere(&ran, &ran.result());
    let ran = scene.run(scene.goodput(&["smoke", "contract.yaml"])).exits(3);
    assert_harmless(&ran.stdout);

    // The contract is written by whoever opens the pull request.
    let scene = Scene::with(&contract, "");
    scene.write("contract.yaml", contract.text().replace("name: tiny", &format!("name: {hostile}")));
    let ran = scene.gate();
    assert_harmless(&ran.stdout);
    assert_harmless(&ran.stderr);
    contract.workload = format!("cases: [{{ id: {hostile}, prompt: Hi }}, {{ id: two }}]\n  payload: {{ p: $prompt }}");
    let scene = Scene::with(&contract, "");
    let ran = scene.gate().exits(2);
    assert_harmless(&ran.stderr);
}

#[test]
fn json_is_one_document_on_standard_output() {
    let mut contract = Contract::of(SIMULATED);
    contract.trial = "requests: 10, warm_up: 100ms";
    let scene = Scene::with(&contract, "");
    let ran =
        scene.run(scene.goodput(&["gate", "--runs", "runs", "--output-format", "json", "contract.yaml"])).exits(3);
    let printed: Value = serde_json::from_str(&ran.stdout).expect("one JSON document");
    assert_valid(&printed);
    assert_eq!(printed, ran.result().value);
    for command in ["validate", "smoke"] {
        let ran = scene.run(scene.goodput(&[command, "--output-format", "json", "contract.yaml"])).exits(0);
        serde_json::from_str::<Value>(&ran.stdout).expect("one JSON document");
        assert_eq!(ran.stderr, "");
    }
}

#[test]
fn validate_prints_the_plan_and_what_it_cannot_decide() {
    let mut contract = Contract::of(SIMULATED);
    contract.trial = "requests: 40, warm_up: 500ms";
    let scene = Scene::with(&contract, "");
    let validate = |arguments: &[&str]| {
        let arguments = [&["validate", "contract.yaml"], arguments].concat();
        scene.run(scene.goodput(&arguments)).exits(0).began_nothing()
    };
    // The fewest requests of which none may miss so that P95 holds at 95 % on one schedule: 0.95^59 < 0.05 < 0.95^58.
    validate(&[]).shows(&["40/s", "60/s", "E2E P95 ≤ 8s 40 59 — no", "`requests: 59`", "--plan release"]);
    let ran = validate(&["--output-format", "json"]);
    let plan: Value = serde_json::from_str(&ran.stdout).unwrap();
    let objective = &plan["objectives"][1];
    assert_eq!((&objective["smallest_sample"], &objective["can_pass"]), (&59.into(), &false.into()), "{objective}");
    assert_eq!(objective["changes"][0]["requests"], 59, "{objective}");
    // One violation of 20 is what P95 allows, so 40 requests in each of at least three trials can decide it.
    scene.write("contract.yaml", contract.text().replace("this_run", "typical_run"));
    validate(&["--plan", "baseline"]).shows(&["Plan baseline", "E2E P95 ≤ 8s 40 20 2 yes"]);
}

#[test]
fn colours_are_asked_for_and_refused() {
    let (scene, _) = with_stability(&counter("echo 1", ""));
    let validate = |variables: &[(&str, &str)]| {
        let mut command = scene.goodput(&["validate", "contract.yaml"]);
        command.envs(variables.iter().copied());
        scene.run(command).exits(0).stdout
    };
    assert!(!validate(&[]).contains('\u{1b}'));
    assert!(validate(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
    assert!(!validate(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (scene, _) = with_stability(&counter("echo 1", ""));
    for arguments in [&["schema"][..], &["validate", "contract.yaml"], &["--help"], &["smoke", "contract.yaml"]] {
        let mut command = scene.goodput(arguments);
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdout(Stdio::from(writer));
        drop(reader);
        let started = scene.start(&mut command);
        // The test's own end of the pipe must go too, or nobody sees it close.
        drop(command);
        let ran = started.end().exits(0);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
}
