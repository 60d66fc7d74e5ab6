//! The queueing model: a pure machine that is told the time and says which tokens come out when.
//!
//! It keeps integer nanoseconds and reads no clock, so the same machine runs in virtual time, where its answers equal
//! the reference to the nanosecond, and in real time behind a socket. The caller tells it of everything in order of time:
//! before an arrival at `t` it advances to just before `t`, so that what ends at `t` meets what arrives at `t`.

mod batch;
mod chance;
mod slots;

use std::collections::VecDeque;

use batch::BatchState;
pub use chance::{LengthSource, Lengths};
use slots::SlotsState;

use super::profile::{Model, Profile};
use crate::schedule::Words;

/// The stream of random words for jitter and service times; the low ones belong to schedules and lengths.
const SERVICE_STREAM: u64 = 16;

/// One request as the model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Names the request in emissions.
    pub id: u64,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// Tokens of its reply, at least 1.
    pub output_tokens: u32,
}

impl Job {
    /// The tokens that it reserves in the key-value cache: all that it may come to hold.
    fn reserved(&self) -> u64 {
        u64::from(self.prompt_tokens) + u64::from(self.output_tokens)
    }
}

/// One token of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emission {
    /// The request.
    pub id: u64,
    /// When the token came out, in nanoseconds.
    pub at_ns: u64,
    /// Its index in the reply, from 0.
    pub token: u32,
    /// Whether it is the last one.
    pub last: bool,
}

/// Why an arrival was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// As many as may wait are waiting.
    QueueFull,
    /// The request alone is larger than the key-value cache.
    TooLarge,
}

/// What the model holds at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// Requests in service.
    pub running: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Tokens reserved in the key-value cache.
    pub kv_used: u64,
    /// Its size, if it has one.
    pub kv_tokens: Option<u64>,
}

/// The model with its queue.
#[derive(Debug)]
pub struct Engine {
    service: Service,
    common: Common,
    queue_limit: Option<u32>,
}

#[derive(Debug)]
enum Service {
    Batch(BatchState),
    Slots(SlotsState),
}

/// What both kinds of service need.
#[derive(Debug)]
struct Common {
    waiting: VecDeque<Job>,
    slots: usize,
    kv_used: u64,
    kv_tokens: Option<u64>,
    /// Everything up to here has happened.
    now_ns: u64,
    /// The end of the last stall.
    resume_ns: u64,
    /// When waiting requests are looked at next; `None` while nothing can change for them.
    admit_ns: Option<u64>,
    jitter_ppm: u64,
    words: Words,
}

impl Common {
    /// The next waiting request, if a slot and the cache have room for it; it then counts as admitted.
    fn admit(&mut self, running: usize) -> Option<Job> {
        let next = self.waiting.front()?;
        let reserved = next.reserved();
        let fits = self.kv_tokens.is_none_or(|size| self.kv_used + reserved <= size);
        if running >= self.slots || !fits {
            return None;
        }
        self.kv_used += reserved;
        self.waiting.pop_front()
    }

    fn look_at(&mut self, at_ns: u64) {
        let at_ns = at_ns.max(self.resume_ns);
        self.admit_ns = Some(self.admit_ns.map_or(at_ns, |due| due.min(at_ns)));
    }

    /// The given time, longer or shorter by chance.
    fn jittered(&mut self, nanos: u64) -> u64 {
        if self.jitter_ppm == 0 {
            return nanos;
        }
        let factor = 1_000_000 - self.jitter_ppm + self.words.next_below(2 * self.jitter_ppm + 1);
        (u128::from(nanos) * u128::from(factor) / 1_000_000) as u64
    }
}

impl Engine {
    /// The empty model of a profile, at time 0.
    pub fn new(profile: &Profile) -> Self {
        let (service, slots, kv_tokens, jitter) = match &profile.model {
            Model::Batch(batch) => {
                (Service::Batch(BatchState::new(batch)), batch.slots, batch.kv_tokens.map(u64::from), batch.jitter)
            }
            Model::Slots(slots) => (Service::Slots(SlotsState::new(slots)), slots.slots, None, slots.jitter),
        };
        let common = Common {
            waiting: VecDeque::new(),
            slots: slots.get() as usize,
            kv_used: 0,
            kv_tokens,
            now_ns: 0,
            resume_ns: 0,
            admit_ns: None,
            jitter_ppm: u64::from(jitter.0.ppm()),
            words: Words::new(profile.seed, SERVICE_STREAM),
        };
        Self { service, common, queue_limit: profile.queue.map(|queue| queue.limit) }
    }

    /// From now on a batch tells only the first and the last token of each request, which is all that a record needs and takes
    /// far less time. Nothing else changes. Servers that are independent go on telling every token.
    pub fn tell_ends_only(&mut self) {
        if let Service::Batch(batch) = &mut self.service {
            batch.tell_ends_only();
        }
    }

    /// A request arrives; a time that has passed already counts as the present.
    ///
    /// # Errors
    /// When the request is refused.
    pub fn arrive(&mut self, at_ns: u64, job: Job) -> Result<(), Refusal> {
        self.common.now_ns = self.common.now_ns.max(at_ns);
        let room = self.common.slots + self.queue_limit.unwrap_or(u32::MAX) as usize;
        if self.common.kv_tokens.is_some_and(|size| job.reserved() > size) {
            return Err(Refusal::TooLarge);
        }
        if self.running() + self.common.waiting.len() >= room {
            return Err(Refusal::QueueFull);
        }
        self.common.waiting.push_back(job);
        // A batch looks at the queue when its step ends, independent servers at once.
        if self.running() == 0 || matches!(self.service, Service::Slots(_)) {
            self.common.look_at(self.common.now_ns);
        }
        Ok(())
    }

    /// When something happens next, if nothing arrives before.
    pub fn next_event(&self) -> Option<u64> {
        let progress = match &self.service {
            Service::Batch(batch) => batch.step_end_ns(),
            Service::Slots(slots) => slots.next_token_ns(),
        };
        match (progress, self.common.admit_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Lets everything happen that is due up to and at `to_ns`; the tokens that came out are added to `out` in order.
    pub fn advance(&mut self, to_ns: u64, out: &mut Vec<Emission>) {
        while let Some(at_ns) = self.next_event().filter(|at_ns| *at_ns <= to_ns) {
            self.common.now_ns = self.common.now_ns.max(at_ns);
            match &mut self.service {
                Service::Batch(batch) => batch.fire(at_ns, &mut self.common, out),
                Service::Slots(slots) => slots.fire(at_ns, &mut self.common, out),
            }
        }
        self.common.now_ns = self.common.now_ns.max(to_ns);
    }

    /// Lets everything happen that is due before `at_ns`, as an arrival at that instant requires.
    pub fn advance_before(&mut self, at_ns: u64, out: &mut Vec<Emission>) {
        if let Some(to_ns) = at_ns.checked_sub(1) {
            self.advance(to_ns, out);
        }
    }

    /// A request is given up. Waiting, it is gone at once; in a batch it leaves with the end of the step.
    pub fn cancel(&mut self, id: u64) {
        let waiting = self.common.waiting.len();
        self.common.waiting.retain(|job| job.id != id);
        if self.common.waiting.len() == waiting {
            match &mut self.service {
                Service::Batch(batch) => batch.cancel(id),
                Service::Slots(slots) => slots.cancel(id, &mut self.common),
            }
        } else if matches!(self.service, Service::Slots(_)) {
            // The one behind may fit where this one did not.
            self.common.look_at(self.common.now_ns);
        }
    }

    /// No work progresses in `[from_ns, from_ns + length_ns)`: what is in service is suspended and resumes. Must be told
    /// after `advance(from_ns)` and before anything later.
    pub fn stall(&mut self, from_ns: u64, length_ns: u64) {
        let resume_ns = from_ns.saturating_add(length_ns);
        let standing_until = self.common.resume_ns.max(from_ns);
        let Some(shift_ns) = resume_ns.checked_sub(standing_until) else { return };
        self.common.resume_ns = resume_ns;
        self.common.admit_ns = self.common.admit_ns.map(|due| due.max(resume_ns));
        match &mut self.service {
            Service::Batch(batch) => batch.shift(shift_ns),
            Service::Slots(slots) => slots.shift(shift_ns),
        }
    }

    /// Forgets every request, as a server does that starts over.
    pub fn clear(&mut self) {
        self.common.waiting.clear();
        self.common.kv_used = 0;
        self.common.admit_ns = None;
        match &mut self.service {
            Service::Batch(batch) => batch.clear(),
            Service::Slots(slots) => slots.clear(),
        }
    }

    /// What the model holds.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            running: self.running(),
            waiting: self.common.waiting.len(),
            kv_used: self.common.kv_used,
            kv_tokens: self.common.kv_tokens,
        }
    }

    fn running(&self) -> usize {
        match &self.service {
            Service::Batch(batch) => batch.running(),
            Service::Slots(slots) => slots.running(),
        }
    }
}

#[cfg(test)]
mod tests;
