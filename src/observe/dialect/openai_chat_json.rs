//! `POST /v1/chat/completions` without streaming: one JSON body with whole messages in `choices[].message`.

use super::super::state::ReplyState;
use super::openai::read_body;
use super::{Dialect, Framing, Message};

/// The dialect.
#[derive(Debug)]
pub(super) struct OpenaiChatJson;

impl Dialect for OpenaiChatJson {
    fn framing(&self) -> Framing {
        Framing::Json
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        read_body(
            message,
            |index, choice, reply| {
                if let Some(message) = choice.message.get() {
                    message.read(index, reply);
                }
            },
            reply,
        )
    }
}
