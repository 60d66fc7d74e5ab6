//! From the requests of a trial to its record, and from the trials of a step to its record.

mod accumulator;
mod gaps;
mod health;
mod hopeless;
mod quantiles;
mod resources;
mod stand;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use accumulator::Completion;
pub use accumulator::TrialAccumulator;
use gaps::GapHistogram;
pub use hopeless::Hopeless;
pub use quantiles::quantiles;
use quantiles::{InOrder, evidence, metric_quantiles, of_ratio};
pub use resources::resource_records;
use resources::step_resources;

use super::grade::Measure;
use super::model::{
    DriftRecord, HealthRecord, Quantiles, RatioQuantiles, ResourceRecord, StepRecord, TrialRecord, WindowCounts,
};

use super::told::told;
use crate::contract::{MetricUnit, RequestMetric, Slo};
use crate::observe::Outcome;
use crate::schedule::{TrialCounts, segment_nanos};
use crate::stats::drift;
use crate::units::{Digest, Load, Share};

/// What is known of a trial besides its requests.
#[derive(Debug, Clone)]
pub struct TrialFacts {
    /// The trial's number in the run, from 0.
    pub trial: u32,
    /// The seed of its schedule and case order.
    pub seed: u64,
    /// What was asked of the endpoint.
    pub load: Load,
    /// SHA-256 over its schedule's offsets, or over its concurrency plan.
    pub schedule_digest: Digest,
    /// Planned arrivals; `None` in a closed loop.
    pub planned: Option<TrialCounts>,
    /// Length of the window: `D(N)` in an open loop.
    pub window_ns: u64,
    /// Requests planned in the window; those that were never recorded are undecided. `None` in a closed loop, where only
    /// what was recorded exists.
    pub scheduled_in_window: Option<u64>,
    /// Whether the whole window was measured.
    pub complete: bool,
    /// Ended early because it could not hold any more.
    pub given_up: bool,
    /// From its start to the end of its last request.
    pub took_ns: u64,
    /// What was sampled while the window lasted.
    pub resources: Vec<ResourceRecord>,
    /// Stability rows that broke while it ran.
    pub unstable: Vec<String>,
    /// What the driver measured of itself; the rest is computed from the requests.
    pub health: HealthRecord,
}

impl TrialFacts {
    /// The facts that a stored trial at this load was summarised from.
    pub fn of(record: &TrialRecord, load: Load) -> Self {
        Self {
            trial: record.trial,
            seed: record.seed,
            load,
            schedule_digest: record.schedule_digest.clone(),
            planned: record.planned,
            window_ns: record.window_ns,
            scheduled_in_window: record.planned.map(|counts| counts.window),
            complete: record.complete,
            given_up: record.given_up,
            took_ns: record.took_ns,
            resources: record.resources.clone(),
            unstable: record.unstable.clone(),
            health: record.health.clone(),
        }
    }
}

/// The record of one trial: counts, evidence for each objective, drift, and whether the trial is evidence at all.
pub fn summarise_trial(slo: &Slo, facts: &TrialFacts, accumulator: &TrialAccumulator) -> TrialRecord {
    let rows = &accumulator.window;
    let scheduled = facts.scheduled_in_window.unwrap_or(0).max(rows.len() as u64);
    let unrecorded = scheduled - rows.len() as u64;
    let window = InOrder::of(accumulator, facts.load);
    let (metrics, ratios) = metrics(&[accumulator], unrecorded);
    let mut record = TrialRecord {
        trial: facts.trial,
        seed: facts.seed,
        schedule_digest: facts.schedule_digest.clone(),
        planned: facts.planned,
        window_ns: facts.window_ns,
        complete: facts.complete,
        given_up: facts.given_up,
        took_ns: facts.took_ns,
        window: window_counts(scheduled, accumulator),
        objectives: slo.objectives.iter().map(|o| evidence(o, &slo.request, &window, unrecorded)).collect(),
        headroom: None,
        held: None,
        drift: drift_record(facts.load, &window),
        metrics,
        ratios,
        resources: facts.resources.clone(),
        unstable: facts.unstable.clone(),
        health: health::health(slo, facts, accumulator),
    };
    settle(slo, &mut record);
    record
}

/// Fills in what follows from the rest of a trial's record: its headroom, and whether it held.
pub fn settle(slo: &Slo, record: &mut TrialRecord) {
    record.headroom = stand::headroom(slo, record);
    record.held = stand::held(slo, record);
    if record.health.beyond_audit && record.held == Some(false) {
        // The generator itself may have been late with what it sent and read, and nothing else have broken the limit.
        record.health.faults.push("it did not hold, above the rate to which the generator was audited".to_owned());
        record.held = None;
    }
}

fn window_counts(scheduled: u64, accumulator: &TrialAccumulator) -> WindowCounts {
    let rows = &accumulator.window;
    let decided = rows.iter().filter(|row| row.outcome != Outcome::Cancelled).count() as u64;
    let all_known = decided == scheduled && rows.iter().all(|row| row.good().is_some());
    let tally = &accumulator.tally;
    WindowCounts {
        scheduled,
        decided,
        good: all_known.then(|| rows.iter().filter(|row| row.good() == Some(true)).count() as u64),
        outcomes: tally.outcomes.clone(),
        statuses: tally.statuses.clone(),
        truncated: tally.truncated,
        answerless: tally.answerless,
        warnings: tally.warnings.clone(),
        input_tokens: tally.input_tokens.total(),
        output_tokens: tally.output_tokens.total(),
    }
}

/// Nothing is scheduled in a closed loop, so nothing can pile up there.
fn drift_record(load: Load, window: &InOrder<'_>) -> Option<DriftRecord> {
    let rate = load.rate()?.per_second();
    drift(&window.arrivals, &window.in_flight, rate).map(|drift| DriftRecord {
        slope_per_s: drift.slope_per_s,
        t: drift.t,
        growth: drift.growth,
        drifting: drift.drifting,
    })
}

/// The record of one step. Its figures pool the requests of the trials that speak for it. Per-second
/// figures need whole windows, and shares need every request decided.
pub fn summarise_step(
    load: Load,
    trials: &[(TrialRecord, TrialAccumulator)],
    not_measured: Option<String>,
) -> StepRecord {
    let pool = told(trials, |(trial, _)| trial);
    let totals = Totals::of(load, &pool);
    let unrecorded = pool.iter().map(|(trial, requests)| trial.window.scheduled - requests.window.len() as u64).sum();
    let requests: Vec<&TrialAccumulator> = pool.iter().map(|(_, requests)| requests).collect();
    let (metrics, ratios) = metrics(&requests, unrecorded);
    StepRecord {
        load,
        offered: load.rate().and_then(|_| totals.per_second(totals.scheduled)),
        achieved: totals.measured_per_second(Some(totals.sent)),
        completed: totals.measured_per_second(Some(totals.completed)),
        goodput: totals.measured_per_second(totals.good),
        attainment: totals.good.and_then(|good| Share::of(good, totals.scheduled)),
        success_rate: totals.ok.and_then(|ok| Share::of(ok, totals.scheduled)),
        input_tokens_per_second: totals.measured_per_second(totals.input_tokens),
        output_tokens_per_second: totals.measured_per_second(totals.output_tokens),
        reasoning_share: totals.reasoning_share,
        metrics,
        ratios,
        resources: step_resources(&pool),
        trials: trials.iter().map(|(trial, _)| trial.clone()).collect(),
        not_measured,
    }
}

/// Sums over the trials of a step; `None` where one of them does not know.
struct Totals {
    window_s: f64,
    whole_windows: bool,
    scheduled: u64,
    sent: u64,
    completed: u64,
    ok: Option<u64>,
    good: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    reasoning_share: Option<Share>,
}

impl Totals {
    fn of(load: Load, pool: &[&(TrialRecord, TrialAccumulator)]) -> Self {
        let sum = |count: fn(&TrialRecord) -> Option<u64>| pool.iter().map(|(trial, _)| count(trial)).sum();
        let each = |count: &dyn Fn(&TrialRecord, &TrialAccumulator) -> u64| {
            pool.iter().map(|(trial, accumulator)| count(trial, accumulator)).sum()
        };
        let completed: Vec<&Completion> =
            pool.iter().flat_map(|(trial, accumulator)| completed_in_window(load, trial, accumulator)).collect();
        // Without a reply there is no count of tokens, not a count of none.
        let tokens = |count: fn(&Completion) -> Option<u64>| {
            completed.iter().map(|reply| count(reply)).sum::<Option<u64>>().filter(|_| !completed.is_empty())
        };
        Self {
            window_s: pool.iter().map(|(trial, _)| trial.window_ns as f64 / 1e9).sum(),
            whole_windows: !pool.is_empty() && pool.iter().all(|(trial, _)| trial.complete),
            scheduled: each(&|trial, _| trial.window.scheduled),
            sent: each(&|_, accumulator| accumulator.window.iter().filter_map(|row| row.send_lag()).count() as u64),
            completed: completed.len() as u64,
            ok: sum(|trial| {
                let decided = trial.window.decided == trial.window.scheduled;
                decided.then(|| trial.window.outcomes.get(&Outcome::Ok).copied().unwrap_or(0))
            }),
            good: sum(|trial| trial.window.good),
            input_tokens: tokens(Completion::input_tokens),
            output_tokens: tokens(Completion::output_tokens),
            reasoning_share: reasoning_share(&completed),
        }
    }

    fn per_second(&self, count: u64) -> Option<f64> {
        (self.window_s > 0.0).then(|| count as f64 / self.window_s)
    }

    fn measured_per_second(&self, count: Option<u64>) -> Option<f64> {
        count.filter(|_| self.whole_windows).and_then(|count| self.per_second(count))
    }
}

/// Replies to requests of any segment that ended `ok` while the window lasted, so that a server that falls behind its load
/// shows it.
fn completed_in_window<'a>(
    load: Load,
    trial: &TrialRecord,
    accumulator: &'a TrialAccumulator,
) -> impl Iterator<Item = &'a Completion> + use<'a> {
    // A closed loop's window begins, as far as the requests can tell, when the first client became free in it.
    let start = match (load.rate(), trial.planned) {
        (Some(rate), Some(planned)) => Some(segment_nanos(planned.warm_up, rate)),
        _ => accumulator.window.iter().map(|row| row.begins_ns).min(),
    };
    let window = start.map_or(0..0, |start| start..start.saturating_add(trial.window_ns));
    accumulator.completions.iter().filter(move |reply| window.contains(&reply.at_ns))
}

/// Reasoning tokens over all output tokens, of the replies whose server counts both. A server may count the reasoning of some
/// replies alone; but where even the output of one is not counted, no share is known.
fn reasoning_share(completed: &[&Completion]) -> Option<Share> {
    let (mut reasoning, mut all) = (0u64, 0u64);
    for reply in completed {
        let output = reply.output_tokens()?;
        if let Some(tokens) = reply.reasoning_tokens() {
            reasoning = reasoning.saturating_add(tokens);
            all = all.saturating_add(output);
        }
    }
    Share::of(reasoning, all)
}

/// Quantiles by metric of the requests of one trial or of several; `unrecorded` more were scheduled.
fn metrics(
    pool: &[&TrialAccumulator],
    unrecorded: u64,
) -> (BTreeMap<String, Quantiles>, BTreeMap<String, RatioQuantiles>) {
    let rows = || pool.iter().flat_map(|accumulator| &accumulator.window);
    let (mut metrics, mut ratios) = (BTreeMap::new(), BTreeMap::new());
    for metric in RequestMetric::ALL.into_iter().filter(|metric| applies(*metric, pool)) {
        let Some(found) = metric_quantiles(rows(), metric, unrecorded) else { continue };
        match metric.unit() {
            MetricUnit::Nanoseconds => {
                metrics.insert(metric.name().to_owned(), found);
            }
            MetricUnit::PartsPerMillion => {
                ratios.insert(metric.name().to_owned(), of_ratio(found));
            }
        }
    }
    let mut gaps = GapHistogram::default();
    pool.iter().for_each(|accumulator| gaps.merge(&accumulator.gaps));
    let lags = rows().filter_map(|row| row.send_lag()).collect();
    for (name, found) in [("inter_chunk", gaps.quantiles()), ("send_lag", quantiles(lags, 0))] {
        if let Some(found) = found {
            metrics.insert(name.to_owned(), found);
        }
    }
    (metrics, ratios)
}

/// Whether a metric says something about these requests: a first answer only where reasoning came before one, and what
/// belongs to sound or to streams only where a reply has it. Failed requests alone do not tell.
fn applies(metric: RequestMetric, pool: &[&TrialAccumulator]) -> bool {
    let mut rows = pool.iter().flat_map(|accumulator| &accumulator.window);
    match metric {
        RequestMetric::Ttft | RequestMetric::Tpot | RequestMetric::E2e => true,
        RequestMetric::FirstAnswer => rows.any(|row| row.measure(metric) != row.measure(RequestMetric::Ttft)),
        RequestMetric::FirstAudio | RequestMetric::Itl | RequestMetric::Rtf | RequestMetric::Underrun => {
            rows.any(|row| matches!(row.measure(metric), Measure::Measured(_)))
        }
    }
}
