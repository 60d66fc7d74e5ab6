//! The dialects: what the messages of each protocol say. One file each, and one line in [`of`].

mod anthropic_messages;
mod chat_piece;
mod json;
mod ollama;
mod openai;
mod openai_chat;
mod openai_chat_json;
mod openai_completions;
mod openai_responses;
mod tgi;

use std::fmt;

use super::Protocol;
use super::state::ReplyState;

/// How the messages of a dialect lie in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON message a line.
    Lines,
    /// The whole body is one JSON message, and its end is the end signal.
    Json,
}

/// One message: an event, a line, or a whole body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    /// The event's name; empty where there is none.
    pub(super) name: &'a str,
    /// Its data, never blank.
    pub(super) data: &'a str,
}

/// Reads the messages of one reply.
pub(super) trait Dialect: fmt::Debug + Send {
    /// How the messages lie in the body.
    fn framing(&self) -> Framing;

    /// Tells `reply` what `message` holds. False when it is none of the protocol's and was skipped.
    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool;
}

/// The dialect of a protocol.
pub(super) fn of(protocol: Protocol) -> Box<dyn Dialect> {
    match protocol {
        Protocol::OpenaiChat => Box::new(openai_chat::OpenaiChat),
        Protocol::OpenaiChatJson => Box::new(openai_chat_json::OpenaiChatJson),
        Protocol::OpenaiCompletions => Box::new(openai_completions::OpenaiCompletions),
        Protocol::OpenaiResponses => Box::new(openai_responses::OpenaiResponses::default()),
        Protocol::AnthropicMessages => Box::new(anthropic_messages::AnthropicMessages::default()),
        Protocol::Tgi => Box::new(tgi::Tgi),
        Protocol::Ollama => Box::new(ollama::Ollama::default()),
        Protocol::OpenaiRealtime | Protocol::OpenaiSpeech | Protocol::OpenaiTranscription => {
            Box::new(openai_chat_json::OpenaiChatJson)
        }
    }
}
