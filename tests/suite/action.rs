//! The scripts of the GitHub Action (`scripts/action`), run as the Action runs them, around a program that notes how it was
//! called. `real::actions` runs the whole Action.

mod agreement;
mod install;
mod scene;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use self::scene::{Ended, Scene};
use crate::client::HANG;

/// The scene with a program that notes its arguments, does what `EXTRA` says, and ends as it is told.
fn noting() -> Scene {
    let scene = Scene::new();
    scene.program(
        "goodput",
        "printf '%s\\n' \"$@\" >arguments\n[ -z \"${EXTRA-}\" ] || eval \"$EXTRA\"\nexit \"${EXIT-0}\"\n",
    );
    scene
}

fn run(scene: &Scene, variables: &[(&str, &str)]) -> Ended {
    let program = scene.path("bin/goodput");
    let variables = [&[("GOODPUT_BIN", program.as_str())], variables].concat();
    scene.run("run.sh", &variables)
}

#[test]
fn outputs_that_cannot_be_written_change_no_exit_code() {
    for (exit, code) in [("0", 0), ("1", 1), ("3", 3)] {
        let ended = run(&noting(), &[("GITHUB_OUTPUT", "/dev/full"), ("EXIT", exit)]);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stdout.contains("::warning title=goodput::"), "{ended:?}");
    }
}

#[test]
fn inputs_become_the_arguments_that_they_are() {
    #[track_caller]
    fn check(inputs: &[(&str, &str)], expected: &[&str]) {
        let scene = noting();
        let ended = run(&scene, inputs);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let arguments = fs::read_to_string(scene.path("arguments")).unwrap();
        assert_eq!(arguments.lines().collect::<Vec<_>>(), expected);
    }
    check(&[], &["gate", "--plan=check", "--unknown=contract", "--publish", "--comment=always"]);
    check(
        &[
            ("GOODPUT_INPUT_CONTRACT", "a b.yaml"),
            ("GOODPUT_INPUT_PLAN", "release"),
            ("GOODPUT_INPUT_UNKNOWN", "block"),
            ("GOODPUT_INPUT_BASE", "--help"),
            ("GOODPUT_INPUT_BASELINE", "b/record.json"),
            ("GOODPUT_INPUT_RUNS", "out"),
            ("GOODPUT_INPUT_COMMENT", "not-pass"),
            ("GOODPUT_INPUT_COMMENT_KEY", "$(touch owned) `touch owned` \"x\""),
            ("GOODPUT_INPUT_CHECK", "true"),
        ],
        &[
            "gate",
            "--plan=release",
            "--unknown=block",
            "--base=--help",
            "--baseline=b/record.json",
            "--runs=out",
            "--publish",
            "--comment=not-pass",
            "--comment-key=$(touch owned) `touch owned` \"x\"",
            "--check",
            "--",
            "a b.yaml",
        ],
    );
    check(
        &[("GOODPUT_INPUT_PAIR", "base.yaml"), ("GOODPUT_INPUT_AUDIT", "a"), ("GOODPUT_INPUT_CALIBRATION", "c")],
        &[
            "gate",
            "--plan=check",
            "--unknown=contract",
            "--pair=base.yaml",
            "--audit=a",
            "--calibration=c",
            "--publish",
            "--comment=always",
        ],
    );
    check(&[("GOODPUT_INPUT_COMMAND", "smoke")], &["smoke"]);
    check(
        &[("GOODPUT_INPUT_COMMAND", "validate"), ("GOODPUT_INPUT_PLAN", "baseline"), ("GOODPUT_INPUT_CONTRACT", "-c")],
        &["validate", "--plan=baseline", "--", "-c"],
    );
    check(
        &[
            ("GOODPUT_INPUT_COMMAND", "publish"),
            ("GOODPUT_INPUT_RESULT", "result.json"),
            ("GOODPUT_INPUT_CONTRACT", "c.yaml"),
        ],
        &["publish", "--contract=c.yaml", "--comment=always", "--", "result.json"],
    );
}

#[test]
fn a_choice_that_there_is_none_of_is_refused_before_anything_runs() {
    #[track_caller]
    fn check(inputs: &[(&str, &str)], expected: &str) {
        let scene = noting();
        for script in ["run.sh", "install.sh"] {
            let ended = scene.run(script, inputs);
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert_eq!(ended.stdout, format!("::error title=goodput::{expected}\n"));
            assert_eq!((ended.output("verdict"), ended.output("exit-code")), (Some("ERROR"), Some("2")));
        }
        assert!(!scene.exists("arguments"));
    }
    check(&[("GOODPUT_INPUT_COMMAND", "rm")], "the input `command` is `rm`; write one of: gate smoke validate publish");
    check(&[("GOODPUT_INPUT_PLAN", "Check")], "the input `plan` is `Check`; write one of: check baseline release");
    check(&[("GOODPUT_INPUT_UNKNOWN", "pass")], "the input `unknown` is `pass`; write one of: contract block warn");
    check(&[("GOODPUT_INPUT_COMMENT", "no")], "the input `comment` is `no`; write one of: always not-pass never");
    check(&[("GOODPUT_INPUT_CHECK", "yes")], "the input `check` is `yes`; write one of: true false");
    check(
        &[("GOODPUT_INPUT_PLAN", "a\n::set-output name=verdict::PASS\r100%")],
        "the input `plan` is `a%0A::set-output name=verdict::PASS%0D100%25`; write one of: check baseline release",
    );
    check(
        &[("GOODPUT_INPUT_COMMAND", "publish")],
        "the command `publish` tells a stored result; name it in the input `result`",
    );
    check(
        &[("GOODPUT_INPUT_RESULT", "r.json")],
        "the input `result` is for the command `publish`, and the command is `gate`",
    );
    check(
        &[("GOODPUT_INPUT_SAVE_BASELINE", "true")],
        "`save-baseline: true` keeps what the command `gate` measured with `plan: baseline`; this is `gate` with `plan: check`",
    );
}

#[test]
fn the_programs_exit_code_is_the_steps() {
    for code in ["0", "1", "2", "3", "70", "130", "143"] {
        let scene = noting();
        let ended = run(&scene, &[("EXIT", code), ("EXTRA", "echo verdict=UNKNOWN >>\"$GITHUB_OUTPUT\"")]);
        assert_eq!(ended.code.map(|code| code.to_string()).as_deref(), Some(code));
        assert_eq!((ended.output("verdict"), ended.output("exit-code")), (Some("UNKNOWN"), Some(code)));
        assert!(!ended.stdout.contains("::error"), "{}", ended.stdout);
    }
}

#[test]
fn a_program_that_dies_leaves_an_error_and_never_an_old_verdict() {
    let scene = noting();
    let ended = run(&scene, &[("EXTRA", "kill -KILL $$")]);
    assert_eq!(ended.code, Some(137));
    assert_eq!((ended.output("verdict"), ended.output("exit-code")), (Some("ERROR"), Some("137")));
    assert!(ended.stdout.contains("::error title=goodput::goodput ended with the exit code 137"), "{}", ended.stdout);

    // Where there is no program at all, 127 would be no code of ours.
    let ended = scene.run("run.sh", &[]);
    assert_eq!((ended.code, ended.output("verdict"), ended.output("exit-code")), (Some(70), Some("ERROR"), Some("70")));
}

#[test]
fn commands_that_write_no_verdict_have_that_of_their_exit_code() {
    let rows = [
        ("smoke", "0", "PASS"),
        ("smoke", "1", "FAIL"),
        ("smoke", "3", "UNKNOWN"),
        ("smoke", "2", "ERROR"),
        ("validate", "0", ""),
        ("validate", "2", "ERROR"),
    ];
    for (command, code, verdict) in rows {
        let ended = run(&noting(), &[("GOODPUT_INPUT_COMMAND", command), ("EXIT", code)]);
        assert_eq!(ended.output("verdict"), Some(verdict), "{command} {code}");
        assert_eq!(ended.output("exit-code"), Some(code));
    }
}

/// The runner tells the step's shell alone that the job was cancelled.
#[test]
fn a_cancelled_step_lets_the_program_write_and_end() {
    for (signal, name, code) in [(Signal::SIGINT, "INT", 130), (Signal::SIGTERM, "TERM", 143)] {
        let scene = noting();
        let extra = format!(
            "trap 'sleep 0.2; echo written >last; exit {code}' {name}; echo ready >ready; while :; do sleep 0.05; done"
        );
        let program = scene.path("bin/goodput");
        let mut command = scene.command("run.sh", &[("GOODPUT_BIN", &program), ("EXTRA", &extra)]);
        let step = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while !scene.exists("ready") {
            assert!(begun.elapsed() < HANG, "no hang");
            std::thread::sleep(Duration::from_millis(10));
        }
        kill(Pid::from_raw(step.id().try_into().unwrap()), signal).unwrap();
        let ended = scene.ended(&step.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(ended.output("exit-code"), Some(code.to_string().as_str()));
        assert!(scene.exists("last"), "the program had no time to write");
    }
}

#[test]
fn a_folder_to_work_in_is_entered_or_missed() {
    let scene = noting();
    fs::create_dir(scene.path("below")).unwrap();
    assert_eq!(run(&scene, &[("GOODPUT_INPUT_WORKING_DIRECTORY", "below")]).code, Some(0));
    assert!(scene.exists("below/arguments"));
    let ended = run(&scene, &[("GOODPUT_INPUT_WORKING_DIRECTORY", "absent")]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stdout.contains("`working-directory` names no folder: `absent`"), "{}", ended.stdout);
}

#[test]
fn a_baseline_is_kept_by_the_run_and_the_contract() {
    let scene = noting();
    fs::create_dir(scene.path("run")).unwrap();
    fs::write(scene.path("run/baseline.json"), "{}").unwrap();
    let program = scene.path("bin/goodput");
    let variables = [
        ("GOODPUT_BIN", program.as_str()),
        ("GOODPUT_RESULT", "run/result.json"),
        ("GOODPUT_INPUT_CONTRACT", "c.yaml"),
    ];
    let ended = scene.run("save.sh", &variables);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let arguments = fs::read_to_string(scene.path("arguments")).unwrap();
    assert_eq!(
        arguments.lines().collect::<Vec<_>>(),
        ["baseline", "save", "--contract=c.yaml", "--", "run/result.json"]
    );
    assert!(ended.output("baseline-record").unwrap().ends_with("/run/baseline.json"));

    let ended = scene.run("save.sh", &[&variables[..], &[("EXIT", "70")]].concat());
    assert_eq!((ended.code, ended.output("exit-code"), ended.output("baseline-record")), (Some(70), Some("70"), None));
    assert!(ended.stdout.contains("::error title=goodput::the run passed, and its result was not kept"));

    let ended =
        run(&scene, &[("GOODPUT_INPUT_SAVE_BASELINE", "true"), ("GOODPUT_INPUT_PLAN", "baseline"), ("EXIT", "1")]);
    assert!(ended.stdout.contains("::notice title=goodput::the baseline is not kept"), "{}", ended.stdout);
}
