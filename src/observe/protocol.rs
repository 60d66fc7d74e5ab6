//! The dialects that can be spoken, by name.

use serde_json::{Value, json};

/// A dialect of requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `POST /v1/chat/completions`, streamed as server-sent events.
    OpenaiChat,
    /// `POST /v1/chat/completions`, one JSON body.
    OpenaiChatJson,
    /// `POST /v1/completions`, streamed as server-sent events.
    OpenaiCompletions,
}

impl Protocol {
    /// Every dialect.
    pub const ALL: [Self; 3] = [Self::OpenaiChat, Self::OpenaiChatJson, Self::OpenaiCompletions];

    /// The name in contracts and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiChatJson => "openai-chat-json",
            Self::OpenaiCompletions => "openai-completions",
        }
    }

    /// The wire-level name, accepted as an alias.
    pub fn adapter(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_sse",
            Self::OpenaiChatJson => "openai_json",
            Self::OpenaiCompletions => "openai_completions_sse",
        }
    }

    /// The dialect of either name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name || p.adapter() == name)
    }

    /// Whether a reply is a stream of messages and not one body.
    pub fn streams(self) -> bool {
        self != Self::OpenaiChatJson
    }

    /// The value of the request's `Accept` header.
    pub fn accept(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => "text/event-stream",
            Self::OpenaiChatJson => "application/json",
        }
    }

    /// The payload template used where a contract writes none. Fields of `has` (`messages`, `max_tokens`) are asked for
    /// where the cases carry them.
    pub fn default_payload(self, has: impl Fn(&str) -> bool) -> Value {
        let mut payload = json!({ "model": "$model" });
        if self == Self::OpenaiCompletions {
            payload["prompt"] = json!("$prompt");
        } else if has("messages") {
            payload["messages"] = json!("$messages");
        } else {
            payload["messages"] = json!([{ "role": "user", "content": "$prompt" }]);
        }
        if has("max_tokens") {
            payload["max_tokens"] = json!("$max_tokens");
        }
        payload["stream"] = json!(self.streams());
        payload
    }

    /// Asks for token counts where the dialect has a way to, unless the template says otherwise itself.
    pub fn ask_for_usage(self, payload: &mut Value) {
        if let Some(map) = payload.as_object_mut().filter(|_| self.streams()) {
            map.entry("stream_options").or_insert_with(|| json!({ "include_usage": true }));
        }
    }
}
