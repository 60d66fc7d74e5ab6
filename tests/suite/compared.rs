//! Runs of the gate that are compared with a record that is named, and what is stored of that.

use std::fs;

use goodput::baseline::write_record;
use serde_json::{Value, json};

use crate::records::{commit, record};
use crate::scene::{Contract, SIMULATED, Scene, read};

fn scene() -> Scene {
    let contract = Contract {
        loads: "60/s",
        trial: "requests: 40, warm_up: 200ms",
        more: "baseline: { margin: 5% }\nsamples: { keep: 1 }".to_owned(),
        ..Contract::of(SIMULATED)
    };
    Scene::with(&contract, "")
}

fn gate(scene: &Scene, record: &str) -> Value {
    let arguments = ["gate", "--runs", "runs", "contract.yaml", "--baseline", record];
    scene.run(scene.goodput(&arguments)).exits(3).result().value
}

#[test]
fn other_circumstances_are_named_and_an_edited_record_is_noticed() {
    let scene = scene();
    write_record(&scene.path("record.json"), &record("tiny", &commit('a'), "another processor")).unwrap();
    let result = gate(&scene, "record.json");
    let rows = result["verdict"]["checks"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == "baseline").expect("the row");
    assert_eq!((&row["status"], &row["reason"]), (&json!("UNKNOWN"), &json!("fingerprint_mismatch")));
    assert!(row["note"].as_str().unwrap().contains("cpu was `another processor`"), "{row}");
    assert_eq!(result["comparison"]["changes"], json!([]));

    let folder = scene.run_folder().unwrap();
    let shown = folder.display().to_string();
    scene.run(scene.goodput(&["judge", &shown])).exits(3);
    // A run is like itself and says the same; of one trial at a load nobody knows how far runs differ.
    let ran = scene.run(scene.goodput(&["compare", &shown, &shown])).exits(3);
    ran.shows(&["run_noise_unknown", "1 of 1 cases were answered alike"]);

    let mut edited: Value = serde_json::from_str(&read(&folder.join("result.json"))).unwrap();
    edited["baseline"]["record"]["origin"]["commit"] = json!(commit('b'));
    fs::write(folder.join("result.json"), edited.to_string()).unwrap();
    scene.run(scene.goodput(&["judge", &shown])).exits(70).says(&["what it was compared with"]);
}

#[test]
fn a_record_that_is_no_evidence_or_of_another_contract_is_refused_before_anything_runs() {
    let scene = scene();
    let mut void = record("tiny", &commit('a'), "m");
    void.invalid.push("completeness: not_measured".to_owned());
    write_record(&scene.path("void.json"), &void.sealed()).unwrap();
    write_record(&scene.path("other.json"), &record("other", &commit('a'), "m")).unwrap();
    fs::write(scene.path("text.json"), "no record").unwrap();
    for (file, told) in
        [("void.json", "no evidence"), ("other.json", "`other`"), ("text.json", "not JSON"), ("none.json", "no file")]
    {
        let arguments = ["gate", "--runs", "runs", "contract.yaml", "--baseline", file];
        scene.run(scene.goodput(&arguments)).exits(2).says(&[told]).began_nothing();
    }
}
