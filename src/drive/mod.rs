//! Sockets, clock, pacing and cancellation: sends each arrival at its time, stamps what comes back and reports on itself.
//!
//! The open loop is truly open: a thread of its own releases every arrival at its planned instant, no pool or limit makes
//! one wait for another, and nothing is re-anchored when the machine falls behind. Nothing is retried and no redirect is
//! followed inside a measured request.

mod clock;
mod collect;
mod connect;
mod exchange;
mod health;
mod pace;
mod pool;
mod target;
mod trial;
mod turn;
mod watch;

pub use clock::Clock;
pub use exchange::{Exchange, Order, exchange};
pub use health::{open_file_limit, raise_priority};
pub use pool::Pool;
pub use target::{Target, TargetError};
pub use trial::{Lane, Progress, ProgressCounts, TrialRun, run_trial};
