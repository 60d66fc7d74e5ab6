//! With what a run of the gate is compared, found before it begins.

use std::path::Path;

use jiff::Timestamp;

use super::exit::Failure;
use super::prepare::Source;
use crate::baseline::{Question, Stated, age, choose, contract_at_base, read_record, unfit};
use crate::contract::{BaselinePlan, PairWhen, Plan, from_value};
use crate::fingerprint::beforehand;
use crate::record::{BaselineUse, Chosen, Why};

/// What the command line says of the baseline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The contract's file.
    pub(super) file: &'a Path,
    /// What the run is for.
    pub(super) plan: Plan,
    /// The revision that the change is compared with.
    pub(super) base: Option<&'a str>,
    /// A record that is to be taken, whatever the stores have.
    pub(super) record: Option<&'a Path>,
    /// The endpoint without the change is named.
    pub(super) is_paired: bool,
}

/// With what a run is compared; `None` where neither its contract nor the one at the base asks for a comparison.
pub(super) async fn compared_with(source: &Source, wanted: Wanted<'_>) -> Result<Option<BaselineUse>, Failure> {
    let stated = Stated::read(wanted.base, |name| std::env::var(name).ok());
    let Some(baseline) = &source.loaded.contract.baseline else {
        // A run that asks for no comparison does not end because an event cannot be read.
        let Ok(stated) = stated else { return Ok(None) };
        return Ok(dropped(source, wanted, &stated).await);
    };
    let stated = stated.map_err(Failure::usage)?;
    let is_paired = wanted.is_paired || baseline.pair.as_ref().is_some_and(|pair| pair.when == PairWhen::Always);
    let named = wanted.record.map(|path| named(path, &source.loaded.contract.name)).transpose()?;
    // No store is asked where the other side is measured by the run itself, or named.
    let from = if is_paired || named.is_some() { Vec::new() } else { baseline.from.clone() };
    let baseline = BaselinePlan { from, ..baseline.clone() };
    let known = beforehand(&source.loaded.contract, &source.folder).await;
    let used = choose(&Question {
        contract: &source.loaded.contract.name,
        file: wanted.file,
        folder: &source.folder,
        baseline: &baseline,
        plan: wanted.plan,
        stated: &stated,
        now: Timestamp::now(),
        fingerprint: Some(&known),
    })
    .await;
    Ok(Some(match named {
        Some(named) => BaselineUse { record: named.record, chosen: named.chosen, missing: None, ..used },
        None => used,
    }))
}

/// A contract that asks for no comparison any more, where the one at the base does: that is told, and nothing is compared.
async fn dropped(source: &Source, wanted: Wanted<'_>, stated: &Stated) -> Option<BaselineUse> {
    let (commit, contract) = contract_at_base(wanted.file, &source.folder, stated).await?;
    let asked = from_value(&contract, &source.folder).ok()?.baseline.is_some();
    asked.then(|| BaselineUse { base_commit: Some(commit), base_contract: Some(contract), ..BaselineUse::default() })
}

/// A record that the command line names: a record by itself, or the one in a run's folder.
fn named(path: &Path, contract: &str) -> Result<BaselineUse, Failure> {
    let file = if path.is_dir() { path.join("baseline.json") } else { path.to_owned() };
    let record = read_record(&file).map_err(|failure| {
        Failure::usage(failure.to_string())
            .hint("name a baseline record: the `baseline.json` of a run with `--plan baseline`, or what `goodput baseline save` wrote")
    })?;
    let refused = |problem: String| Failure::usage(format!("{}: the record {problem}", file.display()));
    if record.name != contract {
        return Err(refused(format!("is of the contract `{}`", record.name)));
    }
    if let Some(problem) = unfit(&record) {
        return Err(refused(problem).hint("name the record of a run that passed, or leave `--baseline` out"));
    }
    let age_s = age(&record, Timestamp::now()).map_err(Failure::usage)?.as_secs();
    let chosen = Chosen { store: "file".to_owned(), place: file.display().to_string(), why: Why::Named, age_s };
    Ok(BaselineUse { record: Some(record), chosen: Some(chosen), ..BaselineUse::default() })
}
