//! The dialects: what the messages of each protocol say. One file each, and one line in [`of`].

mod anthropic_messages;
mod chat_piece;
mod json;
mod ollama;
mod openai;
mod openai_chat;
mod openai_chat_json;
mod openai_completions;
mod openai_realtime;
mod openai_responses;
mod openai_speech;
mod openai_transcription;
mod response;
mod tgi;

use std::fmt;

use super::Protocol;
use super::state::ReplyState;
use super::trace::Warning;

/// How the messages of a dialect lie in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON message a line.
    Lines,
    /// The whole body is one JSON message, and its end is the end signal.
    Json,
    /// Either of one JSON body and server-sent events, as the server likes.
    JsonOrEvents,
    /// Each message of a WebSocket is one.
    Frames,
    /// The whole body is sound, and its end is the end signal.
    Sound,
}

/// One message: an event, a line, a message of a WebSocket, or a whole body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    /// The event's name; empty where there is none.
    pub(super) name: &'a str,
    /// Its data, never blank.
    pub(super) data: &'a str,
    /// When it was complete, in nanoseconds.
    pub(super) at_ns: u64,
}

/// Reads the messages of one reply.
pub(super) trait Dialect: fmt::Debug + Send {
    /// How the messages lie in the body.
    fn framing(&self) -> Framing;

    /// Warnings of what is missing that this dialect has no place for.
    fn lacks(&self) -> &'static [Warning] {
        &[]
    }

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
        Protocol::OpenaiRealtime => Box::new(openai_realtime::OpenaiRealtime::default()),
        Protocol::OpenaiSpeech => Box::new(openai_speech::OpenaiSpeech),
        Protocol::OpenaiTranscription => Box::new(openai_transcription::OpenaiTranscription::default()),
    }
}
