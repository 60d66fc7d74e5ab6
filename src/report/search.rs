//! The searches for the capacity as a table that every format can show.

use super::figures::{UNMEASURED, grouped};
use super::layout::Column;
use crate::record::{RunResult, SearchEnd};
use crate::units::Rate;

/// One row per schedule: where it held, where it broke, and how its search ended.
pub(super) fn columns(result: &RunResult) -> Vec<Column> {
    let searches = &result.searches;
    let load = |load: Option<Rate>| load.map_or_else(|| UNMEASURED.to_owned(), |load| load.to_string());
    let trials = |steps: &[crate::record::StepRecord]| steps.iter().map(|step| step.trials.len() as u64).sum::<u64>();
    vec![
        Column::numbers("seed", searches.iter().map(|search| search.seed.to_string()).collect()),
        Column::numbers("trials", searches.iter().map(|search| grouped(trials(&search.steps))).collect()),
        Column::numbers("holds at", searches.iter().map(|search| load(search.holds_at)).collect()),
        Column::numbers("breaks at", searches.iter().map(|search| load(search.breaks_at)).collect()),
        Column::words("search", searches.iter().map(|search| end(search.end).to_owned()).collect()),
    ]
}

fn end(end: SearchEnd) -> &'static str {
    match end {
        SearchEnd::Bracketed => "bracketed",
        SearchEnd::HoldsThroughout => "holds throughout the range",
        SearchEnd::BreaksThroughout => "breaks throughout the range",
        SearchEnd::Unfinished => "not finished",
    }
}
