//! Independent servers: each request has one for itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::chance::service_ns;
use super::{Common, Emission, Job};
use crate::simulate::profile::Slots;

/// How the tokens of one request are spaced from the start of its service.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// The first after a time, the others at a cadence; every gap has its own jitter.
    Cadence { first_ns: u64, per_token_ns: u64 },
    /// Evenly over the whole service.
    Spread { service_ns: u64 },
}

#[derive(Debug)]
struct Member {
    job: Job,
    pace: Pace,
    start_ns: u64,
    produced: u32,
}

/// The next token of a request; `sequence` keeps the order of what is due at one instant.
type Due = Reverse<(u64, u64, u64)>;

/// The servers and what each will do next.
#[derive(Debug)]
pub(super) struct SlotsState {
    settings: Slots,
    members: BTreeMap<u64, Member>,
    due: BinaryHeap<Due>,
    sequence: u64,
}

impl SlotsState {
    pub(super) fn new(settings: &Slots) -> Self {
        Self { settings: settings.clone(), members: BTreeMap::new(), due: BinaryHeap::new(), sequence: 0 }
    }

    /// When the next token is due. It may be one of a request that was given up; then nothing comes of it.
    pub(super) fn next_token_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((at_ns, _, _))| *at_ns)
    }

    pub(super) fn running(&self) -> usize {
        self.members.len()
    }

    /// Emits the token that is due, or admits who waits.
    pub(super) fn fire(&mut self, at_ns: u64, common: &mut Common, out: &mut Vec<Emission>) {
        if self.next_token_ns().is_some_and(|due| due <= at_ns) {
            self.emit(at_ns, common, out);
        } else {
            common.admit_ns = None;
            while let Some(job) = common.admit(self.members.len()) {
                self.begin(at_ns, job, common);
            }
        }
    }

    fn begin(&mut self, at_ns: u64, job: Job, common: &mut Common) {
        let pace = match self.settings.service {
            None => {
                Pace::Cadence { first_ns: self.settings.first_token_after.0, per_token_ns: self.settings.per_token.0 }
            }
            Some(service) => {
                let service_ns = service_ns(service, &mut common.words);
                Pace::Spread { service_ns: common.jittered(service_ns) }
            }
        };
        let member = Member { job, pace, start_ns: at_ns, produced: 0 };
        self.schedule(member.next_token_ns(at_ns, common), job.id);
        self.members.insert(job.id, member);
    }

    fn emit(&mut self, at_ns: u64, common: &mut Common, out: &mut Vec<Emission>) {
        let Some(Reverse((_, _, id))) = self.due.pop() else { return };
        let Some(member) = self.members.get_mut(&id) else { return };
        let token = member.produced;
        member.produced += 1;
        let last = member.produced >= member.job.output_tokens;
        out.push(Emission { id, at_ns, token, last });
        if last {
            common.kv_used -= member.job.reserved();
            self.members.remove(&id);
            if !common.waiting.is_empty() {
                common.look_at(at_ns);
            }
        } else {
            let next_ns = member.next_token_ns(at_ns, common);
            self.schedule(next_ns, id);
        }
    }

    fn schedule(&mut self, at_ns: u64, id: u64) {
        self.due.push(Reverse((at_ns, self.sequence, id)));
        self.sequence += 1;
    }

    pub(super) fn cancel(&mut self, id: u64, common: &mut Common) {
        if let Some(member) = self.members.remove(&id) {
            common.kv_used -= member.job.reserved();
            common.look_at(common.now_ns);
        }
    }

    pub(super) fn shift(&mut self, by_ns: u64) {
        let due = std::mem::take(&mut self.due);
        self.due = due.into_iter().map(|Reverse((at, seq, id))| Reverse((at.saturating_add(by_ns), seq, id))).collect();
        for member in self.members.values_mut() {
            member.start_ns = member.start_ns.saturating_add(by_ns);
        }
    }

    pub(super) fn clear(&mut self) {
        self.members.clear();
        self.due.clear();
    }
}

impl Member {
    /// When its next token comes, given that the last thing happened at `at_ns`.
    fn next_token_ns(&self, at_ns: u64, common: &mut Common) -> u64 {
        match self.pace {
            Pace::Cadence { first_ns, per_token_ns } => {
                let gap_ns = if self.produced == 0 { first_ns } else { per_token_ns };
                at_ns.saturating_add(common.jittered(gap_ns))
            }
            Pace::Spread { service_ns } => {
                let gaps = u128::from(self.job.output_tokens.saturating_sub(1));
                let passed = match gaps {
                    0 => u128::from(service_ns),
                    _ => u128::from(service_ns) * u128::from(self.produced) / gaps,
                };
                self.start_ns.saturating_add(passed as u64)
            }
        }
    }
}
