//! The comment on a pull request: whether one is due, and what it says.

use super::context::{COMMENT, Context};
use super::event::Event;
use super::marker::Marker;
use super::pull::{self, PullRequest, short};
use super::sticky::{self, Note, Placed};
use super::{ALLOWANCE, Subject, Wanted, When};
use crate::github::{Cause, Failure};
use crate::judge::Status;
use crate::report::{Frame, Limit};

/// The most characters of a comment that GitHub takes.
const LONGEST: usize = 65_536;

/// What became of the comment.
pub(super) struct Outcome {
    /// Where one is, whoever wrote it last.
    pub(super) url: Option<String>,
    /// How it got there, or why it could not.
    pub(super) outcome: Result<String, String>,
}

/// Writes the comment; `None` where the event is about no pull request.
pub(super) async fn comment(
    subject: &Subject<'_>,
    wanted: &Wanted,
    context: &Context,
) -> Result<Option<Outcome>, String> {
    if context.event == Event::NoPull {
        return Ok(None);
    }
    let site = context.site.as_ref().map_err(Failure::to_string)?;
    let question = async {
        let mut session = site.session(ALLOWANCE).map_err(told)?;
        let Some(pull) = pull::find(&mut session, &context.event).await? else { return Ok(None) };
        let head = context.commit.as_deref().ok_or("the event names no commit")?;
        let age = context
            .age
            .ok_or("GITHUB_RUN_ID and GITHUB_RUN_ATTEMPT are not set: it is not known which run is newer")?;
        let marker = Marker::new(subject.contract(), wanted.key.as_deref(), head, age);
        let remarks = [wanted.remarks.clone(), remarks(subject, context, &pull)].concat();
        let body = subject.text(&Frame {
            marker: Some(&marker.text()),
            remarks: &remarks,
            run_url: context.run_url.as_deref(),
            limit: Limit::Characters(LONGEST),
        });
        let may_create = wanted.comment == When::Always || subject.overall() != Some(Status::Pass);
        let note = Note { pull: pull.number, marker: &marker, body: &body, may_create, right: right(context) };
        let placed = sticky::place(&mut session, &note).await;
        placed.map(|placed| Some(outcome(placed, &pull))).map_err(|failure| refused(&failure, &pull))
    };
    // What the question's own steps say is text already; only that it took too long comes as a failure.
    site.in_time(async { question.await.map_err(Problem) }).await.map_err(|Problem(text)| text)
}

/// Why there is no comment.
struct Problem(String);

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self(failure.to_string())
    }
}

fn told(failure: Failure) -> String {
    failure.to_string()
}

/// The next step where the token has no right to comment.
fn right(context: &Context) -> &'static str {
    if context.is_read_only {
        "the token of a pull request from a fork or of Dependabot may only read, even where the job has \
         `permissions: { pull-requests: write }`; a second workflow, on `workflow_run`, can comment (docs/github.md)"
    } else {
        "give the job `permissions: { pull-requests: write }`"
    }
}

fn outcome(placed: Placed, pull: &PullRequest) -> Outcome {
    let number = pull.number;
    let state = if pull.state == "open" { "" } else { ", which is closed" };
    match placed {
        Placed::Created(url) => {
            Outcome { outcome: Ok(format!("written to pull request {number}{state}: {url}")), url: Some(url) }
        }
        Placed::Updated(url) => Outcome { outcome: Ok(format!("brought up to date: {url}")), url: Some(url) },
        Placed::Same(url) => Outcome { outcome: Ok(format!("says this already: {url}")), url: Some(url) },
        Placed::Twice { url, failure } => Outcome {
            outcome: Err(format!("brought up to date, and there is another one besides it: {failure}")),
            url: Some(url),
        },
        Placed::NotDue => Outcome { outcome: Ok("not due: it passed, and there is none".to_owned()), url: None },
        Placed::Newer { url, age } => Outcome {
            outcome: Ok(format!(
                "left as it is, for it tells of run {}, attempt {}, which is newer than this one: {url}",
                age.run, age.attempt
            )),
            url: Some(url),
        },
    }
}

fn refused(failure: &Failure, pull: &PullRequest) -> String {
    if pull.locked && failure.cause() == Cause::Rights {
        return format!(
            "the conversation of pull request {} is locked; unlock it, or give the job {COMMENT}: {failure}",
            pull.number
        );
    }
    failure.to_string()
}

/// What a reader must know of the commit that the figures are about.
fn remarks(subject: &Subject<'_>, context: &Context, pull: &PullRequest) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(commit) = context.commit.as_deref().filter(|commit| *commit != pull.head.sha) {
        remarks.push(format!(
            "stale: this is about commit {}; the pull request's head is now {}",
            short(commit),
            short(&pull.head.sha)
        ));
    }
    remarks.extend(about_commit(subject, context));
    remarks
}

/// Where the figures are not about the commit of the event.
pub(super) fn about_commit(subject: &Subject<'_>, context: &Context) -> Vec<String> {
    let mut remarks = Vec::new();
    if context.event_name == "pull_request_target" {
        remarks.push(
            "started by `pull_request_target`, which runs the base's code and none of the pull request's".to_owned(),
        );
    }
    if let Subject::Run { result, .. } = subject
        && let Some(commit) = &context.commit
        && let Some(served) = result.origin.commit.as_ref().filter(|served| *served != commit)
    {
        let (served, commit) = (short(served), short(commit));
        remarks.push(format!("what was measured was served from commit {served}, and not from {commit}"));
    }
    remarks
}
