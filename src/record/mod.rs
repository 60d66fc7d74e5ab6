//! What was observed, in versioned form: [`model`], [`grade`] and [`summary`] are pure, `store` puts records on disk.

pub mod grade;
pub mod model;
pub mod summary;

pub use grade::grade;
pub use model::*;
pub use summary::{TrialAccumulator, TrialFacts, summarise_step, summarise_trial};
