//! Counters and health checks, read before the first trial and after every trial.

use std::collections::BTreeSet;

use super::Meaning;
use super::sources::DEFAULT_TIMEOUT;
use crate::contract::document::join;
use crate::contract::metric::Objective;
use crate::contract::model::{Endpoint, Slo};
use crate::contract::raw;
use crate::contract::source::{
    Across, CgroupField, CgroupOf, CgroupSource, ContainerField, PodField, Probe, ProcessField, ProcessOf,
    ProcessSource, Source, StabilityProbe, StabilityRow,
};

/// The metric in which NVIDIA's exporter shows the code of the last Xid error: a gauge, whose repeat shows no rise.
const LAST_XID: &str = "DCGM_FI_DEV_XID_ERRORS";

/// The rows that a verdict has of itself.
const ROWS: [&str; 7] =
    ["all_limits", "capacity", "endpoint", "plausibility", "load_generator", "completeness", "baseline"];
/// What the names of the rows of a comparison end with.
const CHANGE: &str = "_change";

impl Meaning<'_> {
    /// The rows, with those that come by themselves; `None` when one is wrong. Their names must differ from those of the
    /// objectives, beside which they stand.
    pub(super) fn stability(
        &mut self,
        written: Vec<Option<raw::StabilityRow>>,
        slo: Option<&Slo>,
        endpoint: Option<&Endpoint>,
    ) -> Option<Vec<StabilityRow>> {
        let mut names: BTreeSet<String> = ROWS.map(str::to_owned).into();
        if let Some(slo) = slo {
            names.extend(slo.objectives.iter().map(Objective::id));
            names.extend(slo.resources.iter().map(|limit| limit.id()));
        }
        let mut rows = Vec::with_capacity(written.len());
        for (index, row) in written.into_iter().enumerate() {
            let pointer = join("/stability", &index.to_string());
            if let Some(name) = row.as_ref().and_then(|row| row.name.as_ref())
                && (!names.insert(name.0.clone()) || name.0.ends_with(CHANGE))
            {
                let message = format!("the name `{}` is used by another row of the verdict; write another", name.0);
                self.fault(&join(&pointer, "name"), message);
            }
            rows.push(row.and_then(|row| self.row(row, &pointer, endpoint)));
        }
        // Who writes a row of that name wants it in place of the one that comes by itself.
        let others = automatic(endpoint).into_iter().filter(|row| !names.contains(&row.name));
        rows.into_iter().chain(others.map(Some)).collect()
    }

    fn row(&mut self, written: raw::StabilityRow, pointer: &str, endpoint: Option<&Endpoint>) -> Option<StabilityRow> {
        let counter_at = join(pointer, "counter");
        let exit_code_at = join(pointer, "exit_code");
        let has_counter = self.is_written(written.counter.as_ref(), &counter_at);
        let has_exit_code = self.is_written(written.exit_code.as_ref(), &exit_code_at);
        if has_counter == has_exit_code {
            let what = if has_counter { "only one of" } else { "one of" };
            self.fault(
                pointer,
                format!("write {what} `counter` (a number that must not rise) and `exit_code` (a health check)"),
            );
        }
        if has_exit_code && !has_counter {
            for (key, is_there) in
                [("max_increase", written.max_increase.is_some()), ("across", written.across.is_some())]
            {
                if is_there {
                    let message = "an exit code does not rise; remove it, or read a number with `counter`";
                    self.fault_at_key(&join(pointer, key), message);
                }
            }
        }
        let across = written.across.unwrap_or(Across::Sum);
        let counter = written.counter.and_then(|source| self.probe(source, &counter_at, endpoint));
        let counter = counter.and_then(|probe| self.reads(probe, written.max_increase, across, pointer));
        let exit_code = written.exit_code.and_then(|probe| self.command_probe(probe, &exit_code_at));
        let probe = match (counter, exit_code) {
            (Some(counter), None) => counter,
            (None, Some((command, timeout))) => StabilityProbe::ExitCode { command, timeout },
            _ => return None,
        };
        Some(StabilityRow { name: written.name?.0, probe, automatic: false })
    }

    /// What the numbers of a source are: a count, the last code, or who is there.
    fn reads(
        &mut self,
        probe: Probe,
        max_increase: Option<f64>,
        across: Across,
        pointer: &str,
    ) -> Option<StabilityProbe> {
        let what = match nature(&probe.source) {
            Nature::Count => {
                return Some(StabilityProbe::Counter { probe, across, max_increase: max_increase.unwrap_or_default() });
            }
            Nature::Level => {
                self.fault(pointer, "a level that falls and rises is no sign of stability; limit it as a resource, under `resources` and `slo.resources`");
                return None;
            }
            Nature::LastCode => "it is the last code and not a count, so any change of it counts; remove it",
            Nature::Identity => "a start time does not rise, it must stay the same; remove it",
        };
        if max_increase.is_some_and(|limit| limit > 0.0) {
            self.fault_at_key(&join(pointer, "max_increase"), what);
            return None;
        }
        Some(match nature(&probe.source) {
            Nature::LastCode => StabilityProbe::LastCode { probe },
            _ => StabilityProbe::Unchanged { probe },
        })
    }
}

/// What the numbers of a source are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    Count,
    Level,
    LastCode,
    Identity,
}

fn nature(source: &Source) -> Nature {
    use crate::contract::source::NvidiaField::{EccCorrected, EccUncorrected, RetiredPages, Throttled};
    match source {
        Source::Prometheus(source) if source.metrics.iter().any(|metric| metric == LAST_XID) => Nature::LastCode,
        // A state that is on or off: it may not come on, and one that is on already would hide that it came again.
        Source::Docker(source) | Source::Podman(source) => match source.field {
            ContainerField::RestartCount => Nature::Count,
            ContainerField::OomKilled => Nature::LastCode,
            ContainerField::StartTime => Nature::Identity,
        },
        Source::Kubernetes(source) if source.field == PodField::StartTime => Nature::Identity,
        Source::Process(ProcessSource { field: ProcessField::StartTime, .. }) => Nature::Identity,
        Source::Process(ProcessSource { field: ProcessField::Memory, .. })
        | Source::Cgroup(CgroupSource { field: CgroupField::MemoryUsed | CgroupField::MemoryPeak, .. }) => {
            Nature::Level
        }
        Source::Nvidia(source) => match source.field {
            EccUncorrected | EccCorrected | RetiredPages => Nature::Count,
            Throttled => Nature::LastCode,
            _ => Nature::Level,
        },
        Source::Command(_)
        | Source::Prometheus(_)
        | Source::Kubernetes(_)
        | Source::Cgroup(_)
        | Source::Process(_)
        | Source::KernelLog(_) => Nature::Count,
    }
}

/// The rows that come by themselves: what serves on this machine is the same process throughout, and of a launched endpoint
/// nothing in its control group was killed for want of memory.
fn automatic(endpoint: Option<&Endpoint>) -> Vec<StabilityRow> {
    let Some(endpoint) = endpoint else { return Vec::new() };
    let probe = |source| Probe { source, timeout: DEFAULT_TIMEOUT };
    let same = |of| {
        let process = ProcessSource { of, field: ProcessField::StartTime };
        StabilityProbe::Unchanged { probe: probe(Source::Process(process)) }
    };
    let row = |name: &str, probe| StabilityRow { name: name.to_owned(), probe, automatic: true };
    if endpoint.launch.is_none() {
        let port = endpoint.url.port_or_known_default().filter(|_| endpoint.is_on_loopback());
        return port.map(|port| row("endpoint_process", same(ProcessOf::Port(port)))).into_iter().collect();
    }
    let group = CgroupSource { of: CgroupOf::Process(ProcessOf::Endpoint), field: CgroupField::OomKill };
    vec![
        row("endpoint_process", same(ProcessOf::Endpoint)),
        row(
            "endpoint_oom_kills",
            StabilityProbe::Counter { probe: probe(Source::Cgroup(group)), across: Across::Sum, max_increase: 0.0 },
        ),
    ]
}
