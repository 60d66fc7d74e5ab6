//! What plans cost and can decide, and that every proposed change is true: written into the contract and read again.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::contract::{parse, render_faults};
use crate::units::{Rate, format_duration};

/// A contract in parts.
#[derive(Debug, Clone)]
struct Text {
    loads: String,
    at: String,
    trial: String,
    /// Lines under `traffic`.
    traffic: Vec<String>,
    objectives: Vec<&'static str>,
    floor: Option<&'static str>,
}

impl Text {
    /// 240 requests at 4/s: the example of the method, section 12.
    fn new(objectives: &[&'static str]) -> Self {
        Self {
            loads: "loads: [4/s]".to_owned(),
            at: "at_load: 4/s".to_owned(),
            trial: "window: 60s, warm_up: 36s, drain: 30s".to_owned(),
            traffic: Vec::new(),
            objectives: objectives.to_vec(),
            floor: None,
        }
    }

    fn with(mut self, line: &str) -> Self {
        let key = line.split(':').next().unwrap().to_owned() + ":";
        self.traffic.retain(|line| !line.starts_with(&key));
        self.traffic.push(line.to_owned());
        self
    }

    fn trial(self, trial: &str) -> Self {
        Self { trial: trial.to_owned(), ..self }
    }

    fn contract(&self) -> Contract {
        let model = if self.at.starts_with("at_load") { "poisson" } else { "closed" };
        let floor = self.floor.map(|floor| format!("\n  capacity: {{ at_least: {floor} }}")).unwrap_or_default();
        let text = format!(
            "version: 1
name: demo
endpoint: {{ url: \"http://127.0.0.1:1/v1/chat/completions\", protocol: openai-chat, model: m }}
workload: {{ cases: c.json }}
traffic:
  model: {model}
  {}
  trial: {{ {} }}
  {}
slo:
  request: {{ e2e: 30s }}
  objectives:
    - {{ {} }}
  {}{floor}
",
            self.loads,
            self.trial,
            self.traffic.join("\n  "),
            self.objectives.join(" }\n    - { "),
            self.at,
        );
        match parse(&text, Path::new("/repo")) {
            Ok(loaded) => loaded.contract,
            Err(faults) => panic!("{}", render_faults(&faults, "c.yaml", &text)),
        }
    }

    /// The contract with a proposed change written into it; `by_window` takes the length of the window for its requests.
    fn changed(&self, change: &Change, by_window: bool) -> Self {
        let mut text = self.clone();
        if let (Some(requests), Some(window)) = (change.requests, change.window_ns) {
            let rest =
                text.trial.split(", ").filter(|part| !part.starts_with("window") && !part.starts_with("requests"));
            let rest: Vec<&str> = rest.collect();
            let size = if by_window {
                format!("window: {}", format_duration(Duration::from_nanos(window)))
            } else {
                format!("requests: {requests}")
            };
            text.trial = [vec![size.as_str()], rest].concat().join(", ");
        }
        if let Some(repeats) = &change.repeats {
            text = text.with(&format!("repeats: {repeats:?}"));
        }
        // What was in the budget stays in it.
        let mut budgets: Vec<(String, String)> = Vec::new();
        let old = text.traffic.iter().find_map(|line| line.strip_prefix("budget: {")).map(str::to_owned);
        for part in old.iter().flat_map(|old| old.trim_end_matches('}').split(',')) {
            let (plan, time) = part.split_once(':').unwrap();
            budgets.push((plan.trim().to_owned(), time.trim().to_owned()));
        }
        for PlanBudget { plan, budget_ns } in &change.budgets {
            budgets.retain(|(name, _)| name != plan.name());
            budgets.push((plan.name().to_owned(), format_duration(Duration::from_nanos(*budget_ns))));
        }
        let budgets: Vec<String> = budgets.iter().map(|(plan, time)| format!("{plan}: {time}")).collect();
        if budgets.is_empty() { text } else { text.with(&format!("budget: {{ {} }}", budgets.join(", "))) }
    }
}

const TTFT_P99: &str = "metric: ttft, percentile: 99, at_most: 3s";
const SUCCESS_999: &str = "metric: success_rate, at_least: 99.9%";

fn shown(of: &ObjectiveForecast) -> String {
    let changes: Vec<String> = of.changes.iter().map(Change::text).collect();
    format!(
        "{} {:?} of {:?}, {:?} may miss, after {:?}: {:?} | {} | {}",
        of.id,
        of.smallest_sample,
        of.requests.unwrap_or_default(),
        of.may_miss,
        of.trials.unwrap_or_default(),
        of.can_pass,
        of.notes.join("; "),
        changes.join(", or ")
    )
}

fn objectives(text: &Text, plan: Plan) -> Vec<String> {
    forecast(&text.contract(), plan).objectives.iter().map(shown).collect()
}

#[test]
fn the_example_of_the_method_costs_6_to_17_minutes() {
    // Method, section 12: 3 to 8 trials of 36 + 60 + 30 s.
    let found = forecast(&Text::new(&[TTFT_P99]).contract(), Plan::Check);
    let seconds = |span: Span| (span.least as f64 / 1e9, span.most as f64 / 1e9);
    assert_eq!(found.total.trials, Span { least: 3, most: 8 });
    assert_eq!(seconds(found.total.load_time_ns), (378.0, 1_008.0));
    assert_eq!(found.total.requests, Some(Span { least: 3 * 504, most: 8 * 504 }));
    assert_eq!((found.budget.fit, found.budget.changes.len()), (Fit::Whole, 0));
}

#[test]
fn a_typical_run_can_be_decided_where_one_trial_cannot() {
    // Method, section 12: this_run needs 299 requests, a success rate of 99.9 % is undecidable at 240 × 8.
    let zero = "metric: success_rate, at_least: 100%";
    let of = |objective| objectives(&Text::new(&[objective]), Plan::Check).remove(0);
    let flatter = "the limit allows 2.4 violations in 240 requests; short trials flatter capacity";
    assert_eq!(
        of(TTFT_P99),
        format!(
            "ttft_p99 100 of 240, Some(2) may miss, after 3: Some(true) | {flatter}; one trial alone (`claim: this_run`) would need 299 requests | "
        )
    );
    // 0.05 is shared by three looks: ln(0.05 / 3) / ln(0.999) = 4092.3; 512 × 8 = 4096 and 240 × 18 = 4320 are enough. The trial
    // of 512 requests is 776 / 4 = 194 s with its warm-up and drain, and eight of them 25.9 min.
    assert_eq!(
        of(SUCCESS_999),
        "success_rate 4093 of 1920, None may miss, after 0: Some(false) \
         | UNKNOWN whatever is measured: 1920 requests of 8 trials are too few, 4093 without violation can PASS it \
         | `requests: 512` (or `window: 128s`), or `repeats: [3, 5, 18]` and `budget: { check: 38m }`"
    );
    assert_eq!(
        of(zero),
        "success_rate 1 of 1920, Some(0) may miss, after 3: Some(true) \
         | one violation is FAIL; none of 720 is PASS, and shows at most 0.4166% at 95% | "
    );
    assert_eq!(
        of("metric: itl, percentile: 99.9, at_most: 3s"),
        "itl_p99.9 1000 of 240, Some(0) may miss, after 0: Some(false) \
         | UNKNOWN whatever is measured: the limit allows 0.2 violations in 240 requests, and it must be one, as in 1000 \
         | `requests: 1000` (or `window: 250s`)"
    );
    assert_eq!(
        of("metric: attainment, at_least: 100%"),
        "attainment 20 of 240, Some(0) may miss, after 3: Some(true) | a trial with one violation does not hold | "
    );
}

#[test]
fn one_trial_needs_what_the_exact_rule_needs() {
    // Method, section 6: P99 with 299 requests without violation, four among 1,000; 99.9 % with 2,995.
    let text = Text::new(&[TTFT_P99, SUCCESS_999]).with("claim: this_run");
    assert_eq!(
        objectives(&text, Plan::Check),
        [
            "ttft_p99 299 of 240, None may miss, after 0: Some(false) | 240 requests cannot PASS it; 299 without violation can | `requests: 299` (or `window: 75s`)",
            "success_rate 2995 of 240, None may miss, after 0: Some(false) | 240 requests cannot PASS it; 2995 without violation can | `requests: 2995` (or `window: 749s`)",
        ]
    );
    let longer = text.trial("requests: 1000, drain: 30s");
    assert!(
        objectives(&longer, Plan::Check)[0]
            .starts_with("ttft_p99 299 of 1000, Some(4) may miss, after 1: Some(true) |")
    );
}

#[test]
fn the_long_run_is_not_known_before() {
    let text = Text::new(&["metric: itl, percentile: 95, at_most: 1s"]).with("claim: long_run");
    let open = "independent requests would do, but violations come in clusters: 3,000 to 30,000 and more are common, and the run itself shows how many";
    // Method, section 6 and 7: P95 needs 59 requests, and nothing is claimed below 200.
    assert_eq!(
        objectives(&text, Plan::Check),
        [format!("itl_p95 200 of 240, None may miss, after 1: None | 200 {open} | ")]
    );
    let short = text.trial("window: 10s");
    assert_eq!(
        objectives(&short, Plan::Check),
        ["itl_p95 200 of 40, None may miss, after 0: Some(false) \
          | UNKNOWN whatever is measured: 40 requests of 1 trials are too few, 200 without violation can PASS it \
          | `requests: 200` (or `window: 50s`), or `repeats: [5]`"]
    );
}

#[test]
fn a_window_in_which_an_overload_does_not_show_is_noted() {
    // 3 s / 5 % = 60 s, and 3 s / 2 % = 150 s.
    let note = |text: &Text| forecast(&text.contract(), Plan::Check).objectives[0].notes.last().cloned().unwrap();
    let text = Text::new(&[TTFT_P99]);
    assert!(note(&text.clone().trial("window: 60s")).starts_with("one trial alone"));
    assert_eq!(
        note(&text.clone().trial("window: 59s")),
        "a window of 59 s may not notice 5% too much load; one of 1m would"
    );
    assert_eq!(
        note(&text.with("search: { from: 1/s, to: 8/s, precision: 2% }").trial("window: 140s")),
        "a window of 140 s may not notice 2% too much load; one of 150s would"
    );
}

#[test]
fn a_closed_loop_promises_no_number_of_requests() {
    let mut text = Text::new(&["metric: itl, percentile: 99, at_most: 3s", SUCCESS_999]);
    (text.loads, text.at) = ("concurrency: [2, 4]".to_owned(), "at_concurrency: 4".to_owned());
    let closed = "in a closed loop the server's speed sets the number of requests;";
    assert_eq!(
        objectives(&text, Plan::Check),
        [
            format!("itl_p99 100 of 0, None may miss, after 0: None | {closed} 100 in each trial are needed | "),
            format!(
                "success_rate 4093 of 0, None may miss, after 0: None | {closed} 4093 of all trials together are needed | "
            ),
        ]
    );
    let tight = text.with("budget: { check: 5m }");
    let found = forecast(&tight.contract(), Plan::Check);
    assert_eq!(found.objectives[0].can_pass, Some(false), "three trials of 126 s do not fit");
    assert_eq!(found.objectives[0].changes.iter().map(Change::text).collect::<Vec<_>>(), ["`budget: { check: 378s }`"]);
    assert_eq!(found.total.requests, None);
}

#[test]
fn a_plan_is_held_against_its_budget() {
    // Trials of 126 s at 4/s and 252 s at 2/s.
    let text = |budget: &str, repeats: &str| {
        let mut text =
            Text::new(&[TTFT_P99]).with(&format!("budget: {{ check: {budget} }}")).with(&format!("repeats: {repeats}"));
        text.loads = "loads: [2/s, 4/s]".to_owned();
        text
    };
    let shown = |budget: &str, repeats: &str| {
        let found = forecast(&text(budget, repeats).contract(), Plan::Check);
        let changes = |changes: &[Change]| changes.iter().map(Change::text).collect::<Vec<_>>().join(", or ");
        let objective = &found.objectives[0];
        format!(
            "{:?} {} | {:?} {}",
            found.budget.fit,
            changes(&found.budget.changes),
            objective.can_pass,
            changes(&objective.changes)
        )
    };
    assert_eq!(shown("21m", "[3, 5, 8]"), "Whole  | Some(true) ");
    assert_eq!(shown("1259s", "[3, 5, 8]"), "Fewest `budget: { check: 21m }` | Some(true) ");
    assert_eq!(shown("629s", "[3, 5, 8]"), "FirstLook `budget: { check: 21m }` | Some(true) ");
    assert_eq!(
        shown("377s", "[3, 5, 8]"),
        "TooSmall `budget: { check: 378s }` | Some(false) `budget: { check: 378s }`"
    );
    assert_eq!(
        shown("9m", "[5, 8]"),
        "TooSmall `repeats: [4]`, or `budget: { check: 11m }` | Some(false) `repeats: [4]`, or `budget: { check: 11m }`"
    );
}

#[test]
fn a_later_look_needs_the_time_of_its_round() {
    // 4,093 requests without failure are seen after 8 trials of 512. The other load's one trial comes before.
    let mut text =
        Text::new(&[SUCCESS_999]).trial("requests: 512, warm_up: 30s, drain: 30s").with("budget: { check: 30m }");
    text.loads = "loads: [1/s, 4/s]".to_owned();
    // 752 requests: 188 s at 4/s and 752 s at 1/s; 8 × 188 + 752 = 2,256 s = 37.6 min.
    assert_eq!(
        objectives(&text, Plan::Check),
        ["success_rate 4093 of 4096, Some(0) may miss, after 8: Some(false) \
          | it can PASS after 8 trials, not before; the 8 trials that can decide it take 2256s, and the plan `check` may take 30m \
          | `budget: { check: 38m }`"]
    );
}

#[test]
fn a_search_costs_what_its_rule_makes() {
    let text = Text::new(&[TTFT_P99]).with("search: { from: 1/s, to: 16/s, precision: 3% }");
    let found = forecast(&text.contract(), Plan::Release);
    let search = found.search.unwrap();
    // The first search starts at the middle, 4/s, which holds; 4.4/s does not; 4.195/s, 4.096/s do not either. The four later
    // ones take about 5 each at 3 % (method, section 9), and the first schedule is tried once more.
    assert_eq!(
        search.at_load,
        Some(SearchedAt {
            capacity: Rate::parse("4/s").unwrap(),
            trials: 4 + 20 + 1,
            load_time_ns: search.at_load.unwrap().load_time_ns
        })
    );
    let first: f64 = [4.0, 4.4, 4.195, 4.096].iter().map(|load| 504.0 / load).sum();
    let seconds = search.at_load.unwrap().load_time_ns as f64 / 1e9;
    assert!((seconds - (first + 21.0 * 126.0)).abs() < 0.01, "{seconds}");
    // At best every schedule holds at 16/s: 4, 4.4, 5.324, 7.795 and 16/s, then once for each later schedule.
    let best: f64 = [4.0, 4.4, 5.324, 7.795, 16.0].iter().map(|load| 504.0 / load).sum::<f64>() + 4.0 * 31.5;
    assert!((search.load_time_ns.least as f64 / 1e9 - best).abs() < 0.05, "{} {best}", search.load_time_ns.least);
    // At worst the capacity lies just above 1/s, where one trial takes 504 s.
    let worst = search.load_time_ns.most as f64 / 1e9;
    assert!((21.0 * 504.0..21.0 * 504.0 + 8.0 * 504.0).contains(&worst), "{worst}");
    assert_eq!(search.trials.least, 9);
    assert_eq!(search.note, None);
    // A pull request does not search, and a release measures no other load.
    assert_eq!(forecast(&text.contract(), Plan::Check).search, None);
    assert_eq!(found.steps.len(), 1);
    // 15 trials are not enough for a thousandth in a range of four decades.
    let text = Text::new(&[TTFT_P99]).with("search: { from: 0.1/s, to: 1000/s, precision: 0.1% }");
    assert!(forecast(&text.contract(), Plan::Release).search.unwrap().note.is_some());
}

#[test]
fn a_floor_is_decided_at_the_load_that_must_hold_or_by_a_search() {
    let floor = |floor, text: &Text, plan| {
        let found = forecast(&Text { floor: Some(floor), ..text.clone() }.contract(), plan).capacity.unwrap();
        format!("{:?} {}", found.can_pass, found.note)
    };
    let mut text = Text::new(&[TTFT_P99]);
    text.loads = "loads: [4/s, 5/s]".to_owned();
    assert_eq!(floor("4/s", &text, Plan::Check), "Some(true) by what is decided at 4/s, which is not below it");
    assert_eq!(
        floor("5/s", &text, Plan::Check),
        "None not a row of the plan `check`; write `at_load: 5/s`, or use `--plan baseline`, which judges every listed load"
    );
    assert_eq!(floor("5/s", &text, Plan::Baseline), "Some(true) by what is decided at 5/s");
    let searched = |seeds: u32| text.clone().with(&format!("search: {{ from: 2/s, to: 8/s, seeds: {seeds} }}"));
    assert_eq!(
        floor("5/s", &searched(5), Plan::Check),
        "None not a row of the plan `check`; write `at_load: 5/s`, or use `--plan baseline`, which searches"
    );
    assert_eq!(floor("5/s", &searched(5), Plan::Release), "Some(true) by the search");
    assert_eq!(
        floor("5/s", &searched(4), Plan::Release),
        "Some(false) 4 searches give an end of the capacity less than 95%; write `seeds: 5`"
    );
    let slow = searched(5).with("budget: { release: 40m }");
    assert_eq!(floor("5/s", &slow, Plan::Release), "None by the search, if the budget suffices");
    let one = text.with("claim: this_run").trial("requests: 400, drain: 30s");
    assert_eq!(
        floor("4/s", &one, Plan::Check),
        "None not a row of the plan `check`; write a `search` in `traffic` and use `--plan baseline`"
    );
}

/// Every change that is proposed for an objective lets it PASS when it is written into the contract, and one request or one
/// trial less does not.
fn check_proposals(text: &Text, plan: Plan) -> usize {
    let found = forecast(&text.contract(), plan);
    let mut proposals = 0;
    for (index, objective) in found.objectives.iter().enumerate() {
        for change in &objective.changes {
            proposals += 1;
            for by_window in [false, true] {
                let changed = text.changed(change, by_window);
                let then = &forecast(&changed.contract(), plan).objectives[index];
                assert_ne!(then.can_pass, Some(false), "{}: {} in {changed:?}", shown(then), change.text());
            }
            let less = Change {
                requests: change.requests.map(|requests| requests - 1),
                repeats: change.repeats.as_ref().filter(|_| objective.trials.is_none()).map(|repeats| {
                    let (last, before) = repeats.split_last().unwrap();
                    [before, &[last - 1]].concat()
                }),
                ..change.clone()
            };
            if (less.requests, &less.repeats) != (change.requests, &change.repeats)
                && less.repeats.as_ref().is_none_or(|r| r.is_sorted_by(|a, b| a < b))
            {
                let then = &forecast(&text.changed(&less, false).contract(), plan).objectives[index];
                assert_eq!(then.can_pass, Some(false), "less than {} is enough in {text:?}", change.text());
            }
        }
    }
    if let Some(change) = found.budget.changes.first().filter(|_| found.budget.fit != Fit::TooSmall) {
        assert_eq!(forecast(&text.changed(change, false).contract(), plan).budget.fit, Fit::Whole, "{text:?}");
        proposals += 1;
    }
    for change in found.budget.changes.iter().filter(|_| found.budget.fit == Fit::TooSmall) {
        assert_ne!(forecast(&text.changed(change, false).contract(), plan).budget.fit, Fit::TooSmall, "{text:?}");
        proposals += 1;
    }
    proposals
}

#[test]
fn every_proposal_is_true() {
    let objectives = [
        TTFT_P99,
        SUCCESS_999,
        "metric: ttft, percentile: 99.9, at_most: 3s",
        "metric: ttft, percentile: 99.99, at_most: 3s",
        "metric: e2e, percentile: 95, at_most: 30s",
        "metric: attainment, at_least: 99.5%",
    ];
    let mut proposals = 0;
    for claim in ["this_run", "typical_run", "long_run"] {
        for trial in [
            "requests: 10, drain: 30s",
            "window: 7s, warm_up: 0s",
            "window: 60s, warm_up: 36s, drain: 30s",
            "requests: 3000",
        ] {
            for (repeats, budget) in [
                ("", ""),
                ("repeats: [5, 7]", "budget: { check: 13m }"),
                ("repeats: 4", "budget: { check: 25m, release: 40m }"),
            ] {
                let mut text = Text::new(&objectives)
                    .trial(trial)
                    .with(&format!("claim: {claim}"))
                    .with("search: { from: 2/s, to: 9/s }");
                text.loads = "loads: [3/s, 4/s]".to_owned();
                // One trial has no repeats, and one of 3,000 requests takes longer than the short budget.
                let misfit = |line: &str| {
                    (claim == "this_run" && line.starts_with("repeats"))
                        || (trial.contains("3000") && line.contains("13m"))
                };
                for line in [repeats, budget].into_iter().filter(|line| !line.is_empty() && !misfit(line)) {
                    text = text.with(line);
                }
                proposals += Plan::ALL.into_iter().map(|plan| check_proposals(&text, plan)).sum::<usize>();
            }
        }
    }
    assert!(proposals > 300, "{proposals} proposals were tried");
}

#[test]
fn what_no_contract_may_ask_for_is_not_proposed() {
    // One violation in a million requests, for 69 hours at 4/s; three such trials are more than a week.
    let text = Text::new(&["metric: itl, percentile: 99.9999, at_most: 3s"]);
    let found = &forecast(&text.contract(), Plan::Check).objectives[0];
    assert_eq!((found.smallest_sample, found.can_pass, found.changes.len()), (1_000_000, Some(false), 0));
}
