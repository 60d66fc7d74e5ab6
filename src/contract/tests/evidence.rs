//! How much is measured before a verdict: search, repeats, claim, budgets and the floor of the capacity.

use super::*;
use crate::judge::Claim;

/// `BASE` with these lines under `traffic`.
fn with_traffic(lines: &str) -> String {
    changed(BASE, "  model: constant\n", &format!("  model: constant\n{lines}"))
}

#[test]
fn what_is_measured_before_a_verdict_is_read_and_has_defaults() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let plain = read(BASE).evidence;
    let budget = Budget { check: minutes(30), baseline: minutes(180), release: minutes(180) };
    assert_eq!(plain, EvidencePlan { claim: Claim::TypicalRun, looks: vec![3, 5, 8], search: None, budget });

    let text = with_traffic(
        "  search: { from: 1/s, to: 64/s, precision: 2.5%, seeds: 3 }
  repeats: [3, 6]
  claim: typical_run
  budget: { check: 20m, release: 5h }
",
    );
    let text = changed(&text, "  at_load: 4/s\n", "  at_load: 4/s\n  capacity: { at_least: 3.5/s }\n");
    let contract = read(&text);
    let precision = Share::from_ppm(25_000).expect("a share");
    let search = Search { from: rate("1/s"), to: rate("64/s"), precision, seeds: 3 };
    let budget = Budget { check: minutes(20), baseline: minutes(180), release: minutes(300) };
    let looks = vec![3, 6];
    assert_eq!(contract.evidence, EvidencePlan { claim: Claim::TypicalRun, looks, search: Some(search), budget });
    assert_eq!(contract.slo.capacity, Some(rate("3.5/s")));

    let evidence = |lines: &str| read(&with_traffic(lines)).evidence;
    let short = evidence("  search: { from: 500/s, to: 501/s }\n").search.expect("a search");
    assert_eq!((short.precision.ppm(), short.seeds), (50_000, 5));
    for (lines, claim, looks) in [
        ("  repeats: 5\n", Claim::TypicalRun, &[5][..]),
        ("  repeats: [4]\n", Claim::TypicalRun, &[4]),
        ("  claim: this_run\n", Claim::ThisRun, &[1]),
        ("  claim: long_run\n", Claim::LongRun, &[1]),
        ("  claim: long_run\n  repeats: [1, 2, 100]\n", Claim::LongRun, &[1, 2, 100]),
        ("  claim: long_run\n  repeats: 2\n", Claim::LongRun, &[2]),
    ] {
        let evidence = evidence(lines);
        assert_eq!((evidence.claim, evidence.looks.as_slice()), (claim, looks), "{lines}");
    }
    // The default claim holds in a closed loop as well; a closed loop has neither a search nor a floor.
    let closed = read(CLOSED);
    assert_eq!((closed.evidence.looks, closed.evidence.search, closed.slo.capacity), (vec![3, 5, 8], None, None));
}

/// Each row puts a line under `traffic`, the eleventh of the contract, and is told exactly this.
fn check_traffic(rows: &[(&str, &[&str])]) {
    for (line, expected) in rows {
        let text = with_traffic(&format!("  {line}\n"));
        assert!(parse(&text, Path::new("/repo")).is_err(), "`{line}` was accepted");
        assert_eq!(told(&text), *expected, "{line}");
    }
}

#[test]
fn faults_of_repeats_and_claim() {
    check_traffic(&[
        (
            "repeats: [3, 5, 5]",
            &[
                "11:19: /traffic/repeats/2: listed twice; trials only add up, so write ascending numbers, as in `[3, 5, 8]`",
            ],
        ),
        (
            "repeats: [3, 8, 5, 5]",
            &[
                "11:19: /traffic/repeats/2: less than 8 before it; trials only add up, so write ascending numbers, as in `[3, 5, 8]`",
                "11:22: /traffic/repeats/3: less than 8 before it; trials only add up, so write ascending numbers, as in `[3, 5, 8]`",
            ],
        ),
        (
            "repeats: [2, 5]",
            &[
                "11:13: /traffic/repeats/0: `claim: typical_run` needs at least 3 trials at its first look, which show how much schedules differ; write 3 or more, or remove it and write `claim: this_run`",
            ],
        ),
        (
            "repeats: 1",
            &[
                "11:12: /traffic/repeats: `claim: typical_run` needs at least 3 trials at its first look, which show how much schedules differ; write 3 or more, or remove it and write `claim: this_run`",
            ],
        ),
        ("repeats: []", &["11:3: /traffic/repeats: the list is empty; write at least one entry"]),
        ("repeats: [0, 3]", &["11:13: /traffic/repeats/0: `0` is too small; write at least 1"]),
        ("repeats: 101", &["11:12: /traffic/repeats: `101` is too large; write at most 100"]),
        ("repeats: [3, 5.5]", &["11:16: /traffic/repeats/1: expected a whole number, found the number `5.5`"]),
        (
            "repeats: many",
            &[
                "11:12: /traffic/repeats: `many` does not fit here; write a number of trials, or an ascending list of them, as in `[3, 5, 8]`",
            ],
        ),
        ("claim: typical", &["11:10: /traffic/claim: `typical` is not one of this_run, typical_run, long_run"]),
        (
            "repeats: 1\n  claim: this_run",
            &[
                "11:3: /traffic/repeats: `claim: this_run` speaks of one schedule, so one trial is made; remove `repeats`, or write `claim: typical_run`",
            ],
        ),
        // Of a claim that cannot be read nobody knows what it asks for.
        (
            "repeats: 1\n  claim: tpical_run",
            &["12:10: /traffic/claim: `tpical_run` is not known here; did you mean `typical_run`?"],
        ),
    ]);
}

#[test]
fn faults_of_a_search() {
    check(
        CLOSED,
        &[(
            "  concurrency",
            "  search: { from: 1/s, to: 2/s }\n  concurrency",
            "7:3: /traffic/search: a closed loop offers no load of its own that could be searched; list numbers of clients, as in `concurrency: [1, 2, 4]`",
        )],
    );
    check_traffic(&[
        (
            "search: { from: 4/s, to: 240/m }",
            &[
                "11:28: /traffic/search/to: nothing lies between 4/s and 4/s; write `to` above `from`, as in `from: 1/s, to: 64/s`",
            ],
        ),
        (
            "search: { from: 64/s, to: 1/s, precision: 0% }",
            &[
                "11:29: /traffic/search/to: nothing lies between 64/s and 1/s; write `to` above `from`, as in `from: 1/s, to: 64/s`",
                "11:45: /traffic/search/precision: a search cannot work with a precision of 0%; write 0.1% to 50%, as in `5%`",
            ],
        ),
        ("search: { from: 1/s }", &["11:3: /traffic/search: the key `to` is missing (the highest load that is tried)"]),
        (
            "search: { from: 1/s, to: 2/s, precision: 51% }",
            &[
                "11:44: /traffic/search/precision: a search cannot work with a precision of 51%; write 0.1% to 50%, as in `5%`",
            ],
        ),
        (
            "search: { from: 1/s, to: 2/s, seeds: 16 }",
            &["11:40: /traffic/search/seeds: `16` is too large; write at most 15"],
        ),
        (
            "search: { from: 1/s, to: 2/s, sedes: 5 }",
            &["11:33: /traffic/search/sedes: unknown key `sedes`; did you mean `seeds`?"],
        ),
        // 160 + 300 + 120 requests in 3 h are 0.0537 of them per second.
        (
            "search: { from: 0.05/s, to: 2/s }",
            &[
                "11:19: /traffic/search/from: one trial at 0.05/s takes 194m for its 580 requests, as many as at `at_load`, and the plan `release` no more than 3h; write at least `0.054/s`, or raise `budget.release`",
            ],
        ),
    ]);
    // What is proposed is accepted.
    read(&with_traffic("  search: { from: 0.054/s, to: 2/s }\n"));
    read(&with_traffic("  search: { from: 0.05/s, to: 2/s }\n  budget: { release: 194m }\n"));
}

#[test]
fn a_budget_that_is_too_small_for_one_trial_is_refused() {
    // 160 + 300 + 120 requests at 4/s are 145 s.
    check_traffic(&[
        (
            "budget: { check: 144s, release: 2m }",
            &[
                "11:20: /traffic/budget/check: one trial at 4/s takes 145s; write at least that, or shorten the trial",
                "11:35: /traffic/budget/release: one trial at 4/s takes 145s; write at least that, or shorten the trial",
            ],
        ),
        (
            "budget: { baseline: 0s }",
            &["11:23: /traffic/budget/baseline: zero can never be met; write a duration above zero"],
        ),
        ("budget: { check: 200h }", &["11:20: /traffic/budget/check: longer than a week; write at most `168h`"]),
        ("budget: 30m", &["11:11: /traffic/budget: expected a mapping of keys to values, found the text `30m`"]),
    ]);
    read(&with_traffic("  budget: { check: 145s }\n"));
    let trial = "{ window: 75s, warm_up: 40s, drain: 30s }";
    check(
        BASE,
        &[
            // (2,000 + 10,000 + 120) / 4 per second = 3,030 s = 50.5 min.
            (
                trial,
                "{ requests: 10000 }",
                "12:22: /traffic/trial/requests: one trial at 4/s takes 51m, and by default the plan `check` takes no more than 30m; shorten the trial, or write `budget: { check: 51m }` in `traffic`",
            ),
            (
                trial,
                "{ window: 4h, warm_up: 0s, drain: 30s }",
                "12:20: /traffic/trial/window: one trial at 4/s takes 241m, and by default the plan `check` takes no more than 30m; shorten the trial, or write `budget: { check: 241m, baseline: 241m, release: 241m }` in `traffic`",
            ),
        ],
    );
    let budgets = with_traffic("  budget: { check: 241m, baseline: 241m, release: 241m }\n");
    read(&changed(&budgets, trial, "{ window: 4h, warm_up: 0s, drain: 30s }"));
    // 12 minutes to warm up, an hour, and 20 s to drain.
    check(
        CLOSED,
        &[(
            "window: 60s",
            "window: 60m",
            "8:20: /traffic/trial/window: one trial at 4 clients takes 73m, and by default the plan `check` takes no more than 30m; shorten the trial, or write `budget: { check: 73m }` in `traffic`",
        )],
    );
}

#[test]
fn a_floor_of_the_capacity_can_be_reached() {
    check(
        CLOSED,
        &[(
            "at_concurrency: 4",
            "at_concurrency: 4\n  capacity: { at_least: 4/s }",
            "12:3: /slo/capacity: a closed loop offers no load of its own, so its capacity is no rate; remove it, or measure in an open loop (`model: poisson`)",
        )],
    );
    let floor = |floor: &str| format!("at_load: 4/s\n  capacity: {floor}");
    check(
        BASE,
        &[
            (
                "at_load: 4/s",
                &floor("{ at_least: 4.001/s }"),
                "19:25: /slo/capacity/at_least: no load of the contract reaches it; write `loads: [4.001/s]`, or `search: { from: 1/s, to: 64/s }`, in `traffic`",
            ),
            (
                "at_load: 4/s",
                &floor("{ at_least: 4 }"),
                "19:25: /slo/capacity/at_least: `4` is not a rate; write a number above zero and `/s`, as in `4/s` or `0.5/s` (steps of 0.001/s); did you mean `4/s`?",
            ),
            (
                "at_load: 4/s",
                &floor("4/s"),
                "19:13: /slo/capacity: expected a mapping of keys to values, found the text `4/s`",
            ),
            (
                "at_load: 4/s",
                &floor("{}"),
                "19:3: /slo/capacity: the key `at_least` is missing (the offered load that must be shown to hold)",
            ),
        ],
    );
    let searched = with_traffic("  search: { from: 3/s, to: 8/s }\n");
    check(
        &searched,
        &[(
            "at_load: 4/s",
            &floor("{ at_least: 8.5/s }"),
            "20:25: /slo/capacity/at_least: no search can show it, for the highest load that is tried is 8/s; lower it, or raise `to` of `traffic.search`",
        )],
    );
    for (base, reached) in [(BASE, "4/s"), (&searched, "8/s"), (&searched, "1/s")] {
        read(&changed(base, "at_load: 4/s", &floor(&format!("{{ at_least: {reached} }}"))));
    }
}
