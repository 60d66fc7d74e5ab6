//! `goodput baseline`: the stored results that runs are compared with.

mod keep;
mod look;

use std::path::Path;

use super::calibrate::calibrate;
use super::cli::{BaselineAction, BaselineArguments};
use super::exit::{Exit, Failure};
use super::gate::runtime;
use super::prepare::{Source, read_contract};
use crate::baseline::{Repository, StoreFailure};
use crate::contract::BaselinePlan;
use crate::record::{BaselineRecord, RunResult, read_result};

pub(super) fn baseline(arguments: &BaselineArguments) -> Result<Exit, Failure> {
    runtime()?.block_on(async {
        match &arguments.action {
            BaselineAction::Calibrate(arguments) => calibrate(arguments).await,
            BaselineAction::Show(arguments) => look::show(arguments).await,
            BaselineAction::History(arguments) => look::history(arguments).await,
            BaselineAction::Save(arguments) => keep::save(arguments).await,
            BaselineAction::Promote(arguments) => keep::promote(arguments).await,
        }
    })
}

/// A contract and its key `baseline`.
fn contract_with_baseline(path: &Path, command: &str) -> Result<(Source, BaselinePlan), Failure> {
    let source = read_contract(path, command)?;
    match source.loaded.contract.baseline.clone() {
        Some(plan) => Ok((source, plan)),
        None => Err(Failure::usage(format!("the contract {} has no key `baseline`", path.display()))
            .hint("write where baselines are kept: `baseline: { from: [branch] }`")),
    }
}

/// The repository of a contract's folder.
async fn repository(folder: &Path) -> Result<Option<Repository>, Failure> {
    Repository::open(folder).await.map_err(|failure| Failure::internal(failure.to_string()))
}

/// A finished run, from its folder or its `result.json`.
fn finished(path: &Path) -> Result<RunResult, Failure> {
    let file = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
    read_result(&file).map_err(|error| {
        Failure::usage(error.to_string()).hint("name a run's folder, such as one under `.goodput/runs`")
    })
}

/// Of a result, what later runs are compared with, if that may ever be.
fn fit(record: &BaselineRecord) -> Result<(), Failure> {
    match crate::baseline::unfit(record) {
        None => Ok(()),
        Some(reason) => Err(Failure::usage(format!("no baseline: it {reason}"))
            .hint("keep another run; one that only failed can be kept with `goodput baseline save --accept-failed`")),
    }
}

impl From<StoreFailure> for Failure {
    fn from(failure: StoreFailure) -> Self {
        Self::internal(failure.to_string())
    }
}
