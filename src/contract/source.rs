//! Where numbers about the system under test are read, and what is asked of them: stability rows and resources.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::model::Header;

/// One stability row.
#[derive(Debug, Clone, PartialEq)]
pub struct StabilityRow {
    /// The row's name.
    pub name: String,
    /// What is asked.
    pub probe: StabilityProbe,
    /// Nobody wrote the row: it comes with an endpoint of this machine, and is left out where that cannot answer it.
    pub automatic: bool,
}

/// What a stability row asks.
#[derive(Debug, Clone, PartialEq)]
pub enum StabilityProbe {
    /// A number read before, between and after the trials; it may rise by at most `max_increase`.
    Counter {
        /// How it is read.
        probe: Probe,
        /// What of several series is held against the limit.
        across: Across,
        /// The largest rise that still passes.
        max_increase: f64,
    },
    /// A code of the last fault, 0 where there was none: it may not appear or change.
    LastCode {
        /// How it is read.
        probe: Probe,
    },
    /// What runs must be the same from the first reading to the last: nothing started anew, nothing gone.
    Unchanged {
        /// How it is read.
        probe: Probe,
    },
    /// A command whose exit code must be 0, before, between and after the trials.
    ExitCode {
        /// The command.
        command: CommandSource,
        /// Longest time it may take.
        timeout: Duration,
    },
}

impl StabilityProbe {
    /// What is asked, where that is not an exit code.
    pub fn source(&self) -> Option<&Source> {
        match self {
            Self::Counter { probe, .. } | Self::LastCode { probe } | Self::Unchanged { probe } => Some(&probe.source),
            Self::ExitCode { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn source_mut(&mut self) -> Option<&mut Source> {
        match self {
            Self::Counter { probe, .. } | Self::LastCode { probe } | Self::Unchanged { probe } => {
                Some(&mut probe.source)
            }
            Self::ExitCode { .. } => None,
        }
    }
}

/// One resource: sampled while a trial runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its name in records, reports and limits.
    pub name: String,
    /// Whether it is a level or counts upwards.
    pub kind: ResourceKind,
    /// What its numbers are, once scaled.
    pub unit: ResourceUnit,
    /// How it is read.
    pub probe: Probe,
    /// What of several series is kept.
    pub across: Across,
    /// What a number that was read is multiplied by.
    pub scale: f64,
    /// The period of sampling.
    pub every: Duration,
}

/// Whether a resource is a level or counts upwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// A level at an instant.
    Gauge,
    /// A count since the start of what is asked; it tells of its rate.
    Counter,
}

/// What the numbers of a resource are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ResourceUnit {
    /// A plain number: requests, blocks, tokens.
    Count,
    /// A share of 1, shown in percent.
    Ratio,
    /// Bytes.
    Bytes,
    /// Seconds; of a counter of CPU time, its rate is the number of busy cores.
    Seconds,
    /// Watts.
    Watts,
    /// Degrees Celsius.
    Celsius,
}

impl ResourceUnit {
    /// Writes a number of this unit for a person: three significant digits.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Count => digits(value),
            Self::Ratio => format!("{}%", digits(value * 100.0)),
            Self::Bytes => bytes(value),
            Self::Seconds => format!("{}s", digits(value)),
            Self::Watts => format!("{} W", digits(value)),
            Self::Celsius => format!("{} °C", digits(value)),
        }
    }

    /// Writes a rate per second. Seconds of CPU time per second are busy cores.
    pub fn show_rate(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{} cores", digits(value)),
            other => format!("{}/s", other.show(value)),
        }
    }
}

/// Three significant digits, and no more than two behind the point; whole numbers stay whole.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        _ if value.fract().abs() < 1e-9 => 0,
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (value, 0);
    while value.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", digits(value), UNITS[unit])
}

/// A limit on a resource at the load that must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceLimit {
    /// The resource's name.
    pub resource: String,
    /// What of its samples in the window is held against the limit.
    pub statistic: Statistic,
    /// The limit, in the resource's unit; strictly above is a violation.
    pub at_most: f64,
    /// The resource's unit.
    pub unit: ResourceUnit,
}

impl ResourceLimit {
    /// Writes a figure that is held against it, or the limit itself, for a person.
    pub fn show(&self, figure: f64) -> String {
        match self.statistic {
            Statistic::Rate => self.unit.show_rate(figure),
            _ => self.unit.show(figure),
        }
    }

    /// The name of its row in the verdict: `kv_cache_usage_max`.
    pub fn id(&self) -> String {
        format!("{}_{}", self.resource, self.statistic.name())
    }
}

/// What of the samples of a trial's window is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Statistic {
    /// The smallest.
    Min,
    /// The median.
    Median,
    /// The largest.
    Max,
    /// The last.
    Last,
    /// Of a counter: its rise per second.
    Rate,
}

impl Statistic {
    /// Its name in contracts and rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Median => "median",
            Self::Max => "max",
            Self::Last => "last",
            Self::Rate => "rate",
        }
    }
}

/// What of several series that one probe reads is taken as its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Across {
    /// Their sum.
    Sum,
    /// The largest.
    Max,
    /// Each for itself.
    Each,
}

/// A source and how long it may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// What is asked.
    pub source: Source,
    /// Longest time an answer may take.
    pub timeout: Duration,
}

/// What is asked for a number.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The number that a command prints.
    Command(CommandSource),
    /// A metric on a Prometheus or OpenMetrics page.
    Prometheus(PrometheusSource),
    /// A container of Docker.
    Docker(ContainerSource),
    /// A container of Podman.
    Podman(ContainerSource),
    /// The pods of a Kubernetes workload.
    Kubernetes(KubernetesSource),
    /// A control group of this machine.
    Cgroup(CgroupSource),
    /// A process of this machine.
    Process(ProcessSource),
    /// NVIDIA GPUs of this machine.
    Nvidia(NvidiaSource),
    /// Lines of this machine's kernel log.
    KernelLog(KernelLogSource),
}

impl Source {
    /// The page that is asked, where it is one.
    pub fn page(&self) -> Option<&MetricsPage> {
        match self {
            Self::Prometheus(source) => Some(&source.page),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn page_mut(&mut self) -> Option<&mut MetricsPage> {
        match self {
            Self::Prometheus(source) => Some(&mut source.page),
            _ => None,
        }
    }

    /// The unit of its numbers, as far as the source knows it.
    pub fn unit(&self) -> ResourceUnit {
        use NvidiaField::{MemoryUsed, Power, Temperature, Utilization};
        match self {
            Self::Process(ProcessSource { field: ProcessField::Memory, .. })
            | Self::Cgroup(CgroupSource { field: CgroupField::MemoryUsed | CgroupField::MemoryPeak, .. })
            | Self::Nvidia(NvidiaSource { field: MemoryUsed, .. }) => ResourceUnit::Bytes,
            Self::Process(ProcessSource { field: ProcessField::CpuTime, .. }) => ResourceUnit::Seconds,
            Self::Nvidia(NvidiaSource { field: Utilization, .. }) => ResourceUnit::Ratio,
            Self::Nvidia(NvidiaSource { field: Power, .. }) => ResourceUnit::Watts,
            Self::Nvidia(NvidiaSource { field: Temperature, .. }) => ResourceUnit::Celsius,
            _ => ResourceUnit::Count,
        }
    }

    /// The word for it in contracts and records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Prometheus(_) => "prometheus",
            Self::Docker(_) => "docker",
            Self::Podman(_) => "podman",
            Self::Kubernetes(_) => "kubernetes",
            Self::Cgroup(_) => "cgroup",
            Self::Process(_) => "process",
            Self::Nvidia(_) => "nvidia",
            Self::KernelLog(_) => "kernel_log",
        }
    }
}

/// A command that prints one number, or answers by its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSource {
    /// Program and arguments; the contract's folder is the working directory.
    pub command: Vec<String>,
}

/// A metric on an exposition page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusSource {
    /// The page.
    pub page: MetricsPage,
    /// Names that the metric has in different versions of the server; the first one on the page counts.
    pub metrics: Vec<String>,
    /// Labels that a series must have, with their values; others it may have besides.
    pub labels: BTreeMap<String, String>,
}

/// Where an exposition page is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsPage {
    /// Its URL, without credentials.
    pub url: Url,
    /// Headers of the request.
    pub headers: Vec<Header>,
    /// PEM file of certificates that are trusted besides the system's, resolved against the contract's folder.
    pub ca_file: Option<PathBuf>,
}

/// A container, asked of its engine's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSource {
    /// Its name or id.
    pub container: String,
    /// What is asked of it.
    pub field: ContainerField,
    /// The engine's address: `unix:///path`, `http://…` or `tcp://…`; the engine's usual one where none is written.
    pub host: Option<String>,
}

/// What is asked of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ContainerField {
    /// How often its engine restarted it.
    RestartCount,
    /// 1 when a process of it was killed for want of memory, else 0.
    OomKilled,
    /// When it was started: it must stay the same.
    StartTime,
}

/// Pods, asked of the Kubernetes API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesSource {
    /// Their namespace; the one of the context, or of the pod that asks, where none is written.
    pub namespace: Option<String>,
    /// The label selector.
    pub selector: String,
    /// The container in them; all where none is written.
    pub container: Option<String>,
    /// The context of the kubeconfig; the current one where none is written.
    pub context: Option<String>,
    /// The kubeconfig, resolved against the contract's folder; the usual one, or the pod's own token, where none is written.
    pub kubeconfig: Option<PathBuf>,
    /// What is asked of them.
    pub field: PodField,
}

/// What is asked of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PodField {
    /// How often their containers were restarted.
    RestartCount,
    /// How often their containers were ended for want of memory, as far as readings show it.
    OomKilled,
    /// Which pods there are and when their containers started: they must stay the same.
    StartTime,
}

/// A control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupSource {
    /// Which.
    pub of: CgroupOf,
    /// What is asked of it.
    pub field: CgroupField,
}

/// Which control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CgroupOf {
    /// The one with this folder.
    Path(PathBuf),
    /// The one that a process is in.
    Process(ProcessOf),
}

/// What is asked of a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CgroupField {
    /// How many processes of it were killed for want of memory.
    OomKill,
    /// The most memory that it ever used, in bytes.
    MemoryPeak,
    /// The memory that it uses, in bytes.
    MemoryUsed,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSource {
    /// Which.
    pub of: ProcessOf,
    /// What is asked of it.
    pub field: ProcessField,
}

/// Which process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessOf {
    /// The launched endpoint: what serves its port, with all processes that were started with it.
    Endpoint,
    /// The one whose number this file holds.
    PidFile(PathBuf),
    /// Those that listen on this TCP port of this machine.
    Port(u16),
}

/// What is asked of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ProcessField {
    /// Its number and when it was started: they must stay the same.
    StartTime,
    /// CPU time of it and all that it started, in seconds.
    CpuTime,
    /// Resident memory of it and all that it started, in bytes.
    Memory,
}

/// NVIDIA GPUs, asked of `nvidia-smi`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvidiaSource {
    /// What is asked of them.
    pub field: NvidiaField,
    /// Their indices or UUIDs; all where none is written.
    pub gpus: Vec<String>,
    /// The program with its first arguments: `nvidia-smi` unless written.
    pub command: Vec<String>,
}

/// What is asked of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum NvidiaField {
    /// Memory errors that were not corrected, since the driver was loaded.
    EccUncorrected,
    /// Memory errors that were corrected, since the driver was loaded.
    EccCorrected,
    /// Memory pages that were retired for errors.
    RetiredPages,
    /// 1 while the clock is held down by heat or by the hardware, else 0.
    Throttled,
    /// Share of the time in which a kernel ran.
    Utilization,
    /// Memory in use, in bytes.
    MemoryUsed,
    /// Power drawn, in watts.
    Power,
    /// Temperature, in degrees Celsius.
    Temperature,
}

/// Lines of the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelLogSource {
    /// The text that counted lines hold.
    pub contains: String,
    /// A command that prints the log; without it `/dev/kmsg` is read.
    pub command: Option<Vec<String>>,
}
