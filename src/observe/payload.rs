//! The payload template that each dialect has of its own, and how token counts are asked for.

use serde_json::{Value, json};

use super::Protocol;
use crate::audio::{Encoding, PcmFormat};

/// What a realtime endpoint hears and speaks unless its session says otherwise: 24 kHz, 16-bit, one channel (OpenAI's
/// Realtime reference, `audio/pcm`).
pub const REALTIME_AUDIO: PcmFormat = PcmFormat { encoding: Encoding::Pcm16, sample_rate: 24_000, channels: 1 };

impl Protocol {
    /// The payload template used where a contract writes none. `path` is that of the endpoint's URL, for the dialect that
    /// has two; `sound` are the formats of sound that is sent and that comes back, where there are any. Fields of `has` (`messages`, `max_tokens`) are asked for where the cases carry them; a field without which
    /// the server refuses every request is always asked for, so that its absence is told before any load.
    pub fn default_payload(self, path: &str, sound: [Option<PcmFormat>; 2], has: impl Fn(&str) -> bool) -> Value {
        let mut payload = match self {
            Self::Tgi => return tgi(has("max_tokens")),
            Self::OpenaiCompletions => json!({ "model": "$model", "prompt": "$prompt" }),
            Self::Ollama if path.trim_end_matches('/').ends_with("/generate") => {
                json!({ "model": "$model", "prompt": "$prompt" })
            }
            Self::OpenaiSpeech => return speech(&has),
            Self::OpenaiTranscription => {
                return json!({ "model": "$model", "file": "$audio", "response_format": "json" });
            }
            Self::OpenaiRealtime => return turn(sound.map(|format| format.unwrap_or(REALTIME_AUDIO)), &has),
            Self::OpenaiResponses => {
                json!({ "model": "$model", "input": if has("messages") { "$messages" } else { "$prompt" } })
            }
            Self::OpenaiChat | Self::OpenaiChatJson | Self::AnthropicMessages | Self::Ollama => {
                json!({ "model": "$model", "messages": messages(has("messages")) })
            }
        };
        if has("max_tokens") || self == Self::AnthropicMessages {
            match self {
                Self::OpenaiResponses => payload["max_output_tokens"] = json!("$max_tokens"),
                Self::Ollama => payload["options"] = json!({ "num_predict": "$max_tokens" }),
                _ => payload["max_tokens"] = json!("$max_tokens"),
            }
        }
        payload["stream"] = json!(self.streams());
        payload
    }

    /// Asks for token counts where the dialect has a way to, unless the template says otherwise itself. Gives back the path
    /// of what was added, for people.
    pub fn ask_for_usage(self, payload: &mut Value) -> Option<&'static str> {
        let (object, key, wish, path) = match self {
            Self::OpenaiChat | Self::OpenaiCompletions => {
                (Some(payload), "stream_options", json!({ "include_usage": true }), "stream_options.include_usage")
            }
            Self::Tgi => {
                let parameters =
                    payload.as_object_mut().map(|map| map.entry("parameters").or_insert_with(|| json!({})));
                (parameters, "details", json!(true), "parameters.details")
            }
            // These always count.
            Self::OpenaiChatJson | Self::OpenaiResponses | Self::AnthropicMessages | Self::Ollama => return None,
            Self::OpenaiRealtime | Self::OpenaiSpeech | Self::OpenaiTranscription => return None,
        };
        let map = object.and_then(Value::as_object_mut).filter(|map| !map.contains_key(key))?;
        map.insert(key.to_owned(), wish);
        Some(path)
    }
}

fn messages(in_case: bool) -> Value {
    if in_case { json!("$messages") } else { json!([{ "role": "user", "content": "$prompt" }]) }
}

/// Sound in a container that tells its format, so that its duration can be measured.
fn speech(has: impl Fn(&str) -> bool) -> Value {
    let mut payload = json!({ "model": "$model", "input": "$prompt", "response_format": "wav" });
    if has("voice") {
        payload["voice"] = json!("$voice");
    }
    payload
}

/// One turn: the formats of sound, what is said, in sound or in text, and the wish for a response. A server may take another
/// format for its default, so none is left to it. Sound is ended by us and not by the server's ear, so that the time from
/// the end of speech is the server's alone.
fn turn([input, output]: [PcmFormat; 2], has: impl Fn(&str) -> bool) -> Value {
    let respond = json!({ "type": "response.create" });
    let sound = json!({
        "input": { "format": audio_format(input), "turn_detection": null },
        "output": { "format": audio_format(output) },
    });
    let session = json!({ "type": "session.update", "session": { "type": "realtime", "audio": sound } });
    if has("audio") {
        let append = json!({ "type": "input_audio_buffer.append", "audio": "$audio" });
        return json!({ "events": [session, append, { "type": "input_audio_buffer.commit" }, respond] });
    }
    let content = json!([{ "type": "input_text", "text": "$prompt" }]);
    let item = json!({ "type": "message", "role": "user", "content": content });
    json!({ "events": [session, { "type": "conversation.item.create", "item": item }, respond] })
}

/// A format in the words of a session.
fn audio_format(format: PcmFormat) -> Value {
    match format.encoding {
        Encoding::Pcm16 => json!({ "type": "audio/pcm", "rate": format.sample_rate }),
        Encoding::G711Ulaw => json!({ "type": "audio/pcmu" }),
        Encoding::G711Alaw => json!({ "type": "audio/pcma" }),
    }
}

/// The server holds one model, and its path alone makes it stream.
fn tgi(with_limit: bool) -> Value {
    let parameters = if with_limit { json!({ "max_new_tokens": "$max_tokens" }) } else { json!({}) };
    json!({ "inputs": "$prompt", "parameters": parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The template for cases with `fields`, usage asked for.
    #[track_caller]
    fn check(protocol: Protocol, path: &str, fields: &[&str], expected: Value) {
        let mut payload = protocol.default_payload(path, [None; 2], |field| fields.contains(&field));
        protocol.ask_for_usage(&mut payload);
        assert_eq!(payload, expected, "{} {path} {fields:?}", protocol.name());
    }

    #[test]
    fn every_dialect_has_a_payload_in_its_own_words() {
        let prompt = json!([{ "role": "user", "content": "$prompt" }]);
        let usage = json!({ "include_usage": true });
        check(
            Protocol::OpenaiChat,
            "/v1/chat/completions",
            &["prompt", "max_tokens"],
            json!({ "model": "$model", "messages": prompt, "max_tokens": "$max_tokens", "stream": true, "stream_options": usage }),
        );
        check(
            Protocol::OpenaiCompletions,
            "/v1/completions",
            &["prompt"],
            json!({ "model": "$model", "prompt": "$prompt", "stream": true, "stream_options": usage }),
        );
        check(
            Protocol::OpenaiChatJson,
            "/v1/chat/completions",
            &["messages"],
            json!({ "model": "$model", "messages": "$messages", "stream": false }),
        );
        check(
            Protocol::OpenaiResponses,
            "/v1/responses",
            &["prompt", "max_tokens"],
            json!({ "model": "$model", "input": "$prompt", "max_output_tokens": "$max_tokens", "stream": true }),
        );
        check(
            Protocol::AnthropicMessages,
            "/v1/messages",
            &["prompt"],
            json!({ "model": "$model", "messages": prompt, "max_tokens": "$max_tokens", "stream": true }),
        );
        check(
            Protocol::Tgi,
            "/generate_stream",
            &["prompt", "max_tokens"],
            json!({ "inputs": "$prompt", "parameters": { "max_new_tokens": "$max_tokens", "details": true } }),
        );
        check(
            Protocol::Ollama,
            "/api/chat",
            &["prompt", "max_tokens"],
            json!({ "model": "$model", "messages": prompt, "options": { "num_predict": "$max_tokens" }, "stream": true }),
        );
        check(
            Protocol::Ollama,
            "/api/generate",
            &["prompt"],
            json!({ "model": "$model", "prompt": "$prompt", "stream": true }),
        );
        check(
            Protocol::OpenaiSpeech,
            "/v1/audio/speech",
            &["prompt", "voice"],
            json!({ "model": "$model", "input": "$prompt", "response_format": "wav", "voice": "$voice" }),
        );
        check(
            Protocol::OpenaiTranscription,
            "/v1/audio/transcriptions",
            &["audio"],
            json!({ "model": "$model", "file": "$audio", "response_format": "json" }),
        );
        let format = json!({ "type": "audio/pcm", "rate": 24_000 });
        let sound = json!({ "input": { "format": format, "turn_detection": null }, "output": { "format": format } });
        let session = json!({ "type": "session.update", "session": { "type": "realtime", "audio": sound } });
        let respond = json!({ "type": "response.create" });
        let said =
            json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "$prompt" }] });
        check(
            Protocol::OpenaiRealtime,
            "/v1/realtime",
            &["prompt"],
            json!({ "events": [session, { "type": "conversation.item.create", "item": said }, respond] }),
        );
        check(
            Protocol::OpenaiRealtime,
            "/v1/realtime",
            &["audio"],
            json!({ "events": [
                session,
                { "type": "input_audio_buffer.append", "audio": "$audio" },
                { "type": "input_audio_buffer.commit" },
                respond,
            ] }),
        );
    }

    #[test]
    fn a_template_that_says_otherwise_is_left_alone() {
        for (protocol, written, sent) in [
            (Protocol::OpenaiChat, json!({ "stream_options": null }), json!({ "stream_options": null })),
            (
                Protocol::Tgi,
                json!({ "parameters": { "details": false } }),
                json!({ "parameters": { "details": false } }),
            ),
            (Protocol::Tgi, json!({ "inputs": "x" }), json!({ "inputs": "x", "parameters": { "details": true } })),
            (Protocol::Tgi, json!({ "parameters": null }), json!({ "parameters": null })),
            (Protocol::Ollama, json!({}), json!({})),
        ] {
            let mut payload = written;
            let before = payload.clone();
            let added = protocol.ask_for_usage(&mut payload);
            assert_eq!(payload, sent);
            assert_eq!(added.is_some(), payload != before, "{added:?}");
        }
    }
}
