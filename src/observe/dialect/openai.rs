//! What the OpenAI dialects share: the envelope of a message, its errors, its usage and the end signal.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::failure;
use super::super::lenient::{List, Maybe, Number, Text};
use super::super::state::ReplyState;
use super::super::usage::{Usage, UsageBody};
use super::chat_piece::ChatPiece;
use super::{Message, json};

/// A message.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Text<'a>,
    #[serde(borrow)]
    choices: Option<List<Choice<'a>>>,
    #[serde(default)]
    usage: Maybe<UsageBody>,
    #[serde(default)]
    x_groq: Maybe<Vendor>,
}

/// The vendor's object that holds the usage on some servers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Vendor {
    usage: Maybe<UsageBody>,
}

/// One choice. Each dialect has its own place for what was generated.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    index: Number,
    #[serde(borrow)]
    finish_reason: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    usage: Maybe<UsageBody>,
    /// A piece of a chat message.
    #[serde(borrow)]
    pub(super) delta: Maybe<ChatPiece<'a>>,
    /// A whole chat message.
    #[serde(borrow)]
    pub(super) message: Maybe<ChatPiece<'a>>,
    /// A piece of a completion.
    #[serde(borrow)]
    pub(super) text: Text<'a>,
}

/// Tells a reply what was generated for a choice, given its index.
pub(super) type ReadOutputs = fn(usize, &Choice<'_>, &mut ReplyState);

/// Reads one event of a stream.
pub(super) fn read_event(message: Message<'_>, outputs: ReadOutputs, reply: &mut ReplyState) -> bool {
    let data = message.data.trim_ascii();
    if data == "[DONE]" {
        reply.done();
        return true;
    }
    match message.name {
        "error" => {
            reply.stream_error(&failure::message(data));
            true
        }
        "" | "message" if data.starts_with('{') => {
            read_object(data, outputs, reply);
            true
        }
        "" | "message" => {
            json::skip_other(data, reply);
            false
        }
        _ => false,
    }
}

/// Reads a whole body.
pub(super) fn read_body(message: Message<'_>, outputs: ReadOutputs, reply: &mut ReplyState) -> bool {
    let data = message.data.trim_ascii();
    let excerpt = || failure::excerpt(data.as_bytes());
    if data.starts_with('{') {
        if !read_object(data, outputs, reply) {
            reply.protocol_error(&format!("the body holds no choices: {}", excerpt()));
        }
    } else if let Some(error) = failure::in_body(data) {
        reply.stream_error(&error);
    } else {
        reply.protocol_error(&format!("the body is no JSON object: {}", excerpt()));
    }
    true
}

/// Reads an object; false when it was read and has no `choices`.
fn read_object(data: &str, outputs: ReadOutputs, reply: &mut ReplyState) -> bool {
    json::object::<Envelope<'_>>(data, reply).is_none_or(|envelope| envelope.read(data, outputs, reply))
}

impl Envelope<'_> {
    /// Tells `reply` everything; false without `choices`.
    fn read(&self, data: &str, outputs: ReadOutputs, reply: &mut ReplyState) -> bool {
        if let Some(failure) = json::failure_in(self.error, self.object.get(), data) {
            reply.stream_error(&failure);
        }
        for choice in self.choices.iter().flat_map(List::items) {
            choice.read(outputs, reply);
        }
        let vendor = self.x_groq.get().and_then(|vendor| json::counts(&vendor.usage));
        take_usage(json::counts(&self.usage).or(vendor), reply);
        self.choices.is_some()
    }
}

impl Choice<'_> {
    fn read(&self, outputs: ReadOutputs, reply: &mut ReplyState) {
        let index = self.index.get().and_then(|index| usize::try_from(index).ok()).unwrap_or(0);
        if let Some(error) = self.error.map(RawValue::get).filter(|error| failure::is_error(error)) {
            reply.stream_error(&failure::message(error));
        }
        outputs(index, self, reply);
        reply.finish(index, self.finish_reason.get());
        take_usage(json::counts(&self.usage), reply);
    }
}

/// A usage object without counts says nothing about earlier ones.
fn take_usage(counts: Option<Usage>, reply: &mut ReplyState) {
    if let Some(counts) = counts {
        reply.usage(counts);
    }
}
