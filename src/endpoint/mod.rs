//! An ephemeral endpoint: started, awaited, read and stopped by the run itself, as a whole process group.
//!
//! The group has to end on every kind of exit of this program, SIGKILL included, when none of our code runs any more. So
//! a second process of the same binary, the supervisor ([`supervise()`]), stands between the run and the endpoint. It holds
//! the reading end of a pipe; the kernel closes the writing end whenever and however the run ends, and that is the order
//! to stop.

mod client;
mod exit;
mod headers;
mod job;
mod launch;
mod log;
mod ready;
mod secrets;
mod supervise;

pub use client::{ClientError, http_client, trusted_roots};
pub use exit::Exit;
pub use headers::{HeaderError, add_headers, header_value};
pub use job::OF_THE_JOB;
pub use launch::{LaunchError, LaunchSpec, Running, launch};
pub use log::mask_log;
pub use ready::{NotReady, innermost, port_answers, ready_target, wait_ready};
pub use secrets::Secrets;
pub use supervise::{SuperviseArguments, supervise};
