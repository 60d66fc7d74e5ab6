//! A disk that is full.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scene::{Contract, SIMULATED, Scene, runs};

/// A file system of 64 KiB, for as long as this lives; `None` where the system does not let us.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf) -> Option<Self> {
        std::fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&at).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} is still mounted", self.0.display());
    }
}

/// The gate with its runs on `runs`, under load for minutes unless something stops it.
fn gate(scene: &Scene, runs: &Path) -> Command {
    // A shell keeps files below 32 KiB where no small disk could be had. What a full disk says with ENOSPC, this says with
    // EFBIG, because the signal that comes with it is ignored.
    let script = "trap '' XFSZ; if [ -n \"$LIMITED\" ]; then ulimit -f 64; fi; exec \"$@\"";
    let goodput = env!("CARGO_BIN_EXE_goodput");
    scene.command("sh", &["-c", script, "sh", goodput, "gate", "--runs", &runs.display().to_string(), "contract.yaml"])
}

#[test]
fn a_full_disk_stops_the_load_and_is_said() {
    let mut contract = Contract::of(SIMULATED);
    contract.loads = "400/s";
    contract.trial = "requests: 40000, warm_up: 200ms";
    let scene = Scene::with(&contract, "");
    let text = contract.text().replace("at_load: 40/s", "at_load: 400/s");
    scene.write("contract.yaml", text);
    let disk = SmallDisk::mount(scene.path("disk"));
    let folder = scene.path("disk");
    let mut command = gate(&scene, &folder);
    if disk.is_none() {
        command.env("LIMITED", "1");
    }
    let mut gate = scene.start(&mut command);
    gate.until_stderr("goodput: tiny against");
    let started = gate.descendants();
    let ran = gate.end().exits(70).says(&["goodput: failed to write", "requests.jsonl", "hint: free space"]);
    // The verdict is told all the same, on standard output, which is not full.
    ran.shows(&["UNKNOWN tiny", "The results could not be written"]);
    assert!(started.into_iter().all(|pid| !runs(pid)));
    drop(disk);
}

#[test]
fn a_run_whose_disk_was_full_is_judged_from_what_is_there() {
    let mut contract = Contract::of(SIMULATED);
    contract.loads = "400/s";
    contract.trial = "requests: 40000, warm_up: 10ms";
    let scene = Scene::with(&contract, "");
    scene.write("contract.yaml", contract.text().replace("at_load: 40/s", "at_load: 400/s"));
    // A limit on each file, not on all of them: the result still fits.
    let mut command = gate(&scene, &scene.path("runs"));
    command.env("LIMITED", "1");
    let ran = scene.run(command).exits(70);
    let result = ran.result();
    assert_eq!(result.value["stopped"]["cause"], "storage");
    assert_eq!(result.row("completeness"), ("UNKNOWN", "internal"));
    let ran = scene.run(scene.goodput(&["judge", &result.folder.display().to_string()])).exits(3);
    assert!(!ran.stderr.contains("is not what the evidence yields"), "{}", ran.stderr);
}

#[test]
fn a_disk_that_is_full_before_the_load_starts_nothing() {
    let scene = Scene::with(&Contract::of(SIMULATED), "");
    let Some(disk) = SmallDisk::mount(scene.path("disk")) else { return };
    drop(std::fs::write(disk.0.join("ballast"), vec![0; 1 << 20]));
    let ran = scene.run(scene.goodput(&["gate", "--runs", "disk", "contract.yaml"])).exits(70);
    ran.says(&["goodput: failed to", "No space left", "hint: free space"]);
}

#[test]
fn standard_output_that_is_full_is_a_failure_too() {
    let scene = Scene::with(&Contract::of(SIMULATED), "");
    for arguments in [&["validate", "contract.yaml"][..], &["schema"]] {
        let mut command = scene.goodput(arguments);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        scene.run(command).exits(70).says(&["failed to write to standard output", "No space left"]);
    }
}
