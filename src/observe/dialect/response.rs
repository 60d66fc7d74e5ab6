//! What the dialects share in which a model's response comes as typed events with a `delta` each, over HTTP or over a
//! WebSocket. The end signal is the event that carries the finished response; its text repeats the deltas and is no output.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::failure;
use super::super::lenient::{Maybe, Number, Text};
use super::super::state::ReplyState;
use super::super::trace::OutputKind;
use super::super::usage::UsageBody;
use super::json::{self, CallPositions, Head};

/// Some servers leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What is to be remembered of the events that came.
#[derive(Debug, Default)]
pub(super) struct ResponseEvents {
    calls: CallPositions,
}

/// An event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Text<'a>,
    #[serde(borrow)]
    delta: Text<'a>,
    output_index: Number,
    #[serde(borrow)]
    item: Maybe<Item<'a>>,
    #[serde(borrow)]
    response: Maybe<Response<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
}

/// The finished response. Why it was not completed is told in `incomplete_details` over HTTP, in `status_details` over a
/// WebSocket.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Maybe<Details<'a>>,
    #[serde(borrow)]
    status_details: Maybe<Details<'a>>,
    usage: Maybe<UsageBody>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details<'a> {
    #[serde(borrow)]
    reason: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl json::Event for Event<'_> {
    fn head(&self) -> Head<'_> {
        // In a conversation, what was said may fail to be transcribed, and the response goes on.
        let error = self.error.filter(|_| !self.r#type.get().starts_with("conversation."));
        Head { kind: self.r#type.get(), error, object: self.object.get() }
    }
}

impl ResponseEvents {
    /// Tells `reply` what the event `kind`, which arrived at `at_ns`, holds. False for events that are none of a response.
    pub(super) fn read(&mut self, kind: &str, event: &Event<'_>, at_ns: u64, reply: &mut ReplyState) -> bool {
        let delta = event.delta.get();
        match kind {
            "response.output_text.delta" | "response.text.delta" => reply.output(0, OutputKind::Content, delta),
            // The text of what is spoken.
            "response.output_audio_transcript.delta"
            | "response.audio_transcript.delta"
            | "response.audio.transcript.delta" => reply.output(0, OutputKind::Content, delta),
            "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning.delta"
            | "response.reasoning_summary.delta" => reply.output(0, OutputKind::Reasoning, delta),
            "response.refusal.delta" => reply.output(0, OutputKind::Refusal, delta),
            "response.output_audio.delta" | "response.audio.delta" => match BASE64.decode(delta) {
                Ok(sound) => reply.sound(at_ns, &sound),
                Err(fault) => reply.protocol_error(&format!("the sound of a message is not valid base64: {fault}")),
            },
            "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
            | "response.mcp_call_arguments.delta"
            | "response.code_interpreter_call_code.delta" => {
                let position = self.calls.of(event.output_index);
                reply.tool_call(0, position, "", delta);
            }
            "response.output_item.added" => self.begin_item(event, reply),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                event.response.get().unwrap_or(&Response::default()).end(kind, reply);
            }
            _ => return kind.starts_with("response."),
        }
        true
    }

    fn begin_item(&mut self, event: &Event<'_>, reply: &mut ReplyState) {
        let call = event.item.get().filter(|item| item.r#type.get().ends_with("_call"));
        if let Some(name) = call.map(|item| item.name.get()).filter(|name| !name.is_empty()) {
            let position = self.calls.of(event.output_index);
            reply.tool_call(0, position, name, "");
        }
    }
}

impl Response<'_> {
    /// Its own status decides, where it has a final one: some servers send every end as `completed`. `response.done` tells
    /// none by its name: one without a status is the end without a reason, and one that is not final is a failure.
    fn end(&self, kind: &str, reply: &mut ReplyState) {
        if let Some(usage) = json::counts(&self.usage) {
            reply.usage(usage);
        }
        let status = match (self.status.get(), kind) {
            (status, "response.done") => status,
            ("" | "in_progress" | "queued", kind) => kind.trim_start_matches("response."),
            (status, _) => status,
        };
        let details = [&self.incomplete_details, &self.status_details].map(Maybe::get).into_iter().flatten();
        let reason = details.clone().map(|details| details.reason.get()).find(|reason| !reason.is_empty());
        let errors = [self.error].into_iter().chain(details.map(|details| details.error)).flatten();
        let error = errors.map(RawValue::get).find(|error| failure::is_error(error)).map(failure::message);
        match (status, error) {
            (_, Some(error)) => reply.stream_error(&error),
            ("incomplete", None) => reply.finish(0, reason.unwrap_or(status)),
            ("" | "completed", None) => reply.finish(0, status),
            (other, None) if kind != "response.done" && !["failed", "cancelled"].contains(&other) => {
                reply.finish(0, status);
            }
            (_, None) => {
                let why = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
                reply.stream_error(&format!("the server ended the response with status {status:?}{why}"));
            }
        }
        reply.done();
    }
}
