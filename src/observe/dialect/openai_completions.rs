//! `POST /v1/completions`, streamed: plain text in `choices[].text`.

use super::super::state::ReplyState;
use super::super::trace::OutputKind;
use super::openai::read_event;
use super::{Dialect, Framing, Message};

/// The dialect; its messages do not depend on each other.
#[derive(Debug)]
pub(super) struct OpenaiCompletions;

impl Dialect for OpenaiCompletions {
    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        read_event(message, |index, choice, reply| reply.output(index, OutputKind::Content, choice.text.get()), reply)
    }
}
