//! The probes of container engines and of Kubernetes, against servers that answer as the published descriptions say, and
//! against servers that do not.

mod containers;
mod descriptions;
mod hostile;
mod kubernetes;
mod plugin;
mod server;

use std::time::Duration;

use goodput::contract::{Across, ContainerField, ContainerSource, KubernetesSource, PodField, Probe, Source};
use goodput::probe::{Context, Prober};
use goodput::record::{Reading, Series};

use crate::client::HANG;

/// A reply of `tests/fixtures/engines`.
fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/engines/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn prober(source: Source, timeout: Duration) -> Prober {
    let context = Context { folder: "/".into(), endpoint: None, port: 0 };
    Prober::new(&Probe { source, timeout }, Across::Sum, &context)
}

/// A container of the engine at `host`.
fn container(host: &str, name: &str, field: ContainerField) -> ContainerSource {
    ContainerSource { container: name.to_owned(), field, host: Some(host.to_owned()) }
}

fn docker(host: &str, field: ContainerField) -> Prober {
    prober(Source::Docker(container(host, "vllm", field)), HANG)
}

fn podman(host: &str, field: ContainerField) -> Prober {
    prober(Source::Podman(container(host, "vllm", field)), HANG)
}

/// Pods with the label `app=vllm`, by a kubeconfig.
fn pods(kubeconfig: &std::path::Path, field: PodField, timeout: Duration) -> Prober {
    let source = KubernetesSource {
        namespace: None,
        selector: "app=vllm".to_owned(),
        container: Some("vllm".to_owned()),
        context: None,
        kubeconfig: Some(kubeconfig.to_owned()),
        field,
    };
    prober(Source::Kubernetes(source), timeout)
}

/// What a reading says, or why it says nothing.
fn series(reading: Reading) -> Result<Vec<Series>, String> {
    match reading.failure {
        Some(failure) => {
            assert_eq!((reading.value, reading.series.len()), (None, 0), "{failure}");
            assert!(!failure.contains('\n') && failure.chars().count() < 1000, "{failure}");
            Err(failure)
        }
        None => Ok(reading.series),
    }
}

fn told(of: &str, since: &str, value: f64) -> Series {
    Series { of: of.to_owned(), since: Some(since.to_owned()), value }
}
