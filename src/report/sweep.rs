//! The five dimensions of every step, as columns and remarks that every format can show.

use std::collections::BTreeSet;

use super::figures::{self, Percentile, UNMEASURED, check_name, grouped, per_second, quantile, share};
use super::layout::Column;
use crate::judge::warm_up_too_short;
use crate::observe::Outcome;
use crate::record::{RunResult, StepRecord};
use crate::units::{Load, Share, format_nanos};

/// Marks the load that must hold.
pub(super) const MARK: &str = "▸";

/// A metric of requests: its name in records, the one above its columns, and the percentiles that are shown where there is
/// room, besides those that an objective asks about.
type Shown = (&'static str, &'static str, &'static [Percentile]);

/// The metrics in the order of their columns.
const METRICS: [Shown; 8] = [
    ("ttft", "TTFT", &[Percentile::P50, Percentile::P95, Percentile::P99]),
    ("first_answer", "first answer", &[Percentile::P50, Percentile::P95]),
    ("first_audio", "first audio", &[Percentile::P50, Percentile::P95]),
    ("tpot", "TPOT", &[Percentile::P50, Percentile::P99]),
    ("itl", "longest gap", &[]),
    ("e2e", "E2E", &[Percentile::P50, Percentile::P99]),
    ("rtf", "RTF", &[Percentile::P50, Percentile::P95]),
    ("underrun", "underrun", &[Percentile::P95]),
];

/// The columns, ranked by what can be left out first: a percentile that no objective asks about goes before one that
/// does, and of the rates the one that the others imply.
pub(super) fn columns(result: &RunResult) -> Vec<Column> {
    let steps = &result.steps;
    let must_hold = figures::load_that_must_hold(result);
    let mut columns = vec![Column::words("load", steps.iter().map(|step| load(step.load, must_hold)).collect())];
    for shown in METRICS {
        columns.extend(metric_columns(result, shown));
    }
    let closed = figures::is_closed_loop(result);
    let rate = |group, name: &str, rank, value: fn(&StepRecord) -> Option<f64>| Column {
        group,
        ..Column::numbers(name, steps.iter().map(|step| per_second(value(step))).collect()).ranked(rank)
    };
    columns.push(rate("completed", "req/s", if closed { 0 } else { 6 }, |step| step.completed));
    if steps.iter().any(|step| step.output_tokens_per_second.is_some()) || is_checked(result, "tpot") {
        columns.push(rate("output", "tok/s", 4, |step| step.output_tokens_per_second));
    }
    columns.push(rate("goodput", "req/s", 0, |step| step.goodput));
    let part = |group, rank, value: fn(&StepRecord) -> Option<Share>| Column {
        group,
        ..Column::numbers("", steps.iter().map(|step| share(value(step))).collect()).ranked(rank)
    };
    columns.push(part("attainment", if closed { 6 } else { 2 }, |step| step.attainment));
    columns.push(part("success", 0, |step| step.success_rate));
    columns
}

fn load(load: Load, must_hold: Option<Load>) -> String {
    match must_hold {
        Some(must_hold) if must_hold == load => format!("{MARK} {load}"),
        Some(_) => format!("  {load}"),
        None => load.to_string(),
    }
}

/// The columns of one metric. Every run has TTFT and E2E; another metric has columns where a step has it or a check asks about
/// it. The longest gap says little of a run that makes no promise about it, so only what is asked about is shown.
fn metric_columns(result: &RunResult, (metric, group, shown): Shown) -> Vec<Column> {
    let is_of_every_run = ["ttft", "e2e"].contains(&metric);
    let has_one = result.steps.iter().any(|step| figures::has(step, metric));
    // A first answer that is nowhere apart from the first output is told by TTFT.
    let told_elsewhere = metric == "first_answer" || !is_checked(result, metric);
    if !is_of_every_run && !has_one && told_elsewhere {
        return Vec::new();
    }
    let asked = asked_about(result, metric);
    let mut percentiles: BTreeSet<Percentile> = shown.iter().copied().collect();
    percentiles.extend(&asked);
    let main = asked.last().copied().or_else(|| percentiles.last().copied());
    let column = |percentile: Percentile| {
        let rank = match (Some(percentile) == main, percentile, metric) {
            (true, ..) if is_of_every_run => 0,
            (true, ..) => 3,
            (_, Percentile::P50, "ttft") => 5,
            (_, Percentile::P50, _) => 8,
            _ => 7,
        };
        let cells = result.steps.iter().map(|step| quantile(step, metric, percentile)).collect();
        Column { group, ..Column::numbers(percentile.name(), cells).ranked(rank) }
    };
    percentiles.into_iter().map(column).collect()
}

/// The percentiles of a metric that the contract has objectives for.
fn asked_about(result: &RunResult, metric: &str) -> BTreeSet<Percentile> {
    let ids: BTreeSet<&str> = figures::trials(result)
        .flat_map(|(_, trial)| trial.objectives.iter().map(|objective| objective.id.as_str()))
        .collect();
    Percentile::ALL
        .into_iter()
        .filter(|percentile| ids.contains(format!("{metric}_{}", percentile.name()).as_str()))
        .collect()
}

/// Whether a check of the verdict is about a metric, whatever the percentile.
fn is_checked(result: &RunResult, metric: &str) -> bool {
    let checks = result.verdict.iter().flat_map(|verdict| &verdict.checks);
    checks.into_iter().any(|check| check.id.strip_prefix(metric).is_some_and(|rest| rest.starts_with("_p")))
}

/// What a reader must know about a step besides its figures.
pub(super) fn remarks(step: &StepRecord) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(reason) = &step.not_measured {
        remarks.push(format!("not measured: {reason}"));
    }
    let told = step.told();
    let windows = || told.iter().map(|trial| &trial.window);
    let scheduled: u64 = windows().map(|window| window.scheduled).sum();
    if told.iter().any(|trial| !trial.complete) {
        let decided: u64 = windows().map(|window| window.decided).sum();
        remarks.push(format!(
            "the window was cut short: {} of {} requests decided",
            grouped(decided),
            grouped(scheduled)
        ));
    }
    let outcomes = figures::tally(windows().flat_map(|window| &window.outcomes));
    let failed: Vec<_> = outcomes.iter().filter(|(outcome, _)| *outcome != Outcome::Ok).collect();
    if !failed.is_empty() {
        let total: u64 = failed.iter().map(|(_, count)| count).sum();
        let texts: Vec<_> = failed.iter().map(|(o, count)| format!("{} {}", o.name(), grouped(*count))).collect();
        remarks.push(format!(
            "{} of {} requests did not end ok: {}",
            grouped(total),
            grouped(scheduled),
            texts.join(", ")
        ));
    }
    for (name, count) in [
        ("cut by a limit or filter (truncated)", windows().map(|window| window.truncated).sum::<u64>()),
        ("without an answer (answerless)", windows().map(|window| window.answerless).sum()),
    ] {
        if count > 0 {
            remarks.push(format!("{} of {} replies {name}", grouped(count), grouped(scheduled)));
        }
    }
    remarks.extend(step.reasoning_share.and_then(reasoning));
    // Where requests pile up no warm-up is long enough, and that is told below.
    let is_steady = !told.iter().any(|trial| trial.drift.is_some_and(|drift| drift.drifting));
    remarks.extend(warm_up_too_short(step).filter(|_| is_steady).map(|(warm_up, needed)| {
        let (warm_up, needed) = (format_nanos(warm_up), format_nanos(needed));
        format!("the warm-up of {warm_up} is shorter than three median E2E ({needed}): the window may begin too fast")
    }));
    remarks.extend(
        told.iter()
            .filter_map(|trial| trial.drift)
            .filter(|drift| drift.drifting)
            .map(|drift| format!("requests pile up: {:+.2} in flight per second", drift.slope_per_s)),
    );
    remarks.extend(told.iter().flat_map(|trial| &trial.health.faults).map(|fault| format!("load generator: {fault}")));
    let spoilt = step.spoilt();
    let others = step.trials.iter().filter(|trial| trial.is_void() && !told.contains(trial));
    remarks.extend(others.map(|trial| {
        let what = if spoilt.contains(&trial) { "a trial was void" } else { "a trial was void and was repeated" };
        format!("{what}: {}", trial.health.faults.join("; "))
    }));
    remarks
}

/// How much of the output was reasoning, where any was.
fn reasoning(share: Share) -> Option<String> {
    let percent = match share.ppm() {
        0 => return None,
        1..10_000 => "less than 1%".to_owned(),
        ppm => format!("{}%", ppm / 10_000),
    };
    Some(format!("reasoning is {percent} of the output tokens"))
}

/// The evidence behind each objective at each load: load, objective, violations, requests, quantile and its bounds.
pub(super) fn evidence(result: &RunResult) -> Vec<Column> {
    let mut columns = vec![
        Column::words("load", Vec::new()),
        Column::words("objective", Vec::new()),
        Column::numbers("violations", Vec::new()),
        Column::numbers("undecided", Vec::new()),
        Column::numbers("unmeasured", Vec::new()),
        Column::numbers("requests", Vec::new()),
        Column::numbers("quantile", Vec::new()),
        Column::words("bounds at 95%", Vec::new()),
    ];
    for (load, trial) in figures::trials(result) {
        for objective in &trial.objectives {
            let shown = |value: Option<u64>| Some(objective.unit?.show(value?));
            let bounds = match (shown(objective.lower), shown(objective.upper)) {
                (None, None) => UNMEASURED.to_owned(),
                (lower, upper) => {
                    format!("{} … {}", lower.as_deref().unwrap_or(UNMEASURED), upper.as_deref().unwrap_or(UNMEASURED))
                }
            };
            let row = [
                load.to_string(),
                check_name(&objective.id),
                grouped(objective.violations),
                grouped(objective.undecided),
                grouped(objective.unmeasured),
                grouped(objective.n),
                shown(objective.quantile).unwrap_or_else(|| UNMEASURED.to_owned()),
                bounds,
            ];
            for (column, cell) in columns.iter_mut().zip(row) {
                column.cells.push(cell);
            }
        }
    }
    columns
}
