//! A result on the surfaces of GitHub: comment, job summary, annotations, outputs, check run. Nothing is computed here; the texts
//! come from [`report`](crate::report).
//!
//! Each surface stands alone: what keeps one from being written is told as a problem and stops no other. Nothing here changes a
//! verdict or an exit code.

mod annotate;
mod check;
mod command;
mod comment;
mod context;
mod event;
mod files;
mod marker;
mod pull;
mod sticky;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

pub use self::command::{end_group, group};
pub use self::context::Context;
use crate::github::Allowance;
use crate::judge::Status;
use crate::record::RunResult;
use crate::report::{self, Frame};

/// What one surface may cost of the API.
const ALLOWANCE: Allowance = Allowance { requests: 100, longest_wait: Duration::from_secs(60) };

/// What is published.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A run that came to its end.
    Run {
        /// Its result.
        result: &'a RunResult,
        /// The folder with its files.
        folder: Option<&'a Path>,
        /// The contract: its path from the repository's root, and its text.
        contract: Option<(&'a str, &'a str)>,
    },
    /// The tool ended without a verdict.
    Failure {
        /// The contract's name, the same as in the results of its runs: the comment is found by it.
        contract: &'a str,
        /// What happened, and what to do.
        message: &'a str,
        /// The contract's path from the repository's root, and what is wrong in which of its lines.
        faults: (&'a str, &'a [(u32, String)]),
    },
}

/// When a pull request gets a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// On every verdict.
    Always,
    /// When it is not PASS; a comment that is there already is brought up to date on PASS too.
    NotPass,
    /// Never.
    Never,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// When to comment.
    pub comment: When,
    /// What tells this comment from others about the same contract.
    pub key: Option<String>,
    /// Whether a check run is written besides.
    pub check: bool,
    /// Sentences to show under the headline.
    pub remarks: Vec<String>,
    /// What the tool will exit with.
    pub exit_code: u8,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// Where the comment is.
    pub comment_url: Option<String>,
    /// What was written, one line each, for the log.
    pub written: Vec<String>,
    /// What was not, one line each, with the missing permission or the next step.
    pub problems: Vec<String>,
}

impl Published {
    /// Notes how one surface went: what was written, or why nothing was.
    fn note(&mut self, surface: &str, outcome: Result<String, String>) {
        match outcome {
            Ok(written) => self.written.push(format!("{surface}: {written}")),
            Err(problem) => {
                let line = format!("{surface}: {problem}");
                // A file that cannot be written is met more than once.
                if !self.problems.contains(&line) {
                    self.problems.push(line);
                }
            }
        }
    }
}

impl Subject<'_> {
    /// The contract's name.
    fn contract(&self) -> &str {
        match self {
            Self::Run { result, .. } => &result.name,
            Self::Failure { contract, .. } => contract,
        }
    }

    /// The overall answer; `None` where there is none.
    fn overall(&self) -> Option<Status> {
        match self {
            Self::Run { result, .. } => result.verdict.as_ref().map(|verdict| verdict.overall),
            Self::Failure { .. } => None,
        }
    }

    /// The Markdown within a frame.
    fn text(&self, frame: &Frame<'_>) -> String {
        match self {
            Self::Run { result, .. } => report::comment(result, frame),
            Self::Failure { contract, message, .. } => report::failure(contract, message, frame),
        }
    }
}

/// Publishes a result wherever the workflow has a place for it. `commands` is what the runner reads: standard output, or standard
/// error where that one is a machine's.
pub async fn publish(
    subject: &Subject<'_>,
    wanted: &Wanted,
    context: &Context,
    commands: &mut (dyn Write + Send),
) -> Published {
    let mut published = Published::default();
    if let Some(problem) = &context.no_workflow {
        published.problems.push(problem.clone());
        return published;
    }
    published.problems.extend(context.problems.iter().cloned());
    // What needs no network comes first, so that it is there whatever happens afterwards.
    published.note("outputs", files::outputs(subject, wanted, context));
    published.note("job summary", files::summary(subject, wanted, context));
    published.note("annotations", annotate::annotations(subject, commands));
    let comment = async {
        let due = wanted.comment != When::Never;
        if due { comment::comment(subject, wanted, context).await } else { Ok(None) }
    };
    let check = async { if wanted.check { Some(check::check(subject, wanted, context).await) } else { None } };
    let (comment, check) = tokio::join!(comment, check);
    match comment {
        Ok(None) => {}
        Ok(Some(placed)) => {
            published.comment_url = placed.url;
            published.note("comment", placed.outcome);
        }
        Err(problem) => published.note("comment", Err(problem)),
    }
    if let Some(check) = check {
        published.note("check run", check);
    }
    if let Err(problem) = files::comment_url(published.comment_url.as_deref(), context) {
        published.note("outputs", Err(problem));
    }
    if let Err(problem) = files::problems(&published.problems, context) {
        published.note("job summary", Err(problem));
    }
    if let Err(problem) = annotate::problems(&published.problems, commands) {
        published.note("annotations", Err(problem));
    }
    published
}
