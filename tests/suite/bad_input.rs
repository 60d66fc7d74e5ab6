//! What a person got wrong: exit code 2, the place and the next step, and nothing started.

use crate::scene::{Contract, SIMULATED, Scene};

/// The gate must refuse the contract and say these texts.
#[track_caller]
fn refused(scene: &Scene, texts: &[&str]) -> String {
    let ran = scene.gate().exits(2).says(texts).began_nothing();
    assert_eq!(ran.stdout, "", "results go to standard output, and there is none");
    ran.stderr
}

#[test]
fn all_faults_of_a_contract_are_told_at_once_with_their_places() {
    let text = Contract::of(SIMULATED).text();
    let text = text.replace("timeout: 10s", "timeout: 10 parsecs").replace("model: constant", "modle: constant");
    let text = text.replace("at_most: 8s", "at_most: -8s").replace("at_load: 40/s", "at_load: 40");
    let scene = Scene::new();
    scene.write("contract.yaml", &text);
    let line = |needle: &str| text.lines().position(|line| line.contains(needle)).unwrap() + 1;
    let place = |needle: &str| format!("contract.yaml:{}:", line(needle));
    let said = refused(
        &scene,
        &[
            &place("parsecs"),
            &place("modle"),
            &place("-8s"),
            &place("at_load"),
            "/endpoint/timeout",
            "/slo/objectives/1/at_most",
            "did you mean `model`?",
        ],
    );
    // Each with what to write instead, and the count of them.
    assert!(said.contains(" faults in contract.yaml"), "{said}");
    // The profile that it names is not even looked for.
    assert!(!scene.path("simulated.yaml").exists());
    scene.run(scene.goodput(&["validate", "contract.yaml"])).exits(2).says(&["/endpoint/timeout"]);
    scene.run(scene.goodput(&["smoke", "contract.yaml"])).exits(2).says(&["/endpoint/timeout"]);
}

#[test]
fn evidence_that_cannot_be_gathered_is_refused_with_what_could() {
    let text = Contract::of(SIMULATED).text();
    // 8 to warm up, 60 measured and 320 to drain until 8 s are over: 388 requests at 40/s are 9.7 s.
    let traffic = "  search: { from: 64/s, to: 10/s, precision: 90% }
  repeats: [5, 3, 3]
  budget: { check: 9s }
";
    let text = text.replace("  claim: this_run\n", traffic);
    let text = text.replace("  at_load: 40/s\n", "  at_load: 40/s\n  capacity: { at_least: 0/s }\n");
    let scene = Scene::new();
    scene.write("contract.yaml", &text);
    let said = refused(
        &scene,
        &[
            "/traffic/search/to: nothing lies between 64/s and 10/s",
            "/traffic/search/precision",
            "/traffic/repeats/1: less than 5 before it",
            "/traffic/repeats/2",
            "/traffic/budget/check: one trial at 40/s takes 10s; write at least that",
            "/slo/capacity/at_least",
        ],
    );
    assert!(said.contains("6 faults in contract.yaml"), "{said}");
    // A floor above everything that would be tried, and what only an open loop has.
    let floor =
        Contract::of(SIMULATED).text().replace("at_load: 40/s", "at_load: 40/s\n  capacity: { at_least: 61/s }");
    scene.write("contract.yaml", floor);
    refused(&scene, &["/slo/capacity/at_least: no load of the contract reaches it", "`loads: [61/s]`"]);
    let closed = Contract::of(SIMULATED)
        .text()
        .replace("constant", "closed\n  search: { from: 1/s, to: 2/s }")
        .replace("loads: [40/s, 60/s]", "concurrency: [1, 2]")
        .replace("requests: 60,", "window: 1s,")
        .replace("at_load: 40/s", "at_concurrency: 2\n  capacity: { at_least: 2/s }");
    scene.write("contract.yaml", closed);
    refused(&scene, &["/traffic/search: a closed loop", "/slo/capacity: a closed loop", "2 faults"]);
}

#[test]
fn a_limit_that_no_sample_in_the_budget_can_decide_is_told_before_any_load() {
    let text = Contract::of(SIMULATED)
        .text()
        .replace("this_run", "typical_run")
        .replace("percentile: 95", "percentile: 99.9")
        .replace("at_least: 100%", "at_least: 99.9%");
    let scene = Scene::with(&Contract::of(SIMULATED), "");
    scene.write("contract.yaml", &text);
    // 1 / 0.001 requests in each trial; ln(0.05 / 3) / ln(0.999) = 4092.3 in all, 512 in each of 8 trials.
    let ran = scene.run(scene.goodput(&["validate", "contract.yaml"])).exits(0).began_nothing();
    ran.shows(&[
        "UNKNOWN whatever is measured",
        "`requests: 1000`",
        "`requests: 512`",
        "success rate ≥ 99.9% 480 4,093",
    ]);
    // What it says to write is enough.
    scene.write("contract.yaml", text.replace("requests: 60,", "requests: 1000,"));
    let ran = scene.run(scene.goodput(&["validate", "contract.yaml"])).exits(0);
    assert!(!ran.stdout.contains("UNKNOWN"), "{}", ran.stdout);
}

#[test]
fn a_contract_that_is_not_there_is_asked_for() {
    let scene = Scene::new();
    let ran = scene.run(scene.goodput(&["gate"])).exits(2);
    ran.says(&[".goodput/contract.yaml", "hint:", "goodput gate path/to/contract.yaml"]).began_nothing();
    for command in ["validate", "smoke"] {
        let hint = format!("goodput {command} path/to/contract.yaml");
        scene.run(scene.goodput(&[command])).exits(2).says(&[".goodput/contract.yaml", &hint]);
    }
    scene.run(scene.goodput(&["gate", "."])).exits(2).says(&["failed to read the contract ."]);
    scene.write("contract.yaml", b"version: 1\nname: \xff\n");
    refused(&scene, &["contract.yaml", "UTF-8"]);
}

#[test]
fn cases_that_cannot_be_read_are_named() {
    let mut contract = Contract::of(SIMULATED);
    contract.workload = "cases: cases.json".to_owned();
    let scene = Scene::with(&contract, "");
    refused(&scene, &["cases.json", "No such file", "hint:", "workload.cases"]);
    std::fs::create_dir(scene.path("cases.json")).unwrap();
    refused(&scene, &["cases.json", "hint:"]);
    std::fs::remove_dir(scene.path("cases.json")).unwrap();
    for (content, text) in [
        (&b"[{\"id\": \"one\", \"prompt\": \"\xff\"}]"[..], "UTF-8"),
        (b"[{\"id\": \"one\", \"prompt\": ", "cases.json"),
        (b"[]", "cases.json"),
        (b"[{\"id\": \"one\"}, {\"id\": \"one\"}]", "cases.json"),
    ] {
        scene.write("cases.json", content);
        refused(&scene, &[text]);
    }
}

#[test]
fn a_case_without_a_field_that_the_payload_names_is_found_before_anything_starts() {
    let mut contract = Contract::of(SIMULATED);
    contract.workload = "cases: [{ id: whole, prompt: Hi, system: Be brief }, { id: bare, prompt: Hi }]
  payload: { model: $model, messages: [{ role: system, content: $system }, { role: user, content: $prompt }] }"
        .to_owned();
    let scene = Scene::with(&contract, "");
    let said = refused(&scene, &["payload", "/messages/0/content", "`bare` has no field `system`"]);
    assert!(!said.contains("`whole`"), "{said}");
    scene.run(scene.goodput(&["validate", "contract.yaml"])).exits(2).says(&["`bare` has no field `system`"]);
    // The same for cases in a file.
    contract.workload = contract
        .workload
        .replace("[{ id: whole, prompt: Hi, system: Be brief }, { id: bare, prompt: Hi }]", "cases.json");
    let scene = Scene::with(&contract, "");
    scene.write(
        "cases.json",
        r#"[{"id": "whole", "prompt": "Hi", "system": "Be brief"}, {"id": "bare", "prompt": "Hi"}]"#,
    );
    refused(&scene, &["/messages/0/content", "`bare` has no field `system`"]);
}

#[test]
fn credentials_in_a_url_are_refused_and_not_repeated() {
    for url in ["http://me:hunter2@127.0.0.1:9/v1", "http://me:hunter2@127.0.0.1:99999/v1", "me:hunter2@host/v1"] {
        let scene = Scene::with(&Contract::of(format!("url: {url}")), "");
        let said = refused(&scene, &["/endpoint/url"]);
        assert!(!said.contains("hunter2"), "{said}");
        let flags = ["smoke", "--url", url, "--protocol", "openai-chat"];
        let ran = scene.run(scene.goodput(&flags)).exits(2).says(&["--url"]);
        assert!(!ran.stderr.contains("hunter2") && !ran.stdout.contains("hunter2"), "{}", ran.stderr);
    }
    let scene = Scene::with(&Contract::of("url: http://me:hunter2@127.0.0.1:9/v1"), "");
    refused(&scene, &["credentials", "headers: { Authorization: { env: VARIABLE"]);
}

#[test]
fn a_secret_written_out_is_refused_and_not_repeated() {
    let scene = Scene::with(
        &Contract::of("url: http://127.0.0.1:9/v1\n  headers: { Authorization: Bearer hunter2-token }"),
        "",
    );
    let said = refused(&scene, &["/endpoint/headers/Authorization", "env:"]);
    assert!(!said.contains("hunter2"), "{said}");
    let flags =
        ["smoke", "--url", "http://127.0.0.1:9/v1", "--protocol", "openai-chat", "--header", "Authorization=hunter2"];
    let ran = scene.run(scene.goodput(&flags)).exits(2).says(&["--header", "env:"]);
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

#[test]
fn a_header_whose_variable_is_not_set_is_told_before_anything_starts() {
    let endpoint =
        format!("{SIMULATED}\n  headers: {{ Authorization: {{ env: SERVING_TOKEN, prefix: \"Bearer \" }} }}");
    let scene = Scene::with(&Contract::of(endpoint), "");
    refused(&scene, &["authorization", "`SERVING_TOKEN` is not set", "set it"]);
    // A value that no header can carry is refused, and not shown.
    let mut command = scene.goodput(&["gate", "--runs", "runs", "contract.yaml"]);
    command.env("SERVING_TOKEN", "hunter2\nx: y");
    let ran = scene.run(command).exits(2).says(&["authorization", "characters that HTTP does not allow"]);
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    // An empty one is as good as none: the endpoint would only say 401 under load.
    let mut command = scene.goodput(&["gate", "--runs", "runs", "contract.yaml"]);
    command.env("SERVING_TOKEN", "");
    scene.run(command).exits(2).says(&["`SERVING_TOKEN` is empty"]).began_nothing();
}

#[test]
fn runs_that_cannot_be_written_are_a_failure_of_the_machine() {
    let scene = Scene::with(&Contract::of(SIMULATED), "");
    // A file in the place of a folder stops root, too.
    scene.write("taken", "");
    for runs in ["taken", "taken/deeper"] {
        let ran = scene.run(scene.goodput(&["gate", "--runs", runs, "contract.yaml"])).exits(70);
        ran.says(&["failed to create taken", "hint:", "--runs"]);
    }
}

#[test]
fn a_profile_that_is_wrong_or_missing_is_told_with_its_place() {
    let scene = Scene::with(&Contract::of(SIMULATED), "bogus: 1\n");
    refused(&scene, &["simulated.yaml", "line 4", "bogus"]);
    std::fs::remove_file(scene.path("simulated.yaml")).unwrap();
    refused(&scene, &["simulated.yaml", "No such file"]);
}

#[test]
fn usage_that_is_wrong_is_exit_2_and_help_lists_only_what_works() {
    let scene = Scene::new();
    for arguments in [
        &["gate", "--bogus"][..],
        &["bogus"],
        &["smoke", "--url", "http://127.0.0.1:9/v1"],
        &["smoke", "--url", "http://127.0.0.1:9/v1", "--protocol", "bogus"],
        &["gate", "--output-format", "bogus"],
        // What later versions bring is no command yet.
        &["compare"],
        &["publish"],
        &["baseline"],
        &["report"],
    ] {
        let ran = scene.run(scene.goodput(arguments)).exits(2);
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{arguments:?}");
    }
    let help = scene.run(scene.goodput(&["--help"])).exits(0).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert_eq!(
        commands,
        ["gate", "validate", "smoke", "judge", "publish", "compare", "audit", "baseline", "simulate", "schema", "init"]
    );
    for command in commands {
        scene.run(scene.goodput(&[command, "--help"])).exits(0).shows(&[&format!("goodput {command}")]);
    }
}
