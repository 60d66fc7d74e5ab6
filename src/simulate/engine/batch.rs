//! Continuous batching: admitted requests take every step together.

use super::{Common, Emission, Job};
use crate::simulate::profile::Batch;

#[derive(Debug)]
struct Member {
    job: Job,
    /// Steps that had ended when it joined.
    joined: u64,
    cancelled: bool,
}

/// The batch and the step that it is in.
#[derive(Debug)]
pub(super) struct BatchState {
    step_base: u64,
    step_per_request: u64,
    prefill_per_token: u64,
    members: Vec<Member>,
    step_end_ns: Option<u64>,
    /// Steps that have ended.
    steps: u64,
    /// Only first and last tokens are told.
    ends_only: bool,
    /// The next step at whose end a first or a last token comes, or a member leaves.
    next_end: u64,
}

impl BatchState {
    pub(super) fn new(batch: &Batch) -> Self {
        Self {
            step_base: batch.step_base.0,
            step_per_request: batch.step_per_request.0,
            prefill_per_token: batch.prefill_per_token.0,
            members: Vec::new(),
            step_end_ns: None,
            steps: 0,
            ends_only: false,
            next_end: 0,
        }
    }

    /// From now on only first and last tokens are told.
    pub(super) fn tell_ends_only(&mut self) {
        self.ends_only = true;
    }

    pub(super) fn step_end_ns(&self) -> Option<u64> {
        self.step_end_ns
    }

    pub(super) fn running(&self) -> usize {
        self.members.len()
    }

    /// Ends the step that is due, or begins one.
    pub(super) fn fire(&mut self, at_ns: u64, common: &mut Common, out: &mut Vec<Emission>) {
        if self.step_end_ns.is_some_and(|end| end <= at_ns) {
            self.end_step(at_ns, common, out);
        } else {
            common.admit_ns = None;
            self.begin_step(at_ns, common);
        }
    }

    fn begin_step(&mut self, at_ns: u64, common: &mut Common) {
        let mut admitted_tokens = 0u64;
        while let Some(job) = common.admit(self.members.len()) {
            admitted_tokens += u64::from(job.prompt_tokens);
            self.members.push(Member { job, joined: self.steps, cancelled: false });
            self.next_end = self.steps + 1;
        }
        if self.members.is_empty() {
            return;
        }
        let length = self
            .step_base
            .saturating_add(self.step_per_request.saturating_mul(self.members.len() as u64))
            .saturating_add(self.prefill_per_token.saturating_mul(admitted_tokens));
        self.step_end_ns = Some(at_ns.saturating_add(common.jittered(length)));
    }

    /// Every member gets one token; those that are done or given up leave.
    fn end_step(&mut self, at_ns: u64, common: &mut Common, out: &mut Vec<Emission>) {
        self.step_end_ns = None;
        self.steps += 1;
        if !self.ends_only || self.steps >= self.next_end {
            self.tell(at_ns, common, out);
        }
        if !self.members.is_empty() || !common.waiting.is_empty() {
            common.look_at(at_ns);
        }
    }

    fn tell(&mut self, at_ns: u64, common: &mut Common, out: &mut Vec<Emission>) {
        let (steps, ends_only) = (self.steps, self.ends_only);
        self.members.retain(|member| {
            let token = (steps - member.joined - 1) as u32;
            let last = token + 1 >= member.job.output_tokens;
            if !member.cancelled && (!ends_only || token == 0 || last) {
                out.push(Emission { id: member.job.id, at_ns, token, last });
            }
            let stays = !last && !member.cancelled;
            if !stays {
                common.kv_used -= member.job.reserved();
            }
            stays
        });
        let ends = self.members.iter().map(|member| member.joined + u64::from(member.job.output_tokens));
        self.next_end = ends.min().unwrap_or(0);
    }

    pub(super) fn cancel(&mut self, id: u64) {
        self.next_end = 0;
        for member in self.members.iter_mut().filter(|member| member.job.id == id) {
            member.cancelled = true;
        }
    }

    pub(super) fn shift(&mut self, by_ns: u64) {
        self.step_end_ns = self.step_end_ns.map(|end| end.saturating_add(by_ns));
    }

    pub(super) fn clear(&mut self) {
        self.members.clear();
        self.step_end_ns = None;
    }
}
