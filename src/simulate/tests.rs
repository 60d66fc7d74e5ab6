//! The server over real TCP. Nothing here asserts on how long something took, other than that it ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::schedule::{ArrivalProcess, TrialCounts, open_loop};
use crate::units::{Rate, Share};

const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"one two three"}],"stream":true,
    "max_tokens":4,"stream_options":{"include_usage":true}}"#;

struct Running {
    address: SocketAddr,
    shutdown: CancellationToken,
    ended: JoinHandle<std::io::Result<()>>,
    client: reqwest::Client,
}

async fn start(profile: Value) -> Running {
    start_logged(profile, None).await
}

async fn start_logged(profile: Value, log: Option<PathBuf>) -> Running {
    let profile = parse_profile(&profile.to_string()).expect("a profile");
    let server = Server::bind(profile, SocketAddr::from(([127, 0, 0, 1], 0)), log).await.expect("a free port");
    let (address, shutdown) = (server.local_addr(), CancellationToken::new());
    let ended = tokio::spawn(server.run(shutdown.clone()));
    Running { address, shutdown, ended, client: client(reqwest::Client::builder()) }
}

/// A client whose time limit only keeps a hanging test from hanging.
fn client(builder: reqwest::ClientBuilder) -> reqwest::Client {
    builder.no_proxy().timeout(Duration::from_secs(30)).build().expect("a client")
}

impl Running {
    async fn post(&self, path: &str, body: &str) -> reqwest::Result<reqwest::Response> {
        let url = format!("http://{}{path}", self.address);
        self.client.post(url).header("x-request-id", "r-1").body(body.to_owned()).send().await
    }

    async fn chat(&self, body: &str) -> reqwest::Result<String> {
        self.post("/v1/chat/completions", body).await?.text().await
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let response = self.client.get(format!("http://{}{path}", self.address)).send().await.expect("a reply");
        (response.status().as_u16(), response.text().await.expect("a body"))
    }

    async fn stop(self) -> std::io::Result<()> {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(30), self.ended).await;
        ended.expect("the server ends").expect("without a panic")
    }

    /// Sends a request by hand and gives all bytes up to the connection's end.
    async fn raw(&self, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(raw_request(body).as_bytes()).await?;
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut bytes)).await;
        read.expect("the connection ends")?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn raw_request(body: &str) -> String {
    format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn faulty(what: Value) -> Value {
    json!({ "faults": [{ "when": { "every": 1 }, "what": what }] })
}

#[tokio::test]
async fn streams_are_served_over_both_http_versions() {
    let server = start(json!({})).await;
    let response = server.post("/v1/chat/completions", CHAT).await.expect("a reply");
    assert_eq!(response.version(), http::Version::HTTP_11);
    assert_eq!(response.headers()["server"], "goodput-simulated");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let first = response.text().await.expect("a body");
    assert_eq!(first.matches("data: ").count(), 8, "{first}");
    assert!(first.ends_with("data: [DONE]\n\n"));
    assert!(first.contains(r#""usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}"#));
    let over_http2 = client(reqwest::Client::builder().http2_prior_knowledge());
    let url = format!("http://{}/v1/chat/completions", server.address);
    let response = over_http2.post(url).body(CHAT).send().await.expect("a reply");
    assert_eq!(response.version(), http::Version::HTTP_2);
    let second = response.text().await.expect("a body");
    let texts = |body: &str| {
        body.split("\"content\":\"").skip(2).map(|p| p.split('"').next().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(texts(&first), texts(&second));
    server.stop().await.expect("a clean end");
}

#[tokio::test]
async fn whole_bodies_pages_and_mistakes_are_answered() {
    let server = start(json!({ "name": "small", "model": { "kind": "batch", "slots": 2, "kv_tokens": 64 } })).await;
    let whole = server.chat(&CHAT.replace("\"stream\":true", "\"stream\":false")).await.expect("a reply");
    let whole: Value = serde_json::from_str(&whole).expect("JSON");
    assert_eq!(whole["usage"]["completion_tokens"], 4);
    assert_eq!(whole["choices"][0]["message"]["content"].as_str().map(|t| t.split_whitespace().count()), Some(4));
    let response = server.post("/v1/completions", r#"{"prompt":"a","stream":true}"#).await.expect("a reply");
    assert!(response.text().await.expect("a body").contains("\"text\":\""));
    for (path, body, status) in [
        ("/v1/chat/completions", "{", 400),
        ("/v1/chat/completions", r#"{"messages":[{"content":"a"}],"max_tokens":64}"#, 400),
        ("/v1/embeddings", "{}", 404),
    ] {
        let response = server.post(path, body).await.expect("a reply");
        assert_eq!(response.status().as_u16(), status, "{path} {body}");
        let error: Value = serde_json::from_str(&response.text().await.expect("a body")).expect("JSON");
        assert!(error["error"]["message"].is_string(), "{error}");
    }
    assert_eq!(server.get("/health").await.0, 200);
    assert_eq!(server.get("/nothing").await.0, 404);
    assert!(server.get("/v1/models").await.1.contains("\"id\":\"small\""));
    let (_, metrics) = server.get("/metrics").await;
    assert!(metrics.contains("goodput_simulated_requests_total{outcome=\"finished\"} 2\n"), "{metrics}");
    assert!(metrics.contains("goodput_simulated_generation_tokens_total 36\n"), "{metrics}");
    assert!(metrics.contains("goodput_simulated_kv_cache_usage_ratio 0\n"), "{metrics}");
    server.stop().await.expect("a clean end");
}

#[tokio::test]
async fn scripted_replies_break_as_written() {
    let refusing = start(faulty(json!({ "kind": "refuse", "status": 429, "retry_after": 7 }))).await;
    let response = refusing.post("/v1/chat/completions", CHAT).await.expect("a reply");
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"7".parse().expect("a value")));
    let failing = start(faulty(json!({ "kind": "error_in_stream", "after_tokens": 2 }))).await;
    let body = failing.chat(CHAT).await.expect("a reply");
    assert!(body.contains("\"error\":") && !body.contains("finish_reason\":\"length"), "{body}");
    assert_eq!(body.matches("\"content\":\"").count(), 3, "{body}");
    let cutting = start(faulty(json!({ "kind": "cut_stream", "after_tokens": 2 }))).await;
    let raw = cutting.raw(CHAT).await.expect("closed, not reset");
    assert_eq!(raw.matches("\"content\":\"").count(), 3, "{raw}");
    assert!(!raw.ends_with("0\r\n\r\n") && !raw.contains("[DONE]"), "{raw}");
    let resetting = start(faulty(json!({ "kind": "reset" }))).await;
    let error = resetting.raw(CHAT).await.expect_err("a reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let thinking = start(faulty(json!({ "kind": "reasoning", "tokens": 3 }))).await;
    assert_eq!(thinking.chat(CHAT).await.expect("a reply").matches("reasoning_content").count(), 3);
    let silent = start(faulty(json!("no_usage"))).await;
    assert!(!silent.chat(CHAT).await.expect("a reply").contains("usage"));
    let trickling = start(faulty(json!({ "kind": "slow_loris", "bytes": 100, "every": "1ms" }))).await;
    let trickled = trickling.chat(CHAT).await.expect("a reply");
    assert!(trickled.ends_with("data: [DONE]\n\n"), "{trickled}");
    for server in [refusing, failing, cutting, resetting, thinking, silent, trickling] {
        server.stop().await.expect("a clean end");
    }
}

#[tokio::test]
async fn a_hanging_request_does_not_hold_up_the_next() {
    let profile = json!({ "faults": [{ "when": { "at_request": 1 }, "what": { "kind": "hang" } }] });
    let server = start(profile).await;
    let mut first = TcpStream::connect(server.address).await.expect("a connection");
    first.write_all(raw_request(CHAT).as_bytes()).await.expect("sent");
    let mut byte = [0u8; 1];
    let silence = tokio::time::timeout(Duration::from_millis(200), first.read(&mut byte)).await;
    assert!(silence.is_err(), "answered although it hangs");
    assert!(server.chat(CHAT).await.expect("a reply").contains("[DONE]"));
    server.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_slot() {
    let server = start(json!({ "queue": { "limit": 0, "status": 429 },
        "model": { "kind": "batch", "slots": 1, "step_base": "5ms" } }))
    .await;
    let mut first = TcpStream::connect(server.address).await.expect("a connection");
    first.write_all(raw_request(&CHAT.replace(":4,", ":100000,")).as_bytes()).await.expect("sent");
    let mut bytes = [0u8; 64];
    assert!(first.read(&mut bytes).await.expect("a first token") > 0);
    let refused = server.post("/v1/chat/completions", CHAT).await.expect("a reply");
    assert_eq!(refused.status().as_u16(), 429);
    drop(first);
    let freed = async {
        while server.post("/v1/chat/completions", CHAT).await.expect("a reply").status() != 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), freed).await.expect("the slot is freed");
    server.stop().await.expect("a clean end");
}

#[tokio::test]
async fn the_server_exits_and_restarts_as_written() {
    let exiting =
        start(json!({ "faults": [{ "when": { "at_request": 2 }, "what": { "kind": "exit", "code": 9 } }] })).await;
    exiting.chat(CHAT).await.expect("the first is answered");
    exiting.chat(CHAT).await.expect_err("the second is not");
    let error = tokio::time::timeout(Duration::from_secs(30), exiting.ended).await.expect("it ends").expect("no panic");
    let exit = error.expect_err("an exit").get_ref().and_then(|inner| inner.downcast_ref::<ExitRequested>()).copied();
    assert_eq!(exit, Some(ExitRequested { code: 9 }));
    let restarting =
        start(json!({ "faults": [{ "when": { "at_request": 2 }, "what": { "kind": "restart", "for": "300ms" } }] }))
            .await;
    restarting.chat(CHAT).await.expect("the first is answered");
    restarting.chat(CHAT).await.expect_err("the second is lost");
    assert_eq!(restarting.get("/health").await.0, 503);
    let ready = async {
        while restarting.get("/health").await.0 != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ready).await.expect("it comes back");
    let (_, metrics) = restarting.get("/metrics").await;
    assert!(metrics.contains("restarts_total 1\n") && metrics.contains("generation_tokens_total 0\n"), "{metrics}");
    restarting.chat(CHAT).await.expect("answered again");
    restarting.stop().await.expect("a clean end");
}

#[tokio::test]
async fn the_log_tells_when_output_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("server.jsonl");
    let model = json!({ "kind": "slots", "slots": 4, "first_token_after": "20ms", "per_token": "5ms" });
    let server = start_logged(json!({ "model": model }), Some(path.clone())).await;
    server.chat(CHAT).await.expect("a reply");
    server.chat(&CHAT.replace("\"stream\":true", "\"stream\":false")).await.expect("a reply");
    server.stop().await.expect("a clean end");
    let text = std::fs::read_to_string(path).expect("a log");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    let time = |line: &Value, key: &str| line[key].as_u64().expect(key);
    for line in &lines {
        assert_eq!(
            (&line["request_id"], &line["complete"], &line["output_tokens"]),
            (&json!("r-1"), &json!(true), &json!(4))
        );
    }
    // The model's times are lower bounds: the server may be late, never early.
    assert!(time(&lines[0], "first_write_ns") - time(&lines[0], "received_ns") >= 20_000_000, "{text}");
    assert!(time(&lines[0], "last_write_ns") - time(&lines[0], "received_ns") >= 35_000_000, "{text}");
    assert_eq!(lines[1]["first_write_ns"], lines[1]["last_write_ns"]);
    assert!(time(&lines[1], "first_write_ns") - time(&lines[1], "received_ns") >= 35_000_000, "{text}");
}

#[tokio::test]
async fn the_command_reads_its_profile_and_says_where_it_listens() {
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    let shutdown = CancellationToken::new();
    let mut told = String::new();
    shutdown.cancel();
    run_command(None, free, None, shutdown.clone(), |url| url.clone_into(&mut told)).await.expect("a clean end");
    assert!(told.starts_with("http://127.0.0.1:"), "{told}");
    let missing = run_command(Some("no/such.yaml".into()), free, None, shutdown, |_| {}).await.expect_err("no file");
    assert_eq!(missing.to_string(), "cannot read the profile no/such.yaml; check the path");
}

/// The P95 of the TTFT of 15 s at a constant rate after 5 s of warm-up, in virtual time.
fn quick_start_ttft_p95(rate: u64) -> u64 {
    let profile = parse_profile(include_str!("../../examples/quickstart/simulated.yaml")).expect("a profile");
    let counts = TrialCounts { warm_up: 5 * rate, window: 15 * rate, drain: 5 * rate };
    let schedule = open_loop(ArrivalProcess::Constant, Rate::from_milli(rate * 1_000).expect("a rate"), counts, 1);
    let mut engine = Engine::new(&profile);
    let (mut out, mut first) = (Vec::new(), vec![None; schedule.arrivals().len()]);
    for (id, arrival) in (0..).zip(schedule.arrivals()) {
        engine.advance_before(arrival.offset_ns, &mut out);
        engine.arrive(arrival.offset_ns, Job { id, prompt_tokens: 40, output_tokens: 32 }).expect("room");
    }
    engine.advance(u64::MAX - 1, &mut out);
    for emission in out {
        first[emission.id as usize].get_or_insert(emission.at_ns);
    }
    let window = counts.warm_up as usize..(counts.warm_up + counts.window) as usize;
    let mut ttft: Vec<u64> = window.map(|i| first[i].expect("served") - schedule.arrivals()[i].offset_ns).collect();
    ttft.sort_unstable();
    ttft[Share::parse("95%").expect("a share").nearest_rank(ttft.len() as u64) as usize - 1]
}

#[test]
fn the_quick_start_breaks_between_20_and_30_per_second() {
    assert!(quick_start_ttft_p95(20) <= 500_000_000);
    assert!(quick_start_ttft_p95(30) > 1_000_000_000);
}
