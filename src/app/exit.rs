//! Exit codes, and failures as a message with a hint.

use std::io::{ErrorKind, Write};

use crate::contract::{Fault, render_faults};
use crate::judge::{Status, Verdict};
use crate::record::StoreError;
use crate::report::plain;

/// What an exit code says; the numbers are a published promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// PASS, or an UNKNOWN that the policy lets through.
    Pass,
    /// FAIL; for `smoke`: proven not to work.
    Fail,
    /// Bad usage or a bad contract; nothing was started.
    Usage,
    /// UNKNOWN; for `smoke`: something could not be proven.
    Unknown,
    /// The tool itself failed, a full disk included.
    Internal,
    /// Stopped by this signal, after writing what was measured.
    Signal(i32),
    /// The exit code of a command that was run for its own sake.
    Other(u8),
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Usage => 2,
            Self::Unknown => 3,
            Self::Internal => 70,
            Self::Signal(number) => 128 + u8::try_from(number).unwrap_or(0),
            Self::Other(code) => code,
        }
    }

    /// What a verdict exits with.
    pub(super) fn of_verdict(verdict: &Verdict) -> Self {
        match verdict.overall {
            Status::Pass | Status::Accepted => Self::Pass,
            Status::Fail => Self::Fail,
            Status::Unknown if verdict.unknown_blocks => Self::Unknown,
            Status::Unknown => Self::Pass,
        }
    }
}

/// Why a command ended without its answer.
#[derive(Debug)]
pub(super) struct Failure {
    exit: Exit,
    message: String,
    hint: Option<String>,
    /// Of a faulty contract: what is wrong in which line.
    places: Vec<(u32, String)>,
}

impl Failure {
    /// A mistake of the person who runs the command.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), hint: None, places: Vec::new() }
    }

    /// A failure of the tool or the machine.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self { exit: Exit::Internal, message: message.into(), hint: None, places: Vec::new() }
    }

    /// Faults in a contract, each with its place.
    pub(super) fn contract(faults: &[Fault], file: &str, text: &str) -> Self {
        let place = |fault: &Fault| {
            let what = if fault.pointer.is_empty() { String::new() } else { format!("{}: ", fault.pointer) };
            Some((u32::try_from(fault.line).ok().filter(|line| *line > 0)?, format!("{what}{}", fault.message)))
        };
        let places = faults.iter().filter_map(place).collect();
        Self { places, ..Self::usage(render_faults(faults, file, text).trim_end()) }
    }

    /// What is wrong in which line of the contract, where that is what went wrong.
    pub(super) fn places(&self) -> &[(u32, String)] {
        &self.places
    }

    /// What it exits with.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }

    /// What went wrong, on one line, without what to do next.
    pub(super) fn text(&self) -> String {
        self.message.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// What went wrong and what to do next, on as many lines as it takes.
    pub(super) fn told(&self) -> String {
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!("\nhint: {hint}"));
        format!("{}{hint}", self.message)
    }

    /// What to do next.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says it on standard error, made harmless: a message may quote a contract or a server.
    pub(super) fn report(self) -> Exit {
        let mut stderr = anstream::stderr();
        drop(writeln!(stderr, "goodput: {}", plain(&self.message)));
        if let Some(hint) = self.hint {
            drop(writeln!(stderr, "  hint: {}", plain(&hint)));
        }
        self.exit
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let hint = match &error {
            StoreError::Io { source, .. } => writing_hint(source.kind()),
            StoreError::Content { .. } => "the file was changed by somebody else; restore it",
        };
        Self::internal(error.to_string()).hint(hint)
    }
}

/// What helps where a run's files cannot be written.
pub(super) fn writing_hint(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free space where the run's folder is, or name another place with `--runs`, and run again"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "make the folder writable, or name another with `--runs`"
        }
        _ => "name a folder that can be written with `--runs`",
    }
}
