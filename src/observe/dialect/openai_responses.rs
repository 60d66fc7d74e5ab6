//! `POST /v1/responses`, streamed: typed events with a `delta` each. The end signal is the event that carries the finished
//! response; its text repeats the deltas and is no output.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::failure;
use super::super::lenient::{Maybe, Number, Text};
use super::super::state::ReplyState;
use super::super::trace::OutputKind;
use super::super::usage::UsageBody;
use super::json::{self, CallPositions};
use super::{Dialect, Framing, Message};

/// The dialect.
#[derive(Debug, Default)]
pub(super) struct OpenaiResponses {
    calls: CallPositions,
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

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Maybe<Incomplete<'a>>,
    usage: Maybe<UsageBody>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Text<'a>,
}

impl Dialect for OpenaiResponses {
    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn message(&mut self, message: Message<'_>, reply: &mut ReplyState) -> bool {
        let data = message.data.trim_ascii();
        if !data.starts_with('{') {
            json::skip_other(data, reply);
            return false;
        }
        let Some(event) = json::object::<Event<'_>>(data, reply) else { return true };
        let kind = if event.r#type.get().is_empty() { message.name } else { event.r#type.get() };
        let flat = if kind == "error" { kind } else { event.object.get() };
        if let Some(failure) = json::failure_in(event.error, flat, data) {
            reply.stream_error(&failure);
            return true;
        }
        self.read(kind, &event, reply)
    }
}

impl OpenaiResponses {
    /// False for events of no known family.
    fn read(&mut self, kind: &str, event: &Event<'_>, reply: &mut ReplyState) -> bool {
        let delta = event.delta.get();
        match kind {
            "response.output_text.delta" => reply.output(0, OutputKind::Content, delta),
            "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning.delta"
            | "response.reasoning_summary.delta" => reply.output(0, OutputKind::Reasoning, delta),
            "response.refusal.delta" => reply.output(0, OutputKind::Refusal, delta),
            "response.audio.delta" | "response.audio.transcript.delta" => reply.output(0, OutputKind::Audio, delta),
            "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
            | "response.mcp_call_arguments.delta"
            | "response.code_interpreter_call_code.delta" => {
                let position = self.calls.of(event.output_index);
                reply.tool_call(0, position, "", delta);
            }
            "response.output_item.added" => self.begin_item(event, reply),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                end(kind, event.response.get(), reply);
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

/// The finished response. Its own status decides, where it has a final one: some servers send every end as `completed`.
fn end(kind: &str, response: Option<&Response<'_>>, reply: &mut ReplyState) {
    let unknown = Response::default();
    let response = response.unwrap_or(&unknown);
    if let Some(usage) = json::counts(&response.usage) {
        reply.usage(usage);
    }
    let status = match response.status.get() {
        "" | "in_progress" | "queued" => kind.trim_start_matches("response."),
        status => status,
    };
    let error = response.error.map(RawValue::get).filter(|error| failure::is_error(error)).map(failure::message);
    match (status, error) {
        (_, Some(error)) => reply.stream_error(&error),
        ("failed" | "cancelled", None) => {
            reply.stream_error(&format!("the server ended the response with status {status:?}"));
        }
        ("incomplete", None) => {
            let reason = response.incomplete_details.get().map(|details| details.reason.get());
            reply.finish(0, reason.filter(|reason| !reason.is_empty()).unwrap_or(status));
        }
        (_, None) => reply.finish(0, status),
    }
    reply.done();
}
