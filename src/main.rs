//! The `goodput` command.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use goodput::app::{Exit, run};

fn main() -> ExitCode {
    // A panic is our own fault: it has its own exit code, so that it is never taken for a verdict.
    let exit = catch_unwind(AssertUnwindSafe(|| run(std::env::args_os()))).unwrap_or(Exit::Internal);
    ExitCode::from(exit.code())
}
