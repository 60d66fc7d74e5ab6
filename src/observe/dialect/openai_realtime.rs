//! WebSocket `/v1/realtime`, one turn: the events of a response, text or sound, between those of the session. The names of
//! its first version (`response.text.delta`) and of the present one (`response.output_text.delta`) are read alike. The
//! response ends with `response.done`, and the first one ends the turn. What the session says of its sound is believed before
//! what the contract declares.

use super::super::session::SessionEvent;
use super::super::state::ReplyState;
use super::response::ResponseEvents;
use super::{Dialect, Framing, Message, json};

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct OpenaiRealtime {
    events: ResponseEvents,
}

impl Dialect for OpenaiRealtime {
    fn framing(&self) -> Framing {
        Framing::Frames
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        json::read_event(message, reply, |kind, event, reply| {
            if matches!(kind, "session.created" | "session.updated")
                && let Ok(session) = serde_json::from_str::<SessionEvent<'_>>(message.data)
                && let [_, Some(format)] = session.formats()
            {
                reply.sound.know_pcm(format);
            }
            // The session, the conversation and the rate limits have messages of their own, which hold no output.
            self.events.read(kind, event, message.at_ns, reply) || !kind.is_empty()
        })
    }
}
