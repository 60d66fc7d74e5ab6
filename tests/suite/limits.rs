//! What no server can make us hold or wait for.

use std::process::Command;
use std::time::Duration;

use goodput::observe::{Outcome, Protocol};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Client, ask_once, assert_ok, endpoint, error};
use crate::server::{DELTA, ENDLESS_HEAD, EVENTS, Server, answer_once, read_request, reply};

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

/// Asks, with the real binary, a server that answers with `head` and then `bytes` again and again, for as long as they are
/// taken. Gives back the request's line, and the most that the process held, in MiB.
fn smoke_endless(protocol: &str, head: &str, bytes: &[u8]) -> (Value, i64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (head, bytes) = (head.to_owned(), bytes.repeat((1 << 20) / bytes.len()));
    let server = runtime.block_on(Server::start(move |_, mut stream| {
        let (head, bytes) = (head.clone(), bytes.clone());
        async move {
            read_request(&mut stream).await;
            drop(stream.write_all(head.as_bytes()).await);
            while stream.write_all(&bytes).await.is_ok() {}
        }
    }));
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("smoke.json");
    let done = Command::new(env!("CARGO_BIN_EXE_goodput"))
        .args(["smoke", "--protocol", protocol, "--url", &server.url(), "--max-tokens", "8", "--output"])
        .arg(&output)
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
    let mut smoked: Value = serde_json::from_slice(&std::fs::read(output).unwrap()).unwrap();
    // The most that any child of this process ever held, in KiB.
    let held = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    (smoked["requests"][0].take(), held >> 10)
}

#[track_caller]
fn check_endless(protocol: &str, head: &str, bytes: &[u8], outcome: &str, error: &str, most_mib: i64) {
    let (request, held) = smoke_endless(protocol, head, bytes);
    let said = request["error"].as_str().unwrap_or_default();
    assert!(request["outcome"] == outcome && said.contains(error), "{protocol}: {} {said}", request["outcome"]);
    assert!(held <= most_mib, "{protocol}: {held} MiB");
}

/// Without an end, so that a gigabyte is only the beginning. The limits rise from row to row, because what a process held
/// once cannot be forgotten.
#[test]
fn a_reply_without_an_end_is_refused_in_bounded_memory() {
    let error_head = ENDLESS_HEAD.replace("200 OK", "500 Internal Server Error");
    let page_head = ENDLESS_HEAD.replace("text/event-stream", "text/html");
    let lines_head = ENDLESS_HEAD.replace("text/event-stream", "application/x-ndjson");
    let json_head = ENDLESS_HEAD.replace("text/event-stream", "application/json");
    check_endless("openai-chat", &error_head, b"x", "http_error", "xxx", 60);
    check_endless("openai-chat", &page_head, b"<br>", "protocol_error", "a web page came", 60);
    check_endless(
        "openai-chat",
        &format!("{ENDLESS_HEAD}data: "),
        b"x",
        "protocol_error",
        "a line is longer than 8 MiB",
        60,
    );
    check_endless("anthropic-messages", ENDLESS_HEAD, b"x", "protocol_error", "a line is longer than 8 MiB", 60);
    check_endless("ollama", &lines_head, b"[", "protocol_error", "a line is longer than 8 MiB", 60);
    let lines = b"data: a line of an event that no blank line ends\n";
    check_endless(
        "openai-chat",
        ENDLESS_HEAD,
        lines,
        "protocol_error",
        "the data of an event is longer than 16 MiB",
        100,
    );
    check_endless("openai-chat-json", &json_head, b"[", "protocol_error", "the body is longer than 64 MiB", 300);
}

/// A gzip file (RFC 1952) of `mebibytes` of zeros, without the sum at its end: one block of the fixed codes (RFC 1951,
/// section 3.2.6) that copies the last 258 bytes again and again.
fn gzip_bomb(mebibytes: usize) -> Vec<u8> {
    const LAST_FIXED_BLOCK: &str = "110";
    const ZERO: &str = "00110000";
    const COPY_258_FROM_1_BACK: &str = "1100010100000";
    const END: &str = "0000000";
    let copies = COPY_258_FROM_1_BACK.repeat((mebibytes << 20) / 258);
    let bits = [LAST_FIXED_BLOCK, ZERO, &copies, END].concat();
    let mut file = b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec();
    file.extend(bits.as_bytes().chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | (bit & 1))));
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gzip_bomb_is_refused_as_it_is() {
    let bomb = gzip_bomb(256);
    assert!(bomb.len() < 2 << 20, "{} bytes become 256 MiB", bomb.len());
    let before = peak_kib();
    let typed = |protocol: Protocol, encoding: &str| {
        let kind = if protocol == Protocol::Ollama { "application/x-ndjson" } else { protocol.accept() };
        let length = bomb.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{encoding}content-length: {length}\r\n\r\n");
        [head.as_bytes(), &bomb].concat()
    };
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiChatJson, Protocol::Ollama] {
        for (encoding, text) in [("content-encoding: gzip\r\n", "compressed body (gzip)"), ("", "")] {
            let bytes = typed(protocol, encoding);
            let server = Server::start(move |_, stream| answer_once(stream, bytes.clone())).await;
            let mut endpoint = endpoint(&server.url());
            endpoint.protocol = protocol;
            let exchange = Client::of(&endpoint).ask().await;
            let said = error(&exchange);
            assert_eq!(exchange.trace.outcome, Outcome::ProtocolError, "{} {encoding}: {said}", protocol.name());
            assert!(said.contains(text), "{said}");
        }
    }
    let grown = peak_kib() - before;
    assert!(grown < 200 << 10, "{grown} KiB more");
}

/// The most memory that this process ever held, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

#[tokio::test]
async fn ten_thousand_events_in_one_write_are_all_counted() {
    let exchange = ask_once(format!("{ENDLESS_HEAD}{}{EVENTS}", DELTA.repeat(9_999))).await;
    assert_ok(&exchange);
    let trace = &exchange.trace;
    assert_eq!((trace.output_chunks, trace.chunk_gaps_ns.len()), (10_000, 9_999));
    assert!(trace.output_writes < 10_000, "writes are counted apart");
}

#[tokio::test]
async fn bytes_that_complete_no_message_do_not_keep_a_reply_alive() {
    let server = Server::start(|_, mut stream| async move {
        read_request(&mut stream).await;
        drop(stream.write_all(format!("{ENDLESS_HEAD}data: ").as_bytes()).await);
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let mut endpoint = endpoint(&server.url());
    endpoint.idle_timeout = Duration::from_millis(300);
    let exchange = Client::of(&endpoint).ask().await;
    assert_eq!(exchange.trace.outcome, Outcome::Timeout, "{}", error(&exchange));
    assert!(error(&exchange).contains("idle"), "{}", error(&exchange));
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
