//! What git says of the folder that the contract lies in.

use std::path::Path;
use std::time::Duration;

use super::origin::commit_id;
use super::plain;
use crate::probe::output;

/// Longest time that one question may take; looking through a large work tree takes seconds.
const WITHIN: Duration = Duration::from_secs(20);

/// The most of an answer that is read, in bytes: of changed files it matters only that there are some.
const MOST: usize = 4 * 1024;

/// A repository at the instant of the question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repository {
    /// The commit that is checked out.
    pub(super) head: Option<String>,
    /// The branch that is checked out; none with a detached head.
    pub(super) branch: Option<String>,
    /// The default branch, as the clone knows it.
    pub(super) default_branch: Option<String>,
    /// Whether files that git knows differ from that commit.
    pub(super) changed_files: Option<bool>,
}

/// Asks `git`, the program with its first arguments. Without it, outside a repository, and in one that it refuses, nothing is
/// known.
pub(super) async fn repository(git: &[String], folder: &Path) -> Repository {
    let head = ask(git, folder, &["rev-parse", "--verify", "--quiet", "HEAD"]).await;
    let Some(head) = head.and_then(|text| commit_id(&text)) else { return Repository::default() };
    let branch = ask(git, folder, &["symbolic-ref", "--short", "--quiet", "HEAD"]).await;
    let remote = ask(git, folder, &["symbolic-ref", "--short", "--quiet", "refs/remotes/origin/HEAD"]).await;
    // The runs that this program writes are no change of what is served, also where somebody has committed some.
    let status =
        ["status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude,glob)**/.goodput/runs/**"];
    let status = ask(git, folder, &status).await;
    Repository {
        head: Some(head),
        branch: branch.as_deref().and_then(plain),
        default_branch: remote.as_deref().and_then(|name| plain(name.strip_prefix("origin/")?)),
        changed_files: status.map(|text| !text.trim().is_empty()),
    }
}

/// One question; it neither takes a lock nor starts what the repository's settings name.
async fn ask(git: &[String], folder: &Path, question: &[&str]) -> Option<String> {
    let settings = ["--no-optional-locks", "-c", "core.fsmonitor=false"];
    let arguments = settings.iter().chain(question).map(|argument| (*argument).to_owned());
    let command: Vec<String> = git.iter().cloned().chain(arguments).collect();
    output(&command, folder, WITHIN, MOST).await.ok()
}
