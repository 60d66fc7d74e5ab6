//! Contracts that are wrong, each with everything that its author is told; and contracts that are right.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::schedule::{ArrivalProcess, TrialCounts};
use crate::units::{Load, Rate, Share};

mod accepted;
mod baseline;
mod evidence;
mod sources;

/// A contract without a fault; the tests below change one thing in it.
const BASE: &str = "\
version: 1
name: demo
endpoint:
  url: http://127.0.0.1:8000/v1/chat/completions
  protocol: openai-chat
  model: m
workload:
  cases: [{ id: a, prompt: hi, max_tokens: 4 }]
traffic:
  model: constant
  loads: [2/s, 4/s]
  trial: { window: 75s, warm_up: 40s, drain: 30s }
slo:
  request: { ttft: 3s, e2e: 30s }
  objectives:
    - { metric: ttft, percentile: 99, at_most: 3s }
    - { metric: attainment, at_least: 99% }
  at_load: 4/s
";

/// The same for a closed loop.
const CLOSED: &str = "\
version: 1
name: demo
endpoint: { url: \"https://h/v1/completions\", protocol: openai_completions_sse, model: m }
workload: { cases: cases.jsonl }
traffic:
  model: closed
  concurrency: [8, 1, 2]
  trial: { window: 60s }
slo:
  objectives: [{ metric: e2e, percentile: 95, at_most: 20s }]
  at_concurrency: 4
";

fn read(text: &str) -> Contract {
    match parse(text, Path::new("/repo")) {
        Ok(loaded) => loaded.contract,
        Err(faults) => panic!("{}", render_faults(&faults, "c.yaml", text)),
    }
}

fn rendered(text: &str) -> String {
    let faults = parse(text, Path::new("/repo")).expect_err("faults");
    render_faults(&faults, "c.yaml", text)
}

/// The faults alone, one a line, without the source lines.
fn told(text: &str) -> Vec<String> {
    let rendered = rendered(text);
    rendered.lines().filter_map(|line| line.strip_prefix("c.yaml:")).map(str::to_owned).collect()
}

/// Changes one place of a contract, which must be there exactly once.
fn changed(base: &str, from: &str, to: &str) -> String {
    assert_eq!(base.matches(from).count(), 1, "`{from}` must be there once");
    base.replace(from, to)
}

fn rate(text: &str) -> Rate {
    Rate::parse(text).expect("a rate")
}

#[test]
fn a_contract_is_understood() {
    let contract = read(BASE);
    assert_eq!(contract.name, "demo");
    assert_eq!(contract.endpoint.timeout, Duration::from_secs(120));
    assert_eq!(contract.endpoint.idle_timeout, Duration::from_secs(30));
    // 40 s, 75 s and 30 s at 4/s.
    let counts = TrialCounts { warm_up: 160, window: 300, drain: 120 };
    let loads = vec![rate("2/s"), rate("4/s")];
    assert_eq!(contract.traffic, Traffic::Open { process: ArrivalProcess::Constant, loads, counts });
    assert_eq!(contract.slo.at, Load::RateMilli(rate("4/s")));
    let ids: Vec<String> = contract.slo.objectives.iter().map(Objective::id).collect();
    assert_eq!(ids, ["ttft_p99", "attainment"]);
    assert_eq!(contract.samples, Samples { keep: 5 });
    assert_eq!(contract.policy, Policy { unknown: UnknownPolicy::Block, missing_baseline: UnknownPolicy::Warn });
    assert_eq!(contract.workload.seed, 1);
}

#[test]
fn a_closed_loop_is_understood() {
    let contract = read(CLOSED);
    // A fifth of the window to warm up; the largest latency limit to drain; `at_concurrency` joins the steps.
    let seconds = Duration::from_secs;
    let expected =
        Traffic::Closed { clients: vec![1, 2, 4, 8], warm_up: seconds(12), window: seconds(60), drain: seconds(20) };
    assert_eq!(contract.traffic, expected);
    assert_eq!(contract.slo.at, Load::Clients(4));
    assert!(matches!(contract.workload.cases, CaseSource::File(file) if file == Path::new("/repo/cases.jsonl")));
}

#[test]
fn defaults_of_a_trial_follow_the_window_and_the_limits() {
    let counts = |trial: &str, slo: &str| {
        let text = changed(BASE, "{ window: 75s, warm_up: 40s, drain: 30s }", trial);
        let text = changed(&text, "  request: { ttft: 3s, e2e: 30s }\n", slo);
        let text = changed(&text, "    - { metric: attainment, at_least: 99% }\n", "");
        match read(&text).traffic {
            Traffic::Open { counts, .. } => (counts.warm_up, counts.window, counts.drain),
            Traffic::Closed { .. } => panic!("an open loop"),
        }
    };
    let request = "  request: { e2e: 30s }\n";
    assert_eq!(counts("{ requests: 301 }", request), (61, 301, 120));
    assert_eq!(counts("{ window: 75s }", request), (60, 300, 120));
    assert_eq!(counts("{ requests: 3e2 }", request), (60, 300, 120));
    assert_eq!(counts("{ window: 75s, warm_up: 0s }", request), (0, 300, 120));
    assert_eq!(counts("{ requests: 300, warm_up: 10s, drain: 60s }", request), (40, 300, 240));
    assert_eq!(counts("{ requests: 300 }", ""), (60, 300, 12));
}

#[test]
fn without_latency_limits_the_drain_is_the_timeout() {
    let text =
        changed(CLOSED, "{ metric: e2e, percentile: 95, at_most: 20s }", "{ metric: success_rate, at_least: 99.9% }");
    let contract = read(&text);
    assert!(matches!(contract.traffic, Traffic::Closed { drain, .. } if drain == Duration::from_secs(120)));
    let floor = Share::from_ppm(999_000).expect("a share");
    assert_eq!(contract.slo.objectives, [Objective::SuccessRate { at_least: floor }]);
}

#[test]
fn headers_launch_and_stability_are_understood() {
    let text = changed(
        BASE,
        "  model: m\n",
        "  model: m
  headers: { X-Trace: abc, Authorization: { env: TOKEN, prefix: \"Bearer \" } }
  timeout: 90s
  http: http2
  ca_file: certs/ca.pem
  proxy: http://proxy:3128
  launch: { command: [vllm, serve, --port, \"8000\"], ready: { path: /health, within: 5m } }
",
    ) + "stability:
  - { name: oom, counter: { command: [./oom.sh] }, max_increase: 1.5 }
  - { name: health, exit_code: { command: [curl, -f, http://h/], timeout: 2s } }
samples: { keep: 0 }
policy: { unknown: warn }
";
    let contract = read(&text);
    let endpoint = contract.endpoint;
    let environment = HeaderSource::Environment { variable: "TOKEN".to_owned(), prefix: "Bearer ".to_owned() };
    let header = |name: &str, value| Header { name: name.to_owned(), value };
    assert_eq!(
        endpoint.headers,
        [header("authorization", environment), header("x-trace", HeaderSource::Literal("abc".to_owned()))]
    );
    assert_eq!(endpoint.http, HttpVersion::Http2);
    assert_eq!(endpoint.ca_file.as_deref(), Some(Path::new("/repo/certs/ca.pem")));
    assert_eq!(endpoint.proxy.map(|url| url.to_string()).as_deref(), Some("http://proxy:3128/"));
    let launch = endpoint.launch.expect("a launch");
    assert_eq!(launch.ready_path.as_deref(), Some("/health"));
    assert_eq!((launch.ready_within, launch.stop_within), (Duration::from_secs(300), Duration::from_secs(30)));
    assert!(
        matches!(&contract.stability[0].probe, StabilityProbe::Counter { max_increase, .. } if *max_increase > 1.4)
    );
    assert!(matches!(&contract.stability[1].probe, StabilityProbe::ExitCode { timeout, .. } if timeout.as_secs() == 2));
    assert_eq!((contract.samples.keep, contract.policy.unknown), (0, UnknownPolicy::Warn));
}

#[test]
fn json_and_what_a_result_keeps_are_the_same_contract() {
    let loaded = parse(BASE, Path::new("/repo")).expect("a contract");
    let json = serde_json::to_string_pretty(&loaded.value).expect("JSON");
    let again = read(&json);
    assert_eq!(format!("{again:?}"), format!("{:?}", loaded.contract));
    let kept = from_value(&loaded.value, Path::new("/repo")).expect("a contract");
    assert_eq!(format!("{kept:?}"), format!("{:?}", loaded.contract));
    assert_eq!(loaded.digest, Digest::of(BASE.as_bytes()));
}

#[test]
fn faults_of_a_kept_contract_have_no_place_but_a_pointer() {
    let faults = from_value(&serde_json::json!({ "version": 1, "nmae": "x" }), Path::new("")).expect_err("faults");
    let unknown = faults.iter().find(|fault| fault.pointer == "/nmae").expect("the unknown key");
    assert_eq!((unknown.line, unknown.column), (0, 0));
    assert_eq!(faults.len(), 6, "the unknown key and five that are missing: {faults:?}");
}

#[test]
fn every_mistake_is_told_at_once() {
    let text = "\
version: 2
nmae: demo
endpoint:
  url: http://me:hunter2@127.0.0.1:8000/v1
  protocol: openai-chta
  headers:
    Authorization: \"Bearer sk-12345\"
  timeout: 3
workload:
  cases:
    - { prompt: hi }
    - just text
  payload: { model: $model, input: $question, stream: true }
traffic:
  model: constant
  loads: [4, 2/s, 2/s]
  trial: { window: 75s, drain: 1s }
slo:
  request: { ttft: 3s }
  objectives:
    - { metric: ttft, at_least: 99% }
    - { metric: success_rate, at_most: 1% }
  at_load: 4/s
";
    let expected = "\
c.yaml:1:1: the key `name` is missing (the name shown in reports and used for the run folder)
 1 | version: 2
   | ^
c.yaml:1:10: /version: `2` is not read by this build; write 1
 1 | version: 2
   |          ^
c.yaml:2:1: /nmae: unknown key `nmae`; did you mean `name`?
 2 | nmae: demo
   | ^
c.yaml:3:1: /endpoint: the key `model` is missing (the model's name)
 3 | endpoint:
   | ^
c.yaml:4:8: /endpoint/url: the URL holds credentials; remove them and name an environment variable instead: `headers: { Authorization: { env: VARIABLE, prefix: \"Basic \" } }`
 4 | (not shown: the line may hold a secret)
c.yaml:5:13: /endpoint/protocol: `openai-chta` is not known here; did you mean `openai-chat`?
 5 |   protocol: openai-chta
   |             ^
c.yaml:7:5: /endpoint/headers/Authorization: a secret must not be written in a contract; put it into an environment variable and write `{ env: VARIABLE, prefix: \"Bearer \" }`
 7 | (not shown: the line may hold a secret)
c.yaml:8:12: /endpoint/timeout: `3` is not a duration; write a number and one of ns, us, ms, s, m, h, as in `75ms` or `3s`; did you mean `3ms` or `3s`?
 8 |   timeout: 3
   |            ^
c.yaml:12:7: /workload/cases/1: expected a mapping of keys to values, found the text `just text`
 12 |     - just text
    |       ^
c.yaml:16:11: /traffic/loads/0: `4` is not a rate; write a number above zero and `/s`, as in `4/s` or `0.5/s` (steps of 0.001/s); did you mean `4/s`?
 16 |   loads: [4, 2/s, 2/s]
    |           ^
c.yaml:16:19: /traffic/loads/2: listed twice; every load is measured once
 16 |   loads: [4, 2/s, 2/s]
    |                   ^
c.yaml:17:32: /traffic/trial/drain: 1s is shorter than the largest latency limit of 3s: late requests of the window would end on an idle endpoint; write at least the limit
 17 |   trial: { window: 75s, drain: 1s }
    |                                ^
c.yaml:21:7: /slo/objectives/0: the percentile of `ttft` is missing; write it, as in `percentile: 99`
 21 |     - { metric: ttft, at_least: 99% }
    |       ^
c.yaml:21:23: /slo/objectives/0/at_least: `ttft` is a latency and has no floor; write `percentile` and `at_most`
 21 |     - { metric: ttft, at_least: 99% }
    |                       ^
c.yaml:22:31: /slo/objectives/1/at_most: `success_rate` is a share that must be reached; write `at_least`, as in `at_least: 99%`
 22 |     - { metric: success_rate, at_most: 1% }
    |                               ^
15 faults in c.yaml
";
    assert_eq!(rendered(text), expected);
}

#[test]
fn what_is_no_yaml_or_no_contract_is_told_with_its_place() {
    let laughs = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n";
    let deep = format!("version: {}", "[".repeat(80));
    for (text, expected) in [
        ("", "1:1: the contract is empty; `goodput schema` prints what belongs into one"),
        ("- 1\n- 2\n", "1:1: expected a mapping of keys to values, found a list"),
        ("hello", "1:1: expected a mapping of keys to values, found the text `hello`"),
        (laughs, "2:8: /b/0: aliases (`*name`) are not read in a contract; write the value out where it is needed"),
        (&deep, "1:73: values nest more than 64 levels deep; flatten them"),
    ] {
        assert_eq!(told(text), [expected], "{text}");
    }
    for (text, place, part) in [
        ("version: 1\nname: \"demo\nendpoint: 3\n", "2:", "not valid YAML"),
        ("version: 1\nendpoint:\n\turl: x\n", "3:2", "indent with spaces, not with tabs"),
        ("version: 1\n  name: x\n", "2:", "not valid YAML"),
        ("{\"version\": 1,\n \"name\": \"x\"", "2:", "not valid YAML"),
    ] {
        let told = told(text);
        assert!(told.len() == 1 && told[0].starts_with(place) && told[0].contains(part), "{text}: {told:?}");
    }
}

#[test]
fn a_fault_of_the_text_is_told_once() {
    let text = changed(BASE, "name: demo", "name: .inf");
    assert_eq!(told(&text), ["2:7: /name: `.inf` is not a finite number; write one, or put the text in quotes"]);
}

#[test]
fn repeated_keys_and_numbers_that_are_none_do_not_stop_the_reading() {
    let text =
        changed(BASE, "name: demo", "name: demo\nname: other\nsamples: { keep: .nan }\npolicy: { unknown: blok }");
    assert_eq!(
        told(&text),
        [
            "3:1: /name: the key `name` is written twice, first in line 2; keep one",
            "4:18: /samples/keep: `.nan` is not a finite number; write one, or put the text in quotes",
            "5:20: /policy/unknown: `blok` is not known here; did you mean `block`?",
        ]
    );
}

/// Each row changes one place of a contract and is told exactly this.
fn check(base: &str, rows: &[(&str, &str, &str)]) {
    for (from, to, expected) in rows {
        let text = changed(base, from, to);
        let told = match parse(&text, Path::new("/repo")) {
            Ok(_) => panic!("`{to}` was accepted"),
            Err(_) => told(&text),
        };
        assert_eq!(told, [*expected], "`{from}` became `{to}`");
    }
}

#[test]
fn endpoint_faults() {
    check(
        BASE,
        &[
            ("8000/v1/chat/completions", "8000/v1#x", "4:8: /endpoint/url: a fragment (`#…`) is never sent; remove it"),
            (
                "8000/v1",
                "0/v1",
                "4:8: /endpoint/url: port 0 means a free port, which only `launch: { simulate: … }` can take; write the port",
            ),
            (
                "http://127",
                "ftp://127",
                "4:8: /endpoint/url: the scheme must be http or https; write it as in `http://127.0.0.1:8000/v1/chat/completions`",
            ),
            (
                "completions",
                "completions?api_key=abc",
                "4:8: /endpoint/url: the query holds a secret; send it as a header with `headers: { NAME: { env: VARIABLE } }`",
            ),
            (
                "protocol: openai-chat",
                "protocol: openai-voice",
                "5:13: /endpoint/protocol: `openai-voice` is not one of openai-chat, openai-chat-json, openai-completions, openai-responses, anthropic-messages, tgi, ollama, openai-realtime, openai-speech, openai-transcription",
            ),
            (
                "model: m\n",
                "model: 8\n",
                "6:10: /endpoint/model: expected a text, found the number `8`; put it in quotes",
            ),
            (
                "model: m\n",
                "model: m\n  retries: 3\n",
                "7:3: /endpoint/retries: unknown key `retries`; what can still stand here: headers, timeout, idle_timeout, http, ca_file, proxy, audio, launch",
            ),
            (
                "model: m\n",
                "model: m\n  idle_timeout: 3m\n",
                "7:17: /endpoint/idle_timeout: longer than the `timeout` of 2m, so it would never end a request; shorten it or raise the `timeout`",
            ),
            (
                "model: m\n",
                "model: m\n  timeout: 0s\n",
                "7:12: /endpoint/timeout: zero can never be met; write a duration above zero",
            ),
            (
                "model: m\n",
                "model: m\n  timeout: 200h\n",
                "7:12: /endpoint/timeout: longer than a week; write at most `168h`",
            ),
            (
                "model: m\n",
                "model: m\n  proxy: http://a:b@p:1\n",
                "7:10: /endpoint/proxy: the URL holds credentials; remove them and name an environment variable instead: `headers: { Authorization: { env: VARIABLE, prefix: \"Basic \" } }`",
            ),
            (
                "model: m\n",
                "model: m\n  launch: {}\n",
                "7:3: /endpoint/launch: write one of `command` (a server to start) and `simulate` (a profile of the simulated endpoint)",
            ),
            (
                "openai-chat\n",
                "tgi\n  launch: { simulate: b }\n",
                "6:13: /endpoint/launch/simulate: the simulated endpoint speaks openai-chat, openai-chat-json, openai-completions, and not `tgi`",
            ),
            (
                "model: m\n",
                "model: m\n  launch: { command: [a], simulate: b }\n",
                "7:3: /endpoint/launch: write only one of `command` (a server to start) and `simulate` (a profile of the simulated endpoint)",
            ),
            (
                "model: m\n",
                "model: m\n  launch: { command: [a, 8000] }\n",
                "7:26: /endpoint/launch/command/1: expected a text, found the number `8000`; put it in quotes",
            ),
            (
                "model: m\n",
                "model: m\n  launch: { command: [a], ready: { path: health } }\n",
                "7:42: /endpoint/launch/ready/path: not a path on the endpoint's host; write it as in `/health`",
            ),
            (
                "model: m\n",
                "model: m\n  launch:\n",
                "7:3: /endpoint/launch: the key has no value; write one or remove the key",
            ),
        ],
    );
}

#[test]
fn header_faults_never_repeat_a_value() {
    let secret = "a secret must not be written in a contract; put it into an environment variable and write";
    for (headers, expected) in [
        ("X-Api-Key: hunter2", format!("8:5: /endpoint/headers/X-Api-Key: {secret} `{{ env: VARIABLE }}`")),
        ("X-Any: Bearer hunter2", format!("8:5: /endpoint/headers/X-Any: {secret} `{{ env: VARIABLE, prefix: \"Bearer \" }}`")),
        ("Cookie:\n      hunter2", format!("8:5: /endpoint/headers/Cookie: {secret} `{{ env: VARIABLE }}`")),
        ("X-A: { env: \"$hunter2\" }", "8:17: /endpoint/headers/X-A/env: the value is not the name of an environment variable; write it without `$`, as in `SERVING_TOKEN`".to_owned()),
        ("X-A: 1234", "8:10: /endpoint/headers/X-A: the value does not fit here; write a text, or an environment variable for a secret, as in `{ env: SERVING_TOKEN, prefix: \"Bearer \" }`".to_owned()),
        ("X-A: \"hunter2\\n\"", "8:10: /endpoint/headers/X-A: a header's value is one line of visible ASCII characters; remove the others".to_owned()),
        ("Content-Length: \"3\"", "8:5: /endpoint/headers/Content-Length: the header `content-length` is set by the protocol itself; remove it".to_owned()),
        ("\"a b\": x", "8:5: /endpoint/headers/a b: not a header's name; write letters, digits and `-`".to_owned()),
        ("{ X-A: x, x-a: y }", "8:15: /endpoint/headers/x-a: the header `x-a` is written twice; names are alike in upper and lower case".to_owned()),
    ] {
        let text = changed(BASE, "  model: m\n", &format!("  model: m\n  headers:\n    {headers}\n"));
        assert_eq!(told(&text), [expected], "{headers}");
        assert!(!rendered(&text).contains("hunter2"), "{headers}");
        assert!(!rendered(&text).contains("1234"), "{headers}");
    }
}

#[test]
fn secrets_in_commands_are_refused() {
    let text = changed(BASE, "  model: m\n", "  model: m\n  launch: { command: [vllm, --api-key, hunter2] }\n");
    let rendered = rendered(&text);
    assert!(rendered.starts_with("c.yaml:7:40: /endpoint/launch/command/2: looks like a secret"), "{rendered}");
    assert!(!rendered.contains("hunter2"));
}

#[test]
fn every_protocol_is_accepted_by_both_its_names() {
    use crate::observe::Protocol;
    for protocol in Protocol::ALL {
        for name in [protocol.name(), protocol.adapter()] {
            let spoken = changed(BASE, "max_tokens: 4", "max_tokens: 4, audio: a.wav");
            let contract = read(&changed(&spoken, "openai-chat", name));
            assert_eq!(contract.endpoint.protocol, protocol);
        }
    }
    let plain = changed(&changed(BASE, "openai-chat", "ollama"), "v1/chat/completions", "api/generate");
    let contract = read(&plain);
    let template = contract.workload.template(&[], |has| contract.endpoint.default_payload(has));
    assert_eq!(template, serde_json::json!({ "model": "$model", "prompt": "$prompt", "stream": true }));
    check(
        &changed(BASE, "openai-chat", "anthropic-messages"),
        &[(
            ", max_tokens: 4",
            "",
            "8:11: /workload/cases/0: the case `a` has no field `max_tokens`; add it to the case, or write `$$max_tokens` for the plain text",
        )],
    );
}

/// A realtime endpoint, for the keys that only it has.
const REALTIME: &str =
    "openai-realtime\n  audio: { input: { sample_rate: 16000 }, output: { encoding: g711_ulaw, sample_rate: 8000 } }";

#[test]
fn formats_of_sound_are_read_and_have_defaults_where_the_protocol_has() {
    use crate::audio::{Encoding, PcmFormat};
    let format = |encoding, sample_rate| Some(PcmFormat { encoding, sample_rate, channels: 1 });
    let formats = |text: &str| {
        let endpoint = read(text).endpoint;
        (endpoint.input_audio, endpoint.output_audio)
    };
    let default = format(Encoding::Pcm16, 24_000);
    assert_eq!(formats(BASE), (None, None));
    assert_eq!(formats(&changed(BASE, "openai-chat", "openai-realtime")), (default, default));
    assert_eq!(formats(&changed(BASE, "openai-chat", "openai-speech")), (None, None));
    assert_eq!(
        formats(&changed(BASE, "openai-chat", REALTIME)),
        (format(Encoding::Pcm16, 16_000), format(Encoding::G711Ulaw, 8_000))
    );
    let socket = changed(&changed(BASE, "openai-chat", REALTIME), "url: http:", "url: wss:");
    assert_eq!(read(&socket).endpoint.url.scheme(), "wss");
}

#[test]
fn a_session_may_not_ask_for_other_sound_than_is_declared() {
    let session = |audio: &str| {
        format!(
            "  payload: {{ events: [{{ type: session.update, session: {{ {audio} }} }}, {{ type: response.create }}] }}\ntraffic:\n"
        )
    };
    let base = changed(BASE, "openai-chat", "openai-realtime");
    let agreed = "audio: { output: { format: { type: audio/pcm, rate: 24000 } } }";
    read(&changed(&base, "traffic:\n", &session(agreed)));
    let (other, older) = ("audio: { output: { format: { type: audio/pcmu } } }", "input_audio_format: g711_alaw");
    check(
        &base,
        &[
            (
                "traffic:\n",
                &session(other),
                "9:23: /workload/payload/events/0: the session asks for g711_ulaw of 8000 Hz with 1 channel(s) as its output, and `endpoint.audio.output` is pcm16 of 24000 Hz with 1 channel(s); declare the same there",
            ),
            (
                "traffic:\n",
                &session(older),
                "9:23: /workload/payload/events/0: the session asks for g711_alaw of 8000 Hz with 1 channel(s) as its input, and `endpoint.audio.input` is pcm16 of 24000 Hz with 1 channel(s); declare the same there",
            ),
        ],
    );
}

#[test]
fn keys_of_sound_are_refused_where_there_is_none() {
    let sound = "openai-chat\n  audio: { input: { sample_rate: 16000 }, output: { sample_rate: 8000 } }";
    check(
        &changed(BASE, "openai-chat", sound),
        &[
            (
                ", output: { sample_rate: 8000 }",
                "",
                "6:12: /endpoint/audio/input: only `openai-realtime` is sent sound without a container; remove the key",
            ),
            (
                "input: { sample_rate: 16000 }, ",
                "",
                "6:12: /endpoint/audio/output: only `openai-realtime` and `openai-speech` answer in sound; remove the key",
            ),
        ],
    );
    check(
        &changed(BASE, "openai-chat", REALTIME),
        &[
            (
                "sample_rate: 8000",
                "channels: 1",
                "6:43: /endpoint/audio/output: the key `sample_rate` is missing (samples per second of each channel)",
            ),
            (
                "8000 } }",
                "8000 } }\n  http: http2",
                "7:9: /endpoint/http: a WebSocket is opened over HTTP/1.1; remove the key",
            ),
        ],
    );
    check(
        BASE,
        &[(
            "url: http:",
            "url: ws:",
            "4:8: /endpoint/url: the scheme must be http or https; write it as in `http://127.0.0.1:8000/v1/chat/completions`",
        )],
    );
}

#[test]
fn workload_faults() {
    let cases = "[{ id: a, prompt: hi, max_tokens: 4 }]";
    check(
        BASE,
        &[
            (cases, "[]", "8:3: /workload/cases: the list is empty; write at least one entry"),
            (
                cases,
                "3",
                "8:10: /workload/cases: `3` does not fit here; write a JSON or JSON-lines file of cases, or the list of cases itself",
            ),
            (
                cases,
                "[{ id: a, prompt: x }, { id: a, prompt: y }]",
                "8:33: /workload/cases/1: the id `a` is used twice; every case needs its own",
            ),
            (
                cases,
                "[{ id: a }]",
                "8:11: /workload/cases/0: the case `a` has no field `prompt`; add it to the case, or write `$$prompt` for the plain text",
            ),
            (
                cases,
                "[{ prompt: x, max_tokens: 4 }, { prompt: y }]",
                "8:41: /workload/cases/1: the case `case-2` has no field `max_tokens`; add it to the case, or write `$$max_tokens` for the plain text",
            ),
            (
                cases,
                "[{ prompt: x }, { prompt: y }]\n  payload: { a: [$what] }",
                "9:18: /workload/payload/a/0: the case `case-1` has no field `what`; add it to the case, or write `$$what` for the plain text (and so for 1 more)",
            ),
            (
                cases,
                "c.json\n  payload: { stream: false }",
                "9:22: /workload/payload/stream: the protocol `openai-chat` reads a stream; write `stream: true` or choose another protocol",
            ),
            (
                cases,
                "c.json\n  seed: 18446744073709551616",
                "9:9: /workload/seed: the number does not fit into 64 bits; write a smaller one, or put it in quotes if it is a text",
            ),
            (cases, "c.json\n  seed: -1", "9:9: /workload/seed: `-1` is too small; write at least 0"),
            (
                cases,
                "c.json\n  seed: \"7\"",
                "9:9: /workload/seed: expected a whole number, found the text `7`; write it without quotes",
            ),
        ],
    );
}

#[test]
fn traffic_faults() {
    let trial = "{ window: 75s, warm_up: 40s, drain: 30s }";
    check(
        BASE,
        &[
            (
                "model: constant",
                "model: uniform",
                "10:10: /traffic/model: `uniform` is not one of constant, poisson, closed",
            ),
            ("[2/s, 4/s]", "[0.5/s, 30/m]", "11:18: /traffic/loads/1: listed twice; every load is measured once"),
            ("[2/s, 4/s]", "2/s", "11:10: /traffic/loads: expected a list, found the text `2/s`"),
            (
                "[2/s, 4/s]",
                "[2/s]\n  concurrency: [1]",
                "12:3: /traffic/concurrency: an open loop has rates, not numbers of clients; write `loads: [2/s, 4/s]`, or `model: closed`",
            ),
            (
                trial,
                "{}",
                "12:3: /traffic/trial: write one of `window` (a time, as in `window: 60s`) and `requests` (a count)",
            ),
            (
                trial,
                "{ window: 75s, requests: 300 }",
                "12:25: /traffic/trial/requests: write only one of `window` and `requests`: each gives the number of measured requests",
            ),
            (
                trial,
                "{ window: 0s }",
                "12:20: /traffic/trial/window: zero can never be met; write a duration above zero",
            ),
            (
                trial,
                "{ window: 10ms }",
                "12:20: /traffic/trial/window: no request falls into a window of 10ms at 4/s; lengthen it",
            ),
            (
                trial,
                "{ requests: 10000000 }",
                "12:22: /traffic/trial/requests: one trial would send 12000120 requests (2000000 to warm up, 10000000 measured, 120 to drain); 10000000 are the most, so shorten it",
            ),
            (
                trial,
                "{ requests: 99999999999 }",
                "12:22: /traffic/trial/requests: `99999999999` is too large; write at most 10000000",
            ),
            (
                trial,
                "{ window: 75s, repeats: 3 }",
                "12:25: /traffic/trial/repeats: unknown key `repeats`; what can still stand here: requests, warm_up, drain",
            ),
        ],
    );
    check(
        CLOSED,
        &[
            (
                "concurrency: [8, 1, 2]",
                "loads: [2/s]",
                "7:3: /traffic/loads: a closed loop has numbers of clients, not rates; write `concurrency: [1, 2, 4]`",
            ),
            ("[8, 1, 2]", "[8, 8]", "7:20: /traffic/concurrency/1: listed twice; every load is measured once"),
            ("[8, 1, 2]", "[0]", "7:17: /traffic/concurrency/0: `0` is too small; write at least 1"),
            (
                "window: 60s",
                "requests: 300",
                "8:12: /traffic/trial/requests: a closed loop sends as fast as replies end, so its window is a time and not a count; write `window: 60s`",
            ),
        ],
    );
}

#[test]
fn a_step_of_more_than_a_week_is_refused() {
    let text = changed(&changed(BASE, "[2/s, 4/s]", "[0.001/s]"), "window: 75s", "window: 200s");
    // (160 + 800 + 120) / 0.001 per second = 1,080,000 s = 300 h.
    let expected = "12:20: /traffic/trial/window: 1080 requests at 0.001/s take 300h, longer than a week; every load sends as many as `at_load`, so remove slow loads or shorten the trial";
    assert_eq!(told(&text), [expected]);
}

#[test]
fn slo_faults() {
    let ttft = "{ metric: ttft, percentile: 99, at_most: 3s }";
    check(
        BASE,
        &[
            (
                ttft,
                "{ metric: ttft, percentile: 99 }",
                "16:7: /slo/objectives/0: the limit of `ttft` is missing; write it, as in `at_most: 3s`",
            ),
            (
                ttft,
                "{ metric: ttft, percentile: p99, at_most: 3s }",
                "16:35: /slo/objectives/0/percentile: expected a number, found the text `p99`; write a plain number, as in `95`",
            ),
            (
                ttft,
                "{ metric: ttft, percentile: 100, at_most: 3s }",
                "16:35: /slo/objectives/0/percentile: `100` is too large; write less than 100",
            ),
            (
                ttft,
                "{ metric: ttft, percentile: 10, at_most: 3s }",
                "16:35: /slo/objectives/0/percentile: `10` is too small; write at least 50",
            ),
            (
                ttft,
                "{ metric: ttft, percentile: 99.99999, at_most: 3s }",
                "16:35: /slo/objectives/0/percentile: `99.99999` is finer than a part per million; write at most four decimals",
            ),
            (
                ttft,
                "{ metric: ttft, percentile: 99, at_most: 5m }",
                "16:48: /slo/objectives/0/at_most: longer than the `timeout` of 2m, which ends a request before; lower the limit or raise `endpoint.timeout`",
            ),
            (
                ttft,
                "{ metric: success_rate, percentile: 99, at_least: 99% }",
                "16:31: /slo/objectives/0/percentile: `success_rate` is a share over all requests and has no percentile; remove it",
            ),
            (
                ttft,
                "{ metric: success_rate }",
                "16:7: /slo/objectives/0: the floor of `success_rate` is missing; write it, as in `at_least: 99%`",
            ),
            (
                ttft,
                "{ metric: success_rate, at_least: 0% }",
                "16:41: /slo/objectives/0/at_least: a floor of zero always holds; write a share above zero",
            ),
            (
                ttft,
                "{ metric: attainment, at_least: 95% }",
                "17:7: /slo/objectives/1: the objective `attainment` is written twice; keep one limit for it",
            ),
            (
                "  request: { ttft: 3s, e2e: 30s }\n",
                "",
                "16:17: /slo/objectives/1/metric: `attainment` is the share of requests within the limits of `slo.request`, and none is set; write one, as in `request: { ttft: 3s }`, or use `success_rate`",
            ),
            (
                "request: { ttft: 3s,",
                "request: { ttft: 0ms,",
                "14:20: /slo/request/ttft: zero can never be met; write a duration above zero",
            ),
            ("  at_load: 4/s\n", "", "13:1: /slo: the load that must hold is missing; write it, as in `at_load: 4/s`"),
            (
                "at_load: 4/s",
                "at_concurrency: 4",
                "18:3: /slo/at_concurrency: an open loop has a rate; write `at_load: 4/s`, or `model: closed` in `traffic`",
            ),
            (
                "at_load: 4/s",
                "at_load: 0/s",
                "18:12: /slo/at_load: `0/s` is not a rate; write a number above zero and `/s`, as in `4/s` or `0.5/s` (steps of 0.001/s)",
            ),
        ],
    );
    check(
        CLOSED,
        &[(
            "at_concurrency: 4",
            "at_load: 4/s",
            "11:3: /slo/at_load: a closed loop has no rate; write `at_concurrency: 8`, a number of clients",
        )],
    );
}

/// A contract for this protocol, with one request limit and one objective.
fn measured_by(protocol: &str, request: &str, objective: &str) -> String {
    let text = changed(BASE, "protocol: openai-chat", &format!("protocol: {protocol}"));
    // What a protocol asks of inline cases is told elsewhere.
    let text = changed(&text, "[{ id: a, prompt: hi, max_tokens: 4 }]", "cases.json");
    let text = changed(&text, "{ ttft: 3s, e2e: 30s }", &format!("{{ {request} }}"));
    changed(&text, "{ metric: ttft, percentile: 99, at_most: 3s }", &format!("{{ {objective} }}"))
}

#[test]
fn every_metric_has_a_limit_in_its_unit() {
    use RequestMetric::{E2e, FirstAnswer, FirstAudio, Itl, Rtf, Ttft, Underrun};
    let request = "ttft: 3s, first_answer: 5s, itl: 500ms, rtf: 0.5, first_audio: 400ms, underrun: 0ms, e2e: 9s";
    let text = measured_by("openai-realtime", request, "metric: rtf, percentile: 95, at_most: 0.35");
    let slo = contract_slo(&text);
    let ms = 1_000_000;
    let expected = [
        (Ttft, 3_000 * ms),
        (FirstAnswer, 5_000 * ms),
        (FirstAudio, 400 * ms),
        (Itl, 500 * ms),
        (E2e, 9_000 * ms),
        (Rtf, 500_000),
        (Underrun, 0),
    ];
    assert_eq!(slo.request.set().collect::<Vec<_>>(), expected);
    let shown: Vec<String> = slo.request.set().map(|(metric, limit)| metric.show_limit(limit)).collect();
    assert_eq!(shown, ["3s", "5s", "400ms", "500ms", "9s", "0.5", "0s"]);
    assert_eq!((slo.objectives[0].id().as_str(), slo.objectives[0].limit()), ("rtf_p95", Some((Rtf, 350_000))));
    let whole = measured_by("openai-speech", "rtf: 2", "metric: underrun, percentile: 95, at_most: 0s");
    let slo = contract_slo(&whole);
    assert_eq!(slo.request.set().collect::<Vec<_>>(), [(Rtf, 2_000_000)]);
    assert_eq!(slo.objectives[0].limit(), Some((Underrun, 0)));
}

/// What must hold, by a contract whose protocol may have other faults.
fn contract_slo(text: &str) -> Slo {
    read(text).slo
}

#[test]
fn the_drain_follows_the_limits_on_how_long_a_request_may_take() {
    let drain = |request: &str, objective: &str| {
        let text = measured_by("openai-realtime", request, objective);
        match read(&changed(&text, ", drain: 30s", "")).traffic {
            Traffic::Open { counts, .. } => counts.drain,
            Traffic::Closed { .. } => panic!("an open loop"),
        }
    };
    // At 4/s; a pause, a silence and a factor keep no request open for longer, and the timeout is 120 s.
    assert_eq!(
        drain("first_answer: 6s, itl: 50s, underrun: 60s", "metric: first_audio, percentile: 99, at_most: 7s"),
        28
    );
    assert_eq!(drain("itl: 50s, rtf: 0.5", "metric: underrun, percentile: 99, at_most: 70s"), 480);
    // Neither has to end before the timeout.
    assert_eq!(drain("itl: 3m, underrun: 4m", "metric: e2e, percentile: 99, at_most: 9s"), 36);
}

#[test]
fn a_number_where_a_duration_belongs_and_the_other_way_round() {
    let plain = "is a plain number, processing time / duration of the sound; write it without unit and quotes, as in `at_most: 0.5`";
    let duration = "is not a duration; write a number and one of ns, us, ms, s, m, h, as in `75ms` or `3s`";
    let objective = |objective: &str| told(&measured_by("openai-realtime", "ttft: 3s", objective));
    for (written, expected) in [
        ("metric: rtf, percentile: 95, at_most: 500ms", format!("16:47: /slo/objectives/0/at_most: `rtf` {plain}")),
        ("metric: rtf, percentile: 95, at_most: \"0.5\"", format!("16:47: /slo/objectives/0/at_most: `rtf` {plain}")),
        ("metric: rtf, percentile: 95, at_most: fast", format!("16:47: /slo/objectives/0/at_most: `rtf` {plain}")),
        (
            "metric: ttft, percentile: 95, at_most: 3",
            format!("16:48: /slo/objectives/0/at_most: `3` {duration}; did you mean `3ms` or `3s`?"),
        ),
        (
            "metric: ttft, percentile: 95, at_most: 0.5",
            format!("16:48: /slo/objectives/0/at_most: `0.5` {duration}; did you mean `0.5ms` or `0.5s`?"),
        ),
        (
            "metric: ttft, percentile: 95, at_most: \"3\"",
            format!("16:48: /slo/objectives/0/at_most: `3` {duration}; did you mean `3ms` or `3s`?"),
        ),
        ("metric: ttft, percentile: 95, at_most: -3", format!("16:48: /slo/objectives/0/at_most: `-3` {duration}")),
        ("metric: ttft, percentile: 95, at_most: [3s]", format!("16:39: /slo/objectives/0/at_most: a list {duration}")),
        (
            "metric: underrun, percentile: 95, at_most: 0",
            format!("16:52: /slo/objectives/0/at_most: `0` {duration}"),
        ),
        (
            "metric: rtf, percentile: 95, at_most: 0",
            "16:47: /slo/objectives/0/at_most: zero can never be met; write a number above zero".to_owned(),
        ),
        (
            "metric: rtf, percentile: 95, at_most: 0.1234567",
            "16:47: /slo/objectives/0/at_most: `0.1234567` is not a ratio; write a plain number with at most six decimals, as in `0.5`".to_owned(),
        ),
        (
            "metric: rtf, percentile: 95",
            "16:7: /slo/objectives/0: the limit of `rtf` is missing; write it, as in `at_most: 0.5`".to_owned(),
        ),
        (
            "metric: rtf, percentile: 95, at_most: 0.5, at_least: 9%",
            "16:52: /slo/objectives/0/at_least: `rtf` is a ratio and has no floor; write `percentile` and `at_most`".to_owned(),
        ),
    ] {
        assert_eq!(objective(written), [expected], "{written}");
    }
    let request =
        |request: &str| told(&measured_by("openai-realtime", request, "metric: e2e, percentile: 95, at_most: 3s"));
    for (written, expected) in [
        ("rtf: 500ms", "14:19: /slo/request/rtf: expected a number, found the text `500ms`; write a plain number, as in `0.5`".to_owned()),
        ("rtf: \"0.5\"", "14:19: /slo/request/rtf: expected a number, found the text `0.5`; write it without quotes".to_owned()),
        ("rtf: 0", "14:19: /slo/request/rtf: `0` is too small; write more than 0".to_owned()),
        (
            "rtf: 0.0000001",
            "14:19: /slo/request/rtf: `0.0000001` is not a ratio; write a plain number with at most six decimals, as in `0.5`".to_owned(),
        ),
        ("itl: 0.5", format!("14:19: /slo/request/itl: `0.5` {duration}; did you mean `0.5ms` or `0.5s`?")),
        ("itl: 0s", "14:19: /slo/request/itl: zero can never be met; write a duration above zero".to_owned()),
        (
            "first_answer: 3m",
            "14:28: /slo/request/first_answer: longer than the `timeout` of 2m, which ends a request before; lower the limit or raise `endpoint.timeout`".to_owned(),
        ),
        ("fist_answer: 3s", "14:14: /slo/request/fist_answer: unknown key `fist_answer`; did you mean `first_answer`?".to_owned()),
    ] {
        assert_eq!(request(written), [expected], "{written}");
    }
}

#[test]
fn a_protocol_cannot_show_every_metric_and_says_what_to_use_instead() {
    let stream = "needs a stream, and `openai-chat-json` reads one body; use a streamed protocol or `e2e`";
    let text = "needs a reply with sound, and";
    for (protocol, metric, limit, refusal) in [
        ("openai-chat-json", "tpot", "75ms", stream.to_owned()),
        ("openai-chat-json", "itl", "75ms", stream.to_owned()),
        ("openai-chat-json", "underrun", "0s", format!("{text} `openai-chat-json` replies with text; use `e2e`")),
        ("openai-speech", "tpot", "75ms", "needs tokens, and `openai-speech` replies with sound; use `rtf`".to_owned()),
        (
            "openai-speech",
            "itl",
            "75ms",
            "needs a stream of messages, and `openai-speech` replies with plain sound; use `underrun`".to_owned(),
        ),
        (
            "openai-transcription",
            "itl",
            "75ms",
            "needs a stream of tokens, and `openai-transcription` may reply with one body; use `rtf` or `e2e`"
                .to_owned(),
        ),
        (
            "openai-transcription",
            "tpot",
            "75ms",
            "needs a stream of tokens, and `openai-transcription` may reply with one body; use `rtf` or `e2e`"
                .to_owned(),
        ),
        (
            "openai-transcription",
            "first_audio",
            "1s",
            format!("{text} `openai-transcription` replies with text; use `ttft`"),
        ),
        (
            "openai-transcription",
            "underrun",
            "1s",
            format!("{text} `openai-transcription` replies with text; use `rtf`"),
        ),
        ("openai-chat", "rtf", "0.5", "needs sound, and `openai-chat` carries text alone; use `e2e`".to_owned()),
        ("openai-chat", "first_audio", "1s", format!("{text} `openai-chat` replies with text; use `ttft`")),
        ("openai-chat", "underrun", "0s", format!("{text} `openai-chat` replies with text; use `itl`")),
    ] {
        let objective = format!("metric: {metric}, percentile: 99, at_most: {limit}");
        let found = told(&measured_by(protocol, &format!("{metric}: {limit}"), &objective));
        let expected = [
            format!("14:14: /slo/request/{metric}: `{metric}` {refusal}"),
            format!("16:9: /slo/objectives/0/metric: `{metric}` {refusal}"),
        ];
        assert_eq!(found, expected, "{protocol} {metric}");
    }
    for (protocol, metric, limit) in [
        ("openai-realtime", "tpot", "75ms"),
        ("openai-realtime", "itl", "75ms"),
        ("openai-speech", "first_answer", "1s"),
        ("openai-transcription", "rtf", "0.5"),
        ("openai-chat-json", "first_answer", "1s"),
        ("ollama", "itl", "75ms"),
    ] {
        let objective = format!("metric: {metric}, percentile: 99, at_most: {limit}");
        assert_eq!(contract_slo(&measured_by(protocol, &format!("{metric}: {limit}"), &objective)).objectives.len(), 2);
    }
}

#[test]
fn stability_faults() {
    let row = |row: &str| format!("{BASE}stability:\n  - {row}\n");
    for (written, expected) in [
        (
            "{ name: oom }",
            "20:5: /stability/0: write one of `counter` (a number that must not rise) and `exit_code` (a health check)",
        ),
        (
            "{ name: OOM count, exit_code: { command: [a] } }",
            "20:13: /stability/0/name: `OOM count` is not a row's name; write lower-case letters, digits, `_` and `-`, as in `oom_count`",
        ),
        (
            "{ name: ttft_p99, exit_code: { command: [a] } }",
            "20:13: /stability/0/name: the name `ttft_p99` is used by another row of the verdict; write another",
        ),
        (
            "{ name: a, exit_code: { command: [a] }, max_increase: 1 }",
            "20:45: /stability/0/max_increase: an exit code does not rise; remove it, or read a number with `counter`",
        ),
        (
            "{ name: a, counter: { command: [a] }, max_increase: -1 }",
            "20:57: /stability/0/max_increase: `-1` is too small; write at least 0",
        ),
        (
            "{ name: a, counter: { command: [] } }",
            "20:27: /stability/0/counter/command: the list is empty; write at least one entry",
        ),
    ] {
        let text = row(written);
        let told = told(&text);
        assert!(told.contains(&expected.to_owned()), "{written}: {told:?}");
    }
}

proptest::proptest! {
    /// Whatever somebody's editor did to a contract: no panic, and every place lies in the text.
    #[test]
    fn damaged_contracts_are_refused_with_a_place(at in 0..BASE.len(), cut in 0..9usize, put in "[\\PC\n\t:{}\\[\\]&*!|>'\"%@`#-]{0,6}") {
        let end = (at + cut).min(BASE.len());
        let text = format!("{}{put}{}", &BASE[..at], &BASE[end..]);
        for fault in parse(&text, Path::new("/repo")).err().unwrap_or_default() {
            let line = text.lines().nth(fault.line - 1).unwrap_or_default();
            proptest::prop_assert!(fault.line <= text.lines().count().max(1), "{fault:?}\n{text}");
            proptest::prop_assert!(fault.column <= line.chars().count() + 1, "{fault:?}\n{text}");
        }
    }
}

#[test]
fn a_flood_of_unknown_keys_is_told_in_bounded_space() {
    let keys: String = (0..50_000).map(|index| format!("k{index}: 1\n")).collect();
    let rendered = rendered(&keys);
    assert!(rendered.len() < 40_000, "{}", rendered.len());
    assert!(rendered.ends_with("1000 faults in c.yaml\n"), "{}", &rendered[rendered.len() - 200..]);
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/contract.schema.json");
    let committed = std::fs::read_to_string(path).expect("the committed schema");
    let generated = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
    assert!(committed == generated, "write the output of `goodput schema` to schemas/contract.schema.json");
    assert!(jsonschema::draft202012::meta::is_valid(&schema()));
}

#[test]
fn the_quickstart_is_a_contract() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart");
    let text = std::fs::read_to_string(folder.join("contract.yaml")).expect("the contract");
    let contract = read(&text);
    let cases = std::fs::read_to_string(folder.join("cases.json")).expect("the cases");
    let cases = crate::workload::parse_cases(&cases).expect("cases");
    let template = contract.workload.template(&cases, |has| contract.endpoint.default_payload(has));
    crate::workload::Workload::build(
        &cases,
        &template,
        &contract.endpoint.model,
        1,
        contract.endpoint.shape(),
        &std::collections::BTreeMap::new(),
    )
    .expect("every case fills the payload");
    let Traffic::Open { loads, counts, .. } = contract.traffic else { panic!("an open loop") };
    let seconds: f64 = loads.iter().map(|load| counts.total() as f64 / load.per_second()).sum();
    assert!(seconds < 80.0, "a newcomer waits {seconds} s");
}

#[test]
fn a_pointer_has_a_line() {
    for (pointer, line) in [
        ("", 1),
        ("/name", 2),
        ("/slo/objectives", 15),
        ("/slo/objectives/1", 17),
        ("/slo/at_load", 18),
        ("/slo/capacity/at_least", 13),
        ("/baseline/margin", 1),
        ("/slo/objectives/9", 15),
    ] {
        assert_eq!(line_of(BASE, pointer), Some(line), "{pointer}");
    }
    for unreadable in ["", "a: [", "a: 1\n---\nb: 2\n"] {
        assert_eq!(line_of(unreadable, "/a"), None, "{unreadable:?}");
    }
}
