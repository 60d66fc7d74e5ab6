//! Goodput and latency at every load that both sides measured.

use super::Sides;
use super::change::{median, open, per_second, unknown};
use super::series::{compared, looks};
use crate::contract::{Contract, LatencyMargin, RequestMetric};
use crate::judge::Reason;
use crate::record::{Change, RecordStep, RecordTrial};
use crate::units::Share;

/// What is shown at the load that must hold where the rules do not name it, with the margin in parts per million.
const SHOWN: [(RequestMetric, u8, u32); 4] = [
    (RequestMetric::Ttft, 50, 100_000),
    (RequestMetric::Ttft, 99, 250_000),
    (RequestMetric::Tpot, 50, 100_000),
    (RequestMetric::E2e, 99, 250_000),
];

/// The rows of the goodput, by load.
pub(super) fn goodputs(sides: Sides<'_>) -> Vec<Change> {
    common(sides).map(|(base, head)| goodput(sides, base, head)).collect()
}

/// The rows of the latencies, by load: those that the rules name, and at the load that must hold a few more that both sides
/// measured.
pub(super) fn latencies(sides: Sides<'_>) -> Vec<Change> {
    let named = |of: &LatencyMargin| (of.metric, of.percentile);
    let shown = SHOWN.into_iter().filter_map(|(metric, percentile, margin)| {
        let is_named = sides.rules.latency.iter().any(|own| named(own) == (metric, percentile));
        let margin = Share::from_ppm(margin).filter(|_| !is_named)?;
        Some(LatencyMargin { metric, percentile, margin, gates: false })
    });
    let shown: Vec<LatencyMargin> = shown.collect();
    let rows = |(base, head): (&RecordStep, &RecordStep)| {
        let here = |of: &&LatencyMargin| {
            base.load == sides.contract.slo.at && [base, head].iter().all(|step| is_measured(step, of))
        };
        let all = sides.rules.latency.iter().chain(shown.iter().filter(here));
        all.map(|of| latency(sides, of, base, head)).collect::<Vec<_>>()
    };
    common(sides).flat_map(rows).collect()
}

/// The steps at every load that has trials on both sides.
fn common<'a>(sides: Sides<'a>) -> impl Iterator<Item = (&'a RecordStep, &'a RecordStep)> {
    let has_trials = |step: &&RecordStep| !step.trials.is_empty();
    sides.base.steps.iter().filter(has_trials).filter_map(move |base| {
        let head = sides.head.steps.iter().filter(has_trials).find(|head| head.load == base.load)?;
        Some((base, head))
    })
}

fn goodput(sides: Sides<'_>, base: &RecordStep, head: &RecordStep) -> Change {
    let change = open("goodput", Some(base.load), sides.rules.margin, base.load == sides.contract.slo.at);
    let shown =
        |step: &RecordStep| median(step.trials.iter().filter_map(RecordTrial::goodput).collect()).map(per_second);
    let change = Change { base: shown(base), head: shown(head), ..change };
    match (goodput_logs(base), goodput_logs(head)) {
        (Some(base), Some(head)) => compared(change, &base, &head, pair_looks(sides).as_deref()),
        _ => {
            let (reason, what) = missing(sides.contract);
            unknown(change, reason, format!("which requests were good is not known of all: {what}"))
        }
    }
}

/// The logarithm of the goodput of each trial; `None` when it is not known of one.
pub(super) fn goodput_logs(step: &RecordStep) -> Option<Vec<(u64, f64)>> {
    let of = |trial: &RecordTrial| {
        // No good request is taken for half of one, which has a logarithm.
        let good = (trial.good? as f64).max(0.5);
        Some((trial.seed, (good / (trial.window_ns as f64 / 1e9)).ln())).filter(|(_, log)| log.is_finite())
    };
    step.trials.iter().map(of).collect()
}

/// Why it is not known whether requests were good.
fn missing(contract: &Contract) -> (Reason, &'static str) {
    let needs = |what: fn(RequestMetric) -> bool| contract.slo.request.set().any(|(metric, _)| what(metric));
    if needs(RequestMetric::needs_usage) {
        (Reason::NoUsage, "a limit needs token counts that the server did not give")
    } else if needs(RequestMetric::needs_audio_duration) {
        (Reason::NoAudioDuration, "a limit needs the length of sound that is not known")
    } else {
        (Reason::NotMeasured, "a value is missing")
    }
}

fn pair_looks(sides: Sides<'_>) -> Option<Vec<u32>> {
    sides.is_paired.then(|| looks(sides.contract))
}

/// What a trial shows of a percentile.
enum Seen {
    Value(u64),
    /// It falls among requests that failed.
    Endless,
    Missing,
}

fn seen(trial: &RecordTrial, metric: RequestMetric, percentile: u8) -> Seen {
    let name = metric.name();
    let times = trial.metrics.get(name).map(|of| [of.p50_ns, of.p90_ns, of.p95_ns, of.p99_ns]);
    let ratios = || trial.ratios.get(name).map(|of| [of.p50_ppm, of.p90_ppm, of.p95_ppm, of.p99_ppm]);
    let Some([p50, p90, p95, p99]) = times.or_else(ratios) else { return Seen::Missing };
    let value = match percentile {
        50 => p50,
        90 => p90,
        95 => p95,
        99 => p99,
        _ => return Seen::Missing,
    };
    value.map_or(Seen::Endless, Seen::Value)
}

fn is_measured(step: &RecordStep, of: &LatencyMargin) -> bool {
    step.trials.iter().all(|trial| !matches!(seen(trial, of.metric, of.percentile), Seen::Missing))
}

fn latency(sides: Sides<'_>, of: &LatencyMargin, base: &RecordStep, head: &RecordStep) -> Change {
    let metric = format!("{}_p{}", of.metric.name(), of.percentile);
    let gates = of.gates && base.load == sides.contract.slo.at;
    let shown = |step: &RecordStep| shown(of, step);
    let change = Change { base: shown(base), head: shown(head), ..open(&metric, Some(base.load), of.margin, gates) };
    match (speed_logs(of, base), speed_logs(of, head)) {
        (Some(base), Some(head)) => compared(change, &base, &head, pair_looks(sides).as_deref()),
        _ => {
            let reason = match of.metric {
                metric if metric.needs_usage() => Reason::NoUsage,
                metric if metric.needs_audio_duration() => Reason::NoAudioDuration,
                _ => Reason::NotMeasured,
            };
            unknown(change, reason, format!("{} was not measured in every trial", of.metric.name()))
        }
    }
}

/// The logarithm of the speed, one over the time, of each trial; `None` when it is not known of one. A time without end has a
/// speed of nothing.
fn speed_logs(of: &LatencyMargin, step: &RecordStep) -> Option<Vec<(u64, f64)>> {
    let log = |trial: &RecordTrial| match seen(trial, of.metric, of.percentile) {
        Seen::Value(value) => Some((trial.seed, -(value.max(1) as f64).ln())),
        Seen::Endless => Some((trial.seed, f64::NEG_INFINITY)),
        Seen::Missing => None,
    };
    step.trials.iter().map(log).collect()
}

/// The median over the trials.
fn shown(of: &LatencyMargin, step: &RecordStep) -> Option<String> {
    let value = |trial: &RecordTrial| match seen(trial, of.metric, of.percentile) {
        Seen::Value(value) => Some(value as f64),
        Seen::Endless => Some(f64::INFINITY),
        Seen::Missing => None,
    };
    let middle = median(step.trials.iter().filter_map(value).collect())?;
    Some(if middle.is_finite() { of.metric.show(middle as u64) } else { "∞".to_owned() })
}
