//! Docker and Podman.

use goodput::contract::{ContainerField, Source};
use serde_json::{Value, json};

use super::server::{Act, Engine, json as reply, ping};
use super::{container, docker, fixture, podman, prober, series, told};
use crate::client::HANG;

/// Answers `/_ping`, and everything else with this.
fn engine(body: String) -> impl Fn(usize, &str) -> Act + Send + Sync {
    move |_, head| if head.contains("/_ping") { ping() } else { reply(200, "", &body) }
}

/// A container of Docker that runs, with these changes.
fn described(changes: &[(&str, Value)]) -> String {
    let mut body: Value = serde_json::from_str(&fixture("docker.running")).unwrap();
    for (pointer, value) in changes {
        *body.pointer_mut(pointer).unwrap() = value.clone();
    }
    body.to_string()
}

#[tokio::test]
async fn docker_tells_restarts_kills_and_the_start_over_its_socket_and_over_tcp() {
    let since = "aa86eacfb3b3 started 2020-01-06T09:06:59.461876391Z";
    let body = described(&[("/RestartCount", json!(3))]);
    for engine in [Engine::on_socket(engine(body.clone())).await, Engine::on_tcp(engine(body.clone())).await] {
        for (field, value) in
            [(ContainerField::RestartCount, 3.0), (ContainerField::OomKilled, 0.0), (ContainerField::StartTime, 1.0)]
        {
            let reading = docker(&engine.address, field).read().await;
            assert_eq!(reading.value, Some(value));
            assert_eq!(series(reading), Ok(vec![told("vllm", since, value)]));
        }
        assert_eq!(engine.lines()[..2], ["GET /_ping HTTP/1.1", "GET /v1.41/containers/vllm/json HTTP/1.1"]);
    }
}

#[tokio::test]
async fn podman_tells_the_same_by_its_own_api() {
    let engine = Engine::on_socket(engine(fixture("podman.running"))).await;
    let since = "61c35835f4bc started 2026-11-30T01:34:37.316644247Z";
    for (field, value) in
        [(ContainerField::RestartCount, 1.0), (ContainerField::OomKilled, 0.0), (ContainerField::StartTime, 1.0)]
    {
        let reading = podman(&engine.address, field).read().await;
        assert_eq!(series(reading), Ok(vec![told("vllm", since, value)]));
    }
    assert_eq!(engine.lines()[..2], ["GET /_ping HTTP/1.1", "GET /v4.3.1/libpod/containers/vllm/json HTTP/1.1"]);
}

#[tokio::test]
async fn a_count_is_read_in_every_form_that_json_has_for_it() {
    let body = fixture("docker.running").replace("\"RestartCount\": 0", "\"RestartCount\": 1.2e1");
    let engine = Engine::on_socket(engine(body)).await;
    let reading = docker(&engine.address, ContainerField::RestartCount).read().await;
    assert_eq!(reading.value, Some(12.0));
}

#[tokio::test]
async fn a_name_cannot_ask_for_another_path() {
    let engine = Engine::on_socket(engine(described(&[]))).await;
    for (name, path) in [("../info?x=1#y", "..%2Finfo%3Fx=1%23y"), ("modèle", "mod%C3%A8le"), ("a b", "a%20b")] {
        let source = container(&engine.address, name, ContainerField::RestartCount);
        assert_eq!(prober(Source::Docker(source), HANG).read().await.failure, None);
        assert_eq!(engine.lines().last().unwrap(), &format!("GET /v1.41/containers/{path}/json HTTP/1.1"));
    }
    let asked = engine.lines().len();
    for name in ["..", ".", ""] {
        let source = container(&engine.address, name, ContainerField::RestartCount);
        let failure = series(prober(Source::Docker(source), HANG).read().await).unwrap_err();
        assert_eq!(failure, format!("`{name}` is no name"));
    }
    let more = engine.lines()[asked..].to_vec();
    assert!(more.iter().all(|line| line == "GET /_ping HTTP/1.1"), "{more:?}");
}

/// The answers to one description after the other.
async fn answers(field: ContainerField, bodies: Vec<String>) -> Vec<Result<Vec<goodput::record::Series>, String>> {
    let count = bodies.len();
    let engine = Engine::on_socket(
        move |number, head| {
            if head.contains("/_ping") { ping() } else { reply(200, "", &bodies[number / 2]) }
        },
    )
    .await;
    let mut prober = docker(&engine.address, field);
    let mut answers = Vec::new();
    for _ in 0..count {
        answers.push(series(prober.read().await));
    }
    answers
}

#[tokio::test]
async fn a_restart_by_hand_shows_though_the_count_stays() {
    let again = described(&[("/State/StartedAt", json!("2020-01-07T09:06:59Z"))]);
    let told = answers(ContainerField::RestartCount, vec![described(&[]), again]).await;
    let since: Vec<_> = told.into_iter().map(|told| told.unwrap()[0].since.clone().unwrap()).collect();
    assert_eq!(
        since,
        ["aa86eacfb3b3 started 2020-01-06T09:06:59.461876391Z", "aa86eacfb3b3 started 2020-01-07T09:06:59Z"]
    );
}

#[tokio::test]
async fn a_container_that_does_not_run_is_no_number_unless_it_rose() {
    let stopped = |status, restarts: u32, oom| {
        described(&[
            ("/State/Status", json!(status)),
            ("/RestartCount", json!(restarts)),
            ("/State/OOMKilled", json!(oom)),
            ("/State/ExitCode", json!(137)),
        ])
    };
    for status in ["created", "paused", "restarting", "removing", "exited", "dead"] {
        let code = if status == "exited" { " with code 137" } else { "" };
        let text = format!("container `vllm` is not running but {status}{code}");
        let told = answers(
            ContainerField::RestartCount,
            vec![described(&[]), stopped(status, 0, false), stopped(status, 1, false)],
        );
        let told = told.await;
        assert_eq!(told[1], Err(text.clone()));
        let risen = told[2].clone().unwrap();
        assert_eq!((risen[0].value, risen[0].since.as_ref().unwrap().ends_with(&text)), (1.0, true), "{risen:?}");
        for field in [ContainerField::RestartCount, ContainerField::StartTime, ContainerField::OomKilled] {
            assert_eq!(answers(field, vec![stopped(status, 0, false)]).await, [Err(text.clone())]);
        }
    }
    let told = answers(ContainerField::OomKilled, vec![described(&[]), stopped("exited", 0, true)]).await;
    assert_eq!(told[1].clone().unwrap()[0].value.to_string(), "1");
}

#[tokio::test]
async fn a_kill_before_the_run_would_hide_the_next_one() {
    let killed = described(&[("/State/OOMKilled", json!(true))]);
    let told = answers(ContainerField::OomKilled, vec![killed.clone(), described(&[]), killed]).await;
    let failure = told[0].clone().unwrap_err();
    assert!(
        failure.starts_with("a process of container `vllm` was killed for want of memory before this run"),
        "{failure}"
    );
    let values: Vec<_> = told[1..].iter().map(|told| told.clone().unwrap()[0].value).collect();
    assert_eq!(values, [0.0, 1.0]);
}
