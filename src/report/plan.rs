//! What a contract plans to do, what that costs, and what it can decide (`goodput validate`).

use serde::Serialize;

use super::figures::{UNMEASURED, check_name, grouped, long_time};
use super::layout::{Column, Page, lay_out};
use super::sweep::MARK;
use crate::contract::Plan;
use crate::judge::Claim;
use crate::judge::planning::{
    Change, ComparisonForecast, Fit, Forecast, ObjectiveForecast, SearchForecast, Span, StepForecast,
};
use crate::schedule::TrialCounts;
use crate::units::Digest;

/// A contract's plan, before any load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanReport {
    /// The contract's name.
    pub name: String,
    /// Cases of the workload.
    pub cases: usize,
    /// What the plan costs and what it can decide.
    #[serde(flatten)]
    pub forecast: Forecast,
    /// SHA-256 over all planned trials.
    pub plan_digest: Digest,
    /// SHA-256 over seed, cases and payloads.
    pub workload_digest: Digest,
}

/// Renders a plan for a terminal of `width` columns.
pub fn plan(report: &PlanReport, width: usize, color: bool) -> String {
    let forecast = &report.forecast;
    let mut page = Page::new(width, color);
    page.heading(&report.name);
    page.paragraph(&summary(report));
    steps(&mut page, &forecast.steps);
    if let Some(searching) = &forecast.search {
        search(&mut page, searching);
    }
    if let Some(comparing) = &forecast.comparison {
        comparison(&mut page, comparing);
    }
    budget(&mut page, forecast);
    objectives(&mut page, forecast);
    others(&mut page, forecast);
    page.blank();
    let digests = format!("plan {}, workload {}", report.plan_digest.short(), report.workload_digest.short());
    page.remark(&digests, 0);
    page.finish()
}

/// What a plan costs, in one line.
pub fn cost(forecast: &Forecast) -> String {
    let Forecast { plan, total, budget, .. } = forecast;
    let (trials, time) = (range(total.trials, grouped), range(total.load_time_ns, long_time));
    let plural = if total.trials.most == 1 { "" } else { "s" };
    format!(
        "plan {}, {trials} trial{plural}, {time} under load, of at most {}",
        plan.name(),
        long_time(budget.budget_ns)
    )
}

fn summary(report: &PlanReport) -> String {
    let counted = |count: usize, one: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {one}{plural}", grouped(count as u64))
    };
    let Forecast { plan, claim, steps, search, total, .. } = &report.forecast;
    let requests = total.requests.map_or_else(
        || "as many requests as the clients get through".to_owned(),
        |requests| format!("{} requests", range(requests, grouped)),
    );
    let searched = if search.is_some() { " and a search" } else { "" };
    format!(
        "Plan {}: {}{searched}, {} trials, {requests} of {}, {} under load. {}",
        plan.name(),
        counted(steps.len(), "step"),
        range(total.trials, grouped),
        counted(report.cases, "case"),
        range(total.load_time_ns, long_time),
        claimed(*claim)
    )
}

/// What a PASS at the load that must hold will say.
fn claimed(claim: Claim) -> &'static str {
    match claim {
        Claim::ThisRun => "A PASS speaks of this schedule (`this_run`).",
        Claim::TypicalRun => "A PASS speaks of a typical run of this length (`typical_run`).",
        Claim::LongRun => {
            "A PASS speaks of the long run (`long_run`), and needs a warm-up of three times the median E2E."
        }
    }
}

/// `3–8`, or one number where both are shown alike.
fn range(span: Span, show: impl Fn(u64) -> String) -> String {
    let (least, most) = (show(span.least), show(span.most));
    if least == most { least } else { format!("{least} – {most}") }
}

fn steps(page: &mut Page, steps: &[StepForecast]) {
    let load = |step: &StepForecast| format!("{} {}", if step.must_hold { MARK } else { " " }, step.load);
    let segment = |count: fn(&TrialCounts) -> u64| -> Vec<String> {
        let shown =
            |step: &StepForecast| step.requests.as_ref().map(count).map_or_else(|| UNMEASURED.to_owned(), grouped);
        steps.iter().map(shown).collect()
    };
    let column = |value: fn(&StepForecast) -> String| -> Vec<String> { steps.iter().map(value).collect() };
    let mut columns = vec![Column::words("load", steps.iter().map(load).collect())];
    let is_open = steps.iter().any(|step| step.requests.is_some());
    if is_open {
        columns.push(Column::numbers("warm-up", segment(|counts| counts.warm_up)).ranked(1));
        columns.push(Column::numbers("window", segment(|counts| counts.window)));
        columns.push(Column::numbers("drain", segment(|counts| counts.drain)).ranked(1));
    }
    columns.push(Column::numbers("trials", column(|step| range(step.trials, grouped))));
    columns.push(Column::numbers("under load", column(|step| range(step.load_time_ns, long_time))));
    page.blank();
    page.table(columns);
    if steps.iter().any(|step| step.must_hold) {
        page.remark(&format!("{MARK} the load that must hold"), 0);
    }
    if is_open {
        page.remark("warm-up, window and drain are the requests of one trial, as many at every load", 0);
    }
}

fn search(page: &mut Page, search: &SearchForecast) {
    page.blank();
    let seeds = if search.seeds == 1 { "1 schedule".to_owned() } else { format!("{} schedules", search.seeds) };
    page.paragraph(&format!(
        "Search from {} to {}, to {}, on {seeds}: about {} trials, {} under load.",
        search.from,
        search.to,
        search.precision,
        range(search.trials, grouped),
        range(search.load_time_ns, long_time)
    ));
    if let Some(at) = search.at_load {
        let text = format!(
            "about {} trials in {} if the capacity is {}, the load that must hold",
            at.trials,
            long_time(at.load_time_ns),
            at.capacity
        );
        page.remark(&text, 2);
    }
    page.remark_if(search.note.as_ref(), 2);
}

/// What comparing with a baseline costs.
fn comparison(page: &mut Page, comparison: &ComparisonForecast) {
    let of = |trials: Span, what: &str| (trials.most > 0).then(|| format!("{} trials {what}", range(trials, grouped)));
    let parts: Vec<String> = [
        of(comparison.against, "at the capacity of the baseline, where there is one"),
        of(comparison.beside, "of the endpoint without the change, in turn with those above"),
        of(comparison.around, "around the capacity, by which later runs are compared"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let text = match parts.is_empty() {
        true => "Compared with the baseline by the trials above.".to_owned(),
        false => {
            format!("Comparison: {}; {} under load.", parts.join(", "), range(comparison.load_time_ns, long_time))
        }
    };
    page.blank();
    page.paragraph(&text);
}

fn budget(page: &mut Page, forecast: &Forecast) {
    let budget = &forecast.budget;
    let most = long_time(forecast.total.load_time_ns.most);
    let first = long_time(budget.first_look_ns);
    let change = alternatives(&budget.changes);
    let fits = match budget.fit {
        Fit::Whole => "all of it fits".to_owned(),
        Fit::Fewest => format!("it fits if few trials are enough; for all of it, {most}, write {change}"),
        Fit::FirstLook => format!(
            "the first look at the load that must hold fits ({first}), and not all of the rest; for all of it, {most}, write {change}"
        ),
        Fit::TooSmall => format!(
            "it ends before the first look at the load that must hold, which takes {first}, so that nothing can be decided there; write {change}"
        ),
    };
    page.blank();
    page.paragraph(&format!("Budget of the plan {}: {}; {fits}.", forecast.plan.name(), long_time(budget.budget_ns)));
}

/// Changes of which any one is enough.
fn alternatives(changes: &[Change]) -> String {
    let texts: Vec<String> = changes.iter().map(Change::text).collect();
    if texts.is_empty() { "a shorter trial or fewer loads".to_owned() } else { texts.join(", or ") }
}

fn objectives(page: &mut Page, forecast: &Forecast) {
    let rows = &forecast.objectives;
    let column = |value: fn(&ObjectiveForecast) -> Option<String>| -> Vec<String> {
        rows.iter().map(|row| value(row).unwrap_or_else(|| UNMEASURED.to_owned())).collect()
    };
    let mut names = column(|row| Some(check_name(&row.id)));
    let mut limits = column(|row| Some(row.limit.clone()));
    let mut requests = column(|row| row.requests.map(grouped));
    let mut needed = column(|row| Some(grouped(row.smallest_sample)));
    let mut may_miss = column(|row| row.may_miss.map(grouped));
    let mut decides = column(|row| row.can_pass.map(yes_or_no));
    if let Some(floor) = &forecast.capacity {
        names.push("capacity".to_owned());
        limits.push(format!("≥ {}", floor.at_least));
        for column in [&mut requests, &mut needed, &mut may_miss] {
            column.push(UNMEASURED.to_owned());
        }
        decides.push(floor.can_pass.map_or_else(|| UNMEASURED.to_owned(), yes_or_no));
    }
    let columns = vec![
        Column::words("objective", names),
        Column::words("limit", limits),
        Column::numbers("requests", requests),
        Column::numbers("needed", needed),
        Column::numbers("may miss", may_miss).ranked(1),
        Column::words("can pass", decides),
    ];
    page.blank();
    let lines = lay_out(columns, page.width());
    page.table_header(&lines);
    for (index, line) in lines.rows.iter().enumerate() {
        page.table_row(line, None);
        match rows.get(index) {
            Some(row) => page.remark_if(remark(row).as_ref(), 2),
            None => page.remark_if(forecast.capacity.as_ref().map(|floor| &floor.note), 2),
        }
    }
    if rows.iter().any(|row| !row.pooled) {
        page.remark("requests are those of one trial; a success rate counts those of all trials together", 0);
    }
}

fn yes_or_no(can_pass: bool) -> String {
    if can_pass { "yes" } else { "no" }.to_owned()
}

/// What to know of an objective, and what to change.
fn remark(row: &ObjectiveForecast) -> Option<String> {
    let mut parts = row.notes.clone();
    if !row.changes.is_empty() {
        parts.push(format!("write {}", alternatives(&row.changes)));
    } else if row.can_pass == Some(false) {
        parts.push("no trial that a contract may ask for can decide it; lower what it asks".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn others(page: &mut Page, forecast: &Forecast) {
    page.blank();
    for other in &forecast.others {
        let fits = match other.fit {
            Fit::Whole => "all of it fits into its budget",
            Fit::Fewest => "it fits into its budget if few trials are enough",
            Fit::FirstLook => "not all of it fits into its budget",
            Fit::TooSmall => "its budget ends before the first look",
        };
        let text = format!(
            "--plan {}: {} trials, {} under load; {fits}",
            other.plan.name(),
            range(other.cost.trials, grouped),
            range(other.cost.load_time_ns, long_time)
        );
        page.remark(&text, 0);
    }
    if forecast.search.is_none() && forecast.plan != Plan::Check {
        page.remark("without a `search` in `traffic` the capacity is told from the listed loads alone", 0);
    }
}
