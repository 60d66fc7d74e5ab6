//! The tests that go through the real binary, and those of the driver over real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

#[path = "../support/client.rs"]
mod client;
mod dialects;
mod endpoint;
#[path = "../support/gate.rs"]
mod gate;
mod http2;
mod limits;
mod real;
#[path = "../support/server.rs"]
mod server;
mod tls;
mod transport;
mod truth;
mod wire;
