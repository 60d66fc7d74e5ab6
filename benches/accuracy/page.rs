//! The page that the benchmark writes.

use std::fmt::Write;

use crate::comparisons;
use crate::{Cell, Effort, LOADS, Measured, NOISES, SCENARIOS, SEARCHED, Setting, WINDOWS};

/// The chance of a wrong PASS on the limit, and of a wrong FAIL: the sum over the looks at 3, 5 and 8 trials, in percent.
const STATED: f64 = 3.75;
/// The most that the method has seen on its queues, in percent.
const STATED_MOST: f64 = 7.0;

/// How to read the page, and what the scenarios are.
const GUIDE: &str = "
Read it so: the nearer a load is to the limit, the more often the answer is UNKNOWN, and exactly on the limit about nine in ten are. Wrong answers stay
rare on both sides of it. The naive rule always answers, and on the limit every second of its answers is wrong. Longer trials and quieter machines
turn UNKNOWN into PASS or FAIL; queues whose waits have long tails (q-01, q-12, q-15) need the longest.

| scenario | queue | what must hold |
|---|---|---|
| q-01, q-03 | one server, exponential service | P99 of the whole, of the wait |
| q-04 | one server, constant service | P99 of the wait |
| q-05 | eight servers, constant service | P99 of the wait |
| q-07 | sixteen servers, exponential service | P95 of the wait |
| q-08 | eight servers, exponential service | P99 of the wait and P95 of the whole |
| q-09, q-10 | continuous batching, exponential lengths of replies | P99 of the wait; q-10 also P95 of the whole |
| q-12 | bursty arrivals (coefficient of variation 2), one server | P99 of the wait |
| q-14 | constant arrivals, one server | P99 of the wait |
| q-15 | one server, one request in ten is eleven times as long | P99 of the wait |
| q-20 | one server that refuses when 20 are in the system | success rate of 99.9 % |
| q-22 | one server, 0.4 % of the requests fail | P99 of the whole |
";

/// The whole page, as Markdown.
pub(crate) fn page(measured: &Measured, effort: Effort) -> String {
    let mut page = String::new();
    let Effort { schedules, gates, searches, .. } = effort;
    let _ = write!(
        page,
        "# How accurate the gate is

Written by `cargo bench --bench accuracy -- --write`; do not edit. Whole runs in virtual time: schedule, records, summary, plan and judge are the
real ones, the endpoint is a queue whose capacity has a closed form, the load generator is never late. Everything is seeded.

What is true is the load at which the *median run* just holds, because a gate speaks of a typical run of so many requests
([verdict.md](verdict.md)); it is found by bisection on {schedules} schedules and is load 1.00 below. Every trial has 300 requests to warm up and 300 or
1,000 measured ones. Looks are at 3, 5 and 8 trials. Noise is the standard deviation by which all times of one trial differ from those of the next.
A percentage over {gates} gates has a standard error of up to {:.1} points; near 5 % it is {:.1}.
",
        error(50.0, gates),
        error(5.0, gates),
    );
    page.push_str(GUIDE);
    by_load(&mut page, measured);
    by_scenario(&mut page, measured, gates);
    search_table(&mut page, measured, searches);
    medians(&mut page, measured);
    comparisons::section(&mut page, &measured.compared);
    every_cell(&mut page, measured);
    page
}

/// The standard error of a percentage.
pub(crate) fn error(percent: f64, of: u64) -> f64 {
    (percent * (100.0 - percent) / of as f64).sqrt()
}

pub(crate) fn percent(count: u64, of: u64) -> f64 {
    100.0 * count as f64 / of as f64
}

/// The mean, and the least and the most.
pub(crate) fn range(values: &[f64]) -> String {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(*v), most.max(*v)));
    format!("{mean:.1} ({least:.0}–{most:.0})")
}

fn by_load(page: &mut String, measured: &Measured) {
    let _ = write!(
        page,
        "
## Decisions by load

Mean over the {} scenarios, and the least and the most of them, in percent. Right is PASS below 1.00 and FAIL above; on 1.00 itself both are wrong. The naive rule makes
one trial and compares the observed percentile with the limit, without an interval: what it does not pass it fails.

| requests | noise | load | PASS | FAIL | UNKNOWN | trials | requests sent | naive PASS |
|---|---|---|---|---|---|---|---|---|
",
        SCENARIOS.len()
    );
    for window in WINDOWS {
        for noise in NOISES {
            for load in LOADS {
                let cells: Vec<&Cell> =
                    SCENARIOS.iter().map(|id| &measured.cells[&((*id, window), noise, load)]).collect();
                let of = |value: fn(&Cell) -> f64| range(&cells.iter().map(|cell| value(cell)).collect::<Vec<_>>());
                let mean = |value: fn(&Cell) -> u64| {
                    cells.iter().map(|cell| value(cell) as f64 / cell.gates as f64).sum::<f64>() / cells.len() as f64
                };
                let _ = writeln!(
                    page,
                    "| {window} | {noise} % | {:.2} | {} | {} | {} | {:.1} | {:.0} | {} |",
                    f64::from(load) / 100.0,
                    of(Cell::passed),
                    of(Cell::failed),
                    of(|cell| 100.0 - cell.passed() - cell.failed()),
                    mean(|cell| cell.trials),
                    mean(|cell| cell.requests),
                    of(|cell| percent(cell.naive_pass, cell.gates)),
                );
            }
        }
    }
}

impl Cell {
    fn passed(&self) -> f64 {
        percent(self.pass, self.gates)
    }

    fn failed(&self) -> f64 {
        percent(self.fail, self.gates)
    }
}

/// Wrong decisions of one setting and noise: PASS above the limit, FAIL below it, and both on it.
struct Wrong {
    pass_above: f64,
    fail_below: f64,
    pass_on: f64,
    fail_on: f64,
}

impl Wrong {
    fn of(measured: &Measured, setting: Setting, noise: u32) -> Self {
        let cell = |load: u32| &measured.cells[&(setting, noise, load)];
        let most = |value: fn(&Cell) -> f64, wanted: fn(u32) -> bool| {
            LOADS.iter().filter(|load| wanted(**load)).map(|load| value(cell(*load))).fold(0.0, f64::max)
        };
        Self {
            pass_above: most(Cell::passed, |load| load > 100),
            fail_below: most(Cell::failed, |load| load < 100),
            pass_on: cell(100).passed(),
            fail_on: cell(100).failed(),
        }
    }

    fn worst(&self) -> f64 {
        [self.pass_above, self.fail_below, self.pass_on, self.fail_on].into_iter().fold(0.0, f64::max)
    }
}

fn by_scenario(page: &mut String, measured: &Measured, gates: u64) {
    let _ = write!(
        page,
        "
## Wrong decisions

In percent: PASS at the worst load above 1.00, FAIL at the worst load below, and both on 1.00. Stated on 1.00 are {STATED} % a side by the levels of the looks, and up
to {STATED_MOST:.0} % on the queues that the method was tried on; elsewhere less. More than that by two standard errors is bold.

| scenario | requests | noise | PASS above | FAIL below | PASS on 1.00 | FAIL on 1.00 |
|---|---|---|---|---|---|---|
"
    );
    let mut beyond = Vec::new();
    let is_beyond = |value: f64| value > STATED_MOST + 2.0 * error(STATED_MOST, gates);
    for id in SCENARIOS {
        for window in WINDOWS {
            for noise in NOISES {
                let wrong = Wrong::of(measured, (id, window), noise);
                let show =
                    |value: f64| if is_beyond(value) { format!("**{value:.1}**") } else { format!("{value:.1}") };
                let _ = writeln!(
                    page,
                    "| {id} | {window} | {noise} % | {} | {} | {} | {} |",
                    show(wrong.pass_above),
                    show(wrong.fail_below),
                    show(wrong.pass_on),
                    show(wrong.fail_on)
                );
                if is_beyond(wrong.worst()) {
                    beyond.push(format!("{id} with {window} requests and {noise} % noise ({:.1} %)", wrong.worst()));
                }
            }
        }
    }
    let told = if beyond.is_empty() { "no setting".to_owned() } else { beyond.join(", ") };
    let _ = writeln!(
        page,
        "
Beyond what is stated: {told}.

q-20 limits failures alone, and its full queue refuses requests in clusters. Failures of all trials are counted together, and a typical trial
must break the budget besides before that is a FAIL."
    );
}

fn search_table(page: &mut String, measured: &Measured, searches: u64) {
    let _ = write!(
        page,
        "
## The search

Five seeds at 5 % precision, from the middle of a range of 1 to 32, {searches} times. Covered is how often the interval holds the median run's capacity (93.75 % are stated), and how often its
lower end is not above it (96.9 %); its standard error is up to {:.1} points. Requests are those that are decided before a trial that cannot hold any more is ended. The time
is that of the search alone, at the real speed of the scenario.

| scenario | requests | noise | covered | lower end | trials | requests sent | hours | width |
|---|---|---|---|---|---|---|---|---|
",
        error(93.75, searches)
    );
    for id in SEARCHED {
        for window in WINDOWS {
            for noise in NOISES {
                let found = &measured.searched[&((id, window), noise)];
                let mean = |sum: f64| sum / found.searches as f64;
                let _ = writeln!(
                    page,
                    "| {id} | {window} | {noise} % | {:.1} % | {:.1} % | {:.1} | {:.0} | {:.2} | {:.1} % |",
                    percent(found.covered, found.searches),
                    percent(found.covered_below, found.searches),
                    mean(found.trials as f64),
                    mean(found.requests as f64),
                    mean(found.seconds) / 3_600.0,
                    100.0 * mean(found.width).exp_m1(),
                );
            }
        }
    }
}

fn medians(page: &mut String, measured: &Measured) {
    let _ = write!(
        page,
        "
## Where the median run just holds

In units of the long run's capacity, with its standard error; beside it what an independent program found.

| scenario | requests | measured | reference |
|---|---|---|---|
"
    );
    for id in SCENARIOS {
        for window in WINDOWS {
            let median = &measured.medians[&(id, window)];
            let reference = median.reference.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
            let (value, error) = median.over_long_run;
            let _ = writeln!(page, "| {id} | {window} | {value:.3} ± {error:.3} | {reference} |");
        }
    }
}

fn every_cell(page: &mut String, measured: &Measured) {
    let header: String = LOADS.iter().map(|load| format!(" {:.2} |", f64::from(*load) / 100.0)).collect();
    let _ = write!(
        page,
        "
## Every cell

PASS / FAIL in percent, mean number of trials, and PASS of the naive rule.

| scenario | requests | noise |{header}
|---|---|---|{}
",
        "---|".repeat(LOADS.len())
    );
    for id in SCENARIOS {
        for window in WINDOWS {
            for noise in NOISES {
                let cells: String = LOADS
                    .iter()
                    .map(|load| {
                        let cell = &measured.cells[&((id, window), noise, *load)];
                        let trials = cell.trials as f64 / cell.gates as f64;
                        let naive = percent(cell.naive_pass, cell.gates);
                        format!(" {:.0} / {:.0}, {trials:.1}, {naive:.0} |", cell.passed(), cell.failed())
                    })
                    .collect();
                let _ = writeln!(page, "| {id} | {window} | {noise} % |{cells}");
            }
        }
    }
}
