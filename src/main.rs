//! The `goodput` command.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use goodput::endpoint::{SuperviseArguments, supervise};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Until the command line is read properly: the one form that a run itself writes.
    match arguments.as_slice() {
        [name, within_flag, within, log_flag, log, separator, command @ ..]
            if name == "supervise" && within_flag == "--stop-within-ms" && log_flag == "--log" && separator == "--" =>
        {
            let Ok(within) = within.parse() else { return ExitCode::from(2) };
            let code = supervise(&SuperviseArguments {
                stop_within: Duration::from_millis(within),
                log: PathBuf::from(log),
                command: command.to_vec(),
            });
            u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        _ => ExitCode::from(2),
    }
}
