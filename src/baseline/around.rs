//! What a comparison reads besides the record, each from where a change cannot rewrite it: the contract at the base, the
//! anchored release, the reviewed exceptions.

use std::path::{Path, PathBuf};

use super::base::Line;
use super::choose::Question;
use super::file::{FileStore, read_bounded};
use super::git::{FileAt, Repository, short};
use super::{Found, StoreFailure};
use crate::contract::{parse, parse_acceptances, render_faults};
use crate::record::{Acceptance, Asked};

/// The largest contract or file of exceptions that is read, in bytes.
const LARGEST_TEXT: u64 = 4 << 20;

/// The contract as the base commit has it, as JSON; a note where there is none.
pub(super) async fn base_contract(
    folder: &Path,
    file: &Path,
    at: Option<(&Repository, &str)>,
    notes: &mut Vec<Asked>,
) -> Option<serde_json::Value> {
    let (repository, base) = at?;
    let path = within(folder, file);
    let text = match text_at(repository, base, &path).await {
        Ok(Some(text)) => text,
        Ok(None) => {
            note(notes, "contract", format!("{} is not there at {}", file.display(), short(base)));
            return None;
        }
        Err(problem) => {
            note(notes, "contract", problem);
            return None;
        }
    };
    match parse(&text, folder) {
        Ok(loaded) => Some(loaded.value),
        Err(faults) => {
            let first =
                faults.first().map(|fault| format!(": {}: {}", fault.pointer, fault.message)).unwrap_or_default();
            let at = short(base);
            note(notes, "contract", format!("{} at {at} cannot be read by this version{first}", file.display()));
            None
        }
    }
}

/// The record of the release that the contract names; `None` where the contract names none, or there is no such file.
pub(super) async fn release(
    question: &Question<'_>,
    at: Option<(&Repository, &str)>,
    notes: &mut Vec<Asked>,
) -> Result<Option<Found>, StoreFailure> {
    let Some(path) = &question.baseline.release else { return Ok(None) };
    let file = FileStore {
        path: path.clone(),
        within: within(question.folder, path),
        at: at.map(|(repository, commit)| (repository.clone(), commit.to_owned())),
    };
    let found = file.read().await?;
    if found.is_none() {
        note(notes, "release", format!("there is no file {}", file.place()));
    }
    Ok(found)
}

/// The reviewed exceptions: of the base, because a change must not accept its own loss; on the default branch, where everything
/// was reviewed, as the commit that is checked out has them.
pub(super) async fn accepted(
    question: &Question<'_>,
    repository: Option<&Repository>,
    line: &Line,
    notes: &mut Vec<Asked>,
) -> Vec<Acceptance> {
    let Some(path) = &question.baseline.accepted else { return Vec::new() };
    let commit = if line.on_default_branch { &line.head } else { &line.base };
    let read = match (repository, commit) {
        (Some(repository), Some(commit)) => {
            let text = text_at(repository, commit, &within(question.folder, path)).await;
            text.map(|text| (text, format!("at {}", short(commit))))
        }
        (Some(_), None) => return Vec::new(),
        (None, _) => as_it_lies(path).map(|text| (text, "as it lies there".to_owned())),
    };
    let name = path.display();
    let answer = match read {
        Ok((Some(text), place)) => match acceptances(&text) {
            Ok(accepted) => {
                let plural = if accepted.len() == 1 { "" } else { "s" };
                note(notes, "accepted", format!("{name} {place} has {} exception{plural}", accepted.len()));
                return accepted;
            }
            Err(problem) => format!("{name} {place} cannot be read, so that nothing is accepted: {problem}"),
        },
        Ok((None, place)) => format!("{name} is not there {place}"),
        Err(problem) => format!("{problem}; nothing is accepted"),
    };
    note(notes, "accepted", answer);
    Vec::new()
}

fn acceptances(text: &str) -> Result<Vec<Acceptance>, String> {
    let read = parse_acceptances(text);
    let losses =
        read.map_err(|faults| render_faults(&faults, "", text).lines().next().unwrap_or_default().to_owned())?;
    Ok(losses.into_iter().map(Acceptance::from).collect())
}

async fn text_at(repository: &Repository, commit: &str, path: &Path) -> Result<Option<String>, String> {
    let place = || format!("{} at {}", path.display(), short(commit));
    match repository.file_at(commit, path, LARGEST_TEXT).await {
        Ok(FileAt::Absent) => Ok(None),
        Ok(FileAt::Content(text)) => String::from_utf8(text).map(Some).map_err(|_| format!("{} is no UTF-8", place())),
        Ok(FileAt::Unreadable(problem)) => Err(format!("{} {problem}", place())),
        Err(failure) => Err(failure.to_string()),
    }
}

fn as_it_lies(path: &Path) -> Result<Option<String>, String> {
    let content = read_bounded(path, LARGEST_TEXT).map_err(|problem| format!("{} {problem}", path.display()))?;
    content.map(String::from_utf8).transpose().map_err(|_| format!("{} is no UTF-8", path.display()))
}

/// A path that was joined to a folder, as it was written.
pub(super) fn within(folder: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(folder).unwrap_or(path).to_owned()
}

pub(super) fn note(notes: &mut Vec<Asked>, store: &str, answer: String) {
    notes.push(Asked { store: store.to_owned(), answer });
}
