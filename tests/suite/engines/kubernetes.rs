//! Kubernetes, behind TLS as it always is.

use std::path::PathBuf;

use goodput::contract::{KubernetesSource, PodField, Source};
use serde_json::{Value, json};

use super::server::{Act, Engine, json as reply};
use super::{fixture, pods, prober, series, told};
use crate::client::HANG;

/// A token that no message may show.
const TOKEN: &str = "eyJhbGciOi.s3cret.token";

const CA: &str = "certificate-authority: ca.pem";

async fn server(act: impl Fn(usize, &str) -> Act + Send + Sync + 'static) -> (Engine, PathBuf) {
    let engine = Engine::on_tls(false, act).await;
    let config = engine.kubeconfig(CA, &format!("token: {TOKEN}"));
    (engine, config)
}

/// The failure that one reading tells when every request is answered so, and how many requests there were.
async fn failure(said: Act) -> (String, usize) {
    let (engine, config) = server(move |_, _| said.clone()).await;
    let failure = series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap_err();
    assert!(!failure.contains("s3cret"), "{failure}");
    (failure, engine.lines().len())
}

fn pages(number: usize, _: &str) -> Act {
    reply(200, "", &fixture(["kubernetes.page-1", "kubernetes.page-2"][number % 2]))
}

#[tokio::test]
async fn all_pages_are_read_and_every_container_told() {
    let (engine, config) = server(pages).await;
    let first = ("vllm-7d4b9c6f5-2xkqp", "6b3c1c0e-5a0a-4a6c-9a5e-0f6d7f0c7a11");
    let second = ("vllm-7d4b9c6f5-9wz7d", "0d9e5a52-9b37-4a43-8a3c-2f1f2f1b8c22");
    let all = KubernetesSource {
        namespace: Some("other".to_owned()),
        selector: "app in (vllm, sglang),tier!=test".to_owned(),
        container: None,
        context: None,
        kubeconfig: Some(config.clone()),
        field: PodField::RestartCount,
    };
    let reading = prober(Source::Kubernetes(all), HANG).read().await;
    let of = |(pod, uid): (&str, &str), container: &str, value| told(&format!("{pod}/{container}"), uid, value);
    let expected = vec![
        of(first, "vllm", 1.0),
        of(first, "exporter", 0.0),
        of(first, "proxy", 0.0),
        of(second, "vllm", 0.0),
        of(second, "exporter", 0.0),
        of(second, "proxy", 3.0),
    ];
    assert_eq!((reading.value, series(reading)), (Some(4.0), Ok(expected)));
    let path = "/api/v1/namespaces/other/pods?labelSelector=app+in+%28vllm%2C+sglang%29%2Ctier%21%3Dtest&limit=100";
    let next = format!("{path}&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTg3NjV9");
    assert_eq!(engine.lines(), [format!("GET {path} HTTP/1.1"), format!("GET {next} HTTP/1.1")]);
    for head in engine.requests() {
        assert!(head.contains(&format!("authorization: Bearer {TOKEN}\r\n")), "{head}");
    }
    let kills = series(pods(&config, PodField::OomKilled, HANG).read().await).unwrap();
    assert_eq!(kills.iter().map(|series| series.value).collect::<Vec<_>>(), [1.0, 0.0]);
    assert!(engine.lines()[2].starts_with("GET /api/v1/namespaces/serving/pods?labelSelector=app%3Dvllm&"));
    let starts = series(pods(&config, PodField::StartTime, HANG).read().await).unwrap();
    assert_eq!(
        starts[1],
        told(&format!("{}/vllm", second.0), &format!("{} started 2026-11-20T08:00:07Z", second.1), 1.0)
    );
}

#[tokio::test]
async fn refusals_name_what_is_missing() {
    let stored = |name: &str| fixture(&format!("kubernetes.{name}"));
    for (said, expected) in [
        (reply(401, "", &stored("unauthorized")), "answered 401 and `Unauthorized`; the credentials are not accepted"),
        (
            reply(403, "", &stored("forbidden")),
            "this user needs the verb `list` on `pods`: `kubectl auth can-i list pods -n serving`",
        ),
        (reply(404, "", "404 page not found"), "answered 404 and `404 page not found`; is this the address of"),
        (reply(429, "Retry-After: 7\r\n", &stored("too-many-requests")), "it is overloaded and asks to wait for 7 s"),
        (reply(429, "Retry-After: soon\r\n", ""), "it is overloaded"),
        (reply(500, "", "<html>oops</html>"), "answered 500 and `<html>oops</html>`"),
        (reply(302, "Location: https://127.0.0.1:1/login\r\n", ""), "answered 302 and nothing else"),
        (
            reply(200, "", &stored("empty")),
            "no pod for selector `app=vllm` in namespace `serving` at https://127.0.0.1:",
        ),
        (reply(200, "", &stored("forbidden")), "sent no list of pods: missing field `items`"),
        (reply(200, "", &stored("empty").replace("PodList", "Table")), "sent `Table` where a PodList was expected"),
        (reply(200, "", "<html>log in</html>"), "sent no list of pods: expected value"),
        (reply(500, "", &format!("your header was Bearer {TOKEN}")), "your header was Bearer ***"),
        (reply(200, "", &format!("{{\"kind\":\"{TOKEN}\",\"items\":[]}}")), "sent `***` where"),
        (reply(200, "", &format!("{{\"kind\":\"PodList\",\"items\":\"{TOKEN}\"}}")), "sent no list of pods"),
        (Act::Say(b"garbage\r\n".to_vec()), "no reply from Kubernetes at https://127.0.0.1:"),
    ] {
        let (told, requests) = failure(said).await;
        assert!(told.contains(expected), "{told} has no {expected}");
        assert_eq!(requests, 1, "{told}");
    }
}

#[tokio::test]
async fn a_list_that_expired_is_read_once_more_from_its_beginning() {
    let (engine, config) = server(|number, head| match number {
        1 => reply(410, "", &fixture("kubernetes.expired")),
        _ if head.contains("continue=") => pages(1, head),
        _ => pages(0, head),
    })
    .await;
    let told = series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap();
    let continued: Vec<bool> = engine.lines().iter().map(|line| line.contains("continue=")).collect();
    assert_eq!((told.len(), continued), (2, vec![false, true, false, true]));
    let (engine, config) = server(|_, head| {
        if head.contains("continue=") { reply(410, "", &fixture("kubernetes.expired")) } else { pages(0, head) }
    })
    .await;
    let failure = series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap_err();
    assert!(failure.ends_with("the list changes faster than it can be read"), "{failure}");
    assert_eq!(engine.lines().len(), 4);
}

#[tokio::test]
async fn a_list_without_end_is_given_up() {
    let same = fixture("kubernetes.page-1");
    let (told, requests) = failure(reply(200, "", &same)).await;
    assert!(told.ends_with("lists the same page again and again"), "{told}");
    assert_eq!(requests, 2);
    let (engine, config) = server(|number, _| {
        let mut page: Value = serde_json::from_str(&fixture("kubernetes.page-1")).unwrap();
        let pod = page["items"][0].clone();
        page["items"] = Value::Array(vec![pod; 100]);
        page["metadata"]["continue"] = json!(format!("mark-{number}"));
        reply(200, "", &page.to_string())
    })
    .await;
    let failure = series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap_err();
    assert_eq!(failure, "selector `app=vllm` matches more than 1000 pods; narrow it");
    assert_eq!(engine.lines().len(), 11);
}

#[tokio::test]
async fn a_pod_that_is_replaced_between_readings_is_another_series() {
    let (_engine, config) = server(|number, _| {
        let mut page: Value = serde_json::from_str(&fixture("kubernetes.page-2")).unwrap();
        page["items"][0]["metadata"]["name"] = json!(format!("vllm-{number}"));
        reply(200, "", &page.to_string())
    })
    .await;
    let mut prober = pods(&config, PodField::StartTime, HANG);
    let [first, second] = [series(prober.read().await).unwrap(), series(prober.read().await).unwrap()];
    assert_eq!((first[0].of.as_str(), second[0].of.as_str()), ("vllm-0/vllm", "vllm-1/vllm"));
}

#[tokio::test]
async fn the_server_is_who_the_kubeconfig_says() {
    let engine = Engine::on_tls(false, pages).await;
    let token = format!("token: {TOKEN}");
    // Without its certificate the system's are trusted, and none of them is behind this server.
    let config = engine.kubeconfig("", &token);
    let failure = series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap_err();
    assert!(
        failure.contains("no reply from Kubernetes at https://127.0.0.1:") && failure.contains("certificate"),
        "{failure}"
    );
    assert_eq!(engine.lines().len(), 0, "the token was sent to a stranger");
    let config = engine.kubeconfig("insecure-skip-tls-verify: true", &token);
    assert!(series(pods(&config, PodField::RestartCount, HANG).read().await).is_ok());
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let engine = Engine::on_tls(true, pages).await;
    let config = engine.kubeconfig(CA, "client-certificate: client.pem\n      client-key: client.key");
    assert!(series(pods(&config, PodField::RestartCount, HANG).read().await).is_ok());
    assert!(engine.requests().iter().all(|head| !head.contains("authorization")));
    let config = engine.kubeconfig(CA, "token: abc");
    let failure = series(pods(&config, PodField::RestartCount, HANG).read().await).unwrap_err();
    assert!(failure.starts_with("no reply from Kubernetes"), "{failure}");
}

#[tokio::test]
async fn a_file_of_a_token_is_read_for_every_reading() {
    let engine = Engine::on_tls(false, pages).await;
    let config = engine.kubeconfig(CA, "tokenFile: token");
    let token = engine.folder.path().join("token");
    let mut prober = pods(&config, PodField::RestartCount, HANG);
    for text in ["one", "two"] {
        std::fs::write(&token, format!("{text}\n")).unwrap();
        series(prober.read().await).unwrap();
        assert!(engine.requests().last().unwrap().contains(&format!("authorization: Bearer {text}\r\n")));
    }
    std::fs::write(&token, "\n").unwrap();
    assert_eq!(series(prober.read().await).unwrap_err(), "the file of the token is empty");
    std::fs::write(&token, "a\nb").unwrap();
    assert_eq!(series(prober.read().await).unwrap_err(), "the token holds characters that no header can carry");
    std::fs::remove_file(&token).unwrap();
    let failure = series(prober.read().await).unwrap_err();
    assert!(
        failure.starts_with("cannot read the token `") && failure.ends_with("No such file or directory (os error 2)"),
        "{failure}"
    );
}
