//! `goodput judge`: the verdict again, from the files alone.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use super::cli::JudgeArguments;
use super::exit::{Exit, Failure};
use super::gate::{print, report_as};
use crate::contract::{Contract, LONGEST, LaunchWhat, MOST_REQUESTS, from_value, parse};
use crate::judge::{conclude, unstable};
use crate::record::{
    BaselineRecord, EndpointKind, RunResult, Stop, StoreError, TrialAccumulator, TrialFacts, TrialRecord,
    read_requests, read_result, summarise_step, summarise_trial,
};
use crate::report::plain;
use crate::schedule::{PlannedTrial, Schedule};
use crate::search::Campaign;
use crate::units::{Digest, Load, Rate};

pub(super) fn judge(arguments: &JudgeArguments) -> Result<Exit, Failure> {
    let result = judged(&arguments.result)?;
    print(&report_as(&result, arguments.output_format))?;
    Ok(result.verdict.as_ref().map_or(Exit::Internal, Exit::of_verdict))
}

/// A run's result, by its folder or file, with the verdict that its evidence yields; one that says something else is refused.
pub(super) fn judged(result: &Path) -> Result<RunResult, Failure> {
    let path = if result.is_dir() { result.join("result.json") } else { result.to_owned() };
    let stored = read_result(&path).map_err(|error| unreadable(&error, &path))?;
    let contract = from_value(&stored.contract, Path::new(".")).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|fault| format!("{}: {}", fault.pointer, fault.message)).collect();
        Failure::usage(format!("{}: its contract cannot be read:\n  {}", path.display(), lines.join("\n  ")))
    })?;
    bound(&contract, &stored, &path)?;
    check_contract(&stored, &path)?;
    check_baseline(&stored, &path)?;
    check_endpoint(&contract, &stored, &path)?;
    let mut result = stored.clone();
    result.plan_digest = Campaign::new(&contract, result.plan).digest();
    let requests = path.with_file_name("requests.jsonl");
    if requests.is_file() {
        summarise_again(&contract, &mut result, &requests)?;
    } else if result.steps.iter().any(|step| !step.trials.is_empty()) {
        let missing = plain(&requests.display().to_string());
        let said = format!("goodput: {missing} is not there: the figures of result.json are taken as they are");
        drop(writeln!(std::io::stderr(), "{said}"));
    }
    conclude(&contract, &mut result);
    if result != stored && !matches!(result.stopped, Some(Stop::Storage { .. })) {
        // Nothing is printed that could be taken for the run's result.
        let what = if result.verdict == stored.verdict { "figures" } else { "verdict" };
        let yields = result.verdict.as_ref().map_or("none", |verdict| verdict.overall.word());
        return Err(Failure::internal(format!(
            "{}: the stored {what} is not what the evidence yields, which is {yields}",
            path.display()
        ))
        .hint("the result was changed, or written by another version"));
    }
    if result != stored {
        // What could not be written was still counted while the run lasted.
        let said = "goodput: the disk was full: the run counted requests that are not in requests.jsonl, which decides";
        drop(writeln!(std::io::stderr(), "{said}"));
    }
    Ok(result)
}

/// Numbers that no run can have would stop what computes with them.
fn bound(contract: &Contract, result: &RunResult, path: &Path) -> Result<(), Failure> {
    for step in result.all_steps() {
        let is_rate = step.load.rate().is_none_or(|rate| Rate::from_milli(rate.milli()).is_some())
            && step.load.rate().is_some() == contract.slo.at.rate().is_some();
        let counts = step.trials.iter().filter_map(|trial| trial.planned);
        let are_counts = counts.into_iter().all(|planned| {
            [planned.warm_up, planned.window, planned.drain].into_iter().all(|count| count <= MOST_REQUESTS)
        });
        let are_times = step.trials.iter().all(|trial| {
            [trial.took_ns, trial.window_ns].into_iter().all(|nanos| Duration::from_nanos(nanos) <= 2 * LONGEST)
        });
        if !(is_rate && are_counts && are_times) {
            return Err(Failure::usage(format!("{}: its step at {} cannot have been", path.display(), step.load))
                .hint("the result was changed, or written by another version"));
        }
    }
    Ok(())
}

/// The contract that a result carries must be the one that lies beside it.
fn check_contract(result: &RunResult, path: &Path) -> Result<(), Failure> {
    let beside = path.with_file_name("contract.yaml");
    let Ok(text) = std::fs::read_to_string(&beside) else { return Ok(()) };
    let folder = beside.parent().unwrap_or(Path::new("."));
    let is_same = parse(&text, folder).is_ok_and(|loaded| loaded.value == result.contract)
        && Digest::of(text.as_bytes()) == result.contract_digest;
    if is_same {
        return Ok(());
    }
    Err(Failure::internal(format!("{}: its contract is not that of {}", path.display(), beside.display()))
        .hint("the files belong to different runs, or one of them was changed"))
}

/// What a result was compared with must be a whole record, and what was measured for a comparison must have one. What was read from
/// the repository, the contract at the base and the reviewed exceptions, is taken as it stands: no file here bears it out.
fn check_baseline(result: &RunResult, path: &Path) -> Result<(), Failure> {
    let used = result.baseline.as_ref();
    let records = used.iter().flat_map(|used| [&used.record, &used.release]).flatten();
    let is_broken =
        |record: &BaselineRecord| record.clone().sealed().digest != record.digest || record.impossible().is_some();
    let is_lost = used.is_none() && !(result.against.is_empty() && result.confirm.is_empty());
    if is_lost || records.into_iter().any(is_broken) {
        return Err(Failure::internal(format!("{}: what it was compared with is not what was stored", path.display()))
            .hint("the result was changed, or written by another version"));
    }
    Ok(())
}

/// Figures of a simulation, or of somebody else's server, must not be shown as those of another kind.
fn check_endpoint(contract: &Contract, result: &RunResult, path: &Path) -> Result<(), Failure> {
    let kind = match contract.endpoint.launch.as_ref().map(|launch| &launch.what) {
        None => EndpointKind::External,
        Some(LaunchWhat::Command(_)) => EndpointKind::Launched,
        Some(LaunchWhat::Simulate(_)) => EndpointKind::Simulated,
    };
    if result.endpoint.kind == kind {
        return Ok(());
    }
    Err(Failure::internal(format!("{}: its endpoint is not of the kind that its contract asks for", path.display()))
        .hint("the result was changed, or written by another version"))
}

/// A result that cannot be read, and what to do about it.
fn unreadable(error: &StoreError, path: &Path) -> Failure {
    let missing = matches!(error, StoreError::Io { source, .. } if source.kind() == ErrorKind::NotFound);
    if missing && path.with_file_name("requests.jsonl").is_file() {
        return Failure::usage(format!("{error}: the run did not come to its end"))
            .hint("what it measured until then is in requests.jsonl beside it; for a verdict, run the gate again");
    }
    let failure = Failure::usage(error.to_string());
    if missing { failure.hint("name a run's folder, or the result.json in it") } else { failure }
}

/// Counts everything again from the single requests, so that nothing but what was observed decides.
fn summarise_again(contract: &Contract, result: &mut RunResult, requests: &Path) -> Result<(), Failure> {
    let mut trials: BTreeMap<u32, TrialAccumulator> = BTreeMap::new();
    let schedules = schedules(contract, result);
    let mut unstable = unstable(&contract.stability, result);
    let mut misplaced = None;
    read_requests(requests, |record| {
        let due = schedules.get(&record.trial).and_then(|schedule| schedule.arrivals().get(record.arrival as usize));
        if due.is_some_and(|due| due.offset_ns != record.scheduled_ns || due.segment != record.segment) {
            misplaced.get_or_insert((record.trial, record.arrival));
        }
        trials.entry(record.trial).or_default().push(&record);
    })
    .map_err(|error| Failure::usage(error.to_string()))?;
    if let Some((trial, arrival)) = misplaced {
        return Err(Failure::internal(format!(
            "{}: request {arrival} of trial {trial} was not due when its schedule says",
            requests.display()
        ))
        .hint("the load, the seed or the request was changed"));
    }
    for step in result.all_steps_mut() {
        let mut again = Vec::new();
        for record in &step.trials {
            let planned = planned(contract, record, step.load);
            let facts = TrialFacts {
                schedule_digest: planned.schedule_digest(),
                unstable: unstable.remove(&record.trial).unwrap_or_default(),
                ..TrialFacts::of(record, step.load)
            };
            let accumulator = trials.remove(&record.trial).unwrap_or_default();
            again.push((summarise_trial(&contract.slo, &facts, &accumulator), accumulator));
        }
        *step = summarise_step(step.load, &again, None);
    }
    match trials.keys().next() {
        None => Ok(()),
        Some(trial) => Err(Failure::internal(format!(
            "{}: holds requests of trial {trial}, which result.json does not know",
            requests.display()
        ))
        .hint("the files belong to different runs, or one of them was changed")),
    }
}

/// The trial as the contract plans it at this load and seed.
fn planned(contract: &Contract, record: &TrialRecord, load: Load) -> PlannedTrial {
    PlannedTrial { trial: record.trial, seed: record.seed, load, shape: contract.traffic.shape(load) }
}

/// The schedules of all open-loop trials, by the trial's number.
fn schedules(contract: &Contract, result: &RunResult) -> BTreeMap<u32, Schedule> {
    let trials = result.all_steps().flat_map(|step| step.trials.iter().map(|trial| (trial, step.load)));
    trials.filter_map(|(trial, load)| Some((trial.trial, planned(contract, trial, load).schedule()?))).collect()
}
