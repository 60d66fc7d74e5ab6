//! The tests that go through the real binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod dialects;
mod endpoint;
mod real;
