//! Stability rows and resources as they are written.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::HeaderValue;
use crate::contract::presets::Preset;
use crate::contract::schema::{Amount, DurationText, RowName, Whole};
use crate::contract::source::{
    Across, CgroupField, ContainerField, NvidiaField, PodField, ProcessField, ResourceUnit, Statistic,
};

/// One stability row: exactly one of `counter` and `exit_code`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct StabilityRow {
    /// The row's name in the verdict.
    #[schemars(required)]
    pub(in crate::contract) name: Option<RowName>,
    /// What is read before the first trial and after every trial.
    pub(in crate::contract) counter: Option<Source>,
    /// A command whose exit code must be 0, before the first trial and after every trial.
    pub(in crate::contract) exit_code: Option<CommandProbe>,
    /// The largest rise of the counter that still passes.
    #[schemars(range(min = 0), extend("default" = 0))]
    pub(in crate::contract) max_increase: Option<f64>,
    /// What of several series is held against the limit.
    #[schemars(extend("default" = "sum"))]
    pub(in crate::contract) across: Option<Across>,
}

/// A command that answers by its exit code.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct CommandProbe {
    /// Program and arguments; the contract's folder is the working directory.
    #[schemars(required, length(min = 1))]
    pub(in crate::contract) command: Option<Vec<Option<String>>>,
    /// Longest time it may take.
    #[schemars(extend("default" = "10s"))]
    pub(in crate::contract) timeout: Option<DurationText>,
}

/// Where a number is read: exactly one source, and how long it may take.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Source {
    /// Program and arguments of a command that prints one number; the contract's folder is the working directory.
    #[schemars(length(min = 1))]
    pub(in crate::contract) command: Option<Vec<Option<String>>>,
    /// A metric on a Prometheus or OpenMetrics page.
    pub(in crate::contract) prometheus: Option<Prometheus>,
    /// A container of Docker.
    pub(in crate::contract) docker: Option<Container>,
    /// A container of Podman.
    pub(in crate::contract) podman: Option<Container>,
    /// The pods of a Kubernetes workload.
    pub(in crate::contract) kubernetes: Option<Kubernetes>,
    /// A control group of this machine.
    pub(in crate::contract) cgroup: Option<Cgroup>,
    /// A process of this machine.
    pub(in crate::contract) process: Option<Process>,
    /// NVIDIA GPUs of this machine.
    pub(in crate::contract) nvidia: Option<Nvidia>,
    /// Lines of this machine's kernel log.
    pub(in crate::contract) kernel_log: Option<KernelLog>,
    /// Longest time an answer may take.
    #[schemars(extend("default" = "10s"))]
    pub(in crate::contract) timeout: Option<DurationText>,
}

/// A metric on a Prometheus or OpenMetrics page.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Prometheus {
    /// The page; `/metrics` of the endpoint unless written.
    pub(in crate::contract) url: Option<String>,
    /// The metric's name.
    #[schemars(required, length(min = 1), extend("examples" = ["vllm:num_preemptions_total"]))]
    pub(in crate::contract) metric: Option<String>,
    /// Labels that a series must have, with their values.
    pub(in crate::contract) labels: Option<BTreeMap<String, Option<String>>>,
    /// Headers of the request; secrets come from environment variables.
    pub(in crate::contract) headers: Option<BTreeMap<String, Option<HeaderValue>>>,
    /// PEM file of certificates that are trusted besides the system's.
    #[schemars(length(min = 1))]
    pub(in crate::contract) ca_file: Option<String>,
}

/// A container.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Container {
    /// Its name or id.
    #[schemars(required, length(min = 1))]
    pub(in crate::contract) container: Option<String>,
    /// What is asked of it.
    #[schemars(required)]
    pub(in crate::contract) field: Option<ContainerField>,
    /// The engine's address; its usual socket unless written.
    #[schemars(length(min = 1), extend("examples" = ["unix:///var/run/docker.sock"]))]
    pub(in crate::contract) host: Option<String>,
}

/// The pods of a Kubernetes workload.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Kubernetes {
    /// Their namespace; that of the context unless written.
    #[schemars(length(min = 1))]
    pub(in crate::contract) namespace: Option<String>,
    /// The label selector.
    #[schemars(required, length(min = 1), extend("examples" = ["app=vllm"]))]
    pub(in crate::contract) selector: Option<String>,
    /// The container in them; all unless written.
    #[schemars(length(min = 1))]
    pub(in crate::contract) container: Option<String>,
    /// What is asked of them.
    #[schemars(required)]
    pub(in crate::contract) field: Option<PodField>,
    /// The kubeconfig; the usual one, or the pod's own token, unless written.
    #[schemars(length(min = 1))]
    pub(in crate::contract) kubeconfig: Option<String>,
    /// The context of the kubeconfig; the current one unless written.
    #[schemars(length(min = 1))]
    pub(in crate::contract) context: Option<String>,
}

/// A control group: that of the launched endpoint unless one of `path`, `pid_file` and `port` says otherwise.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Cgroup {
    /// The group's folder.
    #[schemars(length(min = 1), extend("examples" = ["/sys/fs/cgroup/system.slice/vllm.service"]))]
    pub(in crate::contract) path: Option<String>,
    /// The file with the number of a process of the group.
    #[schemars(length(min = 1))]
    pub(in crate::contract) pid_file: Option<String>,
    /// The TCP port of this machine on which a process of the group listens.
    #[schemars(range(min = 1, max = 65535))]
    pub(in crate::contract) port: Option<Whole>,
    /// What is asked of it.
    #[schemars(required)]
    pub(in crate::contract) field: Option<CgroupField>,
}

/// A process: the launched endpoint unless one of `pid_file` and `port` says otherwise.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Process {
    /// The file with its number.
    #[schemars(length(min = 1))]
    pub(in crate::contract) pid_file: Option<String>,
    /// The TCP port of this machine on which it listens.
    #[schemars(range(min = 1, max = 65535))]
    pub(in crate::contract) port: Option<Whole>,
    /// What is asked of it.
    #[schemars(required)]
    pub(in crate::contract) field: Option<ProcessField>,
}

/// NVIDIA GPUs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct Nvidia {
    /// What is asked of them.
    #[schemars(required)]
    pub(in crate::contract) field: Option<NvidiaField>,
    /// Indices or UUIDs; all unless written.
    #[schemars(length(min = 1), extend("examples" = [["0", "1"]]))]
    pub(in crate::contract) gpus: Option<Vec<Option<String>>>,
    /// `nvidia-smi` with its first arguments, where it is called otherwise.
    #[schemars(length(min = 1), extend("examples" = [["nvidia-smi"]]))]
    pub(in crate::contract) command: Option<Vec<Option<String>>>,
}

/// Lines of the kernel's log.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct KernelLog {
    /// The text that a line must hold to be counted.
    #[schemars(required, length(min = 1), extend("examples" = ["NVRM: Xid"]))]
    pub(in crate::contract) r#match: Option<String>,
    /// A command that prints the log; `/dev/kmsg` is read unless written.
    #[schemars(length(min = 1), extend("examples" = [["sudo", "dmesg"]]))]
    pub(in crate::contract) command: Option<Vec<Option<String>>>,
}

/// What is sampled while trials run: one entry, or a list of them.
#[derive(Debug, Default)]
pub(in crate::contract) struct Resources {
    pub(in crate::contract) entries: Vec<Option<ResourceEntry>>,
    /// Whether they were written as a list.
    pub(in crate::contract) listed: bool,
}

impl<'de> Deserialize<'de> for Resources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let value = serde_json::Value::deserialize(deserializer)?;
        let listed = value.is_array();
        let entries = if listed {
            serde_json::from_value(value).map_err(D::Error::custom)?
        } else {
            vec![serde_json::from_value(value).map_err(D::Error::custom)?]
        };
        Ok(Self { entries, listed })
    }
}

impl JsonSchema for Resources {
    fn schema_name() -> Cow<'static, str> {
        "Resources".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let entry = generator.subschema_for::<ResourceEntry>();
        // The branch is chosen by form, so that a mistake is told about the form that was meant.
        json_schema!({
            "title": "a resource or a list of them; write one, as in `{ preset: vllm }`",
            "type": ["array", "object"],
            "if": { "type": "array" },
            "then": { "items": entry },
            "else": entry,
        })
    }
}

/// A ready-made set of resources with `preset`, or one resource with `name` and one of `gauge` and `counter`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct ResourceEntry {
    /// The server or tool whose metrics are sampled.
    pub(in crate::contract) preset: Option<Preset>,
    /// The page of a `preset`; `/metrics` of the endpoint unless written.
    pub(in crate::contract) url: Option<String>,
    /// Headers of its request; secrets come from environment variables.
    pub(in crate::contract) headers: Option<BTreeMap<String, Option<HeaderValue>>>,
    /// PEM file of certificates that are trusted besides the system's.
    #[schemars(length(min = 1))]
    pub(in crate::contract) ca_file: Option<String>,
    /// The name of a resource; before the names of a `preset`, when two of them have the same.
    pub(in crate::contract) name: Option<RowName>,
    /// A level.
    pub(in crate::contract) gauge: Option<Source>,
    /// A count that only rises; it tells of its rate.
    pub(in crate::contract) counter: Option<Source>,
    /// The unit of a resource's numbers, once scaled; what the source knows, or `count`, unless written.
    pub(in crate::contract) unit: Option<ResourceUnit>,
    /// What the numbers are multiplied by, as 1048576 for MiB.
    #[schemars(extend("exclusiveMinimum" = 0, "default" = 1))]
    pub(in crate::contract) scale: Option<f64>,
    /// What of several series is kept: `max` of a gauge and `sum` of a counter unless written; `each` is for stability rows.
    pub(in crate::contract) across: Option<Across>,
    /// The period of sampling.
    #[schemars(extend("default" = "1s"))]
    pub(in crate::contract) every: Option<DurationText>,
    /// Longest time that a reading of a `preset` may take.
    #[schemars(extend("default" = "5s"))]
    pub(in crate::contract) timeout: Option<DurationText>,
}

/// A limit on a resource at the load that must hold.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::contract) struct ResourceLimit {
    /// The resource's name.
    #[schemars(required, extend("examples" = ["kv_cache_usage"]))]
    pub(in crate::contract) resource: Option<String>,
    /// What of its samples is limited: `max` of a gauge and `rate` (per second) of a counter unless written.
    pub(in crate::contract) statistic: Option<Statistic>,
    /// The limit; strictly above is a violation.
    #[schemars(required)]
    pub(in crate::contract) at_most: Option<Amount>,
}
