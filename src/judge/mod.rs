//! From contract and record to a [`Verdict`]: first whether a trial is valid, then whether it passes.

mod verdict;

pub use verdict::{Check, Claim, Reason, Status, Verdict};
