//! Where a workflow of GitHub Actions lets a result be published.

use std::path::PathBuf;

use url::Url;

use super::event::{self, Event, commit_id};
use super::marker::Age;
use crate::github::{Failure, Site};

/// The permission of a comment, as a workflow writes it.
pub(super) const COMMENT: &str = "`permissions: { pull-requests: write }`";

/// What is told when the environment lacks the event.
const NO_EVENT: &str =
    "GITHUB_EVENT_NAME is not set: it is not known whether a comment is due; pass the variables of the job on";

/// What is said in its place of a pull request whose token may only read.
const READ_ONLY: &str = "a second workflow that comments, on `workflow_run` (docs/github.md): the token of a pull request from a \
    fork or of Dependabot may only read";

/// What the environment of a workflow says.
#[derive(Debug)]
pub struct Context {
    /// Why nothing can be published at all.
    pub(super) no_workflow: Option<String>,
    /// What is missing in a workflow that should be there.
    pub(super) problems: Vec<String>,
    pub(super) event: Event,
    /// The name of the event.
    pub(super) event_name: String,
    /// The API with a token, or why there is none.
    pub(super) site: Result<Site, Failure>,
    /// The commit that was analysed.
    pub(super) commit: Option<String>,
    /// The run that measured.
    pub(super) age: Option<Age>,
    /// Its page.
    pub(super) run_url: Option<String>,
    /// Whether the token may only read, whatever the workflow grants it.
    pub(super) is_read_only: bool,
    /// Where the job summary is written.
    pub(super) summary: Option<PathBuf>,
    /// Where the step's outputs are written.
    pub(super) output: Option<PathBuf>,
}

impl Context {
    /// What the environment says; `variable` reads it.
    pub fn from_environment(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let no_workflow = (set("GITHUB_ACTIONS").as_deref() != Some("true")).then(|| {
            "nothing was published: this is no workflow of GitHub Actions (GITHUB_ACTIONS is not `true`); the run's folder has \
             summary.md, note.md and junit.xml for any other place"
                .to_owned()
        });
        let event_name = set("GITHUB_EVENT_NAME").unwrap_or_default();
        let path = set("GITHUB_EVENT_PATH");
        let event = event::event(&event_name, path.as_deref());
        let workflow_commit = set("GITHUB_SHA").and_then(|text| commit_id(text.trim()));
        let commit = match &event {
            Event::Pull(pull) => Some(pull.head.clone()),
            Event::Followed(followed) => Some(followed.head.clone()),
            Event::NoPull => event::commit(&event_name, path.as_deref()).or(workflow_commit),
            // What the workflow ran at is another commit then, and nothing was measured at it.
            Event::Unfit(_) => None,
        };
        // The token of a pull request from a fork may only read, unless the workflow runs with the base's rights.
        let is_stranger = matches!(&event, Event::Pull(pull) if pull.is_fork)
            || set("GITHUB_ACTOR").as_deref() == Some("dependabot[bot]");
        let is_read_only = is_stranger && event_name != "pull_request_target";
        let permission = if is_read_only { READ_ONLY } else { COMMENT };
        let file = |name: &str| set(name).map(PathBuf::from);
        let mut context = Self {
            no_workflow,
            problems: event_name.is_empty().then(|| NO_EVENT.to_owned()).into_iter().collect(),
            is_read_only,
            event,
            event_name,
            site: Site::from_environment(variable, permission),
            commit,
            age: number(set("GITHUB_RUN_ID")).zip(number(set("GITHUB_RUN_ATTEMPT"))).map(age),
            run_url: run_url(&set),
            summary: file("GITHUB_STEP_SUMMARY"),
            output: file("GITHUB_OUTPUT"),
        };
        context.follow();
        context
    }

    /// Whether there is a workflow to publish in.
    pub fn is_workflow(&self) -> bool {
        self.no_workflow.is_none()
    }

    /// Whether the workflow goes on after another one's run, whose result is the word of whoever wrote the change.
    pub fn follows_another_run(&self) -> bool {
        self.event_name == "workflow_run"
    }

    /// The run that measured is the one that was followed, and not the one that publishes.
    fn follow(&mut self) {
        let Event::Followed(followed) = &self.event else { return };
        self.age = followed.age;
        let is_page = |url: &String| Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "https" | "http"));
        self.run_url = followed.run_url.clone().filter(is_page);
    }
}

fn age((run, attempt): (u64, u64)) -> Age {
    Age { run, attempt }
}

fn number(text: Option<String>) -> Option<u64> {
    text?.trim().parse().ok()
}

/// The page of the workflow's run.
fn run_url(set: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut url = Url::parse(&set("GITHUB_SERVER_URL")?).ok()?;
    let (repository, run) = (set("GITHUB_REPOSITORY")?, number(set("GITHUB_RUN_ID"))?.to_string());
    let mut path = url.path_segments_mut().ok()?;
    path.pop_if_empty().extend(repository.split('/')).extend(["actions", "runs", &run]);
    if let Some(attempt) = number(set("GITHUB_RUN_ATTEMPT")) {
        path.extend(["attempts", &attempt.to_string()]);
    }
    drop(path);
    Some(url.into())
}
