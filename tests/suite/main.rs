//! The tests that go through the real binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod bad_input;
mod endpoint;
mod full_disk;
mod gate;
mod interrupt;
mod judging;
mod lost_endpoint;
mod real;
mod scene;
mod scripted;
mod secrets;
