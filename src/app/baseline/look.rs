//! `goodput baseline show` and `goodput baseline history`.

use std::path::Path;

use jiff::Timestamp;

use super::super::cli::{HistoryArguments, ShowArguments};
use super::super::exit::{Exit, Failure};
use super::super::gate::{color, print, width};
use super::{contract_with_baseline, repository};
use crate::baseline::{Found, Places, Question, Stated, choose, open};
use crate::contract::BaselinePlan;
use crate::fingerprint::beforehand;
use crate::report::{self, History};

/// Records that a trend looks at, whatever is listed.
const TREND: usize = 30;

/// Which record a run would be compared with now.
pub(super) async fn show(arguments: &ShowArguments) -> Result<Exit, Failure> {
    let (source, plan) = contract_with_baseline(&arguments.contract, "baseline show")?;
    let stated = Stated::read(arguments.base.as_deref(), |name| std::env::var(name).ok()).map_err(Failure::usage)?;
    let known = beforehand(&source.loaded.contract, &source.folder).await;
    let used = choose(&Question {
        contract: &source.loaded.contract.name,
        file: &arguments.contract,
        folder: &source.folder,
        baseline: &plan,
        plan: arguments.plan.into(),
        stated: &stated,
        now: Timestamp::now(),
        fingerprint: Some(&known),
    })
    .await;
    match arguments.json {
        true => print(&report::json(&used))?,
        false => print(&report::baseline(&used, width(), color()))?,
    }
    Ok(if used.record.is_some() { Exit::Pass } else { Exit::Unknown })
}

/// What the stores hold of a contract.
pub(super) async fn history(arguments: &HistoryArguments) -> Result<Exit, Failure> {
    let (source, plan) = contract_with_baseline(&arguments.contract, "baseline history")?;
    let most = arguments.most as usize;
    let name = &source.loaded.contract.name;
    let mut kept = kept(name, &plan, &source.folder, most.max(TREND)).await?;
    kept.sort_by(|(_, a), (_, b)| b.record.finished_at.cmp(&a.record.finished_at));
    let records: Vec<_> = kept.iter().map(|(store, found)| (*store, found.place.as_str(), &found.record)).collect();
    let history = History::of(name, &records, most, plan.margin);
    match arguments.json {
        true => print(&report::json(&history))?,
        false => print(&report::history(&history, width(), color()))?,
    }
    Ok(Exit::Pass)
}

/// The records of all stores, each once, with the store that it was found in first. A store that does not answer is told on
/// standard error; when none answers, that is the answer.
pub(super) async fn kept(
    contract: &str,
    plan: &BaselinePlan,
    folder: &Path,
    most: usize,
) -> Result<Vec<(&'static str, Found)>, Failure> {
    let repository = repository(folder).await?;
    let head = match &repository {
        Some(repository) => {
            repository.commit("HEAD").await.map_err(|failure| Failure::internal(failure.to_string()))?
        }
        None => None,
    };
    let places = Places { folder, repository: repository.as_ref(), at: head.as_deref() };
    let mut kept: Vec<(&'static str, Found)> = Vec::new();
    let mut failures = Vec::new();
    for spec in &plan.from {
        let listed = match open(spec, &places) {
            Ok(store) => store.list(contract, most).await,
            Err(failure) => Err(failure),
        };
        match listed {
            Ok(found) => {
                for found in found {
                    if !kept.iter().any(|(_, known)| known.record.digest == found.record.digest) {
                        kept.push((spec.name(), found));
                    }
                }
            }
            Err(failure) => failures.push(format!("{}: {failure}", spec.name())),
        }
    }
    if !failures.is_empty() && failures.len() == plan.from.len() {
        return Err(Failure::internal(failures.join("; ")));
    }
    for failure in failures {
        Failure::internal(failure).report();
    }
    Ok(kept)
}
