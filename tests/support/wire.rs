//! The wire cases of `tests/fixtures/wire`: what a server sends, and what a correct client concludes from it. Included by
//! the tests that replay them in process and over TCP; the including module brings `RequestTrace` into scope.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::RequestTrace;

/// One case.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) adapter: String,
    /// `None`: the connection ends without a reply.
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(crate) headers: Map<String, Value>,
    #[serde(default)]
    pub(crate) framing: String,
    /// Writes; for a WebSocket, frames.
    pub(crate) chunks: Vec<Write>,
    /// `clean`, `truncated`, `reset` or `hang`.
    pub(crate) ends: String,
    pub(crate) ends_at_ms: Option<u64>,
    pub(crate) expect: Map<String, Value>,
}

/// Bytes that leave the server together; of a WebSocket, a frame.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Write {
    #[serde(default)]
    pub(crate) at_ms: u64,
    #[serde(default)]
    b64: String,
    /// Of a frame: `text`, `binary`, `cont`, `ping`, `pong` or `close`.
    #[serde(default)]
    pub(crate) op: String,
    /// Of a frame: whether it ends its message; the default is that it does.
    pub(crate) fin: Option<bool>,
    /// Of a frame that closes: why.
    pub(crate) code: Option<u16>,
    #[serde(default)]
    pub(crate) reason: String,
}

impl Write {
    /// The bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
        for digit in self.b64.bytes().filter(|byte| *byte != b'=') {
            let value = ALPHABET.iter().position(|letter| *letter == digit).expect("the fixture is base64");
            bits = bits << 6 | value as u32;
            held += 6;
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
            }
        }
        bytes
    }
}

impl Case {
    /// Every case, in the order of their names.
    pub(crate) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wire");
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).expect("the fixtures are there").flatten().map(|e| e.path()).collect();
        // The script that serves them lies beside them.
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let read = |path: &std::path::PathBuf| -> Self {
            let text = std::fs::read_to_string(path).expect("the fixture can be read");
            serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
        };
        paths.iter().map(read).collect()
    }

    /// Whether its writes are the frames of a WebSocket.
    pub(crate) fn is_frames(&self) -> bool {
        self.adapter.ends_with("_ws")
    }

    /// A header of the reply.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.as_str()).map(str::to_owned)
    }

    /// What `trace` concludes otherwise than the case expects, of the fields in `fields`; all of them where it is empty.
    pub(crate) fn differences(&self, trace: &RequestTrace, fields: &[&str]) -> Vec<String> {
        let found = conclusions(trace);
        let unasserted = self.expect.get("unasserted").and_then(Value::as_array).cloned().unwrap_or_default();
        let asserted =
            |name: &str| (fields.is_empty() || fields.contains(&name)) && !unasserted.iter().any(|field| field == name);
        let mut differences = Vec::new();
        for (name, expected) in self.expect.iter().filter(|(name, _)| asserted(name)) {
            if !self.agrees(name, expected, &found) {
                let value = found.get(name.as_str()).unwrap_or(&found["error"]);
                differences.push(format!("{}: {name} is {value}, expected {expected}", self.id));
            }
        }
        differences
    }

    fn agrees(&self, name: &str, expected: &Value, found: &Map<String, Value>) -> bool {
        let others = |list: &str, value: &Value| {
            self.expect.get(list).and_then(Value::as_array).is_some_and(|accepted| accepted.contains(value))
        };
        match name {
            "outcome" => found[name] == *expected || others("also_accept", &found[name]),
            "text" => found[name] == *expected || others("text_any_of", &found[name]),
            "text_any_of" => others(name, &found["text"]) || self.expect.get("text") == Some(&found["text"]),
            // The corpus does not assert an end signal that it gives as null.
            "done_seen" => expected.is_null() || found[name] == *expected,
            "error_contains" => found["error"].as_str().is_some_and(|e| e.contains(expected.as_str().unwrap_or("\0"))),
            "also_accept" | "unasserted" | "decided_by_ms" => true,
            _ => found.get(name) == Some(expected),
        }
    }
}

/// The conclusions of a trace, under the names that the cases use.
pub(crate) fn conclusions(trace: &RequestTrace) -> Map<String, Value> {
    let texts = trace.texts.clone().unwrap_or_default();
    let mut at_ns: Vec<u64> = trace.first_output_ns.into_iter().collect();
    at_ns.extend(trace.chunk_gaps_ns.iter().scan(trace.first_output_ns.unwrap_or(0), |at, gap| {
        *at += gap;
        Some(*at)
    }));
    let table = json!({
        "outcome": trace.outcome,
        "first_output_chunk": trace.first_output_write,
        "first_output_kind": trace.first_output_kind,
        "answer_first_chunk": trace.first_answer_write,
        "output_chunks": trace.output_chunks,
        "output_writes": trace.output_writes,
        "output_at_ms": at_ns.iter().map(|at| at / 1_000_000).collect::<Vec<_>>(),
        "text": texts.text,
        "reasoning": texts.reasoning,
        "refusal": texts.refusal,
        "tool_calls": texts.tool_calls,
        "texts_by_choice": texts.by_choice,
        "output_tokens": trace.output_tokens,
        "input_tokens": trace.input_tokens,
        "reasoning_tokens": trace.reasoning_tokens,
        "cached_tokens": trace.cached_tokens,
        "finish_reason": trace.finish_reason,
        "finish_reason_raw": trace.finish_reason_raw,
        "truncated": trace.truncated,
        "done_seen": trace.done_seen,
        "warnings": trace.warnings,
        "http_status": trace.status,
        "retry_after_s": trace.retry_after_s,
        "error": trace.error,
        "close_code": trace.close_code,
        "audio_bytes": trace.audio_bytes,
    });
    match table {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
