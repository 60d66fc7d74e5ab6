//! What a contract plans to do, and which of its objectives that can decide (`goodput validate`).

use serde::Serialize;

use super::figures::{UNMEASURED, check_name, grouped, long_time};
use super::layout::{Column, Page, lay_out};
use super::sweep::MARK;
use crate::schedule::TrialCounts;
use crate::units::{Digest, Load};

/// A contract's plan, before any load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanReport {
    /// The contract's name.
    pub name: String,
    /// The steps, ascending by load.
    pub steps: Vec<PlanStep>,
    /// Requests of all steps, warm-ups and drains included; `null` in a closed loop, where the endpoint's speed decides.
    pub total_requests: Option<u64>,
    /// Time under load of all steps, in nanoseconds; waiting for the last replies may add to it.
    pub total_time_ns: u64,
    /// SHA-256 over all planned trials.
    pub plan_digest: Digest,
    /// SHA-256 over seed, cases and payloads.
    pub workload_digest: Digest,
    /// Cases of the workload.
    pub cases: usize,
    /// What must hold, in the contract's order.
    pub objectives: Vec<ObjectiveRow>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanStep {
    /// What is asked of the endpoint.
    pub load: Load,
    /// Whether this is the load that must hold.
    pub must_hold: bool,
    /// Requests of each segment of a trial; `null` in a closed loop.
    pub requests: Option<TrialCounts>,
    /// Time under load, in nanoseconds.
    pub load_time_ns: u64,
}

/// Whether the plan can decide an objective.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveRow {
    /// The objective's name: `ttft_p95`.
    pub id: String,
    /// Its limit, as shown: `≤ 3s`.
    pub limit: String,
    /// Measured requests at the load that must hold; `null` in a closed loop.
    pub requests: Option<u64>,
    /// The fewest requests, none of which misses the limit, that give a PASS; `null` when no number does.
    pub smallest_sample: Option<u64>,
    /// Whether the plan has that many; `null` when the number of requests is not known before.
    pub reached: Option<bool>,
    /// What else to know, or what to change.
    pub note: Option<String>,
}

/// Renders a plan for a terminal of `width` columns.
pub fn plan(report: &PlanReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    page.heading(&report.name);
    page.paragraph(&summary(report));
    steps(&mut page, report);
    objectives(&mut page, report);
    page.blank();
    let digests = format!("plan {}, workload {}", report.plan_digest.short(), report.workload_digest.short());
    page.remark(&digests, 0);
    page.finish()
}

fn summary(report: &PlanReport) -> String {
    let counted = |count: usize, one: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {one}{plural}", grouped(count as u64))
    };
    let requests = report.total_requests.map_or_else(
        || "as many requests as the clients get through".to_owned(),
        |total| format!("{} requests", grouped(total)),
    );
    format!(
        "{}, {} of {}, {} under load.",
        counted(report.steps.len(), "step"),
        requests,
        counted(report.cases, "case"),
        long_time(report.total_time_ns)
    )
}

fn steps(page: &mut Page, report: &PlanReport) {
    let load = |step: &PlanStep| format!("{} {}", if step.must_hold { MARK } else { " " }, step.load);
    let segment = |count: fn(&TrialCounts) -> u64| -> Vec<String> {
        let shown = |step: &PlanStep| step.requests.as_ref().map(count).map_or_else(|| UNMEASURED.to_owned(), grouped);
        report.steps.iter().map(shown).collect()
    };
    let mut columns = vec![Column::words("load", report.steps.iter().map(load).collect())];
    if report.steps.iter().any(|step| step.requests.is_some()) {
        columns.push(Column::numbers("warm-up", segment(|counts| counts.warm_up)));
        columns.push(Column::numbers("window", segment(|counts| counts.window)));
        columns.push(Column::numbers("drain", segment(|counts| counts.drain)));
    }
    columns.push(Column::numbers("under load", report.steps.iter().map(|step| long_time(step.load_time_ns)).collect()));
    page.blank();
    page.table(columns);
    if report.steps.iter().any(|step| step.must_hold) {
        page.remark(&format!("{MARK} the load that must hold"), 0);
    }
    if report.steps.iter().any(|step| step.requests.is_some()) {
        page.remark("warm-up, window and drain are counted in requests, as many at every load", 0);
    }
}

fn objectives(page: &mut Page, report: &PlanReport) {
    let column = |value: fn(&ObjectiveRow) -> Option<String>| -> Vec<String> {
        report.objectives.iter().map(|row| value(row).unwrap_or_else(|| UNMEASURED.to_owned())).collect()
    };
    let decides = |reached: bool| if reached { "yes" } else { "no" }.to_owned();
    let columns = vec![
        Column::words("objective", column(|row| Some(check_name(&row.id)))),
        Column::words("limit", column(|row| Some(row.limit.clone()))),
        Column::numbers("requests", column(|row| row.requests.map(grouped))),
        Column::numbers("needed", column(|row| row.smallest_sample.map(grouped))),
        Column::words(
            "can pass",
            report.objectives.iter().map(|row| row.reached.map_or_else(|| UNMEASURED.to_owned(), decides)).collect(),
        ),
    ];
    page.blank();
    let lines = lay_out(columns, page.width());
    page.table_header(&lines);
    for (line, row) in lines.rows.iter().zip(&report.objectives) {
        page.table_row(line, None);
        page.remark_if(row.note.as_ref(), 2);
    }
}
