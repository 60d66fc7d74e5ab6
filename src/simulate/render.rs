//! The bytes of replies: events of a stream, whole bodies, and errors.

use std::fmt::Write;

use bytes::Bytes;
use serde_json::{Value, json};

use super::faults::{Ending, Treatment};
use super::request::{Asked, Kind};

/// The words that replies are made of.
const WORDS: [&str; 26] = [
    "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo", "lima",
    "mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor", "whiskey", "xray",
    "yankee", "zulu",
];

/// One piece of a stream, sent as one HTTP chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    /// Tokens that the reader sees with it; 0 for what carries no output.
    pub(super) tokens: u32,
}

/// The reply to one request, written as its tokens come out.
#[derive(Debug)]
pub(super) struct Reply {
    asked: Asked,
    reasoning_tokens: u32,
    tokens_per_chunk: u32,
    with_usage: bool,
    /// Tokens after which a scripted failure ends the stream.
    stops_after: u32,
    ending: Ending,
    /// Everything of an event that comes before its choices.
    head: String,
    held: u32,
    written: u32,
}

impl Reply {
    pub(super) fn new(asked: Asked, treatment: &Treatment, id: u64, created_s: u64, tokens_per_chunk: u32) -> Self {
        let (name, object) = match (asked.kind, asked.stream) {
            (Kind::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
            (Kind::Chat, false) => ("chatcmpl", "chat.completion"),
            (Kind::Completion, _) => ("cmpl", "text_completion"),
        };
        let model = Value::from(asked.model.as_str());
        let head = format!(
            r#"{{"id":"{name}-{id:016x}","object":"{object}","created":{created_s},"model":{model},"choices":["#
        );
        let stops_after = match treatment.ending {
            Ending::Complete => asked.output_tokens,
            Ending::Error(after) | Ending::Cut(after) | Ending::Reset(after) => after.min(asked.output_tokens),
        };
        Self {
            with_usage: !treatment.no_usage && (asked.include_usage || !asked.stream),
            // Legacy completions have no field for reasoning.
            reasoning_tokens: if asked.kind == Kind::Chat {
                treatment.reasoning_tokens.min(asked.output_tokens)
            } else {
                0
            },
            tokens_per_chunk: treatment.tokens_per_chunk.map_or(tokens_per_chunk, u32::from).max(1),
            stops_after,
            ending: treatment.ending,
            head,
            held: 0,
            written: 0,
            asked,
        }
    }

    /// How the reply ends.
    pub(super) fn ending(&self) -> Ending {
        self.ending
    }

    /// Whether everything up to the end, or up to the failure, was written.
    pub(super) fn is_over(&self) -> bool {
        self.written == self.stops_after
    }

    /// What opens the stream.
    pub(super) fn open(&self, out: &mut Vec<Piece>) {
        if self.asked.kind == Kind::Chat {
            out.push(self.event(0, r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#));
        }
        if self.stops_after == 0 {
            self.close(out);
        }
    }

    /// More tokens came out of the model.
    pub(super) fn tokens(&mut self, count: u32, out: &mut Vec<Piece>) {
        for _ in 0..count {
            if self.is_over() {
                return;
            }
            self.held += 1;
            let next = self.written + self.held;
            let turns = next == self.reasoning_tokens;
            if self.held >= self.tokens_per_chunk || next == self.stops_after || turns {
                self.flush(out);
            }
        }
    }

    fn flush(&mut self, out: &mut Vec<Piece>) {
        let from = self.written;
        let tokens = std::mem::take(&mut self.held);
        self.written += tokens;
        let mut text = String::with_capacity(16 * tokens as usize);
        (from..self.written).for_each(|index| self.push_word(index, &mut text));
        let choice = match self.asked.kind {
            Kind::Completion => format!(r#"{{"index":0,"text":"{text}","logprobs":null,"finish_reason":null}}"#),
            Kind::Chat => {
                let field = if from < self.reasoning_tokens { "reasoning_content" } else { "content" };
                format!(r#"{{"index":0,"delta":{{"{field}":"{text}"}},"finish_reason":null}}"#)
            }
        };
        out.push(self.event(tokens, &choice));
        if self.is_over() {
            self.close(out);
        }
    }

    /// The last events of the stream.
    fn close(&self, out: &mut Vec<Piece>) {
        match self.ending {
            Ending::Cut(_) | Ending::Reset(_) => return,
            Ending::Error(_) => {
                let error = error_body(500, "the simulated engine failed");
                out.push(Piece { bytes: format!("data: {error}\n\n").into(), tokens: 0 });
            }
            Ending::Complete => {
                let finish = self.finish_reason();
                out.push(match self.asked.kind {
                    Kind::Chat => self.event(0, &format!(r#"{{"index":0,"delta":{{}},"finish_reason":"{finish}"}}"#)),
                    Kind::Completion => {
                        self.event(0, &format!(r#"{{"index":0,"text":"","logprobs":null,"finish_reason":"{finish}"}}"#))
                    }
                });
                if self.with_usage {
                    let usage = self.usage();
                    out.push(Piece {
                        bytes: format!("data: {}],\"usage\":{usage}}}\n\n", self.head).into(),
                        tokens: 0,
                    });
                }
            }
        }
        out.push(Piece { bytes: Bytes::from_static(b"data: [DONE]\n\n"), tokens: 0 });
    }

    fn event(&self, tokens: u32, choice: &str) -> Piece {
        let mut text = String::with_capacity(self.head.len() + choice.len() + 12);
        for part in ["data: ", &self.head, choice, "]}\n\n"] {
            text.push_str(part);
        }
        Piece { bytes: text.into(), tokens }
    }

    /// The whole reply as one JSON body.
    pub(super) fn whole(&self) -> Bytes {
        let words = |range: std::ops::Range<u32>| {
            let mut text = String::new();
            range.for_each(|index| self.push_word(index, &mut text));
            text
        };
        let finish = self.finish_reason();
        let answer = words(self.reasoning_tokens..self.asked.output_tokens);
        let choice = match self.asked.kind {
            Kind::Completion => json!({ "index": 0, "text": answer, "logprobs": null, "finish_reason": finish }),
            Kind::Chat => {
                let mut message = json!({ "role": "assistant", "content": answer });
                if self.reasoning_tokens > 0 {
                    message["reasoning_content"] = json!(words(0..self.reasoning_tokens));
                }
                json!({ "index": 0, "message": message, "finish_reason": finish })
            }
        };
        let usage = if self.with_usage { format!(r#","usage":{}"#, self.usage()) } else { String::new() };
        format!("{}{choice}]{usage}}}", self.head).into()
    }

    fn finish_reason(&self) -> &'static str {
        if self.asked.limited { "length" } else { "stop" }
    }

    fn usage(&self) -> Value {
        let (input, output) = (u64::from(self.asked.prompt_tokens), u64::from(self.asked.output_tokens));
        let mut usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
        if self.reasoning_tokens > 0 {
            usage["completion_tokens_details"] = json!({ "reasoning_tokens": self.reasoning_tokens });
        }
        usage
    }

    /// The word of a token, by the request's content and the seed.
    fn push_word(&self, index: u32, text: &mut String) {
        // SplitMix64's finaliser: cheap, and any token's word is found without the ones before.
        let mut bits = self.asked.text_seed.wrapping_add(u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = WORDS[((bits ^ (bits >> 31)) % WORDS.len() as u64) as usize];
        let _ = write!(text, "{word} ");
    }
}

/// The body of a refusal, in the shape that OpenAI clients know.
pub(super) fn error_body(status: u16, message: &str) -> String {
    let kind = match status {
        400..=428 | 430..=499 => "invalid_request_error",
        429 => "rate_limit_error",
        _ => "server_error",
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": status } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::profile::Profile;
    use crate::simulate::request::read;

    const CHAT: &str = r#"{"model":"m","messages":[{"content":"a b"}],"stream":true,"max_tokens":3,
        "stream_options":{"include_usage":true}}"#;

    fn pieces(kind: Kind, body: &str, treatment: &Treatment) -> Vec<String> {
        let asked = read(kind, body.as_bytes(), &Profile::default()).expect("a request");
        let tokens = asked.output_tokens;
        let mut reply = Reply::new(asked, treatment, 7, 1_750_000_000, 1);
        let mut out = Vec::new();
        reply.open(&mut out);
        (0..tokens).for_each(|_| reply.tokens(1, &mut out));
        assert!(reply.is_over());
        out.iter().map(|piece| String::from_utf8(piece.bytes.to_vec()).expect("text")).collect()
    }

    fn data(piece: &str) -> Value {
        let text = piece.strip_prefix("data: ").and_then(|p| p.strip_suffix("\n\n")).expect("an event");
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn a_chat_stream_has_role_tokens_finish_usage_and_done() {
        let pieces = pieces(Kind::Chat, CHAT, &Treatment::default());
        assert_eq!(pieces.len(), 7);
        assert_eq!(data(&pieces[0])["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
        for piece in &pieces[1..4] {
            let content = data(piece)["choices"][0]["delta"]["content"].as_str().map(str::to_owned).expect("content");
            assert!(WORDS.contains(&content.trim_end()), "{content}");
        }
        assert_eq!(data(&pieces[4])["choices"][0]["finish_reason"], "length");
        assert_eq!(data(&pieces[5])["usage"], json!({ "prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5 }));
        assert_eq!(data(&pieces[5])["choices"], json!([]));
        assert_eq!(pieces[6], "data: [DONE]\n\n");
    }

    #[test]
    fn faults_shape_the_stream() {
        let with = |treatment: Treatment| pieces(Kind::Chat, CHAT, &treatment);
        let error = with(Treatment { ending: Ending::Error(1), ..Treatment::default() });
        assert_eq!((error.len(), data(&error[2])["error"]["type"].as_str()), (4, Some("server_error")));
        assert_eq!(with(Treatment { ending: Ending::Cut(2), ..Treatment::default() }).len(), 3);
        assert_eq!(with(Treatment { no_usage: true, ..Treatment::default() }).len(), 6);
        let two = std::num::NonZeroU32::MIN.saturating_add(1);
        assert_eq!(with(Treatment { tokens_per_chunk: Some(two), ..Treatment::default() }).len(), 6);
        let thinking = with(Treatment { reasoning_tokens: 2, ..Treatment::default() });
        let fields: Vec<bool> =
            thinking[1..4].iter().map(|p| data(p)["choices"][0]["delta"]["reasoning_content"].is_string()).collect();
        assert_eq!(fields, [true, true, false]);
        assert_eq!(data(&thinking[5])["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);
    }

    #[test]
    fn a_whole_body_holds_the_same_words_as_the_stream() {
        let body = CHAT.replace("\"stream\":true", "\"stream\":false");
        let asked = read(Kind::Chat, body.as_bytes(), &Profile::default()).expect("a request");
        let whole: Value =
            serde_json::from_slice(&Reply::new(asked, &Treatment::default(), 7, 1, 1).whole()).expect("JSON");
        let streamed: String = pieces(Kind::Chat, CHAT, &Treatment::default())[1..4]
            .iter()
            .map(|piece| data(piece)["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(whole["choices"][0]["message"]["content"], streamed);
        assert_eq!(whole["usage"]["total_tokens"], 5);
        let text = pieces(Kind::Completion, r#"{"prompt":"a b","max_tokens":2,"stream":true}"#, &Treatment::default());
        assert_eq!((text.len(), data(&text[2])["choices"][0]["finish_reason"].as_str()), (4, Some("length")));
        assert_eq!(data(&text[0])["object"], "text_completion");
    }
}
