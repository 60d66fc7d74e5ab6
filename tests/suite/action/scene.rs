//! A copy of the Action, and a machine that has a handful of programs and no others.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// What the scripts may use besides what a test brings.
const PROGRAMS: [&str; 20] = [
    "bash",
    "sh",
    "env",
    "uname",
    "sed",
    "head",
    "cut",
    "grep",
    "sort",
    "tr",
    "cat",
    "cp",
    "dirname",
    "mkdir",
    "mktemp",
    "rm",
    "tar",
    "gzip",
    "sha256sum",
    "sleep",
];

/// The workspace of a step.
pub(super) struct Scene {
    folder: TempDir,
}

/// How a step ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    /// Read by `{:?}` where an assertion fails.
    #[expect(dead_code, reason = "shown when a test fails")]
    stderr: String,
    outputs: String,
}

impl Ended {
    /// An output of the step: of several lines with its name the last counts.
    pub(super) fn output(&self, name: &str) -> Option<&str> {
        let values = self.outputs.lines().filter_map(|line| line.split_once('='));
        values.filter(|(key, _)| *key == name).map(|(_, value)| value).next_back()
    }
}

impl Scene {
    pub(super) fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::create_dir_all(scene.path("action/scripts/action")).unwrap();
        fs::create_dir(scene.path("bin")).unwrap();
        fs::create_dir(scene.path("temp")).unwrap();
        fs::copy(source.join("Cargo.toml"), scene.path("action/Cargo.toml")).unwrap();
        for entry in fs::read_dir(source.join("scripts/action")).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            fs::copy(entry.path(), scene.path(&format!("action/scripts/action/{name}"))).unwrap();
        }
        let path = std::env::var_os("PATH").unwrap();
        for program in PROGRAMS {
            let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
            symlink(found.unwrap_or_else(|| panic!("no {program}")), scene.path(&format!("bin/{program}"))).unwrap();
        }
        scene
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    /// Puts a program on the machine, in the place of another of that name.
    pub(super) fn program(&self, name: &str, script: &str) {
        let path = self.path(&format!("bin/{name}"));
        drop(fs::remove_file(&path));
        fs::write(&path, format!("#!/usr/bin/env bash\n{script}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A script of the Action with these variables and no others, as `action.yml` calls it.
    pub(super) fn command(&self, script: &str, variables: &[(&str, &str)]) -> Command {
        drop(fs::remove_file(self.path("outputs")));
        let mut command = Command::new(self.path("bin/bash"));
        command.args(["--noprofile", "--norc", &self.path(&format!("action/scripts/action/{script}"))]);
        command.current_dir(self.folder.path()).env_clear();
        command.env("PATH", self.path("bin")).env("HOME", self.path("")).env("RUNNER_TEMP", self.path("temp"));
        command.env("GITHUB_OUTPUT", self.path("outputs")).envs(variables.iter().copied());
        command
    }

    pub(super) fn run(&self, script: &str, variables: &[(&str, &str)]) -> Ended {
        self.ended(&self.command(script, variables).output().unwrap())
    }

    pub(super) fn ended(&self, output: &Output) -> Ended {
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            outputs: fs::read_to_string(self.path("outputs")).unwrap_or_default(),
        }
    }
}
