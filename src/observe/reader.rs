//! The reader of one reply.

use super::body::{Whole, WholeBody};
use super::dialect::{self, Dialect, Framing};
use super::looks_like::{BEGINNING, looks_like};
use super::messages::{read_event, read_stream, too_long};
use super::ndjson::LineStream;
use super::reply::{Progress, ReplyEnd, ReplyHead};
use super::sound_body::SoundBody;
use super::sse::EventStream;
use super::state::{HeadFacts, ReplyState};
use super::stream::{Event, Stamp, Stream};
use super::{Outcome, Protocol, RequestTrace, Warning, failure, limits, retry_after};
use crate::audio::PcmFormat;

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
    /// Sound.
    Sound(SoundBody),
    /// The messages of a WebSocket, which are given one by one.
    Frames,
    /// Nothing is read any more.
    Ignored,
}

/// Reads one reply: head, then bytes (of a WebSocket: messages) with their time, then the end.
#[derive(Debug)]
pub struct ReplyReader {
    protocol: Protocol,
    dialect: Box<dyn Dialect>,
    state: ReplyState,
    body: Body,
    /// The media type that the head names, in lower case; empty where it names none.
    media_type: String,
    /// The format of sound that comes without a container, by the contract.
    declared: Option<PcmFormat>,
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
        let dialect = dialect::of(protocol);
        Self {
            protocol,
            state: ReplyState::new(keep_texts, dialect.lacks()),
            dialect,
            body: Body::Awaited,
            media_type: String::new(),
            declared: None,
            writes: 0,
            beginning: keep_texts.then(Beginning::default),
        }
    }

    /// The same with the format of sound that comes without a container. To be called before the head.
    #[must_use]
    pub fn with_audio(mut self, declared: Option<PcmFormat>) -> Self {
        self.declared = declared;
        self
    }

    /// The head of the reply has arrived.
    pub fn head(&mut self, head: ReplyHead) {
        let retry_after_s =
            head.retry_after.as_deref().and_then(|value| retry_after::seconds(value, head.date.as_deref()));
        let upgraded = head.status == SWITCHING_PROTOCOLS && self.dialect.framing() == Framing::Frames;
        let success = upgraded || (200..300).contains(&head.status);
        self.state.head = HeadFacts { status: Some(head.status), success, upgraded, retry_after_s };
        self.media_type = media_type(head.content_type.as_deref());
        let encoding = head.content_encoding.as_deref().map(str::trim).unwrap_or_default();
        let compressed = !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity");
        if compressed {
            let text = failure::bounded(&format!("compressed body ({encoding}), although none was asked for"));
            self.state.http_error(Some(text.clone()));
            self.state.protocol_error(&text);
            self.body = Body::Ignored;
        } else if success {
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
        let stamp = self.stamp(at_ns);
        if let Some(Beginning { bytes: kept, .. }) = &mut self.beginning {
            kept.extend_from_slice(&bytes[..bytes.len().min(BEGINNING.saturating_sub(kept.len()))]);
        }
        let rest = self.settle_body(bytes);
        let messages = match &mut self.body {
            Body::Awaited | Body::Ignored | Body::Frames => 0,
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
                let whole = *whole;
                self.give_up_beyond_limit(whole);
                0
            }
            Body::Sound(sound) => {
                if let Some(beginning) = sound.push(rest, stamp, &mut self.state) {
                    self.begin_no_sound(&beginning, stamp);
                }
                u32::from(!rest.is_empty())
            }
        };
        Progress { messages, decided: self.is_decided() }
    }

    /// A whole message of a WebSocket, text or binary, that became readable at `at_ns`: a write of its own.
    pub fn frame(&mut self, at_ns: u64, data: &[u8]) -> Progress {
        let stamp = self.stamp(at_ns);
        let mut messages = 0;
        // The session goes on after the turn, and what it says then is another turn's.
        if matches!(self.body, Body::Frames) && !data.trim_ascii().is_empty() {
            messages = 1;
            if data.len() > limits::EVENT {
                self.refuse(&format!("a message is longer than {} MiB", limits::EVENT >> 20));
            } else if !self.state.is_done() {
                let event = Event { name: b"", data, stamp, implicit: false };
                read_event(&event, &mut *self.dialect, &mut self.state);
            }
        }
        Progress { messages, decided: self.is_decided() }
    }

    /// What came cannot be read, for a reason that the driver saw: frames against the protocol, or beyond a limit.
    pub fn refuse(&mut self, text: &str) {
        self.state.protocol_error(text);
        self.body = Body::Ignored;
    }

    /// Whether the reply, as far as it is known, is a stream of messages: then silence between them has a limit. A reply that
    /// may be a stream as well as one body is none until its head says so or it has begun.
    pub fn is_stream(&self) -> bool {
        let begun = match &self.body {
            Body::Blank(_) => self.media_type == EVENTS_TYPE,
            Body::Stream(_) => true,
            Body::Sound(_) => self.writes > 0,
            Body::Awaited | Body::Whole(..) | Body::Frames | Body::Ignored => false,
        };
        begun || self.protocol.streams()
    }

    /// The reply is over. Without a head this is a reply that never began.
    pub fn finish(mut self, at_ns: u64, end: ReplyEnd) -> RequestTrace {
        let complete = end == ReplyEnd::Complete;
        match std::mem::replace(&mut self.body, Body::Ignored) {
            Body::Awaited | Body::Ignored | Body::Frames => {}
            Body::Blank(stream) | Body::Stream(stream) => self.end_stream(stream, complete),
            Body::Whole(body, whole) => body.conclude(whole, complete, &mut *self.dialect, &mut self.state),
            Body::Sound(sound) => {
                if let Some(bytes) = sound.end(complete, &mut self.state) {
                    self.begin_no_sound(&bytes, Stamp::default());
                    return self.finish(at_ns, end);
                }
            }
        }
        let looks_like = self.beginning.and_then(|b| looks_like(b.content_type.as_deref(), &b.bytes));
        let success = self.state.head.success;
        let trace = self.state.conclude(at_ns, &end);
        let foreign = success && trace.outcome != Outcome::Ok;
        RequestTrace { looks_like: looks_like.filter(|other| foreign && *other != self.protocol), ..trace }
    }

    fn stamp(&mut self, at_ns: u64) -> Stamp {
        let stamp = Stamp { write: self.writes, at_ns };
        self.writes = self.writes.saturating_add(1);
        stamp
    }

    /// What the body is read as, as far as the head tells.
    fn begin_body(&mut self, content_type: Option<&str>) -> Body {
        let error_body = || WholeBody::new(limits::ERROR_BODY);
        match self.dialect.framing() {
            Framing::Sound if self.media_type == EVENTS_TYPE => {
                self.state.protocol_error(
                    "an event stream came where sound was asked for; leave `stream_format: sse` out of the payload",
                );
                Body::Ignored
            }
            Framing::Sound => Body::Sound(SoundBody::new(content_type, self.declared)),
            Framing::Frames if self.state.head.upgraded => {
                if let Some(format) = self.declared {
                    self.state.sound.know_pcm(format);
                }
                Body::Frames
            }
            _ if self.media_type == "text/html" => Body::Whole(error_body(), Whole::WebPage),
            Framing::Frames => Body::Whole(error_body(), Whole::InsteadOfFrames),
            Framing::Events | Framing::JsonOrEvents => Body::Blank(Stream::Events(EventStream::default())),
            Framing::Lines => Body::Blank(Stream::Lines(LineStream::default())),
            Framing::Json if self.media_type == EVENTS_TYPE => {
                self.state.protocol_error("an event stream came where one JSON body was asked for");
                Body::Ignored
            }
            Framing::Json => {
                if !self.is_json_type() {
                    self.state.warn(Warning::ContentType);
                }
                Body::Whole(WholeBody::new(limits::JSON_BODY), Whole::Asked)
            }
        }
    }

    fn is_json_type(&self) -> bool {
        self.media_type == "application/json" || self.media_type.ends_with("+json")
    }

    /// Decides at the first byte that is no blank how the body is read on; gives back the bytes that are still to be read.
    fn settle_body<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let Body::Blank(stream) = &self.body else { return bytes };
        // The bytes of a byte order mark count as blanks too; cut in two, they would not be told otherwise.
        let blank = |byte: &u8| byte.is_ascii_whitespace() || [0xEF, 0xBB, 0xBF].contains(byte);
        let Some(first) = bytes.iter().position(|byte| !blank(byte)) else { return bytes };
        let either = self.dialect.framing() == Framing::JsonOrEvents;
        let (whole, limit, fits) = match (bytes[first], stream) {
            (b'{' | b'[', Stream::Events(_)) if either => (Whole::Asked, limits::JSON_BODY, self.is_json_type()),
            (b'{' | b'[', Stream::Events(_)) => (Whole::InsteadOfEvents, limits::JSON_BODY, true),
            (b'<', _) => (Whole::WebPage, limits::ERROR_BODY, true),
            (_, stream) => {
                let types: &[&str] = if matches!(stream, Stream::Lines(_)) { &LINES_TYPES } else { &[EVENTS_TYPE] };
                if !types.contains(&self.media_type.as_str()) {
                    self.state.warn(Warning::ContentType);
                }
                if let Body::Blank(stream) = std::mem::replace(&mut self.body, Body::Ignored) {
                    self.body = Body::Stream(stream);
                }
                return bytes;
            }
        };
        if !fits {
            self.state.warn(Warning::ContentType);
        }
        self.body = Body::Whole(WholeBody::new(limit), whole);
        &bytes[first..]
    }

    /// What should have been sound and is none: an error in words, or something else.
    fn begin_no_sound(&mut self, bytes: &[u8], stamp: Stamp) {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        let (whole, limit) = match text.first() {
            Some(b'<') => (Whole::WebPage, limits::ERROR_BODY),
            // The error in it is told by the whole of it.
            Some(b'{' | b'[') => (Whole::InsteadOfSound, limits::ERROR_JSON),
            _ => (Whole::InsteadOfSound, limits::ERROR_BODY),
        };
        let mut body = WholeBody::new(limit);
        body.push(bytes, stamp);
        self.body = Body::Whole(body, whole);
        self.give_up_beyond_limit(whole);
    }

    /// Reads no more of a body that went over its limit, where it is not kept for its beginning alone.
    fn give_up_beyond_limit(&mut self, whole: Whole) {
        if !matches!(&self.body, Body::Whole(body, _) if body.is_over()) {
            return;
        }
        match whole {
            Whole::HttpError | Whole::WebPage => {}
            Whole::Asked | Whole::InsteadOfEvents => {
                let limit = limits::JSON_BODY >> 20;
                self.refuse(&format!("the body is longer than {limit} MiB"));
            }
            Whole::InsteadOfSound | Whole::InsteadOfFrames => {
                if let Body::Whole(body, _) = std::mem::replace(&mut self.body, Body::Ignored) {
                    body.conclude(whole, true, &mut *self.dialect, &mut self.state);
                }
            }
        }
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
        if let Some(text) = stream.foreign_text().filter(|text| complete && !text.trim_ascii().is_empty()) {
            let excerpt = failure::excerpt(text);
            let either = self.dialect.framing() == Framing::JsonOrEvents;
            let asked = if either { "neither JSON nor an event stream" } else { "no event stream" };
            self.state.protocol_error(&format!("the body is {asked}: {excerpt}"));
        }
    }
}

/// The status that begins a WebSocket.
const SWITCHING_PROTOCOLS: u16 = 101;

/// The type of server-sent events.
const EVENTS_TYPE: &str = "text/event-stream";

/// Types under which JSON lines are sent.
const LINES_TYPES: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

/// The media type of a `Content-Type`, without its parameters, in lower case; empty where there is none.
pub(super) fn media_type(content_type: Option<&str>) -> String {
    content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
