//! `POST /v1/audio/speech`: the body is sound, streamed or whole, and its end is the end signal. There are no messages and no
//! words: no tokens, no reason why it ended.

use super::super::state::ReplyState;
use super::super::trace::Warning;
use super::{Dialect, Framing, Message};

/// The dialect.
#[derive(Debug)]
pub(super) struct OpenaiSpeech;

impl Dialect for OpenaiSpeech {
    fn framing(&self) -> Framing {
        Framing::Sound
    }

    fn lacks(&self) -> &'static [Warning] {
        &[Warning::NoDone, Warning::NoFinishReason, Warning::NoUsage]
    }

    fn message(&mut self, _: Message<'_>, _: &mut ReplyState) -> bool {
        false
    }
}
