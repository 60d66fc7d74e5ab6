//! Intervals, tests and quantile ranks: pure functions of counts and series (method, sections 4, 6 to 8 and 10).

mod beta;
mod binomial;
mod change_point;
mod drift;
mod headroom;
mod inflation;
mod load_shift;
mod ranks;
mod ratio;
mod sequential;
mod student;
mod unpaired;

pub use binomial::{
    Counts, Decision, Evidence, decide, fail_min, fails, lower_bound, n_pass, p_fail, p_pass, pass_max, passes,
    share_estimate, upper_bound,
};
pub use change_point::{ChangePoint, change_point};
pub use drift::{Drift, MIN_DRIFT_ARRIVALS, drift};
pub use headroom::{
    HEADROOM_LIMIT, HeadroomLook, TrialHeadroom, look_alpha, look_at_headroom, mean_interval, trials_to_decide,
};
pub use inflation::{Inflation, inflation};
pub use load_shift::{HeadroomCurve, LEAST_SLOPE, clipped, mean_slope};
pub use ranks::{QuantileRanks, quantile_ranks};
pub use ratio::{LEAST_RATIO_DEVIATION, PAIRED_LOOKS, RatioLook, RatioRule, decide_ratio};
pub use sequential::{SequentialPlan, sequential_plan};
pub use student::{deviation, t_interval, t_quantile};
pub use unpaired::{prediction, rank_depth, rank_interval};

/// A number that never travels without its interval and its origin.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The point estimate.
    pub point: f64,
    /// One-sided lower bound.
    pub lower: f64,
    /// One-sided upper bound.
    pub upper: f64,
    /// Confidence of each bound alone.
    pub confidence: f64,
    /// Requests behind it; not an integer where they were deflated.
    pub n: f64,
    /// How the bounds were computed.
    pub method: &'static str,
}
