//! Two endpoints that have one machine in turn.

use jiff::Timestamp;
use serde::Serialize;

use crate::app::exit::Failure;
use crate::app::run::{Around, Side};
use crate::compare::{Sides, compare};
use crate::contract::Plan;
use crate::judge::Status;
use crate::record::{BaselineRecord, RecordStep, Stop};
use crate::schedule::{PlannedTrial, Words};
use crate::search::{Campaign, Next, Part};
use crate::units::Load;

/// The stream of random words that tells which endpoint is first.
const PAIR_STREAM: u64 = 48;

/// One of two endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::app) enum Which {
    /// The one without the change.
    Base,
    /// The one with it.
    Head,
}

/// A line of `pairs.jsonl`: one trial, in the order in which they were made.
#[derive(Debug, Serialize)]
struct PairLine {
    /// When it began (RFC 3339).
    at: String,
    /// The pair's number, from 0; the same for both of its trials.
    pair: u32,
    endpoint: Which,
    /// The trial's number in the result of its endpoint.
    trial: u32,
    load: Load,
    seed: u64,
    /// The endpoint was started anew for it.
    fresh: bool,
}

/// Two endpoints that have one machine in turn: of two that are launched only one runs at a time.
pub(in crate::app) struct Duo<'a> {
    head: &'a mut Side,
    base: &'a mut Side,
    around: Around<'a>,
    /// Which one is first in the next pair.
    first: Which,
    /// Which one had the machine last.
    last: Option<Which>,
    pairs: u32,
    /// The base cannot be measured any more.
    lost: bool,
    /// The head cannot.
    over: bool,
    /// Whether the pairs were undecided when there were so many.
    seen: Option<(usize, bool)>,
}

impl<'a> Duo<'a> {
    /// Nobody has the machine yet.
    pub(in crate::app) fn new(head: &'a mut Side, base: &'a mut Side, around: Around<'a>) -> Self {
        let mut words = Words::new(head.contract().workload.seed, PAIR_STREAM);
        let first = if words.next_below(2) == 0 { Which::Base } else { Which::Head };
        Self { head, base, around, first, last: None, pairs: 0, lost: false, over: false, seen: None }
    }

    /// Whether another trial may follow.
    pub(in crate::app) fn goes_on(&self) -> bool {
        !self.over && self.head.stopped().is_none()
    }

    /// Whether the endpoint without the change can still be measured.
    pub(in crate::app) fn is_whole(&self) -> bool {
        !self.lost
    }

    /// The endpoint without the change.
    pub(in crate::app) fn base(&self) -> &Side {
        self.base
    }

    /// The endpoint with it.
    pub(in crate::app) fn head(&self) -> &Side {
        self.head
    }

    fn side(&mut self, which: Which) -> &mut Side {
        match which {
            Which::Base => self.base,
            Which::Head => self.head,
        }
    }

    /// What comes next: the head's own plan, and where that has nothing more to ask at a listed load, pairs at the load that
    /// must hold until they decide.
    pub(in crate::app) fn next(&mut self, plan: Plan) -> Next {
        let campaign = Campaign::new(self.head.contract(), plan).paired(!self.lost);
        let tried = self.head.measured().tried();
        let (next, on) = (campaign.next(&tried), campaign.insisting().next(&tried));
        let is_step = |next: &Next| matches!(next, Next::Trial(_, Part::Step));
        if !is_step(&next) && is_step(&on) && !self.lost && self.is_open(plan) { on } else { next }
    }

    /// Whether more pairs at the load that must hold could decide a change that gates. Asked at the looks alone: between two of
    /// them a pair more decides nothing.
    fn is_open(&mut self, plan: Plan) -> bool {
        let at = self.head.contract().slo.at;
        let steps =
            |side: &Side| side.measured().steps(&[at]).iter().map(|step| RecordStep::of(step).trials.len()).sum();
        let (base, head): (usize, usize) = (steps(self.base), steps(self.head));
        let pairs = base.min(head);
        let campaign = Campaign::new(self.head.contract(), plan);
        if !campaign.looks(at).iter().any(|look| *look as usize == pairs) {
            return true;
        }
        if let Some((counted, open)) = self.seen
            && counted == pairs
        {
            return open;
        }
        let open = self.is_undecided(at);
        self.seen = Some((pairs, open));
        open
    }

    fn is_undecided(&self, at: Load) -> bool {
        let contract = self.head.contract();
        let Some(rules) = &contract.baseline else { return false };
        // A run under way is incomplete, which says nothing against the trials that it has.
        let [base, head] = [&*self.base, &*self.head].map(|side| {
            let mut record = BaselineRecord::of(&side.result(None));
            record.invalid.clear();
            record
        });
        let found = compare(Sides { base: &base, head: &head, contract, rules, is_paired: true });
        let open = |status| status == Status::Unknown;
        found.mismatches.is_empty()
            && found.changes.iter().any(|change| change.gates && change.load == Some(at) && open(change.status))
    }

    /// One trial of each at a load and on one schedule: base and head, the next pair head and base. Of the head alone once the base
    /// is lost.
    pub(in crate::app) async fn pair(&mut self, load: Load, seed: u64, part: Part) -> Result<(), Failure> {
        let order = match self.first {
            Which::Base => [Which::Base, Which::Head],
            Which::Head => [Which::Head, Which::Base],
        };
        for which in order {
            if self.goes_on() {
                self.one(which, load, seed, part).await?;
            }
        }
        self.first = order[1];
        self.pairs += 1;
        Ok(())
    }

    /// One trial of one endpoint; a void one is repeated once, with its own seed.
    pub(in crate::app) async fn one(&mut self, which: Which, load: Load, seed: u64, part: Part) -> Result<(), Failure> {
        if which == Which::Base && self.lost {
            return Ok(());
        }
        for _ in 0..2 {
            if self.around.interrupt.token().is_cancelled() || !self.take_turn(which).await? {
                return Ok(());
            }
            let is_void = self.trial(which, load, seed, part).await;
            if !is_void {
                break;
            }
        }
        Ok(())
    }

    /// Measures one trial of the endpoint that has the machine. Whether it is to be repeated.
    async fn trial(&mut self, which: Which, load: Load, seed: u64, part: Part) -> bool {
        let (around, pair) = (self.around, self.pairs);
        let side = self.side(which);
        let shape = side.contract().traffic.shape(load);
        let planned = PlannedTrial { trial: side.next_number(), seed, load, shape };
        let line = PairLine {
            at: Timestamp::now().to_string(),
            pair,
            endpoint: which,
            trial: planned.trial,
            load,
            seed,
            fresh: side.take_fresh(),
        };
        // Where the disk is full, the trial itself shows it.
        drop(self.head.folder().append_lines("pairs.jsonl", &[line]));
        let side = self.side(which);
        side.measure(planned, part, around).await;
        let stop = side.stopped().cloned();
        let tried = side.measured().tried();
        let is_void = tried.last().is_some_and(|last| last.record.is_void() && last.record.complete);
        match stop {
            None => is_void,
            Some(Stop::Storage { detail }) => {
                self.head.stop_for(Stop::Storage { detail });
                false
            }
            Some(_) => {
                self.lose(which).await;
                false
            }
        }
    }

    /// Gives the machine to one of the two. Whether it is ready to be measured.
    async fn take_turn(&mut self, which: Which) -> Result<bool, Failure> {
        let around = self.around;
        let had_it = self.last.replace(which);
        let other = match which {
            Which::Base => &mut *self.head,
            Which::Head => &mut *self.base,
        };
        if other.is_launched() {
            other.go_down().await;
        }
        let side = self.side(which);
        let (is_known, is_up) = (side.was_up(), side.is_up());
        let is_ready = match is_up {
            true => Ok(true),
            false => side.come_up(around).await,
        };
        match is_ready {
            Ok(true) => {
                if is_known && had_it != Some(which) {
                    side.ask_anew(around).await;
                }
                return Ok(true);
            }
            Ok(false) => {}
            // Nothing was measured of the change: what is wrong is told as it is without another endpoint.
            Err(failure) if which == Which::Head && !is_known => return Err(failure),
            Err(failure) => side.stop_for(Stop::EndpointDown { detail: failure.text() }),
        }
        self.lose(which).await;
        Ok(false)
    }

    /// One of the two cannot be measured any more.
    async fn lose(&mut self, which: Which) {
        match which {
            Which::Head => self.over = true,
            Which::Base => {
                self.lost = true;
                if self.base.is_launched() {
                    self.base.go_down().await;
                }
                if !self.around.interrupt.token().is_cancelled() {
                    self.around.teller.say("goodput: the endpoint without the change is lost; the run goes on alone");
                }
            }
        }
    }
}
