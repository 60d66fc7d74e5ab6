//! Nearest-rank quantiles of raw values in which failures are infinite.

use crate::contract::{Objective, RequestLimits, RequestMetric};
use crate::record::grade::Measure;
use crate::record::{AloneCounts, ObjectiveEvidence, Quantiles, RatioQuantiles};
use crate::stats::{HEADROOM_LIMIT, inflation, quantile_ranks};
use crate::units::{Load, Share};

use super::accumulator::{Alone, Standing, TrialAccumulator, WindowRow};
use super::stand::log_headroom;

/// The level of each bound of a quantile.
const ALPHA: f64 = 0.05;

/// Quantiles of finite values and a number of infinite ones; `None` without any.
pub fn quantiles(mut finite: Vec<u64>, infinite: u64) -> Option<Quantiles> {
    finite.sort_unstable();
    let count = finite.len() as u64 + infinite;
    let at = |ppm| Share::from_ppm(ppm).and_then(|quantile| value_at(&finite, quantile.nearest_rank(count)));
    (count > 0).then(|| Quantiles {
        count,
        p50_ns: at(500_000),
        p90_ns: at(900_000),
        p95_ns: at(950_000),
        p99_ns: at(990_000),
        max_ns: finite.last().copied(),
    })
}

/// The same quantiles of a ratio.
pub(super) fn of_ratio(found: Quantiles) -> RatioQuantiles {
    RatioQuantiles {
        count: found.count,
        p50_ppm: found.p50_ns,
        p90_ppm: found.p90_ns,
        p95_ppm: found.p95_ns,
        p99_ppm: found.p99_ns,
        max_ppm: found.max_ns,
    }
}

/// Quantiles of one metric over requests; `None` where it is missing for a request that ended `ok`, because the rest
/// would not be the whole. Requests that were never recorded count as infinite.
pub(super) fn metric_quantiles<'a>(
    rows: impl Iterator<Item = &'a WindowRow>,
    metric: RequestMetric,
    unrecorded: u64,
) -> Option<Quantiles> {
    let (mut finite, mut infinite) = (Vec::new(), unrecorded);
    for row in rows {
        match row.measure(metric) {
            Measure::Measured(value) => finite.push(value),
            Measure::Failed => infinite += 1,
            Measure::Unmeasured => return None,
            Measure::NotApplicable => {}
        }
    }
    quantiles(finite, infinite)
}

/// The window's requests in order of arrival, with what the others around them were doing.
pub(super) struct InOrder<'a> {
    rows: Vec<&'a WindowRow>,
    /// When each arrived.
    pub(super) arrivals: Vec<u64>,
    /// The number in flight just before it.
    pub(super) in_flight: Vec<u64>,
    alone: Alone,
    /// The variance inflation of the number in flight; `None` with too few requests. A closed loop holds that number.
    inflation: Option<f64>,
}

impl<'a> InOrder<'a> {
    pub(super) fn of(accumulator: &'a TrialAccumulator, load: Load) -> Self {
        let mut rows: Vec<&WindowRow> = accumulator.window.iter().collect();
        rows.sort_by_key(|row| row.begins_ns);
        let arrivals: Vec<u64> = rows.iter().map(|row| row.begins_ns).collect();
        let in_flight = accumulator.in_flight(&arrivals);
        let levels: Vec<f64> = in_flight.iter().map(|level| *level as f64).collect();
        let inflation = inflation(&levels).map(|found| if load.rate().is_some() { found.factor } else { 1.0 });
        Self { rows, arrivals, in_flight, alone: accumulator.alone(), inflation }
    }
}

/// The evidence of the window for one objective; `unrecorded` requests were planned and never seen.
pub(super) fn evidence(
    objective: &Objective,
    limits: &RequestLimits,
    window: &InOrder<'_>,
    unrecorded: u64,
) -> ObjectiveEvidence {
    let mut evidence = ObjectiveEvidence {
        id: objective.id(),
        n: unrecorded,
        violations: 0,
        undecided: unrecorded,
        unmeasured: 0,
        unit: objective.limit().map(|(metric, _)| metric.unit()),
        quantile: None,
        lower: None,
        upper: None,
        headroom: None,
        inflation: None,
        alone: AloneCounts::default(),
    };
    let rows = &window.rows;
    let mut violated = Vec::with_capacity(rows.len());
    for row in rows {
        let standing = row.standing(objective, limits);
        match standing {
            Standing::NotApplicable => continue,
            Standing::Within => {}
            Standing::Violation => evidence.violations += 1,
            Standing::Undecided => evidence.undecided += 1,
            Standing::Unmeasured => evidence.unmeasured += 1,
        }
        evidence.n += 1;
        violated.push(if standing == Standing::Violation { 1.0 } else { 0.0 });
        if row.reached_the_endpoint() && window.alone.contains(row) {
            evidence.alone.n += 1;
            evidence.alone.violations += u64::from(standing == Standing::Violation);
        }
    }
    if evidence.unmeasured > 0 {
        return evidence;
    }
    let decided = evidence.undecided == 0 && evidence.n > 0;
    let of_violations = inflation(&violated).map(|found| found.factor).filter(|_| decided);
    evidence.inflation = of_violations.zip(window.inflation).map(|(own, common)| own.max(common));
    match objective {
        Objective::Percentile { metric, quantile, at_most } => {
            bound_quantile(&mut evidence, rows, *metric, *quantile);
            evidence.headroom = decided.then(|| log_headroom(*at_most, evidence.quantile));
        }
        Objective::Attainment { at_least } if decided => {
            evidence.headroom = Some(attainment_headroom(rows, limits, *at_least));
        }
        Objective::Attainment { .. } | Objective::SuccessRate { .. } => {}
    }
    evidence
}

/// `−ln Q_a(badness)`: at least zero exactly when the attainment is reached.
fn attainment_headroom(rows: &[&WindowRow], limits: &RequestLimits, at_least: Share) -> f64 {
    let mut badness: Vec<f64> = rows.iter().map(|row| row.badness(limits)).collect();
    badness.sort_unstable_by(f64::total_cmp);
    let rank = at_least.nearest_rank(badness.len() as u64) as usize;
    let at_rank = badness.get(rank.saturating_sub(1)).copied().unwrap_or(f64::INFINITY);
    (-at_rank.ln()).clamp(-HEADROOM_LIMIT, HEADROOM_LIMIT)
}

/// Fills the quantile and its bounds. Undecided requests are infinite in the point and the upper bound, and as small as
/// can be in the lower one.
fn bound_quantile(evidence: &mut ObjectiveEvidence, rows: &[&WindowRow], metric: RequestMetric, quantile: Share) {
    let mut finite: Vec<u64> = rows
        .iter()
        .filter_map(|row| match row.measure(metric) {
            Measure::Measured(value) => Some(value),
            _ => None,
        })
        .collect();
    finite.sort_unstable();
    let Some(ranks) = quantile_ranks(evidence.n, quantile, ALPHA) else { return };
    evidence.quantile = value_at(&finite, ranks.point);
    evidence.upper = ranks.upper.and_then(|rank| value_at(&finite, rank));
    evidence.lower =
        ranks.lower.and_then(|rank| rank.checked_sub(evidence.undecided)).and_then(|rank| value_at(&finite, rank));
}

/// The value of a rank, from 1, in ascending finite values; `None` beyond them.
fn value_at(finite: &[u64], rank: u64) -> Option<u64> {
    let index = usize::try_from(rank.checked_sub(1)?).ok()?;
    finite.get(index).copied()
}
