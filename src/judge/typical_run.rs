//! What several schedules show of a typical run: a t interval on the log headroom of its trials (method, section 8).

use super::objective::{
    Finding, Scene, failed, failure_mix, failures_text, pile_up, share_text, too_few_for_drift, within_error,
};
use super::this_run::{needed_text, observed_text, zero_tolerance};
use super::{Check, Claim, Reason, Status, plain_check};
use crate::contract::{Objective, RequestMetric};
use crate::record::{ObjectiveEvidence, TrialRecord};
use crate::search::{Pooled, look_at, look_together, pooled};
use crate::stats::{Decision, HEADROOM_LIMIT, HeadroomLook, mean_interval, share_estimate, trials_to_decide};
use crate::units::Share;

/// The row about all limits on latency and attainment together.
pub(super) const TOGETHER: &str = "all_limits";

/// How rows on headroom are decided.
const METHOD: &str = "t interval on log headroom";

/// More trials are no advice that anybody can follow.
const MOST_ADVISED: u64 = 40;

/// The row of one objective. `trial` is the one that speaks where there are too few for a look.
pub(super) fn check(
    scene: &Scene<'_>,
    index: usize,
    objective: &Objective,
    trial: &TrialRecord,
    blank: Check,
) -> Check {
    if let Objective::SuccessRate { .. } = objective {
        return success(scene, index, objective, blank);
    }
    let looks = &scene.contract.evidence.looks;
    let own = look_at(index, &scene.trials, looks);
    let together = look_together(&scene.trials, looks).map(|look| look.decision);
    let missing = scene.missing(index, objective);
    let finding = missing.unwrap_or_else(|| match own {
        Some(own) => decide(scene, &own, together, objective),
        None => scene.spoilt().unwrap_or_else(|| scene.too_few_trials()),
    });
    let evidence = || scene.trials.iter().filter_map(|trial| trial.objectives.get(index));
    let check = Check { status: finding.status, reason: finding.reason, note: finding.note, ..blank };
    let Some(look) = own else {
        // Too few for a look: what is shown is what the last trial says.
        let last = trial.objectives.get(index);
        let observed = last.and_then(|found| observed_text(objective, trial, found));
        return Check { observed, samples: last.map(|found| found.n), trials: Some(1), ..check };
    };
    let seen: Vec<&ObjectiveEvidence> = evidence().take(look.trials as usize).collect();
    let (observed, interval) = shown(scene, objective, &look, &seen);
    Check {
        method: Some(METHOD.to_owned()),
        observed,
        interval,
        confidence: confidence(look.alpha),
        samples: Some(seen.iter().map(|e| e.n).sum()),
        trials: Some(look.trials),
        ..check
    }
}

/// The row about all limits together, where there is more than one: each may hold on its own while a typical run misses one or
/// the other.
pub(super) fn together(scene: &Scene<'_>) -> Option<Check> {
    let limits = scene.slo().objectives.iter().filter(|objective| !matches!(objective, Objective::SuccessRate { .. }));
    if limits.count() < 2 || scene.trials.is_empty() {
        return None;
    }
    let blank = Check {
        claim: Some(Claim::TypicalRun),
        limit: Some("≤ 1× every limit".to_owned()),
        ..plain_check(TOGETHER, Status::Unknown, Reason::NotMeasured)
    };
    let missing = scene.slo().objectives.iter().enumerate().find_map(|(index, of)| scene.missing(index, of));
    let look = look_together(&scene.trials, &scene.contract.evidence.looks);
    let finding = missing.unwrap_or_else(|| match look {
        Some(look) => conclude(scene, &look, look.decision, &scene.slo().objectives),
        None => scene.spoilt().unwrap_or_else(|| scene.too_few_trials()),
    });
    let check = Check { status: finding.status, reason: finding.reason, note: finding.note, ..blank };
    let Some(look) = look else { return Some(Check { trials: count(scene), ..check }) };
    let requests = scene.trials.iter().take(look.trials as usize).map(|trial| trial.window.scheduled);
    Some(Check {
        method: Some(METHOD.to_owned()),
        observed: Some(times_limit(look.estimate.point)),
        interval: Some([times_limit(look.estimate.upper), times_limit(look.estimate.lower)]),
        confidence: confidence(look.alpha),
        samples: Some(requests.sum()),
        trials: Some(look.trials),
        ..check
    })
}

fn count(scene: &Scene<'_>) -> Option<u32> {
    u32::try_from(scene.trials.len()).ok()
}

fn confidence(alpha: f64) -> Option<Share> {
    Share::from_ppm((1e6 * (1.0 - alpha)).round() as u32)
}

/// An objective holds when it does so by itself, or all together do; it is broken when it is by itself and all together are,
/// which keeps the chance of a wrong FAIL that of one test (method, section 11).
fn decide(scene: &Scene<'_>, own: &HeadroomLook, together: Option<Decision>, objective: &Objective) -> Finding {
    let decision = match (own.decision, together) {
        (_, Some(Decision::Pass)) | (Decision::Pass, _) => Decision::Pass,
        (Decision::Fail, Some(Decision::Fail)) => Decision::Fail,
        _ => Decision::Undecided,
    };
    conclude(scene, own, decision, &[*objective])
}

/// What a trial must have to show that a limit holds: room for one violation, and enough arrivals to see them pile up.
fn too_short(scene: &Scene<'_>, objective: &Objective) -> Option<Finding> {
    if matches!(objective, Objective::SuccessRate { .. }) {
        return None;
    }
    let requests = scene.trials.iter().map(|trial| trial.window.scheduled).min()?;
    let budget = objective.budget();
    if budget.ppm() > 0 && budget.floor_of(requests) == 0 {
        let needed = 1_000_000_u64.div_ceil(u64::from(budget.ppm()));
        let note =
            format!("{needed} requests in the window of each trial would allow one violation; it has {requests}");
        return Some(Finding::unknown(Reason::TooFewSamples, note));
    }
    let unseen = scene.is_open_loop() && scene.trials.iter().any(|trial| trial.drift.is_none());
    unseen.then(|| Finding::unknown(Reason::TooFewSamples, too_few_for_drift()))
}

/// What a look means for the objectives that it is about.
fn conclude(scene: &Scene<'_>, look: &HeadroomLook, decision: Decision, objectives: &[Objective]) -> Finding {
    match decision {
        Decision::Pass => {
            let short = objectives.iter().find_map(|objective| too_short(scene, objective));
            short.unwrap_or(Finding { status: Status::Pass, reason: Reason::Held, note: None })
        }
        Decision::Fail => {
            let own = objectives.iter().filter_map(|objective| scene.generator_share(objective));
            let (share, error) = own.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0));
            if look.estimate.upper + share >= 0.0 {
                return within_error(error);
            }
            let seen = scene.trials.iter().take(look.trials as usize).copied();
            let mix = Some(failure_mix(seen)).filter(|mix| !mix.is_empty());
            let note = mix.map(|mix| format!("did not end ok and count as infinitely slow: {mix}"));
            Finding { status: Status::Fail, reason: Reason::Broken, note }
        }
        Decision::Undecided => undecided(scene, look),
    }
}

/// Why the looks did not decide, and what would.
fn undecided(scene: &Scene<'_>, look: &HeadroomLook) -> Finding {
    if look.drift_forbids {
        let drifting: Vec<_> = scene.trials.iter().filter_map(|t| t.drift).filter(|drift| drift.drifting).collect();
        let worst = drifting.iter().max_by(|a, b| a.growth.total_cmp(&b.growth)).map(pile_up).unwrap_or_default();
        let count = format!("in {} of {} trials {worst}", drifting.len(), scene.trials.len());
        return Finding::unknown(Reason::NotStationary, count);
    }
    if let Some(spoilt) = scene.spoilt() {
        return spoilt;
    }
    let more = trials_to_decide(look).filter(|trials| *trials <= MOST_ADVISED).map_or_else(
        || "too close to the limit to be decided; change the limit or the load".to_owned(),
        |trials| format!("about {trials} trials would decide it"),
    );
    let note = format!("trials differ by {:.1}% (standard deviation); {more}", look.deviation * 100.0);
    let last = scene.contract.evidence.looks.last().copied().unwrap_or(0);
    if look.trials < last && scene.result.budget.exhausted {
        return Finding::unknown(Reason::BudgetExhausted, note);
    }
    Finding::unknown(Reason::IntervalStraddlesLimit, note)
}

/// A headroom as a multiple of the limit: below 1 it holds.
fn times_limit(headroom: f64) -> String {
    match headroom {
        h if h < -HEADROOM_LIMIT => "∞".to_owned(),
        h if h > HEADROOM_LIMIT => "0×".to_owned(),
        h => format!("{:.3}×", (-h).exp()),
    }
}

/// The typical value, the geometric mean of the trials' quantiles, and its interval. The decision holds a headroom to ∓ ln 10;
/// what is shown is not held to it.
fn shown(
    scene: &Scene<'_>,
    objective: &Objective,
    look: &HeadroomLook,
    seen: &[&ObjectiveEvidence],
) -> (Option<String>, Option<[String; 2]>) {
    let Some((metric, limit)) = objective.limit() else {
        let n: u64 = seen.iter().map(|evidence| evidence.n).sum();
        let violations: u64 = seen.iter().map(|evidence| evidence.violations).sum();
        let share = n.checked_sub(violations).and_then(|kept| Share::of(kept, n));
        let observed = share.map(|share| format!("{share}, {}", times_limit(look.estimate.point)));
        return (observed, Some([times_limit(look.estimate.upper), times_limit(look.estimate.lower)]));
    };
    let logs: Option<Vec<f64>> = seen.iter().map(|e| e.quantile.map(|q| (q.max(1) as f64).ln())).collect();
    let Some(estimate) = logs.and_then(|logs| mean_interval(&logs, look.alpha)) else {
        // A quantile among failures has no logarithm.
        let failures = scene.trials.iter().take(look.trials as usize).max_by_key(|trial| failed(trial));
        let infinite = seen.iter().filter(|evidence| evidence.quantile.is_none()).count();
        let failures = failures.map(|trial| failures_text(metric, trial)).unwrap_or_default();
        let observed = if infinite == seen.len() {
            format!("∞ ({failures})")
        } else {
            format!("∞ in {infinite} of {} trials ({failures})", seen.len())
        };
        return (Some(observed), Some([bound(metric, limit, look.estimate.upper), "∞".to_owned()]));
    };
    let value = |log: f64| metric.show(log.exp().round() as u64);
    (Some(value(estimate.point)), Some([value(estimate.lower), value(estimate.upper)]))
}

/// The value that has this headroom to a limit.
fn bound(metric: RequestMetric, limit: u64, headroom: f64) -> String {
    match headroom {
        h if h < -HEADROOM_LIMIT => "∞".to_owned(),
        h if h > HEADROOM_LIMIT => metric.show(0),
        h => metric.show((limit as f64 * (-h).exp()).round() as u64),
    }
}

/// The success rate: requests of all trials together.
fn success(scene: &Scene<'_>, index: usize, objective: &Objective, blank: Check) -> Check {
    let looks = &scene.contract.evidence.looks;
    let zero = objective.budget().ppm() == 0;
    let method = if zero { "zero tolerance" } else { "exact binomial over all trials" };
    let blank = Check { method: Some(method.to_owned()), ..blank };
    if let Some(finding) = scene.missing(index, objective) {
        return with(finding, blank);
    }
    if let Some(broken) = broken_at_once(scene, index, zero) {
        return Check { trials: count(scene), ..with(broken, blank) };
    }
    let Some(found) = pooled(index, objective, &scene.trials, looks) else {
        let finding = scene.spoilt().unwrap_or_else(|| scene.too_few_trials());
        return Check { trials: count(scene), ..with(finding, blank) };
    };
    let finding = success_finding(scene, objective, &found);
    let estimate = share_estimate(found.effective, found.alpha);
    Check {
        observed: Share::of(found.n - found.violations, found.n).map(|share| share.to_string()),
        interval: estimate.map(|e| [share_text(1.0 - e.upper), share_text((1.0 - e.lower) + 1e-6)]),
        confidence: confidence(found.alpha),
        samples: Some(found.n),
        trials: Some(found.trials),
        ..with(finding, blank)
    }
}

fn with(finding: Finding, blank: Check) -> Check {
    Check { status: finding.status, reason: finding.reason, note: finding.note, ..blank }
}

/// Where nothing is tolerated one failure decides, also in a trial that was cut short.
fn broken_at_once(scene: &Scene<'_>, index: usize, zero: bool) -> Option<Finding> {
    let step = scene.result.steps.iter().find(|step| step.load == scene.slo().at).filter(|_| zero)?;
    let evidence = || step.trials.iter().filter(|t| !t.is_void()).filter_map(|trial| trial.objectives.get(index));
    let (n, violations): (u64, u64) = (evidence().map(|e| e.n).sum(), evidence().map(|e| e.violations).sum());
    (violations > 0).then(|| zero_tolerance(n, violations, violations))
}

fn success_finding(scene: &Scene<'_>, objective: &Objective, found: &Pooled) -> Finding {
    let budget = objective.budget();
    if budget.ppm() == 0 {
        return zero_tolerance(found.n, found.violations, found.violations);
    }
    let may = budget.floor_of(found.n);
    let counts = || {
        let mix = failure_mix(scene.trials.iter().take(found.trials as usize).copied());
        format!("{} of {} requests did not end ok, at most {may} may: {mix}", found.violations, found.n)
    };
    match found.decision {
        Decision::Pass => Finding { status: Status::Pass, reason: Reason::Held, note: None },
        Decision::Fail => Finding { status: Status::Fail, reason: Reason::Broken, note: Some(counts()) },
        Decision::Undecided => scene.spoilt().unwrap_or_else(|| {
            if found.is_uneven {
                let note =
                    format!("{}; they fall into some trials, and a typical one is not shown to break it", counts());
                Finding::unknown(Reason::IntervalStraddlesLimit, note)
            } else if found.violations <= may {
                let needed = needed_text(found.violations, budget.fraction(), found.alpha);
                Finding::unknown(Reason::TooFewSamples, needed)
            } else {
                Finding::unknown(Reason::IntervalStraddlesLimit, counts())
            }
        }),
    }
}
