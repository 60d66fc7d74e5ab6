//! How the capacity went over many runs (method, section 10.4): it warns, and gates nothing.

use serde::Serialize;

use super::change::limit;
use crate::stats::{Decision, Estimate, change_point, decide_ratio, rank_interval};
use crate::units::Share;

/// Runs that are looked at.
const LAST: usize = 30;
/// Runs on either side of which a decline is told.
const ENDS: usize = 5;
/// The level of each bound.
const ALPHA: f64 = 0.05;

/// The capacity that one run found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendPoint {
    /// When (RFC 3339).
    pub time: String,
    /// The commit that was served.
    pub commit: Option<String>,
    /// Requests per second, above zero.
    pub point: f64,
}

/// What the last runs say together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    /// The runs that were looked at, from the oldest.
    pub points: Vec<TrendPoint>,
    /// The last five against the five oldest, as a ratio of which more is better; `None` with fewer than ten.
    pub decline: Option<Estimate>,
    /// Whether that decline is within the margin; undecided with fewer than ten.
    pub decision: Decision,
    /// Where the level changed.
    pub shift: Option<LevelShift>,
}

/// A change of the level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelShift {
    /// The first run behind it.
    pub since: TrendPoint,
    /// Its place among the points.
    pub at: usize,
    /// The level behind it over the one before.
    pub ratio: f64,
}

/// What runs say together, given from the oldest; the last 30 count. What is no capacity is left out.
pub fn trend(history: &[TrendPoint], margin: Share) -> Trend {
    let usable = |point: &&TrendPoint| point.point.is_finite() && point.point > 0.0;
    let mut points: Vec<TrendPoint> = history.iter().filter(usable).cloned().collect();
    points.drain(..points.len().saturating_sub(LAST));
    let logs: Vec<f64> = points.iter().map(|point| point.point.ln()).collect();
    let is_long = logs.len() >= 2 * ENDS;
    let found = is_long.then(|| rank_interval(&logs[..ENDS], &logs[logs.len() - ENDS..], ALPHA)).flatten();
    let decision = found.map_or(Decision::Undecided, |found| decide_ratio(&found, limit(margin)));
    let decline = found.map(|found| Estimate {
        point: found.point.exp(),
        lower: found.lower.exp(),
        upper: found.upper.exp(),
        ..found
    });
    let shift = change_point(&logs).map(|found| LevelShift {
        since: points[found.at].clone(),
        at: found.at,
        ratio: found.shift.exp(),
    });
    Trend { points, decline, decision, shift }
}
