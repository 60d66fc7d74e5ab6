//! One file per command: the only wiring between the rooms. Every failure ends here as a message and an exit code.

mod audit;
mod baseline;
mod calibrate;
mod cli;
mod compare;
mod comparison;
mod exit;
mod gate;
mod init;
mod interrupt;
mod judge;
mod pair;
mod prepare;
mod probes;
mod progress;
mod publish;
mod run;
mod sampling;
mod schema;
mod simulate;
mod smoke;
mod supervise;
mod usage;
mod validate;
mod warm;

use std::io::Write;

use clap::Parser;

use cli::{Cli, Command};
pub use exit::Exit;

use crate::report;

/// Runs one command line and returns its exit code. The command line starts with the program's name.
pub fn run(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(message) => {
            // Help and version are answers, everything else is a mistake.
            if !message.use_stderr() {
                drop(message.print());
                return Exit::Pass;
            }
            // It repeats what was written, which a workflow may have from anywhere.
            drop(write!(std::io::stderr(), "{}", report::plain(&message.render().to_string())));
            return Exit::Usage;
        }
    };
    let outcome = match cli.command {
        Command::Gate(arguments) => gate::gate(&arguments),
        Command::Validate(arguments) => validate::validate(&arguments),
        Command::Smoke(arguments) => smoke::smoke(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Judge(arguments) => judge::judge(&arguments),
        Command::Publish(arguments) => publish::publish(&arguments),
        Command::Audit(arguments) => audit::audit(&arguments),
        Command::Baseline(arguments) => baseline::baseline(&arguments),
        Command::Simulate(arguments) => simulate::simulate(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Supervise(arguments) => Ok(supervise::supervise(arguments)),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
