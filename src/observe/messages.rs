//! From messages as they are framed to the dialect that reads them.

use super::dialect::{Dialect, Message};
use super::state::ReplyState;
use super::stream::{Event, Stamp, Stream, TooLong};
use super::{Warning, decode, limits};

/// Reads all messages that `bytes` complete; gives back how many.
pub(super) fn read_stream(
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

/// Tells the dialect what a message holds, unless the reply was over before it.
pub(super) fn read_event(event: &Event<'_>, dialect: &mut dyn Dialect, state: &mut ReplyState) {
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
    let read = dialect.message(Message { name: &name, data: &data, at_ns: event.stamp.at_ns }, state);
    state.end_message(event.stamp, read);
}

/// What is said of a stream beyond a limit.
pub(super) fn too_long(limit: TooLong) -> String {
    match limit {
        TooLong::Line => format!("a line is longer than {} MiB", limits::LINE >> 20),
        TooLong::Event => format!("the data of an event is longer than {} MiB", limits::EVENT >> 20),
    }
}
