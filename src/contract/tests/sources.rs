//! Stability rows, resources and limits on them: what is understood, and what is told of each mistake.

use super::*;

/// `BASE` with a launched endpoint, so that `endpoint` can be asked.
fn launched(rest: &str) -> String {
    changed(BASE, "  model: m\n", "  model: m\n  launch: { command: [serve] }\n") + rest
}

fn row(name: &str, source: &str) -> String {
    format!("  - {{ name: {name}, counter: {source} }}\n")
}

#[test]
fn every_source_is_read() {
    let text = BASE.to_owned()
        + "stability:\n"
        + &row("a", "{ command: [./count.sh], timeout: 2s }")
        + &row("b", "{ prometheus: { metric: \"vllm:num_preemptions_total\", labels: { engine: \"0\" } } }")
        + &row("c", "{ docker: { container: vllm, field: restart_count } }")
        + &row("d", "{ podman: { container: vllm, field: oom_killed, host: \"unix:///run/p.sock\" } }")
        + &row("e", "{ kubernetes: { selector: app=vllm, field: restart_count, kubeconfig: kube.yaml } }")
        + &row("f", "{ cgroup: { path: /sys/fs/cgroup/x, field: oom_kill } }")
        + &row("g", "{ process: { port: 8000, field: start_time } }")
        + &row("h", "{ nvidia: { field: ecc_uncorrected, gpus: [\"0\"] } }")
        + &row("i", "{ kernel_log: { match: \"NVRM: Xid\" } }")
        + &row("j", "{ prometheus: { url: \"http://gpu:9400/metrics\", metric: DCGM_FI_DEV_XID_ERRORS } }");
    let contract = read(&text);
    let kinds: Vec<(&str, &str)> = contract
        .stability
        .iter()
        .map(|row| match &row.probe {
            StabilityProbe::Counter { probe, .. } => ("counter", probe.source.name()),
            StabilityProbe::LastCode { probe } => ("last_code", probe.source.name()),
            StabilityProbe::Unchanged { probe } => ("unchanged", probe.source.name()),
            StabilityProbe::ExitCode { .. } => ("exit_code", "command"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("counter", "command"),
            ("counter", "prometheus"),
            ("counter", "docker"),
            ("last_code", "podman"),
            ("counter", "kubernetes"),
            ("counter", "cgroup"),
            ("unchanged", "process"),
            ("counter", "nvidia"),
            ("counter", "kernel_log"),
            ("last_code", "prometheus"),
            ("unchanged", "process"),
        ]
    );
    let StabilityProbe::Counter { probe, .. } = &contract.stability[1].probe else { panic!("a counter") };
    let Source::Prometheus(source) = &probe.source else { panic!("a page") };
    assert_eq!(source.page.url.as_str(), "http://127.0.0.1:8000/metrics");
    assert_eq!(source.labels.get("engine").map(String::as_str), Some("0"));
    let StabilityProbe::Counter { probe, .. } = &contract.stability[4].probe else { panic!("a counter") };
    let Source::Kubernetes(source) = &probe.source else { panic!("pods") };
    assert_eq!(source.kubeconfig.as_deref(), Some(Path::new("/repo/kube.yaml")));
}

#[test]
fn an_endpoint_of_this_machine_brings_rows_of_its_own_and_a_launched_one_resources_too() {
    let contract = read(&launched("stability:\n  - { name: x, counter: { process: { field: cpu_time } } }\n"));
    let names: Vec<(&str, bool)> = contract.stability.iter().map(|row| (row.name.as_str(), row.automatic)).collect();
    assert_eq!(names, [("x", false), ("endpoint_process", true), ("endpoint_oom_kills", true)]);
    assert!(contract.resources.iter().any(|resource| resource.name == "cpu"));
    // A row of the same name stands in place of the one that comes by itself.
    let own = read(&launched("stability:\n  - { name: endpoint_process, exit_code: { command: [alive] } }\n"));
    let names: Vec<(&str, bool)> = own.stability.iter().map(|row| (row.name.as_str(), row.automatic)).collect();
    assert_eq!(names, [("endpoint_process", false), ("endpoint_oom_kills", true)]);
    for (host, rows) in [("127.0.0.1:8000", 1), ("localhost", 1), ("[::1]:8000", 1), ("10.0.0.7:8000", 0), ("h", 0)] {
        let contract = read(&changed(BASE, "127.0.0.1:8000", host));
        assert_eq!((contract.stability.len(), contract.resources.len()), (rows, 0), "{host}");
    }
}

#[test]
fn resources_and_their_limits_are_read() {
    let one = read(&format!("{BASE}resources: {{ name: disk, gauge: {{ command: [df] }}, unit: bytes, every: 2s }}\n"));
    assert_eq!((one.resources[0].name.as_str(), one.resources[0].every), ("disk", Duration::from_secs(2)));
    assert_eq!((one.resources[0].across, one.resources[0].unit), (Across::Max, ResourceUnit::Bytes));
    let limits = "  at_load: 4/s
  resources:
    - { resource: disk, at_most: 1.5GiB }
    - { resource: disk, at_most: 1000000, statistic: median }
    - { resource: hot, at_most: 95% }
    - { resource: hits, at_most: 3 }
";
    let text = changed(BASE, "  at_load: 4/s\n", limits)
        + "resources:
  - { name: disk, gauge: { command: [df] }, unit: bytes }
  - { name: hot, gauge: { command: [hot] }, unit: ratio, scale: 0.01 }
  - { name: hits, counter: { command: [hits] } }
";
    let contract = read(&text);
    let limits: Vec<(String, f64, String)> =
        contract.slo.resources.iter().map(|limit| (limit.id(), limit.at_most, limit.show(limit.at_most))).collect();
    let expected = [
        ("disk_max", 1_610_612_736.0, "1.50 GiB"),
        ("disk_median", 1_000_000.0, "977 KiB"),
        ("hot_max", 0.95, "95%"),
        ("hits_rate", 3.0, "3/s"),
    ];
    assert_eq!(limits, expected.map(|(id, at_most, shown)| (id.to_owned(), at_most, shown.to_owned())));
}

#[test]
fn faults_of_sources() {
    for (source, expected) in [
        ("{ docker: { container: x } }", "/docker: the key `field` is missing (what is asked of it)"),
        (
            "{ docker: { container: x, field: restart_count }, podman: { container: x, field: oom_killed } }",
            ": write only one source, not docker and podman",
        ),
        (
            "{ timeout: 3s }",
            ": the source is missing; write one of command, prometheus, docker, podman, kubernetes, cgroup, process, nvidia, kernel_log",
        ),
        (
            "{ process: { field: start_time } }",
            "/process: this run does not launch the endpoint, so say which process is meant: write `port: 8000` or `pid_file: …`",
        ),
        (
            "{ cgroup: { field: oom_kill, path: /x, port: 3 } }",
            "/cgroup: write only one of `path`, `pid_file` and `port`",
        ),
        (
            "{ docker: { container: x, field: restart_count, host: foo } }",
            "/docker/host: not an engine's address; write a socket or a URL, as in `unix:///var/run/docker.sock`",
        ),
        (
            "{ nvidia: { field: utilisation } }",
            "/nvidia/field: `utilisation` is not known here; did you mean `utilization`?",
        ),
        (
            "{ prometheus: { metric: a, url: \"http://me:pw@h/\" } }",
            "/prometheus/url: the URL holds credentials; remove them and name an environment variable instead: `headers: { Authorization: { env: VARIABLE, prefix: \"Basic \" } }`",
        ),
        (
            "{ prometheus: { metric: a, headers: { Authorization: Bearer abc } } }",
            "/prometheus/headers/Authorization: a secret must not be written in a contract; put it into an environment variable and write `{ env: VARIABLE, prefix: \"Bearer \" }`",
        ),
        ("{ kernel_log: { match: \"\" } }", "/kernel_log/match: the text is empty; write one"),
    ] {
        let text = format!("{BASE}stability:\n{}", row("r", source));
        let told = told(&text);
        let is_there = told.iter().any(|line| line.ends_with(&format!(" /stability/0/counter{expected}")));
        assert!(is_there, "{source}: {told:?}");
    }
    for (written, expected) in [
        (
            "{ name: r, counter: { process: { field: memory, port: 80 } } }",
            "/stability/0: a level that falls and rises is no sign of stability; limit it as a resource, under `resources` and `slo.resources`",
        ),
        (
            "{ name: r, counter: { process: { field: start_time, port: 80 } }, max_increase: 3 }",
            "/stability/0/max_increase: a start time does not rise, it must stay the same; remove it",
        ),
        (
            "{ name: r, exit_code: { command: [a] }, across: max }",
            "/stability/0/across: an exit code does not rise; remove it, or read a number with `counter`",
        ),
    ] {
        let told = told(&format!("{BASE}stability:\n  - {written}\n"));
        assert!(told.iter().any(|line| line.ends_with(&format!(" {expected}"))), "{written}: {told:?}");
    }
    let taken = format!("{BASE}stability:\n  - {{ name: completeness, exit_code: {{ command: [a] }} }}\n");
    assert!(told(&taken)[0].ends_with("the name `completeness` is used by another row of the verdict; write another"));
}

#[test]
fn faults_of_resources() {
    for (entry, expected) in [
        ("7", ": expected a mapping of keys to values, found the number `7`"),
        ("{ preset: vlm }", "/preset: `vlm` is not known here; did you mean `vllm`?"),
        (
            "{ preset: vllm, gauge: { command: [a] } }",
            ": write only one of `preset` (a ready-made set), `gauge` (a level) and `counter` (a count that rises)",
        ),
        (
            "{ every: 1s }",
            ": write one of `preset` (a ready-made set), `gauge` (a level) and `counter` (a count that rises)",
        ),
        (
            "{ preset: dcgm }",
            ": its page is not the endpoint's own; write it, as in `url: http://127.0.0.1:9400/metrics`",
        ),
        ("{ preset: vllm, scale: 2 }", "/scale: a `preset` knows this of each of its resources; remove it"),
        ("{ name: a, gauge: { command: [a] }, every: 1ms }", "/every: too often; write at least `100ms`"),
        (
            "{ name: a, gauge: { command: [a] }, unit: bites }",
            "/unit: `bites` is not known here; did you mean `bytes`?",
        ),
        (
            "{ name: a, gauge: { command: [a] }, url: \"http://h/\" }",
            "/url: this belongs to a `preset`, or into the source; move it there",
        ),
        ("{ gauge: { command: [a] } }", ": the resource has no `name`; write one, as in `name: kv_cache_usage`"),
        (
            "{ name: a, gauge: { command: [a] }, across: each }",
            "/across: a resource is one number; write `sum` or `max`, or an entry for each with `labels`",
        ),
        (
            "{ preset: process }",
            "/preset: this run does not launch the endpoint, whose processes `process` samples; name one with `gauge: { process: { port: 8000, field: memory } }`",
        ),
    ] {
        let told = told(&format!("{BASE}resources:\n  - {entry}\n"));
        let is_there = told.iter().any(|line| line.ends_with(&format!(" /resources/0{expected}")));
        assert!(is_there, "{entry}: {told:?}");
    }
    // One entry that is no list has no index in its pointer.
    let told_of_one = told(&format!("{BASE}resources: {{ preset: vllm, urls: x }}\n"));
    assert!(told_of_one[0].ends_with(" /resources/urls: unknown key `urls`; did you mean `url`?"), "{told_of_one:?}");
    let twice = told(&format!(
        "{BASE}resources:\n  - {{ name: a, gauge: {{ command: [a] }} }}\n  - {{ name: a, gauge: {{ command: [b] }} }}\n"
    ));
    assert!(
        twice[0].ends_with(" /resources/1: the resource `a` is there already; give this entry a `name` of its own")
    );
}

#[test]
fn faults_of_limits_on_resources() {
    for (limit, expected) in [
        ("{ resource: ho, at_most: 95% }", "/resource: no resource `ho` is sampled; did you mean `hot`?"),
        ("{ resource: nothing, at_most: 95% }", "/resource: no resource `nothing` is sampled; sampled are hot, hits"),
        ("{ resource: hot, at_most: 95 }", "/at_most: this resource is a share; write it as in `95%`"),
        (
            "{ resource: hot, at_most: 95% , statistic: rate }",
            "/statistic: a level has no rate; write `max`, `median`, `min` or `last`",
        ),
        (
            "{ resource: hits, at_most: 3, statistic: max }",
            "/statistic: a count tells of nothing but its rate; write `rate`, or remove it",
        ),
        (
            "{ resource: hits, at_most: 3GiB }",
            "/at_most: this resource is a plain number; write it without unit and quotes",
        ),
        (
            "{ resource: hot, at_most: 95 percent }",
            "/at_most: `95 percent` is not an amount; write a share, a size or a plain number, as in `95%`, `70GiB` or `32`",
        ),
        ("{ resource: hot, at_most: -1 }", "/at_most: `-1` is too small; write at least 0"),
    ] {
        let limits = format!("  at_load: 4/s\n  resources: [{limit}]\n");
        let text = changed(BASE, "  at_load: 4/s\n", &limits)
            + "resources:
  - { name: hot, gauge: { command: [hot] }, unit: ratio }
  - { name: hits, counter: { command: [hits] } }
";
        let told = told(&text);
        let is_there = told.iter().any(|line| line.ends_with(&format!(" /slo/resources/0{expected}")));
        assert!(is_there, "{limit}: {told:?}");
    }
}
