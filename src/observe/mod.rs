//! Readers of replies, without I/O: what arrived, as `(offset, bytes)`, becomes a [`RequestTrace`].
//!
//! A reader is fed by the driver over real sockets and by tests from files alike. It never fails: everything a server can
//! send ends in an [`Outcome`], with warnings for oddities that do not change it.
//!
//! Three layers that know nothing of each other's work: *framing* cuts bytes into messages (`sse`, `ndjson`, `body`, `sound_body`), a *dialect* says
//! what a message holds (`dialect`, one file each), and the *state* decides what follows from it (`state`).

mod body;
#[cfg(test)]
mod corpus_tests;
mod decode;
mod dialect;
#[cfg(test)]
mod dialect_tests;
mod failure;
mod finish;
mod lenient;
mod limits;
mod looks_like;
mod messages;
mod ndjson;
mod outputs;
mod payload;
mod protocol;
mod reader;
#[cfg(test)]
mod realtime_tests;
mod reply;
mod retry_after;
mod session;
mod sound;
mod sound_body;
mod sse;
mod state;
mod stream;
mod texts;
mod trace;
mod usage;
#[cfg(test)]
mod voice_tests;

pub use looks_like::looks_like;
pub use payload::REALTIME_AUDIO;
pub use protocol::Protocol;
pub use reader::ReplyReader;
pub use reply::{Progress, ReplyEnd, ReplyHead};
pub use session::session_formats;
pub use trace::{Outcome, OutputKind, ReplyTexts, RequestTrace, ToolCall, Warning};
