//! What the driver tells a reader, and what it is told.

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

/// What a piece of the reply brought.
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
