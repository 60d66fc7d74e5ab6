//! A body that is cut into messages while it arrives, whichever framing it has.

use super::ndjson::LineStream;
use super::sse::EventStream;

/// Where and when a piece of the reply arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    /// Index of the write.
    pub(super) write: u32,
    /// Its time in nanoseconds.
    pub(super) at_ns: u64,
}

/// An event with data, or a line that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event<'a> {
    /// The value of its `event` field; empty where it has none.
    pub(super) name: &'a [u8],
    /// Its data lines, joined with LF.
    pub(super) data: &'a [u8],
    /// The write that completed it.
    pub(super) stamp: Stamp,
    /// No blank line ended it.
    pub(super) implicit: bool,
}

/// What a stream said beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooLong {
    /// A line.
    Line,
    /// The data of an event.
    Event,
}

/// Cuts bytes into messages.
#[derive(Debug)]
pub(super) enum Stream {
    /// Server-sent events.
    Events(EventStream),
    /// One JSON object a line.
    Lines(LineStream),
}

impl Stream {
    /// Takes bytes from the front of `bytes` until a message is complete, and yields it; `None` when all are taken.
    pub(super) fn next(&mut self, bytes: &mut &[u8], stamp: Stamp) -> Option<Event<'_>> {
        match self {
            Self::Events(events) => events.next(bytes, stamp),
            Self::Lines(lines) => lines.next(bytes, stamp),
        }
    }

    /// After a complete body: what the end itself completes. To be called until it yields nothing.
    pub(super) fn end(&mut self) -> Option<Event<'_>> {
        match self {
            Self::Events(events) => events.end(),
            Self::Lines(lines) => lines.end(),
        }
    }

    /// Which limit the stream went over; nothing is read after that.
    pub(super) fn too_long(&self) -> Option<TooLong> {
        match self {
            Self::Events(events) => events.too_long(),
            Self::Lines(lines) => lines.too_long(),
        }
    }

    /// Whether a message has begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Events(events) => events.is_open(),
            Self::Lines(lines) => lines.is_open(),
        }
    }

    /// The first line of a body in which nothing was an event stream. A line that is no JSON is the dialect's to judge.
    pub(super) fn foreign_text(&self) -> Option<&[u8]> {
        match self {
            Self::Events(events) => events.foreign_text(),
            Self::Lines(_) => None,
        }
    }
}
