//! Which record a run is compared with: by the commit that it was measured at, never the newest.

use std::path::Path;

use jiff::Timestamp;

use super::around::{self, note};
use super::base::{Candidate, Line, Stated, line};
use super::fit::{self, age, ended, matches, unfit_here};
use super::git::{Repository, short};
use super::{Found, Places, Store, StoreFailure, open};
use crate::contract::{BaselinePlan, Plan};
use crate::judge::Reason;
use crate::record::{BaselineUse, Chosen, Fingerprint, Missing, Why};

/// How many records that do not fit are told of one store.
const MOST_TOLD: usize = 3;

/// For which run a baseline is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The contract's name.
    pub contract: &'a str,
    /// Its file.
    pub file: &'a Path,
    /// Its folder, to which its paths are joined.
    pub folder: &'a Path,
    /// Its key `baseline`.
    pub baseline: &'a BaselinePlan,
    /// What the run is for.
    pub plan: Plan,
    /// What the command line and the environment say about the base.
    pub stated: &'a Stated,
    /// When the run begins.
    pub now: Timestamp,
    /// What is known of the circumstances before the run, to choose among records of one commit.
    pub fingerprint: Option<&'a Fingerprint>,
}

/// Finds the record that a run is compared with, and everything else that the comparison reads. A failure to find one is an
/// answer too.
pub async fn choose(question: &Question<'_>) -> BaselineUse {
    let mut used = BaselineUse::default();
    if let Err(missing) = fill(question, &mut used).await {
        used.missing = Some(missing);
    }
    used
}

/// The contract as it is at the base, with that commit; `None` where no base or nothing there is found.
pub async fn contract_at_base(file: &Path, folder: &Path, stated: &Stated) -> Option<(String, serde_json::Value)> {
    let repository = Repository::open(folder).await.ok()??;
    // A clone with a part of the history would be asked for more, for a contract that asks for nothing.
    if stated.revision.is_none() && repository.is_shallow().await.ok()? {
        return None;
    }
    let base = line(&repository, stated, 0).await.ok()?.base?;
    let contract = around::base_contract(folder, file, Some((&repository, &base)), &mut Vec::new()).await?;
    Some((base, contract))
}

async fn fill(question: &Question<'_>, used: &mut BaselineUse) -> Result<(), Missing> {
    let unanswered =
        |problem: String| none(format!("{problem}. Without git it is not known what the change is based on"));
    let repository = Repository::open(question.folder).await.map_err(|failure| unanswered(failure.to_string()))?;
    let line = match &repository {
        Some(repository) => line(repository, question.stated, question.baseline.within.commits)
            .await
            .map_err(|failure| unanswered(failure.to_string()))?,
        None => Line {
            told: "the contract lies in no repository of git; its base is not known".to_owned(),
            ..Line::default()
        },
    };
    note(&mut used.asked, "git", line.told.clone());
    used.base_commit = line.base.clone();
    let at = repository.as_ref().zip(line.base.as_deref());
    used.base_contract = around::base_contract(question.folder, question.file, at, &mut used.asked).await;
    used.accepted = around::accepted(question, repository.as_ref(), &line, &mut used.asked).await;
    if repository.is_some() && line.base.is_none() {
        return Err(none(format!("{}; the run is compared with nothing", line.told)));
    }
    let release = around::release(question, at, &mut used.asked).await.map_err(missing)?;
    if question.plan == Plan::Release && question.baseline.release.is_some() {
        let Some(found) = release else { return Err(none(no_release(question))) };
        return take(used, question, "file", found, Why::Release);
    }
    used.release = release.map(|found| found.record);
    let places = Places { folder: question.folder, repository: repository.as_ref(), at: line.base.as_deref() };
    ask_all(question, &places, &line, used).await
}

/// Asks the stores in their order; the first that has a fitting record ends it, and so does a record that cannot be read.
async fn ask_all(
    question: &Question<'_>,
    places: &Places<'_>,
    line: &Line,
    used: &mut BaselineUse,
) -> Result<(), Missing> {
    let mut answers = Vec::new();
    for spec in &question.baseline.from {
        let asked = match open(spec, places) {
            Ok(store) => ask(store.as_ref(), question, line, places.repository.is_none()).await,
            Err(failure) => Err(failure),
        };
        let answer = match asked {
            Ok(Ok((found, why))) => return take(used, question, spec.name(), found, why),
            Ok(Err(answer)) => answer,
            Err(failure @ StoreFailure::Corrupt { .. }) => {
                note(&mut used.asked, spec.name(), failure.to_string());
                return Err(missing(failure));
            }
            Err(StoreFailure::Unavailable(text)) => text,
        };
        answers.push(format!("{}: {answer}", spec.name()));
        note(&mut used.asked, spec.name(), answer);
    }
    if answers.is_empty() {
        return Err(none("the contract names no place with baselines; write `baseline.from`".to_owned()));
    }
    let next = match question.plan {
        Plan::Baseline => "Next: keep this run with `goodput baseline save`",
        Plan::Check | Plan::Release => {
            "Next: `goodput gate --plan baseline` on the default branch, then `goodput baseline save`"
        }
    };
    Err(none(format!("no baseline of `{}` fits. {}. {next}", question.contract, answers.join(". "))))
}

/// The record of one store that fits, or what to say of those that do not.
async fn ask(
    store: &dyn Store,
    question: &Question<'_>,
    line: &Line,
    anywhere: bool,
) -> Result<Result<(Found, Why), String>, StoreFailure> {
    let mut rest = line.candidates.as_slice();
    let mut refused = Vec::new();
    // Each round leaves the commits behind that were answered for, so there are at most as many rounds as commits.
    while anywhere || !rest.is_empty() {
        let commits: Vec<String> = rest.iter().map(|candidate| candidate.commit.clone()).collect();
        let found = store.find(question.contract, &commits).await?;
        let answered = found.iter().filter_map(|found| position(rest, found)).max();
        let mut fitting = Vec::new();
        for found in found {
            let place = position(rest, &found);
            let why = match place {
                Some(index) => rest[index].why,
                None if anywhere => Why::Named,
                None => {
                    refused.push(elsewhere(&found, line));
                    continue;
                }
            };
            match refusal(question, &found, why)? {
                Some(reason) => refused.push(format!("{} {reason}", fit::of(&found.record))),
                None => fitting.push((place, found, why)),
            }
        }
        if let Some((_, found, why)) = best(fitting, question.fingerprint) {
            return Ok(Ok((found, why)));
        }
        let Some(answered) = answered else { break };
        rest = &rest[answered + 1..];
    }
    Ok(Err(nothing(&refused, line)))
}

/// Where the commit that a record was measured at lies among those that are wanted.
fn position(candidates: &[Candidate], found: &Found) -> Option<usize> {
    let commit = found.record.origin.commit.as_deref()?;
    candidates.iter().position(|candidate| candidate.commit == commit)
}

/// Why a record does not fit; an error where it cannot be read.
fn refusal(question: &Question<'_>, found: &Found, why: Why) -> Result<Option<String>, StoreFailure> {
    let corrupt = |problem| StoreFailure::Corrupt { place: found.place.clone(), problem };
    let age = age(&found.record, question.now).map_err(corrupt)?;
    Ok(unfit_here(&found.record, question.contract, why, age, question.baseline.within))
}

/// The nearest; of one commit those of the same circumstances first, then those with a headroom curve, then the newest.
fn best(
    fitting: Vec<(Option<usize>, Found, Why)>,
    fingerprint: Option<&Fingerprint>,
) -> Option<(Option<usize>, Found, Why)> {
    fitting.into_iter().min_by_key(|(place, found, _)| {
        let differs = fingerprint.is_some_and(|wanted| !matches(&found.record, wanted));
        (*place, differs, found.record.curve.is_empty(), std::cmp::Reverse(ended(&found.record).ok()))
    })
}

fn elsewhere(found: &Found, line: &Line) -> String {
    let behind = line.candidates.len().saturating_sub(1);
    format!("{} is neither of the base nor of the {behind} commits behind it", fit::of(&found.record))
}

/// What is said of a store without a fitting record.
fn nothing(refused: &[String], line: &Line) -> String {
    if refused.is_empty() {
        let behind = line.candidates.len().saturating_sub(1);
        return match &line.base {
            Some(base) => format!("no record of the base {} or of the {behind} commits behind it", short(base)),
            None => "no record".to_owned(),
        };
    }
    let more = refused.len().saturating_sub(MOST_TOLD);
    let told = refused.iter().take(MOST_TOLD).cloned().collect::<Vec<_>>().join("; ");
    if more == 0 { told } else { format!("{told}; and {more} more that do not fit") }
}

fn take(used: &mut BaselineUse, question: &Question<'_>, store: &str, found: Found, why: Why) -> Result<(), Missing> {
    let Found { record, place } = found;
    let age = age(&record, question.now)
        .map_err(|problem| missing(StoreFailure::Corrupt { place: place.clone(), problem }))?;
    note(&mut used.asked, store, format!("took {}: {place}", fit::of(&record)));
    used.chosen = Some(Chosen { store: store.to_owned(), place, why, age_s: age.as_secs() });
    used.record = Some(record);
    Ok(())
}

fn no_release(question: &Question<'_>) -> String {
    let file = question.baseline.release.as_deref().unwrap_or(Path::new("")).display();
    format!("the anchored release {file} is not there; write it with `goodput baseline promote`, and merge it")
}

fn none(note: String) -> Missing {
    Missing { reason: Reason::NoBaseline, note }
}

fn missing(failure: StoreFailure) -> Missing {
    match failure {
        corrupt @ StoreFailure::Corrupt { .. } => Missing {
            reason: Reason::BaselineCorrupt,
            note: format!("{corrupt}. It stands in place of an older one; restore it, or remove it where it is kept"),
        },
        StoreFailure::Unavailable(text) => none(text),
    }
}
