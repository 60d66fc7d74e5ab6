//! Whether the idle endpoint already breaks a limit, so that no load can meet it.

use super::objective::ALPHA;
use crate::contract::Slo;
use crate::record::RunResult;
use crate::search::history;
use crate::stats::{Counts, fails};

/// Whether the requests that had the endpoint to themselves, over all trials of the run, show that an objective is broken.
/// `objective` is its place in the contract. Long requests are rarely alone, so that what is left flatters the endpoint: what
/// breaks even so is broken.
pub(super) fn is_infeasible(result: &RunResult, slo: &Slo, objective: usize) -> bool {
    let Some(budget) = slo.objectives.get(objective).map(|objective| objective.budget().fraction()) else {
        return false;
    };
    let tried = history(result);
    let alone = || {
        let evidence = tried
            .iter()
            .map(|tried| tried.record)
            .filter(|trial| !trial.is_void() && trial.refused().is_none() && trial.unstable.is_empty());
        evidence.filter_map(|trial| trial.objectives.get(objective)).map(|found| found.alone)
    };
    let (n, violations) = (alone().map(|alone| alone.n).sum(), alone().map(|alone| alone.violations).sum());
    fails(Counts::exact(n, violations), budget, ALPHA / slo.objectives.len().max(1) as f64)
}
