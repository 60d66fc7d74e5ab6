//! Whether a load holds: what the trials of one step decide together (method, sections 6 to 8).

use crate::contract::Objective;
use crate::record::{ObjectiveEvidence, TrialRecord};
use crate::stats::{
    Counts, Decision, HEADROOM_LIMIT, HeadroomLook, TrialHeadroom, fails, look_alpha, look_at_headroom, mean_interval,
    passes,
};

/// The level of a decision from counts, shared among its looks.
const ALPHA: f64 = 0.05;
/// Requests below which nothing is claimed about the long run (method, section 7).
pub const LEAST_LONG_RUN: u64 = 200;

/// Of a step's trials those that a claim over several schedules reads: whole and not void, one for each seed, by seed.
pub fn counted<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> Vec<&'a TrialRecord> {
    let mut counted: Vec<&TrialRecord> =
        trials.into_iter().filter(|trial| trial.complete && !trial.is_void()).collect();
    counted.sort_by_key(|trial| (trial.seed, trial.trial));
    counted.dedup_by_key(|trial| trial.seed);
    counted
}

/// The first look at the smallest headroom of each trial that decides, else the last one that was reached. `None` before
/// the first look, and when the headroom of a trial is not known.
pub fn look_together(trials: &[&TrialRecord], looks: &[u32]) -> Option<HeadroomLook> {
    look(trials, looks, |trial| trial.headroom)
}

/// The same of one objective, by its place in the contract.
pub fn look_at(objective: usize, trials: &[&TrialRecord], looks: &[u32]) -> Option<HeadroomLook> {
    look(trials, looks, |trial| trial.objectives.get(objective)?.headroom)
}

fn look(
    trials: &[&TrialRecord],
    looks: &[u32],
    headroom: impl Fn(&TrialRecord) -> Option<f64>,
) -> Option<HeadroomLook> {
    let known: Option<Vec<TrialHeadroom>> = trials
        .iter()
        .map(|trial| {
            let drifting = trial.drift.is_some_and(|drift| drift.drifting);
            headroom(trial).map(|headroom| TrialHeadroom { headroom, drifting })
        })
        .collect();
    look_at_headroom(&known?, looks)
}

/// What counts over several trials decide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// Trials that were looked at.
    pub trials: u32,
    /// Requests, as counted.
    pub n: u64,
    /// Violations, as counted.
    pub violations: u64,
    /// The same, divided by their variance inflation where the long run is claimed.
    pub effective: Counts,
    /// The level of this look.
    pub alpha: f64,
    /// All trials together break the budget, but no typical trial is shown to.
    pub is_uneven: bool,
    /// What it decides.
    pub decision: Decision,
}

/// Failures are rare and mostly independent of the queue: the requests of all trials are counted together (method, section
/// 6); to FAIL, a typical trial must break the budget besides. `None` before the first look. `objective` is its place in the contract.
pub fn pooled(objective: usize, of: &Objective, trials: &[&TrialRecord], looks: &[u32]) -> Option<Pooled> {
    let counts = |trial: &&TrialRecord| trial.objectives.get(objective).map_or((0, 0), |e| (e.n, e.violations));
    pooled_counts(of, &trials.iter().map(counts).collect::<Vec<_>>(), looks)
}

/// The same from the requests and the violations of each trial.
pub fn pooled_counts(of: &Objective, trials: &[(u64, u64)], looks: &[u32]) -> Option<Pooled> {
    at_looks(trials, looks, of, |seen, alpha| {
        let (n, violations) = (seen.iter().map(|trial| trial.0).sum(), seen.iter().map(|trial| trial.1).sum());
        let effective = Counts::exact(n, violations);
        let together = match of.budget().ppm() {
            0 => none_tolerated(n, violations),
            _ => decide(effective, of, alpha, alpha),
        };
        let is_uneven = of.budget().ppm() > 0 && together == Decision::Fail && !breaks_typically(seen, of, looks);
        let decision = if is_uneven { Decision::Undecided } else { together };
        Pooled { trials: seen.len() as u32, n, violations, effective, alpha, is_uneven, decision }
    })
}

/// Whether the trials one by one show that a typical run breaks the budget. Failures of a full queue come together: one trial may
/// have so many that all trials together break it, while a typical run does not.
fn breaks_typically(seen: &[(u64, u64)], of: &Objective, looks: &[u32]) -> bool {
    let Some(index) = looks.iter().position(|look| *look as usize == seen.len()) else { return false };
    let budget = of.budget().fraction();
    let headroom = |(n, violations): &(u64, u64)| match violations {
        0 => HEADROOM_LIMIT,
        violations => (budget * *n as f64 / *violations as f64).ln().clamp(-HEADROOM_LIMIT, HEADROOM_LIMIT),
    };
    let headrooms: Vec<f64> = seen.iter().map(headroom).collect();
    // One trial is all that a look at one can ask.
    headrooms.len() < 2 || mean_interval(&headrooms, look_alpha(looks, index)).is_some_and(|found| found.upper < 0.0)
}

/// Without a budget one violation decides, and none of all that were seen.
fn none_tolerated(n: u64, violations: u64) -> Decision {
    match (n, violations) {
        (0, _) => Decision::Undecided,
        (_, 0) => Decision::Pass,
        (_, _) => Decision::Fail,
    }
}

/// What is claimed about the long run: each trial's counts divided by its own variance inflation, then added (method,
/// section 7). A wrong FAIL is shared among `objectives`. `None` before the first look, and when the inflation of a trial is
/// not known.
pub fn long_run(
    objective: usize,
    of: &Objective,
    trials: &[&TrialRecord],
    looks: &[u32],
    objectives: usize,
) -> Option<Pooled> {
    let known = trials.iter().all(|trial| trial.objectives.get(objective).is_some_and(|e| e.inflation.is_some()));
    if !known {
        return None;
    }
    at_looks(trials, looks, of, |seen, alpha| {
        let found = || seen.iter().filter_map(|trial| trial.objectives.get(objective));
        let (n, violations): (u64, u64) = (found().map(|e| e.n).sum(), found().map(|e| e.violations).sum());
        let part = |count: fn(&ObjectiveEvidence) -> u64| {
            found().map(|e| count(e) as f64 / e.inflation.unwrap_or(f64::INFINITY).max(1.0)).sum()
        };
        let effective = Counts { n: part(|e| e.n), x: part(|e| e.violations), counted: violations };
        let decision = match of.budget().ppm() {
            _ if n < LEAST_LONG_RUN => Decision::Undecided,
            0 => none_tolerated(n, violations),
            _ => decide(effective, of, alpha, alpha / objectives.max(1) as f64),
        };
        Pooled { trials: seen.len() as u32, n, violations, effective, alpha, is_uneven: false, decision }
    })
}

fn decide(counts: Counts, of: &Objective, alpha_pass: f64, alpha_fail: f64) -> Decision {
    let budget = of.budget().fraction();
    if passes(counts, budget, alpha_pass) {
        Decision::Pass
    } else if fails(counts, budget, alpha_fail) {
        Decision::Fail
    } else {
        Decision::Undecided
    }
}

/// The first look that decides, else the last that the trials allow. Where nothing is tolerated every trial is read.
fn at_looks<T>(trials: &[T], looks: &[u32], of: &Objective, judge: impl Fn(&[T], f64) -> Pooled) -> Option<Pooled> {
    if of.budget().ppm() == 0 {
        let first = looks.first().copied().unwrap_or(1) as usize;
        let found = judge(trials, ALPHA);
        return Some(found).filter(|found| found.decision == Decision::Fail || trials.len() >= first);
    }
    let mut last = None;
    for &count in looks {
        let Some(seen) = trials.get(..count as usize) else { break };
        let found = judge(seen, ALPHA / looks.len() as f64);
        last = Some(found);
        if found.decision != Decision::Undecided {
            break;
        }
    }
    last
}
