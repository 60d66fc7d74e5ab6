//! The dialects that can be spoken, by name.

/// A dialect of requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `POST /v1/chat/completions`, streamed as server-sent events.
    OpenaiChat,
    /// `POST /v1/chat/completions`, one JSON body.
    OpenaiChatJson,
    /// `POST /v1/completions`, streamed as server-sent events.
    OpenaiCompletions,
    /// `POST /v1/responses`, streamed as server-sent events.
    OpenaiResponses,
    /// `POST /v1/messages`, streamed as server-sent events.
    AnthropicMessages,
    /// `POST /generate_stream` of text-generation-inference, streamed as server-sent events.
    Tgi,
    /// `POST /api/chat` or `/api/generate` of Ollama, streamed as JSON lines.
    Ollama,
}

impl Protocol {
    /// Every dialect.
    pub const ALL: [Self; 7] = [
        Self::OpenaiChat,
        Self::OpenaiChatJson,
        Self::OpenaiCompletions,
        Self::OpenaiResponses,
        Self::AnthropicMessages,
        Self::Tgi,
        Self::Ollama,
    ];

    /// The name in contracts and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiChatJson => "openai-chat-json",
            Self::OpenaiCompletions => "openai-completions",
            Self::OpenaiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::Tgi => "tgi",
            Self::Ollama => "ollama",
        }
    }

    /// The wire-level name, accepted as an alias.
    pub fn adapter(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_sse",
            Self::OpenaiChatJson => "openai_json",
            Self::OpenaiCompletions => "openai_completions_sse",
            Self::OpenaiResponses => "openai_responses_sse",
            Self::AnthropicMessages => "anthropic_sse",
            Self::Tgi => "tgi_sse",
            Self::Ollama => "ndjson_ollama",
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
            Self::OpenaiChat
            | Self::OpenaiCompletions
            | Self::OpenaiResponses
            | Self::AnthropicMessages
            | Self::Tgi => "text/event-stream",
            Self::OpenaiChatJson => "application/json",
            Self::Ollama => "application/x-ndjson",
        }
    }
}
