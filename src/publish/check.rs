//! The check run: the answer beside the commit, for those who want it there too. It is decoration: the job's own end is the gate.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::comment::about_commit;
use super::context::Context;
use super::sticky::page;
use super::{ALLOWANCE, Subject, Wanted};
use crate::github::{Failure, Matter, plain};
use crate::judge::Status;
use crate::report::{self, Annotation, Frame, Level, Limit};

/// The longest name of a check.
const LONGEST_NAME: usize = 255;

/// The longest text of a check.
const LONGEST_TEXT: usize = 65_535;

/// The most annotations of one request.
const MOST_ANNOTATIONS: usize = 50;

#[derive(Debug, Deserialize)]
struct CheckRun {
    html_url: Option<String>,
}

/// Writes the check run; says where.
pub(super) async fn check(subject: &Subject<'_>, wanted: &Wanted, context: &Context) -> Result<String, String> {
    let site = context.site.as_ref().map_err(Failure::to_string)?;
    let head = context.commit.as_deref().ok_or("the event names no commit")?;
    let body = body(subject, wanted, context, head);
    let right = if context.is_read_only {
        "the token of a pull request from a fork or of Dependabot may only read, even where the job has `permissions: { checks: \
         write }`; a second workflow, on `workflow_run`, can write the check run (docs/github.md)"
    } else {
        "give the job `permissions: { checks: write }`"
    };
    let matter = Matter { what: "to write a check run", right };
    let question = async {
        let mut session = site.session(ALLOWANCE)?;
        // Made once only: that of a later run at the commit takes its place.
        session.send::<CheckRun>(Method::POST, &["check-runs"], &body, &matter).await
    };
    let written = site.in_time(question).await.map_err(|failure: Failure| failure.to_string())?;
    Ok(written.html_url.map_or_else(|| "written".to_owned(), |url| page(&url)))
}

fn body(subject: &Subject<'_>, wanted: &Wanted, context: &Context, head: &str) -> Value {
    let remarks = [wanted.remarks.clone(), about_commit(subject, context)].concat();
    let run_url = context.run_url.as_deref();
    let frame = Frame { marker: None, remarks: &remarks, run_url, limit: Limit::Characters(LONGEST_TEXT) };
    let (conclusion, title) = match subject.overall() {
        Some(Status::Pass | Status::Accepted) => ("success", "PASS"),
        Some(Status::Fail) => ("failure", "FAIL"),
        Some(Status::Unknown) => ("neutral", "UNKNOWN"),
        None => ("failure", "no verdict"),
    };
    let mut body = json!({
        "name": name(subject.contract(), wanted.key.as_deref()),
        "head_sha": head,
        "status": "completed",
        "conclusion": conclusion,
        "output": { "title": title, "summary": subject.text(&frame), "annotations": annotations(subject) },
    });
    if let Some(url) = run_url {
        body["details_url"] = url.into();
    }
    if let Subject::Run { result, .. } = subject {
        for (key, time) in [("started_at", &result.started_at), ("completed_at", &result.finished_at)] {
            if let Ok(time) = time.parse::<jiff::Timestamp>() {
                body[key] = time.to_string().into();
            }
        }
    }
    body
}

/// The name under which branch protection knows it: one line, and the same for every run.
fn name(contract: &str, key: Option<&str>) -> String {
    let key = key.map_or_else(String::new, |key| format!(" ({})", plain(key)));
    format!("goodput: {}{key}", plain(contract)).chars().take(LONGEST_NAME).collect()
}

/// Annotations with a place; the others are in the text.
fn annotations(subject: &Subject<'_>) -> Vec<Value> {
    let Subject::Run { result, contract: Some((path, text)), .. } = subject else { return Vec::new() };
    let placed = |annotation: Annotation| {
        let line = annotation.line?;
        let level = match annotation.level {
            Level::Error => "failure",
            Level::Warning => "warning",
            Level::Notice => "notice",
        };
        Some(json!({
            "path": path,
            "start_line": line,
            "end_line": line,
            "annotation_level": level,
            "title": annotation.title.chars().take(LONGEST_NAME).collect::<String>(),
            "message": annotation.message,
        }))
    };
    report::annotations(result, Some(text)).into_iter().filter_map(placed).take(MOST_ANNOTATIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_one_short_line_as_its_name() {
        assert_eq!(name("tiny", None), "goodput: tiny");
        assert_eq!(name("a\r\nb", Some("h200\u{1b}[0m")), "goodput: a b (h200 [0m)");
        assert_eq!(name(&"ü".repeat(10_000), Some(&"x".repeat(10_000))).chars().count(), 255);
    }
}
