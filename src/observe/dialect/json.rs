//! What the dialects share whose messages are JSON objects.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::failure;
use super::super::lenient::{Maybe, Number};
use super::super::limits;
use super::super::state::ReplyState;
use super::super::trace::Warning;
use super::super::usage::{Usage, UsageBody};
use super::Message;

/// By what an event says what it is, and that something failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'e> {
    /// Its type; empty where only the stream names it.
    pub(super) kind: &'e str,
    /// Its field `error`.
    pub(super) error: Option<&'e RawValue>,
    /// Its field `object`: `error` in the older flat form of an error.
    pub(super) object: &'e str,
}

/// An event that is a JSON object.
pub(super) trait Event {
    /// What it says first.
    fn head(&self) -> Head<'_>;
}

/// Reads a message that is a JSON object, given what to do with one that reports no failure: it is told the object's kind,
/// and says whether it is one of the protocol's. False when the message was skipped.
pub(super) fn read_event<'m, E: Event + Deserialize<'m>>(
    message: Message<'m>,
    reply: &mut ReplyState,
    read: impl FnOnce(&str, &E, &mut ReplyState) -> bool,
) -> bool {
    let data = message.data.trim_ascii();
    if !data.starts_with('{') {
        skip_other(data, reply);
        return false;
    }
    let Some(event) = object::<E>(data, reply) else { return true };
    let head = event.head();
    let kind = if head.kind.is_empty() { message.name } else { head.kind };
    let flat = if kind == "error" { kind } else { head.object };
    if let Some(failure) = failure_in(head.error, flat, data) {
        reply.stream_error(&failure);
        return true;
    }
    read(kind, &event, reply)
}

/// The object in `data`; what is no JSON is a fault of the reply.
pub(super) fn object<'a, T: Deserialize<'a>>(data: &'a str, reply: &mut ReplyState) -> Option<T> {
    match serde_json::from_str(data) {
        Ok(object) => Some(object),
        Err(fault) => {
            let excerpt = failure::excerpt(data.as_bytes());
            reply.protocol_error(&format!("a message is not valid JSON ({fault}): {excerpt}"));
            None
        }
    }
}

/// Data of an event that is no object. Keep-alives of some servers are skipped; what looks like a piece of a message is a
/// lost message. `[DONE]` says nothing in a dialect that has an end signal of its own: gateways add it.
pub(super) fn skip_other(data: &str, reply: &mut ReplyState) {
    if data == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok() {
        return;
    }
    if data.contains('{') {
        reply.protocol_error(&format!("a message is not valid JSON: {}", failure::excerpt(data.as_bytes())));
    } else {
        reply.warn(Warning::NonjsonKeepalive);
    }
}

/// The failure that an object reports, in its field `error` or in the older flat form; `data` is the whole object.
pub(super) fn failure_in(error: Option<&RawValue>, object: &str, data: &str) -> Option<String> {
    match error.map(RawValue::get).filter(|error| failure::is_error(error)) {
        Some(error) => Some(failure::message(error)),
        None => (object == "error").then(|| failure::message(data)),
    }
}

/// Whether a value is `true`; anything else is not.
pub(super) fn is_true(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get() == "true")
}

/// The counts of a usage object; one without counts says nothing about earlier ones.
pub(super) fn counts(usage: &Maybe<UsageBody>) -> Option<Usage> {
    usage.get().and_then(UsageBody::counts)
}

/// Positions of tool calls in dialects that number them among other things: the first that is named is the first.
#[derive(Debug, Default)]
pub(super) struct CallPositions(Vec<i64>);

impl CallPositions {
    /// The position of the call that the server calls `index`; `None` without an index, and beyond what is told apart.
    pub(super) fn of(&mut self, index: Number) -> Option<usize> {
        let index = index.get()?;
        if let Some(known) = self.0.iter().position(|seen| *seen == index) {
            return Some(known);
        }
        if self.0.len() >= limits::INDICES {
            return None;
        }
        self.0.push(index);
        Some(self.0.len() - 1)
    }
}
