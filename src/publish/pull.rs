//! The pull request that a comment goes to.

use serde::Deserialize;

use super::event::{Event, Followed};
use crate::github::{Failure, Matter, Session};

/// The most pages of open pull requests of one branch that are read.
const MOST_PAGES: u32 = 5;

/// The next step where the token may not read pull requests.
const RIGHT: &str = "give the job `permissions: { pull-requests: write }`";

/// What is known of a pull request.
#[derive(Debug, Deserialize)]
pub(super) struct PullRequest {
    pub(super) number: u64,
    pub(super) state: String,
    #[serde(default)]
    pub(super) locked: bool,
    pub(super) head: Head,
}

/// The end of its branch, now.
#[derive(Debug, Deserialize)]
pub(super) struct Head {
    pub(super) sha: String,
    /// `None` when the fork was deleted.
    repo: Option<Repository>,
}

#[derive(Debug, Deserialize)]
struct Repository {
    full_name: String,
}

/// The event's pull request, as it is now; `None` where the event is about none.
pub(super) async fn find(session: &mut Session<'_>, event: &Event) -> Result<Option<PullRequest>, String> {
    let told = |failure: Failure| failure.to_string();
    match event {
        Event::NoPull => Ok(None),
        Event::Unfit(why) => Err(why.clone()),
        Event::Pull(pull) => {
            let what = format!("for the pull request {}", pull.number);
            let matter = Matter { what: &what, right: RIGHT };
            session.json(&["pulls", &pull.number.to_string()], &[], &matter).await.map(Some).map_err(told)
        }
        Event::Followed(followed) => resolve(followed, candidates(session, followed).await.map_err(told)?).map(Some),
    }
}

/// The open pull requests of the branch that the followed run was about.
async fn candidates(session: &mut Session<'_>, followed: &Followed) -> Result<Vec<PullRequest>, Failure> {
    let head = format!("{}:{}", followed.owner, followed.branch);
    let query = [("state", "open"), ("head", head.as_str())];
    let matter = Matter { what: "for open pull requests", right: RIGHT };
    session.pages(&["pulls"], &query, MOST_PAGES, &matter, Some).await
}

/// The one pull request whose head is the commit that was analysed. What was asked for is looked at again: a number or a branch
/// that a stranger chose must not lead a comment elsewhere.
fn resolve(followed: &Followed, candidates: Vec<PullRequest>) -> Result<PullRequest, String> {
    let is_of_branch = |pull: &PullRequest| {
        let repository = pull.head.repo.as_ref().map(|repository| repository.full_name.as_str());
        pull.state == "open" && repository.is_some_and(|name| name.eq_ignore_ascii_case(&followed.repository))
    };
    let (mut fit, moved): (Vec<PullRequest>, Vec<PullRequest>) =
        candidates.into_iter().filter(is_of_branch).partition(|pull| pull.head.sha == followed.head);
    let commit = short(&followed.head);
    match (fit.pop(), fit.len()) {
        (Some(pull), 0) => Ok(pull),
        (Some(_), more) => {
            Err(format!("{} open pull requests have {commit} as their head: none gets the comment", more + 1))
        }
        (None, _) if moved.is_empty() => Err(format!("no open pull request has {commit} as its head")),
        (None, _) => Err(format!("the pull request's branch moved on from {commit}: the run at its new head comments")),
    }
}

/// The first digits of a commit's name, for people.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}
