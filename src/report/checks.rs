//! The one table of a page: a row for each check, worst first, with what it was at the baseline where that is known.

use super::change;
use super::escape::{self, TEXT_CAP};
use super::figures::{UNMEASURED, check_name, grouped, load_that_must_hold};
use super::parts::{Part, Worth};
use crate::judge::{Check, Status, percent};
use crate::record::{Change, RunResult};

/// A figure of so many characters is never broken over two lines; longer ones are, or the table grows too wide.
const UNBROKEN: usize = 28;

/// What stands in one row, escaped.
struct Cells {
    worth: Worth,
    check: String,
    limit: String,
    observed: String,
    samples: String,
    baseline: String,
    change: String,
    status: String,
    reason: String,
}

/// A column: its title, whether it is aligned to the right, and its cell.
type Shown = (&'static str, bool, fn(&Cells) -> &str);

const COLUMNS: [Shown; 8] = [
    ("check", false, |cells| &cells.check),
    ("limit", true, |cells| &cells.limit),
    ("observed", true, |cells| &cells.observed),
    ("n", true, |cells| &cells.samples),
    ("baseline", true, |cells| &cells.baseline),
    ("change", true, |cells| &cells.change),
    ("status", false, |cells| &cells.status),
    ("reason", false, |cells| &cells.reason),
];

/// Every check, those that failed first and in each group in the contract's order. Columns that say nothing in any row are left
/// out; where there is a baseline, so is the number of requests, which the evidence tells.
pub(super) fn part(result: &RunResult) -> Part {
    let mut rows: Vec<Cells> = ordered(result).into_iter().map(|check| cells(check, result)).collect();
    let says = |column: &Shown, rows: &[Cells]| rows.iter().any(|cells| ![UNMEASURED, ""].contains(&(column.2)(cells)));
    let compared = rows.iter().any(|cells| !cells.change.is_empty() || !cells.baseline.is_empty());
    if compared {
        rows.iter_mut().for_each(|cells| cells.samples.clear());
    }
    let always = ["check", "observed", "status", "reason"];
    let columns: Vec<&Shown> =
        COLUMNS.iter().filter(|column| always.contains(&column.0) || says(column, &rows)).collect();
    let line = |cells: Vec<&str>| format!("| {} |", cells.join(" | "));
    let rule: Vec<&str> = columns.iter().map(|column| if column.1 { "--:" } else { ":--" }).collect();
    let head = format!("{}\n|{}|", line(columns.iter().map(|column| column.0).collect()), rule.join("|"));
    let is_speed = |cells: &Cells| cells.change.contains(SLOWER) || cells.change.contains(FASTER);
    let foot = if rows.iter().any(is_speed) {
        "\n\n<sub>slower and faster: the change of speed, one over the time</sub>"
    } else {
        ""
    };
    let rows = rows.iter().map(|cells| (cells.worth, line(columns.iter().map(|column| (column.2)(cells)).collect())));
    Part::of_rows("checks", head, rows.collect(), foot.to_owned())
}

/// The checks of the verdict, worst first; where two are as bad, in the contract's order.
pub(super) fn ordered(result: &RunResult) -> Vec<&Check> {
    let mut checks: Vec<&Check> = result.verdict.iter().flat_map(|verdict| &verdict.checks).collect();
    checks.sort_by_key(|check| worth(check.status));
    checks
}

fn worth(status: Status) -> Worth {
    match status {
        Status::Fail => Worth::Failed,
        Status::Unknown => Worth::Undecided,
        Status::Accepted => Worth::Accepted,
        Status::Pass => Worth::Passed,
    }
}

/// The mark of a status; a result without verdict has that of UNKNOWN.
pub(super) fn symbol(status: Option<Status>) -> &'static str {
    match status {
        Some(Status::Pass) => "✅",
        Some(Status::Fail) => "❌",
        Some(Status::Accepted) => "☑️",
        Some(Status::Unknown) | None => "⚠️",
    }
}

fn cells(check: &Check, result: &RunResult) -> Cells {
    let own = own_change(check, result);
    let beside = own.or_else(|| informing_change(check, result));
    let interval = check.interval.as_ref().map(|[lower, upper]| format!("{lower} … {upper}"));
    let load = own.and_then(|change| change.load).map(|load| format!("at {load}"));
    let observed = match own {
        Some(change) => figure(change.head.as_deref()),
        None => with_small(&figure(check.observed.as_deref()), interval.as_deref()),
    };
    let change = match (own, beside) {
        // The row's own words stand where its change has none.
        (Some(change), _) if change.ratio.is_none() => {
            with_small(&figure(check.observed.as_deref()), interval.as_deref())
        }
        (_, Some(change)) => with_small(&in_words(change), between(change).as_deref()),
        (_, None) => String::new(),
    };
    Cells {
        worth: worth(check.status),
        // The mark stands where a narrow page still shows it.
        check: format!(
            "{}&nbsp;{}",
            symbol(Some(check.status)),
            with_small(&figure(Some(&check_name(&check.id))), load.as_deref())
        ),
        limit: known(own.map(|change| format!("loss ≤ {}", change.margin)).or_else(|| check.limit.clone())),
        observed,
        samples: known(check.samples.map(grouped)),
        baseline: beside.map_or_else(String::new, |change| figure(change.base.as_deref())),
        change,
        status: check.status.word().to_owned(),
        reason: with_small(&format!("`{}`", check.reason.code()), check.note.as_deref()),
    }
}

/// The comparison that a row is about.
fn own_change<'a>(check: &Check, result: &'a RunResult) -> Option<&'a Change> {
    let metric = check.id.strip_suffix("_change")?;
    change::all(result).find(|change| change.gates && change.metric == metric)
}

/// What the figure of a row was at the baseline, where that is known of the load that must hold and decides nothing.
fn informing_change<'a>(check: &Check, result: &'a RunResult) -> Option<&'a Change> {
    let at = load_that_must_hold(result);
    change::all(result).find(|change| {
        !change.gates
            && change.metric == check.id
            && change.base.is_some()
            && (change.load.is_none() || change.load == at)
    })
}

const SLOWER: &str = "slower";
const FASTER: &str = "faster";

/// A change in a few words. That of a time is one of speed, and is called so: 10% less speed is no time that fell by 10%.
fn in_words(change: &Change) -> String {
    let Some(ratio) = change.ratio else { return UNMEASURED.to_owned() };
    let percent = percent(ratio);
    let shown = if change::is_speed(change) {
        let size = percent.trim_start_matches(['-', '+']);
        match percent.chars().next() {
            Some('-') => format!("{size} {SLOWER}"),
            Some('+') => format!("{size} {FASTER}"),
            _ => percent,
        }
    } else {
        percent
    };
    figure(Some(&shown))
}

/// The interval around a change; around one that is called slower or faster, in the same direction as that.
fn between(change: &Change) -> Option<String> {
    let [lower, upper] = change.interval?.map(percent);
    let is_slower = change::is_speed(change) && change.ratio.is_some_and(|ratio| percent(ratio).starts_with('-'));
    if is_slower {
        let turned = |text: &str| match text.strip_prefix('-') {
            Some(size) => size.to_owned(),
            None => format!("-{}", text.trim_start_matches('+')),
        };
        return Some(format!("{} … {}", turned(&upper), turned(&lower)));
    }
    Some(format!("{lower} … {upper}"))
}

/// A text with another below it in small letters.
fn with_small(shown: &str, small: Option<&str>) -> String {
    match small.filter(|small| !small.is_empty()) {
        Some(small) if small.chars().count() <= UNBROKEN => format!("{shown}<br><sub>{}</sub>", unbroken(small)),
        Some(small) => format!("{shown}<br><sub>{}</sub>", text(small)),
        None => shown.to_owned(),
    }
}

/// Escaped text on one line.
fn text(text: &str) -> String {
    escape::markdown(text, TEXT_CAP)
}

fn unbroken(shown: &str) -> String {
    text(shown).replace(' ', "&nbsp;")
}

/// A figure, or nothing where there can be none.
fn known(shown: Option<String>) -> String {
    shown.map_or_else(String::new, |shown| figure(Some(&shown)))
}

/// A figure, or the sign for what was not measured.
pub(super) fn figure(shown: Option<&str>) -> String {
    match shown {
        None => UNMEASURED.to_owned(),
        Some(shown) if shown.chars().count() <= UNBROKEN => unbroken(shown),
        Some(shown) => text(shown),
    }
}
