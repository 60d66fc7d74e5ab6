//! `POST /v1/audio/transcriptions`: the text of sound, as one JSON body or as events with a `delta` each. The body's end or
//! `transcript.text.done` is the end signal. vLLM sends chunks in the manner of its chat instead, ended by `[DONE]`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::lenient::{List, Maybe, Text};
use super::super::state::ReplyState;
use super::super::trace::{OutputKind, Warning};
use super::super::usage::UsageBody;
use super::json::{self, Head};
use super::{Dialect, Framing, Message};

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct OpenaiTranscription {
    /// A piece of the text came, so that a whole text repeats what came before.
    in_pieces: bool,
    /// A chunk came, so that `[DONE]` is the end signal.
    in_chunks: bool,
}

/// An event, or the whole body.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Text<'a>,
    #[serde(borrow)]
    delta: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    choices: List<Choice<'a>>,
    /// Tokens, or the seconds that are paid for, which are no tokens.
    usage: Maybe<UsageBody>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Maybe<Delta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Text<'a>,
}

impl json::Event for Event<'_> {
    fn head(&self) -> Head<'_> {
        Head { kind: self.r#type.get(), error: self.error, object: self.object.get() }
    }
}

impl Dialect for OpenaiTranscription {
    fn framing(&self) -> Framing {
        Framing::JsonOrEvents
    }

    fn lacks(&self) -> &'static [Warning] {
        &[Warning::NoFinishReason, Warning::NoUsage]
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        if self.in_chunks && message.data.trim_ascii() == "[DONE]" {
            reply.done();
            return true;
        }
        json::read_event(message, reply, |kind, event, reply| self.read(kind, event, reply))
    }
}

impl OpenaiTranscription {
    /// False for an object that is none of the protocol's.
    fn read(&mut self, kind: &str, event: &Event<'_>, reply: &mut ReplyState) -> bool {
        if let Some(usage) = json::counts(&event.usage) {
            reply.usage(usage);
        }
        match kind {
            "transcript.text.delta" => self.piece(event.delta.get(), reply),
            "transcript.text.done" => {
                if !self.in_pieces {
                    self.piece(event.text.as_ref().map_or("", Text::get), reply);
                }
                reply.done();
            }
            kind if kind.starts_with("transcript.") => {}
            _ if event.object.get() == "transcription.chunk" => {
                self.in_chunks = true;
                for delta in event.choices.items().iter().filter_map(|choice| choice.delta.get()) {
                    self.piece(delta.content.get(), reply);
                }
            }
            "" => match &event.text {
                Some(text) => self.piece(text.get(), reply),
                None => return false,
            },
            _ => return false,
        }
        true
    }

    fn piece(&mut self, text: &str, reply: &mut ReplyState) {
        self.in_pieces |= !text.is_empty();
        reply.output(0, OutputKind::Content, text);
    }
}
