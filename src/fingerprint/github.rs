//! What a workflow of GitHub Actions knows of itself: its variables, and the event that started it.

use serde_json::Value;

use super::origin::{Pipeline, commit_id, digits, project};
use super::plain;
use crate::github::read_event;

/// The run of the workflow; `None` where this is none.
pub(super) fn pipeline(variable: &dyn Fn(&str) -> Option<String>) -> Option<Pipeline> {
    variable("GITHUB_ACTIONS").filter(|text| text == "true")?;
    let value = |name: &str| variable(name).as_deref().and_then(plain);
    let event = variable("GITHUB_EVENT_PATH").and_then(|path| read_event(&path).ok()).unwrap_or_default();
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).and_then(plain);
    let name = value("GITHUB_EVENT_NAME");
    let is_change = name.as_deref().is_some_and(|name| name.starts_with("pull_request"));
    let head = text("/pull_request/head/sha").and_then(|id| commit_id(&id));
    let repository = value("GITHUB_REPOSITORY").and_then(project);
    let run_id = value("GITHUB_RUN_ID").and_then(digits);
    Some(Pipeline {
        commit: value("GITHUB_SHA").and_then(|id| commit_id(&id)),
        // With `pull_request_target` the workflow's own commit is the base, and serving that serves no change.
        change: head.clone().filter(|_| name.as_deref() == Some("pull_request")),
        other: head,
        branch: value("GITHUB_HEAD_REF").filter(|_| is_change).or_else(|| value("GITHUB_REF_NAME")),
        is_branch: !is_change && value("GITHUB_REF_TYPE").as_deref() != Some("tag"),
        default_branch: text("/repository/default_branch"),
        event: name,
        run_url: run_url(value("GITHUB_SERVER_URL"), repository.as_deref(), run_id.as_deref()),
        repository,
        run_id,
        run_attempt: value("GITHUB_RUN_ATTEMPT").and_then(digits),
    })
}

fn run_url(server: Option<String>, repository: Option<&str>, run_id: Option<&str>) -> Option<String> {
    let server = super::origin::address(server?)?;
    Some(format!("{}/{}/actions/runs/{}", server.trim_end_matches('/'), repository?, run_id?))
}
