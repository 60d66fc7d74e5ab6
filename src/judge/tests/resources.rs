//! Limits on resources: what one sample proves, and what takes a whole window and most of its samples.

use super::*;
use crate::contract::{ResourceKind, ResourceLimit, ResourceUnit, Statistic};
use crate::record::ResourceRecord;

/// Ten samples that were due, so many of them with a number.
fn sampled(samples: u64, median: f64, max: f64) -> ResourceRecord {
    ResourceRecord {
        name: "kv_cache_usage".to_owned(),
        kind: ResourceKind::Gauge,
        unit: ResourceUnit::Ratio,
        due: 10,
        samples,
        min: Some(0.0),
        median: Some(median),
        max: Some(max),
        last: Some(median),
        rate_per_s: None,
        rate_over_ns: None,
        failure: (samples < 10).then(|| "the page did not answer".to_owned()),
    }
}

/// The row of a limit of 90 % on a statistic: status, reason and what was observed.
fn row(statistic: Statistic, complete: bool, found: Option<ResourceRecord>) -> (Status, Reason, Option<String>) {
    let mut contract = contract();
    let (resource, unit) = ("kv_cache_usage".to_owned(), ResourceUnit::Ratio);
    contract.slo.resources = vec![ResourceLimit { resource, statistic, at_most: 0.9, unit }];
    let mut run = result();
    let trial = at_load(&mut run);
    trial.complete = complete;
    trial.resources.extend(found);
    let check = crate::judge::resources::checks(&contract, &run).remove(0);
    (check.status, check.reason, check.observed)
}

#[test]
fn a_limit_holds_or_breaks_on_enough_samples_and_the_largest_breaks_on_one() {
    use Reason::{Broken, Held, NotMeasured, ProbeFailed};
    use Statistic::{Max, Median};
    use Status::{Fail, Pass, Unknown};
    for (what, statistic, complete, found, status, reason) in [
        ("within", Max, true, Some(sampled(10, 0.5, 0.9)), Pass, Held),
        ("four of five samples are enough", Max, true, Some(sampled(8, 0.5, 0.9)), Pass, Held),
        ("fewer are not", Max, true, Some(sampled(7, 0.5, 0.9)), Unknown, ProbeFailed),
        ("one sample above the limit proves it", Max, false, Some(sampled(1, 0.95, 0.95)), Fail, Broken),
        ("a median above", Median, true, Some(sampled(10, 0.95, 0.99)), Fail, Broken),
        ("a median of few samples", Median, true, Some(sampled(1, 0.95, 0.95)), Unknown, ProbeFailed),
        ("a median of half a window", Median, false, Some(sampled(10, 0.95, 0.99)), Unknown, NotMeasured),
        ("the largest of half a window", Max, false, Some(sampled(10, 0.5, 0.5)), Unknown, NotMeasured),
        ("never sampled", Max, true, None, Unknown, NotMeasured),
    ] {
        let found = row(statistic, complete, found);
        assert_eq!((found.0, found.1), (status, reason), "{what}: {found:?}");
    }
    assert_eq!(row(Max, true, Some(sampled(10, 0.5, 0.5))).2.as_deref(), Some("50%"));
    assert_eq!(row(Max, true, Some(sampled(10, 0.5, 0.9000001))).2.as_deref(), Some("0.9000001 (limit 0.9)"));
    assert_eq!(row(Max, true, None).2, None);
}
