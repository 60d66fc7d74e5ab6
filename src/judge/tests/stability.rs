//! Whole verdicts of stability rows: what passes only on readings before, between and after, and what never does.

use super::verdicts::check;
use super::*;
use crate::contract::{
    ContainerField, ContainerSource, MetricsPage, ProcessField, ProcessOf, ProcessSource, PrometheusSource,
};
use crate::record::{Series, TrialReading};

#[test]
fn whole_verdicts_of_stability_rows() {
    check(
        "the counter rose",
        |r| r.probes[0].after = reading(2.0),
        "FAIL",
        &["restarts FAIL counter_rose | 0 → 2 (+2) | rose by 2 while the load ran"],
    );
    check(
        "the counter went down, and no difference is made up",
        |r| (r.probes[0].before, r.probes[0].after) = (reading(5.0), reading(1.0)),
        "UNKNOWN",
        &["restarts UNKNOWN counter_reset | 5 → 1 | it went down from 5 to 1 while the load ran"],
    );
    check(
        "a probe that failed",
        |r| r.probes[0].after = probe_failure("timed out after 10s"),
        "UNKNOWN",
        &[
            "restarts UNKNOWN probe_failed | 0 → – | failed after the load: timed out after 10s",
            "completeness UNKNOWN probe_failed | measured 3 of 4 | not measured: restarts",
        ],
    );
    check(
        "a probe that gave no number",
        |r| r.probes[0].after = reading(f64::NAN),
        "UNKNOWN",
        &["restarts UNKNOWN probe_failed | 0 → – | failed after the load: it gave no number"],
    );
    check(
        "probes of which nothing is known",
        |r| r.probes.clear(),
        "UNKNOWN",
        &[
            "restarts UNKNOWN no_probe | - | no probe answers for this row",
            "health UNKNOWN no_probe | - | no probe answers for this row",
            "completeness UNKNOWN not_measured | measured 2 of 4 | not measured: restarts, health",
        ],
    );
    check(
        "a probe that was not read after the load",
        |r| r.probes[0].after = None,
        "UNKNOWN",
        &[
            "restarts UNKNOWN not_measured | 0 → – | was not read after the load",
            "completeness UNKNOWN probe_failed | measured 3 of 4 | not measured: restarts",
        ],
    );
    check(
        "unhealthy after the load",
        |r| r.probes[1].after = reading(7.0),
        "FAIL",
        &["health FAIL unhealthy | exit code 0 → 7 | exit code 7 after the load"],
    );
    check(
        "unhealthy before, unreadable after",
        |r| (r.probes[1].before, r.probes[1].after) = (reading(1.0), probe_failure("no such file")),
        "FAIL",
        &[
            "health FAIL unhealthy | exit code 1 → – | exit code 1 before the load",
            "completeness UNKNOWN probe_failed | measured 3 of 4 | not measured: health",
        ],
    );
    check(
        "a health check that could not run",
        |r| r.probes[1].after = probe_failure("no such file"),
        "UNKNOWN",
        &[
            "health UNKNOWN probe_failed | exit code 0 → – | failed after the load: no such file",
            "completeness UNKNOWN probe_failed | measured 3 of 4 | not measured: health",
        ],
    );
}

fn between(trial: u32, read: Option<Reading>) -> TrialReading {
    TrialReading { trial, reading: read.unwrap() }
}

#[test]
fn readings_between_trials_count_and_name_the_trial() {
    check(
        "unhealthy for a while",
        |r| r.probes[1].between = vec![between(0, reading(1.0))],
        "FAIL",
        &["health FAIL unhealthy | exit code 0 → 1 → 0 | exit code 1 after trial 0"],
    );
    check(
        "not asked successfully in between",
        |r| r.probes[0].between = vec![between(0, probe_failure("no answer"))],
        "UNKNOWN",
        &["restarts UNKNOWN probe_failed | 0 → 0 (+0) | failed after trial 0: no answer"],
    );
    check(
        "a counter that rose and began anew",
        |r| {
            r.probes[0].between = vec![between(0, reading(3.0))];
            r.probes[0].after = reading(3.0);
        },
        "FAIL",
        &["restarts FAIL counter_rose | 0 → 3 (+3) | rose by 3 in trial 0, at 4/s"],
    );
    check(
        "in the last trial",
        |r| {
            r.steps[1].trials[0].trial = 1;
            r.probes[0].between = vec![between(0, reading(0.0))];
            r.probes[0].after = reading(1.0);
        },
        "FAIL",
        &["restarts FAIL counter_rose | 0 → 1 (+1) | rose by 1 in trial 1, at 6/s"],
    );
}

type Named<'a> = &'a [(&'a str, &'a str, f64)];

/// A reading of several series: whose, since when, the number.
fn series(all: Named<'_>) -> Reading {
    let one = |(of, since, value): &(&str, &str, f64)| Series {
        of: (*of).to_owned(),
        since: (!since.is_empty()).then(|| (*since).to_owned()),
        value: *value,
    };
    let sum = all.iter().map(|(_, _, value)| value).sum();
    Reading { value: Some(sum), series: all.iter().map(one).collect(), failure: None, took_ns: 1 }
}

/// Status, reason and note of a row that was read twice.
fn row(probe: StabilityProbe, automatic: bool, before: Named<'_>, after: Named<'_>) -> (Status, Reason, String) {
    let mut contract = contract();
    contract.stability = vec![StabilityRow { name: "restarts".to_owned(), probe, automatic }];
    let mut run = result();
    run.probes.truncate(1);
    run.probes[0].source = contract.stability[0].probe.source().map_or("command", Source::name).to_owned();
    (run.probes[0].before, run.probes[0].after) = (Some(series(before)), Some(series(after)));
    let checks = crate::judge::stability::checks(&contract.stability, &run);
    (checks[0].status, checks[0].reason, checks[0].note.clone().unwrap_or_default())
}

fn probe_of(source: Source) -> Probe {
    Probe { source, timeout: Duration::from_secs(10) }
}

fn container(field: ContainerField) -> Probe {
    probe_of(Source::Docker(ContainerSource { container: "vllm".to_owned(), field, host: None }))
}

fn counter(across: Across, max_increase: f64) -> StabilityProbe {
    StabilityProbe::Counter { probe: container(ContainerField::RestartCount), across, max_increase }
}

fn unchanged() -> StabilityProbe {
    let source = ProcessSource { of: ProcessOf::Port(8000), field: ProcessField::StartTime };
    StabilityProbe::Unchanged { probe: probe_of(Source::Process(source)) }
}

#[test]
fn every_series_is_compared_with_itself() {
    use Reason::{CounterReset, CounterRose, Held};
    use Status::{Fail, Pass, Unknown};
    let two: Named<'_> = &[("pod/a", "1", 3.0), ("pod/b", "1", 0.0)];
    for (what, across, limit, before, after, status, reason, note) in [
        ("nothing changed", Across::Sum, 0.0, two, two, Pass, Held, ""),
        (
            "one fell as much as the other rose",
            Across::Sum,
            3.0,
            two,
            &[("pod/a", "1", 0.0), ("pod/b", "1", 3.0)][..],
            Unknown,
            CounterReset,
            "pod/a went down from 3 to 0 while the load ran",
        ),
        (
            "a pod with another name",
            Across::Sum,
            0.0,
            two,
            &[("pod/a", "1", 3.0), ("pod/c", "1", 0.0)],
            Unknown,
            CounterReset,
            "pod/b is gone while the load ran",
        ),
        (
            "a pod that was made anew under its name",
            Across::Sum,
            0.0,
            two,
            &[("pod/a", "1", 3.0), ("pod/b", "2", 0.0)],
            Unknown,
            CounterReset,
            "pod/b began anew (2) while the load ran",
        ),
        (
            "a restart that is counted, and seen by its start too",
            Across::Sum,
            0.0,
            two,
            &[("pod/a", "1", 3.0), ("pod/b", "2", 1.0)],
            Fail,
            CounterRose,
            "rose by 1 while the load ran",
        ),
        (
            "a series that is new began at 0",
            Across::Sum,
            0.0,
            two,
            &[("pod/a", "1", 3.0), ("pod/b", "1", 0.0), ("pod/c", "1", 2.0)],
            Fail,
            CounterRose,
            "rose by 2 while the load ran",
        ),
        (
            "together above a limit that each is within",
            Across::Sum,
            1.0,
            two,
            &[("pod/a", "1", 4.0), ("pod/b", "1", 1.0)],
            Fail,
            CounterRose,
            "rose by 2 while the load ran",
        ),
        (
            "each within the limit",
            Across::Each,
            1.0,
            two,
            &[("pod/a", "1", 4.0), ("pod/b", "1", 1.0)],
            Pass,
            Held,
            "rose by 1 while the load ran",
        ),
        (
            "the largest rise counts, whatever the largest number is",
            Across::Max,
            0.0,
            two,
            &[("pod/a", "1", 3.0), ("pod/b", "1", 2.0)],
            Fail,
            CounterRose,
            "rose by 2 while the load ran",
        ),
        (
            "a series under another name",
            Across::Sum,
            0.0,
            two,
            &[("pod/a", "1", 3.0), ("pod/c", "1", 5.0)],
            Unknown,
            CounterReset,
            "pod/b is gone while the load ran",
        ),
    ] {
        let found = row(counter(across, limit), false, before, after);
        assert_eq!(found, (status, reason, note.to_owned()), "{what}");
    }
}

#[test]
fn the_last_code_is_no_count() {
    let last = || StabilityProbe::LastCode { probe: container(ContainerField::OomKilled) };
    let gpu = |code| vec![("GPU 0", "", code)];
    let (status, reason, note) = row(last(), false, &gpu(0.0), &gpu(79.0));
    assert_eq!((status, reason), (Status::Fail, Reason::CounterRose));
    assert!(note.starts_with("GPU 0 shows code 79 while the load ran; it is the last code"), "{note}");
    // Another code is another fault, be its number lower.
    assert_eq!(row(last(), false, &gpu(79.0), &gpu(31.0)).0, Status::Fail);
    let (status, reason, note) = row(last(), false, &gpu(79.0), &gpu(79.0));
    assert_eq!((status, reason), (Status::Unknown, Reason::NotMeasured));
    assert!(note.contains("a repeat would not be seen"), "{note}");
    assert_eq!(row(last(), false, &gpu(79.0), &gpu(0.0)).1, Reason::CounterReset);
    // A code that shows is proven, whatever else is gone.
    let two = [("GPU 0", "", 0.0), ("GPU 1", "", 0.0)];
    assert_eq!(row(last(), false, &two, &gpu(79.0)).0, Status::Fail);
    assert_eq!(row(last(), false, &gpu(0.0), &gpu(0.0)).0, Status::Pass);
}

#[test]
fn what_runs_must_stay_the_same() {
    let before: Named<'_> = &[("pid 7 (vllm)", "10:00:01", 1.0), ("pid 8 (vllm)", "10:00:02", 1.0)];
    assert_eq!(row(unchanged(), false, before, before), (Status::Pass, Reason::Held, String::new()));
    // A worker more takes nothing away.
    let more: Named<'_> = &[before[0], before[1], ("pid 9 (vllm)", "10:05:00", 1.0)];
    assert_eq!(row(unchanged(), true, before, more).0, Status::Pass);
    let one_gone: Named<'_> = &[before[0]];
    for is_ours in [false, true] {
        let found = row(unchanged(), is_ours, before, one_gone);
        let note = "pid 8 (vllm) is gone while the load ran".to_owned();
        assert_eq!(found, (Status::Unknown, Reason::CounterReset, note), "{is_ours}");
    }
    // A number that was taken again is another process.
    let reused: Named<'_> = &[("pid 7 (vllm)", "10:07:00", 1.0), ("pid 8 (vllm)", "10:07:00", 1.0)];
    assert_eq!(row(unchanged(), false, before, reused).1, Reason::CounterReset);
    // Of a launched endpoint, nobody else can have started another one.
    let source = ProcessSource { of: ProcessOf::Endpoint, field: ProcessField::StartTime };
    let launched = StabilityProbe::Unchanged { probe: probe_of(Source::Process(source)) };
    let (status, reason, note) = row(launched, true, before, reused);
    assert_eq!((status, reason), (Status::Fail, Reason::Restarted));
    assert_eq!(note, "pid 7 (vllm) began anew (10:07:00) while the load ran");
}

#[test]
fn a_row_that_came_by_itself_and_cannot_be_answered_is_none() {
    let mut contract = contract();
    contract.stability = vec![StabilityRow { name: "restarts".to_owned(), probe: unchanged(), automatic: true }];
    let mut run = result();
    run.probes.truncate(1);
    run.probes[0].before = probe_failure("there is no /proc here");
    run.probes[0].after = probe_failure("there is no /proc here");
    assert!(crate::judge::stability::checks(&contract.stability, &run).is_empty());
    assert_eq!(completeness(&contract, &run).planned, 2);
    // One that was answered later could have been asked all along, and what came before is not known.
    run.probes[0].after = Some(series(&[("pid 7", "1", 1.0)]));
    let checks = crate::judge::stability::checks(&contract.stability, &run);
    assert_eq!((checks[0].status, checks[0].reason), (Status::Unknown, Reason::ProbeFailed));
    // Of one without a record, nothing says that it could not be.
    let mut forgotten = run.clone();
    forgotten.probes.clear();
    assert_eq!(crate::judge::stability::checks(&contract.stability, &forgotten)[0].reason, Reason::NoProbe);
    // Once it was answered, a reading that fails is a doubt.
    (run.probes[0].before, run.probes[0].after) = (Some(series(&[("pid 7", "1", 1.0)])), probe_failure("gone"));
    let checks = crate::judge::stability::checks(&contract.stability, &run);
    assert_eq!((checks[0].status, checks[0].reason), (Status::Unknown, Reason::ProbeFailed));
}

#[test]
fn a_count_that_began_anew_shows_no_rise_unless_it_outlives_that() {
    let page = PrometheusSource {
        page: MetricsPage { url: "http://h/metrics".parse().unwrap(), headers: Vec::new(), ca_file: None },
        metrics: vec!["failures_total".to_owned()],
        labels: BTreeMap::new(),
    };
    let probe = probe_of(Source::Prometheus(page));
    let of_page = StabilityProbe::Counter { probe, across: Across::Sum, max_increase: 0.0 };
    let (before, after): (Named<'_>, Named<'_>) = (&[("x", "100", 5.0)], &[("x", "200", 9.0)]);
    assert_eq!(row(of_page.clone(), false, before, after).1, Reason::CounterReset);
    // A container engine counts the restarts themselves.
    assert_eq!(row(counter(Across::Sum, 0.0), false, before, after).1, Reason::CounterRose);
    // A page that tells no start is told to be blind for one.
    let (status, _, note) = row(of_page, false, &[("x", "", 0.0)], &[("x", "", 0.0)]);
    assert_eq!(status, Status::Pass);
    assert!(note.starts_with("its page does not say since when it counts"), "{note}");
}

#[test]
fn a_failed_reading_breaks_nothing_and_hides_nothing() {
    let failed = probe_failure("no answer").unwrap();
    let at = |value: f64| reading(value).unwrap();
    let row = counter(Across::Sum, 0.0);
    for (readings, expected) in [
        (vec![at(3.0), failed.clone(), at(3.0)], [false, false]),
        (vec![failed.clone(), at(3.0), at(3.0)], [false, false]),
        (vec![at(3.0), failed.clone(), at(4.0)], [false, true]),
        (vec![at(3.0), at(4.0), failed.clone()], [true, false]),
    ] {
        assert_eq!(broke(&row, &readings.iter().collect::<Vec<_>>()), expected, "{readings:?}");
    }
    assert_eq!(broke(&unchanged(), &[&at(1.0), &failed, &at(1.0)]), [false, false]);
}
