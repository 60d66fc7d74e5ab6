//! What was observed, in versioned form: [`model`] and [`summary`] are pure, [`store`] puts them on disk.

pub mod model;

pub use model::*;
