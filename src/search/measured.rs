//! The trials of a run, as they are made: the records that decide what comes next, and what the summaries need.

use std::collections::BTreeMap;

use super::history::{Part, Tried};
use crate::record::{SearchEnd, SearchRecord, StepRecord, TrialAccumulator, TrialRecord, summarise_step};
use crate::units::Load;

/// A trial with its requests in compact form.
type Trial = (TrialRecord, TrialAccumulator);

/// Everything measured so far.
#[derive(Debug, Default)]
pub struct Measured {
    /// In the order in which they were made.
    made: Vec<(Part, Load, TrialRecord)>,
    steps: BTreeMap<Load, Vec<Trial>>,
    against: BTreeMap<Load, Vec<Trial>>,
    curve: BTreeMap<Load, Vec<Trial>>,
    confirm: BTreeMap<Load, Vec<Trial>>,
    searches: Vec<SearchRecord>,
    /// The requests of the search's last load, in case its trial is repeated.
    last: Vec<Trial>,
}

impl Measured {
    /// The trials, for the plan.
    pub fn tried(&self) -> Vec<Tried<'_>> {
        self.made.iter().map(|(part, load, record)| Tried { part: *part, load: *load, record }).collect()
    }

    /// Takes in one trial.
    pub fn add(&mut self, part: Part, load: Load, record: TrialRecord, requests: TrialAccumulator) {
        self.made.push((part, load, record.clone()));
        match part {
            Part::Step => self.steps.entry(load).or_default().push((record, requests)),
            Part::Against => self.against.entry(load).or_default().push((record, requests)),
            Part::Curve => self.curve.entry(load).or_default().push((record, requests)),
            Part::Confirm => self.confirm.entry(load).or_default().push((record, requests)),
            Part::Search => self.add_to_search(load, record, requests),
        }
    }

    /// A step of a search is one trial, or two where the first was void.
    fn add_to_search(&mut self, load: Load, record: TrialRecord, requests: TrialAccumulator) {
        let seed = record.seed;
        let index = self.searches.iter().position(|search| search.seed == seed).unwrap_or_else(|| {
            let end = SearchEnd::Unfinished;
            self.searches.push(SearchRecord { seed, end, holds_at: None, breaks_at: None, steps: Vec::new() });
            self.searches.len() - 1
        });
        let steps = &mut self.searches[index].steps;
        let repeats = steps.last().is_some_and(|step| step.load == load)
            && self.last.last().is_some_and(|(last, _)| last.seed == seed && last.is_void());
        if repeats {
            steps.pop();
        } else {
            self.last.clear();
        }
        self.last.push((record, requests));
        steps.push(summarise_step(load, &self.last, None));
    }

    /// One step for each load, measured or not.
    pub fn steps(&self, loads: &[Load]) -> Vec<StepRecord> {
        let trials = |load: &Load| self.steps.get(load).map(Vec::as_slice).unwrap_or_default();
        loads.iter().map(|load| summarise_step(*load, trials(load), None)).collect()
    }

    /// The trials against the baseline's capacity.
    pub fn against(&self) -> Vec<StepRecord> {
        summaries(&self.against)
    }

    /// The headroom curve, as far as it was measured.
    pub fn curve(&self) -> Vec<StepRecord> {
        summaries(&self.curve)
    }

    /// The trials that confirm a suspected loss.
    pub fn confirm(&self) -> Vec<StepRecord> {
        summaries(&self.confirm)
    }

    /// The searches that were begun.
    pub fn searches(&self) -> Vec<SearchRecord> {
        self.searches.clone()
    }
}

fn summaries(steps: &BTreeMap<Load, Vec<Trial>>) -> Vec<StepRecord> {
    steps.iter().map(|(load, trials)| summarise_step(*load, trials, None)).collect()
}
