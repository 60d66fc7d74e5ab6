//! What `goodput audit` finds, and what the gate makes of it.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::scene::{Contract, Ran, SIMULATED, Scene, assert_follows, read, runs};

/// A scene with a short contract, whose load that must hold is 60/s.
fn scene() -> Scene {
    let mut contract = Contract::of(SIMULATED);
    contract.loads = "60/s";
    contract.trial = "requests: 20, warm_up: 100ms";
    let scene = Scene::with(&contract, "");
    scene.write("contract.yaml", contract.text().replace("at_load: 40/s", "at_load: 60/s"));
    std::fs::create_dir(scene.path("temporary")).unwrap();
    std::fs::create_dir(scene.path(".goodput")).unwrap();
    scene
}

/// The audit, with a folder for temporary files that is ours to look into.
fn audit(scene: &Scene, arguments: &[&str]) -> Command {
    let mut command = scene.goodput(&[&["audit"], arguments].concat());
    command.env("TMPDIR", scene.path("temporary"));
    command
}

#[track_caller]
fn assert_tidy(scene: &Scene) {
    let left: Vec<_> = std::fs::read_dir(scene.path("temporary")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn stored(scene: &Scene) -> Value {
    let value = serde_json::from_str(&read(&scene.path(".goodput/audit.json"))).unwrap();
    assert_follows("audit", &value);
    value
}

fn gate<'a>(scene: &'a Scene, more: &[&str]) -> Ran<'a> {
    scene.run(scene.goodput(&[&["gate", "--runs", "runs", "contract.yaml"], more].concat()))
}

/// An audit of this machine that says what a test needs: it vouches for 50/s, and broke at none.
fn audited() -> Scene {
    let scene = scene();
    let ran = scene.run(audit(&scene, &["--to", "50/s"]));
    // Whether the machine was too busy is not what this is about.
    assert!(matches!(ran.code(), Some(0 | 3)), "{}", ran.stderr);
    let mut value = stored(&scene);
    value["trusted_rate_milli"] = json!(50_000);
    let mut trial = value["trials"][0].clone();
    trial["faults"] = json!([]);
    let error = json!(3_000_000);
    trial["ttft_error"] =
        json!({ "count": 150, "p50_ns": error, "p90_ns": error, "p95_ns": error, "p99_ns": error, "max_ns": error });
    value["trials"] = json!([trial]);
    scene.write(".goodput/audit.json", value.to_string());
    scene
}

#[test]
fn the_ladder_is_climbed_as_far_as_the_generator_keeps_it() {
    let scene = scene();
    let ran = scene.run(audit(&scene, &["--to", "200/s", "--output-format", "json"]));
    assert_tidy(&scene);
    let value = stored(&scene);
    assert_eq!(ran.stdout, read(&scene.path(".goodput/audit.json")));
    assert_eq!(ran.code(), Some(if value["trusted_rate_milli"].is_null() { 3 } else { 0 }), "{}", ran.stderr);
    let trials = value["trials"].as_array().unwrap();
    let mut expected = [50_000, 100_000, 200_000].into_iter();
    let (mut trusted, mut at) = (Value::Null, 0);
    for (number, trial) in trials.iter().enumerate() {
        let rate = trial["rate_milli"].as_u64().unwrap();
        let is_kept = trial["faults"].as_array().unwrap().is_empty();
        if rate != at {
            assert_eq!(Some(rate), expected.next(), "the ladder's next rate");
        }
        // Three seconds at this rate, none left out, and each with a time that is known where the rate was kept.
        assert_eq!(trial["due"], rate * 3 / 1_000);
        assert_eq!(trial["ttft_error"]["count"], trial["due"]);
        if is_kept {
            assert!(trial["ttft_error"]["p99_ns"].as_u64().unwrap() > 0);
            trusted = json!(rate);
        } else {
            let again = rate == at;
            let next = trials.get(number + 1).map(|next| &next["rate_milli"]);
            assert_eq!(next, if again { None } else { Some(&trial["rate_milli"]) }, "tried twice, and then no further");
        }
        at = rate;
    }
    assert_eq!(value["trusted_rate_milli"], trusted);
    if trials.iter().all(|trial| trial["faults"].as_array().unwrap().is_empty()) {
        assert_eq!((trusted, expected.next()), (json!(200_000), None));
    }
}

#[test]
fn a_generator_that_stands_still_is_not_trusted() {
    let scene = scene();
    let mut started = scene.start(&mut audit(&scene, &[]));
    for trial in ["[trial 0] 50/s", "[trial 1] 50/s"] {
        started.until_stderr(trial);
        // Into the three seconds that are measured.
        sleep(Duration::from_millis(1_500));
        started.signal(Signal::SIGSTOP);
        sleep(Duration::from_millis(400));
        started.signal(Signal::SIGCONT);
    }
    started.end().exits(3).says(&["50/s: dispatch lag p99"]).shows(&["cannot be trusted on this machine", "no"]);
    assert_tidy(&scene);
    let value = stored(&scene);
    assert_eq!((&value["trusted_rate_milli"], value["trials"].as_array().unwrap().len()), (&Value::Null, 2));
    let ran = gate(&scene, &[]).exits(3);
    let result = ran.result();
    assert_eq!(result.row("load_generator"), ("UNKNOWN", "generator_saturated"));
    assert_eq!(result.overall(), "UNKNOWN");
    assert!(result.check("load_generator").unwrap()["note"].as_str().unwrap().contains("did not keep even 50/s"));
    assert_eq!(result.value["audit"], value);
}

#[test]
fn a_load_above_the_audited_rate_decides_nothing() {
    let scene = audited();
    let result = gate(&scene, &[]).exits(3).shows(&["load generator audited up to 50/s"]).result();
    assert_eq!(result.row("load_generator"), ("UNKNOWN", "generator_saturated"));
    let note = result.check("load_generator").unwrap()["note"].as_str().unwrap();
    assert!(note.starts_with("audited up to 50/s; run `goodput audit --to 60/s`; sampling: "), "{note}");
    // The files alone say the same, wherever they are judged.
    std::fs::remove_dir_all(scene.path(".goodput")).unwrap();
    let again = scene.run(scene.goodput(&["judge", "--output-format", "json", &result.folder.display().to_string()]));
    assert_eq!(again.exits(3).stdout, read(&result.folder.join("result.json")));
}

#[test]
fn a_load_within_the_audited_rate_is_told_how_exact_its_times_are() {
    let scene = audited();
    let text = read(&scene.path("contract.yaml")).replace("60/s", "45/s");
    scene.write("contract.yaml", text);
    std::fs::rename(scene.path(".goodput/audit.json"), scene.path("named.json")).unwrap();
    let ran = gate(&scene, &["--audit", "named.json"]);
    let result = ran.result();
    assert_eq!(result.value["audit"]["trusted_rate_milli"], 50_000);
    let note = result.check("load_generator").unwrap()["note"].as_str().unwrap_or_default();
    assert!(!note.contains("audit"), "{note}");
    ran.shows(&["at 45/s its TTFTs are at most 3.00 ms too long, at P99"]);
}

#[test]
fn an_interrupted_audit_leaves_nothing() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let scene = scene();
        let mut started = scene.start(&mut audit(&scene, &[]));
        started.until_stderr("[trial 0] 50/s");
        let launched = started.descendants();
        assert!(launched.len() >= 2, "the supervisor and the endpoint: {launched:?}");
        started.signal(signal);
        started.end().exits(code);
        assert!(launched.into_iter().all(|pid| !runs(pid)));
        assert!(!scene.path(".goodput/audit.json").exists());
        assert_tidy(&scene);
    }
}

#[test]
fn an_audit_that_says_nothing_here_is_not_used() {
    let scene = scene();
    let foreign = json!({
        "schema": "goodput-audit/1", "tool_version": env!("CARGO_PKG_VERSION"), "audited_at": "2026-11-29T10:00:00Z",
        "machine": { "system": "plan9 mips", "cpu_model": null, "cores": 1, "kernel": null, "memory_bytes": null },
        "trusted_rate_milli": null, "trials": []
    });
    let mut older = foreign.clone();
    older["tool_version"] = json!("0.0.1");
    let mut newer = foreign.clone();
    newer["schema"] = json!("goodput-audit/99");
    let mut surprising = foreign.clone();
    surprising["surprise"] = json!(1);
    // What is wrong, what is said of it, and whether a name makes it a mistake of whoever gave it.
    for (text, said, is_fault) in [
        (foreign.to_string(), "it is of another machine: system `plan9 mips` there", false),
        (older.to_string(), "it is of goodput 0.0.1, and this is", false),
        (newer.to_string(), "its format is `goodput-audit/99`; this version reads `goodput-audit/1`", true),
        (surprising.to_string(), "not an audit: unknown field `surprise`", true),
        ("{\"schema\": \"goodput-aud".to_owned(), "audit.json: not JSON", true),
        ("[1]".to_owned(), "not an audit: it has no `schema`", true),
        (String::new(), "audit.json: not JSON", true),
    ] {
        scene.write(".goodput/audit.json", text);
        if is_fault {
            let ran = gate(&scene, &["--audit", ".goodput/audit.json"]).exits(2).says(&[said, "hint:"]);
            ran.began_nothing();
        }
        let ran = gate(&scene, &[]).says(&[said, "the audit is not used"]);
        let result = ran.result();
        assert!(result.value["audit"].is_null());
        assert_ne!(result.row("load_generator").1, "not_measured");
        std::fs::remove_dir_all(scene.path("runs")).unwrap();
    }
    gate(&scene, &["--audit", "nowhere.json"]).exits(2).says(&["nowhere.json", "hint:"]).began_nothing();
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let scene = scene();
    for (to, said) in
        [("10/s", "an audit begins at 50/s"), ("fast", "a rate; write a number"), ("0/s", "a rate"), ("100", "a rate")]
    {
        scene.run(audit(&scene, &["--to", to])).exits(2).says(&[said]);
    }
    scene.write("file", "");
    scene.run(audit(&scene, &["--to", "50/s", "--output", "file/audit.json"])).exits(70).says(&["--output", "hint:"]);
    assert_tidy(&scene);
}
