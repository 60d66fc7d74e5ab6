//! With what a run is compared: what is understood, and what is told of each mistake.

use super::*;

/// `BASE` with a part `baseline` of one line.
fn with(part: &str) -> String {
    format!("{BASE}baseline: {part}\n")
}

fn plan(part: &str) -> BaselinePlan {
    read(&with(part)).baseline.expect("a baseline")
}

/// The faults of a part `baseline`, without line and column.
fn told_of(part: &str) -> Vec<String> {
    let places = told(&with(part));
    places
        .iter()
        .map(|line| line.split_once(": /baseline").map_or(line.as_str(), |(_, rest)| rest).to_owned())
        .collect()
}

fn s3(part: &str) -> String {
    format!("{{ from: [{{ s3: {{ {part} }} }}] }}")
}

#[test]
fn nothing_need_be_written_but_the_key() {
    assert_eq!(read(BASE).baseline, None);
    let plan = plan("{}");
    let expected = BaselinePlan {
        margin: Share::from_ppm(50_000).expect("a share"),
        from: vec![StoreSpec::File("/repo/baseline.json".into())],
        within: Within { commits: 50, days: 30 },
        latency: Vec::new(),
        fingerprint: FingerprintKeys::default(),
        release: None,
        accepted: None,
        pair: None,
    };
    assert_eq!(plan, expected);
    assert_eq!(
        told(&format!("{BASE}baseline:\n")),
        ["19:1: /baseline: the key has no value; write one or remove the key"]
    );
}

#[test]
fn every_store_is_read() {
    let plan = plan(
        "{ from: [artifact, branch, file, { file: ../perf/b.json }, { branch: perf/base }, \
         { artifact: { name: nightly, workflow: nightly.yml } }, { s3: { bucket: perf, prefix: /a/b/, endpoint: \
         \"http://127.0.0.1:9000\" } }], within: { commits: 0, days: 7 }, release: release.json, accepted: accepted.yaml }",
    );
    let artifact = |name: &str, workflow: Option<&str>| StoreSpec::Artifact {
        name: name.to_owned(),
        workflow: workflow.map(str::to_owned),
    };
    assert_eq!(
        plan.from,
        [
            artifact("goodput-baseline", None),
            StoreSpec::Branch("goodput-baselines".to_owned()),
            StoreSpec::File("/repo/baseline.json".into()),
            StoreSpec::File("/repo/../perf/b.json".into()),
            StoreSpec::Branch("perf/base".to_owned()),
            artifact("nightly", Some("nightly.yml")),
            StoreSpec::S3 {
                bucket: "perf".to_owned(),
                prefix: "a/b".to_owned(),
                region: "us-east-1".to_owned(),
                endpoint: Some(url::Url::parse("http://127.0.0.1:9000/").expect("a URL")),
            },
        ]
    );
    assert_eq!(plan.within, Within { commits: 0, days: 7 });
    assert_eq!(plan.release.as_deref(), Some(Path::new("/repo/release.json")));
    assert_eq!(plan.accepted.as_deref(), Some(Path::new("/repo/accepted.yaml")));
}

#[test]
fn latencies_circumstances_and_the_pair_are_read() {
    let text = changed(BASE, "  model: m\n", "  model: m\n  launch: { command: [serve, head] }\n")
        + "baseline: { latency: [{ metric: ttft, percentile: 50, margin: 5% }, { metric: ttft, percentile: 99, margin: 12.5%, \
           gates: true }], fingerprint: { must_match: { node_pool: h100-a }, noted: { ticket: \"7\" } }, \
           pair: { launch: { command: [serve, base] } } }\n";
    let plan = read(&text).baseline.expect("a baseline");
    let shown: Vec<(u8, u32, bool)> =
        plan.latency.iter().map(|margin| (margin.percentile, margin.margin.ppm(), margin.gates)).collect();
    assert_eq!(shown, [(50, 50_000, false), (99, 125_000, true)]);
    assert_eq!(plan.fingerprint.must_match.get("node_pool").map(String::as_str), Some("h100-a"));
    // What is measured beside the change needs no stored baseline.
    assert_eq!(plan.from, []);
    assert_eq!(plan.pair.map(|pair| pair.when), Some(PairWhen::Always));
    // A closed loop has no capacity, and its goodput can be compared all the same.
    assert!(read(&format!("{CLOSED}baseline: {{}}\n")).baseline.is_some());
}

#[test]
fn margins_that_are_none() {
    for (part, expected) in [
        ("{ margin: 0% }", "/margin: 0% cannot be a margin; write 0.1% to 50%"),
        ("{ margin: 60% }", "/margin: 60% cannot be a margin; write 0.1% to 50%"),
        ("{ margin: 0.05 }", "/margin: `0.05` is not a share; write a number from 0 to 100 and `%`, as in `99.9%`"),
        ("{ margins: 5% }", "/margins: unknown key `margins`; did you mean `margin`?"),
        (
            "{ latency: [{ metric: ttft, percentile: 98, margin: 5% }] }",
            "/latency/0/percentile: `98` is not a percentile that records keep; write 50, 90, 95 or 99",
        ),
        (
            "{ latency: [{ metric: success_rate, percentile: 99, margin: 5% }] }",
            "/latency/0/metric: not a metric of requests; goodput and capacity have the `margin` above",
        ),
        (
            "{ latency: [{ metric: rtf, percentile: 99, margin: 5% }] }",
            "/latency/0/metric: `rtf` needs sound, and `openai-chat` carries text alone; use `e2e`",
        ),
        (
            "{ latency: [{ metric: ttft, percentile: 99, margin: 5% }, { metric: ttft, percentile: 99, margin: 9% }] }",
            "/latency/1: listed twice; write one margin for each percentile",
        ),
        (
            "{ latency: [{ metric: ttft, percentile: 99 }] }",
            "/latency/0: the key `margin` is missing (the largest loss of speed that still passes, from 0.1% to 50%)",
        ),
        ("{ within: { commits: -1 } }", "/within/commits: `-1` is too small; write at least 0"),
        ("{ within: { days: 0 } }", "/within/days: `0` is too small; write at least 1"),
    ] {
        assert_eq!(told_of(part), [expected], "{part}");
    }
}

#[test]
fn stores_that_are_none() {
    let one = "write exactly one of `file`, `branch`, `artifact` and `s3`; list several places one by one";
    let branch = "not a branch's name; write letters, digits, `-`, `_`, `.` and `/`, as in `goodput-baselines`";
    let file = "a file in the repository is named from the contract's folder on, as in `baseline.json` or `../perf/baseline.json`";
    for (part, expected) in [
        ("{ from: [fil] }", "/from/0: `fil` is not known here; did you mean `file`?".to_owned()),
        ("{ from: [] }", "/from: the list is empty; write at least one entry".to_owned()),
        ("{ from: file }", "/from: expected a list, found the text `file`".to_owned()),
        ("{ from: [{}] }", format!("/from/0: {one}")),
        ("{ from: [{ file: a.json, branch: b }] }", format!("/from/0: {one}")),
        ("{ from: [file, file] }", "/from/1: listed twice; every place is asked once".to_owned()),
        ("{ from: [{ file: /etc/b.json }] }", format!("/from/0/file: {file}")),
        ("{ from: [{ file: ~/b.json }] }", format!("/from/0/file: {file}")),
        ("{ release: /b.json }", format!("/release: {file}")),
        ("{ accepted: perf/ }", "/accepted: names a folder; write the file too, as in `baseline.json`".to_owned()),
        ("{ from: [{ branch: -b }] }", format!("/from/0/branch: {branch}")),
        ("{ from: [{ branch: a..b }] }", format!("/from/0/branch: {branch}")),
        ("{ from: [{ branch: refs/heads/b }] }", format!("/from/0/branch: {branch}")),
        ("{ from: [{ branch: a/.b }] }", format!("/from/0/branch: {branch}")),
        (
            "{ from: [{ artifact: { name: \"a/b\" } }] }",
            "/from/0/artifact/name: GitHub refuses `\" : < > | * ? \\ /` in an artifact's name; write it without them".to_owned(),
        ),
        (
            "{ from: [{ artifact: { workflow: .github/workflows/n.yml } }] }",
            "/from/0/artifact/workflow: not the file name of a workflow; write it without its folder, as in `nightly.yml`".to_owned(),
        ),
    ] {
        assert_eq!(told_of(part), [expected], "{part}");
    }
}

#[test]
fn buckets_that_are_none() {
    let storage = "a storage is a host and a port; write it as in `https://storage.example:9000`, and the rest as `bucket` and `prefix`";
    let name = "not a bucket's name; write the name alone, as in `perf-baselines`, and what stands before the keys as `prefix`";
    for (part, expected) in [
        ("region: a", "/from/0/s3: the key `bucket` is missing (the bucket)".to_owned()),
        ("bucket: \"s3://perf/a\"", format!("/from/0/s3/bucket: {name}")),
        ("bucket: ab", format!("/from/0/s3/bucket: {name}")),
        (
            "bucket: perf, prefix: a/../b",
            "/from/0/s3/prefix: not the beginning of a key; write letters, digits, `-`, `_`, `.` and `/`, as in `team/goodput`"
                .to_owned(),
        ),
        ("bucket: perf, endpoint: \"https://h/perf\"", format!("/from/0/s3/endpoint: {storage}")),
        ("bucket: perf, endpoint: \"https://h?x=1\"", format!("/from/0/s3/endpoint: {storage}")),
    ] {
        assert_eq!(told_of(&s3(part)), [expected], "{part}");
    }
}

#[test]
fn credentials_are_refused_and_never_repeated() {
    for (part, expected) in [
        (
            "bucket: perf, endpoint: \"https://me:hunter2@h\"",
            "/from/0/s3/endpoint: the URL holds credentials; remove them and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
        ),
        (
            "bucket: perf, secret_access_key: hunter2",
            "/from/0/s3/secret_access_key: unknown key `secret_access_key`; what can still stand here: prefix, region, endpoint",
        ),
        (
            "bucket: perf, access_key_id: hunter2",
            "/from/0/s3/access_key_id: unknown key `access_key_id`; what can still stand here: prefix, region, endpoint",
        ),
    ] {
        let part = s3(part);
        assert_eq!(told_of(&part), [expected], "{part}");
        assert!(!rendered(&with(&part)).contains("hunter2"), "{part}");
    }
    for part in ["{ hf_token: abc }", "{ who: \"Bearer hunter2\" }"] {
        let part = format!("{{ fingerprint: {{ noted: {part} }} }}");
        let told = told_of(&part);
        assert!(told[0].ends_with(": looks like a secret, and every report shows it; remove it"), "{told:?}");
        assert!(!rendered(&with(&part)).contains("hunter2"), "{part}");
    }
}

#[test]
fn circumstances_that_are_none() {
    let contract = "this name is filled in from the contract itself; write another";
    for (part, expected) in [
        (
            "{ must_match: { Node: a } }",
            "/must_match/Node: not a name; write lower-case letters, digits and `_`, as in `node_pool`".to_owned(),
        ),
        (
            "{ must_match: { gpus: 8 } }",
            "/must_match/gpus: expected a text, found the number `8`; put it in quotes".to_owned(),
        ),
        (
            "{ must_match: { a: \"\" } }",
            "/must_match/a: the text is blank; write something to be recognised by".to_owned(),
        ),
        ("{ under_test: { workload: any } }", format!("/under_test/workload: {contract}")),
        ("{ noted: { objective_ttft_p99: any } }", format!("/noted/objective_ttft_p99: {contract}")),
        (
            "{ must_match: { a: b }, noted: { a: b } }",
            "/noted/a: this name is written in two parts; keep it in one".to_owned(),
        ),
    ] {
        let told = told_of(&format!("{{ fingerprint: {part} }}"));
        assert_eq!(told, [format!("/fingerprint{expected}")], "{part}");
    }
}

#[test]
fn pairs_that_are_none() {
    let launched = |launch: &str, part: &str| {
        let text = changed(BASE, "  model: m\n", &format!("  model: m\n  launch: {launch}\n"));
        let places = told(&format!("{text}baseline: {part}\n"));
        places.iter().map(|line| line.split_once(": /").map_or("", |(_, rest)| rest).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        told_of("{ pair: { launch: { command: [serve] } } }"),
        [
            "/pair: the endpoint without the change is started where the one with it runs, so that one must be stopped before; start it by `endpoint.launch` too"
        ]
    );
    assert_eq!(
        launched("{ command: [serve] }", "{ pair: { launch: { command: [serve] } } }"),
        [
            "baseline/pair/launch: starts the same as `endpoint.launch`, so the change would be compared with itself; start what serves without the change"
        ]
    );
    assert_eq!(
        launched("{ command: [serve] }", "{ pair: { launch: { command: [base] }, when: suspected } }"),
        ["baseline/pair/when: a loss is suspected by a stored baseline only; write `from`, or `when: always`"]
    );
    assert_eq!(
        launched("{ command: [serve] }", "{ pair: {} }"),
        ["baseline/pair: the key `launch` is missing (how it is started)"]
    );
    let simulated = changed(BASE, "8000/v1", "0/v1");
    let simulated = changed(&simulated, "  model: m\n", "  model: m\n  launch: { simulate: p.yaml }\n");
    let told = told(&format!("{simulated}baseline: {{ pair: {{ launch: {{ command: [base] }} }} }}\n"));
    assert!(told[0].ends_with("write the port there"), "{told:?}");
}
