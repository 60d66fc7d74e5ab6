//! Repositories as people and CI have them, made by the tests, and records to keep in them.

use std::path::{Path, PathBuf};
use std::process::Command;

use goodput::baseline::{Question, Stated, choose};
use goodput::contract::{Loaded, Plan, parse};
use goodput::record::{BaselineRecord, BaselineUse, Fingerprint, Origin};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use crate::records;

/// When the run under test begins.
pub(crate) fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

/// Runs git in a folder, set up for nobody, at a fixed time.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", "-c", "gc.auto=0"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Somebody")
        .env("GIT_AUTHOR_EMAIL", "somebody@example.org")
        .env("GIT_COMMITTER_NAME", "Somebody")
        .env("GIT_COMMITTER_EMAIL", "somebody@example.org")
        .env("GIT_AUTHOR_DATE", "2026-11-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-11-01T00:00:00Z")
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A bare `origin` and one clone that was pushed from.
pub(crate) struct Scene {
    pub(crate) folder: TempDir,
    pub(crate) clone: PathBuf,
}

pub(crate) const CONTRACT: &str = "version: 1\nname: chat\nendpoint: { url: 'http://127.0.0.1:9/v1/chat/completions', protocol: openai-chat, model: m }\n\
    workload: { cases: [{ id: a, prompt: one }], seed: 7 }\ntraffic: { model: constant, loads: [10/s], trial: { requests: 100 } }\n\
    slo: { request: { e2e: 1s }, objectives: [{ metric: e2e, percentile: 95, at_most: 1s }], at_load: 10/s }\n";

/// The contract with a key `baseline`.
pub(crate) fn contract(baseline: &str) -> String {
    format!("{CONTRACT}baseline: {baseline}\n")
}

impl Scene {
    /// With a contract in the folder `gate` of the first commit.
    pub(crate) fn new(baseline: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet", "--bare", "origin.git"]);
        let clone = folder.path().join("clone");
        git(folder.path(), &["clone", "--quiet", &url(folder.path()), "clone"]);
        git(&clone, &["switch", "--quiet", "--orphan", "main"]);
        std::fs::create_dir(clone.join("gate")).unwrap();
        let scene = Self { folder, clone };
        scene.commit("gate/contract.yaml", &contract(baseline));
        git(&scene.clone, &["push", "--quiet", "--set-upstream", "origin", "main"]);
        git(&scene.clone, &["remote", "set-head", "origin", "main"]);
        scene
    }

    /// Commits a file in the clone.
    pub(crate) fn commit(&self, path: &str, content: &str) -> String {
        std::fs::write(self.clone.join(path), content).unwrap();
        git(&self.clone, &["add", "--all"]);
        git(&self.clone, &["commit", "--quiet", "--message", path]);
        self.head()
    }

    /// So many commits, pushed to `main`; the first of them first.
    pub(crate) fn commits(&self, count: usize) -> Vec<String> {
        let commits = (0..count).map(|number| self.commit("code", &format!("{number} {}", self.head()))).collect();
        git(&self.clone, &["push", "--quiet", "origin", "HEAD"]);
        commits
    }

    pub(crate) fn head(&self) -> String {
        git(&self.clone, &["rev-parse", "HEAD"])
    }

    /// Another clone, made with these arguments.
    pub(crate) fn clone_again(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let from = url(self.folder.path());
        let all = [&["clone", "--quiet"], arguments, &[&from, name]].concat();
        git(self.folder.path(), &all);
        self.folder.path().join(name)
    }
}

/// The address of the origin; of a path, git would ignore `--depth`.
pub(crate) fn url(folder: &Path) -> String {
    format!("file://{}/origin.git", folder.display())
}

/// A record that was measured at a commit of the default branch, a day before the run.
pub(crate) fn record(commit: &str) -> BaselineRecord {
    let ended = now() - SignedDuration::from_hours(24);
    let record = records::record("chat", commit, "record");
    BaselineRecord {
        started_at: (ended - SignedDuration::from_mins(10)).to_string(),
        finished_at: ended.to_string(),
        fingerprint: Fingerprint::default(),
        origin: Origin {
            changed_files: Some(false),
            branch: Some("main".to_owned()),
            is_default_branch: Some(true),
            event: Some("schedule".to_owned()),
            ..record.origin
        },
        ..record
    }
    .sealed()
}

/// The same with something changed.
pub(crate) fn changed(commit: &str, change: impl FnOnce(&mut BaselineRecord)) -> BaselineRecord {
    let mut record = record(commit);
    change(&mut record);
    record.sealed()
}

/// What a person names with `--base`, or nothing.
pub(crate) fn stated(base: Option<&str>) -> Stated {
    Stated::read(base, |_| None).unwrap()
}

/// What an event of a pull request says.
pub(crate) fn of_pull_request(base: &str) -> Stated {
    Stated {
        revision: Some(base.to_owned()),
        by: "of the pull request",
        by_hand: false,
        on_default_branch: Some(false),
        default_branch: Some("main".to_owned()),
    }
}

/// What a run in a clone is compared with.
pub(crate) async fn chosen(clone: &Path, stated: &Stated) -> BaselineUse {
    chosen_for(clone, stated, Plan::Check, None).await
}

pub(crate) async fn chosen_for(
    clone: &Path,
    stated: &Stated,
    plan: Plan,
    fingerprint: Option<&Fingerprint>,
) -> BaselineUse {
    let folder = clone.join("gate");
    let file = folder.join("contract.yaml");
    let Loaded { contract, .. } = parse(&std::fs::read_to_string(&file).unwrap(), &folder).unwrap();
    let baseline = contract.baseline.unwrap();
    let question = Question {
        contract: &contract.name,
        file: &file,
        folder: &folder,
        baseline: &baseline,
        plan,
        stated,
        now: now(),
        fingerprint,
    };
    choose(&question).await
}

/// What was answered in place of a record, and that there is none.
pub(crate) fn missing(used: &BaselineUse) -> &str {
    assert!(used.record.is_none(), "{used:#?}");
    &used.missing.as_ref().unwrap().note
}
