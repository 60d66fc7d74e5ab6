//! `goodput judge`: the verdict again from the files alone, and what becomes of damaged ones.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::scene::{Contract, Ran, SIMULATED, Scene, read};

/// A finished run, and its folder.
fn finished() -> (Scene, PathBuf) {
    let mut contract = Contract::of(SIMULATED);
    contract.trial = "requests: 20, warm_up: 100ms";
    contract.more = "stability: [{ name: restarts, counter: { command: [echo, \"1\"] } }]".to_owned();
    let scene = Scene::with(&contract, "");
    // Twenty requests decide no P95.
    let ran = scene.gate().exits(3);
    let folder = ran.result().folder;
    (scene, folder)
}

fn judge<'a>(scene: &'a Scene, path: &Path) -> Ran<'a> {
    scene.run(scene.goodput(&["judge", "--output-format", "json", &path.display().to_string()]))
}

fn edit(folder: &Path, change: impl FnOnce(&mut Value)) {
    let path = folder.join("result.json");
    let mut result: Value = serde_json::from_str(&read(&path)).unwrap();
    change(&mut result);
    fs::write(path, result.to_string()).unwrap();
}

#[test]
fn the_files_alone_give_the_same_result_byte_for_byte() {
    let (scene, folder) = finished();
    // Neither the contract's folder nor the endpoint is needed.
    fs::remove_file(scene.path("simulated.yaml")).unwrap();
    fs::remove_file(scene.path("contract.yaml")).unwrap();
    let stored = read(&folder.join("result.json"));
    for path in [folder.clone(), folder.join("result.json")] {
        assert_eq!(judge(&scene, &path).exits(3).stdout, stored);
    }
    let elsewhere = scene.path("elsewhere");
    fs::rename(&folder, &elsewhere).unwrap();
    assert_eq!(judge(&scene, &elsewhere).exits(3).stdout, stored);
}

#[test]
fn a_damaged_line_is_an_error_with_its_number() {
    let (scene, folder) = finished();
    let path = folder.join("requests.jsonl");
    let text = read(&path);
    let damaged: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(index, line)| if index == 6 { line[..30].to_owned() } else { line.to_owned() })
        .collect();
    fs::write(&path, damaged.join("\n") + "\n").unwrap();
    judge(&scene, &folder).exits(2).says(&["requests.jsonl:7: not a request"]);
    // A last line that ends in a line break was not torn: it is damaged.
    fs::write(&path, format!("{text}{{\"trial\"\n")).unwrap();
    let last = text.lines().count() + 1;
    judge(&scene, &folder).exits(2).says(&[&format!("requests.jsonl:{last}: not a request")]);
    // One that does not was torn, and is dropped: everything that the result counts is there.
    fs::write(&path, format!("{text}{{\"trial\": 0, \"arr")).unwrap();
    judge(&scene, &folder).exits(3);
}

#[test]
fn a_request_that_is_lost_or_added_is_noticed() {
    let (scene, folder) = finished();
    let path = folder.join("requests.jsonl");
    let text = read(&path);
    let window = text.lines().position(|line| line.contains("\"segment\":\"window\"")).unwrap();
    let without: String =
        text.lines().enumerate().filter(|(index, _)| *index != window).map(|(_, line)| format!("{line}\n")).collect();
    fs::write(&path, without).unwrap();
    judge(&scene, &folder).exits(70).says(&["is not what the evidence yields"]);
    let line = text.lines().next().unwrap().replacen("\"trial\":0", "\"trial\":7", 1);
    fs::write(&path, format!("{text}{line}\n")).unwrap();
    judge(&scene, &folder).exits(70).says(&["trial 7"]);
    fs::remove_file(&path).unwrap();
    judge(&scene, &folder).says(&["requests.jsonl", "the figures of result.json are taken as they are"]).exits(3);
}

/// A capacity that nothing measured.
fn capacity(load: &Value) -> Value {
    serde_json::json!({
        "holds_at": load, "breaks_at": null, "point": null, "claim": "this_run", "method": "listed loads",
        "confidence": null, "confidence_of_end": null, "seeds": 1, "trials": 2, "requests_per_trial": 20, "goodput": 1000.0,
        "non_monotone": false, "changed": false, "binding": null
    })
}

#[test]
fn an_edited_result_is_noticed() {
    let edits: [fn(&mut Value); 11] = [
        |result| result["steps"][0]["trials"][0]["window"]["decided"] = 19.into(),
        |result| {
            result["steps"][0]["trials"][0]["held"] =
                (!result["steps"][0]["trials"][0]["held"].as_bool().unwrap_or(false)).into()
        },
        |result| result["budget"]["exhausted"] = true.into(),
        |result| result["plan_digest"] = "00".repeat(32).into(),
        |result| result["steps"][0]["trials"][0]["schedule_digest"] = "00".repeat(32).into(),
        |result| result["steps"][0]["trials"][0]["took_ns"] = 1.into(),
        |result| result["steps"][1]["goodput"] = 1000.0.into(),
        |result| result["verdict"]["overall"] = "PASS".into(),
        |result| result["capacity"] = capacity(&result["steps"][0]["load"]),
        |result| result["completeness"]["measured"] = 99.into(),
        |result| result["probes"][0]["after"]["value"] = 5.0.into(),
    ];
    let (scene, folder) = finished();
    let whole = read(&folder.join("result.json"));
    for (number, change) in edits.into_iter().enumerate() {
        fs::write(folder.join("result.json"), &whole).unwrap();
        edit(&folder, change);
        let ran = judge(&scene, &folder).exits(70);
        assert!(ran.stderr.contains("is not what the evidence yields"), "edit {number}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "edit {number}: nothing that could be taken for its result");
    }
}

#[test]
fn what_a_result_says_of_its_plan_is_held_against_the_requests() {
    let (scene, folder) = finished();
    let whole = read(&folder.join("result.json"));
    let with = |change: fn(&mut Value), code: i32, words: &str| {
        fs::write(folder.join("result.json"), &whole).unwrap();
        edit(&folder, change);
        judge(&scene, &folder).exits(code).says(&[words]);
    };
    with(|result| result["steps"][0]["load"]["rate_milli"] = 1_234.into(), 70, "was not due when its schedule says");
    with(
        |result| result["contract"]["slo"]["objectives"][1]["at_most"] = "9s".into(),
        70,
        "its contract is not that of",
    );
    with(|result| result["steps"][0]["load"]["rate_milli"] = 0.into(), 2, "cannot have been");
    with(|result| result["steps"][0]["load"] = serde_json::json!({ "clients": 4 }), 2, "cannot have been");
    with(|result| result["steps"][0]["trials"][0]["took_ns"] = u64::MAX.into(), 2, "cannot have been");
    with(|result| result["steps"][0]["trials"][0]["planned"]["window"] = u64::MAX.into(), 2, "cannot have been");
}

#[test]
fn a_result_that_cannot_be_read_is_told_apart_from_a_verdict() {
    let (scene, folder) = finished();
    edit(&folder, |result| result["schema"] = "goodput-result/99".into());
    judge(&scene, &folder).exits(2).says(&["goodput-result/99", "this version reads `goodput-result/1`"]);
    edit(&folder, |result| drop(result.as_object_mut().unwrap().remove("schema")));
    judge(&scene, &folder).exits(2).says(&["it has no `schema`"]);
    fs::write(folder.join("result.json"), "{\"schema\": ").unwrap();
    judge(&scene, &folder).exits(2).says(&["result.json: not JSON"]);
    fs::remove_file(folder.join("result.json")).unwrap();
    judge(&scene, &folder).exits(2).says(&["did not come to its end"]);
    judge(&scene, &scene.path("nowhere")).exits(2).says(&["nowhere", "hint:"]);
}
