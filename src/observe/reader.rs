//! The reader of one reply.

use super::body::WholeBody;
use super::dialect::{self, Dialect, Framing, Message};
use super::looks_like::{BEGINNING, looks_like};
use super::ndjson::LineStream;
use super::sse::EventStream;
use super::state::{HeadFacts, ReplyState, is_success};
use super::stream::{Event, Stamp, Stream, TooLong};
use super::{Outcome, Protocol, RequestTrace, Warning, decode, failure, limits, retry_after};

/// The head of a reply.
#[derive(Debug, Clone, Default)]
pub struct ReplyHead {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`, as sent.
    pub content_type: Option<String>,
    /// `Content-Encoding`, as sent.
    pub content_encoding: Option<String>,
    /// `Retry-After`, as sent.
    pub retry_after: Option<String>,
    /// `Date`, as sent: what a date in `Retry-After` is relative to.
    pub date: Option<String>,
}

/// What a piece of the body brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Messages that the bytes completed; any of them resets the idle limit.
    pub messages: u32,
    /// The reply is decided: nothing that follows can change its outcome for the better. The driver may read on for a
    /// short time (to reuse the connection, and to see what follows), and must not wait long.
    pub decided: bool,
}

/// How the transport ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyEnd {
    /// The body ended as its framing promised (or with the connection, where that is the framing).
    Complete,
    /// The connection broke or closed before that; the transport's words.
    Broken(String),
    /// The server closed the WebSocket with this code, where it gave one, and these words.
    Closed(Option<u16>, String),
    /// The idle or total limit passed.
    TimedOut(&'static str),
    /// We stopped it.
    Cancelled,
}

/// How the body is read. What was asked for and what the head says are not always what comes, so that the first byte that
/// is no blank has a say.
#[derive(Debug)]
enum Body {
    /// There is no head yet.
    Awaited,
    /// A stream was asked for, and nothing but blanks came.
    Blank(Stream),
    /// A stream.
    Stream(Stream),
    /// A body that is read at its end.
    Whole(WholeBody, Whole),
    /// Nothing is read any more.
    Ignored,
}

/// What a body that is read at its end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// The JSON that was asked for.
    Asked,
    /// JSON where events were asked for.
    InsteadOfEvents,
    /// A web page where an answer was asked for.
    WebPage,
    /// What came with a status other than success.
    HttpError,
}

/// Reads one reply: head, then bytes with their time, then the end.
#[derive(Debug)]
pub struct ReplyReader {
    protocol: Protocol,
    dialect: Box<dyn Dialect>,
    state: ReplyState,
    body: Body,
    /// The head names the content type that was asked for.
    type_fits: bool,
    writes: u32,
    /// The beginning of a body and its type, where the texts are kept: what it is told by if it is another dialect's.
    beginning: Option<Beginning>,
}

#[derive(Debug, Default)]
struct Beginning {
    content_type: Option<String>,
    bytes: Vec<u8>,
}

impl ReplyReader {
    /// A reader of `protocol`; with `keep_texts` the texts are kept in the trace.
    pub fn new(protocol: Protocol, keep_texts: bool) -> Self {
        Self {
            protocol,
            dialect: dialect::of(protocol),
            state: ReplyState::new(keep_texts),
            body: Body::Awaited,
            type_fits: true,
            writes: 0,
            beginning: keep_texts.then(Beginning::default),
        }
    }

    /// The head of the reply has arrived.
    pub fn head(&mut self, head: ReplyHead) {
        let retry_after_s =
            head.retry_after.as_deref().and_then(|value| retry_after::seconds(value, head.date.as_deref()));
        self.state.head = HeadFacts { status: Some(head.status), retry_after_s };
        let encoding = head.content_encoding.as_deref().map(str::trim).unwrap_or_default();
        let compressed = !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity");
        if compressed {
            let text = failure::bounded(&format!("compressed body ({encoding}), although none was asked for"));
            self.state.http_error(Some(text.clone()));
            self.state.protocol_error(&text);
            self.body = Body::Ignored;
        } else if self.state.head.is_success() {
            if let Some(beginning) = &mut self.beginning {
                beginning.content_type.clone_from(&head.content_type);
            }
            self.body = self.begin_body(head.content_type.as_deref());
        } else {
            self.body = Body::Whole(WholeBody::new(limits::ERROR_BODY), Whole::HttpError);
        }
    }

    /// Bytes of the body that became readable together at `at_ns`.
    pub fn bytes(&mut self, at_ns: u64, bytes: &[u8]) -> Progress {
        let stamp = Stamp { write: self.writes, at_ns };
        self.writes = self.writes.saturating_add(1);
        if let Some(Beginning { bytes: kept, .. }) = &mut self.beginning {
            kept.extend_from_slice(&bytes[..bytes.len().min(BEGINNING.saturating_sub(kept.len()))]);
        }
        let rest = self.settle_body(bytes);
        let messages = match &mut self.body {
            Body::Awaited | Body::Ignored => 0,
            Body::Blank(stream) | Body::Stream(stream) => {
                let messages = read_stream(stream, rest, stamp, &mut *self.dialect, &mut self.state);
                if let Some(limit) = stream.too_long() {
                    self.state.protocol_error(&too_long(limit));
                    self.body = Body::Ignored;
                }
                messages
            }
            Body::Whole(body, whole) => {
                body.push(rest, stamp);
                if body.is_over() && matches!(whole, Whole::Asked | Whole::InsteadOfEvents) {
                    let limit = limits::JSON_BODY >> 20;
                    self.state.protocol_error(&format!("the body is longer than {limit} MiB"));
                    self.body = Body::Ignored;
                }
                0
            }
        };
        Progress { messages, decided: self.is_decided() }
    }

    /// The reply is over. Without a head this is a reply that never began.
    pub fn finish(mut self, at_ns: u64, end: ReplyEnd) -> RequestTrace {
        let complete = end == ReplyEnd::Complete;
        match std::mem::replace(&mut self.body, Body::Ignored) {
            Body::Awaited | Body::Ignored => {}
            Body::Blank(stream) | Body::Stream(stream) => self.end_stream(stream, complete),
            Body::Whole(body, whole) => self.end_whole(&body, whole, complete),
        }
        let looks_like = self.beginning.and_then(|b| looks_like(b.content_type.as_deref(), &b.bytes));
        let trace = self.state.conclude(at_ns, &end);
        let foreign = trace.status.is_some_and(is_success) && trace.outcome != Outcome::Ok;
        RequestTrace { looks_like: looks_like.filter(|other| foreign && *other != self.protocol), ..trace }
    }

    /// What a body of this type is read as, as far as the head tells.
    fn begin_body(&mut self, content_type: Option<&str>) -> Body {
        let media_type = media_type(content_type);
        if media_type == "text/html" {
            return Body::Whole(WholeBody::new(limits::ERROR_BODY), Whole::WebPage);
        }
        match self.dialect.framing() {
            Framing::Events => {
                self.type_fits = media_type == "text/event-stream";
                Body::Blank(Stream::Events(EventStream::default()))
            }
            Framing::Lines => {
                self.type_fits = LINES_TYPES.contains(&media_type.as_str());
                Body::Blank(Stream::Lines(LineStream::default()))
            }
            Framing::Json if media_type == "text/event-stream" => {
                self.state.protocol_error("an event stream came where one JSON body was asked for");
                Body::Ignored
            }
            Framing::Json => {
                if media_type != "application/json" && !media_type.ends_with("+json") {
                    self.state.warn(Warning::ContentType);
                }
                Body::Whole(WholeBody::new(limits::JSON_BODY), Whole::Asked)
            }
        }
    }

    /// Decides at the first byte that is no blank how the body is read on; gives back the bytes that are still to be read.
    fn settle_body<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let Body::Blank(stream) = &self.body else { return bytes };
        // The bytes of a byte order mark count as blanks too; cut in two, they would not be told otherwise.
        let blank = |byte: &u8| byte.is_ascii_whitespace() || [0xEF, 0xBB, 0xBF].contains(byte);
        let Some(first) = bytes.iter().position(|byte| !blank(byte)) else { return bytes };
        let whole = match bytes[first] {
            b'{' | b'[' if matches!(stream, Stream::Events(_)) => Some((Whole::InsteadOfEvents, limits::JSON_BODY)),
            b'<' => Some((Whole::WebPage, limits::ERROR_BODY)),
            _ => None,
        };
        let Some((whole, limit)) = whole else {
            if let Body::Blank(stream) = std::mem::replace(&mut self.body, Body::Ignored) {
                self.body = Body::Stream(stream);
            }
            if !self.type_fits {
                self.state.warn(Warning::ContentType);
            }
            return bytes;
        };
        self.body = Body::Whole(WholeBody::new(limit), whole);
        &bytes[first..]
    }

    fn is_decided(&self) -> bool {
        let enough = match &self.body {
            Body::Whole(_, Whole::WebPage) => true,
            Body::Whole(body, Whole::HttpError) => body.is_over(),
            _ => false,
        };
        enough || self.state.is_decided()
    }

    fn end_stream(&mut self, mut stream: Stream, complete: bool) {
        if complete {
            while let Some(event) = stream.end() {
                read_event(&event, &mut *self.dialect, &mut self.state);
            }
        }
        if stream.is_open() {
            self.state.begun();
        }
        if let Some(text) = stream.foreign_text().filter(|_| complete) {
            let excerpt = failure::excerpt(text);
            self.state.protocol_error(&format!("the body is no event stream: {excerpt}"));
        }
    }

    fn end_whole(&mut self, body: &WholeBody, whole: Whole, complete: bool) {
        match whole {
            Whole::HttpError => self.state.http_error(failure::body_message(body.bytes())),
            Whole::WebPage => {
                let excerpt = failure::excerpt(body.bytes());
                self.state.protocol_error(&format!("a web page came where an answer was asked for: {excerpt}"));
            }
            _ if !complete => self.state.begun(),
            Whole::InsteadOfEvents => self.end_instead_of_events(body),
            Whole::Asked => self.end_asked(body),
        }
    }

    /// The JSON body is whole: its end is the end signal.
    fn end_asked(&mut self, body: &WholeBody) {
        if !body.is_blank() {
            let data = decode::text(body.bytes(), &mut self.state);
            let read = self.dialect.message(Message { name: "", data: &data }, &mut self.state);
            self.state.end_message(body.completed(), read);
        }
        self.state.done();
    }

    fn end_instead_of_events(&mut self, body: &WholeBody) {
        let data = decode::text(body.bytes(), &mut self.state);
        if let Some(error) = failure::in_body(&data) {
            self.state.stream_error(&error);
            return;
        }
        let excerpt = failure::excerpt(body.bytes());
        if serde_json::from_str::<serde::de::IgnoredAny>(&data).is_ok() {
            self.state.warn(Warning::NotStreamed);
            self.state.protocol_error(&format!("one JSON body came where an event stream was asked for: {excerpt}"));
        } else {
            self.state.protocol_error(&format!("the body is neither an event stream nor JSON: {excerpt}"));
        }
    }
}

/// Types under which JSON lines are sent.
const LINES_TYPES: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

/// The media type of a `Content-Type`, without its parameters, in lower case; empty where there is none.
pub(super) fn media_type(content_type: Option<&str>) -> String {
    content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Reads all messages that `bytes` complete; gives back how many.
fn read_stream(
    stream: &mut Stream,
    mut bytes: &[u8],
    stamp: Stamp,
    dialect: &mut dyn Dialect,
    state: &mut ReplyState,
) -> u32 {
    let mut messages = 0;
    while let Some(event) = stream.next(&mut bytes, stamp) {
        messages += 1;
        read_event(&event, dialect, state);
    }
    messages
}

fn read_event(event: &Event<'_>, dialect: &mut dyn Dialect, state: &mut ReplyState) {
    if state.is_done() {
        // A mark that says once more that this was the end is no data.
        if event.data.trim_ascii() != b"[DONE]" {
            state.warn(Warning::DataAfterDone);
        }
        return;
    }
    if event.implicit {
        state.warn(Warning::ImplicitEventBoundary);
    }
    let data = decode::text(event.data, state);
    let name = String::from_utf8_lossy(event.name);
    let read = dialect.message(Message { name: &name, data: &data }, state);
    state.end_message(event.stamp, read);
}

fn too_long(limit: TooLong) -> String {
    match limit {
        TooLong::Line => format!("a line is longer than {} MiB", limits::LINE >> 20),
        TooLong::Event => format!("the data of an event is longer than {} MiB", limits::EVENT >> 20),
    }
}
