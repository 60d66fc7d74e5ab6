//! Nearest-rank quantiles of raw values in which failures are infinite.

use crate::contract::{Objective, RequestLimits, RequestMetric};
use crate::record::grade::Measure;
use crate::record::{ObjectiveEvidence, Quantiles, RatioQuantiles};
use crate::stats::quantile_ranks;
use crate::units::Share;

use super::accumulator::{Standing, WindowRow};

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

/// The evidence of the window for one objective; `unrecorded` requests were planned and never seen.
pub(super) fn evidence(
    objective: &Objective,
    limits: &RequestLimits,
    rows: &[WindowRow],
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
    };
    for row in rows {
        match row.standing(objective, limits) {
            Standing::NotApplicable => continue,
            Standing::Within => {}
            Standing::Violation => evidence.violations += 1,
            Standing::Undecided => evidence.undecided += 1,
            Standing::Unmeasured => evidence.unmeasured += 1,
        }
        evidence.n += 1;
    }
    if let Objective::Percentile { metric, quantile, .. } = objective
        && evidence.unmeasured == 0
    {
        bound_quantile(&mut evidence, rows, *metric, *quantile);
    }
    evidence
}

/// Fills the quantile and its bounds. Undecided requests are infinite in the point and the upper bound, and as small as
/// can be in the lower one.
fn bound_quantile(evidence: &mut ObjectiveEvidence, rows: &[WindowRow], metric: RequestMetric, quantile: Share) {
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
