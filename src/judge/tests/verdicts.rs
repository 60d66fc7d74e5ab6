//! Whole verdicts of synthetic runs: what was changed in a clean run, and every row that follows.

use std::fmt::Write as _;

use super::*;

/// The verdict in one line per row: id, status, reason, observed, note.
fn rows(verdict: &Verdict) -> String {
    let mut text = verdict.overall.word().to_owned();
    for check in &verdict.checks {
        let shown = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
        let (status, reason) = (check.status.word(), check.reason.code());
        let _ = write!(text, "\n{} {status} {reason} | {} | {}", check.id, shown(&check.observed), shown(&check.note));
    }
    text
}

const TTFT: &str = "ttft_p99 PASS held | 312 ms | -";
const SUCCESS: &str = "success_rate PASS held | 100% | none of 1000: at most 0.3% at 95%";
const RESTARTS: &str = "restarts PASS held | 0 → 0 (+0) | -";
const HEALTH: &str = "health PASS held | exit code 0 → 0 | -";
const GENERATOR: &str = "load_generator PASS held | lag p99 120 µs, 1000 of 1000 sent | -";
const COMPLETE: &str = "completeness PASS held | measured 4 of 4 | -";

/// The whole expected verdict: the rows of a clean run, with some replaced. A replacement stands for the row of its first
/// word; one that has no such row is `endpoint`, which comes before the load generator.
fn expected(overall: &str, replaced: &[&str]) -> String {
    let name = |row: &str| row.split(' ').next().unwrap_or_default().to_owned();
    let mut rows = vec![TTFT, SUCCESS, RESTARTS, HEALTH, GENERATOR, COMPLETE];
    for row in replaced {
        match rows.iter().position(|known| name(known) == name(row)) {
            Some(index) => rows[index] = row,
            None => rows.insert(4, row),
        }
    }
    rows.insert(0, overall);
    rows.retain(|row| !row.ends_with(" absent"));
    rows.join("\n")
}

pub(super) type Change = fn(&mut RunResult);

pub(super) fn check(name: &str, change: Change, overall: &str, replaced: &[&str]) {
    let mut run = result();
    change(&mut run);
    let verdict = judge(&contract(), &run);
    assert_eq!(rows(&verdict), expected(overall, replaced), "{name}");
    assert_eq!(judge(&contract(), &run), verdict, "{name}: the same evidence, the same verdict");
}

#[test]
fn whole_verdicts_of_objectives() {
    check("everything held", |_| {}, "PASS", &[]);
    check("as many violations as 1,000 requests may show", |r| at_load(r).objectives[0].violations = 4, "PASS", &[]);
    check(
        "one more",
        |r| at_load(r).objectives[0].violations = 5,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN too_few_samples | 312 ms | \
           1049 requests with no more than these 5 violations would decide it"],
    );
    check(
        "more than the budget, but not beyond doubt",
        |r| at_load(r).objectives[0].violations = 15,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN interval_straddles_limit | 312 ms | 15 of 1000 requests break the limit, at most 10 may"],
    );
    check(
        "beyond doubt",
        |r| at_load(r).objectives[0].violations = 16,
        "FAIL",
        &["ttft_p99 FAIL broken | 312 ms | 16 of 1000 requests break the limit, at most 10 may"],
    );
    check(
        "the quantile falls among failures",
        |r| {
            let trial = at_load(r);
            trial.objectives[0] = evidence("ttft_p99", N, 20, None);
            trial.objectives[1].violations = 20;
            trial.window.outcomes = BTreeMap::from([(Outcome::Ok, N - 20), (Outcome::Timeout, 20)]);
        },
        "FAIL",
        &[
            "ttft_p99 FAIL broken | ∞ (20 of 1000 failed) | \
             20 of 1000 requests break the limit (20 did not end ok: 20 timeout), at most 10 may",
            "success_rate FAIL broken | 98% | 20 of 1000 requests break the limit, none may",
        ],
    );
    check(
        "too few requests",
        |r| at_load(r).objectives[0].n = 298,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN too_few_samples | 312 ms | 299 requests without violation would decide it"],
    );
    check(
        "the limit applies to nothing",
        |r| at_load(r).objectives[0].n = 0,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN not_measured | - | it applies to no request of the window"],
    );
}

#[test]
fn whole_verdicts_of_trials_that_are_no_evidence() {
    check(
        "a saturated generator neither passes nor fails",
        |r| {
            at_load(r).objectives[0].violations = 900;
            at_load(r).health.faults = vec!["late".to_owned(), "slow".to_owned()];
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN generator_saturated | 312 ms | late; slow",
            "success_rate UNKNOWN generator_saturated | 100% | late; slow",
            "load_generator UNKNOWN generator_saturated | lag p99 120 µs, 1000 of 1000 sent | late; slow",
            "completeness UNKNOWN generator_saturated | measured 3 of 4 | not measured: 4/s",
        ],
    );
    check(
        "a void trial that was repeated",
        |r| {
            let mut void = trial();
            void.health.faults = vec!["late".to_owned()];
            r.steps[0].trials.insert(0, void);
        },
        "PASS",
        &["load_generator PASS held | lag p99 120 µs, 1000 of 1000 sent | \
           judged on a repeated trial, because before late"],
    );
    check(
        "drift forbids PASS",
        |r| at_load(r).drift = Some(DriftRecord { slope_per_s: 0.5, t: 9.0, growth: 0.125, drifting: true }),
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN not_stationary | 312 ms | requests pile up: 12.5% of the arrivals stay in flight",
            "success_rate UNKNOWN not_stationary | 100% | requests pile up: 12.5% of the arrivals stay in flight",
        ],
    );
    check(
        "drift does not save a broken limit",
        |r| {
            at_load(r).objectives[0].violations = 16;
            at_load(r).drift = Some(DriftRecord { slope_per_s: 0.5, t: 9.0, growth: 0.125, drifting: true });
        },
        "FAIL",
        &[
            "ttft_p99 FAIL broken | 312 ms | 16 of 1000 requests break the limit, at most 10 may",
            "success_rate UNKNOWN not_stationary | 100% | requests pile up: 12.5% of the arrivals stay in flight",
        ],
    );
    check(
        "drift that could not be looked for",
        |r| at_load(r).drift = None,
        "UNKNOWN",
        &["ttft_p99 UNKNOWN too_few_samples | 312 ms | 20 requests in the window would show whether they pile up"],
    );
    check(
        "another load that was not reached",
        |r| (r.steps[1].trials, r.steps[1].not_measured) = (Vec::new(), Some("skipped".to_owned())),
        "UNKNOWN",
        &["completeness UNKNOWN not_measured | measured 3 of 4 | not measured: 6/s"],
    );
    check("another load that broke", |r| r.steps[1].trials[0].objectives[0].violations = 900, "PASS", &[]);
}

/// The row of one percentile of `metric`, under these request limits.
fn row_of(metric: RequestMetric, at_most: u64, limits: &[RequestMetric], change: Change) -> String {
    let mut contract = contract();
    contract.slo.request = limits.iter().map(|metric| (*metric, 1_000_000)).collect();
    contract.slo.objectives = vec![
        Objective::Percentile { metric, quantile: share(990_000), at_most },
        Objective::Attainment { at_least: share(990_000) },
    ];
    let mut run = result();
    let trial = at_load(&mut run);
    let unit = Some(metric.unit());
    trial.objectives[0] = ObjectiveEvidence { unit, ..evidence(&contract.slo.objectives[0].id(), N, 0, Some(420_000)) };
    trial.objectives[1] = evidence("attainment", N, 0, None);
    change(&mut run);
    rows(&judge(&contract, &run)).lines().skip(1).take(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_ratio_is_shown_as_a_plain_number() {
    let held: Change = |_| {};
    assert!(row_of(RequestMetric::Rtf, 500_000, &[], held).starts_with("rtf_p99 PASS held | 0.420 | -\n"));
    let mut contract = contract();
    let rtf = Objective::Percentile { metric: RequestMetric::Rtf, quantile: share(990_000), at_most: 500_000 };
    contract.slo.objectives = vec![rtf];
    let mut run = result();
    let unit = Some(MetricUnit::PartsPerMillion);
    at_load(&mut run).objectives = vec![ObjectiveEvidence { unit, ..evidence("rtf_p99", N, 0, Some(420_000)) }];
    let check = &judge(&contract, &run).checks[0];
    assert_eq!(check.limit.as_deref(), Some("≤ 0.5"));
    assert_eq!(check.interval, Some(["0.378".to_owned(), "0.462".to_owned()]));
}

#[test]
fn what_is_missing_is_named_by_what_would_give_it() {
    let missing: Change = |r| at_load(r).objectives.iter_mut().for_each(|found| found.unmeasured = 7);
    let no_usage: Change = |r| {
        at_load(r).objectives.iter_mut().for_each(|found| found.unmeasured = 7);
        at_load(r).window.output_tokens = None;
    };
    let coalesced: Change = |r| {
        at_load(r).objectives.iter_mut().for_each(|found| found.unmeasured = 7);
        at_load(r).window.warnings = BTreeMap::from([(crate::observe::Warning::Coalesced, 7)]);
    };
    let usage = "no_usage | - | 7 of 1000 requests that ended ok lack the token counts that a limit needs";
    let audio = "no_audio_duration | - | 7 of 1000 requests that ended ok do not say how long their sound lasts; \
        ask for wav, or declare the format in `endpoint.audio`";
    let pace = "not_measured | - | 7 of 1000 requests that ended ok came in one write, or in more chunks than are kept, \
        and show no pace";
    let value = "not_measured | - | 7 of 1000 requests that ended ok lack the value";
    use RequestMetric::{FirstAnswer, Itl, Rtf, Tpot, Underrun};
    for (name, metric, limits, change, own, attainment) in [
        ("tokens", Tpot, vec![Tpot], no_usage, usage, usage),
        ("tokens in one write", Tpot, vec![Tpot], missing, pace, pace),
        ("gaps, whatever the tokens", Itl, vec![Itl], no_usage, pace, pace),
        ("sound, whatever the tokens", Rtf, vec![Rtf], no_usage, audio, audio),
        ("sound", Underrun, vec![Underrun, Itl], missing, audio, audio),
        ("sound or pace", Rtf, vec![Itl, Rtf], coalesced, audio, pace),
        ("an answer", FirstAnswer, vec![FirstAnswer], missing, value, value),
    ] {
        let id = format!("{}_p99", metric.name());
        let want = format!("{id} UNKNOWN {own}\nattainment UNKNOWN {attainment}");
        assert_eq!(row_of(metric, 1_000_000, &limits, change), want, "{name}");
    }
}

#[test]
fn what_never_came_is_told_beside_what_failed() {
    let infinite: Change = |r| {
        let trial = at_load(r);
        (trial.objectives[0].violations, trial.objectives[0].quantile) = (40, None);
        trial.window.answerless = 40;
    };
    let note = "40 of 1000 requests break the limit, at most 10 may";
    for (metric, observed) in [
        (RequestMetric::FirstAnswer, "∞ (0 of 1000 failed, 40 without an answer)"),
        (RequestMetric::FirstAudio, "∞ (0 of 1000 failed, others without sound)"),
        (RequestMetric::E2e, "∞ (0 of 1000 failed)"),
    ] {
        let row = row_of(metric, 1_000_000, &[], infinite);
        assert!(row.starts_with(&format!("{}_p99 FAIL broken | {observed} | {note}\n", metric.name())), "{row}");
    }
}
