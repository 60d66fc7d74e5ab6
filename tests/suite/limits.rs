//! What no server can make us hold or wait for.

use std::process::Command;
use std::time::Duration;

use goodput::observe::Outcome;
use nix::sys::resource::{UsageWho, getrusage};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Client, ask_once, assert_ok, endpoint, error};
use crate::server::{DELTA, ENDLESS_HEAD, EVENTS, Server, read_request, reply};

#[tokio::test]
async fn large_headers_are_read_and_endless_ones_are_not() {
    assert_ok(&ask_once(reply(&format!("X-Trace: {}\r\n", "t".repeat(64 << 10)))).await);
    let server = Server::start(|_, mut stream| async move {
        read_request(&mut stream).await;
        let line = format!("X-Trace: {}\r\n", "t".repeat(4 << 10));
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\n").await);
        while stream.write_all(line.as_bytes()).await.is_ok() {}
    })
    .await;
    let exchange = Client::to(&server.url()).ask().await;
    assert_eq!(exchange.trace.outcome, Outcome::ProtocolError, "{}", error(&exchange));
}

/// Writes the same bytes for as long as the client takes them.
async fn flood(mut stream: TcpStream, bytes: Vec<u8>) {
    read_request(&mut stream).await;
    drop(stream.write_all(ENDLESS_HEAD.as_bytes()).await);
    while stream.write_all(&bytes).await.is_ok() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_stream_at_full_speed_ends_at_its_limits() {
    let comments = ": still here\n\n".repeat(4_000);
    let server = Server::start(move |_, stream| flood(stream, comments.clone().into())).await;
    let mut endpoint = endpoint(&server.url());
    endpoint.idle_timeout = Duration::from_millis(400);
    let exchange = Client::of(&endpoint).ask().await;
    assert_eq!(exchange.trace.outcome, Outcome::Timeout, "{}", error(&exchange));
    assert!(error(&exchange).contains("idle"), "{}", error(&exchange));

    let deltas = DELTA.repeat(1_000);
    let server = Server::start(move |_, stream| flood(stream, deltas.clone().into())).await;
    endpoint.url = server.url().parse().unwrap();
    endpoint.timeout = Duration::from_millis(400);
    let exchange = Client::of(&endpoint).ask().await;
    assert_eq!(exchange.trace.outcome, Outcome::Timeout, "{}", error(&exchange));
    assert!(error(&exchange).contains("total"), "{}", error(&exchange));
    assert!(exchange.trace.first_output_ns.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_follows_the_end_signal_for_ever_does_not_hold_the_request() {
    let server = Server::start(|_, mut stream| async move {
        read_request(&mut stream).await;
        drop(stream.write_all(format!("{ENDLESS_HEAD}{EVENTS}").as_bytes()).await);
        let more = ": more\n\n".repeat(4_000);
        while stream.write_all(more.as_bytes()).await.is_ok() {}
    })
    .await;
    let exchange = Client::to(&server.url()).ask().await;
    assert_ok(&exchange);
}

#[test]
fn a_line_of_64_mib_is_refused_in_bounded_memory() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(Server::start(|_, mut stream| async move {
        read_request(&mut stream).await;
        drop(stream.write_all(format!("{ENDLESS_HEAD}data: ").as_bytes()).await);
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..64 {
            if stream.write_all(&piece).await.is_err() {
                return;
            }
        }
        drop(stream.write_all(b"\n\n").await);
    }));
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("smoke.json");
    let done = Command::new(env!("CARGO_BIN_EXE_goodput"))
        .args(["smoke", "--protocol", "openai-chat", "--url", &server.url(), "--output"])
        .arg(&output)
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
    let smoked: serde_json::Value = serde_json::from_slice(&std::fs::read(output).unwrap()).unwrap();
    let request = &smoked["requests"][0];
    assert_eq!(request["outcome"], "protocol_error");
    assert_eq!(request["error"], "a line is longer than 8 MiB");
    // The most that any child of this process ever held, in KiB.
    let held = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    assert!(held < 60 << 10, "{held} KiB");
}

#[tokio::test]
async fn a_silence_ends_a_reply_at_the_idle_limit() {
    let server = Server::start(|_, mut stream| async move {
        read_request(&mut stream).await;
        drop(stream.write_all(format!("{ENDLESS_HEAD}{DELTA}").as_bytes()).await);
        loop {
            // Comments keep a connection open, and say nothing of the reply.
            tokio::time::sleep(Duration::from_millis(50)).await;
            if stream.write_all(b": ping\n\n").await.is_err() {
                return;
            }
        }
    })
    .await;
    let mut endpoint = endpoint(&server.url());
    endpoint.idle_timeout = Duration::from_millis(300);
    let client = Client::of(&endpoint);
    let exchange = client.ask().await;
    let trace = &exchange.trace;
    assert_eq!(trace.outcome, Outcome::Timeout, "{}", error(&exchange));
    assert!(trace.finished_ns - trace.first_output_ns.unwrap() >= 300_000_000);
    assert_eq!(client.pool.open_connections(), 0, "a reply in the middle leaves nothing to reuse");
}
