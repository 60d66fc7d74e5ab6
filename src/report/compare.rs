//! Two stored runs held against each other: what must match, what changed, and what was answered (`goodput compare`).

use serde::Serialize;

use super::change::{self, short};
use super::figures::UNMEASURED;
use super::layout::{Page, lay_out};
use crate::judge::{Reason, Status};
use crate::record::{BaselineRecord, Change, Comparison, Difference};
use crate::units::Share;

/// Characters of a reply that are shown.
const SHOWN_TEXT: usize = 400;

/// Two stored runs held against each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareReport {
    /// The run that stands for how it was.
    pub base: ComparedRun,
    /// The run that stands for how it is.
    pub head: ComparedRun,
    /// FAIL if a change that gates is shown to be a loss beyond the margin, else UNKNOWN if one is not decided, nothing can be
    /// compared, a run is no evidence or the second contract asks for less, else PASS.
    pub overall: Status,
    /// The largest loss that still passes.
    pub margin: Share,
    /// What was found.
    pub comparison: Comparison,
    /// Replies to the same case on both sides; `null` where one side kept none.
    pub replies: Option<Vec<ReplyPair>>,
}

/// What a reader must know of one of the runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedRun {
    /// Its file.
    pub file: String,
    /// The digest of its record.
    pub digest: String,
    /// The commit that was served.
    pub commit: Option<String>,
    /// When it ended (RFC 3339).
    pub finished_at: String,
    /// What made it void or incomplete.
    pub invalid: Vec<String>,
}

impl ComparedRun {
    /// Of a record that was read from `file`.
    pub fn of(file: String, record: &BaselineRecord) -> Self {
        Self {
            file,
            digest: record.digest.to_string(),
            commit: record.origin.commit.clone(),
            finished_at: record.finished_at.clone(),
            invalid: record.invalid.clone(),
        }
    }
}

/// The first kept reply to one case on each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplyPair {
    /// The case.
    pub case: String,
    /// The answer, with reasoning, refusal and tool calls below it; `null` when that side kept none.
    pub base: Option<String>,
    /// The same of the other side.
    pub head: Option<String>,
}

impl CompareReport {
    /// The overall answer of a comparison of two runs, both of which must be evidence.
    pub fn overall_of(comparison: &Comparison, is_evidence: bool) -> Status {
        let gating = || comparison.changes.iter().filter(|change| change.gates);
        let any = |status| gating().any(|change| change.status == status);
        let is_open = !is_evidence || !comparison.weakened.is_empty();
        if any(Status::Fail) && is_evidence {
            Status::Fail
        } else if is_open || !comparison.mismatches.is_empty() || any(Status::Unknown) || gating().next().is_none() {
            Status::Unknown
        } else {
            Status::Pass
        }
    }
}

/// Renders two runs for a terminal of `width` columns.
pub fn compare(report: &CompareReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    page.status_line(Some(report.overall), report.overall.word(), "change from the first run to the second");
    for (which, run) in [("base", &report.base), ("head", &report.head)] {
        page.paragraph(&run_line(which, run));
    }
    let comparison = &report.comparison;
    differences(&mut page, "what must match does not, so that nothing is compared", &comparison.mismatches);
    differences(&mut page, "under test", &comparison.under_test);
    let gating = comparison.changes.iter().filter(|change| change.gates);
    let rows: Vec<&Change> = gating.chain(comparison.changes.iter().filter(|change| !change.gates)).collect();
    changes(&mut page, &rows);
    weakened(&mut page, comparison);
    match &report.replies {
        Some(pairs) => replies(&mut page, pairs),
        None => {
            page.blank();
            page.remark("no replies to show side by side: `samples.keep` in the contract keeps some", 0);
        }
    }
    page.finish()
}

fn run_line(which: &str, run: &ComparedRun) -> String {
    let commit =
        run.commit.as_deref().map_or_else(|| "commit not known".to_owned(), |c| format!("commit {}", short(c)));
    let invalid =
        if run.invalid.is_empty() { String::new() } else { format!("; no evidence: {}", run.invalid.join(", ")) };
    format!("{which}: {}, {commit}, ended {}, record {}{invalid}", run.file, run.finished_at, short(&run.digest))
}

fn differences(page: &mut Page, heading: &str, differences: &[Difference]) {
    if differences.is_empty() {
        return;
    }
    page.heading(heading);
    for difference in differences {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
        page.item(&format!("{}: {} → {}", difference.field, side(&difference.base), side(&difference.head)));
    }
}

fn changes(page: &mut Page, rows: &[&Change]) {
    if rows.is_empty() {
        return;
    }
    page.blank();
    let lines = lay_out(change::columns(rows), page.width());
    page.table_header(&lines);
    for (line, change) in lines.rows.iter().zip(rows) {
        page.table_row(line, change.gates.then_some(change.status));
        let reason = (change.reason != Reason::Held).then(|| change.reason.code().to_owned());
        let told: Vec<String> = [reason, change.note.clone()].into_iter().flatten().collect();
        page.remark_if((!told.is_empty()).then(|| told.join(": ")).as_ref(), 2);
    }
    page.remark(change::LEGEND, 0);
}

fn weakened(page: &mut Page, comparison: &Comparison) {
    if comparison.weakened.is_empty() {
        return;
    }
    page.heading("the contract asks for less");
    for place in &comparison.weakened {
        page.item(&place.what);
    }
}

/// How many replies are the same, and the others side by side.
fn replies(page: &mut Page, pairs: &[ReplyPair]) {
    let differ: Vec<&ReplyPair> = pairs.iter().filter(|pair| pair.base != pair.head).collect();
    page.heading("replies");
    page.paragraph(&format!("{} of {} cases were answered alike.", pairs.len() - differ.len(), pairs.len()));
    for pair in differ {
        page.item(&pair.case);
        for (side, text) in [("base", &pair.base), ("head", &pair.head)] {
            page.remark(&format!("{side}: {}", text.as_deref().map_or_else(|| UNMEASURED.to_owned(), cut)), 4);
        }
    }
}

fn cut(text: &str) -> String {
    let kept: String = text.chars().take(SHOWN_TEXT).collect();
    if kept.len() < text.len() { format!("{kept}…") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Weakening;

    fn found(statuses: &[Status]) -> Comparison {
        let change = |status: &Status| Change {
            metric: "goodput".to_owned(),
            load: None,
            base: None,
            head: None,
            ratio: Some(1.0),
            interval: Some([1.0, 1.0]),
            confidence: None,
            method: None,
            margin: Share::ONE.rest(),
            base_trials: 3,
            head_trials: 3,
            status: *status,
            reason: Reason::Held,
            significant: false,
            material: false,
            gates: true,
            note: None,
        };
        Comparison { changes: statuses.iter().map(change).collect(), ..Comparison::default() }
    }

    #[test]
    fn only_evidence_by_the_same_contract_passes() {
        let (pass, fail) = (found(&[Status::Pass]), found(&[Status::Pass, Status::Fail, Status::Unknown]));
        assert_eq!(CompareReport::overall_of(&pass, true), Status::Pass);
        assert_eq!(CompareReport::overall_of(&fail, true), Status::Fail);
        for comparison in [&pass, &fail] {
            assert_eq!(CompareReport::overall_of(comparison, false), Status::Unknown);
        }
        assert_eq!(CompareReport::overall_of(&found(&[]), true), Status::Unknown);
        let less = vec![Weakening { pointer: "/slo".to_owned(), what: "less".to_owned() }];
        let weaker = Comparison { weakened: less, ..pass.clone() };
        assert_eq!(CompareReport::overall_of(&weaker, true), Status::Unknown);
        let differs = vec![Difference { field: "gpu".to_owned(), base: None, head: None }];
        let other = Comparison { mismatches: differs, ..pass };
        assert_eq!(CompareReport::overall_of(&other, true), Status::Unknown);
    }
}
