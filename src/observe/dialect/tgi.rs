//! `POST /generate_stream` of text-generation-inference: one event a token. The last one repeats the whole text, which is
//! no output, and holds the counts where `details` were asked for.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::lenient::{Maybe, Number, Text};
use super::super::state::ReplyState;
use super::super::trace::OutputKind;
use super::super::usage::Usage;
use super::json::{self, Head};
use super::{Dialect, Framing, Message};

/// The dialect; its messages do not depend on each other.
#[derive(Debug)]
pub(super) struct Tgi;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    token: Maybe<Token<'a>>,
    #[serde(borrow)]
    generated_text: Option<&'a RawValue>,
    #[serde(borrow)]
    details: Maybe<Details<'a>>,
}

/// A token; a special one, such as the end of the sequence, is no text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Token<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    special: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details<'a> {
    #[serde(borrow)]
    finish_reason: Text<'a>,
    generated_tokens: Number,
    input_length: Number,
}

/// A token or an error has no type.
impl json::Event for Event<'_> {
    fn head(&self) -> Head<'_> {
        Head { kind: "", error: self.error, object: "" }
    }
}

impl Dialect for Tgi {
    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        json::read_event(message, reply, |_, event: &Event<'_>, reply| event.read(reply))
    }
}

impl Event<'_> {
    /// False for an object that is none of the protocol's.
    fn read(&self, reply: &mut ReplyState) -> bool {
        if let Some(token) = self.token.get().filter(|token| !json::is_true(token.special)) {
            reply.output(0, OutputKind::Content, token.text.get());
        }
        let details = self.details.get();
        if let Some(details) = details {
            let (input, output) = (details.input_length.get(), details.generated_tokens.get());
            if input.is_some() || output.is_some() {
                reply.usage(Usage { input, output, ..Usage::default() });
            }
            reply.finish(0, details.finish_reason.get());
        }
        let last = details.is_some() || self.generated_text.is_some();
        if last {
            reply.done();
        }
        last || self.token.get().is_some()
    }
}
