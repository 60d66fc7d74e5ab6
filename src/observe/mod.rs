//! Readers of replies, without I/O: what arrived, as `(offset, bytes)`, becomes a [`RequestTrace`].
//!
//! A reader is fed by the driver over real sockets and by tests from files alike. It never fails: everything a server can
//! send ends in an [`Outcome`], with warnings for oddities that do not change it.

mod protocol;
mod reader;
mod trace;

pub use protocol::Protocol;
pub use reader::{Progress, ReplyEnd, ReplyHead, ReplyReader};
pub use trace::{Outcome, OutputKind, ReplyTexts, RequestTrace, ToolCall, Warning};
