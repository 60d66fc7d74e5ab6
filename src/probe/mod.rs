//! Probes: each reads numbers of the system under test, or one exit code.
//!
//! A probe never fails the run: what it could not read becomes a [`Reading`] without a value and with the reason. A new
//! kind is one file beside [`command`] and one line in [`Prober`].

mod api;
mod cgroup;
mod command;
mod container;
mod docker;
mod excerpt;
mod kernel_log;
mod kubernetes;
mod nvidia;
mod podman;
mod process;
mod prometheus;
mod run_command;
mod sampler;
mod sightings;

pub use command::output;
pub use sampler::{Sampled, Sampler};

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::contract::{Across, CommandSource, Probe, Source, StabilityProbe};
use crate::record::{Reading, Series};
use crate::units::format_duration;

/// What a kind of probe answers: one number or several, each with its owner, or why there is none.
type Answer = Result<Vec<Series>, String>;

/// The largest number up to which every integer is its own: beyond it, a rise by one could not be seen.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// How long killing a command may take.
const KILLING: Duration = Duration::from_secs(5);

/// What probes know of the run besides what they were told to ask.
#[derive(Debug, Clone)]
pub struct Context {
    /// The contract's folder, in which commands run.
    pub folder: PathBuf,
    /// The first process of the endpoint that this run launched; its group has the same number.
    pub endpoint: Option<u32>,
    /// The TCP port of the endpoint's URL.
    pub port: u16,
}

/// One probe through a whole run. It may remember between readings what it needs to count by.
#[derive(Debug)]
pub struct Prober {
    asked: Asked,
    across: Across,
    timeout: Duration,
    context: Context,
}

/// What is asked, with what is remembered of it.
#[derive(Debug)]
enum Asked {
    Command(CommandSource),
    ExitCode(CommandSource),
    Prometheus(prometheus::Prometheus),
    Docker(docker::Docker),
    Podman(podman::Podman),
    Kubernetes(kubernetes::Kubernetes),
    Cgroup(cgroup::Cgroup),
    Process(process::Process),
    Nvidia(nvidia::Nvidia),
    KernelLog(kernel_log::KernelLog),
}

impl Prober {
    /// A probe for a stability row.
    pub fn stability(row: &StabilityProbe, context: &Context) -> Self {
        match row {
            StabilityProbe::Counter { probe, across, .. } => Self::new(probe, *across, context),
            StabilityProbe::LastCode { probe } | StabilityProbe::Unchanged { probe } => {
                Self::new(probe, Across::Max, context)
            }
            StabilityProbe::ExitCode { command, timeout } => Self {
                asked: Asked::ExitCode(command.clone()),
                across: Across::Sum,
                timeout: *timeout,
                context: context.clone(),
            },
        }
    }

    /// A probe for a number.
    pub fn new(probe: &Probe, across: Across, context: &Context) -> Self {
        let asked = match &probe.source {
            Source::Command(source) => Asked::Command(source.clone()),
            Source::Prometheus(source) => Asked::Prometheus(prometheus::Prometheus::new(source, context)),
            Source::Docker(source) => Asked::Docker(docker::Docker::new(source, context)),
            Source::Podman(source) => Asked::Podman(podman::Podman::new(source, context)),
            Source::Kubernetes(source) => Asked::Kubernetes(kubernetes::Kubernetes::new(source, context)),
            Source::Cgroup(source) => Asked::Cgroup(cgroup::Cgroup::new(source, context)),
            Source::Process(source) => Asked::Process(process::Process::new(source, context)),
            Source::Nvidia(source) => Asked::Nvidia(nvidia::Nvidia::new(source, context)),
            Source::KernelLog(source) => Asked::KernelLog(kernel_log::KernelLog::new(source, context)),
        };
        Self { asked, across, timeout: probe.timeout, context: context.clone() }
    }

    /// Asks once, for no longer than the probe's timeout.
    pub async fn read(&mut self) -> Reading {
        let start = Instant::now();
        // A command is killed at its timeout, which takes a moment of its own.
        let grace = if matches!(self.asked, Asked::Command(_) | Asked::ExitCode(_)) { KILLING } else { Duration::ZERO };
        let answer = tokio::time::timeout(self.timeout.saturating_add(grace), self.ask()).await;
        let took_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        reading(answer.unwrap_or_else(|_| Err(too_late(self.timeout))), self.across, took_ns)
    }

    async fn ask(&mut self) -> Answer {
        let folder = &self.context.folder;
        match &mut self.asked {
            Asked::Command(source) => command::number(&source.command, folder, self.timeout).await.map(nameless),
            Asked::ExitCode(source) => command::exit_code(&source.command, folder, self.timeout).await.map(nameless),
            Asked::Prometheus(probe) => probe.read().await,
            Asked::Docker(probe) => probe.read().await,
            Asked::Podman(probe) => probe.read().await,
            Asked::Kubernetes(probe) => probe.read().await,
            Asked::Cgroup(probe) => probe.read().await,
            Asked::Process(probe) => probe.read().await,
            Asked::Nvidia(probe) => probe.read().await,
            Asked::KernelLog(probe) => probe.read().await,
        }
    }
}

/// The answer of a source that knows one number without a name.
fn nameless(value: f64) -> Vec<Series> {
    vec![Series { of: String::new(), since: None, value }]
}

/// What is told of an answer that did not come in time.
fn too_late(timeout: Duration) -> String {
    format!("took longer than {} and was given up", format_duration(timeout))
}

/// Takes one number from the several series of an answer.
fn reading(answer: Answer, across: Across, took_ns: u64) -> Reading {
    let series = match answer {
        Ok(series) => series,
        Err(failure) => return Reading { value: None, series: Vec::new(), failure: Some(failure), took_ns },
    };
    let values = || series.iter().map(|series| series.value);
    let (value, failure) = match series.iter().find(|series| !series.value.is_finite()) {
        None if series.is_empty() => (None, Some("nothing matched".to_owned())),
        None => match across {
            Across::Sum | Across::Each => (Some(values().sum()), None),
            Across::Max => (values().reduce(f64::max), None),
        },
        Some(odd) => (None, Some(format!("gave {} where a finite number was expected", odd.value))),
    };
    let is_nameless = series.iter().all(|series| series.of.is_empty() && series.since.is_none());
    let series = if is_nameless || value.is_none() { Vec::new() } else { series };
    Reading { value, series, failure, took_ns }
}
