//! The part of a contract that two results must have in common to be compared.

use std::collections::BTreeMap;

use crate::audio::{Encoding, PcmFormat};
use crate::contract::{Contract, HttpVersion, Objective, Traffic};
use crate::schedule::{ArrivalProcess, PlannedTrial};
use crate::units::{Digest, Load, Rate, format_duration};

/// The rate at which the schedules of two contracts are held against each other: the same counts, process and seed give the same
/// schedule at every rate.
const ONE_PER_SECOND_MILLI: u64 = 1_000;

/// What of a contract two results must have in common, one readable entry for each thing that could differ: what is asked of one
/// request and of a trial, how and how much is asked, and by which tool. Which loads are listed is not in it: only loads that both
/// have are compared.
pub fn contract_part(contract: &Contract, workload_digest: &Digest) -> BTreeMap<String, String> {
    let endpoint = &contract.endpoint;
    let mut part = BTreeMap::new();
    let mut add = |key: &str, value: String| part.insert(key.to_owned(), value);
    add("protocol", endpoint.protocol.name().to_owned());
    add("timeout", format_duration(endpoint.timeout));
    add("idle_timeout", format_duration(endpoint.idle_timeout));
    add("http", http(endpoint.http).to_owned());
    for (key, format) in [("input_audio", endpoint.input_audio), ("output_audio", endpoint.output_audio)] {
        if let Some(format) = format {
            add(key, sound(format));
        }
    }
    for objective in &contract.slo.objectives {
        add(&format!("objective_{}", objective.id()), objective_limit(objective));
    }
    for (metric, limit) in contract.slo.request.set() {
        add(&format!("request_{}", metric.name()), metric.show_limit(limit));
    }
    add("traffic", process(&contract.traffic).to_owned());
    add("requests", requests(&contract.traffic));
    add("seed", contract.workload.seed.to_string());
    add("schedule", schedule(contract).to_string());
    add("workload", workload_digest.to_string());
    add("tool", tool());
    part
}

fn http(version: HttpVersion) -> &'static str {
    match version {
        HttpVersion::Auto => "auto",
        HttpVersion::Http1 => "http1",
        HttpVersion::Http2 => "http2",
    }
}

fn sound(format: PcmFormat) -> String {
    let encoding = match format.encoding {
        Encoding::Pcm16 => "pcm16",
        Encoding::G711Ulaw => "g711_ulaw",
        Encoding::G711Alaw => "g711_alaw",
    };
    format!("{encoding}, {} Hz, {} channels", format.sample_rate, format.channels)
}

/// The limit of a percentile, or the floor of a share.
fn objective_limit(objective: &Objective) -> String {
    match objective {
        Objective::Percentile { metric, at_most, .. } => metric.show_limit(*at_most),
        Objective::SuccessRate { at_least } | Objective::Attainment { at_least } => at_least.to_string(),
    }
}

fn process(traffic: &Traffic) -> &'static str {
    match traffic {
        Traffic::Open { process: ArrivalProcess::Constant, .. } => "constant",
        Traffic::Open { process: ArrivalProcess::Poisson, .. } => "poisson",
        Traffic::Closed { .. } => "closed",
    }
}

/// How much one trial asks: requests in an open loop, times in a closed one.
fn requests(traffic: &Traffic) -> String {
    match traffic {
        Traffic::Open { counts, .. } => {
            format!("{} warm-up, {} window, {} drain", counts.warm_up, counts.window, counts.drain)
        }
        Traffic::Closed { warm_up, window, drain, .. } => {
            let [warm_up, window, drain] = [warm_up, window, drain].map(|time| format_duration(*time));
            format!("{warm_up} warm-up, {window} window, {drain} drain")
        }
    }
}

/// The digest of the run's first schedule at 1/s, or of the plan of one client.
fn schedule(contract: &Contract) -> Digest {
    let load = match contract.traffic {
        Traffic::Open { .. } => Rate::from_milli(ONE_PER_SECOND_MILLI).map(Load::RateMilli),
        Traffic::Closed { .. } => Some(Load::Clients(1)),
    };
    // One request per second is a rate.
    let Some(load) = load else { return Digest::of(&[]) };
    let shape = contract.traffic.shape(load);
    PlannedTrial { trial: 0, seed: contract.workload.seed, load, shape }.schedule_digest()
}

/// The tool with what of its version may change what a figure means: before 1.0 that is the minor version too.
fn tool() -> String {
    match (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")) {
        ("0", minor) => format!("goodput 0.{minor}"),
        (major, _) => format!("goodput {major}"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const TEXT: &str = "\
version: 1
name: demo
endpoint: { url: \"http://127.0.0.1:8000/v1/chat/completions\", protocol: openai-chat, model: m }
workload: { cases: [{ id: a, prompt: hi, max_tokens: 4 }], seed: 7 }
traffic: { model: constant, loads: [2/s, 4/s], trial: { window: 75s, warm_up: 40s, drain: 30s } }
slo:
  request: { ttft: 3s, e2e: 30s }
  objectives: [{ metric: ttft, percentile: 99, at_most: 3s }, { metric: attainment, at_least: 99% }]
  at_load: 4/s
";

    fn part(text: &str) -> BTreeMap<String, String> {
        let loaded = crate::contract::parse(text, Path::new("/repo")).expect("a contract");
        contract_part(&loaded.contract, &Digest::of(b"workload"))
    }

    /// The names of what differs after a change of the text.
    fn differs(from: &str, to: &str) -> Vec<String> {
        assert_eq!(TEXT.matches(from).count(), 1, "`{from}` must be there once");
        let (base, head) = (part(TEXT), part(&TEXT.replace(from, to)));
        let keys: std::collections::BTreeSet<&String> = base.keys().chain(head.keys()).collect();
        keys.into_iter().filter(|key| base.get(*key) != head.get(*key)).cloned().collect()
    }

    #[test]
    fn every_entry_can_be_read() {
        let part = part(TEXT);
        let keys: Vec<&str> = part.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "http",
                "idle_timeout",
                "objective_attainment",
                "objective_ttft_p99",
                "protocol",
                "request_e2e",
                "request_ttft",
                "requests",
                "schedule",
                "seed",
                "timeout",
                "tool",
                "traffic",
                "workload",
            ]
        );
        for (key, value) in [
            ("objective_ttft_p99", "3s"),
            ("objective_attainment", "99%"),
            ("request_e2e", "30s"),
            ("requests", "160 warm-up, 300 window, 120 drain"),
            ("traffic", "constant"),
            ("seed", "7"),
            ("timeout", "2m"),
            ("protocol", "openai-chat"),
        ] {
            assert_eq!(part.get(key).map(String::as_str), Some(value), "{key}");
        }
    }

    #[test]
    fn a_change_is_named_by_what_it_changes() {
        for (from, to, expected) in [
            ("at_most: 3s", "at_most: 4s", &["objective_ttft_p99"][..]),
            ("percentile: 99", "percentile: 95", &["objective_ttft_p95", "objective_ttft_p99"]),
            ("e2e: 30s", "e2e: 20s", &["request_e2e"]),
            ("model: m }", "model: m, timeout: 90s }", &["timeout"]),
            // With equal gaps the seed orders the cases only.
            ("seed: 7", "seed: 8", &["seed"]),
            ("model: constant", "model: poisson", &["schedule", "traffic"]),
            ("window: 75s", "window: 80s", &["requests", "schedule"]),
        ] {
            let named = differs(from, to);
            assert_eq!(named, expected, "{from} became {to}");
        }
    }

    #[test]
    fn what_only_says_how_much_is_measured_where_changes_nothing() {
        for (from, to) in [
            ("loads: [2/s, 4/s]", "loads: [1/s, 2/s, 4/s]"),
            ("name: demo", "name: other"),
            ("127.0.0.1:8000", "10.0.0.7:80"),
        ] {
            assert_eq!(differs(from, to), [""; 0], "{from} became {to}");
        }
    }
}
