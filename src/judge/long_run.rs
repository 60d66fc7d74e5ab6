//! What the trials show of the steady state: exact counts divided by how much the requests resemble each other (method,
//! section 7).

use super::objective::{Finding, Scene, pile_up, share_text};
use super::this_run::observed_text;
use super::{Check, Reason, Status};
use crate::contract::Objective;
use crate::record::{StepRecord, TrialRecord};
use crate::search::{Pooled, long_run};
use crate::stats::{Decision, share_estimate};
use crate::units::{Share, format_nanos};

/// A warm-up must last so many median end-to-end times (method, section 4).
const WARM_UP: f64 = 3.0;

/// The row of one objective. `trial` is the one that speaks where there are too few for a look.
pub(super) fn check(
    scene: &Scene<'_>,
    index: usize,
    objective: &Objective,
    trial: &TrialRecord,
    blank: Check,
) -> Check {
    let evidence = &scene.contract.evidence;
    let found = long_run(index, objective, &scene.trials, &evidence.looks, scene.slo().objectives.len());
    let finding = scene.missing(index, objective).unwrap_or_else(|| match &found {
        Some(found) => decide(scene, objective, found),
        None if scene.trials.is_empty() => scene.spoilt().unwrap_or_else(|| scene.too_few_trials()),
        None => Finding::unknown(Reason::TooFewSamples, "20 requests in the window would show how much they differ"),
    });
    let check = Check { status: finding.status, reason: finding.reason, note: finding.note, ..blank };
    let Some(found) = found else {
        let observed = trial.objectives.get(index).and_then(|own| observed_text(objective, trial, own));
        return Check { observed, trials: u32::try_from(scene.trials.len()).ok(), ..check };
    };
    let estimate = share_estimate(found.effective, found.alpha);
    Check {
        method: Some("exact binomial on effective counts".to_owned()),
        observed: Some(format!("{} break it", share_text(found.violations as f64 / found.n.max(1) as f64))),
        interval: estimate.map(|e| [share_text(e.lower), share_text(e.upper + 1e-6)]),
        confidence: Share::from_ppm((1e6 * (1.0 - found.alpha)).round() as u32),
        samples: Some(found.n),
        trials: Some(found.trials),
        ..check
    }
}

fn decide(scene: &Scene<'_>, objective: &Objective, found: &Pooled) -> Finding {
    let inflation = found.n as f64 / found.effective.n.max(f64::MIN_POSITIVE);
    let worth = format!(
        "{} requests tell as much as {:.0} independent ones (inflation {inflation:.1}); {} may break it",
        found.n,
        found.effective.n,
        objective.budget()
    );
    match found.decision {
        Decision::Fail => Finding { status: Status::Fail, reason: Reason::Broken, note: Some(worth) },
        Decision::Undecided if found.effective.x <= objective.budget().fraction() * found.effective.n => {
            Finding::unknown(Reason::TooFewSamples, worth)
        }
        Decision::Undecided => Finding::unknown(Reason::IntervalStraddlesLimit, worth),
        Decision::Pass => {
            forbidden(scene).unwrap_or(Finding { status: Status::Pass, reason: Reason::Held, note: Some(worth) })
        }
    }
}

/// What forbids to speak of a steady state: requests that pile up, or a warm-up that ended before there was one.
fn forbidden(scene: &Scene<'_>) -> Option<Finding> {
    if let Some(drift) = scene.trials.iter().filter_map(|trial| trial.drift).find(|drift| drift.drifting) {
        return Some(Finding::unknown(Reason::NotStationary, pile_up(&drift)));
    }
    let step = scene.result.steps.iter().find(|step| step.load == scene.slo().at)?;
    let (warm_up, needed) = warm_up_too_short(step)?;
    Some(Finding::unknown(
        Reason::NotStationary,
        format!(
            "the warm-up of {} is shorter than {WARM_UP} times the median E2E, {}",
            format_nanos(warm_up),
            format_nanos(needed)
        ),
    ))
}

/// The warm-up of a step and the one that it needs, three median end-to-end times, in nanoseconds, where it is too short for a
/// steady state.
pub fn warm_up_too_short(step: &StepRecord) -> Option<(u64, u64)> {
    let rate = step.load.rate()?.per_second();
    let warm_up = step.told().first()?.planned?.warm_up as f64 / rate * 1e9;
    let needed = step.metrics.get("e2e")?.p50_ns? as f64 * WARM_UP;
    (warm_up < needed).then_some((warm_up as u64, needed as u64))
}
