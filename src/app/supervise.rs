//! The hidden command that holds a launched endpoint.

use std::time::Duration;

use super::cli::SuperviseArguments;
use super::exit::Exit;
use crate::endpoint;

pub(super) fn supervise(arguments: SuperviseArguments) -> Exit {
    let code = endpoint::supervise(&endpoint::SuperviseArguments {
        stop_within: Duration::from_millis(arguments.stop_within_ms),
        log: arguments.log,
        command: arguments.command,
    });
    Exit::Other(u8::try_from(code).unwrap_or(u8::MAX))
}
