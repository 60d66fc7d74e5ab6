//! How an endpoint ended, and the lines in which the supervisor says so.

use std::fmt;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

/// How the first process of a launched endpoint ended. Completes "the endpoint …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody saw it, as when its supervisor was killed; the group is killed then too.
    Lost,
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exited with code {code}"),
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(formatter, "was killed by signal {number} ({signal})"),
                Err(_) => write!(formatter, "was killed by signal {number}"),
            },
            Self::Lost => write!(formatter, "ended unseen (was its supervisor killed?)"),
        }
    }
}

/// One line on the supervisor's standard output, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The endpoint runs; its process leads a group of the same number.
    Started {
        /// The process.
        pid: u32,
    },
    /// The first process of the endpoint ended; what it left behind is being stopped.
    Exited(Exit),
    /// The endpoint could not be started.
    Failed {
        /// What the system said.
        error: String,
        /// Whether the program was not found.
        missing: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_read_as_sentences() {
        assert_eq!(Exit::Code(3).to_string(), "exited with code 3");
        assert_eq!(Exit::Signal(9).to_string(), "was killed by signal 9 (SIGKILL)");
        assert_eq!(Exit::Signal(40).to_string(), "was killed by signal 40");
    }

    #[test]
    fn reports_are_the_documented_lines() {
        for (report, line) in [
            (Report::Started { pid: 7 }, r#"{"started":{"pid":7}}"#),
            (Report::Exited(Exit::Code(1)), r#"{"exited":{"code":1}}"#),
            (Report::Exited(Exit::Signal(15)), r#"{"exited":{"signal":15}}"#),
        ] {
            assert_eq!(serde_json::to_string(&report).ok().as_deref(), Some(line));
            assert_eq!(serde_json::from_str::<Report>(line).ok(), Some(report));
        }
    }
}
