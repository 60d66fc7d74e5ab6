//! What was observed, in versioned form: [`model`], [`grade`] and [`summary`] are pure, `store` puts records on disk.

pub mod grade;
pub mod model;
mod schema;
mod store;
pub mod summary;
mod told;

pub use grade::grade;
pub use model::*;
pub use schema::{request_schema, result_schema};
pub use store::{RecordSink, RequestLog, RunFolder, StoreError, read_requests, read_result};
pub use summary::{Hopeless, TrialAccumulator, TrialFacts, quantiles, settle, summarise_step, summarise_trial};
