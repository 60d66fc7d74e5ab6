//! From contract text to a [`Contract`]; all mistakes at once, each with its place.

mod model;

pub use model::*;
