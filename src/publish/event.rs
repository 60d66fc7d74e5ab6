//! What started the workflow, and which pull request and commit it is about.

use serde_json::Value;

use super::marker::Age;
use crate::github::read_event;

/// What an event is about, as far as publishing goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// One pull request.
    Pull(Pull),
    /// The end of another workflow's run for a pull request, which is still to be found.
    Followed(Followed),
    /// No single pull request, so that no comment is due.
    NoPull,
    /// A pull request, but nothing that a comment could be about; says why.
    Unfit(String),
}

/// A pull request that an event names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pull {
    pub(super) number: u64,
    /// The commit that was analysed.
    pub(super) head: String,
    /// Whether it comes from another repository.
    pub(super) is_fork: bool,
}

/// A run of another workflow that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Followed {
    pub(super) head: String,
    /// The repository and the branch that the commit was in.
    pub(super) repository: String,
    pub(super) owner: String,
    pub(super) branch: String,
    /// The run itself, which measured; `None` where the event does not say.
    pub(super) age: Option<Age>,
    pub(super) run_url: Option<String>,
}

/// What the event of that name says.
pub(super) fn event(name: &str, path: Option<&str>) -> Event {
    let is_about_pulls = name.starts_with("pull_request") || name == "workflow_run";
    match name {
        "issue_comment" => {
            return Event::Unfit("`issue_comment` names no commit that a comment could be about".to_owned());
        }
        _ if !is_about_pulls => return Event::NoPull,
        _ => {}
    }
    let said = match path.map(read_event).unwrap_or_else(|| Err("GITHUB_EVENT_PATH is not set".to_owned())) {
        Ok(said) => said,
        Err(problem) => return Event::Unfit(format!("the event `{name}` cannot be read: {problem}")),
    };
    match name {
        "workflow_run" => followed(&said),
        _ => pull(&said),
    }
    .unwrap_or_else(|| Event::Unfit(format!("the event `{name}` names no pull request and commit")))
}

/// The commit of an event without a pull request, where it is another than the one that the workflow runs at.
pub(super) fn commit(name: &str, path: Option<&str>) -> Option<String> {
    let pointer = match name {
        "merge_group" => "/merge_group/head_sha",
        "workflow_run" => "/workflow_run/head_sha",
        _ => return None,
    };
    commit_id(text(&read_event(path?).ok()?, pointer)?)
}

fn pull(said: &Value) -> Option<Event> {
    let base = text(said, "/pull_request/base/repo/full_name")?;
    // The repository of a fork that was deleted is `null`.
    let is_fork = text(said, "/pull_request/head/repo/full_name") != Some(base);
    Some(Event::Pull(Pull {
        number: said.pointer("/pull_request/number")?.as_u64()?,
        head: commit_id(text(said, "/pull_request/head/sha")?)?,
        is_fork,
    }))
}

fn followed(said: &Value) -> Option<Event> {
    let of = |name: &str| said.pointer("/workflow_run")?.get(name);
    // What a push or a schedule started is about no pull request.
    if !of("event")?.as_str()?.starts_with("pull_request") {
        return Some(Event::NoPull);
    }
    let number = |name: &str| of(name).and_then(Value::as_u64);
    let age = number("id").zip(number("run_attempt")).map(|(run, attempt)| Age { run, attempt });
    Some(Event::Followed(Followed {
        head: commit_id(of("head_sha")?.as_str()?)?,
        repository: text(said, "/workflow_run/head_repository/full_name")?.to_owned(),
        owner: text(said, "/workflow_run/head_repository/owner/login")?.to_owned(),
        branch: of("head_branch")?.as_str()?.to_owned(),
        age,
        run_url: of("html_url").and_then(Value::as_str).map(str::to_owned),
    }))
}

fn text<'a>(said: &'a Value, pointer: &str) -> Option<&'a str> {
    said.pointer(pointer)?.as_str()
}

/// All digits of a commit's name, in lower case: SHA-1 has 40 of them, SHA-256 64.
pub(super) fn commit_id(text: &str) -> Option<String> {
    let is_id = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase())
}
