//! The tests that go through the real binary, and those of the driver over real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod accuracy;
mod action;
mod artifact;
mod audit;
mod bad_input;
mod baseline;
mod capacity;
#[path = "../support/client.rs"]
mod client;
mod compare;
mod compared;
mod dialects;
mod endpoint;
mod engines;
mod full_disk;
mod gate;
mod http2;
mod init;
mod interrupt;
mod judging;
mod limits;
mod lost_endpoint;
mod pair;
mod prometheus;
mod publish;
#[path = "../support/queues.rs"]
mod queues;
mod real;
mod realtime;
#[path = "../support/records.rs"]
mod records;
mod resources;
#[path = "../support/run.rs"]
mod run;
mod s3;
mod scene;
mod scripted;
mod secrets;
#[path = "../support/server.rs"]
mod server;
mod stability;
mod tls;
mod transport;
mod truth;
mod usage;
mod voice;
mod wire;
