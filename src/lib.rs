//! Goodput answers one question with evidence: can this LLM serving change ship?
//!
//! Data flows one way: contract → plan → schedule → drive → records → summary → judge → verdict → report. The modules
//! up to `schedule` and from `record` on are pure; see `tests/architecture.rs`.

pub mod app;
pub mod audio;
pub mod baseline;
pub mod compare;
pub mod contract;
pub mod drive;
pub mod endpoint;
pub mod fingerprint;
pub mod github;
pub mod judge;
pub mod observe;
pub mod probe;
pub mod publish;
pub mod record;
pub mod report;
pub mod schedule;
pub mod search;
pub mod simulate;
pub mod stats;
pub mod units;
pub mod workload;
