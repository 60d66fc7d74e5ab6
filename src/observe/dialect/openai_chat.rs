//! `POST /v1/chat/completions`, streamed: pieces of a message in `choices[].delta`.

use super::super::state::ReplyState;
use super::openai::read_event;
use super::{Dialect, Framing, Message};

/// The dialect; its messages do not depend on each other.
#[derive(Debug)]
pub(super) struct OpenaiChat;

impl Dialect for OpenaiChat {
    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        read_event(
            message,
            |index, choice, reply| {
                // A choice without a delta is an annotation.
                if let Some(delta) = choice.delta.get() {
                    delta.read(index, reply);
                }
            },
            reply,
        )
    }
}
