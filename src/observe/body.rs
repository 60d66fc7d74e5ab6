//! Bodies that are read as a whole: one JSON document, or the little that is kept of a failure.

use super::dialect::{Dialect, Message};
use super::state::ReplyState;
use super::stream::Stamp;
use super::trace::Warning;
use super::{decode, failure};

/// What a body that is read at its end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// The JSON that was asked for.
    Asked,
    /// JSON where events were asked for.
    InsteadOfEvents,
    /// Something else where sound was asked for.
    InsteadOfSound,
    /// Any body where a WebSocket was asked for.
    InsteadOfFrames,
    /// A web page where an answer was asked for.
    WebPage,
    /// What came with a status other than success.
    HttpError,
}

/// Collects a body up to a limit.
#[derive(Debug)]
pub(super) struct WholeBody {
    bytes: Vec<u8>,
    limit: usize,
    over: bool,
    completed: Stamp,
}

impl WholeBody {
    /// An empty body of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, over: false, completed: Stamp::default() }
    }

    /// Adds a write; what goes over the limit is dropped.
    pub(super) fn push(&mut self, bytes: &[u8], stamp: Stamp) {
        let room = self.limit - self.bytes.len();
        self.over |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        // Blanks around a document are no part of it: it is complete with its last byte that is none.
        if bytes.iter().any(|byte| !byte.is_ascii_whitespace()) {
            self.completed = stamp;
        }
    }

    /// Whether more came than the limit holds.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether nothing but blanks came.
    fn is_blank(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }

    /// The body, with a leading byte order mark removed.
    fn bytes(&self) -> &[u8] {
        self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes)
    }

    /// Tells `reply` what the body amounts to, once no more of it will come.
    pub(super) fn conclude(&self, whole: Whole, complete: bool, dialect: &mut dyn Dialect, reply: &mut ReplyState) {
        let excerpt = || failure::excerpt(self.bytes());
        match whole {
            Whole::HttpError => reply.http_error(failure::body_message(self.bytes())),
            Whole::WebPage => {
                reply.protocol_error(&format!("a web page came where an answer was asked for: {}", excerpt()));
            }
            _ if !complete => reply.begun(),
            Whole::Asked => self.read(dialect, reply),
            Whole::InsteadOfEvents => self.conclude_instead_of_events(reply),
            Whole::InsteadOfSound | Whole::InsteadOfFrames => {
                let text = decode::text(self.bytes(), reply);
                let asked = if whole == Whole::InsteadOfSound { "sound" } else { "a WebSocket" };
                match failure::in_body(&text) {
                    Some(error) => reply.stream_error(&error),
                    None => {
                        reply.protocol_error(&format!("a body came where {asked} was asked for: {}", excerpt()));
                    }
                }
            }
        }
    }

    /// The JSON body is whole: its end is the end signal.
    fn read(&self, dialect: &mut dyn Dialect, reply: &mut ReplyState) {
        if !self.is_blank() {
            let data = decode::text(self.bytes(), reply);
            let message = Message { name: "", data: &data, at_ns: self.completed.at_ns };
            let read = dialect.message(message, reply);
            if !read {
                match failure::in_body(&data) {
                    Some(error) => reply.stream_error(&error),
                    None => {
                        let excerpt = failure::excerpt(self.bytes());
                        reply.protocol_error(&format!("the JSON body is not what was asked for: {excerpt}"));
                    }
                }
            }
            reply.end_message(self.completed, read);
        }
        reply.done();
    }

    fn conclude_instead_of_events(&self, reply: &mut ReplyState) {
        let data = decode::text(self.bytes(), reply);
        if let Some(error) = failure::in_body(&data) {
            reply.stream_error(&error);
            return;
        }
        let excerpt = failure::excerpt(self.bytes());
        if serde_json::from_str::<serde::de::IgnoredAny>(&data).is_ok() {
            reply.warn(Warning::NotStreamed);
            let hint = "does the payload say `stream: true`?";
            reply
                .protocol_error(&format!("one JSON body came where an event stream was asked for ({hint}): {excerpt}"));
        } else {
            reply.protocol_error(&format!("the body is neither an event stream nor JSON: {excerpt}"));
        }
    }
}
