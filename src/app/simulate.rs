//! `goodput simulate`: the embedded simulated endpoint alone.

use std::error::Error as _;

use super::cli::SimulateArguments;
use super::exit::{Exit, Failure};
use super::gate::{print, runtime};
use super::interrupt::Interrupt;
use crate::simulate::{SimulateError, run_command};

pub(super) fn simulate(arguments: &SimulateArguments) -> Result<Exit, Failure> {
    runtime()?.block_on(async {
        let interrupt = Interrupt::listen()?;
        let (profile, log) = (arguments.profile.clone(), arguments.log.clone());
        // Whoever cannot read the address can still use the one that was asked for.
        let listening = |url: &str| drop(print(&format!("listening on {url}\n")));
        let served = run_command(profile, arguments.listen, log, interrupt.token().clone(), listening).await;
        match served {
            Ok(()) => Ok(interrupt.signal().map_or(Exit::Pass, Exit::Signal)),
            Err(SimulateError::Exit(exit)) => Ok(Exit::Other(exit.code)),
            Err(error @ (SimulateError::Read { .. } | SimulateError::Profile { .. })) => {
                Err(Failure::usage(whole(&error)))
            }
            Err(error) => Err(Failure::internal(whole(&error))),
        }
    })
}

/// The error with its cause.
pub(super) fn whole(error: &SimulateError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
