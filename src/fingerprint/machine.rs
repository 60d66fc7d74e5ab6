//! The machine that serves, where that is this one.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{add, plain};
use crate::contract::{Endpoint, Launch, LaunchWhat};
use crate::probe::output;
use crate::record::Fingerprint;
use crate::units::Digest;

/// Longest time that `nvidia-smi` may take: with its daemon off it wakes every card first.
const GPUS_WITHIN: Duration = Duration::from_secs(10);

/// The most of its output that is read, in bytes.
const MOST: usize = 64 * 1024;

/// What is asked of every card; the names are those of `nvidia-smi --help-query-gpu`.
const QUESTION: &str = "--query-gpu=name,memory.total,driver_version,mig.mode.current";

/// Where to ask what machine this is.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Program that lists NVIDIA GPUs, with its first arguments.
    pub nvidia_smi: Vec<String>,
    /// Where it is run.
    pub folder: PathBuf,
    /// The file system of processes: `/proc`.
    pub proc: PathBuf,
}

impl Machine {
    /// This machine, with the programs that it has.
    pub fn of_this(folder: &Path) -> Self {
        Self { nvidia_smi: vec!["nvidia-smi".to_owned()], folder: folder.to_owned(), proc: PathBuf::from("/proc") }
    }
}

/// GPUs, CPU and memory of this machine where it serves: for an endpoint that is launched or that has an address of this machine.
/// Of any other machine nothing is known.
///
/// The CPU must match where no GPU is seen, since then it serves. A simulated endpoint computes nothing: there everything is noted.
pub async fn machine(endpoint: &Endpoint, machine: &Machine) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    let through_proxy = endpoint.proxy.is_some() && endpoint.launch.is_none();
    if through_proxy || (endpoint.launch.is_none() && !endpoint.is_on_loopback()) {
        return fingerprint;
    }
    let is_simulated = matches!(endpoint.launch, Some(Launch { what: LaunchWhat::Simulate(_), .. }));
    let gpus = if is_simulated { BTreeMap::new() } else { gpus(machine).await };
    let (cpu, noted) = (cpu(machine), &mut fingerprint.noted);
    if is_simulated || !gpus.is_empty() {
        noted.extend(cpu);
    } else {
        fingerprint.must_match.extend(cpu);
    }
    add(noted, "memory", memory(machine));
    add(noted, "kernel", read(machine, "sys/kernel/osrelease"));
    // The name itself may tell of customers and sites; that two runs had the same one can be seen from this too.
    let host = read(machine, "sys/kernel/hostname");
    add(noted, "host", host.map(|name| Digest::of(name.as_bytes()).short().to_owned()));
    fingerprint.must_match.extend(gpus);
    fingerprint
}

/// Model, count, memory, partition and driver of the cards; nothing where there is no `nvidia-smi` or it does not answer.
async fn gpus(machine: &Machine) -> BTreeMap<String, String> {
    let ask = |arguments: &[&str]| {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        machine.nvidia_smi.iter().cloned().chain(arguments).collect::<Vec<String>>()
    };
    let command = ask(&[QUESTION, "--format=csv,noheader"]);
    let Ok(printed) = output(&command, &machine.folder, GPUS_WITHIN, MOST).await else { return BTreeMap::new() };
    let Some(mut found) = read_gpus(&printed) else { return BTreeMap::new() };
    if found.get("gpu_partition").is_some_and(|mode| mode.contains("Enabled")) {
        let listed = output(&ask(&["-L"]), &machine.folder, GPUS_WITHIN, MOST).await;
        add(&mut found, "gpu_partition", listed.ok().and_then(|listed| read_partitions(&listed)));
    }
    found
}

/// What `nvidia-smi` prints for [`QUESTION`]: one line a card. `None` where a line is something else.
fn read_gpus(printed: &str) -> Option<BTreeMap<String, String>> {
    let rows: Vec<Vec<&str>> = printed
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split(',').map(str::trim).collect())
        .collect();
    if rows.is_empty() || rows.iter().any(|cells| cells.len() != 4) {
        return None;
    }
    let column = |at: usize| {
        let values: BTreeSet<&str> = rows.iter().map(|cells| cells[at]).filter(|cell| !cell.is_empty()).collect();
        plain(&values.into_iter().collect::<Vec<_>>().join(", "))
    };
    let mut found = BTreeMap::new();
    add(&mut found, "gpu", column(0));
    add(&mut found, "gpu_count", Some(rows.len().to_string()));
    add(&mut found, "gpu_memory", column(1));
    add(&mut found, "gpu_driver", column(2));
    add(&mut found, "gpu_partition", column(3).map(|mode| format!("MIG {mode}")));
    Some(found)
}

/// The profiles of `nvidia-smi -L`, as in `  MIG 1g.10gb     Device  0: (UUID: MIG-…)`, each with its number.
fn read_partitions(listed: &str) -> Option<String> {
    let mut profiles: BTreeMap<&str, u32> = BTreeMap::new();
    for line in listed.lines() {
        let profile = line.trim().strip_prefix("MIG ").and_then(|rest| rest.split_whitespace().next());
        if let Some(profile) = profile {
            *profiles.entry(profile).or_default() += 1;
        }
    }
    let counted: Vec<String> = profiles.iter().map(|(profile, count)| format!("{count} × {profile}")).collect();
    plain(&counted.join(", ")).map(|profiles| format!("MIG {profiles}"))
}

/// Model and count of the CPUs that this process may use.
fn cpu(machine: &Machine) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let text = std::fs::read_to_string(machine.proc.join("cpuinfo")).unwrap_or_default();
    add(&mut found, "cpu", cpu_model(&text));
    add(&mut found, "cpu_count", std::thread::available_parallelism().ok().map(NonZero::get).map(|n| n.to_string()));
    found
}

/// The `model name` of x86; elsewhere, as on Arm, implementer and part.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        plain(line.split_once(':')?.1)
    };
    field("model name").or_else(|| {
        let (implementer, part) = (field("CPU implementer")?, field("CPU part")?);
        Some(format!("implementer {implementer}, part {part}"))
    })
}

/// The memory of the machine in GiB.
fn memory(machine: &Machine) -> Option<String> {
    let text = std::fs::read_to_string(machine.proc.join("meminfo")).ok()?;
    let kibibytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix(" kB")?;
    let kibibytes: f64 = kibibytes.trim().parse().ok()?;
    Some(format!("{:.0} GiB", kibibytes / 1024.0 / 1024.0))
}

fn read(machine: &Machine, file: &str) -> Option<String> {
    plain(&std::fs::read_to_string(machine.proc.join(file)).ok()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const X86: &str =
        "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763 64-Core Processor\n";
    const ARM: &str = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";

    fn contract(endpoint: &str) -> Endpoint {
        let text = format!(
            "version: 1\nname: demo\nendpoint: {{ {endpoint}, protocol: openai-chat, model: m }}\n\
             workload: {{ cases: [{{ id: a, prompt: hi }}] }}\n\
             traffic: {{ model: constant, loads: [4/s], trial: {{ window: 75s }} }}\n\
             slo: {{ objectives: [{{ metric: success_rate, at_least: 99% }}], at_load: 4/s }}\n"
        );
        crate::contract::parse(&text, Path::new("/repo")).expect("a contract").contract.endpoint
    }

    /// A machine of files, with a stand-in for `nvidia-smi`.
    struct Stage(tempfile::TempDir);

    impl Stage {
        fn new(script: Option<&str>) -> Self {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let file = |name: &str, text: &str| {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, text).expect("a file");
            };
            file("proc/cpuinfo", X86);
            file("proc/meminfo", "MemTotal:       263856128 kB\nMemFree: 1 kB\n");
            file("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
            file("proc/sys/kernel/hostname", "gpu-7\n");
            if let Some(script) = script {
                file("nvidia-smi", &format!("#!/bin/sh\n{script}\n"));
                let path = folder.path().join("nvidia-smi");
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a script that runs");
            }
            Self(folder)
        }

        async fn ask(&self, endpoint: &str) -> Fingerprint {
            let machine = Machine {
                nvidia_smi: vec!["./nvidia-smi".to_owned()],
                folder: self.0.path().to_owned(),
                proc: self.0.path().join("proc"),
            };
            super::machine(&contract(endpoint), &machine).await
        }
    }

    const LOCAL: &str = "url: \"http://127.0.0.1:8000/v1/chat/completions\"";
    const TWO_CARDS: &str = "[ \"$1\" = '--query-gpu=name,memory.total,driver_version,mig.mode.current' ] || exit 2\n\
        echo 'NVIDIA H100 80GB HBM3, 81559 MiB, 550.54.15, Disabled'\n\
        echo 'NVIDIA H100 80GB HBM3, 81559 MiB, 550.54.15, Disabled'";

    fn keys(part: &BTreeMap<String, String>) -> Vec<&str> {
        part.keys().map(String::as_str).collect()
    }

    #[tokio::test]
    async fn cards_must_match_and_the_cpu_beside_them_is_noted() {
        let found = Stage::new(Some(TWO_CARDS)).ask(LOCAL).await;
        let shown: Vec<(&str, &str)> = found.must_match.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("gpu", "NVIDIA H100 80GB HBM3"),
                ("gpu_count", "2"),
                ("gpu_driver", "550.54.15"),
                ("gpu_memory", "81559 MiB"),
                ("gpu_partition", "MIG Disabled"),
            ]
        );
        assert_eq!(keys(&found.noted), ["cpu", "cpu_count", "host", "kernel", "memory"]);
        assert_eq!(found.noted["memory"], "252 GiB");
        // The beginning of what `printf gpu-7 | sha256sum` prints.
        assert_eq!(found.noted["host"].len(), 12);
        assert!(!found.noted["host"].contains("gpu"));
    }

    #[tokio::test]
    async fn without_cards_the_cpu_must_match_whatever_stands_in_the_way() {
        for script in [None, Some("exit 9"), Some("echo NVIDIA-SMI has failed"), Some(""), Some("echo a, b, c, d, e")] {
            let found = Stage::new(script).ask(LOCAL).await;
            assert_eq!(keys(&found.must_match), ["cpu", "cpu_count"], "{script:?}");
            assert_eq!(found.must_match["cpu"], "AMD EPYC 7763 64-Core Processor");
        }
    }

    #[tokio::test]
    async fn of_another_machine_nothing_is_known_and_a_simulated_endpoint_computes_nothing() {
        let stage = Stage::new(Some(TWO_CARDS));
        for remote in [
            "url: \"http://10.0.0.7:8000/v1/chat/completions\"",
            "url: \"http://127.0.0.1:8000/v1/chat/completions\", proxy: \"http://proxy.example:3128\"",
        ] {
            assert_eq!(stage.ask(remote).await, Fingerprint::default(), "{remote}");
        }
        let found = stage.ask(&format!("{LOCAL}, launch: {{ simulate: p.yaml }}")).await;
        assert_eq!(keys(&found.must_match), [""; 0]);
        assert_eq!(keys(&found.noted), ["cpu", "cpu_count", "host", "kernel", "memory"]);
    }

    #[tokio::test]
    async fn a_card_in_parts_is_told_by_its_profiles() {
        // The form of `nvidia-smi -L` in NVIDIA's MIG user guide.
        let script = "[ \"$1\" = -L ] && cat <<'END' || echo 'NVIDIA A100-SXM4-40GB, 40960 MiB, 535.104.05, Enabled'\n\
            GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n  \
              MIG 3g.20gb     Device  0: (UUID: MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/1/0)\n  \
              MIG 1g.5gb      Device  1: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\n  \
              MIG 1g.5gb      Device  2: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)\nEND";
        let found = Stage::new(Some(script)).ask(LOCAL).await;
        assert_eq!(found.must_match["gpu_partition"], "MIG 2 × 1g.5gb, 1 × 3g.20gb");
    }

    #[test]
    fn processors_are_named_on_x86_and_on_arm() {
        assert_eq!(cpu_model(X86).as_deref(), Some("AMD EPYC 7763 64-Core Processor"));
        assert_eq!(cpu_model(ARM).as_deref(), Some("implementer 0x41, part 0xd40"));
        assert_eq!(cpu_model(""), None);
    }
}
