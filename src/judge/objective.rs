//! The rows of the objectives, judged at the load that must hold for the claim that the contract makes.

use std::collections::BTreeMap;

use super::absence::{Absence, absence};
use super::infeasible::is_infeasible;
use super::this_run::ThisRun;
use super::{Check, Claim, Reason, Status, judged_trial, long_run, plain_check, typical_run};
use crate::contract::{Contract, Objective, RequestMetric, Slo};
use crate::observe::{Outcome, Warning};
use crate::record::{DriftRecord, ObjectiveEvidence, RunResult, StepRecord, TrialRecord};
use crate::search::counted;
use crate::stats::MIN_DRIFT_ARRIVALS;
use crate::units::{Load, Share, format_nanos};

/// The chance of a wrong PASS, or of any wrong FAIL, when the truth lies exactly on the limit.
pub(super) const ALPHA: f64 = 0.05;

/// One row per objective, in the contract's order; for a typical run another for all limits on latency together.
pub(super) fn checks(contract: &Contract, result: &RunResult) -> Vec<Check> {
    let scene = Scene::new(contract, result);
    let mut checks: Vec<Check> =
        contract.slo.objectives.iter().enumerate().map(|(index, objective)| scene.check(index, objective)).collect();
    if contract.evidence.claim == Claim::TypicalRun {
        checks.extend(typical_run::together(&scene));
    }
    checks
}

/// What the rows of all objectives share.
pub(super) struct Scene<'a> {
    pub(super) contract: &'a Contract,
    pub(super) result: &'a RunResult,
    /// The step at the load that must hold.
    step: Option<&'a StepRecord>,
    absent: Option<Absence>,
    /// Its trials that a claim over several schedules reads.
    pub(super) trials: Vec<&'a TrialRecord>,
}

/// What the evidence says.
pub(super) struct Finding {
    pub(super) status: Status,
    pub(super) reason: Reason,
    pub(super) note: Option<String>,
}

impl Finding {
    pub(super) fn unknown(reason: Reason, note: impl Into<String>) -> Self {
        Self { status: Status::Unknown, reason, note: Some(note.into()) }
    }
}

impl<'a> Scene<'a> {
    pub(super) fn new(contract: &'a Contract, result: &'a RunResult) -> Self {
        let step = result.steps.iter().find(|step| step.load == contract.slo.at);
        let trials = counted(step.map(|step| step.trials.as_slice()).unwrap_or_default());
        Self { contract, result, step, absent: absence(result), trials }
    }

    pub(super) fn slo(&self) -> &'a Slo {
        &self.contract.slo
    }

    pub(super) fn is_open_loop(&self) -> bool {
        matches!(self.slo().at, Load::RateMilli(_))
    }

    fn check(&self, index: usize, objective: &Objective) -> Check {
        let claim = self.contract.evidence.claim;
        let blank = Check {
            claim: Some(claim),
            limit: Some(objective.limit_text()),
            ..plain_check(&objective.id(), Status::Unknown, Reason::NotMeasured)
        };
        let trial = self.step.and_then(judged_trial);
        let Some((trial, evidence)) = trial.and_then(|trial| Some((trial, trial.objectives.get(index)?))) else {
            let finding = self.unmeasured();
            return Check { reason: finding.reason, note: finding.note, ..blank };
        };
        let check = match claim {
            Claim::ThisRun => ThisRun::new(self).check(objective, trial, evidence, blank),
            Claim::TypicalRun => typical_run::check(self, index, objective, trial, blank),
            Claim::LongRun => long_run::check(self, index, objective, trial, blank),
        };
        // What an idle endpoint breaks, no lower load can meet.
        if check.reason == Reason::Broken && is_infeasible(self.result, self.slo(), index) {
            return Check { reason: Reason::InfeasibleObjective, ..check };
        }
        check
    }

    /// The trials that speak for the load that must hold.
    pub(super) fn told(&self) -> Vec<&'a TrialRecord> {
        self.step.map(StepRecord::told).unwrap_or_default()
    }

    /// Why a window that was cut short shows nothing of the rest.
    pub(super) fn cut_short(&self) -> Finding {
        match &self.absent {
            Some(absent) => Finding::unknown(absent.reason, absent.note.clone()),
            None => Finding::unknown(Reason::NotMeasured, "the window was not measured to its end"),
        }
    }

    /// Why there is no evidence where a step has no trial.
    pub(super) fn unmeasured(&self) -> Finding {
        match &self.absent {
            Some(absent) => Finding::unknown(absent.reason, absent.note.clone()),
            None if self.result.budget.exhausted => Finding::unknown(Reason::BudgetExhausted, out_of_time(self.result)),
            None => {
                let why = self.step.and_then(|step| step.not_measured.as_deref());
                Finding::unknown(Reason::NotMeasured, why.unwrap_or("the load was not tried"))
            }
        }
    }

    /// Why a trial cannot be judged at all; `None` when it can.
    pub(super) fn no_evidence(
        &self,
        objective: &Objective,
        trial: &TrialRecord,
        evidence: &ObjectiveEvidence,
    ) -> Option<Finding> {
        if trial.is_void() {
            return Some(Finding::unknown(Reason::GeneratorSaturated, trial.health.faults.join("; ")));
        }
        if let Some(refusals) = refusals(trial) {
            return Some(Finding::unknown(Reason::ImplausibleResult, refusals));
        }
        if evidence.unmeasured > 0 {
            return Some(self.missing_values(objective, trial, evidence));
        }
        if evidence.n == 0 {
            return Some(match &self.absent {
                Some(absent) if !trial.complete => Finding::unknown(absent.reason, absent.note.clone()),
                _ => Finding::unknown(Reason::NotMeasured, "it applies to no request of the window"),
            });
        }
        None
    }

    /// Why one of the trials over several schedules cannot be judged; `None` when all can. `index` is the objective's place.
    pub(super) fn missing(&self, index: usize, objective: &Objective) -> Option<Finding> {
        self.trials.iter().find_map(|trial| self.no_evidence(objective, trial, trial.objectives.get(index)?))
    }

    /// A schedule whose trial was void and is not made up for.
    pub(super) fn spoilt(&self) -> Option<Finding> {
        let spoilt = self.step?.spoilt().pop()?;
        Some(Finding::unknown(Reason::GeneratorSaturated, spoilt.health.faults.join("; ")))
    }

    /// Why fewer trials were made than the first look needs.
    pub(super) fn too_few_trials(&self) -> Finding {
        let needed = self.contract.evidence.looks.first().copied().unwrap_or(1);
        let made = format!("{} of {needed} trials were measured", self.trials.len());
        match &self.absent {
            Some(absent) => Finding::unknown(absent.reason, format!("{}; {made}", absent.note)),
            None if self.result.budget.exhausted => {
                Finding::unknown(Reason::BudgetExhausted, format!("{}; {made}", out_of_time(self.result)))
            }
            None => Finding::unknown(Reason::NotMeasured, made),
        }
    }

    /// By how much of the headroom the load generator alone may be at fault, and how late it may be: `ln((limit + error) /
    /// limit)` with the audited error of its TTFT. `None` without an audit, and for what does not begin with the arrival.
    pub(super) fn generator_share(&self, objective: &Objective) -> Option<(f64, u64)> {
        let error = self.result.audit.as_ref()?.ttft_error_p99_ns(self.slo().at).filter(|error| *error > 0)?;
        let limits = || self.slo().request.set().filter(|(metric, _)| metric.is_wait()).map(|(_, limit)| limit);
        let limit = match objective {
            Objective::Percentile { metric, at_most, .. } => metric.is_wait().then_some(*at_most),
            Objective::Attainment { .. } => limits().min(),
            Objective::SuccessRate { .. } => None,
        }?;
        Some((((limit.saturating_add(error)) as f64 / limit.max(1) as f64).ln(), error))
    }

    /// Why a window that was cut short does not decide.
    pub(super) fn interrupted(&self, evidence: &ObjectiveEvidence) -> Finding {
        let open = format!("{} of {} requests are undecided", evidence.undecided, evidence.n);
        let Finding { reason, note, .. } = self.cut_short();
        Finding::unknown(reason, format!("{}; {open}", note.unwrap_or_default()))
    }

    /// Why values are missing. A share over all limits names what is most likely: token counts where there are none, chunks
    /// that came in one write where so many did, else the duration of sound.
    fn missing_values(&self, objective: &Objective, trial: &TrialRecord, evidence: &ObjectiveEvidence) -> Finding {
        let limits = &self.slo().request;
        let asked = |needs: fn(RequestMetric) -> bool| match objective {
            Objective::Percentile { metric, .. } => needs(*metric),
            Objective::SuccessRate { .. } | Objective::Attainment { .. } => limits.set().any(|(m, _)| needs(m)),
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
}

/// How much time the plan had.
pub(super) fn out_of_time(result: &RunResult) -> String {
    let time = |ns: u64| crate::units::format_duration(std::time::Duration::from_secs(ns / 1_000_000_000));
    format!("the budget of {} is spent after {}", time(result.budget.limit_ns), time(result.budget.spent_ns))
}

pub(super) fn pile_up(drift: &DriftRecord) -> String {
    format!("requests pile up: {:.1}% of the arrivals stay in flight", drift.growth * 100.0)
}

/// Why a limit is not called broken that the generator's own lateness may have broken.
pub(super) fn within_error(error: u64) -> Finding {
    let late = format_nanos(error);
    Finding::unknown(
        Reason::GeneratorSaturated,
        format!("by its audit the load generator itself adds up to {late} (p99), which may be why the limit is missed"),
    )
}

pub(super) fn too_few_for_drift() -> String {
    format!("{MIN_DRIFT_ARRIVALS} requests in the window would show whether they pile up")
}

/// Requests of the window that have an outcome and did not end `ok`.
pub(super) fn failed(trial: &TrialRecord) -> u64 {
    let ok = trial.window.outcomes.get(&Outcome::Ok).copied().unwrap_or(0);
    trial.window.decided.saturating_sub(ok)
}

/// What became of the requests that did not end `ok`: `3 timeout, 2 http_error (503: 2)`; empty where all did.
pub(super) fn failure_mix<'a>(trials: impl Iterator<Item = &'a TrialRecord> + Clone) -> String {
    let mut outcomes: BTreeMap<Outcome, u64> = BTreeMap::new();
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    for window in trials.map(|trial| &trial.window) {
        window.outcomes.iter().for_each(|(outcome, count)| *outcomes.entry(*outcome).or_default() += count);
        window.statuses.iter().for_each(|(status, count)| *statuses.entry(*status).or_default() += count);
    }
    let codes: Vec<String> = statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    let failures = outcomes.iter().filter(|(outcome, _)| **outcome != Outcome::Ok);
    let named = failures.map(|(outcome, count)| match outcome {
        Outcome::HttpError if !codes.is_empty() => format!("{count} {} ({})", outcome.name(), codes.join(", ")),
        _ => format!("{count} {}", outcome.name()),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// That most requests were refused for what they are and not for the load. Such a window tells nothing of a capacity.
fn refusals(trial: &TrialRecord) -> Option<String> {
    let (refused, status) = trial.refused()?;
    Some(format!(
        "the endpoint refuses the requests themselves: {refused} of {}, most with HTTP {status}, which says nothing of its \
         capacity; `goodput smoke` shows its words",
        trial.window.scheduled
    ))
}

/// The requests that count as infinite; replies without what a metric waits for are among them.
pub(super) fn failures_text(metric: RequestMetric, trial: &TrialRecord) -> String {
    let failed = format!("{} of {} failed", failed(trial), trial.window.scheduled);
    match metric {
        RequestMetric::FirstAnswer if trial.window.answerless > 0 => {
            format!("{failed}, {} without an answer", trial.window.answerless)
        }
        RequestMetric::FirstAudio => format!("{failed}, others without sound"),
        _ => failed,
    }
}

/// A share as a part of a million, for a text; held to what a share can be.
pub(super) fn share_text(fraction: f64) -> String {
    let ppm = (fraction * 1e6).clamp(0.0, 1e6) as u32;
    Share::from_ppm(ppm).unwrap_or(Share::ONE).to_string()
}
