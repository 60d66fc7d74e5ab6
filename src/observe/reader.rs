//! The reader of one reply.

use super::{Protocol, RequestTrace};

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
    /// The idle or total limit passed.
    TimedOut(&'static str),
    /// We stopped it.
    Cancelled,
}

/// Reads one reply: head, then bytes with their time, then the end.
#[derive(Debug)]
pub struct ReplyReader {
    protocol: Protocol,
}

impl ReplyReader {
    /// A reader of `protocol`; with `keep_texts` the texts are kept in the trace.
    pub fn new(protocol: Protocol, keep_texts: bool) -> Self {
        let _ = keep_texts;
        Self { protocol }
    }

    /// The head of the reply has arrived.
    pub fn head(&mut self, head: ReplyHead) {
        let _ = (head, self.protocol);
    }

    /// Bytes of the body that became readable together at `at_ns`.
    pub fn bytes(&mut self, at_ns: u64, bytes: &[u8]) -> Progress {
        let _ = (at_ns, bytes);
        Progress::default()
    }

    /// The reply is over. Without a head this is a reply that never began.
    pub fn finish(self, at_ns: u64, end: ReplyEnd) -> RequestTrace {
        let _ = (at_ns, end);
        unreachable!("written next")
    }
}
