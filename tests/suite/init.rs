//! `goodput init`: what it writes is a contract that validates, and that meets its server.

use std::fs;
use std::net::TcpStream;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::scene::{Scene, read, until};

const SERVERS: [&str; 5] = ["vllm", "sglang", "llama.cpp", "tgi", "ollama"];

const FILES: [&str; 4] =
    [".goodput/contract.yaml", ".goodput/cases.json", ".goodput/.gitignore", ".github/workflows/goodput.yml"];

#[test]
fn every_server_gets_a_contract_whose_objectives_can_pass() {
    for server in SERVERS {
        let scene = Scene::new();
        let ran = scene.run(scene.goodput(&["init", "--server", server])).exits(0);
        ran.shows(&FILES).shows(&["not the root of a git repository"]);
        let ran = scene.run(scene.goodput(&["validate", "--output-format", "json"])).exits(0);
        let plan: Value = serde_json::from_str(&ran.stdout).unwrap();
        let objectives = plan["objectives"].as_array().unwrap();
        assert_eq!(objectives.len(), 5, "{server}");
        for objective in objectives {
            assert_eq!(
                (&objective["can_pass"], &objective["notes"]),
                (&json!(true), &json!([])),
                "{server}: {objective}"
            );
        }
        // Written once, and never over what is there.
        fs::remove_file(scene.path(FILES[1])).unwrap();
        let before = read(&scene.path(FILES[0]));
        let ran = scene.run(scene.goodput(&["init", "--server", "vllm"])).exits(2);
        ran.says(&["nothing was written", "contract.yaml", "goodput.yml"]);
        assert_eq!(read(&scene.path(FILES[0])), before);
        assert!(!scene.path(FILES[1]).exists());
    }
}

#[test]
fn the_server_that_was_chosen_is_started_with_the_model_that_was_named() {
    let expected = [
        ("vllm", "[vllm, serve, \"o/m: {x} #1\", ", "{ preset: vllm }", "install vllm"),
        ("sglang", "sglang.launch_server, --model-path, \"o/m: {x} #1\", ", "{ preset: sglang }", "sglang"),
        ("llama.cpp", "[llama-server, -hf, \"o/m: {x} #1\", ", "{ preset: llama_cpp }", "llama-server"),
        (
            "tgi",
            "[text-generation-launcher, --model-id, \"o/m: {x} #1\", ",
            "{ preset: tgi }",
            "text-generation-launcher",
        ),
        ("ollama", "model: \"o/m: {x} #1\"", "protocol: ollama", "ollama pull \"$MODEL\""),
    ];
    for (server, command, resources, step) in expected {
        let scene = Scene::new();
        fs::create_dir(scene.path(".git")).unwrap();
        scene.run(scene.goodput(&["init", "--server", server, "--model", "o/m: {x} #1"])).exits(0);
        let contract = read(&scene.path(FILES[0]));
        let workflow = read(&scene.path(FILES[3]));
        assert!(contract.contains(command) && contract.contains(resources), "{contract}");
        assert!(workflow.contains(step), "{workflow}");
        scene.run(scene.goodput(&["validate"])).exits(0);
    }
    let scene = Scene::new();
    for model in ["", "a\nb", "${{ secrets.X }}"] {
        scene.run(scene.goodput(&["init", "--server", "vllm", "--model", model])).exits(2).says(&["model's name"]);
    }
    scene.run(scene.goodput(&["init", "--server", "vllm", "--url", "ftp://host/"])).exits(2).says(&["url"]);
    assert!(!scene.path(".goodput").exists());
}

#[test]
fn a_server_that_runs_is_met_at_its_address() {
    let simulated = Scene::new();
    let mut command = simulated.goodput(&["simulate", "--listen", "127.0.0.1:0"]);
    let server = simulated.start(&mut command);
    let address = || {
        let said = read(&simulated.path("stderr")) + &read(&simulated.path("stdout"));
        let start = said.find("http://")?;
        let address: String = said[start..].chars().take_while(|c| !c.is_whitespace()).collect();
        said[start..].contains('\n').then_some(address)
    };
    until(|| address().is_some());
    let base = address().unwrap();
    let port = base.trim_end_matches(|c: char| !c.is_ascii_digit()).rsplit(':').next().unwrap();
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    until(|| TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    let scene = Scene::new();
    let url = format!("http://127.0.0.1:{port}/v1/chat/completions");
    let server_alone = format!("http://127.0.0.1:{port}");
    scene.run(scene.goodput(&["init", "--server", "sglang", "--model", "simulated", "--url", &server_alone])).exits(0);
    assert!(read(&scene.path(FILES[0])).contains(&format!("url: \"{url}\"")), "the path is the server's own");
    assert!(!read(&scene.path(FILES[0])).contains("launch"));
    assert!(!read(&scene.path(FILES[3])).contains("install"), "nothing is installed for a server that runs");
    // Everything but SGLang's own metrics answers.
    let ran = scene.run(scene.goodput(&["smoke", ".goodput/contract.yaml"]));
    ran.shows(&["ok"]);
    assert!(Path::new(&scene.path(FILES[1])).exists());
    server.signal(Signal::SIGTERM);
    server.end();
}
