//! What was observed, in versioned form: [`model`] and [`summary`] are pure, [`store`] puts them on disk.

pub mod model;
mod store;

pub use model::*;
pub use store::{RecordSink, RequestLog, RunFolder, StoreError, read_requests, read_result};
mod stub;
pub use stub::*;
