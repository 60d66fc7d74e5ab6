//! The stability rows: counters that may not rise and health checks that must answer. No probe, no PASS.

use super::absence::{Absence, absence};
use super::{Check, Reason, Status, plain_check};
use crate::contract::{StabilityProbe, StabilityRow};
use crate::record::{ProbeRecord, Reading, RunResult};

/// One row per stability row of the contract, in its order.
pub(super) fn checks(rows: &[StabilityRow], result: &RunResult) -> Vec<Check> {
    let absent = absence(result);
    rows.iter()
        .map(|row| {
            let readings = Readings::of(result.probes.iter().find(|probe| probe.name == row.name));
            match row.probe {
                StabilityProbe::Counter { max_increase, .. } => counter(&row.name, max_increase, &readings, &absent),
                StabilityProbe::ExitCode { .. } => exit_code(&row.name, &readings, &absent),
            }
        })
        .collect()
}

/// The two answers of a probe, each a number or why there is none.
struct Readings<'a> {
    before: Answer<'a>,
    after: Answer<'a>,
}

enum Answer<'a> {
    Value(f64),
    Failed(&'a str),
    NotRead,
}

impl<'a> Readings<'a> {
    fn of(probe: Option<&'a ProbeRecord>) -> Self {
        let answer = |reading: Option<&'a Reading>| match reading {
            Some(Reading { value: Some(value), .. }) if value.is_finite() => Answer::Value(*value),
            Some(reading) => Answer::Failed(reading.failure.as_deref().unwrap_or("it gave no number")),
            None => Answer::NotRead,
        };
        Self {
            before: answer(probe.and_then(|probe| probe.before.as_ref())),
            after: answer(probe.and_then(|probe| probe.after.as_ref())),
        }
    }

    /// Why there are not two numbers. A probe that answered and failed is named first; for one that was not asked, what
    /// stopped the run is the reason, or else `otherwise`.
    fn missing(&self, absent: &Option<Absence>, otherwise: Reason) -> (Reason, String) {
        for (when, answer) in [("before", &self.before), ("after", &self.after)] {
            if let Answer::Failed(why) = answer {
                return (Reason::ProbeFailed, format!("failed {when} the load: {why}"));
            }
        }
        if let Some(absent) = absent {
            return (absent.reason, absent.note.clone());
        }
        let when = if matches!(self.before, Answer::NotRead) { "before" } else { "after" };
        (otherwise, format!("was not read {when} the load"))
    }
}

fn counter(name: &str, max_increase: f64, readings: &Readings<'_>, absent: &Option<Absence>) -> Check {
    let limit = Some(format!("rise ≤ {max_increase}"));
    let (Answer::Value(before), Answer::Value(after)) = (&readings.before, &readings.after) else {
        let (reason, note) = readings.missing(absent, Reason::ProbeFailed);
        return Check { limit, note: Some(note), ..plain_check(name, Status::Unknown, reason) };
    };
    let rise = after - before;
    let (status, reason) = if rise < 0.0 {
        (Status::Unknown, Reason::CounterReset)
    } else if rise > max_increase {
        (Status::Fail, Reason::CounterRose)
    } else {
        (Status::Pass, Reason::Held)
    };
    let observed = Some(format!("{before} → {after} ({rise:+})"));
    Check { limit, observed, ..plain_check(name, status, reason) }
}

fn exit_code(name: &str, readings: &Readings<'_>, absent: &Option<Absence>) -> Check {
    let show = |answer: &Answer<'_>| match answer {
        Answer::Value(code) => code.to_string(),
        Answer::Failed(_) | Answer::NotRead => "–".to_owned(),
    };
    let unhealthy = |answer: &Answer<'_>| matches!(answer, Answer::Value(code) if code.abs() > 0.0);
    let observed = Some(format!("exit code {} → {}", show(&readings.before), show(&readings.after)));
    let (status, reason, note) = match (&readings.before, &readings.after) {
        (before, after) if unhealthy(before) || unhealthy(after) => (Status::Fail, Reason::Unhealthy, None),
        (Answer::Value(_), Answer::Value(_)) => (Status::Pass, Reason::Held, None),
        _ => {
            let (reason, note) = readings.missing(absent, Reason::NotMeasured);
            (Status::Unknown, reason, Some(note))
        }
    };
    Check { limit: Some("exit code 0".to_owned()), observed, note, ..plain_check(name, status, reason) }
}
