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
    let mut tried: Vec<Tried<'_>> = listed.chain(searched).collect();
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
    /// A load held, and later one that is clearly lower did not.
    pub changed: bool,
}

/// The searches of a contract, in the order of their seeds; those that were not begun have tried nothing.
pub fn seed_searches(contract: &Contract, tried: &[Tried<'_>]) -> Vec<SeedSearch> {
    let Some(range) = contract.evidence.search else { return Vec::new() };
    let mut estimate = middle(range.from, range.to);
    let mut searches = Vec::new();
    for index in 0..range.seeds {
        let seed = contract.workload.seed.wrapping_add(u64::from(index));
        let mut search = seed_search(range, seed, estimate, tried);
        search.changed = has_changed(seed, tried);
        if index == 0 && search.changed && again_at_last(seed, tried).is_some() {
            // Whatever bracket the last trial leaves is as narrow as it gets.
            (search.end, search.next) = (SearchEnd::Bracketed, None);
        }
        estimate = match (search.bracket.holds_at(), search.bracket.breaks_at()) {
            (Some(holds), Some(breaks)) => middle(holds, breaks),
            (Some(end), None) | (None, Some(end)) => end,
            (None, None) => estimate,
        };
        searches.push(search);
    }
    searches
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
            (None, Part::Step) => {}
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

/// How far below the load that held the first schedule is tried again.
const BELOW: f64 = 1.1;
/// How far below a load that held one must lie that later breaks before the endpoint is said to have changed: just less than that,
/// and more than the noise between two trials moves a capacity.
const CLEARLY_BELOW: f64 = 1.09;

/// Whether a load held on a schedule, and a later trial broke on the same schedule at one that is clearly lower.
fn has_changed(seed: u64, tried: &[Tried<'_>]) -> bool {
    let of_seed: Vec<&Tried<'_>> = tried.iter().filter(|tried| tried.record.seed == seed).collect();
    let is_clear = |before: Load, broke: Load| {
        before.rate().zip(broke.rate()).is_some_and(|(held, broke)| held >= scaled(broke, CLEARLY_BELOW))
    };
    let held = |before: &&Tried<'_>, broke: &Tried<'_>| {
        let is_earlier = before.record.trial < broke.record.trial;
        before.record.held == Some(true) && is_earlier && is_clear(before.load, broke.load)
    };
    let broken = of_seed.iter().filter(|tried| tried.record.held == Some(false));
    broken.into_iter().any(|broke| of_seed.iter().any(|before| held(before, broke)))
}

/// The first schedule's trial that comes after all others, a little below where it held. It was made when the last trial of the
/// search is one of the first schedule again.
fn again_at_last<'a, 'b>(first: u64, tried: &'b [Tried<'a>]) -> Option<&'b Tried<'a>> {
    let searched = || tried.iter().filter(|tried| tried.part == Part::Search);
    let others = searched().any(|tried| tried.record.seed != first);
    searched().next_back().filter(|last| others && last.record.seed == first)
}

/// The load at which the first schedule is tried again once all have come to an end: it must still hold there, or else the endpoint
/// changed. `None` where there is nothing to try again.
fn load_again(range: Search, searches: &[SeedSearch]) -> Option<Rate> {
    let first = searches.first().filter(|_| range.seeds > 1)?;
    let ended = matches!(first.end, SearchEnd::Bracketed | SearchEnd::HoldsThroughout);
    let holds = first.bracket.holds_at().filter(|holds| ended && *holds >= range.from)?;
    Some(scaled(holds, 1.0 / BELOW).clamp(range.from, range.to))
}

/// The load at which the first schedule is to be tried again now.
pub(super) fn load_to_check_again(range: Search, searches: &[SeedSearch], tried: &[Tried<'_>]) -> Option<Rate> {
    let load = load_again(range, searches)?;
    let begun = tried.iter().any(|tried| tried.part == Part::Search);
    let open = searches.iter().any(|search| search.next.is_some());
    let made = again_at_last(searches.first()?.seed, tried).is_some();
    (begun && !open && !made).then_some(load)
}

/// Whether the first schedule was to be tried again at last, and nothing tells how that came out.
pub fn check_again_is_missing(contract: &Contract, tried: &[Tried<'_>]) -> bool {
    let searches = seed_searches(contract, tried);
    let Some((range, first)) = contract.evidence.search.zip(searches.first()) else { return false };
    let begun = tried.iter().any(|tried| tried.part == Part::Search);
    let shown = again_at_last(first.seed, tried).is_some_and(|last| last.record.held.is_some());
    begun && load_again(range, &searches).is_some() && !shown
}
