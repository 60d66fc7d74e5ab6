//! Results beyond belief: figures that no endpoint could yield say that something else answered.

use super::{Check, Reason, Status, judged_trial, plain_check};
use crate::contract::{Contract, Objective, RequestMetric};
use crate::record::RunResult;
use crate::units::format_nanos;

/// No reply comes over a socket in less time.
const FASTEST_REPLY_NS: u64 = 10_000;
/// No model writes a token in less time; a reply that was held back and then let go in two pieces seems to.
const FASTEST_TOKEN_NS: u64 = 10_000;

/// Present only when the figures at the load that must hold cannot be true.
pub(super) fn check(contract: &Contract, result: &RunResult) -> Option<Check> {
    let step = result.steps.iter().find(|step| step.load == contract.slo.at)?;
    judged_trial(step).filter(|trial| !trial.is_void())?;
    let median = |metric: RequestMetric| step.metrics.get(metric.name()).and_then(|found| found.p50_ns);
    let too_fast = |metric, fastest| median(metric).filter(|found| *found < fastest).map(|found| (metric, found));
    let limited = |metric| {
        let objectives = contract.slo.objectives.iter().filter_map(Objective::limit).map(|(metric, _)| metric);
        contract.slo.request.set().map(|(metric, _)| metric).chain(objectives).any(|limited| limited == metric)
    };
    let (metric, found) = [RequestMetric::Ttft, RequestMetric::E2e]
        .into_iter()
        .find_map(|metric| too_fast(metric, FASTEST_REPLY_NS))
        .or_else(|| too_fast(RequestMetric::Tpot, FASTEST_TOKEN_NS).filter(|_| limited(RequestMetric::Tpot)))?;
    let what = if metric == RequestMetric::Tpot { "a token can be made" } else { "a reply can come" };
    let note =
        format!("half of the requests have a {} of {} or less, faster than {what}", metric.name(), format_nanos(found));
    Some(Check { note: Some(note), ..plain_check("plausibility", Status::Unknown, Reason::ImplausibleResult) })
}
