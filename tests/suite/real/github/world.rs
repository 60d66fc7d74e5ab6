//! One repository on the server that plays GitHub, and the environment of a workflow that publishes to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use goodput::publish::{Context, Published, Subject, Wanted, When, publish};
use goodput::record::RunResult;
use goodput::units::Digest;
use serde_json::{Value, json};

use super::super::Real;

/// The commit that most tests are about.
pub(super) const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// Another one.
pub(super) const OTHER: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// Who a workflow's token writes as.
pub(super) const BOT: &str = "github-actions[bot]";

/// A repository of one test.
pub(super) struct World {
    real: Real,
    /// `owner/name`.
    pub(super) name: String,
    pub(super) token: String,
    variables: BTreeMap<String, String>,
}

impl World {
    /// A repository with one pull request, number 7, and a token that may write; `made` changes that.
    pub(super) fn start(test: &str, made: impl FnOnce(&mut Value)) -> Option<Self> {
        let real = Real::shared("GOODPUT_REAL_GITHUB")?;
        let token = format!("ghs_{test}");
        let mut world = json!({
            "tokens": { &token: { "login": BOT, "comment": true, "checks": true } },
            "pulls": [{ "number": 7, "head": HEAD, "branch": "topic" }],
        });
        made(&mut world);
        let name = format!("octocat/{test}");
        let variables = BTreeMap::new();
        let mut started = Self { real, name, token, variables };
        started.control("PUT", &started.name, &world.to_string());
        let folder = started.real.folder.path().to_path_buf();
        let (url, name, token) = (started.real.url.clone(), started.name.clone(), started.token.clone());
        for (variable, value) in [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_API_URL", &url),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", &name),
            ("GITHUB_TOKEN", &token),
            ("GITHUB_SHA", "cccccccccccccccccccccccccccccccccccccccc"),
            ("GITHUB_STEP_SUMMARY", &folder.join("summary").display().to_string()),
            ("GITHUB_OUTPUT", &folder.join("output").display().to_string()),
            ("GITHUB_EVENT_PATH", &folder.join("event.json").display().to_string()),
        ] {
            started.set(variable, value);
        }
        started.run(100, 1).pull_request(HEAD);
        Some(started)
    }

    pub(super) fn set(&mut self, variable: &str, value: &str) -> &mut Self {
        self.variables.insert(variable.to_owned(), value.to_owned());
        self
    }

    /// The run that publishes.
    pub(super) fn run(&mut self, id: u64, attempt: u64) -> &mut Self {
        self.set("GITHUB_RUN_ID", &id.to_string()).set("GITHUB_RUN_ATTEMPT", &attempt.to_string())
    }

    /// What started the workflow.
    pub(super) fn event(&mut self, name: &str, event: &Value) -> &mut Self {
        fs::write(self.file("event.json"), event.to_string()).unwrap();
        self.set("GITHUB_EVENT_NAME", name)
    }

    /// The event of the pull request 7, whose head is that commit.
    pub(super) fn pull_request(&mut self, head: &str) -> &mut Self {
        let event = pull_request(&self.name, &self.name, head);
        self.event("pull_request", &event)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.real.folder.path().join(name)
    }

    pub(super) fn url(&self) -> &str {
        &self.real.url
    }

    pub(super) fn context(&self) -> Context {
        Context::from_environment(&|name| self.variables.get(name).cloned())
    }

    /// Publishes a result; gives what became of it, and what the runner was told.
    pub(super) async fn publish(&self, result: &RunResult, wanted: &Wanted) -> (Published, String) {
        self.publish_subject(&Subject::Run { result, folder: None, contract: None }, wanted).await
    }

    pub(super) async fn publish_subject(&self, subject: &Subject<'_>, wanted: &Wanted) -> (Published, String) {
        let mut commands = Vec::new();
        let published = publish(subject, wanted, &self.context(), &mut commands).await;
        for line in published.problems.iter().chain(&published.written) {
            assert!(line.chars().count() < 1000 && !line.contains('\n') && !line.contains(&self.token), "{line}");
        }
        self.assert_as_described();
        (published, String::from_utf8(commands).unwrap())
    }

    /// Publishes, and finds nothing to complain of.
    pub(super) async fn publish_whole(&self, result: &RunResult, wanted: &Wanted) -> Published {
        let (published, _) = self.publish(result, wanted).await;
        assert_eq!(published.problems, [""; 0]);
        published
    }

    /// Publishes, and finds one thing to complain of.
    pub(super) async fn publish_with_problem(&self, result: &RunResult, wanted: &Wanted) -> String {
        let (published, commands) = self.publish(result, wanted).await;
        assert_eq!(published.problems.len(), 1, "{published:#?}");
        assert!(commands.contains("::warning title=goodput%3A not everything was published::"), "{commands}");
        let summary = fs::read_to_string(self.file("summary")).unwrap();
        assert!(summary.contains("Not everything was published"), "{summary}");
        assert_eq!(self.outputs()["exit-code"], wanted.exit_code.to_string());
        published.problems.into_iter().next().unwrap()
    }

    /// A second repository, beside this one; gives its name.
    pub(super) fn also(&self, test: &str, made: &Value) -> String {
        let name = format!("octocat/{test}");
        self.control("PUT", &name, &made.to_string());
        name
    }

    /// A variable of the environment.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    /// Lets a request go wrong from here on.
    pub(super) fn fault(&self, fault: &Value) {
        self.control("POST", &self.name, &json!([fault]).to_string());
    }

    /// Neither side has broken GitHub's description, since the server was started.
    #[track_caller]
    pub(super) fn assert_as_described(&self) {
        assert_eq!(self.control("GET", "violations", ""), json!([]));
    }

    /// What the server has.
    pub(super) fn now(&self) -> Value {
        self.control("GET", &self.name, "")
    }

    /// The texts of all comments.
    pub(super) fn comments(&self) -> Vec<String> {
        let now = self.now();
        let texts =
            now["comments"].as_array().unwrap().iter().map(|comment| comment["body"].as_str().unwrap().to_owned());
        texts.collect()
    }

    /// The requests that came since the repository was made, without the repository's address.
    pub(super) fn requests(&self) -> Vec<String> {
        let prefix = format!("/repos/{}", self.name);
        let now = self.now();
        let requests = now["requests"].as_array().unwrap().iter();
        requests.map(|request| request.as_str().unwrap().replace(&prefix, "")).collect()
    }

    /// How many requests of that method came.
    pub(super) fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|request| request.starts_with(&format!("{method} "))).count()
    }

    /// The outputs as the runner reads them.
    pub(super) fn outputs(&self) -> BTreeMap<String, String> {
        let text = fs::read_to_string(self.file("output")).unwrap();
        let mut outputs = BTreeMap::new();
        let mut lines = text.lines();
        while let Some(head) = lines.next() {
            let (name, delimiter) = head.split_once("<<").unwrap();
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
            outputs.insert(name.to_owned(), value.join("\n"));
        }
        outputs
    }

    fn control(&self, method: &str, name: &str, body: &str) -> Value {
        let head =
            format!("{method} /_world/{name} HTTP/1.0\r\nHost: {}\r\nContent-Length: {}", self.real.host(), body.len());
        let (head, reply) = self.real.exchange(&format!("{head}\r\n\r\n{body}"));
        assert!(head.contains(" 200 "), "{head}");
        serde_json::from_slice(&reply).unwrap()
    }
}

/// The event of a pull request, as far as it is read, from the repository `from` into `base`.
pub(super) fn pull_request(base: &str, from: &str, head: &str) -> Value {
    json!({ "action": "synchronize", "pull_request": {
        "number": 7,
        "head": { "sha": head, "ref": "topic", "repo": { "full_name": from } },
        "base": { "sha": OTHER, "ref": "main", "repo": { "full_name": base } },
    }})
}

/// Comment always, and nothing more.
pub(super) fn wanted() -> Wanted {
    Wanted { comment: When::Always, key: None, check: false, remarks: Vec::new(), exit_code: 3 }
}

/// A result with that overall answer and one row of it.
pub(super) fn result(overall: &str, note: &str) -> RunResult {
    let reason = match overall {
        "PASS" => "held",
        "FAIL" => "broken",
        _ => "too_few_samples",
    };
    let digest = Digest::of(b"x");
    serde_json::from_value(json!({
        "schema": "goodput-result/1",
        "tool_version": "0.1.0",
        "name": "tiny",
        "started_at": "2026-11-29T10:00:00Z",
        "finished_at": "2026-11-29T10:01:34Z",
        "contract": { "version": 1, "name": "tiny" },
        "contract_digest": digest,
        "plan_digest": digest,
        "workload_digest": digest,
        "fingerprint": null,
        "endpoint": {
            "url": "http://127.0.0.1:8000/v1/chat/completions",
            "protocol": "openai-chat",
            "kind": "external",
            "ready": { "state": "ready" },
            "ready_after_ns": null,
            "exited": null,
            "log_tail": [],
        },
        "stopped": null,
        "steps": [],
        "capacity": null,
        "probes": [],
        "completeness": { "planned": 0, "measured": 0, "cells": [] },
        "verdict": { "overall": overall, "unknown_blocks": true, "checks": [{
            "id": "ttft_p99", "status": overall, "reason": reason, "claim": null, "method": null, "limit": "≤ 3s",
            "observed": null, "interval": null, "confidence": null, "samples": null, "trials": null, "note": note,
        }]},
    }))
    .unwrap()
}

/// The mark of the comment on the contract `tiny` without a key, whose number is what `printf 'tiny\0' | sha256sum` begins with.
pub(super) fn mark(head: &str, run: u64, attempt: u64) -> String {
    format!("<!-- goodput 1 id=144e258f5b42 head={head} run={run} attempt={attempt} -->")
}
