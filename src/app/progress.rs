//! Progress on standard error: a live line on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::time::Duration;

use crate::drive::Progress;
use crate::report::plain;
use crate::schedule::{PlannedTrial, TrialShape};
use crate::search::Part;

/// Says how far the run is.
#[derive(Debug)]
pub(super) struct Teller {
    live: bool,
}

impl Teller {
    pub(super) fn new() -> Self {
        Self { live: stderr().is_terminal() }
    }

    /// One plain line, made harmless: it may name what a contract says.
    pub(super) fn say(&self, text: &str) {
        self.clear();
        drop(writeln!(stderr(), "{}", plain(text)));
    }

    fn clear(&self) {
        if self.live {
            drop(write!(stderr(), "\r\u{1b}[2K"));
        }
    }

    /// Tells of one trial until it is dropped or aborted; `of` leads what is told where two endpoints are measured.
    pub(super) async fn follow(&self, of: &str, planned: PlannedTrial, part: Part, progress: Arc<Progress>) {
        const LIVE: Duration = Duration::from_millis(200);
        const PLAIN: Duration = Duration::from_secs(10);
        let length = planned.load_time();
        let begun = tokio::time::Instant::now();
        let what = match part {
            Part::Step => "",
            Part::Search => "search at ",
            Part::Against => "against the baseline, at ",
            Part::Confirm => "to confirm, at ",
            Part::Curve => "around the capacity, at ",
        };
        let head = format!("[{of}trial {}] {what}{}", planned.trial, planned.load);
        if !self.live {
            let total = match planned.shape {
                TrialShape::Open { counts, .. } => format!("{} requests, ", counts.total()),
                TrialShape::Closed(_) => String::new(),
            };
            self.say(&format!("{head}: {total}about {} s", length.as_secs().max(1)));
        }
        let mut timer = tokio::time::interval(if self.live { LIVE } else { PLAIN });
        timer.tick().await;
        loop {
            timer.tick().await;
            let counts = progress.counts();
            let left = length.saturating_sub(begun.elapsed()).as_secs();
            let line = format!(
                "{head}: {} sent, {} done, {} failed, {} open, {left} s left",
                counts.released,
                counts.finished,
                counts.finished - counts.ok,
                counts.released.saturating_sub(counts.finished),
            );
            if self.live {
                drop(write!(stderr(), "\r\u{1b}[2K{line}"));
                drop(stderr().flush());
            } else {
                self.say(&line);
            }
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.clear();
    }
}
