//! What other programs make of our Action and workflows (`tests/real/actions.sh`): the linters find nothing in them, and `act` runs
//! them with the real binary, without containers.

mod act;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use self::act::{Consumer, Stub};
use super::Real;

/// The folder with the programs, when they were installed.
#[expect(clippy::print_stderr, reason = "a test that did nothing must say so")]
fn programs() -> Option<PathBuf> {
    let found = std::env::var("GOODPUT_REAL_ACTIONS_URL").ok().map(PathBuf::from);
    if found.is_none() {
        eprintln!("skipped: GOODPUT_REAL_ACTIONS_URL names no folder of programs; tests/run.sh sets it");
    }
    found
}

/// Files of a folder of the repository with that ending, from its root.
fn files(folder: &str, ending: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(root.join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(ending)).map(|name| format!("{folder}/{name}")).collect();
    names.sort();
    names
}

fn workflows() -> Vec<String> {
    [files(".github/workflows", ".yml"), files("examples/workflows", ".yml")].concat()
}

/// Whether a program of the folder is content with these files; else what it says.
fn lint(programs: &Path, program: &str, options: &[&str], files: &[String]) -> Result<(), String> {
    assert!(!files.is_empty(), "nothing for {program}");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(programs.join(program));
    command.args(options).args(files).current_dir(env!("CARGO_MANIFEST_DIR")).env("PATH", path);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    output.status.success().then_some(()).ok_or(format!("{program}: {said}"))
}

const ZIZMOR: [&str; 4] = ["--offline", "--no-progress", "--persona", "pedantic"];

#[test]
fn linters_find_nothing() {
    let Some(programs) = programs() else { return };
    let check = |program: &str, options: &[&str], files: &[String]| {
        lint(&programs, program, options, files).unwrap_or_else(|said| panic!("{said}"));
    };
    let workflows = workflows();
    let action = ["action.yml".to_owned()];
    let dependabot = [".github/dependabot.yml".to_owned()];
    check("actionlint", &[], &workflows);
    check("zizmor", &ZIZMOR, &[&workflows[..], &action, &dependabot].concat());
    check(
        "shellcheck",
        &["--external-sources", "--shell=bash"],
        &[files("scripts/action", ".sh"), files("scripts/release", ".sh")].concat(),
    );
    check("check-jsonschema", &["--builtin-schema", "vendor.github-workflows"], &workflows);
    check("check-jsonschema", &["--builtin-schema", "vendor.github-actions"], &action);
    check("check-jsonschema", &["--builtin-schema", "vendor.dependabot"], &dependabot);
    check("check-jsonschema", &["--builtin-schema", "vendor.gitlab-ci"], &["examples/gitlab-ci.yml".to_owned()]);
    // It takes one file at a time, and its schema is older than the permission `attestations`.
    let known = workflows.iter().filter(|file| !file.ends_with(".github/workflows/release.yml"));
    for file in known.chain(&action) {
        check("action-validator", &[], std::slice::from_ref(file));
    }
}

#[test]
fn linters_find_nothing_in_what_init_writes() {
    let Some(programs) = programs() else { return };
    for server in ["vllm", "sglang", "llama.cpp", "tgi", "ollama"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
        let output = command.args(["init", "--server", server, "--folder"]).arg(folder.path()).output().unwrap();
        assert!(output.status.success(), "{server}: {}", String::from_utf8_lossy(&output.stderr));
        let workflow = [folder.path().join(".github/workflows/goodput.yml").to_str().unwrap().to_owned()];
        for (program, options) in [("actionlint", &[][..]), ("zizmor", &ZIZMOR), ("action-validator", &[])] {
            lint(&programs, program, options, &workflow).unwrap_or_else(|said| panic!("{server}: {said}"));
        }
    }
}

/// A linter that is content with anything would prove nothing.
#[test]
fn linters_find_what_is_wrong() {
    let Some(programs) = programs() else { return };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        [path.to_str().unwrap().to_owned()]
    };
    let action = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml")).unwrap();
    let injected = action.replacen("run: exec bash", "run: echo ${{ inputs.contract }}; exec bash", 1);
    assert_ne!(injected, action);
    assert!(
        lint(&programs, "zizmor", &ZIZMOR, &write("action.yml", &injected)).unwrap_err().contains("template-injection")
    );
    let unknown = action.replacen("using: composite", "using: compost", 1);
    assert!(lint(&programs, "action-validator", &[], &write("b/action.yml", &unknown)).is_err());
    let workflow =
        "on: push\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: 'echo ${{ nothing.at.all }}' }] } }\n";
    assert!(lint(&programs, "actionlint", &[], &write("w.yml", workflow)).is_err());
}

/// A consumer's workflow with the Action and a step behind it that writes down what the Action left.
const CONSUMER: &str = "\
name: consumer
on: [pull_request, merge_group, push, workflow_dispatch, schedule]
permissions: {}
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1
      - id: gate
        uses: OWNER/goodput@0000000000000000000000000000000000000000
        with:
          bin-path: ${{ env.PROGRAM }}
          comment: ${{ env.COMMENT }}
          plan: ${{ env.PLAN }}
          save-baseline: ${{ env.SAVE }}
      - if: always()
        run: printf '%s\\n' \"$OUTPUTS\" >\"$LEFT/outputs.json\"; printf '%s' \"$OUTCOME\" >\"$LEFT/outcome\"
        env:
          OUTPUTS: ${{ toJSON(steps.gate.outputs) }}
          OUTCOME: ${{ steps.gate.outcome }}
";

/// A program that writes the outputs it is told to and ends as it is told to.
const STAND_IN: &str = "#!/bin/sh\n\
    [ \"$1\" != --version ] || { echo goodput 0.0.0; exit 0; }\n\
    [ \"$1 $2\" != 'baseline save' ] || exit \"${SAVED-0}\"\n\
    [ -z \"$VERDICT\" ] || echo \"verdict=$VERDICT\" >>\"$GITHUB_OUTPUT\"\n\
    echo \"result=$PWD/result.json\" >>\"$GITHUB_OUTPUT\"\n\
    exit \"$EXIT\"\n";

#[test]
fn exit_codes_and_outputs_pass_the_action_as_they_are() {
    let Some(programs) = programs() else { return };
    let consumer = Consumer::new(&programs, &[("consumer.yml", CONSUMER)]);
    let program = consumer.program("stand-in", STAND_IN);
    let rows =
        [("PASS", "0"), ("FAIL", "1"), ("", "2"), ("UNKNOWN", "3"), ("UNKNOWN", "0"), ("", "70"), ("UNKNOWN", "143")];
    for (verdict, code) in rows {
        let ran = consumer.act(
            "pull_request",
            "consumer.yml",
            &[("PROGRAM", &program), ("VERDICT", verdict), ("EXIT", code)],
        );
        let outputs = consumer.outputs();
        assert_eq!(outputs["verdict"], if verdict.is_empty() { "ERROR" } else { verdict }, "{ran:?}");
        assert_eq!(outputs["exit-code"], code, "{ran:?}");
        assert_eq!(consumer.left("outcome"), if code == "0" { "success" } else { "failure" });
        assert_eq!(ran.succeeded, code == "0");
        assert!(ran.said.contains(&format!("exit status {code}")) || code == "0", "{ran:?}");
    }

    // The program cannot be had: the outputs are there all the same.
    let ran = consumer.act("pull_request", "consumer.yml", &[("PROGRAM", "absent")]);
    let outputs = consumer.outputs();
    assert_eq!((&outputs["verdict"], &outputs["exit-code"]), (&Value::from("ERROR"), &Value::from("2")), "{ran:?}");

    // A run that passed and whose record cannot be kept is red.
    let saving =
        [("PROGRAM", program.as_str()), ("VERDICT", "PASS"), ("EXIT", "0"), ("PLAN", "baseline"), ("SAVE", "true")];
    let ran = consumer.act("schedule", "consumer.yml", &[&saving[..], &[("SAVED", "70")]].concat());
    let outputs = consumer.outputs();
    assert_eq!((&outputs["verdict"], &outputs["exit-code"]), (&Value::from("PASS"), &Value::from("70")), "{ran:?}");
    assert!(!ran.succeeded);
}

/// The real binary, with a contract that passes and one that cannot. Nothing answers at the API's address, so that what is not
/// published is told, and the verdict stands.
#[test]
fn the_real_gate_runs_in_a_workflow() {
    let Some(programs) = programs() else { return };
    let consumer = Consumer::new(&programs, &[("consumer.yml", CONSUMER)]);
    let program = env!("CARGO_BIN_EXE_goodput");
    for event in ["pull_request", "merge_group", "push"] {
        let ran =
            consumer.act(event, "consumer.yml", &[("PROGRAM", program), ("GITHUB_API_URL", "http://127.0.0.1:9")]);
        let outputs = consumer.outputs();
        assert_eq!(
            (&outputs["verdict"], &outputs["exit-code"]),
            (&Value::from("PASS"), &Value::from("0")),
            "{event}: {ran:?}"
        );
        for file in ["report", "result", "junit"] {
            let path = outputs[file].as_str().unwrap();
            assert!(Path::new(path).is_absolute(), "{event}: {file} is {path}");
        }
        let goodput: f64 = outputs["goodput"].as_str().unwrap().parse().unwrap();
        assert!((39.0..41.0).contains(&goodput), "{event}: {goodput}");
        assert_eq!(outputs["comment-url"], "", "{event}");
    }

    consumer.write(".goodput/contract.yaml", &act::contract().replace("at_most: 50s", "at_most: 1ms"));
    let ran = consumer.act("pull_request", "consumer.yml", &[("PROGRAM", program), ("COMMENT", "never")]);
    let outputs = consumer.outputs();
    assert_eq!((&outputs["verdict"], &outputs["exit-code"]), (&Value::from("FAIL"), &Value::from("1")), "{ran:?}");
    assert_eq!(outputs["reason-codes"], "infeasible_objective", "{outputs}");

    consumer.write(".goodput/contract.yaml", "version: 1\nnames: a\n");
    let ran = consumer.act("pull_request", "consumer.yml", &[("PROGRAM", program), ("COMMENT", "never")]);
    let outputs = consumer.outputs();
    assert_eq!((&outputs["verdict"], &outputs["exit-code"]), (&Value::from("ERROR"), &Value::from("2")), "{ran:?}");
}

/// The workflows that we tell people to copy, from the download of the program to the upload of the run. The one that needs somebody
/// to tell is in [`the_split_for_forks_writes_one_comment`].
#[test]
fn the_examples_run_as_they_are() {
    let Some(programs) = programs() else { return };
    let consumer = examples(&programs);
    let events = [
        ("push", "release.yml"),
        ("pull_request", "pull-request.yml"),
        ("schedule", "nightly.yml"),
        ("pull_request", "fork-gate.yml"),
    ];
    assert_eq!(events.len() + 1, files("examples/workflows", ".yml").len(), "an example is not run");
    for (event, name) in events {
        // Of a release that can be compared with nothing nobody can tell, and a comparison that was given up is a weaker contract.
        consumer.write(".goodput/contract.yaml", &act::searching_contract(name != "release.yml"));
        let ran = consumer.act(event, name, &[("GITHUB_API_URL", "http://127.0.0.1:9")]);
        assert!(ran.succeeded, "{name}: {ran:?}");
    }
    let kept = |name: &str| consumer.path("artifacts").join(name).exists();
    assert!(kept("goodput-1/runs"), "the pull request's run");
    assert!(kept("goodput-baseline/baseline.json"), "the night's record");
    assert!(kept("goodput-result-1/result.json"), "the result that is handed on");
}

/// A repository with every example, and what they use.
fn examples(programs: &Path) -> Consumer {
    let names = files("examples/workflows", ".yml");
    let texts: Vec<(String, String)> = names
        .iter()
        .map(|name| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    let workflows: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let consumer = Consumer::new(programs, &workflows);
    consumer.release(env!("CARGO_BIN_EXE_goodput"));
    consumer.stub(Stub::Upload);
    consumer.stub(Stub::Download);
    consumer
}

/// The server that plays GitHub's API (`tests/real/github.sh`), with one open pull request of a repository.
fn github(repository: &str) -> Option<Real> {
    let real = Real::server("GOODPUT_REAL_GITHUB")?;
    let rights = json!({ "login": "github-actions[bot]", "comment": true, "checks": true });
    let world = json!({
        "tokens": { act::TOKEN: rights },
        "pulls": [{ "number": act::PULL, "head": act::HEAD, "repository": repository, "branch": "topic" }],
    })
    .to_string();
    let (host, length) = (real.host().to_owned(), world.len());
    let head = format!("PUT /_world/{} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n", act::REPOSITORY);
    let (head, _) = real.exchange(&(head + &world));
    assert!(head.contains(" 200 ") || head.contains(" 204 "), "{head}");
    Some(real)
}

/// The comments that the server has; a request that breaks GitHub's description fails the test.
fn comments(real: &Real) -> Vec<Value> {
    let (_, body) = real.page(&format!("/_world/{}", act::REPOSITORY));
    let world: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(world["violations"], json!([]));
    world["comments"].as_array().unwrap().clone()
}

#[test]
fn a_pull_request_has_one_comment_however_often_it_runs() {
    let (Some(programs), Some(real)) = (programs(), github(act::REPOSITORY)) else { return };
    let consumer = Consumer::new(&programs, &[("consumer.yml", CONSUMER)]);
    let variables = [("PROGRAM", env!("CARGO_BIN_EXE_goodput")), ("GITHUB_API_URL", real.url.as_str())];
    for _ in 0..2 {
        let ran = consumer.act("pull_request", "consumer.yml", &variables);
        let found = comments(&real);
        assert_eq!(found.len(), 1, "{ran:?}");
        assert!(found[0]["body"].as_str().unwrap().contains("PASS"), "{found:?}");
        assert_eq!(found[0]["pull"], act::PULL, "{found:?}");
        let url = format!("https://github.com/{}/pull/{}#issuecomment-{}", act::REPOSITORY, act::PULL, found[0]["id"]);
        assert_eq!(consumer.outputs()["comment-url"], url, "{ran:?}");
    }
}

#[test]
fn the_split_for_forks_writes_one_comment() {
    let (Some(programs), Some(real)) = (programs(), github(act::FORK)) else { return };
    let consumer = examples(&programs);
    let api = [("GITHUB_API_URL", real.url.as_str())];
    let ran = consumer.act("pull_request", "fork-gate.yml", &api);
    assert!(ran.succeeded && comments(&real).is_empty(), "{ran:?}");
    for _ in 0..2 {
        let ran = consumer.act("workflow_run", "fork-comment.yml", &api);
        assert!(ran.succeeded, "{ran:?}");
        assert_eq!(comments(&real).len(), 1, "{ran:?}");
    }
}
