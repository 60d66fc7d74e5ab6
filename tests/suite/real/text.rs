//! llama.cpp with two tiny models. Two things make exact expectations possible: neither model ends a reply before
//! `max_tokens`, and the server counts tokens by itself on its metrics page, so that every token in our records can be
//! accounted for by another tool.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Real, Run, assert_exit, assert_judged_again, is_void};

/// The server whose model says plain words, one token a chunk.
const SERVER: &str = "GOODPUT_REAL";

/// The server whose model splits characters between tokens.
const RAW_SERVER: &str = "GOODPUT_REAL_RAW";

/// Every case asks for so many output tokens, and gets them.
const MAX_TOKENS: u64 = 32;

impl Real {
    /// Prompt tokens read and output tokens written since the server started, by its own count.
    fn counted_tokens(&self) -> Tokens {
        let (_, page) = self.page("/metrics");
        let counter = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(&format!("llamacpp:{name} ")));
            line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no counter {name} in\n{page}"))
        };
        Tokens { input: counter("prompt_tokens_total"), output: counter("tokens_predicted_total") }
    }

    /// Waits until the server has counted `expected` tokens more than `before`, which it does when it has closed the
    /// request, and then tells what it counted.
    fn tokens_since(&self, before: Tokens, expected: Tokens) -> Tokens {
        for _ in 0..100 {
            if self.counted_tokens().minus(before).output >= expected.output {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        self.counted_tokens().minus(before)
    }

    /// Every token that the server counted since `before` is in the run's records, and the other way round. The gate may
    /// have sent one request before the first trial, to prove that the endpoint answers; a request that the end of the
    /// drain cancelled has no count of its own and at most `MAX_TOKENS`.
    fn accounts_for(&self, before: Tokens, run: &Run) {
        let recorded = run.tokens();
        let uncounted = run.requests.iter().filter(|request| request["output_tokens"].is_null()).count() as u64;
        let counted = self.tokens_since(before, recorded);
        let other = counted.output.checked_sub(recorded.output);
        assert!(recorded.output > 0);
        let fits = other.is_some_and(|other| match uncounted {
            0 => other == 0 || other == MAX_TOKENS,
            _ => other <= (1 + uncounted) * MAX_TOKENS,
        });
        assert!(fits, "recorded {recorded:?}, the server counted {counted:?}; {uncounted} requests without a count");
        let largest_prompt =
            run.requests.iter().filter_map(|request| request["input_tokens"].as_u64()).max().unwrap_or(0);
        let other = counted.input.checked_sub(recorded.input);
        assert!(
            other.is_some_and(|other| other <= (1 + uncounted) * largest_prompt),
            "recorded {recorded:?}, the server counted {counted:?}; {uncounted} requests without a count"
        );
    }
}

/// Tokens by somebody's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tokens {
    input: u64,
    output: u64,
}

impl Tokens {
    /// What these requests' records add up to.
    fn of(requests: &[Value]) -> Self {
        let sum = |field: &str| requests.iter().filter_map(|request| request[field].as_u64()).sum();
        Self { input: sum("input_tokens"), output: sum("output_tokens") }
    }

    fn minus(self, before: Self) -> Self {
        Self { input: self.input - before.input, output: self.output - before.output }
    }
}

impl Run {
    /// The tokens that our records add up to.
    fn tokens(&self) -> Tokens {
        Tokens::of(&self.requests)
    }
}

/// What holds for every reply of this model that was read to its end.
fn assert_complete(request: &Value) {
    assert_whole(request);
    assert_eq!(request["finish_reason"], "length", "{request}");
    assert_eq!(request["truncated"], true, "{request}");
}

/// The same without how the server says that it ended.
fn assert_whole(request: &Value) {
    for (field, expected) in [("outcome", Value::from("ok")), ("status", 200.into()), ("error", Value::Null)] {
        assert_eq!(request[field], expected, "{field} in {request}");
    }
    assert_eq!(request["output_tokens"], MAX_TOKENS, "{request}");
    assert_eq!(request["output_chunks"], MAX_TOKENS, "this model sends one word a chunk: {request}");
    assert_eq!(request["first_output_kind"], "content", "{request}");
    assert_eq!(request["answerless"], false, "{request}");
    let instants = ["scheduled_ns", "sent_ns", "first_output_ns", "last_output_ns", "finished_ns"];
    let times: Vec<u64> = instants.iter().filter_map(|field| request[*field].as_u64()).collect();
    assert!(times.len() == instants.len() && times.is_sorted(), "{request}");
}

/// Warm-up and window are read to their end; the drain may have been cut when everything was decided.
fn assert_measured(run: &Run) {
    for request in run.requests.iter().filter(|request| request["segment"] != "drain" || request["outcome"] == "ok") {
        assert_complete(request);
    }
    let outcomes: BTreeSet<_> = run.requests.iter().filter_map(|request| request["outcome"].as_str()).collect();
    assert!(outcomes.is_subset(&BTreeSet::from(["ok", "cancelled"])), "{outcomes:?}");
    let mut prompts: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for request in &run.requests {
        let counts = prompts.entry(request["case"].as_str().expect("a case")).or_default();
        counts.extend(request["input_tokens"].as_u64());
    }
    let cases: Vec<&str> = prompts.keys().copied().collect();
    assert_eq!(cases, ["escapes", "hello", "ship", "unicode"]);
    assert!(prompts.values().all(|counts| counts.len() == 1), "a prompt has one length: {prompts:?}");
}

#[test]
fn smoke_shows_replies_whose_tokens_the_server_counted_too() {
    let Some(real) = Real::server(SERVER) else { return };
    let (head, _) = real.page("/health");
    assert!(head.to_ascii_lowercase().contains("server: llama.cpp"), "this is no llama.cpp: {head}");

    for (protocol, path) in [
        ("openai-chat", "/v1/chat/completions"),
        ("openai-completions", "/v1/completions"),
        ("anthropic-messages", "/v1/messages"),
    ] {
        smoke_over(&real, protocol, path).iter().for_each(assert_complete);
    }
    // Over this dialect the server calls every reply completed, also one that was cut.
    for request in smoke_over(&real, "openai-responses", "/v1/responses") {
        assert_whole(&request);
        assert_eq!((&request["finish_reason"], &request["truncated"]), (&"stop".into(), &false.into()), "{request}");
    }
}

/// Asks each case twice in a dialect of the server, whose tokens are words.
fn smoke_over(real: &Real, protocol: &str, path: &str) -> Vec<Value> {
    let requests = smoke(real, protocol, path, &["--clients", "2", "--rounds", "4"]);
    assert_eq!(requests.len(), 2 * 4, "{protocol}");
    for request in &requests {
        let text = request["text"].as_str().expect("the reply's text");
        assert_eq!(text.split_whitespace().count() as u64, MAX_TOKENS, "this model's tokens are words: {text}");
    }
    requests
}

/// Asks the cases in a dialect of the server; every token is one that the server counted by itself.
fn smoke(real: &Real, protocol: &str, path: &str, more: &[&str]) -> Vec<Value> {
    let before = real.counted_tokens();
    let url = format!("{}{path}", real.url);
    let flags = ["smoke", "--url", &url, "--protocol", protocol, "--model", &real.model, "--cases", "cases.json"];
    let output = real.goodput(&[flags.as_slice(), &["--output", "smoke.json"], more].concat());
    assert_exit(&output, 0);
    let text = fs::read_to_string(real.folder.path().join("smoke.json")).expect("the output file");
    let written: Value = serde_json::from_str(&text).expect("JSON");
    let requests = written["requests"].as_array().expect("a list of requests").clone();
    let recorded = Tokens::of(&requests);
    assert_eq!(real.tokens_since(before, recorded), recorded, "{protocol}");
    requests
}

/// This server sends whole characters only, so a token that ends inside one has no chunk of its own. It was seen to send 32
/// tokens in 9 to 29 chunks, and once in one.
#[test]
fn tokens_are_not_counted_by_chunks_and_split_characters_are_read_whole() {
    let Some(real) = Real::server(RAW_SERVER) else { return };
    let payload = |streams: bool| {
        json!({
            "model": real.model, "messages": [{ "role": "user", "content": "$prompt" }], "max_tokens": "$max_tokens",
            "temperature": 0, "stream": streams,
        })
    };
    fs::write(real.folder.path().join("payload.json"), payload(true).to_string()).expect("a writable folder");
    let path = "/v1/chat/completions";
    let requests = smoke(&real, "openai-chat", path, &["--rounds", "4", "--payload-template", "payload.json"]);
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert_eq!((&request["outcome"], &request["output_tokens"]), (&"ok".into(), &MAX_TOKENS.into()), "{request}");
        assert_eq!(request["finish_reason"], "length", "{request}");
        assert!(
            !request["warnings"].to_string().contains("invalid_utf8"),
            "the bytes of a character were torn: {request}"
        );
        let chunks = request["output_chunks"].as_u64().expect("a number");
        assert!((1..MAX_TOKENS).contains(&chunks), "fewer chunks than tokens: {request}");
    }
    let cases: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(real.folder.path().join("cases.json")).expect("cases")).expect("JSON");
    for case in cases {
        let request = requests.iter().find(|request| request["case"] == case["id"]).expect("every case was sent");
        let mut whole = payload(false);
        whole["messages"][0]["content"] = case["prompt"].clone();
        whole["max_tokens"] = MAX_TOKENS.into();
        let reply: Value = serde_json::from_slice(&real.post(path, &whole)).expect("JSON");
        let expected = reply["choices"][0]["message"]["content"].as_str().expect("a text");
        // Of a stream, the server keeps blanks at the end to itself.
        assert_eq!(request["text"].as_str().map(str::trim_end), Some(expected.trim_end()), "{request}");
    }
}

#[test]
fn smoke_with_a_contract_finds_everything_in_order() {
    let Some(real) = Real::server(SERVER) else { return };
    let contract = real.contract("contract-constant.yaml");
    let output = real.goodput(&["smoke", &contract.display().to_string()]);
    assert_exit(&output, 0);
}

#[test]
fn a_constant_sweep_measures_what_the_server_did() {
    let Some(real) = Real::server(SERVER) else { return };
    let before = real.counted_tokens();
    let run = real.gate("contract-constant.yaml");
    real.accounts_for(before, &run);
    assert_measured(&run);
    assert_judged_again(&real, &run);
    for (index, per_second) in [(0, 4.0), (1, 8.0)] {
        let step = run.step(index);
        assert_eq!(step["load"]["rate_milli"], 1_000 * per_second as u64);
        assert_eq!(step["offered"], per_second);
        let trials = step["trials"].as_array().expect("trials");
        let window = &trials.last().expect("a trial")["window"];
        assert_eq!(window["scheduled"], 60);
        assert_eq!(window["outcomes"], json!({ "ok": 60 }));
        assert_eq!(window["output_tokens"], 60 * MAX_TOKENS);
        // 60 replies of 32 tokens in the window's 15 or 7.5 seconds; one that is late at either end may be in or out.
        let tokens = step["output_tokens_per_second"].as_f64().expect("a rate");
        assert!((tokens / (MAX_TOKENS as f64 * per_second) - 1.0).abs() <= 2.0 / 60.0, "{tokens}");
        assert_eq!(step["success_rate"], 1_000_000);
        assert_eq!(step["metrics"]["tpot"]["count"], 60 * if trials.len() > 1 && is_void(&trials[1]) { 2 } else { 1 });
        let of_window = run.trial(run.trial_of(index)).filter(|request| request["segment"] == "window");
        assert_eq!(of_window.count(), 60);
    }
    assert_eq!(run.result["endpoint"]["kind"], "external");
    assert_eq!(run.result["probes"][0]["after"]["value"].as_f64(), Some(0.0));
}

#[test]
fn a_closed_loop_keeps_its_number_of_clients() {
    let Some(real) = Real::server(SERVER) else { return };
    let before = real.counted_tokens();
    let run = real.gate("contract-closed.yaml");
    real.accounts_for(before, &run);
    assert_measured(&run);
    assert_judged_again(&real, &run);
    let capacity = &run.result["capacity"];
    assert_eq!(capacity["holds_at"], serde_json::json!({ "clients": 4 }), "its capacity is a number of clients");
    assert_eq!((&capacity["point"], &capacity["requests_per_trial"]), (&Value::Null, &Value::Null), "and no rate");
    for (index, clients) in [(0, 1), (1, 4)] {
        assert_eq!(run.step(index)["load"]["clients"], clients);
        assert_eq!(run.step(index)["offered"], Value::Null);
        assert_eq!(most_open_at_once(run.trial(run.trial_of(index))), clients, "clients");
    }
}

/// The largest number of requests between their sending and their end.
fn most_open_at_once<'a>(requests: impl Iterator<Item = &'a Value>) -> i64 {
    let mut changes = Vec::new();
    for request in requests {
        if let (Some(sent), Some(finished)) = (request["sent_ns"].as_u64(), request["finished_ns"].as_u64()) {
            changes.extend([(sent, 1), (finished, -1)]);
        }
    }
    // At one instant, ends come before beginnings.
    changes.sort_unstable();
    let open = changes.iter().scan(0, |open, (_, change)| {
        *open += change;
        Some(*open)
    });
    open.max().unwrap_or(0)
}
