//! A run's result as parts of a page of GitHub-flavoured Markdown, for a comment, a job summary or a file.

use super::comment::{Frame, comment};
use super::escape::{self, TEXT_CAP};
use super::figures::{Percentile, UNMEASURED, grouped, largest, quantile};
use super::layout::Column;
use super::parts::{Limit, Part, Worth, folded};
use super::{change, checks, conclusion, figures, resources, search, sweep};
use crate::record::{Change, ProbeKind, Readiness, Reading, RunResult, StepRecord};

/// Sweep columns above this rank are left to the folded tables, so that the table fits a comment.
const SHOWN_RANK: u8 = 6;
/// The longest sentence.
const SENTENCE_CAP: usize = 600;

/// Renders all of a result as Markdown, as [`comment`] does where there is room for everything.
pub fn markdown(result: &RunResult) -> String {
    let run_url = result.origin.run_url.as_deref();
    comment(result, &Frame { marker: None, remarks: &[], run_url, limit: Limit::Characters(usize::MAX) })
}

/// The parts of a page below its headline, in their order.
pub(super) fn parts(result: &RunResult, run_url: Option<&str>) -> Vec<Part> {
    let sentences = conclusion::sentences(result).into_iter().enumerate().map(|(index, sentence)| {
        let sentence = escape::markdown(&sentence, SENTENCE_CAP);
        if index == 0 { format!("**{sentence}**") } else { sentence }
    });
    let labels = conclusion::labels(result).into_iter().map(|label| format!("> {}", text(label)));
    let mut parts: Vec<Part> =
        sentences.chain(labels).map(|text| Part::whole("a sentence", Worth::Answer, text)).collect();
    parts.push(checks::part(result));
    parts.push(steps(result));
    parts.push(remarks(result));
    let notices = conclusion::notices(result).map(|notice| (Worth::Remark, format!("- {}", text(&notice))));
    parts.push(Part::of_rows("notices", String::new(), notices.collect(), String::new()));
    parts.push(Part::whole("how far the figures can be trusted", Worth::Remark, small_print(result, run_url)));
    let sections = [
        ("the endpoint's log", log(result)),
        ("the other changes", changes(result)),
        ("how the run was made", Some(about(result))),
        ("the quantiles", quantiles(result)),
        ("the evidence", evidence(result)),
    ];
    parts.extend(sections.into_iter().map(|(name, text)| Part::whole(name, Worth::Folded, text.unwrap_or_default())));
    parts
}

/// Escaped text on one line.
fn text(text: &str) -> String {
    escape::markdown(text, TEXT_CAP)
}

/// The five dimensions of every load. The row of the load that must hold stands out.
fn steps(result: &RunResult) -> Part {
    if result.steps.is_empty() {
        return Part::default();
    }
    let mut columns = sweep::columns(result);
    columns.retain(|column| column.rank <= SHOWN_RANK);
    narrow(&mut columns);
    let must_hold = figures::load_that_must_hold(result);
    let rows = result.steps.iter().enumerate().map(|(index, step)| {
        let cells = cells(&columns, index);
        if Some(step.load) == must_hold {
            (Worth::MainLoad, row(&cells.iter().map(|cell| format!("**{cell}**")).collect::<Vec<_>>()))
        } else {
            (Worth::Load, row(&cells))
        }
    });
    Part::of_rows("loads", table_head(&columns), rows.collect(), String::new())
}

/// Leaves out columns, the least telling first, until the table fits a comment.
fn narrow(columns: &mut Vec<Column>) {
    /// Characters in the width of a comment.
    const ROOM: usize = 115;
    /// The width of a cell's borders, in characters.
    const BORDERS: usize = 4;
    let length = |text: &str| text.trim().chars().count();
    // A title of two words is broken.
    let title = |title: &str| title.split(' ').map(length).max().unwrap_or(0);
    let width = |column: &Column| {
        let cells = column.cells.iter().map(|cell| length(cell)).max().unwrap_or(0);
        BORDERS + cells.max(title(column.group)).max(length(&column.name))
    };
    while columns.iter().map(width).sum::<usize>() > ROOM {
        let Some(last) = columns.iter().map(|column| column.rank).max().filter(|rank| *rank > 0) else { return };
        let Some(at) = columns.iter().rposition(|column| column.rank == last) else { return };
        columns.remove(at);
    }
}

/// A table of columns; cells are escaped here.
fn table(columns: &[Column]) -> String {
    let count = columns.first().map_or(0, |column| column.cells.len());
    let rows = (0..count).map(|index| row(&cells(columns, index)));
    [table_head(columns)].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// Titles and rule. The title of a group stands above that of its column, which keeps the column narrow.
fn table_head(columns: &[Column]) -> String {
    let title = |column: &Column| match (column.group, text(&column.name)) {
        ("", name) => name,
        (group, name) if name.is_empty() => group.to_owned(),
        (group, name) => format!("{group}<br>{name}"),
    };
    let rule = columns.iter().map(|column| if column.right { "--:" } else { ":--" }).collect::<Vec<_>>();
    format!("{}\n|{}|", row(&columns.iter().map(title).collect::<Vec<_>>()), rule.join("|"))
}

fn cells(columns: &[Column], index: usize) -> Vec<String> {
    let cell = |column: &Column| column.cells.get(index).map_or_else(String::new, |c| checks::figure(Some(c.trim())));
    columns.iter().map(cell).collect()
}

fn row(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// The figures that were compared and decide nothing.
fn changes(result: &RunResult) -> Option<String> {
    let informing: Vec<&Change> = change::all(result).filter(|change| !change.gates).collect();
    let body = || format!("{}\n\n<sub>{}</sub>", table(&change::columns(&informing)), text(change::LEGEND));
    (!informing.is_empty()).then(|| folded("Other changes since the baseline", &body(), false))
}

fn bullets(items: impl Iterator<Item = String>) -> String {
    items.map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
}

/// What a reader must know about single steps.
fn remarks(result: &RunResult) -> Part {
    let known = result.steps.iter().map(|step| (step.load, sweep::remarks(step)));
    let rows = known.filter(|(_, remarks)| !remarks.is_empty()).map(|(load, remarks)| {
        (Worth::Remark, format!("- **{}**: {}", text(&load.to_string()), text(&remarks.join("; "))))
    });
    Part::of_rows("remarks on loads", String::new(), rows.collect(), String::new())
}

/// What was measured of what was planned, how far the load generator can be trusted, of which commit it was and where the rest is.
fn small_print(result: &RunResult, run_url: Option<&str>) -> String {
    let mark = figures::load_that_must_hold(result).filter(|_| !result.steps.is_empty());
    let mark = mark.map(|_| format!("{} the load that must hold", sweep::MARK));
    let quality: Vec<String> = conclusion::quality(result).iter().map(|line| text(line)).collect();
    let source = [commit(result), run_url.and_then(|url| escape::link("whole report and artifacts", url))];
    let source: Vec<String> = source.into_iter().flatten().collect();
    let lines = [mark.unwrap_or_default(), quality.join(" · "), source.join(" · ")];
    let lines: Vec<String> =
        lines.into_iter().filter(|line| !line.is_empty()).map(|line| format!("<sub>{line}</sub>")).collect();
    lines.join("<br>\n")
}

/// The commit that was measured, left to be linked.
fn commit(result: &RunResult) -> Option<String> {
    let commit = result.origin.commit.as_deref().map(change::short)?;
    let is_one = !commit.is_empty() && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let changed = if result.origin.changed_files == Some(true) { ", with changes that are not committed" } else { "" };
    is_one.then(|| format!("commit {commit}{changed}"))
}

/// The quantiles of every metric, folded away.
fn quantiles(result: &RunResult) -> Option<String> {
    let columns = quantile_columns(result);
    let is_empty = columns.first().is_none_or(|column| column.cells.is_empty());
    (!is_empty).then(|| folded("Quantiles of every metric", &table(&columns), false))
}

/// Searches, resources and the evidence of every objective, folded away.
fn evidence(result: &RunResult) -> Option<String> {
    let mut tables = Vec::new();
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
    (!tables.is_empty()).then(|| folded("Evidence", &tables.join("\n\n"), false))
}

fn quantile_columns(result: &RunResult) -> Vec<Column> {
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
    let digests = conclusion::digests(result).map(|(name, digest)| format!("{name} {}", escape::digest(digest)));
    let seeds = conclusion::seeds(result).map(|seeds| text(&seeds));
    let mut items = vec![
        seeds.into_iter().chain(digests).collect::<Vec<_>>().join(", "),
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
    folded("About this run", &body, false)
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

/// The last lines of the endpoint's log, folded away, unless it is where a reader finds why nothing was measured. Inside `pre`
/// only markup counts, and there is none left.
fn log(result: &RunResult) -> Option<String> {
    let lines = &result.endpoint.log_tail;
    let shown: Vec<String> = lines.iter().map(|line| text(line)).collect();
    let open = matches!(result.endpoint.ready, Readiness::NotReady { .. });
    let body = format!("<pre>\n{}\n</pre>", shown.join("\n"));
    (!shown.is_empty()).then(|| folded("Last lines of the endpoint's log", &body, open))
}
