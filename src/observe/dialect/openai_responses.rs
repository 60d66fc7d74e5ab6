//! `POST /v1/responses`, streamed: the events of one response. It ends with `response.completed` or one that says why not.

use super::super::state::ReplyState;
use super::response::ResponseEvents;
use super::{Dialect, Framing, Message, json};

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct OpenaiResponses {
    events: ResponseEvents,
}

impl Dialect for OpenaiResponses {
    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        json::read_event(message, reply, |kind, event, reply| self.events.read(kind, event, message.at_ns, reply))
    }
}
