//! How much is measured before a verdict: claim, looks, search, and what each plan may take.

use std::time::Duration;

use super::Meaning;
use super::traffic::{REQUESTS, WINDOW};
use crate::contract::document::join;
use crate::contract::model::{Budget, EvidencePlan, Plan, Search, Slo, Traffic};
use crate::contract::raw::{self, Repeats, TrafficModel};
use crate::contract::schema::{DurationText, Whole};
use crate::judge::Claim;
use crate::units::{Load, Rate, Share, format_duration, rounded_up};

pub(super) const FLOOR: &str = "/slo/capacity/at_least";
const SEARCH: &str = "/traffic/search";
const FROM: &str = "/traffic/search/from";
const REPEATS: &str = "/traffic/repeats";
const CLAIM: &str = "/traffic/claim";
const BUDGET: &str = "/traffic/budget";

/// Looks for a typical run when the contract does not say: the ones whose errors are known (method, section 8).
const TYPICAL_LOOKS: [u32; 3] = [3, 5, 8];
/// Trials that show a spread between schedules.
const LEAST_TYPICAL: u32 = 3;
/// Precision of a search when the contract does not say, and its bounds. The bounds keep a search within its 15 trials.
const DEFAULT_PRECISION_PPM: u32 = 50_000;
const PRECISION_PPM: std::ops::RangeInclusive<u32> = 1_000..=500_000;
/// Searches when the contract does not say: the lower end of the capacity then has a confidence of 96.9 %.
const DEFAULT_SEEDS: u32 = 5;
/// What a pull request can wait for.
const DEFAULT_CHECK: Duration = Duration::from_secs(30 * 60);
/// What a night or a release can.
const DEFAULT_LONG: Duration = Duration::from_secs(3 * 3_600);

impl Meaning<'_> {
    /// The evidence that is asked for. `at` and `traffic` tell how long a trial takes, where they are known.
    pub(super) fn evidence(
        &mut self,
        written: &raw::Traffic,
        at: Option<Load>,
        traffic: Option<&Traffic>,
    ) -> Option<EvidencePlan> {
        let claim = self.claim(written.claim);
        let looks = self.looks(written.repeats.as_ref(), claim);
        let search = self.search(written);
        let budget = self.budget(written.budget.as_ref());
        if let (Some(budget), Some(traffic), Some(at)) = (budget, traffic, at) {
            let time = traffic.trial_time(at);
            self.affordable(written, budget, at, time);
            if let Some(search) = search.flatten().filter(|_| time <= budget.release) {
                self.affordable_search(search, traffic, budget);
            }
        }
        Some(EvidencePlan { claim: claim?, looks: looks?, search: search?, budget: budget? })
    }

    fn claim(&self, written: Option<raw::Claim>) -> Option<Claim> {
        match written {
            Some(raw::Claim::ThisRun) => Some(Claim::ThisRun),
            Some(raw::Claim::TypicalRun) => Some(Claim::TypicalRun),
            Some(raw::Claim::LongRun) => Some(Claim::LongRun),
            None => (!self.refused.contains(CLAIM)).then_some(Claim::TypicalRun),
        }
    }

    /// Numbers of trials, ascending. Without a `claim` that is known, what it asks for is not held against them.
    fn looks(&mut self, written: Option<&Repeats>, claim: Option<Claim>) -> Option<Vec<u32>> {
        if !self.is_written(written, REPEATS) {
            return Some(if claim? == Claim::TypicalRun { TYPICAL_LOOKS.to_vec() } else { vec![1] });
        }
        if claim == Some(Claim::ThisRun) {
            let message = "`claim: this_run` speaks of one schedule, so one trial is made; remove `repeats`, or write `claim: typical_run`";
            self.fault_at_key(REPEATS, message);
            return None;
        }
        let written: Vec<(String, Option<Whole>)> = match written? {
            Repeats::One(number) => vec![(REPEATS.to_owned(), Some(*number))],
            Repeats::Several(list) => {
                list.iter().enumerate().map(|(index, number)| (join(REPEATS, &index.to_string()), *number)).collect()
            }
        };
        let mut looks: Vec<u32> = Vec::with_capacity(written.len());
        let mut ascending = true;
        for (pointer, number) in &written {
            let Some(number) = number.and_then(|number| u32::try_from(number.0).ok()) else {
                ascending = false;
                continue;
            };
            if let Some(before) = looks.iter().max().filter(|before| number <= **before) {
                let told =
                    if number == *before { "listed twice".to_owned() } else { format!("less than {before} before it") };
                self.fault(
                    pointer,
                    format!("{told}; trials only add up, so write ascending numbers, as in `[3, 5, 8]`"),
                );
                ascending = false;
            }
            looks.push(number);
        }
        let first = looks.first().copied().filter(|_| written.first().is_some_and(|(_, number)| number.is_some()));
        if claim == Some(Claim::TypicalRun) && first.is_some_and(|first| first < LEAST_TYPICAL) {
            let message = "`claim: typical_run` needs at least 3 trials at its first look, which show how much schedules differ; \
                write 3 or more, or remove it and write `claim: this_run`";
            self.fault(&written.first()?.0, message);
            return None;
        }
        ascending.then_some(looks)
    }

    /// The written search; the inner `None` where none is asked for.
    fn search(&mut self, written: &raw::Traffic) -> Option<Option<Search>> {
        if !self.is_written(written.search.as_ref(), SEARCH) {
            return Some(None);
        }
        if written.model == Some(TrafficModel::Closed) {
            let message = "a closed loop offers no load of its own that could be searched; list numbers of clients, as in `concurrency: [1, 2, 4]`";
            self.fault_at_key(SEARCH, message);
            return None;
        }
        let search = written.search.as_ref()?;
        let from = self.rate(search.from.as_ref(), FROM);
        let to = self.rate(search.to.as_ref(), &join(SEARCH, "to"));
        let precision = self.precision(search);
        let seeds = match search.seeds {
            Some(seeds) => u32::try_from(seeds.0).ok(),
            None => (!self.refused.contains(&join(SEARCH, "seeds"))).then_some(DEFAULT_SEEDS),
        };
        if let (Some(from), Some(to)) = (from, to)
            && from >= to
        {
            let message =
                format!("nothing lies between {from} and {to}; write `to` above `from`, as in `from: 1/s, to: 64/s`");
            self.fault(&join(SEARCH, "to"), message);
            return None;
        }
        Some(Some(Search { from: from?, to: to?, precision: precision?, seeds: seeds? }))
    }

    fn precision(&mut self, search: &raw::Search) -> Option<Share> {
        let pointer = join(SEARCH, "precision");
        if !self.is_written(search.precision.as_ref(), &pointer) {
            return Share::from_ppm(DEFAULT_PRECISION_PPM);
        }
        let precision = self.share(search.precision.as_ref(), &pointer)?;
        if !PRECISION_PPM.contains(&precision.ppm()) {
            self.fault(
                &pointer,
                format!("a search cannot work with a precision of {precision}; write 0.1% to 50%, as in `5%`"),
            );
            return None;
        }
        Some(precision)
    }

    fn budget(&mut self, written: Option<&raw::Budget>) -> Option<Budget> {
        if self.refused.contains(BUDGET) {
            return None;
        }
        let empty = raw::Budget::default();
        let written = written.unwrap_or(&empty);
        let mut of = |plan: Plan| self.above_zero(of_plan(written, plan), &join(BUDGET, plan.name()), default_of(plan));
        let (check, baseline, release) = (of(Plan::Check), of(Plan::Baseline), of(Plan::Release));
        Some(Budget { check: check?, baseline: baseline?, release: release? })
    }

    /// Every plan makes at least one trial at the load that must hold, which takes `time`. A default that is too short for it is
    /// told at the trial: nobody wrote the budget.
    fn affordable(&mut self, written: &raw::Traffic, budget: Budget, at: Load, time: Duration) {
        let needed = format_duration(rounded_up(time));
        let mut defaults: Vec<Plan> = Vec::new();
        for plan in Plan::ALL {
            if budget.of(plan) >= time {
                continue;
            }
            if written.budget.as_ref().and_then(|budget| of_plan(budget, plan)).is_some() {
                let message = format!("one trial at {at} takes {needed}; write at least that, or shorten the trial");
                self.fault(&join(BUDGET, plan.name()), message);
            } else {
                defaults.push(plan);
            }
        }
        let Some(first) = defaults.first() else { return };
        let keys: Vec<String> = defaults.iter().map(|plan| format!("{}: {needed}", plan.name())).collect();
        let requests = written.trial.as_ref().is_some_and(|trial| trial.requests.is_some());
        let message = format!(
            "one trial at {at} takes {needed}, and by default the plan `{}` takes no more than {}; shorten the trial, or write `budget: {{ {} }}` in `traffic`",
            first.name(),
            format_duration(default_of(*first)),
            keys.join(", ")
        );
        self.fault(if requests { REQUESTS } else { WINDOW }, message);
    }

    /// Every load has as many requests as the load that must hold, so the slowest of a search takes longest.
    fn affordable_search(&mut self, search: Search, traffic: &Traffic, budget: Budget) {
        let Traffic::Open { counts, .. } = traffic else { return };
        let time = traffic.trial_time(Load::RateMilli(search.from));
        if time <= budget.release {
            return;
        }
        let requests = counts.total();
        let least = (u128::from(requests) * 1_000_000_000_000).div_ceil(budget.release.as_nanos().max(1));
        let least =
            u64::try_from(least).ok().and_then(Rate::from_milli).map_or_else(String::new, |rate| rate.to_string());
        let message = format!(
            "one trial at {} takes {} for its {requests} requests, as many as at `at_load`, and the plan `release` no more than {}; write at least `{least}`, or raise `budget.release`",
            search.from,
            format_duration(rounded_up(time)),
            format_duration(budget.release)
        );
        self.fault(FROM, message);
    }

    /// A floor that no plan could show to hold is a mistake.
    pub(super) fn reachable(
        &mut self,
        slo: Option<&Slo>,
        traffic: Option<&Traffic>,
        evidence: Option<&EvidencePlan>,
    ) -> Option<()> {
        let floor = slo?.capacity?;
        if let Some(search) = evidence?.search {
            if floor > search.to {
                let message = format!(
                    "no search can show it, for the highest load that is tried is {}; lower it, or raise `to` of `traffic.search`",
                    search.to
                );
                self.fault(FLOOR, message);
            }
        } else if traffic?.loads().iter().all(|load| load.rate().is_none_or(|load| load < floor)) {
            let message = format!(
                "no load of the contract reaches it; write `loads: [{floor}]`, or `search: {{ from: 1/s, to: 64/s }}`, in `traffic`"
            );
            self.fault(FLOOR, message);
        }
        Some(())
    }
}

fn of_plan(budget: &raw::Budget, plan: Plan) -> Option<&DurationText> {
    match plan {
        Plan::Check => budget.check.as_ref(),
        Plan::Baseline => budget.baseline.as_ref(),
        Plan::Release => budget.release.as_ref(),
    }
}

fn default_of(plan: Plan) -> Duration {
    if plan == Plan::Check { DEFAULT_CHECK } else { DEFAULT_LONG }
}
