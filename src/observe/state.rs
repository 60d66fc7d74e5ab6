//! What is known of a reply so far, and the trace it becomes. Dialects say what a message holds; what follows from it is
//! decided here, once for all of them.

use super::outputs::Outputs;
use super::sound::Sound;
use super::stream::Stamp;
use super::texts::Texts;
use super::trace::{Outcome, OutputKind, RequestTrace, Warning};
use super::usage::{Tokens, Usage};
use super::{ReplyEnd, failure, finish, limits};

/// A WebSocket was closed politely (RFC 6455, section 7.4.1).
const CLOSED_NORMALLY: u16 = 1000;
/// It was closed by a frame without a code (section 7.1.5).
const CLOSED_WITHOUT_CODE: u16 = 1005;
/// It ended without a close frame (section 7.1.5).
const CLOSED_WITHOUT_FRAME: u16 = 1006;

/// How far one choice has come.
#[derive(Debug, Clone, Copy, Default)]
struct ChoiceState {
    has_output: bool,
    finished: bool,
}

/// What the head of a reply said.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeadFacts {
    /// The HTTP status; `None` when no reply began.
    pub(super) status: Option<u16>,
    /// The status promises a reply.
    pub(super) success: bool,
    /// What follows are the frames of a WebSocket.
    pub(super) upgraded: bool,
    /// Seconds that it asked to wait.
    pub(super) retry_after_s: Option<u64>,
}

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct ReplyState {
    /// From its head.
    pub(super) head: HeadFacts,
    /// Its sound.
    pub(super) sound: Sound,
    outputs: Outputs,
    texts: Option<Texts>,
    choices: Vec<ChoiceState>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    /// A message was read, or a piece of one arrived.
    begun: bool,
    done: bool,
    http_error: Option<String>,
    stream_error: Option<String>,
    protocol_error: Option<String>,
    warnings: Vec<Warning>,
    /// What the dialect has no place for, and is not missed.
    lacks: &'static [Warning],
}

impl ReplyState {
    /// Nothing yet; with `keep_texts` the texts will be kept. `lacks`: warnings of what is missing that the dialect never has.
    pub(super) fn new(keep_texts: bool, lacks: &'static [Warning]) -> Self {
        Self { texts: keep_texts.then(Texts::default), lacks, ..Self::default() }
    }

    /// A piece of output of `choice`; an empty one is none.
    pub(super) fn output(&mut self, choice: usize, kind: OutputKind, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.note_output(choice, kind);
        match (&mut self.texts, kind) {
            (Some(texts), OutputKind::Content) if choice < limits::INDICES => texts.content(choice, piece),
            (Some(texts), OutputKind::Reasoning) if choice == 0 => texts.reasoning(piece),
            (Some(texts), OutputKind::Refusal) if choice == 0 => texts.refusal(piece),
            _ => {}
        }
    }

    /// Sound in a message that arrived at `at_ns`.
    pub(super) fn sound(&mut self, at_ns: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.note_output(0, OutputKind::Audio);
            self.sound.piece(at_ns, bytes);
        }
    }

    /// Sound of a body that is nothing else. All that arrives at one instant is one message, so that the sizes in which it
    /// is read change nothing.
    pub(super) fn sound_body(&mut self, stamp: Stamp, bytes: &[u8]) {
        let opens_message = !bytes.is_empty() && self.sound.last_ns != Some(stamp.at_ns);
        if opens_message {
            self.sound(stamp.at_ns, bytes);
            self.end_message(stamp, true);
        } else {
            self.sound.piece(stamp.at_ns, bytes);
        }
    }

    /// A piece of a tool call; a name alone is no output yet.
    pub(super) fn tool_call(&mut self, choice: usize, index: Option<usize>, name: &str, arguments: &str) {
        if !arguments.is_empty() {
            self.note_output(choice, OutputKind::ToolCall);
        }
        if let Some(texts) = self.texts.as_mut().filter(|_| choice == 0 && !(name.is_empty() && arguments.is_empty())) {
            texts.tool_call(index, name, arguments);
        }
    }

    /// A finish reason of `choice`; an empty one means "not finished yet".
    pub(super) fn finish(&mut self, choice: usize, reason: &str) {
        if reason.is_empty() {
            return;
        }
        let reason = failure::bounded(reason);
        if finish::is_failure(&reason) {
            self.stream_error(&format!("the server ended the generation with finish_reason {reason:?}"));
        }
        if let Some(state) = self.choice(choice) {
            state.finished = true;
        }
        if choice == 0 {
            self.finish_reason = Some(reason);
        }
    }

    /// Token counts; they replace earlier ones.
    pub(super) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// The protocol's end signal.
    pub(super) fn done(&mut self) {
        self.done = true;
    }

    /// Whether the end signal was seen; nothing after it is read.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// The server reported a failure inside the reply; the first report is kept.
    pub(super) fn stream_error(&mut self, text: &str) {
        self.stream_error.get_or_insert_with(|| failure::bounded(text));
    }

    /// The reply is not what was asked for, or a message of it cannot be read; the first fault is kept.
    pub(super) fn protocol_error(&mut self, text: &str) {
        self.protocol_error.get_or_insert_with(|| failure::bounded(text));
    }

    /// What a body said that came with a status other than success.
    pub(super) fn http_error(&mut self, text: Option<String>) {
        self.http_error = text;
    }

    /// An oddity.
    pub(super) fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// The message that was being read is over; it had arrived at `stamp`. `read`: it was one of the protocol's.
    pub(super) fn end_message(&mut self, stamp: Stamp, read: bool) {
        self.begun |= read;
        self.outputs.end_message(stamp);
    }

    /// A piece of a message arrived that will not be completed.
    pub(super) fn begun(&mut self) {
        self.begun = true;
    }

    /// Whether nothing that follows can change the outcome for the better.
    pub(super) fn is_decided(&self) -> bool {
        self.done || self.stream_error.is_some() || self.protocol_error.is_some()
    }

    /// The trace, once the transport has ended.
    pub(super) fn conclude(mut self, at_ns: u64, end: &ReplyEnd) -> RequestTrace {
        let close_code = self.close_code(end);
        if let (Some(code), ReplyEnd::Closed(_, reason)) = (close_code, end)
            && ![CLOSED_NORMALLY, CLOSED_WITHOUT_CODE].contains(&code)
        {
            self.stream_error(&format!("the server closed the WebSocket with code {code}: {reason}"));
        }
        let (outcome, error) = self.outcome(end);
        let tokens = self.usage.map(|usage| usage.tokens(self.outputs.chunks > 0));
        self.warn_at_end(outcome, end, tokens);
        self.warnings.sort_unstable();
        let finish_reason = self.finish_reason.as_deref().map(|raw| finish::normalised(raw).to_owned());
        let truncated = match outcome {
            Outcome::Ok | Outcome::EmptyOutput => finish_reason.as_deref().map(finish::is_cut),
            Outcome::TruncatedStream => Some(true),
            _ => None,
        };
        let outputs = self.outputs;
        let tokens = tokens.unwrap_or_default();
        let several = self.choices.len() > 1;
        RequestTrace {
            outcome,
            status: self.head.status,
            error,
            retry_after_s: self.head.retry_after_s,
            first_output_ns: outputs.first.map(|(stamp, _)| stamp.at_ns),
            first_output_kind: outputs.first.map(|(_, kind)| kind),
            first_answer_ns: outputs.first_answer.map(|stamp| stamp.at_ns),
            first_audio_ns: self.sound.first_ns,
            last_output_ns: outputs.last.map(|stamp| stamp.at_ns),
            audio_ns: self.sound.duration_ns(),
            audio_bytes: self.sound.bytes,
            underrun_ns: self.sound.underrun_ns(),
            // A decided reply is read on for a while, and output that still comes is no later than the end.
            finished_ns: outputs.last.map_or(at_ns, |stamp| stamp.at_ns.max(at_ns)),
            output_chunks: outputs.chunks,
            chunk_gaps_ns: outputs.gaps_ns,
            output_writes: outputs.writes,
            first_output_write: outputs.first.map(|(stamp, _)| stamp.write),
            first_answer_write: outputs.first_answer.map(|stamp| stamp.write),
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            reasoning_tokens: tokens.reasoning,
            cached_tokens: tokens.cached,
            finish_reason,
            finish_reason_raw: self.finish_reason,
            truncated,
            answerless: (outcome == Outcome::Ok).then_some(outputs.first_answer.is_none()),
            done_seen: self.done,
            close_code,
            warnings: self.warnings,
            texts: self.texts.map(|texts| texts.into_texts(several)),
            looks_like: None,
        }
    }

    fn note_output(&mut self, choice: usize, kind: OutputKind) {
        self.outputs.note(kind);
        if let Some(state) = self.choice(choice) {
            state.has_output = true;
        }
    }

    /// The state of a choice, begun if need be; `None` beyond the number that is told apart.
    fn choice(&mut self, choice: usize) -> Option<&mut ChoiceState> {
        if choice > 0 {
            self.warn(Warning::MultipleChoices);
        }
        if choice < limits::INDICES && self.choices.len() <= choice {
            self.choices.resize_with(choice + 1, ChoiceState::default);
        }
        self.choices.get_mut(choice)
    }

    /// Completed by the end signal, or by the finish reasons of all choices that had output.
    fn is_complete(&self) -> bool {
        let any = self.choices.iter().any(|choice| choice.finished);
        self.done || (any && self.choices.iter().all(|choice| choice.finished || !choice.has_output))
    }

    /// The code that a WebSocket was closed with before the reply was complete.
    fn close_code(&self, end: &ReplyEnd) -> Option<u16> {
        match end {
            _ if !self.head.upgraded || self.is_complete() => None,
            ReplyEnd::Closed(code, _) => Some(code.unwrap_or(CLOSED_WITHOUT_CODE)),
            ReplyEnd::Broken(_) => Some(CLOSED_WITHOUT_FRAME),
            ReplyEnd::Complete | ReplyEnd::TimedOut(_) | ReplyEnd::Cancelled => None,
        }
    }

    /// The outcome and its error, first match wins. A reply that was complete stays complete however the transport ends, and
    /// a fault that was seen before a limit passed is not excused by the limit.
    fn outcome(&mut self, end: &ReplyEnd) -> (Outcome, Option<String>) {
        let broken = |text: &str| match end {
            ReplyEnd::Broken(words) => Some(failure::bounded(&format!("{text}: {words}"))),
            ReplyEnd::Closed(..) => Some(format!("{text}: the server closed the WebSocket")),
            _ => Some(text.to_owned()),
        };
        if self.head.status.is_none() {
            return match end {
                ReplyEnd::TimedOut(limit) => {
                    (Outcome::Timeout, Some(format!("no reply before the {limit} limit passed")))
                }
                ReplyEnd::Cancelled => (Outcome::Cancelled, None),
                _ => (Outcome::NoResponse, broken("the connection ended before a status line")),
            };
        }
        if !self.head.success {
            return (Outcome::HttpError, self.http_error.take());
        }
        if let Some(error) = self.stream_error.take() {
            return (Outcome::StreamError, Some(error));
        }
        if let Some(error) = self.protocol_error.take() {
            return (Outcome::ProtocolError, Some(error));
        }
        let empty = self.outputs.chunks == 0;
        match end {
            _ if self.is_complete() && empty => {
                (Outcome::EmptyOutput, Some("the reply completed without output".to_owned()))
            }
            _ if self.is_complete() => (Outcome::Ok, None),
            ReplyEnd::TimedOut(limit) => {
                (Outcome::Timeout, Some(format!("the {limit} limit passed before the reply ended")))
            }
            ReplyEnd::Cancelled => (Outcome::Cancelled, None),
            ReplyEnd::Complete if !self.begun => (Outcome::EmptyOutput, Some("the body held no message".to_owned())),
            ReplyEnd::Complete | ReplyEnd::Broken(_) | ReplyEnd::Closed(..) => {
                (Outcome::TruncatedStream, broken("the reply ended without a completion signal"))
            }
        }
    }

    /// Adds what only the whole reply shows. What is missing is an oddity only where nothing is known to have failed.
    fn warn_at_end(&mut self, outcome: Outcome, end: &ReplyEnd, tokens: Option<Tokens>) {
        if self.outputs.coalesced() {
            self.warn(Warning::Coalesced);
        }
        if tokens.is_some_and(|tokens| tokens.contradiction) {
            self.warn(Warning::UsageContradiction);
        }
        if matches!(end, ReplyEnd::Broken(_)) && self.is_complete() {
            self.warn(Warning::HttpFraming);
        }
        if outcome != Outcome::Ok {
            return;
        }
        let missing = [
            (Warning::NoDone, !self.done),
            (Warning::NoFinishReason, self.finish_reason.is_none()),
            (Warning::NoUsage, tokens.is_none_or(|tokens| tokens.output.is_none() && !tokens.contradiction)),
            (Warning::SilentAudio, self.sound.is_silent()),
        ];
        for (warning, _) in missing.into_iter().filter(|(warning, is)| *is && !self.lacks.contains(warning)) {
            self.warn(warning);
        }
    }
}
