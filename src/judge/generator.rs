//! The row about the load generator: whether it kept its plan where the objectives are judged.

use super::absence::absence;
use super::{Check, Reason, Status, plain_check};
use crate::contract::Slo;
use crate::record::{AuditRecord, HealthRecord, RunResult, SamplingRecord, StepRecord, TrialRecord};
use crate::units::{Load, format_nanos};

/// Present once any step was measured; judged at the load that must hold.
pub(super) fn check(slo: &Slo, result: &RunResult) -> Option<Check> {
    if result.steps.iter().all(|step| step.trials.is_empty()) {
        return None;
    }
    let step = result.steps.iter().find(|step| step.load == slo.at);
    let judged = step.and_then(|step| Some((step, worst(step)?)));
    // Where nothing was due, nothing shows that the plan would have been kept.
    let Some((step, trial)) = judged.filter(|(_, trial)| trial.is_void() || trial.health.due > 0) else {
        let absent = absence(result);
        let reason = absent.as_ref().map_or(Reason::NotMeasured, |absent| absent.reason);
        let note = absent.map(|absent| absent.note);
        return Some(Check { note, ..plain_check("load_generator", Status::Unknown, reason) });
    };
    let (status, reason, note) = if trial.is_void() {
        (Status::Unknown, Reason::GeneratorSaturated, Some(trial.health.faults.join("; ")))
    } else if let Some(doubt) = result.audit.as_ref().and_then(|audit| beyond(audit, slo.at)) {
        (Status::Unknown, Reason::GeneratorSaturated, Some(doubt))
    } else {
        (Status::Pass, Reason::Held, repeated(step))
    };
    let cost = Cost::of(step);
    let doubt = cost.as_ref().and_then(Cost::doubt);
    let told = cost.as_ref().map(Cost::told);
    let note = [note, told, doubt].into_iter().flatten().reduce(|note, more| format!("{note}; {more}"));
    Some(Check {
        limit: trial.health.dispatch_lag_limit_ns.map(|limit| format!("lag p99 ≤ {}", format_nanos(limit))),
        observed: Some(observed(step, &trial.health)),
        samples: Some(step.generated().iter().map(|trial| trial.health.due).sum()),
        trials: u32::try_from(step.trials.len()).ok(),
        note,
        ..plain_check("load_generator", status, reason)
    })
}

/// The trial in which the generator did worst: a void one before all, then the one with the largest lag.
fn worst(step: &StepRecord) -> Option<&TrialRecord> {
    step.generated().into_iter().max_by_key(|trial| (trial.is_void(), lag(&trial.health)))
}

/// Why an audit does not vouch for a load; `None` where it does, and for a number of clients, to which no schedule is kept.
fn beyond(audit: &AuditRecord, load: Load) -> Option<String> {
    let rate = load.rate().filter(|_| audit.is_exceeded_by(load))?;
    Some(match (audit.trusted_rate, audit.broke_at()) {
        (Some(trusted), Some(broke)) if rate >= broke => format!(
            "audited on this machine, the generator kept {trusted} and did not keep {broke}; give it more CPU and run `goodput \
             audit` again, or lower the load"
        ),
        (Some(trusted), _) => format!("audited up to {trusted}; run `goodput audit --to {rate}`"),
        (None, Some(broke)) => format!(
            "audited on this machine, the generator did not keep even {broke}; give it more CPU and run `goodput audit` again"
        ),
        (None, None) => "the audit tried no rate; run `goodput audit` again".to_owned(),
    })
}

/// What is late differs: the dispatch where there is a schedule, the runtime where there is none.
fn lag(health: &HealthRecord) -> Option<u64> {
    let lag = if health.dispatch_lag_limit_ns.is_some() { health.dispatch_lag } else { health.runtime_lag };
    lag.and_then(|lag| lag.p99_ns)
}

fn observed(step: &StepRecord, worst: &HealthRecord) -> String {
    let trials = step.generated();
    let sum = |count: fn(&HealthRecord) -> u64| trials.iter().map(|trial| count(&trial.health)).sum::<u64>();
    let sent = format!("{} of {} sent", sum(|health| health.sent), sum(|health| health.due));
    match lag(worst) {
        Some(p99) => format!("lag p99 {}, {sent}", format_nanos(p99)),
        None => sent,
    }
}

/// What the sampling of resources cost, over the trials by which the generator is judged.
struct Cost {
    due: u64,
    missed: u64,
    /// The slowest trial's.
    took_p99_ns: Option<u64>,
    /// CPU time of the thread that samples, as a share of one core, in the trial where that was most.
    of_a_core: Option<f64>,
}

impl Cost {
    /// More of a core than this is told.
    const MUCH_OF_A_CORE: f64 = 0.1;

    /// `None` where nothing was sampled.
    fn of(step: &StepRecord) -> Option<Self> {
        let trials = step.generated();
        let sampled = || trials.iter().filter_map(|trial| Some((trial, trial.health.sampling.as_ref()?)));
        sampled().next()?;
        let share = |(trial, sampling): (&&TrialRecord, &SamplingRecord)| {
            let seconds = trial.took_ns as f64 / 1e9;
            sampling.cpu_seconds.filter(|_| seconds > 0.0).map(|cpu| cpu / seconds)
        };
        Some(Self {
            due: sampled().map(|(_, sampling)| sampling.due).sum(),
            missed: sampled().map(|(_, sampling)| sampling.missed).sum(),
            took_p99_ns: sampled().filter_map(|(_, sampling)| sampling.took?.p99_ns).max(),
            of_a_core: sampled().filter_map(share).reduce(f64::max),
        })
    }

    fn told(&self) -> String {
        let mut told = format!("sampling: {} readings", self.due.saturating_sub(self.missed));
        if let Some(p99) = self.took_p99_ns {
            told.push_str(&format!(", took p99 {}", format_nanos(p99)));
        }
        if let Some(share) = self.of_a_core {
            told.push_str(&format!(", {:.1}% of a core", share * 100.0));
        }
        told
    }

    /// What is odd about it. The trial is not void for that: what the sampling did to the load, the lag shows.
    fn doubt(&self) -> Option<String> {
        let costly = self.of_a_core.filter(|share| *share > Self::MUCH_OF_A_CORE).map(|share| {
            format!("sampling took {:.0}% of a core: sample less often, or fewer resources", share * 100.0)
        });
        let slow = (5 * u128::from(self.missed) > u128::from(self.due)).then(|| {
            let (missed, due) = (self.missed, self.due);
            format!(
                "{missed} of {due} readings were left out because a source answered too slowly: sample it less often"
            )
        });
        [costly, slow].into_iter().flatten().reduce(|costly, slow| format!("{costly}; {slow}"))
    }
}

/// Says that void trials were repeated.
fn repeated(step: &StepRecord) -> Option<String> {
    let void: Vec<String> =
        step.trials.iter().filter(|trial| trial.is_void()).flat_map(|trial| trial.health.faults.clone()).collect();
    (!void.is_empty()).then(|| format!("judged on a repeated trial, because before {}", void.join("; ")))
}
