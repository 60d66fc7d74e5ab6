//! How often a gate is right, and how far a search is off, on queues whose answer is known: thousands of whole runs in virtual
//! time, through the real schedule, records, summary, plan and judge.
//!
//! `cargo bench --bench accuracy` prints Markdown; `-- --write` writes `docs/accuracy.md` as well, `-- --quick` makes a fifth of
//! the runs, `-- --comparisons` only prints the part about comparisons with a baseline. Everything is seeded: the same build gives the same figures.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints, and one that cannot run has failed"
)]

#[path = "accuracy/comparisons.rs"]
mod comparisons;
#[path = "accuracy/page.rs"]
mod page;
#[path = "../tests/support/queues.rs"]
mod queues;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use comparisons::{COMPARED, Compared, compared};
use goodput::contract::{Contract, Plan};
use goodput::judge::Status;
use goodput::record::{RunResult, TrialRecord};
use goodput::schedule::{PlannedTrial, TrialCounts};
use goodput::search::Part;
use goodput::simulate::{rehearse, rehearse_trial};
use goodput::units::Load;
use queues::{Queue, overall, rate, search};

const SCENARIOS: [&str; 13] =
    ["q-01", "q-03", "q-04", "q-05", "q-07", "q-08", "q-09", "q-10", "q-12", "q-14", "q-15", "q-20", "q-22"];
/// Those whose search is measured.
const SEARCHED: [&str; 3] = ["q-05", "q-01", "q-09"];
const WINDOWS: [u64; 2] = [300, 1_000];
/// Loads in units of the one at which the median run just holds, in percent.
const LOADS: [u32; 7] = [80, 90, 95, 100, 105, 110, 120];
/// Standard deviation of the logarithm by which all times of a trial differ from those of the next, in percent.
const NOISES: [u32; 2] = [0, 3];

/// How many of everything.
#[derive(Clone, Copy)]
struct Effort {
    /// Schedules behind the load at which the median run just holds.
    schedules: u64,
    /// Gates for each load.
    gates: u64,
    /// Searches of five seeds each.
    searches: u64,
    /// Nightly runs, each with one change of every slowdown.
    nights: u64,
}

/// A scenario with so many measured requests in each trial.
type Setting = (&'static str, u64);

/// Where the median run just holds.
struct Median {
    load: f64,
    /// In units of the long run's capacity, and its standard error.
    over_long_run: (f64, f64),
    /// The same by the reference, where it has one.
    reference: Option<f64>,
}

/// What many gates at one load decided.
#[derive(Default)]
struct Cell {
    gates: u64,
    pass: u64,
    fail: u64,
    trials: u64,
    requests: u64,
    /// Gates whose first trial met its limits by the values observed.
    naive_pass: u64,
}

/// What many searches found.
#[derive(Default)]
struct Searched {
    searches: u64,
    covered: u64,
    covered_below: u64,
    trials: u64,
    requests: u64,
    seconds: f64,
    /// Sum of the logarithms of upper over lower end.
    width: f64,
}

/// Everything measured.
#[derive(Default)]
struct Measured {
    medians: BTreeMap<Setting, Median>,
    /// By noise and load, in percent.
    cells: BTreeMap<(Setting, u32, u32), Cell>,
    searched: BTreeMap<(Setting, u32), Searched>,
    compared: Compared,
}

fn main() {
    let given = |name: &str| std::env::args().any(|argument| argument == name);
    let effort = match given("--quick") {
        true => Effort { schedules: 100, gates: 40, searches: 20, nights: 10 },
        false => Effort { schedules: 400, gates: 200, searches: 100, nights: 30 },
    };
    let begun = Instant::now();
    if given("--comparisons") {
        let settings = COMPARED.iter().flat_map(|id| WINDOWS.map(|window| (*id, window))).collect();
        let measured = on_all_cores(settings, |setting| Measured {
            compared: compared(setting, effort.nights),
            ..Measured::default()
        });
        let mut section = String::new();
        comparisons::section(&mut section, &measured.compared);
        println!("{section}");
        eprintln!("accuracy: {:.0} s", begun.elapsed().as_secs_f64());
        return;
    }
    let measured = measure(effort);
    let page = page::page(&measured, effort);
    println!("{page}");
    eprintln!("accuracy: {:.0} s", begun.elapsed().as_secs_f64());
    if given("--write") {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/accuracy.md"), page).unwrap();
    }
}

/// Every setting.
fn measure(effort: Effort) -> Measured {
    let settings = SCENARIOS.iter().flat_map(|id| WINDOWS.map(|window| (*id, window))).collect();
    on_all_cores(settings, |setting| of_setting(setting, effort))
}

fn on_all_cores(settings: Vec<Setting>, of_setting: impl Fn(Setting) -> Measured + Sync) -> Measured {
    let (waiting, measured) = (Mutex::new(settings), Mutex::new(Measured::default()));
    let work = || {
        loop {
            let next = waiting.lock().unwrap().pop();
            let Some(setting) = next else { break };
            let found = of_setting(setting);
            let mut measured = measured.lock().unwrap();
            measured.medians.extend(found.medians);
            measured.cells.extend(found.cells);
            measured.searched.extend(found.searched);
            measured.compared.extend(found.compared);
            eprintln!("accuracy: {} with {} requests is done", setting.0, setting.1);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    measured.into_inner().unwrap()
}

fn of_setting(setting: Setting, effort: Effort) -> Measured {
    let (id, window) = setting;
    let (queue, counts) = (Queue::new(id), TrialCounts { warm_up: 300, window, drain: 200 });
    let mut found = Measured::default();
    let median = median(&queue, counts, effort.schedules);
    for noise in NOISES {
        for load in LOADS {
            let cell = gates(&queue, median.load * f64::from(load) / 100.0, counts, noise, effort.gates);
            found.cells.insert((setting, noise, load), cell);
        }
        if SEARCHED.contains(&id) {
            found.searched.insert((setting, noise), searches(&queue, &median, counts, noise, effort.searches));
        }
    }
    found.medians.insert(setting, median);
    if COMPARED.contains(&id) {
        found.compared = compared(setting, effort.nights);
    }
    found
}

/// The median over schedules of the highest load at which a run meets its limits, by bisection on each schedule.
fn median(queue: &Queue, counts: TrialCounts, schedules: u64) -> Median {
    let contract = queue.contract(rate(queue.capacity), counts, 0);
    let mut loads: Vec<f64> = (0..schedules)
        .map(|seed| {
            let (mut holds, mut breaks) = (0.1 * queue.capacity, 10.0 * queue.capacity);
            while breaks > 1.001 * holds {
                let middle = (holds * breaks).sqrt();
                let load = Load::RateMilli(rate(middle));
                let planned = PlannedTrial { trial: 0, seed, load, shape: contract.traffic.shape(load) };
                let stage = queue.stage(&planned, 0.0);
                let (trial, _) = rehearse_trial(&contract.slo, &planned, Part::Search, stage).unwrap();
                if is_within(&contract, &trial) { holds = middle } else { breaks = middle }
            }
            (holds * breaks).sqrt().ln()
        })
        .collect();
    loads.sort_unstable_by(f64::total_cmp);
    let load = loads[loads.len() / 2].exp();
    // The median of a normal variable has a standard error of 1.2533 times that of its mean; the spread is that of the
    // quartiles, because some logarithms are far out.
    let spread = (loads[loads.len() * 3 / 4] - loads[loads.len() / 4]) / 1.349;
    let over = load / queue.capacity;
    let file = queues::reference();
    let rows = file["finite_run_capacity"].as_array().unwrap();
    let row = rows.iter().find(|row| row["scenario"] == *queue.id && row["measured"] == counts.window);
    Median {
        load,
        over_long_run: (over, over * 1.2533 * spread / (schedules as f64).sqrt()),
        reference: row.and_then(|row| row["median_over_long_run"].as_f64()),
    }
}

/// Whether the violations of one trial are within every budget, and nothing else is asked.
fn is_within(contract: &Contract, trial: &TrialRecord) -> bool {
    let objectives = contract.slo.objectives.iter().zip(&trial.objectives);
    objectives.into_iter().all(|(of, found)| found.violations + found.undecided <= of.budget().floor_of(found.n))
}

fn gates(queue: &Queue, at: f64, counts: TrialCounts, noise: u32, gates: u64) -> Cell {
    let mut cell = Cell { gates, ..Cell::default() };
    for gate in 1..=gates {
        let contract = queue.contract(rate(at), counts, 1_000_000 + 1_000 * gate);
        let result = run(&contract, Plan::Check, queue, noise);
        match overall(&result) {
            Status::Pass => cell.pass += 1,
            Status::Fail => cell.fail += 1,
            Status::Unknown | Status::Accepted => {}
        }
        let trials = &result.steps[0].trials;
        cell.trials += trials.len() as u64;
        cell.requests += trials.len() as u64 * (counts.warm_up + counts.window);
        cell.naive_pass += u64::from(is_within(&contract, &trials[0]));
    }
    cell
}

fn run(contract: &Contract, plan: Plan, queue: &Queue, noise: u32) -> RunResult {
    rehearse(contract, plan, |planned| queue.stage(planned, f64::from(noise) / 100.0)).unwrap()
}

/// Releases whose search starts at the middle of a wide range; the load that must hold is well below.
fn searches(queue: &Queue, median: &Median, counts: TrialCounts, noise: u32, searches: u64) -> Searched {
    let mut found = Searched { searches, ..Searched::default() };
    for repetition in 1..=searches {
        let mut contract = queue.contract(rate(0.6 * queue.capacity), counts, 2_000_000 + 1_000 * repetition);
        search(&mut contract, 0.25 * queue.capacity, 8.0 * queue.capacity, 0.05, 5);
        let result = run(&contract, Plan::Release, queue, noise);
        let capacity = result.capacity.as_ref().unwrap();
        let end = |load: Option<Load>| load.and_then(Load::rate).map(|rate| rate.per_second());
        let (holds, breaks) = (end(capacity.holds_at).unwrap_or(0.0), end(capacity.breaks_at).unwrap_or(f64::INFINITY));
        found.covered += u64::from(holds <= median.load && median.load <= breaks);
        found.covered_below += u64::from(holds <= median.load);
        found.width += (breaks / holds).ln();
        for trial in result.searches.iter().flat_map(|search| &search.steps).flat_map(|step| &step.trials) {
            found.trials += 1;
            found.requests += counts.warm_up + trial.window.decided;
            found.seconds += trial.took_ns as f64 / 1e9;
        }
    }
    found
}
