//! Where numbers about the system under test are read.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Meaning;
use super::endpoint::holds_secret;
use crate::contract::document::join;
use crate::contract::model::Endpoint;
use crate::contract::raw;
use crate::contract::schema::{DurationText, Whole};
use crate::contract::source::{
    CgroupOf, CgroupSource, CommandSource, ContainerSource, KernelLogSource, KubernetesSource, MetricsPage,
    NvidiaSource, Probe, ProcessOf, ProcessSource, PrometheusSource, Source,
};

/// How long a probe may take when the contract does not say.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The words for sources, as they are told when none or several are written.
const SOURCES: &str = "command, prometheus, docker, podman, kubernetes, cgroup, process, nvidia, kernel_log";

impl Meaning<'_> {
    /// A source and its timeout. `endpoint` is asked where a source names no place of its own.
    pub(super) fn probe(&mut self, written: raw::Source, pointer: &str, endpoint: Option<&Endpoint>) -> Option<Probe> {
        let timeout_at = join(pointer, "timeout");
        let timeout = self.above_zero(written.timeout.as_ref(), &timeout_at, DEFAULT_TIMEOUT);
        let named: Vec<&str> =
            SOURCES.split(", ").filter(|name| self.has_source(&written, name, &join(pointer, name))).collect();
        if named.len() != 1 {
            let message = match named.as_slice() {
                [] => format!("the source is missing; write one of {SOURCES}"),
                several => format!("write only one source, not {}", several.join(" and ")),
            };
            self.fault(pointer, message);
            return None;
        }
        let at = join(pointer, named.first().copied().unwrap_or_default());
        let source = self.source(written, &at, endpoint);
        Some(Probe { source: source?, timeout: timeout? })
    }

    fn has_source(&self, written: &raw::Source, name: &str, pointer: &str) -> bool {
        let is_there = match name {
            "command" => written.command.is_some(),
            "prometheus" => written.prometheus.is_some(),
            "docker" => written.docker.is_some(),
            "podman" => written.podman.is_some(),
            "kubernetes" => written.kubernetes.is_some(),
            "cgroup" => written.cgroup.is_some(),
            "process" => written.process.is_some(),
            "nvidia" => written.nvidia.is_some(),
            _ => written.kernel_log.is_some(),
        };
        is_there || self.refused.contains(pointer)
    }

    fn source(&mut self, written: raw::Source, at: &str, endpoint: Option<&Endpoint>) -> Option<Source> {
        if let Some(command) = written.command {
            return Some(Source::Command(CommandSource { command: self.command(Some(command), at)? }));
        }
        if let Some(prometheus) = written.prometheus {
            return self.prometheus(prometheus, at, endpoint).map(Source::Prometheus);
        }
        if let Some(docker) = written.docker {
            return self.container(docker, at).map(Source::Docker);
        }
        if let Some(podman) = written.podman {
            return self.container(podman, at).map(Source::Podman);
        }
        if let Some(kubernetes) = written.kubernetes {
            return self.kubernetes(kubernetes, at).map(Source::Kubernetes);
        }
        if let Some(raw::Cgroup { path, pid_file, port, field }) = written.cgroup {
            let of = self.group_of(path, pid_file, port, at, endpoint);
            return Some(Source::Cgroup(CgroupSource { of: of?, field: field? }));
        }
        if let Some(raw::Process { pid_file, port, field }) = written.process {
            let of = self.process_of(pid_file, port, at, endpoint);
            return Some(Source::Process(ProcessSource { of: of?, field: field? }));
        }
        if let Some(nvidia) = written.nvidia {
            return self.nvidia(nvidia, at).map(Source::Nvidia);
        }
        let log = written.kernel_log?;
        let command = match log.command {
            Some(command) => Some(self.command(Some(command), &join(at, "command"))?),
            None => None,
        };
        Some(Source::KernelLog(KernelLogSource {
            contains: self.plain_text(log.r#match, &join(at, "match"))?,
            command,
        }))
    }

    fn prometheus(
        &mut self,
        written: raw::Prometheus,
        at: &str,
        endpoint: Option<&Endpoint>,
    ) -> Option<PrometheusSource> {
        let page = self.page(written.url.as_deref(), written.headers, written.ca_file, at, endpoint);
        let metric = self.plain_text(written.metric, &join(at, "metric"));
        let mut labels = BTreeMap::new();
        for (name, value) in written.labels.unwrap_or_default() {
            labels.insert(name, value?);
        }
        Some(PrometheusSource { page: page?, metrics: vec![metric?], labels })
    }

    /// A page of metrics; that of the endpoint where no URL is written.
    pub(super) fn page(
        &mut self,
        url: Option<&str>,
        headers: Option<BTreeMap<String, Option<raw::HeaderValue>>>,
        ca_file: Option<String>,
        at: &str,
        endpoint: Option<&Endpoint>,
    ) -> Option<MetricsPage> {
        let url_at = join(at, "url");
        let headers = self.headers(headers.unwrap_or_default(), &join(at, "headers"));
        let written_file = ca_file.map(|file| self.folder.join(file));
        let (url, ca_file) = if self.is_written(url.as_ref(), &url_at) {
            let url = self.http_url(url?, &url_at, &["http", "https"])?;
            if holds_secret(&url) {
                let message =
                    "the query holds a secret; send it as a header with `headers: { NAME: { env: VARIABLE } }`";
                self.fault(&url_at, message);
                return None;
            }
            if url.port() == Some(0) {
                self.fault(
                    &url_at,
                    "port 0 is no port to ask; write the port, or remove `url` to ask the endpoint's own page",
                );
                return None;
            }
            (url, written_file)
        } else {
            let endpoint = endpoint?;
            (own_page(endpoint), written_file.or_else(|| endpoint.ca_file.clone()))
        };
        Some(MetricsPage { url, headers: headers?, ca_file })
    }

    fn container(&mut self, written: raw::Container, at: &str) -> Option<ContainerSource> {
        let host_at = join(at, "host");
        let host = self.optional_text(written.host, &host_at)?;
        let known = ["unix:///", "http://", "tcp://"];
        if host.as_ref().is_some_and(|host| !known.iter().any(|scheme| host.starts_with(scheme))) {
            let message = "not an engine's address; write a socket or a URL, as in `unix:///var/run/docker.sock`";
            self.fault(&host_at, message);
            return None;
        }
        if host.as_ref().is_some_and(|host| host.contains('@')) {
            self.fault(
                &host_at,
                "the address holds credentials; remove them: an engine that asks for some is not reached",
            );
            return None;
        }
        let container = self.plain_text(written.container, &join(at, "container"));
        Some(ContainerSource { container: container?, field: written.field?, host })
    }

    fn kubernetes(&mut self, written: raw::Kubernetes, at: &str) -> Option<KubernetesSource> {
        let selector = self.plain_text(written.selector, &join(at, "selector"));
        let namespace = self.optional_text(written.namespace, &join(at, "namespace"));
        let container = self.optional_text(written.container, &join(at, "container"));
        let context = self.optional_text(written.context, &join(at, "context"));
        let kubeconfig = written.kubeconfig.map(|file| self.folder.join(file));
        Some(KubernetesSource {
            namespace: namespace?,
            selector: selector?,
            container: container?,
            context: context?,
            kubeconfig,
            field: written.field?,
        })
    }

    fn nvidia(&mut self, written: raw::Nvidia, at: &str) -> Option<NvidiaSource> {
        let gpus: Option<Vec<String>> = written.gpus.unwrap_or_default().into_iter().collect();
        let command = match written.command {
            Some(command) => self.command(Some(command), &join(at, "command")),
            None => Some(vec!["nvidia-smi".to_owned()]),
        };
        Some(NvidiaSource { field: written.field?, gpus: gpus?, command: command? })
    }

    fn group_of(
        &mut self,
        path: Option<String>,
        pid_file: Option<String>,
        port: Option<Whole>,
        at: &str,
        endpoint: Option<&Endpoint>,
    ) -> Option<CgroupOf> {
        if !self.is_written(path.as_ref(), &join(at, "path")) {
            return self.process_of(pid_file, port, at, endpoint).map(CgroupOf::Process);
        }
        if pid_file.is_some() || port.is_some() {
            self.fault(at, "write only one of `path`, `pid_file` and `port`");
            return None;
        }
        path.map(|path| CgroupOf::Path(self.folder.join(path)))
    }

    /// Which process is meant; the launched endpoint where nothing says otherwise.
    fn process_of(
        &mut self,
        pid_file: Option<String>,
        port: Option<Whole>,
        at: &str,
        endpoint: Option<&Endpoint>,
    ) -> Option<ProcessOf> {
        let has_file = self.is_written(pid_file.as_ref(), &join(at, "pid_file"));
        let has_port = self.is_written(port.as_ref(), &join(at, "port"));
        match (has_file, has_port) {
            (true, true) => {
                self.fault(at, "write only one of `pid_file` and `port`");
                None
            }
            (true, false) => pid_file.map(|file| ProcessOf::PidFile(self.folder.join(file))),
            (false, true) => port.and_then(|port| u16::try_from(port.0).ok()).map(ProcessOf::Port),
            (false, false) if endpoint?.launch.is_some() => Some(ProcessOf::Endpoint),
            (false, false) => {
                let message = "this run does not launch the endpoint, so say which process is meant: write `port: 8000` or `pid_file: …`";
                self.fault(at, message);
                None
            }
        }
    }

    /// A text of one line, where one is written; `None` only when it is wrong.
    fn optional_text(&mut self, written: Option<String>, pointer: &str) -> Option<Option<String>> {
        if !self.is_written(written.as_ref(), pointer) {
            return Some(None);
        }
        self.plain_text(written, pointer).map(Some)
    }

    /// A command that answers by its exit code, and its timeout.
    pub(super) fn command_probe(
        &mut self,
        written: raw::CommandProbe,
        pointer: &str,
    ) -> Option<(CommandSource, Duration)> {
        let command = self.command(written.command, &join(pointer, "command"));
        let timeout: Option<&DurationText> = written.timeout.as_ref();
        let timeout = self.above_zero(timeout, &join(pointer, "timeout"), DEFAULT_TIMEOUT);
        Some((CommandSource { command: command? }, timeout?))
    }
}

/// The page on which servers publish their metrics, of the endpoint itself.
fn own_page(endpoint: &Endpoint) -> url::Url {
    let mut url = endpoint.url.clone();
    let scheme = if matches!(url.scheme(), "https" | "wss") { "https" } else { "http" };
    // Both schemes are special ones of the URL standard, between which a change is allowed.
    let _ = url.set_scheme(scheme);
    url.set_path("/metrics");
    url.set_query(None);
    url
}
