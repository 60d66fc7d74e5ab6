//! `goodput gate --publish` and `goodput publish` in a job without a token: everything but the comment is told, and nothing
//! changes the exit code. What GitHub itself is told is tested in `real::github`.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::json;

use crate::scene::{Contract, Ran, SIMULATED, Scene, read};

const HEAD: &str = "cccccccccccccccccccccccccccccccccccccccc";

/// A scene with a job's files.
fn job(more: &str) -> Scene {
    let contract = Contract {
        loads: "60/s",
        trial: "requests: 60, warm_up: 200ms",
        more: more.to_owned(),
        ..Contract::of(SIMULATED)
    };
    let scene = Scene::with(&contract, "");
    for name in ["summary", "output"] {
        scene.write(name, "");
    }
    scene
}

/// The command as a job of that event runs it.
fn in_job(scene: &Scene, event: &str, payload: &serde_json::Value, arguments: &[&str]) -> Command {
    scene.write("event.json", payload.to_string());
    let mut command = scene.goodput(arguments);
    let workspace = scene.path("");
    for (name, value) in [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_EVENT_NAME", event),
        ("GITHUB_REPOSITORY", "octocat/Hello-World"),
        ("GITHUB_RUN_ID", "77"),
        ("GITHUB_RUN_ATTEMPT", "1"),
        ("GITHUB_SHA", HEAD),
        ("GITHUB_SERVER_URL", "https://github.com"),
        ("GITHUB_API_URL", "http://127.0.0.1:1"),
    ] {
        command.env(name, value);
    }
    for (name, file) in
        [("GITHUB_EVENT_PATH", "event.json"), ("GITHUB_STEP_SUMMARY", "summary"), ("GITHUB_OUTPUT", "output")]
    {
        command.env(name, scene.path(file));
    }
    command.env("GITHUB_WORKSPACE", workspace);
    command
}

fn push() -> serde_json::Value {
    json!({ "ref": "refs/heads/main", "after": HEAD, "repository": { "default_branch": "main" } })
}

fn gate<'a>(scene: &'a Scene, more: &[&str]) -> Ran<'a> {
    let arguments = [&["gate", "--runs", "runs", "contract.yaml", "--publish"], more].concat();
    scene.run(in_job(scene, "push", &push(), &arguments))
}

/// The outputs of a step, as the runner reads them.
fn outputs(scene: &Scene) -> BTreeMap<String, String> {
    let text = read(&scene.path("output"));
    let mut lines = text.lines();
    let mut found = BTreeMap::new();
    while let Some(line) = lines.next() {
        if let Some((name, delimiter)) = line.split_once("<<") {
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
            found.insert(name.to_owned(), value.join("\n"));
        } else if let Some((name, value)) = line.split_once('=') {
            found.insert(name.to_owned(), value.to_owned());
        }
    }
    found
}

const NAMES: [&str; 12] = [
    "baseline-goodput",
    "baseline-sha",
    "capacity",
    "comment-url",
    "delta",
    "exit-code",
    "goodput",
    "junit",
    "reason-codes",
    "report",
    "result",
    "verdict",
];

#[test]
fn a_verdict_is_told_before_the_exit() {
    let scene = job("");
    let ran = gate(&scene, &[]).exits(0);
    ran.shows(&["PASS"]).says(&["::group::", "::endgroup::", "::notice"]);
    let told = outputs(&scene);
    assert_eq!(told.keys().map(String::as_str).collect::<Vec<_>>(), NAMES);
    assert_eq!((told["verdict"].as_str(), told["exit-code"].as_str()), ("PASS", "0"));
    assert_eq!((told["reason-codes"].as_str(), told["baseline-sha"].as_str(), told["delta"].as_str()), ("", "", ""));
    for (name, file) in [("result", "result.json"), ("report", "summary.md"), ("junit", "junit.xml")] {
        assert!(told[name].ends_with(file) && std::path::Path::new(&told[name]).is_file(), "{name}: {}", told[name]);
    }
    let summary = read(&scene.path("summary"));
    assert!(summary.contains("PASS") && summary.contains("| check |"), "{summary}");
    let junit = read(std::path::Path::new(&told["junit"]));
    assert!(junit.starts_with("<?xml") && junit.contains("failures=\"0\""), "{junit}");
}

#[test]
fn a_failure_keeps_its_exit_code_and_is_annotated_at_its_line() {
    let scene = job("");
    let contract = read(&scene.path("contract.yaml")).replace("at_most: 8s", "at_most: 1ms");
    scene.write("contract.yaml", &contract);
    let ran = gate(&scene, &[]).exits(1);
    let line = 1 + contract.lines().position(|line| line.contains("at_most: 1ms")).unwrap();
    ran.says(&["::error", &format!("file=contract.yaml,line={line}")]);
    let told = outputs(&scene);
    assert_eq!((told["verdict"].as_str(), told["exit-code"].as_str()), ("FAIL", "1"));
    assert_eq!(told["reason-codes"], "infeasible_objective");
}

#[test]
fn what_is_no_verdict_is_told_as_such() {
    let scene = job("");
    let contract = read(&scene.path("contract.yaml")).replace("at_most: 8s", "at_most: soon\n::error::planted");
    scene.write("contract.yaml", contract);
    let ran = gate(&scene, &[]).exits(2);
    let ran = ran.says(&["::error file=contract.yaml,line=19,title="]);
    assert!(!ran.stderr.lines().any(|line| line.trim_start().starts_with("::error::planted")), "{}", ran.stderr);
    let told = outputs(&scene);
    assert_eq!(told.keys().map(String::as_str).collect::<Vec<_>>(), NAMES);
    assert_eq!((told["verdict"].as_str(), told["exit-code"].as_str()), ("ERROR", "2"));
    assert!(read(&scene.path("summary")).contains("tiny"));
}

#[test]
fn a_record_that_no_comparison_is_asked_for_with_is_no_slip_to_pass_over() {
    let scene = job("");
    let ran = gate(&scene, &["--baseline", "none.json"]).exits(2).began_nothing();
    ran.says(&["asks for no comparison", "baseline: { margin: 5% }"]);
}

#[test]
fn the_command_line_may_say_what_an_unknown_does() {
    // One request a step tells nothing of a P95.
    for (policy, choice, exit) in
        [("block", "contract", 3), ("block", "warn", 0), ("warn", "contract", 0), ("warn", "block", 3)]
    {
        let scene = job(&format!("policy: {{ unknown: {policy} }}\n"));
        let contract = read(&scene.path("contract.yaml")).replace("requests: 60", "requests: 4");
        scene.write("contract.yaml", contract);
        gate(&scene, &["--unknown", choice]).exits(exit);
        let told = outputs(&scene);
        assert_eq!((told["verdict"].as_str(), told["exit-code"].as_str()), ("UNKNOWN", exit.to_string().as_str()));
        assert_eq!(
            read(&scene.path("summary")).contains("whatever the contract"),
            (policy, choice) == ("warn", "block")
        );
    }
}

#[test]
fn options_of_publishing_ask_for_it_and_outside_of_a_job_nobody_is_told() {
    let scene = job("");
    let ran = scene.run(scene.goodput(&["gate", "--runs", "runs", "contract.yaml", "--comment", "never"])).exits(2);
    ran.says(&["--publish"]);
    let ran = scene.run(scene.goodput(&["gate", "--runs", "runs", "contract.yaml", "--publish"])).exits(0);
    ran.says(&["no job of GitHub Actions"]);
    let folder = scene.run_folder().unwrap().display().to_string();
    let ran = scene.run(scene.goodput(&["publish", &folder])).exits(2);
    ran.says(&["nobody to tell", "junit.xml"]);
}

/// A token with the end of its line, as secrets are often stored, is that token; what is none is told.
#[test]
fn neither_a_token_nor_a_file_changes_the_exit_code() {
    let scene = job("");
    let pull = json!({ "pull_request": {
        "number": 7, "head": { "sha": HEAD, "repo": { "full_name": "octocat/Hello-World" } },
        "base": { "sha": HEAD, "repo": { "full_name": "octocat/Hello-World" } }
    } });
    let arguments = ["gate", "--runs", "runs", "contract.yaml", "--publish"];
    assert!(Command::new("mkfifo").arg(scene.path("fifo")).status().unwrap().success());
    let fifo = scene.path("fifo").display().to_string();
    for (name, value, told) in [
        ("GITHUB_TOKEN", "ghs_SecretToken\n", "Connection refused"),
        ("GITHUB_TOKEN", "ghs_Secret\nToken", "the token is none"),
        ("GITHUB_EVENT_PATH", fifo.as_str(), "it is no file"),
        ("GITHUB_STEP_SUMMARY", fifo.as_str(), "is no file"),
        ("GITHUB_OUTPUT", "/dev/full", "is no file"),
        ("GITHUB_API_URL", "http://user:PassWord@127.0.0.1:1", "a password in it"),
    ] {
        drop(std::fs::remove_dir_all(scene.path("runs")));
        let mut command = in_job(&scene, "pull_request", &pull, &arguments);
        command.env("GITHUB_TOKEN", "ghs_SecretToken").env(name, value);
        let ran = scene.run(command).exits(0).says(&[told]);
        let summary = read(&scene.path("summary"));
        for secret in ["ghs_Secret", "PassWord"] {
            assert!(!ran.stderr.contains(secret) && !summary.contains(secret), "{}", ran.stderr);
        }
    }
}

#[test]
fn what_the_command_line_repeats_commands_no_runner() {
    let scene = job("");
    let planted = "x\n::error::planted\r\u{1b}[31m";
    for (arguments, exit) in [
        (vec!["gate", "--comment", planted], 2),
        (vec![planted], 2),
        (vec!["gate", "--runs", planted, "contract.yaml", "--publish"], 0),
    ] {
        let ran = scene.run(in_job(&scene, "push", &push(), &arguments)).exits(exit);
        let lines = ran.stderr.lines().chain(ran.stdout.lines()).map(str::trim_start);
        assert!(lines.clone().all(|line| !line.starts_with("::error::")), "{}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\r'), "{}", ran.stderr);
    }
}

#[test]
fn what_another_run_measured_is_held_against_the_reviewed_contract() {
    let scene = job("");
    gate(&scene, &[]).exits(0);
    let folder = scene.run_folder().unwrap().display().to_string();
    let payload = json!({
        "action": "completed",
        "workflow_run": {
            "id": 76, "run_attempt": 1, "event": "pull_request", "head_sha": HEAD, "head_branch": "change",
            "head_repository": { "full_name": "stranger/Hello-World", "owner": { "login": "stranger" } }
        },
        "repository": { "default_branch": "main" }
    });
    let publish = |more: &[&str]| {
        let arguments = [&["publish", folder.as_str()], more].concat();
        scene.run(in_job(&scene, "workflow_run", &payload, &arguments))
    };
    publish(&[]).exits(2).says(&["word of whoever wrote the change", "--contract"]);

    let reviewed = read(&scene.path("contract.yaml"));
    scene.write("other.yaml", reviewed.replace("name: tiny", "name: other"));
    publish(&["--contract", "other.yaml"]).exits(2).says(&["`tiny`", "`other`"]);

    // Without a token there is no comment; the summary tells what the change asks less of.
    scene.write("stricter.yaml", reviewed.replace("at_most: 8s", "at_most: 7s"));
    scene.write("summary", "");
    publish(&["--contract", "stricter.yaml"]).exits(70).says(&["GITHUB_TOKEN"]);
    let summary = read(&scene.path("summary"));
    assert!(summary.contains("not that of the base branch") && summary.contains("7s"), "{summary}");

    assert!(summary.contains("nobody here saw them measured"), "{summary}");

    // Of figures that the evidence does not yield, and of a simulation that calls itself none, only that is told.
    let result = scene.run_folder().unwrap().join("result.json");
    let whole = read(&result);
    for (from, to) in [("\"PASS\"", "\"FAIL\""), ("\"kind\": \"simulated\"", "\"kind\": \"external\"")] {
        assert!(whole.contains(from));
        std::fs::write(&result, whole.replacen(from, to, 1)).unwrap();
        scene.write("summary", "");
        scene.write("output", "");
        publish(&["--contract", "contract.yaml"]).exits(70);
        let summary = read(&scene.path("summary"));
        assert!(summary.contains("NO VERDICT") && !summary.contains("| check |"), "{summary}");
        assert_eq!(outputs(&scene)["verdict"], "ERROR");
    }
}
