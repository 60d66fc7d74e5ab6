//! Every stored reply and every request against the published descriptions.

use goodput::contract::{ContainerField, PodField, Source};
use serde_json::{Value, json};
use url::Url;

use super::server::{Engine, json as reply, ping};
use super::{container, docker, fixture, podman, pods, prober, series};
use crate::client::HANG;

fn description(engine: &str) -> Value {
    serde_json::from_str(&fixture(&format!("{engine}.description"))).unwrap()
}

/// A validator for one type of a description, with the others beside it.
fn validator(engine: &str, name: &str) -> jsonschema::Validator {
    let mut schema = description(engine);
    let place = if engine == "kubernetes" { "components/schemas" } else { "definitions" };
    assert!(schema.pointer(&format!("/{place}/{name}")).is_some(), "{engine} has no {name}");
    schema["$ref"] = json!(format!("#/{place}/{name}"));
    // Of the document only the types are a schema.
    schema.as_object_mut().unwrap().retain(|key, _| ["$ref", "components", "definitions"].contains(&key.as_str()));
    jsonschema::validator_for(&schema).unwrap()
}

const PODS: &str = "io.k8s.api.core.v1.PodList";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

const REPLIES: [(&str, &str, &str); 11] = [
    ("docker", "ContainerInspectResponse", "running"),
    ("docker", "ErrorResponse", "not-found"),
    ("podman", "InspectContainerData", "running"),
    ("podman", "ErrorModel", "not-found"),
    ("kubernetes", PODS, "page-1"),
    ("kubernetes", PODS, "page-2"),
    ("kubernetes", PODS, "empty"),
    ("kubernetes", STATUS, "forbidden"),
    ("kubernetes", STATUS, "unauthorized"),
    ("kubernetes", STATUS, "expired"),
    ("kubernetes", STATUS, "too-many-requests"),
];

#[test]
fn every_stored_reply_is_as_described() {
    for (engine, name, file) in REPLIES {
        let reply: Value = serde_json::from_str(&fixture(&format!("{engine}.{file}"))).unwrap();
        let faults: Vec<String> = validator(engine, name)
            .iter_errors(&reply)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert_eq!(faults, Vec::<String>::new(), "{engine}.{file}");
    }
    let stored = std::fs::read_dir(format!("{}/tests/fixtures/engines", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let json = stored.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "json"));
    assert_eq!(json.count(), REPLIES.len() + 3, "a file is not checked here");
}

/// What the descriptions do not allow, the probes do not read either.
#[tokio::test]
async fn a_reply_of_another_shape_is_refused() {
    for (engine, name, file, pointer, odd) in [
        ("docker", "ContainerInspectResponse", "running", "/RestartCount", json!("3")),
        ("docker", "ContainerInspectResponse", "running", "/RestartCount", json!(0.5)),
        ("docker", "ContainerInspectResponse", "running", "/RestartCount", json!(null)),
        ("docker", "ContainerInspectResponse", "running", "/Id", json!("vllm")),
        ("docker", "ContainerInspectResponse", "running", "/State/OOMKilled", json!("false")),
        ("docker", "ContainerInspectResponse", "running", "/State/StartedAt", json!(1_700_000_000)),
        ("docker", "ContainerInspectResponse", "running", "/State", json!([])),
        ("podman", "InspectContainerData", "running", "/RestartCount", json!("3")),
        ("podman", "InspectContainerData", "running", "/State/OOMKilled", json!(1)),
        ("podman", "InspectContainerData", "running", "/State", json!("running")),
        ("kubernetes", PODS, "page-2", "/items/0/status/containerStatuses/0/restartCount", json!("3")),
        ("kubernetes", PODS, "page-2", "/items/0/status/containerStatuses/0/restartCount", json!(0.5)),
        ("kubernetes", PODS, "page-2", "/items/0/status/containerStatuses/0/restartCount", json!(null)),
        ("kubernetes", PODS, "page-2", "/items/0/status/containerStatuses/0/state/running/startedAt", json!(5)),
        ("kubernetes", PODS, "page-2", "/items/0/metadata/name", json!(7)),
        ("kubernetes", PODS, "page-2", "/items", json!({})),
        ("kubernetes", PODS, "page-2", "/items", json!(null)),
    ] {
        let mut body: Value = serde_json::from_str(&fixture(&format!("{engine}.{file}"))).unwrap();
        *body.pointer_mut(pointer).unwrap() = odd.clone();
        assert!(!validator(engine, name).is_valid(&body), "{engine} allows {pointer} = {odd}");
        let body = body.to_string();
        let said = move |_: usize, head: &str| if head.contains("/_ping") { ping() } else { reply(200, "", &body) };
        let failure = match engine {
            "kubernetes" => {
                let server = Engine::on_tls(false, said).await;
                let config = server.kubeconfig("certificate-authority: ca.pem", "token: abc");
                series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap_err()
            }
            _ => {
                let server = Engine::on_socket(said).await;
                let ask = if engine == "docker" { docker } else { podman };
                series(ask(&server.address, ContainerField::RestartCount).read().await).unwrap_err()
            }
        };
        let told = ["sent no", "told of container", "which is no count"].iter().any(|text| failure.contains(text));
        assert!(told, "{engine} {pointer} = {odd}: {failure}");
    }
}

#[tokio::test]
async fn a_field_that_is_missing_is_named() {
    for field in ["Id", "RestartCount", "State"] {
        let mut body: Value = serde_json::from_str(&fixture("docker.running")).unwrap();
        body.as_object_mut().unwrap().remove(field);
        let body = body.to_string();
        let server =
            Engine::on_socket(move |_, head| if head.contains("/_ping") { ping() } else { reply(200, "", &body) })
                .await;
        let failure = series(docker(&server.address, ContainerField::OomKilled).read().await).unwrap_err();
        assert!(failure.contains(&format!("missing field `{field}`")), "{failure}");
    }
}

#[tokio::test]
async fn every_request_is_as_described() {
    let running = |name: &'static str| {
        move |_: usize, head: &str| if head.contains("/_ping") { ping() } else { reply(200, "", &fixture(name)) }
    };
    let server = Engine::on_socket(running("docker.running")).await;
    let odd = container(&server.address, "a/b?c", ContainerField::StartTime);
    series(prober(Source::Docker(odd), HANG).read().await).unwrap();
    check_requests("docker", &server);
    let server = Engine::on_socket(running("podman.running")).await;
    series(podman(&server.address, ContainerField::StartTime).read().await).unwrap();
    check_requests("podman", &server);
    let server =
        Engine::on_tls(false, |number, _| reply(200, "", &fixture(["kubernetes.page-1", "kubernetes.page-2"][number])))
            .await;
    let config = server.kubeconfig("certificate-authority: ca.pem", "token: abc");
    series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap();
    check_requests("kubernetes", &server);
}

fn check_requests(engine: &str, server: &Engine) {
    let description = description(engine);
    let lines = server.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in lines {
        check_request(engine, &description, &line);
    }
}

fn check_request(engine: &str, description: &Value, line: &str) {
    let [method, target, "HTTP/1.1"] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let url = Url::parse(&format!("http://engine{target}")).unwrap();
    let mut path = url.path();
    if engine != "kubernetes" && !path.ends_with("/_ping") {
        let (version, rest) = path[1..].split_once('/').unwrap();
        assert!(version.starts_with('v') && version[1..].starts_with(|digit: char| digit.is_ascii_digit()), "{line}");
        path = &path[1 + version.len()..];
        assert!(path.ends_with(rest));
    }
    let is_of = |template: &str| {
        let (asked, known) = (path.split('/'), template.split('/'));
        asked.clone().count() == known.clone().count()
            && asked.zip(known).all(|(asked, known)| asked == known || (known.starts_with('{') && !asked.is_empty()))
    };
    let paths = description["paths"].as_object().unwrap();
    let (_, item) =
        paths.iter().find(|(template, _)| is_of(template)).unwrap_or_else(|| panic!("{line} is not described"));
    let operation = &item[method.to_ascii_lowercase()];
    assert!(operation.is_object(), "{line} is not described");
    let parameters = || operation["parameters"].as_array().into_iter().flatten();
    for (name, value) in url.query_pairs() {
        let parameter = parameters().find(|parameter| parameter["in"] == "query" && parameter["name"] == *name);
        let parameter = parameter.unwrap_or_else(|| panic!("{name} of {line} is not described"));
        let kind = parameter["schema"]["type"].as_str().or(parameter["type"].as_str()).unwrap();
        assert!(kind == "string" || (kind == "integer" && value.parse::<u64>().is_ok()), "{name} of {line}");
    }
}
