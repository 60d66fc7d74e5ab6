//! What changed since the baseline, and with what a run was compared: sentences and a table that every format can show.

use super::figures::{UNMEASURED, check_name, load_that_must_hold};
use super::layout::Column;
use crate::contract::BaselinePlan;
use crate::judge::{Status, percent};
use crate::record::{BaselineUse, Change, Chosen, Difference, RunResult, Why};
use crate::units::Share;

/// How many differences under test are told in a sentence.
const TOLD: usize = 4;
/// Characters of a digest or a commit that people are shown.
const SHORT: usize = 12;

/// With what the run was compared and what came out, or why nothing could be compared.
pub(super) fn sentences(result: &RunResult) -> Vec<String> {
    let Some(used) = &result.baseline else { return Vec::new() };
    let mut sentences = Vec::new();
    if let Some(missing) = &used.missing {
        sentences.push(format!("Not compared with a baseline: {}.", missing.note.trim_end_matches('.')));
    }
    if let Some(chosen) = &used.chosen {
        sentences.push(compared(result, used, chosen));
    }
    sentences.extend(too_small(result));
    sentences.extend(under_test(result));
    sentences.extend(since_release(result, used));
    sentences
}

/// Which baseline was taken and why, its commit and age, and what the main figure did.
fn compared(result: &RunResult, used: &BaselineUse, chosen: &Chosen) -> String {
    if chosen.why == Why::Paired {
        let main = main_in_words(result);
        return format!(
            "Compared with the endpoint without the change, measured beside it{main}; where its capacity lies was not compared."
        );
    }
    let commit = used.record.as_ref().and_then(|record| record.origin.commit.as_deref()).map(short);
    let commit = commit.map_or_else(String::new, |commit| format!(" at {commit}"));
    let (main, old) = (main_in_words(result), age(chosen.age_s));
    if result.comparison.as_ref().is_some_and(|found| !found.mismatches.is_empty()) {
        return format!(
            "Not compared with the baseline{commit} ({}, {old} old, store {}): it was measured under other circumstances or limits.",
            why(chosen.why),
            chosen.store
        );
    }
    format!("Compared with the baseline{commit} ({}, {old} old, store {}){main}.", why(chosen.why), chosen.store)
}

/// Every figure that was compared.
pub(super) fn all(result: &RunResult) -> impl Iterator<Item = &Change> {
    result.comparison.iter().flat_map(|found| &found.changes)
}

/// Whether a change is one of speed, the inverse of a time.
pub(super) fn is_speed(change: &Change) -> bool {
    !["capacity", "goodput"].contains(&change.metric.as_str())
}

/// The change of the figure that says most: the capacity more than goodput at a load that is below it.
pub(super) fn main(result: &RunResult) -> Option<&Change> {
    ["capacity", "goodput"].into_iter().find_map(|metric| {
        all(result).find(|change| change.metric == metric && change.gates && change.interval.is_some())
    })
}

fn main_in_words(result: &RunResult) -> String {
    main(result).map_or_else(String::new, |change| format!(": {}", in_words(change)))
}

/// `capacity -3.2% (-4.1% … -2.0%, margin 5%)`.
fn in_words(change: &Change) -> String {
    let interval =
        change.interval.map_or_else(String::new, |[low, high]| format!("{} … {}, ", percent(low), percent(high)));
    let ratio = change.ratio.map_or_else(|| UNMEASURED.to_owned(), percent);
    let at = change.load.map_or_else(String::new, |load| format!(" at {load}"));
    format!("{}{at} {ratio} ({interval}margin {})", check_name(&change.metric), change.margin)
}

fn why(why: Why) -> String {
    match why {
        Why::ExactBase => "the very base of the change".to_owned(),
        Why::MergeBase => "where the change left the base branch".to_owned(),
        Why::Ancestor { distance: 1 } => "1 commit before the base".to_owned(),
        Why::Ancestor { distance } => format!("{distance} commits before the base"),
        Why::Release => "the anchored release".to_owned(),
        Why::Paired => "measured beside the change".to_owned(),
        Why::Named => "named on the command line".to_owned(),
    }
}

/// An age in the unit that people would take.
pub(super) fn age(seconds: i64) -> String {
    let (minute, hour, day) = (60, 3_600, 86_400);
    let counted = |count: i64, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
    match seconds {
        s if s < 0 => format!("minus {}", age(-s)),
        s if s < minute => counted(s, "second"),
        s if s < hour => counted(s / minute, "minute"),
        s if s < 2 * day => counted(s / hour, "hour"),
        s => counted(s / day, "day"),
    }
}

/// The beginning of a commit or digest.
pub(super) fn short(text: &str) -> String {
    text.chars().take(SHORT).collect()
}

/// That the gate cannot see a loss of about the margin, by what the endpoint against itself showed; of the figures that decide.
fn too_small(result: &RunResult) -> Option<String> {
    let calibration = result.calibration.as_ref()?;
    let now = result.fingerprint.as_ref()?;
    if calibration.must_match != now.must_match {
        return Some("The calibration was made under other circumstances and says nothing here.".to_owned());
    }
    let at = load_that_must_hold(result);
    let margin = margin(result)?;
    let blind =
        calibration.rows.iter().filter(|row| row.metric == "capacity" || row.load == at).find(|row| {
            row.deviation.is_some() && row.smallest_drop.is_none_or(|drop| drop.ppm() > SEEN * margin.ppm())
        })?;
    let seen = blind.smallest_drop.map_or_else(|| "not even half".to_owned(), |drop| format!("only {drop}"));
    Some(format!(
        "The margin of {margin} is too small for this gate: of {} it finds {seen} in four of five comparisons, by what the endpoint \
         showed against itself.",
        check_name(&blind.metric)
    ))
}

/// A loss of so many margins must be found in four of five comparisons. What is just beyond the margin never is: a loss must be shown
/// to be beyond it.
const SEEN: u32 = 2;

/// The margin that the run was judged by.
fn margin(result: &RunResult) -> Option<Share> {
    let written = result.contract.pointer("/baseline/margin").and_then(serde_json::Value::as_str);
    written.map_or_else(|| Some(BaselinePlan::default().margin), |text| Share::parse(text).ok())
}

fn under_test(result: &RunResult) -> Option<String> {
    let differences = &result.comparison.as_ref()?.under_test;
    let told: Vec<String> = differences.iter().take(TOLD).map(difference).collect();
    let more = differences.len().saturating_sub(TOLD);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!told.is_empty()).then(|| format!("Under test: {}{more}.", told.join(", ")))
}

fn difference(difference: &Difference) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
    format!("{} from {} to {}", difference.field, side(&difference.base), side(&difference.head))
}

/// The slow decline that a margin for each change lets through.
fn since_release(result: &RunResult, used: &BaselineUse) -> Option<String> {
    let change = result.comparison.as_ref()?.since_release.as_ref().filter(|change| change.interval.is_some())?;
    let release = used.release.as_ref().and_then(|record| record.release.clone()).unwrap_or_default();
    let warning = match change.status {
        Status::Fail => "; many small losses add up to more than the margin",
        _ => "",
    };
    Some(format!("Since the release {release}: {}{warning}.", in_words(change)))
}

/// One row for each figure that was compared: those of the verdict first, then the others.
pub(super) fn columns(changes: &[&Change]) -> Vec<Column> {
    let text = |of: &dyn Fn(&Change) -> Option<String>| -> Vec<String> {
        changes.iter().map(|change| of(change).unwrap_or_else(|| UNMEASURED.to_owned())).collect()
    };
    vec![
        Column::words("change of", text(&|c| Some(check_name(&c.metric)))),
        Column::words("at", text(&|c| c.load.map(|load| load.to_string()))),
        Column::numbers("baseline", text(&|c| c.base.clone())).ranked(2),
        Column::numbers("now", text(&|c| c.head.clone())).ranked(2),
        Column::numbers("change", text(&|c| c.ratio.map(percent))),
        Column::words("interval", text(&|c| c.interval.map(|[a, b]| format!("{} … {}", percent(a), percent(b)))))
            .ranked(1),
        Column::numbers("margin", text(&|c| Some(c.margin.to_string()))).ranked(3),
        Column::words("status", text(&|c| Some(standing(c)))),
    ]
}

/// The status, in brackets where it only informs, and whether the change is real and whether it matters.
fn standing(change: &Change) -> String {
    let word = change.status.word();
    let word = if change.gates { word.to_owned() } else { format!("({word})") };
    match (change.significant, change.material) {
        (true, true) => format!("{word}, real and large"),
        (true, false) if change.status == Status::Pass => format!("{word}, real and small"),
        (true, false) => format!("{word}, real"),
        (false, _) => word,
    }
}

/// The rows of the table, those of the verdict first.
pub(super) fn rows(result: &RunResult) -> Vec<&Change> {
    all(result).filter(|change| change.gates).chain(all(result).filter(|change| !change.gates)).collect()
}

/// Where the record was taken from, and what the stores before it said.
pub(super) fn asked(result: &RunResult) -> Vec<String> {
    let Some(used) = &result.baseline else { return Vec::new() };
    let mut lines: Vec<String> = Vec::new();
    if let (Some(chosen), Some(record)) = (&used.chosen, &used.record) {
        lines.push(format!("baseline {} from {}", short(record.digest.as_str()), chosen.place));
    }
    lines.extend(used.asked.iter().map(|asked| format!("store {}: {}", asked.store, asked.answer)));
    lines
}

/// What a speed or a capacity is called; a latency's row speaks of speed.
pub(super) const LEGEND: &str =
    "changes are those of capacity, goodput and speed: less is worse; in brackets, what only informs";
