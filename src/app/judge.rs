//! `goodput judge`: the verdict again, from the files alone.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::cli::JudgeArguments;
use super::exit::{Exit, Failure};
use super::gate::{print, report_as};
use crate::contract::{Contract, from_value};
use crate::judge::conclude;
use crate::record::{
    RunResult, Stop, StoreError, TrialAccumulator, TrialFacts, read_requests, read_result, summarise_step,
    summarise_trial,
};
use crate::report::plain;

pub(super) fn judge(arguments: &JudgeArguments) -> Result<Exit, Failure> {
    let path = if arguments.result.is_dir() { arguments.result.join("result.json") } else { arguments.result.clone() };
    let stored = read_result(&path).map_err(|error| unreadable(&error, &path))?;
    let contract = from_value(&stored.contract, Path::new(".")).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|fault| format!("{}: {}", fault.pointer, fault.message)).collect();
        Failure::usage(format!("{}: its contract cannot be read:\n  {}", path.display(), lines.join("\n  ")))
    })?;
    let mut result = stored.clone();
    let requests = path.with_file_name("requests.jsonl");
    if requests.is_file() {
        summarise_again(&contract, &mut result, &requests)?;
    } else if result.steps.iter().any(|step| !step.trials.is_empty()) {
        let missing = plain(&requests.display().to_string());
        let said = format!("goodput: {missing} is not there: the figures of result.json are taken as they are");
        drop(writeln!(std::io::stderr(), "{said}"));
    }
    conclude(&contract, &mut result);
    print(&report_as(&result, arguments.output_format))?;
    if result != stored && matches!(result.stopped, Some(Stop::Storage { .. })) {
        // What could not be written was still counted while the run lasted.
        let said = "goodput: the disk was full: the run counted requests that are not in requests.jsonl, which decides";
        drop(writeln!(std::io::stderr(), "{said}"));
    } else if result != stored {
        let what = if result.verdict == stored.verdict { "figures" } else { "verdict" };
        return Err(Failure::internal(format!(
            "{}: the stored {what} is not what the evidence yields",
            path.display()
        ))
        .hint("the result was changed, or written by another version"));
    }
    Ok(result.verdict.as_ref().map_or(Exit::Internal, Exit::of_verdict))
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
    read_requests(requests, |record| trials.entry(record.trial).or_default().push(&record))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let searched = result.searches.iter_mut().flat_map(|search| &mut search.steps);
    for step in result.steps.iter_mut().chain(searched) {
        let mut again = Vec::new();
        for record in &step.trials {
            let facts = TrialFacts::of(record, step.load);
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
