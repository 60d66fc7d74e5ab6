//! A server that does what a test says, on a port that the system chose.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// What becomes of one request.
pub(crate) enum Answer {
    /// These bytes, then the end of the connection.
    Bytes(String),
    /// Nothing, for ever.
    Silence,
}

/// A server that lives as long as the test's process.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Scripted {
    /// Answers each request as `script` says, which is told the request's number, from 0, and its text.
    pub(crate) fn start(script: impl Fn(usize, &str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (script, requests) = (Arc::new(script), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&requests);
        spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, counted) = (Arc::clone(&script), Arc::clone(&counted));
                spawn(move || serve(stream, |text| script(counted.fetch_add(1, Ordering::SeqCst), text)));
            }
        });
        Self { address, requests }
    }

    /// The endpoint's URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1/chat/completions", self.address)
    }

    /// Requests seen so far.
    pub(crate) fn seen(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, answer: impl FnOnce(&str) -> Answer) {
    let Some(request) = read_request(&mut stream) else { return };
    match answer(&request) {
        Answer::Bytes(bytes) => drop(stream.write_all(bytes.as_bytes())),
        Answer::Silence => loop {
            sleep(Duration::from_secs(60));
        },
    }
}

/// Head and body; `None` when the client went away.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut block = [0; 4096];
    loop {
        let read = stream.read(&mut block).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&block[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase().split("content-length: ").nth(1)?.lines().next()?.parse().ok()?;
            if body.len() >= length {
                return Some(text);
            }
        }
    }
}

/// A whole reply with this body.
pub(crate) fn reply(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// A streamed chat reply that says `text` in one event, with token counts.
pub(crate) fn streamed(text: &str, finish: &str) -> String {
    let delta = serde_json::json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]});
    let end = serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    let usage = serde_json::json!({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 4}});
    let body = format!("data: {delta}\n\ndata: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n");
    reply("200 OK", "text/event-stream", &body)
}
