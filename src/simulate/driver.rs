//! The engine in real time: whoever has news moves it forward, and one thread sleeps to its next event.
//!
//! A request that arrives moves the engine itself, under the lock, so that an idle server answers without waking
//! another thread. The thread sleeps on a condition variable with the finest timer the kernel has; tokio's timers are
//! only good to a millisecond.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;

use super::engine::{Emission, Engine, Job, Occupancy, Refusal};

/// Nanoseconds since the server's start, on one steady clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct SteadyClock(Instant);

impl SteadyClock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now_ns(self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// How many tokens of one request came out so far; wakes the reply that writes them.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    emitted: AtomicU32,
    dropped: AtomicBool,
    waker: AtomicWaker,
}

impl Outbox {
    /// Tokens that came out so far; `None` when the request was lost in a restart. The task is woken at the next change.
    pub(super) fn watch(&self, context: &std::task::Context<'_>) -> Option<u32> {
        self.waker.register(context.waker());
        if self.dropped.load(Ordering::Acquire) { None } else { Some(self.emitted.load(Ordering::Acquire)) }
    }
}

/// The engine, its clock and everyone who waits for its tokens.
#[derive(Debug)]
pub(super) struct Driver {
    clock: SteadyClock,
    state: Mutex<State>,
    earlier: Condvar,
}

#[derive(Debug)]
struct State {
    engine: Engine,
    outboxes: HashMap<u64, Arc<Outbox>>,
    /// Stalls to come, by time.
    stalls: VecDeque<(u64, u64)>,
    /// What the thread sleeps for; `None` while it sleeps until it is called.
    sleeps_until_ns: Option<u64>,
    next_id: u64,
    stopped: bool,
    emissions: Vec<Emission>,
    generated_tokens: u64,
}

impl State {
    /// Moves to `to_ns`, with the stalls on the way, and tells everyone about their tokens.
    fn advance(&mut self, to_ns: u64) {
        while let Some((at_ns, length_ns)) = self.stalls.pop_front_if(|(at_ns, _)| *at_ns <= to_ns) {
            self.engine.advance(at_ns, &mut self.emissions);
            self.engine.stall(at_ns, length_ns);
        }
        self.engine.advance(to_ns, &mut self.emissions);
        self.deliver();
    }

    fn deliver(&mut self) {
        self.generated_tokens += self.emissions.len() as u64;
        // First all counts, then the calls: a reply that is woken finds all tokens of this instant.
        for emission in &self.emissions {
            if let Some(outbox) = self.outboxes.get(&emission.id) {
                outbox.emitted.fetch_add(1, Ordering::Release);
            }
        }
        for emission in self.emissions.drain(..) {
            if let Some(outbox) = self.outboxes.get(&emission.id) {
                outbox.waker.wake();
                if emission.last {
                    self.outboxes.remove(&emission.id);
                }
            }
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        let stall = self.stalls.front().map(|(at_ns, _)| *at_ns);
        match (self.engine.next_event(), stall) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

impl Driver {
    pub(super) fn new(engine: Engine, clock: SteadyClock, stalls: Vec<(u64, u64)>) -> Self {
        let state = State {
            engine,
            outboxes: HashMap::new(),
            stalls: stalls.into(),
            sleeps_until_ns: None,
            next_id: 1,
            stopped: false,
            emissions: Vec::new(),
            generated_tokens: 0,
        };
        Self { clock, state: Mutex::new(state), earlier: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the thread if it would sleep past the next event.
    fn call_if_earlier(&self, state: &State) {
        if let Some(next_ns) = state.next_event_ns()
            && state.sleeps_until_ns.is_none_or(|until_ns| next_ns < until_ns)
        {
            self.earlier.notify_one();
        }
    }

    /// A request arrived at `at_ns`. The id is for [`Driver::cancel`].
    ///
    /// # Errors
    /// When the model refuses it.
    pub(super) fn submit(
        &self,
        at_ns: u64,
        prompt_tokens: u32,
        output_tokens: u32,
    ) -> Result<(u64, Arc<Outbox>), Refusal> {
        let mut state = self.lock();
        state.advance(at_ns.saturating_sub(1));
        let id = state.next_id;
        state.engine.arrive(at_ns, Job { id, prompt_tokens, output_tokens })?;
        state.next_id += 1;
        let outbox = Arc::new(Outbox::default());
        state.outboxes.insert(id, Arc::clone(&outbox));
        state.advance(self.clock.now_ns());
        self.call_if_earlier(&state);
        Ok((id, outbox))
    }

    /// The client went away.
    pub(super) fn cancel(&self, id: u64) {
        let mut state = self.lock();
        if state.outboxes.remove(&id).is_some() {
            let now_ns = self.clock.now_ns();
            state.advance(now_ns);
            state.engine.cancel(id);
            state.advance(now_ns);
            self.call_if_earlier(&state);
        }
    }

    /// No work progresses for a while, from now on.
    pub(super) fn stall(&self, length_ns: u64) {
        let mut state = self.lock();
        let now_ns = self.clock.now_ns();
        state.advance(now_ns);
        state.engine.stall(now_ns, length_ns);
    }

    /// Every request is lost and the token count begins at zero.
    pub(super) fn restart(&self) {
        let mut state = self.lock();
        state.engine.clear();
        state.generated_tokens = 0;
        for (_, outbox) in state.outboxes.drain() {
            outbox.dropped.store(true, Ordering::Release);
            outbox.waker.wake();
        }
    }

    /// What the model holds, and the tokens it made since the last restart.
    pub(super) fn occupancy(&self) -> (Occupancy, u64) {
        let mut state = self.lock();
        state.advance(self.clock.now_ns());
        (state.engine.occupancy(), state.generated_tokens)
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.earlier.notify_one();
    }

    /// The thread that sleeps to the next event, until [`Driver::stop`].
    pub(super) fn keep_time(&self) {
        // The kernel may otherwise be 50 µs late to collect several wake-ups into one. Where it refuses, so be it.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut state = self.lock();
        while !state.stopped {
            state.advance(self.clock.now_ns());
            state.sleeps_until_ns = state.next_event_ns();
            state = match state.sleeps_until_ns {
                None => self.earlier.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(until_ns) => {
                    let rest = Duration::from_nanos(until_ns.saturating_sub(self.clock.now_ns()));
                    match self.earlier.wait_timeout(state, rest) {
                        Ok((state, _)) => state,
                        Err(poisoned) => poisoned.into_inner().0,
                    }
                }
            };
        }
    }
}
