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
    /// WebSocket `/v1/realtime`: one turn of a conversation, text or sound.
    OpenaiRealtime,
    /// `POST /v1/audio/speech`: sound as the body, streamed or whole.
    OpenaiSpeech,
    /// `POST /v1/audio/transcriptions`: sound in a form, text back as one JSON body or as server-sent events.
    OpenaiTranscription,
}

impl Protocol {
    /// Every dialect.
    pub const ALL: [Self; 10] = [
        Self::OpenaiChat,
        Self::OpenaiChatJson,
        Self::OpenaiCompletions,
        Self::OpenaiResponses,
        Self::AnthropicMessages,
        Self::Tgi,
        Self::Ollama,
        Self::OpenaiRealtime,
        Self::OpenaiSpeech,
        Self::OpenaiTranscription,
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
            Self::OpenaiRealtime => "openai-realtime",
            Self::OpenaiSpeech => "openai-speech",
            Self::OpenaiTranscription => "openai-transcription",
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
            Self::OpenaiRealtime => "openai_ws",
            Self::OpenaiSpeech => "openai_audio",
            Self::OpenaiTranscription => "openai_transcription",
        }
    }

    /// The dialect that is usually spoken at a path.
    pub fn usual_at(path: &str) -> Option<Self> {
        const PATHS: [(&str, Protocol); 10] = [
            ("/chat/completions", Protocol::OpenaiChat),
            ("/completions", Protocol::OpenaiCompletions),
            ("/responses", Protocol::OpenaiResponses),
            ("/messages", Protocol::AnthropicMessages),
            ("/generate_stream", Protocol::Tgi),
            ("/api/chat", Protocol::Ollama),
            ("/api/generate", Protocol::Ollama),
            ("/realtime", Protocol::OpenaiRealtime),
            ("/audio/speech", Protocol::OpenaiSpeech),
            ("/audio/transcriptions", Protocol::OpenaiTranscription),
        ];
        PATHS.into_iter().find(|(end, _)| path.trim_end_matches('/').ends_with(end)).map(|(_, protocol)| protocol)
    }

    /// The dialect of either name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name || p.adapter() == name)
    }

    /// Whether a reply is a stream of messages. One that may be a whole body as well is none until it has begun.
    pub fn streams(self) -> bool {
        !matches!(self, Self::OpenaiChatJson | Self::OpenaiSpeech | Self::OpenaiTranscription)
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
            Self::OpenaiRealtime | Self::OpenaiSpeech => "*/*",
            Self::OpenaiTranscription => "application/json, text/event-stream",
            Self::Ollama => "application/x-ndjson",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_the_protocol_that_is_usual_there() {
        for (path, expected) in [
            ("/v1/chat/completions", Some(Protocol::OpenaiChat)),
            ("/openai/v1/completions/", Some(Protocol::OpenaiCompletions)),
            ("/v1/audio/transcriptions", Some(Protocol::OpenaiTranscription)),
            ("/generate_stream", Some(Protocol::Tgi)),
            ("/synthesize", None),
            ("/", None),
        ] {
            assert_eq!(Protocol::usual_at(path), expected, "{path}");
        }
    }
}
