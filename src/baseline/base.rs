//! Which commit a change is compared with, and the commits behind it that may have a baseline.

use serde_json::Value;

use super::git::{GitFailure, Repository, is_commit, short};
use crate::github;
use crate::record::Why;

/// What the command line and the environment say about the base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stated {
    /// The base as somebody named it.
    pub revision: Option<String>,
    /// Who named it, completing "the base …".
    pub by: &'static str,
    /// Whether a person named it, who means that very commit even where it is the one that is served.
    pub by_hand: bool,
    /// Whether the run is one of the default branch; `None` when the environment does not say.
    pub on_default_branch: Option<bool>,
    /// The default branch, when the environment names it.
    pub default_branch: Option<String>,
}

impl Stated {
    /// Reads it from the command line's `--base`, else `GOODPUT_BASE`, else what GitHub and GitLab tell of their event. `variable`
    /// gives the environment's variables.
    ///
    /// # Errors
    /// When the description of GitHub's event cannot be read; the text is for people.
    pub fn read(flag: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut stated = Self::of_event(&variable)?;
        for (named, by) in
            [(flag.map(str::to_owned), "that `--base` names"), (variable("GOODPUT_BASE"), "in GOODPUT_BASE")]
        {
            if named.is_some() {
                stated = Self { revision: named, by, by_hand: true, ..stated };
                break;
            }
        }
        Ok(stated)
    }

    fn of_event(variable: &impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        if let Some(path) = variable("GITHUB_EVENT_PATH") {
            let event = read_event(&path)?;
            let name = variable("GITHUB_EVENT_NAME").unwrap_or_default();
            return Ok(Self::of_github(&name, &event, variable("GITHUB_REF").as_deref()));
        }
        let default_branch = variable("CI_DEFAULT_BRANCH");
        let on_default_branch = variable("CI_COMMIT_BRANCH").map(|branch| Some(branch) == default_branch);
        let stated = Self { on_default_branch, default_branch, ..Self::default() };
        Ok(match variable("CI_MERGE_REQUEST_DIFF_BASE_SHA") {
            Some(sha) => {
                Self { revision: Some(sha), by: "of the merge request", on_default_branch: Some(false), ..stated }
            }
            None => stated,
        })
    }

    /// What an event of GitHub says. Of an event without a base, as `schedule`, nothing: the line begins at the parent then.
    fn of_github(name: &str, event: &Value, reference: Option<&str>) -> Self {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let default_branch = text("/repository/default_branch");
        let is_default = default_branch
            .as_ref()
            .zip(reference)
            .is_some_and(|(branch, reference)| reference == format!("refs/heads/{branch}"));
        let (revision, by) = match name {
            "merge_group" => (text("/merge_group/base_sha"), "of the merge group"),
            // What was pushed before to a branch of its own is a part of the change.
            "push" if is_default => (text("/before"), "before the push"),
            "push" => (None, ""),
            _ => (text("/pull_request/base/sha"), "of the pull request"),
        };
        let is_change = matches!(name, "merge_group") || event.get("pull_request").is_some();
        let on_default_branch = match (&default_branch, reference) {
            _ if is_change => Some(false),
            (Some(_), Some(_)) => Some(is_default),
            _ => None,
        };
        // A push that makes a branch has no commit before it; GitHub writes zeros.
        let revision = revision.filter(|sha| is_commit(sha) && sha.bytes().any(|byte| byte != b'0'));
        Self { revision, by, by_hand: false, on_default_branch, default_branch }
    }
}

fn read_event(path: &str) -> Result<Value, String> {
    let problem = |problem: String| {
        format!("the event that GITHUB_EVENT_PATH names cannot be read: {path}: {problem}; name the base with `--base`")
    };
    github::read_event(path).map_err(problem)
}

/// A commit that may have a baseline, and why it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The commit.
    pub commit: String,
    /// How it lies to the change.
    pub why: Why,
}

/// Where a change lies in the repository's history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The commit that is checked out; `None` before the first.
    pub head: Option<String>,
    /// The commit that the change is compared with; `None` where there is none.
    pub base: Option<String>,
    /// The commits that may have a baseline, in the order in which they are wanted.
    pub candidates: Vec<Candidate>,
    /// Whether the run is one of the default branch.
    pub on_default_branch: bool,
    /// How the base was found, or why not.
    pub told: String,
}

/// Finds the base, and the commits behind it, at most `depth` of them. A shallow clone is asked for more once.
///
/// # Errors
/// When git does not answer.
pub(super) async fn line(repository: &Repository, stated: &Stated, depth: u32) -> Result<Line, GitFailure> {
    let default_branch = match &stated.default_branch {
        Some(branch) => Some(branch.clone()),
        None => repository.default_branch().await?,
    };
    let on_default_branch = match stated.on_default_branch {
        Some(known) => known,
        None => default_branch.is_some() && repository.branch().await? == default_branch,
    };
    let mut line = Line::default();
    let Some(head) = repository.commit("HEAD").await? else {
        line.told = "the repository has no commit yet".to_owned();
        return Ok(line);
    };
    line.head = Some(head.clone());
    // What a branch is called says nothing: what is served must lie on the remote's own.
    let remote = match &default_branch {
        Some(branch) => repository.commit(&format!("refs/remotes/origin/{branch}")).await?,
        None => None,
    };
    let is_contained = match &remote {
        Some(remote) => is_behind(repository, &head, remote).await?,
        None => on_default_branch,
    };
    line.on_default_branch = on_default_branch && is_contained && !stated.by_hand;
    let may_be_parent = is_contained || !repository.has_remote().await?;
    match base(repository, stated, &head, default_branch.as_deref(), may_be_parent, depth).await? {
        Ok((base, told)) => {
            line.candidates = candidates(repository, &head, &base, depth).await?;
            (line.base, line.told) = (Some(base), told);
        }
        Err(problem) => line.told = problem,
    }
    Ok(line)
}

/// The base and how it was found, or why there is none.
async fn base(
    repository: &Repository,
    stated: &Stated,
    head: &str,
    default_branch: Option<&str>,
    may_be_parent: bool,
    depth: u32,
) -> Result<Result<(String, String), String>, GitFailure> {
    if let Some(revision) = &stated.revision {
        return match wanted(repository, revision, depth).await? {
            Ok(base) if !stated.by_hand && is_behind(repository, head, &base).await? => {
                parent(repository, head, depth).await
            }
            Ok(base) => Ok(Ok((base.clone(), format!("the base {} is {}", stated.by, short(&base))))),
            Err(problem) => Ok(Err(format!("the base {}, `{revision}`, {problem}", stated.by))),
        };
    }
    let branches =
        [default_branch.map(|branch| format!("refs/remotes/origin/{branch}")), Some("@{upstream}".to_owned())];
    for branch in branches.into_iter().flatten() {
        if let Some(base) = repository.commit(&branch).await?
            && !is_behind(repository, head, &base).await?
        {
            let told =
                format!("the base is {}, where {} stands", short(&base), branch.trim_start_matches("refs/remotes/"));
            return Ok(Ok((base, told)));
        }
    }
    if !may_be_parent {
        return Ok(Err(format!(
            "what the commit {} is compared with is not known: it is not seen to lie on the default branch, and its own parent \
             is a part of the change; name the base with `--base`{SHALLOW}",
            short(head)
        )));
    }
    parent(repository, head, depth).await
}

/// Whether the head is on the base's own line, so that its own record would stand there.
async fn is_behind(repository: &Repository, head: &str, base: &str) -> Result<bool, GitFailure> {
    Ok(repository.merge_base(head, base).await?.as_deref() == Some(head))
}

/// The head's first parent: a run of the base branch itself is compared with what was there before, never with itself.
async fn parent(
    repository: &Repository,
    head: &str,
    depth: u32,
) -> Result<Result<(String, String), String>, GitFailure> {
    let first_parent = format!("{head}^1");
    let mut found = repository.commit(&first_parent).await?;
    let mut problem = "it is the first one".to_owned();
    if found.is_none() && repository.is_shallow().await? {
        problem = match repository.fetch_commit(head, depth.saturating_add(2)).await {
            Ok(()) => "the remote gave none".to_owned(),
            Err(failure) => failure.to_string(),
        };
        problem += SHALLOW;
        found = repository.commit(&first_parent).await?;
    }
    Ok(match found {
        Some(base) => {
            let told = format!("the base is {}, the first parent of the commit that is checked out", short(&base));
            Ok((base, told))
        }
        None => Err(format!("the commit {} has no parent here: {problem}", short(head))),
    })
}

/// What helps a clone that holds a part of the history only.
const SHALLOW: &str = "; write `fetch-depth: 0` under `with:` of the checkout step";

/// The commit that a revision names, asked of the remote where this clone does not have it.
async fn wanted(repository: &Repository, revision: &str, depth: u32) -> Result<Result<String, String>, GitFailure> {
    if let Some(found) = repository.commit(revision).await? {
        return Ok(Ok(found));
    }
    if !is_commit(revision) {
        return Ok(Err("names no commit of this repository; write a commit, a branch or a tag that it has".to_owned()));
    }
    if !repository.has_remote().await? {
        return Ok(Err("is not in this clone, which has no remote `origin` to ask".to_owned()));
    }
    if let Err(failure) = repository.fetch_commit(revision, depth.saturating_add(1)).await {
        return Ok(Err(format!("is not in this clone, and the remote does not give it: {failure}{SHALLOW}")));
    }
    Ok(repository.commit(revision).await?.ok_or_else(|| format!("is not in this clone{SHALLOW}")))
}

/// The base, then where the head left its line, then the first parents behind that.
async fn candidates(repository: &Repository, head: &str, base: &str, depth: u32) -> Result<Vec<Candidate>, GitFailure> {
    let mut candidates = vec![Candidate { commit: base.to_owned(), why: Why::ExactBase }];
    let merge_base = repository.merge_base(head, base).await?.filter(|commit| commit != head && commit != base);
    let from = merge_base.as_deref().unwrap_or(base);
    if merge_base.is_some() {
        candidates.push(Candidate { commit: from.to_owned(), why: Why::MergeBase });
    }
    let mut ancestors = repository.ancestors(from, depth).await?;
    if ancestors.len() < depth as usize && repository.is_shallow().await? && repository.has_remote().await? {
        // A line that stays short is told by what the stores answer; the run itself goes on.
        drop(repository.fetch_commit(from, depth.saturating_add(1)).await);
        ancestors = repository.ancestors(from, depth).await?;
    }
    let behind = ancestors.into_iter().zip(1..);
    candidates.extend(behind.map(|(commit, distance)| Candidate { commit, why: Why::Ancestor { distance } }));
    Ok(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const ZERO: &str = "0000000000000000000000000000000000000000";

    fn stated(flag: Option<&str>, variables: &[(&str, &str)]) -> Stated {
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Stated::read(flag, variable).unwrap()
    }

    /// Names and places as in GitHub's documentation of webhook events.
    #[test]
    fn an_event_of_github_names_the_base() {
        let pull =
            serde_json::json!({ "pull_request": { "base": { "sha": A } }, "repository": { "default_branch": "main" } });
        let group = serde_json::json!({ "merge_group": { "base_sha": A }, "repository": { "default_branch": "main" } });
        let push = serde_json::json!({ "before": A, "repository": { "default_branch": "main" } });
        let new = serde_json::json!({ "before": ZERO, "repository": { "default_branch": "main" } });
        let nightly = serde_json::json!({ "schedule": "0 3 * * *", "repository": { "default_branch": "main" } });
        for (name, event, reference, base, on_default) in [
            ("pull_request", &pull, "refs/pull/7/merge", Some(A), Some(false)),
            ("pull_request_target", &pull, "refs/heads/main", Some(A), Some(false)),
            ("merge_group", &group, "refs/heads/gh-readonly-queue/main/pr-7", Some(A), Some(false)),
            ("push", &push, "refs/heads/main", Some(A), Some(true)),
            ("push", &push, "refs/heads/topic", None, Some(false)),
            ("push", &new, "refs/heads/topic", None, Some(false)),
            ("schedule", &nightly, "refs/heads/main", None, Some(true)),
        ] {
            let found = Stated::of_github(name, event, Some(reference));
            assert_eq!(
                (found.revision.as_deref(), found.on_default_branch, found.by_hand),
                (base, on_default, false),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_named_by_hand_comes_first() {
        let gitlab = [("CI_MERGE_REQUEST_DIFF_BASE_SHA", A), ("CI_DEFAULT_BRANCH", "main")];
        assert_eq!(stated(None, &gitlab).revision.as_deref(), Some(A));
        assert_eq!(stated(None, &gitlab).on_default_branch, Some(false));
        let both = [gitlab[0], ("GOODPUT_BASE", "v1")];
        assert_eq!(stated(None, &both).revision.as_deref(), Some("v1"));
        assert_eq!(stated(Some("v2"), &both).revision.as_deref(), Some("v2"));
        assert!(stated(Some("v2"), &both).by_hand);
        assert_eq!(stated(None, &[("GOODPUT_BASE", "")]), Stated::default());
        assert_eq!(
            stated(None, &[("CI_COMMIT_BRANCH", "main"), ("CI_DEFAULT_BRANCH", "main")]).on_default_branch,
            Some(true)
        );
    }

    #[test]
    fn an_event_that_cannot_be_read_is_told() {
        let told = Stated::read(None, |name| (name == "GITHUB_EVENT_PATH").then(|| "/nowhere/event.json".to_owned()));
        assert!(told.unwrap_err().contains("/nowhere/event.json"));
    }
}
