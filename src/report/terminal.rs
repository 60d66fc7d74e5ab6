//! A run's result for a terminal.

use super::figures::{UNMEASURED, check_name, grouped};
use super::layout::{Column, Page, lay_out, shortened};
use super::{change, conclusion, figures, resources, search, sweep};
use crate::judge::{Check, Verdict};
use crate::record::RunResult;

/// Renders a result for a terminal of `width` columns: the overall answer with the binding limit in a sentence, the checks,
/// the five dimensions of every step, and how far the figures can be trusted. Without `color` there is no control sequence
/// in it.
pub fn terminal(result: &RunResult, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let (status, word) = conclusion::overall(result);
    page.status_line(status, word, &result.name);
    for sentence in conclusion::sentences(result) {
        page.paragraph(&sentence);
    }
    for label in conclusion::labels(result) {
        page.paragraph(label);
    }
    if let Some(verdict) = &result.verdict {
        checks(&mut page, verdict);
        for claim in conclusion::claims(result) {
            page.remark(&claim, 0);
        }
    }
    steps(&mut page, result);
    changes(&mut page, result);
    let sampled = resources::columns(result);
    if !sampled.is_empty() {
        page.blank();
        page.table(sampled);
        page.remark(resources::LEGEND, 0);
    }
    if !result.searches.is_empty() {
        page.blank();
        page.table(search::columns(result));
    }
    footer(&mut page, result);
    page.finish()
}

/// One row per check, its note below it.
fn checks(page: &mut Page, verdict: &Verdict) {
    if verdict.checks.is_empty() {
        return;
    }
    page.blank();
    let room = if page.width() < 100 { [20, 12, 14] } else { [32, 20, 32] };
    let column = |value: fn(&Check) -> Option<String>| -> Vec<String> {
        verdict.checks.iter().map(|check| value(check).unwrap_or_else(|| UNMEASURED.to_owned())).collect()
    };
    let [names, limits, observed] =
        [column(|c| Some(check_name(&c.id))), column(|c| c.limit.clone()), column(|c| c.observed.clone())];
    let cut = |texts: &[String], room| texts.iter().map(|text| shortened(text, room)).collect();
    let lines = lay_out(
        vec![
            Column::words("check", cut(&names, room[0])),
            Column::words("limit", cut(&limits, room[1])),
            Column::words("observed", cut(&observed, room[2])),
            Column::words("interval", column(|c| c.interval.as_ref().map(interval))).ranked(2),
            Column::numbers("n", column(|c| c.samples.map(grouped))).ranked(1),
            Column::words("status", column(|c| Some(c.status.word().to_owned()))),
            Column::words("reason", column(|c| Some(c.reason.code().to_owned()))),
        ],
        page.width(),
    );
    page.table_header(&lines);
    for (index, (line, check)) in lines.rows.iter().zip(&verdict.checks).enumerate() {
        page.table_row(line, Some(check.status));
        for (what, full, room) in
            [("", &names, room[0]), ("limit ", &limits, room[1]), ("observed ", &observed, room[2])]
        {
            let whole = full.get(index).filter(|text| text.chars().count() > room);
            page.remark_if(whole.map(|text| format!("{what}{text}")).as_ref(), 2);
        }
        let is_left_out = |name: &str| lines.left_out.iter().any(|left_out| left_out == name);
        let between = check.interval.as_ref().filter(|_| is_left_out("interval"));
        let counted = check.samples.filter(|_| is_left_out("n"));
        let rest =
            [between.map(|ends| format!("interval {}", interval(ends))), counted.map(|n| format!("n {}", grouped(n)))];
        let rest: Vec<String> = rest.into_iter().flatten().collect();
        page.remark_if((!rest.is_empty()).then(|| rest.join(", ")).as_ref(), 2);
        page.remark_if(check.note.as_ref(), 2);
    }
}

fn interval(ends: &[String; 2]) -> String {
    format!("{} … {}", ends[0], ends[1])
}

/// One row per step, with what a reader must know besides below it.
fn steps(page: &mut Page, result: &RunResult) {
    if result.steps.is_empty() {
        return;
    }
    page.blank();
    let must_hold = figures::load_that_must_hold(result);
    let lines = lay_out(sweep::columns(result), page.width());
    page.table_header(&lines);
    for (line, step) in lines.rows.iter().zip(&result.steps) {
        if Some(step.load) == must_hold {
            page.strong_row(line);
        } else {
            page.table_row(line, None);
        }
        for remark in sweep::remarks(step) {
            page.remark(&remark, 4);
        }
    }
    if must_hold.is_some() {
        page.remark(&format!("{} the load that must hold", sweep::MARK), 0);
    }
}

/// One row per figure that was compared with the baseline, its note below it.
fn changes(page: &mut Page, result: &RunResult) {
    let rows = change::rows(result);
    if rows.is_empty() {
        return;
    }
    page.blank();
    let lines = lay_out(change::columns(&rows), page.width());
    page.table_header(&lines);
    for (line, change) in lines.rows.iter().zip(&rows) {
        page.table_row(line, change.gates.then_some(change.status));
        // The row of the verdict has it already.
        page.remark_if(change.note.as_ref().filter(|_| !change.gates), 2);
    }
    page.remark(change::LEGEND, 0);
}

/// What was measured, with which health, and what repeats it.
fn footer(page: &mut Page, result: &RunResult) {
    page.blank();
    for line in conclusion::notices(result).chain(conclusion::quality(result)) {
        page.paragraph(&line);
    }
    for line in change::asked(result) {
        page.remark(&line, 0);
    }
    page.remark(&conclusion::identity(result), 0);
    page.remark(&conclusion::origin(result), 0);
    if let Some(exited) = &result.endpoint.exited {
        page.paragraph(&format!("the endpoint's process ended before it was stopped: {exited}"));
    }
    if !result.endpoint.log_tail.is_empty() {
        page.heading("last lines of the endpoint's log");
        for line in &result.endpoint.log_tail {
            page.remark(line, 2);
        }
    }
}
