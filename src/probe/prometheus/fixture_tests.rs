//! Pages of servers, against what another parser reads from them and what the ready-made sets promise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::page::Scan;
use crate::contract::{Across, MetricsPage, Preset, PrometheusSource, Resource, Source};
use crate::probe::Answer;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/metrics")
}

fn fixture(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect(name)
}

fn metrics_page() -> MetricsPage {
    MetricsPage { url: "http://127.0.0.1:9/metrics".parse().expect("a URL"), headers: Vec::new(), ca_file: None }
}

fn answers(page: &str, sources: &[PrometheusSource], openmetrics: bool) -> Vec<Answer> {
    let mut scan = Scan::new(sources, openmetrics);
    page.as_bytes().chunks(1_000).for_each(|piece| scan.push(piece).expect("a page"));
    scan.finish().expect("a page")
}

#[test]
fn every_number_is_what_the_python_client_reads() {
    let oracle: BTreeMap<String, BTreeMap<String, String>> =
        serde_json::from_str(&fixture("oracle.json")).expect("what oracle.py wrote");
    let pages = std::fs::read_dir(folder()).expect("the pages").map(|entry| entry.expect("a page").file_name());
    let pages: BTreeSet<String> = pages.filter_map(|name| name.into_string().ok()).collect();
    let pages: BTreeSet<&String> = pages.iter().filter(|name| name.ends_with(".txt")).collect();
    assert_eq!(pages, oracle.keys().collect(), "oracle.py was run after the last page was added");
    for (name, expected) in oracle {
        let of = |series: &String| series.split('{').next().unwrap_or_default().to_owned();
        let metrics: BTreeSet<String> = expected.keys().map(of).collect();
        let source = |metric| PrometheusSource { page: metrics_page(), metrics: vec![metric], labels: BTreeMap::new() };
        let sources: Vec<PrometheusSource> = metrics.into_iter().map(source).collect();
        let answers = answers(&fixture(&name), &sources, name.ends_with(".om.txt"));
        let read = answers.into_iter().flat_map(|answer| answer.expect(&name));
        let read: BTreeMap<String, u64> = read.map(|series| (series.of, series.value.to_bits())).collect();
        // Bits, so that -0 is not 0; Python writes what Rust reads.
        let bits = |(of, value): (String, String)| (of, value.parse::<f64>().expect("a number").to_bits());
        let expected: BTreeMap<String, u64> = expected.into_iter().map(bits).collect();
        assert_eq!(read, expected, "{name}");
    }
}

/// What a resource shows: its number over all series, in its unit.
fn shown(resource: &Resource, page: &str) -> Result<f64, String> {
    let Source::Prometheus(source) = &resource.probe.source else { panic!("{resource:?} is read off no page") };
    let series = answers(page, std::slice::from_ref(source), false).remove(0)?;
    let values = series.iter().map(|series| series.value);
    let number = match resource.across {
        Across::Sum | Across::Each => values.sum(),
        Across::Max => values.fold(f64::MIN, f64::max),
    };
    Ok(number * resource.scale)
}

#[track_caller]
fn check(preset: Preset, page: &str, expected: &[(&str, Option<f64>)]) {
    let page = fixture(page);
    let second = Duration::from_secs(1);
    let read: Vec<(String, Option<f64>)> = preset
        .resources(Some(&metrics_page()), second, second)
        .iter()
        .map(|resource| (resource.name.clone(), shown(resource, &page).ok()))
        .collect();
    let expected: Vec<(String, Option<f64>)> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    assert_eq!(read, expected);
}

#[test]
fn vllm_tells_all_in_its_names_of_either_time() {
    check(
        Preset::Vllm,
        "vllm.txt",
        &[
            ("kv_cache_usage", Some(0.8125)),
            ("requests_running", Some(32.0)),
            ("requests_waiting", Some(3.0)),
            ("preemptions", Some(7.0)),
            ("prefix_cache_hits", Some(400_016.0)),
            ("prefix_cache_queries", Some(1_234_600.0)),
        ],
    );
    check(
        Preset::Vllm,
        "vllm_0.8.txt",
        &[
            ("kv_cache_usage", Some(0.25)),
            ("requests_running", Some(8.0)),
            ("requests_waiting", Some(1.0)),
            ("preemptions", Some(0.0)),
            ("prefix_cache_hits", Some(7.0)),
            ("prefix_cache_queries", Some(48.0)),
        ],
    );
}

#[test]
fn sglang_tells_no_retraction_before_the_first() {
    check(
        Preset::Sglang,
        "sglang.txt",
        &[
            ("kv_cache_usage", Some(0.28)),
            ("requests_running", Some(162.0)),
            ("requests_waiting", Some(2826.0)),
            ("preemptions", None),
            ("prefix_cache_hits", Some(61_100.0)),
            ("prefix_cache_queries", Some(8_128_902.0)),
        ],
    );
}

#[test]
fn llama_cpp_tells_the_use_of_its_cache_in_old_versions_only() {
    check(
        Preset::LlamaCpp,
        "llama_cpp.txt",
        &[
            ("kv_cache_usage", None),
            ("requests_running", Some(4.0)),
            ("requests_waiting", Some(2.0)),
            ("prefix_cache_hits", Some(0.0)),
        ],
    );
    check(
        Preset::LlamaCpp,
        "llama_cpp_2025_03.txt",
        &[
            ("kv_cache_usage", Some(0.375)),
            ("requests_running", Some(2.0)),
            ("requests_waiting", Some(1.0)),
            ("prefix_cache_hits", None),
        ],
    );
}

#[test]
fn text_generation_inference_tells_its_batch_and_queue() {
    check(Preset::Tgi, "tgi.txt", &[("requests_running", Some(12.0)), ("requests_waiting", Some(4.0))]);
}

#[test]
fn triton_tells_what_its_backend_and_its_gpus_do() {
    check(
        Preset::Triton,
        "triton.txt",
        &[
            ("kv_cache_usage", Some(0.4375)),
            ("requests_running", Some(11.0)),
            ("requests_waiting", Some(5.0)),
            ("queue_length", Some(3.0)),
            ("gpu_utilization", Some(0.75)),
            ("gpu_memory_used", Some(21_474_836_480.0)),
            ("gpu_power", Some(500.75)),
        ],
    );
    let absent = ["queue_length", "gpu_utilization", "gpu_memory_used", "gpu_power"].map(|name| (name, None));
    let old = [("kv_cache_usage", None), ("requests_running", Some(3.0)), ("requests_waiting", None)];
    check(Preset::Triton, "triton_2024.txt", &[old.as_slice(), &absent].concat());
}

#[test]
fn dcgm_is_shown_in_shares_and_bytes() {
    check(
        Preset::Dcgm,
        "dcgm.txt",
        &[
            ("gpu_utilization", Some(1.0)),
            // 71,000 MiB
            ("gpu_memory_used", Some(74_448_896_000.0)),
            ("gpu_power", Some(812.75)),
            ("gpu_temperature", Some(64.0)),
        ],
    );
}
