//! What the records of a rehearsed trial say.

use serde_json::{Value, json};

use super::*;
use crate::contract::{Objective, RequestLimits, RequestMetric};
use crate::observe::Outcome;
use crate::record::summarise_step;
use crate::schedule::{ArrivalProcess, ConcurrencyPlan, TrialCounts};
use crate::simulate::profile::parse_profile;
use crate::units::{Load, Rate, Share};

const SECOND: u64 = 1_000_000_000;

/// P99 of the TTFT within a second, and half of the requests good by an E2E of a second.
fn slo() -> Slo {
    let share = |ppm| Share::from_ppm(ppm).expect("a share");
    Slo {
        request: RequestLimits::from_iter([(RequestMetric::E2e, SECOND), (RequestMetric::Tpot, SECOND)]),
        objectives: vec![
            Objective::Percentile { metric: RequestMetric::Ttft, quantile: share(990_000), at_most: SECOND },
            Objective::Attainment { at_least: share(500_000) },
        ],
        resources: Vec::new(),
        at: Load::Clients(1),
        capacity: None,
    }
}

/// 100 measured requests behind 10 others, at a constant rate.
fn planned(per_second: u64) -> PlannedTrial {
    let rate = Rate::from_milli(per_second * 1_000).expect("a rate");
    let counts = TrialCounts { warm_up: 10, window: 100, drain: 10 };
    let shape = TrialShape::Open { process: ArrivalProcess::Constant, rate, counts };
    PlannedTrial { trial: 3, seed: 1, load: Load::RateMilli(rate), shape }
}

fn trial(profile: &Value, per_second: u64, part: Part) -> (TrialRecord, TrialAccumulator) {
    let stage = Stage::new(parse_profile(&profile.to_string()).expect("a profile"));
    rehearse_trial(&slo(), &planned(per_second), part, stage).expect("an open loop")
}

/// One server that takes 100 ms, with the first of two tokens at the start.
fn one_server(more: Value) -> Value {
    let model = json!({ "kind": "slots", "slots": 1, "service": { "fixed": "100ms" } });
    let mut profile = json!({ "model": model, "output_tokens": 2 });
    profile.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    profile
}

fn always(what: Value) -> Value {
    json!({ "faults": [{ "when": { "every": 1 }, "what": what }] })
}

fn outcomes(trial: &TrialRecord) -> Vec<(Outcome, u64)> {
    trial.window.outcomes.iter().map(|(outcome, count)| (*outcome, *count)).collect()
}

#[test]
fn a_trial_within_capacity_has_every_figure_of_a_real_one() {
    let (trial, requests) = trial(&one_server(json!({})), 5, Part::Step);
    assert_eq!((trial.trial, trial.seed, trial.complete, trial.given_up), (3, 1, true, false));
    assert_eq!(trial.health.faults, [""; 0], "the load generator is never late");
    assert_eq!((trial.held, trial.window.good, trial.window.output_tokens), (Some(true), Some(100), Some(200)));
    // The drain ends with the window's last reply: 109 arrivals each 200 ms, then 100 ms.
    assert_eq!(trial.took_ns, 21_900_000_000);
    let step = summarise_step(planned(5).load, &[(trial, requests)], None);
    assert_eq!((step.metrics["ttft"].max_ns, step.metrics["e2e"].p50_ns), (Some(0), Some(100_000_000)));
    assert_eq!(step.goodput.map(|goodput| goodput.round()), Some(5.0));
}

#[test]
fn a_search_ends_a_trial_that_cannot_hold_and_a_step_does_not() {
    let overload = one_server(json!({}));
    let (given_up, _) = trial(&overload, 20, Part::Search);
    assert_eq!((given_up.given_up, given_up.complete, given_up.held), (true, false, Some(false)));
    // Two violations are one too many; what was sent until the second was seen comes to its end.
    assert!(given_up.window.decided < 60 && given_up.objectives[0].violations >= 2, "{given_up:#?}");
    let (whole, _) = trial(&overload, 20, Part::Step);
    assert_eq!((whole.given_up, whole.complete, whole.held, whole.window.decided), (false, true, Some(false), 100));
}

#[test]
fn replies_end_as_the_script_says() {
    let refused = one_server(always(json!({ "kind": "refuse" })));
    assert_eq!(outcomes(&trial(&refused, 5, Part::Step).0), [(Outcome::HttpError, 100)]);
    let failing = one_server(always(json!({ "kind": "error_in_stream", "after_tokens": 2 })));
    assert_eq!(outcomes(&trial(&failing, 5, Part::Step).0), [(Outcome::StreamError, 100)]);
    let cut = one_server(always(json!({ "kind": "cut_stream", "after_tokens": 1 })));
    let cut = trial(&cut, 20, Part::Step).0;
    assert_eq!(outcomes(&cut), [(Outcome::TruncatedStream, 100)]);
    // Cut at its start a reply leaves its place: the last of 110 that come each 50 ms does not wait.
    assert_eq!(cut.took_ns, 109 * 50_000_000);
    let silent = trial(&one_server(always(json!("no_usage"))), 5, Part::Step).0;
    assert_eq!((silent.window.good, silent.held, silent.objectives[1].unmeasured), (None, None, 100));
    // What ends at an instant meets what arrives at it, so that one of three finds the server free.
    let full = one_server(json!({ "queue": { "limit": 0 } }));
    assert_eq!(outcomes(&trial(&full, 20, Part::Step).0), [(Outcome::Ok, 33), (Outcome::HttpError, 67)]);
}

#[test]
fn a_stall_is_waited_out() {
    // The stall of a second meets the tenth measured request as it begins.
    let stalled =
        one_server(json!({ "faults": [{ "when": { "from": "4s" }, "what": { "kind": "stall", "for": "1s" } }] }));
    let (trial, requests) = trial(&stalled, 5, Part::Step);
    let step = summarise_step(planned(5).load, &[(trial, requests)], None);
    assert_eq!(step.metrics["e2e"].max_ns, Some(1_100_000_000));
}

#[test]
fn a_slower_endpoint_stretches_every_time_and_a_closed_loop_is_not_rehearsed() {
    let profile = parse_profile(&one_server(json!({})).to_string()).expect("a profile").slowed(1.5);
    let (trial, requests) = rehearse_trial(&slo(), &planned(5), Part::Step, Stage::new(profile.clone())).expect("open");
    let step = summarise_step(planned(5).load, &[(trial, requests)], None);
    assert_eq!(step.metrics["e2e"].p50_ns, Some(150_000_000));
    let clients = ConcurrencyPlan { clients: 1, warm_up_ns: 0, window_ns: 1, drain_ns: 0 };
    let closed = PlannedTrial { shape: TrialShape::Closed(clients), ..planned(5) };
    assert!(rehearse_trial(&slo(), &closed, Part::Step, Stage::new(profile)).is_none());
}
