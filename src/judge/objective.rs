//! The rows of the objectives, judged at the load that must hold by the exact binomial rule (method, section 6).

use super::absence::{Absence, absence};
use super::{Check, Claim, Reason, Status, judged_trial, plain_check};
use crate::contract::{Objective, RequestLimits, RequestMetric, Slo};
use crate::observe::{Outcome, Warning};
use crate::record::{ObjectiveEvidence, RunResult, TrialRecord};
use crate::stats::{Counts, MIN_DRIFT_ARRIVALS, fails, n_pass, passes, quantile_ranks, share_estimate};
use crate::units::{Load, Share};

/// The chance of a wrong PASS, or of any wrong FAIL, when the truth lies exactly on the limit.
pub(super) const ALPHA: f64 = 0.05;
/// The same as a confidence.
const CONFIDENCE_PPM: u32 = 950_000;

/// One row per objective, in the contract's order.
pub(super) fn checks(slo: &Slo, result: &RunResult) -> Vec<Check> {
    let step = result.steps.iter().find(|step| step.load == slo.at);
    let context = Context {
        trial: step.and_then(judged_trial),
        not_measured: step.and_then(|step| step.not_measured.as_deref()),
        absent: absence(result),
        open_loop: matches!(slo.at, Load::RateMilli(_)),
        alpha_fail: ALPHA / statistical_objectives(slo).max(1) as f64,
        limits: &slo.request,
    };
    slo.objectives.iter().map(|objective| context.check(objective)).collect()
}

/// Objectives with a budget to test: the chance of a wrong FAIL is shared among them, because one is enough to fail the
/// whole (method, section 11).
fn statistical_objectives(slo: &Slo) -> usize {
    slo.objectives.iter().filter(|objective| objective.budget().ppm() > 0).count()
}

/// What all objectives of a run share.
struct Context<'a> {
    trial: Option<&'a TrialRecord>,
    not_measured: Option<&'a str>,
    absent: Option<Absence>,
    open_loop: bool,
    alpha_fail: f64,
    limits: &'a RequestLimits,
}

/// What the evidence says.
struct Finding {
    status: Status,
    reason: Reason,
    note: Option<String>,
}

impl Finding {
    fn unknown(reason: Reason, note: impl Into<String>) -> Self {
        Self { status: Status::Unknown, reason, note: Some(note.into()) }
    }
}

impl Context<'_> {
    fn check(&self, objective: &Objective) -> Check {
        let id = objective.id();
        let method = if objective.budget().ppm() == 0 { "zero tolerance" } else { "exact binomial" };
        let blank = Check {
            claim: Some(Claim::ThisRun),
            method: Some(method.to_owned()),
            limit: Some(objective.limit_text()),
            ..plain_check(&id, Status::Unknown, Reason::NotMeasured)
        };
        let measured =
            self.trial.and_then(|trial| Some((trial, trial.objectives.iter().find(|found| found.id == id)?)));
        let Some((trial, evidence)) = measured else {
            let finding = self.unmeasured();
            return Check { reason: finding.reason, note: finding.note, method: None, ..blank };
        };
        let finding = self.find(objective, trial, evidence);
        Check {
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

    fn unmeasured(&self) -> Finding {
        match &self.absent {
            Some(absent) => Finding::unknown(absent.reason, absent.note.clone()),
            None => Finding::unknown(Reason::NotMeasured, self.not_measured.unwrap_or("the load was not tried")),
        }
    }

    /// First whether the trial can be judged, then what its counts decide. A missing number and a struggling generator
    /// come before everything; drift and a window cut short forbid a PASS, never a FAIL.
    fn find(&self, objective: &Objective, trial: &TrialRecord, evidence: &ObjectiveEvidence) -> Finding {
        if trial.is_void() {
            return Finding::unknown(Reason::GeneratorSaturated, trial.health.faults.join("; "));
        }
        if evidence.unmeasured > 0 {
            return self.missing_values(objective, trial, evidence);
        }
        if evidence.n == 0 {
            return match &self.absent {
                Some(absent) if !trial.complete => Finding::unknown(absent.reason, absent.note.clone()),
                _ => Finding::unknown(Reason::NotMeasured, "it applies to no request of the window"),
            };
        }
        let counted = decide(objective.budget(), trial, evidence, self.alpha_fail);
        match (counted.status, trial.drift) {
            (Status::Fail, _) => counted,
            (_, Some(drift)) if drift.drifting => Finding::unknown(
                Reason::NotStationary,
                format!("requests pile up: {:.1}% of the arrivals stay in flight", drift.growth * 100.0),
            ),
            (Status::Pass, None) if self.open_loop && !matches!(objective, Objective::SuccessRate { .. }) => {
                let note = format!("{MIN_DRIFT_ARRIVALS} requests in the window would show whether they pile up");
                Finding::unknown(Reason::TooFewSamples, note)
            }
            (Status::Pass, _) if !self.open_loop && !trial.complete => self.interrupted(evidence),
            (Status::Unknown, _) if !trial.complete => self.interrupted(evidence),
            _ => counted,
        }
    }

    /// Why values are missing. A share over all limits names what is most likely: token counts where there are none, chunks
    /// that came in one write where so many did, else the duration of sound.
    fn missing_values(&self, objective: &Objective, trial: &TrialRecord, evidence: &ObjectiveEvidence) -> Finding {
        let asked = |needs: fn(RequestMetric) -> bool| match objective {
            Objective::Percentile { metric, .. } => needs(*metric),
            Objective::SuccessRate { .. } | Objective::Attainment { .. } => self.limits.set().any(|(m, _)| needs(m)),
        };
        let without = format!("{} of {} requests that ended ok", evidence.unmeasured, evidence.n);
        let coalesced = trial.window.warnings.get(&Warning::Coalesced).copied().unwrap_or(0);
        let needs_pace = asked(|metric| matches!(metric, RequestMetric::Tpot | RequestMetric::Itl));
        if trial.window.output_tokens.is_none() && asked(RequestMetric::needs_usage) {
            Finding::unknown(Reason::NoUsage, format!("{without} lack the token counts that a limit needs"))
        } else if asked(RequestMetric::needs_audio_duration) && !(needs_pace && coalesced >= evidence.unmeasured) {
            let next = "ask for wav, or declare the format in `endpoint.audio`";
            Finding::unknown(
                Reason::NoAudioDuration,
                format!("{without} do not say how long their sound lasts; {next}"),
            )
        } else if needs_pace {
            let note = format!("{without} came in one write, or in more chunks than are kept, and show no pace");
            Finding::unknown(Reason::NotMeasured, note)
        } else {
            Finding::unknown(Reason::NotMeasured, format!("{without} lack the value"))
        }
    }

    fn interrupted(&self, evidence: &ObjectiveEvidence) -> Finding {
        let open = format!("{} of {} requests are undecided", evidence.undecided, evidence.n);
        match &self.absent {
            Some(absent) => Finding::unknown(absent.reason, format!("{}; {open}", absent.note)),
            None => Finding::unknown(Reason::NotMeasured, format!("the window was not measured to its end; {open}")),
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
        Finding::unknown(Reason::TooFewSamples, needed_text(high, share))
    } else {
        Finding::unknown(Reason::IntervalStraddlesLimit, counts())
    }
}

/// Without a budget one violation breaks the objective, and none keeps it; the bound says how little that may show.
fn zero_tolerance(n: u64, low: u64, high: u64) -> Finding {
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
fn needed_text(violations: u64, budget: f64) -> String {
    let needed = n_pass(violations, budget, ALPHA).map_or_else(|| "more".to_owned(), |n| n.to_string());
    match violations {
        0 => format!("{needed} requests without violation would decide it"),
        1 => format!("{needed} requests with no more than this violation would decide it"),
        more => format!("{needed} requests with no more than these {more} violations would decide it"),
    }
}

fn violations_text(trial: &TrialRecord, violations: u64, n: u64, may: u64) -> String {
    let failed = failed(trial);
    let of_them = if failed > 0 { format!(" ({failed} did not end ok)") } else { String::new() };
    format!("{violations} of {n} requests break the limit{of_them}, at most {may} may")
}

/// Requests of the window that have an outcome and did not end `ok`.
fn failed(trial: &TrialRecord) -> u64 {
    let ok = trial.window.outcomes.get(&Outcome::Ok).copied().unwrap_or(0);
    trial.window.decided.saturating_sub(ok)
}

/// The quantile or the share. A quantile among failures is infinite; what is undecided leaves a share open above and a
/// quantile that falls among it unknown, and a value that is missing stays so.
fn observed_text(objective: &Objective, trial: &TrialRecord, evidence: &ObjectiveEvidence) -> Option<String> {
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

/// The requests that count as infinite; replies without what a metric waits for are among them.
fn failures_text(metric: RequestMetric, trial: &TrialRecord) -> String {
    let failed = format!("{} of {} failed", failed(trial), trial.window.scheduled);
    match metric {
        RequestMetric::FirstAnswer if trial.window.answerless > 0 => {
            format!("{failed}, {} without an answer", trial.window.answerless)
        }
        RequestMetric::FirstAudio => format!("{failed}, others without sound"),
        _ => failed,
    }
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
