//! Each dialect through the real binary: what is sent where a contract or a flag says no more than the protocol, and what
//! is concluded from a reply.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than a dry run can take; only a hang meets it.
const HANG: Duration = Duration::from_secs(60);

/// A request as it came: the value of its `Accept` header, and its body.
type Request = (String, Value);

/// Answers one request with `body`; gives back where, and the request once it came.
fn serve(content_type: &'static str, body: &'static str) -> (u16, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(listener.accept().unwrap().0);
        let (mut accept, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("accept") => value.clone_into(&mut accept),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
                _ if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut request = vec![0; length];
        reader.read_exact(&mut request).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        reader.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
        sender.send((accept, serde_json::from_slice(&request).unwrap())).unwrap();
    });
    (port, receiver)
}

fn smoke(port: u16, path: &str, protocol: &str) -> (Option<i32>, Value) {
    let url = format!("http://127.0.0.1:{port}{path}");
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_goodput"))
        .args(["smoke", "--url", &url, "--protocol", protocol, "--model", "m", "--prompt", "Hi", "--max-tokens", "8"])
        .args(["--timeout", "30s", "--output-format", "json"])
        .output()
        .unwrap();
    let report = serde_json::from_slice(&stdout);
    (status.code(), report.unwrap_or_else(|fault| panic!("{fault}: {}", String::from_utf8_lossy(&stderr))))
}

/// Sends a dry run to `path` and looks at what was sent, and at text and tokens of the reply.
#[track_caller]
fn check(path: &str, protocol: &str, accept: &'static str, sent: &Value, reply: &'static str, tokens: [u64; 2]) {
    let (port, request) = serve(accept, reply);
    let (code, report) = smoke(port, path, protocol);
    assert_eq!(request.recv_timeout(HANG).unwrap(), (accept.to_owned(), sent.clone()));
    assert_eq!((code, &report["problems"], &report["unproven"]), (Some(0), &json!([]), &json!([])), "{report:#}");
    let seen = &report["requests"][0];
    assert_eq!(
        [&seen["outcome"], &seen["text"], &seen["input_tokens"], &seen["output_tokens"]],
        [&json!("ok"), &json!("Hello"), &json!(tokens[0]), &json!(tokens[1])]
    );
}

const EVENTS: &str = "text/event-stream";

const ANTHROPIC: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"text\":\"Hello\"}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

#[test]
fn every_dialect_works_with_no_more_than_its_name() {
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    check(
        "/v1/responses",
        "openai-responses",
        EVENTS,
        &json!({ "model": "m", "input": "Hi", "max_output_tokens": 8, "stream": true }),
        concat!(
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",",
            "\"usage\":{\"input_tokens\":4,\"output_tokens\":2}}}\n\n",
        ),
        [4, 2],
    );
    check(
        "/v1/messages",
        "anthropic-messages",
        EVENTS,
        &json!({ "model": "m", "messages": messages, "max_tokens": 8, "stream": true }),
        ANTHROPIC,
        [3, 2],
    );
    check(
        "/generate_stream",
        "tgi",
        EVENTS,
        &json!({ "inputs": "Hi", "parameters": { "max_new_tokens": 8, "details": true } }),
        concat!(
            "data:{\"token\":{\"text\":\"Hello\",\"special\":false},\"generated_text\":\"Hello\",",
            "\"details\":{\"finish_reason\":\"length\",\"generated_tokens\":1,\"input_length\":5}}\n\n",
        ),
        [5, 1],
    );
    check(
        "/api/chat",
        "ollama",
        "application/x-ndjson",
        &json!({ "model": "m", "messages": messages, "options": { "num_predict": 8 }, "stream": true }),
        concat!(
            "{\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"},\"done\":false}\n",
            "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":6,\"eval_count\":2}\n",
        ),
        [6, 2],
    );
    check(
        "/api/generate",
        "ollama",
        "application/x-ndjson",
        &json!({ "model": "m", "prompt": "Hi", "options": { "num_predict": 8 }, "stream": true }),
        concat!(
            "{\"response\":\"Hello\",\"done\":false}\n",
            "{\"response\":\"\",\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":7,\"eval_count\":2}\n",
        ),
        [7, 2],
    );
}

#[test]
fn a_reply_in_another_dialect_is_named() {
    let (port, _request) = serve(EVENTS, ANTHROPIC);
    let (code, report) = smoke(port, "/v1/messages", "openai-chat");
    assert_eq!(code, Some(1));
    let problem = report["problems"][0].as_str().unwrap_or_default();
    assert!(problem.contains("the reply looks like `anthropic-messages`"), "{report:#}");
}

/// Without the reply's limit an Anthropic server refuses every request, so that it is asked for before any is sent.
#[test]
fn what_a_dialect_cannot_do_without_is_asked_for() {
    let output = Command::new(env!("CARGO_BIN_EXE_goodput"))
        .args(["smoke", "--url", "http://127.0.0.1:9/v1/messages", "--protocol", "anthropic_sse", "--prompt", "Hi"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("max_tokens"), "{said}");
}
