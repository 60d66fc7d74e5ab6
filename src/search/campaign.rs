//! The order of a run's trials: the listed loads with their looks, what is needed to compare with a baseline, the search, and
//! what later runs need to compare with this one, as far as the budget goes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::history::{Part, SeedSearch, Tried, again, capacity_point, load_to_check_again, seed_searches};
use super::hold::{counted, long_run, look_together, pooled};
use crate::compare::Reference;
use crate::contract::{Contract, Objective, Plan};
use crate::judge::Claim;
use crate::record::{BaselineUse, RunResult, TrialRecord};
use crate::schedule::{PlannedTrial, Words};
use crate::stats::{Counts, Decision, fails, passes};
use crate::units::{Digest, DigestBuilder, Load, Rate};

/// The stream of random words that the order of trials is drawn from.
const ORDER_STREAM: u64 = 4;

/// Loads of the headroom curve, in percent of the capacity (method, section 10.1).
const CURVE_LOADS: [u64; 5] = [90, 95, 100, 106, 112];
/// Schedules of the headroom curve.
const CURVE_SEEDS: u32 = 8;
/// Trials of the headroom curve.
pub const CURVE_TRIALS: u64 = CURVE_LOADS.len() as u64 * CURVE_SEEDS as u64;
/// The stream of random words that the order of its loads is drawn from.
const CURVE_STREAM: u64 = 5;

/// The plan of one run.
#[derive(Debug, Clone)]
pub struct Campaign<'a> {
    contract: &'a Contract,
    plan: Plan,
    reference: Option<Reference>,
    is_paired: bool,
    insists: bool,
}

/// What a run does next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// A trial.
    Trial(PlannedTrial, Part),
    /// Nothing: the plan is done.
    Done,
    /// Nothing: what is left of the plan does not fit into its budget.
    OutOfTime,
}

/// One place of the plan: a load and the number of its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    load: Load,
    schedule: u32,
}

impl<'a> Campaign<'a> {
    /// The campaign that a contract asks for.
    pub fn new(contract: &'a Contract, plan: Plan) -> Self {
        Self { contract, plan, reference: None, is_paired: false, insists: false }
    }

    /// The same, with what it is compared with.
    #[must_use]
    pub fn against(self, reference: Option<Reference>) -> Self {
        Self { reference, ..self }
    }

    /// The same, with every trial of a step made at the endpoint without the change too, whose time comes out of the same budget.
    #[must_use]
    pub fn paired(self, is_paired: bool) -> Self {
        Self { is_paired, ..self }
    }

    /// The same, with the load that must hold tried on to the next look whatever is known of it: the pairs do not decide yet.
    #[must_use]
    pub fn insisting(self) -> Self {
        Self { insists: true, ..self }
    }

    /// The campaign of a run that was made, or is being made.
    pub fn of(contract: &'a Contract, result: &RunResult) -> Self {
        let used = result.baseline.as_ref();
        let is_paired = used.is_some_and(BaselineUse::is_paired);
        // Pairs are compared with each other: nothing is tried at the capacity of the other side.
        let stored = used.filter(|_| !is_paired);
        let reference = stored.and_then(|used| Reference::of(contract, used, result.fingerprint.as_ref()));
        Self::new(contract, result.plan).against(reference).paired(is_paired)
    }

    /// The loads of its steps, ascending. A release measures only what must hold, and searches for the rest.
    pub fn loads(&self) -> Vec<Load> {
        if self.plan == Plan::Release && self.searches() {
            return vec![self.contract.slo.at];
        }
        self.contract.traffic.loads()
    }

    /// Whether it searches for the capacity.
    pub fn searches(&self) -> bool {
        self.plan != Plan::Check && self.contract.evidence.search.is_some()
    }

    /// With which capacity of a baseline it is compared.
    pub fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    /// Whether it measures the headrooms around the capacity, by which later runs are compared with this one.
    pub fn measures_curve(&self) -> bool {
        self.plan == Plan::Baseline && self.searches() && self.contract.baseline.is_some()
    }

    /// The loads of the headroom curve, ascending; empty while the capacity is not known.
    pub fn curve_loads(&self, tried: &[Tried<'_>]) -> Vec<Load> {
        if !self.measures_curve() {
            return Vec::new();
        }
        let Some(point) = capacity_point(&seed_searches(self.contract, tried)) else { return Vec::new() };
        let milli = CURVE_LOADS.map(|percent| (point * 10.0 * percent as f64).round() as u64);
        milli.into_iter().filter_map(Rate::from_milli).map(Load::RateMilli).collect()
    }

    /// Numbers of trials at which the evidence about a load is looked at; one where the load only informs.
    pub fn looks(&self, load: Load) -> &[u32] {
        let is_judged = load == self.contract.slo.at || (self.plan != Plan::Check && !self.searches());
        if is_judged { &self.contract.evidence.looks } else { &[1] }
    }

    /// Every trial of the listed loads that the plan may make, in its order.
    pub fn listed(&self) -> Vec<PlannedTrial> {
        let rounds = self.loads().iter().map(|load| self.looks(*load).len()).max().unwrap_or(0);
        let slots = (0..rounds).flat_map(|round| self.round(round));
        slots.zip(0..).map(|(slot, trial)| self.planned(slot.load, self.seed(slot.schedule), trial)).collect()
    }

    /// SHA-256 over the plan: seed and schedule of every trial of the listed loads, and the range of the search.
    pub fn digest(&self) -> Digest {
        let mut digest = DigestBuilder::default();
        for trial in self.listed() {
            digest.word(trial.seed);
            digest.field(trial.schedule_digest().as_str().as_bytes());
        }
        if let Some(search) = self.contract.evidence.search.filter(|_| self.searches()) {
            let precision = u64::from(search.precision.ppm());
            for word in [search.from.milli(), search.to.milli(), precision, u64::from(search.seeds)] {
                digest.word(word);
            }
        }
        digest.finish()
    }

    /// What comes after the trials that were made, given in their order.
    pub fn next(&self, tried: &[Tried<'_>]) -> Next {
        let budget = self.contract.evidence.budget.of(self.plan) / if self.is_paired { 2 } else { 1 };
        let spent = Duration::from_nanos(tried.iter().map(|tried| tried.record.took_ns).sum());
        let left = budget.saturating_sub(spent);
        let number = tried.iter().map(|tried| tried.record.trial + 1).max().unwrap_or(0);
        if let Some((load, seed, part)) = to_repeat(tried) {
            return self.affordable(self.planned(load, seed, number), part, left);
        }
        let mut left_out = false;
        for slot in self.open_slots(tried) {
            let planned = self.planned(slot.load, self.seed(slot.schedule), number);
            if planned.load_time() + self.reserve(slot, tried) <= left {
                return Next::Trial(planned, Part::Step);
            }
            left_out = true;
        }
        if left_out {
            return Next::OutOfTime;
        }
        let next = self
            .next_against(tried)
            .map(|(load, seed)| (load, seed, Part::Against))
            .or_else(|| self.next_of_search(tried).map(|(load, seed)| (load, seed, Part::Search)))
            .or_else(|| self.next_of_curve(tried).map(|(load, seed)| (load, seed, Part::Curve)));
        match next {
            Some((load, seed, part)) => self.affordable(self.planned(load, seed, number), part, left),
            None => Next::Done,
        }
    }

    /// Load and seed of the next trial against the baseline's capacity, until a look decides.
    fn next_against(&self, tried: &[Tried<'_>]) -> Option<(Load, u64)> {
        let reference = self.reference.as_ref()?;
        let made = || tried.iter().filter(|tried| tried.part == Part::Against);
        // A schedule that was void twice, and a headroom that is not known, leave the comparison undecided.
        if made().any(|t| t.record.is_void() && again(t, tried) || !t.record.is_void() && t.record.headroom.is_none()) {
            return None;
        }
        let trials = counted(made().map(|tried| tried.record));
        let count = trials.len() as u32;
        let looks = reference.looks(self.contract);
        let is_open = !looks.contains(&count) || reference.decision(self.contract, &trials) == Decision::Undecided;
        let is_wanted = looks.last().is_some_and(|last| count < *last) && is_open;
        is_wanted.then(|| (reference.load(), reference.seed(self.contract, count)))
    }

    /// Load and seed of the next trial of the headroom curve: schedule by schedule, so that where the time ends, the schedules
    /// before are whole; the loads of each in seeded order.
    fn next_of_curve(&self, tried: &[Tried<'_>]) -> Option<(Load, u64)> {
        let loads = self.curve_loads(tried);
        (0..CURVE_SEEDS).map(|schedule| self.seed(schedule)).find_map(|seed| {
            let mut order = loads.clone();
            let mut words = Words::new(seed, CURVE_STREAM);
            for index in (1..order.len()).rev() {
                order.swap(index, words.next_below(index as u64 + 1) as usize);
            }
            let is_tried =
                |load: Load| tried.iter().any(|t| t.part == Part::Curve && t.load == load && t.record.seed == seed);
            order.into_iter().find(|load| !is_tried(*load)).map(|load| (load, seed))
        })
    }

    fn affordable(&self, planned: PlannedTrial, part: Part, left: Duration) -> Next {
        if planned.load_time() <= left { Next::Trial(planned, part) } else { Next::OutOfTime }
    }

    fn planned(&self, load: Load, seed: u64, trial: u32) -> PlannedTrial {
        PlannedTrial { trial, seed, load, shape: self.contract.traffic.shape(load) }
    }

    fn seed(&self, schedule: u32) -> u64 {
        self.contract.workload.seed.wrapping_add(u64::from(schedule))
    }

    /// The slots of one round: loads in seeded order, so that none is always the one that meets a warm machine, and the schedules
    /// of each ascending. The very first is the load that must hold: a breakdown under a heavier one does not take all of its
    /// evidence.
    fn round(&self, round: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        for load in self.loads() {
            let looks = self.looks(load);
            let from = round.checked_sub(1).map_or(0, |before| looks.get(before).copied().unwrap_or(0));
            let to = looks.get(round).copied().unwrap_or(0);
            slots.extend((from..to).map(|schedule| Slot { load, schedule }));
        }
        let mut words = Words::new(self.contract.workload.seed.wrapping_add(round as u64), ORDER_STREAM);
        for index in (1..slots.len()).rev() {
            slots.swap(index, words.next_below(index as u64 + 1) as usize);
        }
        if let Some(first) = slots.iter().position(|slot| slot.load == self.contract.slo.at).filter(|_| round == 0) {
            slots.swap(0, first);
        }
        let mut next: BTreeMap<Load, u32> = BTreeMap::new();
        for slot in &slots {
            let first = next.entry(slot.load).or_insert(slot.schedule);
            *first = slot.schedule.min(*first);
        }
        for slot in &mut slots {
            let schedule = next.entry(slot.load).or_default();
            slot.schedule = *schedule;
            *schedule += 1;
        }
        slots
    }

    /// The slots that are still to be tried: the first round whole, of a later one the loads that it could decide.
    fn open_slots(&self, tried: &[Tried<'_>]) -> Vec<Slot> {
        let rounds = self.loads().iter().map(|load| self.looks(*load).len()).max().unwrap_or(0);
        for round in 0..rounds {
            let open: Vec<Slot> = self
                .round(round)
                .into_iter()
                .filter(|slot| !self.is_tried(*slot, tried) && self.is_wanted(slot.load, tried))
                .collect();
            if !open.is_empty() {
                return open;
            }
        }
        Vec::new()
    }

    fn is_tried(&self, slot: Slot, tried: &[Tried<'_>]) -> bool {
        let seed = self.seed(slot.schedule);
        tried.iter().any(|t| t.part == Part::Step && t.load == slot.load && t.record.seed == seed)
    }

    /// Whether another trial at a load could change what is known of it.
    fn is_wanted(&self, load: Load, tried: &[Tried<'_>]) -> bool {
        let of_step = || tried.iter().filter(|t| t.part == Part::Step && t.load == load);
        // A schedule that was void twice leaves the step undecided.
        if of_step().any(|t| t.record.is_void() && again(t, tried)) {
            return false;
        }
        let trials = counted(of_step().map(|t| t.record));
        let looks = self.looks(load);
        let is_asked_on = self.insists && load == self.contract.slo.at;
        let has_room = looks.last().is_some_and(|most| (trials.len() as u32) < *most);
        is_asked_on && has_room || could_be_decided(self.contract, &trials, looks)
    }

    /// Time that a trial must leave for what is more important: the first look at the load that must hold.
    fn reserve(&self, slot: Slot, tried: &[Tried<'_>]) -> Duration {
        let at = self.contract.slo.at;
        if slot.load == at || !self.is_wanted(at, tried) {
            return Duration::ZERO;
        }
        let first = self.looks(at).first().copied().unwrap_or(0);
        let open = (0..first).filter(|schedule| !self.is_tried(Slot { load: at, schedule: *schedule }, tried)).count();
        self.planned(at, self.seed(0), 0).load_time().saturating_mul(open as u32)
    }

    /// Load and seed of the next trial of the search, the last of which tries the first schedule again.
    fn next_of_search(&self, tried: &[Tried<'_>]) -> Option<(Load, u64)> {
        let range = self.contract.evidence.search.filter(|_| self.searches())?;
        let searches: Vec<SeedSearch> = seed_searches(self.contract, tried);
        if let Some(search) = searches.iter().find(|search| search.next.is_some()) {
            return Some((Load::RateMilli(search.next?), search.seed));
        }
        let again = load_to_check_again(range, &searches, tried)?;
        Some((Load::RateMilli(again), searches.first()?.seed))
    }
}

/// A void trial is repeated once, with its own seed (method, section 4).
fn to_repeat(tried: &[Tried<'_>]) -> Option<(Load, u64, Part)> {
    let last = tried.last()?;
    let spoilt = last.record.is_void() && (last.record.complete || last.record.given_up);
    (spoilt && !again(last, tried)).then_some((last.load, last.record.seed, last.part))
}

/// Whether more trials could decide what is open. A value that is missing stays so.
fn could_be_decided(contract: &Contract, trials: &[&TrialRecord], looks: &[u32]) -> bool {
    let (Some(&first), Some(&most)) = (looks.first(), looks.last()) else { return false };
    if trials.iter().any(|trial| trial.objectives.iter().any(|evidence| evidence.unmeasured > 0)) {
        return false;
    }
    if (trials.len() as u32) < first {
        return true;
    }
    if trials.len() as u32 >= most {
        return false;
    }
    let objectives = || contract.slo.objectives.iter().enumerate();
    let open = |decision: Option<Decision>| decision.is_none_or(|decision| decision == Decision::Undecided);
    match contract.evidence.claim {
        Claim::ThisRun => false,
        Claim::TypicalRun => {
            let waits = objectives().any(|(_, objective)| !matches!(objective, Objective::SuccessRate { .. }));
            let together = look_together(trials, looks).map(|look| look.decision);
            (waits && open(together))
                || objectives()
                    .filter(|(_, objective)| matches!(objective, Objective::SuccessRate { .. }))
                    .any(|(index, objective)| success_is_open(index, objective, trials, looks))
        }
        Claim::LongRun => {
            let count = contract.slo.objectives.len();
            objectives().any(|(index, of)| open(long_run(index, of, trials, looks, count).map(|found| found.decision)))
        }
    }
}

/// Whether the success rate is undecided and the requests of the last look could still decide it, if failures go on as before
/// or end.
fn success_is_open(index: usize, objective: &Objective, trials: &[&TrialRecord], looks: &[u32]) -> bool {
    let Some(found) = pooled(index, objective, trials, looks) else { return true };
    if found.decision != Decision::Undecided {
        return false;
    }
    let (now, most) = (u64::from(found.trials), u64::from(looks.last().copied().unwrap_or(0)));
    let n = found.n * most / now.max(1);
    let budget = objective.budget().fraction();
    let going_on = found.violations * most / now.max(1);
    passes(Counts::exact(n, found.violations), budget, found.alpha)
        || fails(Counts::exact(n, going_on), budget, found.alpha)
}
