//! Numbers and names as people read them, alike in every format. What was not measured is a dash, never 0.

use crate::record::{Quantiles, RatioQuantiles, RunResult, StepRecord, TrialRecord};
use crate::units::{Load, Rate, Share, format_measured_ratio, format_nanos};

/// Stands for a number that was not measured.
pub(super) const UNMEASURED: &str = "—";

/// Stands for a quantile that falls among failed requests: longer than any wait.
pub(super) const UNBOUNDED: &str = "∞";

/// A percentile that results carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Percentile {
    /// The median.
    P50,
    /// The 90th.
    P90,
    /// The 95th.
    P95,
    /// The 99th.
    P99,
}

impl Percentile {
    /// All, ascending.
    pub(super) const ALL: [Self; 4] = [Self::P50, Self::P90, Self::P95, Self::P99];

    /// The name: `p95`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
        }
    }

    fn of(self, quantiles: &Quantiles) -> Option<u64> {
        match self {
            Self::P50 => quantiles.p50_ns,
            Self::P90 => quantiles.p90_ns,
            Self::P95 => quantiles.p95_ns,
            Self::P99 => quantiles.p99_ns,
        }
    }

    fn of_ratio(self, quantiles: &RatioQuantiles) -> Option<u64> {
        match self {
            Self::P50 => quantiles.p50_ppm,
            Self::P90 => quantiles.p90_ppm,
            Self::P95 => quantiles.p95_ppm,
            Self::P99 => quantiles.p99_ppm,
        }
    }
}

/// A quantile of a step's metric, a time or a ratio.
pub(super) fn quantile(step: &StepRecord, metric: &str, percentile: Percentile) -> String {
    let shown = |value: Option<u64>, show: fn(u64) -> String| value.map_or_else(|| UNBOUNDED.to_owned(), show);
    match (step.metrics.get(metric), step.ratios.get(metric)) {
        (Some(times), _) if times.count > 0 => shown(percentile.of(times), format_nanos),
        (_, Some(ratios)) if ratios.count > 0 => shown(percentile.of_ratio(ratios), format_measured_ratio),
        _ => UNMEASURED.to_owned(),
    }
}

/// Whether a step has quantiles of a metric.
pub(super) fn has(step: &StepRecord, metric: &str) -> bool {
    step.metrics.contains_key(metric) || step.ratios.contains_key(metric)
}

/// The largest finite value of a step's metric.
pub(super) fn largest(step: &StepRecord, metric: &str) -> String {
    let time = step.metrics.get(metric).and_then(|times| times.max_ns).map(format_nanos);
    let ratio = || step.ratios.get(metric).and_then(|ratios| ratios.max_ppm).map(format_measured_ratio);
    time.or_else(ratio).unwrap_or_else(|| UNMEASURED.to_owned())
}

/// A number per second, with three significant digits below a thousand.
pub(super) fn per_second(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() && value >= 999.5 => grouped(value.round() as u64),
        Some(value) if value.is_finite() && value >= 99.95 => format!("{value:.0}"),
        Some(value) if value.is_finite() && value >= 9.995 => format!("{value:.1}"),
        Some(value) if value.is_finite() && value > 0.0 => format!("{value:.2}"),
        Some(0.0) => "0".to_owned(),
        _ => UNMEASURED.to_owned(),
    }
}

/// A share in per cent with up to two decimals, rounded down so that 100 % means the whole and nothing else.
pub(super) fn share(value: Option<Share>) -> String {
    match value.map(Share::ppm) {
        None => UNMEASURED.to_owned(),
        Some(1_000_000) => "100%".to_owned(),
        Some(0) => "0%".to_owned(),
        Some(ppm @ 1..100) => format!("0.{ppm:04}%"),
        Some(ppm) => format!("{}.{:02}%", ppm / 10_000, ppm % 10_000 / 100),
    }
}

/// A count with its thousands set apart.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A planned time, to the second.
pub(super) fn long_time(nanos: u64) -> String {
    let seconds = nanos.div_ceil(1_000_000_000);
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest} s"),
        (0, _) => format!("{minutes} min {rest:02} s"),
        _ => format!("{hours} h {minutes:02} min"),
    }
}

/// The name of a check or objective as people say it: `TTFT P95` for `ttft_p95`. Names that are not this tool's own stay.
pub(super) fn check_name(id: &str) -> String {
    const METRICS: [(&str, &str); 8] = [
        ("ttft_p", "TTFT"),
        ("first_answer_p", "First answer"),
        ("first_audio_p", "First audio"),
        ("tpot_p", "TPOT"),
        ("itl_p", "Longest gap"),
        ("e2e_p", "E2E"),
        ("rtf_p", "RTF"),
        ("underrun_p", "Underrun"),
    ];
    for (prefix, metric) in METRICS {
        let Some(rest) = id.strip_prefix(prefix) else { continue };
        let (percent, change) = rest.strip_suffix("_change").map_or((rest, ""), |percent| (percent, " change"));
        if is_percent(percent) {
            return format!("{metric} P{percent}{change}");
        }
    }
    match id {
        "success_rate" => "success rate".to_owned(),
        "all_limits" => "all limits".to_owned(),
        "capacity_change" => "capacity change".to_owned(),
        "goodput_change" => "goodput change".to_owned(),
        "contract_change" => "contract change".to_owned(),
        other => other.to_owned(),
    }
}

fn is_percent(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// The load that must hold, by the contract that the result carries.
pub(super) fn load_that_must_hold(result: &RunResult) -> Option<Load> {
    let slo = result.contract.get("slo")?;
    if let Some(rate) = slo.get("at_load").and_then(|v| v.as_str()) {
        return Rate::parse(rate).ok().map(Load::RateMilli);
    }
    let clients = slo.get("at_concurrency").and_then(serde_json::Value::as_u64)?;
    u32::try_from(clients).ok().map(Load::Clients)
}

/// Whether the run's load was a number of clients.
pub(super) fn is_closed_loop(result: &RunResult) -> bool {
    result.steps.iter().any(|step| matches!(step.load, Load::Clients(_)))
}

/// All trials of the run, with the load of their step.
pub(super) fn trials(result: &RunResult) -> impl Iterator<Item = (Load, &TrialRecord)> {
    result.steps.iter().flat_map(|step| step.trials.iter().map(move |trial| (step.load, trial)))
}

/// Adds up what trials counted by name.
pub(super) fn tally<'a, K: Ord + Copy + 'a>(counts: impl Iterator<Item = (&'a K, &'a u64)>) -> Vec<(K, u64)> {
    let mut sums = std::collections::BTreeMap::new();
    for (key, count) in counts.filter(|(_, count)| **count > 0) {
        *sums.entry(*key).or_insert(0) += count;
    }
    sums.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_what_is_missing_is_a_dash() {
        for (value, text) in [
            (None, "—"),
            (Some(f64::NAN), "—"),
            (Some(f64::INFINITY), "—"),
            (Some(0.0), "0"),
            (Some(0.333), "0.33"),
            (Some(9.994), "9.99"),
            (Some(9.996), "10.0"),
            (Some(19.97), "20.0"),
            (Some(123.4), "123"),
            (Some(12_345.6), "12,346"),
        ] {
            assert_eq!(per_second(value), text);
        }
        for (ppm, text) in [
            (1_000_000, "100%"),
            (999_999, "99.99%"),
            (990_000, "99.00%"),
            (876_543, "87.65%"),
            (12, "0.0012%"),
            (0, "0%"),
        ] {
            assert_eq!(share(Share::from_ppm(ppm)), text);
        }
        assert_eq!(share(None), "—");
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1, 61_000_000_000, 3_661_000_000_000].map(long_time),
            ["0 s", "1 s", "1 min 01 s", "1 h 01 min"]
        );
    }

    #[test]
    fn only_names_of_this_tool_are_rewritten() {
        for (id, name) in [
            ("ttft_p95", "TTFT P95"),
            ("e2e_p99.9", "E2E P99.9"),
            ("first_answer_p99", "First answer P99"),
            ("first_audio_p95", "First audio P95"),
            ("itl_p95", "Longest gap P95"),
            ("rtf_p95", "RTF P95"),
            ("underrun_p95", "Underrun P95"),
            ("success_rate", "success rate"),
            ("all_limits", "all limits"),
            ("attainment", "attainment"),
            ("ttft_probe", "ttft_probe"),
            ("restart_count", "restart_count"),
        ] {
            assert_eq!(check_name(id), name);
        }
    }
}
