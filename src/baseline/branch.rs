//! The store `branch`: a branch without common history, to which every record adds one file. Nothing is ever changed there, so
//! that whoever pushes at the same time is in nobody's way.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::git::{Entry, GitFailure, Push, Repository, is_commit, too_large};
use super::slug::slug;
use super::{Answer, Found, LARGEST_RECORD, Store, StoreFailure, file, fit};
use crate::record::BaselineRecord;

/// How often a record is pushed when others push at the same time.
const MOST_TRIES: u32 = 10;
/// The longest pause before the second try; it doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause at all.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// A branch of records on `origin`, or of this repository where there is no remote.
#[derive(Debug, Clone)]
pub struct BranchStore {
    repository: Repository,
    branch: String,
}

/// The branch as it stands now.
struct Tip {
    /// Its newest commit; `None` before the first record.
    commit: Option<String>,
    /// Whether it lies on the remote.
    is_remote: bool,
}

impl BranchStore {
    /// A branch that is asked from a repository.
    pub fn new(repository: Repository, branch: String) -> Self {
        Self { repository, branch }
    }

    /// Where the branch of the remote is kept here: no branch of anybody's.
    fn kept(&self) -> String {
        format!("refs/goodput/{}", self.branch)
    }

    /// Looks where the branch stands, and brings its files here.
    async fn tip(&self) -> Result<Tip, StoreFailure> {
        if !self.repository.has_remote().await? {
            let commit = self.repository.commit(&format!("refs/heads/{}", self.branch)).await?;
            return Ok(Tip { commit, is_remote: false });
        }
        let Some(tip) = self.repository.remote_tip(&self.branch).await.map_err(|failure| self.unreachable(&failure))?
        else {
            return match self.repository.commit(&self.kept()).await? {
                Some(_) => Err(self.rewritten("is gone from origin")),
                None => Ok(Tip { commit: None, is_remote: true }),
            };
        };
        if self.repository.commit(&self.kept()).await?.as_ref() != Some(&tip) {
            self.fetch().await?;
        }
        // Somebody may have pushed since the tip was asked for.
        let commit = self.repository.commit(&self.kept()).await?;
        Ok(Tip { commit, is_remote: true })
    }

    async fn fetch(&self) -> Result<(), StoreFailure> {
        // The newest commit has every record. A clone that is whole stays whole, and sees whether history was rewritten.
        let depth = self.repository.is_shallow().await?.then_some(1);
        self.repository.fetch_branch(&self.branch, &self.kept(), depth).await.map_err(|failure| {
            match failure.to_string().contains("non-fast-forward") {
                true => self.rewritten("was rewritten on origin"),
                false => self.unreachable(&failure),
            }
        })
    }

    fn rewritten(&self, how: &str) -> StoreFailure {
        StoreFailure::Unavailable(format!(
            "the branch `{}` {how} since it was last read here, so that records may be lost; restore it, or write `git update-ref -d {}` when that was meant",
            self.branch,
            self.kept()
        ))
    }

    fn unreachable(&self, failure: &GitFailure) -> StoreFailure {
        StoreFailure::Unavailable(format!(
            "the branch `{}` of origin cannot be read: {failure}; see that the checkout step keeps its credentials and that the remote answers",
            self.branch
        ))
    }

    /// Every record file of a contract, as the branch has them.
    async fn files(&self, contract: &str) -> Result<Vec<Entry>, StoreFailure> {
        match self.tip().await?.commit {
            Some(tip) => Ok(self.repository.files_under(&tip, &folder(contract)).await?),
            None => Ok(Vec::new()),
        }
    }

    /// Reads a record and holds it against the path that it is filed under.
    async fn read(&self, entry: &Entry) -> Result<Found, StoreFailure> {
        let place = format!("the branch `{}`, {}", self.branch, entry.path);
        let corrupt = |problem: String| StoreFailure::Corrupt { place: place.clone(), problem };
        match entry.size {
            Some(size) if size <= LARGEST_RECORD => {}
            Some(size) => return Err(corrupt(too_large(size, LARGEST_RECORD))),
            None => return Err(corrupt("is no file".to_owned())),
        }
        let text = self.repository.content(&entry.object).await?;
        let found = file::found(&text, place.clone())?;
        if path_of(&found.record).as_deref() != Ok(entry.path.as_str()) {
            return Err(corrupt("is filed under another contract, commit or digest than it names".to_owned()));
        }
        Ok(found)
    }

    async fn keep(&self, record: &BaselineRecord) -> Result<String, StoreFailure> {
        let path = path_of(record).map_err(StoreFailure::Unavailable)?;
        let place = format!("the branch `{}`, {path}", self.branch);
        let text = serde_json::to_vec(record)
            .map_err(|error| StoreFailure::Unavailable(format!("the baseline cannot be written: {error}")))?;
        let mut last = None;
        for attempt in 0..MOST_TRIES {
            pause(attempt).await;
            let tip = self.tip().await?;
            if self.has(&tip, &path).await? {
                return Ok(place);
            }
            let message = format!("Keep a baseline of {}\n\nat {}", record.name, path);
            let commit = self.repository.commit_file(tip.commit.as_deref(), &path, &text, &message).await?;
            match self.publish(&tip, &commit).await {
                Ok(()) => return Ok(place),
                Err(failure) if !self.lost_a_race(&tip, &failure).await? => return Err(self.refused(&failure)),
                Err(failure) => last = Some(failure),
            }
        }
        let last = last.map(|failure| failure.to_string()).unwrap_or_default();
        Err(StoreFailure::Unavailable(format!(
            "the branch `{}` moved {MOST_TRIES} times while the record was pushed: {last}; run the step again",
            self.branch
        )))
    }

    async fn has(&self, tip: &Tip, path: &str) -> Result<bool, StoreFailure> {
        let Some(commit) = &tip.commit else { return Ok(false) };
        Ok(!self.repository.files_under(commit, path).await?.is_empty())
    }

    async fn publish(&self, tip: &Tip, commit: &str) -> Result<(), GitFailure> {
        let expected = tip.commit.as_deref();
        if tip.is_remote {
            return self.repository.push(&Push { commit, branch: &self.branch, expected }).await;
        }
        self.repository.move_ref(&format!("refs/heads/{}", self.branch), commit, expected).await
    }

    /// Whether a push was refused because somebody else was first, or just then at it.
    async fn lost_a_race(&self, tip: &Tip, failure: &GitFailure) -> Result<bool, StoreFailure> {
        const SIGNS: [&str; 6] = [
            "stale info",
            "fetch first",
            "cannot lock ref",
            "failed to update ref",
            "incorrect old value",
            "reference already exists",
        ];
        if SIGNS.iter().any(|sign| failure.0.contains(sign)) {
            return Ok(true);
        }
        if !tip.is_remote {
            return Ok(false);
        }
        let now = self.repository.remote_tip(&self.branch).await.map_err(|failure| self.unreachable(&failure))?;
        Ok(now != tip.commit)
    }

    fn refused(&self, failure: &GitFailure) -> StoreFailure {
        StoreFailure::Unavailable(format!(
            "the branch `{}` cannot be pushed: {failure}; give the job `permissions: contents: write`, and let it push to that branch",
            self.branch
        ))
    }
}

impl Store for BranchStore {
    fn name(&self) -> &'static str {
        "branch"
    }

    fn find<'a>(&'a self, contract: &'a str, commits: &'a [String]) -> Answer<'a, Vec<Found>> {
        Box::pin(async move {
            let files = self.files(contract).await?;
            let of = |commit: &String| {
                let start = format!("{}{commit}/", folder(contract));
                files.iter().filter(move |file| file.path.starts_with(&start))
            };
            let mut found = Vec::new();
            if let Some(commit) = commits.iter().find(|commit| of(commit).next().is_some()) {
                for file in of(commit) {
                    found.push(self.read(file).await?);
                }
            }
            Ok(found)
        })
    }

    fn list<'a>(&'a self, contract: &'a str, most: usize) -> Answer<'a, Vec<Found>> {
        Box::pin(async move {
            let mut newest = Vec::new();
            // No more than `most` are held at a time, however many there are.
            for file in &self.files(contract).await? {
                newest.push(self.read(file).await?);
                newest.sort_by_key(|found| std::cmp::Reverse(fit::ended(&found.record).ok()));
                newest.truncate(most);
            }
            Ok(newest)
        })
    }

    fn put<'a>(&'a self, record: &'a BaselineRecord) -> Answer<'a, String> {
        Box::pin(self.keep(record))
    }
}

impl From<GitFailure> for StoreFailure {
    fn from(failure: GitFailure) -> Self {
        Self::Unavailable(failure.to_string())
    }
}

fn folder(contract: &str) -> String {
    format!("records/{}/", slug(contract))
}

/// Where a record is filed.
fn path_of(record: &BaselineRecord) -> Result<String, String> {
    match record.origin.commit.as_deref().filter(|commit| is_commit(commit)) {
        Some(commit) => Ok(format!("{}{commit}/{}.json", folder(&record.name), record.digest)),
        None => Err("the record names no commit to be filed under; name it with `--commit`".to_owned()),
    }
}

/// Waits before a further try, by chance up to a limit that doubles, so that two who met do not meet again.
async fn pause(attempt: u32) {
    if attempt == 0 {
        return;
    }
    let limit = FIRST_PAUSE.saturating_mul(1 << attempt.min(16)).min(LONGEST_PAUSE);
    let chance = RandomState::new().hash_one(attempt) as f64 / u64::MAX as f64;
    tokio::time::sleep(limit.mul_f64(chance)).await;
}
