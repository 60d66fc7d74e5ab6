//! The limits that a request is watched by: its whole life, and the silence between messages.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Clock, Target};
use crate::observe::ReplyEnd;

/// How long a reply that is decided may still take to end, so that its connection can be used again.
pub(super) const AFTER_DECISION: Duration = Duration::from_millis(250);

/// Why we stop waiting.
pub(super) enum Interruption {
    Total,
    Idle,
    Cancelled,
}

impl Interruption {
    pub(super) fn end(&self) -> ReplyEnd {
        match self {
            Self::Total => ReplyEnd::TimedOut("total"),
            Self::Idle => ReplyEnd::TimedOut("idle"),
            Self::Cancelled => ReplyEnd::Cancelled,
        }
    }

    /// The same for a reply that may have been decided: then its outcome stands, and only its transport did not end.
    pub(super) fn end_of(&self, decided_ns: Option<u64>) -> ReplyEnd {
        match decided_ns {
            Some(_) => ReplyEnd::Broken("the reply did not end after its end signal".to_owned()),
            None => self.end(),
        }
    }
}

/// The limits of one request: its whole life from the scheduled arrival, and the silence between messages.
pub(super) struct Watch {
    clock: Clock,
    total_ns: u64,
    idle_limit_ns: u64,
    idle_ns: u64,
    last_message_ns: u64,
    alarm: Pin<Box<Sleep>>,
}

impl Watch {
    /// Watches a request whose time counts from `begins_ns`.
    pub(super) fn new(target: &Target, clock: Clock, begins_ns: u64) -> Self {
        let total_ns = begins_ns.saturating_add(target.timeout.as_nanos() as u64);
        let idle_limit_ns = target.idle_timeout.as_nanos() as u64;
        // A reply that is no stream is one message: until it is there, only the total limit applies.
        let idle_ns = if target.protocol.streams() { idle_limit_ns } else { u64::MAX };
        // Whoever is still speaking is owed no answer.
        let last_message_ns = clock.now_ns().max(begins_ns);
        let first = total_ns.min(last_message_ns.saturating_add(idle_ns));
        let alarm = Box::pin(sleep_until(Instant::from_std(clock.instant(first))));
        Self { clock, total_ns, idle_limit_ns, idle_ns, last_message_ns, alarm }
    }

    pub(super) fn message(&mut self, at_ns: u64) {
        self.last_message_ns = self.last_message_ns.max(at_ns);
    }

    /// The reply turned out to be a stream, so that its silence has a limit from here.
    pub(super) fn streams(&mut self) {
        if self.idle_ns != self.idle_limit_ns {
            self.idle_ns = self.idle_limit_ns;
            let end = self.total_ns.min(self.last_message_ns.saturating_add(self.idle_ns));
            self.alarm.as_mut().reset(Instant::from_std(self.clock.instant(end)));
        }
    }

    /// The reply is decided: from here only a short time more.
    pub(super) fn decided(&mut self) {
        let end = self.clock.now_ns() + AFTER_DECISION.as_nanos() as u64;
        self.total_ns = self.total_ns.min(end);
        self.alarm.as_mut().reset(Instant::from_std(self.clock.instant(self.total_ns)));
    }

    /// The limit that has passed at an instant. A server that never pauses leaves no other moment to look.
    pub(super) fn passed(&self, at_ns: u64) -> Option<Interruption> {
        if at_ns >= self.total_ns {
            Some(Interruption::Total)
        } else if at_ns >= self.last_message_ns.saturating_add(self.idle_ns) {
            Some(Interruption::Idle)
        } else {
            None
        }
    }

    /// Looks whether a limit has passed. The alarm is set once and moved on only when it rings, so that a message costs
    /// no timer. The clock is asked first: work that is always ready uses up what the runtime grants a task, and then no
    /// alarm rings.
    fn poll_limit(&mut self, cx: &mut Context<'_>) -> Poll<Interruption> {
        loop {
            if let Some(interruption) = self.passed(self.clock.now_ns()) {
                return Poll::Ready(interruption);
            }
            if self.alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let idle_end = self.last_message_ns.saturating_add(self.idle_ns);
            self.alarm.as_mut().reset(Instant::from_std(self.clock.instant(self.total_ns.min(idle_end))));
        }
    }

    /// Waits for `work`, a limit or the cancellation, whichever comes first; what is ready already wins.
    pub(super) async fn guard<F: Future>(
        &mut self,
        cancel: &CancellationToken,
        mut work: Pin<&mut F>,
    ) -> Result<F::Output, Interruption> {
        let mut cancelled = pin!(cancel.cancelled());
        std::future::poll_fn(|cx| {
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            if cancelled.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(Interruption::Cancelled));
            }
            self.poll_limit(cx).map(Err)
        })
        .await
    }
}
