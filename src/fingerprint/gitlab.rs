//! What a pipeline of GitLab knows of itself: its predefined variables.

use super::origin::{Pipeline, address, commit_id, digits, project};
use super::plain;

/// The pipeline; `None` where this is none.
pub(super) fn pipeline(variable: &dyn Fn(&str) -> Option<String>) -> Option<Pipeline> {
    variable("GITLAB_CI").filter(|text| text == "true")?;
    let value = |name: &str| variable(name).as_deref().and_then(plain);
    let event = value("CI_PIPELINE_SOURCE");
    let is_change = event.as_deref() == Some("merge_request_event");
    // Set in a merged-results pipeline alone, which runs at a merge that GitLab makes for it.
    let head = value("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA").and_then(|id| commit_id(&id)).filter(|_| is_change);
    let source = value("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME").filter(|_| is_change);
    Some(Pipeline {
        commit: value("CI_COMMIT_SHA").and_then(|id| commit_id(&id)),
        change: head.clone(),
        other: head,
        branch: source.or_else(|| value("CI_COMMIT_REF_NAME")),
        is_branch: !is_change && value("CI_COMMIT_TAG").is_none(),
        default_branch: value("CI_DEFAULT_BRANCH"),
        event,
        repository: value("CI_PROJECT_PATH").and_then(project),
        run_id: value("CI_PIPELINE_ID").and_then(digits),
        run_attempt: None,
        run_url: value("CI_PIPELINE_URL").and_then(address),
    })
}
