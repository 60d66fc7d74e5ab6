//! What was sampled while the trials ran, as a table that every format can show: blank where nothing was read, never 0.

use super::figures::{self, UNMEASURED};
use super::layout::Column;
use crate::contract::{ResourceKind, ResourceUnit};
use crate::record::{ResourceRecord, RunResult, StepRecord};

/// What the cells are.
pub(super) const LEGEND: &str = "resources over the window: median … highest level, or count per second";

/// The counters that make a hit rate together, and its name.
const HITS: &str = "prefix_cache_hits";
const QUERIES: &str = "prefix_cache_queries";
const HIT_RATE: &str = "prefix_cache_hit_rate";

/// One row per resource that has a number in some step, one column per step with a trial. Empty when there is none.
pub(super) fn columns(result: &RunResult) -> Vec<Column> {
    let steps: Vec<&StepRecord> = result.steps.iter().filter(|step| !step.resources.is_empty()).collect();
    let names = names(&steps);
    if names.is_empty() {
        return Vec::new();
    }
    let must_hold = figures::load_that_must_hold(result);
    let mut columns = vec![Column::words("resource", names.clone())];
    for (index, step) in steps.iter().enumerate() {
        let cells = names.iter().map(|name| cell(step, name)).collect();
        let rank = if Some(step.load) == must_hold { 0 } else { u8::try_from(index + 1).unwrap_or(u8::MAX) };
        columns.push(Column::numbers(&step.load.to_string(), cells).ranked(rank));
    }
    columns
}

/// The resources that no step has a number of, each with why.
pub(super) fn missing(result: &RunResult) -> Vec<String> {
    let steps: Vec<&StepRecord> = result.steps.iter().collect();
    let shown = names(&steps);
    let mut told: Vec<(&str, Option<&str>)> = Vec::new();
    for record in steps.iter().flat_map(|step| &step.resources) {
        if !shown.contains(&record.name) && !told.iter().any(|(name, _)| *name == record.name) {
            told.push((&record.name, record.failure.as_deref()));
        }
    }
    let line = |(name, why): (&str, Option<&str>)| format!("no sample of {name}: {}", why.unwrap_or("none was due"));
    told.into_iter().map(line).collect()
}

/// The resources with a number in some step, in the order in which they are sampled.
fn names(steps: &[&StepRecord]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for record in steps.iter().flat_map(|step| &step.resources).filter(|record| record.samples > 0) {
        if !names.contains(&record.name) {
            names.push(record.name.clone());
        }
    }
    if steps.iter().any(|step| hit_rate(step).is_some()) {
        names.push(HIT_RATE.to_owned());
    }
    names
}

fn cell(step: &StepRecord, name: &str) -> String {
    let found = of(step, name).and_then(|record| match record.kind {
        ResourceKind::Gauge => {
            let (median, max) = (record.median?, record.max?);
            let (median, max) = (record.unit.show(median), record.unit.show(max));
            Some(if median == max { max } else { format!("{median} … {max}") })
        }
        ResourceKind::Counter => record.rate_per_s.map(|rate| record.unit.show_rate(rate)),
    });
    let derived = || hit_rate(step).filter(|_| name == HIT_RATE).map(|rate| ResourceUnit::Ratio.show(rate));
    found.or_else(derived).unwrap_or_else(|| UNMEASURED.to_owned())
}

fn of<'a>(step: &'a StepRecord, name: &str) -> Option<&'a ResourceRecord> {
    step.resources.iter().find(|record| record.name == name)
}

/// Hits over queries, of the rises over the same windows; `None` where nothing was asked.
fn hit_rate(step: &StepRecord) -> Option<f64> {
    let rate = |name| of(step, name).and_then(|record| record.rate_per_s);
    let (hits, queries) = (rate(HITS)?, rate(QUERIES)?);
    (queries > 0.0).then(|| hits / queries)
}
