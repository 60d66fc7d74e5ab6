//! `POST /v1/messages`, streamed: content blocks that begin, grow by a `delta` each, and end. Counts come in two parts: the
//! prompt's with `message_start`, the reply's with `message_delta`, as running totals.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::lenient::{Maybe, Number, Text};
use super::super::state::ReplyState;
use super::super::trace::OutputKind;
use super::super::usage::Usage;
use super::json::{self, CallPositions, Head};
use super::{Dialect, Framing, Message};

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct AnthropicMessages {
    calls: CallPositions,
    counts: Counts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Text<'a>,
    index: Number,
    message: Maybe<Start>,
    #[serde(borrow)]
    content_block: Maybe<Block<'a>>,
    #[serde(borrow)]
    delta: Maybe<Delta<'a>>,
    usage: Maybe<Counts>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Start {
    usage: Maybe<Counts>,
}

/// A block as it begins: mostly empty, but some servers send a whole one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// A piece of a block, or the end of the message. Signatures and citations are no output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    #[serde(borrow)]
    partial_json: Text<'a>,
    #[serde(borrow)]
    stop_reason: Text<'a>,
}

/// Counts as the server writes them; cached prompt tokens are not among `input_tokens`.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Number,
    cache_creation_input_tokens: Number,
    cache_read_input_tokens: Number,
    output_tokens: Number,
}

impl json::Event for Event<'_> {
    fn head(&self) -> Head<'_> {
        Head { kind: self.r#type.get(), error: self.error, object: self.object.get() }
    }
}

impl Dialect for AnthropicMessages {
    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        json::read_event(message, reply, |kind, event, reply| self.read(kind, event, reply))
    }
}

impl AnthropicMessages {
    /// False for events of no known kind, which the protocol asks to skip.
    fn read(&mut self, kind: &str, event: &Event<'_>, reply: &mut ReplyState) -> bool {
        match kind {
            "message_start" => {
                // The reply's count in the first event is that of its beginning, not of the reply.
                let counts = event.message.get().and_then(|message| message.usage.get());
                self.count(counts.map(|counts| Counts { output_tokens: Number::default(), ..*counts }), reply);
            }
            "content_block_start" => {
                if let Some(block) = event.content_block.get() {
                    self.begin_block(event.index, block, reply);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta.get() {
                    reply.output(0, OutputKind::Reasoning, delta.thinking.get());
                    reply.output(0, OutputKind::Content, delta.text.get());
                    self.tool_call(event.index, "", delta.partial_json.get(), reply);
                }
            }
            "message_delta" => {
                if let Some(delta) = event.delta.get() {
                    reply.finish(0, delta.stop_reason.get());
                }
                self.count(event.usage.get().copied(), reply);
            }
            "message_stop" => reply.done(),
            "content_block_stop" | "ping" => {}
            _ => return false,
        }
        true
    }

    fn begin_block(&mut self, index: Number, block: &Block<'_>, reply: &mut ReplyState) {
        reply.output(0, OutputKind::Reasoning, block.thinking.get());
        reply.output(0, OutputKind::Content, block.text.get());
        // An empty object only holds the place of the input that is to come.
        let input = block.input.map(RawValue::get).filter(|input| input.bytes().any(|byte| byte == b'"'));
        self.tool_call(index, block.name.get(), input.unwrap_or_default(), reply);
    }

    fn tool_call(&mut self, index: Number, name: &str, input: &str, reply: &mut ReplyState) {
        if !(name.is_empty() && input.is_empty()) {
            let position = self.calls.of(index);
            reply.tool_call(0, position, name, input);
        }
    }

    fn count(&mut self, counts: Option<Counts>, reply: &mut ReplyState) {
        let Some(counts) = counts else { return };
        self.counts = self.counts.updated(counts);
        if let Some(usage) = self.counts.usage() {
            reply.usage(usage);
        }
    }
}

impl Counts {
    /// Later counts replace earlier ones. Either event may hold the prompt's, and the other 0 or nothing.
    fn updated(self, later: Self) -> Self {
        let newer = |old: Number, new: Number| match new.get() {
            None | Some(0) if old.get().is_some() => old,
            _ => new,
        };
        Self {
            input_tokens: newer(self.input_tokens, later.input_tokens),
            cache_creation_input_tokens: newer(self.cache_creation_input_tokens, later.cache_creation_input_tokens),
            cache_read_input_tokens: newer(self.cache_read_input_tokens, later.cache_read_input_tokens),
            output_tokens: newer(self.output_tokens, later.output_tokens),
        }
    }

    /// The counts in common terms; `None` while neither side was counted.
    fn usage(self) -> Option<Usage> {
        let cached = self.cache_read_input_tokens.get();
        let besides = [self.cache_creation_input_tokens.get(), cached].into_iter().flatten();
        let input = self.input_tokens.get().map(|input| besides.fold(input, i64::saturating_add));
        let output = self.output_tokens.get();
        (input.is_some() || output.is_some()).then_some(Usage { input, output, cached, ..Usage::default() })
    }
}
