//! What one reply amounted to.

use serde::{Deserialize, Serialize};

use super::Protocol;

/// How a request ended; the first that applies, in the order of the wire rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Completed, with output.
    Ok,
    /// The arrival could not be sent: the load generator's own limit.
    Unsent,
    /// No connection.
    ConnectError,
    /// A connection, but no TLS session.
    TlsError,
    /// The connection ended before a status line.
    NoResponse,
    /// A status outside 200–299, whatever the body.
    HttpError,
    /// A 2xx reply in which the server reported a failure.
    StreamError,
    /// A 2xx reply that is not what was asked for, or holds a message that cannot be read.
    ProtocolError,
    /// Something had begun and the end came without the protocol's completion signal.
    TruncatedStream,
    /// Completed without any output.
    EmptyOutput,
    /// The idle or the total limit passed.
    Timeout,
    /// Stopped by us.
    Cancelled,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 12] = [
        Self::Ok,
        Self::Unsent,
        Self::ConnectError,
        Self::TlsError,
        Self::NoResponse,
        Self::HttpError,
        Self::StreamError,
        Self::ProtocolError,
        Self::TruncatedStream,
        Self::EmptyOutput,
        Self::Timeout,
        Self::Cancelled,
    ];

    /// The name in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unsent => "unsent",
            Self::ConnectError => "connect_error",
            Self::TlsError => "tls_error",
            Self::NoResponse => "no_response",
            Self::HttpError => "http_error",
            Self::StreamError => "stream_error",
            Self::ProtocolError => "protocol_error",
            Self::TruncatedStream => "truncated_stream",
            Self::EmptyOutput => "empty_output",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What kind of thing an output is. If one message carries several, this order decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// Thinking, before or between answers.
    Reasoning,
    /// The answer's text.
    Content,
    /// A refusal's text.
    Refusal,
    /// Arguments of a tool call.
    ToolCall,
    /// Sound.
    Audio,
}

/// An oddity that does not change the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// Ended without `[DONE]`.
    NoDone,
    /// Ended without a finish reason.
    NoFinishReason,
    /// No token counts.
    NoUsage,
    /// Token counts that cannot be true.
    UsageContradiction,
    /// All of several outputs came in one write, so their gaps mean nothing.
    Coalesced,
    /// Data followed `[DONE]`.
    DataAfterDone,
    /// The transport ended badly after the end signal.
    HttpFraming,
    /// The content type is missing or another one, but the body is what was asked for.
    ContentType,
    /// A stream was asked for and a whole body came.
    NotStreamed,
    /// The reply holds several choices; only the first is measured.
    MultipleChoices,
    /// The bytes are not UTF-8.
    InvalidUtf8,
    /// A data line that is no JSON object, skipped.
    NonjsonKeepalive,
    /// An event that no blank line ended.
    ImplicitEventBoundary,
    /// Sound came, and all of it is silence.
    SilentAudio,
}

/// What one reply amounted to. Times are in nanoseconds on the clock that the bytes were stamped with; what did not happen
/// or is not known is `None`, never 0.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestTrace {
    /// How the request ended.
    pub outcome: Outcome,
    /// The HTTP status, once one was seen.
    pub status: Option<u16>,
    /// What went wrong, in the server's or the transport's words, cut to a bounded length.
    pub error: Option<String>,
    /// Seconds that a 429 or 503 asked to wait.
    pub retry_after_s: Option<u64>,
    /// The first output of any kind.
    pub first_output_ns: Option<u64>,
    /// Its kind.
    pub first_output_kind: Option<OutputKind>,
    /// The first output other than reasoning.
    pub first_answer_ns: Option<u64>,
    /// The first sound.
    pub first_audio_ns: Option<u64>,
    /// The last output.
    pub last_output_ns: Option<u64>,
    /// How long the sound lasts that came; `None` where there is none or its format is not known.
    pub audio_ns: Option<u64>,
    /// Bytes of sound, container headers apart.
    pub audio_bytes: u64,
    /// How long a listener who starts at the first sound runs dry in all; `None` where `audio_ns` is.
    pub underrun_ns: Option<u64>,
    /// When the reply was over.
    pub finished_ns: u64,
    /// Messages with output.
    pub output_chunks: u32,
    /// Gaps between consecutive messages with output.
    pub chunk_gaps_ns: Vec<u64>,
    /// Different writes (calls with bytes) in which such messages completed.
    pub output_writes: u32,
    /// Index of the write that completed the first message with output.
    pub first_output_write: Option<u32>,
    /// Index of the write that completed the first message with output other than reasoning.
    pub first_answer_write: Option<u32>,
    /// Prompt tokens, cached ones included, by the server's count.
    pub input_tokens: Option<u64>,
    /// Completion tokens by the server's count, reasoning included.
    pub output_tokens: Option<u64>,
    /// Reasoning tokens by the server's count.
    pub reasoning_tokens: Option<u64>,
    /// Cached prompt tokens by the server's count.
    pub cached_tokens: Option<u64>,
    /// Why the reply ended, normalised: `stop`, `length`, `tool_calls`, `content_filter`, …
    pub finish_reason: Option<String>,
    /// The server's own word for it.
    pub finish_reason_raw: Option<String>,
    /// Cut by a limit, a filter or the transport; `None` when it cannot be known.
    pub truncated: Option<bool>,
    /// Completed, but every output was reasoning.
    pub answerless: Option<bool>,
    /// The protocol's end signal was seen.
    pub done_seen: bool,
    /// The code that a WebSocket was closed with before the reply was complete; 1005 where the close frame held none, and
    /// 1006 where it ended without one (RFC 6455, section 7.1.5).
    pub close_code: Option<u16>,
    /// Oddities, each once, sorted.
    pub warnings: Vec<Warning>,
    /// The texts, where the reader was asked to keep them.
    pub texts: Option<ReplyTexts>,
    /// The other dialect that a reply which did not end well seems to be written in; looked for where the texts are kept.
    pub looks_like: Option<Protocol>,
}

/// The texts of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplyTexts {
    /// Answer of the first choice.
    pub text: String,
    /// Reasoning of the first choice.
    pub reasoning: String,
    /// Refusal of the first choice.
    pub refusal: String,
    /// Tool calls of the first choice: name and arguments.
    pub tool_calls: Vec<ToolCall>,
    /// Answers of all choices, where there are several.
    pub by_choice: Vec<String>,
}

/// A tool call of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolCall {
    /// The function's name.
    pub name: String,
    /// Its arguments, concatenated.
    pub arguments: String,
}

impl RequestTrace {
    /// The trace of a request that had no reply at all: nothing but its outcome and its end is known.
    pub fn without_reply(outcome: Outcome, error: String, finished_ns: u64) -> Self {
        Self {
            outcome,
            status: None,
            error: Some(error),
            retry_after_s: None,
            first_output_ns: None,
            first_output_kind: None,
            first_answer_ns: None,
            first_audio_ns: None,
            last_output_ns: None,
            audio_ns: None,
            audio_bytes: 0,
            underrun_ns: None,
            finished_ns,
            output_chunks: 0,
            chunk_gaps_ns: Vec::new(),
            output_writes: 0,
            first_output_write: None,
            first_answer_write: None,
            input_tokens: None,
            output_tokens: None,
            reasoning_tokens: None,
            cached_tokens: None,
            finish_reason: None,
            finish_reason_raw: None,
            truncated: None,
            answerless: None,
            done_seen: false,
            close_code: None,
            warnings: Vec::new(),
            texts: None,
            looks_like: None,
        }
    }
}
