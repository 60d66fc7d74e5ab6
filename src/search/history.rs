//! The trials that were made, as a search reads them.

use super::bracket::{Bracket, Try, middle, scaled};
use crate::contract::{Contract, Search};
use crate::record::{RunResult, SearchEnd, StepRecord, TrialRecord};
use crate::units::{Load, Rate};

/// What a trial was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A listed load.
    Step,
    /// The search for the capacity.
    Search,
    /// The capacity of the baseline, or the load that the margin leaves of it.
    Against,
    /// The headrooms around the capacity, for later runs.
    Curve,
    /// The load of `Against` once more, in turn with the endpoint without the change.
    Confirm,
}

/// One trial that was made.
#[derive(Debug, Clone, Copy)]
pub struct Tried<'a> {
    /// What it was made for.
    pub part: Part,
    /// Its load.
    pub load: Load,
    /// What it yielded.
    pub record: &'a TrialRecord,
}

/// All trials of a stored run, in the order in which they were made.
pub fn history(result: &RunResult) -> Vec<Tried<'_>> {
    fn of(part: Part, step: &StepRecord) -> impl Iterator<Item = Tried<'_>> {
        step.trials.iter().map(move |record| Tried { part, load: step.load, record })
    }
    let listed = result.steps.iter().flat_map(|step| of(Part::Step, step));
    let searched = result.searches.iter().flat_map(|search| &search.steps).flat_map(|step| of(Part::Search, step));
    let against = result.against.iter().flat_map(|step| of(Part::Against, step));
    let curve = result.curve.iter().flat_map(|step| of(Part::Curve, step));
    let confirm = result.confirm.iter().flat_map(|step| of(Part::Confirm, step));
    let mut tried: Vec<Tried<'_>> = listed.chain(searched).chain(against).chain(curve).chain(confirm).collect();
    tried.sort_by_key(|tried| tried.record.trial);
    tried
}

/// Where the search on one schedule stands.
#[derive(Debug, Clone)]
pub struct SeedSearch {
    /// The seed.
    pub seed: u64,
    /// What its trials have shown.
    pub bracket: Bracket,
    /// How it ended, or that it did not yet.
    pub end: SearchEnd,
    /// The load to try next; `None` once it ended, or when it cannot go on.
    pub next: Option<Rate>,
    /// Tried again at last, the schedule broke below where it held.
    pub changed: bool,
}

/// The searches of a contract, in the order of their seeds; those that were not begun have tried nothing.
pub fn seed_searches(contract: &Contract, tried: &[Tried<'_>]) -> Vec<SeedSearch> {
    let Some(range) = contract.evidence.search else { return Vec::new() };
    let mut estimate = middle(range.from, range.to);
    let mut searches = Vec::new();
    for index in 0..range.seeds {
        let seed = contract.workload.seed.wrapping_add(u64::from(index));
        // What the first schedule does when it is tried again is no part of its bracket.
        let again = if index == 0 { again_at_last(seed, tried) } else { Vec::new() };
        let is_again = |one: &Tried<'_>| again.iter().any(|again| again.record.trial == one.record.trial);
        let before: Vec<Tried<'_>> = tried.iter().copied().filter(|one| !is_again(one)).collect();
        let mut search = seed_search(range, seed, estimate, &before);
        search.changed = index == 0 && has_changed(seed, tried);
        estimate = match (search.bracket.holds_at(), search.bracket.breaks_at()) {
            (Some(holds), Some(breaks)) => middle(holds, breaks),
            (Some(end), None) | (None, Some(end)) => end,
            (None, None) => estimate,
        };
        searches.push(search);
    }
    searches
}

/// The capacity's point estimate: the geometric mean of both ends over the schedules that came to an end, in requests per second;
/// `None` where one of them lacks an end, where one did not come to an end, or the endpoint changed.
pub fn capacity_point(searches: &[SeedSearch]) -> Option<f64> {
    let ends = searches.iter().map(|search| {
        let is_whole = search.end == SearchEnd::Bracketed && !search.changed;
        Some((search.bracket.holds_at().filter(|_| is_whole)?, search.bracket.breaks_at()?))
    });
    let ends: Vec<[Rate; 2]> = ends.map(|ends| ends.map(Into::into)).collect::<Option<_>>()?;
    (!ends.is_empty()).then(|| geometric_mean(ends.as_flattened()))
}

/// The geometric mean of loads, in requests per second.
pub fn geometric_mean(loads: &[Rate]) -> f64 {
    let logs: f64 = loads.iter().map(|load| load.per_second().ln()).sum();
    (logs / loads.len() as f64).exp()
}

/// What the trials of one schedule have shown, and whether one of the search's own shows nothing and is not made up for.
#[derive(Default)]
struct Shown {
    listed: Vec<(Rate, bool)>,
    searched: Vec<(Rate, bool)>,
    stuck: bool,
}

fn shown(seed: u64, tried: &[Tried<'_>]) -> Shown {
    let mut shown = Shown::default();
    let of_seed = || tried.iter().filter(|tried| tried.record.seed == seed);
    for one in of_seed() {
        let Some(load) = one.load.rate() else { continue };
        match (one.record.held, one.part) {
            (Some(held), Part::Step) => shown.listed.push((load, held)),
            (Some(held), Part::Search) => shown.searched.push((load, held)),
            // Trials of a comparison are read, and not judged: at the capacity half of them miss a limit.
            (_, Part::Against | Part::Curve | Part::Confirm) | (None, Part::Step) => {}
            (None, Part::Search) => {
                let repeated = of_seed().any(|later| {
                    later.load == one.load && later.part == one.part && later.record.trial > one.record.trial
                });
                let to_be_repeated = one.record.is_void() && !again(one, tried);
                shown.stuck |= !repeated && !to_be_repeated;
            }
        }
    }
    shown
}

/// Whether a trial was itself made because one before it was void.
pub(super) fn again(one: &Tried<'_>, tried: &[Tried<'_>]) -> bool {
    tried.iter().any(|earlier| {
        earlier.part == one.part
            && earlier.load == one.load
            && earlier.record.seed == one.record.seed
            && earlier.record.trial < one.record.trial
            && earlier.record.is_void()
    })
}

fn seed_search(range: Search, seed: u64, estimate: Rate, tried: &[Tried<'_>]) -> SeedSearch {
    let Shown { listed, searched, stuck } = shown(seed, tried);
    let bracket = Bracket::new(range, listed, searched);
    let (end, next) = match bracket.next(estimate) {
        Try::Load(_) if stuck => (SearchEnd::Unfinished, None),
        Try::Load(load) => (SearchEnd::Unfinished, Some(load)),
        Try::Bracketed => (SearchEnd::Bracketed, None),
        Try::HoldsThroughout => (SearchEnd::HoldsThroughout, None),
        Try::BreaksThroughout => (SearchEnd::BreaksThroughout, None),
        Try::GivenUp => (SearchEnd::Unfinished, None),
    };
    SeedSearch { seed, bracket, end, next, changed: false }
}

/// How far below the loads that held the first schedule is tried again.
const BELOW: f64 = 1.1;
/// Trials there that must break before the endpoint is said to have changed: one may be noise.
const BROKEN_AGAIN: usize = 2;

/// The first schedule's trials that come after those of all others, below where every schedule held; none before there are
/// others.
fn again_at_last<'a, 'b>(first: u64, tried: &'b [Tried<'a>]) -> Vec<&'b Tried<'a>> {
    let searched = || tried.iter().filter(|tried| tried.part == Part::Search);
    let Some(last) = searched().rev().find(|tried| tried.record.seed != first) else { return Vec::new() };
    searched().filter(|tried| tried.record.seed == first && tried.record.trial > last.record.trial).collect()
}

/// Whether the first schedule broke when it was tried again below where it held.
fn has_changed(first: u64, tried: &[Tried<'_>]) -> bool {
    let again = again_at_last(first, tried);
    again.iter().filter(|tried| tried.record.held == Some(false)).count() >= BROKEN_AGAIN
}

/// The load at which the first schedule is tried again once all have come to an end: it must still hold there, or else the endpoint
/// changed. `None` where there is nothing to try again.
fn load_again(range: Search, searches: &[SeedSearch], tried: &[Tried<'_>]) -> Option<Rate> {
    let first = searches.first()?;
    let others = tried.iter().any(|tried| tried.part == Part::Search && tried.record.seed != first.seed);
    let ended = matches!(first.end, SearchEnd::Bracketed | SearchEnd::HoldsThroughout);
    let own = first.bracket.holds_at().filter(|holds| others && ended && *holds >= range.from)?;
    let lowest = searches.iter().filter_map(|search| search.bracket.holds_at()).min().unwrap_or(own);
    Some(scaled(lowest, 1.0 / BELOW).clamp(range.from, range.to))
}

/// The load at which the first schedule is to be tried again now.
pub(super) fn load_to_check_again(range: Search, searches: &[SeedSearch], tried: &[Tried<'_>]) -> Option<Rate> {
    let load = load_again(range, searches, tried)?;
    let again = again_at_last(searches.first()?.seed, tried);
    let told: Vec<bool> = again.iter().filter_map(|tried| tried.record.held).collect();
    let is_open = searches.iter().any(|search| search.next.is_some());
    let is_due = again.is_empty() || (told.len() < BROKEN_AGAIN && !told.is_empty() && !told.contains(&true));
    (is_due && !is_open).then_some(load)
}

/// Whether the first schedule was to be tried again at last, and nothing tells how that came out.
pub fn check_again_is_missing(contract: &Contract, tried: &[Tried<'_>]) -> bool {
    let searches = seed_searches(contract, tried);
    let Some((range, first)) = contract.evidence.search.zip(searches.first()) else { return false };
    let told: Vec<bool> = again_at_last(first.seed, tried).iter().filter_map(|tried| tried.record.held).collect();
    let is_told = told.contains(&true) || told.len() >= BROKEN_AGAIN;
    load_again(range, &searches, tried).is_some() && !is_told
}
