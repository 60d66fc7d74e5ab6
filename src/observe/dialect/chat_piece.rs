//! A chat message or a piece of one, with every field in which servers put output.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::lenient::{List, Maybe, Number, Text, TextOr};
use super::super::state::ReplyState;
use super::super::trace::OutputKind;

/// A message or a piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatPiece<'a> {
    #[serde(borrow)]
    content: TextOr<'a, Part<'a>>,
    #[serde(borrow)]
    reasoning_content: Text<'a>,
    #[serde(borrow)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    #[serde(borrow)]
    reasoning_details: List<Detail<'a>>,
    #[serde(borrow)]
    refusal: Text<'a>,
    #[serde(borrow)]
    tool_calls: List<ToolCallPiece<'a>>,
    #[serde(borrow)]
    function_call: Maybe<Function<'a>>,
    #[serde(borrow)]
    audio: Maybe<Audio<'a>>,
}

/// A typed part of a content list; parts of unknown type are no output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    refusal: Text<'a>,
    #[serde(borrow)]
    thinking: TextOr<'a, Thought<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Thought<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Detail<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    summary: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolCallPiece<'a> {
    index: Number,
    #[serde(borrow)]
    function: Maybe<Function<'a>>,
    #[serde(borrow)]
    custom: Maybe<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Audio<'a> {
    #[serde(borrow)]
    data: Text<'a>,
    #[serde(borrow)]
    transcript: Text<'a>,
}

impl ChatPiece<'_> {
    /// Tells `reply` what was generated for the choice `index`.
    pub(super) fn read(&self, index: usize, reply: &mut ReplyState) {
        self.read_reasoning(index, reply);
        match &self.content {
            TextOr::Text(text) => reply.output(index, OutputKind::Content, text.get()),
            TextOr::List(parts) => parts.items().iter().for_each(|part| part.read(index, reply)),
        }
        reply.output(index, OutputKind::Refusal, self.refusal.get());
        for call in self.tool_calls.items() {
            let position = call.index.get().and_then(|index| usize::try_from(index).ok());
            for function in [&call.function, &call.custom].into_iter().filter_map(Maybe::get) {
                function.read(index, position, reply);
            }
        }
        if let Some(function) = self.function_call.get() {
            function.read(index, Some(0), reply);
        }
        if let Some(audio) = self.audio.get() {
            let sound = if audio.data.get().is_empty() { &audio.transcript } else { &audio.data };
            reply.output(index, OutputKind::Audio, sound.get());
        }
    }

    /// The same reasoning may stand under several names: the first that holds any is taken.
    fn read_reasoning(&self, index: usize, reply: &mut ReplyState) {
        let named = [&self.reasoning_content, &self.reasoning, &self.thinking].into_iter().map(Text::get);
        if let Some(text) = named.into_iter().find(|text| !text.is_empty()) {
            return reply.output(index, OutputKind::Reasoning, text);
        }
        for detail in self.reasoning_details.items() {
            let text = if detail.text.get().is_empty() { &detail.summary } else { &detail.text };
            reply.output(index, OutputKind::Reasoning, text.get());
        }
    }
}

impl Part<'_> {
    fn read(&self, index: usize, reply: &mut ReplyState) {
        match self.r#type.get() {
            "" | "text" | "output_text" => reply.output(index, OutputKind::Content, self.text.get()),
            "refusal" => reply.output(index, OutputKind::Refusal, self.refusal.get()),
            "thinking" | "reasoning" => {
                match &self.thinking {
                    TextOr::Text(text) => reply.output(index, OutputKind::Reasoning, text.get()),
                    TextOr::List(thoughts) => {
                        thoughts.items().iter().for_each(|t| reply.output(index, OutputKind::Reasoning, t.text.get()));
                    }
                }
                reply.output(index, OutputKind::Reasoning, self.text.get());
            }
            _ => {}
        }
    }
}

impl Function<'_> {
    fn read(&self, choice: usize, position: Option<usize>, reply: &mut ReplyState) {
        let arguments = self.arguments.map_or(Cow::Borrowed(self.input.get()), arguments_text);
        reply.tool_call(choice, position, self.name.get(), &arguments);
    }
}

/// Arguments are a text that holds JSON; some servers send the JSON itself.
fn arguments_text(raw: &RawValue) -> Cow<'_, str> {
    let raw = raw.get();
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw).map_or(Cow::Borrowed(""), Cow::Owned::<str>),
        Some(b'{' | b'[') => Cow::Borrowed(raw),
        _ => Cow::Borrowed(""),
    }
}
