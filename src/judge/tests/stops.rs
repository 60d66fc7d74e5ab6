//! Whole verdicts of runs that were stopped, and of endpoints that went away.

use super::verdicts::{Change, check};
use super::*;

#[test]
fn whole_verdicts_of_runs_that_were_stopped() {
    let interrupt: Change = |r| {
        r.stopped = Some(Stop::Signal { number: 2 });
        r.steps[1].trials.clear();
        let trial = at_load(r);
        trial.complete = false;
        trial.window.decided = 900;
        trial.objectives.iter_mut().for_each(|found| found.undecided = 100);
    };
    check(
        "interrupted and open",
        interrupt,
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN cancelled | at most 312 ms (100 undecided) | stopped by signal 2; 100 of 1000 requests are undecided",
            "success_rate UNKNOWN cancelled | at least 90% (100 undecided) | \
             stopped by signal 2; 100 of 1000 requests are undecided",
            "completeness UNKNOWN cancelled | measured 2 of 4 | not measured: 4/s, 6/s (stopped by signal 2)",
        ],
    );
    check(
        "interrupted and already broken",
        |r| {
            r.stopped = Some(Stop::Signal { number: 15 });
            at_load(r).complete = false;
            at_load(r).objectives[0] =
                ObjectiveEvidence { undecided: 500, ..evidence("ttft_p99", N, 16, Some(4_000_000_000)) };
        },
        "FAIL",
        &[
            "ttft_p99 FAIL broken | at most 4.00 s (500 undecided) | 16 of 1000 requests break the limit, at most 10 may",
            "completeness UNKNOWN cancelled | measured 3 of 4 | not measured: 4/s (stopped by signal 15)",
        ],
    );
    check(
        "stopped before the first trial",
        |r| {
            r.stopped = Some(Stop::Signal { number: 2 });
            r.endpoint.ready = Readiness::NotAsked;
            r.steps.clear();
            r.probes.clear();
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN cancelled | - | stopped by signal 2",
            "success_rate UNKNOWN cancelled | - | stopped by signal 2",
            "restarts UNKNOWN cancelled | - | stopped by signal 2",
            "health UNKNOWN cancelled | - | stopped by signal 2",
            "load_generator absent",
            "completeness UNKNOWN cancelled | measured 0 of 4 | \
             not measured: 4/s, 6/s, restarts, health (stopped by signal 2)",
        ],
    );
    check(
        "stopped before the window began",
        |r| {
            r.stopped = Some(Stop::Signal { number: 2 });
            let trial = at_load(r);
            trial.complete = false;
            (trial.health.due, trial.health.sent, trial.health.dispatch_lag) = (0, 0, None);
            trial.window.decided = 0;
            trial.objectives.iter_mut().for_each(|found| (found.undecided, found.quantile) = (N, None));
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN cancelled | not known (0 of 1000 failed, 1000 undecided) | \
             stopped by signal 2; 1000 of 1000 requests are undecided",
            "success_rate UNKNOWN cancelled | at least 0% (1000 undecided) | \
             stopped by signal 2; 1000 of 1000 requests are undecided",
            "load_generator UNKNOWN cancelled | - | stopped by signal 2",
            "completeness UNKNOWN cancelled | measured 3 of 4 | not measured: 4/s (stopped by signal 2)",
        ],
    );
    check(
        "the disk is full",
        |r| {
            r.stopped = Some(Stop::Storage { detail: "no space".to_owned() });
            r.steps[0].trials.clear();
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN internal | - | results could not be written: no space",
            "success_rate UNKNOWN internal | - | results could not be written: no space",
            "load_generator UNKNOWN internal | - | results could not be written: no space",
            "completeness UNKNOWN internal | measured 3 of 4 | not measured: 4/s (results could not be written: no space)",
        ],
    );
}

#[test]
fn whole_verdicts_of_endpoints() {
    check(
        "a launched endpoint that never became ready",
        |r| {
            r.endpoint.ready = Readiness::NotReady { detail: "exit code 1".to_owned() };
            r.steps.clear();
            r.probes.clear();
        },
        "FAIL",
        &[
            "ttft_p99 UNKNOWN endpoint_not_ready | - | exit code 1",
            "success_rate UNKNOWN endpoint_not_ready | - | exit code 1",
            "restarts UNKNOWN endpoint_not_ready | - | exit code 1",
            "health UNKNOWN endpoint_not_ready | - | exit code 1",
            "load_generator absent",
            "endpoint FAIL endpoint_not_ready | - | exit code 1",
            "completeness UNKNOWN endpoint_not_ready | measured 0 of 4 | \
             not measured: 4/s, 6/s, restarts, health (exit code 1)",
        ],
    );
    check(
        "an external one that cannot be reached",
        |r| {
            r.endpoint.kind = EndpointKind::External;
            r.endpoint.ready = Readiness::Unreachable { detail: "refused".to_owned() };
            r.steps.clear();
        },
        "UNKNOWN",
        &[
            "ttft_p99 UNKNOWN endpoint_down | - | refused",
            "success_rate UNKNOWN endpoint_down | - | refused",
            "load_generator absent",
            "endpoint UNKNOWN endpoint_down | - | refused",
            "completeness UNKNOWN endpoint_down | measured 2 of 4 | not measured: 4/s, 6/s (refused)",
        ],
    );
    let dies: Change = |r| {
        r.stopped = Some(Stop::EndpointDown { detail: "refused 20 times".to_owned() });
        r.endpoint.exited = Some("signal 9".to_owned());
        r.steps[1].trials.clear();
    };
    let incomplete = "completeness UNKNOWN endpoint_down | measured 3 of 4 | not measured: 6/s (refused 20 times)";
    check(
        "a launched one that died in the run",
        dies,
        "FAIL",
        &["endpoint FAIL endpoint_not_ready | - | exited during the run: signal 9", incomplete],
    );
    check(
        "one that went away",
        |r| {
            r.stopped = Some(Stop::EndpointDown { detail: "refused 20 times".to_owned() });
            r.steps[1].trials.clear();
        },
        "UNKNOWN",
        &["endpoint UNKNOWN endpoint_down | - | refused 20 times", incomplete],
    );
    check(
        "a signal that may have reached the endpoint too",
        |r| {
            r.stopped = Some(Stop::Signal { number: 2 });
            r.endpoint.exited = Some("signal 2".to_owned());
        },
        "UNKNOWN",
        &["endpoint UNKNOWN endpoint_down | - | exited in a stopped run: signal 2"],
    );
}
