//! The store `artifact`: what green workflow runs of the default branch uploaded.
//!
//! It needs no right to write anything and ties the numbers to a run, at the price that artifacts expire. An artifact counts
//! only when its run ended in success, on the default branch of this very repository, and was started by nothing that a pull
//! request has a hand in: else a pull request could bring its own bar along.
//!
//! A run that is still measuring the base is not waited for: the nearest ancestor with a record is taken, and the report says so.

mod archive;

use std::time::Duration;

use serde::Deserialize;

use super::{Answer, Found, LARGEST_RECORD, MOST_AT_COMMIT, Store, StoreFailure};
use crate::github::{Allowance, Archive, Failure, Matter, Session, Site};
use crate::record::BaselineRecord;

/// Events that start a workflow with the code of the default branch alone. `workflow_run` is none of them: it may carry on what a
/// pull request from a fork began.
const TRUSTED_EVENTS: [&str; 4] = ["push", "schedule", "workflow_dispatch", "repository_dispatch"];

/// What one question may cost.
const ALLOWANCE: Allowance = Allowance { requests: 60, longest_wait: Duration::from_secs(20) };

/// The permission that everything here needs, as a workflow writes it.
const PERMISSION: &str = "`permissions: { contents: read, actions: read }`";

/// The next step where the token has no right.
const RIGHT: &str = "give the job `permissions: { contents: read, actions: read }`, and in the contract see that `workflow` is \
                     the name of a workflow file";

/// What is asked for, in messages.
fn about(what: &str) -> Matter<'_> {
    Matter { what, right: RIGHT }
}

/// The most records that one listing reads; each costs three requests.
const MOST_LISTED: usize = 25;

/// Artifacts of a repository on GitHub, or on a GitHub Enterprise Server.
#[derive(Debug)]
pub struct Artifacts {
    site: Site,
    /// The artifact's name.
    name: String,
    /// The workflow's file name, when only its runs count.
    workflow: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Repository {
    id: u64,
    default_branch: String,
}

#[derive(Debug, Deserialize)]
struct Runs {
    workflow_runs: Vec<Run>,
}

/// What the choice reads of a workflow run; of a fork that is gone there is no `head_repository`.
#[derive(Debug, Deserialize)]
struct Run {
    id: u64,
    head_branch: Option<String>,
    head_sha: String,
    event: String,
    conclusion: Option<String>,
    /// The workflow's file in the repository, followed by `@` and a branch in some answers.
    path: String,
    html_url: String,
    head_repository: Option<RunRepository>,
}

#[derive(Debug, Deserialize)]
struct RunRepository {
    id: u64,
}

#[derive(Debug, Deserialize)]
struct Listing {
    artifacts: Vec<Artifact>,
}

#[derive(Debug, Deserialize)]
struct Artifact {
    id: u64,
    name: String,
    size_in_bytes: u64,
    expired: bool,
    expires_at: Option<String>,
    workflow_run: Option<ArtifactRun>,
}

#[derive(Debug, Deserialize)]
struct ArtifactRun {
    id: Option<u64>,
    head_branch: Option<String>,
}

/// What became of one artifact.
enum Read {
    Record(Box<Found>),
    /// It is gone; says until when it was kept.
    Expired(String),
    /// It holds the record of another contract, or of something else than the run's commit.
    Other,
}

impl Artifacts {
    /// The artifacts of the repository that the environment of a GitHub workflow names; nothing is asked yet.
    ///
    /// # Errors
    /// When the environment names no repository or has no token.
    pub fn from_environment(name: &str, workflow: Option<&str>) -> Result<Self, StoreFailure> {
        let site = Site::from_environment(&|name| std::env::var(name).ok(), PERMISSION);
        let site = site.map_err(|failure| StoreFailure::Unavailable(format!("{failure}, or list another store")))?;
        Ok(Self::at(site, name, workflow))
    }

    /// The artifacts of that name at `site`.
    pub fn at(site: Site, name: &str, workflow: Option<&str>) -> Self {
        Self { site, name: name.to_owned(), workflow: workflow.map(str::to_owned) }
    }

    async fn find_all(&self, contract: &str, commits: &[String]) -> Result<Vec<Found>, StoreFailure> {
        let mut session = self.site.session(ALLOWANCE)?;
        let repository = self.repository(&mut session).await?;
        let mut expired = Vec::new();
        for (asked, commit) in commits.iter().enumerate() {
            let looked = self.at_commit(&mut session, &repository, contract, commit, &mut expired).await;
            let mut found = looked.map_err(|failure| far(failure, &session, asked, commits.len()))?;
            if let Some(note) = expired.first() {
                found.iter_mut().for_each(|found| found.place.push_str(&format!(" ({note})")));
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        match expired.first() {
            None => Ok(Vec::new()),
            Some(note) => Err(StoreFailure::Unavailable(format!(
                "{note}, and no commit before has one; measure the base again, or list a store that keeps records for longer \
                 (`branch`, `s3`, `file`)"
            ))),
        }
    }

    /// The records that the newest green runs at a commit uploaded; GitHub lists the newest run first.
    async fn at_commit(
        &self,
        session: &mut Session<'_>,
        repository: &Repository,
        contract: &str,
        commit: &str,
        expired: &mut Vec<String>,
    ) -> Result<Vec<Found>, StoreFailure> {
        let mut found = Vec::new();
        for run in self.runs_at(session, commit).await? {
            if found.len() >= MOST_AT_COMMIT {
                break;
            }
            if !self.counts(&run, repository) || run.head_sha != commit {
                continue;
            }
            for artifact in self.artifacts_of(session, &run).await? {
                match self.read(session, contract, &run, &artifact).await? {
                    Read::Record(record) => found.push(*record),
                    Read::Expired(note) => expired.push(note),
                    Read::Other => {}
                }
            }
        }
        Ok(found)
    }

    async fn repository(&self, session: &mut Session<'_>) -> Result<Repository, StoreFailure> {
        Ok(session.json(&[], &[], &about("for the repository")).await?)
    }

    async fn runs_at(&self, session: &mut Session<'_>, commit: &str) -> Result<Vec<Run>, StoreFailure> {
        let query =
            [("head_sha", commit), ("status", "success"), ("exclude_pull_requests", "true"), ("per_page", "100")];
        let runs: Runs = match &self.workflow {
            None => session.json(&["actions", "runs"], &query, &about("for workflow runs")).await?,
            Some(workflow) => {
                let what = format!("for runs of the workflow `{workflow}`");
                session.json(&["actions", "workflows", workflow, "runs"], &query, &about(&what)).await?
            }
        };
        Ok(runs.workflow_runs)
    }

    async fn artifacts_of(&self, session: &mut Session<'_>, run: &Run) -> Result<Vec<Artifact>, StoreFailure> {
        let run = run.id.to_string();
        let query = [("name", self.name.as_str()), ("per_page", "100")];
        let matter = about("for artifacts of a workflow run");
        let listing: Listing = session.json(&["actions", "runs", &run, "artifacts"], &query, &matter).await?;
        Ok(newest_first(listing.artifacts.into_iter().filter(|artifact| artifact.name == self.name)))
    }

    /// Whether the default branch of this repository alone decided what ran. Everything that was asked for is looked at again: a
    /// server that ignores a parameter must not let a record in.
    fn counts(&self, run: &Run, repository: &Repository) -> bool {
        let branch = run.head_branch.as_deref().unwrap_or_default();
        let is_on_default = branch == repository.default_branch && TRUSTED_EVENTS.contains(&run.event.as_str());
        // A merge queue measures the very commit that then becomes the branch's head.
        let queue = format!("gh-readonly-queue/{}/", repository.default_branch);
        let is_queued = run.event == "merge_group" && branch.starts_with(&queue);
        run.conclusion.as_deref() == Some("success")
            && (is_on_default || is_queued)
            && run.head_repository.as_ref().is_some_and(|head| head.id == repository.id)
            && self.workflow.as_ref().is_none_or(|workflow| run.is_of(workflow))
    }

    async fn read(
        &self,
        session: &mut Session<'_>,
        contract: &str,
        run: &Run,
        artifact: &Artifact,
    ) -> Result<Read, StoreFailure> {
        let place = format!("{}, artifact `{}`", run.html_url, self.name);
        let corrupt = |problem: String| StoreFailure::Corrupt { place: place.clone(), problem };
        if artifact.expired {
            return Ok(Read::Expired(self.expiry(run, artifact)));
        }
        if artifact.size_in_bytes > LARGEST_RECORD {
            return Err(corrupt(too_large(artifact.size_in_bytes)));
        }
        let id = artifact.id.to_string();
        let bytes = match session
            .archive(&["actions", "artifacts", &id, "zip"], LARGEST_RECORD, &about("for an artifact"))
            .await?
        {
            Archive::Bytes(bytes) => bytes,
            Archive::Gone => return Ok(Read::Expired(self.expiry(run, artifact))),
            Archive::TooLarge(bytes) => return Err(corrupt(too_large(bytes))),
        };
        let text = archive::record_of(&bytes).map_err(corrupt)?;
        let record = BaselineRecord::parse(&text).map_err(corrupt)?;
        let is_wanted = record.name == contract && record.origin.commit.as_ref() == Some(&run.head_sha);
        Ok(if is_wanted { Read::Record(Box::new(Found { record, place })) } else { Read::Other })
    }

    fn expiry(&self, run: &Run, artifact: &Artifact) -> String {
        let commit = run.head_sha.get(..7).unwrap_or(&run.head_sha);
        let day = artifact.expires_at.as_deref().and_then(|time| time.get(..10));
        let when = day.map_or_else(String::new, |day| format!(" on {day}"));
        format!("the artifact `{}` of commit {commit} expired{when}", self.name)
    }

    async fn newest(&self, contract: &str, most: usize) -> Result<Vec<Found>, StoreFailure> {
        let mut session = self.site.session(ALLOWANCE)?;
        let repository = self.repository(&mut session).await?;
        let query = [("name", self.name.as_str()), ("per_page", "100")];
        let listing: Listing = session.json(&["actions", "artifacts"], &query, &about("for artifacts")).await?;
        let mut found = Vec::new();
        for artifact in newest_first(listing.artifacts.into_iter().filter(|artifact| artifact.name == self.name)) {
            if found.len() >= most.min(MOST_LISTED) {
                break;
            }
            let Some(id) = run_of(&artifact, &repository) else { continue };
            let run: Run =
                session.json(&["actions", "runs", &id.to_string()], &[], &about("for a workflow run")).await?;
            if self.counts(&run, &repository)
                && let Read::Record(record) = self.read(&mut session, contract, &run, &artifact).await?
            {
                found.push(*record);
            }
        }
        Ok(found)
    }
}

impl Run {
    /// Whether it is a run of the workflow in that file.
    fn is_of(&self, workflow: &str) -> bool {
        let path = self.path.split('@').next().unwrap_or_default();
        path.rsplit('/').next() == Some(workflow)
    }
}

impl Store for Artifacts {
    fn name(&self) -> &'static str {
        "artifact"
    }

    fn find<'a>(&'a self, contract: &'a str, commits: &'a [String]) -> Answer<'a, Vec<Found>> {
        Box::pin(self.site.in_time(self.find_all(contract, commits)))
    }

    fn list<'a>(&'a self, contract: &'a str, most: usize) -> Answer<'a, Vec<Found>> {
        Box::pin(self.site.in_time(self.newest(contract, most)))
    }

    fn put<'a>(&'a self, _record: &'a BaselineRecord) -> Answer<'a, String> {
        let text = format!(
            "an artifact can only be uploaded by a step of the workflow itself: write the record to baseline.json with \
             `goodput baseline save`, and upload that file with actions/upload-artifact under the name `{}`",
            self.name
        );
        Box::pin(async { Err(StoreFailure::Unavailable(text)) })
    }
}

/// The run of an artifact that may count, before that run itself is asked for: a merge queue's branch is looked at there.
fn run_of(artifact: &Artifact, repository: &Repository) -> Option<u64> {
    let run = artifact.workflow_run.as_ref()?;
    let branch = run.head_branch.as_deref()?;
    let may_count = branch == repository.default_branch || branch.starts_with("gh-readonly-queue/");
    if may_count && !artifact.expired { run.id } else { None }
}

/// Artifacts are numbered in the order in which they come.
fn newest_first(artifacts: impl Iterator<Item = Artifact>) -> Vec<Artifact> {
    let mut artifacts: Vec<Artifact> = artifacts.collect();
    artifacts.sort_by_key(|artifact| std::cmp::Reverse(artifact.id));
    artifacts
}

/// A question that was given up says how far it came.
fn far(failure: StoreFailure, session: &Session<'_>, asked: usize, wanted: usize) -> StoreFailure {
    if !session.is_spent() {
        return failure;
    }
    StoreFailure::Unavailable(format!(
        "gave up after {} requests, with {asked} of {wanted} commits looked at; name the `workflow` that uploads the artifact, or \
         lower `within.commits`",
        ALLOWANCE.requests
    ))
}

fn too_large(bytes: u64) -> String {
    format!(
        "has more than {} MiB ({bytes} bytes): it is no baseline record; upload baseline.json alone under this name",
        LARGEST_RECORD >> 20
    )
}

impl From<Failure> for StoreFailure {
    fn from(failure: Failure) -> Self {
        Self::Unavailable(failure.to_string())
    }
}
