//! What was observed, in versioned form: `model`, `grade` and `summary` are pure, `store` puts them on disk.

pub mod model;
mod schema;
mod store;

pub use model::*;
pub use schema::{request_schema, result_schema};
pub use store::{RecordSink, RequestLog, RunFolder, StoreError, read_requests, read_result};
mod stub;
pub use stub::*;
