//! The embedded simulated endpoint: a server whose answer is known.
//!
//! [`Engine`] is the queueing model, pure and in virtual time; [`Server`] puts the same engine behind a real socket. What
//! a [`Profile`] says about faults is decided by number, time and seed, so that a run can be repeated. [`rehearse`] carries out a
//! whole run against the engine without a socket or a clock.

mod body;
mod command;
mod driver;
mod engine;
mod faults;
mod metrics;
mod profile;
mod rehearsal;
mod render;
mod request;
mod server;
mod service;
mod wire;

pub use command::{SimulateError, read_profile, run_command};
pub use engine::{Emission, Engine, Job, LengthSource, Lengths, Occupancy, Refusal};
pub use profile::{
    Batch, Drawn, DrawnLengths, Fault, Model, Nanos, Profile, ProfileError, PromptTokens, Queue, ServiceTime,
    SharePart, Slots, What, When, parse_profile, profile_schema,
};
pub use rehearsal::{Stage, rehearse, rehearse_against, rehearse_trial};
pub use server::{ExitRequested, Server};

#[cfg(test)]
mod tests;
