//! `goodput baseline save` and `goodput baseline promote`.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::super::cli::{PromoteArguments, SaveArguments, StoreChoice};
use super::super::exit::{Exit, Failure};
use super::look::kept;
use super::{contract_with_baseline, finished, fit, repository};
use crate::baseline::{Places, StoreFailure, open, read_record, unfit, write_record};
use crate::contract::{BaselinePlan, StoreSpec};
use crate::judge::Status;
use crate::record::BaselineRecord;
use crate::report::plain;

/// The file that an upload step takes as an artifact.
const ARTIFACT_FILE: &str = "baseline.json";
/// The fewest digits that name a record.
const FEWEST_DIGITS: usize = 8;
/// The most records among which one is looked for by its digest.
const MOST_SEARCHED: usize = 1_000;

impl StoreChoice {
    fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Branch => "branch",
            Self::Artifact => "artifact",
            Self::S3 => "s3",
        }
    }
}

/// Keeps the record of a finished run.
pub(super) async fn save(arguments: &SaveArguments) -> Result<Exit, Failure> {
    let (source, plan) = contract_with_baseline(&arguments.contract, "baseline save RUN --contract")?;
    let result = finished(&arguments.result)?;
    let name = &source.loaded.contract.name;
    if result.name != *name {
        return Err(Failure::usage(format!(
            "the run is of the contract `{}`, and {} is `{name}`",
            result.name,
            arguments.contract.display()
        ))
        .hint("name the run's own contract with `--contract`"));
    }
    let repository = repository(&source.folder).await?;
    let mut record = BaselineRecord::of(&result);
    if let Some(named) = &arguments.commit {
        let found = match &repository {
            Some(repository) => {
                repository.commit(named).await.map_err(|failure| Failure::internal(failure.to_string()))?
            }
            None => None,
        };
        record.origin.commit =
            Some(found.ok_or_else(|| Failure::usage(format!("`{named}` names no commit of this repository")))?);
        // What somebody else built from that commit has no files of this working tree in it.
        record.origin.changed_files = None;
    }
    if arguments.accept_failed {
        accept(&mut record);
    }
    let record = record.sealed();
    fit(&record)?;
    let places = Places { folder: &source.folder, repository: repository.as_ref(), at: None };
    let run = if arguments.result.is_dir() { arguments.result.clone() } else { folder_of(&arguments.result) };
    let mut failures = Vec::new();
    for spec in wanted(&plan, &arguments.to)? {
        match put(spec, &places, &record, &run).await {
            Ok(place) => say(&format!("kept {} as {}: {place}", record.digest.short(), spec.name())),
            Err(failure) => failures.push(format!("{}: {failure}", spec.name())),
        }
    }
    if failures.is_empty() { Ok(Exit::Pass) } else { Err(Failure::internal(failures.join("\n  "))) }
}

async fn put(
    spec: &StoreSpec,
    places: &Places<'_>,
    record: &BaselineRecord,
    run: &Path,
) -> Result<String, StoreFailure> {
    if let StoreSpec::Artifact { name, .. } = spec {
        let file = run.join(ARTIFACT_FILE);
        write_record(&file, record)?;
        return Ok(format!("{}, to be uploaded by the next step as the artifact `{name}`", file.display()));
    }
    open(spec, places)?.put(record).await
}

/// The stores of the contract that were asked for, or all.
fn wanted<'a>(plan: &'a BaselinePlan, to: &[StoreChoice]) -> Result<Vec<&'a StoreSpec>, Failure> {
    for choice in to {
        if !plan.from.iter().any(|spec| spec.name() == choice.name()) {
            return Err(Failure::usage(format!("the contract keeps no baselines in `{}`", choice.name()))
                .hint("add it to `baseline.from`, or name one that is there"));
        }
    }
    let is_wanted = |spec: &&StoreSpec| to.is_empty() || to.iter().any(|choice| choice.name() == spec.name());
    let wanted: Vec<&StoreSpec> = plan.from.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Err(Failure::usage("the contract names no place for baselines").hint("write `baseline.from`"));
    }
    Ok(wanted)
}

/// Marks every loss as accepted: the record says so for good.
fn accept(record: &mut BaselineRecord) {
    for row in record.not_passed.iter_mut().filter(|row| row.status == Status::Fail) {
        row.status = Status::Accepted;
    }
}

/// Writes a record as the anchored release.
pub(super) async fn promote(arguments: &PromoteArguments) -> Result<Exit, Failure> {
    let (source, plan) = contract_with_baseline(&arguments.contract, "baseline promote RUN --contract")?;
    let file = arguments.to.clone().or_else(|| plan.release.clone()).ok_or_else(|| {
        Failure::usage("there is no file to write the release to")
            .hint("write `release: release.json` under the contract's `baseline`, or name a file with `--to`")
    })?;
    let name = &source.loaded.contract.name;
    let mut record = named(&arguments.what, name, &plan, &source.folder).await?;
    if record.name != *name {
        return Err(Failure::usage(format!("the record is of the contract `{}`, not of `{name}`", record.name)));
    }
    if let Some(reason) = unfit(&record) {
        return Err(Failure::usage(format!("no release: the record {reason}")));
    }
    if arguments.release.trim().is_empty() {
        return Err(Failure::usage("the release has no name; write one, as in `--release v1.4`"));
    }
    if file.exists() && read_record(&file).is_err() {
        return Err(Failure::usage(format!("{} is there and is no baseline record", file.display()))
            .hint("name another file with `--to`, or remove it first"));
    }
    record.parent = Some(record.digest.clone());
    record.release = Some(arguments.release.clone());
    let record = record.sealed();
    write_record(&file, &record)?;
    say(&format!(
        "written {} as the release `{}` to {}; it counts once a person has reviewed and committed it",
        record.digest.short(),
        arguments.release,
        file.display()
    ));
    Ok(Exit::Pass)
}

/// The record that a person names: of a run, in a file, or kept somewhere.
async fn named(what: &str, contract: &str, plan: &BaselinePlan, folder: &Path) -> Result<BaselineRecord, Failure> {
    let path = Path::new(what);
    if path.is_dir() || (path.is_file() && path.file_name().is_some_and(|name| name == "result.json")) {
        return Ok(BaselineRecord::of(&finished(path)?));
    }
    if path.is_file() {
        return read_record(path).map_err(|failure| Failure::usage(failure.to_string()));
    }
    let is_digest = what.len() >= FEWEST_DIGITS && what.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_digest {
        return Err(Failure::usage(format!("`{what}` is no run, no record's file and no digest"))
            .hint("`goodput baseline history` lists digests"));
    }
    let start = what.to_ascii_lowercase();
    let mut found = kept(contract, plan, folder, MOST_SEARCHED).await?;
    found.retain(|(_, found)| found.record.digest.as_str().starts_with(&start));
    match found.len() {
        1 => Ok(found.remove(0).1.record),
        0 => Err(Failure::usage(format!("no kept record of `{contract}` has a digest that begins with {what}"))
            .hint("`goodput baseline history` lists digests")),
        many => {
            Err(Failure::usage(format!("{many} records have a digest that begins with {what}"))
                .hint("write more digits"))
        }
    }
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().map(Path::to_owned).unwrap_or_default()
}

/// What was done goes where progress goes; standard output stays for what was asked for.
fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "goodput: {}", plain(text)));
}
