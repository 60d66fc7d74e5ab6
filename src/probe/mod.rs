//! Probes: each reads one number or one exit code from the system under test.
//!
//! A probe never fails the run: what it could not read becomes a [`Reading`] without a value and with the reason. A new
//! kind is one file beside [`command`] and one line in [`read`].

mod command;
mod process;

use std::path::Path;
use std::time::Instant;

use crate::contract::{CommandProbe, CounterSource, StabilityProbe};
use crate::record::Reading;

/// What a kind of probe answers: the value, or why there is none.
type Answer = Result<f64, String>;

/// Reads what a stability row asks for, once. Commands run in `folder`.
pub async fn read(probe: &StabilityProbe, folder: &Path) -> Reading {
    match probe {
        StabilityProbe::Counter { source: CounterSource::Command(command), .. } => read_number(command, folder).await,
        StabilityProbe::ExitCode { command } => read_exit_code(command, folder).await,
    }
}

/// Runs a command that prints exactly one finite number and exits with code 0.
pub async fn read_number(probe: &CommandProbe, folder: &Path) -> Reading {
    timed(command::number(probe, folder)).await
}

/// Runs a command for its exit code, whatever that is. Being killed by a signal is no code.
pub async fn read_exit_code(probe: &CommandProbe, folder: &Path) -> Reading {
    timed(command::exit_code(probe, folder)).await
}

async fn timed(answer: impl Future<Output = Answer>) -> Reading {
    let start = Instant::now();
    let answer = answer.await;
    let took_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    match answer {
        Ok(value) => Reading { value: Some(value), failure: None, took_ns },
        Err(failure) => Reading { value: None, failure: Some(failure), took_ns },
    }
}
