//! Servers that will not be asked for token counts.

use std::sync::{Arc, Mutex};

use goodput::units::DigestBuilder;
use serde_json::{Value, json};

use crate::scene::{Contract, RunResult, Scene};
use crate::scripted::{Answer, Scripted, reply, streamed};

const REFUSAL: &str = r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#;

/// The bodies of the requests, in the order they came.
type Bodies = Arc<Mutex<Vec<String>>>;

/// A server that refuses some bodies and answers the others, without token counts.
fn start(refuses: impl Fn(&str) -> bool + Send + Sync + 'static) -> (Scripted, Bodies) {
    let bodies = Bodies::default();
    let server = Scripted::start({
        let bodies = Arc::clone(&bodies);
        move |_, request| {
            let (_, body) = request.split_once("\r\n\r\n").unwrap();
            let refused = refuses(body);
            bodies.lock().unwrap().push(body.to_owned());
            Answer::Bytes(if refused {
                reply("400 Bad Request", "application/json", REFUSAL)
            } else {
                streamed("hi", "stop").replace("\"usage\"", "\"unused\"")
            })
        }
    });
    (server, bodies)
}

fn asks(body: &str) -> bool {
    body.contains("stream_options")
}

/// A contract with a limit on tokens.
fn contract(server: &Scripted) -> Contract {
    let mut contract = Contract::of(format!("url: {}", server.url()));
    contract.loads = "40/s";
    contract.trial = "requests: 40, warm_up: 100ms";
    contract
}

fn scene(contract: &Contract) -> Scene {
    let scene = Scene::new();
    let tokens = "    - { metric: tpot, percentile: 50, at_most: 1s }\n  at_load";
    scene.write("contract.yaml", contract.text().replace("  at_load", tokens));
    scene
}

fn notices(result: &RunResult) -> Vec<&str> {
    result.value["endpoint"]["notices"].as_array().unwrap().iter().map(|notice| notice.as_str().unwrap()).collect()
}

#[test]
fn a_server_that_refuses_the_wish_is_measured_without_and_the_result_says_so() {
    let (server, bodies) = start(asks);
    let contract = contract(&server);
    let scene = scene(&contract);
    let said = ["refuses `stream_options.include_usage`", "400", "Unrecognized request argument"];
    let ran = scene.gate().exits(3).says(&said).shows(&["notice:", said[0]]);
    let result = ran.result();
    assert_eq!(result.overall(), "UNKNOWN");
    assert_eq!(result.row("success_rate").0, "PASS");
    assert_eq!(result.row("tpot_p50"), ("UNKNOWN", "no_usage"));
    let [notice] = notices(&result)[..] else { panic!("{}", result.value["endpoint"]) };
    assert!(said.iter().all(|text| notice.contains(text)), "{notice}");
    let summary = std::fs::read_to_string(result.folder.join("summary.md")).unwrap();
    assert!(summary.contains("notice: the server refuses"), "{summary}");
    assert!(result.requests().iter().all(|request| request["outcome"] == "ok"));
    // It was asked with the wish before and after it was asked without, and then never again; and the digest is that of
    // what was sent.
    let mut bodies = bodies.lock().unwrap().clone();
    assert_eq!(bodies.iter().filter(|body| asks(body)).count(), 2);
    assert!(asks(&bodies.remove(2)));
    let plain = json!({
        "model": "tiny", "messages": [{ "role": "user", "content": "Hi there" }], "max_tokens": 4, "stream": true,
    });
    assert_eq!(serde_json::from_str::<Value>(&bodies[1]).unwrap(), plain);
    assert!(bodies[1..].iter().all(|body| *body == bodies[1]));
    let mut digest = DigestBuilder::default();
    digest.word(1);
    digest.field(b"one");
    digest.field(bodies[1].as_bytes());
    assert_eq!(result.value["workload_digest"], digest.finish().as_str());
}

#[test]
fn a_refusal_that_the_plain_request_shares_is_the_first_one_s() {
    let (server, bodies) = start(|_| true);
    let result = scene(&contract(&server)).gate().exits(3).result().value;
    assert_eq!(result["endpoint"]["notices"], json!([]));
    let detail = result["endpoint"]["ready"]["detail"].as_str().unwrap();
    assert!(detail.contains("http_error 400") && detail.contains("Unrecognized request argument"), "{detail}");
    assert_eq!(bodies.lock().unwrap().len(), 2, "each way is tried once");
}

#[test]
fn a_payload_that_writes_the_wish_itself_is_not_touched() {
    let (server, bodies) = start(asks);
    let mut contract = contract(&server);
    contract.workload.push_str(
        "\n  payload: { model: $model, prompt: $prompt, stream: true, stream_options: { include_usage: true } }",
    );
    let result = scene(&contract).gate().exits(3).result().value;
    assert_eq!(result["endpoint"]["notices"], json!([]));
    assert_eq!(result["endpoint"]["ready"]["state"], "unreachable");
    assert!(bodies.lock().unwrap().iter().all(|body| asks(body)));
}

#[test]
fn a_dry_run_finds_out_by_itself() {
    let (server, bodies) = start(asks);
    let scene = Scene::new();
    let flags = ["smoke", "--url", &server.url(), "--protocol", "openai-chat", "--model", "m", "--prompt", "Hi"];
    let ran = scene.run(scene.goodput(&flags)).exits(0);
    ran.shows(&["notice: the server refuses `stream_options.include_usage`", "PASS"]);
    assert!(!asks(bodies.lock().unwrap().last().unwrap()));

    let ran = scene.run(scene.goodput(&[&flags[..], &["--output-format", "json"]].concat())).exits(0);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (report["requests"][0]["outcome"].as_str(), report["requests"].as_array().unwrap().len()),
        (Some("ok"), 1)
    );
    assert!(report["notices"][0].as_str().unwrap().contains("stream_options"), "{report:#}");
    assert!(!report["sent"]["body"].as_str().unwrap().contains("stream_options"), "{}", report["sent"]);

    let (server, _) = start(|_| true);
    let flags = flags.map(|flag| if flag.starts_with("http:") { server.url() } else { flag.to_owned() });
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    scene.run(scene.goodput(&flags)).exits(1).shows(&["http_error 400: Unrecognized request argument"]);
}
