//! What is shown beside the lines of the contract: the verdict, and the rows that do not pass.

use super::figures::check_name;
use super::{checks, conclusion, escape, place};
use crate::contract::line_of;
use crate::judge::{Check, Status};
use crate::record::RunResult;

/// How loudly something is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// What failed.
    Error,
    /// What was not decided.
    Warning,
    /// What only informs.
    Notice,
}

/// Something that is told about a line of the contract, as plain text on one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// How loudly.
    pub level: Level,
    /// The contract's line, from 1; `None` where its text is not known.
    pub line: Option<u32>,
    /// What it is about, in a few words.
    pub title: String,
    /// What is to be told, at most 4,096 bytes of it.
    pub message: String,
}

/// More than ten of a level are not shown in one step of a job.
const MOST: usize = 10;
/// Longer messages are cut by the runner.
const MESSAGE_BYTES: usize = 4_096;
const TITLE_BYTES: usize = 255;

/// The verdict, and after it the rows that do not pass, worst first; at most ten in all. The lines are those of `contract`, the
/// text of the contract that the run was made by.
pub fn annotations(result: &RunResult, contract: Option<&str>) -> Vec<Annotation> {
    let line = |pointer: &str| contract.and_then(|text| line_of(text, pointer));
    let (status, word) = conclusion::overall(result);
    let verdict = Annotation {
        level: status.map_or(Level::Warning, level),
        line: line(place::of_verdict(result)),
        title: escape::line(&format!("goodput {word}: {}", result.name), TITLE_BYTES),
        message: escape::line(&conclusion::sentences(result).join(" "), MESSAGE_BYTES),
    };
    let rows = checks::ordered(result).into_iter().filter(|check| check.status != Status::Pass);
    let rows = rows.map(|check| Annotation {
        level: level(check.status),
        line: line(&place::pointer(result, &check.id)),
        title: escape::line(&format!("{}: {}", check_name(&check.id), check.status.word()), TITLE_BYTES),
        message: escape::line(&told(check), MESSAGE_BYTES),
    });
    [verdict].into_iter().chain(rows).take(MOST).collect()
}

fn level(status: Status) -> Level {
    match status {
        Status::Fail => Level::Error,
        Status::Unknown => Level::Warning,
        Status::Accepted | Status::Pass => Level::Notice,
    }
}

/// A row in one line: `broken: 812 ms (774 ms … 845 ms), limit ≤ 500ms; 41 of 300 requests are above the limit`.
pub(super) fn told(check: &Check) -> String {
    let interval = check.interval.as_ref().map_or_else(String::new, |[low, high]| format!(" ({low} … {high})"));
    let observed = check.observed.as_ref().map(|observed| format!("{observed}{interval}"));
    let limit = check.limit.as_ref().map(|limit| format!("limit {limit}"));
    let figures: Vec<String> = [observed, limit].into_iter().flatten().collect();
    let figures = (!figures.is_empty()).then(|| figures.join(", "));
    let words: Vec<String> = [figures, check.note.clone()].into_iter().flatten().collect();
    match words.as_slice() {
        [] => check.reason.code().to_owned(),
        words => format!("{}: {}", check.reason.code(), words.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::judge::Reason;
    use crate::report::samples;

    const CONTRACT: &str = "version: 1\nname: gamma\nslo:\n  objectives:\n    - { metric: ttft, percentile: 95, at_most: 500ms }\n    - { metric: e2e, percentile: 95, at_most: 5s }\n    - metric: success_rate\n      at_least: 99%\n  at_load: 20/s\nstability:\n  - name: restart_count\n";

    fn annotated() -> RunResult {
        let mut result = samples::fail();
        result.contract = json!({
            "slo": {
                "objectives": [
                    { "metric": "ttft", "percentile": 95, "at_most": "500ms" },
                    { "metric": "e2e", "percentile": 95, "at_most": "5s" },
                    { "metric": "success_rate", "at_least": "99%" },
                ],
                "at_load": "20/s",
            },
            "stability": [{ "name": "restart_count" }],
        });
        result
    }

    #[test]
    fn the_verdict_comes_first_and_then_what_is_worst() {
        let found = annotations(&annotated(), Some(CONTRACT));
        let shown: Vec<(Level, Option<u32>, &str)> =
            found.iter().map(|found| (found.level, found.line, found.title.as_str())).collect();
        assert_eq!(
            shown,
            [
                (Level::Error, Some(9), "goodput FAIL: gamma-26b-chat"),
                (Level::Error, Some(5), "TTFT P95: FAIL"),
                (Level::Error, Some(1), "attainment: FAIL"),
                (Level::Error, Some(11), "restart_count: FAIL"),
                (Level::Warning, Some(7), "success rate: UNKNOWN"),
                (Level::Warning, Some(1), "oom_count: UNKNOWN"),
            ]
        );
        assert_eq!(
            found[1].message,
            "broken: 812 ms (774 ms … 845 ms), limit ≤ 500ms; 41 of 300 requests are above the limit; 8 or fewer would \
             pass, 22 or more fail"
        );
        assert!(annotations(&annotated(), None).iter().all(|found| found.line.is_none()));
        assert!(annotations(&annotated(), Some("a: [")).iter().all(|found| found.line.is_none()));
    }

    #[test]
    fn the_levels_are_those_of_the_statuses() {
        for (result, level) in [
            (samples::pass(), Level::Notice),
            (samples::unknown(), Level::Warning),
            (RunResult { verdict: None, ..samples::fail() }, Level::Warning),
        ] {
            assert_eq!(annotations(&result, None)[0].level, level);
        }
        let mut accepted = samples::pass();
        if let Some(check) = accepted.verdict.as_mut().and_then(|verdict| verdict.checks.first_mut()) {
            (check.status, check.reason) = (Status::Accepted, Reason::Accepted);
        }
        let levels: Vec<Level> = annotations(&accepted, None).iter().map(|found| found.level).collect();
        assert_eq!(levels, [Level::Notice, Level::Notice]);
    }

    #[test]
    fn there_are_at_most_ten_of_one_bounded_line_each() {
        let mut result = samples::fail();
        let verdict = result.verdict.as_mut().expect("a verdict");
        let row = Check { note: Some("\u{1b}[31mé\r\n".repeat(300_000)), ..verdict.checks[0].clone() };
        verdict.checks = vec![row; 500];
        result.name = "::error::\n".repeat(100_000);
        let found = annotations(&result, Some(CONTRACT));
        assert_eq!(found.len(), 10);
        for annotation in found {
            assert!(annotation.message.len() <= 4_096 && annotation.title.len() <= 255);
            assert!(!annotation.message.contains(char::is_control) && !annotation.title.contains(char::is_control));
        }
    }
}
