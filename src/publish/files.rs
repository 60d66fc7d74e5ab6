//! What a workflow's step writes to files that the runner reads: the job summary and the step's outputs.

use std::fs::OpenOptions;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::Path;

use super::comment::about_commit;
use super::context::Context;
use super::{Subject, Wanted};
use crate::report::{self, Frame, Limit};

/// The largest summary of a step, in bytes; of a larger one nothing at all is shown.
const LARGEST_SUMMARY: u64 = 1 << 20;

/// What is left free of it for what could not be published.
const KEPT_FREE: u64 = 16 << 10;

/// Less room than this shows nothing of use.
const LEAST_ROOM: u64 = 2 << 10;

/// The outputs that come from the result.
const SCALARS: [&str; 7] =
    ["verdict", "reason-codes", "goodput", "capacity", "baseline-goodput", "delta", "baseline-sha"];

/// The outputs that are paths of files in the run's folder.
const FILES: [(&str, &str); 3] = [("report", "summary.md"), ("result", "result.json"), ("junit", "junit.xml")];

/// Writes every output but the comment's address, which is not known yet; an output that is not known is empty.
pub(super) fn outputs(subject: &Subject<'_>, wanted: &Wanted, context: &Context) -> Result<String, String> {
    let path = context.output.as_deref().ok_or("GITHUB_OUTPUT is not set")?;
    let known = match subject {
        Subject::Run { result, .. } => report::outputs(result),
        Subject::Failure { .. } => vec![("verdict", "ERROR".to_owned())],
    };
    let mut text = assigned("exit-code", &wanted.exit_code.to_string());
    for name in SCALARS {
        let value = known.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
        text += &assigned(name, value);
    }
    for (name, file) in FILES {
        text += &assigned(name, &kept(subject, file).unwrap_or_default());
    }
    append(path, &text)?;
    Ok(format!("written to {}", path.display()))
}

/// Writes where the comment is.
pub(super) fn comment_url(url: Option<&str>, context: &Context) -> Result<(), String> {
    // That there is no file was said before.
    let Some(path) = context.output.as_deref() else { return Ok(()) };
    append(path, &assigned("comment-url", url.unwrap_or_default()))
}

/// The whole path of a file of the run, where it is there.
fn kept(subject: &Subject<'_>, name: &str) -> Option<String> {
    let Subject::Run { folder: Some(folder), .. } = subject else { return None };
    let path = std::path::absolute(folder.join(name)).ok()?;
    path.is_file().then(|| path.display().to_string())
}

/// Appends the report to the job summary.
pub(super) fn summary(subject: &Subject<'_>, wanted: &Wanted, context: &Context) -> Result<String, String> {
    let path = context.summary.as_deref().ok_or("GITHUB_STEP_SUMMARY is not set")?;
    let room = room(path).saturating_sub(KEPT_FREE);
    if room < LEAST_ROOM {
        return Err(format!("{} is full: give goodput a step of its own", path.display()));
    }
    let remarks = [wanted.remarks.clone(), about_commit(subject, context)].concat();
    let limit = Limit::Bytes(usize::try_from(room).unwrap_or(usize::MAX));
    let frame = Frame { marker: None, remarks: &remarks, run_url: context.run_url.as_deref(), limit };
    append(path, &format!("\n{}\n", subject.text(&frame)))?;
    Ok(format!("written to {}", path.display()))
}

/// Appends what could not be published to the job summary, as far as there is room.
pub(super) fn problems(problems: &[String], context: &Context) -> Result<(), String> {
    let Some(path) = context.summary.as_deref().filter(|_| !problems.is_empty()) else { return Ok(()) };
    let text = format!("\n{}\n", report::problems(problems));
    if text.len() as u64 > room(path) {
        return Err(format!("{} is full: what could not be published is told in the log alone", path.display()));
    }
    append(path, &text)
}

/// How many bytes the file may still get, less the line ends around a text.
fn room(path: &Path) -> u64 {
    let there = std::fs::metadata(path).map_or(0, |file| file.len());
    LARGEST_SUMMARY.saturating_sub(there).saturating_sub(2)
}

fn append(path: &Path, text: &str) -> Result<(), String> {
    // What is no file may never take it.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(format!("{} is no file", path.display()));
    }
    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// One output, between lines that its value cannot foresee.
fn assigned(name: &str, value: &str) -> String {
    let delimiter = delimiter(value);
    format!("{name}<<{delimiter}\n{value}\n{delimiter}\n")
}

/// A line that a value does not contain.
fn delimiter(value: &str) -> String {
    loop {
        // The standard library's hashers begin with a key of the system's randomness.
        let random = [RandomState::new(), RandomState::new()].map(|state| state.build_hasher().finish());
        let delimiter = format!("goodput_{:016x}{:016x}", random[0], random[1]);
        if !value.contains(&delimiter) {
            return delimiter;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_end_itself() {
        for value in ["", "PASS", "x\nverdict=PASS", "a\ngoodput_\nverdict<<goodput_\nPASS\ngoodput_"] {
            let text = assigned("verdict", value);
            let (head, rest) = text.split_once('\n').unwrap();
            let delimiter = head.strip_prefix("verdict<<").unwrap();
            assert_eq!(rest, format!("{value}\n{delimiter}\n"));
            assert!(!value.contains(delimiter) && delimiter.len() > 30);
        }
        let different: std::collections::BTreeSet<String> = (0..100).map(|_| delimiter("")).collect();
        assert_eq!(different.len(), 100);
    }
}
