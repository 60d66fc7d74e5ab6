//! Where in a contract a reader should look for what a row of the verdict is about.

use serde_json::Value;

use crate::record::RunResult;

/// The JSON pointer into the contract of what a row is about. For a row that nobody wrote it is the part that it belongs to.
pub(super) fn pointer(result: &RunResult, check: &str) -> String {
    let contract = &result.contract;
    let found = position(contract, "/slo/objectives", |written| objective_id(written).as_deref() == Some(check))
        .or_else(|| position(contract, "/slo/resources", |written| is_limit(written, check)))
        .or_else(|| position(contract, "/stability", |written| text(written, "name") == Some(check)));
    found.unwrap_or_else(|| of_name(result, check))
}

/// The pointer to the load that must hold, which the whole verdict is about.
pub(super) fn of_verdict(result: &RunResult) -> &'static str {
    if result.contract.pointer("/slo/at_concurrency").is_some() { "/slo/at_concurrency" } else { "/slo/at_load" }
}

/// The pointer to the first item of a list for which `is_it` holds.
fn position(contract: &Value, list: &str, is_it: impl Fn(&Value) -> bool) -> Option<String> {
    let items = contract.pointer(list)?.as_array()?;
    items.iter().position(is_it).map(|index| format!("{list}/{index}"))
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// The name of an objective as a contract writes it: `ttft_p99.9`, `attainment`.
fn objective_id(written: &Value) -> Option<String> {
    let metric = text(written, "metric")?;
    match written.get("percentile").and_then(Value::as_f64) {
        Some(percentile) => Some(format!("{metric}_p{percentile}")),
        None => Some(metric.to_owned()),
    }
}

/// Whether a row is that of a limit on a resource: `kv_cache_usage_max`.
fn is_limit(written: &Value, check: &str) -> bool {
    let Some(statistic) = text(written, "resource").and_then(|name| check.strip_prefix(name)?.strip_prefix('_')) else {
        return false;
    };
    // What is not written depends on the kind of the resource.
    text(written, "statistic").map_or(["max", "rate"].contains(&statistic), |written| written == statistic)
}

fn of_name(result: &RunResult, check: &str) -> String {
    if let Some(metric) = check.strip_suffix("_change") {
        return match metric {
            "capacity" | "goodput" => "/baseline/margin".to_owned(),
            "contract" => weakened(result).unwrap_or_else(|| "/slo".to_owned()),
            _ => position(&result.contract, "/baseline/latency", |written| {
                objective_id(written).as_deref() == Some(metric)
            })
            .unwrap_or_else(|| "/baseline".to_owned()),
        };
    }
    let pointer = match check {
        "capacity" => "/slo/capacity",
        "all_limits" => "/slo/objectives",
        "baseline" => "/baseline",
        "load_generator" | "completeness" => "/traffic",
        "endpoint" | "plausibility" => "/endpoint",
        // A row that comes by itself with an endpoint of this machine.
        _ => "/endpoint/launch",
    };
    pointer.to_owned()
}

/// The first place where the contract asks for less.
fn weakened(result: &RunResult) -> Option<String> {
    Some(result.comparison.as_ref()?.weakened.first()?.pointer.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{Comparison, Weakening};
    use crate::report::samples;

    #[test]
    fn every_row_has_its_place() {
        let mut result = samples::pass();
        result.contract = json!({
            "slo": {
                "objectives": [
                    { "metric": "ttft", "percentile": 95, "at_most": "1s" },
                    { "metric": "ttft", "percentile": 99.9, "at_most": "2s" },
                    { "metric": "attainment", "at_least": "95%" },
                ],
                "resources": [
                    { "resource": "kv_cache_usage", "at_most": "90%" },
                    { "resource": "preemptions", "statistic": "last", "at_most": 1 },
                ],
                "at_load": "20/s",
            },
            "stability": [{ "name": "restart_count" }, { "name": "oom_count" }],
            "baseline": { "latency": [{ "metric": "e2e", "percentile": 99, "margin": "5%" }] },
        });
        let weakened = vec![Weakening { pointer: "/slo/objectives/0/at_most".to_owned(), what: String::new() }];
        result.comparison = Some(Comparison { weakened, ..Comparison::default() });
        for (check, place) in [
            ("ttft_p95", "/slo/objectives/0"),
            ("ttft_p99.9", "/slo/objectives/1"),
            ("attainment", "/slo/objectives/2"),
            ("kv_cache_usage_max", "/slo/resources/0"),
            ("preemptions_last", "/slo/resources/1"),
            ("preemptions_max", "/endpoint/launch"),
            ("oom_count", "/stability/1"),
            ("endpoint_process", "/endpoint/launch"),
            ("capacity", "/slo/capacity"),
            ("all_limits", "/slo/objectives"),
            ("capacity_change", "/baseline/margin"),
            ("e2e_p99_change", "/baseline/latency/0"),
            ("contract_change", "/slo/objectives/0/at_most"),
            ("baseline", "/baseline"),
            ("completeness", "/traffic"),
            ("endpoint", "/endpoint"),
        ] {
            assert_eq!(pointer(&result, check), place, "{check}");
        }
        assert_eq!(of_verdict(&result), "/slo/at_load");
    }
}
