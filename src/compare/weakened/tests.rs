use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::contract::parse;

const BASE: &str = "\
version: 1
name: demo
endpoint:
  url: http://127.0.0.1:8000/v1/chat/completions
  protocol: openai-chat
  model: m
  timeout: 60s
  idle_timeout: 20s
workload:
  cases: [{ id: a, prompt: hi, max_tokens: 4 }]
traffic:
  model: poisson
  loads: [1/s, 2/s, 4/s]
  trial: { requests: 300, warm_up: 10s, drain: 30s }
  search: { from: 1/s, to: 16/s, precision: 5%, seeds: 5 }
  repeats: [3, 5, 8]
slo:
  request: { ttft: 3s, e2e: 30s }
  objectives:
    - { metric: ttft, percentile: 95, at_most: 3s }
    - { metric: success_rate, at_least: 99% }
    - { metric: attainment, at_least: 95% }
  at_load: 4/s
  capacity: { at_least: 3.5/s }
  resources:
    - { resource: disk, at_most: 90GB }
stability:
  - { name: resets, counter: { prometheus: { metric: resets_total } }, max_increase: 2 }
  - { name: health, exit_code: { command: [./health.sh, --strict] } }
resources:
  - { name: disk, gauge: { command: [df] }, unit: bytes, every: 2s }
baseline:
  margin: 5%
  from: [file]
  latency:
    - { metric: ttft, percentile: 99, margin: 10%, gates: true }
  fingerprint: { must_match: { node_pool: a } }
  release: release.json
policy: { unknown: block, missing_baseline: block }
";

fn contract(text: &str) -> Contract {
    match parse(text, Path::new("/repo")) {
        Ok(loaded) => loaded.contract,
        Err(faults) => panic!("{faults:?}\n{text}"),
    }
}

fn changed(from: &str, to: &str) -> Contract {
    assert_eq!(BASE.matches(from).count(), 1, "`{from}` must be there once");
    contract(&BASE.replace(from, to))
}

fn told(base: &Contract, head: &Contract) -> Vec<(String, String)> {
    weakened(base, head).into_iter().map(|weakening| (weakening.pointer, weakening.what)).collect()
}

/// Changes of one place that ask for less, each with what is told. The way back asks for more, unless it is told too.
const LESS: &[(&str, &str, &str, &str)] = &[
    ("timeout: 60s", "timeout: 90s", "/endpoint/timeout", "timeout from 1m to 90s"),
    ("idle_timeout: 20s", "idle_timeout: 30s", "/endpoint/idle_timeout", "idle_timeout from 20s to 30s"),
    ("loads: [1/s, 2/s, 4/s]", "loads: [1/s, 4/s]", "/traffic/loads", "2/s is not listed any more"),
    ("requests: 300", "requests: 200", "/traffic/trial/window", "requests in a window from 300 to 200"),
    ("model: poisson", "model: constant", "/traffic/model", "arrivals from poisson to constant"),
    ("from: 1/s", "from: 2/s", "/traffic/search/from", "search from the lowest load from 1/s to 2/s"),
    ("to: 16/s", "to: 8/s", "/traffic/search/to", "search up to the highest load from 16/s to 8/s"),
    ("precision: 5%", "precision: 10%", "/traffic/search/precision", "precision of the search from 5% to 10%"),
    ("seeds: 5", "seeds: 3", "/traffic/search/seeds", "searches from 5 to 3"),
    (
        "  search: { from: 1/s, to: 16/s, precision: 5%, seeds: 5 }\n",
        "",
        "/traffic/search",
        "the search for the capacity is missing",
    ),
    ("[3, 5, 8]", "[3]", "/traffic/repeats", "trials at the load that must hold from 8 to 3"),
    ("  repeats: [3, 5, 8]\n", "  claim: this_run\n", "/traffic/claim", "claim from typical_run to this_run"),
    ("ttft: 3s,", "ttft: 4s,", "/slo/request/ttft", "ttft of a request from 3s to 4s"),
    ("ttft: 3s, e2e: 30s", "ttft: 3s", "/slo/request", "e2e is missing; it was 30s"),
    ("at_most: 3s", "at_most: 3500ms", "/slo/objectives/0/at_most", "ttft_p95 from 3s to 3.5s"),
    ("percentile: 95", "percentile: 90", "/slo/objectives", "ttft_p95 is missing; it was ≤ 3s"),
    (
        "    - { metric: ttft, percentile: 95, at_most: 3s }\n",
        "",
        "/slo/objectives",
        "ttft_p95 is missing; it was ≤ 3s",
    ),
    ("at_least: 99%", "at_least: 98.5%", "/slo/objectives/1/at_least", "success_rate from 99% to 98.5%"),
    ("at_least: 95%", "at_least: 90%", "/slo/objectives/2/at_least", "attainment from 95% to 90%"),
    ("at_load: 4/s", "at_load: 3/s", "/slo/at_load", "the load that must hold from 4/s to 3/s"),
    ("at_least: 3.5/s", "at_least: 3/s", "/slo/capacity/at_least", "the least capacity from 3.5/s to 3/s"),
    ("  capacity: { at_least: 3.5/s }\n", "", "/slo/capacity", "the least capacity is missing; it was 3.5/s"),
    ("at_most: 90GB", "at_most: 95GB", "/slo/resources/0/at_most", "disk_max from 83.8 GiB to 88.5 GiB"),
    ("every: 2s", "every: 5s", "/resources", "disk is sampled from every 2s to every 5s"),
    ("[df]", "[du]", "/resources", "disk is read in another way"),
    ("max_increase: 2", "max_increase: 3", "/stability/0/max_increase", "max_increase of resets from 2 to 3"),
    ("resets_total", "aborts_total", "/stability/0", "resets is asked in another way"),
    ("[./health.sh, --strict]", "[./health.sh]", "/stability/1", "health is asked in another way"),
    ("name: health,", "name: alive,", "/stability", "health is missing"),
    ("margin: 5%", "margin: 6%", "/baseline/margin", "margin from 5% to 6%"),
    ("margin: 10%", "margin: 12%", "/baseline/latency/0/margin", "margin of ttft_p99 from 10% to 12%"),
    ("gates: true", "gates: false", "/baseline/latency/0/gates", "ttft_p99 is only shown"),
    ("must_match: {", "noted: {", "/baseline/fingerprint/must_match", "`node_pool` need not match any more"),
    ("  release: release.json\n", "", "/baseline/release", "no release is held against slow decline any more"),
    ("name: demo", "name: other", "/name", "the name from `demo` to `other`, under which no baseline is kept"),
    ("from: [file]", "from: [branch]", "/baseline/from", "baselines are taken from other places"),
    (
        "margin: 5%\n  from",
        "margin: 5%\n  within: { commits: 1 }\n  from",
        "/baseline/within",
        "baselines are looked for within other bounds",
    ),
    (
        "release: release.json",
        "release: easy.json",
        "/baseline/release",
        "slow decline is held against another release",
    ),
    (
        "  margin: 5%\n",
        "  margin: 5%\n  accepted: all.yaml\n",
        "/baseline/accepted",
        "exceptions are read from another file",
    ),
    ("unknown: block", "unknown: warn", "/policy/unknown", "`unknown` from block to warn"),
    (
        "missing_baseline: block",
        "missing_baseline: warn",
        "/policy/missing_baseline",
        "`missing_baseline` from block to warn",
    ),
];

/// What is told in both directions, because neither is known to be less.
const EITHER_WAY: [&str; 9] = [
    "[df]",
    "resets_total",
    "[./health.sh, --strict]",
    "name: health,",
    "percentile: 95",
    "name: demo",
    "from: [file]",
    "margin: 5%\n  from",
    "release: release.json",
];

#[test]
fn every_place_that_asks_for_less_is_told_and_the_way_back_is_not() {
    let base = contract(BASE);
    for (from, to, pointer, what) in LESS {
        // With less at a load, the loads listed are fewer too.
        let head = changed(from, to);
        let told_of = told(&base, &head);
        assert!(told_of.contains(&((*pointer).to_owned(), (*what).to_owned())), "`{from}` became `{to}`: {told_of:?}");
        assert_eq!(told_of.len(), 1, "`{from}` became `{to}`: {told_of:?}");
        if !EITHER_WAY.contains(from) {
            assert_eq!(told(&head, &base), [], "`{to}` became `{from}`");
        }
    }
}

/// A change that brings its own endpoint to be compared with sets its own bar.
#[test]
fn another_endpoint_beside_it_is_told() {
    let launch = |command: &str| format!("launch: {{ command: [{command}] }}");
    let with = |pair: &str| {
        let text = BASE.replace("  model: m\n", &format!("  model: m\n  {}\n", launch("./serve.sh")));
        contract(&text.replace("  margin: 5%\n", &format!("  margin: 5%\n{pair}")))
    };
    let pair = |command: &str, when: &str| format!("  pair: {{ {}, when: {when} }}\n", launch(command));
    let (none, own) = (with(""), with(&pair("./base.sh", "always")));
    for (base, head) in [
        (&none, &own),
        (&own, &none),
        (&own, &with(&pair("./slow.sh", "always"))),
        (&own, &with(&pair("./base.sh", "suspected"))),
    ] {
        let told = told(base, head);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, "/baseline/pair");
    }
    assert_eq!(told(&own, &with(&pair("./base.sh", "always"))), []);
}

#[test]
fn a_dropped_baseline_and_another_loop_are_told() {
    let base = contract(BASE);
    let at = BASE.find("baseline:\n").expect("the part");
    let end = BASE.find("policy:").expect("the next part");
    let head = contract(&format!("{}{}", &BASE[..at], &BASE[end..]));
    let expected = ("/baseline".to_owned(), "nothing is compared with a baseline any more".to_owned());
    assert_eq!(told(&base, &head), [expected]);
    let closed = BASE
        .replace("model: poisson\n  loads: [1/s, 2/s, 4/s]", "model: closed\n  concurrency: [8]")
        .replace("requests: 300, warm_up: 10s", "window: 60s, warm_up: 10s")
        .replace("  search: { from: 1/s, to: 16/s, precision: 5%, seeds: 5 }\n", "")
        .replace("at_load: 4/s\n  capacity: { at_least: 3.5/s }", "at_concurrency: 8");
    let pointers: Vec<String> = weakened(&base, &contract(&closed)).into_iter().map(|found| found.pointer).collect();
    assert_eq!(pointers, ["/traffic/model", "/traffic/search", "/slo/capacity"]);
    assert_eq!(told(&contract(&closed), &base).len(), 1);
}

#[test]
fn a_higher_percentile_with_the_same_limit_and_an_endpoint_that_moves_ask_for_nothing_less() {
    let base = contract(BASE);
    for (from, to) in
        [("percentile: 95", "percentile: 99"), ("127.0.0.1:8000", "127.0.0.1:9000"), ("prompt: hi", "prompt: ho")]
    {
        assert_eq!(told(&base, &changed(from, to)), [], "`{from}` became `{to}`");
    }
    // On another machine, what comes by itself for a process of this one is not asked any more.
    let away = told(&base, &changed("127.0.0.1:8000", "10.0.0.7:8000"));
    assert_eq!(away, [("/stability".to_owned(), "endpoint_process is missing".to_owned())]);
}

proptest! {
    /// Any two contracts of these changes: none is weaker than itself, no pair panics, and each change is told beside any other.
    #[test]
    fn several_changes_are_told_together(first in 0..LESS.len(), second in 0..LESS.len()) {
        let (one, two) = (&LESS[first], &LESS[second]);
        let text = BASE.replacen(one.0, one.1, 1);
        prop_assume!(text.matches(two.0).count() == 1);
        let text = text.replacen(two.0, two.1, 1);
        let Ok(loaded) = parse(&text, Path::new("/repo")) else { return Ok(()) };
        let (base, head) = (contract(BASE), loaded.contract);
        prop_assert!(weakened(&head, &head).is_empty());
        let _ = weakened(&head, &base);
        let pointers: Vec<String> = weakened(&base, &head).into_iter().map(|found| found.pointer).collect();
        prop_assert!(!pointers.is_empty());
    }
}
