//! What a client asks for: the body of a request, read strictly enough to notice a broken client.

use serde::Deserialize;
use serde_json::Value;

use super::engine::Lengths;
use super::profile::{LONGEST_REPLY, Profile, PromptTokens};

/// The two kinds of request that are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/completions`.
    Completion,
}

/// A request that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) kind: Kind,
    /// The model's name, echoed.
    pub(super) model: String,
    /// As server-sent events.
    pub(super) stream: bool,
    /// Token counts at the end of a stream.
    pub(super) include_usage: bool,
    /// Tokens of the prompt.
    pub(super) prompt_tokens: u32,
    /// Tokens of the reply.
    pub(super) output_tokens: u32,
    /// Whether the reply is cut by the request's limit, not ended by itself.
    pub(super) limited: bool,
    /// Decides the words of the reply.
    pub(super) text_seed: u64,
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Value>,
    #[serde(default)]
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

impl Asked {
    /// With the lengths that were drawn for it; a reply longer than its limit is cut there.
    pub(super) fn with(mut self, drawn: Lengths) -> Self {
        self.prompt_tokens = drawn.prompt.unwrap_or(self.prompt_tokens);
        if let Some(tokens) = drawn.output
            && !(self.limited && tokens >= self.output_tokens)
        {
            (self.output_tokens, self.limited) = (tokens, false);
        }
        self
    }
}

/// Reads the body of a request.
///
/// # Errors
/// What is wrong with it, for the client.
pub(super) fn read(kind: Kind, body: &[u8], profile: &Profile) -> Result<Asked, String> {
    let body: Body = serde_json::from_slice(body).map_err(|error| format!("the body is not a request: {error}"))?;
    let mut texts = Vec::new();
    match kind {
        Kind::Chat => {
            let messages = body.messages.filter(|m| !m.is_empty()).ok_or("`messages` is missing or empty")?;
            messages.iter().for_each(|message| collect_text(&message.content, &mut texts));
        }
        Kind::Completion => collect_text(&body.prompt.ok_or("`prompt` is missing")?, &mut texts),
    }
    let limit = match body.max_completion_tokens.or(body.max_tokens) {
        None => None,
        Some(limit) => match u32::try_from(limit) {
            Ok(limit @ 1..=LONGEST_REPLY) => Some(limit),
            _ => return Err(format!("`max_tokens` must be between 1 and {LONGEST_REPLY}, not {limit}")),
        },
    };
    Ok(Asked {
        kind,
        model: body.model.unwrap_or_else(|| profile.name.clone()),
        stream: body.stream.unwrap_or(false),
        include_usage: body.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
        prompt_tokens: count_tokens(&texts, profile.prompt_tokens),
        output_tokens: limit.unwrap_or(profile.output_tokens.get()),
        limited: limit.is_some(),
        text_seed: hash(&texts, profile.seed),
    })
}

/// The texts of a prompt or of a message's content: a string, a list of strings, or parts with a `text`.
fn collect_text(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_text(item, texts)),
        Value::Object(part) => part.get("text").into_iter().for_each(|text| collect_text(text, texts)),
        _ => {}
    }
}

fn count_tokens(texts: &[String], rule: PromptTokens) -> u32 {
    match rule {
        PromptTokens::Fixed(tokens) => tokens,
        PromptTokens::PerWord(tokens) => {
            let words: usize = texts.iter().map(|text| text.split_whitespace().count()).sum();
            (words as f64 * tokens).ceil() as u32
        }
    }
}

/// FNV-1a over the texts and the seed: equal requests get equal replies.
fn hash(texts: &[String], seed: u64) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes()).chain(seed.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: Kind, body: &str) -> Result<Asked, String> {
        read(kind, body.as_bytes(), &Profile::default())
    }

    #[test]
    fn words_limits_and_usage_are_read() {
        let chat = asked(
            Kind::Chat,
            r#"{"model":"m","messages":[{"role":"system","content":"be brief"},
                {"role":"user","content":[{"type":"text","text":"one two  three"}]}],
                "stream":true,"stream_options":{"include_usage":true},"max_tokens":8}"#,
        )
        .expect("a request");
        assert_eq!((chat.prompt_tokens, chat.output_tokens, chat.limited), (5, 8, true));
        assert!(chat.stream && chat.include_usage && chat.model == "m");
        let completion = asked(Kind::Completion, r#"{"prompt":"one two"}"#).expect("a request");
        assert_eq!((completion.prompt_tokens, completion.output_tokens, completion.limited), (2, 32, false));
        assert!(!completion.stream);
        let again = asked(Kind::Completion, r#"{"prompt":"one two","max_tokens":3}"#).expect("a request");
        assert_eq!(again.text_seed, completion.text_seed);
    }

    #[test]
    fn a_drawn_length_ends_by_itself_unless_the_limit_cuts_it() {
        for (limit, drawn, want) in [
            (Some(8), Some(5), (5, false)),
            (Some(8), Some(8), (8, true)),
            (Some(8), Some(20), (8, true)),
            (None, Some(20), (20, false)),
            (Some(8), None, (8, true)),
        ] {
            let limit_key = limit.map_or_else(String::new, |limit: u32| format!(r#","max_tokens":{limit}"#));
            let body = format!(r#"{{"prompt":"a"{limit_key}}}"#);
            let found =
                asked(Kind::Completion, &body).expect("a request").with(Lengths { prompt: Some(9), output: drawn });
            assert_eq!((found.output_tokens, found.limited), want, "{limit:?} {drawn:?}");
            assert_eq!(found.prompt_tokens, 9);
        }
    }

    #[test]
    fn broken_requests_are_refused_with_a_reason() {
        for (kind, body, reason) in [
            (Kind::Chat, "{", "the body is not a request"),
            (Kind::Chat, "{}", "`messages` is missing"),
            (Kind::Chat, r#"{"messages":[]}"#, "`messages` is missing or empty"),
            (Kind::Chat, r#"{"messages":[{}],"max_tokens":0}"#, "`max_tokens` must be"),
            (Kind::Completion, r#"{"messages":[{}]}"#, "`prompt` is missing"),
            (Kind::Completion, r#"{"prompt":"a","stream":"yes"}"#, "the body is not a request"),
        ] {
            let error = asked(kind, body).expect_err(body);
            assert!(error.starts_with(reason), "{body}: {error}");
        }
    }
}
