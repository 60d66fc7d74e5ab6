//! Stored records for people: the one that a run is compared with, and the list of all.

use std::path::Path;

use serde::Serialize;

use super::change::age;
use super::figures::{UNMEASURED, per_second};
use super::layout::{Column, Page};
use crate::compare::{Trend, TrendPoint, trend};
use crate::contract::from_value;
use crate::judge::{Status, percent};
use crate::record::{BaselineRecord, BaselineUse, CapacityRecord, Why};
use crate::stats::Decision;
use crate::units::Share;

/// Heights of a small bar, from the lowest.
const BARS: [char; 5] = ['▁', '▂', '▃', '▅', '▇'];
/// What stands in place of a bar where there is no figure.
const NO_BAR: char = '·';

/// A stored record in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryRow {
    /// The store that it lies in.
    pub store: String,
    /// Where in it.
    pub place: String,
    /// Its digest.
    pub digest: String,
    /// The commit that was served.
    pub commit: Option<String>,
    /// When its run ended (RFC 3339).
    pub finished_at: String,
    /// The overall answer of its run.
    pub verdict: Status,
    /// The capacity's point estimate, in requests per second.
    pub capacity: Option<f64>,
    /// Good requests per second at the load that must hold, the mean over its trials.
    pub goodput: Option<f64>,
    /// The release that it was promoted to.
    pub release: Option<String>,
}

impl HistoryRow {
    /// What a list shows of a record.
    pub fn of(store: &str, place: &str, record: &BaselineRecord) -> Self {
        Self {
            store: store.to_owned(),
            place: place.to_owned(),
            digest: record.digest.to_string(),
            commit: record.origin.commit.clone(),
            finished_at: record.finished_at.clone(),
            verdict: record.verdict,
            capacity: record.capacity.as_ref().and_then(|capacity| capacity.point),
            goodput: goodput(record),
            release: record.release.clone(),
        }
    }
}

/// The mean goodput at the load that must hold; `None` when one of its trials has none.
fn goodput(record: &BaselineRecord) -> Option<f64> {
    let at = from_value(&record.contract, Path::new(".")).ok()?.slo.at;
    let trials = &record.steps.iter().find(|step| step.load == at)?.trials;
    let rates: Vec<f64> = trials.iter().map(|trial| trial.goodput()).collect::<Option<_>>()?;
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

/// Renders which record a run is compared with, from where, why, and what it holds.
pub fn baseline(used: &BaselineUse, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    match (&used.record, &used.chosen) {
        (Some(record), Some(chosen)) => {
            page.heading(&format!("The baseline is {}", commit(record.origin.commit.as_deref())));
            page.paragraph(&format!("{}: {}.", chosen.store, chosen.place));
            page.paragraph(&format!("It {}; it was {} old.", why(chosen.why), age(chosen.age_s)));
            content(&mut page, record);
        }
        _ => {
            page.heading("There is no baseline");
            let note = used.missing.as_ref().map(|missing| format!("{}: {}", missing.reason.code(), missing.note));
            page.paragraph(note.as_deref().unwrap_or("nothing was asked"));
        }
    }
    page.blank();
    page.paragraph("Asked:");
    for asked in &used.asked {
        page.item(&format!("{}: {}", asked.store, asked.answer));
    }
    if let Some(release) = &used.release {
        page.remark(
            &format!("The anchored release is `{}`.", release.release.as_deref().unwrap_or("without a name")),
            0,
        );
    }
    page.finish()
}

fn content(page: &mut Page, record: &BaselineRecord) {
    page.blank();
    let capacity = record.capacity.as_ref().map_or_else(|| "not searched for".to_owned(), capacity);
    page.item(&format!("capacity: {capacity}"));
    page.item(&format!("goodput at the load that must hold: {}", per_second(goodput(record))));
    let trials: usize = record.curve.iter().map(|step| step.trials.len()).sum();
    page.item(&format!("curve of headrooms: {} loads, {trials} trials", record.curve.len()));
    page.item(&format!("verdict: {}; run ended {}", record.verdict.word(), record.finished_at));
    page.item(&format!("digest {}, goodput {}", record.digest.short(), record.tool_version));
    let parts = &record.fingerprint;
    for (name, part) in [("must match", &parts.must_match), ("under test", &parts.under_test), ("noted", &parts.noted)]
    {
        for (key, value) in part {
            page.item(&format!("{name}: {key} = {value}"));
        }
    }
}

fn capacity(capacity: &CapacityRecord) -> String {
    let end = |load: Option<crate::units::Load>| load.map_or_else(|| UNMEASURED.to_owned(), |load| load.to_string());
    format!(
        "{}, holds at {}, breaks at {}",
        per_second(capacity.point),
        end(capacity.holds_at),
        end(capacity.breaks_at)
    )
}

fn why(why: Why) -> String {
    match why {
        Why::ExactBase => "was measured at the very base".to_owned(),
        Why::MergeBase => "was measured where the change left the base branch".to_owned(),
        Why::Ancestor { distance: 1 } => "was measured one commit behind the base".to_owned(),
        Why::Ancestor { distance } => format!("was measured {distance} commits behind the base"),
        Why::Release => "is the anchored release".to_owned(),
        Why::Paired => "was measured beside the change".to_owned(),
        Why::Named => "was named, and not chosen by its commit".to_owned(),
    }
}

fn commit(commit: Option<&str>) -> &str {
    commit.map_or("of no known commit", |commit| commit.get(..10).unwrap_or(commit))
}

/// A list of records, newest first, and what their capacities say together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// The contract's name.
    pub name: String,
    /// The records, newest first.
    pub rows: Vec<HistoryRow>,
    /// What the capacities of the records say together that were measured under the circumstances of the newest; of a slow
    /// decline the last five against the five oldest.
    pub trend: Trend,
}

impl History {
    /// The history of a contract's records, given newest first, at most `most` of which are listed.
    pub fn of(name: &str, records: &[(&str, &str, &BaselineRecord)], most: usize, margin: Share) -> Self {
        let newest = records.first().map(|(_, _, record)| &record.fingerprint.must_match);
        let alike = records.iter().filter(|(_, _, record)| Some(&record.fingerprint.must_match) == newest);
        let points: Vec<TrendPoint> = alike.rev().filter_map(|(_, _, record)| point(record)).collect();
        let rows = records.iter().take(most).map(|(store, place, record)| HistoryRow::of(store, place, record));
        Self { name: name.to_owned(), rows: rows.collect(), trend: trend(&points, margin) }
    }
}

/// The capacity of a record that is evidence.
fn point(record: &BaselineRecord) -> Option<TrendPoint> {
    let point = record.capacity.as_ref()?.point.filter(|_| record.invalid.is_empty())?;
    Some(TrendPoint { time: record.finished_at.clone(), commit: record.origin.commit.clone(), point })
}

/// Renders a list of records, newest first, with the way of the capacity from the oldest to the newest.
pub fn history(history: &History, width: usize, color: bool) -> String {
    let History { name, rows, trend } = history;
    let mut page = Page::new(width, color);
    if rows.is_empty() {
        page.heading(&format!("No baselines of {name} are kept"));
        page.paragraph("Next: `goodput gate --plan baseline`, then `goodput baseline save` with the run's folder.");
        return page.finish();
    }
    page.heading(&format!("Baselines of {name}, newest first"));
    page.blank();
    let column = |value: &dyn Fn(&HistoryRow) -> String| -> Vec<String> { rows.iter().map(value).collect() };
    page.table(vec![
        Column::words("ended", column(&|row| row.finished_at.get(..16).unwrap_or(&row.finished_at).replace('T', " "))),
        Column::words("commit", column(&|row| commit(row.commit.as_deref()).to_owned())),
        Column::numbers("capacity", column(&|row| per_second(row.capacity))),
        Column::numbers("goodput", column(&|row| per_second(row.goodput))),
        Column::words("verdict", column(&|row| row.verdict.word().to_owned())),
        Column::words("release", column(&|row| row.release.clone().unwrap_or_default())).ranked(2),
        Column::words("store", column(&|row| row.store.clone())).ranked(1),
        Column::words("digest", column(&|row| row.digest.chars().take(12).collect())),
    ]);
    let capacities: Vec<Option<f64>> = rows.iter().rev().map(|row| row.capacity).collect();
    if capacities.iter().flatten().count() > 1 {
        page.blank();
        page.paragraph(&format!("capacity, oldest to newest: {}", sparkline(&capacities)));
        direction(&mut page, trend);
    }
    page.finish()
}

/// Whether the capacity declines, and where its level changed.
fn direction(page: &mut Page, trend: &Trend) {
    match &trend.decline {
        Some(found) => {
            let word = match trend.decision {
                Decision::Pass => "no decline beyond the margin",
                Decision::Fail => "a decline beyond the margin",
                Decision::Undecided => "not decided",
            };
            let ends = [found.point, found.lower, found.upper].map(percent);
            page.paragraph(&format!(
                "last five against the five oldest: {} ({} … {}): {word}",
                ends[0], ends[1], ends[2]
            ));
        }
        None => page.remark("a decline is told from ten records on that were measured alike", 0),
    }
    if let Some(shift) = &trend.shift {
        let since = commit(shift.since.commit.as_deref());
        page.paragraph(&format!("the level changed by {} since {since} ({})", percent(shift.ratio), shift.since.time));
    }
}

/// One bar a value, between the smallest and the largest.
fn sparkline(values: &[Option<f64>]) -> String {
    let known = || values.iter().flatten().copied();
    let (lowest, highest) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let bar = |value: f64| {
        let height = if highest > lowest { (value - lowest) / (highest - lowest) } else { 0.5 };
        let index = (height * (BARS.len() - 1) as f64).round() as usize;
        BARS.get(index).copied().unwrap_or(NO_BAR)
    };
    values.iter().map(|value| value.map_or(NO_BAR, bar)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_go_from_the_lowest_to_the_highest_and_a_missing_figure_is_none() {
        assert_eq!(sparkline(&[Some(1.0), Some(2.0), None, Some(3.0), Some(4.0), Some(5.0)]), "▁▂·▃▅▇");
        assert_eq!(sparkline(&[Some(2.0), Some(2.0)]), "▃▃");
    }
}
