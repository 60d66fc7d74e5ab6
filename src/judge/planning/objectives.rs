//! Whether the planned sample sizes can decide each objective.

use std::time::Duration;

use serde::Serialize;

use super::budget::fewer_repeats;
use super::{Change, nanos, time_until_look};
use crate::contract::{Contract, Objective, Plan, Traffic};
use crate::judge::Claim;
use crate::judge::objective::ALPHA;
use crate::search::LEAST_LONG_RUN;
use crate::stats::{MIN_DRIFT_ARRIVALS, n_pass, pass_max};
use crate::units::{Share, format_duration};

/// An overload of this share should show within a trial, where the search names no other.
const PRECISION: f64 = 0.05;
/// With fewer violations allowed than this, a short trial misses the rare cluster and flatters the capacity.
const COMFORTABLE_BUDGET: f64 = 3.0;

/// Whether the plan can decide an objective.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveForecast {
    /// The objective's name: `ttft_p95`.
    pub id: String,
    /// Its limit, as shown: `≤ 3s`.
    pub limit: String,
    /// What is claimed of it.
    pub claim: Claim,
    /// Measured requests that decide it together: those of one trial, or of all trials where they are counted together; `null` in a
    /// closed loop, where the endpoint's speed decides.
    pub requests: Option<u64>,
    /// Whether the requests of all trials are counted together.
    pub pooled: bool,
    /// The fewest such requests with which it can PASS.
    pub smallest_sample: u64,
    /// The most of them that may miss the limit: in each trial that holds, or for a PASS where they are counted together.
    pub may_miss: Option<u64>,
    /// The fewest trials after which it can PASS; `null` when it cannot, or when that is not known before.
    pub trials: Option<u32>,
    /// Whether it can PASS within the budget; `null` when that is not known before.
    pub can_pass: Option<bool>,
    /// What the person who plans should know.
    pub notes: Vec<String>,
    /// Changes, the smallest of their kind, any of which lets it PASS.
    pub changes: Vec<Change>,
}

/// What the plan can decide about each objective, in the contract's order.
pub(super) fn forecast(contract: &Contract, plan: Plan) -> Vec<ObjectiveForecast> {
    contract.slo.objectives.iter().map(|objective| Question { contract, objective, plan }.forecast()).collect()
}

/// Whether a plan of a contract can decide an objective.
#[derive(Clone, Copy)]
struct Question<'a> {
    contract: &'a Contract,
    objective: &'a Objective,
    plan: Plan,
}

impl Question<'_> {
    fn forecast(&self) -> ObjectiveForecast {
        let per_trial = self.requests();
        let look = self.first_look();
        let affordable = self.is_affordable(look.unwrap_or(0));
        let pooled = self.is_pooled();
        let last = self.looks().last().copied().unwrap_or(1);
        let requests = per_trial.map(|n| if pooled { n * u64::from(last) } else { n });
        let can_pass = match (per_trial, look) {
            (_, Some(_)) | (None, _) if !affordable => Some(false),
            (None, _) => None,
            (Some(_), None) => Some(false),
            (Some(_), Some(_)) => (self.claim() != Claim::LongRun).then_some(true),
        };
        ObjectiveForecast {
            id: self.objective.id(),
            limit: self.objective.limit_text(),
            claim: self.claim(),
            requests,
            pooled,
            smallest_sample: self.needed(),
            may_miss: requests.and_then(|n| self.may_miss(n)),
            trials: look.and_then(|look| self.looks().get(look).copied()),
            can_pass,
            notes: self.notes(look, affordable),
            changes: if can_pass == Some(false) { self.changes(look) } else { Vec::new() },
        }
    }

    fn claim(&self) -> Claim {
        self.contract.evidence.claim
    }

    fn looks(&self) -> &[u32] {
        &self.contract.evidence.looks
    }

    /// Measured requests of one trial.
    fn requests(&self) -> Option<u64> {
        match &self.contract.traffic {
            Traffic::Open { counts, .. } => Some(counts.window),
            Traffic::Closed { .. } => None,
        }
    }

    fn is_success_rate(&self) -> bool {
        matches!(self.objective, Objective::SuccessRate { .. })
    }

    /// Whether the requests of all trials are counted together (method, sections 6 and 7).
    fn is_pooled(&self) -> bool {
        match self.claim() {
            Claim::ThisRun => false,
            Claim::TypicalRun => self.is_success_rate(),
            Claim::LongRun => true,
        }
    }

    /// The fewest requests of one trial that show whether they pile up, without which nothing but the success rate is a PASS, and
    /// how much they resemble each other, which the long run needs of everything.
    fn smallest_trial(&self) -> u64 {
        let open = self.requests().is_some();
        let needed = self.claim() == Claim::LongRun || (open && !self.is_success_rate());
        if needed { MIN_DRIFT_ARRIVALS as u64 } else { 1 }
    }

    /// The fewest requests with which it can PASS. Several schedules need one violation that the limit allows (method, section
    /// 12); counts need as many requests as none of which may violate it.
    fn needed(&self) -> u64 {
        let budget = self.objective.budget();
        let looks = self.looks().len().max(1) as f64;
        let counted = |alpha: f64| n_pass(0, budget.fraction(), alpha).unwrap_or(u64::MAX);
        let needed = match self.claim() {
            // Without a budget none of any number of requests is a PASS.
            _ if budget.ppm() == 0 => 1,
            Claim::ThisRun => counted(ALPHA),
            Claim::TypicalRun if !self.is_pooled() => 1_000_000_u64.div_ceil(u64::from(budget.ppm())),
            Claim::TypicalRun | Claim::LongRun => counted(ALPHA / looks),
        };
        let least = if self.claim() == Claim::LongRun { LEAST_LONG_RUN } else { 1 };
        let trial = if self.is_pooled() { 1 } else { self.smallest_trial() };
        needed.max(least).max(trial)
    }

    /// The first look at which it can PASS, when nothing speaks against it.
    fn first_look(&self) -> Option<usize> {
        let n = self.requests().filter(|n| *n >= self.smallest_trial())?;
        let needed = self.needed();
        if self.is_pooled() {
            self.looks().iter().position(|trials| n.saturating_mul(u64::from(*trials)) >= needed)
        } else {
            (n >= needed).then_some(0)
        }
    }

    fn is_affordable(&self, look: usize) -> bool {
        time_until_look(self.contract, self.plan, look) <= self.contract.evidence.budget.of(self.plan)
    }

    fn may_miss(&self, requests: u64) -> Option<u64> {
        let budget = self.objective.budget();
        match self.claim() {
            _ if budget.ppm() == 0 => Some(0),
            Claim::ThisRun => pass_max(requests, budget.fraction(), ALPHA),
            Claim::TypicalRun if !self.is_pooled() => Some(budget.floor_of(requests)),
            Claim::TypicalRun => pass_max(requests, budget.fraction(), ALPHA / self.looks().len().max(1) as f64),
            // How much the violations come in clusters is not known before.
            Claim::LongRun => None,
        }
    }

    /// Changes that let it PASS, each of which was tried on the contract.
    fn changes(&self, look: Option<usize>) -> Vec<Change> {
        let closed = self.requests().is_none();
        // In a closed loop only the time of the first look can be too long.
        let candidates = match look.or(closed.then_some(0)) {
            Some(0) => vec![fewer_repeats(self.contract, self.plan), Some(Change::default())],
            Some(_) => vec![Some(Change::default())],
            None => vec![self.more_requests(), self.more_repeats()],
        };
        candidates.into_iter().flatten().filter_map(|change| self.afforded(change)).collect()
    }

    /// The change with the budgets that it needs, when it lets the objective PASS.
    fn afforded(&self, change: Change) -> Option<Change> {
        let changed = change.apply(self.contract);
        let look = Question { contract: &changed, ..*self }.first_look();
        let look = if self.requests().is_some() { look? } else { 0 };
        change.afforded(self.contract, self.plan, look)
    }

    fn more_requests(&self) -> Option<Change> {
        let trials = if self.is_pooled() { self.looks().last().copied()? } else { 1 };
        let requests = self.needed().div_ceil(trials.into()).max(self.smallest_trial());
        Change::requests(self.contract, requests)
    }

    /// A later last look, as many looks as before.
    fn more_repeats(&self) -> Option<Change> {
        let n = self.requests().filter(|n| self.is_pooled() && *n > 0)?;
        let last = u32::try_from(self.needed().div_ceil(n)).ok()?;
        let (_, before) = self.looks().split_last()?;
        Some(Change::repeats(before.iter().copied().chain([last]).collect()))
    }

    fn notes(&self, look: Option<usize>, affordable: bool) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        match self.requests() {
            None => notes.push(self.closed_note()),
            Some(n) if look.is_none() => notes.push(self.short_note(n)),
            Some(n) => notes.extend(self.sample_note(n, look.unwrap_or(0))),
        }
        if !affordable {
            notes.push(self.budget_note(look.unwrap_or(0)));
        }
        notes.extend(self.one_trial_note(look));
        notes.extend(self.window_note());
        notes
    }

    fn closed_note(&self) -> String {
        let what = if self.is_pooled() { "of all trials together" } else { "in each trial" };
        format!("in a closed loop the server's speed sets the number of requests; {} {what} are needed", self.needed())
    }

    /// Why no result whatever would be a PASS.
    fn short_note(&self, n: u64) -> String {
        let needed = self.needed();
        let allowed = n as f64 * self.objective.budget().fraction();
        if n < self.smallest_trial() {
            return format!(
                "UNKNOWN whatever is measured: {n} requests do not show whether they pile up, {} do",
                self.smallest_trial()
            );
        }
        if self.is_pooled() {
            let last = self.looks().last().copied().unwrap_or(1);
            let all = n * u64::from(last);
            return format!(
                "UNKNOWN whatever is measured: {all} requests of {last} trials are too few, {needed} without violation can PASS it"
            );
        }
        match self.claim() {
            Claim::TypicalRun => {
                format!(
                    "UNKNOWN whatever is measured: the limit allows {allowed:.1} violations in {n} requests, and it must be one, as in {needed}"
                )
            }
            _ => format!("{n} requests cannot PASS it; {needed} without violation can"),
        }
    }

    /// What the number of requests is worth that can decide it.
    fn sample_note(&self, n: u64, look: usize) -> Option<String> {
        let trials = self.looks().get(look).copied().unwrap_or(1);
        let budget = self.objective.budget();
        let allowed = n as f64 * budget.fraction();
        if self.claim() == Claim::LongRun {
            let needed = self.needed();
            return Some(format!(
                "{needed} independent requests would do, but violations come in clusters: 3,000 to 30,000 and more are common, and the run itself shows how many"
            ));
        }
        if budget.ppm() == 0 {
            let all = if self.is_pooled() { n * u64::from(trials) } else { n };
            let bound = Share::of(3.min(all), all)?;
            return Some(if self.is_pooled() || self.claim() == Claim::ThisRun {
                format!("one violation is FAIL; none of {all} is PASS, and shows at most {bound} at 95%")
            } else {
                "a trial with one violation does not hold".to_owned()
            });
        }
        if self.is_pooled() {
            return (look > 0).then(|| format!("it can PASS after {trials} trials, not before"));
        }
        (allowed < COMFORTABLE_BUDGET)
            .then(|| format!("the limit allows {allowed:.1} violations in {n} requests; short trials flatter capacity"))
    }

    fn budget_note(&self, look: usize) -> String {
        let time = |time: Duration| format_duration(Duration::from_secs(nanos(time).div_ceil(1_000_000_000)));
        format!(
            "the {} trials that can decide it take {}, and the plan `{}` may take {}",
            self.looks().get(look).copied().unwrap_or(1),
            time(time_until_look(self.contract, self.plan, look)),
            self.plan.name(),
            time(self.contract.evidence.budget.of(self.plan))
        )
    }

    /// A typical run can be decided where a single schedule cannot.
    fn one_trial_note(&self, look: Option<usize>) -> Option<String> {
        let typical = self.claim() == Claim::TypicalRun && !self.is_pooled();
        let n = self.requests().filter(|_| typical && look.is_some())?;
        let needed = n_pass(0, self.objective.budget().fraction(), ALPHA)?;
        (n < needed).then(|| format!("one trial alone (`claim: this_run`) would need {needed} requests"))
    }

    /// Above saturation a queue grows so slowly that a short window ends before a wait reaches its limit: the window must last
    /// `limit / precision`, or drift is the only witness.
    fn window_note(&self) -> Option<String> {
        let (_, limit_ns) = self.objective.limit().filter(|(metric, _)| metric.is_wait())?;
        let precision = self.contract.evidence.search.map_or(PRECISION, |search| search.precision.fraction());
        let window = self.requests()? as f64 / self.contract.slo.at.rate()?.per_second();
        let needed = Duration::from_nanos(limit_ns).as_secs_f64() / precision;
        (window < needed).then(|| {
            let needed = format_duration(Duration::from_secs(needed.ceil() as u64));
            let overload = (precision * 1e6).round() / 1e4;
            format!("a window of {window:.0} s may not notice {overload}% too much load; one of {needed} would")
        })
    }
}
