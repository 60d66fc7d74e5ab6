//! The row about the load generator: whether it kept its plan where the objectives are judged.

use super::absence::absence;
use super::{Check, Reason, Status, is_void, judged_trial, plain_check};
use crate::contract::Slo;
use crate::record::{HealthRecord, RunResult, StepRecord};
use crate::units::format_nanos;

/// Present once any step was measured; judged at the load that must hold.
pub(super) fn check(slo: &Slo, result: &RunResult) -> Option<Check> {
    if result.steps.iter().all(|step| step.trials.is_empty()) {
        return None;
    }
    let step = result.steps.iter().find(|step| step.load == slo.at);
    let judged = step.and_then(|step| Some((step, judged_trial(step)?)));
    // Where nothing was due, nothing shows that the plan would have been kept.
    let Some((step, trial)) = judged.filter(|(_, trial)| is_void(trial) || trial.health.due > 0) else {
        let absent = absence(result);
        let reason = absent.as_ref().map_or(Reason::NotMeasured, |absent| absent.reason);
        let note = absent.map(|absent| absent.note);
        return Some(Check { note, ..plain_check("load_generator", Status::Unknown, reason) });
    };
    let (status, reason, note) = if is_void(trial) {
        (Status::Unknown, Reason::GeneratorSaturated, Some(trial.health.faults.join("; ")))
    } else {
        (Status::Pass, Reason::Held, repeated(step))
    };
    Some(Check {
        limit: trial.health.dispatch_lag_limit_ns.map(|limit| format!("dispatch lag p99 ≤ {}", format_nanos(limit))),
        observed: Some(observed(&trial.health)),
        samples: Some(trial.health.due),
        trials: u32::try_from(step.trials.len()).ok(),
        note,
        ..plain_check("load_generator", status, reason)
    })
}

fn observed(health: &HealthRecord) -> String {
    let lag = match (health.dispatch_lag_limit_ns, health.dispatch_lag, health.runtime_lag) {
        (Some(_), Some(lag), _) => lag.p99_ns.map(|p99| format!("dispatch lag p99 {}", format_nanos(p99))),
        (None, _, Some(lag)) => lag.p99_ns.map(|p99| format!("runtime lag p99 {}", format_nanos(p99))),
        _ => None,
    };
    let sent = format!("sent {} of {}", health.sent, health.due);
    lag.map_or(sent.clone(), |lag| format!("{lag}, {sent}"))
}

/// Says that void trials were repeated.
fn repeated(step: &StepRecord) -> Option<String> {
    let void: Vec<String> =
        step.trials.iter().filter(|trial| is_void(trial)).flat_map(|trial| trial.health.faults.clone()).collect();
    (!void.is_empty()).then(|| format!("judged on a repeated trial, because before {}", void.join("; ")))
}
