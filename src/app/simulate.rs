//! `goodput simulate`: the embedded simulated endpoint alone.

use std::io::Write;

use super::cli::SimulateArguments;
use super::exit::{Exit, Failure};
use super::gate::runtime;
use super::interrupt::Interrupt;

pub(super) fn simulate(arguments: &SimulateArguments) -> Result<Exit, Failure> {
    runtime()?.block_on(async {
        let interrupt = Interrupt::listen()?;
        Err(Failure::internal("x"))
    })
}
