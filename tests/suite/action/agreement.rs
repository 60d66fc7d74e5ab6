//! `action.yml`, the scripts, the documentation and the program say the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use saphyr::{LoadableYamlNode, Yaml};

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Hands `action.yml` to a test.
fn action<T>(look: impl Fn(&Yaml<'_>) -> T) -> T {
    look(&Yaml::load_from_str(&read("action.yml")).unwrap()[0])
}

fn keys(node: &Yaml<'_>) -> Vec<String> {
    node.as_mapping().unwrap().keys().map(|key| key.as_str().unwrap().to_owned()).collect()
}

/// What stands between backticks in the first column of the table below a heading of the documentation.
fn first_column(heading: &str) -> Vec<String> {
    let text = read("docs/github.md");
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.map(|row| row.split(" | ").next().unwrap());
    cells.flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`').to_owned())).collect()
}

#[test]
fn the_documentation_lists_every_input_and_output_and_no_other() {
    for (heading, part) in [("Inputs", "inputs"), ("Outputs", "outputs")] {
        assert_eq!(
            first_column(heading).into_iter().collect::<BTreeSet<_>>(),
            action(|action| keys(&action[part])).into_iter().collect::<BTreeSet<_>>()
        );
    }
}

#[test]
fn every_input_and_output_is_told_and_reaches_its_step() {
    action(|action| {
        // The longest that the Marketplace takes.
        assert!(action["description"].as_str().unwrap().len() <= 125);
        let text = read("action.yml");
        for name in keys(&action["inputs"]) {
            assert!(name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'), "{name}");
            assert!(!action["inputs"][name.as_str()]["description"].as_str().unwrap().is_empty(), "{name}");
            let variable = match name.as_str() {
                "token" => "GITHUB_TOKEN".to_owned(),
                name => format!("GOODPUT_INPUT_{}", name.to_uppercase().replace('-', "_")),
            };
            assert!(text.contains(&format!("{variable}: ${{{{ inputs.{name} }}}}\n")), "{name} reaches no step");
            assert!(
                variable == "GITHUB_TOKEN"
                    || scripts().contains(&format!("{variable}-}}"))
                    || scripts().contains(&format!("{variable}:")),
                "{variable} is read nowhere"
            );
        }
        for name in keys(&action["outputs"]) {
            let output = &action["outputs"][name.as_str()];
            assert!(output["value"].as_str().unwrap().contains(&format!("outputs.{name}")), "{name}");
        }
        for step in action["runs"]["steps"].as_sequence().unwrap() {
            assert!(!step["run"].as_str().unwrap().contains("${{"), "a value is written into a script: {step:?}");
            assert_eq!((step["env"]["BASH_ENV"].as_str(), step["env"]["ENV"].as_str()), (Some(""), Some("")));
            assert!(step["shell"].as_str().unwrap().starts_with("bash --noprofile --norc -euo pipefail"));
        }
    });
}

fn scripts() -> String {
    ["common", "install", "run", "save"].map(|name| read(&format!("scripts/action/{name}.sh"))).concat()
}

fn help(command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_goodput")).args([command, "--help"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Every option that the scripts write is one that the program has, with the values that they allow.
#[test]
fn the_program_knows_what_the_scripts_say() {
    let script = read("scripts/action/run.sh");
    let gate = help("gate");
    let options: BTreeSet<&str> = script
        .split(|letter: char| !(letter.is_ascii_lowercase() || letter == '-'))
        .filter(|word| word.len() > 2 && word.starts_with("--") && *word != "--noprofile")
        .collect();
    assert!(options.len() > 10, "{options:?}");
    for option in options.iter().filter(|option| **option != "--contract") {
        assert!(gate.contains(option), "`goodput gate` has no {option}");
    }
    assert!(help("publish").contains("--contract"));
    let choices = read("scripts/action/common.sh");
    for (name, help) in [("plan", &gate), ("unknown", &gate), ("comment", &gate)] {
        let line =
            choices.lines().find_map(|line| line.trim().strip_prefix(&format!("one_of {name} \"${name}\" "))).unwrap();
        let (_, section) = help.split_once(&format!("--{name} <")).unwrap_or_else(|| panic!("no --{name}"));
        let section = section.split("\n      --").next().unwrap();
        for value in line.split(' ') {
            assert!(section.contains(value), "`--{name}` knows no {value}: {section}");
        }
    }
}
