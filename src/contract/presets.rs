//! Ready-made sets of resources, by the name of the server that tells them.
//!
//! Names and units come from the documentation and the source of each server; where they changed, the newest comes first,
//! and the first that a page holds counts. What a server does not tell is left out, and what a version of it does not tell
//! fails when it is read: there is no 0 for it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::source::{
    Across, MetricsPage, NvidiaField, NvidiaSource, Probe, ProcessField, ProcessOf, ProcessSource, PrometheusSource,
    Resource, ResourceKind, ResourceUnit, Source,
};

/// A ready-made set of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Preset {
    /// vLLM, from its metrics page (`/metrics` of the API's port).
    Vllm,
    /// SGLang, from its metrics page (`/metrics` of the API's port; the server needs `--enable-metrics`).
    Sglang,
    /// llama.cpp's server, from its metrics page (`/metrics` of the API's port; the server needs `--metrics`).
    LlamaCpp,
    /// Text Generation Inference, from its metrics page (`/metrics` of the API's port).
    Tgi,
    /// Triton with the TensorRT-LLM backend, from its metrics page (`/metrics` of port 8002).
    Triton,
    /// NVIDIA GPUs, from the page of DCGM's exporter (`/metrics` of port 9400).
    Dcgm,
    /// The simulated endpoint, from its metrics page (`/metrics` of its port).
    Simulated,
    /// NVIDIA GPUs of this machine, from `nvidia-smi`.
    Nvidia,
    /// The launched endpoint: CPU time and memory of all its processes.
    Process,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Vllm,
        Self::Sglang,
        Self::LlamaCpp,
        Self::Tgi,
        Self::Triton,
        Self::Dcgm,
        Self::Simulated,
        Self::Nvidia,
        Self::Process,
    ];

    /// Whether it is read off a metrics page, so that it needs a URL.
    pub fn has_page(self) -> bool {
        !matches!(self, Self::Nvidia | Self::Process)
    }

    /// The port of its page where that is not the endpoint's own, so that it must be written.
    pub fn page_port(self) -> Option<u16> {
        match self {
            Self::Triton => Some(8002),
            Self::Dcgm => Some(9400),
            _ => None,
        }
    }

    /// Its resources, each sampled with this period and for no longer than this timeout. One that needs a page has none
    /// without it.
    pub fn resources(self, page: Option<&MetricsPage>, every: Duration, timeout: Duration) -> Vec<Resource> {
        let resource = |told: &Told, source| Resource {
            name: told.name.to_owned(),
            kind: told.kind,
            unit: told.unit,
            probe: Probe { source, timeout },
            across: told.across,
            scale: told.scale,
            every,
        };
        match (self, page) {
            (Self::Nvidia, _) => NVIDIA.iter().map(|(told, field)| resource(told, nvidia(*field))).collect(),
            (Self::Process, _) => PROCESS.iter().map(|(told, field)| resource(told, process(*field))).collect(),
            (_, Some(page)) => {
                self.metrics().iter().map(|metric| resource(&metric.told, metric.source(page))).collect()
            }
            (_, None) => Vec::new(),
        }
    }

    fn metrics(self) -> &'static [Metric] {
        match self {
            Self::Vllm => VLLM,
            Self::Sglang => SGLANG,
            Self::LlamaCpp => LLAMA_CPP,
            Self::Tgi => TGI,
            Self::Triton => TRITON,
            Self::Dcgm => DCGM,
            Self::Simulated => SIMULATED,
            Self::Nvidia | Self::Process => &[],
        }
    }
}

/// What a resource's numbers are.
struct Told {
    name: &'static str,
    kind: ResourceKind,
    unit: ResourceUnit,
    across: Across,
    scale: f64,
}

/// A resource on a metrics page.
struct Metric {
    told: Told,
    names: &'static [&'static str],
    labels: &'static [(&'static str, &'static str)],
}

impl Metric {
    fn source(&self, page: &MetricsPage) -> Source {
        let text = |text: &&str| (*text).to_owned();
        Source::Prometheus(PrometheusSource {
            page: page.clone(),
            metrics: self.names.iter().map(text).collect(),
            labels: self.labels.iter().map(|(label, value)| (text(label), text(value))).collect(),
        })
    }

    const fn with(self, labels: &'static [(&'static str, &'static str)]) -> Self {
        Self { labels, ..self }
    }
}

fn nvidia(field: NvidiaField) -> Source {
    Source::Nvidia(NvidiaSource { field, gpus: Vec::new(), command: vec!["nvidia-smi".to_owned()] })
}

fn process(field: ProcessField) -> Source {
    Source::Process(ProcessSource { of: ProcessOf::Endpoint, field })
}

const fn gauge(name: &'static str, unit: ResourceUnit, across: Across) -> Told {
    Told { name, kind: ResourceKind::Gauge, unit, across, scale: 1.0 }
}

/// A number of requests, added up over the engines of a server.
const fn requests(name: &'static str) -> Told {
    gauge(name, ResourceUnit::Count, Across::Sum)
}

/// A count since the start, added up over the engines of a server.
const fn count(name: &'static str) -> Told {
    Told { name, kind: ResourceKind::Counter, unit: ResourceUnit::Count, across: Across::Sum, scale: 1.0 }
}

const fn on_page(told: Told, names: &'static [&'static str]) -> Metric {
    Metric { told, names, labels: &[] }
}

/// The fullest cache counts where there are several, for it is the first that preempts.
const KV_CACHE_USAGE: Told = gauge("kv_cache_usage", ResourceUnit::Ratio, Across::Max);
const REQUESTS_RUNNING: Told = requests("requests_running");
const REQUESTS_WAITING: Told = requests("requests_waiting");
const PREEMPTIONS: Told = count("preemptions");
const PREFIX_CACHE_HITS: Told = count("prefix_cache_hits");
const PREFIX_CACHE_QUERIES: Told = count("prefix_cache_queries");
/// Of several GPUs the busiest, the fullest and the hottest count; what they draw is added up.
const GPU_UTILIZATION: Told = gauge("gpu_utilization", ResourceUnit::Ratio, Across::Max);
const GPU_MEMORY_USED: Told = gauge("gpu_memory_used", ResourceUnit::Bytes, Across::Max);
const GPU_POWER: Told = gauge("gpu_power", ResourceUnit::Watts, Across::Sum);
const GPU_TEMPERATURE: Told = gauge("gpu_temperature", ResourceUnit::Celsius, Across::Max);

/// <https://docs.vllm.ai/en/stable/usage/metrics/> and `vllm/v1/metrics/loggers.py`. The names without `gpu_` came with 0.9.2;
/// those with it were deprecated then, hidden in 0.11 and removed in 0.12 (pull requests 18354, 24245 and 29330). Hits and
/// queries of the prefix cache are tokens; the engine V0, gone since 0.11, told their ratio alone, which is no counter.
const VLLM: &[Metric] = &[
    on_page(KV_CACHE_USAGE, &["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"]),
    on_page(REQUESTS_RUNNING, &["vllm:num_requests_running"]),
    on_page(REQUESTS_WAITING, &["vllm:num_requests_waiting"]),
    on_page(PREEMPTIONS, &["vllm:num_preemptions_total"]),
    on_page(PREFIX_CACHE_HITS, &["vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"]),
    on_page(PREFIX_CACHE_QUERIES, &["vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"]),
];

/// <https://docs.sglang.io/references/production_metrics.html> and `python/sglang/srt/metrics/collector.py`. What vLLM calls a
/// preemption is a retraction here; its counter came in the course of 0.5 and is on the page from the first retraction on. Hits of the prefix
/// cache are prompt tokens that were cached (by `cache_source` in newer versions), queries are all prompt tokens. With
/// `--enable-metrics-for-all-schedulers` each tensor-parallel rank tells the same requests, which are then added up.
const SGLANG: &[Metric] = &[
    on_page(KV_CACHE_USAGE, &["sglang:token_usage"]),
    on_page(REQUESTS_RUNNING, &["sglang:num_running_reqs"]),
    on_page(REQUESTS_WAITING, &["sglang:num_queue_reqs"]),
    on_page(PREEMPTIONS, &["sglang:num_retracted_requests_total"]),
    on_page(PREFIX_CACHE_HITS, &["sglang:cached_tokens_total"]),
    on_page(PREFIX_CACHE_QUERIES, &["sglang:prompt_tokens_total"]),
];

/// <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>, "GET /metrics". The usage of the cache was
/// removed in May 2025 (pull request 13660). A deferred request waits for a slot. Hits of the prefix cache are prompt tokens
/// that were cached, which newer versions tell; `prompt_tokens_total` counts only the others, so that nothing tells queries.
const LLAMA_CPP: &[Metric] = &[
    on_page(KV_CACHE_USAGE, &["llamacpp:kv_cache_usage_ratio"]),
    on_page(REQUESTS_RUNNING, &["llamacpp:requests_processing"]),
    on_page(REQUESTS_WAITING, &["llamacpp:requests_deferred"]),
    on_page(PREFIX_CACHE_HITS, &["llamacpp:prompt_tokens_cached_total"]),
];

/// <https://huggingface.co/docs/text-generation-inference/reference/metrics>. There is nothing about the cache.
const TGI: &[Metric] =
    &[on_page(REQUESTS_RUNNING, &["tgi_batch_current_size"]), on_page(REQUESTS_WAITING, &["tgi_queue_size"])];

/// <https://github.com/triton-inference-server/tensorrtllm_backend#triton-metrics> and its `custom_metrics_reporter.cc` for
/// the engine, in which older versions of the backend tell neither the used share of the cache nor waiting requests;
/// <https://github.com/triton-inference-server/server/blob/main/docs/user_guide/metrics.md> for the GPUs and for the queue of
/// the server itself, in front of the engine, which newer versions tell.
const TRITON: &[Metric] = &[
    on_page(KV_CACHE_USAGE, &["nv_trt_llm_kv_cache_block_metrics"]).with(&[("kv_cache_block_type", "fraction")]),
    on_page(REQUESTS_RUNNING, &["nv_trt_llm_request_metrics"]).with(&[("request_type", "scheduled")]),
    on_page(REQUESTS_WAITING, &["nv_trt_llm_request_metrics"]).with(&[("request_type", "waiting")]),
    on_page(requests("queue_length"), &["nv_inference_pending_request_count"]),
    on_page(GPU_UTILIZATION, &["nv_gpu_utilization"]),
    on_page(GPU_MEMORY_USED, &["nv_gpu_memory_used_bytes"]),
    on_page(GPU_POWER, &["nv_gpu_power_usage"]),
];

/// <https://github.com/NVIDIA/dcgm-exporter/blob/main/etc/default-counters.csv>: utilization in percent, memory in MiB.
const DCGM: &[Metric] = &[
    on_page(Told { scale: 0.01, ..GPU_UTILIZATION }, &["DCGM_FI_DEV_GPU_UTIL"]),
    on_page(Told { scale: 1_048_576.0, ..GPU_MEMORY_USED }, &["DCGM_FI_DEV_FB_USED"]),
    on_page(GPU_POWER, &["DCGM_FI_DEV_POWER_USAGE"]),
    on_page(GPU_TEMPERATURE, &["DCGM_FI_DEV_GPU_TEMP"]),
];

/// The page of the embedded endpoint.
const SIMULATED: &[Metric] = &[
    on_page(KV_CACHE_USAGE, &["goodput_simulated_kv_cache_usage_ratio"]),
    on_page(REQUESTS_RUNNING, &["goodput_simulated_requests_running"]),
    on_page(REQUESTS_WAITING, &["goodput_simulated_requests_waiting"]),
];

const NVIDIA: &[(Told, NvidiaField)] = &[
    (GPU_UTILIZATION, NvidiaField::Utilization),
    (GPU_MEMORY_USED, NvidiaField::MemoryUsed),
    (GPU_POWER, NvidiaField::Power),
    (GPU_TEMPERATURE, NvidiaField::Temperature),
];

const PROCESS: &[(Told, ProcessField)] = &[
    (
        Told { name: "cpu", kind: ResourceKind::Counter, unit: ResourceUnit::Seconds, across: Across::Sum, scale: 1.0 },
        ProcessField::CpuTime,
    ),
    (gauge("memory", ResourceUnit::Bytes, Across::Sum), ProcessField::Memory),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sets_have_distinct_names_and_what_was_asked() {
        let page = MetricsPage {
            url: "http://127.0.0.1:8000/metrics".parse().expect("a URL"),
            headers: Vec::new(),
            ca_file: None,
        };
        let (every, timeout) = (Duration::from_secs(2), Duration::from_secs(1));
        for preset in Preset::ALL {
            let resources = preset.resources(Some(&page), every, timeout);
            let names: BTreeSet<&str> = resources.iter().map(|resource| resource.name.as_str()).collect();
            assert_eq!(names.len(), resources.len(), "{preset:?}");
            assert!(names.len() >= 2, "{preset:?}");
            assert!(resources.iter().all(|one| one.every == every && one.probe.timeout == timeout), "{preset:?}");
            let is_read_off_it = resources.iter().all(|one| match &one.probe.source {
                Source::Prometheus(source) => source.page == page && !source.metrics.is_empty(),
                _ => false,
            });
            assert_eq!(is_read_off_it, preset.has_page(), "{preset:?}");
            assert_eq!(preset.resources(None, every, timeout).is_empty(), preset.has_page(), "{preset:?}");
        }
    }
}
