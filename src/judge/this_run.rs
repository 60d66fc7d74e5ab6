//! What one schedule shows: the exact binomial rule on the requests of one trial (method, section 6).

use super::objective::{
    ALPHA, Finding, Scene, failed, failure_mix, failures_text, pile_up, too_few_for_drift, within_error,
};
use super::{Check, Reason, Status};
use crate::contract::{Objective, RequestMetric};
use crate::record::{ObjectiveEvidence, TrialRecord};
use crate::stats::{Counts, fails, n_pass, passes, quantile_ranks, share_estimate};
use crate::units::Share;

/// The confidence of each end of an interval and of the decision.
const CONFIDENCE_PPM: u32 = 950_000;

/// The evidence of one trial about the objectives.
pub(super) struct ThisRun<'a> {
    pub(super) scene: &'a Scene<'a>,
    /// The chance of a wrong FAIL of one objective.
    pub(super) alpha_fail: f64,
}

impl<'a> ThisRun<'a> {
    /// The chance of a wrong FAIL is shared among the objectives that have a budget to test, because one is enough to fail the
    /// whole (method, section 11).
    pub(super) fn new(scene: &'a Scene<'a>) -> Self {
        let tested = scene.slo().objectives.iter().filter(|objective| objective.budget().ppm() > 0).count();
        Self { scene, alpha_fail: ALPHA / tested.max(1) as f64 }
    }

    /// The row of an objective whose evidence is `evidence`.
    pub(super) fn check(
        &self,
        objective: &Objective,
        trial: &TrialRecord,
        evidence: &ObjectiveEvidence,
        blank: Check,
    ) -> Check {
        let method = if objective.budget().ppm() == 0 { "zero tolerance" } else { "exact binomial" };
        let finding = self.find(objective, trial, evidence);
        Check {
            method: Some(method.to_owned()),
            status: finding.status,
            reason: finding.reason,
            observed: observed_text(objective, trial, evidence),
            interval: interval_text(objective, trial, evidence),
            confidence: Share::from_ppm(CONFIDENCE_PPM),
            samples: Some(evidence.n),
            trials: Some(1),
            note: finding.note,
            ..blank
        }
    }

    /// First whether the trial can be judged, then what its counts decide. A missing number and a struggling generator
    /// come before everything; drift and a window cut short forbid a PASS, never a FAIL.
    fn find(&self, objective: &Objective, trial: &TrialRecord, evidence: &ObjectiveEvidence) -> Finding {
        if let Some(finding) = self.scene.no_evidence(objective, trial, evidence) {
            return finding;
        }
        let counted = decide(objective.budget(), trial, evidence, self.alpha_fail);
        let open_loop = self.scene.is_open_loop();
        if let (Status::Fail, Some((_, error)), Some((_, limit))) =
            (counted.status, self.scene.generator_share(objective), objective.limit())
            && evidence.lower.is_some_and(|lower| lower <= limit.saturating_add(error))
        {
            return within_error(error);
        }
        match (counted.status, trial.drift) {
            (Status::Fail, _) => counted,
            (_, Some(drift)) if drift.drifting => Finding::unknown(Reason::NotStationary, pile_up(&drift)),
            (Status::Pass, None) if open_loop && !matches!(objective, Objective::SuccessRate { .. }) => {
                Finding::unknown(Reason::TooFewSamples, too_few_for_drift())
            }
            (Status::Pass, _) if !open_loop && !trial.complete => self.scene.interrupted(evidence),
            (Status::Unknown, _) if !trial.complete => self.scene.interrupted(evidence),
            _ => counted,
        }
    }
}

/// What counts decide. What is undecided is a violation for PASS and none for FAIL.
fn decide(budget: Share, trial: &TrialRecord, evidence: &ObjectiveEvidence, alpha_fail: f64) -> Finding {
    let (n, low) = (evidence.n, evidence.violations);
    let high = low.saturating_add(evidence.undecided);
    if budget.ppm() == 0 {
        return zero_tolerance(n, low, high);
    }
    let (share, may) = (budget.fraction(), budget.floor_of(n));
    let counts = || violations_text(trial, low, n, may);
    if passes(Counts::exact(n, high), share, ALPHA) {
        Finding { status: Status::Pass, reason: Reason::Held, note: None }
    } else if fails(Counts::exact(n, low), share, alpha_fail) {
        Finding { status: Status::Fail, reason: Reason::Broken, note: Some(counts()) }
    } else if high <= may {
        Finding::unknown(Reason::TooFewSamples, needed_text(high, share, ALPHA))
    } else {
        Finding::unknown(Reason::IntervalStraddlesLimit, counts())
    }
}

/// Without a budget one violation breaks the objective, and none keeps it; the bound says how little that may show.
pub(super) fn zero_tolerance(n: u64, low: u64, high: u64) -> Finding {
    match (low, high) {
        (0, 0) => {
            let bound = Share::of(3.min(n), n).map_or_else(String::new, |bound| format!(": at most {bound} at 95%"));
            Finding { status: Status::Pass, reason: Reason::Held, note: Some(format!("none of {n}{bound}")) }
        }
        (0, undecided) => Finding::unknown(Reason::NotMeasured, format!("{undecided} of {n} requests are undecided")),
        (broken, _) => Finding {
            status: Status::Fail,
            reason: Reason::Broken,
            note: Some(format!("{broken} of {n} requests break the limit, none may")),
        },
    }
}

/// How many requests would decide it, with the violations seen so far.
pub(super) fn needed_text(violations: u64, budget: f64, alpha: f64) -> String {
    let needed = n_pass(violations, budget, alpha).map_or_else(|| "more".to_owned(), |n| n.to_string());
    match violations {
        0 => format!("{needed} requests without violation would decide it"),
        1 => format!("{needed} requests with no more than this violation would decide it"),
        more => format!("{needed} requests with no more than these {more} violations would decide it"),
    }
}

fn violations_text(trial: &TrialRecord, violations: u64, n: u64, may: u64) -> String {
    let failed = failed(trial);
    let mix = failure_mix(std::iter::once(trial));
    let of_them = if failed > 0 { format!(" ({failed} did not end ok: {mix})") } else { String::new() };
    format!("{violations} of {n} requests break the limit{of_them}, at most {may} may")
}

/// The quantile or the share. A quantile among failures is infinite; what is undecided leaves a share open above and a
/// quantile that falls among it unknown, and a value that is missing stays so.
pub(super) fn observed_text(
    objective: &Objective,
    trial: &TrialRecord,
    evidence: &ObjectiveEvidence,
) -> Option<String> {
    if evidence.n == 0 || evidence.unmeasured > 0 {
        return None;
    }
    let undecided = evidence.undecided;
    let open = format!("{undecided} undecided");
    let Objective::Percentile { metric, .. } = objective else {
        let kept = evidence.n.checked_sub(evidence.violations)?.checked_sub(undecided)?;
        let share = Share::of(kept, evidence.n)?;
        return Some(if undecided == 0 { share.to_string() } else { format!("at least {share} ({open})") });
    };
    let failures = failures_text(*metric, trial);
    Some(match (evidence.quantile.map(|value| metric.show(value)), undecided) {
        (Some(value), 0) => value,
        (Some(value), _) => format!("at most {value} ({open})"),
        (None, 0) => format!("∞ ({failures})"),
        (None, _) => format!("not known ({failures}, {open})"),
    })
}

/// Lower and upper end, each at 95 %: order statistics around a quantile, Clopper–Pearson around a share.
fn interval_text(objective: &Objective, trial: &TrialRecord, evidence: &ObjectiveEvidence) -> Option<[String; 2]> {
    if evidence.n == 0 || evidence.unmeasured > 0 {
        return None;
    }
    if let Objective::Percentile { metric, quantile, .. } = objective {
        return quantile_interval(*metric, *quantile, trial, evidence);
    }
    let high = evidence.violations.saturating_add(evidence.undecided);
    let lowest = 1.0 - share_estimate(Counts::exact(evidence.n, high), ALPHA)?.upper;
    let highest = 1.0 - share_estimate(Counts::exact(evidence.n, evidence.violations), ALPHA)?.lower;
    let share = |ppm: f64| Share::from_ppm(ppm.clamp(0.0, 1e6) as u32).map(|share| share.to_string());
    Some([share((lowest * 1e6).floor())?, share((highest * 1e6).ceil())?])
}

/// An end that no value bounds is open: nothing below, infinity above. A lower end is also infinite when its rank falls
/// among failures, which an interrupted trial cannot show.
fn quantile_interval(
    metric: RequestMetric,
    quantile: Share,
    trial: &TrialRecord,
    evidence: &ObjectiveEvidence,
) -> Option<[String; 2]> {
    let lower = match (evidence.lower, quantile_ranks(evidence.n, quantile, ALPHA)?.lower) {
        (Some(value), _) => metric.show(value),
        (None, None) => metric.show(0),
        (None, Some(_)) if trial.complete => "∞".to_owned(),
        (None, Some(_)) => return None,
    };
    Some([lower, evidence.upper.map_or_else(|| "∞".to_owned(), |value| metric.show(value))])
}
