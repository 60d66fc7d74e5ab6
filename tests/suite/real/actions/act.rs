//! A repository whose workflows use the Action, and `act`, which runs them on this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scene::{Contract, SIMULATED};

/// The Action and the others, as the examples name them.
const ACTION: &str = "OWNER/goodput@0000000000000000000000000000000000000000";
const UPLOAD: &str = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f";
const DOWNLOAD: &str = "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c";

/// Where the workflows run, and what the events are about.
pub(super) const REPOSITORY: &str = "octo/serving";
pub(super) const FORK: &str = "stranger/serving";
pub(super) const PULL: u64 = 7;
pub(super) const HEAD: &str = "1111111111111111111111111111111111111111";
pub(super) const TOKEN: &str = "ghs_only_for_this_test";

/// An action of GitHub's own that needs GitHub's servers, in whose place stands one that copies files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stub {
    Upload,
    Download,
}

/// What a workflow did.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) succeeded: bool,
    pub(super) said: String,
}

/// A contract of two short steps at the simulated endpoint.
pub(super) fn contract() -> String {
    // A generous limit is generous to a load generator on a busy machine, too.
    let text = Contract::of(format!("{SIMULATED}\n  timeout: 60s")).text();
    text.replacen("at_most: 8s", "at_most: 50s", 1)
}

/// The same with a search for the capacity, and where it is compared, with a store.
pub(super) fn searching_contract(is_compared: bool) -> String {
    let baseline = if is_compared { "baseline: { margin: 5%, from: [artifact] }\n" } else { "" };
    contract().replacen("slo:\n", "  search: { from: 50/s, to: 70/s }\nslo:\n", 1) + baseline
}

/// A repository in a folder of its own.
pub(super) struct Consumer {
    folder: TempDir,
    act: PathBuf,
}

impl Consumer {
    /// With workflows by name, and a contract that passes.
    pub(super) fn new(programs: &Path, workflows: &[(&str, &str)]) -> Self {
        let consumer = Self { folder: tempfile::tempdir().unwrap(), act: programs.join("act") };
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (name, text) in workflows {
            consumer.write(&format!(".github/workflows/{name}"), text);
        }
        consumer.write(".goodput/contract.yaml", &contract());
        consumer.write(
            ".goodput/simulated.yaml",
            "version: 1\nmodel: { kind: batch, slots: 32, step_base: 2ms }\noutput_tokens: 4\n",
        );
        consumer.git(&["init", "--quiet", "--initial-branch", "main"]);
        consumer.git(&["remote", "add", "origin", &format!("https://github.com/{REPOSITORY}.git")]);
        consumer.commit();
        for file in ["action.yml", "Cargo.toml"] {
            consumer.copy(&source.join(file), &format!("action/{file}"));
        }
        for entry in fs::read_dir(source.join("scripts/action")).unwrap() {
            let entry = entry.unwrap();
            consumer.copy(&entry.path(), &format!("action/scripts/action/{}", entry.file_name().to_str().unwrap()));
        }
        for folder in ["left", "bin", "artifacts"] {
            fs::create_dir_all(consumer.path(folder)).unwrap();
        }
        consumer
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file of the repository.
    pub(super) fn write(&self, name: &str, text: &str) {
        self.put(&format!("repository/{name}"), text);
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn copy(&self, from: &Path, to: &str) {
        self.put(to, "");
        fs::copy(from, self.path(to)).unwrap();
    }

    /// Puts a program beside the repository, and says where it is.
    pub(super) fn program(&self, name: &str, script: &str) -> String {
        let path = self.put(&format!("bin/{name}"), script);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
        let output = command.current_dir(self.path("repository")).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "a change"]);
    }

    /// Lets the Action's checksums list a release with a program that calls `program`; `curl` brings it.
    pub(super) fn release(&self, program: &str) {
        self.program("goodput", &format!("#!/bin/sh\nexec '{program}' \"$@\"\n"));
        let archive = self.path("release.tar.gz");
        let packed =
            Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(self.path("bin")).arg("goodput").status();
        assert!(packed.unwrap().success());
        let output = Command::new("sha256sum").arg(&archive).output().unwrap();
        let sum = String::from_utf8(output.stdout).unwrap()[..64].to_owned();
        let machine = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        let version = env!("CARGO_PKG_VERSION");
        let url = format!("https://github.example/o/r/releases/download/v{version}/goodput-{machine}.tar.gz");
        self.put("action/scripts/action/checksums.txt", &format!("{sum}  {url}\n"));
        let archive = archive.display();
        self.program(
            "curl",
            &format!("#!/bin/sh\nwhile [ \"$1\" != --output ]; do shift; done\nexec cp '{archive}' \"$2\"\n"),
        );
    }

    /// Puts something in the place of an action of GitHub's own.
    pub(super) fn stub(&self, stub: Stub) {
        let (folder, inputs, copy) = match stub {
            Stub::Upload => (
                "upload",
                "name path include-hidden-files if-no-files-found retention-days overwrite",
                "mkdir -p \"$ARTIFACTS/$NAME\" && cp -r \"$AT\" \"$ARTIFACTS/$NAME/\"",
            ),
            Stub::Download => (
                "download",
                "name path run-id github-token",
                "mkdir -p \"$AT\" && cp -r \"$ARTIFACTS/$NAME/.\" \"$AT/\"",
            ),
        };
        let inputs: Vec<String> = inputs.split(' ').map(|name| format!("{name}: {{ description: {name} }}")).collect();
        let text = format!(
            "name: {folder}\ndescription: copies\ninputs: {{ {} }}\nruns:\n  using: composite\n  steps:\n    - shell: bash\n      \
             run: {copy}\n      env:\n        NAME: ${{{{ inputs.name }}}}\n        AT: ${{{{ inputs.path }}}}\n",
            inputs.join(", ")
        );
        self.put(&format!("{folder}/action.yml"), &text);
    }

    /// Runs a workflow for an event.
    pub(super) fn act(&self, event: &str, workflow: &str, variables: &[(&str, &str)]) -> Ran {
        self.commit();
        let payload = self.put("event.json", &payload(event).to_string());
        let mut command = Command::new(&self.act);
        command.args([event, "--workflows", &format!(".github/workflows/{workflow}"), "--eventpath"]).arg(payload);
        command
            .args(["--platform", "ubuntu-latest=-self-hosted", "--no-cache-server", "--action-cache-path"])
            .arg(self.path("cache"));
        command.args(["--secret", &format!("GITHUB_TOKEN={TOKEN}")]);
        for (action, folder) in [(ACTION, "action"), (UPLOAD, "upload"), (DOWNLOAD, "download")] {
            command.args(["--local-repository", &format!("{action}={}", self.path(folder).display())]);
        }
        let (left, artifacts) = (self.path("left"), self.path("artifacts"));
        for (name, value) in variables
            .iter()
            .copied()
            .chain([("LEFT", left.to_str().unwrap()), ("ARTIFACTS", artifacts.to_str().unwrap())])
        {
            command.args(["--env", &format!("{name}={value}")]);
        }
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("HOME", self.folder.path()).env_remove("GITHUB_TOKEN");
        let output = command.current_dir(self.path("repository")).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        Ran { succeeded: output.status.success(), said }
    }

    /// What the last step wrote down.
    pub(super) fn left(&self, name: &str) -> String {
        fs::read_to_string(self.path("left").join(name)).unwrap()
    }

    pub(super) fn outputs(&self) -> Value {
        serde_json::from_str(&self.left("outputs.json")).unwrap()
    }
}

/// What GitHub tells of an event, as far as anything here reads it.
fn payload(event: &str) -> Value {
    let repository = json!({ "full_name": REPOSITORY, "default_branch": "main", "id": 1 });
    let base = "2".repeat(40);
    match event {
        "pull_request" => json!({
            "action": "synchronize",
            "number": PULL,
            "pull_request": {
                "number": PULL,
                "head": { "sha": HEAD, "ref": "topic", "repo": repository },
                "base": { "sha": base, "ref": "main", "repo": repository },
            },
            "repository": repository,
        }),
        "merge_group" => json!({
            "action": "checks_requested",
            "merge_group": {
                "head_sha": HEAD,
                "base_sha": base,
                "head_ref": "refs/heads/gh-readonly-queue/main/pr-7",
                "base_ref": "refs/heads/main",
            },
            "repository": repository,
        }),
        "workflow_run" => json!({
            "action": "completed",
            "workflow_run": {
                "id": 5,
                "run_attempt": 1,
                "event": "pull_request",
                "conclusion": "success",
                "head_sha": HEAD,
                "head_branch": "topic",
                "head_repository": { "full_name": FORK, "owner": { "login": "stranger" } },
                "html_url": "https://github.com/octo/serving/actions/runs/5",
                "pull_requests": [],
            },
            "repository": repository,
        }),
        _ => json!({ "repository": repository }),
    }
}
