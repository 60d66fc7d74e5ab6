//! What a search for the capacity costs: its rule is followed for every capacity that it could find.

use serde::Serialize;

use super::{Span, nanos};
use crate::contract::{Contract, Search};
use crate::search::{Bracket, Campaign, STEP, Try, seed_searches};
use crate::units::{Load, Rate, Share};

/// Capacities for which the search is followed, evenly spaced on a logarithmic scale.
const FOLLOWED: u32 = 32;
/// Trials of a later search besides its halvings: schedules differ by more than the first step, so it often needs two.
const LATER: u32 = 3;

/// What a search for the capacity costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchForecast {
    /// The lowest load that is tried.
    pub from: Rate,
    /// The highest load that is tried.
    pub to: Rate,
    /// How near the two ends must come.
    pub precision: Share,
    /// Searches, each on a schedule of its own.
    pub seeds: u32,
    /// Trials of all searches, about.
    pub trials: Span,
    /// Time under load of all of them, in nanoseconds: the least where the capacity is high, for a slow load takes longer.
    pub load_time_ns: Span,
    /// The same if the capacity is the load that must hold; `null` where that is out of range.
    pub at_load: Option<SearchedAt>,
    /// What the person who plans should know.
    pub note: Option<String>,
}

/// What a search costs that finds a certain capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SearchedAt {
    /// The capacity.
    pub capacity: Rate,
    /// Trials of all searches, about.
    pub trials: u64,
    /// Time under load of all of them, in nanoseconds.
    pub load_time_ns: u64,
}

/// What the campaign's search costs; `None` where it makes none.
pub(super) fn forecast(contract: &Contract, campaign: &Campaign<'_>) -> Option<SearchForecast> {
    let search = contract.evidence.search.filter(|_| campaign.searches())?;
    let start = seed_searches(contract, &[]).first()?.next?;
    let found: Vec<(SearchedAt, bool)> =
        capacities(search).map(|capacity| follow(contract, search, start, capacity)).collect();
    let span = |of: fn(&SearchedAt) -> u64| {
        let values = || found.iter().map(|(at, _)| of(at));
        Some(Span { least: values().min()?, most: values().max()? })
    };
    let inside = contract.slo.at.rate().filter(|at| *at >= search.from && *at <= search.to);
    let given_up = found.iter().any(|(_, ended)| !ended);
    let note = given_up.then(|| {
        format!(
            "one search makes at most 15 trials, which may not reach a precision of {} in a range so wide; narrow the range or choose a coarser precision",
            search.precision
        )
    });
    Some(SearchForecast {
        from: search.from,
        to: search.to,
        precision: search.precision,
        seeds: search.seeds,
        trials: span(|at| at.trials)?,
        load_time_ns: span(|at| at.load_time_ns)?,
        at_load: inside.map(|at| follow(contract, search, start, Some(at)).0),
        note,
    })
}

/// Capacities within the range, and `None` for one below it. The last one is `to`, at which every load holds.
fn capacities(search: Search) -> impl Iterator<Item = Option<Rate>> {
    let factor = search.to.per_second() / search.from.per_second();
    let at = move |index: u32| {
        let milli = search.from.milli() as f64 * factor.powf(f64::from(index) / f64::from(FOLLOWED));
        Rate::from_milli(milli.round() as u64)
    };
    [None].into_iter().chain((0..=FOLLOWED).map(at))
}

/// Follows the searches to a capacity, and whether the first one comes to an end. The first is followed trial by trial; the
/// later ones start at its end, so they are counted: at precision 3 % they need about five (method, section 9).
fn follow(contract: &Contract, search: Search, start: Rate, capacity: Option<Rate>) -> (SearchedAt, bool) {
    let time = |load: Rate| nanos(contract.traffic.trial_time(Load::RateMilli(load)));
    let mut tried: Vec<(Rate, bool)> = Vec::new();
    let end = loop {
        match Bracket::new(search, Vec::new(), tried.clone()).next(start) {
            Try::Load(load) => tried.push((load, capacity.is_some_and(|capacity| load <= capacity))),
            end => break end,
        }
    };
    let last = capacity.unwrap_or(search.from);
    let first_ns: u64 = tried.iter().map(|(load, _)| time(*load)).fold(0, u64::saturating_add);
    // Beyond an end of the range one trial at that end is all that a later search makes, and nothing is tried again.
    let (each, again) = match end {
        Try::HoldsThroughout | Try::BreaksThroughout => (1, 0),
        _ => (LATER + halvings(search.precision), u32::from(search.seeds > 1)),
    };
    let later = u64::from((search.seeds - 1).saturating_mul(each) + again);
    let at = SearchedAt {
        capacity: last,
        trials: tried.len() as u64 + later,
        load_time_ns: first_ns.saturating_add(time(last).saturating_mul(later)),
    };
    (at, end != Try::GivenUp)
}

/// How often a step outwards must be halved until it is as narrow as the precision.
fn halvings(precision: Share) -> u32 {
    (STEP.ln() / precision.fraction().ln_1p()).log2().ceil().max(0.0) as u32
}
