//! `POST /api/chat` and `/api/generate` of Ollama: one JSON object a line. A chat's piece is a `message`, a plain one's the
//! texts `response` and `thinking`. The line with `done: true` is the end signal and holds the counts.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::failure;
use super::super::lenient::{Maybe, Number, Text};
use super::super::state::ReplyState;
use super::super::trace::{OutputKind, Warning};
use super::super::usage::Usage;
use super::chat_piece::ChatPiece;
use super::{Dialect, Framing, Message, json};

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct Ollama {
    past_first_line: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Maybe<ChatPiece<'a>>,
    #[serde(borrow)]
    response: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    #[serde(borrow)]
    done: Option<&'a RawValue>,
    #[serde(borrow)]
    done_reason: Text<'a>,
    prompt_eval_count: Number,
    eval_count: Number,
}

impl Dialect for Ollama {
    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        let data = message.data.trim_ascii();
        if !data.starts_with('{') {
            reply.protocol_error(&format!("a line is no JSON object: {}", failure::excerpt(data.as_bytes())));
            return true;
        }
        let Some(line) = json::object::<Line<'_>>(data, reply) else { return true };
        if let Some(failure) = json::failure_in(line.error, "", data) {
            reply.stream_error(&failure);
            return true;
        }
        let first = !std::mem::replace(&mut self.past_first_line, true);
        line.read(first, reply);
        true
    }
}

impl Line<'_> {
    fn read(&self, first: bool, reply: &mut ReplyState) {
        if let Some(message) = self.message.get() {
            message.read(0, reply);
        }
        reply.output(0, OutputKind::Reasoning, self.thinking.get());
        reply.output(0, OutputKind::Content, self.response.get());
        if !json::is_true(self.done) {
            return;
        }
        let (input, output) = (self.prompt_eval_count.get(), self.eval_count.get());
        if input.is_some() || output.is_some() {
            reply.usage(Usage { input, output, ..Usage::default() });
        }
        // The whole answer in one line: the server was not asked to stream, or something collected its lines.
        if first && output.is_some_and(|tokens| tokens > 1) {
            reply.warn(Warning::NotStreamed);
        }
        reply.finish(0, self.done_reason.get());
        reply.done();
    }
}
