//! The capacity: where it ends, how sure that is, and the limit that binds it (method, sections 8 and 9).

use std::collections::{BTreeMap, BTreeSet};

use super::Claim;
use crate::contract::{Contract, Objective, ResourceLimit, Slo};
use crate::record::{Binding, CapacityRecord, ObjectiveEvidence, RunResult, StepRecord, TrialRecord};
use crate::search::{Campaign, SeedSearch, counted, geometric_mean, history, look_together, pooled, seed_searches};
use crate::stats::Decision;
use crate::units::{Load, Rate, Share};

/// The capacity that a run tells of: by its search where it made one, else by its listed loads. `None` when nothing was seen to
/// hold or to break.
pub fn capacity(contract: &Contract, result: &RunResult) -> Option<CapacityRecord> {
    if result.searches.is_empty() { of_listed(contract, result) } else { of_searches(contract, result) }
}

/// What is known of one listed load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    /// It holds, by the rule for the claim.
    Held,
    /// It does not.
    Broke,
    /// Neither is shown.
    NotKnown,
}

/// The highest load that held below the lowest that did not. Where every load was judged over several schedules it speaks of a
/// typical run; where a load was tried once, of that schedule.
fn of_listed(contract: &Contract, result: &RunResult) -> Option<CapacityRecord> {
    let campaign = Campaign::new(contract, result.plan);
    let several = result.steps.iter().all(|step| campaign.looks(step.load) != [1]);
    let typical = several && contract.evidence.claim == Claim::TypicalRun;
    let claim = if typical { Claim::TypicalRun } else { Claim::ThisRun };
    let stands: Vec<(&StepRecord, Stand)> =
        result.steps.iter().map(|step| (step, stand(contract, campaign.looks(step.load), step))).collect();
    let loads_that = |wanted| stands.iter().filter(move |(_, stand)| *stand == wanted).map(|(step, _)| *step);
    let broke = loads_that(Stand::Broke).next();
    let held = loads_that(Stand::Held).rfind(|step| broke.is_none_or(|broke| step.load < broke.load));
    if broke.is_none() && held.is_none() {
        return None;
    }
    let trials = result.steps.iter().flat_map(StepRecord::told);
    let seeds: BTreeSet<u64> = trials.clone().map(|trial| trial.seed).collect();
    Some(CapacityRecord {
        holds_at: held.map(|step| step.load),
        breaks_at: broke.map(|step| step.load),
        point: None,
        claim,
        method: "listed loads".to_owned(),
        confidence: None,
        confidence_of_end: None,
        seeds: seeds.len() as u32,
        trials: trials.count() as u32,
        requests_per_trial: requests_per_trial(result),
        goodput: held.and_then(|step| step.goodput),
        non_monotone: broke.is_some_and(|broke| loads_that(Stand::Held).any(|step| step.load > broke.load)),
        changed: false,
        binding: binding(&contract.slo, result, broke),
    })
}

/// Measured requests of each trial.
fn requests_per_trial(result: &RunResult) -> Option<u64> {
    history(result).first().and_then(|tried| tried.record.planned).map(|counts| counts.window)
}

/// Where one listed load stands: over several schedules as the looks decide, on one as its trial did.
fn stand(contract: &Contract, looks: &[u32], step: &StepRecord) -> Stand {
    let one = |held: Option<bool>| match held {
        Some(true) => Stand::Held,
        Some(false) => Stand::Broke,
        None => Stand::NotKnown,
    };
    let told = step.told();
    if looks == [1] || contract.evidence.claim != Claim::TypicalRun {
        return one(told.last().and_then(|trial| trial.held));
    }
    let trials = counted(&step.trials);
    // What tells nothing of a load neither holds nor breaks it.
    if trials.iter().any(|trial| trial.refused().is_some()) {
        return Stand::NotKnown;
    }
    // A restart, or a resource above its limit, ends the capacity in whichever trial it is seen.
    let limits = &contract.slo.resources;
    let breaks =
        |trial: &&TrialRecord| !trial.unstable.is_empty() || limits.iter().any(|limit| limit.is_broken_by(trial));
    if trials.iter().any(breaks) {
        return Stand::Broke;
    }
    if !trials.iter().all(|trial| limits.iter().all(|limit| limit.is_held_by(trial))) {
        return Stand::NotKnown;
    }
    let mut decisions = Vec::new();
    for (index, objective) in contract.slo.objectives.iter().enumerate() {
        if matches!(objective, Objective::SuccessRate { .. }) {
            decisions.push(pooled(index, objective, &trials, looks).map(|found| found.decision));
        }
    }
    if decisions.len() < contract.slo.objectives.len() {
        decisions.push(look_together(&trials, looks).map(|look| look.decision));
    }
    if decisions.contains(&Some(Decision::Fail)) {
        Stand::Broke
    } else if decisions.iter().all(|decision| *decision == Some(Decision::Pass)) {
        Stand::Held
    } else {
        Stand::NotKnown
    }
}

/// `[min of lower ends, max of upper ends]` over the schedules that came to an end; it covers the capacity of the median run
/// with confidence `1 − 2^(1−R)` whatever the noise, and each end alone with `1 − 2^−R` (method, section 9).
fn of_searches(contract: &Contract, result: &RunResult) -> Option<CapacityRecord> {
    use crate::record::SearchEnd::Unfinished;
    let tried = history(result);
    let searches = seed_searches(contract, &tried);
    let ended: Vec<&SeedSearch> = searches.iter().filter(|search| search.end != Unfinished).collect();
    let seeds = u32::try_from(ended.len()).ok().filter(|seeds| *seeds > 0)?;
    // An end that one schedule lacks, all lack: the capacity may lie beyond it.
    let lower: Option<Vec<Rate>> = ended.iter().map(|search| search.bracket.holds_at()).collect();
    let upper: Option<Vec<Rate>> = ended.iter().map(|search| search.bracket.breaks_at()).collect();
    let holds = lower.as_ref().and_then(|ends| ends.iter().min().copied());
    let breaks = upper.as_ref().and_then(|ends| ends.iter().max().copied());
    let confidence = |halvings: u32| Share::from_ppm(1_000_000 - 1_000_000_u32.checked_shr(halvings).unwrap_or(0));
    Some(CapacityRecord {
        holds_at: holds.map(Load::RateMilli),
        breaks_at: breaks.map(Load::RateMilli),
        point: lower.zip(upper).map(|(lower, upper)| geometric_mean(&[lower, upper].concat())),
        claim: if seeds > 1 { Claim::TypicalRun } else { Claim::ThisRun },
        method: "bracketing search".to_owned(),
        confidence: confidence(seeds - 1).filter(|_| seeds > 1),
        confidence_of_end: confidence(seeds).filter(|_| seeds > 1),
        seeds,
        trials: tried.len() as u32,
        requests_per_trial: requests_per_trial(result),
        goodput: holds.and_then(|load| goodput_at(result, load)),
        non_monotone: ended.iter().any(|search| search.bracket.is_non_monotone()),
        changed: searches.iter().any(|search| search.changed),
        binding: binding_of_searches(&contract.slo, result, &ended),
    })
}

/// The goodput of a trial that held at a load.
fn goodput_at(result: &RunResult, load: Rate) -> Option<f64> {
    let searched = result.searches.iter().flat_map(|search| &search.steps);
    let mut there = searched.chain(&result.steps).filter(|step| step.load == Load::RateMilli(load));
    there.find(|step| step.told().iter().any(|trial| trial.held == Some(true))).and_then(|step| step.goodput)
}

/// The objectives with their evidence.
fn paired<'a>(slo: &'a Slo, trial: &'a TrialRecord) -> impl Iterator<Item = (&'a Objective, &'a ObjectiveEvidence)> {
    slo.objectives.iter().zip(&trial.objectives)
}

/// At the load that broke, the objective that exceeds its budget most; where none broke, the one that comes closest to its
/// limit at the load that must hold. The first in the contract's order wins a tie.
fn binding(slo: &Slo, result: &RunResult, broke: Option<&StepRecord>) -> Option<Binding> {
    let step = broke.or_else(|| result.steps.iter().find(|step| step.load == slo.at))?;
    let told = step.told();
    // Where several schedules were tried, the one that came off worst shows what binds.
    let worst = |trial: &&&TrialRecord| trial.headroom.unwrap_or(f64::NEG_INFINITY);
    let trial = told.iter().filter(|trial| !trial.is_void()).min_by(|a, b| worst(a).total_cmp(&worst(b)))?;
    binding_of(slo, step.load, trial, broke.is_some())
}

/// The limit that broke first on most schedules, as the first of them shows it.
fn binding_of_searches(slo: &Slo, result: &RunResult, searches: &[&SeedSearch]) -> Option<Binding> {
    let tried = history(result);
    let bindings: Vec<Binding> = searches
        .iter()
        .filter_map(|search| {
            let breaks = Load::RateMilli(search.bracket.breaks_at()?);
            let there = |t: &&crate::search::Tried<'_>| t.record.seed == search.seed && t.load == breaks;
            let trial = tried.iter().filter(there).find(|t| t.record.held == Some(false))?;
            binding_of(slo, breaks, trial.record, true)
        })
        .collect();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    bindings.iter().for_each(|binding| *count.entry(&binding.objective).or_default() += 1);
    let most = count.values().max().copied()?;
    bindings.iter().find(|binding| count.get(binding.objective.as_str()) == Some(&most)).cloned()
}

fn binding_of(slo: &Slo, load: Load, trial: &TrialRecord, broke: bool) -> Option<Binding> {
    let within =
        |(objective, found): (&Objective, &ObjectiveEvidence)| found.violations <= objective.budget().floor_of(found.n);
    if let Some(row) = broken_row(slo, trial).filter(|_| broke && paired(slo, trial).all(within)) {
        return Some(Binding { objective: row, load, broke, violations: 0, n: 0 });
    }
    let strain = if broke { excess } else { closeness };
    let (objective, found) = paired(slo, trial)
        .filter(|(_, found)| found.n > 0 && found.unmeasured == 0)
        .reduce(|most, next| if strain(next.0, next.1) > strain(most.0, most.1) { next } else { most })?;
    Some(Binding {
        objective: found.id.clone(),
        load,
        broke: found.violations > objective.budget().floor_of(found.n),
        violations: found.violations,
        n: found.n,
    })
}

/// The stability row or the limit on a resource that a trial broke, the first of them.
fn broken_row(slo: &Slo, trial: &TrialRecord) -> Option<String> {
    let resource = || slo.resources.iter().find(|limit| limit.is_broken_by(trial)).map(ResourceLimit::id);
    trial.unstable.first().cloned().or_else(resource)
}

/// Violations over the budget; one violation of an objective without budget exceeds everything.
fn excess(objective: &Objective, found: &ObjectiveEvidence) -> f64 {
    let allowed = objective.budget().fraction() * found.n as f64;
    match (found.violations, allowed > 0.0) {
        (0, _) => 0.0,
        (violations, true) => violations as f64 / allowed,
        (_, false) => f64::INFINITY,
    }
}

/// The quantile over its limit, and the share of the budget that is used.
fn closeness(objective: &Objective, found: &ObjectiveEvidence) -> f64 {
    match (objective.limit(), found.quantile) {
        (Some((_, limit)), Some(value)) => value as f64 / limit.max(1) as f64,
        (Some(_), None) => f64::INFINITY,
        (None, _) => excess(objective, found),
    }
}
