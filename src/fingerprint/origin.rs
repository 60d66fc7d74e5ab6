//! Which commit is served, and which run of which workflow measures it.

use std::path::Path;

use url::Url;

use super::repository::{Repository, repository};
use super::{github, gitlab};
use crate::record::Origin;

/// A commit that was named and is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{shown}` is not a commit (from `--commit` or the variable GOODPUT_COMMIT); write all 40 or 64 hexadecimal digits of the \
     commit that is served, as `git rev-parse HEAD` prints them"
)]
pub struct OriginError {
    /// The beginning of what was named.
    shown: String,
}

/// What a workflow knows of itself. Every value is one short line; none is trusted further than that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pipeline {
    /// The commit that it runs at.
    pub(super) commit: Option<String>,
    /// The head of the change, of which `commit` is a merge with the base that was made to be tested.
    pub(super) change: Option<String>,
    /// The head of the change, also where `commit` is no such merge.
    pub(super) other: Option<String>,
    /// The branch or tag.
    pub(super) branch: Option<String>,
    /// Whether it runs at the branch itself, and not at a tag or a change that is to come into it.
    pub(super) is_branch: bool,
    pub(super) default_branch: Option<String>,
    pub(super) event: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) run_id: Option<String>,
    pub(super) run_attempt: Option<String>,
    pub(super) run_url: Option<String>,
}

/// Which commit is served, and which run of which workflow measures it: from `git` in the contract's folder and from the variables
/// of GitHub Actions or GitLab. `variable` reads the environment; `commit` is what the command line names, before the variable
/// `GOODPUT_COMMIT`: with it is served what no work tree here shows.
///
/// Of a pull request the head of the change counts, not the merge that GitHub makes to test it. A work tree at a third commit is
/// what is served, whatever the workflow runs at.
///
/// # Errors
/// When a commit is named that is none.
pub async fn origin(
    folder: &Path,
    commit: Option<&str>,
    variable: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Origin, OriginError> {
    let git = ["git".to_owned()];
    let named = commit.map(str::to_owned).or_else(|| variable("GOODPUT_COMMIT")).filter(|id| !id.trim().is_empty());
    let named = match named {
        Some(text) => Some(commit_id(&text).ok_or_else(|| refused(&text))?),
        None => None,
    };
    let pipeline = github::pipeline(variable).or_else(|| gitlab::pipeline(variable));
    Ok(assemble(named, pipeline, repository(&git, folder).await))
}

fn refused(text: &str) -> OriginError {
    OriginError { shown: super::plain(&text.chars().take(80).collect::<String>()).unwrap_or_default() }
}

fn assemble(named: Option<String>, pipeline: Option<Pipeline>, local: Repository) -> Origin {
    let Some(pipeline) = pipeline else { return without_pipeline(named, local) };
    let is_elsewhere = local.head.as_ref().is_some_and(|head| {
        [&pipeline.commit, &pipeline.change, &pipeline.other].iter().all(|known| known.as_ref() != Some(head))
    });
    // A merge that was made to be tested stands for the head of its change.
    let is_merge = local.head.is_none() || local.head == pipeline.commit;
    let served = pipeline.change.clone().filter(|_| is_merge).or_else(|| local.head.clone());
    let served = named.clone().or(served).or_else(|| pipeline.commit.clone());
    let on_branch = pipeline.branch.as_ref().zip(pipeline.default_branch.as_ref());
    let is_default_branch = match on_branch {
        _ if !pipeline.is_branch => Some(false),
        _ if is_elsewhere && named.is_none() => None,
        Some((branch, default)) => Some(branch == default),
        None => None,
    };
    Origin {
        workflow_commit: pipeline.commit.filter(|commit| served.as_ref() != Some(commit)),
        commit: served,
        changed_files: local.changed_files,
        branch: pipeline.branch,
        is_default_branch,
        event: pipeline.event,
        repository: pipeline.repository,
        run_id: pipeline.run_id,
        run_attempt: pipeline.run_attempt,
        run_url: pipeline.run_url,
    }
}

/// Outside of a workflow the clone alone is asked.
fn without_pipeline(named: Option<String>, local: Repository) -> Origin {
    let is_default_branch = match (&local.branch, &local.default_branch) {
        (Some(branch), Some(default)) => Some(branch == default),
        _ => None,
    };
    Origin {
        commit: named.or(local.head),
        changed_files: local.changed_files,
        branch: local.branch,
        is_default_branch,
        ..Origin::default()
    }
}

/// All digits of a commit's name, in lower case: SHA-1 has 40 of them, SHA-256 64.
pub(super) fn commit_id(text: &str) -> Option<String> {
    let text = text.trim();
    let is_id = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase())
}

/// A number that names a run.
pub(super) fn digits(text: String) -> Option<String> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

/// A project's path, as `owner/name`; GitLab's may have more parts.
pub(super) fn project(text: String) -> Option<String> {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) && part != ".."
    };
    (text.contains('/') && text.split('/').all(is_part)).then_some(text)
}

/// An address of a web page without credentials.
pub(super) fn address(text: String) -> Option<String> {
    let url = Url::parse(&text).ok()?;
    let is_plain = ["http", "https"].contains(&url.scheme()) && url.username().is_empty() && url.password().is_none();
    is_plain.then_some(text)
}

#[cfg(test)]
mod tests;
