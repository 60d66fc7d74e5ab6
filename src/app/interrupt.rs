//! SIGINT and SIGTERM: the first stops the load and lets the run write what it has; the second ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::exit::{Exit, Failure};

/// Whether and by what the run was interrupted.
#[derive(Debug, Clone)]
pub(super) struct Interrupt {
    token: CancellationToken,
    number: Arc<AtomicI32>,
}

impl Interrupt {
    /// Starts to listen. Call it inside the runtime, before anything that must be cleaned up begins.
    pub(super) fn listen() -> Result<Self, Failure> {
        let fault = |error: std::io::Error| Failure::internal(format!("failed to listen for signals: {error}"));
        let mut interrupts = signal(SignalKind::interrupt()).map_err(fault)?;
        let mut terminations = signal(SignalKind::terminate()).map_err(fault)?;
        let this = Self { token: CancellationToken::new(), number: Arc::new(AtomicI32::new(0)) };
        let listener = this.clone();
        tokio::spawn(async move {
            loop {
                let kind = tokio::select! {
                    _ = interrupts.recv() => SignalKind::interrupt(),
                    _ = terminations.recv() => SignalKind::terminate(),
                };
                listener.raise(kind.as_raw_value());
            }
        });
        Ok(this)
    }

    /// The second signal ends the process at once; a launched endpoint ends with our pipe to its supervisor.
    fn raise(&self, number: i32) {
        if self.token.is_cancelled() {
            std::process::exit(i32::from(Exit::Signal(number).code()));
        }
        self.number.store(number, Ordering::Relaxed);
        self.token.cancel();
    }

    /// Cancelled by the first signal.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// The signal that came, if any.
    pub(super) fn signal(&self) -> Option<i32> {
        self.token.is_cancelled().then(|| self.number.load(Ordering::Relaxed))
    }
}
