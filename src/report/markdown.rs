//! A run's result as GitHub-flavoured Markdown, for a comment or a job summary.

use super::escape::{self, TEXT_CAP};
use super::figures::{Percentile, UNMEASURED, check_name, grouped, largest, quantile};
use super::layout::Column;
use super::{change, conclusion, figures, resources, search, sweep};
use crate::judge::{Check, Status, Verdict};
use crate::record::{Change, ProbeKind, Reading, RunResult, StepRecord};

/// Sweep columns above this rank are left to the folded tables, so that the table fits a comment.
const SHOWN_RANK: u8 = 6;

/// Renders a result as Markdown: heading with the overall answer, the binding limit in a sentence, checks, sweep, and the
/// rest folded away.
pub fn markdown(result: &RunResult) -> String {
    let (status, word) = conclusion::overall(result);
    let mut parts = vec![format!("## {} {word}: {}", symbol(status), text(&result.name))];
    parts.extend(conclusion::sentences(result).iter().map(|sentence| text(sentence)));
    parts.extend(conclusion::labels(result).iter().map(|label| format!("> {}", text(label))));
    if let Some(verdict) = &result.verdict {
        parts.push(checks(verdict));
    }
    if !result.steps.is_empty() {
        parts.push(steps(result));
        parts.extend(remarks(result));
    }
    parts.extend(changes(result));
    parts.extend(conclusion::notices(result).map(|notice| text(&notice)));
    parts.push(conclusion::quality(result).iter().map(|line| text(line)).collect::<Vec<_>>().join(" · "));
    parts.extend(evidence(result));
    parts.push(about(result));
    parts.extend(log(result));
    parts.retain(|part| !part.is_empty());
    format!("{}\n", parts.join("\n\n"))
}

/// Escaped text on one line.
fn text(text: &str) -> String {
    escape::markdown(text, TEXT_CAP)
}

/// A figure that must not be broken over two lines.
fn figure(text: &str) -> String {
    escape::markdown(text, TEXT_CAP).replace(' ', "&nbsp;")
}

fn symbol(status: Option<Status>) -> &'static str {
    match status {
        Some(Status::Pass) => "✅",
        Some(Status::Fail) => "❌",
        Some(Status::Accepted) => "☑️",
        Some(Status::Unknown) | None => "❔",
    }
}

fn checks(verdict: &Verdict) -> String {
    let mut lines = vec![
        "| check | limit | observed | interval | n | status | reason |".to_owned(),
        "|:--|:--|--:|:--|--:|:--|:--|".to_owned(),
    ];
    lines.extend(verdict.checks.iter().map(check_row));
    lines.join("\n")
}

fn check_row(check: &Check) -> String {
    let shown = |value: Option<&String>| value.map_or_else(|| UNMEASURED.to_owned(), |value| figure(value));
    let interval = check.interval.as_ref().map(|[lower, upper]| format!("{lower} … {upper}"));
    let note = check.note.as_ref().map_or_else(String::new, |note| format!("<br><sub>{}</sub>", text(note)));
    format!(
        "| {} | {} | {} | {} | {} | {} {} | `{}`{note} |",
        text(&check_name(&check.id)),
        shown(check.limit.as_ref()),
        shown(check.observed.as_ref()),
        shown(interval.as_ref()),
        shown(check.samples.map(grouped).as_ref()),
        symbol(Some(check.status)),
        check.status.word(),
        check.reason.code(),
    )
}

fn steps(result: &RunResult) -> String {
    let mut columns = sweep::columns(result);
    columns.retain(|column| column.rank <= SHOWN_RANK);
    let table = table(&columns);
    match figures::load_that_must_hold(result) {
        Some(_) => format!("{table}\n\n<sub>{} the load that must hold</sub>", sweep::MARK),
        None => table,
    }
}

/// A table of columns; cells are escaped here.
fn table(columns: &[Column]) -> String {
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let head = |column: &Column| format!("{} {}", column.group, column.name).trim().to_owned();
    let rule = columns.iter().map(|column| if column.right { "--:" } else { ":--" }).collect::<Vec<_>>();
    let mut lines = vec![row(columns.iter().map(head).collect()), format!("|{}|", rule.join("|"))];
    for index in 0..columns.first().map_or(0, |column| column.cells.len()) {
        let cell = |column: &Column| column.cells.get(index).map_or_else(String::new, |cell| figure(cell.trim()));
        lines.push(row(columns.iter().map(cell).collect()));
    }
    lines.join("\n")
}

/// The figures that were compared: those of the verdict, and folded away all others.
fn changes(result: &RunResult) -> Option<String> {
    let rows = change::rows(result);
    let (gating, informing): (Vec<&Change>, Vec<&Change>) = rows.into_iter().partition(|change| change.gates);
    let mut parts = Vec::new();
    if !gating.is_empty() {
        parts.push(table(&change::columns(&gating)));
    }
    if !informing.is_empty() {
        let body = format!("{}\n\n<sub>{}</sub>", table(&change::columns(&informing)), text(change::LEGEND));
        parts.push(folded("Other changes since the baseline", &body));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn bullets(items: impl Iterator<Item = String>) -> String {
    items.map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
}

/// What a reader must know about single steps.
fn remarks(result: &RunResult) -> Option<String> {
    let known = result.steps.iter().map(|step| (step.load, sweep::remarks(step)));
    let list = bullets(
        known
            .filter(|(_, remarks)| !remarks.is_empty())
            .map(|(load, remarks)| format!("**{}**: {}", text(&load.to_string()), text(&remarks.join("; ")))),
    );
    (!list.is_empty()).then_some(list)
}

fn folded(summary: &str, body: &str) -> String {
    format!("<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>")
}

/// The quantiles of every metric and the evidence of every objective, folded away.
fn evidence(result: &RunResult) -> Option<String> {
    let mut tables = Vec::new();
    let quantiles = quantiles(result);
    if quantiles.first().is_some_and(|column| !column.cells.is_empty()) {
        tables.push(table(&quantiles));
    }
    if !result.searches.is_empty() {
        tables.push(table(&search::columns(result)));
    }
    let sampled = resources::columns(result);
    if !sampled.is_empty() {
        tables.push(format!("{}\n\n<sub>{}</sub>", table(&sampled), text(resources::LEGEND)));
    }
    let evidence = sweep::evidence(result);
    if evidence.first().is_some_and(|column| !column.cells.is_empty()) {
        tables.push(table(&evidence));
    }
    (!tables.is_empty()).then(|| folded("Quantiles and evidence", &tables.join("\n\n")))
}

fn quantiles(result: &RunResult) -> Vec<Column> {
    let metrics = |step: &StepRecord| -> Vec<(String, u64)> {
        let times = step.metrics.iter().map(|(name, found)| (name.clone(), found.count));
        times.chain(step.ratios.iter().map(|(name, found)| (name.clone(), found.count))).collect()
    };
    let rows: Vec<_> = result
        .steps
        .iter()
        .flat_map(|step| metrics(step).into_iter().map(move |(name, count)| (step, name, count)))
        .collect();
    let mut columns = vec![
        Column::words("load", rows.iter().map(|(step, ..)| step.load.to_string()).collect()),
        Column::words("metric", rows.iter().map(|(_, name, _)| name.clone()).collect()),
        Column::numbers("n", rows.iter().map(|(.., count)| grouped(*count)).collect()),
    ];
    for percentile in Percentile::ALL {
        let cells = rows.iter().map(|(step, name, _)| quantile(step, name, percentile)).collect();
        columns.push(Column::numbers(percentile.name(), cells));
    }
    columns.push(Column::numbers("max", rows.iter().map(|(step, name, _)| largest(step, name)).collect()));
    columns
}

/// How the run was made, folded away.
fn about(result: &RunResult) -> String {
    let endpoint = &result.endpoint;
    let mut items = vec![
        text(&conclusion::identity(result)),
        text(&conclusion::origin(result)),
        format!("endpoint {}, {}", text(&endpoint.url), text(&endpoint.protocol)),
    ];
    items.extend(
        endpoint.ready_after_ns.map(|ns| format!("first output {} after launch", crate::units::format_nanos(ns))),
    );
    items.extend(endpoint.exited.as_ref().map(|how| format!("its process ended before it was stopped: {}", text(how))));
    items.extend(change::asked(result).iter().map(|line| text(line)));
    items.extend(conclusion::claims(result).iter().map(|claim| text(claim)));
    let mut body = bullets(items.into_iter());
    if !result.probes.is_empty() {
        body.push_str("\n\n");
        body.push_str(&probes(result));
    }
    folded("About this run", &body)
}

fn probes(result: &RunResult) -> String {
    let mut columns = vec![
        Column::words("probe", result.probes.iter().map(|probe| probe.name.clone()).collect()),
        Column::numbers(
            "before",
            result.probes.iter().map(|probe| reading(probe.kind, probe.before.as_ref())).collect(),
        ),
        Column::numbers("after", result.probes.iter().map(|probe| reading(probe.kind, probe.after.as_ref())).collect()),
    ];
    let changes = result.probes.iter().map(|probe| {
        let value = |reading: &Option<Reading>| reading.as_ref().and_then(|reading| reading.value);
        if probe.kind == ProbeKind::Unchanged {
            return String::new();
        }
        let change = value(&probe.after).zip(value(&probe.before)).map(|(after, before)| after - before);
        change.filter(|change| *change >= 0.0).map_or_else(|| UNMEASURED.to_owned(), |change| change.to_string())
    });
    columns.push(Column::numbers("change", changes.collect()));
    let limits = result.probes.iter().map(|probe| probe.max_increase.map_or_else(String::new, |max| max.to_string()));
    columns.push(Column::numbers("may rise by", limits.collect()));
    table(&columns)
}

/// What was read; of what must stay the same, who it was.
fn reading(kind: ProbeKind, reading: Option<&Reading>) -> String {
    match reading {
        None => UNMEASURED.to_owned(),
        Some(Reading { value: Some(_), series, .. }) if kind == ProbeKind::Unchanged => {
            series.iter().map(|series| series.of.as_str()).collect::<Vec<_>>().join(", ")
        }
        Some(Reading { value: Some(value), .. }) => value.to_string(),
        Some(Reading { failure, .. }) => failure.clone().unwrap_or_else(|| UNMEASURED.to_owned()),
    }
}

/// The last lines of the endpoint's log, folded away. Inside `pre` only markup counts, and there is none left.
fn log(result: &RunResult) -> Option<String> {
    let lines = &result.endpoint.log_tail;
    let shown: Vec<String> = lines.iter().map(|line| text(line)).collect();
    (!shown.is_empty())
        .then(|| folded("Last lines of the endpoint's log", &format!("<pre>\n{}\n</pre>", shown.join("\n"))))
}
