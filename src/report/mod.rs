//! From result to text: terminal, Markdown, JSON, JUnit XML, annotations and outputs. A renderer knows formats and no
//! rules; what it shows was decided before.
//!
//! What a run says is put into words and columns once, for all formats, and escaped once per format, in `escape` alone.

mod annotations;
mod audit;
mod baseline;
mod calibration;
mod capacity;
mod change;
mod checks;
mod comment;
mod compare;
mod conclusion;
mod escape;
mod figures;
mod junit;
mod layout;
mod markdown;
mod outputs;
mod parts;
mod place;
mod plan;
mod problems;
mod resources;
mod search;
mod smoke;
mod sweep;
mod terminal;

#[cfg(test)]
mod expected;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use annotations::{Annotation, Level, annotations};
pub use audit::audit;
pub use baseline::{History, HistoryRow, baseline, history};
pub use calibration::calibration;
pub use comment::{Frame, comment, failure, note};
pub use compare::{CompareReport, ComparedRun, ReplyPair, compare};
pub use escape::plain;
pub use junit::junit;
pub use markdown::markdown;
pub use outputs::outputs;
pub use parts::Limit;
pub use plan::{PlanReport, cost, plan};
pub use problems::problems;
pub use smoke::{ProbeAnswer, SmokeReport, SmokeRequest, SmokeSent, smoke};
pub use terminal::terminal;

/// Renders a [`RunResult`](crate::record::RunResult), [`PlanReport`] or [`SmokeReport`] as indented JSON that ends with a
/// newline. A value that JSON cannot hold gives an object with the one member `error`; these three always can be held.
pub fn json<T: Serialize>(value: &T) -> String {
    let text = serde_json::to_string_pretty(value)
        .unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string());
    text + "\n"
}
