//! Which trial comes next, given what held and what did not (method, sections 8, 9 and 11).
//!
//! Everything here is a function of the contract and of the trials that were made, so a run over real sockets, one in
//! virtual time and a reviewer with the stored files come to the same plan and the same end.

mod bracket;
mod campaign;
mod history;
mod hold;
mod measured;
#[cfg(test)]
mod tests;

pub use bracket::{Bracket, STEP, Try};
pub use campaign::{CURVE_TRIALS, Campaign, Next};
pub use history::{
    Part, SeedSearch, Tried, capacity_point, check_again_is_missing, geometric_mean, history, seed_searches,
};
pub use hold::{LEAST_LONG_RUN, Pooled, counted, long_run, look_at, look_together, pooled, pooled_counts};
pub use measured::Measured;
