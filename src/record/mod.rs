//! What was observed, in versioned form: [`model`] and [`summary`] are pure, [`store`] puts them on disk.

pub mod model;
mod schema;

pub use model::*;
pub use schema::{request_schema, result_schema};
