//! `goodput compare`: two stored runs held against each other, offline.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cli::{CompareArguments, PlanFormat};
use super::exit::{Exit, Failure};
use super::gate::{color, print, width};
use crate::baseline::read_record;
use crate::compare::{Sides, compare as compare_records, weakened};
use crate::contract::{BaselinePlan, Contract, from_value};
use crate::judge::Status;
use crate::observe::ReplyTexts;
use crate::record::{BaselineRecord, Fingerprint, KeptReply, contract_part, read_kept, read_result};
use crate::report::{self, CompareReport, ComparedRun, ReplyPair};
use crate::units::Share;

/// One of the two.
struct Stored {
    record: BaselineRecord,
    contract: Contract,
    /// The folder with its replies.
    folder: PathBuf,
    /// The record that it was measured beside.
    beside: Option<BaselineRecord>,
}

pub(super) fn compare(arguments: &CompareArguments) -> Result<Exit, Failure> {
    let [base, head] = [&arguments.base, &arguments.head].map(|path| stored(path));
    let (base, head) = (base?, head?);
    let rules = rules(&head.contract, arguments.margin);
    // A run whose partner is the other one is compared with it trial by trial.
    let is_paired = head.beside.as_ref().is_some_and(|beside| beside.digest == base.record.digest);
    let sides = Sides { base: &base.record, head: &head.record, contract: &head.contract, rules: &rules, is_paired };
    let mut comparison = compare_records(sides);
    comparison.weakened = weakened(&base.contract, &head.contract);
    let is_evidence = [&base.record, &head.record].iter().all(|record| record.invalid.is_empty());
    let file = |path: &Path| path.display().to_string();
    let report = CompareReport {
        base: ComparedRun::of(file(&arguments.base), &base.record),
        head: ComparedRun::of(file(&arguments.head), &head.record),
        overall: CompareReport::overall_of(&comparison, is_evidence),
        margin: rules.margin,
        comparison,
        replies: replies(&base.folder, &head.folder)?,
    };
    match arguments.output_format {
        PlanFormat::Table => print(&report::compare(&report, width(), color()))?,
        PlanFormat::Json => print(&report::json(&report))?,
    }
    Ok(match report.overall {
        Status::Pass | Status::Accepted => Exit::Pass,
        Status::Fail => Exit::Fail,
        Status::Unknown => Exit::Unknown,
    })
}

/// A run's folder, a `result.json`, or a baseline record by itself.
fn stored(path: &Path) -> Result<Stored, Failure> {
    let file = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
    let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
    let (mut record, beside) = match read_record(&file) {
        Ok(record) => (record, None),
        Err(no_record) => {
            let result = read_result(&file).map_err(|no_result| {
                Failure::usage(format!("neither a result nor a baseline: {no_result}; {no_record}"))
                    .hint("name a run's folder, a result.json, or a baseline record")
            })?;
            let paired = result.baseline.as_ref().filter(|used| used.is_paired());
            let beside = paired.and_then(|used| used.record.clone());
            (BaselineRecord::of(&result), beside)
        }
    };
    let contract = from_value(&record.contract, &folder).map_err(|faults| {
        let first = faults.first().map(|fault| format!("{}: {}", fault.pointer, fault.message)).unwrap_or_default();
        Failure::usage(format!("{}: its contract cannot be read: {first}", file.display()))
    })?;
    // A run that nobody meant to compare noted no circumstances; what its contract says of them is known all the same.
    if record.fingerprint == Fingerprint::default() {
        record.fingerprint.must_match = contract_part(&contract, &record.workload_digest);
    }
    Ok(Stored { record, contract, folder, beside })
}

/// The margins of the second run's contract; the one of the command line wins.
fn rules(contract: &Contract, margin: Option<Share>) -> BaselinePlan {
    let mut rules = contract.baseline.clone().unwrap_or_default();
    rules.margin = margin.unwrap_or(rules.margin);
    rules
}

/// The first reply that each side kept of every case; `None` where one side kept none.
fn replies(base: &Path, head: &Path) -> Result<Option<Vec<ReplyPair>>, Failure> {
    let [base, head] = [base, head].map(|folder| first_replies(&folder.join("samples.jsonl")));
    let (Some(mut base), Some(mut head)) = (base?, head?) else { return Ok(None) };
    let mut cases: Vec<String> = base.keys().chain(head.keys()).cloned().collect();
    cases.sort();
    cases.dedup();
    Ok(Some(
        cases.into_iter().map(|case| ReplyPair { base: base.remove(&case), head: head.remove(&case), case }).collect(),
    ))
}

fn first_replies(path: &Path) -> Result<Option<BTreeMap<String, String>>, Failure> {
    if !path.is_file() {
        return Ok(None);
    }
    let mut first: BTreeMap<String, KeptReply> = BTreeMap::new();
    read_kept(path, |reply| {
        // Trials are kept in their order; within one the schedule's order counts, not which reply came first.
        let is_earlier =
            first.get(&reply.case).is_none_or(|known| (reply.trial, reply.arrival) < (known.trial, known.arrival));
        if is_earlier {
            first.insert(reply.case.clone(), reply);
        }
    })
    .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Some(first.into_iter().map(|(case, reply)| (case, whole_text(&reply.texts))).collect()))
}

/// Everything that a reply said.
fn whole_text(texts: &ReplyTexts) -> String {
    let mut parts = vec![texts.text.clone()];
    let named = |name: &str, text: &str| (!text.is_empty()).then(|| format!("[{name}] {text}"));
    parts.extend(named("reasoning", &texts.reasoning));
    parts.extend(named("refusal", &texts.refusal));
    parts.extend(texts.tool_calls.iter().map(|call| format!("[tool call] {}({})", call.name, call.arguments)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}
