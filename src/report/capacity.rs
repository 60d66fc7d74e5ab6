//! Where the capacity ends, and which limit ends it, in one sentence for every format.

use super::figures::{check_name, grouped, load_that_must_hold, per_second};
use crate::judge::Status;
use crate::record::{Binding, CapacityRecord, RunResult, StepRecord};
use crate::units::Load;

/// Where the capacity ends and by which limit; `None` where nothing was seen to hold or to break.
pub(super) fn sentence(result: &RunResult) -> Option<String> {
    if result.searches.is_empty() { listed(result) } else { searched(result) }
}

/// The same of the listed loads.
fn listed(result: &RunResult) -> Option<String> {
    let capacity = result.capacity.as_ref()?;
    let mut text = match (capacity.holds_at, capacity.breaks_at) {
        (Some(holds), Some(breaks)) => {
            let (there, held) = (goodput_there(capacity), held(result));
            let promised = if is_promised(result, breaks) { ", the load that must hold," } else { "" };
            let breaking = breaking(result, capacity, breaks);
            format!("{held} at {}{there}; at {breaks}{promised} {breaking}", up_to(result, holds))
        }
        (Some(holds), None) => {
            // A comparison may have measured more.
            let is_highest = measured(result).last() == Some(holds) && result.against.is_empty();
            let edge = if is_highest { ", the highest load measured" } else { "" };
            let (there, closest) = (goodput_there(capacity), closest(result, capacity, holds));
            format!("{} at {}{edge}{there}{closest}", held(result), up_to(result, holds))
        }
        (None, Some(breaks)) => {
            let is_lowest = measured(result).next() == Some(breaks);
            let edge = match (is_promised(result, breaks), is_lowest) {
                (true, _) => ", the load that must hold",
                (false, true) => ", the lowest load measured",
                (false, false) => "",
            };
            format!("Does not hold at {breaks}{edge}: {}", breaking(result, capacity, breaks))
        }
        (None, None) => "Whether any load holds was not decided".to_owned(),
    };
    text.push('.');
    text.push_str(doubts(capacity));
    Some(text)
}

/// Whether the contract promises that a load holds.
fn is_promised(result: &RunResult, load: Load) -> bool {
    load_that_must_hold(result) == Some(load)
}

/// The highest load that held, and the one that must, which is tried more often.
fn up_to(result: &RunResult, holds: Load) -> String {
    match load_that_must_hold(result) {
        Some(wanted) if wanted == holds => format!("{holds}, the load that must hold"),
        Some(wanted) if measured(result).any(|load| load == wanted) && wanted.rate() < holds.rate() => {
            format!("{wanted}, the load that must hold, and up to {holds}")
        }
        _ => holds.to_string(),
    }
}

/// Where the search found the capacity to end, how sure that is, and by which limit.
fn searched(result: &RunResult) -> Option<String> {
    let Some(capacity) = result.capacity.as_ref() else {
        return Some("The search for the capacity came to no end.".to_owned());
    };
    if capacity.changed {
        return Some(format!("Where the capacity lies is not known.{}", doubts(capacity)));
    }
    let requests = capacity.requests_per_trial.map_or_else(String::new, |n| format!(" of {} requests", grouped(n)));
    let sure = capacity.confidence.map_or_else(String::new, |confidence| format!("{confidence} confidence, "));
    let schedules = if capacity.seeds == 1 { "schedule" } else { "schedules" };
    let basis = format!("({sure}{} {schedules}{requests})", capacity.seeds);
    let there = goodput_there(capacity);
    let mut text = match (capacity.holds_at, capacity.breaks_at) {
        (Some(holds), Some(breaks)) => {
            format!(
                "The capacity lies between {holds}{there} and {breaks} {basis}; {}",
                breaking_at(result, capacity, breaks)
            )
        }
        (Some(holds), None) => {
            format!("The capacity is at least {holds}{there} {basis}: no schedule showed where it ends")
        }
        (None, Some(breaks)) => {
            format!(
                "The capacity is below {breaks} {basis}: none of the loads that were tried holds on every schedule; {}",
                breaking_at(result, capacity, breaks)
            )
        }
        (None, None) => format!("Where the capacity lies was not found {basis}"),
    };
    text.push('.');
    text.push_str(doubts(capacity));
    Some(text)
}

/// What breaks, with the load at which that was seen where it is not `load`.
fn breaking_at(result: &RunResult, capacity: &CapacityRecord, load: Load) -> String {
    let what = breaking(result, capacity, load);
    match capacity.binding.as_ref().filter(|binding| binding.broke && binding.load != load) {
        Some(binding) => format!("{what}, seen at {}", binding.load),
        None => what,
    }
}

/// What speaks against believing the figures.
fn doubts(capacity: &CapacityRecord) -> &'static str {
    match (capacity.changed, capacity.non_monotone) {
        (true, _) => {
            " The endpoint changed during the run: tried again at last, the first schedule broke twice below where all held."
        }
        (false, true) => " A higher load held again; that is not believed.",
        (false, false) => "",
    }
}

/// What was seen is no promise where the verdict leaves it open.
fn held(result: &RunResult) -> &'static str {
    match result.verdict.as_ref().map(|verdict| verdict.overall) {
        Some(Status::Unknown) => "Within the limits as far as was seen",
        _ => "Every limit holds",
    }
}

/// The loads with a measured trial, ascending.
fn measured(result: &RunResult) -> impl DoubleEndedIterator<Item = Load> + '_ {
    result.steps.iter().filter(|step| !step.trials.is_empty()).map(|step| step.load)
}

fn goodput_there(capacity: &CapacityRecord) -> String {
    capacity.goodput.map_or_else(String::new, |goodput| format!(" (goodput {}/s)", per_second(Some(goodput))))
}

/// What breaks at `load`: the binding limit, or requests that pile up.
fn breaking(result: &RunResult, capacity: &CapacityRecord, load: Load) -> String {
    if let Some(binding) = capacity.binding.as_ref().filter(|binding| binding.broke && binding.n == 0) {
        return format!("`{}` broke while the load was on", binding.objective);
    }
    if let Some(binding) = capacity.binding.as_ref().filter(|binding| binding.broke) {
        return format!(
            "{} breaks first{} ({})",
            check_name(&binding.objective),
            figure_there(result, binding),
            misses(binding)
        );
    }
    let drifts = |step: &StepRecord| step.trials.iter().any(|trial| trial.drift.is_some_and(|drift| drift.drifting));
    let searched = result.searches.iter().flat_map(|search| &search.steps);
    if result.steps.iter().chain(searched).any(|step| step.load == load && drifts(step)) {
        "requests pile up".to_owned()
    } else {
        "the limits no longer hold".to_owned()
    }
}

/// What comes closest to breaking where nothing broke, with its load where that is not `holds`.
fn closest(result: &RunResult, capacity: &CapacityRecord, holds: Load) -> String {
    capacity.binding.as_ref().filter(|binding| !binding.broke).map_or_else(String::new, |binding| {
        let load = binding.load;
        format!(
            "; {}{} comes closest to breaking{} ({})",
            if load == holds { String::new() } else { format!("at {load} ") },
            check_name(&binding.objective),
            figure_there(result, binding),
            misses(binding)
        )
    })
}

/// The figure of the binding limit beside the limit, as the worst such trial shows it: `: 812 ms, limit 500ms`.
fn figure_there(result: &RunResult, binding: &Binding) -> String {
    let trials = result.all_steps().filter(|step| step.load == binding.load).flat_map(|step| &step.trials);
    let seen = trials
        .flat_map(|trial| &trial.objectives)
        .filter(|found| found.id == binding.objective && (found.violations, found.n) == (binding.violations, binding.n))
        .max_by_key(|found| found.quantile);
    let figure = seen.and_then(|found| Some(found.unit?.show(found.quantile?)));
    let checks = result.verdict.iter().flat_map(|verdict| &verdict.checks);
    let limit = checks.into_iter().find(|check| check.id == binding.objective).and_then(|check| check.limit.as_deref());
    match figure.zip(limit) {
        Some((figure, limit)) => format!(": {figure}, limit {}", limit.trim_start_matches(['≤', ' '])),
        None => String::new(),
    }
}

fn misses(binding: &Binding) -> String {
    let (violations, n) = (grouped(binding.violations), grouped(binding.n));
    match binding.objective.as_str() {
        "success_rate" => format!("{violations} of {n} requests failed"),
        "attainment" => format!("{violations} of {n} requests were not good"),
        _ => format!("{violations} of {n} requests missed it"),
    }
}
